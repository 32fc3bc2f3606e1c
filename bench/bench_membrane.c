/* bench_membrane.c - what a step of liquid held by its surface costs, at the sizes of five scenes of Ruan et al. 2021.
   SPDX-License-Identifier: MIT
   cc -O3 -march=native bench/bench_membrane.c -lm -o bench_membrane && ./bench_membrane [scene]

   Bodies that lie 0.2 cells deep in the surface of a pool with ripples, let go. Prints `name value unit` lines: CPU
   time of the process a substep, medians; shares of remeshing (fsi_front.h, topology and crossings with it) and of
   cells, rows and masses; share of the loops that threads would share (a scheduler with one thread clocks them); most
   memory. Without an argument all scenes, then how time grows: four times and a sixteenth of the cells of one pool. */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_membrane.h"
#include "../examples/kit/mesh.h"
#include "bench.h"

enum { MOST = 32 };

/* A pool half as high as its box, [cells]; balls of radius `ball` in a row; the paper's seconds a step. */
typedef struct scene {
    const char *name;
    int dim, n[3];
    double dx;      /* [m] */
    int balls;
    double ball, density;
    int steps;
    double paper;
} scene;

static const scene scenes[] = {
    {"cheerios_2d", 2, { 160, 160, 1 }, 1.25e-4, 2, 8, 1.5, 25, 0.17},
    {"robot_2d", 2, { 320, 320, 1 }, 6.25e-5, 1, 16, 2, 15, 0.69},
    {"sphere_fall", 3, { 80, 80, 40 }, 2.5e-3, 1, 6, 0.4, 9, 2.1},
    {"cherries", 3, { 160, 160, 80 }, 1.25e-4, 2, 10, 1.2, 5, 10},
    {"paperclip", 3, { 256, 256, 64 }, 7.8e-4, 1, 8, 2, 3, 31}};

static void line(const char *name, const char *what, double value, const char *unit)
{
    printf("membrane_%s_%-24s %12.4g %s\n", name, what, value, unit);
    fflush(stdout);
}

static void must(fsi_context *c, fsi_status status)
{
    if (status == FSI_OK) return;
    puts(c->error.message);
    exit(1);
}

/* One thread's turn of a loop, clocked. */
static double in_loops;
static void clocked(void *user, int count, void (*task)(void *arg, int index), void *arg)
{
    const double begin = cpu_seconds(NULL);
    int i;
    (void)user;
    for (i = 0; i < count; i++) task(arg, i);
    in_loops += cpu_seconds(NULL) - begin;
}

/* In 2D: the walls and the surface of the pool, in edges of half a cell. */
static ex_mesh make_line(int wide, double high, double dx)
{
    const int side = (int)(2 * high), count = 2 * (2 * wide + side);
    ex_mesh m = ex_mesh_make(count, count);
    int i;
    for (i = 0; i < count; i++) { /* clockwise: up, along the surface, down, along the floor */
        const double up = i < side ? (double)i / side : i < side + 2 * wide ? 1 : i < 2 * (side + wide)
            ? 1 - (double)(i - side - 2 * wide) / side : 0;
        const double along = i < side ? 0 : i < side + 2 * wide ? (double)(i - side) / (2 * wide)
            : i < 2 * (side + wide) ? 1 : 1 - (double)(i - 2 * (side + wide)) / (2 * wide);
        m.vertices[i] = fsi_v3((fsi_real)(along * wide * dx), (fsi_real)(up * high * dx), 0);
        m.triangles[2 * i] = i;
        m.triangles[2 * i + 1] = (i + 1) % count;
    }
    return m;
}

/* The surface of the pool, edges of half a cell, with ripples of 16 cells and 0.2 cells high. */
static void make_pool(const scene *s, fsi_membrane_desc *d, ex_mesh *pool)
{
    const int up = s->dim - 1;
    const double dx = s->dx, high = s->n[up] / 2 + 0.3;
    int i, count[3];
    for (i = 0; i < 3; i++) count[i] = (int)(2.1 * (i < 2 ? s->n[i] : high)); /* diagonals are not cut */
    *pool = s->dim == 3 ? ex_gridded_box(ex_box3(0, 0, 0, s->n[0] * dx, s->n[1] * dx, high * dx), count)
        : make_line(s->n[0], high, dx);
    for (i = 0; i < pool->vertex_count; i++) {
        fsi_vec3 *x = &pool->vertices[i];
        const double more = 0.1 * dx * cos(FSI_PI * (double)x->x / (8 * dx))
            * (s->dim == 3 ? cos(FSI_PI * (double)x->y / (8 * dx)) : 1);
        if ((double)fsi__axis(*x, up) < (high - 0.01) * dx) continue;
        *(up == 2 ? &x->z : &x->y) += (fsi_real)more;
    }
    d->vertices = pool->vertices;
    d->vertex_count = pool->vertex_count;
    d->elements = pool->triangles;
    d->element_count = pool->triangle_count;
}

static fsi_rigid *make_balls(fsi_context *c, const scene *s, fsi_vec3 gravity)
{
    fsi_rigid_desc d = fsi_rigid_default_desc();
    fsi_rigid *w;
    int k, id;
    d.context = c;
    d.dim = s->dim;
    d.gravity = gravity;
    must(c, fsi_rigid_create(&w, &d));
    for (k = 0; k < s->balls; k++) {
        fsi_rigid_shape ball = fsi_rigid_sphere((fsi_real)(s->ball * s->dx));
        fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
        const double x = (k + 1) * s->n[0] / (s->balls + 1.0), z = s->n[s->dim - 1] / 2 + 0.3 + s->ball - 0.2;
        ball.density = (fsi_real)(1000 * s->density);
        b.shapes = &ball;
        b.shape_count = 1;
        b.pose.position = fsi_v3_scale(fsi_v3((fsi_real)x, (fsi_real)(s->dim == 3 ? s->n[1] / 2 : z),
            (fsi_real)(s->dim == 3 ? z : 0)), (fsi_real)s->dx);
        must(c, fsi_rigid_add_body(w, &b, &id));
    }
    return w;
}

/* Medians a substep; returns seconds a vertex. */
static double measure(const scene *s, int first)
{
    fsi_context c = fsi_default_context();
    fsi_membrane_desc d = fsi_membrane_default_desc();
    fsi_membrane *m;
    ex_mesh pool;
    double all[MOST], mesh[MOST], types[MOST], move[MOST], factor[MOST], pressure[MOST], other[MOST], loops[MOST];
    double begin, per, dt;
    int k, a, iters = 0;
    long long allocs = 0;
    c.now = bench_seconds;
    c.parallel_for = clocked;
    d.context = &c;
    d.dim = s->dim;
    for (a = 0; a < 3; a++) d.n[a] = s->n[a];
    d.dx = (fsi_real)s->dx;
    d.max_substeps = 1;
    if (s->dim == 2) d.gravity = fsi_v3(0, (fsi_real)-9.81, 0);
    make_pool(s, &d, &pool);
    d.world = make_balls(&c, s, d.gravity);
    begin = bench_seconds(NULL);
    must(&c, fsi_membrane_create(&m, &d));
    if (first) line(s->name, "create", bench_seconds(NULL) - begin, "s");
    dt = 0.25 * sqrt(s->dx / 9.81); /* falls by 0.03 cells in the first */

    for (k = -2; k < s->steps; k++) {
        const fsi_front_stats *f = &m->front->stats;
        in_loops = 0;
        if (k == 0) allocs = c.allocs;
        begin = bench_seconds(NULL);
        must(&c, fsi_membrane_step(m, (fsi_real)dt));
        if (k < 0) continue;
        all[k] = bench_seconds(NULL) - begin;
        loops[k] = in_loops / all[k];
        mesh[k] = (f->seconds_topology + f->seconds_remesh + f->seconds_crossings + f->seconds_volume) / all[k];
        types[k] = m->stats.seconds_rows / all[k];
        move[k] = m->stats.seconds_move / all[k];
        factor[k] = m->stats.seconds_factor / all[k];
        pressure[k] = m->stats.seconds_pressure / all[k];
        other[k] = m->stats.seconds_other / all[k];
        iters += m->stats.iters;
    }
    per = median(all, s->steps);
    line(s->name, "step", 1e3 * per, "ms");
    line(s->name, "liquid_cells", m->stats.liquid_cells, "");
    line(s->name, "vertices", m->stats.vertices, "");
    if (first) {
        line(s->name, "paper_over_step", s->paper / per, "");
        line(s->name, "remesh_share", 100 * median(mesh, s->steps), "%");
        line(s->name, "cells_and_rows_share", 100 * median(types, s->steps), "%");
        line(s->name, "move_share", 100 * median(move, s->steps), "%");
        line(s->name, "factor_share", 100 * median(factor, s->steps), "%");
        line(s->name, "pressure_share", 100 * median(pressure, s->steps), "%");
        line(s->name, "other_share", 100 * median(other, s->steps), "%"); /* rows once more, and copies */
        line(s->name, "loops_share", 100 * median(loops, s->steps), "%");
        line(s->name, "pressure_iterations", (double)iters / s->steps, "");
        line(s->name, "contacts", m->stats.contacts, "");
        line(s->name, "allocations", (double)(c.allocs - allocs) / s->steps, "");
        line(s->name, "memory", 1e-6 * (double)c.peak_bytes, "MB");
        printf("membrane_%s_hash %016llx\n", s->name, (unsigned long long)fsi_membrane_hash(m));
    }
    fsi_membrane_destroy(m);
    fsi_rigid_destroy(d.world);
    ex_mesh_free(&pool);
    return per / (s->n[0] * s->n[1]);
}

/* A pool of 16 cells, as wide as it is long. */
static double measure_width(const char *name, int wide, int steps)
{
    scene s = { "", 3, { 0, 0, 32 }, 5e-4, 1, 6, 1.2, 0, 0 };
    s.name = name;
    s.n[0] = s.n[1] = wide;
    s.steps = steps;
    return measure(&s, 0);
}

int main(int argc, char **argv)
{
    const int count = (int)(sizeof scenes / sizeof scenes[0]);
    double per, few, many;
    int k;
    for (k = 0; k < count; k++) if (argc < 2 || strcmp(argv[1], scenes[k].name) == 0) measure(&scenes[k], 1);
    if (argc > 1 && strcmp(argv[1], "growth") != 0) return 0;
    per = measure_width("64_wide", 64, 9);
    few = measure_width("32_wide", 32, 15);
    many = measure_width("128_wide", 128, 5);
    line("growth", "32_to_64", per / few, "");
    line("growth", "64_to_128", many / per, "");
    return 0;
}
