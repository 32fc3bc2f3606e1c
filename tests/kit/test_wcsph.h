/* test_wcsph.h - what the tests of fsi_wcsph.h share: liquids, solids with distances that owe nothing to fsi's own, figures.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_WCSPH_H
#define FSI_TEST_WCSPH_H

#include "test.h"
#include "../../fsi_wcsph.h"
#include "test_meshes.h"

/* ---- liquids -------------------------------------------------------------------------------------------------- */

/* Gravity along the last axis of the space. */
TEST_FN fsi_wcsph_desc make_desc(int dim, double dx)
{
    fsi_wcsph_desc d = fsi_wcsph_default_desc();
    d.dim = dim;
    d.spacing = (fsi_real)dx;
    d.gravity = dim == 2 ? v3(0, -9.81, 0) : v3(0, 0, -9.81);
    return d;
}

TEST_FN fsi_wcsph *make_wcsph(const fsi_wcsph_desc *d)
{
    fsi_context context = fsi_default_context();
    fsi_wcsph_desc own = *d;
    fsi_wcsph *s = NULL;
    if (CHECK(fsi_wcsph_create(&s, d) == FSI_OK)) return s;
    own.context = &context;
    CHECK(fsi_wcsph_create(&s, &own) == FSI_OK);
    printf("      create: %s\n", context.error.message);
    exit(1); /* nothing that follows could be trusted */
}

TEST_FN int step_ok(fsi_wcsph *s, double dt)
{
    fsi_status status = fsi_wcsph_step(s, (fsi_real)dt);
    if (status != FSI_OK && s) printf("      step: %s\n", fsi_wcsph_error(s)->message);
    return CHECK(status == FSI_OK);
}

/* box3 with heights last: in the plane h is y. */
TEST_FN fsi_box3 room(int dim, double x0, double h0, double x1, double h1, double across)
{
    return dim == 2 ? box3(x0, h0, 0, x1, h1, 0) : box3(x0, 0, h0, x1, across, h1);
}

TEST_FN fsi_vec3 in_room(int dim, double x, double h, double across) { return dim == 2 ? v3(x, h, 0) : v3(x, across, h); }

TEST_FN double height_of(int dim, fsi_vec3 x) { return (double)(dim == 2 ? x.y : x.z); }

TEST_FN void add_one(fsi_wcsph *s, fsi_vec3 x, fsi_vec3 v) { CHECK(fsi_wcsph_add_particles(s, &x, &v, 1) == FSI_OK); }

TEST_FN void fill(fsi_wcsph *s, fsi_box3 box, fsi_vec3 v) { CHECK(fsi_wcsph_fill_box(s, box, v, NULL) == FSI_OK); }

/* What fsi_wcsph_save writes; to be freed. */
TEST_FN void *save_state(const fsi_wcsph *s, size_t *size)
{
    void *buffer;
    CHECK(fsi_wcsph_save(s, NULL, 0, size) == FSI_OK);
    buffer = malloc(*size);
    CHECK(fsi_wcsph_save(s, buffer, *size, size) == FSI_OK);
    return buffer;
}

/* Sum of m v, and of m x cross v. */
TEST_FN void momenta(const fsi_wcsph *s, double *linear, double *angular)
{
    const double m = (double)s->particle_mass;
    int i, k;
    for (k = 0; k < 3; k++) linear[k] = angular[k] = 0;
    for (i = 0; i < s->count; i++) {
        const double x = (double)s->position[i].x, y = (double)s->position[i].y, z = (double)s->position[i].z;
        const double u = (double)s->velocity[i].x, v = (double)s->velocity[i].y, w = (double)s->velocity[i].z;
        linear[0] += m * u, linear[1] += m * v, linear[2] += m * w;
        angular[0] += m * (y * w - z * v), angular[1] += m * (z * u - x * w), angular[2] += m * (x * v - y * u);
    }
}

/* The same of a body, at its pose and velocity, added. */
TEST_FN void add_body_momenta(const fsi_body *b, double *linear, double *angular)
{
    const fsi_vec3 p = fsi_v3_scale(b->velocity, b->mass), spin = fsi_m3_mul_v3(fsi_body_world_tensor(b->pose.orientation, b->inertia), b->angular_velocity);
    const fsi_vec3 turn = fsi_v3_add(spin, fsi_v3_cross(b->pose.position, p));
    linear[0] += (double)p.x, linear[1] += (double)p.y, linear[2] += (double)p.z;
    angular[0] += (double)turn.x, angular[1] += (double)turn.y, angular[2] += (double)turn.z;
}

TEST_FN double momentum_size(const fsi_wcsph *s)
{
    double sum = 0;
    int i;
    for (i = 0; i < s->count; i++) sum += (double)s->particle_mass * (double)fsi_v3_norm(s->velocity[i]);
    return sum;
}

TEST_FN double kinetic(const fsi_wcsph *s)
{
    double sum = 0;
    int i;
    for (i = 0; i < s->count; i++) sum += 0.5 * (double)s->particle_mass * (double)fsi_v3_norm2(s->velocity[i]);
    return sum;
}

/* Takes a part of all velocities: a pool comes to rest. */
TEST_FN void calm(fsi_wcsph *s, double keep)
{
    int i;
    for (i = 0; i < s->count; i++) s->velocity[i] = fsi_v3_scale(s->velocity[i], (fsi_real)keep);
}

/* ---- distances by all faces, in double -------------------------------------------------------------------------- */

/* A mesh, and the body that carries it from the pose that it had when it was added (NULL: the mesh is where it is). */
typedef struct solid { const fsi_mesh *mesh; const fsi_body *body; fsi_pose from; int id, sheet; } solid;

enum { MOST_SOLIDS = 40 };

/* A liquid among solids. */
typedef struct scene {
    fsi_wcsph *s;
    solid solids[MOST_SOLIDS];
    int solid_count, dim;
} scene;

/* Adds what desc says to both. */
TEST_FN int scene_add_desc(scene *t, const fsi_wcsph_obstacle_desc *o)
{
    solid *b = t->solids + t->solid_count++;
    const fsi_status status = fsi_wcsph_add_obstacle(t->s, o, &b->id);
    if (!CHECK(status == FSI_OK)) printf("      add: %s\n", fsi_wcsph_error(t->s)->message);
    b->mesh = o->mesh;
    b->body = o->body;
    b->sheet = o->mesh->kind == FSI_MESH_TWO_SIDED;
    if (o->body) b->from = o->body->pose;
    return b->id;
}

TEST_FN int scene_add(scene *t, const fsi_mesh *mesh, fsi_body *body)
{
    fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
    o.mesh = mesh;
    o.body = body;
    return scene_add_desc(t, &o);
}

/* x as the mesh's own coordinates have it. `pose`: where the body is now. */
TEST_FN fsi_vec3 seen_from_mesh(const solid *b, fsi_vec3 x)
{
    return b->body ? fsi_pose_point(b->from, fsi_pose_local(b->body->pose, x)) : x;
}

TEST_FN double clamp01(double t) { return t < 0 ? 0 : t > 1 ? 1 : t; }

/* Squared distance of the origin to the segment a b. */
TEST_FN double to_segment(const double *a, const double *b)
{
    double ab = 0, len = 0, d = 0, t;
    int k;
    for (k = 0; k < 3; k++) {
        ab -= a[k] * (b[k] - a[k]);
        len += (b[k] - a[k]) * (b[k] - a[k]);
    }
    t = len > 0 ? clamp01(ab / len) : 0;
    for (k = 0; k < 3; k++) {
        double c = a[k] + t * (b[k] - a[k]);
        d += c * c;
    }
    return d;
}

/* Of the origin to a triangle: to its plane where the foot lies within all three edges, else to the edges. */
TEST_FN double to_triangle(const double *const *p)
{
    double u[3], v[3], n[3], d = HUGE_VAL, along = 0, size = 0;
    int k, j, inside = 1;
    for (k = 0; k < 3; k++) u[k] = p[1][k] - p[0][k], v[k] = p[2][k] - p[0][k];
    n[0] = u[1] * v[2] - u[2] * v[1], n[1] = u[2] * v[0] - u[0] * v[2], n[2] = u[0] * v[1] - u[1] * v[0];
    for (k = 0; k < 3; k++) along += p[0][k] * n[k], size += n[k] * n[k];
    for (j = 0; j < 3; j++) {
        const double *a = p[j], *b = p[(j + 1) % 3];
        double side = 0;
        for (k = 0; k < 3; k++) side += ((b[(k + 1) % 3] - a[(k + 1) % 3]) * -a[(k + 2) % 3] - (b[(k + 2) % 3] - a[(k + 2) % 3]) * -a[(k + 1) % 3]) * n[k];
        inside = inside && side >= 0;
        d = fmin(d, to_segment(a, b));
    }
    return inside && size > 0 ? along * along / size : d;
}

/* Distance of x to the nearest of all faces, without a sign. */
TEST_FN double distance_to_solid(const solid *b, fsi_vec3 world)
{
    const fsi_mesh *m = b->mesh;
    const fsi_vec3 x = seen_from_mesh(b, world);
    double best = HUGE_VAL;
    int f, k;
    for (f = 0; f < m->face_count; f++) {
        double p[3][3] = { { 0 } };
        const double *corner[3];
        for (k = 0; k < m->corners; k++) {
            const fsi_vec3 v = m->vertices[m->faces[m->corners * f + k]];
            p[k][0] = (double)v.x - (double)x.x, p[k][1] = (double)v.y - (double)x.y, p[k][2] = m->corners == 2 ? 0 : (double)v.z - (double)x.z;
        }
        corner[0] = p[0], corner[1] = p[1], corner[2] = p[2];
        best = fmin(best, m->corners == 2 ? to_segment(p[0], p[1]) : to_triangle(corner));
    }
    return sqrt(best);
}

/* Is x in the solid, by winding number? Sheets have no inside. */
TEST_FN int inside_solid(const solid *b, fsi_vec3 world)
{
    const fsi_vec3 x = seen_from_mesh(b, world);
    if (b->mesh->kind != FSI_MESH_CLOSED) return 0;
    return b->mesh->container ? fsi_mesh_winding_number(b->mesh, x) > -0.5 : fsi_mesh_winding_number(b->mesh, x) > 0.5;
}

/* To the nearest of the domain's walls, negative outside. */
TEST_FN double distance_to_walls(const fsi_wcsph *s, fsi_vec3 x)
{
    const fsi_box3 b = s->desc.domain;
    double d = HUGE_VAL;
    if (b.lo.x > b.hi.x) return d;
    d = fmin(d, fmin((double)x.x - (double)b.lo.x, (double)b.hi.x - (double)x.x));
    d = fmin(d, fmin((double)x.y - (double)b.lo.y, (double)b.hi.y - (double)x.y));
    return s->desc.dim == 2 ? d : fmin(d, fmin((double)x.z - (double)b.lo.z, (double)b.hi.z - (double)x.z));
}

/* What is promised after every call: no particle nearer than r_F to a surface but the pinched, none inside, none lost. Obstacles with
   samples or an offset of their own are not asked here. */
typedef struct census { int tight, inside, lost; double least; } census;

/* Boxes around solids spare the look at all faces of all solids for every particle; faces are looked at one by one. */
TEST_FN int far_from(const solid *b, fsi_vec3 x, double reach)
{
    const fsi_vec3 p = seen_from_mesh(b, x);
    const fsi_box3 box = fsi_box3_inflate(b->mesh->box, (fsi_real)reach);
    if (b->mesh->container) return 0;
    return p.x < box.lo.x || p.x > box.hi.x || p.y < box.lo.y || p.y > box.hi.y || (b->mesh->corners == 3 && (p.z < box.lo.z || p.z > box.hi.z));
}

TEST_FN census take_census(const scene *t)
{
    const double radius = (double)t->s->radius, slack = TOL(1e-5, 1e-3) * (double)t->s->desc.spacing;
    census c = { 0, 0, 0, HUGE_VAL };
    int i, k;
    for (i = 0; i < t->s->count; i++) {
        const fsi_vec3 x = t->s->position[i];
        double d = distance_to_walls(t->s, x);
        int inside = d < 0;
        if (!fsi_v3_is_finite(x) || !fsi_v3_is_finite(t->s->velocity[i])) {
            c.lost++;
            continue;
        }
        for (k = 0; k < t->solid_count; k++) {
            const solid *b = t->solids + k;
            if (far_from(b, x, 2 * radius)) continue;
            d = fmin(d, distance_to_solid(b, x));
            inside = inside || inside_solid(b, x);
        }
        c.least = fmin(c.least, d - radius);
        c.tight += !(d >= radius - slack);
        c.inside += inside;
    }
    return c;
}

TEST_FN int check_census(const scene *t)
{
    const census c = take_census(t);
    if (CHECK(c.tight <= t->s->stats.pinched) && CHECK(c.inside == 0) && CHECK(c.lost == 0)) return 1;
    printf("      at %.4f s: %d nearer than r_F (%d pinched), least %.3g dx, %d inside, %d lost\n", t->s->time, c.tight, t->s->stats.pinched, c.least / (double)t->s->desc.spacing, c.inside, c.lost);
    return 0;
}

#endif /* FSI_TEST_WCSPH_H */
