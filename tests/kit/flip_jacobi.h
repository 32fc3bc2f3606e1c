/* flip_jacobi.h - the pressure of fsi_flip.h by a fixed number of Jacobi sweeps, as in the paper, in 2D and without
   obstacles.
   SPDX-License-Identifier: MIT */
#ifndef FSI_FLIP_JACOBI_H
#define FSI_FLIP_JACOBI_H

#include "flip_project.h"
#include "test.h"

static int jacobi_sweeps;

/* A liquid cell: its neighbours in the box (-1: a wall) and 1/theta towards them. */
typedef struct jacobi_cell { int at, to[4]; double a[4], b; } jacobi_cell;

/* How far the surface is, from a liquid cell to its neighbour. */
TEST_FN double jacobi_theta(const fsi_pressure_flow *flow, int from, int to)
{
    const double in = -(double)flow->phi->value[from], out = (double)flow->phi->value[to];
    const double least = (double)flow->theta_min * (double)flow->phi->grid->dx, deep = fmax(in, least);
    return flow->cell[to] == FSI_CELL_AIR && out > 0 ? fmax(deep / (deep + out), (double)flow->theta_min) : 1;
}

/* The liquid cells of a flow in 2D and their right sides; returns how many. */
TEST_FN int jacobi_list(const fsi_pressure_flow *flow, jacobi_cell *list)
{
    const fsi_grid *g = flow->phi->grid;
    const double dx = (double)g->dx;
    int e, side, beside[6], count = 0;
    for (e = 0; e < g->block_count * g->block_cells; e++) {
        jacobi_cell *c = &list[count];
        if (flow->cell[e] != FSI_CELL_LIQUID) continue;
        fsi__blocks_beside(g, e / g->block_cells, beside);
        c->at = e;
        c->b = (double)flow->source->value[e];
        for (side = 0; side < 4; side++) {
            const int to = (int)fsi__entry_beside(g, e / g->block_cells, beside, e % g->block_cells, side);
            const int face = side & 1 ? to : e;
            c->to[side] = to >= 0 && fsi__fl_is_outside(g, to) ? -1 : to;
            c->a[side] = c->to[side] >= 0 ? 1 / jacobi_theta(flow, e, to) : 0;
            if (face >= 0) c->b -= (side & 1 ? 1 : -1) * (double)flow->u[side >> 1]->value[face] / dx;
        }
        c->b *= (double)flow->density * dx * dx / (double)flow->dt;
        count++;
    }
    return count;
}

/* The pressure by a fixed number of sweeps from 0, as in the paper: p_i = (b_i + sum p_j/theta_ij)/(sum 1/theta_ij). */
TEST_FN fsi_status jacobi_project(fsi_pressure *solver, fsi_pressure_flow *flow)
{
    const fsi_grid *g = flow->phi->grid;
    const size_t entries = (size_t)g->block_count * (size_t)g->block_cells;
    jacobi_cell *list;
    double *p, *next;
    int count, k, i, side;
    (void)solver;
    list = (jacobi_cell *)malloc((entries + 1) * sizeof *list);
    p = (double *)calloc(entries + 1, sizeof *p);
    next = (double *)calloc(entries + 1, sizeof *next);
    count = jacobi_list(flow, list);
    for (k = 0; k < jacobi_sweeps; k++) {
        double *old = p;
        for (i = 0; i < count; i++) {
            const jacobi_cell *c = &list[i];
            double sum = c->b, a = 0;
            for (side = 0; side < 4; side++) {
                if (c->to[side] >= 0) sum += c->a[side] * p[c->to[side]];
                a += c->a[side];
            }
            next[c->at] = a > 0 ? sum / a : 0;
        }
        p = next;
        next = old;
    }

    /* u -= dt/rho grad p: each face once, from above, or from below where there is air above. */
    for (i = 0; i < count; i++)
        for (side = 0; side < 4; side++) {
            const jacobi_cell *c = &list[i];
            const int to = c->to[side], face = side & 1 ? to : c->at;
            const double push = (double)flow->dt / (double)flow->density / (double)g->dx * c->a[side];
            if (to < 0 || (side & 1 && flow->cell[to] == FSI_CELL_LIQUID)) continue;
            flow->u[side >> 1]->value[face] += (fsi_real)((side & 1 ? 1 : -1) * push * (p[c->at] - p[to]));
        }
    for (i = 0; i < (int)entries; i++) flow->pressure->value[i] = (fsi_real)p[i];
    free(list);
    free(p);
    free(next);
    return FSI_OK;
}

#endif /* FSI_FLIP_JACOBI_H */
