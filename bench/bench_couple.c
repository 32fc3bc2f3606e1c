/* Speed of a substep of fsi_couple.h: the drop of examples/drop_on_cloth.c on a cloth that is held at its corners,
   from just above it until it is deepest in it;
   then how time and memory grow with cells and vertices together, and with vertices alone. One thread, CPU time.
   usage: bench_couple [res [seconds [fine]]]: only the drop at this res; the cloth's edges are shorter by `fine`.
   SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_couple.h"
#include "bench.h"

#define BOX 0.08      /* width and height of the air around it [m] */
#define CLOTH 0.045   /* width of the cloth */
#define HEIGHT 0.03   /* of its corners */
#define RADIUS 0.0105 /* of the drop */
#define DEEPEST 0.075 /* seconds after which the contact is deepest */
#define PAPER 5.95    /* seconds a substep at res 192 with 12,000 vertices, as printed */

enum { MOST = 2000, FIGURES = 6 };
typedef enum figure { NEWTON_SECONDS, PRESSURE_SECONDS, SECONDS, NEWTON, CONTACTS, FACES } figure;

/* Of each step: per substep, but for contacts and faces, which are those at its end. */
typedef struct record { double figure[FIGURES][MOST]; int steps, substeps, vertices; double megabytes; } record;

static void must(fsi_context *c, fsi_status status)
{
    if (status == FSI_OK) return;
    puts(c->error.message);
    exit(1);
}

/* n x n squares, each cut along the same diagonal. */
static fsi_shell *make_cloth(fsi_context *c, int n)
{
    const int side = n + 1;
    fsi_shell_material material = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)(side * side) * sizeof *x);
    int *t = (int *)malloc(6 * (size_t)(n * n) * sizeof *t), i, j, k, count = 0;
    fsi_shell *s;
    if (!x || !t) exit(1);
    for (j = 0; j < side; j++) for (i = 0; i < side; i++)
            x[j * side + i] = fsi_v3((fsi_real)((BOX - CLOTH) / 2 + CLOTH * i / n),
                                     (fsi_real)((BOX - CLOTH) / 2 + CLOTH * j / n), (fsi_real)HEIGHT);
    for (j = 0; j < n; j++) for (i = 0; i < n; i++) {
        const int a = j * side + i, square[6] = { a, a + 1, a + side + 1, a, a + side + 1, a + side };
        for (k = 0; k < 6; k++) t[count++] = square[k];
    }
    material.density = 1000;
    material.thickness = (fsi_real)0.0002;
    material.young = (fsi_real)1e5;
    d.context = c;
    d.vertices = x;
    d.vertex_count = side * side;
    d.triangles = t;
    d.triangle_count = count / 3;
    d.materials = &material;
    d.material_count = 1;
    must(c, fsi_shell_create(&s, &d));
    for (k = 0; k < 4; k++) s->pinned[(k & 1 ? n : 0) + (k & 2 ? n * side : 0)] = 1;
    free(x);
    free(t);
    return s;
}

static fsi_levelset *make_drop(fsi_context *c, int res)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_levelset *s;
    d.context = c;
    d.n[0] = d.n[1] = d.n[2] = res;
    d.dx = (fsi_real)(BOX / res);
    d.surface_tension = (fsi_real)0.02;
    must(c, fsi_levelset_create(&s, &d));
    must(c, fsi_levelset_fill_sphere(
                s, fsi_v3((fsi_real)(BOX / 2), (fsi_real)(BOX / 2), (fsi_real)(HEIGHT + 1.4 * RADIUS)),
                (fsi_real)RADIUS, fsi_v3(0, 0, (fsi_real)-0.5), NULL));
    return s;
}

static void note(record *r, const fsi_couple_stats *s)
{
    const double share = 1.0 / s->substeps;
    if (r->steps == MOST) exit(1);
    r->figure[NEWTON_SECONDS][r->steps] = share * s->seconds_newton;
    r->figure[PRESSURE_SECONDS][r->steps] = share * s->seconds_pressure;
    r->figure[SECONDS][r->steps] = share * s->seconds;
    r->figure[NEWTON][r->steps] = share * s->newton;
    r->figure[CONTACTS][r->steps] = s->contacts;
    r->figure[FACES][r->steps++] = s->faces;
    r->substeps += s->substeps;
}

/* Cloth of n x n squares; steps as long as the liquid suggests. */
static void drop(record *r, int res, int n, double seconds)
{
    fsi_context c = fsi_default_context();
    fsi_couple_desc d = fsi_couple_default_desc();
    fsi_couple *s;
    c.now = cpu_seconds;
    memset(r, 0, sizeof *r);
    d.shell = make_cloth(&c, n);
    d.liquid = make_drop(&c, res);
    must(&c, fsi_couple_create(&s, &d));
    while (s->time < seconds) {
        must(&c, fsi_couple_step(s, (fsi_real)fmin((double)fsi_levelset_suggest_dt(d.liquid), 0.01)));
        note(r, &s->stats);
    }
    r->vertices = d.shell->vertex_count;
    r->megabytes = 1e-6 * (double)c.peak_bytes;
    fsi_couple_destroy(s);
    fsi_shell_destroy(d.shell);
    fsi_levelset_destroy(d.liquid);
}

static double mean(const record *r, figure f)
{
    double sum = 0;
    int k;
    for (k = 0; k < r->steps; k++) sum += r->figure[f][k];
    return sum / r->steps;
}

/* Median over the steps that end with at least half of the most contacts. */
static double deep(const record *r, figure f)
{
    static double value[MOST];
    double most = 0;
    int k, count = 0;
    for (k = 0; k < r->steps; k++) most = fmax(most, r->figure[CONTACTS][k]);
    for (k = 0; k < r->steps; k++) if (2 * r->figure[CONTACTS][k] >= most) value[count++] = r->figure[f][k];
    return median(value, count);
}

/* Logarithm of how much more it is than in the run before, deep in contact. */
static double growth(const record *r, figure f) { return log(deep(r, f) / deep(r - 1, f)); }

static void say(const record *r, int res)
{
    printf("res %3d, %6d vertices, %4d substeps: mean t_N %.4f s, t_P %.4f, t %.4f, %.1f Newton steps; deep in contact "
           "t_N %.4f s, t_P %.4f, t %.4f, %.1f Newton steps, %.0f contacts, %.0f faces; %.0f MB\n",
           res, r->vertices, r->substeps, mean(r, NEWTON_SECONDS), mean(r, PRESSURE_SECONDS), mean(r, SECONDS),
           mean(r, NEWTON), deep(r, NEWTON_SECONDS), deep(r, PRESSURE_SECONDS), deep(r, SECONDS), deep(r, NEWTON),
           deep(r, CONTACTS), deep(r, FACES), r->megabytes);
    fflush(stdout);
}

/* Along a side of the cloth; fine 1 is the paper's share of vertices, 110 x 110 at res 192. */
static int squares(int res, double fine) { return (int)(fine * res * 109 / 192.0 + 0.5); }

static void grow(void)
{
    static const int res[4] = { 48, 64, 96, 128 };
    static record r[4];
    int k;
    puts("cells and vertices together:");
    for (k = 0; k < 4; k++) {
        drop(&r[k], res[k], squares(res[k], 1), DEEPEST);
        say(&r[k], res[k]);
        if (k > 0) {
            const double step = log((double)res[k] / res[k - 1]);
            printf("   from res %d: t ~ res^%.2f, t_N ~ res^%.2f, t_P ~ res^%.2f, memory ~ res^%.2f\n", res[k - 1],
                   growth(r + k, SECONDS) / step, growth(r + k, NEWTON_SECONDS) / step,
                   growth(r + k, PRESSURE_SECONDS) / step, log(r[k].megabytes / r[k - 1].megabytes) / step);
        }
    }
}

/* Twice and four times as many vertices. */
static void refine_cloth(void)
{
    static const double fine[3] = { 1, 1.414, 2 };
    static record r[3];
    int k;
    puts("vertices alone:");
    for (k = 0; k < 3; k++) {
        drop(&r[k], 64, squares(64, fine[k]), DEEPEST);
        say(&r[k], 64);
        if (k > 0) {
            const double step = log((double)r[k].vertices / r[k - 1].vertices);
            printf("   from %d vertices: t ~ vertices^%.2f, t_N ~ vertices^%.2f, t_P ~ vertices^%.2f, memory ~ "
                   "vertices^%.2f\n",
                   r[k - 1].vertices, growth(r + k, SECONDS) / step, growth(r + k, NEWTON_SECONDS) / step,
                   growth(r + k, PRESSURE_SECONDS) / step, log(r[k].megabytes / r[k - 1].megabytes) / step);
        }
    }
}

int main(int argc, char **argv)
{
    static record r;
    const int res = argc > 1 ? atoi(argv[1]) : 96;
    const double seconds = argc > 2 ? atof(argv[2]) : DEEPEST, fine = argc > 3 ? atof(argv[3]) : 1;
    if (res < 16 || res > 512 || !(seconds > 0) || !(fine >= 0.1 && fine <= 10)) {
        puts("usage: bench_couple [res [seconds [fine]]], res 16 to 512, fine 0.1 to 10");
        return 1;
    }
    if (argc > 1) {
        drop(&r, res, squares(res, fine), seconds);
        say(&r, res);
        printf("the paper, res 192, 12,000 vertices: t %g s a substep\n", PAPER);
        return 0;
    }
    grow();
    refine_cloth();
    return 0;
}
