/* elastic_look.h - the programs of fsi_elastic.h: bodies of a surface with a skin to draw, and what is counted.
   SPDX-License-Identifier: MIT

   Include it after kit.h and fsi_elastic.h. ex_jelly_of and ex_jelly_of_file add a body, ex_draw_jelly draws it where
   it is, with a texture, ex_jelly_strain tells how far it is from its shape; ex_dimpled bends a sphere into puddings
   and stars, ex_block into blocks; ex_jelly_shape has four shapes to drop. ex_elastic_step makes a step and counts it,
   ex_elastic_figures belongs before ex_end. ex_elastic_options adds the switches of drags.h. */
#ifndef FSI_KIT_ELASTIC_LOOK_H
#define FSI_KIT_ELASTIC_LOOK_H

#include "drags.h"

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

/* A body and the surface that it was made of, which follows it as its skin. */
typedef struct ex_jelly {
    int id;
    ex_mesh mesh;           /* at rest */
    uint32_t *paint;        /* color of each vertex, which goes where the vertex goes */
    fsi_elastic_skin *skin;
    fsi_vec3 *x, *n;        /* of the skin, now */
} ex_jelly;

/* The mean normal of the faces around each vertex, by their area. */
EX_FN void ex_vertex_normals(const ex_mesh *m, fsi_vec3 *n)
{
    int i, k;
    for (i = 0; i < m->vertex_count; i++) n[i] = fsi_v3(0, 0, 0);
    for (i = 0; i < m->triangle_count; i++) {
        const int *t = m->triangles + 3 * i;
        const fsi_vec3 a = m->vertices[t[0]],
            area = fsi_v3_cross(fsi_v3_sub(m->vertices[t[1]], a), fsi_v3_sub(m->vertices[t[2]], a));
        for (k = 0; k < 3; k++) n[t[k]] = fsi_v3_add(n[t[k]], area);
    }
    for (i = 0; i < m->vertex_count; i++) n[i] = fsi_v3_unit(n[i]);
}

EX_FN uint32_t ex_blend(uint32_t a, uint32_t b, double t)
{
    uint32_t c = 0;
    int k;
    for (k = 0; k < 24; k += 8) c |= (uint32_t)((1 - t) * (a >> k & 255) + t * (b >> k & 255) + 0.5) << k;
    return c;
}

/* A texture: blocks of two shades of a color in the body's rest coordinates, six along its longest side. */
EX_FN void ex_paint_blocks(const ex_mesh *m, uint32_t rgb, uint32_t *paint)
{
    fsi_box3 box = fsi_box3_empty();
    fsi_vec3 size;
    double k;
    int v;
    for (v = 0; v < m->vertex_count; v++) box = fsi_box3_grow(box, m->vertices[v]);
    size = fsi_v3_sub(box.hi, box.lo);
    k = 6 * FSI_PI / fmax((double)size.x, fmax((double)size.y, (double)size.z));
    for (v = 0; v < m->vertex_count; v++) {
        const fsi_vec3 x = fsi_v3_sub(m->vertices[v], box.lo);
        const double wave = sin(k * (double)x.x) * sin(k * (double)x.y) * sin(k * (double)x.z);
        paint[v] = ex_blend(rgb, 0xffffff, 0.5 * fmin(1, fmax(0, 4 * wave + 0.5)));
    }
}

/* A skin for a body that is there already; takes the mesh. */
EX_FN ex_jelly ex_jelly_skin(ex_app *app, fsi_elastic *s, int id, ex_mesh mesh, uint32_t rgb)
{
    ex_jelly j;
    j.id = id;
    j.mesh = mesh;
    j.x = (fsi_vec3 *)ex_alloc(NULL, (size_t)mesh.vertex_count, sizeof *j.x);
    j.n = (fsi_vec3 *)ex_alloc(NULL, (size_t)mesh.vertex_count, sizeof *j.n);
    j.paint = (uint32_t *)ex_alloc(NULL, (size_t)mesh.vertex_count, sizeof *j.paint);
    ex_paint_blocks(&mesh, rgb, j.paint);
    ex_vertex_normals(&mesh, j.n);
    ex_check(app, fsi_elastic_skin_create(&j.skin, s, id, mesh.vertices, j.n, mesh.vertex_count));
    return j;
}

/* A body in a cage around a closed surface, which it takes; its other settings are those of the desc. */
EX_FN ex_jelly ex_jelly_of(ex_app *app, fsi_elastic *s, fsi_elastic_body_desc d, ex_mesh mesh, uint32_t rgb)
{
    ex_mesh copy = ex_mesh_make(mesh.vertex_count, mesh.triangle_count);
    fsi_mesh *surface;
    int id;
    memcpy(copy.vertices, mesh.vertices, (size_t)mesh.vertex_count * sizeof *mesh.vertices);
    memcpy(copy.triangles, mesh.triangles, 3 * (size_t)mesh.triangle_count * sizeof(int));
    surface = ex_solid(app, &copy, FSI_MESH_CLOSED);
    d.surface = surface;
    ex_check(app, fsi_elastic_add_body(s, &d, &id));
    fsi_mesh_destroy(surface);
    return ex_jelly_skin(app, s, id, mesh, rgb);
}

/* The same of a file: a closed surface (OBJ, PLY) or tetrahedra (.msh, .ele), scaled into the box of `shape`, which it
   frees; y_up turns its y axis up. The skin of tetrahedra is their boundary. */
EX_FN ex_jelly ex_jelly_of_file(ex_app *app, fsi_elastic *s, fsi_elastic_body_desc d, const char *path, int y_up,
                                ex_mesh shape, uint32_t rgb)
{
    fsi_box3 box = fsi_box3_empty();
    const fsi_mesh *surface;
    fsi_io_mesh file;
    fsi_pose pose;
    ex_mesh own = ex_load_mesh(app, path, y_up);
    int i, id;
    for (i = 0; i < shape.vertex_count; i++) box = fsi_box3_grow(box, shape.vertices[i]);
    ex_mesh_free(&shape);
    ex_fit(own.vertices, own.vertex_count, box);
    ex_check(app, fsi_io_read_mesh(&file, &app->context, path));
    if (file.tet_count == 0) {
        fsi_io_destroy_mesh(&file);
        return ex_jelly_of(app, s, d, own, rgb);
    }
    d.vertices = own.vertices;
    d.vertex_count = own.vertex_count;
    d.elements = file.tets;
    d.element_count = file.tet_count;
    ex_check(app, fsi_elastic_add_body(s, &d, &id));
    fsi_io_destroy_mesh(&file);
    ex_mesh_free(&own);

    /* Its surface as it was at rest. */
    surface = fsi_elastic_surface(s, id);
    if (!surface) ex_die("a body of a file needs contact points");
    pose.position = d.position;
    pose.orientation = d.orientation;
    own = ex_mesh_make(surface->vertex_count, surface->face_count);
    memcpy(own.triangles, surface->faces, 3 * (size_t)surface->face_count * sizeof(int));
    for (i = 0; i < own.vertex_count; i++) own.vertices[i] = fsi_pose_local(pose, surface->vertices[i]);
    return ex_jelly_skin(app, s, id, own, rgb);
}

/* Root mean square distance of the skin from the nearest rigid motion of its rest shape, over the body's size. */
EX_FN double ex_jelly_strain(ex_app *app, const fsi_elastic *s, const ex_jelly *w)
{
    const int n = w->mesh.vertex_count;
    const fsi_vec3 *rest = w->mesh.vertices;
    fsi_vec3 *x = w->x, from = fsi_v3(0, 0, 0), to = from;
    fsi_mat3 sum = fsi_m3_diagonal(fsi_v3(0, 0, 0)), turn;
    double square = 0;
    int i, j, k;
    ex_check(app, fsi_elastic_skin_update(w->skin, s, x, NULL));
    for (i = 0; i < n; i++) {
        from = fsi_v3_madd(from, (fsi_real)(1.0 / n), rest[i]);
        to = fsi_v3_madd(to, (fsi_real)(1.0 / n), x[i]);
    }
    for (i = 0; i < n; i++) {
        const fsi_vec3 a = fsi_v3_sub(rest[i], from), b = fsi_v3_sub(x[i], to);
        const fsi_real u[3] = { a.x, a.y, a.z }, v[3] = { b.x, b.y, b.z };
        for (j = 0; j < 3; j++) for (k = 0; k < 3; k++) sum.m[3 * j + k] += v[j] * u[k];
    }
    fsi_m3_polar(sum, &turn, NULL);
    for (i = 0; i < n; i++) {
        const fsi_vec3 d = fsi_v3_sub(fsi_v3_sub(x[i], to), fsi_m3_mul_v3(turn, fsi_v3_sub(rest[i], from)));
        square += (double)fsi_v3_dot(d, d);
    }
    return sqrt(square / n) / s->bodies[fsi_elastic_find_body(s, w->id)].size;
}

EX_FN void ex_draw_jelly(ex_app *app, ex_scene *scene, const fsi_elastic *s, const ex_jelly *j)
{
    ex_check(app, fsi_elastic_skin_update(j->skin, s, j->x, j->n));
    ex_draw_colored_mesh(scene, j->x, j->n, j->mesh.vertex_count, j->mesh.triangles, j->mesh.triangle_count, j->paint);
}

EX_FN void ex_jelly_free(ex_jelly *j)
{
    fsi_elastic_skin_destroy(j->skin);
    ex_mesh_free(&j->mesh);
    free(j->paint);
    free(j->x);
    free(j->n);
}

/* A sphere bent into a rounded block around the axis z: half as wide as `radius` says at z = 0, narrower above by
   `taper` (0: a cylinder), between z = -height/2 and height/2, with so many dimples of the given share of the radius.
   roundness: 2 an ellipsoid, larger: ever sharper edges. */
EX_FN ex_mesh ex_dimpled(double radius, double height, double roundness, double taper, int dimples, double depth,
                         int level)
{
    ex_mesh m = ex_sphere(fsi_v3(0, 0, 0), 1, level);
    int v;
    for (v = 0; v < m.vertex_count; v++) {
        fsi_vec3 *x = &m.vertices[v];
        const double side = hypot((double)x->x, (double)x->y), up = (double)x->z;
        const double out = pow(pow(side, roundness) + pow(fabs(up), roundness), -1 / roundness), z = out * up;
        const double turn = atan2((double)x->y, (double)x->x),
            wide = radius * out * (1 - taper * z) * (1 + depth * side * side * cos(dimples * turn));
        *x = fsi_v3((fsi_real)(wide * (double)x->x), (fsi_real)(wide * (double)x->y), (fsi_real)(height / 2 * z));
    }
    return m;
}

/* What jelly_drop.c drops, some 0.2 m * size wide: 0 a pudding, 1 a ring, 2 a star, 3 a ball. */
EX_FN ex_mesh ex_jelly_shape(int kind, double size)
{
    if (kind == 0) return ex_dimpled(0.1 * size, 0.14 * size, 5, 0.25, 10, 0.07, 5);
    if (kind == 1) return ex_torus(0.09 * size, 0.04 * size, 96, 48);
    if (kind == 2) return ex_dimpled(0.11 * size, 0.09 * size, 3, 0, 5, 0.25, 5);
    return ex_sphere(fsi_v3(0, 0, 0), 0.085 * size, 5);
}

/* A block with round edges around the origin; half: its half sides. roundness: 2 an ellipsoid, larger: ever sharper
   edges. */
EX_FN ex_mesh ex_block(fsi_vec3 half, double roundness, int level)
{
    ex_mesh m = ex_sphere(fsi_v3(0, 0, 0), 1, level);
    int v;
    for (v = 0; v < m.vertex_count; v++) {
        fsi_vec3 *x = &m.vertices[v];
        const double out = pow(pow(fabs((double)x->x), roundness) + pow(fabs((double)x->y), roundness) +
            pow(fabs((double)x->z), roundness), -1 / roundness);
        *x = fsi_v3((fsi_real)out * half.x * x->x, (fsi_real)out * half.y * x->y, (fsi_real)out * half.z * x->z);
    }
    return m;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* Over all steps. Start from zeros. */
typedef struct ex_elastic_tally {
    long long steps, iterations, degraded;
    double volume_least, volume_most; /* of a body, over that at rest */
    double stretch_least;             /* smallest determinant of an element */
    double deepest;                   /* penetration [m] */
    double seconds;                   /* in fsi_elastic_step, by the wall clock */
    size_t bytes;
    ex_drags drags;
} ex_elastic_tally;

EX_FN void ex_elastic_options(ex_app *app, ex_elastic_tally *t) { ex_drags_options(app, &t->drags); }

/* Counts a step that was made. */
EX_FN void ex_elastic_count(ex_elastic_tally *t, const fsi_elastic *s)
{
    int k;
    if (t->steps == 0) t->volume_least = t->volume_most = t->stretch_least = 1;
    for (k = 0; k < s->body_count; k++) {
        if (!fsi_v3_is_finite(s->bodies[k].center)) ex_die("the place of a body is not finite");
        t->volume_least = fmin(t->volume_least, s->bodies[k].stats.volume_ratio);
        t->volume_most = fmax(t->volume_most, s->bodies[k].stats.volume_ratio);
        t->stretch_least = fmin(t->stretch_least, s->bodies[k].stats.stretch_min);
    }
    t->deepest = fmax(t->deepest, s->stats.deepest);
    t->steps += s->stats.substeps;
    t->iterations += s->stats.iterations;
    t->degraded += s->stats.degraded;
    t->bytes = s->stats.bytes;
}

EX_FN void ex_elastic_step(ex_app *app, ex_elastic_tally *t, fsi_elastic *s, double dt)
{
    const double begun = ex_wall_seconds();
    ex_drags_step(app, &t->drags, s, dt);
    ex_check(app, fsi_elastic_step(s, (fsi_real)dt));
    t->seconds += ex_wall_seconds() - begun;
    ex_elastic_count(t, s);
    app->steps += s->desc.substeps;
    app->sim_seconds = s->time;
}

/* Closes the last line but for what a program adds. volume_least= and volume_most= are of a body over its volume at
   rest, at any time; deepest_mm= the deepest point in another body or obstacle, at any time [mm]; iterations= of a body
   in a substep; t_step= seconds a step; after drags volume_lost= of the worst body at the end, drag_speed= of the
   fastest target [m/s]. Ends the drags. */
EX_FN void ex_elastic_figures(ex_app *app, ex_elastic_tally *t, const fsi_elastic *s)
{
    int k, elements = 0;
    double worst = 0;
    for (k = 0; k < s->body_count; k++) {
        elements += s->bodies[k].element_count;
        worst = fmax(worst, fabs(s->bodies[k].stats.volume_ratio - 1));
    }
    app->hash = fsi_elastic_hash(s);
    ex_figure(app, "elements", "%.0f", elements);
    ex_figure(app, "volume_least", "%.4f", t->volume_least);
    ex_figure(app, "volume_most", "%.4f", t->volume_most);
    if (t->drags.fastest > 0) {
        ex_figure(app, "volume_lost", "%.4f", worst);
        ex_figure(app, "drag_speed", "%.1f", t->drags.fastest);
    }
    ex_figure(app, "deepest_mm", "%.3g", 1000 * t->deepest);
    ex_figure(app, "kinetic", "%.3g", s->stats.kinetic_energy);
    ex_figure(app, "iterations", "%.1f", (double)t->iterations / (double)(t->steps > 0 ? t->steps : 1));
    ex_figure(app, "degraded", "%.0f", (double)t->degraded);
    ex_figure(app, "t_step", "%.4f", t->seconds / (double)(app->steps > 0 ? app->steps : 1));
    ex_drags_free(&t->drags);
}

#endif /* FSI_KIT_ELASTIC_LOOK_H */
