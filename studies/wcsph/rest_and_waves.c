/* cc -O3 -I. studies/wcsph/rest_and_waves.c -lm -o rest_and_waves && ./rest_and_waves
   SPDX-License-Identifier: MIT

   Motions in the plane whose end is known, and what the weakly compressible particles make of them:
      pool     a tank of 1 x 1 m at rest: kinetic energy over rho g H V, twice the height of the centre of mass, slope
               of the pressure, distance of the first layer from walls and from its neighbours, means over the last
               quarter
      wave     the first standing wave of a tank of 1 x 0.5 m, 0.05 m high: part of its energy lost in a period, and its
               period against linear theory; its height is read from the centre of mass, which moves to and fro with it
      patch    a free disc of 1 m, stretched at 1/s along x to twice its length: its area over what it was
      dam      a column of 0.2 x 0.4 m that breaks in a frictionless tank 1 m wide: the highest particle over the pool
               after 5 s, how many are higher than three spacings, and the pressure in the corner that the front hits
      square   a floating square, 20 particles a side: its angle, and how far its draft is off
      block    a block of 1100 kg/m^3, 7 particles a side, let go under water: its height over the floor
   Parameters can be varied one at a time; docs/wcsph.md has the table. There are no pictures. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/rest_and_waves.h"
#include "fsi_wcsph.h"

#define SAMPLES 8192

typedef struct study {
    ex_app app;
    fsi_wcsph_desc desc;
    double dt, seconds, shake;   /* [s]; `shake` in spacings */
    double density, angle;       /* of the square: over the liquid's; at the start [degrees] */
    double cpu;
} study;

static fsi_box3 box_of(double x0, double y0, double x1, double y1)
{
    fsi_box3 box;
    box.lo = ex_at(x0, y0);
    box.hi = ex_at(x1, y1);
    return box;
}

/* A tank `wide` by `room`, in which a box of liquid stands from x = 0 to `length`, `high`; its lattice shaken. */
static fsi_wcsph *make_box(study *t, double length, double high, double wide, double room)
{
    fsi_wcsph *s;
    t->desc.domain = box_of(0, 0, wide, room);
    t->desc.depth = (fsi_real)high;
    ex_check(&t->app, fsi_wcsph_create(&s, &t->desc));
    ex_check(&t->app, fsi_wcsph_fill_box(s, box_of(0, 0, length, high), ex_at(0, 0), NULL));
    ex_shake(s->position, s->count, t->shake / t->app.res);
    ex_check(&t->app, fsi_wcsph_settle_density(s, ex_at(0, high)));
    return s;
}

static void advance(study *t, fsi_wcsph *s)
{
    const clock_t before = clock();
    ex_check(&t->app, fsi_wcsph_step(s, (fsi_real)t->dt));
    t->cpu += (double)(clock() - before) / CLOCKS_PER_SEC;
    t->app.steps += s->stats.substeps;
    t->app.sim_seconds += t->dt;
}

static void finish(study *t, fsi_wcsph *s)
{
    ex_figure(&t->app, "particles", "%.0f", s->count);
    ex_figure(&t->app, "cpu_in_steps_s", "%.2f", t->cpu);
    t->app.hash = fsi_wcsph_hash(s);
    fsi_wcsph_destroy(s);
}

/* ---- the pool ------------------------------------------------------------------------------------------------- */

/* Mean pressure of the particles between 0.2 and 0.8 m over the hydrostatic one, the surface at `level`. */
static double pressure_share(const fsi_wcsph *s, double level)
{
    double have = 0, want = 0;
    int i;
    for (i = 0; i < s->count; i++) {
        const double h = (double)s->position[i].y;
        if (h < 0.2 || h > 0.8) continue;
        have += (double)s->pressure[i];
        want += (double)s->desc.density * EX_G * (level - h);
    }
    return have / want;
}

/* Distances at the floor: of the first layer from it, and per particle of that layer along it, in spacings. */
static void floor_layer(const fsi_wcsph *s, double *off, double *along)
{
    const double dx = (double)s->desc.spacing;
    int i, n = 0;
    *off = *along = 0;
    for (i = 0; i < s->count; i++) {
        if (!((double)s->position[i].y < dx)) continue;
        *off += (double)s->position[i].y / dx;
        n++;
    }
    *off /= n;
    *along = (double)(s->desc.domain.hi.x - s->desc.domain.lo.x) / (n * dx);
}

static void run_pool(study *t)
{
    fsi_wcsph *s = make_box(t, 1, 1, 1, 1.5);
    double energy = 0, level = 0, early = 0, slope = 0, share = 0, off = 0, along = 0, fastest = 0;
    double n = 0, early_n = 0, a, b;
    if (!(t->seconds > 0)) t->seconds = 6;
    while (s->time < t->seconds - 1e-9) {
        advance(t, s);
        if (s->time > 0.45 * t->seconds && s->time <= 0.5 * t->seconds) {
            early += 2 * ex_moment(s->position, s->count, 1, 1);
            early_n++;
        }
        if (s->time < 0.75 * t->seconds) continue;
        energy += s->stats.kinetic_energy / ((double)s->desc.density * EX_G);
        level += 2 * ex_moment(s->position, s->count, 1, 1);
        slope += ex_pressure_slope(s->position, s->pressure, s->count, (double)s->desc.density);
        share += pressure_share(s, 1);
        floor_layer(s, &a, &b);
        off += a;
        along += b;
        fastest = fmax(fastest, s->stats.max_speed);
        n++;
    }
    ex_figure(&t->app, "energy", "%.2e", energy / n);
    ex_figure(&t->app, "fastest", "%.3f", fastest);
    ex_figure(&t->app, "level", "%.4f", level / n);
    ex_figure(&t->app, "level_half", "%.4f", early / early_n);
    ex_figure(&t->app, "pressure_slope", "%.4f", slope / n);
    ex_figure(&t->app, "pressure_mean", "%.4f", share / n);
    ex_figure(&t->app, "first_layer_off", "%.3f", off / n);
    ex_figure(&t->app, "first_layer_along", "%.3f", along / n);
    finish(t, s);
}

/* ---- the wave ------------------------------------------------------------------------------------------------- */

static void run_wave(study *t)
{
    fsi_wcsph *s = make_box(t, 1, EX_DEPTH, 1, 1.2);
    static double way[SAMPLES];
    int n = 1;
    if (!(t->seconds > 0)) t->seconds = 4;
    ex_raise_wave(s->position, s->velocity, s->count);
    way[0] = ex_moment(s->position, s->count, 0, 1) - 0.5;
    for (; n < SAMPLES && n * t->dt < t->seconds + 1e-9; n++) {
        advance(t, s);
        way[n] = ex_moment(s->position, s->count, 0, 1) - 0.5;
    }
    ex_judge_wave(&t->app, t->dt, way, n);
    finish(t, s);
}

/* ---- the patch ------------------------------------------------------------------------------------------------ */

static void run_patch(study *t)
{
    fsi_wcsph *s;
    double x0, y0, x = 1, y = 1;
    int i;
    t->desc.gravity = ex_at(0, 0);
    t->desc.speed = 2;
    ex_check(&t->app, fsi_wcsph_create(&s, &t->desc));
    ex_check(&t->app, fsi_wcsph_fill_sphere(s, ex_at(0, 0), 1, ex_at(0, 0), NULL));
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

/* ---- the dam -------------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of 15 ms of samples around i. */
static double median15(const study *t, const double *p, int n, int i)
{
    double w[SAMPLES];
    int k, m = 0, half = (int)(7.5e-3 / t->dt);
    for (k = i - half; k <= i + half; k++) if (k >= 0 && k < n) w[m++] = p[k];
    qsort(w, (size_t)m, sizeof *w, by_size);
    return w[m / 2];
}

static void run_dam(study *t)
{
    const double length = 0.2, high = 0.4, level = length * high, dx = 1.0 / t->app.res;
    fsi_wcsph *s = make_box(t, length, high, 1, 2);
    static double p[SAMPLES];
    double top = 0, most = 0;
    int i, n = 0, above = 0;
    if (!(t->seconds > 0)) t->seconds = 5;
    while (s->time < t->seconds - 1e-9) {
        fsi_vec3 force, torque;
        double sum = 0;
        int near_corner = 0;
        advance(t, s);
        ex_check(&t->app, fsi_wcsph_obstacle_reaction(s, -1, &force, &torque));
        for (i = 0; i < s->count; i++) {
            if ((double)s->position[i].x < 1 - 2 * dx || (double)s->position[i].y > 0.03) continue;
            sum += (double)s->pressure[i];
            near_corner++;
        }
        if (n < SAMPLES) p[n++] = near_corner ? sum / near_corner : 0;
    }
    for (i = 0; i < s->count; i++) {
        top = fmax(top, (double)s->position[i].y);
        above += (double)s->position[i].y > level + 3 * dx;
    }
    for (i = 0; i < n; i++) most = fmax(most, median15(t, p, n, i));
    ex_figure(&t->app, "highest_over_pool_dx", "%.2f", (top - level) / dx);
    ex_figure(&t->app, "higher_than_3dx", "%.0f", above);
    ex_figure(&t->app, "corner_median_rho_g_H", "%.2f", most / (1000 * EX_G * high));
    ex_figure(&t->app, "energy", "%.2e", s->stats.kinetic_energy / (1000 * EX_G * level));
    finish(t, s);
}

/* ---- bodies --------------------------------------------------------------------------------------------------- */

static fsi_mesh *make_square(study *t, double half)
{
    fsi_vec3 p[4];
    static const int e[8] = { 1, 0, 2, 1, 3, 2, 0, 3 }; /* the liquid is on their left */
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *m;
    p[0] = ex_at(-half, -half);
    p[1] = ex_at(half, -half);
    p[2] = ex_at(half, half);
    p[3] = ex_at(-half, half);
    d.context = &t->app.context;
    d.corners = 2;
    d.vertices = p;
    d.vertex_count = 4;
    d.elements = e;
    d.element_count = 4;
    ex_check(&t->app, fsi_mesh_create(&m, &d));
    return m;
}

/* A body of `density` at `place` in a pool `wide`, filled to `level`. */
static fsi_wcsph *make_pool_with(study *t, fsi_mesh *m, fsi_body *body, double density, double wide, double level,
                                 fsi_vec3 place, double angle)
{
    fsi_wcsph *s;
    fsi_mass_properties mass;
    fsi_box3 box = box_of(0, 0, wide, level);
    ex_check(&t->app, fsi_mesh_mass(m, (fsi_real)density, 0, &mass));
    *body = fsi_body_from_mass(&mass);
    body->force = ex_at(0, -EX_G * (double)body->mass);
    t->desc.domain = box_of(0, 0, wide, 2 * level);
    t->desc.depth = (fsi_real)level;
    ex_check(&t->app, fsi_wcsph_create(&s, &t->desc));
    ex_check(&t->app, fsi_wcsph_add_body(s, m, body, NULL));
    body->pose.position = place;
    body->pose.orientation = fsi_quat_from_axis_angle(fsi_v3(0, 0, 1), (fsi_real)angle);
    body->end = body->pose;
    ex_check(&t->app, fsi_wcsph_teleport_obstacle(s, 0));
    ex_check(&t->app, fsi_wcsph_fill_box(s, box, ex_at(0, 0), NULL));
    ex_check(&t->app, fsi_wcsph_settle_density(s, ex_at(0, level)));
    return s;
}

static double angle_of(const fsi_body *b)
{
    return 2 * atan2((double)b->pose.orientation.z, (double)b->pose.orientation.w) * 180 / FSI_PI;
}

static void run_square(study *t)
{
    const double dx = 1.0 / t->app.res, side = 20 * dx, wide = 4 * side, level = 1.5 * side;
    fsi_mesh *m = make_square(t, side / 2);
    fsi_body body;
    fsi_wcsph *s = make_pool_with(t, m, &body, 1000 * t->density, wide, level,
        ex_at(wide / 2, level + side * (0.5 - t->density)), t->angle * FSI_PI / 180);
    double angle = 0, y = 0, n = 0, volume;
    if (!(t->seconds > 0)) t->seconds = 6;
    while (s->time < t->seconds - 1e-9) {
        advance(t, s);
        fsi_body_accept(&body);
        if (s->time < 0.8 * t->seconds) continue;
        angle += angle_of(&body);
        y += (double)body.pose.position.y;
        n++;
    }
    volume = s->count * dx * dx + side * side * t->density;
    ex_figure(&t->app, "angle", "%.2f", angle / n);
    ex_figure(&t->app, "centre_over_level_dx", "%.2f", (y / n - volume / wide) / dx);
    finish(t, s);
    fsi_mesh_destroy(m);
}

static void run_block(study *t)
{
    const double dx = 1.0 / t->app.res, side = 7 * dx, wide = 6 * side, level = 4 * side;
    fsi_mesh *m = make_square(t, side / 2);
    fsi_body body;
    fsi_wcsph *s = make_pool_with(t, m, &body, 1100, wide, level, ex_at(wide / 2, 2.5 * side), 0);
    if (!(t->seconds > 0)) t->seconds = 6;
    while (s->time < t->seconds - 1e-9) {
        advance(t, s);
        fsi_body_accept(&body);
    }
    ex_figure(&t->app, "bottom_over_floor_dx", "%.2f", ((double)body.pose.position.y - side / 2) / dx);
    ex_figure(&t->app, "angle", "%.1f", angle_of(&body));
    finish(t, s);
    fsi_mesh_destroy(m);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(study *); } part[] = {
        { "pool", run_pool }, { "wave", run_wave }, { "patch", run_patch }, { "dam", run_dam },
        { "square", run_square }, { "block", run_block }
    };
    enum { PARTS = (int)(sizeof part / sizeof *part) };
    const fsi_wcsph_desc usual = fsi_wcsph_default_desc();
    double ms = 2, alpha = (double)usual.alpha, diffusion = (double)usual.diffusion, guard = (double)usual.guard,
           filter = usual.shepard_every, clamp = usual.clamp_pressure, bulk = usual.visc_bulk_only,
           mode = (double)usual.density_mode, support = (double)usual.support;
    const char *which = NULL;
    study t;
    int k;
    memset(&t, 0, sizeof t);
    ex_init(&t.app, "rest_and_waves", "A pool at rest, a standing wave, a free patch, a broken dam, bodies.");
    t.app.res = 64;
    t.app.res_help = "particles a metre";
    t.app.frames = 1;
    t.density = 0.25;
    ex_operand(&t.app, "part", &which, "pool, wave, patch, dam, square or block; none: wave");
    ex_real(&t.app, "dt", &ms, 0.01, 100, "time step, which the simulator divides into substeps [ms]");
    ex_real(&t.app, "seconds", &t.seconds, 0, 60, "length of the run; 0: as the part is used to");
    ex_real(&t.app, "shake", &t.shake, 0, 0.5, "displacements of the lattice at the start [spacings]");
    ex_real(&t.app, "density", &t.density, 0.01, 2, "of the square over the liquid's");
    ex_real(&t.app, "angle", &t.angle, -180, 180, "of the square at the start [degrees]");
    ex_real(&t.app, "alpha", &alpha, 0, 10, "artificial viscosity");
    ex_real(&t.app, "diffusion", &diffusion, 0, 0.2, "of the density");
    ex_real(&t.app, "guard", &guard, 0, 1, "desc.guard");
    ex_real(&t.app, "filter", &filter, 0, 1e6, "desc.shepard_every");
    ex_real(&t.app, "clamp", &clamp, 0, 1, "desc.clamp_pressure");
    ex_real(&t.app, "bulk", &bulk, 0, 1, "desc.visc_bulk_only");
    ex_real(&t.app, "mode", &mode, 0, 2, "desc.density_mode");
    ex_real(&t.app, "support", &support, 2, 3, "of the kernel [spacings]");
    if (!ex_begin(&t.app, argc, argv)) return t.app.exit_code;

    t.desc = usual;
    t.desc.context = &t.app.context;
    t.desc.dim = 2;
    t.desc.spacing = (fsi_real)(1.0 / t.app.res);
    t.desc.gravity = ex_at(0, -EX_G);
    t.desc.alpha = (fsi_real)alpha;
    t.desc.diffusion = (fsi_real)diffusion;
    t.desc.guard = (fsi_real)guard;
    t.desc.shepard_every = (int)filter;
    t.desc.clamp_pressure = (int)clamp;
    t.desc.visc_bulk_only = (int)bulk;
    t.desc.density_mode = (fsi_wcsph_density)(int)mode;
    t.desc.support = (fsi_real)support;
    t.dt = ms / 1000;
    if (!which) which = "wave";
    for (k = 0; k < PARTS; k++) if (strcmp(which, part[k].name) == 0) break;
    if (k == PARTS) {
        fprintf(stderr, "rest_and_waves: there is no part %s\n", which);
        ex_pool_stop(&t.app.pool);
        return 1;
    }
    part[k].run(&t);
    return ex_end(&t.app);
}
