/* flip_tally.h - elastic bodies in the liquid of fsi_flip.h: what their programs make, draw and count.
   SPDX-License-Identifier: MIT

   Include it after kit.h. ex_bath_options adds switches, ex_bath_liquid_options those without bodies,
   ex_bath_mesh_option --mesh, a file that stands in for the shape of each body; ex_bath_make makes liquid and solids
   in a box, ex_bath_body adds a body, ex_bath_immerse puts all into the liquid, ex_bath_fill fills with liquid;
   ex_bath_frame makes the steps of a picture and counts them; ex_bath_draw draws, ex_bath_figures belongs before
   ex_end. ex_bath_level and ex_bath_below measure drafts.

      ex_bath_options(&app, &bath);
      if (!ex_begin(&app, argc, argv)) return app.exit_code;
      ex_bath_make(&app, &bath, 64, 32, 32, 1.0 / 32);
      ex_bath_body(&app, &bath, desc, ex_sphere(...), 0xc8432f);
      ex_bath_immerse(&app, &bath);
      ex_bath_fill(&app, &bath, box);
      for (frame = 0; ...) ex_bath_frame(&app, &bath);
      ex_bath_figures(&app, &bath);
      ex_bath_end(&bath); */
#ifndef FSI_KIT_FLIP_TALLY_H
#define FSI_KIT_FLIP_TALLY_H

#include "kit.h"
#include "../../fsi_flip.h"
#include "elastic_look.h"

#define EX_BATH_BODIES 8
#define EX_BATH_FRAME (1.0 / 30) /* seconds between two pictures */

/* Start from zeros; handles, steps and frame may be set before ex_bath_options. */
typedef struct ex_bath {
    fsi_flip *water;
    fsi_elastic *solid;
    fsi_surface *surface;
    ex_jelly jelly[EX_BATH_BODIES];
    int count;
    int steps, handles, apic;     /* steps a frame */
    double frame;                 /* seconds between two pictures; default EX_BATH_FRAME */
    const char *mesh;             /* file of --mesh, NULL: none */
    int y_up;
    ex_elastic_tally tally;
    long long substeps, iters, rounds, degraded, inside, out;
    double inside_deepest;        /* of a particle in a body [dx] */
    double volume, volume_least, volume_most; /* of the liquid over that of its mass; least and most after a second */
    double volume_dip;            /* least at any time */
    double crowd;                 /* largest mass at a cell over that at rest, after a second */
    double seconds[6];            /* sort, to grid, pressure, to particles, move, other and bodies */
    double *cost;                 /* processor time of each step [s] */
    int costs, cost_room;
} ex_bath;

EX_FN void ex_bath_liquid_options(ex_app *app, ex_bath *b)
{
    if (b->steps == 0) b->steps = 2;
    if (b->frame <= 0) b->frame = EX_BATH_FRAME;
    ex_int(app, "steps", &b->steps, 1, 1000, "a frame");
    ex_flag(app, "apic", &b->apic, "particles carry gradients of velocity");
}

EX_FN void ex_bath_options(ex_app *app, ex_bath *b)
{
    ex_bath_liquid_options(app, b);
    if (b->handles == 0) b->handles = 20;
    ex_int(app, "handles", &b->handles, 0, 1000, "of each body; 0: all vertices are free");
    ex_elastic_options(app, &b->tally);
}

EX_FN void ex_bath_mesh_option(ex_app *app, ex_bath *b)
{
    ex_string(app, "mesh", &b->mesh, "shape of each body: OBJ, PLY, tetrahedra in .msh, .ele");
    ex_flag(app, "y-up", &b->y_up, "its y axis is up");
}

/* An empty box of nx * ny * nz cells from the origin. */
EX_FN void ex_bath_make(ex_app *app, ex_bath *b, int nx, int ny, int nz, double dx)
{
    fsi_flip_desc d = fsi_flip_default_desc();
    fsi_elastic_desc e = fsi_elastic_default_desc();
    d.context = e.context = &app->context;
    d.n[0] = nx;
    d.n[1] = ny;
    d.n[2] = nz;
    d.dx = (fsi_real)dx;
    d.transfer = b->apic ? FSI_FLIP_APIC : FSI_FLIP_FLIP;
    e.tolerance = (fsi_real)1e-4;
    ex_check(app, fsi_flip_create(&b->water, &d));
    ex_check(app, fsi_elastic_create(&b->solid, &e));
    b->surface = ex_particle_surface(app, (double)b->water->spacing);
}

/* A body in a cage around a closed surface, which it takes, or of the file of --mesh in the box of that; the bath's
   handles. Returns its id. */
EX_FN int ex_bath_body(ex_app *app, ex_bath *b, fsi_elastic_body_desc d, ex_mesh mesh, uint32_t rgb)
{
    if (b->count == EX_BATH_BODIES) ex_die("too many bodies");
    d.handles = b->handles;
    b->jelly[b->count] = b->mesh ? ex_jelly_of_file(app, b->solid, d, b->mesh, b->y_up, mesh, rgb)
        : ex_jelly_of(app, b->solid, d, mesh, rgb);
    return b->jelly[b->count++].id;
}

EX_FN void ex_bath_immerse(ex_app *app, ex_bath *b) { ex_check(app, fsi_flip_immerse(b->water, b->solid)); }

EX_FN void ex_bath_fill(ex_app *app, ex_bath *b, fsi_box3 box)
{
    ex_check(app, fsi_flip_fill_box(b->water, box, fsi_v3(0, 0, 0), NULL));
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

EX_FN fsi_box3 ex_bath_box(const ex_bath *b)
{
    const fsi_flip_desc *d = &b->water->desc;
    return ex_box3(0, 0, 0, d->n[0] * (double)d->dx, d->n[1] * (double)d->dx, d->n[2] * (double)d->dx);
}

/* Particles in a body's surface, by the distance from that mesh alone, which the simulator did not compute; *deepest
   [m] of them (NULL ok). */
EX_FN int ex_bath_inside(ex_bath *b, int id, double *deepest)
{
    const fsi_mesh *m = fsi_elastic_surface(b->solid, id);
    int i, inside = 0;
    for (i = 0; i < b->water->count; i++) {
        const fsi_vec3 x = b->water->position[i];
        double d;
        if (!fsi_box3_overlap(m->box, fsi_box3_grow(fsi_box3_empty(), x))) continue;
        d = (double)fsi_mesh_signed_distance(m, x);
        if (d >= 0) continue;
        inside++;
        if (deepest) *deepest = fmax(*deepest, -d);
    }
    return inside;
}

static void ex__bath_count(ex_app *app, ex_bath *b)
{
    const fsi_flip_stats *t = &b->water->stats;
    b->substeps += t->substeps;
    b->iters += t->iters;
    b->rounds += t->coupling_iters;
    b->degraded += t->degraded;
    b->seconds[0] += t->seconds_sort;
    b->seconds[1] += t->seconds_to_grid;
    b->seconds[2] += t->seconds_pressure;
    b->seconds[3] += t->seconds_to_particles;
    b->seconds[4] += t->seconds_move;
    b->seconds[5] += t->seconds_other;
    if (b->water->count > 0)
        b->volume = t->volume * (double)b->water->desc.density / (b->water->count * (double)b->water->particle_mass);
    b->volume_dip = app->steps > 0 ? fmin(b->volume_dip, b->volume) : b->volume;
    if (b->water->time < 1 || b->volume_least <= 0) b->volume_least = b->volume_most = b->volume;
    b->volume_least = fmin(b->volume_least, b->volume);
    b->volume_most = fmax(b->volume_most, b->volume);
    if (b->water->time >= 1) b->crowd = fmax(b->crowd, t->fill_max);
    app->steps++;
    app->sim_seconds = b->water->time;
}

EX_FN void ex_bath_step(ex_app *app, ex_bath *b, double dt)
{
    const double begun = ex_wall_seconds(), spent = ex_cpu_seconds();
    ex_drags_step(app, &b->tally.drags, b->solid, dt);
    ex_check(app, fsi_flip_step(b->water, (fsi_real)dt));
    b->tally.seconds += ex_wall_seconds() - begun;
    if (b->costs == b->cost_room) {
        b->cost_room = 2 * b->cost_room + 256;
        b->cost = (double *)ex_alloc(b->cost, (size_t)b->cost_room, sizeof *b->cost);
    }
    b->cost[b->costs++] = ex_cpu_seconds() - spent;
    ex_elastic_count(&b->tally, b->solid);
    ex__bath_count(app, b);
}

/* Looks for particles in bodies and out of the box. */
EX_FN void ex_bath_look(ex_bath *b)
{
    double deepest = 0;
    int k;
    for (k = 0; k < b->count; k++) b->inside += ex_bath_inside(b, b->jelly[k].id, &deepest);
    b->inside_deepest = fmax(b->inside_deepest, deepest / (double)b->water->desc.dx);
    b->out += ex_count_outside(b->water->position, b->water->count, ex_bath_box(b));
}

EX_FN void ex_bath_frame(ex_app *app, ex_bath *b)
{
    int k;
    for (k = 0; k < b->steps; k++) ex_bath_step(app, b, b->frame / b->steps);
    ex_bath_look(b);
}

/* The level of the liquid in those columns of cells that are at least two cells away from all bodies: where, from
   above, they are half full. A particle is its volume, spread over a spacing up and down by a hat function. */
EX_FN double ex_bath_level(ex_bath *b)
{
    enum { FINE = 8 };            /* samples a cell */
    const fsi_flip_desc *d = &b->water->desc;
    const double dx = (double)d->dx, grain = dx / 2, fine = dx / FINE;
    const int n = FINE * d->n[2];
    double *full = (double *)ex_alloc(NULL, (size_t)n + 1, sizeof *full), level = 0;
    unsigned char *covered = (unsigned char *)ex_alloc(NULL, (size_t)(d->n[0] * d->n[1]), 1);
    int i, j, k, columns = 0;

    /* Columns. */
    memset(covered, 0, (size_t)(d->n[0] * d->n[1]));
    for (k = 0; k < b->count; k++) {
        const fsi_box3 box = fsi_elastic_surface(b->solid, b->jelly[k].id)->box;
        for (j = 0; j < d->n[1]; j++) for (i = 0; i < d->n[0]; i++)
            if ((i + 3) * dx > (double)box.lo.x && (i - 2) * dx < (double)box.hi.x &&
                (j + 3) * dx > (double)box.lo.y && (j - 2) * dx < (double)box.hi.y) covered[j * d->n[0] + i] = 1;
    }
    for (i = 0; i < d->n[0] * d->n[1]; i++) columns += !covered[i];

    /* How full they are at each height, and the level. */
    for (k = 0; k <= n; k++) full[k] = 0;
    for (i = 0; i < b->water->count; i++) {
        const fsi_vec3 p = b->water->position[i];
        const double z = (double)p.z;
        const int x = (int)((double)p.x / dx), y = (int)((double)p.y / dx);
        if (x < 0 || y < 0 || x >= d->n[0] || y >= d->n[1] || covered[y * d->n[0] + x]) continue;
        k = (int)ceil((z - grain) / fine);
        for (k = k > 0 ? k : 0; k <= n && k * fine < z + grain; k++)
            full[k] += (double)b->water->mass[i] * (1 - fabs(k * fine - z) / grain) / 4;
    }
    for (k = n; k > 0 && level <= 0 && columns > 0; k--)
        if (full[k - 1] >= 0.5 * columns)
            level = fine * (k - 1 + (full[k - 1] - 0.5 * columns) / (full[k - 1] - full[k]));
    free(full);
    free(covered);
    return level;
}

/* Share of a body's volume below a height, by a lattice of points in its rest shape that follow it. */
EX_FN double ex_bath_below(ex_app *app, ex_bath *b, const ex_jelly *j, double height)
{
    enum { SIDE = 30 };
    ex_mesh copy = ex_mesh_make(j->mesh.vertex_count, j->mesh.triangle_count);
    fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, SIDE * SIDE * SIDE, sizeof *x);
    fsi_elastic_skin *points;
    fsi_mesh *rest;
    int i, n = 0, below = 0;
    memcpy(copy.vertices, j->mesh.vertices, (size_t)copy.vertex_count * sizeof *copy.vertices);
    memcpy(copy.triangles, j->mesh.triangles, 3 * (size_t)copy.triangle_count * sizeof(int));
    rest = ex_solid(app, &copy, FSI_MESH_CLOSED);
    for (i = 0; i < SIDE * SIDE * SIDE; i++) {
        const fsi_vec3 w = fsi_v3_sub(rest->box.hi, rest->box.lo);
        const double s[3] = { (i % SIDE + 0.5) / SIDE, (i / SIDE % SIDE + 0.5) / SIDE,
                              (i / (SIDE * SIDE) + 0.5) / SIDE };
        x[n] = fsi_v3_add(rest->box.lo, fsi_v3((fsi_real)s[0] * w.x, (fsi_real)s[1] * w.y, (fsi_real)s[2] * w.z));
        n += fsi_mesh_signed_distance(rest, x[n]) < 0;
    }
    ex_check(app, fsi_elastic_skin_create(&points, b->solid, j->id, x, NULL, n));
    ex_check(app, fsi_elastic_skin_update(points, b->solid, x, NULL));
    for (i = 0; i < n; i++) below += (double)x[i].z < height;
    fsi_elastic_skin_destroy(points);
    fsi_mesh_destroy(rest);
    free(x);
    return below / (double)n;
}

/* ---- pictures and figures ---------------------------------------------------------------------------------------- */

/* Bodies, liquid, and the edges of the box. */
EX_FN void ex_bath_draw(ex_app *app, ex_scene *scene, ex_bath *b)
{
    int k;
    for (k = 0; k < b->count; k++) ex_draw_jelly(app, scene, b->solid, &b->jelly[k]);
    ex_draw_drags(scene, &b->tally.drags, 0.4 * (double)b->water->desc.dx);
    if (b->water->count > 0) ex_draw_particles(app, scene, b->surface, b->water->position, b->water->count);
    ex_draw_box(scene, ex_bath_box(b), 1.5, 0x7d8894);
}

static int ex__bath_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Closes the last line but for what a program adds. particles= of the liquid; inside= those found in a body and out=
   out of the box, over all pictures, inside_dx= the deepest of the former [dx]; volume= of the liquid at the end over
   that of its mass, volume_low= and volume_high= after a second (spray counts too much), volume_dip= the least at any
   time; crowd= the largest mass of particles at a cell over that at rest, after a second; substeps=; iters= of the
   pressure and rounds= of bodies and pressure a substep; late= substeps longer than asked and solves that ended early;
   t_sort= to t_other= seconds a step by phase, t_cpu= the median processor time of a step.
   elastic_look.h explains the others. */
EX_FN void ex_bath_figures(ex_app *app, ex_bath *b)
{
    static const char *const name[6] = { "t_sort", "t_grid", "t_pressure", "t_back", "t_move", "t_other" };
    const double steps = app->steps > 0 ? (double)app->steps : 1;
    int k;
    if (b->water->count > 0) {
        ex_figure(app, "particles", "%.0f", b->water->count);
        ex_figure(app, "inside", "%.0f", (double)b->inside);
        ex_figure(app, "inside_dx", "%.3f", b->inside_deepest);
        ex_figure(app, "out", "%.0f", (double)b->out);
        ex_figure(app, "volume", "%.4f", b->volume);
        ex_figure(app, "volume_low", "%.4f", b->volume_least);
        ex_figure(app, "volume_high", "%.4f", b->volume_most);
        ex_figure(app, "volume_dip", "%.4f", b->volume_dip);
        ex_figure(app, "crowd", "%.2f", b->crowd);
    }
    ex_figure(app, "substeps", "%.0f", (double)b->substeps);
    ex_figure(app, "iters", "%.1f", (double)b->iters / (double)(b->substeps > 0 ? b->substeps : 1));
    if (b->count > 0) ex_figure(app, "rounds", "%.2f", (double)b->rounds / (double)(b->substeps > 0 ? b->substeps : 1));
    ex_figure(app, "late", "%.0f", (double)b->degraded);
    for (k = 0; k < 6; k++) ex_figure(app, name[k], "%.4f", b->seconds[k] / steps);
    if (b->costs > 0) qsort(b->cost, (size_t)b->costs, sizeof *b->cost, ex__bath_order);
    ex_figure(app, "t_cpu", "%.4f", b->costs > 0 ? b->cost[b->costs / 2] : 0);
    if (b->count > 0) ex_elastic_figures(app, &b->tally, b->solid);
    app->hash = fsi_flip_hash(b->water) ^ (b->count > 0 ? fsi_elastic_hash(b->solid) : 0);
}

EX_FN void ex_bath_end(ex_bath *b)
{
    int k;
    for (k = 0; k < b->count; k++) ex_jelly_free(&b->jelly[k]);
    free(b->cost);
    fsi_surface_destroy(b->surface);
    fsi_flip_destroy(b->water);
    fsi_elastic_destroy(b->solid);
}

#endif /* FSI_KIT_FLIP_TALLY_H */
