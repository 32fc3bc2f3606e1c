/* couple_cases.h - scenes of fsi_couple.h that `make validate` runs by the hundred and `make test` a few of.
   SPDX-License-Identifier: MIT

   Include test_couple.h first. */
#ifndef FSI_COUPLE_CASES_H
#define FSI_COUPLE_CASES_H

/* ---- random scenes --------------------------------------------------------------------------------------------- */

/* What is left of a run of random scenes; zeros at first. */
typedef struct random_tally {
    int scenes, refused, unlike, broken, leaking; /* a step was refused; other bits; a failed step changed something or NaN; samples in liquid */
    int threads, loaded, failed;       /* scenes run with threads too; that went on from a saved state; steps whose memory was refused */
    long long substeps, newton;
    int most_newton;                   /* mean of a scene, at most */
    double least, dense_least, error;  /* smallest distance [dx]: at the library's samples; at four a cell; largest volume error */
} random_tally;

/* A scene by its number: 2D where it is even. */
typedef struct random_scene {
    pair p;
    uint64_t seed;
    double dt, speed, young, cfl, wave; /* wave: how far pins move to and fro [dx] */
    int pins, substeps;
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
    const double n = r->p.l.n[0], wide = between(r, 0.3, 0.7) * n, edge = between(r, 0.6, 3), slope = between(r, -0.15, 0.15), mid = (n - wide) / 2;
    const int cuts = (int)(wide / edge) + 2, first = scene_sheet(c, (mesh_kind)one_of(r, 4), cuts, cuts, wide * CELL, wide * CELL);
    int i;
    scene_shift(c, first, mid * CELL, mid * CELL, y * CELL);
    for (i = first; i < c->vertices; i++) c->x[i].z += REAL(slope * ((double)c->x[i].x - n / 2 * CELL));
}

TEST_FN void random_rod(random_scene *r, double y)
{
    const double n = r->p.l.n[0], half = between(r, 0.15, 0.4) * n, slope = between(r, -0.15, 0.15) * half, mid = between(r, 0.45, 0.55) * n;
    scene_rod(&r->p.c, 2 + (int)(2 * half / between(r, 0.6, 3)), at_height(r, mid - half, y - slope), at_height(r, mid + half, y + slope));
}

TEST_FN void random_points(random_scene *r, double y)
{
    const double n = r->p.l.n[0], mass = pow(10, between(r, -2, 1)) * 1000 * (r->p.l.dim == 3 ? CELL * CELL * CELL : CELL * CELL);
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
    c->desc.contact = one_of(r, 3) == 0;
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
        const fsi_vec3 u = r->p.l.dim == 3 ? v3(r->speed * cos(turn), 0, r->speed * sin(turn)) : v3(r->speed * cos(turn), r->speed * sin(turn), 0);
        CHECK(fsi_levelset_fill_sphere(r->p.water, at_height(r, x, between(r, 0.3, 0.8) * n), REAL(size * CELL), u) == FSI_OK);
    }
}

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
    p->e.metric = one_of(r, 4) ? FSI_METRIC_SPLINE : FSI_METRIC_LINEAR;
    p->e.slip = one_of(r, 3) == 0;
    p->e.correction = one_of(r, 8) ? FSI_COUPLE_MOMENTUM : FSI_COUPLE_PAPER;
    random_solids(r);
    if (!CHECK(fsi_levelset_create(&p->water, &p->l) == FSI_OK)) exit(1);
    random_drops(r);
    p->solid = scene_make(&p->c);
    p->e.liquid = p->water;
    p->e.shell = p->solid;
    if (!CHECK(fsi_couple_create(&p->both, &p->e) == FSI_OK)) printf("%s\n", p->context.error.message), exit(1);
    r->pins = one_of(r, 4);
    r->wave = r->pins == 3 ? between(r, 0, 3) : 0;
    for (i = 0; i < p->solid->vertex_count; i++) p->solid->pinned[i] = r->pins == 0 ? 0 : r->pins == 1 ? i % 7 == 0 : r->pins == 2 ? i == 0 : 1;
    for (i = 0; i < p->solid->vertex_count && r->pins == 0; i++) p->solid->velocity[i] = dim == 3 ? v3(0, 0, between(r, -0.3, 0.3)) : v3(0, between(r, -0.3, 0.3), 0);
}

TEST_FN fsi_status random_step(random_scene *r, int step)
{
    fsi_shell *s = r->p.solid;
    const double way = r->wave * CELL * (sin(0.1 * (step + 1)) - sin(0.1 * step));
    fsi_status status;
    int i;
    for (i = 0; i < s->vertex_count && r->wave > 0; i++) *(r->p.l.dim == 3 ? &s->target[i].z : &s->target[i].y) = (r->p.l.dim == 3 ? s->position[i].z : s->position[i].y) + REAL(way);
    status = fsi_couple_step(r->p.both, REAL(r->dt));
    return status;
}

/* phi at x [m] by a quadratic B-spline or linearly, cells beyond the box as those at its sides; far outside of the box nothing meets. */
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
    const fsi_vec3 *x = r->p.solid->position, a = x[node[0]], b = x[node[corners > 1]], c = x[node[corners > 2 ? 2 : 0]];
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
    for (i = 0; i < r->p.solid->vertex_count; i++) sum += (double)fsi_v3_norm(r->p.solid->position[i]) + (double)fsi_v3_norm(r->p.solid->velocity[i]);
    for (i = 0; i < g->block_count * g->block_cells; i++) sum += fabs((double)r->p.water->phi->value[i]);
    return fsi_is_finite(sum);
}

TEST_FN void random_say(const random_scene *r, int number, int step, const char *what)
{
    const pair *p = &r->p;
    printf("   scene %d (%dD, cfl %.2f, %.2g m/s, E %.1e, dt %.2e, metric %d, slip %d, correction %d, pins %d, contact %d, %d+%d elements, tension %.2g, viscosity %.2g) step %d: %s\n", number, p->l.dim, r->cfl, r->speed,
        r->young, r->dt, (int)p->e.metric, p->e.slip, (int)p->e.correction, r->pins, p->c.desc.contact, p->solid->segment_count, p->solid->triangle_count, (double)p->l.surface_tension, (double)p->l.viscosity, step, what);
    fflush(stdout);
}

/* One step in which an allocation fails at random; then nothing has changed. */
TEST_FN int random_failure(random_scene *r, int step, random_tally *t)
{
    const uint64_t before = fsi_couple_hash(r->p.both);
    const double time = r->p.both->time;
    fsi_status status;
    test_fail_allocator(&r->p.context, 1 + one_of(r, 30));
    status = fsi_couple_step(r->p.both, REAL(r->dt));
    test_fail_allocator(&r->p.context, 0);
    (void)step;
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
    good &= fsi_couple_save(r->p.both, buffer, size, NULL) == FSI_OK && fsi_couple_load(twin->p.both, buffer, size) == FSI_OK;
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
    t->least = fmin(t->least, fmin(s->min_distance / CELL, vertex_phi(r)));
    t->error = fmax(t->error, fabs(s->volume_error));
    if (here < *dense) *dense = here;
    if (!all_finite(r)) t->broken++, random_say(r, number, step, "not finite");
}

/* Even scenes 2D; of four (of each dim) one is run once more with threads, one goes on from a saved state, one has memory refused. */
TEST_FN void random_run(int number, int steps, random_tally *t)
{
    const int kind = number / 2 % 4;
    random_scene r, twin;
    fsi_status status = FSI_OK;
    double dense = 8;
    int k, twins = 0;
    random_begin(&r, number, 1, kind == 2);
    if (kind == 0) random_begin(&twin, number, 3, 0), t->threads++, twins = 1;
    for (k = 0; k < steps && status == FSI_OK; k++) {
        if (kind == 1 && k == steps / 2) {
            if (!CHECK(random_twin(&twin, &r, number))) random_say(&r, number, k, "save or load failed"), t->broken++;
            t->loaded++;
            twins = 1;
        }
        if (kind == 2 && k % 5 == 3 && !CHECK(random_failure(&r, k, t))) random_say(&r, number, k, "a failed step changed the state"), t->broken++;
        status = random_step(&r, k);
        if (status != FSI_OK) t->refused++, random_say(&r, number, k, fsi_couple_error(r.p.both)->message);
        else random_look(&r, number, k, t, &dense);
        if (twins && random_step(&twin, k) != status) t->unlike++, random_say(&r, number, k, "the twin's status is another");
    }
    if (twins && fsi_couple_hash(twin.p.both) != fsi_couple_hash(r.p.both)) t->unlike++, random_say(&r, number, k, kind ? "other bits after load" : "other bits by threads");
    t->scenes++;
    t->dense_least = fmin(t->dense_least, dense);
    if (!(dense > 0)) t->leaking++;
    if (!(dense > 0)) printf("   scene %d: %.3f dx between samples\n", number, dense);
    if (twins) pair_end(&twin.p);
    pair_end(&r.p);
}

#endif
