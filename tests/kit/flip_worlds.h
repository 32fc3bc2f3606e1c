/* flip_worlds.h - a small liquid with one of everything that a state holds: for fuzzers and for tests of states.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_FLIP_WORLDS_H
#define FSI_TEST_FLIP_WORLDS_H

#include "../../fsi_flip.h"
#include <string.h>

/* A pool with attributes, a crate that swims, a step that stands still, a tap above, a drain in a corner. */
typedef struct small_pool {
    fsi_flip *s;
    fsi_mesh *crate, *still;
    fsi_body body;
    int tap, drain;
} small_pool;

static fsi_vec3 small_at(int dim, double x, double h)
{
    return dim == 2 ? fsi_v3((fsi_real)x, (fsi_real)h, 0) : fsi_v3((fsi_real)x, (fsi_real)0.5, (fsi_real)h);
}

static fsi_vec3 small_along(int dim, double x, double h)
{
    return dim == 2 ? fsi_v3((fsi_real)x, (fsi_real)h, 0) : fsi_v3((fsi_real)x, 0, (fsi_real)h);
}

/* A box of half its size around a centre. NULL: no memory. */
static fsi_mesh *small_box(fsi_context *context, int dim, fsi_vec3 at, double half)
{
    static const int quad[24] = { 0, 2, 3, 1, 4, 5, 7, 6, 0, 1, 5, 4, 2, 6, 7, 3, 0, 4, 6, 2, 1, 3, 7, 5 };
    static const int side[8] = { 0, 2, 2, 3, 3, 1, 1, 0 };
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *m = NULL;
    fsi_vec3 x[8];
    int e[36], k;
    const fsi_real r = (fsi_real)half;
    for (k = 0; k < 8; k++)
        x[k] = fsi_v3_add(at, fsi_v3(k & 1 ? r : -r, k & 2 ? r : -r, dim == 2 ? 0 : (k & 4 ? r : -r)));
    for (k = 0; k < 6; k++) {
        e[6 * k] = e[6 * k + 3] = quad[4 * k];
        e[6 * k + 1] = quad[4 * k + 1];
        e[6 * k + 2] = e[6 * k + 4] = quad[4 * k + 2];
        e[6 * k + 5] = quad[4 * k + 3];
    }
    d.context = context;
    d.kind = FSI_MESH_CLOSED;
    d.corners = dim;
    d.vertices = x;
    d.vertex_count = dim == 2 ? 4 : 8;
    d.elements = dim == 2 ? side : e;
    d.element_count = dim == 2 ? 4 : 12;
    return fsi_mesh_create(&m, &d) == FSI_OK ? m : NULL;
}

static void end_small_pool(small_pool *p)
{
    fsi_flip_destroy(p->s);
    fsi_mesh_destroy(p->crate);
    fsi_mesh_destroy(p->still);
    memset(p, 0, sizeof *p);
}

static int small_sources(small_pool *p, int dim)
{
    fsi_emitter_desc tap = fsi_emitter_default_desc();
    fsi_sink_desc drain = fsi_sink_default_desc();
    tap.center = small_at(dim, 0.25, 0.8);
    tap.direction = small_along(dim, 0.3, -1);
    tap.velocity = small_along(dim, 0.1, 0);
    tap.radius = (fsi_real)0.09;
    tap.speed = 2;
    drain.shape = FSI_SINK_SPHERE;
    drain.center = small_at(dim, 0.95, 0.05);
    drain.radius = (fsi_real)0.15;
    drain.rate = (fsi_real)0.05;
    return fsi_flip_add_emitter(p->s, &tap, &p->tap) == FSI_OK && fsi_flip_add_sink(p->s, &drain, &p->drain) == FSI_OK;
}

/* context: never NULL. 0: no memory. */
static int make_small_pool(fsi_context *context, int dim, fsi_flip_transfer transfer, small_pool *p)
{
    fsi_flip_desc d = fsi_flip_default_desc();
    fsi_flip_obstacle_desc o = fsi_flip_default_obstacle_desc();
    fsi_mass_properties mass;
    fsi_box3 block;
    int ok;

    /* The box and its solids. */
    memset(p, 0, sizeof *p);
    d.context = context;
    d.dim = dim;
    d.transfer = transfer;
    d.n[0] = d.n[1] = d.n[2] = dim == 2 ? 12 : 8;
    d.dx = 1 / (fsi_real)d.n[0];
    d.gravity = small_along(dim, 0, -9.81);
    d.attribute_count = 1;
    d.resample = d.markers = 1;
    d.viscosity = (fsi_real)0.1;
    d.surface_tension = (fsi_real)0.07;
    p->crate = small_box(context, dim, small_at(dim, 0.6, 0.5), 0.12);
    p->still = small_box(context, dim, small_at(dim, 0.4, 0.05), 0.1);
    ok = p->crate && p->still && fsi_flip_create(&p->s, &d) == FSI_OK
        && fsi_mesh_mass(p->crate, 500, 0, &mass) == FSI_OK;
    if (!ok) {
        end_small_pool(p);
        return 0;
    }

    /* What moves, flows, comes and goes. */
    p->body = fsi_body_from_mass(&mass);
    p->body.force = small_along(dim, 0, -9.81 * (double)p->body.mass);
    o.mesh = p->crate;
    o.body = &p->body;
    block.lo = fsi_v3(0, 0, 0);
    block.hi = dim == 2 ? fsi_v3(1, (fsi_real)0.35, 0) : fsi_v3(1, 1, (fsi_real)0.35);
    ok = fsi_flip_add_obstacle(p->s, &o, NULL) == FSI_OK && fsi_flip_add_mesh(p->s, p->still, NULL) == FSI_OK
        && fsi_flip_fill_box(p->s, block, small_along(dim, 0.5, 0), NULL) == FSI_OK && small_sources(p, dim);
    if (!ok) end_small_pool(p);
    return ok;
}

#endif /* FSI_TEST_FLIP_WORLDS_H */
