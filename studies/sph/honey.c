/* cc -O3 -I. studies/sph/honey.c -lm -o honey && ./honey
   SPDX-License-Identifier: MIT

   A thread of honey, 10 Pa s, is pressed from a nozzle onto a plate. Where it lands it is compressed, buckles and lays
   itself down in coils. Nothing in the solver knows of that but viscosity, whose forces leave rotation alone, and a
   plate that the liquid sticks to. coils= counts the turns of the thread about the axis, just above the heap, coil_mm=
   is their mean radius. There is no surface tension here: a thread that gravity stretches to twice its length tears
   (--speed 0.1 shows it). */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_sph.h"

#define FRAME 0.0125   /* seconds between two pictures */
#define RADIUS 0.002   /* of the nozzle [m] */
#define NOZZLE 4       /* its length in particles; what is inside moves as the piston does */
#define SLABS 64

/* The thread just above the heap. */
typedef struct thread {
    int layers, samples;           /* pressed out so far; of the radius */
    double angle, turns, radius;   /* direction from the axis; turns so far; sum of radii [m] */
} thread;

/* Adds the layers that the piston has pushed into the nozzle by now. The first ones are pushed aside a little, round
   and round: no hand is steady. */
static void push(ex_app *app, fsi_sph *s, double height, double speed, thread *t)
{
    const double dx = (double)s->desc.spacing;
    int i, j, n = (int)(RADIUS / dx) + 1;
    for (; t->layers * dx <= speed * s->time; t->layers++) {
        double above = height + NOZZLE * dx - (speed * s->time - t->layers * dx),
               aside = t->layers < 40 ? 0.05 * speed : 0;
        for (j = -n; j <= n; j++) {
            for (i = -n; i <= n; i++) {
                fsi_vec3 x = fsi_v3(i * dx, j * dx, above),
                         v = fsi_v3(aside * cos(0.3 * t->layers), aside * sin(0.3 * t->layers), -speed);
                if (hypot(i, j) * dx < 1.02 * RADIUS) ex_check(app, fsi_sph_add_particles(s, &x, &v, 1));
            }
        }
    }
    for (i = 0; i < s->count; i++) if (s->position[i].z > height) s->velocity[i].z = -speed;
}

/* Height of the heap: above it slabs of two layers hold little more than the thread. */
static double heap_height(const fsi_sph *s)
{
    const double slab = 2 * (double)s->desc.spacing, most = 2 * 2 * FSI_PI * pow(RADIUS / (double)s->desc.spacing, 2);
    int count[SLABS] = { 0 }, i, k, top = 0;
    for (i = 0; i < s->count; i++) {
        k = (int)((double)s->position[i].z / slab);
        if (k >= 0 && k < SLABS) count[k]++;
    }
    for (k = 0; k < SLABS; k++) if (count[k] > most) top = k + 1;
    return top * slab;
}

/* Where the thread passes, three layers above the heap. */
static void follow(const fsi_sph *s, thread *t)
{
    const double dx = (double)s->desc.spacing, at = heap_height(s) + 3 * dx;
    double x = 0, y = 0, angle, turn;
    int i, n = 0;
    for (i = 0; i < s->count; i++) {
        if (fabs((double)s->position[i].z - at) > 1.5 * dx) continue;
        x += (double)s->position[i].x;
        y += (double)s->position[i].y;
        n++;
    }
    if (n == 0 || hypot(x, y) < 0.5 * dx * n) return; /* on the axis: no direction */
    angle = atan2(y, x) / (2 * FSI_PI);
    turn = t->samples ? angle - t->angle : 0;
    t->turns += turn - floor(turn + 0.5);
    t->angle = angle;
    t->radius += hypot(x, y) / n;
    t->samples++;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_sph *s;
    fsi_surface *skin;
    fsi_box3 view;
    thread t = { 0, 0, 0, 0, 0 };
    double viscosity = 10, speed = 0.5, height = 0.03;
    int frame;

    ex_init(&app, "honey", "A thread of honey coils.");
    app.res = 5;
    app.res_help = "particles across the thread";
    app.frames = 48;
    ex_real(&app, "viscosity", &viscosity, 0, 1e4, "[Pa s]");
    ex_real(&app, "speed", &speed, 0.01, 2, "of the thread as it leaves the nozzle [m/s]");
    ex_real(&app, "height", &height, 0.01, 0.2, "of the nozzle above the plate [m]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    desc.context = &app.context;
    desc.spacing = (fsi_real)(2 * RADIUS / app.res);
    desc.density = 1400;
    desc.viscosity = (fsi_real)viscosity;
    desc.depth = (fsi_real)0.01;
    desc.cfl = (fsi_real)0.5;
    desc.domain.lo = fsi_v3(-0.05, -0.05, 0);
    desc.domain.hi = fsi_v3(0.05, 0.05, 2 * height);
    ex_check(&app, fsi_sph_create(&s, &desc));
    view.lo = fsi_v3(-0.4 * height, -0.4 * height, 0);
    view.hi = fsi_v3(0.4 * height, 0.4 * height, height);
    skin = ex_particle_surface(&app, (double)desc.spacing);
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, view, 30, 12);
    scene.absorb = fsi_v3(30, 220, 1500);
    scene.scatter_rgb = 0xc46a08;

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            push(&app, s, height, speed, &t);
            ex_check(&app, fsi_sph_step(s, FRAME / 5));
            app.steps += s->stats.substeps;
            follow(s, &t);
        }
        app.sim_seconds = s->time;
        if (app.images) {
            ex_draw_particles(&app, &scene, skin, s->position, s->count);
            ex_save_scene(&app, &scene, frame, "%.2f s", s->time);
        }
        ex_write_particles(&app, "honey", frame, s->position, s->velocity, s->count);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_sph_hash(s);
    ex_figure(&app, "particles", "%.0f", s->count);
    ex_figure(&app, "inside", "%.0f", fsi_sph_count_inside(s, NULL));
    ex_figure(&app, "lost", "%.0f", ex_count_outside(s->position, s->count, s->desc.domain));
    ex_figure(&app, "coils", "%.1f", fabs(t.turns));
    ex_figure(&app, "coil_mm", "%.2f", t.samples ? 1000 * t.radius / t.samples : 0);
    ex_scene_end(&scene);
    fsi_surface_destroy(skin);
    fsi_sph_destroy(s);
    return ex_end(&app);
}
