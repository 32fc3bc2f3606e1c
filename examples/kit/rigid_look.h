/* rigid_look.h - the examples of fsi_rigid.h: bodies as meshes to draw.
   SPDX-License-Identifier: MIT

   Include it after kit.h and fsi_rigid.h. ex_skin_of makes a body's mesh once; ex_draw_skin draws it where the body
   is. */
#ifndef FSI_KIT_RIGID_LOOK_H
#define FSI_KIT_RIGID_LOOK_H

/* A closed mesh of a body as it stood when its pose was `made`. */
typedef struct ex_skin {
    fsi_mesh *mesh;
    fsi_pose made;
    int id;
} ex_skin;

EX_FN ex_skin ex_skin_of(ex_app *app, fsi_rigid *world, int id)
{
    ex_skin s;
    s.id = id;
    s.made = world->body[id]->pose;
    ex_check(app, fsi_rigid_tessellate(world, id, -1, 0, &s.mesh));
    return s;
}

EX_FN void ex_draw_skin(ex_scene *scene, const fsi_rigid *world, const ex_skin *s, uint32_t rgb)
{
    ex_draw_body(scene, s->mesh, s->made, world->body[s->id]->pose, rgb);
}

EX_FN void ex_skin_free(ex_skin *s) { fsi_mesh_destroy(s->mesh); }

#endif /* FSI_KIT_RIGID_LOOK_H */
