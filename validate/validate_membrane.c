/* validate_membrane.c - bodies held by the surface of a liquid, at full size: where they float, the largest density,
   forces between them, balls, and waves.
   SPDX-License-Identifier: MIT

   Prints lines `key value unit`, and `key value unit reference tolerance pass|fail` where something is demanded. A word
   runs one part. Contact angle 180 degrees throughout. Lengths in cells of 1 mm; l = sqrt(sigma/(rho g)). */
#define FSI_IMPLEMENTATION
#include "../examples/kit/kit.h"
#include "../fsi_membrane.h"
#include "../tests/kit/test_menisci.h"
#include "validate.h"

#define GRAVITY 9.81

/* A pool with one body, or two, in its surface. */
typedef struct pond {
    front_shape shape;
    fsi_membrane *liquid;
    fsi_rigid *world;
} pond;

/* The world, without bodies. */
static void pond_begin(pond *p, int dim)
{
    fsi_rigid_desc d = fsi_rigid_default_desc();
    memset(p, 0, sizeof *p);
    p->shape.dim = d.dim = dim;
    d.gravity = dim == 3 ? front_v3(0, 0, -GRAVITY) : front_v3(0, -GRAVITY, 0);
    d.context = &app.context;
    ex_check(&app, fsi_rigid_create(&p->world, &d));
}

static void pond_add(pond *p, fsi_rigid_kind kind, double r, double density, fsi_vec3 at)
{
    fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
    fsi_rigid_shape ball = fsi_rigid_sphere((fsi_real)(r * MEMBRANE_DX));
    int id;
    ball.density = (fsi_real)(density * MEMBRANE_RHO);
    b.kind = kind;
    b.shapes = &ball;
    b.shape_count = 1;
    b.pose.position = fsi_v3_scale(at, (fsi_real)MEMBRANE_DX);
    ex_check(&app, fsi_rigid_add_body(p->world, &b, &id));
}

/* The liquid, from the shape, in a box of `wide` x `high` cells (3D: wide^2). */
static void pond_fill(pond *p, int wide, double high, double l)
{
    const int dim = p->shape.dim;
    fsi_membrane_desc d = membrane_desc(&app.context, &p->shape, wide);
    d.n[dim - 1] = (int)ceil(high);
    d.gravity = p->world->desc.gravity;
    d.surface_tension = (fsi_real)(MEMBRANE_RHO * GRAVITY * l * l * MEMBRANE_DX * MEMBRANE_DX);
    d.world = p->world;
    ex_check(&app, fsi_membrane_create(&p->liquid, &d));
}

static void pond_end(pond *p)
{
    fsi_membrane_destroy(p->liquid);
    fsi_rigid_destroy(p->world);
    front_free(&p->shape);
}

/* Height of a body's centre [cells]. */
static double pond_height(const pond *p, int body)
{
    return (double)fsi__axis(p->world->body[body]->pose.position, p->shape.dim - 1) / MEMBRANE_DX;
}

/* The largest angle from its lowest point at which a vertex lies on body 0, and the least at which one beside does not:
   their mean [degrees]. */
static double pond_angle(const pond *p)
{
    const fsi_front *f = p->liquid->front;
    double on = 0, off = FSI_PI;
    int i;
    for (i = 0; i < f->vertex_count; i++) {
        const fsi_vec3 x = fsi_v3_sub(f->position[i], p->world->body[0]->pose.position);
        const double a = acos(fmax(-1, fmin(1, -(double)fsi__axis(x, f->dim - 1) / (double)fsi_v3_norm(x))));
        if (f->flags[i] & (uint32_t)FSI_FRONT_FIXED) on = fmax(on, a);
    }
    for (i = 0; i < f->vertex_count; i++) {
        const fsi_vec3 x = fsi_v3_sub(f->position[i], p->world->body[0]->pose.position);
        const double a = acos(fmax(-1, fmin(1, -(double)fsi__axis(x, f->dim - 1) / (double)fsi_v3_norm(x))));
        if (!(f->flags[i] & (uint32_t)FSI_FRONT_FIXED) && a > on) off = fmin(off, a);
    }
    return (on + off) / 2 * 180 / FSI_PI;
}

/* Drag on the bodies, near the critical one of a float. */
static void pond_drag(pond *p, double drag)
{
    int b;
    for (b = 0; b < p->world->count; b++)
        p->world->force[b] = fsi_v3_scale(p->world->body[b]->velocity, (fsi_real)-drag);
}

/* Cells a capillary length for a Bond number: R = sqrt(Bo) l is 3 cells at least, l 6. */
static double length_for(double bond) { return fmax(6, 3 / sqrt(bond)); }

/* ---- cylinders --------------------------------------------------------------------------------------------------- */

/* A cylinder just over a pool that is wide and deep enough for it. Returns the depth of the pool; *drag: about that
   which lets it float without swinging [kg/s]. */
static double lay_cylinder(pond *p, double r, double l, double density, double *drag)
{
    const int wide = (int)ceil(10 * l + 2 * r);
    const double high = ceil(3 * l + 2 * r) + 0.3;
    pond_begin(p, 2);
    membrane_add_pool(&p->shape, wide, high, 0, 1);
    pond_add(p, FSI_RIGID_DYNAMIC, r, density, front_v3(wide / 2 + 0.2, high + r, 0));
    pond_fill(p, wide, high + 3 * r + 4, l);
    *drag = 2 * MEMBRANE_RHO * sqrt(density * FSI_PI * r * r * 2 * (r + l) * GRAVITY * pow(MEMBRANE_DX, 3));
    return high;
}

/* Where a cylinder comes to rest. */
static void float_cylinder(double bond, double density)
{
    const double l = length_for(bond), r = l * sqrt(bond), phi = meniscus_angle(density, r, l);
    const double weight = density * MEMBRANE_RHO * GRAVITY * FSI_PI * r * r * 1e-6;
    const int steps = scaled(600), from = steps * 5 / 6;
    double y = 0, angle = 0, held = 0, deep = 0, fastest = 0, drag, high;
    pond p;
    int k;
    high = lay_cylinder(&p, r, l, density, &drag);
    for (k = 0; k < steps; k++) {
        pond_drag(&p, drag);
        ex_check(&app, fsi_membrane_step(p.liquid, (fsi_real)5e-3));
        deep = fmax(deep, p.liquid->stats.depth / MEMBRANE_DX);
        if (k < from) continue;
        y += pond_height(&p, 0) / (steps - from);
        angle += pond_angle(&p) / (steps - from);
        held += p.liquid->stats.body_impulse[1] / 5e-3 / (steps - from);
        fastest = fmax(fastest, (double)fsi_v3_norm(p.world->body[0]->velocity));
    }
    y -= high + density * FSI_PI * r * r / p.liquid->desc.n[0]; /* the level far away: it displaces its weight */
    say(meniscus_height(phi, r, l), "dx", "cylinder_bond_%g_density_%g_height", bond, density);
    must(y - meniscus_height(phi, r, l), 0, 0.3, "dx", "cylinder_bond_%g_density_%g_height_error", bond, density);
    must(angle, phi * 180 / FSI_PI, 3, "degrees", "cylinder_bond_%g_density_%g_angle", bond, density);
    must(held / weight, 1, 0.03, "1", "cylinder_bond_%g_density_%g_force_over_weight", bond, density);
    must(deep, 0, 1e-4, "dx", "cylinder_bond_%g_density_%g_deepest_vertex", bond, density);
    say(fastest, "m/s", "cylinder_bond_%g_density_%g_speed_at_the_end", bond, density);
    pond_end(&p);
}

static void run_cylinders(void)
{
    static const double bond[] = { 0.02, 0.05, 0.1, 0.2, 0.5 }, density[] = { 10, 5, 4, 3, 1.5 };
    int k;
    for (k = 0; k < 5; k++) float_cylinder(bond[k], density[k]);
}

/* ---- the largest density ----------------------------------------------------------------------------------------- */

/* Is the cylinder carried after 3 s? It has sunk when it is lower than it can float by a quarter of l. */
static int is_carried(double bond, double density, double lowest)
{
    const double l = length_for(bond), r = l * sqrt(bond);
    double drag, high;
    int k, floats = 1;
    pond p;
    high = lay_cylinder(&p, r, l, density, &drag);
    for (k = 0; k < 600 && floats; k++) {
        pond_drag(&p, drag);
        floats = fsi_membrane_step(p.liquid, (fsi_real)5e-3) == FSI_OK;
        floats &= pond_height(&p, 0) > high + lowest - l / 4;
    }
    pond_end(&p);
    return floats;
}

/* At 0.85 and 1.15 of the largest density that floats; beyond 2 it is carried at angles over 90 degrees. */
static void run_limits(void)
{
    static const double bond[] = { 0.02, 0.05, 0.1, 0.2, 0.5, 1 };
    int k, i;
    for (k = 0; k < 6; k++) {
        const double l = length_for(bond[k]), r = l * sqrt(bond[k]);
        double most = 0, phi = 0;
        for (i = 1; i < 2000; i++) {
            const double a = FSI_PI * i / 2000, d = meniscus_load(a, r, l) / (FSI_PI * r * r);
            if (d <= most) continue;
            most = d;
            phi = a;
        }
        say(most, "1", "limit_bond_%g_density", bond[k]);
        must(is_carried(bond[k], 0.85 * most, meniscus_height(phi, r, l)), 1, 0, "1", "limit_bond_%g_at_0.85", bond[k]);
        must(is_carried(bond[k], 1.15 * most, meniscus_height(phi, r, l)), 0, 0, "1", "limit_bond_%g_at_1.15", bond[k]);
    }
}

/* ---- forces between bodies --------------------------------------------------------------------------------------- */

/* A cylinder held beside a wall, where the surface is level, as between two: pushed there by rho g h^2/2, h the depth
   at the wall. */
static void run_images(void)
{
    static const double apart[] = { 1, 1.5, 2, 2.5, 3 }; /* half the distance of the rims [l], about */
    const double r = 4, l = 8, y = -2, high = 20.3;
    const int wide = 90;
    int k, i;
    for (k = 0; k < 5; k++) {
        const double away = r + apart[k] * l;
        double phi[2], h, force = 0, want;
        pond p;
        phi[0] = meniscus_to_wall(y, r, l, away, &h);
        phi[1] = meniscus_to_level(y, r, l);
        pond_begin(&p, 2);
        membrane_add_dented_pool(&p.shape, wide, high, away, y, r, l, phi, 1);
        pond_add(&p, FSI_RIGID_KINEMATIC, r, 1, front_v3(away, high + y, 0));
        pond_fill(&p, wide, high + 12, l);
        for (i = 0; i < 400; i++) {
            ex_check(&app, fsi_membrane_step(p.liquid, (fsi_real)5e-3));
            if (i >= 200) force -= p.liquid->stats.body_impulse[0] / (200 * 5e-3);
        }
        want = MEMBRANE_RHO * GRAVITY * h * h * MEMBRANE_DX * MEMBRANE_DX / 2;
        say(want, "N/m", "image_%g_l_force", apart[k]);
        must(force / want, 1, 0.1, "1", "image_%g_l_force_over_theory", apart[k]);
        pond_end(&p);
    }
}

/* Two cylinders are laid onto a pool, 3 l between them: they meet. */
static void run_pair(void)
{
    const double r = 3, l = 6, density = 2, high = 16.3, apart = 24;
    const int wide = 96, steps = scaled(1000);
    double drag, last = apart, back = 0, nearest = apart, meet = -1;
    pond p;
    int k;
    pond_begin(&p, 2);
    membrane_add_pool(&p.shape, wide, high, 0, 1);
    for (k = -1; k < 2; k += 2)
        pond_add(&p, FSI_RIGID_DYNAMIC, r, density, front_v3(wide / 2 + k * apart / 2, high + r, 0));
    pond_fill(&p, wide, high + 12, l);
    drag = 2 * MEMBRANE_RHO * sqrt(density * FSI_PI * r * r * 2 * (r + l) * GRAVITY * pow(MEMBRANE_DX, 3));
    for (k = 0; k < steps; k++) {
        pond_drag(&p, drag);
        ex_check(&app, fsi_membrane_step(p.liquid, (fsi_real)5e-3));
        last = (double)(p.world->body[1]->pose.position.x - p.world->body[0]->pose.position.x) / MEMBRANE_DX;
        nearest = k < 100 ? last : fmin(nearest, last); /* once they have come to lie in the surface */
        if (meet < 0) back = fmax(back, last - nearest);
        if (meet < 0 && last < 2 * r + 0.1) meet = k * 5e-3;
    }
    say(meet, "s", "pair_meets_after");
    must(back, 0, 0.05, "dx", "pair_goes_back_before");
    must(last, 2 * r, 0.1, "dx", "pair_distance_at_the_end");
    pond_end(&p);
}

/* ---- balls ------------------------------------------------------------------------------------------------------- */

static void rest_ball(double r, double l, double density)
{
    const double volume = 4 * FSI_PI / 3 * r * r * r, weight = density * MEMBRANE_RHO * GRAVITY * volume * 1e-9;
    const double high = 9.3, sigma = MEMBRANE_RHO * GRAVITY * l * l * MEMBRANE_DX * MEMBRANE_DX;
    const int wide = 32, steps = scaled(36), from = steps * 2 / 3;
    double depth, held = 0, angle = 0, fastest = 0, level;
    const double phi = meniscus_ball_angle(density, r, l, &depth), y = r * cos(phi) - depth, bond = r * r / (l * l);
    pond p;
    int k;
    pond_begin(&p, 3);
    membrane_add_pool_around(&p.shape, wide, high, r, l, phi, depth);
    pond_add(&p, FSI_RIGID_DYNAMIC, r, density, front_v3(wide / 2, wide / 2, high + y));
    pond_fill(&p, wide, high + 2 * r + 2, l);
    level = (p.liquid->stats.volume / pow(MEMBRANE_DX, 3) + density * volume) / (wide * wide);
    for (k = 0; k < steps; k++) {
        ex_check(&app, fsi_membrane_step(p.liquid, (fsi_real)(1.0 / 60)));
        if (k < from) continue;
        held += p.liquid->stats.body_impulse[2] * 60 / (steps - from);
        angle += pond_angle(&p) / (steps - from);
        fastest = fmax(fastest, (double)fsi_v3_norm(p.world->body[0]->velocity));
    }
    say(y, "dx", "ball_bond_%.2f_density_%g_height", bond, density);
    must(pond_height(&p, 0) - level - y, 0, 0.3, "dx", "ball_bond_%.2f_density_%g_height_error", bond, density);
    must(angle, phi * 180 / FSI_PI, 90 / (FSI_PI * r), "degrees", "ball_bond_%.2f_density_%g_angle", bond, density);
    must(held / weight, 1, 0.03, "1", "ball_bond_%.2f_density_%g_force_over_weight", bond, density);
    must(fastest / sqrt(sigma / (MEMBRANE_RHO * r * MEMBRANE_DX)), 0, 1e-2, "1", "ball_bond_%.2f_density_%g_speed",
        bond, density);
    pond_end(&p);
}

/* At their balance. Their line is a vertex of the mesh: its angle is right within half an edge of dx/2. */
static void run_balls(void)
{
    rest_ball(3, 6, 3);
    rest_ball(2, 5, 5);
    rest_ball(4, 5, 0.7);
}

/* ---- waves ------------------------------------------------------------------------------------------------------- */

/* omega^2 = (g k + sigma k^3/rho) tanh(k h), a wave of water as long as the pool of n cells; crests at the walls. */
static void run_waves(void)
{
    static const double gravity[] = { 0, 9.81, 100 };
    int i, k, g, n;
    for (n = 32; n <= 64; n *= 2)
        for (g = 0; g < 3; g++) {
            const double wave = 2 * FSI_PI / (n * MEMBRANE_DX), high = n / 2 + 0.4, h = high * MEMBRANE_DX;
            const double omega = sqrt((gravity[g] * wave + MEMBRANE_SIGMA / MEMBRANE_RHO * wave * wave * wave)
                * tanh(wave * h));
            double first = 0, late = 0;
            front_shape s = { 2, 0, 0, NULL, NULL };
            membrane_swing swing;
            fsi_membrane_desc d;
            fsi_membrane *m;
            memset(&swing, 0, sizeof swing);
            membrane_add_pool(&s, n, high, n / 64.0, 2);
            d = membrane_desc(&app.context, &s, n);
            d.gravity = front_v3(0, -gravity[g], 0);
            ex_check(&app, fsi_membrane_create(&m, &d));
            for (k = 0; swing.zeros < 9; k++) {
                double a = 0;
                ex_check(&app, fsi_membrane_step(m, (fsi_real)(0.05 / omega)));
                for (i = 0; i < m->front->element_count; i++) {
                    const fsi_vec3 p = m->front->position[m->front->elements[2 * i]],
                        q = m->front->position[m->front->elements[2 * i + 1]];
                    if (p.y < (fsi_real)1e-3 || q.y < (fsi_real)1e-3) continue;
                    a += (double)(q.x - p.x) * ((double)(p.y + q.y) / 2 - h) * cos(wave * (double)(p.x + q.x) / 2);
                }
                if (k == 0) first = fabs(a);
                if (swing.zeros >= 7) late = fmax(late, fabs(a));
                membrane_swings(&swing, a, 0.05 / omega);
            }
            must(membrane_frequency(&swing) / omega, 1, 0.03, "1", "wave_%d_cells_gravity_%g_frequency", n, gravity[g]);
            say(late / first, "1", "wave_%d_cells_gravity_%g_left_after_4_periods", n, gravity[g]);
            fsi_membrane_destroy(m);
            front_free(&s);
        }
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void);
    } parts[] = {{"cylinders", run_cylinders}, {"limits", run_limits}, {"images", run_images}, {"pair", run_pair},
                 {"balls", run_balls}, {"waves", run_waves}};
    const int count = (int)(sizeof parts / sizeof parts[0]);
    const char *only = NULL;
    int k;
    ex_init(&app, "validate_membrane", "Bodies held by the surface of a liquid: where they float, forces, waves.");
    app.res = 100;
    app.res_help = "per cent of the full number of steps";
    app.threads = 1;
    app.out = "docs";
    ex_operand(&app, "part", &only, "cylinders, limits, images, pair, balls or waves; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    for (k = 0; k < count; k++) if (!only || strcmp(only, parts[k].name) == 0) parts[k].run();
    ex_pool_stop(&app.pool);
    return 0;
}
