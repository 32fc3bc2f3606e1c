/* bench_elastic.c - what elastic bodies cost, beside the floor that memory or arithmetic sets. Prints `name value unit`
   lines; CPU time of one thread, medians.
   SPDX-License-Identifier: MIT
   cc -O3 -march=native -I. bench/bench_elastic.c -lm -o bench_elastic && ./bench_elastic [--quick]

   The figures of the project are for 1000 regions; `default`: regions as they are by default, 20 a handle.
   The body is a bumpy ball of 40,000 triangles, in cages of some 20,000 to 700,000 tetrahedra. It starts turning and
   stretched, free of contact; all 20 iterations of a step are made. */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_elastic.h"
#include "bench.h"
#include <stdio.h>
#include <string.h>

#define ROUND 200 /* vertices round the ball; half as many from pole to pole */
#define STEPS 11
#define FRAME ((fsi_real)(1.0 / 60))

static void line(const char *name, double value, const char *unit) { printf("%-34s %12.4g %s\n", name, value, unit); }
static void must(fsi_context *c, fsi_status status)
{
    if (status == FSI_OK) return;
    printf("%s\n", c->error.message);
    exit(1);
}

/* What several threads could share: CPU seconds in tasks. */
static double tasks;
static void one_thread(void *user, int count, void (*task)(void *arg, int index), void *arg)
{
    const double start = cpu_seconds(user);
    int k;
    for (k = 0; k < count; k++) task(arg, k);
    tasks += cpu_seconds(user) - start;
}
/* Twice as many threads, at best. */
static double doubled(double in_tasks, double all) { return all / (all - in_tasks / 2); }

/* A ball of radius about 0.5 with bumps, of so many vertices round it. */
static fsi_vec3 bumpy(double a, double b)
{
    const double r = 0.5 * (1 + 0.1 * sin(5 * a) * sin(b) * sin(b) * sin(b) + 0.08 * cos(4 * b));
    return fsi_v3((fsi_real)(r * sin(b) * cos(a)), (fsi_real)(r * sin(b) * sin(a)), (fsi_real)(r * cos(b)));
}
static fsi_mesh *make_ball(fsi_context *context, int around)
{
    const int rings = around / 2 - 1, vertices = rings * around + 2;
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)vertices * sizeof *x);
    int *t = (int *)malloc((size_t)(6 * rings * around) * sizeof *t), i, j, n = 0;
    fsi_mesh *m;
    if (!x || !t) exit(1);
    for (i = 0; i < rings; i++) for (j = 0; j < around; j++)
        x[i * around + j] = bumpy(2 * FSI_PI * j / around, FSI_PI * (i + 1) / (rings + 1));
    x[vertices - 2] = bumpy(0, 0);
    x[vertices - 1] = bumpy(0, FSI_PI);
    for (i = -1; i < rings; i++) for (j = 0; j < around; j++) {
        const int k = (j + 1) % around, a = i * around + j, b = i * around + k;
        if (i >= 0) { t[n++] = a; t[n++] = i + 1 < rings ? a + around : vertices - 1; t[n++] = b; }
        if (i + 1 < rings) { t[n++] = i >= 0 ? b : vertices - 2; t[n++] = a + around; t[n++] = b + around; }
    }
    d.context = context;
    d.vertices = x; d.vertex_count = vertices;
    d.elements = t; d.element_count = n / 3;
    must(context, fsi_mesh_create(&m, &d));
    free(x);
    free(t);
    return m;
}

typedef struct world { fsi_context context; fsi_mesh *ball; fsi_elastic *s; int id; } world;

/* A simulator with the ball in a cage of `cells` cells along it; prints what making the body took. */
static void make(world *w, const char *name, int cells, int handles, int regions, int points)
{
    fsi_elastic_desc d = fsi_elastic_default_desc();
    fsi_elastic_body_desc b = fsi_elastic_default_body_desc();
    char label[64];
    double t;
    long long before;
    w->context = fsi_default_context();
    w->context.now = bench_seconds;
    w->context.parallel_for = one_thread;
    w->ball = make_ball(&w->context, ROUND);
    before = (long long)w->context.bytes;
    d.context = &w->context;
    d.tolerance = 0;
    must(&w->context, fsi_elastic_create(&w->s, &d));
    b.surface = w->ball;
    b.resolution = cells;
    b.handles = handles;
    b.regions = regions;
    b.contact_points = points;
    b.angular_velocity = fsi_v3(3, 1, 2);
    t = cpu_seconds(NULL);
    must(&w->context, fsi_elastic_add_body(w->s, &b, &w->id));
    t = cpu_seconds(NULL) - t;
    sprintf(label, "%s_elements", name);
    line(label, w->s->bodies[0].element_count, "");
    sprintf(label, "%s_set_up", name);
    line(label, t, "s");
    sprintf(label, "%s_bytes", name);
    line(label, 1e-6 * (double)((long long)w->context.bytes - before), "MB");
}
static void destroy(world *w)
{
    fsi_elastic_destroy(w->s);
    fsi_mesh_destroy(w->ball);
    if (w->context.bytes != 0) { printf("%ld bytes are lost\n", (long)w->context.bytes); exit(1); }
}

/* Multiplications and additions a second, in vectors of four and without contraction, as the kernels have them. */
static double flop_rate(void)
{
    enum { ROUNDS = 1 << 20 };
    double best = 1e9, start, one[48];
    int t, i, k;
    for (t = 0; t < 10; t++) {
        fsi__four s[12], x, y, next;
        for (k = 0; k < 48; k++) one[k] = k < 4 ? 0.5 : k;
        for (k = 0; k < 12; k++) fsi__four_get(&s[k], one + 4 * k);
        start = cpu_seconds(NULL);
        for (i = 0; i < ROUNDS; i++) {
            fsi__four_keep(&x, one);
            fsi__four_keep(&y, one + 4);
            for (k = 0; k < 12; k++) { /* s = y + s / 2 */
                next = y;
                fsi__four_product(&next, &s[k], &x);
                s[k] = next;
            }
        }
        start = cpu_seconds(NULL) - start;
        for (k = 0; k < 12; k++) fsi__four_put(one + 4 * k, &s[k]);
        if (one[5] >= 0 && start < best) best = start;
    }
    return 96.0 * ROUNDS / best;
}

/* The least that the iterations of a step can take: their multiplications and additions at the rate of flop_rate, and
   beside it what they must read and write, once each, at the rate of stream_rate. Counted: rows of the regions (or of
   the elements) for F and for the targets, two steps each for R and P and the targets, the solution. */
static void floors(world *w, const char *name)
{
    const fsi__el_body *b = fsi__el_inner(w->s, 0);
    const double n = b->evaluated, d = b->dofs, rows = b->reduced ? b->gradient.start[b->gradient.count] : 0,
        factor = b->reduced ? d * d / 2 : b->ldlt->stats.entries, steps = w->s->desc.iterations,
        flops = n * (2 * 190 + 2 * 130 + 160) + (b->reduced ? 144 * rows + 12 * factor : 108 * n + 16 * factor),
        bytes = 8 * (b->reduced ? 12.5 * rows + 30 * n + 2 * factor : 63 * n + 2 * factor);
    char label[64];
    sprintf(label, "%s_rows", name);
    if (b->reduced) line(label, rows / n, "handles a region");
    sprintf(label, "%s_operations", name);
    line(label, 1e-6 * flops, "Mflop an iteration");
    sprintf(label, "%s_traffic", name);
    line(label, 1e-6 * bytes, "MB an iteration");
    sprintf(label, "%s_floor_operations", name);
    line(label, 1e3 * steps * flops / flop_rate(), "ms");
    sprintf(label, "%s_floor_memory", name);
    line(label, 1e3 * steps * bytes / stream_rate(), "ms, 0 where it stays in the caches");
}

/* Steps of a body that was stretched by a tenth. */
static void step(world *w, const char *name)
{
    const int n = w->s->bodies[0].vertex_count;
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)n * sizeof *x);
    double t[STEPS], local[STEPS], global[STEPS], other[STEPS], middle, all = 0;
    char label[64];
    long long allocs = 0;
    int k;
    if (!x) exit(1);
    must(&w->context, fsi_elastic_vertices(w->s, w->id, x, NULL));
    for (k = 0; k < n; k++) x[k].z *= (fsi_real)1.1;
    must(&w->context, fsi_elastic_set_vertices(w->s, w->id, x, NULL));
    free(x);
    for (k = -2; k < STEPS; k++) {
        const double start = cpu_seconds(NULL);
        must(&w->context, fsi_elastic_step(w->s, FRAME));
        if (k < 0) { allocs = w->context.allocs; tasks = 0; continue; }
        t[k] = cpu_seconds(NULL) - start;
        all += t[k];
        local[k] = w->s->stats.seconds_local;
        global[k] = w->s->stats.seconds_global;
        other[k] = w->s->stats.seconds_other;
    }
    middle = median(t, STEPS);
    sprintf(label, "%s_step", name);
    line(label, 1e3 * middle, "ms");
    floors(w, name);
    sprintf(label, "%s_local", name);
    line(label, 1e3 * median(local, STEPS), "ms");
    sprintf(label, "%s_global", name);
    line(label, 1e3 * median(global, STEPS), "ms");
    sprintf(label, "%s_other", name);
    line(label, 1e3 * median(other, STEPS), "ms");
    sprintf(label, "%s_two_threads", name);
    line(label, doubled(tasks, all), "times as fast at best");
    sprintf(label, "%s_allocs", name);
    line(label, (double)(w->context.allocs - allocs), "");
}

/* Updates of a skin of about 50,000 vertices, and the time in which memory moves what it must read and write once. */
static void skin(world *w)
{
    fsi_mesh *fine = make_ball(&w->context, 316);
    const int n = fine->vertex_count;
    fsi_elastic_skin *k;
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)n * sizeof *x), *normals = (fsi_vec3 *)malloc((size_t)n * sizeof *x);
    double t[STEPS], middle, all = 0, rate = stream_rate();
    int i;
    if (!x || !normals) exit(1);
    must(&w->context, fsi_elastic_skin_create(&k, w->s, w->id, fine->vertices, fine->vertex_normals, n));
    for (i = 0, tasks = 0; i < STEPS; i++) {
        t[i] = cpu_seconds(NULL);
        must(&w->context, fsi_elastic_skin_update(k, w->s, x, normals));
        t[i] = cpu_seconds(NULL) - t[i];
        all += t[i];
    }
    middle = median(t, STEPS);
    line("skin_vertices", n, "");
    line("skin_update", 1e3 * middle, "ms");
    line("skin_floor", 1e3 * ((double)k->bytes) / rate, "ms");
    line("skin_two_threads", doubled(tasks, all), "times as fast at best");
    fsi_elastic_skin_destroy(k);
    fsi_mesh_destroy(fine);
    free(x);
    free(normals);
}

int main(int argc, char **argv)
{
    const int quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    world w;
    make(&w, "jelly_137k_60", 39, 60, 1000, 400);
    step(&w, "jelly_137k_60");
    skin(&w);
    destroy(&w);
    make(&w, "jelly_137k_99", 39, 99, 1000, 0);
    step(&w, "jelly_137k_99");
    destroy(&w);
    make(&w, "jelly_137k_99_default", 39, 99, 0, 0);
    step(&w, "jelly_137k_99_default");
    destroy(&w);
    make(&w, "jelly_20k_99", 20, 99, 1000, 0);
    step(&w, "jelly_20k_99");
    destroy(&w);
    make(&w, "full_20k", 20, 0, 600, 0);
    step(&w, "full_20k");
    destroy(&w);
    if (!quick) {
        make(&w, "jelly_700k_99", 68, 99, 1000, 0);
        step(&w, "jelly_700k_99");
        destroy(&w);
    }
    return 0;
}
