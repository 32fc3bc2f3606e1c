/* solids.h - closed meshes that fsi knows: made of an ex_mesh, drawn where their body is.
   SPDX-License-Identifier: MIT

   ex_solid makes one; ex_draw_solid draws one that stands still, ex_draw_body one that moves with a body. */
#ifndef FSI_KIT_SOLIDS_H
#define FSI_KIT_SOLIDS_H

#include "mesh.h"
#include "scene.h"
#include "../../fsi_mesh.h"

/* A mesh of the context of the app; frees m. */
EX_FN fsi_mesh *ex_solid(ex_app *app, ex_mesh *m, fsi_mesh_kind kind)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh;
    d.context = &app->context;
    d.vertices = m->vertices;
    d.vertex_count = m->vertex_count;
    d.elements = m->triangles;
    d.element_count = m->triangle_count;
    d.kind = kind;
    ex_check(app, fsi_mesh_create(&mesh, &d));
    ex_mesh_free(m);
    return mesh;
}

EX_FN void ex_draw_solid(ex_scene *scene, const fsi_mesh *mesh, uint32_t rgb)
{
    ex_draw_mesh(scene, mesh->vertices, NULL, mesh->vertex_count, mesh->faces, mesh->face_count, rgb);
}

/* A mesh that stood as its vertices say when the pose of its body was `made`, where the body is now. */
EX_FN void ex_draw_body(ex_scene *scene, const fsi_mesh *mesh, fsi_pose made, fsi_pose now, uint32_t rgb)
{
    fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)mesh->vertex_count, sizeof *x);
    int v;
    for (v = 0; v < mesh->vertex_count; v++) x[v] = fsi_pose_point(now, fsi_pose_local(made, mesh->vertices[v]));
    ex_draw_mesh(scene, x, NULL, mesh->vertex_count, mesh->faces, mesh->face_count, rgb);
    free(x);
}

#endif /* FSI_KIT_SOLIDS_H */
