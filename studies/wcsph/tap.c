/* cc -O3 -I. studies/wcsph/tap.c -lm -o tap && ./tap
   SPDX-License-Identifier: MIT

   A tap fills a basin in which three balls float. At the right end an overflow, as wide as the basin, takes what stands
   higher than its rim and keeps the level. Tap and overflow are an emitter and a sink of fsi_source.h; the balls are a
   world of fsi_rigid.h, which the liquid advances in its own steps.
   emitted=, drained= count particles, blocked= the places at the tap's mouth that were taken; flow= is the volume that
   came out over the mouth's area, times speed, times time: 1 to half a layer of particles. lost= is what was there and
   emitted, less what was drained and what is there. fill_drop= is how far the surface is below the level that the
   volumes of water and balls ask for, in spacings, and share_error= the mean of |share of a ball that is below that
   level - its density over the water's|, both while the basin fills, from 0.5 s until the first particle is drained.
   level= is the height of the water between tap and overflow [m], mean over the last quarter of the run, overflow= what
   was drained in that time over what was emitted, and head= the height over the rim, over what Poleni's formula has for
   the flow, (3 q/(2 0.6 sqrt(2 g)))^(2/3), q the flow over the width: balls that lie at the rim hold the water back.
   afloat= how many balls are not under the rim at the end. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_rigid.h"
#include "fsi_wcsph.h"
#include "../../examples/kit/shapes.h"
#include "../../examples/kit/wcsph_tally.h"

#define LENGTH 0.6   /* of the basin [m] */
#define WIDTH 0.36
#define RIM 0.18     /* height of the overflow */
#define POOL 0.14    /* depth of the water at first */
#define MOUTH 0.05   /* radius of the tap */
#define TAP_X 0.12   /* where it is, */
#define TAP_Z 0.42   /* and how high */
#define RADIUS 0.05  /* of a ball */
#define BALLS 3
#define HIGH 0.45    /* of what is drawn */

static const double density[BALLS] = { 250, 400, 600 };
static const uint32_t color[BALLS] = { 0xe3b26b, 0xc8432f, 0x5a9a4a };

typedef struct place {
    ex_afloat basin;             /* water, world and balls */
    shape pipe;                  /* of the tap, to be drawn */
    int tap, drain;              /* ids */
    double speed;                /* of the jet as it leaves [m/s] */
    double drop, share;          /* sums over `early` steps: volumes' level less the measured one [m], errors of
                                    shares */
    double level;                /* sum over `late` steps [m] */
    int early, late;
    long long emitted, drained;  /* when these sums began */
} place;

static fsi_box3 box(double x0, double y0, double z0, double x1, double y1, double z1)
{
    fsi_box3 b;
    b.lo = fsi_v3((fsi_real)x0, (fsi_real)y0, (fsi_real)z0);
    b.hi = fsi_v3((fsi_real)x1, (fsi_real)y1, (fsi_real)z1);
    return b;
}

static void make_room(ex_app *app, place *p, double spacing)
{
    fsi_wcsph_desc d = fsi_wcsph_default_desc();
    fsi_rigid_desc r = fsi_rigid_default_desc();
    memset(p, 0, sizeof *p);
    p->basin.tally.world = 1;
    d.context = r.context = &app->context;
    d.domain = r.domain = box(0, 0, 0, LENGTH, WIDTH, 1);
    d.spacing = (fsi_real)spacing;
    d.depth = (fsi_real)TAP_Z;
    d.domain_slip = 1;
    ex_check(app, fsi_wcsph_create(&p->basin.s, &d));
    ex_check(app, fsi_rigid_create(&p->basin.world, &r));
    ex_check(app, fsi_wcsph_set_world(p->basin.s, p->basin.world));
}

/* The overflow takes what is within two spacings of the right wall. */
static void add_tap(ex_app *app, place *p, double speed)
{
    static const double tube[8] = { MOUTH, 0, MOUTH + 0.01, 0, MOUTH + 0.01, 0.08, MOUTH, 0.08 };
    fsi_emitter_desc in = fsi_emitter_default_desc();
    fsi_sink_desc out = fsi_sink_default_desc();
    fsi_pose up;
    in.center = up.position = fsi_v3((fsi_real)TAP_X, (fsi_real)(WIDTH / 2), (fsi_real)TAP_Z);
    in.direction = fsi_v3(0, 0, -1);
    in.radius = (fsi_real)MOUTH;
    in.speed = (fsi_real)speed;
    p->speed = speed;
    ex_check(app, fsi_wcsph_add_emitter(p->basin.s, &in, &p->tap));
    out.box = box(LENGTH - 2 * (double)p->basin.s->desc.spacing, -1, RIM, LENGTH + 1, WIDTH + 1, 2);
    ex_check(app, fsi_wcsph_add_sink(p->basin.s, &out, &p->drain));
    up.orientation = fsi_quat_identity();
    p->pipe = shape_empty();
    shape_revolve(&p->pipe, tube, 4, 32);
    shape_transform(&p->pipe, 0, up);
}

static void add_balls(ex_app *app, place *p)
{
    int k;
    for (k = 0; k < BALLS; k++) {
        fsi_rigid_shape ball = fsi_rigid_sphere((fsi_real)RADIUS);
        fsi_pose pose;
        ball.density = (fsi_real)density[k];
        pose.position = fsi_v3((fsi_real)(0.3 + 0.1 * k), (fsi_real)(WIDTH * (k % 2 ? 0.75 : 0.25)),
                               (fsi_real)(POOL + RADIUS * (1 - 1.5 * density[k] / 1000)));
        pose.orientation = fsi_quat_identity();
        ex_afloat_add(app, &p->basin, ball, pose);
    }
}

static void fill(ex_app *app, place *p)
{
    const fsi_box3 pool = box(0, 0, 0, LENGTH, WIDTH, POOL);
    ex_check(app, fsi_wcsph_fill_box(p->basin.s, pool, fsi_v3(0, 0, 0), NULL));
    ex_check(app, fsi_wcsph_settle_density(p->basin.s, pool.hi));
}

/* ---- what is measured ------------------------------------------------------------------------------------------- */

/* Share of a ball below a level d above its centre: (r + d)^2 (2 r - d) / (4 r^3). */
static double share_below(const fsi_body *body, double level)
{
    const double d = fmax(-RADIUS, fmin(RADIUS, level - (double)body->pose.position.z));
    return (RADIUS + d) * (RADIUS + d) * (2 * RADIUS - d) / (4 * RADIUS * RADIUS * RADIUS);
}

/* The surface as it is: half a spacing above the highest particles of columns one spacing wide, mean over those that
   are away from jet, overflow and balls. */
static double surface_level(const ex_afloat *w)
{
    const double dx = (double)w->s->desc.spacing, from = TAP_X + 2 * MOUTH, away = RADIUS + 2 * dx;
    const int nx = (int)((0.8 * LENGTH - from) / dx), ny = (int)(WIDTH / dx) + 1;
    double *top = (double *)ex_alloc(NULL, (size_t)nx * (size_t)ny, sizeof *top), sum = 0;
    int i, k, count = 0;
    for (i = 0; i < nx * ny; i++) top[i] = 0;
    for (i = 0; i < w->s->count; i++) {
        const fsi_vec3 x = w->s->position[i];
        const double along = ((double)x.x - from) / dx;
        double *t = &top[(int)((double)x.y / dx) * nx + (int)fmax(along, 0)];
        if (along < 0 || along >= nx) continue;
        for (k = 0; k < BALLS; k++) {
            const fsi_vec3 c = w->body[k]->pose.position;
            if (hypot((double)(x.x - c.x), (double)(x.y - c.y)) < away) break;
        }
        if (k == BALLS) *t = fmax(*t, (double)x.z);
    }
    for (i = 0; i < nx * ny; i++) if (top[i] > 0) { sum += top[i] + dx / 2; count++; }
    free(top);
    return count > 0 ? sum / count : 0;
}

/* The level that the water asks for, but for the jet in the air, with what of the balls is below `level`. */
static double volume_level(const ex_afloat *w, double level)
{
    const double dx = (double)w->s->desc.spacing;
    double all = 0;
    int i, k;
    for (i = 0; i < w->s->count; i++) {
        const fsi_vec3 x = w->s->position[i];
        const double beside = hypot((double)x.x - TAP_X, (double)x.y - WIDTH / 2);
        if ((double)x.z < level + dx || beside > 1.2 * MOUTH) all += dx * dx * dx;
    }
    for (k = 0; k < BALLS; k++) all += 4 * FSI_PI / 3 * RADIUS * RADIUS * RADIUS * share_below(w->body[k], level);
    return all / (LENGTH * WIDTH);
}

/* Fills: nothing was drained yet. */
static void measure(ex_app *app, place *p, int late)
{
    const double level = surface_level(&p->basin);
    long long drained;
    int k;
    ex_check(app, fsi_wcsph_sink_total(p->basin.s, p->drain, &drained));
    if (drained == 0 && p->basin.s->time > 0.5) {
        const double ask = volume_level(&p->basin, level);
        p->drop += ask - level;
        for (k = 0; k < BALLS; k++) p->share += fabs(share_below(p->basin.body[k], ask) - density[k] / 1000) / BALLS;
        p->early++;
    }
    if (!late) return;
    if (p->late++ == 0) {
        ex_check(app, fsi_wcsph_emitter_total(p->basin.s, p->tap, &p->emitted, NULL, NULL));
        p->drained = drained;
    }
    p->level += level;
}

static void figures(ex_app *app, const place *p)
{
    const fsi_wcsph *s = p->basin.s;
    const double dx = (double)s->desc.spacing, area = FSI_PI * MOUTH * MOUTH, level = p->level / fmax(p->late, 1);
    const double poleni = pow(1.5 * area * p->speed / (WIDTH * 0.6 * sqrt(2 * 9.81)), 2.0 / 3);
    long long emitted, blocked, drained;
    int k, afloat = 0;
    ex_check(app, fsi_wcsph_emitter_total(s, p->tap, &emitted, &blocked, NULL));
    ex_check(app, fsi_wcsph_sink_total(s, p->drain, &drained));
    for (k = 0; k < BALLS; k++) afloat += (double)p->basin.body[k]->pose.position.z > RIM - RADIUS;
    ex_figure(app, "emitted", "%.0f", (double)emitted);
    ex_figure(app, "drained", "%.0f", (double)drained);
    ex_figure(app, "blocked", "%.0f", (double)blocked);
    ex_figure(app, "flow", "%.4f", (double)emitted * dx * dx * dx / (area * p->speed * s->time));
    ex_figure(app, "fill_drop", "%.2f", p->drop / fmax(p->early, 1) / dx);
    ex_figure(app, "share_error", "%.3f", p->share / fmax(p->early, 1));
    ex_figure(app, "level", "%.4f", level);
    ex_figure(app, "overflow", "%.3f",
              emitted > p->emitted ? (double)(drained - p->drained) / (double)(emitted - p->emitted) : 0);
    ex_figure(app, "head", "%.3f", (level - RIM) / poleni);
    ex_figure(app, "afloat", "%.0f", afloat);
}

static void draw(ex_app *app, ex_scene *scene, fsi_surface *skin, const place *p, int balls, int frame)
{
    const ex_afloat *w = &p->basin;
    int k;
    ex_wcsph_draw_liquid(app, scene, skin, w->s, balls, 2);
    for (k = 0; k < BALLS; k++) ex_draw_body(scene, w->mesh[k], w->made[k], w->body[k]->pose, color[k]);
    for (k = 0; k < 2; k++) { /* the overflow's rim, and its side edges */
        const fsi_real y = (fsi_real)(k * WIDTH);
        ex_draw_line(scene, fsi_v3((fsi_real)LENGTH, y, (fsi_real)RIM), fsi_v3((fsi_real)LENGTH, y, (fsi_real)HIGH), 3,
                     0x7d8894);
    }
    ex_draw_line(scene, fsi_v3((fsi_real)LENGTH, 0, (fsi_real)RIM),
                 fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, (fsi_real)RIM), 3, 0xc8432f);
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    ex_draw_mesh(scene, p->pipe.x, NULL, p->pipe.nx, p->pipe.e, p->pipe.ne, 0x8f99a3);
    ex_save_scene(app, scene, frame, "%.2f s", w->s->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_surface *skin;
    place p;
    double speed = 0.9, every = 0.1;
    int balls = 0, frame, k;

    ex_init(&app, "tap", "A tap fills a basin; an overflow keeps the level.");
    app.res = 5;
    app.res_help = "particles across the tap: dx = 0.1 m / res";
    app.frames = 45;
    ex_real(&app, "speed", &speed, 0.1, 5, "of the water as it leaves the tap [m/s]");
    ex_flag(&app, "particles", &balls, "draw particles instead of a surface");
    ex_real(&app, "every", &every, 1e-4, 1, "seconds between two pictures");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 4 || app.res > 40) ex_die("--res is not between 4 and 40");

    make_room(&app, &p, 2 * MOUTH / app.res);
    add_balls(&app, &p);
    add_tap(&app, &p, speed);
    fill(&app, &p);
    skin = ex_particle_surface(&app, (double)p.basin.s->desc.spacing);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, (fsi_real)HIGH), 24, 20);

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 1; k <= 8; k++) {
            ex_wcsph_step(&app, &p.basin.tally, p.basin.s, every * (frame + k / 8.0) - p.basin.s->time);
            measure(&app, &p, 4 * frame >= 3 * app.frames);
        }
        if (app.images) draw(&app, &scene, skin, &p, balls, frame);
        ex_write_particles(&app, "water", frame, p.basin.s->position, p.basin.s->velocity, p.basin.s->count);
        ex_progress(&app, frame + 1);
    }

    ex_wcsph_figures(&app, &p.basin.tally, p.basin.s);
    figures(&app, &p);
    ex_scene_end(&scene);
    fsi_surface_destroy(skin);
    ex_afloat_end(&p.basin);
    shape_free(&p.pipe);
    return ex_end(&app);
}
