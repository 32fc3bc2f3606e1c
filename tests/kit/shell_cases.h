/* shell_cases.h - beams, rods, chains and plates with known solutions: what test_shell_physics.c measures small and
   validate_shell.c at full size.
   SPDX-License-Identifier: MIT

   A beam lies along x from 0 to length 1, with EI = 1 N m^2 and 1 kg/m: a load P in newtons is P L^2 / EI.

   How a clamp is made: a sliver, a segment or a row of triangles a thousandth of an edge long, all pinned, continues
   the beam beyond its end. The angle at the end then is that between the clamp and the first free element, which is
   curvature times half its length, and the energy of the joint counts half a length as well: the clamp sits at the end
   itself, to second order. (Pinning a whole element instead puts it in the middle of that.) */
#ifndef FSI_SHELL_CASES_H
#define FSI_SHELL_CASES_H

/* What a beam is made of. */
typedef struct beam_kind {
    const char *name;
    int dim, sheet;          /* 2: a chain in the plane; sheet: a strip of triangles */
    mesh_kind mesh;
    fsi_shell_bending bending;
    double nu;
    double width, thickness; /* of a strip [m]; a rod: thickness is its radius */
    int n, across;           /* elements along and across it */
    int lengthwise;          /* EQUILATERAL: lines of edges run along the beam instead of across it; such a beam has no
                                rows, `lateral` only takes it */
} beam_kind;

typedef struct beam {
    scene c;
    beam_kind kind;
    int clamped[2], rows;    /* rows: those of the beam itself, n + 1 */
    int row[400];            /* first vertex of each, and of what follows */
    int ghost[2], ghosts[2]; /* vertices of the slivers */
} beam;

/* Youngs modulus for EI = 1: of a rod E pi r^4 / 4; of a strip E t^3 w / 12; in the plane E t^3 / (12 (1 - nu^2)). */
static double beam_young(const beam_kind *k)
{
    const double t = k->thickness;
    if (k->sheet) return 12 / (t * t * t * k->width);
    return k->dim == 2 ? 12 * (1 - k->nu * k->nu) / (t * t * t) : 4 / (PI * t * t * t * t);
}

static void beam_row(beam *b, double x, int shifted)
{
    const beam_kind *k = &b->kind;
    const double dy = k->width / k->across;
    int j;
    if (!k->sheet) scene_vertex(&b->c, x, 0, 0);
    for (j = 0; k->sheet && j < k->across + 1 + shifted; j++)
        scene_vertex(&b->c, x, !shifted ? j * dy : j == 0 ? 0 : j == k->across + 1 ? k->width : (j - 0.5) * dy, 0);
}

static void beam_join(beam *b, int p, int np, int q, int nq)
{
    int j;
    if (!b->kind.sheet) scene_segment(&b->c, p, q);
    else if (b->kind.mesh >= EQUILATERAL) scene__zip(&b->c, p, np, q, nq);
    else for (j = 0; j < np - 1; j++) {
        const int turned = b->kind.mesh == ALTERNATING && (p / np + j) % 2; /* rows are numbered in order */
        scene_triangle(&b->c, p + j, q + j, turned ? q + j + 1 : p + j + 1);
        scene_triangle(&b->c, turned ? p + j : p + j + 1, turned ? q + j + 1 : q + j, turned ? p + j + 1 : q + j + 1);
    }
}

/* A sliver at one end: a copy of its row, a thousandth of an element further out, and first in line of the rod when it
   is at its beginning. */
static void beam_sliver(beam *b, int end)
{
    const int from = b->row[end ? b->rows - 1 : 0], count = b->row[end ? b->rows : 1] - from;
    const double x = end ? 1 + 1e-3 / b->kind.n : -1e-3 / b->kind.n;
    int j;
    b->ghost[end] = b->c.vertices;
    b->ghosts[end] = count;
    for (j = 0; j < count; j++) scene_vertex(&b->c, x, (double)b->c.x[from + j].y, 0);
    if (end) beam_join(b, from, count, b->ghost[end], count);
    else beam_join(b, b->ghost[end], count, from, count);
}

static void beam_jitter(beam *b)
{
    const beam_kind *k = &b->kind;
    const double d = 0.2 * fmin(1.0 / k->n, k->width / k->across);
    uint64_t random = 5;
    int i, j;
    for (i = 1; i < k->n; i++) for (j = b->row[i] + 1; j < b->row[i + 1] - 1; j++) {
        b->c.x[j].x += (fsi_real)(d * (2 * test_random(&random) - 1));
        b->c.x[j].y += (fsi_real)(d * (2 * test_random(&random) - 1));
    }
}

/* Turned by a right angle, and a sliver beyond each edge at x = 0. */
static void beam_lengthwise(beam *b)
{
    const beam_kind *k = &b->kind;
    int i, t, own;
    scene_sheet(&b->c, k->mesh, k->across, k->n, k->width, 1);
    for (i = 0; i < b->c.vertices; i++) b->c.x[i] = v3((double)b->c.x[i].y, (double)b->c.x[i].x, 0);
    own = b->c.triangles;
    for (t = 0; t < own; t++) for (i = 0; i < 3; i++) {
        const int p = b->c.triangle[3 * t + i], q = b->c.triangle[3 * t + (i + 1) % 3];
        if ((double)b->c.x[p].x > 1e-9 || (double)b->c.x[q].x > 1e-9) continue;
        scene_triangle(&b->c, q, p, scene_vertex(&b->c, -1e-3 / k->n, (double)(b->c.x[p].y + b->c.x[q].y) / 2, 0));
    }
}

static beam beam_make(const beam_kind *k, int clamp_first, int clamp_last)
{
    beam b;
    fsi_shell_material *m;
    int i;
    memset(&b, 0, sizeof b);
    b.c = scene_empty();
    b.kind = *k;
    b.rows = k->n + 1;
    b.clamped[0] = clamp_first;
    b.clamped[1] = clamp_last;
    if (k->lengthwise) beam_lengthwise(&b);
    for (i = 0; i <= k->n && !k->lengthwise; i++) {
        b.row[i] = b.c.vertices;
        beam_row(&b, (double)i / k->n, k->mesh >= EQUILATERAL && i % 2);
    }
    b.row[b.rows] = b.c.vertices;
    if (k->sheet && k->mesh == IRREGULAR) beam_jitter(&b);
    if (clamp_first && !k->lengthwise) beam_sliver(&b, 0);
    for (i = 0; i < k->n && !k->lengthwise; i++)
        beam_join(&b, b.row[i], b.row[i + 1] - b.row[i], b.row[i + 1], b.row[i + 2] - b.row[i + 1]);
    if (clamp_last) beam_sliver(&b, 1);
    m = &b.c.material[0];
    m->young = (fsi_real)beam_young(k);
    m->poisson = (fsi_real)k->nu;
    m->bending = k->bending;
    m->thickness = m->radius = (fsi_real)k->thickness;
    m->density = (fsi_real)(k->sheet      ? 1 / (k->thickness * k->width)
                            : k->dim == 2 ? 1 / k->thickness
                                          : 1 / (PI * k->thickness * k->thickness));
    b.c.desc.dim = k->dim;
    b.c.desc.contact = 0;
    b.c.desc.gravity = v3(0, 0, 0);
    b.c.desc.tolerance = (fsi_real)1e-8;
    b.c.desc.max_newton = 200;
    return b;
}

/* On its edge: across is up. */
static void beam_raise(beam *b)
{
    int i;
    for (i = 0; b->kind.sheet && i < b->c.vertices; i++)
        b->c.x[i] = v3((double)b->c.x[i].x, 0, (double)b->c.x[i].y - b->kind.width / 2);
}

static void beam_pin_row(const beam *b, fsi_shell *s, int end)
{
    const int r = end ? b->rows - 1 : 0;
    int i;
    for (i = b->row[r]; i < b->row[r + 1]; i++) s->pinned[i] = 1;
    for (i = 0; i < b->ghosts[end]; i++) s->pinned[b->ghost[end] + i] = 1;
    /* the sliver does not turn */
    if (!b->kind.sheet && b->clamped[end]) s->twist_held[end ? s->segment_count - 1 : 0] = 1;
}

/* A force on a row, spread over it by length. */
static void beam_push(const beam *b, fsi_shell *s, int r, fsi_vec3 f)
{
    const int first = b->row[r], end = b->row[r + 1];
    int i;
    if (!b->kind.sheet) s->force[first] = fsi_v3_add(s->force[first], f);
    else for (i = first; i < end; i++) {
            const double share =
                apart(b->c.x[i > first ? i - 1 : i], b->c.x[i < end - 1 ? i + 1 : i]) / (2 * b->kind.width);
            s->force[i] = fsi_v3_madd(s->force[i], (fsi_real)share, f);
    }
}

/* Mean place of a row. */
static fsi_vec3 beam_at(const beam *b, const fsi_shell *s, int r)
{
    fsi_vec3 sum = v3(0, 0, 0);
    int i;
    for (i = b->row[r]; i < b->row[r + 1]; i++) sum = fsi_v3_add(sum, s->position[i]);
    return fsi_v3_scale(sum, 1 / (fsi_real)(b->row[r + 1] - b->row[r]));
}

static int settled(fsi_shell *s)
{
    if (fsi_shell_settle(s, 2000) == FSI_OK) return 1;
    printf("not at rest: %s\n", fsi_shell_error(s)->message);
    return 0;
}

static fsi_vec3 down(const beam_kind *k, double f) { return k->dim == 2 ? v3(0, -f, 0) : v3(0, 0, -f); }

/* ---- cantilevers ------------------------------------------------------------------------------------------------ */

/* Clamped at x = 0, loaded at its tip by `load`, and by `weight` newtons a metre: drop and reach of the tip. Loads grow
   in steps. */
static int cantilever(const beam_kind *k, double load, double weight, double *drop, double *reach)
{
    beam b = beam_make(k, 1, 0);
    fsi_shell *s;
    fsi_vec3 tip;
    int step, steps = load + weight > 2 ? 4 : 1, ok = 1;
    b.c.desc.gravity = down(k, weight / steps);
    s = scene_make(&b.c);
    beam_pin_row(&b, s, 0);
    for (step = 1; step <= steps && ok; step++) {
        fsi_shell_desc d = s->desc;
        d.gravity = down(k, weight * step / steps);
        CHECK(fsi_shell_set_desc(s, &d) == FSI_OK);
        beam_push(&b, s, b.rows - 1, down(k, load / steps));
        ok = settled(s);
    }
    tip = beam_at(&b, s, b.rows - 1);
    *drop = k->dim == 2 ? -(double)tip.y : -(double)tip.z;
    *reach = (double)tip.x;
    fsi_shell_destroy(s);
    scene_free(&b.c);
    return ok;
}

/* ---- vibration -------------------------------------------------------------------------------------------------- */

/* Frequency of a clamped-free beam's mode, over theory's beta^2 / (2 pi): set off in its own shape, timed over
   `periods`, `steps` to each. */
static double beam_frequency(const beam_kind *k, int mode, int periods, int steps)
{
    static const double beta[3] = { 1.875104069, 4.694091133, 7.854757438 };
    const double z = beta[mode], f = z * z / (2 * PI), sigma = (cosh(z) + cos(z)) / (sinh(z) + sin(z));
    beam b = beam_make(k, 1, 0);
    fsi_shell *s;
    double shape[400], first = 0, last = 0, before = 0, dt = 1 / (f * steps);
    int i, j, step, crossings = 0;
    b.c.desc.integrator = FSI_SHELL_BDF2;
    b.c.desc.tolerance = (fsi_real)1e-7;
    s = scene_make(&b.c);
    beam_pin_row(&b, s, 0);
    for (i = 0; i < b.rows; i++) {
        const double x = (double)i / k->n;
        shape[i] = cosh(z * x) - cos(z * x) - sigma * (sinh(z * x) - sin(z * x));
        for (j = b.row[i]; i > 0 && j < b.row[i + 1]; j++) s->velocity[j] = down(k, -2e-4 * 2 * PI * f * shape[i]);
    }
    for (step = 0; crossings < 2 * periods + 1 && step < (periods + 2) * steps * 2; step++) {
        double q = 0;
        step_ok(s, dt);
        for (i = 0; i < b.rows; i++) q += shape[i] * (double)(k->dim == 2 ? beam_at(&b, s, i).y : beam_at(&b, s, i).z);
        if (step > 0 && (before < 0) != (q < 0)) {
            last = s->time - dt * q / (q - before);
            if (crossings++ == 0) first = last;
        }
        before = q;
    }
    fsi_shell_destroy(s);
    scene_free(&b.c);
    return crossings == 2 * periods + 1 ? periods / (last - first) / f : 0;
}

/* ---- buckling --------------------------------------------------------------------------------------------------- */

/* Near its critical load a beam gives way to a small push across by 1 / (1 - P/Pc) (Southwell 1932): from how far at
   two loads follows where the inverse of that is zero. First from far below, then nearer to what was found. `squared`:
   what counts is P^2, the other sign of the load being as bad. `pass`: 0, or 1 to begin near theory, where far below it
   other shapes give way as well. Returns Pc over theory; way(what, P) returns how far it goes, 0 when it does not come
   to rest. */
static double critical(double (*way)(const void *what, double load), const void *what, double theory, int squared,
                       int pass)
{
    static const double share[3][2] = { { 0.4, 0.5 }, { 0.85, 0.9 }, { 0.94, 0.97 } };
    double found = theory;
    for (; pass < 3; pass++) {
        const double a = share[pass][0] * found, b = share[pass][1] * found, u = 1 / way(what, a), v = 1 / way(what, b),
                     p = squared ? a * a : a, q = squared ? b * b : b;
        found = p + u * (q - p) / (u - v);
        if (squared) found = found > 0 ? sqrt(found) : 0;
        if (!(found > 0.3 * theory && found < 4 * theory)) break;
    }
    return found / theory;
}

typedef enum euler_ends { CLAMPED_FREE, PINNED_PINNED, CLAMPED_PINNED, CLAMPED_CLAMPED } euler_ends;

typedef struct column { const beam_kind *kind; euler_ends ends; int own_weight; } column;

/* Its end is moved in until EA times the strain is the load. */
static double column_way(const void *what, double load)
{
    const column *c = (const column *)what;
    const beam_kind *k = c->kind;
    const double ea = beam_young(k) * (k->sheet      ? k->thickness * k->width
                                       : k->dim == 2 ? k->thickness
                                                     : PI * k->thickness * k->thickness);
    beam b = beam_make(k, c->ends != PINNED_PINNED, c->ends == CLAMPED_CLAMPED);
    fsi_shell *s = scene_make(&b.c);
    double way;
    int j;
    beam_pin_row(&b, s, 0);
    if (c->ends != CLAMPED_FREE) beam_pin_row(&b, s, 1);
    for (j = 0; j < b.c.vertices; j++) { /* as it will be, but for the push */
        const double x = (double)b.c.x[j].x;
        s->target[j].x = (fsi_real)(x - load / ea * (x < 0 ? 0 : x > 1 ? 1 : x));
        s->position[j] = s->target[j];
    }
    if (c->ends == CLAMPED_FREE) beam_push(&b, s, b.rows - 1, v3(-load, 0, 0));
    beam_push(&b, s, c->ends == CLAMPED_FREE ? b.rows - 1 : b.rows / 2, down(k, 1e-4));
    way = settled(s) ? -(double)(k->dim == 2 ? beam_at(&b, s, b.rows / 2).y : beam_at(&b, s, b.rows / 2).z) : 0;
    fsi_shell_destroy(s);
    scene_free(&b.c);
    return way;
}

/* P L^2 / EI of a column, over theory. */
static double euler(const beam_kind *k, euler_ends ends)
{
    static const double theory[4] = { 2.467401100, 9.869604401, 20.19072856, 39.47841760 };
    column c;
    memset(&c, 0, sizeof c);
    c.kind = k;
    c.ends = ends;
    return critical(column_way, &c, theory[ends], 0, 0);
}

static double heavy_column_way(const void *what, double load)
{
    const beam_kind *k = (const beam_kind *)what;
    beam b = beam_make(k, 1, 0);
    fsi_shell *s;
    double way;
    b.c.desc.gravity = v3(-load, 0, 0);
    s = scene_make(&b.c);
    beam_pin_row(&b, s, 0);
    beam_push(&b, s, b.rows - 1, down(k, 1e-4));
    way = settled(s) ? -(double)(k->dim == 2 ? beam_at(&b, s, b.rows - 1).y : beam_at(&b, s, b.rows - 1).z) : 0;
    fsi_shell_destroy(s);
    scene_free(&b.c);
    return way;
}

/* A column under its own weight, w L^3 / EI = 7.837347. */
static double self_buckling(const beam_kind *k) { return critical(heavy_column_way, k, 7.837347, 0, 0); }

/* A deep beam on its edge, clamped at one end: a strip, or a rod that is an ellipse in section, half axes `thickness`
   upright and a twentieth of that across. EI across is 1. */
static const double slender = 0.05;

static double deep_young(const beam_kind *k)
{
    const double a = k->thickness;
    return k->sheet ? beam_young(k) : 4 / (PI * a * a * a * a * slender * slender * slender);
}

static double lateral_way(const void *what, double load)
{
    const column *l = (const column *)what;
    const beam_kind *k = l->kind;
    const double a = k->thickness, c = slender * a;
    beam b = beam_make(k, 1, 0);
    fsi_vec3 director[400];
    fsi_shell *s;
    double way = 0;
    int j, tips = 0, middle = 0;
    for (j = 0; j < 400; j++) director[j] = v3(0, 0, 1);
    beam_raise(&b);
    if (!k->sheet) {
        b.c.material[0].young = (fsi_real)deep_young(k);
        b.c.material[0].radius_across = (fsi_real)c;
        b.c.material[0].density = (fsi_real)(1 / (PI * a * c));
        b.c.desc.segment_director = director;
    }
    if (l->own_weight) b.c.desc.gravity = v3(0, 0, -load);
    s = scene_make(&b.c);
    if (!k->sheet) s->twist_held[0] = 1;
    for (j = 0; j < b.c.vertices; j++) {
        s->pinned[j] = (double)b.c.x[j].x < 1e-9;
        if ((double)b.c.x[j].x < 1 - 1e-9) continue;
        s->force[j] = v3(0, 1e-4 / (k->sheet ? k->across + 1 : 1), 0);
        tips++;
        if (apart(b.c.x[j], v3(1, 0, 0)) < apart(b.c.x[middle], v3(1, 0, 0))) middle = j;
    }
    if (!l->own_weight) s->force[middle].z = (fsi_real)-load;
    if (settled(s))
        for (j = 0; j < b.c.vertices; j++)
            if ((double)b.c.x[j].x > 1 - 1e-9) way += (double)s->position[j].y / tips;
    fsi_shell_destroy(s);
    scene_free(&b.c);
    return way;
}

/* Load at the tip, or own weight, at which it gives way sideways and turns; over theory, 4.012599 sqrt(EI GJ) / L^2 and
   12.853763 sqrt(EI GJ) / L^3. */
static double lateral(const beam_kind *k, int own_weight)
{
    const double g = deep_young(k) / (2 * (1 + k->nu)), t = k->thickness, c = slender * t;
    const double gj = k->sheet ? g * k->width * t * t * t / 3 : g * PI * t * t * t * c * c * c / (t * t + c * c);
    column l;
    memset(&l, 0, sizeof l);
    l.kind = k;
    l.own_weight = own_weight;
    return critical(lateral_way, &l, (own_weight ? 12.853763 : 4.012599) * sqrt(gj), 1, 0);
}

/* A rod of n segments, free of stress when straight and untwisted, laid out by `place`; first and last segment held,
   the last one turned by `turn`. The push along z at each vertex, times 1e-5 N; returns the work that it would do. A
   weak spring on vertex `middle` takes away what costs nothing: a ring that rolls about itself and so turns about where
   it is held. */
typedef struct twisted_rod {
    int n, middle;
    double nu, length;
    fsi_vec3 (*place)(const struct twisted_rod *r, int i);
    double (*push)(const struct twisted_rod *r, int i);
} twisted_rod;

static double twisted_way(const void *what, double turn)
{
    const twisted_rod *r = (const twisted_rod *)what;
    const double radius = 0.01;
    scene c = scene_empty();
    fsi_shell *s;
    fsi_shell_spring_desc weak = fsi_shell_default_spring_desc();
    double way = 0;
    int i, step;
    for (i = 0; i <= r->n; i++) {
        scene_vertex(&c, r->length * i / r->n, 0, 0);
        if (i > 0) scene_segment(&c, i - 1, i);
    }
    scene_rest(&c);
    for (i = 0; i <= r->n; i++) c.x[i] = r->place(r, i);
    c.material[0].young = (fsi_real)(4 / (PI * radius * radius * radius * radius));
    c.material[0].poisson = (fsi_real)r->nu;
    c.material[0].radius = (fsi_real)radius;
    c.desc.contact = 0;
    c.desc.gravity = v3(0, 0, 0);
    c.desc.tolerance = (fsi_real)1e-8;
    s = scene_make(&c);
    s->pinned[0] = s->pinned[1] = s->pinned[r->n - 1] = s->pinned[r->n] = 1;
    s->twist_held[0] = s->twist_held[r->n - 1] = 1;
    weak.vertex = r->middle;
    weak.anchor = s->position[r->middle];
    weak.stiffness = (fsi_real)0.01;
    CHECK(fsi_shell_add_spring(s, &weak, NULL) == FSI_OK);
    for (step = 1; step <= 4; step++) {
        for (i = 0; i < r->n; i++)
            if (!s->twist_held[i] || i == r->n - 1) s->twist[i] = (fsi_real)(turn * step / 4 * i / (r->n - 1));
        if (step == 4) for (i = 0; i <= r->n; i++) s->force[i] = v3(0, 0, 1e-5 * r->push(r, i));
        if (!settled(s)) break;
    }
    for (i = 0; i <= r->n; i++) way += r->push(r, i) * (double)s->position[i].z;
    fsi_shell_destroy(s);
    scene_free(&c);
    return way;
}

/* A ring of n - 1 segments, cut within one, whose halves are the first and the last one, held in the same place: that
   holds the ring and no more. */
static fsi_vec3 ring_place(const twisted_rod *r, int i)
{
    const double radius = r->length / r->n / (2 * sin(PI / (r->n - 1))), a = 2 * PI * i / (r->n - 1);
    return v3(radius * cos(a), radius * sin(a), 0);
}

static double ring_push(const twisted_rod *r, int i)
{
    return i == 0 || i >= r->n - 1 ? 0 : cos(4 * PI * (i - 0.5) / (r->n - 1));
}

/* Michell 1889: a ring, twisted and closed, leaves its plane at a total twist of 2 pi sqrt(3) (1 + nu). */
static double michell(int n, double nu)
{
    twisted_rod r;
    r.n = n;
    r.middle = (n + 1) / 2;
    r.nu = nu;
    r.length = 1;
    r.place = ring_place;
    r.push = ring_push;
    return critical(twisted_way, &r, 2 * PI * sqrt(3) * (1 + nu), 1, 0);
}

static fsi_vec3 line_place(const twisted_rod *r, int i) { return v3(r->length * i / r->n, 0, 0); }
static double line_push(const twisted_rod *r, int i) { return sin(PI * i / r->n); }

/* Straight, without tension, both ends clamped: M L / EI = 8.986819; held segments count half, the rod between their
   middles has length 1. (With pinned ends a torque that follows the end's tangent does work in a circle: such a rod
   whirls for ever, and there is nothing to settle.) */
static double twisted_line(int n, double nu)
{
    twisted_rod r;
    r.n = n;
    r.middle = n / 2;
    r.nu = nu;
    r.length = (double)n / (n - 1);
    r.place = line_place;
    r.push = line_push;
    return critical(twisted_way, &r, 8.986819 * (1 + nu), 1, 1); /* M = GJ turn / L, EI = (1 + nu) GJ */
}

/* ---- catenary --------------------------------------------------------------------------------------------------- */

/* A chain, or a strip, without bending stiffness to speak of, half as long again as its span: its sag over theory. */
static double catenary(const beam_kind *k)
{
    const double half = 0.5 / 1.5, span = 1 / 1.5;
    beam_kind soft = *k;
    beam b;
    fsi_shell *s;
    double a = 1, lo = 1e-3, hi = 10, theory, sag;
    int i;
    soft.thickness = 1e-4;
    b = beam_make(&soft, 0, 0);
    b.c.material[0].young = (fsi_real)1e8;
    b.c.material[0].density = 1000;
    b.c.desc.gravity = down(k, 9.81);
    scene_rest(&b.c);
    for (i = 0; i < 200; i++) { /* 1/2 = a sinh(span / 2a) */
        a = (lo + hi) / 2;
        if (a * sinh(half / a) > 0.5) lo = a;
        else hi = a;
    }
    theory = a * (cosh(half / a) - 1);
    for (i = 0; i < b.c.vertices; i++) { /* to begin with a fold, upside down */
        const double x = (double)b.c.x[i].x, h = sqrt(0.25 - half * half) * (1 - fabs(2 * x - 1));
        if (k->dim == 2) b.c.x[i] = v3(span * x, h, 0);
        else b.c.x[i] = v3(span * x, (double)b.c.x[i].y, -h);
    }
    b.c.desc.tolerance = (fsi_real)1e-6;
    s = scene_make(&b.c);
    beam_pin_row(&b, s, 0);
    beam_pin_row(&b, s, 1);
    sag = settled(s) ? -(double)(k->dim == 2 ? beam_at(&b, s, b.rows / 2).y : beam_at(&b, s, b.rows / 2).z) : 0;
    fsi_shell_destroy(s);
    scene_free(&b.c);
    return sag / theory;
}

/* ---- plates ----------------------------------------------------------------------------------------------------- */

typedef struct plate_kind { int round, clamped, n; mesh_kind mesh; fsi_shell_bending bending; double nu; } plate_kind;

/* Rings of 6 k vertices around the middle of a disc of radius 1. */
static void scene_disc(scene *c, int n, double jitter)
{
    uint64_t random = 11;
    int k, i, j, inner = 0, inner_count = 1;
    scene_vertex(c, 0, 0, 0);
    for (k = 1; k <= n; k++) {
        const int ring = c->vertices, count = 6 * k;
        for (i = 0; i < count; i++) {
            const double a = 2 * PI * i / count, r = (double)k / n, u = k < n ? jitter / n : 0;
            scene_vertex(c, r * cos(a) + u * (2 * test_random(&random) - 1),
                         r * sin(a) + u * (2 * test_random(&random) - 1), 0);
        }
        for (i = j = 0; i < count; ) { /* the ring that lags behind goes ahead */
            const int ahead = k > 1 && (double)(j + 1) / inner_count <= (double)(i + 1) / count && j < inner_count;
            const int p = inner + j % inner_count, q = ring + i % count;
            if (ahead) {
                scene_triangle(c, p, q, inner + (j + 1) % inner_count);
                j++;
            } else {
                scene_triangle(c, p, q, ring + (i + 1) % count);
                i++;
            }
        }
        if (k > 1 && j < inner_count) scene_triangle(c, inner + j, ring, inner);
        inner = ring;
        inner_count = count;
    }
}

typedef struct plate_side { int lo, hi, a, b; } plate_side;

static int plate_compare(const void *p, const void *q)
{
    const plate_side *a = (const plate_side *)p, *b = (const plate_side *)q;
    return a->lo != b->lo ? (a->lo < b->lo ? -1 : 1) : a->hi < b->hi ? -1 : a->hi > b->hi;
}

/* Holds the rim: its vertices, and when clamped a sliver beyond each of its edges. on_rim gets 1 for what is held; room
   for all vertices to come. */
static void plate_rim(scene *c, int clamped, unsigned char *on_rim)
{
    const int triangles = c->triangles;
    plate_side *side = (plate_side *)malloc(sizeof *side * 3 * (size_t)triangles);
    int i, k;
    if (!side) abort();
    for (i = 0; i < 3 * triangles; i++) {
        side[i].a = c->triangle[i];
        side[i].b = c->triangle[i - i % 3 + (i + 1) % 3];
        side[i].lo = side[i].a < side[i].b ? side[i].a : side[i].b;
        side[i].hi = side[i].a < side[i].b ? side[i].b : side[i].a;
    }
    qsort(side, 3 * (size_t)triangles, sizeof *side, plate_compare);
    for (i = 0; i < 3 * triangles; i = k) {
        for (k = i + 1; k < 3 * triangles && plate_compare(&side[i], &side[k]) == 0; k++) {}
        if (k > i + 1) continue;
        on_rim[side[i].a] = on_rim[side[i].b] = 1;
        if (clamped) { /* outwards: to the right of a to b */
            const fsi_vec3 a = c->x[side[i].a], b = c->x[side[i].b];
            const int ghost = scene_vertex(c, (double)(a.x + b.x) / 2 + 1e-3 * (double)(b.y - a.y),
                                           (double)(a.y + b.y) / 2 - 1e-3 * (double)(b.x - a.x), 0);
            scene_triangle(c, side[i].b, side[i].a, ghost);
            on_rim[ghost] = 1;
        }
    }
    free(side);
}

/* Middle deflection of a plate under a small even pressure, over theory (Timoshenko and Woinowsky-Krieger 1959). */
static double plate_deflection(const plate_kind *p)
{
    const double nu = p->nu, t = 0.01, pressure = p->round ? 0.005 : 0.03;
    const double theory = pressure * (p->round     ? (p->clamped ? 1 : (5 + nu) / (1 + nu)) / 64
                                      : p->clamped ? 0.00126532
                                                   : 0.00406235);
    scene c = scene_empty();
    unsigned char *on_rim;
    double *load, w;
    fsi_shell *s;
    int i, k, middle = 0, own;
    if (p->round) scene_disc(&c, p->n, p->mesh == IRREGULAR ? 0.2 : 0);
    else scene_sheet(&c, p->mesh, p->n, p->mesh >= EQUILATERAL ? (int)(p->n * 0.866 + 0.5) : p->n, 1, 1);
    own = c.vertices;
    on_rim = (unsigned char *)calloc(4 * (size_t)own, 1);
    load = (double *)calloc((size_t)own, sizeof(double));
    if (!on_rim || !load) abort();
    for (i = 0; i < c.triangles; i++) {
        const fsi_vec3 *a = &c.x[c.triangle[3 * i]], *b = &c.x[c.triangle[3 * i + 1]], *d = &c.x[c.triangle[3 * i + 2]];
        for (k = 0; k < 3; k++)
            load[c.triangle[3 * i + k]] +=
                pressure / 6 * (double)fsi_v3_norm(fsi_v3_cross(fsi_v3_sub(*b, *a), fsi_v3_sub(*d, *a)));
    }
    plate_rim(&c, p->clamped, on_rim);
    c.material[0].thickness = (fsi_real)t;
    c.material[0].young = (fsi_real)(12 * (1 - nu * nu) / (t * t * t));
    c.material[0].poisson = (fsi_real)nu;
    c.material[0].bending = p->bending;
    c.desc.contact = 0;
    c.desc.gravity = v3(0, 0, 0);
    c.desc.tolerance = (fsi_real)1e-8;
    s = scene_make(&c);
    for (i = 0; i < c.vertices; i++) s->pinned[i] = on_rim[i];
    for (i = 0; i < own; i++) {
        const fsi_vec3 at = p->round ? v3(0, 0, 0) : v3(0.5, 0.5, 0);
        s->force[i].z = (fsi_real)load[i];
        if (apart(c.x[i], at) < apart(c.x[middle], at)) middle = i;
    }
    w = settled(s) ? (double)s->position[middle].z : 0;
    fsi_shell_destroy(s);
    scene_free(&c);
    free(on_rim);
    free(load);
    return w / theory;
}

#endif
