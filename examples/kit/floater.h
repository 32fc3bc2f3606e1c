/* floater.h - a closed mesh as a COUPLED fsi_body that the program moves, in a tank that pushes back.
   SPDX-License-Identifier: MIT

   Include it after kit.h. ex_floater_make; ex_floater_pool, or tell a liquid of mesh and body, then set body.pose;
   ex_floater_move after each change of it, ex_floater_push before each step. */
#ifndef FSI_KIT_FLOATER_H
#define FSI_KIT_FLOATER_H

#include "kit.h"
#include "../../fsi_levelset.h"

typedef struct ex_floater {
    fsi_mesh *mesh;
    fsi_body body;
    fsi_pose made;   /* of the body when the mesh was made */
    fsi_vec3 *x;     /* where the vertices of the mesh are now */
    double volume;   /* [m^3] */
} ex_floater;

/* Where the body is now. */
EX_FN void ex_floater_move(ex_floater *f)
{
    const fsi_mesh *m = f->mesh;
    int v;
    for (v = 0; v < m->vertex_count; v++)
        f->x[v] = fsi_pose_point(f->body.pose, fsi_pose_local(f->made, m->vertices[v]));
}

/* Of a mesh, which it frees, scaled into a room of 0.5 x 0.5 x 0.3 m, and so dense [kg/m^3]. */
EX_FN void ex_floater_make(ex_app *app, ex_floater *f, ex_mesh *shape, double density)
{
    fsi_mass_properties mass;
    ex_fit(shape->vertices, shape->vertex_count, ex_box3(0, 0, 0, 0.5, 0.5, 0.3));
    f->mesh = ex_solid(app, shape, FSI_MESH_CLOSED);
    ex_check(app, fsi_mesh_mass(f->mesh, (fsi_real)density, 0, &mass));
    f->body = fsi_body_from_mass(&mass);
    f->made = f->body.pose;
    f->volume = (double)mass.volume;
    f->x = (fsi_vec3 *)ex_alloc(NULL, (size_t)f->mesh->vertex_count, sizeof *f->x);
}

EX_FN void ex_floater_free(ex_floater *f)
{
    fsi_mesh_destroy(f->mesh);
    free(f->x);
}

/* z of the lowest vertex */
EX_FN double ex_floater_lowest(const ex_floater *f)
{
    double z = 1e30;
    int v;
    for (v = 0; v < f->mesh->vertex_count; v++) z = fmin(z, (double)f->x[v].z);
    return z;
}

/* A spring and a damper where the deepest vertex along -n is beyond n.x = wall. */
static void ex__push_off(ex_floater *f, fsi_vec3 n, double wall)
{
    fsi_body *b = &f->body;
    const double mass = (double)b->mass;
    double deep = 0, force;
    fsi_vec3 u;
    int v, at = -1;
    for (v = 0; v < f->mesh->vertex_count; v++) {
        double d = wall - (double)fsi_v3_dot(n, f->x[v]);
        if (d <= deep) continue;
        deep = d;
        at = v;
    }
    if (at < 0) return;
    u = fsi_rigid_velocity(b->velocity, b->angular_velocity, b->pose.position, f->x[at]);
    force = 1000 * mass * deep - 25 * mass * (double)fsi_v3_dot(n, u);
    if (force <= 0) return;
    b->force = fsi_v3_madd(b->force, (fsi_real)force, n);
    b->torque = fsi_v3_madd(b->torque, (fsi_real)force, fsi_v3_cross(fsi_v3_sub(f->x[at], b->pose.position), n));
}

/* Gravity, four walls `gap` inside a tank of tank x tank m, and its floor. */
EX_FN void ex_floater_push(ex_floater *f, double tank, double gap)
{
    f->body.force = fsi_v3(0, 0, (fsi_real)-9.81 * f->body.mass);
    f->body.torque = fsi_v3(0, 0, 0);
    ex__push_off(f, fsi_v3(1, 0, 0), gap);
    ex__push_off(f, fsi_v3(-1, 0, 0), gap - tank);
    ex__push_off(f, fsi_v3(0, 1, 0), gap);
    ex__push_off(f, fsi_v3(0, -1, 0), gap - tank);
    ex__push_off(f, fsi_v3(0, 0, 1), gap);
}

/* Turns the body by `tilt` degrees and takes it to the middle of the tank, its lowest vertex at height z. */
EX_FN void ex_floater_hang(ex_floater *f, double tank, double z, double tilt)
{
    f->body.pose.position = fsi_v3((fsi_real)(tank / 2), (fsi_real)(tank / 2), 0);
    f->body.pose.orientation = fsi_quat_from_axis_angle(fsi_v3(2, 1, 0), (fsi_real)(tilt * FSI_PI / 180));
    ex_floater_move(f);
    f->body.pose.position.z = (fsi_real)(z - ex_floater_lowest(f));
    ex_floater_move(f);
}

/* The angle between its own axis z and the vertical [degrees]. */
EX_FN double ex_floater_tilt(const ex_floater *f)
{
    const double upright = (double)fsi_quat_rotate(f->body.pose.orientation, fsi_v3(0, 0, 1)).z;
    return acos(fmax(-1, fmin(1, upright))) * 180 / FSI_PI;
}

/* A tank of level-set water, app->res cells along each edge [m], with the body above it. The liquid is told of the body
   while mesh and body stand where the file put them; then the body is taken over the pool, tilted [degrees]. */
EX_FN fsi_levelset *ex_floater_pool(ex_app *app, ex_floater *f, double tank, double level, double tilt)
{
    fsi_levelset_desc desc = fsi_levelset_default_desc();
    fsi_levelset_obstacle_desc solid = fsi_levelset_default_obstacle_desc();
    fsi_levelset *s;
    int id;
    desc.context = &app->context;
    desc.n[0] = desc.n[1] = desc.n[2] = app->res;
    desc.dx = tank / app->res;
    desc.cfl = 1.4;
    ex_check(app, fsi_levelset_create(&s, &desc));
    solid.mesh = f->mesh;
    solid.body = &f->body;
    ex_check(app, fsi_levelset_add_obstacle(s, &solid, &id));
    ex_floater_hang(f, tank, level + 0.02, tilt);
    ex_check(app, fsi_levelset_teleport_obstacle(s, id));
    ex_check(app, fsi_levelset_fill_box(s, ex_box3(0, 0, 0, tank, tank, level), fsi_v3(0, 0, 0), NULL));
    return s;
}

#endif /* FSI_KIT_FLOATER_H */
