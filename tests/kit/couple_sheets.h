/* couple_sheets.h - random scenes of a sheet beside walls, and liquid: does every step end, and how soon?
   SPDX-License-Identifier: MIT

   Include couple_cases.h first. */
#ifndef FSI_COUPLE_SHEETS_H
#define FSI_COUPLE_SHEETS_H

enum { SHEET_CELLS = 20, SHEET_MOST_STEPS = 64 };
static const double sheet_room = 0.3, sheet_side = 0.2; /* edges of the box of liquid, and of the sheet [m] */
static const double sheet_grain = 0.01; /* medians of CPU time count as no less: clocks have ticks of 1 to 4 ms [s] */

typedef struct sheet_scene {
    pair p;
    uint64_t seed;
    fsi_mesh *walls;      /* of the box, an obstacle for the sheet; NULL: there is none */
    double dt, friction, gap, speed;
    int pins, drops, side;
} sheet_scene;

/* What was seen of scenes; zeros at first. */
typedef struct sheet_tally {
    int scenes, steps, refused, outside, crossed, broken, degraded; /* vertices outside of walls, crossings of the
                                                                       sheet, steps with either; degraded: substeps */
    long long substeps, newton;
    double slowest;       /* CPU time of a step over the median of its scene's; largest */
    int slowest_seed;
} sheet_tally;

TEST_FN double sheet_between(sheet_scene *r, double a, double b) { return a + (b - a) * test_random(&r->seed); }
TEST_FN double sheet_scale(sheet_scene *r, double a, double b) { return a * pow(b / a, test_random(&r->seed)); }
TEST_FN int sheet_one_of(sheet_scene *r, int n) { return (int)(test_random(&r->seed) * n); }

/* Upwards is z, in 2D y. */
TEST_FN fsi_vec3 sheet_at(const sheet_scene *r, double x, double across, double up)
{
    return r->p.l.dim == 3 ? v3(x, across, up) : v3(x, up, 0);
}

/* In its plane the sheet is [0, side]^2; it lies, stands along a wall, or is tilted; one of its points is `gap` from a
   wall: x = 0, the floor or the far side of x. */
TEST_FN void sheet_place(sheet_scene *r, int first)
{
    scene *c = &r->p.c;
    const int how = sheet_one_of(r, 3), dim = r->p.l.dim;
    const double turn = how == 0   ? 0
                        : how == 1 ? PI / 2
                                   : sheet_between(r, 0, PI / 2),
                 roll = how == 2 && dim == 3 ? sheet_between(r, -0.5, 0.5) : 0;
    double lo[3] = { 1, 1, 1 }, hi[3] = { -1, -1, -1 }, move[3];
    int i, a;
    for (i = first; i < c->vertices; i++) {
        const double u = (double)c->x[i].x, v = (double)c->x[i].y, w = v * sin(roll);
        double x[3];
        x[0] = u * cos(turn) - w * sin(turn);
        x[1] = dim == 3 ? v * cos(roll) : u * sin(turn);
        x[2] = dim == 3 ? u * sin(turn) + w * cos(turn) : 0;
        c->x[i] = v3(x[0], x[1], x[2]);
        for (a = 0; a < 3; a++) lo[a] = fmin(lo[a], x[a]), hi[a] = fmax(hi[a], x[a]);
    }
    for (a = 0; a < 3; a++)
        move[a] = a < dim ? r->gap - lo[a] + test_random(&r->seed) * (sheet_room - 2 * r->gap - (hi[a] - lo[a])) : 0;
    r->side = sheet_one_of(r, 3);
    if (r->side == 0) move[0] = r->gap - lo[0];
    if (r->side == 1) move[dim - 1] = r->gap - lo[dim - 1];
    if (r->side == 2) move[0] = sheet_room - r->gap - hi[0];
    scene_shift(c, first, move[0], move[1], move[2]);
}

TEST_FN void sheet_fill(sheet_scene *r)
{
    const double mid = sheet_room / 2;
    int k;
    r->drops = sheet_one_of(r, 4); /* 0: a pool */
    if (r->drops == 0) {
        const double depth = sheet_between(r, 0.05, 0.12);
        fsi_box3 pool;
        pool.lo = v3(0, 0, 0);
        pool.hi = sheet_at(r, sheet_room, sheet_room, depth);
        CHECK(fsi_levelset_fill_box(r->p.water, pool, v3(0, 0, 0), NULL) == FSI_OK);
    }
    for (k = 0; k < r->drops; k++) {
        const double size = sheet_between(r, 0.03, 0.06), up = sheet_between(r, size, sheet_room - size);
        const fsi_vec3 at = sheet_at(r, sheet_between(r, size, sheet_room - size), mid, up);
        CHECK(fsi_levelset_fill_sphere(r->p.water, at, REAL(size), sheet_at(r, 0, 0, -sheet_scale(r, 0.05, 5)), NULL) ==
              FSI_OK);
    }
}

/* Corners, an edge, or single vertices. */
TEST_FN void sheet_pin(sheet_scene *r, int n)
{
    fsi_shell *s = r->p.solid;
    const int last = s->vertex_count - 1, row = r->p.l.dim == 3 ? n : 0;
    int i;
    r->pins = sheet_one_of(r, 6);
    if (r->pins == 1) s->pinned[0] = 1;
    if (r->pins == 2) s->pinned[0] = s->pinned[row] = 1;
    if (r->pins == 3) s->pinned[0] = s->pinned[row] = s->pinned[last - row] = s->pinned[last] = 1;
    if (r->pins == 4) for (i = 0; i <= row; i++) s->pinned[i] = 1;
    if (r->pins == 5) for (i = 0; i <= last; i++) s->pinned[i] = test_random(&r->seed) < 0.05;
}

/* A scene by its number: four of five in 3D. */
TEST_FN void sheet_begin(sheet_scene *r, int number)
{
    pair *p = &r->p;
    const int dim = number % 5 == 4 ? 2 : 3;
    int n, i, first, boxed, down;
    memset(r, 0, sizeof *r);
    r->seed = (uint64_t)number * 6151 + 17;
    pair_begin(p, SHEET_CELLS);
    p->l.dim = p->c.desc.dim = dim;
    p->l.n[2] = dim == 3 ? SHEET_CELLS : 1;
    p->l.dx = REAL(sheet_room / SHEET_CELLS);
    p->l.gravity = p->c.desc.gravity = sheet_at(r, 0, 0, -9.81);
    p->l.surface_tension = sheet_one_of(r, 3) ? REAL(sheet_between(r, 0.01, 0.08)) : 0;
    p->e.slip = sheet_one_of(r, 2);
    r->dt = 1 / 24.0;
    r->friction = sheet_one_of(r, 4) ? sheet_between(r, 0.05, 0.6) : 0;
    r->gap = sheet_scale(r, 5e-5, 5e-3);
    p->c.desc.contact = p->c.desc.self_contact = 1;
    p->c.desc.friction = REAL(sheet_one_of(r, 4) ? sheet_between(r, 0.05, 0.6) : 0);
    p->c.desc.contact_range = REAL(sheet_between(r, 0.1, 0.4) * sheet_room / SHEET_CELLS);
    p->c.material[0] = fsi_shell_default_material();
    n = sheet_one_of(r, 2) ? 16 : 8 + sheet_one_of(r, 9);
    first = dim == 3 ? scene_sheet(&p->c, (mesh_kind)sheet_one_of(r, 4), n, n, sheet_side, sheet_side)
                     : scene_rod(&p->c, n, v3(0, 0, 0), v3(sheet_side, 0, 0));
    sheet_place(r, first);
    if (!CHECK(fsi_levelset_create(&p->water, &p->l) == FSI_OK)) exit(1);
    sheet_fill(r);
    p->solid = scene_make(&p->c);
    boxed = sheet_one_of(r, 4) > 0;
    if (boxed) {
        const double half = sheet_room / 2, cells = half / CELL;
        r->walls =
            dim == 2 ? square(cells, cells, cells, cells) : make_box_at(NULL, half, half, half, v3(half, half, half));
        add_mesh(p->solid, r->walls, NULL, r->friction);
    }
    p->e.liquid = p->water;
    p->e.shell = p->solid;
    if (!CHECK(fsi_couple_create(&p->both, &p->e) == FSI_OK)) printf("%s\n", p->context.error.message), exit(1);
    sheet_pin(r, n);
    r->speed = sheet_scale(r, 0.05, 6);
    down = sheet_one_of(r, 3);
    for (i = 0; i < p->solid->vertex_count; i++) {
        const double turn = sheet_one_of(r, 2) * 0.1 * r->speed * test_random(&r->seed); /* not all alike */
        if (!p->solid->pinned[i])
            p->solid->velocity[i] = down ? sheet_at(r, turn, 0, -r->speed) : sheet_at(r, -r->speed, turn, 0);
    }
}

TEST_FN void sheet_end(sheet_scene *r)
{
    pair_end(&r->p);
    fsi_mesh_destroy(r->walls);
}

/* ---- an independent look ----------------------------------------------------------------------------------------- */

/* Six times the volume of a tetrahedron. */
TEST_FN double sheet_volume(fsi_vec3 a, fsi_vec3 b, fsi_vec3 c, fsi_vec3 d)
{
    const double u[3] = { (double)b.x - (double)a.x, (double)b.y - (double)a.y, (double)b.z - (double)a.z };
    const double v[3] = { (double)c.x - (double)a.x, (double)c.y - (double)a.y, (double)c.z - (double)a.z };
    const double w[3] = { (double)d.x - (double)a.x, (double)d.y - (double)a.y, (double)d.z - (double)a.z };
    return u[0] * (v[1] * w[2] - v[2] * w[1]) + u[1] * (v[2] * w[0] - v[0] * w[2]) + u[2] * (v[0] * w[1] - v[1] * w[0]);
}

/* Does pq pass through abc, by more than rounding? A held row of vertices lies in one line with its own sides. */
TEST_FN int sheet_pierces(fsi_vec3 p, fsi_vec3 q, fsi_vec3 a, fsi_vec3 b, fsi_vec3 c)
{
    const double s = sheet_volume(a, b, c, p), t = sheet_volume(a, b, c, q), k = sheet_volume(p, q, a, b),
                 l = sheet_volume(p, q, b, c), m = sheet_volume(p, q, c, a);
    const double least = TOL(1e-18, 1e-12);
    return fabs(s) > least && fabs(t) > least && s * t < 0 &&
           ((k > least && l > least && m > least) || (k < -least && l < -least && m < -least));
}

TEST_FN int sheet_shares(const int *a, int n, const int *b, int m)
{
    int i, j;
    for (i = 0; i < n; i++) for (j = 0; j < m; j++) if (a[i] == b[j]) return 1;
    return 0;
}

/* Sides of triangles that pass through other triangles; in 2D segments through others, whose walls reach from z = -1 to
   1. */
TEST_FN int sheet_crossings(const fsi_shell *s)
{
    const fsi_vec3 *x = s->position;
    int i, j, k, count = 0;
    for (i = 0; i < s->triangle_count; i++) for (k = 0; k < 3; k++) for (j = 0; j < s->triangle_count; j++) {
        const int *t = s->triangles + 3 * j, side[2] = { s->triangles[3 * i + k], s->triangles[3 * i + (k + 1) % 3] };
        if (!sheet_shares(side, 2, t, 3)) count += sheet_pierces(x[side[0]], x[side[1]], x[t[0]], x[t[1]], x[t[2]]);
    }
    for (i = 0; i < s->segment_count; i++) for (j = 0; j < i; j++) {
        const int *e = s->segments + 2 * i, *f = s->segments + 2 * j;
        const fsi_vec3 a = fsi_v3_sub(x[f[0]], v3(0, 0, 1)), b = fsi_v3_add(x[f[0]], v3(0, 0, 1)),
                       c = fsi_v3_add(x[f[1]], v3(0, 0, 1)), d = fsi_v3_sub(x[f[1]], v3(0, 0, 1));
        if (!sheet_shares(e, 2, f, 2))
            count += sheet_pierces(x[e[0]], x[e[1]], a, b, c) || sheet_pierces(x[e[0]], x[e[1]], a, c, d);
    }
    return count;
}

TEST_FN int sheet_outside(const sheet_scene *r)
{
    const fsi_shell *s = r->p.solid;
    int i, count = 0;
    for (i = 0; i < s->vertex_count && r->walls; i++) {
        const double x = (double)s->position[i].x, y = (double)s->position[i].y,
                     z = r->p.l.dim == 3 ? (double)s->position[i].z : sheet_room / 2;
        count += !(x > 0 && x < sheet_room && y > 0 && y < sheet_room && z > 0 && z < sheet_room);
    }
    return count;
}

/* Places, velocities and the liquid's distances are numbers, and no sample lies in the liquid. */
TEST_FN int sheet_sound(const sheet_scene *r)
{
    const fsi_shell *s = r->p.solid;
    const fsi_grid *g = r->p.water->grid;
    double sum = r->p.both->stats.volume_error;
    int i;
    for (i = 0; i < s->vertex_count; i++)
        sum += (double)fsi_v3_norm(s->position[i]) + (double)fsi_v3_norm(s->velocity[i]);
    for (i = 0; i < g->block_count * g->block_cells; i++) sum += fabs((double)r->p.water->phi->value[i]);
    return fsi_is_finite(sum) && r->p.both->stats.min_distance > 0;
}

TEST_FN void sheet_say(const sheet_scene *r, int number, int step, double seconds, const char *what)
{
    const fsi_shell *s = r->p.solid;
    printf("   sheet %d (%dD, %d vertices, pins %d, side %d, gap %.2g m, %.2g m/s, walls %d %.2f, friction %.2f, range "
           "%.2g m, tension %.2g, slip %d, drops %d) step %d, %.2f s, %d Newton steps in %d: %s\n",
           number, r->p.l.dim, s->vertex_count, r->pins, r->side, r->gap, r->speed, r->walls != NULL, r->friction,
           (double)s->desc.friction, (double)s->contact_range, (double)r->p.l.surface_tension, r->p.e.slip, r->drops,
           step, seconds, r->p.both->stats.newton, r->p.both->stats.substeps, what);
    fflush(stdout);
}

TEST_FN int sheet_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Counted in t. CPU time of a step is that of this process. */
TEST_FN void sheet_run(int number, int steps, sheet_tally *t)
{
    double seconds[SHEET_MOST_STEPS], sorted[SHEET_MOST_STEPS], longest = 0;
    double over;
    sheet_scene r;
    fsi_status status = FSI_OK;
    int k, last = 0;
    sheet_begin(&r, number);
    for (k = 0; k < steps && k < SHEET_MOST_STEPS && status == FSI_OK; k++) {
        const clock_t start = clock();
        int outside, crossed;
        status = fsi_couple_step(r.p.both, REAL(r.dt));
        seconds[k] = (double)(clock() - start) / CLOCKS_PER_SEC;
        t->steps++;
        if (seconds[k] > longest) longest = seconds[k], last = k;
        if (status != FSI_OK) {
            t->refused++;
            sheet_say(&r, number, k, seconds[k], fsi_couple_error(r.p.both)->message);
            continue;
        }
        outside = sheet_outside(&r);
        crossed = sheet_crossings(r.p.solid);
        t->outside += outside;
        t->crossed += crossed;
        t->broken += outside > 0 || crossed > 0 || !sheet_sound(&r);
        if (outside > 0 || crossed > 0 || !sheet_sound(&r))
            sheet_say(&r, number, k, seconds[k],
                      outside   ? "outside of the walls"
                      : crossed ? "the sheet crosses itself"
                                : "not sound");
        t->degraded += r.p.both->stats.degraded;
        t->substeps += r.p.both->stats.substeps;
        t->newton += r.p.both->stats.newton;
    }
    memcpy(sorted, seconds, (size_t)k * sizeof *sorted);
    qsort(sorted, (size_t)k, sizeof *sorted, sheet_compare);
    over = longest / fmax(sorted[k / 2], sheet_grain);
    t->scenes++;
    if (over > t->slowest) t->slowest = over, t->slowest_seed = number;
    if (over > 10) sheet_say(&r, number, last, longest, "a long step");
    sheet_end(&r);
}

#endif
