/* Speed of the liquid of fsi_flip.h: what particles and grid give each other, per million particles, beside the floor
   that memory sets; a whole step of a dam that breaks. usage: bench_flip [cells along an edge of the box, default 48;
   128: 4 million particles, 1 GB] SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_flip.h"
#include <stdio.h>
#include <stdlib.h>
#include "bench.h"

static void must(fsi_status status, const char *what)
{
    if (status == FSI_OK) return;
    printf("%s: %s\n", what, fsi_status_text(status));
    exit(1);
}

static void *take(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p) exit(1);
    return p;
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

enum { TURNS = 7, KERNELS = 6 };
static const char *const kernel_name[KERNELS] = { "sort", "flip_to_grid", "flip_to_particles", "rk2", "apic_to_grid",
    "apic_to_particles" };
/* Bytes a particle that must be read or written at least, fsi_real taken as double. */
static const double kernel_bytes[KERNELS] = { 24 + 16 + 12, 16 + 4 + 24, 16 + 4 + 48, 16 + 4 + 48, 16 + 4 + 24 + 36,
    16 + 4 + 24 + 36 };

/* What the kernels work on. */
typedef struct transfers {
    fsi_grid *g;
    fsi_field *u[3], *change[3], *fill;
    fsi_vec3 *x, *v, *to;
    float (*affine)[9];
    fsi__arena arena;
    fsi__tr_points p;
    fsi__tr_faces faces;
    fsi__tr_motion motion;
    fsi__tr_gain gain;
    int count;
} transfers;

/* 8 particles in each of n^3 cells, jittered, in the order of a lattice. */
static void scatter(transfers *t, int n)
{
    const int side = 2 * n;
    int i, a;
    t->count = 8 * n * n * n;
    t->x = (fsi_vec3 *)take((size_t)t->count, sizeof *t->x);
    t->v = (fsi_vec3 *)take((size_t)t->count, sizeof *t->v);
    t->to = (fsi_vec3 *)take((size_t)t->count, sizeof *t->to);
    t->affine = (float (*)[9])take((size_t)t->count, sizeof *t->affine);
    srand(1);
    for (i = 0; i < t->count; i++) {
        const int c[3] = { i % side, i / side % side, i / side / side };
        double at[3];
        for (a = 0; a < 3; a++) at[a] = (c[a] + 0.5 + 0.9 * ((double)rand() / RAND_MAX - 0.5)) * 0.5 / n;
        t->x[i] = fsi_v3((fsi_real)at[0], (fsi_real)at[1], (fsi_real)at[2]);
        t->v[i] = fsi_v3(t->x[i].y, -t->x[i].z, t->x[i].x);
    }
}

/* Grid and arrays around them. */
static void make_grid(transfers *t, int n)
{
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi__arena measure = { NULL, 0, 0 };
    unsigned char *wanted;
    size_t cells;
    int a;

    /* Blocks and fields. */
    d.n[0] = d.n[1] = d.n[2] = n;
    d.dx = 1 / (fsi_real)n;
    must(fsi_grid_create(&t->g, &d), "grid");
    for (a = 0; a < 3; a++) {
        must(fsi_grid_add_field(t->g, (fsi_grid_place)((int)FSI_FACES_X + a), 0, &t->u[a]), "field");
        must(fsi_grid_add_field(t->g, (fsi_grid_place)((int)FSI_FACES_X + a), 0, &t->change[a]), "field");
    }
    must(fsi_grid_add_field(t->g, FSI_CELLS, 0, &t->fill), "field");
    wanted = (unsigned char *)take(fsi__grid_places(t->g) * (size_t)fsi__tr_want_rows(t->count), 1);
    fsi__tr_want(t->g, t->x, t->count, 4, wanted);
    must(fsi_grid_set_blocks(t->g, wanted), "blocks");
    free(wanted);

    /* Arrays. */
    cells = (size_t)t->g->block_count * (size_t)t->g->block_cells;
    t->p.grid = t->g;
    t->p.x = t->x;
    fsi__tr_layout(&t->p, &measure, t->count, t->g->block_count);
    if (!fsi__arena_reserve(NULL, &t->arena, measure.used)) exit(1);
    fsi__tr_layout(&t->p, &t->arena, t->count, t->g->block_count);
    for (a = 0; a < 3; a++) {
        t->faces.u[a] = t->u[a];
        t->faces.known[a] = (unsigned char *)take(cells, 1);
    }
    t->faces.fill = t->fill;
    t->faces.box = (float *)take(fsi__tr_box_size(t->g) * (size_t)t->g->block_count, sizeof(float));
    t->motion.v = t->v;
    t->gain.u = t->u;
    t->gain.change = t->change;
    t->gain.pic = 0.03f;
}

static void run_kernel(transfers *t, int k)
{
    t->motion.affine = k > 3 ? t->affine : NULL;
    if (k == 0) fsi__tr_sort(&t->p);
    else if (k == 1 || k == 4) fsi__tr_to_grid(&t->p, &t->motion, 8, &t->faces);
    else if (k == 3) fsi__tr_move(&t->p, t->u, 1e-4, NULL, t->to);
    else fsi__tr_to_particles(&t->p, &t->gain, &t->motion);
}

/* Median CPU time of each kernel. */
static void bench_transfers(int n)
{
    double seconds[KERNELS][TURNS], rate = stream_rate();
    transfers t;
    int a, k, turn;
    memset(&t, 0, sizeof t);
    scatter(&t, n);
    make_grid(&t, n);
    for (turn = 0; turn < TURNS; turn++)
        for (k = 0; k < KERNELS; k++) {
            const double start = cpu_seconds(NULL);
            run_kernel(&t, k);
            seconds[k][turn] = cpu_seconds(NULL) - start;
        }
    printf("memory %.1f GB/s, %d particles, %d blocks\n", 1e-9 * rate, t.count, t.g->block_count);
    for (k = 0; k < KERNELS; k++)
        printf("%s %.2f ms_per_million_particles  (floor of memory %.2f)\n", kernel_name[k],
            1e9 * median(seconds[k], TURNS) / t.count, 1e9 * kernel_bytes[k] / rate);
    for (a = 0; a < 3; a++) free(t.faces.known[a]);
    free(t.faces.box);
    fsi__arena_free(NULL, &t.arena);
    fsi_grid_destroy(t.g);
    free(t.x);
    free(t.v);
    free(t.to);
    free(t.affine);
}

/* ---- a step ---------------------------------------------------------------------------------------------------- */

/* A box of n^3 cells whose lower quarter is a pool, a drop above it; at n = 128 4.2 million particles in the pool. */
static void bench_step(int n, fsi_flip_transfer transfer)
{
    fsi_context context = fsi_default_context();
    fsi_flip_desc d = fsi_flip_default_desc();
    fsi_flip *s;
    fsi_box3 pool;
    double part[6] = { 0, 0, 0, 0, 0, 0 }, start, cpu;
    int step, k, iters = 0, substeps = 0;
    context.now = bench_seconds;
    d.context = &context;
    d.transfer = transfer;
    d.n[0] = d.n[1] = d.n[2] = n;
    d.dx = 1 / (fsi_real)n;
    d.reserve = (int)(8 * 0.265 * n * n * n);
    must(fsi_flip_create(&s, &d), "create");
    pool.lo = fsi_v3(0, 0, 0);
    pool.hi = fsi_v3(1, 1, (fsi_real)0.25);
    must(fsi_flip_fill_box(s, pool, fsi_v3(0, 0, 0), NULL), "pool");
    must(fsi_flip_fill_sphere(s, fsi_v3((fsi_real)0.5, (fsi_real)0.5, (fsi_real)0.5), (fsi_real)0.15, fsi_v3(0, 0, -2),
        NULL), "drop");
    for (step = 0; step < 3; step++) must(fsi_flip_step(s, (fsi_real)0.3 / (fsi_real)n), "step");
    start = bench_seconds(NULL);
    for (step = 0; step < 4; step++) {
        must(fsi_flip_step(s, (fsi_real)0.3 / (fsi_real)n), "step");
        part[0] += s->stats.seconds_sort;
        part[1] += s->stats.seconds_to_grid;
        part[2] += s->stats.seconds_pressure;
        part[3] += s->stats.seconds_to_particles;
        part[4] += s->stats.seconds_move;
        part[5] += s->stats.seconds_other;
        iters += s->stats.iters;
        substeps += s->stats.substeps;
    }
    cpu = bench_seconds(NULL) - start;
    printf("step_%s_%d %.4g s_per_substep  (%d particles, %d blocks, %.1f iterations, %.0f MB)\n",
        transfer == FSI_FLIP_APIC ? "apic" : "flip", n, cpu / substeps, s->count, s->stats.blocks,
        (double)iters / substeps, 1e-6 * (double)s->stats.bytes);
    printf("  %.3g us a particle:", 1e6 * cpu / substeps / s->count);
    for (k = 0; k < 6; k++) {
        static const char *const phase[6] = { "sort", "to grid", "pressure", "to particles", "move", "other" };
        printf(" %s %.1f %%%s", phase[k], 100 * part[k] / cpu, k < 5 ? "," : "\n");
    }
    fsi_flip_destroy(s);
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 48;
    puts(fsi_build_info());
    bench_transfers(n < 64 ? n : 64);
    bench_step(n, FSI_FLIP_FLIP);
    bench_step(n, FSI_FLIP_APIC);
    return 0;
}
