/* fsi_contact.h - contact of rigid bodies, trees and particles with Coulomb friction: Gauss-Seidel and Newton's method.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_rigid.h includes this file, finds the contacts, moves the bodies; docs/rigid.md derives the methods.

   WHAT IT DOES
      Given bodies with velocities and contacts between them, it finds the impulses that satisfy Signorini's and
      Coulomb's conditions. Projected Gauss-Seidel sweeps, accelerated by nonlinear conjugate gradients, always run. An
      island (bodies connected by contacts) of free bodies that eight sweeps leave unsolved, and whose matrix is small,
      is solved by Newton's method. The same is done for the split impulses that undo overlap without adding energy.

   WHAT IS IN HERE (search for >>)
      >>stages         for fsi's own headers, not for you;  then >>sides  >>rows  >>sweeps  >>islands  >>cones
      >>Newton's method  >>direct solution  >>split impulses
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: double.
*/
#ifndef FSI_CONTACT_H
#define FSI_CONTACT_H

#include "fsi_joints.h"

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* A body during a substep. The solver reads start, the mass, tree and link, and changes v, w, pv and pw; the other
   fields are the owner's. */
typedef struct fsi__ct_body {
    fsi_pose start, pose;         /* of the centre of mass: at the substep's start; predicted, then final */
    fsi__d3 v0, w0, v, w;         /* velocities at its start; predicted, then solved. Links: copies of the tree's */
    fsi__d3 pv, pw;               /* pseudo-velocities of the split impulses */
    fsi__d3 force, torque;        /* over this step: gravity, external, from liquids */
    fsi__d3 sum, moment;          /* impulses that were pushed since begin, their moment about the centre at the time */
    double inverse_mass;          /* 0: no impulse moves it by itself (links too: their tree moves) */
    double inertia[9], inverse_inertia[9]; /* world axes, at `start`; not of links */
    double turn[9];               /* body axes to world at `start` */
    int tree, link;               /* -1: free */
    int mobile;                   /* 1: impulses move it: dynamic and awake */
} fsi__ct_body;

/* A particle that rows act on. */
typedef struct fsi__ct_particle { fsi__d3 v; double inverse_mass; } fsi__ct_particle;

/* The two sides of a row: ids of bodies; FSI__CT_WORLD; particles as FSI__CT_PARTICLE(index). */
enum { FSI__CT_WORLD = -1 };
#define FSI__CT_PARTICLE(index) (-2 - (index))

/* One contact: u = velocity of a - that of b at `point`, both sides of
      u.n >= aim, jn >= 0, complementary;   tangential: u_t -> slide, |jt| <= friction jn. */
typedef struct fsi__ct_row {
    int a, b;
    fsi__d3 point, n;             /* n unit, from b to a */
    double aim;                   /* [m/s] */
    fsi__d3 slide;                /* tangential velocity wanted [m/s]; 0 between bodies */
    double friction;
    double jn;                    /* normal impulse on a [N s]: initial guess; then the result */
    fsi__d3 jt;                   /* tangential impulse, likewise */
    double depth, margin;         /* overlap; gap below which bodies count as touching [m] */
    double push;                  /* split impulses: pseudo-velocity wanted [m/s]; 0: none */
    double jp;                    /* split impulse; -1: the row is inactive */
    /* Set by solve: */
    fsi__d3 ra, rb;               /* lever arms */
    double kn, kt;                /* inverse of the mobility along n; of its largest eigenvalue across */
    double change;                /* of the relative velocity in the last sweep */
    fsi__d3 from, way;            /* conjugate gradients: impulse before the last two sweeps, search direction */
} fsi__ct_row;

/* An island: where its bodies and rows begin, and how many; direct solutions that are left in this substep; hit: an
   impact has changed a velocity much; large: too large for Newton's method. work: multiplications of one factorisation,
   0: not solved directly. */
typedef struct fsi__ct_island { int body, bodies, row, rows, tries, hit, large; double work; } fsi__ct_island;

/* A row of an island. a, b: places of bodies in the island's order, -1: immobile. */
typedef struct fsi__ct_cone {
    int a, b;
    fsi__d3 ra, rb, n;
    fsi__d3 u, du;                /* relative velocity minus the wanted one, at the start; change along Newton's step */
    fsi__d3 j0, j, z, p;          /* impulse at the start, of the last round; z and P(z) */
    fsi__d3 best;                 /* impulse of the round that has changed least */
    double mu, rho, shift, tau;   /* shift: mu |u_t|; tau: smoothing of P [N s] */
} fsi__ct_cone;

/* Scratch of the direct solution. */
typedef struct fsi__ct_direct {
    fsi__arena lists, numbers;
    int islands, rows;            /* rows: how many it was laid out for; -1: none */
    double most;                  /* direct_work */
    fsi__ct_island *island;
    int *body;                    /* by islands, in elimination order */
    int *place;                   /* of a body in its island, -1: none */
    int *first;                   /* first place that its envelope reaches */
    int *owner;                   /* its island */
    int *list;                    /* rows by islands */
    int *begin, *next;            /* neighbours of bodies: next[begin[id]] .. next[begin[id + 1] - 1] */
    double *way;                  /* of bodies: gaps between it and what supports it from below, added up [m] */
    fsi__ct_cone *cone;
    double *x, *step, *force;     /* 6 a body: change of (v, w); Newton's step; gradient M x - J^T (p - j0) */
    size_t *start;                /* 6 a body: L(r, c) is value[start[r] + c] */
    double *value;
} fsi__ct_direct;

/* Counted by solve, added up. */
typedef struct fsi__ct_report {
    int sweeps, direct, direct_steps; /* direct: islands that were solved by Newton's method; its steps */
    int degraded;                 /* islands that sweeps left unsolved and that are too large for Newton's method */
    double residual;              /* of the last solve: largest change of a velocity in its last sweep [m/s] */
    double seconds_direct;
} fsi__ct_report;

/* The contact problem: a view of the owner's arrays. */
typedef struct fsi__ct_system {
    fsi_context *context;
    int dim, sweeps;              /* sweeps: at most */
    double gravity;               /* |g| */
    fsi__d3 up;                   /* unit, against gravity; 0: none */
    double tolerance;             /* on changes of velocity, relative to |g| dt; 0: all sweeps run */
    double direct_work;           /* multiplications that one factorisation may take */
    fsi__ct_body *body;           /* by id */
    int bodies;
    fsi__jt_tree *const *tree;    /* NULL: none at this place */
    int trees;
    fsi__ct_row *row;             /* those of one pair of bodies stand together */
    int rows, contacts;           /* contacts: the first rows, between bodies */
    fsi__ct_particle *particle;   /* NULL: no row has one */
    fsi__ct_direct *direct;
    fsi__ct_report *report;
} fsi__ct_system;

/* Islands of the rows, and all memory that their direct solution can need. Errors: MEMORY. */
FSI_API fsi_status fsi__ct_plan(const fsi__ct_system *s, const char *fn);
/* Velocities and impulses. Ends when a sweep changes no velocity by more than the tolerance, or by `enough` [m/s]. */
FSI_API void fsi__ct_solve(const fsi__ct_system *s, double dt, double enough);
/* Pseudo-velocities that undo overlap, by the rows' `push`. */
FSI_API void fsi__ct_separate(const fsi__ct_system *s, double dt);
FSI_API void fsi__ct_free(fsi_context *context, fsi__ct_direct *direct);
/* Relative velocity of a row's sides. */
FSI_API fsi__d3 fsi__ct_relative(const fsi__ct_system *s, const fsi__ct_row *row);
FSI_API void fsi__ct_push(const fsi__ct_system *s, int id, fsi__d3 impulse, fsi__d3 moment); /* on a mobile body */
FSI_API int fsi__ct_tree_awake(const fsi__ct_body *body, const fsi__jt_tree *t); /* 1: some link is mobile */
FSI_API void fsi__ct_spread(fsi__ct_body *body, const fsi__jt_tree *t);   /* velocities of links from the rates */

#endif /* FSI_CONTACT_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_CONTACT_IMPLEMENTATION
#define FSI_CONTACT_IMPLEMENTATION
#endif
#ifdef FSI_CONTACT_IMPLEMENTATION
#ifndef FSI_CONTACT_IMPLEMENTATION_DONE
#define FSI_CONTACT_IMPLEMENTATION_DONE

/* The solution of a substep's contacts:

      fsi__ct_solve
          fsi__ct_start                  lever arms and mobilities; impulses of the substep before (warm start)
          until no velocity changes by more than the tolerance, at most `sweeps` times
              fsi__ct_sweep              fsi__ct_relax projects each row's impulse on its cone; limits of trees
              fsi__ct_accelerate         after each second sweep: conjugate gradients on the impulses
              fsi__ct_solve_islands      after each eighth instead: Newton's method on islands that are not solved
          fsi__ct_spread                 velocities of links from the rates of their trees
      fsi__ct_separate                   the same for the split impulses: sweeps, then fsi__ct_separate_islands */

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_joints.h"

FSI__STRICT_BEGIN

/* ---- >>sides: velocities and impulses of bodies, trees and particles --------------------------------------------- */

static int fsi__ct_mobile(const fsi__ct_system *s, int id) { return id >= 0 && s->body[id].mobile; }

FSI_API int fsi__ct_tree_awake(const fsi__ct_body *body, const fsi__jt_tree *t)
{
    int l;
    for (l = 0; l < t->view.link_count; l++) if (body[t->body[l]].mobile) return 1;
    return 0;
}

FSI_API void fsi__ct_spread(fsi__ct_body *body, const fsi__jt_tree *t)
{
    int l;
    for (l = 0; l < t->view.link_count; l++) {
        fsi__ct_body *b = &body[t->body[l]];
        b->w = fsi__jt_angular(t, l, t->u);
        b->v = fsi__jt_linear(t, l, t->u);
    }
}

/* The next awake tree from place k on; NULL: none. */
static fsi__jt_tree *fsi__ct_next_tree(const fsi__ct_system *s, int *k)
{
    while (*k < s->trees) {
        fsi__jt_tree *t = s->tree[(*k)++];
        if (t && fsi__ct_tree_awake(s->body, t)) return t;
    }
    return NULL;
}

/* Of a side at lever arm r: v + omega x r. */
static fsi__d3 fsi__ct_velocity(const fsi__ct_system *s, int side, fsi__d3 r)
{
    const fsi__ct_body *b;
    if (side == FSI__CT_WORLD) return fsi__d3_zero();
    if (side < FSI__CT_WORLD) return s->particle[-2 - side].v;
    b = &s->body[side];
    if (b->tree >= 0 && b->mobile) return fsi__jt_velocity(s->tree[b->tree], b->link, r, s->tree[b->tree]->u);
    return fsi__d3_add(b->v, fsi__d3_cross(b->w, r));
}

FSI_API fsi__d3 fsi__ct_relative(const fsi__ct_system *s, const fsi__ct_row *row)
{
    return fsi__d3_sub(fsi__ct_velocity(s, row->a, row->ra), fsi__ct_velocity(s, row->b, row->rb));
}

FSI_API void fsi__ct_push(const fsi__ct_system *s, int id, fsi__d3 impulse, fsi__d3 moment)
{
    fsi__ct_body *b = &s->body[id];
    if (b->tree >= 0) {
        fsi__jt_kick(s->tree[b->tree], b->link, moment, impulse);
        return;
    }
    b->v = fsi__d3_madd(b->v, b->inverse_mass, impulse);
    b->w = fsi__d3_add(b->w, fsi__d9_mul(b->inverse_inertia, moment));
}

/* Gives a side the impulse j at lever arm r. */
static void fsi__ct_kick(const fsi__ct_system *s, int side, fsi__d3 r, fsi__d3 j)
{
    if (side < FSI__CT_WORLD) {
        fsi__ct_particle *p = &s->particle[-2 - side];
        p->v = fsi__d3_madd(p->v, p->inverse_mass, j);
    } else if (fsi__ct_mobile(s, side)) fsi__ct_push(s, side, j, fsi__d3_cross(r, j));
}

static void fsi__ct_exchange(const fsi__ct_system *s, const fsi__ct_row *row, fsi__d3 j)
{
    fsi__ct_kick(s, row->a, row->ra, j);
    fsi__ct_kick(s, row->b, row->rb, fsi__d3_scale(j, -1));
}

/* The impulse d at lever arm r of a link (of both sides where they are links of one tree) as generalised impulse. */
static void fsi__ct_generalise(const fsi__ct_system *s, const fsi__ct_row *row, int side, int both, fsi__d3 d,
    double *g)
{
    const fsi__ct_body *own = &s->body[side ? row->b : row->a];
    const fsi__jt_tree *t = s->tree[own->tree];
    memset(g, 0, (size_t)t->view.coordinates * sizeof *g);
    fsi__jt_add(t, own->link, fsi__d3_cross(side ? row->rb : row->ra, d), d, g);
    if (both && !side)
        fsi__jt_add(t, s->body[row->b].link, fsi__d3_scale(fsi__d3_cross(row->rb, d), -1), fsi__d3_scale(d, -1), g);
}

/* e . (mobility) d: how much an impulse d on a, -d on b, changes the relative velocity along e. */
static double fsi__ct_mobility(const fsi__ct_system *s, const fsi__ct_row *row, fsi__d3 d, fsi__d3 e)
{
    const int side[2] = { row->a, row->b };
    const int both = row->a >= 0 && row->b >= 0 && s->body[row->a].tree >= 0
                  && s->body[row->a].tree == s->body[row->b].tree;
    double sum = 0;
    int i, k;

    /* the sum over both sides; of two links of one tree, together */
    for (i = 0; i < 2; i++) {
        const fsi__d3 r = i ? row->rb : row->ra;
        if (side[i] < FSI__CT_WORLD) sum += s->particle[-2 - side[i]].inverse_mass * fsi__d3_dot(d, e);
        if (!fsi__ct_mobile(s, side[i])) continue;
        if (s->body[side[i]].tree < 0) { /* d.e / m + (r x e) . I^-1 (r x d) */
            const fsi__ct_body *b = &s->body[side[i]];
            const fsi__d3 turned = fsi__d9_mul(b->inverse_inertia, fsi__d3_cross(r, d));
            sum += b->inverse_mass * fsi__d3_dot(d, e) + fsi__d3_dot(fsi__d3_cross(r, e), turned);
        } else { /* J e . A^-1 J d */
            fsi__jt_tree *t = s->tree[s->body[side[i]].tree];
            fsi__ct_generalise(s, row, i, both, d, t->rhs);
            fsi__jt_solve(t, t->rhs, t->y);
            fsi__ct_generalise(s, row, i, both, e, t->rhs);
            for (k = 0; k < t->view.coordinates; k++) sum += t->rhs[k] * t->y[k];
            if (both) break;
        }
    }
    return sum;
}

/* ---- >>rows ------------------------------------------------------------------------------------------------------ */

static fsi__d3 fsi__ct_impulse(const fsi__ct_row *row) { return fsi__d3_madd(row->jt, row->jn, row->n); }

/* From the centre of a side to the contact. */
static fsi__d3 fsi__ct_arm(const fsi__ct_system *s, int side, fsi__d3 point)
{
    return side >= 0 ? fsi__d3_sub(point, fsi__d3_of(s->body[side].start.position)) : fsi__d3_zero();
}

/* The largest eigenvalue of the mobility across the normal: of one direction in 2D, else of a 2 x 2 matrix. */
static double fsi__ct_tangential_mobility(const fsi__ct_system *s, const fsi__ct_row *row)
{
    fsi__d3 t1, t2;
    double a, b, c;
    if (s->dim == 2) {
        t1 = fsi__d3_make(-row->n.y, row->n.x, 0);
        return fsi__ct_mobility(s, row, t1, t1);
    }
    t1 = fsi__d3_normal_to(row->n);
    t2 = fsi__d3_cross(row->n, t1);
    a = fsi__ct_mobility(s, row, t1, t1);
    b = fsi__ct_mobility(s, row, t1, t2);
    c = fsi__ct_mobility(s, row, t2, t2);
    return 0.5 * (a + c) + sqrt(0.25 * (a - c) * (a - c) + b * b);
}

/* Lever arms and mobilities of a row; its initial impulse is projected on the normal and the cone of this substep. */
static void fsi__ct_make_row(const fsi__ct_system *s, fsi__ct_row *row)
{
    double k;
    row->ra = fsi__ct_arm(s, row->a, row->point);
    row->rb = fsi__ct_arm(s, row->b, row->point);
    k = fsi__ct_mobility(s, row, row->n, row->n);
    row->kn = k > 0 ? 1 / k : 0;
    k = fsi__ct_tangential_mobility(s, row);
    row->kt = k > 0 ? 1 / k : 0;
    if (!(row->jn <= FSI__JT_WARM * row->kn)) { /* no impulse of resting contact: start from 0 */
        row->jn = 0;
        row->jt = fsi__d3_zero();
    }
    row->jt = fsi__d3_madd(row->jt, -fsi__d3_dot(row->jt, row->n), row->n);
    k = fsi__d3_norm(row->jt);
    if (k > row->friction * row->jn) row->jt = fsi__d3_scale(row->jt, k > 0 ? row->friction * row->jn / k : 0);
}

/* One row (direct_forcing.md 6): the normal impulse, never pulling; then friction, projected on the disc of radius
   friction * jn. Returns the largest change of the relative velocity. */
static double fsi__ct_relax(const fsi__ct_system *s, fsi__ct_row *row)
{
    const fsi__d3 old = row->jt;
    fsi__d3 u, want;
    double j, most, size, change;
    if (!(row->kn > 0)) return 0;

    /* jn = max(jn + (aim - u.n) / mobility, 0) */
    u = fsi__ct_relative(s, row);
    j = row->jn + row->kn * (row->aim - fsi__d3_dot(u, row->n));
    j = j > 0 ? j : 0;
    change = fabs(j - row->jn) / row->kn;
    if (j < row->jn || j > row->jn) fsi__ct_exchange(s, row, fsi__d3_scale(row->n, j - row->jn));
    row->jn = j;

    /* jt = P(jt + (slide - u_t) / mobility) */
    most = row->friction * j;
    if (!(most > 0) && !(fsi__d3_dot(old, old) > 0)) return change;
    u = fsi__ct_relative(s, row);
    u = fsi__d3_madd(u, -fsi__d3_dot(u, row->n), row->n);
    want = fsi__d3_madd(old, row->kt, fsi__d3_sub(row->slide, u));
    size = fsi__d3_norm(want);
    if (size > most) want = fsi__d3_scale(want, most / size);
    row->jt = want;
    want = fsi__d3_sub(want, old);
    fsi__ct_exchange(s, row, want);
    size = fsi__d3_norm(want) / row->kt;
    return size > change ? size : change;
}

/* ---- >>sweeps ---------------------------------------------------------------------------------------------------- */

/* Rows of one pair of bodies depend on each other most. They are relaxed there and back this often before the next
   pair: without, a tower of ten boxes leans by 2e-3 of a side before it stands. */
#define FSI__CT_PASSES 4

/* The n rows of a pair that start at `first`, from the last one when `back` is 1. */
static double fsi__ct_relax_pair(const fsi__ct_system *s, int first, int n, int back)
{
    double most = 0, d;
    int pass, k;
    for (pass = 0; pass < (n > 1 ? FSI__CT_PASSES : 1); pass++) for (k = 0; k < n; k++) {
        fsi__ct_row *row = &s->row[first + ((pass + back) % 2 ? n - 1 - k : k)];
        d = fsi__ct_relax(s, row);
        if (pass == 0) row->change = d;
        if (pass == 0 && d > most) most = d;
    }
    return most;
}

/* One sweep over rows and limits, from the last row when `back` is 1. Returns the largest change of a velocity. */
static double fsi__ct_sweep(const fsi__ct_system *s, double dt, int back)
{
    const fsi__ct_row *row = s->row;
    fsi__jt_tree *t;
    double most = 0, d;
    int at = back ? s->rows : 0, n, k;

    /* pair by pair */
    while (back ? at > 0 : at < s->rows) {
        const int first = back ? at - 1 : at;
        for (n = 1; back ? n < at : at + n < s->rows; n++) {
            k = back ? first - n : first + n;
            if (row[k].a != row[first].a || row[k].b != row[first].b) break;
        }
        d = fsi__ct_relax_pair(s, back ? at - n : at, n, back);
        most = d > most ? d : most;
        at += back ? -n : n;
    }

    /* limits of joints */
    for (k = 0; (t = fsi__ct_next_tree(s, &k)) != NULL;) {
        d = fsi__jt_relax_limits(t, dt);
        most = d > most ? d : most;
    }
    return most;
}

/* Sets a row's impulse to the point of its cone that is nearest to j, and gives the sides the difference. */
static void fsi__ct_set_impulse(const fsi__ct_system *s, fsi__ct_row *row, fsi__d3 j)
{
    const fsi__d3 old = fsi__ct_impulse(row);
    double size, most;
    row->jn = fsi__d3_dot(j, row->n);
    row->jn = row->jn > 0 ? row->jn : 0;
    row->jt = fsi__d3_madd(j, -fsi__d3_dot(j, row->n), row->n);
    size = fsi__d3_norm(row->jt);
    most = row->friction * row->jn;
    if (size > most) row->jt = fsi__d3_scale(row->jt, most / size);
    fsi__ct_exchange(s, row, fsi__d3_sub(fsi__ct_impulse(row), old));
}

/* A sweep there and back takes the impulses from J to J'. The difference acts as a gradient; with directions of
   conjugate gradients (Silcowitz, Niebuhr and Erleben 2010) a pile of n bodies takes about n double sweeps instead of
   n^2:
      g = J - J',   b = |g|^2 / |g before|^2,   J = J' + b way,   way = b way - g (the direction);   b > 1: way = -g.
   Norms are those of kinetic energy. Returns |g|^2. */
static double fsi__ct_accelerate(const fsi__ct_system *s, double before)
{
    double size = 0, b;
    int i;

    /* |g|^2 and b */
    for (i = 0; i < s->rows; i++) {
        const fsi__ct_row *row = &s->row[i];
        const fsi__d3 g = fsi__d3_sub(fsi__ct_impulse(row), row->from);
        if (row->kn > 0) size += fsi__d3_dot(g, g) / row->kn;
    }
    b = before > 0 ? size / before : 0;
    if (!(b <= 1)) b = 0;

    /* impulses, projected on their cones, and directions */
    for (i = 0; i < s->rows; i++) {
        fsi__ct_row *row = &s->row[i];
        const fsi__d3 j = fsi__ct_impulse(row), g = fsi__d3_sub(j, row->from);
        if (b > 0 && row->kn > 0) fsi__ct_set_impulse(s, row, fsi__d3_madd(j, b, row->way));
        row->way = fsi__d3_madd(g, b, row->way);
        row->from = fsi__ct_impulse(row);
    }
    return size;
}

static void fsi__ct_restart(const fsi__ct_system *s)
{
    int i;
    for (i = 0; i < s->rows; i++) {
        s->row[i].from = fsi__ct_impulse(&s->row[i]);
        s->row[i].way = fsi__d3_zero();
    }
}

/* Prepares the rows and applies the initial impulses. Returns the speed that changes are compared with: |g| dt, or the
   fastest contact's where there is no gravity. */
static double fsi__ct_start(const fsi__ct_system *s, double dt)
{
    fsi__jt_tree *t;
    double speed = s->gravity * dt, u;
    int i, k;
    for (i = 0; i < s->rows; i++) {
        fsi__ct_make_row(s, &s->row[i]);
        u = s->gravity > 0 ? 0 : fsi__d3_norm(fsi__ct_relative(s, &s->row[i]));
        speed = u > speed ? u : speed;
    }
    fsi__ct_restart(s);
    for (i = 0; i < s->rows; i++) if (s->row[i].jn > 0) fsi__ct_exchange(s, &s->row[i], s->row[i].from);
    for (k = 0; (t = fsi__ct_next_tree(s, &k)) != NULL;) fsi__jt_warm_limits(t);
    return speed;
}

/* ---- >>islands: their order and memory --------------------------------------------------------------------------- */

/* A sweep carries an impulse only from body to body, and a heavy body's weight in small shares through a light one.
   So islands that the first sweeps leave unsolved are solved directly where their matrix is small. With u = J v -
   wanted the relative velocities of all rows, j their impulses, P the projection on Coulomb's cones, v0 and j0
   velocities and impulses at the start, all conditions of fsi__ct_row together are (De Saxce and Feng 1998)

      M (v - v0) = J^T (j - j0),   j = P(j - rho (u + mu |u_t| n)),   any rho > 0                             (1)

   Each round keeps j (multipliers) and |u_t| on the right side fixed (Acary et al. 2011). Then v is the minimum of a
   convex function, and Newton's method with an exact line search finds it. Its matrix M + J^T rho P' J has 6 x 6 blocks
   where bodies touch, however many rows they share, and dependent rows do no harm. It is factored within its envelope,
   in the order of Cuthill and McKee (1969). Sweeps go on from the resulting impulses and check them. */

#define FSI__CT_STIFF 1e5      /* rho, by the row's effective mass: a round leaves 1/(1 + rho * mobility) of an error */
#define FSI__CT_HEAVY 1e2      /* rho at least, by the island's heaviest body, which may load the row */
#define FSI__CT_NEARLY 1e3     /* a solution is accepted within this times the accuracy wanted: sweeps go on from it */
#define FSI__CT_SHARE 1e-3     /* or within this fraction of the fastest velocity before: sweeps leave far more of it */
#define FSI__CT_NARROW 10      /* this often that in narrow islands, where sweeps carry impulses worst */
#define FSI__CT_NEWTON 200     /* Newton steps in all rounds together */
/* Wide islands are heaps, where a body has many neighbours. Sweeps carry impulses well there and Newton's method
   converges slowly, so that it gets few steps; unless an impact has hit the island, and it is so small that many steps
   are cheap. */
#define FSI__CT_WIDE 1e3       /* an island is wide when a factorisation takes more multiplications a body */
#define FSI__CT_QUICK 12       /* Newton steps in a wide island */
#define FSI__CT_HIT 4.5        /* times |g| dt: an impact changes a velocity by more than this in the eighth sweep */
#define FSI__CT_SPEND 50       /* times direct_work: work of a solution; half of direct_work a step after an impact */
#define FSI__CT_ROW_WORK 1500  /* multiplications that a row takes beside the factorisation, in a step */
#define FSI__CT_FEW 8          /* Newton steps with one smoothing */
#define FSI__CT_TINY 3         /* short steps one after the other: Newton's method has stalled */
#define FSI__CT_TRIES 2        /* direct solutions of an island in a substep */
#define FSI__CT_TRY_DIRECT 8   /* sweeps before an island is solved directly */

/* Lists the neighbours of each mobile body. */
static void fsi__ct_list_neighbors(const fsi__ct_system *s)
{
    fsi__ct_direct *d = s->direct;
    int i, k, pass;
    memset(d->begin, 0, ((size_t)s->bodies + 2) * sizeof *d->begin);

    /* the first pass counts, the second writes */
    for (pass = 0; pass < 2; pass++) {
        for (i = 0; i < s->rows; i++) {
            const fsi__ct_row *r = &s->row[i];
            if (i > 0 && r[-1].a == r->a && r[-1].b == r->b) continue;
            if (!fsi__ct_mobile(s, r->a) || !fsi__ct_mobile(s, r->b)) continue;
            if (pass) {
                d->next[d->begin[r->a + 1]++] = r->b;
                d->next[d->begin[r->b + 1]++] = r->a;
            } else {
                d->begin[r->a + 2]++;
                d->begin[r->b + 2]++;
            }
        }
        for (k = 2; k <= s->bodies && !pass; k++) d->begin[k] += d->begin[k - 1];
    }
}

/* Lists the bodies that are connected to `id`, breadth first, from d->body[at] on, and marks their places. Returns how
   many. */
static int fsi__ct_spread_from(fsi__ct_direct *d, int id, int at, int mark)
{
    int n = 1, k, i;
    d->body[at] = id;
    d->place[id] = mark;
    for (k = 0; k < n; k++) {
        const int from = d->body[at + k];
        for (i = d->begin[from]; i < d->begin[from + 1]; i++) if (d->place[d->next[i]] != mark) {
            d->place[d->next[i]] = mark;
            d->body[at + n++] = d->next[i];
        }
    }
    return n;
}

/* The order of Cuthill and McKee, reversed, of the n bodies that are connected to `id`: breadth first from one end of
   the island. Returns n. */
static int fsi__ct_order_island(fsi__ct_direct *d, int id, int at)
{
    const int n = fsi__ct_spread_from(d, id, at, -2);
    int k, swap;
    fsi__ct_spread_from(d, d->body[at + n - 1], at, -3);
    for (k = 0; k < n / 2; k++) {
        swap = d->body[at + k];
        d->body[at + k] = d->body[at + n - 1 - k];
        d->body[at + n - 1 - k] = swap;
    }
    return n;
}

/* One island, of the bodies that are connected to `id`. Returns how many numbers its envelope holds. */
static size_t fsi__ct_plan_island(const fsi__ct_system *s, int id, int at)
{
    fsi__ct_direct *d = s->direct;
    fsi__ct_island *o = &d->island[d->islands];
    const int n = fsi__ct_order_island(d, id, at);
    int k, i, first, has_tree = 0;
    size_t size = 0;
    memset(o, 0, sizeof *o);
    o->body = at;
    o->bodies = n;
    o->tries = FSI__CT_TRIES;

    /* places in the order */
    for (k = 0; k < n; k++) {
        id = d->body[at + k];
        d->place[id] = k;
        d->owner[id] = d->islands;
        has_tree |= s->body[id].tree >= 0;
    }

    /* envelope: from the first neighbour on */
    for (k = 0; k < n; k++) {
        first = k;
        id = d->body[at + k];
        for (i = d->begin[id]; i < d->begin[id + 1]; i++)
            if (d->place[d->next[i]] < first) first = d->place[d->next[i]];
        d->first[at + k] = first;
        o->work += 108.0 * (k - first + 1) * (k - first + 1);
        size += 36 * (size_t)(k - first + 1);
    }

    /* trees have coordinates of their own: their islands are left to the sweeps, and so are large ones */
    o->large = !has_tree && o->work > d->most;
    d->islands++;
    if (!has_tree && !o->large) return size;
    o->work = 0;
    return 0;
}

/* Rows by islands. */
static void fsi__ct_plan_rows(const fsi__ct_system *s)
{
    fsi__ct_direct *d = s->direct;
    int i, k, n = 0, pass;
    for (pass = 0; pass < 2; pass++) {
        for (i = 0; i < s->rows; i++) {
            const fsi__ct_row *r = &s->row[i];
            const int id = fsi__ct_mobile(s, r->a) ? r->a : (fsi__ct_mobile(s, r->b) ? r->b : -1);
            fsi__ct_island *o;
            if (id < 0) continue;
            o = &d->island[d->owner[id]];
            if (pass) d->list[o->row + o->rows] = i;
            o->rows++;
        }
        for (k = 0; k < d->islands && !pass; k++) {
            d->island[k].row = n;
            n += d->island[k].rows;
            d->island[k].rows = 0;
        }
    }
}

static void fsi__ct_lay_lists(fsi__ct_direct *d, fsi__arena *arena, size_t bodies, size_t rows)
{
    d->island = (fsi__ct_island *)fsi__take(arena, bodies + 1, sizeof *d->island);
    d->body = (int *)fsi__take(arena, bodies + 1, sizeof(int));
    d->place = (int *)fsi__take(arena, bodies + 1, sizeof(int));
    d->first = (int *)fsi__take(arena, bodies + 1, sizeof(int));
    d->owner = (int *)fsi__take(arena, bodies + 1, sizeof(int));
    d->list = (int *)fsi__take(arena, rows + 1, sizeof(int));
    d->begin = (int *)fsi__take(arena, bodies + 2, sizeof(int));
    d->next = (int *)fsi__take(arena, 2 * rows + 1, sizeof(int));
    d->way = (double *)fsi__take(arena, bodies + 1, sizeof(double));
}

static void fsi__ct_lay_numbers(fsi__ct_direct *d, fsi__arena *arena, size_t bodies, size_t rows, size_t value)
{
    d->cone = (fsi__ct_cone *)fsi__take(arena, rows, sizeof *d->cone);
    d->x = (double *)fsi__take(arena, 6 * bodies, sizeof(double));
    d->step = (double *)fsi__take(arena, 6 * bodies, sizeof(double));
    d->force = (double *)fsi__take(arena, 6 * bodies, sizeof(double));
    d->start = (size_t *)fsi__take(arena, 6 * bodies, sizeof(size_t));
    d->value = (double *)fsi__take(arena, value, sizeof(double));
}

static fsi_status fsi__ct_room(const fsi__ct_system *s, fsi__arena *arena, size_t size, const char *fn)
{
    if (fsi__arena_room(s->context, arena, size)) return FSI_OK;
    return fsi__fail(s->context, FSI_ERROR_MEMORY, fn, -1, (double)size, "no memory for islands");
}

FSI_API fsi_status fsi__ct_plan(const fsi__ct_system *s, const char *fn)
{
    fsi__ct_direct *d = s->direct;
    fsi__arena measure = { NULL, 0, 0 };
    size_t size, value = 0, bodies = 0, rows = 0;
    int id, k, at = 0;

    /* room for the lists */
    d->rows = -1;
    fsi__ct_lay_lists(d, &measure, (size_t)s->bodies, (size_t)s->rows);
    FSI__TRY(fsi__ct_room(s, &d->lists, measure.used, fn));
    fsi__ct_lay_lists(d, &d->lists, (size_t)s->bodies, (size_t)s->rows);

    /* islands, and the largest of those that may be solved directly */
    d->islands = 0;
    d->most = s->direct_work;
    fsi__ct_list_neighbors(s);
    for (id = 0; id < s->bodies; id++) d->place[id] = -1;
    for (id = 0; id < s->bodies; id++) if (fsi__ct_mobile(s, id) && d->place[id] == -1) {
        size = fsi__ct_plan_island(s, id, at);
        at += d->island[d->islands - 1].bodies;
        value = size > value ? size : value;
    }
    fsi__ct_plan_rows(s);
    for (k = 0; k < d->islands; k++) if (d->island[k].work > 0) {
        bodies = (size_t)d->island[k].bodies > bodies ? (size_t)d->island[k].bodies : bodies;
        rows = (size_t)d->island[k].rows > rows ? (size_t)d->island[k].rows : rows;
    }

    /* room for its numbers */
    memset(&measure, 0, sizeof measure);
    fsi__ct_lay_numbers(d, &measure, bodies, rows, value);
    FSI__TRY(fsi__ct_room(s, &d->numbers, measure.used, fn));
    fsi__ct_lay_numbers(d, &d->numbers, bodies, rows, value);
    d->rows = s->rows;
    return FSI_OK;
}

FSI_API void fsi__ct_free(fsi_context *context, fsi__ct_direct *direct)
{
    fsi__arena_free(context, &direct->lists);
    fsi__arena_free(context, &direct->numbers);
}

/* ---- >>cones: the projection P and its derivative ---------------------------------------------------------------- */

/* max(x, 0), smoothed within tau (Chen and Harker, Kanzow, Smale): (x + root)/2, root = sqrt(x^2 + 4 tau^2). Its slope
   is this over root. */
static double fsi__ct_plus(double x, double tau, double *slope)
{
    const double root = sqrt(x * x + 4 * tau * tau);
    const double y = x > 0 ? 0.5 * (x + root) : (root > 0 ? 2 * tau * tau / (root - x) : 0);
    *slope = root > 0 ? y / root : 0;
    return y;
}

/* B = -dP/du = rho (nn n n^T + nt (n e^T + e n^T) + mu^2 ((nn - across) e e^T + across (1 - n n^T))). */
static void fsi__ct_derivative(const fsi__ct_cone *r, fsi__d3 e, double nn, double nt, double across, double *B)
{
    const double mu = r->mu;
    int i, k;
    for (i = 0; i < 3; i++) for (k = 0; k < 3; k++) {
        const double ni = fsi__d3_axis(r->n, i), nk = fsi__d3_axis(r->n, k);
        const double ei = fsi__d3_axis(e, i), ek = fsi__d3_axis(e, k);
        const double tangential = (nn - across) * ei * ek + across * ((i == k) - ni * nk);
        B[3 * i + k] = r->rho * (nn * ni * nk + nt * (ni * ek + ei * nk) + mu * mu * tangential);
    }
}

/* P of an impulse of normal part zn and tangential part zt, and B = -dP/du. (mu zn, zt) turns Coulomb's cone into the
   cone |t| <= n, on which (Fukushima, Luo and Tseng 2002) P acts by the components along its edges: with e = zt/|zt|

      P = plus(n - |t|) (1, -e)/2 + plus(n + |t|) (1, e)/2

   Without friction only n is left. B NULL: not wanted. */
static fsi__d3 fsi__ct_project(const fsi__ct_cone *r, fsi__d3 z, double *B)
{
    const double mu = r->mu, zn = fsi__d3_dot(z, r->n);
    const double n = mu > 0 ? mu * zn : zn, tau = mu > 0 ? mu * r->tau : r->tau;
    const fsi__d3 t = fsi__d3_madd(z, -zn, r->n);
    const double size = mu > 0 ? fsi__d3_norm(t) : 0;
    const fsi__d3 e = fsi__d3_scale(t, size > 0 ? 1 / size : 0);
    double low, high, slope_low, slope_high;
    low = fsi__ct_plus(n - size, tau, &slope_low);
    high = fsi__ct_plus(n + size, tau, &slope_high);
    if (B)
        fsi__ct_derivative(r, e, 0.5 * (slope_low + slope_high), mu > 0 ? 0.5 * mu * (slope_high - slope_low) : 0,
                           size > 1e-12 * high ? (high - low) / (2 * size) : slope_high, B);
    z = fsi__d3_scale(r->n, 0.5 * (low + high) / (mu > 0 ? mu : 1));
    return fsi__d3_madd(z, 0.5 * (high - low), e);
}

/* z of a relative velocity u: j - rho (u.n + mu |u_t|) n - rho mu^2 u_t. */
static fsi__d3 fsi__ct_cone_z(const fsi__ct_cone *r, fsi__d3 j, double shift, fsi__d3 u)
{
    const double un = fsi__d3_dot(u, r->n), soft = r->mu * r->mu;
    const fsi__d3 scaled = fsi__d3_madd(fsi__d3_scale(u, soft), (1 - soft) * un + shift, r->n);
    return fsi__d3_sub(j, fsi__d3_scale(scaled, r->rho));
}

/* ---- >>Newton's method ------------------------------------------------------------------------------------------- */

static void fsi__ct_add3(double *x, fsi__d3 v) { x[0] += v.x; x[1] += v.y; x[2] += v.z; }

/* v + omega x r of a body's part (v, omega) of x. */
static fsi__d3 fsi__ct_part_velocity(const double *x, fsi__d3 r)
{
    return fsi__d3_add(fsi__d3_at(x), fsi__d3_cross(fsi__d3_at(x + 3), r));
}

/* J x of a row. */
static fsi__d3 fsi__ct_cone_velocity(const fsi__ct_cone *r, const double *x)
{
    fsi__d3 u = fsi__d3_zero();
    if (r->a >= 0) u = fsi__ct_part_velocity(x + 6 * r->a, r->ra);
    if (r->b >= 0) u = fsi__d3_sub(u, fsi__ct_part_velocity(x + 6 * r->b, r->rb));
    return u;
}

/* y += J^T j */
static void fsi__ct_cone_spread(const fsi__ct_cone *r, fsi__d3 j, double *y)
{
    if (r->a >= 0) {
        fsi__ct_add3(y + 6 * r->a, j);
        fsi__ct_add3(y + 6 * r->a + 3, fsi__d3_cross(r->ra, j));
    }
    if (r->b >= 0) {
        fsi__ct_add3(y + 6 * r->b, fsi__d3_scale(j, -1));
        fsi__ct_add3(y + 6 * r->b + 3, fsi__d3_cross(j, r->rb));
    }
}

/* y = M x of a body. In 2D nothing turns about x and y. */
static void fsi__ct_body_times(const fsi__ct_body *b, const double *x, double *y)
{
    memset(y, 0, 6 * sizeof *y);
    fsi__ct_add3(y, fsi__d3_scale(fsi__d3_at(x), 1 / b->inverse_mass));
    fsi__ct_add3(y + 3, fsi__d9_mul(b->inertia, fsi__d3_at(x + 3)));
}

static const fsi__ct_body *fsi__ct_body_of(const fsi__ct_system *s, const fsi__ct_island *o, int k)
{
    return &s->body[s->direct->body[o->body + k]];
}

/* The gradient, force = M x - J^T (p - j0), with z and p of all rows. */
static void fsi__ct_gradient(const fsi__ct_system *s, const fsi__ct_island *o)
{
    const fsi__ct_direct *d = s->direct;
    int k;
    for (k = 0; k < o->bodies; k++) fsi__ct_body_times(fsi__ct_body_of(s, o, k), d->x + 6 * k, d->force + 6 * k);
    for (k = 0; k < o->rows; k++) {
        fsi__ct_cone *r = &d->cone[k];
        const fsi__d3 u = fsi__d3_add(r->u, fsi__ct_cone_velocity(r, d->x));
        r->z = fsi__ct_cone_z(r, r->j, r->shift, u);
        r->p = fsi__ct_project(r, r->z, NULL);
        fsi__ct_cone_spread(r, fsi__d3_sub(r->j0, r->p), d->force);
    }
}

/* E += J_a^T B J_a, J_a = (1, -[r]x): 6 x 6. */
static void fsi__ct_add_stiffness(fsi__d3 r, const double *B, double *E)
{
    double C[18];
    int i, k;
    for (i = 0; i < 3; i++) { /* C = B J_a */
        fsi__d3_put(C + 6 * i, fsi__d3_at(B + 3 * i));
        fsi__d3_put(C + 6 * i + 3, fsi__d3_cross(r, fsi__d3_at(B + 3 * i)));
    }
    for (k = 0; k < 6; k++) { /* E += J_a^T C */
        E[k] += C[k];
        E[6 + k] += C[6 + k];
        E[12 + k] += C[12 + k];
        E[18 + k] += r.y * C[12 + k] - r.z * C[6 + k];
        E[24 + k] += r.z * C[k] - r.x * C[12 + k];
        E[30 + k] += r.x * C[6 + k] - r.y * C[k];
    }
}

/* The block (a, b) of the matrix += sign * E; of a block on the diagonal the lower half. */
static void fsi__ct_add_block(const fsi__ct_direct *d, int a, int b, const double *E, double sign)
{
    int i, k;
    for (i = 0; i < 6; i++) {
        double *row = d->value + d->start[6 * a + i] + (size_t)(6 * b);
        for (k = 0; k < (a == b ? i + 1 : 6); k++) row[k] += sign * E[6 * i + k];
    }
}

/* The blocks of one pair's rows, E = sum J_a^T B J_a. With rb = ra + D it is J_b = J_a T, T = (1, -[D]x; 0, 1), so that
   E,
   -E T and T^T E T are the blocks (a, a), (a, b) and (b, b). */
static void fsi__ct_add_pair_blocks(const fsi__ct_direct *d, const fsi__ct_cone *r, const double *E)
{
    const fsi__d3 D = fsi__d3_sub(r->rb, r->ra);
    double ET[36], F[36], back[36];
    int i, k;
    if (r->a >= 0) fsi__ct_add_block(d, r->a, r->a, E, 1);
    if (r->b < 0) return;

    /* E T, and F = T^T E T */
    memcpy(ET, E, sizeof ET);
    for (i = 0; i < 6; i++) fsi__ct_add3(ET + 6 * i + 3, fsi__d3_cross(D, fsi__d3_at(E + 6 * i)));
    memcpy(F, ET, sizeof F);
    for (k = 0; k < 6; k++) {
        const fsi__d3 turn = fsi__d3_cross(D, fsi__d3_make(ET[k], ET[6 + k], ET[12 + k]));
        F[18 + k] += turn.x;
        F[24 + k] += turn.y;
        F[30 + k] += turn.z;
    }
    fsi__ct_add_block(d, r->b, r->b, F, 1);

    /* the lower one of the two blocks off the diagonal */
    for (i = 0; i < 6; i++) for (k = 0; k < 6; k++) back[6 * k + i] = ET[6 * i + k];
    if (r->a > r->b) fsi__ct_add_block(d, r->a, r->b, ET, -1);
    else if (r->a >= 0) fsi__ct_add_block(d, r->b, r->a, back, -1);
}

/* M in the envelope, its lower half, all else 0. */
static void fsi__ct_assemble_mass(const fsi__ct_system *s, const fsi__ct_island *o)
{
    const fsi__ct_direct *d = s->direct;
    size_t size = 0;
    int k, i, l;
    for (k = 0; k < 6 * o->bodies; k++) {
        d->start[k] = size - (size_t)(6 * d->first[o->body + k / 6]);
        size += (size_t)(k + 1 - 6 * d->first[o->body + k / 6]);
    }
    memset(d->value, 0, size * sizeof *d->value);
    for (k = 0; k < o->bodies; k++) {
        const fsi__ct_body *b = fsi__ct_body_of(s, o, k);
        for (i = 0; i < 3; i++) d->value[d->start[6 * k + i] + (size_t)(6 * k + i)] = 1 / b->inverse_mass;
        for (i = 0; i < 3; i++) for (l = 0; l <= i; l++)
            d->value[d->start[6 * k + 3 + i] + (size_t)(6 * k + 3 + l)] = b->inertia[3 * i + l];
    }
}

/* M + J^T rho P' J, its lower half. */
static void fsi__ct_assemble(const fsi__ct_system *s, const fsi__ct_island *o)
{
    const fsi__ct_direct *d = s->direct;
    double E[36], B[9];
    int k;
    fsi__ct_assemble_mass(s, o);
    memset(E, 0, sizeof E);
    for (k = 0; k < o->rows; k++) {
        const fsi__ct_cone *r = &d->cone[k];
        fsi__ct_project(r, r->z, B);
        fsi__ct_add_stiffness(r->a >= 0 ? r->ra : r->rb, B, E);
        if (k + 1 < o->rows && r[1].a == r->a && r[1].b == r->b) continue; /* of the same pair */
        if (r->a >= 0) fsi__ct_add_pair_blocks(d, r, E);
        else fsi__ct_add_block(d, r->b, r->b, E, 1);
        memset(E, 0, sizeof E);
    }
}

/* a . b in FSI_LANES partial sums, the rest by itself (fsi__dot of fsi.h adds the rest to the lanes: other bits). */
static double fsi__ct_dot(const double *a, const double *b, int n)
{
    double lane[FSI_LANES] = { 0, 0, 0, 0, 0, 0, 0, 0 }, tail = 0;
    int i, k;
    for (i = 0; i + FSI_LANES <= n; i += FSI_LANES) for (k = 0; k < FSI_LANES; k++) lane[k] += a[i + k] * b[i + k];
    for (; i < n; i++) tail += a[i] * b[i];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7])) + tail;
}

/* step = -A^-1 force: A = L L^T within its envelope, 1/L(r, r) on the diagonal. 0: A is not positive definite. */
static int fsi__ct_newton_step(const fsi__ct_direct *d, const fsi__ct_island *o)
{
    const int n = 6 * o->bodies, *first = d->first + o->body;
    int r, c;

    /* factor, and L y = -force */
    for (r = 0; r < n; r++) {
        double *row = d->value + d->start[r], sum;
        const int begin = 6 * first[r / 6];
        for (c = begin; c < r; c++) {
            const int from = 6 * first[c / 6] > begin ? 6 * first[c / 6] : begin;
            const double *other = d->value + d->start[c];
            row[c] = (row[c] - fsi__ct_dot(row + from, other + from, c - from)) * other[c];
        }
        sum = row[r] - fsi__ct_dot(row + begin, row + begin, r - begin);
        if (!(sum > 1e-14 * row[r])) return 0;
        row[r] = 1 / sqrt(sum);
        d->step[r] = (-d->force[r] - fsi__ct_dot(row + begin, d->step + begin, r - begin)) * row[r];
    }

    /* L^T step = y */
    for (r = n - 1; r >= 0; r--) {
        const double *row = d->value + d->start[r];
        d->step[r] *= row[r];
        for (c = 6 * first[r / 6]; c < r; c++) d->step[c] -= row[c] * d->step[r];
    }
    return 1;
}

/* du of all rows along the step. Returns the largest. */
static double fsi__ct_change_along(const fsi__ct_direct *d, const fsi__ct_island *o)
{
    double largest = 0;
    int k;
    for (k = 0; k < o->rows; k++) {
        d->cone[k].du = fsi__ct_cone_velocity(&d->cone[k], d->step);
        largest = fmax(largest, fsi__d3_norm(d->cone[k].du));
    }
    return largest;
}

/* Exact line search: the step length t at which the slope of the function along the step,
      step . M (x + t step) - sum du . (P(z - t rho du) - j0),
   vanishes to a tenth (Illinois' method). */
static double fsi__ct_step_length(const fsi__ct_system *s, const fsi__ct_island *o)
{
    const fsi__ct_direct *d = s->direct;
    const double slope0 = fsi__ct_dot(d->step, d->force, 6 * o->bodies); /* at t = 0 */
    double step_x = 0, step_step = 0, y[6]; /* step . M x, step . M step */
    double lo = 0, hi = 0, slope_lo = slope0, slope_hi = 0, slope, t = 1;
    int k, pass, i;
    for (k = 0; k < o->bodies; k++) {
        fsi__ct_body_times(fsi__ct_body_of(s, o, k), d->step + 6 * k, y);
        for (i = 0; i < 6; i++) {
            step_step += y[i] * d->step[6 * k + i];
            step_x += y[i] * d->x[6 * k + i];
        }
    }

    /* bracket the root, then regula falsi; the retained end's slope is halved */
    for (pass = 0; pass < 30; pass++) {
        slope = step_x + t * step_step;
        for (k = 0; k < o->rows; k++) {
            const fsi__ct_cone *r = &d->cone[k];
            const fsi__d3 p = fsi__ct_project(r, fsi__ct_cone_z(r, r->z, 0, fsi__d3_scale(r->du, t)), NULL);
            slope -= fsi__d3_dot(r->du, fsi__d3_sub(p, r->j0));
        }
        if (fabs(slope) <= 0.1 * fabs(slope0) || (pass == 0 && slope < 0)) break;
        if (slope < 0) { lo = t; slope_lo = slope; slope_hi *= pass > 0 && hi > 0 ? 0.5 : 1; }
        else { slope_lo *= hi > 0 ? 0.5 : 1; hi = t; slope_hi = slope; }
        t = lo + (hi - lo) * slope_lo / (slope_lo - slope_hi);
    }
    return t;
}

/* Newton steps until one changes no velocity by more than `enough`. 0: the steps ran out; -1: they have stalled. */
static int fsi__ct_newton(const fsi__ct_system *s, const fsi__ct_island *o, double enough, int *left)
{
    const fsi__ct_direct *d = s->direct;
    double t, largest = 1e300;
    int k, tiny = 0;
    while (largest > enough) {
        if (--*left < 0) return 0;
        fsi__ct_gradient(s, o);
        fsi__ct_assemble(s, o);
        if (!fsi__ct_newton_step(d, o)) return 0;
        largest = fsi__ct_change_along(d, o);
        t = fsi__ct_step_length(s, o);
        for (k = 0; k < 6 * o->bodies; k++) d->x[k] += t * d->step[k];
        tiny = t < 0.2 ? tiny + 1 : 0;
        if (tiny >= FSI__CT_TINY && d->cone[0].tau <= 0) return -1;
    }
    fsi__ct_gradient(s, o);
    return 1;
}

/* ---- >>direct solution ------------------------------------------------------------------------------------------- */

/* mu |u_t|. */
static double fsi__ct_shift(const fsi__ct_cone *r, fsi__d3 u)
{
    return r->mu * fsi__d3_norm(fsi__d3_madd(u, -fsi__d3_dot(u, r->n), r->n));
}

static fsi__d3 fsi__ct_pseudo_relative(const fsi__ct_system *s, const fsi__ct_row *row);
static void fsi__ct_pseudo_exchange(const fsi__ct_system *s, const fsi__ct_row *row, double j);

/* The rows of an island as cones. separating: of the split impulses, which have normal parts only. */
static void fsi__ct_load_cones(const fsi__ct_system *s, const fsi__ct_island *o, int separating)
{
    fsi__ct_direct *d = s->direct;
    double heaviest = 0;
    int k;
    for (k = 0; k < o->bodies; k++) heaviest = fmax(heaviest, 1 / fsi__ct_body_of(s, o, k)->inverse_mass);
    for (k = 0; k < o->rows; k++) {
        const fsi__ct_row *row = &s->row[d->list[o->row + k]];
        fsi__ct_cone *r = &d->cone[k];

        /* geometry and stiffness */
        memset(r, 0, sizeof *r);
        r->a = fsi__ct_mobile(s, row->a) ? d->place[row->a] : -1;
        r->b = fsi__ct_mobile(s, row->b) ? d->place[row->b] : -1;
        r->ra = row->ra;
        r->rb = row->rb;
        r->n = row->n;
        r->rho = fmax(FSI__CT_STIFF * row->kn, FSI__CT_HEAVY * heaviest);

        /* velocity and impulse at the start */
        if (separating) {
            r->u = fsi__d3_madd(fsi__ct_pseudo_relative(s, row), -row->push, row->n);
            r->j0 = r->j = fsi__d3_scale(row->n, fmax(row->jp, 0));
            if (row->jp < 0) r->rho = 0;
        } else {
            r->u = fsi__d3_sub(fsi__d3_madd(fsi__ct_relative(s, row), -row->aim, row->n), row->slide);
            r->j0 = r->j = fsi__ct_impulse(row);
            r->mu = row->friction;
            r->shift = fsi__ct_shift(r, r->u);
        }
    }
    memset(d->x, 0, 6 * (size_t)o->bodies * sizeof *d->x);
}

/* Fixes j = P(z) (hold: j stays) and mu |u_t| of the last round for the next one. Returns the largest change, as a
   velocity [m/s]. */
static double fsi__ct_next_round(const fsi__ct_direct *d, const fsi__ct_island *o, int hold)
{
    double off = 0;
    int k;
    for (k = 0; k < o->rows; k++) {
        fsi__ct_cone *r = &d->cone[k];
        const fsi__d3 u = fsi__d3_add(r->u, fsi__ct_cone_velocity(r, d->x)), change = fsi__d3_sub(r->p, r->j);
        const double shift = fsi__ct_shift(r, u), n = fsi__d3_dot(change, r->n);
        if (r->rho > 0) off = fmax(off, fabs(n) / r->rho);
        if (r->mu > 0) off = fmax(off, fsi__d3_norm(fsi__d3_madd(change, -n, r->n)) / (r->mu * r->mu * r->rho));
        if (fsi__d3_dot(r->p, r->p) > 0) off = fmax(off, fabs(shift - r->shift));
        r->shift = shift;
        if (!hold) r->j = r->p;
    }
    return off;
}

/* Continuation from far off: P is smoothed, less and less, and Newton steps follow the minimum. */
static int fsi__ct_follow(const fsi__ct_system *s, const fsi__ct_island *o, double speed, double enough, int *left)
{
    const fsi__ct_direct *d = s->direct;
    int k, few;
    for (; speed > enough && *left > 0; speed *= few >= FSI__CT_FEW - 2 ? 0.1 : 0.3) {
        for (k = 0; k < o->rows; k++) d->cone[k].tau = speed / sqrt(FSI__CT_STIFF) * d->cone[k].rho;
        few = FSI__CT_FEW;
        fsi__ct_newton(s, o, 0.1 * speed, &few);
        *left -= few < 0 ? FSI__CT_FEW : FSI__CT_FEW - few;
        fsi__ct_gradient(s, o);
        fsi__ct_next_round(d, o, 1);
    }
    for (k = 0; k < o->rows; k++) d->cone[k].tau = 0;
    return *left > 0;
}

static int fsi__ct_is_wide(const fsi__ct_island *o) { return o->work > FSI__CT_WIDE * o->bodies; }

/* Multiplications of one Newton step. */
static double fsi__ct_step_work(const fsi__ct_island *o) { return o->work + FSI__CT_ROW_WORK * (o->rows + 1.0); }

/* How many Newton steps an island may take. */
static int fsi__ct_newton_steps(const fsi__ct_direct *d, const fsi__ct_island *o, int quick)
{
    const double most = FSI__CT_SPEND * d->most / fsi__ct_step_work(o);
    const int steps = quick ? FSI__CT_QUICK : FSI__CT_NEWTON;
    return most < steps ? (int)most : steps;
}

/* Does no body move farther than by all overlaps of its island together? Rows of bodies that overlap deeply may
   contradict each other; the pseudo-velocities that satisfy all of them may be excessive. */
static int fsi__ct_is_moderate(const fsi__ct_system *s, const fsi__ct_island *o)
{
    const fsi__ct_direct *d = s->direct;
    double most = 0;
    int k;
    for (k = 0; k < o->rows; k++) most += fmax(s->row[d->list[o->row + k]].push, 0);
    for (k = 0; k < o->bodies; k++) if (!(fsi__d3_norm(fsi__d3_at(d->x + 6 * k)) <= most)) return 0;
    return 1;
}

/* Rounds until one changes no velocity by more than 0.3 enough. quick: few steps, no continuation. Rounds often come
   near the solution and then turn around it: the result is that of the round that has changed least. Returns 1 when it
   is accepted: the round is close enough for sweeps to go on from it, and a separation is moderate. Rounds do not
   converge where bodies are squeezed between others of prescribed motion. */
static int fsi__ct_run_rounds(const fsi__ct_system *s, const fsi__ct_island *o, double enough, int separating,
    int quick)
{
    fsi__ct_direct *d = s->direct;
    const int steps = fsi__ct_newton_steps(d, o, quick);
    int round, k, left = steps, got;
    int slow = 0, followed = quick ? 2 : 0; /* rounds that did not halve `off`; continuations so far */
    double off = 1e300, before, best = 1e300, speed = 0; /* off: the last round's change [m/s] */

    /* rounds, and the best of them */
    for (k = 0; k < o->rows; k++) speed = fmax(speed, fsi__d3_norm(d->cone[k].u));
    for (round = 0; off > 0.3 * enough && slow < 3; round++) {
        got = fsi__ct_newton(s, o, fmax(0.03 * enough, off < 1e300 ? 0.01 * off : 0), &left);
        if (got < 0 && followed++ < 2 && fsi__ct_follow(s, o, followed > 1 ? off : speed, enough, &left)) continue;
        if (got <= 0) break;
        before = off;
        off = fsi__ct_next_round(d, o, 0);
        slow += off > 0.5 * before;
        if (!(off < best) || (separating && !fsi__ct_is_moderate(s, o))) continue;
        best = off;
        for (k = 0; k < o->rows; k++) d->cone[k].best = d->cone[k].j;
    }

    /* is it accepted? */
    if (!separating) s->report->direct_steps += steps - (left > 0 ? left : 0);
    if (!(best < 1e300)) return 0;
    for (k = 0; k < o->rows; k++) d->cone[k].j = d->cone[k].best;
    return best <= fmax(FSI__CT_NEARLY * enough, (fsi__ct_is_wide(o) ? 1 : FSI__CT_NARROW) * FSI__CT_SHARE * speed);
}

/* Velocities and impulses of one island. anew: the multipliers start from 0. 0: not accepted, nothing has changed. */
static int fsi__ct_solve_island(const fsi__ct_system *s, const fsi__ct_island *o, double enough, int quick, int anew)
{
    const fsi__ct_direct *d = s->direct;
    int k;
    fsi__ct_load_cones(s, o, 0);
    for (k = 0; k < o->rows && anew; k++) d->cone[k].j = fsi__d3_zero();
    if (!fsi__ct_run_rounds(s, o, enough, 0, quick)) return 0;
    s->report->direct++;
    for (k = 0; k < o->rows; k++) fsi__ct_set_impulse(s, &s->row[d->list[o->row + k]], d->cone[k].j);
    return 1;
}

/* Solves islands in which some velocity still changes by more than `enough` in a sweep; by more than `impact`: hit.
   Returns how many were solved. */
static int fsi__ct_solve_islands(const fsi__ct_system *s, double enough, double impact)
{
    const fsi__ct_direct *d = s->direct;
    const double clock = fsi__now(s->context);
    int i, k, n = 0, quick;
    if (d->rows != s->rows) return 0; /* rows were added after plan: with particles */
    for (i = 0; i < d->islands; i++) {
        fsi__ct_island *o = &d->island[i];
        double change = 0;
        for (k = 0; k < o->rows; k++) change = fmax(change, s->row[d->list[o->row + k]].change);
        if (!(o->work > 0) || o->tries == 0 || !(change > enough)) continue;

        /* how much work it is worth */
        o->hit |= change > impact && 100 * fsi__ct_step_work(o) <= FSI__CT_SPEND * d->most;
        quick = fsi__ct_is_wide(o) && !o->hit;
        o->tries = quick ? 0 : o->tries - 1;
        if (quick && o->work > FSI__CT_ROW_WORK * o->rows) continue;

        /* from the impulses of the sweeps; these mislead where a pile has left its support since the last substep */
        if (fsi__ct_solve_island(s, o, enough, quick, 0)) n++;
        else if (!fsi__ct_is_wide(o) && fsi__ct_solve_island(s, o, enough, 0, 1)) n++;
        else o->tries = 0;
    }
    if (n > 0) fsi__ct_restart(s);
    s->report->seconds_direct += fsi__now(s->context) - clock;
    return n;
}

/* Islands too large to be solved directly, in which the last sweep has changed some velocity by more than `enough`. */
static int fsi__ct_count_unsolved(const fsi__ct_system *s, double enough)
{
    const fsi__ct_direct *d = s->direct;
    int i, k, n = 0;
    for (i = 0; i < d->islands && d->rows == s->rows; i++) if (d->island[i].large) {
        const fsi__ct_island *o = &d->island[i];
        for (k = 0; k < o->rows && !(s->row[d->list[o->row + k]].change > enough); k++) {}
        n += k < o->rows;
    }
    return n;
}

FSI_API void fsi__ct_solve(const fsi__ct_system *s, double dt, double enough)
{
    const double speed = fsi__ct_start(s, dt), impact = FSI__CT_HIT * s->gravity * dt;
    const double done = fmax(s->tolerance * speed, enough), direct = fmax(done, 1e-9 * speed);
    fsi__jt_tree *t;
    double change = 0, size = 0;
    int sweep = 0, k;
    while (sweep < s->sweeps) {
        change = fsi__ct_sweep(s, dt, sweep % 2);
        sweep++;
        if (sweep > 1 && s->tolerance > 0 && change <= done) break;
        if (sweep % FSI__CT_TRY_DIRECT == 0 && !s->particle && fsi__ct_solve_islands(s, direct, impact)) size = 0;
        else if (sweep % 2 == 0 && sweep + 2 <= s->sweeps) size = fsi__ct_accelerate(s, size);
    }
    for (k = 0; (t = fsi__ct_next_tree(s, &k)) != NULL;) fsi__ct_spread(s->body, t);
    s->report->sweeps += sweep;
    s->report->degraded += fsi__ct_count_unsolved(s, direct);
    s->report->residual = change;
}

/* ---- >>split impulses -------------------------------------------------------------------------------------------- */

/* As fsi__ct_velocity and fsi__ct_push, of the pseudo-velocities, which move bodies in this substep and are then
   dropped. */
static fsi__d3 fsi__ct_pseudo_velocity(const fsi__ct_system *s, int side, fsi__d3 r)
{
    const fsi__ct_body *b;
    if (!fsi__ct_mobile(s, side)) return fsi__d3_zero();
    b = &s->body[side];
    if (b->tree >= 0) return fsi__jt_velocity(s->tree[b->tree], b->link, r, s->tree[b->tree]->pu);
    return fsi__d3_add(b->pv, fsi__d3_cross(b->pw, r));
}

static fsi__d3 fsi__ct_pseudo_relative(const fsi__ct_system *s, const fsi__ct_row *row)
{
    return fsi__d3_sub(fsi__ct_pseudo_velocity(s, row->a, row->ra), fsi__ct_pseudo_velocity(s, row->b, row->rb));
}

static void fsi__ct_pseudo_kick(const fsi__ct_system *s, int side, fsi__d3 r, fsi__d3 j)
{
    fsi__ct_body *b;
    if (!fsi__ct_mobile(s, side)) return;
    b = &s->body[side];
    if (b->tree >= 0) {
        fsi__jt_pseudo_kick(s->tree[b->tree], b->link, fsi__d3_cross(r, j), j);
        return;
    }
    b->pv = fsi__d3_madd(b->pv, b->inverse_mass, j);
    b->pw = fsi__d3_add(b->pw, fsi__d9_mul(b->inverse_inertia, fsi__d3_cross(r, j)));
}

/* The normal impulse j between the sides. */
static void fsi__ct_pseudo_exchange(const fsi__ct_system *s, const fsi__ct_row *row, double j)
{
    fsi__ct_pseudo_kick(s, row->a, row->ra, fsi__d3_scale(row->n, j));
    fsi__ct_pseudo_kick(s, row->b, row->rb, fsi__d3_scale(row->n, -j));
}

/* Split impulses of one island, directly. Where they are not accepted nothing changes, and the sweeps separate it. */
static void fsi__ct_separate_island(const fsi__ct_system *s, const fsi__ct_island *o, double enough)
{
    const fsi__ct_direct *d = s->direct;
    int k;
    fsi__ct_load_cones(s, o, 1);
    if (!fsi__ct_run_rounds(s, o, enough, 1, 0)) return;
    for (k = 0; k < o->rows; k++) {
        fsi__ct_row *row = &s->row[d->list[o->row + k]];
        const double change = fmax(fsi__d3_dot(d->cone[k].j, row->n), 0) - fmax(row->jp, 0);
        if (row->jp < 0) continue;
        fsi__ct_pseudo_exchange(s, row, change);
        row->jp += change;
    }
}

/* Islands with some overlap. */
static void fsi__ct_separate_islands(const fsi__ct_system *s, double enough)
{
    const fsi__ct_direct *d = s->direct;
    int i, k;
    for (i = 0; i < d->islands && d->rows == s->contacts; i++) {
        const fsi__ct_island *o = &d->island[i];
        double push = 0;
        for (k = 0; k < o->rows; k++) push = fmax(push, s->row[d->list[o->row + k]].push);
        if (o->work > 0 && push > 0 && (o->hit || !fsi__ct_is_wide(o))) fsi__ct_separate_island(s, o, enough);
    }
}

static double fsi__ct_pseudo_approach(const fsi__ct_system *s, const fsi__ct_row *row)
{
    return fsi__d3_dot(fsi__ct_pseudo_relative(s, row), row->n);
}

/* One sweep of the split impulses. Returns the largest change of a pseudo-velocity. */
static double fsi__ct_sweep_pushes(const fsi__ct_system *s, int back)
{
    double most = 0, change;
    int i;
    for (i = 0; i < s->contacts; i++) {
        fsi__ct_row *row = &s->row[back ? s->contacts - 1 - i : i];
        if (!(row->kn > 0) || row->jp < 0) continue;
        change = fmax(row->kn * (row->push - fsi__ct_pseudo_approach(s, row)), -row->jp);
        if (change < 0 || change > 0) fsi__ct_pseudo_exchange(s, row, change);
        row->jp += change;
        most = fmax(most, fabs(change) / row->kn);
    }
    return most;
}

/* Activates inactive rows whose gap would close by more than it may. Returns how many. */
static int fsi__ct_activate_rows(const fsi__ct_system *s, double enough)
{
    int i, n = 0;
    for (i = 0; i < s->contacts; i++) {
        fsi__ct_row *row = &s->row[i];
        if (row->jp >= 0 || !(row->kn > 0) || fsi__ct_pseudo_approach(s, row) >= row->push - enough) continue;
        row->jp = 0;
        n++;
    }
    return n;
}

/* Sweeps carry a push through a pile of n bodies in many sweeps, and where they do not converge the lowest body is
   pushed into the floor. The overlap that remains is removed from below: of each row only the upper side moves, as if
   the lower one were fixed, so that a push goes through the pile in one sweep (Guendelman et al. 2003 call it shock
   propagation). As these are pseudo-velocities, no momentum is lost. The upper side is the one with the longer path to
   the supports. */

#define FSI__CT_LEFT 0.1       /* margins: overlap that sweeps may leave */
#define FSI__CT_SUPPORT 0.1    /* cosine between the normal and up from which a row supports */

/* Shortest paths from bodies that do not move to all others, over rows that support; a row's length is its gap plus a
   margin. A path through bodies that touch is shorter than the wide gap between a body high in a pile and the floor. */
static void fsi__ct_find_ways(const fsi__ct_system *s)
{
    double *way = s->direct->way;
    const int steep = fsi__d3_dot(s->up, s->up) > 0;
    int i, k, changed = 1, pass;
    for (i = 0; i < s->bodies; i++) way[i] = fsi__ct_mobile(s, i) ? 1e300 : 0;
    for (pass = 0; changed; pass++) for (changed = i = 0; i < s->contacts; i++) {
        const fsi__ct_row *row = &s->row[pass % 2 ? s->contacts - 1 - i : i];
        for (k = 0; k < 2; k++) {
            const int id = k ? row->b : row->a, from = k ? row->a : row->b;
            const double rise = (k ? -1 : 1) * fsi__d3_dot(row->n, s->up);
            const double here = (from < 0 ? 0 : way[from]) + row->margin + fmax(0, -row->depth);
            if (!fsi__ct_mobile(s, id) || (steep && rise < FSI__CT_SUPPORT) || !(here < way[id])) continue;
            way[id] = here;
            changed = 1;
        }
    }
}

/* Is the row one of a pile or tower? In heaps bodies are also supported from the side, and the overlap of one that
   cannot move stays. */
static int fsi__ct_may_lift(const fsi__ct_system *s, const fsi__ct_row *row)
{
    const int id = fsi__ct_mobile(s, row->a) ? row->a : row->b;
    const fsi__ct_island *o;
    if (!(row->kn > 0)) return 0;
    o = &s->direct->island[s->direct->owner[id]];
    return o->work > 0 && !fsi__ct_is_wide(o);
}

/* One sweep in which the upper sides move alone. Returns the largest change of a pseudo-velocity. */
static double fsi__ct_sweep_lifts(const fsi__ct_system *s, int back)
{
    const double *way = s->direct->way;
    double most = 0;
    int i;
    for (i = 0; i < s->contacts; i++) {
        fsi__ct_row *row = &s->row[back ? s->contacts - 1 - i : i];
        const double lead = row->b < 0 ? -1 : way[row->b] - way[row->a];
        const int up_b = lead > 0 || (!(lead < 0) && row->b > row->a);
        const int id = up_b ? row->b : row->a;
        const fsi__d3 r = up_b ? row->rb : row->ra, turn = fsi__d3_cross(r, row->n);
        const fsi__ct_body *m;
        double mobility, change;
        if (!fsi__ct_mobile(s, id) || !fsi__ct_may_lift(s, row)) continue;
        m = &s->body[id];
        mobility = m->inverse_mass + fsi__d3_dot(turn, fsi__d9_mul(m->inverse_inertia, turn));
        change = fmax((row->push - fsi__ct_pseudo_approach(s, row)) / mobility, -fmax(row->jp, 0));
        if (change < 0 || change > 0) fsi__ct_pseudo_kick(s, id, r, fsi__d3_scale(row->n, up_b ? -change : change));
        row->jp = fmax(row->jp, 0) + change;
        most = fmax(most, fabs(change) * mobility);
    }
    return most;
}

/* The overlap that the pseudo-velocities leave in piles, in margins. */
static double fsi__ct_left(const fsi__ct_system *s, double dt)
{
    double left = 0;
    int i;
    for (i = 0; i < s->contacts; i++) if (fsi__ct_may_lift(s, &s->row[i]))
        left = fmax(left, (s->row[i].push - fsi__ct_pseudo_approach(s, &s->row[i])) * dt / s->row[i].margin);
    return left;
}

static void fsi__ct_lift(const fsi__ct_system *s, double dt, double enough)
{
    int sweep;
    if (s->direct->rows != s->contacts || fsi__ct_left(s, dt) <= FSI__CT_LEFT) return;
    fsi__ct_find_ways(s);
    for (sweep = 0; sweep < s->sweeps && fsi__ct_sweep_lifts(s, sweep % 2) > enough; sweep++) {}
}

/* Pseudo-velocities that separate what overlaps by more than its slop (Guendelman et al. 2003 call it push-out; this
   form is Catto's): normal rows only, u.n >= push. Rows of bodies that touch without overlap demand u.n >= 0; a gap may
   close by its width at the end of the step. Rows of wide gaps are inactive until a push would close them. */
FSI_API void fsi__ct_separate(const fsi__ct_system *s, double dt)
{
    const int few = s->sweeps < FSI__CT_TRY_DIRECT ? s->sweeps / 2 * 2 : 0; /* then rows are activated half way */
    double most = 0, change;
    int i, sweep, direct, activated;

    /* gaps are wide in comparison with the largest push */
    for (i = 0; i < s->bodies; i++) s->body[i].pv = s->body[i].pw = fsi__d3_zero();
    for (i = 0; i < s->contacts; i++) if (s->row[i].kn > 0) most = fmax(most, s->row[i].push);
    if (!(most > 0)) return;
    for (i = 0; i < s->contacts; i++) s->row[i].jp = s->row[i].push < -fmin(most, s->row[i].margin / dt) ? -1 : 0;

    /* sweeps until none changes a pseudo-velocity and no row is activated */
    for (sweep = 1; sweep <= s->sweeps; sweep++) {
        change = fsi__ct_sweep_pushes(s, sweep % 2 == 0);
        direct = sweep % FSI__CT_TRY_DIRECT == 0;
        activated = (change <= 1e-3 * most || direct || 2 * sweep == few) && fsi__ct_activate_rows(s, 1e-3 * most);
        if (change <= 1e-3 * most && !activated) break;
        if (direct && (activated || sweep == FSI__CT_TRY_DIRECT)) fsi__ct_separate_islands(s, 1e-4 * most);
    }
    if (sweep > s->sweeps) fsi__ct_lift(s, dt, 1e-3 * most);
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
