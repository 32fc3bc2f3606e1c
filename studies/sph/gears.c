/* cc -O3 -I. studies/sph/gears.c -lm -o gears && ./gears
   SPDX-License-Identifier: MIT

   A jet of water falls between the teeth of four running gears in an open box: three at 34.9 rad/s and one of twice the
   teeth at half the speed. What comes between two teeth as they close must get out again, and nothing may get into
   them. The flanks are involutes, which roll on each other without overlap; each gear is drawn in by half of --gap,
   which leaves --gap between mating teeth. At 1.5 dx the liquid passes through, at 0.5 dx it is shut out. gap_dx= is
   the smallest distance found between any two gears over a turn. inside= particles in a gear, by winding numbers, lost=
   out of the box, placed= pinched= those put back outside by the simulator, and of these those without a free place. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/shapes.h"
#include "fsi_sph.h"
#include "../../examples/kit/sph_tally.h"

#define GEARS 4
#define TEETH 12             /* of the smaller gears; the first one has twice as many */
#define RADIUS 0.05          /* pitch circle of the smaller gears [m] */
#define MODULE (2 * RADIUS / TEETH)
#define WIDTH (1.2 * RADIUS)
#define PRESSURE_ANGLE (25 * FSI_PI / 180)
#define JET_SPEED 2.0        /* where it leaves the nozzle [m/s] */
#define JET_RADIUS (0.4 * RADIUS)
#define JET_X (-1.3 * RADIUS)
#define JET_Z (4 * RADIUS)
#define FRAMES_A_TURN 16

/* In the plane of the gears: x to the right, z up, the second gear at the origin. */
typedef struct gear {
    double x, z, radius;     /* axis and pitch circle [m] */
    double phase, speed;     /* of a tooth at time 0 [rad], and [rad/s]; from x to z */
    int teeth;
    fsi_mesh *mesh;
    fsi_body body;
} gear;

static double involute(double angle) { return tan(angle) - angle; }

/* Appends a point of the tooth around `middle`: `half` is the angle from its middle, negative before it. */
static void add_point(outline *o, double radius, double middle, double half)
{
    outline_add(o, radius * cos(middle + half), radius * sin(middle + half));
}

/* Teeth one after the other, each: foot, rising flank, tip, falling flank. A tooth is as wide as a gap on the pitch
   circle; at radius r its half angle is pi/(2 teeth) + inv(pressure angle) - inv(acos(base/r)); inside the base circle
   the flank is radial. The tip stands 0.8 modules above the pitch circle, so that 12 teeth need no undercut. */
static void add_teeth(outline *o, int teeth, double radius, double phase, int pieces)
{
    double base = radius * cos(PRESSURE_ANGLE), tip = radius + 0.8 * MODULE, root = radius - 1.05 * MODULE;
    double foot = FSI_PI / (2 * teeth) + involute(PRESSURE_ANGLE);
    double low = root > base ? root : base, pitch = 2 * FSI_PI / teeth;
    double root_half = foot - involute(acos(base / low)), tip_half = foot - involute(acos(base / tip));
    int k, i;
    for (k = 0; k < teeth; k++) {
        double middle = phase + k * pitch;
        for (i = 0; i < pieces && root < base; i++) add_point(o, root + (base - root) * i / pieces, middle, -root_half);
        for (i = 0; i <= 2 * pieces; i++) {
            double r = low + (tip - low) * i / (2 * pieces);
            add_point(o, r, middle, involute(acos(base / r)) - foot);
        }
        for (i = 1; i < pieces; i++) add_point(o, tip, middle, tip_half * (2.0 * i / pieces - 1));
        for (i = 2 * pieces; i >= 0; i--) {
            double r = low + (tip - low) * i / (2 * pieces);
            add_point(o, r, middle, foot - involute(acos(base / r)));
        }
        for (i = pieces - 1; i >= 0 && root < base; i--)
            add_point(o, root + (base - root) * i / pieces, middle, root_half);
        for (i = 1; i < pieces; i++) add_point(o, root, middle, root_half + (pitch - 2 * root_half) * i / pieces);
    }
}

static void make_gear(ex_app *app, gear *g, double gap, int pieces)
{
    outline whole = outline_empty(), drawn_in;
    shape s = shape_empty();
    fsi_pose upright; /* the extrusion's axis becomes -y */
    add_teeth(&whole, g->teeth, g->radius, g->phase, pieces);
    drawn_in = outline_inset(whole.xy, whole.n, gap / 2);
    shape_extrude(&s, drawn_in.xy, drawn_in.n, -WIDTH / 2, WIDTH / 2);
    upright.position = fsi_v3((fsi_real)g->x, 0, (fsi_real)g->z);
    upright.orientation = fsi_quat_from_axis_angle(fsi_v3(1, 0, 0), (fsi_real)(FSI_PI / 2));
    shape_transform(&s, 0, upright);
    g->mesh = shape_mesh(app, &s, FSI_MESH_CLOSED, 0);
    g->body = fsi_default_body();
    g->body.pose.position = upright.position;
    g->body.end = g->body.pose;
    shape_free(&s);
    outline_free(&whole);
    outline_free(&drawn_in);
}

/* Sets gear g on the pitch circle of `by`, in the direction `angle` from its axis, and turns it so that its gaps meet
   the teeth of `by` there: teeth (phase - angle) of both, in turns, add up to a half. */
static void mesh_with(gear *g, const gear *by, int teeth, double angle)
{
    double turns = by->teeth * (by->phase - angle) / (2 * FSI_PI);
    g->teeth = teeth;
    g->radius = RADIUS * teeth / TEETH;
    g->x = by->x + (by->radius + g->radius) * cos(angle);
    g->z = by->z + (by->radius + g->radius) * sin(angle);
    g->phase = angle + FSI_PI + 2 * FSI_PI / teeth * (0.5 - turns);
    g->speed = -by->speed * by->teeth / teeth;
}

static void place_gears(gear *g, double speed)
{
    memset(g, 0, GEARS * sizeof *g);
    g[1].teeth = TEETH;
    g[1].radius = RADIUS;
    g[1].speed = speed;
    mesh_with(&g[0], &g[1], 2 * TEETH, FSI_PI);
    mesh_with(&g[2], &g[1], TEETH, 80 * FSI_PI / 180);
    mesh_with(&g[3], &g[1], TEETH, -40 * FSI_PI / 180);
}

/* A turn from x to z is one about -y. */
static fsi_quat gear_at(const gear *g, double time)
{
    return fsi_quat_from_axis_angle(fsi_v3(0, -1, 0), (fsi_real)(g->speed * time));
}

/* Smallest distance between the corners of one gear and another one, over a turn of the smaller ones [m]; negative:
   they overlap. */
static double smallest_gap(const gear *g)
{
    double least = 1e300;
    int k, j, i, phase;
    for (phase = 0; phase < 4 * FRAMES_A_TURN; phase++) {
        double time = 2 * FSI_PI / fabs(g[1].speed) * phase / (4 * FRAMES_A_TURN);
        for (k = 0; k < GEARS; k++) {
            for (j = 0; j < GEARS; j++) {
                fsi_pose own = g[k].body.pose, other = g[j].body.pose;
                if (j == k) continue;
                own.orientation = gear_at(&g[k], time);
                other.orientation = gear_at(&g[j], time);
                for (i = 0; i < g[k].mesh->vertex_count; i++) {
                    fsi_vec3 x = fsi_pose_point(own, fsi_v3_sub(g[k].mesh->vertices[i], g[k].body.pose.position));
                    fsi_vec3 y = fsi_v3_add(fsi_pose_local(other, x), other.position);
                    least = fmin(least, (double)fsi_mesh_signed_distance(g[j].mesh, y));
                }
            }
        }
    }
    return least;
}

/* Adds the layers of the jet that have left the nozzle by now, dx apart; *layers counts them. */
static void pour(ex_app *app, fsi_sph *s, int *layers)
{
    double dx = (double)s->desc.spacing, out;
    int i, j, n = (int)(JET_RADIUS / dx) + 1;
    for (; (out = JET_SPEED * s->time - *layers * dx) >= 0; ++*layers) {
        for (j = -n; j < n; j++) {
            for (i = -n; i < n; i++) {
                double a = (i + 0.5) * dx, b = (j + 0.5) * dx;
                fsi_vec3 x = fsi_v3((fsi_real)(JET_X + a), (fsi_real)b, (fsi_real)(JET_Z - out));
                fsi_vec3 v = fsi_v3(0, 0, (fsi_real)-JET_SPEED);
                if (hypot(a, b) < JET_RADIUS) ex_check(app, fsi_sph_add_particles(s, &x, &v, 1));
            }
        }
    }
}

static void draw(ex_app *app, ex_scene *scene, fsi_surface *skin, const gear *gears, const fsi_sph *s, int frame)
{
    static const uint32_t paint[GEARS] = { 0xd9783b, 0xe0a94a, 0xb9b04a, 0xc9904a };
    int k, i;
    ex_draw_particles(app, scene, skin, s->position, s->count);
    for (k = 0; k < GEARS; k++) {
        const fsi_mesh *m = gears[k].mesh;
        fsi_pose pose = gears[k].body.pose;
        fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)m->vertex_count, sizeof *x);
        for (i = 0; i < m->vertex_count; i++) x[i] = fsi_pose_point(pose, fsi_v3_sub(m->vertices[i], pose.position));
        ex_draw_mesh(scene, x, NULL, m->vertex_count, m->faces, m->face_count, paint[k]);
        free(x);
    }
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    ex_save_frame(app, ex_render(scene), frame);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_tally tally = { 0 };
    gear gears[GEARS];
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_sph_obstacle_desc turning = fsi_sph_default_obstacle_desc();
    fsi_sph *s;
    fsi_surface *skin;
    fsi_box3 box;
    double dt = 3, gap = 1.5, speed = 34.9, frame_time;
    int k, frame, full = 0, paper = 0, layers = 0, triangles = 0;

    ex_init(&app, "gears", "A jet of water falls between the teeth of running gears.");
    app.res = 20;
    app.res_help = "particles over the diameter of a small gear: dx = 0.1 m / res";
    app.frames = 3 * FRAMES_A_TURN;
    ex_real(&app, "gap", &gap, 0.1, 3, "between mating teeth in units of dx");
    ex_real(&app, "speed", &speed, 0.1, 200, "of the smaller gears [rad/s]");
    ex_real(&app, "dt", &dt, 0, 20, "time step without substeps [ms], 0: chosen by the simulator");
    ex_flag(&app, "paper", &paper, "the paper's formula for walls");
    ex_flag(&app, "full", &full, "the paper's size: half a million particles at the end, steps of 1 ms");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (full) {
        app.res = 65;
        dt = 1;
    }

    desc.context = &app.context;
    desc.spacing = (fsi_real)(2 * RADIUS / app.res);
    desc.depth = (fsi_real)0.2;
    desc.boundary = paper ? FSI_SPH_BOUNDARY_PAPER : FSI_SPH_BOUNDARY_EXACT;
    box.lo = fsi_v3((fsi_real)(-5.6 * RADIUS), (fsi_real)-WIDTH, (fsi_real)(-3 * RADIUS));
    box.hi = fsi_v3((fsi_real)(3 * RADIUS), (fsi_real)WIDTH, (fsi_real)(4.2 * RADIUS));
    desc.domain = box;
    desc.domain.hi.z = (fsi_real)(12 * RADIUS); /* what splashes up comes down again */
    if (dt > 0) desc.max_substeps = 1;
    ex_check(&app, fsi_sph_create(&s, &desc));
    place_gears(gears, speed);
    for (k = 0; k < GEARS; k++) {
        make_gear(&app, &gears[k], gap * (double)desc.spacing, full ? 18 : 3);
        triangles += gears[k].mesh->face_count;
        turning.mesh = gears[k].mesh;
        turning.body = &gears[k].body;
        ex_check(&app, fsi_sph_add_obstacle(s, &turning, NULL));
    }
    skin = ex_particle_surface(&app, (double)desc.spacing);
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, box, 18, 16);
    frame_time = 2 * FSI_PI / speed / FRAMES_A_TURN;

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * frame_time - 1e-9) {
            double step = dt > 0 ? dt / 1000 : frame_time / 4;
            pour(&app, s, &layers);
            for (k = 0; k < GEARS; k++) gears[k].body.end.orientation = gear_at(&gears[k], s->time + step);
            ex_check(&app, fsi_sph_step(s, (fsi_real)step));
            for (k = 0; k < GEARS; k++) fsi_body_integrate(&gears[k].body, (fsi_real)step);
            ex_tally_step(&app, &tally, s, desc.domain, dt > 0 && !full);
        }
        if (full || !(dt > 0)) tally.inside += fsi_sph_count_inside(s, NULL);
        ex_write_particles(&app, "water", frame, s->position, s->velocity, s->count);
        if (app.images) draw(&app, &scene, skin, gears, s, frame);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "triangles", "%.0f", triangles);
    ex_figure(&app, "gap_dx", "%.3f", smallest_gap(gears) / (double)desc.spacing);
    ex_tally_figures(&app, &tally, s);
    ex_scene_end(&scene);
    fsi_surface_destroy(skin);
    fsi_sph_destroy(s);
    for (k = 0; k < GEARS; k++) fsi_mesh_destroy(gears[k].mesh);
    return ex_end(&app);
}
