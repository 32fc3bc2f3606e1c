/* Speed of a Newton step of fsi_shell.h: a cloth hung at its four corners into which a ball is pressed, from 20 x 20
   to 220 x 220 vertices; each phase, steps of
   Newton a time step of 1/100 s, memory; single elements; a cloth of 20 x 20 in real time. One thread, CPU time.
   usage: bench_shell [n: only the cloth of n x n]. SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_shell.h"
#include "../tests/kit/test.h"
#include "bench.h"

enum { STEPS = 24 }; /* the ball arrives in the second */

static void must(fsi_context *c, fsi_status status)
{
    if (status == FSI_OK) return;
    puts(c->error.message);
    exit(1);
}

/* n x n vertices over 1 m x 1 m at height 1, diagonals alternating. */
static fsi_shell *cloth(fsi_context *c, int n)
{
    fsi_shell_material material = fsi_shell_preset(FSI_SHELL_COTTON);
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)(n * n) * sizeof *x);
    int *t = (int *)malloc(6 * (size_t)(n * n) * sizeof *t), i, j, k, count = 0;
    fsi_shell *s;
    if (!x || !t) exit(1);
    for (j = 0; j < n; j++)
        for (i = 0; i < n; i++)
            x[j * n + i] = fsi_v3((fsi_real)i / (fsi_real)(n - 1), (fsi_real)j / (fsi_real)(n - 1), 1);
    for (j = 0; j + 1 < n; j++) for (i = 0; i + 1 < n; i++) {
            const int a = j * n + i, cell[2][6] = {{a, a + 1, a + n, a + 1, a + n + 1, a + n},
                                                   {a, a + 1, a + n + 1, a, a + n + 1, a + n}};
            for (k = 0; k < 6; k++) t[count++] = cell[(i + j) & 1][k];
    }
    d.context = c;
    d.vertices = x;
    d.vertex_count = n * n;
    d.triangles = t;
    d.triangle_count = count / 3;
    d.materials = &material;
    d.material_count = 1;
    must(c, fsi_shell_create(&s, &d));
    free(x);
    free(t);
    s->pinned[0] = s->pinned[n - 1] = s->pinned[n * n - n] = s->pinned[n * n - 1] = 1;
    return s;
}

/* A ball of radius 0.2 m, 800 faces. */
static fsi_mesh *ball(fsi_context *c, fsi_vec3 center)
{
    enum { M = 20 };
    fsi_vec3 x[2 * M * (M - 1) + 2];
    int t[3 * 4 * M * (M - 1)], i, j, count = 0;
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh;
    for (j = 1; j < M; j++) for (i = 0; i < 2 * M; i++) {
        const double a = FSI_PI * j / M, b = FSI_PI * i / M;
        x[(j - 1) * 2 * M + i] = fsi_v3_madd(
            center, (fsi_real)0.2, fsi_v3((fsi_real)(sin(a) * cos(b)), (fsi_real)(sin(a) * sin(b)), (fsi_real)cos(a)));
    }
    x[2 * M * (M - 1)] = fsi_v3_madd(center, (fsi_real)0.2, fsi_v3(0, 0, 1));
    x[2 * M * (M - 1) + 1] = fsi_v3_madd(center, (fsi_real)0.2, fsi_v3(0, 0, -1));
    for (j = 0; j < M; j++) for (i = 0; i < 2 * M; i++) {
            const int next = (i + 1) % (2 * M), top = 2 * M * (M - 1), a = (j - 1) * 2 * M + i,
                      b = (j - 1) * 2 * M + next, e = j * 2 * M + i, f = j * 2 * M + next;
            const int face[2][3] = {{j == 0 ? top : a, e, f}, {a, j == M - 1 ? top + 1 : f, b}};
            int k;
            for (k = 0; k < 3 && j < M - 1; k++) t[count++] = face[0][k];
            for (k = 0; k < 3 && j > 0; k++) t[count++] = face[1][k];
    }
    d.context = c;
    d.vertices = x;
    d.vertex_count = 2 * M * (M - 1) + 2;
    d.elements = t;
    d.element_count = count / 3;
    must(c, fsi_mesh_create(&mesh, &d));
    return mesh;
}

/* The ball comes down at 1 m/s from just above the cloth. Medians are over time steps, per step of Newton. */
static void press(int n)
{
    fsi_context c = fsi_default_context();
    fsi_shell_obstacle_desc o = fsi_shell_default_obstacle_desc();
    fsi_body body = fsi_default_body();
    double phase[6][STEPS];
    int k, newton = 0, most = 0, rest = 0, analyses = 0;
    fsi_shell *s;
    fsi_mesh *mesh;
    c.now = cpu_seconds;
    s = cloth(&c, n);
    body.pose.position = body.end.position = fsi_v3((fsi_real)0.5, (fsi_real)0.5, (fsi_real)1.21);
    mesh = ball(&c, body.pose.position);
    o.mesh = mesh;
    o.body = &body;
    o.friction = (fsi_real)0.3;
    must(&c, fsi_shell_add_obstacle(s, &o, NULL));
    for (k = 0; k < STEPS; k++) {
        const double start = cpu_seconds(NULL);
        body.end.position.z = body.pose.position.z - (fsi_real)0.01;
        must(&c, fsi_shell_step(s, (fsi_real)0.01));
        body.pose = body.end;
        phase[0][k] = (cpu_seconds(NULL) - start) / s->stats.newton;
        phase[1][k] = s->stats.seconds_assembly / s->stats.newton;
        phase[2][k] = s->stats.seconds_solve / s->stats.newton;
        phase[3][k] = s->stats.seconds_contact / s->stats.newton;
        phase[4][k] = s->stats.seconds_search / s->stats.newton;
        phase[5][k] = s->stats.seconds_other / s->stats.newton;
        newton += s->stats.newton;
        analyses += s->stats.analyses;
        if (k >= 4) rest += s->stats.newton;
        if (s->stats.newton > most) most = s->stats.newton;
    }
    printf("%6d vertices: %.4f s a Newton step: elements and matrix %.4f, factor and solve %.4f, contacts and CCD "
           "%.4f, search %.4f, other %.4f; "
           "%.1f Newton steps a time step (%.1f after the impact, at most %d), %d analyses, %d candidates, %d "
           "contacts, %.0f MB\n",
           n * n, median(phase[0], STEPS), median(phase[1], STEPS), median(phase[2], STEPS), median(phase[3], STEPS),
           median(phase[4], STEPS), median(phase[5], STEPS), (double)newton / STEPS, (double)rest / (STEPS - 4), most,
           analyses, s->stats.candidates, s->stats.contacts, 1e-6 * (double)c.peak_bytes);
    fflush(stdout);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(mesh);
}

/* CPU seconds for a second of a 20 x 20 cloth swinging by two corners, at 1/60 s. */
static void real_time(void)
{
    fsi_context c = fsi_default_context();
    fsi_shell *s;
    double start, worst = 0, total;
    int k;
    s = cloth(&c, 20);
    s->pinned[0] = s->pinned[19] = 0;
    start = cpu_seconds(NULL);
    for (k = 0; k < 120; k++) {
        const double begin = cpu_seconds(NULL);
        must(&c, fsi_shell_step(s, (fsi_real)(1 / 60.0)));
        if (cpu_seconds(NULL) - begin > worst) worst = cpu_seconds(NULL) - begin;
    }
    total = cpu_seconds(NULL) - start;
    printf("20 x 20 cloth swinging for 2 s at 1/60 s, self-contact on: %.2f CPU s a second, longest step %.4f s\n",
           total / 2, worst);
    fsi_shell_destroy(s);
}

typedef struct kind {
    const char *name;
    double (*energy)(const double *x, double *g, double *h, int exact);
    int n;
} kind;

static fsi__shell_membrane membrane_rest;
static fsi__shell_plate plate_rest;
static fsi__shell_joint joint_rest;
static fsi__shell_frame frames[2];
static double membrane(const double *x, double *g, double *h, int exact)
{
    return fsi__shell_membrane_energy(&membrane_rest, x, g, h, exact, 0.1);
}
static double hinge(const double *x, double *g, double *h, int exact)
{
    return fsi__shell_hinge(1, 0, x, g, h, exact, 0.1);
}
static double plate(const double *x, double *g, double *h, int exact)
{
    return fsi__shell_plate_energy(&plate_rest, x, g, h, exact, 0.1);
}
static double joint(const double *x, double *g, double *h, int exact)
{
    return fsi__shell_joint_energy(&joint_rest, frames, 0, x, x + 9, g, h, exact);
}

static void elements(void)
{
    static const kind kinds[4] = {
        {"membrane", membrane, 9}, {"hinge", hinge, 12}, {"shape operator", plate, 18}, {"rod joint", joint, 11}};
    static const double rest[18] = {0, 0, 0, 1, 0, 0, 0.5, 0.9, 0, 1.5, 0.9, 0, -0.5, 0.9, 0, 0.5, -0.9, 0},
                        warp[3] = {1, 0, 0}, d[4] = {1, 1, 0.3, 0.35};
    enum { N = 100000 };
    double g[18], h[324], sink = 0;
    uint64_t seed = 1;
    int k, i, what;
    fsi__shell_membrane_rest(&membrane_rest, rest, warp, 1);
    membrane_rest.c11 = membrane_rest.c22 = 1;
    membrane_rest.c12 = 0.3;
    membrane_rest.c66 = 0.35;
    fsi__shell_plate_rest(&plate_rest, rest, 0, warp, d);
    frames[0] = fsi__shell_frame_make(rest, rest + 3, warp);
    frames[1] = fsi__shell_frame_make(rest + 3, rest + 6, warp);
    joint_rest.length = joint_rest.bend[0] = joint_rest.bend[1] = joint_rest.twist = 1;
    for (k = 0; k < 4; k++) {
        double ns[4];
        for (what = 0; what < 4; what++) {
            double x[18], start;
            for (i = 0; i < 18; i++) x[i] = rest[i] + 0.1 * test_random(&seed);
            start = cpu_seconds(NULL);
            for (i = 0; i < N; i++) {
                x[0] += 1e-7;
                sink += kinds[k].energy(x, what ? g : NULL, what > 1 ? h : NULL, what == 3);
            }
            ns[what] = (cpu_seconds(NULL) - start) / N * 1e9;
        }
        printf("%-14s value %4.0f ns, gradient %4.0f, projected Hessian %5.0f, exact %5.0f\n", kinds[k].name, ns[0],
               ns[1], ns[2], ns[3]);
    }
    if (sink < 0) puts("");
}

int main(int argc, char **argv)
{
    static const int sizes[] = { 32, 55, 110, 160, 220 };
    int i;
    if (argc > 1) {
        press(atoi(argv[1]));
        return 0;
    }
    elements();
    real_time();
    for (i = 0; i < 5; i++) press(sizes[i]);
    return 0;
}
