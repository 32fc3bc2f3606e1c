/* flip_monolithic.h - a full elastic body solved in one with the pressure of the liquid: what immersed bodies, which
   are split from it, are compared with.
   SPDX-License-Identifier: MIT

   The body is an obstacle of fsi_flip.h whose faces yield (`respond` of fsi_pressure.h). A step of length h is linearly
   implicit, with the forces f and their exact tangent K = -df/dx where the body is: v being its velocities, W the rows
   that give the normal velocity of a face from those of vertices, M_l the liquid of half a cell before a wall, u its
   velocity before the pressure, j the impulses of the pressure,

      (M + h^2 K + W^T M_l W) v' = M (v + h g) + h f + W^T M_l u + W^T j,      x' = x + h v'.

   Energy: mu V |F - R|^2 for each simplex, that of fsi_elastic.h where Poisson's ratio is 0.

   Include it before any other header of fsi, as flip_project.h. */
#ifndef FSI_FLIP_MONOLITHIC_H
#define FSI_FLIP_MONOLITHIC_H

#include "flip_project.h"
#include "flip_pools.h"

/* A face: its axis, the vertices and weights that its velocity is the mean of, the mass of liquid before it. */
typedef struct mono_face { int axis, vertex[4]; double weight[4], wet; } mono_face;

typedef struct monolithic {
    pool *p;
    const block *b;
    int id, obstacle;          /* of the body in the elastic simulator, which only keeps its surface; in the liquid */
    int n, faces, room;        /* unknowns: dim for each vertex */
    double h, mu;
    unsigned char *held;       /* vertices that do not move */
    double *mass, *volume, *gradient; /* of a vertex; of an element: 4 x 3 derivatives of its weights */
    double *x, *v, *right;     /* n: now; right side without the liquid */
    double *stiff, *factor, *work; /* n x n: M + h^2 K; with the liquid; 2 n */
    mono_face *face;
    double *impulse;           /* faces */
    fsi_real *velocity;
} monolithic;

static monolithic *mono; /* the one whose liquid is stepped */

/* Derivatives of the weights of a simplex, and its volume. */
TEST_FN double mono_gradients(int dim, const fsi_vec3 *x, double *h)
{
    fsi_mat3 edges, inverse;
    int k, c;
    memset(&edges, 0, sizeof edges);
    edges.m[8] = 1;
    for (k = 1; k <= dim; k++) {
        const fsi_vec3 d = fsi_v3_sub(x[k], x[0]);
        edges.m[k - 1] = d.x;
        edges.m[3 + k - 1] = d.y;
        if (dim == 3) edges.m[6 + k - 1] = d.z;
    }
    inverse = fsi_m3_inverse(edges);
    memset(h, 0, 12 * sizeof *h);
    for (k = 1; k <= dim; k++) for (c = 0; c < dim; c++) {
        h[3 * k + c] = (double)inverse.m[3 * (k - 1) + c];
        h[c] -= h[3 * k + c];
    }
    return (double)fsi_m3_det(edges) / (dim == 2 ? 2 : 6);
}

/* A block as it lies in a pool that it is no part of, and an obstacle at its surface. hold: vertices that do not move,
   kept. */
TEST_FN void mono_begin(monolithic *m, pool *p, const block *b, int id, unsigned char *hold)
{
    const int dim = b->dim;
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)b->vertices * sizeof *x);
    int e, k, c;
    memset(m, 0, sizeof *m);
    m->p = p;
    m->b = b;
    m->id = id;
    m->held = hold;
    m->n = dim * b->vertices;
    m->mu = (double)p->w.material.young / 2;
    CHECK(!((double)p->w.material.poisson > 0));
    m->mass = (double *)calloc((size_t)b->vertices, sizeof(double));
    m->volume = (double *)malloc((size_t)b->elements * sizeof(double));
    m->gradient = (double *)malloc(12 * (size_t)b->elements * sizeof(double));
    m->x = (double *)calloc(6 * (size_t)m->n, sizeof(double));
    m->v = m->x + m->n;
    m->right = m->v + m->n;
    m->work = m->right + m->n;
    m->stiff = (double *)malloc(2 * (size_t)m->n * (size_t)m->n * sizeof(double));
    m->factor = m->stiff + (size_t)m->n * (size_t)m->n;
    for (e = 0; e < b->elements; e++) {
        fsi_vec3 corner[4];
        for (k = 0; k <= dim; k++) corner[k] = b->x[b->element[(dim + 1) * e + k]];
        m->volume[e] = mono_gradients(dim, corner, m->gradient + 12 * e);
        for (k = 0; k <= dim; k++) m->mass[b->element[(dim + 1) * e + k]] +=
            (double)p->w.material.density * m->volume[e] / (dim + 1);
    }
    CHECK(fsi_elastic_vertices(p->w.s, id, x, NULL) == FSI_OK);
    for (k = 0; k < b->vertices; k++) for (c = 0; c < dim; c++)
        m->x[dim * k + c] = (double)(c == 0 ? x[k].x : c == 1 ? x[k].y : x[k].z);
    free(x);
    CHECK(fsi_flip_add_mesh(p->s, fsi_elastic_surface(p->w.s, id), &m->obstacle) == FSI_OK);
}

TEST_FN void mono_end(monolithic *m)
{
    CHECK(fsi_flip_remove_obstacle(m->p->s, m->obstacle) == FSI_OK);
    free(m->mass);
    free(m->volume);
    free(m->gradient);
    free(m->x);
    free(m->stiff);
    free(m->face);
    free(m->impulse);
    free(m->velocity);
}

/* The surface to x + h v. */
TEST_FN void mono_show(const monolithic *m, double h)
{
    const int dim = m->b->dim;
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)m->b->vertices * sizeof *x);
    int k;
    for (k = 0; k < m->b->vertices; k++) {
        const double *at = m->x + dim * k, *v = m->v + dim * k;
        x[k] = v3(at[0] + h * v[0], at[1] + h * v[1], dim == 3 ? at[2] + h * v[2] : 0);
    }
    CHECK(fsi_elastic_set_vertices(m->p->w.s, m->id, x, NULL) == FSI_OK);
    CHECK(fsi_elastic_surface(m->p->w.s, m->id) != NULL);
    free(x);
}

/* Forces of an element, added to `right` times h, and their tangent, added to `stiff` times h^2. */
TEST_FN void mono_element(monolithic *m, int e)
{
    const int dim = m->b->dim, *corner = m->b->element + (dim + 1) * e;
    const double *g = m->gradient + 12 * e, stiff = 2 * m->mu * m->volume[e];
    fsi_mat3 f, r, s, t;
    int k, c, a, l, d;
    memset(&f, 0, sizeof f);
    if (dim == 2) f.m[8] = 1;
    for (k = 0; k <= dim; k++) for (c = 0; c < dim; c++) for (a = 0; a < dim; a++)
        f.m[3 * c + a] += (fsi_real)(m->x[dim * corner[k] + c] * g[3 * k + a]);
    fsi_m3_polar(f, &r, &s);
    for (k = 0; k <= dim; k++) for (c = 0; c < dim; c++) for (a = 0; a < dim; a++)
        m->right[dim * corner[k] + c] -= m->h * stiff * (double)(f.m[3 * c + a] - r.m[3 * c + a]) * g[3 * k + a];

    /* dP = 2 mu (dF - dR), dR = R w x, (tr S - S) w = axial of R^T dF. */
    for (a = 0; a < 9; a++) t.m[a] = (a % 4 ? 0 : s.m[0] + s.m[4] + s.m[8]) - s.m[a];
    t = fsi_m3_inverse(t);
    for (l = 0; l <= dim; l++) for (d = 0; d < dim; d++) {
        fsi_mat3 turn, spin;
        fsi_vec3 w, row;
        row = fsi_v3((fsi_real)g[3 * l], (fsi_real)g[3 * l + 1], (fsi_real)g[3 * l + 2]);
        /* R^T e_d g^T has the axial vector g x (row d of R) */
        w = fsi_m3_mul_v3(t, fsi_v3_cross(row, fsi_v3(r.m[3 * d], r.m[3 * d + 1], r.m[3 * d + 2])));
        memset(&spin, 0, sizeof spin);
        spin.m[1] = -w.z;
        spin.m[2] = w.y;
        spin.m[3] = w.z;
        spin.m[5] = -w.x;
        spin.m[6] = -w.y;
        spin.m[7] = w.x;
        turn = fsi_m3_mul(r, spin);
        for (k = 0; k <= dim; k++) for (c = 0; c < dim; c++) for (a = 0; a < dim; a++)
            m->stiff[(dim * corner[k] + c) * m->n + dim * corner[l] + d] += m->h * m->h * stiff * g[3 * k + a]
                * ((c == d ? g[3 * l + a] : 0) - (double)turn.m[3 * c + a]);
    }
}

/* M + h^2 K, M (v + h g) + h f. */
TEST_FN void mono_predict(monolithic *m)
{
    const int dim = m->b->dim, n = m->n;
    const fsi_vec3 g = m->p->d.gravity;
    int i, e;
    memset(m->stiff, 0, (size_t)n * (size_t)n * sizeof(double));
    for (i = 0; i < n; i++) {
        const int c = i % dim;
        m->right[i] = m->mass[i / dim] * (m->v[i] + m->h * (double)(c == 0 ? g.x : c == 1 ? g.y : g.z));
        m->stiff[i * n + i] = m->mass[i / dim];
    }
    for (e = 0; e < m->b->elements; e++) mono_element(m, e);
}

/* The vertices and weights of a point at the surface, in the element that it is deepest in. */
TEST_FN void mono_locate(const monolithic *m, fsi_vec3 at, mono_face *face)
{
    const int dim = m->b->dim;
    double best = -1e30;
    int e, k, c;
    for (e = 0; e < m->b->elements; e++) {
        const int *corner = m->b->element + (dim + 1) * e;
        fsi_vec3 x[4];
        double h[12], weight[4], least = 1e30;
        for (k = 0; k <= dim; k++) {
            const double *y = m->x + dim * corner[k];
            x[k] = v3(y[0], y[1], dim == 3 ? y[2] : 0);
        }
        mono_gradients(dim, x, h);
        for (k = 0; k <= dim; k++) {
            const fsi_vec3 d = fsi_v3_sub(at, x[0]);
            weight[k] = (k == 0) + h[3 * k] * (double)d.x + h[3 * k + 1] * (double)d.y + h[3 * k + 2] * (double)d.z;
            least = fmin(least, weight[k]);
        }
        if (!(least > best)) continue;
        best = least;
        for (c = 0; c <= dim; c++) {
            face->vertex[c] = corner[c];
            face->weight[c] = weight[c];
        }
    }
}

/* Liquid of half a cell before a face, where no obstacle is on the one side and no liquid on the other. */
TEST_FN double mono_wet(const monolithic *m, const fsi_pressure_flow *flow, const fsi_grid_faces *f, int k, int axis)
{
    const fsi_grid *g = flow->phi->grid;
    const fsi_real *open = ((fsi__fl_impl *)m->p->s->impl)->open->value;
    const int e = f->entry[k], b = e / g->block_cells;
    const double full = (double)flow->density * pow((double)g->dx, g->dim);
    int beside[6], up;
    long long side[2];
    double sum = 0;
    fsi__blocks_beside(g, b, beside);
    side[0] = fsi__entry_beside(g, b, beside, e % g->block_cells, 2 * axis);
    side[1] = e;
    for (up = 0; up < 2 && side[0] >= 0; up++) {
        const long long wet = side[up], dry = side[1 - up];
        if (flow->cell[wet] != FSI_CELL_LIQUID || (double)open[dry] > 0
            || (flow->let_go[wet] >> (up ? axis : 3 + axis) & 1)) continue;
        sum += fmax((double)open[wet] - 0.5, 0) * full * (double)f->solid[k];
    }
    return sum;
}

/* The faces of the obstacle, and the matrix with their liquid; work becomes the velocities without the pressure. */
TEST_FN void mono_meet(monolithic *m, const fsi_pressure_flow *flow, const fsi_grid_faces *f)
{
    const fsi_grid *g = flow->phi->grid;
    const int dim = m->b->dim, n = m->n;
    int a, k, i, j, c;
    if (f->count > m->room) {
        m->room = 2 * f->count;
        m->face = (mono_face *)realloc(m->face, (size_t)m->room * sizeof *m->face);
        m->impulse = (double *)realloc(m->impulse, (size_t)m->room * sizeof *m->impulse);
        m->velocity = (fsi_real *)realloc(m->velocity, (size_t)m->room * sizeof *m->velocity);
    }
    m->faces = f->count;
    memcpy(m->factor, m->stiff, (size_t)n * (size_t)n * sizeof(double));
    memcpy(m->work, m->right, (size_t)n * sizeof(double));
    for (a = 0; a < dim; a++) for (k = f->first[a]; k < f->first[a + 1]; k++) {
        mono_face *face = &m->face[k];
        const int e = f->entry[k], in = e % g->block_cells;
        int corner[3];
        fsi_vec3 at;
        fsi_grid_corner(g, e / g->block_cells, corner);
        at = fsi_grid_position(g, (fsi_grid_place)((int)FSI_FACES_X + a), corner[0] + (in & 7),
            corner[1] + (in >> 3 & 7), corner[2] + (in >> 6));
        memset(face, 0, sizeof *face);
        face->axis = a;
        mono_locate(m, fsi_mesh_closest(fsi_elastic_surface(m->p->w.s, m->id), at, FSI_REAL_MAX, -1).point, face);
        face->wet = mono_wet(m, flow, f, k, a);
        for (i = 0; i <= dim && face->wet > 0; i++) {
            const int row = dim * face->vertex[i] + a;
            m->work[row] += face->weight[i] * face->wet * (double)flow->u[a]->value[e];
            for (j = 0; j <= dim; j++)
                m->factor[row * n + dim * face->vertex[j] + a] += face->weight[i] * face->wet * face->weight[j];
        }
    }
    for (i = 0; i < n; i++) {
        if (!m->held[i / dim]) continue;
        for (c = 0; c < n; c++) m->factor[i * n + c] = m->factor[c * n + i] = 0;
        m->factor[i * n + i] = 1;
        m->work[i] = 0;
    }
    CHECK(fsi_dense_cholesky(NULL, n, m->factor) == FSI_OK);
    CHECK(fsi_dense_cholesky_solve(n, m->factor, m->work) == FSI_OK);
}

/* Velocity of a face by those of vertices. */
TEST_FN double mono_at(const monolithic *m, const mono_face *face, const double *v)
{
    const int dim = m->b->dim;
    double sum = 0;
    int k;
    for (k = 0; k <= dim; k++) sum += face->weight[k] * v[dim * face->vertex[k] + face->axis];
    return sum;
}

/* y = A^-1 W^T j. */
TEST_FN fsi_status mono_push(const monolithic *m, const double *impulse, double *y)
{
    const int dim = m->b->dim;
    int f, k;
    memset(y, 0, (size_t)m->n * sizeof *y);
    for (f = 0; f < m->faces; f++) for (k = 0; k <= dim; k++)
        y[dim * m->face[f].vertex[k] + m->face[f].axis] += m->face[f].weight[k] * impulse[f];
    for (k = 0; k < m->n; k++) if (m->held[k / dim]) y[k] = 0;
    return fsi_dense_cholesky_solve(m->n, m->factor, y);
}

TEST_FN fsi_status mono_respond(void *user, fsi_context *context, const double *impulse, double *change)
{
    const monolithic *m = (const monolithic *)user;
    double *y = m->work + m->n;
    int f;
    fsi_status status = mono_push(m, impulse, y);
    (void)context;
    for (f = 0; f < m->faces; f++) change[f] = mono_at(m, &m->face[f], y);
    return status;
}

TEST_FN fsi_status mono_project(fsi_pressure *solver, fsi_pressure_flow *flow)
{
    fsi_pressure_solid *solid = &flow->solids[0];
    fsi_status status;
    int k;
    mono_meet(mono, flow, solid->faces);
    for (k = 0; k < mono->faces; k++) mono->velocity[k] = (fsi_real)mono_at(mono, &mono->face[k], mono->work);
    solid->velocity = mono->velocity;
    solid->respond = mono_respond;
    solid->user = mono;
    solid->face_impulse = mono->impulse;
    status = fsi_pressure_project(solver, flow);
    if (status != FSI_OK) return status;
    CHECK(mono_push(mono, mono->impulse, mono->work + mono->n) == FSI_OK);
    for (k = 0; k < mono->n; k++) mono->v[k] = mono->work[k] + mono->work[mono->n + k];
    solid->face_impulse = NULL;
    return FSI_OK;
}

/* A step of one substep. The obstacle goes where the body would go at its velocity. */
TEST_FN void mono_step(monolithic *m, double h)
{
    int k;
    m->h = h;
    mono_show(m, h);
    mono_predict(m);
    mono = m;
    project_instead = mono_project;
    step_ok(m->p->s, h);
    project_instead = NULL;
    CHECK(m->p->s->stats.substeps == 1);
    for (k = 0; k < m->n; k++) m->x[k] += h * m->v[k];
}

/* ---- a mat under a falling column ----------------------------------------------------------------------------------

   A box 1 m wide of n cells a side; the mat lies across it, `thick` cells thick, of elements 1/fine cells large, or with
   handles, held at two sides; liquid 0.4 m wide
   falls on it at 1 m/s, from 0.05 m above it up to 0.9 m. */
typedef struct mat { int dim, n, thick, fine, handles; double density, young, dt, end; } mat;

/* How far the middle of its lower side went down at most [m]; *mean: over the last 0.3 s. */
TEST_FN double mat_sag(const mat *c, int whole, double *mean)
{
    pool p = pool_of(c->dim, c->n);
    const int side = c->fine * c->n, up = c->fine * c->thick, steps = (int)(c->end / c->dt + 0.5),
        late = (int)(0.3 / c->dt + 0.5);
    block b = c->dim == 2 ? block_make(side, up, 0, 1.0 / side) : block_make(side, side, up, 1.0 / side);
    const int middle = block_at(&b, side / 2, c->dim == 2 ? 0 : side / 2, 0);
    unsigned char *held = (unsigned char *)malloc((size_t)b.vertices);
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)b.vertices * sizeof *x);
    double most = 0;
    monolithic m;
    int id, k;
    p.w.material.young = (fsi_real)c->young;
    p.w.material.density = (fsi_real)c->density;
    p.w.material.poisson = p.w.material.damping = 0;
    p.w.body.contact_points = 600;
    p.w.body.handles = c->handles;
    p.d.max_substeps = 1;
    pool_begin(&p);
    p.w.body.position = in_room(c->dim, 0, 0.4, 0);
    id = world_add(&p.w, &b);
    world_clamp(&p.w, id, &b, 0, -1);
    world_clamp(&p.w, id, &b, 1, 1);
    for (k = 0; k < b.vertices; k++) held[k] = fabs((double)b.x[k].x - 0.5) > 0.5 - 1e-6;
    if (whole) mono_begin(&m, &p, &b, id, held);
    else pool_immerse(&p);
    fill(p.s, room(c->dim, 0.3, 0.45 + c->thick / (double)c->n, 0.7, 0.9, 1), in_room(c->dim, 0, -1, 0));
    for (*mean = 0, k = 0; k < steps; k++) {
        double sag;
        if (whole) {
            mono_step(&m, c->dt);
            sag = 0.4 - m.x[c->dim * middle + c->dim - 1];
        } else {
            step_ok(p.s, c->dt);
            CHECK(fsi_elastic_vertices(p.w.s, id, x, NULL) == FSI_OK);
            sag = 0.4 - height_of(c->dim, x[middle]);
        }
        most = fmax(most, sag);
        if (k >= steps - late) *mean += sag / late;
    }
    if (whole) mono_end(&m);
    pool_end(&p);
    block_free(&b);
    free(held);
    free(x);
    return most;
}

#endif /* FSI_FLIP_MONOLITHIC_H */
