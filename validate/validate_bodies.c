/* validate_bodies.c - bodies in the liquid, and meshes that move in it, at full size.
   SPDX-License-Identifier: MIT

   Drafts of floating crates against Archimedes, a body of the liquid's density left to itself, the terminal speed of a
   cylinder against Faxen, and what a step costs as obstacles gain triangles, at rest and in motion.
   Prints lines `key value unit`. --res 50 halves the number of particles along each edge; a word (drafts, hover,
   terminal, triangles) runs one part. */
#define FSI_IMPLEMENTATION
#include "../examples/kit/kit.h"
#include "../fsi_sph.h"
#include "../tests/kit/test.h"
#include "../tests/kit/test_sph.h"
#include "../tests/kit/test_bodies.h"
#include "validate.h"

static void run_drafts(void)
{
    static const double density[3] = { 300, 500, 700 };
    const int n = scaled(20);
    int k;
    for (k = 0; k < 3; k++)
        say(draft_error(&app.context, 2, n, density[k]), "dx", "draft_2d_density_%g_error", density[k]);
    say(draft_error(&app.context, 3, scaled(12), 500), "dx", "draft_3d_12dx_density_500_error");
}

/* A cylinder as heavy as the water it displaces, in a pool that has come to rest around it. */
static void run_hover(void)
{
    const double R = 0.05, L = 0.6, dx = 2 * R / scaled(12), dt = 2e-3;
    fsi_sph_desc d = make_desc(2, dx);
    fsi_mesh *m = make_cylinder(R, 40);
    fsi_body body = make_floater(m, 1000, 9.81, 2), held = fsi_default_body();
    double way = 0, fastest = 0;
    fsi_sph *s;
    int k, i;
    d.domain = box3(0, 0, 0, L, 1.2 * L, 0);
    d.depth = (fsi_real)L;
    s = make_liquid(&d);
    held.pose.position = held.end.position = v3(L / 2, L / 2, 0);
    mesh_to(m, held.pose);
    add_body(s, m, &held);
    ex_check(&app, fsi_sph_fill_box(s, box3(0, 0, 0, L, L, 0), v3(0, 0, 0), NULL));
    for (k = 0; k < 500; k++) {
        for (i = 0; i < s->count; i++) s->velocity[i] = fsi_v3_scale(s->velocity[i], (fsi_real)0.9);
        ex_check(&app, fsi_sph_step(s, (fsi_real)dt));
    }
    body.pose = held.pose;
    held = body;
    for (k = 0; k < 1000; k++) {
        ex_check(&app, fsi_sph_step(s, (fsi_real)dt));
        fsi_body_integrate(&held, (fsi_real)dt);
        way = fmax(way, fabs((double)held.pose.position.y - L / 2));
        fastest = fmax(fastest, (double)fsi_v3_norm(held.velocity));
    }
    say(way / (2 * R), "diameters", "hover_2s_largest_way");
    say(fastest, "m/s", "hover_2s_fastest");
    fsi_sph_destroy(s);
    fsi_mesh_destroy(m);
}

static void run_terminal(void)
{
    say(terminal_speed_ratio(&app.context, scaled(10), 3), "1", "terminal_speed_10dx");
    say(terminal_speed_ratio(&app.context, scaled(16), 3), "1", "terminal_speed_16dx");
}

static double cpu_now(void *user)
{
    (void)user;
    return ex_cpu_seconds();
}

/* A torus of about `triangles`, in water `edge` particles wide; `how`: 0 at rest, 1 turned as a whole, 2 every vertex
   moved, each by a call between steps. Times of the last 4 of 6 steps, one thread. */
static void time_triangles(int triangles, int edge, int how)
{
    static const char *const name[3] = { "still", "rigid", "deformed" };
    const int nu = (int)sqrt(triangles * 0.75), nv = triangles / 2 / nu, n = scaled(edge);
    fsi_context serial = fsi_default_context();
    fsi_mesh_desc md = fsi_mesh_default_desc();
    fsi_sph_desc d = make_desc(3, 1.0 / n);
    ex_mesh torus = ex_torus(0.25, 0.1, nu, nv);
    fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)(nu * nv), sizeof *x);
    fsi_mesh *m;
    fsi_sph *s;
    double cpu = 0, boundary = 0, other = 0, sweeps = 0, move = 0, start;
    int i, step;
    for (i = 0; i < nu * nv; i++) torus.vertices[i] = fsi_v3_add(torus.vertices[i], v3(0.5, 0.5, 0.4));
    serial.now = cpu_now;
    md.context = &serial;
    md.vertices = torus.vertices;
    md.vertex_count = torus.vertex_count;
    md.elements = torus.triangles;
    md.element_count = torus.triangle_count;
    ex_check(&app, fsi_mesh_create(&m, &md));
    d.context = &serial;
    d.domain = box3(0, 0, 0, 1, 1, 1.5);
    d.min_iters = d.max_iters = 20;
    d.max_substeps = 1;
    ex_check(&app, fsi_sph_create(&s, &d));
    ex_check(&app, fsi_sph_add_mesh(s, m, NULL));
    ex_check(&app, fsi_sph_fill_box(s, box3(0, 0, 0, 1, 1, 0.8), v3(0, 0, 0), NULL));
    for (step = 1; step <= 6; step++) {
        double dt = 2e-3, angle = 2 * step * dt;
        start = ex_cpu_seconds();
        if (how == 1)
            ex_check(&app, fsi_mesh_move_rigid(m, v3(0, 0, 0),
                                               fsi_quat_from_axis_angle(v3(0, 0, 1), (fsi_real)(0.1 * angle))));
        for (i = 0; i < m->vertex_count && how == 2; i++) {
            x[i] = torus.vertices[i];
            x[i].z += (fsi_real)(0.02 * sin(angle) * sin(9 * (double)x[i].x));
        }
        if (how == 2) ex_check(&app, fsi_mesh_move(m, x, m->vertex_count));
        if (step > 2) move += ex_cpu_seconds() - start;
        start = ex_cpu_seconds();
        ex_check(&app, fsi_sph_step(s, (fsi_real)dt));
        if (step <= 2) continue;
        cpu += ex_cpu_seconds() - start;
        boundary += s->stats.seconds_boundary;
        other += s->stats.seconds_other;
        sweeps += s->stats.iterations;
    }
    say(1e9 * cpu / sweeps / s->count, "ns", "triangles_%s_%d_particle_sweep", name[how], m->face_count);
    say(1e3 * cpu / 4, "ms", "triangles_%s_%d_step", name[how], m->face_count);
    say(100 * (boundary + other) / cpu, "%", "triangles_%s_%d_boundary_refit_and_rest", name[how], m->face_count);
    if (how > 0) say(1e3 * move / 4, "ms", "triangles_%s_%d_callers_move", name[how], m->face_count);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(m);
    ex_mesh_free(&torus);
    free(x);
}

static void run_triangles(void)
{
    static const int count[5] = { 2000, 8000, 20000, 60000, 187000 }, edge[5] = { 30, 30, 30, 40, 80 };
    int k, how;
    for (how = 0; how < 3; how++) for (k = 0; k < 5; k++) time_triangles(count[k], edge[k], how);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); } parts[] = {
        { "drafts", run_drafts }, { "hover", run_hover }, { "terminal", run_terminal }, { "triangles", run_triangles }
    };
    const char *only = NULL;
    int k;
    ex_init(&app, "validate_bodies", "Bodies and moving meshes against theory.");
    app.res = 100;
    app.res_help = "per cent of the full number of particles along an edge";
    ex_operand(&app, "part", &only, "drafts, hover, terminal or triangles; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    for (k = 0; k < 4; k++) if (!only || strcmp(only, parts[k].name) == 0) parts[k].run();
    ex_pool_stop(&app.pool);
    return 0;
}
