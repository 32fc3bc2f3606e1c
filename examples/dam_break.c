/* cc -O3 -I. examples/dam_break.c -lm -o dam_break && ./dam_break
   SPDX-License-Identifier: MIT

   A column of water collapses and breaks over a box: the experiment of the Maritime Research Institute Netherlands
   (Kleefsman et al. 2005, J. Comput. Phys. 206, 363; SPHERIC benchmark 2). Pictures show the water; plots compare two
   level gauges and eight pressure gauges with what was measured. --full is 43,000 particles, 5 seconds.

      z  |  tank 3.22 x 1 x 1 m                            |
         |                            +--------------------|
         |      P5..P8                |                    |
         |       +--+ P4              |    water 0.55 m    |
         |       |  |  :              |                    |
         +-------+--+ P1--:-----------+----------:---------+-- x
         0       0.82 m  H2 0.99              H4 2.64   3.22 */
#define FSI_IMPLEMENTATION
#include "example.h"
#include "fsi_sph.h"

#define SAMPLE 0.01 /* seconds between two readings of the gauges */
#define FRAME 0.04  /* and between two pictures */
#define DEPTH 0.55
#define BINS 500    /* of a level gauge, over TOP metres */
#define TOP 1.0

/* Public data of SPHERIC benchmark 2. Its columns H1 and H3 are swapped against its drawing; H2 and H4 are right. */
static const short measured_level[2][101] = { /* H2 and H4 [mm] every 50 ms */
    { 1, 1, 1, 0, 1, 1, 1, 8, 46, 75, 98, 116, 120, 125, 131, 140, 148, 156, 166, 175, 180, 184, 187, 192, 196, 202,
      206, 202, 200, 218, 238, 234, 253, 269, 311, 326, 332, 309, 294, 290, 286, 298, 297, 290, 293, 291, 292, 299,
      305, 290, 281, 269, 262, 255, 241, 231, 227, 221, 213, 209, 203, 201, 198, 193, 196, 199, 201, 202, 204, 203,
      202, 201, 198, 192, 186, 178, 170, 162, 154, 147, 137, 144, 148, 152, 157, 161, 159, 155, 151, 148, 145, 144,
      149, 167, 208, 253, 252, 256, 253, 251, 250 },
    { 547, 542, 534, 523, 512, 500, 487, 473, 459, 444, 427, 411, 395, 379, 363, 347, 332, 317, 303, 290, 279, 266,
      254, 243, 233, 224, 214, 205, 197, 189, 182, 176, 170, 164, 159, 153, 148, 142, 138, 134, 130, 127, 125, 122,
      119, 115, 113, 110, 108, 106, 104, 103, 112, 113, 124, 168, 212, 208, 200, 203, 202, 206, 211, 209, 208, 209,
      205, 202, 204, 201, 199, 208, 226, 252, 292, 324, 387, 398, 381, 358, 332, 310, 292, 276, 265, 257, 252, 250,
      252, 254, 260, 265, 268, 268, 268, 269, 266, 260, 251, 241, 233 }
};
static const short measured_pressure[4][104] = { /* P1 to P4 [10 Pa] every 20 ms from 0.34 s */
    { -2, -2, -2, 611, 997, 858, 778, 706, 657, 649, 599, 565, 521, 483, 446, 410, 403, 406, 400, 378, 380, 378, 361,
      364, 348, 334, 348, 357, 347, 348, 301, 312, 316, 288, 301, 304, 291, 318, 317, 290, 289, 308, 288, 299, 303,
      279, 305, 280, 253, 234, 244, 248, 274, 268, 291, 267, 268, 264, 280, 276, 262, 293, 277, 296, 279, 272, 276,
      276, 279, 288, 291, 300, 307, 314, 313, 300, 291, 297, 298, 307, 304, 301, 304, 309, 310, 304, 298, 299, 299,
      304, 301, 295, 294, 291, 286, 282, 280, 278, 276, 273, 269, 267, 266, 265 },
    { 0, 0, -1, -2, 532, 759, 726, 670, 597, 577, 559, 539, 490, 453, 420, 391, 385, 381, 375, 369, 376, 361, 363,
      347, 327, 329, 332, 325, 321, 307, 273, 288, 288, 267, 272, 252, 244, 258, 256, 237, 239, 240, 212, 243, 257,
      231, 231, 203, 191, 196, 158, 169, 181, 190, 210, 198, 206, 203, 213, 209, 196, 225, 213, 231, 227, 210, 214,
      209, 215, 223, 232, 246, 250, 252, 253, 244, 239, 244, 244, 255, 255, 254, 254, 257, 261, 260, 257, 258, 256,
      258, 253, 241, 240, 241, 245, 243, 242, 241, 241, 238, 233, 229, 226, 226 },
    { -5, -4, -5, -6, 13, 542, 644, 569, 522, 533, 514, 496, 456, 418, 390, 368, 360, 359, 364, 369, 383, 376, 374,
      367, 356, 358, 373, 367, 356, 345, 335, 333, 326, 315, 316, 310, 307, 310, 311, 293, 288, 272, 249, 266, 275,
      235, 248, 238, 235, 219, 201, 196, 215, 206, 221, 203, 203, 196, 202, 192, 177, 202, 192, 226, 214, 199, 206,
      198, 202, 210, 212, 219, 218, 216, 219, 211, 208, 214, 213, 221, 222, 221, 220, 223, 224, 224, 223, 225, 225,
      229, 226, 220, 219, 216, 216, 217, 216, 215, 214, 211, 208, 203, 199, 196 },
    { -2, -1, -1, -3, -4, 255, 707, 583, 483, 468, 473, 443, 396, 361, 340, 312, 300, 301, 303, 308, 323, 316, 313,
      311, 304, 308, 311, 311, 302, 299, 285, 283, 277, 268, 265, 270, 266, 270, 279, 264, 265, 244, 224, 233, 251,
      213, 237, 240, 237, 223, 202, 197, 212, 200, 219, 204, 211, 198, 197, 190, 159, 171, 163, 203, 194, 174, 188,
      180, 182, 182, 187, 190, 189, 187, 190, 179, 175, 178, 176, 181, 179, 178, 177, 178, 179, 178, 176, 178, 178,
      182, 180, 174, 174, 172, 170, 171, 170, 169, 168, 165, 162, 159, 158, 157 }
};

/* What the gauges read, a column each. */
enum { TIME, H2, H4, P1, COLUMNS = P1 + 8 };
typedef struct record {
    double *column[COLUMNS];
    double sum[8]; /* of the pressures since the last reading, over `steps` steps */
    int count, steps;
} record;

/* The highest z at which half of a column 2 dx wide around (x, y) is liquid. A particle is its volume, spread over
   z - dx .. z + dx by a hat function: so the layers of a lattice add up to one, and its surface is where it should be. */
static double level_at(const fsi_sph *s, double x, double y)
{
    double filled[BINS + 1] = { 0 }, dx = (double)s->desc.spacing, bin = TOP / BINS;
    int i, k;
    for (i = 0; i < s->count; i++) {
        fsi_vec3 p = s->position[i];
        if (!(fabs((double)p.x - x) < dx && fabs((double)p.y - y) < dx)) continue;
        k = (int)ceil(((double)p.z - dx) / bin);
        for (k = k > 0 ? k : 0; k <= BINS && k * bin < (double)p.z + dx; k++)
            filled[k] += (1 - fabs(k * bin - (double)p.z) / dx) / 4;
    }
    for (k = BINS; k > 0 && filled[k] < 0.5; k--) {}
    return k == BINS ? TOP : k == 0 ? 0 : bin * (k + (filled[k] - 0.5) / (filled[k] - filled[k + 1]));
}

/* P1 to P4 are on the face of the box that meets the wave, P5 to P8 on its lid. Asked dx/2 in front of it. */
static void add_pressures(record *r, const fsi_sph *s)
{
    double off = (double)s->desc.spacing / 2;
    int k;
    for (k = 0; k < 4; k++) {
        r->sum[k] += (double)fsi_sph_pressure_at(s, fsi_v3(0.8245 + off, 0.4745, 0.021 + 0.04 * k));
        r->sum[4 + k] += (double)fsi_sph_pressure_at(s, fsi_v3(0.8035 - 0.04 * k, 0.4745, 0.161 + off));
    }
    r->steps++;
}

/* Levels as they are now; pressures as means since the last reading, as the experiment's are. */
static void read_gauges(record *r, const fsi_sph *s)
{
    int k;
    r->column[TIME][r->count] = s->time;
    r->column[H2][r->count] = level_at(s, 0.992, 0.5);
    r->column[H4][r->count] = level_at(s, 2.638, 0.5);
    for (k = 0; k < 8; k++) {
        r->column[P1 + k][r->count] = r->sum[k] / r->steps;
        r->sum[k] = 0;
    }
    r->steps = 0;
    r->count++;
}

/* Root mean square of level minus experiment up to time `end`, no shift in time. */
static double level_rms(const record *r, int column, double end)
{
    const short *measured = measured_level[column - H2];
    double sum = 0;
    int i, n = 0;
    for (i = 0; i < r->count && r->column[TIME][i] < end + 1e-9 && r->column[TIME][i] < 5; i++, n++) {
        double u = r->column[TIME][i] / 0.05, part = u - floor(u);
        double error = r->column[column][i] - ((1 - part) * measured[(int)u] + part * measured[(int)u + 1]) / 1000;
        sum += error * error;
    }
    return sqrt(sum / n);
}

/* Two columns beside the measured values: H2 and H4, or two of P1 to P4. */
static void plot_pair(ex_app *app, const record *r, int a, int b, const char *file)
{
    static const char *const names[COLUMNS] = { "t", "H2", "H4", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8" };
    static double x[2][104], y[2][104];
    char label[2][32];
    ex_plot plot = ex_plot_begin(a < P1 ? "Level of the water" : "Pressure on the face of the box", "time [s]",
                                 a < P1 ? "height [m]" : "pressure [Pa]");
    int k, i, pick[2], n = a < P1 ? 101 : 104;
    pick[0] = a;
    pick[1] = b;
    plot.x_hi = r->column[TIME][r->count - 1];
    plot.y_hi = a < P1 ? 0.6 : 15000;
    for (k = 0; k < 2; k++)
        ex_plot_series(&plot, names[pick[k]], r->column[TIME], r->column[pick[k]], r->count, EX_MARK_LINE);
    for (k = 0; k < 2; k++) {
        for (i = 0; i < n; i++) {
            x[k][i] = a < P1 ? 0.05 * i : 0.34 + 0.02 * i;
            y[k][i] = a < P1 ? 0.001 * measured_level[pick[k] - H2][i] : 10.0 * measured_pressure[pick[k] - P1][i];
        }
        snprintf(label[k], sizeof label[k], "%s measured", names[pick[k]]);
        ex_plot_series(&plot, label[k], x[k], y[k], n, EX_MARK_DOTS);
    }
    ex_plot_save(app, &plot, file);
}

static void plot_lid(ex_app *app, const record *r)
{
    static const char *const names[4] = { "P5", "P6", "P7", "P8" };
    ex_plot plot = ex_plot_begin("On its lid (measured: peaks of 1.9 to 2.1 kPa at 1.60 to 1.74 s)", "time [s]",
                                 "pressure [Pa]");
    int k;
    plot.x_hi = r->column[TIME][r->count - 1];
    plot.y_hi = 4000;
    for (k = 0; k < 4; k++)
        ex_plot_series(&plot, names[k], r->column[TIME], r->column[P1 + 4 + k], r->count, EX_MARK_LINE);
    ex_plot_save(app, &plot, "dam_break_lid.png");
}

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

static fsi_box3 make_box(double x0, double y0, double z0, double x1, double y1, double z1)
{
    fsi_box3 b;
    b.lo = fsi_v3(x0, y0, z0);
    b.hi = fsi_v3(x1, y1, z1);
    return b;
}

static fsi_mesh *make_obstacle(ex_app *app)
{
    ex_mesh box = ex_box(make_box(0.6635, 0.2985, 0, 0.8245, 0.7015, 0.161), 0);
    fsi_mesh_desc desc = fsi_mesh_default_desc();
    fsi_mesh *mesh;
    desc.context = &app->context;
    desc.vertices = box.vertices;
    desc.vertex_count = box.vertex_count;
    desc.elements = box.triangles;
    desc.element_count = box.triangle_count;
    ex_check(app, fsi_mesh_create(&mesh, &desc));
    ex_mesh_free(&box);
    return mesh;
}

/* The domain is higher than the tank: what splashes up comes down again. */
static fsi_sph *make_water(ex_app *app, const fsi_mesh *obstacle, int substeps)
{
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_box3 column;
    fsi_sph *s;
    double dx = DEPTH / app->res;
    desc.context = &app->context;
    desc.spacing = dx;
    desc.depth = DEPTH;
    desc.domain = make_box(0, 0, 0, 3.22, 1, 2 * TOP);
    if (!substeps) desc.max_substeps = 1;
    ex_check(app, fsi_sph_create(&s, &desc));
    ex_check(app, fsi_sph_add_obstacle(s, obstacle, NULL));
    column = make_box(3.22 - dx * floor(1.228 / dx + 0.5), 0, 0, 3.22, 1, DEPTH);
    ex_check(app, fsi_sph_fill_box(s, column, fsi_v3(0, 0, 0)));
    return s;
}

static void plot(ex_app *app, record *r)
{
    plot_pair(app, r, H2, H4, "dam_break_levels.png");
    plot_pair(app, r, P1, P1 + 2, "dam_break_p1_p3.png");
    plot_pair(app, r, P1 + 1, P1 + 3, "dam_break_p2_p4.png");
    plot_lid(app, r);
    ex_figure(app, "h2_rms", "%.4f", level_rms(r, H2, 4));
    ex_figure(app, "h4_rms", "%.4f", level_rms(r, H4, 2.4));
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    record gauges;
    fsi_surface_desc skin = fsi_surface_default_desc();
    fsi_mesh *obstacle;
    fsi_sph *s;
    fsi_surface *surface;
    double dt = 0, compression = 0, step;
    int full = 0, frame, k, inside = 0, placed = 0, pinched = 0;

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
    step = dt > 0 ? dt / 1000 : SAMPLE / 2;
    obstacle = make_obstacle(&app);
    s = make_water(&app, obstacle, !(dt > 0));
    skin.context = &app.context;
    skin.spacing = s->desc.spacing;
    ex_check(&app, fsi_surface_create(&surface, &skin));
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, make_box(0, 0, 0, 3.22, 1, TOP), 24, 18);
    memset(&gauges, 0, sizeof gauges);
    for (k = 0; k < COLUMNS; k++)
        gauges.column[k] = (double *)ex_alloc(NULL, (size_t)(app.frames * FRAME / SAMPLE) + 4, sizeof(double));

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
            if (s->time > gauges.count * SAMPLE - 1e-9) read_gauges(&gauges, s);
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
    plot(&app, &gauges);
    for (k = 0; k < COLUMNS; k++) free(gauges.column[k]);
    ex_scene_end(&scene);
    fsi_surface_destroy(surface);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(obstacle);
    return ex_end(&app);
}
