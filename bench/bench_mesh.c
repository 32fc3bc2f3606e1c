/* bench_mesh.c - what meshes cost: building, moving, asking. Prints `name value unit` lines; CPU time of one thread.
   SPDX-License-Identifier: MIT
   cc -O3 bench/bench_mesh.c -lm -o bench_mesh && ./bench_mesh [faces, default 200000] */
#define FSI_IMPLEMENTATION
#include "../fsi_mesh.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t seed = 1;
static double uniform(double lo, double hi)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (hi - lo) * (double)(seed >> 11) / 9007199254740992.0;
}
static fsi_vec3 v3(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }
static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }
static void line(const char *name, double value, const char *unit) { printf("%-28s %12.4g %s\n", name, value, unit); }

/* A point at most `off` away from the surface of the torus R = 1, r = 1/2, in slice `part` (0 .. 1) around it: queries
   come in an order in which each is close to the one before, as those of sorted particles do. */
static fsi_vec3 at_surface(double part, double off)
{
    double s = 2 * FSI_PI * floor(part * 400) / 400 + uniform(0, 2 * FSI_PI / 400),
           t = 2 * FSI_PI * fmod(400 * part, 1), r = 0.5 + uniform(-off, off), w = 1 + r * cos(t);
    return v3(w * cos(s), w * sin(s), r * sin(t));
}

int main(int argc, char **argv)
{
    int faces = argc > 1 ? atoi(argv[1]) : 200000, nu = (int)sqrt(faces * 1.25), nv = faces / 2 / nu, i, j, k,
        n = 200000, found[64];
    fsi_context context = fsi_default_context();
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *m;
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)(nu * nv) * sizeof *x), *p = (fsi_vec3 *)malloc((size_t)n * sizeof *p);
    int *e = (int *)malloc((size_t)(6 * nu * nv) * sizeof *e), *c = e;
    double t, sum = 0, edge = 2 * FSI_PI / nu;
    long long hits = 0;
    if (!x || !e || !p) return 1;
    for (i = 0; i < nu; i++) for (j = 0; j < nv; j++) {
        double s = 2 * FSI_PI * i / nu, r = 2 * FSI_PI * j / nv, w = 1 + 0.5 * cos(r);
        int in = (i + 1) % nu, jn = (j + 1) % nv;
        x[i * nv + j] = v3(w * cos(s), w * sin(s), 0.5 * sin(r));
        *c++ = i * nv + j, *c++ = in * nv + jn, *c++ = i * nv + jn;
        *c++ = i * nv + j, *c++ = in * nv + j, *c++ = in * nv + jn;
    }
    d.context = &context;
    d.vertices = x;
    d.vertex_count = nu * nv;
    d.elements = e;
    d.element_count = 2 * nu * nv;
    t = seconds();
    if (fsi_mesh_create(&m, &d) != FSI_OK) { printf("%s\n", context.error.message); return 1; }
    t = seconds() - t;
    line("mesh_faces", m->face_count, "");
    line("mesh_create", 1e3 * t, "ms");
    line("mesh_create_per_face", 1e9 * t / m->face_count, "ns");
    line("mesh_bytes_per_face", (double)context.bytes / m->face_count, "B");
    line("mesh_create_peak_per_face", (double)context.peak_bytes / m->face_count, "B");
    for (k = 0, t = seconds(); k < 10; k++) fsi__mesh_refit((fsi__mesh *)m->impl);
    line("mesh_refit_still_per_face", 1e8 * (seconds() - t) / m->face_count, "ns");
    for (k = 0, t = seconds(); k < 10; k++) fsi_mesh_move_rigid(m, v3(0, 0, 0.01 * (k % 2)), fsi_quat_identity());
    line("mesh_move_rigid_per_face", 1e8 * (seconds() - t) / m->face_count, "ns");
    for (k = 0, t = seconds(); k < 10; k++) fsi__mesh_refit((fsi__mesh *)m->impl);
    line("mesh_refit_moving_per_face", 1e8 * (seconds() - t) / m->face_count, "ns");
    fsi_mesh_set(m, x, nu * nv);
    for (i = 0; i < n; i++) p[i] = at_surface((double)i / n, 0.05);
    for (i = 0, t = seconds(); i < n; i++) sum += (double)fsi_mesh_closest(m, p[i], FSI_REAL_MAX, -1).t;
    line("mesh_closest", 1e9 * (seconds() - t) / n, "ns");
    for (i = 0; i < n; i++) p[i] = v3(uniform(-2, 2), uniform(-2, 2), uniform(-1, 1));
    for (i = 0, t = seconds(); i < n; i++) sum += (double)fsi_mesh_closest(m, p[i], FSI_REAL_MAX, -1).t;
    line("mesh_closest_far", 1e9 * (seconds() - t) / n, "ns");
    for (i = 0; i < n; i++) p[i] = at_surface((double)i / n, edge);
    for (i = 0, t = seconds(); i < n; i++) hits += fsi_mesh_query_box(m,
        fsi_box3_inflate(fsi_box3_grow(fsi_box3_empty(), p[i]), (fsi_real)edge), found, 64);
    line("mesh_box", 1e9 * (seconds() - t) / n, "ns");
    line("mesh_box_hits", (double)hits / n, "faces");
    for (i = 0, t = seconds(); i < n; i++) hits += fsi_mesh_sweep(m, p[i], fsi_v3_madd(p[i], (fsi_real)(2 * edge),
        v3(uniform(-1, 1), uniform(-1, 1), uniform(-1, 1))), 1).face >= 0;
    line("mesh_sweep", 1e9 * (seconds() - t) / n, "ns");
    for (i = 0, t = seconds(); i < n; i++) hits += fsi_mesh_ray(m, v3(uniform(-2, 2), uniform(-2, 2), 3),
        v3(uniform(-0.1, 0.1), uniform(-0.1, 0.1), -1), 10).face >= 0;
    line("mesh_ray", 1e9 * (seconds() - t) / n, "ns");
    for (i = 0, t = seconds(); i < 20; i++) sum += fsi_mesh_winding_number(m, p[i]);
    line("mesh_winding_per_face", 1e9 * (seconds() - t) / 20 / m->face_count, "ns");
    printf("# checks %g %lld\n", sum, hits);
    fsi_mesh_destroy(m);
    free(x), free(e), free(p);
    return context.bytes != 0;
}
