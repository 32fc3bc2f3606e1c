/* test_fills.c - boxes, spheres and meshes filled with particles, by both particle liquids: what is left out, and what
   is said about it.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_sph.h"
#include "../fsi_wcsph.h"
#include "kit/test_sph.h"

static int warnings;
static void count_warning(void *user, int level, const char *text) { (void)user; (void)text; warnings += level == 1; }

static fsi_wcsph *make_weak(int dim, double dx, fsi_box3 domain, fsi_context *context)
{
    fsi_wcsph_desc d = fsi_wcsph_default_desc();
    fsi_wcsph *s = NULL;
    d.context = context;
    d.dim = dim;
    d.spacing = (fsi_real)dx;
    d.gravity = dim == 2 ? v3(0, -9.81, 0) : v3(0, 0, -9.81);
    d.domain = domain;
    CHECK(fsi_wcsph_create(&s, &d) == FSI_OK);
    return s;
}

static void test_box_filled_twice_is_filled_once(void)
{
    int dim, added;
    for (dim = 2; dim <= 3; dim++) {
        fsi_sph_desc d = make_desc(dim, 0.05);
        const fsi_box3 box = box3(0, 0, 0, 0.5, 0.4, 0.3);
        const int want = dim == 2 ? 80 : 480;
        fsi_context context = fsi_default_context();
        fsi_wcsph *w;
        fsi_sph *s;
        context.message = count_warning;
        warnings = 0;
        d.context = &context;
        d.domain = box3(0, 0, 0, 1, 1, 1);
        s = make_sph(&d);
        w = make_weak(dim, 0.05, d.domain, &context);
        CHECK(fsi_sph_fill_box(s, box, v3(0, 0, 0), &added) == FSI_OK && added == want);
        CHECK(fsi_wcsph_fill_box(w, box, v3(0, 0, 0), &added) == FSI_OK && added == want);
        CHECK(warnings == 0);
        CHECK(fsi_sph_fill_box(s, box, v3(0, 0, 0), &added) == FSI_OK && added == 0 && s->count == want);
        CHECK(fsi_wcsph_fill_box(w, box, v3(0, 0, 0), &added) == FSI_OK && added == 0 && w->count == want);
        CHECK(warnings == 2);
        /* shifted by 0.3 dx: half of it is new */
        CHECK(fsi_sph_fill_box(s, box3(0.25, 0.015, 0, 0.75, 0.4, 0.3), v3(0, 0, 0), &added) == FSI_OK &&
              added == want / 2);
        step_ok(s, 0.002);
        CHECK(s->stats.max_speed < 0.5);
        CHECK(fsi_sph_fill_box(s, box3(3, 3, 3, 4, 4, 4), v3(0, 0, 0), &added) == FSI_OK && added == 0 &&
              warnings == 3);
        fsi_sph_destroy(s);
        fsi_wcsph_destroy(w);
    }
}

/* Boxes that touch, or are some spacings apart, are filled as they were when nothing was looked at: site by site. */
static void test_boxes_that_touch_are_filled_whole(void)
{
    fsi_sph_desc d = make_desc(3, 0.05);
    fsi_sph *s = make_sph(&d);
    int k, added;
    for (k = 0; k < 3; k++)
        CHECK(fsi_sph_fill_box(s, box3(0.2 * k, 0, 0, 0.2 * k + 0.2, 0.2, 0.2), v3(k, 0, 0), &added) == FSI_OK &&
              added == 64);
    CHECK_NEAR(s->position[1].x, 0.075, TOL(1e-15, 1e-7));
    CHECK_NEAR(s->position[64].x, 0.225, TOL(1e-15, 1e-7));
    CHECK(s->velocity[128].x == 2);
    fsi_sph_destroy(s);
}

static void test_enormous_box_is_cut_to_the_domain(void)
{
    int dim, added;
    for (dim = 2; dim <= 3; dim++) {
        fsi_sph_desc d = make_desc(dim, 0.05);
        const clock_t start = clock();
        fsi_wcsph *w;
        fsi_sph *s;
        d.domain = box3(0, 0, 0, 0.5, 0.4, 0.3);
        d.max_particles = 60;
        s = make_sph(&d);
        CHECK(fsi_sph_fill_box(s, box3(-1e6, -1e6, -1e6, 1e6, 1e6, 1e6), v3(0, 0, 0), &added) == FSI_ERROR_LIMIT &&
              added == 0 && s->count == 0);
        d = s->desc;
        d.max_particles = 0;
        CHECK(fsi_sph_set_desc(s, &d) == FSI_OK);
        CHECK(fsi_sph_fill_box(s, box3(-1e6, -1e6, -1e6, 1e6, 1e6, 1e6), v3(0, 0, 0), &added) == FSI_OK &&
              added >= (dim == 2 ? 63 : 63 * 5) && added <= (dim == 2 ? 80 : 480));
        CHECK(fsi_sph_count_inside(s, NULL) == 0);
        w = make_weak(dim, 0.05, d.domain, NULL);
        CHECK(fsi_wcsph_fill_box(w, box3(-1e6, -1e6, -1e6, 1e6, 1e6, 1e6), v3(0, 0, 0), &added) == FSI_OK &&
              added >= (dim == 2 ? 63 : 63 * 5));
        fsi_wcsph_destroy(w);
        fsi_sph_destroy(s);
        d.domain = fsi_box3_empty();
        d.max_particles = 200;
        s = make_sph(&d); /* nor without walls */
        CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 20, 20, 20), v3(0, 0, 0), &added) == FSI_ERROR_LIMIT && s->count == 0);
        CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 1e9, 1e9, 1e9), v3(0, 0, 0), &added) == FSI_ERROR_LIMIT &&
              s->count == 0);
        fsi_sph_destroy(s);
        CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 5);
    }
}

static void test_spheres_and_meshes_hold_their_volume(void)
{
    int dim, added;
    for (dim = 2; dim <= 3; dim++) {
        const double dx = 0.02, r = 0.13, ball = dim == 2 ? PI * r * r : 4.0 / 3 * PI * r * r * r;
        fsi_sph_desc d = make_desc(dim, dx);
        fsi_sph *s = make_sph(&d);
        fsi_wcsph *w = make_weak(dim, dx, box3(-1, -1, -1, 1, 1, 1), NULL);
        fsi_mesh *bar = make_block(dim, 0.1, 0.06, 0.04);
        const int want = dim == 2 ? 10 * 6 : 10 * 4 * 6;
        int i;
        CHECK(fsi_sph_fill_sphere(s, v3(0.3, 0.2, 0.1), (fsi_real)r, v3(1, 2, 0), &added) == FSI_OK &&
              added == s->count);
        CHECK_NEAR(added * (double)s->particle_volume, ball, 0.06 * ball);
        for (i = 0; i < s->count; i++) {
            fsi_vec3 x = fsi_v3_sub(s->position[i], v3(0.3, 0.2, dim == 2 ? 0 : 0.1));
            CHECK((double)fsi_v3_norm(x) <= r * 1.000001 && s->velocity[i].y == 2);
        }
        CHECK(fsi_wcsph_fill_sphere(w, v3(0.3, 0.2, 0.1), (fsi_real)r, v3(0, 0, 0), &i) == FSI_OK && i == added);
        CHECK(fsi_sph_fill_mesh(s, bar, v3(0, 0, 0), &added) == FSI_OK && added == want);
        CHECK(fsi_wcsph_fill_mesh(w, bar, v3(0, 0, 0), &added) == FSI_OK && added == want);
        fsi_sph_destroy(s);
        fsi_wcsph_destroy(w);
        fsi_mesh_destroy(bar);
    }
}

static void test_fills_refuse_what_is_no_shape(void)
{
    fsi_sph_desc d = make_desc(3, 0.1);
    fsi_sph *s = make_sph(&d);
    fsi_wcsph *w = make_weak(3, 0.1, fsi_box3_empty(), NULL);
    fsi_mesh *flat, *sheet;
    int added = 7;
    shape_begin(2);
    shape_box(box3(0, 0, 0, 1, 1, 0));
    flat = shape_make(FSI_MESH_CLOSED, 0);
    shape_begin(3);
    shape_sheet(v3(0, 0, 0), v3(1, 0, 0), v3(0, 1, 0), 2, 2);
    sheet = shape_make(FSI_MESH_TWO_SIDED, 0);
    CHECK(fsi_sph_fill_sphere(s, v3(0, 0, 0), (fsi_real)0.02, v3(0, 0, 0), &added) == FSI_ERROR_ARGUMENT && added == 0);
    CHECK(fsi_sph_fill_sphere(s, v3(0, 0, 0), -1, v3(0, 0, 0), NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_fill_sphere(s, v3(test_nan(), 0, 0), 1, v3(0, 0, 0), NULL) == FSI_ERROR_NAN);
    CHECK(fsi_sph_fill_sphere(s, v3(0, 0, 0), (fsi_real)test_inf(), v3(0, 0, 0), NULL) == FSI_ERROR_NAN);
    CHECK(fsi_sph_fill_sphere(s, v3(0, 0, 0), 1, v3(0, test_nan(), 0), NULL) == FSI_ERROR_NAN);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 1, 1, 0.01), v3(0, 0, 0), NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 1, test_inf(), 1), v3(0, 0, 0), NULL) == FSI_ERROR_NAN);
    CHECK(fsi_sph_fill_mesh(s, NULL, v3(0, 0, 0), NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_fill_mesh(s, flat, v3(0, 0, 0), NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_fill_mesh(s, sheet, v3(0, 0, 0), NULL) == FSI_ERROR_MESH);
    CHECK(fsi_wcsph_fill_mesh(w, NULL, v3(0, 0, 0), NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_wcsph_fill_mesh(w, sheet, v3(0, 0, 0), NULL) == FSI_ERROR_MESH);
    CHECK(fsi_wcsph_fill_sphere(w, v3(0, 0, 0), 0, v3(0, 0, 0), NULL) == FSI_ERROR_ARGUMENT);
    CHECK(s->count == 0 && w->count == 0);
    fsi_sph_destroy(s);
    fsi_wcsph_destroy(w);
    fsi_mesh_destroy(flat);
    fsi_mesh_destroy(sheet);
}

/* Every allocation of a fill over liquid failing in turn: nothing is added, nothing is lost. */
static void test_fill_without_memory_changes_nothing(void)
{
    fsi_context context = fsi_default_context();
    fsi_sph_desc d = make_desc(3, 0.1);
    long fail;
    int added;
    for (fail = 1; fail < 20; fail++) {
        fsi_status status;
        fsi_sph *s;
        test_fail_allocator(&context, 0);
        d.context = &context;
        s = make_sph(&d);
        CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 0.5, 0.5, 0.5), v3(0, 0, 0), &added) == FSI_OK && added == 125);
        test_fail_allocator(&context, fail);
        status = fsi_sph_fill_box(s, box3(0, 0, 0, 1, 1, 1), v3(0, 0, 0), &added);
        CHECK(status == FSI_OK ? added == 875 && s->count == 1000
                               : status == FSI_ERROR_MEMORY && added == 0 && s->count == 125);
        test_fail_allocator(&context, 0);
        CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 1, 1, 1), v3(0, 0, 0), &added) == FSI_OK && s->count == 1000);
        fsi_sph_destroy(s);
        CHECK(context.bytes == 0);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_box_filled_twice_is_filled_once);
    RUN(test_boxes_that_touch_are_filled_whole);
    RUN(test_enormous_box_is_cut_to_the_domain);
    RUN(test_spheres_and_meshes_hold_their_volume);
    RUN(test_fills_refuse_what_is_no_shape);
    RUN(test_fill_without_memory_changes_nothing);
    return TEST_END();
}
