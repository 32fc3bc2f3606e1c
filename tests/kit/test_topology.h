/* test_topology.h - random pieces that meet, necks that are drawn out, sheets that get thin: for test_front_topology.c
   and validate_front.c, and what must hold in each of their steps.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_TOPOLOGY_H
#define FSI_TEST_TOPOLOGY_H

#include "test_fronts.h"

/* What happened, of all runs so far. */
typedef struct topology_tally {
    int runs, steps, merges, pinches, places, whole, failed, removed;
    int refused, open, wrong_pieces, crossing, negative; /* these must stay 0 */
    double volume, amount;                     /* worst relative errors after booking */
} topology_tally;

enum { TOPOLOGY_BALLS, TOPOLOGY_BALL_AND_TORUS, TOPOLOGY_TORI, TOPOLOGY_DISCS, TOPOLOGY_NECK, TOPOLOGY_NECK_2D,
    TOPOLOGY_SHEET, TOPOLOGY_KINDS };

/* Volume of all, after a step of dt would have moved the vertices. */
TEST_FN double topology_volume(const fsi_front *f, double dt)
{
    double sum = 0;
    int t, i;
    for (t = 0; t < f->element_count; t++) {
        double p[3][3];
        for (i = 0; i < f->dim; i++) {
            const int v = f->elements[f->dim * t + i];
            const fsi_vec3 x = fsi_v3_madd(f->position[v], (fsi_real)dt, f->velocity[v]);
            p[i][0] = (double)x.x;
            p[i][1] = (double)x.y;
            p[i][2] = (double)x.z;
        }
        if (f->dim == 2) sum += (p[1][0] * p[0][1] - p[0][0] * p[1][1]) / 2;
        else sum += (p[0][0] * (p[1][1] * p[2][2] - p[1][2] * p[2][1])
            + p[0][1] * (p[1][2] * p[2][0] - p[1][0] * p[2][2])
            + p[0][2] * (p[1][0] * p[2][1] - p[1][1] * p[2][0])) / 6;
    }
    return sum;
}

/* One step; all that must hold of it. */
TEST_FN int topology_step(fsi_front *f, double dt, topology_tally *y)
{
    const double volume = topology_volume(f, dt) + f->stats.owed;
    double amount[2], size[2] = { 0, 0 }, error;
    int i, j, positive[2] = { 1, 1 };
    for (j = 0; j < 2; j++) {
        amount[j] = front_amount(f, j);
        for (i = 0; i < f->vertex_count; i++) {
            size[j] += fabs((double)f->attribute[2 * i + j]);
            positive[j] &= f->attribute[2 * i + j] >= 0;
        }
    }
    y->steps++;
    if (fsi_front_step(f, (fsi_real)dt) != FSI_OK) { y->refused++; return 0; }
    error = fabs(f->stats.volume + f->stats.owed + f->stats.removed_volume - volume) / fabs(volume);
    y->volume = error <= y->volume ? y->volume : error;
    for (j = 0; j < 2; j++) {
        error = fabs(front_amount(f, j) + f->stats.removed_amount[j] - amount[j]) / (size[j] > 0 ? size[j] : 1);
        y->amount = error <= y->amount ? y->amount : error;
        for (i = 0; i < f->vertex_count && positive[j]; i++) y->negative += !(f->attribute[2 * i + j] >= 0);
    }
    y->open += front_open_edges(f);
    y->merges += f->stats.merges;
    y->pinches += f->stats.pinches;
    y->places += f->stats.places;
    y->whole += f->stats.whole_places;
    y->failed += f->stats.failed_places;
    y->removed += f->stats.removed_pieces;
    return 1;
}

/* Is it a surface that create takes: closed, without crossings, vertices with one ring each? */
TEST_FN int topology_is_sound(const fsi_front *f)
{
    fsi_front_desc d = f->desc;
    fsi_front *g;
    d.context = NULL;
    d.vertices = f->position;
    d.vertex_count = f->vertex_count;
    d.elements = f->elements;
    d.element_count = f->element_count;
    if (fsi_front_create(&g, &d) != FSI_OK) return 0;
    fsi_front_destroy(g);
    return 1;
}

TEST_FN double topology_in(uint64_t *seed, double lo, double hi) { return lo + (hi - lo) * test_random(seed); }

/* Turned about a random axis through the origin, then moved. */
TEST_FN void topology_place(front_shape *s, int first, fsi_vec3 at, uint64_t *seed)
{
    const double a = topology_in(seed, 0, 6.28), b = topology_in(seed, 0, 6.28);
    int i;
    for (i = first; i < s->vertices; i++) {
        double x = (double)s->x[i].x, y = (double)s->x[i].y, z = (double)s->x[i].z, u;
        u = x * cos(a) - y * sin(a);
        y = x * sin(a) + y * cos(a);
        x = u;
        if (s->dim == 3) {
            u = x * cos(b) - z * sin(b);
            z = x * sin(b) + z * cos(b);
            x = u;
        }
        s->x[i] = fsi_v3_add(front_v3(x, y, z), at);
    }
}

TEST_FN void topology_add(front_shape *s, int torus, fsi_vec3 at, uint64_t *seed)
{
    const int first = s->vertices;
    if (s->dim == 2) front_add_circle(s, front_v3(0, 0, 0), topology_in(seed, 4, 7), 40, 1);
    else if (torus) front_add_torus(s, topology_in(seed, 5, 6), topology_in(seed, 2, 2.6), 36, 14);
    else front_add_ball(s, front_v3(0, 0, 0), front_v3(topology_in(seed, 3.5, 6), topology_in(seed, 3.5, 6),
        topology_in(seed, 3.5, 6)), 7, 1);
    topology_place(s, first, at, seed);
}

/* Velocities of a run: pieces that approach each other, then rest; a neck or a sheet that gets thin. */
TEST_FN void topology_move(fsi_front *f, int kind, fsi_vec3 along)
{
    int t, i;
    for (i = 0; i < f->vertex_count; i++) {
        const double x = (double)f->position[i].x, y = (double)f->position[i].y, z = (double)f->position[i].z;
        const double near_0 = exp(-x * x / 8);
        if (kind == TOPOLOGY_NECK || kind == TOPOLOGY_NECK_2D)
            f->velocity[i] = front_v3(0.05 * x, -0.35 * near_0 * y, -0.35 * near_0 * z);
        else if (kind == TOPOLOGY_SHEET)
            f->velocity[i] = front_v3(0, 0, -0.5 * exp(-(x * x + y * y) / 8) * z);
        else f->velocity[i] = fsi_v3(0, 0, 0);
    }
    for (t = 0; t < f->element_count && kind <= TOPOLOGY_DISCS && f->piece_count > 1; t++)
        for (i = 0; i < f->dim; i++)
            f->velocity[f->elements[f->dim * t + i]] = fsi_v3_scale(along, f->piece[f->piece_of[t]].id == 0 ? 1 : -1);
}

/* A run of one kind: until what must happen has happened, and two steps more. */
TEST_FN void topology_run(int kind, uint64_t seed, topology_tally *y)
{
    const int flat = kind == TOPOLOGY_DISCS || kind == TOPOLOGY_NECK_2D, meet = kind <= TOPOLOGY_DISCS;
    front_shape s = { flat ? 2 : 3, 0, 0, NULL, NULL };
    const double a = topology_in(&seed, 0, 6.28), b = topology_in(&seed, -1, 1), r = sqrt(1 - b * b);
    const fsi_vec3 along = flat ? front_v3(cos(a), sin(a), 0) : front_v3(r * cos(a), r * sin(a), b);
    fsi_front_desc d;
    fsi_front *f;
    int k, i, left = 2, done;
    if (meet) {
        const fsi_real far = kind == TOPOLOGY_BALLS ? (fsi_real)6.3 : kind == TOPOLOGY_DISCS ? (fsi_real)7.3
            : kind == TOPOLOGY_TORI ? 9 : (fsi_real)7.5;
        topology_add(&s, kind == TOPOLOGY_TORI, fsi_v3_scale(along, -far), &seed);
        topology_add(&s, kind == TOPOLOGY_TORI || kind == TOPOLOGY_BALL_AND_TORUS, fsi_v3_scale(along, far), &seed);
    } else if (kind == TOPOLOGY_SHEET)
        front_add_ball(&s, front_v3(0, 0, 0), front_v3(topology_in(&seed, 6, 8), topology_in(&seed, 6, 8),
            topology_in(&seed, 1.5, 2)), 9, 1);
    else if (flat)
        front_add_circle(&s, front_v3(topology_in(&seed, -0.5, 0.5), 0, 0), topology_in(&seed, 5.5, 7), 40, 1);
    else front_add_ball(&s, front_v3(topology_in(&seed, -1, 1), 0, 0), front_v3(topology_in(&seed, 7, 9),
        topology_in(&seed, 2, 3), topology_in(&seed, 2, 3)), 8, 1);
    d = front_desc(&s, 1);
    d.topology = 1;
    d.attribute_count = 2;
    y->runs++;
    if (fsi_front_create(&f, &d) != FSI_OK) { y->refused++; front_free(&s); return; } /* they meet at first: never */
    for (i = 0; i < f->vertex_count; i++) {
        f->attribute[2 * i] = (fsi_real)fmax(0, topology_in(&seed, -0.5, 1)); /* some have none */
        f->attribute[2 * i + 1] = (fsi_real)topology_in(&seed, -1, 1);
    }
    for (k = 0; k < 80 && left > 0; k++) {
        topology_move(f, kind, fsi_v3_scale(along, (fsi_real)0.4));
        if (!topology_step(f, left < 2 ? 0 : 1, y)) break;
        done = meet ? f->piece_count == 1 : kind == TOPOLOGY_SHEET ? f->stats.places > 0 : f->piece_count > 1;
        left -= done || left < 2;
    }
    y->wrong_pieces += left > 0 || f->piece_count != (meet || kind == TOPOLOGY_SHEET ? 1 : 2);
    y->crossing += !topology_is_sound(f);
    fsi_front_destroy(f);
    front_free(&s);
}

/* Balls and a ring in a flow that draws them out to sheets and threads everywhere: what is owed at most. */
TEST_FN double topology_stir(int seed, double length, int steps, topology_tally *y)
{
    front_shape s = { 3, 0, 0, NULL, NULL };
    fsi_front_desc d;
    fsi_front *f;
    double owed = 0;
    int k, i;
    front_add_ball(&s, front_v3(0, 0, 0), front_v3(0.3, 0.3, 0.3), 8, 1);
    front_add_ball(&s, front_v3(0.1, 1.25, 0.1 * seed), front_v3(0.2, 0.2, 0.2), 6, 1);
    front_add_torus(&s, 0.7, 0.12, 60, 14);
    d = front_desc(&s, length);
    d.topology = 1;
    d.attribute_count = 2;
    y->runs++;
    CHECK(fsi_front_create(&f, &d) == FSI_OK);
    for (i = 0; i < f->vertex_count; i++) {
        f->attribute[2 * i] = 1;
        f->attribute[2 * i + 1] = (fsi_real)sin((double)i);
    }
    for (k = 0; k < steps; k++) {
        const double phase = 0.05 * k + seed;
        for (i = 0; i < f->vertex_count; i++)
            f->velocity[i] = front_v3(0.4 * sin(5 * (double)f->position[i].y + phase),
                0.4 * sin(6 * (double)f->position[i].z + 2 * phase),
                0.4 * sin(5.5 * (double)f->position[i].x + 1.5 * phase));
        if (!topology_step(f, 0.02, y)) break;
        owed = fmax(owed, fabs(f->stats.owed));
    }
    y->crossing += !topology_is_sound(f);
    fsi_front_destroy(f);
    front_free(&s);
    return owed;
}

/* A plate 16 wide that is stirred until it tears in places, then at rest: the last of its steps at rest in which
   something was resampled, -1: none; *removed: part of its volume that went with small pieces in these. */
TEST_FN int topology_plate(int dim, double thick, int stir, int seed, int rest, double *removed, topology_tally *y)
{
    front_shape s = { dim, 0, 0, NULL, NULL };
    fsi_front_desc d;
    fsi_front *f;
    double volume = 0;
    int k, i, last = -1;
    front_add_plate(&s, 8, thick);
    d = front_desc(&s, 1);
    d.topology = 1;
    d.attribute_count = 2;
    y->runs++;
    *removed = 0;
    CHECK(fsi_front_create(&f, &d) == FSI_OK);
    for (i = 0; i < 2 * f->vertex_count; i++) f->attribute[i] = 1;
    for (k = 0; k < stir + rest; k++) {
        const double p = 1.7 * seed + 0.1 * k, u = k < stir ? 0.18 : 0;
        for (i = 0; i < f->vertex_count; i++) {
            const double a = (double)f->position[i].x, b = (double)f->position[i].y, c = (double)f->position[i].z;
            f->velocity[i] = dim == 3
                ? front_v3(u * sin(0.5 * b + p), u * sin(0.6 * c + 2 * p), u * sin(0.55 * a + 1.5 * p))
                : front_v3(u * sin(0.5 * b + p), u * sin(0.55 * a + 1.5 * p), 0);
        }
        if (k == stir) volume = topology_volume(f, 0);
        if (!topology_step(f, 1, y)) break;
        if (k >= stir && f->stats.places + f->stats.failed_places > 0) last = k - stir;
        if (k >= stir) *removed += f->stats.removed_volume / volume;
    }
    y->crossing += !topology_is_sound(f);
    fsi_front_destroy(f);
    front_free(&s);
    return last;
}

/* A drop on the floor z = 0 (2D: y = 0), a cap of a ball around a center at some height: the upper half of a unit ball
   becomes the cap, the lower one its foot. */
TEST_FN void topology_add_sitting(front_shape *s, double at, double radius, double center)
{
    const double edge = acos(-center / radius), foot = radius * sin(edge);
    const int first = s->vertices;
    int i;
    if (s->dim == 3) front_add_ball(s, front_v3(0, 0, 0), front_v3(1, 1, 1), 9, 1);
    else front_add_circle(s, front_v3(0, 0, 0), 1, 36, 1);
    for (i = first; i < s->vertices; i++) {
        const double x = (double)s->x[i].x, y = s->dim == 3 ? (double)s->x[i].y : 0,
            z = (double)(s->dim == 3 ? s->x[i].z : s->x[i].y), wide = sqrt(x * x + y * y),
            polar = atan2(wide, z) / (FSI_PI / 2), wet = polar > 1 - 1e-6,
            r = wet ? foot * (2 - polar) : radius * sin(polar * edge), scale = wide > 1e-9 ? r / wide : 0,
            high = wet ? 0 : center + radius * cos(polar * edge);
        s->x[i] = s->dim == 3 ? front_v3(at + x * scale, y * scale, high) : front_v3(at + x * scale, high, 0);
    }
}

/* Scenes are on the floor z = 0 (2D: y = 0), up 1, or below it as a ceiling, up -1, and `turn` times turned to the next
   axis: z, x, y, in 2D y, x. Where a point or velocity comes to, the axis of the floor, and a coordinate. */
TEST_FN fsi_vec3 topology_turn(int dim, int turn, fsi_vec3 p)
{
    if (dim == 2) return turn % 2 ? fsi_v3(p.y, -p.x, 0) : p;
    return turn % 3 == 0 ? p : turn % 3 == 1 ? fsi_v3(p.z, p.x, p.y) : fsi_v3(p.y, p.z, p.x);
}
TEST_FN int topology_axis(int dim, int turn) { return dim == 2 ? 1 - turn % 2 : (turn + 2) % 3; }
TEST_FN double topology_part(fsi_vec3 p, int axis) { return (double)(axis == 0 ? p.x : axis == 1 ? p.y : p.z); }

TEST_FN fsi_front *topology_sitting(front_shape *s, const double *at, int count, double radius, double center, int up,
    int turn)
{
    const int axis = topology_axis(s->dim, turn);
    fsi_front_desc d;
    fsi_front *f = NULL;
    fsi_vec3 *side;
    uint32_t *flags;
    int i;
    for (i = 0; i < count; i++) topology_add_sitting(s, at[i], radius, center);
    flags = (uint32_t *)calloc((size_t)s->vertices, sizeof *flags);
    for (i = 0; i < s->vertices; i++) {
        fsi_real *high = s->dim == 3 ? &s->x[i].z : &s->x[i].y;
        flags[i] = *high > 0 ? 0 : (uint32_t)1 << (2 * axis + (up < 0));
        *high *= (fsi_real)up;
        s->x[i] = topology_turn(s->dim, turn, s->x[i]);
    }
    for (i = 0; i < s->elements && up < 0; i++) {
        int *c = s->corner + s->dim * i, other = c[0];
        c[0] = c[s->dim - 1];
        c[s->dim - 1] = other;
    }
    d = front_desc(s, 1);
    d.flags = flags;
    d.topology = 1;
    d.attribute_count = 2;
    side = up > 0 ? &d.walls.lo : &d.walls.hi;
    *(axis == 0 ? &side->x : axis == 1 ? &side->y : &side->z) = 0;
    CHECK(fsi_front_create(&f, &d) == FSI_OK);
    for (i = 0; f && i < 2 * f->vertex_count; i++) f->attribute[i] = 1;
    free(flags);
    return f;
}

/* All is above the floor, and what has its flag on it. */
TEST_FN int topology_is_on_floor(const fsi_front *f, int up, int turn)
{
    int i, bad = 0, wet = 0;
    for (i = 0; i < f->vertex_count; i++) {
        const double z = up * topology_part(f->position[i], topology_axis(f->dim, turn));
        const int flag = (f->flags[i] & 63u) != 0;
        bad += flag ? !(fabs(z) <= 0) : !(z > 0);
        wet += flag;
    }
    return bad == 0 && wet > 3;
}

#endif
