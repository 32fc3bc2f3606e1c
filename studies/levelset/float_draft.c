/* cc -O3 -I. studies/levelset/float_draft.c -lm -o float_draft && ./float_draft [file.obj]
   SPDX-License-Identifier: MIT

   How deep a body floats that the liquid moves: the scene of examples/float_mesh.c, without pictures. share= is the
   part of its volume below the water level, over its density ratio; draft= how deep it hangs [m]; draft_error= compares
   that with how deep a body of that weight hangs in still water, turned as it is: means over the later part of the run,
   in which it still bobs. tilt_deg= is how far it leans at the end. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_levelset.h"
#include "../../examples/kit/levelset_tally.h"
#include "../../examples/kit/floater.h"

#define FRAME 0.12  /* seconds a frame */
#define TANK 1.0    /* its length, width and height [m] */
#define LEVEL 0.42  /* of the water at first */

/* What was measured, as sums. It bobs for long: weights that rise and fall smoothly over the last two thirds of the run
   take that out. */
typedef struct record {
    double share, draft, wanted, weight;
} record;

/* Volume of a closed mesh below z = level: each triangle, cut there, with the point (0, 0, level) makes a pyramid; the
   lid has none. */
static double volume_below(const ex_floater *f, double level)
{
    const fsi_vec3 o = fsi_v3(0, 0, (fsi_real)level);
    double sum = 0;
    int i, k, n;
    for (i = 0; i < f->mesh->face_count; i++) {
        fsi_vec3 p[4];
        for (k = n = 0; k < 3; k++) {
            fsi_vec3 a = fsi_v3_sub(f->x[f->mesh->faces[3 * i + k]], o),
                b = fsi_v3_sub(f->x[f->mesh->faces[3 * i + (k + 1) % 3]], o);
            if (a.z < 0) p[n++] = a;
            if ((a.z < 0) != (b.z < 0)) p[n++] = fsi_v3_madd(a, a.z / (a.z - b.z), fsi_v3_sub(b, a));
        }
        for (k = 1; k + 1 < n; k++) sum += (double)fsi_v3_dot(p[0], fsi_v3_cross(p[k], p[k + 1])) / 6;
    }
    return sum;
}

/* The level at which area * level - (what the body displaces below it) is `volume`. With area 0: at which it displaces
   -volume. */
static double level_where(const ex_floater *f, double area, double volume)
{
    double lo = 0, hi = TANK;
    int i;
    for (i = 0; i < 50; i++) {
        double z = (lo + hi) / 2, held = area * z - volume_below(f, z);
        if ((held < volume) == (area > 0)) lo = z;
        else hi = z;
    }
    return lo;
}

static void measure(const ex_floater *f, const fsi_levelset *s, double density, double length, record *r)
{
    const double from = length / 3, late = (s->time - from) / (length - from);
    const double weight = s->time > from ? pow(sin(FSI_PI * late), 2) : 0;
    const double level = level_where(f, TANK * TANK, s->stats.volume), ratio = fmin(density / 1000, 1);
    r->share += weight * volume_below(f, level) / (ratio * f->volume);
    r->draft += weight * (level - ex_floater_lowest(f));
    r->wanted += weight * ((density < 1000 ? level_where(f, 0, -ratio * f->volume) : level) - ex_floater_lowest(f));
    r->weight += weight;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_levelset_tally tally = { 0 };
    ex_mesh shape;
    ex_floater f;
    record r;
    fsi_levelset *s;
    const char *file = NULL;
    double density = 500, tilt = 20;
    int frame, y_up = 0;

    memset(&r, 0, sizeof r);
    ex_init(&app, "float_draft", "How deep a mesh floats.");
    app.res = 24;
    app.res_help = "cells over the width of the tank: dx = 1 m / res";
    app.frames = 34;
    ex_operand(&app, "file.obj", &file, "a closed mesh, OBJ or PLY; none: a ring");
    ex_flag(&app, "y-up", &y_up, "the y axis of the file points up");
    ex_real(&app, "density", &density, 1, 20000, "of the body [kg/m^3]; the water has 1000");
    ex_real(&app, "tilt", &tilt, -180, 180, "at first [degrees]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    shape = file ? ex_load_mesh(&app, file, y_up) : ex_torus(1, 0.36, 48, 20);
    ex_floater_make(&app, &f, &shape, density);
    s = ex_floater_pool(&app, &f, TANK, LEVEL, tilt);

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            ex_floater_push(&f, TANK, s->desc.dx / 2);
            ex_levelset_step(&app, &tally, s, FRAME / 6);
            fsi_body_integrate(&f.body, FRAME / 6);
            ex_floater_move(&f);
            measure(&f, s, density, app.frames * FRAME, &r);
        }
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "share", "%.4f", r.share / r.weight);
    ex_figure(&app, "draft", "%.4f", r.draft / r.weight);
    ex_figure(&app, "draft_error", "%.4f", r.draft / r.wanted - 1);
    ex_figure(&app, "tilt_deg", "%.1f", ex_floater_tilt(&f));
    ex_levelset_figures(&app, &tally, s);
    fsi_levelset_destroy(s);
    ex_floater_free(&f);
    return ex_end(&app);
}
