/* test_membrane_calls.c - fsi_membrane.h as it is called: threads, states, memory, bad input.
   SPDX-License-Identifier: MIT */
#include "kit/test_membranes.h"

/* A stretched drop in 3D that falls on the surface of nothing, or in 2D a pool with a wave. */
static fsi_membrane *make(fsi_context *c, front_shape *s, int dim)
{
    fsi_membrane_desc d;
    memset(s, 0, sizeof *s);
    s->dim = dim;
    if (dim == 3) membrane_add_drop(s, 6.1, 6.2, 6.3, 4, 0.1);
    else membrane_add_pool(s, 12, 6.3, 0.4, 2);
    d = membrane_desc(c, s, 12);
    d.gravity = dim == 3 ? front_v3(0, 0, -9.81) : front_v3(0, -9.81, 0);
    d.attribute_count = 1;
    return membrane_make(&d);
}

static void test_membrane_is_the_same_for_any_number_of_threads(void)
{
    const int threads[] = { 1, 2, 3, 7 };
    uint64_t want[2] = { 0, 0 };
    int k, j, dim;
    for (k = 0; k < 8; k++)
        for (dim = 2; dim <= 3; dim++) {
            fsi_context c = fsi_default_context();
            front_shape s;
            fsi_membrane *m;
            test_threads(&c, threads[k & 3], k >= 4);
            m = make(&c, &s, dim);
            for (j = 0; j < 3; j++) membrane_step(m, 0.004);
            if (k == 0) want[dim - 2] = fsi_membrane_hash(m);
            CHECK(fsi_membrane_hash(m) == want[dim - 2]);
            fsi_membrane_destroy(m);
            test_threads(&c, 1, 0);
            front_free(&s);
        }
}

static void test_saved_membrane_goes_on_as_it_would(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        fsi_context c = fsi_default_context();
        front_shape s, t;
        fsi_membrane *m = make(&c, &s, dim), *other = make(&c, &t, dim);
        size_t size = 0, at, refused = 0;
        unsigned char *state;
        uint64_t hash;
        for (k = 0; k < 3; k++) membrane_step(m, 0.004);
        CHECK(fsi_membrane_save(m, NULL, 0, &size) == FSI_OK && size > 1000);
        state = (unsigned char *)malloc(size);
        CHECK(fsi_membrane_save(m, state, size - 1, NULL) == FSI_ERROR_LIMIT);
        CHECK(fsi_membrane_save(m, state, size, NULL) == FSI_OK);
        hash = fsi_membrane_hash(m);
        CHECK(fsi_membrane_load(other, state, size) == FSI_OK && fsi_membrane_hash(other) == hash);
        CHECK(!(other->time < m->time) && !(other->time > m->time));
        for (k = 0; k < 3; k++) {
            membrane_step(m, 0.004);
            membrane_step(other, 0.004);
            CHECK(fsi_membrane_hash(m) == fsi_membrane_hash(other) && fsi_membrane_hash(m) != hash);
        }

        /* Damaged and foreign ones: `other` stays as it is. */
        hash = fsi_membrane_hash(other);
        for (at = 0; at < size; at += 1 + size / 40) {
            state[at] ^= 0x55;
            refused += fsi_membrane_load(other, state, size) != FSI_OK;
            CHECK(fsi_membrane_load(other, state, at) != FSI_OK && fsi_membrane_hash(other) == hash);
            state[at] ^= 0x55;
        }
        CHECK(refused >= 38 && fsi_membrane_hash(other) == hash);
        fsi_membrane_destroy(other);
        front_free(&t);
        other = make(&c, &t, 5 - dim);
        hash = fsi_membrane_hash(other);
        CHECK(fsi_membrane_load(other, state, size) == FSI_ERROR_FORMAT && fsi_membrane_hash(other) == hash);
        free(state);
        fsi_membrane_destroy(m);
        fsi_membrane_destroy(other);
        front_free(&s);
        front_free(&t);
        CHECK(c.bytes == 0);
    }
}

static void test_failing_memory_changes_nothing(void)
{
    int k, dim, failures;
    for (dim = 2; dim <= 3; dim++) {
        failures = 0;
        for (k = 1; k < 1000; k++) {
            fsi_context c = fsi_default_context();
            front_shape s = { 2, 0, 0, NULL, NULL };
            fsi_membrane_desc d;
            fsi_membrane *m = NULL;
            fsi_status status;
            s.dim = dim;
            if (dim == 3) membrane_add_drop(&s, 4.1, 4.2, 4.3, 2.5, 0.1);
            else membrane_add_pool(&s, 8, 4.3, 0.4, 2);
            d = membrane_desc(&c, &s, 9 - (dim == 2));
            test_fail_allocator(&c, k);
            status = fsi_membrane_create(&m, &d);
            if (status == FSI_OK) {
                const uint64_t hash = fsi_membrane_hash(m);
                status = fsi_membrane_step(m, (fsi_real)0.002);
                if (status != FSI_OK) {
                    CHECK(fsi_membrane_hash(m) == hash && !(m->time > 0));
                    test_fail_allocator(&c, 0);
                    membrane_step(m, 0.002);
                }
                front_check_sound(m->front);
            } else CHECK(m == NULL);
            failures += status == FSI_ERROR_MEMORY;
            CHECK(status == FSI_OK || (status == FSI_ERROR_MEMORY && c.error.status == FSI_ERROR_MEMORY));
            fsi_membrane_destroy(m);
            front_free(&s);
            CHECK(c.bytes == 0 && test_live_bytes() == 0);
            if (status == FSI_OK) break;
        }
        CHECK(k < 1000 && failures >= 60);
    }
}

static void test_steady_steps_allocate_nothing(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        fsi_context c = fsi_default_context();
        front_shape s;
        fsi_membrane *m = make(&c, &s, dim);
        long long allocs = 0;
        const int steps = dim == 3 ? 8 : 200;
        fsi_membrane_desc d = m->desc;
        d.gravity = front_v3(0, 0, 0);
        CHECK(fsi_membrane_set_desc(m, &d) == FSI_OK);
        for (k = 0; k < steps; k++) {
            if (k == steps / 2) allocs = c.allocs;
            membrane_step(m, 0.002);
        }
        CHECK(m->stats.allocs == c.allocs && c.allocs - allocs <= 0);
        fsi_membrane_destroy(m);
        front_free(&s);
    }
}

/* A NaN, or a surface that crosses itself, in what a caller may write: the step is refused and named. */
static void test_bad_states_are_refused(void)
{
    fsi_context c = fsi_default_context();
    front_shape s;
    fsi_membrane *m = make(&c, &s, 2);
    uint64_t hash;
    int k, i;
    membrane_step(m, 0.002);
    for (k = 0; k < 4; k++) {
        fsi_vec3 *x = k == 0 ? &m->front->position[20] : &m->front->velocity[20], kept = *x;
        fsi_real *u = NULL, old = 0;
        for (i = 0; k == 2; i++) /* a face of the liquid */
            if (m->u[1]->value[i] < 0 || m->u[1]->value[i] > 0) {
                u = &m->u[1]->value[i];
                break;
            }
        if (k == 2) {
            old = *u;
            *u = (fsi_real)test_nan();
        } else if (k == 3) *x = front_v3(1e20, 0, 0);
        else x->x = (fsi_real)test_nan();
        hash = fsi_membrane_hash(m);
        CHECK(fsi_membrane_step(m, (fsi_real)0.002) != FSI_OK && fsi_membrane_error(m)->message[0]);
        CHECK(fsi_membrane_hash(m) == hash);
        if (k == 2) *u = old;
        *x = kept;
    }
    membrane_step(m, 0.002);
    fsi_membrane_destroy(m);
    front_free(&s);
}

static void refused(const fsi_membrane_desc *d, fsi_status status, const char *text)
{
    fsi_membrane *m = (fsi_membrane *)(uintptr_t)1;
    const fsi_status is = fsi_membrane_create(&m, d);
    if (!CHECK(is == status && m == NULL && strstr(d->context->error.message, text)))
        printf("   %d: %s\n", (int)is, d->context->error.message);
}

static void test_bad_input_is_refused_by_name(void)
{
    fsi_context c = fsi_default_context();
    front_shape s = { 2, 0, 0, NULL, NULL };
    fsi_membrane_desc good, d;
    fsi_membrane *m = NULL;
    membrane_add_drop(&s, 6, 6, 0, 4, 0);
    good = membrane_desc(&c, &s, 12);
#define BAD(field, value, status, text) do { d = good; d.field = value; refused(&d, status, text); } while (0)
    BAD(dim, 4, FSI_ERROR_ARGUMENT, "desc.dim is 4, must be 2 or 3");
    BAD(n[1], 1, FSI_ERROR_ARGUMENT, "desc.n[1] is 1, must be 2 to 4096");
    BAD(dx, 0, FSI_ERROR_ARGUMENT, "desc.dx");
    BAD(dx, (fsi_real)test_nan(), FSI_ERROR_NAN, "desc.dx is not finite");
    BAD(origin.x, (fsi_real)test_nan(), FSI_ERROR_NAN, "desc.origin is not finite");
    BAD(gravity.z, 1, FSI_ERROR_ARGUMENT, "desc.gravity");
    BAD(density, -1, FSI_ERROR_ARGUMENT, "desc.density");
    BAD(surface_tension, 0, FSI_ERROR_ARGUMENT, "desc.surface_tension is 0");
    BAD(surface_tension, (fsi_real)-0.1, FSI_ERROR_ARGUMENT, "desc.surface_tension");
    BAD(thickness, 1, FSI_ERROR_ARGUMENT, "desc.thickness is 1, must be 0.001 to 100 desc.dx");
    BAD(thickness, (fsi_real)-1e-3, FSI_ERROR_ARGUMENT, "desc.thickness");
    BAD(damping, (fsi_real)1.5, FSI_ERROR_ARGUMENT, "desc.damping is 1.5, must be 0 to 1");
    BAD(box, (fsi_real)0.5, FSI_ERROR_ARGUMENT, "desc.box is 0.5, must be 1 to 4");
    BAD(cfl, 3, FSI_ERROR_ARGUMENT, "desc.cfl is 3");
    BAD(max_substeps, 0, FSI_ERROR_ARGUMENT, "desc.max_substeps");
    BAD(whole_faces, 2, FSI_ERROR_ARGUMENT, "desc.whole_faces");
    BAD(attribute_count, 65, FSI_ERROR_ARGUMENT, "desc.attribute_count");
    BAD(vertices, NULL, FSI_ERROR_ARGUMENT, "desc.vertices is NULL");
    BAD(vertex_count, s.vertices - 1, FSI_ERROR_ARGUMENT, "vertices");
    BAD(element_count, s.elements - 1, FSI_ERROR_MESH, "open edge");
    BAD(n[0], 9, FSI_ERROR_ARGUMENT, "is outside of the box");
    BAD(cookie, 0, FSI_ERROR_COOKIE, "desc was not filled by fsi_membrane_default_desc");
#undef BAD
    s.x[3].x = (fsi_real)test_nan();
    refused(&good, FSI_ERROR_NAN, "vertex 3");
    s.x[3] = s.x[s.vertices / 2 + 3];
    s.x[3].y += (fsi_real)1e-5;
    refused(&good, FSI_ERROR_MESH, "crosses");
    front_free(&s);

    /* Inside out. */
    memset(&s, 0, sizeof s);
    s.dim = 3;
    front_add_ball(&s, front_v3(0.006, 0.006, 0.006), front_v3(0.004, 0.004, 0.004), 8, -1);
    good = membrane_desc(&c, &s, 12);
    refused(&good, FSI_ERROR_MESH, "inside out");
    good.n[2] = 1;
    refused(&good, FSI_ERROR_ARGUMENT, "desc.n[2] is 1, must be 2 to 4096");
    CHECK(fsi_membrane_create(NULL, &good) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_membrane_create(&m, NULL) == FSI_ERROR_ARGUMENT);
    front_free(&s);
    CHECK(c.bytes == 0);
}

static fsi_vec3 nowhere(void *user, fsi_vec3 x)
{
    return (double)x.y > *(const double *)user ? front_v3(0, test_nan(), 0) : x;
}
static void test_bad_calls_change_nothing(void)
{
    fsi_context c = fsi_default_context();
    front_shape s;
    fsi_membrane *m = make(&c, &s, 2);
    const uint64_t hash = fsi_membrane_hash(m);
    fsi_membrane_desc d = m->desc;
    double level = 0.005;
    size_t size;
    int k;
    CHECK(fsi_membrane_step(m, -1) == FSI_ERROR_ARGUMENT && fsi_membrane_step(m, 2000) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_membrane_step(m, (fsi_real)test_nan()) != FSI_OK);
    CHECK(fsi_membrane_step(NULL, 1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_membrane_set_velocity(m, NULL, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_membrane_set_velocity(m, nowhere, &level) == FSI_ERROR_NAN);
    level = 1;
    CHECK(fsi_membrane_hash(m) == hash);
    d.dx *= 2;
    CHECK(fsi_membrane_set_desc(m, &d) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "desc.dx cannot change"));
    d = m->desc;
    d.cfl = -1;
    CHECK(fsi_membrane_set_desc(m, &d) == FSI_ERROR_ARGUMENT);
    for (k = 0; k < 6; k++) {
        d = m->desc;
        d.wall_angle[k] = k & 1 ? 181 : (fsi_real)9.9;
        CHECK(fsi_membrane_set_desc(m, &d) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "desc.wall_angle["));
        d.wall_angle[k] = (fsi_real)test_nan();
        CHECK(fsi_membrane_set_desc(m, &d) != FSI_OK);
    }
    d = m->desc;
    d.line_friction = -1;
    CHECK(fsi_membrane_set_desc(m, &d) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_membrane_hash(m) == hash);
    CHECK(fsi_membrane_set_desc(m, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_membrane_set_desc(NULL, &d) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_membrane_save(m, NULL, 0, NULL) == FSI_ERROR_ARGUMENT && fsi_membrane_load(m, NULL, 5) != FSI_OK);
    CHECK(fsi_membrane_save(NULL, NULL, 0, &size) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_membrane_hash(NULL) == 0 && fsi_membrane_error(NULL)->message[0]);
    CHECK(!(fsi_membrane_suggest_dt(NULL) > 0) && fsi_membrane_suggest_dt(m) > 0);
    CHECK(!(fsi_membrane_pressure_at(NULL, front_v3(0, 0, 0)) > 0));
    CHECK(!(fsi_membrane_pressure_at(m, front_v3(test_nan(), 0, 0)) > 0));
    CHECK(!(fsi_membrane_velocity_at(NULL, front_v3(0, 0, 0)).x > 0));
    fsi_membrane_destroy(NULL);
    fsi_membrane_debug_draw(m, NULL);

    /* A look changes nothing, and too many substeps are said. */
    CHECK(fsi_membrane_step(m, 0) == FSI_OK && fsi_membrane_hash(m) == hash && m->stats.substeps == 0);
    CHECK(m->stats.volume > 0 && m->stats.potential_energy > 0 && m->stats.faces > 0);
    CHECK(fsi_membrane_set_velocity(m, nowhere, &level) == FSI_OK && fsi_membrane_hash(m) != hash);
    d = m->desc;
    d.max_substeps = 1;
    d.cfl = (fsi_real)0.05;
    CHECK(fsi_membrane_set_desc(m, &d) == FSI_OK && fsi_membrane_step(m, (fsi_real)0.02) == FSI_OK);
    CHECK(m->stats.degraded == 1 && m->stats.substeps == 1);
    fsi_membrane_destroy(m);
    front_free(&s);
    CHECK(c.bytes == 0);
}

/* Amounts on vertices stay in sum. */
static void test_attributes_ride_along(void)
{
    fsi_context c = fsi_default_context();
    front_shape s;
    fsi_membrane *m = make(&c, &s, 3);
    double sum = 0, want = 0;
    int i;
    for (i = 0; i < m->front->vertex_count; i++) {
        m->front->attribute[i] = (fsi_real)sin(1.0 * i);
        want += (double)m->front->attribute[i];
    }
    for (i = 0; i < 3; i++) membrane_step(m, 0.004);
    for (i = 0; i < m->front->vertex_count; i++) sum += (double)m->front->attribute[i];
    CHECK_NEAR(sum, want, TOL(1e-12, 1e-3));
    fsi_membrane_destroy(m);
    front_free(&s);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_membrane_is_the_same_for_any_number_of_threads);
    RUN(test_saved_membrane_goes_on_as_it_would);
    RUN(test_failing_memory_changes_nothing);
    RUN(test_steady_steps_allocate_nothing);
    RUN(test_bad_states_are_refused);
    RUN(test_bad_input_is_refused_by_name);
    RUN(test_bad_calls_change_nothing);
    RUN(test_attributes_ride_along);
    return TEST_END();
}
