/* Speed of the neighbour search and of SPH, beside the floor that memory sets. usage: bench_sph [seconds of dam break]
   SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_sph.h"
#include <stdio.h>
#include <stdlib.h>
#include "bench.h"

/* A jittered lattice of side n, shuffled, about 30 neighbours each: the median of seven searches. */
static void bench_neighbors(int side)
{
    int n = side * side * side, i, t;
    double seconds[7];
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)n * sizeof *x);
    fsi_neighbors *nb;
    if (!x || fsi_neighbors_create(&nb, NULL) != FSI_OK) exit(1);
    srand(1);
    for (i = 0; i < n; i++) {
        fsi_vec3 jitter = fsi_v3((fsi_real)rand() / RAND_MAX, (fsi_real)rand() / RAND_MAX, (fsi_real)rand() / RAND_MAX);
        x[i] = fsi_v3_madd(fsi_v3((fsi_real)(i % side), (fsi_real)(i / side % side), (fsi_real)(i / side / side)), (fsi_real)0.3, jitter);
    }
    for (t = 0; t < 7; t++) {
        double start = cpu_seconds(NULL);
        if (fsi_neighbors_build(nb, x, n, (fsi_real)2.05, 3) != FSI_OK) exit(1);
        seconds[t] = cpu_seconds(NULL) - start;
    }
    printf("neighbors_%d %.3f us_per_particle  (%.1f neighbours)\n", n, median(seconds, 7) / n * 1e6, (double)nb->pair_count / n);
    fsi_neighbors_destroy(nb);
    free(x);
}

/* The dam break of a cube of 1 m in a tank of 3 x 1 x 2 m, `side` particles along an edge of the cube. */
static void bench_dam(int side, double duration)
{
    fsi_context context = fsi_default_context();
    fsi_sph_desc d = fsi_sph_default_desc();
    fsi_box3 block;
    fsi_sph *s;
    double start, cpu, density = 0, gradient = 0, boundary = 0, neighbors = 0, update = 0, other = 0, compression = 0, pairs = 0, sweeps = 0;
    int steps = 0, substeps = 0, inside = 0;
    context.now = cpu_seconds;
    d.context = &context;
    d.spacing = 1 / (fsi_real)side;
    d.compressibility = (fsi_real)0.022;
    d.tolerance = (fsi_real)0.01; /* what a splash needs; a pool that is to come to rest needs the default */
    d.min_iters = 4;
    d.cfl = (fsi_real)0.5;
    d.domain.lo = fsi_v3(0, 0, 0);
    d.domain.hi = fsi_v3(3, 1, 2);
    block.lo = fsi_v3(0, 0, 0);
    block.hi = fsi_v3(1, 1, 1);
    if (fsi_sph_create(&s, &d) != FSI_OK || fsi_sph_fill_box(s, block, fsi_v3(0, 0, 0), NULL) != FSI_OK) exit(1);
    start = cpu_seconds(NULL);
    while (s->time < duration - 1e-9) {
        if (fsi_sph_step(s, (fsi_real)(1.0 / 60)) != FSI_OK) {
            puts(fsi_sph_error(s)->message);
            exit(1);
        }
        steps++;
        substeps += s->stats.substeps;
        sweeps += s->stats.iterations;
        compression += s->stats.mean_compression;
        pairs += (double)s->stats.pairs;
        density += s->stats.seconds_density;
        gradient += s->stats.seconds_gradient;
        boundary += s->stats.seconds_boundary;
        neighbors += s->stats.seconds_neighbors;
        update += s->stats.seconds_update;
        other += s->stats.seconds_other;
        inside += fsi_sph_count_inside(s, NULL);
    }
    cpu = density + gradient + boundary + neighbors + update + other;
    printf("dam_%d %.1f cpu_s_per_simulated_s  (%d particles, %.2f s simulated, %d inside, all phases and tests %.1f s)\n", side, cpu / s->time, s->count, s->time, inside, cpu_seconds(NULL) - start);
    printf("  mean_compression %.5f, substeps %d, sweeps %.0f a simulated second, %.1f neighbours in lists, %.0f bytes a particle\n", compression / steps, substeps, sweeps / s->time, pairs / steps / s->count, (double)s->stats.bytes / s->count);
    printf("  ns a particle-sweep: density %.1f gradient %.1f update+energy %.1f; spread over sweeps: neighbours %.1f boundary+contact %.1f other %.1f\n", density / sweeps / s->count * 1e9, gradient / sweeps / s->count * 1e9,
           update / sweeps / s->count * 1e9, neighbors / sweeps / s->count * 1e9, boundary / sweeps / s->count * 1e9, other / sweeps / s->count * 1e9);
    /* floor: lists once (4 bytes a neighbour) and records (16 bytes in, 16 out) in each of density and gradient, iterates
       (3 x 16 in, 16 out) in gradient, 5 x 16 in update, at 8 GB/s */
    printf("  memory floor at 8 GB/s: %.1f ns a particle-sweep\n", (2 * (4 * pairs / steps / s->count + 32) + 64 + 80) / 8);
    fsi_sph_destroy(s);
}

int main(int argc, char **argv)
{
    double duration = argc > 1 ? atof(argv[1]) : 0.2;
    puts(fsi_build_info());
    bench_neighbors(46);
    bench_neighbors(100);
    bench_dam(27, duration);
    bench_dam(46, duration);
    if (argc > 2) bench_dam(atoi(argv[2]), duration);
    return 0;
}
