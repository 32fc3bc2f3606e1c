/* fsi_order.h - nested dissection: orders the rows of large meshes so that the factor of fsi_solve.h stays sparse
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_order.h"
         #include "fsi_order.h"

   A SOLVER FOR LARGE MESHES
      fsi_context ctx = fsi_default_context();
      fsi_solver_desc d = fsi_solver_default_desc();
      fsi_solver *s;
      d.context = &ctx;
      d.ordering = fsi_dissection();                      // or fsi_ldlt_desc.ordering, for a factor of your own
      if (fsi_solver_create(&s, &d) != FSI_OK) {
          puts(ctx.error.message);
          return 1;
      }
      fsi_solver_destroy(s);                              // fsi_solver_solve as always: see fsi_solve.h

   WHAT IT DOES
      Finds small separators that cut the mesh in halves, again and again, and eliminates them last. For a surface of n
      vertices L has some n log n numbers and takes some n^1.5 operations. Finding the order takes several times as long
      as minimum degree, the default; L is smaller. docs/solve.md has figures.
      Below 3000 rows it is minimum degree, which is as good there. Integers only: the same order on every platform.
   WHAT IT DOES NOT DO
      Help rods and strips: their separators are no smaller than what minimum degree finds. Run on several threads.
   MACROS: those of fsi.h.
   FIND IN HERE (search for >>)
      >>dissection, the API; then the implementation: >>order separators  >>order coarsening  >>order nested dissection
*/
#ifndef FSI_ORDER_H
#define FSI_ORDER_H

#include "fsi_solve.h"

/* ---- >>dissection ----------------------------------------------------------------------------------------------- */

/* For fsi_ldlt_desc.ordering and fsi_solver_desc.ordering. */
FSI_API const fsi_ordering *fsi_dissection(void);

#endif /* FSI_ORDER_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_ORDER_IMPLEMENTATION
#define FSI_ORDER_IMPLEMENTATION
#endif
#ifdef FSI_ORDER_IMPLEMENTATION
#ifndef FSI_ORDER_IMPLEMENTATION_DONE
#define FSI_ORDER_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_solve.h"

FSI__STRICT_BEGIN

/* Nested dissection (George 1973): a small separator S cuts the graph in two halves A and B that never fill each other;
   order A, then B, then S last, and go on inside A and B. Separators come from the multilevel scheme (Hendrickson and
   Leland 1995, Karypis and Kumar 1998):

        coarsen: match each vertex with the      o-o o-o    o  o       the coarsest graph is cut by greedy growth from
        neighbour of the heaviest edge, merge    |   |  -> |  |  ->..  several seeds; each finer graph inherits the cut
        pairs, down to about sixty vertices      o-o o-o    o  o       and refines it

   Refinement moves one separator vertex at a time to a side, pulling its neighbours on the other side into the
   separator (Fiduccia and Mattheyses 1982, on vertices: Ashcraft and Liu 1998); the best state of a run of moves is
   kept. A piece of about FSI__ORDER_LEAF rows is ordered by minimum degree, with the separators around it as a halo
   that counts in the degrees but is not eliminated (Pellegrini, Roman and Amestoy 2000). */
#define FSI__ORDER_LEAF 500   /* rows of a piece that is not dissected further */
#define FSI__ORDER_SMALL 3000 /* rows of a matrix for which minimum degree is as good */
#define FSI__ORDER_LEVELS 48  /* of coarsening, at most */

static int fsi__order_least(int a, int b) { return a < b ? a : b; }
static int fsi__order_most(int a, int b) { return a > b ? a : b; }

/* ---- >>order separators ----------------------------------------------------------------------------------------- */

enum { FSI__ORDER_LEFT, FSI__ORDER_RIGHT, FSI__ORDER_CUT }; /* the two sides and the separator */

/* A graph of the multilevel scheme, with its cut. */
typedef struct fsi__order_level {
    fsi__arena memory;
    int n, *start, *adj, *edge, *weight; /* edge: weight of adj[k]; weight: rows */
    int *coarse;                         /* number of a vertex in the next level */
    signed char *side;
} fsi__order_level;

typedef struct fsi__order_entry { int64_t key; int vertex; } fsi__order_entry;

/* A binary heap of separator vertices; the first has the largest key. */
typedef struct fsi__order_heap {
    int count, *place;       /* place: of a vertex in the heap, -1 outside */
    fsi__order_entry *entry; /* key: gain, then the later the better */
} fsi__order_heap;

/* The refinement of a cut. Moving v from the separator to side s pulls its neighbours on the other side into the
   separator: gain[s] = weight(v) - pull[1 - s]. */
typedef struct fsi__order_cut {
    int *pull[2];            /* of a separator vertex: weight of its neighbours on a side */
    fsi__order_heap heap[2]; /* by gain, for moves to that side */
    int *list, count;        /* the separator */
    int *trail, trail_count; /* vertices that changed sides in this pass, and their former sides */
    signed char *was;
    unsigned char *locked;   /* moved in this pass */
    int rows[3], most;       /* weight of sides and separator; most a side should have */
    uint32_t tick;
} fsi__order_cut;

typedef struct fsi__order_nd {
    fsi_context *c;
    const fsi__order_net *g;
    fsi__arena memory;
    int *list;                                   /* the order; pieces are ranges of it */
    int *local, *slot, *match, *turn;            /* number of a vertex in the piece, or -1; scratch */
    signed char *best;
    fsi__order_cut cut;
    fsi__order_level level[FSI__ORDER_LEVELS + 1];
    fsi__arena piece_memory;
    fsi__order_net piece;                        /* a leaf and its halo */
    fsi__arena degrees;
} fsi__order_nd;

static void fsi__order_heap_set(fsi__order_heap *h, int i, fsi__order_entry e)
{
    h->entry[i] = e;
    h->place[e.vertex] = i;
}

/* Puts v with its key at place i, or where it belongs above or below. */
static void fsi__order_heap_sift(fsi__order_heap *h, int i, fsi__order_entry e)
{
    const fsi__order_entry *entry = h->entry;
    int child;
    while (i > 0 && entry[(i - 1) / 2].key < e.key) {
        fsi__order_heap_set(h, i, entry[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    while ((child = 2 * i + 1) < h->count) {
        if (child + 1 < h->count && entry[child + 1].key > entry[child].key) child++;
        if (entry[child].key <= e.key) break;
        fsi__order_heap_set(h, i, entry[child]);
        i = child;
    }
    fsi__order_heap_set(h, i, e);
}

static void fsi__order_heap_remove(fsi__order_heap *h, int v)
{
    int i = h->place[v];
    if (i < 0) return;
    h->place[v] = -1;
    if (i < --h->count) fsi__order_heap_sift(h, i, h->entry[h->count]);
}

static void fsi__order_heap_clear(fsi__order_heap *h)
{
    while (h->count > 0) h->place[h->entry[--h->count].vertex] = -1;
}

/* Enters v, or corrects its key. */
static void fsi__order_offer(fsi__order_cut *t, const fsi__order_level *g, int v, int to)
{
    fsi__order_heap *h = &t->heap[to];
    fsi__order_entry e;
    int i = h->place[v];
    e.vertex = v;
    e.key = ((int64_t)g->weight[v] - t->pull[1 - to][v]) * ((int64_t)1 << 32) + t->tick++;
    fsi__order_heap_sift(h, i < 0 ? h->count++ : i, e);
}

/* The weight of the neighbours of a separator vertex on both sides. */
static void fsi__order_count_pull(fsi__order_cut *t, const fsi__order_level *g, int v)
{
    int k, pull[3] = { 0, 0, 0 };
    for (k = g->start[v]; k < g->start[v + 1]; k++) pull[g->side[g->adj[k]]] += g->weight[g->adj[k]];
    t->pull[0][v] = pull[0];
    t->pull[1][v] = pull[1];
}

/* Changes the side of a vertex and remembers it. */
static void fsi__order_shift(fsi__order_cut *t, fsi__order_level *g, int v, int side)
{
    t->trail[t->trail_count] = v;
    t->was[t->trail_count++] = g->side[v];
    t->rows[g->side[v]] -= g->weight[v];
    t->rows[side] += g->weight[v];
    g->side[v] = (signed char)side;
}

/* Pulls u from side `from` into the separator. */
static void fsi__order_pull(fsi__order_cut *t, fsi__order_level *g, int u, int from)
{
    int k, x, rows[3] = { 0, 0, 0 };
    fsi__order_shift(t, g, u, FSI__ORDER_CUT);
    for (k = g->start[u]; k < g->start[u + 1]; k++) {
        x = g->adj[k];
        rows[g->side[x]] += g->weight[x];
        if (g->side[x] != FSI__ORDER_CUT) continue;
        t->pull[from][x] -= g->weight[u];
        if (t->heap[1 - from].place[x] >= 0) fsi__order_offer(t, g, x, 1 - from);
    }
    t->pull[0][u] = rows[0];
    t->pull[1][u] = rows[1];
    if (t->locked[u]) return;
    fsi__order_offer(t, g, u, 0);
    fsi__order_offer(t, g, u, 1);
}

/* Moves the separator vertex v to side `to`. */
static void fsi__order_move(fsi__order_cut *t, fsi__order_level *g, int v, int to)
{
    int k, u;
    fsi__order_heap_remove(&t->heap[0], v);
    fsi__order_heap_remove(&t->heap[1], v);
    fsi__order_shift(t, g, v, to);
    t->locked[v] = 1;
    for (k = g->start[v]; k < g->start[v + 1]; k++) {
        u = g->adj[k];
        if (g->side[u] == 1 - to) fsi__order_pull(t, g, u, 1 - to);
        else if (g->side[u] == FSI__ORDER_CUT) {
            t->pull[to][u] += g->weight[v];
            if (t->heap[1 - to].place[u] >= 0) fsi__order_offer(t, g, u, 1 - to);
        }
    }
}

/* Takes back the changes after the first `keep`, and lists the separator that results. */
static void fsi__order_rewind(fsi__order_cut *t, fsi__order_level *g, int keep)
{
    int k, v, old = t->count, total = t->trail_count;
    while (t->trail_count > keep) {
        v = t->trail[--t->trail_count];
        t->rows[g->side[v]] -= g->weight[v];
        t->rows[t->was[t->trail_count]] += g->weight[v];
        g->side[v] = t->was[t->trail_count];
    }
    for (k = 0; k < total; k++) t->locked[t->trail[k]] = 2;
    for (t->count = k = 0; k < old; k++) {
        v = t->list[k];
        if (g->side[v] == FSI__ORDER_CUT) {
            t->list[t->count++] = v;
            t->locked[v] = 0;
        }
    }
    for (k = 0; k < total; k++) {
        v = t->trail[k];
        if (g->side[v] == FSI__ORDER_CUT && t->locked[v]) t->list[t->count++] = v;
        t->locked[v] = 0;
    }
    t->trail_count = 0;
}

/* Cost of a cut: its weight, more if a side is too heavy; among equals the balanced one is the cheapest. */
static int64_t fsi__order_cost(const fsi__order_cut *t)
{
    int heavy = fsi__order_most(t->rows[0], t->rows[1]), light = fsi__order_least(t->rows[0], t->rows[1]);
    int excess = fsi__order_most(heavy - t->most, 0);
    return ((int64_t)t->rows[2] + excess) * ((int64_t)1 << 31) + (heavy - light);
}

/* The side to which the best move leads, -1: none is left. */
static int fsi__order_choose(const fsi__order_cut *t, const fsi__order_level *g)
{
    int s, may[2];
    int64_t gain[2];
    for (s = 0; s < 2; s++) {
        const fsi__order_heap *h = &t->heap[s];
        may[s] = h->count > 0 && t->rows[s] + g->weight[h->entry[0].vertex] <= fsi__order_most(t->most, t->rows[1 - s]);
        gain[s] = h->count > 0 ? (int64_t)g->weight[h->entry[0].vertex] - t->pull[1 - s][h->entry[0].vertex] : 0;
    }
    if (!may[0] || !may[1]) return may[0] ? 0 : may[1] ? 1 : -1;
    if (gain[0] != gain[1]) return gain[0] > gain[1] ? 0 : 1;
    return t->rows[0] <= t->rows[1] ? 0 : 1;
}

/* One pass of Fiduccia and Mattheyses: the best move, again and again, each vertex once; back to the best cut met. */
static int fsi__order_pass(fsi__order_cut *t, fsi__order_level *g)
{
    int64_t first = fsi__order_cost(t), best = first, cost;
    int k, to, keep = 0, vain = 0, patience = fsi__order_least(2 * t->count, 800) + 20;
    t->tick = 0;
    for (k = 0; k < t->count; k++) {
        fsi__order_count_pull(t, g, t->list[k]);
        fsi__order_offer(t, g, t->list[k], 0);
        fsi__order_offer(t, g, t->list[k], 1);
    }
    while (vain <= patience && (to = fsi__order_choose(t, g)) >= 0) {
        fsi__order_move(t, g, t->heap[to].entry[0].vertex, to);
        cost = fsi__order_cost(t);
        vain++;
        if (cost >= best) continue;
        vain = 0;
        best = cost;
        keep = t->trail_count;
    }
    fsi__order_heap_clear(&t->heap[0]);
    fsi__order_heap_clear(&t->heap[1]);
    fsi__order_rewind(t, g, keep);
    return best < first;
}

/* Sums up and lists the cut in side[]. */
static void fsi__order_take_cut(fsi__order_cut *t, const fsi__order_level *g)
{
    int v, total;
    t->rows[0] = t->rows[1] = t->rows[2] = t->count = 0;
    for (v = 0; v < g->n; v++) {
        t->rows[g->side[v]] += g->weight[v];
        if (g->side[v] == FSI__ORDER_CUT) t->list[t->count++] = v;
    }
    total = t->rows[0] + t->rows[1] + t->rows[2];
    t->most = total - total / 100 * 28;
}

static void fsi__order_refine(fsi__order_cut *t, fsi__order_level *g, int passes)
{
    fsi__order_take_cut(t, g);
    while (passes-- > 0 && fsi__order_pass(t, g)) {}
}

/* Grows the left side from v until it has half of the weight, always by the vertex that adds least to the separator. */
static void fsi__order_grow(fsi__order_cut *t, fsi__order_level *g, int v)
{
    int half;
    memset(g->side, FSI__ORDER_RIGHT, (size_t)g->n);
    g->side[v] = FSI__ORDER_CUT;
    fsi__order_take_cut(t, g);
    half = (t->rows[0] + t->rows[1] + t->rows[2]) / 2;
    t->tick = 0;
    fsi__order_count_pull(t, g, v);
    fsi__order_offer(t, g, v, 0);
    while (t->rows[0] + t->rows[2] / 2 < half && t->heap[0].count > 0)
        fsi__order_move(t, g, t->heap[0].entry[0].vertex, 0);
    fsi__order_heap_clear(&t->heap[0]);
    fsi__order_heap_clear(&t->heap[1]);
    fsi__order_rewind(t, g, t->trail_count);
}

/* Cuts the coarsest graph: the best of several growths. */
static void fsi__order_first_cut(fsi__order_nd *s, fsi__order_level *g, uint64_t seed, int tries)
{
    int64_t cost, best = INT64_MAX;
    signed char *keep = s->best + s->g->n;
    int k;
    for (k = 0; k < tries; k++) {
        fsi__order_grow(&s->cut, g, (int)(fsi__order_mix(seed * 64 + (uint64_t)k) % (uint64_t)g->n));
        fsi__order_refine(&s->cut, g, 2);
        cost = fsi__order_cost(&s->cut);
        if (cost >= best) continue;
        best = cost;
        memcpy(keep, g->side, (size_t)g->n);
    }
    memcpy(g->side, keep, (size_t)g->n);
}

/* ---- >>order coarsening ----------------------------------------------------------------------------------------- */

static void fsi__order_level_layout(fsi__order_level *g, fsi__arena *a, size_t n, size_t m)
{
    g->start = (int *)fsi__take(a, n + 1, sizeof(int));
    g->weight = (int *)fsi__take(a, n, sizeof(int));
    g->coarse = (int *)fsi__take(a, n, sizeof(int));
    g->adj = (int *)fsi__take(a, m, sizeof(int));
    g->edge = (int *)fsi__take(a, m, sizeof(int));
    g->side = (signed char *)fsi__take(a, n, 1);
}

static fsi_status fsi__order_level_reserve(fsi_context *c, fsi__order_level *g, int n, int edges)
{
    fsi__arena measure = { NULL, 0, 0 };
    fsi__order_level_layout(g, &measure, (size_t)n, (size_t)edges);
    if (!fsi__arena_room(c, &g->memory, measure.used)) return fsi__order_no_memory(c, n);
    fsi__order_level_layout(g, &g->memory, (size_t)n, (size_t)edges);
    g->n = n;
    return FSI_OK;
}

/* The vertices in a random turn, those of few neighbours first: s->turn. */
static void fsi__order_shuffle(fsi__order_nd *s, const fsi__order_level *g, uint64_t seed)
{
    int v, k, begin[33] = { 0 }, *turn = s->turn, *mixed = s->match;
    for (v = 0; v < g->n; v++) {
        k = (int)((fsi__order_mix(seed + (uint64_t)v) >> 32) * ((uint64_t)v + 1) >> 32);
        mixed[v] = mixed[k];
        mixed[k] = v;
    }
    for (v = 0; v < g->n; v++) begin[1 + fsi__order_least(g->start[v + 1] - g->start[v], 31)]++;
    for (k = 0; k < 32; k++) begin[k + 1] += begin[k];
    for (k = 0; k < g->n; k++) {
        v = mixed[k];
        turn[begin[fsi__order_least(g->start[v + 1] - g->start[v], 31)]++] = v;
    }
}

/* The free neighbour of v with the heaviest edge for its weight, v if there is none. */
static int fsi__order_partner(const fsi__order_level *g, const int *match, int v, int heavy)
{
    int k, u, best = v;
    int64_t edge = 0, weight = 1;
    for (k = g->start[v]; k < g->start[v + 1]; k++) {
        u = g->adj[k];
        if (match[u] >= 0 || g->weight[v] + g->weight[u] > heavy) continue;
        if (g->edge[k] * weight <= edge * g->weight[u]) continue;
        best = u;
        edge = g->edge[k];
        weight = g->weight[u];
    }
    return best;
}

/* Pairs each unmatched vertex with the next unmatched neighbour of a common neighbour. */
static void fsi__order_pair_alone(const fsi__order_level *g, int *match, int heavy)
{
    int v, u, k, alone;
    for (v = 0; v < g->n; v++) {
        for (alone = -1, k = g->start[v]; k < g->start[v + 1]; k++) {
            u = g->adj[k];
            if (match[u] != u) continue;
            if (alone < 0 || g->weight[u] + g->weight[alone] > heavy) alone = u;
            else {
                match[u] = alone;
                match[alone] = u;
                alone = -1;
            }
        }
    }
}

/* Matches, and numbers the vertices of the next level in g->coarse; returns how many there are. */
static int fsi__order_match(fsi__order_nd *s, fsi__order_level *g, uint64_t seed)
{
    int v, u, k, count = 0, alone = 0, heavy, *match = s->match;
    int64_t rows = 0;
    fsi__order_shuffle(s, g, seed);
    for (v = 0; v < g->n; v++) {
        match[v] = -1;
        rows += g->weight[v];
    }
    heavy = (int)(rows / 30 + 1);
    for (k = 0; k < g->n; k++) {
        v = s->turn[k];
        if (match[v] >= 0) continue;
        u = fsi__order_partner(g, match, v, heavy);
        match[u] = v;
        match[v] = u;
        alone += u == v;
    }
    if (alone > g->n / 4) fsi__order_pair_alone(g, match, heavy);
    for (v = 0; v < g->n; v++)
        if (match[v] >= v) g->coarse[v] = g->coarse[match[v]] = count++;
    return count;
}

/* Adds the edges of v to those of its coarse vertex, which begin at `begin`; returns the new end. */
static int fsi__order_merge_edges(fsi__order_nd *s, const fsi__order_level *g, fsi__order_level *to, int v, int begin,
    int end)
{
    int k, d, *slot = s->slot, own = g->coarse[v];
    for (k = g->start[v]; k < g->start[v + 1]; k++) {
        d = g->coarse[g->adj[k]];
        if (d == own) continue;
        if (slot[d] >= begin) to->edge[slot[d]] += g->edge[k];
        else {
            slot[d] = end;
            to->adj[end] = d;
            to->edge[end++] = g->edge[k];
        }
    }
    return end;
}

/* Makes level k + 1 from level k. *made: 0 when it is no use. */
static fsi_status fsi__order_coarsen(fsi__order_nd *s, int k, uint64_t seed, int *made)
{
    fsi__order_level *g = &s->level[k], *to = &s->level[k + 1];
    int v, end = 0, count, c = 0;
    *made = 0;
    if (k == FSI__ORDER_LEVELS || g->n <= 60) return FSI_OK;
    count = fsi__order_match(s, g, seed);
    if (count > g->n - g->n / 8) return FSI_OK;
    FSI__TRY(fsi__order_level_reserve(s->c, to, count, g->start[g->n]));
    for (c = 0; c < count; c++) s->slot[c] = -1;
    for (v = 0; v < g->n; v++) {
        int pair = s->match[v], begin = end;
        if (pair < v) continue;
        c = g->coarse[v];
        to->start[c] = begin;
        to->weight[c] = g->weight[v] + (pair > v ? g->weight[pair] : 0);
        end = fsi__order_merge_edges(s, g, to, v, begin, end);
        if (pair > v) end = fsi__order_merge_edges(s, g, to, pair, begin, end);
    }
    to->start[count] = end;
    *made = 1;
    return FSI_OK;
}

/* Hands the cut of level k + 1 to level k and refines it. */
static void fsi__order_uncoarsen(fsi__order_nd *s, int k)
{
    fsi__order_level *g = &s->level[k];
    const fsi__order_level *from = &s->level[k + 1];
    int v;
    for (v = 0; v < g->n; v++) g->side[v] = from->side[g->coarse[v]];
    fsi__order_refine(&s->cut, g, 3);
}

/* Cuts level `base` by way of coarser ones. */
static fsi_status fsi__order_multilevel(fsi__order_nd *s, int base, uint64_t seed)
{
    int k = base, made;
    do {
        FSI__TRY(fsi__order_coarsen(s, k, seed, &made));
        k += made;
    } while (made);
    fsi__order_first_cut(s, &s->level[k], seed, 6);
    while (k-- > base) fsi__order_uncoarsen(s, k);
    return FSI_OK;
}

/* Cuts level 0: coarsens to some thousand vertices, takes the best of several cuts of those, and refines it. */
static fsi_status fsi__order_bisect(fsi__order_nd *s)
{
    int base = 0, made = 1, run, runs;
    int64_t cost, best = INT64_MAX;
    while (made && s->level[base].n > 2000) {
        FSI__TRY(fsi__order_coarsen(s, base, 1, &made));
        base += made;
    }
    /* work lies in the large separators, time in the small ones */
    runs = s->level[0].n > 20000 ? 4 : s->level[0].n > 3000 ? 2 : 1;
    for (run = 0; run < runs; run++) {
        fsi__order_level *g = &s->level[base];
        FSI__TRY(fsi__order_multilevel(s, base, (uint64_t)run + 2));
        cost = fsi__order_cost(&s->cut);
        if (cost >= best) continue;
        best = cost;
        memcpy(s->best, g->side, (size_t)g->n);
    }
    memcpy(s->level[base].side, s->best, (size_t)s->level[base].n);
    fsi__order_take_cut(&s->cut, &s->level[base]);
    while (base-- > 0) fsi__order_uncoarsen(s, base);
    return FSI_OK;
}

/* ---- >>order nested dissection ---------------------------------------------------------------------------------- */

static void fsi__order_nd_layout(fsi__order_nd *s, fsi__arena *a)
{
    size_t n = (size_t)s->g->n;
    int side;
    s->local = (int *)fsi__take(a, n, sizeof(int));
    s->slot = (int *)fsi__take(a, n, sizeof(int));
    s->match = (int *)fsi__take(a, n, sizeof(int));
    s->turn = (int *)fsi__take(a, n, sizeof(int));
    s->best = (signed char *)fsi__take(a, 2 * n, 1);
    s->cut.list = (int *)fsi__take(a, n, sizeof(int));
    s->cut.trail = (int *)fsi__take(a, 3 * n, sizeof(int));
    s->cut.was = (signed char *)fsi__take(a, 3 * n, 1);
    s->cut.locked = (unsigned char *)fsi__take(a, n, 1);
    for (side = 0; side < 2; side++) {
        s->cut.pull[side] = (int *)fsi__take(a, n, sizeof(int));
        s->cut.heap[side].entry = (fsi__order_entry *)fsi__take(a, n, sizeof(fsi__order_entry));
        s->cut.heap[side].place = (int *)fsi__take(a, n, sizeof(int));
    }
}

/* The piece list[begin] .. list[end - 1] becomes level 0. */
static fsi_status fsi__order_extract(fsi__order_nd *s, int begin, int end)
{
    fsi__order_level *to = &s->level[0];
    int i, k, m = 0;
    for (i = begin; i < end; i++) m += s->g->start[s->list[i] + 1] - s->g->start[s->list[i]];
    FSI__TRY(fsi__order_level_reserve(s->c, to, end - begin, m));
    for (i = begin; i < end; i++) s->local[s->list[i]] = i - begin;
    for (m = 0, i = begin; i < end; i++) {
        int v = s->list[i];
        to->start[i - begin] = m;
        to->weight[i - begin] = s->g->weight[v];
        for (k = s->g->start[v]; k < s->g->start[v + 1]; k++) {
            int u = s->local[s->g->adj[k]];
            if (u < 0) continue;
            to->adj[m] = u;
            to->edge[m++] = 1;
        }
    }
    to->start[end - begin] = m;
    for (i = begin; i < end; i++) s->local[s->list[i]] = -1;
    return FSI_OK;
}

/* Sides by components: the first ones, up to about half of the vertices, go left. 0 if there is but one component. */
static int fsi__order_split_components(fsi__order_nd *s)
{
    fsi__order_level *g = &s->level[0];
    int *queue = s->turn, tail = 0, seed, i, k, begin, side = FSI__ORDER_LEFT, components = 0;
    memset(g->side, FSI__ORDER_CUT, (size_t)g->n);
    for (seed = 0; seed < g->n; seed++) {
        if (g->side[seed] != FSI__ORDER_CUT) continue;
        components++;
        begin = i = tail;
        g->side[seed] = (signed char)side;
        for (queue[tail++] = seed; i < tail; i++) {
            for (k = g->start[queue[i]]; k < g->start[queue[i] + 1]; k++) {
                if (g->side[g->adj[k]] != FSI__ORDER_CUT) continue;
                g->side[g->adj[k]] = (signed char)side;
                queue[tail++] = g->adj[k];
            }
        }
        if (begin > 0 && side == FSI__ORDER_LEFT && tail - g->n / 2 > g->n / 2 - begin)
            for (side = FSI__ORDER_RIGHT, i = begin; i < tail; i++) g->side[queue[i]] = FSI__ORDER_RIGHT;
        if (tail >= g->n / 2) side = FSI__ORDER_RIGHT;
    }
    return components > 1;
}

/* Sorts the piece by side: left, right, separator; count[] of each. */
static void fsi__order_part(fsi__order_nd *s, int begin, int end, int *count)
{
    const signed char *side = s->level[0].side;
    int i, at[3];
    count[0] = count[1] = count[2] = 0;
    for (i = 0; i < end - begin; i++) count[side[i]]++;
    at[0] = 0; at[1] = count[0]; at[2] = count[0] + count[1];
    for (i = 0; i < end - begin; i++) s->turn[at[side[i]]++] = s->list[begin + i];
    memcpy(s->list + begin, s->turn, (size_t)(end - begin) * sizeof(int));
}

/* Copies v's edges that stay in the piece or, for a vertex of the piece, lead to its halo, which grows. */
static int fsi__order_copy_edges(fsi__order_nd *s, int v, int inner, int m)
{
    fsi__order_net *p = &s->piece;
    int k, u;
    for (k = s->g->start[v]; k < s->g->start[v + 1]; k++) {
        u = s->g->adj[k];
        if (s->local[u] < 0) {
            if (s->local[v] >= inner) continue;
            s->slot[p->n] = u;
            s->local[u] = p->n++;
        }
        if (s->local[v] < inner || s->local[u] < inner) p->adj[m++] = s->local[u];
    }
    return m;
}

/* Makes the piece and its halo a graph of its own; slot[i] is the vertex that is i there. */
static fsi_status fsi__order_make_leaf(fsi__order_nd *s, int begin, int end)
{
    fsi__arena measure = { NULL, 0, 0 };
    fsi__order_net *p = &s->piece;
    int i, m = 0, inner = end - begin;

    /* Room for the piece with its edges and at most all other vertices as halo. */
    for (i = begin; i < end; i++) m += s->g->start[s->list[i] + 1] - s->g->start[s->list[i]];
    if (m > INT32_MAX / 2) return fsi__order_too_large(s->c, m);
    p->n = fsi__order_least(s->g->n - inner, m) + inner;
    fsi__order_net_layout(p, &measure, (size_t)p->n, 2 * (size_t)m);
    if (!fsi__arena_room(s->c, &s->piece_memory, measure.used)) return fsi__order_no_memory(s->c, p->n);
    fsi__order_net_layout(p, &s->piece_memory, (size_t)p->n, 2 * (size_t)m);
    p->n = inner;

    /* The vertices of the piece; the halo follows as edges lead there. */
    for (i = 0; i < inner; i++) {
        s->slot[i] = s->list[begin + i];
        s->local[s->slot[i]] = i;
    }
    for (m = i = 0; i < p->n; i++) { /* n grows on the way */
        p->start[i] = m;
        p->weight[i] = s->g->weight[s->slot[i]];
        p->rank[i] = i >= inner;
        m = fsi__order_copy_edges(s, s->slot[i], inner, m);
    }
    p->start[p->n] = m;
    for (i = 0; i < p->n; i++) s->local[s->slot[i]] = -1;
    return FSI_OK;
}

static fsi_status fsi__order_leaf(fsi__order_nd *s, int begin, int end)
{
    int i, count;
    FSI__TRY(fsi__order_make_leaf(s, begin, end));
    FSI__TRY(fsi__order_by_degree(s->c, &s->piece, 0, s->turn, &count, &s->degrees));
    for (i = 0; i < count; i++) s->list[begin + i] = s->slot[s->turn[i]];
    return FSI_OK;
}

/* Small, or so dense that no separator is worth it. */
static int fsi__order_is_leaf(const fsi__order_nd *s, int begin, int end)
{
    int64_t rows = 0, edges = 0, n = end - begin;
    int i;
    for (i = begin; i < end; i++) rows += s->g->weight[s->list[i]];
    if (rows <= FSI__ORDER_LEAF || n <= 20) return 1;
    for (i = begin; i < end; i++) edges += s->g->start[s->list[i] + 1] - s->g->start[s->list[i]];
    return edges > n * n / 2;
}

/* Cuts the piece; count[0] and count[1] are the sizes of the pieces that remain, both 0 after a leaf. */
static fsi_status fsi__order_cut_piece(fsi__order_nd *s, int begin, int end, int *count)
{
    const int *rows = s->cut.rows;
    count[0] = count[1] = 0;
    if (fsi__order_is_leaf(s, begin, end)) return fsi__order_leaf(s, begin, end);
    FSI__TRY(fsi__order_extract(s, begin, end));
    if (!fsi__order_split_components(s)) {
        FSI__TRY(fsi__order_bisect(s));
        if (fsi__order_least(rows[0], rows[1]) < (rows[0] + rows[1] + rows[2]) / 16)
            return fsi__order_leaf(s, begin, end);
    }
    fsi__order_part(s, begin, end, count);
    return FSI_OK;
}

/* Cuts the first n of the list, piece after piece; the smaller half is done first, so that at most log2 n wait. */
static fsi_status fsi__order_dissect_pieces(fsi__order_nd *s, int n)
{
    int wait[64][2], waiting = 1, count[3];
    wait[0][0] = 0;
    wait[0][1] = n;
    while (waiting > 0) {
        int begin = wait[waiting - 1][0], end = wait[waiting - 1][1], first;
        waiting--;
        if (begin == end) continue;
        FSI__TRY(fsi__order_cut_piece(s, begin, end, count));
        if (count[0] + count[1] == 0) continue;
        first = count[0] > count[1]; /* the larger one waits below the smaller one */
        wait[waiting + first][0] = begin + count[0];
        wait[waiting + first][1] = begin + count[0] + count[1];
        wait[waiting + 1 - first][0] = begin;
        wait[waiting + 1 - first][1] = begin + count[0];
        waiting += 2;
    }
    return FSI_OK;
}

/* Rank 0 is dissected. The fill of rank 1 does not depend on the order of rank 0, so its order is found by minimum
   degree. */
static fsi_status fsi__order_dissect_ranks(fsi__order_nd *s)
{
    const fsi__order_net *g = s->g;
    int i, k, count = 0;
    for (i = 0; i < g->n; i++) {
        s->local[i] = s->cut.heap[0].place[i] = s->cut.heap[1].place[i] = -1;
        if (g->rank[i] == 0) s->list[count++] = i;
    }
    if (count < g->n) {
        FSI__TRY(fsi__order_by_degree(s->c, g, 1, s->turn, &k, &s->degrees));
        for (i = count; i < g->n; i++) s->list[i] = s->turn[i];
    }
    return fsi__order_dissect_pieces(s, count);
}

/* Nothing is left of the ordering before but its memory. */
static void fsi__order_renew_nd(fsi__order_nd *s)
{
    fsi__arena level[FSI__ORDER_LEVELS + 1];
    const fsi__arena memory = s->memory, piece = s->piece_memory, degrees = s->degrees;
    int k;
    for (k = 0; k <= FSI__ORDER_LEVELS; k++) level[k] = s->level[k].memory;
    memset(s, 0, sizeof *s);
    for (k = 0; k <= FSI__ORDER_LEVELS; k++) s->level[k].memory = level[k];
    s->memory = memory;
    s->piece_memory = piece;
    s->degrees = degrees;
}

static fsi_status fsi__order_dissect(fsi_context *c, const fsi__order_net *g, int *order, void **state)
{
    fsi__arena measure = { NULL, 0, 0 };
    fsi__order_nd *s = (fsi__order_nd *)*state;
    if (s) fsi__order_renew_nd(s);
    else *state = s = (fsi__order_nd *)fsi__alloc(c, 1, sizeof *s);
    if (!s) return fsi__order_no_memory(c, g->n);
    s->c = c;
    s->g = g;
    s->list = order;
    fsi__order_nd_layout(s, &measure);
    if (!fsi__order_reserve_zeros(c, &s->memory, measure.used)) return fsi__order_no_memory(c, g->n);
    fsi__order_nd_layout(s, &s->memory);
    return fsi__order_dissect_ranks(s);
}

static void fsi__order_release(fsi_context *c, void *state)
{
    fsi__order_nd *s = (fsi__order_nd *)state;
    int k;
    if (!s) return;
    for (k = 0; k <= FSI__ORDER_LEVELS; k++) fsi__arena_free(c, &s->level[k].memory);
    fsi__arena_free(c, &s->piece_memory);
    fsi__arena_free(c, &s->degrees);
    fsi__arena_free(c, &s->memory);
    fsi__free(c, s, 1, sizeof *s);
}

FSI_API const fsi_ordering *fsi_dissection(void)
{
    static const fsi_ordering dissection = { FSI__ORDER_SMALL, fsi__order_dissect, fsi__order_release };
    return &dissection;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
