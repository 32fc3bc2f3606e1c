/* test_membrane_wetting.c - contact angles at bodies: drops on a plate, cylinders that float, what is refused.
   SPDX-License-Identifier: MIT */
#include "kit/test_menisci.h"

#define DEGREES (FSI_PI / 180)

/* A world with one body, in cells: a plate of half the size a (z: and a) times `thick`, or a ball of radius a. */
static fsi_rigid *world_of(int dim, fsi_rigid_kind kind, fsi_rigid_shape shape, double density, fsi_vec3 at, double g)
{
    fsi_rigid_desc d = fsi_rigid_default_desc();
    fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
    fsi_rigid *w = NULL;
    int id = -1;
    d.dim = dim;
    d.gravity = dim == 3 ? front_v3(0, 0, -g) : front_v3(0, -g, 0);
    shape.density = (fsi_real)density;
    b.kind = kind;
    b.shapes = &shape;
    b.shape_count = 1;
    b.pose.position = fsi_v3_scale(at, (fsi_real)MEMBRANE_DX);
    CHECK(fsi_rigid_create(&w, &d) == FSI_OK && fsi_rigid_add_body(w, &b, &id) == FSI_OK && id == 0);
    return w;
}

/* A drop that lies on a plate whose top is at `top` cells. */
typedef struct sessile {
    fsi_context context;
    front_shape shape;
    fsi_rigid *world;
    fsi_membrane *liquid;
    fsi_real angle;
    double top;
} sessile;

static void sessile_begin(sessile *s, int dim, int n, double radius, double from, double to)
{
    const double half = n / 2.0 - 0.6;
    fsi_membrane_desc d;
    int i;
    memset(s, 0, sizeof *s);
    s->context = fsi_default_context();
    s->shape.dim = dim;
    s->angle = (fsi_real)to;
    s->top = 3.3;
    s->world = world_of(dim, FSI_RIGID_STATIC, fsi_rigid_box(fsi_v3_scale(dim == 3 ? front_v3(half, half, 1.5)
        : front_v3(half, 1.5, half), (fsi_real)MEMBRANE_DX)), 1000, dim == 3 ? front_v3(n / 2.0, n / 2.0, 1.8)
        : front_v3(n / 2.0, 1.8, 0), 0);
    membrane_add_cap(&s->shape, n / 2 + 0.2, n / 2 + 0.1, radius, from * DEGREES);
    for (i = 0; i < s->shape.vertices; i++) { /* what lies on it is 1e-5 cells within it, and so comes to lie on it */
        fsi_real *up = dim == 3 ? &s->shape.x[i].z : &s->shape.x[i].y;
        *up += (fsi_real)((s->top - ((double)*up > 1e-9 ? 0 : 1e-5)) * MEMBRANE_DX);
    }
    d = membrane_desc(&s->context, &s->shape, n);
    d.n[dim - 1] = (int)(s->top + 2.6 * radius);
    d.world = s->world;
    d.body_angle = &s->angle;
    s->liquid = membrane_make(&d);
}

static void sessile_end(sessile *s)
{
    fsi_membrane_destroy(s->liquid);
    fsi_rigid_destroy(s->world);
    front_free(&s->shape);
}

/* Half the width of what lies on the plate, and the height of the drop [cells]: without gravity it is part of a circle
   or ball, whose angle is twice that of height over half the width. */
static double sessile_angle(const sessile *s)
{
    const fsi_front *f = s->liquid->front;
    double lo = 1e9, hi = -1e9, high = 0;
    int i;
    for (i = 0; i < f->vertex_count; i++) {
        const double x = (double)f->position[i].x / MEMBRANE_DX;
        high = fmax(high, (double)fsi__axis(f->position[i], f->dim - 1) / MEMBRANE_DX - s->top);
        if (!(f->flags[i] & (uint32_t)FSI_FRONT_FIXED)) continue;
        lo = fmin(lo, x);
        hi = fmax(hi, x);
    }
    return 2 * atan(2 * high / (hi - lo)) / DEGREES;
}

/* From either side; energy comes in from nowhere, and the plate has no net force: there is no gravity. */
static void comes_to_its_angle(int dim, double radius, double from, double to, int steps)
{
    sessile s;
    double volume, energy, push = 0;
    int k;
    sessile_begin(&s, dim, (int)((dim == 3 ? 4 : 6) * radius), radius, from, to);
    volume = s.liquid->stats.volume;
    membrane_step(s.liquid, 0);
    energy = s.liquid->stats.surface_energy;
    for (k = 0; k < steps && membrane_step(s.liquid, 4e-3); k++)
        if (4 * k >= 3 * steps) push += 4 * s.liquid->stats.body_impulse[dim - 1] / (steps * 4e-3);
    CHECK_NEAR(sessile_angle(&s), to, dim == 3 ? 3 : 2);
    CHECK(s.liquid->stats.surface_energy < energy + TOL(0, 1e-4) * fabs(energy));
    CHECK(s.liquid->stats.kinetic_energy <= (dim == 3 ? 5e-3 : 1e-3) * MEMBRANE_SIGMA
        * pow(2 * radius * MEMBRANE_DX, dim - 1));
    CHECK_NEAR(push, 0, 0.02 * MEMBRANE_SIGMA * pow(2 * radius * MEMBRANE_DX, dim - 2));
    CHECK_NEAR(s.liquid->stats.volume, volume, 1e-3 * volume);
    CHECK(s.liquid->stats.pieces == 1 && s.liquid->stats.degraded == 0);
    CHECK(s.liquid->stats.depth <= 1e-4 * MEMBRANE_DX);
    front_check_sound(s.liquid->front);
    sessile_end(&s);
}

static void test_drops_on_a_plate_come_to_its_angle(void)
{
    static const double to[] = { 60, 90, 120 }, from[] = { 45, 135 };
    int k, i;
    for (k = 0; k < 3; k++)
        for (i = 0; i < 2; i++) comes_to_its_angle(2, 8, from[i], to[k], 200);
    if (TEST_SLOWED) return;
    comes_to_its_angle(2, 8, 60, 30, 300);
    comes_to_its_angle(2, 8, 120, 150, 200);
}
static void test_drops_on_a_plate_come_to_its_angle_in_3d(void)
{
    comes_to_its_angle(3, 4, 90, 60, 40);
    if (TEST_SLOWED) return;
    comes_to_its_angle(3, 4, 90, 120, 40);
}

/* A cylinder that liquid wets sinks in deeper, by theory: laid onto a pool, with drag, its line and its centre come to
   where they should be. l = 6 cells, Bond number 0.5. */
static void test_wetted_cylinders_float_where_they_should(void)
{
    static const double theta[] = { 60, 120 }, density[] = { 1.05, 1.5 };
    const double l = 6, r = l * sqrt(0.5), high = 24.3;
    const int wide = 66, steps = TEST_SLOWED ? 150 : 200;
    int k, i, j;
    for (k = 0; k < (TEST_SLOWED ? 1 : 2); k++) {
        fsi_context c = fsi_default_context();
        front_shape s = { 2, 0, 0, NULL, NULL };
        const double phi = meniscus_angle(density[k], theta[k] * DEGREES, r, l), area = FSI_PI * r * r,
            want = meniscus_height(phi, theta[k] * DEGREES, r, l),
            weight = density[k] * MEMBRANE_RHO * 9.81 * area * 1e-6;
        const double drag = 2 * MEMBRANE_RHO * sqrt(density[k] * area * 2 * (r + l) * 9.81 * 1e-9);
        fsi_real angle = (fsi_real)theta[k];
        fsi_rigid *w = world_of(2, FSI_RIGID_DYNAMIC, fsi_rigid_sphere((fsi_real)(r * MEMBRANE_DX)),
            density[k] * MEMBRANE_RHO, front_v3(wide / 2 + 0.2, high + r, 0), 9.81);
        fsi_membrane_desc d;
        fsi_membrane *m;
        double y, on = 0, held = 0;
        membrane_add_pool(&s, wide, high, 0, 1);
        d = membrane_desc(&c, &s, wide);
        d.n[1] = 42;
        d.gravity = front_v3(0, -9.81, 0);
        d.surface_tension = (fsi_real)(MEMBRANE_RHO * 9.81 * l * l * 1e-6);
        d.world = w;
        d.body_angle = &angle;
        m = membrane_make(&d);
        for (i = 0; i < steps; i++) {
            w->force[0] = fsi_v3_scale(w->body[0]->velocity, (fsi_real)-drag);
            if (!membrane_step(m, 5e-3)) break;
            if (i >= steps - 50) held += m->stats.body_impulse[1] / (50 * 5e-3);
        }
        y = (double)w->body[0]->pose.position.y / MEMBRANE_DX - high - density[k] * area / wide;
        for (j = 0; j < m->front->vertex_count; j++) {
            const fsi_vec3 x = fsi_v3_sub(m->front->position[j], w->body[0]->pose.position);
            if (!(m->front->flags[j] & (uint32_t)FSI_FRONT_FIXED)) continue;
            on = fmax(on, acos(fmax(-1, fmin(1, -(double)x.y / (double)fsi_v3_norm(x)))));
        }
        CHECK_NEAR(on / DEGREES, phi / DEGREES, 1);
        CHECK_NEAR(y, want, 0.1);
        CHECK_NEAR(held / weight, 1, 0.03);
        fsi_membrane_destroy(m);
        fsi_rigid_destroy(w);
        front_free(&s);
    }
}

/* An angle of 180 degrees that is given is the default, to the last bit. */
static void test_angle_180_is_the_default(void)
{
    uint64_t hash[2] = { 0, 0 };
    int k, i;
    for (k = 0; k < 2; k++) {
        fsi_membrane_desc d;
        sessile s;
        sessile_begin(&s, 2, 24, 4, 120, 180);
        d = s.liquid->desc;
        if (k) d.body_angle = NULL;
        CHECK(fsi_membrane_set_desc(s.liquid, &d) == FSI_OK);
        for (i = 0; i < 5; i++) membrane_step(s.liquid, 4e-3);
        hash[k] = fsi_membrane_hash(s.liquid);
        sessile_end(&s);
    }
    CHECK(hash[0] == hash[1]);
}

/* The same bits for any number of threads; bad angles are refused by name, and nothing has changed. */
static void test_threads_and_bad_angles(void)
{
    static const int threads[] = { 1, 2, 5 };
    static const double bad[] = { 9, 181, -1, 1e30 };
    uint64_t want = 0, before;
    sessile s;
    int k, i;
    for (k = 0; k < 3; k++) {
        sessile_begin(&s, 3, 12, 3, 90, 70);
        test_threads(&s.context, threads[k], 0);
        for (i = 0; i < 3; i++) membrane_step(s.liquid, 4e-3);
        if (k == 0) want = fsi_membrane_hash(s.liquid);
        CHECK(fsi_membrane_hash(s.liquid) == want);
        test_threads(&s.context, 1, 0);
        sessile_end(&s);
    }
    sessile_begin(&s, 2, 24, 4, 90, 70);
    before = fsi_membrane_hash(s.liquid);
    for (k = 0; k < 5; k++) {
        s.angle = k < 4 ? (fsi_real)bad[k] : (fsi_real)test_nan();
        CHECK(fsi_membrane_step(s.liquid, (fsi_real)4e-3) == (k < 4 ? FSI_ERROR_ARGUMENT : FSI_ERROR_NAN));
        CHECK(strstr(fsi_membrane_error(s.liquid)->message, "body_angle") && fsi_membrane_hash(s.liquid) == before);
    }
    s.angle = 70;
    membrane_step(s.liquid, 4e-3);
    sessile_end(&s);
}

/* A line that meets walls of the box stays on them while it slides, and a state with it is one that can be loaded. */
static void test_lines_slide_along_walls(void)
{
    static const double angle[] = { 60, 120 };
    enum { N = 8 };
    int way;
    for (way = 0; way < 2; way++) {
        fsi_context c = fsi_default_context();
        front_shape shape = { 3, 0, 0, NULL, NULL };
        const fsi_real to = (fsi_real)angle[way];
        const double half = N / 2.0 + 1, top = 3.3;
        fsi_membrane_desc d;
        fsi_membrane *m;
        fsi_rigid *w = world_of(3, FSI_RIGID_STATIC, fsi_rigid_box(fsi_v3_scale(front_v3(half, half, 1.5),
            (fsi_real)MEMBRANE_DX)), 1000, front_v3(N / 2.0, N / 2.0, 1.8), 0);
        double reached = 0, out = 0;
        void *state;
        size_t size = 0;
        int i, k;

        /* A block over half of a plate as wide as the box. */
        membrane_add_box(&shape, N, 4);
        for (i = 0; i < shape.vertices; i++) {
            shape.x[i].x *= (fsi_real)0.5;
            shape.x[i].z += (fsi_real)((top - (shape.x[i].z > 0 ? 0 : 1e-5)) * MEMBRANE_DX);
        }
        d = membrane_desc(&c, &shape, N);
        d.n[2] = 12;
        d.world = w;
        d.body_angle = &to;
        if (!(m = membrane_make(&d))) return;
        for (k = 0; k < 12 && membrane_step(m, 4e-3); k++) {
            for (i = 0; i < m->front->vertex_count; i++) {
                const fsi_vec3 x = m->front->position[i];
                out = fmax(out, fmax(-(double)fsi_min(x.x, x.y), (double)fsi_max(x.x, x.y) - N * MEMBRANE_DX));
                if (m->front->flags[i] & (uint32_t)FSI_FRONT_FIXED) reached = fmax(reached, (double)x.x / MEMBRANE_DX);
            }
        }
        CHECK(k == 12 && out <= 1e-5 * MEMBRANE_DX);
        CHECK(reached > N / 2.0 + (way ? -0.1 : 0.5)); /* it did slide */
        CHECK(fsi_membrane_save(m, NULL, 0, &size) == FSI_OK);
        state = malloc(size);
        CHECK(state && fsi_membrane_save(m, state, size, &size) == FSI_OK);
        CHECK(state && fsi_membrane_load(m, state, size) == FSI_OK);
        free(state);
        front_check_sound(m->front);
        fsi_membrane_destroy(m);
        fsi_rigid_destroy(w);
        front_free(&shape);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN_PHYSICS(test_drops_on_a_plate_come_to_its_angle);
    RUN_PHYSICS(test_drops_on_a_plate_come_to_its_angle_in_3d);
    RUN_PHYSICS(test_wetted_cylinders_float_where_they_should);
    RUN(test_angle_180_is_the_default);
    RUN(test_threads_and_bad_angles);
    RUN(test_lines_slide_along_walls);
    return TEST_END();
}
