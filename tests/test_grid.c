/* test_grid.c - the sparse grid itself: blocks that come and go, fields that stay.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_pressure.h"

static uint64_t random_state;

/* What a field should hold at (i, j, k): different everywhere. */
static fsi_real value_at(int i, int j, int k) { return (fsi_real)(i + 100 * j + 10000 * k) / 16; }

static fsi_grid *make_grid(fsi_context *context, int dim, int nx, int ny, int nz)
{
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi_grid *g = NULL;
    d.context = context;
    d.dim = dim;
    d.n[0] = nx;
    d.n[1] = ny;
    d.n[2] = nz;
    d.dx = (fsi_real)0.25;
    d.origin = fsi_v3(1, 2, 3);
    CHECK(fsi_grid_create(&g, &d) == FSI_OK);
    return g;
}

static int place_count(const fsi_grid *g) { return g->blocks[0] * g->blocks[1] * g->blocks[2]; }

/* Makes each block exist with probability `share`. */
static void choose_blocks(const fsi_grid *g, unsigned char *wanted, double share)
{
    int p;
    for (p = 0; p < place_count(g); p++) wanted[p] = (unsigned char)(test_random(&random_state) < share);
}

static void fill_field(fsi_field *f)
{
    const fsi_grid *g = f->grid;
    int b, c, corner[3];
    for (b = 0; b < g->block_count; b++) {
        fsi_grid_corner(g, b, corner);
        for (c = 0; c < g->block_cells; c++)
            f->value[(size_t)b * (size_t)g->block_cells + (size_t)c] =
                value_at(corner[0] + (c & 7), corner[1] + ((c >> 3) & 7), corner[2] + (c >> 6));
    }
}

static void test_default_desc_makes_a_grid(void)
{
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi_grid *g = NULL;
    CHECK(fsi_grid_create(&g, &d) == FSI_OK && g != NULL);
    CHECK(g->dim == 3 && g->n[0] == 64 && g->blocks[0] == 9 && g->block_cells == 512 && g->block_count == 0);
    fsi_grid_destroy(g);
    fsi_grid_destroy(NULL);
}

static void test_two_dimensions_are_one_layer(void)
{
    fsi_grid *g = make_grid(NULL, 2, 20, 9, 77);
    CHECK(g->n[2] == 1 && g->blocks[0] == 3 && g->blocks[1] == 2 && g->blocks[2] == 1 && g->block_cells == 64);
    CHECK(g->origin.z == 0);
    CHECK_NEAR(fsi_grid_position(g, FSI_FACES_X, 2, 3, 0).x, 1.5, 1e-6);
    CHECK_NEAR(fsi_grid_position(g, FSI_FACES_X, 2, 3, 0).y, 2.875, 1e-6);
    CHECK_NEAR(fsi_grid_position(g, FSI_CELLS, 2, 3, 0).x, 1.625, 1e-6);
    CHECK(fsi_grid_size(g, FSI_FACES_X, 0) == 21 && fsi_grid_size(g, FSI_FACES_X, 1) == 9 &&
          fsi_grid_size(g, FSI_CELLS, 0) == 20);
    fsi_grid_destroy(g);
}

/* Blocks come and go at random; what stays keeps its values, what is new holds the background, and entries lead where
   they should. */
static void test_blocks_come_and_go_and_values_stay(void)
{
    int dim, round;
    random_state = 1;
    for (dim = 2; dim <= 3; dim++) {
        fsi_context context = fsi_default_context();
        fsi_grid *g = make_grid(&context, dim, 40, 33, 24);
        fsi_field *a, *b, *idle;
        unsigned char *wanted = (unsigned char *)malloc((size_t)place_count(g)),
                      *before = (unsigned char *)calloc((size_t)place_count(g), 1);
        CHECK(fsi_grid_add_field(g, FSI_CELLS, 7, &a) == FSI_OK &&
              fsi_grid_add_field(g, FSI_FACES_Y, -3, &b) == FSI_OK);
        CHECK(fsi_grid_add_field(g, FSI_CELLS, 0, &idle) == FSI_OK);
        idle->scratch = 1;
        for (round = 0; round < 30; round++) {
            const double shares[5] = { 0.5, 0, 1, 0.1, 0.9 };
            int p, n = 0, wrong = 0, last = -1;
            choose_blocks(g, wanted, shares[round % 5]);
            CHECK(fsi_grid_set_blocks(g, wanted) == FSI_OK);
            for (p = 0; p < place_count(g); p++) {
                const int block = g->index[p];
                int corner[3], c;
                n += wanted[p] != 0;
                wrong += (block >= 0) != (wanted[p] != 0);
                if (block < 0) continue;
                wrong += g->place[block] != p || block <= last;
                last = block;
                fsi_grid_corner(g, block, corner);
                for (c = 0; c < g->block_cells; c++) {
                    const int i = corner[0] + (c & 7), j = corner[1] + ((c >> 3) & 7), k = corner[2] + (c >> 6);
                    const long long e = fsi_grid_entry(g, i, j, k);
                    wrong += e != (long long)block * g->block_cells + c;
                    wrong += a->value[e] != (before[p] ? value_at(i, j, k) : 7) ||
                             b->value[e] != (before[p] ? value_at(i, j, k) : -3);
                }
            }
            CHECK(g->block_count == n);
            CHECK(wrong == 0);
            fill_field(a);
            fill_field(b);
            memcpy(before, wanted, (size_t)place_count(g));
        }
        free(wanted);
        free(before);
        fsi_grid_destroy(g);
        CHECK(context.bytes == 0);
    }
}

/* In the steady state nothing is allocated. */
static void test_blocks_within_the_peak_cost_no_memory(void)
{
    fsi_context context = fsi_default_context();
    fsi_grid *g = make_grid(&context, 3, 40, 40, 40);
    fsi_field *f;
    unsigned char wanted[216];
    long long allocs;
    int round;
    CHECK(fsi_grid_add_field(g, FSI_CELLS, 0, &f) == FSI_OK);
    choose_blocks(g, wanted, 1);
    CHECK(fsi_grid_set_blocks(g, wanted) == FSI_OK);
    allocs = context.allocs;
    for (round = 0; round < 10; round++) {
        choose_blocks(g, wanted, 0.7);
        CHECK(fsi_grid_set_blocks(g, wanted) == FSI_OK);
    }
    CHECK(context.allocs == allocs);
    fsi_grid_destroy(g);
}

static void test_single_reads(void)
{
    fsi_grid *g = make_grid(NULL, 3, 16, 16, 16);
    fsi_field *f;
    unsigned char wanted[27];
    memset(wanted, 0, sizeof wanted);
    wanted[0] = 1;
    CHECK(fsi_grid_add_field(g, FSI_FACES_X, 5, &f) == FSI_OK && fsi_grid_set_blocks(g, wanted) == FSI_OK);
    fill_field(f);
    CHECK(fsi_grid_at(f, 3, 4, 5) == value_at(3, 4, 5));
    CHECK(fsi_grid_at(f, -3, 4, -1) == value_at(0, 4, 0));
    CHECK(fsi_grid_at(f, 9, 4, 5) == 5);
    CHECK(fsi_grid_entry(g, -1, 0, 0) == -1 && fsi_grid_entry(g, 24, 0, 0) == -1 && fsi_grid_entry(g, 8, 0, 0) == -1);
    CHECK(fsi_grid_at(NULL, 0, 0, 0) == 0);
    fsi_grid_destroy(g);
}

static void test_bad_input_is_refused_by_name(void)
{
    fsi_context context = fsi_default_context();
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi_grid *g;
    fsi_field *f;
    d.context = &context;
    CHECK(fsi_grid_create(NULL, &d) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_grid_create(&g, NULL) == FSI_ERROR_COOKIE && g == NULL);
    d.cookie++;
    CHECK(fsi_grid_create(&g, &d) == FSI_ERROR_COOKIE);
    d.cookie--;
    d.dim = 4;
    CHECK(fsi_grid_create(&g, &d) == FSI_ERROR_ARGUMENT && strstr(context.error.message, "dim"));
    d.dim = 3;
    d.n[1] = 0;
    CHECK(fsi_grid_create(&g, &d) == FSI_ERROR_ARGUMENT && strstr(context.error.message, "n[1]"));
    d.n[0] = d.n[1] = d.n[2] = 16384;
    CHECK(fsi_grid_create(&g, &d) == FSI_ERROR_LIMIT);
    d.n[0] = d.n[1] = d.n[2] = 16;
    d.dx = 0;
    CHECK(fsi_grid_create(&g, &d) == FSI_ERROR_ARGUMENT && strstr(context.error.message, "dx"));
    d.dx = (fsi_real)NAN;
    CHECK(fsi_grid_create(&g, &d) == FSI_ERROR_NAN);
    d.dx = 1;
    d.origin.y = (fsi_real)INFINITY;
    CHECK(fsi_grid_create(&g, &d) == FSI_ERROR_NAN && strstr(context.error.message, "origin"));
    d.origin.y = 0;
    CHECK(fsi_grid_create(&g, &d) == FSI_OK);
    CHECK(fsi_grid_add_field(NULL, FSI_CELLS, 0, &f) == FSI_ERROR_COOKIE);
    CHECK(fsi_grid_add_field(g, FSI_CELLS, 0, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_grid_add_field(g, (fsi_grid_place)9, 0, &f) == FSI_ERROR_ARGUMENT &&
          strstr(context.error.message, "place"));
    CHECK(fsi_grid_add_field(g, FSI_CELLS, (fsi_real)NAN, &f) == FSI_ERROR_NAN);
    CHECK(fsi_grid_set_blocks(NULL, NULL) == FSI_ERROR_COOKIE);
    CHECK(fsi_grid_set_blocks(g, NULL) == FSI_ERROR_ARGUMENT);
    fsi_grid_remove_field(NULL);
    fsi_grid_destroy(g);
    CHECK(context.bytes == 0);
}

static void test_a_grid_has_so_many_fields_and_no_more(void)
{
    fsi_context context = fsi_default_context();
    fsi_grid *g = make_grid(&context, 2, 8, 8, 1);
    fsi_field *f, *third = NULL;
    int k;
    for (k = 0; k < 60; k++) {
        CHECK(fsi_grid_add_field(g, FSI_CELLS, 0, &f) == FSI_OK);
        if (k == 2) third = f;
    }
    CHECK(fsi_grid_add_field(g, FSI_CELLS, 0, &f) == FSI_ERROR_LIMIT && f == NULL);
    fsi_grid_remove_field(third);
    CHECK(fsi_grid_add_field(g, FSI_CELLS, 0, &f) == FSI_OK);
    fsi_grid_destroy(g);
    CHECK(context.bytes == 0);
}

/* One allocation after the other fails: nothing is lost, and what there was stays. */
static void test_every_allocation_may_fail(void)
{
    long k;
    fsi_status status = FSI_ERROR_MEMORY;
    for (k = 1; status == FSI_ERROR_MEMORY && k < 100; k++) {
        fsi_context context = fsi_default_context();
        fsi_grid_desc d = fsi_grid_default_desc();
        fsi_grid *g = NULL;
        fsi_field *f = NULL, *v = NULL;
        unsigned char wanted[27];
        test_fail_allocator(&context, k);
        d.context = &context;
        d.n[0] = d.n[1] = d.n[2] = 16;
        memset(wanted, 0, sizeof wanted);
        wanted[3] = 1;
        status = fsi_grid_create(&g, &d);
        if (status == FSI_OK) status = fsi_grid_add_field(g, FSI_CELLS, 2, &f);
        if (status == FSI_OK) status = fsi_grid_set_blocks(g, wanted);
        if (status == FSI_OK) {
            f->value[11] = 9;
            memset(wanted, 1, sizeof wanted);
            status = fsi_grid_set_blocks(g, wanted);
            if (status != FSI_OK)
                CHECK(g->block_count == 1 && g->index[3] == 0 && g->index[4] == -1 && f->value[11] == 9);
        }
        if (status == FSI_OK) status = fsi_grid_add_field(g, FSI_FACES_Z, 0, &v);
        CHECK(status == FSI_OK || status == FSI_ERROR_MEMORY);
        fsi_grid_destroy(g);
        CHECK(test_live_bytes() == 0);
    }
    CHECK(status == FSI_OK && k > 5);
}

/* Of what a grid is made of, a part that cannot be had costs nothing. */
static struct { long count, fail_at; } heap;

static void *fail_once(void *user, size_t size, size_t align)
{
    return ++heap.count == heap.fail_at ? NULL : test__alloc(user, size, align);
}

static void test_one_failing_allocation_loses_nothing(void)
{
    fsi_status status = FSI_ERROR_MEMORY;
    for (heap.fail_at = 1; status == FSI_ERROR_MEMORY && heap.fail_at < 100; heap.fail_at++) {
        fsi_context context = fsi_default_context();
        fsi_grid_desc d = fsi_grid_default_desc();
        fsi_pressure_desc pd = fsi_pressure_default_desc();
        fsi_pressure *p = NULL;
        fsi_grid_surface *surface = NULL;
        fsi_grid_faces *faces = NULL;
        fsi_grid *g = NULL;
        fsi_field *f = NULL;
        unsigned char wanted[729];
        test_fail_allocator(&context, 0);
        context.alloc = fail_once;
        heap.count = 0;
        d.context = pd.context = &context;
        memset(wanted, 1, sizeof wanted);
        status = fsi_grid_create(&g, &d);
        if (status == FSI_OK) status = fsi_grid_add_field(g, FSI_CELLS, 2, &f);
        if (status == FSI_OK) status = fsi_grid_set_blocks(g, wanted);
        if (status == FSI_OK) status = fsi_pressure_create(&p, &pd);
        if (status == FSI_OK) status = fsi_grid_surface_create(&surface, &context);
        if (status == FSI_OK) status = fsi_grid_faces_create(&faces, &context);
        CHECK(status == FSI_OK || status == FSI_ERROR_MEMORY);
        fsi_grid_faces_destroy(faces);
        fsi_grid_surface_destroy(surface);
        fsi_pressure_destroy(p);
        fsi_grid_destroy(g);
        CHECK(test_live_bytes() == 0 && context.bytes == 0);
    }
    CHECK(status == FSI_OK && heap.fail_at > 8);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_default_desc_makes_a_grid);
    RUN(test_two_dimensions_are_one_layer);
    RUN(test_blocks_come_and_go_and_values_stay);
    RUN(test_blocks_within_the_peak_cost_no_memory);
    RUN(test_single_reads);
    RUN(test_bad_input_is_refused_by_name);
    RUN(test_a_grid_has_so_many_fields_and_no_more);
    RUN(test_every_allocation_may_fail);
    RUN(test_one_failing_allocation_loses_nothing);
    return TEST_END();
}
