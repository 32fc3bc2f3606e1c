/* cc -O3 -I. examples/float_mesh.c -lm -o float_mesh && ./float_mesh [file.obj]
   SPDX-License-Identifier: MIT

   A solid of half the water's density falls into a pool and comes to float: any closed OBJ or PLY that you name, scaled
   to fit the tank, else a ring. It is a COUPLED fsi_body: level-set liquid and body are solved together, and this
   program integrates its pose. share= is the part of its volume below the water level, over its density ratio;
   draft_error= compares how deep it hangs with how deep a body of that weight hangs in still water, turned as it is:
   both are means over the later part of the run, in which it still bobs. A --density above 1000 sinks, and rests on
   springs along the floor. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_levelset.h"

#define FRAME 0.12  /* seconds between two pictures */
#define TANK 1.0    /* its length and width [m] */
#define ROOF 1.0
#define LEVEL 0.42  /* of the water at first */

typedef struct floater {
    fsi_mesh *mesh;
    fsi_body body;
    fsi_vec3 *local, *x; /* vertices in the body's axes, and where they are now */
    double volume;
} floater;

/* What was measured, as sums. It bobs for long: weights that rise and fall smoothly over the last two thirds of the run take that out. */
typedef struct record {
    double share, draft, wanted, weight, worst;
} record;

static void place_vertices(floater *f)
{
    int v;
    for (v = 0; v < f->mesh->vertex_count; v++) f->x[v] = fsi_pose_point(f->body.pose, f->local[v]);
}

static double lowest(const floater *f)
{
    double z = 1e30;
    int v;
    for (v = 0; v < f->mesh->vertex_count; v++) z = fmin(z, (double)f->x[v].z);
    return z;
}

/* Volume of a closed mesh below z = level: each triangle, cut there, with the point (0, 0, level) makes a pyramid; the lid has none. */
static double volume_below(const floater *f, double level)
{
    const fsi_vec3 o = fsi_v3(0, 0, (fsi_real)level);
    double sum = 0;
    int i, k, n;
    for (i = 0; i < f->mesh->face_count; i++) {
        fsi_vec3 p[4];
        for (k = n = 0; k < 3; k++) {
            fsi_vec3 a = fsi_v3_sub(f->x[f->mesh->faces[3 * i + k]], o), b = fsi_v3_sub(f->x[f->mesh->faces[3 * i + (k + 1) % 3]], o);
            if (a.z < 0) p[n++] = a;
            if ((a.z < 0) != (b.z < 0)) p[n++] = fsi_v3_madd(a, a.z / (a.z - b.z), fsi_v3_sub(b, a));
        }
        for (k = 1; k + 1 < n; k++) sum += (double)fsi_v3_dot(p[0], fsi_v3_cross(p[k], p[k + 1])) / 6;
    }
    return sum;
}

/* The level at which area * level - (what the body displaces below it) is `volume`. With area 0: at which it displaces -volume. */
static double level_where(const floater *f, double area, double volume)
{
    double lo = 0, hi = ROOF;
    int i;
    for (i = 0; i < 50; i++) {
        double z = (lo + hi) / 2, held = area * z - volume_below(f, z);
        if ((held < volume) == (area > 0)) lo = z;
        else hi = z;
    }
    return lo;
}

static void make_mesh(ex_app *app, floater *f, ex_mesh *shape, double density)
{
    fsi_mesh_desc desc = fsi_mesh_default_desc();
    fsi_mass_properties mass;
    fsi_box3 room;
    int v;
    room.lo = fsi_v3(0, 0, 0);
    room.hi = fsi_v3((fsi_real)0.5, (fsi_real)0.5, (fsi_real)0.3);
    ex_fit(shape->vertices, shape->vertex_count, room);
    desc.context = &app->context;
    desc.vertices = shape->vertices;
    desc.vertex_count = shape->vertex_count;
    desc.elements = shape->triangles;
    desc.element_count = shape->triangle_count;
    ex_check(app, fsi_mesh_create(&f->mesh, &desc));
    ex_check(app, fsi_mesh_mass(f->mesh, (fsi_real)density, 0, &mass));
    f->body = fsi_body_from_mass(&mass);
    f->volume = (double)mass.volume;
    f->local = (fsi_vec3 *)ex_alloc(NULL, (size_t)f->mesh->vertex_count, sizeof *f->local);
    f->x = (fsi_vec3 *)ex_alloc(NULL, (size_t)f->mesh->vertex_count, sizeof *f->x);
    for (v = 0; v < f->mesh->vertex_count; v++) f->local[v] = fsi_pose_local(f->body.pose, f->mesh->vertices[v]);
}

/* Tells the liquid of the body while it stands where its file put it, then takes it over the pool, tilted. */
static void hang_up(ex_app *app, floater *f, fsi_levelset *s, double tilt)
{
    fsi_levelset_obstacle_desc desc = fsi_levelset_default_obstacle_desc();
    int id;
    desc.mesh = f->mesh;
    desc.body = &f->body;
    ex_check(app, fsi_levelset_add_obstacle(s, &desc, &id));
    f->body.pose.position = fsi_v3((fsi_real)(TANK / 2), (fsi_real)(TANK / 2), 0);
    f->body.pose.orientation = fsi_quat_from_axis_angle(fsi_v3(2, 1, 0), (fsi_real)(tilt * FSI_PI / 180));
    place_vertices(f);
    f->body.pose.position.z = (fsi_real)(LEVEL + 0.02 - lowest(f));
    place_vertices(f);
    ex_check(app, fsi_levelset_teleport_obstacle(s, id));
}

/* A spring and a damper where the deepest vertex along -n is beyond n.x = wall. */
static void push_off(floater *f, fsi_vec3 n, double wall)
{
    fsi_body *b = &f->body;
    const double mass = (double)b->mass;
    double deep = 0, force;
    int v, at = -1;
    for (v = 0; v < f->mesh->vertex_count; v++) {
        double d = wall - (double)fsi_v3_dot(n, f->x[v]);
        if (d <= deep) continue;
        deep = d;
        at = v;
    }
    if (at < 0) return;
    force = 1000 * mass * deep - 25 * mass * (double)fsi_v3_dot(n, fsi_rigid_velocity(b->velocity, b->angular_velocity, b->pose.position, f->x[at]));
    if (force <= 0) return;
    b->force = fsi_v3_madd(b->force, (fsi_real)force, n);
    b->torque = fsi_v3_madd(b->torque, (fsi_real)force, fsi_v3_cross(fsi_v3_sub(f->x[at], b->pose.position), n));
}

/* Gravity, four walls and a floor. */
static void push(floater *f, double gap)
{
    f->body.force = fsi_v3(0, 0, (fsi_real)-9.81 * f->body.mass);
    f->body.torque = fsi_v3(0, 0, 0);
    push_off(f, fsi_v3(1, 0, 0), gap);
    push_off(f, fsi_v3(-1, 0, 0), gap - TANK);
    push_off(f, fsi_v3(0, 1, 0), gap);
    push_off(f, fsi_v3(0, -1, 0), gap - TANK);
    push_off(f, fsi_v3(0, 0, 1), gap);
}

static void measure(const floater *f, const fsi_levelset *s, double density, double length, record *r)
{
    const double from = length / 3, weight = s->time > from ? pow(sin(FSI_PI * (s->time - from) / (length - from)), 2) : 0;
    const double level = level_where(f, TANK * TANK, s->stats.volume), ratio = fmin(density / 1000, 1);
    r->share += weight * volume_below(f, level) / (ratio * f->volume);
    r->draft += weight * (level - lowest(f));
    r->wanted += weight * ((density < 1000 ? level_where(f, 0, -ratio * f->volume) : level) - lowest(f));
    r->weight += weight;
    r->worst = fmax(r->worst, fabs(s->stats.volume_error));
}

static void show(ex_app *app, ex_scene *scene, fsi_grid_surface *skin, const fsi_levelset *s, const floater *f, int frame)
{
    ex_image *image;
    char text[64];
    ex_check(app, fsi_levelset_update_surface(s, skin, 1));
    ex_write_triangles(app, "water", frame, skin->vertices, skin->vertex_count, skin->elements, skin->element_count);
    ex_write_triangles(app, "body", frame, f->x, f->mesh->vertex_count, f->mesh->faces, f->mesh->face_count);
    if (!app->images) return;
    ex_draw_surface(scene, skin->vertices, NULL, skin->vertex_count, skin->elements, skin->element_count);
    ex_draw_mesh(scene, f->x, NULL, f->mesh->vertex_count, f->mesh->faces, f->mesh->face_count, 0xe0703c);
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    image = ex_render(scene);
    snprintf(text, sizeof text, "%.2f s", s->time);
    ex_text(image, 24, 34, 11, EX_LEFT, 0x3a4550, text);
    ex_save_frame(app, image, frame);
}

static fsi_levelset *make_liquid(ex_app *app)
{
    fsi_levelset_desc desc = fsi_levelset_default_desc();
    fsi_levelset *s;
    desc.context = &app->context;
    desc.n[0] = desc.n[1] = desc.n[2] = app->res;
    desc.dx = (fsi_real)(TANK / app->res);
    desc.cfl = (fsi_real)1.4;
    ex_check(app, fsi_levelset_create(&s, &desc));
    return s;
}

static void figures(ex_app *app, const floater *f, const record *r)
{
    const double upright = (double)fsi_quat_rotate(f->body.pose.orientation, fsi_v3(0, 0, 1)).z;
    ex_figure(app, "share", "%.4f", r->share / r->weight);
    ex_figure(app, "draft", "%.4f", r->draft / r->weight);
    ex_figure(app, "draft_error", "%.4f", r->draft / r->wanted - 1);
    ex_figure(app, "tilt_deg", "%.1f", acos(fmax(-1, fmin(1, upright))) * 180 / FSI_PI);
    ex_figure(app, "volume_error", "%.1e", r->worst);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_mesh shape;
    floater f;
    record r;
    fsi_box3 room, water;
    fsi_grid_surface *skin;
    fsi_levelset *s;
    const char *file = NULL;
    double density = 500, tilt = 20;
    int frame, y_up = 0;

    ex_init(&app, "float_mesh", "A mesh falls into a pool and floats.");
    app.res = 24;
    app.res_help = "cells over the width of the tank: dx = 1 m / res";
    app.frames = 34;
    ex_operand(&app, "file.obj", &file, "a closed mesh, OBJ or PLY; none: a ring");
    ex_flag(&app, "y-up", &y_up, "the y axis of the file points up");
    ex_real(&app, "density", &density, 1, 20000, "of the body [kg/m^3]; the water has 1000");
    ex_real(&app, "tilt", &tilt, -180, 180, "at first [degrees]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    shape = file ? ex_load_mesh(&app, file, y_up) : ex_torus(1, 0.36, 48, 20);
    memset(&r, 0, sizeof r);
    make_mesh(&app, &f, &shape, density);
    room.lo = water.lo = fsi_v3(0, 0, 0);
    room.hi = fsi_v3(TANK, TANK, (fsi_real)0.8);
    water.hi = fsi_v3(TANK, TANK, (fsi_real)LEVEL);
    s = make_liquid(&app);
    hang_up(&app, &f, s, tilt);
    ex_check(&app, fsi_levelset_fill_box(s, water, fsi_v3(0, 0, 0), NULL));
    ex_check(&app, fsi_grid_surface_create(&skin, &app.context));
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, room, 25, 20);

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            push(&f, (double)s->desc.dx / 2);
            ex_check(&app, fsi_levelset_step(s, (fsi_real)(FRAME / 6)));
            fsi_body_integrate(&f.body, (fsi_real)(FRAME / 6));
            place_vertices(&f);
            app.steps += s->stats.substeps;
            measure(&f, s, density, app.frames * FRAME, &r);
        }
        app.sim_seconds = s->time;
        show(&app, &scene, skin, s, &f, frame);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_levelset_hash(s);
    figures(&app, &f, &r);
    ex_scene_end(&scene);
    fsi_grid_surface_destroy(skin);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(f.mesh);
    ex_mesh_free(&shape);
    free(f.local);
    free(f.x);
    return ex_end(&app);
}
