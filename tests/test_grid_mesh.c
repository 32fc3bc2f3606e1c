/* test_grid_mesh.c - what is put into a grid and read out of it: shapes, the faces that a mesh cuts, the surface of a
   level set.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_pressure.h"

#define REAL(x) ((fsi_real)(x))

/* ---- grids and meshes ------------------------------------------------------------------------------------------- */

static fsi_grid *grid_of(fsi_context *context, int dim, int nx, int ny, int nz, double dx, fsi_vec3 origin)
{
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi_grid *g = NULL;
    d.context = context;
    d.dim = dim;
    d.n[0] = nx;
    d.n[1] = ny;
    d.n[2] = nz;
    d.dx = REAL(dx);
    d.origin = origin;
    CHECK(fsi_grid_create(&g, &d) == FSI_OK);
    return g;
}

static fsi_field *field_of(fsi_grid *g, double background)
{
    fsi_field *f = NULL;
    CHECK(fsi_grid_add_field(g, FSI_CELLS, REAL(background), &f) == FSI_OK);
    return f;
}

/* Makes each block exist with some probability. */
static void blocks_of(fsi_grid *g, double share, uint64_t *random)
{
    const int places = g->blocks[0] * g->blocks[1] * g->blocks[2];
    unsigned char *wanted = (unsigned char *)malloc((size_t)places);
    int p;
    for (p = 0; p < places; p++) wanted[p] = test_random(random) < share;
    CHECK(fsi_grid_set_blocks(g, wanted) == FSI_OK);
    free(wanted);
}

static fsi_mesh *mesh_of(fsi_context *context, int corners, const fsi_vec3 *x, int vertices, const int *e, int elements,
                         int container)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *m = NULL;
    d.context = context;
    d.vertices = x;
    d.vertex_count = vertices;
    d.elements = e;
    d.element_count = elements;
    d.corners = corners;
    d.container = container;
    CHECK(fsi_mesh_create(&m, &d) == FSI_OK);
    return m;
}

/* A ball: a cube of 6 n x n squares (2D: 4 n sides), blown up. inflate 0: the cube [-r, r]^3 itself, turned by q. */
static fsi_mesh *ball_of(fsi_context *context, int dim, fsi_vec3 center, double r, int n, int container, int inflate,
                         fsi_quat q)
{
    const int rows = dim == 3 ? n : 1;
    fsi_vec3 *x = (fsi_vec3 *)malloc(sizeof *x * (size_t)(6 * (n + 1) * (rows + 1)));
    int *t = (int *)malloc(sizeof *t * (size_t)(36 * n * rows)), f, i, j, v = 0, e = 0, k;
    fsi_mesh *m;
    for (f = 0; f < (dim == 3 ? 6 : 4); f++) {
        const int base = v;
        for (j = 0; j <= (dim == 3 ? n : 0); j++)
            for (i = 0; i <= n; i++) {
                const double a = 2.0 * i / n - 1, b = dim == 3 ? 2.0 * j / n - 1 : 0, sign = f & 1 ? 1 : -1;
                const double u = inflate ? tan(a * FSI_PI / 4) : a, w = inflate ? tan(b * FSI_PI / 4) : b;
                double p[3] = { 0, 0, 0 }, size;
                p[f / 2] = sign;
                if (dim == 3) {
                    p[(f / 2 + 1) % 3] = f & 1 ? u : -u;
                    p[(f / 2 + 2) % 3] = w;
                } else p[1 - f / 2] = (f & 1) == (f / 2) ? -u : u;
                size = inflate ? r / sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]) : r;
                x[v++] = fsi_v3_add(
                    center, fsi_quat_rotate(q, fsi_v3(REAL(size * p[0]), REAL(size * p[1]), REAL(size * p[2]))));
            }
        for (j = 0; j < (dim == 3 ? n : 1); j++)
            for (i = 0; i < n; i++) {
                const int a = base + j * (n + 1) + i, both[6] = {a, a + 1, a + n + 2, a, a + n + 2, a + n + 1},
                          side[2] = {a, a + 1};
                for (k = 0; k < (dim == 3 ? 6 : 2); k++) t[e++] = dim == 3 ? both[k] : side[k];
            }
    }
    m = mesh_of(context, dim, x, v, t, e / dim, container);
    free(x);
    free(t);
    return m;
}

static fsi_mesh *sphere_of(fsi_context *c, int dim, fsi_vec3 center, double r, int n)
{
    return ball_of(c, dim, center, r, n, 0, 1, fsi_quat_identity());
}

/* ---- filling ---------------------------------------------------------------------------------------------------- */

typedef double distance_fn(const void *shape, const fsi_grid *g, fsi_vec3 x);

/* All cells of the box against min(before, d) or max(before, -d); blocks exist just where there is a cell below band
   dx. */
static void check_filled(const fsi_field *phi, fsi_grid_operation op, int band, double before, distance_fn *distance,
                         const void *shape, double tolerance)
{
    const fsi_grid *g = phi->grid;
    const double limit = band * (double)g->dx;
    unsigned char *needed = (unsigned char *)calloc((size_t)(g->blocks[0] * g->blocks[1] * g->blocks[2]), 1);
    int i, j, k, p, deep = 0;
    double worst = 0;
    for (k = 0; k < g->n[2]; k++)
        for (j = 0; j < g->n[1]; j++)
            for (i = 0; i < g->n[0]; i++) {
                const double d =
                    fmin(fmax(distance(shape, g, fsi_grid_position(g, FSI_CELLS, i, j, k)), -limit), limit);
                const double want = op == FSI_GRID_ADD ? fmin(before, d) : fmax(before, -d);
                const double off = fabs((double)fsi_grid_at(phi, i, j, k) - want);
                p = ((k >> 3) * g->blocks[1] + (j >> 3)) * g->blocks[0] + (i >> 3);
                if (d < limit * (1 - 1e-6)) needed[p] = 1;
                else if (d < limit * (1 + 1e-6) && !needed[p]) needed[p] = 2; /* may exist or not */
                deep += d <= -limit;
                if (!(off <= worst)) worst = off;
            }
    CHECK_NEAR(worst / (double)g->dx, 0, tolerance);
    CHECK(deep > 0 || band > 4);
    for (p = 0; op == FSI_GRID_ADD && p < g->blocks[0] * g->blocks[1] * g->blocks[2]; p++)
        CHECK(needed[p] == 2 || (g->index[p] >= 0) == (needed[p] == 1));
    free(needed);
}

typedef struct ball { fsi_vec3 center; double radius; } ball;
static double distance_to_ball(const void *shape, const fsi_grid *g, fsi_vec3 x)
{
    const ball *b = (const ball *)shape;
    fsi_vec3 d = fsi_v3_sub(x, b->center);
    if (g->dim == 2) d.z = 0;
    return (double)fsi_v3_norm(d) - b->radius;
}

static void test_balls_fill_to_their_distance(void)
{
    uint64_t random = 9;
    int dim, trial;
    for (dim = 2; dim <= 3; dim++)
        for (trial = 0; trial < 24; trial++) {
            const int band = 2 + 3 * (trial & 1);
            fsi_grid *g = grid_of(NULL, dim, 57, 40, 33, 0.1, fsi_v3(REAL(-1), REAL(2), REAL(0.5)));
            fsi_field *phi = field_of(g, band * 0.1);
            ball b;
            b.center = fsi_v3(REAL(1 + 0.8 * test_random(&random)), REAL(4 + test_random(&random)),
                              REAL(2 + test_random(&random)));
            b.radius = 1.1 + 0.1 * test_random(&random);
            CHECK(fsi_grid_fill_sphere(phi, FSI_GRID_ADD, b.center, REAL(b.radius), band) == FSI_OK);
            check_filled(phi, FSI_GRID_ADD, band, band * 0.1, distance_to_ball, &b, TOL(1e-12, 1e-4));
            fsi_grid_destroy(g);
        }
}

static double distance_to_box(const void *shape, const fsi_grid *g, fsi_vec3 x)
{
    const fsi_box3 *b = (const fsi_box3 *)shape;
    const double q[3] = {fmax((double)(b->lo.x - x.x), (double)(x.x - b->hi.x)),
                         fmax((double)(b->lo.y - x.y), (double)(x.y - b->hi.y)),
                         g->dim == 3 ? fmax((double)(b->lo.z - x.z), (double)(x.z - b->hi.z)) : -1e30};
    const double most = fmax(q[0], fmax(q[1], q[2])), a = fmax(q[0], 0), c = fmax(q[1], 0), e = fmax(q[2], 0);
    return most > 0 ? sqrt(a * a + c * c + e * e) : most;
}

static void test_boxes_fill_and_empty_to_their_distance(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        fsi_grid *g = grid_of(NULL, dim, 41, 50, 38, 0.1, fsi_v3(0, 0, 0));
        fsi_field *phi = field_of(g, 0.4);
        fsi_box3 b, all;
        b.lo = fsi_v3(REAL(0.72), REAL(1.1), REAL(0.9));
        b.hi = fsi_v3(REAL(2.93), REAL(3.33), REAL(2.41));
        CHECK(fsi_grid_fill_box(phi, FSI_GRID_ADD, b, 4) == FSI_OK);
        check_filled(phi, FSI_GRID_ADD, 4, 0.4, distance_to_box, &b, TOL(1e-12, 1e-4));
        all.lo = fsi_v3(-100, -100, -100);
        all.hi = fsi_v3(100, 100, 100);
        CHECK(fsi_grid_fill_box(phi, FSI_GRID_ADD, all, 4) == FSI_OK);
        CHECK_NEAR(fsi_grid_at(phi, 40, 3, 0), -0.4, TOL(1e-15, 1e-7));
        CHECK(fsi_grid_fill_box(phi, FSI_GRID_REMOVE, b, 4) == FSI_OK);
        check_filled(phi, FSI_GRID_REMOVE, 4, -0.4, distance_to_box, &b, TOL(1e-12, 1e-4));
        fsi_grid_destroy(g);
    }
}

/* A pool that fills the box up to a height knows its top only; blocks reach down to the floor. */
static void test_a_pool_between_walls_has_only_a_top(void)
{
    int dim, i, j, k;
    for (dim = 2; dim <= 3; dim++) {
        fsi_grid *g = grid_of(NULL, dim, 20, 32, 16, 0.05, fsi_v3(1, 2, 3));
        fsi_field *phi = field_of(g, 0.3);
        fsi_box3 b;
        double worst = 0;
        b.lo = fsi_v3(1, 1, 3);
        b.hi = fsi_v3(REAL(2.00001), REAL(2.81), REAL(3.8));
        CHECK(fsi_grid_fill_box(phi, FSI_GRID_ADD, b, 6) == FSI_OK);
        for (k = 0; k < g->n[2]; k++)
            for (j = 0; j < g->n[1]; j++)
                for (i = 0; i < g->n[0]; i++)
                    worst = fmax(worst, fabs((double)fsi_grid_at(phi, i, j, k) -
                                             fmin(fmax((j + 0.5) * 0.05 - 0.81, -0.3), 0.3)));
        CHECK_NEAR(worst, 0, TOL(1e-12, 1e-6));
        fsi_grid_destroy(g);
    }
}

static double distance_to_mesh(const void *shape, const fsi_grid *g, fsi_vec3 x)
{
    const fsi_mesh *m = (const fsi_mesh *)shape;
    const double d = (double)fsi_mesh_signed_distance(m, x);
    (void)g;
    return m->container ? -d : d;
}

/* Coarse meshes go face by face, fine ones point by point; a cube whose sides go through the centres of cells is the
   hardest for signs. */
static void test_meshes_fill_to_their_distance(void)
{
    int dim, kind;
    for (dim = 2; dim <= 3; dim++)
        for (kind = 0; kind < 5; kind++) {
            fsi_grid *g = grid_of(NULL, dim, 40, 36, 38, 0.125, fsi_v3(REAL(-2.5), REAL(-2.25), REAL(-2.375)));
            fsi_field *phi = field_of(g, 0.5);
            const fsi_quat turn = fsi_quat_from_axis_angle(fsi_v3(1, 2, 3), REAL(kind == 2 ? 0.9 : 0));
            const fsi_vec3 center = kind == 3 ? fsi_v3(REAL(0.0625), REAL(0.0625), REAL(0.0625))
                                              : fsi_v3(REAL(0.11), REAL(-0.23), REAL(0.07));
            const double size = kind == 3 ? 1.25 : kind == 2 && dim == 2 ? 1.1 : 1.3;
            const fsi_quat flat = fsi_quat_from_axis_angle(fsi_v3(0, 0, 1), REAL(kind == 2 ? 0.5 : 0));
            fsi_mesh *m = ball_of(NULL, dim, center, size,
                                  kind == 1  ? (dim == 3 ? 90 : 4000)
                                  : kind < 2 ? 8
                                             : 2,
                                  kind == 4, kind < 2, dim == 3 ? turn : flat);
            CHECK(fsi_grid_fill_mesh(phi, FSI_GRID_ADD, m, 4) == FSI_OK);
            check_filled(phi, FSI_GRID_ADD, 4, 0.5, distance_to_mesh, m, TOL(1e-11, 1e-3));
            fsi_mesh_destroy(m);
            fsi_grid_destroy(g);
        }
}

static void test_the_distance_to_a_mesh_is_that_of_a_search(void)
{
    int dim, container, n, b, c;
    for (dim = 2; dim <= 3; dim++)
        for (container = 0; container < 2; container++)
            for (n = 3; n <= 48; n += 45) {
                fsi_grid *g = grid_of(NULL, dim, 50, 43, 41, 0.1, fsi_v3(0, 0, 0));
                fsi_field *psi = field_of(g, 0);
                fsi_mesh *m = ball_of(NULL, dim, fsi_v3(REAL(2.3), REAL(2.1), REAL(2)), 1.4, n, container, 1,
                                      fsi_quat_identity());
                uint64_t random = 3;
                double worst = 0;
                blocks_of(g, 0.8, &random);
                CHECK(fsi_grid_mesh_distance(psi, m, 2 + n % 3) == FSI_OK);
                for (b = 0; b < g->block_count; b++)
                    for (c = 0; c < g->block_cells; c++) {
                        const double limit = (2 + n % 3) * 0.1;
                        int corner[3];
                        fsi_grid_corner(g, b, corner);
                        corner[0] += c % 8;
                        corner[1] += c / 8 % 8;
                        corner[2] += c / 64;
                        if (corner[0] >= g->n[0] || corner[1] >= g->n[1] || corner[2] >= g->n[2]) continue;
                        worst = fmax(
                            worst,
                            fabs((double)psi->value[b * g->block_cells + c] -
                                 fmin(fmax((double)fsi_mesh_signed_distance(
                                               m, fsi_grid_position(g, FSI_CELLS, corner[0], corner[1], corner[2])),
                                           -limit),
                                      limit)));
                    }
                CHECK_NEAR(worst, 0, TOL(1e-12, 1e-5));
                fsi_mesh_destroy(m);
                fsi_grid_destroy(g);
            }
}

/* ---- cut faces -------------------------------------------------------------------------------------------------- */

/* The shares as a face field a axis: 0 where there is none, -1 where no block is. */
static void spread_shares(const fsi_grid_faces *f, fsi_field *const *fields)
{
    int a, k;
    for (a = 0; a < fields[0]->grid->dim; a++) {
        for (k = 0; k < fields[a]->grid->block_count * fields[a]->grid->block_cells; k++) fields[a]->value[k] = 0;
        for (k = f->first[a]; k < f->first[a + 1]; k++) {
            CHECK(f->solid[k] > 0 && f->solid[k] <= 1);
            CHECK(k == f->first[a] || f->entry[k] > f->entry[k - 1]);
            fields[a]->value[f->entry[k]] = f->solid[k];
        }
    }
    CHECK(f->first[0] == 0 && f->first[3] == f->count && f->first[fields[0]->grid->dim] == f->count);
}

static void face_fields(fsi_grid *g, fsi_field **fields)
{
    int a;
    for (a = 0; a < g->dim; a++)
        CHECK(fsi_grid_add_field(g, (fsi_grid_place)(FSI_FACES_X + a), -1, &fields[a]) == FSI_OK);
}

static fsi_grid_faces *faces_of(fsi_context *c, const fsi_grid *g, const fsi_mesh *m)
{
    fsi_grid_faces *f = NULL;
    CHECK(fsi_grid_faces_create(&f, c) == FSI_OK);
    CHECK(fsi_grid_faces_build(f, g, m) == FSI_OK);
    return f;
}

/* Share of the square at p with sides u, v (2D: side u) below the plane n.x = level: the polygon clipped, by the
   shoelace formula. */
static double share_below(const double *p, const double *u, const double *v, int dim, const double *n, double level)
{
    double d[4], x[10][2], area = 0;
    const double s[4][2] = { { 0, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 } };
    int k, a, count = 0;
    for (k = 0; k < 4; k++)
        for (a = 0, d[k] = -level; a < 3; a++) d[k] += n[a] * (p[a] + s[k][0] * u[a] + s[k][1] * v[a]);
    if (dim == 2)
        return fmin(fmax(fmin(d[0], d[1]) >= 0   ? 0
                         : fmax(d[0], d[1]) <= 0 ? 1
                                                 : -fmin(d[0], d[1]) / fabs(d[0] - d[1]),
                         0),
                    1);
    for (k = 0; k < 4; k++) {
        const int m = (k + 1) & 3;
        if (d[k] < 0) x[count][0] = s[k][0], x[count++][1] = s[k][1];
        if ((d[k] < 0) != (d[m] < 0)) {
            const double t = d[k] / (d[k] - d[m]);
            x[count][0] = s[k][0] + t * (s[m][0] - s[k][0]), x[count++][1] = s[k][1] + t * (s[m][1] - s[k][1]);
        }
    }
    for (k = 0; k < count; k++) area += (x[k][0] * x[(k + 1) % count][1] - x[(k + 1) % count][0] * x[k][1]) / 2;
    return area;
}

/* One side of a large turned cube crosses the grid: shares are those of the plane, and those of a cell close it with a
   piece of the plane. */
static void test_faces_cut_by_a_plane_are_exact(void)
{
    int dim, trial, a, i, j, k;
    uint64_t random = 11;
    for (dim = 2; dim <= 3; dim++)
        for (trial = 0; trial < 6; trial++) {
            fsi_grid *g = grid_of(NULL, dim, 21, 18, 16, 0.5, fsi_v3(-5, -4, -4));
            fsi_field *share[3];
            const fsi_vec3 axis = dim == 3 ? fsi_v3(REAL(test_random(&random) - 0.5), REAL(test_random(&random) - 0.5),
                                                    REAL(test_random(&random) - 0.5))
                                           : fsi_v3(0, 0, 1);
            const fsi_quat q = fsi_quat_from_axis_angle(axis, REAL(trial == 0 ? 0 : 6 * test_random(&random)));
            const fsi_vec3 normal = fsi_quat_rotate(q, fsi_v3(1, 0, 0));
            const double level = trial == 0 ? 0.5 : test_random(&random), size = 40;
            const double n[3] = { (double)normal.x, (double)normal.y, (double)normal.z };
            fsi_mesh *m = ball_of(NULL, dim, fsi_v3_scale(normal, REAL(level - size)), size, 3, 0, 0, q);
            fsi_grid_faces *f;
            double worst = 0, tilt = 0;
            blocks_of(g, 2, &random);
            face_fields(g, share);
            f = faces_of(NULL, g, m);
            spread_shares(f, share);
            for (a = 0; a < dim; a++)
                for (k = 0; k < fsi_grid_size(g, share[a]->place, 2); k++)
                    for (j = 0; j < fsi_grid_size(g, share[a]->place, 1); j++)
                        for (i = 0; i < fsi_grid_size(g, share[a]->place, 0); i++) {
                            const double p[3] = { -5 + 0.5 * i, -4 + 0.5 * j, dim == 3 ? -4 + 0.5 * k : 0 };
                            double u[3] = { 0, 0, 0 }, v[3] = { 0, 0, 0 };
                            u[dim == 3 ? (a + 1) % 3 : 1 - a] = 0.5;
                            if (dim == 3) v[(a + 2) % 3] = 0.5;
                            worst = fmax(worst, fabs((double)fsi_grid_at(share[a], i, j, k) -
                                                     share_below(p, u, v, dim, n, trial == 0 ? level + 1e-12 : level)));
                        } /* trial 0: the plane lies in faces of the grid, which are covered */
            CHECK_NEAR(worst, 0, TOL(1e-11, 1e-4));
            for (k = 0; k < g->n[2]; k++)
                for (j = 0; j < g->n[1]; j++)
                    for (i = 0; i < g->n[0]; i++) {
                        const double s[3] = {
                            (double)(fsi_grid_at(share[0], i + 1, j, k) - fsi_grid_at(share[0], i, j, k)),
                            (double)(fsi_grid_at(share[1], i, j + 1, k) - fsi_grid_at(share[1], i, j, k)),
                            dim == 3 ? (double)(fsi_grid_at(share[2], i, j, k + 1) - fsi_grid_at(share[2], i, j, k))
                                     : 0};
                        tilt = fmax(tilt, fabs(s[0] * n[1] - s[1] * n[0]) + fabs(s[1] * n[2] - s[2] * n[1]) +
                                              fabs(s[2] * n[0] - s[0] * n[2]));
                    }
            CHECK_NEAR(tilt, 0, TOL(1e-11, 1e-3));
            fsi_grid_faces_destroy(f);
            fsi_mesh_destroy(m);
            fsi_grid_destroy(g);
        }
}

/* Volume of a ball from the shares of one axis: each is the area of a cross-section; radius in cells. */
static double ball_volume_error(int dim, double radius, int axis, int container)
{
    const int n = (int)(2 * radius) + 8;
    const fsi_vec3 center = fsi_v3(REAL(0.5 * n + 0.137), REAL(0.5 * n - 0.211), REAL(0.5 * n + 0.071));
    fsi_grid *g = grid_of(NULL, dim, n, n, n, 1, fsi_v3(0, 0, 0));
    fsi_mesh *m = ball_of(NULL, dim, center, radius, dim == 3 ? 40 : 500, container, 1, fsi_quat_identity());
    fsi_mesh *solid = sphere_of(NULL, dim, center, radius, dim == 3 ? 40 : 500);
    fsi_mass_properties mass;
    fsi_grid_faces *f;
    uint64_t random = 1;
    double sum = 0, whole = dim == 3 ? (double)n * n * (n + 1) : n * (n + 1.0);
    int k;
    blocks_of(g, 2, &random);
    f = faces_of(NULL, g, m);
    for (k = f->first[axis]; k < f->first[axis + 1]; k++) sum += (double)f->solid[k];
    if (container) sum = whole - sum;
    fsi_grid_faces_destroy(f);
    fsi_mesh_destroy(m);
    fsi_grid_destroy(g);
    CHECK(fsi_mesh_mass(solid, 1, 1, &mass) == FSI_OK);
    fsi_mesh_destroy(solid);
    return sum / (double)mass.volume - 1;
}

static void test_shares_give_the_volume_of_a_ball(void)
{
    int dim, axis;
    for (dim = 2; dim <= 3; dim++)
        for (axis = 0; axis < dim; axis++) {
            if (getenv("TEST_QUALITY"))
                printf("%d %d: %g %g\n", dim, axis, ball_volume_error(dim, 8, axis, 0),
                       ball_volume_error(dim, 16, axis, 0));
            const double e8 = ball_volume_error(dim, 8, axis, 0), e16 = ball_volume_error(dim, 16, axis, 0),
                         other = ball_volume_error(dim, 8, axis, 1);
            CHECK_NEAR(e8, 0, 0.01);
            CHECK_NEAR(e16, e8 / 4, 0.0008); /* second order */
            CHECK_NEAR(other, e8, TOL(1e-10, 1e-5)); /* a container holds what the solid displaces */
        }
}

/* The list is the same whether neighbours exist or not, and whole inside. */
static void test_faces_do_not_depend_on_the_blocks_around(void)
{
    int dim, a, k;
    for (dim = 2; dim <= 3; dim++) {
        fsi_grid *g = grid_of(NULL, dim, 43, 40, 47, 1, fsi_v3(0, 0, 0)),
                 *h = grid_of(NULL, dim, 43, 40, 47, 1, fsi_v3(0, 0, 0));
        fsi_mesh *m = sphere_of(NULL, dim, fsi_v3(REAL(21.3), REAL(20.1), REAL(24.6)), 17.7, 15);
        fsi_grid_faces *all, *some;
        fsi_field *whole[3], *part[3];
        uint64_t random = 8;
        double worst = 0;
        int full = 0;
        blocks_of(g, 2, &random);
        blocks_of(h, 0.4, &random);
        face_fields(g, whole);
        face_fields(h, part);
        spread_shares(all = faces_of(NULL, g, m), whole);
        spread_shares(some = faces_of(NULL, h, m), part);
        for (a = 0; a < dim; a++)
            for (k = 0; k < h->block_count * h->block_cells; k++) {
                int corner[3], c = k % h->block_cells;
                fsi_grid_corner(h, k / h->block_cells, corner);
                corner[0] += c % 8, corner[1] += c / 8 % 8, corner[2] += c / 64;
                worst =
                    fmax(worst, fabs((double)(part[a]->value[k] -
                                              whole[a]->value[fsi_grid_entry(g, corner[0], corner[1], corner[2])])));
                full += part[a]->value[k] >= 1;
            }
        CHECK_NEAR(worst, 0, TOL(1e-12, 1e-4));
        CHECK(full > 50);
        fsi_grid_faces_destroy(all);
        fsi_grid_faces_destroy(some);
        fsi_mesh_destroy(m);
        fsi_grid_destroy(g);
        fsi_grid_destroy(h);
    }
}

/* A side is cut where the mesh crosses it, also where distances are not straight: around the corners of a square, the
   upright edges of a cube. */
static void sides_are_cut_where_the_mesh_crosses(int dim)
{
    const fsi_quat q = fsi_quat_from_axis_angle(fsi_v3(0, 0, 1), REAL(0.4));
    const fsi_vec3 center = fsi_v3(REAL(8.3), REAL(7.6), dim == 3 ? REAL(8.4) : 0);
    fsi_grid *g = grid_of(NULL, dim, 16, 16, dim == 3 ? 16 : 1, 1, fsi_v3(0, 0, 0));
    fsi_mesh *m = ball_of(NULL, dim, center, 4.2, 1, 0, 0, q);
    fsi_field *share[3];
    fsi_grid_faces *f;
    uint64_t random = 1;
    int a, i, j, e, cut = 0;
    const int k = dim == 3 ? 8 : 0; /* a layer that the cube passes through from below to above */
    double worst = 0;
    blocks_of(g, 2, &random);
    face_fields(g, share);
    f = faces_of(NULL, g, m);
    spread_shares(f, share);
    for (a = 0; a < 2; a++)
        for (j = 0; j < 16; j++)
            for (i = 0; i < 16; i++) {
                const fsi_vec3 at = fsi_quat_rotate(fsi_quat_conj(q), fsi_v3_sub(fsi_v3(REAL(i), REAL(j), 0), center));
                const fsi_vec3 way = fsi_quat_rotate(fsi_quat_conj(q), a == 0 ? fsi_v3(0, 1, 0) : fsi_v3(1, 0, 0)),
                               end = fsi_v3_add(at, way);
                const double p[2] = { (double)at.x, (double)at.y }, w[2] = { (double)way.x, (double)way.y };
                double from = 0, to = 1;
                if ((fmax(fabs(p[0]), fabs(p[1])) < 4.2) == (fmax(fabs((double)end.x), fabs((double)end.y)) < 4.2))
                    continue;
                for (e = 0; e < 2; e++) { /* the part of the side between the two lines of each pair */
                    const double s = (-4.2 - p[e]) / w[e], t = (4.2 - p[e]) / w[e];
                    from = fmax(from, fmin(s, t));
                    to = fmin(to, fmax(s, t));
                }
                worst = fmax(worst, fabs((double)fsi_grid_at(share[a], i, j, k) - (to - from)));
                cut++;
            }
    CHECK(cut > 30);
    CHECK_NEAR(worst, 0, TOL(1e-12, 1e-5));
    fsi_grid_faces_destroy(f);
    fsi_mesh_destroy(m);
    fsi_grid_destroy(g);
}

static void test_sides_are_cut_where_the_mesh_crosses(void)
{
    sides_are_cut_where_the_mesh_crosses(2);
    sides_are_cut_where_the_mesh_crosses(3);
}

/* Walls that lie in faces of the grid cover them: all faces within the closed cube are covered, all others open. */
static void test_walls_in_the_grid_cover_its_faces(void)
{
    int dim, a, i, j, k, out;
    for (dim = 2; dim <= 3; dim++)
        for (out = -1; out <= 1; out++) { /* exactly there, and off by what rounding of a file of floats does */
            const double dx = 0.02, off = out * TOL(1e-6, 1e-5) * dx;
            fsi_grid *g = grid_of(NULL, dim, 16, 16, dim == 3 ? 16 : 1, dx, fsi_v3(0, 0, 0));
            fsi_mesh *m = ball_of(NULL, dim, fsi_v3(REAL(8 * dx), REAL(8 * dx), dim == 3 ? REAL(8 * dx) : 0),
                                  4 * dx + off, 1, 0, 0, fsi_quat_identity());
            fsi_field *share[3];
            fsi_grid_faces *f;
            uint64_t random = 1;
            double worst = 0;
            blocks_of(g, 2, &random);
            face_fields(g, share);
            f = faces_of(NULL, g, m);
            spread_shares(f, share);
            for (a = 0; a < dim; a++)
                for (k = 0; k < g->n[2]; k++)
                    for (j = 0; j < 16; j++)
                        for (i = 0; i < 16; i++) {
                            const int at[3] = { i, j, k };
                            int inside = 1, b;
                            for (b = 0; b < dim; b++) inside &= at[b] >= 4 && at[b] < 12 + (a == b);
                            worst = fmax(worst, fabs((double)fsi_grid_at(share[a], i, j, k) - inside));
                        }
            CHECK_NEAR(worst, 0, TOL(1e-5, 1e-3));
            fsi_grid_faces_destroy(f);
            fsi_mesh_destroy(m);
            fsi_grid_destroy(g);
        }
}

/* ---- level set surface ------------------------------------------------------------------------------------------ */

static fsi_grid_surface *surface_of(fsi_context *c, const fsi_field *phi, int capped)
{
    fsi_grid_surface *s = NULL;
    CHECK(fsi_grid_surface_create(&s, c) == FSI_OK);
    CHECK(fsi_grid_surface_update(s, phi, capped) == FSI_OK);
    return s;
}

static int compare_pairs(const void *a, const void *b)
{
    const int *p = (const int *)a, *q = (const int *)b;
    return p[0] != q[0] ? (p[0] > q[0]) - (p[0] < q[0]) : (p[1] > q[1]) - (p[1] < q[1]);
}

static double element_size(const fsi_grid_surface *s, int e) /* area or length */
{
    const int *c = s->elements + s->corners * e;
    const fsi_vec3 u = fsi_v3_sub(s->vertices[c[1]], s->vertices[c[0]]);
    return s->corners == 2 ? (double)fsi_v3_norm(u)
                           : (double)fsi_v3_norm(fsi_v3_cross(u, fsi_v3_sub(s->vertices[c[2]], s->vertices[c[0]]))) / 2;
}

/* What a surface is, in numbers. open: edges (2D: ends) that lack a partner in the other direction; all else must be in
   order. */
typedef struct shape { int open, euler; double volume, area, thinnest; } shape;
static shape shape_of(const fsi_grid_surface *s)
{
    const int c = s->corners, edges = c == 3 ? 3 * s->element_count : 2 * s->element_count;
    int *pair = (int *)malloc(sizeof(int) * 4 * (size_t)(edges + 1)),
        *used = (int *)calloc((size_t)s->vertex_count + 1, sizeof(int)), e, k, twins = 0;
    shape r;
    memset(&r, 0, sizeof r);
    r.thinnest = 1e30;
    for (e = 0; e < s->element_count; e++) {
        const int *v = s->elements + c * e;
        const fsi_vec3 p = s->vertices[v[0]], q = s->vertices[v[1]], t = s->vertices[v[c - 1]];
        for (k = 0; k < c; k++) {
            CHECK(v[k] >= 0 && v[k] < s->vertex_count && v[k] != v[(k + 1) % c]);
            used[v[k]] = 1;
            if (c == 3) { /* the edge and its direction */
                pair[2 * (3 * e + k)] = v[k];
                pair[2 * (3 * e + k) + 1] = v[(k + 1) % 3];
            } else { /* the vertex and whether the segment begins or ends there */
                pair[2 * (2 * e + k)] = v[k];
                pair[2 * (2 * e + k) + 1] = k;
            }
        }
        r.area += element_size(s, e);
        r.thinnest = fmin(r.thinnest, element_size(s, e));
        r.volume += c == 3 ? (double)fsi_v3_dot(p, fsi_v3_cross(q, t)) / 6
                           : ((double)q.x * (double)p.y - (double)p.x * (double)q.y) / 2;
    }
    for (k = 0; k < s->vertex_count; k++) CHECK(used[k]);
    qsort(pair, (size_t)edges, 2 * sizeof(int), compare_pairs);
    for (k = 0; k < edges; k++) {
        const int back[2] = { c == 3 ? pair[2 * k + 1] : pair[2 * k], c == 3 ? pair[2 * k] : 1 - pair[2 * k + 1] };
        if (k > 0) CHECK(compare_pairs(pair + 2 * k, pair + 2 * k - 2) != 0); /* no direction twice */
        if (bsearch(back, pair, (size_t)edges, 2 * sizeof(int), compare_pairs)) twins++;
        else r.open++;
    }
    r.euler = c == 3 ? s->vertex_count - (twins / 2 + r.open) + s->element_count : s->vertex_count - s->element_count;
    free(pair);
    free(used);
    return r;
}

/* Normals have unit length and agree with the elements around them, better than `cosine`. */
static void check_normals(const fsi_grid_surface *s, double cosine)
{
    int e, k;
    double worst = 1, off = 0;
    for (k = 0; k < s->vertex_count; k++) off = fmax(off, fabs((double)fsi_v3_norm(s->normals[k]) - 1));
    CHECK_NEAR(off, 0, TOL(1e-12, 1e-5));
    for (e = 0; e < s->element_count; e++) {
        const int *c = s->elements + s->corners * e;
        const fsi_vec3 u = fsi_v3_sub(s->vertices[c[1]], s->vertices[c[0]]);
        const fsi_vec3 n = fsi_v3_unit(
            s->corners == 3 ? fsi_v3_cross(u, fsi_v3_sub(s->vertices[c[2]], s->vertices[c[0]])) : fsi_v3(-u.y, u.x, 0));
        for (k = 0; k < s->corners; k++) worst = fmin(worst, (double)fsi_v3_dot(n, s->normals[c[k]]));
    }
    CHECK(worst >= cosine);
}

/* The volume, area and normals of a ball, R in cells; its distance is put in. */
static void ball_errors(int dim, double radius, double *volume, double *area, double *normal)
{
    const int n = (int)(2 * radius) + 12;
    const fsi_vec3 center = fsi_v3(REAL((0.5 * n + 0.137) / radius), REAL((0.5 * n - 0.211) / radius),
                                   REAL(dim == 3 ? (0.5 * n + 0.071) / radius : 0));
    fsi_grid *g = grid_of(NULL, dim, n, n, n, 1 / radius, fsi_v3(0, 0, 0));
    fsi_field *phi = field_of(g, 3 / radius);
    fsi_grid_surface *s;
    shape r;
    int k;
    CHECK(fsi_grid_fill_sphere(phi, FSI_GRID_ADD, center, 1, 3) == FSI_OK);
    s = surface_of(NULL, phi, 1);
    r = shape_of(s);
    CHECK(r.open == 0 && r.euler == (dim == 3 ? 2 : 0));
    CHECK(r.thinnest > 1e-7 / (dim == 3 ? radius * radius : radius));
    check_normals(s, 0.8);
    *volume = r.volume / (dim == 3 ? 4 * FSI_PI / 3 : FSI_PI) - 1;
    *area = r.area / (dim == 3 ? 4 * FSI_PI : 2 * FSI_PI) - 1;
    *normal = 0;
    for (k = 0; k < s->vertex_count; k++)
        *normal = fmax(*normal, 1 - (double)fsi_v3_dot(s->normals[k], fsi_v3_unit(fsi_v3_sub(s->vertices[k], center))));
    *normal = sqrt(2 * fmax(*normal, 0)); /* the angle */
    {
        fsi_context c = fsi_default_context();
        fsi_mesh_desc d = fsi_mesh_default_desc();
        fsi_mesh *m = NULL;
        d.context = &c;
        d.vertices = s->vertices;
        d.vertex_count = s->vertex_count;
        d.elements = s->elements;
        d.element_count = s->element_count;
        d.corners = dim;
        d.repair = 0;
        CHECK(fsi_mesh_create(&m, &d) == FSI_OK);
        CHECK(m && m->report.text[0] == 0 && m->vertex_count == s->vertex_count);
        fsi_mesh_destroy(m);
    }
    fsi_grid_surface_destroy(s);
    fsi_grid_destroy(g);
}

static void test_the_surface_of_a_ball_converges(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        double v8, a8, n8, v16, a16, n16;
        ball_errors(dim, 8, &v8, &a8, &n8);
        ball_errors(dim, 16, &v16, &a16, &n16);
        CHECK_NEAR(v8, 0, dim == 3 ? 0.01 : 0.005);
        CHECK_NEAR(v16, v8 / 4, 0.15 * fabs(v8) + TOL(0, 1e-5)); /* second order: 1/4 */
        CHECK_NEAR(a16, a8 / 4, 0.2 * fabs(a8) + TOL(0, 1e-5));
        CHECK_NEAR(n8, 0, 0.02);
        CHECK_NEAR(n16, 0, TOL(0.006, 0.008));
    }
}

/* Random signs in random blocks: all cases of a cube, ambiguous faces, walls, edges and corners of the box, blocks next
   to none. Closed all the same; and what is left open at the walls lies there. */
static void test_noise_has_a_closed_surface(void)
{
    static const int sizes[][3] = { { 17, 16, 15 }, { 24, 9, 23 }, { 1, 8, 7 }, { 1, 1, 1 }, { 33, 2, 31 } };
    static int seen[256];
    const char *report = getenv("TEST_QUALITY");
    uint64_t random = 17;
    int dim, trial, k, i, j, l, c, cases = 0;
    double thinnest = 1e30;
    for (dim = 2; dim <= 3; dim++)
        for (trial = 0; trial < 20; trial++) {
            const int *n = sizes[trial % 5];
            fsi_grid *g = grid_of(NULL, dim, n[0], n[1], n[2], 0.5, fsi_v3(REAL(-1), REAL(3), REAL(dim == 3 ? 2 : 0)));
            fsi_field *phi = field_of(g, trial & 1 ? 1 : 0);
            fsi_grid_surface *s;
            shape r;
            blocks_of(g, trial < 5 ? 2 : 0.6, &random);
            for (k = 0; k < g->block_count * g->block_cells; k++) {
                const int full = trial % 4 == 3 && k / g->block_cells % 2; /* blocks that are liquid all over */
                const double value = test_random(&random) - (full ? 1.01 : (trial % 3) * 0.25),
                             tiny = test_random(&random);
                phi->value[k] = REAL(tiny < 0.05 && !full ? 0 : tiny < 0.1 ? 1e-30 * value : value);
            }
            s = surface_of(NULL, phi, 1);
            r = shape_of(s);
            CHECK(r.open == 0);
            thinnest = fmin(thinnest, s->element_count ? r.thinnest / (dim == 3 ? 0.25 : 0.5) : 1);
            check_normals(s, -1);
            CHECK(s->element_count == 0 || r.volume > 0);
            for (k = 0; dim == 3 && k + 1 < n[2]; k++)
                for (j = 0; j + 1 < n[1]; j++)
                    for (i = 0; i + 1 < n[0]; i++) {
                        for (l = c = 0; c < 8; c++)
                            l |= (fsi_grid_at(phi, i + (c & 1), j + (c >> 1 & 1), k + (c >> 2)) < 0) << c;
                        cases += !seen[l];
                        seen[l] = 1;
                    }
            CHECK(fsi_grid_surface_update(s, phi, 0) == FSI_OK);
            (void)shape_of(s);
            fsi_grid_surface_destroy(s);
            fsi_grid_destroy(g);
        }
    CHECK(cases == 256);
    CHECK(thinnest > TOL(1e-7, 1e-8)); /* 1e-3 x 1e-3 of a cell's side, at worst */
    if (report) printf("smallest element %g of a cell's side\n", thinnest);
}

/* A pool holds what it holds, to the corners; without caps the top is left. */
static void test_a_pool_is_closed_at_the_walls(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        fsi_grid *g = grid_of(NULL, dim, 16, 20, 23, 0.25, fsi_v3(0, 0, 0));
        fsi_field *phi = field_of(g, 1);
        fsi_grid_surface *s;
        const double base = dim == 3 ? 4 * 5.75 : 4;
        fsi_box3 b;
        shape r;
        int walls = 0;
        b.lo = fsi_v3(-1, -1, -1);
        b.hi = fsi_v3(9, REAL(2.33), 9);
        CHECK(fsi_grid_fill_box(phi, FSI_GRID_ADD, b, 4) == FSI_OK);
        s = surface_of(NULL, phi, 1);
        r = shape_of(s);
        CHECK(r.open == 0 && r.euler == (dim == 3 ? 2 : 0));
        CHECK_NEAR(r.volume, base * 2.33, TOL(1e-12, 1e-4));
        CHECK_NEAR(r.area, dim == 3 ? 2 * base + 2 * 2.33 * (4 + 5.75) : 2 * base + 2 * 2.33, TOL(1e-11, 1e-4));
        CHECK(fsi_grid_surface_update(s, phi, 0) == FSI_OK);
        r = shape_of(s);
        CHECK_NEAR(r.area, base, TOL(1e-12, 1e-4));
        CHECK(r.open == (dim == 3 ? 2 * (17 + 24) : 2));
        for (k = 0; k < s->vertex_count; k++) {
            CHECK_NEAR(s->vertices[k].y, 2.33, TOL(1e-12, 1e-5));
            CHECK_NEAR(s->normals[k].y, 1, TOL(1e-12, 1e-5));
            walls += s->vertices[k].x <= 0 || s->vertices[k].x >= 4;
        }
        CHECK(walls == (dim == 3 ? 2 * 25 : 2));
        fsi_grid_surface_destroy(s);
        fsi_grid_destroy(g);
    }
}

/* A ball whose centre is in the corner of the box: an eighth of it is there (2D: a quarter). */
static void test_a_ball_in_a_corner_is_an_eighth(void)
{
    int dim, corner;
    for (dim = 2; dim <= 3; dim++)
        for (corner = 0; corner < 8; corner += 7) {
            fsi_grid *g = grid_of(NULL, dim, 24, 23, 22, 0.1, fsi_v3(0, 0, 0));
            fsi_field *phi = field_of(g, 0.4);
            const fsi_vec3 center = corner ? fsi_v3(REAL(2.4), REAL(2.3), REAL(2.2)) : fsi_v3(0, 0, 0);
            fsi_grid_surface *s;
            shape r;
            CHECK(fsi_grid_fill_sphere(phi, FSI_GRID_ADD, center, REAL(1.6), 4) == FSI_OK);
            s = surface_of(NULL, phi, 1);
            r = shape_of(s);
            CHECK(r.open == 0 && r.euler == (dim == 3 ? 2 : 0));
            CHECK_NEAR(r.volume / (dim == 3 ? FSI_PI / 6 * 1.6 * 1.6 * 1.6 : FSI_PI / 4 * 1.6 * 1.6), 1, 0.005);
            check_normals(s, -0.01); /* where the liquid meets the wall they are those of its surface */
            fsi_grid_surface_destroy(s);
            fsi_grid_destroy(g);
        }
}

/* ---- promises --------------------------------------------------------------------------------------------------- */

/* Everything in a row; the hash of all results, 0 and the status when one failed. */
static fsi_status everything(fsi_context *c, int dim, uint64_t *hash)
{
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi_grid *g = NULL;
    fsi_field *phi = NULL, *psi = NULL;
    fsi_grid_faces *f = NULL;
    fsi_grid_surface *s = NULL;
    fsi_mesh *m = sphere_of(NULL, dim, fsi_v3(REAL(0.6), REAL(0.4), REAL(0.5)), 0.23, 6);
    fsi_box3 pool;
    fsi_status status;
    uint64_t h = 1;
    int k;
    d.context = c;
    d.dim = dim;
    d.n[0] = 40, d.n[1] = 39, d.n[2] = 37;
    d.dx = REAL(0.025);
    pool.lo = fsi_v3(-1, -1, -1);
    pool.hi = fsi_v3(2, REAL(0.3), 2);
    status = fsi_grid_create(&g, &d);
    if (status == FSI_OK) status = fsi_grid_add_field(g, FSI_CELLS, REAL(0.1), &phi);
    if (status == FSI_OK) status = fsi_grid_add_field(g, FSI_CELLS, REAL(0.1), &psi);
    if (status == FSI_OK) status = fsi_grid_faces_create(&f, c);
    if (status == FSI_OK) status = fsi_grid_surface_create(&s, c);
    for (k = 0; k < 6 && status == FSI_OK; k++) { /* a call that fails leaves the level set as it was */
        const int blocks = g->block_count;
        const uint64_t before = fsi_hash(phi->value, (size_t)(blocks * g->block_cells) * sizeof(fsi_real), 1);
        if (k == 0) status = fsi_grid_fill_box(phi, FSI_GRID_ADD, pool, 4);
        if (k == 1)
            status = fsi_grid_fill_sphere(phi, FSI_GRID_ADD, fsi_v3(REAL(0.5), REAL(0.7), REAL(0.5)), REAL(0.2), 4);
        if (k == 2) status = fsi_grid_fill_mesh(phi, FSI_GRID_REMOVE, m, 4);
        if (k == 3) status = fsi_grid_mesh_distance(psi, m, 3);
        if (k == 4) status = fsi_grid_faces_build(f, g, m);
        if (k == 5) status = fsi_grid_surface_update(s, phi, 1);
        if (status != FSI_OK)
            CHECK(g->block_count == blocks &&
                  before == fsi_hash(phi->value, (size_t)(blocks * g->block_cells) * sizeof(fsi_real), 1));
    }
    if (status == FSI_OK) {
        const size_t cells = (size_t)(g->block_count * g->block_cells), v = (size_t)s->vertex_count,
                     n = (size_t)f->count;
        CHECK(n > 100 && v > 100);
        h = fsi_hash(phi->value, cells * sizeof(fsi_real), h);
        h = fsi_hash(psi->value, cells * sizeof(fsi_real), h);
        h = fsi_hash(f->entry, n * sizeof(int), h);
        h = fsi_hash(f->solid, n * sizeof(fsi_real), h);
        h = fsi_hash(s->vertices, v * sizeof(fsi_vec3), h);
        h = fsi_hash(s->normals, v * sizeof(fsi_vec3), h);
        h = fsi_hash(s->elements, (size_t)(s->element_count * s->corners) * sizeof(int), h);
        { /* once more, with memory at hand: the same, and nothing is allocated */
            const long long allocs = c ? c->allocs : 0;
            CHECK(fsi_grid_mesh_distance(psi, m, 3) == FSI_OK && fsi_grid_faces_build(f, g, m) == FSI_OK &&
                  fsi_grid_surface_update(s, phi, 1) == FSI_OK);
            CHECK(!c || c->allocs == allocs);
            CHECK((size_t)s->vertex_count == v && (size_t)f->count == n);
        }
    }
    *hash = status == FSI_OK ? h : 0;
    fsi_grid_surface_destroy(s);
    fsi_grid_faces_destroy(f);
    fsi_grid_destroy(g);
    fsi_mesh_destroy(m);
    return status;
}

static void test_any_number_of_threads_gives_the_same_bits(void)
{
    static const int threads[] = { 1, 2, 5 };
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t one = 0, hash;
        CHECK(everything(NULL, dim, &one) == FSI_OK);
        for (k = 0; k < 3; k++) {
            fsi_context c = fsi_default_context();
            test_threads(&c, threads[k], 1);
            CHECK(everything(&c, dim, &hash) == FSI_OK && hash == one);
        }
    }
}

static void test_every_allocation_may_fail(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        fsi_status status = FSI_ERROR_MEMORY;
        uint64_t hash = 0;
        long k;
        for (k = 1; status == FSI_ERROR_MEMORY && k < 500; k++) {
            fsi_context c = fsi_default_context();
            test_fail_allocator(&c, k);
            status = everything(&c, dim, &hash);
            CHECK(status == FSI_OK || c.error.status == FSI_ERROR_MEMORY);
            CHECK(test_live_bytes() == 0);
        }
        CHECK(status == FSI_OK && k > 12);
    }
}

/* Updates and builds that fail leave the former result, whichever of their allocations it is. */
static void test_the_former_result_survives_a_failure(void)
{
    fsi_context c = fsi_default_context();
    fsi_mesh *tiny = sphere_of(NULL, 3, fsi_v3(16, 16, 16), 3, 4),
             *large = sphere_of(NULL, 3, fsi_v3(16, 16, 16), 12, 12);
    fsi_grid *g;
    fsi_field *phi;
    fsi_grid_surface *s;
    fsi_grid_faces *f;
    int k, failures = 0, vertices, elements, count;
    uint64_t before, list;
    test_fail_allocator(&c, 0);
    g = grid_of(&c, 3, 32, 32, 32, 1, fsi_v3(0, 0, 0));
    phi = field_of(g, 4);
    CHECK(fsi_grid_fill_sphere(phi, FSI_GRID_ADD, fsi_v3(16, 16, 16), 4, 4) == FSI_OK);
    s = surface_of(&c, phi, 1);
    f = faces_of(&c, g, tiny);
    CHECK(fsi_grid_fill_sphere(phi, FSI_GRID_ADD, fsi_v3(16, 16, 16), 13, 4) == FSI_OK);
    vertices = s->vertex_count, elements = s->element_count, count = f->count;
    before = fsi_hash(s->vertices, (size_t)vertices * sizeof(fsi_vec3),
                      fsi_hash(s->elements, (size_t)(3 * elements) * sizeof(int), 1));
    list = fsi_hash(f->solid, (size_t)count * sizeof(fsi_real), fsi_hash(f->entry, (size_t)count * sizeof(int), 1));
    for (k = 0; k < 8; k++) {
        fsi_status status;
        test_fail_allocator(&c, k % 4 + 1);
        status = k < 4 ? fsi_grid_surface_update(s, phi, 1) : fsi_grid_faces_build(f, g, large);
        test_fail_allocator(&c, 0);
        if (status == FSI_OK) continue;
        failures++;
        CHECK(status == FSI_ERROR_MEMORY && s->vertex_count >= vertices && f->count == count);
        if (s->vertex_count == vertices)
            CHECK(s->element_count == elements &&
                  before == fsi_hash(s->vertices, (size_t)vertices * sizeof(fsi_vec3),
                                     fsi_hash(s->elements, (size_t)(3 * elements) * sizeof(int), 1)));
        CHECK(list ==
              fsi_hash(f->solid, (size_t)count * sizeof(fsi_real), fsi_hash(f->entry, (size_t)count * sizeof(int), 1)));
    }
    CHECK(failures >= 5);
    CHECK(fsi_grid_surface_update(s, phi, 1) == FSI_OK && s->vertex_count > 2 * vertices &&
          fsi_grid_faces_build(f, g, large) == FSI_OK && f->count > 2 * count);
    fsi_grid_surface_destroy(s);
    fsi_grid_faces_destroy(f);
    fsi_mesh_destroy(tiny);
    fsi_mesh_destroy(large);
    fsi_grid_destroy(g);
    CHECK(test_live_bytes() == 0);
}

static int refused(const fsi_context *c, fsi_status status, fsi_status wanted, const char *what)
{
    return status == wanted && strstr(c->error.message, what) != NULL;
}

/* What a mesh covers is what the pressure solver takes for walls: wholly covered faces stand still, the rest is free of
   divergence. */
static void test_the_pressure_solver_takes_these_faces(void)
{
    int dim, a;
    for (dim = 2; dim <= 3; dim++) {
        fsi_context c = fsi_default_context();
        fsi_grid *g = grid_of(&c, dim, 16, 16, dim == 3 ? 16 : 1, 0.1, fsi_v3(0, 0, 0));
        fsi_field *phi = field_of(g, 0.8);
        fsi_mesh *m = sphere_of(&c, dim, fsi_v3(REAL(0.8), REAL(0.5), dim == 3 ? REAL(0.8) : 0), 0.3, 8);
        fsi_pressure_desc d = fsi_pressure_default_desc();
        fsi_pressure_flow f = fsi_pressure_default_flow();
        fsi_pressure_solid solid;
        fsi_grid_faces *faces = NULL;
        fsi_pressure *s = NULL;
        unsigned char *cell;
        fsi_box3 box;
        size_t cells, e;
        int i, covered = 0;
        d.context = &c;
        box.lo = fsi_v3(-1, -1, -1);
        box.hi = fsi_v3(3, 1, 3);
        memset(&solid, 0, sizeof solid);
        CHECK(fsi_grid_fill_box(phi, FSI_GRID_ADD, box, 4) == FSI_OK && fsi_pressure_create(&s, &d) == FSI_OK);
        CHECK(fsi_grid_faces_create(&faces, &c) == FSI_OK && fsi_grid_faces_build(faces, g, m) == FSI_OK &&
              faces->count > 0);
        cells = (size_t)g->block_count * (size_t)g->block_cells;
        cell = (unsigned char *)calloc(cells, 1);
        if (!CHECK(cell)) return;
        for (e = 0; e < cells; e++) cell[e] = phi->value[e] < 0 ? FSI_CELL_LIQUID : FSI_CELL_AIR;
        for (a = 0; a < dim; a++)
            CHECK(fsi_grid_add_field(g, (fsi_grid_place)(1 + a), a == 1 ? REAL(-0.5) : 0, &f.u[a]) == FSI_OK);
        for (i = 0; i < 16; i++)
            /* the floor */
            for (e = 0; e < (size_t)(dim == 3 ? 16 : 1); e++) f.u[1]->value[fsi_grid_entry(g, i, 0, (int)e)] = 0;
        solid.faces = faces;
        f.cell = cell;
        f.phi = phi;
        f.dt = REAL(0.1);
        f.solids = &solid;
        f.solid_count = 1;
        CHECK(fsi_pressure_project(s, &f) == FSI_OK);
        for (a = 0; a < dim; a++)
            for (i = faces->first[a]; i < faces->first[a + 1]; i++) {
                if (faces->solid[i] < 1) continue;
                CHECK(!(f.u[a]->value[faces->entry[i]] < 0 || f.u[a]->value[faces->entry[i]] > 0));
                covered++;
            }
        CHECK(covered > 0 && (double)fsi_v3_norm(solid.impulse) > 0 && s->stats.divergence < TOL(1e-6, 1e-3));
        free(cell);
        fsi_pressure_destroy(s);
        fsi_grid_faces_destroy(faces);
        fsi_mesh_destroy(m);
        fsi_grid_destroy(g);
        CHECK(c.bytes == 0);
    }
}

/* One triangle: a sheet, which encloses nothing. */
static fsi_mesh *sheet_of(void)
{
    const int triangle[3] = { 0, 1, 2 };
    const fsi_vec3 corner[3] = { { 0, 0, 0 }, { 1, 0, 0 }, { 0, 1, 0 } };
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *sheet = NULL;
    d.vertices = corner;
    d.vertex_count = 3;
    d.elements = triangle;
    d.element_count = 1;
    d.kind = FSI_MESH_TWO_SIDED;
    CHECK(fsi_mesh_create(&sheet, &d) == FSI_OK);
    return sheet;
}

static void test_bad_input_is_named(void)
{
    fsi_context c = fsi_default_context();
    fsi_grid *g = grid_of(&c, 3, 16, 16, 16, 0.1, fsi_v3(0, 0, 0)),
             *flat = grid_of(&c, 2, 16, 16, 1, 0.1, fsi_v3(0, 0, 0));
    fsi_field *phi = field_of(g, 0.4), *low = field_of(g, 0.1), *plane = field_of(flat, 0.4), *face = NULL, broken;
    fsi_mesh *m = sphere_of(&c, 3, fsi_v3(REAL(0.8), REAL(0.8), REAL(0.8)), 0.3, 4), *sheet = sheet_of();
    const fsi_vec3 x = fsi_v3(REAL(0.5), REAL(0.5), REAL(0.5)), nan3 = fsi_v3(REAL(test_nan()), 0, 0);
    const fsi_real nan = REAL(test_nan()), inf = REAL(test_inf());
    fsi_box3 box, wrong;
    int k = 7;
    CHECK(fsi_grid_add_field(g, FSI_FACES_X, 1, &face) == FSI_OK);
    broken = *phi;
    broken.cookie++;
    box.lo = fsi_v3(0, 0, 0);
    box.hi = x;
    CHECK(refused(&c, fsi_grid_fill_sphere(NULL, FSI_GRID_ADD, x, 1, 4), FSI_ERROR_COOKIE, ""));
    CHECK(refused(&c, fsi_grid_fill_sphere(&broken, FSI_GRID_ADD, x, 1, 4), FSI_ERROR_COOKIE, ""));
    CHECK(refused(&c, fsi_grid_fill_sphere(face, FSI_GRID_ADD, x, 1, 4), FSI_ERROR_ARGUMENT, "cells"));
    CHECK(refused(&c, fsi_grid_fill_sphere(phi, (fsi_grid_operation)k, x, 1, 4), FSI_ERROR_ARGUMENT, "operation"));
    for (k = -1; k < 20; k += 18) {
        CHECK(refused(&c, fsi_grid_fill_sphere(phi, FSI_GRID_ADD, x, 1, k), FSI_ERROR_ARGUMENT, "band"));
    }
    CHECK(refused(&c, fsi_grid_fill_sphere(low, FSI_GRID_ADD, x, 1, 4), FSI_ERROR_ARGUMENT, "background"));
    CHECK(refused(&c, fsi_grid_fill_sphere(phi, FSI_GRID_ADD, x, nan, 4), FSI_ERROR_NAN, "radius"));
    CHECK(refused(&c, fsi_grid_fill_sphere(phi, FSI_GRID_ADD, x, inf, 4), FSI_ERROR_NAN, "radius"));
    CHECK(refused(&c, fsi_grid_fill_sphere(phi, FSI_GRID_ADD, x, 0, 4), FSI_ERROR_ARGUMENT, "radius"));
    CHECK(refused(&c, fsi_grid_fill_sphere(phi, FSI_GRID_ADD, nan3, 1, 4), FSI_ERROR_NAN, "center"));
    CHECK(refused(&c, fsi_grid_fill_box(&broken, FSI_GRID_ADD, box, 4), FSI_ERROR_COOKIE, ""));
    wrong = box;
    wrong.hi.y = 0;
    CHECK(refused(&c, fsi_grid_fill_box(phi, FSI_GRID_ADD, wrong, 4), FSI_ERROR_ARGUMENT, "empty"));
    wrong.hi.y = nan;
    CHECK(refused(&c, fsi_grid_fill_box(phi, FSI_GRID_ADD, wrong, 4), FSI_ERROR_NAN, "box"));
    CHECK(refused(&c, fsi_grid_fill_mesh(NULL, FSI_GRID_ADD, m, 4), FSI_ERROR_COOKIE, ""));
    CHECK(refused(&c, fsi_grid_fill_mesh(phi, FSI_GRID_ADD, NULL, 4), FSI_ERROR_COOKIE, ""));
    CHECK(refused(&c, fsi_grid_fill_mesh(phi, FSI_GRID_ADD, sheet, 4), FSI_ERROR_MESH, "closed"));
    CHECK(refused(&c, fsi_grid_fill_mesh(plane, FSI_GRID_ADD, m, 4), FSI_ERROR_ARGUMENT, "corners"));
    CHECK(refused(&c, fsi_grid_mesh_distance(NULL, m, 4), FSI_ERROR_COOKIE, ""));
    CHECK(refused(&c, fsi_grid_mesh_distance(face, m, 4), FSI_ERROR_ARGUMENT, "cells"));
    CHECK(refused(&c, fsi_grid_mesh_distance(phi, m, 1), FSI_ERROR_ARGUMENT, "band"));
    CHECK(refused(&c, fsi_grid_mesh_distance(phi, sheet, 4), FSI_ERROR_MESH, "closed"));
    fsi_mesh_destroy(m);
    fsi_mesh_destroy(sheet);
    fsi_grid_destroy(g);
    fsi_grid_destroy(flat);
}

static void test_bad_cuts_and_surfaces_are_named(void)
{
    fsi_context c = fsi_default_context();
    fsi_grid *g = grid_of(&c, 3, 16, 16, 16, 0.1, fsi_v3(0, 0, 0)),
             *flat = grid_of(&c, 2, 16, 16, 1, 0.1, fsi_v3(0, 0, 0));
    fsi_field *phi = field_of(g, 0.4), *below = field_of(g, -1), *face = NULL, broken;
    fsi_mesh *m = sphere_of(&c, 3, fsi_v3(REAL(0.8), REAL(0.8), REAL(0.8)), 0.3, 4), *sheet = sheet_of();
    const fsi_vec3 x = fsi_v3(REAL(0.5), REAL(0.5), REAL(0.5));
    const fsi_real nan = REAL(test_nan()), inf = REAL(test_inf());
    fsi_context foreign;
    fsi_grid_faces *f = NULL;
    fsi_grid_surface *s = NULL;
    memset(&foreign, 0, sizeof foreign);
    broken = *phi;
    broken.cookie++;
    CHECK(fsi_grid_add_field(g, FSI_FACES_X, 1, &face) == FSI_OK);
    CHECK(fsi_grid_faces_create(NULL, NULL) == FSI_ERROR_ARGUMENT &&
          fsi_grid_surface_create(NULL, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_grid_faces_create(&f, &foreign) == FSI_ERROR_COOKIE && !f &&
          fsi_grid_surface_create(&s, &foreign) == FSI_ERROR_COOKIE && !s);
    CHECK(fsi_grid_faces_create(&f, &c) == FSI_OK && fsi_grid_surface_create(&s, &c) == FSI_OK);
    CHECK(refused(&c, fsi_grid_faces_build(NULL, g, m), FSI_ERROR_COOKIE, ""));
    CHECK(refused(&c, fsi_grid_faces_build(f, NULL, m), FSI_ERROR_COOKIE, ""));
    CHECK(refused(&c, fsi_grid_faces_build(f, g, NULL), FSI_ERROR_COOKIE, ""));
    CHECK(refused(&c, fsi_grid_faces_build(f, flat, m), FSI_ERROR_ARGUMENT, "corners"));
    CHECK(refused(&c, fsi_grid_faces_build(f, g, sheet), FSI_ERROR_MESH, "closed"));
    CHECK(refused(&c, fsi_grid_surface_update(NULL, phi, 1), FSI_ERROR_COOKIE, ""));
    CHECK(refused(&c, fsi_grid_surface_update(s, &broken, 1), FSI_ERROR_COOKIE, ""));
    CHECK(refused(&c, fsi_grid_surface_update(s, face, 1), FSI_ERROR_ARGUMENT, "cells"));
    CHECK(refused(&c, fsi_grid_surface_update(s, below, 1), FSI_ERROR_ARGUMENT, "background"));
    CHECK(g->block_count == 0);
    CHECK(fsi_grid_faces_build(f, g, m) == FSI_OK && f->count == 0 && fsi_grid_surface_update(s, phi, 1) == FSI_OK &&
          s->vertex_count == 0);
    CHECK(fsi_grid_fill_sphere(phi, FSI_GRID_ADD, x, REAL(0.3), 4) == FSI_OK && g->block_count > 0);
    phi->value[fsi_grid_entry(g, 3, 4, 5)] = nan;
    CHECK(refused(&c, fsi_grid_surface_update(s, phi, 1), FSI_ERROR_NAN, "(3, 4, 5)"));
    CHECK(c.error.element == fsi_grid_entry(g, 3, 4, 5));
    phi->value[fsi_grid_entry(g, 3, 4, 5)] = -inf;
    CHECK(refused(&c, fsi_grid_surface_update(s, phi, 1), FSI_ERROR_NAN, "(3, 4, 5)"));
    CHECK(fsi_grid_fill_sphere(phi, FSI_GRID_ADD, fsi_v3(REAL(1e30), 0, 0), 1, 4) == FSI_OK); /* out of reach */
    /* all there is */
    CHECK(fsi_grid_fill_sphere(phi, FSI_GRID_ADD, x, REAL(1e15), 4) == FSI_OK && g->block_count == 8);
    CHECK_NEAR(fsi_grid_at(phi, 15, 0, 7), -0.4, TOL(1e-15, 1e-7));
    fsi_grid_faces_destroy(f);
    fsi_grid_faces_destroy(NULL);
    fsi_grid_surface_destroy(s);
    fsi_grid_surface_destroy(NULL);
    fsi_mesh_destroy(m);
    fsi_mesh_destroy(sheet);
    fsi_grid_destroy(g);
    fsi_grid_destroy(flat);
}
int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_balls_fill_to_their_distance);
    RUN(test_boxes_fill_and_empty_to_their_distance);
    RUN(test_a_pool_between_walls_has_only_a_top);
    RUN(test_meshes_fill_to_their_distance);
    RUN(test_the_distance_to_a_mesh_is_that_of_a_search);
    RUN(test_faces_cut_by_a_plane_are_exact);
    RUN_PHYSICS(test_shares_give_the_volume_of_a_ball);
    RUN(test_faces_do_not_depend_on_the_blocks_around);
    RUN(test_sides_are_cut_where_the_mesh_crosses);
    RUN(test_walls_in_the_grid_cover_its_faces);
    RUN(test_the_surface_of_a_ball_converges);
    RUN(test_noise_has_a_closed_surface);
    RUN(test_a_pool_is_closed_at_the_walls);
    RUN(test_a_ball_in_a_corner_is_an_eighth);
    RUN(test_any_number_of_threads_gives_the_same_bits);
    RUN(test_every_allocation_may_fail);
    RUN(test_the_former_result_survives_a_failure);
    RUN(test_the_pressure_solver_takes_these_faces);
    RUN(test_bad_input_is_named);
    RUN(test_bad_cuts_and_surfaces_are_named);
    return TEST_END();
}
