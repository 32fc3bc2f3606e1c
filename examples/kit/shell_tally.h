/* shell_tally.h - what the examples of fsi_shell.h count in every step: how Newton's method went, and how close things came.
   SPDX-License-Identifier: MIT

   Include it after kit.h. ex_shell_step makes a step and counts it, ex_shell_figures belongs before ex_end. */
#ifndef FSI_KIT_SHELL_TALLY_H
#define FSI_KIT_SHELL_TALLY_H

#include "kit.h"
#include "../../fsi_shell.h"

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
