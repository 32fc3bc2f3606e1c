/* couple_tally.h - what the examples of fsi_couple.h count in every step: how close liquid and solid came, volumes,
   Newton steps, seconds.
   SPDX-License-Identifier: MIT

   Include it after kit.h. ex_couple_step makes a step and counts it, ex_couple_figures and then ex_couple_end belong
   before ex_end. */
#ifndef FSI_KIT_COUPLE_TALLY_H
#define FSI_KIT_COUPLE_TALLY_H

#include "kit.h"
#include "shell_tally.h"
#include "../../fsi_couple.h"

/* Sums over all steps. Start from zeros. */
typedef struct ex_couple_tally {
    long long steps, newton;  /* substeps; Newton steps */
    double least;             /* smallest distance of a sample of the solid from the liquid, over dx; 8: far */
    double volume_error;      /* largest |volume / target - 1| */
    double momentum_error;    /* largest of stats.momentum_error */
    double t_p, t_n, t;       /* seconds of projections, of optimisation, of all */
} ex_couple_tally;

EX_FN void ex_couple_step(ex_app *app, ex_couple_tally *t, fsi_couple *s, double dt)
{
    const fsi_couple_stats *stats = &s->stats;
    double least;
    ex_check(app, fsi_couple_step(s, (fsi_real)dt));
    least = stats->min_distance / (double)s->liquid->desc.dx;
    if (t->steps == 0 || least < t->least) t->least = least;
    t->volume_error = fmax(t->volume_error, fabs(stats->volume_error));
    t->momentum_error = fmax(t->momentum_error, stats->momentum_error);
    t->steps += stats->substeps;
    t->newton += stats->newton;
    t->t_p += stats->seconds_pressure;
    t->t_n += stats->seconds_newton;
    t->t += stats->seconds;
    app->steps += stats->substeps;
    app->sim_seconds = s->time;
}

/* Closes the last line but for what an example adds. min_distance= is the smallest distance of the liquid from any
   sample of the solid, over the size of a cell: above 0, nothing ever passed through; volume_error= the largest
   |volume / target - 1|; momentum_error= what liquid and solid gained or lost together when their velocities were made
   to agree, over what they exchanged; newton_mean= Newton steps a substep; t_p=, t_n=, t_step= seconds a substep for
   projections, for the optimisation, and in all. */
EX_FN void ex_couple_figures(ex_app *app, const ex_couple_tally *t, const fsi_couple *s)
{
    const double steps = t->steps > 0 ? (double)t->steps : 1;
    app->hash = fsi_couple_hash(s);
    ex_figure(app, "vertices", "%.0f", s->shell->vertex_count);
    ex_figure(app, "min_distance", "%.3f", t->least);
    ex_figure(app, "volume_error", "%.1e", t->volume_error);
    /* a solid that is held all over exchanges none */
    if (t->momentum_error > 0) ex_figure(app, "momentum_error", "%.1e", t->momentum_error);
    ex_figure(app, "newton_mean", "%.2f", (double)t->newton / steps);
    ex_figure(app, "t_p", "%.4f", t->t_p / steps);
    ex_figure(app, "t_n", "%.4f", t->t_n / steps);
    ex_figure(app, "t_step", "%.4f", t->t / steps);
}

/* Destroys the coupling, its liquid and shell, and what drew them. */
EX_FN void ex_couple_end(fsi_couple *s, fsi_grid_surface *surface, ex_scene *scene)
{
    fsi_levelset *liquid = s->liquid;
    fsi_shell *shell = s->shell;
    fsi_grid_surface_destroy(surface);
    fsi_couple_destroy(s);
    fsi_shell_destroy(shell);
    fsi_levelset_destroy(liquid);
    ex_scene_end(scene);
}

#endif /* FSI_KIT_COUPLE_TALLY_H */
