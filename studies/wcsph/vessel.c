/* cc -O3 -I. studies/wcsph/vessel.c -lm -o vessel && ./vessel
   SPDX-License-Identifier: MIT

   A jug made of a single layer of samples holds water: it is carried, tilted over a bowl of the same kind, and emptied.
   No liquid leaks through either. The jug is moved as told (one-way), the bowl stands. crossed= counts particles that
   passed through their sheets: the way of each in the vessel's frame, from step to step, as a ray against the
   triangles, apart from all that the simulator looks at. in_jug=, in_bowl=, spilled= say where the water is in the end,
   as shares. --fall is the paper's scene (its figure 6): the bowl, empty, falls into a basin, is moved by the liquid
   (two-way), floats, and stays dry as long as nothing comes over its rim: wet= counts particles in it; draft= is how
   deep it floats over what Archimedes asks. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_wcsph.h"
#include "../../examples/kit/wcsph_tally.h"

#define FRAME 0.05    /* seconds between two pictures */
#define AROUND 40     /* corners of a ring */
#define JUG 0.1       /* radius of the jug [m]; it is 0.24 high */
#define BOWL 0.2      /* of the bowl */
#define LIFT 0.36     /* how high the jug is carried */
#define WAY 0.33      /* how far */
#define TILT 2.0      /* how far it is turned [rad] */
#define BOWL_MASS 3.2 /* [kg], --fall */

/* Profiles of the vessels, radius and height, from the middle of the bottom to the rim, in units of their radii. */
#define RINGS 7
static const double jug_profile[RINGS][2] = {{0, 0},      {0.55, 0},  {0.92, 0.12}, {1, 0.5},
                                             {0.95, 1.2}, {0.9, 1.9}, {0.98, 2.4}};
static const double bowl_profile[RINGS][2] = {{0, 0},      {0.35, 0.02}, {0.65, 0.13}, {0.84, 0.31},
                                              {0.94, 0.5}, {0.98, 0.7},  {1, 0.9}};

typedef struct vessel {
    fsi_mesh *mesh;       /* in its own frame, axis z, bottom at 0 */
    fsi_body body;        /* pose: of the centre */
    double profile[RINGS][2];
    fsi_vec3 center;      /* of mass, in that frame */
    int obstacle;
    fsi_vec3 *before;     /* positions of the particles at the last look, in that frame */
    long long crossed;
} vessel;

/* ---- vessels ---------------------------------------------------------------------------------------------------- */

/* spout: how far the rim is drawn out towards x, in units of the radius. */
static void make_vessel(ex_app *app, vessel *v, const double (*profile)[2], double radius, double spout)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    ex_mesh m = ex_mesh_make(1 + AROUND * (RINGS - 1), AROUND * (2 * RINGS - 3));
    int i, j, *e = m.triangles;
    memset(v, 0, sizeof *v);
    m.vertices[0] = fsi_v3(0, 0, 0);
    for (i = 0; i < RINGS; i++) {
        v->profile[i][0] = radius * profile[i][0];
        v->profile[i][1] = radius * profile[i][1];
        for (j = 0; j < AROUND && i > 0; j++) {
            const double a = 2 * FSI_PI * j / AROUND, turn = a > FSI_PI ? a - 2 * FSI_PI : a,
                         up = profile[i][1] / profile[RINGS - 1][1];
            const double r = v->profile[i][0] + spout * radius * pow(up, 6) * exp(-8 * turn * turn);
            m.vertices[1 + AROUND * (i - 1) + j] =
                fsi_v3((fsi_real)(r * cos(a)), (fsi_real)(r * sin(a)), (fsi_real)v->profile[i][1]);
        }
    }
    for (i = 0; i < RINGS - 1; i++)
        for (j = 0; j < AROUND; j++) { /* seen from inside */
            const int k = (j + 1) % AROUND, low = 1 + AROUND * (i - 1), high = 1 + AROUND * i;
            *e++ = i > 0 ? low + j : 0;
            *e++ = high + j;
            *e++ = high + k;
            if (i == 0) continue;
            *e++ = low + j;
            *e++ = high + k;
            *e++ = low + k;
        }
    d.context = &app->context;
    d.vertices = m.vertices;
    d.vertex_count = m.vertex_count;
    d.elements = m.triangles;
    d.element_count = m.triangle_count;
    d.kind = FSI_MESH_TWO_SIDED;
    ex_check(app, fsi_mesh_create(&v->mesh, &d));
    ex_mesh_free(&m);
}

/* mass 0: moved as told. The frame of the mesh then stands at `bottom`. */
static void add_vessel(ex_app *app, vessel *v, ex_wcsph_tally *tally, fsi_wcsph *s, double mass, double slip,
                       fsi_vec3 bottom)
{
    fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
    fsi_mass_properties p;
    ex_check(app, fsi_mesh_mass(v->mesh, 1000, (fsi_real)0.001, &p));
    if (mass > 0) ex_check(app, fsi_mesh_mass(v->mesh, (fsi_real)(1000 * mass / (double)p.mass), (fsi_real)0.001, &p));
    v->body = fsi_body_from_mass(&p);
    v->center = v->body.pose.position;
    if (!(mass > 0)) v->body.mode = FSI_BODY_PRESCRIBED;
    v->body.end = v->body.pose;
    o.mesh = v->mesh;
    o.body = &v->body;
    o.slip = (fsi_real)slip;
    o.surface = FSI_WCSPH_SURFACE_SAMPLES;
    ex_check(app, fsi_wcsph_add_obstacle(s, &o, &v->obstacle));
    ex_wcsph_watch(app, tally, s, v->mesh, &v->body, v->obstacle);
    v->body.pose.position = v->body.end.position = fsi_v3_add(bottom, v->center);
    ex_check(app, fsi_wcsph_teleport_obstacle(s, v->obstacle));
}

static fsi_vec3 to_vessel(const vessel *v, fsi_vec3 x)
{
    return fsi_v3_add(fsi_pose_local(v->body.pose, x), v->center);
}
static fsi_vec3 to_world(const vessel *v, fsi_vec3 x) { return fsi_pose_point(v->body.pose, fsi_v3_sub(x, v->center)); }

/* x, in the vessel's frame, is between its walls and below its rim. */
static int in_vessel(const vessel *v, fsi_vec3 x)
{
    const double r = hypot((double)x.x, (double)x.y), z = (double)x.z;
    int i;
    for (i = 1; i < RINGS; i++) {
        const double *a = v->profile[i - 1], *b = v->profile[i];
        if (z >= a[1] && z < b[1]) return r < a[0] + (z - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
    }
    return 0;
}

static int count_in(const vessel *v, const fsi_wcsph *s)
{
    int i, count = 0;
    for (i = 0; i < s->count; i++) count += in_vessel(v, to_vessel(v, s->position[i]));
    return count;
}

/* Counts what has gone through the sheet since the last look. */
static void look_at_vessel(vessel *v, const fsi_wcsph *s)
{
    const fsi_box3 reach = v->mesh->box;
    int i;
    for (i = 0; i < s->count; i++) {
        const fsi_vec3 x = to_vessel(v, s->position[i]), p = v->before[i];
        fsi_box3 way = fsi_box3_grow(fsi_box3_grow(fsi_box3_empty(), p), x);
        if (fsi_box3_overlap(way, reach)) v->crossed += fsi_mesh_ray(v->mesh, p, fsi_v3_sub(x, p), 1).face >= 0;
        v->before[i] = x;
    }
}

static void begin_look(vessel *v, const fsi_wcsph *s)
{
    int i;
    v->before = (fsi_vec3 *)ex_alloc(v->before, (size_t)s->count, sizeof *v->before);
    for (i = 0; i < s->count; i++) v->before[i] = to_vessel(v, s->position[i]);
}

/* ---- the jug ---------------------------------------------------------------------------------------------------- */

static double smooth(double t, double from, double to)
{
    const double x = fmin(fmax((t - from) / (to - from), 0), 1);
    return x * x * (3 - 2 * x);
}

/* Where the jug's centre is at a time: lifted, carried to the side, and turned about y. */
static fsi_pose jug_pose(const vessel *v, fsi_vec3 start, double t)
{
    fsi_pose p;
    p.position = fsi_v3_add(start, v->center);
    p.position.x += (fsi_real)(WAY * smooth(t, 0.4, 1.1));
    p.position.z += (fsi_real)(LIFT * smooth(t, 0.2, 0.9));
    p.orientation = fsi_quat_from_axis_angle(fsi_v3(0, 1, 0), (fsi_real)(TILT * smooth(t, 1.0, 2.4)));
    return p;
}

static void fill_jug(ex_app *app, vessel *v, fsi_wcsph *s, double share)
{
    const double dx = (double)s->desc.spacing, top = share * v->profile[RINGS - 1][1];
    const int n = (int)(1.2 * JUG / dx) + 1;
    fsi_vec3 *x = NULL;
    int i, j, k, count = 0;
    for (k = 0; (k + 0.5) * dx < top; k++) for (j = -n; j < n; j++) for (i = -n; i < n; i++) {
        const fsi_vec3 p = fsi_v3((fsi_real)((i + 0.5) * dx), (fsi_real)((j + 0.5) * dx), (fsi_real)((k + 0.5) * dx));
        if (!in_vessel(v, p) || fsi_mesh_closest(v->mesh, p, (fsi_real)dx, -1).face >= 0) continue;
        if (count % 1024 == 0) x = (fsi_vec3 *)ex_alloc(x, (size_t)count + 1024, sizeof *x);
        x[count++] = to_world(v, p);
    }
    if (count == 0) ex_die("--res is too small: no particle fits into the jug");
    ex_check(app, fsi_wcsph_add_particles(s, x, NULL, count));
    ex_check(app, fsi_wcsph_settle_density(s, to_world(v, fsi_v3(0, 0, (fsi_real)top))));
    free(x);
}

/* ---- pictures --------------------------------------------------------------------------------------------------- */

static void draw_vessel(ex_scene *scene, const vessel *v, uint32_t rgb)
{
    const fsi_mesh *m = v->mesh;
    fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)m->vertex_count, sizeof *x);
    int i, e;
    for (i = 0; i < m->vertex_count; i++) x[i] = to_world(v, m->vertices[i]);
    ex_draw_walls(scene, x, m->vertex_count, m->faces, m->face_count, rgb);
    for (e = 0; e < 3 * m->face_count; e++) /* the rim */
        if (m->face_neighbor[e] < 0)
            ex_draw_line(scene, x[m->faces[e]], x[m->faces[e % 3 == 2 ? e - 2 : e + 1]], 2.5, 0x5b4636);
    free(x);
}

static void draw(ex_app *app, ex_scene *scene, fsi_surface *skin, const fsi_wcsph *s, vessel *const *vessels, int count,
                 int frame)
{
    static const uint32_t rgb[2] = { 0xc98a4b, 0xd9c3a0 };
    int k;
    ex_draw_particles(app, scene, skin, s->position, s->count);
    for (k = 0; k < count; k++) draw_vessel(scene, vessels[k], rgb[k]);
    if (count == 1) ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    ex_save_scene(app, scene, frame, "%.2f s", s->time);
}

/* ---- scenes ----------------------------------------------------------------------------------------------------- */

static fsi_wcsph *make_water(ex_app *app, fsi_box3 room, double depth, double speed)
{
    fsi_wcsph_desc d = fsi_wcsph_default_desc();
    fsi_wcsph *s;
    d.context = &app->context;
    d.spacing = (fsi_real)(2 * JUG / app->res);
    d.depth = (fsi_real)depth;
    d.speed = (fsi_real)speed;
    d.domain = room;
    d.domain_slip = 1;
    ex_check(app, fsi_wcsph_create(&s, &d));
    return s;
}

static void pour_figures(ex_app *app, const fsi_wcsph *s, const vessel *jug, const vessel *bowl)
{
    const double all = s->count, a = count_in(jug, s), b = count_in(bowl, s);
    ex_figure(app, "crossed", "%.0f", (double)(jug->crossed + bowl->crossed));
    ex_figure(app, "in_jug", "%.4f", a / all);
    ex_figure(app, "in_bowl", "%.4f", b / all);
    ex_figure(app, "spilled", "%.4f", (all - a - b) / all);
}

/* The draft of the bowl from its lowest point, over that at which it displaces its weight. */
static double draft_ratio(const vessel *v, double level)
{
    double z, volume = 0, dz = v->profile[RINGS - 1][1] / 2000;
    int i;
    for (z = dz / 2; volume < BOWL_MASS / 1000 && z < v->profile[RINGS - 1][1]; z += dz)
        for (i = 1; i < RINGS; i++) {
            const double *a = v->profile[i - 1], *b = v->profile[i];
            const double r = z >= a[1] && z < b[1] ? a[0] + (z - a[1]) / (b[1] - a[1]) * (b[0] - a[0]) : 0;
            volume += FSI_PI * r * r * dz;
        }
    return (level - (double)to_world(v, fsi_v3(0, 0, 0)).z) / z;
}

static void run_pour(ex_app *app, double slip)
{
    ex_wcsph_tally tally = { 0 };
    ex_scene scene = ex_scene_of_box(app, fsi_v3((fsi_real)-0.13, (fsi_real)-0.22, 0),
                                     fsi_v3((fsi_real)0.78, (fsi_real)0.22, (fsi_real)0.6), 12, 22);
    fsi_surface_desc skin = fsi_surface_default_desc();
    fsi_surface *surface;
    fsi_wcsph *s;
    fsi_box3 room;
    vessel jug, bowl, *both[2];
    const fsi_vec3 start = fsi_v3(0, 0, (fsi_real)0.03);
    int frame, part;

    room.lo = fsi_v3((fsi_real)-0.4, (fsi_real)-0.5, 0);
    room.hi = fsi_v3((fsi_real)1.1, (fsi_real)0.5, 2);
    s = make_water(app, room, 0.3, sqrt(2 * 9.81 * (LIFT + 0.2)));
    make_vessel(app, &jug, jug_profile, JUG, 0.25);
    make_vessel(app, &bowl, bowl_profile, BOWL, 0);
    add_vessel(app, &jug, &tally, s, 0, slip, start);
    add_vessel(app, &bowl, &tally, s, 0, slip, fsi_v3((fsi_real)0.54, 0, (fsi_real)0.03));
    fill_jug(app, &jug, s, 0.75);
    begin_look(&jug, s);
    begin_look(&bowl, s);
    both[0] = &jug;
    both[1] = &bowl;
    skin.context = &app->context;
    skin.spacing = s->desc.spacing;
    ex_check(app, fsi_surface_create(&surface, &skin));

    for (frame = 0; frame < app->frames; frame++) {
        for (part = 1; part <= 20; part++) {
            const double end = (frame + part / 20.0) * FRAME;
            jug.body.end = jug_pose(&jug, start, end);
            ex_wcsph_step(app, &tally, s, end - s->time);
            look_at_vessel(&jug, s);
            look_at_vessel(&bowl, s);
        }
        app->sim_seconds = s->time;
        if (app->images) draw(app, &scene, surface, s, both, 2, frame);
        ex_write_particles(app, "water", frame, s->position, s->velocity, s->count);
        ex_progress(app, frame + 1);
    }
    app->hash = fsi_wcsph_hash(s);
    pour_figures(app, s, &jug, &bowl);
    ex_wcsph_figures(app, &tally, s);
    ex_wcsph_tally_end(&tally);
    ex_scene_end(&scene);
    fsi_surface_destroy(surface);
    fsi_wcsph_destroy(s);
    fsi_mesh_destroy(jug.mesh);
    fsi_mesh_destroy(bowl.mesh);
    free(jug.before);
    free(bowl.before);
}

static void run_fall(ex_app *app, double slip)
{
    ex_wcsph_tally tally = { 0 };
    fsi_surface_desc skin = fsi_surface_default_desc();
    fsi_surface *surface;
    fsi_wcsph *s;
    fsi_box3 room, water;
    ex_scene scene;
    vessel bowl, *one[1];
    double level, sum = 0;
    int frame, part, late = 0;

    room.lo = water.lo = fsi_v3(0, 0, 0);
    room.hi = fsi_v3((fsi_real)0.8, (fsi_real)0.6, 1);
    water.hi = fsi_v3(room.hi.x, room.hi.y, (fsi_real)0.25);
    s = make_water(app, room, 0.25, 0);
    make_vessel(app, &bowl, bowl_profile, BOWL, 0);
    add_vessel(app, &bowl, &tally, s, BOWL_MASS, slip, fsi_v3((fsi_real)0.4, (fsi_real)0.3, (fsi_real)0.32));
    ex_check(app, fsi_wcsph_fill_box(s, water, fsi_v3(0, 0, 0), NULL));
    ex_check(app, fsi_wcsph_settle_density(s, water.hi));
    begin_look(&bowl, s);
    one[0] = &bowl;
    level = (s->count * pow((double)s->desc.spacing, 3) + BOWL_MASS / 1000) / (double)(room.hi.x * room.hi.y);
    skin.context = &app->context;
    skin.spacing = s->desc.spacing;
    ex_check(app, fsi_surface_create(&surface, &skin));
    room.hi.z = (fsi_real)0.5;
    scene = ex_scene_of_box(app, room.lo, room.hi, 20, 20);

    for (frame = 0; frame < app->frames; frame++) {
        for (part = 1; part <= 20; part++) {
            const double end = (frame + part / 20.0) * FRAME;
            bowl.body.force = fsi_v3(0, 0, (fsi_real)(-9.81 * BOWL_MASS));
            ex_wcsph_step(app, &tally, s, end - s->time);
            look_at_vessel(&bowl, s);
            if (2 * frame < app->frames) continue;
            sum += draft_ratio(&bowl, level);
            late++;
        }
        app->sim_seconds = s->time;
        if (app->images) draw(app, &scene, surface, s, one, 1, frame);
        ex_write_particles(app, "water", frame, s->position, s->velocity, s->count);
        ex_progress(app, frame + 1);
    }
    app->hash = fsi_wcsph_hash(s);
    ex_figure(app, "crossed", "%.0f", (double)bowl.crossed);
    ex_figure(app, "wet", "%.0f", count_in(&bowl, s));
    ex_figure(app, "draft", "%.3f", late > 0 ? sum / late : 0);
    ex_wcsph_figures(app, &tally, s);
    ex_wcsph_tally_end(&tally);
    ex_scene_end(&scene);
    fsi_surface_destroy(surface);
    fsi_wcsph_destroy(s);
    fsi_mesh_destroy(bowl.mesh);
    free(bowl.before);
}

int main(int argc, char **argv)
{
    ex_app app;
    double slip = 1;
    int fall = 0;
    ex_init(&app, "vessel", "A jug of a single layer of samples is carried, tilted and emptied into a bowl.");
    app.res = 14;
    app.res_help = "particles across the jug: dx = 0.2 m / res";
    app.frames = 66;
    ex_flag(&app, "fall", &fall, "the paper's scene: an empty bowl falls into a basin");
    ex_real(&app, "slip", &slip, 0, 1, "e_t of the vessels");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 10 || app.res > 400) ex_die("--res is not between 10 and 400");
    if (fall) run_fall(&app, slip);
    else run_pour(&app, slip);
    return ex_end(&app);
}
