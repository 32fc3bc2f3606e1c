/* validate_levelset.c - the level-set liquid against theory, experiment and its promise to keep its volume, at full
   size.
   SPDX-License-Identifier: MIT

   Volumes of a faucet, of a tap that drips, of a splash, of drops that meet and part, and of shapes carried in given
   flows; Laplace, Rayleigh, Prosperetti, Lamb, Ritter, Martin & Moyce, Archimedes, the force on a column, added mass,
   Young, and how round a crown is. Prints lines `key value unit`, and `key value unit reference tolerance pass|fail`
   where something is demanded. A word runs one part. */
#define FSI_IMPLEMENTATION
struct fsi__ls_run;
static void carry(struct fsi__ls_run *run, int phase);
#define FSI__LS_AFTER_PHASE(run, phase) carry(run, phase)
#include "../examples/kit/kit.h"
#include "../fsi_levelset.h"
#include "validate.h"
#include "validate_martin.h"

#define G 9.81

static const char *const scheme_name[3] = { "linear", "cubic", "quintic" };

static fsi_vec3 v3(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }

static fsi_box3 box3(double x, double y, double z)
{
    fsi_box3 b;
    b.lo = v3(0, 0, 0);
    b.hi = v3(x, y, z);
    return b;
}

/* nx x ny x nz cells (nz 0: 2D) of dx; gravity g down the last axis. */
static fsi_levelset_desc make_desc(int nx, int ny, int nz, double dx, double g)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    d.context = &app.context;
    d.dim = nz > 0 ? 3 : 2;
    d.n[0] = nx;
    d.n[1] = ny;
    d.n[2] = nz > 0 ? nz : 1;
    d.dx = (fsi_real)dx;
    d.gravity = nz > 0 ? v3(0, 0, -g) : v3(0, -g, 0);
    return d;
}

static fsi_levelset *make(const fsi_levelset_desc *d)
{
    fsi_levelset *s;
    ex_check(&app, fsi_levelset_create(&s, d));
    return s;
}

static void fill(fsi_levelset *s, fsi_box3 b) { ex_check(&app, fsi_levelset_fill_box(s, b, v3(0, 0, 0), NULL)); }
static void drop(fsi_levelset *s, fsi_vec3 center, double radius, fsi_vec3 velocity)
{
    ex_check(&app, fsi_levelset_fill_sphere(s, center, (fsi_real)radius, velocity, NULL));
}
static void step(fsi_levelset *s, double dt) { ex_check(&app, fsi_levelset_step(s, (fsi_real)dt)); }

/* A closed polygon of n corners, clockwise. */
static fsi_mesh *make_polygon(const double (*corner)[2], int n)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh;
    fsi_vec3 x[256];
    int e[512], k;
    for (k = 0; k < n; k++) {
        x[k] = v3(corner[k][0], corner[k][1], 0);
        e[2 * k] = k;
        e[2 * k + 1] = (k + 1) % n;
    }
    d.vertices = x;
    d.vertex_count = d.element_count = n;
    d.elements = e;
    d.corners = 2;
    d.context = &app.context;
    ex_check(&app, fsi_mesh_create(&mesh, &d));
    return mesh;
}

/* ---- derivatives, and volumes of round drops -------------------------------------------------------------------- */

static double any(uint64_t *random)
{
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(*random >> 11) / 9007199254740992.0;
}

/* A drop of `radius` cells, of dx = 1, anywhere around the middle of its box. */
static fsi_levelset *make_round(int dim, double radius, uint64_t *random)
{
    const int n = 2 * (int)radius + 20;
    fsi_levelset_desc d = make_desc(n, n, dim == 3 ? n : 0, 1, 0);
    fsi_levelset *s;
    const double x = any(random), y = any(random), z = any(random);
    d.volume_tolerance = 1e-10;
    s = make(&d);
    drop(s, v3(n / 2 + x, n / 2 + y, n / 2 + z), radius, v3(0, 0, 0));
    return s;
}

static double round_volume(int dim, double r) { return dim == 2 ? FSI_PI * r * r : 4 * FSI_PI / 3 * r * r * r; }

/* The gradient of the spline, by central differences on noise; the smallest of steps, as second derivatives jump. */
static void spline_gradient(int dim)
{
    uint64_t random = 5;
    fsi_levelset *s = make_round(dim, 8, &random);
    const double h = 1e-7, least = 8, most = 28;
    double worst = 0, size = 0;
    int e, k, a;
    for (e = 0; e < s->grid->block_count * s->grid->block_cells; e++)
        ((fsi__ls_impl *)s->impl)->phi->value[e] = (fsi_real)(any(&random) - 0.5);
    for (k = 0; k < 10000; k++) {
        const fsi_vec3 x = v3(least + (most - least) * any(&random), least + (most - least) * any(&random),
                              least + (most - least) * any(&random));
        fsi_vec3 g;
        fsi_grid_sample_spline(s->phi, x, &g);
        for (a = 0; a < dim; a++) {
            const fsi_vec3 step = v3(a == 0 ? h : 0, a == 1 ? h : 0, a == 2 ? h : 0), hi = fsi_v3_add(x, step),
                           lo = fsi_v3_sub(x, step);
            const double slope = (double)fsi__ls_component(g, a),
                         width = (double)fsi__ls_component(fsi_v3_sub(hi, lo), a);
            const double difference =
                ((double)fsi_grid_sample_spline(s->phi, hi, NULL) - (double)fsi_grid_sample_spline(s->phi, lo, NULL)) /
                width;
            worst = fmax(worst, fabs(slope - difference));
            size = fmax(size, fabs(slope));
        }
    }
    must(worst / size, 0, 1e-6, "1", "derivative_%dd_of_spline_error", dim);
    fsi_levelset_destroy(s);
}

/* S of a drop's band with each cell where it started, but cell i (-1: none) by e, or all moved by -J lam. */
static const fsi__ls_fix *sum_band(fsi__ls_run *run, int i, double e, double lam)
{
    fsi__ls_impl *m = run->m;
    int k;
    for (k = 0; k < m->next.first[1]; k++) {
        m->band[k].value = m->band[k].start + (k == i ? e : 0);
        m->band[k].now = fsi__ls_heaviside(m->band[k].value);
    }
    m->next.fix[0].lam = lam;
    if (lam < 0 || lam > 0) fsi__ls_move_pieces(run, 0, 0, m->piece_count);
    fsi__ls_sum(run);
    return &m->next.fix[0];
}

/* dS/dphi of each cell of the band, and of S along the Newton step: -J'J. */
static void constraint_gradient(int dim)
{
    uint64_t random = 9;
    fsi_levelset *s = make_round(dim, 8, &random);
    fsi__ls_run run = fsi__ls_make_run(s);
    fsi__ls_impl *m = run.m;
    const double e = 1e-6;
    double worst = 0, size = 0, hi, lo, jj;
    int k;
    ex_check(&app, fsi__ls_begin(&run));
    memcpy(m->next_phi->value, m->trial_phi->value,
           (size_t)s->grid->block_count * (size_t)s->grid->block_cells * sizeof(fsi_real));
    ex_check(&app, fsi__ls_find_components(&run));
    ex_check(&app, fsi_grid_grow_labels(m->next_label, m->next_phi, FSI__LS_BAND));
    ex_check(&app, fsi__ls_collect_band(&run));
    for (k = 0; k < m->next.first[1]; k += dim == 2 ? 1 : 7) {
        const double slope = sum_band(&run, k, e, 0)->jd / e, up = sum_band(&run, k, e, 0)->h,
                     down = sum_band(&run, k, -e, 0)->h;
        worst = fmax(worst, fabs(slope - (up - down) / (2 * e)));
        size = fmax(size, fabs(slope));
    }
    must(worst / size, 0, 1e-5, "1", "derivative_%dd_of_S_error", dim); /* the slope is that at the cell moved by e */
    jj = sum_band(&run, -1, 0, 0)->jj;
    hi = sum_band(&run, -1, 0, e)->h;
    lo = sum_band(&run, -1, 0, -e)->h;
    must((hi - lo) / (2 * e) / -jj - 1, 0, 1e-6, "1", "derivative_%dd_of_S_along_the_step_error", dim);
    fsi_levelset_destroy(s);
}

/* Volume and area of phi + e. */
static fsi_grid_component shifted(const fsi_levelset *s, double e)
{
    fsi_grid_component c;
    fsi_real *phi = s->phi->value;
    const int count = s->grid->block_count * s->grid->block_cells;
    int k;
    for (k = 0; k < count; k++) phi[k] += (fsi_real)e;
    ex_check(&app, fsi_grid_volumes(s->phi, NULL, 1, NULL, NULL, &c));
    for (k = 0; k < count; k++) phi[k] -= (fsi_real)e;
    return c;
}

/* Moving a surface outward adds its area to the volume, and volume adds curvature to the area: dV = A ds, dA = kap
   dV. */
static void surface_derivatives(int dim)
{
    const int step[3] = { 1, 10, 100 };
    const double e = 0.05;
    double volume = 0, area = 0, bend = 0, most = 0;
    uint64_t random = 3;
    int t, b, c, trials = 10;
    for (t = 0; t < trials; t++) {
        fsi_levelset *s = make_round(dim, 8, &random);
        const fsi_grid_component out = shifted(s, -e), in = shifted(s, e), at = shifted(s, 0);
        volume += ((out.volume - in.volume) / (2 * e) / at.area - 1) / trials;
        area += at.area / (dim == 2 ? 2 * FSI_PI * 8 : 4 * FSI_PI * 64) / trials - 1.0 / trials;
        bend += (out.area - in.area) / (out.volume - in.volume) * 8 / (dim - 1) / trials - 1.0 / trials;
        for (b = 0; b < s->grid->block_count; b++) {
            fsi_real box[1000];
            fsi__grid_gather(s->phi, b, 1, box);
            for (c = 0; c < s->grid->block_cells; c++) {
                const fsi_real *p =
                    box + (dim == 3 ? ((c >> 6) + 1) * 100 : 0) + (((c >> 3) & 7) + 1) * 10 + (c & 7) + 1;
                if (fabs((double)*p) < 1)
                    most = fmax(most, fabs(fsi__phi_curvature(p, dim, step, 1) * 8 / (dim - 1) - 1));
            }
        }
        fsi_levelset_destroy(s);
    }
    must(100 * volume, 0, 1, "%", "derivative_%dd_of_marching_volume_over_area_error", dim);
    must(100 * area, 0, 1, "%", "marching_%dd_area_radius_8dx_error", dim);
    must(100 * bend, 0, 2, "%", "derivative_%dd_of_area_by_volume_over_curvature_error", dim);
    must(100 * most, 0, 2, "%", "curvature_%dd_radius_8dx_largest_error", dim);
}

/* By marching a circle misses (dx/R)^2/6 of its area, a sphere (dx/R)^2/2; S has pi^2/12 dx^2 times the integral of
   curvature too much. */
static void round_volumes(int dim, int radius)
{
    const double v = round_volume(dim, radius), bias = (dim == 2 ? 1 / 6.0 : 0.5) / (radius * radius);
    const double tail = FSI_PI * FSI_PI / 12 * (dim == 2 ? FSI_PI : 4 * FSI_PI * radius) / v;
    double marching = 0, smooth = 0, square = 0;
    uint64_t random = 7;
    const int trials = 50;
    int t, e;
    for (t = 0; t < trials; t++) {
        fsi_levelset *s = make_round(dim, radius, &random);
        double sum = 0;
        for (e = 0; e < s->grid->block_count * s->grid->block_cells; e++)
            sum += fsi__ls_heaviside((double)s->phi->value[e]);
        marching += (s->stats.volume / v - 1) / trials;
        smooth += (sum / v - 1) / trials;
        square += (sum / v - 1 - tail) * (sum / v - 1 - tail) / trials;
        fsi_levelset_destroy(s);
    }
    must(100 * marching, -100 * bias, 0.1 + 5 * bias, "%", "marching_%dd_radius_%ddx_bias", dim, radius);
    must(100 * smooth, 100 * tail, 0.1, "%", "S_%dd_radius_%ddx_bias", dim, radius);
    say(sqrt(square), "1", "S_%dd_radius_%ddx_scatter", dim, radius);
}

/* A drop that is to have 1 % more, or less. */
static void newton(int dim, double factor)
{
    uint64_t random = 11;
    fsi_levelset *s = make_round(dim, 8, &random);
    ex_check(&app, fsi_levelset_set_volume(s, 0, factor * s->stats.volume));
    step(s, 1e-6);
    must(s->stats.volume_iterations, 2, 2, "1", "newton_%dd_volume_%g_iterations", dim, factor);
    must(s->stats.smoothed_error, 0, 1e-10, "1", "newton_%dd_volume_%g_S_against_V0", dim, factor);
    say(100 * s->stats.volume_error, "%", "newton_%dd_volume_%g_error_by_marching", dim, factor);
    fsi_levelset_destroy(s);
}

static void run_derivatives(void)
{
    static const int radius[3] = { 3, 6, 10 };
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        spline_gradient(dim);
        constraint_gradient(dim);
        surface_derivatives(dim);
        for (k = 0; k < 3; k++) round_volumes(dim, radius[k]);
        newton(dim, 1.01);
        newton(dim, 0.99);
    }
}

/* ---- volume over 1000 steps ------------------------------------------------------------------------------------- */

/* What the steps of a scene did to its volume: v is volume/target - 1 of all liquid. */
typedef struct ledger {
    double steps, most, mean, smooth, big, small, sums[4];
    int splits, merges, most_at, big_at;
} ledger;

static void note_components(ledger *l, const fsi_levelset *s)
{
    const double large = pow(6 * (double)s->desc.dx, s->desc.dim);
    int c;
    for (c = 0; c < s->component_count; c++) {
        const fsi_levelset_component *p = &s->component[c];
        const double e = fabs(p->shape.volume / p->target - 1);
        if (p->target > large && e > l->big) l->big = e, l->big_at = (int)l->steps;
        if (p->target <= large && p->target > large / 27 && e > l->small) l->small = e;
    }
}

static void note(ledger *l, const fsi_levelset *s)
{
    const double v = s->stats.volume_error;
    l->steps++;
    if (fabs(v) > l->most) l->most = fabs(v), l->most_at = (int)l->steps;
    l->mean += fabs(v);
    l->sums[0] += l->steps;
    l->sums[1] += l->steps * l->steps;
    l->sums[2] += v;
    l->sums[3] += l->steps * v;
    if (s->stats.smoothed_error > l->smooth) l->smooth = s->stats.smoothed_error;
    l->splits += s->stats.splits;
    l->merges += s->stats.merges;
    note_components(l, s);
}

static void report(const ledger *l, const fsi_levelset *s, const char *scene)
{
    const double slope =
        (l->steps * l->sums[3] - l->sums[0] * l->sums[2]) / (l->steps * l->sums[1] - l->sums[0] * l->sums[0]);
    say(l->splits, "1", "volume_%s_splits", scene);
    say(l->merges, "1", "volume_%s_merges", scene);
    if (!s->desc.conserve_volume) {
        say(100 * (s->stats.volume / (s->stats.target + s->stats.lost_volume) - 1), "%",
            "volume_%s_unconstrained_error_at_end", scene);
        return;
    }
    must(100 * l->most, 0, 0.5, "%", "volume_%s_largest_error", scene);
    say(l->most_at, "step", "volume_%s_largest_error_at", scene);
    must(100 * l->mean / l->steps, 0, 0.2, "%", "volume_%s_mean_error", scene);
    must(slope, 0, 1e-6, "a_step", "volume_%s_drift", scene);
    must(100 * l->big, 0, 1, "%", "volume_%s_component_above_6dx_largest_error", scene);
    say(l->big_at, "step", "volume_%s_component_above_6dx_at", scene);
    say(100 * l->small, "%", "volume_%s_component_2dx_to_6dx_largest_error", scene);
    must(l->smooth, 0, 1e-8, "1", "volume_%s_S_against_V0", scene);
    say(100 * s->stats.lost_volume / s->stats.target, "%", "volume_%s_lost", scene);
}

static void run_scene(fsi_levelset *s, double dt, const char *scene)
{
    ledger l;
    int k;
    memset(&l, 0, sizeof l);
    for (k = 0; k < scaled(1000); k++) {
        step(s, dt);
        note(&l, s);
    }
    report(&l, s, scene);
    fsi_levelset_destroy(s);
}

/* A jet of 2 m/s falls 1 m into a pool, which it fills (open: which runs out of the box at one side). */
static void faucet(int keep, int open)
{
    const double dx = 1.0 / 32;
    fsi_levelset_desc d = make_desc(32, 32, 40, dx, G);
    fsi_levelset_emitter_desc e = fsi_levelset_default_emitter_desc();
    fsi_levelset *s;
    d.conserve_volume = keep;
    d.open_side[1] = (unsigned char)open;
    s = make(&d);
    e.center = v3(0.5, 0.51, 40 * dx);
    e.direction = v3(0, 0, -1);
    e.radius = (fsi_real)(2.3 * dx);
    e.speed = 2;
    ex_check(&app, fsi_levelset_add_emitter(s, &e, NULL));
    fill(s, box3(1, 1, 0.25));
    run_scene(s, 0.004, open ? "faucet_open" : "faucet");
}

/* Water at 0.15 m/s out of a pipe of 8 mm: drops fall off it into a pool, on a grid of 1 mm. */
static void drip(int keep)
{
    fsi_levelset_desc d = make_desc(32, 32, 64, 1e-3, G);
    fsi_levelset_emitter_desc e = fsi_levelset_default_emitter_desc();
    fsi_levelset *s;
    d.conserve_volume = keep;
    d.surface_tension = (fsi_real)0.0728;
    s = make(&d);
    e.center = v3(0.016, 0.0162, 0.064);
    e.direction = v3(0, 0, -1);
    e.radius = (fsi_real)0.004;
    e.speed = (fsi_real)0.15;
    ex_check(&app, fsi_levelset_add_emitter(s, &e, NULL));
    fill(s, box3(0.032, 0.032, 0.01));
    run_scene(s, 1e-3, "drip");
}

static void splash(int keep)
{
    fsi_levelset_desc d = make_desc(48, 48, 48, 1.0 / 48, G);
    fsi_levelset *s;
    d.conserve_volume = keep;
    s = make(&d);
    fill(s, box3(1, 1, 0.25));
    drop(s, v3(0.5, 0.52, 0.6), 0.17, v3(0.3, 0, -2));
    run_scene(s, 0.004, "splash");
}

/* Off their common axis, fast enough to pull each other apart again, between walls that send them back. */
static void meet(int keep, int dim)
{
    fsi_levelset_desc d = make_desc(72, 40, dim == 3 ? 40 : 0, 1.0 / 40, 0);
    fsi_levelset *s;
    d.conserve_volume = keep;
    d.surface_tension = 5;
    d.density = 1000;
    s = make(&d);
    drop(s, v3(0.5, 0.42, 0.5), 0.2, v3(1, 0, 0));
    drop(s, v3(1.3, 0.62, 0.51), 0.17, v3(-1, 0, 0));
    run_scene(s, 0.008, dim == 3 ? "meet_3d" : "meet_2d");
}

static void run_volume(void)
{
    int keep;
    for (keep = 1; keep >= 0; keep--) {
        faucet(keep, 0);
        drip(keep);
        splash(keep);
        meet(keep, 2);
        meet(keep, 3);
    }
    faucet(1, 1);
}

/* ---- shapes in given flows --------------------------------------------------------------------------------------- */

typedef double flow_of(double x, double y, double t, int axis);
static flow_of *given;

/* Puts the given flow in the place of the step's own velocities, half a step on, before they carry phi. */
static void carry(struct fsi__ls_run *r, int phase)
{
    fsi__ls_run *run = (fsi__ls_run *)r;
    int a, e;
    if (!given || phase != 1) return;
    for (a = 0; a < 2; a++)
        for (e = 0; e < run->grid->block_count * run->grid->block_cells; e++) {
            const fsi_vec3 x = fsi__ls_entry_position(run->grid, (fsi_grid_place)((int)FSI_FACES_X + a), e);
            run->m->trial_u[a]->value[e] = (fsi_real)given((double)x.x, (double)x.y, run->time + run->dt / 2, a);
        }
}

/* Zalesak 1979, in a box of 100 that turns once in 628; and the vortex of Bell, Colella and Glaz 1989 that winds up and
   back in 8. */
static double turn(double x, double y, double t, int axis)
{
    (void)t;
    return FSI_PI / 314 * (axis == 0 ? 50 - y : x - 50);
}
static double vortex(double x, double y, double t, int axis)
{
    const double sx = sin(FSI_PI * x), sy = sin(FSI_PI * y), back = cos(FSI_PI * t / 8);
    return axis == 0 ? -2 * sx * sx * sy * cos(FSI_PI * y) * back : 2 * sx * cos(FSI_PI * x) * sy * sy * back;
}

static fsi_mesh *make_slotted_disc(void)
{
    double corner[202][2];
    const double half = asin(2.5 / 15);
    int k;
    for (k = 0; k < 200; k++) {
        const double angle = -FSI_PI / 2 - half - k * (2 * FSI_PI - 2 * half) / 199;
        corner[k][0] = 50 + 15 * cos(angle);
        corner[k][1] = 75 + 15 * sin(angle);
    }
    corner[200][0] = 52.5;
    corner[201][0] = 47.5;
    corner[200][1] = corner[201][1] = 85;
    return make_polygon((const double (*)[2])corner, 202);
}

/* Where liquid should be or not, at 4 x 4 points a cell; counts those of phi that say otherwise. */
static int *sign_map(const fsi_levelset *s, int n)
{
    int *map = (int *)ex_alloc(NULL, (size_t)n * (size_t)n, sizeof *map), i, j;
    const double h = (double)s->desc.dx * s->desc.n[0] / n;
    for (j = 0; j < n; j++)
        for (i = 0; i < n; i++) map[j * n + i] = fsi_levelset_phi_at(s, v3((i + 0.5) * h, (j + 0.5) * h, 0)) < 0;
    return map;
}

static void transport(int is_vortex, fsi_grid_scheme scheme, int keep)
{
    const int n = is_vortex ? 128 : 100, steps = scaled(is_vortex ? 2048 : 1256), m = 4 * n;
    const double dx = is_vortex ? 1.0 / n : 1, time = is_vortex ? 8 : 628,
                 around = is_vortex ? 2 * FSI_PI * 0.15 : 144.2;
    fsi_levelset_desc d = make_desc(n, n, 0, dx, 0);
    fsi_levelset *s;
    int k, *before, *after, wrong = 0;
    double v;
    char key[64];
    d.conserve_volume = keep;
    d.phi_scheme = scheme;
    d.cfl = 4;
    s = make(&d);
    given = is_vortex ? vortex : turn;
    if (is_vortex) drop(s, v3(0.5, 0.75, 0), 0.15, v3(0, 0, 0));
    else {
        fsi_mesh *mesh = make_slotted_disc();
        ex_check(&app, fsi_levelset_fill_mesh(s, mesh, v3(0, 0, 0), NULL));
        fsi_mesh_destroy(mesh);
    }
    v = s->stats.volume;
    before = sign_map(s, m);
    for (k = 0; k < steps; k++) step(s, time / steps);
    after = sign_map(s, m);
    for (k = 0; k < m * m; k++) wrong += before[k] != after[k];
    sprintf(key, "%s_%s%s", is_vortex ? "vortex_128" : "zalesak_100", scheme_name[scheme],
            keep ? "" : "_unconstrained");
    say(100 * (1 - s->stats.volume / v), "%", "%s_area_lost", key);
    say(wrong / 16.0 * dx / around, "dx", "%s_shape_error", key);
    if (keep) must(100 * s->stats.volume_error, 0, 0.5, "%", "%s_volume_error", key);
    say(s->component_count, "1", "%s_parts", key);
    given = NULL;
    free(before);
    free(after);
    fsi_levelset_destroy(s);
}

static void run_transport(void)
{
    int k;
    for (k = 0; k < 2; k++) {
        transport(k, FSI_ADVECT_LINEAR, 1);
        transport(k, FSI_ADVECT_CUBIC, 1);
        transport(k, FSI_ADVECT_QUINTIC, 1);
        transport(k, FSI_ADVECT_LINEAR, 0);
        transport(k, FSI_ADVECT_CUBIC, 0);
        transport(k, FSI_ADVECT_QUINTIC, 0);
    }
}

/* ---- surface tension --------------------------------------------------------------------------------------------- */

/* A drop of radius 1, n cells a diameter, in a box of 3; density and tension 1. */
static fsi_levelset *make_drop(int dim, int n, fsi_levelset_desc *d)
{
    const int cells = 3 * n / 2;
    fsi_levelset *s;
    *d = make_desc(cells, cells, dim == 3 ? cells : 0, 3.0 / cells, 0);
    d->density = d->surface_tension = 1;
    d->capillary_cfl = (fsi_real)(dim == 2 ? 1.5 : 1);
    s = make(d);
    drop(s, v3(1.51, 1.49, 1.5), 1, v3(0, 0, 0));
    return s;
}

static double capillary_time(const fsi_levelset_desc *d)
{
    return sqrt((double)d->density * pow((double)d->dx, 3) / (4 * FSI_PI * (double)d->surface_tension));
}

/* At rest over a period of mode 2. */
static void still_drop(int dim, int n, double *fastest)
{
    fsi_levelset_desc d;
    fsi_levelset *s = make_drop(dim, n, &d);
    double least = 1e30, most = 0, before = *fastest;
    int e;
    *fastest = 0;
    while (s->time < (dim == 2 ? 2.5651 : 2.2214)) {
        step(s, capillary_time(&d));
        *fastest = fmax(*fastest, s->stats.max_speed);
    }
    for (e = 0; e < s->grid->block_count * s->grid->block_cells; e++)
        if (s->phi->value[e] < -s->grid->dx) {
            least = fmin(least, (double)s->pressure->value[e] / (dim - 1));
            most = fmax(most, (double)s->pressure->value[e] / (dim - 1));
        }
    must(least, 1, 0.01, "gamma/R", "laplace_%dd_radius_%ddx_least_pressure", dim, n / 2);
    must(most, 1, 0.01, "gamma/R", "laplace_%dd_radius_%ddx_largest_pressure", dim, n / 2);
    if (before > 0)
        must(*fastest, 0, before, "sqrt(gamma/rho/R)", "spurious_%dd_radius_%ddx_speed_below_coarser", dim, n / 2);
    else say(*fastest, "sqrt(gamma/rho/R)", "spurious_%dd_radius_%ddx_speed", dim, n / 2);
    fsi_levelset_destroy(s);
}

static void run_laplace(void)
{
    static const int n[2][3] = { { 16, 32, 64 }, { 16, 24, 32 } };
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        double fastest = 0;
        for (k = 0; k < 3; k++) still_drop(dim, n[dim - 2][k], &fastest);
    }
}

/* The velocity of mode m at (x, y, z) from the centre: grad Re (x + iy)^m in 2D, grad (x^2 - (y^2 + z^2)/2) in 3D. */
static double mode_flow(int dim, int m, int axis, const double x[3])
{
    if (dim == 3) return axis == 0 ? 2 * x[0] : -x[axis];
    return m == 2 ? (axis == 0 ? 2 * x[0] : -2 * x[1])
                  : (axis == 0 ? 3 * (x[0] * x[0] - x[1] * x[1]) : -6 * x[0] * x[1]);
}
static double mode_shape(int dim, int m, const double x[3])
{
    if (dim == 3) return x[0] * x[0] - (x[1] * x[1] + x[2] * x[2]) / 2;
    return m == 2 ? x[0] * x[0] - x[1] * x[1] : x[0] * (x[0] * x[0] - 3 * x[1] * x[1]);
}

static void from_center(const fsi_levelset *s, fsi_grid_place place, int e, double x[3])
{
    const fsi_vec3 p = fsi__ls_entry_position(s->grid, place, e);
    x[0] = (double)p.x - 1.51;
    x[1] = (double)p.y - 1.49;
    x[2] = (double)p.z - 1.5;
}

static double moment(const fsi_levelset *s, int m)
{
    double sum = 0, x[3];
    int e;
    for (e = 0; e < s->grid->block_count * s->grid->block_cells; e++) {
        const double share = fmin(1, fmax(0, 0.5 - (double)(s->phi->value[e] / s->grid->dx)));
        if (!(share > 0)) continue;
        from_center(s, FSI_CELLS, e, x);
        sum += share * mode_shape(s->grid->dim, m, x);
    }
    return sum;
}

/* Rayleigh 1879, Lamb 1932: omega^2 = m (m - 1)(m + 2) gamma/(rho R^3), in 2D m (m^2 - 1). From a kick of 5 % of R;
   between zeros of the moment. */
static void swing(int dim, int m, int n, fsi_grid_scheme scheme)
{
    const double exact = 2 * FSI_PI / sqrt(dim == 3 ? 8 : m * (m * m - 1));
    fsi_levelset_desc d;
    fsi_levelset *s = make_drop(dim, n, &d);
    double last = 0, zero[6], peak[6] = { 0 }, x[3], dt = capillary_time(&d);
    int a, e, count = 0;
    fsi_levelset_destroy(s);
    d.velocity_scheme = d.phi_scheme = scheme;
    s = make(&d);
    drop(s, v3(1.51, 1.49, 1.5), 1, v3(0, 0, 0));
    for (a = 0; a < dim; a++)
        for (e = 0; e < s->grid->block_count * s->grid->block_cells; e++) {
            from_center(s, (fsi_grid_place)((int)FSI_FACES_X + a), e, x);
            s->u[a]->value[e] = (fsi_real)(0.05 * 2 * FSI_PI / exact / m * mode_flow(dim, m, a, x));
        }
    while (count < 5 && s->time < 4 * exact) {
        double q;
        step(s, dt);
        q = moment(s, m);
        if (s->time > 2.5 * dt && last * q < 0) zero[count++] = s->time - dt * q / (q - last);
        if (count < 5) peak[count] = fmax(peak[count], fabs(q));
        last = q;
    }
    must(count == 5 ? 100 * ((zero[4] - zero[0]) / 2 / exact - 1) : 100, 0, 3, "%",
         "mode_%d_%dd_%d_cells_%s_period_error", m, dim, n, scheme_name[scheme]);
    say(peak[3] / peak[1], "1", "mode_%d_%dd_%d_cells_%s_swing_kept_a_period", m, dim, n, scheme_name[scheme]);
    fsi_levelset_destroy(s);
}

static void run_modes(void)
{
    int k;
    for (k = 0; k < 2; k++) {
        const fsi_grid_scheme scheme = k ? FSI_ADVECT_QUINTIC : FSI_ADVECT_CUBIC;
        swing(2, 2, 16, scheme);
        swing(2, 3, 16, scheme);
        swing(3, 2, 16, scheme);
        swing(2, 2, 32, scheme);
        swing(2, 3, 32, scheme);
    }
}

/* Prosperetti 1981: a(t)/a0 of a small standing wave on deep viscous liquid, at omega t = 1, 2, ... 25, for omega/(nu
   k^2) = 20, 100, 1000, 10000. */
static const double prosperetti[4][25] = {
    {0.56606,  -0.28047, -0.77116, -0.55262, 0.08590,  0.55157,  0.48594,  0.02579,  -0.38657,
     -0.41671, -0.09843, 0.25108,  0.33768,  0.13033,  -0.15377, -0.26740, -0.14266, 0.08042,
     0.20197,  0.13703,  -0.03179, -0.14861, -0.12465, -0.00146, 0.10366},
    {0.54597,  -0.38450, -0.93578, -0.62510, 0.23648,  0.85311,  0.67852,  -0.10115, -0.76171,
     -0.71264, -0.02398, 0.66084,  0.72531,  0.13402,  -0.55664, -0.72110, -0.23045, 0.44961,
     0.69979,  0.31050,  -0.34437, -0.66543, -0.37573, 0.24158,  0.61869},
    {0.54089,  -0.41276, -0.98401, -0.65021, 0.27885,  0.94840,  0.74513,  -0.14104, -0.89437,
     -0.82416, 0.00194,  0.82303,  0.88574,  0.13550,  -0.73615, -0.92897, -0.26870, 0.63552,
     0.95310,  0.39493,  -0.52343, -0.95795, -0.51184, 0.40215,  0.94358},
    {0.54036,  -0.41580, -0.98938, -0.65328, 0.28318,  0.95897,  0.75299,  -0.14506, -0.90942,
     -0.83752, 0.00420,  0.84173,  0.90520,  0.13657,  -0.75729, -0.95469, -0.27445, 0.65779,
     0.98502,  0.40667,  -0.54526, -0.99561, -0.53060, 0.42195,  0.98626}};

/* Mean over the columns of how high the surface stands, times 2 cos(k x). */
static double wave_height(const fsi_levelset *s, double level, double k)
{
    const int n = s->desc.n[0], high = s->desc.n[1];
    const double dx = (double)s->desc.dx;
    double sum = 0;
    int i, j;
    for (i = 0; i < n; i++)
        for (j = 0; j + 1 < high; j++) {
            const double p = (double)fsi_grid_at(s->phi, i, j, 0), q = (double)fsi_grid_at(s->phi, i, j + 1, 0);
            if (!(p < 0 && q >= 0)) continue;
            sum += 2.0 / n * ((j + 0.5 + p / (p - q)) * dx - level) * cos(k * (i + 0.5) * dx);
            break;
        }
    return sum;
}

/* One wavelength of 1, n cells, between slippery walls; density and tension 1; a0 = 1 %. */
static void wave(int which, int n, fsi_grid_scheme scheme)
{
    const double ratio = pow(10, which + (which == 0 ? log10(20.0) : 1)), k = 2 * FSI_PI, omega = sqrt(k * k * k),
                 dx = 1.0 / n, level = 1 + 0.003 * dx, a0 = 0.01;
    double corner[66][2], sum = 0, before = a0, last = 0;
    fsi_levelset_desc d = make_desc(n, n + n / 2, 0, dx, 0);
    fsi_levelset *s;
    fsi_mesh *mesh;
    int i, next = 0;
    d.density = d.surface_tension = 1;
    d.viscosity = (fsi_real)(omega / (ratio * k * k));
    d.capillary_cfl = (fsi_real)1.5;
    d.velocity_scheme = d.phi_scheme = scheme;
    memset(d.no_slip, 0, sizeof d.no_slip);
    s = make(&d);
    for (i = 0; i < 64; i++) {
        const double x = -0.25 + 1.5 * i / 63;
        corner[i][0] = x;
        corner[i][1] = level + a0 * cos(k * x);
    }
    corner[64][0] = 1.25;
    corner[65][0] = -0.25;
    corner[64][1] = corner[65][1] = -0.25;
    mesh = make_polygon((const double (*)[2])corner, 66);
    ex_check(&app, fsi_levelset_fill_mesh(s, mesh, v3(0, 0, 0), NULL));
    fsi_mesh_destroy(mesh);
    while (next < 25) {
        double a;
        step(s, 1.5 * capillary_time(&d));
        a = wave_height(s, level, k);
        for (; next < 25 && next + 1 <= s->time * omega; next++) {
            const double at = before + (a - before) * ((next + 1) / omega - last) / (s->time - last);
            sum += (at / a0 - prosperetti[which][next]) * (at / a0 - prosperetti[which][next]) / 25;
        }
        before = a;
        last = s->time;
    }
    must(100 * sqrt(sum), 0, n < 32 ? 1e9 : 5, "%_of_a0", "wave_%g_%d_cells_%s_rms", ratio, n, scheme_name[scheme]);
    fsi_levelset_destroy(s);
}

static void run_wave(void)
{
    int k;
    for (k = 0; k < 4; k++) {
        wave(k, 32, FSI_ADVECT_CUBIC);
        wave(k, 32, FSI_ADVECT_QUINTIC);
        wave(k, 64, FSI_ADVECT_CUBIC);
    }
}

/* ---- gravity ----------------------------------------------------------------------------------------------------- */

static void run_rest(void)
{
    int dim, k, e;
    for (dim = 2; dim <= 3; dim++) {
        const double level = 0.53;
        fsi_levelset_desc d = make_desc(32, 32, dim == 3 ? 32 : 0, 1.0 / 32, G);
        fsi_levelset *s = make(&d);
        double worst = 0;
        fill(s, dim == 3 ? box3(1, 1, level) : box3(1, level, 0));
        for (k = 0; k < 50; k++) step(s, 0.01);
        for (e = 0; e < s->grid->block_count * s->grid->block_cells; e++) {
            const fsi_vec3 x = fsi__ls_entry_position(s->grid, FSI_CELLS, e);
            const double deep = level - (double)(dim == 3 ? x.z : x.y);
            if (s->phi->value[e] < -s->grid->dx / 2 && deep < level)
                worst = fmax(worst, fabs((double)s->pressure->value[e] / (1000 * G * deep) - 1));
        }
        must(100 * worst, 0, 1, "%", "rest_%dd_pressure_error", dim);
        say(s->stats.max_speed, "m/s", "rest_%dd_fastest", dim);
        fsi_levelset_destroy(s);
    }
}

/* omega^2 = g k tanh(k h), k = pi, from a kick of the first mode in a tank of length 1. */
static void slosh(int n, fsi_grid_scheme scheme)
{
    const double h = 0.5 + 0.37 / n, k = FSI_PI, omega = sqrt(G * k * tanh(k * h)), period = 2 * FSI_PI / omega,
                 kick = 0.01 * omega / sinh(k * h);
    fsi_levelset_desc d = make_desc(n, n, 0, 1.0 / n, G);
    fsi_levelset *s;
    double last = 0, zero[21], peak[22] = { 0 };
    int a, e, count = 0;
    d.velocity_scheme = d.phi_scheme = scheme;
    s = make(&d);
    fill(s, box3(1, h, 0));
    for (a = 0; a < 2; a++)
        for (e = 0; e < s->grid->block_count * s->grid->block_cells; e++) {
            const fsi_vec3 x = fsi__ls_entry_position(s->grid, (fsi_grid_place)((int)FSI_FACES_X + a), e);
            s->u[a]->value[e] = (fsi_real)(kick * (a == 0 ? sin(k * (double)x.x) * cosh(k * (double)x.y)
                                                          : -cos(k * (double)x.x) * sinh(k * (double)x.y)));
        }
    while (count < 20 && s->time < 12 * period) {
        double q;
        step(s, period / 50);
        q = (double)s->component[0].shape.centroid.x - 0.5;
        if (s->time > period / 20 && last * q < 0) zero[count++] = s->time - period / 50 * q / (q - last);
        peak[count] = fmax(peak[count], fabs(q));
        last = q;
    }
    must(count == 20 ? 100 * ((zero[19] - zero[1]) / 9 / period - 1) : 100, 0, 1, "%", "slosh_%d_cells_%s_period_error",
         n, scheme_name[scheme]);
    say(100 * (1 - pow(peak[19] / peak[1], 2 / 9.0)), "%", "slosh_%d_cells_%s_energy_lost_a_period", n,
        scheme_name[scheme]);
    fsi_levelset_destroy(s);
}

static void run_slosh(void)
{
    slosh(32, FSI_ADVECT_CUBIC);
    slosh(64, FSI_ADVECT_CUBIC);
    slosh(64, FSI_ADVECT_QUINTIC);
}

/* Depth of the liquid over x, mean over 4 columns, without holes. */
static double depth_at(const fsi_levelset *s, double x)
{
    const int i = (int)(x / (double)s->desc.dx);
    double sum = 0;
    int j, k;
    for (k = -2; k < 2; k++)
        for (j = 0; j < s->desc.n[1]; j++)
            sum += fmin(1, fmax(0, 0.5 - (double)(fsi_grid_at(s->phi, i + k, j, 0) / s->desc.dx)));
    return sum / 4 * (double)s->desc.dx;
}

static double reach(const fsi_levelset *s)
{
    double most = 0;
    int c;
    for (c = 0; c < s->component_count; c++)
        if (s->component[c].shape.volume > 0.1 * s->stats.volume)
            most = fmax(most, (double)s->component[c].shape.box.hi.x);
    return most;
}

/* Ritter 1892: h/h0 = (2 - x/(c t))^2/9 once vertical acceleration has died down, before the rear wall is felt: 3 to 6
   sqrt(h0/g). */
static void run_ritter(void)
{
    const int n = 32;
    const double h0 = 1, c = sqrt(G), unit = sqrt(1 / G), gate = 6;
    fsi_levelset_desc d = make_desc(16 * n, 3 * n / 2, 0, h0 / n, G);
    fsi_levelset *s = make(&d);
    double depth = 0, rms = 0, start = 0;
    int k;
    fill(s, box3(gate, h0, 0));
    for (k = 1; k <= 225; k++) {
        step(s, 0.02 * unit);
        if (k == 150) start = reach(s);
        if (k > 150) depth += depth_at(s, gate) / 75;
    }
    for (k = 0; k <= 50; k++) {
        const double xi = -1 + 0.05 * k, off = depth_at(s, gate + xi * c * s->time) - (2 - xi) * (2 - xi) / 9;
        rms += off * off / 51;
    }
    must(depth, 4.0 / 9, 0.05 * 4 / 9, "h0", "ritter_gate_depth");
    /* 2 c without friction, of real columns 1.4 to 1.8 c */
    must((reach(s) - start) / (1.5 * unit) / c, 1.75, 0.35, "c", "ritter_tip_speed");
    say(sqrt(rms), "h0", "ritter_profile_rms_to_1.5_c");
    say(100 * s->stats.volume_error, "%", "ritter_volume_error");
    fsi_levelset_destroy(s);
}

/* With water's viscosity and tension; both make the thin front slower than theory without friction, the more so the
   finer the grid. */
static void martin(int n2, int across)
{
    static surge r;
    const double dx = MM_A / across, unit = sqrt(MM_A / G), end = n2 == 1 ? 3.6 : 3.3 / sqrt(2.0);
    const double (*front)[2] = n2 == 1 ? mm_front_1 : mm_front_2;
    const int count = n2 == 1 ? 19 : 13;
    fsi_levelset_desc d = make_desc(7 * across, 5 * across / 2, 0, dx, G);
    fsi_levelset *s;
    double shift, rms, most;
    int k;
    d.viscosity = (fsi_real)1e-3;
    d.surface_tension = (fsi_real)0.0728;
    s = make(&d);
    fill(s, box3(MM_A, n2 * MM_A, 0));
    r.count = MM_SAMPLES;
    for (k = 0; k < MM_SAMPLES; k++) {
        if (k > 0) step(s, end * unit / (MM_SAMPLES - 1));
        r.T[k] = sqrt(n2) * s->time / unit;
        r.front[k] = reach(s) / MM_A;
        r.height[k] = depth_at(s, 2 * dx) / (n2 * MM_A);
    }
    shift = match_start(&r, front[2][0]);
    say(shift, "1", "martin_n2_%d_%d_cells_time_shift", n2, across);
    compare(&r, r.front, shift, front, 3, 10, &rms, &most);
    must(100 * most, 0, 8, "%", "martin_n2_%d_%d_cells_front_largest_to_Z3", n2, across);
    compare(&r, r.front, shift, front, 10, count, &rms, &most);
    must(100 * most, 0, 10, "%", "martin_n2_%d_%d_cells_front_largest_beyond", n2, across);
    if (n2 == 1) {
        compare(&r, r.height, shift, mm_height_1, 0, 6, &rms, &most);
        must(100 * rms, 0, 6, "%", "martin_n2_1_%d_cells_height_rms", across);
        compare(&r, r.height, 0, mm_height_1, 0, 6, &rms, &most);
        say(100 * rms, "%", "martin_n2_1_%d_cells_height_rms_unshifted", across);
    }
    say(100 * s->stats.volume_error, "%", "martin_n2_%d_%d_cells_volume_error", n2, across);
    fsi_levelset_destroy(s);
}

static void run_martin(void)
{
    martin(1, 32);
    martin(1, 64);
    martin(2, 24);
    martin(2, 48);
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

static fsi_mesh *make_cylinder(double x, double y, double radius)
{
    double corner[128][2];
    int k;
    for (k = 0; k < 128; k++) {
        corner[k][0] = x + radius * cos(-2 * FSI_PI * k / 128);
        corner[k][1] = y + radius * sin(-2 * FSI_PI * k / 128);
    }
    return make_polygon((const double (*)[2])corner, 128);
}

/* Half sizes a, b, turned by `angle`. */
static fsi_mesh *make_block(double x, double y, double a, double b, double angle)
{
    static const int sx[4] = { -1, -1, 1, 1 }, sy[4] = { -1, 1, 1, -1 };
    double corner[4][2];
    int k;
    for (k = 0; k < 4; k++) {
        corner[k][0] = x + sx[k] * a * cos(angle) - sy[k] * b * sin(angle);
        corner[k][1] = y + sx[k] * a * sin(angle) + sy[k] * b * cos(angle);
    }
    return make_polygon((const double (*)[2])corner, 4);
}

static fsi_mesh *make_ball(fsi_vec3 center, double radius)
{
    ex_mesh ball = ex_sphere(center, radius, 4);
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh;
    d.vertices = ball.vertices;
    d.vertex_count = ball.vertex_count;
    d.elements = ball.triangles;
    d.element_count = ball.triangle_count;
    d.context = &app.context;
    ex_check(&app, fsi_mesh_create(&mesh, &d));
    ex_mesh_free(&ball);
    return mesh;
}

/* A column of 12 x 12 cm, its faces along the axes. */
static fsi_mesh *make_column(double x, double y)
{
    static const int t[36] = {0, 2, 1, 1, 2, 3, 4, 5, 6, 5, 7, 6, 0, 1, 4, 1, 5, 4,
                              2, 6, 3, 3, 6, 7, 0, 4, 2, 2, 4, 6, 1, 3, 5, 3, 7, 5};
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_vec3 corner[8];
    fsi_mesh *mesh;
    int k;
    for (k = 0; k < 8; k++) corner[k] = v3(k & 1 ? x + 0.12 : x, k & 2 ? y + 0.12 : y, k & 4 ? 0.75 : -0.1);
    d.vertices = corner;
    d.vertex_count = 8;
    d.elements = t;
    d.element_count = 12;
    d.context = &app.context;
    ex_check(&app, fsi_mesh_create(&mesh, &d));
    return mesh;
}

/* Force of the pressure on a wall of the box across x. */
static double force_on_wall(const fsi_levelset *s, double x)
{
    const double h = (double)s->desc.dx / 2;
    double sum = 0;
    int j, k;
    for (j = 0; j < 2 * s->desc.n[1]; j++)
        for (k = 0; k < 2 * s->desc.n[2]; k++)
            sum += h * h * (double)fsi_levelset_pressure_at(s, v3(x, (j + 0.5) * h, (k + 0.5) * h));
    return sum;
}

/* A column of water of 0.4 x 0.6 x 0.3 m runs onto a square column 0.5 m away, over 1 cm of water: impulse by its
   reaction from before the impact to 0.5 s, that of the pressure at its sides over it, and that of the pressure half a
   cell in front of them; and what the liquid lost beside what it gave to the walls, from the impact on, over it. */
static void column(double dx, double off)
{
    fsi_levelset_desc d = make_desc((int)(1.6 / dx + 0.5), (int)(0.6 / dx + 0.5), (int)(0.6 / dx + 0.5), dx, G);
    const double x = 0.9 + off * dx, y = 0.24 + off * dx;
    fsi_mesh *mesh = make_column(x, y);
    fsi_levelset *s = make(&d);
    const int across = 2 * (int)ceil(0.12 / dx);
    const double h = 0.12 / across;
    double got = 0, pushed[2] = { 0, 0 }, lost = 0;
    int id, j, k, l;
    fill(s, box3(0.4, 0.6, 0.3));
    fill(s, box3(1.6, 0.6, 0.01));
    ex_check(&app, fsi_levelset_add_mesh(s, mesh, &id));
    while (s->time < 0.5 - 1e-9) {
        const double dt = fmin(fmin((double)fsi_levelset_suggest_dt(s), 0.005), 0.5 - s->time);
        const double had = s->stats.momentum[0];
        fsi_vec3 force;
        step(s, dt);
        ex_check(&app, fsi_levelset_obstacle_reaction(s, id, &force, NULL));
        got += dt * (double)force.x;
        if (s->time > 0.25)
            lost += dt * (force_on_wall(s, 0) - force_on_wall(s, 1.6)) - (s->stats.momentum[0] - had);
        for (l = 0; l < 2; l++)
            for (j = 0; j < across; j++)
                for (k = 0; k < (int)(0.6 / h); k++) {
                    const double yy = y + (j + 0.5) * h, z = (k + 0.5) * h, out = 0.5 * l * dx;
                    pushed[l] += dt * h * h *
                                 ((double)fsi_levelset_pressure_at(s, v3(x - out, yy, z)) -
                                  (double)fsi_levelset_pressure_at(s, v3(x + 0.12 + out, yy, z)));
                }
    }
    printf("column_%.1f_mm_%.2f_cells_inside_impulse %.4g N_s\n", 1000 * dx, off, got);
    must(pushed[0] / got, 1, off > 0 ? 0.05 : 0.03, "1", "column_%.1f_mm_%.2f_cells_inside_by_pressure_at_its_sides",
         1000 * dx, off);
    must(lost / got, 1, 0.03, "1", "column_%.1f_mm_%.2f_cells_inside_by_the_liquids_momentum", 1000 * dx, off);
    if (!(off > 0)) must(pushed[1] / got, 1, 0.03, "1", "column_%.1f_mm_by_pressure_half_a_cell_away", 1000 * dx);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(mesh);
}

static void run_column(void)
{
    column(0.02, 0);
    column(0.02, 0.3);
    column(0.02, 0.5);
    column(0.0125, 0);
}

/* A COUPLED body at `density`, without forces. */
static fsi_body make_body(const fsi_mesh *mesh, double density)
{
    fsi_mass_properties p;
    ex_check(&app, fsi_mesh_mass(mesh, (fsi_real)density, 0, &p));
    return fsi_body_from_mass(&p);
}

static void add_solid(fsi_levelset *s, const fsi_mesh *mesh, fsi_body *body, double angle)
{
    fsi_levelset_obstacle_desc o = fsi_levelset_default_obstacle_desc();
    o.mesh = mesh;
    o.body = body;
    o.contact_angle = (fsi_real)angle;
    ex_check(&app, fsi_levelset_add_obstacle(s, &o, NULL));
}

/* Let go in a box of 8 diameters (3D: 6) of 16 cells, mostly full: a/g = (1 - D)/(D + C), C = 1 for a cylinder, 1/2 for
   a ball. */
static void release(int dim, double density)
{
    const int box = dim == 2 ? 8 : 6;
    const double dx = 1.0 / 16, dt = 1e-3, half = box / 2.0, c = dim == 2 ? 1 : 0.5;
    fsi_levelset_desc d = make_desc(16 * box, 16 * box, dim == 3 ? 16 * box : 0, dx, 0);
    fsi_mesh *mesh = dim == 2 ? make_cylinder(half + 0.013, half + 0.007, 0.5)
                              : make_ball(v3(half + 0.013, half + 0.007, half - 0.011), 0.5);
    fsi_body body = make_body(mesh, density);
    fsi_levelset *s;
    double push = G * (1 - density) * (double)body.mass / density;
    d.density = 1;
    s = make(&d);
    body.force = v3(0, push, 0);
    add_solid(s, mesh, &body, 90);
    fill(s, box3(box, box - 0.5, box));
    step(s, dt);
    must(100 * ((double)body.new_velocity.y / dt / (G * (1 - density) / (density + c)) - 1), 0, 5, "%",
         "added_mass_%dd_density_%g_acceleration_error", dim, density);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(mesh);
}

static void run_added_mass(void)
{
    static const double density[5] = { 0.001, 0.05, 0.5, 2, 8 };
    int k, dim;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 5; k++) release(dim, density[k]);
}

/* How far the centre of a body of radius 1 lies below the surface where `share` of it is under water. */
static double depth_of_center(int dim, double share)
{
    double lo = -1, hi = 1;
    int k;
    for (k = 0; k < 60; k++) {
        const double h = (lo + hi) / 2, t = acos(-h),
                     under = dim == 2 ? (t - sin(t) * cos(t)) / FSI_PI : (1 + h) * (1 + h) * (2 - h) / 4;
        if (under < share) lo = h;
        else hi = h;
    }
    return lo;
}

static void damp(fsi_levelset *s, double keep)
{
    int a, e;
    for (a = 0; a < s->grid->dim; a++)
        for (e = 0; e < s->grid->block_count * s->grid->block_cells; e++) s->u[a]->value[e] *= (fsi_real)keep;
}

/* What floats: 0 a block, 1 a cylinder, 2 a ball in 3D. Brought to rest; its mean height over the last third, against
   Archimedes. */
static void draft(int what, double density, int n)
{
    static const char *const names[3] = { "block", "cylinder", "ball" };
    const int dim = what == 2 ? 3 : 2, steps = dim == 2 ? 300 : 150;
    const double dx = 1.0 / n, radius = what == 0 ? 0.12 : what == 1 ? 0.15 : 0.2, share = density / 1000;
    fsi_levelset_desc d = make_desc(n, n, dim == 3 ? n : 0, dx, G);
    fsi_levelset *s = make(&d);
    fsi_mesh *mesh = what == 0   ? make_block(0.503, 0.53, 0.18, radius, 0)
                     : what == 1 ? make_cylinder(0.503, 0.53, radius)
                                 : make_ball(v3(0.503, 0.498, 0.53), radius);
    fsi_body body = make_body(mesh, density);
    double level, want, mean = 0, under;
    int k;
    body.force = v3(0, dim == 2 ? -G * (double)body.mass : 0, dim == 3 ? -G * (double)body.mass : 0);
    add_solid(s, mesh, &body, 90);
    fill(s, dim == 2 ? box3(1, 0.5, 0) : box3(1, 1, 0.5));
    level = s->stats.volume + (double)body.mass / 1000;
    under = what == 0 ? 2 * share : 1 + depth_of_center(dim, share);
    want = level + radius * (1 - under);
    for (k = 0; k < steps; k++) {
        if (3 * k < 2 * steps) {
            damp(s, 0.97);
            body.velocity = fsi_v3_scale(body.velocity, (fsi_real)0.97);
            body.angular_velocity = fsi_v3_scale(body.angular_velocity, (fsi_real)0.97);
        } else mean += (double)(dim == 2 ? body.pose.position.y : body.pose.position.z) * 3 / steps;
        step(s, 0.01);
        fsi_body_integrate(&body, (fsi_real)0.01);
    }
    say(100 * (want - mean) / (under * radius), "%", "draft_%s_density_%g_%d_cells_error_of_draft", names[what],
        density, n);
    must((want - mean) / dx, 0, fmax(0.5, 0.03 * under * radius / dx), "dx", "draft_%s_density_%g_%d_cells_error",
         names[what], density, n);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(mesh);
}

static void run_draft(void)
{
    int k;
    for (k = 0; k < 2; k++) {
        draft(k, 250, 48);
        draft(k, 540, 48);
        draft(k, 800, 48);
    }
    draft(0, 540, 96);
    draft(1, 540, 96);
    draft(2, 250, 32);
    draft(2, 540, 32);
}

/* ---- contact angles ---------------------------------------------------------------------------------------------- */

/* The angle of a circular segment (3D: a spherical cap) of given volume and height [degrees]. */
static double cap_angle(int dim, double volume, double high)
{
    double lo = 0.05, hi = 3.1;
    int k;
    for (k = 0; k < 60; k++) {
        const double t = (lo + hi) / 2, c = 1 - cos(t),
                     v = dim == 2 ? (t - sin(t) * cos(t)) / (c * c) : FSI_PI * (3 - c) / (3 * c);
        if (v > volume / pow(high, dim)) lo = t;
        else hi = t;
    }
    return lo * 180 / FSI_PI;
}

/* tilt < 0: on the floor of the box; else on an obstacle that is tilted (2D). Slowed down until it rests. */
static void sessile(int dim, double want, double tilt)
{
    const int n = 32;
    const double up[2] = {tilt > 0 ? -sin(tilt) : 0, tilt > 0 ? cos(tilt) : 1},
                 foot[2] = {0.503, tilt < 0 ? 0 : 0.3537};
    fsi_levelset_desc d = make_desc(n, n, dim == 3 ? n : 0, 1.0 / n, 0);
    fsi_mesh *mesh = NULL;
    fsi_grid_surface *surface;
    fsi_levelset *s;
    double high = 0, dt;
    int k;
    d.density = d.surface_tension = 1;
    if (tilt < 0) d.contact_angle = (fsi_real)want;
    s = make(&d);
    if (tilt >= 0) {
        mesh = make_block(foot[0] - 0.5 * up[0], foot[1] - 0.5 * up[1], 0.9, 0.5, tilt);
        add_solid(s, mesh, NULL, want);
    }
    drop(s, v3(foot[0], foot[1], 0.49), 0.2, v3(0, 0, 0));
    dt = (double)fsi_levelset_suggest_dt(s);
    for (k = 0; k < 400; k++) {
        step(s, dt);
        damp(s, 0.93);
    }
    ex_check(&app, fsi_grid_surface_create(&surface, &app.context));
    ex_check(&app, fsi_grid_surface_update(surface, s->phi, 0));
    for (k = 0; k < surface->vertex_count; k++)
        high = fmax(high, ((double)surface->vertices[k].x - foot[0]) * up[0] +
                              ((double)surface->vertices[k].y - foot[1]) * up[1]);
    must(cap_angle(dim, s->stats.volume, high), want, 5, "degrees", "angle_%g_%dd_%s", want, dim,
         tilt < 0   ? "wall"
         : tilt > 0 ? "slope"
                    : "floor");
    fsi_grid_surface_destroy(surface);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(mesh);
}

static void run_angle(void)
{
    int k;
    for (k = 60; k <= 120; k += 30) {
        sessile(2, k, -1);
        sessile(2, k, 0);
        sessile(2, k, 0.3);
        sessile(3, k, -1);
    }
}

/* ---- a crown ----------------------------------------------------------------------------------------------------- */

#define CROWN_SECTORS 64

/* Height of the liquid over `rest` in the direction `angle` from (x, y), from 1.2 radii of the drop outwards: of its
   highest point [m]. */
static double rim_height(const fsi_levelset *s, double x, double y, double angle, double rest)
{
    const double h = (double)s->desc.dx / 4;
    double best = 0, r, z;
    int k;
    for (r = 1.2 * 0.003; r < 0.016; r += h / 2)
        for (z = 0.024; z > rest + best; z -= h) {
            double out = z, in = fmax(z - h, rest + best);
            if (!(fsi_levelset_phi_at(s, v3(x + r * cos(angle), y + r * sin(angle), in)) < 0)) continue;
            for (k = 0; k < 12; k++) {
                const double mid = (in + out) / 2;
                if (fsi_levelset_phi_at(s, v3(x + r * cos(angle), y + r * sin(angle), mid)) < 0) in = mid;
                else out = mid;
            }
            best = in - rest;
            break;
        }
    return best;
}

/* The scene of examples/drop_splash.c in frames of so many ms: mode 4 of the rim's height over its mean, largest in 30
   ms where that is over two cells. */
static void crown(int n, double frame)
{
    const double box = 0.04, x = 0.51 * box, y = 0.493 * box;
    fsi_levelset_desc d = make_desc(n, n, n, box / n, G);
    fsi_levelset *s;
    double most = 0, at = 0, rest;
    int k, f;
    d.surface_tension = (fsi_real)0.0728;
    d.cfl = (fsi_real)1.5;
    s = make(&d);
    fill(s, box3(box, box, 0.012));
    drop(s, v3(x, y, 0.0165), 0.003, v3(0, 0, -2.5));
    rest = s->stats.volume / (box * box);
    for (f = 1; f * frame < 30.5; f++) {
        double mean = 0, c = 0, t = 0;
        while (s->time < 1e-3 * f * frame - 1e-9)
            step(s, fmin((double)fsi_levelset_suggest_dt(s), 1e-3 * f * frame - s->time));
        for (k = 0; k < CROWN_SECTORS; k++) {
            const double angle = 2 * FSI_PI * (k + 0.5) / CROWN_SECTORS, h = rim_height(s, x, y, angle, rest);
            mean += h / CROWN_SECTORS;
            c += 2 * h * cos(4 * angle) / CROWN_SECTORS;
            t += 2 * h * sin(4 * angle) / CROWN_SECTORS;
        }
        if (mean > 2 * box / n && hypot(c, t) > most * mean) most = hypot(c, t) / mean, at = f * frame;
    }
    must(most, 0, 0.1, "1", "crown_%d_cells_frames_of_%g_ms_mode_4", n, frame);
    say(at, "ms", "crown_%d_cells_frames_of_%g_ms_mode_4_at", n, frame);
    fsi_levelset_destroy(s);
}

static void run_crown(void)
{
    static const int cells[6] = { 44, 48, 56, 60, 64, 88 };
    int k;
    for (k = 0; k < 6; k++) {
        crown(cells[k], 2);
        crown(cells[k], 1);
    }
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void);
    } parts[] = {{"derivatives", run_derivatives},
                 {"volume", run_volume},
                 {"transport", run_transport},
                 {"laplace", run_laplace},
                 {"modes", run_modes},
                 {"wave", run_wave},
                 {"rest", run_rest},
                 {"slosh", run_slosh},
                 {"ritter", run_ritter},
                 {"martin", run_martin},
                 {"draft", run_draft},
                 {"column", run_column},
                 {"added_mass", run_added_mass},
                 {"angle", run_angle},
                 {"crown", run_crown}};
    const int count = (int)(sizeof parts / sizeof parts[0]);
    const char *only = NULL;
    int k;
    ex_init(&app, "validate_levelset", "The level-set liquid against theory and experiment, and its volumes.");
    app.res = 100;
    app.res_help = "per cent of the full number of steps";
    app.threads = 1;
    app.out = "docs";
    ex_operand(&app, "part", &only,
               "derivatives, volume, transport, laplace, modes, wave, rest, slosh, ritter, martin, draft, column, "
               "added_mass, angle or crown; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    for (k = 0; k < count; k++) if (!only || strcmp(only, parts[k].name) == 0) parts[k].run();
    ex_pool_stop(&app.pool);
    return 0;
}
