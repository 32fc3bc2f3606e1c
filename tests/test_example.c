/* test_example.c - what all examples rely on: command line, thread pool, renderer, plots, shapes.
   SPDX-License-Identifier: MIT */
#include "../examples/kit/kit.h"
#include "kit/test.h"
#include "../fsi_io.h"
#include "kit/flip_pools.h"
#include "../examples/kit/drags.h"

/* ---- command line --------------------------------------------------------------------------------------------- */

typedef struct switches {
    int count, loud;
    double dt;
    const char *file, *title;
} switches;

static int parse(ex_app *app, switches *sw, int argc, const char *const *args)
{
    char *argv[12];
    int i;
    argv[0] = (char *)(uintptr_t)"test";
    for (i = 0; i < argc; i++) argv[i + 1] = (char *)(uintptr_t)args[i];
    memset(sw, 0, sizeof *sw);
    ex_init(app, "test", "A test of switches.");
    app->images = 0;
    app->threads = 2;
    ex_int(app, "count", &sw->count, -5, 5, "a number");
    ex_flag(app, "loud", &sw->loud, "a flag");
    ex_real(app, "dt", &sw->dt, 0, 1, "a real number");
    ex_string(app, "title", &sw->title, "a text");
    ex_operand(app, "file.obj", &sw->file, "a file");
    return ex_begin(app, argc + 1, argv);
}

static void test_switches_are_read(void)
{
    static const char *const args[] = {"--count=-3", "--loud", "in.obj",   "--dt", "0.25",
                                       "--title",    "--x",    "--frames", "7",    "--write=vtp"};
    ex_app app;
    switches sw;
    if (!CHECK(parse(&app, &sw, 9, args))) return;
    CHECK(sw.count == -3 && sw.loud == 1 && app.frames == 7 && app.res == 32 && app.write == EX_WRITE_NONE);
    CHECK_NEAR(sw.dt, 0.25, 0);
    CHECK(strcmp(sw.file, "in.obj") == 0 && strcmp(sw.title, "--x") == 0);
    CHECK(app.pool.threads >= 1);
    ex_figure(&app, "lost", "%.0f", 3);
    ex_figure(&app, "rms", "%.3f", 0.5);
    CHECK(strcmp(app.figures, " lost=3 rms=0.500") == 0);
    CHECK(ex_end(&app) == 0);
}

static void test_wrong_switches_are_refused(void)
{
    static const char *const args[][2] = {{"--bogus", "1"},
                                          {"--count=6", "--loud"},
                                          {"--count", "1.5"},
                                          {"--count", "x"},
                                          {"--count=", "--loud"},
                                          {"--loud=1", "--loud"},
                                          {"--dt", "nan"},
                                          {"--dt", "1e999"},
                                          {"--dt=0.1s", "--loud"},
                                          {"--loud", "--dt"},
                                          {"a", "b"},
                                          {"-count", "1"},
                                          {"--countdown", "1"},
                                          {"--frames", "0"},
                                          {"--write", "pdf"},
                                          {"--threads", "-1"},
                                          {"", ""}};
    ex_app app;
    switches sw;
    size_t i;
    for (i = 0; i < sizeof args / sizeof args[0]; i++)
        if (!CHECK(!parse(&app, &sw, 2, args[i]) && app.exit_code == 2))
            printf("taken: %s %s\n", args[i][0], args[i][1]);
}

/* ---- threads -------------------------------------------------------------------------------------------------- */

typedef struct tally { int seen[1000]; } tally;

static void count_task(void *arg, int i) { ((tally *)arg)->seen[i]++; }

static void test_threads_run_each_task_once(void)
{
    static const int counts[] = { 0, 1, 2, 3, 17, 1000 };
    static tally t;
    ex_pool crew;
    int threads, k, i, round, want;
    for (threads = 1; threads < 6; threads++) {
        ex_pool_start(&crew, threads);
        memset(&t, 0, sizeof t);
        for (round = 0; round < 50; round++)
            for (k = 0; k < 6; k++) ex_pool_run(&crew, counts[k], count_task, &t);
        ex_pool_stop(&crew);
        for (i = 0; i < 1000; i++) {
            for (want = 0, k = 0; k < 6; k++) want += counts[k] > i ? 50 : 0;
            if (t.seen[i] != want) break;
        }
        CHECK(i == 1000);
    }
}

/* ---- shapes --------------------------------------------------------------------------------------------------- */

static double volume(const ex_mesh *m)
{
    double v = 0;
    int i;
    for (i = 0; i < m->triangle_count; i++) {
        const int *t = m->triangles + 3 * i;
        v += (double)fsi_v3_dot(m->vertices[t[0]], fsi_v3_cross(m->vertices[t[1]], m->vertices[t[2]])) / 6;
    }
    return v;
}

/* Every directed edge a-b has its opposite b-a once: closed and oriented. Counted in a table of vertex pairs. */
static int is_closed(const ex_mesh *m)
{
    int n = m->vertex_count, i, k, good = 1;
    signed char *balance = (signed char *)ex_alloc(NULL, (size_t)n * (size_t)n, 1);
    memset(balance, 0, (size_t)n * (size_t)n);
    for (i = 0; i < m->triangle_count; i++)
        for (k = 0; k < 3; k++) {
            int a = m->triangles[3 * i + k], b = m->triangles[3 * i + (k + 1) % 3];
            if (balance[a * n + b]++) good = 0;
        }
    for (i = 0; i < n; i++)
        for (k = 0; k < n; k++) good = good && balance[i * n + k] == balance[k * n + i];
    free(balance);
    return good;
}

static void check_solid(ex_mesh m, double want, double tol)
{
    CHECK(is_closed(&m));
    CHECK_NEAR(volume(&m), want, tol);
    ex_mesh_free(&m);
}

static void test_shapes_are_closed_and_have_their_volume(void)
{
    fsi_box3 box;
    ex_mesh two = ex_sphere(fsi_v3(3, 0, 0), 1, 0), other = ex_sphere(fsi_v3(0, 0, 0), 1, 0), g;
    double ico = 2.53615071; /* icosahedron in the unit sphere */
    box.lo = fsi_v3(-1, 0, 2);
    box.hi = fsi_v3(1, 3, 3);
    check_solid(ex_box(box, 0), 6, 1e-5);
    check_solid(ex_box(box, 1), -6, 1e-5);
    check_solid(ex_sphere(fsi_v3(1, 2, 3), 2, 4), 4 * FSI_PI / 3 * 8, 0.1);
    check_solid(ex_torus(1, 0.25, 96, 48), 2 * FSI_PI * FSI_PI * 0.0625, 0.01);
    check_solid(ex_knot(2, 3, 0.4, 120, 16), FSI_PI * 0.16 * 31.9, 0.8); /* Pappus: cross-section times length 31.9 */
    ex_mesh_add(&two, &other);
    ex_mesh_move(&two, 2, fsi_v3(5, 5, 5));
    check_solid(two, 2 * 8 * ico, 1e-3);
    ex_mesh_free(&other);
    g = ex_grid(fsi_v3(0, 0, 1), fsi_v3(2, 3, 1), 4, 5);
    CHECK(g.vertex_count == 30 && g.triangle_count == 40);
    CHECK_NEAR(volume(&g), 2.0 * 3 * 1 / 3, 1e-5); /* of the cone over it */
    ex_mesh_free(&g);
}

static void test_fitted_vertices_stand_in_the_box(void)
{
    ex_mesh m = ex_knot(2, 3, 0.4, 60, 8);
    fsi_box3 box, own = fsi_box3_empty();
    int i;
    box.lo = fsi_v3(1, 2, 3);
    box.hi = fsi_v3(3, 4, 9);
    ex_fit(m.vertices, m.vertex_count, box);
    for (i = 0; i < m.vertex_count; i++) own = fsi_box3_grow(own, m.vertices[i]);
    CHECK_NEAR(own.lo.z, 3, 1e-5);
    CHECK_NEAR(own.lo.x + own.hi.x, 4, 1e-5);
    CHECK_NEAR(fsi_max(own.hi.x - own.lo.x, own.hi.y - own.lo.y), 2, 1e-5);
    CHECK(fsi_box3_overlap(own, fsi_box3_inflate(box, (fsi_real)1e-5)) && own.hi.z < 9);
    ex_mesh_free(&m);
}

/* ---- renderer ------------------------------------------------------------------------------------------------- */

static ex_app quiet_app(void)
{
    ex_app app;
    ex_init(&app, "test", "A test.");
    app.context = fsi_default_context();
    return app;
}

/* Looks down at the square [-1, 1]^2 without perspective, 200 x 200 pixels, one sample each, plain colours. */
static ex_scene flat_scene(ex_app *app)
{
    ex_scene s = ex_scene_begin(app);
    fsi_box3 box;
    box.lo = fsi_v3(-1, -1, 0);
    box.hi = fsi_v3(1, 1, 0);
    s.width = s.height = 200;
    s.samples = 1;
    ex_look_at_flat(&s, box);
    s.parallel = 2; /* without the margin */
    s.eye = fsi_v3(0, 0, 5);
    return s;
}

/* The rim of a prism of 24 sides is an edge, though the triangles of its caps, fans around a corner, are of all sizes;
   its side is round. */
static void test_round_sides_are_smooth_and_rims_are_sharp(void)
{
    enum { SIDES = 24 };
    ex_app app = quiet_app();
    ex_scene s = ex_scene_begin(&app);
    fsi_vec3 x[2 * SIDES];
    int e[3 * (4 * SIDES - 4)], k, c, n = 0;
    for (k = 0; k < 2 * SIDES; k++)
        x[k] = fsi_v3((fsi_real)cos(2 * FSI_PI * (k % SIDES) / SIDES), (fsi_real)sin(2 * FSI_PI * (k % SIDES) / SIDES),
                      k < SIDES ? 0 : 1);
    for (k = 0; k < SIDES; k++) {
        const int i = k, j = (k + 1) % SIDES, t[2][3] = {{i, j, j + SIDES}, {i, j + SIDES, i + SIDES}},
                  cap[2][3] = {{0, j, i}, {SIDES, i + SIDES, j + SIDES}};
        for (c = 0; c < 6; c++) e[n++] = t[c / 3][c % 3];
        for (c = 0; c < 6 && i > 0 && j > 0; c++) e[n++] = cap[c / 3][c % 3];
    }
    ex_draw_mesh(&s, x, NULL, 2 * SIDES, e, n / 3, 0xffffff);
    CHECK(s.count[EX__TRIS] == 4 * SIDES - 4);
    for (k = 0; k < s.count[EX__TRIS]; k++) {
        const ex__tri *t = &s.tris[k];
        const int cap = t->p[0].z == t->p[1].z && t->p[0].z == t->p[2].z;
        for (c = 0; c < 3; c++) {
            CHECK_NEAR(fabsf(t->n[c].z), cap, 1e-6);
            if (!cap) CHECK_NEAR(t->n[c].x * t->p[c].x + t->n[c].y * t->p[c].y, 1, 0.004);
        }
    }
    ex_scene_end(&s);
}

/* From any side and with any axis up, a box fills the picture: its corners are inside and one is close to the rim. */
static void test_camera_shows_the_whole_box(void)
{
    fsi_box3 box;
    int k, turn;
    ex_app app = quiet_app();
    box.lo = fsi_v3(-1, 2, 3);
    box.hi = fsi_v3(4, 3, (fsi_real)3.5);
    for (turn = 0; turn < 12; turn++) {
        ex_scene s = ex_scene_begin(&app);
        double rim = 0;
        s.up = fsi_v3(turn % 3 == 0, turn % 3 == 1, turn % 3 == 2);
        ex_look_at_box(&s, box, 37.0 * turn, 10 + 5 * turn);
        ex__set_up(&s);
        for (k = 0; k < 8; k++) {
            float q[3];
            ex__project(&s.camera.view, ex__to_view(&s.camera.view, ex__narrow(ex__corner(box, k))), q);
            rim = fmax(rim, fmax(fabs((double)q[0] / 960 - 1), fabs((double)q[1] / 540 - 1)));
        }
        CHECK(rim > 0.85 && rim <= 1);
        CHECK(fsi_v3_dot(s.sun, s.up) > 0);
        ex_scene_end(&s);
    }
}

/* However high above the ground all of it floats, in the sun's view emptiness lies deeper than the ground: that is
   lit. */
static void test_ground_far_below_is_in_the_sun(void)
{
    ex_app app = quiet_app();
    ex_scene s = ex_scene_begin(&app);
    fsi_vec3 top = fsi_v3(0, 0, 10);
    fsi_box3 box;
    int k;
    box.lo = fsi_v3(-1, -1, 0);
    box.hi = fsi_v3(1, 1, 11);
    ex_look_at_box(&s, box, 25, 8);
    ex_draw_spheres(&s, &top, 1, 0.2, NULL, 0xff0000);
    ex__set_up(&s);
    for (k = 0; k < 4; k++)
        CHECK(ex__to_view(&s.sunlight.view, ex__narrow(ex__corner(box, k))).z < s.sunlight.view.back);
    ex_scene_end(&s);
}

static int count_red(const ex_image *im)
{
    int i, n = 0;
    for (i = 0; i < im->width * im->height; i++) n += im->rgb[3 * i] > 150 && im->rgb[3 * i + 1] < 50;
    return n;
}

static void test_triangles_that_share_edges_cover_each_sample_once(void)
{
    fsi_vec3 v[41];
    int t[3 * 40], i, x, y, gaps = 0;
    uint64_t seed = 5;
    ex_app app = quiet_app();
    ex_scene s = flat_scene(&app);
    float depth;
    v[0] = fsi_v3(0, 0, 0);
    for (i = 0; i < 40; i++) {
        double a = 2 * FSI_PI * i / 40, r = 0.5 + 0.4 * test_random(&seed);
        v[i + 1] = fsi_v3((fsi_real)(r * cos(a)), (fsi_real)(r * sin(a)), 0);
        t[3 * i] = 0;
        t[3 * i + 1] = i + 1;
        t[3 * i + 2] = (i + 1) % 40 + 1;
    }
    ex_draw_surface(&s, v, NULL, 41, t, 40); /* one layer of liquid: each sample gets its depth to the far end once */
    ex_render(&s);
    depth = s.camera.view.back - 5;
    for (y = 0; y < 200; y++)
        for (x = 0; x < 200; x++) {
            double px = (x + 0.5) / 100 - 1, py = 1 - (y + 0.5) / 100, r = sqrt(px * px + py * py);
            float d = s.camera.water_depth[y * 200 + x];
            if (r < 0.48 || r > 0.92) gaps += !(fabsf(d - (r < 0.48 ? depth : 0)) <= 1e-3f * depth);
            else gaps += !(d <= 0 || fabsf(d - depth) <= 1e-3f * depth);
        }
    CHECK(gaps == 0);
    ex_scene_end(&s);
}

static void test_spheres_and_discs_have_their_area(void)
{
    fsi_vec3 c = fsi_v3((fsi_real)0.1, (fsi_real)-0.2, 0);
    ex_app app = quiet_app();
    ex_scene s = flat_scene(&app);
    ex_draw_spheres(&s, &c, 1, 0.5, NULL, 0xff0000);
    CHECK_NEAR(count_red(ex_render(&s)), FSI_PI * 2500, 40);
    s.parallel = 0; /* seen from 5 m: the outline of the ball is where rays touch it */
    s.fov = 2 * atan(1.0 / 5) * 180 / FSI_PI;
    c = fsi_v3(0, 0, 0);
    ex_draw_spheres(&s, &c, 1, 0.5, NULL, 0xff0000);
    CHECK_NEAR(count_red(ex_render(&s)), FSI_PI * pow(500 * 0.5 / sqrt(25 - 0.25), 2), 40);
    ex_scene_end(&s);
}

static void test_what_is_closer_hides_what_is_behind(void)
{
    fsi_vec3 c[2];
    uint32_t rgb[2];
    int order;
    ex_app app = quiet_app();
    ex_scene s = flat_scene(&app);
    for (order = 0; order < 2; order++) {
        c[order] = fsi_v3(0, 0, 1);
        c[1 - order] = fsi_v3(0, 0, 0);
        rgb[order] = 0xff0000;
        rgb[1 - order] = 0x00ff00;
        ex_draw_spheres(&s, c, 2, 0.5, rgb, 0);
        CHECK_NEAR(count_red(ex_render(&s)), FSI_PI * 2500, 40);
    }
    ex_scene_end(&s);
}

/* Liquid seen from above: depth is the height of a closed box, or down to the solid inside it. */
static void test_liquid_is_as_thick_as_it_is(void)
{
    fsi_box3 box;
    ex_mesh m;
    fsi_vec3 c = fsi_v3((fsi_real)0.5, 0, 0);
    ex_app app = quiet_app();
    ex_scene s = flat_scene(&app);
    box.lo = fsi_v3((fsi_real)-0.9, (fsi_real)-0.9, (fsi_real)-0.5);
    box.hi = fsi_v3((fsi_real)0.9, (fsi_real)0.9, (fsi_real)0.75);
    m = ex_box(box, 0);
    ex_draw_surface(&s, m.vertices, NULL, m.vertex_count, m.triangles, m.triangle_count);
    ex_draw_spheres(&s, &c, 1, 0.25, NULL, 0xff0000);
    ex_render(&s);
    CHECK_NEAR(s.camera.water_depth[100 * 200 + 50], 1.25, 2e-3);
    CHECK_NEAR(s.camera.water_depth[100 * 200 + 150], 0.5, 2e-3);
    CHECK_NEAR(s.camera.water_depth[3 * 200 + 3], 0, 2e-3);
    ex_mesh_free(&m);
    ex_scene_end(&s);
}

static uint64_t picture_hash(int threads)
{
    fsi_vec3 balls[300];
    uint64_t seed = 9, hash;
    ex_app app;
    ex_scene s;
    ex_mesh knot = ex_knot(2, 3, 0.4, 90, 12), water = ex_sphere(fsi_v3(0, 0, 0), 3, 3);
    fsi_box3 box;
    const ex_image *im;
    int i;
    ex_init(&app, "test", "A test.");
    app.context = fsi_default_context();
    app.context.user = &app;
    app.context.parallel_for = ex__parallel_for;
    ex_pool_start(&app.pool, threads);
    s = ex_scene_begin(&app);
    s.width = 240;
    s.height = 136;
    box.lo = fsi_v3(-4, -4, -2);
    box.hi = fsi_v3(4, 4, 2);
    ex_look_at_box(&s, box, 40, 25);
    for (i = 0; i < 300; i++)
        balls[i] = fsi_v3((fsi_real)(8 * test_random(&seed) - 4), (fsi_real)(8 * test_random(&seed) - 4),
                          (fsi_real)(4 * test_random(&seed) - 2));
    ex_draw_spheres(&s, balls, 300, 0.1, NULL, 0x3366cc);
    ex_draw_mesh(&s, knot.vertices, NULL, knot.vertex_count, knot.triangles, knot.triangle_count, 0xdd8844);
    ex_draw_surface(&s, water.vertices, NULL, water.vertex_count, water.triangles, water.triangle_count);
    ex_draw_box(&s, box, 1.5, 0x444444);
    im = ex_render(&s);
    hash = fsi_hash(im->rgb, (size_t)(3 * im->width * im->height), 0);
    ex_scene_end(&s);
    ex_pool_stop(&app.pool);
    ex_mesh_free(&knot);
    ex_mesh_free(&water);
    return hash;
}

static void test_pictures_do_not_depend_on_threads(void)
{
    uint64_t one = picture_hash(1);
    CHECK(picture_hash(2) == one);
    CHECK(picture_hash(3) == one);
    CHECK(picture_hash(7) == one);
}

/* Far too large, behind the eye, degenerate, NaN, or nothing at all. */
static void test_renderer_survives_odd_scenes(void)
{
    static const int tri[3] = { 0, 1, 2 };
    fsi_vec3 v[3], bad = fsi_v3(0, 0, 0);
    ex_app app = quiet_app();
    ex_scene s = ex_scene_begin(&app);
    s.width = 120;
    s.height = 80;
    CHECK(ex_render(&s)->rgb[0] > 100); /* the backdrop */
    s.eye = fsi_v3(0, 0, 1);
    s.target = fsi_v3(1, 0, 1);
    s.ground = 0;
    v[0] = fsi_v3(-100, -100, 0);
    v[1] = fsi_v3(300, -100, 0);
    v[2] = fsi_v3(-100, 300, 0);
    ex_draw_mesh(&s, v, NULL, 3, tri, 1, 0xff0000); /* a floor that runs below and behind the eye */
    s.flat = 1;
    CHECK_NEAR(count_red(ex_render(&s)), 120 * 40, 130);
    s.flat = 0;
    v[2] = v[1];
    ex_draw_mesh(&s, v, NULL, 3, tri, 1, 0xff0000);
    ex_draw_line(&s, v[0], v[0], 2, 0);
    ex_draw_line(&s, fsi_v3(-5, 0, 1), fsi_v3(5, 0, 1), 2, 0);
    ex_draw_spheres(&s, &s.eye, 1, 0.5, NULL, 0xff0000);
    ex_render(&s);
    bad.x = (fsi_real)test_nan();
    v[1] = bad;
    ex_draw_spheres(&s, &bad, 1, 0.5, NULL, 0xff0000);
    ex_draw_mesh(&s, v, NULL, 3, tri, 1, 0xff0000);
    ex_draw_surface(&s, v, NULL, 3, tri, 1);
    ex_draw_line(&s, v[0], bad, 2, 0);
    ex_render(&s);
    ex_scene_end(&s);
}

/* ---- pictures ------------------------------------------------------------------------------------------------- */

static void test_colour_maps_grow_lighter(void)
{
    int i, last = -1;
    CHECK(ex_map_color(EX_MAP_WATER, -3) == 0x11519d && ex_map_color(EX_MAP_WATER, 9) == 0xf2f8f8);
    CHECK(ex_map_color(EX_MAP_HEAT, test_nan()) == 0x808080);
    for (i = 0; i <= 100; i++) {
        uint32_t c = ex_map_color(EX_MAP_HEAT, i / 100.0);
        int light = (int)(2126 * pow(c >> 16 & 255u, 2.2) / 1e6 + 7152 * pow(c >> 8 & 255u, 2.2) / 1e6 +
                          722 * pow(c & 255u, 2.2) / 1e6);
        CHECK(light >= last);
        last = light;
    }
}

static void test_texts_are_as_wide_as_said(void)
{
    ex_image im = ex_image_make(300, 40, 0xffffff);
    int x, y, lo = 300, hi = 0;
    ex_text(&im, 20, 30, 14, EX_LEFT, 0, "Hg 017~|");
    for (y = 0; y < 40; y++)
        for (x = 0; x < 300; x++)
            if (im.rgb[3 * (y * 300 + x)] < 128) { lo = x < lo ? x : lo; hi = x > hi ? x : hi; }
    CHECK_NEAR(lo, 20, 1.5);
    CHECK_NEAR(hi + 1 - lo, ex_text_width("Hg 017~|", 14), 2.5);
    CHECK_NEAR(ex_text_width("111", 14), ex_text_width("888", 14), 1e-12);
    ex_text(&im, -50, 500, 14, EX_UPWARD, 0, "\x80 outside");
    ex_image_free(&im);
}

static void test_plots_take_any_data(void)
{
    double x[4], y[4], huge[2];
    ex_plot plot = ex_plot_begin("title", "x", "y");
    ex_image im;
    int i;
    for (i = 0; i < 4; i++) { x[i] = i; y[i] = i == 2 ? test_nan() : 7; }
    huge[0] = 1e-300;
    huge[1] = 1e300;
    im = ex_plot_draw(&plot);
    ex_image_free(&im);
    ex_plot_series(&plot, "constant", x, y, 4, EX_MARK_LINE);
    im = ex_plot_draw(&plot);
    ex_image_free(&im);
    ex_plot_series(&plot, "huge", huge, huge, 2, EX_MARK_DASHES);
    ex_plot_series(&plot, "none", x, y, 0, EX_MARK_DOTS);
    im = ex_plot_draw(&plot);
    CHECK(im.width == 900 && im.height == 560);
    ex_image_free(&im);
    CHECK_NEAR(ex__tick(0.6, 6), 0.1, 1e-12);
    CHECK_NEAR(ex__tick(7, 6), 2, 1e-12);
    CHECK_NEAR(ex__tick(23, 6), 5, 1e-12);
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

/* Whether a file starts with `begin`; removes it. */
static int starts_with(const char *path, const char *begin)
{
    char have[16];
    size_t n = strlen(begin), got;
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    got = fread(have, 1, n, file);
    fclose(file);
    remove(path);
    return got == n && memcmp(have, begin, n) == 0;
}

static void test_files_are_written_where_asked(void)
{
    static const char *const args[] = { "--out", "build/test_example/out", "--write", "vtp" };
    ex_app app;
    switches sw;
    fsi_vec3 x = fsi_v3(1, 2, 3);
    ex_image im = ex_image_make(5, 4, 0x336699);
    if (!CHECK(parse(&app, &sw, 4, args))) return;
    ex_save_frame(&app, &im, 3); /* parse sets images to 0 */
    CHECK(!starts_with("build/test_example/out/test_0003.png", ""));
    app.images = 1;
    ex_save_frame(&app, &im, 3);
    CHECK(starts_with("build/test_example/out/test_0003.png", "\x89PNG"));
    ex_write_particles(&app, "x", 0, &x, &x, 1);
    CHECK(starts_with("build/test_example/out/test_x_0000.vtp", "<?xml"));
    CHECK(starts_with("build/test_example/out/test_x.pvd", "<?xml"));
    app.write = EX_WRITE_PLY;
    ex_write_particles(&app, "x", 1, &x, NULL, 1);
    CHECK(starts_with("build/test_example/out/test_x_0001.ply", "ply"));
    ex_image_free(&im);
    CHECK(ex_end(&app) == 0);
}

/* ---- drags ------------------------------------------------------------------------------------------------------- */

/* A pool with a jelly for half a second, with the switches of drags; hash of both at the end. */
static uint64_t dragged(int argc, const char *const *args, int *drags)
{
    char *argv[8];
    pool p = pool_of(2, 12);
    block b = block_make(3, 3, 0, 0.08);
    ex_drags d;
    ex_app app;
    uint64_t hash;
    int k;
    argv[0] = (char *)(uintptr_t)"test";
    for (k = 0; k < argc; k++) argv[k + 1] = (char *)(uintptr_t)args[k];
    memset(&d, 0, sizeof d);
    ex_init(&app, "test", "A test of drags.");
    app.images = 0;
    ex_drags_options(&app, &d);
    CHECK(ex_begin(&app, argc + 1, argv));
    pool_begin(&p);
    pool_add(&p, &b, 0.4, 0.3);
    pool_immerse(&p);
    pool_fill(&p, 0.5);
    for (k = 0; k < 30; k++) {
        ex_drags_step(&app, &d, p.w.s, 1.0 / 60);
        if (!step_ok(p.s, 1.0 / 60)) break;
    }
    hash = pool_hash(&p);
    *drags = d.count;
    ex_drags_free(&d);
    pool_end(&p);
    block_free(&b);
    CHECK(ex_end(&app) == 0);
    return hash;
}

/* What --record has written, --drag does again, to the same bits; and it matters. */
static void test_recorded_drags_are_replayed(void)
{
    static const char *const path = "build/test_example/drags.txt";
    static const char *const record[6] = { "--wild", "0.4", "--seed", "3", "--record", "build/test_example/drags.txt" };
    static const char *const replay[2] = { "--drag", "build/test_example/drags.txt" };
    int count, again, none;
    uint64_t first, second;
    ex_make_folder("build/test_example");
    first = dragged(6, record, &count);
    second = dragged(2, replay, &again);
    CHECK(count == 1 && again == 1);
    CHECK(first == second);
    CHECK(dragged(0, NULL, &none) != first && none == 0);
    CHECK(starts_with(path, "drag 0"));
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_switches_are_read);
    RUN(test_wrong_switches_are_refused);
    RUN(test_threads_run_each_task_once);
    RUN(test_shapes_are_closed_and_have_their_volume);
    RUN(test_fitted_vertices_stand_in_the_box);
    RUN(test_round_sides_are_smooth_and_rims_are_sharp);
    RUN(test_camera_shows_the_whole_box);
    RUN(test_ground_far_below_is_in_the_sun);
    RUN(test_triangles_that_share_edges_cover_each_sample_once);
    RUN(test_spheres_and_discs_have_their_area);
    RUN(test_what_is_closer_hides_what_is_behind);
    RUN(test_liquid_is_as_thick_as_it_is);
    RUN(test_pictures_do_not_depend_on_threads);
    RUN(test_renderer_survives_odd_scenes);
    RUN(test_colour_maps_grow_lighter);
    RUN(test_texts_are_as_wide_as_said);
    RUN(test_plots_take_any_data);
    RUN(test_files_are_written_where_asked);
    RUN(test_recorded_drags_are_replayed);
    return TEST_END();
}
