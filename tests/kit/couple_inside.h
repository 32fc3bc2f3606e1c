/* couple_inside.h - looks into a substep of fsi_couple.h: momentum across the velocity correction, and its
   optimisation solved again by other rules.
   SPDX-License-Identifier: MIT

   For programs that bring their own bodies. In this order:
      #define FSI_IMPLEMENTATION
      struct fsi__ls_run;
      struct fsi__co_impl;
      struct fsi_pressure_flow;
      static void look_in(struct fsi__ls_run *run, int phase);
      static void look_at(struct fsi__co_impl *c, int when, const struct fsi_pressure_flow *flow);
      #define FSI__LS_AFTER_PHASE(run, phase) look_in(run, phase)
      #define FSI__CO_LOOK(c, when, flow) look_at(c, when, flow)
      #include "../fsi_couple.h"
   then kit/test.h, kit/test_shell.h, kit/test_couple.h, kit/couple_cases.h and this. look_in and look_at are yours. */
#ifndef FSI_COUPLE_INSIDE_H
#define FSI_COUPLE_INSIDE_H

/* ---- momentum --------------------------------------------------------------------------------------------------- */

/* Wet share of the way between the two centres at a face. */
TEST_FN double wet_share(const fsi_pressure_flow *flow, int at, long long below)
{
    const double upper = (double)flow->phi->value[at], lower = (double)flow->phi->value[below];
    const double wet = fmin(fmin(upper, lower), -(double)flow->theta_min * (double)flow->phi->grid->dx);
    return flow->cell[at] == FSI_CELL_LIQUID && flow->cell[below] == FSI_CELL_LIQUID
               ? 1
               : fmax((double)flow->theta_min, wet / (wet - fmax(upper, lower)));
}

/* Momentum of the liquid along an axis, with the mass that the projection gives each face: whole between two cells of
   liquid, the wet share at the surface. */
TEST_FN double flow_momentum(const fsi_pressure_flow *flow, fsi_field *const *u, int axis)
{
    const fsi_grid *g = flow->phi->grid;
    const double cell = (double)flow->density * (double)g->dx * (double)g->dx * (g->dim == 3 ? (double)g->dx : 1);
    double sum = 0;
    int at;
    for (at = 0; at < g->block_count * g->block_cells; at++) {
        const long long below = fsi__co_below(g, at, axis);
        if (below < 0 || (flow->cell[at] != FSI_CELL_LIQUID && flow->cell[below] != FSI_CELL_LIQUID)) continue;
        sum += cell * wet_share(flow, at, below) * (double)u[axis]->value[at];
    }
    return sum;
}

/* The same with what the coupling takes for the mass where a face moves with the solid. */
TEST_FN double liquid_momentum(const fsi__co_impl *c, const fsi_pressure_flow *flow, fsi_field *const *u, int axis)
{
    double sum = flow_momentum(flow, u, axis);
    int k;
    for (k = 0; k < c->faces; k++) {
        const fsi__co_face *f = &c->face[k];
        if (f->axis == axis)
            sum += (f->mass - c->density * c->volume *
                                  wet_share(flow, f->entry, fsi__co_below(flow->phi->grid, f->entry, f->axis))) *
                   (double)u[axis]->value[f->entry];
    }
    return sum;
}

TEST_FN double solid_momentum(const fsi__sh_impl *sh, int axis)
{
    double sum = 0;
    int i;
    for (i = 0; i < sh->model.vertices; i++) sum += sh->model.mass[i] * sh->next.v[3 * i + axis];
    return sum;
}

/* Of the solid before velocities are made to agree: where inertia, forces and what the substep's first projection gave
   it would have led it. */
TEST_FN double predicted_momentum(const fsi__co_impl *c, int axis)
{
    const fsi__sh_impl *m = fsi__sh_of(c->shell);
    double sum = 0;
    int i;
    for (i = 0; i < m->model.vertices; i++) sum += m->model.mass[i] * (m->fixed[3 * i + axis] ? m->next.v[3 * i + axis]
        : (m->aim[3 * i + axis] - m->start_q[3 * i + axis]) / c->sh->h) + c->given[3 * i + axis];
    return sum;
}

/* pushed: samples within range; largest of all corrections [kg m/s]: what the liquid got; what both gained or lost */
typedef struct correction_tally { int projections, released, pushed; double exchanged, gained; } correction_tally;

/* Of FSI__CO_PROJECTS and FSI__CO_PROJECTED, once positions are found: momentum of both before and after. */
TEST_FN void watch_correction(const fsi__co_impl *c, int when, const fsi_pressure_flow *flow, correction_tally *t)
{
    static double before[3];
    double got = 0, gained = 0;
    const int dim = c->liquid->grid->dim;
    int a;
    for (a = 0; a < dim && when == FSI__CO_PROJECTS; a++) before[a] = predicted_momentum(c, a);
    if (when != FSI__CO_PROJECTED) return;
    for (a = 0; a < dim; a++) { /* u* is kept in next_u, and the faces are known now */
        const double liquid = liquid_momentum(c, flow, flow->u, a) - liquid_momentum(c, flow, c->ls->next_u, a);
        const double both = liquid + solid_momentum(fsi__sh_of(c->shell), a) - before[a];
        got += liquid * liquid;
        gained += both * both;
    }
    t->projections++;
    t->released += c->stats.released;
    t->pushed += c->pushed;
    t->exchanged = fmax(t->exchanged, sqrt(got));
    t->gained = fmax(t->gained, sqrt(gained));
}

/* ---- the optimisation by other rules ---------------------------------------------------------------------------- */

/* How to solve it. paper_mass: an unknown weighs as its share of liquid, a thousandth in air, anew at each iteration;
   else all weigh the same. search: steps are cut by the sweep of samples and by a line search; else they are taken
   whole. */
typedef struct newton_rule { int paper_mass, search; } newton_rule;
/* cut: steps that the search shortened; pierced: a step led a sample into the liquid; spent: not done after 30 */
typedef struct newton_end { int steps, cut, pierced, spent; } newton_end;

enum { NEWTON_MOST = 30, NEWTON_ROWS = 160 };

typedef struct newton_row { int cell[27]; double weight[27], fixed; } newton_row; /* d = fixed + sum weight phi[cell] */

/* The minimisation of a substep whose samples are all held: phi alone is unknown. */
typedef struct newton_problem {
    const fsi__co_impl *c;
    int cells, rows, parts;
    double *phi, *step, *mass, *gradient, *slope;
    newton_row *row;
    double h[NEWTON_ROWS], mu[NEWTON_ROWS];
} newton_problem;

TEST_FN double row_distance(const newton_row *r, const double *phi, double fixed)
{
    int i;
    for (i = 0; i < 27; i++) if (r->cell[i] >= 0) fixed += r->weight[i] * phi[r->cell[i]];
    return fixed;
}

/* As it stands where the library begins: phi of the last substep. */
TEST_FN newton_problem newton_begin(const fsi__co_impl *c)
{
    newton_problem p;
    int k, i;
    memset(&p, 0, sizeof p);
    p.c = c;
    p.cells = c->cells;
    p.parts = c->parts;
    p.phi = (double *)calloc(5 * (size_t)c->cells, sizeof(double));
    p.row = (newton_row *)calloc((size_t)c->samples, sizeof *p.row);
    if (!p.phi || !p.row) abort();
    p.step = p.phi + c->cells;
    p.mass = p.step + c->cells;
    p.gradient = p.mass + c->cells;
    p.slope = p.gradient + c->cells;
    for (i = 0; i < c->cells; i++) p.phi[i] = c->cell[i].value;
    for (k = 0; k < c->samples && p.rows + p.parts < NEWTON_ROWS; k++) {
        fsi__co_contact t;
        newton_row *r = &p.row[p.rows];
        double x[3], d;
        fsi__co_place(&c->sample[k], c->sh->now, x);
        d = fsi__co_distance(c, NULL, x, 0, &t);
        if (!(d < 6 * c->dx)) continue;
        memcpy(r->cell, t.cell, sizeof r->cell);
        memcpy(r->weight, t.weight, sizeof r->weight);
        r->fixed = d - row_distance(r, p.phi, 0);
        p.rows++;
    }
    return p;
}

TEST_FN void newton_free(newton_problem *p)
{
    free(p->phi);
    free(p->row);
}

/* Energy, barrier and what volumes lack, `way` along the step; without mu the energy alone. Infinite where a sample is
   in the liquid. */
TEST_FN double newton_merit(newton_problem *p, double way)
{
    const fsi__co_impl *c = p->c;
    double sum = 0;
    int i, k;
    for (k = 0; k < p->parts; k++) p->h[k] = -c->part[k].missing;
    for (i = 0; i < p->cells; i++) {
        const fsi__co_cell *q = &c->cell[i];
        const double value = p->phi[i] + way * p->step[i], off = value - q->target;
        sum += p->mass[i] / 2 * off * off;
        if (q->component >= 0) p->h[q->component] += q->weight * (fsi__ls_heaviside(value / c->dx) - q->share);
    }
    for (k = 0; k < p->rows; k++) {
        const double d = row_distance(&p->row[k], p->phi, p->row[k].fixed) + way * row_distance(&p->row[k], p->step, 0);
        if (!(d > 0)) return HUGE_VAL;
        sum += c->stiffness * fsi_barrier_at(d, c->range).value;
    }
    for (k = 0; k < p->parts; k++) sum += p->mu[k] * fabs(p->h[k]);
    return sum;
}

/* Masses, gradient and slopes of the volumes where phi is. */
TEST_FN void newton_differentiate(newton_problem *p, newton_rule rule)
{
    const fsi__co_impl *c = p->c;
    int i, k;
    for (i = 0; i < p->cells; i++) {
        const double share = fsi__ls_heaviside(p->phi[i] / c->dx);
        p->mass[i] = c->inertia * (rule.paper_mass ? 0.999 * share + 0.001 : 1);
        p->gradient[i] = p->mass[i] * (p->phi[i] - c->cell[i].target);
        p->slope[i] = -2 * share * (1 - share) * c->cell[i].weight / c->dx;
        p->step[i] = 0;
    }
    for (k = 0; k < p->rows; k++) {
        const newton_row *r = &p->row[k];
        const double d = row_distance(r, p->phi, r->fixed),
                     pull = d < c->range ? c->stiffness * fsi_barrier_at(d, c->range).slope : 0;
        for (i = 0; i < 27; i++) if (r->cell[i] >= 0) p->gradient[r->cell[i]] += pull * r->weight[i];
    }
}

/* One row of R of coupling.md 5.6: sqrt(beta) times the gradient of a sample's distance, or the slope of a component's
   volume. */
TEST_FN void newton_fill_row(const newton_problem *p, int k, double *row)
{
    const fsi__co_impl *c = p->c;
    int i;
    memset(row, 0, (size_t)p->cells * sizeof *row);
    if (k < p->rows) {
        const newton_row *r = &p->row[k];
        const double d = row_distance(r, p->phi, r->fixed),
                     root = d < c->range ? sqrt(c->stiffness * fsi_barrier_at(d, c->range).curvature) : 0;
        for (i = 0; i < 27; i++) if (r->cell[i] >= 0) row[r->cell[i]] += root * r->weight[i];
    } else for (i = 0; i < p->cells; i++) if (c->cell[i].component == k - p->rows) row[i] = p->slope[i];
}

/* (R M^-1 R' + identity for samples) y = b by Gauss without pivots, as it is positive definite; then step = -M^-1
   (gradient + R' y). */
TEST_FN void newton_solve(newton_problem *p)
{
    const int n = p->rows + p->parts;
    const size_t w = (size_t)n, cells = (size_t)p->cells;
    double *row = (double *)malloc((w * cells + w * w + w) * sizeof(double)), *a, *b;
    int i, j, k;
    if (!row) abort();
    a = row + w * cells;
    b = a + w * w;
    for (k = 0; k < n; k++) newton_fill_row(p, k, row + (size_t)k * cells);
    for (i = 0; i < n; i++) {
        const double *ri = row + (size_t)i * cells;
        b[i] = i < p->rows ? 0 : p->h[i - p->rows];
        for (k = 0; k < p->cells; k++) b[i] -= ri[k] * p->gradient[k] / p->mass[k];
        for (j = 0; j <= i; j++) {
            const double *rj = row + (size_t)j * cells;
            double sum = i == j && i < p->rows ? 1 : 0;
            for (k = 0; k < p->cells; k++) sum += ri[k] * rj[k] / p->mass[k];
            a[(size_t)i * w + (size_t)j] = a[(size_t)j * w + (size_t)i] = sum;
        }
        /* a component without a surface */
        if (!(a[(size_t)i * w + (size_t)i] > 0)) a[(size_t)i * w + (size_t)i] = 1, b[i] = 0;
    }
    for (i = 0; i < n; i++) for (j = i + 1; j < n; j++) {
        const double f = a[(size_t)j * w + (size_t)i] / a[(size_t)i * w + (size_t)i];
        for (k = i; k < n; k++) a[(size_t)j * w + (size_t)k] -= f * a[(size_t)i * w + (size_t)k];
        b[j] -= f * b[i];
    }
    for (i = n - 1; i >= 0; i--) {
        for (j = i + 1; j < n; j++) b[i] -= a[(size_t)i * w + (size_t)j] * b[j];
        b[i] /= a[(size_t)i * w + (size_t)i];
    }
    for (k = 0; k < p->cells; k++) p->step[k] = -p->gradient[k];
    for (i = 0; i < n; i++) for (k = 0; k < p->cells; k++) p->step[k] -= row[(size_t)i * cells + (size_t)k] * b[i];
    for (k = 0; k < p->cells; k++) p->step[k] /= p->mass[k];
    for (i = 0; i < p->parts; i++) p->mu[i] = fmax(p->mu[i], 2 * fabs(b[p->rows + i]));
    free(row);
}

/* How far along the step: a tenth of every distance is kept, and the merit falls. */
TEST_FN double newton_search(newton_problem *p)
{
    double t = 1, before, slope = 0;
    int k;
    for (k = 0; k < p->rows; k++) { /* the samples are held: d is linear in the step */
        const double d = row_distance(&p->row[k], p->phi, p->row[k].fixed),
                     change = row_distance(&p->row[k], p->step, 0);
        if (d + change < 0.1 * d) t = fmin(t, -0.9 * d / change);
    }
    before = newton_merit(p, 0);
    for (k = 0; k < p->cells; k++) slope += p->gradient[k] * p->step[k];
    for (k = 0; k < p->parts; k++) slope -= p->mu[k] * fabs(p->h[k]);
    for (k = 0; k < 20 && !(newton_merit(p, t) <= before + 1e-4 * t * slope + 1e-13 * fabs(before)); k++) t /= 2;
    return t;
}

/* Done when a step would move phi near the surface by less than 1e-4 dx and volumes are right to 1e-8 (coupling.md
   5.6). */
TEST_FN newton_end newton_run(const fsi__co_impl *c, newton_rule rule)
{
    newton_problem p = newton_begin(c);
    newton_end end = { 0, 0, 0, 1 };
    for (; end.steps < NEWTON_MOST; end.steps++) {
        double t, most = 0, off = 0;
        int i;
        newton_differentiate(&p, rule);
        newton_merit(&p, 0);
        newton_solve(&p);
        for (i = 0; i < p.cells; i++) if (fabs(p.phi[i]) < 2 * c->dx) most = fmax(most, fabs(p.step[i]));
        for (i = 0; i < p.parts; i++) if (p.mu[i] > 0) off = fmax(off, fabs(p.h[i]) / c->part[i].volume);
        end.spent = !(most < 1e-4 * c->dx && off < 1e-8);
        if (!end.spent) break;
        t = rule.search ? newton_search(&p) : 1;
        end.cut += t < 1;
        for (i = 0; i < p.cells; i++) p.phi[i] += t * p.step[i];
        for (i = 0; i < p.rows; i++) if (!(row_distance(&p.row[i], p.phi, p.row[i].fixed) > 0)) end.pierced = 1;
        if (end.pierced) break;
    }
    end.spent = end.spent && !end.pierced;
    newton_free(&p);
    return end;
}

/* Problems solved again by all four rules; zeros at first. */
static const newton_rule newton_rules[4] = { { 0, 1 }, { 0, 0 }, { 1, 1 }, { 1, 0 } };
typedef struct newton_tally { int problems, steps[4], cut[4], pierced[4], spent[4]; } newton_tally;

TEST_FN void newton_again(const fsi__co_impl *c, newton_tally *t)
{
    int k;
    t->problems++;
    for (k = 0; k < 4; k++) {
        const newton_end end = newton_run(c, newton_rules[k]);
        t->steps[k] += end.steps;
        t->cut[k] += end.cut;
        t->pierced[k] += end.pierced;
        t->spent[k] += end.spent;
    }
}

#endif
