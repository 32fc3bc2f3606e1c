/* couple_tally.h - what the examples of fsi_couple.h count in every step: how close things came, volumes, Newton's method, seconds.
   SPDX-License-Identifier: MIT

   Include it after example.h. ex_couple_step makes a step and counts it, ex_couple_figures belongs before ex_end. */
#ifndef FSI_EXAMPLE_COUPLE_TALLY_H
#define FSI_EXAMPLE_COUPLE_TALLY_H

#include "example.h"
#include "../fsi_couple.h"

/* Over all steps. Start from zeros. */
typedef struct ex_couple_tally {
    long long steps, newton;  /* substeps; Newton steps */
    double min_distance;      /* smallest distance of the liquid from a sample of the solid, over the size of a cell; 8: far */
    double volume_error;      /* largest |volume / target - 1| of all liquid */
    double momentum_error;    /* what both gained or lost when velocities were made to agree, over what they exchanged */
    double t_p, t_n, t;       /* seconds in projections, in the optimisation, in all */
} ex_couple_tally;

EX_FN void ex_couple_step(ex_app *app, ex_couple_tally *t, fsi_couple *s, double dt)
{
    const fsi_couple_stats *now = &s->stats;
    double distance;
    ex_check(app, fsi_couple_step(s, (fsi_real)dt));
    distance = now->min_distance / (double)s->liquid->desc.dx;
    if (t->steps == 0 || distance < t->min_distance) t->min_distance = distance;
    t->volume_error = fmax(t->volume_error, fabs(now->volume_error));
    t->momentum_error = fmax(t->momentum_error, now->momentum_error);
    t->steps += now->substeps;
    t->newton += now->newton;
    t->t_p += now->seconds_pressure;
    t->t_n += now->seconds_newton;
    t->t += now->seconds;
    app->steps += now->substeps;
    app->sim_seconds = s->time;
}

/* Closes the last line but for what an example adds: newton_mean=, t_p=, t_n=, t_step= are per substep. held: all of the solid is, then there is no
   momentum_error=. */
EX_FN void ex_couple_figures(ex_app *app, const ex_couple_tally *t, const fsi_couple *s, int held)
{
    const double steps = t->steps > 0 ? (double)t->steps : 1;
    app->hash = fsi_couple_hash(s);
    ex_figure(app, "min_distance", "%.3f", t->min_distance);
    ex_figure(app, "volume_error", "%.1e", t->volume_error);
<<<<<<< HEAD
    if (!held) ex_figure(app, "momentum_error", "%.1e", t->momentum_error);
=======
    if (t->momentum_error > 0) ex_figure(app, "momentum_error", "%.1e", t->momentum_error); /* a solid that is held all over exchanges none */
>>>>>>> d28549741adb71381e71989c0d8cb432c36696fe
    ex_figure(app, "newton_mean", "%.2f", (double)t->newton / steps);
    ex_figure(app, "vertices", "%.0f", s->shell->vertex_count);
    ex_figure(app, "t_p", "%.4f", t->t_p / steps);
    ex_figure(app, "t_n", "%.4f", t->t_n / steps);
    ex_figure(app, "t_step", "%.4f", t->t / steps);
}

#endif /* FSI_EXAMPLE_COUPLE_TALLY_H */
