/* test_grid_advect.c - sampling, tracing, advection and extrapolation on the sparse grid against slow references and
   exact results.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_grid.h"

/* ---- a grid with fields --------------------------------------------------------------------------------------- */

typedef struct world {
    fsi_context context;
    fsi_grid *g;
    fsi_field *u[3], *f[4], *to[4]; /* f, to: one a place */
} world;

/* keep: share of the blocks that exist. Origin and cells are no round numbers. */
static void world_open(world *w, int dim, int nx, int ny, int nz, double keep, uint64_t *random)
{
    fsi_grid_desc d = fsi_grid_default_desc();
    unsigned char *wanted;
    int k, places;
    w->context = fsi_default_context();
    test_fail_allocator(&w->context, 0);
    d.context = &w->context;
    d.dim = dim;
    d.n[0] = nx;
    d.n[1] = ny;
    d.n[2] = nz;
    d.dx = (fsi_real)0.037;
    d.origin = fsi_v3((fsi_real)-0.3, (fsi_real)0.21, (fsi_real)0.1);
    CHECK(fsi_grid_create(&w->g, &d) == FSI_OK);
    places = w->g->blocks[0] * w->g->blocks[1] * w->g->blocks[2];
    wanted = (unsigned char *)malloc((size_t)places);
    for (k = 0; k < places; k++) wanted[k] = test_random(random) < keep;
    CHECK(fsi_grid_set_blocks(w->g, wanted) == FSI_OK);
    free(wanted);
    for (k = 0; k <= dim; k++) {
        CHECK(fsi_grid_add_field(w->g, (fsi_grid_place)k, (fsi_real)0.25, &w->f[k]) == FSI_OK);
        CHECK(fsi_grid_add_field(w->g, (fsi_grid_place)k, (fsi_real)0.25, &w->to[k]) == FSI_OK);
        if (k) CHECK(fsi_grid_add_field(w->g, (fsi_grid_place)k, 0, &w->u[k - 1]) == FSI_OK);
    }
    if (dim == 2) w->u[2] = w->f[3] = w->to[3] = NULL;
}

static void world_close(world *w) { fsi_grid_destroy(w->g); }
static int entries(const world *w) { return w->g->block_count * w->g->block_cells; }

/* Cell of an entry. */
static void cell_of(const fsi_grid *g, int e, int c[3])
{
    const int r = e % g->block_cells;
    fsi_grid_corner(g, e / g->block_cells, c);
    c[0] += r & 7;
    c[1] += r >> 3 & 7;
    c[2] += r >> 6;
}
static int is_inside(const fsi_grid *g, fsi_grid_place place, const int c[3])
{
    return c[0] < fsi_grid_size(g, place, 0) && c[1] < fsi_grid_size(g, place, 1) && c[2] < fsi_grid_size(g, place, 2);
}

typedef double function3(double x, double y, double z);
static void fill(fsi_field *f, function3 *value)
{
    int e, c[3];
    for (e = 0; e < f->grid->block_count * f->grid->block_cells; e++) {
        fsi_vec3 x;
        cell_of(f->grid, e, c);
        x = fsi_grid_position(f->grid, f->place, c[0], c[1], c[2]);
        f->value[e] = (fsi_real)value((double)x.x, (double)x.y, (double)x.z);
    }
}
static void fill_random(fsi_field *f, double size, uint64_t *random)
{
    int e;
    for (e = 0; e < f->grid->block_count * f->grid->block_cells; e++)
        f->value[e] = (fsi_real)(size * (2 * test_random(random) - 1));
}
/* A position in the box, grown by `margin` cells. */
static fsi_vec3 anywhere(const fsi_grid *g, double margin, uint64_t *random)
{
    double c[3];
    int a;
    for (a = 0; a < 3; a++) c[a] = -margin + (g->n[a] + 2 * margin) * test_random(random);
    return fsi_v3(g->origin.x + (fsi_real)c[0] * g->dx, g->origin.y + (fsi_real)c[1] * g->dx,
                  g->dim == 3 ? g->origin.z + (fsi_real)c[2] * g->dx : (fsi_real)7);
}

/* ---- slow references ------------------------------------------------------------------------------------------ */

/* Weights of a scheme by Lagrange's and Catmull and Rom's definitions; entries -reach .. reach + 1. */
static void slow_weights(int scheme, double f, double w[6])
{
    int a, b;
    for (a = 0; a < 6; a++) w[a] = 0;
    if (scheme == FSI_ADVECT_LINEAR) {
        w[0] = 1 - f;
        w[1] = f;
    } else if (scheme == FSI_ADVECT_CUBIC) { /* Hermite's basis with slopes by central differences */
        const double p1 = 3 * f * f - 2 * f * f * f, s0 = f * (1 - f) * (1 - f), s1 = f * f * (f - 1);
        w[0] = -s0 / 2;
        w[1] = 1 - p1 - s1 / 2;
        w[2] = p1 + s0 / 2;
        w[3] = s1 / 2;
    } else
        for (a = 0; a < 6; a++)
            for (b = 0, w[a] = 1; b < 6; b++) if (b != a) w[a] *= (f + 2 - b) / (a - b);
}

static double slow_sample(const fsi_field *f, fsi_vec3 x, int scheme)
{
    static const int reaches[3] = { 0, 1, 2 }, limits[3] = { 0, 0, 1 };
    const fsi_grid *g = f->grid;
    const int reach = reaches[scheme], limit = limits[scheme];
    double slack;
    const double p[3] = {(double)((x.x - g->origin.x) / g->dx), (double)((x.y - g->origin.y) / g->dx),
                         (double)((x.z - g->origin.z) / g->dx)};
    double w[3][6] = { { 0 } }, sum = 0, least = 1e300, most = -1e300;
    int base[3] = { 0, 0, 0 }, a, i, j, k;
    for (a = 0; a < g->dim; a++) {
        const double q = fmin(fmax(p[a] - ((int)f->place == a + 1 ? 0 : 0.5), 0), fsi_grid_size(g, f->place, a) - 1);
        base[a] = (int)q;
        slow_weights(scheme, q - base[a], w[a]);
    }
    for (k = 0; k < (g->dim == 3 ? 2 * reach + 2 : 1); k++)
        for (j = 0; j < 2 * reach + 2; j++)
            for (i = 0; i < 2 * reach + 2; i++) {
                const double v = (double)fsi_grid_at(f, base[0] + i - reach, base[1] + j - reach,
                                                     g->dim == 3 ? base[2] + k - reach : 0);
                const int in = abs(2 * (i - reach) - 1) <= 1 + 2 * limit && abs(2 * (j - reach) - 1) <= 1 + 2 * limit &&
                               (g->dim == 2 || abs(2 * (k - reach) - 1) <= 1 + 2 * limit);
                sum += w[0][i] * w[1][j] * (g->dim == 3 ? w[2][k] : 1) * v;
                if (in) {
                    least = fmin(least, v);
                    most = fmax(most, v);
                }
            }
    slack = scheme == FSI_ADVECT_QUINTIC ? (most - least) / 4 : 0;
    return fmin(fmax(sum, least - slack), most + slack);
}

/* ---- sampling ------------------------------------------------------------------------------------------------- */

static double plane(double x, double y, double z) { return 0.3 + 2 * x - 1.5 * y + 0.7 * z; }
static double bowl(double x, double y, double z)
{
    return 0.3 + 2 * x - 1.5 * y + x * x - 2 * x * y + 3 * y * y + 0.7 * z * z - y * z;
}
static double wave(double x, double y, double z) { return sin(3 * x + 2 * y - z) + cos(2 * x - 4 * y + 3 * z); }

static void check_exactness(int dim)
{
    uint64_t random = 7;
    world w;
    int k, r;
    world_open(&w, dim, 30, 26, 21, 1, &random);
    for (k = 0; k <= dim; k++) {
        fill(w.f[k], plane);
        for (r = 0; r < 500; r++) {
            const fsi_vec3 x = anywhere(w.g, -0.5, &random);
            CHECK_NEAR(fsi_grid_sample_linear(w.f[k], x), plane((double)x.x, (double)x.y, dim == 3 ? (double)x.z : 0),
                       TOL(1e-14, 3e-6));
        }
        fill(w.f[k], bowl);
        for (r = 0; r < 500; r++) {
            const fsi_vec3 x = anywhere(w.g, -2, &random);
            const double z = dim == 3 ? (double)x.z : 0, h = (double)w.g->dx, laplace = dim == 3 ? 2 + 6 + 1.4 : 2 + 6,
                         tolerance = TOL(1e-13, 4e-4);
            fsi_vec3 grad;
            CHECK_NEAR(fsi_grid_sample_spline(w.f[k], x, &grad),
                       bowl((double)x.x, (double)x.y, z) + h * h / 8 * laplace, TOL(1e-14, 4e-6));
            CHECK_NEAR(grad.x, 2 + 2 * (double)x.x - 2 * (double)x.y, tolerance);
            CHECK_NEAR(grad.y, -1.5 - 2 * (double)x.x + 6 * (double)x.y - z, tolerance);
            CHECK_NEAR(grad.z, dim == 3 ? 1.4 * z - (double)x.y : 0, tolerance);
        }
    }
    world_close(&w);
}
static void test_linear_fields_and_parabolas_are_sampled_exactly(void) { check_exactness(2); check_exactness(3); }

/* A cubic's truncation error is third order; the clamp acts only at extrema, so that errors are counted by their
   median. */
static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double median_error(int dim, int n, fsi_real (*sample)(const fsi_field *, fsi_vec3))
{
    uint64_t random = 3;
    double error[501];
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi_grid *g;
    fsi_field *f = NULL;
    unsigned char *wanted;
    int k;
    d.dim = dim;
    d.n[0] = d.n[1] = d.n[2] = n;
    d.dx = (fsi_real)(1.0 / n);
    CHECK(fsi_grid_create(&g, &d) == FSI_OK);
    CHECK(fsi_grid_add_field(g, FSI_CELLS, 0, &f) == FSI_OK);
    wanted = (unsigned char *)malloc((size_t)(g->blocks[0] * g->blocks[1] * g->blocks[2]));
    memset(wanted, 1, (size_t)(g->blocks[0] * g->blocks[1] * g->blocks[2]));
    CHECK(fsi_grid_set_blocks(g, wanted) == FSI_OK);
    fill(f, wave);
    for (k = 0; k < 501; k++) {
        fsi_vec3 x = anywhere(g, -2, &random);
        error[k] = fabs((double)sample(f, x) - wave((double)x.x, (double)x.y, dim == 3 ? (double)x.z : 0));
    }
    qsort(error, 501, sizeof *error, by_size);
    free(wanted);
    fsi_grid_destroy(g);
    return error[250];
}
static void test_sampling_converges_with_its_order(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double ratio =
            median_error(dim, 16, fsi_grid_sample_linear) / median_error(dim, 32, fsi_grid_sample_linear);
        CHECK_NEAR(ratio, 4, 1.2);
    }
}

static void check_against_slow(int dim, double keep)
{
    uint64_t random = 11;
    world w;
    int k, r;
    world_open(&w, dim, 19, 25, 10, keep, &random);
    for (k = 0; k <= dim; k++) {
        fill_random(w.f[k], 1, &random);
        for (r = 0; r < 3000; r++) {
            const fsi_vec3 x = anywhere(w.g, 2, &random);
            CHECK_NEAR(fsi_grid_sample_linear(w.f[k], x), slow_sample(w.f[k], x, FSI_ADVECT_LINEAR), TOL(1e-12, 2e-5));
        }
    }
    for (k = 0; k < dim; k++) fill_random(w.u[k], 1, &random);
    for (r = 0; r < 500; r++) {
        const fsi_vec3 x = anywhere(w.g, 1, &random), u = fsi_grid_sample_velocity(w.u, x);
        CHECK_NEAR(u.x, slow_sample(w.u[0], x, FSI_ADVECT_LINEAR), TOL(1e-12, 2e-5));
        CHECK_NEAR(u.y, slow_sample(w.u[1], x, FSI_ADVECT_LINEAR), TOL(1e-12, 2e-5));
        CHECK_NEAR(u.z, dim == 3 ? slow_sample(w.u[2], x, FSI_ADVECT_LINEAR) : 0, TOL(1e-12, 2e-5));
    }
    world_close(&w);
}
static void test_samples_are_those_of_a_slow_reference(void)
{
    check_against_slow(2, 1);
    check_against_slow(2, 0.6);
    check_against_slow(3, 1);
    check_against_slow(3, 0.6);
}

/* Value and gradient belong together and neither jumps: across entries, at the walls and beyond them. */
static void test_the_spline_is_smooth_and_its_gradient_is_its_own(void)
{
    int dim, r, a;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t random = 17;
        world w;
        world_open(&w, dim, 14, 11, 9, 0.8, &random);
        fill_random(w.f[1], 1, &random);
        for (r = 0; r < 3000; r++) {
            const fsi_vec3 x = anywhere(w.g, 2, &random);
            const double h = TOL(1e-6, 3e-4);
            fsi_vec3 grad, up, down;
            fsi_real g[3], *p;
            fsi_grid_sample_spline(w.f[1], x, &grad);
            g[0] = grad.x, g[1] = grad.y, g[2] = grad.z;
            for (a = 0; a < dim; a++) {
                fsi_vec3 lo = x, hi = x;
                double steps, jump, slope;
                p = a == 0 ? &lo.x : a == 1 ? &lo.y : &lo.z, *p -= (fsi_real)h;
                p = a == 0 ? &hi.x : a == 1 ? &hi.y : &hi.z, *p += (fsi_real)h;
                steps = a == 0 ? (double)(hi.x - lo.x) : a == 1 ? (double)(hi.y - lo.y) : (double)(hi.z - lo.z);
                slope = (double)(fsi_grid_sample_spline(w.f[1], hi, &up) - fsi_grid_sample_spline(w.f[1], lo, &down)) /
                        steps;
                CHECK_NEAR(g[a], slope, TOL(5e-3, 1.5)); /* second differences are up to 6/dx^2 = 4400 */
                jump = a == 0 ? (double)(up.x - down.x) : a == 1 ? (double)(up.y - down.y) : (double)(up.z - down.z);
                CHECK_NEAR(jump, 0, 6000 * steps + TOL(1e-9, 1e-1));
            }
        }
        { /* at a wall, half a cell from the centres, the normal part is 0; far out all is */
            fsi_vec3 grad, x = fsi_v3(w.g->origin.x + 3 * w.g->dx, w.g->origin.y, w.g->origin.z + 2 * w.g->dx);
            fsi_grid_sample_spline(w.f[1], x, &grad);
            CHECK_NEAR(grad.y, 0, TOL(1e-10, 1e-3));
            x.y -= 40 * w.g->dx;
            fsi_grid_sample_spline(w.f[1], x, &grad);
            CHECK_NEAR(grad.y, 0, TOL(1e-10, 1e-5));
            CHECK(fsi_grid_sample_spline(w.f[1], x, NULL) == fsi_grid_sample_spline(w.f[1], x, &grad));
        }
        world_close(&w);
    }
}

/* ---- tracing -------------------------------------------------------------------------------------------------- */

static double turn_x(double x, double y, double z) { (void)x; (void)z; return -(y - 0.8); }
static double turn_y(double x, double y, double z) { (void)y; (void)z; return x - 0.3; }
static double turn_z(double x, double y, double z) { (void)x; (void)y; (void)z; return 0.05; }

static double turn_error(int dim, int order, int steps)
{
    uint64_t random = 1;
    world w;
    int s;
    fsi_vec3 x, start;
    world_open(&w, dim, 32, 32, 16, 1, &random);
    fill(w.u[0], turn_x);
    fill(w.u[1], turn_y);
    if (dim == 3) fill(w.u[2], turn_z);
    start = x = fsi_v3((fsi_real)0.6, (fsi_real)0.8, (fsi_real)0.15);
    for (s = 0; s < steps; s++) x = fsi_grid_trace(w.u, x, (fsi_real)(2 * FSI_PI / steps), order);
    if (dim == 3) start.z += (fsi_real)(0.05 * 2 * FSI_PI);
    world_close(&w);
    return (double)fsi_v3_norm(fsi_v3_sub(x, start));
}

static void test_traces_of_a_rotation_have_their_order(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        CHECK_NEAR(log2(turn_error(dim, 2, 40) / turn_error(dim, 2, 80)), 2, 0.15);
        CHECK_NEAR(log2(turn_error(dim, 3, 20) / turn_error(dim, 3, 40)), 3, 0.3);
    }
}

static void test_traces_end_within_the_box(void)
{
    int dim, r;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t random = 23;
        world w;
        fsi_box3 box;
        world_open(&w, dim, 12, 20, 9, 0.7, &random);
        for (r = 0; r < dim; r++) fill_random(w.u[r], 1, &random);
        box.lo = w.g->origin;
        box.hi = fsi_v3(box.lo.x + (fsi_real)w.g->n[0] * w.g->dx, box.lo.y + (fsi_real)w.g->n[1] * w.g->dx,
                        box.lo.z + (fsi_real)w.g->n[2] * w.g->dx);
        box = fsi_box3_inflate(box, TOL((fsi_real)1e-14, (fsi_real)1e-6));
        for (r = 0; r < 2000; r++) {
            const fsi_real dt = (fsi_real)(r & 1 ? -1e30 : test_random(&random));
            fsi_vec3 x = fsi_grid_trace(w.u, anywhere(w.g, 3, &random), dt, 2 + (r >> 1 & 1));
            if (dim == 2) {
                CHECK(x.z == 7);
                x.z = 0;
            }
            CHECK(x.x >= box.lo.x && x.x <= box.hi.x && x.y >= box.lo.y && x.y <= box.hi.y && x.z >= box.lo.z &&
                  x.z <= box.hi.z);
        }
        world_close(&w);
    }
}

/* ---- advection ------------------------------------------------------------------------------------------------ */

/* Every entry is what the public trace and the slow sample say, however far the way is, near walls and missing
   blocks. */
static void check_advection(int dim, double keep, double cfl)
{
    uint64_t random = 29;
    world w;
    int k, e, c[3], scheme, order, checked = 0;
    fsi_vec3 middle;
    world_open(&w, dim, 21, 15, 18, keep, &random);
    middle = fsi_grid_position(w.g, FSI_CELLS, 10, 7, 9);
    for (k = 0; k < dim; k++) fill_random(w.u[k], 1, &random);
    if (cfl < 1) fill(w.u[0], turn_x); /* a smooth part */
    for (k = 0; k <= dim; k++) fill_random(w.f[k], 1, &random);
    for (k = 0; k <= dim; k++) for (scheme = 0; scheme < 3; scheme++) for (order = 2; order <= 3; order++) {
        const fsi_real dt = (fsi_real)cfl * w.g->dx;
        if ((k + scheme + order) % 3 && dim == 3 && keep < 1) continue;
        CHECK(fsi_grid_advect(w.f[k], w.u, dt, (fsi_grid_scheme)scheme, order, NULL, w.to[k]) == FSI_OK);
        for (e = 0; e < entries(&w); e += dim == 3 ? 3 : 1) {
            cell_of(w.g, e, c);
            if (is_inside(w.g, w.f[k]->place, c)) {
                const fsi_vec3 x =
                    fsi_grid_trace(w.u, fsi_grid_position(w.g, w.f[k]->place, c[0], c[1], c[2]), -dt, order);
                const double v = (double)w.to[k]->value[e], tolerance = TOL(1e-11, 1e-3) * (1 + cfl);
                double want = 0;
                int side; /* at an entry, as where a wall stops the trace, the clamps of both sides are right */
                for (side = -1; side == -1 || (side < 2 && !(fabs(v - want) <= tolerance)); side++)
                    want = slow_sample(
                        w.f[k], fsi_v3_madd(x, (fsi_real)(side * TOL(1e-12, 1e-6)), fsi_v3_sub(middle, x)), scheme);
                CHECK_NEAR(v, want, tolerance);
                checked++;
            } else CHECK(w.to[k]->value[e] == w.f[k]->value[e]);
        }
    }
    CHECK(checked > 500);
    world_close(&w);
}
static void test_advection_is_trace_and_sample(void)
{
    check_advection(2, 1, 0.6);
    check_advection(2, 0.6, 2.5);
    check_advection(2, 1, 25);
    check_advection(3, 1, 0.6);
    check_advection(3, 0.6, 2.5);
    check_advection(3, 0.8, 25);
}

static void test_a_translation_by_whole_cells_is_exact(void)
{
    int dim, k, e, scheme, c[3], seen = 0;
    for (dim = 2; dim <= 3; dim++) for (scheme = 0; scheme < 3; scheme++) {
        const int step[3] = { 3, -2, 1 };
        uint64_t random = 31;
        world w;
        world_open(&w, dim, 24, 20, 17, 1, &random);
        w.g->dx = (fsi_real)0.0625;
        for (k = 0; k < dim; k++) for (e = 0; e < entries(&w); e++) w.u[k]->value[e] = (fsi_real)step[k];
        for (k = 0; k <= dim; k++) {
            fill_random(w.f[k], 1, &random);
            CHECK(fsi_grid_advect(w.f[k], w.u, w.g->dx, (fsi_grid_scheme)scheme, 2 + scheme % 2, NULL, w.to[k]) ==
                  FSI_OK);
            for (e = 0; e < entries(&w); e++) {
                cell_of(w.g, e, c);
                if (c[0] < 5 || c[0] > 20 || c[1] < 5 || c[1] > 14 || (dim == 3 && (c[2] < 5 || c[2] > 12))) continue;
                CHECK(w.to[k]->value[e] == fsi_grid_at(w.f[k], c[0] - 3, c[1] + 2, dim == 3 ? c[2] - 1 : 0));
                seen++;
            }
        }
        world_close(&w);
    }
    CHECK(seen > 1000);
}

/* What each scheme is exact for, moved by a part of a cell: from = p(x), to = p(x - u dt); away from the walls. */
static double degree5(double x, double y, double z)
{
    return pow(x, 5) - 2 * pow(y - 0.5, 5) + x * y * y * y + z * z * z * z * (1 + x) + 20 * (x + y + z);
}
static void test_advected_polynomials_are_exact_to_the_degree_of_the_scheme(void)
{
    static function3 *const of[3] = { plane, bowl, degree5 };
    int dim, scheme, e, k, c[3];
    for (dim = 2; dim <= 3; dim++) for (scheme = 0; scheme < 3; scheme++) {
        const double dt = 0.013, u[3] = { 1.1, -0.6, 0.3 };
        uint64_t random = 37;
        world w;
        world_open(&w, dim, 24, 20, 17, 1, &random);
        for (k = 0; k < dim; k++) for (e = 0; e < entries(&w); e++) w.u[k]->value[e] = (fsi_real)u[k];
        for (k = 0; k <= dim; k++) {
            fill(w.f[k], of[scheme]);
            CHECK(fsi_grid_advect(w.f[k], w.u, (fsi_real)dt, (fsi_grid_scheme)scheme, 2, NULL, w.to[k]) == FSI_OK);
            for (e = 0; e < entries(&w); e++) {
                fsi_vec3 x;
                double want;
                cell_of(w.g, e, c);
                if (c[0] < 4 || c[0] > 19 || c[1] < 4 || c[1] > 15 || (dim == 3 && (c[2] < 4 || c[2] > 12))) continue;
                x = fsi_grid_position(w.g, w.f[k]->place, c[0], c[1], c[2]);
                want = of[scheme]((double)x.x - dt * u[0], (double)x.y - dt * u[1],
                                  dim == 3 ? (double)x.z - dt * u[2] : 0);
                /* the bowl's bottom is clamped */
                if (scheme == 1 && fabs((double)w.to[k]->value[e] - want) > 1e-3) continue;
                CHECK_NEAR(w.to[k]->value[e], want, scheme == 1 ? TOL(1e-3, 1e-3) : TOL(2e-13, 6e-5));
            }
        }
        world_close(&w);
    }
}

/* A layer on a wall, phi = y - h, in the flow v = y/T: y = h exp(t/T), by the midpoint rule h/(1 - r + r^2/2) after a
   step of r = dt/T. It rises and falls alike, in the first cell too: the traces of a rising one end between centre and
   wall. Three steps out, two back; what comes in at the other wall does not reach the first four cells. */
static void test_a_layer_on_a_wall_rises_as_it_falls(void)
{
    int dim, scheme, side, e, k, c[3];
    for (dim = 2; dim <= 3; dim++) for (scheme = 0; scheme < 3; scheme++) for (side = 0; side < 2 * dim; side++) {
        const int axis = side >> 1, size[3] = { axis == 0 ? 40 : 8, axis == 1 ? 40 : 8, axis == 2 ? 40 : 8 };
        const double r = 0.05, h = 1.3;
        double scale = 1, worst = 0;
        uint64_t random = 43;
        world w;
        world_open(&w, dim, size[0], size[1], size[2], 1, &random);
        for (k = 0; k < 5; k++) {
            const double way = k < 3 ? r : -r;
            fsi_field *swap = w.f[0];
            for (e = 0; e < entries(&w); e++) {
                int a;
                cell_of(w.g, e, c);
                for (a = 0; a < dim; a++) w.u[a]->value[e] = 0;
                w.u[axis]->value[e] = (fsi_real)(way * (side & 1 ? c[axis] - 40 : c[axis]) * (double)w.g->dx);
                if (k == 0) w.f[0]->value[e] =
                    (fsi_real)((side & 1 ? 39.5 - c[axis] : c[axis] + 0.5) - h) * w.g->dx;
            }
            CHECK(fsi__grid_advect_distance(w.f[0], w.u, 1, (fsi_grid_scheme)scheme, 2, NULL, w.to[0], "test") ==
                  FSI_OK);
            scale *= 1 - way + way * way / 2;
            w.f[0] = w.to[0];
            w.to[0] = swap;
        }
        for (e = 0; e < entries(&w); e++) {
            double y;
            cell_of(w.g, e, c);
            if (!is_inside(w.g, FSI_CELLS, c)) continue;
            y = side & 1 ? 39.5 - c[axis] : c[axis] + 0.5;
            if (y < 4) worst = fmax(worst, fabs((double)(w.f[0]->value[e] / w.g->dx) - (scale * y - h)));
        }
        CHECK(worst <= TOL(1e-12, 1e-4));
        world_close(&w);
    }
}

static void test_advection_makes_no_extrema_beyond_what_its_scheme_allows(void)
{
    int dim, scheme, e, k;
    for (dim = 2; dim <= 3; dim++) for (scheme = 0; scheme < 3; scheme++) {
        uint64_t random = 41;
        world w;
        world_open(&w, dim, 24, 20, 17, 0.7, &random);
        for (k = 0; k < dim; k++) fill_random(w.u[k], 1, &random);
        for (e = 0; e < entries(&w); e++) w.f[0]->value[e] = test_random(&random) < 0.5 ? 0 : 1;
        CHECK(fsi_grid_advect(w.f[0], w.u, w.g->dx, (fsi_grid_scheme)scheme, 2, NULL, w.to[0]) == FSI_OK);
        for (e = 0; e < entries(&w); e++)
            CHECK(fabs((double)w.to[0]->value[e] - 0.5) <= (scheme == FSI_ADVECT_QUINTIC ? 0.75 : 0.5));
        world_close(&w);
    }
}

static void test_entries_that_are_not_wanted_keep_their_value(void)
{
    int dim, e, k, c[3];
    for (dim = 2; dim <= 3; dim++) {
        uint64_t random = 43;
        world w;
        unsigned char *where;
        fsi_real *all;
        world_open(&w, dim, 24, 20, 17, 0.9, &random);
        where = (unsigned char *)malloc((size_t)entries(&w));
        all = (fsi_real *)malloc(sizeof *all * (size_t)entries(&w));
        for (k = 0; k < dim; k++) fill_random(w.u[k], 1, &random);
        fill_random(w.f[1], 1, &random);
        for (e = 0; e < entries(&w); e++) { /* blocks, rows and single entries without */
            cell_of(w.g, e, c);
            where[e] = (unsigned char)(c[0] >= 8 && c[1] % 3 && test_random(&random) < 0.7 ? 200 : 0);
        }
        CHECK(fsi_grid_advect(w.f[1], w.u, w.g->dx, FSI_ADVECT_CUBIC, 2, NULL, w.to[1]) == FSI_OK);
        memcpy(all, w.to[1]->value, sizeof *all * (size_t)entries(&w));
        for (e = 0; e < entries(&w); e++) w.to[1]->value[e] = 77;
        CHECK(fsi_grid_advect(w.f[1], w.u, w.g->dx, FSI_ADVECT_CUBIC, 2, where, w.to[1]) == FSI_OK);
        for (e = 0; e < entries(&w); e++) CHECK(w.to[1]->value[e] == (where[e] ? all[e] : w.f[1]->value[e]));
        free(where);
        free(all);
        world_close(&w);
    }
}

/* Together or one by one, with masks of their own: the same bits. */
static void test_a_velocity_goes_as_its_components_do(void)
{
    int dim, scheme, e, k;
    for (dim = 2; dim <= 3; dim++) for (scheme = 0; scheme < 3; scheme++) {
        uint64_t random = 79;
        world w;
        const unsigned char *where[3] = { NULL, NULL, NULL };
        unsigned char *some;
        world_open(&w, dim, 24, 20, 17, 0.8, &random);
        some = (unsigned char *)malloc((size_t)entries(&w));
        for (e = 0; e < entries(&w); e++) some[e] = test_random(&random) < 0.3;
        where[1] = some;
        for (k = 0; k < dim; k++) {
            fill_random(w.u[k], 1, &random);
            fill_random(w.f[1 + k], 1, &random);
        }
        CHECK(fsi_grid_advect_velocity(w.u, w.u, 2 * w.g->dx, (fsi_grid_scheme)scheme, 2, where, w.to + 1) == FSI_OK);
        for (k = 0; k < dim; k++) {
            CHECK(fsi_grid_advect(w.u[k], w.u, 2 * w.g->dx, (fsi_grid_scheme)scheme, 2, where[k], w.f[1 + k]) ==
                  FSI_OK);
            CHECK(memcmp(w.to[1 + k]->value, w.f[1 + k]->value, sizeof(fsi_real) * (size_t)entries(&w)) == 0);
        }
        /* no time, no change */
        CHECK(fsi_grid_advect_velocity(w.u, w.u, 0, (fsi_grid_scheme)scheme, 3, NULL, w.to + 1) == FSI_OK);
        for (k = 0; k < dim; k++)
            CHECK(memcmp(w.to[1 + k]->value, w.u[k]->value, sizeof(fsi_real) * (size_t)entries(&w)) == 0);
        free(some);
        world_close(&w);
    }
}

/* Zalesak's disc on 50^2 cells, one turn at CFL 4 and 0.5; the mean distance of the areas in cells beside the clamped
   bicubic, 0.25 and 0.80, and the bilinear, 1.20 and 2.09, of published baselines. */
static double disc(double x, double y)
{
    const double d = hypot(x - 50, y - 75) - 15, sx = 2.5 - fabs(x - 50), sy = 85 - y;
    return fmax(d, sx > 0 && sy > 0 ? fmin(sx, sy) : sx < 0 && sy < 0 ? -hypot(sx, sy) : fmin(sx, sy));
}
static double spin_x(double x, double y, double z) { (void)x; (void)z; return FSI_PI / 314 * (50 - y); }
static double spin_y(double x, double y, double z) { (void)y; (void)z; return FSI_PI / 314 * (x - 50); }
static double disc_cells(double x, double y, double z) { (void)z; return disc(x, y); }
static double disc_error(fsi_grid_scheme scheme, double cfl)
{
    const int n = 50, steps = (int)ceil(628 / (cfl * 2 / (FSI_PI / 314 * 50)));
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi_grid *g;
    fsi_field *u[3] = { NULL, NULL, NULL }, *phi = NULL, *next = NULL, *t;
    unsigned char wanted[49];
    int k, i, j;
    double wrong = 0;
    d.dim = 2;
    d.n[0] = d.n[1] = n;
    d.dx = 2;
    memset(wanted, 1, sizeof wanted);
    CHECK(fsi_grid_create(&g, &d) == FSI_OK && fsi_grid_set_blocks(g, wanted) == FSI_OK);
    CHECK(fsi_grid_add_field(g, FSI_FACES_X, 0, &u[0]) == FSI_OK &&
          fsi_grid_add_field(g, FSI_FACES_Y, 0, &u[1]) == FSI_OK);
    CHECK(fsi_grid_add_field(g, FSI_CELLS, 0, &phi) == FSI_OK);
    CHECK(fsi_grid_add_field(g, FSI_CELLS, 0, &next) == FSI_OK);
    fill(u[0], spin_x);
    fill(u[1], spin_y);
    fill(phi, disc_cells);
    for (k = 0; k < steps; k++) {
        CHECK(fsi_grid_advect(phi, u, (fsi_real)(628.0 / steps), scheme, 2, NULL, next) == FSI_OK);
        t = phi, phi = next, next = t;
    }
    for (j = 0; j < 200; j++) for (i = 0; i < 200; i++) {
        const double x = (i + 0.5) / 2, y = (j + 0.5) / 2;
        wrong += (fsi_grid_sample_linear(phi, fsi_v3((fsi_real)x, (fsi_real)y, 0)) < 0) != (disc(x, y) < 0);
    }
    fsi_grid_destroy(g);
    return wrong / 4 / 144.2 / 2; /* area over perimeter, in cells */
}
static void test_a_slotted_disc_keeps_its_shape(void)
{
    const double cubic = disc_error(FSI_ADVECT_CUBIC, 4), quintic = disc_error(FSI_ADVECT_QUINTIC, 4),
                 linear = disc_error(FSI_ADVECT_LINEAR, 4);
    const double cubic_small = disc_error(FSI_ADVECT_CUBIC, 0.5), quintic_small = disc_error(FSI_ADVECT_QUINTIC, 0.5);
    printf("      slotted disc: linear %.3f cubic %.3f %.3f quintic %.3f %.3f\n", linear, cubic, cubic_small, quintic,
           quintic_small);
    CHECK(linear < 1.4 && cubic < 0.35 && quintic < 0.3 && quintic < linear);
    CHECK(cubic_small < 0.9 && quintic_small < 0.35);
}

/* A wave 8 cells long crosses 64 cells: what is left of its square. */
static double wave8(double x, double y, double z) { (void)y; (void)z; return sin(2 * FSI_PI / 8 * x); }
static double wave_kept(fsi_grid_scheme scheme)
{
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi_grid *g;
    fsi_field *u[3] = { NULL, NULL, NULL }, *f = NULL, *next = NULL, *t;
    unsigned char wanted[64];
    double sum = 0, first = 0;
    int k, e, c[3];
    d.dim = 2;
    d.n[0] = 127;
    d.n[1] = 15;
    d.dx = 1;
    memset(wanted, 1, sizeof wanted);
    CHECK(fsi_grid_create(&g, &d) == FSI_OK && fsi_grid_set_blocks(g, wanted) == FSI_OK);
    CHECK(fsi_grid_add_field(g, FSI_FACES_X, 0, &u[0]) == FSI_OK &&
          fsi_grid_add_field(g, FSI_FACES_Y, 0, &u[1]) == FSI_OK);
    CHECK(fsi_grid_add_field(g, FSI_CELLS, 0, &f) == FSI_OK);
    CHECK(fsi_grid_add_field(g, FSI_CELLS, 0, &next) == FSI_OK);
    for (e = 0; e < g->block_count * 64; e++) u[0]->value[e] = 1;
    fill(f, wave8);
    for (k = 0; k <= 128; k++) {
        for (e = 0; k % 128 == 0 && e < g->block_count * 64; e++) {
            cell_of(g, e, c);
            if (c[0] >= 104 && c[0] < 120 && c[1] < 15)
                *(k ? &sum : &first) += (double)f->value[e] * (double)f->value[e];
        }
        CHECK(fsi_grid_advect(f, u, (fsi_real)0.5, scheme, 2, NULL, next) == FSI_OK);
        t = f, f = next, next = t;
    }
    fsi_grid_destroy(g);
    return sum / first;
}
/* Half a cell a step multiplies a wave of angle a a cell by sum w cos((k + 1/2) a): linear cos(a/2), quintic with 150,
   -25, 3 over 128. */
static void test_energy_of_a_short_wave_is_kept_in_the_order_of_the_schemes(void)
{
    const double linear = wave_kept(FSI_ADVECT_LINEAR), cubic = wave_kept(FSI_ADVECT_CUBIC),
                 quintic = wave_kept(FSI_ADVECT_QUINTIC);
    printf("      energy kept: linear %.3g cubic %.3f quintic %.3f\n", linear, cubic, quintic);
    CHECK_NEAR(log(linear), 256 * log(cos(FSI_PI / 8)), 1);
    CHECK_NEAR(log(quintic),
               256 * log((150 * cos(FSI_PI / 8) - 25 * cos(3 * FSI_PI / 8) + 3 * cos(5 * FSI_PI / 8)) / 128), 0.05);
    CHECK(cubic > 1000 * linear && cubic < quintic);
}

/* ---- extrapolation -------------------------------------------------------------------------------------------- */

/* phi at face c of an axis: the mean of its two cells. */
static double phi_at_face(const fsi_field *phi, int axis, const int c[3])
{
    const fsi_grid *g = phi->grid;
    const long long upper = fsi_grid_entry(g, c[0], c[1], c[2]),
                    lower = fsi_grid_entry(g, c[0] - (axis == 0), c[1] - (axis == 1), c[2] - (axis == 2));
    return lower < 0 ? (double)phi->value[upper] : ((double)phi->value[lower] + (double)phi->value[upper]) / 2;
}

/* By the definition, with fsi_grid_entry; phi: NULL for plain averages. */
static void slow_extrapolate(fsi_field *f, unsigned char *known, int layers, const fsi_field *phi)
{
    const fsi_grid *g = f->grid;
    const int n = g->block_count * g->block_cells, axis = (int)f->place - (int)FSI_FACES_X;
    int layer, e, d, c[3];
    for (layer = 1; layer <= layers; layer++)
        for (e = 0; e < n; e++) {
            double sum = 0, weighted = 0, weights = 0;
            int count = 0;
            cell_of(g, e, c);
            if (known[e] || !is_inside(g, f->place, c)) continue;
            for (d = 0; d < 2 * g->dim; d++) {
                int t[3];
                long long at;
                double weight;
                memcpy(t, c, sizeof t);
                t[d / 2] += d % 2 ? 1 : -1;
                at = fsi_grid_entry(g, t[0], t[1], t[2]);
                if (at < 0 || !is_inside(g, f->place, t) || !known[at] || known[at] > layer) continue;
                weight = phi ? fmax(0, phi_at_face(phi, axis, c) - phi_at_face(phi, axis, t)) : 0;
                weighted += weight * (double)f->value[at];
                weights += weight;
                sum += (double)f->value[at];
                count++;
            }
            if (!count) continue;
            f->value[e] = (fsi_real)(weights > 1e-3 * (double)g->dx ? weighted / weights : sum / count);
            known[e] = (unsigned char)(1 + layer);
        }
    for (e = 0; e < n; e++) {
        cell_of(g, e, c);
        if (known[e] && is_inside(g, f->place, c)) continue;
        known[e] = 0;
        f->value[e] = f->background;
    }
}

/* Distance to a ball; z = 0 in 2D. */
static double ball_in_the_box(double x, double y, double z)
{
    x -= 0.25, y -= 0.6, z -= z > 0 ? 0.4 : 0;
    return sqrt(x * x + y * y + z * z) - 0.2;
}

/* along: also along the normals of a ball, on faces. */
static void check_extrapolation(int dim, double keep, double share, int layers, int along)
{
    uint64_t random = 47;
    world w;
    int k, e, wrong = 0, set = 0;
    unsigned char *known, *same;
    world_open(&w, dim, 30, 21, 17, keep, &random);
    known = (unsigned char *)malloc((size_t)entries(&w));
    same = (unsigned char *)malloc((size_t)entries(&w));
    if (along) fill(w.f[0], ball_in_the_box);
    for (k = along; k <= dim; k++) {
        fill_random(w.f[k], 1, &random);
        for (e = 0; e < entries(&w); e++)
            known[e] = test_random(&random) < share ? (unsigned char)(1 + 9 * (e & 1)) : 0;
        for (e = 0; e < entries(&w); e++) same[e] = known[e] != 0;
        memcpy(w.to[k]->value, w.f[k]->value, sizeof(fsi_real) * (size_t)entries(&w));
        CHECK((along ? fsi__grid_extrapolate(w.f[k], known, layers, w.f[0])
                     : fsi_grid_extrapolate(w.f[k], known, layers)) == FSI_OK);
        slow_extrapolate(w.to[k], same, layers, along ? w.f[0] : NULL);
        for (e = 0; e < entries(&w); e++) {
            wrong += known[e] != same[e] || !(fabs((double)(w.f[k]->value[e] - w.to[k]->value[e])) <= TOL(1e-13, 1e-5));
            set += known[e] > 2;
        }
    }
    CHECK(wrong == 0 && (set > 0 || share > 0.5));
    free(known);
    free(same);
    world_close(&w);
}
static void test_extrapolation_is_that_of_a_slow_reference(void)
{
    int along;
    for (along = 0; along < 2; along++) {
        check_extrapolation(2, 1, 0.02, 5, along);
        check_extrapolation(2, 0.6, 0.05, 254, along);
        check_extrapolation(2, 1, 0.9, 2, along);
        check_extrapolation(3, 1, 0.002, 4, along);
        check_extrapolation(3, 0.6, 0.02, 6, along);
        check_extrapolation(3, 1, 0.9, 1, along);
    }
}

/* A ball moves, and known faces here and there outside of it rest. A face beside the ball gets the ball's velocity, on
   all sides alike, where no face that rests lies nearer to the ball: averages of neighbours would be slower. */
static void test_what_lies_farther_from_the_surface_has_no_share_in_what_is_extrapolated(void)
{
    int dim, k, e, d, c[3];
    for (dim = 2; dim <= 3; dim++) {
        uint64_t random = 59;
        world w;
        unsigned char *known, *start;
        int beside = 0, wrong = 0;
        world_open(&w, dim, 30, 21, 17, 1, &random);
        known = (unsigned char *)malloc((size_t)entries(&w));
        start = (unsigned char *)malloc((size_t)entries(&w));
        fill(w.f[0], ball_in_the_box);
        for (k = 1; k <= dim; k++) {
            for (e = 0; e < entries(&w); e++) {
                const int in = (cell_of(w.g, e, c), phi_at_face(w.f[0], k - 1, c) < 0);
                start[e] = known[e] = (unsigned char)(in || test_random(&random) < 0.3);
                w.f[k]->value[e] = (fsi_real)in;
            }
            CHECK(fsi__grid_extrapolate(w.f[k], known, 1, w.f[0]) == FSI_OK);
            for (e = 0; e < entries(&w); e++) {
                int moving = 0, resting = 0, nearer = 0;
                cell_of(w.g, e, c);
                if (known[e] != 2) continue;
                for (d = 0; d < 2 * dim; d++) {
                    int t[3];
                    long long at;
                    memcpy(t, c, sizeof t);
                    t[d / 2] += d % 2 ? 1 : -1;
                    at = fsi_grid_entry(w.g, t[0], t[1], t[2]);
                    if (at < 0 || !is_inside(w.g, w.f[k]->place, t) || !start[at]) continue;
                    if (phi_at_face(w.f[0], k - 1, t) < 0) moving++;
                    else resting++, nearer += phi_at_face(w.f[0], k - 1, t) < phi_at_face(w.f[0], k - 1, c);
                }
                if (!moving || !resting || nearer) continue;
                beside++;
                wrong += !(fabs((double)w.f[k]->value[e] - 1) <= TOL(1e-14, 1e-6));
            }
        }
        CHECK(wrong == 0 && beside > (dim == 2 ? 10 : 100));
        free(known);
        free(start);
        world_close(&w);
    }
}

static void test_a_constant_goes_on_as_itself_and_ends_with_the_last_layer(void)
{
    int dim, e, c[3];
    for (dim = 2; dim <= 3; dim++) {
        uint64_t random = 53;
        world w;
        unsigned char *known;
        world_open(&w, dim, 30, 21, 17, 1, &random);
        known = (unsigned char *)malloc((size_t)entries(&w));
        for (e = 0; e < entries(&w); e++) { /* a plane's front: layers are columns */
            cell_of(w.g, e, c);
            known[e] = c[0] < 10;
            w.f[2]->value[e] = (fsi_real)0.7;
        }
        CHECK(fsi_grid_extrapolate(w.f[2], known, 7) == FSI_OK);
        for (e = 0; e < entries(&w); e++) {
            const int in = (cell_of(w.g, e, c), is_inside(w.g, FSI_FACES_Y, c));
            CHECK(known[e] == (!in || c[0] >= 17 ? 0 : c[0] < 10 ? 1 : c[0] - 8));
            CHECK(w.f[2]->value[e] == (known[e] ? (fsi_real)0.7 : w.f[2]->background));
        }
        memset(known, 0, (size_t)entries(&w)); /* nothing known: nothing but background */
        CHECK(fsi_grid_extrapolate(w.f[2], known, 7) == FSI_OK);
        for (e = 0; e < entries(&w); e++) CHECK(known[e] == 0 && w.f[2]->value[e] == w.f[2]->background);
        free(known);
        world_close(&w);
    }
}

/* ---- promises ------------------------------------------------------------------------------------------------- */

/* Hash of what advection and extrapolation make, on a grid whose blocks came to be in two ways. */
static uint64_t run(int dim, int threads, int detour)
{
    uint64_t random = 59, hash = 0;
    world w;
    unsigned char *known, *wanted;
    int k, e, scheme, places;
    world_open(&w, dim, 40, 33, 26, 1, &random);
    if (threads > 1) test_threads(&w.context, threads, 1);
    places = w.g->blocks[0] * w.g->blocks[1] * w.g->blocks[2];
    wanted = (unsigned char *)malloc((size_t)places);
    for (k = 0; k < places; k++) wanted[k] = k % 3 == 1;
    if (detour) CHECK(fsi_grid_set_blocks(w.g, wanted) == FSI_OK);
    for (k = 0; k < places; k++) wanted[k] = k % 7 != 3;
    CHECK(fsi_grid_set_blocks(w.g, wanted) == FSI_OK);
    known = (unsigned char *)malloc((size_t)entries(&w));
    for (k = 0; k < dim; k++) fill(w.u[k], k == 0 ? wave : k == 1 ? bowl : plane);
    for (k = 0; k <= dim; k++) {
        fill(w.f[k], wave);
        scheme = k % 3;
        CHECK(fsi_grid_advect(w.f[k], w.u, (fsi_real)0.05, (fsi_grid_scheme)scheme, 2 + k % 2, NULL, w.to[k]) ==
              FSI_OK);
        for (e = 0; e < entries(&w); e++) known[e] = w.to[k]->value[e] > 1;
        CHECK(fsi_grid_extrapolate(w.to[k], known, 5) == FSI_OK);
        hash = fsi_hash(w.to[k]->value, sizeof(fsi_real) * (size_t)entries(&w), hash);
        hash = fsi_hash(known, (size_t)entries(&w), hash);
    }
    free(known);
    free(wanted);
    world_close(&w);
    return hash;
}
static void test_the_bits_depend_neither_on_threads_nor_on_the_history_of_blocks(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const uint64_t once = run(dim, 1, 0);
        CHECK(run(dim, 2, 0) == once);
        CHECK(run(dim, 5, 0) == once);
        CHECK(run(dim, 1, 1) == once);
    }
}

static void test_samplers_take_any_argument(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const fsi_real nan = (fsi_real)test_nan(), inf = (fsi_real)test_inf();
        const fsi_vec3 bad[4] = {
            {nan, nan, nan}, {inf, inf, inf}, {-inf, -inf, -inf}, {(fsi_real)1e30, nan, (fsi_real)-1e30}};
        uint64_t random = 61;
        world w;
        fsi_field *u[3];
        fsi_vec3 x, grad;
        int k;
        uint32_t cookie;
        world_open(&w, dim, 11, 9, 8, 0.9, &random);
        fill_random(w.f[0], 1, &random);
        for (k = 0; k < dim; k++) fill_random(w.u[k], 1, &random);
        for (k = 0; k < 4; k++) {
            CHECK(fabs((double)fsi_grid_sample_linear(w.f[0], bad[k])) <= 1);
            CHECK(fabs((double)fsi_grid_sample_spline(w.f[0], bad[k], &grad)) <= 1 && fsi_v3_is_finite(grad));
            CHECK(fsi_v3_is_finite(fsi_grid_sample_velocity(w.u, bad[k])));
            x = fsi_grid_trace(w.u, bad[k], (fsi_real)0.01, 3);
            CHECK(fsi_is_finite((double)x.x) && fsi_is_finite((double)x.y) && (dim == 2 || fsi_is_finite((double)x.z)));
        }
        CHECK(fsi_grid_sample_linear(w.f[0], bad[0]) == fsi_grid_sample_linear(w.f[0], w.g->origin));
        x = anywhere(w.g, 0, &random);
        CHECK(fsi_grid_sample_linear(NULL, x) == 0 && fsi_grid_sample_spline(NULL, x, &grad) == 0);
        CHECK(grad.x == 0 && grad.y == 0 && grad.z == 0);
        cookie = w.f[0]->cookie, w.f[0]->cookie++;
        CHECK(fsi_grid_sample_linear(w.f[0], x) == 0 && fsi_grid_sample_spline(w.f[0], x, NULL) == 0);
        w.f[0]->cookie = cookie;
        u[0] = w.u[1], u[1] = w.u[0], u[2] = w.u[2]; /* swapped components are no velocity */
        CHECK(fsi_grid_sample_velocity(u, x).x == 0 && fsi_grid_sample_velocity(NULL, x).y == 0);
        CHECK(fsi_grid_trace(u, x, 1, 2).x == x.x && fsi_grid_trace(NULL, x, 1, 2).y == x.y &&
              fsi_grid_trace(w.u, x, nan, 2).x == x.x);
        CHECK(fsi_grid_trace(w.u, x, (fsi_real)0.01, 77).x == fsi_grid_trace(w.u, x, (fsi_real)0.01, 2).x);
        world_close(&w);
    }
}

#define REFUSED(call, what, text)                                                                                      \
    (w->context.error.message[0] = 0, CHECK((call) == (what)), CHECK(strstr(w->context.error.message, text) != NULL))

static fsi_status advect_linear(const fsi_field *from, fsi_field *const *u, fsi_field *to)
{
    return fsi_grid_advect(from, u, (fsi_real)0.01, FSI_ADVECT_LINEAR, 2, NULL, to);
}

static fsi_status advect_velocity(fsi_field *const *from, fsi_field *const *u, fsi_field *const *to)
{
    return fsi_grid_advect_velocity(from, u, (fsi_real)0.01, FSI_ADVECT_LINEAR, 2, NULL, to);
}

static void refuse_fields(world *w, world *other)
{
    const fsi_real dt = (fsi_real)0.01;
    fsi_field *u[3];
    uint32_t cookie;
    memcpy(u, w->u, sizeof u);
    CHECK(advect_linear(NULL, w->u, w->to[0]) == FSI_ERROR_COOKIE);
    CHECK(advect_linear(w->f[0], w->u, NULL) == FSI_ERROR_COOKIE);
    cookie = w->f[0]->cookie, w->f[0]->cookie ^= 1;
    CHECK(advect_linear(w->f[0], w->u, w->to[0]) == FSI_ERROR_COOKIE);
    w->f[0]->cookie = cookie;
    REFUSED(advect_linear(w->f[0], NULL, w->to[0]), FSI_ERROR_ARGUMENT, "u is no velocity");
    u[1] = NULL;
    REFUSED(advect_linear(w->f[0], u, w->to[0]), FSI_ERROR_ARGUMENT, "u is no velocity");
    u[1] = w->f[0];
    REFUSED(advect_linear(w->f[0], u, w->to[0]), FSI_ERROR_ARGUMENT, "u is no velocity");
    REFUSED(advect_linear(w->f[0], other->u, w->to[0]), FSI_ERROR_ARGUMENT, "u is no velocity");
    REFUSED(advect_linear(w->f[0], w->u, w->f[0]), FSI_ERROR_ARGUMENT, "to[0] is from[0]");
    REFUSED(advect_linear(w->f[0], w->u, w->to[1]), FSI_ERROR_ARGUMENT, "at one place");
    REFUSED(advect_linear(other->f[0], w->u, w->to[0]), FSI_ERROR_ARGUMENT, "at one place");
    REFUSED(advect_linear(w->f[2], w->u, w->u[1]), FSI_ERROR_ARGUMENT, "to[0] is u[1]");
    REFUSED(fsi_grid_advect(w->f[0], w->u, dt, (fsi_grid_scheme)3, 2, NULL, w->to[0]), FSI_ERROR_ARGUMENT,
            "scheme is 3");
    REFUSED(fsi_grid_advect(w->f[0], w->u, dt, FSI_ADVECT_LINEAR, 1, NULL, w->to[0]), FSI_ERROR_ARGUMENT, "order is 1");
    REFUSED(fsi_grid_advect(w->f[0], w->u, dt, FSI_ADVECT_LINEAR, 4, NULL, w->to[0]), FSI_ERROR_ARGUMENT, "order is 4");
    REFUSED(fsi_grid_advect(w->f[0], w->u, (fsi_real)test_nan(), FSI_ADVECT_LINEAR, 2, NULL, w->to[0]), FSI_ERROR_NAN,
            "dt");
    REFUSED(fsi_grid_advect(w->f[0], w->u, (fsi_real)test_inf(), FSI_ADVECT_LINEAR, 2, NULL, w->to[0]), FSI_ERROR_NAN,
            "dt");
}

static void refuse_velocities(world *w, world *other)
{
    fsi_field *u[3];
    memcpy(u, w->u, sizeof u);
    u[1] = w->f[0];
    CHECK(advect_velocity(w->u, w->u, NULL) == FSI_ERROR_COOKIE);
    CHECK(advect_velocity(w->u, w->u, u) == FSI_ERROR_COOKIE);
    REFUSED(advect_velocity(NULL, w->u, w->to + 1), FSI_ERROR_ARGUMENT, "from is no velocity");
    REFUSED(advect_velocity(w->u, other->u, w->to + 1), FSI_ERROR_ARGUMENT, "u is no velocity");
    REFUSED(advect_velocity(w->f + 1, w->u, w->u), FSI_ERROR_ARGUMENT, "to[0] is u[0]");
    REFUSED(advect_velocity(w->f + 1, w->u, w->f + 1), FSI_ERROR_ARGUMENT, "to[0] is from[0]");
}

/* Numbers that are not finite, and where. */
static void refuse_numbers(world *w, unsigned char *known)
{
    const fsi_real dt = (fsi_real)0.01;
    int k;
    for (k = 0; k < w->g->dim; k++) {
        char name[8] = "u[0]";
        const int at = entries(w) - 5;
        name[2] = (char)('0' + k);
        w->u[k]->value[at] = (fsi_real)(k ? test_nan() : test_inf());
        REFUSED(fsi_grid_advect(w->f[0], w->u, dt, FSI_ADVECT_LINEAR, 2, known, w->to[0]), FSI_ERROR_NAN, name);
        CHECK(w->context.error.element == at);
        w->u[k]->value[at] = 0;
    }
    w->f[1]->value[3] = (fsi_real)test_nan();
    REFUSED(advect_linear(w->f[1], w->u, w->to[1]), FSI_ERROR_NAN, "from[0] is not finite at entry 3");
}

static void refuse_extrapolation(world *w, unsigned char *known)
{
    const uint32_t cookie = w->f[0]->cookie;
    w->f[0]->cookie ^= 1;
    CHECK(fsi_grid_extrapolate(w->f[0], known, 3) == FSI_ERROR_COOKIE);
    w->f[0]->cookie = cookie;
    CHECK(fsi_grid_extrapolate(NULL, known, 3) == FSI_ERROR_COOKIE);
    w->f[1]->value[3] = (fsi_real)test_nan();
    known[3] = 1;
    REFUSED(fsi_grid_extrapolate(w->f[1], known, 2), FSI_ERROR_NAN, "not finite");
    REFUSED(fsi_grid_extrapolate(w->f[0], NULL, 2), FSI_ERROR_ARGUMENT, "known is NULL");
    REFUSED(fsi_grid_extrapolate(w->f[0], known, 0), FSI_ERROR_ARGUMENT, "layers is 0");
    REFUSED(fsi_grid_extrapolate(w->f[0], known, 255), FSI_ERROR_ARGUMENT, "layers is 255");
}

/* Finite, and absurd. */
static void take_absurd_speeds(world *w)
{
    const fsi_real dt = (fsi_real)0.01;
    int k;
    for (k = 0; k < entries(w); k++) w->u[0]->value[k] = (fsi_real)(k & 1 ? 1 : -1) * FSI_REAL_MAX;
    CHECK(fsi_grid_advect(w->f[0], w->u, dt, FSI_ADVECT_QUINTIC, 3, NULL, w->to[0]) == FSI_OK);
    for (k = 0; k < entries(w); k++) CHECK(fsi_is_finite((double)w->to[0]->value[k]));
}

static void test_bad_input_is_named(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t random = 67;
        world w, other;
        unsigned char *known;
        world_open(&w, dim, 19, 18, 17, 1, &random);
        world_open(&other, dim, 19, 18, 17, 1, &random);
        known = (unsigned char *)calloc((size_t)entries(&w), 1);
        refuse_fields(&w, &other);
        refuse_velocities(&w, &other);
        refuse_numbers(&w, known);
        refuse_extrapolation(&w, known);
        take_absurd_speeds(&w);
        free(known);
        world_close(&w);
        world_close(&other);
    }
}

static void test_an_empty_grid_is_no_trouble(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t random = 71;
        world w;
        unsigned char known = 0;
        world_open(&w, dim, 9, 9, 9, 0, &random);
        CHECK(w.g->block_count == 0);
        CHECK(fsi_grid_advect(w.f[0], w.u, 1, FSI_ADVECT_CUBIC, 2, NULL, w.to[0]) == FSI_OK);
        CHECK(fsi_grid_extrapolate(w.f[0], &known, 2) == FSI_OK);
        CHECK(fsi_grid_sample_linear(w.f[0], anywhere(w.g, 0, &random)) == w.f[0]->background);
        world_close(&w);
    }
}

static void test_every_allocation_may_fail(void)
{
    long k;
    fsi_status status = FSI_ERROR_MEMORY;
    for (k = 1; status == FSI_ERROR_MEMORY && k < 100; k++) {
        uint64_t random = 73;
        world w;
        unsigned char *known;
        int e;
        world_open(&w, 2, 30, 30, 1, 1, &random);
        known = (unsigned char *)calloc((size_t)entries(&w), 1);
        known[5] = 9;
        fill_random(w.f[0], 1, &random);
        memcpy(w.to[0]->value, w.f[0]->value, sizeof(fsi_real) * (size_t)entries(&w));
        test_fail_allocator(&w.context, k);
        status = fsi_grid_extrapolate(w.f[0], known, 4);
        if (status != FSI_OK) {
            CHECK(status == FSI_ERROR_MEMORY && w.context.error.status == FSI_ERROR_MEMORY && known[5] == 9);
            for (e = 0; e < entries(&w); e++) CHECK(w.f[0]->value[e] == w.to[0]->value[e]);
        } else {
            const long count = test_alloc_count();
            CHECK(fsi_grid_extrapolate(w.f[0], known, 4) == FSI_OK &&
                  fsi_grid_advect(w.f[0], w.u, 1, FSI_ADVECT_QUINTIC, 3, NULL, w.to[0]) == FSI_OK);
            CHECK(test_alloc_count() == count); /* the steady state */
        }
        free(known);
        world_close(&w);
        CHECK(test_live_bytes() == 0);
    }
    CHECK(status == FSI_OK && k > 2);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_linear_fields_and_parabolas_are_sampled_exactly);
    RUN(test_sampling_converges_with_its_order);
    RUN(test_samples_are_those_of_a_slow_reference);
    RUN(test_the_spline_is_smooth_and_its_gradient_is_its_own);
    RUN(test_traces_of_a_rotation_have_their_order);
    RUN(test_traces_end_within_the_box);
    RUN(test_advection_is_trace_and_sample);
    RUN(test_a_translation_by_whole_cells_is_exact);
    RUN(test_advected_polynomials_are_exact_to_the_degree_of_the_scheme);
    RUN(test_a_layer_on_a_wall_rises_as_it_falls);
    RUN(test_advection_makes_no_extrema_beyond_what_its_scheme_allows);
    RUN(test_entries_that_are_not_wanted_keep_their_value);
    RUN(test_a_velocity_goes_as_its_components_do);
    RUN(test_a_slotted_disc_keeps_its_shape);
    RUN(test_energy_of_a_short_wave_is_kept_in_the_order_of_the_schemes);
    RUN(test_extrapolation_is_that_of_a_slow_reference);
    RUN(test_what_lies_farther_from_the_surface_has_no_share_in_what_is_extrapolated);
    RUN(test_a_constant_goes_on_as_itself_and_ends_with_the_last_layer);
    RUN(test_the_bits_depend_neither_on_threads_nor_on_the_history_of_blocks);
    RUN(test_samplers_take_any_argument);
    RUN(test_bad_input_is_named);
    RUN(test_an_empty_grid_is_no_trouble);
    RUN(test_every_allocation_may_fail);
    return TEST_END();
}
