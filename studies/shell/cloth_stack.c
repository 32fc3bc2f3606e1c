/* cc -O3 -I. studies/shell/cloth_stack.c -lm -o cloth_stack && ./cloth_stack
   SPDX-License-Identifier: MIT

   Five sheets of silk and cotton fall onto a ball that stands on a table, one upon the other, turned against each
   other: layers in contact everywhere. After every frame all edges are tested against all triangles, sheets, ball and
   table alike, by a test that shares nothing with the library: pairs from a grid, and the signs of volumes computed
   without any rounding, as sums of products that are kept exactly as several doubles (Dekker 1971; Shewchuk 1997).
   intersections= is what it found over the whole run, and must be 0; tested= counts the pairs, an inner edge twice;
   min_gap= is what was left of the range of the contacts at the closest. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_shell.h"
#include "../../examples/kit/shell_tally.h"

#define SHEETS 5
#define SIDE 0.62     /* of the lowest sheet [m] */
#define GROW -0.05    /* each next one is so much wider */
#define BALL 0.12     /* radius */
#define APART 0.008   /* of the sheets at first */
#define TABLE 0.8     /* its width */

static const uint32_t front[SHEETS] = { 0xc8432f, 0xe3a62f, 0x3f8f5f, 0x3576b5, 0x7a4fa3 };
static const uint32_t back[SHEETS] = { 0xe8b5a8, 0xf3dca8, 0xb0d9be, 0xb0cde8, 0xd0bde3 };

typedef struct state {
    ex_mesh cloth;         /* all sheets */
    ex_mesh solid;         /* ball and table */
    fsi_mesh *obstacle;
    fsi_shell *shell;
    int first[SHEETS + 1]; /* vertex of each sheet; */
    int face[SHEETS + 1];  /* triangle */
} state;

/* ---- exact signs ------------------------------------------------------------------------------------------------ */

/* A sum of doubles, none of which is rounded away: parts in growing size, without overlap. */
typedef struct exact { double part[128]; int count; } exact;

/* Adds x: each part and what is carried are replaced by their rounded sum, carried on, and its error, kept (Shewchuk
   1997, grow-expansion). */
static void exact_add(exact *e, double x)
{
    int i, kept = 0;
    for (i = 0; i < e->count; i++) {
        const double a = e->part[i], sum = a + x, b = sum - a, error = (a - (sum - b)) + (x - b);
        if (error < 0 || error > 0) e->part[kept++] = error;
        x = sum;
    }
    e->part[kept++] = x;
    e->count = kept;
}

/* Adds sign * a b c: two doubles hold a b, four its product with c. */
static void exact_add_product(exact *e, double sign, double a, double b, double c)
{
    const double high = a * b, low = fma(a, b, -high), p = high * c, q = low * c;
    exact_add(e, sign * fma(low, c, -q));
    exact_add(e, sign * q);
    exact_add(e, sign * fma(high, c, -p));
    exact_add(e, sign * p);
}

/* det [a; b; c] with coordinates as they are. */
static void exact_add_det(exact *e, double sign, const double *a, const double *b, const double *c)
{
    int k;
    for (k = 0; k < 3; k++) {
        exact_add_product(e, sign, a[k], b[(k + 1) % 3], c[(k + 2) % 3]);
        exact_add_product(e, -sign, a[k], b[(k + 2) % 3], c[(k + 1) % 3]);
    }
}

/* On which side of the plane abc is d? The sign of (b - a) x (c - a) . (d - a): by plain doubles where the result is
   larger than any error they can have, else from det [b c d] - det [a c d] + det [a b d] - det [a b c]. */
static int side_of(const double *a, const double *b, const double *c, const double *d)
{
    double u[3], v[3], w[3], value = 0, size = 0;
    exact e;
    int k;
    for (k = 0; k < 3; k++) {
        u[k] = b[k] - a[k];
        v[k] = c[k] - a[k];
        w[k] = d[k] - a[k];
    }
    for (k = 0; k < 3; k++) {
        const double m = u[(k + 1) % 3] * v[(k + 2) % 3], n = u[(k + 2) % 3] * v[(k + 1) % 3];
        value += (m - n) * w[k];
        size += (fabs(m) + fabs(n)) * fabs(w[k]);
    }
    if (fabs(value) > 1e-14 * size) return value > 0 ? 1 : -1;
    e.count = 0;
    exact_add_det(&e, 1, b, c, d);
    exact_add_det(&e, -1, a, c, d);
    exact_add_det(&e, 1, a, b, d);
    exact_add_det(&e, -1, a, b, c);
    value = e.part[e.count - 1];
    return value > 0 ? 1 : value < 0 ? -1 : 0;
}

/* Whether edge pq and triangle abc have a point in common that is none of their shared corners; they share none here.
   The line through p and q passes the triangle's sides all on one side. */
static int crosses(const double *p, const double *q, const double *a, const double *b, const double *c)
{
    const int from = side_of(a, b, c, p), to = side_of(a, b, c, q);
    int s[3];
    if (from * to > 0) return 0;
    if (from == 0 && to == 0) return -1; /* in one plane */
    s[0] = side_of(p, q, a, b);
    s[1] = side_of(p, q, b, c);
    s[2] = side_of(p, q, c, a);
    return (s[0] >= 0 && s[1] >= 0 && s[2] >= 0) || (s[0] <= 0 && s[1] <= 0 && s[2] <= 0);
}

/* Which side of the line ab is c, seen along an axis? Volumes over that plane have the sign of areas in it. */
static int turn_of(int axis, const double *a, const double *b, const double *c)
{
    double flat[4][3];
    int k;
    for (k = 0; k < 3; k++) {
        flat[0][k] = k == axis ? 0 : a[k];
        flat[1][k] = k == axis ? 0 : b[k];
        flat[2][k] = flat[3][k] = k == axis ? 0 : c[k];
    }
    flat[3][axis] = 1;
    return side_of(flat[0], flat[1], flat[2], flat[3]);
}

/* Whether two edges in one plane have a point in common: each has its ends on both sides of the other; on one line,
   their boxes overlap. */
static int edges_meet(int axis, const double *p, const double *q, const double *a, const double *b)
{
    const int pa = turn_of(axis, p, q, a), pb = turn_of(axis, p, q, b), ap = turn_of(axis, a, b, p),
              aq = turn_of(axis, a, b, q);
    int k, meet = pa * pb <= 0 && ap * aq <= 0;
    for (k = 0; k < 3 && meet && pa == 0 && pb == 0; k++)
        meet = fmax(p[k], q[k]) >= fmin(a[k], b[k]) && fmin(p[k], q[k]) <= fmax(a[k], b[k]);
    return meet;
}

/* The same for an edge in the plane of the triangle: it meets a side, or begins within. Seen along an axis along which
   the triangle has an area. */
static int crosses_in_plane(const double *p, const double *q, const double *const t[3])
{
    int axis, k, inside = 0;
    for (axis = 0; axis < 2 && turn_of(axis, t[0], t[1], t[2]) == 0; axis++) { }
    for (k = 0; k < 3; k++) {
        const double *a = t[k], *b = t[(k + 1) % 3];
        inside += turn_of(axis, a, b, p);
        if (edges_meet(axis, p, q, a, b)) return 1;
    }
    return abs(inside) == 3;
}

/* ---- all pairs, from a grid -------------------------------------------------------------------------------------- */

typedef struct lattice { double cell; int size, *head, *next, *item, count, capacity; } lattice;
typedef struct reach { int lo[3], hi[3]; } reach; /* cells */

static unsigned slot_of(const lattice *g, int x, int y, int z)
{
    return ((unsigned)x * 73856093u ^ (unsigned)y * 19349663u ^ (unsigned)z * 83492791u) % (unsigned)g->size;
}

static reach reach_of(const lattice *g, const double *const *x, int corners)
{
    reach r;
    int k, c;
    for (k = 0; k < 3; k++) {
        double lo = x[0][k], hi = x[0][k];
        for (c = 1; c < corners; c++) {
            lo = fmin(lo, x[c][k]);
            hi = fmax(hi, x[c][k]);
        }
        r.lo[k] = (int)floor(lo / g->cell);
        r.hi[k] = (int)floor(hi / g->cell);
    }
    return r;
}

static void enter(lattice *g, int item, unsigned slot)
{
    if (g->count == g->capacity) {
        g->capacity = 2 * g->capacity + 1024;
        g->next = (int *)ex_alloc(g->next, (size_t)g->capacity, sizeof(int));
        g->item = (int *)ex_alloc(g->item, (size_t)g->capacity, sizeof(int));
    }
    g->item[g->count] = item;
    g->next[g->count] = g->head[slot];
    g->head[slot] = g->count++;
}

/* Whether a cell is the lowest one that both reach: there, and only there, a pair is tested. (A cell that merely shares
   a slot is not within reach.) */
static int is_first(const reach *a, const reach *b, const int *cell)
{
    int k, first = 1;
    for (k = 0; k < 3; k++)
        first = first && cell[k] == (a->lo[k] > b->lo[k] ? a->lo[k] : b->lo[k]) && cell[k] <= a->hi[k] &&
                cell[k] <= b->hi[k];
    return first;
}

/* Points and triangles; `longest`: size of a cell. */
typedef struct soup { double *x; const int *triangles; int points, count; double longest; } soup;

static int meets(const soup *m, int p, int q, int triangle)
{
    const int *t = m->triangles + 3 * triangle;
    const double *c[3], *a = m->x + 3 * p, *b = m->x + 3 * q;
    int k, hit;
    for (k = 0; k < 3; k++) {
        if (t[k] == p || t[k] == q) return 0;
        c[k] = m->x + 3 * t[k];
    }
    hit = crosses(a, b, c[0], c[1], c[2]);
    return hit < 0 ? crosses_in_plane(a, b, c) : hit;
}

static void look(const soup *m, const lattice *g, const reach *of, int p, int q, long long *tested, int *hits)
{
    const double *ends[2];
    reach r;
    int cell[3], i;
    ends[0] = m->x + 3 * p;
    ends[1] = m->x + 3 * q;
    r = reach_of(g, ends, 2);
    for (cell[0] = r.lo[0]; cell[0] <= r.hi[0]; cell[0]++)
        for (cell[1] = r.lo[1]; cell[1] <= r.hi[1]; cell[1]++)
            for (cell[2] = r.lo[2]; cell[2] <= r.hi[2]; cell[2]++)
                for (i = g->head[slot_of(g, cell[0], cell[1], cell[2])]; i >= 0; i = g->next[i]) {
                    if (!is_first(&r, &of[g->item[i]], cell)) continue;
                    *hits += meets(m, p, q, g->item[i]);
                    ++*tested;
                }
}

/* All edges against all triangles; an edge comes from each of its triangles, so that inner ones are counted twice. */
static int count_crossings(const soup *m, long long *tested)
{
    reach *of = (reach *)ex_alloc(NULL, (size_t)m->count, sizeof *of);
    lattice g;
    int i, k, hits = 0, cell[3];
    memset(&g, 0, sizeof g);
    g.cell = m->longest;
    g.size = 4 * m->count + 1;
    g.head = (int *)ex_alloc(NULL, (size_t)g.size, sizeof(int));
    for (i = 0; i < g.size; i++) g.head[i] = -1;
    for (i = 0; i < m->count; i++) {
        const double *c[3];
        for (k = 0; k < 3; k++) c[k] = m->x + 3 * m->triangles[3 * i + k];
        of[i] = reach_of(&g, c, 3);
        for (cell[0] = of[i].lo[0]; cell[0] <= of[i].hi[0]; cell[0]++)
            for (cell[1] = of[i].lo[1]; cell[1] <= of[i].hi[1]; cell[1]++)
                for (cell[2] = of[i].lo[2]; cell[2] <= of[i].hi[2]; cell[2]++)
                    enter(&g, i, slot_of(&g, cell[0], cell[1], cell[2]));
    }
    for (i = 0; i < m->count; i++)
        for (k = 0; k < 3; k++)
            look(m, &g, of, m->triangles[3 * i + k], m->triangles[3 * i + (k + 1) % 3], tested, &hits);
    free(of);
    free(g.head);
    free(g.next);
    free(g.item);
    return hits;
}

/* Sheets, ball and table as one soup, in double. */
static int count_all(const state *w, long long *tested)
{
    const int own = w->shell->vertex_count, faces = w->shell->triangle_count;
    soup m;
    int *triangles, i, k, hits;
    m.points = own + w->solid.vertex_count;
    m.count = faces + w->solid.triangle_count;
    m.longest = 2 * (double)w->shell->mean_edge;
    m.x = (double *)ex_alloc(NULL, 3 * (size_t)m.points, sizeof(double));
    triangles = (int *)ex_alloc(NULL, 3 * (size_t)m.count, sizeof(int));
    for (i = 0; i < m.points; i++) {
        const fsi_vec3 x = i < own ? w->shell->position[i] : w->solid.vertices[i - own];
        m.x[3 * i] = (double)x.x;
        m.x[3 * i + 1] = (double)x.y;
        m.x[3 * i + 2] = (double)x.z;
    }
    for (k = 0; k < 3 * m.count; k++)
        triangles[k] = k < 3 * faces ? w->shell->triangles[k] : own + w->solid.triangles[k - 3 * faces];
    m.triangles = triangles;
    hits = count_crossings(&m, tested);
    free(m.x);
    free(triangles);
    return hits;
}

/* The test must find what is there: an edge through a triangle, one that ends short of it by the last bit of a double,
   one in its plane, one beside it. */
static void check_the_test(void)
{
    double x[15] = { 0, 0, 0, 1, 0, 0, 0, 1, 0, 0.25, 0.25, 1, 0.25, 0.25, -1 };
    const double *t[3];
    int good;
    t[0] = x;
    t[1] = x + 3;
    t[2] = x + 6;
    good = crosses(x + 9, x + 12, t[0], t[1], t[2]) == 1;
    x[14] = 1e-300;
    good = good && crosses(x + 9, x + 12, t[0], t[1], t[2]) == 0;
    x[11] = x[14] = 0;
    good = good && crosses(x + 9, x + 12, t[0], t[1], t[2]) == -1 && crosses_in_plane(x + 9, x + 12, t) == 1;
    x[9] = x[12] = 2;
    x[13] = 3;
    good = good && crosses_in_plane(x + 9, x + 12, t) == 0;
    x[10] = x[13] = 0;
    x[12] = 3;
    good = good && crosses_in_plane(x + 9, x + 12, t) == 0; /* on the line of a side */
    x[12] = 1;
    good = good && crosses_in_plane(x + 9, x + 12, t) == 1;
    if (!good) ex_die("the test of intersections does not work");
}

/* ---- the scene -------------------------------------------------------------------------------------------------- */

/* Sheet k, turned by 0.6 k about the vertical and somewhat off the middle. */
static void add_sheet(state *w, int k, int n)
{
    const double half = (SIDE + GROW * k) / 2, angle = 0.6 * k, z = 2 * BALL + APART * (k + 1);
    ex_mesh sheet =
        ex_grid(fsi_v3((fsi_real)-half, (fsi_real)-half, 0), fsi_v3((fsi_real)half, (fsi_real)half, 0), n, n);
    int i;
    w->first[k] = w->cloth.vertex_count;
    w->face[k] = w->cloth.triangle_count;
    for (i = 0; i < sheet.vertex_count; i++) {
        const double x = (double)sheet.vertices[i].x, y = (double)sheet.vertices[i].y;
        sheet.vertices[i] = fsi_v3((fsi_real)(cos(angle) * x - sin(angle) * y + 0.01 * k),
                                   (fsi_real)(sin(angle) * x + cos(angle) * y - 0.008 * k), (fsi_real)z);
    }
    ex_mesh_add(&w->cloth, &sheet);
    ex_mesh_free(&sheet);
    w->first[k + 1] = w->cloth.vertex_count;
    w->face[k + 1] = w->cloth.triangle_count;
}

/* A ball, and a table as a thin block, 1 mm below it. */
static void make_solids(ex_app *app, state *w)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_box3 box;
    ex_mesh table;
    box.lo = fsi_v3((fsi_real)(-TABLE / 2), (fsi_real)(-TABLE / 2), (fsi_real)-0.021);
    box.hi = fsi_v3((fsi_real)(TABLE / 2), (fsi_real)(TABLE / 2), (fsi_real)-0.001);
    table = ex_box(box, 0);
    w->solid = ex_sphere(fsi_v3(0, 0, (fsi_real)BALL), BALL, 3);
    ex_mesh_add(&w->solid, &table);
    ex_mesh_free(&table);
    d.context = &app->context;
    d.vertices = w->solid.vertices;
    d.vertex_count = w->solid.vertex_count;
    d.elements = w->solid.triangles;
    d.element_count = w->solid.triangle_count;
    ex_check(app, fsi_mesh_create(&w->obstacle, &d));
}

static void make_sheets(ex_app *app, state *w, double tolerance, double friction)
{
    fsi_shell_material cloth[2];
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell_obstacle_desc o = fsi_shell_default_obstacle_desc();
    int k, i, *material;
    for (k = 0; k < SHEETS; k++) add_sheet(w, k, app->res);
    material = (int *)ex_alloc(NULL, (size_t)w->cloth.triangle_count, sizeof *material);
    for (k = 0; k < SHEETS; k++) for (i = w->face[k]; i < w->face[k + 1]; i++) material[i] = k % 2;
    for (k = 0; k < 2; k++) {
        cloth[k] = fsi_shell_preset(k ? FSI_SHELL_SILK : FSI_SHELL_COTTON);
        cloth[k].clearance = cloth[k].thickness / 2;
    }
    d.context = &app->context;
    d.vertices = w->cloth.vertices;
    d.vertex_count = w->cloth.vertex_count;
    d.triangles = w->cloth.triangles;
    d.triangle_count = w->cloth.triangle_count;
    d.materials = cloth;
    d.material_count = 2;
    d.triangle_material = material;
    d.friction = o.friction = (fsi_real)friction;
    d.friction_speed = (fsi_real)0.01;
    d.tolerance = (fsi_real)tolerance;
    d.air_density = (fsi_real)1.2;
    ex_check(app, fsi_shell_create(&w->shell, &d));
    o.mesh = w->obstacle;
    ex_check(app, fsi_shell_add_obstacle(w->shell, &o, NULL));
    free(material);
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->shell;
    int k;
    for (k = 0; k < SHEETS; k++)
        ex_draw_sheet(scene, s->position, s->vertex_count, s->triangles + 3 * w->face[k], w->face[k + 1] - w->face[k],
                      0.001, front[k], back[k]);
    ex_draw_mesh(scene, w->solid.vertices, NULL, w->solid.vertex_count, w->solid.triangles, w->solid.triangle_count,
                 0xb9a58c);
    ex_save_scene(app, scene, frame, "%.2f s", s->time);
}

static ex_scene begin_scene(ex_app *app)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 box;
    box.lo = fsi_v3((fsi_real)-0.33, (fsi_real)-0.33, (fsi_real)-0.02);
    box.hi = fsi_v3((fsi_real)0.33, (fsi_real)0.33, (fsi_real)0.3);
    scene.width = 720;
    scene.height = 480;
    ex_look_at_box(&scene, box, 25, 24);
    return scene;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_shell_tally tally = { 0 };
    state w;
    double dt = 1.0 / 60, tolerance = 0.03, friction = 0.3;
    long long tested = 0;
    int frame, hits = 0;

    memset(&w, 0, sizeof w);
    ex_init(&app, "cloth_stack", "Five sheets fall on a ball, one upon the other.");
    app.res = 22;
    app.res_help = "edges along a side of a sheet";
    app.frames = 28;
    ex_real(&app, "dt", &dt, 1e-4, 1.0 / 30, "time step [s]");
    ex_real(&app, "friction", &friction, 0, 1, "Coulomb's coefficient");
    ex_real(&app, "tolerance", &tolerance, 1e-6, 1, "Newton's, in edges");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 4 || app.res > 1000) ex_die("--res is not between 4 and 1000");
    check_the_test();
    make_solids(&app, &w);
    make_sheets(&app, &w, tolerance, friction);
    scene = begin_scene(&app);

    for (frame = 0; frame < app.frames; frame++) {
        while (w.shell->time < (frame + 1) / 30.0 - 1e-9) ex_shell_step(&app, &tally, w.shell, dt);
        hits += count_all(&w, &tested);
        if (app.images) draw(&app, &scene, &w, frame);
        if (app.write) {
            fsi_io_mesh mesh = fsi_io_default_mesh();
            mesh.vertices = w.shell->position;
            mesh.vertex_count = w.shell->vertex_count;
            mesh.triangles = w.cloth.triangles;
            mesh.triangle_count = w.cloth.triangle_count;
            ex_write_mesh(&app, "cloth", frame, &mesh);
        }
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "intersections", "%.0f", hits);
    ex_figure(&app, "tested", "%.0f", (double)tested);
    ex_shell_figures(&app, &tally, w.shell);
    ex_scene_end(&scene);
    fsi_shell_destroy(w.shell);
    fsi_mesh_destroy(w.obstacle);
    ex_mesh_free(&w.cloth);
    ex_mesh_free(&w.solid);
    return ex_end(&app);
}
