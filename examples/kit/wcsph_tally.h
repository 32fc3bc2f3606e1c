/* wcsph_tally.h - what the examples of fsi_wcsph.h check after every step: particles nearer to a surface than they may be, inside a
   solid, or lost; and how the steps went.
   SPDX-License-Identifier: MIT

   Include it after kit.h. It measures by itself: every triangle (2D: segment) near a particle, one by one, in double, in the
   frame of the body; inside is what a ray leaves through an odd number of faces. Nothing of what the simulator found is used, but the
   number of particles that it calls pinched. Of a sheet that is a layer of samples these are taken, one by one, as balls of radius
   dx/2; of a solid whose surface is such a layer fsi_wcsph_distance is asked.

      ex_wcsph_tally tally = { 0 };
      ex_wcsph_watch(&app, &tally, mesh, body, id);   // after each fsi_wcsph_add_...: mesh and body as they stood then; body NULL: static
      ex_wcsph_step(&app, &tally, s, dt);             // makes a step, checks it, moves the bodies on (fsi_body_accept)
      ex_wcsph_figures(&app, &tally, s);              // adds to the last line, before ex_end
      ex_wcsph_tally_end(&tally); */
#ifndef FSI_KIT_WCSPH_TALLY_H
#define FSI_KIT_WCSPH_TALLY_H

#include "kit.h"
#include "../../fsi_wcsph.h"

#define EX_WATCH_CELLS 40 /* along the longest side of a mesh */

/* A mesh that particles must keep away from, in the frame of its body, and cells that list the faces within reach of them. */
typedef struct ex_watch {
    const fsi_mesh *mesh;
    fsi_body *body;
    int id;                 /* of the obstacle; samples: ask the simulator */
    int samples, owned;     /* owned: body is the first watch's with it */
    int corners, faces;     /* corners 1: centres of samples */
    double *x;              /* 3 * corners * faces: corners of faces */
    double ball;            /* radius of samples, else 0 */
    double lo[3], cell;
    int n[3];
    int *first, *list;      /* faces of cell c: list[first[c]] .. list[first[c+1]-1] */
    unsigned char *solid;   /* of a cell without faces: it lies in the solid */
} ex_watch;

/* Sums over all steps. Start from zeros. */
typedef struct ex_wcsph_tally {
    ex_watch *watch;
    int watch_count;
    int world;              /* set it when a world of fsi_rigid.h moves the bodies: body->pose is then where they are */
    long long substeps, calls;
    long long too_near, inside, lost, pinched, displaced;
    double least;           /* smallest distance from a surface less what it must be, of particles that are not pinched, over dx */
    double density_max, density_inner;
    double momentum_error, exchange_error;
    double fluid, boundary, response, other;     /* seconds */
    double wall, cpu;                            /* in fsi_wcsph_step */
    double fastest, correction, slowest;         /* [m/s]; largest correction over dx; seconds of the slowest substep (mean of its call) */
    int swept, most;
} ex_wcsph_tally;

static double ex__inner(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* Squared distance of p from the segment a b. */
static double ex__segment_distance2(const double *p, const double *a, const double *b)
{
    double e[3], d[3], t, ee;
    int k;
    for (k = 0; k < 3; k++) { e[k] = b[k] - a[k]; d[k] = p[k] - a[k]; }
    ee = ex__inner(e, e);
    t = ee > 0 ? fmin(1, fmax(0, ex__inner(d, e) / ee)) : 0;
    for (k = 0; k < 3; k++) d[k] -= t * e[k];
    return ex__inner(d, d);
}

/* Squared distance of p from the triangle: over its face where p projects into it, else over its nearest edge. */
static double ex__triangle_distance2(const double *p, const double *a, const double *b, const double *c)
{
    const double *q[3];
    double e[3], f[3], n[3], d[3], nn, s;
    int k, within = 1;
    q[0] = a; q[1] = b; q[2] = c;
    for (k = 0; k < 3; k++) { e[k] = b[k] - a[k]; f[k] = c[k] - a[k]; d[k] = p[k] - a[k]; }
    n[0] = e[1] * f[2] - e[2] * f[1]; n[1] = e[2] * f[0] - e[0] * f[2]; n[2] = e[0] * f[1] - e[1] * f[0];
    nn = ex__inner(n, n);
    for (k = 0; k < 3 && within; k++) {
        const double *u = q[k], *v = q[(k + 1) % 3];
        double g[3], h[3];
        int i;
        for (i = 0; i < 3; i++) { g[i] = v[i] - u[i]; h[i] = p[i] - u[i]; }
        within = n[0] * (g[1] * h[2] - g[2] * h[1]) + n[1] * (g[2] * h[0] - g[0] * h[2]) + n[2] * (g[0] * h[1] - g[1] * h[0]) >= 0;
    }
    s = ex__inner(d, n);
    if (within && nn > 0) return s * s / nn;
    return fmin(ex__segment_distance2(p, a, b), fmin(ex__segment_distance2(p, b, c), ex__segment_distance2(p, c, a)));
}

/* Twice the signed area of (a, b, p) in the plane of axes u and v, the same bits but for the sign for a and b exchanged. */
static double ex__turn(const double *a, const double *b, const double *p, int u, int v)
{
    const int swap = a[u] > b[u] || (a[u] >= b[u] && a[v] > b[v]);
    const double *s = swap ? b : a, *t = swap ? a : b;
    const double area = (t[u] - s[u]) * (p[v] - s[v]) - (t[v] - s[v]) * (p[u] - s[u]);
    return swap ? -area : area;
}

/* Whether the ray from p along +x leaves through the face: an edge seen end on counts for one of its two faces. */
static int ex__ray_leaves(const double *p, const double *x, int corners)
{
    double low = x[1], high = x[1], side, n[3], e[3], f[3];
    int k, inside = 0;
    for (k = 1; k < corners; k++) { low = fmin(low, x[3 * k + 1]); high = fmax(high, x[3 * k + 1]); }
    if (p[1] < low || p[1] > high) return 0;
    if (corners == 2) {
        if ((x[1] > p[1]) == (x[4] > p[1])) return 0;
        side = ex__turn(x, x + 3, p, 0, 1);
        return x[4] > x[1] ? side > 0 : side < 0;
    }
    for (k = 0; k < 3; k++) { /* is p in the triangle, seen along x? count edges above it in z */
        const double *a = x + 3 * k, *b = x + 3 * ((k + 1) % 3);
        if ((a[1] > p[1]) == (b[1] > p[1])) continue;
        side = ex__turn(a, b, p, 1, 2);
        inside ^= b[1] > a[1] ? side < 0 : side > 0;
    }
    if (!inside) return 0;
    for (k = 0; k < 3; k++) { e[k] = x[3 + k] - x[k]; f[k] = x[6 + k] - x[k]; }
    n[0] = e[1] * f[2] - e[2] * f[1]; n[1] = e[2] * f[0] - e[0] * f[2]; n[2] = e[0] * f[1] - e[1] * f[0];
    side = (p[0] - x[0]) * n[0] + (p[1] - x[1]) * n[1] + (p[2] - x[2]) * n[2];
    return n[0] > 0 ? side < 0 : side > 0;
}

/* The cells that lie within `reach` of a face's box. */
static void ex__watch_cells(const ex_watch *w, int face, double reach, int lo[3], int hi[3])
{
    const double *x = w->x + 3 * (size_t)w->corners * (size_t)face;
    int a, k;
    for (a = 0; a < 3; a++) {
        double low = x[a], high = x[a];
        for (k = 1; k < w->corners; k++) { low = fmin(low, x[3 * k + a]); high = fmax(high, x[3 * k + a]); }
        lo[a] = (int)fmax(0, floor((low - reach - w->lo[a]) / w->cell));
        hi[a] = (int)fmin(w->n[a] - 1, floor((high + reach - w->lo[a]) / w->cell));
    }
}

/* Whether p is inside the closed surface: a ray leaves it an odd number of times. */
static int ex__watch_leaves(const ex_watch *w, const double *p)
{
    int f, odd = 0;
    for (f = 0; f < w->faces; f++) odd ^= ex__ray_leaves(p, w->x + 3 * (size_t)w->corners * (size_t)f, w->corners);
    return odd;
}

/* Cells without faces lie in the solid or out of it; one is like that before it, when that is empty too. */
static void ex__watch_solid(ex_watch *w)
{
    const int cells = w->n[0] * w->n[1] * w->n[2];
    int c, empty = 0;
    w->solid = (unsigned char *)ex_alloc(w->solid, (size_t)cells, 1);
    for (c = 0; c < cells; c++) {
        const int before = empty && c % w->n[0] > 0;
        double p[3];
        empty = w->first[c] == w->first[c + 1];
        w->solid[c] = 0;
        if (!empty || w->mesh->kind != FSI_MESH_CLOSED) continue;
        p[0] = w->lo[0] + (c % w->n[0] + 0.5) * w->cell;
        p[1] = w->lo[1] + (c / w->n[0] % w->n[1] + 0.5) * w->cell;
        p[2] = w->mesh->corners == 2 ? 0 : w->lo[2] + (c / w->n[0] / w->n[1] + 0.5) * w->cell;
        w->solid[c] = (unsigned char)(before ? w->solid[c - 1] : ex__watch_leaves(w, p) ^ w->mesh->container);
    }
}

/* Corners as they stand (or `count` samples, points), and which cells are within reach of which face. */
static void ex__watch_build(ex_watch *w, double reach, const fsi_vec3 *points, int count)
{
    const fsi_mesh *m = w->mesh;
    double hi[3] = { 0, 0, 0 }, longest = 0;
    int f, k, a, pass, i[3], l[3], h[3], cells;
    w->corners = points ? 1 : m->corners;
    w->faces = points ? count : m->face_count;
    w->x = (double *)ex_alloc(w->x, (size_t)w->faces * (size_t)w->corners, 3 * sizeof *w->x);
    for (k = 0; k < w->faces * w->corners; k++) {
        fsi_vec3 p = points ? points[k] : m->vertices[m->faces[k]];
        double *x = w->x + 3 * (size_t)k;
        if (w->body) p = fsi_pose_local(w->body->pose, p);
        x[0] = (double)p.x; x[1] = (double)p.y; x[2] = m->corners == 2 ? 0 : (double)p.z;
        for (a = 0; a < 3; a++) {
            w->lo[a] = k == 0 ? x[a] : fmin(w->lo[a], x[a]);
            hi[a] = k == 0 ? x[a] : fmax(hi[a], x[a]);
        }
    }
    for (a = 0; a < 3; a++) longest = fmax(longest, hi[a] - w->lo[a]);
    w->cell = fmax(longest / EX_WATCH_CELLS, reach);
    for (a = 0; a < 3; a++) {
        w->lo[a] -= 2 * reach;
        w->n[a] = (int)((hi[a] + 2 * reach - w->lo[a]) / w->cell) + 1;
    }
    cells = w->n[0] * w->n[1] * w->n[2];
    w->first = (int *)ex_alloc(w->first, (size_t)cells + 2, sizeof *w->first);
    memset(w->first, 0, ((size_t)cells + 2) * sizeof *w->first);
    for (pass = 0; pass < 2; pass++) { /* count, then write: first[c + 1] runs from the beginning of c to its end */
        for (f = 0; f < w->faces; f++) {
            ex__watch_cells(w, f, reach, l, h);
            for (i[2] = l[2]; i[2] <= h[2]; i[2]++) for (i[1] = l[1]; i[1] <= h[1]; i[1]++) for (i[0] = l[0]; i[0] <= h[0]; i[0]++) {
                const int c = (i[2] * w->n[1] + i[1]) * w->n[0] + i[0];
                if (pass == 0) w->first[c + 2]++;
                else w->list[w->first[c + 1]++] = f;
            }
        }
        if (pass == 1) break;
        for (k = 0; k < cells; k++) w->first[k + 2] += w->first[k + 1];
        w->list = (int *)ex_alloc(w->list, (size_t)w->first[cells + 1], sizeof *w->list);
    }
    ex__watch_solid(w);
}

/* Watches an obstacle of the simulator: `mesh` and `body` (NULL: static) as they stood when it was added; now is the time. */
EX_FN void ex_wcsph_watch(ex_app *app, ex_wcsph_tally *t, const fsi_wcsph *s, const fsi_mesh *mesh, fsi_body *body, int id)
{
    ex_watch *w;
    const fsi_vec3 *points = NULL;
    int k, count = 0;
    (void)app;
    t->watch = (ex_watch *)ex_alloc(t->watch, (size_t)t->watch_count + 1, sizeof *t->watch);
    w = &t->watch[t->watch_count++];
    memset(w, 0, sizeof *w);
    w->mesh = mesh;
    w->body = body;
    w->id = id;
    w->owned = body != NULL;
    for (k = 0; k + 1 < t->watch_count; k++) if (t->watch[k].body == body) w->owned = 0;
    w->samples = fsi_wcsph_obstacle_samples(s, id, &count, &points, NULL) == FSI_OK && count > 0;
    if (!w->samples || mesh->kind != FSI_MESH_TWO_SIDED) count = 0;
    if (count > 0) w->ball = (double)s->radius;
    w->samples &= count == 0;
    ex__watch_build(w, (double)s->radius + w->ball, count > 0 ? points : NULL, count);
}

EX_FN void ex_wcsph_tally_end(ex_wcsph_tally *t)
{
    int k;
    for (k = 0; k < t->watch_count; k++) {
        free(t->watch[k].x);
        free(t->watch[k].first);
        free(t->watch[k].list);
        free(t->watch[k].solid);
    }
    free(t->watch);
    t->watch = NULL;
    t->watch_count = 0;
}

/* Where a watched obstacle is after a step that was not accepted yet. */
static fsi_pose ex__watch_pose(const ex_wcsph_tally *t, const ex_watch *w)
{
    fsi_pose still;
    still.position = fsi_v3(0, 0, 0);
    still.orientation = fsi_quat_identity();
    if (!w->body) return still;
    return t->world ? w->body->pose : w->body->end;
}

/* Distance of p (frame of the body) from the faces near it, at most `reach`; *inside: whether it is in the solid. */
static double ex__watch_distance(const ex_watch *w, const double *p, double reach, int *inside)
{
    const size_t stride = 3 * (size_t)w->corners;
    int a, k, i[3];
    double best = reach * reach;
    *inside = w->mesh->kind == FSI_MESH_CLOSED && w->mesh->container;
    for (a = 0; a < 3; a++) {
        double c = floor((p[a] - w->lo[a]) / w->cell);
        if (!(c >= 0 && c < w->n[a])) return reach;
        i[a] = (int)c;
    }
    a = (i[2] * w->n[1] + i[1]) * w->n[0] + i[0];
    for (k = w->first[a]; k < w->first[a + 1]; k++) {
        const double *x = w->x + stride * (size_t)w->list[k];
        if (w->corners == 1) best = fmin(best, (p[0] - x[0]) * (p[0] - x[0]) + (p[1] - x[1]) * (p[1] - x[1]) + (p[2] - x[2]) * (p[2] - x[2]));
        else best = fmin(best, w->corners == 2 ? ex__segment_distance2(p, x, x + 3) : ex__triangle_distance2(p, x, x + 3, x + 6));
    }
    if (w->first[a] == w->first[a + 1]) *inside = w->solid[a];
    else if (w->mesh->kind == FSI_MESH_CLOSED) *inside = ex__watch_leaves(w, p) ^ w->mesh->container;
    return sqrt(best) - w->ball;
}

/* What the tasks look at, a chunk of particles each, and what they find. */
typedef struct ex__found { long long too_near, inside, lost; double least; } ex__found;
typedef struct ex__check {
    const ex_wcsph_tally *tally;
    const fsi_wcsph *s;
    fsi_pose *pose;
    ex__found *found;
} ex__check;

#define EX_CHECK_CHUNK 2048

static double ex__wall_distance(const fsi_wcsph *s, const double *p)
{
    const fsi_box3 b = s->desc.domain;
    const double lo[3] = { (double)b.lo.x, (double)b.lo.y, (double)b.lo.z }, hi[3] = { (double)b.hi.x, (double)b.hi.y, (double)b.hi.z };
    double d = (double)FSI_REAL_MAX;
    int a;
    if (lo[0] > hi[0]) return d;
    for (a = 0; a < s->desc.dim; a++) d = fmin(d, fmin(p[a] - lo[a], hi[a] - p[a]));
    return d;
}

static void ex__check_task(void *arg, int chunk)
{
    const ex__check *c = (const ex__check *)arg;
    const fsi_wcsph *s = c->s;
    const double r = (double)s->radius, dx = (double)s->desc.spacing, tolerance = sizeof(fsi_real) == 4 ? 1e-3 : 1e-5;
    int i, k, first = chunk * EX_CHECK_CHUNK, last = first + EX_CHECK_CHUNK < s->count ? first + EX_CHECK_CHUNK : s->count;
    for (i = first; i < last; i++) {
        const fsi_vec3 x = s->position[i];
        double p[3] = { (double)x.x, (double)x.y, (double)x.z }, gap, wall = ex__wall_distance(s, p);
        int inside = 0, in;
        if (!fsi_v3_is_finite(x) || !fsi_v3_is_finite(s->velocity[i]) || !(wall >= 0)) { c->found[chunk].lost++; continue; }
        gap = wall - r;
        for (k = 0; k < c->tally->watch_count; k++) {
            const ex_watch *w = &c->tally->watch[k];
            const fsi_vec3 local = fsi_pose_local(c->pose[k], x);
            const double must = s->desc.offset_compensation && w->body && w->body->mode == FSI_BODY_COUPLED ? 0 : r;
            if (w->samples) continue;
            p[0] = (double)local.x; p[1] = (double)local.y; p[2] = w->mesh->corners == 2 ? 0 : (double)local.z;
            gap = fmin(gap, ex__watch_distance(w, p, r + w->ball, &in) - must);
            inside |= in;
        }
        c->found[chunk].inside += inside;
        c->found[chunk].too_near += !(gap >= -tolerance * dx);
        if (gap >= -tolerance * dx || inside) c->found[chunk].least = fmin(c->found[chunk].least, gap / dx);
    }
}

/* Looks at every particle. */
static void ex__wcsph_check(ex_app *app, ex_wcsph_tally *t, const fsi_wcsph *s)
{
    const int chunks = (s->count + EX_CHECK_CHUNK - 1) / EX_CHECK_CHUNK;
    long long near_now = 0, sampled = 0;
    ex__check c;
    int k, i;
    c.tally = t;
    c.s = s;
    c.pose = (fsi_pose *)ex_alloc(NULL, (size_t)t->watch_count, sizeof *c.pose);
    for (k = 0; k < t->watch_count; k++) {
        ex_watch *w = &t->watch[k];
        c.pose[k] = ex__watch_pose(t, w);
        if (!w->body && w->mesh->moving) ex__watch_build(w, (double)s->radius, NULL, 0);
        sampled += w->samples;
    }
    c.found = (ex__found *)ex_alloc(NULL, (size_t)chunks, sizeof *c.found);
    memset(c.found, 0, (size_t)chunks * sizeof *c.found);
    for (k = 0; k < chunks; k++) c.found[k].least = 1e30;
    ex_pool_run(&app->pool, chunks, ex__check_task, &c);
    for (k = 0; k < chunks; k++) {
        near_now += c.found[k].too_near;
        t->inside += c.found[k].inside;
        t->lost += c.found[k].lost;
        t->least = fmin(t->least, c.found[k].least);
    }
    for (i = 0; i < s->count && sampled > 0; i++) {
        int where;
        const double gap = (double)fsi_wcsph_distance(s, s->position[i], &where) - (double)s->radius;
        near_now += !(gap >= -(sizeof(fsi_real) == 4 ? 1e-3 : 1e-5) * (double)s->desc.spacing);
    }
    t->pinched += s->stats.pinched;
    if (near_now > s->stats.pinched) t->too_near += near_now - s->stats.pinched;
    free(c.found);
    free(c.pose);
}

static void ex__wcsph_times(ex_wcsph_tally *t, const fsi_wcsph *s, double wall)
{
    const fsi_wcsph_stats *q = &s->stats;
    t->fluid += q->seconds_neighbors + q->seconds_pairs + q->seconds_integrate;
    t->boundary += q->seconds_contacts + q->seconds_response + q->seconds_correction;
    t->response += q->seconds_response;
    t->other += q->seconds_other;
    t->wall += wall;
    if (q->substeps > 0) t->slowest = fmax(t->slowest, wall / q->substeps);
}

/* Makes a step of dt seconds, checks it, and moves the bodies that are watched to where it left them. */
EX_FN void ex_wcsph_step(ex_app *app, ex_wcsph_tally *t, fsi_wcsph *s, double dt)
{
    const fsi_wcsph_stats *q = &s->stats;
    const double wall = ex_wall_seconds(), cpu = ex_cpu_seconds();
    const int before = s->count;
    int k;
    if (t->calls == 0) t->least = 1e30;
    ex_check(app, fsi_wcsph_step(s, (fsi_real)dt));
    t->cpu += ex_cpu_seconds() - cpu;
    ex__wcsph_times(t, s, ex_wall_seconds() - wall);
    ex__wcsph_check(app, t, s);
    t->lost += before + q->emitted - q->removed - s->count;
    t->displaced += q->displaced;
    t->swept += q->swept;
    t->density_max = fmax(t->density_max, q->density_ratio_max);
    t->density_inner = fmax(t->density_inner, q->density_ratio_inner);
    t->momentum_error = fmax(t->momentum_error, q->momentum_error);
    t->exchange_error = fmax(t->exchange_error, q->exchange_error);
    t->fastest = fmax(t->fastest, q->max_speed);
    t->correction = fmax(t->correction, q->max_correction / (double)s->desc.spacing);
    t->substeps += q->substeps;
    t->calls++;
    if (s->count > t->most) t->most = s->count;
    for (k = 0; k < t->watch_count && !t->world; k++) {
        fsi_body *body = t->watch[k].body;
        if (!t->watch[k].owned) continue;
        if (body->mode == FSI_BODY_COUPLED) fsi_body_accept(body);
        else body->pose = body->end;
    }
    app->steps += q->substeps;
    app->sim_seconds = s->time;
}

/* Closes the last line but for what an example adds. near= counts particles that are nearer to a surface than r_F and not pinched,
   t_step= is seconds a substep by the wall clock, cpu_step= of all processors; boundary_share= the boundaries' seconds over the liquid's;
   held_mb= what the liquid has allocated [MiB]. */
EX_FN void ex_wcsph_figures(ex_app *app, const ex_wcsph_tally *t, const fsi_wcsph *s)
{
    const double steps = t->substeps > 0 ? (double)t->substeps : 1, all = t->fluid + t->boundary + t->other;
    app->hash = fsi_wcsph_hash(s);
    ex_figure(app, "particles", "%.0f", t->most);
    ex_figure(app, "inside", "%.0f", (double)t->inside + fsi_wcsph_count_inside(s, NULL));
    ex_figure(app, "lost", "%.0f", (double)t->lost);
    ex_figure(app, "near", "%.0f", (double)t->too_near);
    ex_figure(app, "pinched", "%.0f", (double)t->pinched);
    if (t->displaced > 0) ex_figure(app, "displaced", "%.0f", (double)t->displaced);
    if (t->least < 1e29) ex_figure(app, "min_gap", "%.1e", t->least);
    ex_figure(app, "momentum_error", "%.1e", t->momentum_error);
    ex_figure(app, "density_ratio_max", "%.3f", t->density_max);
    ex_figure(app, "density_ratio_inner", "%.3f", t->density_inner);
    ex_figure(app, "boundary_share", "%.3f", t->fluid > 0 ? t->boundary / t->fluid : 0);
    ex_figure(app, "response_share", "%.4f", all > 0 ? t->response / all : 0);
    ex_figure(app, "max_speed", "%.2f", t->fastest);
    ex_figure(app, "t_step", "%.4f", t->wall / steps);
    ex_figure(app, "cpu_step", "%.4f", t->cpu / steps);
    ex_figure(app, "held_mb", "%.1f", (double)s->stats.bytes / 1048576);
}

/* Adds the counts of another simulator's tally, so that both are in one line of figures. */
EX_FN void ex_wcsph_tally_add(ex_wcsph_tally *t, const ex_wcsph_tally *u)
{
    t->substeps += u->substeps; t->calls += u->calls;
    t->too_near += u->too_near; t->inside += u->inside; t->lost += u->lost; t->pinched += u->pinched; t->displaced += u->displaced;
    t->fluid += u->fluid; t->boundary += u->boundary; t->response += u->response; t->other += u->other;
    t->wall += u->wall; t->cpu += u->cpu;
    t->least = fmin(t->least, u->least);
    t->density_max = fmax(t->density_max, u->density_max);
    t->density_inner = fmax(t->density_inner, u->density_inner);
    t->momentum_error = fmax(t->momentum_error, u->momentum_error);
    t->exchange_error = fmax(t->exchange_error, u->exchange_error);
    t->fastest = fmax(t->fastest, u->fastest);
    t->correction = fmax(t->correction, u->correction);
    t->slowest = fmax(t->slowest, u->slowest);
    t->swept += u->swept;
    t->most += u->most;
}

/* ---- a tank with bodies of a world -------------------------------------------------------------------------------- */

#define EX_AFLOAT_MOST 16

/* A tank of water in which bodies of a world of fsi_rigid.h are; the liquid advances the world in its own steps. */
typedef struct ex_afloat {
    fsi_wcsph *s;
    fsi_rigid *world;
    int count;                      /* of bodies */
    fsi_mesh *mesh[EX_AFLOAT_MOST];
    fsi_body *body[EX_AFLOAT_MOST];
    fsi_pose made[EX_AFLOAT_MOST];  /* of the body when its mesh was made */
    double length, width, level;    /* of the tank, of its water at first [m] */
    ex_wcsph_tally tally;
} ex_afloat;

/* The tank without water and bodies; then ex_afloat_add for each, then ex_afloat_fill. */
EX_FN void ex_afloat_begin(ex_app *app, ex_afloat *w, double length, double width, double level, double spacing)
{
    fsi_wcsph_desc d = fsi_wcsph_default_desc();
    fsi_rigid_desc r = fsi_rigid_default_desc();
    memset(w, 0, sizeof *w);
    w->tally.world = 1;
    w->length = length; w->width = width; w->level = level;
    d.context = r.context = &app->context;
    d.spacing = (fsi_real)spacing;
    d.depth = (fsi_real)(level + 0.1);
    d.domain.lo = fsi_v3(0, 0, 0);
    d.domain.hi = fsi_v3((fsi_real)length, (fsi_real)width, 4);
    r.domain = d.domain;
    ex_check(app, fsi_wcsph_create(&w->s, &d));
    ex_check(app, fsi_rigid_create(&w->world, &r));
}

EX_FN void ex_afloat_add(ex_app *app, ex_afloat *w, fsi_rigid_shape form, fsi_pose pose)
{
    fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
    const int k = w->count++;
    int body, id;
    b.shapes = &form;
    b.shape_count = 1;
    b.pose = pose;
    ex_check(app, fsi_rigid_add_body(w->world, &b, &body));
    ex_check(app, fsi_rigid_tessellate(w->world, body, -1, 0, &w->mesh[k]));
    w->body[k] = fsi_rigid_body(w->world, body);
    w->made[k] = w->body[k]->pose;
    ex_check(app, fsi_wcsph_add_body(w->s, w->mesh[k], w->body[k], &id));
    ex_wcsph_watch(app, &w->tally, w->s, w->mesh[k], w->body[k], id);
}

EX_FN void ex_afloat_fill(ex_app *app, ex_afloat *w)
{
    fsi_box3 pool = w->s->desc.domain;
    pool.hi.z = (fsi_real)w->level;
    ex_check(app, fsi_wcsph_set_world(w->s, w->world));
    ex_check(app, fsi_wcsph_fill_box(w->s, pool, fsi_v3(0, 0, 0), NULL));
    ex_check(app, fsi_wcsph_settle_density(w->s, pool.hi));
}

/* The level that the volumes ask for of the water and of what of the bodies, `volume` each, is below it; those shares, as
   share_below counts them. */
EX_FN double ex_afloat_level(const ex_afloat *w, double volume, double (*share_below)(const fsi_body *, double), double *share)
{
    const double dx = (double)w->s->desc.spacing;
    double level = w->level;
    int k, pass;
    for (pass = 0; pass < 8; pass++) {
        double all = w->s->count * dx * dx * dx;
        for (k = 0; k < w->count; k++) all += volume * (share[k] = share_below(w->body[k], level));
        level = all / (w->length * w->width);
    }
    return level;
}

EX_FN void ex_afloat_end(ex_afloat *w)
{
    int k;
    ex_wcsph_tally_end(&w->tally);
    fsi_wcsph_destroy(w->s);
    fsi_rigid_destroy(w->world);
    for (k = 0; k < w->count; k++) fsi_mesh_destroy(w->mesh[k]);
}

/* ---- pictures ---------------------------------------------------------------------------------------------------- */

/* Draws the liquid: its surface, or with `balls` its particles, coloured by speed (fast: the brightest [m/s]). */
EX_FN void ex_wcsph_draw_liquid(ex_app *app, ex_scene *scene, fsi_surface *skin, const fsi_wcsph *s, int balls, double fast)
{
    if (balls) {
        uint32_t *rgb = (uint32_t *)ex_alloc(NULL, (size_t)s->count, sizeof *rgb);
        ex_speed_colors(s->velocity, s->count, fast, rgb);
        ex_draw_spheres(scene, s->position, s->count, 0.5 * (double)s->desc.spacing, rgb, 0);
        free(rgb);
        return;
    }
    ex_draw_particles(app, scene, skin, s->position, s->count);
}

#endif /* FSI_KIT_WCSPH_TALLY_H */
