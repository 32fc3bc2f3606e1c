/* elastic_cases.h - elastic bodies whose motion or rest is known: what test_elastic.c measures small and
   validate_elastic.c at full size. Each returns what it measured; include it after test_elastic.h.
   SPDX-License-Identifier: MIT */
#ifndef FSI_ELASTIC_CASES_H
#define FSI_ELASTIC_CASES_H

/* ---- motion without forces -------------------------------------------------------------------------------------- */

/* A block of count x 3 x 3 cells falls for `steps` of h: how far its centre is off g t^2/2 (backward Euler:
   g t (t + h)/2), over that. */
TEST_FN double fall_error(int dim, int order, int handles, double h, int steps)
{
    block b = block_make(4, 3, dim == 3 ? 3 : 0, 0.05);
    world w = world_of(dim);
    const double t = steps * h, fall = 9.81 * t * (order == 1 ? t + h : t) / 2;
    fsi_vec3 from, to;
    double error;
    w.desc.time_order = order;
    w.body.handles = handles;
    w.body.velocity = fsi_v3(2, 1, 0);
    if (!world_begin(&w)) return HUGE_VAL;
    world_add(&w, &b);
    from = w.s->bodies[0].center;
    world_run(&w, h, steps);
    to = w.s->bodies[0].center;
    error = fabs((double)(to.x - from.x) - 2 * t) + fabs((double)(to.y - from.y) - t + (dim == 2 ? fall : 0));
    if (dim == 3) error += fabs((double)(to.z - from.z) + fall);
    error += fabs((double)(dim == 3 ? w.s->bodies[0].velocity.z : w.s->bodies[0].velocity.y - 1) + 9.81 * t) * t;
    world_end(&w);
    block_free(&b);
    return error / fall;
}

/* How far a vertex of a block moves in a second that was only turned about `axis`, over the block's size. */
TEST_FN double turned_drift(int dim, int handles, double nu, fsi_vec3 axis, double angle)
{
    block b = block_make(4, 3, dim == 3 ? 3 : 0, 0.1);
    world w = world_of(dim);
    fsi_vec3 *x = (fsi_vec3 *)malloc(2 * (size_t)b.vertices * sizeof *x), *y = x + b.vertices;
    double most = 0;
    int v;
    w.desc.gravity = fsi_v3(0, 0, 0);
    w.body.handles = handles;
    w.material.poisson = REAL(nu);
    w.body.orientation = fsi_quat_from_axis_angle(axis, REAL(angle));
    if (!world_begin(&w)) return HUGE_VAL;
    world_add(&w, &b);
    CHECK(fsi_elastic_vertices(w.s, 0, x, NULL) == FSI_OK);
    world_run(&w, 1.0 / 60, 60);
    CHECK(fsi_elastic_vertices(w.s, 0, y, NULL) == FSI_OK);
    for (v = 0; v < b.vertices; v++) most = fmax(most, (double)fsi_v3_norm(fsi_v3_sub(x[v], y[v])));
    most /= w.s->bodies[0].size;
    free(x);
    world_end(&w);
    block_free(&b);
    return most;
}

/* A free block turns once at `spin` rad/s in steps of about h: the share of its angular momentum that is lost. */
TEST_FN double spin_lost(int order, int handles, double spin, double h)
{
    block b = block_make(6, 4, 4, 0.05);
    world w = world_of(3);
    const int steps = (int)(2 * FSI_PI / spin / h + 0.5);
    double before, after;
    w.desc.gravity = fsi_v3(0, 0, 0);
    w.desc.time_order = order;
    w.body.handles = handles;
    w.body.contact_points = 0;
    w.body.angular_velocity = fsi_v3(0, 0, REAL(spin));
    if (!world_begin(&w)) return HUGE_VAL;
    world_add(&w, &b);
    before = (double)w.s->bodies[0].spin.z;
    /* of the box; the lumped masses of a full body have a little more */
    CHECK_NEAR(before, (double)w.s->bodies[0].mass * (0.3 * 0.3 + 0.2 * 0.2) / 12 * spin,
               (handles ? TOL(1e-8, 1e-5) : 0.1) * before);
    world_run(&w, 2 * FSI_PI / spin / steps, steps);
    after = (double)w.s->bodies[0].spin.z;
    CHECK(fabs(w.s->stats.momentum[0]) + fabs(w.s->stats.momentum[1]) < TOL(1e-9, 1e-4));
    world_end(&w);
    block_free(&b);
    return 1 - after / before;
}

/* Two blocks, the second of half the density, meet in space at 2 m/s: change of their momentum over that of the first.
   met: whether they bounced. */
TEST_FN double collision_momentum_error(int handles, int *met)
{
    block b = block_make(3, 3, 3, 0.1);
    world w = world_of(3);
    double sum, first;
    w.desc.gravity = fsi_v3(0, 0, 0);
    w.body.handles = handles;
    w.body.velocity = fsi_v3(1, 0, 0);
    if (!world_begin(&w)) return HUGE_VAL;
    world_add(&w, &b);
    w.body.position = fsi_v3(REAL(0.4), REAL(0.05), REAL(0.03));
    w.body.velocity = fsi_v3(-1, 0, 0);
    w.material.density = 500;
    world_add(&w, &b);
    first = w.s->bodies[0].mass;
    world_run(&w, 1.0 / 240, 120);
    *met = (double)w.s->bodies[1].velocity.x > 0.3 && (double)w.s->bodies[0].velocity.x < 0.7 &&
           w.s->stats.deepest < 0.002;
    sum = (double)w.s->bodies[0].velocity.x * w.s->bodies[0].mass +
          (double)w.s->bodies[1].velocity.x * w.s->bodies[1].mass;
    sum = fmax(fabs(sum - 0.5 * first), fabs(w.s->stats.momentum[0] - 0.5 * first));
    sum = fmax(sum, fmax(fabs(w.s->stats.momentum[1]), fabs(w.s->stats.momentum[2])));
    world_end(&w);
    block_free(&b);
    return sum / first;
}

/* A block that is bent at first tumbles and wobbles for a second: the largest change of its momentum in a step over m
   times the speed of its rim. */
TEST_FN double tumbling_momentum_error(int handles)
{
    block b = block_make(6, 4, 4, 0.05);
    world w = world_of(3);
    fsi_vec3 *x = (fsi_vec3 *)malloc(2 * (size_t)b.vertices * sizeof *x), *v = x + b.vertices;
    double most = 0, before[3], change;
    int k, c;
    w.desc.gravity = fsi_v3(0, 0, 0);
    w.body.handles = handles;
    w.body.contact_points = 0;
    if (!world_begin(&w)) return HUGE_VAL;
    world_add(&w, &b);
    for (k = 0; k < b.vertices; k++) {
        const double s = (double)b.x[k].x / 0.3 - 0.5;
        x[k] = fsi_v3(b.x[k].x, b.x[k].y, b.x[k].z + REAL(0.2 * s * s));
        v[k] = fsi_v3_add(fsi_v3_cross(fsi_v3(3, -4, 5), b.x[k]), fsi_v3(1, 2, 3));
    }
    CHECK(fsi_elastic_set_vertices(w.s, 0, x, v) == FSI_OK);
    CHECK(fsi_elastic_step(w.s, 0) == FSI_OK);
    for (k = 0; k < 60; k++) {
        memcpy(before, w.s->stats.momentum, sizeof before);
        world_run(&w, 1.0 / 60, 1);
        for (c = 0, change = 0; c < 3; c++) change += fabs(w.s->stats.momentum[c] - before[c]);
        most = fmax(most, change);
    }
    most /= w.s->bodies[0].mass * 5;
    free(x);
    world_end(&w);
    block_free(&b);
    return most;
}

/* ---- statics ---------------------------------------------------------------------------------------------------- */

/* Area of a block's end that belongs to its vertex (y, z), over that of a cell: Kuhn's diagonals. 2D: length. */
TEST_FN double end_share(const block *b, int y, int z)
{
    double sum = 0;
    int i, j;
    if (b->dim == 2) return y == 0 || y == b->ny ? 0.5 : 1;
    for (i = -1; i < 1; i++) for (j = -1; j < 1; j++)
        if (y + i >= 0 && z + j >= 0 && y + i < b->ny && z + j < b->nz) sum += i == j ? 2 : 1;
    return sum / 6;
}

typedef struct pulled { double young, poisson, uneven; } pulled;

/* A block under tension `stress`: the moduli that its strains along and across tell. Its inner vertices stand `jitter`
   cells beside their lattice; uneven: how far any vertex is from where the mean strains have it, over what the end
   moves (patch test: 0). */
TEST_FN pulled pull_block(int dim, double nu, double stress, double jitter, int iterations)
{
    block b = block_make(6, 3, dim == 3 ? 3 : 0, 0.1 / 3);
    world w = world_of(dim);
    const double length = 6 * b.a, wide = 3 * b.a;
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)b.vertices * sizeof *x);
    uint64_t random = 3;
    pulled out = { 0, 0, 0 };
    double along, across, deep;
    int k, v;
    for (v = 0; v < b.vertices; v++) {
        const int i = v % 7, j = v / 7 % 4, n = v / 28;
        if (i % 6 == 0 || j % 3 == 0 || (dim == 3 && n % 3 == 0)) continue;
        b.x[v].x += REAL(jitter * b.a * (test_random(&random) - 0.5));
        b.x[v].y += REAL(jitter * b.a * (test_random(&random) - 0.5));
        if (dim == 3) b.x[v].z += REAL(jitter * b.a * (test_random(&random) - 0.5));
    }
    w.desc.gravity = fsi_v3(0, 0, 0);
    w.desc.time_order = 1;
    w.desc.iterations = iterations;
    w.desc.tolerance = 0;
    w.body.handles = 0;
    w.body.contact_points = 0;
    w.material.poisson = REAL(nu);
    if (!world_begin(&w)) return out;
    world_add(&w, &b);
    for (k = 0; k < 20; k++) {
        for (v = 0; v < b.vertices; v++) {
            const int i = v % 7;
            const double f = stress * end_share(&b, v / 7 % 4, v / 28) * (dim == 3 ? b.a * b.a : b.a);
            if (i % 6 == 0) CHECK(fsi_elastic_add_force(w.s, 0, b.x[v], fsi_v3(REAL(i ? f : -f), 0, 0)) == FSI_OK);
        }
        world_run(&w, 0.5, 1);
    }
    CHECK(fsi_elastic_vertices(w.s, 0, x, NULL) == FSI_OK);
    along = (double)(x[block_at(&b, 6, 1, 0)].x - x[block_at(&b, 0, 1, 0)].x) / length - 1;
    across = (double)(x[block_at(&b, 3, 3, 0)].y - x[block_at(&b, 3, 0, 0)].y) / wide - 1;
    deep = dim == 3 ? (double)(x[block_at(&b, 3, 1, 3)].z - x[block_at(&b, 3, 1, 0)].z) / wide - 1 : 0;
    for (v = 0; v < b.vertices; v++) {
        const fsi_vec3 u = fsi_v3_sub(x[v], x[0]), r = b.x[v];
        out.uneven = fmax(out.uneven, fabs((double)u.x - (1 + along) * (double)r.x) / (along * length));
        out.uneven = fmax(out.uneven, fabs((double)u.y - (1 + across) * (double)r.y) / (along * length));
        out.uneven = fmax(out.uneven, fabs((double)u.z - (1 + deep) * (double)r.z) / (along * length));
    }
    /* 2D is plane strain: e_x = (1 - nu^2) s/E, e_y = -nu (1 + nu) s/E */
    out.poisson = -across / along;
    if (dim == 2) out.poisson /= 1 + out.poisson;
    out.young = stress / along * (dim == 2 ? 1 - out.poisson * out.poisson : 1);
    free(x);
    world_end(&w);
    block_free(&b);
    return out;
}

/* ---- beams ------------------------------------------------------------------------------------------------------ */

/* A beam of square section along x, clamped at x = 0, of n cells across and `along` cells in its length. */
typedef struct beam {
    double length, side, young, poisson, density, damping, tolerance;
    int n, along, handles, regions, order, iterations;
    block b;
    world w;
    int *turned;   /* attachments of the far end */
    fsi_vec3 *x;
} beam;

TEST_FN beam beam_of(double slenderness, int n, int along)
{
    beam m;
    memset(&m, 0, sizeof m);
    m.side = 0.05;
    m.length = slenderness * m.side;
    m.young = 5e6;
    m.density = 1000;
    m.n = n;
    m.along = along;
    m.order = 1;
    m.iterations = 3000;
    m.tolerance = 1e-9;
    return m;
}

/* Attachments of a face x = const; stiffness a thousand times that of the section. */
TEST_FN void beam_hold(beam *m, int i, int *id)
{
    fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
    int j, k, at = 0;
    a.stiffness = REAL(1000 * m->young * m->side / ((m->n + 1) * (m->n + 1)));
    for (k = 0; k <= m->n; k++) for (j = 0; j <= m->n; j++, at++) {
        a.vertex = block_at(&m->b, i, j, k);
        a.target = m->b.x[a.vertex];
        CHECK(fsi_elastic_attach(m->w.s, &a, id ? &id[at] : NULL) == FSI_OK);
    }
}

TEST_FN int beam_begin(beam *m, double gravity)
{
    int v;
    m->b = block_make(m->along, m->n, m->n, m->side / m->n);
    m->x = (fsi_vec3 *)malloc((size_t)m->b.vertices * sizeof *m->x);
    m->turned = (int *)malloc((size_t)((m->n + 1) * (m->n + 1)) * sizeof(int));
    for (v = 0; v < m->b.vertices; v++)
        m->b.x[v] = fsi_v3(REAL(m->length * (v % (m->along + 1)) / m->along), m->b.x[v].y - REAL(m->side / 2),
                           m->b.x[v].z - REAL(m->side / 2));
    m->w = world_of(3);
    m->w.desc.gravity = fsi_v3(0, 0, REAL(-gravity));
    m->w.desc.time_order = m->order;
    m->w.desc.iterations = m->iterations;
    m->w.desc.tolerance = REAL(m->tolerance);
    m->w.body.handles = m->handles;
    m->w.body.regions = m->regions;
    m->w.body.contact_points = 0;
    m->w.material.young = REAL(m->young);
    m->w.material.poisson = REAL(m->poisson);
    m->w.material.density = REAL(m->density);
    m->w.material.damping = REAL(m->damping);
    if (!world_begin(&m->w)) return 0;
    world_add(&m->w, &m->b);
    beam_hold(m, 0, NULL);
    return 1;
}

TEST_FN void beam_end(beam *m)
{
    world_end(&m->w);
    block_free(&m->b);
    free(m->x);
    free(m->turned);
}

/* Where the axis at cell i is. */
TEST_FN fsi_vec3 beam_axis(beam *m, int i)
{
    const int h = m->n / 2;
    const fsi_vec3 a = m->x[block_at(&m->b, i, h, h)], c = m->x[block_at(&m->b, i, m->n - h, m->n - h)];
    return fsi_v3_scale(fsi_v3_add(a, c), REAL(0.5));
}

/* To rest, in a few steps of 2 s; `load` [N] on the free end. */
TEST_FN fsi_vec3 beam_settle(beam *m, double load)
{
    int k, y, z;
    for (k = 0; k < 3; k++) {
        if (load > 0) for (z = 0; z <= m->n; z++) for (y = 0; y <= m->n; y++)
            CHECK(fsi_elastic_add_force(m->w.s, 0, m->b.x[block_at(&m->b, m->along, y, z)],
                fsi_v3(0, 0, REAL(-load * end_share(&m->b, y, z) / (m->n * m->n)))) == FSI_OK);
        world_run(&m->w, 2, 1);
    }
    CHECK(fsi_elastic_vertices(m->w.s, 0, m->x, NULL) == FSI_OK);
    return beam_axis(m, m->along);
}

/* Deflection of the tip under the beam's weight, w L^4/(8 E I) + w L^2/(2 k G A), over that. */
TEST_FN double beam_weight_ratio(beam *m, double gravity)
{
    const double area = m->side * m->side, inertia = area * area / 12, load = m->density * area * gravity,
                 g = m->young / (2 * (1 + m->poisson)), l2 = m->length * m->length,
                 theory = load * l2 * (l2 / (8 * m->young * inertia) + 1 / (2 * 5.0 / 6 * g * area));
    double tip;
    if (!beam_begin(m, gravity)) return HUGE_VAL;
    tip = -(double)beam_settle(m, 0).z;
    beam_end(m);
    return tip / theory;
}

/* A beam with much damping b creeps under its weight: (1 + b/h) x = x_static + b/h x_before, so after n steps of h it
   hangs by 1 - (1 + h/b)^-n of what it does at rest. That of the tip over this, for b = 1 s, after 1 s. */
TEST_FN double beam_creep_ratio(beam *m, double gravity)
{
    const double h = 0.05, share = 1 - pow(1 + h, -20);
    double early, rest;
    m->damping = 1;
    if (!beam_begin(m, gravity)) return HUGE_VAL;
    world_run(&m->w, h, 20);
    CHECK(fsi_elastic_vertices(m->w.s, 0, m->x, NULL) == FSI_OK);
    early = -(double)beam_axis(m, m->along).z;
    world_run(&m->w, 10, 10);
    CHECK(fsi_elastic_vertices(m->w.s, 0, m->x, NULL) == FSI_OK);
    rest = -(double)beam_axis(m, m->along).z;
    beam_end(m);
    return early / rest / share;
}

/* Under a load F at the tip with F L^2/(E I) = `load`: deflection and shortening over the length. */
TEST_FN void beam_elastica(beam *m, double load, double *deflection, double *shortening)
{
    const double area = m->side * m->side, inertia = area * area / 12;
    fsi_vec3 tip;
    *deflection = *shortening = HUGE_VAL;
    if (!beam_begin(m, 0)) return;
    tip = beam_settle(m, load * m->young * inertia / (m->length * m->length));
    *deflection = -(double)tip.z / m->length;
    *shortening = 1 - (double)tip.x / m->length;
    beam_end(m);
}

/* Clamped at both ends: how far the middle hangs, w L^4/(384 E I) + w L^2/(8 k G A), over that. */
TEST_FN double beam_middle_ratio(beam *m, double gravity)
{
    const double area = m->side * m->side, inertia = area * area / 12, load = m->density * area * gravity,
                 g = m->young / (2 * (1 + m->poisson)), l2 = m->length * m->length,
                 theory = load * l2 * (l2 / (384 * m->young * inertia) + 1 / (8 * 5.0 / 6 * g * area));
    double middle;
    if (!beam_begin(m, gravity)) return HUGE_VAL;
    beam_hold(m, m->along, m->turned);
    beam_settle(m, 0);
    middle = -(double)beam_axis(m, m->along / 2).z;
    beam_end(m);
    return middle / theory;
}

/* Torque at an angle of the far end over G J angle/L, J = 0.1406 side^4. */
TEST_FN double beam_torque_ratio(beam *m, double angle)
{
    const double area = m->side * m->side, g = m->young / (2 * (1 + m->poisson));
    double sum = 0;
    int k, y, z, step;
    if (!beam_begin(m, 0)) return HUGE_VAL;
    beam_hold(m, m->along, m->turned);
    for (step = 1; step <= 6; step++) {
        const double c = cos(angle * fmin(1, step / 4.0)), s = sin(angle * fmin(1, step / 4.0));
        for (sum = 0, k = 0, z = 0; z <= m->n; z++) for (y = 0; y <= m->n; y++, k++) {
            const fsi_vec3 r = m->b.x[block_at(&m->b, m->along, y, z)];
            m->x[k] = fsi_v3(r.x, REAL(c * (double)r.y - s * (double)r.z), REAL(s * (double)r.y + c * (double)r.z));
            CHECK(fsi_elastic_set_target(m->w.s, m->turned[k], m->x[k]) == FSI_OK);
        }
        world_run(&m->w, 0.5, 1);
        for (k = 0; k < (m->n + 1) * (m->n + 1); k++) {
            fsi_vec3 f;
            CHECK(fsi_elastic_attachment_force(m->w.s, m->turned[k], &f) == FSI_OK);
            sum += (double)(m->x[k].y * f.z - m->x[k].z * f.y);
        }
    }
    beam_end(m);
    return sum / (g * 0.1406 * area * area * angle / m->length);
}

/* Huang's (1961) frequency equation of a Timoshenko beam, clamped at one end; b^2 = rho A w^2 L^4/(E I), r^2 = I/(A
   L^2), s^2 = E I/(k G A L^2):
      2 + (b^2 (r^2 - s^2)^2 + 2) cosh(b p) cos(b q) - b (r^2 + s^2)/(1 - b^2 r^2 s^2)^(1/2) sinh(b p) sin(b q) = 0,
      p, q = ((-+ (r^2 + s^2) + ((r^2 - s^2)^2 + 4/b^2)^(1/2))/2)^(1/2). */
TEST_FN double beam__huang(double b, double r2, double s2)
{
    const double root = sqrt((r2 - s2) * (r2 - s2) + 4 / (b * b)), p = sqrt((root - (r2 + s2)) / 2),
                 q = sqrt((root + (r2 + s2)) / 2);
    return 2 + (b * b * (r2 - s2) * (r2 - s2) + 2) * cosh(b * p) * cos(b * q) -
           b * (r2 + s2) / sqrt(1 - b * b * r2 * s2) * sinh(b * p) * sin(b * q);
}
TEST_FN double beam_theory_frequency(const beam *m, int mode)
{
    const double r2 = m->side * m->side / 12 / (m->length * m->length), s2 = r2 * 2 * (1 + m->poisson) * 6 / 5;
    double b = 0.5, step = 0.01, low, high;
    int found = -1, k;
    for (; found < mode; b += step) if (beam__huang(b, r2, s2) * beam__huang(b + step, r2, s2) <= 0) found++;
    low = b - step;
    high = b;
    for (k = 0; k < 60; k++) {
        const double half = (low + high) / 2;
        if (beam__huang(low, r2, s2) * beam__huang(half, r2, s2) <= 0) high = half;
        else low = half;
    }
    return low / (2 * FSI_PI) * sqrt(m->young * r2 / (m->density * m->length * m->length));
}

/* Mode 0, 1, 2 of Euler's beam at 0 <= s <= 1. */
TEST_FN double beam__shape(int mode, double s)
{
    static const double beta[3] = { 1.875104, 4.694091, 7.854757 };
    const double b = beta[mode], c = (cosh(b) + cos(b)) / (sinh(b) + sin(b));
    return cosh(b * s) - cos(b * s) - c * (sinh(b * s) - sin(b * s));
}

/* Frequency of a mode over theory: the beam, bent into it, is let go, and what the axis has of the mode is watched
   through `periods` of `steps` steps. */
TEST_FN double beam_frequency_ratio(beam *m, int mode, int periods, int steps)
{
    const double theory = beam_theory_frequency(m, mode), h = 1 / (theory * steps);
    double before = 0, first = 0, last = 0;
    int k, v, passed = 0;
    m->order = 2;
    if (!(m->tolerance < 1e-9)) m->tolerance = 1e-7; /* the default */
    if (m->iterations == 3000) m->iterations = 50;
    if (!beam_begin(m, 0)) return HUGE_VAL;
    for (v = 0; v < m->b.vertices; v++) {
        m->x[v] = m->b.x[v];
        m->x[v].z += REAL(1e-3 * m->length * beam__shape(mode, (double)m->x[v].x / m->length));
    }
    CHECK(fsi_elastic_set_vertices(m->w.s, 0, m->x, NULL) == FSI_OK);
    for (k = 0; k < periods * steps; k++) {
        double now = 0;
        world_run(&m->w, h, 1);
        CHECK(fsi_elastic_vertices(m->w.s, 0, m->x, NULL) == FSI_OK);
        for (v = 1; v <= m->along; v++)
            now += (double)beam_axis(m, v).z * beam__shape(mode, (double)v / m->along) * (v < m->along ? 1 : 0.5);
        if (before * now < 0) {
            last = k + before / (before - now);
            if (passed++ == 0) first = last;
        }
        before = now;
    }
    beam_end(m);
    return passed > 1 ? (passed - 1) / (2 * (last - first) * h) / theory : HUGE_VAL;
}

/* ---- shapes recovered ------------------------------------------------------------------------------------------- */

typedef enum crushed_kind { CRUSHED_FLAT, CRUSHED_INVERTED, CRUSHED_RANDOM } crushed_kind;

/* A block of n cells a side whose vertices are put in a plane, mirrored, or anywhere in its box; `seconds` later: how
   far its volume is off; least and most: smallest determinant and largest stretch. */
TEST_FN double crushed_error(int dim, int n, int handles, crushed_kind kind, uint64_t seed, double seconds,
                             double *least, double *most)
{
    block b = block_make(n, n, dim == 3 ? n : 0, 0.2 / n);
    world w = world_of(dim);
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)b.vertices * sizeof *x);
    double error;
    int v;
    w.desc.gravity = fsi_v3(0, 0, 0);
    w.body.handles = handles;
    w.body.contact_points = 0;
    w.material.damping = REAL(0.02);
    if (!world_begin(&w)) return HUGE_VAL;
    world_add(&w, &b);
    for (v = 0; v < b.vertices; v++) {
        x[v] = b.x[v];
        if (kind == CRUSHED_FLAT) *(dim == 3 ? &x[v].z : &x[v].y) = 0;
        else if (kind == CRUSHED_INVERTED) *(dim == 3 ? &x[v].z : &x[v].y) *= -1;
        else x[v] = fsi_v3(REAL(0.2 * test_random(&seed)), REAL(0.2 * test_random(&seed)),
                           dim == 3 ? REAL(0.2 * test_random(&seed)) : 0);
    }
    CHECK(fsi_elastic_set_vertices(w.s, 0, x, NULL) == FSI_OK);
    world_run(&w, 1.0 / 60, (int)(60 * seconds));
    error = fabs(w.s->bodies[0].stats.volume_ratio - 1);
    *least = w.s->bodies[0].stats.stretch_min;
    *most = w.s->bodies[0].stats.stretch_max;
    free(x);
    world_end(&w);
    block_free(&b);
    return error;
}

/* ---- contact ---------------------------------------------------------------------------------------------------- */

/* A block on an incline of tangent 0.5 for `seconds`: its way (sliding: over theory's, g t^2 (sin - mu cos)/2) and its
   speed (likewise). */
TEST_FN void incline(double mu, int handles, double h, double seconds, double *way, double *speed)
{
    const double tilt = atan(0.5), a = 9.81 * (sin(tilt) - mu * cos(tilt)), t = h * (int)(seconds / h + 0.5);
    block b = block_make(4, 4, 2, 0.05);
    world w = world_of(3);
    double from;
    *way = *speed = HUGE_VAL;
    w.desc.gravity = fsi_v3(REAL(9.81 * sin(tilt)), 0, REAL(-9.81 * cos(tilt)));
    w.body.handles = handles;
    w.body.friction = REAL(mu);
    w.material.young = REAL(1e6);
    if (!world_begin(&w)) return;
    world_floor(&w, mu);
    world_add(&w, &b);
    from = (double)w.s->bodies[0].center.x;
    world_run(&w, h, (int)(seconds / h + 0.5));
    *way = ((double)w.s->bodies[0].center.x - from) / (a > 0 ? a * t * t / 2 : 1);
    *speed = (double)w.s->bodies[0].velocity.x / (a > 0 ? a * t : 1);
    world_end(&w);
    block_free(&b);
}

/* A block of 0.2 m falls flat on a floor at 2 m/s, without weight: its speed afterwards over that before. */
TEST_FN double dropped_restitution(double young, double h)
{
    block b = block_make(3, 3, 3, 0.2 / 3);
    world w = world_of(3);
    double speed;
    w.desc.gravity = fsi_v3(0, 0, 0);
    w.material.young = REAL(young);
    w.body.handles = 8;
    w.body.position = fsi_v3(0, 0, REAL(0.09));
    w.body.velocity = fsi_v3(0, 0, -2);
    if (!world_begin(&w)) return HUGE_VAL;
    world_add(&w, &b);
    world_floor(&w, 0.3);
    world_run(&w, h, (int)(0.6 / h));
    speed = (double)w.s->bodies[0].velocity.z;
    world_end(&w);
    block_free(&b);
    return speed / 2;
}

typedef struct bounced { double time, restitution, deepest; } bounced;

/* A ball, radius 0.1 m, in a cage of `resolution` cells, flies at a plane at `speed` in steps of h, without weight or
   damping: how long they touch over Hertz's 2.868 (m^2/(R E*^2 v))^(1/5), E* = E/(1 - nu^2), and its speed afterwards
   over that before. */
TEST_FN bounced bounce(int resolution, int handles, double speed, double poisson, double h, int points)
{
    const double radius = 0.1;
    fsi_mesh *ball = ball_mesh(radius, 20);
    world w = world_of(3);
    bounced out = { HUGE_VAL, HUGE_VAL, 0 };
    double hertz, stiff, first = -1, last = -1;
    int k, steps;
    w.desc.gravity = fsi_v3(0, 0, 0);
    w.body.surface = ball;
    w.body.resolution = resolution;
    w.body.handles = handles;
    w.body.contact_points = points;
    w.body.materials = &w.material;
    w.body.material_count = 1;
    w.body.position = fsi_v3(0, 0, REAL(radius + 3 * h * speed));
    w.body.velocity = fsi_v3(0, 0, REAL(-speed));
    w.material.poisson = REAL(poisson);
    w.material.damping = 0;
    if (!world_begin(&w) || !CHECK(fsi_elastic_add_body(w.s, &w.body, NULL) == FSI_OK)) return out;
    world_floor(&w, 0);
    stiff = (double)w.material.young / (1 - poisson * poisson);
    hertz = 2.868 * pow(w.s->bodies[0].mass * w.s->bodies[0].mass / (radius * stiff * stiff * speed), 0.2);
    steps = (int)(1.6 * hertz / h);
    for (k = 0; k < steps && world_run(&w, h, 1); k++) {
        out.deepest = fmax(out.deepest, w.s->stats.deepest);
        if (w.s->stats.touching == 0) continue;
        if (first < 0) first = w.s->time - h;
        last = w.s->time;
    }
    out.time = (last - first) / hertz;
    out.restitution = (double)w.s->bodies[0].velocity.z / speed;
    world_end(&w);
    fsi_mesh_destroy(ball);
    return out;
}

/* Bodies at rest from `settled` on: how far any centre goes in `seconds`, in their sides of 0.2 m; the deepest
   penetration, in sides; kinetic energy at the end, over m g times a side of the first. */
typedef struct rested { double creep, deepest, kinetic; } rested;

TEST_FN rested world_rest(world *w, double h, double settled, double seconds)
{
    const int first = (int)(settled / h + 0.5), steps = (int)((settled + seconds) / h + 0.5);
    const rested failed = { HUGE_VAL, HUGE_VAL, HUGE_VAL };
    fsi_vec3 at[12];
    rested out = { 0, 0, 0 };
    int k, step;
    for (step = 0; step < steps; step++) {
        if (w->s->body_count > 12 || !world_run(w, h, 1)) return failed;
        for (k = 0; k < w->s->body_count; k++) {
            if (step < first) at[k] = w->s->bodies[k].center;
            else out.creep = fmax(out.creep, (double)fsi_v3_norm(fsi_v3_sub(at[k], w->s->bodies[k].center)) / 0.2);
        }
        if (step >= first) out.deepest = fmax(out.deepest, w->s->stats.deepest / 0.2);
    }
    out.kinetic = w->s->stats.kinetic_energy / (w->s->bodies[0].mass * 9.81 * 0.2);
    return out;
}

/* Two blocks on each other, a little askew, each of 64 cells. */
TEST_FN rested stack_rest(int handles, double h, double settled, double seconds)
{
    block b = block_make(4, 4, 4, 0.05);
    world w = world_of(3);
    rested out = { HUGE_VAL, HUGE_VAL, HUGE_VAL };
    int k;
    w.material.damping = REAL(0.01);
    w.body.handles = handles;
    if (!world_begin(&w)) return out;
    world_floor(&w, 0.5);
    for (k = 0; k < 2; k++) {
        w.body.position = fsi_v3(REAL(0.013 * k), REAL(0.02 * k), REAL(0.21 * k + 0.005));
        world_add(&w, &b);
    }
    out = world_rest(&w, h, settled, seconds);
    world_end(&w);
    block_free(&b);
    return out;
}

/* Twelve blocks in four rows on each other. */
TEST_FN rested heap_rest(int dim, double young, int points, double h, double settled, double seconds)
{
    static const int row[4] = { 5, 4, 2, 1 };
    block b = block_make(3, 3, dim == 3 ? 3 : 0, 0.2 / 3);
    world w = world_of(dim);
    rested out = { HUGE_VAL, HUGE_VAL, HUGE_VAL };
    int k, r, c;
    w.material.young = REAL(young);
    w.material.damping = REAL(0.01);
    w.body.handles = 8;
    w.body.contact_points = points;
    if (!world_begin(&w)) return out;
    world_floor(&w, 0.5);
    for (r = 0, k = 0; r < 4; r++) for (c = 0; c < row[r]; c++, k++) {
        const double x = (c - (row[r] - 1) / 2.0) * 0.25, up = 0.21 * r + 0.01;
        w.body.position = dim == 3 ? fsi_v3(REAL(x), REAL(0.01 * (k % 3)), REAL(up)) : fsi_v3(REAL(x), REAL(up), 0);
        world_add(&w, &b);
    }
    out = world_rest(&w, h, settled, seconds);
    world_end(&w);
    block_free(&b);
    return out;
}

#endif /* FSI_ELASTIC_CASES_H */
