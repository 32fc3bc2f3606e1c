/* cc -O3 -I. studies/sph/rotor_pump.c -lm -o rotor_pump && ./rotor_pump
   SPDX-License-Identifier: MIT

   Two lobed rotors mesh in a housing at the foot of a wall and drive water from the left basin into the right one, from
   where it returns over the wall. No emitter, no valve: what the pump moves is what its lobes enclose. flow_ratio= net
   volume through the outlet after the first revolution, over the volume displaced in that time,

      2 depth (pi bore^2 - rotor's area) a revolution: each rotor carries its gaps past the housing once.

   There is no air to press water into the gaps, only the depth above, so the wall stands deep under water. What is
   missing from 1 shrinks with --res: 0.89 at 14, 0.94 at 20. Mostly it is the wedge between tip and bore, thinner than
   a particle.

   The lobes are cycloids, rolled by a circle on the pitch circle, outside and inside by turns. Such rotors touch and
   never overlap; drawn in by half the clearance they keep apart. gap_dx= is the smallest distance found between any two
   of the solids over a turn, the ends of the rotors and the walls there included. inside= particles in a solid, by
   winding numbers, and lost= outside the tank, summed over all steps (--full: inside at the end); placed= pinched=
   those that the simulator put back outside, and of these those without a free place. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/shapes.h"
#include "fsi_sph.h"
#include "../../examples/kit/sph_tally.h"

#define TIP 0.03             /* radius of the rotors before they are drawn in [m] */
#define DEPTH (0.8 * TIP)    /* of the tank, along the axes */
#define WALL (0.25 * TIP)    /* least thickness of the housing */
#define BASIN (1.3 * TIP)    /* width of each */
#define ABOVE (2.5 * TIP)    /* water over the top of the wall at the start, at DEEP_FOR rad/s; it grows as their
                                square, like the suction */
#define DEEP_FOR 26.1
#define FRAMES_A_TURN 16
#define RAMP 0.5             /* the rotors come up to speed in the time of so many turns */

/* Lengths in the plane of the rotors: x to the right, z up, the origin halfway between the axes. */
typedef struct pump {
    int lobes;
    double dx, clearance, end_gap; /* [m] */
    double chord;            /* of the meshes, about [m] */
    double pitch;            /* half the distance of the axes */
    double bore, port, wall; /* radius; half the height of the ports; half the thickness of the wall */
    double top, water, room; /* top of the wall, of the water and of the tank; the floor is at -top */
    double speed;            /* of the rotors [rad/s] */
    double rotor_area;
    fsi_mesh *house, *rotor[2];
    fsi_body body[2];
    double measured, turns;  /* volume that has passed [m^3], in so many turns */
} pump;

/* One lobe after the other: on a circle of radius a rolls one of radius b = a / (2 lobes), outside from -b/a to b/a
   half turns for the lobe, then inside for the hollow. Tips reach a + 2 b, hollows a - 2 b. */
static void add_cycloids(outline *o, int lobes, double a, double tip_angle, int pieces)
{
    double b = a / (2 * lobes);
    int k, i;
    for (k = 0; k < 2 * lobes; k++) {
        double s = k & 1 ? -1 : 1, start = tip_angle + (2 * k - 1) * FSI_PI / (2 * lobes);
        for (i = 0; i < pieces; i++) {
            double t = 2 * FSI_PI * i / pieces, middle = start + t * b / a, turn = middle + s * t;
            outline_add(o, (a + s * b) * cos(middle) - s * b * cos(turn),
                        (a + s * b) * sin(middle) - s * b * sin(turn));
        }
    }
}

/* From the plane (x, z) of the outlines to the world: (x, z, along) becomes (x, -along, z). */
static void stand_up(shape *s)
{
    fsi_pose p;
    p.position = fsi_v3(0, 0, 0);
    p.orientation = fsi_quat_from_axis_angle(fsi_v3(1, 0, 0), (fsi_real)(FSI_PI / 2));
    shape_transform(s, 0, p);
}

/* Rotor 0 above, with a tip pointing down; rotor 1 below, with a hollow pointing up. */
static void make_rotor(ex_app *app, pump *p, int k)
{
    outline rolled = outline_empty(), drawn_in;
    shape s = shape_empty();
    fsi_vec3 axis = fsi_v3(0, (fsi_real)(DEPTH / 2), (fsi_real)(k ? -p->pitch : p->pitch));
    int i, pieces = (int)ceil(8 * TIP / (2 * p->lobes) / p->chord);
    add_cycloids(&rolled, p->lobes, p->pitch, k ? FSI_PI / 2 - FSI_PI / p->lobes : -FSI_PI / 2, pieces);
    drawn_in = outline_inset(rolled.xy, rolled.n, p->clearance / 2);
    p->rotor_area = outline_area(drawn_in.xy, drawn_in.n);
    shape_extrude(&s, drawn_in.xy, drawn_in.n, -DEPTH + p->end_gap, -p->end_gap);
    stand_up(&s);
    for (i = 0; i < s.nx; i++) s.x[i].z += axis.z;
    p->rotor[k] = shape_mesh(app, &s, FSI_MESH_CLOSED, 0);
    p->body[k] = fsi_default_body();
    p->body[k].pose.position = axis;
    p->body[k].end = p->body[k].pose;
    shape_free(&s);
    outline_free(&rolled);
    outline_free(&drawn_in);
}

/* The bore around (0, z) from the port's edge on one side to the other, over the far side. The corners lie outside the
   circle, so that its chords do not come nearer to the rotor than they should. */
static void add_bore(outline *o, const pump *p, double z, double from, double to)
{
    int pieces = (int)ceil((to - from) * p->bore / p->chord);
    outline_arc(o, 0, z, p->bore / cos((to - from) / (2 * pieces)), from, to, pieces);
}

/* Tank and housing in one: the liquid's outer bounds with the lower bore, and the wall with the upper bore as a
   hole. */
static void make_house(ex_app *app, pump *p)
{
    outline o = outline_empty(), wall = outline_empty();
    shape s = shape_empty();
    double x = p->wall + BASIN, edge = asin((p->pitch - p->port) / p->bore);
    outline_add(&o, -x, -p->top);
    outline_add(&o, -p->wall, -p->top);
    outline_add(&o, -p->wall, -p->port);
    add_bore(&o, p, -p->pitch, FSI_PI - edge, 2 * FSI_PI + edge);
    outline_add(&o, p->wall, -p->port);
    outline_add(&o, p->wall, -p->top);
    outline_add(&o, x, -p->top);
    outline_add(&o, x, p->room);
    outline_add(&o, -x, p->room);
    outline_add(&wall, -p->wall, p->port);
    outline_add(&wall, -p->wall, p->top);
    outline_add(&wall, p->wall, p->top);
    outline_add(&wall, p->wall, p->port);
    add_bore(&wall, p, p->pitch, -edge, FSI_PI + edge);
    outline_add_hole(&o, wall.xy, wall.n);
    shape_extrude(&s, o.xy, o.n, -DEPTH, 0);
    stand_up(&s);
    p->house = shape_mesh(app, &s, FSI_MESH_CLOSED, 1);
    shape_free(&s);
    outline_free(&o);
    outline_free(&wall);
}

static void make_pump(ex_app *app, pump *p)
{
    int k;
    p->pitch = TIP * p->lobes / (p->lobes + 1.0);
    p->bore = TIP + p->clearance / 2;
    p->port = 0.75 * p->pitch;
    p->wall = p->bore + WALL;
    p->top = p->pitch + p->bore + WALL;
    p->water = p->top + ABOVE * fmax(1, p->speed * p->speed / (DEEP_FOR * DEEP_FOR));
    p->room = p->water + 1.5 * TIP;
    make_house(app, p);
    for (k = 0; k < 2; k++) make_rotor(app, p, k);
}

/* The upper rotor turns with the clock as seen from -y, the lower one against it: outside they go left to right. */
static fsi_quat rotor_at(int k, double angle)
{
    return fsi_quat_from_axis_angle(fsi_v3(0, 1, 0), (fsi_real)(k ? -angle : angle));
}

/* Turned by then [rad]: the speed rises linearly, then stays. */
static double angle_at(const pump *p, double time)
{
    double up = RAMP * 2 * FSI_PI / p->speed;
    return time < up ? p->speed * time * time / (2 * up) : p->speed * (time - up / 2);
}

/* Smallest distance between the corners of each rotor and the other two solids, over one turn [m]; negative: they
   overlap. */
static double smallest_gap(const pump *p)
{
    double least = 1e300;
    int k, i, phase;
    for (phase = 0; phase < 6 * FRAMES_A_TURN; phase++) {
        double angle = 2 * FSI_PI * phase / (6 * FRAMES_A_TURN);
        for (k = 0; k < 2; k++) {
            fsi_pose own = p->body[k].pose, other = p->body[!k].pose;
            own.orientation = rotor_at(k, angle);
            other.orientation = rotor_at(!k, angle);
            for (i = 0; i < p->rotor[k]->vertex_count; i++) {
                fsi_vec3 x = fsi_pose_point(own, fsi_v3_sub(p->rotor[k]->vertices[i], own.position));
                fsi_vec3 y = fsi_v3_add(fsi_pose_local(other, x), other.position);
                least = fmin(least, (double)fsi_mesh_signed_distance(p->rotor[!k], y));
                least = fmin(least, (double)fsi_mesh_signed_distance(p->house, x));
            }
        }
    }
    return least;
}

/* Volume carried by a whole turn of both rotors [m^3]. */
static double displaced(const pump *p)
{
    return 2 * DEPTH * (FSI_PI * p->bore * p->bore - p->rotor_area);
}

/* Net number of particles that came through the outlet since the last call; right: one byte a particle, behind it. */
static int count_passed(const pump *p, const fsi_sph *s, unsigned char *right)
{
    int i, passed = 0;
    for (i = 0; i < s->count; i++) {
        unsigned char now = (double)s->position[i].x > p->wall - WALL / 2;
        if ((double)s->position[i].z < p->pitch) passed += now - right[i];
        right[i] = now;
    }
    return passed;
}

/* The front wall is glass: where the others meet it. */
static void draw_rim(ex_scene *scene, const fsi_mesh *m)
{
    int f, k;
    for (f = 0; f < m->face_count; f++) {
        for (k = 0; k < 3 && m->face_normals[f].y > (fsi_real)0.5; k++) {
            int a = m->faces[3 * f + k], b = m->faces[3 * f + (k + 1) % 3], other = m->face_neighbor[3 * f + k];
            if (m->face_normals[other].y < (fsi_real)0.5)
                ex_draw_line(scene, m->vertices[a], m->vertices[b], 1.5, 0x55616c);
        }
    }
}

static void draw(ex_app *app, ex_scene *scene, fsi_surface *skin, const pump *p, const fsi_sph *s, int frame)
{
    ex_image *image;
    char text[64];
    int k, i;
    ex_draw_speeds(app, scene, skin, s->position, s->velocity, s->count, 2 * p->speed * TIP);
    for (k = 0; k < 2; k++) {
        const fsi_mesh *m = p->rotor[k];
        fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)m->vertex_count, sizeof *x);
        fsi_vec3 axis = p->body[k].pose.position;
        for (i = 0; i < m->vertex_count; i++) x[i] = fsi_pose_point(p->body[k].pose, fsi_v3_sub(m->vertices[i], axis));
        ex_draw_mesh(scene, x, NULL, m->vertex_count, m->faces, m->face_count, k ? 0xd9783b : 0xe0a94a);
        free(x);
    }
    ex_draw_walls(scene, p->house->vertices, p->house->vertex_count, p->house->faces, p->house->face_count, 0xaab4bd);
    draw_rim(scene, p->house);
    image = ex_render(scene);
    snprintf(text, sizeof text, "%.2f revolutions at %.1f rad/s", angle_at(p, s->time) / (2 * FSI_PI), p->speed);
    ex_text(image, 24, 34, 11, EX_LEFT, 0x3a4550, text);
    ex_save_frame(app, image, frame);
}

/* House, rotors and water. */
static void fill_pump(ex_app *app, pump *p, fsi_sph *s)
{
    fsi_sph_obstacle_desc turning = fsi_sph_default_obstacle_desc();
    fsi_box3 water = p->house->box;
    int k;
    ex_check(app, fsi_sph_add_mesh(s, p->house, NULL));
    for (k = 0; k < 2; k++) {
        turning.mesh = p->rotor[k];
        turning.body = &p->body[k];
        ex_check(app, fsi_sph_add_obstacle(s, &turning, NULL));
    }
    water.hi.z = (fsi_real)p->water;
    ex_check(app, fsi_sph_fill_box(s, water, fsi_v3(0, 0, 0), NULL));
}

/* One step of rotors and water. */
static void turn(ex_app *app, pump *p, fsi_sph *s, double step)
{
    int k;
    for (k = 0; k < 2; k++) p->body[k].end.orientation = rotor_at(k, angle_at(p, s->time + step));
    ex_check(app, fsi_sph_step(s, (fsi_real)step));
    for (k = 0; k < 2; k++) fsi_body_integrate(&p->body[k], (fsi_real)step);
}

/* What has passed the wall in a step, from the second turn on. */
static void measure(pump *p, const fsi_sph *s, unsigned char *right, double step)
{
    const int passed = count_passed(p, s, right);
    if (angle_at(p, s->time) <= 2 * FSI_PI) return;
    p->measured += passed * (double)s->particle_volume;
    p->turns += step * p->speed / (2 * FSI_PI);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_tally tally = { 0 };
    pump p;
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_sph *s;
    fsi_surface *skin;
    unsigned char *right;
    double dt = 1, clearance = 0.3, frame_time;
    int k, frame, full = 0, paper = 0;

    memset(&p, 0, sizeof p);
    p.lobes = 2;
    p.speed = 26.1;
    ex_init(&app, "rotor_pump", "Two lobed rotors pump water over a wall.");
    app.res = 14;
    app.res_help = "particles over the diameter of a rotor: dx = 6 cm / res";
    app.frames = 2 * FRAMES_A_TURN;
    ex_int(&app, "lobes", &p.lobes, 2, 5, "of each rotor");
    ex_real(&app, "speed", &p.speed, 0, 200, "of the rotors [rad/s]; the paper: 26.1 and 52.2");
    ex_real(&app, "clearance", &clearance, 0.1, 5, "between rotors and to the housing in units of dx");
    ex_real(&app, "dt", &dt, 0, 20, "time step without substeps [ms], 0: chosen by the simulator");
    ex_flag(&app, "paper", &paper, "the paper's formula for walls");
    ex_flag(&app, "full", &full, "the paper's size: 1.1 million particles, steps of 1 ms");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (full) {
        app.res = 79;
        dt = 1;
    }
    if (!(p.speed > 0)) ex_die("the rotors must turn");

    p.dx = 2 * TIP / app.res;
    p.clearance = clearance * p.dx;
    p.end_gap = 0.1 * p.dx;
    p.chord = (full ? 0.2 : 0.5) * p.dx;
    make_pump(&app, &p);
    frame_time = 2 * FSI_PI / p.speed / FRAMES_A_TURN;
    desc.context = &app.context;
    desc.spacing = (fsi_real)p.dx;
    desc.depth = (fsi_real)(p.top + p.water);
    desc.compressibility = (fsi_real)0.02;
    desc.boundary = paper ? FSI_SPH_BOUNDARY_PAPER : FSI_SPH_BOUNDARY_EXACT;
    if (dt > 0) desc.max_substeps = 1;
    ex_check(&app, fsi_sph_create(&s, &desc));
    fill_pump(&app, &p, s);
    right = (unsigned char *)ex_alloc(NULL, (size_t)s->count, 1);
    count_passed(&p, s, right);
    skin = ex_speed_surface(&app, p.dx);
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, p.house->box, 12, 14);

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * frame_time - 1e-9) {
            double step = dt > 0 ? dt / 1000 : frame_time / 5;
            turn(&app, &p, s, step);
            ex_tally_step(&app, &tally, s, p.house->box, dt > 0 && !full);
            measure(&p, s, right, step);
        }
        if (full ? frame + 1 == app.frames : !(dt > 0)) tally.inside += fsi_sph_count_inside(s, NULL);
        ex_write_particles(&app, "water", frame, s->position, s->velocity, s->count);
        if (app.images) draw(&app, &scene, skin, &p, s, frame);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "triangles", "%.0f", p.house->face_count + p.rotor[0]->face_count + p.rotor[1]->face_count);
    ex_figure(&app, "gap_dx", "%.3f", smallest_gap(&p) / p.dx);
    if (p.turns > 0) ex_figure(&app, "flow_ratio", "%.4f", p.measured / (p.turns * displaced(&p)));
    ex_tally_figures(&app, &tally, s);
    free(right);
    ex_scene_end(&scene);
    fsi_surface_destroy(skin);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(p.house);
    for (k = 0; k < 2; k++) fsi_mesh_destroy(p.rotor[k]);
    return ex_end(&app);
}
