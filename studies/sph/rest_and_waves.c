/* cc -O3 -I. studies/sph/rest_and_waves.c -lm -o rest_and_waves && ./rest_and_waves
   SPDX-License-Identifier: MIT

   Four motions in the plane whose answer is known, and what the particles make of them:
      pool     a tank of 1 x 1 m at rest: kinetic energy over rho g H V, twice the height of the centre of mass, slope of
               the pressure, means over the last quarter
      wave     the first standing wave of a tank of 1 x 0.5 m, 0.05 m high: part of its energy lost in a period, and its
               period against linear theory; its height is read from the centre of mass, which moves to and fro with it
      vortex   one that fills a closed box of 1 x 1 m under gravity: what is left of it after a second
      patch    a free disc of 1 m, stretched at 1/s along x to twice its length: its area over what it was
   Parameters can be varied one at a time; docs/sph.md 10 has the table. There are no pictures. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/rest_and_waves.h"
#include "fsi_sph.h"

#define SAMPLES 4096

typedef struct study {
    ex_app app;
    fsi_sph_desc desc;
    double dt, seconds, settle, shake; /* [s]; `shake` in spacings */
    double sweeps, steps, cpu;
} study;


/* A box of liquid, `wide` by `high`, in a tank as wide and `room` high; its lattice shaken. */
static fsi_sph *make_box(study *t, double high, double room)
{
    fsi_sph *s;
    fsi_box3 box;
    t->desc.domain.lo = box.lo = ex_at(0, 0);
    t->desc.domain.hi = ex_at(1, room);
    box.hi = ex_at(1, high);
    ex_check(&t->app, fsi_sph_create(&s, &t->desc));
    ex_check(&t->app, fsi_sph_fill_box(s, box, ex_at(0, 0), NULL));
    ex_shake(s->position, s->count, t->shake / t->app.res);
    return s;
}

static void advance(study *t, fsi_sph *s)
{
    const clock_t before = clock();
    ex_check(&t->app, fsi_sph_step(s, (fsi_real)t->dt));
    t->cpu += (double)(clock() - before) / CLOCKS_PER_SEC;
    t->sweeps += s->stats.iterations;
    t->steps++;
    t->app.steps += s->stats.substeps;
    t->app.sim_seconds += t->dt;
}

static void settle(study *t, fsi_sph *s)
{
    while (s->time < t->settle - 1e-9) advance(t, s);
    t->sweeps = t->steps = t->cpu = 0;
}

static void finish(study *t, fsi_sph *s)
{
    ex_figure(&t->app, "particles", "%.0f", s->count);
    ex_figure(&t->app, "sweeps_a_step", "%.1f", t->sweeps / t->steps);
    ex_figure(&t->app, "cpu_a_step_ms", "%.2f", 1000 * t->cpu / t->steps);
    t->app.hash = fsi_sph_hash(s);
    fsi_sph_destroy(s);
}

/* ---- the pool ------------------------------------------------------------------------------------------------- */

static void run_pool(study *t)
{
    fsi_sph *s = make_box(t, 1, 1.5);
    double energy = 0, level = 0, slope = 0, n = 0;
    while (s->time < t->seconds - 1e-9) {
        advance(t, s);
        if (s->time < 0.75 * t->seconds) continue;
        energy += s->stats.kinetic_energy / ((double)s->desc.density * EX_G);
        level += 2 * ex_moment(s->position, s->count, 1, 1);
        slope += ex_pressure_slope(s->position, s->pressure, s->count, (double)s->desc.density);
        n++;
    }
    ex_figure(&t->app, "energy", "%.2e", energy / n);
    ex_figure(&t->app, "level", "%.4f", level / n);
    ex_figure(&t->app, "pressure_slope", "%.4f", slope / n);
    finish(t, s);
}

/* ---- the wave ------------------------------------------------------------------------------------------------- */

static void run_wave(study *t)
{
    fsi_sph *s = make_box(t, EX_DEPTH, 1.2);
    static double way[SAMPLES];
    int n = 1;
    settle(t, s);
    ex_raise_wave(s->position, s->velocity, s->count);
    way[0] = ex_moment(s->position, s->count, 0, 1) - 0.5;
    for (; n < SAMPLES && n * t->dt < t->seconds + 1e-9; n++) {
        advance(t, s);
        way[n] = ex_moment(s->position, s->count, 0, 1) - 0.5;
    }
    ex_judge_wave(&t->app, t->dt, way, n);
    finish(t, s);
}

/* ---- the vortex ----------------------------------------------------------------------------------------------- */

static fsi_vec3 turn(fsi_vec3 p)
{
    const double x = FSI_PI * (double)p.x, y = FSI_PI * (double)p.y;
    return ex_at(sin(x) * cos(y), -cos(x) * sin(y));
}

/* Amplitude of the vortex in the velocities [m/s]. */
static double vortex_of(const fsi_sph *s)
{
    double sum = 0, norm = 0;
    int i;
    for (i = 0; i < s->count; i++) {
        const fsi_vec3 v = turn(s->position[i]);
        sum += (double)fsi_v3_dot(v, s->velocity[i]);
        norm += (double)fsi_v3_norm2(v);
    }
    return sum / norm;
}

static void run_vortex(study *t)
{
    fsi_sph *s = make_box(t, 1, 1);
    double start;
    int i;
    settle(t, s);
    for (i = 0; i < s->count; i++) s->velocity[i] = fsi_v3_scale(turn(s->position[i]), (fsi_real)0.3);
    for (start = s->time; s->time < start + 1 - 1e-9;) advance(t, s);
    ex_figure(&t->app, "left_after_1s", "%.3f", vortex_of(s) / 0.3);
    finish(t, s);
}

/* ---- the patch ------------------------------------------------------------------------------------------------ */

static void run_patch(study *t)
{
    fsi_sph *s;
    double x0, y0, x = 1, y = 1;
    int i;
    t->desc.gravity = ex_at(0, 0);
    ex_check(&t->app, fsi_sph_create(&s, &t->desc));
    ex_check(&t->app, fsi_sph_fill_sphere(s, ex_at(0, 0), 1, ex_at(0, 0), NULL));
    for (i = 0; i < s->count; i++) s->velocity[i] = ex_at((double)s->position[i].x, -(double)s->position[i].y);
    x0 = ex_moment(s->position, s->count, 0, 2);
    y0 = ex_moment(s->position, s->count, 1, 2);
    while (x < 2 && s->time < 2) {
        advance(t, s);
        x = sqrt(ex_moment(s->position, s->count, 0, 2) / x0);
        y = sqrt(ex_moment(s->position, s->count, 1, 2) / y0);
    }
    ex_figure(&t->app, "stretched_at_s", "%.3f", s->time); /* 0.801 in theory */
    ex_figure(&t->app, "area", "%.3f", x * y);
    finish(t, s);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(study *); } part[] = {
        { "pool", run_pool }, { "wave", run_wave }, { "vortex", run_vortex }, { "patch", run_patch }
    };
    study t;
    double ms = 1000.0 / 60, support = 2, tolerance = 5e-4, xsph = 0.05, gravity = EX_G;
    const char *which = NULL;
    int k;
    memset(&t, 0, sizeof t);
    ex_init(&t.app, "rest_and_waves", "A pool at rest, a standing wave, a vortex and a free patch.");
    t.app.res = 64;
    t.app.res_help = "particles a metre";
    t.app.frames = 1;
    ex_operand(&t.app, "part", &which, "pool, wave, vortex or patch; none: wave");
    ex_real(&t.app, "dt", &ms, 0.01, 100, "time step, which the simulator divides into substeps [ms]");
    ex_real(&t.app, "seconds", &t.seconds, 0, 60, "length of pool and wave; 0: 4 s");
    ex_real(&t.app, "settle", &t.settle, 0, 60, "seconds at rest before wave and vortex");
    ex_real(&t.app, "shake", &t.shake, 0, 0.5, "displacements of the lattice at the start [spacings]");
    ex_real(&t.app, "support", &support, 1.8, 3, "of the kernel [spacings]");
    ex_real(&t.app, "tolerance", &tolerance, 1e-7, 1, "of the solve; up to 2000 sweeps");
    ex_real(&t.app, "xsph", &xsph, 0, 0.5, "smoothing of velocities");
    ex_real(&t.app, "gravity", &gravity, 0, 100, "[m/s^2]");
    if (!ex_begin(&t.app, argc, argv)) return t.app.exit_code;

    t.desc = fsi_sph_default_desc();
    t.desc.context = &t.app.context;
    t.desc.dim = 2;
    t.desc.spacing = (fsi_real)(1.0 / t.app.res);
    t.desc.support = (fsi_real)support;
    t.desc.tolerance = (fsi_real)tolerance;
    if (tolerance < 5e-4) t.desc.max_iters = 2000;
    t.desc.xsph = (fsi_real)xsph;
    t.desc.gravity = ex_at(0, -gravity);
    t.dt = ms / 1000;
    if (!(t.seconds > 0)) t.seconds = 4;
    if (!which) which = "wave";
    for (k = 0; k < 4; k++) if (strcmp(which, part[k].name) == 0) break;
    if (k == 4) {
        fprintf(stderr, "rest_and_waves: there is no part %s\n", which);
        ex_pool_stop(&t.app.pool);
        return 1;
    }
    part[k].run(&t);
    return ex_end(&t.app);
}
