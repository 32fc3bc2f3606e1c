/* test_pressure.c - the pressure of fsi_pressure.h against hydrostatics, manufactured solutions, dense elimination,
   added masses and momentum.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_pressure.h"
#include "kit/test_pressure.h"

/* ---- known solutions ------------------------------------------------------------------------------------------ */

/* Shares that mean nothing, in some of the faces below 0.5. */
static double share_noise(int axis, fsi_vec3 x, const double *arg)
{
    uint64_t seed = (uint64_t)(1e6 + 1e4 * (double)x.x) * 7919u + (uint64_t)(1e6 + 1e4 * (double)x.y) * 104729u +
                    (uint64_t)(1e6 + 1e4 * (double)x.z) * 31u + (uint64_t)axis;
    const double r = test_random(&seed), q = test_random(&seed);
    return (double)x.y < arg[0] && r < arg[1] ? q : 0;
}

/* Under gravity all velocities become 0, and p = rho g depth, whatever is cut away from the faces. */
static void test_water_at_rest_stays_at_rest(void)
{
    int dim, cut;
    for (dim = 2; dim <= 3; dim++) for (cut = 0; cut < 2; cut++) {
        const double level = 0.713, arg[2] = { 0.5, 0.7 }, g = 9.81;
        scene t;
        solid b;
        fsi_pressure_solid list;
        double worst = 0, speed = 0;
        int i, j, k, a;
        scene_make(&t, dim, 20, 24, 12, 1.0 / 24);
        scene_fill(&t, pool, &level);
        scene_velocity(&t, 1, -g * (double)t.f.dt);
        for (k = 0; k < t.g->n[2]; k++) for (i = 0; i < 20; i++) t.f.u[1]->value[entry_of(&t, i, 0, k)] = 0;
        solid_make(&b, &t, share_noise, arg);
        memset(&list, 0, sizeof list);
        list.faces = &b.f;
        t.f.solids = &list;
        t.f.solid_count = cut;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
        EACH_CELL(&t, i, j, k) {
            const size_t e = entry_of(&t, i, j, k);
            const double depth = level - (double)middle(&t, 0, i, j, k).y;
            int open = 0;
            for (a = 0; a < dim; a++)
                open = open || open_of(&t, a, e, NULL) > 0 ||
                       open_of(&t, a, entry_of(&t, i + (a == 0), j + (a == 1), k + (a == 2)), NULL) > 0;
            if (kind_at(&t, i, j, k) != FSI_CELL_LIQUID || !open) continue;
            worst = fmax(worst, fabs((double)t.f.pressure->value[e] - 1000 * g * depth));
            for (a = 0; a < dim; a++)
                if (open_of(&t, a, e, NULL) > 1e-3) speed = fmax(speed, fabs((double)t.f.u[a]->value[e]));
        }
        CHECK_NEAR(t.s->stats.pieces, 0, cut ? 3 : 0);
        if (t.s->stats.pieces == 0) CHECK_NEAR(worst / (1000 * g * level), 0, TOL(1e-8, 2e-4));
        CHECK_NEAR(speed / (g * (double)t.f.dt), 0, TOL(1e-7, 2e-3));
        solid_free(&b);
        scene_free(&t);
    }
}

/* p = sin(2x + 0.3) cos(1.5y) + 0.3 z^2 in a ball, with its values at the surface given: second order in the largest
   error. */
static double wave(fsi_vec3 x)
{
    return sin(2 * (double)x.x + 0.3) * cos(1.5 * (double)x.y) + 0.3 * (double)x.z * (double)x.z;
}
static double wave_slope(fsi_vec3 x, int a)
{
    if (a == 0) return 2 * cos(2 * (double)x.x + 0.3) * cos(1.5 * (double)x.y);
    return a == 1 ? -1.5 * sin(2 * (double)x.x + 0.3) * sin(1.5 * (double)x.y) : 0.6 * (double)x.z;
}

static double manufactured_error(int dim, int n)
{
    const double arg[4] = { 0.5, 0.5, dim == 3 ? 0.5 : 0, 0.4 };
    scene t;
    double worst = 0;
    int i, j, k, a;
    scene_make(&t, dim, n, n, n, 1.0 / n);
    scene_fill(&t, ball, arg);
    EACH_CELL(&t, i, j, k) t.surface->value[entry_of(&t, i, j, k)] = (fsi_real)wave(middle(&t, 0, i, j, k));
    for (a = 0; a < dim; a++) EACH_FACE(&t, a, i, j, k)
    t.f.u[a]->value[entry_of(&t, i, j, k)] =
        (fsi_real)((double)t.f.dt / 1000 * wave_slope(middle(&t, 1 + a, i, j, k), a));
    t.f.surface_pressure = t.surface;
    CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
    EACH_CELL(&t, i, j, k) {
        const size_t e = entry_of(&t, i, j, k);
        if (t.cell[e] == FSI_CELL_LIQUID)
            worst = fmax(worst, fabs((double)t.f.pressure->value[e] - wave(middle(&t, 0, i, j, k))));
        else CHECK(t.f.pressure->value[e] == 0);
    }
    scene_free(&t);
    return worst;
}

static void test_a_curved_surface_is_second_order(void)
{
    const double e16 = manufactured_error(2, 16), e64 = manufactured_error(2, 64), f16 = manufactured_error(3, 16),
                 f32 = manufactured_error(3, 40);
    CHECK(e64 < 2e-4 + TOL(0, 1e-4) && f32 < 5e-4 + TOL(0, 1e-4));
    CHECK(e16 / e64 > 11 - TOL(0, 5)); /* 16 for second order, 4 for first */
    CHECK(f16 / f32 > 4.4 - TOL(0, 2)); /* 6.25, 2.5 */
}

/* A drop at rest: p is the Laplace pressure, and nothing moves. */
static void test_laplace_pressure_does_not_stir_a_drop(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double arg[4] = { 0.47, 0.52, dim == 3 ? 0.49 : 0, 0.31 }, jump = 0.072 / 0.31 * (dim - 1);
        scene t;
        int i, j, k, a;
        double speed = 0;
        scene_make(&t, dim, 24, 24, 24, 1.0 / 24);
        scene_fill(&t, ball, arg);
        EACH_CELL(&t, i, j, k) t.surface->value[entry_of(&t, i, j, k)] = (fsi_real)jump;
        t.f.surface_pressure = t.surface;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
        EACH_CELL(&t, i, j, k) {
            const size_t e = entry_of(&t, i, j, k);
            if (t.cell[e] == FSI_CELL_LIQUID) CHECK_NEAR((double)t.f.pressure->value[e] / jump, 1, TOL(1e-8, 1e-4));
            for (a = 0; a < dim; a++) speed = fmax(speed, fabs((double)t.f.u[a]->value[e]));
        }
        CHECK_NEAR(speed / ((double)t.f.dt * jump / 1000 * 24), 0, TOL(1e-7, 1e-3));
        scene_free(&t);
    }
}

/* A film about a row of centres, 1/4 to 3/2 of a cell thick, and a pressure that rises across it. The difference at its
   surfaces moves it as a whole: with its mass, but at least with that of a cell; without weights, and as a ridge of
   hardly any weight. */
static void test_tension_moves_a_film_with_the_mass_of_a_cell_at_least(void)
{
    static const double thickness[4] = { 0.25, 0.9, 1.1, 1.5 };
    int dim, a, h;
    for (dim = 2; dim <= 3; dim++) for (a = 0; a < dim; a++) for (h = 0; h < 8; h++) {
        const int ridge = h / 4;
        const double dx = 0.1, push = 3, thick = thickness[h % 4], mass = fmax(1, thick) * 1000 * dx;
        fsi_field *weight;
        scene t;
        int i, j, k, side;
        scene_make(&t, dim, 9, 9, 9, dx);
        EACH_CELL(&t, i, j, k) {
            const size_t e = entry_of(&t, i, j, k);
            const int row = (a == 0 ? i : a == 1 ? j : k) - 4;
            t.phi->value[e] = (fsi_real)((abs(row) - thick / 2) * dx);
            t.cell[e] = row == 0 ? FSI_CELL_LIQUID : FSI_CELL_AIR;
            t.surface->value[e] = (fsi_real)(push * row);
        }
        CHECK(fsi_grid_add_field(t.g, FSI_CELLS, (fsi_real)1e-9, &weight) == FSI_OK);
        t.f.phi = t.phi;
        t.f.surface_pressure = t.surface;
        if (ridge) t.f.surface_weight = weight;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
        for (side = 4; side <= 5; side++)
            CHECK_NEAR((double)t.f.u[a]->value[entry_of(&t, a == 0 ? side : 5, a == 1 ? side : 5,
                       dim == 2 ? 0 : (a == 2 ? side : 5))] / (-(double)t.f.dt * thick * push / mass), 1,
                       TOL(1e-7, 1e-4));
        scene_free(&t);
    }
}

/* same_equations on another grid, or at another density: they are found anew. */
static void test_equations_of_others_are_not_kept(void)
{
    double got[3] = { 0, 0, 0 };
    scene t[3];
    int k, c, n, i, j, l;
    for (k = 0; k < 3; k++) { /* the last is as the second, and has a solver of its own */
        scene_make(&t[k], 2, k ? 9 : 30, k ? 9 : 30, 1, 0.1);
        n = t[k].g->n[0];
        EACH_CELL(&t[k], i, j, l) {
            const size_t e = entry_of(&t[k], i, j, l);
            c = j < n / 2 + (i < 3);
            t[k].phi->value[e] = (fsi_real)(c ? -0.05 : 0.05);
            t[k].cell[e] = c ? FSI_CELL_LIQUID : FSI_CELL_AIR;
            for (c = 0; c < 2; c++) t[k].f.u[c]->value[e] = 0;
            if (j > 0) t[k].f.u[1]->value[e] = (fsi_real)-0.1;
        }
        t[k].f.phi = t[k].phi;
    }
    CHECK(fsi_pressure_project(t[0].s, &t[0].f) == FSI_OK);
    t[1].f.same_equations = 1;
    CHECK(fsi_pressure_project(t[0].s, &t[1].f) == FSI_OK && fsi_pressure_project(t[2].s, &t[2].f) == FSI_OK);
    for (k = 1; k < 3; k++) got[k] = (double)t[k].f.pressure->value[entry_of(&t[k], 4, 1, 0)];
    CHECK(got[2] > 0);
    CHECK_NEAR(got[1], got[2], TOL(1e-9, 1e-4) * got[2]);
    for (k = 0; k < 3; k++) scene_free(&t[k]);
}

/* A rim whose corner makes a cell liquid by so little, and other pressures above and beside it. Both faces are at one
   place of the surface: of the difference there remains what the liquid between them, 2 theta cells of it, has. So the
   acceleration does not grow with 1/theta. */
static void test_tension_throws_nothing_out_of_a_corner(void)
{
    static const double wet[3] = { 0.02, 0.1, 0.3 };
    int h;
    for (h = 0; h < 3; h++) {
        const double dx = 0.1, push = 3, theta = wet[h] / (wet[h] + 0.5);
        fsi_field *weight;
        scene t;
        int i, j, k;
        double out[2];
        scene_make(&t, 2, 9, 9, 9, dx);
        CHECK(fsi_grid_add_field(t.g, FSI_CELLS, (fsi_real)1e-9, &weight) == FSI_OK);
        EACH_CELL(&t, i, j, k) {
            const size_t e = entry_of(&t, i, j, k);
            const int in = i <= 4 && j <= 4;
            t.phi->value[e] = (fsi_real)(dx * (in ? -wet[h] : 0.5));
            t.cell[e] = in ? FSI_CELL_LIQUID : FSI_CELL_AIR;
            t.surface->value[e] = (fsi_real)(j > 4 ? push : 0);
        }
        t.f.phi = t.phi;
        t.f.surface_pressure = t.surface;
        t.f.surface_weight = weight;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
        out[0] = (double)t.f.u[0]->value[entry_of(&t, 5, 4, 0)];
        out[1] = (double)t.f.u[1]->value[entry_of(&t, 4, 5, 0)];
        CHECK_NEAR((out[0] - out[1]) * 1000 * dx / ((double)t.f.dt * push), 2 * theta, TOL(1e-6, 1e-3));
        scene_free(&t);
    }
}

/* What flows in at a wall flows out at the open side across the box. */
static void test_inflow_passes_through(void)
{
    int dim, a;
    for (dim = 2; dim <= 3; dim++) for (a = 0; a < dim; a++) {
        scene t;
        int i, j, k;
        scene_make(&t, dim, 16, 12, 20, 0.1);
        for (k = 0; k < t.g->n[2]; k++) for (j = 0; j < 12; j++) for (i = 0; i < 16; i++)
            if ((a == 0 ? i : a == 1 ? j : k) == 0) t.f.u[a]->value[entry_of(&t, i, j, k)] = (fsi_real)1.5;
        t.f.open_side[2 * a + 1] = 1;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.pieces == 0);
        EACH_FACE(&t, a, i, j, k) CHECK_NEAR(t.f.u[a]->value[entry_of(&t, i, j, k)], 1.5, TOL(1e-7, 1e-3));
        /* p falls by rho dx v/dt a cell, to 0 at the side itself, half a cell beyond the last centre */
        CHECK_NEAR(t.f.pressure->value[entry_of(&t, a == 0 ? 15 : 3, a == 1 ? 11 : 3, a == 2 ? 19 : 0)],
                   0.5 * 1000 * 0.1 * 1.5 / (double)t.f.dt, TOL(1e-3, 2.0));
        scene_free(&t);
    }
}

/* ---- pieces --------------------------------------------------------------------------------------------------- */

/* Two closed chambers, into one of which flows more than can leave: the rest is spread over its cells and told. */
static void test_closed_pieces_lose_their_net_inflow(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        scene t;
        int i, j, k;
        const double dx = 0.125, depth = dim == 3 ? 8 * dx : 1;
        double sum = 0;
        scene_make(&t, dim, 17, 9, 8, dx);
        for (k = 0; k < t.g->n[2]; k++) for (j = 0; j < 9; j++) t.cell[entry_of(&t, 8, j, k)] = FSI_CELL_SOLID;
        for (k = 0; k < t.g->n[2]; k++) for (j = 0; j < 9; j++) {
            t.f.u[0]->value[entry_of(&t, 0, j, k)] = (fsi_real)0.7;
            t.f.u[0]->value[entry_of(&t, 12, j, k)] = (fsi_real)sin(j + 0.3 * k);
        }
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
        CHECK(t.s->stats.pieces == 2 && t.s->stats.enclosed == 0 && t.s->stats.unknowns == 16 * 9 * (dim == 3 ? 8 : 1));
        CHECK_NEAR(t.s->stats.removed, 0.7 * 9 * dx * depth, TOL(1e-12, 1e-5));
        CHECK_NEAR(divergence_of(&t), 0.7 / (8 * dx), TOL(1e-7, 1e-4));
        for (k = 0; k < t.g->n[2]; k++)
            for (j = 0; j < 9; j++)
                for (i = 9; i < 17; i++) sum += (double)t.f.pressure->value[entry_of(&t, i, j, k)];
        CHECK_NEAR(sum / 1000, 0, TOL(1e-7, 1e-1));
        scene_free(&t);
    }
}

static void test_enclosed_cells_are_counted(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        scene t;
        const double level = 0.9;
        int a, k;
        scene_make(&t, dim, 12, 12, 12, 1.0 / 12);
        scene_fill(&t, pool, &level);
        k = dim == 3 ? 5 : 0;
        for (a = 0; a < 2 * dim; a++) {
            const int s = a & 1 ? 1 : -1;
            t.cell[entry_of(&t, 5 + (a / 2 == 0 ? s : 0), 5 + (a / 2 == 1 ? s : 0), k + (a / 2 == 2 ? s : 0))] =
                FSI_CELL_SOLID;
        }
        scene_velocity(&t, 1, -0.1);
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
        CHECK(t.s->stats.enclosed == 1 && t.s->stats.pieces == 0 && t.f.pressure->value[entry_of(&t, 5, 5, k)] == 0);
        scene_free(&t);
    }
}

/* ---- dense elimination ---------------------------------------------------------------------------------------- */

/* The system that the declarations describe, by the letter: cells are rows, dense. Row r has n coefficients and the
   right hand side. label: -1: no unknown, 1: its piece knows a pressure, 0: it does not. */
typedef struct dense {
    const scene *t;
    int n, *label;
    double *a;
} dense;

static int dense_row(const dense *m, int i, int j, int k)
{
    return (k * m->t->g->n[1] + j) * m->t->g->n[0] + i;
}

/* Row r, the cell (i, j, k), gets what side d of it says. */
static void dense_add_side(dense *m, int r, int i, int j, int k, int d)
{
    const scene *t = m->t;
    const int ax = d / 2, s = d & 1, ni = i + (ax == 0 ? 2 * s - 1 : 0), nj = j + (ax == 1 ? 2 * s - 1 : 0),
              nk = k + (ax == 2 ? 2 * s - 1 : 0), kind = kind_at(t, ni, nj, nk);
    const size_t here = entry_of(t, i, j, k),
                 face = s ? entry_of(t, i + (ax == 0), j + (ax == 1), k + (ax == 2)) : here;
    const double dx = (double)t->g->dx, dt = (double)t->f.dt;
    double *row = m->a + r * (m->n + 1), flux, theta = 1, beyond = 0, coefficient;
    const double open = open_of(t, ax, face, &flux),
                 beta = t->f.inverse_density[0] ? (double)t->beta[ax]->value[face] : 1 / (double)t->f.density;

    /* what flows out there now */
    row[m->n] -= (s ? 1 : -1) * (open * (double)t->f.u[ax]->value[face] + flux) / dx;
    if (open == 0 || kind == FSI_CELL_SOLID || (kind < 0 && !t->f.open_side[d])) return;

    /* where the surface is, and the pressure there */
    if (kind < 0) theta = 0.5;
    if (kind == FSI_CELL_AIR) {
        const size_t there = entry_of(t, ni, nj, nk);
        const double in = fmin((double)t->phi->value[here], -(double)t->f.theta_min * dx),
                     out = (double)t->phi->value[there];
        theta = fmax(in / (in - out), (double)t->f.theta_min);
        if (t->f.surface_pressure)
            beyond = (1 - theta) * (double)t->surface->value[here] + theta * (double)t->surface->value[there];
    }
    coefficient = dt / (dx * dx) * open * beta / theta;
    row[r] += coefficient;
    if (kind == FSI_CELL_LIQUID) row[dense_row(m, ni, nj, nk)] -= coefficient;
    else row[m->n] += coefficient * beyond, m->label[r] = 1;
}

/* All cells. Returns 0 when some piece knows no pressure. */
static int dense_cells(dense *m)
{
    const int n = m->n, wide = n + 1;
    int i, j, k, d, r, c, changed = 1, regular = 1;
    EACH_CELL(m->t, i, j, k)
        m->label[dense_row(m, i, j, k)] = kind_at(m->t, i, j, k) == FSI_CELL_LIQUID ? 0 : -1;
    EACH_CELL(m->t, i, j, k) {
        r = dense_row(m, i, j, k);
        for (d = 0; d < 2 * m->t->g->dim && m->label[r] >= 0; d++) dense_add_side(m, r, i, j, k, d);
        if (m->label[r] >= 0 && m->t->f.source)
            m->a[r * wide + n] += (double)m->t->f.source->value[entry_of(m->t, i, j, k)];
    }

    /* no unknown: p = 0; pieces know a pressure together */
    for (r = 0; r < n; r++)
        if (m->label[r] < 0 || m->a[r * wide + r] == 0)
            m->a[r * wide + r] = 1, m->a[r * wide + n] = 0, m->label[r] = -1;
    while (changed) for (r = changed = 0; r < n; r++) for (c = 0; c < n; c++)
        if (r != c && m->a[r * wide + c] < 0 && m->label[r] != m->label[c]) m->label[r] = m->label[c] = 1, changed = 1;
    for (r = 0; r < n; r++) regular = regular && m->label[r] != 0;
    return regular;
}

/* What all solids together cover of the face with this entry. */
static double dense_closed(const scene *t, int axis, int entry)
{
    double closed = 0;
    int k, m;
    for (k = 0; k < t->f.solid_count; k++) {
        const fsi_grid_faces *faces = t->f.solids[k].faces;
        for (m = faces->first[axis]; m < faces->first[axis + 1]; m++)
            if (faces->entry[m] == entry) closed += (double)faces->solid[m];
    }
    return closed;
}

/* The force and moment by a pressure of 1 in the cells beside face f of a solid: 6 numbers a cell. */
static void dense_push(const dense *m, const fsi_pressure_solid *s, int axis, int f, double *force)
{
    const scene *t = m->t;
    const fsi_grid *g = t->g;
    const int e = s->faces->entry[f] % g->block_cells;
    const double closed = dense_closed(t, axis, s->faces->entry[f]), dx = (double)g->dx;
    const double area = g->dim == 3 ? dx * dx : dx;
    int at[3], side;
    fsi_vec3 moment;
    fsi_grid_corner(g, s->faces->entry[f] / g->block_cells, at);
    at[0] += e & 7, at[1] += e >> 3 & 7, at[2] += e >> 6;
    moment = fsi_v3_cross(fsi_v3_sub(middle(t, 1 + axis, at[0], at[1], at[2]), s->center),
                          fsi_v3(axis == 0, axis == 1, axis == 2));
    for (side = 0; side < 2; side++) {
        const int i = at[0] - (side && axis == 0), j = at[1] - (side && axis == 1), k = at[2] - (side && axis == 2);
        const double push = (side ? 1 : -1) * (double)s->faces->solid[f] / fmax(closed, 1) * area;
        double *own;
        if (kind_at(t, i, j, k) != FSI_CELL_LIQUID || m->label[dense_row(m, i, j, k)] < 0) continue;
        own = force + 6 * dense_row(m, i, j, k);
        own[axis] += push;
        if (g->dim == 3) own[3] += push * (double)moment.x, own[4] += push * (double)moment.y;
        own[5] += push * (double)moment.z;
    }
}

/* K = J^T M^-1 J dt/volume of a coupled solid. */
static void dense_add_solid(dense *m, const fsi_pressure_solid *s)
{
    const fsi_grid *g = m->t->g;
    const int n = m->n;
    const double share = (double)m->t->f.dt / pow((double)g->dx, g->dim);
    double *force = (double *)calloc((size_t)(6 * n), sizeof(double));
    int d, f, k, r, c;
    for (d = 0; d < g->dim; d++)
        for (f = s->faces->first[d]; f < s->faces->first[d + 1]; f++) dense_push(m, s, d, f, force);
    for (r = 0; r < n; r++) for (c = 0; c < n; c++) {
        double sum = 0;
        for (d = 0; d < 3; d++) {
            sum += force[6 * r + d] * force[6 * c + d] / s->mass;
            for (k = 0; k < 3; k++)
                sum += force[6 * r + 3 + d] * (double)s->inverse_inertia.m[3 * d + k] * force[6 * c + 3 + k];
        }
        m->a[r * (n + 1) + c] += share * sum;
    }
    free(force);
}

/* Pressures of all cells. Returns 0 when the matrix would be singular. */
static int dense_pressure(const scene *t, double *p)
{
    dense m;
    int b, r, regular;
    m.t = t;
    m.n = t->g->n[0] * t->g->n[1] * t->g->n[2];
    m.a = (double *)calloc((size_t)(m.n * (m.n + 1)), sizeof(double));
    m.label = (int *)malloc(sizeof(int) * (size_t)m.n);
    regular = dense_cells(&m);
    for (b = 0; b < t->f.solid_count && regular; b++)
        if (t->f.solids[b].coupled) dense_add_solid(&m, &t->f.solids[b]);
    if (regular) eliminate(m.a, m.n);
    for (r = 0; r < m.n; r++) p[r] = m.a[r * (m.n + 1) + m.n];
    free(m.a);
    free(m.label);
    return regular;
}

/* A random small configuration of everything. */
static int check_against_dense(int dim, int round)
{
    uint64_t seed = (uint64_t)(round * 2 + dim);
    const int nx = dim == 3 ? 4 : 6 + round % 4, ny = dim == 3 ? 5 : 9, nz = 4;
    const double first[2] = { 9, 0.1 + 0.2 * test_random(&seed) }, second[2] = { (ny - 2) * 0.1, 0.2 };
    fsi_pressure_solid list[3];
    solid b[3];
    scene t;
    fsi_field *source;
    double p[200], most = 0, worst = 0;
    fsi_real *velocity;
    int i, j, k, a, regular;
    scene_make(&t, dim, nx, ny, nz, 0.1);
    EACH_CELL(&t, i, j, k) {
        const size_t e = entry_of(&t, i, j, k);
        const double r = test_random(&seed);
        t.cell[e] = (unsigned char)(j > ny - 3 || r < 0.08 ? FSI_CELL_AIR
                                    : r < 0.15             ? FSI_CELL_SOLID
                                                           : FSI_CELL_LIQUID);
        t.phi->value[e] = (fsi_real)((t.cell[e] == FSI_CELL_LIQUID ? -0.1 : 0.1) * test_random(&seed));
        t.surface->value[e] = (fsi_real)(100 * test_random(&seed));
    }
    for (a = 0; a < dim; a++) {
        CHECK(fsi_grid_add_field(t.g, (fsi_grid_place)(1 + a), 1, &t.beta[a]) == FSI_OK);
        EACH_FACE(&t, a, i, j, k) {
            t.f.u[a]->value[entry_of(&t, i, j, k)] = (fsi_real)(test_random(&seed) - 0.5);
            t.beta[a]->value[entry_of(&t, i, j, k)] = (fsi_real)(test_random(&seed) < 0.5 ? 1e-3 : 0.8);
        }
        if (round % 2) t.f.inverse_density[a] = t.beta[a];
    }
    for (a = 0; a < 2 * dim; a++) t.f.open_side[a] = test_random(&seed) < 0.4;
    CHECK(fsi_grid_add_field(t.g, FSI_CELLS, 0, &source) == FSI_OK);
    EACH_CELL(&t, i, j, k) source->value[entry_of(&t, i, j, k)] = (fsi_real)(0.2 * test_random(&seed) - 0.1);
    if (round % 5 < 2) t.f.source = source;
    t.f.phi = t.phi;
    t.f.surface_pressure = round % 3 ? t.surface : NULL;
    solid_make(b, &t, share_noise, first), solid_make(b + 1, &t, share_noise, second),
        solid_make(b + 2, &t, share_noise, first);
    for (k = 0; k < 3; k++) {
        list[k] = body_of(b + k, fsi_v3((fsi_real)0.2, (fsi_real)0.3, (fsi_real)(dim == 3 ? 0.1 * k : 0)),
                          k == 2 ? 0.02 : 3.0, k == 2 ? 2e-3 : 0.2);
        list[k].inverse_inertia.m[1] = list[k].inverse_inertia.m[3] =
            (fsi_real)(0.3 * (double)list[k].inverse_inertia.m[0]);
        list[k].linear = fsi_v3((fsi_real)0.1, (fsi_real)-0.2, (fsi_real)(dim == 3 ? 0.3 : 0));
        list[k].angular = fsi_v3(0, 0, (fsi_real)0.5);
    }
    velocity = (fsi_real *)malloc(sizeof(fsi_real) * (size_t)(b[0].f.count + 1));
    for (k = 0; k < b[0].f.count; k++) velocity[k] = (fsi_real)(test_random(&seed) - 0.5);
    list[0].coupled = 0;
    list[0].velocity = velocity;
    t.f.solids = list;
    t.f.solid_count = round % 4;
    regular = dense_pressure(&t, p);
    CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
    EACH_CELL(&t, i, j, k) {
        const int r = (k * ny + j) * nx + i;
        most = fmax(most, fabs(p[r]));
        worst = fmax(worst, fabs(p[r] - (double)t.f.pressure->value[entry_of(&t, i, j, k)]));
    }
    if (regular) {
        CHECK_NEAR(worst / (most + 1e-9), 0, TOL(1e-7, 5e-3));
        if (t.s->stats.enclosed == 0)
            CHECK_NEAR(divergence_of(&t), t.s->stats.divergence, TOL(1e-8, 1e-2) + 0.1 * t.s->stats.divergence);
    }
    free(velocity);
    for (k = 0; k < 3; k++) solid_free(b + k);
    scene_free(&t);
    return regular;
}

static void test_random_configurations_match_dense_elimination(void)
{
    int round, regular = 0;
    for (round = 0; round < 24; round++) regular += check_against_dense(2, round) + check_against_dense(3, round);
    CHECK(regular > 20);
}

/* In a pool with a free surface every cell keeps the divergence that it is given, and the surface rises by their sum; a
   closed box cannot rise: it keeps what is left when the mean is taken away. */
static void test_sources_stay(void)
{
    int dim, closed, i, j, k;
    for (dim = 2; dim <= 3; dim++) for (closed = 0; closed < 2; closed++) {
        const double top[1] = { closed ? 99 : 17.3 }, wide = 24;
        double sum = 0, rise = 0, mean;
        uint64_t seed = 5;
        fsi_field *source;
        scene t;
        scene_make(&t, dim, (int)wide, 24, dim == 3 ? 24 : 1, 1);
        scene_fill(&t, pool, top);
        CHECK(fsi_grid_add_field(t.g, FSI_CELLS, 0, &source) == FSI_OK);
        EACH_CELL(&t, i, j, k) {
            const double q = test_random(&seed) - 0.3;
            if (kind_at(&t, i, j, k) != FSI_CELL_LIQUID) continue;
            source->value[entry_of(&t, i, j, k)] = (fsi_real)q;
            sum += q;
        }
        t.f.source = source;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.pieces == closed);
        if (closed) {
            mean = sum / (double)t.s->stats.unknowns;
            CHECK_NEAR(t.s->stats.removed / sum, 1, TOL(1e-12, 1e-5));
            EACH_CELL(&t, i, j, k) source->value[entry_of(&t, i, j, k)] -= (fsi_real)mean;
        } else {
            for (k = 0; k < t.g->n[2]; k++) for (i = 0; i < t.g->n[0]; i++)
                rise += (double)t.f.u[1]->value[entry_of(&t, i, 17, k)] -
                    (double)t.f.u[1]->value[entry_of(&t, i, 0, k)];
            CHECK_NEAR(rise / sum, 1, TOL(1e-8, 1e-4));
        }
        CHECK_NEAR(divergence_of(&t), 0, TOL(1e-8, 1e-4));
        source->value[entry_of(&t, 5, 5, 0)] = (fsi_real)test_nan();
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_ERROR_NAN);
        scene_free(&t);
    }
}

/* ---- lists of faces ------------------------------------------------------------------------------------------- */

/* A list that is set works as what it was copied from; a refused one leaves it as it was. */
static void test_lists_of_faces_are_copied_and_checked(void)
{
    const double at[6] = { 6, 6, 6, 3.3, 1, 3 }, flat[6] = { 6, 6, 0, 3.3, 1, 2 };
    fsi_real velocity[2000], *share;
    fsi_grid_faces *faces;
    fsi_pressure_solid body;
    fsi_context bad = fsi_default_context();
    solid b;
    scene t, two;
    int first[4], e, k;
    double impulse[2] = { 0, 0 };
    scene_make(&t, 3, 12, 12, 12, 1);
    scene_make(&two, 2, 12, 12, 1, 1);
    t.f.open_side[3] = 1;
    solid_make(&b, &t, share_ball, at);
    CHECK(b.f.count > 100 && b.f.count < 2000);
    CHECK(fsi_grid_faces_create(&faces, &t.c) == FSI_OK && faces->count == 0);
    CHECK(fsi_grid_faces_set(faces, t.g, b.f.first, b.entry, b.share) == FSI_OK && faces->count == b.f.count);
    CHECK(faces->entry != b.entry && memcmp(faces->first, b.f.first, sizeof b.f.first) == 0);
    for (k = 0; k < b.f.count; k++) velocity[k] = (fsi_real)0.1;
    memset(&body, 0, sizeof body);
    body.velocity = velocity;
    t.f.solids = &body;
    t.f.solid_count = 1;
    for (k = 0; k < 2; k++) {
        body.faces = k ? faces : &b.f;
        scene_velocity(&t, 0, 0), scene_velocity(&t, 1, 0), scene_velocity(&t, 2, 0);
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
        if (k) CHECK(body.impulse.x == (fsi_real)impulse[0] && body.impulse.y == (fsi_real)impulse[1]);
        impulse[0] = (double)body.impulse.x, impulse[1] = (double)body.impulse.y;
    }

    /* refused */
    memcpy(first, b.f.first, sizeof first);
    share = b.share;
    CHECK(fsi_grid_faces_set(NULL, t.g, first, b.entry, share) == FSI_ERROR_COOKIE);
    CHECK(fsi_grid_faces_set(faces, NULL, first, b.entry, share) == FSI_ERROR_COOKIE);
    CHECK(fsi_grid_faces_set(faces, t.g, NULL, b.entry, share) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_grid_faces_set(faces, t.g, first, NULL, share) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_grid_faces_set(faces, t.g, first, b.entry, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_grid_faces_set(faces, two.g, first, b.entry, share) == FSI_ERROR_ARGUMENT);
    first[1] = first[2] + 1, CHECK(fsi_grid_faces_set(faces, t.g, first, b.entry, share) == FSI_ERROR_ARGUMENT);
    CHECK(t.c.error.element == 1), first[1] = b.f.first[1];
    e = b.entry[7], b.entry[7] = 1 << 28;
    CHECK(fsi_grid_faces_set(faces, t.g, first, b.entry, share) == FSI_ERROR_ARGUMENT && t.c.error.element == 7);
    b.entry[7] = e, share[9] = (fsi_real)1.5;
    CHECK(fsi_grid_faces_set(faces, t.g, first, b.entry, share) == FSI_ERROR_ARGUMENT && t.c.error.element == 9);
    share[9] = (fsi_real)test_nan();
    CHECK(fsi_grid_faces_set(faces, t.g, first, b.entry, share) == FSI_ERROR_NAN && t.c.error.element == 9);
    CHECK(faces->count == b.f.count && faces->entry[7] == e && faces->solid[9] <= 1);
    memset(first, 0, sizeof first);
    CHECK(fsi_grid_faces_set(faces, t.g, first, NULL, NULL) == FSI_OK && faces->count == 0);

    /* in 2D; each allocation fails in turn */
    solid_free(&b);
    solid_make(&b, &two, share_ball, flat);
    CHECK(fsi_grid_faces_set(faces, two.g, b.f.first, b.entry, b.share) == FSI_OK && faces->count == b.f.count);
    fsi_grid_faces_destroy(faces);
    for (k = 1; k < 5; k++) {
        test_fail_allocator(&bad, k);
        if (!CHECK((fsi_grid_faces_create(&faces, &bad) == FSI_OK) == (k > 1)) || k == 1) continue;
        CHECK(fsi_grid_faces_set(faces, two.g, b.f.first, b.entry, b.share) == (k > 3 ? FSI_OK : FSI_ERROR_MEMORY));
        CHECK(faces->count == (k > 3 ? b.f.count : 0));
        fsi_grid_faces_destroy(faces);
        CHECK(test_live_bytes() == 0);
    }
    solid_free(&b);
    scene_free(&two);
    scene_free(&t);
}

/* ---- bodies --------------------------------------------------------------------------------------------------- */

/* A disc or ball of `cells` cells a diameter and density ratio d in a closed box of water `wide` diameters wide:
   acceleration over g when both are let go. */
static double released(int dim, int cells, int wide, double d, int *iters)
{
    const int n = cells * wide;
    const double dx = 1.0 / cells, at = 0.5 * wide + 0.21 * dx, g = 9.81;
    const double arg[6] = { at, at + 0.1 * dx, dim == 3 ? at - 0.3 * dx : 0, 0.5, dx, (double)dim };
    const double volume = dim == 3 ? FSI_PI / 6 : FSI_PI / 4, mass = fmax(d, 1e-9) * 1000 * volume;
    scene t;
    solid b;
    fsi_pressure_solid body;
    double a;
    int i, j, k;
    scene_make(&t, dim, n, n, n, dx);
    t.s->desc.tolerance = 1e-6;
    solid_make(&b, &t, share_ball, arg);
    body = body_of(&b, fsi_v3((fsi_real)arg[0], (fsi_real)arg[1], (fsi_real)arg[2]), mass, mass * 0.1);
    EACH_FACE(&t, 1, i, j, k)
    t.f.u[1]->value[entry_of(&t, i, j, k)] = (fsi_real)(j == 0 || j == n ? 0 : -g * (double)t.f.dt);
    body.linear.y = (fsi_real)(-g * (double)t.f.dt);
    t.f.solids = &body;
    t.f.solid_count = 1;
    CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.pieces == 1 && t.s->stats.removed < TOL(1e-10, 1e-3));
    if (d > 0)
        CHECK_NEAR(body.linear.y, -g * (double)t.f.dt + (double)body.impulse.y / mass,
                   TOL(1e-9, 1e-4) * (1 + fabs((double)body.linear.y)));
    a = (double)body.linear.y / ((double)t.f.dt * g);
    *iters = t.s->stats.iters;
    solid_free(&b);
    scene_free(&t);
    return a;
}

/* a/g = (1 - D)/(D + C); C is 1 and 1/2 far from walls, a little more in a box (in a shell of ratio k: (k^d + 1)/(k^d -
   1) and half of (k^3 + 2)/(k^3 - 1)). */
static void test_added_mass_on_release_from_rest(void)
{
    static const double ratio[5] = { 0, 0.01, 0.5, 2, 8 };
    int k, iters;
    for (k = 0; k < 5; k++) {
        const double d = ratio[k], c = 1, s = 0.5 * (64.0 + 2) / (64.0 - 1);
        CHECK_NEAR(released(2, 16, 10, d, &iters) / ((1 - d) / (d + c)), 1, 0.05);
        CHECK(iters <= 16);
        if (k % 2 == 0) CHECK_NEAR(released(3, 16, 4, d, &iters) / ((1 - d) / (d + s)), 1, 0.05);
        CHECK(iters <= 16);
    }
}

/* A ball of no mass whatever rises as one of 1e-6 of the liquid's does. The torques on its faces cancel, and its
   inertia is nothing. */
static void test_balls_of_no_mass_rise(void)
{
    static const double ratio[5] = { 1e-6, 1e-10, 1e-13, 1e-20, 1e-80 };
    int dim, k, i, j, l, place;
    for (dim = 2; dim <= 3; dim++) for (place = 0; place < 4; place++) {
        double first = 0;
        for (k = 0; k < 5; k++) {
            const int n = 16 + 8 * (place & 1);
            const double at = 0.5 + 0.013 * place, r = 0.2 + 0.02 * place,
                         arg[6] = {at, at, dim == 3 ? at : 0, r, 1.0 / n, (double)dim};
            const double mass = ratio[k] * 1000 * (dim == 3 ? 4 * FSI_PI / 3 * r * r * r : FSI_PI * r * r);
            scene t;
            solid b;
            fsi_pressure_solid body;
            scene_make(&t, dim, n, n, n, 1.0 / n);
            t.s->desc.tolerance = TOL(1e-8, 1e-6);
            solid_make(&b, &t, share_ball, arg);
            body = body_of(&b, fsi_v3((fsi_real)arg[0], (fsi_real)arg[1], (fsi_real)arg[2]), mass,
                           fmax(0.4 * mass * r * r, TOL(0, 1e-30)));
            EACH_FACE(&t, 1, i, j, l)
            t.f.u[1]->value[entry_of(&t, i, j, l)] = (fsi_real)(j == 0 || j == n ? 0 : -0.0981);
            body.linear.y = (fsi_real)-0.0981;
            t.f.solids = &body;
            t.f.solid_count = 1;
            CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.iters <= 16);
            if (k == 0) first = (double)body.linear.y;
            CHECK_NEAR((double)body.linear.y / first, 1, TOL(1e-3, 1e-2));
            CHECK(first > 0.05);
            solid_free(&b);
            scene_free(&t);
        }
    }
}

/* Water at rest pushes a body that is held up by the weight of the water in its voxels' place. */
static void test_buoyancy_is_the_weight_of_what_is_displaced(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double level = 0.9, dx = 1.0 / 24, arg[6] = {0.51, 0.45, dim == 3 ? 0.48 : 0, 0.27, dx, (double)dim},
                     g = 9.81;
        scene t;
        solid b;
        fsi_pressure_solid body;
        double volume = 0, moment = 0;
        int i, k, f;
        scene_make(&t, dim, 24, 24, 24, dx);
        scene_fill(&t, pool, &level);
        scene_velocity(&t, 1, -g * (double)t.f.dt);
        for (k = 0; k < t.g->n[2]; k++) for (i = 0; i < 24; i++) t.f.u[1]->value[entry_of(&t, i, 0, k)] = 0;
        solid_make(&b, &t, share_ball, arg);
        memset(&body, 0, sizeof body);
        body.faces = &b.f;
        body.center = fsi_v3((fsi_real)0.3, (fsi_real)0.2, (fsi_real)(dim == 3 ? 0.1 : 0));
        t.f.solids = &body;
        t.f.solid_count = 1;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.enclosed > 10);
        for (f = b.f.first[1]; f < b.f.first[2]; f++) {
            const int c = b.entry[f] % t.g->block_cells;
            int at[3];
            fsi_grid_corner(t.g, b.entry[f] / t.g->block_cells, at);
            volume += (double)b.share[f] * pow(dx, dim);
            moment += (double)b.share[f] * pow(dx, dim) * ((double)middle(&t, 2, at[0] + (c & 7), 0, 0).x - 0.3);
        }
        CHECK_NEAR(volume, dim == 3 ? 4 * FSI_PI / 3 * pow(0.27, 3) : FSI_PI * 0.27 * 0.27, 0.02 * volume);
        CHECK_NEAR((double)body.impulse.y / (double)t.f.dt, 1000 * g * volume, 1000 * g * volume * TOL(1e-7, 1e-3));
        CHECK_NEAR((double)body.impulse.x / (double)t.f.dt, 0, 1000 * g * volume * TOL(1e-7, 1e-3));
        CHECK_NEAR((double)body.angular_impulse.z / (double)t.f.dt, 1000 * g * moment,
                   1000 * g * volume * TOL(1e-7, 1e-3));
        solid_free(&b);
        scene_free(&t);
    }
}

/* A plate across the tank, all but closed, that has let go of the liquid below it and bears what is above. Fixed: both
   rest, the lower one with pressure 0 at the plate. Coupled, of mass M under a mass m: it falls with m at g m/(m + M),
   and the plate's impulse is what m loses. */
static double share_plate(int axis, fsi_vec3 x, const double *arg)
{
    return axis == 1 && fabs((double)x.y - arg[0]) < 1e-3 ? arg[1] : 0;
}

static void test_a_plate_lets_go_of_one_side(void)
{
    int dim, coupled, i, j, k;
    for (dim = 2; dim <= 3; dim++) for (coupled = 0; coupled < 2; coupled++) {
        const double dx = 1.0 / 16, g = 9.81, level = 0.83, arg[2] = { 0.5, 0.9995 };
        const double m = 1000 * (level - 0.5 - dx / 2), mass = 200; /* half a cell at the plate goes with it */
        double below = 0, above = 0, fall = coupled ? g * m / (m + mass) : 0;
        unsigned char *let_go;
        scene t;
        solid b;
        fsi_pressure_solid list;
        scene_make(&t, dim, 16, 16, 16, dx);
        scene_fill(&t, pool, &level);
        scene_velocity(&t, 1, -g * (double)t.f.dt);
        for (k = 0; k < t.g->n[2]; k++) for (i = 0; i < 16; i++) t.f.u[1]->value[entry_of(&t, i, 0, k)] = 0;
        solid_make(&b, &t, share_plate, arg);
        memset(&list, 0, sizeof list);
        list.faces = &b.f;
        if (coupled) list = body_of(&b, fsi_v3((fsi_real)0.5, (fsi_real)0.5, dim == 3 ? (fsi_real)0.5 : 0), mass, 1e3);
        let_go = (unsigned char *)calloc(entries(&t), 1);
        for (i = 0; i < b.f.count; i++) let_go[b.f.entry[i]] = 1 << 4; /* axis y, of the cell below */
        t.f.solids = &list;
        t.f.solid_count = 1;
        t.f.let_go = let_go;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.pieces == 0);
        EACH_CELL(&t, i, j, k) {
            const size_t e = entry_of(&t, i, j, k);
            const double y = (double)middle(&t, 0, i, j, k).y, p = (double)t.f.pressure->value[e] / (1000 * g);
            if (t.cell[e] != FSI_CELL_LIQUID) continue;
            if (y < 0.5) below = fmax(below, fabs(p - (0.5 - y)));
            else above = fmax(above, fabs(p - (1 - fall / g) * (level - y)));
        }
        CHECK(below < TOL(1e-7, 1e-3) && above < 1e-3);
        CHECK_NEAR((double)list.impulse.y, -(coupled ? mass * fall : g * m) * (double)t.f.dt,
                   2e-3 * 1000 * g * (double)t.f.dt);
        if (coupled) CHECK_NEAR((double)list.linear.y, -fall * (double)t.f.dt, 1e-3 * g * (double)t.f.dt);
        free(let_go);
        solid_free(&b);
        scene_free(&t);
    }
}

/* A drop with two bodies in it: what the bodies gain the liquid loses. */
static void test_liquid_and_bodies_keep_their_momentum(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double dx = 1.0 / 24, drop[4] = { 0.5, 0.5, dim == 3 ? 0.5 : 0, 0.43 };
        const double one[6] = {0.4, 0.45, dim == 3 ? 0.5 : 0, 0.12, dx, (double)dim},
                     two[6] = {0.65, 0.55, dim == 3 ? 0.45 : 0, 0.1, dx, (double)dim};
        scene t;
        solid b[2];
        fsi_pressure_solid list[2];
        fsi_real *before[3];
        int i, j, k, a;
        scene_make(&t, dim, 24, 24, 24, dx);
        scene_fill(&t, ball, drop);
        solid_make(b, &t, share_ball, one);
        solid_make(b + 1, &t, share_ball, two);
        list[0] = body_of(b, fsi_v3((fsi_real)one[0], (fsi_real)one[1], (fsi_real)one[2]), 0.02, 1e-4);
        list[1] = body_of(b + 1, fsi_v3((fsi_real)two[0], (fsi_real)two[1], (fsi_real)two[2]), 90, 1);
        list[0].linear = fsi_v3(1, 0, 0), list[1].linear = fsi_v3((fsi_real)-0.5, (fsi_real)0.5, 0),
        list[1].angular.z = 3;
        for (a = 0; a < dim; a++) {
            before[a] = (fsi_real *)malloc(entries(&t) * sizeof(fsi_real));
            EACH_FACE(&t, a, i, j, k)
            t.f.u[a]->value[entry_of(&t, i, j, k)] = (fsi_real)sin(7.0 * i + 3 * j * a + 2 * k);
            memcpy(before[a], t.f.u[a]->value, entries(&t) * sizeof(fsi_real));
        }
        t.f.solids = list;
        t.f.solid_count = 2;
        {
            const fsi_vec3 v0 = list[0].linear, v1 = list[1].linear;
            CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.iters <= 30);
            CHECK_NEAR(divergence_of(&t), t.s->stats.divergence, TOL(1e-7, 1e-1));
            for (a = 0; a < dim; a++) {
                const fsi_vec3 p = fsi_v3_add(fsi_v3_scale(fsi_v3_sub(list[0].linear, v0), (fsi_real)list[0].mass),
                                              fsi_v3_scale(fsi_v3_sub(list[1].linear, v1), (fsi_real)list[1].mass));
                const double gained = (double)(a == 0 ? p.x : a == 1 ? p.y : p.z);
                double lost = 0, moved = 0;
                EACH_FACE(&t, a, i, j, k) {
                    const size_t e = entry_of(&t, i, j, k);
                    const int here = kind_at(&t, i, j, k),
                              below = kind_at(&t, i - (a == 0), j - (a == 1), k - (a == 2));
                    double theta = 1, m;
                    if (here != FSI_CELL_LIQUID && below != FSI_CELL_LIQUID) continue;
                    if (here != below) {
                        const double p0 = (double)t.phi->value[e],
                                     p1 = (double)t.phi->value[entry_of(&t, i - (a == 0), j - (a == 1), k - (a == 2))],
                                     in = fmin(fmin(p0, p1), -0.01 * dx), out = fmax(p0, p1);
                        theta = fmax(in / (in - out), 0.01);
                    }
                    m = 1000 * pow(dx, dim) * theta * open_of(&t, a, e, NULL) *
                        (double)(t.f.u[a]->value[e] - before[a][e]);
                    lost -= m;
                    moved += fabs(m);
                }
                CHECK_NEAR(gained, lost, moved * TOL(2e-7, 1e-4));
            }
        }
        for (a = 0; a < dim; a++) free(before[a]);
        solid_free(b), solid_free(b + 1);
        scene_free(&t);
    }
}

/* A piston, free to move, between two chambers of a closed channel and with a push from one wall: water, piston and
   what leaves move as one. */
static double share_piston(int axis, fsi_vec3 x, const double *arg)
{
    (void)axis;
    return fabs((double)x.x - arg[0]) < arg[1] ? 1 : 0;
}

static void test_a_piston_moves_with_the_water(void)
{
    int dim, open;
    for (dim = 2; dim <= 3; dim++) for (open = 0; open < 2; open++) {
        const double arg[2] = { 1.05, 0.11 };
        scene t;
        solid b;
        fsi_pressure_solid body;
        int i, j, k;
        scene_make(&t, dim, 20, 8, 6, 0.1);
        solid_make(&b, &t, share_piston, arg);
        body = body_of(&b, fsi_v3((fsi_real)1.05, (fsi_real)0.4, (fsi_real)(dim == 3 ? 0.3 : 0)), 5, 1);
        body.inverse_inertia = fsi_m3_scale(body.inverse_inertia, 0);
        for (k = 0; k < t.g->n[2]; k++) for (j = 0; j < 8; j++) {
            t.f.u[0]->value[entry_of(&t, 0, j, k)] = 1;
            t.f.u[0]->value[entry_of(&t, 20, j, k)] = 1;
        }
        body.linear.x = (fsi_real)(open ? 0 : -3);
        t.f.open_side[1] = (unsigned char)open;
        t.f.solids = &body;
        t.f.solid_count = 1;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.pieces == !open && t.s->stats.iters < 20);
        CHECK_NEAR(body.linear.x, 1, TOL(1e-7, 1e-3));
        for (i = 0; i < 20; i++) CHECK_NEAR(t.f.u[0]->value[entry_of(&t, i, 3, 0)], 1, TOL(1e-7, 1e-3));
        if (!open) { /* a wall that pushes in alone has nowhere to push to */
            for (k = 0; k < t.g->n[2]; k++) for (j = 0; j < 8; j++) t.f.u[0]->value[entry_of(&t, 20, j, k)] = 0;
            CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
            CHECK_NEAR(t.s->stats.removed, dim == 3 ? 0.48 : 0.8, TOL(1e-9, 1e-4));
        }
        solid_free(&b);
        scene_free(&t);
    }
}

/* ---- convergence ---------------------------------------------------------------------------------------------- */

static double ball_and_pool(fsi_vec3 x, const double *arg)
{
    const double center[4] = { 0.5, 0.6, arg[0] > 2.5 ? 0.5 : 0, 0.35 };
    return fmin(ball(x, center), (double)x.y - 0.25);
}
static double sheet(fsi_vec3 x, const double *arg)
{
    return fabs((double)x.y - 0.5 - 0.3 * sin(5 * (double)x.x) * cos(4 * (double)x.z)) - arg[1];
}
static double droplets(fsi_vec3 x, const double *arg)
{
    uint64_t seed = 5;
    double most = 1;
    int k;
    for (k = 0; k < (int)arg[2]; k++) {
        double drop[4];
        drop[0] = test_random(&seed), drop[1] = test_random(&seed), drop[2] = arg[0] > 2.5 ? test_random(&seed) : 0,
        drop[3] = (1 + 2 * test_random(&seed)) * arg[1];
        most = fmin(most, ball(x, drop));
    }
    return most;
}
static double channel(fsi_vec3 x, const double *arg) { return (double)x.y - 5.3 * arg[1]; }
static double share_bowl(int axis, fsi_vec3 x, const double *arg)
{
    const double v = share_ball(axis, x, arg);
    return 1 - v;
}

/* Iterations to 1e-6 from a rough velocity. */
static int iterations(int dim, int nx, int ny, int nz, double (*phi)(fsi_vec3 x, const double *arg), double drops,
                      int heavy)
{
    const double dx = 1.0 / ny, arg[3] = {(double)dim, dx, drops},
                 bowl[6] = {0.5, 0.5, dim == 3 ? 0.5 : 0, 0.47, dx, (double)dim};
    scene t;
    solid b;
    fsi_pressure_solid list;
    uint64_t seed = 3;
    int i, j, k, a, iters;
    scene_make(&t, dim, nx, ny, nz, dx);
    t.s->desc.tolerance = 1e-6;
    scene_fill(&t, phi, arg);
    for (a = 0; a < dim; a++) {
        CHECK(fsi_grid_add_field(t.g, (fsi_grid_place)(1 + a), 1, &t.beta[a]) == FSI_OK);
        EACH_FACE(&t, a, i, j, k) {
            const fsi_vec3 x = middle(&t, 1 + a, i, j, k);
            const int at = a == 0 ? i : a == 1 ? j : k;
            const double share = fmin(fmax(phi(x, arg) / dx + 0.5, 0), 1);
            t.f.u[a]->value[entry_of(&t, i, j, k)] =
                (fsi_real)(at == 0 || at == t.g->n[a]
                               ? 0
                               : sin(3 * (double)x.x + a) * cos(2 * (double)x.y) + 0.2 * test_random(&seed));
            t.beta[a]->value[entry_of(&t, i, j, k)] = (fsi_real)(1 / (1000 * (1 - share) + share));
        }
        if (heavy == 1) t.f.inverse_density[a] = t.beta[a];
    }
    if (heavy == 1) EACH_CELL(&t, i, j, k) t.cell[entry_of(&t, i, j, k)] = FSI_CELL_LIQUID;
    memset(&list, 0, sizeof list);
    solid_make(&b, &t, share_bowl, bowl);
    list.faces = &b.f;
    t.f.solids = &list;
    t.f.solid_count = heavy == 2;
    CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
    iters = t.s->stats.iters;
    solid_free(&b);
    scene_free(&t);
    return iters;
}

static void test_few_iterations_whatever_the_shape(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const int n = dim == 3 ? 40 : 128;
        CHECK(iterations(dim, n, n, n, ball_and_pool, 0, 0) <= 12);
        CHECK(iterations(dim, n, n, n, sheet, 0, 0) <= 12);
        CHECK(iterations(dim, n, n, n, droplets, 60, 0) <= 12);
        CHECK(iterations(dim, 512, 8, 8, channel, 0, 0) <= 12);
        CHECK(iterations(dim, 8, 256, 8, channel, 0, 0) <= 12);
        CHECK(iterations(dim, n, n, n, ball_and_pool, 0, 1) <= 12);
        CHECK(iterations(dim, n, n, n, ball_and_pool, 0, 2) <= 13);
    }
}

/* Coefficients are kept where densities differ, not where liquid is of that which most of it has, be the others lighter
   or heavier: so memory is nearly that of one density. The equations are those of all, as the divergence left shows. */
static void test_a_part_of_another_density_costs_its_own_memory(void)
{
    int dim, kind, a, i, j, k;
    for (dim = 2; dim <= 3; dim++) {
        static const double density[3] = { 1000, 300, 4000 }; /* of the part */
        double bytes[3];
        for (kind = 0; kind < 3; kind++) {
            const int n = dim == 3 ? 32 : 64;
            const double level = 0.7;
            scene t;
            scene_make(&t, dim, 3 * n, n, n, 1.0 / n);
            scene_fill(&t, pool, &level);
            scene_velocity(&t, 1, -0.3);
            for (a = 0; a < dim; a++) {
                CHECK(fsi_grid_add_field(t.g, (fsi_grid_place)(1 + a), 1, &t.beta[a]) == FSI_OK);
                EACH_FACE(&t, a, i, j, k) {
                    const fsi_vec3 x = middle(&t, 1 + a, i, j, k);
                    const int in = (double)x.x < 0.2 && (double)x.y < 0.3;
                    t.beta[a]->value[entry_of(&t, i, j, k)] = (fsi_real)(1 / (in ? density[kind] : 1000));
                }
                t.f.inverse_density[a] = t.beta[a];
            }
            CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.iters <= 12);
            CHECK(divergence_of(&t) < TOL(1e-5, 1e-3));
            bytes[kind] = (double)t.s->stats.bytes;
            scene_free(&t);
        }
        for (kind = 1; kind < 3; kind++) CHECK_NEAR(bytes[kind] / bytes[0], 1, 0.06);
    }
}

/* A slab of one cell's thickness across the middle, as wide as two thirds of the box. */
static double share_slab(int axis, fsi_vec3 x, const double *arg)
{
    const double at[3] = { (double)x.x, (double)x.y, (double)x.z }, half[3] = { 1.0 / 3, 0.6 * arg[4], 1.0 / 3 };
    int a, in = 1;
    for (a = 0; a < 3; a++) in &= fabs(at[a] - 0.5) < half[a] + (a == axis ? 0 : 0.01 * arg[4]);
    return in ? 0.999 : 0;
}

static void count_calls(void *user, int count, void (*task)(void *arg, int index), void *arg)
{
    int k;
    ++*(int *)user;
    for (k = 0; k < count; k++) task(arg, k);
}

/* A body of `ratio` times the liquid's density is let go in a pool, or held up where that is 0. Returns the steps;
   *calls: how often its projection had work for threads. */
static int steps_with_body(double (*share)(int axis, fsi_vec3 x, const double *arg), double ratio, double volume,
                           int *calls)
{
    const int n = 48; /* else the loops of a cycle are too little for threads */
    const double dx = 1.0 / n, arg[6] = { 0.51, 0.48, 0.5, 0.2, dx, 3 }, level[1] = { 0.75 };
    scene t;
    solid b;
    fsi_pressure_solid body;
    int i, j, k, steps;
    scene_make(&t, 3, n, n, n, dx);
    scene_fill(&t, pool, level);
    t.c.parallel_for = count_calls;
    t.c.user = calls;
    t.s->desc.tolerance = 1e-6;
    solid_make(&b, &t, share, arg);
    body = body_of(&b, fsi_v3((fsi_real)0.5, (fsi_real)0.5, (fsi_real)0.5), fmax(ratio, 1e-9) * 1000 * volume,
                   fmax(ratio, 1e-9) * 1000 * volume * 0.03);
    body.coupled = ratio > 0;
    EACH_FACE(&t, 1, i, j, k) t.f.u[1]->value[entry_of(&t, i, j, k)] = (fsi_real)(j == 0 || j == n ? 0 : -0.1);
    t.f.solids = &body;
    t.f.solid_count = 1;
    *calls = 0;
    CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
    steps = t.s->stats.iters;
    solid_free(&b);
    scene_free(&t);
    return steps;
}

/* A step with a body costs one cycle, as without. Before the first one a light body costs six, a heavy one none. */
static void test_bodies_cost_few_cycles(void)
{
    static const double ratio[3] = { 1e-3, 0.05, 3 };
    int k, shape;
    for (shape = 0; shape < 2; shape++) {
        const double volume = shape ? 4.0 / 9 / 48 : 4.19 * 0.008;
        int held, calls;
        const int steps = steps_with_body(shape ? share_slab : share_ball, 0, volume, &held);
        for (k = 0; k < 3; k++) {
            const int n = steps_with_body(shape ? share_slab : share_ball, ratio[k], volume, &calls);
            CHECK(n <= steps + 6);
            CHECK(calls * (double)steps < 1.2 * held * (n + (k < 2 ? 6 : 0)));
        }
    }
}

/* So many that what their rows do to the liquid is not kept. */
static void test_many_light_bodies_rise(void)
{
    const double dx = 1.0 / 24;
    scene t;
    solid b[5];
    fsi_pressure_solid list[5];
    int i, j, k, n;
    scene_make(&t, 3, 24, 24, 24, dx);
    t.s->desc.tolerance = 1e-6;
    for (n = 0; n < 5; n++) {
        const double arg[6] = { 0.2 + 0.15 * n, n % 2 ? 0.3 : 0.7, 0.51, 0.1, dx, 3 };
        solid_make(b + n, &t, share_ball, arg);
        list[n] = body_of(b + n, fsi_v3((fsi_real)arg[0], (fsi_real)arg[1], (fsi_real)arg[2]), 0.0419, 1.7e-4);
        list[n].linear.y = (fsi_real)-0.1;
    }
    EACH_FACE(&t, 1, i, j, k) t.f.u[1]->value[entry_of(&t, i, j, k)] = (fsi_real)(j == 0 || j == 24 ? 0 : -0.1);
    t.f.solids = list;
    t.f.solid_count = 5;
    CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.iters <= 16);
    /* (1 - D)/(D + 1/2), less for their neighbours and walls */
    for (n = 0; n < 5; n++) CHECK_NEAR((double)list[n].linear.y / 0.2, 1, 0.2);
    for (n = 0; n < 5; n++) solid_free(b + n);
    scene_free(&t);
}

/* ---- promises ------------------------------------------------------------------------------------------------- */

/* A scene with everything in it: pool, ball, a solid that moves, a body, and a rough velocity. */
typedef struct busy { scene t; fsi_pressure_flow f; solid b[2]; fsi_pressure_solid list[2]; } busy;

static void busy_make(busy *m, int dim)
{
    const int n = dim == 3 ? 32 : 128;
    const double dx = 1.0 / n, arg[3] = {(double)dim, dx, 0},
                 bowl[6] = {0.5, 0.5, dim == 3 ? 0.5 : 0, 0.47, dx, (double)dim},
                 body[6] = {0.5, 0.55, dim == 3 ? 0.5 : 0, 0.13, dx, (double)dim};
    scene *t = &m->t;
    uint64_t seed = 9;
    int i, j, k, a;
    scene_make(t, dim, n, n, n, dx);
    scene_fill(t, ball_and_pool, arg);
    for (a = 0; a < dim; a++)
        EACH_FACE(t, a, i, j, k) t->f.u[a]->value[entry_of(t, i, j, k)] = (fsi_real)(test_random(&seed) - 0.5);
    solid_make(m->b, t, share_bowl, bowl);
    solid_make(m->b + 1, t, share_ball, body);
    memset(m->list, 0, sizeof m->list);
    m->list[0].faces = &m->b[0].f;
    m->list[1] =
        body_of(m->b + 1, fsi_v3((fsi_real)body[0], (fsi_real)body[1], (fsi_real)body[2]), dim == 3 ? 2 : 20, 0.1);
    m->list[1].linear.y = -1;
    t->f.solids = m->list;
    t->f.solid_count = 2;
    m->f = t->f;
    t->s->desc.tolerance = 1e-6;
}

static void busy_free(busy *m)
{
    solid_free(m->b), solid_free(m->b + 1);
    scene_free(&m->t);
}

/* All that a projection writes. */
static uint64_t busy_hash(const busy *m)
{
    uint64_t h = fsi_hash(m->f.pressure->value, entries(&m->t) * sizeof(fsi_real), 1);
    int a;
    for (a = 0; a < m->t.g->dim; a++) h = fsi_hash(m->f.u[a]->value, entries(&m->t) * sizeof(fsi_real), h);
    for (a = 0; a < 2; a++) {
        h = fsi_hash(&m->list[a].linear, 2 * sizeof(fsi_vec3), h);
        h = fsi_hash(&m->list[a].impulse, 2 * sizeof(fsi_vec3), h);
    }
    return h;
}

static void test_threads_do_not_change_a_bit(void)
{
    static const int threads[4] = { 0, 1, 2, 5 };
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t h[4];
        for (k = 0; k < 4; k++) {
            busy m;
            busy_make(&m, dim);
            if (threads[k]) test_threads(&m.t.c, threads[k], threads[k] > 1);
            CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_OK && m.t.s->stats.iters > 2);
            h[k] = busy_hash(&m);
            busy_free(&m);
        }
        CHECK(h[0] == h[1] && h[0] == h[2] && h[0] == h[3]);
    }
}

/* The solver was used for something larger before: no trace of it is left. */
static void test_the_past_leaves_no_trace(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        busy m, n;
        scene t;
        int i, j, k;
        busy_make(&m, dim), busy_make(&n, dim);
        scene_make(&t, dim, 56, 40, 24, 0.02);
        EACH_CELL(&t, i, j, k) t.f.u[0]->value[entry_of(&t, i, j, k)] = (fsi_real)((i * j + k) % 7);
        t.f.open_side[3] = 1;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && fsi_pressure_project(n.t.s, &n.t.f) == FSI_OK);
        t.s->desc.tolerance = 1e-6;
        CHECK(fsi_pressure_project(t.s, &m.t.f) == FSI_OK);
        CHECK(busy_hash(&m) == busy_hash(&n) && t.s->stats.iters == n.t.s->stats.iters);
        busy_free(&m), busy_free(&n);
        scene_free(&t);
    }
}

/* A pool that drains: each projection lays its numbers elsewhere over those of the last one, and is still that of a new
   solver. */
static void test_a_shrinking_pool_is_solved_as_if_it_were_the_first(void)
{
    int dim, round, k, a, i, j;
    for (dim = 2; dim <= 3; dim++) {
        const int n = dim == 3 ? 24 : 96;
        scene t, fresh;
        scene_make(&t, dim, n, n, n, 1.0 / n);
        for (round = 0; round < 12; round++) {
            const double level = 0.95 - 0.07 * round;
            scene *both[2];
            both[0] = &t, both[1] = &fresh;
            scene_make(&fresh, dim, n, n, n, 1.0 / n);
            for (k = 0; k < 2; k++) {
                uint64_t seed = (uint64_t)round + 5;
                int l;
                scene_fill(both[k], pool, &level);
                for (a = 0; a < dim; a++)
                    EACH_FACE(both[k], a, i, j, l)
                    both[k]->f.u[a]->value[entry_of(both[k], i, j, l)] = (fsi_real)(test_random(&seed) - 0.5);
                CHECK(fsi_pressure_project(both[k]->s, &both[k]->f) == FSI_OK);
            }
            CHECK(t.s->stats.iters == fresh.s->stats.iters);
            CHECK(memcmp(t.f.pressure->value, fresh.f.pressure->value, entries(&t) * sizeof(fsi_real)) == 0);
            scene_free(&fresh);
        }
        scene_free(&t);
    }
}

/* Only the blocks around a drop exist: the same pressure as with all of them, and no more memory in a larger box. */
static void test_memory_follows_the_liquid(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        size_t bytes[2];
        double p[2];
        for (k = 0; k < 2; k++) {
            const double dx = 1.0 / 32, arg[4] = { 0.5, 0.5, dim == 3 ? 0.5 : 0, 0.2 };
            const int n = k ? 160 : 32;
            scene t;
            unsigned char *wanted;
            int b, places, x, y, z;
            scene_make(&t, dim, n, n, n, dx);
            places = t.g->blocks[0] * t.g->blocks[1] * t.g->blocks[2];
            wanted = (unsigned char *)calloc((size_t)places, 1);
            for (b = 0; b < places; b++) {
                x = b % t.g->blocks[0], y = b / t.g->blocks[0] % t.g->blocks[1],
                z = b / t.g->blocks[0] / t.g->blocks[1];
                wanted[b] = x < 4 && y < 4 && z < 4;
            }
            CHECK(fsi_grid_set_blocks(t.g, wanted) == FSI_OK);
            for (b = 0; b < t.g->block_count * t.g->block_cells; b++) {
                const int c = b % t.g->block_cells;
                int at[3];
                fsi_grid_corner(t.g, b / t.g->block_cells, at);
                t.phi->value[b] =
                    (fsi_real)ball(middle(&t, 0, at[0] + (c & 7), at[1] + (c >> 3 & 7), at[2] + (c >> 6)), arg);
                t.cell[b] = t.phi->value[b] < 0 ? FSI_CELL_LIQUID : FSI_CELL_AIR;
                t.f.u[0]->value[b] = (fsi_real)(at[0] + (c & 7));
            }
            t.f.phi = t.phi;
            CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
            bytes[k] = t.s->stats.bytes;
            p[k] = (double)t.f.pressure->value[entry_of(&t, 15, 15, dim == 3 ? 15 : 0)];
            free(wanted);
            scene_free(&t);
        }
        CHECK(bytes[0] == bytes[1] && fabs(p[0]) > 100 && p[0] == p[1]);
    }
}

/* Liquid up to the border of what exists: beyond it is air, and the velocities there are the background's. */
static void test_missing_blocks_are_air(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        scene t, s;
        unsigned char wanted[27];
        double worst = 0;
        int i, j, k, b;
        scene_make(&t, dim, 16, 16, 16, 0.1);
        scene_make(&s, dim, 16, 16, 16, 0.1);
        for (b = 0; b < 27; b++) wanted[b] = b % 3 == 0;
        EACH_CELL(&s, i, j, k) if (i >= 8) s.cell[entry_of(&s, i, j, k)] = FSI_CELL_AIR;
        EACH_FACE(&s, 1, i, j, k)
        s.f.u[1]->value[entry_of(&s, i, j, k)] = (fsi_real)(j > 0 && j < 16 && i < 8 ? j % 3 : 0);
        EACH_FACE(&t, 1, i, j, k) t.f.u[1]->value[entry_of(&t, i, j, k)] = (fsi_real)(j > 0 && j < 16 ? j % 3 : 0);
        CHECK(fsi_grid_set_blocks(t.g, wanted) == FSI_OK);
        for (b = 0; b < t.g->block_count * t.g->block_cells; b++) {
            int at[3];
            const int c = b % t.g->block_cells;
            fsi_grid_corner(t.g, b / t.g->block_cells, at);
            t.cell[b] = at[1] + (c >> 3 & 7) < 16 && at[2] + (c >> 6) < t.g->n[2] ? FSI_CELL_LIQUID : FSI_CELL_AIR;
        }
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && fsi_pressure_project(s.s, &s.f) == FSI_OK &&
              t.s->stats.unknowns == s.s->stats.unknowns);
        for (k = 0; k < t.g->n[2]; k++) for (j = 0; j < 16; j++) for (i = 0; i < 8; i++) {
            const size_t e = entry_of(&t, i, j, k), f = entry_of(&s, i, j, k);
            worst = fmax(worst, fabs((double)(t.f.pressure->value[e] - s.f.pressure->value[f])) +
                                    fabs((double)(t.f.u[1]->value[e] - s.f.u[1]->value[f])));
        }
        CHECK(worst == 0);
        scene_free(&t), scene_free(&s);
    }
}

static void test_a_second_projection_reaches_the_divergence_of_the_first(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        busy m;
        double divergence;
        busy_make(&m, dim);
        m.t.s->desc.tolerance = 1e-4;
        CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_OK);
        divergence = m.t.s->stats.divergence;
        CHECK(divergence > 0 && m.t.s->stats.residual <= 1e-4);
        if (dim == 2 || !TEST_SLOWED) CHECK_NEAR(divergence_of(&m.t), divergence, 0.01 * divergence + TOL(1e-9, 1e-3));
        m.t.s->desc.absolute = divergence * (1 + TOL(1e-6, 1e-1));
        CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_OK && m.t.s->stats.iters == 0);
        busy_free(&m);
    }
}

static void test_a_good_guess_needs_no_iteration(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        scene t, s;
        const double level = 0.713;
        int iters, i, j, k;
        scene_make(&t, dim, 20, 24, 12, 1.0 / 24);
        scene_make(&s, dim, 20, 24, 12, 1.0 / 24);
        scene_fill(&t, pool, &level), scene_fill(&s, pool, &level);
        EACH_FACE(&t, 1, i, j, k)
        t.f.u[1]->value[entry_of(&t, i, j, k)] = s.f.u[1]->value[entry_of(&s, i, j, k)] =
            (fsi_real)(j ? sin(i + 2.0 * j) : 0);
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
        iters = t.s->stats.iters;
        memcpy(s.f.pressure->value, t.f.pressure->value, entries(&t) * sizeof(fsi_real));
        s.f.use_guess = 1;
        s.s->desc.tolerance *= 10;
        CHECK(fsi_pressure_project(s.s, &s.f) == FSI_OK && s.s->stats.iters <= TOL(0, 1) && iters > 3);
        scene_free(&t), scene_free(&s);
    }
}

/* Velocities and a source of pseudorandom numbers. */
static void stir(scene *t, fsi_field *source, unsigned seed)
{
    size_t e;
    int i, j, k, a;
    srand(seed);
    for (a = 0; a < t->g->dim; a++) EACH_FACE(t, a, i, j, k)
        t->f.u[a]->value[entry_of(t, i, j, k)] = (fsi_real)((double)rand() / RAND_MAX - 0.5);
    for (e = 0; e < entries(t); e++) source->value[e] = (fsi_real)((double)rand() / RAND_MAX - 0.5);
    t->f.source = source;
}

static int same_answer(const scene *s, const scene *t)
{
    const size_t bytes = entries(t) * sizeof(fsi_real);
    const fsi_pressure_stats *p = &s->s->stats, *q = &t->s->stats;
    int a, same = memcmp(s->f.pressure->value, t->f.pressure->value, bytes) == 0;
    for (a = 0; a < t->g->dim; a++) same = same && memcmp(s->f.u[a]->value, t->f.u[a]->value, bytes) == 0;
    return same && p->unknowns == q->unknowns && p->enclosed == q->enclosed && p->pieces == q->pieces
        && p->iters == q->iters && !memcmp(&p->removed, &q->removed, sizeof p->removed);
}

/* To the last bit; in a pool with a surface and in a closed one, of one density and of several, with liquid that may
   leave a wall; with surface pressures the flag is not read. */
static void test_equations_that_are_kept_give_the_same_answer(void)
{
    int dim, kind;
    for (dim = 2; dim <= 3; dim++) for (kind = 0; kind < 8; kind++) {
        const double level = kind & 1 ? 2 : 0.713;
        fsi_field *source[2];
        scene t[2];
        unsigned char *let_go;
        size_t e;
        int n, i, j, k, a;
        for (n = 0; n < 2; n++) {
            scene_make(&t[n], dim, 20, 24, 12, 1.0 / 24);
            CHECK(fsi_grid_add_field(t[n].g, FSI_CELLS, 0, &source[n]) == FSI_OK);
            scene_fill(&t[n], pool, &level);
            for (a = 0; a < dim && kind & 2; a++) {
                CHECK(fsi_grid_add_field(t[n].g, (fsi_grid_place)(1 + a), (fsi_real)1e-3, &t[n].beta[a]) == FSI_OK);
                EACH_FACE(&t[n], a, i, j, k)
                t[n].beta[a]->value[entry_of(&t[n], i, j, k)] = (fsi_real)(1e-3 / (1 + (i > 10) + 0.5 * (j > 9)));
                t[n].f.inverse_density[a] = t[n].beta[a];
            }
            if (kind & 4) t[n].f.surface_pressure = t[n].surface;
        }
        let_go = (unsigned char *)calloc(entries(&t[0]), 1);
        for (e = 0; e < entries(&t[0]) && kind == 2; e++) let_go[e] = e % 5 == 0;
        t[0].f.let_go = t[1].f.let_go = let_go;

        /* The first of both keeps what the other one finds anew. */
        stir(&t[0], source[0], 1);
        CHECK(fsi_pressure_project(t[0].s, &t[0].f) == FSI_OK);
        for (n = 2; n < 4; n++) {
            stir(&t[0], source[0], (unsigned)n), stir(&t[1], source[1], (unsigned)n);
            memcpy(t[1].f.pressure->value, t[0].f.pressure->value, entries(&t[0]) * sizeof(fsi_real));
            t[0].f.use_guess = t[1].f.use_guess = n == 3;
            t[0].f.same_equations = 1;
            CHECK(fsi_pressure_project(t[0].s, &t[0].f) == FSI_OK && fsi_pressure_project(t[1].s, &t[1].f) == FSI_OK);
            CHECK(same_answer(&t[0], &t[1]));
        }
        free(let_go);
        scene_free(&t[0]), scene_free(&t[1]);
    }
}

/* What was right a step ago is not in water that has come to rest: nothing but 0 is. */
static void test_a_guess_that_is_worse_than_none_is_dropped(void)
{
    int dim, closed, a;
    for (dim = 2; dim <= 3; dim++) for (closed = 0; closed < 2; closed++) {
        scene t;
        const double level = closed ? 2 : 0.713;
        size_t e;
        double most = 0;
        scene_make(&t, dim, 20, 24, 12, 1.0 / 24);
        scene_fill(&t, pool, &level);
        for (e = 0; e < entries(&t); e++) t.f.pressure->value[e] = (fsi_real)(1e5 + 1e3 * (double)(e % 77));
        t.f.use_guess = 1;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.iters == 0);
        for (e = 0; e < entries(&t); e++) {
            most = fmax(most, fabs((double)t.f.pressure->value[e]));
            for (a = 0; a < dim; a++) most = fmax(most, fabs((double)t.f.u[a]->value[e]));
        }
        CHECK(most == 0);
        scene_free(&t);
    }
}

static void test_failure_is_told_and_changes_nothing(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        busy m;
        uint64_t before;
        busy_make(&m, dim);
        before = busy_hash(&m);
        m.t.s->desc.max_iters = 2;
        CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_ERROR_CONVERGENCE && m.t.s->stats.iters == 2 &&
              strstr(m.t.c.error.message, "2 iterations"));
        CHECK(busy_hash(&m) == before);
        m.t.s->desc.max_iters = 200;
        m.t.s->desc.tolerance = 0;
        CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_ERROR_CONVERGENCE && busy_hash(&m) == before);
        busy_free(&m);
    }
}

static void test_every_allocation_may_fail(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        fsi_status status = FSI_ERROR_MEMORY;
        busy m;
        fsi_pressure *first;
        uint64_t before;
        long k;
        busy_make(&m, dim);
        before = busy_hash(&m);
        first = m.t.s;
        for (k = 1; status == FSI_ERROR_MEMORY && k < 100; k++) {
            fsi_context c = fsi_default_context();
            fsi_pressure_desc d = fsi_pressure_default_desc();
            fsi_pressure *s = NULL;
            d.context = &c;
            d.tolerance = 1e-5;
            test_fail_allocator(&c, k);
            status = fsi_pressure_create(&s, &d);
            CHECK((status == FSI_OK) == (s != NULL));
            if (status == FSI_OK) status = fsi_pressure_project(s, &m.t.f);
            CHECK(status == FSI_OK || (c.error.status == FSI_ERROR_MEMORY && busy_hash(&m) == before));
            if (status == FSI_OK) { /* a second call allocates nothing */
                const long long allocs = c.allocs;
                CHECK(fsi_pressure_project(s, &m.t.f) == FSI_OK && c.allocs == allocs);
            }
            fsi_pressure_destroy(s);
            CHECK(test_live_bytes() == 0);
        }
        CHECK(status == FSI_OK && k > 12);
        m.t.s = first;
        busy_free(&m);
    }
}

static void refused(busy *m, fsi_status status, const char *what)
{
    const uint64_t before = busy_hash(m);
    if (!CHECK(fsi_pressure_project(m->t.s, &m->t.f) == status)) printf("   it is about %s\n", what);
    if (!CHECK(what == NULL || strstr(m->t.c.error.message, what) != NULL))
        printf("   \"%s\", want \"%s\"\n", m->t.c.error.message, what);
    CHECK(busy_hash(m) == before);
}

/* Above the surface too, and in blocks that do not exist. */
static void test_densities_beyond_the_surface_must_be_given(void)
{
    static const double bad[3] = { -1e-3, 0, 1e-3 };
    int k, a, i, j, l;
    for (k = 0; k < 6; k++) {
        scene t;
        const double level = k < 3 ? 0.713 : 16.0 / 24; /* 16 rows: the block above the surface is not needed */
        unsigned char wanted[256];
        scene_make(&t, 3, 24, 24, 24, 1.0 / 24);
        for (a = 0; a < 3; a++) {
            CHECK(fsi_grid_add_field(t.g, (fsi_grid_place)(1 + a), (fsi_real)(k < 3 ? 1e-3 : bad[k - 3]), &t.beta[a]) ==
                  FSI_OK);
            EACH_FACE(&t, a, i, j, l)
            t.beta[a]->value[entry_of(&t, i, j, l)] = (fsi_real)(k < 3 && a == 1 && j == 17 ? bad[k] : 1e-3);
            t.f.inverse_density[a] = t.beta[a];
        }
        for (i = 0; i < 64 && k >= 3; i++) wanted[i] = i / 4 % 4 < 2;
        if (k >= 3) CHECK(t.g->blocks[0] == 4 && t.g->blocks[2] == 4 && fsi_grid_set_blocks(t.g, wanted) == FSI_OK);
        memset(t.cell, 0, entries(&t));
        EACH_CELL(&t, i, j, l) if (fsi_grid_entry(t.g, i, j, l) >= 0) {
            const size_t e = entry_of(&t, i, j, l);
            t.phi->value[e] = (fsi_real)((double)middle(&t, 0, i, j, l).y - level);
            t.cell[e] = t.phi->value[e] < 0 ? FSI_CELL_LIQUID : FSI_CELL_AIR;
        }
        t.f.phi = t.phi;
        CHECK(fsi_pressure_project(t.s, &t.f) == (k % 3 == 2 ? FSI_OK : FSI_ERROR_NAN));
        CHECK(k % 3 == 2 || strstr(t.c.error.message, "inverse_density"));
        scene_free(&t);
    }
}

static void test_bad_input_is_named(void)
{
    busy m;
    scene other;
    fsi_pressure_flow f;
    fsi_pressure_solid b, c;
    fsi_pressure_desc d = fsi_pressure_default_desc();
    fsi_pressure *s;
    fsi_real *nan_u, keep;
    int k;
    size_t wet;
    const fsi_real bad = (fsi_real)test_nan();
    busy_make(&m, 3);
    scene_make(&other, 3, 8, 8, 8, 1);
    f = m.t.f, b = m.list[0], c = m.list[1];
    CHECK(fsi_pressure_create(NULL, &d) == FSI_ERROR_ARGUMENT && fsi_pressure_create(&s, NULL) == FSI_ERROR_COOKIE &&
          s == NULL);
    d.cookie++;
    CHECK(fsi_pressure_create(&s, &d) == FSI_ERROR_COOKIE && s == NULL);
    CHECK(fsi_pressure_project(NULL, &m.t.f) == FSI_ERROR_COOKIE &&
          fsi_pressure_project(m.t.s, NULL) == FSI_ERROR_COOKIE);
    m.t.s->cookie++, CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_ERROR_COOKIE), m.t.s->cookie--;
    fsi_pressure_destroy(NULL);
#define REFUSE(change, status, what)                                                                                   \
    (change, refused(&m, status, what), (void)(m.t.f = f), (void)(m.list[0] = b), (void)(m.list[1] = c))
    REFUSE(m.t.f.cookie++, FSI_ERROR_COOKIE, "flow");
    REFUSE(m.t.f.u[0] = NULL, FSI_ERROR_ARGUMENT, "u [0]");
    REFUSE(m.t.f.u[1] = m.t.f.u[0], FSI_ERROR_ARGUMENT, "u [1]");
    REFUSE(m.t.f.u[2] = other.f.u[2], FSI_ERROR_ARGUMENT, "u [2]");
    REFUSE(m.t.f.cell = NULL, FSI_ERROR_ARGUMENT, "cell");
    REFUSE(m.t.f.phi = m.t.f.u[0], FSI_ERROR_ARGUMENT, "phi");
    REFUSE(m.t.f.surface_pressure = other.phi, FSI_ERROR_ARGUMENT, "surface_pressure");
    REFUSE(m.t.f.source = other.phi, FSI_ERROR_ARGUMENT, "source");
    REFUSE((m.t.f.source = m.t.f.pressure), FSI_ERROR_ARGUMENT, "pressure");
    REFUSE(m.t.f.pressure = other.phi, FSI_ERROR_ARGUMENT, "pressure");
    REFUSE(m.t.f.pressure = m.t.phi, FSI_ERROR_ARGUMENT, "pressure");
    REFUSE((m.t.f.surface_pressure = m.t.f.pressure = m.t.surface), FSI_ERROR_ARGUMENT, "pressure");
    REFUSE((m.t.f.pressure = NULL, m.t.f.use_guess = 1), FSI_ERROR_ARGUMENT, "use_guess");
    REFUSE(m.t.f.inverse_density[1] = m.t.f.u[1], FSI_ERROR_ARGUMENT, "inverse_density");
    REFUSE((m.t.f.inverse_density[0] = f.u[0], m.t.f.inverse_density[1] = f.u[1], m.t.f.inverse_density[2] = f.u[2]),
           FSI_ERROR_ARGUMENT, "inverse_density");
    REFUSE(m.t.f.density = 0, FSI_ERROR_ARGUMENT, "density");
    REFUSE(m.t.f.density = bad, FSI_ERROR_NAN, "density");
    REFUSE(m.t.f.dt = 0, FSI_ERROR_ARGUMENT, "dt");
    REFUSE(m.t.f.dt = bad, FSI_ERROR_NAN, "dt");
    REFUSE(m.t.f.theta_min = 0, FSI_ERROR_ARGUMENT, "theta_min");
    REFUSE(m.t.f.theta_min = bad, FSI_ERROR_NAN, "theta_min");
    REFUSE(m.t.f.solid_count = -1, FSI_ERROR_ARGUMENT, "solid_count");
    REFUSE(m.t.f.solids = NULL, FSI_ERROR_ARGUMENT, "solid_count");
    REFUSE(m.list[0].faces = NULL, FSI_ERROR_COOKIE, "solids [0]");
    REFUSE(m.list[1].center.x = bad, FSI_ERROR_NAN, "center");
    REFUSE(m.list[1].mass = 0, FSI_ERROR_ARGUMENT, "mass");
    REFUSE(m.list[1].mass = test_inf(), FSI_ERROR_NAN, "mass");
    REFUSE(m.list[1].linear.y = bad, FSI_ERROR_NAN, "solids [1]");
    REFUSE(m.list[1].inverse_inertia.m[4] = -1, FSI_ERROR_ARGUMENT, "inverse_inertia");
    m.t.s->desc.tolerance = test_nan(), refused(&m, FSI_ERROR_NAN, "desc.tolerance"), m.t.s->desc.tolerance = 1e-6;
    m.t.s->desc.max_iters = -1, refused(&m, FSI_ERROR_ARGUMENT, "max_iters"), m.t.s->desc.max_iters = 100;
    keep = m.b[0].share[5], m.b[0].share[5] = bad, refused(&m, FSI_ERROR_NAN, "share"), m.b[0].share[5] = 2,
    refused(&m, FSI_ERROR_ARGUMENT, "share"), m.b[0].share[5] = keep;
    m.b[0].entry[5] -= 1 << 30, refused(&m, FSI_ERROR_ARGUMENT, "faces"), m.b[0].entry[5] += 1 << 30;
    m.t.cell[77] += 7, refused(&m, FSI_ERROR_ARGUMENT, "no kind"), m.t.cell[77] -= 7;
    m.t.cell[entry_of(&m.t, 32, 5, 5)] = FSI_CELL_LIQUID, refused(&m, FSI_ERROR_ARGUMENT, "beyond"),
                                   m.t.cell[entry_of(&m.t, 32, 5, 5)] = 0;
    for (wet = entry_of(&m.t, 16, 5, 16); m.t.phi->value[wet] > 0; wet++) continue;
    nan_u = m.t.f.u[1]->value + wet;
    keep = *nan_u, *nan_u = bad, CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_ERROR_NAN), *nan_u = keep;
    for (k = 0; m.t.cell[entry_of(&m.t, 9, k + 1, 16)] == FSI_CELL_LIQUID; k++) continue;
    wet = entry_of(&m.t, 9, k, 16);
    keep = m.t.phi->value[wet], m.t.phi->value[wet] = bad, refused(&m, FSI_ERROR_NAN, "phi"),
    m.t.phi->value[wet] = keep;
    CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_OK);
    memset(m.t.cell, 0, entries(&m.t)); /* no liquid is no error */
    CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_OK && m.t.s->stats.unknowns == 0 && m.list[1].impulse.y == 0);
    scene_free(&other);
    busy_free(&m);
}

static void test_extreme_scales_are_solved(void)
{
    int dim, k;
    static const double scale[3] = { 1e-15, 1, 1e12 };
    for (dim = 2; dim <= 3; dim++) for (k = 0; k < 3; k++) {
        scene t;
        const double level = 0.6 * scale[k];
        scene_make(&t, dim, 16, 16, 16, scale[k] / 16);
        scene_fill(&t, pool, &level);
        scene_velocity(&t, 1, -scale[2 - k]);
        t.f.dt = (fsi_real)TOL(1e-9, 1e-3);
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.iters < 20 &&
              t.s->stats.divergence == t.s->stats.divergence);
        scene_free(&t);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_water_at_rest_stays_at_rest);
    RUN(test_a_curved_surface_is_second_order);
    RUN(test_laplace_pressure_does_not_stir_a_drop);
    RUN(test_tension_moves_a_film_with_the_mass_of_a_cell_at_least);
    RUN(test_tension_throws_nothing_out_of_a_corner);
    RUN(test_equations_of_others_are_not_kept);
    RUN(test_inflow_passes_through);
    RUN(test_closed_pieces_lose_their_net_inflow);
    RUN(test_enclosed_cells_are_counted);
    RUN(test_random_configurations_match_dense_elimination);
    RUN(test_sources_stay);
    RUN(test_lists_of_faces_are_copied_and_checked);
    RUN_PHYSICS(test_added_mass_on_release_from_rest);
    RUN(test_balls_of_no_mass_rise);
    RUN(test_buoyancy_is_the_weight_of_what_is_displaced);
    RUN(test_a_plate_lets_go_of_one_side);
    RUN(test_liquid_and_bodies_keep_their_momentum);
    RUN(test_a_piston_moves_with_the_water);
    RUN(test_few_iterations_whatever_the_shape);
    RUN(test_a_part_of_another_density_costs_its_own_memory);
    RUN(test_bodies_cost_few_cycles);
    RUN(test_many_light_bodies_rise);
    RUN(test_threads_do_not_change_a_bit);
    RUN(test_the_past_leaves_no_trace);
    RUN(test_a_shrinking_pool_is_solved_as_if_it_were_the_first);
    RUN(test_memory_follows_the_liquid);
    RUN(test_missing_blocks_are_air);
    RUN(test_a_second_projection_reaches_the_divergence_of_the_first);
    RUN(test_a_good_guess_needs_no_iteration);
    RUN(test_equations_that_are_kept_give_the_same_answer);
    RUN(test_a_guess_that_is_worse_than_none_is_dropped);
    RUN(test_failure_is_told_and_changes_nothing);
    RUN(test_every_allocation_may_fail);
    RUN(test_densities_beyond_the_surface_must_be_given);
    RUN(test_bad_input_is_named);
    RUN(test_extreme_scales_are_solved);
    return TEST_END();
}
