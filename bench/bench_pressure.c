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

/* A box of n^3 cells with walls; velocity smooth, divergent, and rough; to 1e-6. two: air is solved too, 1000 times
   lighter. */
static void bench(const char *name, int n, int drops, int two, int rounds)
{
    fsi_context c = fsi_default_context();
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi_pressure_desc e = fsi_pressure_default_desc();
    fsi_pressure_flow f = fsi_pressure_default_flow();
    fsi_grid *g;
    fsi_field *u[3], *beta[3], *phi, *p;
    fsi_pressure *s;
    fsi_real *keep[3];
    unsigned char *wanted, *cell;
    double setup[9], all[9], floor_seconds, bytes;
    size_t places, size, k;
    int a, t, b;
    c.now = bench_seconds;
    d.context = e.context = &c;
    d.n[0] = d.n[1] = d.n[2] = n;
    d.dx = (fsi_real)(1.0 / n);
    e.tolerance = 1e-6;
    if (fsi_grid_create(&g, &d) != FSI_OK || fsi_pressure_create(&s, &e) != FSI_OK) exit(1);
    places = (size_t)g->blocks[0] * (size_t)g->blocks[1] * (size_t)g->blocks[2];
    wanted = (unsigned char *)need(places, 1);
    memset(wanted, 1, places);
    if (fsi_grid_set_blocks(g, wanted) != FSI_OK) exit(1);
    size = (size_t)g->block_count * (size_t)g->block_cells;
    cell = (unsigned char *)need(size, 1);
    fsi_grid_add_field(g, FSI_CELLS, 1, &phi);
    fsi_grid_add_field(g, FSI_CELLS, 0, &p);
    for (a = 0; a < 3; a++) {
        fsi_grid_add_field(g, (fsi_grid_place)(FSI_FACES_X + a), 0, u + a);
        fsi_grid_add_field(g, (fsi_grid_place)(FSI_FACES_X + a), 1, beta + a);
        keep[a] = (fsi_real *)need(size, sizeof(fsi_real));
    }
    for (b = 0; b < g->block_count; b++)
        for (k = 0; k < 512; k++) {
            const size_t at = (size_t)b * 512 + k;
            int q[3];
            fsi_grid_corner(g, b, q);
            q[0] += (int)(k & 7), q[1] += (int)(k >> 3 & 7), q[2] += (int)(k >> 6);
            phi->value[at] = (fsi_real)shape(fsi_grid_position(g, FSI_CELLS, q[0], q[1], q[2]), drops);
            cell[at] = q[0] < n && q[1] < n && q[2] < n && (two || phi->value[at] < 0) ? FSI_CELL_LIQUID : FSI_CELL_AIR;
            for (a = 0; a < 3; a++) {
                const fsi_vec3 x = fsi_grid_position(g, (fsi_grid_place)(FSI_FACES_X + a), q[0], q[1], q[2]);
                const double v = shape(x, drops) * n + 0.5, air = v < 0 ? 0 : (v > 1 ? 1 : v);
                beta[a]->value[at] = (fsi_real)(1 / (1000 * (1 - air) + air));
                keep[a][at] =
                    (fsi_real)(q[a] == 0 || q[a] == n
                                   ? 0
                                   : fsi_sin(3 * (double)x.x + a) * fsi_cos(2 * (double)x.y) + 0.2 * random_number());
            }
        }
    for (a = 0; a < 3; a++) {
        f.u[a] = u[a];
        f.inverse_density[a] = two ? beta[a] : NULL;
    }
    f.cell = cell;
    f.phi = two ? NULL : phi;
    f.pressure = p;
    f.dt = (fsi_real)0.01;
    for (t = 0; t < rounds; t++) {
        double start;
        for (a = 0; a < 3; a++) memcpy(u[a]->value, keep[a], size * sizeof(fsi_real));
        start = bench_seconds(NULL);
        if (fsi_pressure_project(s, &f) != FSI_OK) puts(c.error.message);
        all[t] = bench_seconds(NULL) - start;
        setup[t] = s->stats.seconds_setup;
    }
    /* a cell and iteration: 4 sweeps, residual and transfers in float, on all levels 8/7 of that, and 13 doubles of the
       conjugate gradients; seven coefficients for each of these where the density is not the least (43 %) */
    bytes = (4 * 16 + 12 + 16) * 8.0 / 7 + 13 * 8 + (two ? 0.43 * 28 * (5 * 8.0 / 7 + 1) : 0);
    floor_seconds = bytes * (double)s->stats.unknowns * s->stats.iters / stream;
    printf("%-10s %3d^3 %8lld unknowns %2d iterations, largest residual %.1e, %5.1f MB: set-up %6.1f ms, all %7.1f ms, "
           "floor of the iterations %6.1f ms (x %.1f)\n",
           name, n, s->stats.unknowns, s->stats.iters, s->stats.residual, (double)s->stats.bytes * 1e-6,
           1e3 * median(setup, rounds), 1e3 * median(all, rounds), 1e3 * floor_seconds,
           (median(all, rounds) - median(setup, rounds)) / floor_seconds);
    fsi_pressure_destroy(s);
    fsi_grid_destroy(g);
    for (a = 0; a < 3; a++) free(keep[a]);
    free(wanted);
    free(cell);
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
