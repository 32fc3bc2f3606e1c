/* test_viscosity.c - implicit viscosity against its energy, exact flows and the promises of its page.
   SPDX-License-Identifier: MIT */
#define FSI_STATIC
#define FSI_IMPLEMENTATION
#include "../fsi_viscosity.h"
#include "kit/test.h"

/* ---- scenes --------------------------------------------------------------------------------------------------- */

typedef struct scene {
    fsi_context context;
    fsi_grid *grid;
    fsi_field *phi, *u[3];
    fsi_viscosity *s;
    fsi_viscosity_flow flow;
    unsigned char *solid[3];
} scene;

static int flat; /* the scene made last is 2D */
typedef double level_fn(const double *x);             /* position in cells */
typedef double velocity_fn(int axis, const double *x);

static double full_level(const double *x) { (void)x; return -1e3; }

static void position_of(const scene *s, fsi_grid_place place, const int *cell, double *x)
{
    int a;
    for (a = 0; a < 3; a++) x[a] = cell[a] + ((int)place == a + 1 ? 0 : 0.5);
    if (s->grid->dim == 2) x[2] = 0.5;
}

/* Sets a field to f in all blocks: phi (axis -1), in cells, clamped to 8 dx. */
static void set_field(scene *s, int axis, level_fn *level, velocity_fn *velocity)
{
    fsi_field *f = axis < 0 ? s->phi : s->u[axis];
    int b, i, corner[3], cell[3];
    double x[3];
    for (b = 0; b < s->grid->block_count; b++) {
        fsi_grid_corner(s->grid, b, corner);
        for (i = 0; i < s->grid->block_cells; i++) {
            cell[0] = corner[0] + (i & 7), cell[1] = corner[1] + (i >> 3 & 7), cell[2] = corner[2] + (i >> 6);
            position_of(s, f->place, cell, x);
            f->value[b * s->grid->block_cells + i] =
                (fsi_real)(axis < 0 ? fmin(8, fmax(-8, level(x))) * (double)s->grid->dx : velocity(axis, x));
        }
    }
}

/* A scene of nx x ny x nz cells (nz 0: 2D) of edge 1; blocks everywhere, or only within 12 cells of the liquid.
   Strength k = dt mu / (rho dx^2). */
static scene make_scene(int nx, int ny, int nz, level_fn *level, velocity_fn *velocity, double k, int sparse)
{
    scene s;
    fsi_grid_desc d = fsi_grid_default_desc();
    unsigned char *wanted;
    int a, p, places;
    memset(&s, 0, sizeof s);
    s.context = fsi_default_context();
    flat = !nz;
    d.dim = nz ? 3 : 2;
    d.n[0] = nx, d.n[1] = ny, d.n[2] = nz ? nz : 1;
    d.dx = 1;
    CHECK(fsi_grid_create(&s.grid, &d) == FSI_OK);
    CHECK(fsi_grid_add_field(s.grid, FSI_CELLS, 8, &s.phi) == FSI_OK);
    for (a = 0; a < d.dim; a++)
        CHECK(fsi_grid_add_field(s.grid, (fsi_grid_place)(FSI_FACES_X + a), 0, &s.u[a]) == FSI_OK);
    places = s.grid->blocks[0] * s.grid->blocks[1] * s.grid->blocks[2];
    wanted = (unsigned char *)malloc((size_t)places);
    for (p = 0; p < places; p++) {
        double x[3];
        x[0] = p % s.grid->blocks[0] * 8 + 4, x[1] = p / s.grid->blocks[0] % s.grid->blocks[1] * 8 + 4,
        x[2] = p / s.grid->blocks[0] / s.grid->blocks[1] * 8 + 4;
        if (!nz) x[2] = 0.5;
        wanted[p] = !sparse || level(x) < 9;
    }
    CHECK(fsi_grid_set_blocks(s.grid, wanted) == FSI_OK);
    free(wanted);
    set_field(&s, -1, level, NULL);
    CHECK(fsi_viscosity_create(&s.s, NULL) == FSI_OK);
    s.flow = fsi_viscosity_default_flow();
    for (a = 0; a < d.dim; a++) {
        set_field(&s, a, NULL, velocity);
        s.flow.u[a] = s.u[a];
    }
    s.flow.phi = s.phi;
    s.flow.viscosity = (fsi_real)k;
    s.flow.density = s.flow.dt = 1;
    s.flow.tolerance = TOL(1e-10, 1e-6);
    s.flow.max_iters = 5000;
    return s;
}

static void solve(scene *s) { CHECK(fsi_viscosity_solve(s->s, &s->flow) == FSI_OK); }

static void free_scene(scene *s)
{
    int a;
    fsi_viscosity_destroy(s->s);
    fsi_grid_destroy(s->grid);
    for (a = 0; a < 3; a++) free(s->solid[a]);
}

static double get(const scene *s, int axis, int i, int j, int k) { return (double)fsi_grid_at(s->u[axis], i, j, k); }

/* Copies of all velocities. */
static fsi_real *keep_u(const scene *s)
{
    const size_t n = (size_t)(s->grid->block_count * s->grid->block_cells);
    fsi_real *v = (fsi_real *)malloc(sizeof *v * n * 3);
    int a;
    for (a = 0; a < s->grid->dim; a++) memcpy(v + n * (size_t)a, s->u[a]->value, n * sizeof *v);
    return v;
}
static void restore_u(scene *s, const fsi_real *v)
{
    const size_t n = (size_t)(s->grid->block_count * s->grid->block_cells);
    int a;
    for (a = 0; a < s->grid->dim; a++) memcpy(s->u[a]->value, v + n * (size_t)a, n * sizeof *v);
}
static int same_u(const scene *s, const fsi_real *v)
{
    const size_t n = (size_t)(s->grid->block_count * s->grid->block_cells);
    int a, same = 1;
    for (a = 0; a < s->grid->dim; a++) same &= !memcmp(s->u[a]->value, v + n * (size_t)a, n * sizeof *v);
    return same;
}
static uint64_t hash_u(const scene *s)
{
    uint64_t h = 0;
    int a;
    for (a = 0; a < s->grid->dim; a++)
        h = fsi_hash(s->u[a]->value, (size_t)(s->grid->block_count * s->grid->block_cells) * sizeof(fsi_real), h);
    return h;
}

/* ---- the energy, entry by entry ------------------------------------------------------------------------------- */

/* Share of the liquid in half cell h; beyond closed sides as within, beyond open ones none. */
static double half_share(const scene *s, const int *h)
{
    const int dim = s->grid->dim;
    double c[8], share[8];
    int a, j, upper = 0, at[3] = { 0, 0, 0 };
    for (a = 0; a < dim; a++) {
        const int cell = h[a] >> 1;
        if ((cell < 0 && !s->flow.wall_closed[2 * a]) || (cell >= s->grid->n[a] && !s->flow.wall_closed[2 * a + 1]))
            return 0;
        upper |= (h[a] & 1 ? 0 : 1) << a;
    }
    for (j = 0; j < 1 << dim; j++) {
        for (a = 0; a < dim; a++) at[a] = ((h[a] - 1) >> 1) + (j >> a & 1);
        c[j] = (double)fsi_grid_at(s->phi, at[0], at[1], at[2]);
    }
    fsi__viscous_shares(dim, c, share);
    return share[upper];
}

/* Share of the cube around the entry of a place that is half a cell down along the axes in `down`; with weight: times
   mu. */
static double cube_share(const scene *s, const int *cell, int down, int weight)
{
    const int dim = s->grid->dim;
    double sum = 0;
    int j, a, h[3] = { 0, 0, 0 };
    for (j = 0; j < 1 << dim; j++) {
        double v;
        for (a = 0; a < dim; a++) h[a] = 2 * cell[a] - (down >> a & 1) + (j >> a & 1);
        v = half_share(s, h);
        if (v > 0 && weight && s->flow.mu) {
            long long e;
            int c[3];
            for (a = 0; a < 3; a++) c[a] = a < dim ? fsi__clamp_int(h[a] >> 1, s->grid->n[a] - 1) : 0;
            e = fsi_grid_entry(s->grid, c[0], c[1], c[2]);
            v *= e < 0 ? 0 : (double)s->flow.mu[e];
        } else if (weight) v *= (double)s->flow.viscosity;
        sum += v;
    }
    return sum / (1 << dim);
}

enum { UNKNOWN, STICK, SLIP, NONE };

/* Kind of a face; its velocity if prescribed. */
static int face_kind(const scene *s, int axis, const int *cell, double *u)
{
    const fsi_grid *g = s->grid;
    long long e;
    int a, wall = -1;
    for (a = 0; a < g->dim; a++) {
        if (a == axis) {
            if (cell[a] < 0 || cell[a] > g->n[a]) return NONE;
            if (cell[a] == 0 && s->flow.wall_closed[2 * a]) wall = 2 * a;
            if (cell[a] == g->n[a] && s->flow.wall_closed[2 * a + 1]) wall = 2 * a + 1;
        } else if (cell[a] < 0 || cell[a] >= g->n[a]) {
            wall = 2 * a + (cell[a] >= 0);
            if (!s->flow.wall_closed[wall]) return NONE;
        }
    }
    *u = (double)fsi_grid_at(s->u[axis], cell[0], cell[1], cell[2]);
    if (wall >= 0) {
        if (wall / 2 != axis) *u = (double)(&s->flow.wall_velocity[wall].x)[axis];
        return s->flow.wall_no_slip[wall] ? STICK : SLIP;
    }
    e = fsi_grid_entry(g, cell[0], cell[1], cell[2]);
    if (e < 0) return NONE;
    return s->flow.solid[axis] && s->flow.solid[axis][e] ? (s->flow.solid[axis][e] == 2 ? SLIP : STICK) : UNKNOWN;
}

/* Viscous energy of the stresses at cell: the normal one, and those at the lower edges. */
static double stress_energy(const scene *s, const int *cell)
{
    const int dim = s->grid->dim;
    double e = 0, l = 0, h = 0, v[4];
    int a, b, j, up[3], none = 0, kind[4];
    for (a = 0; a < dim; a++) {
        memcpy(up, cell, sizeof up);
        up[a]++;
        none |= face_kind(s, a, cell, &l) == NONE || face_kind(s, a, up, &h) == NONE;
        e += (h - l) * (h - l);
    }
    if (none) e = 0;
    else if (e > 0) e *= cube_share(s, cell, 0, 1);
    for (a = 0; a < dim; a++) for (b = a + 1; b < dim; b++) {
        int count[4] = { 0, 0, 0, 0 };
        double strain, half = 1;
        for (j = 0; j < 4; j++) {
            memcpy(up, cell, sizeof up);
            if (j & 1) up[j < 2 ? b : a]--;
            count[kind[j] = face_kind(s, j < 2 ? a : b, up, &v[j])]++;
        }
        if (count[NONE] || count[SLIP]) continue;
        if (count[UNKNOWN] == 1) { /* in a solid's surface: what is beyond mirrors the unknown in the solid's velocity,
                                      half the cube counts */
            for (j = 0; kind[j] != UNKNOWN; j++) continue;
            v[j ^ 1] = 2 * v[j ^ 1] - v[j];
            half = 0.5;
        }
        strain = v[0] - v[1] + v[2] - v[3];
        if (strain != 0) e += 0.5 * half * strain * strain * cube_share(s, cell, 1 << a | 1 << b, 1);
    }
    return e;
}

static double face_mass(const scene *s, int axis, const int *cell)
{
    return fmax(FSI__VISCOUS_LEAST, cube_share(s, cell, 1 << axis, 0));
}

/* d J / d u of a face by central differences, exact for a quadratic. `before`: u*. */
static double energy_slope(scene *s, int axis, const int *cell, double before)
{
    const long long e = fsi_grid_entry(s->grid, cell[0], cell[1], cell[2]);
    fsi_real *u = &s->u[axis]->value[e];
    const double keep = (double)*u, m = face_mass(s, axis, cell);
    double j[2] = { 0, 0 };
    int side, n, a, at[3];
    for (side = 0; side < 2; side++) {
        *u = (fsi_real)(keep + (side ? 1 : -1));
        for (n = 0; n < (s->grid->dim == 3 ? 27 : 9); n++) {
            const int off[3] = { n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1 };
            for (a = 0; a < 3; a++) at[a] = cell[a] + (a < s->grid->dim ? off[a] : 0);
            j[side] += stress_energy(s, at);
        }
    }
    *u = (fsi_real)keep;
    return (j[1] - j[0]) / 2 + m * (keep - before);
}

/* ---- tests ---------------------------------------------------------------------------------------------------- */

static void test_shares_match_planes_by_counting(void)
{
    uint64_t random = 1;
    int dim, t, a, i, n;
    for (dim = 2; dim <= 3; dim++) for (t = 0; t < 60; t++) {
        double g[3], c[8], share[8] = { 0 }, level = test_random(&random) * 1.2 - 0.6, count = 0, sum;
        int upper = (int)(test_random(&random) * (1 << dim)), m = dim == 2 ? 200 : 40;
        for (a = 0; a < 3; a++) g[a] = t % 5 == a ? 0 : test_random(&random) * 2 - 1;
        for (i = 0; i < 1 << dim; i++) {
            c[i] = level;
            for (a = 0; a < dim; a++) c[i] += g[a] * ((i >> a & 1) - (upper >> a & 1 ? 0.75 : 0.25));
        }
        for (n = 0; n < (dim == 2 ? m * m : m * m * m); n++) {
            const int k[3] = { n % m, n / m % m, n / m / m };
            for (a = 0, sum = level; a < dim; a++) sum += g[a] * ((k[a] + 0.5) / m - 0.5) / 2;
            count += sum < 0;
        }
        count /= dim == 2 ? m * m : m * m * m;
        fsi__viscous_shares(dim, c, share);
        CHECK_NEAR(share[upper], count, dim == 2 ? 0.006 : 0.03);
        for (i = 0; i < 1 << dim; i++) c[i] = -c[i];
        fsi__viscous_shares(dim, c, share);
        CHECK_NEAR(share[upper], 1 - count, dim == 2 ? 0.006 : 0.03);
    }
}

static double ball_level(const double *x)
{
    const double y[3] = { x[0] - 16.3, x[1] - 15.9, x[2] - (flat ? 0.5 : 16.1) };
    return sqrt(y[0] * y[0] + y[1] * y[1] + y[2] * y[2]) - 9.2;
}
static double turning(int axis, const double *x)
{
    const double w[3] = { flat ? 0 : 0.3, flat ? 0 : -0.5, 0.7 }, c[3] = { 0.2, -0.1, 0.4 };
    const int b = (axis + 1) % 3, d = (axis + 2) % 3;
    return c[axis] + w[b] * (x[d] - 16) - w[d] * (x[b] - 16);
}
static double noisy(int axis, const double *x)
{
    uint64_t seed = (uint64_t)(x[0] * 2 + 1000 * x[1] * 2 + 1e6 * x[2] * 2 + 1e9 * axis);
    return turning(axis, x) + test_random(&seed) - 0.5;
}

/* Volume of a ball from the half cells: second order. */
static void test_shares_sum_to_the_volume(void)
{
    const double pi = 3.14159265358979, want[2] = { pi * 9.2 * 9.2, 4 / 3.0 * pi * 9.2 * 9.2 * 9.2 };
    int dim, h[3];
    for (dim = 2; dim <= 3; dim++) {
        scene s = make_scene(32, 32, dim == 3 ? 32 : 0, ball_level, turning, 1, 1);
        double v = 0;
        for (h[2] = 0; h[2] < (dim == 3 ? 64 : 1); h[2]++)
            for (h[1] = 0; h[1] < 64; h[1]++)
                for (h[0] = 0; h[0] < 64; h[0]++)
                    if (fabs((double)fsi_grid_at(s.phi, h[0] / 2, h[1] / 2, dim == 3 ? h[2] / 2 : 0)) < 2)
                        v += half_share(&s, h);
                    else v += fsi_grid_at(s.phi, h[0] / 2, h[1] / 2, dim == 3 ? h[2] / 2 : 0) < 0;
        CHECK_NEAR(v / (1 << dim), want[dim - 2], want[dim - 2] * 0.3 / (9.2 * 9.2) * (dim - 1));
        free_scene(&s);
    }
}

static void test_a_turning_drop_is_untouched(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        scene s = make_scene(32, 32, dim == 3 ? 32 : 0, ball_level, turning, 100, 1);
        fsi_real *before = keep_u(&s);
        const size_t n = (size_t)(s.grid->block_count * s.grid->block_cells);
        double most = 0;
        size_t e;
        int a;
        solve(&s);
        for (a = 0; a < dim; a++)
            for (e = 0; e < n; e++)
                most = fmax(most, fabs((double)s.u[a]->value[e] - (double)before[n * (size_t)a + e]));
        CHECK_NEAR(most, 0, TOL(1e-12, 1e-4));
        CHECK(s.s->unknowns > 500);
        free(before);
        free_scene(&s);
    }
}

/* Linear and angular momentum stay, kinetic energy falls, for any tolerance. */
static void test_free_drops_keep_momentum_and_lose_energy(void)
{
    const double strengths[3] = { 0.1, 1, 300 };
    int dim, t, a, cell[3];
    for (dim = 2; dim <= 3; dim++) for (t = 0; t < 3; t++) {
        scene s = make_scene(32, 32, dim == 3 ? 32 : 0, ball_level, noisy, strengths[t], 1);
        double sum[2][6], energy[2] = { 0, 0 }, size = 0;
        int side;
        memset(sum, 0, sizeof sum);
        s.flow.tolerance = 1e-3;
        for (side = 0; side < 2; side++) {
            for (a = 0; a < dim; a++)
                for (cell[2] = dim == 3 ? 5 : 0; cell[2] < (dim == 3 ? 28 : 1); cell[2]++)
                    for (cell[1] = 5; cell[1] < 28; cell[1]++)
                        for (cell[0] = 5; cell[0] < 28; cell[0]++) {
                            const double m = face_mass(&s, a, cell), u = get(&s, a, cell[0], cell[1], cell[2]);
                            const int b = (a + 1) % 3, c = (a + 2) % 3;
                            double x[3];
                            position_of(&s, (fsi_grid_place)(FSI_FACES_X + a), cell, x);
                            sum[side][a] += m * u;
                            sum[side][3 + c] += m * u * (x[b] - 16); /* e_a at x turns about c by x_b ... */
                            sum[side][3 + b] -= m * u * (x[c] - 16);
                            energy[side] += m * u * u;
                            size += m * fabs(u) * 16;
                        }
            if (side == 0) solve(&s);
        }
        for (a = 0; a < 6; a++)
            if (dim == 3 || a < 2 || a == 5) CHECK_NEAR((sum[1][a] - sum[0][a]) / size, 0, TOL(1e-10, 1e-7));
        CHECK(energy[1] < energy[0] * 0.9997);
        free_scene(&s);
    }
}

/* ---- configurations at random, against the energy ---- */

static uint64_t blob_seed;
static double blob_level(const double *x)
{
    uint64_t r = blob_seed;
    double least = 1e9;
    int n, a;
    for (n = 0; n < 4; n++) {
        double d = 0, c;
        for (a = 0; a < 3; a++) {
            c = test_random(&r) * 13;
            d += flat && a == 2 ? 0 : (x[a] - c) * (x[a] - c);
        }
        least = fmin(least, sqrt(d) - 1 - 3 * test_random(&r));
    }
    return least + 0.3 * sin(3 * x[0] + 2 * x[1] + x[2]);
}

static void random_scene(scene *s, int t, uint64_t *random, fsi_real *mu)
{
    const int entries = s->grid->block_count * s->grid->block_cells;
    int a, e;
    for (a = 0; a < 6; a++) {
        s->flow.wall_closed[a] = test_random(random) < 0.7;
        s->flow.wall_no_slip[a] = test_random(random) < 0.5;
        s->flow.wall_velocity[a] =
            fsi_v3((fsi_real)test_random(random), (fsi_real)test_random(random), (fsi_real)test_random(random));
    }
    if (t & 1) for (a = 0; a < s->grid->dim; a++) {
        s->solid[a] = (unsigned char *)calloc((size_t)entries, 1);
        for (e = 0; e < entries; e++)
            s->solid[a][e] =
                (unsigned char)(e / 16 % 3 == 0 && test_random(random) < 0.5 ? 1 + (test_random(random) < 0.3) : 0);
        s->flow.solid[a] = s->solid[a];
    }
    for (e = 0; e < entries; e++)
        mu[e] = s->phi->value[e] > 2 ? (fsi_real)test_nan() : (fsi_real)(5 * test_random(random));
    if (t & 2) s->flow.mu = mu;
}

/* The slope of J is 0 at every unknown; prescribed faces and faces without stress are as they were. */
static void test_the_energy_is_least(void)
{
    uint64_t random = 7;
    int dim, t, a, c[3];
    for (dim = 2; dim <= 3; dim++) for (t = 0; t < (dim == 2 ? 36 : 5); t++) {
        scene s;
        fsi_real mu[8 * 512], *before;
        double most = 0, l = 0;
        int moved = 0, wrong = 0;
        blob_seed = (uint64_t)(100 * dim + t);
        s = make_scene(t % 3 == 2 ? 15 : 13, 12, dim == 3 ? 9 : 0, blob_level, noisy, 3, t % 4 == 3);
        random_scene(&s, t, &random, mu);
        before = keep_u(&s);
        solve(&s);
        for (a = 0; a < dim; a++)
            for (c[2] = 0; c[2] <= (dim == 3 ? s.grid->n[2] : 0); c[2]++)
                for (c[1] = 0; c[1] <= s.grid->n[1]; c[1]++)
                    for (c[0] = 0; c[0] <= s.grid->n[0]; c[0]++) {
                        const long long e = fsi_grid_entry(s.grid, c[0], c[1], c[2]);
                        double old;
                        if (e < 0) continue;
                        old = (double)before[(long long)a * s.grid->block_count * s.grid->block_cells + e];
                        if (face_kind(&s, a, c, &l) != UNKNOWN) wrong += (double)s.u[a]->value[e] != old;
                        else {
                            const double slope = energy_slope(&s, a, c, old);
                            most = fmax(most, fabs(slope));
                            wrong += !(fabs(slope) < 1);
                            moved += (double)s.u[a]->value[e] != old;
                        }
                    }
        CHECK(wrong == 0);
        CHECK_NEAR(most, 0, TOL(2e-5, 3e-3));
        CHECK(moved > 20 && moved <= s.s->unknowns);
        free(before);
        free_scene(&s);
    }
}

/* What solve does before it iterates, for a look at A. */
static fsi__viscous operator_of(scene *s)
{
    fsi__viscous w;
    memset(&w, 0, sizeof w);
    w.flow = &s->flow;
    w.grid = s->grid;
    w.dim = s->grid->dim;
    w.cells = s->grid->block_cells;
    w.layers = w.dim == 3 ? 8 : 1;
    w.span = w.dim == 3 ? 1000 : 100;
    w.k = (double)(s->flow.mu ? 1 : s->flow.viscosity);
    CHECK(fsi__viscous_prepare(&w, (fsi__viscosity *)s->s->impl) == FSI_OK);
    fsi__viscous_run(&w, 5, fsi__viscous_begin);
    return w;
}

/* q = A p for p at random on the unknowns; returns p . q */
static double random_product(fsi__viscous *w, uint64_t *random, double *p, double *q)
{
    const int rows = w->dim * w->cells;
    int n, i;
    for (n = 0; n < w->count; n++) for (i = 0; i < rows; i++) {
        const size_t o = (size_t)(n * rows + i);
        w->p[o] = fsi__viscous_set_of(w, w->set[n]).inverse_diagonal[i] > 0 ? (float)(test_random(random) - 0.5) : 0;
        p[o] = (double)w->p[o];
    }
    fsi__viscous_run(w, 1, fsi__viscous_multiply);
    for (n = 0; n < w->count * rows; n++) q[n] = (double)w->q[n];
    return fsi__viscous_sum(w, 0);
}

static void test_the_operator_is_symmetric_and_positive(void)
{
    uint64_t random = 3;
    int dim, t, n, k;
    for (dim = 2; dim <= 3; dim++) for (t = 0; t < 8; t++) {
        scene s;
        fsi_real *mu = (fsi_real *)malloc(sizeof *mu * 216 * 512);
        double *v[4], ab = 0, ba = 0, aa, bb, mass = 0;
        fsi__viscous w;
        blob_seed = (uint64_t)t;
        s = make_scene(t ? 17 : 40, t ? 14 : 40, dim == 3 ? (t ? 11 : 40) : 0, t ? blob_level : full_level, noisy, 50,
                       0);
        if (t) random_scene(&s, t, &random, mu);
        w = operator_of(&s);
        n = w.count * w.dim * w.cells;
        for (k = 0; k < 4; k++) v[k] = (double *)malloc(sizeof(double) * (size_t)n);
        aa = random_product(&w, &random, v[0], v[1]);
        bb = random_product(&w, &random, v[2], v[3]);
        for (k = 0; k < n; k++) {
            ab += v[0][k] * v[3][k];
            ba += v[2][k] * v[1][k];
            mass += v[0][k] * v[0][k] * FSI__VISCOUS_LEAST;
        }
        CHECK(aa > mass && bb > 0 && (t == 0 || w.mixed > 0) && (t > 0 || w.mixed < w.count));
        CHECK_NEAR((ab - ba) / aa, 0, 1e-6);
        for (k = 0; k < 4; k++) free(v[k]);
        free(mu);
        free_scene(&s);
    }
}

/* ---- exact flows ---- */

static double wave_number;
static double vortices(int axis, const double *x)
{
    const double k = wave_number, z = flat ? 1 : cos(k * x[2]);
    return axis == 0 ? sin(k * x[0]) * cos(k * x[1]) * z : axis == 1 ? -cos(k * x[0]) * sin(k * x[1]) * z : 0;
}

/* Free-slip box: the vortices decay with nu dim k^2 to second order; their shape stays, for they are an eigenvector of
   the operator too. */
static void test_vortices_decay_at_second_order(void)
{
    const double pi = 3.14159265358979;
    int dim, half;
    for (dim = 2; dim <= 3; dim++) {
        double off[2];
        for (half = 0; half < 2; half++) {
            const int n = 10 << half;
            double at[3], want, got;
            scene s;
            wave_number = pi / n;
            s = make_scene(n, n, dim == 3 ? n : 0, full_level, vortices, 0.5 * n * n, 0);
            solve(&s);
            at[0] = 3, at[1] = 4.5, at[2] = dim == 3 ? 2.5 : 0.5;
            got = vortices(0, at) / get(&s, 0, 3, 4, dim == 3 ? 2 : 0); /* 1 + k lambda */
            want = 1 + 0.5 * n * n * dim * (2 - 2 * cos(wave_number));
            CHECK_NEAR(got / want, 1, TOL(1e-8, 1e-4));
            off[half] = fabs((got - 1) / (0.5 * n * n) / (dim * wave_number * wave_number) - 1);
            at[0] = n - 2, at[1] = 0.5;
            CHECK_NEAR(get(&s, 0, n - 2, 0, dim == 3 ? 2 : 0) * got, vortices(0, at), TOL(1e-7, 1e-3));
            free_scene(&s);
        }
        CHECK(off[0] > 3.5 * off[1] && off[1] < 0.003);
    }
}

static double still(int axis, const double *x) { (void)axis; (void)x; return 0; }

/* A channel or film along x, open at its ends, made thin in z with free slip. */
static scene make_channel(int nx, int ny, int dim, level_fn *level, double k)
{
    scene s = make_scene(nx, ny, dim == 3 ? 3 : 0, level, still, k, 0);
    s.flow.wall_closed[0] = s.flow.wall_closed[1] = 0;
    s.flow.wall_no_slip[2] = s.flow.wall_no_slip[3] = 1;
    return s;
}

static void push(scene *s, double du)
{
    const int n = s->grid->block_count * s->grid->block_cells;
    int e;
    for (e = 0; e < n; e++) s->u[0]->value[e] += (fsi_real)du;
}

/* u_x at height y in the middle of a channel, through four points. */
static double channel_at(const scene *s, double y)
{
    const int i = s->grid->n[0] / 2, j = (int)floor(y - 0.5), k = s->grid->dim == 3 ? 1 : 0;
    const double f = y - 0.5 - j, a = get(s, 0, i, j - 1, k), b = get(s, 0, i, j, k), c = get(s, 0, i, j + 1, k),
                 d = get(s, 0, i, j + 2, k);
    return b + f * (c - b) - f * (1 - f) / 4 * (a - b - c + d);
}

/* Start-up of plane Poiseuille flow: u / umax = 1 - Y^2 - 32/pi^3 sum (-1)^n / (2n+1)^3 cos((2n+1) pi Y/2)
   exp(-(2n+1)^2 pi^2 nu t / H^2), Y = 2y/H - 1. */
static void test_poiseuille_flow_starts_up_by_its_series(void)
{
    const double pi = 3.14159265358979, height = 20, dt[3] = { 0.0005, 0.001, 0.005 }, until[3] = { 0.02, 0.1, 0.5 };
    int dim, t, n, p;
    for (dim = 2; dim <= 3; dim++) {
        scene s = make_channel(120, 20, dim, full_level, 0);
        double time = 0;
        s.flow.tolerance = TOL(1e-6, 1e-5);
        for (t = 0; t < (dim == 3 ? 2 : 3); t++) {
            s.flow.viscosity = (fsi_real)(dt[t] * height * height);
            for (; time < until[t] - 1e-9; time += dt[t]) {
                push(&s, 8 * dt[t]); /* umax = G H^2 / (8 nu) = 1 */
                solve(&s);
            }
            for (p = 1; p <= 5; p++) {
                const double y = 2 * (p * 0.1) - 1;
                double u = 1 - y * y;
                for (n = 0; n < 40; n++)
                    u -= 32 / (pi * pi * pi) * (n & 1 ? -1 : 1) / pow(2 * n + 1, 3) * cos((2 * n + 1) * pi * y / 2) *
                         exp(-(2 * n + 1) * (2 * n + 1) * pi * pi * time);
                CHECK_NEAR(channel_at(&s, p * 0.1 * height), u, 0.01 * u);
            }
        }
        free_scene(&s);
    }
}

static double film_depth;
static double film_level(const double *x) { return x[1] - film_depth; }

/* A film slides down a wall that it sticks to: u = g/nu (h y - y^2/2), no stress at its surface wherever that cuts the
   cells. */
static void test_a_sliding_film_has_a_parabolic_profile(void)
{
    int dim, t, n, j;
    for (dim = 2; dim <= 3; dim++) for (t = 0; t < (dim == 2 ? 4 : 1); t++) {
        scene s;
        film_depth = 8.1 + 0.25 * t;
        s = make_channel(96, 14, dim, film_level, 1e4);
        s.flow.tolerance = 1e-6;
        for (n = 0; n < 3; n++) {
            push(&s, 1e4);
            solve(&s);
        }
        for (j = 0; j < 8; j++) {
            const double y = j + 0.5, want = film_depth * y - y * y / 2;
            CHECK_NEAR((get(&s, 0, 48, j, dim == 3 ? 1 : 0) - want) / (film_depth * film_depth / 2), 0, 0.01);
        }
        free_scene(&s);
    }
}

/* Between a resting and a moving wall the profile is a line, to the last digit; walls made of solid faces do as the
   box's. */
static void test_walls_drag_the_liquid_and_solids_do_the_same(void)
{
    int dim, a, b, i, j;
    for (dim = 2; dim <= 3; dim++) {
        scene s = make_channel(60, 10, dim, full_level, 1e5), t = make_channel(60, 16, dim, full_level, 1e5);
        s.flow.wall_velocity[3] = fsi_v3(2, 7, 0);
        for (a = 0; a < dim; a++) { /* liquid between y = 3 and 13 */
            const int entries = t.grid->block_count * t.grid->block_cells;
            int corner[3];
            t.solid[a] = (unsigned char *)calloc((size_t)entries, 1);
            t.flow.solid[a] = t.solid[a];
            for (b = 0; b < t.grid->block_count; b++) for (i = 0; i < t.grid->block_cells; i++) {
                fsi_grid_corner(t.grid, b, corner);
                j = corner[1] + (i >> 3 & 7);
                if (j >= 3 && (j < 13 || (a == 1 && j == 13)) && !(a == 1 && (j == 3 || j == 13))) continue;
                t.solid[a][b * t.grid->block_cells + i] = 1;
                if (a == 0 && j >= 13) t.u[a]->value[b * t.grid->block_cells + i] = 2;
            }
        }
        solve(&s);
        solve(&t);
        for (j = 0; j < 10; j++) {
            CHECK_NEAR(get(&s, 0, 30, j, 0), 2 * (j + 0.5) / 10, 0.002);
            for (i = 0; i <= 60; i += 6) CHECK_NEAR(get(&s, 0, i, j, 0), get(&t, 0, i, j + 3, 0), TOL(1e-7, 1e-3));
        }
        free_scene(&s);
        free_scene(&t);
    }
}

/* A flat solid, psi = normal.(x - middle) - offset. */
static double plane_normal[3], plane_offset;
static const double plane_high = 6;
static double plane_psi(const double *x)
{
    return plane_normal[0] * (x[0] - 8) + plane_normal[1] * (x[1] - 8) + plane_normal[2] * (x[2] - 8) + 4 -
           plane_offset;
}
/* Liquid that shears evenly along it, perpendicular to the normal. */
static void plane_way(double *t)
{
    const double *n = plane_normal, h = sqrt(n[0] * n[0] + n[1] * n[1]);
    t[0] = h > 0 ? -n[1] / h : 1, t[1] = h > 0 ? n[0] / h : 0, t[2] = 0;
}
static double plane_shear(int axis, const double *x)
{
    double t[3];
    plane_way(t);
    return t[axis] * plane_psi(x);
}
static double spinning(int axis, const double *x) { return axis == 0 ? -(x[1] - 8.3) : axis == 1 ? x[0] - 8.3 : 0; }
static double disc_psi(const double *x)
{
    return sqrt((x[0] - 8.3) * (x[0] - 8.3) + (x[1] - 8.3) * (x[1] - 8.3)) - 3.7;
}

/* Distance to what sticks: psi, psi = high, and the sides of a smaller box. */
static double around_psi(int dim, level_fn *psi, double high, const double *x)
{
    double least = fmin(psi(x), high - psi(x));
    int d;
    for (d = 0; d < dim; d++) least = fmin(least, fmin(x[d] - 2.1, 13.9 - x[d]));
    return least;
}

/* Liquid in around_psi > 0, 16 cells a side. */
static scene make_around(int dim, level_fn *psi, double high, velocity_fn *velocity, fsi_field **field)
{
    scene s = make_scene(16, 16, dim == 3 ? 16 : 0, full_level, velocity, 1e3, 0);
    const int cells = s.grid->block_cells;
    int a, e, c, corner[3], cell[3];
    double x[3], out;
    s.flow.tolerance = TOL(1e-8, 1e-5);
    CHECK(fsi_grid_add_field(s.grid, FSI_CELLS, 8, field) == FSI_OK);
    for (a = 0; a <= dim; a++) {
        fsi_field *f = a < dim ? s.u[a] : *field;
        if (a < dim) s.flow.solid[a] = s.solid[a] = (unsigned char *)calloc((size_t)(s.grid->block_count * cells), 1);
        for (e = 0; e < s.grid->block_count * cells; e++) {
            fsi_grid_corner(s.grid, e / cells, corner);
            c = e % cells;
            cell[0] = corner[0] + (c & 7), cell[1] = corner[1] + (c >> 3 & 7), cell[2] = corner[2] + (c >> 6);
            position_of(&s, f->place, cell, x);
            out = around_psi(dim, psi, high, x);
            if (a == dim) f->value[e] = (fsi_real)fmin(8, fmax(-8, out));
            else s.solid[a][e] = out < 1e-3;
        }
    }
    s.flow.psi = *field;
    return s;
}

/* Where the profile of plane_shear meets the solid's velocity, in cells deeper than it should. */
static double depth_of_the_wall(int dim)
{
    fsi_field *psi;
    scene s;
    double t[3], x[3], sum = 0, weight = 0;
    int a, e, cell[3];
    s = make_around(dim, plane_psi, plane_high, plane_shear, &psi);
    for (a = 0; a < dim; a++) for (e = 0; e < s.grid->block_count * s.grid->block_cells; e++) {
        fsi_vec3 at;
        int corner[3];
        fsi_grid_corner(s.grid, e / s.grid->block_cells, corner);
        at = fsi_grid_position(s.grid, s.u[a]->place, corner[0] + (e & 7), corner[1] + (e >> 3 & 7),
                               corner[2] + (e % s.grid->block_cells >> 6));
        x[0] = (double)at.x, x[1] = (double)at.y, x[2] = (double)at.z;
        if (plane_psi(x) < 0) s.u[a]->value[e] = 0;
    }
    solve(&s);
    plane_way(t);
    for (a = 0; a < dim; a++)
        for (cell[2] = dim == 3 ? 6 : 0; cell[2] < (dim == 3 ? 11 : 1); cell[2]++)
            for (cell[1] = 3; cell[1] < 13; cell[1]++)
                for (cell[0] = 3; cell[0] < 13; cell[0]++) {
                    double far = 0;
                    int d;
                    position_of(&s, (fsi_grid_place)(FSI_FACES_X + a), cell, x);
                    for (d = 0; d < dim; d++) far += (x[d] - 8) * (x[d] - 8);
                    if (!(plane_psi(x) > 0.5 && plane_psi(x) < 3) || far > 25) continue;
                    sum += t[a] * (get(&s, a, cell[0], cell[1], cell[2]) - plane_shear(a, x)) /
                           (1 - plane_psi(x) / plane_high);
                    weight += t[a] * t[a];
                }
    free_scene(&s);
    return sum / weight;
}

/* Liquid sticks to a solid where the solid is, wherever it cuts the grid: to a plane along the grid but for rounding,
   from all sides; to tilted ones within 0.1 cells. Without psi it would stick up to half a cell deeper. */
static void test_solids_hold_the_liquid_where_they_are(void)
{
    static const double tilt[5][3] = {{0.98, 0.17, 0}, {-0.8, 0.6, 0}, {1, -1, 0}, {1, 2, 2}, {-1, 0.3, 0.1}};
    int dim, side, k, a;
    for (dim = 2; dim <= 3; dim++) {
        double worst = 0;
        for (side = 0; side < 2 * dim; side++) for (k = -1; k <= 22; k += dim == 2 ? 1 : 11) {
            for (a = 0; a < 3; a++) plane_normal[a] = a != side / 2 ? 0 : side & 1 ? -1 : 1;
            plane_offset = k == -1 ? -0.01 : k == 21 ? 0.005 : k == 22 ? 0.495 : 0.05 * k;
            worst = fmax(worst, fabs(depth_of_the_wall(dim)));
        }
        printf("      %dD: along the grid %.5f dx deep, ", dim, worst);
        CHECK(worst < 0.03);
        for (side = 0, worst = 0; side < (dim == 2 ? 3 : 5); side++) for (k = 0; k < 10; k += dim == 2 ? 1 : 6) {
            const double *n = tilt[side], l = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
            for (a = 0; a < 3; a++) plane_normal[a] = n[a] / l;
            plane_offset = 0.1 * k;
            worst = fmax(worst, fabs(depth_of_the_wall(dim)));
        }
        printf("tilted %.3f\n", worst);
        CHECK(worst < 0.1);
    }
}

/* Liquid that turns with a solid, and the faces that are given, feels nothing. */
static void test_liquid_turns_with_its_solid(void)
{
    int dim, a, e;
    for (dim = 2; dim <= 3; dim++) {
        fsi_field *psi;
        scene s = make_around(dim, disc_psi, 100, spinning, &psi);
        fsi_real *before = keep_u(&s);
        double worst = 0;
        const int entries = s.grid->block_count * s.grid->block_cells;
        solve(&s);
        for (a = 0; a < dim; a++)
            for (e = 0; e < entries; e++)
                worst = fmax(worst, fabs((double)(s.u[a]->value[e] - before[a * entries + e])));
        CHECK(worst < TOL(1e-6, 1e-4) && s.s->unknowns > 50);
        free(before);
        free_scene(&s);
    }
}

static double drift(int axis, const double *x) { (void)x; return axis == 1 ? 0 : 1 + axis; }

/* Along free-slip walls and solids a uniform flow goes on. */
static void test_free_slip_holds_nothing(void)
{
    int dim, a, e;
    film_depth = 8.85;
    for (dim = 2; dim <= 3; dim++) {
        scene s = make_scene(20, 20, dim == 3 ? 20 : 0, film_level, drift, 10, 0);
        fsi_real *before = keep_u(&s);
        memset(s.flow.wall_closed, 0, 6);
        s.flow.wall_closed[2] = 1;
        for (a = 0; a < dim; a++) {
            const int entries = s.grid->block_count * s.grid->block_cells;
            s.solid[a] = (unsigned char *)calloc((size_t)entries, 1);
            for (e = 0; e < entries; e++) if ((e >> 3 & 7) < (a == 1 ? 3 : 2)) s.solid[a][e] = 2;
            s.flow.solid[a] = s.solid[a];
        }
        solve(&s);
        CHECK(same_u(&s, before) && s.s->unknowns > 30);
        free(before);
        free_scene(&s);
    }
}

/* ---- promises ---- */

static double long_level(const double *x) { return ball_level(x) - 3.5; }

/* Without coarser grids these take 111 to 190 iterations. */
static void test_stiff_liquids_converge(void)
{
    int dim, t;
    for (dim = 2; dim <= 3; dim++) for (t = 0; t < 2; t++) {
        scene s;
        film_depth = 25.3;
        s = make_scene(32, 32, dim == 3 ? 32 : 0, t ? film_level : long_level, noisy, 1e4, 1);
        s.flow.tolerance = 1e-4;
        memset(s.flow.wall_no_slip, t, 6); /* a drop, and a pool that sticks to all its walls */
        solve(&s);
        CHECK(s.s->residual > 0 && s.s->residual <= TOL(1e-4, 0.05) && s.s->iterations < 75);
        free_scene(&s);
    }
}

/* Drops of 0.5 to 2 cells: each has motions that cost nothing. */
static int spray_drops;
static double spray_level(const double *x)
{
    uint64_t r = 7;
    double level = 100;
    int n;
    for (n = 0; n < spray_drops; n++) {
        const double cx = 4 + 24 * test_random(&r), cy = 4 + 24 * test_random(&r), size = 0.5 + 1.5 * test_random(&r);
        level = fmin(level, sqrt((x[0] - cx) * (x[0] - cx) + (x[1] - cy) * (x[1] - cy)) - size);
    }
    return level;
}

/* Rounding of float hides the mass of stiff drops: float vectors alone leave 2e-3 and more of the change after 200
   iterations. */
static void test_spray_of_stiff_liquids_converges(void)
{
    int t;
    for (t = 0; t < 2; t++) {
        scene s;
        spray_drops = t ? 12 : 40;
        s = make_scene(32, 32, 0, spray_level, noisy, t ? 1e7 : 1e3, 1);
        s.flow.tolerance = 1e-4;
        s.flow.max_iters = 200;
        solve(&s);
        /* float: as far as rounding of u lets it */
        CHECK(sizeof(fsi_real) < sizeof(double) || (s.s->iterations > 200 && s.s->residual <= 1e-4));
        free_scene(&s);
    }
}

/* M^-1, with its coarser grids, is symmetric and positive, whatever stands in rows of A that are none. */
static void test_the_preconditioner_is_symmetric_and_positive(void)
{
    uint64_t random = 5;
    int dim, k, n, i;
    for (dim = 2; dim <= 3; dim++) {
        scene s;
        double ab = 0, ba = 0, aa;
        float *v[4];
        fsi__viscous w;
        film_depth = 25.3;
        s = make_scene(32, 32, dim == 3 ? 32 : 0, film_level, noisy, 1e4, 1);
        memset(s.flow.wall_no_slip, 1, 6);
        w = operator_of(&s);
        CHECK(fsi__viscous_make_levels(&w, (fsi__viscosity *)s.s->impl) == FSI_OK && w.levels > 3);
        n = w.count * w.dim * w.cells;
        for (k = 0; k < 4; k++) v[k] = (float *)malloc(sizeof(float) * (size_t)n);
        for (k = 0; k < 4; k += 2) {
            for (i = 0; i < n; i++) {
                const int rows = w.dim * w.cells;
                v[k][i] = w.r[i] = fsi__viscous_set_of(&w, w.set[i / rows]).inverse_diagonal[i % rows] > 0
                                       ? (float)(test_random(&random) - 0.5)
                                       : 0;
            }
            aa = fsi__viscous_precondition(&w);
            CHECK(aa > 0);
            memcpy(v[k + 1], w.z, sizeof(float) * (size_t)n);
        }
        for (i = 0; i < n; i++) {
            ab += (double)v[0][i] * (double)v[3][i];
            ba += (double)v[2][i] * (double)v[1][i];
        }
        CHECK_NEAR((ab - ba) / aa, 0, 1e-4);
        for (k = 0; k < 4; k++) free(v[k]);
        free_scene(&s);
    }
}

static void test_bits_do_not_depend_on_threads(void)
{
    const int threads[4] = { 1, 2, 5, 5 };
    uint64_t first = 0;
    int dim, t;
    for (dim = 2; dim <= 3; dim++) for (t = 0; t < 4; t++) {
        scene s = make_scene(32, 32, dim == 3 ? 32 : 0, ball_level, noisy, TEST_WATCHED ? 5 : 500, 1);
        s.grid->context = &s.context;
        test_threads(&s.context, threads[t], t == 3);
        s.flow.tolerance = 1e-4;
        solve(&s);
        if (t == 0) first = hash_u(&s);
        CHECK(hash_u(&s) == first);
        free_scene(&s);
    }
}

/* Blocks that came and went leave no trace, and those far from the liquid change nothing. */
static void test_bits_do_not_depend_on_the_history_of_blocks(void)
{
    int dim, t, b, i, a;
    for (dim = 2; dim <= 3; dim++) {
        scene s[2];
        double most = 0;
        for (t = 0; t < 2; t++) {
            s[t] = make_scene(40, 40, dim == 3 ? 40 : 0, ball_level, noisy, 5, t == 0);
            s[t].flow.tolerance = 1e-4;
        }
        if (dim == 2) { /* the same blocks by a detour */
            unsigned char all[36], some[36];
            memset(all, 1, sizeof all);
            for (i = 0; i < 36; i++) some[i] = s[0].grid->index[i] >= 0;
            CHECK(s[0].grid->block_count < s[1].grid->block_count);
            solve(&s[1]);
            CHECK(fsi_grid_set_blocks(s[1].grid, some) == FSI_OK && fsi_grid_set_blocks(s[1].grid, all) == FSI_OK &&
                  fsi_grid_set_blocks(s[1].grid, some) == FSI_OK);
            for (a = 0; a < dim; a++) set_field(&s[1], a, NULL, noisy);
        }
        for (t = 0; t < 2; t++) solve(&s[t]);
        for (b = 0; b < s[0].grid->block_count; b++)
            for (i = 0; i < s[0].grid->block_cells; i++)
                for (a = 0; a < dim; a++) {
                    const int other = s[1].grid->index[s[0].grid->place[b]] * s[1].grid->block_cells + i;
                    most = fmax(most, fabs((double)s[0].u[a]->value[b * s[0].grid->block_cells + i] -
                                           (double)s[1].u[a]->value[other]));
                }
        CHECK(most == 0 && s[0].s->unknowns == s[1].s->unknowns);
        for (t = 0; t < 2; t++) free_scene(&s[t]);
    }
}

static void test_a_missing_block_ends_the_liquid(void)
{
    scene s = make_scene(24, 24, 0, ball_level, noisy, 5, 0);
    unsigned char wanted[16];
    fsi_real *before;
    memset(wanted, 0, sizeof wanted);
    wanted[5] = 1; /* cells 8..15 of both axes, well inside the drop */
    CHECK(fsi_grid_set_blocks(s.grid, wanted) == FSI_OK);
    set_field(&s, 0, NULL, turning), set_field(&s, 1, NULL, turning);
    before = keep_u(&s);
    solve(&s);
    CHECK_NEAR(fabs((double)s.u[0]->value[20] - (double)before[20]) +
                   fabs((double)s.u[1]->value[63] - (double)before[127]),
               0, TOL(1e-13, 1e-5));
    CHECK(s.s->unknowns > 50);
    free(before);
    free_scene(&s);
}

static void test_steady_calls_allocate_nothing(void)
{
    fsi_context c = fsi_default_context();
    scene s = make_scene(32, 32, 32, ball_level, noisy, 500, 1);
    long long allocs;
    size_t own;
    fsi_viscosity_destroy(s.s);
    CHECK(fsi_viscosity_create(&s.s, &c) == FSI_OK);
    own = c.bytes;
    solve(&s);
    allocs = c.allocs;
    s.flow.viscosity = 4;
    solve(&s);
    CHECK(c.allocs == allocs && allocs > 1 && s.s->bytes > 0 && c.bytes == own + s.s->bytes);
    fsi_viscosity_destroy(s.s);
    CHECK(c.bytes == 0);
    s.s = NULL;
    free_scene(&s);
}

static void test_every_allocation_may_fail(void)
{
    scene s = make_scene(32, 32, 0, ball_level, noisy, 500, 1);
    fsi_real *before = keep_u(&s);
    fsi_status status = FSI_ERROR_MEMORY;
    long k;
    for (k = 1; status == FSI_ERROR_MEMORY && k < 20; k++) {
        fsi_context c = fsi_default_context();
        fsi_viscosity_destroy(s.s);
        test_fail_allocator(&c, k);
        status = fsi_viscosity_create(&s.s, &c);
        if (status == FSI_OK) status = fsi_viscosity_solve(s.s, &s.flow);
        CHECK(status == FSI_OK || (c.error.status == FSI_ERROR_MEMORY && same_u(&s, before)));
        fsi_viscosity_destroy(s.s);
        s.s = NULL;
        CHECK(test_live_bytes() == 0);
    }
    CHECK(status == FSI_OK && k == 7);
    free(before);
    free_scene(&s);
}

static void refuse(scene *s, const fsi_viscosity_flow *flow, fsi_status status, const char *what)
{
    fsi_real *before = keep_u(s);
    fsi_viscosity_flow f = *flow;
    s->context.error.message[0] = 0;
    CHECK(fsi_viscosity_solve(s->s, &f) == status);
    CHECK(!what || strstr(s->context.error.message, what) != NULL);
    CHECK(same_u(s, before));
    free(before);
}

static void test_bad_input_is_named(void)
{
    scene s = make_scene(32, 32, 0, ball_level, noisy, 5, 0);
    fsi_viscosity_flow f;
    fsi_field fake = *s.phi;
    fsi_real *mu = (fsi_real *)calloc((size_t)(s.grid->block_count * s.grid->block_cells), sizeof *mu), keep;
    const fsi_real wrong[3] = { (fsi_real)test_nan(), (fsi_real)test_inf(), -1 };
    const long long e = fsi_grid_entry(s.grid, 16, 16, 0);
    int k;
    fsi_viscosity_destroy(s.s);
    CHECK(fsi_viscosity_create(&s.s, &s.context) == FSI_OK);
    fake.cookie++;
    CHECK(fsi_viscosity_solve(NULL, &s.flow) == FSI_ERROR_ARGUMENT &&
          fsi_viscosity_solve(s.s, NULL) == FSI_ERROR_ARGUMENT);
    fsi_viscosity_destroy(NULL);
    CHECK(fsi_viscosity_create(NULL, &s.context) == FSI_ERROR_ARGUMENT);
    f = s.flow, f.cookie++, refuse(&s, &f, FSI_ERROR_COOKIE, NULL);
    f = s.flow, f.phi = NULL, refuse(&s, &f, FSI_ERROR_COOKIE, NULL);
    f = s.flow, f.phi = &fake, refuse(&s, &f, FSI_ERROR_COOKIE, NULL);
    f = s.flow, f.u[1] = NULL, refuse(&s, &f, FSI_ERROR_COOKIE, NULL);
    f = s.flow, f.u[1] = f.u[0], refuse(&s, &f, FSI_ERROR_ARGUMENT, "u[1]");
    f = s.flow, f.phi = s.u[0], refuse(&s, &f, FSI_ERROR_ARGUMENT, "phi");
    for (k = 0; k < 3; k++) {
        const fsi_status want = k == 2 ? FSI_ERROR_ARGUMENT : FSI_ERROR_NAN;
        f = s.flow, f.viscosity = wrong[k], refuse(&s, &f, want, "viscosity");
        f = s.flow, f.density = wrong[k], refuse(&s, &f, want, "density");
        f = s.flow, f.dt = wrong[k], refuse(&s, &f, want, "dt");
        f = s.flow, f.tolerance = (double)wrong[k], refuse(&s, &f, want, "tolerance");
        mu[e] = wrong[k];
        f = s.flow, f.mu = mu, refuse(&s, &f, FSI_ERROR_ARGUMENT, "mu[");
        CHECK(s.context.error.element == e);
        mu[e] = 0;
    }
    f = s.flow, f.density = 0, refuse(&s, &f, FSI_ERROR_ARGUMENT, "density");
    f = s.flow, f.viscosity = (fsi_real)3e38, f.density = (fsi_real)1e-20, refuse(&s, &f, FSI_ERROR_ARGUMENT, "float");
    f = s.flow, f.max_iters = 0, refuse(&s, &f, FSI_ERROR_ARGUMENT, "max_iters");
    f = s.flow, f.wall_velocity[1].y = wrong[0], refuse(&s, &f, FSI_ERROR_NAN, "wall_velocity[1]");
    f = s.flow, f.max_iters = 2, refuse(&s, &f, FSI_ERROR_CONVERGENCE, "2 iterations");
    keep = s.phi->value[e], s.phi->value[e] = wrong[0], refuse(&s, &s.flow, FSI_ERROR_NAN, "phi"),
    s.phi->value[e] = keep;
    keep = s.u[1]->value[e], s.u[1]->value[e] = wrong[1], refuse(&s, &s.flow, FSI_ERROR_NAN, "u in"),
    s.u[1]->value[e] = keep;
    s.flow.mu = mu; /* 0 everywhere */
    solve(&s);
    CHECK(s.s->unknowns == 0 && s.s->iterations == 0);
    s.grid->context = NULL;
    free(mu);
    free_scene(&s);
}

static double no_level(const double *x) { (void)x; return 5; }

static void test_nothing_to_do_is_done(void)
{
    int dim, sparse;
    for (dim = 2; dim <= 3; dim++) for (sparse = 0; sparse < 2; sparse++) {
        scene s = make_scene(9, 1, dim == 3 ? 3 : 0, sparse ? no_level : full_level, noisy, 0, sparse);
        fsi_real *before = keep_u(&s);
        solve(&s);
        s.flow.viscosity = 3;
        if (sparse) solve(&s);
        CHECK(same_u(&s, before));
        free(before);
        free_scene(&s);
    }
}

/* Tiny and huge velocities are solved alike. */
static void test_scale_does_not_matter(void)
{
    const double size[2] = { TOL(1e-150, 1e-30), TOL(1e150, 1e30) };
    int t, e;
    scene s = make_scene(32, 32, 0, ball_level, noisy, 5, 1);
    const int n = s.grid->block_count * s.grid->block_cells;
    fsi_real *before = keep_u(&s), *after;
    solve(&s);
    after = keep_u(&s);
    for (t = 0; t < 2; t++) {
        double most = 0;
        restore_u(&s, before);
        for (e = 0; e < n; e++) s.u[0]->value[e] *= (fsi_real)size[t], s.u[1]->value[e] *= (fsi_real)size[t];
        solve(&s);
        for (e = 0; e < n; e++) most = fmax(most, fabs((double)s.u[0]->value[e] / size[t] - (double)after[e]));
        CHECK_NEAR(most, 0, TOL(1e-7, 1e-4));
        CHECK(s.s->iterations > 3);
    }
    free(before);
    free(after);
    free_scene(&s);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_shares_match_planes_by_counting);
    RUN(test_shares_sum_to_the_volume);
    RUN(test_a_turning_drop_is_untouched);
    RUN(test_free_drops_keep_momentum_and_lose_energy);
    RUN_PHYSICS(test_the_energy_is_least);
    RUN(test_the_operator_is_symmetric_and_positive);
    RUN(test_vortices_decay_at_second_order);
    RUN_PHYSICS(test_poiseuille_flow_starts_up_by_its_series);
    RUN_PHYSICS(test_a_sliding_film_has_a_parabolic_profile);
    RUN_PHYSICS(test_walls_drag_the_liquid_and_solids_do_the_same);
    RUN_PHYSICS(test_solids_hold_the_liquid_where_they_are);
    RUN(test_liquid_turns_with_its_solid);
    RUN(test_free_slip_holds_nothing);
    RUN_PHYSICS(test_stiff_liquids_converge);
    RUN(test_spray_of_stiff_liquids_converges);
    RUN(test_the_preconditioner_is_symmetric_and_positive);
    RUN(test_bits_do_not_depend_on_threads);
    RUN(test_bits_do_not_depend_on_the_history_of_blocks);
    RUN(test_a_missing_block_ends_the_liquid);
    RUN(test_steady_calls_allocate_nothing);
    RUN(test_every_allocation_may_fail);
    RUN(test_bad_input_is_named);
    RUN(test_nothing_to_do_is_done);
    RUN(test_scale_does_not_matter);
    return TEST_END();
}
