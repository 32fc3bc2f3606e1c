/* test_front_topology.c - pieces that merge and pinch off: their number, closed surfaces without crossings, volumes and
   amounts, owners who are asked, bad input.
   SPDX-License-Identifier: MIT */
#include "kit/test_topology.h"

static topology_tally tally;

static void check_tally(void)
{
    CHECK(tally.refused == 0 && tally.open == 0 && tally.crossing == 0 && tally.wrong_pieces == 0);
    CHECK(tally.negative == 0); /* where an amount was nowhere negative */
    CHECK(tally.volume <= TOL(1e-12, 1e-4));
    CHECK(tally.amount <= TOL(1e-12, 1e-5));
}

/* validate_front.c has 500. */
static void test_random_pieces_merge_and_pinch(void)
{
    int k;
    for (k = 0; k < (TEST_WATCHED ? 7 : 40); k++) topology_run(k % TOPOLOGY_KINDS, (uint64_t)k, &tally);
    check_tally();
    CHECK(tally.merges >= (TEST_WATCHED ? 4 : 23) && tally.pinches >= (TEST_WATCHED ? 2 : 11));
}

/* Two balls with a distance between them, at rest; a step without motion. */
static fsi_front *make_pair(fsi_context *c, int dim, double gap, double topology_dx, front_shape *s)
{
    fsi_front_desc d;
    fsi_front *f = NULL;
    if (dim == 3) {
        front_add_ball(s, front_v3(-5 - gap / 2, 0.1, 0.2), front_v3(5, 5, 5), 8, 1);
        front_add_ball(s, front_v3(5 + gap / 2, 0.1, 0.2), front_v3(5, 5, 5), 8, 1);
    } else {
        front_add_circle(s, front_v3(-5 - gap / 2, 0.1, 0), 5, 32, 1);
        front_add_circle(s, front_v3(5 + gap / 2, 0.1, 0), 5, 32, 1);
    }
    d = front_desc(s, 1);
    d.context = c;
    d.topology = 1;
    d.topology_dx = (fsi_real)topology_dx;
    d.attribute_count = 2;
    CHECK(fsi_front_create(&f, &d) == FSI_OK);
    return f;
}

static void test_pieces_nearer_than_half_a_cell_merge(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 4; k++) {
            const double dx = k < 2 ? 2 : 3, gap = dx / 2 * (k & 1 ? 1.02 : 0.98);
            front_shape s = { dim, 0, 0, NULL, NULL };
            fsi_front *f = make_pair(NULL, dim, gap, k < 2 ? 0 : 3, &s);
            if (!f) return;
            CHECK(topology_step(f, 0, &tally));
            CHECK(f->piece_count == (k & 1 ? 2 : 1) && f->stats.merges == !(k & 1) && f->stats.places == !(k & 1));
            CHECK(f->stats.failed_places == 0 && f->stats.whole_places == 0 && f->piece[0].id == 0);
            CHECK(k & 1 || (f->stats.resampled_cells > 0 && f->stats.resampled_cells < 1000));
            CHECK(topology_is_sound(f));
            fsi_front_destroy(f);
            front_free(&s);
        }
    check_tally();
}

/* What was merged is not parted again, what was parted does not merge, when nothing moves. */
static void test_what_is_made_stays(void)
{
    int k, j;
    for (k = 0; k < 2; k++) {
        front_shape s = { 3, 0, 0, NULL, NULL };
        fsi_front *f;
        fsi_front_desc d;
        int pieces;
        if (k == 0) f = make_pair(NULL, 3, 0.5, 0, &s);
        else {
            front_add_ball(&s, front_v3(0, 0, 0), front_v3(12, 3, 3), 12, 1);
            for (j = 0; j < s.vertices; j++) { /* a neck of 0.45 */
                const double x = (double)s.x[j].x, w = 1 - 0.85 * exp(-x * x / 6);
                s.x[j] = front_v3(x, w * (double)s.x[j].y, w * (double)s.x[j].z);
            }
            d = front_desc(&s, 1);
            d.topology = 1;
            d.attribute_count = 2;
            if (fsi_front_create(&f, &d) != FSI_OK) f = NULL;
        }
        CHECK(f != NULL);
        if (!f) return;
        for (j = 0, pieces = 0; j < 6; j++) {
            CHECK(topology_step(f, 0, &tally));
            if (j == 0) pieces = f->piece_count;
            CHECK(f->piece_count == pieces);
        }
        CHECK(pieces == 1 + k);
        CHECK(topology_is_sound(f));
        fsi_front_destroy(f);
        front_free(&s);
    }
    check_tally();
}

/* A disc of liquid, thinner than a cell in its middle, gets a hole: a ring is left, with all of the volume. */
static void test_thin_sheet_tears(void)
{
    front_shape s = { 3, 0, 0, NULL, NULL };
    fsi_front_desc d;
    fsi_front *f;
    int i;
    front_add_ball(&s, front_v3(0, 0, 0), front_v3(9, 9, 2.5), 14, 1);
    for (i = 0; i < s.vertices; i++) {
        const double r2 = (double)s.x[i].x * (double)s.x[i].x + (double)s.x[i].y * (double)s.x[i].y;
        s.x[i].z = (fsi_real)((double)s.x[i].z * (1 - 0.9 * exp(-r2 / 9)));
    }
    d = front_desc(&s, 1);
    d.topology = 1;
    d.attribute_count = 2;
    CHECK(fsi_front_create(&f, &d) == FSI_OK);
    for (i = 0; i < f->vertex_count; i++) f->attribute[2 * i] = 1;
    CHECK(topology_step(f, 0, &tally));
    CHECK(f->piece_count == 1 && f->stats.places == 1 && f->stats.whole_places == 0 && f->stats.failed_places == 0);
    CHECK(f->vertex_count - f->element_count / 2 == 0); /* Euler's number of a torus */
    CHECK(topology_is_sound(f));
    check_tally();
    fsi_front_destroy(f);
    front_free(&s);
}

/* Plates of 1 to 2.4 times dx/2 that tear while they are stirred come to rest with the flow, in three steps at most and
   two thirds of one in the mean: what is made in a place is thick enough not to tear again. (By the first lattice that
   can be sewn, whatever thin sheets it leaves: 16 steps in 12 plates, in float 11.) */
static void test_torn_plates_come_to_rest(void)
{
    const double thick[] = { 1.2, 1.5, 2, 2.4 };
    double removed, most = 0;
    int k, last, latest = -1, steps = 0, places = tally.places;
    for (k = 0; k < (TEST_WATCHED ? 3 : 12); k++) {
        last = topology_plate(k % 4 == 3 ? 2 : 3, thick[k / 3], k & 1 ? 30 : 10, 3 + k % 3, 12, &removed, &tally);
        latest = last > latest ? last : latest;
        steps += last + 1;
        most = fmax(most, fabs(removed));
    }
    check_tally();
    CHECK(tally.places - places > (TEST_WATCHED ? 2 : 20) && tally.failed == 0);
    CHECK(latest <= 2);
    CHECK(steps <= 8);
    CHECK(most <= 0.02);
}

/* A bubble at the skin of a drop opens; two bubbles in a drop become one; a ring closes its hole; of a film that is
   thin everywhere nothing is left, and all of it is booked. Steps without motion. */
static void test_bubbles_rings_and_films(void)
{
    static const struct { int pieces, euler, removed; } want[] = { { 1, 2, 0 }, { 2, 4, 0 }, { 1, 2, 0 }, { 0, 0, 1 } };
    int kind, k, removed;
    for (kind = 0; kind < 4; kind++) {
        front_shape s = { 3, 0, 0, NULL, NULL };
        fsi_front_desc d;
        fsi_front *f = NULL;
        if (kind == 0) {
            front_add_ball(&s, front_v3(0, 0, 0), front_v3(7, 7, 7), 11, 1);
            front_add_ball(&s, front_v3(1.7, 0, 0), front_v3(4.5, 4.5, 4.5), 8, -1);
        } else if (kind == 1) {
            front_add_ball(&s, front_v3(0, 0, 0), front_v3(14, 10, 10), 18, 1);
            front_add_ball(&s, front_v3(4.9, 0, 0), front_v3(4.5, 4.5, 4.5), 8, -1);
            front_add_ball(&s, front_v3(-4.9, 0.3, 0), front_v3(4.5, 4.5, 4.5), 8, -1);
        } else if (kind == 2) front_add_torus(&s, 2.2, 1.9, 30, 24);
        else front_add_ball(&s, front_v3(0, 0, 0), front_v3(12, 12, 0.45), 16, 1);
        d = front_desc(&s, 1);
        d.topology = 1;
        d.attribute_count = 2;
        CHECK(fsi_front_create(&f, &d) == FSI_OK);
        for (k = 0; k < f->vertex_count; k++) f->attribute[2 * k] = 1;
        for (k = removed = 0; k < (kind == 3 ? 1 : 2); k++) {
            CHECK(topology_step(f, 0, &tally));
            removed += f->stats.removed_volume > 10;
        }
        CHECK(f->piece_count == want[kind].pieces && removed == want[kind].removed);
        CHECK(f->vertex_count - f->element_count / 2 == want[kind].euler);
        CHECK(f->stats.failed_places == 0 && topology_is_sound(f));
        fsi_front_destroy(f);
        front_free(&s);
    }
    check_tally();
}

/* Drops that a step moves into each other become one: their union, with the volume of both. */
static void test_overlapping_drops_become_one(void)
{
    int k;
    for (k = 0; k < 2; k++) {
        front_shape s = { 3, 0, 0, NULL, NULL };
        fsi_front *f = make_pair(NULL, 3, 2, 0, &s);
        int i, t;
        if (!f) return;
        for (t = 0; t < f->element_count; t++)
            for (i = 0; i < 3; i++) f->velocity[f->elements[3 * t + i]] = front_v3(f->piece_of[t] ? -1.5 : 1.5, 0, 0);
        f->desc.topology = !k; /* read by each step */
        if (k) CHECK(fsi_front_step(f, 1) == FSI_ERROR_MESH && f->piece_count == 2);
        else {
            CHECK(topology_step(f, 1, &tally) && f->piece_count == 1 && f->stats.merges == 1);
            CHECK(topology_is_sound(f));
        }
        fsi_front_destroy(f);
        front_free(&s);
    }
    check_tally();
}

/* The shift that gives volume back, of drops that overlapped, ends before walls: one that the drops almost touch,
   nearer than the shift is wide. */
static void test_what_is_given_back_stays_before_walls(void)
{
    const double near = 0.002;
    int dim, side, i, t;
    for (dim = 2; dim <= 3; dim++)
        for (side = 0; side < 2; side++) {
            front_shape s = { dim, 0, 0, NULL, NULL };
            fsi_front *f = make_pair(NULL, dim, 2, 0, &s);
            fsi_real most = 0, far = 0;
            double volume;
            if (!f) return;
            for (i = 0; i < f->vertex_count; i++) most = fsi_max(most, side ? -f->position[i].y : f->position[i].y);
            if (side) f->desc.walls.lo.y = -most - (fsi_real)near; /* read by each step */
            else f->desc.walls.hi.y = most + (fsi_real)near;
            for (t = 0; t < f->element_count; t++)
                for (i = 0; i < dim; i++)
                    f->velocity[f->elements[dim * t + i]] = front_v3(f->piece_of[t] ? -1.5 : 1.5, 0, 0);
            volume = topology_volume(f, 1);
            CHECK(topology_step(f, 1, &tally) && f->piece_count == 1);
            CHECK_NEAR(f->stats.volume + f->stats.owed, volume, TOL(1e-12, 1e-4) * volume);
            for (i = 0; i < f->vertex_count; i++) far = fsi_max(far, side ? -f->position[i].y : f->position[i].y);
            CHECK(far <= most + (fsi_real)near);
            fsi_front_destroy(f);
            front_free(&s);
        }
    check_tally();
}

/* Momentum, by areas of vertices, but for what a shift that gives volume back would change. */
static void test_merge_keeps_momentum(void)
{
    front_shape s = { 3, 0, 0, NULL, NULL };
    fsi_front *f = make_pair(NULL, 3, 0.5, 0, &s);
    double sum = 0, *area, ball;
    int i;
    if (!f) return;
    ball = f->piece[0].volume;
    f->desc.keep_volume = 0; /* read by each step */
    area = front_areas(f);
    for (i = 0; i < f->vertex_count; i++) {
        f->velocity[i] = front_v3(f->position[i].x < 0 ? 2 : -1, 0, 0);
        sum += area[i] * (double)f->velocity[i].x;
    }
    CHECK(fsi_front_step(f, 0) == FSI_OK && f->piece_count == 1);
    CHECK_NEAR(f->stats.momentum[0], sum, TOL(1e-12, 1e-5) * fabs(sum));
    CHECK(fabs(f->piece[0].moved) > 0.1); /* and the volume is booked */
    CHECK_NEAR(f->stats.volume - f->piece[0].moved, 2 * ball, TOL(1e-12, 1e-5) * ball);
    free(area);
    fsi_front_destroy(f);
    front_free(&s);
}

/* A shift that would make the surface cross itself is not made as a whole: no step is refused, and the volume that
   there is and the one that is owed are what there was. */
static void test_what_cannot_be_given_back_is_owed(void)
{
    topology_stir(4, 0.07, TEST_WATCHED ? 10 : 26, &tally); /* in double 0.007 are owed at step 22 */
    check_tally();
}

static int asked, answer;
static fsi_front_event asked_of;
static int ask(void *user, const fsi_front_event *e)
{
    asked += user == &asked;
    asked_of = *e;
    return answer;
}

static void test_owner_is_asked(void)
{
    front_shape s = { 3, 0, 0, NULL, NULL };
    fsi_front *f = make_pair(NULL, 3, 0.5, 0, &s);
    uint64_t hash;
    if (!f) return;
    f->desc.ask = ask;
    f->desc.ask_user = &asked;
    asked = answer = 0;
    CHECK(fsi_front_step(f, 0) == FSI_OK);
    hash = fsi_front_hash(f);
    CHECK(asked == 1 && f->piece_count == 2 && f->stats.forbidden_places == 1 && f->stats.places == 0);
    CHECK(asked_of.kind == FSI_FRONT_MERGE && asked_of.piece[0] + asked_of.piece[1] == 1);
    CHECK(fabs((double)asked_of.place.x) < 0.5 && fabs((double)asked_of.place.y) < 2);
    CHECK(fsi_front_step(f, 0) == FSI_OK && asked == 2 && fsi_front_hash(f) == hash);
    answer = 1;
    CHECK(fsi_front_step(f, 0) == FSI_OK && asked == 3 && f->piece_count == 1 && f->stats.forbidden_places == 0);
    fsi_front_destroy(f);
    front_free(&s);
}

static int ask_of_two(void *user, const fsi_front_event *event)
{
    const int *forbidden = (const int *)user;
    const int low = (int)(event->piece[0] < event->piece[1] ? event->piece[0] : event->piece[1]);
    asked++;
    return low != *forbidden;
}

/* Three drops in a row, near enough to be one place: the owner decides for each two of them. */
static void test_owner_is_asked_for_each_two_pieces(void)
{
    int forbidden;
    for (forbidden = 0; forbidden < 2; forbidden++) {
        front_shape s = { 3, 0, 0, NULL, NULL };
        fsi_front_desc d;
        fsi_front *f;
        int i;
        for (i = 0; i < 3; i++) front_add_ball(&s, front_v3(2.9 * i, 0, 0), front_v3(1.2, 1.2, 1.2), 3, 1);
        d = front_desc(&s, (fsi_real)0.4);
        d.topology = 1;
        d.topology_dx = (fsi_real)1.2;
        d.ask = ask_of_two;
        d.ask_user = &forbidden;
        asked = 0;
        if (CHECK(fsi_front_create(&f, &d) == FSI_OK)) {
            CHECK(fsi_front_step(f, 0) == FSI_OK);
            CHECK(asked == 2 && f->stats.forbidden_places == 1 && f->stats.merges == 1 && f->piece_count == 2);
            CHECK(f->piece[0].id == 0 && f->piece[1].id == (forbidden ? 2u : 1u));
        }
        fsi_front_destroy(f);
        front_free(&s);
    }
}

/* Overlap is told as what it is: two drops that have met. */
static void test_overlap_is_told_as_a_merge(void)
{
    front_shape s = { 3, 0, 0, NULL, NULL };
    fsi_front *f = make_pair(NULL, 3, 2, 0, &s);
    int i, t;
    if (!f) return;
    f->desc.ask = ask;
    f->desc.ask_user = &asked;
    asked = 0;
    answer = 1;
    for (t = 0; t < f->element_count; t++)
        for (i = 0; i < 3; i++) f->velocity[f->elements[3 * t + i]] = front_v3(f->piece_of[t] ? -1.2 : 1.2, 0, 0);
    CHECK(fsi_front_step(f, 1) == FSI_OK && f->piece_count == 1 && asked >= 1);
    CHECK(asked_of.kind == FSI_FRONT_MERGE);
    fsi_front_destroy(f);
    front_free(&s);
}

static int ask_of_large(void *user, const fsi_front_event *event)
{
    (void)user;
    return event->piece[0] < 2 && event->piece[1] < 2;
}

/* Two drops merge around a third that is too small for the lattice, and vanishes: what it carried is booked as removed,
   what they carried is theirs. */
static void test_amounts_of_what_vanishes_stay_apart(void)
{
    front_shape s = { 3, 0, 0, NULL, NULL };
    fsi_front_desc d;
    fsi_front *f = NULL;
    double had = 0, momentum = 0, *area;
    int i;
    front_add_ball(&s, front_v3(-5.3, 0, 0), front_v3(5, 5, 5), 8, 1);
    front_add_ball(&s, front_v3(5.3, 0, 0), front_v3(5, 5, 5), 8, 1);
    front_add_ball(&s, front_v3(0, 0.4, 0.3), front_v3(0.15, 0.15, 0.15), 1, 1);
    d = front_desc(&s, 1);
    d.topology = 1;
    d.attribute_count = 2;
    d.ask = ask_of_large;
    if (!CHECK(fsi_front_create(&f, &d) == FSI_OK)) return;
    area = front_areas(f);
    for (i = 0; i < 3 * f->element_count; i++)
        if (f->piece_of[i / 3] == 2) f->attribute[2 * f->elements[i]] = 1;
    for (i = 0; i < f->vertex_count; i++) {
        const int tiny = f->attribute[2 * i] > 0;
        if (tiny) f->velocity[i] = front_v3(0, 0, 3);
        else f->attribute[2 * i + 1] = 1;
        had += tiny;
        momentum += tiny ? 3 * area[i] : 0;
    }
    CHECK(topology_step(f, 0, &tally));
    CHECK(f->piece_count == 1 && had > 3);
    CHECK_NEAR(f->stats.removed_amount[0], had, 1e-5 * had);
    CHECK_NEAR(f->stats.removed_amount[1], 0, 1e-9);
    CHECK_NEAR(f->stats.removed_momentum[2], momentum, 1e-5 * momentum);
    for (i = 0; i < f->vertex_count; i++) CHECK(f->attribute[2 * i] <= 0 && f->velocity[i].z <= 0);
    free(area);
    fsi_front_destroy(f);
    front_free(&s);
}

/* Caps of three heights on each wall, thrown at each other along it. */
static void test_drops_on_a_wall_merge(void)
{
    static const double center[] = { 0, 2, -1.5 };
    int k, i, t;
    for (k = 0; k < 20; k++) {
        const int up = k % 2 ? -1 : 1, dim = k < 8 ? 2 : 3, turn = k / 2 % dim, cap = k % 3;
        front_shape s = { dim, 0, 0, NULL, NULL };
        const double foot = sqrt(36 - center[cap] * center[cap]), wide = center[cap] > 0 ? 6 : foot,
            at[2] = { -wide - 1, wide + 1 };
        fsi_front *f = topology_sitting(&s, at, 2, 6, center[cap], up, turn);
        const fsi_vec3 along = topology_turn(dim, turn, front_v3(0.2, 0, 0));
        if (!f) return;
        for (i = 0; i < 12 && f->piece_count == 2; i++) {
            for (t = 0; t < f->dim * f->element_count; t++) {
                const int v = f->elements[t];
                f->velocity[v] = fsi_v3_scale(along, (fsi_real)(fsi_v3_dot(f->position[v], along) < 0 ? 1 : -1));
            }
            if (!CHECK(topology_step(f, 1, &tally))) break;
        }
        CHECK(f->piece_count == 1 && f->stats.merges == 1 && f->stats.failed_places == 0);
        for (i = 0; i < f->vertex_count; i++) f->velocity[i] = front_v3(0, 0, 0);
        for (i = 0, t = 0; i < 6; i++) {
            CHECK(topology_step(f, 1, &tally));
            t = f->stats.places + f->stats.failed_places;
        }
        CHECK(t == 0 && f->piece_count == 1 && topology_is_on_floor(f, up, turn) && topology_is_sound(f));
        fsi_front_destroy(f);
        front_free(&s);
    }
    check_tally();
}

/* The edge of a flat drop is no thin sheet: what is below it is the wall. */
static void test_flat_drop_on_a_wall_rests(void)
{
    int dim, i;
    for (dim = 2; dim <= 3; dim++) {
        front_shape s = { dim, 0, 0, NULL, NULL };
        const double at = 0;
        fsi_front *f = topology_sitting(&s, &at, 1, 12, -9.2, 1, 0); /* 40 degrees, 2.8 high */
        double volume;
        if (!f) return;
        volume = f->piece[0].volume;
        for (i = 0; i < 4; i++) {
            CHECK(topology_step(f, 0, &tally));
            CHECK(f->stats.places == 0 && f->stats.failed_places == 0);
        }
        CHECK(f->piece_count == 1 && topology_is_on_floor(f, 1, 0));
        CHECK_NEAR(f->piece[0].volume, volume, TOL(1e-12, 1e-5) * volume);
        fsi_front_destroy(f);
        front_free(&s);
    }
}

/* A ridge on each wall whose middle is drawn in, its line too, becomes two drops. */
static void test_bridge_on_a_wall_pinches_off(void)
{
    int turn, i, k;
    for (turn = 0; turn < 3; turn++) {
        const fsi_vec3 along = topology_turn(3, turn, front_v3(1, 0, 0)), across = topology_turn(3, turn,
            front_v3(0, 1, 0)), up = topology_turn(3, turn, front_v3(0, 0, 1));
        front_shape s = { 3, 0, 0, NULL, NULL };
        const double at = 0;
        fsi_front *f = topology_sitting(&s, &at, 1, 6, 0, 1, turn);
        int rest = 0, places = 0;
        if (!f) return;
        for (k = 0; k < 80 && rest < 6; k++) {
            for (i = 0; i < f->vertex_count; i++) {
                const double x = (double)fsi_v3_dot(f->position[i], along), n = exp(-x * x / 10),
                    y = (double)fsi_v3_dot(f->position[i], across), z = (double)fsi_v3_dot(f->position[i], up);
                f->velocity[i] = rest ? front_v3(0, 0, 0)
                    : topology_turn(3, turn, front_v3(0.06 * x, -0.2 * n * y, -0.12 * n * z));
            }
            if (!CHECK(topology_step(f, 1, &tally))) break;
            rest += f->piece_count == 2 || rest;
            places = f->stats.places + f->stats.failed_places;
        }
        CHECK(f->piece_count == 2 && places == 0 && topology_is_on_floor(f, 1, turn) && topology_is_sound(f));
        fsi_front_destroy(f);
        front_free(&s);
    }
    check_tally();
}

/* Vertices that are held are not resampled: the place is left. */
static void test_held_vertices_stay(void)
{
    front_shape s = { 3, 0, 0, NULL, NULL };
    fsi_front *f = make_pair(NULL, 3, 0.5, 0, &s);
    int i;
    if (!f) return;
    for (i = 0; i < f->vertex_count; i++)
        if (fabs((double)f->position[i].x) < 2 && (double)f->position[i].y > 1) f->flags[i] |= FSI_FRONT_FIXED;
    CHECK(fsi_front_step(f, 0) == FSI_OK);
    CHECK(f->piece_count == 2 && f->stats.failed_places == 1 && f->stats.places == 0);
    fsi_front_destroy(f);
    front_free(&s);
}

static void test_topology_is_the_same_for_any_number_of_threads(void)
{
    const int threads[] = { 1, 2, 3, 7 };
    uint64_t want = 0;
    int k, j;
    for (k = 0; k < 8; k++) {
        fsi_context c = fsi_default_context();
        front_shape s = { 3, 0, 0, NULL, NULL };
        fsi_front *f;
        test_threads(&c, threads[k & 3], k >= 4);
        f = make_pair(&c, 3, 0.5, 0, &s);
        for (j = 0; j < 2 && f; j++) CHECK(fsi_front_step(f, 0) == FSI_OK);
        if (k == 0) want = fsi_front_hash(f);
        CHECK(f && f->piece_count == 1 && fsi_front_hash(f) == want);
        fsi_front_destroy(f);
        test_threads(&c, 1, 0);
        front_free(&s);
        CHECK(c.bytes == 0);
    }
}

/* Numbers of pieces go on where a saved state had them. */
static void test_saved_front_merges_as_it_would(void)
{
    front_shape s = { 3, 0, 0, NULL, NULL };
    fsi_front *f = make_pair(NULL, 3, 0.5, 0, &s), *g;
    front_shape o = { 3, 0, 0, NULL, NULL };
    unsigned char *state;
    size_t size = 0;
    if (!f) return;
    g = make_pair(NULL, 3, 4, 0, &o);
    CHECK(fsi_front_save(f, NULL, 0, &size) == FSI_OK);
    state = (unsigned char *)malloc(size);
    CHECK(fsi_front_save(f, state, size, &size) == FSI_OK && fsi_front_load(g, state, size) == FSI_OK);
    CHECK(fsi_front_step(f, 0) == FSI_OK && fsi_front_step(g, 0) == FSI_OK);
    CHECK(g->piece_count == 1 && fsi_front_hash(g) == fsi_front_hash(f));
    free(state);
    fsi_front_destroy(f);
    fsi_front_destroy(g);
    front_free(&s);
    front_free(&o);
}

static void test_failing_memory_changes_nothing(void)
{
    int dim, k, failures = 0, done = 0;
    for (dim = 2; dim <= 3; dim++)
        for (k = 1, done = 0; k < 400 && !done; k++) {
            fsi_context c = fsi_default_context();
            front_shape s = { dim, 0, 0, NULL, NULL };
            fsi_front *f;
            uint64_t hash;
            test_fail_allocator(&c, 0);
            f = make_pair(&c, dim, 0.5, 0, &s);
            if (!f) return;
            hash = fsi_front_hash(f);
            test_fail_allocator(&c, k);
            if (fsi_front_step(f, 0) == FSI_OK) done = 1;
            else {
                failures++;
                CHECK(c.error.status == FSI_ERROR_MEMORY && fsi_front_hash(f) == hash && f->piece_count == 2);
            }
            test_fail_allocator(&c, 0);
            if (k % 16 == 0) CHECK(fsi_front_step(f, 0) == FSI_OK && f->piece_count == 1);
            fsi_front_destroy(f);
            front_free(&s);
            CHECK(c.bytes == 0 && test_live_bytes() == 0);
        }
    CHECK(done && failures > 60);
}

static void test_bad_input_is_refused_by_name(void)
{
    static const struct { const char *field; fsi_real dx; int topology; fsi_status status; } bad[] = {
        { "topology", 0, 2, FSI_ERROR_ARGUMENT }, { "topology", 0, -1, FSI_ERROR_ARGUMENT },
        { "topology_dx", (fsi_real)0.5, 1, FSI_ERROR_ARGUMENT },
        { "topology_dx", (fsi_real)3.5, 1, FSI_ERROR_ARGUMENT },
        { "topology_dx", -1, 1, FSI_ERROR_ARGUMENT }
    };
    front_shape s = { 3, 0, 0, NULL, NULL };
    int i;
    front_add_ball(&s, front_v3(0, 0, 0), front_v3(5, 5, 5), 6, 1);
    for (i = 0; i < (int)(sizeof bad / sizeof bad[0]); i++) {
        fsi_context c = fsi_default_context();
        fsi_front_desc d = front_desc(&s, 1);
        fsi_front *f;
        d.context = &c;
        d.topology = bad[i].topology;
        d.topology_dx = bad[i].dx;
        CHECK(fsi_front_create(&f, &d) == bad[i].status && !f && strstr(c.error.message, bad[i].field));

        /* the same between steps */
        d.topology = 1;
        d.topology_dx = 0;
        if (!CHECK(fsi_front_create(&f, &d) == FSI_OK)) continue;
        f->desc.topology = bad[i].topology;
        f->desc.topology_dx = bad[i].dx;
        CHECK(fsi_front_step(f, 0) == bad[i].status && strstr(c.error.message, bad[i].field));
        fsi_front_destroy(f);
        d.crossings = 0;
        CHECK(fsi_front_create(&f, &d) == FSI_ERROR_ARGUMENT && !f && strstr(c.error.message, "crossings"));
    }
    front_free(&s);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_random_pieces_merge_and_pinch);
    RUN(test_pieces_nearer_than_half_a_cell_merge);
    RUN(test_what_is_made_stays);
    RUN(test_thin_sheet_tears);
    RUN(test_torn_plates_come_to_rest);
    RUN(test_bubbles_rings_and_films);
    RUN(test_overlapping_drops_become_one);
    RUN(test_what_is_given_back_stays_before_walls);
    RUN(test_merge_keeps_momentum);
    RUN(test_what_cannot_be_given_back_is_owed);
    RUN(test_owner_is_asked);
    RUN(test_owner_is_asked_for_each_two_pieces);
    RUN(test_overlap_is_told_as_a_merge);
    RUN(test_amounts_of_what_vanishes_stay_apart);
    RUN(test_drops_on_a_wall_merge);
    RUN(test_bridge_on_a_wall_pinches_off);
    RUN(test_flat_drop_on_a_wall_rests);
    RUN(test_held_vertices_stay);
    RUN(test_topology_is_the_same_for_any_number_of_threads);
    RUN(test_saved_front_merges_as_it_would);
    RUN(test_failing_memory_changes_nothing);
    RUN(test_bad_input_is_refused_by_name);
    return TEST_END();
}
