/* test_flip_transfer.c - particles and the grid of fsi_flip.h: momentum, linear fields, the motion's order, the fill of
   lattices, sorting.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_flip_transfer.h"
#include "../fsi_mesh.h"
#include "kit/test_meshes.h"

/* A grid of n cells a side, particles in its inner part, and all that transfers need. */
typedef struct bench {
    fsi_grid *grid;
    fsi_field *u[3], *change[3], *fill;
    fsi__tr_points points;
    fsi__tr_faces faces;
    fsi__tr_motion motion;
    fsi_vec3 *x, *v, *to;
    float *mass, (*affine)[9];
    unsigned char *known;
    fsi__arena arena;
    int n, count;
} bench;

static void begin_bench(bench *b, fsi_context *context, int dim, int n, int count)
{
    fsi_grid_desc d = fsi_grid_default_desc();
    int a;
    memset(b, 0, sizeof *b);
    d.context = context;
    d.dim = dim;
    d.n[0] = d.n[1] = d.n[2] = n;
    d.dx = (fsi_real)(1.0 / n);
    b->n = n;
    b->count = count;
    CHECK(fsi_grid_create(&b->grid, &d) == FSI_OK);
    for (a = 0; a < dim; a++) {
        CHECK(fsi_grid_add_field(b->grid, (fsi_grid_place)((int)FSI_FACES_X + a), 0, &b->u[a]) == FSI_OK);
        CHECK(fsi_grid_add_field(b->grid, (fsi_grid_place)((int)FSI_FACES_X + a), 0, &b->change[a]) == FSI_OK);
    }
    CHECK(fsi_grid_add_field(b->grid, FSI_CELLS, 0, &b->fill) == FSI_OK);
    b->x = (fsi_vec3 *)calloc((size_t)count, sizeof *b->x);
    b->v = (fsi_vec3 *)calloc((size_t)count, sizeof *b->v);
    b->to = (fsi_vec3 *)calloc((size_t)count, sizeof *b->to);
    b->mass = (float *)calloc((size_t)count, sizeof *b->mass);
    b->affine = (float (*)[9])calloc((size_t)count, sizeof *b->affine);
    for (a = 0; a < count; a++) b->mass[a] = 1;
    b->motion.v = b->v;
}

static void end_bench(bench *b)
{
    free(b->x);
    free(b->v);
    free(b->to);
    free(b->mass);
    free(b->affine);
    free(b->known);
    free(b->faces.box);
    fsi__arena_free(b->grid->context, &b->arena);
    fsi_grid_destroy(b->grid);
}

/* Blocks, arrays, sorting. */
static void sort_bench(bench *b)
{
    fsi__arena measure = { NULL, 0, 0 };
    unsigned char *wanted = (unsigned char *)malloc(fsi__grid_places(b->grid) * (size_t)fsi__tr_want_rows(b->count));
    size_t cells;
    int a;
    fsi__tr_want(b->grid, b->x, b->count, 4, wanted);
    CHECK(fsi_grid_set_blocks(b->grid, wanted) == FSI_OK);
    free(wanted);
    cells = (size_t)b->grid->block_count * (size_t)b->grid->block_cells;
    b->points.grid = b->grid;
    b->points.x = b->x;
    b->points.mass = b->mass;
    fsi__tr_layout(&b->points, &measure, b->count, b->grid->block_count);
    CHECK(fsi__arena_reserve(b->grid->context, &b->arena, measure.used));
    fsi__tr_layout(&b->points, &b->arena, b->count, b->grid->block_count);
    b->known = (unsigned char *)realloc(b->known, 3 * cells);
    b->faces.box = (float *)realloc(b->faces.box,
        sizeof(float) * fsi__tr_box_size(b->grid) * (size_t)b->grid->block_count);
    for (a = 0; a < 3; a++) {
        b->faces.u[a] = b->u[a];
        b->faces.known[a] = b->known + (size_t)a * cells;
    }
    b->faces.fill = b->fill;
    fsi__tr_sort(&b->points);
}

/* Random particles with a margin of cells to the box. */
static void scatter(bench *b, double margin)
{
    const int dim = b->grid->dim;
    const double wide = 1 - 2 * margin / b->n;
    uint64_t random = 7;
    int i;
    for (i = 0; i < b->count; i++) {
        const fsi_vec3 r = random_vector(&random, dim);
        b->x[i] = v3(0.5 + wide * (double)r.x, 0.5 + wide * (double)r.y, dim == 2 ? 0 : 0.5 + wide * (double)r.z);
        b->v[i] = fsi_v3_scale(random_vector(&random, dim), 4);
        b->mass[i] = (float)(0.5 + test_random(&random));
    }
}

static double part(fsi_vec3 v, int a) { return (double)(a == 0 ? v.x : a == 1 ? v.y : v.z); }

/* ---- sorting --------------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* By block and cell, those of a cell in the caller's order; nothing is lost. */
static void test_sorting_is_stable(void)
{
    int dim, r, k;
    for (dim = 2; dim <= 3; dim++) {
        bench b;
        int *seen;
        begin_bench(&b, NULL, dim, 20, 9000);
        scatter(&b, 0);
        b.x[5] = v3(1, 1, dim == 2 ? 0 : 1); /* on the upper corner of the box */
        b.x[6] = v3(0, 0, 0);
        sort_bench(&b);
        seen = (int *)malloc((size_t)b.count * sizeof *seen);
        memcpy(seen, b.points.order, (size_t)b.count * sizeof *seen);
        qsort(seen, (size_t)b.count, sizeof *seen, by_number);
        for (r = 0; r < b.count; r++) {
            const int i = b.points.order[r], key = b.points.key[i], block = key / b.grid->block_cells;
            int corner[3];
            CHECK(seen[r] == r && r >= b.points.first[block] && r < b.points.first[block + 1]);
            if (r > 0) {
                const int j = b.points.order[r - 1];
                CHECK(b.points.key[j] < key || (b.points.key[j] == key && j < i));
            }
            fsi_grid_corner(b.grid, block, corner);
            for (k = 0; k < dim; k++)
                CHECK_NEAR((double)b.points.place[r][k] + corner[k], part(b.x[i], k) * b.n, 1e-5);
            CHECK(b.points.place[r][3] == b.mass[i]);
        }
        free(seen);
        end_bench(&b);
    }
}

static uint64_t transfer_hash(fsi_context *context, int dim)
{
    bench b;
    fsi__tr_gain gain;
    uint64_t h = 0;
    size_t cells;
    int a;
    begin_bench(&b, context, dim, 40, 20000);
    scatter(&b, 1);
    sort_bench(&b);
    b.motion.affine = b.affine;
    fsi__tr_to_grid(&b.points, &b.motion, dim == 3 ? 8 : 4, &b.faces);
    gain.u = b.u;
    gain.change = b.change;
    gain.pic = 1;
    fsi__tr_to_particles(&b.points, &gain, &b.motion);
    fsi__tr_to_grid(&b.points, &b.motion, dim == 3 ? 8 : 4, &b.faces);
    fsi__tr_move(&b.points, b.u, 1e-3, NULL, b.to);
    cells = (size_t)b.grid->block_count * (size_t)b.grid->block_cells;
    h = fsi_hash(b.points.order, (size_t)b.count * sizeof(int), h);
    for (a = 0; a < dim; a++) h = fsi_hash(b.u[a]->value, cells * sizeof(fsi_real), h);
    h = fsi_hash(b.fill->value, cells * sizeof(fsi_real), h);
    h = fsi_hash(b.v, (size_t)b.count * sizeof *b.v, h);
    h = fsi_hash(b.affine, (size_t)b.count * sizeof *b.affine, h);
    h = fsi_hash(b.to, (size_t)b.count * sizeof *b.to, h);
    end_bench(&b);
    return h;
}

static void test_the_same_bits_for_any_threads(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        const uint64_t want = transfer_hash(NULL, dim);
        for (k = 0; k < 3; k++) {
            fsi_context context = fsi_default_context();
            test_threads(&context, k == 0 ? 2 : 5, k == 2);
            CHECK(transfer_hash(&context, dim) == want);
        }
    }
}

/* ---- particles to grid ----------------------------------------------------------------------------------------- */

/* Sum over faces of mass times velocity is that of the particles; masses by a slow sum over all pairs. */
static void check_momentum(int dim, int affine)
{
    bench b;
    const int count = 300, n = 12;
    uint64_t random = 3;
    int a, i, k, at[3];
    begin_bench(&b, NULL, dim, n, count);
    scatter(&b, 1.6);
    for (i = 0; i < count && affine; i++)
        for (k = 0; k < 9; k++) b.affine[i][k] = (float)(test_random(&random) - 0.5);
    for (i = 0; i < count && dim == 2; i++) b.affine[i][2] = b.affine[i][5] = 0;
    b.motion.affine = affine ? b.affine : NULL;
    sort_bench(&b);
    fsi__tr_to_grid(&b.points, &b.motion, dim == 3 ? 8 : 4, &b.faces);
    for (a = 0; a < dim; a++) {
        double given = 0, got = 0, size = 0, worst = 0;
        for (i = 0; i < count; i++) {
            given += (double)b.mass[i] * part(b.v[i], a);
            size += (double)b.mass[i] * fabs(part(b.v[i], a));
        }
        for (at[2] = 0; at[2] <= (dim == 3 ? n : 0); at[2]++) for (at[1] = 0; at[1] <= n; at[1]++)
            for (at[0] = 0; at[0] <= n; at[0]++) {
            const fsi_vec3 face = fsi_grid_position(b.grid, (fsi_grid_place)((int)FSI_FACES_X + a), at[0], at[1],
                at[2]);
            const long long e = fsi_grid_entry(b.grid, at[0], at[1], at[2]);
            double mass = 0, momentum = 0;
            for (i = 0; i < count; i++) {
                double w = (double)b.mass[i], v = part(b.v[i], a);
                for (k = 0; k < dim; k++) {
                    const double off = (part(face, k) - part(b.x[i], k)) * n;
                    w *= fmax(0, 1 - fabs(off));
                    if (affine) v += (double)b.affine[i][3 * a + k] * off;
                }
                mass += w;
                momentum += w * v;
            }
            if (!(mass > 1e-4)) continue;
            if (!CHECK(e >= 0 && b.faces.known[a][e] == 1)) continue;
            got += mass * (double)b.u[a]->value[e];
            worst = fmax(worst, fabs((double)b.u[a]->value[e] - momentum / mass) * fmin(mass, 1));
        }
        CHECK_NEAR(got, given, 1e-6 * size);
        CHECK(worst < 2e-6);
    }
    end_bench(&b);
}

static void test_the_grid_gets_the_momentum_of_particles(void)
{
    check_momentum(2, 0);
    check_momentum(2, 1);
    check_momentum(3, 0);
    check_momentum(3, 1);
}

/* A lattice of spacing dx/2 fills cells exactly, wherever it starts; a jittered one nearly. */
static void test_lattices_fill_their_cells(void)
{
    int dim, k, i, a, at[3];
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 4; k++) {
            const int n = 10, side = 2 * n - 1, count = dim == 2 ? side * side : side * side * side;
            const double phase = 0.5 * (0.05 + 0.3 * k), off = k == 3 ? 0.9 : 0;
            uint64_t random = 5;
            double least = 1, most = 1;
            bench b;
            begin_bench(&b, NULL, dim, n, count);
            for (i = 0; i < count; i++) {
                const int c[3] = { i % side, i / side % side, i / side / side };
                double x[3] = { 0, 0, 0 };
                for (a = 0; a < dim; a++)
                    x[a] = (0.5 * c[a] + (k == 3 ? 0.5 : phase) + 0.5 * off * (test_random(&random) - 0.5)) / n;
                b.x[i] = v3(x[0], x[1], x[2]);
            }
            sort_bench(&b);
            fsi__tr_to_grid(&b.points, &b.motion, dim == 3 ? 8 : 4, &b.faces);
            for (at[2] = dim == 3 ? 2 : 0; at[2] < (dim == 3 ? n - 2 : 1); at[2]++)
                for (at[1] = 2; at[1] < n - 2; at[1]++)
                    for (at[0] = 2; at[0] < n - 2; at[0]++) {
                        const double f = (double)b.fill->value[fsi_grid_entry(b.grid, at[0], at[1], at[2])];
                        least = fmin(least, f);
                        most = fmax(most, f);
                    }
            if (k == 3) printf("      %dD, jittered: %.3f to %.3f\n", dim, least, most);
            CHECK(least > 1 - (k == 3 ? 0.3 : 1e-5) && most < 1 + (k == 3 ? 0.3 : 1e-5));
            end_bench(&b);
        }
}

/* ---- grid to particles ----------------------------------------------------------------------------------------- */

static double linear(int a, fsi_vec3 x)
{
    static const double c[3][4] = { { 0.3, -1.2, 0.7, 0.4 }, { -0.5, 0.8, 0.9, -0.6 }, { 0.2, 0.5, -1.1, 0.3 } };
    return c[a][0] + c[a][1] * (double)x.x + c[a][2] * (double)x.y + c[a][3] * (double)x.z;
}

/* Writes the field into all faces. */
static void set_faces(bench *b, double (*f)(int a, fsi_vec3 x))
{
    const fsi_grid *g = b->grid;
    int e, a, corner[3];
    for (a = 0; a < g->dim; a++)
        for (e = 0; e < g->block_count * g->block_cells; e++) {
            const int c = e % g->block_cells;
            fsi_grid_corner(g, e / g->block_cells, corner);
            b->u[a]->value[e] = (fsi_real)f(a,
                fsi_grid_position(g, (fsi_grid_place)((int)FSI_FACES_X + a), corner[0] + (c & 7),
                corner[1] + (c >> 3 & 7), corner[2] + (c >> 6)));
        }
}

/* APIC takes a linear field from the grid, and gives it back. */
static void test_apic_keeps_linear_fields(void)
{
    static const double slope[3][3] = { { -1.2, 0.7, 0.4 }, { 0.8, 0.9, -0.6 }, { 0.5, -1.1, 0.3 } };
    int dim, i, a, k, e;
    for (dim = 2; dim <= 3; dim++) {
        fsi__tr_gain gain;
        bench b;
        begin_bench(&b, NULL, dim, 16, 2000);
        scatter(&b, 1.6);
        sort_bench(&b);
        set_faces(&b, linear);
        gain.u = b.u;
        gain.change = NULL;
        gain.pic = 0;
        b.motion.affine = b.affine;
        fsi__tr_to_particles(&b.points, &gain, &b.motion);
        for (i = 0; i < b.count; i++)
            for (a = 0; a < dim; a++) {
                CHECK_NEAR(part(b.v[i], a), linear(a, b.x[i]), 1e-6);
                for (k = 0; k < dim; k++) CHECK_NEAR((double)b.affine[i][3 * a + k] * b.n, slope[a][k], 2e-5);
            }
        fsi__tr_to_grid(&b.points, &b.motion, dim == 3 ? 8 : 4, &b.faces);
        for (a = 0; a < dim; a++)
            for (e = 0; e < b.grid->block_count * b.grid->block_cells; e++) {
                const int c = e % b.grid->block_cells;
                int corner[3];
                fsi_grid_corner(b.grid, e / b.grid->block_cells, corner);
                if (!b.faces.known[a][e]) continue;
                CHECK_NEAR(b.u[a]->value[e], linear(a, fsi_grid_position(b.grid, (fsi_grid_place)((int)FSI_FACES_X + a),
                    corner[0] + (c & 7), corner[1] + (c >> 3 & 7), corner[2] + (c >> 6))), 5e-6);
            }
        end_bench(&b);
    }
}

/* FLIP adds the change of the grid's velocities; PIC takes these; between them, the mixture. */
static void test_flip_adds_the_change(void)
{
    int dim, i, a, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 3; k++) {
            static const float pic[3] = { 0, 0.25f, 1 };
            fsi__tr_gain gain;
            fsi_vec3 *before;
            bench b;
            begin_bench(&b, NULL, dim, 12, 500);
            scatter(&b, 1.6);
            sort_bench(&b);
            set_faces(&b, linear);
            gain.u = b.u;
            gain.change = b.u;
            gain.pic = pic[k];
            before = (fsi_vec3 *)malloc((size_t)b.count * sizeof *before);
            memcpy(before, b.v, (size_t)b.count * sizeof *before);
            fsi__tr_to_particles(&b.points, &gain, &b.motion);
            for (i = 0; i < b.count; i++)
                for (a = 0; a < dim; a++)
                    CHECK_NEAR(part(b.v[i], a), linear(a, b.x[i]) + (1 - (double)pic[k]) * part(before[i], a), 2e-6);
            free(before);
            end_bench(&b);
        }
}

/* ---- motion ---------------------------------------------------------------------------------------------------- */

/* A turn about the middle of the box; about z. */
static double turning(int a, fsi_vec3 x) { return a == 0 ? 0.5 - (double)x.y : a == 1 ? (double)x.x - 0.5 : 0; }

/* Where a quarter turn of `steps` steps ends: the error falls with the square of the step. */
static double turn_error(int dim, int steps)
{
    const double dt = 0.5 * PI / steps;
    double worst = 0;
    bench b;
    int i, k;
    begin_bench(&b, NULL, dim, 16, 64);
    for (i = 0; i < b.count; i++) {
        const double r = 0.05 + 0.3 * i / b.count, a = 0.7 * i;
        b.x[i] = v3(0.5 + r * cos(a), 0.5 + r * sin(a), dim == 2 ? 0 : 0.3 + 0.4 * i / b.count);
    }
    for (k = 0; k < steps; k++) {
        sort_bench(&b);
        set_faces(&b, turning);
        fsi__tr_move(&b.points, b.u, dt, NULL, b.to);
        memcpy(b.x, b.to, (size_t)b.count * sizeof *b.x);
    }
    for (i = 0; i < b.count; i++) {
        const double r = 0.05 + 0.3 * i / b.count, a = 0.7 * i + 0.5 * PI;
        worst = fmax(worst, hypot((double)b.x[i].x - 0.5 - r * cos(a), (double)b.x[i].y - 0.5 - r * sin(a)) / r);
    }
    end_bench(&b);
    return worst;
}

static void test_motion_is_of_second_order(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double coarse = turn_error(dim, 16), fine = turn_error(dim, 32);
        printf("      %dD: %.3g, %.3g\n", dim, coarse, fine);
        CHECK(coarse < 3e-3 && fine < coarse / 3.7 && fine > coarse / 4.3);
    }
}

/* A further velocity of each particle is added to the path. */
static void test_further_velocities_move_particles(void)
{
    bench b;
    int i;
    begin_bench(&b, NULL, 3, 12, 200);
    scatter(&b, 3);
    sort_bench(&b);
    fsi__tr_move(&b.points, b.u, 0.01, b.v, b.to);
    for (i = 0; i < b.count; i++)
        CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(b.to[i], fsi_v3_madd(b.x[i], (fsi_real)0.01, b.v[i]))), 0, TOL(1e-15, 1e-7));
    end_bench(&b);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_sorting_is_stable);
    RUN(test_the_same_bits_for_any_threads);
    RUN(test_the_grid_gets_the_momentum_of_particles);
    RUN(test_lattices_fill_their_cells);
    RUN(test_apic_keeps_linear_fields);
    RUN(test_flip_adds_the_change);
    RUN(test_motion_is_of_second_order);
    RUN(test_further_velocities_move_particles);
    return TEST_END();
}
