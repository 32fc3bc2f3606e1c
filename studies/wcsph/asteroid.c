/* cc -O3 -I. studies/wcsph/asteroid.c -lm -o asteroid && ./asteroid
   SPDX-License-Identifier: MIT

   A rock falls aslant into a pool at 8 m/s. It is PRESCRIBED: it moves the liquid, the liquid does not move it (one-way
   coupling); it comes to rest above the floor. The liquid's speed of sound is ten times that of the rock.
   After every step every particle's distance from the rock and the walls is measured: near= and inside= count those
   that are where they may not be. splash= is the highest particle; density_late= the largest density ratio of the
   second half, when the impact is over; force_peak= the largest mean force of a step on the rock over rho v^2 pi r^2.
   --res 16 is the paper's size (930,000 particles). */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_wcsph.h"
#include "../../examples/kit/wcsph_tally.h"

#define RADIUS 0.28  /* of the rock, roughly [m] */
#define SIDE 2.52    /* of the pool */
#define LEVEL 0.784

/* Where the rock is after t seconds, and how it has turned. It flies at `speed` along a straight line, and brakes
   evenly over the last `brake` metres of the way to `rest`. */
typedef struct flight {
    fsi_vec3 from, rest;
    double speed, brake;
} flight;

static fsi_pose flight_pose(const flight *f, double t)
{
    const fsi_vec3 way = fsi_v3_sub(f->rest, f->from);
    const double length = (double)fsi_v3_norm(way), free = length - f->brake,
                 rate = f->speed * f->speed / (2 * f->brake);
    double s = f->speed * t, late = t - free / f->speed;
    fsi_pose p;
    if (late > 0) {
        late = fmin(late, f->speed / rate);
        s = free + f->speed * late - rate * late * late / 2;
    }
    p.position = fsi_v3_madd(f->from, (fsi_real)(s / length), way);
    p.orientation = fsi_quat_from_axis_angle(fsi_v3(1, 2, (fsi_real)0.5), (fsi_real)(1.5 * s));
    return p;
}

/* A lumpy ball around the origin. */
static fsi_mesh *make_rock(ex_app *app, int level)
{
    ex_mesh m = ex_sphere(fsi_v3(0, 0, 0), RADIUS, level);
    int i;
    for (i = 0; i < m.vertex_count; i++) {
        const fsi_vec3 u = fsi_v3_unit(m.vertices[i]);
        const double x = (double)u.x, y = (double)u.y, z = (double)u.z;
        const double bump = 0.12 * sin(3 * x + 1.3) * cos(2.5 * y) + 0.08 * sin(5 * z - 2 * x) +
                            0.04 * sin(9 * y + 7 * x) - 0.1 * x * x;
        m.vertices[i] = fsi_v3_scale(u, (fsi_real)(RADIUS * (1 + bump)));
    }
    return ex_solid(app, &m, FSI_MESH_CLOSED);
}

typedef struct state {
    fsi_wcsph *s;
    fsi_mesh *mesh;
    fsi_body rock;
    int id;
    flight path;
    fsi_box3 pool;
    ex_wcsph_tally tally;
    double splash, late, peak; /* highest particle [m]; density ratio; force on the rock [N] */
} state;

static void make_water(ex_app *app, state *w, double speed)
{
    fsi_wcsph_desc desc = fsi_wcsph_default_desc();
    desc.context = &app->context;
    desc.spacing = (fsi_real)(RADIUS / app->res);
    desc.depth = (fsi_real)LEVEL;
    desc.speed = (fsi_real)speed;
    desc.domain.lo = w->pool.lo = fsi_v3(0, 0, 0);
    desc.domain.hi = fsi_v3((fsi_real)SIDE, (fsi_real)SIDE, 8);
    w->pool.hi = fsi_v3((fsi_real)SIDE, (fsi_real)SIDE, (fsi_real)LEVEL);
    ex_check(app, fsi_wcsph_create(&w->s, &desc));
}

/* The rock above the water, on its way to a place just above the floor. */
static void launch_rock(ex_app *app, state *w, double speed, double angle)
{
    const double dx = (double)w->s->desc.spacing, rest = 1.15 * RADIUS + 2 * dx, fall = sin(angle * FSI_PI / 180);
    const fsi_vec3 way = fsi_v3((fsi_real)cos(angle * FSI_PI / 180), 0, (fsi_real)-fall);
    w->path.rest = fsi_v3((fsi_real)(0.55 * SIDE), (fsi_real)(SIDE / 2), (fsi_real)rest);
    w->path.from = fsi_v3_madd(w->path.rest, (fsi_real)(-(LEVEL + 1.6 * RADIUS + 3 * dx - rest) / fall), way);
    w->path.speed = speed;
    w->path.brake = 1.2 * RADIUS;
    w->mesh = make_rock(app, app->res > 8 ? 5 : 4);
    w->rock = fsi_default_body();
    ex_check(app, fsi_wcsph_add_body(w->s, w->mesh, &w->rock, &w->id));
    ex_wcsph_watch(app, &w->tally, w->s, w->mesh, &w->rock, w->id);
    w->rock.pose = w->rock.end = flight_pose(&w->path, 0);
    ex_check(app, fsi_wcsph_teleport_obstacle(w->s, w->id));
}

static void step(ex_app *app, state *w, double until, int late)
{
    fsi_vec3 force;
    int i;
    w->rock.end = flight_pose(&w->path, until);
    ex_wcsph_step(app, &w->tally, w->s, until - w->s->time);
    ex_check(app, fsi_wcsph_obstacle_reaction(w->s, w->id, &force, NULL));
    w->peak = fmax(w->peak, (double)fsi_v3_norm(force));
    for (i = 0; i < w->s->count; i++) w->splash = fmax(w->splash, (double)w->s->position[i].z);
    if (late) w->late = fmax(w->late, w->s->stats.density_ratio_inner);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_surface *skin;
    state w;
    double speed = 8, angle = 55, every = 0.025;
    int balls = 0, frame, k;

    memset(&w, 0, sizeof w);
    ex_init(&app, "asteroid", "A rock falls fast into a pool.");
    app.res = 5;
    app.res_help = "particles along the radius of the rock";
    app.frames = 28;
    ex_real(&app, "speed", &speed, 0.5, 60, "of the rock [m/s]");
    ex_real(&app, "angle", &angle, 20, 90, "of its way to the water [degrees]");
    ex_flag(&app, "particles", &balls, "draw particles instead of a surface");
    ex_real(&app, "every", &every, 1e-4, 1, "seconds between two pictures");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 3 || app.res > 32) ex_die("--res is not between 3 and 32");
    make_water(&app, &w, speed);
    launch_rock(&app, &w, speed, angle);
    ex_check(&app, fsi_wcsph_fill_box(w.s, w.pool, fsi_v3(0, 0, 0), NULL));
    ex_check(&app, fsi_wcsph_settle_density(w.s, w.pool.hi));
    skin = ex_particle_surface(&app, (double)w.s->desc.spacing);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)SIDE, (fsi_real)SIDE, (fsi_real)1.3), -65, 22);

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 1; k <= 5; k++) step(&app, &w, every * (frame + k / 5.0), 2 * frame >= app.frames);
        if (app.images) {
            ex_wcsph_draw_liquid(&app, &scene, skin, w.s, balls, speed / 2);
            ex_draw_body(&scene, w.mesh, fsi_default_body().pose, w.rock.pose, 0x8a7765);
            ex_draw_box(&scene, w.pool, 1.5, 0x7d8894);
            ex_save_scene(&app, &scene, frame, "%.2f s", w.s->time);
        }
        ex_write_particles(&app, "water", frame, w.s->position, w.s->velocity, w.s->count);
        ex_progress(&app, frame + 1);
    }

    ex_wcsph_figures(&app, &w.tally, w.s);
    ex_figure(&app, "splash", "%.2f", w.splash);
    ex_figure(&app, "density_late", "%.3f", w.late);
    ex_figure(&app, "force_peak", "%.2f", w.peak / (1000 * speed * speed * FSI_PI * RADIUS * RADIUS));
    ex_wcsph_tally_end(&w.tally);
    ex_scene_end(&scene);
    fsi_surface_destroy(skin);
    fsi_wcsph_destroy(w.s);
    fsi_mesh_destroy(w.mesh);
    return ex_end(&app);
}
