/* shell_tally.h - how the examples of fsi_shell.h make and draw a cloth, and what they count in every step: how
   Newton's method went, and how close things came.
   SPDX-License-Identifier: MIT

   Include it after kit.h. ex_shell_step makes a step and counts it, ex_shell_figures belongs before ex_end. */
#ifndef FSI_KIT_SHELL_TALLY_H
#define FSI_KIT_SHELL_TALLY_H

#include "kit.h"
#include "../../fsi_shell.h"

/* A desc of a sheet of one material; both must last until fsi_shell_create. */
EX_FN fsi_shell_desc ex_cloth_desc(ex_app *app, const ex_mesh *mesh, const fsi_shell_material *material)
{
    fsi_shell_desc d = fsi_shell_default_desc();
    d.context = &app->context;
    d.vertices = mesh->vertices;
    d.vertex_count = mesh->vertex_count;
    d.triangles = mesh->triangles;
    d.triangle_count = mesh->triangle_count;
    d.materials = material;
    d.material_count = 1;
    return d;
}

/* A chain of points for a rod, each with a segment to the next; the caller fills vertices. */
typedef struct ex_chain {
    fsi_vec3 *vertices;
    int *segments; /* 2 * (count - 1) */
    int count;
} ex_chain;

EX_FN ex_chain ex_chain_make(int count)
{
    ex_chain c;
    int i;
    c.count = count;
    c.vertices = (fsi_vec3 *)ex_alloc(NULL, (size_t)count, sizeof *c.vertices);
    c.segments = (int *)ex_alloc(NULL, 2 * (size_t)count, sizeof *c.segments);
    for (i = 0; i + 1 < count; i++) {
        c.segments[2 * i] = i;
        c.segments[2 * i + 1] = i + 1;
    }
    return c;
}

EX_FN void ex_chain_free(ex_chain *c)
{
    free(c->vertices);
    free(c->segments);
}

/* A desc of a rod of one material; both must last until fsi_shell_create. */
EX_FN fsi_shell_desc ex_chain_desc(ex_app *app, const ex_chain *chain, const fsi_shell_material *material)
{
    fsi_shell_desc d = fsi_shell_default_desc();
    d.context = &app->context;
    d.vertices = chain->vertices;
    d.vertex_count = chain->count;
    d.segments = chain->segments;
    d.segment_count = chain->count - 1;
    d.materials = material;
    d.material_count = 1;
    return d;
}

/* The longest edge of the triangles over its length in `rest`. */
EX_FN double ex_cloth_stretch(const fsi_shell *s, const fsi_vec3 *rest)
{
    const fsi_vec3 *x = s->position;
    double most = 0;
    int i, k;
    for (i = 0; i < s->triangle_count; i++) for (k = 0; k < 3; k++) {
        const int a = s->triangles[3 * i + k], b = s->triangles[3 * i + (k + 1) % 3];
        most = fmax(most, (double)(fsi_v3_norm(fsi_v3_sub(x[a], x[b])) / fsi_v3_norm(fsi_v3_sub(rest[a], rest[b]))));
    }
    return most;
}

/* The triangles of a shell, its two faces in two colours; `thickness` as it is to be seen. */
EX_FN void ex_draw_cloth(ex_scene *scene, const fsi_shell *s, double thickness, uint32_t front, uint32_t back)
{
    ex_draw_sheet(scene, s->position, s->vertex_count, s->triangles, s->triangle_count, thickness, front, back);
}

/* Sums over all steps. Start from zeros. */
typedef struct ex_shell_tally {
    long long steps, newton; /* substeps; Newton steps */
    int most, degraded;      /* Newton steps of the hardest call; substeps that ended out of balance */
    double min_gap;          /* smallest gap over the range of the contacts; 1: never within it */
    double seconds;          /* in fsi_shell_step, by the wall clock */
} ex_shell_tally;

EX_FN void ex_shell_step(ex_app *app, ex_shell_tally *t, fsi_shell *s, double dt)
{
    const double begun = ex_wall_seconds();
    ex_check(app, fsi_shell_step(s, (fsi_real)dt));
    t->seconds += ex_wall_seconds() - begun;
    if (t->steps == 0 || s->stats.min_gap < t->min_gap) t->min_gap = s->stats.min_gap;
    if (s->stats.newton > t->most) t->most = s->stats.newton;
    t->steps += s->stats.substeps;
    t->newton += s->stats.newton;
    t->degraded += s->stats.degraded;
    app->steps += s->stats.substeps;
    app->sim_seconds = s->time;
}

/* Closes the last line but for what an example adds: t_step= is seconds a substep. */
EX_FN void ex_shell_figures(ex_app *app, const ex_shell_tally *t, const fsi_shell *s)
{
    const double steps = t->steps > 0 ? (double)t->steps : 1;
    app->hash = fsi_shell_hash(s);
    ex_figure(app, "vertices", "%.0f", s->vertex_count);
    ex_figure(app, "newton_mean", "%.2f", (double)t->newton / steps);
    ex_figure(app, "newton_most", "%.0f", t->most);
    ex_figure(app, "degraded", "%.0f", t->degraded);
    ex_figure(app, "min_gap", "%.3g", t->min_gap);
    ex_figure(app, "t_step", "%.4f", t->seconds / steps);
}

#endif /* FSI_KIT_SHELL_TALLY_H */
