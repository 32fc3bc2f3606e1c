/* cc -O3 -I. studies/shell/flag.c -lm -o flag && ./flag
   SPDX-License-Identifier: MIT

   A flag of silk on a pole, in a wind of 3.5 m/s that veers by 7 degrees to and fro, which sets the pace. Integrated by
   BDF2, which takes little energy from waves that it resolves: they run along the flag and whip its free end; backward
   Euler (--euler) at the same step damps them. The air only pushes along the normal of each triangle, by its speed
   relative to the wind: there is no flow around the flag, no wake. amplitude= is the root of the mean square of the way
   across the wind of the free edge's middle, over the flag's length, and frequency= how often a second it crosses its
   mean from the same side, both over the last two thirds of the run; strouhal= is frequency times twice the amplitude
   in metres over the speed of the wind. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_shell.h"
#include "../../examples/kit/shell_tally.h"

#define LENGTH 0.9  /* [m] */
#define WIDTH 0.6
#define BOTTOM 0.8  /* height of its lower edge */
#define VEER 0.12   /* of the wind, to each side [rad]; */
#define PERIOD 0.7  /* how long that takes, to and fro [s] */
#define PICTURE (1.0 / 30)

typedef struct state {
    ex_mesh cloth;
    fsi_shell *shell;
    fsi_shell_desc desc;
    int probe;           /* middle of the free edge */
    double *across;      /* its way, one a step */
    int samples;
} state;

static void make_flag(ex_app *app, state *w, int euler)
{
    fsi_shell_material silk = fsi_shell_preset(FSI_SHELL_SILK);
    const int nx = app->res, ny = app->res * 2 / 3;
    int i;
    w->cloth = ex_grid(fsi_v3(0, 0, 0), fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, 0), nx, ny);
    for (i = 0; i < w->cloth.vertex_count; i++) { /* upright, in slight waves that break the symmetry */
        fsi_vec3 *x = &w->cloth.vertices[i];
        *x = fsi_v3(x->x, (fsi_real)(0.01 * (double)x->x * sin(7 * (double)x->x + 2 * (double)x->y)),
                    (fsi_real)BOTTOM + x->y);
    }
    w->probe = (ny / 2) * (nx + 1) + nx;
    silk.clearance = silk.thickness / 2;
    w->desc = fsi_shell_default_desc();
    w->desc.context = &app->context;
    w->desc.vertices = w->cloth.vertices;
    w->desc.vertex_count = w->cloth.vertex_count;
    w->desc.triangles = w->cloth.triangles;
    w->desc.triangle_count = w->cloth.triangle_count;
    w->desc.materials = &silk;
    w->desc.material_count = 1;
    w->desc.friction = (fsi_real)0.2;
    w->desc.air_density = (fsi_real)1.2;
    w->desc.integrator = euler ? FSI_SHELL_BACKWARD_EULER : FSI_SHELL_BDF2;
    w->desc.tolerance = (fsi_real)0.03;
    ex_check(app, fsi_shell_create(&w->shell, &w->desc));
    for (i = 0; i <= ny; i++) w->shell->pinned[i * (nx + 1)] = 1;
}

static void blow(ex_app *app, state *w, double speed, double time)
{
    fsi_shell_desc d = w->shell->desc;
    const double angle = VEER * sin(2 * FSI_PI * time / PERIOD);
    d.wind = fsi_v3((fsi_real)(speed * cos(angle)), (fsi_real)(speed * sin(angle)), 0);
    ex_check(app, fsi_shell_set_desc(w->shell, &d));
}

/* Mean square about the mean, and crossings of it, of the samples from `first` on. */
static double amplitude_of(const state *w, int first, double *mean)
{
    double sum = 0;
    int i;
    for (*mean = 0, i = first; i < w->samples; i++) *mean += w->across[i] / (w->samples - first);
    for (i = first; i < w->samples; i++) sum += (w->across[i] - *mean) * (w->across[i] - *mean);
    return sqrt(sum / (w->samples - first));
}

/* Crossings upwards, after the value was below by a quarter of the amplitude: small ripples do not count. */
static double crossings_of(const state *w, int first, double mean, double amplitude)
{
    int i, below = 0, count = 0;
    for (i = first; i < w->samples; i++) {
        if (w->across[i] < mean - amplitude / 4) below = 1;
        if (below && w->across[i] > mean + amplitude / 4) {
            count++;
            below = 0;
        }
    }
    return count;
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->shell;
    const fsi_vec3 pole[2] = { { (fsi_real)-0.008, 0, 0 }, { (fsi_real)-0.008, 0, (fsi_real)(BOTTOM + WIDTH + 0.08) } };
    enum { STRIPES = 5 }; /* they show how it is folded */
    const int nx = app->res, ny = app->res * 2 / 3;
    int k;
    ex_draw_rod(scene, pole, 2, 0.012, NULL, 0x8a8f98);
    for (k = 0; k < STRIPES; k++) { /* triangles come in rows, from below */
        const int first = ny * k / STRIPES, end = ny * (k + 1) / STRIPES;
        const uint32_t paint = k % 2 ? 0xf3ecd9 : 0x1f828c;
        ex_draw_sheet(scene, s->position, s->vertex_count, s->triangles + 6 * nx * first, 2 * nx * (end - first), 0.001,
                      paint, paint);
    }
    ex_save_scene(app, scene, frame, "%.2f s", s->time);
}

static ex_scene begin_scene(ex_app *app)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 box;
    box.lo = fsi_v3((fsi_real)-0.05, (fsi_real)-0.15, (fsi_real)0.72);
    box.hi = fsi_v3((fsi_real)0.95, (fsi_real)0.15, (fsi_real)1.45);
    scene.width = 720;
    scene.height = 640;
    ex_look_at_box(&scene, box, -25, 12);
    scene.ground_height = 0;
    return scene;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_shell_tally tally = { 0 };
    state w;
    double dt = 1.0 / 120, speed = 3.5, mean = 0, amplitude, frequency;
    int frame, k, euler = 0, substeps, first;

    memset(&w, 0, sizeof w);
    ex_init(&app, "flag", "A flag of silk flutters in the wind.");
    app.res = 39;
    app.res_help = "edges along the flag";
    app.frames = 60;
    ex_real(&app, "dt", &dt, 1e-4, PICTURE, "time step [s]");
    ex_real(&app, "wind", &speed, 0, 30, "its speed [m/s]");
    ex_flag(&app, "euler", &euler, "backward Euler instead of BDF2");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 6 || app.res > 1000) ex_die("--res is not between 6 and 1000");
    make_flag(&app, &w, euler);
    scene = begin_scene(&app);
    substeps = (int)ceil(PICTURE / dt - 1e-9);
    w.across = (double *)ex_alloc(NULL, (size_t)app.frames * (size_t)substeps, sizeof(double));

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < substeps; k++) {
            blow(&app, &w, speed, w.shell->time);
            ex_shell_step(&app, &tally, w.shell, PICTURE / substeps);
            w.across[w.samples++] = (double)w.shell->position[w.probe].y;
        }
        if (app.images) draw(&app, &scene, &w, frame);
        if (app.write) {
            fsi_io_mesh mesh = fsi_io_default_mesh();
            mesh.vertices = w.shell->position;
            mesh.vertex_count = w.shell->vertex_count;
            mesh.triangles = w.cloth.triangles;
            mesh.triangle_count = w.cloth.triangle_count;
            ex_write_mesh(&app, "flag", frame, &mesh);
        }
        ex_progress(&app, frame + 1);
    }

    first = w.samples / 3;
    amplitude = amplitude_of(&w, first, &mean);
    frequency = crossings_of(&w, first, mean, amplitude) / ((w.samples - first) * PICTURE / substeps);
    ex_figure(&app, "amplitude", "%.4f", amplitude / LENGTH);
    ex_figure(&app, "frequency", "%.2f", frequency);
    if (speed > 0) ex_figure(&app, "strouhal", "%.3f", frequency * 2 * amplitude / speed);
    ex_figure(&app, "intersections", "%.0f", fsi_shell_count_intersections(w.shell));
    ex_shell_figures(&app, &tally, w.shell);
    ex_scene_end(&scene);
    fsi_shell_destroy(w.shell);
    ex_mesh_free(&w.cloth);
    free(w.across);
    return ex_end(&app);
}
