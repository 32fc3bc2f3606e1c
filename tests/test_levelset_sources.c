/* test_levelset_sources.c - the level-set liquid: viscosity, emitters, sinks, open sides, state, what is read out, bad
   input.
   SPDX-License-Identifier: MIT */
struct fsi__ls_run;
static void spoil_after_phase(struct fsi__ls_run *run, int phase);
#define FSI__LS_AFTER_PHASE(run, phase) spoil_after_phase(run, phase)
#define FSI_LEVELSET_IMPLEMENTATION
#include "kit/test.h"
#include "../fsi_levelset.h"

static fsi_vec3 v3(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }

static fsi_box3 box3(double x0, double y0, double z0, double x1, double y1, double z1)
{
    fsi_box3 b;
    b.lo = v3(x0, y0, z0);
    b.hi = v3(x1, y1, z1);
    return b;
}

/* Which phase of a substep is to be spoilt, and how many substeps before. */
static struct { int phase, wait; } spoil = { -1, 0 };

static void spoil_after_phase(struct fsi__ls_run *run, int phase)
{
    fsi_field *field = phase == 2 || phase == 3 ? run->m->next_phi : run->m->trial_u[1];
    const fsi_field *phi = phase == 2 || phase == 3 ? run->m->next_phi : run->m->trial_phi;
    int e = 0;
    if (phase != spoil.phase || spoil.wait-- > 0) return;
    while (phi->value[e] > -(fsi_real)1.5 * run->grid->dx && e < run->grid->block_count * run->grid->block_cells - 1)
        e++;
    field->value[e] = (fsi_real)test_nan();
}

/* A box of nx x ny (x 8) cells, up along y. */
static fsi_levelset_desc make_desc(int dim, int nx, int ny, double dx, fsi_context *context)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    d.context = context;
    d.dim = dim;
    d.n[0] = nx;
    d.n[1] = ny;
    d.n[2] = nx;
    d.dx = (fsi_real)dx;
    d.gravity = v3(0, -9.81, 0);
    d.pressure_tolerance = TOL(1e-6, 1e-5);
    d.volume_tolerance = TOL(1e-8, 1e-5);
    return d;
}

static fsi_levelset *make(const fsi_levelset_desc *d)
{
    fsi_levelset *s;
    if (!CHECK(fsi_levelset_create(&s, d) == FSI_OK)) exit(1);
    return s;
}

static int step_ok(fsi_levelset *s, double dt)
{
    if (CHECK(fsi_levelset_step(s, (fsi_real)dt) == FSI_OK)) return 1;
    printf("      %s\n", fsi_levelset_error(s)->message);
    return 0;
}

static void fill(fsi_levelset *s, fsi_box3 box) { CHECK(fsi_levelset_fill_box(s, box, v3(0, 0, 0), NULL) == FSI_OK); }

static fsi_levelset_emitter_desc make_tap(fsi_vec3 center, fsi_vec3 direction, double radius, double speed)
{
    fsi_levelset_emitter_desc e = fsi_levelset_default_emitter_desc();
    e.center = center;
    e.direction = direction;
    e.radius = e.half_width = e.half_height = (fsi_real)radius;
    e.speed = (fsi_real)speed;
    return e;
}

static double emitted(const fsi_levelset *s, int id)
{
    double v = -1;
    CHECK(fsi_levelset_emitter_total(s, id, &v) == FSI_OK);
    return v;
}

static double removed(const fsi_levelset *s, int id)
{
    double v = -1;
    CHECK(fsi_levelset_sink_total(s, id, &v) == FSI_OK);
    return v;
}

/* ---- walls, viscosity ------------------------------------------------------------------------------------------ */

/* A pool between walls stays where it is, and bears its weight. */
static void test_a_pool_rests_on_its_floor(void)
{
    int dim, i;
    for (dim = 2; dim <= 3; dim++) {
        fsi_levelset_desc d = make_desc(dim, 16, 16, 1.0 / 16, NULL);
        fsi_levelset *s = make(&d);
        fill(s, box3(0, 0, 0, 1, 0.5, 1));
        for (i = 0; i < 5; i++) step_ok(s, 0.02);
        CHECK(s->stats.max_speed < TOL(1e-6, 1e-4));
        CHECK_NEAR(s->stats.volume, 0.5, TOL(1e-7, 1e-4));
        CHECK_NEAR(fsi_levelset_pressure_at(s, v3(0.5, 1.5 / 16, 0.5)), 1000 * 9.81 * (0.5 - 1.5 / 16), TOL(1e-3, 1));
        fsi_levelset_destroy(s);
    }
}

/* A plug of honey between two walls: mean speed rho g w^2/(12 mu), whatever the substep, but for its ends, which make
   it faster by a share that falls with its length; at first 1 - exp(-pi^2 nu t/w^2) of that to 4 %. Where the walls are
   slippery it falls freely. */
static double fall_of_a_plug(double mu, double length, double dt, int steps, int no_slip)
{
    fsi_levelset_desc d = make_desc(2, 16, 128, 1.0 / 16, NULL);
    fsi_levelset *s;
    double start;
    int i;
    d.viscosity = (fsi_real)mu;
    memset(d.no_slip, no_slip, sizeof d.no_slip);
    s = make(&d);
    fill(s, box3(0, 7 - length, 0, 1, 7, 0));
    for (i = 0; i < steps - 1; i++) step_ok(s, dt);
    start = (double)s->component[0].shape.centroid.y;
    step_ok(s, dt);
    CHECK(s->stats.viscosity_iterations > 0 || !no_slip); /* it falls as a rigid body */
    start -= (double)s->component[0].shape.centroid.y;
    fsi_levelset_destroy(s);
    return start / dt;
}

static void test_viscosity_resists_gravity_as_in_a_channel(void)
{
    const double ideal = 1000 * 9.81 / (12 * 1e4), shorter = fall_of_a_plug(1e4, 3, 1.0 / 60, 10, 1),
                 longer = fall_of_a_plug(1e4, 6, 1.0 / 60, 10, 1);
    CHECK_NEAR(2 * longer - shorter, ideal, 0.03 * ideal); /* without the ends */
    CHECK_NEAR(fall_of_a_plug(1e5, 3, 1.0 / 60, 5, 1), shorter / 10, 0.01 * shorter);
    CHECK_NEAR(fall_of_a_plug(1e4, 3, 1.0 / 60, 5, 0), 9.81 * 5 / 60, TOL(1e-3, 1e-2));
}

/* ---- emitters -------------------------------------------------------------------------------------------------- */

/* A faucet: what the liquid is to have is area * speed * time and what filled the nozzle, to rounding; what it has, to
   0.5 %. */
static void run_faucet(int dim, fsi_vec3 center, fsi_vec3 direction, int box, double mu)
{
    const double dx = 1.0 / 32, radius = 3.3 * dx, speed = 1.5;
    const double area = dim == 2 ? 2 * radius : (box ? 4 * radius * radius : FSI_PI * radius * radius);
    fsi_levelset_desc d = make_desc(dim, 32, 48, dx, NULL);
    fsi_levelset_emitter_desc e = make_tap(center, direction, radius, speed);
    fsi_levelset *s;
    double first = 0, worst = 0, mean = 0;
    int i, id, steps = dim == 2 ? 60 : 15;
    d.viscosity = (fsi_real)mu;
    s = make(&d);
    if (box) e.shape = FSI_LEVELSET_EMITTER_BOX;
    CHECK(fsi_levelset_add_emitter(s, &e, &id) == FSI_OK);
    for (i = 0; i < steps; i++) {
        if (!step_ok(s, 0.01)) break;
        if (i == 0) first = emitted(s, id) - area * speed * s->time;
        CHECK(first > 0.5 * area * dx && first < 3.3 * area * dx);
        CHECK_NEAR(emitted(s, id), first + area * speed * s->time, TOL(1e-12, 1e-7));
        CHECK_NEAR(s->stats.target + s->stats.lost_volume, emitted(s, id), 1e-12);
        if (i >= steps / 3 && fabs(s->stats.volume_error) > worst) worst = fabs(s->stats.volume_error);
        mean += fabs(s->stats.volume_error) / steps;
    }
    CHECK(worst <= 0.005);
    printf("      %dD%s: volume %.5f, error at worst %.4f %%, on average %.4f %%, %d components, %.2g lost\n", dim,
           box ? " box" : "", s->stats.volume, 100 * worst, 100 * mean, s->component_count, s->stats.lost_volume);
    fsi_levelset_destroy(s);
}

static void test_a_faucet_lets_out_area_times_speed(void)
{
    run_faucet(2, v3(0.5, 1.2, 0), v3(0, -1, 0), 0, 0);
    run_faucet(2, v3(0.5, 1.5, 0), v3(0, -1, 0), 0, 0);      /* in a wall */
    run_faucet(2, v3(0, 1.0, 0), v3(2, 0.3, 0), 1, 0);       /* in a wall, oblique */
    run_faucet(2, v3(0.5, 0.5, 0), v3(0.3, 1, 0), 0, 20);
    run_faucet(3, v3(0.5, 1.2, 0.5), v3(0, -1, 0), 0, 0);
    run_faucet(3, v3(0.5, 1.5, 0.5), v3(0.1, -1, 0.2), 1, 0);
}

/* From within a pool: it rises by what comes in, and the nozzle takes nothing from behind. */
static void test_an_inlet_below_the_surface_lifts_it(void)
{
    fsi_levelset_desc d = make_desc(2, 32, 32, 1.0 / 32, NULL);
    fsi_levelset *s = make(&d);
    fsi_levelset_emitter_desc e = make_tap(v3(0.3, 0.25, 0), v3(1, 0, 0), 0.0625, 0.5);
    double before;
    int i, id;
    fill(s, box3(0, 0, 0, 1, 0.5, 0));
    before = s->stats.target;
    CHECK(fsi_levelset_add_emitter(s, &e, &id) == FSI_OK);
    for (i = 0; i < 40; i++) step_ok(s, 0.02);
    CHECK_NEAR(emitted(s, id), 0.125 * 0.5 * s->time, 1e-10); /* the nozzle was full already */
    CHECK_NEAR(s->stats.volume, before + emitted(s, id), 0.002 * before);
    CHECK(s->component_count == 1);
    fsi_levelset_destroy(s);
}

/* start and stop within substeps count in full; a shut emitter's nozzle falls with the rest; it moves along with its
   velocity. */
static void test_emitters_start_stop_and_move(void)
{
    fsi_levelset_desc d = make_desc(2, 64, 32, 1.0 / 32, NULL);
    fsi_levelset *s = make(&d);
    fsi_levelset_emitter_desc e = make_tap(v3(0.3, 0.9, 0), v3(0, -1, 0), 0.1, 1);
    double first, total;
    int i, id;
    e.start = 0.033;
    e.stop = 0.1441;
    e.velocity = v3(2, 0, 0);
    CHECK(fsi_levelset_add_emitter(s, &e, &id) == FSI_OK);
    step_ok(s, 0.01);
    CHECK(emitted(s, id) <= 0 && s->component_count == 0);
    for (i = 0; i < 4; i++) step_ok(s, 0.01);
    first = emitted(s, id) - 0.2 * (s->time - e.start);
    CHECK(first > 0.01 && first < 0.021);
    for (i = 0; i < 15; i++) step_ok(s, 0.01);
    CHECK_NEAR(emitted(s, id), first + 0.2 * (e.stop - e.start), TOL(1e-12, 1e-7));
    CHECK_NEAR(s->stats.target + s->stats.lost_volume, emitted(s, id), 1e-12);
    CHECK(s->stats.momentum[0] > 1.8 * 1000 * s->stats.volume);
    total = emitted(s, id);
    e.velocity = v3(0, 0, 0);
    e.stop = 1e9;
    e.speed = 0;
    CHECK(fsi_levelset_set_emitter(s, id, &e) == FSI_OK);
    step_ok(s, 0.01);
    CHECK(emitted(s, id) <= total);
    e.center = v3(1.7, 0.9, 0);
    e.speed = 1;
    CHECK(fsi_levelset_set_emitter(s, id, &e) == FSI_OK);
    step_ok(s, 0.01);
    CHECK(emitted(s, id) > total + 0.01 && fsi_levelset_phi_at(s, v3(1.7, 0.92, 0)) < 0);
    e.center = v3(-3, 0.9, 0); /* nothing of it in the box */
    CHECK(fsi_levelset_set_emitter(s, id, &e) == FSI_OK);
    total = emitted(s, id);
    step_ok(s, 0.01);
    CHECK(emitted(s, id) <= total);
    CHECK(fsi_levelset_remove_emitter(s, id) == FSI_OK && fsi_levelset_remove_emitter(s, id) == FSI_ERROR_ARGUMENT);
    fsi_levelset_destroy(s);
}

/* ---- sinks ----------------------------------------------------------------------------------------------------- */

static fsi_mesh *make_square(double x0, double y0, double x1, double y1)
{
    const fsi_vec3 x[4] = { v3(x0, y0, 0), v3(x1, y0, 0), v3(x1, y1, 0), v3(x0, y1, 0) };
    static const int e[8] = { 0, 1, 1, 2, 2, 3, 3, 0 };
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *m;
    d.vertices = x;
    d.vertex_count = 4;
    d.elements = e;
    d.element_count = 4;
    d.corners = 2;
    if (!CHECK(fsi_mesh_create(&m, &d) == FSI_OK)) exit(1);
    return m;
}

/* What is missing from the liquid is what the sink took. With a rate it takes that much. */
static void run_sink(int shape, double rate)
{
    fsi_levelset_desc d = make_desc(2, 32, 32, 1.0 / 32, NULL);
    fsi_levelset *s = make(&d);
    fsi_levelset_sink_desc k = fsi_levelset_default_sink_desc();
    fsi_mesh *mesh = make_square(0.4, 0.1, 0.6, 0.25);
    double before, last = 0;
    int i, id;
    fill(s, box3(0, 0, 0, 1, 0.4, 0));
    CHECK(fsi_levelset_fill_sphere(s, v3(0.5, 0.75, 0), (fsi_real)0.125, v3(0, 0, 0), NULL) == FSI_OK);
    before = s->stats.target;
    k.shape = (fsi_levelset_sink_shape)shape;
    k.box = box3(0.4, 0.1, 0, 0.6, 0.25, 0);
    k.center = v3(0.5, 0.2, 0);
    k.radius = (fsi_real)0.1;
    k.mesh = mesh;
    k.rate = (fsi_real)rate;
    CHECK(fsi_levelset_add_sink(s, &k, &id) == FSI_OK);
    for (i = 0; i < 40; i++) {
        if (!step_ok(s, 0.01)) break;
        CHECK_NEAR(s->stats.target + s->stats.lost_volume + removed(s, id), before, 1e-12);
        CHECK(removed(s, id) > last);
        if (rate > 0) CHECK_NEAR(removed(s, id), rate * s->time, 0.002 * rate * s->time);
        last = removed(s, id);
        CHECK_NEAR(s->stats.volume, s->stats.target, 0.01 * before);
    }
    CHECK(s->stats.lost_volume < 1e-3 * before);
    printf("      %s, rate %g: took %.4f of %.4f, %.2g lost, %d components\n",
           shape == 0 ? "box" : (shape == 1 ? "sphere" : "mesh"), rate, last, before, s->stats.lost_volume,
           s->component_count);
    CHECK(fsi_levelset_remove_sink(s, id) == FSI_OK && fsi_levelset_sink_total(s, id, NULL) == FSI_ERROR_ARGUMENT);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(mesh);
}

static void test_sinks_take_what_is_missing(void)
{
    int shape;
    for (shape = 0; shape < 3; shape++) {
        run_sink(shape, 0);
        run_sink(shape, 0.1);
    }
}

/* However little a sink may take, it takes no more, also where many cells are equally deep in it, and the step goes
   on. */
static void test_sinks_that_take_next_to_nothing(void)
{
    const double rates[3] = { 0.01, 1e-12, 1e-20 };
    fsi_levelset_desc d = make_desc(2, 16, 16, 1.0 / 16, NULL);
    int i, k, id = -1;
    for (i = 0; i < 3; i++) {
        fsi_levelset_sink_desc drain = fsi_levelset_default_sink_desc();
        fsi_levelset *s = make(&d);
        drain.box = i > 0 ? box3(0.2, 0.1, 0, 0.7, 0.4, 0) : box3(-1, -1, 0, 2, 0.3, 0);
        drain.rate = (fsi_real)rates[i];
        fill(s, box3(0, 0, 0, 1, 0.5, 0));
        CHECK(fsi_levelset_add_sink(s, &drain, &id) == FSI_OK);
        for (k = 0; k < 10; k++) step_ok(s, 0.01);
        CHECK(removed(s, id) >= 0 && removed(s, id) <= 1.01 * rates[i] * 0.1 + TOL(1e-15, 1e-6));
        CHECK_NEAR(s->stats.target + removed(s, id), 0.5, TOL(1e-12, 1e-6));
        fsi_levelset_destroy(s);
    }
}

/* A sink over all of a drop leaves nothing, and nothing is lost. */
static void test_a_sink_swallows_a_drop(void)
{
    fsi_levelset_desc d = make_desc(2, 32, 32, 1.0 / 32, NULL);
    fsi_levelset *s = make(&d);
    fsi_levelset_sink_desc k = fsi_levelset_default_sink_desc();
    double before;
    int id;
    CHECK(fsi_levelset_fill_sphere(s, v3(0.5, 0.75, 0), (fsi_real)0.125, v3(0, 0, 0), NULL) == FSI_OK);
    before = s->stats.target;
    k.box = box3(0, 0, 0, 1, 1, 0);
    CHECK(fsi_levelset_add_sink(s, &k, &id) == FSI_OK);
    step_ok(s, 0.01);
    CHECK(s->component_count == 0 && !(s->stats.lost_volume > 0));
    CHECK_NEAR(removed(s, id), before, 1e-12);
    step_ok(s, 0.01);
    fsi_levelset_destroy(s);
}

/* ---- open sides ------------------------------------------------------------------------------------------------ */

/* A block of liquid slides over the floor and out at the side: what there is and what has left are all there was. */
static void test_a_tank_drains_through_its_open_side(void)
{
    fsi_levelset_desc d = make_desc(2, 48, 24, 1.0 / 32, NULL);
    fsi_levelset *s;
    double before, worst = 0;
    int i;
    d.open_side[1] = 1;
    s = make(&d);
    fill(s, box3(0, 0, 0, 0.75, 0.5, 0));
    before = s->stats.target;
    for (i = 0; i < 150; i++) {
        if (!step_ok(s, 0.02)) break;
        CHECK_NEAR(s->stats.target + s->stats.left_volume + s->stats.lost_volume, before, 1e-12);
        if (fabs(s->stats.volume - s->stats.target) > worst) worst = fabs(s->stats.volume - s->stats.target);
    }
    printf("      %.4f of %.4f left, volume off by %.2g of it at worst, %.2g lost, %d components\n",
           s->stats.left_volume, before, worst / before, s->stats.lost_volume, s->component_count);
    CHECK(worst < 0.01 * before);
    CHECK(s->stats.left_volume > 0.7 * before && s->stats.lost_volume < 1e-3 * before);
    fsi_levelset_destroy(s);
}

/* A drop that falls out through the floor: gone when it is through, as free fall says, and all of it has left. */
static void run_drop_out(int dim)
{
    fsi_levelset_desc d = make_desc(dim, 24, 24, 1.0 / 24, NULL);
    fsi_levelset *s;
    double before;
    int i;
    d.open_side[2] = 1;
    s = make(&d);
    CHECK(fsi_levelset_fill_sphere(s, v3(0.5, 0.4, 0.5), (fsi_real)0.2, v3(0, -1, 0), NULL) == FSI_OK);
    before = s->stats.target;
    for (i = 0; i < 40 && s->component_count > 0; i++) {
        const double bottom = 0.2 - s->time - 4.905 * s->time * s->time, top = bottom + 0.4;
        if (bottom > 0.05) CHECK_NEAR(s->stats.left_volume, 0, 1e-12);
        CHECK(top > -0.1);
        CHECK_NEAR(s->stats.volume, s->stats.target, 0.01 * before);
        if (!step_ok(s, 0.01)) break;
    }
    CHECK_NEAR(s->stats.left_volume, before, 1e-12);
    CHECK(s->component_count == 0 && !(s->stats.lost_volume > 0));
    fsi_levelset_destroy(s);
}

static void test_a_drop_falls_out_of_the_box(void)
{
    run_drop_out(2);
    run_drop_out(3);
}

/* Liquid pushed in from an open side is air: a drop that touches the side and moves away from it does not grow. */
static void test_air_comes_in_through_an_open_side(void)
{
    fsi_levelset_desc d = make_desc(2, 32, 24, 1.0 / 24, NULL);
    fsi_levelset *s;
    double before;
    int i;
    d.open_side[0] = 1;
    d.gravity = v3(0, 0, 0);
    s = make(&d);
    CHECK(fsi_levelset_fill_box(s, box3(0, 0, 0, 0.4, 1, 0), v3(1, 0, 0), NULL) == FSI_OK); /* a piston of liquid */
    before = s->stats.target;
    for (i = 0; i < 20; i++) step_ok(s, 0.02);
    CHECK_NEAR(s->stats.target, before, 1e-3 * before);
    CHECK_NEAR(s->stats.volume, before, 0.01 * before);
    CHECK_NEAR(s->component[0].shape.box.lo.x, 0.4, 0.5 / 24);
    CHECK_NEAR(s->component[0].shape.box.hi.x, 0.8, 0.5 / 24);
    fsi_levelset_destroy(s);
}

/* ---- state ----------------------------------------------------------------------------------------------------- */

/* A bit of everything: pool, drop, tap, sink, open side, viscosity, surface tension. */
static fsi_levelset *make_zoo_of(int dim, fsi_context *context, int full)
{
    fsi_levelset_desc d = make_desc(dim, 24, 32, 1.0 / 24, context);
    const fsi_vec3 drop = v3(0.45, 0.55, dim == 2 ? 0 : 0.5);
    fsi_levelset *s;
    fsi_levelset_emitter_desc e = make_tap(v3(0, 0.9, dim == 2 ? 0 : 0.5), v3(1, 0.1, 0), 0.1, 1);
    fsi_levelset_sink_desc k = fsi_levelset_default_sink_desc();
    d.open_side[1] = 1;
    d.viscosity = 1;
    d.surface_tension = (fsi_real)0.5;
    d.max_substeps = 3;
    d.time_order = 2;
    if (fsi_levelset_create(&s, &d) != FSI_OK) return NULL;
    k.shape = FSI_LEVELSET_SINK_SPHERE;
    k.center = v3(0.3, 0.1, dim == 2 ? 0 : 0.5);
    k.radius = (fsi_real)0.1;
    k.rate = (fsi_real)0.1;
    if ((!full || fsi_levelset_fill_box(s, box3(0, 0, 0, 0.6, 0.3, 1), v3(0, 0, 0), NULL) == FSI_OK)
        && (!full || fsi_levelset_fill_sphere(s, drop, (fsi_real)0.15, v3(0, -1, 0), NULL) == FSI_OK)
        && fsi_levelset_add_emitter(s, &e, NULL) == FSI_OK && fsi_levelset_add_sink(s, &k, NULL) == FSI_OK) return s;
    fsi_levelset_destroy(s);
    return NULL;
}

static fsi_levelset *make_zoo(int dim, fsi_context *context) { return make_zoo_of(dim, context, 1); }

static void *save_state(const fsi_levelset *s, size_t *size)
{
    void *buffer;
    CHECK(fsi_levelset_save(s, NULL, 0, size) == FSI_OK);
    buffer = malloc(*size);
    CHECK(fsi_levelset_save(s, buffer, *size, size) == FSI_OK);
    return buffer;
}

/* After load the same steps give the same bits, in the simulator that was saved and in another one made alike. */
static void test_saved_states_go_on_with_the_same_bits(void)
{
    int dim, i;
    for (dim = 2; dim <= 3; dim++) {
        const int steps = dim == 2 ? 12 : 3;
        fsi_levelset *s = make_zoo(dim, NULL), *other = make_zoo(dim, NULL);
        uint64_t hash[12], start;
        double volume, left;
        size_t size;
        void *state;
        for (i = 0; i < steps; i++) step_ok(s, 0.01);
        state = save_state(s, &size);
        start = fsi_levelset_hash(s);
        volume = s->stats.volume;
        left = s->stats.left_volume;
        for (i = 0; i < steps; i++) {
            step_ok(s, 0.01);
            hash[i] = fsi_levelset_hash(s);
        }
        CHECK(hash[0] != start);
        CHECK(fsi_levelset_load(s, state, size) == FSI_OK && fsi_levelset_load(other, state, size) == FSI_OK);
        CHECK(fsi_levelset_hash(s) == start && fsi_levelset_hash(other) == start);
        CHECK(memcmp(&s->stats.volume, &volume, sizeof volume) == 0 &&
              memcmp(&other->stats.volume, &volume, sizeof volume) == 0);
        CHECK(memcmp(&other->stats.left_volume, &left, sizeof left) == 0 && fsi_levelset_suggest_dt(s) > 0);
        for (i = 0; i < steps; i++) {
            step_ok(s, 0.01);
            step_ok(other, 0.01);
            CHECK(fsi_levelset_hash(s) == hash[i] && fsi_levelset_hash(other) == hash[i]);
        }
        free(state);
        fsi_levelset_destroy(s);
        fsi_levelset_destroy(other);
    }
}

static void test_damaged_states_are_refused(void)
{
    fsi_levelset *s = make_zoo(2, NULL), *other;
    fsi_levelset_desc d = make_desc(2, 24, 32, 1.0 / 24, NULL);
    uint64_t random = 5, hash;
    size_t size, k;
    unsigned char *state, *copy;
    int i;
    for (i = 0; i < 3; i++) step_ok(s, 0.01);
    state = (unsigned char *)save_state(s, &size);
    copy = (unsigned char *)malloc(size);
    step_ok(s, 0.01);
    hash = fsi_levelset_hash(s);
    for (i = 0; i < 200; i++) {
        memcpy(copy, state, size);
        copy[(size_t)(test_random(&random) * (double)size)] ^= (unsigned char)(1 + 254 * test_random(&random));
        CHECK(fsi_levelset_load(s, copy, size) != FSI_OK);
    }
    for (k = 0; k < size; k += 1 + size / 50) CHECK(fsi_levelset_load(s, state, k) != FSI_OK);
    CHECK(fsi_levelset_load(s, NULL, size) != FSI_OK && fsi_levelset_hash(s) == hash);
    CHECK(fsi_levelset_save(s, copy, 10, &k) != FSI_OK && k > 10);
    other = make(&d); /* no emitter */
    hash = fsi_levelset_hash(other);
    CHECK(fsi_levelset_load(other, state, size) == FSI_ERROR_FORMAT && fsi_levelset_hash(other) == hash);
    fsi_levelset_destroy(other);
    d.n[0] = 25;
    other = make(&d);
    CHECK(fsi_levelset_load(other, state, size) == FSI_ERROR_FORMAT);
    fsi_levelset_destroy(other);
    CHECK(fsi_levelset_load(s, state, size) == FSI_OK);
    step_ok(s, 0.01);
    fsi_levelset_destroy(s);
    free(state);
    free(copy);
}

/* A state that is whole by its checksum but says what cannot be. */
static void test_states_that_lie_are_refused(void)
{
    fsi_levelset *s = make_zoo(2, NULL);
    size_t size, head, k;
    unsigned char *state, *copy;
    uint64_t hash;
    int i, refused = 0;
    step_ok(s, 0.01);
    state = (unsigned char *)save_state(s, &size);
    copy = (unsigned char *)malloc(size);
    hash = fsi_levelset_hash(s);
    for (head = 8; head < 64; head++) { /* where the payload begins: what gives the checksum in the header */
        const uint64_t sum = fsi_hash(state + head, size - head, 0);
        for (k = 0; k + 8 <= head; k += 4)
            if (memcmp(state + k, &sum, 8) == 0) break;
        if (k + 8 <= head) break;
    }
    if (!CHECK(head < 64)) return;
    for (i = 0; i < 300; i++) {
        const size_t at = head + (i < 200 ? (size_t)i : (size_t)((double)(size - head - 8) * i / 300));
        uint64_t sum;
        memcpy(copy, state, size);
        memset(copy + at, 0xff, 8); /* -1, or NaN */
        sum = fsi_hash(copy + head, size - head, 0);
        memcpy(copy + k, &sum, 8);
        /* a whole number may be any */
        if (fsi_levelset_load(s, copy, size) == FSI_OK) CHECK(fsi_levelset_load(s, state, size) == FSI_OK);
        else refused++;
        CHECK(fsi_levelset_hash(s) == hash);
    }
    printf("      %d of 300 refused\n", refused);
    CHECK(refused > 250);
    step_ok(s, 0.01);
    fsi_levelset_destroy(s);
    free(state);
    free(copy);
}

static void test_threads_do_not_matter(void)
{
    static const int threads[3] = { 1, 2, 5 };
    uint64_t hash[2][3];
    int dim, t, i;
    for (dim = 2; dim <= 3; dim++) {
        for (t = 0; t < 3; t++) {
            fsi_context context = fsi_default_context();
            fsi_levelset *s;
            test_threads(&context, threads[t], t > 0);
            s = make_zoo(dim, &context);
            for (i = 0; i < (dim == 2 ? 10 : 3); i++) step_ok(s, 0.01);
            hash[dim - 2][t] = fsi_levelset_hash(s);
            fsi_levelset_destroy(s);
            CHECK(context.bytes == 0);
        }
        CHECK(hash[dim - 2][0] == hash[dim - 2][1] && hash[dim - 2][0] == hash[dim - 2][2]);
    }
}

/* ---- what fails changes nothing -------------------------------------------------------------------------------- */

static void test_every_allocation_may_fail(void)
{
    fsi_context context = fsi_default_context();
    fsi_levelset *s = NULL;
    long fail;
    int i, done = 0;
    size_t size;
    void *state;
    for (fail = 1; !s && fail < 500; fail++) { /* making it */
        test_fail_allocator(&context, fail);
        s = make_zoo(2, &context);
        if (!s) CHECK(test_live_bytes() == 0 && context.error.status == FSI_ERROR_MEMORY);
    }
    CHECK(fail > 50);
    for (fail = 1; done < 6 && fail < 300; fail++) { /* steps that need more memory than ever */
        const uint64_t hash = fsi_levelset_hash(s);
        test_fail_allocator(&context, fail);
        if (fsi_levelset_step(s, (fsi_real)0.02) == FSI_OK) {
            done++;
            fail = 0;
        } else CHECK(fsi_levelset_hash(s) == hash && context.error.status == FSI_ERROR_MEMORY);
    }
    CHECK(done == 6);
    test_fail_allocator(&context, 0);
    /* more than the other one has */
    CHECK(fsi_levelset_fill_sphere(s, v3(0.45, 1.1, 0), (fsi_real)0.2, v3(0, 0, 0), NULL) == FSI_OK);
    state = save_state(s, &size);
    fsi_levelset_destroy(s);
    CHECK(test_live_bytes() == 0);
    s = make_zoo_of(2, &context, 0); /* has no blocks yet */
    for (fail = 1; fail < 100; fail++) { /* load */
        const uint64_t hash = fsi_levelset_hash(s);
        test_fail_allocator(&context, fail);
        if (fsi_levelset_load(s, state, size) == FSI_OK) break;
        CHECK(fsi_levelset_hash(s) == hash && context.error.status == FSI_ERROR_MEMORY);
    }
    CHECK(fail > 1 && fail < 100);
    test_fail_allocator(&context, 0);
    for (i = 0; i < 3; i++) step_ok(s, 0.01);
    fsi_levelset_destroy(s);
    CHECK(test_live_bytes() == 0);
    free(state);
}

/* In the steady state a step allocates nothing; desc.reserve sees to it from the first blocks on. */
static void test_a_quiet_pool_allocates_nothing(void)
{
    fsi_context context = fsi_default_context();
    fsi_levelset_desc d = make_desc(2, 32, 32, 1.0 / 32, &context);
    fsi_levelset *s;
    long long allocs;
    int i;
    d.viscosity = 1;
    d.reserve = 30;
    s = make(&d);
    fill(s, box3(0, 0, 0, 1, 0.5, 0));
    for (i = 0; i < 3; i++) step_ok(s, 0.01);
    allocs = s->stats.allocs;
    for (i = 0; i < 10; i++) step_ok(s, 0.01);
    CHECK(s->stats.allocs == allocs);
    fsi_levelset_destroy(s);
}

/* A NaN after any phase of any substep ends the step; nothing has changed. */
static void test_nan_at_every_phase_changes_nothing(void)
{
    int wait, phase;
    for (wait = 0; wait < 2; wait++)
        for (phase = 0; phase < 5; phase++) {
            fsi_levelset *s = make_zoo(2, NULL), *twin = make_zoo(2, NULL);
            uint64_t hash;
            fsi_status status;
            step_ok(s, 0.01);
            step_ok(twin, 0.01);
            hash = fsi_levelset_hash(s);
            spoil.phase = phase;
            spoil.wait = wait;
            status = fsi_levelset_step(s, (fsi_real)0.03);
            spoil.phase = -1;
            if (!CHECK(status == FSI_ERROR_NAN))
                printf("      phase %d: %d %s\n", phase, (int)status, fsi_levelset_error(s)->message);
            CHECK(fsi_levelset_hash(s) == hash);
            step_ok(s, 0.01);
            step_ok(twin, 0.01);
            CHECK(fsi_levelset_hash(s) == fsi_levelset_hash(twin));
            fsi_levelset_destroy(s);
            fsi_levelset_destroy(twin);
        }
}

/* What the caller writes into u may be NaN: the step says where. */
static void test_nan_in_velocities_is_named(void)
{
    fsi_levelset *s = make_zoo(2, NULL);
    const int e = s->grid->block_count * s->grid->block_cells - 5;
    const fsi_real before = s->u[1]->value[e];
    uint64_t hash;
    s->u[1]->value[e] = (fsi_real)test_inf();
    hash = fsi_levelset_hash(s);
    CHECK(fsi_levelset_step(s, (fsi_real)0.01) == FSI_ERROR_NAN && fsi_levelset_error(s)->element == e &&
          strstr(fsi_levelset_error(s)->message, "u[1]"));
    CHECK(fsi_levelset_hash(s) == hash);
    CHECK(fsi_levelset_step(s, 0) == FSI_ERROR_NAN);
    s->u[1]->value[e] = before;
    step_ok(s, 0.01);
    fsi_levelset_destroy(s);
}

/* ---- bad input ------------------------------------------------------------------------------------------------- */

static void test_steps_of_every_length(void)
{
    fsi_levelset *s = make_zoo(2, NULL);
    uint64_t hash = fsi_levelset_hash(s);
    fsi_status status;
    step_ok(s, 0);
    CHECK(fsi_levelset_hash(s) == hash && s->stats.substeps == 0);
    CHECK(fsi_levelset_step(s, (fsi_real)-0.01) == FSI_ERROR_ARGUMENT &&
          fsi_levelset_step(s, (fsi_real)test_nan()) != FSI_OK);
    CHECK(fsi_levelset_hash(s) == hash);
    step_ok(s, 1e-9);
    step_ok(s, 0.2); /* max_substeps 3 is not enough */
    CHECK(s->stats.degraded == 1 && s->stats.substeps == 3);
    hash = fsi_levelset_hash(s);
    status = fsi_levelset_step(s, (fsi_real)1e30);
    CHECK(status == FSI_OK || fsi_levelset_hash(s) == hash);
    printf("      a step of 1e30 s: %s\n", status == FSI_OK ? "done" : fsi_levelset_error(s)->message);
    CHECK(fsi_is_finite(s->stats.max_speed) && fsi_is_finite(s->stats.volume));
    CHECK(fsi_levelset_step(NULL, (fsi_real)0.01) == FSI_ERROR_COOKIE);
    fsi_levelset_destroy(s);
}

#define REFUSED(field, bad, status) do { fsi_levelset_desc d_ = make_desc(2, 16, 16, 0.1, &context); fsi_levelset *s_ = NULL; d_.field = (bad); \
    CHECK(fsi_levelset_create(&s_, &d_) == (status) && !s_); } while (0)

static void test_descs_are_checked(void)
{
    fsi_context context = fsi_default_context();
    REFUSED(dim, 4, FSI_ERROR_ARGUMENT);
    REFUSED(n[1], 0, FSI_ERROR_ARGUMENT);
    REFUSED(dx, 0, FSI_ERROR_ARGUMENT);
    REFUSED(dx, (fsi_real)test_nan(), FSI_ERROR_NAN);
    REFUSED(origin.x, (fsi_real)test_inf(), FSI_ERROR_NAN);
    REFUSED(density, -1, FSI_ERROR_ARGUMENT);
    REFUSED(viscosity, (fsi_real)test_nan(), FSI_ERROR_NAN);
    REFUSED(open_side[3], 2, FSI_ERROR_ARGUMENT);
    REFUSED(no_slip[0], 7, FSI_ERROR_ARGUMENT);
    REFUSED(tension, (fsi_levelset_tension)5, FSI_ERROR_ARGUMENT);
    REFUSED(phi_scheme, (fsi_grid_scheme)3, FSI_ERROR_ARGUMENT);
    REFUSED(max_substeps, 0, FSI_ERROR_ARGUMENT);
    REFUSED(reserve, -1, FSI_ERROR_ARGUMENT);
    REFUSED(cookie, 1, FSI_ERROR_COOKIE);
    CHECK(context.bytes == 0);
}

static void test_fills_are_checked(void)
{
    fsi_levelset *s = make_zoo(2, NULL);
    const double target = s->stats.target;
    const uint64_t hash = fsi_levelset_hash(s);
    CHECK(fsi_levelset_fill_sphere(s, v3(0.5, 0.5, 0), 0, v3(0, 0, 0), NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_levelset_fill_sphere(s, v3(0.5, 0.5, 0), -1, v3(0, 0, 0), NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_levelset_fill_sphere(s, v3(0.5, test_nan(), 0), 1, v3(0, 0, 0), NULL) == FSI_ERROR_NAN);
    CHECK(fsi_levelset_fill_sphere(s, v3(0.5, 0.5, 0), 1, v3(0, test_inf(), 0), NULL) == FSI_ERROR_NAN);
    CHECK(fsi_levelset_fill_box(s, box3(1, 0, 0, 0, 1, 0), v3(0, 0, 0), NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_levelset_fill_mesh(s, NULL, v3(0, 0, 0), NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_levelset_hash(s) == hash);
    CHECK(fsi_levelset_fill_sphere(s, v3(50, 0.5, 0), 1, v3(0, 0, 0), NULL) == FSI_OK &&
          fsi_levelset_fill_box(s, box3(-9, -9, 0, -8, -8, 0), v3(0, 0, 0), NULL) == FSI_OK);
    CHECK_NEAR(s->stats.target, target, 1e-15); /* nothing of it in the box */
    fsi_levelset_destroy(s);
}

static void test_sources_are_checked(void)
{
    fsi_levelset *s = make_zoo(2, NULL);
    fsi_levelset_emitter_desc e = make_tap(v3(0.5, 0.5, 0), v3(1, 0, 0), 0.1, 1), bad;
    fsi_levelset_sink_desc k = fsi_levelset_default_sink_desc();
    const uint64_t hash = fsi_levelset_hash(s);
    int id = 77;
    bad = e; bad.radius = 0; CHECK(fsi_levelset_add_emitter(s, &bad, &id) == FSI_ERROR_ARGUMENT);
    bad = e; bad.radius = (fsi_real)test_nan(); CHECK(fsi_levelset_add_emitter(s, &bad, &id) == FSI_ERROR_NAN);
    bad = e; bad.direction = v3(0, 0, 0); CHECK(fsi_levelset_add_emitter(s, &bad, &id) == FSI_ERROR_ARGUMENT);
    bad = e; bad.direction = v3(0, 0, 1); CHECK(fsi_levelset_add_emitter(s, &bad, &id) == FSI_ERROR_ARGUMENT);
    bad = e; bad.center.x = (fsi_real)test_nan(); CHECK(fsi_levelset_add_emitter(s, &bad, &id) == FSI_ERROR_NAN);
    bad = e; bad.speed = -1; CHECK(fsi_levelset_add_emitter(s, &bad, &id) == FSI_ERROR_ARGUMENT);
    bad = e; bad.start = test_nan(); CHECK(fsi_levelset_add_emitter(s, &bad, &id) == FSI_ERROR_NAN);
    bad = e; bad.cookie = 0; CHECK(fsi_levelset_add_emitter(s, &bad, &id) == FSI_ERROR_COOKIE);
    bad = e;
    bad.shape = (fsi_levelset_emitter_shape)2;
    CHECK(fsi_levelset_set_emitter(s, 0, &bad) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_levelset_set_emitter(s, 9, &e) == FSI_ERROR_ARGUMENT &&
          fsi_levelset_emitter_total(s, -1, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_levelset_add_emitter(s, NULL, &id) == FSI_ERROR_ARGUMENT &&
          fsi_levelset_add_emitter(NULL, &e, &id) == FSI_ERROR_COOKIE);
    CHECK(fsi_levelset_add_sink(s, &k, &id) == FSI_ERROR_ARGUMENT); /* no box */
    k.shape = FSI_LEVELSET_SINK_SPHERE;
    CHECK(fsi_levelset_add_sink(s, &k, &id) == FSI_ERROR_ARGUMENT);
    k.shape = FSI_LEVELSET_SINK_MESH;
    CHECK(fsi_levelset_add_sink(s, &k, &id) == FSI_ERROR_COOKIE);
    k.rate = (fsi_real)test_nan();
    CHECK(fsi_levelset_add_sink(s, &k, &id) == FSI_ERROR_NAN && fsi_levelset_remove_sink(s, 5) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_levelset_hash(s) == hash && id == 77);
    fsi_levelset_destroy(s);
}

/* ---- read out -------------------------------------------------------------------------------------------------- */

static void test_a_component_takes_another_volume(void)
{
    fsi_levelset_desc d = make_desc(2, 32, 32, 1.0 / 32, NULL);
    fsi_levelset *s;
    int i;
    d.gravity = v3(0, 0, 0);
    s = make(&d);
    CHECK(fsi_levelset_fill_sphere(s, v3(0.5, 0.5, 0), (fsi_real)0.2, v3(0, 0, 0), NULL) == FSI_OK);
    CHECK(fsi_levelset_set_volume(s, 1, 0.2) == FSI_ERROR_ARGUMENT &&
          fsi_levelset_set_volume(s, 0, -1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_levelset_set_volume(s, 0, 1.1) == FSI_ERROR_ARGUMENT &&
          fsi_levelset_set_volume(s, 0, test_nan()) == FSI_ERROR_NAN);
    CHECK(fsi_levelset_set_volume(s, 0, 0.15) == FSI_OK);
    for (i = 0; i < 10; i++) step_ok(s, 0.01);
    CHECK_NEAR(s->stats.volume, 0.15, 0.15 * TOL(1e-3, 1e-3));
    fsi_levelset_destroy(s);
}

/* A ball is to have `share` more of its volume, or less: what one step leaves of that, in at most `iterations`. */
static void run_correction(double radius, double share, double left, int iterations)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = -1; k <= 1; k += 2) {
            fsi_levelset_desc d = make_desc(dim, 32, 32, 1.0 / 32, NULL);
            fsi_levelset *s;
            d.gravity = v3(0, 0, 0);
            s = make(&d);
            CHECK(fsi_levelset_fill_sphere(s, v3(0.503, 0.491, 0.512), (fsi_real)radius, v3(0, 0, 0), NULL) == FSI_OK);
            CHECK(fsi_levelset_set_volume(s, 0, (1 + share * k) * s->stats.volume) == FSI_OK);
            step_ok(s, 1e-6);
            CHECK_NEAR(s->stats.volume_error, 0, left);
            CHECK(s->stats.volume_iterations <= iterations);
            fsi_levelset_destroy(s);
        }
}

/* Seven eighths of a little come, as marching measures it; by S it is right to rounding. */
static void test_one_step_puts_a_volume_right(void) { run_correction(0.25, 0.01, 1.6e-3, 4); }

/* Where much is missing, marching looks again: what the first correction leaves, a tenth of it, goes too. */
static void test_much_that_is_missing_comes_in_one_step(void) { run_correction(0.1875, 0.05, 2e-3, 60); }

static void test_copies_are_what_stands_in_the_fields(void)
{
    int dim, i, j, k, a;
    for (dim = 2; dim <= 3; dim++) {
        fsi_levelset *s = make_zoo(dim, NULL);
        const int lo[3] = { 3, 5, dim == 2 ? 0 : 7 }, n[3] = { 9, 4, dim == 2 ? 1 : 3 };
        const int over[3] = { 30, 4, 1 };
        float phi[9 * 4 * 3], p[9 * 4 * 3], u[9 * 4 * 3 * 3], *all = (float *)malloc(24 * 32 * 24 * sizeof(float));
        double off = 0;
        step_ok(s, 0.01);
        CHECK(fsi_levelset_copy(s, FSI_LEVELSET_PHI, lo, n, phi) == FSI_OK &&
              fsi_levelset_copy(s, FSI_LEVELSET_PRESSURE, lo, n, p) == FSI_OK);
        CHECK(fsi_levelset_copy(s, FSI_LEVELSET_VELOCITY, lo, n, u) == FSI_OK &&
              fsi_levelset_copy(s, FSI_LEVELSET_PHI, NULL, NULL, all) == FSI_OK);
        for (k = 0; k < n[2]; k++)
            for (j = 0; j < n[1]; j++)
                for (i = 0; i < n[0]; i++) {
                    const int at = (k * n[1] + j) * n[0] + i;
                    const fsi_vec3 x = fsi_grid_position(s->grid, FSI_CELLS, lo[0] + i, lo[1] + j, lo[2] + k),
                                   v = fsi_levelset_velocity_at(s, x);
                    const double w[3] = { (double)v.x, (double)v.y, (double)v.z };
                    off = fmax(off, fabs((double)(float)fsi_levelset_phi_at(s, x) - (double)phi[at]));
                    off = fmax(off, fabs((double)(float)fsi_levelset_pressure_at(s, x) - (double)p[at]) / 1000);
                    for (a = 0; a < 3; a++) off = fmax(off, fabs(w[a] - (double)u[3 * at + a]));
                    off =
                        fmax(off, fabs((double)all[((lo[2] + k) * 32 + lo[1] + j) * 24 + lo[0] + i] - (double)phi[at]));
                }
        CHECK(off < 1e-5);
        CHECK(fsi_levelset_copy(s, FSI_LEVELSET_PHI, lo, over, phi) == FSI_ERROR_ARGUMENT &&
              fsi_levelset_copy(s, FSI_LEVELSET_PHI, lo, NULL, phi) == FSI_ERROR_ARGUMENT);
        CHECK(fsi_levelset_copy(s, (fsi_levelset_field)3, lo, n, phi) == FSI_ERROR_ARGUMENT &&
              fsi_levelset_copy(s, FSI_LEVELSET_PHI, lo, n, NULL) == FSI_ERROR_ARGUMENT);
        free(all);
        fsi_levelset_destroy(s);
    }
}

static struct { int lines, triangles, colors; uint32_t rgb[8]; double area; } drawn;

static void see(uint32_t rgb)
{
    int k = 0;
    while (k < drawn.colors && drawn.rgb[k] != rgb) k++;
    if (k == drawn.colors && k < 8) drawn.rgb[drawn.colors++] = rgb;
}

static void draw_line(void *user, fsi_vec3 a, fsi_vec3 b, uint32_t rgb)
{
    (void)user;
    drawn.lines++;
    see(rgb);
    if (rgb != 0x606060u) drawn.area += (double)fsi_v3_norm(fsi_v3_sub(a, b));
}

static void draw_triangle(void *user, fsi_vec3 a, fsi_vec3 b, fsi_vec3 c, uint32_t rgb)
{
    (void)user;
    drawn.triangles++;
    see(rgb);
    drawn.area += (double)fsi_v3_norm(fsi_v3_cross(fsi_v3_sub(b, a), fsi_v3_sub(c, a))) / 2;
}

static void test_the_picture_shows_the_surface(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        fsi_levelset_desc d = make_desc(dim, 40, 40, 1.0 / 40, NULL);
        fsi_levelset *s = make(&d);
        fsi_debug_draw draw;
        memset(&draw, 0, sizeof draw);
        fsi_levelset_debug_draw(s, &draw);
        draw.line = draw_line;
        draw.triangle = draw_triangle;
        CHECK(fsi_levelset_fill_sphere(s, v3(0.25, 0.5, 0.5), (fsi_real)0.2, v3(0, 0, 0), NULL) == FSI_OK &&
              fsi_levelset_fill_sphere(s, v3(0.75, 0.5, 0.5), (fsi_real)0.2, v3(0, 0, 0), NULL) == FSI_OK);
        memset(&drawn, 0, sizeof drawn);
        fsi_levelset_debug_draw(s, &draw);
        CHECK_NEAR(drawn.area, dim == 2 ? 4 * FSI_PI * 0.2 : 8 * FSI_PI * 0.04, 0.02);
        CHECK(drawn.colors == 3 && (dim == 2 ? drawn.triangles == 0 : drawn.lines == 12 * s->grid->block_count));
        fsi_levelset_debug_draw(NULL, &draw);
        fsi_levelset_debug_draw(s, NULL);
        fsi_levelset_destroy(s);
    }
}

/* A disc of 40 corners. */
static fsi_mesh *make_disc(double x, double y, double radius)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh = NULL;
    fsi_vec3 v[40];
    int e[80], k;
    for (k = 0; k < 40; k++) {
        v[k] = v3(x + radius * cos(FSI_PI * k / 20), y - radius * sin(FSI_PI * k / 20), 0);
        e[2 * k] = k;
        e[2 * k + 1] = (k + 1) % 40;
    }
    d.vertices = v;
    d.vertex_count = 40;
    d.elements = e;
    d.element_count = 40;
    d.corners = 2;
    CHECK(fsi_mesh_create(&mesh, &d) == FSI_OK);
    return mesh;
}

/* Blocks come and go as a drop falls past a disc that moves: in each of them psi is the distance to where the disc is,
   measured in new ones only; points of its mesh that are nearest to faces are looked for once as long as it stands
   there, by a body or not. */
static void test_what_is_kept_of_solids_is_current(void)
{
    int kind, t, e, f, known = 0, changed = 0;
    for (kind = 0; kind < 2; kind++) {
        fsi_levelset_desc d = make_desc(2, 96, 96, 1.0 / 96, NULL);
        fsi_levelset_obstacle_desc o = fsi_levelset_default_obstacle_desc();
        fsi_body body = fsi_default_body();
        fsi_mesh *mesh = make_disc(0.4, 0.4, 0.1);
        fsi_levelset *s = NULL;
        fsi_field *distance = NULL;
        fsi_vec3 x[40];
        CHECK(fsi_levelset_create(&s, &d) == FSI_OK);
        CHECK(fsi_levelset_fill_sphere(s, v3(0.6, 0.75, 0), (fsi_real)0.15, v3(0, -2, 0), NULL) == FSI_OK);
        o.mesh = mesh;
        o.body = kind ? NULL : &body;
        body.pose.position = body.end.position = v3(0.4, 0.4, 0);
        CHECK(fsi_levelset_add_obstacle(s, &o, &e) == FSI_OK);
        CHECK(fsi_grid_add_field(s->grid, FSI_CELLS, 1, &distance) == FSI_OK);
        for (t = 0; t < 12; t++) {
            fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
            const fsi_vec3 way = v3(0.004, 0.003, 0);
            const int before = s->grid->block_count;
            fsi__ls_run run;
            body.pose = body.end;
            if (!kind) body.end.position = fsi_v3_add(body.pose.position, way);
            for (e = 0; e < 40 && kind; e++) x[e] = fsi_v3_add(mesh->vertices[e], way);
            if (kind) CHECK(fsi_mesh_set(mesh, x, 40) == FSI_OK);
            CHECK(fsi_levelset_step(s, (fsi_real)0.01) == FSI_OK);
            changed += s->grid->block_count != before;
            run = fsi__ls_make_run(s);
            fsi__ls_find_solids(&run);
            CHECK(fsi__ls_find_faces(&run) == FSI_OK);
            CHECK(fsi_grid_mesh_distance(distance, m->obstacle[0].shadow,
                                         (int)floor((double)(m->psi->background / d.dx) + 0.5)) == FSI_OK);
            for (e = 0; e < s->grid->block_count * s->grid->block_cells; e++)
                CHECK(fabs((double)(m->psi->value[e] - distance->value[e])) <= 1e-6 * (double)d.dx);
            for (f = 0; f < m->obstacle[0].faces->count && kind; f++) {
                const fsi_grid_faces *faces = m->obstacle[0].faces;
                const fsi_vec3 at = fsi__ls_entry_position(
                    s->grid, (fsi_grid_place)((int)FSI_FACES_X + fsi__ls_face_axis(faces, f)), faces->entry[f]);
                if (m->obstacle[0].foot[f].face == -2) continue;
                known++;
                CHECK(m->obstacle[0].foot[f].face ==
                      fsi_mesh_closest(m->obstacle[0].shadow, at, FSI_REAL_MAX, -1).face);
            }
        }
        fsi_levelset_destroy(s);
        fsi_mesh_destroy(mesh);
    }
    CHECK(known > 100 && changed > 4);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_pool_rests_on_its_floor);
    RUN(test_viscosity_resists_gravity_as_in_a_channel);
    RUN_PHYSICS(test_a_faucet_lets_out_area_times_speed);
    RUN(test_an_inlet_below_the_surface_lifts_it);
    RUN(test_emitters_start_stop_and_move);
    RUN_PHYSICS(test_sinks_take_what_is_missing);
    RUN(test_sinks_that_take_next_to_nothing);
    RUN(test_a_sink_swallows_a_drop);
    RUN(test_a_tank_drains_through_its_open_side);
    RUN(test_a_drop_falls_out_of_the_box);
    RUN(test_air_comes_in_through_an_open_side);
    RUN(test_saved_states_go_on_with_the_same_bits);
    RUN(test_damaged_states_are_refused);
    RUN(test_states_that_lie_are_refused);
    RUN(test_threads_do_not_matter);
    RUN(test_every_allocation_may_fail);
    RUN(test_a_quiet_pool_allocates_nothing);
    RUN(test_nan_at_every_phase_changes_nothing);
    RUN(test_nan_in_velocities_is_named);
    RUN(test_steps_of_every_length);
    RUN(test_descs_are_checked);
    RUN(test_fills_are_checked);
    RUN(test_sources_are_checked);
    RUN(test_a_component_takes_another_volume);
    RUN(test_one_step_puts_a_volume_right);
    RUN(test_much_that_is_missing_comes_in_one_step);
    RUN(test_copies_are_what_stands_in_the_fields);
    RUN(test_the_picture_shows_the_surface);
    RUN(test_what_is_kept_of_solids_is_current);
    return TEST_END();
}
