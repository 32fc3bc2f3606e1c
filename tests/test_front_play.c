/* test_front_play.c - absurd motions of many drops, rings, bubbles and drops on a floor, each step judged by checks
   that share no code with fsi_front.h: closed, no two elements that cross, volumes and amounts as booked, what is
   wet lies on the floor, and where a step is refused nothing has changed.
   SPDX-License-Identifier: MIT

   PLAY_RUNS (default 1): as many runs of each scene. */
#include "kit/test_topology.h"

#ifndef PLAY_RUNS
#define PLAY_RUNS 1
#endif

static topology_tally tally;

static void take(double *p, fsi_vec3 x)
{
    p[0] = (double)x.x;
    p[1] = (double)x.y;
    p[2] = (double)x.z;
}

/* Six times the volume of a tetrahedron. */
static double volume(const double *a, const double *b, const double *c, const double *d)
{
    const double u[3] = { b[0] - a[0], b[1] - a[1], b[2] - a[2] }, v[3] = { c[0] - a[0], c[1] - a[1], c[2] - a[2] },
        w[3] = { d[0] - a[0], d[1] - a[1], d[2] - a[2] };
    return u[0] * (v[1] * w[2] - v[2] * w[1]) + u[1] * (v[2] * w[0] - v[0] * w[2]) + u[2] * (v[0] * w[1] - v[1] * w[0]);
}
static int sign(double x, double rounding) { return x > rounding ? 1 : x < -rounding ? -1 : 0; }

/* Does the edge p q pass through the middle of a triangle, clearly? 2D: of a segment, with z of the third corner 1. */
static int passes(const double *p, const double *q, const double (*x)[3], int dim)
{
    const double rounding = TOL(1e-10, 1e-4);
    int i, side;
    if (dim == 2) {
        const double up[3] = { p[0], p[1], 1 }, at[3] = { x[0][0], x[0][1], 1 };
        return sign(volume(x[0], x[1], at, p), rounding) * sign(volume(x[0], x[1], at, q), rounding) < 0
            && sign(volume(p, q, up, x[0]), rounding) * sign(volume(p, q, up, x[1]), rounding) < 0;
    }
    if (sign(volume(x[0], x[1], x[2], p), rounding) * sign(volume(x[0], x[1], x[2], q), rounding) >= 0) return 0;
    side = sign(volume(p, q, x[0], x[1]), rounding);
    for (i = 1; i < 3; i++)
        if (side == 0 || sign(volume(p, q, x[i], x[(i + 1) % 3]), rounding) != side) return 0;
    return 1;
}

static int has(const int *c, int dim, int v) { return c[0] == v || c[1] == v || c[dim - 1] == v; }

/* Elements i and j: an edge of one through the other. */
static int cross(const fsi_front *f, int i, int j)
{
    const int k = f->dim, *c = f->elements + k * i, *d = f->elements + k * j;
    double x[3][3];
    int e;
    for (e = 0; e < k; e++) take(x[e], f->position[d[e]]);
    for (e = 0; e < (k == 3 ? 3 : 1); e++) {
        double p[3], q[3];
        if (has(d, k, c[e]) || has(d, k, c[(e + 1) % k])) continue;
        take(p, f->position[c[e]]);
        take(q, f->position[c[(e + 1) % k]]);
        if (passes(p, q, (const double (*)[3])x, k)) return 1;
    }
    return 0;
}

/* Pairs of elements that cross: all pairs whose boxes meet. */
static int count_crossings(const fsi_front *f)
{
    const int n = f->element_count, k = f->dim;
    double *box = (double *)malloc(((size_t)n + 1) * 6 * sizeof *box);
    int i, j, a, count = 0;
    for (i = 0; i < n; i++)
        for (j = 0; j < k; j++) {
            double p[3];
            take(p, f->position[f->elements[k * i + j]]);
            for (a = 0; a < 3; a++) {
                if (j == 0 || p[a] < box[6 * i + a]) box[6 * i + a] = p[a];
                if (j == 0 || p[a] > box[6 * i + 3 + a]) box[6 * i + 3 + a] = p[a];
            }
        }
    for (i = 0; i < n; i++)
        for (j = i + 1; j < n; j++) {
            const double *p = box + 6 * i, *q = box + 6 * j;
            if (p[0] > q[3] || q[0] > p[3] || p[1] > q[4] || q[1] > p[4] || p[2] > q[5] || q[2] > p[5]) continue;
            count += cross(f, i, j) || cross(f, j, i);
        }
    free(box);
    return count;
}

/* Vertices with the flag of the floor z = 0 (2D: y = 0) that are not on it, and others a length beyond it. */
static int count_beyond(const fsi_front *f, int up)
{
    int i, count = 0;
    for (i = 0; i < f->vertex_count; i++) {
        const double high = up * (double)(f->dim == 3 ? f->position[i].z : f->position[i].y);
        count += f->flags[i] & 63u ? !(fabs(high) <= 0) : !(high > -1);
    }
    return count;
}

enum { PLAY_DROPS, PLAY_DISCS, PLAY_RING, PLAY_FLOOR, PLAY_FLOOR_2D, PLAY_CEILING, PLAY_SCENES };

/* Many drops; a ring around a drop with a bubble; three drops on a floor. *up: 1 floor, -1 ceiling, 0 neither. */
static fsi_front *set_up(int scene, front_shape *s, int *up, uint64_t *seed)
{
    const double at[3] = { -11, 0, 11 };
    fsi_front_desc d;
    fsi_front *f = NULL;
    int i;
    *up = scene == PLAY_CEILING ? -1 : scene >= PLAY_FLOOR;
    s->dim = scene == PLAY_DISCS || scene == PLAY_FLOOR_2D ? 2 : 3;
    if (*up) return topology_sitting(s, at, 3, 5, topology_in(seed, -1.5, 1), *up, 0);
    if (scene == PLAY_RING) {
        front_add_torus(s, 8, 2.2, 50, 14);
        front_add_ball(s, front_v3(0, 0, 0), front_v3(4.5, 4.5, 4.5), 7, 1);
        front_add_ball(s, front_v3(0.3, 0, 0), front_v3(2.6, 2.6, 2.6), 4, -1);
    } else for (i = 0; i < (s->dim == 3 ? 8 : 12); i++) {
        const double r = topology_in(seed, 1.6, 3.2);
        const fsi_vec3 x = front_v3(7.5 * (i & 1), 7.5 * (i >> 1 & 1), 7.5 * (i >> 2));
        if (s->dim == 3) front_add_ball(s, x, front_v3(r, r, 0.9 * r), 4, 1);
        else front_add_circle(s, front_v3(7.5 * (i % 4), 7.5 * (i / 4), 0), r, 20, 1);
    }
    d = front_desc(s, 1);
    d.topology = 1;
    d.attribute_count = 2;
    CHECK(fsi_front_create(&f, &d) == FSI_OK);
    for (i = 0; f && i < 2 * f->vertex_count; i++) f->attribute[i] = i & 1 ? (fsi_real)sin((double)i) : 1;
    return f;
}

/* Velocities of one of five motions: waves, pieces thrown at the middle, one that is pressed flat, noise, shear. */
static void set_motion(fsi_front *f, int kind, int up, double phase, uint64_t *seed)
{
    const double speed = topology_in(seed, 0.1, 0.45);
    int i;
    for (i = 0; i < f->vertex_count; i++) {
        const double x = (double)f->position[i].x, y = (double)f->position[i].y, z = (double)f->position[i].z,
            far = sqrt(x * x + y * y + z * z) + 1;
        double v[3], *high = f->dim == 3 ? &v[2] : &v[1];
        const double h = f->dim == 3 ? z : y;
        v[0] = kind == 0 ? speed * sin(0.7 * y + phase) : kind == 1 ? -speed * x / far : kind == 2 ? 0.02 * x
            : kind == 3 ? topology_in(seed, -0.15, 0.15) : 0.04 * y;
        v[1] = kind == 0 ? speed * sin(0.6 * z + 0.4 * x + 2 * phase) : kind == 1 ? -speed * y / far
            : kind == 2 ? 0.02 * y : kind == 3 ? topology_in(seed, -0.15, 0.15) : -0.03 * x;
        v[2] = kind == 0 ? speed * sin(0.65 * x + phase) : kind == 1 ? -speed * z / far : kind == 2 ? -0.06 * z
            : kind == 3 ? topology_in(seed, -0.15, 0.15) : 0.02 * x;
        if (up && *high * up < -0.3 * h * up) *high = -0.3 * h; /* none goes through the floor, */
        if (f->flags[i] & 63u) *high = 0;                       /* or leaves it */
        f->velocity[i] = front_v3(v[0], v[1], f->dim == 3 ? v[2] : 0);
    }
}

static void play(int scene, uint64_t seed, int steps)
{
    front_shape s = { 3, 0, 0, NULL, NULL };
    int up, k, kind = 0, crossings = 0, below = 0, changed = 0;
    fsi_front *f = set_up(scene, &s, &up, &seed);
    if (!f) return;
    for (k = 0; k < steps && f->piece_count > 0; k++) {
        uint64_t before;
        if (k % 5 == 0) kind = (int)topology_in(&seed, 0, 4.999);
        set_motion(f, kind, up, 0.3 * k, &seed);
        before = fsi_front_hash(f);
        if (!topology_step(f, 1, &tally)) changed += fsi_front_hash(f) != before;
        if (up) below += count_beyond(f, up);
        if (k % 4 == 3) crossings += count_crossings(f);
    }
    CHECK(crossings == 0 && changed == 0);
    CHECK(below == 0);
    fsi_front_destroy(f);
    front_free(&s);
}

/* The check itself: two balls in each other, and apart. */
static void test_the_check_sees_crossings(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 2; k++) {
            front_shape s = { 3, 0, 0, NULL, NULL };
            fsi_front_desc d;
            fsi_front *f;
            s.dim = dim;
            if (dim == 3) front_add_ball(&s, front_v3(0, 0, 0), front_v3(3, 3, 3), 4, 1);
            if (dim == 3) front_add_ball(&s, front_v3(k ? 5 : 7, 0.1, 0.2), front_v3(3, 3, 3), 4, 1);
            if (dim == 2) front_add_circle(&s, front_v3(0, 0, 0), 3, 20, 1);
            if (dim == 2) front_add_circle(&s, front_v3(k ? 5 : 7, 0.1, 0), 3, 20, 1);
            d = front_desc(&s, 1);
            d.crossings = 0;
            CHECK(fsi_front_create(&f, &d) == FSI_OK);
            CHECK((count_crossings(f) > 0) == k);
            fsi_front_destroy(f);
            front_free(&s);
        }
}

static void test_random_play_leaves_a_surface(void)
{
    int scene, run;
    for (run = 0; run < PLAY_RUNS; run++)
        for (scene = 0; scene < PLAY_SCENES; scene++)
            play(scene, (uint64_t)(1 + 10 * run + scene), TEST_WATCHED ? 6 : 18);
    CHECK(tally.open == 0);
    CHECK(tally.volume <= TOL(1e-12, 1e-4));
    CHECK(tally.amount <= TOL(1e-12, 1e-5));
    CHECK((TEST_WATCHED || tally.merges > 0) && tally.places > (TEST_WATCHED ? 1 : 10));
    CHECK(tally.refused * 20 <= tally.steps);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_the_check_sees_crossings);
    RUN(test_random_play_leaves_a_surface);
    return TEST_END();
}
