/* bench_surface.c - what surfaces from particles cost. Prints `name value unit` lines; CPU time of one thread.
   SPDX-License-Identifier: MIT
   cc -O3 bench/bench_surface.c -lm -o bench_surface && ./bench_surface [particles along an edge, default 46] */
#define FSI_IMPLEMENTATION
#include "../fsi_surface.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }
static void line(const char *name, double value, const char *unit) { printf("%-28s %12.4g %s\n", name, value, unit); }

static uint64_t seed = 1;
static double uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0;
}

/* The best of three updates. */
static void measure(fsi_surface *s, fsi_context *context, const char *name, const fsi_vec3 *x, int count)
{
    char label[64];
    double best = 1e30, t;
    int k;
    for (k = 0; k < 3; k++) {
        t = seconds();
        if (fsi_surface_update(s, x, count, NULL) != FSI_OK) { printf("%s\n", context->error.message); exit(1); }
        t = seconds() - t;
        if (t < best) best = t;
    }
    sprintf(label, "surface_%s", name);
    line(label, 1e3 * best, "ms");
    sprintf(label, "surface_%s_particles", name);
    line(label, count, "");
    sprintf(label, "surface_%s_vertices", name);
    line(label, s->vertex_count, "");
    sprintf(label, "surface_%s_per_vertex", name);
    line(label, 1e9 * best / (s->vertex_count + 1), "ns");
    sprintf(label, "surface_%s_bytes", name);
    line(label, (double)context->bytes, "B");
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 46, count, i;
    fsi_context context = fsi_default_context();
    fsi_surface_desc d = fsi_surface_default_desc();
    fsi_surface *s;
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)(n * n) * (size_t)n * sizeof *x);
    fsi_box3 box;
    const fsi_real dx = 1 / (fsi_real)n;
    if (!x) return 1;
    d.context = &context;
    d.spacing = dx;
    if (fsi_surface_create(&s, &d) != FSI_OK) { printf("%s\n", context.error.message); return 1; }
    box.lo = fsi_v3(0, 0, 0);
    box.hi = fsi_v3(1, 1, 1);
    fsi_sample_box(&context, box, dx, 3, x, n * n * n, &count);
    measure(s, &context, "cube", x, count);
    box.hi = fsi_v3(2, 1, (fsi_real)0.5); /* jittered, and one particle in fifty in the air */
    fsi_sample_box(&context, box, dx, 3, x, n * n * n, &count);
    for (i = 0; i < count; i++)
        x[i] = i % 50 ? fsi_v3_madd(x[i], (fsi_real)0.1 * dx,
                                    fsi_v3((fsi_real)uniform(), (fsi_real)uniform(), (fsi_real)uniform()))
                      : fsi_v3((fsi_real)(2 * uniform()), (fsi_real)uniform(), (fsi_real)(0.5 + uniform()));
    measure(s, &context, "splash", x, count);
    /* at random, half as dense */
    for (i = 0; i < count; i++) x[i] = fsi_v3((fsi_real)(2 * uniform()), (fsi_real)uniform(), (fsi_real)uniform());
    measure(s, &context, "spray", x, count);
    fsi_surface_destroy(s);
    free(x);
    return 0;
}
