/* test_pressure_yield.c - solids that yield in the pressure of fsi_pressure.h: against coupled bodies, dense saddle
   systems, momentum and what must be refused.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_pressure.h"
#include "kit/test_pressure.h"

/* ---- answers -------------------------------------------------------------------------------------------------- */

/* A respond: of a free rigid body where `matrix` is NULL, else matrix (count x count). */
typedef struct answer {
    const scene *t;
    const solid *b;
    fsi_vec3 center;
    fsi_mat3 inverse_inertia;
    double mass, *matrix;
    int calls, fails, at;      /* fails: in its at-th call 1: returns an error, 2: writes a NaN, 3: fills the context's
                                  error too */
    uint64_t heard;            /* hash of all impulses */
} answer;

/* Axis and middle of face f. */
static fsi_vec3 face_middle(const answer *w, int f, int *axis)
{
    const fsi_grid *g = w->t->g;
    const int c = w->b->entry[f] % g->block_cells;
    int at[3];
    for (*axis = 0; f >= w->b->f.first[*axis + 1]; ++*axis) continue;
    fsi_grid_corner(g, w->b->entry[f] / g->block_cells, at);
    return middle(w->t, 1 + *axis, at[0] + (c & 7), at[1] + (c >> 3 & 7), at[2] + (c >> 6));
}

static double along(fsi_vec3 v, int axis) { return (double)(axis == 0 ? v.x : axis == 1 ? v.y : v.z); }

static void answer_rigid(const answer *w, const double *impulse, double *change)
{
    double p[3] = { 0, 0, 0 }, l[3] = { 0, 0, 0 }, spin[3] = { 0, 0, 0 };
    int f, a, i, j;
    for (f = 0; f < w->b->f.count; f++) {
        const fsi_vec3 x = face_middle(w, f, &a),
                       m = fsi_v3_cross(fsi_v3_sub(x, w->center), fsi_v3(a == 0, a == 1, a == 2));
        p[a] += impulse[f];
        for (i = 0; i < 3; i++) l[i] += impulse[f] * along(m, i);
    }
    for (i = w->t->g->dim == 2 ? 2 : 0; i < 3; i++)
        for (j = w->t->g->dim == 2 ? 2 : 0; j < 3; j++) spin[i] += (double)w->inverse_inertia.m[3 * i + j] * l[j];
    for (f = 0; f < w->b->f.count; f++) {
        const fsi_vec3 x = face_middle(w, f, &a),
                       m = fsi_v3_cross(fsi_v3_sub(x, w->center), fsi_v3(a == 0, a == 1, a == 2));
        change[f] = p[a] / w->mass;
        for (i = 0; i < 3; i++) change[f] += spin[i] * along(m, i);
    }
}

static fsi_status respond(void *user, fsi_context *context, const double *impulse, double *change)
{
    answer *w = (answer *)user;
    const int n = w->b->f.count, fails = ++w->calls == w->at ? w->fails : 0;
    int i, j;
    w->heard = fsi_hash(impulse, sizeof *impulse * (size_t)n, w->heard);
    if (fails == 3) return fsi__fail(context, FSI_ERROR_SINGULAR, "cloth", 7, 0, "vertex 7 has no mass");
    if (fails == 1) return FSI_ERROR_SINGULAR;
    if (!w->matrix) answer_rigid(w, impulse, change);
    for (i = 0; i < n && w->matrix; i++) {
        double sum = 0;
        for (j = 0; j < n; j++) sum += w->matrix[(size_t)i * (size_t)n + (size_t)j] * impulse[j];
        change[i] = sum;
    }
    if (fails == 2) change[n - 1] = test_nan();
    return FSI_OK;
}

/* A solid that answers so, with what a caller must bring. */
typedef struct yielder { answer w; fsi_real *velocity, *yielding; double *impulse, *change; } yielder;

static fsi_pressure_solid yielder_make(yielder *y, const scene *t, const solid *b)
{
    const size_t n = (size_t)b->f.count + 1;
    fsi_pressure_solid s;
    memset(y, 0, sizeof *y);
    memset(&s, 0, sizeof s);
    y->w.t = t;
    y->w.b = b;
    y->velocity = (fsi_real *)calloc(n, sizeof(fsi_real));
    y->yielding = (fsi_real *)calloc(n, sizeof(fsi_real));
    y->impulse = (double *)calloc(n, sizeof(double));
    y->change = (double *)calloc(n, sizeof(double));
    s.faces = &b->f;
    s.velocity = y->velocity;
    s.respond = respond;
    s.user = &y->w;
    s.yielding = y->yielding;
    s.face_impulse = y->impulse;
    return s;
}

static void yielder_free(yielder *y)
{
    free(y->velocity), free(y->yielding), free(y->impulse), free(y->change);
    free(y->w.matrix);
}

/* The solid as it moves in the end, prescribed: what divergence_of() needs. */
static fsi_pressure_solid moved(yielder *y, fsi_pressure_solid s)
{
    int f;
    y->w.at = 0;
    CHECK(respond(&y->w, NULL, y->impulse, y->change) == FSI_OK);
    for (f = 0; f < s.faces->count; f++) y->velocity[f] = (fsi_real)((double)y->velocity[f] + y->change[f]);
    s.respond = NULL;
    return s;
}

/* R = c c^T/mass for the faces of one axis: they all move as one plate, along that axis only. */
static void answer_plate(answer *w, int axis, double mass)
{
    const int n = w->b->f.count;
    int i, j;
    w->matrix = (double *)calloc((size_t)(n * n), sizeof(double));
    for (i = w->b->f.first[axis]; i < w->b->f.first[axis + 1]; i++)
        for (j = w->b->f.first[axis]; j < w->b->f.first[axis + 1]; j++) w->matrix[i * n + j] = 1 / mass;
}

/* ---- free rigid bodies ---------------------------------------------------------------------------------------- */

/* No face is all but covered: what is left of its cells would have a pressure that no velocity tells. */
static double share_clear_ball(int axis, fsi_vec3 x, const double *arg)
{
    const double share = share_ball(axis, x, arg);
    return share > 0.9 ? 1 : share;
}

/* A drop or a full box with a ball in it, that is coupled or answers as such a ball does: all comes out the same. */
static void check_like_a_body(int dim, int closed, double ratio)
{
    const double dx = 1.0 / 20, drop[4] = {0.5, 0.5, dim == 3 ? 0.5 : 0, 0.43},
                 one[6] = {0.46, 0.53, dim == 3 ? 0.5 : 0, 0.2, dx, (double)dim};
    const double mass = ratio * 1000 * (dim == 3 ? 4 * FSI_PI / 3 * 0.008 : FSI_PI * 0.04), h = pow(dx, dim);
    scene t[2];
    solid b[2];
    fsi_pressure_solid s[2];
    yielder y;
    double most = 0, worst = 0, push = 0, pressure = 0, apart = 0;
    int i, j, k, a, f, c;
    size_t e;
    for (c = 0; c < 2; c++) {
        scene_make(t + c, dim, 20, 20, 20, dx);
        if (!closed) scene_fill(t + c, ball, drop);
        t[c].s->desc.tolerance = TOL(1e-11, 1e-6);
        solid_make(b + c, t + c, share_clear_ball, one);
        for (a = 0; a < dim; a++) EACH_FACE(t + c, a, i, j, k) {
            const int at = a == 0 ? i : a == 1 ? j : k;
            t[c].f.u[a]->value[entry_of(t + c, i, j, k)] =
                (fsi_real)(closed && (at == 0 || at == 20) ? 0 : sin(7.0 * i + 3 * j * a + 2 * k));
        }
    }
    s[0] = body_of(b, fsi_v3((fsi_real)0.45, (fsi_real)0.5, (fsi_real)(dim == 3 ? 0.52 : 0)), mass, 0.016 * mass);
    s[0].linear = fsi_v3((fsi_real)0.3, (fsi_real)-0.2, (fsi_real)(dim == 3 ? 0.1 : 0));
    s[0].angular.z = 2;
    s[1] = yielder_make(&y, t + 1, b + 1);
    s[1].center = y.w.center = s[0].center;
    y.w.mass = mass;
    y.w.inverse_inertia = s[0].inverse_inertia;
    for (f = 0; f < b[1].f.count; f++) {
        const fsi_vec3 x = face_middle(&y.w, f, &a);
        y.velocity[f] = (fsi_real)along(fsi_rigid_velocity(s[0].linear, s[0].angular, s[0].center, x), a);
        y.yielding[f] = (fsi_real)(1000 * h / mass);
    }
    for (c = 0; c < 2; c++) {
        t[c].f.solids = s + c;
        t[c].f.solid_count = 1;
        CHECK(fsi_pressure_project(t[c].s, &t[c].f) == FSI_OK);
    }
    CHECK(t[0].s->stats.pieces == closed && t[1].s->stats.pieces == closed &&
          t[0].s->stats.unknowns == t[1].s->stats.unknowns);
    CHECK(t[1].s->stats.iters <= t[0].s->stats.iters + 60);
    for (a = 0; a < dim; a++) {
        const int ends[2] = { b[0].f.first[a], b[0].f.first[a + 1] };
        double sum = 0;
        for (e = 0; e < entries(t); e++) {
            most = fmax(most, fabs((double)t[0].f.u[a]->value[e]));
            worst = fmax(worst, fabs((double)t[0].f.u[a]->value[e] - (double)t[1].f.u[a]->value[e]));
        }
        for (f = ends[0]; f < ends[1]; f++) sum += y.impulse[f], push += fabs(y.impulse[f]);
        CHECK_NEAR(sum, along(s[1].impulse, a), TOL(1e-12, 1e-5) * push);
        CHECK_NEAR(along(s[1].impulse, a), along(s[0].impulse, a), TOL(1e-8, 1e-3) * push);
    }
    for (a = 0; a < 3; a++)
        CHECK_NEAR(along(s[1].angular_impulse, a), along(s[0].angular_impulse, a), TOL(1e-8, 1e-3) * push);
    for (e = 0; e < entries(t); e++) {
        if (t[1].f.pressure->value[e] == 0) continue; /* enclosed */
        pressure = fmax(pressure, fabs((double)t[0].f.pressure->value[e]));
        apart = fmax(apart, fabs((double)t[0].f.pressure->value[e] - (double)t[1].f.pressure->value[e]));
    }
    CHECK_NEAR(worst / most, 0, TOL(1e-8, 2e-3));
    CHECK_NEAR(apart / pressure, 0, TOL(1e-8, 2e-3));
    s[1] = moved(&y, s[1]);
    CHECK_NEAR(divergence_of(t + 1), t[1].s->stats.divergence, TOL(1e-8, 1e-1) * most / dx);
    for (f = 0; f < b[1].f.count; f++) {
        const fsi_vec3 x = face_middle(&y.w, f, &a);
        const double v = along(fsi_rigid_velocity(s[0].linear, s[0].angular, s[0].center, x), a);
        CHECK_NEAR(y.velocity[f], v, TOL(1e-8, 2e-3) * most);
    }
    yielder_free(&y);
    for (c = 0; c < 2; c++) solid_free(b + c), scene_free(t + c);
}

static void test_what_answers_like_a_rigid_body_moves_like_one(void)
{
    static const double ratio[4] = { 0.01, 0.3, 1, 50 };
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 4; k++) check_like_a_body(dim, k % 2, ratio[k]), check_like_a_body(dim, (k + 1) % 2, ratio[k]);
}

/* ---- dense saddle systems ------------------------------------------------------------------------------------- */

enum { DOFS = 5 };

static double share_some(int axis, fsi_vec3 x, const double *arg)
{
    uint64_t seed = (uint64_t)(1e6 + 1e4 * (double)x.x) * 7919u + (uint64_t)(1e6 + 1e4 * (double)x.y) * 104729u +
                    (uint64_t)(1e6 + 1e4 * (double)x.z) * 31u + (uint64_t)axis + (uint64_t)arg[0];
    const double r = test_random(&seed), q = test_random(&seed);
    return r < arg[1] ? (q < 0.6 ? 1 : q) : 0;
}

/* Solids of five numbers v: A v + W^T M W v of inertia, faces that move by W v. */
typedef struct saddle { double A[DOFS * DOFS], before[DOFS], *W, *mass, *rest; } saddle;

/* Random; *w answers with W (A + W^T M W)^-1 W^T, velocity is what W v is before the pressure. */
static void saddle_make(saddle *s, yielder *y, const scene *t, uint64_t *seed, int light)
{
    const solid *b = y->w.b;
    const int n = b->f.count;
    double right[DOFS];
    int i, j, k, f;
    y->w.matrix = (double *)calloc((size_t)n * (size_t)n + 1, sizeof(double));
    s->W = (double *)calloc((size_t)n * DOFS, sizeof(double));
    s->mass = (double *)calloc((size_t)n, sizeof(double));
    s->rest = (double *)calloc((size_t)n, sizeof(double));
    for (i = 0; i < DOFS; i++)
        for (j = 0; j <= i; j++)
            s->A[i * DOFS + j] = s->A[j * DOFS + i] =
                (light ? 1e-4 : 1) * (i == j ? 3 + test_random(seed) : test_random(seed) - 0.5);
    for (f = 0; f < n; f++) {
        s->mass[f] = (double)b->share[f] * pow((double)t->g->dx, t->g->dim) * 1000 * (0.2 + 0.8 * test_random(seed));
        s->rest[f] = test_random(seed) - 0.5;
        for (i = 0; i < 3; i++) s->W[f * DOFS + (f + i) % DOFS] = (i ? 0.6 : 0.4) * test_random(seed);
    }
    for (i = 0; i < DOFS; i++) s->before[i] = test_random(seed) - 0.5;
    for (k = 0; k <= n; k++) { /* k < n: column k of W (A + W^T M W)^-1 W^T; then the velocity */
        double a[DOFS * (DOFS + 1)];
        for (i = 0; i < DOFS; i++) {
            right[i] = k < n ? s->W[k * DOFS + i] : 0;
            for (j = 0; j < DOFS; j++) {
                a[i * (DOFS + 1) + j] = s->A[i * DOFS + j];
                for (f = 0; f < n; f++) a[i * (DOFS + 1) + j] += s->W[f * DOFS + i] * s->mass[f] * s->W[f * DOFS + j];
                if (k == n) right[i] += s->A[i * DOFS + j] * s->before[j];
            }
            for (f = 0; f < n && k == n; f++) right[i] += s->W[f * DOFS + i] * s->mass[f] * s->rest[f];
            a[i * (DOFS + 1) + DOFS] = right[i];
        }
        eliminate(a, DOFS);
        for (f = 0; f < n; f++) {
            double v = 0;
            for (i = 0; i < DOFS; i++) v += s->W[f * DOFS + i] * a[i * (DOFS + 1) + DOFS];
            if (k < n) y->w.matrix[f * n + k] = v;
            else y->velocity[f] = (fsi_real)v;
        }
    }
}

/* Pressures p of all cells and the velocities of the solid, from the whole system at once: each row of a cell its
   divergence, each row of the solid its momentum. Cells without an open face are not part of it. */
static void saddle_solve(const saddle *s, const yielder *y, const scene *t, double *p, double *v)
{
    const fsi_grid *g = t->g;
    const int cells = g->n[0] * g->n[1] * g->n[2], n = cells + DOFS, wide = n + 1;
    const double dx = (double)g->dx, dt = (double)t->f.dt, area = pow(dx, g->dim - 1);
    double *a = (double *)calloc((size_t)n * (size_t)wide, sizeof(double));
    int i, j, k, d, f, axis;
#define AT(i, j, k) (((k) * g->n[1] + (j)) * g->n[0] + (i))
    EACH_CELL(t, i, j, k) for (d = 0; d < 2 * g->dim; d++) {
        const int ax = d / 2, up = d & 1, r = AT(i, j, k), ni = i + (ax == 0 ? 2 * up - 1 : 0),
                  nj = j + (ax == 1 ? 2 * up - 1 : 0), nk = k + (ax == 2 ? 2 * up - 1 : 0),
                  kind = kind_at(t, ni, nj, nk);
        const size_t face = up ? entry_of(t, i + (ax == 0), j + (ax == 1), k + (ax == 2)) : entry_of(t, i, j, k);
        const double open = open_of(t, ax, face, NULL),
                     beta = t->f.inverse_density[0] ? (double)t->beta[ax]->value[face] : 1 / (double)t->f.density;
        double theta = 1, c;
        if (kind_at(t, i, j, k) != FSI_CELL_LIQUID) continue;
        a[r * wide + n] -= (up ? 1 : -1) * open * (double)t->f.u[ax]->value[face] / dx;
        if (open == 0 || kind == FSI_CELL_SOLID || kind < 0) continue;
        if (kind == FSI_CELL_AIR) {
            const double in = fmin((double)t->phi->value[entry_of(t, i, j, k)], -(double)t->f.theta_min * dx),
                         out = (double)t->phi->value[entry_of(t, ni, nj, nk)];
            theta = fmax(in / (in - out), (double)t->f.theta_min);
        }
        c = dt / (dx * dx) * open * beta / theta;
        a[r * wide + r] += c;
        if (kind == FSI_CELL_LIQUID) a[r * wide + AT(ni, nj, nk)] -= c;
    }
    for (f = 0; f < y->w.b->f.count; f++) {
        const fsi_vec3 x = face_middle(&y->w, f, &axis);
        const int at[3] = {(int)floor((double)x.x / dx + (axis == 0 ? 0.5 : 0)),
                           (int)floor((double)x.y / dx + (axis == 1 ? 0.5 : 0)),
                           g->dim == 2 ? 0 : (int)floor((double)x.z / dx + (axis == 2 ? 0.5 : 0))};
        for (d = 0; d < 2; d++) {
            const int ci = at[0] - (d && axis == 0), cj = at[1] - (d && axis == 1), ck = at[2] - (d && axis == 2),
                      r = AT(ci, cj, ck);
            if (kind_at(t, ci, cj, ck) != FSI_CELL_LIQUID || a[r * wide + r] == 0) continue;
            for (i = 0; i < DOFS; i++) {
                const double w = (d ? 1 : -1) * (double)y->w.b->share[f] * s->W[f * DOFS + i];
                a[r * wide + cells + i] += w / dx;
                a[(cells + i) * wide + r] -= w * area * dt;
            }
        }
        for (i = 0; i < DOFS; i++) {
            a[(cells + i) * wide + n] += s->W[f * DOFS + i] * s->mass[f] * s->rest[f];
            for (j = 0; j < DOFS; j++)
                a[(cells + i) * wide + cells + j] += s->W[f * DOFS + i] * s->mass[f] * s->W[f * DOFS + j];
        }
    }
    for (i = 0; i < DOFS; i++) for (j = 0; j < DOFS; j++) {
        a[(cells + i) * wide + cells + j] += s->A[i * DOFS + j];
        a[(cells + i) * wide + n] += s->A[i * DOFS + j] * s->before[j];
    }
    for (i = 0; i < cells; i++) if (a[i * wide + i] == 0) a[i * wide + i] = 1, a[i * wide + n] = 0;
    eliminate(a, n);
    for (i = 0; i < cells; i++) p[i] = a[i * wide + n];
    for (i = 0; i < DOFS; i++) v[i] = a[(cells + i) * wide + n];
    free(a);
#undef AT
}

static int check_saddle(int dim, int round)
{
    uint64_t seed = (uint64_t)(round * 2 + dim);
    const double arg[2] = { 1000 * round, 0.1 + 0.2 * test_random(&seed) };
    fsi_pressure_solid list;
    scene t;
    solid b;
    yielder y;
    saddle s;
    double p[216], v[DOFS], most = 0, worst = 0;
    int i, j, k, a, f, regular;
    scene_make(&t, dim, 6, 6, 6, 0.1);
    EACH_CELL(&t, i, j, k) {
        const size_t e = entry_of(&t, i, j, k);
        const double r = test_random(&seed);
        t.cell[e] = (unsigned char)(j > 4 || r < 0.1 ? FSI_CELL_AIR : r < 0.15 ? FSI_CELL_SOLID : FSI_CELL_LIQUID);
        t.phi->value[e] = (fsi_real)((t.cell[e] == FSI_CELL_LIQUID ? -0.1 : 0.1) * (0.1 + test_random(&seed)));
    }
    for (a = 0; a < dim; a++) {
        CHECK(fsi_grid_add_field(t.g, (fsi_grid_place)(1 + a), 1, &t.beta[a]) == FSI_OK);
        EACH_FACE(&t, a, i, j, k) {
            t.f.u[a]->value[entry_of(&t, i, j, k)] = (fsi_real)(test_random(&seed) - 0.5);
            t.beta[a]->value[entry_of(&t, i, j, k)] = (fsi_real)(test_random(&seed) < 0.5 ? 1e-3 : 2e-2);
        }
        if (round % 4 == 3) t.f.inverse_density[a] = t.beta[a];
    }
    t.f.phi = t.phi;
    solid_make(&b, &t, share_some, arg);
    list = yielder_make(&y, &t, &b);
    t.f.solids = &list;
    t.f.solid_count = 1;
    saddle_make(&s, &y, &t, &seed, round % 2);
    for (f = 0; f < b.f.count; f++)
        y.yielding[f] = (fsi_real)(round % 3 ? y.w.matrix[f * b.f.count + f] * 1000 * pow(0.1, dim) : 0);
    if (round % 3 == 2) for (f = 0; f < b.f.count; f++) y.yielding[f] = (fsi_real)(3 * test_random(&seed));
    if (round % 5 == 0) list.yielding = NULL;
    saddle_solve(&s, &y, &t, p, v);
    CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
    regular = t.s->stats.pieces == 0;
    EACH_CELL(&t, i, j, k) {
        const int r = (k * 6 + j) * 6 + i;
        if (t.cell[entry_of(&t, i, j, k)] != FSI_CELL_LIQUID) continue;
        most = fmax(most, fabs(p[r]));
        worst = fmax(worst, fabs(p[r] - (double)t.f.pressure->value[entry_of(&t, i, j, k)]));
    }
    if (regular) CHECK_NEAR(worst / most, 0, TOL(1e-7, 5e-3));
    CHECK(respond(&y.w, NULL, y.impulse, y.change) == FSI_OK);
    for (f = 0; f < b.f.count && regular; f++) {
        double sum = 0;
        for (i = 0; i < DOFS; i++) sum += s.W[f * DOFS + i] * v[i];
        CHECK_NEAR((double)y.velocity[f] + y.change[f], sum, TOL(1e-7, 1e-2));
    }
    free(s.W), free(s.mass), free(s.rest);
    yielder_free(&y);
    solid_free(&b);
    scene_free(&t);
    return regular;
}

static void test_random_solids_match_dense_saddle_systems(void)
{
    int round, regular = 0;
    for (round = 0; round < 30; round++) regular += check_saddle(2, round);
    for (round = 0; round < (TEST_SLOWED ? 2 : 12); round++) regular += check_saddle(3, round);
    CHECK(regular >= (TEST_SLOWED ? 20 : 28));
}

/* ---- momentum ------------------------------------------------------------------------------------------------- */

static double share_wall(int axis, fsi_vec3 x, const double *arg)
{
    const double r = fmax(fabs((double)x.y - 20), arg[1] > 2.5 ? fabs((double)x.z - 20) : 0);
    return axis == 0 && fabs((double)x.x - arg[0]) < 0.1 && r < 12 ? 1 : 0;
}

/* A drop, cut off where it meets a free plate at rest, flies at it. The liquid that a face of the plate carries moves
   with the plate. */
static double plate_speed(int dim, double ratio, int theta)
{
    const double arg[2] = { 26, (double)dim };
    scene t;
    solid b;
    yielder y;
    fsi_pressure_solid list;
    double drop = 0, before = 0, after = 0, carried = 0, mass, speed;
    int i, j, k, f, a;
    scene_make(&t, dim, 40, 40, 40, 1);
    t.f.density = 1;
    t.f.dt = 1;
    t.s->desc.tolerance = TOL(1e-12, 1e-6);
    EACH_CELL(&t, i, j, k) {
        const fsi_vec3 x = middle(&t, 0, i, j, k);
        const double r =
            sqrt(pow((double)x.x - 20, 2) + pow((double)x.y - 20, 2) + (dim == 3 ? pow((double)x.z - 20, 2) : 0));
        const size_t e = entry_of(&t, i, j, k);
        t.phi->value[e] = (fsi_real)(r - 8.2);
        t.cell[e] = r < 8.2 && i < 26 ? FSI_CELL_LIQUID : FSI_CELL_AIR;
        if (t.cell[e] == FSI_CELL_AIR && r < 8.2) t.phi->value[e] = 1;
        drop += t.cell[e] == FSI_CELL_LIQUID;
    }
    if (theta) t.f.phi = t.phi;
    scene_velocity(&t, 0, 1);
    solid_make(&b, &t, share_wall, arg);
    list = yielder_make(&y, &t, &b);
    for (f = 0; f < b.f.count; f++) {
        const fsi_vec3 x = face_middle(&y.w, f, &a);
        carried += kind_at(&t, 25, (int)(double)x.y, (int)(double)x.z) == FSI_CELL_LIQUID;
    }
    mass = ratio * drop;
    answer_plate(&y.w, 0, mass + carried);
    for (f = 0; f < b.f.count; f++)
        y.velocity[f] = (fsi_real)(carried / (mass + carried)), y.yielding[f] = (fsi_real)(1 / (mass + carried));
    EACH_FACE(&t, 0, i, j, k) {
        const int here = kind_at(&t, i, j, k), below = kind_at(&t, i - 1, j, k);
        double share = 1;
        if (i == 26 || (here != FSI_CELL_LIQUID && below != FSI_CELL_LIQUID)) continue;
        if (theta && here != below) {
            const double p = (double)t.phi->value[entry_of(&t, i, j, k)],
                         q = (double)t.phi->value[entry_of(&t, i - 1, j, k)];
            share = fmax(p < 0 ? p / (p - q) : q / (q - p), 0.01);
        }
        t.surface->value[entry_of(&t, i, j, k)] = (fsi_real)share; /* of a face here: the mass that it stands for */
        before += share;
    }
    before += carried;
    t.f.solids = &list;
    t.f.solid_count = 1;
    CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.pieces == 0 && t.s->stats.iters < 20);
    speed = carried / (mass + carried) + (double)list.impulse.x / (mass + carried);
    EACH_FACE(&t, 0, i, j, k) {
        const size_t e = entry_of(&t, i, j, k);
        after += (double)t.surface->value[e] * (double)t.f.u[0]->value[e];
        if (i == 26 && kind_at(&t, 25, j, k) == FSI_CELL_LIQUID)
            CHECK_NEAR(t.f.u[0]->value[e], speed, TOL(1e-12, 1e-5));
    }
    after += (carried + mass) * speed;
    CHECK_NEAR(after / before, 1, TOL(1e-9, 1e-4));
    yielder_free(&y);
    solid_free(&b);
    scene_free(&t);
    return speed;
}

/* The speeds are those of the 2D prototype, to its digits. */
static void test_a_drop_hands_its_momentum_to_a_plate(void)
{
    static const double mass[5] = { 0.1, 1, 10, 100, 1000 }, speed[5] = { 0.9982, 0.9823, 0.8476, 0.3574, 0.0527 };
    int k;
    for (k = 0; k < 5; k++) {
        CHECK_NEAR(plate_speed(2, mass[k] / 192, 0), speed[k], 1e-4);
        plate_speed(2, mass[k] / 192, 1);
        if (!TEST_SLOWED) plate_speed(3, mass[k] / 192, k % 2);
    }
}

/* ---- pieces --------------------------------------------------------------------------------------------------- */

/* Faces of axis 0 at arg[0], arg[1], arg[2]. */
static double share_sheets(int axis, fsi_vec3 x, const double *arg)
{
    int k, at = 0;
    for (k = 0; k < 3; k++) at |= fabs((double)x.x - arg[k]) < 0.01;
    return axis == 0 && at;
}

enum { NOTHING, EACH_ITS_OWN, AS_ONE, LIGHT, HEAVY }; /* which faces move together; the last three: all, at 3, 1e-6, 1e9
                                                         kg */

/* A channel of 20 x 8 (x 6) cells, closed by walls. Liquid flows in at the left at 1 m/s and, where `out`, out at the
   right. A solid covers the faces at three places. what: its R. air: first column that is air. Returns the largest
   divergence left. */
static double channel(int dim, const double *at, int air, int what, double out, int pieces, double removed, scene *t,
                      fsi_pressure_solid *list, yielder *y, solid *b)
{
    const double depth = dim == 3 ? 0.6 : 1;
    int i, j, k, f, n;
    double left;
    scene_make(t, dim, 20, 8, 6, 0.1);
    EACH_CELL(t, i, j, k) if (i >= air) t->cell[entry_of(t, i, j, k)] = FSI_CELL_AIR;
    for (k = 0; k < t->g->n[2]; k++) for (j = 0; j < 8; j++) {
        t->f.u[0]->value[entry_of(t, 0, j, k)] = 1;
        t->f.u[0]->value[entry_of(t, 20, j, k)] = (fsi_real)out;
    }
    solid_make(b, t, share_sheets, at);
    *list = yielder_make(y, t, b);
    n = b->f.count;
    if (what >= AS_ONE) answer_plate(&y->w, 0, what == LIGHT ? 1e-6 : what == HEAVY ? 1e9 : 3);
    else y->w.matrix = (double *)calloc((size_t)(n * n), sizeof(double));
    for (f = 0; f < n && what == EACH_ITS_OWN; f++) y->w.matrix[f * n + f] = 1 / (2.0 + f % 3);
    for (f = 0; f < n; f++) y->yielding[f] = (fsi_real)fmin(1, y->w.matrix[f * n + f]);
    t->f.solids = list;
    t->f.solid_count = 1;
    CHECK(fsi_pressure_project(t->s, &t->f) == FSI_OK);
    CHECK_NEAR(t->s->stats.pieces, pieces, 0);
    CHECK_NEAR(t->s->stats.removed, removed * 0.8 * depth, TOL(1e-9, 1e-4));
    *list = moved(y, *list);
    left = divergence_of(t);
    yielder_free(y);
    solid_free(b);
    scene_free(t);
    return left;
}

static void test_enclosed_liquid_flows_where_a_solid_yields(void)
{
    static const double one[3] = { 1.0, 1.0, 1.0 }, wall[3] = { 2.0, 2.0, 2.0 }, two[3] = { 0.5, 1.5, 1.5 };
    const double small = TOL(1e-6, 1e-2);
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        scene t;
        fsi_pressure_solid s;
        yielder y;
        solid b;
        CHECK(channel(dim, one, 10, AS_ONE, 0, 0, 0, &t, &s, &y, &b) < small);      /* a lid, air behind it */
        CHECK(channel(dim, one, 10, LIGHT, 0, 0, 0, &t, &s, &y, &b) < small);
        CHECK(channel(dim, one, 10, HEAVY, 0, 0, 0, &t, &s, &y, &b) < small);
        CHECK(channel(dim, wall, 20, AS_ONE, 0, 0, 0, &t, &s, &y, &b) < small);     /* one wall is the lid */
        CHECK(channel(dim, one, 10, EACH_ITS_OWN, 0, 0, 0, &t, &s, &y, &b) < small);
        CHECK_NEAR(channel(dim, one, 10, NOTHING, 0, 1, 1, &t, &s, &y, &b), 1, small);  /* a wall: 1 m/s into 1 m */
        CHECK(channel(dim, one, 20, AS_ONE, 1, 1, 0, &t, &s, &y, &b) < small);      /* a sheet between two chambers */
        CHECK(channel(dim, one, 20, EACH_ITS_OWN, 1, 1, 0, &t, &s, &y, &b) < small);
        /* both take what goes nowhere */
        CHECK_NEAR(channel(dim, one, 20, EACH_ITS_OWN, 0, 1, 1, &t, &s, &y, &b), 0.5, small);
        /* two sheets in a row, air behind */
        CHECK(channel(dim, two, 15, EACH_ITS_OWN, 0, 0, 0, &t, &s, &y, &b) < small);
        CHECK(channel(dim, two, 20, EACH_ITS_OWN, 1, 1, 0, &t, &s, &y, &b) < small);
        /* tied together: the pressure between them is free */
        CHECK(channel(dim, two, 15, AS_ONE, 0, 1, 0, &t, &s, &y, &b) < small);
        CHECK(channel(dim, two, 20, AS_ONE, 1, 2, 0, &t, &s, &y, &b) < small);
    }
}

/* A sheet and a piston in a row, in a closed channel: together they pass on what flows in. */
static void test_a_sheet_and_a_body_share_closed_liquid(void)
{
    static const double at[3] = { 0.5, 0.5, 0.5 }, there[3] = { 1.5, 1.5, 1.5 };
    int dim, closed;
    for (dim = 2; dim <= 3; dim++) for (closed = 0; closed < 2; closed++) {
        scene t;
        solid b[2];
        fsi_pressure_solid list[2];
        yielder y;
        int j, k, f;
        scene_make(&t, dim, 20, 8, 6, 0.1);
        for (k = 0; k < t.g->n[2]; k++)
            for (j = 0; j < 8; j++)
                t.f.u[0]->value[entry_of(&t, 0, j, k)] = t.f.u[0]->value[entry_of(&t, 20, j, k)] = 1;
        t.f.open_side[1] = !closed;
        solid_make(b, &t, share_sheets, at), solid_make(b + 1, &t, share_sheets, there);
        list[0] = yielder_make(&y, &t, b);
        list[1] = body_of(b + 1, fsi_v3((fsi_real)1.5, (fsi_real)0.4, (fsi_real)(dim == 3 ? 0.3 : 0)), 700, 1e9);
        y.w.matrix = (double *)calloc((size_t)(b[0].f.count * b[0].f.count), sizeof(double));
        for (f = 0; f < b[0].f.count; f++) y.w.matrix[f * (b[0].f.count + 1)] = 0.3;
        t.f.solids = list;
        t.f.solid_count = 2;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.pieces == closed);
        CHECK_NEAR(list[1].linear.x, 1, TOL(1e-7, 1e-3));
        CHECK_NEAR((double)list[1].impulse.x, 700, TOL(1e-4, 1));
        list[0] = moved(&y, list[0]);
        CHECK(divergence_of(&t) < TOL(1e-6, 1e-2));
        yielder_free(&y);
        solid_free(b), solid_free(b + 1);
        scene_free(&t);
    }
}

/* A ball that is held in water at rest: its faces deep inside, between cells without pressure, are not pushed; the
   others are, by the water's weight. */
static void test_impulses_of_faces_are_told_for_any_solid(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double level = 0.9, dx = 1.0 / 24, arg[6] = { 0.51, 0.45, dim == 3 ? 0.48 : 0, 0.27, dx, (double)dim };
        scene t;
        solid b;
        fsi_pressure_solid list;
        double *impulse, sum = 0, inside = 0, unit;
        int i, k, a, f;
        scene_make(&t, dim, 24, 24, 24, dx);
        scene_fill(&t, pool, &level);
        scene_velocity(&t, 1, -0.0981);
        for (k = 0; k < t.g->n[2]; k++) for (i = 0; i < 24; i++) t.f.u[1]->value[entry_of(&t, i, 0, k)] = 0;
        solid_make(&b, &t, share_ball, arg);
        impulse = (double *)malloc(sizeof(double) * (size_t)b.f.count);
        for (f = 0; f < b.f.count; f++) impulse[f] = test_nan();
        memset(&list, 0, sizeof list);
        list.faces = &b.f;
        list.face_impulse = impulse;
        t.f.solids = &list;
        t.f.solid_count = 1;
        CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK && t.s->stats.enclosed > 10);
        unit = 98.1 * pow(dx, dim - 1);
        for (a = 0; a < dim; a++) for (f = b.f.first[a]; f < b.f.first[a + 1]; f++) {
            answer w;
            int axis;
            memset(&w, 0, sizeof w);
            w.t = &t, w.b = &b;
            if ((double)fsi_v3_norm(fsi_v3_sub(face_middle(&w, f, &axis), fsi_v3((fsi_real)arg[0], (fsi_real)arg[1],
                                                                                 (fsi_real)arg[2]))) < 0.27 - 3 * dx)
                inside = fmax(inside, fabs(impulse[f]));
            if (a == 1) sum += impulse[f];
        }
        CHECK(inside == 0);
        CHECK_NEAR(sum, (double)list.impulse.y, TOL(1e-12, 1e-4) * unit);
        CHECK_NEAR(sum / (98.1 * (dim == 3 ? 4 * FSI_PI / 3 * pow(0.27, 3) : FSI_PI * 0.27 * 0.27)), 1, 0.02);
        free(impulse);
        solid_free(&b);
        scene_free(&t);
    }
}

/* ---- convergence ---------------------------------------------------------------------------------------------- */

static double share_floor(int axis, fsi_vec3 x, const double *arg)
{
    return axis == 1 && fabs((double)x.y - arg[0]) < 0.01 && fabs((double)x.x - 0.5) < 0.4 ? 1 : 0;
}

/* A ball on a sheet, or liquid on both sides of it, in `dim` dimensions. Each face of the sheet is on its own: R =
   yielding/(density dx^d). */
typedef struct own { double r; int n; } own;
static fsi_status respond_own(void *user, fsi_context *context, const double *impulse, double *change)
{
    const own *w = (const own *)user;
    int f;
    (void)context;
    for (f = 0; f < w->n; f++) change[f] = w->r * impulse[f];
    return FSI_OK;
}

static int sheet_iterations(int dim, int both, double yielding, int told)
{
    const int n = dim == 3 ? 32 : 64;
    const double dx = 1.0 / n, arg[4] = { 0.5, 0.5 + 0.25, 0.5, 0.3 }, level[1] = { 0.25 };
    scene t;
    solid b;
    fsi_pressure_solid list;
    fsi_real *y;
    own w;
    int i, j, k, f, iters;
    scene_make(&t, dim, n, n, n, dx);
    t.s->desc.tolerance = 1e-6;
    if (!both) EACH_CELL(&t, i, j, k) {
        const fsi_vec3 x = middle(&t, 0, i, j, k);
        const double r =
            sqrt(pow((double)x.x - 0.5, 2) + pow((double)x.y - 0.45, 2) + (dim == 3 ? pow((double)x.z - 0.5, 2) : 0)) -
            arg[3];
        const size_t e = entry_of(&t, i, j, k);
        t.phi->value[e] = (fsi_real)(j < n / 4 ? dx : r);
        t.cell[e] = t.phi->value[e] < 0 ? FSI_CELL_LIQUID : FSI_CELL_AIR;
    }
    if (!both) t.f.phi = t.phi;
    else EACH_CELL(&t, i, j, k) if (j >= 3 * n / 4) t.cell[entry_of(&t, i, j, k)] = FSI_CELL_AIR;
    EACH_FACE(&t, 1, i, j, k) t.f.u[1]->value[entry_of(&t, i, j, k)] = (fsi_real)(j == 0 || j == n ? 0 : -0.1);
    memset(&list, 0, sizeof list);
    solid_make(&b, &t, share_floor, level);
    y = (fsi_real *)malloc(sizeof(fsi_real) * (size_t)(b.f.count + 1));
    for (f = 0; f < b.f.count; f++) y[f] = (fsi_real)yielding;
    w.n = b.f.count;
    w.r = yielding / (1000 * pow(dx, dim));
    list.faces = &b.f;
    list.respond = respond_own;
    list.user = &w;
    list.yielding = told ? y : NULL;
    t.f.solids = &list;
    t.f.solid_count = 1;
    CHECK(fsi_pressure_project(t.s, &t.f) == FSI_OK);
    iters = t.s->stats.iters;
    free(y);
    solid_free(&b);
    scene_free(&t);
    return iters;
}

static void test_an_estimate_of_what_yields_saves_iterations(void)
{
    static const double yielding[4] = { 0.001, 0.1, 0.9, 1 };
    int dim, both, k;
    for (dim = 2; dim <= 3; dim++) for (both = 0; both < 2; both++) {
        const int wall = sheet_iterations(dim, both, 0, 0);
        for (k = 0; k < 4; k++) CHECK(sheet_iterations(dim, both, yielding[k], 1) <= wall + 2);
        CHECK(sheet_iterations(dim, both, 1, 0) > wall + (both ? 12 : 2));
    }
}

/* ---- promises ------------------------------------------------------------------------------------------------- */

/* A drop with an ordinary body, and a sheet beneath it; everything that a projection writes. */
typedef struct busy { scene t; solid b[2]; fsi_pressure_solid list[2]; yielder y; size_t faces; } busy;

static void busy_make(busy *m, int dim)
{
    const double dx = 1.0 / 32, drop[4] = {0.5, 0.5, dim == 3 ? 0.5 : 0, 0.4},
                 ball_arg[6] = {0.5, 0.6, dim == 3 ? 0.5 : 0, 0.15, dx, (double)dim}, level[1] = {0.25};
    uint64_t seed = 9;
    int i, j, k, a, f, n;
    scene_make(&m->t, dim, 32, 32, dim == 3 ? 32 : 1, dx);
    scene_fill(&m->t, ball, drop);
    for (a = 0; a < dim; a++)
        EACH_FACE(&m->t, a, i, j, k)
        m->t.f.u[a]->value[entry_of(&m->t, i, j, k)] = (fsi_real)(test_random(&seed) - 0.5);
    m->t.s->desc.tolerance = 1e-6;
    solid_make(m->b, &m->t, share_floor, level);
    solid_make(m->b + 1, &m->t, share_ball, ball_arg);
    m->list[0] = yielder_make(&m->y, &m->t, m->b);
    m->list[1] = body_of(m->b + 1, fsi_v3((fsi_real)0.5, (fsi_real)0.6, (fsi_real)(dim == 3 ? 0.5 : 0)), 5, 0.1);
    n = m->b[0].f.count;
    m->faces = (size_t)n;
    m->y.w.matrix = (double *)calloc((size_t)n * (size_t)n, sizeof(double));
    for (f = 0; f < n; f++) {
        for (i = f - 1; i <= f + 1; i++)
            if (i >= 0 && i < n)
                m->y.w.matrix[(size_t)f * (size_t)n + (size_t)i] = (i == f ? 0.5 : 0.25) / (1000 * pow(dx, dim));
        m->y.yielding[f] = (fsi_real)0.5;
        m->y.velocity[f] = (fsi_real)0.1;
    }
    m->t.f.solids = m->list;
    m->t.f.solid_count = 2;
}

static void busy_free(busy *m)
{
    yielder_free(&m->y);
    solid_free(m->b), solid_free(m->b + 1);
    scene_free(&m->t);
}

static uint64_t busy_hash(const busy *m)
{
    uint64_t h = fsi_hash(m->t.f.pressure->value, entries(&m->t) * sizeof(fsi_real), 1);
    int a;
    for (a = 0; a < m->t.g->dim; a++) h = fsi_hash(m->t.f.u[a]->value, entries(&m->t) * sizeof(fsi_real), h);
    for (a = 0; a < 2; a++) h = fsi_hash(&m->list[a].linear, 4 * sizeof(fsi_vec3), h);
    h = fsi_hash(m->y.velocity, m->faces * sizeof(fsi_real), h);
    return fsi_hash(m->y.impulse, m->faces * sizeof(double), h);
}

static void test_threads_change_no_bit_of_what_yields(void)
{
    static const int threads[4] = { 0, 1, 2, 5 };
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t h[4], heard[4];
        for (k = 0; k < 4; k++) {
            busy m;
            busy_make(&m, dim);
            if (threads[k]) test_threads(&m.t.c, threads[k], threads[k] > 1);
            CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_OK && m.t.s->stats.iters > 2);
            h[k] = busy_hash(&m);
            heard[k] = m.y.w.heard;
            busy_free(&m);
        }
        for (k = 1; k < 4; k++) CHECK(h[0] == h[k] && heard[0] == heard[k]);
    }
}

/* Whichever of its calls fails, and however. */
static void test_a_respond_that_fails_changes_nothing(void)
{
    int dim, fails;
    for (dim = 2; dim <= 3; dim++) for (fails = 1; fails <= 3; fails++) {
        fsi_status status = FSI_ERROR_NAN;
        busy m;
        uint64_t before;
        int at;
        busy_make(&m, dim);
        before = busy_hash(&m);
        m.y.w.fails = fails;
        for (at = 1; at < 100; at++) {
            m.y.w.calls = 0;
            m.y.w.at = at;
            status = fsi_pressure_project(m.t.s, &m.t.f);
            if (status == FSI_OK) break;
            CHECK(status == (fails == 2 ? FSI_ERROR_NAN : FSI_ERROR_SINGULAR) && m.t.c.error.status == status &&
                  m.y.w.calls == at);
            CHECK(strstr(m.t.c.error.message, fails == 3 ? "vertex 7" : "solids [0]") && busy_hash(&m) == before);
        }
        CHECK(status == FSI_OK && at > 6 && busy_hash(&m) != before);
        busy_free(&m);
    }
}

static void refused(busy *m, fsi_status status, const char *what)
{
    const uint64_t before = busy_hash(m);
    if (!CHECK(fsi_pressure_project(m->t.s, &m->t.f) == status)) printf("   it is about %s\n", what);
    if (!CHECK(strstr(m->t.c.error.message, what) != NULL))
        printf("   \"%s\", want \"%s\"\n", m->t.c.error.message, what);
    CHECK(busy_hash(m) == before);
}

static void test_bad_solids_that_yield_are_named(void)
{
    const fsi_real bad = (fsi_real)test_nan();
    fsi_pressure_solid s;
    fsi_grid_faces f;
    busy m;
    int k;
    busy_make(&m, 3);
    s = m.list[0], f = m.b[0].f;
#define REFUSE(change, status, what) (change, refused(&m, status, what), (void)(m.list[0] = s), (void)(m.b[0].f = f))
    REFUSE(m.list[0].coupled = 1, FSI_ERROR_ARGUMENT, "coupled");
    REFUSE(m.b[0].f.count = 0, FSI_ERROR_ARGUMENT, "faces are not");
    REFUSE(m.b[0].f.count = -1, FSI_ERROR_ARGUMENT, "faces are not");
    REFUSE(m.b[0].f.first[0] = m.b[0].f.count, FSI_ERROR_ARGUMENT, "faces are not");
    REFUSE(m.b[0].f.first[3] = m.b[0].f.count + 1, FSI_ERROR_ARGUMENT, "faces are not");
    m.y.yielding[3] = bad, refused(&m, FSI_ERROR_NAN, "yielding"), m.y.yielding[3] = -1,
    refused(&m, FSI_ERROR_ARGUMENT, "yielding"), m.y.yielding[3] = 0;
    m.y.velocity[3] = bad, CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_ERROR_NAN), m.y.velocity[3] = 0;
    for (k = 0; k < f.count; k++) m.y.w.matrix[k * (f.count + 1)] *= -1000; /* pushes back */
    refused(&m, FSI_ERROR_CONVERGENCE, "divergence");
    for (k = 0; k < f.count; k++) m.y.w.matrix[k * (f.count + 1)] /= -1000;
    m.list[0].face_impulse = NULL, m.list[0].yielding = NULL, m.list[0].velocity = NULL;
    CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_OK);
    m.list[0] = s;
    memset(m.t.cell, 0, entries(&m.t));
    for (k = 0; k < f.count; k++) m.y.impulse[k] = 1;
    CHECK(fsi_pressure_project(m.t.s, &m.t.f) == FSI_OK && m.y.impulse[0] == 0 && m.y.impulse[f.count - 1] == 0);
    busy_free(&m);
}

static void test_every_allocation_for_what_yields_may_fail(void)
{
    fsi_status status = FSI_ERROR_MEMORY;
    busy m;
    uint64_t before;
    long k;
    busy_make(&m, 2);
    before = busy_hash(&m);
    for (k = 1; status == FSI_ERROR_MEMORY && k < 100; k++) {
        fsi_context c = fsi_default_context();
        fsi_pressure_desc d = fsi_pressure_default_desc();
        fsi_pressure *s = NULL;
        d.context = &c;
        d.tolerance = 1e-5;
        test_fail_allocator(&c, k);
        status = fsi_pressure_create(&s, &d);
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
    busy_free(&m);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_what_answers_like_a_rigid_body_moves_like_one);
    RUN(test_random_solids_match_dense_saddle_systems);
    RUN(test_a_drop_hands_its_momentum_to_a_plate);
    RUN(test_enclosed_liquid_flows_where_a_solid_yields);
    RUN(test_a_sheet_and_a_body_share_closed_liquid);
    RUN(test_impulses_of_faces_are_told_for_any_solid);
    RUN(test_an_estimate_of_what_yields_saves_iterations);
    RUN(test_threads_change_no_bit_of_what_yields);
    RUN(test_a_respond_that_fails_changes_nothing);
    RUN(test_bad_solids_that_yield_are_named);
    RUN(test_every_allocation_for_what_yields_may_fail);
    return TEST_END();
}
