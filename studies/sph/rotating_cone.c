/* cc -O3 -I. studies/sph/rotating_cone.c -lm -o rotating_cone && ./rotating_cone
   SPDX-License-Identifier: MIT

   Water is poured into a funnel of six thin flat walls with a sharp tip, which then spins up to 87.2 rad/s and throws
   it out over its rim: a wall 4 mm thick whose rim moves 9 mm in a step of 1 ms, without substeps. --shape sheet makes
   the funnel of six triangles without thickness, --shape closed of the six triangles of a pyramid from which nothing
   may escape; --full is the 25,000 particles of the method's paper (Liu et al., "Rotating cone"). inside= adds up, over
   all steps, the particles that winding numbers find in the wall; leaked= those that changed sides where no rim is in
   reach.

         : jet         \  |  /      sides of a regular polygon, tip down, turning about the
          :             \ | /       axis z; the tank around it catches what is thrown out
           :             \|/                                                              */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/shapes.h"
#include "fsi_sph.h"
#include "../../examples/kit/sph_tally.h"

#define FRAME 0.015      /* seconds between two pictures */
#define RADIUS 0.1       /* of the corners of the rim [m] */
#define HEIGHT 0.16      /* from tip to rim */
#define WALL 0.004
#define SPEED 87.2       /* [rad/s] */
#define START 0.24       /* when it begins to turn [s] */
#define JET_SPEED 0.8    /* [m/s] */
#define JET_RADIUS 0.04
#define TANK 0.18        /* half width */

enum { FUNNEL, SHEET, CLOSED };

typedef struct cone {
    int kind, sides;
    fsi_mesh *mesh;
    fsi_body body;
    double jet_height;     /* where the jet begins */
    double volume, poured; /* inside, up to the rim, and how much of that is to be poured [m^3] */
    fsi_vec3 *was;         /* each particle in the frame of the cone, as of the last step */
    int followed;          /* for how many it is known */
    int leaked;
} cone;

/* A ring of corners; returns the first. */
static int add_ring(shape *s, int sides, double r, double z)
{
    int k, first = s->nx;
    for (k = 0; k < sides; k++) {
        double a = 2 * FSI_PI * k / sides;
        shape_add_vertex(s, fsi_v3((fsi_real)(r * cos(a)), (fsi_real)(r * sin(a)), (fsi_real)z));
    }
    return first;
}

/* The sides of a pyramid from its tip, or of its base, to a ring: seen from below and outside, or turned over. */
static void add_fan(shape *s, int tip, int ring, int sides, int over)
{
    int k, first = s->ne;
    for (k = 0; k < sides; k++) shape_add_triangle(s, tip, ring + (k + 1) % sides, ring + k);
    if (over) shape_turn_over(s, first);
}

/* The funnel, its inner surface alone, or a pyramid that is filled from within. */
static void make_cone(ex_app *app, cone *c)
{
    shape s = shape_empty();
    double apothem = RADIUS * cos(FSI_PI / c->sides), down = WALL * hypot(apothem, HEIGHT) / apothem;
    int k, tip = shape_add_vertex(&s, fsi_v3(0, 0, 0)), rim = add_ring(&s, c->sides, RADIUS, HEIGHT);
    add_fan(&s, tip, rim, c->sides, 1);
    if (c->kind == CLOSED) {
        shape_turn_over(&s, 0);
        for (k = 1; k + 1 < c->sides; k++) shape_add_triangle(&s, rim, rim + k, rim + k + 1);
    } else if (c->kind == FUNNEL) { /* walls of equal thickness: the outer tip is `down` below the inner one */
        int outer_tip = shape_add_vertex(&s, fsi_v3(0, 0, (fsi_real)-down));
        int outer = add_ring(&s, c->sides, RADIUS * (1 + down / HEIGHT), HEIGHT);
        add_fan(&s, outer_tip, outer, c->sides, 0);
        for (k = 0; k < c->sides; k++) {
            int next = (k + 1) % c->sides;
            shape_add_triangle(&s, rim + k, outer + k, outer + next);
            shape_add_triangle(&s, rim + k, outer + next, rim + next);
        }
    }
    c->mesh = shape_mesh(app, &s, c->kind == SHEET ? FSI_MESH_TWO_SIDED : FSI_MESH_CLOSED, c->kind == CLOSED);
    c->volume = c->sides * RADIUS * sin(FSI_PI / c->sides) * apothem * HEIGHT / 3;
    c->body = fsi_default_body();
    shape_free(&s);
}

/* Turned by now [rad]: at rest until START, evenly faster for `ramp` seconds, then at SPEED. */
static double turned(double time, double ramp)
{
    double t = time - START;
    if (t <= 0) return 0;
    return t < ramp ? SPEED * t * t / (2 * ramp) : SPEED * (t - ramp / 2);
}

static void set_end(cone *c, double time, double ramp)
{
    c->body.end.orientation = fsi_quat_from_axis_angle(fsi_v3(0, 0, 1), (fsi_real)fmod(turned(time, ramp), 2 * FSI_PI));
}

/* Adds the layers of the jet that have left the nozzle by now, dx apart; *layers counts them. */
static void pour(ex_app *app, fsi_sph *s, const cone *c, int *layers)
{
    double dx = (double)s->desc.spacing, out;
    int i, j, n = (int)(JET_RADIUS / dx);
    for (; s->count * (double)s->particle_volume < c->poured && (out = JET_SPEED * s->time - *layers * dx) >= 0;
         ++*layers) {
        for (j = -n; j <= n; j++) {
            for (i = -n; i <= n; i++) {
                fsi_vec3 x = fsi_v3((fsi_real)(i * dx), (fsi_real)(j * dx), (fsi_real)(c->jet_height - out));
                fsi_vec3 v = fsi_v3(0, 0, (fsi_real)-JET_SPEED);
                if (hypot(i, j) * dx < JET_RADIUS) ex_check(app, fsi_sph_add_particles(s, &x, &v, 1));
            }
        }
    }
}

/* Distance of a point, in the frame of the cone, from the infinite walls: from their middle, negative within. */
static double beyond(const cone *c, fsi_vec3 p)
{
    double apothem = RADIUS * cos(FSI_PI / c->sides), reach = 0, middle = c->kind == FUNNEL ? WALL / 2 : 0;
    int k;
    for (k = 0; k < c->sides; k++) {
        double a = 2 * FSI_PI * (k + 0.5) / c->sides, d = (double)p.x * cos(a) + (double)p.y * sin(a);
        if (d > reach) reach = d;
    }
    return (reach * HEIGHT - apothem * (double)p.z) / hypot(apothem, HEIGHT) - middle;
}

/* Counts particles that were on one side of the walls and are on the other, too far below the rim, before and after, to
   have come over it. */
static void follow(cone *c, const fsi_sph *s, double dt)
{
    double reach = s->stats.max_speed * dt + (double)s->desc.spacing;
    int i;
    c->was = (fsi_vec3 *)ex_alloc(c->was, (size_t)s->count, sizeof *c->was);
    for (i = 0; i < s->count; i++) {
        fsi_vec3 now = fsi_pose_local(c->body.pose, s->position[i]), was = c->was[i];
        if (i < c->followed && (beyond(c, now) < 0) != (beyond(c, was) < 0) &&
            fmax((double)now.z, (double)was.z) + reach < HEIGHT)
            c->leaked++;
        c->was[i] = now;
    }
    c->followed = s->count;
}

static void draw(ex_app *app, ex_scene *scene, fsi_surface *skin, const fsi_sph *s, const cone *c, int frame)
{
    fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)c->mesh->vertex_count, sizeof *x);
    int i;
    for (i = 0; i < c->mesh->vertex_count; i++) x[i] = fsi_pose_point(c->body.pose, c->mesh->vertices[i]);
    ex_draw_particles(app, scene, skin, s->position, s->count);
    if (c->kind == CLOSED)
        ex_draw_walls(scene, x, c->mesh->vertex_count, c->mesh->faces, c->mesh->face_count, 0xd9a15b);
    else ex_draw_mesh(scene, x, NULL, c->mesh->vertex_count, c->mesh->faces, c->mesh->face_count, 0xd9a15b);
    if (c->kind != CLOSED) ex_draw_box(scene, scene->box, 1.2, 0x7d8894);
    ex_save_scene(app, scene, frame, "%.2f s", s->time);
    free(x);
}

static int parse_shape(const char *name)
{
    if (strcmp(name, "sheet") == 0) return SHEET;
    if (strcmp(name, "closed") == 0) return CLOSED;
    if (strcmp(name, "funnel") != 0) ex_die("--shape is neither funnel nor sheet nor closed");
    return FUNNEL;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_tally tally = { 0 };
    cone c = { 0 };
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_sph_obstacle_desc wall = fsi_sph_default_obstacle_desc();
    fsi_box3 room;
    fsi_sph *s;
    fsi_surface *skin;
    const char *shape_name = "funnel";
    double dt = 1, ramp = 0.05;
    int full = 0, paper = 0, frame, layers = 0, id;

    ex_init(&app, "rotating_cone", "Water is poured into a thin funnel that spins up to 87.2 rad/s.");
    app.res = 34;
    app.res_help = "particles over the width of the rim: dx = 0.2 m / res";
    app.frames = 36;
    ex_string(&app, "shape", &shape_name,
              "funnel: thin walls; sheet: six triangles; closed: a pyramid of six triangles");
    ex_real(&app, "dt", &dt, 0, 20, "time step without substeps [ms], 0: 1 ms with substeps");
    ex_real(&app, "ramp", &ramp, 1e-6, 1, "seconds until the full speed is reached");
    ex_flag(&app, "full", &full, "25,000 particles");
    ex_flag(&app, "paper", &paper, "the paper's boundary formula");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    c.kind = parse_shape(shape_name);
    c.sides = c.kind == CLOSED ? 4 : 6;
    make_cone(&app, &c);
    c.poured = (c.kind == CLOSED ? 0.6 : 0.8) * c.volume;
    c.jet_height = c.kind == CLOSED ? 0.95 * HEIGHT : 1.4 * HEIGHT;

    desc.context = &app.context;
    desc.spacing = (fsi_real)(full ? pow(c.poured / 25000, 1.0 / 3) : 2 * RADIUS / app.res);
    desc.depth = 1; /* the head of 4.4 m/s, half the speed of the rim */
    desc.compressibility = (fsi_real)0.02;
    if (dt > 0) desc.max_substeps = 1;
    else dt = 1;
    if (paper) desc.boundary = FSI_SPH_BOUNDARY_PAPER;
    room.lo = fsi_v3((fsi_real)-TANK, (fsi_real)-TANK, (fsi_real)(-0.3 * HEIGHT));
    room.hi = fsi_v3((fsi_real)TANK, (fsi_real)TANK, (fsi_real)(1.6 * HEIGHT));
    if (c.kind == CLOSED) room = fsi_box3_grow(c.mesh->box, fsi_v3((fsi_real)RADIUS, (fsi_real)-RADIUS, 0));
    else {
        desc.domain = room;
        desc.domain.hi.z = 2; /* what splashes up comes down again */
    }
    ex_check(&app, fsi_sph_create(&s, &desc));
    wall.mesh = c.mesh;
    wall.body = &c.body;
    ex_check(&app, fsi_sph_add_obstacle(s, &wall, &id));
    skin = ex_particle_surface(&app, (double)desc.spacing);
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, room, 30, c.kind == CLOSED ? 12 : 32);

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            double step = dt / 1000;
            pour(&app, s, &c, &layers);
            set_end(&c, s->time + step, ramp);
            ex_check(&app, fsi_sph_step(s, (fsi_real)step));
            fsi_body_integrate(&c.body, (fsi_real)step);
            ex_tally_step(&app, &tally, s, c.kind == CLOSED ? room : desc.domain, 1);
            follow(&c, s, step);
        }
        if (app.images) draw(&app, &scene, skin, s, &c, frame);
        ex_write_particles(&app, "water", frame, s->position, s->velocity, s->count);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "triangles", "%.0f", c.mesh->face_count);
    ex_figure(&app, "dx_mm", "%.3g", 1000 * (double)desc.spacing);
    ex_tally_figures(&app, &tally, s);
    ex_figure(&app, "leaked", "%.0f", c.leaked);
    free(c.was);
    ex_scene_end(&scene);
    fsi_surface_destroy(skin);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(c.mesh);
    return ex_end(&app);
}
