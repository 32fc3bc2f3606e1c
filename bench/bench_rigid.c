/* Speed of fsi_rigid.h: a step of walls of boxes and of heaps of rings against their contacts, trees against their
   links, growth.
   usage: bench_rigid [part of a name]. With -fopenmp: by the wall's clock.
   SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_rigid.h"
#include <stdio.h>
#include <stdlib.h>
#include "bench.h"

enum { STEPS = 61 };

static void need(const fsi_rigid *w, fsi_status status)
{
    if (status == FSI_OK) return;
    printf("%s\n", w ? fsi_rigid_error(w)->message : fsi_status_text(status));
    exit(1);
}

static fsi_rigid *make_world(fsi_context *context)
{
    fsi_rigid_desc d = fsi_rigid_default_desc();
    fsi_rigid *w;
    *context = fsi_default_context();
    context->now = bench_seconds;
    d.context = context;
    d.sleep_time = 0;
    need(NULL, fsi_rigid_create(&w, &d));
    need(w, fsi_rigid_add_plane(w, fsi_v3(0, 0, 1), 0, NULL, NULL));
    return w;
}

static void add(fsi_rigid *w, const fsi_rigid_shape *shape, fsi_vec3 x, double turn)
{
    fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
    b.shapes = shape;
    b.shape_count = 1;
    b.pose.position = x;
    b.pose.orientation = fsi_quat_from_axis_angle(fsi_v3(1, 1, 0), (fsi_real)turn);
    need(w, fsi_rigid_add_body(w, &b, NULL));
}

/* Median seconds of a step after `settle` of them; prints them a body and a contact. */
static void time_steps(fsi_rigid *w, const char *name, int settle)
{
    const fsi_real dt = (fsi_real)(1.0 / 60);
    double t[STEPS], collide[STEPS], solve[STEPS], sweeps = 0;
    int k;
    for (k = 0; k < settle; k++) need(w, fsi_rigid_step(w, dt));
    for (k = 0; k < STEPS; k++) {
        t[k] = bench_seconds(NULL);
        need(w, fsi_rigid_step(w, dt));
        t[k] = bench_seconds(NULL) - t[k];
        collide[k] = w->stats.seconds_collide;
        solve[k] = w->stats.seconds_solve;
        sweeps += (double)w->stats.sweeps / STEPS;
    }
    printf("%-20s %6d bodies %7d contacts  step %9.1f us  collide %5.2f us/body  solve %6.3f us/contact/sweep (%.0f "
           "sweeps)  %5.0f bytes/body\n",
           name, w->stats.bodies, w->stats.contacts, 1e6 * median(t, STEPS),
           1e6 * median(collide, STEPS) / w->stats.bodies,
           w->stats.contacts && sweeps > 0 ? 1e6 * median(solve, STEPS) / w->stats.contacts / sweeps : 0, sweeps,
           (double)w->stats.bytes / w->stats.bodies);
    fflush(stdout);
}

/* A gable of bricks, `courses` high. */
static void bench_wall(int courses)
{
    fsi_context context;
    fsi_rigid *w = make_world(&context);
    fsi_rigid_shape brick = fsi_rigid_box(fsi_v3((fsi_real)0.1, (fsi_real)0.05, (fsi_real)0.05));
    char name[32];
    int k, i;
    for (k = 0; k < courses; k++)
        for (i = 0; i < courses - k; i++)
            add(w, &brick, fsi_v3((fsi_real)(0.21 * (i + 0.5 * k)), 0, (fsi_real)(0.05 + 0.1 * k)), 0);
    snprintf(name, sizeof name, "wall_%d", courses);
    time_steps(w, name, 30);
    fsi_rigid_destroy(w);
}

/* Boxes, balls and capsules, n x n columns of five, fall to a heap. */
static void bench_heap(int n)
{
    fsi_context context;
    fsi_rigid *w = make_world(&context);
    fsi_rigid_shape s[3];
    char name[32];
    int i;
    s[0] = fsi_rigid_box(fsi_v3((fsi_real)0.1, (fsi_real)0.08, (fsi_real)0.12));
    s[1] = fsi_rigid_sphere((fsi_real)0.1);
    s[2] = fsi_rigid_capsule((fsi_real)0.06, (fsi_real)0.08);
    for (i = 0; i < 5 * n * n; i++)
        add(w, &s[i % 3],
            fsi_v3((fsi_real)(0.25 * (i % n)), (fsi_real)(0.25 * (i / n % n)), (fsi_real)(0.2 + 0.3 * (i / n / n))),
            0.3 * i);
    snprintf(name, sizeof name, "heap_%d", 5 * n * n);
    time_steps(w, name, 60);
    fsi_rigid_destroy(w);
}

/* A chain of n rods from a fixed end, in the air: reduced coordinates cost n^2 for the inertia, n^3 for its factors. */
static void bench_chain(int n)
{
    static fsi_rigid_link_desc link[256];
    fsi_context context;
    fsi_rigid *w = make_world(&context);
    fsi_rigid_tree_desc t = fsi_rigid_default_tree_desc();
    fsi_rigid_shape rod = fsi_rigid_capsule((fsi_real)0.02, (fsi_real)0.1);
    char name[32];
    int k;
    for (k = 0; k < n; k++) {
        link[k] = fsi_rigid_default_link_desc();
        link[k].body.shapes = &rod;
        link[k].body.shape_count = 1;
        link[k].body.pose.position = fsi_v3((fsi_real)(0.25 * k), 0, 100);
        link[k].body.filter = link[k].body.mask = 0;
        link[k].parent = k - 1;
        link[k].point = fsi_v3((fsi_real)(0.25 * k - 0.125), 0, 100);
        link[k].axis = fsi_v3(0, 1, (fsi_real)(k % 2));
    }
    t.links = link;
    t.link_count = n;
    t.fixed = 1;
    need(w, fsi_rigid_add_tree(w, &t, NULL));
    snprintf(name, sizeof name, "chain_%d", n);
    time_steps(w, name, 5);
    fsi_rigid_destroy(w);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    printf("%s\n", fsi_build_info());
    if (strstr("wall", part)) { bench_wall(8); bench_wall(16); bench_wall(32); }
    if (strstr("heap", part)) { bench_heap(6); bench_heap(12); bench_heap(16); }
    if (strstr("chain", part)) { bench_chain(4); bench_chain(16); bench_chain(64); bench_chain(255); }
    return 0;
}
