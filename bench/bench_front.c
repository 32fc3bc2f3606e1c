/* bench_front.c - what surfaces that move cost. Prints `name value unit` lines; CPU time of the process, medians.
   SPDX-License-Identifier: MIT
   cc -O3 -march=native bench/bench_front.c -lm -o bench_front && ./bench_front [triangles [x]]; x: lines alone

   A ball that is stirred: in each step its vertices move by 0.6 target lengths (0.3 cells of a grid with two edges a
   cell), and the field turns. Then a tenth and four times as many triangles in the same motion, which asks for as many
   operations a triangle: what one costs must not change much.
   Before that two drops of 20k triangles that merge: what topology takes of a step, and what it takes where nothing is
   close (far).
   Then a wavy sheet of as many triangles, a slab with two sides, on 256 x 256 x 64 cells: which of these are inside,
   and where the lines between their centres cross it. Again with a tenth and four times as many triangles on grids with
   as many cells a triangle. */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_front.h"
#include "bench.h"
#include <stdio.h>

static void line(const char *name, double value, const char *unit) { printf("%-28s %12.4g %s\n", name, value, unit); }

/* An octahedron whose faces are cut in n x n triangles, on a ball of radius 1; with `apart` > 0 another one, that many
   lengths of edges away, and topology. */
static fsi_front *make_balls(fsi_context *context, int n, double apart)
{
    const int side = n + 1;
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)(8 * n * n + 4) * sizeof *x);
    int *e = (int *)malloc((size_t)(48 * n * n) * sizeof *e);
    int *at = (int *)malloc((size_t)(8 * side * side) * sizeof *at);
    int count = 0, elements = 0, f, i, j, g;
    fsi_front_desc d = fsi_front_default_desc();
    fsi_front *front;
    if (!x || !e || !at) exit(1);
    for (f = 0; f < 8; f++) {
        const int sx = f & 1 ? -1 : 1, sy = f & 2 ? -1 : 1, sz = f & 4 ? -1 : 1, out = sx * sy * sz > 0;
        for (i = 0; i <= n; i++)
            for (j = 0; i + j <= n; j++) { /* (i, j, n - i - j)/n, shared where a coordinate is 0 */
                int *own = &at[(f * side + i) * side + j];
                const int zero = (i == 0) | (j == 0) << 1 | (i + j == n) << 2;
                fsi_vec3 p = fsi_v3((fsi_real)(sx * i), (fsi_real)(sy * j), (fsi_real)(sz * (n - i - j)));
                for (*own = -1, g = 0; g < f && *own < 0; g++)
                    if (((f ^ g) & ~zero) == 0) *own = at[(g * side + i) * side + j];
                if (*own >= 0) continue;
                *own = count;
                x[count++] = fsi_v3_unit(p);
            }
        for (i = 0; i < n; i++)
            for (j = 0; i + j < n; j++) {
                const int *p = &at[(f * side + i) * side + j], a = p[0], b = p[side], c = p[1];
                e[elements++] = a;
                e[elements++] = out ? b : c;
                e[elements++] = out ? c : b;
                if (i + j + 1 == n) continue;
                e[elements++] = b;
                e[elements++] = out ? p[side + 1] : c;
                e[elements++] = out ? c : p[side + 1];
            }
    }
    d.context = context;
    d.length = (fsi_real)sqrt(4 * FSI_PI / (elements / 3 * 0.4330127));
    for (i = 0; i < count && apart > 0; i++)
        x[count + i] = fsi_v3_add(x[i], fsi_v3((fsi_real)(2 + apart * (double)d.length), (fsi_real)0.01,
            (fsi_real)0.02));
    for (i = 0; i < elements && apart > 0; i++) e[elements + i] = count + e[i];
    d.topology = apart > 0;
    d.vertices = x;
    d.vertex_count = apart > 0 ? 2 * count : count;
    d.elements = e;
    d.element_count = apart > 0 ? 2 * elements / 3 : elements / 3;
    if (fsi_front_create(&front, &d) != FSI_OK) { printf("%s\n", context->error.message); exit(1); }
    free(x);
    free(e);
    free(at);
    return front;
}

static void stir(fsi_front *f, int step)
{
    const double turn = 0.05 * step;
    int i;
    for (i = 0; i < f->vertex_count; i++) {
        const fsi_vec3 p = f->position[i];
        f->velocity[i] = fsi_v3((fsi_real)sin(4 * (double)p.y + turn), (fsi_real)sin(4 * (double)p.z + 2 * turn),
            (fsi_real)sin(4 * (double)p.x + 3 * turn));
    }
}

/* Medians of 15 steps; seconds a triangle. */
static double measure(const char *name, int triangles, double dt, int first)
{
    enum { STEPS = 15 };
    fsi_context context = fsi_default_context();
    double all[STEPS], move[STEPS], mesh[STEPS], volume[STEPS], crossings[STEPS], commit[STEPS], per;
    fsi_front *f;
    char label[64];
    int k, operations = 0;
    long long allocs = 0;
    context.now = bench_seconds;
    f = make_balls(&context, (int)sqrt(triangles / 8.0), 0);
    for (k = -5; k < STEPS; k++) {
        double t;
        const fsi_front_stats *s = &f->stats;
        stir(f, k + 5);
        if (k == 0) allocs = context.allocs;
        t = bench_seconds(NULL);
        if (fsi_front_step(f, (fsi_real)dt) != FSI_OK) exit(1);
        if (k < 0) continue;
        all[k] = bench_seconds(NULL) - t;
        move[k] = s->seconds_move;
        mesh[k] = s->seconds_remesh;
        volume[k] = s->seconds_volume;
        crossings[k] = s->seconds_crossings;
        commit[k] = s->seconds_commit;
        operations += s->splits + s->collapses + s->flips + s->smoothed;
    }
    per = median(all, STEPS) / f->element_count;
    sprintf(label, "front_%s", name);
    line(label, 1e3 * median(all, STEPS), "ms");
    sprintf(label, "front_%s_per_triangle", name);
    line(label, 1e9 * per, "ns");
    sprintf(label, "front_%s_triangles", name);
    line(label, f->element_count, "");
    if (first) {
        line("front_step_move", 1e3 * median(move, STEPS), "ms");
        line("front_step_remesh", 1e3 * median(mesh, STEPS), "ms");
        line("front_step_volume", 1e3 * median(volume, STEPS), "ms");
        line("front_step_crossings", 1e3 * median(crossings, STEPS), "ms");
        line("front_step_commit", 1e3 * median(commit, STEPS), "ms");
        line("front_step_operations", (double)operations / STEPS, "");
        line("front_step_allocs", (double)(context.allocs - allocs) / STEPS, "");
        line("front_bytes_per_triangle", (double)context.bytes / f->element_count, "B");
    }
    fsi_front_destroy(f);
    return per;
}

/* Two sides of a slab, n x n squares each, with waves of 2.5 cells on nx x nx x nz cells of size 1. */
static fsi_front *make_sheet(fsi_context *context, int n, double nx, double nz)
{
    const int side = n + 1;
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)(2 * side * side) * sizeof *x);
    int *e = (int *)malloc((size_t)(12 * n * n + 24 * n) * sizeof *e), *c = e, s, i, j;
    fsi_front_desc d = fsi_front_default_desc();
    fsi_front *front;
    if (!x || !e) exit(1);
    for (s = 0; s < 2; s++)
        for (j = 0; j < side; j++)
            for (i = 0; i < side; i++) {
                const double u = 3.1 + (nx - 6.2) * i / n, v = 3.3 + (nx - 6.2) * j / n;
                x[(s * side + j) * side + i] = fsi_v3((fsi_real)u, (fsi_real)v,
                    (fsi_real)(nz / 2 + (s ? 4 : -4) + 2.5 * sin(0.21 * u) * cos(0.17 * v)));
            }
    for (s = 0; s < 2; s++)
        for (j = 0; j < n; j++)
            for (i = 0; i < n; i++, c += 6) {
                const int p = (s * side + j) * side + i, right = s ? p + 1 : p + side, left = s ? p + side : p + 1;
                c[0] = p; c[1] = right; c[2] = p + side + 1;
                c[3] = p; c[4] = p + side + 1; c[5] = left;
            }
    for (i = 0; i < 4 * n; i++, c += 6) { /* around, counter-clockwise from above */
        const int k = i % n, which = i / n, to = side * side;
        const int p = which == 0 ? k : which == 1 ? k * side + n : which == 2 ? n * side + n - k : (n - k) * side;
        const int q = p + (which == 0 ? 1 : which == 1 ? side : which == 2 ? -1 : -side);
        c[0] = p; c[1] = q; c[2] = q + to;
        c[3] = p; c[4] = q + to; c[5] = p + to;
    }
    d.context = context;
    d.vertices = x;
    d.vertex_count = 2 * side * side;
    d.elements = e;
    d.element_count = (int)(c - e) / 3;
    d.length = (fsi_real)(nx / n);
    if (fsi_front_create(&front, &d) != FSI_OK) { printf("%s\n", context->error.message); exit(1); }
    free(x);
    free(e);
    return front;
}

/* Medians of 15 calls, moved from one to the next; seconds a triangle. */
static double measure_lines(const char *name, int triangles, int nx, int nz)
{
    enum { CALLS = 15 };
    fsi_context context = fsi_default_context();
    fsi_front *f = make_sheet(&context, (int)sqrt(triangles / 4.0), nx, nz);
    fsi_front_lines_desc d = fsi_front_default_lines_desc();
    fsi_front_lines *l;
    double all[CALLS], per;
    const size_t bytes = context.bytes;
    char label[64];
    long long allocs = 0;
    int k;
    d.context = &context;
    d.n[0] = d.n[1] = nx;
    d.n[2] = nz;
    d.dx = 1;
    if (fsi_front_create_lines(&l, &d) != FSI_OK) exit(1);
    for (k = -3; k < CALLS; k++) {
        double t;
        l->origin = fsi_v3((fsi_real)(0.037 * k), (fsi_real)(0.021 * k), (fsi_real)(0.053 * k));
        if (k == 0) allocs = context.allocs;
        t = bench_seconds(NULL);
        if (fsi_front_cross_lines(l, f) != FSI_OK) exit(1);
        if (k >= 0) all[k] = bench_seconds(NULL) - t;
    }
    per = median(all, CALLS) / f->element_count;
    sprintf(label, "front_%s", name);
    line(label, 1e3 * median(all, CALLS), "ms");
    sprintf(label, "front_%s_triangles", name);
    line(label, f->element_count, "");
    sprintf(label, "front_%s_crossings", name);
    line(label, l->crossing_count, "");
    sprintf(label, "front_%s_allocs", name);
    line(label, (double)(context.allocs - allocs), "");
    sprintf(label, "front_%s_bytes", name);
    line(label, (double)(context.bytes - bytes) / f->element_count, "B/triangle");
    fsi_front_destroy_lines(l);
    fsi_front_destroy(f);
    return per;
}

/* Parity, places, weights. */
static void bench_lines(int n)
{
    const double per = measure_lines("lines", n, 256, 64), few = measure_lines("lines_tenth", n / 10, 81, 64),
        many = measure_lines("lines_fourfold", 4 * n, 512, 64);
    line("front_lines_growth_tenth", few / per, "");
    line("front_lines_growth_fourfold", many / per, "");
}

/* Two drops of so many triangles each: a step in which they merge, again and again; and one in which they are too far
   apart. */
static void bench_topology(int triangles)
{
    enum { STEPS = 15 };
    fsi_context context = fsi_default_context();
    double topology[2][STEPS], all[STEPS];
    long long allocs = 0;
    int k, merges = 0, far;
    context.now = bench_seconds;
    for (far = 0; far < 2; far++) {
        fsi_front *f = make_balls(&context, (int)sqrt(triangles / 8.0), far ? 4 : 0.7);
        size_t size;
        void *state;
        if (fsi_front_save(f, NULL, 0, &size) != FSI_OK || !(state = malloc(size))) exit(1);
        if (fsi_front_save(f, state, size, &size) != FSI_OK) exit(1);
        for (k = -3; k < STEPS; k++) {
            double t;
            if (fsi_front_load(f, state, size) != FSI_OK) exit(1);
            if (k == 0) allocs = context.allocs;
            t = bench_seconds(NULL);
            if (fsi_front_step(f, 0) != FSI_OK) exit(1);
            if (k < 0) continue;
            all[k] = bench_seconds(NULL) - t;
            topology[far][k] = f->stats.seconds_topology;
            merges += f->stats.merges;
        }
        if (far == 0) {
            line("front_merge", 1e3 * median(topology[0], STEPS), "ms");
            line("front_merge_step", 1e3 * median(all, STEPS), "ms");
            line("front_merge_triangles", f->element_count, "");
            line("front_merge_cells", f->stats.resampled_cells, "");
            line("front_merge_allocs", (double)(context.allocs - allocs) / STEPS, "");
        }
        fsi_front_destroy(f);
        free(state);
    }
    line("front_merges", (double)merges / STEPS, "");
    line("front_far", 1e3 * median(topology[1], STEPS), "ms");
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 260000;
    const double dt = 0.5 * sqrt(4 * FSI_PI / (n * 0.4330127));
    double per, few, many;
    bench_topology(20000);
    bench_lines(n);
    if (argc > 2) return 0;
    per = measure("step", n, dt, 1);
    few = measure("step_tenth", n / 10, dt, 0);
    many = measure("step_fourfold", 4 * n, dt, 0);
    line("front_growth_tenth", few / per, "");
    line("front_growth_fourfold", many / per, "");
    return 0;
}
