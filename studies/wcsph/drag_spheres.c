/* cc -O3 -I. studies/wcsph/drag_spheres.c -lm -o drag_spheres && ./drag_spheres
   SPDX-License-Identifier: MIT

   Four spheres, twice as heavy as the liquid, start at rest just under the surface of two tanks and sink. The left tank
   holds water, the right one syrup (--thick: artificial viscosity alpha); in each the liquid sticks to one sphere (slip
   0, red) and slides along the other (slip 1, green). Drag is all that sets them apart: in syrup they sink slower, and
   the sphere that it sticks to slowest of all. speed_thin_stick= and so on: mean sinking speeds over the second half of
   the run [m/s]; depth_...= how far each has come [m]. nothing= is how fast a sphere would sink without drag but for
   its buoyancy and half its own mass of liquid that it pushes along. --thick 3 is the paper's syrup: its time steps are
   three times as small again. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_wcsph.h"
#include "../../examples/kit/wcsph_tally.h"

#define RADIUS 0.1   /* of the spheres [m] */
#define DENSITY 2000.0
#define LENGTH 0.9   /* of a tank */
#define WIDTH 0.4
#define LEVEL 0.6    /* of the liquid */
#define GAP 0.2      /* between the tanks, in the picture */
#define FRAME 0.01   /* seconds between two pictures */

static const char *const tank_name[2] = { "thin", "thick" }, *const sphere_name[2] = { "stick", "slide" };
static const uint32_t color[2] = { 0xc8432f, 0x5a9a4a };

/* A tank and its two spheres. */
typedef struct tank {
    fsi_wcsph *s;
    fsi_surface *skin;
    fsi_body sphere[2];
    double start[2], half[2];    /* heights at first, and when half of the run was over [m] */
    ex_wcsph_tally tally;
} tank;

static void make_tank(ex_app *app, tank *t, const fsi_mesh *mesh, double alpha)
{
    fsi_wcsph_desc desc = fsi_wcsph_default_desc();
    fsi_mass_properties mass;
    fsi_box3 pool;
    int k, id;
    memset(t, 0, sizeof *t);
    desc.context = &app->context;
    desc.spacing = (fsi_real)(RADIUS / app->res);
    desc.depth = (fsi_real)LEVEL;
    desc.speed = (fsi_real)2.5;  /* no sphere gets faster than that */
    desc.alpha = (fsi_real)alpha;
    desc.visc_bulk_only = 0;     /* shear is what drags */
    desc.domain.lo = pool.lo = fsi_v3(0, 0, 0);
    desc.domain.hi = fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, 2);
    pool.hi = fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, (fsi_real)LEVEL);
    ex_check(app, fsi_wcsph_create(&t->s, &desc));
    ex_check(app, fsi_mesh_mass(mesh, (fsi_real)DENSITY, 0, &mass));
    for (k = 0; k < 2; k++) {
        fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
        t->sphere[k] = fsi_body_from_mass(&mass);
        o.mesh = mesh;
        o.body = &t->sphere[k];
        o.slip = (fsi_real)k;
        ex_check(app, fsi_wcsph_add_obstacle(t->s, &o, &id));
        ex_wcsph_watch(app, &t->tally, t->s, mesh, &t->sphere[k], id);
        t->start[k] = LEVEL - 1.2 * RADIUS;
        t->sphere[k].pose.position =
            fsi_v3((fsi_real)(LENGTH * (0.25 + 0.5 * k)), (fsi_real)(WIDTH / 2), (fsi_real)t->start[k]);
        t->sphere[k].force = fsi_v3(0, 0, (fsi_real)-9.81 * t->sphere[k].mass);
        ex_check(app, fsi_wcsph_teleport_obstacle(t->s, id));
    }
    ex_check(app, fsi_wcsph_fill_box(t->s, pool, fsi_v3(0, 0, 0), NULL));
    ex_check(app, fsi_wcsph_settle_density(t->s, pool.hi));
    t->skin = ex_particle_surface(app, (double)t->s->desc.spacing);
}

/* Vertices moved along x, for the picture. */
static fsi_vec3 *shifted(const fsi_vec3 *x, int count, double by)
{
    fsi_vec3 *y = (fsi_vec3 *)ex_alloc(NULL, (size_t)count, sizeof *y);
    int i;
    for (i = 0; i < count; i++) y[i] = fsi_v3_add(x[i], fsi_v3((fsi_real)by, 0, 0));
    return y;
}

static void draw_tank(ex_app *app, ex_scene *scene, tank *t, const fsi_mesh *mesh, double by)
{
    fsi_vec3 *x;
    fsi_box3 walls;
    int k;
    ex_check(app, fsi_surface_update(t->skin, t->s->position, t->s->count, NULL));
    x = shifted(t->skin->vertices, t->skin->vertex_count, by);
    ex_draw_surface(scene, x, t->skin->normals, t->skin->vertex_count, t->skin->elements, t->skin->element_count);
    free(x);
    for (k = 0; k < 2; k++) {
        fsi_body b = t->sphere[k];
        b.pose.position.x += (fsi_real)by;
        ex_draw_body(scene, mesh, fsi_default_body().pose, b.pose, color[k]);
    }
    walls.lo = fsi_v3((fsi_real)by, 0, 0);
    walls.hi = fsi_v3((fsi_real)(by + LENGTH), (fsi_real)WIDTH, (fsi_real)(LEVEL + 0.05));
    ex_draw_box(scene, walls, 1.5, 0x7d8894);
}

/* Has a sphere come so close to the floor that liquid must be pressed out from under it? */
static int near_floor(const tank *t)
{
    return (double)t->sphere[0].pose.position.z < 1.4 * RADIUS || (double)t->sphere[1].pose.position.z < 1.4 * RADIUS;
}

static void figures(ex_app *app, tank *tanks, double seconds)
{
    int k, b;
    for (k = 0; k < 2; k++) for (b = 0; b < 2; b++) {
        const double z = (double)tanks[k].sphere[b].pose.position.z;
        char key[64];
        snprintf(key, sizeof key, "speed_%s_%s", tank_name[k], sphere_name[b]);
        ex_figure(app, key, "%.4f", seconds > 0 ? (tanks[k].half[b] - z) / seconds : 0);
        snprintf(key, sizeof key, "depth_%s_%s", tank_name[k], sphere_name[b]);
        ex_figure(app, key, "%.4f", tanks[k].start[b] - z);
    }
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_mesh *mesh;
    ex_mesh ball;
    tank tanks[2];
    double thin = 0.1, thick = 1, halfway;
    int frame, k, b, step, down = 0;

    ex_init(&app, "drag_spheres", "Spheres sink in water and in syrup, with and without slip.");
    app.res = 4;
    app.res_help = "particles along the radius of a sphere";
    app.frames = 40;
    ex_real(&app, "thin", &thin, 0.01, 10, "artificial viscosity alpha of the left tank");
    ex_real(&app, "thick", &thick, 0.01, 10, "and of the right one");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 3 || app.res > 24) ex_die("--res is not between 3 and 24");
    ball = ex_sphere(fsi_v3(0, 0, 0), RADIUS, app.res > 8 ? 4 : 3);
    mesh = ex_solid(&app, &ball, FSI_MESH_CLOSED);
    make_tank(&app, &tanks[0], mesh, thin);
    make_tank(&app, &tanks[1], mesh, thick);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0),
                            fsi_v3((fsi_real)(2 * LENGTH + GAP), (fsi_real)WIDTH, (fsi_real)LEVEL), 12, 10);
    halfway = app.frames / 2 * FRAME;

    for (frame = 0; frame < app.frames && !down; frame++) {
        for (k = 0; k < 2; k++) {
            for (b = 0; b < 2 && frame == app.frames / 2; b++)
                tanks[k].half[b] = (double)tanks[k].sphere[b].pose.position.z;
            for (step = 1; step <= 2; step++)
                ex_wcsph_step(&app, &tanks[k].tally, tanks[k].s, FRAME * (frame + 0.5 * step) - tanks[k].s->time);
            down |= near_floor(&tanks[k]);
        }
        if (app.images) {
            for (k = 0; k < 2; k++) draw_tank(&app, &scene, &tanks[k], mesh, k * (LENGTH + GAP));
            ex_save_scene(&app, &scene, frame, "%.2f s", tanks[0].s->time);
        }
        for (k = 0; k < 2; k++)
            ex_write_particles(&app, tank_name[k], frame, tanks[k].s->position, tanks[k].s->velocity,
                               tanks[k].s->count);
        ex_progress(&app, frame + 1);
    }
    app.frames = frame;

    tanks[1].tally.inside += fsi_wcsph_count_inside(tanks[1].s, NULL);
    ex_wcsph_tally_add(&tanks[0].tally, &tanks[1].tally);
    ex_wcsph_figures(&app, &tanks[0].tally, tanks[0].s);
    app.hash = fsi_hash(&app.hash, sizeof app.hash, fsi_wcsph_hash(tanks[1].s));
    figures(&app, tanks, app.sim_seconds - halfway);
    ex_figure(&app, "nothing", "%.4f", 9.81 * (DENSITY - 1000) / (DENSITY + 500) * (app.sim_seconds + halfway) / 2);
    for (k = 0; k < 2; k++) {
        ex_wcsph_tally_end(&tanks[k].tally);
        fsi_surface_destroy(tanks[k].skin);
        fsi_wcsph_destroy(tanks[k].s);
    }
    ex_scene_end(&scene);
    fsi_mesh_destroy(mesh);
    return ex_end(&app);
}
