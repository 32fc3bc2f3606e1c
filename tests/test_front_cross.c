/* test_front_cross.c - elements that cross or touch: every small case against separating axes, and whole surfaces.
   SPDX-License-Identifier: MIT */
#include "kit/test_fronts.h"
#include "../fsi_front_cross.h"

static uint64_t seed = 3;
static int64_t pick(int n) { return (int64_t)(test_random(&seed) * n); }

typedef struct axis { int64_t x, y, z; } axis;
static axis cross(axis a, axis b)
{
    axis c;
    c.x = a.y * b.z - a.z * b.y;
    c.y = a.z * b.x - a.x * b.z;
    c.z = a.x * b.y - a.y * b.x;
    return c;
}
static axis edge(const fsi__fr_int3 *p, int i, int n)
{
    axis e;
    e.x = p[(i + 1) % n].x - p[i].x;
    e.y = p[(i + 1) % n].y - p[i].y;
    e.z = p[(i + 1) % n].z - p[i].z;
    return e;
}
static int separates(axis d, const fsi__fr_int3 *a, int n, const fsi__fr_int3 *b, int m)
{
    int64_t lo[2] = { INT64_MAX, INT64_MAX }, hi[2] = { INT64_MIN, INT64_MIN };
    int i;
    for (i = 0; i < n + m; i++) {
        const fsi__fr_int3 p = i < n ? a[i] : b[i - n];
        const int64_t s = d.x * p.x + d.y * p.y + d.z * p.z;
        const int k = i >= n;
        lo[k] = s < lo[k] ? s : lo[k];
        hi[k] = s > hi[k] ? s : hi[k];
    }
    return hi[0] < lo[1] || hi[1] < lo[0];
}

/* Closed convex sets of 2 or 3 points: apart where one of these axes separates them. The last ones are for sets in a
   common plane, and on a common line. */
static int apart(const fsi__fr_int3 *a, int n, const fsi__fr_int3 *b, int m)
{
    axis normal[2], e[6];
    int i, j, count = 0, found = 0;
    for (i = 0; i < n; i++) e[count++] = edge(a, i, n);
    for (i = 0; i < m; i++) e[count++] = edge(b, i, m);
    normal[0] = cross(e[0], e[1]);
    normal[1] = cross(e[n], e[n + 1]);
    for (i = 0; i < 2; i++) found |= separates(normal[i], a, n, b, m);
    for (i = 0; i < count; i++) {
        found |= separates(e[i], a, n, b, m);
        for (j = 0; j < count; j++) found |= separates(cross(e[i], e[j]), a, n, b, m);
        for (j = 0; j < 2; j++) found |= separates(cross(e[i], normal[j]), a, n, b, m);
    }
    normal[0].x = normal[0].y = 0;
    normal[0].z = 1;
    for (i = 0; i < count && n == 2; i++) found |= separates(cross(e[i], normal[0]), a, n, b, m); /* parallel ones */
    for (i = 0; i < count; i++) /* segments in a plane: normal to an edge and to the plane of two */
        for (j = 0; j < count; j++) found |= separates(cross(e[i], cross(e[i], e[j])), a, n, b, m);
    return found;
}

static fsi__fr_int3 scaled(fsi__fr_int3 p, int64_t by)
{
    p.x *= by;
    p.y *= by;
    p.z *= by;
    return p;
}

/* Triangles on a lattice of 4 x 4 x 4 (2D: segments on 5 x 5) points, where most are degenerate in some way; the same
   ones blown up to what integers hold. */
static void test_elements_meet_where_no_axis_separates_them(void)
{
    int trial, i, wrong = 0, met = 0, k;
    for (trial = 0; trial < (TEST_WATCHED ? 20000 : 200000); trial++) {
        const int shared = trial % 3 == 2;
        fsi__fr_element a, b, c, d;
        int want = 0, is, big;
        k = trial & 1 ? 3 : 2;
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        for (i = 0; i < k; i++) {
            a.p[i].x = pick(k == 3 ? 4 : 5);
            a.p[i].y = pick(k == 3 ? 4 : 5);
            a.p[i].z = k == 3 ? pick(4) : 0;
            b.p[i].x = pick(k == 3 ? 4 : 5);
            b.p[i].y = pick(k == 3 ? 4 : 5);
            b.p[i].z = k == 3 ? pick(4) : 0;
            a.id[i] = i;
            b.id[i] = 3 + i;
        }
        if (k == 3) { /* triangles have an area, others are refused before */
            const axis n = cross(edge(a.p, 0, 3), edge(a.p, 1, 3)), o = cross(edge(b.p, 0, 3), edge(b.p, 1, 3));
            if ((n.x == 0 && n.y == 0 && n.z == 0) || (o.x == 0 && o.y == 0 && o.z == 0)) continue;
        }
        if (shared) {
            b.p[0] = a.p[1];
            b.id[0] = 1;
        }
        if (k == 2 && (shared || (a.p[0].x == a.p[1].x && a.p[0].y == a.p[1].y))) continue;
        if (!shared) want = !apart(a.p, k, b.p, k);
        if (shared) {
            fsi__fr_int3 far_a[2], far_b[2];
            const axis o = cross(edge(b.p, 0, 3), edge(b.p, 1, 3));
            if (o.x == 0 && o.y == 0 && o.z == 0) continue;
            far_a[0] = a.p[2];
            far_a[1] = a.p[0];
            far_b[0] = b.p[1];
            far_b[1] = b.p[2];
            want = !apart(far_a, 2, b.p, 3) || !apart(far_b, 2, a.p, 3);
        }
        is = fsi__fr_meet(k, &a, &b);
        c = a;
        d = b;
        for (i = 0; i < k; i++) {
            c.p[i] = scaled(a.p[i], (int64_t)1 << 26);
            d.p[i] = scaled(b.p[i], (int64_t)1 << 26);
        }
        big = fsi__fr_meet(k, &c, &d);
        wrong += is != want || big != want || fsi__fr_meet(k, &b, &a) != want;
        met += want;
    }
    CHECK(wrong == 0 && met > 10000 / (TEST_WATCHED ? 10 : 1));
}

static fsi__fr_int3 at(int64_t x, int64_t y, int64_t z)
{
    fsi__fr_int3 p;
    p.x = x;
    p.y = y;
    p.z = z;
    return p;
}

/* Determinants of 90 bits whose sign is decided by their last one. */
static void test_last_bit_decides(void)
{
    const int64_t n = ((int64_t)1 << 28) - 1;
    fsi__fr_element a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    a.p[0] = at(0, 0, 0);
    a.p[1] = at(n, 1, 0);
    a.p[2] = at(1, n, 1);
    b.p[0] = at(n - 3, n - 5, n);
    b.p[1] = at(1, 1, 1);
    b.p[2] = at(n - 7, n - 9, n);
    a.id[1] = 1; a.id[2] = 2;
    b.id[0] = 3; b.id[1] = 4; b.id[2] = 5;
    CHECK(fsi__fr_meet(3, &a, &b) == 0); /* all above the plane of a */
    b.p[1] = at(n, 1, 0);
    CHECK(fsi__fr_meet(3, &a, &b) == 1); /* touches a corner */
    b.p[1] = at(n - 1, 1, 0);            /* beside that corner: the same answer either way */
    CHECK(fsi__fr_meet(3, &a, &b) == fsi__fr_meet(3, &b, &a));
    b.p[1] = at((int64_t)1 << 40, 0, 0);
    CHECK(fsi__fr_meet(3, &a, &b) == 1); /* too far to tell */
}

static void test_neighbours_meet_where_they_are_folded(void)
{
    fsi__fr_element a, b;
    memset(&a, 0, sizeof a);
    a.p[0] = at(0, 0, 0);
    a.p[1] = at(9, 0, 0);
    a.p[2] = at(3, 7, 0);
    a.id[1] = 1; a.id[2] = 2;
    b = a;
    b.id[2] = 3;
    b.p[2] = at(4, -5, 0);
    CHECK(fsi__fr_meet(3, &a, &b) == 0);
    b.p[2] = at(4, 5, 0);
    CHECK(fsi__fr_meet(3, &a, &b) == 1);
    b.p[2] = at(4, 5, 1);
    CHECK(fsi__fr_meet(3, &a, &b) == 0);
    b.p[2] = at(4, 0, 0);
    CHECK(fsi__fr_meet(3, &a, &b) == 1 && fsi__fr_meet(3, &b, &a) == 1); /* without an area, it lies on both */
    b.id[2] = 2;
    CHECK(fsi__fr_meet(3, &a, &b) == 1); /* the same element twice */
    b.id[0] = 7;
    b.id[1] = 1;
    b.id[2] = 8;
    b.p[0] = at(2, 0, 0);
    b.p[2] = at(20, 0, 0);
    CHECK(fsi__fr_meet(2, &a, &b) == 1); /* segments that turn back on each other */
    b.p[0] = at(12, 1, 0);
    CHECK(fsi__fr_meet(2, &a, &b) == 0);
}

/* Two balls: apart, touching, crossing; and one that a step would push into the other. */
static void test_crossing_surfaces_are_refused(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 3; k++) {
            const double gap[3] = { 0.01, 0, -0.01 };
            fsi_context c = fsi_default_context();
            front_shape s = { dim, 0, 0, NULL, NULL };
            fsi_front_desc d;
            fsi_front *f;
            uint64_t hash;
            int i, n;
            if (dim == 3) {
                front_add_ball(&s, front_v3(0, 0, 0), front_v3(0.5, 0.5, 0.5), 8, 1);
                front_add_ball(&s, front_v3(1 + gap[k], 0, 0), front_v3(0.5, 0.5, 0.5), 8, 1);
            } else {
                front_add_circle(&s, front_v3(0, 0, 0), 0.5, 40, 1);
                front_add_circle(&s, front_v3(1 + gap[k], 0, 0), 0.5, 40, 1);
            }
            d = front_desc(&s, 0.08);
            d.context = &c;
            d.keep_volume = 0; /* the shift could part them again */
            if (k > 0) {
                CHECK(fsi_front_create(&f, &d) == FSI_ERROR_MESH && f == NULL);
                CHECK(strstr(c.error.message, "crosses or touches itself") != NULL);
                d.crossings = 0;
                if (dim == 3) CHECK(fsi_front_create(&f, &d) == FSI_OK); /* 2D: its first vertex lies in the other */
                fsi_front_destroy(f);
                front_free(&s);
                continue;
            }
            CHECK(fsi_front_create(&f, &d) == FSI_OK);
            n = s.vertices / 2;
            for (i = 0; i < n; i++) f->velocity[i].x = (fsi_real)0.1;
            hash = fsi_front_hash(f);
            CHECK(fsi_front_step(f, (fsi_real)0.12) == FSI_ERROR_MESH && fsi_front_hash(f) == hash);
            CHECK(fsi_front_step(f, (fsi_real)0.05) == FSI_OK); /* half of the gap */
            front_check_sound(f);
            fsi_front_destroy(f);
            front_free(&s);
        }
}

/* A small ball at a face of an octahedron (2D: a square) whose edges are 60 times as long: it crosses it where its
   centre is nearer than its radius. What remains goes through a step. */
static void test_small_elements_cross_large_ones(void)
{
    int dim, k, met = 0;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 40; k++) {
            front_shape s = { dim, 0, 0, NULL, NULL };
            const double r = 0.25, off = (k % 2 ? 0.7 : 1.1 + 2 * test_random(&seed)) * r * (k % 4 < 2 ? 1 : -1);
            double w[3], n = 1 / sqrt(dim), at[3];
            fsi_front *f = NULL;
            fsi_front_desc d;
            int a;
            w[0] = 0.2 + 0.3 * test_random(&seed);
            w[1] = dim == 3 ? 0.2 + 0.2 * test_random(&seed) : 1 - w[0];
            w[2] = dim == 3 ? 1 - w[0] - w[1] : 0;
            for (a = 0; a < 3; a++) at[a] = (10 * w[a] + off * n * (a < dim)) * (k >> (a + 2) & 1 && a < dim ? -1 : 1);
            if (dim == 3) {
                front_add_ball(&s, front_v3(0, 0, 0), front_v3(10, 10, 10), 1, 1);
                front_add_ball(&s, front_v3(at[0], at[1], at[2]), front_v3(r, r, r), 3, off < 0 ? -1 : 1);
            } else {
                front_add_circle(&s, front_v3(0, 0, 0), 10, 4, 1);
                front_add_circle(&s, front_v3(at[0], at[1], 0), r, 16, off < 0 ? -1 : 1);
            }
            d = front_desc(&s, 0.2);
            d.rounds = 3;
            d.piece_min = 0;
            CHECK(fsi_front_create(&f, &d) == (k % 2 ? FSI_ERROR_MESH : FSI_OK));
            met += !f;
            if (f) CHECK(fsi_front_step(f, 0) == FSI_OK && f->piece_count == 2);
            fsi_front_destroy(f);
            front_free(&s);
        }
    CHECK(met == 40);
}

/* Two sheets a tenth of an edge apart, which remeshing must not entangle: the thin wall between a ball and a cavity.
   Where the shift that gives volume back would close the gap, the step goes on without it. */
static void test_remeshing_keeps_thin_walls_apart(void)
{
    int keep, k, i, without = 0;
    for (keep = 0; keep < 2; keep++) {
        front_shape s = { 3, 0, 0, NULL, NULL };
        fsi_front_desc d;
        fsi_front *f;
        double booked = 0;
        front_add_ball(&s, front_v3(0, 0, 0), front_v3(0.5, 0.5, 0.5), 16, 1);
        front_add_ball(&s, front_v3(0, 0, 0), front_v3(0.4984, 0.4984, 0.4984), 16, -1);
        d = front_desc(&s, 0.12); /* twice as coarse as it is given */
        d.keep_volume = keep;
        CHECK(fsi_front_create(&f, &d) == FSI_OK);
        for (k = 0; k < 6 && f; k++) {
            for (i = 0; i < f->vertex_count; i++)
                f->velocity[i] = front_v3((double)f->position[i].x * 0.6, -(double)f->position[i].y * 0.1, 0);
            CHECK(fsi_front_step(f, (fsi_real)0.1) == FSI_OK);
            CHECK(f->stats.not_kept == 0 || keep == 1);
            without += f->stats.not_kept;
            booked += fabs(f->piece[0].moved);
        }
        CHECK(f->stats.crossed > 0 && f->piece_count == 2 && booked > 0);
        CHECK(f->context->error.status == FSI_OK); /* no failure is told of steps that succeed */
        front_check_sound(f);
        fsi_front_destroy(f);
        front_free(&s);
    }
    CHECK(without >= TOL(1, 0)); /* in float it goes another way */
}

/* A flat ball that is wound twice around its axis, the two layers big apart and crossing: all triangles near a pole
   look one way, and only around the pole they turn twice. */
static void add_wound_ball(front_shape *s, double flat, double big)
{
    enum { TURN = 16, RINGS = 24 };
    const int first = s->vertices, last = first + TURN * RINGS + 1;
    int i, j;
    front_room(s, TURN * RINGS + 2, 2 * TURN * RINGS);
    s->vertices += TURN * RINGS + 2;
    s->x[first] = front_v3(0, 0, flat);
    s->x[last] = front_v3(0, 0, -flat);
    for (i = 0; i <= RINGS; i++)
        for (j = 0; j < TURN; j++) {
            const double r = sin(FSI_PI * (i + 1) / (RINGS + 1)), a = 2 * FSI_PI * j / TURN;
            const int p = first + 1 + i * TURN + j, q = first + 1 + i * TURN + (j + 1) % TURN;
            int *c = s->corner + 3 * s->elements;
            if (i < RINGS) s->x[p] = front_v3(r * cos(2 * a), r * sin(2 * a),
                flat * cos(FSI_PI * (i + 1) / (RINGS + 1)) + big * r * cos(a));
            c[0] = i == 0 ? first : p - TURN;
            c[1] = i == RINGS ? last : p;
            c[2] = i == 0 ? q : q - TURN;
            s->elements++;
            if (i == 0 || i == RINGS) continue;
            c[3] = q - TURN;
            c[4] = p;
            c[5] = q;
            s->elements++;
        }
}

/* By chance across itself or not. */
static void bend(front_shape *s, double big)
{
    double turn[6];
    int i;
    for (i = 0; i < 6; i++) turn[i] = 6 * test_random(&seed);
    for (i = 0; i < s->vertices; i++) {
        const double x = (double)s->x[i].x, y = (double)s->x[i].y, z = (double)s->x[i].z;
        s->x[i] = front_v3(x + big * sin(5 * y + turn[0]) + big * sin(9 * z + turn[1]),
            y + big * sin(6 * x + turn[2]) + big * sin(8 * z + turn[3]),
            s->dim == 3 ? z + big * sin(5 * x + turn[4]) + big * sin(7 * y + turn[5]) : 0);
    }
}

/* A mesh as a step works on it. */
static void take(fsi__fr_mesh *m, fsi_context *c, const front_shape *s, double length)
{
    int *scratch = (int *)malloc((size_t)(s->vertices + 3 * s->elements) * sizeof *scratch), how;
    memset(m, 0, sizeof *m);
    m->context = c;
    m->k = s->dim;
    m->length = length;
    CHECK(fsi__fr_reserve(m, s->vertices, s->elements, "test") == FSI_OK);
    m->nv = s->vertices;
    m->nt = s->elements;
    memcpy(m->x, s->x, (size_t)m->nv * sizeof *m->x);
    memcpy(m->corner, s->corner, (size_t)(m->k * m->nt) * sizeof *m->corner);
    CHECK(fsi__fr_connect(m->k, m->nv, m->nt, m->corner, m->twin, m->star, scratch, scratch + m->nv, &how) == -1);
    free(scratch);
}

static int is_apart(int64_t a, int64_t b, int64_t c, int64_t p, int64_t q, int64_t r)
{
    return (a < p && a < q && a < r && b < p && b < q && b < r && c < p && c < q && c < r)
        || (a > p && a > q && a > r && b > p && b > q && b > r && c > p && c > q && c > r);
}

/* The first pair in the order of elements, by all pairs; -1: none. */
static int first_pair(const fsi__fr_mesh *m, int *other)
{
    fsi__fr_element *e = (fsi__fr_element *)malloc((size_t)m->nt * sizeof *e);
    int a, b, i, found = -1;
    for (a = 0; a < m->nt; a++)
        for (i = 0; i < 3; i++) {
            e[a].id[i] = m->corner[m->k * a + (i < m->k ? i : 0)];
            e[a].p[i] = fsi__fr_snap(m->x[e[a].id[i]], m->length);
        }
    for (a = 0; a < m->nt && found < 0; a++)
        for (b = a + 1; b < m->nt && found < 0; b++) {
            const fsi__fr_int3 *p = e[a].p, *q = e[b].p;
            if (is_apart(p[0].x, p[1].x, p[2].x, q[0].x, q[1].x, q[2].x)
                || is_apart(p[0].y, p[1].y, p[2].y, q[0].y, q[1].y, q[2].y)
                || is_apart(p[0].z, p[1].z, p[2].z, q[0].z, q[1].z, q[2].z)
                || !fsi__fr_meet(m->k, &e[a], &e[b])) continue;
            *other = b;
            found = a;
        }
    if (found < 0) *other = -1;
    free(e);
    return found;
}

static void test_search_finds_what_all_pairs_find(void)
{
    int k, crossed = 0, clear = 0, turned = 0;
    for (k = 0; k < 48; k++) {
        front_shape s = { k % 4 ? 3 : 2, 0, 0, NULL, NULL };
        const double big = 0.17 * test_random(&seed);
        fsi_context c = fsi_default_context();
        fsi__fr_mesh m;
        int t, u, v, w;
        if (k % 4 == 0) front_add_circle(&s, front_v3(0, 0, 0), 0.8, 600, 1);
        else if (k % 4 == 3) front_add_torus(&s, 0.7, 0.25, 60, 24);
        else if (k % 4 == 2) front_add_ball(&s, front_v3(0, 0, 0), front_v3(0.8, 0.8, 0.8), 16, 1);
        else add_wound_ball(&s, 0.2 + 0.8 * test_random(&seed), 0.004 + 0.03 * test_random(&seed));
        if (k % 4 != 1) bend(&s, big);
        take(&m, &c, &s, k % 4 == 0 ? 0.01 : k % 4 == 1 ? 0.1 : 0.06);
        CHECK(fsi__fr_find_crossing(&m, &t, &u, "test") == FSI_OK);
        v = first_pair(&m, &w);
        CHECK(t == v && u == w);
        crossed += v >= 0;
        clear += v < 0;
        turned += k % 4 == 1 && v >= 0;
        fsi__fr_free(&m);
        front_free(&s);
    }
    CHECK(crossed > 10 && clear > 10 && turned == 12);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_elements_meet_where_no_axis_separates_them);
    RUN(test_last_bit_decides);
    RUN(test_neighbours_meet_where_they_are_folded);
    RUN(test_crossing_surfaces_are_refused);
    RUN(test_search_finds_what_all_pairs_find);
    RUN(test_small_elements_cross_large_ones);
    RUN(test_remeshing_keeps_thin_walls_apart);
    return TEST_END();
}
