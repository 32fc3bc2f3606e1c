/* test_phi.c - redistancing, components and volumes of fsi_phi.h against shapes whose distance is known, floods by
   brute force and closed forms.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_phi.h"

/* ---- grids and shapes ------------------------------------------------------------------------------------------- */

typedef double shape_fn(const double x[3], const double *p);

typedef struct world {
    fsi_context context;
    fsi_grid *grid;
    fsi_field *phi, *out;
    int *label;
} world;

static size_t entries(const fsi_grid *g) { return (size_t)g->block_count * (size_t)g->block_cells; }

/* n cells a side (2D: n, n, 1), cells of 1/n, all blocks of which keep (NULL: all) says so. */
static void world_make(world *w, int dim, int n, double background, int (*keep)(int block))
{
    fsi_grid_desc d = fsi_grid_default_desc();
    unsigned char *wanted;
    int p, places;
    memset(w, 0, sizeof *w);
    w->context = fsi_default_context();
    test_fail_allocator(&w->context, 0);
    d.context = &w->context;
    d.dim = dim;
    d.n[0] = d.n[1] = d.n[2] = n;
    d.dx = (fsi_real)(1.0 / n);
    d.origin = fsi_v3((fsi_real)0.5, (fsi_real)-0.25, dim == 3 ? 2 : 0);
    CHECK(fsi_grid_create(&w->grid, &d) == FSI_OK);
    CHECK(fsi_grid_add_field(w->grid, FSI_CELLS, (fsi_real)background, &w->phi) == FSI_OK);
    CHECK(fsi_grid_add_field(w->grid, FSI_CELLS, (fsi_real)background, &w->out) == FSI_OK);
    places = w->grid->blocks[0] * w->grid->blocks[1] * w->grid->blocks[2];
    wanted = (unsigned char *)malloc((size_t)places);
    for (p = 0; p < places; p++) wanted[p] = !keep || keep(p);
    CHECK(fsi_grid_set_blocks(w->grid, wanted) == FSI_OK);
    free(wanted);
    w->label = (int *)malloc((entries(w->grid) + 1) * sizeof(int));
}

static void world_free(world *w)
{
    fsi_grid_destroy(w->grid);
    free(w->label);
}

/* Calls of one cell each, those of the box that exist. x: centre in cells, from the box's corner. */
typedef struct cell { int i, j, k; size_t e; double x[3]; } cell;
static int next_cell(const fsi_grid *g, cell *c)
{
    long long e;
    do {
        if (++c->i >= g->n[0]) {
            c->i = 0;
            if (++c->j >= g->n[1]) {
                c->j = 0;
                if (++c->k >= g->n[2]) return 0;
            }
        }
        e = fsi_grid_entry(g, c->i, c->j, c->k);
    } while (e < 0);
    c->e = (size_t)e;
    c->x[0] = c->i + 0.5;
    c->x[1] = c->j + 0.5;
    c->x[2] = g->dim == 3 ? c->k + 0.5 : 0;
    return 1;
}
static cell first_cell(void)
{
    cell c;
    memset(&c, 0, sizeof c);
    c.i = -1;
    return c;
}

static double clamp_to(double x, double most) { return x < -most ? -most : (x > most ? most : x); }

/* phi = shape, in cells times dx, cut off at 8 cells; stretch: times 1 + a wave of that size. */
static void fill(world *w, shape_fn *shape, const double *p, double stretch)
{
    cell c = first_cell();
    while (next_cell(w->grid, &c))
        w->phi->value[c.e] = (fsi_real)(clamp_to(shape(c.x, p), 8) * (double)w->grid->dx *
                                        (1 + stretch * sin(0.4 * c.i + 0.3 * c.j - 0.2 * c.k)));
}

static double length3(double x, double y, double z) { return sqrt(x * x + y * y + z * z); }
/* p: centre, radius */
static double ball(const double x[3], const double *p) { return length3(x[0] - p[0], x[1] - p[1], x[2] - p[2]) - p[3]; }
/* p: centre, radius, gap to a second one along x */
static double two_balls(const double x[3], const double *p)
{
    return fmin(ball(x, p), length3(x[0] - p[0] - 2 * p[3] - p[4], x[1] - p[1], x[2] - p[2]) - p[3]);
}
/* p: point, unit normal, half thickness (below 0: a half space) */
static double slab(const double x[3], const double *p)
{
    const double d = (x[0] - p[0]) * p[3] + (x[1] - p[1]) * p[4] + (x[2] - p[2]) * p[5];
    return p[6] < 0 ? d : fabs(d) - p[6];
}
/* p: centre, half edge, 3 in 3D */
static double cube(const double x[3], const double *p)
{
    const double a = fabs(x[0] - p[0]) - p[3], b = fabs(x[1] - p[1]) - p[3],
                 c = p[4] > 2 ? fabs(x[2] - p[2]) - p[3] : -1e9, m = fmax(a, fmax(b, c));
    return m < 0 ? m : length3(fmax(a, 0), fmax(b, 0), fmax(c, 0));
}

static void normal_of(double *n, int dim)
{
    const double l = length3(n[0], n[1], dim == 3 ? n[2] : 0);
    n[0] /= l;
    n[1] /= l;
    n[2] = dim == 3 ? n[2] / l : 0;
}

static double volume_of(const fsi_field *phi)
{
    fsi_grid_component c;
    CHECK(fsi_grid_volumes(phi, NULL, 1, NULL, NULL, &c) == FSI_OK);
    return c.volume;
}

/* Largest difference of out from the shape, in cells, where that is between lo and hi cells; signs are the same
   everywhere. */
static double error_of(const world *w, shape_fn *shape, const double *p, double lo, double hi)
{
    const double dx = (double)w->grid->dx;
    double worst = 0;
    cell c = first_cell();
    while (next_cell(w->grid, &c)) {
        const double d = shape(c.x, p), o = (double)w->out->value[c.e] / dx;
        CHECK((w->out->value[c.e] < 0) == (w->phi->value[c.e] < 0));
        CHECK(fabs(o) <= 8.0001);
        if (fabs(d) < lo || fabs(d) >= hi || fabs(d) > 7.99) continue;
        if (!(fabs(d - o) <= worst)) worst = fabs(d - o);
    }
    return worst;
}

/* ---- redistancing ----------------------------------------------------------------------------------------------- */

static void test_a_distance_stays_and_so_does_its_volume(void)
{
    uint64_t random = 1;
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        world w;
        world_make(&w, dim, 36, 8.0 / 36, NULL);
        for (k = 0; k < 6; k++) {
            const double p[4] = {17 + 2 * test_random(&random), 17 + 2 * test_random(&random),
                                 dim == 3 ? 17 + 2 * test_random(&random) : 0, 8};
            double before;
            fill(&w, ball, p, 0);
            before = volume_of(w.phi);
            CHECK(fsi_grid_redistance(w.phi, 8, w.out) == FSI_OK);
            CHECK_NEAR(error_of(&w, ball, p, 0, 1), 0, 1e-3);
            CHECK_NEAR(error_of(&w, ball, p, 1, 5), 0, 2e-3);    /* 8: the centre */
            CHECK_NEAR(volume_of(w.out) / before - 1, 0, 1e-4);
        }
        world_free(&w);
    }
}

static void test_repeating_moves_the_surface_little(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        const double p[4] = { 17.3, 18.8, dim == 3 ? 17.6 : 0, 8 };
        double before;
        world w;
        world_make(&w, dim, 36, 8.0 / 36, NULL);
        fill(&w, ball, p, 0);
        before = volume_of(w.phi);
        CHECK(fsi_grid_redistance(w.phi, 4, w.out) == FSI_OK);
        for (k = 1; k < 20; k++) CHECK(fsi_grid_redistance(w.out, 4, w.out) == FSI_OK);
        CHECK_NEAR(volume_of(w.out) / before - 1, 0, 1e-3);
        CHECK_NEAR(fsi_grid_at(w.out, 0, 0, 0), 4.0 / 36, TOL(1e-12, 1e-6)); /* cut off at the band */
        world_free(&w);
    }
}

/* phi times a wave: the surface stays, the distance must come back, with an error of third order next to it. */
static void test_a_stretched_ball_becomes_a_distance_with_third_order_at_the_surface(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double p[4] = { 20.3, 19.8, dim == 3 ? 19.6 : 0, 10 };
        world w;
        world_make(&w, dim, 40, 8.0 / 40, NULL);
        fill(&w, ball, p, 0.3);
        CHECK(fsi_grid_redistance(w.phi, 8, w.out) == FSI_OK);
        CHECK_NEAR(error_of(&w, ball, p, 0, 0.5), 0, 0.01);
        CHECK_NEAR(error_of(&w, ball, p, 0, 1), 0, 0.04);
        CHECK_NEAR(error_of(&w, ball, p, 1, 6), 0, 0.25); /* between the rays of two sheets */
        world_free(&w);
    }
}

static void test_error_falls_with_the_radius(void)
{
    double error[2];
    int k;
    for (k = 0; k < 2; k++) {
        const double p[4] = { 24.3, 23.8, 0, k ? 16 : 8 };
        world w;
        world_make(&w, 2, 48, 8.0 / 48, NULL);
        fill(&w, ball, p, 0);
        CHECK(fsi_grid_redistance(w.phi, 8, w.out) == FSI_OK);
        error[k] = error_of(&w, ball, p, 0, 4);
        world_free(&w);
    }
    CHECK(error[1] <= TOL(error[0] / 6, error[0] / 2));
}

static void test_planes_are_exact_up_to_the_walls(void)
{
    uint64_t random = 3;
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 4; k++) {
            double p[7] = { 12.1, 11.7, 0, 0, 0, 0, -1 }, worst = 0;
            cell c = first_cell();
            world w;
            p[2] = dim == 3 ? 12.3 : 0;
            p[3] = test_random(&random) - 0.5;
            p[4] = test_random(&random) - 0.5;
            p[5] = test_random(&random) - 0.5;
            normal_of(p + 3, dim);
            world_make(&w, dim, 24, 8.0 / 24, NULL);
            fill(&w, slab, p, 0);
            CHECK(fsi_grid_redistance(w.phi, 8, w.out) == FSI_OK);
            while (next_cell(w.grid, &c)) {
                const double d = slab(c.x, p);
                int a, inside = fabs(d) < 7.9;
                /* where the nearest point lies in the box */
                for (a = 0; a < dim; a++) inside &= c.x[a] - d * p[3 + a] > 0 && c.x[a] - d * p[3 + a] < 24;
                if (inside) worst = fmax(worst, fabs(d - (double)w.out->value[c.e] / (double)w.grid->dx));
            }
            CHECK_NEAR(worst, 0, 2e-3);
            CHECK_NEAR(error_of(&w, slab, p, 0, 0.5), 0, TOL(1e-6, 1e-4)); /* at the walls too */
            world_free(&w);
        }
}

/* Discs that a wall cuts, of a phi that is no distance: the error in the two cells at the wall falls with the number of
   cells, also where the box ends with the first cell of a block. */
static void test_discs_cut_by_a_wall_do_not_depend_on_where_blocks_end(void)
{
    double error[3];
    int k, i;
    for (k = 0; k < 3; k++) {
        const double n = 24 + k;
        uint64_t random = 7;
        double sum = 0;
        int count = 0;
        world w;
        world_make(&w, 2, 24 + k, 8 / n, NULL);
        for (i = 0; i < 400; i++) {
            const double r = 0.25 + 0.2 * test_random(&random), x = 1 - r * (0.8 * test_random(&random) - 0.2),
                y = 0.2 + 0.6 * test_random(&random), bend = 2 * test_random(&random);
            const double p[4] = { x * n, y * n, 0, r * n };
            cell c = first_cell();
            while (next_cell(w.grid, &c)) {
                const double d = ball(c.x, p);
                w.phi->value[c.e] = (fsi_real)(d * (1 + bend * d / p[3]) / n);
            }
            CHECK(fsi_grid_redistance(w.phi, 4, w.out) == FSI_OK);
            for (c = first_cell(); next_cell(w.grid, &c);) {
                const double d = ball(c.x, p), off = d - (double)w.out->value[c.e] * n;
                if (c.i < 22 + k || c.j < 2 || c.j > 21 + k || fabs(d) > 0.4) continue;
                sum += off * off;
                count++;
            }
        }
        error[k] = sqrt(sum / count);
        world_free(&w);
    }
    CHECK(error[0] <= 0.006 && error[1] <= error[0] && error[2] <= error[1]);
}

static void test_between_two_drops_the_nearer_one_counts(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 4; k++) {
            static const double gap[4] = { 0.5, 1, 2, 3 };
            const double p[5] = { 11.3, 18.8, dim == 3 ? 17.6 : 0, 6, gap[k] };
            world w;
            world_make(&w, dim, 36, 8.0 / 36, NULL);
            fill(&w, two_balls, p, 0);
            CHECK(fsi_grid_redistance(w.phi, 8, w.out) == FSI_OK);
            CHECK_NEAR(error_of(&w, two_balls, p, 0, 8), 0, 0.25);
            CHECK_NEAR(error_of(&w, two_balls, p, 0, 0.5), 0, k < 2 ? 0.15 : 0.03);
            world_free(&w);
        }
}

static void test_sheets_and_drops_of_a_cell_survive(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        for (k = 0; k < 3; k++) {
            static const double half[3] = { 0.4, 0.75, 1 };
            double p[7] = { 12.1, 12.2, 0, 1, 0.37, 0.21, 0 };
            world w;
            p[2] = dim == 3 ? 12.3 : 0;
            p[6] = half[k];
            normal_of(p + 3, dim);
            world_make(&w, dim, 24, 8.0 / 24, NULL);
            fill(&w, slab, p, 0);
            CHECK(fsi_grid_redistance(w.phi, 8, w.out) == FSI_OK);
            CHECK_NEAR(error_of(&w, slab, p, 0, 2), 0, k ? 0.2 : 0.35);
            world_free(&w);
        }
        {
            const double p[4] = { 10.5, 10.5, dim == 3 ? 10.5 : 0, 0.3 };
            const int at = dim == 3 ? 10 : 0;
            world w;
            world_make(&w, dim, 21, 8.0 / 21, NULL);
            fill(&w, ball, p, 0);
            CHECK(fsi_grid_redistance(w.phi, 8, w.out) == FSI_OK);
            CHECK_NEAR((double)fsi_grid_at(w.out, 10, 10, at) * 21, -0.3, TOL(1e-12, 1e-5));
            CHECK_NEAR((double)fsi_grid_at(w.out, 11, 10, at) * 21, 0.7, 0.01);
            CHECK_NEAR((double)fsi_grid_at(w.out, 14, 10, at) * 21, 3.7, 0.05);
            for (k = 0; k < 50; k++) CHECK(fsi_grid_redistance(w.out, 8, w.out) == FSI_OK);
            CHECK(fsi_grid_at(w.out, 10, 10, at) < 0);
            world_free(&w);
        }
    }
}

/* Each cell that moved the surface as its own fit tells wore sheets of a cell away, a quarter of
   them in 100 times, at worst all, and two thirds of squares of 2 cells in 20 times; gaps filled alike. */
static void test_sheets_gaps_and_squares_do_not_wear_away(void)
{
    static const double half[3] = {0.6, 0.7, 1}, normal[4][3] = {{0, 1, 0}, {0.17, 1, 0.1}, {0.5, 1, 0.3}, {1, 1, 1}};
    int dim, k, h, r, side;
    for (dim = 2; dim <= 3; dim++) {
        double sheets = 0, squares = 0;
        world w;
        world_make(&w, dim, 16, 8.0 / 16, NULL);
        for (k = 0; k < 4; k++) for (h = 0; h < 3; h++) for (side = -1; side <= 1; side += 2) {
            double p[7] = { 8, 8.15 + 0.3 * h, 0, 0, 0, 0, 0 }, first, whole;
            size_t e;
            p[2] = dim == 3 ? 8 : 0;
            memcpy(p + 3, normal[k], 3 * sizeof *p);
            normal_of(p + 3, dim);
            p[6] = half[h];
            fill(&w, slab, p, 0);
            for (e = 0; e < entries(w.grid); e++) w.phi->value[e] *= (fsi_real)-side;
            CHECK(fsi_grid_redistance(w.phi, 8, w.out) == FSI_OK);
            first = volume_of(w.out);
            whole = pow(8, dim);
            for (r = 0; r < 100; r++) CHECK(fsi_grid_redistance(w.out, 8, w.out) == FSI_OK);
            sheets = fmax(sheets, fabs(volume_of(w.out) - first) / (side < 0 ? first : whole - first));
        }
        for (k = 0; k < 4; k++) {
            const double p[5] = { 8.1 + 0.2 * k, 7.8, dim == 3 ? 7.6 : 0, 1 + 0.3 * k, dim };
            double first;
            fill(&w, cube, p, 0);
            CHECK(fsi_grid_redistance(w.phi, 8, w.out) == FSI_OK);
            first = volume_of(w.out);
            for (r = 0; r < 20; r++) CHECK(fsi_grid_redistance(w.out, 8, w.out) == FSI_OK);
            squares = fmax(squares, fabs(volume_of(w.out) / first - 1));
        }
        printf("   %dD: sheets and gaps change by %.3f at most, in 100 times, squares of 2 to 4 cells by %.3f in 20\n",
               dim, sheets, squares);
        CHECK(sheets <= 0.25 && squares <= 0.05); /* the most: sheets of 1.2 dx along the diagonal */
        world_free(&w);
    }
}

static void test_corners_are_kept_to_a_fraction_of_a_cell(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double p[5] = { 16.3, 15.8, dim == 3 ? 15.6 : 0, 7.3, dim };
        world w;
        double before;
        world_make(&w, dim, 32, 8.0 / 32, NULL);
        fill(&w, cube, p, 0);
        before = volume_of(w.phi);
        CHECK(fsi_grid_redistance(w.phi, 8, w.out) == FSI_OK);
        CHECK_NEAR(error_of(&w, cube, p, 0, 8), 0, 0.75);
        CHECK_NEAR(volume_of(w.out) / before - 1, 0, 0.02);
        world_free(&w);
    }
}

static void fill_noise(world *w, uint64_t seed)
{
    size_t e;
    for (e = 0; e < entries(w->grid); e++) w->phi->value[e] = (fsi_real)(test_random(&seed) - 0.5);
}

/* Noise: every cell has a neighbour on the other side, and no sign may change. Its size must not matter, tiny or
   huge. */
static void test_noise_keeps_its_signs_at_any_scale(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        world w;
        fsi_real *first;
        size_t e, n;
        world_make(&w, dim, 20, 1, NULL);
        n = entries(w.grid);
        first = (fsi_real *)malloc(n * sizeof *first);
        for (k = 0; k < 3; k++) {
            const double scale = k == 0 ? 1 : (k == 1 ? TOL(1e-300, 1e-30) : TOL(1e300, 1e30));
            cell c = first_cell();
            fill_noise(&w, 5);
            for (e = 0; e < n; e++) w.phi->value[e] = (fsi_real)((double)w.phi->value[e] * scale);
            CHECK(fsi_grid_redistance(w.phi, 3, w.out) == FSI_OK);
            while (next_cell(w.grid, &c)) {
                const double o = (double)w.out->value[c.e] * 20;
                CHECK((o < 0) == (w.phi->value[c.e] < 0) && fabs(o) <= 3.0001);
                if (k == 0) first[c.e] = w.out->value[c.e];
                else CHECK_NEAR(o, (double)first[c.e] * 20, 1e-3);
            }
        }
        free(first);
        world_free(&w);
    }
}

static int keep_some(int block) { return block % 7 != 3 && block % 5 != 1; }

/* What is liquid by the least number that there is stays liquid. */
static void test_the_least_of_liquid_stays_liquid(void)
{
    const fsi_real least = (fsi_real)TOL(4.9406564584124654e-324, 1.40129846e-45);
    world w;
    long long at;
    world_make(&w, 3, 20, 1, NULL);
    for (at = 0; at < (long long)entries(w.grid); at++) w.phi->value[at] = 1;
    at = fsi_grid_entry(w.grid, 9, 9, 9);
    w.phi->value[at] = -least;
    CHECK(fsi_grid_redistance(w.phi, 3, w.out) == FSI_OK);
    CHECK(w.out->value[at] < 0);
    world_free(&w);
}

/* What is in no block is air, as if it stood there. */
static void test_missing_blocks_are_air(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double p[4] = { 11.3, 12.8, dim == 3 ? 11.6 : 0, 6 };
        world all, some;
        cell c = first_cell();
        world_make(&all, dim, 24, 0.1, NULL);
        world_make(&some, dim, 24, 0.1, keep_some);
        fill(&all, ball, p, 0);
        fill(&some, ball, p, 0);
        while (next_cell(all.grid, &c))
            if (fsi_grid_entry(some.grid, c.i, c.j, c.k) < 0) all.phi->value[c.e] = (fsi_real)0.1;
        CHECK(fsi_grid_redistance(all.phi, 4, all.out) == FSI_OK);
        CHECK(fsi_grid_redistance(some.phi, 4, some.out) == FSI_OK);
        for (c = first_cell(); next_cell(some.grid, &c);) { /* paths around what is missing may find another sheet than
                                                               paths through it */
            const double a = (double)fsi_grid_at(all.out, c.i, c.j, c.k) * 24, b = (double)some.out->value[c.e] * 24;
            CHECK((a < 0) == (b < 0));
            if (fabs(a) < 1 || fabs(b) < 1) CHECK_NEAR(b, a, 0.5);
        }
        CHECK_NEAR(volume_of(some.phi), volume_of(all.phi), 1e-12);
        world_free(&all);
        world_free(&some);
    }
}

static void test_a_grid_without_surface_is_cut_off(void)
{
    world w;
    size_t e;
    world_make(&w, 3, 9, 1, NULL);
    for (e = 0; e < entries(w.grid); e++) w.phi->value[e] = -1;
    CHECK(fsi_grid_redistance(w.phi, 5, w.phi) == FSI_OK);
    CHECK_NEAR((double)fsi_grid_at(w.phi, 4, 4, 4) * 9, -5, 1e-5);
    world_free(&w);
    world_make(&w, 2, 1, 1, NULL); /* a single cell */
    w.phi->value[0] = -1;
    CHECK(fsi_grid_redistance(w.phi, 5, w.out) == FSI_OK && w.out->value[0] == -5);
    CHECK_NEAR(volume_of(w.phi), 1, 1e-12);
    world_free(&w);
}

/* ---- components ------------------------------------------------------------------------------------------------- */

static long long beside(const fsi_grid *g, const cell *c, int side)
{
    static const int step[6][3] = { { -1, 0, 0 }, { 1, 0, 0 }, { 0, -1, 0 }, { 0, 1, 0 }, { 0, 0, -1 }, { 0, 0, 1 } };
    const int i = c->i + step[side][0], j = c->j + step[side][1], k = c->k + step[side][2];
    return i < 0 || j < 0 || k < 0 || i >= g->n[0] || j >= g->n[1] || k >= g->n[2] ? -1 : fsi_grid_entry(g, i, j, k);
}

/* In the order of the cells each that is liquid and has no number yet floods with the next. */
static int flood_by_hand(const world *w, const unsigned char *solid, int *label)
{
    const fsi_grid *g = w->grid;
    cell *stack = (cell *)malloc((entries(g) * 6 + 1) * sizeof *stack), c = first_cell();
    size_t e;
    int count = 0, top, side;
    for (e = 0; e < entries(g); e++) label[e] = -1;
    while (next_cell(g, &c)) {
        if (label[c.e] >= 0 || !(w->phi->value[c.e] < 0) || (solid && solid[c.e])) continue;
        label[c.e] = count;
        stack[0] = c;
        for (top = 1; top > 0;) {
            const cell from = stack[--top];
            for (side = 0; side < 2 * g->dim; side++) {
                const long long to = beside(g, &from, side);
                cell next = from;
                if (to < 0 || label[to] >= 0 || !(w->phi->value[to] < 0) || (solid && solid[to])) continue;
                label[to] = count;
                next.e = (size_t)to;
                if (side < 2) next.i += 2 * side - 1;
                else if (side < 4) next.j += 2 * side - 5;
                else next.k += 2 * side - 9;
                stack[top++] = next;
            }
        }
        count++;
    }
    free(stack);
    return count;
}

static void test_labels_are_those_of_a_flood(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 4; k++) {
            world w;
            uint64_t random = (uint64_t)k + 1;
            unsigned char *solid;
            int *label, count, many, differ = 0;
            size_t e;
            world_make(&w, dim, dim == 2 ? 61 : 27, 1, k & 1 ? keep_some : NULL);
            label = (int *)malloc(entries(w.grid) * sizeof *label);
            solid = (unsigned char *)malloc(entries(w.grid));
            for (e = 0; e < entries(w.grid); e++) {
                /* near where pieces join up */
                w.phi->value[e] = (fsi_real)(test_random(&random) - (dim == 2 ? 0.55 : 0.33));
                solid[e] = test_random(&random) < 0.05;
            }
            many = flood_by_hand(&w, k & 2 ? solid : NULL, label);
            CHECK(fsi_grid_label(w.phi, k & 2 ? solid : NULL, w.label, &count) == FSI_OK);
            CHECK(count == many && count > 10);
            for (e = 0; e < entries(w.grid); e++) differ += label[e] != w.label[e];
            CHECK(differ == 0);
            free(label);
            free(solid);
            world_free(&w);
        }
}

static void test_labels_grow_layer_by_layer(void)
{
    int dim, k, layer, side;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 2; k++) {
            world w;
            int *label, *next, differ = 0, grown = 0;
            size_t e, n;
            world_make(&w, dim, dim == 2 ? 45 : 19, 1, k ? keep_some : NULL);
            n = entries(w.grid);
            label = (int *)malloc(n * sizeof *label);
            next = (int *)malloc(n * sizeof *next);
            fill_noise(&w, 9);
            for (e = 0; e < n; e++) {
                w.phi->value[e] = (fsi_real)floor((double)w.phi->value[e] * 8); /* ties */
                label[e] = e % 41 == 7 ? (int)(e % 13) : -1;
            }
            memcpy(w.label, label, n * sizeof *label);
            for (layer = 0; layer < 3; layer++) {
                cell c = first_cell();
                memcpy(next, label, n * sizeof *label);
                while (next_cell(w.grid, &c)) {
                    long long best = -1;
                    for (side = 0; side < 2 * dim && label[c.e] < 0; side++) {
                        const long long b = beside(w.grid, &c, side);
                        if (b < 0 || label[b] < 0) continue;
                        if (best < 0 || w.phi->value[b] < w.phi->value[best] ||
                            (!(w.phi->value[b] > w.phi->value[best]) && label[b] < label[best]))
                            best = b;
                    }
                    if (best < 0) continue;
                    next[c.e] = label[best];
                    grown++;
                }
                memcpy(label, next, n * sizeof *label);
            }
            CHECK(fsi_grid_grow_labels(w.label, w.phi, 3) == FSI_OK);
            for (e = 0; e < n; e++) differ += w.label[e] != label[e]; /* beyond the box nothing changes */
            CHECK(differ == 0 && grown > 100);
            free(label);
            free(next);
            world_free(&w);
        }
}

/* ---- volumes ---------------------------------------------------------------------------------------------------- */

/* Linear interpolation reads phi of a ball too high by (dx^2 / 2) tr(H M): 1/12 of its curvature on triangles, 1/6 on
   tetrahedra. */
static void test_balls_lose_what_linear_interpolation_takes(void)
{
    static const double radius[3] = { 3, 6, 10 };
    const double pi = 3.14159265358979323846;
    uint64_t random = 11;
    int dim, k, r;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 3; k++) {
            const double R = radius[k], exact = (dim == 2 ? pi : 4 * pi * R / 3) * R * R,
                         surface = dim == 2 ? 2 * pi * R : 4 * pi * R * R;
            double volume = 0, area = 0, off = 0;
            for (r = 0; r < 8; r++) {
                const double p[4] = {12 + test_random(&random), 12 + test_random(&random),
                                     dim == 3 ? 12 + test_random(&random) : 0, R};
                fsi_grid_component c;
                world w;
                world_make(&w, dim, 26, 8.0 / 26, NULL);
                fill(&w, ball, p, 0);
                CHECK(fsi_grid_volumes(w.phi, NULL, 1, NULL, NULL, &c) == FSI_OK);
                volume += c.volume * pow(26, dim) / exact / 8;
                area += c.area * pow(26, dim - 1) / surface / 8;
                off = fmax(off, fabs(((double)c.centroid.x - 0.5) * 26 - p[0]));
                off = fmax(off, fabs(((double)c.centroid.y + 0.25) * 26 - p[1]));
                if (dim == 3) off = fmax(off, fabs(((double)c.centroid.z - 2) * 26 - p[2]));
                CHECK_NEAR(((double)c.box.lo.x - 0.5) * 26, p[0] - R, 0.25);
                CHECK_NEAR(((double)c.box.hi.y + 0.25) * 26, p[1] + R, 0.25);
                CHECK(dim == 3 || (c.centroid.z == 0 && c.box.hi.z == 0));
                world_free(&w);
            }
            CHECK_NEAR(volume - 1, -(dim == 2 ? 1 / (6 * R * R) : 1 / (2 * R * R)),
                       0.2 * (dim == 2 ? 1 / (6 * R * R) : 1 / (2 * R * R)));
            CHECK_NEAR(area, 1, dim == 2 ? 0.3 / (R * R) : 0.6 / (R * R));
            CHECK_NEAR(off, 0, 0.03);
        }
}

static void test_a_pool_is_exact(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double p[7] = { 0, 26.3, 0, 0, 1, 0, -1 };
        fsi_grid_component c;
        world w;
        int n;
        for (n = 32; n <= 35; n++) {
            world_make(&w, dim, n, 8.0 / n, NULL);
            fill(&w, slab, p, 0);
            CHECK(fsi_grid_volumes(w.phi, NULL, 1, NULL, NULL, &c) == FSI_OK);
            CHECK_NEAR(c.volume * n, 26.3, TOL(1e-11, 1e-4));
            CHECK_NEAR(c.area, 1, TOL(1e-12, 1e-5));
            CHECK_NEAR(c.centroid.x, 1, TOL(1e-12, 1e-5));
            CHECK_NEAR(((double)c.centroid.y + 0.25) * n, 26.3 / 2, TOL(1e-11, 1e-4));
            CHECK_NEAR(c.box.lo.x, 0.5, TOL(1e-12, 1e-5));
            CHECK_NEAR(c.box.hi.x, 1.5, TOL(1e-12, 1e-5));
            CHECK_NEAR(((double)c.box.hi.y + 0.25) * n, 26.3, TOL(1e-11, 1e-4));
            CHECK(c.cells == 26 * n * (dim == 3 ? n : 1));
            world_free(&w);
        }
    }
}

/* A plane through the midst of the box at any angle: the cube cut in halves. */
static void test_a_tilted_plane_halves_a_block(void)
{
    uint64_t random = 17;
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 5; k++) {
            double p[7] = { 10, 10, 0, 0, 0, 0, -1 };
            world w;
            p[2] = dim == 3 ? 10 : 0;
            p[3] = test_random(&random) - 0.5;
            p[4] = test_random(&random) - 0.5;
            p[5] = test_random(&random) - 0.5;
            normal_of(p + 3, dim);
            world_make(&w, dim, 20, 1, NULL);
            fill(&w, slab, p, 0);
            CHECK_NEAR(volume_of(w.phi), 0.5, TOL(1e-6, 1e-4)); /* phi is odd about the midst; cubes are not, where it
                                                                   is cut off */
            world_free(&w);
        }
}

/* A wedge that thins away on the floor, or on the ceiling, has the volume of a wedge: also where it is no half cell
   thick. */
static void test_a_wedge_on_a_wall_is_exact(void)
{
    const int n = 24;
    int dim, side;
    for (dim = 2; dim <= 3; dim++)
        for (side = 0; side < 2; side++) {
            const double length = 20.3, height = 3.7; /* in cells */
            double p[7] = { 20.3, 0, 0, 3.7, 20.3, 0, -1 };
            world w;
            if (side) p[1] = n, p[4] = -p[4];
            normal_of(p + 3, dim);
            world_make(&w, dim, n, 1, NULL);
            fill(&w, slab, p, 0);
            CHECK_NEAR(volume_of(w.phi) * n * n, length * height / 2, TOL(1e-9, 1e-3));
            world_free(&w);
        }
}

/* The share of a tetrahedron where the linear f is below 0: sum over its negative corners of f_i^3 / prod (f_i -
   f_j). */
static long double share_below(const long double f[4])
{
    long double sum = 0, part;
    int i, j;
    if (f[0] < 0 && f[1] < 0 && f[2] < 0 && f[3] < 0) return 1;
    for (i = 0; i < 4; i++) {
        if (!(f[i] < 0)) continue;
        for (j = 0, part = f[i] * f[i] * f[i]; j < 4; j++) if (j != i) part /= f[i] - f[j];
        sum += part;
    }
    return sum;
}

/* phi at a centre or, one cell beyond the last, on the wall there: on the line through the last two. */
static double phi_to_walls(const fsi_field *phi, int axis, const int *node)
{
    int at[3] = { node[0], node[1], node[2] };
    double near_wall, further;
    if (axis == phi->grid->dim) return (double)fsi_grid_at(phi, at[0], at[1], at[2]);
    if (node[axis] >= 0 && node[axis] < phi->grid->n[axis]) return phi_to_walls(phi, axis + 1, node);
    at[axis] += node[axis] < 0 ? 1 : -1;
    near_wall = phi_to_walls(phi, axis + 1, at);
    at[axis] += node[axis] < 0 ? 1 : -1;
    further = phi_to_walls(phi, axis + 1, at);
    return (3 * near_wall - further) / 2;
}

static double volume_by_hand(const world *w)
{
    static const int path[6][2] = { { 0, 1 }, { 0, 2 }, { 1, 0 }, { 1, 2 }, { 2, 0 }, { 2, 1 } };
    const fsi_grid *g = w->grid;
    double sum = 0;
    int i, j, k, t, s;
    for (k = 0; k <= (g->dim == 3 ? g->n[2] : 0); k++)
        for (j = 0; j <= g->n[1]; j++)
            for (i = 0; i <= g->n[0]; i++) {
                const double size = (i == 0 || i == g->n[0] ? 0.5 : 1) * (j == 0 || j == g->n[1] ? 0.5 : 1) *
                                    (g->dim == 3 && (k == 0 || k == g->n[2]) ? 0.5 : 1);
                for (t = 0; t < 6; t++) {
                    int at[3] = { i - 1, j - 1, k - 1 };
                    long double f[4];
                    for (s = 0; s < 4; s++) {
                        if (s > 0) at[s < 3 ? path[t][s - 1] : 3 - path[t][0] - path[t][1]]++;
                        /* apart: the formula divides by differences */
                        f[s] = (long double)phi_to_walls(w->phi, 0, at) * (1 + 1e-5L * s);
                    }
                    sum += size * (double)share_below(f) / 6;
                }
            }
    return sum;
}

/* Noise in blocks with holes: more components than a block has slots, every case of a cut, owners of cubes, walls. */
static void test_volumes_of_noise_are_those_of_the_closed_form(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 2; k++) {
            world w;
            fsi_grid_component whole, *part;
            double volume = 0, area = 0;
            int c, count, cells = 0;
            world_make(&w, dim, dim == 2 ? 45 : 21, 0.3, k ? keep_some : NULL);
            fill_noise(&w, 21);
            for (c = 0; c < (int)entries(w.grid); c++) w.phi->value[c] += (fsi_real)0.2;
            CHECK(fsi_grid_volumes(w.phi, NULL, 1, NULL, NULL, &whole) == FSI_OK);
            CHECK_NEAR(whole.volume * pow((double)w.grid->n[0], dim) / volume_by_hand(&w), 1, TOL(1e-4, 1e-3));
            CHECK(fsi_grid_label(w.phi, NULL, w.label, &count) == FSI_OK);
            part = (fsi_grid_component *)malloc((size_t)count * sizeof *part);
            CHECK(fsi_grid_grow_labels(w.label, w.phi, 3) == FSI_OK); /* for what is liquid at a wall only */
            CHECK(fsi_grid_volumes(w.phi, w.label, count, NULL, NULL, part) == FSI_OK);
            for (c = 0; c < count; c++) {
                volume += part[c].volume;
                area += part[c].area;
                cells += part[c].cells;
                CHECK(part[c].volume > 0 && part[c].area > 0 && part[c].cells > 0);
                CHECK(part[c].box.lo.x <= part[c].centroid.x && part[c].centroid.x <= part[c].box.hi.x);
            }
            CHECK(count > 20 && cells == whole.cells);
            CHECK_NEAR(volume / whole.volume, 1, TOL(1e-12, 1e-12));
            CHECK_NEAR(area / whole.area, 1, TOL(1e-12, 1e-12));
            free(part);
            world_free(&w);
        }
}

/* Each of two drops has the volume that it has alone, however near the other is. */
static void test_near_drops_do_not_share_volume(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double p[5] = { 8.3, 13.8, dim == 3 ? 13.6 : 0, 4, 1.6 };
        fsi_grid_component c[2];
        double alone;
        int count;
        world w;
        world_make(&w, dim, 28, 8.0 / 28, NULL);
        fill(&w, ball, p, 0);
        alone = volume_of(w.phi);
        fill(&w, two_balls, p, 0);
        CHECK(fsi_grid_label(w.phi, NULL, w.label, &count) == FSI_OK && count == 2);
        CHECK(fsi_grid_volumes(w.phi, w.label, 2, NULL, NULL, c) == FSI_OK);
        CHECK_NEAR(c[0].centroid.x < c[1].centroid.x ? c[0].volume / alone : c[1].volume / alone, 1, 1e-3);
        CHECK_NEAR(c[0].volume / c[1].volume, 1, 0.02);
        world_free(&w);
    }
}

static void test_momentum_is_volume_times_velocity(void)
{
    int dim, a;
    for (dim = 2; dim <= 3; dim++) {
        const double p[4] = { 9.3, 9.8, dim == 3 ? 8.6 : 0, 7 };
        fsi_field *u[3] = { NULL, NULL, NULL };
        fsi_grid_component c;
        world w;
        size_t e;
        world_make(&w, dim, 20, 8.0 / 20, NULL);
        fill(&w, ball, p, 0);
        for (a = 0; a < dim; a++) {
            CHECK(fsi_grid_add_field(w.grid, (fsi_grid_place)(FSI_FACES_X + a), 0, &u[a]) == FSI_OK);
            for (e = 0; e < entries(w.grid); e++) u[a]->value[e] = (fsi_real)(a + 1);
        }
        CHECK(fsi_grid_volumes(w.phi, NULL, 1, u, NULL, &c) == FSI_OK);
        CHECK_NEAR((double)c.momentum.x / c.volume, 1, 1e-5);
        CHECK_NEAR((double)c.momentum.y / c.volume, 2, 1e-5);
        CHECK_NEAR((double)c.momentum.z / c.volume, dim == 3 ? 3 : 0, 1e-5);
        for (e = 0; e < entries(w.grid); e++) { /* u = x, the centroid's */
            int corner[3];
            fsi_grid_corner(w.grid, (int)(e / (size_t)w.grid->block_cells), corner);
            u[0]->value[e] = (fsi_real)(corner[0] + (int)(e & 7));
        }
        CHECK(fsi_grid_volumes(w.phi, NULL, 1, u, NULL, &c) == FSI_OK);
        CHECK_NEAR((double)c.momentum.x / c.volume, ((double)c.centroid.x - 0.5) * 20, 0.01);
        world_free(&w);
    }
}

/* Liquid below 0 inside of a solid has no label and counts for nobody. */
static void test_what_has_no_label_has_no_volume(void)
{
    world w;
    const double p[7] = { 0, 6, 0, 0, 1, 0, -1 };
    fsi_grid_component c;
    unsigned char *solid;
    int count;
    cell at = first_cell();
    world_make(&w, 3, 12, 1, NULL);
    fill(&w, slab, p, 0);
    solid = (unsigned char *)calloc(entries(w.grid), 1);
    while (next_cell(w.grid, &at)) solid[at.e] = at.i < 6;
    CHECK(fsi_grid_label(w.phi, solid, w.label, &count) == FSI_OK && count == 1);
    CHECK(fsi_grid_volumes(w.phi, w.label, 1, NULL, NULL, &c) == FSI_OK);
    CHECK_NEAR(c.volume, 0.25, 0.002);
    CHECK(c.cells == 6 * 6 * 12);
    CHECK_NEAR(c.centroid.x, 0.5 + 0.75, 0.002);
    free(solid);
    world_free(&w);
}

/* ---- promises --------------------------------------------------------------------------------------------------- */

/* Everything that a step asks for; the hash of the answers. */
static uint64_t all_answers(world *w, fsi_status *status)
{
    fsi_grid_component *part = NULL;
    uint64_t hash = 0;
    int count = 0, k;
    *status = fsi_grid_redistance(w->phi, 6, w->out);
    if (*status == FSI_OK) *status = fsi_grid_label(w->out, NULL, w->label, &count);
    if (*status == FSI_OK) part = (fsi_grid_component *)malloc((size_t)(count + 1) * sizeof *part);
    if (*status == FSI_OK) *status = fsi_grid_volumes(w->out, w->label, count, NULL, NULL, part);
    for (k = 0; k < count && *status == FSI_OK; k++) {
        const double numbers[5] = {part[k].volume, part[k].area, (double)part[k].centroid.x, (double)part[k].box.hi.y,
                                   (double)part[k].cells};
        hash = fsi_hash(numbers, sizeof numbers, hash);
    }
    if (*status == FSI_OK) *status = fsi_grid_grow_labels(w->label, w->out, 3);
    hash = fsi_hash(w->out->value, entries(w->grid) * sizeof(fsi_real), hash);
    hash = fsi_hash(w->label, entries(w->grid) * sizeof(int), hash);
    free(part);
    return hash;
}

static void test_threads_give_the_same_bits(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        const double p[5] = { 12.3, 20.8, dim == 3 ? 19.6 : 0, 8, 1.2 };
        uint64_t first = 0;
        fsi_status status;
        world w;
        world_make(&w, dim, 40, 8.0 / 40, keep_some);
        fill(&w, two_balls, p, 0.2);
        for (k = 0; k < 4; k++) {
            static const int threads[4] = { 1, 2, 5, 5 };
            uint64_t hash;
            test_threads(&w.context, threads[k], k == 3);
            hash = all_answers(&w, &status);
            CHECK(status == FSI_OK);
            if (k == 0) first = hash;
            CHECK(hash == first);
        }
        world_free(&w);
    }
}

/* Blocks that came and went leave no trace. */
static void test_the_history_of_blocks_does_not_matter(void)
{
    const double p[5] = { 12.3, 20.8, 19.6, 8, 1.2 };
    world w;
    fsi_status status;
    uint64_t first;
    unsigned char *wanted;
    int k, places;
    world_make(&w, 3, 40, 8.0 / 40, NULL);
    fill(&w, two_balls, p, 0.2);
    first = all_answers(&w, &status);
    places = w.grid->blocks[0] * w.grid->blocks[1] * w.grid->blocks[2];
    wanted = (unsigned char *)malloc((size_t)places);
    for (k = 0; k < places; k++) wanted[k] = (unsigned char)keep_some(k);
    CHECK(fsi_grid_set_blocks(w.grid, wanted) == FSI_OK);
    all_answers(&w, &status);
    memset(wanted, 1, (size_t)places);
    CHECK(fsi_grid_set_blocks(w.grid, wanted) == FSI_OK);
    fill(&w, two_balls, p, 0.2);
    memset(w.label, 7, entries(w.grid) * sizeof(int));
    CHECK(all_answers(&w, &status) == first);
    free(wanted);
    world_free(&w);
}

static void test_the_second_call_allocates_nothing(void)
{
    const double p[5] = { 12.3, 14.8, 15.6, 7, 1.2 };
    fsi_status status;
    long long allocs;
    world w;
    world_make(&w, 3, 32, 8.0 / 32, NULL);
    fill(&w, two_balls, p, 0.2);
    all_answers(&w, &status);
    allocs = w.context.allocs;
    all_answers(&w, &status);
    CHECK(status == FSI_OK && w.context.allocs == allocs);
    world_free(&w);
}

static void test_every_allocation_may_fail(void)
{
    const double p[5] = { 5.3, 8.8, 8.6, 4, 1.2 };
    fsi_status status = FSI_ERROR_MEMORY;
    int call, k, count;
    size_t e;
    for (call = 0; call < 4; call++) {
        fsi_grid_component c[4];
        for (k = 1, status = FSI_ERROR_MEMORY; status == FSI_ERROR_MEMORY && k < 20; k++) {
            world w;
            int untouched = 1;
            world_make(&w, 3, 17, 8.0 / 17, NULL);
            fill(&w, two_balls, p, 0);
            for (e = 0; e < entries(w.grid); e++) {
                w.out->value[e] = 77;
                w.label[e] = call == 1 ? -77 : 0;
            }
            memset(c, 0, sizeof c);
            test_fail_allocator(&w.context, k);
            if (call == 0) status = fsi_grid_redistance(w.phi, 8, w.out);
            else if (call == 1) status = fsi_grid_label(w.phi, NULL, w.label, &count);
            else if (call == 2) status = fsi_grid_grow_labels(w.label, w.phi, 3);
            else status = fsi_grid_volumes(w.phi, w.label, 4, NULL, NULL, c);
            CHECK(status == FSI_OK || (status == FSI_ERROR_MEMORY && w.context.error.status == FSI_ERROR_MEMORY));
            for (e = 0; e < entries(w.grid); e++)
                untouched &= w.out->value[e] == 77 && w.label[e] == (call == 1 ? -77 : 0);
            CHECK(status == FSI_OK || (untouched && c[0].volume == 0));
            world_free(&w);
            CHECK(test_live_bytes() == 0);
        }
        CHECK(status == FSI_OK && k > 2);
    }
}

static void refuse(world *w, fsi_status status, fsi_status expected, const char *what)
{
    CHECK(status == expected);
    CHECK(what == NULL || strstr(w->context.error.message, what) != NULL);
    w->context.error.message[0] = 0;
}

static void test_bad_input_is_named(void)
{
    const double p[4] = { 8, 8, 8, 4 };
    fsi_grid_component c[2];
    fsi_field *face, *zero, *u[3], foreign;
    int count = 5, k;
    world w, other;
    world_make(&w, 3, 17, 8.0 / 17, NULL);
    world_make(&other, 3, 17, 8.0 / 17, NULL);
    fill(&w, ball, p, 0);
    CHECK(fsi_grid_add_field(w.grid, FSI_FACES_X, 0, &face) == FSI_OK &&
          fsi_grid_add_field(w.grid, FSI_CELLS, 0, &zero) == FSI_OK);
    foreign = *w.phi;
    foreign.cookie++;
    for (k = 0; k < 3; k++) u[k] = face;
    refuse(&w, fsi_grid_redistance(NULL, 8, w.out), FSI_ERROR_COOKIE, NULL);
    refuse(&w, fsi_grid_redistance(&foreign, 8, w.out), FSI_ERROR_COOKIE, NULL);
    refuse(&w, fsi_grid_redistance(w.phi, 8, NULL), FSI_ERROR_COOKIE, NULL);
    refuse(&w, fsi_grid_redistance(w.phi, 8, &foreign), FSI_ERROR_COOKIE, NULL);
    refuse(&w, fsi_grid_redistance(w.phi, 8, face), FSI_ERROR_ARGUMENT, "out");
    refuse(&w, fsi_grid_redistance(w.phi, 8, other.out), FSI_ERROR_ARGUMENT, "out");
    refuse(&w, fsi_grid_redistance(face, 8, w.out), FSI_ERROR_ARGUMENT, "cells");
    refuse(&w, fsi_grid_redistance(zero, 8, w.out), FSI_ERROR_ARGUMENT, "background");
    refuse(&w, fsi_grid_redistance(w.phi, 1, w.out), FSI_ERROR_ARGUMENT, "band");
    refuse(&w, fsi_grid_redistance(w.phi, 17, w.out), FSI_ERROR_ARGUMENT, "band");
    refuse(&w, fsi_grid_redistance(w.phi, -2147483647, w.out), FSI_ERROR_ARGUMENT, "band");
    refuse(&w, fsi_grid_label(NULL, NULL, w.label, &count), FSI_ERROR_COOKIE, NULL);
    refuse(&w, fsi_grid_label(&foreign, NULL, w.label, &count), FSI_ERROR_COOKIE, NULL);
    refuse(&w, fsi_grid_label(w.phi, NULL, NULL, &count), FSI_ERROR_ARGUMENT, "label");
    refuse(&w, fsi_grid_label(face, NULL, w.label, &count), FSI_ERROR_ARGUMENT, "cells");
    CHECK(count == 5 && fsi_grid_label(w.phi, NULL, w.label, NULL) == FSI_OK);
    refuse(&w, fsi_grid_grow_labels(NULL, w.phi, 2), FSI_ERROR_ARGUMENT, "label");
    refuse(&w, fsi_grid_grow_labels(w.label, NULL, 2), FSI_ERROR_COOKIE, NULL);
    refuse(&w, fsi_grid_grow_labels(w.label, &foreign, 2), FSI_ERROR_COOKIE, NULL);
    refuse(&w, fsi_grid_grow_labels(w.label, w.phi, -1), FSI_ERROR_ARGUMENT, "layers");
    refuse(&w, fsi_grid_grow_labels(w.label, w.phi, 65), FSI_ERROR_ARGUMENT, "layers");
    refuse(&w, fsi_grid_grow_labels(w.label, zero, 2), FSI_ERROR_ARGUMENT, "background");
    refuse(&w, fsi_grid_volumes(NULL, w.label, 1, NULL, NULL, c), FSI_ERROR_COOKIE, NULL);
    refuse(&w, fsi_grid_volumes(&foreign, w.label, 1, NULL, NULL, c), FSI_ERROR_COOKIE, NULL);
    refuse(&w, fsi_grid_volumes(w.phi, w.label, -1, NULL, NULL, c), FSI_ERROR_ARGUMENT, "count");
    refuse(&w, fsi_grid_volumes(w.phi, w.label, 1, NULL, NULL, NULL), FSI_ERROR_ARGUMENT, "out");
    refuse(&w, fsi_grid_volumes(w.phi, w.label, 1, u, NULL, c), FSI_ERROR_ARGUMENT, "u[1]");
    u[0] = &foreign;
    refuse(&w, fsi_grid_volumes(w.phi, w.label, 1, u, NULL, c), FSI_ERROR_COOKIE, NULL);
    CHECK(fsi_grid_volumes(w.phi, w.label, 0, NULL, NULL, NULL) == FSI_OK);
    /* none has label 1 */
    CHECK(fsi_grid_volumes(w.phi, w.label, 2, NULL, NULL, c) == FSI_OK && c[0].volume > 0 && c[1].volume == 0 &&
          c[1].cells == 0);
    world_free(&w);
    world_free(&other);
}

static void test_numbers_that_are_not_finite_are_named(void)
{
    const double p[4] = { 8, 8, 8, 4 };
    fsi_field *u[3];
    fsi_grid_component c;
    world w;
    size_t e;
    int count, k, differ = 0;
    world_make(&w, 3, 17, 8.0 / 17, NULL);
    fill(&w, ball, p, 0);
    for (k = 0; k < 3; k++) CHECK(fsi_grid_add_field(w.grid, (fsi_grid_place)(FSI_FACES_X + k), 0, &u[k]) == FSI_OK);
    u[1]->value[fsi_grid_entry(w.grid, 8, 8, 8)] = (fsi_real)test_nan();
    c.volume = 77;
    refuse(&w, fsi_grid_volumes(w.phi, NULL, 1, u, NULL, &c), FSI_ERROR_NAN, "(8, 8, 8)");
    CHECK(c.volume == 77);
    w.phi->value[fsi_grid_entry(w.grid, 18, 3, 3)] = (fsi_real)test_nan(); /* beyond the box: nobody's */
    CHECK(fsi_grid_redistance(w.phi, 8, w.out) == FSI_OK);
    for (e = 0; e < entries(w.grid); e++) differ += !fsi_is_finite((double)w.out->value[e]);
    CHECK(differ == 0);
    for (k = 0; k < 2; k++) {
        w.phi->value[fsi_grid_entry(w.grid, 16, 3, 9)] = (fsi_real)(k ? test_inf() : test_nan());
        for (e = 0; e < entries(w.grid); e++) {
            w.out->value[e] = 77;
            w.label[e] = 77;
        }
        refuse(&w, fsi_grid_redistance(w.phi, 8, w.out), FSI_ERROR_NAN, "(16, 3, 9)");
        refuse(&w, fsi_grid_label(w.phi, NULL, w.label, &count), FSI_ERROR_NAN, "(16, 3, 9)");
        refuse(&w, fsi_grid_grow_labels(w.label, w.phi, 1), FSI_ERROR_NAN, "(16, 3, 9)");
        refuse(&w, fsi_grid_volumes(w.phi, NULL, 1, NULL, NULL, &c), FSI_ERROR_NAN, "(16, 3, 9)");
        for (e = 0; e < entries(w.grid); e++) CHECK(w.out->value[e] == 77 && w.label[e] == 77);
    }
    world_free(&w);
}

static int keep_none(int block) { (void)block; return 0; }

static void test_an_empty_grid_is_empty(void)
{
    fsi_grid_component c;
    world w;
    int count = 5;
    world_make(&w, 3, 17, 1, keep_none);
    CHECK(fsi_grid_redistance(w.phi, 8, w.out) == FSI_OK);
    CHECK(fsi_grid_label(w.phi, NULL, w.label, &count) == FSI_OK && count == 0);
    CHECK(fsi_grid_grow_labels(w.label, w.phi, 3) == FSI_OK);
    CHECK(fsi_grid_volumes(w.phi, w.label, 1, NULL, NULL, &c) == FSI_OK && c.volume == 0 && c.cells == 0);
    world_free(&w);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_distance_stays_and_so_does_its_volume);
    RUN(test_repeating_moves_the_surface_little);
    RUN(test_a_stretched_ball_becomes_a_distance_with_third_order_at_the_surface);
    RUN(test_error_falls_with_the_radius);
    RUN(test_planes_are_exact_up_to_the_walls);
    RUN(test_discs_cut_by_a_wall_do_not_depend_on_where_blocks_end);
    RUN(test_between_two_drops_the_nearer_one_counts);
    RUN(test_sheets_and_drops_of_a_cell_survive);
    RUN(test_sheets_gaps_and_squares_do_not_wear_away);
    RUN(test_corners_are_kept_to_a_fraction_of_a_cell);
    RUN(test_noise_keeps_its_signs_at_any_scale);
    RUN(test_the_least_of_liquid_stays_liquid);
    RUN(test_missing_blocks_are_air);
    RUN(test_a_grid_without_surface_is_cut_off);
    RUN(test_labels_are_those_of_a_flood);
    RUN(test_labels_grow_layer_by_layer);
    RUN(test_balls_lose_what_linear_interpolation_takes);
    RUN(test_a_pool_is_exact);
    RUN(test_a_tilted_plane_halves_a_block);
    RUN(test_a_wedge_on_a_wall_is_exact);
    RUN(test_volumes_of_noise_are_those_of_the_closed_form);
    RUN(test_near_drops_do_not_share_volume);
    RUN(test_momentum_is_volume_times_velocity);
    RUN(test_what_has_no_label_has_no_volume);
    RUN(test_threads_give_the_same_bits);
    RUN(test_the_history_of_blocks_does_not_matter);
    RUN(test_the_second_call_allocates_nothing);
    RUN(test_every_allocation_may_fail);
    RUN(test_bad_input_is_named);
    RUN(test_numbers_that_are_not_finite_are_named);
    RUN(test_an_empty_grid_is_empty);
    return TEST_END();
}
