/* test_membrane.c - liquid held by its surface: drops at rest and swinging, pools, waves, momentum, volume.
   SPDX-License-Identifier: MIT */
#include "kit/test_membranes.h"

/* sqrt(sigma/(rho R)), the speed of ripples as long as the drop */
static double speed_of(double r) { return sqrt(MEMBRANE_SIGMA / (MEMBRANE_RHO * r * MEMBRANE_DX)); }

static double rayleigh(int dim, double r)
{
    const double x = r * MEMBRANE_DX;
    return sqrt((dim == 3 ? 8 : 6) * MEMBRANE_SIGMA / (MEMBRANE_RHO * x * x * x));
}

/* Rows of W by themselves: their weights, and what they make of the coordinates of vertices. */
static void check_rows(const fsi_membrane *m, double flat)
{
    fsi__mb_rows r;
    fsi__mb_source source;
    fsi_front_lines_desc d = fsi_front_default_lines_desc();
    fsi_front_lines *lines = NULL;
    unsigned char *skip = (unsigned char *)calloc((size_t)m->front->element_count + 1, 1);
    int f, i, t, c;
    memset(&r, 0, sizeof r);
    d.context = m->context;
    d.dim = m->dim;
    for (i = 0; i < m->dim; i++) d.n[i] = m->desc.n[i];
    d.dx = m->desc.dx;
    CHECK(fsi_front_create_lines(&lines, &d) == FSI_OK && fsi_front_cross_lines(lines, m->front) == FSI_OK);
    for (t = 0; t < m->front->element_count; t++) {
        uint32_t shared = 63;
        for (c = 0; c < m->dim; c++) shared &= m->front->flags[m->front->elements[m->dim * t + c]];
        skip[t] = shared != 0;
    }
    source.context = m->context;
    source.grid = m->grid;
    source.front = m->front;
    source.lines = lines;
    source.skip = skip;
    source.box = 2;
    CHECK(fsi__mb_rows_make(&r, &source, "test") == FSI_OK && r.count >= 16);
    for (f = 0; f < r.count; f++) {
        double sum = 0, at[3] = { 0, 0, 0 };
        const int axis = f >= r.first[2] ? 2 : f >= r.first[1] ? 1 : 0;
        fsi_vec3 x;
        for (i = r.start[f]; i < r.start[f] + r.length[f]; i++) {
            const fsi_vec3 p = m->front->position[r.vertex[i]];
            CHECK(r.weight[i] >= 0);
            sum += r.weight[i];
            at[0] += r.weight[i] * (double)p.x;
            at[1] += r.weight[i] * (double)p.y;
            at[2] += r.weight[i] * (double)p.z;
        }
        x = fsi_grid_position(m->grid, (fsi_grid_place)(FSI_FACES_X + axis), r.cell[f][0], r.cell[f][1], r.cell[f][2]);
        CHECK_NEAR(sum, 1, 1e-13);
        CHECK(r.share[f] >= 0 && r.share[f] <= 1);
        for (i = 0; i < m->dim; i++) /* the middle of what is in the box */
            CHECK(fabs(at[i] - (double)fsi__axis(x, i)) <= 1.0001 * MEMBRANE_DX);
        if (flat > 0) { /* a plane: the mean of a linear function over a square is its value in the middle */
            const int n = m->desc.n[0];
            CHECK(axis == m->dim - 1);
            CHECK_NEAR(at[axis], flat * MEMBRANE_DX, 5e-3 * MEMBRANE_DX);
            CHECK_NEAR(r.share[f], flat - 0.5 - floor(flat - 0.5), 5e-3);
            for (i = 0; i < axis; i++)
                if (r.cell[f][i] > 0 && r.cell[f][i] < n - 1)
                    CHECK_NEAR(at[i], fsi__axis(x, i), 1e-4 * MEMBRANE_DX);
        }
    }
    fsi__mb_rows_free(&r, m->context);
    fsi_front_destroy_lines(lines);
    free(skip);
}

static void test_rows_take_the_mean_over_their_boxes(void)
{
    int dim, flat;
    for (dim = 2; dim <= 3; dim++)
        for (flat = 0; flat < 2; flat++) {
            fsi_context c = fsi_default_context();
            front_shape s = { 2, 0, 0, NULL, NULL };
            fsi_membrane_desc d;
            fsi_membrane *m;
            s.dim = dim;
            if (!flat) membrane_add_drop(&s, 8.13, 8.21, 7.9, 5, 0.1);
            else if (dim == 3) membrane_add_box(&s, 16, 7.3);
            else membrane_add_pool(&s, 16, 7.3, 0, 1);
            d = membrane_desc(&c, &s, 16);
            m = membrane_make(&d);
            check_rows(m, flat ? 7.3 : 0);
            fsi_membrane_destroy(m);
            front_free(&s);
            CHECK(c.bytes == 0);
        }
}

/* E7 of the specification: the membrane falls with the liquid. A drop as round as its mesh, for one step from rest. */
static void test_free_fall_is_even(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        fsi_context c = fsi_default_context();
        front_shape s = { 2, 0, 0, NULL, NULL };
        fsi_membrane_desc d;
        fsi_membrane *m;
        double worst = 0, pressure = 0;
        const double fall = 9.8 * 1e-4;
        int i, a, n;
        s.dim = dim;
        membrane_add_drop(&s, 7.13, 7.21, 6.9, 4, 0.1);
        d = membrane_desc(&c, &s, 14);
        d.surface_tension = (fsi_real)1e-14;
        d.gravity = front_v3(0, -9.8, 0);
        m = membrane_make(&d);
        membrane_step(m, 1e-4);
        for (i = 0; i < m->front->vertex_count; i++)
            worst = fmax(worst, (double)fsi_v3_norm(fsi_v3_sub(m->front->velocity[i], front_v3(0, -fall, 0))));
        n = m->grid->block_count * m->grid->block_cells;
        for (a = 0; a < dim; a++)
            for (i = 0; i < n; i++)
                if (m->u[a]->value[i] < 0 || m->u[a]->value[i] > 0 || a != 1)
                    worst = fmax(worst, fabs((double)m->u[a]->value[i] + (a == 1 ? fall : 0)));
        for (i = 0; i < n; i++) pressure = fmax(pressure, fabs((double)m->pressure->value[i]));
        CHECK(worst <= TOL(1e-10, 1e-7) * fall / 1e-4);
        CHECK(pressure <= TOL(1e-8, 1e-3));
        CHECK_NEAR(m->stats.momentum[1], -m->stats.mass[1] * fall, TOL(1e-10, 1e-6) * m->stats.mass[1] * fall);
        fsi_membrane_destroy(m);
        front_free(&s);
    }
}

/* A round drop, at steps that ripples of a cell cannot follow: it stays at rest, its pressure is Laplace's. */
static void rests(int dim, double r, double dt, double seconds, double laplace)
{
    fsi_context c = fsi_default_context();
    front_shape s = { 2, 0, 0, NULL, NULL };
    fsi_membrane_desc d;
    fsi_membrane *m;
    double middle = r + 2.63, worst = 0, kinetic = 0, volume;
    int k, steps = (int)(seconds / dt + 0.5);
    s.dim = dim;
    membrane_add_drop(&s, middle, middle, middle, r, 0);
    d = membrane_desc(&c, &s, (int)(2 * middle + 1));
    m = membrane_make(&d);
    volume = m->stats.volume;
    for (k = 0; k < steps && membrane_step(m, dt); k++) {
        CHECK(m->stats.kinetic_energy <= fmax(kinetic, 1e-4 * m->stats.surface_energy));
        if (k >= steps / 2 && m->stats.max_speed > worst) worst = m->stats.max_speed;
        kinetic = fmax(kinetic, m->stats.kinetic_energy);
    }
    if (!CHECK(worst <= 1e-2 * speed_of(r))) printf("   dim %d dt %g: %g\n", dim, dt, worst / speed_of(r));
    middle *= MEMBRANE_DX;
    CHECK_NEAR(fsi_membrane_pressure_at(m, front_v3(middle, middle, middle)) * (fsi_real)(r * MEMBRANE_DX),
        (dim - 1) * MEMBRANE_SIGMA, laplace * (dim - 1) * MEMBRANE_SIGMA);
    CHECK_NEAR(m->stats.volume, volume, TOL(1e-9, 1e-5) * volume);
    CHECK(m->stats.pieces == 1 && m->stats.degraded == 0);
    front_check_sound(m->front);
    fsi_membrane_destroy(m);
    front_free(&s);
}
static void test_drop_rests_for_a_minute(void)
{
    const double seconds = TEST_SLOWED ? 3 : 60;
    rests(2, 5, 1.0 / 24, seconds, 0.01);
    rests(2, 5, 1.0 / 60, seconds, 0.01);
    rests(2, 5, 1.0 / 240, seconds / 4, 0.01);
    rests(3, 4, 1.0 / 24, TEST_SLOWED ? 0.5 : 4, 0.02);
    rests(3, 4, 1.0 / 60, TEST_SLOWED ? 0.2 : 2, 0.02);
    rests(3, 4, 1.0 / 240, TEST_SLOWED ? 0.05 : 0.5, 0.02);
}

/* omega^2 = n (n^2 - 1) sigma/(rho R^3) in 2D, n (n - 1) (n + 2) in 3D, n = 2; h times dx is the membrane. */
static double swings(int dim, double r, double stretch, double part, double h, double *mass)
{
    fsi_context c = fsi_default_context();
    front_shape s = { 2, 0, 0, NULL, NULL };
    fsi_membrane_desc d;
    fsi_membrane *m;
    membrane_swing swing;
    const double middle = 1.2 * r + 2.63, dt = part / rayleigh(dim, r);
    double volume, surface, energy = 0;
    int k;
    memset(&swing, 0, sizeof swing);
    s.dim = dim;
    membrane_add_drop(&s, middle, middle, middle, r, stretch);
    d = membrane_desc(&c, &s, (int)(2 * middle + 1));
    d.thickness = (fsi_real)(h * MEMBRANE_DX);
    m = membrane_make(&d);
    volume = m->stats.volume;
    surface = m->stats.surface_energy;
    *mass = (m->stats.mass[0] + m->stats.mass[1]) / (2 * MEMBRANE_RHO * volume);
    for (k = 0; k < (int)(20 / part) && swing.zeros < (dim == 3 ? 2 : 4) && membrane_step(m, dt); k++) {
        int a;
        membrane_swings(&swing, membrane_stretch(m), dt);
        energy = fmax(energy, m->stats.kinetic_energy + m->stats.surface_energy);
        for (a = 0; a < dim; a++) /* nothing but itself touches it */
            CHECK_NEAR(m->stats.wall_impulse[a], 0, TOL(1e-9, 1e-4) * MEMBRANE_RHO * volume * speed_of(r));
    }
    CHECK(energy <= surface * 1.001);
    CHECK_NEAR(m->stats.volume, volume, TOL(1e-9, 1e-5) * volume);
    front_check_sound(m->front);
    fsi_membrane_destroy(m);
    front_free(&s);
    return membrane_frequency(&swing) / rayleigh(dim, r);
}
static void test_drop_swings_as_rayleigh_says(void)
{
    double mass;
    CHECK_NEAR(swings(2, 8, 0.06, 0.05, 0.5, &mass), 1, 0.02);
    CHECK_NEAR(mass, 1.04, 0.02);
    CHECK_NEAR(swings(2, 8, 0.06, 0.2, 0.5, &mass), 1, 0.04);
    if (!TEST_SLOWED) CHECK_NEAR(swings(3, 5, 0.06, 0.1, 0.5, &mass), 1, 0.04);
}
/* Thicker ones than a cell are heavy: the frequency falls with the root of the mass. */
static void test_heavy_membranes_swing_slowly(void)
{
    const double thickness[3] = { 1, 4, 10 };
    double mass, f;
    int k;
    for (k = 0; k < 3; k++) {
        f = swings(2, 8, 0.06, 0.05, thickness[k], &mass);
        CHECK_NEAR(f * sqrt(mass), 1, 0.05);
    }
    CHECK(mass > 2.5);
}

/* Two drops that fly past each other: what carrying along and remeshing cost of their momentum. */
static fsi_vec3 pass_by(void *user, fsi_vec3 x)
{
    return front_v3((double)x.y < *(const double *)user ? 0.1 : -0.1, 0.02, 0);
}
static void test_flying_drops_keep_momentum(void)
{
    fsi_context c = fsi_default_context();
    front_shape s = { 2, 0, 0, NULL, NULL };
    fsi_membrane_desc d;
    fsi_membrane *m;
    double between = 0.013, first[2], scale, volume;
    int k, i, grew = 0;
    membrane_add_drop(&s, 8, 7.1, 0, 5, 0);
    membrane_add_drop(&s, 30, 18.4, 0, 5, 0);
    d = membrane_desc(&c, &s, 40);
    m = membrane_make(&d);
    CHECK(m->front->piece_count == 2);
    CHECK(fsi_membrane_set_velocity(m, pass_by, &between) == FSI_OK);
    volume = m->stats.volume;
    membrane_step(m, 0);
    for (i = 0; i < 2; i++) first[i] = m->stats.momentum[i];
    scale = 0.05 * m->stats.mass[1];
    CHECK_NEAR(first[1], 0.02 * m->stats.mass[1], TOL(1e-12, 1e-5) * scale);
    for (k = 0; k < 40 && membrane_step(m, 0.005); k++) {
        for (i = 0; i < 2; i++) CHECK_NEAR(m->stats.wall_impulse[i], 0, TOL(1e-8, 1e-4) * scale);
        grew += m->stats.kinetic_energy > 0;
    }
    for (i = 0; i < 2; i++) CHECK_NEAR(m->stats.momentum[i], first[i], 0.02 * scale);
    CHECK_NEAR(m->stats.volume, volume, TOL(1e-9, 1e-5) * volume);
    CHECK(grew == 40 && m->front->piece_count == 2);
    for (i = 0; i < m->front->vertex_count; i++) /* still round, and where they have flown to */
        CHECK(fabs((double)m->front->position[i].x - ((double)m->front->position[i].y < 0.0165 ? 0.028 : 0.010))
            < 0.0056);
    fsi_membrane_destroy(m);
    front_free(&s);
}

/* Two drops of other pressures at rest, less than a cell apart: boxes of faces hold vertices of both. Neither moves the
   other. */
static void test_near_drops_rest(void)
{
    fsi_context c = fsi_default_context();
    front_shape s = { 2, 0, 0, NULL, NULL };
    fsi_membrane_desc d;
    fsi_membrane *m;
    double scale;
    int k;
    membrane_add_drop(&s, 12, 20.3, 0, 8, 0);
    membrane_add_drop(&s, 23.9, 20.3, 0, 3, 0);
    d = membrane_desc(&c, &s, 40);
    m = membrane_make(&d);
    CHECK(m->front->piece_count == 2);
    scale = sqrt((double)d.surface_tension / (MEMBRANE_RHO * 3 * MEMBRANE_DX));
    for (k = 0; k < 30 && membrane_step(m, 5e-4); k++) continue;
    CHECK(m->front->piece_count == 2);
    CHECK(m->stats.max_speed <= TOL(1e-3, 5e-3) * scale);
    for (k = 0; k < 2; k++) CHECK_NEAR(m->stats.momentum[k], 0, TOL(1e-9, 1e-4) * scale * m->stats.mass[0]);
    fsi_membrane_destroy(m);
    front_free(&s);
}

/* A box that liquid fills to its lid: all of its surface lies on walls, and no vertex has tension. */
static void test_full_box_rests(void)
{
    int dim, i;
    for (dim = 2; dim <= 3; dim++) {
        fsi_context c = fsi_default_context();
        front_shape s = { 2, 0, 0, NULL, NULL };
        fsi_membrane_desc d;
        fsi_membrane *m;
        double low, high;
        s.dim = dim;
        if (dim == 3) membrane_add_box(&s, 6, 6);
        else membrane_add_pool(&s, 6, 6, 0, 1);
        d = membrane_desc(&c, &s, 6);
        d.gravity = dim == 3 ? front_v3(0, 0, -9.81) : front_v3(0, -9.81, 0);
        m = membrane_make(&d);
        for (i = 0; i < 5 && membrane_step(m, 1.0 / 60); i++) continue;
        CHECK(m->stats.max_speed <= TOL(1e-9, 1e-5) && m->stats.responses == 0);
        low = (double)fsi_membrane_pressure_at(m, front_v3(0.0025, dim == 3 ? 0.0025 : 0.0005, 0.0005));
        high = (double)fsi_membrane_pressure_at(m, front_v3(0.0025, dim == 3 ? 0.0025 : 0.0055, 0.0055));
        CHECK_NEAR((low - high) / (MEMBRANE_RHO * 9.81 * 5 * MEMBRANE_DX), 1, TOL(1e-6, 1e-3));
        fsi_membrane_destroy(m);
        front_free(&s);
    }
}

/* Flat pools: the pressure is that of the depth, wherever the surface is between two layers of centres. */
static void test_pool_rests(void)
{
    const double depth[4] = { 7.05, 7.3, 7.55, 7.9 };
    int k, i, dim;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < (dim == 3 ? 1 : 4); k++) {
            fsi_context c = fsi_default_context();
            front_shape s = { 2, 0, 0, NULL, NULL };
            fsi_membrane_desc d;
            fsi_membrane *m;
            const double h = depth[k], scale = sqrt(9.81 * h * MEMBRANE_DX);
            double volume, worst = 0, p;
            s.dim = dim;
            if (dim == 3) membrane_add_box(&s, 12, h);
            else membrane_add_pool(&s, 12, h, 0, 1);
            d = membrane_desc(&c, &s, 12);
            d.gravity = dim == 3 ? front_v3(0, 0, -9.81) : front_v3(0, -9.81, 0);
            m = membrane_make(&d);
            volume = m->stats.volume;
            CHECK_NEAR(volume, pow(12 * MEMBRANE_DX, dim - 1) * h * MEMBRANE_DX, TOL(1e-12, 1e-6) * volume);
            for (i = 0; i < (dim == 3 ? 20 : 300) && membrane_step(m, 1.0 / 60); i++)
                if (i > 10) worst = fmax(worst, m->stats.max_speed);
            CHECK(worst <= TOL(1e-3, 3e-3) * scale);
            p = (double)fsi_membrane_pressure_at(m, dim == 3 ? front_v3(0.006, 0.006, 0.0005)
                : front_v3(0.006, 0.0005, 0));
            CHECK_NEAR(p / (MEMBRANE_RHO * 9.81 * (h - 0.5) * MEMBRANE_DX), 1, 5e-3);
            CHECK_NEAR(m->stats.volume, volume, TOL(1e-10, 1e-5) * volume);
            for (i = 0; i < m->front->vertex_count; i++) {
                const double z = (double)fsi__axis(m->front->position[i], dim - 1);
                CHECK(z <= (h + 0.02) * MEMBRANE_DX && z >= 0);
                if (!m->front->flags[i]) CHECK_NEAR(z, h * MEMBRANE_DX, 0.02 * MEMBRANE_DX);
            }
            fsi_membrane_destroy(m);
            front_free(&s);
        }
}

/* omega^2 = (g k + sigma k^3/rho) tanh(k h). The crests are at the walls: the line there slides as fast as they do. */
static void test_waves_have_their_dispersion(void)
{
    const double gravity[3] = { 0, 9.81, 100 };
    const int n = 32;
    int g, i, k;
    for (g = 0; g < 3; g++) {
        fsi_context c = fsi_default_context();
        front_shape s = { 2, 0, 0, NULL, NULL };
        fsi_membrane_desc d;
        fsi_membrane *m;
        membrane_swing swing;
        const double wave = 2 * FSI_PI / (n * MEMBRANE_DX), h = 16.4 * MEMBRANE_DX;
        const double omega = sqrt((gravity[g] * wave + MEMBRANE_SIGMA / MEMBRANE_RHO * wave * wave * wave)
            * tanh(wave * h));
        double volume, high = 0, low = 1;
        memset(&swing, 0, sizeof swing);
        membrane_add_pool(&s, n, 16.4, 0.5, 2);
        d = membrane_desc(&c, &s, n);
        d.gravity = front_v3(0, -gravity[g], 0);
        d.line_friction = (fsi_real)1e-9;
        m = membrane_make(&d);
        volume = m->stats.volume;
        for (k = 0; k < 600 && swing.zeros < 5 && membrane_step(m, 0.05 / omega); k++) {
            double a = 0, wide = 0;
            for (i = 0; i < m->front->element_count; i++) {
                const fsi_vec3 p = m->front->position[m->front->elements[2 * i]],
                    q = m->front->position[m->front->elements[2 * i + 1]];
                if (p.y < (fsi_real)1e-3 || q.y < (fsi_real)1e-3) continue;
                wide += (double)(q.x - p.x);
                a += (double)(q.x - p.x) * ((double)(p.y + q.y) / 2 - h) * cos(wave * (double)(p.x + q.x) / 2);
                if (!(p.x > 0) && p.y > 0 && q.x > 0) {
                    high = fmax(high, (double)p.y);
                    low = fmin(low, (double)p.y);
                }
            }
            CHECK_NEAR(fabs(wide), n * MEMBRANE_DX, 1e-6);
            membrane_swings(&swing, a, 0.05 / omega);
        }
        CHECK_NEAR(membrane_frequency(&swing) / omega, 1, 0.03);
        CHECK(high > h + 0.3 * MEMBRANE_DX && low < h - 0.25 * MEMBRANE_DX);
        CHECK_NEAR(m->stats.volume, volume, TOL(1e-9, 1e-5) * volume);
        fsi_membrane_destroy(m);
        front_free(&s);
    }
}

/* Half a disc on a floor meets it at 90 degrees: at rest. */
static void test_sessile_drop_rests_at_90_degrees(void)
{
    fsi_context c = fsi_default_context();
    front_shape s = { 2, 0, 0, NULL, NULL };
    fsi_membrane_desc d;
    fsi_membrane *m;
    const double r = 6 * MEMBRANE_DX, x = 9.2 * MEMBRANE_DX;
    double worst = 0;
    int i, n = 40;
    front_room(&s, n + 1, n + 1);
    for (i = 0; i <= n; i++) {
        s.corner[2 * s.elements] = i;
        s.corner[2 * s.elements++ + 1] = (i + 1) % (n + 1);
        s.x[s.vertices++] = front_v3(x - r * cos(FSI_PI * i / n), i == n ? 0 : r * sin(FSI_PI * i / n), 0);
    }
    d = membrane_desc(&c, &s, 18);
    m = membrane_make(&d);
    for (i = 0; i < 200 && membrane_step(m, 1.0 / 120); i++) if (i > 20) worst = fmax(worst, m->stats.max_speed);
    CHECK(worst <= 0.05 * speed_of(6));
    for (i = 0; i < m->front->vertex_count; i++) {
        const double p = (double)m->front->position[i].x - x, q = (double)m->front->position[i].y;
        if (q > 0 || m->front->flags[i] == 0) CHECK_NEAR(sqrt(p * p + q * q), r, 0.03 * r);
    }
    fsi_membrane_destroy(m);
    front_free(&s);
}

/* With topology, drops that meet become one; without, the step is refused, and nothing has changed. */
static fsi_vec3 to_each_other(void *user, fsi_vec3 x)
{
    return front_v3((double)x.x < *(const double *)user ? 0.1 : -0.1, 0, 0);
}
static void test_drops_merge_when_they_may(void)
{
    int topology, dim, k;
    for (dim = 2; dim <= (TEST_SLOWED ? 2 : 3); dim++)
        for (topology = 0; topology < 2; topology++) {
            fsi_context c = fsi_default_context();
            front_shape s = { 2, 0, 0, NULL, NULL };
            fsi_membrane_desc d;
            fsi_membrane *m;
            fsi_status status = FSI_OK;
            double between = 0.012, volume;
            s.dim = dim;
            membrane_add_drop(&s, 7.4, 8, 8, 4, 0);
            membrane_add_drop(&s, 16.6, 8, 8, 4, 0);
            d = membrane_desc(&c, &s, 24);
            d.n[1] = d.n[2] = 16;
            d.topology = topology;
            m = membrane_make(&d);
            volume = m->stats.volume;
            CHECK(fsi_membrane_set_velocity(m, to_each_other, &between) == FSI_OK);
            for (k = 0; k < 16 && status == FSI_OK; k++) {
                const uint64_t hash = fsi_membrane_hash(m);
                status = fsi_membrane_step(m, (fsi_real)1e-3);
                if (status != FSI_OK) CHECK(fsi_membrane_hash(m) == hash && status == FSI_ERROR_MESH);
            }
            CHECK((status == FSI_OK) == (topology == 1));
            if (topology) CHECK(m->front->piece_count == 1 && m->stats.pieces == 1);
            if (topology) CHECK_NEAR(m->stats.volume, volume, 1e-3 * volume);
            fsi_membrane_destroy(m);
            front_free(&s);
        }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_rows_take_the_mean_over_their_boxes);
    RUN(test_free_fall_is_even);
    RUN_PHYSICS(test_drop_rests_for_a_minute);
    RUN_PHYSICS(test_drop_swings_as_rayleigh_says);
    RUN_PHYSICS(test_heavy_membranes_swing_slowly);
    RUN(test_flying_drops_keep_momentum);
    RUN(test_near_drops_rest);
    RUN(test_full_box_rests);
    RUN(test_pool_rests);
    RUN(test_waves_have_their_dispersion);
    RUN(test_sessile_drop_rests_at_90_degrees);
    RUN(test_drops_merge_when_they_may);
    return TEST_END();
}
