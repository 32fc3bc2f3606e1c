/* Liquid in a game: fsi_sph.h in frames of 1/60 s beside a paddle and three free bodies, and what a budget of sweeps
   saves and costs; then the same dam by each of the liquids. One thread, CPU time.
   usage: bench_game [seconds of the pool at rest, default 10] [seconds of play, default 10] [only this budget]
   SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_flip.h"
#include "../fsi_levelset.h"
#include "../fsi_sph.h"
#include "../fsi_wcsph.h"
#include <stdio.h>
#include <stdlib.h>
#include "bench.h"

#define FRAME (1.0 / 60)
#define LONG 1.6  /* of the tank [m] */
#define WIDE 0.8
#define HIGH 1.2
#define LEVEL 0.4 /* of the water at first */
#define SIDE 0.16 /* of a free cube */
#define CUBES 3
#define THICK 0.06 /* of the paddle, which hangs from MEAN on */
#define MEAN 0.2

/* A box with a body of its own. */
typedef struct solid {
    fsi_mesh *mesh;
    fsi_body body;
} solid;

typedef struct game {
    fsi_context context;
    fsi_sph *s;
    solid cube[CUBES], paddle;
    int dim, particles, moving; /* particles: at first; moving: with the paddle and the cubes */
} game;

static void must(const game *g, fsi_status status)
{
    if (status == FSI_OK) return;
    puts(g->context.error.message);
    exit(1);
}

/* The half sides are x, y, z; in 2D a rectangle in the plane of x and y. */
static fsi_mesh *make_box(const game *g, double x, double y, double z)
{
    static const int face[36] = { 0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6, 0, 1, 5, 0, 5, 4,
                                  2, 6, 7, 2, 7, 3, 0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5 };
    static const int edge[8] = { 1, 0, 3, 1, 2, 3, 0, 2 };
    const int plane = g->dim == 2;
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_vec3 corner[8];
    fsi_mesh *mesh;
    int k;
    for (k = 0; k < 8; k++)
        corner[k] = fsi_v3((fsi_real)(k & 1 ? x : -x), (fsi_real)(k & 2 ? y : -y),
            (fsi_real)(plane ? 0 : k & 4 ? z : -z));
    d.vertices = corner;
    d.vertex_count = plane ? 4 : 8;
    d.elements = plane ? edge : face;
    d.element_count = plane ? 4 : 12;
    d.corners = plane ? 2 : 3;
    must(g, fsi_mesh_create(&mesh, &d));
    return mesh;
}

/* The height is y in 2D, else z. */
static fsi_vec3 place(const game *g, double along, double across, double up)
{
    return g->dim == 2 ? fsi_v3((fsi_real)along, (fsi_real)up, 0)
                       : fsi_v3((fsi_real)along, (fsi_real)across, (fsi_real)up);
}
static double height(const game *g, fsi_vec3 x) { return (double)(g->dim == 2 ? x.y : x.z); }

static void add_solid(game *g, solid *b, fsi_vec3 at)
{
    fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
    int id;
    o.mesh = b->mesh;
    o.body = &b->body;
    must(g, fsi_sph_add_obstacle(g->s, &o, &id));
    b->body.pose.position = b->body.end.position = at;
    must(g, fsi_sph_teleport_obstacle(g->s, id));
}

static void begin(game *g, int dim, int particles, int budget, int moving)
{
    static const double density[CUBES] = { 300, 600, 900 };
    const double volume = LONG * LEVEL * (dim == 3 ? WIDE : 1);
    fsi_sph_desc d = fsi_sph_default_desc();
    fsi_mass_properties mass;
    fsi_box3 pool;
    int k;
    memset(g, 0, sizeof *g);
    g->dim = dim;
    g->moving = moving;
    g->context = fsi_default_context();
    d.context = &g->context;
    d.dim = dim;
    d.spacing = (fsi_real)pow(volume / particles, 1.0 / dim);
    d.depth = (fsi_real)LEVEL;
    d.budget = budget;
    d.gravity = place(g, 0, 0, -9.81);
    d.domain.lo = fsi_v3(0, 0, 0);
    d.domain.hi = place(g, LONG, WIDE, HIGH);
    must(g, fsi_sph_create(&g->s, &d));
    for (k = 0; k < CUBES && moving; k++) {
        g->cube[k].mesh = make_box(g, SIDE / 2, SIDE / 2, SIDE / 2);
        must(g, fsi_mesh_mass(g->cube[k].mesh, (fsi_real)density[k], 0, &mass));
        g->cube[k].body = fsi_body_from_mass(&mass);
        add_solid(g, &g->cube[k], place(g, LONG * (0.4 + 0.25 * k), WIDE / 2, LEVEL + 0.6 * SIDE));
    }
    if (moving) {
        g->paddle.mesh = make_box(g, THICK / 2, dim == 2 ? 0.25 : 0.3, 0.25);
        g->paddle.body = fsi_default_body();
        add_solid(g, &g->paddle, place(g, MEAN, WIDE / 2, 0.3));
    }
    pool.lo = fsi_v3(0, 0, 0);
    pool.hi = place(g, LONG, WIDE, LEVEL);
    must(g, fsi_sph_fill_box(g->s, pool, fsi_v3(0, 0, 0), NULL));
    g->particles = g->s->count;
}

static void end(game *g)
{
    int k;
    fsi_sph_destroy(g->s);
    for (k = 0; k < CUBES; k++) fsi_mesh_destroy(g->cube[k].mesh);
    fsi_mesh_destroy(g->paddle.mesh);
}

/* What a game's own physics does for a cube: gravity, and springs where a corner is out of the tank or behind the
   paddle. */
static void push_cube(const game *g, solid *b)
{
    const double mass = (double)b->body.mass, stiff = 4000 * mass, damp = 60 * mass;
    const fsi_vec3 hi = g->s->desc.domain.hi;
    fsi_vec3 force = place(g, 0, 0, -9.81 * mass), torque = fsi_v3(0, 0, 0);
    int v, a;
    for (v = 0; v < b->mesh->vertex_count; v++) {
        const fsi_vec3 x = fsi_pose_point(b->body.pose, b->mesh->vertices[v]);
        const fsi_vec3 u = fsi_rigid_velocity(b->body.velocity, b->body.angular_velocity, b->body.pose.position, x);
        const double at[3] = { (double)x.x, (double)x.y, (double)x.z };
        const double top[3] = { (double)hi.x, (double)hi.y, (double)hi.z };
        const double speed[3] = { (double)u.x, (double)u.y, (double)u.z };
        const double low[3] = { (double)g->paddle.body.pose.position.x + THICK / 2, 0, 0 };
        double f[3] = { 0, 0, 0 };
        fsi_vec3 push;
        for (a = 0; a < g->dim; a++) {
            if (at[a] < low[a]) f[a] = fmax(0, stiff * (low[a] - at[a]) - damp * speed[a]) / 4;
            if (at[a] > top[a]) f[a] = fmin(0, stiff * (top[a] - at[a]) - damp * speed[a]) / 4;
        }
        push = fsi_v3((fsi_real)f[0], (fsi_real)f[1], (fsi_real)f[2]);
        force = fsi_v3_add(force, push);
        torque = fsi_v3_add(torque, fsi_v3_cross(fsi_v3_sub(x, b->body.pose.position), push));
    }
    b->body.force = force;
    b->body.torque = torque;
}

/* One frame; returns its CPU time [s]. The paddle swings at 0.5 Hz by 0.1 m, and is `along` further. */
static double frame(game *g, double along)
{
    const double start = bench_seconds(NULL), swing = 0.1 * sin(FSI_PI * (g->s->time + FRAME));
    int k;
    if (g->moving) {
        g->paddle.body.end = g->paddle.body.pose;
        g->paddle.body.end.position = place(g, MEAN + along + swing, WIDE / 2, 0.3);
        for (k = 0; k < CUBES; k++) push_cube(g, &g->cube[k]);
    }
    must(g, fsi_sph_step(g->s, (fsi_real)FRAME));
    if (g->moving) {
        for (k = 0; k < CUBES; k++) fsi_body_integrate(&g->cube[k].body, (fsi_real)FRAME);
        g->paddle.body.pose = g->paddle.body.end;
    }
    return bench_seconds(NULL) - start;
}

/* Milliseconds a frame of 2.5 seconds with everything that moves. */
static void bench_frames(int dim, int particles, int budget)
{
    enum { FRAMES = 150 };
    double ms[FRAMES], sweeps = 0, compression = 0, fastest = 0, middle;
    int k, inside = 0, degraded = 0;
    game g;
    begin(&g, dim, particles, budget, 1);
    for (k = 0; k < FRAMES; k++) {
        ms[k] = 1e3 * frame(&g, 0);
        sweeps += g.s->stats.iterations;
        compression += g.s->stats.mean_compression;
        fastest = fmax(fastest, g.s->stats.max_speed);
        degraded += g.s->stats.degraded;
        inside += fsi_sph_count_inside(g.s, NULL);
    }
    middle = median(ms, FRAMES);
    printf("frames_%dd_%d_budget_%d %.2f ms  (p99 %.2f ms, %d particles, %.1f sweeps, mean compression %.4f, "
        "fastest %.1f m/s, %d of %d frames degraded, %d inside)\n", dim, particles, budget, middle,
        ms[FRAMES * 99 / 100], g.particles, sweeps / FRAMES, compression / FRAMES, fastest, degraded, FRAMES, inside);
    end(&g);
}

/* A pool that rests: its height, from the mean height of its particles, and its kinetic energy over rho g H V. */
static void bench_rest(int dim, int particles, int budget, double seconds)
{
    double before = 0, after = 0, energy = 0, mass;
    int i;
    game g;
    begin(&g, dim, particles, budget, 0);
    for (i = 0; i < g.s->count; i++) before += height(&g, g.s->position[i]) / g.s->count;
    while (g.s->time < seconds - 1e-9) {
        frame(&g, 0);
        if (g.s->time > seconds - 1) energy = fmax(energy, g.s->stats.kinetic_energy);
    }
    for (i = 0; i < g.s->count; i++) after += height(&g, g.s->position[i]) / g.s->count;
    mass = 1000 * (double)g.s->particle_volume * g.s->count;
    printf("rest_%dd_%d_budget_%d %.2f percent_of_height  (after %.0f s, kinetic energy of the last second at most "
        "%.1e of rho g H V)\n", dim, particles, budget, 100 * (after / before - 1), seconds,
        energy / (mass * 9.81 * LEVEL));
    end(&g);
}

/* Random play: cubes are kicked, and the paddle jumps by up to 5 cm a frame. */
static void bench_play(int dim, int particles, int budget, double seconds)
{
    double along = 0, fastest = 0;
    int inside = 0, lost, k;
    game g;
    begin(&g, dim, particles, budget, 1);
    srand(7);
    while (g.s->time < seconds - 1e-9) {
        along = fmax(-0.02, fmin(0.3, along + 0.1 * ((double)rand() / RAND_MAX - 0.5)));
        for (k = 0; k < CUBES; k++)
            if (rand() % 60 == 0)
                g.cube[k].body.velocity = place(&g, 4.0 * rand() / RAND_MAX - 2, 4.0 * rand() / RAND_MAX - 2,
                    4.0 * rand() / RAND_MAX);
        frame(&g, along);
        fastest = fmax(fastest, g.s->stats.max_speed);
        inside += fsi_sph_count_inside(g.s, NULL);
    }
    lost = g.particles - g.s->count;
    printf("play_%dd_%d_budget_%d %d inside_or_lost  (%.0f s, fastest %.1f m/s)\n", dim, particles, budget,
        inside + lost, seconds, fastest);
    end(&g);
}

/* A second of a dam of half the tank's length, 0.6 m high: a frame, 1000 of its particles or cells, a saved state. */
enum { DAM_FRAMES = 60 };
static void tell_dam(const char *name, double *ms, int count, size_t saved)
{
    const double middle = median(ms, DAM_FRAMES);
    printf("dam_%s %.2f ms  (p99 %.2f ms, %d particles or liquid cells, %.3f ms a 1000, %.1f kB saved)\n", name, middle,
        ms[DAM_FRAMES * 99 / 100], count, 1e3 * middle / count, 1e-3 * (double)saved);
}

#define BENCH_DAM(NAME, DESC, COUNT) \
    static void bench_dam_##NAME(game *g, fsi_box3 dam) \
    { \
        fsi_##NAME##_desc d = fsi_##NAME##_default_desc(); \
        fsi_##NAME *s; \
        double ms[DAM_FRAMES]; \
        size_t size = 0; \
        int k; \
        d.context = &g->context; \
        DESC; \
        must(g, fsi_##NAME##_create(&s, &d)); \
        must(g, fsi_##NAME##_fill_box(s, dam, fsi_v3(0, 0, 0), NULL)); \
        for (k = 0; k < DAM_FRAMES; k++) { \
            const double start = bench_seconds(NULL); \
            must(g, fsi_##NAME##_step(s, (fsi_real)FRAME)); \
            ms[k] = 1e3 * (bench_seconds(NULL) - start); \
        } \
        (void)fsi_##NAME##_save(s, NULL, 0, &size); \
        tell_dam(#NAME, ms, COUNT, size); \
        fsi_##NAME##_destroy(s); \
    }
#define PARTICLES d.spacing = (fsi_real)0.04; d.depth = (fsi_real)0.6; d.domain.lo = fsi_v3(0, 0, 0); \
    d.domain.hi = place(g, LONG, WIDE, HIGH)
#define CELLS d.dx = (fsi_real)0.05; d.n[0] = 32; d.n[1] = 16; d.n[2] = 24
BENCH_DAM(sph, PARTICLES, s->count)
BENCH_DAM(wcsph, PARTICLES, s->count)
BENCH_DAM(flip, CELLS, s->count)
BENCH_DAM(levelset, CELLS, (int)(s->stats.volume / pow((double)d.dx, 3) + 0.5))

static void bench_dams(void)
{
    game g;
    fsi_box3 dam;
    memset(&g, 0, sizeof g);
    g.dim = 3;
    g.context = fsi_default_context();
    dam.lo = fsi_v3(0, 0, 0);
    dam.hi = place(&g, LONG / 2, WIDE, 0.6);
    bench_dam_sph(&g, dam);
    bench_dam_wcsph(&g, dam);
    bench_dam_flip(&g, dam);
    bench_dam_levelset(&g, dam);
}

static void bench_budget(int budget, double rest, double play)
{
    static const int particles[3] = { 2000, 5000, 10000 };
    int k;
    for (k = 0; k < 3; k++) bench_frames(3, particles[k], budget);
    bench_frames(2, 5000, budget);
    bench_rest(3, 5000, budget, rest);
    bench_rest(2, 5000, budget, rest);
    bench_play(3, 5000, budget, play);
    bench_play(2, 5000, budget, play);
}

int main(int argc, char **argv)
{
    static const int budget[3] = { 0, 32, 16 };
    const double rest = argc > 1 ? atof(argv[1]) : 10, play = argc > 2 ? atof(argv[2]) : 10;
    int b;
    puts(fsi_build_info());
    if (argc > 3) {
        bench_budget(atoi(argv[3]), rest, play);
        return 0;
    }
    bench_dams();
    for (b = 0; b < 3; b++) bench_budget(budget[b], rest, play);
    return 0;
}
