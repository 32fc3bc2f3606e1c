/* fsi_shell_contact.h - contacts of thin solids: features that may meet, their gaps, barriers, and how far they may go
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_shell.h includes this file, and puts what it computes into its energy. docs/shell.md derives the
      method (Li et al. 2020, 2021).

   WHAT IT DOES
      Everything that meets others consists of features, points, edges and faces, over one list of points. Which pairs
      may meet while points go from x to x + dx is found by boxes around each point: where it is, where the step would
      take it, and a margin. The list holds as long as all points and their steps stay in their boxes. Of each pair:
      its gap, the energy of the barrier with gradient and Hessian (fsi_barrier.h), and the share of a step before it
      touches. Edges that pass through faces are counted, and pairs that are close at rest push less.

   WHAT IS IN HERE (search for >>)
      >>stages  for fsi's own headers, not for you;  then >>trees  >>pairs  >>gaps  >>derivatives  >>crossings
      >>close at rest
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: double.
*/
#ifndef FSI_SHELL_CONTACT_H
#define FSI_SHELL_CONTACT_H

#include "fsi_barrier.h"
#include "fsi_elements.h"

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* Points, edges and faces for contact. */
enum { FSI__SC_POINTS, FSI__SC_EDGES, FSI__SC_FACES };
typedef struct fsi__sc_features {
    int first;                    /* index of their first point in the list of all points */
    int count[3];
    const int *index[3];          /* points of each; of points NULL: all, in order */
    const double *edge_length2;   /* squared, at rest */
    fsi_boxes *tree[3];           /* NULL: there are none */
    double *box;                  /* 6 * the largest count: scratch */
} fsi__sc_features;

/* An obstacle: contacts with the thin solid, not with itself. Clearance [m]; Coulomb's coefficient. */
typedef struct fsi__sc_wall { const fsi__sc_features *features; double clearance, friction; } fsi__sc_wall;

/* Two features that may meet. */
typedef struct fsi__sc_pair {
    fsi_contact contact;
    int node[4];                  /* its points */
    int feature[2];
    double mass;                  /* of the lighter one [kg] */
    double friction;
    int coupled;                  /* 1: the matrix has entries for it */
} fsi__sc_pair;

/* Two own features that are closer at rest than the range of the barrier: their distance at rest [m]. */
typedef struct fsi__sc_close { int a, b; double d; } fsi__sc_close;

/* Contacts of a thin solid. Its own vertices are the first points. */
typedef struct fsi__sc_contacts {
    /* set by the owner */
    fsi_context *context;
    int dim, vertices, self_contact;
    const double *mass, *clearance; /* vertices: [kg]; clearance [m] */
    const unsigned char *bare;    /* own edges: 1: of no triangle */
    double range, friction;       /* of the barrier [m]; Coulomb's coefficient between its own parts */
    double *reach;                /* points: half the range, and its clearance */
    double *around;               /* 6 * points, scratch: boxes in which the list of pairs is valid */
    double *way;                  /* points: displacement since gaps were measured */
    fsi__sc_features own, lone;   /* lone: points of no element */
    fsi_pairs *found;
    /* the list of pairs */
    fsi__sc_pair *pair;
    int pairs, pair_capacity, list_holds;
    int *active, actives, active_capacity; /* pairs within range, in order */
    double *gap;                  /* pairs: at the start of the iteration; a lower bound beyond the range */
    double *pair_number;          /* pairs: scratch */
    double *pair_block;           /* active pairs: 12 + 144 numbers, gradient and Hessian */
    int gaps_hold, gaps_were, gap_capacity, pair_number_capacity, pair_block_capacity;
    fsi__sc_close *close[2];      /* points and faces; edges; sorted */
    int closes[2], close_capacity[2];
} fsi__sc_contacts;

/* Trees over the features; NULL if there are none. Errors: MEMORY. */
FSI_API fsi_status fsi__sc_make_trees(fsi_context *c, fsi__sc_features *f);
FSI_API void fsi__sc_free_trees(fsi__sc_features *f);
/* Lists the pairs that may meet while points move from x to x + dx (3 * points). begin_pairs lists those of the shell
   itself; *holds is 1 if the last list is still valid, and add_wall and end_pairs are not called. Errors of the three:
   MEMORY; then the list is not valid. */
FSI_API fsi_status fsi__sc_begin_pairs(fsi__sc_contacts *m, const char *fn, const double *x, const double *dx,
                                       int points, int *holds);
/* Adds the pairs with a wall. */
FSI_API fsi_status fsi__sc_add_wall(fsi__sc_contacts *m, const char *fn, const fsi__sc_wall *wall);
/* Makes room for the results of each pair. */
FSI_API fsi_status fsi__sc_end_pairs(fsi__sc_contacts *m, const char *fn);
/* Gaps at x, where an iteration begins, and the pairs within range, in order. */
FSI_API void fsi__sc_measure(fsi__sc_contacts *m, const double *x);
/* The largest displacement of a point. */
FSI_API double fsi__sc_longest_way(const double *dx, int points);
/* Largest fraction, 0 to 1, of the motion from x, where gaps were measured, to x + dx without contact; *pair limits it.
   keep: fraction of a gap to keep; longest: largest displacement. */
FSI_API double fsi__sc_sweep(fsi__sc_contacts *m, const double *x, const double *dx, double keep, double longest,
                             int *pair);
/* Energy of the barriers [J] at x, no farther than `longest` from where gaps were measured. kappa: over the mass of a
   pair [m^2/s^2]. */
FSI_API double fsi__sc_energy(fsi__sc_contacts *m, const double *x, double kappa, double longest);
/* Smallest gap of the active pairs over its range; 1: none is smaller. */
FSI_API double fsi__sc_min_gap(const fsi__sc_contacts *m);
/* Gradients and Hessians of the active pairs at x, to pair_block, for which the caller has made room. */
FSI_API void fsi__sc_derive(const fsi__sc_contacts *m, const double *x, double kappa, int exact);
/* Edges of f through faces of g, in the plane through its edges, with the trees as fitted by begin_pairs and add_wall.
   *count grows by how many; first: the points of the first one. */
FSI_API fsi_status fsi__sc_count_crossings(fsi__sc_contacts *m, const double *x, const fsi__sc_features *f,
                                           const fsi__sc_features *g, int *count, int first[5]);
/* Lists pairs of one connected component that are closer at rest than the range of the barrier: their range is reduced.
   rest: points at rest, where pairs were found; part: component of each vertex. */
FSI_API fsi_status fsi__sc_list_close(fsi__sc_contacts *m, const char *fn, const double *rest, const int *part,
                                      double mean_edge);
FSI_API void fsi__sc_free(fsi__sc_contacts *m); /* lists, trees and `found`; the rest is the owner's */

#endif /* FSI_SHELL_CONTACT_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_SHELL_CONTACT_IMPLEMENTATION
#define FSI_SHELL_CONTACT_IMPLEMENTATION
#endif
#ifdef FSI_SHELL_CONTACT_IMPLEMENTATION
#ifndef FSI_SHELL_CONTACT_IMPLEMENTATION_DONE
#define FSI_SHELL_CONTACT_IMPLEMENTATION_DONE

/* An iteration of Newton's method, as fsi_shell.h has it:

      fsi__sc_begin_pairs, fsi__sc_add_wall of each obstacle, fsi__sc_end_pairs      pairs that may meet
      fsi__sc_measure                gaps, and which pairs are within range
      fsi__sc_derive                 gradients and Hessians of these
      fsi__sc_sweep                  the fraction of the step before the first contact
      fsi__sc_energy                 of the barriers, at each trial of the line search */

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_barrier.h"
#include "fsi_elements.h"

FSI__STRICT_BEGIN

/* ---- >>trees ----------------------------------------------------------------------------------------------------- */

FSI_API fsi_status fsi__sc_make_trees(fsi_context *c, fsi__sc_features *f)
{
    int k;
    fsi_status status = FSI_OK;
    for (k = 0; k < 3 && status == FSI_OK; k++)
        if (f->count[k] > 0) status = fsi_boxes_create(&f->tree[k], c, f->count[k]);
    return status;
}

FSI_API void fsi__sc_free_trees(fsi__sc_features *f)
{
    int k;
    for (k = 0; k < 3; k++) {
        fsi_boxes_destroy(f->tree[k]);
        f->tree[k] = NULL;
    }
}

/* ---- >>pairs ----------------------------------------------------------------------------------------------------- */

/* Indices of a feature's points; returns how many. */
static int fsi__sc_feature(const fsi__sc_features *f, int type, int i, int *node)
{
    int k;
    const int n = type + 1;
    for (k = 0; k < n; k++) node[k] = f->first + (f->index[type] ? f->index[type][n * i + k] : i);
    return n;
}

/* Nanoseconds at least: a feature's box; the gap of a pair; its number, of a pair that is far and of one within range;
   energy, gradient and Hessian of a contact. fsi__parallel_work */
enum { FSI__SC_BOX_NS = 2, FSI__SC_GAP_NS = 25, FSI__SC_FAR_NS = 1, FSI__SC_NEAR_NS = 40, FSI__SC_CONTACT_NS = 400 };

typedef struct fsi__sc_box_job {
    const fsi__sc_features *f;
    int type;
    const double *around;
    double *box;
} fsi__sc_box_job;

static void fsi__sc_box_pass(void *arg, int chunk, int begin, int end)
{
    const fsi__sc_box_job *job = (const fsi__sc_box_job *)arg;
    int i, k, a;
    (void)chunk;
    for (i = begin; i < end; i++) {
        double *b = job->box + 6 * (size_t)i;
        int node[3];
        const int n = fsi__sc_feature(job->f, job->type, i, node);
        memcpy(b, job->around + 6 * (size_t)node[0], 6 * sizeof *b);
        for (k = 1; k < n; k++) {
            const double *p = job->around + 6 * (size_t)node[k];
            for (a = 0; a < 3; a++) {
                if (p[a] < b[a]) b[a] = p[a];
                if (p[3 + a] > b[3 + a]) b[3 + a] = p[3 + a];
            }
        }
    }
}

static fsi_status fsi__sc_fit_trees(const fsi__sc_contacts *m, const fsi__sc_features *f)
{
    int type;
    for (type = 0; type < 3; type++) {
        fsi__sc_box_job job;
        fsi_status status;
        double work;
        if (!f->tree[type]) continue;
        job.f = f;
        job.type = type;
        job.around = m->around;
        job.box = f->box;
        work = (double)FSI__SC_BOX_NS * f->count[type];
        fsi__parallel_work(m->context, f->count[type], 1024, work, fsi__sc_box_pass, &job);
        status = fsi_boxes_update(f->tree[type], f->box);
        if (status != FSI_OK) return status;
    }
    return FSI_OK;
}

/* Which features may meet, and how. */
typedef struct fsi__sc_meeting {
    fsi__sc_contacts *m;
    const fsi__sc_features *a, *b;
    int type_a, type_b;
    fsi_pair kind;
    const fsi__sc_wall *wall;     /* that one of them belongs to; NULL: both are its own */
} fsi__sc_meeting;

static int fsi__sc_may_meet(void *user, int i, int j)
{
    const fsi__sc_meeting *t = (const fsi__sc_meeting *)user;
    int p[3], q[3], n, k, a, b;
    if (t->a->first != t->b->first) return 1;
    /* its triangles meet the point */
    if (t->kind == FSI_POINT_EDGE && t->m->dim == 3 && !t->m->bare[j]) return 0;
    n = fsi__sc_feature(t->a, t->type_a, i, p);
    k = fsi__sc_feature(t->b, t->type_b, j, q);
    for (a = 0; a < n; a++) for (b = 0; b < k; b++) if (p[a] == q[b]) return 0;
    return 1;
}

/* Distance at rest of two features that are listed as close; 0: they are not, or they touch at rest. */
static double fsi__sc_distance_at_rest(const fsi__sc_contacts *m, fsi_pair kind, int i, int j)
{
    const int set = kind == FSI_EDGE_EDGE;
    const fsi__sc_close *list = m->close[set];
    int lo = 0, hi = m->closes[set];
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (list[mid].a < i || (list[mid].a == i && list[mid].b < j)) lo = mid + 1;
        else hi = mid;
    }
    return lo < m->closes[set] && list[lo].a == i && list[lo].b == j ? list[lo].d : 0;
}

static double fsi__sc_feature_mass(const fsi__sc_contacts *m, const int *node, int n)
{
    double sum = 0;
    int k;
    for (k = 0; k < n; k++) {
        if (node[k] >= m->vertices) return 1e300;
        sum += m->mass[node[k]];
    }
    return sum / n;
}

static double fsi__sc_feature_clearance(const fsi__sc_contacts *m, const int *node, int n, const fsi__sc_wall *wall)
{
    double most = 0;
    int k;
    if (node[0] >= m->vertices) return wall ? wall->clearance : 0;
    for (k = 0; k < n; k++) if (m->clearance[node[k]] > most) most = m->clearance[node[k]];
    return most;
}

/* e = 1e-3 |u|^2 |v|^2 of the edges at rest (Li et al. 2020, eq. 24). */
static double fsi__sc_parallel(const fsi__sc_meeting *t, int i, int j)
{
    return t->kind == FSI_EDGE_EDGE ? 1e-3 * t->a->edge_length2[i] * t->b->edge_length2[j] : 0;
}

static void fsi__sc_make_pair(const fsi__sc_meeting *t, int i, int j, fsi__sc_pair *p)
{
    const fsi__sc_contacts *m = t->m;
    int node[6];
    const int n = fsi__sc_feature(t->a, t->type_a, i, node), k = fsi__sc_feature(t->b, t->type_b, j, node + n);
    const double ma = fsi__sc_feature_mass(m, node, n), mb = fsi__sc_feature_mass(m, node + n, k),
                 rest = t->wall || t->a == &m->lone ? 0 : fsi__sc_distance_at_rest(m, t->kind, i, j);
    memset(p, 0, sizeof *p);
    memcpy(p->node, node, (size_t)(n + k) * sizeof *node);
    p->feature[0] = i;
    p->feature[1] = j;
    p->contact.kind = t->kind;
    p->contact.range = m->range;
    p->contact.thickness =
        fsi__sc_feature_clearance(m, node, n, t->wall) + fsi__sc_feature_clearance(m, node + n, k, t->wall);
    p->contact.parallel = fsi__sc_parallel(t, i, j);
    if (rest > 0) { /* free of force at rest */
        if (p->contact.thickness > rest / 2) p->contact.thickness = rest / 2;
        if (p->contact.range > rest - p->contact.thickness) p->contact.range = rest - p->contact.thickness;
    }
    p->mass = ma < mb ? ma : mb;
    p->friction = t->wall ? t->wall->friction : m->friction;
}

/* Appends the pairs of features of a and b whose boxes overlap. */
static fsi_status fsi__sc_meet_features(fsi__sc_contacts *m, const char *fn, const fsi__sc_features *a, int type_a,
                                        const fsi__sc_features *b, int type_b, fsi_pair kind,
                                        const fsi__sc_wall *wall)
{
    fsi__sc_meeting t;
    fsi_status status;
    int k;
    if (!a->tree[type_a] || !b->tree[type_b]) return FSI_OK;
    t.m = m;
    t.a = a;
    t.b = b;
    t.type_a = type_a;
    t.type_b = type_b;
    t.kind = kind;
    t.wall = wall;
    status = fsi_pairs_find(m->found, a->tree[type_a], b->tree[type_b], fsi__sc_may_meet, &t);
    if (status != FSI_OK) return status;
    status = fsi__room_in(m->context, &m->pair, sizeof *m->pair, m->pairs, &m->pair_capacity,
        m->pairs + m->found->count, fn);
    if (status != FSI_OK) return status;
    for (k = 0; k < m->found->count; k++)
        fsi__sc_make_pair(&t, m->found->index[2 * k], m->found->index[2 * k + 1], &m->pair[m->pairs++]);
    return FSI_OK;
}

static fsi_status fsi__sc_meet_itself(fsi__sc_contacts *m, const char *fn)
{
    const fsi__sc_features *f = &m->own, *lone = &m->lone;
    fsi_status status;
    status = fsi__sc_meet_features(m, fn, lone, FSI__SC_POINTS, lone, FSI__SC_POINTS, FSI_POINT_POINT, NULL);
    if (status == FSI_OK && m->dim == 2)
        status = fsi__sc_meet_features(m, fn, f, FSI__SC_POINTS, f, FSI__SC_EDGES, FSI_POINT_EDGE, NULL);
    if (status != FSI_OK || m->dim == 2) return status;
    status = fsi__sc_meet_features(m, fn, f, FSI__SC_POINTS, f, FSI__SC_FACES, FSI_POINT_TRIANGLE, NULL);
    if (status == FSI_OK)
        status = fsi__sc_meet_features(m, fn, f, FSI__SC_EDGES, f, FSI__SC_EDGES, FSI_EDGE_EDGE, NULL);
    if (status == FSI_OK)
        status = fsi__sc_meet_features(m, fn, lone, FSI__SC_POINTS, f, FSI__SC_EDGES, FSI_POINT_EDGE, NULL);
    return status;
}

FSI_API fsi_status fsi__sc_add_wall(fsi__sc_contacts *m, const char *fn, const fsi__sc_wall *wall)
{
    const fsi__sc_features *f = &m->own, *g = wall->features;
    fsi_status status = fsi__sc_fit_trees(m, g);
    if (status != FSI_OK) return status;
    if (m->dim == 2) {
        status = fsi__sc_meet_features(m, fn, f, FSI__SC_POINTS, g, FSI__SC_EDGES, FSI_POINT_EDGE, wall);
        if (status == FSI_OK)
            status = fsi__sc_meet_features(m, fn, g, FSI__SC_POINTS, f, FSI__SC_EDGES, FSI_POINT_EDGE, wall);
        return status;
    }
    status = fsi__sc_meet_features(m, fn, f, FSI__SC_POINTS, g, FSI__SC_FACES, FSI_POINT_TRIANGLE, wall);
    if (status == FSI_OK)
        status = fsi__sc_meet_features(m, fn, g, FSI__SC_POINTS, f, FSI__SC_FACES, FSI_POINT_TRIANGLE, wall);
    if (status == FSI_OK)
        status = fsi__sc_meet_features(m, fn, f, FSI__SC_EDGES, g, FSI__SC_EDGES, FSI_EDGE_EDGE, wall);
    return status;
}

/* Do the points and their steps stay in their boxes? The boxes extend range / 2 and the clearance beyond. */
static int fsi__sc_stay_in_boxes(const fsi__sc_contacts *m, const double *x, const double *dx, int points)
{
    int i, a;
    for (i = 0; i < points; i++) for (a = 0; a < 3; a++) {
        const double p = x[3 * i + a], q = p + dx[3 * i + a], *b = m->around + 6 * (size_t)i, extra = m->reach[i];
        if (!(p >= b[a] + extra && q >= b[a] + extra && p <= b[3 + a] - extra && q <= b[3 + a] - extra)) return 0;
    }
    return 1;
}

static void fsi__sc_draw_boxes(fsi__sc_contacts *m, const double *x, const double *dx, int points)
{
    const double margin = 0.25 * m->range;
    int i, a;
    for (i = 0; i < points; i++) for (a = 0; a < 3; a++) {
        const double p = x[3 * i + a], q = p + dx[3 * i + a];
        m->around[6 * (size_t)i + (size_t)a] = (p < q ? p : q) - margin - m->reach[i];
        m->around[6 * (size_t)i + (size_t)(3 + a)] = (p > q ? p : q) + margin + m->reach[i];
    }
}

FSI_API fsi_status fsi__sc_begin_pairs(fsi__sc_contacts *m, const char *fn, const double *x, const double *dx,
                                       int points, int *holds)
{
    fsi_status status;
    *holds = m->list_holds && fsi__sc_stay_in_boxes(m, x, dx, points);
    if (*holds) return FSI_OK;
    m->list_holds = m->gaps_hold = m->gaps_were = 0;
    fsi__sc_draw_boxes(m, x, dx, points);
    m->pairs = 0;
    status = fsi__sc_fit_trees(m, &m->own);
    if (status == FSI_OK) status = fsi__sc_fit_trees(m, &m->lone);
    return status == FSI_OK && m->self_contact ? fsi__sc_meet_itself(m, fn) : status;
}

FSI_API fsi_status fsi__sc_end_pairs(fsi__sc_contacts *m, const char *fn)
{
    fsi_context *c = m->context;
    FSI__TRY(fsi__room_in(c, &m->pair_number, sizeof(double), 0, &m->pair_number_capacity, m->pairs, fn));
    FSI__TRY(fsi__room_in(c, &m->gap, sizeof(double), 0, &m->gap_capacity, m->pairs, fn));
    FSI__TRY(fsi__room_in(c, &m->active, sizeof(int), 0, &m->active_capacity, m->pairs, fn));
    m->list_holds = 1;
    return FSI_OK;
}

/* ---- >>gaps ------------------------------------------------------------------------------------------------------ */

/* A number of every pair. Its gap is measured where an iteration begins; while no point goes farther than `longest`
   from there, pairs whose gap is larger than twice that need not be measured again. number: kappa of ENERGY; of SWEEP
   the fraction of a gap to keep. */
typedef struct fsi__sc_pair_job {
    fsi__sc_contacts *m;
    const double *x, *dx;
    double number, longest;
    int what;
} fsi__sc_pair_job;
enum { FSI__SC_PAIR_GAP, FSI__SC_PAIR_ENERGY, FSI__SC_PAIR_SWEEP };

/* Bound of the decrease of a gap since it was measured: points of a feature move no farther than its vertices. */
static double fsi__sc_nearer(const fsi__sc_contacts *m, const fsi__sc_pair *p)
{
    const int n = fsi_pair_points(p->contact.kind), first = p->contact.kind == FSI_EDGE_EDGE ? 2 : 1;
    double most[2] = { 0, 0 };
    int k;
    for (k = 0; k < n; k++) if (m->way[p->node[k]] > most[k >= first]) most[k >= first] = m->way[p->node[k]];
    return most[0] + most[1];
}

static double fsi__sc_pair_number(const fsi__sc_pair_job *job, int i)
{
    const fsi__sc_pair *p = &job->m->pair[i];
    const int n = fsi_pair_points(p->contact.kind);
    double x[12], dx[12];
    if (job->what == FSI__SC_PAIR_ENERGY && job->m->gap[i] - 2 * job->longest > p->contact.range) return 0;
    if (job->what == FSI__SC_PAIR_SWEEP && 0.9 * job->m->gap[i] > 2 * job->longest) return 1;
    if (job->what == FSI__SC_PAIR_GAP && job->m->gaps_were) {
        const double least = job->m->gap[i] - fsi__sc_nearer(job->m, p);
        if (least > p->contact.range) return least;
    }
    fsi__sh_gather(job->x, p->node, n, x);
    if (job->what == FSI__SC_PAIR_GAP) return fsi_distance_between(p->contact.kind, x).d - p->contact.thickness;
    if (job->what == FSI__SC_PAIR_ENERGY)
        return job->number * p->mass * fsi_contact_energy(&p->contact, x, NULL, NULL, FSI_HESSIAN_EXACT);
    fsi__sh_gather(job->dx, p->node, n, dx);
    return fsi_ccd(p->contact.kind, x, dx, p->contact.thickness, job->number);
}

static void fsi__sc_pair_pass(void *arg, int chunk, int begin, int end)
{
    const fsi__sc_pair_job *job = (const fsi__sc_pair_job *)arg;
    double *out = job->what == FSI__SC_PAIR_GAP ? job->m->gap : job->m->pair_number;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++) out[i] = fsi__sc_pair_number(job, i);
}

static void fsi__sc_pair_numbers(fsi__sc_contacts *m, const double *x, const double *dx, double number, double longest,
                                 int what)
{
    fsi__sc_pair_job job;
    const double gaps = m->gaps_were ? (double)FSI__SC_FAR_NS * m->pairs + (double)FSI__SC_GAP_NS * m->actives
                                     : (double)FSI__SC_GAP_NS * m->pairs,
                 numbers = (double)FSI__SC_FAR_NS * m->pairs + (double)FSI__SC_NEAR_NS * m->actives;
    job.m = m;
    job.x = x;
    job.dx = dx;
    job.number = number;
    job.longest = longest;
    job.what = what;
    fsi__parallel_work(m->context, m->pairs, 512, what == FSI__SC_PAIR_GAP ? gaps : numbers, fsi__sc_pair_pass, &job);
}

FSI_API void fsi__sc_measure(fsi__sc_contacts *m, const double *x)
{
    int i;
    if (!m->gaps_hold) fsi__sc_pair_numbers(m, x, NULL, 0, 0, FSI__SC_PAIR_GAP);
    m->gaps_hold = 1;
    m->gaps_were = 0;
    for (i = m->actives = 0; i < m->pairs; i++) if (m->gap[i] < m->pair[i].contact.range) m->active[m->actives++] = i;
}

FSI_API double fsi__sc_longest_way(const double *dx, int points)
{
    double longest = 0;
    int i;
    for (i = 0; i < points; i++)
        if (fsi__sh_dot(dx + 3 * (size_t)i, dx + 3 * (size_t)i) > longest)
            longest = fsi__sh_dot(dx + 3 * (size_t)i, dx + 3 * (size_t)i);
    return sqrt(longest);
}

FSI_API double fsi__sc_sweep(fsi__sc_contacts *m, const double *x, const double *dx, double keep, double longest,
                             int *pair)
{
    double t = 1;
    int i;
    fsi__sc_pair_numbers(m, x, dx, keep, longest, FSI__SC_PAIR_SWEEP);
    for (i = 0; i < m->pairs; i++) if (m->pair_number[i] < t) {
        t = m->pair_number[i];
        *pair = i;
    }
    return t;
}

FSI_API double fsi__sc_energy(fsi__sc_contacts *m, const double *x, double kappa, double longest)
{
    fsi__sc_pair_numbers(m, x, NULL, kappa, longest, FSI__SC_PAIR_ENERGY);
    return fsi__sh_sum(m->pair_number, m->pairs);
}

FSI_API double fsi__sc_min_gap(const fsi__sc_contacts *m)
{
    double least = 1;
    int i;
    for (i = 0; i < m->actives; i++) {
        const double gap = m->gap[m->active[i]] / m->pair[m->active[i]].contact.range;
        if (gap < least) least = gap;
    }
    return least;
}

/* ---- >>derivatives ----------------------------------------------------------------------------------------------- */

typedef struct fsi__sc_derive_job {
    const fsi__sc_contacts *m;
    const double *x;
    double kappa;
    int exact;
} fsi__sc_derive_job;

static void fsi__sc_derive_pass(void *arg, int chunk, int begin, int end)
{
    const fsi__sc_derive_job *w = (const fsi__sc_derive_job *)arg;
    const fsi__sc_contacts *m = w->m;
    int i, k;
    (void)chunk;
    for (i = begin; i < end; i++) {
        const fsi__sc_pair *p = &m->pair[m->active[i]];
        double x[12], *b = m->pair_block + 156 * (size_t)i;
        const double k2 = w->kappa * p->mass;
        fsi__sh_gather(w->x, p->node, fsi_pair_points(p->contact.kind), x);
        fsi_contact_energy(&p->contact, x, b, b + 12, w->exact ? FSI_HESSIAN_EXACT : FSI_HESSIAN_PROJECTED);
        for (k = 0; k < 156; k++) b[k] *= k2;
    }
}

FSI_API void fsi__sc_derive(const fsi__sc_contacts *m, const double *x, double kappa, int exact)
{
    fsi__sc_derive_job job;
    const double work = (double)FSI__SC_CONTACT_NS * m->actives;
    job.m = m;
    job.x = x;
    job.kappa = kappa;
    job.exact = exact;
    fsi__parallel_work(m->context, m->actives, 64, work, fsi__sc_derive_pass, &job);
}

/* ---- >>crossings ------------------------------------------------------------------------------------------------- */

/* Edges pq and ab in the plane, at p, q, a, b: does pq pass through the wall over ab, from z = -1 to 1? It is two
   triangles. */
static int fsi__sc_crosses_flat(const double *at)
{
    double wall[15];
    memcpy(wall, at, 12 * sizeof *wall);
    wall[8] = wall[11] = -1; /* a, b below, a above: at z = 0 from a to the middle; then a above, b above, b below: the
                                rest */
    memcpy(wall + 12, at + 6, 2 * sizeof *wall);
    wall[14] = 1;
    if (fsi_edge_crosses_triangle(wall)) return 1;
    memcpy(wall + 6, at + 9, 2 * sizeof *wall);
    wall[8] = 1;
    return fsi_edge_crosses_triangle(wall);
}

FSI_API fsi_status fsi__sc_count_crossings(fsi__sc_contacts *m, const double *x, const fsi__sc_features *f,
                                           const fsi__sc_features *g, int *count, int first[5])
{
    const int flat = m->dim == 2, type = flat ? FSI__SC_EDGES : FSI__SC_FACES;
    fsi__sc_meeting t;
    fsi_status status;
    double at[15];
    int i, k, node[5] = { 0 };

    /* Pairs of features whose boxes overlap. */
    if (!f->tree[FSI__SC_EDGES] || !g->tree[type]) return FSI_OK;
    memset(&t, 0, sizeof t);
    t.m = m;
    t.a = f;
    t.b = g;
    t.type_a = FSI__SC_EDGES;
    t.type_b = type;
    t.kind = FSI_POINT_TRIANGLE;
    status = fsi_pairs_find(m->found, f->tree[FSI__SC_EDGES], g->tree[type], fsi__sc_may_meet, &t);
    if (status != FSI_OK) return status;

    /* Those that cross, by exact arithmetic; the first one is returned. */
    for (k = 0; k < m->found->count; k++) {
        fsi__sc_feature(f, FSI__SC_EDGES, m->found->index[2 * k], node);
        fsi__sc_feature(g, type, m->found->index[2 * k + 1], node + 2);
        fsi__sh_gather(x, node, 5, at);
        if (flat ? !fsi__sc_crosses_flat(at) : !fsi_edge_crosses_triangle(at)) continue;
        for (i = 0; i < 5 && *count == 0; i++) first[i] = node[i];
        ++*count;
    }
    return FSI_OK;
}

/* ---- >>close at rest --------------------------------------------------------------------------------------------- */

FSI_API fsi_status fsi__sc_list_close(fsi__sc_contacts *m, const char *fn, const double *rest, const int *part,
                                      double mean_edge)
{
    const fsi_pair kind[2] = { m->dim == 2 ? FSI_POINT_EDGE : FSI_POINT_TRIANGLE, FSI_EDGE_EDGE };
    fsi_status status = FSI_OK;
    int k, set;
    for (k = 0; k < m->pairs && status == FSI_OK; k++) {
        const fsi__sc_pair *p = &m->pair[k];
        double x[12], d;
        set = p->contact.kind == FSI_EDGE_EDGE;
        if (p->contact.kind != kind[set] || part[p->node[0]] != part[p->node[2]]) continue;
        fsi__sh_gather(rest, p->node, fsi_pair_points(p->contact.kind), x);
        d = fsi_distance_between(p->contact.kind, x).d;
        if (!(d > 1e-6 * mean_edge) || d >= p->contact.range + p->contact.thickness) continue;
        status = fsi__room_in(m->context, &m->close[set], sizeof(fsi__sc_close), m->closes[set],
            &m->close_capacity[set], m->closes[set] + 1, fn);
        if (status != FSI_OK) break;
        m->close[set][m->closes[set]].a = p->feature[0];
        m->close[set][m->closes[set]].b = p->feature[1];
        m->close[set][m->closes[set]++].d = d;
    }
    m->list_holds = 0;
    return status;
}

FSI_API void fsi__sc_free(fsi__sc_contacts *m)
{
    fsi_context *c = m->context;
    int i;
    fsi_pairs_destroy(m->found);
    fsi__sc_free_trees(&m->own);
    fsi__sc_free_trees(&m->lone);
    fsi__free(c, m->pair, (size_t)m->pair_capacity, sizeof *m->pair);
    fsi__free(c, m->pair_number, (size_t)m->pair_number_capacity, sizeof(double));
    fsi__free(c, m->gap, (size_t)m->gap_capacity, sizeof(double));
    fsi__free(c, m->active, (size_t)m->active_capacity, sizeof(int));
    fsi__free(c, m->pair_block, (size_t)m->pair_block_capacity, 156 * sizeof(double));
    for (i = 0; i < 2; i++) fsi__free(c, m->close[i], (size_t)m->close_capacity[i], sizeof(fsi__sc_close));
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
