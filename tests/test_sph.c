/* test_sph.c - the liquid: energy, momentum, hydrostatics, dam breaks; and the promises: determinism, state, rollback, refusals.
   SPDX-License-Identifier: MIT */
#include "kit/test_sph_scenes.h"

/* ---- energy --------------------------------------------------------------------------------------------------- */

enum { FREE_BLOCK, DENSE_BLOCK, BLOCK_AGAINST_WALL, ENERGY_SCENES };

/* A block of liquid whose stiffness number is S at dt = 1 ms. */
static fsi_sph *energy_scene(int scene, double S, int accelerate, int iters, fsi_mesh *wall)
{
    fsi_sph_desc d = make_desc(3, 0.02);
    fsi_sph *s;
    uint64_t random = 4;
    int n[3], i;
    n[0] = n[1] = n[2] = 7;
    d.gravity = v3(0, 0, 0);
    d.stiffness = (fsi_real)(S * 1000 * 0.02 * 0.02 / 1e-6);
    d.accelerate = accelerate;
    d.min_iters = d.max_iters = iters;
    d.tolerance = 0;
    d.max_substeps = 1;
    s = make_sph(&d);
    add_lattice(s, v3(0, 0, 0.006), n, scene == DENSE_BLOCK ? 0.0155 : 0.0185, 0.1, &random);
    if (scene == BLOCK_AGAINST_WALL) CHECK(fsi_sph_add_mesh(s, wall, NULL) == FSI_OK);
    for (i = 0; i < s->count && scene == BLOCK_AGAINST_WALL; i++) s->velocity[i] = v3(0, 0, -5);
    return s;
}

/* T3: the same step with more and more sweeps; the energy where the solve ends never rises (sph.md 6). Contacts change
   their stiffness on the way, and with it the energy: against the wall only start and end are compared, S = 0.01 not. */
static void test_sweeps_never_raise_the_energy(void)
{
    static const double S[4] = { 0.01, 1, 10, 100 };
    fsi_mesh *wall;
    int scene, k, accelerate, iters;
    shape_begin(3);
    shape_sheet(v3(-1, -1, 0), v3(2, 0, 0), v3(0, 2, 0), 2, 2);
    wall = shape_make(FSI_MESH_OPEN, 0);
    for (scene = 0; scene < ENERGY_SCENES; scene++) {
        for (k = 0; k < 4; k++) {
            for (accelerate = 0; accelerate < 2; accelerate++) {
                double before = 0;
                for (iters = 1; iters <= 30; iters += iters < 6 ? 1 : 6) {
                    fsi_sph *s = energy_scene(scene, S[k], accelerate, iters, wall);
                    step_ok(s, 1e-3);
                    if (scene != BLOCK_AGAINST_WALL || k > 0) CHECK(s->stats.energy_end <= s->stats.energy_start * (1 + 1e-5));
                    if (scene != BLOCK_AGAINST_WALL && iters > 1) CHECK(s->stats.energy_end <= before * (1 + 1e-5));
                    before = s->stats.energy_end;
                    fsi_sph_destroy(s);
                }
            }
        }
    }
    fsi_mesh_destroy(wall);
}

/* T9: liquid with random velocities in a closed box, no gravity. */
static void test_energy_in_a_closed_box_decays(void)
{
    int dim, step, i;
    for (dim = 2; dim <= 3; dim++) {
        fsi_sph_desc d = make_desc(dim, 0.02);
        fsi_sph *s;
        double start, before, gain = 0;
        uint64_t random = 8;
        d.gravity = v3(0, 0, 0);
        d.depth = (fsi_real)0.2;
        d.domain = dim == 2 ? box3(0, 0, 0, 0.3, 0.3, 0) : box3(0, 0, 0, 0.16, 0.16, 0.16);
        s = make_sph(&d);
        CHECK(fsi_sph_fill_box(s, d.domain, v3(0, 0, 0), NULL) == FSI_OK);
        for (i = 0; i < s->count; i++) s->velocity[i] = random_vector(&random, dim);
        start = before = kinetic(s);
        for (step = 0; step < 200 && step_ok(s, 1e-3); step++) {
            double now = kinetic(s);
            if (now - before > gain) gain = now - before;
            before = now;
        }
        CHECK(before < 0.2 * start);
        CHECK_NEAR(gain, 0, 1e-3 * start);
        CHECK(fsi_sph_count_inside(s, NULL) == 0);
        fsi_sph_destroy(s);
    }
}

/* ---- momentum ------------------------------------------------------------------------------------------------- */

/* T4: what a free block of liquid gains a step, over the largest sum of m |dv|; angular momentum is reported. */
static void test_a_free_block_keeps_its_momentum(void)
{
    int how, step, i;
    for (how = 0; how < 2; how++) {
        fsi_sph_desc d = make_desc(3, 0.02);
        fsi_sph *s;
        static fsi_vec3 before[600];
        double worst = 0, most = 0;
        uint64_t random = 13;
        int n[3];
        n[0] = n[1] = n[2] = 8;
        d.gravity = v3(0, 0, 0);
        d.stiffness = 40000;
        d.velocity_update = how ? FSI_SPH_VELOCITY_FORCES : FSI_SPH_VELOCITY_POSITIONS;
        s = make_sph(&d);
        add_lattice(s, v3(-0.06, -0.06, -0.06), n, 0.017, 0.1, &random);
        for (step = 0; step < 20; step++) {
            fsi_vec3 sum = v3(0, 0, 0);
            double all = 0;
            memcpy(before, s->velocity, (size_t)s->count * sizeof *before);
            step_ok(s, 1e-3);
            for (i = 0; i < s->count; i++) {
                sum = fsi_v3_add(sum, fsi_v3_sub(s->velocity[i], before[i]));
                all += (double)fsi_v3_norm(fsi_v3_sub(s->velocity[i], before[i]));
            }
            if (!((double)fsi_v3_norm(sum) <= worst)) worst = (double)fsi_v3_norm(sum);
            if (all > most) most = all;
        }
        CHECK_NEAR(worst / most, 0, how ? 1e-6 : TOL(1e-6, 1e-5));
        fsi_sph_destroy(s);
    }
}

/* ---- hydrostatics (T8) ---------------------------------------------------------------------------------------- */

typedef struct rest { double slope, floor_force, first_layer, speed, compression; } rest;

static int by_value(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return (x > y) - (x < y); }

/* How a pool of depth `deep` rests after `seconds`: pressure against height away from the walls, force on the floor over
   weight, mean height of the `lowest` particles in dx, root mean square of the speed; means over the last quarter. */
static rest measure_rest(fsi_sph *s, double deep, double wide, int lowest, double dt, double seconds)
{
    static double y[4000];
    rest out = { 0, 0, 0, 0, 0 };
    const double dx = (double)s->desc.spacing;
    int steps = (int)(seconds / dt), step, i, axis = s->desc.dim - 1, samples = 0;
    for (step = 0; step < steps && step_ok(s, dt); step++) {
        double n = 0, sy = 0, sp = 0, syy = 0, syp = 0;
        if (step < steps * 3 / 4) continue;
        for (i = 0; i < s->count; i++) {
            double side = (double)s->position[i].x, other = s->desc.dim == 2 ? side : (double)s->position[i].y, p = (double)s->pressure[i];
            y[i] = height(s, i);
            if (y[i] < 2 * dx || y[i] > 0.75 * deep) continue;
            if (fabs(side - wide / 2) > wide / 2 - 2 * dx || fabs(other - wide / 2) > wide / 2 - 2 * dx) continue;
            n += 1, sy += y[i], sp += p, syy += y[i] * y[i], syp += y[i] * p;
        }
        qsort(y, (size_t)s->count, sizeof *y, by_value);
        for (i = 0; i < lowest; i++) out.first_layer += y[i] / dx / lowest;
        out.slope += (n * syp - sy * sp) / (n * syy - sy * sy);
        out.floor_force += s->stats.wall_impulse[axis] / (s->count * (double)s->particle_mass * 9.81 * dt);
        out.compression += s->stats.mean_compression;
        out.speed += 2 * kinetic(s) / (s->count * (double)s->particle_mass);
        samples++;
    }
    out.slope /= samples;
    out.first_layer /= samples;
    out.floor_force /= samples;
    out.compression /= samples;
    out.speed = sqrt(out.speed / samples);
    return out;
}

enum { IN_DOMAIN, IN_CONTAINER, ON_FLOOR_IN_CONTAINER };

/* A pool of 12 x 20 (2D) or 10 x 10 x 12 particles. */
static rest measure_pool(int dim, int walls, int fixed_iters, fsi_sph_boundary formula)
{
    fsi_sph_desc d = make_desc(dim, 0.01);
    fsi_sph *s;
    fsi_mesh *room = NULL, *base = NULL;
    double wide = dim == 2 ? 0.12 : 0.1, deep = dim == 2 ? 0.2 : 0.12, below = walls == ON_FLOOR_IN_CONTAINER ? -0.1 : 0;
    fsi_box3 box = dim == 2 ? box3(0, below, 0, wide, 0.4, 0) : box3(0, 0, below, wide, wide, 0.4);
    rest r;
    d.depth = (fsi_real)deep;
    d.boundary = formula;
    d.wall_calibrate = formula == FSI_SPH_BOUNDARY_EXACT;
    if (fixed_iters) {
        d.tolerance = 0;
        d.min_iters = d.max_iters = fixed_iters;
    }
    if (walls == IN_DOMAIN) d.domain = box;
    s = make_sph(&d);
    if (walls != IN_DOMAIN) {
        room = make_container(dim, box);
        CHECK(fsi_sph_add_mesh(s, room, NULL) == FSI_OK);
    }
    if (walls == ON_FLOOR_IN_CONTAINER) {
        shape_begin(dim);
        if (dim == 2) shape_line(-1, 0.03, 1);
        else shape_sheet(v3(-1, -1, 0), v3(2, 0, 0), v3(0, 2, 0), 3, 3);
        base = shape_make(FSI_MESH_OPEN, 0);
        CHECK(fsi_sph_add_mesh(s, base, NULL) == FSI_OK);
    }
    CHECK(fsi_sph_fill_box(s, dim == 2 ? box3(0, 0, 0, wide, deep, 0) : box3(0, 0, 0, wide, wide, deep), v3(0, 0, 0), NULL) == FSI_OK);
    CHECK(s->count == (dim == 2 ? 240 : 1200));
    r = measure_rest(s, deep, wide, dim == 2 ? 12 : 100, 1e-3, dim == 2 ? 1.2 : 0.8);
    printf("      %dD walls %d iterations %2d formula %d: slope %.0f Pa/m, floor/weight %.4f, first layer %.3f dx, ", dim, walls,
           fixed_iters, (int)formula, r.slope, r.floor_force, r.first_layer);
    printf("rms speed %.4f m/s, compression %.2f %%\n", r.speed, 100 * r.compression);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(room);
    fsi_mesh_destroy(base);
    return r;
}

static void check_pool(int dim, int walls, int fixed_iters)
{
    rest r = measure_pool(dim, walls, fixed_iters, FSI_SPH_BOUNDARY_EXACT);
    CHECK_NEAR(r.slope, -9810, TOL(0.03, 0.04) * 9810); /* with the packing of so few layers it scatters by 1 %: -9490 to -9750 in float */
    CHECK_NEAR(r.floor_force, 1, 0.02);
    CHECK_NEAR(r.first_layer, 0.5, 0.05);
    CHECK(0.5 * r.speed * r.speed < 1e-4 * 9.81 * (dim == 2 ? 0.2 : 0.12)); /* of rho g h */
    CHECK(r.compression < 0.01);
}

static void test_a_pool_at_rest_is_hydrostatic(void)
{
    int dim, walls;
    for (dim = 2; dim <= 3; dim++)
        for (walls = IN_DOMAIN; walls <= ON_FLOOR_IN_CONTAINER; walls++) check_pool(dim, walls, dim == 3 && walls == IN_CONTAINER ? 10 : 0);
    check_pool(2, IN_DOMAIN, 10);
}

/* The paper's own formula pushes the first layer to 0.92 dx (sph.md 4.1). */
static void test_paper_boundary_keeps_the_first_layer_away(void)
{
    rest r = measure_pool(3, ON_FLOOR_IN_CONTAINER, 0, FSI_SPH_BOUNDARY_PAPER);
    CHECK_NEAR(r.first_layer, 0.92, 0.08);
}

/* ---- dam breaks ----------------------------------------------------------------------------------------------- */

/* The front: the fifth largest x, half a spacing on. */
static double front(const fsi_sph *s)
{
    double top[5] = { -1e9, -1e9, -1e9, -1e9, -1e9 };
    int i, k;
    for (i = 0; i < s->count; i++) {
        double x = (double)s->position[i].x;
        for (k = 0; k < 5; k++) {
            double was = top[k];
            if (x <= was) continue;
            top[k] = x;
            x = was;
        }
    }
    return top[4] + 0.5 * (double)s->desc.spacing;
}

/* A column a x a of water, a = 2.25 in, on a dry floor (Martin and Moyce 1952, n^2 = 1): front Z = x/a against
   T = t sqrt(g/a), the time origin shifted once to match Z = 1.44. */
static void test_dam_break_follows_martin_and_moyce(void)
{
    static const double T[9] = { 0.80, 0.97, 1.14, 1.29, 1.45, 1.62, 1.93, 2.24, 2.71 };
    static const double Z[9] = { 1.44, 1.67, 1.89, 2.11, 2.33, 2.56, 3.00, 3.44, 4.11 };
    const double a = 0.05715, dt = 1e-3;
    double unit = sqrt(a / 9.81), z[300], shift = 0, worst = 0;
    fsi_sph_desc d = make_desc(2, a / 48);
    fsi_sph *s;
    int steps = 0, k, j, last = (int)(3.2 * unit / dt);
    d.domain = box3(0, 0, 0, 8 * a, 2 * a, 0);
    d.depth = (fsi_real)a;
    s = make_sph(&d);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, a, a, 0), v3(0, 0, 0), NULL) == FSI_OK);
    for (steps = 0; steps < last && step_ok(s, dt); steps++) z[steps] = front(s) / a;
    for (k = 0; k < 9 && steps == last; k++) {
        if (k == 0) {
            for (j = 0; j < steps && z[j] < Z[0]; j++) {}
            shift = (j + 1) * dt / unit - T[0];
        }
        j = (int)((T[k] + shift) * unit / dt + 0.5) - 1;
        if (!CHECK(j >= 0 && j < steps)) break;
        if (fabs(z[j] - Z[k]) / Z[k] > worst) worst = fabs(z[j] - Z[k]) / Z[k];
        CHECK(z[j] > 0.92 * Z[k] && z[j] < (Z[k] > 3 ? 1.12 : 1.08) * Z[k]); /* without friction the front leads at the end: by 9 to 10 % */
    }
    printf("      %d particles, time shifted by %.2f, front within %.1f %%, mean compression %.2f %%\n", s->count,
           shift, 100 * worst, 100 * s->stats.mean_compression);
    CHECK(fsi_sph_count_inside(s, NULL) == 0);
    fsi_sph_destroy(s);
}

/* Ritter 1892: after a while, and until the far end is felt, at the gate a long dam keeps 4/9 of its depth; the tip is never faster than 2 c. */
static void test_gate_depth_of_a_long_dam(void)
{
    const double h = 0.1, dt = 2e-3, unit = sqrt(h / 9.81);
    fsi_sph_desc d = make_desc(2, h / 16);
    fsi_sph *s;
    double area = 0, samples = 0;
    int step, i, last = (int)(6 * unit / dt);
    d.domain = box3(-5 * h, 0, 0, 15 * h, 2 * h, 0);
    d.depth = (fsi_real)h;
    s = make_sph(&d);
    CHECK(fsi_sph_fill_box(s, box3(-5 * h, 0, 0, 0, h, 0), v3(0, 0, 0), NULL) == FSI_OK);
    for (step = 0; step < last && step_ok(s, dt); step++) {
        if ((step + 1) * dt < 5 * unit) continue;
        for (i = 0; i < s->count; i++) area += fabs((double)s->position[i].x) < 0.1 * h ? (double)s->particle_volume : 0;
        samples += 1;
    }
    CHECK_NEAR(area / samples / (0.2 * h * h), 4.0 / 9, 0.06 * 4 / 9);
    CHECK(front(s) / (last * dt) < 2.1 * sqrt(9.81 * h));
    fsi_sph_destroy(s);
}

/* ---- determinism and state ------------------------------------------------------------------------------------ */

static uint64_t hash_of_run(int dim, int threads, int adversarial, const fsi_mesh *bar)
{
    fsi_context context = fsi_default_context();
    fsi_sph *s;
    uint64_t hash;
    int step;
    if (threads) test_threads(&context, threads, adversarial);
    s = make_dam(dim, dim == 2 ? 0.005 : 0.014, &context, bar);
    CHECK(s->count > 1500);
    for (step = 0; step < (TEST_SLOWED ? 4 : 20); step++) step_ok(s, 4e-3);
    hash = fsi_sph_hash(s);
    fsi_sph_destroy(s);
    CHECK(context.bytes == 0);
    return hash;
}

static void test_any_number_of_threads_gives_the_same_bits(void)
{
    static const int threads[5] = { 1, 2, 3, 7, 7 };
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        fsi_mesh *bar = make_bar(dim, NULL);
        uint64_t serial = hash_of_run(dim, 0, 0, bar);
        for (k = TEST_SLOWED ? 3 : 0; k < 5; k++) CHECK(hash_of_run(dim, threads[k], k == 4, bar) == serial);
        fsi_mesh_destroy(bar);
    }
}

static void test_loading_continues_as_if_nothing_had_happened(void)
{
    const double dx = TEST_SLOWED ? 0.024 : 0.016;
    int dim, step, k;
    for (dim = 2; dim <= 3; dim++) {
        fsi_mesh *bar = make_bar(dim, NULL);
        fsi_sph *s = make_dam(dim, dx, NULL, bar), *t = make_dam(dim, dx, NULL, bar);
        size_t size;
        void *state;
        uint64_t at, end;
        for (step = 0; step < 15; step++) step_ok(s, 5e-3);
        state = save_state(s, &size);
        at = fsi_sph_hash(s);
        for (step = 0; step < 15; step++) step_ok(s, 5e-3);
        end = fsi_sph_hash(s);
        CHECK(at != end);
        for (k = 0; k < 2; k++) { /* into a fresh simulator, then into one with a history and another count */
            if (k == 1) {
                for (step = 0; step < 5; step++) step_ok(t, 5e-3);
                add_particle(t, v3(0.3, 0.1, dim == 2 ? 0 : 0.3), v3(0, 0, 0));
                step_ok(t, 5e-3);
            }
            CHECK(fsi_sph_load(t, state, size) == FSI_OK);
            CHECK(fsi_sph_hash(t) == at && t->count == s->count);
            for (step = 0; step < 15; step++) step_ok(t, 5e-3);
            CHECK(fsi_sph_hash(t) == end);
            CHECK_NEAR(t->time, 0.15, 1e-6);
        }
        CHECK(fsi_sph_load(s, state, size) == FSI_OK); /* back in time */
        for (step = 0; step < 15; step++) step_ok(s, 5e-3);
        CHECK(fsi_sph_hash(s) == end);
        free(state);
        fsi_sph_destroy(s);
        fsi_sph_destroy(t);
        fsi_mesh_destroy(bar);
    }
}

static void test_damaged_states_are_refused(void)
{
    fsi_sph *s = make_dam(2, 0.02, NULL, NULL);
    size_t size, k, small_size;
    unsigned char *state, *bad;
    uint64_t hash;
    step_ok(s, 1e-3);
    state = (unsigned char *)save_state(s, &size);
    bad = (unsigned char *)malloc(size + 8);
    step_ok(s, 1e-3);
    hash = fsi_sph_hash(s);
    for (k = 0; k < size; k += k < 64 ? 1 : 41) {
        memcpy(bad, state, size);
        bad[k] ^= 0x10;
        CHECK(fsi_sph_load(s, bad, size) == FSI_ERROR_FORMAT);
        CHECK(fsi_sph_load(s, state, k) == FSI_ERROR_FORMAT);
    }
    memcpy(bad, state, size);
    memset(bad + size, 0, 8);
    CHECK(fsi_sph_load(s, bad, size + 8) == FSI_ERROR_FORMAT);
    CHECK(fsi_sph_load(s, NULL, size) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_load(NULL, state, size) != FSI_OK);
    CHECK(fsi_sph_save(s, bad, size - 1, &small_size) == FSI_ERROR_LIMIT && small_size == size);
    CHECK(fsi_sph_save(s, NULL, 0, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_save(NULL, bad, size, &small_size) != FSI_OK);
    CHECK(fsi_sph_hash(s) == hash);
    CHECK(fsi_sph_load(s, state, size) == FSI_OK);
    free(state);
    free(bad);
    fsi_sph_destroy(s);
}

/* ---- changes between steps ------------------------------------------------------------------------------------ */

static void test_particles_come_and_go(void)
{
    fsi_sph *s = make_dam(2, 0.02, NULL, NULL);
    unsigned char *gone = (unsigned char *)calloc((size_t)s->count + 200, 1);
    fsi_vec3 keep, force = v3(0, 0, 0);
    int k, step, count = s->count;
    for (step = 0; step < 20; step++) step_ok(s, 2e-3);
    for (k = 0; k < s->count; k += 3) gone[k] = 1;
    keep = s->position[4];
    CHECK(fsi_sph_remove_particles(s, gone) == FSI_OK);
    CHECK(s->count == count - (count + 2) / 3);
    CHECK(memcmp(&s->position[2], &keep, sizeof keep) == 0); /* 0 and 3 went */
    step_ok(s, 2e-3);
    for (k = 0; k < 50; k++) add_particle(s, v3(0.21 + 0.02 * (k % 5), 0.2 + 0.02 * (k / 5), 0), v3(1, 0, 0));
    CHECK(s->force[s->count - 1].x == force.x && s->density_ratio[s->count - 1] == 1 && s->pressure[s->count - 1] == 0);
    for (step = 0; step < 20; step++) step_ok(s, 2e-3);
    for (k = 0; k < s->count; k++) s->position[k] = v3(0.39 - 0.02 * (k % 15), 0.39 - 0.02 * (k / 15), 0); /* teleport */
    for (step = 0; step < 20; step++) step_ok(s, 2e-3);
    CHECK(fsi_sph_count_inside(s, NULL) == 0);
    CHECK(s->stats.max_speed < 5);
    memset(gone, 1, (size_t)s->count);
    CHECK(fsi_sph_remove_particles(s, gone) == FSI_OK && s->count == 0);
    step_ok(s, 2e-3);
    add_particle(s, v3(0.2, 0.2, 0), v3(0, 0, 0));
    step_ok(s, 1e-2);
    CHECK_NEAR(s->velocity[0].y, -0.0981, 1e-5);
    s->force[0] = fsi_v3_scale(v3(1, 9.81, 0), s->particle_mass); /* holds it, and pushes it sideways */
    step_ok(s, 1e-2);
    CHECK_NEAR(s->velocity[0].x, 0.01, 1e-5);
    CHECK_NEAR(s->velocity[0].y, -0.0981, 1e-5);
    free(gone);
    fsi_sph_destroy(s);
}

/* No time, no change; pressures stay those of the last step. */
static void test_a_step_of_no_time_changes_nothing(void)
{
    fsi_sph *s = make_dam(2, 0.02, NULL, NULL);
    unsigned char gone[500];
    uint64_t hash;
    int step;
    for (step = 0; step < 5; step++) step_ok(s, 2e-3);
    memset(gone, 0, sizeof gone);
    gone[0] = gone[1] = gone[7] = 1;
    CHECK(fsi_sph_remove_particles(s, gone) == FSI_OK);
    hash = fsi_sph_hash(s);
    step_ok(s, 0);
    CHECK(fsi_sph_hash(s) == hash);
    fsi_sph_destroy(s);
}

/* Whatever is written into z: a liquid in the plane stays there. */
static void test_the_plane_stays_flat(void)
{
    fsi_sph_desc d = make_desc(2, 0.02);
    fsi_sph *s = make_sph(&d);
    int i;
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 0.1, 0.1, 0), v3(1, 0, 2), NULL) == FSI_OK);
    step_ok(s, 1e-2);
    for (i = 0; i < s->count; i++) {
        s->velocity[i].z = 1;
        s->force[i].z = s->particle_mass;
        if (i % 2) s->position[i].z = (fsi_real)0.01;
    }
    step_ok(s, 1e-2);
    for (i = 0; i < s->count; i++) CHECK(s->position[i].z == 0 && s->velocity[i].z == 0);
    fsi_sph_destroy(s);
}

/* ---- rollback ------------------------------------------------------------------------------------------------- */

/* Makes a simulator with everything in it; each stage may run out of memory. The stage that failed, or -1. */
static int build_all(fsi_context *context, fsi_sph **out, const fsi_mesh *bar, const void *state, size_t size)
{
    fsi_sph_desc d = make_desc(2, 0.02);
    fsi_vec3 x = v3(0.3, 0.3, 0);
    d.context = context;
    d.domain = box3(0, 0, 0, 0.4, 0.4, 0);
    if (fsi_sph_create(out, &d) == FSI_ERROR_MEMORY) return CHECK(*out == NULL) ? 0 : 100;
    if (fsi_sph_add_mesh(*out, bar, NULL) == FSI_ERROR_MEMORY) return 1;
    if (fsi_sph_fill_box(*out, box3(0, 0, 0, 0.1, 0.1, 0), v3(0, 0, 0), NULL) == FSI_ERROR_MEMORY) return CHECK((*out)->count == 0) ? 2 : 100;
    if (fsi_sph_add_particles(*out, &x, NULL, 1) == FSI_ERROR_MEMORY) return CHECK((*out)->count == 25) ? 3 : 100;
    if (fsi_sph_step(*out, (fsi_real)1e-3) == FSI_ERROR_MEMORY) return 4;
    if (fsi_sph_load(*out, state, size) == FSI_ERROR_MEMORY) return 5;
    return -1;
}

static void test_every_failed_allocation_rolls_back(void)
{
    fsi_mesh *bar = make_bar(2, NULL);
    fsi_sph *big = make_dam(2, 0.02, NULL, bar), *s;
    size_t size, live = test_live_bytes();
    void *state = save_state(big, &size);
    int seen[6] = { 0, 0, 0, 0, 0, 0 }, stage = 0, k;
    long fail;
    for (fail = 1; stage >= 0 && fail < 1000; fail++) {
        fsi_context context = fsi_default_context();
        test_fail_allocator(&context, fail);
        s = NULL;
        stage = build_all(&context, &s, bar, state, size);
        if (stage >= 0 && stage < 6) seen[stage]++;
        if (stage >= 0) CHECK(context.error.status == FSI_ERROR_MEMORY);
        if (s && stage >= 4) { /* the same call succeeds later, as if it had not been tried */
            uint64_t hash = fsi_sph_hash(s);
            test_fail_allocator(&context, 0);
            if (stage == 4) {
                fsi_sph *t = NULL;
                fsi_context other = fsi_default_context();
                CHECK(build_all(&other, &t, bar, NULL, 0) == -1);
                CHECK(hash != fsi_sph_hash(t) && fsi_sph_step(s, (fsi_real)1e-3) == FSI_OK && fsi_sph_hash(s) == fsi_sph_hash(t));
                fsi_sph_destroy(t);
            } else CHECK(fsi_sph_load(s, state, size) == FSI_OK && fsi_sph_hash(s) == fsi_sph_hash(big));
        }
        fsi_sph_destroy(s);
        CHECK(context.bytes == 0 && test_live_bytes() == live);
    }
    for (k = 0; k < 6; k++) CHECK(k == 3 || seen[k] > 0);
    free(state);
    fsi_sph_destroy(big);
    fsi_mesh_destroy(bar);
}

/* A step that needs more memory than any before, since liquid was added, fails as a whole, and goes through later. */
static void test_a_later_step_without_memory_changes_nothing(void)
{
    fsi_context context = fsi_default_context();
    fsi_mesh *bar = make_bar(2, NULL);
    fsi_sph *s;
    uint64_t hash;
    int step, failures = 0;
    test_fail_allocator(&context, 0);
    s = make_dam(2, 0.016, &context, NULL);
    step_ok(s, 2e-3);
    CHECK(fsi_sph_add_mesh(s, bar, NULL) == FSI_OK);
    CHECK(fsi_sph_fill_box(s, box3(0.02, 0.3, 0, 0.2, 0.6, 0), v3(0, 0, 0), NULL) == FSI_OK);
    for (step = 0; step < 20; step++) {
        hash = fsi_sph_hash(s);
        test_fail_allocator(&context, 1);
        if (fsi_sph_step(s, (fsi_real)2e-3) == FSI_OK) continue;
        CHECK(context.error.status == FSI_ERROR_MEMORY && fsi_sph_hash(s) == hash);
        test_fail_allocator(&context, 0);
        step_ok(s, 2e-3);
        failures++;
    }
    CHECK(failures > 0);
    fsi_sph_destroy(s);
    CHECK(context.bytes == 0);
    fsi_mesh_destroy(bar);
}

static void refuse_step(fsi_sph *s, double dt, fsi_status status, long long element)
{
    uint64_t hash = fsi_sph_hash(s);
    CHECK(fsi_sph_step(s, (fsi_real)dt) == status);
    CHECK(fsi_sph_error(s)->status == status);
    if (element >= 0) CHECK(fsi_sph_error(s)->element == element);
    CHECK(strlen(fsi_sph_error(s)->message) > 10);
    CHECK(fsi_sph_hash(s) == hash);
}

static void test_bad_numbers_are_named_and_change_nothing(void)
{
    fsi_vec3 at;
    fsi_sph *s = make_dam(2, 0.02, NULL, NULL);
    fsi_vec3 *field[3], was, bad[3];
    uint64_t hash;
    int k, j;
    step_ok(s, 1e-3);
    bad[0] = v3(test_nan(), 0, 0);
    bad[1] = v3(0, test_inf(), 0);
    bad[2] = v3(0, 0, -test_inf());
    field[0] = s->position;
    field[1] = s->velocity;
    field[2] = s->force;
    for (k = 0; k < 3; k++) {
        for (j = 0; j < 3; j++) {
            was = field[k][17];
            field[k][17] = bad[j];
            refuse_step(s, 1e-3, FSI_ERROR_NAN, 17);
            field[k][17] = was;
        }
    }
    refuse_step(s, test_nan(), FSI_ERROR_ARGUMENT, -1);
    refuse_step(s, test_inf(), FSI_ERROR_ARGUMENT, -1);
    refuse_step(s, -1e-3, FSI_ERROR_ARGUMENT, -1);
    hash = fsi_sph_hash(s);
    at = s->position[0];
    for (j = 0; j < 3; j++) {
        CHECK(fsi_sph_add_particles(s, &bad[j], NULL, 1) == FSI_ERROR_NAN);
        CHECK(fsi_sph_add_particles(s, &at, &bad[j], 1) == FSI_ERROR_NAN);
    }
    CHECK(fsi_sph_hash(s) == hash);
    step_ok(s, 1e-3);
    fsi_sph_destroy(s);
}

/* Is what can be read finite, and does what is saved load again, unless it holds what no step takes? */
static void check_usable(fsi_sph *s)
{
    fsi_status status;
    size_t size;
    void *state = save_state(s, &size);
    int i, bad = 0;
    for (i = 0; i < s->count; i++) {
        bad += !fsi_v3_is_finite(s->position[i]) || !fsi_v3_is_finite(s->velocity[i]);
        bad += !fsi_is_finite((double)s->pressure[i]) || !fsi_is_finite((double)s->density_ratio[i]);
    }
    CHECK(bad == 0);
    status = fsi_sph_load(s, state, size);
    CHECK(status == FSI_OK || (status == FSI_ERROR_LIMIT && fsi_sph_step(s, (fsi_real)1e-3) == FSI_ERROR_LIMIT));
    free(state);
}

/* Either a step succeeds and leaves a usable state, or it is refused and changes nothing. */
static void try_absurd_step(fsi_sph *s, double dt)
{
    uint64_t hash = fsi_sph_hash(s);
    fsi_status status = fsi_sph_step(s, (fsi_real)dt);
    if (status != FSI_OK) CHECK(fsi_sph_hash(s) == hash);
    check_usable(s);
}

static void test_absurd_numbers_do_no_harm(void)
{
    static const double dts[8] = { 1e-300, 1e-160, 1e-38, 1e-25, 1e-9, 1, 1e6, 1e30 };
    static const double speeds[4] = { 1e3, 1e10, 1e30, 3e38 };
    static const double places[4] = { 1e3, 1e9, 1e20, 1e37 };
    fsi_mesh *bar;
    int dim, k, i;
    for (dim = 2; dim <= 3; dim++) {
        bar = make_bar(dim, NULL);
        for (k = 0; k < 8; k++) {
            fsi_sph *s = make_dam(dim, 0.04, NULL, bar);
            if (dim == 3) s->desc.max_substeps = 5; /* each of them runs to the end of its budget */
            try_absurd_step(s, dts[k]);
            try_absurd_step(s, dts[k]);
            fsi_sph_destroy(s);
        }
        for (k = 0; k < 4; k++) {
            fsi_sph *s = make_dam(dim, 0.04, NULL, bar);
            if (dim == 3) s->desc.max_substeps = 5;
            s->velocity[3] = v3(speeds[k], -speeds[k], 0);
            try_absurd_step(s, 1e-3);
            s->velocity[3] = v3(0, 0, 0);
            s->force[3] = v3(speeds[k], -speeds[k], 0);
            try_absurd_step(s, 1e-3);
            fsi_sph_destroy(s);
        }
        for (k = 0; k < 4; k++) { /* far away, all together and one alone */
            fsi_sph_desc d = make_desc(dim, 0.02);
            fsi_sph *s = make_sph(&d);
            uint64_t random = 2;
            int n[3];
            n[0] = n[1] = 5;
            n[2] = dim == 2 ? 1 : 5;
            add_lattice(s, v3(places[k], -places[k], 0), n, 0.02, 0.1, &random);
            try_absurd_step(s, 1e-3);
            s->position[0] = v3(-places[k], 0, 0);
            try_absurd_step(s, 1e-3);
            fsi_sph_destroy(s);
        }
        {
            fsi_sph *s = make_dam(dim, 0.04, NULL, bar);
            for (i = 0; i < 100; i++) add_particle(s, v3(0.3, 0.1, dim == 2 ? 0 : 0.3), v3(0, 0, 0)); /* coincident */
            for (i = 0; i < 10; i++) try_absurd_step(s, 1e-3);
            CHECK(fsi_sph_count_inside(s, NULL) == 0);
            fsi_sph_destroy(s);
        }
        fsi_mesh_destroy(bar);
    }
}

/* A block of liquid falls freely at 1e6 m from the origin as it does near it (double positions). */
static void test_far_from_the_origin(void)
{
#if !defined(FSI_REAL_FLOAT)
    static const double away[3] = { 0, 1e6, 1e9 };
    int k, step;
    double speed[3];
    for (k = 0; k < 3; k++) {
        fsi_sph_desc d = make_desc(3, 0.02);
        fsi_sph *s = make_sph(&d);
        uint64_t random = 2;
        int n[3];
        n[0] = n[1] = n[2] = 6;
        add_lattice(s, v3(away[k], -away[k], away[k]), n, 0.019, 0.02, &random);
        for (step = 0; step < 20; step++) step_ok(s, 1e-3);
        CHECK_NEAR(momentum(s, 2) / (s->count * (double)s->particle_mass), -0.02 * 9.81, k == 2 ? 1e-3 : 1e-6);
        speed[k] = s->stats.max_speed;
        fsi_sph_destroy(s);
    }
    CHECK_NEAR(speed[1], speed[0], 0.02 * speed[0]);
    CHECK_NEAR(speed[2], speed[0], 0.2 * speed[0]);
#endif
}

/* ---- refusals ------------------------------------------------------------------------------------------------- */

static void refuse_desc(fsi_sph_desc d, const char *name)
{
    fsi_context context = fsi_default_context();
    fsi_sph *s = (fsi_sph *)(void *)&context;
    d.context = &context;
    if (!CHECK(fsi_sph_create(&s, &d) != FSI_OK)) printf("      %s was accepted\n", name);
    else if (!CHECK(strstr(context.error.message, name) != NULL)) printf("      %s: %s\n", name, context.error.message);
    CHECK(context.bytes == 0 || s != NULL);
    fsi_sph_destroy(s);
}

#define REFUSE(field, value) do { fsi_sph_desc d = fsi_sph_default_desc(); d.field = value; refuse_desc(d, #field); } while (0)
#define REFUSE_INT(field, lo, hi) do { REFUSE(field, lo); REFUSE(field, hi); } while (0)
#define REFUSE_REAL(field, lo, hi) \
    do { \
        REFUSE_INT(field, (fsi_real)(lo), (fsi_real)(hi)); \
        REFUSE_INT(field, (fsi_real)test_nan(), (fsi_real)test_inf()); \
    } while (0)

static void test_a_desc_with_nan_is_refused_as_such(void)
{
    fsi_context context = fsi_default_context();
    fsi_sph_desc d = fsi_sph_default_desc();
    fsi_sph *s;
    d.context = &context;
    d.cfl = (fsi_real)test_nan();
    CHECK(fsi_sph_create(&s, &d) == FSI_ERROR_NAN && strcmp(context.error.message, "desc.cfl is not finite") == 0);
    d.cfl = 1000;
    CHECK(fsi_sph_create(&s, &d) == FSI_ERROR_ARGUMENT && strstr(context.error.message, "desc.cfl is 1000, must be "));
}

static void test_every_bad_desc_field_is_named(void)
{
    REFUSE(origin, v3(0, test_nan(), 0));
    REFUSE_INT(dim, 1, 4);
    REFUSE_REAL(spacing, 0, -1);
    REFUSE_REAL(support, 1.7, 3.1);
    REFUSE_REAL(density, 0, -1000);
    REFUSE_REAL(depth, 0, -1);
    REFUSE_REAL(compressibility, 0, 0.9);
    REFUSE_REAL(stiffness, -1, 1e30);
    REFUSE_INT(min_iters, 0, 1000);
    REFUSE_INT(max_iters, 0, -1);
    REFUSE_REAL(tolerance, -1, 2);
    REFUSE_REAL(cfl, 0, -1);
    REFUSE_INT(max_substeps, 0, -1);
    REFUSE(budget, -1);
    REFUSE_REAL(contact_thickness, 0, 3);
    REFUSE_REAL(contact_stiffness, 0, -1);
    REFUSE_INT(contact_first, 0, 3);
    REFUSE_INT(contact_order, 1, 30);
    REFUSE_INT(contact_max_order, 1, 65);
    REFUSE_REAL(xsph, -0.1, 0.6);
    REFUSE_REAL(surface_tension, -1, 1e7);
    REFUSE(reserve, -1);
    REFUSE(velocity_update, (fsi_sph_velocity)7);
    REFUSE(boundary, (fsi_sph_boundary)7);
    REFUSE(gravity, v3(test_nan(), 0, 0));
    { /* the default gravity points out of the plane */
        fsi_sph_desc d = fsi_sph_default_desc();
        d.dim = 2;
        refuse_desc(d, "gravity");
    }
    REFUSE(domain, box3(0, 0, 0, 1, 1, 0));
    REFUSE(domain, box3(1, 0, 0, 0, 1, 1));
    REFUSE(domain, box3(0, 1, 0, 1, 0, 1));
    REFUSE(domain, box3(test_nan(), 0, 0, 1, 1, 1));
    REFUSE(domain, box3(0, 0, 0, test_inf(), 1, 1));
}

static void test_wrong_calls_are_refused(void)
{
    fsi_sph_desc d = make_desc(3, 0.02), unfilled;
    fsi_sph *s = NULL;
    fsi_mesh *flat;
    fsi_vec3 x = v3(0, 0, 0);
    double lambda, g[3];
    int id;
    CHECK(fsi_sph_create(NULL, &d) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_create(&s, NULL) == FSI_ERROR_ARGUMENT && s == NULL);
    memset(&unfilled, 0, sizeof unfilled);
    CHECK(fsi_sph_create(&s, &unfilled) == FSI_ERROR_COOKIE && s == NULL);
    fsi_sph_destroy(NULL);
    CHECK(strstr(fsi_sph_error(NULL)->message, "context.error.message") != NULL);
    CHECK(fsi_sph_add_particles(NULL, &x, NULL, 1) != FSI_OK);
    CHECK(fsi_sph_fill_box(NULL, box3(0, 0, 0, 1, 1, 1), x, NULL) != FSI_OK);
    CHECK(fsi_sph_remove_particles(NULL, NULL) != FSI_OK);
    CHECK(fsi_sph_add_mesh(NULL, NULL, NULL) != FSI_OK);
    CHECK(fsi_sph_remove_obstacle(NULL, 0) != FSI_OK);
    CHECK(fsi_sph_step(NULL, 0) != FSI_OK);
    CHECK(fsi_sph_suggest_dt(NULL) == 0);
    CHECK(fsi_sph_pressure_at(NULL, x) == 0 && fsi_sph_fraction_at(NULL, x) == 0);
    CHECK(fsi_sph_count_inside(NULL, NULL) == 0);
    CHECK(fsi_sph_hash(NULL) == 0);
    fsi_sph_debug_draw(NULL, NULL);
    s = make_sph(&d);
    CHECK(fsi_sph_add_particles(s, NULL, NULL, 1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_add_particles(s, &x, NULL, -1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_add_particles(s, NULL, NULL, 0) == FSI_OK);
    CHECK(fsi_sph_add_particles(s, &x, NULL, 0x7fffffff) == FSI_ERROR_LIMIT);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 0.001, 1, 1), x, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_fill_box(s, box3(1, 0, 0, 0, 1, 1), x, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 1e6, 1e6, 1e6), x, NULL) == FSI_ERROR_LIMIT);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, test_nan(), 1, 1, 1), x, NULL) == FSI_ERROR_NAN);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 1, 1, 1), v3(0, test_inf(), 0), NULL) == FSI_ERROR_NAN);
    CHECK(fsi_sph_remove_particles(s, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_add_mesh(s, NULL, &id) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_remove_obstacle(s, 0) == FSI_ERROR_ARGUMENT);
    shape_begin(2);
    shape_box(box3(0, 0, 0, 1, 1, 0));
    flat = shape_make(FSI_MESH_CLOSED, 0);
    CHECK(fsi_sph_add_mesh(s, flat, &id) == FSI_ERROR_ARGUMENT); /* segments in space */
    flat->cookie++;
    CHECK(fsi_sph_add_mesh(s, flat, &id) == FSI_ERROR_COOKIE);
    flat->cookie--;
    CHECK(s->count == 0 && s->stats.substeps == 0);
    step_ok(s, 0.1); /* nothing in it */
    CHECK_NEAR(s->time, 0.1, 1e-7);
    CHECK(fsi_sph_suggest_dt(s) > 0);
    fsi_sph_boundary_integral(flat, v3(0.5, 0.5, 0), (fsi_real)0.1, FSI_SPH_BOUNDARY_EXACT, &lambda, g);
    CHECK_NEAR(lambda, 1, 1e-6);
    s->cookie++;
    CHECK(fsi_sph_step(s, (fsi_real)0.1) == FSI_ERROR_COOKIE);
    s->cookie--;
    fsi_sph_destroy(s);
    fsi_mesh_destroy(flat);
}

/* ---- substeps, budget, figures -------------------------------------------------------------------------------- */

static void test_substeps_follow_the_cfl_number(void)
{
    fsi_sph_desc d = make_desc(3, 0.02);
    fsi_sph *s;
    d.gravity = v3(0, 0, 0);
    d.cfl = (fsi_real)0.8;
    d.depth = (fsi_real)0.1;
    s = make_sph(&d);
    add_particle(s, v3(0, 0, 0), v3(8, 0, 0));
    CHECK_NEAR(fsi_sph_suggest_dt(s), 0.002, 2e-4); /* 0.8 * 0.02 / 8 */
    step_ok(s, 0.01);                               /* 8 cm are 4 dx: five substeps of 0.8 dx */
    CHECK(s->stats.substeps == 5);
    CHECK_NEAR(s->position[0].x, 0.08, 1e-6);
    CHECK_NEAR(s->stats.cfl, 0.8, 1e-3);
    s->velocity[0] = v3(1e4, 0, 0);
    step_ok(s, 0.01);
    CHECK(s->stats.substeps == 50); /* max_substeps */
    CHECK_NEAR(s->position[0].x, 100.08, 1e-3);
    s->velocity[0] = v3(0, 0, 0);
    s->force[0] = fsi_v3_scale(v3(800, 0, 0), s->particle_mass); /* 4 cm, 8 m/s at the end */
    step_ok(s, 0.01);
    CHECK(s->stats.substeps >= 2 && s->stats.substeps <= 6);
    fsi_sph_destroy(s);
}

/* Liquid 80 rows deep, with steps in which sound crosses 11 rows, cut off after 10 sweeps or 30. Nothing may get faster than what falls
   from the surface; once, pressure that lagged behind made it boil at ten times that. */
static void test_a_solve_cut_short_gains_no_energy(void)
{
    const int sweeps[2] = { 10, 30 };
    int k, step;
    for (k = 0; k < 2; k++) {
        fsi_sph_desc d = make_desc(2, 0.005);
        fsi_sph *s;
        d.domain = box3(0, 0, 0, 0.04, 0.6, 0);
        d.depth = (fsi_real)0.4;
        d.compressibility = (fsi_real)0.02;
        d.max_substeps = 1;
        d.max_iters = sweeps[k];
        s = make_sph(&d);
        CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 0.04, 0.4, 0), v3(0, 0, 0), NULL) == FSI_OK);
        for (step = 0; step < 120 && step_ok(s, 4e-3); step++) {
            CHECK(s->stats.degraded == 1 || k == 1);
            CHECK(s->stats.max_speed <= sqrt(2 * 9.81 * 0.4));
        }
        CHECK(step == 120);
        fsi_sph_destroy(s);
    }
}

/* Steps that are too long for the stiffness, or a budget that leaves few sweeps, make the liquid soft, and say so; a pool at rest stays
   a pool. */
static void test_a_pool_stays_one_in_steps_that_are_too_long(void)
{
    static const struct { double dt; int substeps, budget; } way[5] = { { 1.0 / 60, 1, 0 }, { 1.0 / 60, 50, 4 }, { 1.0 / 60, 50, 20 }, { 1.0 / 60, 2, 40 }, { 1.0 / 30, 50, 0 } };
    int k, step, i;
    for (k = 0; k < 5; k++) {
        fsi_sph_desc d = make_desc(2, 0.02);
        fsi_sph *s;
        double height = 0, energy = 0, speed = 0;
        d.domain = box3(0, 0, 0, 0.4, 1, 0);
        d.max_substeps = way[k].substeps;
        d.budget = way[k].budget;
        s = make_sph(&d);
        CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 0.4, 0.4, 0), v3(0, 0, 0), NULL) == FSI_OK);
        for (step = 0; step < 120 && step_ok(s, way[k].dt); step++) {
            energy = fmax(energy, (s->stats.kinetic_energy + s->stats.potential_energy) / (0.2 * 9.81 * (double)s->particle_mass * s->count));
            speed = fmax(speed, s->stats.max_speed);
            CHECK(s->stats.degraded || k == 4);
        }
        for (i = 0; i < s->count; i++) height += (double)s->position[i].y / s->count;
        CHECK(step == 120 && energy < 1.3 && speed < 4);
        CHECK_NEAR(height, 0.2, 0.1);
        fsi_sph_destroy(s);
    }
}

/* Gravity, viscosity, walls and limits may change between steps; what arrays and kernels are made for may not. */
static void test_settings_change_on_the_way(void)
{
    fsi_sph_desc d = make_desc(2, 0.02), e;
    fsi_sph *s;
    double stiffness, fell;
    int k;
    d.domain = box3(-1, 0, 0, 1, 1, 0);
    d.cfl = 100;
    s = make_sph(&d);
    add_particle(s, v3(0, 0.5, 0), v3(0, 0, 0));
    stiffness = (double)s->stiffness;
    for (k = 0; k < 10; k++) step_ok(s, 1e-3);
    fell = (double)s->velocity[0].y;
    CHECK_NEAR(fell, -9.81 * 0.01, 1e-5);
    e = s->desc;
    e.gravity = v3(4 * 9.81, 0, 0);
    CHECK(fsi_sph_set_desc(s, &e) == FSI_OK);
    CHECK_NEAR((double)s->stiffness / stiffness, 4, 1e-5);
    for (k = 0; k < 10; k++) step_ok(s, 1e-3);
    CHECK_NEAR((double)s->velocity[0].y, fell, 1e-5);
    CHECK_NEAR((double)s->velocity[0].x, 4 * 9.81 * 0.01, 1e-5);
    e.gravity = d.gravity; /* now it slides on the floor, which gets rough on the way */
    CHECK(fsi_sph_set_desc(s, &e) == FSI_OK);
    s->position[0] = v3(-0.5, 0.0095, 0);
    s->velocity[0] = v3(1, 0, 0);
    for (k = 0; k < 100; k++) step_ok(s, 1e-3);
    CHECK_NEAR((double)s->velocity[0].x, 1, 1e-4);
    e.domain_friction = (fsi_real)0.3;
    CHECK(fsi_sph_set_desc(s, &e) == FSI_OK);
    for (k = 0; k < 100; k++) step_ok(s, 1e-3);
    CHECK_NEAR((double)s->velocity[0].x, 1 - 0.3 * 9.81 * 0.1, 0.02);
    add_particle(s, v3(0.5, 0.5, 0), v3(0, 0, 0)); /* a budget below what there is keeps it, and lets no more in */
    e.max_particles = 1;
    CHECK(fsi_sph_set_desc(s, &e) == FSI_OK);
    CHECK(fsi_sph_add_particles(s, s->position, NULL, 1) == FSI_ERROR_LIMIT);
    step_ok(s, 1e-3);
    CHECK(s->count == 2);
    fsi_sph_destroy(s);
}

static void refuse_setting(fsi_sph *s, const fsi_sph_desc *d, const char *what, fsi_status status)
{
    fsi_sph_desc before = s->desc;
    CHECK(fsi_sph_set_desc(s, d) == status && memcmp(&before, &s->desc, sizeof before) == 0);
    CHECK(strstr(fsi_sph_error(s)->message, what) != NULL);
}

static void test_settings_that_may_not_change_are_named(void)
{
    fsi_sph_desc d = make_desc(2, 0.02), e;
    fsi_context other = fsi_default_context();
    fsi_sph *s = make_sph(&d);
    e = d, e.dim = 3, refuse_setting(s, &e, "dim", FSI_ERROR_ARGUMENT);
    e = d, e.spacing *= 2, refuse_setting(s, &e, "spacing", FSI_ERROR_ARGUMENT);
    e = d, e.support = 3, refuse_setting(s, &e, "support", FSI_ERROR_ARGUMENT);
    e = d, e.density *= 2, refuse_setting(s, &e, "density", FSI_ERROR_ARGUMENT);
    e = d, e.domain = box3(0, 0, 0, 1, 1, 0), refuse_setting(s, &e, "domain", FSI_ERROR_ARGUMENT);
    e = d, e.attribute_count = 1, refuse_setting(s, &e, "attribute_count", FSI_ERROR_ARGUMENT);
    e = d, e.markers = 1, refuse_setting(s, &e, "markers", FSI_ERROR_ARGUMENT);
    e = d, e.context = &other, refuse_setting(s, &e, "context", FSI_ERROR_ARGUMENT);
    e = d, e.cookie++, refuse_setting(s, &e, "fsi_sph_default_desc", FSI_ERROR_COOKIE);
    e = d, e.viscosity = -1, refuse_setting(s, &e, "viscosity", FSI_ERROR_ARGUMENT);
    e = d, e.viscosity = (fsi_real)test_nan(), refuse_setting(s, &e, "viscosity", FSI_ERROR_NAN);
    refuse_setting(s, NULL, "NULL", FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_set_desc(NULL, &d) == FSI_ERROR_ARGUMENT);
    fsi_sph_destroy(s);
}

/* A free sheet that is stretched and squeezed: after a while hardly anything presses. It must not sweep for digits that no one sees. */
static void test_what_hardly_presses_is_soon_solved(void)
{
    fsi_sph_desc d = make_desc(2, 0.02);
    fsi_sph *s;
    int i, step, slow = 0;
    d.gravity = v3(0, 0, 0);
    s = make_sph(&d);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 0.3, 0.3, 0), v3(0, 0, 0), NULL) == FSI_OK);
    for (i = 0; i < s->count; i++) s->velocity[i] = v3(-5 * ((double)s->position[i].x - 0.15), 5 * ((double)s->position[i].y - 0.15), 0);
    for (step = 0; step < 200 && step_ok(s, 4e-3); step++) slow += s->stats.iterations >= 100;
    CHECK(step == 200 && slow <= 2);
    fsi_sph_destroy(s);
}

static void test_a_budget_cuts_the_solve_short(void)
{
    fsi_sph_desc d = make_desc(2, 0.01);
    fsi_sph *s;
    int step, degraded = 0;
    d.domain = box3(0, 0, 0, 0.4, 0.4, 0);
    d.depth = (fsi_real)0.2;
    d.budget = 6;
    s = make_sph(&d);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 0.2, 0.2, 0), v3(0, 0, 0), NULL) == FSI_OK);
    for (step = 0; step < 60 && step_ok(s, 2e-3); step++) {
        degraded += s->stats.degraded;
        CHECK(s->stats.iterations <= 6 + s->stats.substeps);
        CHECK(s->stats.degraded == 0 || s->stats.degraded == 1);
    }
    CHECK(degraded > 0);
    CHECK(fsi_sph_count_inside(s, NULL) == 0);
    check_usable(s);
    fsi_sph_destroy(s);
}

static void test_a_resting_pool_allocates_nothing(void)
{
    fsi_context context = fsi_default_context();
    fsi_sph_desc d = make_desc(2, 0.01);
    fsi_sph *s;
    long long allocs = 0;
    int step;
    test_fail_allocator(&context, 0);
    d.context = &context;
    d.domain = box3(0, 0, 0, 0.2, 0.4, 0);
    d.depth = (fsi_real)0.2;
    s = make_sph(&d);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 0.2, 0.2, 0), v3(0, 0, 0), NULL) == FSI_OK);
    for (step = 0; step < 200; step++) {
        step_ok(s, 1e-3);
        if (step == 99) allocs = s->stats.allocs;
    }
    CHECK(s->stats.allocs == allocs && context.allocs == allocs);
    CHECK(s->stats.bytes == context.bytes && context.bytes > 0);
    fsi_sph_destroy(s);
    CHECK(context.bytes == 0);
}

static double ticks(void *user)
{
    double *t = (double *)user;
    return *t += 0.25;
}

static void test_figures_agree_with_the_state(void)
{
    fsi_context context = fsi_default_context();
    fsi_sph *s;
    double seconds = 0, energy = 0, e;
    int i, step;
    context.now = ticks;
    context.user = &seconds;
    s = make_dam(3, 0.02, &context, NULL);
    CHECK(s->count == 8 * 8 * 12);
    for (step = 0; step < 30; step++) {
        double was[3], got, mass = s->count * (double)s->particle_mass;
        int k;
        for (k = 0; k < 3; k++) was[k] = momentum(s, k);
        step_ok(s, 2e-3);
        for (k = 0; k < 3; k++) { /* momentum is what gravity, the walls and the stated defect gave */
            got = momentum(s, k) - was[k] - s->stats.wall_impulse[k] - (k == 2 ? -9.81 * 2e-3 * mass : 0);
            CHECK_NEAR(got, 0, mass * (1e-4 * 9.81 * 2e-3 + s->stats.momentum_defect * s->stats.max_speed));
        }
    }
    for (i = 0; i < 3; i++) CHECK_NEAR(s->stats.momentum[i], momentum(s, i), 1e-5 * s->stats.max_speed * s->count * (double)s->particle_mass);
    CHECK_NEAR(s->stats.kinetic_energy, kinetic(s), TOL(1e-9, 1e-4) * kinetic(s));
    for (i = 0; i < s->count; i++) energy += (double)s->particle_mass * 9.81 * (double)s->position[i].z;
    CHECK_NEAR(s->stats.potential_energy, energy, TOL(1e-9, 1e-5) * energy);
    CHECK(s->stats.particles == s->count && s->stats.pairs > 20 * (size_t)s->count && s->stats.wall_particles > 100);
    CHECK(s->stats.mean_compression >= 0 && s->stats.mean_compression < 0.01 && s->stats.max_compression >= s->stats.mean_compression);
    CHECK(s->stats.degraded == 0 && s->stats.residual <= 0.005);
    CHECK(s->stats.momentum_defect > 0 && s->stats.momentum_defect < 1e-2);
    e = s->stats.seconds_neighbors + s->stats.seconds_boundary + s->stats.seconds_density;
    e += s->stats.seconds_gradient + s->stats.seconds_update + s->stats.seconds_other;
    CHECK(e > 0 && e <= seconds);
    CHECK_NEAR(fsi_sph_fraction_at(s, v3(0.08, 0.08, 0.08)), 1, 0.08);
    CHECK(fsi_sph_fraction_at(s, v3(0.3, 0.08, 0.35)) == 0 && fsi_sph_pressure_at(s, v3(0.3, 0.08, 0.35)) == 0);
    CHECK(fsi_sph_pressure_at(s, v3(0.04, 0.08, 0.03)) > 200);
    fsi_sph_destroy(s);
}

static int drawn[2];
static void draw_point(void *user, fsi_vec3 p, fsi_real size, uint32_t rgb) { (void)user, (void)p, (void)size, (void)rgb; drawn[0]++; }
static void draw_line(void *user, fsi_vec3 a, fsi_vec3 b, uint32_t rgb) { (void)user, (void)a, (void)b, (void)rgb; drawn[1]++; }

static void test_debug_draw_shows_particles_and_edges(void)
{
    fsi_mesh *bar = make_bar(3, NULL);
    fsi_sph *s = make_dam(3, 0.04, NULL, bar);
    fsi_debug_draw draw;
    memset(&draw, 0, sizeof draw);
    fsi_sph_debug_draw(s, &draw); /* no callbacks */
    fsi_sph_debug_draw(s, NULL);
    draw.point = draw_point;
    draw.line = draw_line;
    fsi_sph_debug_draw(s, &draw);
    CHECK(drawn[0] == s->count && drawn[1] >= 2 * 18);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(bar);
}

/* A state goes only into a simulator of the same dimension and spacing. */
static void test_a_state_of_an_unlike_liquid_is_refused(void)
{
    fsi_sph_desc d = make_desc(2, 0.03);
    fsi_sph *s = make_dam(2, 0.02, NULL, NULL), *other = make_sph(&d);
    size_t size = 0;
    uint64_t hash = fsi_sph_hash(other);
    void *buffer;
    CHECK(fsi_sph_save(s, NULL, 0, &size) == FSI_OK);
    buffer = malloc(size);
    CHECK(buffer && fsi_sph_save(s, buffer, size, &size) == FSI_OK);
    CHECK(fsi_sph_load(other, buffer, size) == FSI_ERROR_FORMAT && fsi_sph_hash(other) == hash);
    CHECK(strstr(fsi_sph_error(other)->message, "spacing") != NULL);
    free(buffer);
    fsi_sph_destroy(s);
    fsi_sph_destroy(other);
}

/* A liquid that turns: at a point the velocity of rigid rotation there, as neighbours lie all around it. */
static void test_velocity_at_a_point_is_that_of_the_liquid_there(void)
{
    int dim, i, n[3];
    for (dim = 2; dim <= 3; dim++) {
        fsi_sph_desc d = make_desc(dim, 0.05);
        fsi_sph *s = make_sph(&d);
        uint64_t random = 3;
        fsi_vec3 v;
        n[0] = n[1] = 11;
        n[2] = dim == 2 ? 1 : 11;
        add_lattice(s, v3(-0.25, -0.25, dim == 2 ? 0 : -0.25), n, 0.05, 0, &random);
        for (i = 0; i < s->count; i++) s->velocity[i] = v3(1 - 2 * (double)s->position[i].y, 2 * (double)s->position[i].x, dim == 2 ? 0 : 3);
        v = fsi_sph_velocity_at(s, v3(0.05, -0.1, 0));
        CHECK_NEAR(v.x, 1.2, TOL(1e-12, 1e-5));
        CHECK_NEAR(v.y, 0.1, TOL(1e-12, 1e-5));
        CHECK_NEAR(v.z, dim == 2 ? 0 : 3, TOL(1e-12, 1e-5));
        v = fsi_sph_velocity_at(s, v3(0.013, 0.037, 0));
        CHECK_NEAR(v.x, 1 - 2 * 0.037, 0.02);
        v = fsi_sph_velocity_at(s, v3(5, 0, 0));
        CHECK(v.x == 0 && v.y == 0 && v.z == 0);
        v = fsi_sph_velocity_at(NULL, v3(0, 0, 0));
        CHECK(v.x == 0);
        fsi_sph_destroy(s);
    }
}

static int told;
static char told_text[200];
static void hear(void *user, int level, const char *text)
{
    (void)user;
    told += level == 1;
    if (level == 1) memcpy(told_text, text, strlen(text) < sizeof told_text ? strlen(text) + 1 : 0);
}

static void test_step_that_did_less_says_so_once(void)
{
    fsi_context context = fsi_default_context();
    fsi_mesh *bar = make_bar(2, NULL);
    fsi_sph *s = make_dam(2, 0.02, &context, bar);
    fsi_sph_desc d = s->desc;
    context.message = hear;
    step_ok(s, 0.001);
    CHECK(told == 0 && s->stats.degraded == 0);
    d.max_substeps = 1;
    CHECK(fsi_sph_set_desc(s, &d) == FSI_OK);
    step_ok(s, 0.2);
    CHECK(told == 1 && s->stats.degraded == 1 && strstr(told_text, "degraded") != NULL);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(bar);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
#if !defined(__SANITIZE_THREAD__) /* physics in one thread: minutes there, and no race to find */
    if (!TEST_SLOWED) RUN(test_a_pool_at_rest_is_hydrostatic);
    RUN(test_sweeps_never_raise_the_energy);
    RUN(test_energy_in_a_closed_box_decays);
    RUN_PHYSICS(test_paper_boundary_keeps_the_first_layer_away);
    if (!TEST_SLOWED) RUN(test_dam_break_follows_martin_and_moyce);
    if (!TEST_SLOWED) RUN(test_gate_depth_of_a_long_dam);
#endif
    RUN(test_a_free_block_keeps_its_momentum);
    RUN(test_any_number_of_threads_gives_the_same_bits);
    RUN(test_loading_continues_as_if_nothing_had_happened);
    RUN(test_damaged_states_are_refused);
    RUN(test_particles_come_and_go);
    RUN(test_a_step_of_no_time_changes_nothing);
    RUN(test_the_plane_stays_flat);
    RUN(test_every_failed_allocation_rolls_back);
    RUN(test_a_later_step_without_memory_changes_nothing);
    RUN(test_bad_numbers_are_named_and_change_nothing);
    RUN(test_absurd_numbers_do_no_harm);
    RUN(test_far_from_the_origin);
    RUN(test_a_desc_with_nan_is_refused_as_such);
    RUN(test_every_bad_desc_field_is_named);
    RUN(test_wrong_calls_are_refused);
    RUN(test_substeps_follow_the_cfl_number);
    RUN(test_a_budget_cuts_the_solve_short);
    RUN(test_a_solve_cut_short_gains_no_energy);
    RUN(test_what_hardly_presses_is_soon_solved);
    if (!TEST_SLOWED) RUN(test_a_pool_stays_one_in_steps_that_are_too_long);
    RUN(test_settings_change_on_the_way);
    RUN(test_settings_that_may_not_change_are_named);
    RUN(test_a_resting_pool_allocates_nothing);
    RUN(test_figures_agree_with_the_state);
    RUN(test_debug_draw_shows_particles_and_edges);
    RUN(test_a_state_of_an_unlike_liquid_is_refused);
    RUN(test_velocity_at_a_point_is_that_of_the_liquid_there);
    RUN(test_step_that_did_less_says_so_once);
    return TEST_END();
}
