/* couple_rest.h - pools and puddles on held and on sprung solids, and how much they still move.
   SPDX-License-Identifier: MIT

   Include test_couple.h first. */
#ifndef FSI_COUPLE_REST_H
#define FSI_COUPLE_REST_H

static const double RHO = 1000, G = 9.81, FLOOR = 0.3, THICK = 5e-3, SIDE = 0.14;

/* A pool on a sheet from wall to wall of a tank of 1 m (in 2D: on a chain); vertices one cell apart. */
typedef struct tank {
    pair p;
    int n, dim, springs;
    double weight, depth, load; /* of the liquid in the tank [N]; [m]; of the sheet [N] */
} tank;

TEST_FN fsi_vec3 up(const tank *t, double z) { return t->dim == 3 ? v3(0, 0, z) : v3(0, z, 0); }

/* shift: of the sheet from a face of the grid, in cells. */
TEST_FN void tank_begin(tank *t, int dim, int n, double depth, double shift)
{
    const double height = FLOOR + shift / n;
    memset(t, 0, sizeof *t);
    pair_begin(&t->p, n);
    t->n = n;
    t->dim = t->p.l.dim = t->p.c.desc.dim = dim;
    t->depth = depth;
    t->p.l.n[2] = dim == 3 ? n : 1;
    t->p.l.dx = REAL(1.0 / n);
    t->p.l.surface_tension = 0;
    t->p.l.gravity = t->p.c.desc.gravity = up(t, -G);
    t->p.c.material[0].thickness = REAL(THICK);
    t->p.c.material[0].young = REAL(1e7);
    t->load = G * THICK * (double)t->p.c.material[0].density;
    if (dim == 2) scene_rod(&t->p.c, n, v3(0, height, 0), v3(1, height, 0));
    else {
        const int first = scene_sheet(&t->p.c, RIGHT, n, n, 1, 1);
        scene_shift(&t->p.c, first, 0, 0, height);
    }
    pair_make_apart(&t->p);
}

TEST_FN void tank_couple(tank *t)
{
    t->p.e.liquid = t->p.water;
    t->p.e.shell = t->p.solid;
    CHECK(fsi_couple_create(&t->p.both, &t->p.e) == FSI_OK);
    t->weight = RHO * G * t->p.water->stats.volume;
}

/* Liquid to so high above the floor of the tank, and the coupling. */
TEST_FN void tank_fill(tank *t)
{
    const double height = (double)(t->dim == 3 ? t->p.solid->position[0].z : t->p.solid->position[0].y);
    fsi_box3 box;
    box.lo = up(t, height);
    box.hi = t->dim == 3 ? v3(1, 1, FLOOR + t->depth) : v3(1, FLOOR + t->depth, 0);
    CHECK(fsi_levelset_fill_box(t->p.water, box, v3(0, 0, 0), NULL) == FSI_OK);
    tank_couple(t);
}

/* The chain hangs down by `sag` in its middle, as a parabola; liquid above it to its ends plus the depth. */
TEST_FN void tank_fill_bent(tank *t, double sag)
{
    fsi_shell *s = t->p.solid;
    int i;
    for (i = 0; i <= t->n; i++) {
        const double x = (double)s->position[i].x;
        s->position[i].y -= REAL(4 * sag * x * (1 - x));
        s->target[i] = s->position[i];
    }
    for (i = 0; i < t->n; i++) {
        fsi_box3 box;
        box.lo = v3((i - 0.01) / t->n, fmax((double)s->position[i].y, (double)s->position[i + 1].y), 0);
        box.hi = v3((i + 1.0) / t->n, FLOOR + t->depth, 0);
        CHECK(fsi_levelset_fill_box(t->p.water, box, v3(0, 0, 0), NULL) == FSI_OK);
    }
    tank_couple(t);
}

/* A spring on a vertex, from so far away. */
TEST_FN void add_spring(tank *t, int vertex, fsi_vec3 away, double stiffness, double load)
{
    fsi_shell_spring_desc d = fsi_shell_default_spring_desc();
    int id = -1;
    d.vertex = vertex;
    d.anchor = fsi_v3_add(t->p.solid->position[vertex], away);
    d.stiffness = REAL(stiffness);
    d.rest_length = REAL((double)fsi_v3_norm(away) - load / stiffness);
    CHECK(fsi_shell_add_spring(t->p.solid, &d, &id) == FSI_OK);
}

/* Each vertex hangs on a spring that bears its share of sheet and liquid; the rim is kept where it is in the plane. */
TEST_FN void tank_hang(tank *t, double stiffness)
{
    const fsi_shell *s = t->p.solid;
    const double load = RHO * G * t->depth + t->load;
    int i;
    for (i = 0; i < s->vertex_count; i++) {
        const double x = (double)s->position[i].x, y = t->dim == 3 ? (double)s->position[i].y : 0.5;
        const int at_x = x < 1e-6 ? -1 : x > 1 - 1e-6, at_y = y < 1e-6 ? -1 : y > 1 - 1e-6;
        const double share = (at_x ? 0.5 : 1) * (at_y ? 0.5 : 1) / (t->dim == 3 ? t->n * t->n : t->n);
        add_spring(t, i, up(t, 10), stiffness * share, load * share);
        t->springs = i + 1;
    }
    for (i = 0; i < s->vertex_count; i++) {
        const double x = (double)s->position[i].x, y = t->dim == 3 ? (double)s->position[i].y : 0.5;
        if (x < 1e-6 || x > 1 - 1e-6) add_spring(t, i, v3(x < 0.5 ? -10 : 10, 0, 0), 1e6, 0);
        if (y < 1e-6 || y > 1 - 1e-6) add_spring(t, i, v3(0, y < 0.5 ? -10 : 10, 0), 1e6, 0);
    }
}

/* What the springs that bear it pull with, less the sheet, over the weight of the liquid. */
TEST_FN double support(const tank *t)
{
    double sum = -t->load;
    int id;
    for (id = 0; id < t->springs; id++) {
        fsi_vec3 f;
        CHECK(fsi_shell_spring_force(t->p.solid, id, &f) == FSI_OK);
        sum += (double)(t->dim == 3 ? f.z : f.y);
    }
    return sum / t->weight;
}

/* Sum of what the liquid does to the sheet, downwards, over its weight. */
TEST_FN double felt(const tank *t)
{
    double sum = 0;
    int i;
    for (i = 0; i < t->p.solid->vertex_count; i++)
        sum -= (double)(t->dim == 3 ? t->p.both->liquid_force[i].z : t->p.both->liquid_force[i].y);
    return sum / t->weight;
}

/* Sum of what holds the sheet against its own weight and the liquid, over both. */
TEST_FN double held(const tank *t)
{
    double sum = felt(t) * t->weight;
    int i;
    for (i = 0; i < t->p.solid->vertex_count; i++)
        sum += (double)(t->dim == 3 ? t->p.solid->pin_force[i].z : t->p.solid->pin_force[i].y);
    return sum / (t->weight + t->load);
}

TEST_FN double energy(const tank *t)
{
    const fsi_levelset_stats *l = &t->p.water->stats;
    const fsi_shell_stats *s = &t->p.solid->stats;
    return l->kinetic_energy + l->potential_energy + s->kinetic_energy + s->elastic_energy + s->potential_energy;
}

/* Largest kinetic energy of the liquid in the last quarter of so many seconds, and after calm_at of them; rise of all
   energy after that, of rho g H V; mean support then. */
typedef struct calm { double moves, most, rises, bears; } calm;

TEST_FN calm tank_run(tank *t, double dt, double seconds, double calm_at)
{
    calm c = { 0, 0, 0, 0 };
    const double whole = t->weight * t->depth;
    double least = HUGE_VAL;
    int k, count = 0;
    const int steps = (int)(seconds / dt + 0.5);
    for (k = 1; k <= steps; k++) {
        if (!pair_step(&t->p, dt)) break;
        if (k > 0.75 * steps) c.moves = fmax(c.moves, t->p.water->stats.kinetic_energy / whole);
        if (k * dt <= calm_at) continue;
        c.most = fmax(c.most, t->p.water->stats.kinetic_energy / whole);
        least = fmin(least, energy(t));
        c.rises = fmax(c.rises, (energy(t) - least) / whole);
        c.bears += t->springs ? support(t) : 1;
        count++;
    }
    c.bears /= count ? count : 1;
    CHECK(k > steps && count > 0);
    return c;
}

/* A box of 0.14 m, so many cells wide, for puddles. */
TEST_FN void puddle_desc(tank *t, int n)
{
    memset(t, 0, sizeof *t);
    pair_begin(&t->p, n);
    t->n = n;
    t->dim = 2;
    t->p.l.dx = REAL(SIDE / n);
    t->p.l.viscosity = REAL(0.1);
    t->p.l.surface_tension = REAL(0.07);
    t->p.c.material[0].young = REAL(1e6);
}

/* Liquid and solids as described, with liquid in a box. */
TEST_FN void puddle_fill(tank *t, fsi_box3 box, int is_held)
{
    pair_make_apart(&t->p);
    if (is_held) pair_pin(&t->p);
    CHECK(fsi_levelset_fill_box(t->p.water, box, v3(0, 0, 0), NULL) == FSI_OK);
    tank_couple(t);
}

/* A puddle so many cells high and wide on a chain from wall to wall, so many cells above a face of the grid, held or
   not. */
TEST_FN void puddle_begin(tank *t, int n, double above, double high, double wide, double tension, int is_held)
{
    const double dx = SIDE / n, floor_at = (floor(0.3 * n) + above) * dx;
    fsi_box3 box;
    box.lo = v3((SIDE - wide * dx) / 2, floor_at, 0);
    box.hi = v3((SIDE + wide * dx) / 2, floor_at + (high + 1.5) * dx, 0); /* 1.5 dx are taken away */
    puddle_desc(t, n);
    t->p.l.surface_tension = REAL(tension);
    scene_rod(&t->p.c, n, v3(0, floor_at, 0), v3(SIDE, floor_at, 0));
    puddle_fill(t, box, is_held);
}

/* Speed of the fastest face of a liquid cell [m/s]. */
TEST_FN double fastest_face(const tank *t)
{
    const fsi_levelset *w = t->p.water;
    const fsi_grid *g = w->grid;
    double most = 0;
    int b, e, a, side, corner[3];
    for (b = 0; b < g->block_count; b++) for (e = 0; e < g->block_cells; e++) {
        if (!(w->phi->value[b * g->block_cells + e] < 0)) continue;
        fsi_grid_corner(g, b, corner);
        for (a = 0; a < t->dim; a++) for (side = 0; side < 2; side++) {
            const long long f = fsi_grid_entry(g, corner[0] + (e & 7) + (a == 0 && side),
                corner[1] + (e >> 3 & 7) + (a == 1 && side), corner[2] + (e >> 6) + (a == 2 && side));
            if (f >= 0) most = fmax(most, fabs((double)w->u[a]->value[f]));
        }
    }
    return most;
}

/* When, in so many seconds, the fastest face was last above 1 mm/s [s]. Two quiet seconds do not prove rest: what
   creeps may slip. */
TEST_FN double last_motion(tank *t, double rate, double seconds)
{
    const int steps = (int)(seconds * rate + 0.5);
    double last = 0;
    int k;
    for (k = 1; k <= steps && pair_step(&t->p, 1 / rate); k++) if (fastest_face(t) > 1e-3) last = k / rate;
    CHECK(k > steps);
    return last;
}

#endif
