/* couple_monolithic.h - liquid and a string coupled by velocities alone, in one solve with the pressure
   (Robinson-Mosher, Schroeder and Fedkiw 2011): what
   fsi_couple.h is compared with. In 2D.
   SPDX-License-Identifier: MIT

   A step of fsi_levelset.h whose velocities are projected once more before anything moves: a face whose two centres lie
   on different sides of the string moves with it, u = W v, W linear between the two vertices where the string crosses.
   A being the string's inertia with its stiffness, A = h^2 `total` of fsi_shell.h, M the liquid's mass at these faces,
   j what the pressure does to them,

      (A + W' M W) v = A v* + W' M u* + W' j

   where v* is a step of fsi_shell.h by itself. Then phi is advected with u and the string moves by h v: nothing keeps
   the two apart. Faces pull as well as push. The liquid is fsi_levelset.h's in all else, volumes of components
   included; projecting once without the string and then with it is projecting once with it.

   Include it after couple_inside.h. look_in calls monolithic_look_in first. */
#ifndef FSI_COUPLE_MONOLITHIC_H
#define FSI_COUPLE_MONOLITHIC_H

enum { MONOLITHIC_FACES = 1024 };

/* node, weight: a row of W; mass: of liquid */
typedef struct monolithic_face { int axis, entry, node[2]; double weight[2], mass; } monolithic_face;

typedef struct monolithic {
    fsi_levelset *water;
    fsi_shell *solid;
    fsi__sh_impl *sh;
    fsi_status status;               /* of the last projection */
    int n, faces;                    /* unknowns, three a node */
    double exchanged, gained;        /* largest of all projections [kg m/s]: what the string got along y; what it and
                                        the liquid gained or lost together */
    double *factor, *v, *right;      /* L of A + W' M W = L L', n x n; velocities before the pressure; right sides and
                                        what they give */
    monolithic_face face[MONOLITHIC_FACES];
    /* the faces as the pressure solver reads them */
    fsi_grid_faces list;
    int entry[MONOLITHIC_FACES];
    fsi_real whole[MONOLITHIC_FACES], velocity[MONOLITHIC_FACES], yielding[MONOLITHIC_FACES];
    double impulse[MONOLITHIC_FACES];
} monolithic;

static monolithic *monolithic_now; /* whose liquid is looked into; NULL: none */

/* ---- faces ------------------------------------------------------------------------------------------------------- */

static int monolithic_by_place(const void *a, const void *b)
{
    const monolithic_face *p = (const monolithic_face *)a, *q = (const monolithic_face *)b;
    return p->axis != q->axis ? p->axis - q->axis : p->entry - q->entry;
}

/* The face between cell i, j and the one below it along the axis, which the segment crosses at a share t of its way. */
TEST_FN void monolithic_add_face(monolithic *m, const fsi_pressure_flow *flow, int axis, const int *cell,
                                 const int *node, double t)
{
    const fsi_grid *g = m->water->grid;
    const long long at = fsi_grid_entry(g, cell[0], cell[1], 0),
                    below = fsi_grid_entry(g, cell[0] - (axis == 0), cell[1] - (axis == 1), 0);
    monolithic_face *f = &m->face[m->faces];
    if (cell[axis] < 1 || cell[axis] >= g->n[axis] || cell[1 - axis] < 0 || cell[1 - axis] >= g->n[1 - axis] ||
        at < 0 || below < 0)
        return;
    if (flow->cell[at] != FSI_CELL_LIQUID && flow->cell[below] != FSI_CELL_LIQUID) return;
    if (m->faces == MONOLITHIC_FACES) abort();
    f->axis = axis;
    f->entry = (int)at;
    f->mass = (double)m->water->desc.density * CELL * CELL * wet_share(flow, (int)at, below);
    f->node[0] = node[0];
    f->node[1] = node[1];
    f->weight[0] = 1 - t;
    f->weight[1] = t;
    m->faces++;
}

/* A line through centres of cells that a segment crosses gives a face. One that is crossed twice counts once. */
TEST_FN void monolithic_find_faces(monolithic *m, const fsi_pressure_flow *flow)
{
    const fsi__sm_model *p = &m->sh->model;
    int s, axis, k, kept = 0;
    m->faces = 0;
    for (s = 0; s < p->segments; s++) for (axis = 0; axis < 2; axis++) {
        const double *a = m->sh->state.x + 3 * p->segment[2 * s], *b = m->sh->state.x + 3 * p->segment[2 * s + 1];
        const int across = 1 - axis;
        const double from = a[across] / CELL - 0.5, to = b[across] / CELL - 0.5;
        int line, cell[2];
        for (line = (int)ceil(fmin(from, to)); line < fmax(from, to); line++) {
            const double t = (line - from) / (to - from);
            cell[across] = line;
            cell[axis] = (int)floor((a[axis] + t * (b[axis] - a[axis])) / CELL + 0.5);
            monolithic_add_face(m, flow, axis, cell, p->segment + 2 * s, t);
        }
    }
    qsort(m->face, (size_t)m->faces, sizeof *m->face, monolithic_by_place);
    for (k = 0; k < m->faces; k++)
        if (k == 0 || monolithic_by_place(&m->face[k], &m->face[k - 1]) != 0) m->face[kept++] = m->face[k];
    m->faces = kept;
}

TEST_FN double monolithic_face_velocity(const monolithic_face *f, const double *v)
{
    return f->weight[0] * v[3 * f->node[0] + f->axis] + f->weight[1] * v[3 * f->node[1] + f->axis];
}

/* out += W' j; nothing moves what is held. */
TEST_FN void monolithic_push(const monolithic *m, const monolithic_face *f, double j, double *out)
{
    int i;
    for (i = 0; i < 2; i++)
        if (!m->sh->fixed[3 * f->node[i] + f->axis]) out[3 * f->node[i] + f->axis] += f->weight[i] * j;
}

/* ---- the string -------------------------------------------------------------------------------------------------- */

/* A step by itself: v* in next.v, and the matrix at its end. */
TEST_FN fsi_status monolithic_predict(monolithic *m, fsi__sh_step **w, double h)
{
    FSI__TRY(fsi__sh_begin(m->solid, h, 0, "monolithic_predict", w));
    FSI__TRY(fsi__sh_substep(*w, h, 1, 1));
    return fsi__sh_weigh(*w);
}

/* L of A + W' M W; what is held has rows of the identity. right = A v* + W' M u*. */
TEST_FN void monolithic_fill(monolithic *m, const fsi__sh_step *w, const fsi_pressure_flow *flow)
{
    const fsi_csr *total = &m->sh->total;
    const unsigned char *fixed = m->sh->fixed;
    const size_t n = (size_t)m->n;
    const double *v = m->sh->next.v;
    int r, e, k, a, b;
    memset(m->factor, 0, n * n * sizeof(double));
    memset(m->right, 0, n * sizeof(double));
    for (r = 0; r < total->rows; r++)
        for (e = total->start[r]; e < total->start[r + 1]; e++)
            for (a = 0; a < 3; a++)
                for (b = 0; b < 3; b++) {
                    const int i = 3 * r + a, j = 3 * total->col[e] + b;
                    const double value = w->h * w->h * total->value[9 * (size_t)e + (size_t)(3 * a + b)];
                    if (!fixed[i] && !fixed[j])
                        m->factor[n * (size_t)i + (size_t)j] = value, m->right[i] += value * v[j];
                }
    for (k = 0; k < m->faces; k++) {
        const monolithic_face *f = &m->face[k];
        double held = 0; /* of W v */
        monolithic_push(m, f, f->mass * (double)flow->u[f->axis]->value[f->entry], m->right);
        for (a = 0; a < 2; a++) for (b = 0; b < 2; b++) {
            const int i = 3 * f->node[a] + f->axis, j = 3 * f->node[b] + f->axis;
            if (!fixed[i] && !fixed[j]) m->factor[n * (size_t)i + (size_t)j] += f->mass * f->weight[a] * f->weight[b];
        }
        for (a = 0; a < 2; a++) if (fixed[3 * f->node[a] + f->axis]) held += f->weight[a] * v[3 * f->node[a] + f->axis];
        monolithic_push(m, f, -f->mass * held, m->right);
    }
    for (r = 0; r < m->n; r++) if (fixed[r]) m->factor[(n + 1) * (size_t)r] = 1, m->right[r] = v[r];
}

TEST_FN void monolithic_factorise(monolithic *m)
{
    const size_t n = (size_t)m->n;
    size_t i, j, k;
    for (j = 0; j < n; j++) for (i = j; i < n; i++) {
        double sum = m->factor[n * i + j];
        for (k = 0; k < j; k++) sum -= m->factor[n * i + k] * m->factor[n * j + k];
        m->factor[n * i + j] = i == j ? sqrt(sum) : sum / m->factor[n * j + j];
    }
}

/* L L' x = x. */
TEST_FN void monolithic_solve(const monolithic *m, double *x)
{
    const size_t n = (size_t)m->n;
    size_t i, k;
    for (i = 0; i < n; i++) {
        for (k = 0; k < i; k++) x[i] -= m->factor[n * i + k] * x[k];
        x[i] /= m->factor[n * i + i];
    }
    for (i = n; i-- > 0;) {
        for (k = i + 1; k < n; k++) x[i] -= m->factor[n * k + i] * x[k];
        x[i] /= m->factor[n * i + i];
    }
}

/* right = (A + W' M W)^-1 W' j. */
TEST_FN void monolithic_yield(monolithic *m, const double *impulse)
{
    int k;
    memset(m->right, 0, (size_t)m->n * sizeof(double));
    for (k = 0; k < m->faces; k++) monolithic_push(m, &m->face[k], impulse[k], m->right);
    monolithic_solve(m, m->right);
}

static fsi_status monolithic_respond(void *user, fsi_context *context, const double *impulse, double *change)
{
    monolithic *m = (monolithic *)user;
    int k;
    (void)context;
    monolithic_yield(m, impulse);
    for (k = 0; k < m->faces; k++) change[k] = monolithic_face_velocity(&m->face[k], m->right);
    return FSI_OK;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

TEST_FN fsi_pressure_solid monolithic_offer(monolithic *m)
{
    const double *mass = m->sh->model.mass;
    fsi_pressure_solid solid;
    int k, a = 0;
    memset(&solid, 0, sizeof solid);
    memset(&m->list, 0, sizeof m->list);
    m->list.cookie = FSI__COOKIE('f', fsi_grid_faces);
    m->list.context = m->water->context;
    for (k = 0; k < m->faces; k++) {
        const monolithic_face *f = &m->face[k];
        while (a < f->axis) m->list.first[++a] = k;
        m->entry[k] = f->entry;
        m->whole[k] = 1;
        m->velocity[k] = REAL(monolithic_face_velocity(f, m->v));
        m->yielding[k] = REAL(f->mass / (f->mass + f->weight[0] * mass[f->node[0]] + f->weight[1] * mass[f->node[1]]));
    }
    while (a < 3) m->list.first[++a] = m->faces;
    m->list.count = m->faces;
    m->list.entry = m->entry;
    m->list.solid = m->whole;
    solid.faces = &m->list;
    solid.velocity = m->velocity;
    solid.face_impulse = m->impulse;
    solid.respond = monolithic_respond;
    solid.user = m;
    solid.yielding = m->yielding;
    return solid;
}

/* The string has what the pressure gave it, and moves with that. */
TEST_FN void monolithic_move(monolithic *m, double h)
{
    int i;
    monolithic_yield(m, m->impulse);
    for (i = 0; i < 3 * m->sh->model.vertices; i++) if (!m->sh->fixed[i]) {
        m->sh->next.v[i] = m->v[i] + m->right[i];
        m->sh->next.x[i] = m->sh->state.x[i] + h * m->sh->next.v[i];
    }
}

/* In place of fsi_pressure_project: string and liquid have the velocities of one solve. */
static fsi_status monolithic_project(monolithic *m, fsi__ls_run *run, fsi_pressure_flow *flow)
{
    fsi_pressure_solid solid;
    fsi__sh_step *w;
    double string, liquid;
    FSI__TRY(monolithic_predict(m, &w, run->dt));
    monolithic_find_faces(m, flow);
    monolithic_fill(m, w, flow);
    monolithic_factorise(m);
    monolithic_solve(m, m->right);
    memcpy(m->v, m->right, (size_t)m->n * sizeof(double));
    solid = monolithic_offer(m);
    flow->solids = &solid;
    flow->solid_count = m->faces > 0;
    string = -solid_momentum(m->sh, 1);
    liquid = -flow_momentum(flow, flow->u, 1);
    FSI__TRY(fsi_pressure_project(run->m->solver, flow));
    monolithic_move(m, run->dt);
    string += solid_momentum(m->sh, 1);
    liquid += flow_momentum(flow, flow->u, 1);
    m->exchanged = fmax(m->exchanged, fabs(string));
    m->gained = fmax(m->gained, fabs(string + liquid));
    fsi__sh_commit(w);
    return FSI_OK;
}

/* Air beside liquid is not sent along the string faster than it was, as with fsi_couple.h; here wherever there is
   air. */
static void monolithic_bound_shore(fsi__ls_run *run)
{
    int i;
    for (i = 0; i < run->grid->block_count * run->grid->block_cells; i++) if (run->m->shore[i]) run->m->shore[i] = 2;
}

/* One more projection of a substep, for both. */
TEST_FN fsi_status monolithic_project_both(monolithic *m, fsi__ls_run *run)
{
    fsi_pressure_flow flow;
    FSI__TRY(fsi__ls_open_projection(run, FSI__LS_AGAIN, &flow));
    FSI__TRY(monolithic_project(m, run, &flow));
    FSI__TRY(fsi__ls_close_projection(run));
    monolithic_bound_shore(run);
    fsi__ls_finish_projection(run);
    return FSI_OK;
}

/* After the forces of a substep, before anything moves. */
TEST_FN void monolithic_look_in(fsi__ls_run *run, int phase)
{
    if (phase != 0 || !monolithic_now || run->s != monolithic_now->water) return;
    run->joint = 1;
    monolithic_now->status = monolithic_project_both(monolithic_now, run);
    run->joint = 0;
}

TEST_FN void monolithic_begin(monolithic *m, fsi_levelset *water, fsi_shell *solid)
{
    memset(m, 0, sizeof *m);
    m->water = water;
    m->solid = solid;
    m->sh = (fsi__sh_impl *)solid->impl;
    m->n = 3 * m->sh->nodes;
    m->factor = (double *)malloc(((size_t)m->n + 2) * (size_t)m->n * sizeof(double));
    if (!m->factor) abort();
    m->v = m->factor + (size_t)m->n * (size_t)m->n;
    m->right = m->v + m->n;
}

TEST_FN fsi_status monolithic_step(monolithic *m, double dt)
{
    fsi_status status;
    monolithic_now = m;
    status = fsi_levelset_step(m->water, REAL(dt));
    monolithic_now = NULL;
    return status == FSI_OK ? m->status : status;
}

TEST_FN void monolithic_end(monolithic *m) { free(m->factor); }

/* ---- the same drop by both -------------------------------------------------------------------------------------- */

typedef enum target { HELD_STRING, FREE_PLATE } target;

/* below: most cells of liquid under the solid at any time; drop: cells of the drop; samples, wet: points of the solid,
   four a cell, summed over steps, and those in the liquid; kept: vertical momentum of both at the end over that at the
   start; gained: by velocities: what both gained in a projection over what they exchanged, at most; error: largest
   |volume / target - 1|; seconds: a substep. */
typedef struct passage {
    int steps, substeps, drop, below;
    long long samples, wet;
    double kept, gained, error, seconds;
} passage;

/* 64 k cells: a drop of 8 k falls at 1 m/s on a light string that is held at its ends, or without gravity on a plate
   that weighs half as much. */
TEST_FN void begin_passage(pair *p, target what, int k)
{
    const double mass = 1000 * FSI_PI * 64 * k * k * CELL * CELL;
    pair_begin(p, 64 * k);
    p->l.surface_tension = REAL(0.02);
    p->l.time_order = 1; /* as fsi_couple.h */
    if (what == HELD_STRING) {
        p->c.material[0].density = 100;
        pair_string(p, 56 * k, 4.1 * k, 59.9 * k, 30 * k);
    } else {
        p->l.gravity = p->c.desc.gravity = v3(0, 0, 0);
        p->c.material[0].young = REAL(1e6);
        p->c.material[0].thickness = REAL(1e-3 * k);
        p->c.material[0].density = REAL(0.5 * mass / (40 * k * CELL * 1e-3 * k));
        pair_string(p, 40 * k, 12.1 * k, 52.1 * k, 30 * k);
    }
}

/* Cells of liquid under the solid: what of it spans their column is above their centres. */
TEST_FN int cells_below_solid(const pair *p)
{
    const fsi_grid *g = p->water->grid;
    int s, i, j, count = 0;
    for (s = 0; s < p->solid->segment_count; s++) {
        const fsi_vec3 a = p->solid->position[p->solid->segments[2 * s]],
                       b = p->solid->position[p->solid->segments[2 * s + 1]];
        const double from = (double)a.x / CELL - 0.5, to = (double)b.x / CELL - 0.5;
        for (i = (int)ceil(from); i < to; i++) {
            const double t = (i - from) / (to - from), y = (double)a.y + t * (double)(b.y - a.y);
            for (j = 0; j < g->n[1] && (j + 0.5) * CELL < y; j++)
                count += (double)fsi_grid_at(p->water->phi, i, j, 0) < 0;
        }
    }
    return count;
}

TEST_FN int cells_of_liquid(const pair *p)
{
    const fsi_grid *g = p->water->grid;
    int i, count = 0;
    for (i = 0; i < g->block_count * g->block_cells; i++) count += (double)p->water->phi->value[i] < 0;
    return count;
}

/* Points four a cell where phi, read as fsi_couple.h reads it, is that of liquid. */
TEST_FN void count_wet_samples(const pair *p, passage *t)
{
    int s, k;
    for (s = 0; s < p->solid->segment_count; s++) for (k = 0; k < 4; k++) {
            const fsi_vec3 a = p->solid->position[p->solid->segments[2 * s]],
                           b = p->solid->position[p->solid->segments[2 * s + 1]];
            t->wet += (double)fsi_grid_sample_spline(p->water->phi, fsi_v3_madd(a, REAL(k / 4.0), fsi_v3_sub(b, a)),
                                                     NULL) < 0;
            t->samples++;
    }
}

/* Steps of half a millisecond times k. */
TEST_FN passage run_passage(target what, int k, int by_velocities, int steps)
{
    const double dt = 5e-4;
    monolithic m;
    passage t;
    pair p;
    double start;
    memset(&t, 0, sizeof t);
    begin_passage(&p, what, k);
    if (by_velocities) pair_make_apart(&p);
    else pair_make(&p);
    if (what == HELD_STRING) p.solid->pinned[0] = p.solid->pinned[56 * k] = 1;
    pair_drop(&p, 32.3 * k, 40.5 * k, 8 * k, 0, -1);
    t.drop = cells_of_liquid(&p);
    start = -1000 * p.water->stats.volume;
    monolithic_begin(&m, p.water, p.solid);
    for (; t.steps < steps; t.steps++) {
        const clock_t begin = clock();
        if (!CHECK((by_velocities ? monolithic_step(&m, dt) : fsi_couple_step(p.both, REAL(dt))) == FSI_OK)) {
            printf("   step %d: %s\n", t.steps, p.context.error.message);
            break;
        }
        t.seconds += (double)(clock() - begin) / CLOCKS_PER_SEC;
        t.substeps += p.water->stats.substeps;
        t.error = fmax(t.error, fabs(p.water->stats.volume_error));
        t.below = t.below > cells_below_solid(&p) ? t.below : cells_below_solid(&p);
        count_wet_samples(&p, &t);
    }
    t.seconds /= t.substeps;
    t.kept = (p.water->stats.momentum[1] + p.solid->stats.momentum[1]) / start;
    t.gained = m.exchanged > 0 ? m.gained / m.exchanged : 0;
    monolithic_end(&m);
    pair_end(&p);
    return t;
}

#endif
