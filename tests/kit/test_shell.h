/* test_shell.h - scenes of sheets, rods and points for the tests of fsi_shell.h.
   SPDX-License-Identifier: MIT

   A scene grows by calls, then becomes a simulator:
      scene c = scene_empty();
      scene_sheet(&c, EQUILATERAL, 8, 8, 1, 1);
      s = scene_make(&c);            // c.desc and c.material[] may be changed before
      scene_free(&c);                // the simulator has its own copies */
#ifndef FSI_TEST_SHELL_H
#define FSI_TEST_SHELL_H

#define PI FSI_PI

TEST_FN fsi_vec3 v3(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }
TEST_FN double apart(fsi_vec3 a, fsi_vec3 b) { return (double)fsi_v3_norm(fsi_v3_sub(a, b)); }

typedef struct scene {
    fsi_shell_desc desc;
    fsi_shell_material material[4];
    fsi_context *context;
    fsi_vec3 *x, *rest;               /* rest: NULL until scene_rest */
    fsi_real *mass;
    int *triangle, *segment, *triangle_material, *segment_material;
    int vertices, triangles, segments, room, triangle_room, segment_room;
    int now;                          /* material of what comes next */
} scene;

TEST_FN scene scene_empty(void)
{
    scene c;
    int i;
    memset(&c, 0, sizeof c);
    c.desc = fsi_shell_default_desc();
    for (i = 0; i < 4; i++) c.material[i] = fsi_shell_default_material();
    return c;
}

TEST_FN void scene_free(scene *c)
{
    free(c->x);
    free(c->rest);
    free(c->mass);
    free(c->triangle);
    free(c->segment);
    free(c->triangle_material);
    free(c->segment_material);
    memset(c, 0, sizeof *c);
}

TEST_FN void *scene__more(void *p, int count, size_t size)
{
    p = realloc(p, (size_t)count * size);
    if (!p) abort();
    return p;
}

TEST_FN int scene_vertex(scene *c, double x, double y, double z)
{
    if (c->vertices == c->room) {
        c->room = 2 * c->room + 64;
        c->x = (fsi_vec3 *)scene__more(c->x, c->room, sizeof *c->x);
        c->mass = (fsi_real *)scene__more(c->mass, c->room, sizeof *c->mass);
    }
    c->x[c->vertices] = v3(x, y, z);
    c->mass[c->vertices] = 0;
    return c->vertices++;
}

TEST_FN int scene_point(scene *c, double x, double y, double z, double mass)
{
    const int i = scene_vertex(c, x, y, z);
    c->mass[i] = (fsi_real)mass;
    return i;
}

TEST_FN void scene_triangle(scene *c, int i, int j, int k)
{
    int *t;
    if (c->triangles == c->triangle_room) {
        c->triangle_room = 2 * c->triangle_room + 64;
        c->triangle = (int *)scene__more(c->triangle, c->triangle_room, 3 * sizeof(int));
        c->triangle_material = (int *)scene__more(c->triangle_material, c->triangle_room, sizeof(int));
    }
    t = c->triangle + 3 * c->triangles;
    t[0] = i;
    t[1] = j;
    t[2] = k;
    c->triangle_material[c->triangles++] = c->now;
}

TEST_FN void scene_segment(scene *c, int i, int j)
{
    if (c->segments == c->segment_room) {
        c->segment_room = 2 * c->segment_room + 64;
        c->segment = (int *)scene__more(c->segment, c->segment_room, 2 * sizeof(int));
        c->segment_material = (int *)scene__more(c->segment_material, c->segment_room, sizeof(int));
    }
    c->segment[2 * c->segments] = i;
    c->segment[2 * c->segments + 1] = j;
    c->segment_material[c->segments++] = c->now;
}

/* From now on vertices are at rest where they are; c->x may move. */
TEST_FN void scene_rest(scene *c)
{
    c->rest = (fsi_vec3 *)scene__more(c->rest, c->room, sizeof *c->rest);
    memcpy(c->rest, c->x, (size_t)c->vertices * sizeof *c->x);
}

/* n segments from a to b; returns the first of n + 1 vertices. */
TEST_FN int scene_rod(scene *c, int n, fsi_vec3 a, fsi_vec3 b)
{
    const int first = c->vertices;
    int i;
    for (i = 0; i <= n; i++) {
        const double s = (double)i / n;
        scene_vertex(c, (double)a.x + s * (double)(b.x - a.x), (double)a.y + s * (double)(b.y - a.y),
                     (double)a.z + s * (double)(b.z - a.z));
        if (i > 0) scene_segment(c, first + i - 1, first + i);
    }
    return first;
}

/* RIGHT: squares cut along one diagonal. ALTERNATING: along both by turns. EQUILATERAL: rows of constant x, every other
   one shifted by half an edge and closed by one vertex more. IRREGULAR: as that, inner vertices moved by up to a fifth
   of an edge. */
typedef enum mesh_kind { RIGHT, ALTERNATING, EQUILATERAL, IRREGULAR } mesh_kind;

/* Two rows of vertices, along y, joined by triangles: the one whose next vertex comes first goes ahead. */
TEST_FN void scene__zip(scene *c, int a, int na, int b, int nb)
{
    int i = 0, j = 0;
    while (i < na - 1 || j < nb - 1) {
        const int ahead = j == nb - 1 || (i < na - 1 && c->x[a + i + 1].y <= c->x[b + j + 1].y);
        if (ahead) {
            scene_triangle(c, a + i, b + j, a + i + 1);
            i++;
        } else {
            scene_triangle(c, a + i, b + j, b + j + 1);
            j++;
        }
    }
}

/* [0, lx] x [0, ly] at z = 0: nx + 1 rows of constant x, ny edges each (every other row of EQUILATERAL: two halves
   more). Returns the first vertex. */
TEST_FN int scene_sheet(scene *c, mesh_kind kind, int nx, int ny, double lx, double ly)
{
    const int first = c->vertices;
    const double dx = lx / nx, dy = ly / ny, jitter = kind == IRREGULAR ? 0.2 * (dx < dy ? dx : dy) : 0;
    uint64_t random = 7;
    int i, j, before = 0, count_before = 0;
    for (i = 0; i <= nx; i++) {
        const int shifted = kind >= EQUILATERAL && i % 2, count = shifted ? ny + 2 : ny + 1, row = c->vertices;
        for (j = 0; j < count; j++) {
            const int inner = i > 0 && i < nx && j > 0 && j < count - 1;
            double y = !shifted ? j * dy : j == 0 ? 0 : j == count - 1 ? ly : (j - 0.5) * dy, x = i * dx;
            if (inner && jitter > 0) {
                x += jitter * (2 * test_random(&random) - 1);
                y += jitter * (2 * test_random(&random) - 1);
            }
            scene_vertex(c, x, y, 0);
        }
        if (i > 0 && kind >= EQUILATERAL) scene__zip(c, before, count_before, row, count);
        for (j = 0; i > 0 && kind < EQUILATERAL && j < ny; j++) {
            const int p = before + j, q = row + j;
            if (kind == ALTERNATING && (i + j) % 2) {
                scene_triangle(c, p, q, q + 1);
                scene_triangle(c, p, q + 1, p + 1);
            } else {
                scene_triangle(c, p, q, p + 1);
                scene_triangle(c, p + 1, q, q + 1);
            }
        }
        before = row;
        count_before = count;
    }
    return first;
}

TEST_FN void scene_shift(scene *c, int first, double x, double y, double z)
{
    int i;
    for (i = first; i < c->vertices; i++) c->x[i] = fsi_v3_add(c->x[i], v3(x, y, z));
}

TEST_FN fsi_shell_desc scene_desc(const scene *c)
{
    fsi_shell_desc d = c->desc;
    d.context = c->context;
    d.vertices = c->x;
    d.vertex_count = c->vertices;
    d.rest = c->rest;
    d.triangles = c->triangle;
    d.triangle_count = c->triangles;
    d.segments = c->segment;
    d.segment_count = c->segments;
    d.materials = c->material;
    d.material_count = 4;
    d.triangle_material = c->triangle_material;
    d.segment_material = c->segment_material;
    d.vertex_mass = c->mass;
    return d;
}

TEST_FN fsi_shell *scene_make(const scene *c)
{
    fsi_context talking = fsi_default_context();
    fsi_shell_desc d = scene_desc(c);
    fsi_shell *s = NULL;
    if (CHECK(fsi_shell_create(&s, &d) == FSI_OK)) return s;
    d.context = &talking;
    fsi_shell_create(&s, &d);
    printf("%s\n", talking.error.message);
    exit(1);
}

TEST_FN void step_ok(fsi_shell *s, double dt)
{
    if (!CHECK(fsi_shell_step(s, (fsi_real)dt) == FSI_OK)) printf("%s\n", fsi_shell_error(s)->message);
}

TEST_FN void run_ok(fsi_shell *s, int steps, double dt)
{
    for (; steps > 0; steps--) step_ok(s, dt);
}

TEST_FN void settle_ok(fsi_shell *s)
{
    if (!CHECK(fsi_shell_settle(s, 400) == FSI_OK)) printf("%s\n", fsi_shell_error(s)->message);
}

/* A rigid box around the origin; when c is 0 a square at z = 0, its normal upwards. */
TEST_FN fsi_mesh *make_box(fsi_context *context, double a, double b, double c)
{
    static const int box[36] = {0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6, 0, 1, 5, 0, 5, 4,
                                2, 6, 7, 2, 7, 3, 0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5};
    static const int square[6] = { 0, 1, 3, 0, 3, 2 };
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *m = NULL;
    fsi_vec3 x[8];
    int i;
    for (i = 0; i < 8; i++) x[i] = v3(i & 1 ? a : -a, i & 2 ? b : -b, i & 4 ? c : -c);
    d.context = context;
    d.vertices = x;
    d.vertex_count = c > 0 ? 8 : 4;
    d.elements = c > 0 ? box : square;
    d.element_count = c > 0 ? 12 : 2;
    d.kind = c > 0 ? FSI_MESH_CLOSED : FSI_MESH_TWO_SIDED;
    if (!CHECK(fsi_mesh_create(&m, &d) == FSI_OK)) exit(1);
    return m;
}

/* A box or square, shifted before it becomes an obstacle. */
TEST_FN fsi_mesh *make_box_at(fsi_context *context, double a, double b, double c, fsi_vec3 at)
{
    fsi_mesh *m = make_box(context, a, b, c);
    CHECK(fsi_mesh_move_rigid(m, at, fsi_quat_identity()) == FSI_OK);
    return m;
}

TEST_FN int add_mesh(fsi_shell *s, const fsi_mesh *mesh, fsi_body *body, double friction)
{
    fsi_shell_obstacle_desc d = fsi_shell_default_obstacle_desc();
    int id = -1;
    d.mesh = mesh;
    d.body = body;
    d.friction = (fsi_real)friction;
    if (!CHECK(fsi_shell_add_obstacle(s, &d, &id) == FSI_OK)) printf("%s\n", fsi_shell_error(s)->message);
    return id;
}

TEST_FN double lowest(const fsi_shell *s)
{
    double z = 1e30;
    int i;
    for (i = 0; i < s->vertex_count; i++) if ((double)s->position[i].z < z) z = (double)s->position[i].z;
    return z;
}

TEST_FN double total_mass(const fsi_shell *s)
{
    double m = 0;
    int i;
    for (i = 0; i < s->vertex_count; i++) m += (double)s->mass[i];
    return m;
}

#endif
