/* levelset_tally.h - what the examples of fsi_levelset.h draw of the liquid and count in every step.
   SPDX-License-Identifier: MIT

   Include it after kit.h. ex_levelset_step makes a step and counts it, ex_levelset_figures belongs before ex_end. */
#ifndef FSI_KIT_LEVELSET_TALLY_H
#define FSI_KIT_LEVELSET_TALLY_H

#include "kit.h"
#include "../../fsi_levelset.h"

/* The liquid's surface as it is now. */
EX_FN void ex_draw_liquid(ex_app *app, ex_scene *scene, fsi_grid_surface *surface, const fsi_levelset *s)
{
    ex_check(app, fsi_levelset_update_surface(s, surface, 1));
    ex_draw_surface(scene, surface->vertices, surface->normals, surface->vertex_count, surface->elements,
                    surface->element_count);
}

/* The same as a file, with --write. */
EX_FN void ex_write_liquid(ex_app *app, fsi_grid_surface *surface, const fsi_levelset *s, int frame)
{
    if (app->write == EX_WRITE_NONE) return;
    ex_check(app, fsi_levelset_update_surface(s, surface, 1));
    ex_write_triangles(app, "liquid", frame, surface->vertices, surface->vertex_count, surface->elements,
                       surface->element_count);
}

/* Over all steps. Start from zeros. */
typedef struct ex_levelset_tally {
    double volume_error;  /* largest |volume / target - 1| */
    double seconds;       /* of all processors, in fsi_levelset_step */
} ex_levelset_tally;

EX_FN void ex_levelset_step(ex_app *app, ex_levelset_tally *t, fsi_levelset *s, double dt)
{
    const double begun = ex_cpu_seconds();
    ex_check(app, fsi_levelset_step(s, (fsi_real)dt));
    t->seconds += ex_cpu_seconds() - begun;
    t->volume_error = fmax(t->volume_error, fabs(s->stats.volume_error));
    app->steps += s->stats.substeps;
    app->sim_seconds = s->time;
}

/* Closes the last line but for what an example adds: volume_error= the largest |volume / target - 1|, seconds_per_step=
   CPU time a substep, without pictures. */
EX_FN void ex_levelset_figures(ex_app *app, const ex_levelset_tally *t, const fsi_levelset *s)
{
    app->hash = fsi_levelset_hash(s);
    ex_figure(app, "volume_error", "%.2e", t->volume_error);
    ex_figure(app, "seconds_per_step", "%.4f", t->seconds / (double)app->steps);
}

#endif /* FSI_KIT_LEVELSET_TALLY_H */
