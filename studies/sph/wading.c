/* cc -O3 -I. studies/sph/wading.c -lm -o wading && ./wading
   SPDX-License-Identifier: MIT

   A vehicle drives through a ford at 5 m/s: body and chassis on one rigid body, four wheels with tread on one each, all
   prescribed. The wheels roll without slip, so that their treads go past the axles at 5 m/s and over the top at 10 m/s.
   Steps of 3, 6 and 9 ms (--dt) without substeps are what the method's paper (Liu et al., "Jeep wading") is about: in 9
   ms a tread moves 9 cm, as far as a wheel's rim is thick. inside= adds up, over all steps, the particles that winding
   numbers find in ground, body, chassis or wheels. --full is 1.6 million particles and 190,000 triangles.

      ____      ______                             ____  0
      bank \   /_|____\_   ->                     /
            \___O____O___________________________/      -0.7 m, water 0.5 m deep */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/shapes.h"
#include "fsi_sph.h"
#include "../../examples/kit/sph_tally.h"

#define FRAME 0.054       /* seconds between two pictures: whole steps of 3, 6 and 9 ms */
#define LENGTH 15.0       /* of the ford with its banks [m] */
#define WIDTH 4.5
#define DITCH 0.7         /* depth of the ditch */
#define WATER 0.5         /* depth of the water */
#define RAMP0 3.2         /* where the ditch begins, */
#define RAMP 2.8          /* length of its ramps */
#define RAMP1 13.2        /* and where it ends */
#define TREAD 0.4         /* outer radius of a wheel */
#define WHEELBASE 2.4
#define TRACK 1.4         /* between the middles of left and right wheels */
#define WHEEL_WIDTH 0.28
#define LUGS 16           /* of a tread */
#define START 1.4         /* x of the rear axle at the beginning */

enum { BODY, CHASSIS, WHEELS, PARTS = WHEELS + 4 }; /* wheels: rear left, rear right, front left, front right */

typedef struct part {
    fsi_mesh *mesh;   /* about the origin of its body */
    fsi_body *body;
    uint32_t rgb;
} part;

typedef struct vehicle {
    part parts[PARTS];
    fsi_body frame, wheels[4];
    double speed, radius;  /* [m/s]; of the circle that rolls: TREAD and the gap under it */
    double rear, front;    /* where on the ground the axles stand: x of the points below them */
    double turned[2];      /* of rear and front wheels [rad] */
} vehicle;

/* Height of the ground, and its slope: flat, down a ramp in half a cosine, flat, and up again. */
static double ground_at(double x, double *slope)
{
    double in = (x - RAMP0) / RAMP, out = (RAMP1 - x) / RAMP, u = in < out ? in : out;
    if (u <= 0 || u >= 1) {
        *slope = 0;
        return u <= 0 ? 0 : -DITCH;
    }
    *slope = (in < out ? -1 : 1) * DITCH * FSI_PI / 2 * sin(FSI_PI * u) / RAMP;
    return -DITCH * (1 - cos(FSI_PI * u)) / 2;
}

/* Centre of a circle that touches the ground at x. */
static fsi_vec3 axle_at(double x, double radius)
{
    double slope, z = ground_at(x, &slope), n = sqrt(1 + slope * slope);
    return fsi_v3((fsi_real)(x - radius * slope / n), 0, (fsi_real)(z + radius / n));
}

/* Where to stand for an axle that is `distance` from a point, ahead of it: by halving. */
static double find_ahead(fsi_vec3 from, double x, double distance, double radius)
{
    double lo = x, hi = x + 2 * distance;
    int k;
    for (k = 0; k < 60; k++) {
        double mid = (lo + hi) / 2;
        if ((double)fsi_v3_norm(fsi_v3_sub(axle_at(mid, radius), from)) < distance) lo = mid;
        else hi = mid;
    }
    return (lo + hi) / 2;
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

/* The ground: its profile as wide as the ford and a little more, 0.5 m thick, beyond the ends of the domain. */
static shape make_ground(void)
{
    shape s = shape_empty();
    outline o = outline_empty();
    fsi_pose upright;
    double slope;
    int i, n = 10;
    outline_add(&o, -0.5, -DITCH - 0.5);
    outline_add(&o, LENGTH + 0.5, -DITCH - 0.5);
    outline_add(&o, LENGTH + 0.5, 0);
    for (i = n; i >= 0; i--)
        outline_add(&o, RAMP1 - RAMP + RAMP * i / n, ground_at(RAMP1 - RAMP + RAMP * i / n, &slope));
    for (i = n; i >= 0; i--) outline_add(&o, RAMP0 + RAMP * i / n, ground_at(RAMP0 + RAMP * i / n, &slope));
    outline_add(&o, -0.5, 0);
    shape_extrude(&s, o.xy, o.n, -WIDTH / 2 - 0.5, WIDTH / 2 + 0.5);
    upright.position = fsi_v3(0, 0, 0);
    upright.orientation = fsi_quat_from_axis_angle(fsi_v3(1, 0, 0), (fsi_real)(FSI_PI / 2)); /* y to z, z to -y */
    shape_transform(&s, 0, upright);
    outline_free(&o);
    return s;
}

/* The body: its side view with arches over the wheels, from the middle between the axles. */
static shape make_body(void)
{
    shape s = shape_empty();
    outline o = outline_empty();
    fsi_pose upright;
    double bottom = 0.12, arch = 0.54, from = asin(bottom / arch);
    outline_add(&o, -1.95, bottom + 0.08);
    outline_arc(&o, -WHEELBASE / 2, 0, arch, FSI_PI - from, from, 8);
    outline_arc(&o, WHEELBASE / 2, 0, arch, FSI_PI - from, from, 8);
    outline_add(&o, 1.9, bottom + 0.08);
    outline_add(&o, 1.98, 0.4);
    outline_add(&o, 1.9, 0.66);
    outline_add(&o, 0.95, 0.78);
    outline_add(&o, 0.5, 1.3);
    outline_add(&o, 0.3, 1.36);
    outline_add(&o, -1.6, 1.34);
    outline_add(&o, -1.8, 1.24);
    outline_add(&o, -1.98, 0.7);
    shape_extrude(&s, o.xy, o.n, -0.85, 0.85);
    upright.position = fsi_v3(0, 0, 0);
    upright.orientation = fsi_quat_from_axis_angle(fsi_v3(1, 0, 0), (fsi_real)(FSI_PI / 2));
    shape_transform(&s, 0, upright);
    outline_free(&o);
    return s;
}

/* The chassis: a beam along the middle with two axles, seen from above. */
static shape make_chassis(void)
{
    static const double half[][2] = { { 1.7, 0.3 }, { 1.27, 0.3 }, { 1.27, 0.52 }, { 1.13, 0.52 }, { 1.13, 0.3 },
                                      { -1.13, 0.3 }, { -1.13, 0.52 }, { -1.27, 0.52 }, { -1.27, 0.3 }, { -1.7, 0.3 } };
    shape s = shape_empty();
    outline o = outline_empty();
    int i, n = (int)(sizeof half / sizeof half[0]);
    for (i = 0; i < n; i++) outline_add(&o, half[i][0], half[i][1]);
    for (i = n - 1; i >= 0; i--) outline_add(&o, half[i][0], -half[i][1]);
    shape_extrude(&s, o.xy, o.n, -0.1, 0.03);
    outline_free(&o);
    return s;
}

/* Radius of the tread at an angle: lugs 4 cm high with sloping flanks, four corners a lug. */
static fsi_vec3 tread_point(int corner, double y, double twist)
{
    static const double share[4] = { 0, 0.15, 0.5, 0.65 };
    double a = 2 * FSI_PI * (corner / 4 + share[corner % 4] + twist) / LUGS;
    double r = corner % 4 == 1 || corner % 4 == 2 ? TREAD : TREAD - 0.04;
    return fsi_v3((fsi_real)(r * cos(a)), (fsi_real)y, (fsi_real)(r * sin(a)));
}

/* Joins two rings of n vertices that stand in order of x to z; seen from outside when the second is at greater y. */
static void join_rings(shape *s, int a, int b, int n)
{
    int i;
    for (i = 0; i < n; i++) {
        int k = (i + 1) % n;
        shape_add_triangle(s, a + i, b + i, b + k);
        shape_add_triangle(s, a + i, b + k, a + k);
    }
}

/* One side of a wheel, from the ring `edge` inwards: the flank of the tyre, a rim that is set back, the hub. */
static void add_side(shape *s, int edge, int n, double y, double side)
{
    static const double r[2] = { 0.24, 0.2 }, back[2] = { 0, 0.05 };
    int i, k, first = s->ne, ring = edge, hub;
    for (k = 0; k < 2; k++) {
        int next = s->nx;
        for (i = 0; i < n; i++) {
            fsi_vec3 p = s->x[edge + i];
            double scale = r[k] / hypot((double)p.x, (double)p.z);
            shape_add_vertex(s, fsi_v3((fsi_real)(scale * (double)p.x), (fsi_real)(y - side * back[k]),
                                       (fsi_real)(scale * (double)p.z)));
        }
        join_rings(s, ring, next, n);
        ring = next;
    }
    hub = shape_add_vertex(s, fsi_v3(0, (fsi_real)(y - side * 0.02), 0));
    for (i = 0; i < n; i++) shape_add_triangle(s, ring + i, hub, ring + (i + 1) % n);
    if (side < 0) shape_turn_over(s, first);
}

/* A wheel around the axis y; its lugs form arrows that point the way it rolls. */
static shape make_wheel(void)
{
    shape s = shape_empty();
    int k, i, n = 4 * LUGS, ring[3];
    for (k = 0; k < 3; k++) {
        ring[k] = s.nx;
        for (i = 0; i < n; i++) shape_add_vertex(&s, tread_point(i, WHEEL_WIDTH * (k - 1) / 2, k == 1 ? 0.5 : 0));
    }
    join_rings(&s, ring[0], ring[1], n);
    join_rings(&s, ring[1], ring[2], n);
    add_side(&s, ring[0], n, -WHEEL_WIDTH / 2, -1);
    add_side(&s, ring[2], n, WHEEL_WIDTH / 2, 1);
    return s;
}

/* Every triangle cut in n * n; the points on common edges are made twice and welded by the mesh. */
static shape refine(const shape *coarse, int n)
{
    shape s = shape_empty();
    int t, i, j;
    for (t = 0; t < coarse->ne; t++) {
        fsi_vec3 a = coarse->x[coarse->e[3 * t]];
        fsi_vec3 u = fsi_v3_sub(coarse->x[coarse->e[3 * t + 1]], a), v = fsi_v3_sub(coarse->x[coarse->e[3 * t + 2]], a);
        int row = s.nx, next;
        for (j = 0; j <= n; j++)
            for (i = 0; i <= n - j; i++)
                shape_add_vertex(
                    &s, fsi_v3_madd(fsi_v3_madd(a, (fsi_real)i / (fsi_real)n, u), (fsi_real)j / (fsi_real)n, v));
        for (j = 0; j < n; j++, row = next) {
            next = row + n - j + 1;
            for (i = 0; i < n - j; i++) {
                shape_add_triangle(&s, row + i, row + i + 1, next + i);
                if (i < n - j - 1) shape_add_triangle(&s, row + i + 1, next + i + 1, next + i);
            }
        }
    }
    return s;
}

static fsi_mesh *make_mesh(ex_app *app, shape s, int pieces)
{
    fsi_mesh *mesh;
    if (pieces > 1) {
        shape fine = refine(&s, pieces);
        shape_free(&s);
        s = fine;
    }
    mesh = shape_mesh(app, &s, FSI_MESH_CLOSED, 0);
    shape_free(&s);
    return mesh;
}

/* ---- driving ---------------------------------------------------------------------------------------------------- */

/* The pose of the frame, its x axis from the rear axle to the front one. */
static fsi_pose frame_pose(fsi_vec3 rear, fsi_vec3 front)
{
    fsi_vec3 d = fsi_v3_sub(front, rear);
    fsi_pose p;
    p.position = fsi_v3_scale(fsi_v3_add(rear, front), (fsi_real)0.5);
    p.orientation = fsi_quat_from_axis_angle(fsi_v3(0, 1, 0), (fsi_real)-atan2((double)d.z, (double)d.x));
    return p;
}

/* Sets the ends of the coming step: the rear axle moves on by speed * dt, the front axle keeps its distance, and each
   wheel turns by the way of its axle over its radius. dt = 0 places all at the start. */
static void drive(vehicle *v, double dt)
{
    fsi_vec3 was[2], now[2];
    int k;
    was[0] = axle_at(v->rear, v->radius);
    was[1] = axle_at(v->front, v->radius);
    if (dt > 0) v->rear = find_ahead(was[0], v->rear, v->speed * dt, v->radius);
    now[0] = axle_at(v->rear, v->radius);
    v->front = find_ahead(now[0], v->rear, WHEELBASE, v->radius);
    now[1] = axle_at(v->front, v->radius);
    v->frame.end = frame_pose(now[0], now[1]);
    for (k = 0; k < 2; k++)
        if (dt > 0) v->turned[k] += (double)fsi_v3_norm(fsi_v3_sub(now[k], was[k])) / v->radius;
    for (k = 0; k < 4; k++) {
        fsi_pose *p = &v->wheels[k].end;
        p->position = fsi_v3_add(now[k / 2], fsi_v3(0, (fsi_real)(k % 2 ? -TRACK / 2 : TRACK / 2), 0));
        p->orientation = fsi_quat_from_axis_angle(fsi_v3(0, 1, 0), (fsi_real)fmod(v->turned[k / 2], 2 * FSI_PI));
    }
}

static void make_vehicle(ex_app *app, vehicle *v, int pieces)
{
    int k;
    memset(v, 0, sizeof *v);
    v->parts[BODY].mesh = make_mesh(app, make_body(), pieces);
    v->parts[CHASSIS].mesh = make_mesh(app, make_chassis(), pieces);
    v->parts[BODY].rgb = 0xc8553d;
    v->parts[CHASSIS].rgb = 0x59616b;
    v->frame = fsi_default_body();
    for (k = 0; k < PARTS; k++) v->parts[k].body = &v->frame;
    for (k = 0; k < 4; k++) {
        v->wheels[k] = fsi_default_body();
        v->parts[WHEELS + k].mesh = make_mesh(app, make_wheel(), pieces);
        v->parts[WHEELS + k].body = &v->wheels[k];
        v->parts[WHEELS + k].rgb = 0x3d434b;
    }
}

/* Fixes the meshes to their bodies, which are all at the origin, then sets everything on the bank. */
static void add_vehicle(ex_app *app, fsi_sph *s, vehicle *v)
{
    int k, id[PARTS];
    for (k = 0; k < PARTS; k++) {
        fsi_sph_obstacle_desc d = fsi_sph_default_obstacle_desc();
        d.mesh = v->parts[k].mesh;
        d.body = v->parts[k].body;
        ex_check(app, fsi_sph_add_obstacle(s, &d, &id[k]));
    }
    v->rear = START;
    drive(v, 0);
    v->frame.pose = v->frame.end;
    for (k = 0; k < 4; k++) v->wheels[k].pose = v->wheels[k].end;
    for (k = 0; k < PARTS; k++) ex_check(app, fsi_sph_teleport_obstacle(s, id[k]));
}

static void integrate(vehicle *v, double dt)
{
    int k;
    fsi_body_integrate(&v->frame, (fsi_real)dt);
    for (k = 0; k < 4; k++) fsi_body_integrate(&v->wheels[k], (fsi_real)dt);
}

/* ---- pictures --------------------------------------------------------------------------------------------------- */

static void draw_part(ex_scene *scene, const part *p)
{
    const fsi_mesh *m = p->mesh;
    fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)m->vertex_count, sizeof *x);
    int i;
    for (i = 0; i < m->vertex_count; i++) x[i] = fsi_pose_point(p->body->pose, m->vertices[i]);
    ex_draw_mesh(scene, x, NULL, m->vertex_count, m->faces, m->face_count, p->rgb);
    free(x);
}

/* The faces of the ground that look in one direction: drawn by themselves they keep an edge towards the others. */
static void draw_ground(ex_scene *scene, const fsi_mesh *m, fsi_vec3 direction)
{
    int *faces = (int *)ex_alloc(NULL, 3 * (size_t)m->face_count, sizeof *faces), f, n = 0;
    for (f = 0; f < m->face_count; f++)
        if ((double)fsi_v3_dot(m->face_normals[f], direction) > 0.5)
            memcpy(faces + 3 * n++, m->faces + 3 * f, 3 * sizeof *faces);
    ex_draw_mesh(scene, m->vertices, NULL, m->vertex_count, faces, n, 0xcbb894);
    free(faces);
}

/* Water as a surface, or as balls in the colour of their speed. */
static void draw(ex_app *app, ex_scene *scene, fsi_surface *surface, const fsi_sph *s, const vehicle *v,
                 const fsi_mesh *ground, int frame)
{
    uint32_t *colors = (uint32_t *)ex_alloc(NULL, (size_t)s->count, sizeof *colors);
    int k;
    if (surface) {
        ex_draw_particles(app, scene, surface, s->position, s->count);
    } else {
        ex_speed_colors(s->velocity, s->count, v->speed, colors);
        ex_draw_spheres(scene, s->position, s->count, (double)s->desc.spacing / 2, colors, 0);
    }
    for (k = 0; k < PARTS; k++) draw_part(scene, &v->parts[k]);
    draw_ground(scene, ground, fsi_v3(0, 0, 1));
    draw_ground(scene, ground, fsi_v3(0, -1, 0));
    ex_save_frame(app, ex_render(scene), frame);
    free(colors);
}

static ex_scene begin_scene(ex_app *app)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 view;
    view.lo = fsi_v3((fsi_real)1.5, (fsi_real)(-WIDTH / 2), (fsi_real)-DITCH);
    view.hi = fsi_v3((fsi_real)(LENGTH - 1.5), (fsi_real)(WIDTH / 2), 1);
    ex_look_at_box(&scene, view, 28, 24);
    return scene;
}

/* One step of vehicle and water; returns the seconds that it took. */
static double advance(ex_app *app, vehicle *v, fsi_sph *s, double step)
{
    double started = ex_wall_seconds();
    drive(v, step);
    ex_check(app, fsi_sph_step(s, (fsi_real)step));
    integrate(v, step);
    return ex_wall_seconds() - started;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_tally tally = { 0 };
    vehicle v;
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_surface_desc skin = fsi_surface_default_desc();
    fsi_box3 pool;
    fsi_mesh *ground;
    fsi_sph *s;
    fsi_surface *surface = NULL;
    double dt = 6, speed = 5, gap = 1, t_step = 0;
    int full = 0, paper = 0, balls = 0, tess = 1, frame, k, triangles;

    ex_init(&app, "wading", "A vehicle with turning wheels drives through a ford.");
    app.res = 40;
    app.res_help = "particles over the width of the ford: dx = 4.5 m / res";
    app.frames = 35;
    ex_real(&app, "dt", &dt, 0, 20, "time step without substeps [ms], 0: 6 ms with substeps");
    ex_real(&app, "speed", &speed, 0.1, 20, "of the vehicle [m/s]");
    ex_real(&app, "gap", &gap, 0, 4, "between treads and ground, in particle spacings");
    ex_int(&app, "tess", &tess, 1, 40, "cut every edge of the meshes in so many pieces");
    ex_flag(&app, "full", &full, "1.6 million particles, 190,000 triangles");
    ex_flag(&app, "paper", &paper, "the paper's boundary formula");
    ex_flag(&app, "balls", &balls, "show particles in the colour of their speed");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (full) {
        app.res = 214;
        tess = 7;
    }

    desc.context = skin.context = &app.context;
    desc.spacing = skin.spacing = (fsi_real)(WIDTH / app.res);
    desc.depth = (fsi_real)1.0; /* the water stands 0.5 m; wheels throw it up */
    desc.domain.lo = fsi_v3(0, (fsi_real)(-WIDTH / 2), (fsi_real)(-DITCH - 0.3));
    desc.domain.hi = fsi_v3((fsi_real)LENGTH, (fsi_real)(WIDTH / 2), 6);
    if (dt > 0) desc.max_substeps = 1;
    else dt = 6;
    if (paper) desc.boundary = FSI_SPH_BOUNDARY_PAPER;
    ground = make_mesh(&app, make_ground(), tess);
    make_vehicle(&app, &v, tess);
    v.speed = speed;
    v.radius = TREAD + gap * (double)desc.spacing;
    ex_check(&app, fsi_sph_create(&s, &desc));
    ex_check(&app, fsi_sph_add_mesh(s, ground, NULL));
    pool = desc.domain;
    pool.hi.z = (fsi_real)(WATER - DITCH);
    ex_check(&app, fsi_sph_fill_box(s, pool, fsi_v3(0, 0, 0), NULL));
    add_vehicle(&app, s, &v);
    if (!balls) ex_check(&app, fsi_surface_create(&surface, &skin));
    triangles = ground->face_count;
    for (k = 0; k < PARTS; k++) triangles += v.parts[k].mesh->face_count;
    scene = begin_scene(&app);

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            t_step += advance(&app, &v, s, dt / 1000);
            ex_tally_step(&app, &tally, s, desc.domain, 1);
        }
        if (app.images) draw(&app, &scene, surface, s, &v, ground, frame);
        ex_write_particles(&app, "water", frame, s->position, s->velocity, s->count);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "triangles", "%.0f", triangles);
    ex_figure(&app, "dt_ms", "%g", dt);
    ex_tally_figures(&app, &tally, s);
    ex_figure(&app, "t_step", "%.4f", t_step / (double)tally.calls);
    ex_scene_end(&scene);
    fsi_surface_destroy(surface);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(ground);
    for (k = 0; k < PARTS; k++) fsi_mesh_destroy(v.parts[k].mesh);
    return ex_end(&app);
}
