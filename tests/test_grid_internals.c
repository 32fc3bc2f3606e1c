/* test_grid_internals.c - what algorithms on grids stand on: gathers across blocks (fsi_grid.h), and the share of a
   face that is cut (fsi_pressure.h).
   SPDX-License-Identifier: MIT */
#define FSI_STATIC
#define FSI_IMPLEMENTATION
#include "../fsi_pressure.h"
#include "kit/test.h"

/* ---- gathering ------------------------------------------------------------------------------------------------ */

/* A grid whose blocks exist with probability `keep`. */
static fsi_grid *make_grid(int dim, int nx, int ny, int nz, double keep, uint64_t *random)
{
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi_grid *g = NULL;
    unsigned char *wanted;
    int p, places;
    d.dim = dim;
    d.n[0] = nx;
    d.n[1] = ny;
    d.n[2] = nz;
    CHECK(fsi_grid_create(&g, &d) == FSI_OK);
    places = g->blocks[0] * g->blocks[1] * g->blocks[2];
    wanted = (unsigned char *)malloc((size_t)places);
    for (p = 0; p < places; p++) wanted[p] = test_random(random) < keep;
    CHECK(fsi_grid_set_blocks(g, wanted) == FSI_OK);
    free(wanted);
    return g;
}

/* Numbers in [0, 1), and a background that is none of them. */
static fsi_field *make_field(fsi_grid *g, int place, double background, uint64_t *random)
{
    fsi_field *f = NULL;
    int e;
    CHECK(fsi_grid_add_field(g, (fsi_grid_place)place, (fsi_real)background, &f) == FSI_OK);
    for (e = 0; e < g->block_count * g->block_cells; e++) f->value[e] = (fsi_real)test_random(random);
    return f;
}

/* Values outside of the box are the nearest inside; where no block is there is the background. */
static void check_gather(const fsi_field *f, int h)
{
    const fsi_grid *g = f->grid;
    const int s = 8 + 2 * h, layers = g->dim == 3 ? s : 1;
    fsi_real *box = (fsi_real *)malloc((size_t)(s * s * layers) * sizeof *box);
    int b, x, y, z, wrong = 0;
    for (b = 0; b < g->block_count; b++) {
        int corner[3];
        fsi_grid_corner(g, b, corner);
        fsi__grid_gather(f, b, h, box);
        for (z = 0; z < layers; z++)
            for (y = 0; y < s; y++)
                for (x = 0; x < s; x++)
                    wrong += box[(z * s + y) * s + x] !=
                             fsi_grid_at(f, corner[0] + x - h, corner[1] + y - h, g->dim == 3 ? corner[2] + z - h : 0);
    }
    CHECK(wrong == 0);
    free(box);
}

static void test_gather_agrees_with_single_reads(void)
{
    int dim, a, h, n;
    uint64_t random = 1;
    for (dim = 2; dim <= 3; dim++)
        for (n = 13; n <= 24; n += 3) {
            fsi_grid *g = make_grid(dim, n, 25, 16, 0.7, &random);
            for (a = 0; a <= dim; a++) {
                const fsi_field *f = make_field(g, a, -1, &random);
                for (h = 1; h <= 8; h += h < 4 ? 1 : 4) check_gather(f, h);
            }
            CHECK(g->block_count > 0);
            fsi_grid_destroy(g);
        }
}

/* 2000 boxes of any size, anywhere; all borders of a block. */
static void check_gathered_boxes(int dim, double keep)
{
    uint64_t random = 5;
    fsi_grid *g = make_grid(dim, 29, 16, 7, keep, &random);
    const fsi_field *f[4];
    fsi_real out[20 * 20 * 20];
    int h, k, x, y, z, wrong = 0;
    CHECK(g->block_count > 0);
    for (k = 0; k <= dim; k++) {
        f[k] = make_field(g, k, 0.25, &random);
        for (h = 1; h <= 8; h++) check_gather(f[k], h);
    }
    for (k = 0; k < 2000; k++) {
        const fsi_field *from = f[k % (dim + 1)];
        int lo[3] = { 0, 0, 0 }, n[3] = { 1, 1, 1 }, a;
        for (a = 0; a < dim; a++) {
            lo[a] = -20 + (int)(60 * test_random(&random));
            n[a] = 1 + (int)(20 * test_random(&random));
        }
        fsi__grid_gather_box(from, lo, n, out);
        for (z = 0; z < n[2]; z++) for (y = 0; y < n[1]; y++) for (x = 0; x < n[0]; x++)
            wrong += out[(z * n[1] + y) * n[0] + x] != fsi_grid_at(from, lo[0] + x, lo[1] + y, lo[2] + z);
    }
    CHECK(wrong == 0);
    fsi_grid_destroy(g);
}

static void test_a_gathered_box_holds_what_stands_in_the_field(void)
{
    check_gathered_boxes(2, 1);
    check_gathered_boxes(2, 0.5);
    check_gathered_boxes(3, 1);
    check_gathered_boxes(3, 0.5);
}

static void test_a_gather_needs_no_block(void)
{
    int dim, b, k, i, h;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t random = 4;
        fsi_grid *g = make_grid(dim, 20, 31, 17, 0.6, &random);
        const fsi_field *f = make_field(g, FSI_CELLS, 7, &random);
        fsi_real x[1728], y[1728];
        int at[3];
        for (h = 1; h <= 2; h++)
            for (b = 0; b < g->block_count; b++) {
                fsi_grid_corner(g, b, at);
                fsi__grid_gather(f, b, h, x);
                fsi__grid_gather_at(f, at, h, y);
                CHECK(memcmp(x, y, sizeof x[0] * (size_t)((8 + 2 * h) * (8 + 2 * h) * (dim == 3 ? 8 + 2 * h : 1))) ==
                      0);
            }
        at[0] = -8, at[1] = 8, at[2] = dim == 3 ? -8 : 0;
        fsi__grid_gather_at(f, at, 1, x);
        for (k = 0; k < (dim == 3 ? 10 : 1); k++)
            for (i = 0; i < 10; i++)
                CHECK(!(x[(k * 10 + 4) * 10 + i] < fsi_grid_at(f, i - 9, 11, k - 9)) &&
                      !(x[(k * 10 + 4) * 10 + i] > fsi_grid_at(f, i - 9, 11, k - 9)));
        fsi_grid_destroy(g);
    }
}

/* ---- faces ---------------------------------------------------------------------------------------------------- */

/* All signs at the corners of a face that is cut: its share and that of the other side add up, and lie within (0,
   1]. */
static void test_shares_of_both_sides_make_the_whole(void)
{
    uint64_t random = 2;
    int trial, k;
    for (trial = 0; trial < 2000; trial++) {
        fsi_real v[4], w[4], cut[4];
        double a, b;
        if (trial % 16 == 0 || trial % 16 == 15) continue;
        for (k = 0; k < 4; k++) {
            v[k] = (fsi_real)((test_random(&random) + 0.01) * (trial >> k & 1 ? -1 : 1));
            w[k] = -v[k];
        }
        for (k = 0; k < 4; k++) cut[k] = v[k] / (v[k] - v[(k + 1) & 3]);
        a = (double)fsi__faces_share(v, cut);
        b = (double)fsi__faces_share(w, cut);
        CHECK_NEAR(a + b, 1, TOL(1e-14, 1e-6));
        CHECK(a > 0 && b > 0);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_gather_agrees_with_single_reads);
    RUN(test_a_gathered_box_holds_what_stands_in_the_field);
    RUN(test_a_gather_needs_no_block);
    RUN(test_shares_of_both_sides_make_the_whole);
    return TEST_END();
}
