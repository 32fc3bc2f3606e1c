/* cc -O3 -I. studies/wcsph/stone_skip.c -lm -o stone_skip && ./stone_skip
   SPDX-License-Identifier: MIT

   A spinning disc of aluminium is thrown at water, its leading edge raised, as in the experiments of Clanet, Hersen and
   Bocquet (Nature 427, 2004): 5 cm wide, 2.75 mm thick, 65 turns a second, its way 20 degrees below the horizon. At 3.5
   m/s it is thrown back, at 1.5 m/s it stays in. Liquid and stone are solved together (COUPLED). bounces= how often the
   whole stone came out of the water again; speed_after= its speed [m/s] then, tilt_after= its attitude [degrees],
   touched= the seconds that it was in the water. --sweep throws until the least speed that bounces is known for seven
   attitudes, and prints a table: about forty throws. --res 14 is the paper's size (240,000 particles). */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_wcsph.h"
#include "../../examples/kit/shapes.h"
#include "../../examples/kit/wcsph_tally.h"

#define RADIUS 0.025     /* of the stone [m] */
#define THICKNESS 0.00275
#define DENSITY 2700.0
#define WIDTH 0.125      /* of the tank [m] */
#define LEVEL 0.0375     /* of the water */
#define FRAME 0.002      /* seconds between two pictures */

typedef struct throw_desc {
    double speed, angle, path, spin, slip, length; /* angles in degrees; turns a second */
    int balls;
} throw_desc;

/* One throw: what is made for it, and what came out. */
typedef struct throw_state {
    fsi_wcsph *water;
    fsi_mesh *mesh;
    fsi_body stone;
    fsi_pose made;               /* pose of the stone when its mesh was made */
    ex_wcsph_tally tally;
    int wet, bounces, over;      /* over: it left the tank's length, or sank */
    double touched, speed_after, tilt_after;
} throw_state;

static void make_water(ex_app *app, throw_state *w, const throw_desc *d)
{
    fsi_wcsph_desc desc = fsi_wcsph_default_desc();
    desc.context = &app->context;
    desc.spacing = (fsi_real)(RADIUS / app->res);
    desc.depth = (fsi_real)LEVEL;
    desc.speed = (fsi_real)d->speed;
    desc.domain.lo = fsi_v3(0, 0, 0);
    desc.domain.hi = fsi_v3((fsi_real)d->length, (fsi_real)WIDTH, (fsi_real)0.5);
    ex_check(app, fsi_wcsph_create(&w->water, &desc));
}

/* The stone just above the water at the near end, on its way. */
static void make_stone(ex_app *app, throw_state *w, const throw_desc *d)
{
    const double tilt = d->angle * FSI_PI / 180, path = d->path * FSI_PI / 180, spin = 2 * FSI_PI * d->spin;
    fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
    fsi_mass_properties mass;
    shape disc = shape_empty();
    fsi_vec3 axis;
    int id;
    shape_cylinder(&disc, RADIUS, -THICKNESS / 2, THICKNESS / 2, 48);
    w->mesh = shape_mesh(app, &disc, FSI_MESH_CLOSED, 0);
    shape_free(&disc);
    ex_check(app, fsi_mesh_mass(w->mesh, (fsi_real)DENSITY, 0, &mass));
    w->stone = fsi_body_from_mass(&mass);
    w->made = w->stone.pose;
    o.mesh = w->mesh;
    o.body = &w->stone;
    o.slip = (fsi_real)d->slip;
    ex_check(app, fsi_wcsph_add_obstacle(w->water, &o, &id));
    ex_wcsph_watch(app, &w->tally, w->water, w->mesh, &w->stone, id);
    w->stone.pose.orientation = fsi_quat_from_axis_angle(fsi_v3(0, 1, 0), (fsi_real)-tilt);
    w->stone.pose.position = fsi_v3((fsi_real)(1.5 * RADIUS), (fsi_real)(WIDTH / 2),
                                    (fsi_real)(LEVEL + RADIUS * sin(tilt) + THICKNESS) + w->water->desc.spacing);
    axis = fsi_quat_rotate(w->stone.pose.orientation, fsi_v3(0, 0, 1));
    w->stone.velocity = fsi_v3((fsi_real)(d->speed * cos(path)), 0, (fsi_real)(-d->speed * sin(path)));
    w->stone.angular_velocity = fsi_v3_scale(axis, (fsi_real)spin);
    w->stone.force = fsi_v3(0, 0, (fsi_real)-9.81 * w->stone.mass);
    ex_check(app, fsi_wcsph_teleport_obstacle(w->water, id));
}

static void make_throw(ex_app *app, throw_state *w, const throw_desc *d)
{
    fsi_box3 pool;
    memset(w, 0, sizeof *w);
    make_water(app, w, d);
    make_stone(app, w, d);
    pool.lo = fsi_v3(0, 0, 0);
    pool.hi = fsi_v3((fsi_real)d->length, (fsi_real)WIDTH, (fsi_real)LEVEL);
    ex_check(app, fsi_wcsph_fill_box(w->water, pool, fsi_v3(0, 0, 0), NULL));
    ex_check(app, fsi_wcsph_settle_density(w->water, pool.hi));
}

static void end_throw(throw_state *w)
{
    ex_wcsph_tally_end(&w->tally);
    fsi_wcsph_destroy(w->water);
    fsi_mesh_destroy(w->mesh);
}

/* The stone's lowest point, and angle of its face to the horizon [degrees]. */
static double lowest(const throw_state *w)
{
    double z = 1e30;
    int v;
    for (v = 0; v < w->mesh->vertex_count; v++)
        z = fmin(z, (double)fsi_pose_point(w->stone.pose, fsi_pose_local(w->made, w->mesh->vertices[v])).z);
    return z;
}

static double tilt(const throw_state *w)
{
    const fsi_vec3 axis = fsi_quat_rotate(w->stone.pose.orientation, fsi_v3(0, 0, 1));
    return 180 / FSI_PI * atan2(-(double)axis.x, (double)axis.z);
}

/* A step of the throw: in the water until all of the stone is above its level again; sunk once it is a radius below. */
static void step_throw(ex_app *app, throw_state *w, const throw_desc *d, double dt)
{
    double low;
    ex_wcsph_step(app, &w->tally, w->water, dt);
    low = lowest(w);
    if (w->water->stats.body_impulse[2] < 0 || low < LEVEL) w->touched += dt;
    if (low < LEVEL) w->wet = 1;
    if (w->wet && low > LEVEL && (double)w->stone.velocity.z > 0) {
        w->wet = 0;
        w->bounces++;
        w->speed_after = (double)fsi_v3_norm(w->stone.velocity);
        w->tilt_after = tilt(w);
    }
    w->over =
        (double)w->stone.pose.position.x > d->length - RADIUS || (double)w->stone.pose.position.z < LEVEL - RADIUS / 2;
}

/* Does the stone come out again? */
static int skips(ex_app *app, const throw_desc *d)
{
    throw_state w;
    int bounced, step;
    make_throw(app, &w, d);
    for (step = 0; step < 400 && !w.over && w.bounces == 0; step++) step_throw(app, &w, d, FRAME / 4);
    bounced = w.bounces > 0;
    end_throw(&w);
    return bounced;
}

/* The least speed that bounces, by halving between one that does not and one that does; 0: none does. */
static double least_speed(ex_app *app, throw_desc d)
{
    double lo = 1, hi = 5;
    d.speed = hi;
    if (!skips(app, &d)) return 0;
    while (hi - lo > 0.13) {
        d.speed = (lo + hi) / 2;
        if (skips(app, &d)) hi = d.speed;
        else lo = d.speed;
    }
    return hi;
}

static int sweep(ex_app *app, throw_desc d)
{
    static const double angles[7] = { 8, 14, 20, 26, 32, 40, 50 };
    double best = 1e30, at = 0;
    int k;
    app->frames = 7;
    printf("attitude [degrees]  least speed [m/s]\n");
    for (k = 0; k < 7; k++) {
        double v;
        d.angle = angles[k];
        v = least_speed(app, d);
        if (v > 0) printf("%18.0f  %17.2f\n", d.angle, v);
        else printf("%18.0f     more than 5.00\n", d.angle);
        fflush(stdout);
        if (v > 0 && v < best) { best = v; at = d.angle; }
        ex_progress(app, k + 1);
    }
    ex_figure(app, "least_speed", "%.2f", best);
    ex_figure(app, "least_angle", "%.0f", at);
    return ex_end(app);
}

static void draw(ex_app *app, ex_scene *scene, fsi_surface *skin, const throw_state *w, const throw_desc *d, int frame)
{
    ex_wcsph_draw_liquid(app, scene, skin, w->water, d->balls, d->speed / 2);
    ex_draw_body(scene, w->mesh, w->made, w->stone.pose, 0x9a8f86);
    ex_save_scene(app, scene, frame, "%.3f s", w->water->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    throw_desc d;
    throw_state w;
    fsi_surface *skin;
    int frame, k, sweeping = 0;

    ex_init(&app, "stone_skip", "A spinning disc is thrown at water and skips.");
    app.res = 8;
    app.res_help = "particles along the radius of the stone";
    app.frames = 30;
    d.speed = 3.5; d.angle = 20; d.path = 20; d.spin = 65; d.slip = 1; d.length = 0.3; d.balls = 0;
    ex_real(&app, "speed", &d.speed, 0.5, 12, "of the throw [m/s]");
    ex_real(&app, "angle", &d.angle, 0, 80, "attitude: how far the leading edge is raised [degrees]");
    ex_real(&app, "path", &d.path, 2, 80, "how steeply it comes down [degrees]");
    ex_real(&app, "spin", &d.spin, 0, 200, "turns a second");
    ex_real(&app, "slip", &d.slip, 0, 1, "of the water along the stone: 0 it sticks, 1 it slides");
    ex_real(&app, "length", &d.length, 0.1, 10, "of the tank [m]");
    ex_flag(&app, "particles", &d.balls, "draw particles instead of a surface");
    ex_flag(&app, "sweep", &sweeping, "find the least speed that bounces, by attitude");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 4 || app.res > 40) ex_die("--res is not between 4 and 40");
    if (sweeping) return sweep(&app, d);

    make_throw(&app, &w, &d);
    skin = ex_particle_surface(&app, (double)w.water->desc.spacing);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)d.length, (fsi_real)WIDTH, (fsi_real)0.07), 32, 18);
    for (frame = 0; frame < app.frames && !w.over; frame++) {
        for (k = 0; k < 4; k++) step_throw(&app, &w, &d, FRAME / 4);
        if (app.images) draw(&app, &scene, skin, &w, &d, frame);
        ex_write_particles(&app, "water", frame, w.water->position, w.water->velocity, w.water->count);
        ex_progress(&app, frame + 1);
    }
    app.frames = frame;

    ex_wcsph_figures(&app, &w.tally, w.water);
    ex_figure(&app, "bounces", "%.0f", w.bounces);
    ex_figure(&app, "touched", "%.4f", w.touched);
    if (w.bounces > 0) {
        ex_figure(&app, "speed_after", "%.2f", w.speed_after);
        ex_figure(&app, "tilt_after", "%.1f", w.tilt_after);
    }
    ex_scene_end(&scene);
    fsi_surface_destroy(skin);
    end_throw(&w);
    return ex_end(&app);
}
