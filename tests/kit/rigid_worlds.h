/* rigid_worlds.h - a small world that has one of everything that a state holds: for fuzzers and for tests of states.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_RIGID_WORLDS_H
#define FSI_TEST_RIGID_WORLDS_H

#include "../../fsi_rigid.h"

static fsi_vec3 small_at(int dim, double x, double h)
{
    return dim == 2 ? fsi_v3((fsi_real)x, (fsi_real)h, 0) : fsi_v3((fsi_real)x, 0, (fsi_real)h);
}

static int small_add(fsi_rigid *w, fsi_rigid_shape s, fsi_vec3 at, fsi_rigid_kind kind, int *id)
{
    fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
    b.shapes = &s;
    b.shape_count = 1;
    b.kind = kind;
    b.pose.position = at;
    return fsi_rigid_add_body(w, &b, id) == FSI_OK;
}

#ifndef FSI_TEST_SMALL_PARTS /* who only makes parts has no use for these */

/* A free tree of four links: a hinge with limits, one that follows a track, a slide on a spring. */
static int small_add_tree(fsi_rigid *w, int dim)
{
    static const fsi_rigid_joint_kind kinds[4] = {FSI_RIGID_WELD, FSI_RIGID_REVOLUTE, FSI_RIGID_REVOLUTE,
                                                  FSI_RIGID_PRISMATIC};
    const double times[2] = { 0, 0.5 };
    const fsi_real angles[2] = { 0, (fsi_real)0.4 };
    fsi_rigid_shape rod = fsi_rigid_capsule((fsi_real)0.05, (fsi_real)0.08);
    fsi_rigid_link_desc l[4];
    fsi_rigid_tree_desc d = fsi_rigid_default_tree_desc();
    int k, tree;
    for (k = 0; k < 4; k++) {
        l[k] = fsi_rigid_default_link_desc();
        l[k].body.shapes = &rod;
        l[k].body.shape_count = 1;
        l[k].body.pose.position = small_at(dim, -0.5 + 0.25 * k, 0.16);
        l[k].parent = k - 1;
        l[k].joint = kinds[k];
        l[k].point = small_at(dim, -0.6 + 0.25 * k, 0.16);
        l[k].axis = k == 3 ? fsi_v3(1, 0, 0) : dim == 2 ? fsi_v3(0, 0, 1) : fsi_v3(0, 1, 0);
    }
    l[1].limited = 1;
    l[1].lower = (fsi_real)-0.2;
    l[1].upper = (fsi_real)0.2;
    l[3].stiffness = 100;
    l[3].damping = 1;
    d.links = l;
    d.link_count = 4;
    return fsi_rigid_add_tree(w, &d, &tree) == FSI_OK &&
           fsi_rigid_set_joint_track(w, tree, 2, times, angles, 2, 1) == FSI_OK;
}

/* A pile, a ball, a mesh, a tree, a paddle on its way to a target, a body and a plane that were removed. NULL: no
   memory. */
static fsi_rigid *make_small_world(fsi_context *context, int dim)
{
    fsi_rigid_desc d = fsi_rigid_default_desc();
    fsi_rigid_shape box = fsi_rigid_box(fsi_v3((fsi_real)0.1, (fsi_real)0.1, dim == 2 ? 0 : (fsi_real)0.1));
    fsi_mesh *mesh = NULL;
    fsi_rigid *w = NULL;
    fsi_pose target;
    int gone = -1, paddle = -1, plane = -1, ok;
    d.context = context;
    d.dim = dim;
    d.gravity = small_at(dim, 0, -9.81);
    d.sleep_time = (fsi_real)0.05;
    d.domain.lo = dim == 2 ? fsi_v3(-1, 0, 0) : fsi_v3(-1, -1, 0);
    d.domain.hi = dim == 2 ? fsi_v3(1, 2, 0) : fsi_v3(1, 1, 2);
    if (fsi_rigid_create(&w, &d) != FSI_OK) return NULL;
    ok = fsi_rigid_add_plane(w, small_at(dim, 0, 1), (fsi_real)-0.5, NULL, &plane) == FSI_OK &&
         fsi_rigid_add_plane(w, small_at(dim, 0.1, 1), (fsi_real)-1, NULL, NULL) == FSI_OK &&
         fsi_rigid_remove_plane(w, plane) == FSI_OK;
    ok = ok && small_add(w, box, small_at(dim, 0.6, 0.0995), FSI_RIGID_DYNAMIC, NULL) &&
         small_add(w, box, small_at(dim, 0.6, 0.2985), FSI_RIGID_DYNAMIC, NULL) &&
         small_add(w, box, small_at(dim, 0, 1.5), FSI_RIGID_DYNAMIC, &gone) &&
         small_add(w, fsi_rigid_sphere((fsi_real)0.1), small_at(dim, 0.62, 0.51), FSI_RIGID_DYNAMIC, NULL);
    ok = ok && fsi_rigid_tessellate(w, 0, -1, 0, &mesh) == FSI_OK &&
         small_add(w, fsi_rigid_mesh(mesh), small_at(dim, -0.65, 0.4), FSI_RIGID_DYNAMIC, NULL);
    fsi_mesh_destroy(mesh);
    ok = ok && small_add_tree(w, dim) && small_add(w, box, small_at(dim, 0.2, 0.8), FSI_RIGID_KINEMATIC, &paddle) &&
         fsi_rigid_remove_body(w, gone) == FSI_OK;
    target.orientation = fsi_quat_identity();
    target.position = small_at(dim, 0.21, 0.8);
    if (ok && fsi_rigid_set_target(w, paddle, target) == FSI_OK) return w;
    fsi_rigid_destroy(w);
    return NULL;
}

#endif /* parts */

#endif /* FSI_TEST_RIGID_WORLDS_H */
