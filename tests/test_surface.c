/* test_surface.c - surfaces from particles: closed, where they should be, the same for any number of threads; samples.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_surface.h"

#define MAX_POINTS 40000

static uint64_t seed = 5;
static fsi_vec3 points[MAX_POINTS];

static double uniform(void) { return 2 * test_random(&seed) - 1; } /* in [-1, 1) */
static fsi_vec3 vec(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }

/* ---- what a good surface is ----------------------------------------------------------------------------------- */

static int compare_edges(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Edges that do not belong to exactly two triangles, one in each direction (2D: vertices without one segment in and one
   out). An edge is keyed by its two vertices, lower first, and its direction in the last bit. */
static int open_edges(const fsi_surface *s)
{
    int c = s->corners, n = c == 3 ? 3 * s->element_count : 2 * s->element_count, bad = n & 1, i;
    uint64_t *e = (uint64_t *)malloc(((size_t)n + 1) * sizeof *e);
    for (i = 0; i < n; i++) {
        uint64_t a = (uint64_t)s->elements[i], b = (uint64_t)s->elements[i / c * c + (i + 1) % c];
        if (c == 3) e[i] = a < b ? (a << 31 | b) << 1 : (b << 31 | a) << 1 | 1;
        else e[i] = a << 1 | (uint64_t)(i & 1);
    }
    qsort(e, (size_t)n, sizeof *e, compare_edges);
    for (i = 0; i + 1 < n; i += 2) bad += e[i] + 1 != e[i + 1] || e[i] & 1 || (i + 2 < n && e[i + 2] >> 1 == e[i] >> 1);
    free(e);
    return bad;
}

static double volume(const fsi_surface *s) /* 2D: area; positive when elements face outward */
{
    double v = 0;
    int i;
    for (i = 0; i < s->element_count; i++) {
        const int *e = s->elements + i * s->corners;
        fsi_vec3 a = s->vertices[e[0]], b = s->vertices[e[1]];
        if (s->corners == 3) v += (double)fsi_v3_dot(a, fsi_v3_cross(b, s->vertices[e[2]])) / 6;
        else v += ((double)b.x * (double)a.y - (double)a.x * (double)b.y) / 2;
    }
    return v;
}

static uint64_t surface_hash(const fsi_surface *s)
{
    uint64_t h = fsi_hash(s->vertices, (size_t)s->vertex_count * sizeof *s->vertices, 1);
    h = fsi_hash(s->normals, (size_t)s->vertex_count * sizeof *s->normals, h);
    return fsi_hash(s->elements, (size_t)(s->element_count * s->corners) * sizeof *s->elements, h);
}

/* Closed, indices in range and all used, finite, unit normals, no collapsed element. */
static void check_sound(const fsi_surface *s)
{
    int i, bad = 0, n = s->corners * s->element_count;
    char *used = (char *)calloc((size_t)s->vertex_count + 1, 1);
    for (i = 0; i < n; i++) {
        if (s->elements[i] < 0 || s->elements[i] >= s->vertex_count ||
            s->elements[i] == s->elements[i / s->corners * s->corners + (i + 1) % s->corners])
            bad++;
        else used[s->elements[i]] = 1;
    }
    CHECK(bad == 0);
    for (i = 0; i < s->vertex_count; i++)
        bad += !used[i] || !fsi_v3_is_finite(s->vertices[i]) || !(fabs((double)fsi_v3_norm(s->normals[i]) - 1) <= 1e-5);
    CHECK(bad == 0);
    CHECK(open_edges(s) == 0);
    free(used);
}

static fsi_surface *make(fsi_context *context, double spacing, int dim)
{
    fsi_surface_desc d = fsi_surface_default_desc();
    fsi_surface *s = NULL;
    d.context = context;
    d.spacing = (fsi_real)spacing;
    d.dim = dim;
    CHECK(fsi_surface_create(&s, &d) == FSI_OK);
    return s;
}

/* ---- particles ------------------------------------------------------------------------------------------------ */

/* Lattice of spacing 1 with the given jitter (largest displacement along each axis), cut by a ball. */
static int lattice_ball(double radius, double jitter, int dim)
{
    int n = 0, r = (int)radius + 1, i, j, k;
    for (k = dim == 3 ? -r : 0; k < (dim == 3 ? r : 1); k++)
        for (j = -r; j < r; j++)
            for (i = -r; i < r; i++) {
                fsi_vec3 p = vec(i + 0.5, j + 0.5, dim == 3 ? k + 0.5 : 0);
                if (fsi_v3_norm(p) < (fsi_real)radius)
                    points[n++] =
                        fsi_v3_add(p, vec(jitter * uniform(), jitter * uniform(), dim == 3 ? jitter * uniform() : 0));
            }
    return n;
}

/* `count` random points that push each other, and their mirror images behind the wall, apart until they fill the
   ball. */
static void relaxed_ball(int count, double radius)
{
    const double reach = 1.6;
    fsi_neighbors *nb;
    int i, k, pass, all, *image = (int *)malloc(sizeof *image * MAX_POINTS);
    fsi_vec3 *push = (fsi_vec3 *)malloc(sizeof *push * (size_t)count);
    for (i = 0; i < count; i++) do
            points[i] = fsi_v3_scale(vec(uniform(), uniform(), uniform()), (fsi_real)radius);
        while (fsi_v3_norm(points[i]) >= (fsi_real)radius);
    fsi_neighbors_create(&nb, NULL);
    for (pass = 0; pass < 40; pass++) {
        for (all = count, i = 0; i < count; i++) {
            double r = (double)fsi_v3_norm(points[i]);
            if (2 * (radius - r) < 2 * reach) points[all++] = fsi_v3_scale(points[i], (fsi_real)((2 * radius - r) / r));
        }
        fsi_neighbors_build(nb, points, all, (fsi_real)reach, 3);
        for (i = 0; i < all; i++) {
            int a = nb->order[i];
            if (a >= count) continue;
            push[a] = vec(0, 0, 0);
            for (k = nb->first[i]; k < nb->first[i] + nb->size[i]; k++) {
                fsi_vec3 d = fsi_v3_sub(points[a], points[nb->order[nb->list[k]]]);
                double r = (double)fsi_v3_norm(d), q = 1 - r / reach;
                if (r > 0 && q > 0) push[a] = fsi_v3_madd(push[a], (fsi_real)(0.15 * q * q / r), d);
            }
        }
        for (i = 0; i < count; i++) {
            double r;
            points[i] = fsi_v3_add(points[i], push[i]);
            r = (double)fsi_v3_norm(points[i]);
            if (r > radius - 0.1) points[i] = fsi_v3_scale(points[i], (fsi_real)((radius - 0.1) / r));
        }
    }
    fsi_neighbors_destroy(nb);
    free(image);
    free(push);
}

/* ---- accuracy ------------------------------------------------------------------------------------------------- */

/* RMS distance of the vertices from the sphere (circle) and RMS angle of the normals [degrees]. */
static void check_round(const fsi_surface *s, double radius, double radius_tol, double degrees, double volume_tol)
{
    double e2 = 0, a2 = 0, full = s->dim == 3 ? 4 * FSI_PI / 3 * radius * radius * radius : FSI_PI * radius * radius;
    int i;
    for (i = 0; i < s->vertex_count; i++) {
        double r = (double)fsi_v3_norm(s->vertices[i]), c = (double)fsi_v3_dot(s->vertices[i], s->normals[i]) / r,
               a = acos(c < 1 ? c : 1);
        e2 += (r - radius) * (r - radius);
        a2 += a * a;
    }
    CHECK(s->vertex_count > 0);
    CHECK_NEAR(sqrt(e2 / s->vertex_count), 0, radius_tol);
    CHECK_NEAR(sqrt(a2 / s->vertex_count) * 180 / FSI_PI, 0, degrees);
    CHECK_NEAR(volume(s) / full, 1, volume_tol);
    check_sound(s);
}

/* of `count` particles of spacing 1 */
static double ball_radius(int count) { return pow(3 * count / (4 * FSI_PI), 1.0 / 3); }

static void test_sphere_of_5000_lattice_particles(void)
{
    const double jitter[] = { 0, 0.05, 0.1 };
    fsi_surface *s = make(NULL, 1, 3);
    int k;
    for (k = 0; k < 3; k++) {
        int n = lattice_ball(10.608, jitter[k], 3);
        CHECK(fsi_surface_update(s, points, n, NULL) == FSI_OK);
        check_round(s, ball_radius(n), 0.1, 5, 0.02);
    }
    fsi_surface_destroy(s);
}

static void test_sphere_of_5000_relaxed_particles(void)
{
    fsi_surface *s = make(NULL, 1, 3);
    relaxed_ball(5000, ball_radius(5000));
    CHECK(fsi_surface_update(s, points, 5000, NULL) == FSI_OK);
    check_round(s, ball_radius(5000), 0.1, 5, 0.02);
    fsi_surface_destroy(s);
}

static void test_disc_in_two_dimensions(void)
{
    fsi_surface *s = make(NULL, 1, 2);
    int n = lattice_ball(30, 0.05, 2), i;
    for (i = 0; i < n; i++) points[i].z = (fsi_real)test_nan(); /* not read */
    CHECK(fsi_surface_update(s, points, n, NULL) == FSI_OK);
    check_round(s, sqrt(n / FSI_PI), 0.13, 5, 0.01); /* one row of particles less to average than on a sphere */
    for (i = 0; i < s->vertex_count; i++) CHECK(s->vertices[i].z == 0);
    fsi_surface_destroy(s);
}

/* Top of a tank of 40 x 40 x 12 particles, away from its edges: RMS height about its mean, and the mean itself. */
static void test_flat_tank_has_no_ripple(void)
{
    const double jitter[] = { 0, 0.05, 0.1 };
    fsi_surface *s = make(NULL, 1, 3);
    int k, i, n, count;
    for (k = 0; k < 3; k++) {
        fsi_box3 box;
        double m = 0, e2 = 0;
        box.lo = vec(0, 0, 0);
        box.hi = vec(40, 40, 12);
        CHECK(fsi_sample_box(NULL, box, 1, 3, points, MAX_POINTS, &n) == FSI_OK && n == 19200);
        for (i = 0; i < n; i++)
            points[i] = fsi_v3_add(points[i], vec(jitter[k] * uniform(), jitter[k] * uniform(), jitter[k] * uniform()));
        CHECK(fsi_surface_update(s, points, n, NULL) == FSI_OK);
        for (count = i = 0; i < s->vertex_count; i++) {
            fsi_vec3 p = s->vertices[i];
            if (p.x < 5 || p.x > 35 || p.y < 5 || p.y > 35 || p.z < 6) continue;
            count++;
            m += (double)p.z - 12;
            e2 += ((double)p.z - 12) * ((double)p.z - 12);
        }
        CHECK(count > 1000);
        m /= count;
        CHECK_NEAR(m, 0.02, 0.03);
        CHECK_NEAR(sqrt(e2 / count - m * m), 0, 0.05);
        CHECK_NEAR(volume(s) / 19200, 1, 0.02);
        check_sound(s);
    }
    fsi_surface_destroy(s);
}

/* A drop of one particle is a ball (disc) of the volume the particle stands for, wherever it lies among the cells. */
static void test_lone_particles_are_small_balls(void)
{
    int dim, i, n = 0;
    for (dim = 2; dim <= 3; dim++) {
        fsi_surface *s = make(NULL, 0.01, dim);
        double v = 0;
        for (i = 0; i < 50; i++) {
            points[0] = vec(0.1 * uniform(), 0.1 * uniform(), dim == 3 ? 0.1 * uniform() : 0);
            CHECK(fsi_surface_update(s, points, 1, NULL) == FSI_OK);
            check_sound(s);
            v += volume(s) / pow(0.01, dim) / 50;
            for (n = 0; n < s->vertex_count; n++)
                CHECK_NEAR((double)fsi_v3_norm(fsi_v3_sub(s->vertices[n], points[0])) / 0.01, dim == 3 ? 0.67 : 0.61,
                           0.13);
        }
        CHECK_NEAR(v, 1, 0.05);
        fsi_surface_destroy(s);
    }
}

static void test_drops_three_spacings_apart_are_not_joined(void)
{
    fsi_surface *s = make(NULL, 1, 3);
    points[0] = vec(0.1, 0.2, 0.3);
    points[1] = vec(3.1, 0.2, 0.3);
    CHECK(fsi_surface_update(s, points, 2, NULL) == FSI_OK);
    CHECK(s->vertex_count - 3 * s->element_count / 2 + s->element_count == 4); /* Euler: two spheres */
    fsi_surface_destroy(s);
}

/* ---- robustness ----------------------------------------------------------------------------------------------- */

/* Clouds from single drops to solid, with every support and cell size: all cases of the table, all closed. */
static void test_any_cloud_gives_a_closed_surface(void)
{
    const double supports[] = { 1.5, 2, 3, 6 }, cells[] = { 0.2, 0.5, 0.7, 3 };
    int a, b, k, i, dim;
    for (dim = 2; dim <= 3; dim++)
        for (a = 0; a < 4; a++)
            for (b = 0; b < 4; b++) {
                fsi_surface_desc d = fsi_surface_default_desc();
                fsi_surface *s = NULL;
                d.dim = dim;
                d.spacing = 1;
                d.support = (fsi_real)supports[a];
                d.cell = (fsi_real)cells[b];
                CHECK(fsi_surface_create(&s, &d) == FSI_OK);
                for (k = 0; k < 4; k++) {
                    double size = 2.5 * pow(2, k);
                    for (i = 0; i < 300; i++) points[i] = vec(size * uniform(), size * uniform(), size * uniform());
                    for (i = 300; i < 310; i++) points[i] = points[7]; /* coincident ones */
                    CHECK(fsi_surface_update(s, points, 310, NULL) == FSI_OK);
                    check_sound(s);
                    CHECK(volume(s) > 0);
                }
                fsi_surface_destroy(s);
            }
}

static void test_nothing_gives_nothing(void)
{
    fsi_surface *s = make(NULL, 1, 3);
    CHECK(fsi_surface_update(s, NULL, 0, NULL) == FSI_OK);
    CHECK(s->vertex_count == 0 && s->element_count == 0 && s->block_count == 0);
    fsi_surface_update(s, points, lattice_ball(4, 0, 3), NULL);
    CHECK(s->vertex_count > 0);
    CHECK(fsi_surface_update(s, points, 0, NULL) == FSI_OK && s->vertex_count == 0 && s->element_count == 0);
    fsi_surface_destroy(s);
    fsi_surface_destroy(NULL);
}

static void test_far_outlier_costs_nothing(void)
{
    fsi_context c = fsi_default_context();
    fsi_surface *s = make(&c, 1, 3);
    int n = lattice_ball(8, 0, 3), blocks;
    size_t bytes;
    fsi_surface_update(s, points, n, NULL);
    blocks = s->block_count;
    bytes = c.bytes;
    points[n] = vec(1e9, -2e8, 3e7);
    CHECK(fsi_surface_update(s, points, n + 1, NULL) == FSI_OK);
    CHECK(s->block_count <= blocks + 27 && c.bytes <= bytes + bytes / 2);
    check_sound(s);
    fsi_surface_destroy(s);
    CHECK(c.bytes == 0);
}

/* The inside of the liquid is not visited: blocks grow with the surface. */
static void test_cost_follows_the_surface(void)
{
    fsi_surface *s = make(NULL, 1, 3);
    int small, large;
    fsi_surface_update(s, points, lattice_ball(10, 0, 3), NULL);
    small = s->block_count;
    fsi_surface_update(s, points, lattice_ball(20, 0, 3), NULL);
    large = s->block_count;
    CHECK((double)large / small < 4.5); /* area 4, volume 8 */
    fsi_surface_destroy(s);
}

static void test_surface_is_the_same_for_any_number_of_threads(void)
{
    const int threads[] = { 1, 2, 3, 7 };
    uint64_t want = 0;
    int k, n = lattice_ball(9, 0.2, 3);
    for (k = 0; k < 8; k++) {
        fsi_context c = fsi_default_context();
        fsi_surface *s;
        test_threads(&c, threads[k & 3], k >= 4);
        s = make(&c, 1, 3);
        CHECK(fsi_surface_update(s, points, n, NULL) == FSI_OK);
        if (k == 0) want = surface_hash(s);
        CHECK(surface_hash(s) == want);
        CHECK(fsi_surface_update(s, points, n / 2, NULL) == FSI_OK && fsi_surface_update(s, points, n, NULL) == FSI_OK);
        CHECK(surface_hash(s) == want); /* nor does the past matter */
        fsi_surface_destroy(s);
        test_threads(&c, 1, 0);
    }
}

static void test_attributes_are_carried_to_the_vertices(void)
{
    static fsi_real a[2 * MAX_POINTS];
    fsi_surface_desc d = fsi_surface_default_desc();
    fsi_surface *s = NULL;
    int i, n = lattice_ball(8, 0.05, 3);
    d.spacing = 1;
    d.attribute_count = 2;
    for (i = 0; i < n; i++) {
        a[2 * i] = 7;
        a[2 * i + 1] = points[i].x;
    }
    CHECK(fsi_surface_create(&s, &d) == FSI_OK);
    CHECK(fsi_surface_update(s, points, n, a) == FSI_OK);
    for (i = 0; i < s->vertex_count; i++) {
        CHECK_NEAR(s->attributes[2 * i], 7, 1e-5);
        /* of the mean, r further in */
        CHECK_NEAR(s->attributes[2 * i + 1], s->vertices[i].x - (fsi_real)0.77 * s->normals[i].x, 0.3);
    }
    CHECK(fsi_surface_update(s, points, n, NULL) == FSI_ERROR_ARGUMENT);
    fsi_surface_destroy(s);
}

static void test_steady_updates_allocate_nothing(void)
{
    fsi_context c = fsi_default_context();
    fsi_surface *s = make(&c, 1, 3);
    int n = lattice_ball(8, 0.1, 3);
    long long allocs;
    fsi_surface_update(s, points, n, NULL);
    allocs = c.allocs;
    CHECK(fsi_surface_update(s, points, n, NULL) == FSI_OK && fsi_surface_update(s, points, n / 2, NULL) == FSI_OK);
    CHECK(c.allocs == allocs);
    fsi_surface_destroy(s);
}

/* Every allocation fails in turn, in create and in an update that must grow everything: the former surface stays. */
static void test_failing_memory_leaves_the_former_surface(void)
{
    int small = lattice_ball(3, 0, 3), n = lattice_ball(12, 0, 3), k, failures = 0;
    for (k = 1; k < 100; k++) {
        fsi_context c = fsi_default_context();
        fsi_surface *s;
        fsi_surface_desc d = fsi_surface_default_desc();
        fsi_status status;
        uint64_t hash;
        d.context = &c;
        d.spacing = 1;
        test_fail_allocator(&c, k == 1 ? 1 : 0);
        if (k == 1) {
            CHECK(fsi_surface_create(&s, &d) == FSI_ERROR_MEMORY && s == NULL && c.bytes == 0);
            continue;
        }
        CHECK(fsi_surface_create(&s, &d) == FSI_OK && fsi_surface_update(s, points, small, NULL) == FSI_OK);
        hash = surface_hash(s);
        test_fail_allocator(&c, k - 1);
        status = fsi_surface_update(s, points, n, NULL);
        if (status != FSI_OK) {
            failures++;
            CHECK(status == FSI_ERROR_MEMORY && c.error.status == FSI_ERROR_MEMORY && surface_hash(s) == hash);
            test_fail_allocator(&c, 0);
            CHECK(fsi_surface_update(s, points, n, NULL) == FSI_OK);
        }
        check_sound(s);
        fsi_surface_destroy(s);
        CHECK(c.bytes == 0 && test_live_bytes() == 0);
        if (status == FSI_OK) break;
    }
    CHECK(k < 100 && failures >= 7);
}

static void test_bad_input_is_refused_by_name(void)
{
    fsi_context c = fsi_default_context();
    fsi_surface_desc good = fsi_surface_default_desc(), d;
    fsi_surface *s = NULL;
    uint64_t hash;
    int n = lattice_ball(4, 0, 3);
    good.context = &c;
    good.spacing = 1;
#define REFUSED(change, want, word)                          \
    d = good;                                                \
    change;                                                  \
    CHECK(fsi_surface_create(&s, &d) == want && s == NULL);  \
    CHECK(c.error.status == want && strstr(c.error.message, word))
    REFUSED(d.spacing = 0, FSI_ERROR_ARGUMENT, "spacing");
    REFUSED(d.spacing = (fsi_real)test_nan(), FSI_ERROR_NAN, "spacing");
    REFUSED(d.dim = 4, FSI_ERROR_ARGUMENT, "dim");
    REFUSED(d.support = 1, FSI_ERROR_ARGUMENT, "support");
    REFUSED(d.cell = -1, FSI_ERROR_ARGUMENT, "cell");
    REFUSED(d.attribute_count = -1, FSI_ERROR_ARGUMENT, "attribute_count");
#undef REFUSED
    d = good;
    d.cookie = 0;
    CHECK(fsi_surface_create(&s, &d) == FSI_ERROR_COOKIE && fsi_surface_create(NULL, &good) == FSI_ERROR_ARGUMENT &&
          fsi_surface_create(&s, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_surface_create(&s, &good) == FSI_OK && fsi_surface_update(s, points, n, NULL) == FSI_OK);
    hash = surface_hash(s);
    points[17].y = (fsi_real)test_nan();
    CHECK(fsi_surface_update(s, points, n, NULL) == FSI_ERROR_NAN && c.error.element == 17 && surface_hash(s) == hash);
    points[17].y = (fsi_real)1e30;
    CHECK(fsi_surface_update(s, points, n, NULL) == FSI_ERROR_LIMIT && c.error.element == 17 &&
          surface_hash(s) == hash);
    CHECK(fsi_surface_update(s, NULL, 3, NULL) == FSI_ERROR_ARGUMENT &&
          fsi_surface_update(s, points, -1, NULL) == FSI_ERROR_ARGUMENT &&
          fsi_surface_update(NULL, points, 1, NULL) == FSI_ERROR_ARGUMENT);
    s->cookie ^= 1;
    CHECK(fsi_surface_update(s, points, 1, NULL) == FSI_ERROR_COOKIE);
    s->cookie ^= 1;
    CHECK(surface_hash(s) == hash);
    fsi_surface_destroy(s);
}

/* ---- samples -------------------------------------------------------------------------------------------------- */

static void test_box_samples(void)
{
    fsi_context c = fsi_default_context();
    fsi_box3 box;
    int n = -1;
    box.lo = vec(1, 2, 3);
    box.hi = vec(1.3, 2.2, 3.1);
    CHECK(fsi_sample_box(&c, box, (fsi_real)0.1, 3, NULL, 0, &n) == FSI_OK && n == 6);
    CHECK(fsi_sample_box(&c, box, (fsi_real)0.1, 3, points, 2, &n) == FSI_OK && n == 6);
    CHECK_NEAR(points[1].x, 1.15, 1e-6);
    CHECK_NEAR(points[1].z, 3.05, 1e-6);
    CHECK(fsi_sample_box(&c, box, (fsi_real)0.1, 2, points, 6, &n) == FSI_OK && n == 6 && points[5].z == 0);
    CHECK(fsi_sample_box(&c, box, 1, 3, points, 6, &n) == FSI_OK && n == 0);
    CHECK(fsi_sample_box(&c, box, (fsi_real)1e-6, 3, points, 6, &n) == FSI_ERROR_LIMIT);
    CHECK(fsi_sample_box(&c, box, 0, 3, points, 6, &n) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sample_box(&c, box, 1, 4, points, 6, &n) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sample_box(&c, box, 1, 3, NULL, 6, &n) == FSI_ERROR_ARGUMENT &&
          fsi_sample_box(&c, box, 1, 3, points, 6, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sample_box(&c, box, (fsi_real)test_nan(), 3, points, 6, &n) == FSI_ERROR_NAN);
    CHECK(fsi_sample_box(&c, fsi_box3_empty(), 1, 3, points, 6, &n) == FSI_ERROR_ARGUMENT);
    box.hi.x = (fsi_real)test_inf();
    CHECK(fsi_sample_box(&c, box, 1, 3, points, 6, &n) == FSI_ERROR_NAN && n == 0);
}

/* The surface of a ball is a closed mesh like any other: fill it again, every sample well inside, none missing. */
static void test_mesh_samples(void)
{
    fsi_surface *s = make(NULL, 1, 3);
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh = NULL;
    int n = lattice_ball(8, 0, 3), all, i, found = 0;
    CHECK(fsi_surface_update(s, points, n, NULL) == FSI_OK);
    d.vertices = s->vertices;
    d.vertex_count = s->vertex_count;
    d.elements = s->elements;
    d.element_count = s->element_count;
    if (!CHECK(fsi_mesh_create(&mesh, &d) == FSI_OK)) return;
    CHECK(fsi_sample_mesh(mesh, (fsi_real)0.8, points, MAX_POINTS, &n) == FSI_OK);
    for (i = 0; i < n; i++) CHECK(fsi_mesh_signed_distance(mesh, points[i]) <= (fsi_real)-0.399);
    CHECK_NEAR(n * 0.512, 4 * FSI_PI / 3 * 7.6 * 7.6 * 7.6, 50);
    CHECK(fsi_sample_box(NULL, mesh->box, (fsi_real)0.8, 3, points, MAX_POINTS, &all) == FSI_OK);
    for (i = 0; i < all; i++) found += fsi_mesh_signed_distance(mesh, points[i]) <= (fsi_real)-0.4;
    CHECK(found == n);
    CHECK(fsi_sample_mesh(NULL, 1, NULL, 0, &n) == FSI_ERROR_ARGUMENT &&
          fsi_sample_mesh(mesh, -1, NULL, 0, &n) == FSI_ERROR_ARGUMENT);
    fsi_mesh_destroy(mesh);
    fsi_surface_destroy(s);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_sphere_of_5000_lattice_particles);
    RUN(test_sphere_of_5000_relaxed_particles);
    RUN(test_disc_in_two_dimensions);
    RUN(test_flat_tank_has_no_ripple);
    RUN(test_lone_particles_are_small_balls);
    RUN(test_drops_three_spacings_apart_are_not_joined);
    RUN(test_any_cloud_gives_a_closed_surface);
    RUN(test_nothing_gives_nothing);
    RUN(test_far_outlier_costs_nothing);
    RUN(test_cost_follows_the_surface);
    RUN(test_surface_is_the_same_for_any_number_of_threads);
    RUN(test_attributes_are_carried_to_the_vertices);
    RUN(test_steady_updates_allocate_nothing);
    RUN(test_failing_memory_leaves_the_former_surface);
    RUN(test_bad_input_is_refused_by_name);
    RUN(test_box_samples);
    RUN(test_mesh_samples);
    return TEST_END();
}
