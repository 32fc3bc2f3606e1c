/* test_flip.h - what the tests of fsi_flip.h share: liquids, fills, sums over particles.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_FLIP_H
#define FSI_TEST_FLIP_H

#include "test.h"
#include "../../fsi_flip.h"
#include "test_meshes.h"

/* A box of n cells along each axis, 1 m wide, gravity along the last axis of the space. */
TEST_FN fsi_flip_desc make_desc(int dim, int n)
{
    fsi_flip_desc d = fsi_flip_default_desc();
    d.dim = dim;
    d.n[0] = d.n[1] = d.n[2] = n;
    d.dx = (fsi_real)(1.0 / n);
    d.gravity = dim == 2 ? v3(0, -9.81, 0) : v3(0, 0, -9.81);
    return d;
}

TEST_FN fsi_flip *make_flip(const fsi_flip_desc *d)
{
    fsi_context context = fsi_default_context();
    fsi_flip_desc own = *d;
    fsi_flip *s = NULL;
    if (CHECK(fsi_flip_create(&s, d) == FSI_OK)) return s;
    own.context = &context;
    CHECK(fsi_flip_create(&s, &own) != FSI_OK);
    printf("      create: %s\n", context.error.message);
    exit(1); /* nothing that follows could be trusted */
}

TEST_FN int step_ok(fsi_flip *s, double dt)
{
    const fsi_status status = fsi_flip_step(s, (fsi_real)dt);
    if (status != FSI_OK && s) printf("      step: %s\n", fsi_flip_error(s)->message);
    return CHECK(status == FSI_OK);
}

/* box3 with heights last: in the plane h is y. */
TEST_FN fsi_box3 room(int dim, double x0, double h0, double x1, double h1, double across)
{
    return dim == 2 ? box3(x0, h0, 0, x1, h1, 0) : box3(x0, 0, h0, x1, across, h1);
}

TEST_FN fsi_vec3 in_room(int dim, double x, double h, double across)
{
    return dim == 2 ? v3(x, h, 0) : v3(x, across, h);
}

TEST_FN double height_of(int dim, fsi_vec3 x) { return (double)(dim == 2 ? x.y : x.z); }

TEST_FN void fill(fsi_flip *s, fsi_box3 box, fsi_vec3 v) { CHECK(fsi_flip_fill_box(s, box, v, NULL) == FSI_OK); }

TEST_FN void add_one(fsi_flip *s, fsi_vec3 x, fsi_vec3 v) { CHECK(fsi_flip_add_particles(s, &x, &v, 1) == FSI_OK); }

TEST_FN int add_solid(fsi_flip *s, const fsi_mesh *mesh, fsi_body *body)
{
    fsi_flip_obstacle_desc o = fsi_flip_default_obstacle_desc();
    int id = -1;
    o.mesh = mesh;
    o.body = body;
    if (!CHECK(fsi_flip_add_obstacle(s, &o, &id) == FSI_OK)) printf("      add: %s\n", fsi_flip_error(s)->message);
    return id;
}

/* Moves each particle by up to `part` / 2 of the spacing along each axis. */
TEST_FN void jitter(fsi_flip *s, double part)
{
    uint64_t random = 1;
    int i;
    for (i = 0; i < s->count; i++)
        s->position[i] = fsi_v3_madd(s->position[i], (fsi_real)(part * (double)s->spacing),
            random_vector(&random, s->desc.dim));
}

/* Takes a part of all velocities: a pool comes to rest. */
TEST_FN void calm(fsi_flip *s, double keep)
{
    int i;
    for (i = 0; i < s->count; i++) s->velocity[i] = fsi_v3_scale(s->velocity[i], (fsi_real)keep);
}

TEST_FN double mean_height(const fsi_flip *s)
{
    double sum = 0, mass = 0;
    int i;
    for (i = 0; i < s->count; i++) {
        sum += (double)s->mass[i] * height_of(s->desc.dim, s->position[i]);
        mass += (double)s->mass[i];
    }
    return sum / mass;
}

/* Of the particles [kg; 2D: kg/m]. */
TEST_FN double total_mass(const fsi_flip *s)
{
    double sum = 0;
    int i;
    for (i = 0; i < s->count; i++) sum += (double)s->mass[i];
    return sum * (double)s->particle_mass;
}

/* Of the particles at rest [m^3; 2D: m^2]. */
TEST_FN double rest_volume(const fsi_flip *s) { return total_mass(s) / (double)s->desc.density; }

TEST_FN int is_finite(const fsi_flip *s)
{
    int i, bad = 0;
    for (i = 0; i < s->count; i++)
        bad += !fsi_v3_is_finite(s->position[i]) || !fsi_v3_is_finite(s->velocity[i]) || !((double)s->mass[i] > 0)
            || !fsi_is_finite((double)s->pressure[i]);
    return bad == 0;
}

/* What fsi_flip_save writes; to be freed. */
TEST_FN void *save_state(const fsi_flip *s, size_t *size)
{
    void *buffer;
    CHECK(fsi_flip_save(s, NULL, 0, size) == FSI_OK);
    buffer = malloc(*size);
    CHECK(fsi_flip_save(s, buffer, *size, size) == FSI_OK);
    return buffer;
}

#endif /* FSI_TEST_FLIP_H */
