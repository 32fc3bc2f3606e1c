/* cc -O3 -I. studies/solve/soap_film.c -lm -o soap_film && ./soap_film
   SPDX-License-Identifier: MIT

   A soap film hangs between two rings that are pulled apart. It takes the shape of least area, a catenoid, until at a
   distance of 1.3255 radii there is none any more: then the neck closes, the film is cut, and each half retracts to the
   disc in its ring. The film is a mesh of triangles that moves by its mean curvature, the gradient of its area (Dziuk
   1990; Pinkall and Polthier 1993), in steps of backward Euler, and this is what fsi_solve.h is for:

      (M + dt L) d = -dt L x,     x += d      M: a third of the area of the triangles around a point; L: cotangents

   One matrix of numbers, three right sides. fsi_assembly adds up the triangles; fsi_solver analyses the pattern once a
   mesh (analyses=: before and after the cut), and takes a factor as preconditioner for as many steps as it serves. (A
   film is flat enough to be factorised in a few ms: --reuse 0 does that in each step and takes no longer.) The points
   on the rings are pinned; they are in x, not in d.

   The hand waits for the film: it pulls the slower the faster the neck moves, and stops by itself when that runs away.
   At 1.2 radii it pauses, and the film at rest is compared with theory, neck_error= and area_error=; critical= is where
   it stopped, in radii. slivers= counts triangles so thin that they were held back, over all steps.

   Lengths are in radii R of the rings, times in R^2 / m where m is the speed of the film over its curvature. This is a
   way to the shape of least area, not the motion of a real film, which has inertia and moves air. Where little moves,
   steps and the times between pictures are longer. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_krylov.h"
#include "fsi_order.h"

#define STRIDE 0.05      /* way of the fastest point and of the rings between two pictures, or */
#define STEPS 60         /* as many steps */
#define FIRST 0.6        /* distance of the rings at first */
#define PAUSE 1.2        /* where the film is measured, */
#define REST 1e-6        /* when its neck is slower than this */
#define PULL 0.01        /* largest speed of the hand */
#define FOLLOW 0.002     /* speed of the neck at which it stops; */
#define CREEP 0.0005     /* the same after the pause: the rings get too far by some 4 times this */
#define LONGEST 1        /* time step */
#define FARTHEST 0.006   /* that a point should move in a step */
#define SLIVER 0.005     /* a triangle of less area, over its longest edge squared, counts as one of that area */
#define EVEN 0.3         /* share of the way to the middle of its neighbours that a point moves within the film */
#define PINCH 0.3        /* radius of a neck, over the height of its two rows of triangles, at which it is cut */
#define WIRE 0.015
#define THICKNESS 0.003  /* in pictures */

typedef struct film {
    ex_mesh mesh;
    int around, rows;        /* points on a ring; rows of triangles between the rings */
    int *unknown;            /* number of a point in the systems, -1: on a ring, or gone */
    int unknowns;
    fsi_vec3 *normal;        /* of each point */
    fsi_assembly *assembly;
    fsi_solver *solver;
    double *matrices, *forces[3]; /* of the triangles: 9 numbers each; 3 along each axis */
    double *right, *way[3];  /* -dt L x along one axis; d along each */
    double distance, time, dt, neck, neck_speed, moved;
    double critical, neck_error, area_error; /* 0: not known yet */
    int cut;
    long long iterations, slivers;
} film;

/* ---- theory --------------------------------------------------------------------------------------------------- */

/* The zero of f, which is negative at lo and positive at hi. */
static double bisect(double (*f)(double s, double given), double given, double lo, double hi)
{
    int k;
    for (k = 0; k < 60; k++) *(f((lo + hi) / 2, given) < 0 ? &lo : &hi) = (lo + hi) / 2;
    return lo;
}

/* A catenoid of neck a is r = a cosh(z / a). With s = h / 2a its rings, of radius 1, are h = 2 s / cosh s apart. That
   is largest where its derivative, 2 (1 - s tanh s) / cosh s, is 0. Of two catenoids below, the one with the smaller s
   is stable. */
static double distance_beyond(double s, double h) { return 2 * s / cosh(s) - h; }
static double past_largest(double s, double given) { return s * tanh(s) - 1 - given; }

/* Neck and area of the stable catenoid between rings at the distance h; 0: there is none. */
static int catenoid(double h, double *neck, double *area)
{
    double largest = bisect(past_largest, 0, 0, 2), s = bisect(distance_beyond, h, 0, largest), a = 1 / cosh(s);
    if (distance_beyond(largest, h) < 0) return 0;
    *neck = a;
    *area = 2 * FSI_PI * a * a * (s + sinh(s) * cosh(s));
    return 1;
}

/* ---- the film -------------------------------------------------------------------------------------------------- */

/* A cylinder. Every other row is turned by half an edge: triangles with two equal sides. */
static void make_film(film *f, int around)
{
    int i, j, n = around, rows = 2 * (5 * around / 24);
    memset(f, 0, sizeof *f);
    f->around = n;
    f->rows = rows;
    f->distance = FIRST;
    f->dt = 0.001;
    f->mesh = ex_mesh_make(n * (rows + 1), 2 * n * rows);
    for (j = 0; j <= rows; j++) for (i = 0; i < n; i++) {
        double angle = 2 * FSI_PI * (i + 0.5 * (j & 1)) / n;
        f->mesh.vertices[j * n + i] =
            fsi_v3((fsi_real)cos(angle), (fsi_real)sin(angle), (fsi_real)(FIRST * (j / (double)rows - 0.5)));
    }
    for (j = 0; j < rows; j++) for (i = 0; i < n; i++) {
        int *t = f->mesh.triangles + 6 * (j * n + i), odd = j & 1, next = (i + 1) % n, low = j * n, high = low + n;
        t[0] = low + i;
        t[1] = low + next;
        t[2] = high + (odd ? next : i);
        t[3] = low + (odd ? i : next);
        t[4] = high + next;
        t[5] = high + i;
    }
}

/* Numbers the points that move, finds the pattern of their matrix, and makes room for the systems. */
static void make_systems(ex_app *app, film *f)
{
    fsi_assembly_desc d = fsi_assembly_default_desc();
    const int triangles = f->mesh.triangle_count, points = f->mesh.vertex_count, corners = 3 * triangles;
    int *start = (int *)ex_alloc(NULL, (size_t)triangles + 1, sizeof *start),
        *vertex = (int *)ex_alloc(NULL, (size_t)corners, sizeof *vertex), i;
    f->unknown = (int *)ex_alloc(f->unknown, (size_t)points, sizeof *f->unknown);
    for (i = 0; i < points; i++) f->unknown[i] = -1;
    for (i = 0; i < corners; i++) {
        int point = f->mesh.triangles[i];
        if (point >= f->around && point < points - f->around) f->unknown[point] = 0; /* on no ring */
    }
    for (i = f->unknowns = 0; i < points; i++) if (f->unknown[i] == 0) f->unknown[i] = f->unknowns++;
    for (i = 0; i <= triangles; i++) start[i] = 3 * i;
    for (i = 0; i < corners; i++) vertex[i] = f->unknown[f->mesh.triangles[i]];
    d.context = &app->context;
    d.block = 1;
    d.vertices = f->unknowns;
    d.elements = triangles;
    d.start = start;
    d.vertex = vertex;
    fsi_assembly_destroy(f->assembly);
    ex_check(app, fsi_assembly_create(&f->assembly, &d));
    f->normal = (fsi_vec3 *)ex_alloc(f->normal, (size_t)points, sizeof *f->normal);
    f->matrices = (double *)ex_alloc(f->matrices, (size_t)triangles, 9 * sizeof(double));
    f->right = (double *)ex_alloc(f->right, (size_t)f->unknowns, sizeof(double));
    for (i = 0; i < 3; i++) {
        f->forces[i] = (double *)ex_alloc(f->forces[i], (size_t)triangles, 3 * sizeof(double));
        f->way[i] = (double *)ex_alloc(f->way[i], (size_t)f->unknowns, sizeof(double));
    }
    free(start);
    free(vertex);
}

static void free_film(film *f)
{
    int k;
    fsi_assembly_destroy(f->assembly);
    fsi_solver_destroy(f->solver);
    ex_mesh_free(&f->mesh);
    free(f->unknown);
    free(f->normal);
    free(f->matrices);
    free(f->right);
    for (k = 0; k < 3; k++) {
        free(f->forces[k]);
        free(f->way[k]);
    }
}

/* ---- a step ---------------------------------------------------------------------------------------------------- */

/* L_ij = e_i . e_j / (4 area) of a triangle, e_i its edge opposite to corner i: for i != j that is -cot / 2 of the
   angle between them. Returns the area. That of slivers is raised: they pull less than they ought to, but no triangle
   makes L indefinite. */
static double stiffness(film *f, int triangle, double l[3][3])
{
    const int *t = f->mesh.triangles + 3 * triangle;
    const fsi_vec3 *x = f->mesh.vertices;
    fsi_vec3 edge[3];
    double longest = 0, area;
    int i, j;
    for (i = 0; i < 3; i++) {
        edge[i] = fsi_v3_sub(x[t[(i + 2) % 3]], x[t[(i + 1) % 3]]);
        longest = fmax(longest, (double)fsi_v3_norm2(edge[i]));
    }
    area = (double)fsi_v3_norm(fsi_v3_cross(edge[0], edge[1])) / 2;
    if (area < SLIVER * longest) {
        area = SLIVER * longest;
        f->slivers++;
    }
    for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) l[i][j] = (double)fsi_v3_dot(edge[i], edge[j]) / (4 * area);
    return area;
}

/* M + dt L, and the forces -dt L x, of each triangle. Points on the rings pull with the others. */
static void fill_elements(film *f)
{
    int e, i, j;
    for (e = 0; e < f->mesh.triangle_count; e++) {
        const int *t = f->mesh.triangles + 3 * e;
        double l[3][3], area = stiffness(f, e, l);
        for (i = 0; i < 3; i++) {
            fsi_vec3 force = fsi_v3(0, 0, 0);
            for (j = 0; j < 3; j++) {
                f->matrices[9 * e + 3 * i + j] = f->dt * l[i][j] + (i == j ? area / 3 : 0);
                force = fsi_v3_madd(force, (fsi_real)(-f->dt * l[i][j]), f->mesh.vertices[t[j]]);
            }
            f->forces[0][3 * e + i] = (double)force.x;
            f->forces[1][3 * e + i] = (double)force.y;
            f->forces[2][3 * e + i] = (double)force.z;
        }
    }
}

/* Finds the way d of each point, along one axis after the other; returns the longest. */
static double solve(ex_app *app, film *f)
{
    fsi_system system = fsi_default_system();
    double longest = 0;
    double **d = f->way;
    int k, i;
    fill_elements(f);
    ex_check(app, fsi_assembly_matrix(f->assembly, f->matrices));
    system.matrix = &f->assembly->matrix;
    system.tolerance = 1e-6;
    for (k = 0; k < 3; k++) {
        ex_check(app, fsi_assembly_vector(f->assembly, f->forces[k], f->right));
        memset(f->way[k], 0, (size_t)f->unknowns * sizeof(double));
        ex_check(app, fsi_solver_solve(f->solver, &system, f->right, f->way[k]));
        f->iterations += f->solver->stats.iters;
    }
    for (i = 0; i < f->unknowns; i++)
        longest = fmax(longest, sqrt(d[0][i] * d[0][i] + d[1][i] * d[1][i] + d[2][i] * d[2][i]));
    return longest;
}

/* Unit normals of the points. */
static void find_normals(film *f)
{
    const fsi_vec3 *x = f->mesh.vertices;
    int e, i;
    memset(f->normal, 0, (size_t)f->mesh.vertex_count * sizeof *f->normal);
    for (e = 0; e < f->mesh.triangle_count; e++) {
        const int *t = f->mesh.triangles + 3 * e;
        fsi_vec3 area = fsi_v3_cross(fsi_v3_sub(x[t[1]], x[t[0]]), fsi_v3_sub(x[t[2]], x[t[0]]));
        for (i = 0; i < 3; i++) f->normal[t[i]] = fsi_v3_add(f->normal[t[i]], area);
    }
    for (i = 0; i < f->mesh.vertex_count; i++) f->normal[i] = fsi_v3_unit(f->normal[i]);
}

/* Moves points towards the middle of their neighbours, within the film: curvature moves them across it only, and would
   crowd them where it shrinks. An inner edge has two triangles: each neighbour counts twice. */
static void even_out(film *f)
{
    fsi_vec3 *x = f->mesh.vertices, *sum = (fsi_vec3 *)ex_alloc(NULL, (size_t)f->mesh.vertex_count, sizeof *sum);
    int *count = (int *)ex_alloc(NULL, (size_t)f->mesh.vertex_count, sizeof *count), e, i;
    memset(sum, 0, (size_t)f->mesh.vertex_count * sizeof *sum);
    memset(count, 0, (size_t)f->mesh.vertex_count * sizeof *count);
    find_normals(f);
    for (e = 0; e < f->mesh.triangle_count; e++) for (i = 0; i < 3; i++) {
        const int *t = f->mesh.triangles + 3 * e;
        sum[t[i]] = fsi_v3_add(sum[t[i]], fsi_v3_add(x[t[(i + 1) % 3]], x[t[(i + 2) % 3]]));
        count[t[i]] += 2;
    }
    for (i = 0; i < f->mesh.vertex_count; i++) if (f->unknown[i] >= 0) {
        fsi_vec3 way = fsi_v3_sub(fsi_v3_scale(sum[i], 1 / (fsi_real)count[i]), x[i]);
        way = fsi_v3_madd(way, -fsi_v3_dot(way, f->normal[i]), f->normal[i]);
        x[i] = fsi_v3_madd(x[i], (fsi_real)EVEN, way);
    }
    free(sum);
    free(count);
}

/* Moves the rings apart, and all points with them in proportion: else the outermost triangles alone would be
   stretched. */
static void pull(film *f)
{
    double speed = PULL * fmax(0, 1 - f->neck_speed / (f->neck_error > 0 ? CREEP : FOLLOW)),
           distance = f->distance + speed * f->dt;
    int i;
    if (f->cut) return;
    if (f->neck_error <= 0) distance = fmin(distance, PAUSE);
    for (i = 0; i < f->mesh.vertex_count; i++) f->mesh.vertices[i].z *= (fsi_real)(distance / f->distance);
    f->moved += distance - f->distance;
    f->distance = distance;
}

/* Mean distance of a row's points from the axis, and their mean height. */
static double row_radius(const film *f, int row, double *height)
{
    double radius = 0;
    int i;
    *height = 0;
    for (i = 0; i < f->around; i++) {
        fsi_vec3 x = f->mesh.vertices[row * f->around + i];
        radius += hypot((double)x.x, (double)x.y) / f->around;
        *height += (double)x.z / f->around;
    }
    return radius;
}

static int neck_row(const film *f)
{
    double z;
    int j, best = 1;
    for (j = 1; j < f->rows; j++) if (row_radius(f, j, &z) < row_radius(f, best, &z)) best = j;
    return best;
}

static double area_of(const film *f)
{
    const fsi_vec3 *x = f->mesh.vertices;
    double area = 0;
    int e;
    for (e = 0; e < f->mesh.triangle_count; e++) {
        const int *t = f->mesh.triangles + 3 * e;
        area += (double)fsi_v3_norm(fsi_v3_cross(fsi_v3_sub(x[t[1]], x[t[0]]), fsi_v3_sub(x[t[2]], x[t[0]]))) / 2;
    }
    return area;
}

/* Looks at the neck; at the pause, compares the film at rest with the catenoid. */
static void measure(film *f, double dt)
{
    double z, neck = row_radius(f, neck_row(f), &z), want_neck, want_area;
    f->neck_speed = fabs(f->neck - neck) / dt;
    f->neck = neck;
    if (f->neck_error > 0 || f->distance < PAUSE || f->neck_speed > REST) return;
    catenoid(PAUSE, &want_neck, &want_area);
    f->neck_error = fabs(neck / want_neck - 1);
    f->area_error = fabs(area_of(f) / want_area - 1);
}

/* Cuts a neck of less radius than its triangles are high: its points become two, each the tip of a half. Triangles that
   have lost an edge by that vanish. */
static void cut_neck(ex_app *app, film *f)
{
    const int row = neck_row(f), n = f->around, lower = row * n, upper = lower + 1;
    int *to = f->mesh.triangles, e, k;
    double below, at, above;
    row_radius(f, row - 1, &below);
    row_radius(f, row + 1, &above);
    if (row_radius(f, row, &at) > PINCH * (above - below)) return;
    f->mesh.vertices[lower] = fsi_v3(0, 0, (fsi_real)((below + at) / 2));
    f->mesh.vertices[upper] = fsi_v3(0, 0, (fsi_real)((above + at) / 2));
    for (e = 0; e < f->mesh.triangle_count; e++) {
        int t[3], is_upper = 0;
        memcpy(t, f->mesh.triangles + 3 * e, sizeof t);
        for (k = 0; k < 3; k++) is_upper |= t[k] >= lower + n;
        for (k = 0; k < 3; k++) if (t[k] / n == row) t[k] = is_upper ? upper : lower;
        if (t[0] == t[1] || t[1] == t[2] || t[2] == t[0]) continue;
        memcpy(to, t, sizeof t);
        to += 3;
    }
    f->mesh.triangle_count = (int)((to - f->mesh.triangles) / 3);
    f->critical = f->distance;
    f->cut = 1;
    make_systems(app, f);
}

/* A step, made again with a shorter time when points would move too far. */
static void advance(ex_app *app, film *f)
{
    double longest, dt;
    int i, k;
    pull(f);
    for (longest = solve(app, f); longest > 2 * FARTHEST; longest = solve(app, f)) f->dt *= FARTHEST / longest;
    for (i = 0; i < f->mesh.vertex_count; i++) {
        fsi_vec3 *x = f->mesh.vertices + i;
        k = f->unknown[i];
        if (k >= 0)
            *x = fsi_v3(x->x + (fsi_real)f->way[0][k], x->y + (fsi_real)f->way[1][k], x->z + (fsi_real)f->way[2][k]);
    }
    even_out(f);
    dt = f->dt;
    f->time += dt;
    f->moved += longest;
    f->dt = fmin(LONGEST, dt * fmin(1.5, FARTHEST / fmax(longest, 1e-9)));
    if (f->cut) return;
    measure(f, dt);
    cut_neck(app, f);
}

/* ---- pictures -------------------------------------------------------------------------------------------------- */

/* The film as a thin shell of clear liquid, in three dimensions: two layers, the inner one turned over. */
static void draw_film(ex_scene *scene, film *f)
{
    const int points = f->mesh.vertex_count, triangles = f->mesh.triangle_count;
    ex_mesh shell = ex_mesh_make(2 * points, 2 * triangles);
    fsi_vec3 *normal = (fsi_vec3 *)ex_alloc(NULL, 2 * (size_t)points, sizeof *normal);
    int i, k;
    find_normals(f);
    for (i = 0; i < 2 * points; i++) {
        normal[i] = i < points ? f->normal[i] : fsi_v3_scale(f->normal[i - points], -1);
        shell.vertices[i] = fsi_v3_madd(f->mesh.vertices[i % points], (fsi_real)(THICKNESS / 2), normal[i]);
    }
    for (i = 0; i < triangles; i++) for (k = 0; k < 3; k++) {
        shell.triangles[3 * i + k] = f->mesh.triangles[3 * i + k];
        shell.triangles[3 * (triangles + i) + k] = points + f->mesh.triangles[3 * i + 2 - k];
    }
    ex_draw_surface(scene, shell.vertices, normal, shell.vertex_count, shell.triangles, shell.triangle_count);
    ex_mesh_free(&shell);
    free(normal);
}

static void draw(ex_app *app, ex_scene *scene, film *f, int frame)
{
    ex_image *image;
    char text[100];
    double neck, area;
    int k;
    for (k = -1; k <= 1; k += 2) {
        ex_mesh ring = ex_torus(1, WIRE, 96, 10);
        ex_mesh_move(&ring, 1, fsi_v3(0, 0, (fsi_real)(k * f->distance / 2)));
        ex_draw_mesh(scene, ring.vertices, NULL, ring.vertex_count, ring.triangles, ring.triangle_count, 0xb87333);
        ex_mesh_free(&ring);
    }
    draw_film(scene, f);
    image = ex_render(scene);
    snprintf(text, sizeof text, "rings %.3f R apart", f->distance);
    ex_text(image, 24, 40, 13, EX_LEFT, 0x2a303a, text);
    if (f->cut) snprintf(text, sizeof text, "cut: two halves");
    else if (catenoid(f->distance, &neck, &area))
        snprintf(text, sizeof text, "neck %.3f R, catenoid %.3f R", f->neck, neck);
    else snprintf(text, sizeof text, "neck %.3f R, no catenoid", f->neck);
    ex_text(image, 24, 64, 13, EX_LEFT, 0x2a303a, text);
    ex_save_frame(app, image, frame);
}

static ex_scene begin_scene(ex_app *app)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 box;
    box.lo = fsi_v3((fsi_real)-0.8, (fsi_real)-0.8, (fsi_real)-0.71);
    box.hi = fsi_v3((fsi_real)0.8, (fsi_real)0.8, (fsi_real)0.71);
    scene.width = 720;
    ex_look_at_box(&scene, box, 20, 16);
    scene.absorb = fsi_v3(40, 22, 17);
    scene.scatter_rgb = 0x9fc4e8;
    return scene;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    film f;
    fsi_solver_desc desc = fsi_solver_default_desc();
    int frame, k;

    ex_init(&app, "soap_film", "A soap film between two rings that are pulled apart.");
    app.res = 96;
    app.res_help = "points on a ring";
    app.frames = 46;
    desc.ordering = fsi_dissection();
    desc.iteration = fsi_krylov_iteration();
    desc.reuse = 6;
    ex_int(&app, "reuse", &desc.reuse, 0, 1000,
           "iterations that are tried with an old factor, 0: each step factorises");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 12 || app.res > 2000) ex_die("--res is not between 12 and 2000");
    make_film(&f, app.res);
    make_systems(&app, &f);
    desc.context = &app.context;
    ex_check(&app, fsi_solver_create(&f.solver, &desc));
    scene = begin_scene(&app);

    for (frame = 0; frame < app.frames; frame++) {
        fsi_io_mesh mesh = fsi_io_default_mesh();
        for (k = 0, f.moved = 0; k < STEPS && f.moved < STRIDE; k++) advance(&app, &f);
        app.steps += k;
        app.sim_seconds = f.time;
        if (app.images) draw(&app, &scene, &f, frame);
        mesh.vertices = f.mesh.vertices;
        mesh.vertex_count = f.mesh.vertex_count;
        mesh.triangles = f.mesh.triangles;
        mesh.triangle_count = f.mesh.triangle_count;
        ex_write_mesh(&app, "film", frame, &mesh);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_hash(f.mesh.vertices, (size_t)f.mesh.vertex_count * sizeof *f.mesh.vertices, 0);
    ex_figure(&app, "triangles", "%.0f", f.mesh.triangle_count);
    ex_figure(&app, "neck_error", "%.2g", f.neck_error);
    ex_figure(&app, "area_error", "%.2g", f.area_error);
    ex_figure(&app, "critical", "%.4f", f.critical);
    ex_figure(&app, "slivers", "%.0f", (double)f.slivers);
    ex_figure(&app, "analyses", "%.0f", f.solver->stats.analyses);
    ex_figure(&app, "factorings", "%.0f", f.solver->stats.factorings);
    ex_figure(&app, "solves", "%.0f", f.solver->stats.solves);
    ex_figure(&app, "iterations", "%.0f", (double)f.iterations);
    ex_scene_end(&scene);
    free_film(&f);
    return ex_end(&app);
}
