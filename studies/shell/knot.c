/* cc -O3 -I. studies/shell/knot.c -lm -o knot && ./knot
   SPDX-License-Identifier: MIT

   A rope lies in a loose overhand knot; its ends are pulled apart, at steps of 1/24 s, until the knot is tight and the
   rope stretches. The rope is a rod that is straight at rest, bends and twists, rubs on itself, and keeps twice its
   radius of distance: radius= is the clearance of its material. However long the step, it may not pass through itself:
   the knot would be gone. writhe= is Gauss's double integral over the rope at the end, 3.4 or so for a tight overhand
   knot, 2 less after each passage; clear= the smallest distance between parts farther apart along the rope than a half
   turn around it, less its thickness, over that, at any time: its own measurement, beside the simulator's min_gap=;
   both must stay above 0. tension= is the pull on an end at the end [N]. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_shell.h"
#include "../../examples/kit/shell_tally.h"

#define LENGTH 1.0   /* of the rope [m] */
#define RADIUS 0.008
#define SPEED 0.12   /* of each end [m/s] */
#define SAMPLES 4000 /* of the curve that the rope is laid along */

typedef struct state {
    fsi_vec3 *at, *straight; /* at first; free of stress */
    int *segments, count;
    double clear;            /* least distance over the thickness, less 1 */
    fsi_shell *shell;
} state;

/* Seen from above an overhand knot of polynomials (Shastri 1992), t^3 - 3 t, t^4 - 4 t^2, which crosses itself at the
   pairs t = (-1.93, 0.52), (-1.73, 1.73) and (-0.52, 1.93); between these it goes smoothly up and down, over, under,
   over ... Beyond |t| = 2 it goes straight on. */
static fsi_vec3 knot_at(double t)
{
    static const double when[6] = { 0, 0.518, 1.732, 1.932, 2.25, 9 }, height[6] = { 0, -1, 1, -1, 0, 0 };
    const double u = fmax(-2, fmin(2, t)), over = t - u;
    double x = u * u * u - 3 * u + 9 * over, y = u * u * (u * u - 4) + 6 * fabs(over), z, share;
    int k = 0;
    while (fabs(t) > when[k + 1]) k++;
    share = (fabs(t) - when[k]) / (when[k + 1] - when[k]);
    z = height[k] + share * share * (3 - 2 * share) * (height[k + 1] - height[k]);
    return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)(t < 0 ? -z : z));
}

/* Points at equal distances along the curve, scaled to the rope's length. */
static void lay_rope(state *w, double reach)
{
    fsi_vec3 *p = (fsi_vec3 *)ex_alloc(NULL, SAMPLES + 1, sizeof *p);
    double *along = (double *)ex_alloc(NULL, SAMPLES + 1, sizeof *along), scale, s;
    int i, k = 0;
    along[0] = 0;
    for (i = 0; i <= SAMPLES; i++) {
        p[i] = knot_at(reach * (2.0 * i / SAMPLES - 1));
        if (i > 0) along[i] = along[i - 1] + (double)fsi_v3_norm(fsi_v3_sub(p[i], p[i - 1]));
    }
    scale = LENGTH / along[SAMPLES];
    for (i = 0; i < w->count; i++) {
        s = along[SAMPLES] * i / (w->count - 1);
        while (k + 2 < SAMPLES + 1 && along[k + 1] < s) k++;
        w->at[i] =
            fsi_v3_madd(p[k], (fsi_real)((s - along[k]) / (along[k + 1] - along[k])), fsi_v3_sub(p[k + 1], p[k]));
        w->at[i] = fsi_v3_scale(w->at[i], (fsi_real)scale);
        w->straight[i] = fsi_v3((fsi_real)(LENGTH * i / (w->count - 1)), 0, 0);
    }
    free(p);
    free(along);
}

static void make_rope(ex_app *app, state *w, double young, double friction)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    int i;
    w->count = app->res + 1;
    w->at = (fsi_vec3 *)ex_alloc(NULL, (size_t)w->count, sizeof *w->at);
    w->straight = (fsi_vec3 *)ex_alloc(NULL, (size_t)w->count, sizeof *w->straight);
    w->segments = (int *)ex_alloc(NULL, 2 * (size_t)w->count, sizeof(int));
    lay_rope(w, 2.6);
    for (i = 0; i < w->count; i++) {
        w->segments[2 * i] = i;
        w->segments[2 * i + 1] = i + 1;
    }
    m.radius = m.clearance = (fsi_real)RADIUS;
    m.young = (fsi_real)young;
    m.damping_mass = 2;
    d.context = &app->context;
    d.vertices = w->at;
    d.rest = w->straight;
    d.vertex_count = w->count;
    d.segments = w->segments;
    d.segment_count = w->count - 1;
    d.materials = &m;
    d.material_count = 1;
    d.friction = (fsi_real)friction;
    d.friction_speed = (fsi_real)0.01;
    d.contact_range = (fsi_real)(RADIUS / 5);
    d.gravity = fsi_v3(0, 0, 0);
    ex_check(app, fsi_shell_create(&w->shell, &d));
    for (i = 0; i < 2; i++) w->shell->pinned[i] = w->shell->pinned[w->count - 1 - i] = 1;
}

/* Each end is two points, the last segment: it goes outwards and is turned to lie along x. */
static void pull(const state *w, double dt, double stop)
{
    const fsi_vec3 *x = w->shell->position;
    const int ends[2][2] = { { 0, 1 }, { w->count - 1, w->count - 2 } };
    const double edge = LENGTH / (w->count - 1);
    int k;
    for (k = 0; k < 2; k++) {
        const double out = k ? 1 : -1, to = fmin(fabs((double)x[ends[k][0]].x) + SPEED * dt, stop / 2),
                     keep = exp(-3 * dt);
        const fsi_vec3 end =
            fsi_v3((fsi_real)(out * to), (fsi_real)keep * x[ends[k][0]].y, (fsi_real)keep * x[ends[k][0]].z);
        fsi_vec3 way = fsi_v3_sub(x[ends[k][1]], x[ends[k][0]]);
        way = fsi_v3_unit(
            fsi_v3_add(fsi_v3_scale(fsi_v3_unit(way), (fsi_real)keep), fsi_v3((fsi_real)(-out * (1 - keep)), 0, 0)));
        w->shell->target[ends[k][0]] = end;
        w->shell->target[ends[k][1]] = fsi_v3_madd(end, (fsi_real)edge, way);
    }
}

static double pull_of(const state *w)
{
    const double edge = LENGTH / (w->count - 1);
    const fsi_vec3 *x = w->shell->position;
    return (double)fsi_v3_norm(fsi_v3_sub(x[3], x[2])) / edge - 1; /* strain beside the end */
}

/* ---- its own measurements --------------------------------------------------------------------------------------- */

/* Smallest distance between segments that are at least a half turn around the rope, pi radius, apart along it. */
static double least_distance(const state *w)
{
    const fsi_vec3 *x = w->shell->position;
    const int apart = 1 + (int)ceil(FSI_PI * RADIUS / (LENGTH / (w->count - 1)));
    double least = 1e30, p[12];
    int i, j, k;
    for (i = 0; i + 1 < w->count; i++) for (j = i + apart; j + 1 < w->count; j++) {
        const fsi_vec3 q[4] = { x[i], x[i + 1], x[j], x[j + 1] };
        for (k = 0; k < 12; k++) p[k] = (double)(k % 3 == 0 ? q[k / 3].x : k % 3 == 1 ? q[k / 3].y : q[k / 3].z);
        least = fmin(least, fsi_distance_between(FSI_EDGE_EDGE, p).d);
    }
    return least;
}

/* 1/(4 pi) sum of (e x f) . r / |r|^3 over all pairs of segments, each taken at 3 x 3 points. */
static double writhe_of(const state *w)
{
    const fsi_vec3 *x = w->shell->position;
    double sum = 0;
    int i, j, k;
    for (i = 0; i + 1 < w->count; i++) for (j = i + 2; j + 1 < w->count; j++) {
        const fsi_vec3 e = fsi_v3_sub(x[i + 1], x[i]), f = fsi_v3_sub(x[j + 1], x[j]), n = fsi_v3_cross(e, f);
        for (k = 0; k < 9; k++) {
            const fsi_vec3 r = fsi_v3_sub(fsi_v3_madd(x[i], (fsi_real)((k % 3 + 0.5) / 3), e),
                                          fsi_v3_madd(x[j], (fsi_real)((k / 3 + 0.5) / 3), f));
            const double d = (double)fsi_v3_norm(r);
            sum += 2 * (double)fsi_v3_dot(n, r) / (9 * d * d * d);
        }
    }
    return sum / (4 * FSI_PI);
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->shell;
    uint32_t *paint = (uint32_t *)ex_alloc(NULL, (size_t)w->count, sizeof *paint);
    int i;
    for (i = 0; i < w->count; i++) paint[i] = i * 2 < w->count ? 0xc8432f : 0xe3c08a;
    ex_draw_rod(scene, s->position, w->count, RADIUS, paint, 0);
    ex_save_scene(app, scene, frame, "%.2f s", s->time);
    free(paint);
}

static ex_scene begin_scene(ex_app *app)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 box;
    box.lo = fsi_v3((fsi_real)-0.26, (fsi_real)-0.09, (fsi_real)-0.06);
    box.hi = fsi_v3((fsi_real)0.26, (fsi_real)0.09, (fsi_real)0.06);
    scene.width = 1000;
    scene.height = 420;
    ex_look_at_box(&scene, box, 8, 50);
    return scene;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_shell_tally tally = { 0 };
    state w;
    double dt = 1.0 / 24, young = 2e6, friction = 0.2, stop = 0.86;
    int frame;

    memset(&w, 0, sizeof w);
    w.clear = 1e30;
    ex_init(&app, "knot", "A rope in an overhand knot is pulled tight.");
    app.res = 240;
    app.res_help = "segments of the rope";
    app.frames = 84;
    ex_real(&app, "dt", &dt, 1e-4, 1, "time step, also between two pictures [s]");
    ex_real(&app, "young", &young, 1e4, 1e10, "Young's modulus [Pa]");
    ex_real(&app, "friction", &friction, 0, 1, "Coulomb's coefficient");
    ex_real(&app, "stop", &stop, 0.5, 1.5, "how far the ends are pulled apart [m]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 60 || app.res > 5000) ex_die("--res is not between 60 and 5000");
    make_rope(&app, &w, young, friction);
    scene = begin_scene(&app);

    for (frame = 0; frame < app.frames; frame++) {
        pull(&w, dt, stop);
        ex_shell_step(&app, &tally, w.shell, dt);
        w.clear = fmin(w.clear, least_distance(&w) / (2 * RADIUS) - 1);
        if (app.images) draw(&app, &scene, &w, frame);
        ex_write_particles(&app, "rope", frame, w.shell->position, w.shell->velocity, w.count);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "writhe", "%.3f", fabs(writhe_of(&w)));
    ex_figure(&app, "clear", "%.3g", w.clear);
    ex_figure(&app, "tension", "%.3f", young * FSI_PI * RADIUS * RADIUS * pull_of(&w));
    ex_figure(&app, "dt", "%.4g", dt);
    ex_shell_figures(&app, &tally, w.shell);
    ex_scene_end(&scene);
    fsi_shell_destroy(w.shell);
    free(w.at);
    free(w.straight);
    free(w.segments);
    return ex_end(&app);
}
