/* test_sph_double.c - the liquid's energy and its gradient, density, momentum: with pair arithmetic in double, to rounding.
   SPDX-License-Identifier: MIT */
#define FSI_LANES_DOUBLE
#define FSI_STATIC
#define FSI_IMPLEMENTATION
#include "../fsi_sph.h"
#include "kit/test.h"
#include "kit/test_sph.h"

/* ---- the energy, summed over all pairs ------------------------------------------------------------------------ */

/* Spiky kernel times sigma V (sph.md 2), constants from the tables there. */
static double reference_kernel(const fsi_sph *s, double r)
{
    double h = (double)s->support, q = r / h, c = s->desc.dim == 3 ? 15 / (PI * h * h * h) : 10 / (PI * h * h);
    return q < 1 ? (double)s->kernel_scale * (double)s->particle_volume * c * (1 - q) * (1 - q) * (1 - q) : 0;
}

/* lambda of every particle above the floor at height 0, at its position now. */
static void reference_density(const fsi_sph *s, const fsi_vec3 *x, double *lambda)
{
    int i, j;
    for (i = 0; i < s->count; i++) {
        double d = (double)(s->desc.dim == 2 ? x[i].y : x[i].z) / (double)s->support;
        lambda[i] = (double)s->wall_factor * reference_plane(s->desc.dim, d);
        for (j = 0; j < s->count; j++) lambda[i] += reference_kernel(s, (double)fsi_v3_norm(fsi_v3_sub(x[i], x[j])));
    }
}

/* A compressed, shaken block of liquid that touches an open floor, gravity off; the lowest layer is within the contact band. */
typedef struct scene { fsi_sph *s; fsi_mesh *floor; fsi__sph_run run; } scene;

static void scene_end(scene *a)
{
    fsi_sph_destroy(a->s);
    fsi_mesh_destroy(a->floor);
}

/* What fsi_sph_step does before it solves. */
static int scene_continue(scene *a, double dt)
{
    fsi__sph_run *run = &a->run;
    double before[4];
    int b;
    run->dt = dt;
    run->mu = (double)a->s->stiffness * dt * dt / ((double)a->s->desc.density * run->h * run->h);
    run->kappa0 = run->mu * (double)a->s->desc.contact_stiffness;
    run->omega = 1;
    if (!CHECK(fsi__sph_start_substep(run, before) == FSI_OK) || !CHECK(fsi__sph_first_attach(run) == FSI_OK)) return 0;
    run->outset = FSI__SPH_AT_GUESS; /* the first energy takes iterates there */
    for (b = 0; b < run->bodies.count; b++) memcpy(run->bodies.body[b].q, run->bodies.body[b].star, sizeof run->bodies.body[b].q);
    fsi__sph_energy(run);
    fsi__sph_reset_bodies(&run->bodies, FSI__SPH_TO_GUESS, run->omega);
    run->outset = FSI__SPH_ON_THE_WAY;
    return 1;
}

static int scene_attach(scene *a, double dt) { return CHECK(fsi__sph_begin(&a->run, a->s, dt) == FSI_OK) && scene_continue(a, dt); }

static void scene_begin(scene *a, int dim, fsi_sph_boundary formula)
{
    fsi_sph_desc d = make_desc(dim, 0.02);
    uint64_t random = 7;
    int n[3];
    n[0] = n[1] = 6;
    n[2] = dim == 2 ? 1 : 5;
    d.gravity = v3(0, 0, 0);
    d.boundary = formula;
    d.stiffness = 4000;
    a->s = make_sph(&d);
    shape_begin(dim);
    if (dim == 3) shape_sheet(v3(-2, -2, 0), v3(4, 0, 0), v3(0, 4, 0), 1, 1);
    else shape_line(-2, 0.03, 2);
    a->floor = shape_make(FSI_MESH_OPEN, 0);
    CHECK(fsi_sph_add_mesh(a->s, a->floor, NULL) == FSI_OK);
    add_lattice(a->s, dim == 2 ? v3(0, 0.004, 0) : v3(0, 0, 0.004), n, 0.016, 0.15, &random);
}

/* Moves every iterate by a small random displacement (in H) from its start, the same for the same seed. */
static void scene_move(scene *a, double size)
{
    uint64_t random = 3;
    int r;
    for (r = 0; r < a->run.n; r++) {
        fsi__lane4 *u = &a->run.uz[r];
        u->x = size * (2 * test_random(&random) - 1);
        u->y = size * (2 * test_random(&random) - 1);
        u->z = a->s->desc.dim == 2 ? 0 : size * (2 * test_random(&random) - 1);
        a->run.u[r] = *u;
        a->run.z[r] = fsi__sph_moved(&a->run.base[r], u);
    }
}

static double scene_energy(scene *a, int r, int axis, double shift)
{
    fsi__lane4 *u = &a->run.uz[r], was = *u;
    double e;
    if (axis == 0) u->x += shift;
    else if (axis == 1) u->y += shift;
    else u->z += shift;
    a->run.z[r] = fsi__sph_moved(&a->run.base[r], u);
    e = fsi__sph_energy(&a->run);
    *u = was;
    a->run.z[r] = fsi__sph_moved(&a->run.base[r], u);
    return e;
}

/* T2: r = D step is minus the gradient of the energy, by central differences (sph.md 6); largest error over largest r. */
static void check_gradient(int dim, fsi_sph_boundary formula, int full_diagonal)
{
    scene a;
    double worst = 0, most = 0;
    int r, k, contacts = 0, walls = 0, pressed = 0;
    scene_begin(&a, dim, formula);
    a.s->desc.full_diagonal = full_diagonal;
    if (scene_attach(&a, 1e-3)) {
        scene_move(&a, 0.02);
        fsi__sph_energy(&a.run);
        fsi__sph_parallel(&a.run, fsi__sph_gradient, FSI__SPH_NS_GRADIENT);
        for (r = 0; r < a.run.n; r++) {
            const fsi__lane4 t = a.run.step[r];
            CHECK(t.x * t.x + t.y * t.y + t.z * t.z < 0.99 * FSI__SPH_STEP_MAX * FSI__SPH_STEP_MAX);
            walls += a.run.slot[r] >= 0;
            for (k = 0; a.run.slot[r] >= 0 && k < a.run.wall[a.run.slot[r]].contact_count; k++)
                contacts += fsi__sph_gamma(&a.run, &a.run.wall[a.run.slot[r]], k, &a.run.uz[r], FSI__SPH_AT_Z) < 1;
            pressed += a.run.zp[r].w > 0;
        }
        for (r = 0; r < a.run.n; r++) {
            for (k = 0; k < dim; k++) {
                const double eps = 1e-6;
                double slope = (scene_energy(&a, r, k, eps) - scene_energy(&a, r, k, -eps)) / (2 * eps);
                double force = a.run.step[r].w * (k == 0 ? a.run.step[r].x : k == 1 ? a.run.step[r].y : a.run.step[r].z);
                if (!(fabs(slope + force) <= worst)) worst = fabs(slope + force);
                if (fabs(force) > most) most = fabs(force);
            }
        }
        CHECK(walls > 0 && contacts > 0 && pressed > a.run.n / 4);
        CHECK_NEAR(worst / most, 0, 1e-6);
    }
    scene_end(&a);
}

static void test_forces_are_the_gradient_of_the_energy(void)
{
    check_gradient(3, FSI_SPH_BOUNDARY_EXACT, 0);
    check_gradient(2, FSI_SPH_BOUNDARY_EXACT, 0);
    check_gradient(3, FSI_SPH_BOUNDARY_EXACT, 1);
}

/* The same for a coupled body that the block lies on and a second, static floor it touches: residual of its six unknowns against
   central differences; what the particles are given is what the body loses. */
static void check_body_gradient(int dim)
{
    scene a;
    fsi_mesh *m;
    fsi_body body;
    fsi_mass_properties p;
    fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
    double worst = 0, most = 0, balance = 0;
    int k, r, parts = 0, both = 0;
    scene_begin(&a, dim, FSI_SPH_BOUNDARY_EXACT);
    shape_begin(dim);
    shape_box(dim == 2 ? box3(0.092, -0.3, 0, 0.2, 0.3, 0) : box3(0.092, -0.3, -0.3, 0.2, 0.3, 0.3));
    m = shape_make(FSI_MESH_CLOSED, 0);
    CHECK(fsi_mesh_mass(m, 50, 0, &p) == FSI_OK);
    body = fsi_body_from_mass(&p);
    body.velocity = v3(-0.3, 0.1, 0);
    body.angular_velocity = v3(0, 0, 0.5);
    o.mesh = m;
    o.body = &body;
    CHECK(fsi_sph_add_obstacle(a.s, &o, NULL) == FSI_OK);
    CHECK(fsi__sph_begin(&a.run, a.s, 1e-3) == FSI_OK);
    a.run.share = 1;
    if (scene_continue(&a, 1e-3)) {
        fsi__sph_body *b = &a.run.bodies.body[0];
        scene_move(&a, 0.02);
        for (k = 0; k < 6; k++) b->q[k] = b->qz[k] = dim == 3 || k < 2 || k == 5 ? 0.003 * (k - 1.5) : 0;
        fsi__sph_energy(&a.run);
        fsi__sph_gradients(&a.run);
        for (r = 0; r < a.run.n; r++) {
            const fsi__sph_wall *w = a.run.slot[r] >= 0 ? &a.run.wall[a.run.slot[r]] : NULL;
            for (k = 0; w && k < w->part_count; k++) {
                parts += w->part[k].body == 0;
                both += w->part_count == 2;
                if (w->part[k].body == 0) balance += w->part[k].force[0];
            }
        }
        CHECK(a.run.bodies.count == 1 && a.run.bodies.coupled_count == 1 && parts > (dim == 2 ? 5 : 20) && both > 0);
        CHECK_NEAR(b->residual[0] + balance, b->inertia[0][0] * (b->star[0] - b->qz[0]), 1e-12 * fabs(balance));
        for (k = 0; k < 6; k++) {
            const double eps = 1e-6;
            double slope, r6 = b->residual[k];
            if (dim == 2 && k >= 2 && k <= 4) continue;
            b->qz[k] += eps;
            slope = fsi__sph_energy(&a.run);
            b->qz[k] -= 2 * eps;
            slope = (slope - fsi__sph_energy(&a.run)) / (2 * eps);
            b->qz[k] += eps;
            if (!(fabs(slope + r6) <= worst)) worst = fabs(slope + r6);
            if (fabs(r6) > most) most = fabs(r6);
        }
        CHECK_NEAR(worst / most, 0, 1e-6);
    }
    scene_end(&a);
    fsi_mesh_destroy(m);
}

static void test_a_bodys_force_is_the_gradient_of_the_energy(void)
{
    check_body_gradient(2);
    check_body_gradient(3);
}

static void test_density_and_energy_match_a_sum_over_all_pairs(void)
{
    static double lambda[256];
    int dim, i, r;
    for (dim = 2; dim <= 3; dim++) {
        scene a;
        double energy = 0, worst = 0;
        scene_begin(&a, dim, FSI_SPH_BOUNDARY_EXACT);
        if (scene_attach(&a, 1e-3)) {
            double e = fsi__sph_energy(&a.run), dhat = 0.5 * (double)a.s->desc.spacing;
            reference_density(a.s, a.run.guess, lambda);
            for (r = 0; r < a.run.n; r++) {
                double d, p, c, diff;
                i = a.run.order[r];
                d = (double)(dim == 2 ? a.run.guess[i].y : a.run.guess[i].z);
                p = lambda[i] > 1 ? lambda[i] - 1 : 0;
                c = d < dhat ? pow(1 - d / dhat, 2) / 2 + pow(1 - d / dhat, 3) / 3 : 0; /* n0 = 2, N = 3 */
                energy += a.run.mu * (0.5 * p * p + c) + 0.5 / (a.run.h * a.run.h) * (double)fsi_v3_norm2(fsi_v3_sub(a.run.guess[i], a.run.target[i]));
                diff = fabs(a.run.lambda[r] - lambda[i]);
                if (!(diff <= worst)) worst = diff;
            }
            CHECK_NEAR(worst, 0, TOL(1e-7, 1e-5));
            CHECK_NEAR(e, energy, TOL(1e-7, 1e-4) * energy);
        }
        scene_end(&a);
    }
}

/* ---- momentum ------------------------------------------------------------------------------------------------- */

/* A free, compressed, shaken block with random velocities: the most momentum that a step creates, over the largest sum
   of m |dv| of a step; *spin: the same of angular momentum. */
static double free_block_defect(int dim, fsi_sph_velocity how, double xsph, double *spin)
{
    fsi_sph_desc d = make_desc(dim, 0.02);
    fsi_sph *s;
    static fsi_vec3 before[512];
    double worst = 0, most = 0, most_turn = 0;
    uint64_t random = 11;
    int n[3], step, i;
    n[0] = n[1] = dim == 2 ? 16 : 7;
    n[2] = dim == 2 ? 1 : 7;
    d.gravity = v3(0, 0, 0);
    d.velocity_update = how;
    d.xsph = (fsi_real)xsph;
    d.stiffness = 40000;
    s = make_sph(&d);
    add_lattice(s, v3(0, 0, 0), n, 0.017, 0.1, &random);
    for (i = 0; i < s->count; i++) s->velocity[i] = random_vector(&random, dim);
    *spin = 0;
    for (step = 0; step < 10; step++) {
        fsi_vec3 sum = v3(0, 0, 0), turn = v3(0, 0, 0);
        double all = 0, all_turn = 0;
        memcpy(before, s->velocity, (size_t)s->count * sizeof *before);
        step_ok(s, 1e-3);
        for (i = 0; i < s->count; i++) {
            fsi_vec3 dv = fsi_v3_sub(s->velocity[i], before[i]), m = fsi_v3_cross(s->position[i], dv);
            sum = fsi_v3_add(sum, dv);
            turn = fsi_v3_add(turn, m);
            all += (double)fsi_v3_norm(dv);
            all_turn += (double)fsi_v3_norm(m);
        }
        if (!((double)fsi_v3_norm(sum) <= worst)) worst = (double)fsi_v3_norm(sum);
        if (!((double)fsi_v3_norm(turn) <= *spin)) *spin = (double)fsi_v3_norm(turn);
        most = all > most ? all : most;
        most_turn = all_turn > most_turn ? all_turn : most_turn;
    }
    fsi_sph_destroy(s);
    *spin /= most_turn;
    return worst / most;
}

static void test_a_free_block_keeps_its_momentum(void)
{
    double spin;
    int dim, smooth;
    for (dim = 2; dim <= 3; dim++) {
        for (smooth = TEST_SLOWED > 1 ? 1 : 0; smooth < 2; smooth++) {
            CHECK_NEAR(free_block_defect(dim, FSI_SPH_VELOCITY_FORCES, 0.05 * smooth, &spin), 0, TOL(1e-12, 1e-6));
            CHECK_NEAR(spin, 0, 0.02);
            CHECK_NEAR(free_block_defect(dim, FSI_SPH_VELOCITY_POSITIONS, 0.05 * smooth, &spin), 0, TOL(1e-12, 1e-6));
            CHECK_NEAR(spin, 0, 0.02);
            printf("      %dD, xsph %.2f: angular momentum %.1e of sum |r x m dv| a step\n", dim, 0.05 * smooth, spin);
        }
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_forces_are_the_gradient_of_the_energy);
    RUN(test_a_bodys_force_is_the_gradient_of_the_energy);
    RUN(test_density_and_energy_match_a_sum_over_all_pairs);
    RUN(test_a_free_block_keeps_its_momentum);
    return TEST_END();
}
