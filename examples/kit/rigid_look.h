/* rigid_look.h - the examples of fsi_rigid.h: bodies as meshes to draw.
   SPDX-License-Identifier: MIT

   Include it after kit.h and fsi_rigid.h. ex_skin_of makes a body's mesh once; ex_draw_skin draws it where the body is. */
#ifndef FSI_KIT_RIGID_LOOK_H
#define FSI_KIT_RIGID_LOOK_H

/* A closed mesh of a body as it stood when it was made, in the body's axes from its centre. */
typedef struct ex_skin {
    fsi_mesh *mesh;
    fsi_vec3 *local, *x; /* vertex_count */
    int id;
} ex_skin;

EX_FN ex_skin ex_skin_of(ex_app *app, fsi_rigid *world, int id)
{
    ex_skin s;
    int v;
    s.id = id;
    ex_check(app, fsi_rigid_tessellate(world, id, -1, 0, &s.mesh));
    s.local = (fsi_vec3 *)ex_alloc(NULL, (size_t)s.mesh->vertex_count, sizeof *s.local);
    s.x = (fsi_vec3 *)ex_alloc(NULL, (size_t)s.mesh->vertex_count, sizeof *s.x);
    for (v = 0; v < s.mesh->vertex_count; v++) s.local[v] = fsi_pose_local(world->body[id]->pose, s.mesh->vertices[v]);
    return s;
}

EX_FN void ex_draw_skin(ex_scene *scene, const fsi_rigid *world, ex_skin *s, uint32_t rgb)
{
    int v;
    for (v = 0; v < s->mesh->vertex_count; v++) s->x[v] = fsi_pose_point(world->body[s->id]->pose, s->local[v]);
    ex_draw_mesh(scene, s->x, NULL, s->mesh->vertex_count, s->mesh->faces, s->mesh->face_count, rgb);
}

EX_FN void ex_skin_free(ex_skin *s)
{
    fsi_mesh_destroy(s->mesh);
    free(s->local);
    free(s->x);
}

#endif
