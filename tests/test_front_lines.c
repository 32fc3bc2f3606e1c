/* test_front_lines.c - lines through cell centres: parity against an exact winding number, places, weights, bad input.
   SPDX-License-Identifier: MIT */
#include "kit/test_fronts.h"
#include "kit/test_winding.h"

static uint64_t seed = 11;
static double random_in(double lo, double hi) { return lo + (hi - lo) * test_random(&seed); }

/* Centres that differ from the winding number, and neighbours that differ from the parity of crossings between them. */
static long count_wrong(const fsi_front_lines *l, const fsi_front *f, long *points)
{
    const int nx = l->n[0], ny = l->n[1], nz = l->n[2];
    winding w = winding_of(f, l->origin, (double)l->dx);
    long wrong = 0;
    int i, j, k, axis;
    for (k = 0; k < nz; k++)
        for (j = 0; j < ny; j++)
            for (i = 0; i < nx; i++) {
                const int step[3] = { 1, nx, nx * ny }, at = i + nx * (j + ny * k), here[3] = { i, j, k };
                const int turns = winding_number(&w, i, j, k);
                wrong += l->inside[at] != (turns & 1);
                ++*points;
                for (axis = 0; axis < l->dim; axis++) {
                    const fsi_front_crossing *c = fsi_front_first_crossing(l, axis, i, j, k);
                    if (here[axis] + 1 < l->n[axis])
                        wrong += (c ? c->count & 1 : 0) != (l->inside[at] ^ l->inside[at + step[axis]]);
                    else wrong += c != NULL;
                }
            }
    winding_free(&w);
    return wrong;
}

/* Rows in order, inside of their elements; the point that the weights make is the point of the line. */
static void check_rows(const fsi_front_lines *l, const fsi_front *f)
{
    const double unit = (double)l->dx / 1048576 * TOL(1, 64);
    double worst = 0, sum_off = 0;
    int axis, line, r, i, bad = 0;
    for (axis = 0; axis < l->dim; axis++) {
        const int u = axis == 0 ? 1 : 0, v = axis == 2 ? 1 : 2;
        for (line = 0; line < l->n[u] * l->n[v]; line++)
            for (r = l->begin[axis][line]; r < l->begin[axis][line + 1]; r++) {
                const fsi_front_crossing *c = &l->crossing[r], *next = c + 1;
                double x[3] = { 0, 0, 0 }, want[3];
                const int last = r + 1 == l->begin[axis][line + 1], inner = c->cell >= 0 && c->cell < l->n[axis] - 1;
                bad += !last && (next->cell < c->cell || (next->cell == c->cell && next->theta < c->theta));
                bad += c->count != (!last && next->cell == c->cell ? next->count + 1 : 1);
                bad += c->cell < -1 || c->cell >= l->n[axis] || (inner && !(c->theta >= 0 && c->theta <= 1));
                for (i = 0; i < f->dim; i++) {
                    const fsi_vec3 p = f->position[f->elements[f->dim * c->element + i]];
                    bad += !(c->weight[i] >= 0);
                    x[0] += (double)c->weight[i] * ((double)p.x - (double)l->origin.x);
                    x[1] += (double)c->weight[i] * ((double)p.y - (double)l->origin.y);
                    x[2] += (double)c->weight[i] * ((double)p.z - (double)l->origin.z);
                }
                want[axis] = (c->cell + 0.5 + (double)c->theta) * (double)l->dx;
                want[u] = (line % l->n[u] + 0.5) * (double)l->dx;
                want[v] = l->dim == 3 ? (line / l->n[u] + 0.5) * (double)l->dx : x[2];
                for (i = 0; i < 3; i++) worst = fabs(x[i] - want[i]) > worst ? fabs(x[i] - want[i]) : worst;
                sum_off += fabs((double)c->weight[0] + (double)c->weight[1] + (double)c->weight[2] - 1);
            }
    }
    CHECK(bad == 0);
    CHECK_NEAR(worst, 0, unit);
    CHECK_NEAR(sum_off, 0, TOL(1e-15, 1e-6) * (1 + l->crossing_count));
}

static fsi_front_lines *make_lines(fsi_context *context, int dim, int n, fsi_vec3 origin, double dx)
{
    fsi_front_lines_desc d = fsi_front_default_lines_desc();
    fsi_front_lines *l = NULL;
    d.context = context;
    d.dim = dim;
    d.n[0] = n;
    d.n[1] = n + 3;
    d.n[2] = dim == 3 ? n - 2 : 1;
    d.origin = origin;
    d.dx = (fsi_real)dx;
    CHECK(fsi_front_create_lines(&l, &d) == FSI_OK);
    return l;
}

/* Surfaces in random places, with vertices anywhere, or (lattice > 0) on multiples of dx/lattice: on centres, lines
   through edges and along faces. */
static long cross_random(int dim, int lattice, int n, long *points)
{
    front_shape s = { dim, 0, 0, NULL, NULL };
    const double dx = lattice ? 0.5 : 0.43;
    fsi_front_lines *l;
    fsi_front_desc d;
    fsi_front *f = NULL;
    long wrong;
    int i;
    if (dim == 3) {
        front_add_torus(&s, 3.5, 1.2, 19, 11);
        front_add_ball(&s, front_v3(0, 0, 0), front_v3(1.8, 1.9, 3), 7, 1);
        front_add_ball(&s, front_v3(0, 0.1, 0), front_v3(1, 0.9, 1.5), 4, -1);
    } else {
        front_add_circle(&s, front_v3(0, 0, 0), 5, 41, 1);
        front_add_circle(&s, front_v3(0.5, 0, 0), 2, 17, -1);
    }
    d = front_desc(&s, 0.5);
    d.crossings = 0; /* the parity is that of the winding number also where they cross */
    CHECK(fsi_front_create(&f, &d) == FSI_OK);
    for (i = 0; i < f->vertex_count; i++) {
        fsi_vec3 *x = &f->position[i];
        *x = fsi_v3_add(*x, front_v3(random_in(-0.3, 0.3), random_in(-0.3, 0.3), dim == 3 ? random_in(-0.3, 0.3) : 0));
        if (!lattice) continue;
        x->x = (fsi_real)(floor((double)x->x / dx * lattice + 0.5) * dx / lattice);
        x->y = (fsi_real)(floor((double)x->y / dx * lattice + 0.5) * dx / lattice);
        x->z = (fsi_real)(floor((double)x->z / dx * lattice + 0.5) * dx / lattice);
    }
    l = make_lines(NULL, dim, n, front_v3(-0.5 * n * dx, -0.5 * n * dx, dim == 3 ? -0.5 * n * dx : 0), dx);
    CHECK(fsi_front_cross_lines(l, f) == FSI_OK && l->crossing_count > 100);
    wrong = count_wrong(l, f, points);
    check_rows(l, f);
    fsi_front_destroy_lines(l);
    fsi_front_destroy(f);
    front_free(&s);
    return wrong;
}

static void test_parity_is_that_of_the_winding_number(void)
{
    long points = 0, wrong = 0;
    int k;
    for (k = 0; k < (TEST_WATCHED ? 1 : 4); k++) {
        wrong += cross_random(3, 0, 24, &points);
        wrong += cross_random(3, 2, 22, &points); /* half of the coordinates are those of centres */
        wrong += cross_random(3, 1 + 5 * (k & 1), 20, &points);
        wrong += cross_random(2, 0, 60, &points);
        wrong += cross_random(2, 2, 60, &points);
    }
    CHECK(wrong == 0 && points > (TEST_WATCHED ? 20000 : 100000));
}

static fsi_front *make_front(const front_shape *s, double length)
{
    fsi_front_desc d = front_desc(s, length);
    fsi_front *f = NULL;
    CHECK(fsi_front_create(&f, &d) == FSI_OK);
    return f;
}

/* A box whose faces, edges and diagonals lie on centres: the centres of its low faces are inside, those of its high
   faces are not. */
static void test_faces_on_centres_count_on_one_side(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const int corner[36] = { 0,2,1, 1,2,3, 4,5,6, 5,7,6, 0,1,4, 1,5,4, 2,6,3, 3,6,7, 0,4,2, 2,4,6, 1,3,5, 3,7,5 };
        const int around[8] = { 0, 2, 2, 3, 3, 1, 1, 0 };
        front_shape s = { dim, 0, 0, NULL, NULL };
        fsi_front_lines *l = make_lines(NULL, dim, 12, front_v3(0, 0, 0), 0.25);
        fsi_front *f;
        long points = 0;
        int i, j, k, wrong = 0;
        front_room(&s, 8, 12);
        s.vertices = dim == 3 ? 8 : 4;
        s.elements = dim == 3 ? 12 : 4;
        for (i = 0; i < s.vertices; i++)
            s.x[i] = front_v3(0.25 * (i & 1 ? 9.5 : 2.5), 0.25 * (i & 2 ? 8.5 : 1.5),
                dim == 3 ? 0.25 * (i & 4 ? 7.5 : 3.5) : 0);
        memcpy(s.corner, dim == 3 ? corner : around, (size_t)(dim * s.elements) * sizeof *corner);
        f = make_front(&s, 1);
        CHECK(fsi_front_cross_lines(l, f) == FSI_OK && count_wrong(l, f, &points) == 0);
        check_rows(l, f);
        for (k = 0; k < l->n[2]; k++)
            for (j = 0; j < l->n[1]; j++)
                for (i = 0; i < l->n[0]; i++) {
                    const int in = i >= 2 && i < 9 && j >= 1 && j < 8 && (dim == 2 || (k >= 3 && k < 7));
                    wrong += l->inside[i + l->n[0] * (j + l->n[1] * k)] != in;
                }
        CHECK(wrong == 0);
        fsi_front_destroy(f);
        fsi_front_destroy_lines(l);
        front_free(&s);
    }
}

/* An octahedron (2D: a square on its tip) with all vertices on centres: lines through edges and tips, places on centres
   whose weights are not exact, as of 1/49. */
static void test_lines_through_edges_and_vertices_count_once(void)
{
    int dim, big, i, j, k;
    for (dim = 2; dim <= 3; dim++)
        for (big = 0; big < 2; big++) {
            front_shape s = { dim, 0, 0, NULL, NULL };
            fsi_front_lines *l = make_lines(NULL, dim, 16, front_v3(0, 0, 0), 1);
            const int radius = big ? 49 : 5, at = !big ? 8 : dim == 3 ? -8 : -16;
            const double c = at + 0.5;
            fsi_front *f;
            long points = 0;
            int wrong = 0;
            if (dim == 3) front_add_ball(&s, front_v3(c, c, c), front_v3(radius, radius, radius), 1, 1);
            else front_add_circle(&s, front_v3(c, c, 0), radius, 4, 1);
            for (i = 0; i < s.vertices; i++)
                s.x[i] = front_v3(floor((double)s.x[i].x) + 0.5, floor((double)s.x[i].y) + 0.5,
                    dim == 3 ? floor((double)s.x[i].z) + 0.5 : 0);
            f = make_front(&s, radius);
            CHECK(fsi_front_cross_lines(l, f) == FSI_OK && count_wrong(l, f, &points) == 0);
            check_rows(l, f);
            for (k = 0; k < l->n[2]; k++)
                for (j = 0; j < l->n[1]; j++)
                    for (i = 0; i < l->n[0]; i++) { /* what is clearly inside or outside */
                        const int away = abs(i - at) + abs(j - at) + (dim == 3 ? abs(k - at) : 0);
                        const int in = l->inside[i + l->n[0] * (j + l->n[1] * k)];
                        wrong += away != radius && in != (away < radius);
                        points += away == radius;
                    }
            CHECK(wrong == 0 && points > 0);
            fsi_front_destroy(f);
            fsi_front_destroy_lines(l);
            front_free(&s);
        }
}

/* Chords of a circle with N segments are R(1 - cos(pi/N)) inside at most; triangles likewise. */
static void test_places_on_a_ball_are_those_of_theory(void)
{
    int dim, axis, line, r;
    for (dim = 2; dim <= 3; dim++) {
        front_shape s = { dim, 0, 0, NULL, NULL };
        fsi_front_lines *l = make_lines(NULL, dim, 22, front_v3(-1.1, -1.2, dim == 3 ? -1 : 0), 0.1);
        fsi_front *f;
        int count = 0;
        if (dim == 3) front_add_ball(&s, front_v3(0, 0, 0), front_v3(1, 1, 1), 60, 1);
        else front_add_circle(&s, front_v3(0, 0, 0), 1, 400, 1);
        f = make_front(&s, dim == 3 ? 0.03 : 0.015);
        CHECK(fsi_front_cross_lines(l, f) == FSI_OK);
        for (axis = 0; axis < dim; axis++) {
            const int u = axis == 0 ? 1 : 0, v = axis == 2 ? 1 : 2;
            for (line = 0; line < l->n[u] * l->n[v]; line++)
                for (r = l->begin[axis][line]; r < l->begin[axis][line + 1]; r++) {
                    const fsi_front_crossing *c = &l->crossing[r];
                    const double pu = (double)fsi__axis(l->origin, u) + (line % l->n[u] + 0.5) * 0.1,
                        pv = dim == 3 ? (double)fsi__axis(l->origin, v) + (line / l->n[u] + 0.5) * 0.1 : 0,
                        at = (double)fsi__axis(l->origin, axis) + (c->cell + 0.5 + (double)c->theta) * 0.1;
                    CHECK_NEAR(sqrt(at * at + pu * pu + pv * pv), 1, dim == 3 ? 5e-4 : 4e-5);
                    count++;
                }
        }
        CHECK(count == l->crossing_count && count > (dim == 3 ? 1500 : 60)); /* 2 axes of pi R^2/dx^2 lines, twice */
        fsi_front_destroy(f);
        fsi_front_destroy_lines(l);
        front_free(&s);
    }
}

/* Elements from 2^-20 to 1000 cells. Weights, places, parity as ever. */
static void test_elements_of_any_size_are_exact(void)
{
    const double size[4] = { 900, 100, 0.01, 4e-6 };
    int k;
    for (k = 0; k < 4; k++) {
        front_shape s = { 3, 0, 0, NULL, NULL };
        fsi_front_lines *l = make_lines(NULL, 3, 20, front_v3(-9.5 + 1e-6 * k, -9.5, -7.5), 1);
        fsi_front *f;
        long points = 0;
        int i;
        front_add_ball(&s, front_v3(0, 0, 0), front_v3(size[k] / 2, size[k] / 2.1, size[k] / 2.2), 2, 1);
        f = make_front(&s, size[k] / 2);
        if (k == 0) for (i = 0; i < f->vertex_count; i++) f->position[i].x += (fsi_real)448.3;
        CHECK(fsi_front_cross_lines(l, f) == FSI_OK && count_wrong(l, f, &points) == 0);
        if (TOL(1, 0)) check_rows(l, f);
        fsi_front_destroy(f);
        fsi_front_destroy_lines(l);
        front_free(&s);
    }
}

/* The vortex of Bell, Colella and Glaz 1989, that turns back. */
static void vortex(double x, double y, double t, double *u, double *v)
{
    const double sx = sin(FSI_PI * x), sy = sin(FSI_PI * y), back = cos(FSI_PI * t / 2);
    *u = -2 * sx * sx * sy * cos(FSI_PI * y) * back;
    *v = 2 * sx * cos(FSI_PI * x) * sy * sy * back;
}

/* A disc of 10 cells is wound up and back in 2 s: area and shape, at 4 x 4 points a cell. */
static void test_disc_comes_back_from_a_vortex(void)
{
    enum { CELLS = 32, STEPS = 200 };
    front_shape s = { 2, 0, 0, NULL, NULL };
    fsi_front_lines *l = make_lines(NULL, 2, 4 * CELLS, front_v3(0, 0, 0), 0.25 / CELLS);
    const int n = l->n[0] * l->n[1];
    unsigned char *before = (unsigned char *)calloc((size_t)n, 1);
    fsi_front *f;
    double area;
    int k, i, differ = 0;
    front_add_circle(&s, front_v3(0.5, 0.75, 0), 0.15, 64, 1);
    f = make_front(&s, 0.5 / CELLS);
    area = f->stats.volume;
    CHECK(fsi_front_cross_lines(l, f) == FSI_OK);
    memcpy(before, l->inside, (size_t)n);
    for (k = 0; k < STEPS; k++) {
        const double dt = 2.0 / STEPS;
        for (i = 0; i < f->vertex_count; i++) {
            const double x = (double)f->position[i].x, y = (double)f->position[i].y;
            double u, v;
            vortex(x, y, k * dt, &u, &v);
            vortex(x + dt / 2 * u, y + dt / 2 * v, (k + 0.5) * dt, &u, &v);
            f->velocity[i] = front_v3(u, v, 0);
        }
        CHECK(fsi_front_step(f, (fsi_real)dt) == FSI_OK);
    }
    CHECK(fsi_front_cross_lines(l, f) == FSI_OK);
    for (i = 0; i < n; i++) differ += before[i] != l->inside[i];
    CHECK_NEAR(f->stats.volume / area, 1, 1e-3);
    CHECK(differ / 16.0 / (2 * FSI_PI * 0.15 * CELLS) <= 0.01); /* cells */
    free(before);
    fsi_front_destroy(f);
    fsi_front_destroy_lines(l);
    front_free(&s);
}

static uint64_t hash_of(const fsi_front_lines *l)
{
    const unsigned char *p = l->inside;
    uint64_t h = 1469598103934665603u;
    size_t i, n = (size_t)l->n[0] * (size_t)l->n[1] * (size_t)l->n[2];
    int r, a;
    for (i = 0; i < n; i++) h = (h ^ p[i]) * 1099511628211u;
    for (r = 0; r < l->crossing_count; r++) {
        const fsi_front_crossing *c = &l->crossing[r];
        double x[4];
        for (a = 0; a < 4; a++) x[a] = a < 3 ? (double)c->weight[a] : (double)c->theta;
        h = (h ^ (uint64_t)c->cell ^ (uint64_t)c->element << 20 ^ (uint64_t)c->count << 50) * 1099511628211u;
        for (i = 0; i < sizeof x; i++) h = (h ^ ((unsigned char *)x)[i]) * 1099511628211u;
    }
    return h;
}

static void test_crossings_are_the_same_for_any_number_of_threads(void)
{
    front_shape s = { 3, 0, 0, NULL, NULL };
    fsi_front *f;
    uint64_t first = 0;
    int k;
    front_add_ball(&s, front_v3(0, 0, 0), front_v3(1, 1, 1), 40, 1);
    f = make_front(&s, 0.05);
    for (k = 0; k < 3; k++) {
        fsi_context c = fsi_default_context();
        fsi_front_lines *l;
        test_threads(&c, k == 0 ? 1 : k == 1 ? 2 : 5, k);
        l = make_lines(&c, 3, 40, front_v3(-1.3, -1.2, -1.1), 0.06);
        CHECK(fsi_front_cross_lines(l, f) == FSI_OK);
        if (k == 0) first = hash_of(l);
        CHECK(hash_of(l) == first);
        fsi_front_destroy_lines(l);
    }
    fsi_front_destroy(f);
    front_free(&s);
}

static void test_steady_calls_allocate_nothing(void)
{
    front_shape s = { 3, 0, 0, NULL, NULL };
    fsi_context c = fsi_default_context();
    fsi_front_lines *l = make_lines(&c, 3, 20, front_v3(-1.3, -1.2, -1.1), 0.12);
    fsi_front *f;
    long long allocs;
    int k;
    front_add_ball(&s, front_v3(0, 0, 0), front_v3(1, 1, 1), 10, 1);
    f = make_front(&s, 0.2);
    CHECK(fsi_front_cross_lines(l, f) == FSI_OK);
    allocs = c.allocs;
    for (k = 0; k < 10; k++) {
        l->origin.x += (fsi_real)0.003;
        CHECK(fsi_front_cross_lines(l, f) == FSI_OK);
    }
    CHECK(c.allocs == allocs);
    fsi_front_destroy(f);
    fsi_front_destroy_lines(l);
    CHECK(c.bytes == 0);
    front_free(&s);
}

static void test_failing_memory_changes_nothing(void)
{
    front_shape s = { 3, 0, 0, NULL, NULL }, t = { 3, 0, 0, NULL, NULL };
    fsi_front *f, *g;
    int k;
    front_add_ball(&s, front_v3(0, 0, 0), front_v3(0.5, 0.5, 0.5), 3, 1);
    front_add_ball(&t, front_v3(0, 0, 0), front_v3(1, 1, 1), 12, 1);
    f = make_front(&s, 0.2);
    g = make_front(&t, 0.2);
    for (k = 1; k < 30; k++) {
        fsi_front_lines_desc d = fsi_front_default_lines_desc();
        fsi_front_lines *l = NULL;
        fsi_context c = fsi_default_context();
        uint64_t hash;
        fsi_status status;
        test_fail_allocator(&c, k);
        d.context = &c;
        d.n[0] = d.n[1] = d.n[2] = 20;
        d.dx = (fsi_real)0.11;
        d.origin = front_v3(-1.1, -1.1, -1.1);
        status = fsi_front_create_lines(&l, &d);
        if (status == FSI_OK) status = fsi_front_cross_lines(l, f);
        if (status == FSI_OK) {
            hash = hash_of(l);
            status = fsi_front_cross_lines(l, g);
            CHECK(status == FSI_OK || hash_of(l) == hash);
        }
        CHECK(status == FSI_OK || (status == FSI_ERROR_MEMORY && c.error.status == FSI_ERROR_MEMORY));
        fsi_front_destroy_lines(l);
        CHECK(test_live_bytes() == 0);
        if (status == FSI_OK) break;
    }
    CHECK(k > 8 && k < 30);
    fsi_front_destroy(f);
    fsi_front_destroy(g);
    front_free(&s);
    front_free(&t);
}

static void test_bad_input_is_refused_by_name(void)
{
    front_shape s = { 3, 0, 0, NULL, NULL }, flat = { 2, 0, 0, NULL, NULL };
    fsi_context c = fsi_default_context();
    fsi_front_lines_desc d = fsi_front_default_lines_desc();
    fsi_front_lines *l = make_lines(&c, 3, 12, front_v3(-1.3, -1.2, -1.1), 0.2), *none = l;
    fsi_front *f, *g;
    uint64_t hash;
    front_add_ball(&s, front_v3(0, 0, 0), front_v3(1, 1, 1), 5, 1);
    front_add_circle(&flat, front_v3(0, 0, 0), 1, 20, 1);
    f = make_front(&s, 0.3);
    g = make_front(&flat, 0.3);
    CHECK(fsi_front_cross_lines(l, f) == FSI_OK);
    hash = hash_of(l);

    /* Calls. */
    CHECK(fsi_front_cross_lines(NULL, f) == FSI_ERROR_ARGUMENT && fsi_front_cross_lines(l, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_front_cross_lines(l, g) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "dim 2") != NULL);
    f->position[7].y = (fsi_real)test_nan();
    CHECK(fsi_front_cross_lines(l, f) == FSI_ERROR_NAN && strstr(c.error.message, "vertex 7 ") != NULL);
    f->position[7].y = (fsi_real)1e12;
    CHECK(fsi_front_cross_lines(l, f) == FSI_ERROR_LIMIT && strstr(c.error.message, "vertex 7 ") != NULL);
    f->position[7].y = 250;
    CHECK(fsi_front_cross_lines(l, f) == FSI_ERROR_LIMIT && strstr(c.error.message, "wider than 1024") != NULL);
    CHECK(hash_of(l) == hash && fsi_front_lines_error(l) == &c.error);
    CHECK(fsi_front_first_crossing(l, 3, 0, 0, 0) == NULL && fsi_front_first_crossing(l, 0, 11, 0, 0) == NULL
        && fsi_front_first_crossing(NULL, 0, 0, 0, 0) == NULL && fsi_front_first_crossing(l, 0, 0, -1, 0) == NULL);

    /* Descs. */
    d.context = &c;
    CHECK(fsi_front_create_lines(&none, &d) == FSI_ERROR_ARGUMENT && none == NULL);
    CHECK(strstr(c.error.message, "desc.dx") != NULL);
    d.dx = 1;
    d.n[1] = 0;
    CHECK(fsi_front_create_lines(&none, &d) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "desc.n[1]") != NULL);
    d.n[0] = d.n[1] = d.n[2] = 2000;
    CHECK(fsi_front_create_lines(&none, &d) == FSI_ERROR_LIMIT && strstr(c.error.message, "cells") != NULL);
    d.n[0] = 1 << 21;
    CHECK(fsi_front_create_lines(&none, &d) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "desc.n[0]") != NULL);
    d.n[0] = d.n[1] = 1;
    d.dim = 2;
    CHECK(fsi_front_create_lines(&none, &d) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "desc.n[2]") != NULL);
    d.n[2] = 1;
    d.origin.x = (fsi_real)test_inf();
    CHECK(fsi_front_create_lines(&none, &d) == FSI_ERROR_NAN && strstr(c.error.message, "desc.origin") != NULL);
    d.cookie++;
    CHECK(fsi_front_create_lines(&none, &d) == FSI_ERROR_COOKIE);
    CHECK(fsi_front_create_lines(NULL, &d) == FSI_ERROR_ARGUMENT);
    fsi_front_destroy_lines(NULL);
    fsi_front_destroy_lines(l);
    fsi_front_destroy(f);
    fsi_front_destroy(g);
    front_free(&s);
    front_free(&flat);
}

static void test_nothing_is_inside_of_no_surface(void)
{
    front_shape none = { 3, 0, 0, NULL, NULL };
    fsi_front_lines *l = make_lines(NULL, 3, 7, front_v3(0, 0, 0), 1);
    fsi_front *f = make_front(&none, 1);
    int i, sum = 0;
    CHECK(fsi_front_cross_lines(l, f) == FSI_OK && l->crossing_count == 0);
    for (i = 0; i < l->n[0] * l->n[1] * l->n[2]; i++) sum += l->inside[i];
    CHECK(sum == 0 && fsi_front_first_crossing(l, 2, 3, 3, 3) == NULL);
    fsi_front_destroy(f);
    fsi_front_destroy_lines(l);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_parity_is_that_of_the_winding_number);
    RUN(test_faces_on_centres_count_on_one_side);
    RUN(test_lines_through_edges_and_vertices_count_once);
    RUN(test_places_on_a_ball_are_those_of_theory);
    RUN(test_elements_of_any_size_are_exact);
    RUN(test_disc_comes_back_from_a_vortex);
    RUN(test_crossings_are_the_same_for_any_number_of_threads);
    RUN(test_nothing_is_inside_of_no_surface);
    RUN(test_steady_calls_allocate_nothing);
    RUN(test_failing_memory_changes_nothing);
    RUN(test_bad_input_is_refused_by_name);
    return TEST_END();
}
