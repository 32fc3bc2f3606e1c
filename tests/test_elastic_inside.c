/* test_elastic_inside.c - how contacts of elastic bodies move each other in a sweep, regions of reduced bodies, rows in
   blocks.
   SPDX-License-Identifier: MIT */
#define FSI_ELASTIC_IMPLEMENTATION
#include "kit/test_elastic.h"

/* Largest difference of n numbers. */
static double differs(const double *a, const double *b, int n)
{
    double most = 0;
    int k;
    for (k = 0; k < n; k++) most = fmax(most, fabs(a[k] - b[k]));
    return most;
}

/* Contacts move each other by G, or by way of the bodies' unknowns: the forces and displacements are the same. Two
   blocks, one on the other, slide on the floor. */
static void test_both_ways_of_a_sweep_give_the_same_forces(void)
{
    enum { MOST = 400 };
    static double force[2][3 * MOST], next[2][2][3 * 200], solved[2][3 * 200];
    block b = block_make(3, 3, 2, 0.05);
    world w = world_of(3);
    fsi__el_impl *im;
    int way, i, k;
    w.body.handles = 8;
    w.body.velocity = fsi_v3(REAL(0.5), REAL(0.2), 0);
    if (!world_begin(&w)) return;
    world_floor(&w, 0.3);
    world_add(&w, &b);
    w.body.position = fsi_v3(REAL(0.013), REAL(0.007), REAL(0.1));
    world_add(&w, &b);
    world_run(&w, 1.0 / 120, 5);

    /* The pieces of a step up to the first sweep. */
    im = fsi__el_of(w.s);
    CHECK(fsi__el_begin(w.s, 1.0 / 120, "test") == FSI_OK && fsi__el_predict(w.s, 1.0 / 120, 0, 1) == FSI_OK);
    CHECK(fsi__el_constrain(w.s) == FSI_OK && !im->many && im->contacts > 30 && im->contacts < MOST);
    for (k = 0; k < 2; k++) {
        memset(fsi__el_inner(w.s, k)->contact, 0, 3 * (size_t)fsi__el_inner(w.s, k)->dofs * sizeof(double));
        fsi__el_body_project(fsi__el_inner(w.s, k));
        CHECK(fsi__el_body_solve(fsi__el_inner(w.s, k)) == FSI_OK && fsi__el_inner(w.s, k)->dofs < 200);
        memcpy(solved[k], fsi__el_inner(w.s, k)->next, 3 * (size_t)fsi__el_inner(w.s, k)->dofs * sizeof(double));
    }

    /* Both ways from unknowns and forces without contact. */
    for (way = 0; way < 2; way++) {
        for (k = 0; k < 2; k++)
            memcpy(fsi__el_inner(w.s, k)->next, solved[k], 3 * (size_t)fsi__el_inner(w.s, k)->dofs * sizeof(double));
        for (i = 0; i < im->contacts; i++) memset(im->contact[i].force, 0, sizeof im->contact[i].force);
        im->many = way;
        fsi__el_sweep(im);
        if (!way) fsi__el_respond(im);
        for (i = 0; i < im->contacts; i++) memcpy(force[way] + 3 * i, im->contact[i].force, 3 * sizeof(double));
        for (k = 0; k < 2; k++) memcpy(next[way][k], fsi__el_inner(w.s, k)->next,
                                       3 * (size_t)fsi__el_inner(w.s, k)->dofs * sizeof(double));
    }
    CHECK(differs(force[0], force[0] + 3, 3 * im->contacts - 3) > 1e-3); /* [N] */
    CHECK(differs(force[0], force[1], 3 * im->contacts) < TOL(1e-9, 1e-4));
    for (k = 0; k < 2; k++)
        CHECK(differs(next[0][k], next[1][k], 3 * fsi__el_inner(w.s, k)->dofs) < TOL(1e-12, 1e-8));
    fsi__el_undo(w.s);
    world_end(&w);
    block_free(&b);
}

/* G of n sides takes n^2 numbers: beyond a million of them contacts go by way of the unknowns, if these are fewer. */
static void test_many_contacts_go_by_the_unknowns(void)
{
    block b = block_make(2, 2, 2, 0.05);
    world w = world_of(3);
    fsi__el_impl *im;
    int dofs;
    w.body.handles = 0;
    if (!world_begin(&w)) return;
    world_add(&w, &b);
    im = fsi__el_of(w.s);
    dofs = im->member[0].body.dofs;

    im->member[0].sides = 1000; /* 1000 * 1000 is not above a million */
    fsi__el_plan_sweeps(im);
    CHECK(!im->many && fabs(im->sweep_work - 1e6) < 0.5);
    im->member[0].sides = 1001;
    fsi__el_plan_sweeps(im);
    CHECK(im->many && fabs(im->sweep_work - 1001.0 * 2 * dofs) < 0.5);
    im->member[0].body.dofs = 501; /* 2 * 501 numbers a change, more than 1001 */
    fsi__el_plan_sweeps(im);
    CHECK(!im->many && fabs(im->sweep_work - 1001.0 * 1001) < 0.5);
    im->member[0].body.dofs = dofs;
    im->member[0].sides = 0;
    world_end(&w);
    block_free(&b);
}

/* A plate of more than a thousand contacts on the floor: it rests on them, and no G is kept. */
static void test_a_plate_rests_on_many_contacts(void)
{
    block b = block_make(34, 34, 1, 0.01);
    world w = world_of(3);
    fsi_vec3 force, torque;
    fsi__el_impl *im;
    int ground;
    w.body.handles = 4;
    w.body.regions = 100;
    w.body.contact_points = 5000;
    if (!world_begin(&w)) return;
    ground = world_floor(&w, 0.5);
    world_add(&w, &b);
    im = fsi__el_of(w.s);
    world_run(&w, 1.0 / 60, 40);
    CHECK(im->many && im->contacts > 1000 && im->member[0].coupling_room == 0);
    CHECK(fsi_elastic_obstacle_reaction(w.s, ground, &force, &torque) == FSI_OK);
    CHECK_NEAR(force.z, -9.81 * w.s->bodies[0].mass, 0.02 * 9.81 * w.s->bodies[0].mass);
    CHECK(w.s->stats.kinetic_energy < 1e-4 && w.s->stats.deepest < 1e-4);
    world_end(&w);
    block_free(&b);
}

/* As many regions as asked for, however coarse the elements: so the cost of a step does not depend on these. Their
   volumes add to that of the body. */
static void test_no_region_is_empty(void)
{
    int n;
    for (n = 6; n <= 18; n += 6) {
        block b = block_make(n, n, n, 0.3 / n);
        world w = world_of(3);
        const fsi__el_body *y;
        double volume = 0;
        int k;
        w.body.handles = 10;
        w.body.regions = 200;
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        y = fsi__el_inner(w.s, 0);
        CHECK(y->evaluated == 200 && w.s->bodies[0].regions == 200);
        for (k = 0; k < y->evaluated; k++) CHECK(y->volume[k] > 0);
        for (k = 0; k < y->evaluated; k++) volume += y->volume[k];
        CHECK_NEAR(volume, 0.027, TOL(1e-12, 1e-7));
        world_end(&w);
        block_free(&b);
    }
}

/* Rows in blocks give the points, and the sums of forces, of the rows one by one, to the bit. */
static void test_rows_in_blocks_are_the_same_rows(void)
{
    int full, k, i, l;
    for (full = 0; full < 2; full++) {
        block b = block_make(7, 5, 3, 0.05);
        world w = world_of(3);
        const fsi__el_member *m;
        const fsi__el_rows *r;
        fsi__el_packed p;
        double *one, *wide, x[4 * FSI__EL_BLOCK], f[4 * FSI__EL_BLOCK];
        int wrong = 0;
        w.body.handles = full ? 0 : 6;
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        world_run(&w, 1.0 / 60, 3);
        m = &fsi__el_of(w.s)->member[0];
        r = &m->body.anchor; /* empty so far */
        for (k = 0; k < 43; k++)
            CHECK(fsi__el_body_row(&fsi__el_of(w.s)->member[0].body, &fsi__el_of(w.s)->member[0].body.anchor, "test",
                fsi__d3_make(0.008 * k, 0.005 * k, 0.002 * (k % 7))) == FSI_OK);
        CHECK(r->count == 43 && r->count % FSI__EL_BLOCK > 0);
        CHECK(fsi__el_pack(&p, w.s->context, "test", r, m->body.dofs, m->body.reduced) == FSI_OK);
        CHECK(m->body.reduced == !full && (p.value == NULL) == full);
        one = (double *)calloc((size_t)m->body.dofs, 7 * sizeof(double));
        if (!one) return;
        wide = one + 3 * m->body.dofs;

        /* Points; forces of every row. */
        fsi__el_packed_load(&p, m->body.q);
        memset(f, 0, sizeof f);
        for (k = 0; k < r->count; k += FSI__EL_BLOCK) {
            fsi__el_packed_points(&p, r, k / FSI__EL_BLOCK, x);
            for (l = 0; l < FSI__EL_BLOCK && k + l < r->count; l++) {
                const fsi__d3 by = fsi__d3_make(k + 1, sin(k + l), 1.0 / (l + 1));
                const fsi__d3 at = fsi__el_point(r, k + l, m->body.q);
                wrong += memcmp(&at, x + 4 * l, sizeof at) != 0;
                fsi__d3_put(f + 4 * l, by);
                fsi__el_push(r, k + l, by, one);
            }
            fsi__el_packed_push(&p, r, k / FSI__EL_BLOCK, f, wide);
        }
        for (i = 0; i < m->body.dofs; i++) wrong += memcmp(one + 3 * i, wide + 4 * i, 3 * sizeof(double)) != 0;
        CHECK(wrong == 0);
        free(one);
        fsi__el_packed_free(&p, w.s->context);
        world_end(&w);
        block_free(&b);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_both_ways_of_a_sweep_give_the_same_forces);
    RUN(test_many_contacts_go_by_the_unknowns);
    RUN(test_a_plate_rests_on_many_contacts);
    RUN(test_no_region_is_empty);
    RUN(test_rows_in_blocks_are_the_same_rows);
    return TEST_END();
}
