/* test_obstacle.c - walls of a liquid by themselves (fsi_obstacle.h): the list, motion, reactions, placement.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_obstacle.h"

/* A row of a list: what each owner adds stands behind what they share. */
typedef struct row { fsi__obstacle base; int mine; } row;

static fsi__obstacles make_list(fsi_context *context, int local)
{
    fsi__obstacles list;
    memset(&list, 0, sizeof list);
    list.context = context;
    list.dim = 3;
    list.local = local;
    list.patched = 1;
    list.size = sizeof(row);
    return list;
}

static fsi_box3 unit_box(void)
{
    fsi_box3 b;
    b.lo = fsi_v3(0, 0, 0);
    b.hi = fsi_v3(1, 1, 1);
    return b;
}

/* The unit cube as a container: liquid inside. */
static fsi_mesh *make_tank(fsi_context *context, int dim)
{
    fsi_mesh *mesh = NULL;
    CHECK(fsi__make_box_container(context, "test", unit_box(), dim, &mesh) == FSI_OK);
    return mesh;
}

static row *add(fsi__obstacles *list, const fsi_mesh *mesh, fsi_body *body, int mine)
{
    row *r = (row *)fsi__obstacles_begin(list, "test", mesh, body, 1u, NULL);
    if (!CHECK(r != NULL)) return NULL;
    r->mine = mine;
    fsi__obstacles_keep(list);
    return r;
}

/* Ids are never used twice, rows keep their order, and memory all goes back. */
static void test_obstacles_come_and_go_by_id(void)
{
    fsi_context context = fsi_default_context();
    fsi__obstacles list = make_list(&context, 0);
    fsi_mesh *tank = make_tank(&context, 3);
    int k;
    for (k = 0; k < 5; k++) add(&list, tank, NULL, k);
    CHECK(list.count == 5 && fsi__obstacles_find(&list, "test", 3) == 3 && fsi__obstacles_find(&list, "test", 7) == -1);
    CHECK(context.error.status == FSI_ERROR_ARGUMENT);
    fsi__obstacles_remove(&list, 1);
    add(&list, tank, NULL, 9);
    CHECK(list.count == 5 && fsi__obstacles_find(&list, "test", 1) == -1 && fsi__obstacles_find(&list, "test", 5) == 4);
    for (k = 0; k < 5; k++) CHECK(((row *)(void *)fsi__obstacle_at(&list, k))->mine == (k < 1 ? k : k < 4 ? k + 1 : 9));
    fsi__obstacles_free(&list);
    fsi_mesh_destroy(tank);
    CHECK(context.bytes == 0);
}

/* A mesh that moves: its shadow sweeps a part of the way, and the wall's velocity is that of the mesh. */
static void test_a_mesh_sweeps_through_the_step(void)
{
    const double middle[3] = { 1.0 / 3, 1.0 / 3, 1.0 / 3 };
    fsi_context context = fsi_default_context();
    fsi__obstacles list = make_list(&context, 0);
    fsi_mesh *tank = make_tank(&context, 3);
    fsi_box3 moved = unit_box();
    fsi__obstacle *o = &add(&list, tank, NULL, 0)->base;
    fsi__d3 v;
    fsi__obstacle_begin(&list, o);
    CHECK(!o->moves && fsi__obstacle_way(o) <= 0 && fsi__obstacle_shade(&list, o, "test") == FSI_OK && !o->shadow);
    moved.lo.x += (fsi_real)0.5;
    moved.hi.x += (fsi_real)0.5;
    CHECK(fsi__set_box_container(tank, moved) == FSI_OK);
    fsi__obstacle_begin(&list, o);
    CHECK(o->moves && fsi__obstacle_shade(&list, o, "test") == FSI_OK && o->mesh == o->shadow);
    CHECK_NEAR(fsi__obstacle_way(o), 0.5, TOL(1e-15, 1e-6));
    fsi__obstacle_follow(o, 0.5, 0.25);
    CHECK_NEAR(o->mesh->box.lo.x, 0.25, TOL(1e-15, 1e-6)); /* the box is that of the sweep */
    CHECK_NEAR(o->mesh->box.hi.x, 1.375, TOL(1e-15, 1e-6));
    v = fsi__obstacle_velocity(o, 2, middle, 0.1);
    CHECK_NEAR(v.x, 1.25, TOL(1e-13, 1e-5));
    CHECK_NEAR(v.y, 0, TOL(1e-15, 1e-6));
    fsi__obstacle_commit(o, 0.4, NULL);
    fsi__obstacle_begin(&list, o);
    CHECK_NEAR(fsi__obstacle_way(o), 0, 0);
    fsi__obstacles_free(&list);
    fsi_mesh_destroy(tank);
}

/* What an obstacle is given becomes force, torque about the origin, and forces on the corners of the face. */
static void test_reactions_add_up(void)
{
    const double bary[3] = { 0.5, 0.25, 0.25 };
    fsi_context context = fsi_default_context();
    fsi__obstacles list = make_list(&context, 0);
    fsi_mesh *tank = make_tank(&context, 3);
    fsi_vec3 force[8], sum = fsi_v3(0, 0, 0);
    fsi__obstacle *o = (fsi__obstacle *)fsi__obstacles_begin(&list, "test", tank, NULL, 1u, force);
    int k;
    if (!CHECK(o != NULL)) return;
    fsi__obstacles_keep(&list);
    fsi__obstacle_begin(&list, o);
    fsi__obstacle_push(o, 0, bary, fsi__d3_make(1, 0, 0), fsi__d3_make(0, 2, 0));
    fsi__obstacle_push(o, 3, bary, fsi__d3_make(0, 1, 0), fsi__d3_make(0, 1, 0));
    fsi__obstacle_commit(o, 0.5, NULL);
    CHECK_NEAR(o->force.y, 6, TOL(1e-15, 1e-6));
    CHECK_NEAR(o->torque.z, 4, TOL(1e-15, 1e-6));
    for (k = 0; k < 8; k++) sum = fsi_v3_add(sum, force[k]);
    CHECK_NEAR(sum.y, 6, TOL(1e-14, 1e-5));
    fsi__obstacles_free(&list);
    fsi_mesh_destroy(tank);
}

/* Teleporting takes an obstacle for where its body is; loading keeps the saved place where that is the same but for
   rounding. */
static void test_bodies_are_taken_where_they_are(void)
{
    const fsi_vec3 in_wall = fsi_v3((fsi_real)2.9, (fsi_real)0.5, (fsi_real)0.5);
    const fsi_vec3 in_tank = fsi_v3((fsi_real)3.1, (fsi_real)0.5, (fsi_real)0.5);
    int local;
    for (local = 0; local < 2; local++) {
        fsi_context context = fsi_default_context();
        fsi__obstacles list = make_list(&context, local);
        fsi_mesh *tank = make_tank(&context, 3);
        fsi_body body = fsi_default_body();
        fsi__obstacle *o = &add(&list, tank, &body, 0)->base;
        fsi_pose saved = o->at;
        CHECK_NEAR(o->reach, sqrt(3.0), TOL(1e-15, 1e-6));
        body.pose.position = fsi_v3(3, 0, 0);
        fsi__obstacle_set(&list, o);
        CHECK_NEAR(o->at.position.x, 3, 0);
        CHECK(fsi__obstacles_hold(&list, 1u, in_wall) && !fsi__obstacles_hold(&list, 2u, in_wall));
        CHECK(!fsi__obstacles_hold(&list, 1u, in_tank));
        o->at = saved;
        o->at.position = fsi_v3((fsi_real)3.0001, 0, 0);
        fsi__obstacle_load(&list, o, 1e-3);
        CHECK_NEAR(o->at.position.x, 3.0001, TOL(1e-15, 1e-6));
        fsi__obstacle_load(&list, o, 1e-5);
        CHECK_NEAR(o->at.position.x, 3, 0);
        fsi__obstacle_shift(&list, o, fsi_v3(0, 0, 1));
        CHECK_NEAR(o->at.position.z, 1, 0);
        saved.orientation.w = 3;
        CHECK(fsi__obstacle_check_pose(&list, "test", 0, o->at) == FSI_OK);
        CHECK(fsi__obstacle_check_pose(&list, "test", 0, saved) == FSI_ERROR_FORMAT);
        saved.position.x = (fsi_real)test_nan();
        CHECK(fsi__obstacle_check_pose(&list, "test", 0, saved) == FSI_ERROR_NAN);
        fsi__obstacles_free(&list);
        fsi_mesh_destroy(tank);
    }
}

/* A particle that would leave the tank stops a hair in front of its wall, keeping its way along it; one that is outside
   comes in. */
static void test_particles_stay_out_of_solids(void)
{
    fsi_context context = fsi_default_context();
    fsi__obstacles list = make_list(&context, 0);
    fsi_mesh *tank = make_tank(&context, 3);
    const fsi_box3 box = unit_box();
    const fsi_vec3 from = fsi_v3((fsi_real)0.9, (fsi_real)0.5, (fsi_real)0.5);
    fsi_vec3 x = fsi_v3((fsi_real)1.1, (fsi_real)0.6, (fsi_real)0.5);
    fsi__faces faces;
    fsi__walls w;
    add(&list, tank, NULL, 0);
    w.list = &list;
    w.domain = tank;
    w.box = &box;
    w.gap = 0.05;
    w.hair = 1e-3;
    w.reach = 0.2;
    CHECK(fsi__walls_leave_out(&w, 1u, x) && !fsi__walls_leave_out(&w, 1u, from) && !fsi__walls_leave_out(&w, 0, x));
    CHECK(fsi__own_faces(&list, NULL, fsi__path_box(from, x, (fsi_real)0.1), 1u, &faces) && faces.count == 2);
    CHECK(fsi__place(&w, &faces, 1u, from, (fsi_real)0.1, &x) == FSI__PLACED);
    CHECK_NEAR(x.x, 0.999, TOL(1e-12, 1e-5));
    CHECK_NEAR(x.y, 0.6, TOL(1e-12, 1e-5));
    x = fsi_v3((fsi_real)1.5, (fsi_real)0.6, (fsi_real)0.5);
    CHECK(fsi__squeeze(&w, 1u, x, x, &x) == (FSI__PLACED | FSI__FORCED));
    CHECK_NEAR(x.x, 0.95, TOL(1e-12, 1e-5));
    CHECK(fsi__own_faces(&list, NULL, fsi__path_box(from, x, (fsi_real)0.2), 2u, &faces) && faces.count == 0);
    fsi__obstacles_free(&list);
    fsi_mesh_destroy(tank);
}

/* A host may destroy its mesh before what stands on it: nothing of the mesh is read any more. */
static void test_the_mesh_may_go_first(void)
{
    fsi_context context = fsi_default_context();
    fsi__obstacles list = make_list(&context, 0);
    fsi_mesh *tank = make_tank(&context, 3);
    add(&list, tank, NULL, 0);
    fsi_mesh_destroy(tank);
    fsi__obstacles_free(&list);
}

/* x = A^-1 (A x) of a body's six unknowns, of whose matrix only the lower half is read. */
static void test_six_unknowns_are_solved(void)
{
    double A[6][6], x[6], y[6], z[6];
    int i, j;
    for (i = 0; i < 6; i++) {
        x[i] = i - 2.5;
        for (j = 0; j < 6; j++) A[i][j] = j > i ? 1e9 : i == j ? 7 + i : 1.0 / (1 + i + j);
    }
    fsi__times6(A, x, y);
    fsi__solve6(A, y, z);
    for (i = 0; i < 6; i++) CHECK_NEAR(z[i], x[i], 1e-13);
    CHECK_NEAR(fsi__norm6(A, x), fsi__dot6(x, y), 1e-12);
    fsi__flatten6(A);
    CHECK(A[2][2] >= 1 && A[2][2] <= 1 && A[3][5] <= 0 && A[3][5] >= 0);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_obstacles_come_and_go_by_id);
    RUN(test_a_mesh_sweeps_through_the_step);
    RUN(test_reactions_add_up);
    RUN(test_bodies_are_taken_where_they_are);
    RUN(test_particles_stay_out_of_solids);
    RUN(test_the_mesh_may_go_first);
    RUN(test_six_unknowns_are_solved);
    return TEST_END();
}
