/* cc -O3 -I. studies/wcsph/flotsam.c -lm -o flotsam && ./flotsam
   SPDX-License-Identifier: MIT

   Flotsam on a beach (the paper's figure 12): crates, barrels, rings and crossed beams are dropped on a pool; a wave,
   let go at the left, lifts them, throws them against each other and onto the slope. A world of fsi_rigid.h owns the
   bodies; the liquid advances it within its own step (fsi_wcsph_set_world), so that particles between two bodies and
   bodies that touch are solved together.
   touching= is the most pairs of bodies in contact after a step, deepest= their greatest overlap then [m], astray=
   bodies outside the tank at the end, ashore= those that lie beyond the waterline. sunk= counts bodies wholly under the
   mean water level in the end: light as they are, for a moment.
   --res 144 is the paper's size: 2.6 million particles; compiled with -DFSI_REAL_FLOAT they take 630 MB. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_wcsph.h"
#include "fsi_rigid.h"
#include "../../examples/kit/shapes.h"
#include "../../examples/kit/wcsph_tally.h"

#define LENGTH 3.6  /* of the tank [m] */
#define WIDTH 1.2
#define POOL 0.36   /* depth of the water at first */
#define WAVE 0.84   /* height of what is let go */
#define DAM 0.6     /* and its length */
#define BEHIND 0.24 /* from the wall at the left: it leaves no film there */
#define RUN 1.2     /* speed that it starts with [m/s] */
#define SHORE 2.1   /* where the beach leaves the floor */
#define RISE 0.36   /* of the beach, to its length */
#define MAX_BODIES 200

typedef enum thing { CRATE, BARREL, RING, BEAMS, THINGS } thing;
static const double density[THINGS] = { 450, 300, 350, 550 };
static const uint32_t color[THINGS] = { 0xc08a4e, 0x9a3f36, 0xe8843c, 0x7d6a55 };

/* A body, and what the liquid sees of it. */
typedef struct piece {
    int id;
    thing what;
    fsi_mesh *mesh;
    fsi_vec3 *local;   /* its vertices, from the centre of mass, in body axes */
} piece;

typedef struct scene_of {
    fsi_rigid *world;
    fsi_wcsph *water;
    fsi_mesh *ring, *beams, *beach;
    piece piece[MAX_BODIES];
    int pieces;
    double slip;       /* e_t of bodies and beach */
    ex_wcsph_tally tally;
} scene_of;

/* ---- things ----------------------------------------------------------------------------------------------------- */

static fsi_mesh *make_ring(ex_app *app)
{
    ex_mesh m = ex_torus(0.17, 0.065, 24, 12);
    return ex_solid(app, &m, FSI_MESH_CLOSED);
}

/* Two beams, one across the other, in one piece. */
static fsi_mesh *make_beams(ex_app *app)
{
    static const double xy[24] = { 0.06, 0.06, 0.06, 0.2, -0.06, 0.2, -0.06, 0.06, -0.2, 0.06, -0.2, -0.06,
                                   -0.06, -0.06, -0.06, -0.2, 0.06, -0.2, 0.06, -0.06, 0.2, -0.06, 0.2, 0.06 };
    shape s = shape_empty();
    fsi_mesh *mesh;
    shape_extrude(&s, xy, 12, -0.06, 0.06);
    mesh = shape_mesh(app, &s, FSI_MESH_CLOSED, 0);
    shape_free(&s);
    return mesh;
}

static fsi_rigid_shape make_thing(const scene_of *w, thing what)
{
    fsi_rigid_shape s = what == CRATE ? fsi_rigid_box(fsi_v3((fsi_real)0.14, (fsi_real)0.14, (fsi_real)0.11))
                      : what == BARREL ? fsi_rigid_cylinder((fsi_real)0.11, (fsi_real)0.16)
                      : fsi_rigid_mesh(what == RING ? w->ring : w->beams);
    s.density = (fsi_real)density[what];
    return s;
}

static double random01(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) / 16777216.0;
}

/* A body of the world becomes an obstacle of the liquid. */
static fsi_mesh *add_to_water(ex_app *app, scene_of *w, int id)
{
    fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
    fsi_body *body = fsi_rigid_body(w->world, id);
    fsi_mesh *mesh;
    int obstacle;
    ex_check(app, fsi_rigid_tessellate(w->world, id, -1, 0, &mesh));
    o.mesh = mesh;
    o.body = body;
    o.slip = (fsi_real)w->slip;
    ex_check(app, fsi_wcsph_add_obstacle(w->water, &o, &obstacle));
    ex_wcsph_watch(app, &w->tally, w->water, mesh, body, obstacle);
    return mesh;
}

static void add_piece(ex_app *app, scene_of *w, thing what, fsi_pose pose)
{
    fsi_rigid_body_desc d = fsi_rigid_default_body_desc();
    fsi_rigid_shape s = make_thing(w, what);
    piece *p = &w->piece[w->pieces++];
    int i;
    d.shapes = &s;
    d.shape_count = 1;
    d.pose = pose;
    p->what = what;
    ex_check(app, fsi_rigid_add_body(w->world, &d, &p->id));
    p->mesh = add_to_water(app, w, p->id);
    p->local = (fsi_vec3 *)ex_alloc(NULL, (size_t)p->mesh->vertex_count, sizeof *p->local);
    for (i = 0; i < p->mesh->vertex_count; i++)
        p->local[i] = fsi_pose_local(w->world->body[p->id]->pose, p->mesh->vertices[i]);
}

/* Layers of 4 x 2 over the pool, each thing turned at random, none in reach of another, of a wall or of what is let
   go. */
static void add_pieces(ex_app *app, scene_of *w, int count)
{
    uint32_t state = 7;
    int i;
    for (i = 0; i < count; i++) {
        fsi_pose p;
        p.position = fsi_v3((fsi_real)(BEHIND + DAM + 0.25 + 0.48 * (i % 4)),
                            (fsi_real)(WIDTH * (0.25 + 0.5 * (i / 4 % 2))), (fsi_real)(POOL + 0.42 + 0.48 * (i / 8)));
        p.orientation =
            fsi_quat_from_axis_angle(fsi_v3((fsi_real)(random01(&state) - 0.5), (fsi_real)(random01(&state) - 0.5),
                                            (fsi_real)(random01(&state) - 0.5)),
                                     (fsi_real)(3 * random01(&state)));
        add_piece(app, w, (thing)((i + i / 4) % THINGS), p);
    }
}

/* ---- place ------------------------------------------------------------------------------------------------------ */

static fsi_box3 tank(void)
{
    fsi_box3 b;
    b.lo = fsi_v3(0, 0, 0);
    b.hi = fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, 3);
    return b;
}

/* The slope at the right: a prism, in both worlds. It is wider than the tank, so that nothing fits beside it. */
static void add_beach(ex_app *app, scene_of *w)
{
    const double over = 0.5, end = LENGTH + over;
    const double xz[6] = { SHORE, -0.05, end, -0.05, end, RISE * (end - SHORE) };
    const double angle = FSI_PI / 2;
    fsi_rigid_body_desc d = fsi_rigid_default_body_desc();
    fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
    fsi_rigid_shape s;
    fsi_pose up;
    shape prism = shape_empty();
    int id;
    shape_extrude(&prism, xz, 3, -WIDTH - over, over);
    up.position = fsi_v3(0, 0, 0);
    up.orientation = fsi_quat_from_axis_angle(fsi_v3(1, 0, 0), (fsi_real)angle); /* (x, y, z) becomes (x, -z, y) */
    shape_transform(&prism, 0, up);
    w->beach = shape_mesh(app, &prism, FSI_MESH_CLOSED, 0);
    shape_free(&prism);
    s = fsi_rigid_mesh(w->beach);
    d.kind = FSI_RIGID_STATIC;
    d.shapes = &s;
    d.shape_count = 1;
    ex_check(app, fsi_rigid_add_body(w->world, &d, &id));
    o.mesh = w->beach;
    o.slip = (fsi_real)w->slip;
    ex_check(app, fsi_wcsph_add_obstacle(w->water, &o, &id));
    ex_wcsph_watch(app, &w->tally, w->water, w->beach, NULL, id);
}

static void fill(ex_app *app, scene_of *w)
{
    const double dx = (double)w->water->desc.spacing;
    fsi_box3 pool = tank(), dam = tank(), low;
    dam.lo.x = (fsi_real)(dx * floor(BEHIND / dx + 0.5));
    dam.hi.x = (fsi_real)(dx * floor((BEHIND + DAM) / dx + 0.5));
    dam.hi.z = (fsi_real)WAVE;
    low = pool;
    low.hi.z = pool.hi.z = (fsi_real)POOL;
    low.hi.x = dam.lo.x;
    pool.lo.x = dam.hi.x;
    ex_check(app, fsi_wcsph_fill_box(w->water, dam, fsi_v3((fsi_real)RUN, 0, 0), NULL));
    ex_check(app, fsi_wcsph_fill_box(w->water, low, fsi_v3(0, 0, 0), NULL));
    ex_check(app, fsi_wcsph_fill_box(w->water, pool, fsi_v3(0, 0, 0), NULL));
}

static void make_scene(ex_app *app, scene_of *w, int count, double slip)
{
    fsi_rigid_desc r = fsi_rigid_default_desc();
    fsi_wcsph_desc d = fsi_wcsph_default_desc();
    memset(w, 0, sizeof *w);
    w->tally.world = 1;
    w->slip = slip;
    r.context = d.context = &app->context;
    r.domain = d.domain = tank();
    d.spacing = (fsi_real)(WIDTH / app->res);
    d.depth = (fsi_real)WAVE;
    d.domain_slip = 1;
    d.domain_restitution = (fsi_real)0.2; /* else a film stays on walls that the water leaves */
    ex_check(app, fsi_rigid_create(&w->world, &r));
    ex_check(app, fsi_wcsph_create(&w->water, &d));
    w->ring = make_ring(app);
    w->beams = make_beams(app);
    add_beach(app, w);
    fill(app, w);
    add_pieces(app, w, count);
    ex_check(app, fsi_wcsph_set_world(w->water, w->world));
}

/* ---- what is looked at ------------------------------------------------------------------------------------------ */

/* Where the beach meets the water when it is still. */
static double waterline(const scene_of *w)
{
    const double volume = w->water->count * (double)w->water->particle_mass / (double)w->water->desc.density / WIDTH;
    double level = 0, held = 0;
    while (held < volume) {
        held += 0.001 * (SHORE + level / RISE);
        level += 0.001;
    }
    return level;
}

static fsi_vec3 place_of(const scene_of *w, int k) { return w->world->body[w->piece[k].id]->pose.position; }

static int highest_is_below(const scene_of *w, int k, double level)
{
    const piece *p = &w->piece[k];
    int i;
    for (i = 0; i < p->mesh->vertex_count; i++)
        if ((double)fsi_pose_point(w->world->body[p->id]->pose, p->local[i]).z > level) return 0;
    return 1;
}

static void finish(ex_app *app, const scene_of *w, int touching, double deepest)
{
    const double level = waterline(w);
    const fsi_box3 box = tank();
    int k, astray = 0, ashore = 0, sunk = 0;
    for (k = 0; k < w->pieces; k++) {
        const fsi_vec3 x = place_of(w, k);
        astray += !fsi_box3_overlap(box, fsi_box3_grow(fsi_box3_empty(), x));
        ashore += (double)x.x > SHORE + level / RISE;
        sunk += highest_is_below(w, k, level);
    }
    ex_figure(app, "bodies", "%.0f", w->pieces);
    ex_figure(app, "touching", "%.0f", touching);
    ex_figure(app, "deepest", "%.4f", deepest);
    ex_figure(app, "astray", "%.0f", astray);
    ex_figure(app, "ashore", "%.0f", ashore);
    ex_figure(app, "sunk", "%.0f", sunk);
}

static void draw(ex_app *app, ex_scene *scene, fsi_surface *skin, const scene_of *w, int frame)
{
    int k, i;
    ex_draw_particles(app, scene, skin, w->water->position, w->water->count);
    for (k = 0; k < w->pieces; k++) {
        const piece *p = &w->piece[k];
        fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)p->mesh->vertex_count, sizeof *x);
        for (i = 0; i < p->mesh->vertex_count; i++) x[i] = fsi_pose_point(w->world->body[p->id]->pose, p->local[i]);
        ex_draw_mesh(scene, x, NULL, p->mesh->vertex_count, p->mesh->faces, p->mesh->face_count, color[p->what]);
        free(x);
    }
    {
        static const int sides[6] = { 0, 1, 2, 0, 2, 3 };
        fsi_vec3 x[4];
        x[0] = fsi_v3((fsi_real)SHORE, 0, 0);
        x[1] = fsi_v3((fsi_real)LENGTH, 0, (fsi_real)(RISE * (LENGTH - SHORE)));
        x[2] = fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, (fsi_real)(RISE * (LENGTH - SHORE)));
        x[3] = fsi_v3((fsi_real)SHORE, (fsi_real)WIDTH, 0);
        ex_draw_mesh(scene, x, NULL, 4, sides, 2, 0xd9c6a0);
    }
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    ex_save_scene(app, scene, frame, "%.2f s", w->water->time);
}

static void end_scene(scene_of *w)
{
    int k;
    fsi_wcsph_destroy(w->water);
    fsi_rigid_destroy(w->world);
    for (k = 0; k < w->pieces; k++) {
        fsi_mesh_destroy(w->piece[k].mesh);
        free(w->piece[k].local);
    }
    fsi_mesh_destroy(w->ring);
    fsi_mesh_destroy(w->beams);
    fsi_mesh_destroy(w->beach);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    scene_of w;
    fsi_surface_desc skin = fsi_surface_default_desc();
    fsi_surface *surface;
    int count = 14, frame, part, touching = 0;
    double deepest = 0, slip = 1, every = 0.05;

    ex_init(&app, "flotsam", "A wave carries crates, barrels, rings and beams up a beach.");
    app.res = 20;
    app.res_help = "particles across the tank: dx = 1.2 m / res";
    app.frames = 45;
    ex_int(&app, "bodies", &count, 1, MAX_BODIES, "things in the water");
    ex_real(&app, "slip", &slip, 0, 1, "e_t of things and beach");
    ex_real(&app, "every", &every, 1e-4, 1, "seconds between two pictures");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 12 || app.res > 400) ex_die("--res is not between 12 and 400");
    make_scene(&app, &w, count, slip);
    skin.context = &app.context;
    skin.spacing = w.water->desc.spacing;
    ex_check(&app, fsi_surface_create(&surface, &skin));
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, (fsi_real)1.1), 20, 18);

    for (frame = 0; frame < app.frames; frame++) {
        for (part = 1; part <= 5; part++) {
            ex_wcsph_step(&app, &w.tally, w.water, (frame + part / 5.0) * every - w.water->time);
            if (w.world->stats.touching > touching) touching = w.world->stats.touching;
            deepest = fmax(deepest, w.world->stats.max_depth);
        }
        app.sim_seconds = w.water->time;
        if (app.images) draw(&app, &scene, surface, &w, frame);
        ex_write_particles(&app, "water", frame, w.water->position, w.water->velocity, w.water->count);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_wcsph_hash(w.water) ^ fsi_rigid_hash(w.world);
    finish(&app, &w, touching, deepest);
    ex_wcsph_figures(&app, &w.tally, w.water);
    ex_wcsph_tally_end(&w.tally);
    ex_scene_end(&scene);
    fsi_surface_destroy(surface);
    end_scene(&w);
    return ex_end(&app);
}
