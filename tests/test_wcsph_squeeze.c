/* test_wcsph_squeeze.c - solids that are teleported, shot and pressed through small tanks: no particle leaves, none is left in a solid but
   those that stats.pinched counts, and nothing gets faster than what moves it.
   SPDX-License-Identifier: MIT

   ./test_wcsph_squeeze             98 cases
   ./test_wcsph_squeeze 1000        so many, 2D and 3D by turns
   ./test_wcsph_squeeze one 417     one of them, told step by step */
#include "kit/test_wcsph.h"

/* ---- the judge: shares no code with the headers ---------------------------------------------------------------- */

typedef struct vec { double x, y, z; } vec;
static vec vec_sub(vec a, vec b) { a.x -= b.x; a.y -= b.y; a.z -= b.z; return a; }
static double vec_dot(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static vec vec_cross(vec a, vec b) { vec c; c.x = a.y * b.z - a.z * b.y; c.y = a.z * b.x - a.x * b.z; c.z = a.x * b.y - a.y * b.x; return c; }
static vec vec_of(fsi_vec3 a) { vec v; v.x = (double)a.x; v.y = (double)a.y; v.z = (double)a.z; return v; }

/* Rotation of v by a unit quaternion, or back. */
static vec turned(fsi_quat q, vec v, int back)
{
    const double s = back ? -1 : 1;
    vec u, t;
    u.x = s * (double)q.x; u.y = s * (double)q.y; u.z = s * (double)q.z;
    t = vec_cross(u, v);
    t.x *= 2; t.y *= 2; t.z *= 2;
    { vec w = vec_cross(u, t); v.x += (double)q.w * t.x + w.x; v.y += (double)q.w * t.y + w.y; v.z += (double)q.w * t.z + w.z; }
    return v;
}

/* How many times the faces of a mesh wind around x: angles in the plane, solid angles (Van Oosterom and Strackee 1983) in space. */
static double winding(const fsi_mesh *m, vec x)
{
    double sum = 0;
    int f;
    for (f = 0; f < m->face_count; f++) {
        const int *e = m->faces + m->corners * f;
        const vec a = vec_sub(vec_of(m->vertices[e[0]]), x), b = vec_sub(vec_of(m->vertices[e[1]]), x);
        if (m->corners == 2) sum += atan2(a.x * b.y - a.y * b.x, a.x * b.x + a.y * b.y) / (2 * FSI_PI);
        else {
            const vec c = vec_sub(vec_of(m->vertices[e[2]]), x);
            const double la = sqrt(vec_dot(a, a)), lb = sqrt(vec_dot(b, b)), lc = sqrt(vec_dot(c, c));
            sum += 2 * atan2(vec_dot(a, vec_cross(b, c)), la * lb * lc + vec_dot(a, b) * lc + vec_dot(b, c) * la + vec_dot(c, a) * lb) / (4 * FSI_PI);
        }
    }
    return fabs(sum);
}

/* A mesh, and the body that carries it: `from` is where that stood when it was added. */
typedef struct block { fsi_mesh *mesh; fsi_body *body; fsi_pose from; int id; } block;

static int block_holds(const block *b, fsi_vec3 world)
{
    vec x = vec_of(world);
    if (b->body) {
        const fsi_pose now = b->body->mode == FSI_BODY_PRESCRIBED ? b->body->end : b->body->pose;
        vec from = vec_of(b->from.position);
        x = turned(b->from.orientation, turned(now.orientation, vec_sub(x, vec_of(now.position)), 1), 0);
        x.x += from.x; x.y += from.y; x.z += from.z;
    }
    return winding(b->mesh, x) > 0.5;
}

/* ---- cases ----------------------------------------------------------------------------------------------------- */

enum { BLOCKS = 3 };
typedef enum play { TELEPORT, SHOT, CARRIED, JUMP, HEAVY, WORLD, PLATES, PLAYS } play;
static const char *const play_names[PLAYS] = { "teleport", "mesh shot through", "body carried through", "body that starts anew", "heavy body", "world", "plates" };

typedef struct arena {
    fsi_wcsph *s;
    fsi_rigid *world;
    block block[BLOCKS];
    fsi_body body[BLOCKS];
    int count, dim, at, tell;
    play kind;
    uint64_t random;
    double fastest; /* that anything could be moved with [m/s] */
} arena;

static double between(arena *a, double lo, double hi) { return lo + (hi - lo) * test_random(&a->random); }
static fsi_vec3 somewhere(arena *a, double lo, double hi) { return in_room(a->dim, between(a, lo, hi), between(a, lo, hi), between(a, lo, hi)); }

static fsi_quat some_turn(arena *a, double most)
{
    return fsi_quat_from_axis_angle(a->dim == 2 ? v3(0, 0, 1) : fsi_v3_unit(v3(between(a, -1, 1), between(a, -1, 1), 1)), (fsi_real)between(a, -most, most));
}

static void add_block(arena *a, fsi_vec3 half, int with_body, fsi_pose at, double density)
{
    block *b = &a->block[a->count];
    const double across = a->dim == 2 ? 0 : (double)half.y;
    b->mesh = make_block(a->dim, (double)half.x, (double)(a->dim == 2 ? half.y : half.z), across);
    if (with_body) {
        fsi_body *body = &a->body[a->count];
        *body = make_floater(b->mesh, density > 0 ? density : 1000, 9.81, a->dim);
        body->mode = density > 0 ? FSI_BODY_COUPLED : FSI_BODY_PRESCRIBED;
        body->pose = body->end = at;
        b->body = body;
        mesh_to(b->mesh, at);
        b->from = at;
    } else mesh_to(b->mesh, at);
    { fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
      o.mesh = b->mesh;
      o.body = b->body;
      if (with_body && a->at % 5 == 4) o.surface = FSI_WCSPH_SURFACE_SAMPLES;
      CHECK(fsi_wcsph_add_obstacle(a->s, &o, &b->id) == FSI_OK); }
    a->count++;
}

static fsi_pose some_pose(arena *a, double lo, double hi)
{
    fsi_pose p;
    p.position = somewhere(a, lo, hi);
    p.orientation = some_turn(a, 3);
    return p;
}

static void begin_case(arena *a, int at, int tell)
{
    fsi_wcsph_desc d;
    double side;
    int k;
    memset(a, 0, sizeof *a);
    a->random = 77u + (uint64_t)at;
    a->at = at;
    a->tell = tell;
    a->dim = 2 + at % 2;
    a->kind = (play)(at / 2 % PLAYS);
    side = a->dim == 2 ? 0.4 : 0.3;
    d = make_desc(a->dim, a->dim == 2 ? 0.03 : 0.05);
    d.domain = room(a->dim, 0, 0, side, side, side);
    d.depth = (fsi_real)0.4;
    d.max_substeps = at % 3 == 0 ? 1 + (int)between(a, 0, 7) : 60;
    a->s = make_wcsph(&d);
    fill(a->s, room(a->dim, 0, 0, side, side * between(a, 0.3, 0.9), side), v3(0, 0, 0));
    a->fastest = (double)a->s->sound_speed;
    if (a->kind == WORLD) {
        fsi_rigid_desc w = fsi_rigid_default_desc();
        w.dim = a->dim;
        w.gravity = d.gravity;
        w.domain = d.domain;
        CHECK(fsi_rigid_create(&a->world, &w) == FSI_OK && fsi_wcsph_set_world(a->s, a->world) == FSI_OK);
    }
    for (k = 0; k < (a->kind == PLATES || a->kind == WORLD ? 2 : 1 + at / 14 % 2); k++) {
        const double r = between(a, 0.03, 0.12), q = between(a, 0.03, 0.12);
        const fsi_vec3 half = a->kind == PLATES ? in_room(a->dim, 0.05, side, side) : in_room(a->dim, r, q, r);
        fsi_pose p = some_pose(a, 0.05, side - 0.05);
        if (a->kind == PLATES) {
            p.position = in_room(a->dim, k ? side : 0, side / 2, side / 2);
            p.orientation = fsi_quat_identity();
        }
        if (a->kind == WORLD) {
            fsi_rigid_shape box = fsi_rigid_box(half);
            fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
            int id = -1;
            box.density = k ? 20000 : 300;
            b.shapes = &box;
            b.shape_count = 1;
            b.pose = p;
            b.kind = k && at % 4 == 0 ? FSI_RIGID_KINEMATIC : FSI_RIGID_DYNAMIC;
            b.velocity = fsi_v3_scale(random_vector(&a->random, a->dim), k ? 30 : 3);
            CHECK(fsi_rigid_add_body(a->world, &b, &id) == FSI_OK && fsi_rigid_tessellate(a->world, id, -1, 0, &a->block[k].mesh) == FSI_OK);
            a->block[k].body = fsi_rigid_body(a->world, id);
            a->block[k].from = a->block[k].body->pose;
            CHECK(fsi_wcsph_add_body(a->s, a->block[k].mesh, a->block[k].body, &a->block[k].id) == FSI_OK);
            a->count++;
        } else add_block(a, half, a->kind == CARRIED || a->kind == JUMP || a->kind == HEAVY, p, a->kind == HEAVY ? between(a, 2000, 50000) : 0);
        if (a->kind == HEAVY) a->body[k].velocity = fsi_v3_scale(random_vector(&a->random, a->dim), (fsi_real)between(a, 1, 60));
    }
}

static void end_case(arena *a)
{
    int k;
    fsi_wcsph_destroy(a->s);
    for (k = 0; k < a->count; k++) fsi_mesh_destroy(a->block[k].mesh);
    fsi_rigid_destroy(a->world);
}

static void note_speed(arena *a, double way, double turn, double dt) { a->fastest = fmax(a->fastest, (way + 0.5 * turn) / dt); }

/* What the case does to its solids before step number `step`. */
static void move_blocks(arena *a, int step, double dt)
{
    int k;
    for (k = 0; k < a->count; k++) {
        block *b = &a->block[k];
        fsi_pose to = some_pose(a, -0.1, 0.5);
        const double way = between(a, 0.1, a->at % 7 == 0 ? 38 : 2);
        fsi_pose by;
        by.position = fsi_v3_scale(fsi_v3_unit(random_vector(&a->random, a->dim)), (fsi_real)way);
        by.orientation = some_turn(a, 0.5);
        if (a->kind == TELEPORT) {
            mesh_to(b->mesh, to);
            CHECK(fsi_wcsph_teleport_obstacle(a->s, b->id) == FSI_OK);
        } else if (a->kind == SHOT) {
            if (step % 2) by.position = fsi_v3_scale(by.position, -1);
            by.position = fsi_v3_add(by.position, in_room(a->dim, 0.2, 0.2, 0.15));
            mesh_to(b->mesh, by);
            note_speed(a, 2 * way + 0.5, 1, dt);
        } else if (a->kind == CARRIED) {
            b->body->pose = b->body->end;
            b->body->end = to;
            note_speed(a, (double)fsi_v3_norm(fsi_v3_sub(to.position, b->body->pose.position)), 3, dt);
        } else if (a->kind == JUMP) {
            b->body->pose = to;
            b->body->end = to;
            b->body->end.position = fsi_v3_madd(to.position, (fsi_real)0.05, random_vector(&a->random, a->dim));
            note_speed(a, 0.1, 0, dt);
        } else if (a->kind == PLATES) {
            fsi_pose in;
            in.orientation = fsi_quat_identity();
            in.position = in_room(a->dim, k ? (double)a->s->desc.domain.hi.x - between(a, 0, 0.08) : between(a, 0, 0.08), 0, 0);
            mesh_to(b->mesh, in);
            note_speed(a, 0.08, 0, dt);
        } else if (b->body) {
            note_speed(a, (double)fsi_v3_norm(b->body->velocity) * dt, (double)fsi_v3_norm(b->body->angular_velocity) * dt, dt);
            if (a->kind == HEAVY) note_speed(a, 0, 0, dt);
        }
    }
}

typedef struct verdict { int outside, inside, pinched, fails; double speed; } verdict;

static verdict judge(const arena *a)
{
    verdict v = { 0, 0, 0, 0, 0 };
    const fsi_box3 d = a->s->desc.domain;
    int i, k;
    v.pinched = a->s->stats.pinched;
    v.speed = a->s->stats.max_speed / (a->fastest > 0 ? a->fastest : 1);
    for (i = 0; i < a->s->count; i++) {
        const fsi_vec3 x = a->s->position[i];
        int in = 0;
        v.outside += !(x.x >= d.lo.x && x.x <= d.hi.x && x.y >= d.lo.y && x.y <= d.hi.y && (a->dim == 2 || (x.z >= d.lo.z && x.z <= d.hi.z)));
        for (k = 0; k < a->count; k++) in |= block_holds(&a->block[k], x);
        v.inside += in;
    }
    return v;
}

static verdict run_case(int at, int tell)
{
    arena a;
    verdict worst = { 0, 0, 0, 0, 0 };
    int step, k;
    begin_case(&a, at, tell);
    for (step = 0; step < 4; step++) {
        const double dt = between(&a, 1e-3, 1.5e-2);
        verdict v;
        move_blocks(&a, step, dt);
        if (fsi_wcsph_step(a.s, (fsi_real)dt) != FSI_OK) {
            printf("  case %d (%s, %dD) step %d: %s\n", at, play_names[a.kind], a.dim, step, fsi_wcsph_error(a.s)->message);
            worst.fails++;
            break;
        }
        for (k = 0; k < a.count; k++) if (a.kind == HEAVY) {
            fsi_body_accept(a.block[k].body);
            a.fastest = fmax(a.fastest, (double)fsi_v3_norm(a.block[k].body->velocity) + 0.3 * (double)fsi_v3_norm(a.block[k].body->angular_velocity));
        }
        for (k = 0; k < a.count; k++) if (a.kind == WORLD) a.fastest = fmax(a.fastest, (double)fsi_v3_norm(a.block[k].body->velocity) + 0.3 * (double)fsi_v3_norm(a.block[k].body->angular_velocity));
        v = judge(&a);
        if (tell) printf("  case %d (%s, %dD) step %d: %d of %d outside, %d inside, stats: %d pinched %d inside %d lost %d displaced, speed %g of %g, %d substeps\n", at, play_names[a.kind], a.dim, step,
            v.outside, a.s->count, v.inside, v.pinched, a.s->stats.inside, a.s->stats.lost, a.s->stats.displaced, a.s->stats.max_speed, a.fastest, a.s->stats.substeps);
        worst.outside += v.outside;
        worst.fails += v.inside > v.pinched || a.s->stats.lost != v.outside || !(a.s->stats.max_speed < 1e9);
        worst.inside += v.inside;
        worst.pinched += v.pinched;
        worst.speed = fmax(worst.speed, v.speed);
    }
    end_case(&a);
    return worst;
}

static int cases = TEST_WATCHED ? 28 : 98;

static void test_nothing_is_squeezed_out_or_into_a_solid(void)
{
    int at, bad = 0, kinds[PLAYS] = { 0 };
    verdict sum = { 0, 0, 0, 0, 0 };
    for (at = 0; at < cases; at++) {
        const verdict v = run_case(at, 0);
        const int wrong = v.outside > 0 || v.fails > 0 || !(v.speed <= 8);
        if (wrong && bad < 25) printf("  case %d (%s, %dD): %d outside, %d inside, %d pinched, %d faults, speed %.2f\n", at, play_names[at / 2 % PLAYS], 2 + at % 2, v.outside, v.inside, v.pinched, v.fails, v.speed);
        kinds[at / 2 % PLAYS] += wrong;
        bad += wrong;
        sum.outside += v.outside;
        sum.inside += v.inside;
        sum.pinched += v.pinched;
        sum.fails += v.fails;
        sum.speed = fmax(sum.speed, v.speed);
    }
    printf("  %d cases: %d wrong; %d outside, %d inside, %d pinched; fastest %.2f of what moves it\n", cases, bad, sum.outside, sum.inside, sum.pinched, sum.speed);
    for (at = 0; at < PLAYS; at++) if (kinds[at]) printf("    %s: %d wrong\n", play_names[at], kinds[at]);
    CHECK(bad == 0);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "one") == 0) return run_case(atoi(argv[2]), 1).fails;
    if (argc > 1 && atoi(argv[1]) > 0) {
        cases = atoi(argv[1]);
        argc = 1;
    }
    TEST_BEGIN(argc, argv);
    RUN(test_nothing_is_squeezed_out_or_into_a_solid);
    return TEST_END();
}
