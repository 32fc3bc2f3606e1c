/* sph_squeeze.h - solids that close on liquid, are thrown through it, pressed into the walls of its tank or put on top of it; and where
   the particles are then, by tests that share no code with the headers.
   SPDX-License-Identifier: MIT */
#ifndef FSI_SPH_SQUEEZE_H
#define FSI_SPH_SQUEEZE_H

#include "test_sph.h"

enum { SQUEEZE_THROW, SQUEEZE_CROSS, SQUEEZE_FALL, SQUEEZE_CLOSE, SQUEEZE_PRESS, SQUEEZE_TELEPORT, SQUEEZE_BEND, SQUEEZE_KINDS };
enum { SQUEEZE_SOLIDS = 2, SQUEEZE_VERTICES = 16, SQUEEZE_FACES = 32 };

/* A solid as the test knows it: corners where they are now, faces of dim corners each. */
typedef struct squeeze_solid {
    fsi_mesh *mesh;
    fsi_body body;
    fsi_pose pose;
    int moves_by, id, corners, faces, face[3 * SQUEEZE_FACES]; /* moves_by: 0 mesh, 1 body told, 2 body coupled */
    fsi_vec3 rest[SQUEEZE_VERTICES], now[SQUEEZE_VERTICES];
} squeeze_solid;

typedef struct squeeze {
    int dim, kind, count, solids;
    uint64_t random;
    fsi_sph *s;
    fsi_box3 tank;
    squeeze_solid solid[SQUEEZE_SOLIDS];
} squeeze;

static double squeeze_fine = 1; /* spacings are divided by this */

/* What went wrong, over all steps of a case; pinched and placed as the header counts them. */
typedef struct squeeze_result { int outside, inside, pinched, placed, lost, failed, uncounted; double excess; uint64_t hash; } squeeze_result;

TEST_FN double squeeze_between(squeeze *q, double lo, double hi) { return lo + (hi - lo) * test_random(&q->random); }

/* Is x inside a closed polygon: does a ray along +x cross an odd number of its sides? */
TEST_FN int squeeze_in_polygon(const squeeze_solid *o, fsi_vec3 x)
{
    int k, odd = 0;
    for (k = 0; k < o->faces; k++) {
        fsi_vec3 a = o->now[o->face[2 * k]], b = o->now[o->face[2 * k + 1]];
        if ((a.y > x.y) == (b.y > x.y)) continue;
        if ((double)x.x < (double)a.x + ((double)x.y - (double)a.y) / ((double)b.y - (double)a.y) * ((double)b.x - (double)a.x)) odd = !odd;
    }
    return odd;
}

/* Is x inside a closed surface: does a ray in some direction pass an odd number of its triangles? */
TEST_FN int squeeze_in_surface(const squeeze_solid *o, fsi_vec3 x)
{
    const double d[3] = { 0.5377, 0.2885, 0.7922 };
    int k, i, odd = 0;
    for (k = 0; k < o->faces; k++) {
        double p[3][3], side[3];
        for (i = 0; i < 3; i++) {
            fsi_vec3 c = o->now[o->face[3 * k + i]];
            p[i][0] = (double)c.x - (double)x.x;
            p[i][1] = (double)c.y - (double)x.y;
            p[i][2] = (double)c.z - (double)x.z;
        }
        for (i = 0; i < 3; i++) { /* on which side of each edge the ray passes */
            const double *a = p[i], *b = p[(i + 1) % 3];
            side[i] = d[0] * (a[1] * b[2] - a[2] * b[1]) + d[1] * (a[2] * b[0] - a[0] * b[2]) + d[2] * (a[0] * b[1] - a[1] * b[0]);
        }
        if ((side[0] > 0) != (side[1] > 0) || (side[1] > 0) != (side[2] > 0)) continue;
        { /* ahead of x or behind it: sum of side_i over the opposite corner's way along d has the sign of side */
            double u[3], v[3], n[3], t;
            for (i = 0; i < 3; i++) {
                u[i] = p[1][i] - p[0][i];
                v[i] = p[2][i] - p[0][i];
            }
            n[0] = u[1] * v[2] - u[2] * v[1];
            n[1] = u[2] * v[0] - u[0] * v[2];
            n[2] = u[0] * v[1] - u[1] * v[0];
            t = (n[0] * p[0][0] + n[1] * p[0][1] + n[2] * p[0][2]) / (n[0] * d[0] + n[1] * d[1] + n[2] * d[2]);
            if (t > 0) odd = !odd;
        }
    }
    return odd;
}

TEST_FN int squeeze_is_inside(const squeeze *q, fsi_vec3 x)
{
    int k;
    for (k = 0; k < q->solids; k++)
        if (q->solid[k].mesh && (q->dim == 2 ? squeeze_in_polygon(&q->solid[k], x) : squeeze_in_surface(&q->solid[k], x))) return 1;
    return 0;
}

TEST_FN int squeeze_is_outside(const squeeze *q, fsi_vec3 x)
{
    const fsi_box3 *b = &q->tank;
    return !(x.x >= b->lo.x && x.x <= b->hi.x && x.y >= b->lo.y && x.y <= b->hi.y && (q->dim == 2 || (x.z >= b->lo.z && x.z <= b->hi.z)));
}

/* Rotation by the unit quaternion w + v: x + 2 v x (v x x + w x). */
TEST_FN fsi_vec3 squeeze_turned(fsi_pose p, fsi_vec3 x)
{
    const fsi_quat r = p.orientation;
    const double v[3] = { (double)r.x, (double)r.y, (double)r.z }, a[3] = { (double)x.x, (double)x.y, (double)x.z }, w = (double)r.w;
    double c[3], d[3];
    int k;
    for (k = 0; k < 3; k++) c[k] = v[(k + 1) % 3] * a[(k + 2) % 3] - v[(k + 2) % 3] * a[(k + 1) % 3] + w * a[k];
    for (k = 0; k < 3; k++) d[k] = a[k] + 2 * (v[(k + 1) % 3] * c[(k + 2) % 3] - v[(k + 2) % 3] * c[(k + 1) % 3]);
    return v3(d[0] + (double)p.position.x, d[1] + (double)p.position.y, d[2] + (double)p.position.z);
}

TEST_FN fsi_pose squeeze_pose(int dim, fsi_vec3 position, fsi_vec3 axis, double angle)
{
    fsi_pose p;
    p.position = position;
    p.orientation = fsi_quat_from_axis_angle(dim == 2 ? v3(0, 0, 1) : axis, (fsi_real)angle);
    return p;
}

/* A box of these half sizes, or in 2D an L, around the origin; stands at `pose`. */
TEST_FN void squeeze_make_solid(squeeze *q, squeeze_solid *o, fsi_vec3 half, int bent, fsi_pose pose)
{
    const double a = (double)half.x, b = (double)half.y;
    int k;
    shape_begin(q->dim);
    if (q->dim == 2 && bent) {
        double xy[12];
        xy[0] = xy[2] = -a, xy[4] = xy[6] = 0, xy[8] = xy[10] = a;
        xy[1] = xy[11] = -b, xy[3] = xy[5] = b, xy[7] = xy[9] = 0;
        shape_polygon(xy, 6);
    } else if (q->dim == 2) {
        double xy[8];
        xy[0] = xy[2] = -a, xy[4] = xy[6] = a, xy[1] = xy[7] = -b, xy[3] = xy[5] = b;
        shape_polygon(xy, 4);
    } else shape_box(box3(-a, -b, -(double)half.z, a, b, (double)half.z));
    o->corners = shape.nx;
    o->faces = shape.ne;
    memcpy(o->face, shape.e, (size_t)(shape.ne * shape.corners) * sizeof(int));
    for (k = 0; k < shape.nx; k++) {
        o->rest[k] = shape.x[k];
        o->now[k] = shape.x[k] = squeeze_turned(pose, shape.x[k]);
    }
    o->pose = pose;
    o->mesh = shape_make(FSI_MESH_CLOSED, 0);
}

TEST_FN void squeeze_add(squeeze *q, squeeze_solid *o, int moves_by, double density)
{
    fsi_sph_obstacle_desc d = fsi_sph_default_obstacle_desc();
    o->moves_by = moves_by;
    d.mesh = o->mesh;
    if (moves_by) {
        fsi_mass_properties p;
        CHECK(fsi_mesh_mass(o->mesh, (fsi_real)density, 0, &p) == FSI_OK);
        o->body = fsi_body_from_mass(&p);
        o->body.pose = o->body.end = o->pose;
        o->body.mode = moves_by == 2 ? FSI_BODY_COUPLED : FSI_BODY_PRESCRIBED;
        o->body.force = fsi_v3_scale(q->s->desc.gravity, o->body.mass);
        d.body = &o->body;
    }
    CHECK(fsi_sph_add_obstacle(q->s, &d, &o->id) == FSI_OK);
}

/* Where the test believes a solid to be. */
TEST_FN void squeeze_put(squeeze_solid *o, fsi_pose pose)
{
    int k;
    o->pose = pose;
    for (k = 0; k < o->corners; k++) o->now[k] = squeeze_turned(pose, o->rest[k]);
}

/* Tells the liquid's obstacle to be at `pose` at the end of the step. */
TEST_FN void squeeze_move(squeeze_solid *o, fsi_pose pose)
{
    squeeze_put(o, pose);
    if (o->moves_by == 1) o->body.end = pose;
    if (o->moves_by == 0) CHECK(fsi_mesh_move(o->mesh, o->now, o->corners) == FSI_OK);
}

TEST_FN fsi_vec3 squeeze_direction(squeeze *q)
{
    fsi_vec3 d;
    do d = random_vector(&q->random, q->dim); while (!((double)fsi_v3_norm(d) > 0.1));
    return fsi_v3_unit(d);
}

/* Half sizes of a solid from thinner than a spacing to half of the tank. */
TEST_FN fsi_vec3 squeeze_size(squeeze *q)
{
    return v3(squeeze_between(q, 0.02, 0.12), squeeze_between(q, 0.02, 0.12), q->dim == 2 ? 0 : squeeze_between(q, 0.02, 0.12));
}

/* Liquid in the lower part of a tank, at rest; a solid or two in the empty upper part. */
TEST_FN void squeeze_begin(squeeze *q, int dim, int kind, uint64_t seed, fsi_context *context)
{
    fsi_sph_desc d = make_desc(dim, (dim == 2 ? 0.025 : 0.05) / squeeze_fine);
    static const int substeps[4] = { 50, 7, 1, 50 };
    memset(q, 0, sizeof *q);
    q->random = seed;
    q->dim = dim;
    q->kind = kind;
    q->tank = dim == 2 ? box3(0, 0, 0, 0.6, 0.5, 0) : box3(0, 0, 0, 0.5, 0.4, 0.6);
    d.context = context;
    d.domain = q->tank;
    d.depth = (fsi_real)0.3;
    d.max_substeps = kind == SQUEEZE_THROW ? 50 : substeps[(int)squeeze_between(q, 0, 4)];
    d.max_iters = 40;
    q->s = make_sph(&d);
    CHECK(fsi_sph_fill_box(q->s, dim == 2 ? box3(0, 0, 0, 0.6, 0.2, 0) : box3(0, 0, 0, 0.5, 0.4, 0.2), v3(0, 0, 0), NULL) == FSI_OK);
    q->count = q->s->count;
}

TEST_FN void squeeze_end(squeeze *q)
{
    int k;
    fsi_sph_destroy(q->s);
    for (k = 0; k < q->solids; k++) fsi_mesh_destroy(q->solid[k].mesh);
}

/* Bound on the root mean square of the speeds that a step leaves [m/s], by energy: what was there before, the walls' speed, twice because liquid
   is shot out of a wedge that closes, and what compressed liquid expands with, lambda c for c = sqrt(mu/rho0). So the liquid's
   momentum is at most its mass times that. It knows no spacing over dt: what is only put elsewhere gains no speed. Few particles may take
   the energy of many: the fastest of n has at most sqrt(n) times as much. */
TEST_FN double squeeze_bound(const squeeze *q, double before, double wall)
{
    const double c = sqrt((double)q->s->stiffness / (double)q->s->desc.density);
    return before + 2 * wall + (1 + q->s->stats.max_compression) * c;
}

/* A step, and what has become of the particles. `wall`: speed of the fastest solid [m/s]. */
TEST_FN void squeeze_step(squeeze *q, double dt, double wall, squeeze_result *result)
{
    const fsi_sph *s = q->s;
    double before = s->stats.max_speed + 9.81 * dt, sum = 0;
    int i, inside = 0;
    fsi_status status = fsi_sph_step(q->s, (fsi_real)dt);
    if (status != FSI_OK) {
        result->failed++;
        printf("step: %s\n", fsi_sph_error(s)->message);
        return;
    }
    for (i = 0; i < q->solids; i++) {
        if (q->solid[i].moves_by != 2) continue;
        wall = fmax(wall, (double)fsi_v3_norm(fsi_v3_sub(q->solid[i].body.end.position, q->solid[i].pose.position)) / dt);
        squeeze_put(&q->solid[i], q->solid[i].body.end);
    }
    for (i = 0; i < s->count; i++) {
        result->outside += squeeze_is_outside(q, s->position[i]);
        inside += squeeze_is_inside(q, s->position[i]);
        sum += (double)fsi_v3_norm2(s->velocity[i]);
    }
    result->lost += q->count - s->count;
    result->inside += inside;
    result->pinched += s->stats.pinched;
    result->placed += s->stats.placed;
    if (inside > s->stats.pinched) result->uncounted += inside - s->stats.pinched;
    if (s->count > 0) result->excess = fmax(result->excess, sqrt(sum / s->count) / squeeze_bound(q, before, wall)); /* the fastest is at most sqrt(sum) */
}

/* A solid of any size somewhere in the empty part, as seen from which the liquid lies below. */
TEST_FN squeeze_solid *squeeze_new_solid(squeeze *q, int moves_by)
{
    squeeze_solid *o = &q->solid[q->solids++];
    fsi_vec3 at = q->dim == 2 ? v3(squeeze_between(q, 0.1, 0.5), 0.42, 0) : v3(squeeze_between(q, 0.1, 0.4), 0.2, 0.47);
    squeeze_make_solid(q, o, squeeze_size(q), (int)squeeze_between(q, 0, 2), squeeze_pose(q->dim, at, squeeze_direction(q), squeeze_between(q, 0, 6)));
    squeeze_add(q, o, moves_by, exp(squeeze_between(q, log(500), log(1e5))));
    return o;
}

/* Thrown through the liquid, 2 to 38 m in a step, and out of the tank or to rest in it. */
TEST_FN void squeeze_throw(squeeze *q, squeeze_result *r)
{
    squeeze_solid *o = squeeze_new_solid(q, (int)squeeze_between(q, 0, 2));
    const double dt = 0.01, turn = squeeze_between(q, 0, 0.8);
    fsi_pose to = o->pose;
    fsi_vec3 d = squeeze_direction(q), axis = squeeze_direction(q);
    double way = exp(squeeze_between(q, log(0.3), log(38)));
    int k;
    if (squeeze_between(q, 0, 2) < 1) { /* horizontally, as in the tank's own plane; else anywhere */
        to.position.y = q->dim == 2 ? (fsi_real)0.15 : to.position.y;
        if (q->dim == 3) to.position.z = (fsi_real)0.1;
        squeeze_put(o, to);
        if (o->moves_by == 0) CHECK(fsi_mesh_set(o->mesh, o->now, o->corners) == FSI_OK);
        o->body.pose = o->body.end = to;
        CHECK(fsi_sph_teleport_obstacle(q->s, o->id) == FSI_OK);
        squeeze_step(q, dt, 0, r);
        if (q->dim == 2) d = v3(d.x < 0 ? -1 : 1, 0, 0);
        else d.z = 0, d = fsi_v3_unit(d);
    }
    to = o->pose;
    to.position = fsi_v3_madd(to.position, (fsi_real)way, d);
    to.orientation = fsi_quat_mul(fsi_quat_from_axis_angle(q->dim == 2 ? v3(0, 0, 1) : axis, (fsi_real)turn), to.orientation);
    squeeze_move(o, to);
    squeeze_step(q, dt, (way + turn * 0.25) / dt, r);
    for (k = 0; k < 2; k++) {
        o->body.pose = o->pose;
        squeeze_move(o, o->pose);
        squeeze_step(q, dt, 0, r);
    }
}

/* A body that goes where it is told, through liquid, floor or walls. */
TEST_FN void squeeze_cross(squeeze *q, squeeze_result *r)
{
    squeeze_solid *o = squeeze_new_solid(q, 1);
    const double dt = 0.01, speed = exp(squeeze_between(q, log(1), log(30))), rate = squeeze_between(q, -20, 20);
    fsi_vec3 d = fsi_v3_sub(q->dim == 2 ? v3(squeeze_between(q, -0.2, 0.8), -0.2, 0) : v3(squeeze_between(q, -0.2, 0.7), squeeze_between(q, -0.2, 0.6), -0.2), o->pose.position);
    const double way = (double)fsi_v3_norm(d);
    const int steps = (int)fmin(1.3 * way / (speed * dt) + 1, 12);
    const double part = fmax(speed * dt, 1.3 * way / steps);
    fsi_vec3 axis = squeeze_direction(q);
    int k;
    for (k = 0; k < steps; k++) {
        fsi_pose to = o->pose;
        to.position = fsi_v3_madd(to.position, (fsi_real)(part / way), d);
        to.orientation = fsi_quat_mul(fsi_quat_from_axis_angle(q->dim == 2 ? v3(0, 0, 1) : axis, (fsi_real)(rate * dt)), to.orientation);
        o->body.pose = o->pose;
        squeeze_move(o, to);
        squeeze_step(q, dt, part / dt + fabs(rate) * 0.25, r);
    }
}

/* A coupled body, light or heavy, that falls on the liquid, and through the floor, which does not hold it. */
TEST_FN void squeeze_fall(squeeze *q, squeeze_result *r)
{
    squeeze_solid *o = squeeze_new_solid(q, 2);
    const double dt = 0.01, speed = exp(squeeze_between(q, log(1), log(30)));
    const int steps = (int)fmin(0.8 / (speed * dt) + 1, 15);
    int k;
    o->body.velocity = fsi_v3_scale(q->dim == 2 ? v3(squeeze_between(q, -0.5, 0.5), -1, 0) : v3(squeeze_between(q, -0.5, 0.5), squeeze_between(q, -0.5, 0.5), -1), (fsi_real)speed);
    o->body.angular_velocity = q->dim == 2 ? v3(0, 0, squeeze_between(q, -20, 20)) : fsi_v3_scale(squeeze_direction(q), (fsi_real)squeeze_between(q, 0, 20));
    for (k = 0; k < steps; k++) {
        squeeze_step(q, dt, 30, r);
        o->body.pose = o->body.end;
        o->body.velocity = o->body.new_velocity;
        o->body.angular_velocity = o->body.new_angular_velocity;
    }
}

/* Two solids stand in the liquid and close on what is between them, until they overlap. */
TEST_FN void squeeze_close(squeeze *q, squeeze_result *r)
{
    const double dt = 0.005, speed = exp(squeeze_between(q, log(0.5), log(60)));
    const fsi_vec3 axis = squeeze_direction(q);
    int k, j, steps;
    for (k = 0; k < 2; k++) {
        squeeze_solid *o = &q->solid[q->solids++];
        const double x = k ? 0.45 : 0.1;
        fsi_vec3 half = q->dim == 2 ? v3(squeeze_between(q, 0.01, 0.05), 0.2, 0) : v3(squeeze_between(q, 0.01, 0.04), 0.17, 0.2);
        squeeze_make_solid(q, o, half, 0, squeeze_pose(q->dim, q->dim == 2 ? v3(x, 0.15, 0) : v3(x * 0.9, 0.2, 0.15), axis, squeeze_between(q, -0.2, 0.2)));
        squeeze_add(q, o, (int)squeeze_between(q, 0, 2), 1000);
    }
    squeeze_step(q, dt, 0, r); /* what they were put on comes out, or is told */
    steps = (int)fmin(0.2 / (speed * dt) + 1, 12);
    for (k = 0; k < steps; k++) {
        for (j = 0; j < 2; j++) {
            fsi_pose to = q->solid[j].pose;
            to.position.x += (fsi_real)((j ? -1 : 1) * fmin(speed * dt, 0.2));
            q->solid[j].body.pose = q->solid[j].pose;
            squeeze_move(&q->solid[j], to);
        }
        squeeze_step(q, dt, fmin(speed, 0.2 / dt), r);
    }
}

/* Pressed into a corner, and taken away again. */
TEST_FN void squeeze_press(squeeze *q, squeeze_result *r)
{
    squeeze_solid *o = squeeze_new_solid(q, (int)squeeze_between(q, 0, 2));
    const double dt = 0.005;
    const fsi_vec3 from = o->pose.position, corner = v3(test_random(&q->random) < 0.5 ? 0 : q->dim == 2 ? 0.6 : 0.5, q->dim == 2 || test_random(&q->random) < 0.5 ? 0 : 0.4, 0);
    const int steps = (int)squeeze_between(q, 2, 9);
    int k;
    for (k = 1; k <= 2 * steps; k++) {
        fsi_pose to = o->pose;
        to.position = fsi_v3_madd(from, (fsi_real)((k <= steps ? k : 2 * steps - k) / (double)steps), fsi_v3_sub(corner, from));
        o->body.pose = o->pose;
        squeeze_move(o, to);
        squeeze_step(q, dt, 0.75 / steps / dt, r);
    }
}

/* Put on top of the liquid again and again; or added there. */
TEST_FN void squeeze_teleport(squeeze *q, squeeze_result *r)
{
    squeeze_solid *o = squeeze_new_solid(q, (int)squeeze_between(q, 0, 2));
    int k;
    for (k = 0; k < 4; k++) {
        fsi_vec3 at = q->dim == 2 ? v3(squeeze_between(q, 0, 0.6), squeeze_between(q, 0, 0.2), 0) : v3(squeeze_between(q, 0, 0.5), squeeze_between(q, 0, 0.4), squeeze_between(q, 0, 0.2));
        squeeze_put(o, squeeze_pose(q->dim, at, squeeze_direction(q), squeeze_between(q, 0, 6)));
        if (o->moves_by == 0) CHECK(fsi_mesh_set(o->mesh, o->now, o->corners) == FSI_OK);
        o->body.pose = o->body.end = o->pose;
        CHECK(fsi_sph_teleport_obstacle(q->s, o->id) == FSI_OK);
        squeeze_step(q, k & 1 ? 0.001 : 0.01, 0, r);
        squeeze_step(q, 0.005, 0, r);
    }
}

/* A mesh that grows, shears and shrinks. */
TEST_FN void squeeze_bend(squeeze *q, squeeze_result *r)
{
    squeeze_solid *o = squeeze_new_solid(q, 0);
    const double dt = 0.005, down = squeeze_between(q, 0.05, 0.35);
    int k, j;
    for (k = 0; k < 6; k++) {
        const double grow = squeeze_between(q, 0.3, 2.5), shear = squeeze_between(q, -0.5, 0.5);
        fsi_pose to = o->pose;
        double most = 0;
        if (k == 0) *(q->dim == 2 ? &to.position.y : &to.position.z) -= (fsi_real)down;
        o->pose = to;
        for (j = 0; j < o->corners; j++) {
            fsi_vec3 x = fsi_v3_scale(o->rest[j], (fsi_real)grow), was = o->now[j];
            x.x += (fsi_real)shear * x.y;
            o->now[j] = squeeze_turned(to, x);
            most = fmax(most, (double)fsi_v3_norm(fsi_v3_sub(o->now[j], was)));
        }
        CHECK(fsi_mesh_move(o->mesh, o->now, o->corners) == FSI_OK);
        squeeze_step(q, dt, most / dt, r);
    }
}

TEST_FN squeeze_result squeeze_run(int dim, int kind, uint64_t seed, fsi_context *context)
{
    static void (*const run[SQUEEZE_KINDS])(squeeze *, squeeze_result *) = { squeeze_throw, squeeze_cross, squeeze_fall, squeeze_close, squeeze_press, squeeze_teleport, squeeze_bend };
    squeeze q;
    squeeze_result r;
    memset(&r, 0, sizeof r);
    squeeze_begin(&q, dim, kind, seed, context);
    run[kind](&q, &r);
    r.hash = fsi_sph_hash(q.s);
    squeeze_end(&q);
    return r;
}

#endif /* FSI_SPH_SQUEEZE_H */
