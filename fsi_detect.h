/* fsi_detect.h - contacts of moving rigid bodies: broad phase, contact points, first contacts within the step.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_rigid.h includes this file, and makes rows of the contact points. docs/rigid.md derives the method.

   WHAT IT DOES
      A contact may arise anywhere within a step: a fast body would pass through a thin one if contacts were only found
      where the step starts. So bounding boxes hold the region that a part may reach, pairs of parts that are apart are
      advanced to their first contact (conservative advancement), and contact points with a gap are kept where the gap
      could close if one of the bodies were stopped or hit by a third one.

   WHAT IS IN HERE (search for >>)
      >>kinds of bodies;  >>stages  for fsi's own headers, not for you;  then >>broad phase  >>speeds  >>narrow phase
      >>hidden points  >>solids
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: double.
*/
#ifndef FSI_DETECT_H
#define FSI_DETECT_H

#include "fsi_collide.h"
#include "fsi_contact.h"

/* ---- >>kinds of bodies ------------------------------------------------------------------------------------------- */

/* Kinds of motion. DYNAMIC: by forces and contacts. KINEMATIC: prescribed by fsi_rigid_set_target or
   fsi_rigid_set_velocity, without reaction. STATIC: none. NONE: the free row of a removed body. */
typedef enum fsi_rigid_kind { FSI_RIGID_NONE, FSI_RIGID_STATIC, FSI_RIGID_KINEMATIC, FSI_RIGID_DYNAMIC } fsi_rigid_kind;

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* The parts of a body. */
typedef struct fsi__cd_solid {
    fsi__col_part *part;
    int parts;
    double reach;                 /* distance of the farthest point from the centre of mass */
    double thick;                 /* half the smallest extent of its largest part */
    uint32_t filter, mask;
    int link;                     /* of its tree; -1: free */
} fsi__cd_solid;

/* first: the offset before any shift of the origin. */
typedef struct fsi__cd_plane { int alive; fsi__d3 n; double first, offset, friction, restitution; } fsi__cd_plane;

/* Two parts whose boxes meet; p's body has the larger id; q < 0: plane -1 - q. Its contact points are point[first] ..
   point[first + count - 1], room for `most`. next: the next pair whose q is of the same body, -1: none. bent: rotations
   may close more of its gaps in this substep than its rows predict, which are linear. */
typedef struct fsi__cd_pair { int p, q; int first, most, count; int next, bent; } fsi__cd_pair;

/* A body in the search. */
typedef struct fsi__cd_note {
    fsi__d3 blow;                 /* velocity of the fastest body that may hit it: a bound of the velocity it may get */
    int pairs, first, other;      /* number of its pairs; the first in which it is p, and in which it is q; -1: none */
    int struck;                   /* of a group's root: some body of it may be stopped in this substep */
} fsi__cd_note;

/* Results of the search, sorted by bodies, and its scratch. */
typedef struct fsi__cd_found {
    fsi__col_placed *placed;      /* all parts at the substep's start */
    int *order;                   /* of parts along the axis of the sweep */
    int placed_count, placed_capacity, order_count, order_capacity;
    fsi__cd_pair *pair;
    int pair_count, pair_capacity;
    fsi__col_point *point;
    int point_capacity;
} fsi__cd_found;

/* A view of the owner's arrays, by id of the body. */
typedef struct fsi__cd_scene {
    fsi_context *context;
    int dim, bodies, planes;
    double contact_margin;        /* [m]; 0: 2 % of the smaller thickness */
    const unsigned char *kind;    /* fsi_rigid_kind */
    const fsi__cd_solid *solid;
    const fsi__ct_body *moving;
    const int *tree_of;           /* tree of a link; -1: free */
    fsi__jt_tree *const *tree;
    const fsi__cd_plane *plane;
    fsi__cd_note *note;
    int *parent;                  /* scratch: groups of bodies */
    fsi__cd_found *found;
} fsi__cd_scene;

/* All contact points within the next dt seconds, with the velocities in `moving`. Errors: MEMORY, LIMIT. */
FSI_API fsi_status fsi__cd_search(const fsi__cd_scene *w, double dt, const char *fn);
FSI_API void fsi__cd_free(fsi_context *context, fsi__cd_found *found);
FSI_API int fsi__cd_active(const fsi__cd_scene *w, int id);   /* dynamic and awake, or kinematic with a velocity */
FSI_API int fsi__cd_may_meet(const fsi__cd_scene *w, int a, int b); /* by kinds, filters, and no joint between them */
FSI_API double fsi__cd_thickness(const fsi__cd_scene *w, int a, int b); /* the smaller one; b < 0: a plane */
FSI_API double fsi__cd_margin(const fsi__cd_scene *w, int a, int b);  /* closer bodies are in contact [m] */
/* The parts of a body, about its centre of mass. make: errors as those of fsi__col_make_part; then call free_solid. */
FSI_API fsi_status fsi__cd_make_solid(fsi_context *context, fsi__cd_solid *solid, const fsi_rigid_shape *shapes, int n,
    fsi_vec3 center, int dim, const char *fn);
/* Frees what make_solid made; a zeroed solid is fine. */
FSI_API void fsi__cd_free_solid(fsi_context *context, fsi__cd_solid *solid);
FSI_API double fsi__cd_volume(const fsi__cd_solid *solid, int dim);
/* FSI_REAL_MAX: no parts. gradient (NULL ok): of the distance, a unit vector. */
FSI_API double fsi__cd_distance(const fsi__cd_solid *solid, const fsi_pose *pose, fsi__d3 x, fsi__d3 *gradient);
FSI_API double fsi__cd_overlap(const fsi__cd_scene *w, int a, const fsi_pose *pose_a, int b, const fsi_pose *pose_b);
FSI_API void fsi__cd_draw(const fsi_debug_draw *draw, const fsi__cd_solid *solid, const fsi_pose *pose, int dim,
    uint32_t rgb);
/* A closed mesh of part `shape`, -1: of all. id: the body that errors name. */
FSI_API fsi_status fsi__cd_tessellate(fsi_context *context, const fsi__cd_solid *solid, const fsi_pose *pose, int shape,
    double edge, int dim, fsi_mesh **out, int id, const char *fn);
/* Union-find: parent[k] == k is the root of a group, its smallest member. */
FSI_API int fsi__cd_root(int *parent, int k);
FSI_API void fsi__cd_join(int *parent, int a, int b);

/* Shell sort (Ciura's gaps): in place, deterministic, fast if the order has changed little. */
#define FSI__CD_GAPS 18
/* The FSI__CD_GAPS gaps, in descending order; static memory. */
FSI_API const int *fsi__cd_shell_gaps(void);

/* Room for n rows of one scratch array; the first `rows` are kept. Errors: MEMORY. */
FSI_API fsi_status fsi__cd_room(fsi_context *context, void *array, size_t size, int rows, int *capacity, int n,
    const char *fn);
#define FSI__CD_ROOM(context, array, rows, capacity, n, fn) \
    fsi__cd_room(context, &(array), sizeof *(array), rows, &(capacity), n, fn)

#endif /* FSI_DETECT_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_DETECT_IMPLEMENTATION
#define FSI_DETECT_IMPLEMENTATION
#endif
#ifdef FSI_DETECT_IMPLEMENTATION
#ifndef FSI_DETECT_IMPLEMENTATION_DONE
#define FSI_DETECT_IMPLEMENTATION_DONE

/* The search for contacts in a step:

      fsi__cd_search
          until no body can leave its box (fsi__cd_find_blows)
              fsi__cd_place_all          parts at the substep's start, boxes around all that they may reach
              fsi__cd_find_pairs         pairs whose boxes meet, sorted by bodies
          fsi__cd_find_struck            groups of bodies in which one may be stopped
          in parallel over pairs: fsi__cd_collide_pairs
              fsi__cd_collide_parts      contact points where they stand, or
              fsi__cd_advance_to_contact where they first come close, carried back to the start
              fsi__cd_keep_stopped       gaps that could close if a body were stopped or hit
          fsi__cd_list_pairs             pairs by bodies
          in parallel over pairs: fsi__cd_hide_points   gaps in which a third body stands need no row */

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_collide.h"
#include "fsi_contact.h"

FSI__STRICT_BEGIN

/* ---- >>broad phase: pairs of parts whose boxes meet -------------------------------------------------------------- */

FSI_API const int *fsi__cd_shell_gaps(void)
{
    static const int gap[FSI__CD_GAPS] = { 1750000, 773000, 343000, 152000, 67500, 30000, 13300, 5900, 2600, 1160,
                                           510, 301, 132, 57, 23, 10, 4, 1 };
    return gap;
}

FSI_API fsi_status fsi__cd_room(fsi_context *context, void *array, size_t size, int rows, int *capacity, int n,
    const char *fn)
{
    if (n > 1 << 28) return fsi__fail(context, FSI_ERROR_LIMIT, fn, -1, n, "%d contacts are too many", n);
    return fsi__room_in(context, array, size, rows, capacity, n, fn);
}

static int fsi__cd_mobile(const fsi__cd_scene *w, int id) { return id >= 0 && w->moving[id].mobile; }

FSI_API int fsi__cd_active(const fsi__cd_scene *w, int id)
{
    const fsi__ct_body *m = &w->moving[id];
    if (w->kind[id] != FSI_RIGID_KINEMATIC) return m->mobile;
    return fsi__d3_dot(m->v, m->v) > 0 || fsi__d3_dot(m->w, m->w) > 0;
}

FSI_API double fsi__cd_thickness(const fsi__cd_scene *w, int a, int b)
{
    const double r = w->solid[a].thick;
    return b >= 0 && w->solid[b].thick < r ? w->solid[b].thick : r;
}

FSI_API double fsi__cd_margin(const fsi__cd_scene *w, int a, int b)
{
    return w->contact_margin > 0 ? w->contact_margin : 0.02 * fsi__cd_thickness(w, a, b);
}

/* How far any point of the body may move in dt, by itself or when it is hit. */
static double fsi__cd_motion(const fsi__cd_scene *w, int id, double dt)
{
    const fsi__ct_body *m = &w->moving[id];
    const double turn = fsi__d3_norm(m->w) * dt, chord = (turn < 2 ? turn : 2) * w->solid[id].reach;
    if (w->kind[id] != FSI_RIGID_KINEMATIC && !m->mobile) return 0;
    return fmax(fsi__d3_norm(m->v) * dt + chord, fsi__d3_norm(w->note[id].blow) * dt);
}

/* All parts of bodies at the substep's start, with boxes that hold the region that they may reach. */
static fsi_status fsi__cd_place_all(const fsi__cd_scene *w, double dt, const char *fn)
{
    fsi__cd_found *f = w->found;
    int id, k, n = 0;
    for (id = 0; id < w->bodies; id++) if (w->kind[id] != FSI_RIGID_NONE) n += w->solid[id].parts;
    FSI__TRY(FSI__CD_ROOM(w->context, f->placed, 0, f->placed_capacity, n, fn));
    FSI__TRY(FSI__CD_ROOM(w->context, f->order, 0, f->order_capacity, n, fn));
    f->placed_count = 0;
    for (id = 0; id < w->bodies; id++) if (w->kind[id] != FSI_RIGID_NONE) {
        const fsi__ct_body *m = &w->moving[id];
        const double grow = fsi__cd_motion(w, id, dt) + fsi__cd_margin(w, id, -1);
        for (k = 0; k < w->solid[id].parts; k++) {
            fsi__col_placed *p = &f->placed[f->placed_count++];
            fsi__col_place(&w->solid[id].part[k], fsi__d3_of(m->start.position), m->turn, p);
            p->body = id;
            p->index = k;
            fsi__col_bound(p, grow);
        }
    }
    return FSI_OK;
}

/* The world axis along which parts are spread most. */
static int fsi__cd_spread_axis(const fsi__cd_scene *w)
{
    const fsi__col_placed *p = w->found->placed;
    const double n = w->found->placed_count;
    double best = -1;
    int axis = 0, k, i;
    for (k = 0; k < w->dim; k++) {
        double s = 0, ss = 0;
        for (i = 0; i < w->found->placed_count; i++) {
            const double x = 0.5 * (p[i].lo[k] + p[i].hi[k]) - p[0].lo[k];
            s += x;
            ss += x * x;
        }
        if (n > 0 && ss - s * s / n > best) { best = ss - s * s / n; axis = k; }
    }
    return axis;
}

static int fsi__cd_placed_before(const fsi__col_placed *a, const fsi__col_placed *b, int axis)
{
    if (a->lo[axis] < b->lo[axis] || a->lo[axis] > b->lo[axis]) return a->lo[axis] < b->lo[axis];
    return a->body != b->body ? a->body < b->body : a->index < b->index;
}

/* Sorts the parts along the axis, from the last step's order where their number is the same. */
static void fsi__cd_sort_placed(fsi__cd_found *f, int axis)
{
    int g, i, k, gap;
    for (i = 0; i < f->placed_count && f->order_count != f->placed_count; i++) f->order[i] = i;
    f->order_count = f->placed_count;
    for (g = 0; g < FSI__CD_GAPS; g++) for (gap = fsi__cd_shell_gaps()[g], i = gap; i < f->placed_count; i++) {
        const int t = f->order[i];
        for (k = i; k >= gap; k -= gap) {
            if (!fsi__cd_placed_before(&f->placed[t], &f->placed[f->order[k - gap]], axis)) break;
            f->order[k] = f->order[k - gap];
        }
        f->order[k] = t;
    }
}

/* The bodies of pair i: the larger id, and the smaller one or, negative, the plane. */
static int fsi__cd_upper(const fsi__cd_found *f, const fsi__cd_pair *t) { return f->placed[t->p].body; }
static int fsi__cd_lower(const fsi__cd_found *f, const fsi__cd_pair *t)
{
    return t->q < 0 ? t->q : f->placed[t->q].body;
}

static int fsi__cd_pair_before(const fsi__cd_found *f, const fsi__cd_pair *s, const fsi__cd_pair *t)
{
    const int sa = fsi__cd_upper(f, s), ta = fsi__cd_upper(f, t), sb = fsi__cd_lower(f, s), tb = fsi__cd_lower(f, t);
    if (sa != ta) return sa < ta;
    if (sb != tb) return sb < tb;
    return s->p != t->p ? s->p < t->p : s->q < t->q;
}

static void fsi__cd_sort_pairs(fsi__cd_found *f)
{
    int g, i, k, gap;
    for (g = 0; g < FSI__CD_GAPS; g++) for (gap = fsi__cd_shell_gaps()[g], i = gap; i < f->pair_count; i++) {
        const fsi__cd_pair t = f->pair[i];
        for (k = i; k >= gap && fsi__cd_pair_before(f, &t, &f->pair[k - gap]); k -= gap) f->pair[k] = f->pair[k - gap];
        f->pair[k] = t;
    }
}

FSI_API int fsi__cd_may_meet(const fsi__cd_scene *w, int a, int b)
{
    const fsi__cd_solid *r = &w->solid[a], *s = &w->solid[b];
    const int *parent;
    if (a == b || (w->kind[a] != FSI_RIGID_DYNAMIC && w->kind[b] != FSI_RIGID_DYNAMIC)) return 0;
    if (!(r->filter & s->mask) || !(s->filter & r->mask)) return 0;
    if (w->tree_of[a] < 0 || w->tree_of[a] != w->tree_of[b]) return 1;
    parent = w->tree[w->tree_of[a]]->parent;
    return parent[r->link] != s->link && parent[s->link] != r->link;
}

static fsi_status fsi__cd_add_pair(const fsi__cd_scene *w, int p, int q, int most, const char *fn)
{
    fsi__cd_found *f = w->found;
    fsi__cd_pair *pair;
    FSI__TRY(FSI__CD_ROOM(w->context, f->pair, f->pair_count, f->pair_capacity, f->pair_count + 1, fn));
    pair = &f->pair[f->pair_count++];
    pair->p = p;
    pair->q = q;
    pair->most = most;
    pair->count = 0;
    return FSI_OK;
}

static int fsi__cd_boxes_meet(const fsi__col_placed *p, const fsi__col_placed *q, int dim)
{
    int k;
    for (k = 0; k < dim; k++) if (p->lo[k] > q->hi[k] || q->lo[k] > p->hi[k]) return 0;
    return 1;
}

/* Does the box reach into the half-space? */
static int fsi__cd_box_meets_plane(const fsi__col_placed *p, const fsi__cd_plane *f, int dim)
{
    double low = (f->n.x > 0 ? p->lo[0] : p->hi[0]) * f->n.x + (f->n.y > 0 ? p->lo[1] : p->hi[1]) * f->n.y;
    if (dim == 3) low += (f->n.z > 0 ? p->lo[2] : p->hi[2]) * f->n.z;
    return f->alive && low < f->offset;
}

/* Sweep and prune along one axis: pairs whose boxes meet and of which one is active; planes and what is mobile. */
static fsi_status fsi__cd_find_pairs(const fsi__cd_scene *w, const char *fn)
{
    fsi__cd_found *f = w->found;
    const int axis = fsi__cd_spread_axis(w);
    int i, j, k;
    fsi__cd_sort_placed(f, axis);
    f->pair_count = 0;
    for (i = 0; i < f->placed_count; i++) {
        const fsi__col_placed *p = &f->placed[f->order[i]];
        const int active = fsi__cd_active(w, p->body);

        /* with the parts that start before this one ends */
        for (j = i + 1; j < f->placed_count; j++) {
            const fsi__col_placed *q = &f->placed[f->order[j]];
            if (q->lo[axis] > p->hi[axis]) break;
            if (!active && !fsi__cd_active(w, q->body)) continue;
            if (!fsi__cd_boxes_meet(p, q, w->dim) || !fsi__cd_may_meet(w, p->body, q->body)) continue;
            k = p->body > q->body;
            FSI__TRY(fsi__cd_add_pair(w, f->order[k ? i : j], f->order[k ? j : i],
                                      fsi__col_capacity(p->part->kind, q->part->kind), fn));
        }

        /* with planes */
        for (k = 0; k < w->planes && fsi__cd_mobile(w, p->body); k++)
            if (fsi__cd_box_meets_plane(p, &w->plane[k], w->dim))
                FSI__TRY(fsi__cd_add_pair(w, f->order[i], -1 - k, FSI__COL_PATCH, fn));
    }
    fsi__cd_sort_pairs(f);
    return FSI_OK;
}

/* ---- >>speeds: how fast bodies may approach each other within the step ------------------------------------------- */

FSI_API int fsi__cd_root(int *parent, int k) /* the path is halved on the way */
{
    while (parent[k] != k) k = parent[k] = parent[parent[k]];
    return k;
}

FSI_API void fsi__cd_join(int *parent, int a, int b)
{
    a = fsi__cd_root(parent, a);
    b = fsi__cd_root(parent, b);
    if (a < b) parent[b] = a;
    else parent[a] = b;
}

/* A body that is hit may leave as fast as the one that hits it, and hit the next one in the same step. Spreads these
   velocities over pairs, there and back, until none grows. Returns whether some body could then leave the box with
   which its pairs were found. */
static int fsi__cd_find_blows(const fsi__cd_scene *w, double dt)
{
    const fsi__cd_found *f = w->found;
    int k, s, pass, changed = 1, farther = 0;
    for (pass = 0; changed; pass++) for (k = 0, changed = 0; k < f->pair_count; k++) {
        const fsi__cd_pair *pair = &f->pair[pass % 2 ? f->pair_count - 1 - k : k];
        const int id[2] = { fsi__cd_upper(f, pair), fsi__cd_lower(f, pair) };
        for (s = 0; s < 2 && id[1] >= 0; s++) {
            fsi__d3 *own = &w->note[id[s]].blow;
            const fsi__d3 u = w->moving[id[1 - s]].v, blow = w->note[id[1 - s]].blow;
            const fsi__d3 v = fsi__d3_dot(u, u) < fsi__d3_dot(blow, blow) ? blow : u;
            const double room = fsi__cd_motion(w, id[s], dt) + fsi__cd_margin(w, id[s], -1);
            if (!fsi__cd_mobile(w, id[s]) || !(fsi__d3_norm(v) > fsi__d3_norm(*own))) continue;
            farther |= fsi__d3_norm(v) * dt > room;
            changed = 1;
            *own = v;
        }
    }
    return farther;
}

/* The largest relative speed of any two points of the bodies. */
static double fsi__cd_relative_speed(const fsi__cd_scene *w, int a, int b)
{
    const fsi__ct_body *m = &w->moving[a], *n = &w->moving[b];
    return fsi__d3_norm(fsi__d3_sub(m->v, n->v)) + fsi__d3_norm(m->w) * w->solid[a].reach
         + fsi__d3_norm(n->w) * w->solid[b].reach;
}

/* Bodies that move alike do not approach each other until one of them is stopped; and whatever stops the lowest body of
   a pile stops the whole pile within the same step. So groups of bodies that may meet (pairs of the broad phase connect
   them) are found, and those in which some body may meet one that moves otherwise: any body of such a group may be
   stopped, or reflected at its own speed. */
static void fsi__cd_find_struck(const fsi__cd_scene *w, double dt)
{
    const fsi__cd_found *f = w->found;
    int pass, i, id;
    for (id = 0; id < w->bodies; id++) {
        w->parent[id] = id;
        w->note[id].struck = 0;
    }

    /* the first pass makes the groups, the second marks them */
    for (pass = 0; pass < 2; pass++) for (i = 0; i < f->pair_count; i++) {
        const int a = fsi__cd_upper(f, &f->pair[i]), b = fsi__cd_lower(f, &f->pair[i]);
        const int both = b >= 0 && fsi__cd_mobile(w, a) && fsi__cd_mobile(w, b);
        if (pass == 0 && both) fsi__cd_join(w->parent, a, b);
        if (pass == 0) continue;
        id = fsi__cd_mobile(w, a) ? a : b;
        if (id < 0) continue;
        if (!both || fsi__cd_relative_speed(w, a, b) * dt > fsi__cd_margin(w, a, b))
            w->note[fsi__cd_root(w->parent, id)].struck = 1;
    }

    /* many threads read the roots from now on */
    for (id = 0; id < w->bodies; id++) w->parent[id] = fsi__cd_root(w->parent, id);
}

/* The largest speed of any point of a body, by itself or when it is hit. */
static double fsi__cd_speed(const fsi__cd_scene *w, int id)
{
    const fsi__ct_body *m = &w->moving[id];
    return fmax(fsi__d3_norm(m->v) + fsi__d3_norm(m->w) * w->solid[id].reach, fsi__d3_norm(w->note[id].blow));
}

/* How fast two bodies may approach each other once one of them is stopped or hit; 0: neither can be. */
static double fsi__cd_stop_speed(const fsi__cd_scene *w, int a, int b)
{
    const int id = fsi__cd_mobile(w, a) ? a : b;
    if (!fsi__cd_mobile(w, id) || !w->note[w->parent[id]].struck) return 0;
    return fsi__cd_speed(w, a) + fsi__cd_speed(w, b);
}

/* The velocity along n that body id may have at a point: its own or the reflected one, or that of a hit. */
static double fsi__cd_toward(const fsi__cd_scene *w, int id, fsi__d3 x, fsi__d3 n)
{
    const fsi__ct_body *m = &w->moving[id];
    const fsi__d3 r = fsi__d3_sub(x, fsi__d3_of(m->start.position));
    return fmax(fabs(fsi__d3_dot(fsi__d3_add(m->v, fsi__d3_cross(m->w, r)), n)), fsi__d3_dot(w->note[id].blow, n));
}

/* ---- >>narrow phase: contact points of pairs --------------------------------------------------------------------- */

/* A square plate that falls at v onto one of its corners rotates about it, so that the far corner goes on at 1.7 v (at
   2.4 v where the impact is elastic). Of bodies that may meet, points are listed up to gaps of this many times what
   closes at their present speeds. */
#define FSI__CD_SWING 2

/* Where points lie within the margin, keeps of the others those with the same normal, and those almost within it:
   others would be walls in mid-air. Returns how many lie within. */
static int fsi__cd_keep_close(fsi__col_manifold *h, double margin)
{
    fsi__col_point kept[FSI__COL_POINTS];
    int k, i, n = 0, within = 0;
    for (k = 0; k < h->n; k++) within += h->point[k].depth > -margin;
    for (k = 0; k < h->n; k++) {
        for (i = 0; i < h->n; i++) {
            if (!(h->point[i].depth > -margin)) continue;
            if (i == k || fsi__d3_dot(h->point[i].n, h->point[k].n) > 0.95) break;
        }
        if (i < h->n || (within > 0 && h->point[k].depth > -5 * margin)) kept[n++] = h->point[k];
    }
    memcpy(h->point, kept, (size_t)n * sizeof *kept);
    h->n = n;
    return within;
}

/* Keeps the points whose gap could close in dt if either body were stopped, reflected or hit; and, as a body that is
   hit rotates, the others with the same normal. */
static void fsi__cd_keep_stopped(const fsi__cd_scene *w, int a, int b, double margin, double dt, fsi__col_manifold *h)
{
    fsi__col_point kept[FSI__COL_POINTS];
    int closes[FSI__COL_POINTS], k, i, n = 0;
    for (k = 0; k < h->n; k++) {
        const fsi__col_point *s = &h->point[k];
        const double nearing = fsi__cd_toward(w, b, s->x, s->n) + fsi__cd_toward(w, a, s->x, fsi__d3_scale(s->n, -1));
        closes[k] = -s->depth <= margin + nearing * dt;
    }
    for (k = 0; k < h->n; k++) {
        for (i = 0; i < h->n; i++)
            if (closes[i] && (i == k || fsi__d3_dot(h->point[i].n, h->point[k].n) > 0.95)) break;
        if (i < h->n) kept[n++] = h->point[k];
    }
    memcpy(h->point, kept, (size_t)n * sizeof *kept);
    h->n = n;
}

/* The smallest gap of the points, or a lower bound. */
static double fsi__cd_gap_of(const fsi__col_manifold *h)
{
    double gap = h->n > 0 ? 1e300 : h->bound;
    int k;
    for (k = 0; k < h->n; k++) gap = -h->point[k].depth < gap ? -h->point[k].depth : gap;
    return gap;
}

/* A part where its body will be after t seconds, by the predicted velocities. */
static void fsi__cd_place_later(const fsi__cd_scene *w, const fsi__col_placed *p, double t, double grow,
    fsi__col_placed *later)
{
    const fsi__ct_body *m = &w->moving[p->body];
    double turn[9];
    fsi__d9_of_quat(fsi_quat_integrate(m->start.orientation, fsi__d3_real(m->w), (fsi_real)t), turn);
    *later = *p;
    fsi__col_place(p->part, fsi__d3_madd(fsi__d3_of(m->start.position), t, m->v), turn, later);
    fsi__col_bound(later, grow);
}

/* Velocity of body id at a point of time t. */
static fsi__d3 fsi__cd_velocity_later(const fsi__cd_scene *w, int id, fsi__d3 x, double t)
{
    const fsi__ct_body *m = &w->moving[id];
    const fsi__d3 r = fsi__d3_sub(x, fsi__d3_madd(fsi__d3_of(m->start.position), t, m->v));
    return fsi__d3_add(m->v, fsi__d3_cross(m->w, r));
}

/* Carries contact points of time t back to the step's start: their gap grows by its closing until t, and they move back
   with the bodies that move. */
static void fsi__cd_carry_back(const fsi__cd_scene *w, int a, int b, double t, fsi__col_manifold *h)
{
    const int moves_a = fsi__cd_active(w, a), moves_b = fsi__cd_active(w, b);
    int k;
    for (k = 0; k < h->n; k++) {
        fsi__col_point *s = &h->point[k];
        const fsi__d3 va = fsi__cd_velocity_later(w, a, s->x, t), vb = fsi__cd_velocity_later(w, b, s->x, t);
        s->depth += t * fsi__d3_dot(fsi__d3_sub(va, vb), s->n);
        s->x = fsi__d3_madd(s->x, -t * (moves_a ? (moves_b ? 0.5 : 1) : 0), va);
        s->x = fsi__d3_madd(s->x, -t * (moves_b ? (moves_a ? 0.5 : 1) : 0), vb);
    }
}

/* Two parts that are apart: their contact points when they first come within the margin in this step, by conservative
   advancement (Mirtich 1996): the gap closes by `speed` at most, so gap/speed seconds may pass at once. Returns 0 when
   they do not meet. */
static int fsi__cd_advance_to_contact(const fsi__cd_scene *w, const fsi__col_placed *p, const fsi__col_placed *q,
    double dt, double margin, double speed, double stop, fsi__col_manifold *h)
{
    fsi__col_placed pl, ql;
    double t = 0, gap = fsi__cd_gap_of(h), step;
    int pass;
    for (pass = 0; pass < 60 && (gap > margin || h->n == 0); pass++) {
        step = gap - 0.5 * margin;
        t += (h->n > 0 || step > 2 * margin ? step : 2 * margin) / speed; /* boxes may pass close by without a point */
        if (t > dt) return 0;
        h->margin = margin + FSI__CD_SWING * fmax(speed * (dt - 0.5 * t), stop * dt); /* a stop may come at once */
        fsi__cd_place_later(w, p, t, h->margin, &pl);
        fsi__cd_place_later(w, q, t, h->margin, &ql);
        fsi__col_collide(h, &pl, &ql, w->dim);
        gap = fsi__cd_gap_of(h);
    }
    if (h->n == 0 || !(gap <= 4 * margin)) return 0;
    if (fsi__cd_keep_close(h, gap > margin ? 4 * margin : margin) == 0) return 0;
    fsi__cd_carry_back(w, p->body, q->body, t, h);
    return 1;
}

/* All contact points of a pair of parts in this step. */
static void fsi__cd_collide_parts(const fsi__cd_scene *w, const fsi__col_placed *p, const fsi__col_placed *q, double dt,
    fsi__col_manifold *h)
{
    const double margin = fsi__cd_margin(w, p->body, q->body), stop = fsi__cd_stop_speed(w, p->body, q->body);
    const double speed = fsi__cd_relative_speed(w, p->body, q->body);
    double gap;
    h->margin = margin + FSI__CD_SWING * fmax(speed, stop) * dt;
    fsi__col_collide(h, p, q, w->dim);
    gap = fsi__cd_gap_of(h);
    if ((!(speed > 0) && !(stop > 0)) || gap > h->margin) return;

    /* in contact now */
    if (h->n > 0 && gap <= margin) {
        if (stop > 0) fsi__cd_keep_stopped(w, p->body, q->body, margin, dt, h);
        else fsi__cd_keep_close(h, margin);
        return;
    }

    /* in contact later in the step; else only once one of them is stopped */
    if (speed > 0 && gap <= margin + speed * dt) {
        if (fsi__cd_advance_to_contact(w, p, q, dt, margin, speed, stop, h)) return;
        h->n = 0;
        h->margin = margin + FSI__CD_SWING * stop * dt;
        if (stop > 0) fsi__col_collide(h, p, q, w->dim);
    }
    fsi__cd_keep_stopped(w, p->body, q->body, margin, dt, h);
}

typedef struct fsi__cd_job { const fsi__cd_scene *w; double dt; } fsi__cd_job;

static void fsi__cd_collide_pairs(void *arg, int chunk, int begin, int end)
{
    const fsi__cd_job *job = (const fsi__cd_job *)arg;
    const fsi__cd_scene *w = job->w;
    fsi__cd_found *f = w->found;
    fsi__col_manifold h;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++) {
        fsi__cd_pair *pair = &f->pair[i];
        const fsi__col_placed *p = &f->placed[pair->p], *q = pair->q < 0 ? NULL : &f->placed[pair->q];
        const fsi__cd_plane *plane = q ? NULL : &w->plane[-1 - pair->q];
        h.n = 0;
        h.margin = fsi__cd_margin(w, p->body, -1) + FSI__CD_SWING * fsi__cd_motion(w, p->body, job->dt);
        if (q) fsi__cd_collide_parts(w, p, q, job->dt, &h);
        else fsi__col_collide_plane(&h, p, plane->n, plane->offset, w->dim);
        if (h.n > pair->most) fsi__col_reduce(&h, pair->most);
        pair->count = h.n;
        memcpy(f->point + pair->first, h.point, (size_t)h.n * sizeof *h.point);
    }
}

/* ---- >>hidden points: gaps in which a third body stands ---------------------------------------------------------- */

/* Pairs by bodies: how many each body has, and where they begin. */
static void fsi__cd_list_pairs(const fsi__cd_scene *w)
{
    fsi__cd_found *f = w->found;
    int id, i;
    for (id = 0; id < w->bodies; id++) {
        w->note[id].pairs = 0;
        w->note[id].first = w->note[id].other = -1;
    }
    for (i = f->pair_count - 1; i >= 0; i--) {
        fsi__cd_pair *pair = &f->pair[i];
        fsi__cd_note *m = &w->note[fsi__cd_upper(f, pair)];
        m->pairs++;
        m->first = i;
        if (pair->q < 0) continue;
        m = &w->note[fsi__cd_lower(f, pair)];
        m->pairs++;
        pair->next = m->other;
        m->other = i;
    }
}

/* The pair behind the i-th in the list of a body's pairs; -1: none. */
static int fsi__cd_next_pair(const fsi__cd_scene *w, int id, int i)
{
    const fsi__cd_found *f = w->found;
    if (fsi__cd_upper(f, &f->pair[i]) != id) return f->pair[i].next;
    return i + 1 < f->pair_count && fsi__cd_upper(f, &f->pair[i + 1]) == id ? i + 1 : w->note[id].other;
}

/* The first pair of two bodies; b < 0: of a and a plane. Or the pair behind, where there is none. */
static int fsi__cd_find_pair(const fsi__cd_found *f, int a, int b)
{
    const int p = a > b ? a : b, q = a > b ? b : a;
    int lo = 0, hi = f->pair_count;
    while (lo < hi) {
        const int mid = lo + (hi - lo) / 2, upper = fsi__cd_upper(f, &f->pair[mid]);
        if (upper < p || (upper == p && fsi__cd_lower(f, &f->pair[mid]) < q)) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* Has the pair a point with the normal of s (within 5 degrees, out of body `from`), a smaller gap, and at most
   `aside` from its line? */
static int fsi__cd_goes_with(const fsi__cd_found *f, const fsi__cd_pair *pair, int from, const fsi__col_point *s,
    double aside)
{
    const double sign = fsi__cd_lower(f, pair) == from ? 1 : -1;
    const fsi__col_point *t = f->point + pair->first;
    int k;
    for (k = 0; k < pair->count; k++) {
        const fsi__d3 off = fsi__d3_sub(t[k].x, s->x);
        const double along = fsi__d3_dot(off, s->n);
        if (!(t[k].depth > s->depth && sign * fsi__d3_dot(t[k].n, s->n) > 0.996)) continue;
        if (fsi__d3_dot(off, off) - along * along <= aside * aside) return 1;
    }
    return 0;
}

/* Does the gap of a point lead through the part, or past it within half its thickness? Sphere tracing. */
static int fsi__cd_crosses(const fsi__col_placed *p, const fsi__col_point *s)
{
    const double gap = -s->depth;
    double at = 0, d;
    fsi__d3 out;
    int pass;
    for (pass = 0; pass < 32 && at <= gap; pass++) {
        d = fsi__col_distance(p, fsi__d3_madd(s->x, 0.5 * gap - at, s->n), 2 * gap, &out) - 0.5 * p->part->thick;
        if (d <= 1e-3 * p->part->thick) return 1;
        at += d;
    }
    return 0;
}

/* Do the rows of body e and a body b, with those of b and f, keep e and f apart at the point s? lower: the one of e and
   f out of which the normal of s points. */
static int fsi__cd_holds(const fsi__cd_found *found, const fsi__cd_pair *pair, int e, int f, int lower,
    const fsi__col_point *s)
{
    const fsi__col_placed *p = &found->placed[fsi__cd_upper(found, pair) == e ? pair->q : pair->p];
    const double aside = 2 * p->part->thick;
    const int b = p->body, upper = b > f ? b : f, least = b > f ? f : b;
    int k;
    if (b == f || p->part->kind == FSI_RIGID_MESH) return 0;
    if (!fsi__cd_goes_with(found, pair, lower == e ? e : b, s, aside) || !fsi__cd_crosses(p, s)) return 0;
    for (k = fsi__cd_find_pair(found, b, f); k < found->pair_count; k++) {
        const fsi__cd_pair *next = &found->pair[k];
        if (fsi__cd_upper(found, next) != upper || fsi__cd_lower(found, next) != least) break;
        if (fsi__cd_goes_with(found, next, lower == e ? b : f, s, aside)) return 1;
    }
    return 0;
}

/* A gap in which a third body stands can only close through it:

        a ================     rows of a and b and rows of b and c hold a and c apart by b's thickness: a row of a and c
        b    --- x ---         at x would say nothing new. Without such rows a pile of bodies that falls has rows
        between c ================     neighbours only: its matrix is a narrow band, and Newton's method needs few
        steps.

   The rows of b must be close to the line of that row, or b could tilt between a and c, as a seesaw does; meshes, which
   may be hollow, hide nothing. The rows of b extend as planes beyond its edge; there their error is the rotation of a
   against c in the step times the distance from that edge, at most half of b's thickness: its whole thickness covers
   rotations of up to a radian. As the gaps of the two rows are smaller than the gap that they keep open, the rows of
   the smallest gaps are never left out. */
static void fsi__cd_hide_points(void *arg, int chunk, int begin, int end)
{
    const fsi__cd_scene *w = ((const fsi__cd_job *)arg)->w;
    fsi__cd_found *f = w->found;
    int i, k, j;
    (void)chunk;
    for (i = begin; i < end; i++) {
        const int a = fsi__cd_upper(f, &f->pair[i]), c = fsi__cd_lower(f, &f->pair[i]);
        const int e = c >= 0 && w->note[c].pairs < w->note[a].pairs ? c : a; /* the one with fewer neighbours */
        const int begin_e = w->note[e].first >= 0 ? w->note[e].first : w->note[e].other;
        const double margin = fsi__cd_margin(w, a, c);
        for (k = 0; k < f->pair[i].count; k++) {
            fsi__col_point *s = &f->point[f->pair[i].first + k];
            if (s->depth > -margin) continue;
            for (j = begin_e; j >= 0 && !s->hidden; j = fsi__cd_next_pair(w, e, j))
                s->hidden = f->pair[j].count > 0 && f->pair[j].q >= 0
                         && fsi__cd_holds(f, &f->pair[j], e, e == a ? c : a, c, s);
        }
    }
}

static fsi_status fsi__cd_narrow(const fsi__cd_scene *w, double dt, const char *fn)
{
    fsi__cd_found *f = w->found;
    fsi__cd_job job;
    int i, n = 0;
    for (i = 0; i < f->pair_count; i++) {
        f->pair[i].first = n;
        if (n > (1 << 28)) return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, -1, n, "too many bodies touch");
        n += f->pair[i].most;
    }
    FSI__TRY(FSI__CD_ROOM(w->context, f->point, 0, f->point_capacity, n, fn));
    job.w = w;
    job.dt = dt;
    fsi__cd_find_struck(w, dt);
    fsi__parallel(w->context, f->pair_count, 8, fsi__cd_collide_pairs, &job);
    fsi__cd_list_pairs(w);
    fsi__parallel_work(w->context, f->pair_count, 32, 10.0 * f->pair_count, fsi__cd_hide_points, &job);
    return FSI_OK;
}

FSI_API fsi_status fsi__cd_search(const fsi__cd_scene *w, double dt, const char *fn)
{
    int i;
    for (i = 0; i < w->bodies; i++) w->note[i].blow = fsi__d3_zero();
    do { /* ends: each body takes on the velocity of another one, ever faster */
        FSI__TRY(fsi__cd_place_all(w, dt, fn));
        FSI__TRY(fsi__cd_find_pairs(w, fn));
    } while (fsi__cd_find_blows(w, dt));
    return fsi__cd_narrow(w, dt, fn);
}

FSI_API void fsi__cd_free(fsi_context *context, fsi__cd_found *found)
{
    fsi__free(context, found->placed, (size_t)found->placed_capacity, sizeof *found->placed);
    fsi__free(context, found->order, (size_t)found->order_capacity, sizeof *found->order);
    fsi__free(context, found->pair, (size_t)found->pair_capacity, sizeof *found->pair);
    fsi__free(context, found->point, (size_t)found->point_capacity, sizeof *found->point);
}

/* ---- >>solids: the parts of a body ------------------------------------------------------------------------------- */

FSI_API fsi_status fsi__cd_make_solid(fsi_context *context, fsi__cd_solid *solid, const fsi_rigid_shape *shapes, int n,
    fsi_vec3 center, int dim, const char *fn)
{
    int k;
    memset(solid, 0, sizeof *solid);
    solid->link = -1;
    solid->part = (fsi__col_part *)fsi__alloc(context, (size_t)n, sizeof *solid->part);
    if (!solid->part) return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, n, "no memory for %d shapes", n);
    solid->parts = n;
    for (k = 0; k < n; k++) {
        fsi__col_part *part = &solid->part[k];
        FSI__TRY(fsi__col_make_part(context, part, &shapes[k], fsi__d3_of(center), dim, fn, k));
        solid->thick = fmax(solid->thick, part->thick);
        solid->reach = fmax(solid->reach, part->reach);
    }
    return FSI_OK;
}

FSI_API void fsi__cd_free_solid(fsi_context *context, fsi__cd_solid *solid)
{
    int k;
    for (k = 0; k < solid->parts; k++) fsi__col_free_part(context, &solid->part[k]);
    fsi__free(context, solid->part, (size_t)solid->parts, sizeof *solid->part);
    memset(solid, 0, sizeof *solid);
}

FSI_API double fsi__cd_volume(const fsi__cd_solid *solid, int dim)
{
    double volume = 0;
    int k;
    for (k = 0; k < solid->parts; k++) volume += fsi__col_volume(&solid->part[k], dim);
    return volume;
}

/* Part k of a body with that pose of its centre of mass. */
static void fsi__cd_place_part(const fsi__cd_solid *solid, int k, const fsi_pose *pose, fsi__col_placed *p)
{
    double turn[9];
    fsi__d9_of_quat(pose->orientation, turn);
    fsi__col_place(&solid->part[k], fsi__d3_of(pose->position), turn, p);
    fsi__col_bound(p, 0);
}

FSI_API double fsi__cd_distance(const fsi__cd_solid *solid, const fsi_pose *pose, fsi__d3 x, fsi__d3 *gradient)
{
    double best = (double)FSI_REAL_MAX, d;
    fsi__col_placed p;
    fsi__d3 n;
    int k;
    for (k = 0; k < solid->parts; k++) {
        fsi__cd_place_part(solid, k, pose, &p);
        d = fsi__col_distance(&p, x, (double)FSI_REAL_MAX, &n);
        if (d < best && gradient) *gradient = n;
        best = d < best ? d : best;
    }
    return best;
}

/* The deepest contact point of two bodies; 0: none. */
FSI_API double fsi__cd_overlap(const fsi__cd_scene *w, int a, const fsi_pose *pose_a, int b, const fsi_pose *pose_b)
{
    fsi__col_placed p, q;
    fsi__col_manifold h;
    double deepest = 0;
    int i, j, k;
    for (i = 0; i < w->solid[a].parts; i++) for (j = 0; j < w->solid[b].parts; j++) {
        fsi__cd_place_part(&w->solid[a], i, pose_a, &p);
        fsi__cd_place_part(&w->solid[b], j, pose_b, &q);
        if (!fsi__cd_boxes_meet(&p, &q, w->dim)) continue;
        h.margin = 0;
        fsi__col_collide(&h, &p, &q, w->dim);
        for (k = 0; k < h.n; k++) deepest = fmax(deepest, h.point[k].depth);
    }
    return deepest;
}

FSI_API void fsi__cd_draw(const fsi_debug_draw *draw, const fsi__cd_solid *solid, const fsi_pose *pose, int dim,
    uint32_t rgb)
{
    fsi__col_placed p;
    int k;
    for (k = 0; k < solid->parts; k++) {
        fsi__cd_place_part(solid, k, pose, &p);
        fsi__col_draw_part(draw, &p, dim, rgb);
    }
}

static void fsi__cd_skin(const fsi__cd_solid *solid, const fsi_pose *pose, int shape, double edge, int dim,
    fsi__col_skin *s)
{
    fsi__col_placed p;
    int k;
    s->vertices = s->elements = 0;
    for (k = 0; k < solid->parts; k++) if (shape < 0 || shape == k) {
        fsi__cd_place_part(solid, k, pose, &p);
        fsi__col_skin_part(s, &p, edge, dim);
    }
}

FSI_API fsi_status fsi__cd_tessellate(fsi_context *context, const fsi__cd_solid *solid, const fsi_pose *pose, int shape,
    double edge, int dim, fsi_mesh **out, int id, const char *fn)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_status status = FSI_ERROR_MEMORY;
    fsi__col_skin s;
    size_t corners;

    /* Count vertices and elements. */
    memset(&s, 0, sizeof s);
    fsi__cd_skin(solid, pose, shape, edge, dim, &s);
    d.vertex_count = s.vertices;
    corners = (size_t)dim * (size_t)s.elements;
    s.vertex = (fsi_vec3 *)fsi__alloc(context, (size_t)d.vertex_count, sizeof *s.vertex);
    s.element = (int *)fsi__alloc(context, corners, sizeof *s.element);

    /* Fill the arrays, and make the mesh. */
    if (s.vertex && s.element) {
        fsi__cd_skin(solid, pose, shape, edge, dim, &s);
        d.context = context;
        d.vertices = s.vertex;
        d.elements = s.element;
        d.element_count = s.elements;
        d.corners = dim;
        d.weld = 0;
        status = fsi_mesh_create(out, &d);
    } else fsi__fail(context, status, fn, id, s.vertices, "no memory for a mesh of %d vertices", s.vertices);
    fsi__free(context, s.vertex, (size_t)d.vertex_count, sizeof *s.vertex);
    fsi__free(context, s.element, corners, sizeof *s.element);
    return status;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
