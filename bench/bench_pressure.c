/* Speed of fsi_pressure.h: a ball above a pool, the same in air a thousand times lighter, growth, droplets; each beside
   the time in which memory could stream what its iterations must read and write. usage: bench_pressure [full].
   SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_pressure.h"
#include <stdio.h>
#include <stdlib.h>
#include "bench.h"

enum { DROPS = 1000 };
static double stream; /* bytes a second */
static double drop[DROPS][4];

static double random_number(void)
{
    static uint64_t s = 1;
    s = s * 6364136223846793005u + 1442695040888963407u;
    return (double)(s >> 40) / 16777216.0;
}

static double ball(fsi_vec3 x, double cx, double cy, double cz, double r)
{
    return sqrt(((double)x.x - cx) * ((double)x.x - cx) + ((double)x.y - cy) * ((double)x.y - cy) +
                ((double)x.z - cz) * ((double)x.z - cz)) -
           r;
}

static double shape(fsi_vec3 x, int drops)
{
    double most = drops ? 1 : (double)x.y - 0.25, d = drops ? 1 : ball(x, 0.5, 0.6, 0.5, 0.35);
    int k;
    most = d < most ? d : most;
    for (k = 0; k < drops; k++) {
        d = ball(x, drop[k][0], drop[k][1], drop[k][2], drop[k][3]);
        most = d < most ? d : most;
    }
    return most;
}

static void *need(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p) exit(1);
    return p;
}

/* A box of n^3 cells with walls. */
typedef struct box {
    fsi_context context;
    fsi_grid *g;
    fsi_field *u[3], *beta[3], *phi, *p;
    fsi_pressure *s;
    fsi_real *keep[3]; /* the velocity before */
    unsigned char *cell;
    size_t size;       /* entries */
} box;

static void box_open(box *w, int n)
{
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi_pressure_desc e = fsi_pressure_default_desc();
    unsigned char *wanted;
    size_t places;
    int a;
    w->context = fsi_default_context();
    w->context.now = bench_seconds;
    d.context = e.context = &w->context;
    d.n[0] = d.n[1] = d.n[2] = n;
    d.dx = (fsi_real)(1.0 / n);
    e.tolerance = 1e-6;
    if (fsi_grid_create(&w->g, &d) != FSI_OK || fsi_pressure_create(&w->s, &e) != FSI_OK) exit(1);
    places = (size_t)w->g->blocks[0] * (size_t)w->g->blocks[1] * (size_t)w->g->blocks[2];
    wanted = (unsigned char *)need(places, 1);
    memset(wanted, 1, places);
    if (fsi_grid_set_blocks(w->g, wanted) != FSI_OK) exit(1);
    free(wanted);
    w->size = (size_t)w->g->block_count * (size_t)w->g->block_cells;
    w->cell = (unsigned char *)need(w->size, 1);
    fsi_grid_add_field(w->g, FSI_CELLS, 1, &w->phi);
    fsi_grid_add_field(w->g, FSI_CELLS, 0, &w->p);
    for (a = 0; a < 3; a++) {
        fsi_grid_add_field(w->g, (fsi_grid_place)(FSI_FACES_X + a), 0, w->u + a);
        fsi_grid_add_field(w->g, (fsi_grid_place)(FSI_FACES_X + a), 1, w->beta + a);
        w->keep[a] = (fsi_real *)need(w->size, sizeof(fsi_real));
    }
}

static void box_close(box *w)
{
    int a;
    fsi_pressure_destroy(w->s);
    fsi_grid_destroy(w->g);
    for (a = 0; a < 3; a++) free(w->keep[a]);
    free(w->cell);
}

/* Velocity smooth, divergent, and rough. */
static void box_fill(box *w, int drops, int two)
{
    const int n = w->g->n[0];
    size_t at;
    int a;
    for (at = 0; at < w->size; at++) {
        const int k = (int)(at % 512);
        int q[3];
        fsi_grid_corner(w->g, (int)(at / 512), q);
        q[0] += k & 7, q[1] += k >> 3 & 7, q[2] += k >> 6;
        w->phi->value[at] = (fsi_real)shape(fsi_grid_position(w->g, FSI_CELLS, q[0], q[1], q[2]), drops);
        w->cell[at] =
            q[0] < n && q[1] < n && q[2] < n && (two || w->phi->value[at] < 0) ? FSI_CELL_LIQUID : FSI_CELL_AIR;
        for (a = 0; a < 3; a++) {
            const fsi_vec3 x = fsi_grid_position(w->g, (fsi_grid_place)(FSI_FACES_X + a), q[0], q[1], q[2]);
            const double v = shape(x, drops) * n + 0.5, air = v < 0 ? 0 : (v > 1 ? 1 : v);
            const double speed = fsi_sin(3 * (double)x.x + a) * fsi_cos(2 * (double)x.y);
            w->beta[a]->value[at] = (fsi_real)(1 / (1000 * (1 - air) + air));
            w->keep[a][at] = (fsi_real)(q[a] == 0 || q[a] == n ? 0 : speed + 0.2 * random_number());
        }
    }
}

static void report(const char *name, const box *w, int two, double setup, double all)
{
    /* a cell and iteration: 4 sweeps, residual and transfers in float, on all levels 8/7 of that, and 13 doubles of the
       conjugate gradients; seven coefficients for each of these where the density is not the least (43 %) */
    const double bytes = (4 * 16 + 12 + 16) * 8.0 / 7 + 13 * 8 + (two ? 0.43 * 28 * (5 * 8.0 / 7 + 1) : 0);
    const double floor_seconds = bytes * (double)w->s->stats.unknowns * w->s->stats.iters / stream;
    printf("%-10s %3d^3 %8lld unknowns %2d iterations, largest residual %.1e, %5.1f MB: set-up %6.1f ms, all %7.1f ms, "
           "floor of the iterations %6.1f ms (x %.1f)\n",
           name, w->g->n[0], w->s->stats.unknowns, w->s->stats.iters, w->s->stats.residual,
           (double)w->s->stats.bytes * 1e-6, 1e3 * setup, 1e3 * all, 1e3 * floor_seconds,
           (all - setup) / floor_seconds);
}

/* Projects to 1e-6. two: air is solved too, 1000 times lighter. */
static void bench(const char *name, int n, int drops, int two, int rounds)
{
    fsi_pressure_flow f = fsi_pressure_default_flow();
    double setup[9], all[9];
    int a, t;
    box w;
    box_open(&w, n);
    box_fill(&w, drops, two);
    for (a = 0; a < 3; a++) {
        f.u[a] = w.u[a];
        f.inverse_density[a] = two ? w.beta[a] : NULL;
    }
    f.cell = w.cell;
    f.phi = two ? NULL : w.phi;
    f.pressure = w.p;
    f.dt = (fsi_real)0.01;
    for (t = 0; t < rounds; t++) {
        double start;
        for (a = 0; a < 3; a++) memcpy(w.u[a]->value, w.keep[a], w.size * sizeof(fsi_real));
        start = bench_seconds(NULL);
        if (fsi_pressure_project(w.s, &f) != FSI_OK) puts(w.context.error.message);
        all[t] = bench_seconds(NULL) - start;
        setup[t] = w.s->stats.seconds_setup;
    }
    report(name, &w, two, median(setup, rounds), median(all, rounds));
    box_close(&w);
}

int main(int argc, char **argv)
{
    int k;
    (void)argv;
    stream = stream_rate();
    for (k = 0; k < DROPS; k++) {
        drop[k][0] = random_number(), drop[k][1] = random_number(), drop[k][2] = random_number();
        drop[k][3] = (1 + 2 * random_number()) / 64;
    }
    bench("ball, pool", 64, 0, 0, 9);
    bench("ball, pool", 128, 0, 0, 5);
    if (argc > 1) bench("ball, pool", 256, 0, 0, 3);
    bench("two phases", 64, 0, 1, 5);
    bench("two phases", 128, 0, 1, 3);
    bench("droplets", 64, DROPS, 0, 5);
    return 0;
}
