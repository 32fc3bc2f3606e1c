/* couple_cases.h - scenes of fsi_couple.h that `make validate` runs by the hundred and `make test` a few of.
   SPDX-License-Identifier: MIT

   Include test_couple.h first. */
#ifndef FSI_COUPLE_CASES_H
#define FSI_COUPLE_CASES_H

/* ---- random scenes --------------------------------------------------------------------------------------------- */

/* What is left of random scenes; zeros at first. */
typedef struct random_tally {
    int scenes, refused, unlike, broken, leaking; /* a step was refused; other bits; a failed step changed something or
                                                     NaN; samples in liquid */
    int threads, loaded, failed;       /* scenes run with threads too; that went on from a saved state; steps whose
                                          memory was refused */
    long long substeps, newton, degraded; /* degraded: substeps whose minimisation did not end in balance */
    double least, dense_least, error;  /* smallest distance [dx]: at the library's samples; at four a cell; largest
                                          volume error of more than 50 cells */
    double fastest;                    /* liquid, over what falling through the box gives and the throw */
} random_tally;

/* A scene by its number: 2D where it is even. */
typedef struct random_scene {
    pair p;
    uint64_t seed;
    fsi_mesh *walls;                    /* of the box, for the solid */
    double dt, speed, young, cfl, wave; /* wave: how far pins move to and fro [dx] */
    int pins;
} random_scene;

TEST_FN double between(random_scene *r, double a, double b) { return a + (b - a) * test_random(&r->seed); }
TEST_FN int one_of(random_scene *r, int n) { return (int)(test_random(&r->seed) * n); }

/* Middle of the box, but for its height; all in cells. */
TEST_FN fsi_vec3 at_height(const random_scene *r, double x, double y)
{
    const double mid = r->p.l.n[0] / 2.0 * CELL;
    return r->p.l.dim == 3 ? v3(x * CELL, mid, y * CELL) : v3(x * CELL, y * CELL, 0);
}

TEST_FN void random_sheet(random_scene *r, double y)
{
    scene *c = &r->p.c;
    const double n = r->p.l.n[0], wide = between(r, 0.3, 0.7) * n, edge = between(r, 0.6, 3),
                 slope = between(r, -0.15, 0.15), mid = (n - wide) / 2;
    const int cuts = (int)(wide / edge) + 2,
              first = scene_sheet(c, (mesh_kind)one_of(r, 4), cuts, cuts, wide * CELL, wide * CELL);
    int i;
    scene_shift(c, first, mid * CELL, mid * CELL, y * CELL);
    for (i = first; i < c->vertices; i++) c->x[i].z += REAL(slope * ((double)c->x[i].x - n / 2 * CELL));
}

TEST_FN void random_rod(random_scene *r, double y)
{
    const double n = r->p.l.n[0], half = between(r, 0.15, 0.4) * n, slope = between(r, -0.15, 0.15) * half,
                 mid = between(r, 0.45, 0.55) * n;
    scene_rod(&r->p.c, 2 + (int)(2 * half / between(r, 0.6, 3)), at_height(r, mid - half, y - slope),
              at_height(r, mid + half, y + slope));
}

TEST_FN void random_points(random_scene *r, double y)
{
    const double n = r->p.l.n[0],
                 mass = pow(10, between(r, -2, 1)) * 1000 * (r->p.l.dim == 3 ? CELL * CELL * CELL : CELL * CELL);
    int k;
    for (k = one_of(r, 5); k >= 0; k--) {
        const fsi_vec3 x = at_height(r, between(r, 0.2, 0.8) * n, y);
        scene_point(&r->p.c, (double)x.x, (double)x.y, (double)x.z, mass);
    }
}

TEST_FN void random_solids(random_scene *r)
{
    const double n = r->p.l.n[0];
    scene *c = &r->p.c;
    int k;
    c->desc.contact = 1;
    c->desc.self_contact = one_of(r, 3) == 0;
    c->desc.contact_range = REAL(0.2 * CELL);
    c->material[0].young = REAL(r->young);
    c->material[0].density = REAL(pow(10, between(r, 2.5, 3.9)));
    c->material[0].thickness = c->material[0].radius = REAL(between(r, 0.1, 0.4) * CELL);
    for (k = one_of(r, 3); k >= 0; k--) {
        const double y = (0.25 + 0.2 * k) * n;
        const int what = one_of(r, 4);
        if (what == 0) random_points(r, y);
        else if (what == 1 || r->p.l.dim == 2) random_rod(r, y);
        else random_sheet(r, y);
    }
}

/* Drops may be cut by the solid: creation takes away what is too close. */
TEST_FN void random_drops(random_scene *r)
{
    const double n = r->p.l.n[0];
    int k;
    for (k = one_of(r, 3); k >= 0; k--) {
        const double size = between(r, 0.1, 0.22) * n, turn = between(r, 0, 2 * PI), x = between(r, 0.3, 0.7) * n;
        const fsi_vec3 u = r->p.l.dim == 3 ? v3(r->speed * cos(turn), 0, r->speed * sin(turn))
                                           : v3(r->speed * cos(turn), r->speed * sin(turn), 0);
        CHECK(fsi_levelset_fill_sphere(r->p.water, at_height(r, x, between(r, 0.3, 0.8) * n), REAL(size * CELL), u,
                                       NULL) == FSI_OK);
    }
}

/* What leaves the box comes back under liquid that rests on its floor: it must not. */
TEST_FN void random_walls(random_scene *r)
{
    const double half = r->p.l.n[0] / 2.0;
    fsi_vec3 middle = v3(half * CELL, half * CELL, half * CELL);
    r->walls = r->p.l.dim == 2 ? square(half, half, half, half)
                               : make_box_at(NULL, half * CELL, half * CELL, half * CELL, middle);
    add_mesh(r->p.solid, r->walls, NULL, 0);
}

enum { FIRST_LINEAR = 200 }; /* scenes before this one are read by SPLINE */

/* threads > 1: by so many, in a random order. heap: memory may be refused later. */
TEST_FN void random_begin(random_scene *r, int number, int threads, int heap)
{
    pair *p = &r->p;
    double fall;
    int dim = number % 2 ? 3 : 2, n = dim == 3 ? 20 : 32, i;
    memset(r, 0, sizeof *r);
    r->seed = (uint64_t)number * 7919 + 1;
    pair_begin(p, n);
    if (heap) test_fail_allocator(&p->context, 0);
    if (threads > 1) test_threads(&p->context, threads, 1);
    p->l.dim = p->c.desc.dim = dim;
    if (dim == 3) {
        p->l.n[2] = n;
        p->l.gravity = p->c.desc.gravity = v3(0, 0, -9.81);
    }
    r->speed = pow(10, between(r, -1.5, 0.5));
    r->young = pow(10, between(r, 3, 9));
    r->cfl = exp(between(r, log(0.3), log(3)));
    fall = sqrt(9.81 * n * CELL);
    r->dt = between(r, 0.6, 1.5) * r->cfl * CELL / fmax(r->speed, fall);
    p->l.cfl = REAL(r->cfl);
    p->l.capillary_cfl = REAL(fmin(5, fmax(1, 1.5 * r->cfl)));
    p->l.surface_tension = one_of(r, 3) ? REAL(between(r, 0.01, 0.08)) : 0;
    p->l.viscosity = one_of(r, 4) ? 0 : REAL(pow(10, between(r, -3, 0)));
    p->e.metric = number < FIRST_LINEAR ? FSI_METRIC_SPLINE : FSI_METRIC_LINEAR;
    p->e.slip = one_of(r, 3) == 0;
    p->e.correction = one_of(r, 8) ? FSI_COUPLE_MOMENTUM : FSI_COUPLE_PAPER;
    random_solids(r);
    if (!CHECK(fsi_levelset_create(&p->water, &p->l) == FSI_OK)) exit(1);
    random_drops(r);
    p->solid = scene_make(&p->c);
    random_walls(r);
    p->e.liquid = p->water;
    p->e.shell = p->solid;
    if (!CHECK(fsi_couple_create(&p->both, &p->e) == FSI_OK)) printf("%s\n", p->context.error.message), exit(1);
    r->pins = one_of(r, 4);
    r->wave = r->pins == 3 ? between(r, 0, 3) : 0;
    for (i = 0; i < p->solid->vertex_count; i++)
        p->solid->pinned[i] = (unsigned char)(r->pins == 0 ? 0 : r->pins == 1 ? i % 7 == 0 : r->pins == 2 ? i == 0 : 1);
    for (i = 0; i < p->solid->vertex_count && r->pins == 0; i++)
        p->solid->velocity[i] = dim == 3 ? v3(0, 0, between(r, -0.3, 0.3)) : v3(0, between(r, -0.3, 0.3), 0);
}

TEST_FN void random_end(random_scene *r)
{
    pair_end(&r->p);
    fsi_mesh_destroy(r->walls);
}

TEST_FN fsi_status random_step(random_scene *r, int step)
{
    fsi_shell *s = r->p.solid;
    const double way = r->wave * CELL * (sin(0.1 * (step + 1)) - sin(0.1 * step));
    fsi_status status;
    int i;
    for (i = 0; i < s->vertex_count && r->wave > 0; i++)
        *(r->p.l.dim == 3 ? &s->target[i].z : &s->target[i].y) =
            (r->p.l.dim == 3 ? s->position[i].z : s->position[i].y) + REAL(way);
    status = fsi_couple_step(r->p.both, REAL(r->dt));
    return status;
}

/* phi at x [m] by a quadratic B-spline or linearly, cells beyond the box as those at its sides; far outside of the box
   nothing meets. */
TEST_FN double phi_there(const random_scene *r, const double *x)
{
    const fsi_grid *g = r->p.water->grid;
    const int spline = r->p.e.metric == FSI_METRIC_SPLINE;
    double w[3][3] = { { 1, 0, 0 }, { 1, 0, 0 }, { 1, 0, 0 } }, sum = 0;
    int base[3] = { 0, 0, 0 }, count[3] = { 1, 1, 1 }, a, i, j, k;
    for (a = 0; a < g->dim; a++) {
        const double s = x[a] / CELL - 0.5;
        double f;
        if (s < -1.5 || s > g->n[a] + 0.5) return 8 * CELL;
        base[a] = (int)floor(spline ? s - 0.5 : s);
        f = s - base[a] - (spline ? 1 : 0);
        count[a] = spline ? 3 : 2;
        w[a][0] = spline ? 0.5 * (0.5 - f) * (0.5 - f) : 1 - f;
        w[a][1] = spline ? 0.75 - f * f : f;
        w[a][2] = 0.5 * (0.5 + f) * (0.5 + f);
    }
    for (k = 0; k < count[2]; k++) for (j = 0; j < count[1]; j++) for (i = 0; i < count[0]; i++) {
        int c[3], q[3];
        q[0] = base[0] + i, q[1] = base[1] + j, q[2] = base[2] + k;
        for (a = 0; a < 3; a++) c[a] = a >= g->dim || q[a] < 0 ? 0 : q[a] >= g->n[a] ? g->n[a] - 1 : q[a];
        sum += w[0][i] * w[1][j] * w[2][k] * (double)fsi_grid_at(r->p.water->phi, c[0], c[1], c[2]);
    }
    return sum;
}

/* Smallest phi at points of an element (1 to 3 corners), a quarter of a cell apart [dx]. */
TEST_FN double element_phi(const random_scene *r, const int *node, int corners)
{
    const fsi_vec3 *x = r->p.solid->position, a = x[node[0]], b = x[node[corners > 1]],
                   c = x[node[corners > 2 ? 2 : 0]];
    const int n = 1 + (int)ceil(4 * fmax(apart(a, b), fmax(apart(b, c), apart(c, a))) / CELL);
    double least = 8;
    int i, j;
    for (i = 0; i <= (corners > 1 ? n : 0); i++) for (j = 0; j <= (corners > 2 ? n - i : 0); j++) {
        const double s = (double)i / n, t = (double)j / n;
        double at[3];
        at[0] = (1 - s - t) * (double)a.x + s * (double)b.x + t * (double)c.x;
        at[1] = (1 - s - t) * (double)a.y + s * (double)b.y + t * (double)c.y;
        at[2] = (1 - s - t) * (double)a.z + s * (double)b.z + t * (double)c.z;
        least = fmin(least, phi_there(r, at) / CELL);
    }
    return least;
}

TEST_FN double vertex_phi(const random_scene *r)
{
    double least = 8;
    int i;
    for (i = 0; i < r->p.solid->vertex_count; i++) least = fmin(least, element_phi(r, &i, 1));
    return least;
}

/* Everywhere on the solid. */
TEST_FN double dense_phi(const random_scene *r)
{
    const fsi_shell *s = r->p.solid;
    double least = vertex_phi(r);
    int i;
    for (i = 0; i < s->segment_count; i++) least = fmin(least, element_phi(r, s->segments + 2 * i, 2));
    for (i = 0; i < s->triangle_count; i++) least = fmin(least, element_phi(r, s->triangles + 3 * i, 3));
    return least;
}

TEST_FN int all_finite(const random_scene *r)
{
    const fsi_couple_stats *s = &r->p.both->stats;
    const fsi_grid *g = r->p.water->grid;
    double sum = s->min_distance + s->momentum[0] + s->momentum[1] + s->momentum[2] + s->volume_error;
    int i;
    for (i = 0; i < r->p.solid->vertex_count; i++)
        sum += (double)fsi_v3_norm(r->p.solid->position[i]) + (double)fsi_v3_norm(r->p.solid->velocity[i]);
    for (i = 0; i < g->block_count * g->block_cells; i++) sum += fabs((double)r->p.water->phi->value[i]);
    return fsi_is_finite(sum);
}

TEST_FN void random_say(const random_scene *r, int number, int step, const char *what)
{
    const pair *p = &r->p;
    printf("   scene %d (%dD, cfl %.2f, %.2g m/s, E %.1e, dt %.2e, metric %d, slip %d, correction %d, pins %d, "
           "self_contact %d, %d+%d elements, tension %.2g, viscosity %.2g) step %d: %s\n",
           number, p->l.dim, r->cfl, r->speed, r->young, r->dt, (int)p->e.metric, p->e.slip, (int)p->e.correction,
           r->pins, p->c.desc.self_contact, p->solid->segment_count, p->solid->triangle_count,
           (double)p->l.surface_tension, (double)p->l.viscosity, step, what);
    fflush(stdout);
}

/* One step in which an allocation fails at random; then nothing has changed. */
TEST_FN int random_failure(random_scene *r, random_tally *t)
{
    const uint64_t before = fsi_couple_hash(r->p.both);
    const double time = r->p.both->time;
    fsi_status status;
    test_fail_allocator(&r->p.context, 1); /* most steps need no memory */
    status = fsi_couple_step(r->p.both, REAL(r->dt));
    test_fail_allocator(&r->p.context, 0);
    if (status == FSI_OK) return 1;
    t->failed += status == FSI_ERROR_MEMORY;
    return fsi_couple_hash(r->p.both) == before && !(fabs(r->p.both->time - time) > 0);
}

/* The state of r in a scene made alike. */
TEST_FN int random_twin(random_scene *twin, const random_scene *r, int number)
{
    size_t size = 0;
    void *buffer;
    int good;
    random_begin(twin, number, 1, 0);
    good = fsi_couple_save(r->p.both, NULL, 0, &size) == FSI_OK;
    buffer = malloc(size);
    if (!buffer) abort();
    good &= fsi_couple_save(r->p.both, buffer, size, NULL) == FSI_OK &&
            fsi_couple_load(twin->p.both, buffer, size) == FSI_OK;
    free(buffer);
    return good;
}

/* Where r has been for steps: distances, volumes, numbers. */
TEST_FN void random_look(const random_scene *r, int number, int step, random_tally *t, double *dense)
{
    const fsi_couple_stats *s = &r->p.both->stats;
    const double here = dense_phi(r);
    t->substeps += s->substeps;
    t->newton += s->newton;
    t->degraded += r->p.solid->stats.degraded;
    t->least = fmin(t->least, fmin(s->min_distance / CELL, vertex_phi(r)));
    t->fastest = fmax(t->fastest, r->p.water->stats.max_speed / (r->speed + sqrt(2 * 9.81 * r->p.l.n[0] * CELL)));
    if (r->p.water->stats.target > 50 * pow(CELL, r->p.l.dim)) t->error = fmax(t->error, fabs(s->volume_error));
    if (here < *dense) *dense = here;
    if (!all_finite(r)) t->broken++, random_say(r, number, step, "not finite");
}

/* Counted in tally[metric]. Even scenes 2D; of four (of each dim) one is run once more with threads, one goes on from a
   saved state, one has memory refused. */
TEST_FN void random_run(int number, int steps, random_tally tally[2])
{
    const int kind = number / 2 % 4;
    random_scene r, twin;
    random_tally *t;
    fsi_status status = FSI_OK;
    double dense = 8;
    int k, twins = 0;
    random_begin(&r, number, 1, kind == 2);
    t = &tally[r.p.e.metric];
    if (t->scenes == 0) t->least = t->dense_least = 8;
    if (kind == 0) random_begin(&twin, number, 3, 0), t->threads++, twins = 1;
    for (k = 0; k < steps && status == FSI_OK; k++) {
        if (kind == 1 && k == steps / 2) {
            if (!CHECK(random_twin(&twin, &r, number))) random_say(&r, number, k, "save or load failed"), t->broken++;
            t->loaded++;
            twins = 1;
        }
        if (kind == 2 && k % 5 == 3 && !CHECK(random_failure(&r, t)))
            random_say(&r, number, k, "a failed step changed the state"), t->broken++;
        status = random_step(&r, k);
        if (status != FSI_OK) t->refused++, random_say(&r, number, k, fsi_couple_error(r.p.both)->message);
        else random_look(&r, number, k, t, &dense);
        if (twins && random_step(&twin, k) != status)
            t->unlike++, random_say(&r, number, k, "the twin's status is another");
    }
    if (twins && fsi_couple_hash(twin.p.both) != fsi_couple_hash(r.p.both))
        t->unlike++, random_say(&r, number, k, kind ? "other bits after load" : "other bits by threads");
    t->scenes++;
    t->dense_least = fmin(t->dense_least, dense);
    if (!(dense > 0)) t->leaking++;
    if (!(dense > 0)) printf("   scene %d: a point between samples is at %.3f dx\n", number, dense);
    if (twins) random_end(&twin);
    random_end(&r);
}

/* ---- a drop against what is held --------------------------------------------------------------------------------- */

/* Meets no gravity: a drop of 12 cells flies at 1 m/s against one point, which cuts it in two. */
TEST_FN void begin_flight(pair *p, fsi_metric metric, double cfl)
{
    pair_begin(p, 64);
    p->e.metric = metric;
    p->l.cfl = REAL(cfl);
    p->l.capillary_cfl = 5;
    p->l.gravity = p->c.desc.gravity = v3(0, 0, 0);
    pair_points(p, 32.2, 32.2, 1, 30);
    pair_make(p);
    pair_pin(p);
    pair_drop(p, 31.9, 46, 12, 0, -1);
}

/* A drop of 10 cells falls at `speed` on points `spacing` cells apart; edges: on a string of edges as long, from wall
   to wall. */
TEST_FN void begin_row(pair *p, fsi_metric metric, double cfl, double spacing, double speed, int edges)
{
    const int count = (int)(63 / spacing);
    pair_begin(p, 64);
    p->e.metric = metric;
    p->l.cfl = REAL(cfl);
    p->l.capillary_cfl = 5;
    if (edges) pair_string(p, (int)(64 / spacing + 0.5), 0, 64, 24);
    else pair_points(p, 32.1 - count / 2 * spacing, 63.9, spacing, 24);
    pair_make(p);
    pair_pin(p);
    pair_drop(p, 32.1 + (spacing > 3 ? spacing / 2 : 0), 24 + 10 + 2.5, 10, 0, -speed);
}

/* Cells of liquid under the row, summed over steps of a millisecond. */
TEST_FN int leak_through_row(double spacing, double speed, int edges, int steps, double *least)
{
    pair p;
    int k;
    begin_row(&p, FSI_METRIC_SPLINE, 0.7, spacing, speed, edges);
    for (k = 0; k < steps; k++) {
        if (!pair_step(&p, 1e-3)) break;
        p.most_below += pair_below(&p, 23);
    }
    *least = p.least;
    k = p.most_below;
    pair_end(&p);
    return k;
}

/* How often a drop turns from falling to rising on an undamped string that is held at its ends; *least: smallest
   distance [dx]. */
TEST_FN int count_rebounds(double seconds, double *least)
{
    double before = 0;
    int rebounds = 0;
    pair p;
    pair_begin(&p, 64);
    p.l.surface_tension = REAL(0.02);
    p.c.material[0].density = 100;
    pair_string(&p, 56, 4.1, 59.9, 30);
    pair_make(&p);
    p.solid->pinned[0] = p.solid->pinned[56] = 1;
    pair_drop(&p, 32, 38, 6, 0, 0);
    while (p.both->time < seconds && pair_step(&p, 5e-4)) {
        rebounds += before < 0 && p.water->stats.momentum[1] > 0;
        before = p.water->stats.momentum[1];
    }
    *least = p.least;
    pair_end(&p);
    return rebounds;
}

/* Largest |volume / target - 1| while a drop hits a held string at 5 m/s. */
TEST_FN double impact_error(int n, double cfl, int steps, double *least)
{
    const double radius = 0.15 * n;
    double error;
    pair p;
    int k;
    pair_begin(&p, n);
    p.l.cfl = REAL(cfl);
    p.l.capillary_cfl = 5;
    pair_string(&p, n - 2, 1, n - 1, 0.3 * n);
    pair_make(&p);
    pair_pin(&p);
    pair_drop(&p, 0.5 * n + 0.1, 0.3 * n + radius + 2.5, radius, 0, -5);
    for (k = 0; k < steps; k++) if (!pair_step(&p, 1e-3 * n / 320)) break;
    error = p.error;
    *least = p.least;
    pair_end(&p);
    return error;
}

/* ---- sweeps ------------------------------------------------------------------------------------------------------ */

/* Random pairs of a sample and a surface that move, a third of them head-on, a third films. Of those whose sample is in
   the liquid at the end. stalled: no way at all was allowed; late: more than up to the first touch; mean: of the way
   allowed over that to the touch. crossed: dry at start and end, wet between: the printed filter is not asked about
   these. */
typedef struct sweep_count { int stalled, late; double mean; } sweep_count;
typedef struct sweep_tally { int pairs, crossed, crossed_late; sweep_count printed, ours; } sweep_tally;

enum { SWEEP_CELLS = 15 };

typedef struct sweep {
    fsi_metric metric;
    fsi_stencil first;
    double phi[SWEEP_CELLS][SWEEP_CELLS], dphi[SWEEP_CELLS][SWEEP_CELLS], x[2], move[2];
} sweep;

static double normal_number(uint64_t *random)
{
    return sqrt(-2 * log(1 - test_random(random))) * cos(2 * PI * test_random(random));
}

/* d after a share t of the way; gradient NULL or to x. */
TEST_FN double sweep_distance(const sweep *s, double t, double *x, double *gradient)
{
    double phi[9];
    fsi_stencil at;
    int i, j;
    x[0] = s->x[0] + t * s->move[0];
    x[1] = s->x[1] + t * s->move[1];
    at = fsi_stencil_at(s->metric, 2, x, 1, &s->first);
    for (j = 0; j < at.width; j++)
        for (i = 0; i < at.width; i++)
            phi[j * at.width + i] =
                s->phi[at.base[1] + j][at.base[0] + i] + t * s->dphi[at.base[1] + j][at.base[0] + i];
    return fsi_stencil_value(&at, phi, gradient, NULL);
}

static void read_sweep(void *user, const int base[3], const int count[3], double *phi, double *dphi)
{
    const sweep *s = (const sweep *)user;
    int i, j;
    for (j = 0; j < count[1]; j++) for (i = 0; i < count[0]; i++) {
        phi[j * count[0] + i] = s->phi[base[1] + j][base[0] + i];
        dphi[j * count[0] + i] = s->dphi[base[1] + j][base[0] + i];
    }
}

/* A plane with a little noise, which moves mostly against the sample; kind 0: any way of the sample, 1: head-on, 2:
   through a film one and a half cells thick. */
TEST_FN sweep random_sweep(fsi_metric metric, int kind, uint64_t *random)
{
    const double turn = 2 * PI * test_random(random), film = 0.75, n[2] = {cos(turn), sin(turn)},
                 gap = 0.05 + 0.55 * test_random(random), speed = 0.4 + 0.15 * normal_number(random),
                 mid = SWEEP_CELLS / 2;
    sweep s;
    int i, j;
    memset(&s, 0, sizeof s);
    s.metric = metric;
    for (i = 0; i < 2; i++) {
        s.x[i] = mid + test_random(random);
        s.move[i] = kind == 2 ? -3 * n[i] : kind == 1 ? -0.5 * n[i] : fmax(-2, fmin(2, 0.4 * normal_number(random)));
    }
    s.first = fsi_stencil_at(metric, 2, s.x, 1, NULL);
    for (j = 0; j < SWEEP_CELLS; j++) for (i = 0; i < SWEEP_CELLS; i++) {
        s.phi[j][i] = n[0] * (i + 0.5 - s.x[0]) + n[1] * (j + 0.5 - s.x[1]) + gap + 0.02 * normal_number(random);
        if (kind == 2) s.phi[j][i] = fabs(s.phi[j][i] + film) - film;
        s.dphi[j][i] = kind == 2 ? 0 : -speed + 0.1 * normal_number(random);
    }
    return s;
}

/* The first time at which d is 0, by 4000 looks and bisection; above 1: none. */
TEST_FN double first_touch(const sweep *s)
{
    double x[2], lo = 0, hi = 0;
    int k;
    for (k = 1; k <= 4000 && sweep_distance(s, hi = k / 4000.0, x, NULL) > 0; k++) lo = hi;
    if (k > 4000) return 2;
    for (k = 0; k < 40; k++) {
        const double t = (lo + hi) / 2;
        if (sweep_distance(s, t, x, NULL) > 0) lo = t;
        else hi = t;
    }
    return lo;
}

/* What the paper prints (coupling.md 5.5): the sample's way and that of its foot point on the surface as two straight
   segments; the smaller of the two places at which they are closest. */
TEST_FN double printed_bound(const sweep *s)
{
    double x[2][2], foot[2][2], g[2], u[2], v[2], w[2], uu, vv, uv, uw, vw, det, a, b;
    int k, i;
    for (k = 0; k < 2; k++) {
        const double d = sweep_distance(s, k, x[k], g);
        for (i = 0; i < 2; i++) foot[k][i] = x[k][i] - d * g[i] / (g[0] * g[0] + g[1] * g[1]);
    }
    for (i = 0; i < 2; i++) {
        u[i] = x[1][i] - x[0][i];
        v[i] = foot[1][i] - foot[0][i];
        w[i] = x[0][i] - foot[0][i];
    }
    uu = u[0] * u[0] + u[1] * u[1];
    vv = v[0] * v[0] + v[1] * v[1];
    uv = u[0] * v[0] + u[1] * v[1];
    uw = u[0] * w[0] + u[1] * w[1];
    vw = v[0] * w[0] + v[1] * w[1];
    det = uu * vv - uv * uv;
    a = det > 1e-12 * uu * vv ? fmin(1, fmax(0, (uv * vw - uw * vv) / det)) : 0;
    b = vv > 0 ? (uv * a + vw) / vv : 0;
    if (b < 0 || b > 1) {
        b = b < 0 ? 0 : 1;
        a = uu > 0 ? fmin(1, fmax(0, (b * uv - uw) / uu)) : 0;
    }
    return fmin(a, b);
}

TEST_FN void count_sweep(sweep_count *c, double t, double touch)
{
    c->stalled += t < 1e-9;
    c->late += t > touch + 1e-9;
    c->mean += fmin(t / touch, 1);
}

TEST_FN sweep_tally compare_sweeps(fsi_metric metric, int pairs)
{
    uint64_t random = 11;
    sweep_tally t;
    int k;
    memset(&t, 0, sizeof t);
    for (k = 0; k < pairs; k++) {
        const sweep s = random_sweep(metric, k % 3, &random);
        fsi_field_reader reader;
        double x[2], touch, ours;
        if (!(sweep_distance(&s, 0, x, NULL) > 0.01) || (touch = first_touch(&s)) > 1) continue;
        reader.user = (void *)(size_t)&s;
        reader.read = read_sweep;
        ours = fsi_stencil_ccd(metric, 2, 1, s.x, s.move, &reader, &s.first, 0.1);
        if (sweep_distance(&s, 1, x, NULL) > 0) {
            t.crossed++;
            t.crossed_late += ours > touch + 1e-9;
            continue;
        }
        t.pairs++;
        count_sweep(&t.printed, printed_bound(&s), touch);
        count_sweep(&t.ours, ours, touch);
    }
    t.printed.mean /= t.pairs;
    t.ours.mean /= t.pairs;
    return t;
}

#endif
