/* cc -O3 -I. examples/dam_break.c -lm -o dam_break && ./dam_break
   SPDX-License-Identifier: MIT

   A column of water collapses and breaks over a box: the experiment of the Maritime Research Institute Netherlands
   (Kleefsman et al. 2005, J. Comput. Phys. 206, 363; SPHERIC benchmark 2). Pictures show the water; plots compare two
   level gauges and eight pressure gauges with what was measured. --full is 43,000 particles, 5 seconds.

   The tank and the gauges: marin.h. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_sph.h"
#include "kit/marin.h"

#define FRAME 0.04  /* seconds between two pictures */

/* The highest z at which half of a column 2 dx wide around (x, y) is liquid. A particle is its volume, spread over
   z - dx .. z + dx by a hat function: so the layers of a lattice add up to one, and its surface is where it should be. */
static double level_at(const fsi_sph *s, double x, double y)
{
    double filled[MARIN_BINS + 1] = { 0 }, dx = (double)s->desc.spacing, bin = MARIN_TOP / MARIN_BINS;
    int i, k;
    for (i = 0; i < s->count; i++) {
        fsi_vec3 p = s->position[i];
        if (!(fabs((double)p.x - x) < dx && fabs((double)p.y - y) < dx)) continue;
        k = (int)ceil(((double)p.z - dx) / bin);
        for (k = k > 0 ? k : 0; k <= MARIN_BINS && k * bin < (double)p.z + dx; k++)
            filled[k] += (1 - fabs(k * bin - (double)p.z) / dx) / 4;
    }
    return marin_level_of(filled);
}

/* dx/2 in front of the box. */
static void add_pressures(marin_record *r, const fsi_sph *s)
{
    int k;
    for (k = 0; k < 8; k++) r->sum[k] += (double)fsi_sph_pressure_at(s, marin_pressure_point(k, (double)s->desc.spacing / 2));
    r->steps++;
}

static void read_gauges(marin_record *r, const fsi_sph *s) { marin_read(r, s->time, level_at(s, 0.992, 0.5), level_at(s, 2.638, 0.5)); }

static void draw(ex_app *app, ex_scene *scene, fsi_surface *surface, const fsi_sph *s, const fsi_mesh *box, int frame)
{
    char text[64];
    ex_image *image;
    ex_check(app, fsi_surface_update(surface, s->position, s->count, NULL));
    ex_draw_surface(scene, surface->vertices, surface->normals, surface->vertex_count, surface->elements,
                    surface->element_count);
    ex_draw_mesh(scene, box->vertices, NULL, box->vertex_count, box->faces, box->face_count, 0xd9783b);
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    image = ex_render(scene);
    snprintf(text, sizeof text, "%.2f s   %d particles", s->time, s->count);
    ex_text(image, 24, 34, 11, EX_LEFT, 0x3a4550, text);
    ex_save_frame(app, image, frame);
}

/* The domain is higher than the tank: what splashes up comes down again. */
static fsi_sph *make_water(ex_app *app, const fsi_mesh *obstacle, int substeps)
{
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_box3 column;
    fsi_sph *s;
    double dx = MARIN_DEPTH / app->res;
    desc.context = &app->context;
    desc.spacing = dx;
    desc.depth = MARIN_DEPTH;
    desc.domain = marin_box(0, 0, 0, 3.22, 1, 2 * MARIN_TOP);
    if (!substeps) desc.max_substeps = 1;
    ex_check(app, fsi_sph_create(&s, &desc));
    ex_check(app, fsi_sph_add_mesh(s, obstacle, NULL));
    column = marin_box(3.22 - dx * floor(1.228 / dx + 0.5), 0, 0, 3.22, 1, MARIN_DEPTH);
    ex_check(app, fsi_sph_fill_box(s, column, fsi_v3(0, 0, 0), NULL));
    return s;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    marin_record gauges;
    fsi_surface_desc skin = fsi_surface_default_desc();
    fsi_mesh *obstacle;
    fsi_sph *s;
    fsi_surface *surface;
    double dt = 0, compression = 0, step;
    int full = 0, frame, inside = 0, placed = 0, pinched = 0;

    ex_init(&app, "dam_break", "Water breaks over a box, compared with the MARIN experiment.");
    app.res = 11;
    app.res_help = "particles over the depth of the water: dx = 0.55 m / res";
    app.frames = 45;
    ex_real(&app, "dt", &dt, 0, 20, "time step without substeps [ms], 0: chosen by the simulator");
    ex_flag(&app, "full", &full, "dx = 25 mm to 5 s: as --res 22 --frames 125");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (full) {
        app.res = 22;
        app.frames = 125;
    }
    step = dt > 0 ? dt / 1000 : MARIN_SAMPLE / 2;
    obstacle = marin_obstacle(&app);
    s = make_water(&app, obstacle, !(dt > 0));
    skin.context = &app.context;
    skin.spacing = s->desc.spacing;
    ex_check(&app, fsi_surface_create(&surface, &skin));
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, marin_box(0, 0, 0, 3.22, 1, MARIN_TOP), 24, 18);
    gauges = marin_begin(app.frames * FRAME);

    add_pressures(&gauges, s);
    read_gauges(&gauges, s);
    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            ex_check(&app, fsi_sph_step(s, step));
            app.steps += s->stats.substeps;
            placed += s->stats.placed;
            pinched += s->stats.pinched;
            compression += s->stats.mean_compression * s->stats.substeps;
            inside += fsi_sph_count_inside(s, NULL);
            add_pressures(&gauges, s);
            if (s->time > gauges.count * MARIN_SAMPLE - 1e-9) read_gauges(&gauges, s);
        }
        app.sim_seconds = s->time;
        if (app.images) draw(&app, &scene, surface, s, obstacle, frame);
        ex_write_particles(&app, "water", frame, s->position, s->velocity, s->count);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_sph_hash(s);
    ex_figure(&app, "particles", "%.0f", s->count);
    ex_figure(&app, "inside", "%.0f", inside);
    ex_figure(&app, "lost", "%.0f", ex_count_outside(s->position, s->count, s->desc.domain));
    ex_figure(&app, "placed", "%.0f", placed);
    ex_figure(&app, "pinched", "%.0f", pinched);
    ex_figure(&app, "mean_compression", "%.5f", compression / (double)app.steps);
    marin_figures(&app, &gauges);
    marin_free(&gauges);
    ex_scene_end(&scene);
    fsi_surface_destroy(surface);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(obstacle);
    return ex_end(&app);
}
