/* cc -O3 -I. studies/sph/turbine.c -lm -o turbine && ./turbine
   SPDX-License-Identifier: MIT

   Water enters a pipe at 10 m/s, is set turning by eight guide vanes and straightened again by a runner of five blades
   that spins at 87.2 rad/s (Liu et al., "Hydroturbine"); it leaves through the open end of the pipe into a sink.
   torque= is the mean moment of the water on the runner over the last third of the run, along the axis; euler= what it
   should be by Euler's turbine equation: the moment of momentum that flows in before the runner less what flows out
   behind it, measured from the particles. inside= adds up, over all steps, the particles that winding numbers find in
   pipe, vanes, hubs or blades. --full is 2.1 million particles and 49,000 triangles.

       _______________________________________________
      |         vanes |/ /|   \\ |                      ->  sink
      |->       <==========| |=======>    tail            r = 0.12 m
      |_______________|\_\|___\\_|____________________
      0              0.13       0.27                 0.47 m */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/shapes.h"
#include "fsi_sph.h"
#include "../../examples/kit/sph_tally.h"

#define FRAME 0.003      /* seconds between two pictures */
#define SPEED 87.2       /* of the runner [rad/s] */
#define INFLOW 10.0      /* [m/s] */
#define PIPE 0.12        /* inner radius [m] */
#define PIPE_WALL 0.02
#define PIPE_END 0.47
#define HUB 0.048        /* radius of both hubs */
#define BEND 1.1         /* slope of the vanes' trailing edges: speed around the axis over speed along it */
#define SWIRL 0.6        /* and what is left of it in the flow behind them */
#define VANES 8
#define BLADES 5
#define VANE0 0.126      /* where the vanes begin, */
#define VANE1 0.198      /* and end */
#define BLADE0 0.225
#define BLADE1 0.273
#define RIFT 0.216       /* the static hub ends, the runner begins 3 mm behind */

typedef struct machine {
    shape bore;          /* inner skin of the pipe, to be drawn */
    fsi_mesh *pipe, *guide, *runner;
    fsi_body body;       /* of the runner, turning about the x axis */
    int runner_id;
    double torque, euler;
    long long samples;
} machine;

/* Along the axis, a flow that passes the hub at full pipe's rate goes so fast [m/s]. */
static double axial_speed(void) { return INFLOW * PIPE * PIPE / (PIPE * PIPE - HUB * HUB); }

/* Slope (around over along the axis) of a vane or blade at radius r, u = 0 at its leading edge, 1 at its trailing edge.
   A vane bends the flow by BEND; few as they are, vanes leave it with SWIRL. A blade, as it flies past, meets that flow
   head on and turns it back, a fifth more than the mean speed asks for, since it flows slower where walls narrow its
   way. */
static double slope_at(double r, double u, int moving)
{
    double fly = SPEED * r / axial_speed();
    return moving ? (1 - u) * (SWIRL - fly) - u * 1.2 * fly : u * BEND;
}

/* Section at radius r: from the leading edge along one face to the trailing edge and back along the other, 2 n corners,
   each (along the axis, around it). Thickness as of the four-digit aerofoils, with a sharp trailing edge. */
static void make_section(double r, double x0, double x1, double thickness, int moving, int n, double *xs)
{
    double s = 0, middle = 0;
    int i, k, fine = 16;
    for (i = 0; i <= n; i++) {
        double u = (double)i / n, slope = slope_at(r, u, moving), half;
        double back = i == 0 || i == n ? 0 : 1 / sqrt(1 + slope * slope);
        half = back * thickness / 2 * 2.6 * sqrt(u) * (1 - u);
        if (i == n / 2) middle = s;
        xs[2 * i] = x0 + (x1 - x0) * u - half * slope;
        xs[2 * i + 1] = s + half;
        if (i > 0 && i < n) {
            xs[2 * (2 * n - i)] = x0 + (x1 - x0) * u + half * slope;
            xs[2 * (2 * n - i) + 1] = s - half;
        }
        for (k = 0; k < fine; k++) s += (x1 - x0) / (n * fine) * slope_at(r, (i + (k + 0.5) / fine) / n, moving);
    }
    for (i = 0; i < 2 * n; i++) xs[2 * i + 1] -= middle; /* mid-chords stand above each other */
}

/* One blade between two radii: sections wound on cylinders, joined, and closed at root and tip. */
static void add_blade(shape *s, double r0, double r1, double x0, double x1, double thickness, int moving, double turn,
                      int n, int layers)
{
    double *xs = (double *)ex_alloc(NULL, 4 * (size_t)n, sizeof *xs);
    int first = s->nx, last = first + layers * 2 * n, i, k;
    for (k = 0; k <= layers; k++) {
        double r = r0 + (r1 - r0) * k / layers;
        make_section(r, x0, x1, thickness, moving, n, xs);
        for (i = 0; i < 2 * n; i++) {
            double a = turn + xs[2 * i + 1] / r;
            shape_add_vertex(s, fsi_v3((fsi_real)xs[2 * i], (fsi_real)(r * cos(a)), (fsi_real)(r * sin(a))));
        }
    }
    for (k = 0; k < layers; k++) {
        for (i = 0; i < 2 * n; i++) {
            int a = first + 2 * n * k + i, b = first + 2 * n * k + (i + 1) % (2 * n);
            shape_add_triangle(s, a, b, a + 2 * n);
            shape_add_triangle(s, b, b + 2 * n, a + 2 * n);
        }
    }
    for (i = 0; i < n; i++) { /* strips between corner i of one face and corner 2 n - i of the other */
        int a = i, b = i + 1, c = 2 * n - i - 1, d = (2 * n - i) % (2 * n);
        if (a != d) {
            shape_add_triangle(s, first + a, first + d, first + b);
            shape_add_triangle(s, last + a, last + b, last + d);
        }
        if (b != c) {
            shape_add_triangle(s, first + b, first + d, first + c);
            shape_add_triangle(s, last + b, last + c, last + d);
        }
    }
    free(xs);
}

/* A solid of revolution about the x axis: profile (r, x), as for shape_revolve. */
static void add_revolved(shape *s, const outline *o, int segments)
{
    int first = s->nx;
    fsi_pose lie;
    lie.position = fsi_v3(0, 0, 0);
    lie.orientation = fsi_quat_from_axis_angle(fsi_v3(0, 1, 0), (fsi_real)(FSI_PI / 2)); /* z to x */
    shape_revolve(s, o->xy, o->n, segments);
    shape_transform(s, first, lie);
}

/* The hub with a nose (or tail) that is half an ellipse: from x0 on the axis to x1, widest from a to b. */
static void add_hub(shape *s, double x0, double a, double b, double x1, int segments)
{
    outline o = outline_empty();
    int i, n = segments / 4;
    outline_add(&o, 0, x0);
    for (i = x0 < a ? 1 : n; i <= n; i++)
        outline_add(&o, HUB * sin(FSI_PI / 2 * i / n), a - (a - x0) * cos(FSI_PI / 2 * i / n));
    for (i = 0; i < (b < x1 ? n : 1); i++)
        outline_add(&o, HUB * cos(FSI_PI / 2 * i / n), b + (x1 - b) * sin(FSI_PI / 2 * i / n));
    outline_add(&o, 0, x1);
    add_revolved(s, &o, segments);
    outline_free(&o);
}

/* A tube, closed at the inlet; and its inner skin. */
static void make_pipe(ex_app *app, machine *m, double inlet, int segments)
{
    static const double corners[6][2] = {
        {0, -PIPE_WALL}, {PIPE + PIPE_WALL, -PIPE_WALL}, {PIPE + PIPE_WALL, PIPE_END}, {PIPE, PIPE_END}, {PIPE, 0},
        {0, 0}};
    shape s = shape_empty();
    outline o = outline_empty();
    int i, k, e;
    for (i = 0; i < 6; i++) outline_add(&o, corners[i][0], corners[i][1] < PIPE_END ? inlet + corners[i][1] : PIPE_END);
    add_revolved(&s, &o, segments);
    m->pipe = shape_mesh(app, &s, FSI_MESH_CLOSED, 0);
    m->bore = s;
    for (i = e = 0; i < s.ne; i++) { /* keep what is nowhere farther out than the bore */
        double out = 0;
        for (k = 0; k < 3; k++) out = fmax(out, hypot((double)s.x[s.e[3 * i + k]].y, (double)s.x[s.e[3 * i + k]].z));
        if (out > PIPE * 1.01) continue;
        for (k = 0; k < 3; k++) s.e[3 * e + k] = s.e[3 * i + k];
        e++;
    }
    m->bore.ne = e;
    outline_free(&o);
}

/* Hubs and blades do not touch: a rift of 1 % of the radius, which no particle enters, keeps every solid by itself. */
static void make_machine(ex_app *app, machine *m, double inlet, int tess)
{
    shape guide = shape_empty(), runner = shape_empty();
    int k, n = 6 * tess, layers = 4 * tess, segments = 24 * tess;
    memset(m, 0, sizeof *m);
    make_pipe(app, m, inlet, 2 * segments);
    add_hub(&guide, 0.048, 0.12, RIFT, RIFT, segments);
    for (k = 0; k < VANES; k++)
        add_blade(&guide, 1.01 * HUB, 0.99 * PIPE, VANE0, VANE1, 0.007, 0, 2 * FSI_PI * k / VANES, n, layers);
    add_hub(&runner, RIFT + 0.003, RIFT + 0.003, 0.288, 0.408, segments);
    for (k = 0; k < BLADES; k++)
        add_blade(&runner, 1.01 * HUB, 0.97 * PIPE, BLADE0, BLADE1, 0.006, 1, 2 * FSI_PI * k / BLADES, n, layers);
    m->guide = shape_mesh(app, &guide, FSI_MESH_CLOSED, 0);
    m->runner = shape_mesh(app, &runner, FSI_MESH_CLOSED, 0);
    m->body = fsi_default_body();
    shape_free(&guide);
    shape_free(&runner);
}

/* What flows in and out: an emitter over the bore at x = 0, a sink behind the end of the pipe. */
static void add_flow(ex_app *app, fsi_sph *s)
{
    fsi_emitter_desc in = fsi_emitter_default_desc();
    fsi_sink_desc out = fsi_sink_default_desc();
    in.direction = fsi_v3(1, 0, 0);
    in.radius = (fsi_real)PIPE - s->desc.spacing / 2;
    in.speed = (fsi_real)INFLOW;
    ex_check(app, fsi_sph_add_emitter(s, &in, NULL));
    out.box.lo = fsi_v3((fsi_real)(PIPE_END + 0.04), -1, -1);
    out.box.hi = fsi_v3(2, 1, 1);
    ex_check(app, fsi_sph_add_sink(s, &out, NULL));
}

/* Moment of momentum about the axis that flows through a plane [N m]: of the particles in a slab 12 mm thick around
   it. */
static double moment_flow(const fsi_sph *s, double x)
{
    double sum = 0, thick = 0.012;
    int i;
    for (i = 0; i < s->count; i++) {
        fsi_vec3 p = s->position[i], v = s->velocity[i];
        if (fabs((double)p.x - x) < thick / 2)
            sum += (double)v.x * ((double)p.y * (double)v.z - (double)p.z * (double)v.y);
    }
    return sum * (double)s->particle_mass / thick;
}

/* The far half of the water, coloured by speed, in the far half of the pipe, with all of vanes and runner. */
static void draw(ex_app *app, ex_scene *scene, fsi_surface *skin, const fsi_sph *s, const machine *m, int frame)
{
    fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)s->count, sizeof *x),
             *v = (fsi_vec3 *)ex_alloc(NULL, (size_t)s->count, sizeof *v);
    fsi_vec3 *turned = (fsi_vec3 *)ex_alloc(NULL, (size_t)m->runner->vertex_count, sizeof *turned);
    ex_image *image;
    int i, n = 0;
    for (i = 0; i < s->count; i++) {
        if ((double)s->position[i].y < 0) continue;
        x[n] = s->position[i];
        v[n++] = s->velocity[i];
    }
    for (i = 0; i < m->runner->vertex_count; i++) turned[i] = fsi_pose_point(m->body.pose, m->runner->vertices[i]);
    ex_draw_speeds(app, scene, skin, x, v, n, 2 * INFLOW);
    ex_draw_walls(scene, m->bore.x, m->bore.nx, m->bore.e, m->bore.ne, 0xb9c1ca);
    ex_draw_mesh(scene, m->guide->vertices, NULL, m->guide->vertex_count, m->guide->faces, m->guide->face_count,
                 0x8f99a3);
    ex_draw_mesh(scene, turned, NULL, m->runner->vertex_count, m->runner->faces, m->runner->face_count, 0xd9783b);
    image = ex_render(scene);
    ex_color_bar(image, 24, 40, EX_MAP_WATER, 0, 2 * INFLOW, "speed [m/s]");
    ex_save_frame(app, image, frame);
    free(x);
    free(v);
    free(turned);
}

static void add_machine(ex_app *app, fsi_sph *s, machine *m)
{
    fsi_sph_obstacle_desc turning = fsi_sph_default_obstacle_desc();
    ex_check(app, fsi_sph_add_mesh(s, m->pipe, NULL));
    ex_check(app, fsi_sph_add_mesh(s, m->guide, NULL));
    turning.mesh = m->runner;
    turning.body = &m->body;
    ex_check(app, fsi_sph_add_obstacle(s, &turning, &m->runner_id));
}

/* The runner's torque, and what Euler's equation says of the flow before and behind it. */
static void measure(ex_app *app, const fsi_sph *s, machine *m)
{
    fsi_vec3 torque;
    ex_check(app, fsi_sph_obstacle_reaction(s, m->runner_id, NULL, &torque));
    m->torque += (double)torque.x;
    m->euler += moment_flow(s, (VANE1 + BLADE0) / 2) - moment_flow(s, BLADE1 + 0.012);
    m->samples++;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_tally tally = { 0 };
    machine m;
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_box3 view;
    fsi_sph *s;
    fsi_surface *skin;
    double dt = 1, end, t_step = 0;
    int full = 0, paper = 0, tess = 1, frame, triangles;

    ex_init(&app, "turbine", "Water drives a runner of five blades behind a ring of guide vanes.");
    app.res = 16;
    app.res_help = "particles over the width of the pipe: dx = 0.24 m / res";
    app.frames = 28;
    ex_real(&app, "dt", &dt, 0, 5, "time step without substeps [ms], 0: 1 ms with substeps");
    ex_int(&app, "tess", &tess, 1, 20, "fineness of the meshes");
    ex_flag(&app, "full", &full, "2.1 million particles, 49,000 triangles");
    ex_flag(&app, "paper", &paper, "the paper's boundary formula");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (full) {
        app.res = 110;
        tess = 5;
    }

    desc.context = &app.context;
    desc.spacing = (fsi_real)(2 * PIPE / app.res);
    desc.depth = 5; /* the head of 10 m/s */
    desc.compressibility = (fsi_real)0.02;
    desc.max_iters = 50;
    desc.domain.lo = fsi_v3((fsi_real)-0.1, -1, -1);
    desc.domain.hi = fsi_v3(2, 1, 1);
    if (dt > 0) desc.max_substeps = 1;
    else dt = 1;
    if (paper) desc.boundary = FSI_SPH_BOUNDARY_PAPER;
    make_machine(&app, &m, -(double)desc.spacing / 2, tess);
    triangles = m.pipe->face_count + m.guide->face_count + m.runner->face_count;
    ex_check(&app, fsi_sph_create(&s, &desc));
    add_machine(&app, s, &m);
    add_flow(&app, s);
    end = app.frames * FRAME;
    skin = ex_speed_surface(&app, (double)desc.spacing);
    scene = ex_scene_begin(&app);
    view.lo = fsi_v3(0, (fsi_real)-PIPE, (fsi_real)-PIPE);
    view.hi = fsi_v3((fsi_real)(PIPE_END + 0.04), (fsi_real)PIPE, (fsi_real)PIPE);
    ex_look_at_box(&scene, view, 12, 14);

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            double step = dt / 1000, started = ex_wall_seconds();
            m.body.end.orientation =
                fsi_quat_from_axis_angle(fsi_v3(1, 0, 0), (fsi_real)fmod(SPEED * (s->time + step), 2 * FSI_PI));
            ex_check(&app, fsi_sph_step(s, (fsi_real)step));
            fsi_body_integrate(&m.body, (fsi_real)step);
            t_step += ex_wall_seconds() - started;
            if (s->time > 2 * end / 3) measure(&app, s, &m);
            ex_tally_step(&app, &tally, s, desc.domain, 1);
        }
        if (app.images) draw(&app, &scene, skin, s, &m, frame);
        ex_write_particles(&app, "water", frame, s->position, s->velocity, s->count);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "triangles", "%.0f", triangles);
    ex_figure(&app, "torque", "%.1f", m.torque / (double)m.samples);
    ex_figure(&app, "euler", "%.1f", m.euler / (double)m.samples);
    ex_tally_figures(&app, &tally, s);
    ex_figure(&app, "blocked", "%.0f", tally.blocked);
    ex_figure(&app, "t_step", "%.4f", t_step / (double)tally.calls);
    ex_scene_end(&scene);
    fsi_surface_destroy(skin);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(m.pipe);
    fsi_mesh_destroy(m.guide);
    fsi_mesh_destroy(m.runner);
    shape_free(&m.bore);
    return ex_end(&app);
}
