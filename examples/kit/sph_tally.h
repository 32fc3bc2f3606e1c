/* sph_tally.h - what the examples of fsi_sph.h count in every step: particles where none may be, and how the steps went.
   SPDX-License-Identifier: MIT

   Include it after kit.h. ex_tally_step belongs after each fsi_sph_step, ex_tally_figures before ex_end. */
#ifndef FSI_KIT_SPH_TALLY_H
#define FSI_KIT_SPH_TALLY_H

#include "kit.h"
#include "../../fsi_sph.h"

/* Sums over all steps. Start from zeros. */
typedef struct ex_tally {
    int inside, lost, placed, pinched; /* in an obstacle by winding number, outside the room; what the simulator put back (its stats) */
    int blocked;
    int most;                          /* particles at a time */
    double compression, fastest;       /* of the means; largest [m/s] */
    long long calls;
} ex_tally;

/* Counts the step that s has just made. inside: look for it, which takes time with many triangles. */
EX_FN void ex_tally_step(ex_app *app, ex_tally *t, const fsi_sph *s, fsi_box3 room, int inside)
{
    app->steps += s->stats.substeps;
    app->sim_seconds = s->time;
    if (inside) t->inside += fsi_sph_count_inside(s, NULL);
    t->lost += ex_count_outside(s->position, s->count, room);
    t->placed += s->stats.placed;
    t->pinched += s->stats.pinched;
    t->blocked += s->stats.blocked;
    if (s->count > t->most) t->most = s->count;
    t->compression += s->stats.mean_compression;
    if (s->stats.max_speed > t->fastest) t->fastest = s->stats.max_speed;
    t->calls++;
}

/* Closes the last line but for what an example adds. */
EX_FN void ex_tally_figures(ex_app *app, const ex_tally *t, const fsi_sph *s)
{
    app->hash = fsi_sph_hash(s);
    ex_figure(app, "particles", "%.0f", t->most);
    ex_figure(app, "inside", "%.0f", t->inside);
    ex_figure(app, "lost", "%.0f", t->lost);
    ex_figure(app, "placed", "%.0f", t->placed);
    ex_figure(app, "pinched", "%.0f", t->pinched);
    ex_figure(app, "max_speed", "%.1f", t->fastest);
    if (t->calls > 0) ex_figure(app, "mean_compression", "%.5f", t->compression / (double)t->calls);
}

#endif /* FSI_KIT_SPH_TALLY_H */
