/* raster.h - the renderer's z-buffer: which triangle, ball or line each sample of a view sees.
   SPDX-License-Identifier: MIT

   Sorts what a scene holds into bands of rows, clips it, and fills depth, normal and colour of each sample; of liquid
   also the first depth and the thickness. Private to render.h. */
#ifndef FSI_KIT_RASTER_H
#define FSI_KIT_RASTER_H

#include "scene.h"

static ex__vec ex__to_view(const ex__view *v, ex__vec p)
{
    ex__vec d = ex__sub(p, v->eye);
    return ex__v(ex__dot3(d, v->right), ex__dot3(d, v->up), ex__dot3(d, v->forward));
}

static float ex__key_of(const ex__view *v, float z) { return v->parallel ? -z : 1 / z; }
static float ex__depth_of(const ex__view *v, float key) { return v->parallel ? -key : 1 / key; }

/* From the eye (parallel: from the eye's plane) to depth 1 at screen position (x, y); and the point at depth z. */
static ex__vec ex__ray(const ex__view *v, float x, float y)
{
    float k = 1 / v->scale;
    return ex__madd(ex__madd(v->forward, (x - v->cx) * k, v->right), (v->cy - y) * k, v->up);
}
static ex__vec ex__point(const ex__view *v, float x, float y, float z)
{
    float k = (v->parallel ? 1 : z) / v->scale;
    return ex__madd(ex__madd(ex__madd(v->eye, z, v->forward), (x - v->cx) * k, v->right), (v->cy - y) * k, v->up);
}

/* Screen x, y and key of a point in view space. */
static void ex__project(const ex__view *v, ex__vec c, float *out)
{
    float k = v->parallel ? v->scale : v->scale / c.z;
    out[0] = v->cx + k * c.x;
    out[1] = v->cy - k * c.y;
    out[2] = ex__key_of(v, c.z);
}

/* A triangle on the screen: inside it, share b1 of corner 1 and b2 of corner 2 are linear in x and y. */
typedef struct ex__face {
    const ex__tri *tri;
    float x[3], y[3], key[3];
    float b1x, b1y, b2x, b2y, key_lo, key_hi;
    int front; /* counter-clockwise as seen */
} ex__face;

static int ex__face_begin(ex__face *f)
{
    float x1 = f->x[1] - f->x[0], y1 = f->y[1] - f->y[0], x2 = f->x[2] - f->x[0], y2 = f->y[2] - f->y[0];
    float area = x1 * y2 - x2 * y1;
    if (!(area > 1e-9f || area < -1e-9f)) return 0;
    f->front = area < 0;
    f->b1x = y2 / area;
    f->b1y = -x2 / area;
    f->b2x = -y1 / area;
    f->b2y = x1 / area;
    f->key_lo = f->key[0] < f->key[1] ? f->key[0] : f->key[1];
    f->key_hi = f->key[0] < f->key[1] ? f->key[1] : f->key[0];
    if (f->key[2] < f->key_lo) f->key_lo = f->key[2];
    if (f->key[2] > f->key_hi) f->key_hi = f->key[2];
    return 1;
}

/* 0 when a corner is too close to the eye (ex__clip has put a cut copy in the list) or the triangle is seen edge-on. */
static int ex__face_of(const ex__view *v, const ex__tri *t, ex__face *f)
{
    float s[3];
    int k;
    f->tri = t;
    for (k = 0; k < 3; k++) {
        ex__vec c = ex__to_view(v, t->p[k]);
        if (!(c.z >= v->front)) return 0;
        ex__project(v, c, s);
        f->x[k] = s[0];
        f->y[k] = s[1];
        f->key[k] = s[2];
    }
    return ex__face_begin(f);
}

/* Smallest integer >= v, held between 0 and limit. */
static int ex__ceil(float v, int limit)
{
    int i;
    if (!(v > 0)) return 0;
    if (v >= (float)limit) return limit;
    i = (int)v;
    return i + ((float)i < v);
}

typedef void ex__span_fn(ex__pass *p, const ex__face *f, int y, int x0, int x1);

/* Calls span for the samples of rows row0..row1-1 whose centres lie inside. An edge is cut by a row at an x that is
   computed from its upper to its lower end, alike for both triangles that share it: no gap, no overlap. */
static void ex__fill(ex__pass *p, const ex__face *f, int row0, int row1, ex__span_fn *span)
{
    float top[3][2], end[3], slope[3], lo = f->y[0], hi = f->y[0];
    int e, y, y1;
    for (e = 0; e < 3; e++) {
        int a = e, b = (e + 1) % 3, swap = f->y[a] > f->y[b] || (!(f->y[a] < f->y[b]) && f->x[a] > f->x[b]);
        if (swap) { a = b; b = e; }
        top[e][0] = f->x[a];
        top[e][1] = f->y[a];
        end[e] = f->y[b];
        slope[e] = f->y[b] > f->y[a] ? (f->x[b] - f->x[a]) / (f->y[b] - f->y[a]) : 0;
        if (f->y[e] < lo) lo = f->y[e];
        if (f->y[e] > hi) hi = f->y[e];
    }
    y = ex__ceil(lo - 0.5f, p->view.height);
    y1 = ex__ceil(hi - 0.5f, p->view.height);
    if (y < row0) y = row0;
    if (y1 > row1) y1 = row1;
    for (; y < y1; y++) {
        float yc = (float)y + 0.5f, left = 1e30f, right = -1e30f;
        int x0, x1;
        for (e = 0; e < 3; e++) {
            float x;
            if (!(top[e][1] <= yc && yc < end[e])) continue;
            x = top[e][0] + (yc - top[e][1]) * slope[e];
            if (x < left) left = x;
            if (x > right) right = x;
        }
        x0 = ex__ceil(left - 0.5f, p->view.width);
        x1 = ex__ceil(right - 0.5f, p->view.width);
        if (x0 < x1) span(p, f, y, x0, x1);
    }
}

static uint32_t ex__lerp_color(const uint32_t *c, float q0, float q1, float q2)
{
    uint32_t out = c[0] & 0xff000000u;
    int k;
    if (c[0] == c[1] && c[0] == c[2]) return c[0];
    for (k = 0; k < 24; k += 8) {
        float v = q0 * (float)(c[0] >> k & 255u) + q1 * (float)(c[1] >> k & 255u) + q2 * (float)(c[2] >> k & 255u);
        out |= (uint32_t)(ex__clamp(v, 0, 255) + 0.5f) << k;
    }
    return out;
}

static float ex__key_at(const ex__face *f, float b1, float b2)
{
    return ex__clamp(f->key[0] + b1 * (f->key[1] - f->key[0]) + b2 * (f->key[2] - f->key[0]), f->key_lo, f->key_hi);
}

/* Shares of the corners at a sample, corrected for perspective. */
static void ex__shares(const ex__pass *p, const ex__face *f, float b1, float b2, float key, float *q)
{
    q[1] = ex__clamp(p->view.parallel ? b1 : b1 * f->key[1] / key, 0, 1);
    q[2] = ex__clamp(p->view.parallel ? b2 : b2 * f->key[2] / key, 0, 1 - q[1]);
    q[0] = 1 - q[1] - q[2];
}

static ex__vec ex__lerp_normal(const ex__vec *n, const float *q)
{
    return ex__madd(ex__madd(ex__scale(n[0], q[0]), q[1], n[1]), q[2], n[2]);
}

static void ex__solid_span(ex__pass *p, const ex__face *f, int y, int x0, int x1)
{
    float dx = (float)x0 + 0.5f - f->x[0], dy = (float)y + 0.5f - f->y[0], q[3];
    float b1 = dx * f->b1x + dy * f->b1y, b2 = dx * f->b2x + dy * f->b2y;
    size_t i = (size_t)y * (size_t)p->view.width + (size_t)x0;
    for (; x0 < x1; x0++, i++, b1 += f->b1x, b2 += f->b2x) {
        float key = ex__key_at(f, b1, b2);
        if (key <= p->key[i]) continue;
        p->key[i] = key;
        if (!p->normal) continue;
        ex__shares(p, f, b1, b2, key, q);
        p->normal[i] = ex__lerp_normal(f->tri->n, q);
        p->color[i] = ex__lerp_color(f->tri->c, q[0], q[1], q[2]);
    }
}

/* Thickness of the liquid before the solid at z_s: each front face adds z_s - z, each back face takes it away again, in
   any order; a surface that is open at the back ends at the solid. */
static void ex__water_span(ex__pass *p, const ex__face *f, int y, int x0, int x1)
{
    float dx = (float)x0 + 0.5f - f->x[0], dy = (float)y + 0.5f - f->y[0], q[3];
    float b1 = dx * f->b1x + dy * f->b1y, b2 = dx * f->b2x + dy * f->b2y;
    size_t i = (size_t)y * (size_t)p->view.width + (size_t)x0;
    for (; x0 < x1; x0++, i++, b1 += f->b1x, b2 += f->b2x) {
        float depth, key = ex__key_at(f, b1, b2);
        if (key <= p->key[i]) continue;
        depth = ex__depth_of(&p->view, p->key[i]) - ex__depth_of(&p->view, key);
        p->water_depth[i] += f->front ? depth : -depth;
        if (!f->front || key <= p->water_key[i]) continue;
        p->water_key[i] = key;
        if (!p->normal) continue;
        ex__shares(p, f, b1, b2, key, q);
        p->water_normal[i] = ex__lerp_normal(f->tri->n, q);
    }
}

/* Screen rectangle of a ball, a little too large; 0 when it is behind the eye. */
static int ex__ball_bounds(const ex__view *v, const ex__ball *b, ex__vec *center, int *rect)
{
    ex__vec c = ex__to_view(v, b->p);
    float s[3], r = b->r * v->scale;
    if (!(c.z - b->r > v->front)) return 0;
    if (!v->parallel) r = r / (c.z - b->r) * sqrtf(1 + (c.x * c.x + c.y * c.y) / (c.z * c.z));
    ex__project(v, c, s);
    *center = c;
    rect[0] = ex__ceil(s[0] - r - 1.5f, v->width);
    rect[1] = ex__ceil(s[0] + r + 0.5f, v->width);
    rect[2] = ex__ceil(s[1] - r - 1.5f, v->height);
    rect[3] = ex__ceil(s[1] + r + 0.5f, v->height);
    return 1;
}

/* The ray o + t d meets the ball |x - c| = r first at t = t_c - sqrt((r^2 - e^2) / d^2), where t_c is the closest
   approach to c and e the vector from c to there. */
static void ex__ball_row(ex__pass *p, const ex__ball *b, ex__vec c, int y, int x0, int x1)
{
    const ex__view *v = &p->view;
    float k = 1 / v->scale, sy = (v->cy - (float)y - 0.5f) * k, rr = b->r * b->r, closest = ex__key_of(v, c.z - b->r);
    size_t i = (size_t)y * (size_t)v->width + (size_t)x0;
    for (; x0 < x1; x0++, i++) {
        float sx = ((float)x0 + 0.5f - v->cx) * k, dd, t, h, key;
        ex__vec d = v->parallel ? ex__v(0, 0, 1) : ex__v(sx, sy, 1);
        ex__vec e = v->parallel ? ex__v(sx - c.x, sy - c.y, -c.z) : ex__v(-c.x, -c.y, -c.z); /* o - c */
        if (closest <= p->key[i]) continue;
        dd = ex__dot3(d, d);
        t = -ex__dot3(d, e) / dd;
        e = ex__madd(e, t, d);
        h = rr - ex__dot3(e, e);
        if (h <= 0) continue;
        h = sqrtf(h / dd);
        key = ex__key_of(v, t - h);
        if (key <= p->key[i]) continue;
        p->key[i] = key;
        if (!p->normal) continue;
        e = ex__madd(e, -h, d);
        p->normal[i] = ex__madd(ex__madd(ex__scale(v->right, e.x), e.y, v->up), e.z, v->forward);
        p->color[i] = b->c;
    }
}

/* A line as a rectangle on the screen, one pixel wider than the line on each side and a little closer to the eye. */
static int ex__stroke_corners(const ex__view *v, const ex__stroke *k, float *corner)
{
    float a[3], b[3], dx, dy, l, half = k->width / 2 + 1;
    ex__vec p = ex__to_view(v, k->p[0]), q = ex__to_view(v, k->p[1]);
    int i;
    if (p.z < v->front && q.z < v->front) return 0;
    if (p.z < v->front) p = ex__mix(p, q, (v->front - p.z) / (q.z - p.z));
    if (q.z < v->front) q = ex__mix(q, p, (v->front - q.z) / (p.z - q.z));
    ex__project(v, p, a);
    ex__project(v, q, b);
    dx = b[0] - a[0];
    dy = b[1] - a[1];
    l = sqrtf(dx * dx + dy * dy);
    dx = l > 0 ? dx * half / l : half;
    dy = l > 0 ? dy * half / l : 0;
    for (i = 0; i < 4; i++) {
        const float *e = i < 2 ? a : b;
        float across = i == 0 || i == 3 ? 1.0f : -1.0f;
        corner[3 * i] = e[0] - across * dy;
        corner[3 * i + 1] = e[1] + across * dx;
        corner[3 * i + 2] = e[2] + 2e-3f * fabsf(e[2]);
    }
    return 1;
}

/* Blends a line over the picture: as far as it covers the pixel, times the share of the pixel's samples that show
   nothing solid before it, times what the liquid before it lets through. */
static void ex__stroke_span(ex__pass *p, const ex__face *f, int y, int x0, int x1)
{
    ex_scene *s = p->scene;
    const ex__pass *c = &s->camera;
    float half = f->tri->n[0].y, q[3];
    for (; x0 < x1; x0++) {
        float dx = (float)x0 + 0.5f - f->x[0], dy = (float)y + 0.5f - f->y[0], key, cover;
        ex__vec *o = s->shown + (size_t)y * (size_t)s->width + (size_t)x0;
        int a, b, n = s->samples, open = 0;
        size_t i = (size_t)(y * n) * (size_t)c->view.width + (size_t)(x0 * n);
        q[1] = dx * f->b1x + dy * f->b1y;
        q[2] = dx * f->b2x + dy * f->b2y;
        q[0] = 1 - q[1] - q[2];
        key = q[0] * f->key[0] + q[1] * f->key[1] + q[2] * f->key[2];
        cover = half + 0.5f - (half + 1) * fabsf(q[0] * f->tri->n[0].x + q[1] * f->tri->n[1].x + q[2] * f->tri->n[2].x);
        for (b = 0; b < n; b++)
            for (a = 0; a < n; a++) open += key > c->key[i + (size_t)b * (size_t)c->view.width + (size_t)a];
        cover = ex__clamp(cover, 0, 1) * (float)open / (float)(n * n);
        if (s->count[EX__WATER] > 0 && c->water_key[i] > key) cover *= 0.3f;
        *o = ex__mix(*o, ex__linear_rgb(s, f->tri->c[0]), cover);
    }
}

static void ex__draw_stroke(ex__pass *p, const ex__stroke *k, int row0, int row1)
{
    static const int corners[2][3] = { { 0, 1, 2 }, { 0, 2, 3 } };
    float c[12];
    ex__tri tri;
    ex__face f;
    int t, i;
    memset(&tri, 0, sizeof tri);
    tri.c[0] = k->c;
    f.tri = &tri;
    if (!ex__stroke_corners(&p->view, k, c)) return;
    for (t = 0; t < 2; t++) {
        for (i = 0; i < 3; i++) {
            int j = corners[t][i];
            f.x[i] = c[3 * j];
            f.y[i] = c[3 * j + 1];
            f.key[i] = c[3 * j + 2];
            tri.n[i] = ex__v(j == 0 || j == 3 ? 1.0f : -1.0f, k->width / 2, 0);
        }
        if (ex__face_begin(&f)) ex__fill(p, &f, row0, row1, ex__stroke_span);
    }
}

static void ex__stroke_band(void *arg, int band)
{
    ex__pass *p = (ex__pass *)arg;
    int j, row0 = band * EX__BAND, row1 = row0 + EX__BAND < p->view.height ? row0 + EX__BAND : p->view.height;
    for (j = p->first[EX__STROKES][band]; j < p->first[EX__STROKES][band + 1]; j++)
        ex__draw_stroke(p, &p->scene->strokes[p->item[EX__STROKES][j]], row0, row1);
}

/* Rows lo..hi-1 that an item may touch; none when lo >= hi. */
static void ex__rows_of(const ex_scene *s, const ex__view *v, ex__kind kind, int i, int *lo, int *hi)
{
    float c[12], top = 1e30f, bottom = -1e30f;
    int k, n = 0, rect[4];
    ex__vec center;
    ex__face f;
    *lo = *hi = 0;
    if (kind == EX__BALLS) {
        if (ex__ball_bounds(v, &s->balls[i], &center, rect) && rect[0] < rect[1]) { *lo = rect[2]; *hi = rect[3]; }
        return;
    }
    if (kind == EX__STROKES) n = ex__stroke_corners(v, &s->strokes[i], c) ? 4 : 0;
    else if (ex__face_of(v, (kind == EX__WATER ? s->water : s->tris) + i, &f))
        for (n = 0; n < 3; n++) c[3 * n + 1] = f.y[n];
    for (k = 0; k < n; k++) {
        if (c[3 * k + 1] < top) top = c[3 * k + 1];
        if (c[3 * k + 1] > bottom) bottom = c[3 * k + 1];
    }
    if (n == 0) return;
    *lo = ex__ceil(top - 0.5f, v->height);
    *hi = ex__ceil(bottom - 0.5f, v->height);
}

/* A task of ex__bin: rows of a chunk of items. */
typedef struct ex__job {
    ex__pass *pass;
    ex__kind kind;
    int count;
} ex__job;

#define EX__CHUNK 2048

static void ex__rows_task(void *arg, int chunk)
{
    ex__job *job = (ex__job *)arg;
    ex__pass *p = job->pass;
    int i, end = (chunk + 1) * EX__CHUNK < job->count ? (chunk + 1) * EX__CHUNK : job->count;
    for (i = chunk * EX__CHUNK; i < end; i++)
        ex__rows_of(p->scene, &p->view, job->kind, i, &p->rows[2 * i], &p->rows[2 * i + 1]);
}

static void ex__run(ex_scene *s, int count, void (*task)(void *arg, int index), void *arg)
{
    int i;
    if (s->context->parallel_for) s->context->parallel_for(s->context->user, count, task, arg);
    else
        for (i = 0; i < count; i++) task(arg, i);
}

static int *ex__ints(int *old, int *capacity, int need)
{
    if (need <= *capacity) return old;
    *capacity = need + need / 2;
    return (int *)ex_alloc(old, (size_t)*capacity, sizeof(int));
}

static int ex__bands(const ex__pass *p) { return (p->view.height + EX__BAND - 1) / EX__BAND; }

static int ex__first_band(const ex__pass *p, int i) { return p->rows[2 * i] / EX__BAND; }
static int ex__last_band(const ex__pass *p, int i)
{
    return p->rows[2 * i] < p->rows[2 * i + 1] ? (p->rows[2 * i + 1] - 1) / EX__BAND : -1;
}

/* Sorts the items of a kind by band: item[kind][first[kind][b]] ... are those of band b, in the order they were
   drawn. */
static void ex__bin(ex__pass *p, ex__kind kind)
{
    ex_scene *s = p->scene;
    int i, b, *first, count = s->count[kind], bands = ex__bands(p);
    ex__job job;
    job.pass = p;
    job.kind = kind;
    job.count = count;
    p->rows = ex__ints(p->rows, &p->row_capacity, 2 * count);
    first = p->first[kind] = ex__ints(p->first[kind], &p->first_capacity[kind], bands + 2);
    ex__run(s, (count + EX__CHUNK - 1) / EX__CHUNK, ex__rows_task, &job);
    for (b = 0; b < bands + 2; b++) first[b] = 0;
    for (i = 0; i < count; i++)
        for (b = ex__first_band(p, i); b <= ex__last_band(p, i); b++) first[b + 2]++;
    for (b = 1; b < bands + 2; b++) first[b] += first[b - 1];
    p->item[kind] = ex__ints(p->item[kind], &p->item_capacity[kind], first[bands + 1]);
    for (i = 0; i < count; i++)
        for (b = ex__first_band(p, i); b <= ex__last_band(p, i); b++) p->item[kind][first[b + 1]++] = i;
}

/* Empty samples: the ground, or nothing, at the depth of emptiness. */
static void ex__clear_row(const ex_scene *s, ex__pass *p, int y)
{
    const ex__view *v = &p->view;
    float nothing = ex__key_of(v, v->back), above = ex__dot3(v->eye, s->up_dir) - (float)s->ground_height;
    size_t i = (size_t)y * (size_t)v->width;
    int x, ground = p->normal && s->ground && !s->flat && above > 0;
    for (x = 0; x < v->width; x++, i++) {
        float fall = 0, key = nothing;
        if (ground) fall = -ex__dot3(ex__ray(v, (float)x + 0.5f, (float)y + 0.5f), s->up_dir);
        if (fall > 0 && !v->parallel && fall / above > nothing) key = fall / above;
        p->key[i] = key;
        if (!p->normal) continue;
        p->color[i] = key > nothing ? (uint32_t)EX__GROUND << 24 : (uint32_t)EX__SKY << 24;
        p->normal[i] = s->up_dir;
    }
}

static void ex__solid_band(void *arg, int band)
{
    ex__pass *p = (ex__pass *)arg;
    ex_scene *s = p->scene;
    int j, y, row0 = band * EX__BAND, row1 = row0 + EX__BAND < p->view.height ? row0 + EX__BAND : p->view.height;
    for (y = row0; y < row1; y++) ex__clear_row(s, p, y);
    for (j = p->first[EX__TRIS][band]; j < p->first[EX__TRIS][band + 1]; j++) {
        const ex__tri *t = &s->tris[p->item[EX__TRIS][j]];
        ex__face f;
        if (!ex__face_of(&p->view, t, &f) || (t->c[0] >> 24 == EX__WALL && (!f.front || !p->normal))) continue;
        ex__fill(p, &f, row0, row1, ex__solid_span);
    }
    for (j = p->first[EX__BALLS][band]; j < p->first[EX__BALLS][band + 1]; j++) {
        const ex__ball *b = &s->balls[p->item[EX__BALLS][j]];
        ex__vec c;
        int rect[4];
        if (!ex__ball_bounds(&p->view, b, &c, rect)) continue;
        if (rect[2] < row0) rect[2] = row0;
        for (y = rect[2]; y < rect[3] && y < row1; y++) ex__ball_row(p, b, c, y, rect[0], rect[1]);
    }
}

static void ex__water_band(void *arg, int band)
{
    ex__pass *p = (ex__pass *)arg;
    int j, row0 = band * EX__BAND, row1 = row0 + EX__BAND < p->view.height ? row0 + EX__BAND : p->view.height;
    size_t i, end = (size_t)row1 * (size_t)p->view.width;
    float nothing = ex__key_of(&p->view, p->view.back);
    for (i = (size_t)row0 * (size_t)p->view.width; i < end; i++) {
        p->water_key[i] = nothing;
        p->water_depth[i] = 0;
    }
    for (j = p->first[EX__WATER][band]; j < p->first[EX__WATER][band + 1]; j++) {
        ex__face f;
        if (!ex__face_of(&p->view, &p->scene->water[p->item[EX__WATER][j]], &f)) continue;
        ex__fill(p, &f, row0, row1, ex__water_span);
    }
}

/* Cuts the triangles that pass through the front plane of the camera, and appends what is left of them. */
static void ex__clip(ex_scene *s, ex__kind kind)
{
    int i, k, count = s->count[kind];
    for (i = 0; i < count; i++) {
        ex__tri in = (kind == EX__WATER ? s->water : s->tris)[i], out;
        ex__vec p[4], n[4];
        float z[3], front = s->camera.view.front;
        int m = 0, behind = 0;
        for (k = 0; k < 3; k++) behind += (z[k] = ex__to_view(&s->camera.view, in.p[k]).z) < front;
        if (behind == 0 || behind == 3) continue;
        for (k = 0; k < 3; k++) {
            int l = (k + 1) % 3;
            float t = (front * 1.0001f - z[k]) / (z[l] - z[k]);
            if (z[k] >= front) { p[m] = in.p[k]; n[m++] = in.n[k]; }
            if ((z[k] >= front) == (z[l] >= front)) continue;
            p[m] = ex__mix(in.p[k], in.p[l], t);
            n[m++] = ex__mix(in.n[k], in.n[l], t);
        }
        for (k = 2; k < m; k++) {
            ex__tri **list = kind == EX__WATER ? &s->water : &s->tris;
            out = in;
            out.p[0] = p[0]; out.p[1] = p[k - 1]; out.p[2] = p[k];
            out.n[0] = n[0]; out.n[1] = n[k - 1]; out.n[2] = n[k];
            *list = (ex__tri *)ex__room(s, kind, *list, 1, sizeof out);
            (*list)[s->count[kind]++] = out;
        }
    }
}

static void ex__reserve(ex__pass *p, int lit, int water)
{
    size_t n = (size_t)p->view.width * (size_t)p->view.height;
    if (n > p->capacity) {
        p->capacity = n;
        p->key = (float *)ex_alloc(p->key, n, sizeof(float));
        if (lit) p->normal = (ex__vec *)ex_alloc(p->normal, n, sizeof(ex__vec));
        if (lit) p->color = (uint32_t *)ex_alloc(p->color, n, sizeof(uint32_t));
    }
    if (water && n > p->water_capacity) {
        p->water_capacity = n;
        p->water_key = (float *)ex_alloc(p->water_key, n, sizeof(float));
        p->water_depth = (float *)ex_alloc(p->water_depth, n, sizeof(float));
        if (lit) p->water_normal = (ex__vec *)ex_alloc(p->water_normal, n, sizeof(ex__vec));
    }
}

/* Draws what is solid and what is liquid into the buffers of a pass. */
static void ex__draw_pass(ex__pass *p)
{
    ex_scene *s = p->scene;
    ex__reserve(p, p == &s->camera, s->count[EX__WATER] > 0);
    ex__bin(p, EX__TRIS);
    ex__bin(p, EX__BALLS);
    ex__run(s, ex__bands(p), ex__solid_band, p);
    if (s->count[EX__WATER] == 0) return;
    ex__bin(p, EX__WATER);
    ex__run(s, ex__bands(p), ex__water_band, p);
}

#endif /* FSI_KIT_RASTER_H */
