/* Speed of the weakly compressible liquid beside the floor that arithmetic and memory set, and of contacts' solvers
   against their number
   (the paper's figure 4). usage: bench_wcsph [particles along an edge of the largest pool, default 46]
   SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_wcsph.h"
#include <stdio.h>
#include <stdlib.h>
#include "bench.h"

static const char *const name[5] = { "auto", "global", "local", "local_split", "pgs" };

static void must(fsi_status status, const char *what)
{
    if (status == FSI_OK) return;
    printf("%s: %s\n", what, fsi_status_text(status));
    exit(1);
}

/* A cube around the origin, `half` its half side. */
static fsi_mesh *make_cube(fsi_real half)
{
    static const int face[36] = { 0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6, 0, 1, 5, 0, 5, 4, 2, 6, 7, 2, 7, 3, 0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5 };
    fsi_vec3 corner[8];
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh;
    int k;
    for (k = 0; k < 8; k++) corner[k] = fsi_v3(k & 1 ? half : -half, k & 2 ? half : -half, k & 4 ? half : -half);
    d.vertices = corner;
    d.vertex_count = 8;
    d.elements = face;
    d.element_count = 12;
    must(fsi_mesh_create(&mesh, &d), "mesh");
    return mesh;
}

/* A pool of side x side x side/2 particles that n cubes swim in: time of a substep by its parts. */
static void bench_pool(int side, int cubes, fsi_wcsph_solver solver)
{
    fsi_context context = fsi_default_context();
    fsi_wcsph_desc d = fsi_wcsph_default_desc();
    fsi_mesh *mesh[16];
    fsi_body body[16];
    fsi_mass_properties wood;
    fsi_box3 pool;
    fsi_wcsph *s;
    double liquid = 0, contacts = 0, response = 0, correction = 0, other = 0, touching = 0, pairs = 0, start, cpu, floor_ns, operations_ns;
    int k, step, substeps = 0, inside = 0;
    context.now = bench_seconds;
    d.context = &context;
    d.spacing = 1 / (fsi_real)side;
    d.solver = solver;
    d.depth = (fsi_real)0.5;
    d.domain.lo = fsi_v3(0, 0, 0);
    d.domain.hi = fsi_v3(1, 1, 1);
    pool.lo = fsi_v3(0, 0, 0);
    pool.hi = fsi_v3(1, 1, (fsi_real)0.5);
    must(fsi_wcsph_create(&s, &d), "create");
    for (k = 0; k < cubes; k++) {
        mesh[k] = make_cube((fsi_real)0.09);
        must(fsi_mesh_mass(mesh[k], 500, 0, &wood), "mass");
        body[k] = fsi_body_from_mass(&wood);
        body[k].force = fsi_v3(0, 0, (fsi_real)-9.81 * body[k].mass);
        body[k].pose.position = fsi_v3((fsi_real)(0.2 + 0.3 * (k % 3)), (fsi_real)(0.2 + 0.3 * (k / 3)), (fsi_real)0.5);
        must(fsi_mesh_move_rigid(mesh[k], body[k].pose.position, body[k].pose.orientation), "move");
        must(fsi_mesh_move_rigid(mesh[k], body[k].pose.position, body[k].pose.orientation), "move");
        must(fsi_wcsph_add_body(s, mesh[k], &body[k], NULL), "body");
    }
    must(fsi_wcsph_fill_box(s, pool, fsi_v3(0, 0, 0), NULL), "fill");
    must(fsi_wcsph_settle_density(s, fsi_v3(0, 0, (fsi_real)0.5)), "settle");
    for (step = 0; step < 2; step++) {
        must(fsi_wcsph_step(s, (fsi_real)2e-3), "step");
        for (k = 0; k < cubes; k++) fsi_body_accept(&body[k]);
    }
    start = bench_seconds(NULL);
    for (step = 0; step < 4; step++) {
        must(fsi_wcsph_step(s, (fsi_real)2e-3), "step");
        for (k = 0; k < cubes; k++) fsi_body_accept(&body[k]);
        substeps += s->stats.substeps;
        liquid += s->stats.seconds_neighbors + s->stats.seconds_pairs + s->stats.seconds_integrate;
        contacts += s->stats.seconds_contacts;
        response += s->stats.seconds_response;
        correction += s->stats.seconds_correction;
        other += s->stats.seconds_other;
        touching += (double)s->stats.contacts * s->stats.substeps;
        pairs += (double)s->stats.pairs * s->stats.substeps;
    }
    cpu = bench_seconds(NULL) - start;
    inside = fsi_wcsph_count_inside(s, NULL);
    printf("pool_%d_%s_%d_cubes %.3f us_per_particle_substep  (%d particles, %d substeps, %.0f contacts, %d inside)\n", side, name[solver], cubes, 1e6 * cpu / substeps / s->count, s->count, substeps, touching / substeps, inside);
    printf("  liquid %.1f %%, contacts %.1f %%, response %.2f %%, correction %.1f %%, other %.1f %%; boundary over liquid %.1f %%\n", 100 * liquid / cpu, 100 * contacts / cpu, 100 * response / cpu, 100 * correction / cpu, 100 * other / cpu,
           100 * (contacts + response + correction) / liquid);
    /* floor: the list of neighbours (4 bytes each) for density and once more for force, records of 32 bytes in and out, 24 numbers of state, at
       8 GB/s; records of neighbours come from cache. Arithmetic: 70 operations a neighbour, 16 a cycle at 3 GHz */
    floor_ns = (2 * 4 * 2 * pairs / substeps / s->count + 64 + 24 * sizeof(fsi_real)) / 8;
    operations_ns = 70 * 2 * pairs / substeps / s->count / 48;
    printf("  %.1f neighbours, floor of memory %.0f ns, of arithmetic %.0f ns, %.0f bytes a particle\n", 2 * pairs / substeps / s->count, floor_ns, operations_ns, (double)s->stats.bytes / s->count);
    fsi_wcsph_destroy(s);
    for (k = 0; k < cubes; k++) fsi_mesh_destroy(mesh[k]);
}

/* The solvers by themselves: contacts all around one body. */
static void bench_solver(fsi_wcsph_solver solver, int count)
{
    fsi_wcsph_contact *c = (fsi_wcsph_contact *)malloc((size_t)count * sizeof *c);
    double *impulse = (double *)malloc(3 * (size_t)count * sizeof *impulse), dv[6], seconds[7];
    int i, t, passes = solver == FSI_WCSPH_PGS ? 50 : 4, used = 0;
    if (!c || !impulse) exit(1);
    srand(1);
    for (i = 0; i < count; i++) {
        c[i].normal = fsi_v3_unit(fsi_v3((fsi_real)rand() / RAND_MAX - (fsi_real)0.5, (fsi_real)rand() / RAND_MAX - (fsi_real)0.5, (fsi_real)rand() / RAND_MAX - (fsi_real)0.5));
        c[i].arm = fsi_v3_scale(c[i].normal, (fsi_real)0.5);
        c[i].predicted = fsi_v3_scale(c[i].normal, -(fsi_real)rand() / RAND_MAX);
        c[i].rebound = 0;
        c[i].slip = (fsi_real)0.5;
        c[i].mass = 1 / (fsi_real)count;
    }
    for (t = 0; t < 7; t++) {
        double start = cpu_seconds(NULL);
        must(fsi_wcsph_solve_contacts(c, count, 1, fsi_m3_identity(), FSI_WCSPH_SLIP_CONSISTENT, solver, passes, impulse, dv, &used), "solve");
        seconds[t] = cpu_seconds(NULL) - start;
    }
    printf("response_%s_%d %.4g us_per_contact  (%.4g ms in all, %d passes)\n", name[solver], count, 1e6 * median(seconds, 7) / count, 1e3 * seconds[3], used);
    free(c);
    free(impulse);
}

int main(int argc, char **argv)
{
    static const int count[4] = { 300, 1000, 3000, 10000 };
    const int side = argc > 1 ? atoi(argv[1]) : 46;
    int k, solver;
    puts(fsi_build_info());
    for (solver = FSI_WCSPH_GLOBAL; solver <= FSI_WCSPH_PGS; solver++) for (k = 0; k < 4; k++) bench_solver((fsi_wcsph_solver)solver, count[k]);
    bench_pool(side / 2, 9, FSI_WCSPH_AUTO);
    bench_pool(side, 0, FSI_WCSPH_AUTO);
    for (solver = FSI_WCSPH_AUTO; solver <= FSI_WCSPH_PGS; solver++) bench_pool(side, 9, (fsi_wcsph_solver)solver);
    return 0;
}
