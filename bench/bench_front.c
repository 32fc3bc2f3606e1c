/* bench_front.c - what surfaces that move cost. Prints `name value unit` lines; CPU time of the process, medians.
   SPDX-License-Identifier: MIT
   cc -O3 -march=native bench/bench_front.c -lm -o bench_front && ./bench_front [triangles, default 260000]

   A ball that is stirred: in each step its vertices move by 0.6 target lengths (0.3 cells of a grid with two edges a
   cell), and the field turns. Then a tenth and four times as many triangles in the same motion, which asks for as many
   operations a triangle: what one costs must not change much. */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_front.h"
#include "bench.h"
#include <stdio.h>

static void line(const char *name, double value, const char *unit) { printf("%-28s %12.4g %s\n", name, value, unit); }

/* An octahedron whose faces are cut in n x n triangles, on a ball of radius 1. */
static fsi_front *make_ball(fsi_context *context, int n)
{
    const int side = n + 1;
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)(4 * n * n + 2) * sizeof *x);
    int *e = (int *)malloc((size_t)(24 * n * n) * sizeof *e);
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
    d.vertices = x;
    d.vertex_count = count;
    d.elements = e;
    d.element_count = elements / 3;
    d.length = (fsi_real)sqrt(4 * FSI_PI / (d.element_count * 0.4330127));
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
    f = make_ball(&context, (int)sqrt(triangles / 8.0));
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

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 260000;
    const double dt = 0.5 * sqrt(4 * FSI_PI / (n * 0.4330127)), per = measure("step", n, dt, 1);
    const double few = measure("step_tenth", n / 10, dt, 0), many = measure("step_fourfold", 4 * n, dt, 0);
    line("front_growth_tenth", few / per, "");
    line("front_growth_fourfold", many / per, "");
    return 0;
}
