/* cc -O3 -I. studies/couple/drop_band.c -lm -o drop_band && ./drop_band
   SPDX-License-Identifier: MIT

   A drop of water, 3 mm wide, falls on a thin elastic band that is held at both ends. It flows round the band on both
   sides and closes underneath: the air around the band is a void in the drop then, from one side to the other. The rest
   of the drop comes down through the band, and it is one again. --tension 0.2 --width 0.0005 --damping 0.01 --frames
   120: a liquid that holds together is thrown up again, and ends up on the band. ringed= is for how long liquid went
   all the way round the middle of the band [ms]; held= the share of it that at the end is in drops which reach above
   the band; sag= how far the middle of the band ever went down, over the drop's radius. min_distance= is the smallest
   distance of the liquid from any sample of the band, over the size of a cell: above 0, nothing ever passed through.
   volume_error= the largest |volume/target - 1|; t_p=, t_n=, t_step= seconds a substep for projections, for the
   optimisation, and in all; newton_mean= its Newton steps. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/couple_tally.h"
#include "../../examples/kit/couple_look.h"

#define WIDTH 0.008   /* of the box, and length of the band [m] */
#define TALL 0.012    /* height of the box */
#define HEIGHT 0.007  /* of the band */
#define RADIUS 0.0015 /* of the drop */
#define FRAME 0.0005  /* seconds between two pictures */

typedef struct state {
    ex_mesh mesh;
    fsi_levelset *liquid;
    fsi_shell *band;
    fsi_couple *both;
    fsi_grid_surface *surface;
    int middle; /* a vertex */
} state;

/* Cells of the mesh are as large as those of the grid. */
static void make_band(ex_app *app, state *w, double dx, double width, double young, double damping)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    const int ny = (int)fmax(2, floor(width / dx + 0.5)), nx = 2 * (int)floor(WIDTH / dx / 2 + 0.5);
    int j;
    w->mesh = ex_grid(fsi_v3(0, (fsi_real)((WIDTH - width) / 2), (fsi_real)HEIGHT),
                      fsi_v3((fsi_real)WIDTH, (fsi_real)((WIDTH + width) / 2), (fsi_real)HEIGHT), nx, ny);
    m.density = 1000;
    m.thickness = (fsi_real)0.00005;
    m.young = (fsi_real)young;
    m.damping_stiffness = (fsi_real)damping;
    d.context = &app->context;
    d.vertices = w->mesh.vertices;
    d.vertex_count = w->mesh.vertex_count;
    d.triangles = w->mesh.triangles;
    d.triangle_count = w->mesh.triangle_count;
    d.materials = &m;
    d.material_count = 1;
    ex_check(app, fsi_shell_create(&w->band, &d));
    for (j = 0; j <= ny; j++) w->band->pinned[j * (nx + 1)] = w->band->pinned[j * (nx + 1) + nx] = 1;
    w->middle = ny / 2 * (nx + 1) + nx / 2;
}

static void make_liquid(ex_app *app, state *w, double dx, double speed, double tension)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    d.context = &app->context;
    d.n[0] = d.n[1] = (int)ceil(WIDTH / dx - 1e-6);
    d.n[2] = app->res;
    d.dx = (fsi_real)dx;
    d.surface_tension = (fsi_real)tension;
    d.cfl = 1;
    ex_check(app, fsi_levelset_create(&w->liquid, &d));
    ex_check(app,
             fsi_levelset_fill_sphere(
                 w->liquid, fsi_v3((fsi_real)(WIDTH / 2), (fsi_real)(WIDTH / 2), (fsi_real)(HEIGHT + 1.5 * RADIUS)),
                 (fsi_real)RADIUS, fsi_v3(0, 0, (fsi_real)-speed), NULL));
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->band;
    ex_draw_liquid(app, scene, w->surface, w->liquid);
    ex_draw_cloth(scene, s, 0.00005, 0xc8432f, 0xe9c9a8);
    ex_save_scene(app, scene, frame, "%.1f ms", 1000 * s->time);
}

static ex_scene begin_scene(ex_app *app)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 view;
    view.lo = fsi_v3((fsi_real)(0.1 * WIDTH), (fsi_real)(0.2 * WIDTH), 0);
    view.hi = fsi_v3((fsi_real)(0.9 * WIDTH), (fsi_real)(0.8 * WIDTH), (fsi_real)(0.92 * TALL));
    scene.width = 600;
    scene.height = 800;
    ex_look_at_box(&scene, view, 55, 6);
    return scene;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_couple_tally tally = { 0 };
    state w;
    fsi_couple_desc d = fsi_couple_default_desc();
    double speed = 0.28, tension = 0.0728, young = 5e6, damping = 0, width = 0.0002, dx, sag = 0, middle = HEIGHT;
    int frame, ringed = 0;

    memset(&w, 0, sizeof w);
    ex_init(&app, "drop_band", "A drop falls on a thin elastic band.");
    app.res = 96;
    app.res_help = "cells along the height of the box";
    app.frames = 50;
    ex_real(&app, "speed", &speed, 0, 2, "of the drop at first [m/s]");
    ex_real(&app, "tension", &tension, 0, 2, "surface tension [N/m]");
    ex_real(&app, "young", &young, 1e3, 1e9, "Young's modulus of the band [Pa]");
    ex_real(&app, "width", &width, 1e-5, 0.5 * WIDTH, "of the band [m]");
    ex_real(&app, "damping", &damping, 0, 1, "of the band's strains [s]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 24 || app.res > 512) ex_die("--res is not between 24 and 512");
    dx = TALL / app.res;
    make_band(&app, &w, dx, width, young, damping);
    make_liquid(&app, &w, dx, speed, tension);
    d.liquid = w.liquid;
    d.shell = w.band;
    ex_check(&app, fsi_couple_create(&w.both, &d));
    ex_check(&app, fsi_grid_surface_create(&w.surface, &app.context));
    scene = begin_scene(&app);

    for (frame = 0; frame < app.frames; frame++) {
        ex_couple_step(&app, &tally, w.both, FRAME);
        ringed += ex_is_ringed(w.liquid, w.band->position[w.middle]);
        middle = (double)w.band->position[w.middle].z;
        sag = fmax(sag, HEIGHT - middle);
        if (app.images) draw(&app, &scene, &w, frame);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "ringed", "%.1f", 1000 * FRAME * ringed);
    ex_figure(&app, "held", "%.3f", ex_share_above(w.liquid, middle));
    ex_figure(&app, "sag", "%.2f", sag / RADIUS);
    ex_couple_figures(&app, &tally, w.both);
    ex_couple_end(w.both, w.surface, &scene);
    ex_mesh_free(&w.mesh);
    return ex_end(&app);
}
