/* cc -O3 -I. studies/wcsph/sinking_ship.c -lm -o sinking_ship && ./sinking_ship
   SPDX-License-Identifier: MIT

   A ship with a hole in its bottom fills and sinks, in 2D: the paper's first experiment (its figure 5). The hull is a
   single layer without a volume of its own, with water on both sides of it; the liquid moves it, springs hold it off
   the walls of the tank. crossed= counts particles that passed through the hull's plates: their way in the ship's
   frame, from step to step, against each plate, apart from all that the simulator looks at. filled= is the water in the
   hull over the area inside it at the end; nearest= the distance of the nearest particle from the plates over dx, mean
   over the run, nearest_sd= its standard deviation in time: 0.97, between two samples whose radius is dx/2, and 0 say
   that what is there neither sinks in nor bounces. bounce= is the root mean square speed to or off the plates of what
   is nearer than 2.4 dx, over the second half of the run [m/s]. height= where the ship's centre is in the end [m].
   --penalty runs the same ship beside it with penalty forces (Monaghan 2005), as many would, and prints the same
   figures of it (penalty_...). These forces are in this example only. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_wcsph.h"
#include "../../examples/kit/wcsph_tally.h"

#define FRAME 0.05   /* seconds between two pictures */
#define WIDTH 3.0    /* of the tank [m] */
#define HEIGHT 1.7
#define LEVEL 1.1    /* of the water at first */
#define SHIP 1.3     /* length of the hull */
#define MASS 240.0   /* of the ship [kg per metre of depth] */
#define CORNERS 12

/* The hull from the edge of its rear deck, down, along the bottom to the hole, and on from there to the edge of the
   fore deck: two chains of plates. */
static const double hull[CORNERS][2] = {
    { -0.30, 0.25 }, { -0.60, 0.27 }, { -0.58, 0.00 }, { -0.50, -0.18 }, { -0.30, -0.24 }, { -0.15, -0.25 },
    { 0.07, -0.25 }, { 0.30, -0.23 }, { 0.48, -0.14 }, { 0.62, 0.05 }, { 0.70, 0.32 }, { 0.32, 0.25 }
};
#define PLATES (CORNERS - 2) /* none at the hole, none over the hold */
static int plate_start(int k) { return k < CORNERS / 2 - 1 ? k : k + 1; }

/* A tank with its ship. */
typedef struct tank {
    int penalty;             /* 1: by penalty forces */
    fsi_wcsph *water;
    fsi_mesh *mesh;
    fsi_body ship;
    fsi_vec3 corner[CORNERS];/* of the hull, in the ship's frame, about its centre */
    double reach;            /* of the hull from there [m] */
    fsi_vec3 *before;        /* positions at the last look, in the ship's frame */
    long long crossed;
    double bounce;           /* sum of squares */
    long long bounces;
    double nearest, nearest2;/* sums of the nearest particle's distance over dx, and of its squares */
    int looks;
} tank;

/* ---- the ship --------------------------------------------------------------------------------------------------- */

static fsi_mesh *make_hull(ex_app *app, const fsi_vec3 *x)
{
    int e[2 * PLATES], k;
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh;
    for (k = 0; k < PLATES; k++) {
        e[2 * k] = plate_start(k);
        e[2 * k + 1] = plate_start(k) + 1;
    }
    d.context = &app->context;
    d.vertices = x;
    d.vertex_count = CORNERS;
    d.elements = e;
    d.element_count = PLATES;
    d.corners = 2;
    d.kind = FSI_MESH_TWO_SIDED;
    ex_check(app, fsi_mesh_create(&mesh, &d));
    return mesh;
}

/* Mass, centre and inertia of the plates; those of the bottom are three times as heavy. The corners then are about the
   centre. */
static void weigh_ship(tank *t)
{
    double mass[PLATES], all = 0, cx = 0, cy = 0, inertia = 0;
    int k;
    for (k = 0; k < PLATES; k++) {
        const double *a = hull[plate_start(k)], *b = hull[plate_start(k) + 1];
        mass[k] = hypot(b[0] - a[0], b[1] - a[1]) * (a[1] + b[1] < -0.3 ? 3 : 1);
        all += mass[k];
        cx += mass[k] * (a[0] + b[0]) / 2;
        cy += mass[k] * (a[1] + b[1]) / 2;
    }
    cx /= all;
    cy /= all;
    for (k = 0; k < PLATES; k++) {
        const double *a = hull[plate_start(k)], *b = hull[plate_start(k) + 1];
        const double x = (a[0] + b[0]) / 2 - cx, y = (a[1] + b[1]) / 2 - cy, l = hypot(b[0] - a[0], b[1] - a[1]);
        inertia += MASS / all * mass[k] * (x * x + y * y + l * l / 12);
    }
    t->ship = fsi_default_body();
    t->ship.mode = FSI_BODY_COUPLED;
    t->ship.mass = (fsi_real)MASS;
    t->ship.inertia = fsi_m3_diagonal(fsi_v3((fsi_real)(inertia / 2), (fsi_real)(inertia / 2), (fsi_real)inertia));
    for (k = 0; k < CORNERS; k++) {
        t->corner[k] = fsi_v3((fsi_real)(hull[k][0] - cx), (fsi_real)(hull[k][1] - cy), 0);
        t->reach = fmax(t->reach, (double)fsi_v3_norm(t->corner[k]));
    }
}

/* x, in the ship's frame, is between the hull's sides and under its deck: an odd number of them to the right of it. */
static int in_hold(const tank *t, fsi_vec3 x)
{
    int k, odd = 0;
    for (k = 0; k < CORNERS; k++) {
        const fsi_vec3 a = t->corner[k], b = t->corner[(k + 1) % CORNERS];
        if ((a.y > x.y) != (b.y > x.y) && x.x < a.x + (x.y - a.y) / (b.y - a.y) * (b.x - a.x)) odd = !odd;
    }
    return odd;
}

static double hold_area(const tank *t)
{
    double area = 0;
    int k;
    for (k = 0; k < CORNERS; k++) {
        const fsi_vec3 a = t->corner[k], b = t->corner[(k + 1) % CORNERS];
        area += (double)(a.x * b.y - b.x * a.y) / 2;
    }
    return fabs(area);
}

static double filled(const tank *t)
{
    const double dx = (double)t->water->desc.spacing;
    int i, count = 0;
    for (i = 0; i < t->water->count; i++) count += in_hold(t, fsi_pose_local(t->ship.pose, t->water->position[i]));
    return count * dx * dx / hold_area(t);
}

/* Gravity, and springs with dampers where a corner comes near a wall of the tank: particles always fit between. */
static void push_ship(tank *t)
{
    const double rest = 2 * (double)t->water->desc.spacing, mass = (double)t->ship.mass, stiff = 4000 * mass,
                 damp = 60 * mass;
    fsi_body *b = &t->ship;
    int k;
    b->force = fsi_v3(0, (fsi_real)(-9.81 * mass), 0);
    b->torque = fsi_v3(0, 0, 0);
    for (k = 0; k < CORNERS; k++) {
        const fsi_vec3 x = fsi_pose_point(b->pose, t->corner[k]),
                       u = fsi_rigid_velocity(b->velocity, b->angular_velocity, b->pose.position, x);
        const double low = rest - (double)x.y, left = rest - (double)x.x, right = rest - (WIDTH - (double)x.x);
        double fx = 0, fy = 0;
        fsi_vec3 f;
        if (low > 0) fy = fmax(0, stiff * low - damp * (double)u.y) / 4;
        if (low > 0) fx = -damp * (double)u.x / 8;
        if (left > 0) fx += fmax(0, stiff * left - damp * (double)u.x) / 4;
        if (right > 0) fx -= fmax(0, stiff * right + damp * (double)u.x) / 4;
        f = fsi_v3((fsi_real)fx, (fsi_real)fy, 0);
        b->force = fsi_v3_add(b->force, f);
        b->torque = fsi_v3_add(b->torque, fsi_v3_cross(fsi_v3_sub(x, b->pose.position), f));
    }
}

/* The nearest point of the hull's plates to x, in the ship's frame. */
static fsi_vec3 nearest_plate(const tank *t, fsi_vec3 x)
{
    fsi_vec3 best = fsi_v3(0, 0, 0);
    fsi_real least = FSI_REAL_MAX;
    int k;
    for (k = 0; k < PLATES; k++) {
        const fsi_vec3 a = t->corner[plate_start(k)], u = fsi_v3_sub(t->corner[plate_start(k) + 1], a);
        const fsi_real s = fsi_clamp(fsi_v3_dot(fsi_v3_sub(x, a), u) / fsi_v3_norm2(u), 0, 1);
        const fsi_vec3 c = fsi_v3_madd(a, s, u);
        const fsi_real d2 = fsi_v3_norm2(fsi_v3_sub(x, c));
        if (d2 < least) best = c;
        if (d2 < least) least = d2;
    }
    return best;
}

/* ---- what is looked at ------------------------------------------------------------------------------------------ */

static double side(fsi_vec3 a, fsi_vec3 b, fsi_vec3 x)
{
    return (double)(b.x - a.x) * (double)(x.y - a.y) - (double)(b.y - a.y) * (double)(x.x - a.x);
}

/* The way from p to q passes through a plate. */
static int passes(const tank *t, fsi_vec3 p, fsi_vec3 q)
{
    int k;
    for (k = 0; k < PLATES; k++) {
        const fsi_vec3 a = t->corner[plate_start(k)], b = t->corner[plate_start(k) + 1];
        if (side(a, b, p) * side(a, b, q) < 0 && side(p, q, a) * side(p, q, b) < 0) return 1;
    }
    return 0;
}

/* Counts what has passed through plates since the last look, and how fast what is next to them comes and goes. */
static void look_at_hull(tank *t, int late)
{
    const fsi_wcsph *s = t->water;
    const fsi_body *b = &t->ship;
    const double reach = t->reach + (double)s->support;
    double nearest = 1e30;
    int i;
    for (i = 0; i < s->count; i++) {
        const fsi_vec3 x = fsi_pose_local(b->pose, s->position[i]);
        if ((double)fsi_v3_norm(x) < reach) {
            const fsi_vec3 d = fsi_v3_sub(x, nearest_plate(t, x));
            t->crossed += passes(t, t->before[i], x);
            nearest = fmin(nearest, (double)fsi_v3_norm(d) / (double)s->desc.spacing);
            if (late && fsi_v3_norm(d) < s->support) {
                const fsi_vec3 u = fsi_v3_sub(s->velocity[i], fsi_rigid_velocity(b->velocity, b->angular_velocity,
                                                                                 b->pose.position, s->position[i]));
                const double un = (double)fsi_v3_dot(u, fsi_quat_rotate(b->pose.orientation, fsi_v3_unit(d)));
                t->bounce += un * un;
                t->bounces++;
            }
        }
        t->before[i] = x;
    }
    t->nearest += nearest;
    t->nearest2 += nearest * nearest;
    t->looks++;
}

/* ---- penalty forces --------------------------------------------------------------------------------------------- */

/* A plate pushes a particle at distance y with the acceleration (1/2) 0.02 c_s^2 / y g(y/hs), its own mass taken for
      the particle's: g(q) = 2/3 (q < 2/3), 2q - 3q^2/2 (q < 1), (2-q)^2/2 (q < 2)
   (Monaghan 2005, Smoothed Particle Hydrodynamics, boundary forces; the sum over boundary particles along a plate is
   1). */
static double penalty(double y, double hs, double cs)
{
    const double q = y / hs, g = q < 2 / 3.0 ? 2 / 3.0
                                 : q < 1     ? 2 * q - 1.5 * q * q
                                 : q < 2     ? (2 - q) * (2 - q) / 2
                                             : 0;
    return 0.01 * cs * cs / fmax(y, 1e-6 * hs) * g;
}

static void push_apart(tank *t)
{
    fsi_wcsph *s = t->water;
    fsi_body *b = &t->ship;
    const double hs = (double)s->support / 2;
    int i;
    for (i = 0; i < s->count; i++) {
        const fsi_vec3 x = fsi_pose_local(b->pose, s->position[i]);
        fsi_vec3 d, f;
        s->force[i] = fsi_v3(0, 0, 0);
        if ((double)fsi_v3_norm(x) > t->reach + 2 * hs) continue;
        d = fsi_quat_rotate(b->pose.orientation, fsi_v3_sub(x, nearest_plate(t, x)));
        f = fsi_v3_scale(fsi_v3_unit(d), (fsi_real)((double)s->particle_mass *
                                                    penalty((double)fsi_v3_norm(d), hs, (double)s->sound_speed)));
        s->force[i] = f;
        b->force = fsi_v3_sub(b->force, f);
        b->torque = fsi_v3_sub(b->torque, fsi_v3_cross(fsi_v3_sub(fsi_v3_sub(s->position[i], d), b->pose.position), f));
    }
}

/* One call of the liquid: `end` is where time goes, at most. */
static void step_penalty(ex_app *app, tank *t, double end)
{
    while (t->water->time < end - 1e-9) {
        const fsi_real h = fsi_min(fsi_wcsph_suggest_dt(t->water), (fsi_real)(end - t->water->time));
        push_ship(t);
        push_apart(t);
        ex_check(app, fsi_wcsph_step(t->water, h));
        fsi_body_begin_step(&t->ship, h);
        fsi_body_end_step(&t->ship, h);
        fsi_body_integrate(&t->ship, h);
    }
}

/* ---- scene ------------------------------------------------------------------------------------------------------ */

static void empty_hold(ex_app *app, tank *t)
{
    unsigned char *gone = (unsigned char *)ex_alloc(NULL, (size_t)t->water->count, 1);
    const double keep = (double)t->water->desc.spacing;
    int i;
    for (i = 0; i < t->water->count; i++) {
        const fsi_vec3 x = fsi_pose_local(t->ship.pose, t->water->position[i]);
        gone[i] = in_hold(t, x) || (double)fsi_v3_norm(fsi_v3_sub(x, nearest_plate(t, x))) < keep;
    }
    ex_check(app, fsi_wcsph_remove_particles(t->water, gone));
    free(gone);
}

static void make_tank(ex_app *app, tank *t, ex_wcsph_tally *tally, int by_penalty, double slip,
                      fsi_wcsph_surface surface, fsi_wcsph_solver solver)
{
    fsi_wcsph_desc d = fsi_wcsph_default_desc();
    fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
    fsi_box3 water;
    int i;
    memset(t, 0, sizeof *t);
    t->penalty = by_penalty;
    weigh_ship(t);
    t->mesh = make_hull(app, t->corner);
    d.context = &app->context;
    d.dim = 2;
    d.spacing = (fsi_real)(SHIP / app->res);
    d.gravity = fsi_v3(0, (fsi_real)-9.81, 0);
    d.depth = (fsi_real)LEVEL;
    d.solver = solver;
    d.domain_slip = 1;
    d.domain.lo = fsi_v3(0, 0, 0);
    d.domain.hi = fsi_v3((fsi_real)WIDTH, (fsi_real)HEIGHT, 0);
    ex_check(app, fsi_wcsph_create(&t->water, &d));
    water = d.domain;
    water.hi.y = (fsi_real)LEVEL;
    ex_check(app, fsi_wcsph_fill_box(t->water, water, fsi_v3(0, 0, 0), NULL));
    t->ship.pose.position = fsi_v3((fsi_real)(WIDTH / 2), (fsi_real)(LEVEL + 0.02), 0);
    empty_hold(app, t);
    ex_check(app, fsi_wcsph_settle_density(t->water, fsi_v3(0, (fsi_real)LEVEL, 0)));
    if (!by_penalty) {
        const fsi_pose at = t->ship.pose;
        int id;
        o.mesh = t->mesh;
        o.body = &t->ship;
        o.slip = (fsi_real)slip;
        o.surface = surface;
        t->ship.pose.position = fsi_v3(0, 0, 0); /* the mesh is fixed to the body where it was made */
        ex_check(app, fsi_wcsph_add_obstacle(t->water, &o, &id));
        ex_wcsph_watch(app, tally, t->water, t->mesh, &t->ship, id);
        t->ship.pose = at;
        ex_check(app, fsi_wcsph_teleport_obstacle(t->water, id));
    }
    t->before = (fsi_vec3 *)ex_alloc(NULL, (size_t)t->water->count, sizeof *t->before);
    for (i = 0; i < t->water->count; i++) t->before[i] = fsi_pose_local(t->ship.pose, t->water->position[i]);
}

/* Bands of colour by where the water was at first: they show how it flows. */
static uint32_t *band_colors(const fsi_wcsph *s)
{
    uint32_t *rgb = (uint32_t *)ex_alloc(NULL, (size_t)s->count, sizeof *rgb);
    int i;
    for (i = 0; i < s->count; i++)
        rgb[i] = ex_map_color(EX_MAP_WATER, 0.08 + 0.2 * floor(4 * (double)s->position[i].y / LEVEL));
    return rgb;
}

static void draw(ex_app *app, ex_scene *scene, const tank *tanks, int count, uint32_t *const *rgb, int frame)
{
    ex_image *image;
    char text[64];
    int k, i;
    for (k = 0; k < count; k++) {
        const tank *t = &tanks[k];
        const fsi_vec3 shift = fsi_v3((fsi_real)(1.05 * WIDTH * k), 0, 0),
                       before = fsi_v3(shift.x, 0, 2 * t->water->desc.spacing); /* before the discs */
        fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)t->water->count, sizeof *x);
        fsi_box3 box = t->water->desc.domain;
        for (i = 0; i < t->water->count; i++) x[i] = fsi_v3_add(t->water->position[i], shift);
        ex_draw_spheres(scene, x, t->water->count, 0.75 * (double)t->water->desc.spacing, rgb[k], 0);
        for (i = 0; i < PLATES; i++) {
            const fsi_vec3 a = fsi_pose_point(t->ship.pose, t->corner[plate_start(i)]),
                           b = fsi_pose_point(t->ship.pose, t->corner[plate_start(i) + 1]);
            ex_draw_line(scene, fsi_v3_add(a, before), fsi_v3_add(b, before), 3, 0xb03a2e);
        }
        box.lo = fsi_v3_add(box.lo, shift);
        box.hi = fsi_v3_add(box.hi, shift);
        ex_draw_box(scene, box, 1.5, 0x7d8894);
        free(x);
    }
    image = ex_render(scene);
    snprintf(text, sizeof text, count > 1 ? "direct forcing and penalty forces, %.2f s" : "%.2f s",
             tanks[0].water->time);
    ex_text(image, 14, 22, 11, EX_LEFT, 0x3a4550, text);
    ex_save_frame(app, image, frame);
}

static void figure(ex_app *app, const tank *t, const char *key, const char *format, double value)
{
    char name[32];
    snprintf(name, sizeof name, "%s%s", t->penalty ? "penalty_" : "", key);
    ex_figure(app, name, format, value);
}

static void finish(ex_app *app, const tank *t)
{
    const double mean = t->nearest / t->looks;
    figure(app, t, "crossed", "%.0f", (double)t->crossed);
    figure(app, t, "filled", "%.3f", filled(t));
    figure(app, t, "nearest", "%.4f", mean);
    figure(app, t, "nearest_sd", "%.4f", sqrt(fmax(0, t->nearest2 / t->looks - mean * mean)));
    figure(app, t, "bounce", "%.4f", sqrt(t->bounce / (double)(t->bounces > 0 ? t->bounces : 1)));
    figure(app, t, "height", "%.3f", (double)t->ship.pose.position.y);
}

int main(int argc, char **argv)
{
    static const char *const solvers[5] = { "auto", "global", "local", "split", "pgs" };
    ex_app app;
    ex_scene scene;
    ex_wcsph_tally tally = { 0 };
    tank tanks[2];
    uint32_t *rgb[2];
    const char *surface = "samples", *solver = "auto";
    double slip = 0.5;
    fsi_box3 box;
    int by_penalty = 0, frame, part, k, count, chosen = 0;

    ex_init(&app, "sinking_ship", "A ship with a hole fills and sinks.");
    app.res = 52;
    app.res_help = "particles along the ship: dx = 1.3 m / res";
    app.frames = 80;
    ex_flag(&app, "penalty", &by_penalty, "the same ship with penalty forces beside it");
    ex_real(&app, "slip", &slip, 0, 1, "e_t of the hull");
    ex_string(&app, "surface", &surface, "of the hull: samples or mesh");
    ex_string(&app, "solver", &solver, "of contacts: auto, global, local, split or pgs");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    while (chosen < 5 && strcmp(solver, solvers[chosen]) != 0) chosen++;
    if (chosen == 5) ex_die("--solver is not auto, global, local, split or pgs");
    if (strcmp(surface, "mesh") != 0 && strcmp(surface, "samples") != 0)
        ex_die("--surface is neither samples nor mesh");
    if (app.res < 20 || app.res > 2000) ex_die("--res is not between 20 and 2000");
    count = by_penalty ? 2 : 1;
    for (k = 0; k < count; k++) {
        make_tank(&app, &tanks[k], &tally, k, slip,
                  strcmp(surface, "mesh") == 0 ? FSI_WCSPH_SURFACE_MESH : FSI_WCSPH_SURFACE_SAMPLES,
                  (fsi_wcsph_solver)chosen);
        rgb[k] = band_colors(tanks[k].water);
    }
    scene = ex_scene_begin(&app);
    box = tanks[0].water->desc.domain;
    box.hi.x *= (fsi_real)(count > 1 ? 2.05 : 1);
    scene.height = count > 1 ? 300 : 580;
    ex_look_at_flat(&scene, box);

    for (frame = 0; frame < app.frames; frame++) {
        for (part = 1; part <= 20; part++)
            for (k = 0; k < count; k++) {
                const double end = (frame + part / 20.0) * FRAME;
                if (k == 0) push_ship(&tanks[k]);
                if (k == 0) ex_wcsph_step(&app, &tally, tanks[k].water, end - tanks[k].water->time);
                else step_penalty(&app, &tanks[k], end);
                look_at_hull(&tanks[k], 2 * frame >= app.frames);
            }
        app.sim_seconds = tanks[0].water->time;
        if (app.images) draw(&app, &scene, tanks, count, rgb, frame);
        ex_write_particles(&app, "water", frame, tanks[0].water->position, tanks[0].water->velocity,
                           tanks[0].water->count);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_wcsph_hash(tanks[0].water);
    for (k = 0; k < count; k++) finish(&app, &tanks[k]);
    ex_wcsph_figures(&app, &tally, tanks[0].water);
    ex_wcsph_tally_end(&tally);
    ex_scene_end(&scene);
    for (k = 0; k < count; k++) {
        fsi_wcsph_destroy(tanks[k].water);
        fsi_mesh_destroy(tanks[k].mesh);
        free(tanks[k].before);
        free(rgb[k]);
    }
    return ex_end(&app);
}
