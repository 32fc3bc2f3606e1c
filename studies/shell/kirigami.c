/* cc -O3 -I. studies/shell/kirigami.c -lm -o kirigami && ./kirigami
   SPDX-License-Identifier: MIT

   A square of card, folded along its middle and cut by V-shaped slits across the fold. The crease rests at 110.6
   degrees from flat; on every other band between two slits it was folded the other way. The card starts flat, held by
   its two sides; they are led together and it pops out: main fold up, bands down. Then the sides are pulled apart and
   it lies flat again, and let go it springs back. Bending is by the shape operator, plate theory with Poisson's effect;
   creases are softer than the card. fold= and band= are mean angles of the crease in degrees at rest, found by
   fsi_shell_settle, of the fold and of the bands: short of 110.6, as the card resists being bent. popped= and pulled=
   are the fold's angle when the sides were closest and farthest apart; depth= how far the bands stand out at rest, from
   the highest to the lowest point of the crease over the card's width; stretch= the largest strain of an edge at any
   time: paper bends, and hardly stretches. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_shell.h"
#include "../../examples/kit/shell_tally.h"

#define SIDE 0.2        /* of the card [m] */
#define THICK 0.0003
#define REST 110.6      /* degrees */
#define SLITS 6
#define CUT 0.2         /* width of a slit, over an edge */
#define IN 0.9          /* the sides are led together in this time [s], */
#define OUT 0.9         /* apart in this one, */
#define FREE 0.7        /* and are free for this one */

typedef struct state {
    ex_mesh card;
    int n, *low, *crease_band; /* edges a side; lower copy of each lattice point or -1; band of each crease edge, -1:
                                  the fold */
    fsi_shell_crease *creases;
    int crease_count;
    fsi_shell *shell;
    double stretch;
} state;

/* ---- the cut card ----------------------------------------------------------------------------------------------- */

/* Slit s runs through the lattice points (i, j) with j = foot + |i - n/2|, |i - n/2| <= reach; its two ends are not
   cut. */
static int foot_of(const state *w, int s) { return w->n / 12 + s * (w->n / 9); }
static int reach_of(const state *w) { return w->n * 3 / 10; }

/* The slit on which a point is cut, -1: none. */
static int slit_at(const state *w, int i, int j)
{
    const int off = abs(i - w->n / 2);
    int s;
    for (s = 0; s < SLITS; s++) if (off < reach_of(w) && j == foot_of(w, s) + off) return s;
    return -1;
}

/* The number of a point as seen by a cell: cells below a slit use its lower copy. Within a column cells are below if
   their lower row is. */
static int point_of(const state *w, int i, int j, int upper)
{
    const int k = j * (w->n + 1) + i;
    return !upper && w->low[k] >= 0 ? w->low[k] : k;
}

/* One triangle of lattice points; it is above a slit on which it has corners if its middle is. */
static void add_triangle(state *w, const int *ij)
{
    int *t = w->card.triangles + 3 * w->card.triangle_count++, k, c;
    for (k = 0; k < 3; k++) {
        const int i = ij[2 * k], j = ij[2 * k + 1];
        int above = 0;
        for (c = 0; c < 3; c++) above += (ij[2 * c + 1] - abs(ij[2 * c] - w->n / 2)) - (j - abs(i - w->n / 2));
        t[k] = point_of(w, i, j, above > 0);
    }
}

/* Cells are cut along the diagonals that slits follow: up to the right on the right side, up to the left on the left
   one. */
static void add_cell(state *w, int i, int j)
{
    const int right = i >= w->n / 2;
    const int a[2][6] = { { i, j, i + 1, j, i, j + 1 }, { i + 1, j, i + 1, j + 1, i, j + 1 } };
    const int b[2][6] = { { i, j, i + 1, j, i + 1, j + 1 }, { i, j, i + 1, j + 1, i, j + 1 } };
    add_triangle(w, right ? b[0] : a[0]);
    add_triangle(w, right ? b[1] : a[1]);
}

static void cut_card(state *w, int n)
{
    const int points = (n + 1) * (n + 1);
    const double edge = SIDE / n;
    int i, j, k, more = points;
    w->n = n;
    w->low = (int *)ex_alloc(NULL, (size_t)points, sizeof(int));
    w->card = ex_mesh_make(2 * points, 2 * n * n);
    w->card.triangle_count = 0;
    for (k = 0; k < points; k++) {
        i = k % (n + 1);
        j = k / (n + 1);
        w->card.vertices[k] = fsi_v3((fsi_real)(edge * i - SIDE / 2), (fsi_real)(edge * j - SIDE / 2), 0);
        w->low[k] = slit_at(w, i, j) >= 0 ? more : -1;
        if (w->low[k] < 0) continue;
        w->card.vertices[more] = w->card.vertices[k];
        w->card.vertices[more++].y -= (fsi_real)(CUT * edge / 2);
        w->card.vertices[k].y += (fsi_real)(CUT * edge / 2);
    }
    w->card.vertex_count = more;
    for (j = 0; j < n; j++) for (i = 0; i < n; i++) add_cell(w, i, j);
}

/* The crease: all edges on the line x = 0. Those of every other band between two slits are folded the other way. */
static void add_creases(state *w)
{
    const int n = w->n, i = n / 2;
    int j, s;
    w->creases = (fsi_shell_crease *)ex_alloc(NULL, (size_t)n, sizeof *w->creases);
    w->crease_band = (int *)ex_alloc(NULL, (size_t)n, sizeof(int));
    for (j = 0; j < n; j++) {
        fsi_shell_crease *c = &w->creases[w->crease_count];
        int band = -1;
        for (s = 0; s + 1 < SLITS; s += 2) if (j >= foot_of(w, s) && j < foot_of(w, s + 1)) band = s;
        c->a = point_of(w, i, j, 1);
        c->b = point_of(w, i, j + 1, 0);
        c->angle = (fsi_real)((band < 0 ? REST : -REST) * FSI_PI / 180);
        c->stiffness = (fsi_real)0.5;
        w->crease_band[w->crease_count++] = band;
    }
}

static void make_card(ex_app *app, state *w)
{
    fsi_shell_material paper = fsi_shell_preset(FSI_SHELL_PAPER);
    fsi_shell_desc d = fsi_shell_default_desc();
    int j;
    cut_card(w, app->res);
    add_creases(w);
    paper.thickness = (fsi_real)THICK;
    paper.clearance = (fsi_real)(THICK / 2);
    paper.damping_mass = 6;
    d.context = &app->context;
    d.vertices = w->card.vertices;
    d.vertex_count = w->card.vertex_count;
    d.triangles = w->card.triangles;
    d.triangle_count = w->card.triangle_count;
    d.materials = &paper;
    d.material_count = 1;
    d.creases = w->creases;
    d.crease_count = w->crease_count;
    d.gravity = fsi_v3(0, 0, 0);
    ex_check(app, fsi_shell_create(&w->shell, &d));
    for (j = 0; j <= w->n; j++) w->shell->pinned[j * (w->n + 1)] = w->shell->pinned[j * (w->n + 1) + w->n] = 1;
}

/* ---- what the hands do, and what is measured -------------------------------------------------------------------- */

static double ease(double t) { return t <= 0 ? 0 : t >= 1 ? 1 : t * t * (3 - 2 * t); }

/* Both sides go inwards, then outwards again to 0.985 of the width, then they are free. */
static void lead_sides(const state *w, double time)
{
    const double way = 0.3 * ease(time / IN) - 0.285 * ease((time - IN) / OUT);
    const int held = time < IN + OUT;
    int j, k;
    for (j = 0; j <= w->n; j++) for (k = 0; k < 2; k++) {
        const int v = j * (w->n + 1) + k * w->n;
        w->shell->pinned[v] = (unsigned char)held;
        w->shell->target[v] = w->card.vertices[v];
        w->shell->target[v].x = (fsi_real)((k ? 1 : -1) * SIDE / 2 * (1 - way));
    }
}

/* The mean angle of the crease over the fold (bands 0) or the bands: of the two triangles at each of its edges. */
static double mean_angle(const state *w, int bands)
{
    const int *t = w->shell->triangles;
    const fsi_vec3 *x = w->shell->position;
    double sum = 0;
    int e, i, k, count = 0;
    for (e = 0; e < w->crease_count; e++) if ((w->crease_band[e] >= 0) == bands) {
        const int a = w->creases[e].a, b = w->creases[e].b;
        fsi_vec3 n[2] = { { 0, 0, 0 }, { 0, 0, 0 } }, along = fsi_v3_unit(fsi_v3_sub(x[b], x[a]));
        for (i = 0; i < w->shell->triangle_count; i++) for (k = 0; k < 3; k++) {
            const int p = t[3 * i + k], q = t[3 * i + (k + 1) % 3];
            if ((p == a && q == b) || (p == b && q == a))
                n[p == b] = fsi_v3_unit(
                    fsi_v3_cross(fsi_v3_sub(x[t[3 * i + 1]], x[t[3 * i]]), fsi_v3_sub(x[t[3 * i + 2]], x[t[3 * i]])));
        }
        sum += atan2((double)fsi_v3_dot(fsi_v3_cross(n[1], n[0]), along), (double)fsi_v3_dot(n[0], n[1]));
        count++;
    }
    return count ? -sum / count * 180 / FSI_PI : 0;
}

static double stretch_of(const state *w)
{
    const fsi_vec3 *x = w->shell->position, *rest = w->card.vertices;
    double most = 0;
    int i, k;
    for (i = 0; i < w->card.triangle_count; i++) for (k = 0; k < 3; k++) {
        const int a = w->card.triangles[3 * i + k], b = w->card.triangles[3 * i + (k + 1) % 3];
        most = fmax(
            most, fabs((double)(fsi_v3_norm(fsi_v3_sub(x[a], x[b])) / fsi_v3_norm(fsi_v3_sub(rest[a], rest[b]))) - 1));
    }
    return most;
}

/* Height of the fold's highest crease point over the bands' lowest one. */
static double depth_of(const state *w)
{
    double lo = 1e30, hi = -1e30;
    int e;
    for (e = 0; e < w->crease_count; e++) {
        const double z = (double)w->shell->position[w->creases[e].a].z;
        lo = fmin(lo, z);
        hi = fmax(hi, z);
    }
    return (hi - lo) / SIDE;
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->shell;
    ex_draw_cloth(scene, s, THICK, 0xf0e6d2, 0xd9653b);
    ex_save_scene(app, scene, frame, "%.2f s", s->time);
}

static ex_scene begin_scene(ex_app *app)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 box;
    box.lo = fsi_v3((fsi_real)-0.1, (fsi_real)-0.1, (fsi_real)-0.07);
    box.hi = fsi_v3((fsi_real)0.1, (fsi_real)0.1, (fsi_real)0.07);
    scene.width = 720;
    scene.height = 600;
    ex_look_at_box(&scene, box, 30, 32);
    return scene;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_shell_tally tally = { 0 };
    state w;
    double dt = 1.0 / 60, pulled = 0, popped = 0;
    int frame;

    memset(&w, 0, sizeof w);
    ex_init(&app, "kirigami", "A card with slits and a crease pops out, is pulled flat, and springs back.");
    app.res = 36;
    app.res_help = "edges along a side of the card, a multiple of 36";
    app.frames = 75;
    ex_real(&app, "dt", &dt, 1e-4, 1.0 / 30, "time step [s]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res % 36 != 0 || app.res > 720) ex_die("--res is not a multiple of 36, up to 720");
    make_card(&app, &w);
    scene = begin_scene(&app);

    for (frame = 0; frame < app.frames; frame++) {
        while (w.shell->time < (frame + 1) / 30.0 - 1e-9) {
            lead_sides(&w, w.shell->time + dt);
            ex_shell_step(&app, &tally, w.shell, dt);
            if (fabs(w.shell->time - IN) < dt / 2) popped = mean_angle(&w, 0);
            if (fabs(w.shell->time - IN - OUT) < dt) pulled = mean_angle(&w, 0);
        }
        w.stretch = fmax(w.stretch, stretch_of(&w));
        if (app.images) draw(&app, &scene, &w, frame);
        if (app.write) {
            fsi_io_mesh mesh = fsi_io_default_mesh();
            mesh.vertices = w.shell->position;
            mesh.vertex_count = w.shell->vertex_count;
            mesh.triangles = w.card.triangles;
            mesh.triangle_count = w.card.triangle_count;
            ex_write_mesh(&app, "card", frame, &mesh);
        }
        ex_progress(&app, frame + 1);
    }

    ex_check(&app, fsi_shell_settle(w.shell, 300));
    ex_figure(&app, "popped", "%.1f", popped);
    ex_figure(&app, "pulled", "%.1f", pulled);
    ex_figure(&app, "fold", "%.1f", mean_angle(&w, 0));
    ex_figure(&app, "band", "%.1f", mean_angle(&w, 1));
    ex_figure(&app, "depth", "%.3f", depth_of(&w));
    ex_figure(&app, "stretch", "%.4f", w.stretch);
    ex_figure(&app, "intersections", "%.0f", fsi_shell_count_intersections(w.shell));
    ex_shell_figures(&app, &tally, w.shell);
    ex_scene_end(&scene);
    fsi_shell_destroy(w.shell);
    ex_mesh_free(&w.card);
    free(w.low);
    free(w.creases);
    free(w.crease_band);
    return ex_end(&app);
}
