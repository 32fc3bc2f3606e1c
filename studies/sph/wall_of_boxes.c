/* cc -O3 -I. studies/sph/wall_of_boxes.c -lm -o wall_of_boxes && ./wall_of_boxes
   SPDX-License-Identifier: MIT

   Three tanks, three walls of nine boxes, gaps of L = 1, 2 and 3 particle spacings R between boxes, floor, sides and
   lid: which ones let water through? The method's paper (Liu et al.) lets particles through for L >= 3 R only, with a
   contact layer as thick as R. Here it is R/2, so that a gap of one R is just open; --dhat 1 closes it. passed_1=
   passed_2= passed_3= count the particles behind each wall, inside= those in a box. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_sph.h"

#define FRAME 0.025 /* seconds between two pictures */
#define SIDE 0.6    /* width and height of a tank [m] */
#define LENGTH 1.2
#define WALL 0.45   /* where the wall begins */
#define BOXES 3     /* each way */

typedef struct tank {
    fsi_mesh *wall;
    fsi_sph *liquid;
    double back; /* x behind the wall */
} tank;

/* Boxes and gaps share the cross-section: BOXES * b + (BOXES + 1) * gap = SIDE. */
static ex_mesh make_wall(double y, double gap, double b)
{
    ex_mesh wall = ex_mesh_make(0, 0);
    int i, k;
    for (k = 0; k < BOXES; k++) {
        for (i = 0; i < BOXES; i++) {
            fsi_box3 box;
            ex_mesh one;
            box.lo = fsi_v3(WALL, y + gap + i * (b + gap), gap + k * (b + gap));
            box.hi = fsi_v3_add(box.lo, fsi_v3(b / 2, b, b));
            one = ex_box(box, 0);
            ex_mesh_add(&wall, &one);
            ex_mesh_free(&one);
        }
    }
    return wall;
}

/* A tank at y with a column of water in front of a wall. */
static tank make_tank(ex_app *app, fsi_sph_desc *desc, double y, double gap)
{
    double b = (SIDE - (BOXES + 1) * gap) / BOXES;
    ex_mesh boxes = make_wall(y, gap, b);
    fsi_mesh_desc solid = fsi_mesh_default_desc();
    fsi_box3 column;
    tank t;
    solid.context = &app->context;
    solid.vertices = boxes.vertices;
    solid.vertex_count = boxes.vertex_count;
    solid.elements = boxes.triangles;
    solid.element_count = boxes.triangle_count;
    ex_check(app, fsi_mesh_create(&t.wall, &solid));
    ex_mesh_free(&boxes);
    desc->domain.lo = column.lo = fsi_v3(0, y, 0);
    desc->domain.hi = fsi_v3(LENGTH, y + SIDE, SIDE);
    column.hi = fsi_v3(SIDE / 2, y + SIDE, desc->depth);
    ex_check(app, fsi_sph_create(&t.liquid, desc));
    ex_check(app, fsi_sph_add_mesh(t.liquid, t.wall, NULL));
    ex_check(app, fsi_sph_fill_box(t.liquid, column, fsi_v3(0, 0, 0), NULL));
    t.back = WALL + b / 2;
    return t;
}

static int count_passed(const tank *t)
{
    int i, passed = 0;
    for (i = 0; i < t->liquid->count; i++) passed += (double)t->liquid->position[i].x > t->back;
    return passed;
}

static void draw(ex_app *app, ex_scene *scene, fsi_surface *const *skin, const tank *tanks, int frame)
{
    ex_image *image;
    char text[64];
    int k;
    for (k = 0; k < 3; k++) {
        const fsi_sph *s = tanks[k].liquid;
        const fsi_mesh *wall = tanks[k].wall;
        ex_draw_particles(app, scene, skin[k], s->position, s->count);
        ex_draw_mesh(scene, wall->vertices, NULL, wall->vertex_count, wall->faces, wall->face_count, 0xd9783b);
        ex_draw_box(scene, s->desc.domain, 1.2, 0x7d8894);
    }
    image = ex_render(scene);
    for (k = 0; k < 3; k++) {
        snprintf(text, sizeof text, "L = %d R: %d passed", k + 1, count_passed(&tanks[k]));
        ex_text(image, 24, 34 + 22 * k, 11, EX_LEFT, 0x3a4550, text);
    }
    ex_save_frame(app, image, frame);
}

int main(int argc, char **argv)
{
    static const char *const keys[3] = { "passed_1", "passed_2", "passed_3" };
    ex_app app;
    ex_scene scene;
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_box3 all = fsi_box3_empty();
    tank tanks[3];
    fsi_surface *skin[3];
    double dt = 0, dhat = (double)desc.contact_thickness;
    int k, frame, inside = 0, lost = 0, placed = 0, pinched = 0, particles = 0;

    ex_init(&app, "wall_of_boxes", "Water runs against walls of boxes with gaps of 1, 2 and 3 particles.");
    app.res = 24;
    app.res_help = "particles over the width of a tank: R = 0.6 m / res";
    app.frames = 40;
    ex_real(&app, "dhat", &dhat, 0.05, 2, "contact thickness in units of R");
    ex_real(&app, "dt", &dt, 0, 20, "time step without substeps [ms], 0: chosen by the simulator");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    desc.context = &app.context;
    desc.spacing = SIDE / app.res;
    desc.depth = 0.4;
    desc.contact_thickness = dhat;
    if (dt > 0) desc.max_substeps = 1;
    for (k = 0; k < 3; k++) {
        tanks[k] = make_tank(&app, &desc, 1.3 * SIDE * k, (k + 1) * (double)desc.spacing);
        all = fsi_box3_join(all, desc.domain);
        particles += tanks[k].liquid->count;
        skin[k] = ex_particle_surface(&app, (double)desc.spacing);
    }
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, all, 58, 30);
    scene.sun = fsi_v3((fsi_real)0.7, (fsi_real)-0.3, (fsi_real)0.8);

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < 3; k++) {
            fsi_sph *s = tanks[k].liquid;
            while (s->time < (frame + 1) * FRAME - 1e-9) {
                ex_check(&app, fsi_sph_step(s, dt > 0 ? dt / 1000 : FRAME / 4));
                app.steps += s->stats.substeps;
                placed += s->stats.placed;
                pinched += s->stats.pinched;
                inside += fsi_sph_count_inside(s, NULL);
            }
            ex_write_particles(&app, keys[k], frame, s->position, s->velocity, s->count);
        }
        app.sim_seconds = tanks[0].liquid->time;
        if (app.images) draw(&app, &scene, skin, tanks, frame);
        ex_progress(&app, frame + 1);
    }

    for (k = 0; k < 3; k++) {
        app.hash = app.hash * 31 + fsi_sph_hash(tanks[k].liquid);
        lost += ex_count_outside(tanks[k].liquid->position, tanks[k].liquid->count, tanks[k].liquid->desc.domain);
        ex_figure(&app, keys[k], "%.0f", count_passed(&tanks[k]));
        fsi_sph_destroy(tanks[k].liquid);
        fsi_mesh_destroy(tanks[k].wall);
        fsi_surface_destroy(skin[k]);
    }
    ex_figure(&app, "particles", "%.0f", particles);
    ex_figure(&app, "inside", "%.0f", inside);
    ex_figure(&app, "lost", "%.0f", lost);
    ex_figure(&app, "placed", "%.0f", placed);
    ex_figure(&app, "pinched", "%.0f", pinched);
    ex_scene_end(&scene);
    return ex_end(&app);
}
