/* cc -O3 -I. studies/wcsph/slip_ramp.c -lm -o slip_ramp && ./slip_ramp
   SPDX-License-Identifier: MIT

   Water runs down five ramps that differ in one number only, the slip e_t of their surface: the share of its tangential
   velocity that a particle in contact keeps from substep to substep. 0 holds it, 1 lets it pass. In 2D, the same jet
   falls on each; what has run off is taken out at the right. As the share is one of a substep (here 0.2 ms), 0.5 holds
   nearly like 0: what lies between sticking and slipping is at 0.9 to 0.999, a decay of (1 - e_t)/dt a second while in
   contact. speed_0= to speed_1= are the mean speeds on the ramps over the second half of the run; monotonic=1: they
   grow with e_t from ramp to ramp. held= counts particles that were not emitted as others stood in their place. `--slip
   X` shows one ramp only. The paper's experiment is without figures ("Slip condition", its figure 7): what can be
   checked is the order. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_wcsph.h"
#include "../../examples/kit/wcsph_tally.h"

#define FRAME 0.05   /* seconds between two pictures */
#define JET 0.1      /* thickness of the jet [m] */
#define DROP 0.06    /* its height above the ramp */
#define LENGTH 2.0   /* of the ramp, measured level */
#define FALL 0.5     /* of the ramp */
#define RAMPS 5

static const double slips[RAMPS] = { 0, 0.9, 0.99, 0.999, 1 };

typedef struct ramp {
    double slip, speed;     /* e_t; sum of mean speeds */
    int rows, held, drained;/* rows emitted; particles not emitted as others stood there; taken out at the end */
    fsi_mesh *slope;
    fsi_wcsph *water;
} ramp;

/* A solid with four corners, its top from x[0] to x[1]: segments have the liquid on their left. */
static fsi_mesh *make_block(ex_app *app, const fsi_vec3 *x)
{
    static const int segments[8] = { 0, 1, 1, 2, 2, 3, 3, 0 };
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh;
    d.context = &app->context;
    d.vertices = x;
    d.vertex_count = 4;
    d.elements = segments;
    d.element_count = 4;
    d.corners = 2;
    ex_check(app, fsi_mesh_create(&mesh, &d));
    return mesh;
}

static fsi_box3 room(void)
{
    fsi_box3 b;
    b.lo = fsi_v3(0, (fsi_real)(-FALL - 0.3), 0);
    b.hi = fsi_v3((fsi_real)(LENGTH + 0.3), (fsi_real)0.6, 0);
    return b;
}

/* The block reaches out of the room, and particles are taken out before they get there. */
static void make_ramp(ex_app *app, ramp *r, double slip, double jet)
{
    const double beyond = 0.5, fall = FALL / LENGTH * beyond;
    fsi_wcsph_desc d = fsi_wcsph_default_desc();
    fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
    fsi_vec3 x[4];
    memset(r, 0, sizeof *r);
    r->slip = slip;
    x[0] = fsi_v3((fsi_real)-beyond, (fsi_real)fall, 0);
    x[1] = fsi_v3((fsi_real)(LENGTH + beyond), (fsi_real)(-FALL - fall), 0);
    x[2] = fsi_v3((fsi_real)(LENGTH + beyond), (fsi_real)(-2 * FALL), 0);
    x[3] = fsi_v3((fsi_real)-beyond, (fsi_real)(-2 * FALL), 0);
    r->slope = make_block(app, x);
    d.context = &app->context;
    d.dim = 2;
    d.spacing = (fsi_real)(JET / app->res);
    d.gravity = fsi_v3(0, (fsi_real)-9.81, 0);
    d.depth = (fsi_real)JET;
    d.speed = (fsi_real)sqrt(jet * jet + 2 * 9.81 * (FALL + DROP + JET));
    d.domain = room();
    d.domain_slip = 1;
    d.visc_bulk_only = 0; /* drag along shear as well: what is above feels the layer that is held */
    ex_check(app, fsi_wcsph_create(&r->water, &d));
    o.mesh = r->slope;
    o.slip = (fsi_real)slip;
    ex_check(app, fsi_wcsph_add_obstacle(r->water, &o, NULL));
}

static int is_free(const fsi_wcsph *s, fsi_vec3 x)
{
    const fsi_real reach = (fsi_real)0.7 * s->desc.spacing;
    int i;
    for (i = 0; i < s->count; i++)
        if (fsi_v3_norm2(fsi_v3_sub(s->position[i], x)) < reach * reach) return 0;
    return 1;
}

/* The next row of the jet, at the left wall. */
static void emit(ex_app *app, ramp *r, double jet)
{
    const fsi_real dx = r->water->desc.spacing;
    fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)app->res, 2 * sizeof *x), *v = x + app->res;
    int k, count = 0;
    for (k = 0; k < app->res; k++) {
        x[count] = fsi_v3(dx / 2, (fsi_real)DROP + dx * ((fsi_real)k + (fsi_real)0.5), 0);
        v[count] = fsi_v3((fsi_real)jet, 0, 0);
        if (is_free(r->water, x[count])) count++;
        else r->held++;
    }
    ex_check(app, fsi_wcsph_add_particles(r->water, x, v, count));
    r->rows++;
    free(x);
}

/* Takes out what has reached the end of the ramp. */
static void drain(ex_app *app, ramp *r)
{
    unsigned char *gone = (unsigned char *)ex_alloc(NULL, (size_t)r->water->count, 1);
    int i, count = 0;
    for (i = 0; i < r->water->count; i++) count += gone[i] = (double)r->water->position[i].x > LENGTH;
    if (count > 0) ex_check(app, fsi_wcsph_remove_particles(r->water, gone));
    r->drained += count;
    free(gone);
}

/* Mean speed of what is on the middle part of the ramp [m/s]. */
static double mean_speed(const fsi_wcsph *s)
{
    double sum = 0;
    int i, count = 0;
    for (i = 0; i < s->count; i++) {
        const double x = (double)s->position[i].x;
        if (x < 0.3 * LENGTH || x > 0.9 * LENGTH) continue;
        sum += (double)fsi_v3_norm(s->velocity[i]);
        count++;
    }
    return count > 0 ? sum / count : 0;
}

/* All ramps in one picture, one above the other. */
static void draw(ex_app *app, ex_scene *scene, const ramp *ramps, int count, int frame)
{
    const double step = 0.36;
    ex_image *image;
    char text[64];
    int k, i;
    for (k = 0; k < count; k++) {
        const fsi_wcsph *s = ramps[k].water;
        const fsi_vec3 shift = fsi_v3(0, (fsi_real)(-step * k), 0);
        fsi_vec3 top = shift;
        fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)s->count, sizeof *x);
        uint32_t *rgb = (uint32_t *)ex_alloc(NULL, (size_t)s->count, sizeof *rgb);
        for (i = 0; i < s->count; i++) x[i] = fsi_v3_add(s->position[i], shift);
        ex_speed_colors(s->velocity, s->count, 3.5, rgb);
        ex_draw_spheres(scene, x, s->count, 0.75 * (double)s->desc.spacing, rgb, 0);
        top.z = 2 * s->desc.spacing; /* before the discs */
        ex_draw_line(scene, top, fsi_v3_add(top, fsi_v3((fsi_real)LENGTH, (fsi_real)-FALL, 0)), 3, 0x3a4550);
        free(x);
        free(rgb);
    }
    image = ex_render(scene);
    for (k = 0; k < count; k++) {
        const double scale = image->height / scene->parallel, y = (double)scene->target.y + step * k;
        snprintf(text, sizeof text, "e_t = %g", ramps[k].slip);
        ex_text(image, 12, image->height / 2.0 + scale * (y + 0.03), 11, EX_LEFT, 0x3a4550, text);
    }
    snprintf(text, sizeof text, "%.2f s", ramps[0].water->time);
    ex_text(image, image->width - 14, 24, 11, EX_RIGHT, 0x3a4550, text);
    ex_color_bar(image, image->width - 200, 40, EX_MAP_WATER, 0, 3.5, "speed [m/s]");
    ex_save_frame(app, image, frame);
}

static void look(ex_scene *scene, int count)
{
    fsi_box3 box = room();
    box.lo.x = (fsi_real)-0.25;
    box.hi.x = (fsi_real)LENGTH;
    box.lo.y = (fsi_real)(-FALL - 0.36 * (count - 1));
    box.hi.y = (fsi_real)0.2;
    ex_look_at_flat(scene, box);
}

/* Speeds, their order, and what else the runs counted, all together. Returns the hash. */
static uint64_t finish(ex_app *app, ramp *ramps, int count, int late)
{
    char key[32];
    uint64_t hash = 0;
    int k, monotonic = 1, held = 0;
    for (k = 0; k < count; k++) {
        ramp *r = &ramps[k];
        snprintf(key, sizeof key, "speed_%g", r->slip);
        ex_figure(app, key, "%.4f", late > 0 ? r->speed / late : 0);
        if (k > 0) monotonic &= r->speed > ramps[k - 1].speed;
        held += r->held;
        hash = 31 * hash + fsi_wcsph_hash(r->water);
    }
    if (count > 1) ex_figure(app, "monotonic", "%.0f", late > 0 && monotonic);
    ex_figure(app, "held", "%.0f", held);
    return hash;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ramp ramps[RAMPS];
    ex_wcsph_tally tally = { 0 };
    double slip = -1, jet = 1.5;
    int frame, k, count, late = 0;

    ex_init(&app, "slip_ramp", "Water runs down ramps of different slip.");
    app.res = 6;
    app.res_help = "particles across the jet: dx = 0.1 m / res";
    app.frames = 60;
    ex_real(&app, "slip", &slip, -1, 1, "e_t of a single ramp; 0, 0.9, 0.99, 0.999 and 1 when not given");
    ex_real(&app, "speed", &jet, 1.2, 5, "of the jet [m/s]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 3 || app.res > 200) ex_die("--res is not between 3 and 200");
    count = slip >= 0 ? 1 : RAMPS;
    for (k = 0; k < count; k++) make_ramp(&app, &ramps[k], slip >= 0 ? slip : slips[k], jet);
    ex_wcsph_watch(&app, &tally, ramps[0].water, ramps[0].slope, NULL, 0); /* all ramps look the same */
    scene = ex_scene_begin(&app);
    scene.height = count > 1 ? 900 : 400;
    look(&scene, count);

    for (frame = 0; frame < app.frames; frame++) {
        while (ramps[0].water->time < (frame + 1) * FRAME - 1e-9) {
            for (k = 0; k < count; k++) {
                ramp *r = &ramps[k];
                emit(&app, r, jet);
                ex_wcsph_step(&app, &tally, r->water, (double)r->water->desc.spacing / jet);
                drain(&app, r);
                if (2 * frame >= app.frames) r->speed += mean_speed(r->water);
            }
            if (2 * frame >= app.frames) late++;
        }
        app.sim_seconds = ramps[0].water->time;
        if (app.images) draw(&app, &scene, ramps, count, frame);
        if (count == 1)
            ex_write_particles(&app, "water", frame, ramps[0].water->position, ramps[0].water->velocity,
                               ramps[0].water->count);
        ex_progress(&app, frame + 1);
    }

    app.hash = finish(&app, ramps, count, late);
    ex_wcsph_figures(&app, &tally, ramps[count - 1].water);
    ex_wcsph_tally_end(&tally);
    ex_scene_end(&scene);
    for (k = 0; k < count; k++) {
        fsi_wcsph_destroy(ramps[k].water);
        fsi_mesh_destroy(ramps[k].slope);
    }
    return ex_end(&app);
}
