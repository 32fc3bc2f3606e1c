/* couple_gate.h - a column of water behind an elastic gate.
   SPDX-License-Identifier: MIT

   Antoci, Gallati and Sibilla 2007: rubber, 79 mm high, 5 mm thick, 12 MPa; 0.1 m of water, 0.14 m deep. Include
   test_couple.h first. The gate is a chain, clamped at its top; the wall above it goes on as pinned vertices:

         |           :           H = 0.2 m
         |~~~~~~~~~~~:           depth 0.14 m
         |           #  clamp    at 79 mm, in all cases
         |           |
         |___________|________   the gate's free end: on the floor, or `layer` cells above it */
#ifndef FSI_COUPLE_GATE_H
#define FSI_COUPLE_GATE_H

#define GATE 0.079       /* height [m] */
#define GATE_YOUNG 12e6  /* [Pa] */
#define GATE_THICK 5e-3  /* [m] */
#define GATE_EI (GATE_YOUNG * GATE_THICK * GATE_THICK * GATE_THICK / 12)

typedef struct gate_kind {
    double dx;           /* of the liquid's cells; a segment of the chain is as long, or a little less or more [m] */
    int rigid;           /* the wall above is a million times stiffer: the joint at the clamp bends over its free half
                            alone; 0: it is of the gate's material */
    double layer;        /* the liquid is kept so far from the chain [cells], which ends so far above the floor */
} gate_kind;

/* Vertices of the gate from its free end up, at x; then those of the wall. Returns which one is the clamp. */
TEST_FN int gate_chain(scene *c, const gate_kind *k, double x, double top)
{
    const double end = k->layer * k->dx, wall = top - GATE;
    const int n = (int)((GATE - end) / k->dx + 0.5), more = (int)(wall / k->dx + 0.5);
    int i;
    c->desc.dim = 2;
    c->desc.contact = 0;
    c->material[0].young = REAL(GATE_YOUNG);
    c->material[0].density = 1100;
    c->material[0].thickness = REAL(GATE_THICK);
    c->material[0].poisson = 0;
    c->material[1] = c->material[0];
    if (k->rigid) c->material[1].young = REAL(1e6 * GATE_YOUNG);
    scene_rod(c, n, v3(x, end, 0), v3(x, GATE, 0));
    c->now = 1;
    for (i = 1; i <= more; i++) {
        scene_vertex(c, x, GATE + wall * i / more, 0);
        scene_segment(c, n + i - 1, n + i);
    }
    return n;
}

TEST_FN void gate_hold(fsi_shell *s, int from, int to, int held)
{
    int i;
    for (i = from; i < to; i++) s->pinned[i] = (unsigned char)held;
}

/* ---- the gate alone -------------------------------------------------------------------------------------------- */

/* Way of the free end under `load` [N/m^2], at rest, without weight. */
TEST_FN double gate_bent(const gate_kind *k, double load)
{
    scene c = scene_empty();
    fsi_shell *s;
    double way;
    int clamp, i;
    c.desc.gravity = v3(0, 0, 0);
    c.desc.tolerance = REAL(1e-8);
    clamp = gate_chain(&c, k, 0, GATE + 4 * k->dx);
    s = scene_make(&c);
    gate_hold(s, clamp, s->vertex_count, 1);
    for (i = 0; i <= clamp; i++) s->force[i].x = REAL(load * GATE / clamp * (i == 0 || i == clamp ? 0.5 : 1));
    CHECK(fsi_shell_settle(s, 1000) == FSI_OK);
    way = (double)s->position[0].x;
    fsi_shell_destroy(s);
    scene_free(&c);
    return way;
}

/* EI theta'' = -load (GATE - s) cos theta from the clamp, where theta' = bend. Returns theta' at the end; way: of
   that. */
TEST_FN double gate__shoot(double load, double bend, double *way)
{
    const int n = 2000;
    const double h = GATE / n;
    double angle = 0;
    int i;
    for (i = 0, *way = 0; i < n; i++) { /* midpoint rule */
        const double half = angle + h / 2 * bend;
        const double half_bend = bend - h / 2 * load * (GATE - i * h) / GATE_EI * cos(angle);
        bend -= h * load * (GATE - (i + 0.5) * h) / GATE_EI * cos(half);
        angle += h * half_bend;
        *way += h * sin(half);
    }
    return bend;
}

/* Way of the free end of a beam that does not stretch, however far it bends. */
TEST_FN double gate_elastica(double load)
{
    double lo = 0, hi = load * GATE * GATE / GATE_EI, way;
    int i;
    for (i = 0; i < 60; i++) {
        const double mid = (lo + hi) / 2;
        if (gate__shoot(load, mid, &way) > 0) hi = mid;
        else lo = mid;
    }
    return way;
}

/* ---- the gate and the water ------------------------------------------------------------------------------------ */

typedef struct gate_run {
    double peak, time;   /* farthest way of the gate's end, and when [m, s] */
    double held;         /* force on gate and wall before the gate is let go, over rho g h^2/2 */
    double missing;      /* of the gate's momentum along x: change in a step less the impulses of liquid and pins, over
                            those of the liquid so far; largest */
} gate_run;

/* The gate is held until the water rests, with a viscosity that lets it; then it is let go. */
TEST_FN void gate_settle(pair *p, int clamp, double seconds, gate_run *r)
{
    const double depth = 0.14, h = 1e-3;
    int k, i, n = p->solid->vertex_count;
    double sum = 0;
    gate_hold(p->solid, 0, n, 1);
    p->l.viscosity = 5;
    CHECK(fsi_levelset_set_desc(p->water, &p->l) == FSI_OK);
    CHECK(fsi_levelset_set_volume(p->water, 0, 0.1 * depth) == FSI_OK);
    for (k = 0; k < (int)(seconds / h + 0.5); k++) if (!pair_step(p, h)) break;
    for (i = 0; i < n; i++) sum += (double)p->both->liquid_force[i].x;
    r->held = sum / (1000 * 9.81 * depth * depth / 2);
    p->l.viscosity = 0;
    CHECK(fsi_levelset_set_desc(p->water, &p->l) == FSI_OK);
    gate_hold(p->solid, 0, clamp, 0);
}

/* Way of the gate's end, which is `layer` beyond the chain's. */
TEST_FN double gate_way(const fsi_shell *s, double x, double layer)
{
    const fsi_vec3 a = s->position[0], b = s->position[1];
    return (double)a.x - x + layer * (double)(a.x - b.x) / apart(a, b);
}

/* A gate at x, and water up to it, which the coupling carves. Returns the vertex of the clamp. */
TEST_FN int gate_begin(pair *p, const gate_kind *kind, double x)
{
    fsi_box3 box;
    int clamp;
    pair_begin(p, 0);
    p->l.dx = REAL(kind->dx);
    p->l.n[0] = (int)(0.4 / kind->dx + 0.5);
    p->l.n[1] = (int)(0.2 / kind->dx + 0.5);
    p->l.surface_tension = 0;
    p->l.max_substeps = 1000;
    p->l.open_side[1] = 1;
    clamp = gate_chain(&p->c, kind, x, 0.2);
    pair_make_apart(p);
    box.lo = v3(0, 0, 0);
    box.hi = v3(x, 0.14, 0);
    CHECK(fsi_levelset_fill_box(p->water, box, v3(0, 0, 0), NULL) == FSI_OK);
    p->e.liquid = p->water;
    p->e.shell = p->solid;
    if (!CHECK(fsi_couple_create(&p->both, &p->e) == FSI_OK)) exit(1);
    p->least = 8;
    return clamp;
}

/* Settles for some seconds, then runs until the gate has swung back for 30 ms. */
TEST_FN gate_run gate_break(const gate_kind *kind, double settle)
{
    const double h = 1e-3, x = 0.1 + kind->dx;
    gate_run r;
    pair p;
    double given = 0;
    int clamp, k, i;
    memset(&r, 0, sizeof r);
    clamp = gate_begin(&p, kind, x);
    gate_settle(&p, clamp, settle, &r);

    for (k = 1; k * h < r.time + 0.03; k++) {
        const double before = p.solid->stats.momentum[0];
        double felt = 0, born = 0, way, off;
        if (!pair_step(&p, h)) break;
        for (i = 0; i < p.solid->vertex_count; i++) {
            felt += (double)p.both->liquid_force[i].x * h;
            if (i >= clamp) born += (double)(p.solid->pin_force[i].x - p.both->liquid_force[i].x) * h;
        }
        given += fabs(felt);
        off = fabs(p.solid->stats.momentum[0] - before - felt - born) / given;
        if (!(off <= r.missing)) r.missing = off; /* NaN stays */
        way = gate_way(p.solid, x, kind->layer * kind->dx);
        if (way > r.peak) {
            r.peak = way;
            r.time = k * h;
        }
    }
    pair_end(&p);
    return r;
}

#endif
