/* cc -O3 -I. studies/shell/hair_coil.c -lm -o hair_coil && ./hair_coil
   SPDX-License-Identifier: MIT

   A lock of hair, or a telephone cord: a rod whose rest shape is a helix, which bends and twists. It hangs from its
   upper end, and its lower end is drawn down until the rod is nearly straight; then it is let go. A straight rod that
   remembers a helix has to turn about itself to become one: without twist it could not tell left from right. It springs
   back into its coil, turns touching turns. turns= is how often it winds about its axis at the end, signed, over what
   its rest shape does (1: all of it); length_pulled= and length_free= are its heights, over the one at rest under its
   own weight, by fsi_shell_settle; min_gap= must stay above 0. --no-twist does without it. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_shell.h"
#include "../../examples/kit/shell_tally.h"

#define COIL 0.035     /* radius of the helix [m] */
#define PITCH 0.009    /* its height a turn */
#define TURNS 5
#define THICK 0.003    /* radius of the rod */
#define TOP 0.0        /* height of the upper end */
#define STRETCH 0.92   /* the rod is drawn out to this share of its length */
#define PULL 0.6       /* in this time [s]; */
#define HOLD 0.2       /* and held for this one */
#define KEPT 5         /* moments that stay in the picture, beside the present one */
#define APART 0.21     /* of the rods in the picture [m] */
#define SIGHT 1.26     /* its height [m] */

typedef struct state {
    fsi_vec3 *rest;
    int *segments, count;
    double height, length; /* of the helix: along its axis and along the rod */
    fsi_shell *shell;
    fsi_vec3 *kept;        /* KEPT * count, where the rod was at each of the moments */
    double since[KEPT];    /* when that was [s] */
    int shown;             /* so far */
} state;

static fsi_vec3 helix(double turns)
{
    const double a = 2 * FSI_PI * turns;
    return fsi_v3((fsi_real)(COIL * cos(a)), (fsi_real)(COIL * sin(a)), (fsi_real)(TOP - PITCH * turns));
}

static void make_rod(ex_app *app, state *w, int twist, double young)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    int i;
    w->count = TURNS * app->res + 1;
    w->height = PITCH * TURNS;
    w->length = TURNS * hypot(2 * FSI_PI * COIL, PITCH);
    w->rest = (fsi_vec3 *)ex_alloc(NULL, (size_t)w->count, sizeof *w->rest);
    w->segments = (int *)ex_alloc(NULL, 2 * (size_t)w->count, sizeof(int));
    for (i = 0; i < w->count; i++) {
        w->rest[i] = helix((double)i / app->res);
        w->segments[2 * i] = i;
        w->segments[2 * i + 1] = i + 1;
    }
    m.radius = m.clearance = (fsi_real)THICK;
    m.young = (fsi_real)young;
    m.poisson = (fsi_real)0.45;
    m.density = 1100;
    m.twist = twist;
    m.damping_mass = 2;
    d.context = &app->context;
    d.vertices = w->rest;
    d.vertex_count = w->count;
    d.segments = w->segments;
    d.segment_count = w->count - 1;
    d.materials = &m;
    d.material_count = 1;
    d.friction = (fsi_real)0.2;
    d.integrator = FSI_SHELL_BDF2;
    d.contact_range = (fsi_real)(THICK / 2);
    ex_check(app, fsi_shell_create(&w->shell, &d));
    w->kept = (fsi_vec3 *)ex_alloc(NULL, KEPT * (size_t)w->count, sizeof *w->kept);
    for (i = 0; i < 2; i++) w->shell->pinned[i] = 1; /* clamped at the upper end */
    w->shell->twist_held[0] = (unsigned char)twist;
}

static double height_of(const state *w)
{
    return (double)(w->shell->position[0].z - w->shell->position[w->count - 1].z);
}

/* How often the rod winds about the vertical: the turn of its tangent's direction as seen from above. */
static double turns_of(const state *w)
{
    const fsi_vec3 *x = w->shell->position;
    double turned = 0;
    int i;
    for (i = 1; i + 1 < w->count; i++) {
        const double ax = (double)(x[i].x - x[i - 1].x), ay = (double)(x[i].y - x[i - 1].y),
                     bx = (double)(x[i + 1].x - x[i].x), by = (double)(x[i + 1].y - x[i].y);
        turned += atan2(ax * by - ay * bx, ax * bx + ay * by);
    }
    return turned / (2 * FSI_PI);
}

/* The lower end, its last segment free to turn: drawn down along the axis, held, let go. */
static void lead_end(const state *w, double from, double time)
{
    const int last = w->count - 1;
    const double t = fmin(1, time / PULL), way = t * t * (3 - 2 * t),
                 low = from + (TOP - STRETCH * w->length - from) * way;
    w->shell->pinned[last] = time < PULL + HOLD;
    w->shell->target[last] = fsi_v3((fsi_real)(COIL * (1 - way)), 0, (fsi_real)low);
}

/* The rod as it was at a moment, in the k-th place from the left, and when that was. */
static void draw_rod(ex_scene *scene, const state *w, const fsi_vec3 *x, int k)
{
    fsi_vec3 *at = (fsi_vec3 *)ex_alloc(NULL, (size_t)w->count, sizeof *at);
    uint32_t *paint = (uint32_t *)ex_alloc(NULL, (size_t)w->count, sizeof *paint);
    int i;
    for (i = 0; i < w->count; i++) {
        at[i] = fsi_v3_add(x[i], fsi_v3((fsi_real)((k - KEPT / 2.0) * APART), 0, 0));
        paint[i] = ex_map_color(EX_MAP_HEAT, 0.35 + 0.5 * i / w->count);
    }
    ex_draw_rod(scene, at, w->count, THICK, paint, 0);
    free(paint);
    free(at);
}

static void write_time(ex_image *image, double time, int k)
{
    char text[64];
    snprintf(text, sizeof text, "%.2f s", time);
    ex_text(image, (int)(image->width / 2 + (k - KEPT / 2.0) * APART / SIGHT * image->height), 40, 13, EX_CENTER,
            0x3a4550, text);
}

/* The present moment on the right; those that are kept, from left to right. */
static void draw(ex_app *app, ex_scene *scene, state *w, int frame)
{
    static const double moment[KEPT] = { 0, PULL / 2, PULL + HOLD, PULL + HOLD + 0.04, PULL + HOLD + 0.1 };
    ex_image *image;
    int k;
    if (w->shown < KEPT && w->shell->time > moment[w->shown] - 0.01) {
        memcpy(w->kept + (size_t)w->shown * (size_t)w->count, w->shell->position, (size_t)w->count * sizeof *w->kept);
        w->since[w->shown++] = w->shell->time;
    }
    for (k = 0; k < w->shown; k++) draw_rod(scene, w, w->kept + (size_t)k * (size_t)w->count, k);
    draw_rod(scene, w, w->shell->position, KEPT);
    image = ex_render(scene);
    for (k = 0; k < w->shown; k++) write_time(image, w->since[k], k);
    write_time(image, w->shell->time, KEPT);
    ex_save_frame(app, image, frame);
}

static ex_scene begin_scene(ex_app *app, const state *w)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 box;
    box.lo = fsi_v3((fsi_real)(-KEPT / 2.0 * APART), (fsi_real)-0.12, (fsi_real)(TOP - 0.96 * w->length));
    box.hi = fsi_v3((fsi_real)(KEPT / 2.0 * APART), (fsi_real)0.12, (fsi_real)(TOP + 0.18));
    scene.width = 840;
    scene.height = 800;
    ex_look_at_box(&scene, box, 0, 4);
    scene.parallel = SIGHT;
    return scene;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_shell_tally tally = { 0 };
    state w;
    double dt = 1.0 / 240, young = 5e7, settled, pulled = 0, start;
    int frame, untwisted = 0, k, substeps;

    memset(&w, 0, sizeof w);
    ex_init(&app, "hair_coil", "A rod that remembers a helix is drawn straight and let go.");
    app.res = 48;
    app.res_help = "segments a turn";
    app.frames = 72;
    ex_real(&app, "dt", &dt, 1e-5, 1.0 / 30, "time step [s]");
    ex_real(&app, "young", &young, 1e4, 1e9, "Young's modulus [Pa]");
    ex_flag(&app, "no-twist", &untwisted, "a rod that does not resist being twisted");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 8 || app.res > 1000) ex_die("--res is not between 8 and 1000");
    make_rod(&app, &w, !untwisted, young);
    ex_check(&app, fsi_shell_settle(w.shell, 500));
    settled = height_of(&w);
    start = TOP - settled;
    scene = begin_scene(&app, &w);

    substeps = (int)ceil(1.0 / (30 * dt) - 1e-9);
    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < substeps; k++) {
            lead_end(&w, start, w.shell->time + 1.0 / (30 * substeps));
            ex_shell_step(&app, &tally, w.shell, 1.0 / (30 * substeps));
            pulled = fmax(pulled, height_of(&w));
        }
        if (app.images) draw(&app, &scene, &w, frame);
        ex_write_particles(&app, "rod", frame, w.shell->position, w.shell->velocity, w.count);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "turns", "%.3f", turns_of(&w) / TURNS);
    ex_figure(&app, "settled", "%.3f", settled / w.height);
    ex_figure(&app, "length_pulled", "%.3f", pulled / settled);
    ex_figure(&app, "length_free", "%.3f", height_of(&w) / settled);
    ex_shell_figures(&app, &tally, w.shell);
    ex_scene_end(&scene);
    fsi_shell_destroy(w.shell);
    free(w.rest);
    free(w.kept);
    free(w.segments);
    return ex_end(&app);
}
