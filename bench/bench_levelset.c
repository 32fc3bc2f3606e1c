/* Speed of a substep of fsi_levelset.h: a ball that falls into a pool, a solid ball in a pool, a drop in boxes of
   different sizes; each phase beside what memory would need
   to stream, once each, the fields that it reads and writes in the blocks that exist. One thread: CPU time; two: of the
   wall.
   usage: bench_levelset [n: only the ball, in n^3] [and any word: only the solid ball]. SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_levelset.h"
#include "../tests/kit/test.h"
#include "bench.h"

enum { WARM = 4, STEPS = 9, PHASES = 8 };
static const char *const phase_name[PHASES] = {"all",      "advection",     "distance",  "volume",
                                               "pressure", "extrapolation", "viscosity", "other"};
static double stream; /* bytes a second */
static double tasks;  /* CPU seconds in what several threads could share */

static double wall_seconds(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void one_thread(void *user, int count, void (*task)(void *arg, int index), void *arg)
{
    const double start = cpu_seconds(user);
    int k;
    for (k = 0; k < count; k++) task(arg, k);
    tasks += cpu_seconds(user) - start;
}

static void must(const fsi_levelset *s, fsi_status status)
{
    if (status == FSI_OK) return;
    puts(s ? fsi_levelset_error(s)->message : "no liquid");
    exit(1);
}

static long long liquid_cells(const fsi_levelset *s)
{
    const size_t count = (size_t)s->grid->block_count * (size_t)s->grid->block_cells;
    long long n = 0;
    size_t e;
    for (e = 0; e < count; e++) n += s->phi->value[e] < 0;
    return n;
}

/* Bytes that the phases of a substep must move, each number that they read or write once. */
static void count_bytes(const fsi_levelset *s, double *bytes)
{
    const double w = sizeof(fsi_real), entries = (double)s->grid->block_count * s->grid->block_cells,
                 liquid = (double)liquid_cells(s);
    const double iteration = (4 * 16 + 12 + 16) * 8.0 / 7 + 13 * 8; /* of the pressure solver, see bench_pressure.c */
    int k;
    bytes[1] = 8 * w * entries;                                      /* phi and u, from and to */
    bytes[2] = 2 * w * entries;
    bytes[3] = (2 * w + 2 * sizeof(int)) * entries;                  /* phi and labels, before and after */
    bytes[4] = (iteration * s->stats.pressure_iterations + 2 * 8 * w) * liquid; /* u, phi, pressure: twice */
    bytes[5] = 2 * 3 * (2 * w + 1) * entries;                        /* u and which are known, twice */
    bytes[6] = 0;
    /* the copy that a failure leaves alone; momentum of components */
    bytes[7] = (2 * (5 * w + sizeof(int)) + 4 * w + sizeof(int)) * entries;
    for (k = 1, bytes[0] = 0; k < PHASES; k++) bytes[0] += bytes[k];
}

/* A PRESCRIBED body goes on as it did; a COUPLED one has its weight, and is put where the liquid left it. */
static void move(fsi_body *body, double dt)
{
    body->pose = body->end;
    if (body->mode == FSI_BODY_COUPLED) {
        body->velocity = body->new_velocity;
        body->angular_velocity = body->new_angular_velocity;
    } else body->end.position = fsi_v3_madd(body->pose.position, (fsi_real)dt, body->velocity);
}

/* Substeps of s, with a body or NULL; returns CPU seconds of one, or with threads, seconds. */
static double run(fsi_levelset *s, const char *name, int threads, fsi_body *body)
{
    double seconds[PHASES][STEPS], middle[PHASES], bytes[PHASES];
    double share = 0, all = 0;
    int k, t, iterations = 0;
    for (t = 0; t < WARM + STEPS; t++) {
        const fsi_levelset_stats *q = &s->stats;
        const fsi_real dt = (fsi_real)0.999 * fsi_levelset_suggest_dt(s);
        const double start = s->context->now(NULL);
        tasks = 0;
        if (body) move(body, (double)dt);
        must(s, fsi_levelset_step(s, dt));
        if (q->substeps != 1) printf("(%d substeps)\n", q->substeps);
        if (t < WARM) continue;
        seconds[0][t - WARM] = s->context->now(NULL) - start;
        share += tasks;
        all += seconds[0][t - WARM];
        seconds[1][t - WARM] = q->seconds_advection;
        seconds[2][t - WARM] = q->seconds_distance;
        seconds[3][t - WARM] = q->seconds_volume;
        seconds[4][t - WARM] = q->seconds_pressure;
        seconds[5][t - WARM] = q->seconds_extrapolation;
        seconds[6][t - WARM] = q->seconds_viscosity;
        seconds[7][t - WARM] = q->seconds_other;
        iterations += q->pressure_iterations;
    }
    count_bytes(s, bytes);
    for (k = 0; k < PHASES; k++) middle[k] = median(seconds[k], STEPS);
    printf("%-14s %3d^3, %d thread%s: %7.1f ms a substep, %.2f us a liquid cell; %.1f iterations, %lld cells, %d "
           "blocks, %.1f MB, hash %016llx\n",
           name, s->grid->n[0], threads, threads > 1 ? "s" : "", 1e3 * middle[0],
           1e6 * middle[0] / (double)liquid_cells(s), (double)iterations / STEPS, liquid_cells(s), s->stats.blocks,
           1e-6 * (double)s->stats.bytes, (unsigned long long)fsi_levelset_hash(s));
    if (threads == 1) printf("    %.0f %% of it in tasks\n", 100 * share / all);
    for (k = 1; k < PHASES; k++)
        if (bytes[k] > 0 || middle[k] > 1e-4)
            printf("    %-14s %7.1f ms, floor %5.1f ms (x %.0f)\n", phase_name[k], 1e3 * middle[k],
                   1e3 * bytes[k] / stream, middle[k] * stream / (bytes[k] + 1e-300));
    fflush(stdout);
    return middle[0];
}

static fsi_levelset *make(fsi_context *c, int n, double dx, double tension, int threads)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_levelset *s = NULL;
    *c = fsi_default_context();
    c->now = threads > 1 ? wall_seconds : bench_seconds;
    c->parallel_for = one_thread;
    if (threads > 1) test_threads(c, threads, 0);
    d.context = c;
    d.n[0] = d.n[1] = d.n[2] = n;
    d.dx = (fsi_real)dx;
    d.gravity = fsi_v3(0, (fsi_real)-9.81, 0);
    d.surface_tension = (fsi_real)tension;
    must(s, fsi_levelset_create(&s, &d));
    return s;
}

static fsi_vec3 point(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }

/* In a unit box. */
static void ball_and_pool(const char *name, int n, double tension, int threads)
{
    fsi_context c;
    fsi_levelset *s = make(&c, n, 1.0 / n, tension, threads);
    fsi_box3 pool;
    pool.lo = fsi_v3(0, 0, 0);
    pool.hi = point(1, 0.25, 1);
    must(s, fsi_levelset_fill_box(s, pool, fsi_v3(0, 0, 0), NULL));
    must(s, fsi_levelset_fill_sphere(s, point(0.5, 0.6, 0.5), (fsi_real)0.35, fsi_v3(0, -1, 0), NULL));
    run(s, name, threads, NULL);
    fsi_levelset_destroy(s);
}

/* Of 120 faces. */
static fsi_mesh *make_ball(fsi_vec3 at, double radius)
{
    enum { ROUND = 12, DOWN = 6, POLE = ROUND * (DOWN - 1) };
    const double pi = 3.14159265358979323846;
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh = NULL;
    fsi_vec3 v[POLE + 2];
    int e[6 * POLE], i, j, n = 0;
    for (j = 0; j <= DOWN; j++)
        for (i = 0; i < ROUND; i++) {
            const int k = (i + 1) % ROUND, here = (j - 1) * ROUND, above = j == 1 ? POLE : here - ROUND + i,
                      below = j == DOWN - 1 ? POLE + 1 : here + ROUND + k;
            const double out = radius * sin(pi * j / DOWN), turn = 2 * pi * i / ROUND;
            const fsi_vec3 x = fsi_v3_add(at, point(out * cos(turn), out * sin(turn), radius * cos(pi * j / DOWN)));
            v[j == 0 ? POLE : j == DOWN ? POLE + 1 : here + i] = x;
            if (j == 0 || j == DOWN) continue;
            e[n++] = above, e[n++] = here + i, e[n++] = here + k;
            e[n++] = here + i, e[n++] = below, e[n++] = here + k;
        }
    d.vertices = v;
    d.vertex_count = POLE + 2;
    d.elements = e;
    d.element_count = n / 3;
    if (fsi_mesh_create(&mesh, &d) != FSI_OK) exit(1);
    return mesh;
}

enum { NO_BALL, RESTS, PRESCRIBED, COUPLED };

/* A drop falls into a pool in a unit box beside a solid ball, half as heavy as the liquid, or without it. */
static double solid_ball(const char *name, int n, int kind, int threads)
{
    fsi_context c;
    fsi_levelset *s = make(&c, n, 1.0 / n, 0, threads);
    fsi_levelset_obstacle_desc o = fsi_levelset_default_obstacle_desc();
    fsi_body body = fsi_default_body();
    const fsi_vec3 at = point(0.37, 0.27, 0.52);
    fsi_mesh *mesh = make_ball(at, 0.15);
    const double mass = 500 * 4.19 * 0.15 * 0.15 * 0.15;
    fsi_box3 pool;
    double time;
    int id;
    pool.lo = point(0, 0, 0);
    pool.hi = point(1, 0.5, 1);
    body.pose.position = body.end.position = at;
    if (kind == COUPLED) {
        body.mode = FSI_BODY_COUPLED;
        body.mass = (fsi_real)mass;
        body.inertia =
            fsi_m3_diagonal(point(0.4 * mass * 0.15 * 0.15, 0.4 * mass * 0.15 * 0.15, 0.4 * mass * 0.15 * 0.15));
        body.force = point(0, -9.81 * mass, 0);
    } else body.velocity = point(0.5, 0.1, 0);
    o.mesh = mesh;
    if (kind >= PRESCRIBED) o.body = &body;
    must(s, fsi_levelset_fill_box(s, pool, fsi_v3(0, 0, 0), NULL));
    must(s, fsi_levelset_fill_sphere(s, point(0.7, 0.75, 0.5), (fsi_real)0.15, fsi_v3(0, -1, 0), NULL));
    if (kind != NO_BALL) must(s, fsi_levelset_add_obstacle(s, &o, &id));
    time = run(s, name, threads, kind >= PRESCRIBED ? &body : NULL);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(mesh);
    return time;
}

/* What a solid adds. */
static void solid_balls(int n, int threads)
{
    const double none = solid_ball("no solid", n, NO_BALL, threads), rests = solid_ball("it rests", n, RESTS, threads);
    const double moves = solid_ball("PRESCRIBED", n, PRESCRIBED, threads),
                 carried = solid_ball("COUPLED", n, COUPLED, threads);
    printf("a substep with a ball that rests, moves, is carried takes %.2f, %.2f, %.2f times as long as without\n",
           rests / none, moves / none, carried / none);
}

/* About 100000 cells of liquid, which turn and fall in the middle of a box of n^3 cells of 1/64 m. */
static double drop(int n)
{
    fsi_context c;
    fsi_levelset *s = make(&c, n, 1.0 / 64, 0.0728, 1);
    const double middle = n / 128.0;
    double time;
    must(s, fsi_levelset_fill_sphere(s, point(middle, middle + 0.02, middle), (fsi_real)(28.8 / 64), point(0, 0.5, 0),
                                     NULL));
    time = run(s, "drop", 1, NULL);
    fsi_levelset_destroy(s);
    return time;
}

int main(int argc, char **argv)
{
    double small;
    stream = stream_rate();
    printf("memory: %.1f GB/s\n", 1e-9 * stream);
    if (argc > 1) {
        if (argc > 2) solid_balls(atoi(argv[1]), 1);
        else ball_and_pool("ball, pool", atoi(argv[1]), 0, 1);
        return 0;
    }
    ball_and_pool("ball, pool", 64, 0, 1);
    ball_and_pool("and tension", 64, 0.0728, 1);
    ball_and_pool("ball, pool", 64, 0, 2);
    ball_and_pool("ball, pool", 128, 0, 1);
    ball_and_pool("and tension", 128, 0.0728, 1);
    ball_and_pool("ball, pool", 128, 0, 2);
    solid_balls(64, 1);
    solid_balls(64, 2);
    solid_balls(128, 1);
    small = drop(64);
    printf("a box of 256^3 takes %.2f times as long as one of 64^3\n", drop(256) / small);
    return 0;
}
