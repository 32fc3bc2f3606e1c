/* sph_crates.h - the examples with cubes in a liquid of fsi_sph.h, whoever owns them: cubes as COUPLED bodies, and the picture.
   SPDX-License-Identifier: MIT

   Include it after kit.h. ex_crate_add makes a cube that stands at the origin; set body.pose, then fsi_sph_teleport_obstacle. */
#ifndef FSI_KIT_SPH_CRATES_H
#define FSI_KIT_SPH_CRATES_H

#include "kit.h"
#include "../../fsi_sph.h"

typedef struct ex_crate {
    fsi_body body;
    fsi_mesh *mesh;
    int id;        /* of the obstacle */
    uint32_t rgb;
} ex_crate;

EX_FN void ex_crate_add(ex_app *app, fsi_sph *s, ex_crate *c, double side, double density, uint32_t rgb)
{
    const fsi_real h = (fsi_real)(side / 2);
    fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mass_properties mass;
    fsi_box3 box;
    ex_mesh m;
    box.lo = fsi_v3(-h, -h, -h);
    box.hi = fsi_v3(h, h, h);
    m = ex_box(box, 0);
    d.context = &app->context;
    d.vertices = m.vertices;
    d.vertex_count = m.vertex_count;
    d.elements = m.triangles;
    d.element_count = m.triangle_count;
    ex_check(app, fsi_mesh_create(&c->mesh, &d));
    ex_mesh_free(&m);
    ex_check(app, fsi_mesh_mass(c->mesh, (fsi_real)density, 0, &mass));
    c->body = fsi_body_from_mass(&mass);
    c->rgb = rgb;
    o.mesh = c->mesh;
    o.body = &c->body;
    ex_check(app, fsi_sph_add_obstacle(s, &o, &c->id));
}

/* Renders water, crates, the scene's box and the time. */
EX_FN void ex_crates_picture(ex_app *app, ex_scene *scene, fsi_surface *skin, const fsi_sph *s, const ex_crate *crates, int count, int frame)
{
    fsi_vec3 x[8];
    ex_image *image;
    char text[64];
    int k, v;
    ex_check(app, fsi_surface_update(skin, s->position, s->count, NULL));
    ex_draw_surface(scene, skin->vertices, skin->normals, skin->vertex_count, skin->elements, skin->element_count);
    for (k = 0; k < count; k++) {
        const fsi_mesh *m = crates[k].mesh;
        for (v = 0; v < m->vertex_count; v++) x[v] = fsi_pose_point(crates[k].body.pose, m->vertices[v]);
        ex_draw_mesh(scene, x, NULL, m->vertex_count, m->faces, m->face_count, crates[k].rgb);
    }
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    image = ex_render(scene);
    snprintf(text, sizeof text, "%.2f s", s->time);
    ex_text(image, 24, 34, 11, EX_LEFT, 0x3a4550, text);
    ex_save_frame(app, image, frame);
}

#endif /* FSI_KIT_SPH_CRATES_H */
