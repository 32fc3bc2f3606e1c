/* wcsph_worlds.h - a small liquid with one of everything that a state holds: for fuzzers and for tests of states.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_WCSPH_WORLDS_H
#define FSI_TEST_WCSPH_WORLDS_H

#include "../../fsi_wcsph.h"
#define FSI_TEST_SMALL_PARTS
#include "rigid_worlds.h"

/* A liquid with attributes, a body that floats, a mesh that stands still, and a world (fsi_rigid.h) of which a box swims. */
typedef struct small_pool { fsi_wcsph *s; fsi_rigid *world; fsi_mesh *crate, *still, *swimmer; fsi_body body; } small_pool;

static fsi_mesh *small_mesh(fsi_context *context, int dim, double x, double h, double half)
{
    fsi_rigid_desc d = fsi_rigid_default_desc();
    fsi_rigid *w = NULL;
    fsi_mesh *m = NULL;
    d.context = context;
    d.dim = dim;
    d.gravity = fsi_v3(0, 0, 0);
    if (fsi_rigid_create(&w, &d) != FSI_OK) return NULL;
    if (small_add(w, fsi_rigid_box(fsi_v3((fsi_real)half, (fsi_real)half, dim == 2 ? 0 : (fsi_real)half)), small_at(dim, x, h), FSI_RIGID_STATIC, NULL)) (void)fsi_rigid_tessellate(w, 0, -1, 0, &m);
    fsi_rigid_destroy(w);
    return m;
}

static void end_small_pool(small_pool *p)
{
    fsi_wcsph_destroy(p->s);
    fsi_mesh_destroy(p->crate);
    fsi_mesh_destroy(p->still);
    fsi_mesh_destroy(p->swimmer);
    fsi_rigid_destroy(p->world);
    memset(p, 0, sizeof *p);
}

/* context: never NULL, as meshes outlive the worlds that made them. 0: no memory. */
static int make_small_pool(fsi_context *context, int dim, small_pool *p)
{
    fsi_wcsph_desc d = fsi_wcsph_default_desc();
    fsi_rigid_desc w = fsi_rigid_default_desc();
    fsi_mass_properties mass;
    fsi_box3 block;
    int ok;
    memset(p, 0, sizeof *p);
    d.context = w.context = context;
    d.dim = w.dim = dim;
    d.spacing = (fsi_real)0.1;
    d.gravity = w.gravity = small_at(dim, 0, -9.81);
    d.attribute_count = 1;
    d.max_substeps = 20;
    d.domain.lo = w.domain.lo = dim == 2 ? fsi_v3(-1, 0, 0) : fsi_v3(-1, (fsi_real)-0.3, 0);
    d.domain.hi = w.domain.hi = dim == 2 ? fsi_v3(1, 2, 0) : fsi_v3(1, (fsi_real)0.3, 2);
    block.lo = d.domain.lo;
    block.hi = dim == 2 ? fsi_v3((fsi_real)-0.4, (fsi_real)0.4, 0) : fsi_v3((fsi_real)-0.6, (fsi_real)0.3, (fsi_real)0.3);
    p->crate = small_mesh(context, dim, 0.5, 0.8, 0.15);
    p->still = small_mesh(context, dim, 0.2, 0.1, 0.1);
    p->swimmer = small_mesh(context, dim, -0.6, 0.7, 0.1);
    ok = p->crate && p->still && p->swimmer && fsi_wcsph_create(&p->s, &d) == FSI_OK && fsi_rigid_create(&p->world, &w) == FSI_OK && fsi_wcsph_set_world(p->s, p->world) == FSI_OK;
    ok = ok && small_add(p->world, fsi_rigid_box(fsi_v3((fsi_real)0.1, (fsi_real)0.1, dim == 2 ? 0 : (fsi_real)0.1)), small_at(dim, -0.6, 0.7), FSI_RIGID_DYNAMIC, NULL);
    ok = ok && fsi_mesh_mass(p->crate, 500, 0, &mass) == FSI_OK;
    if (!ok) { end_small_pool(p); return 0; }
    p->body = fsi_body_from_mass(&mass);
    p->body.force = small_at(dim, 0, -9.81 * (double)p->body.mass);
    ok = fsi_wcsph_add_body(p->s, p->crate, &p->body, NULL) == FSI_OK && fsi_wcsph_add_mesh(p->s, p->still, NULL) == FSI_OK
        && fsi_wcsph_add_body(p->s, p->swimmer, fsi_rigid_body(p->world, 0), NULL) == FSI_OK && fsi_wcsph_fill_box(p->s, block, fsi_v3(1, 0, 0), NULL) == FSI_OK;
    if (!ok) end_small_pool(p);
    return ok;
}

#endif /* FSI_TEST_WCSPH_WORLDS_H */
