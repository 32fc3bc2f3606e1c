/* render.h - from samples to the picture: shadows, light of the sky, the look of liquids, tone.
   SPDX-License-Identifier: MIT

   ex_render runs the passes in the order that scene.h lists, each row a task of its own; ex_save_scene also saves. */
#ifndef FSI_KIT_RENDER_H
#define FSI_KIT_RENDER_H

#include "files.h"
#include "raster.h"

/* ---- >>tiles -------------------------------------------------------------------------------------------------- */

/* Index in the camera's buffers of the sample that stands for pixel (x, y). */
static size_t ex__sample_of(const ex_scene *s, int x, int y)
{
    int n = s->samples;
    return (size_t)(y * n + n / 2) * (size_t)s->camera.view.width + (size_t)(x * n + n / 2);
}

/* Most pixels of a picture show ground with nothing on it or above it, which all of the sun and of the sky reaches. To
   find them with four look-ups, the tiles of EX__TILE x EX__TILE pixels that show something solid or liquid are counted
   in a summed-area table (Crow 1984): busy[c + r columns] is the number of such tiles in the columns before c and the
   rows before r. */
#define EX__TILE 8
static int ex__tiles(int pixels) { return (pixels + EX__TILE - 1) / EX__TILE; }

static int ex__is_busy(const ex_scene *s, const ex__pass *p, int x, int y)
{
    const float nothing = ex__key_of(&p->view, p->view.back);
    size_t i = (size_t)y * (size_t)p->view.width + (size_t)x;
    if (p->color) return p->color[ex__sample_of(s, x, y)] >> 24 >= EX__SOLID;
    return p->key[i] > nothing || (s->count[EX__WATER] > 0 && p->water_key[i] > nothing);
}

/* A task: marks the tiles of a row. */
static void ex__tile_row(void *arg, int row)
{
    ex__pass *p = (ex__pass *)arg;
    const ex_scene *s = p->scene;
    const int width = p->color ? s->width : p->view.width, height = p->color ? s->height : p->view.height,
              columns = ex__tiles(width) + 1;
    int *count = p->busy + (row + 1) * columns + 1, x, y;
    for (x = 0; x < columns - 1; x++) count[x] = 0;
    for (y = row * EX__TILE; y < (row + 1) * EX__TILE && y < height; y++)
        for (x = 0; x < width; x++)
            if (!count[x / EX__TILE]) count[x / EX__TILE] = ex__is_busy(s, p, x, y);
}

/* Fills the table of a pass; width and height in pixels of the picture, or of the sun's view. */
static void ex__count_tiles(ex__pass *p, int width, int height)
{
    const int columns = ex__tiles(width) + 1, rows = ex__tiles(height) + 1;
    int c, r;
    p->busy = ex__ints(p->busy, &p->busy_capacity, columns * rows);
    for (c = 0; c < columns; c++) p->busy[c] = 0;
    for (r = 0; r < rows; r++) p->busy[r * columns] = 0;
    ex__run(p->scene, rows - 1, ex__tile_row, p);
    for (r = 1; r < rows; r++)
        for (c = 1; c < columns; c++) {
            int *at = p->busy + r * columns + c;
            *at += at[-1] + at[-columns] - at[-columns - 1];
        }
}

/* Whether the square of half width `reach` about (x, y) shows nothing solid or liquid. */
static int ex__is_bare(const ex__pass *p, int width, int height, float x, float y, float reach)
{
    const int columns = ex__tiles(width) + 1, x0 = ex__ceil(x - reach, width) / EX__TILE,
              y0 = ex__ceil(y - reach, height) / EX__TILE, x1 = ex__tiles(ex__ceil(x + reach + 1, width)),
              y1 = ex__tiles(ex__ceil(y + reach + 1, height));
    const int *low = p->busy + y0 * columns, *high = p->busy + y1 * columns;
    return x0 >= x1 || y0 >= y1 || high[x1] - high[x0] - low[x1] + low[x0] == 0;
}

/* ---- >>shading ------------------------------------------------------------------------------------------------ */

static ex__vec ex__sample_point(const ex_scene *s, size_t i, float key)
{
    const ex__view *v = &s->camera.view;
    size_t w = (size_t)v->width;
    return ex__point(v, (float)(i % w) + 0.5f, (float)(i / w) + 0.5f, ex__depth_of(v, key));
}

/* Unit normal of a sample, turned towards the eye. */
static ex__vec ex__facing_normal(const ex_scene *s, ex__vec n, ex__vec p)
{
    ex__vec to_eye = s->camera.view.parallel ? ex__scale(s->camera.view.forward, -1) : ex__sub(s->camera.view.eye, p);
    n = ex__unit(n);
    return ex__dot3(n, to_eye) < 0 ? ex__scale(n, -1) : n;
}

/* How far the solid at (x, y) of the sun's view lies above depth z, 0 or less when nothing is above; *water: length of
   liquid there, when z is below its surface. */
static float ex__sun_gap(const ex_scene *s, float x, float y, float z, float *water)
{
    const ex__pass *sun = &s->sunlight;
    size_t i;
    *water = 0;
    if (!(x >= 0 && y >= 0 && x < (float)sun->view.width && y < (float)sun->view.height)) return 0;
    i = (size_t)y * (size_t)sun->view.width + (size_t)x;
    if (s->count[EX__WATER] > 0 && -sun->water_key[i] < z && sun->water_depth[i] > 0) *water = sun->water_depth[i];
    return z + sun->key[i];
}

/* The widest half shadow, in pixels of the sun's view. */
static float ex__widest(const ex_scene *s) { return 0.025f * (float)s->sunlight.view.width; }

/* Whether nothing is between p and the sun, or close to the ray between them. */
static int ex__is_sunny(const ex_scene *s, ex__vec p)
{
    const ex__view *v = &s->sunlight.view;
    float q[3];
    ex__project(v, ex__to_view(v, p), q);
    return ex__is_bare(&s->sunlight, v->width, v->height, q[0], q[1], ex__widest(s) + 3);
}

/* Share of the sun that reaches p: percentage closer soft shadows. The mean gap to what is found above p gives the
   width of the half shadow, sun_angle * gap, over which the depths are then compared. Both times the depth of the
   receiving plane is followed (sx, sy: its slope, known from n), so that a wide filter does not shade the plane itself.
   *water: mean length of liquid that the light has crossed. */
static float ex__sun_share(const ex_scene *s, ex__vec p, ex__vec n, int turn, float *water)
{
    const ex__view *v = &s->sunlight.view;
    float texel = 1 / v->scale, q[3], widest = ex__widest(s), width = 3, slope, sx, sy, gap, length, gaps = 0;
    ex__vec c = ex__to_view(v, ex__madd(p, 1.5f * texel, n));
    int k, found = 0, lit = 0;
    *water = 0;
    ex__project(v, c, q);
    slope = ex__dot3(n, v->forward);
    if (slope > -0.05f) slope = -0.05f;
    sx = ex__clamp(-ex__dot3(n, v->right) / slope, -4, 4) * texel;
    sy = ex__clamp(ex__dot3(n, v->up) / slope, -4, 4) * texel;
    c.z -= 1.5f * texel;
    for (k = 0; k < 8; k++) {
        float x = widest * s->disc[turn][k][0], y = widest * s->disc[turn][k][1];
        gap = ex__sun_gap(s, q[0] + x, q[1] + y, c.z + sx * x + sy * y, &length);
        if (gap <= 0) continue;
        gaps += gap;
        found++;
    }
    if (found) width = ex__clamp(gaps / (float)found * (float)s->sun_angle * v->scale, 1, widest);
    for (k = 0; k < 8; k++) {
        float x = width * s->disc[turn][k][0], y = width * s->disc[turn][k][1];
        lit += ex__sun_gap(s, q[0] + x, q[1] + y, c.z + sx * x + sy * y, &length) <= 0;
        *water += length / 8;
    }
    return (float)lit / 8;
}

/* The distance within which solids hide the sky of a point at depth z: in the scene, and in pixels. */
static float ex__sky_reach(const ex_scene *s) { return 0.1f * s->radius; }
static float ex__sky_pixels(const ex_scene *s, float z)
{
    const ex__view *v = &s->camera.view;
    return ex__clamp(v->scale / (float)s->samples * ex__sky_reach(s) / (v->parallel ? 1 : z), 3, 90);
}

/* Share of the sky that p sees: how far the solid around it rises above its tangent plane. */
static float ex__sky_share(const ex_scene *s, ex__vec p, ex__vec n, float pixels, int x, int y, int turn)
{
    float reach = ex__sky_reach(s), hidden = 0;
    int k;
    for (k = 0; k < 8; k++) {
        int qx = x + (int)(pixels * s->disc[turn][k][0]), qy = y + (int)(pixels * s->disc[turn][k][1]);
        size_t i;
        ex__vec d;
        float l2, rise;
        if (qx < 0 || qy < 0 || qx >= s->width || qy >= s->height) continue;
        i = ex__sample_of(s, qx, qy);
        d = ex__sub(ex__sample_point(s, i, s->camera.key[i]), p);
        l2 = ex__dot3(d, d) + 1e-12f;
        rise = ex__dot3(d, n) / sqrtf(l2) - 0.08f;
        if (rise > 0) hidden += rise / (1 + 4 * l2 / (reach * reach));
    }
    return ex__clamp(1 - 2.2f * hidden / 8, 0, 1);
}

static void ex__seen_row(void *arg, int y)
{
    ex_scene *s = (ex_scene *)arg;
    int x;
    for (x = 0; x < s->width; x++) {
        size_t i = ex__sample_of(s, x, y);
        ex__seen *o = &s->seen[(size_t)y * (size_t)s->width + (size_t)x];
        uint32_t kind = s->camera.color[i] >> 24;
        int turn = (x & 3) * 4 + (y & 3), bare;
        float pixels;
        ex__vec n;
        o->ambient = -1;
        o->sun = 1;
        o->water = 0;
        o->open = 0;
        if (kind == EX__SKY) continue;
        o->p = ex__sample_point(s, i, s->camera.key[i]);
        pixels = ex__sky_pixels(s, ex__depth_of(&s->camera.view, s->camera.key[i]));
        bare = kind == EX__GROUND && ex__is_bare(&s->camera, s->width, s->height, (float)x, (float)y, pixels);
        o->open = bare && ex__is_sunny(s, o->p);
        n = ex__facing_normal(s, s->camera.normal[i], o->p);
        o->ambient = bare ? 1 : ex__sky_share(s, o->p, n, pixels, x, y, turn);
        if (!o->open) o->sun = ex__sun_share(s, o->p, n, turn, &o->water);
    }
}

/* Whether the 4 x 4 pixels around (x, y) are all open: their corners are, and regions that are not open are wider. */
static int ex__all_open(const ex_scene *s, int x, int y)
{
    const ex__seen *o = s->seen + (size_t)y * (size_t)s->width + (size_t)x;
    const size_t down = (size_t)s->width;
    if (x < 2 || y < 2 || x + 1 >= s->width || y + 1 >= s->height) return 0;
    return o[0].open && (o - 2 * down)[-2].open && (o - 2 * down)[1].open && o[down - 2].open && o[down + 1].open;
}

/* Mean of what the 4 x 4 pixels around (x, y) see, of those that lie in the tangent plane of p. Every such square holds
   each of the 16 turns of the sampling pattern once, so their noise cancels. */
static ex__seen ex__seen_at(const ex_scene *s, int x, int y, ex__vec p, ex__vec n)
{
    ex__seen sum;
    float weight = 0, pixel = (float)s->samples / s->camera.view.scale, slack;
    int dx, dy;
    sum.p = p;
    sum.sun = sum.ambient = 1;
    sum.water = 0;
    sum.open = ex__all_open(s, x, y);
    if (sum.open) return sum;
    sum.sun = sum.ambient = 0;
    slack = 2.5f * pixel * (s->camera.view.parallel ? 1 : ex__to_view(&s->camera.view, p).z);
    for (dy = -2; dy < 2; dy++)
        for (dx = -2; dx < 2; dx++) {
            const ex__seen *o;
            float d;
            if (x + dx < 0 || y + dy < 0 || x + dx >= s->width || y + dy >= s->height) continue;
            o = &s->seen[(size_t)(y + dy) * (size_t)s->width + (size_t)(x + dx)];
            if (o->ambient < 0) continue;
            d = ex__dot3(n, ex__sub(o->p, p));
            if (d > slack || d < -slack) continue;
            sum.sun += o->sun;
            sum.ambient += o->ambient;
            sum.water += o->water;
            weight += 1;
        }
    if (weight > 0) weight = 1 / weight;
    else sum.sun = sum.ambient = weight = 1;
    sum.sun *= weight;
    sum.ambient *= weight;
    sum.water *= weight;
    return sum;
}

static ex__vec ex__backdrop(const ex_scene *s, int y)
{
    float t = s->flat ? 1 : ex__clamp(1.6f * ((float)y + 0.5f) / (float)s->height, 0, 1);
    return ex__mix(ex__linear_rgb(s, s->top_rgb), ex__linear_rgb(s, s->horizon_rgb), t);
}

/* How much of a pixel of the given width a grid line covers, in one direction. */
static float ex__grid_cover(float u, float grid, float pixel)
{
    float half = 0.008f * grid, d = fabsf(u / grid - floorf(u / grid + 0.5f)) * grid;
    return ex__clamp((half + 0.5f * pixel - d) / pixel, 0, 1) * ex__clamp(2 * half / pixel, 0, 1);
}

static ex__vec ex__ground_rgb(const ex_scene *s, ex__vec p)
{
    ex__vec d = ex__sub(p, s->camera.view.eye), color = ex__linear_rgb(s, s->ground_rgb);
    float pixel, cover, grid = (float)s->grid;
    if (grid <= 0) return color;
    pixel = (float)s->samples / s->camera.view.scale * ex__dot3(d, s->camera.view.forward);
    pixel *= 0.4f + 0.6f * sqrtf(ex__dot3(d, d)) / (fabsf(ex__dot3(d, s->up_dir)) + 1e-6f);
    cover =
        ex__grid_cover(ex__dot3(p, s->side_dir), grid, pixel) + ex__grid_cover(ex__dot3(p, s->ahead_dir), grid, pixel);
    return ex__scale(color, 1 - 0.22f * ex__clamp(cover, 0, 1));
}

static ex__vec ex__absorbed(const ex_scene *s, float depth)
{
    return ex__v(expf(-s->absorb_rgb.x * depth), expf(-s->absorb_rgb.y * depth), expf(-s->absorb_rgb.z * depth));
}

static float ex__pow32(float x)
{
    int k;
    for (k = 0; k < 5; k++) x *= x;
    return x;
}

/* Light from p to the eye: albedo * (sky + bounce + sun) and a soft highlight; the ground fades into the backdrop. */
static ex__vec ex__shade_sample(const ex_scene *s, size_t i, int x, int y)
{
    uint32_t c = s->camera.color[i], kind = c >> 24;
    ex__vec p, n, light, albedo, view, sun;
    ex__seen seen;
    float cosine, up, far_off;
    if (kind == EX__SKY) return ex__backdrop(s, y);
    if (s->flat) return ex__linear_rgb(s, c);
    p = ex__sample_point(s, i, s->camera.key[i]);
    far_off = kind == EX__GROUND ? sqrtf(ex__dot3(ex__sub(p, s->center), ex__sub(p, s->center))) / s->radius : 0;
    if (far_off > 5) return ex__backdrop(s, y);
    n = ex__facing_normal(s, s->camera.normal[i], p);
    seen = ex__seen_at(s, x, y, p, n);
    albedo = kind == EX__GROUND ? ex__ground_rgb(s, p) : ex__linear_rgb(s, c);
    view = s->camera.view.parallel ? s->camera.view.forward : ex__unit(ex__sub(p, s->camera.view.eye));
    up = 0.5f + 0.5f * ex__dot3(n, s->up_dir);
    cosine = ex__clamp(ex__dot3(n, s->sun_dir), 0, 1) * seen.sun;
    sun = ex__scale(ex__v(1.00f, 0.955f, 0.88f), 0.82f * cosine);
    if (seen.water > 0) { /* dimmed by the liquid and, soon after its surface, by what this has mirrored away */
        sun = ex__mul(sun, ex__absorbed(s, 0.5f * seen.water));
        sun = ex__scale(sun, 0.85f + 0.15f * expf(-30 * seen.water / s->radius));
    }
    light = ex__mix(ex__v(0.30f, 0.285f, 0.27f), ex__v(0.40f, 0.45f, 0.52f), up);
    light = ex__madd(sun, seen.ambient, light);
    light = ex__mul(albedo, light);
    if (kind != EX__GROUND) {
        float shine = ex__clamp(ex__dot3(n, ex__unit(ex__sub(s->sun_dir, view))), 0, 1);
        float rim = 1 - ex__clamp(-ex__dot3(n, view), 0, 1);
        light = ex__madd(light, 0.16f * ex__pow32(shine) * seen.sun, ex__v(1, 1, 1));
        light = ex__madd(light, 0.10f * rim * rim * rim * rim * seen.ambient, ex__v(0.8f, 0.9f, 1));
        return light;
    }
    far_off = ex__clamp((far_off - 1.2f) / 2.8f, 0, 1);
    return ex__mix(light, ex__backdrop(s, y), far_off * far_off * (3 - 2 * far_off));
}

/* The first sample of pixel (x, y); sample (a, b) follows at + b * view.width + a. */
static size_t ex__first_sample(const ex_scene *s, int x, int y)
{
    return (size_t)(y * s->samples) * (size_t)s->camera.view.width + (size_t)(x * s->samples);
}

/* Whether two samples show one smooth piece. */
static int ex__alike(const float *key, const ex__vec *normal, size_t i, size_t j)
{
    float d = ex__dot3(normal[i], normal[j]);
    if (fabsf(key[j] - key[i]) > 0.02f * fabsf(key[i]) || d < 0) return 0;
    return d * d >= 0.96f * ex__dot3(normal[i], normal[i]) * ex__dot3(normal[j], normal[j]);
}

static void ex__solid_row(void *arg, int y)
{
    ex_scene *s = (ex_scene *)arg;
    const ex__pass *p = &s->camera;
    int x, k, n = s->samples, alike;
    for (x = 0; x < s->width; x++) {
        size_t i = ex__first_sample(s, x, y), j;
        ex__vec sum = ex__v(0, 0, 0);
        for (k = 1, alike = 1; k < n * n && alike; k++) {
            j = i + (size_t)(k / n) * (size_t)p->view.width + (size_t)(k % n);
            alike = p->color[i] == p->color[j] && (p->color[i] >> 24 < EX__SOLID || ex__alike(p->key, p->normal, i, j));
        }
        if (alike) sum = ex__shade_sample(s, ex__sample_of(s, x, y), x, y);
        for (k = 0; k < n * n && !alike; k++) {
            j = i + (size_t)(k / n) * (size_t)p->view.width + (size_t)(k % n);
            sum = ex__madd(sum, 1, ex__shade_sample(s, j, x, y));
        }
        s->solid[(size_t)y * (size_t)s->width + (size_t)x] = alike ? sum : ex__scale(sum, 1 / (float)(n * n));
    }
}

/* What the liquid mirrors: a sky that is bright at the horizon and blue above, over a pale ground. */
static ex__vec ex__sky(const ex_scene *s, ex__vec d)
{
    float h = ex__dot3(d, s->up_dir), t;
    if (h < 0) return ex__mix(ex__v(0.86f, 0.90f, 0.94f), ex__v(0.55f, 0.58f, 0.60f), ex__clamp(-3 * h, 0, 1));
    t = sqrtf(h);
    return ex__mix(ex__v(0.98f, 0.99f, 1.0f), ex__v(0.20f, 0.42f, 0.75f), t);
}

/* Colour of the solid picture at (x, y) pixels, bilinear. */
static ex__vec ex__behind(const ex_scene *s, float x, float y)
{
    const ex__vec *c;
    int x0, y0;
    size_t w = (size_t)s->width;
    x = ex__clamp(x - 0.5f, 0, (float)s->width - 1.001f);
    y = ex__clamp(y - 0.5f, 0, (float)s->height - 1.001f);
    x0 = (int)x;
    y0 = (int)y;
    c = s->solid + (size_t)y0 * w + (size_t)x0;
    return ex__mix(ex__mix(c[0], c[1], x - (float)x0), ex__mix(c[w], c[w + 1], x - (float)x0), y - (float)y0);
}

/* Length of liquid between a sample of it and what is behind. */
static float ex__water_length(const ex_scene *s, size_t i)
{
    const ex__view *v = &s->camera.view;
    size_t w = (size_t)v->width;
    ex__vec ray = ex__ray(v, (float)(i % w) + 0.5f, (float)(i / w) + 0.5f);
    return ex__clamp(s->camera.water_depth[i], 0, v->back) * (v->parallel ? 1 : sqrtf(ex__dot3(ray, ray)));
}

/* Snell's law in the picture: follows the refracted ray from the sample p to what is behind, at most 0.15 scene radii
   far, and moves `at` there. The length to follow is looked up where the ray has led so far. Returns the length of
   liquid there; `at` stays where nothing but this liquid's background is found. */
static float ex__refract(const ex_scene *s, ex__vec p, ex__vec view, ex__vec n, float cosine, size_t i, float *at)
{
    const ex__pass *c = &s->camera;
    float eta = 0.75f, length = ex__water_length(s, i), per_pixel = 1 / (float)s->samples, q[3];
    ex__vec ray = ex__madd(ex__scale(view, eta), eta * cosine - sqrtf(1 - eta * eta * (1 - cosine * cosine)), n), e;
    int round;
    for (round = 0; round < 2; round++) {
        e = ex__to_view(&c->view, ex__madd(p, length < 0.15f * s->radius ? length : 0.15f * s->radius, ray));
        if (e.z < c->view.front) return length;
        ex__project(&c->view, e, q);
        if (!(q[0] >= 0 && q[1] >= 0 && q[0] < (float)c->view.width && q[1] < (float)c->view.height)) return length;
        i = ex__sample_of(s, (int)(q[0] * per_pixel), (int)(q[1] * per_pixel));
        if (c->water_depth[i] <= 0) return length;
        length = ex__water_length(s, i);
        at[0] = q[0] * per_pixel;
        at[1] = q[1] * per_pixel;
    }
    return length;
}

/* Fresnel's mixture (by Schlick, r0 = 0.03) of mirrored sky and refracted picture, the latter dimmed by the way through
   the liquid and filled with the light that this scatters; and the sun's glint. Grazing views of the picture are dimmed
   a little more, as they come from the dark side of a drop or crest. */
static ex__vec ex__shade_water(const ex_scene *s, size_t i, int x, int y)
{
    const ex__pass *w = &s->camera;
    float key = w->water_key[i], cosine, fresnel, at[2], length, glint, lit;
    ex__vec p = ex__sample_point(s, i, key), n = ex__facing_normal(s, w->water_normal[i], p);
    ex__vec view, mirrored, color, clear;
    view = w->view.parallel ? w->view.forward : ex__unit(ex__sub(p, w->view.eye));
    cosine = ex__clamp(-ex__dot3(n, view), 0.02f, 1);
    at[0] = (float)x + 0.5f;
    at[1] = (float)y + 0.5f;
    length = ex__refract(s, p, view, n, cosine, i, at);
    clear = ex__absorbed(s, length);
    color = ex__scale(ex__mul(ex__behind(s, at[0], at[1]), clear), 0.72f + 0.28f * sqrtf(cosine));
    lit = 0.62f + 0.38f * ex__dot3(n, s->sun_dir);
    color = ex__madd(color, lit, ex__mul(ex__linear_rgb(s, s->scatter_rgb), ex__sub(ex__v(1, 1, 1), clear)));
    fresnel = 1 - cosine;
    fresnel = 0.03f + 0.97f * fresnel * fresnel * fresnel * fresnel;
    mirrored = ex__madd(view, 2 * cosine, n);
    color = ex__mix(color, ex__sky(s, mirrored), fresnel);
    glint = ex__clamp(ex__dot3(mirrored, s->sun_dir), 0, 1);
    glint = ex__pow32(glint * glint * glint * glint);
    return ex__madd(color, 1.1f * glint, ex__v(1, 0.97f, 0.9f));
}

static void ex__water_row(void *arg, int y)
{
    ex_scene *s = (ex_scene *)arg;
    const ex__pass *p = &s->camera;
    float nothing = ex__key_of(&p->view, p->view.back);
    int x, k, n = s->samples, alike;
    for (x = 0; x < s->width; x++) {
        size_t i = ex__first_sample(s, x, y), pixel = (size_t)y * (size_t)s->width + (size_t)x, j;
        ex__vec sum = ex__v(0, 0, 0);
        for (k = 0, alike = 1; k < n * n && alike; k++) {
            j = i + (size_t)(k / n) * (size_t)p->view.width + (size_t)(k % n);
            alike = p->water_key[j] > nothing && ex__alike(p->water_key, p->water_normal, i, j);
        }
        if (alike) sum = ex__shade_water(s, ex__sample_of(s, x, y), x, y);
        for (k = 0; k < n * n && !alike; k++) {
            j = i + (size_t)(k / n) * (size_t)p->view.width + (size_t)(k % n);
            sum = ex__madd(sum, 1, p->water_key[j] > nothing ? ex__shade_water(s, j, x, y) : s->solid[pixel]);
        }
        s->wet[pixel] = alike ? sum : ex__scale(sum, 1 / (float)(n * n));
    }
}

/* Linear up to 0.75, then a shoulder that never quite reaches 1. */
static unsigned char ex__tone(const ex_scene *s, float x)
{
    if (x > 0.75f) x = 0.75f + 0.25f * (1 - expf((0.75f - x) * 4));
    return s->encode[(int)(ex__clamp(x, 0, 1) * 4095 + 0.5f)];
}

static void ex__tone_row(void *arg, int y)
{
    ex_scene *s = (ex_scene *)arg;
    const ex__vec *c = s->shown + (size_t)y * (size_t)s->width;
    unsigned char *o = s->image.rgb + 3 * (size_t)y * (size_t)s->width;
    int x;
    for (x = 0; x < s->width; x++) {
        o[3 * x] = ex__tone(s, c[x].x);
        o[3 * x + 1] = ex__tone(s, c[x].y);
        o[3 * x + 2] = ex__tone(s, c[x].z);
    }
}

/* ---- >>render ------------------------------------------------------------------------------------------------- */

static fsi_box3 ex__bounds(const ex_scene *s)
{
    fsi_box3 box = fsi_box3_empty();
    int i, k;
    for (i = 0; i < s->count[EX__TRIS] + s->count[EX__WATER]; i++) {
        const ex__tri *t = i < s->count[EX__TRIS] ? &s->tris[i] : &s->water[i - s->count[EX__TRIS]];
        for (k = 0; k < 3; k++) box = fsi_box3_grow(box, ex__widen(t->p[k]));
    }
    for (i = 0; i < s->count[EX__BALLS]; i++) box = fsi_box3_grow(box, ex__widen(s->balls[i].p));
    return box;
}

/* A view from eye in a direction; width, height, scale, parallel, front and back have been set. */
static void ex__aim(ex__view *v, ex__vec eye, ex__vec forward, ex__vec up)
{
    v->eye = eye;
    v->forward = ex__unit(forward);
    v->right = ex__cross(v->forward, up);
    if (ex__dot3(v->right, v->right) < 1e-10f) v->right = ex__cross(v->forward, ex__v(up.y + 0.3f, up.z + 0.5f, up.x));
    v->right = ex__unit(v->right);
    v->up = ex__cross(v->right, v->forward);
    v->cx = (float)v->width / 2;
    v->cy = (float)v->height / 2;
}

/* The camera, and its copy at one sample a pixel for lines. */
static void ex__aim_camera(ex_scene *s)
{
    ex__view *v = &s->camera.view;
    ex__vec eye = ex__narrow(s->eye), to_center = ex__sub(s->center, eye);
    double units = s->parallel > 0 ? s->parallel : 2 * tan(s->fov * FSI_PI / 360);
    v->parallel = s->parallel > 0;
    v->width = s->width * s->samples;
    v->height = s->height * s->samples;
    v->scale = (float)(v->height / units);
    v->front = v->parallel ? -1e30f : 0.01f * s->radius;
    v->back = sqrtf(ex__dot3(to_center, to_center)) + 60 * s->radius;
    ex__aim(v, eye, ex__sub(ex__narrow(s->target), eye), s->up_dir);
    s->lines.view = *v;
    s->lines.view.width = s->width;
    s->lines.view.height = s->height;
    s->lines.view.scale = v->scale / (float)s->samples;
    s->lines.view.cx = v->cx / (float)s->samples;
    s->lines.view.cy = v->cy / (float)s->samples;
}

/* The sun looks at all that casts or receives a shadow. */
static void ex__aim_sun(ex_scene *s, fsi_box3 all)
{
    ex__view *v = &s->sunlight.view;
    ex__vec center = ex__scale(ex__narrow(fsi_v3_add(all.lo, all.hi)), 0.5f);
    float radius = 0.52f * (float)fsi_v3_norm(fsi_v3_sub(all.hi, all.lo)) + 1e-6f * s->radius;
    v->parallel = 1;
    v->width = v->height = 1280;
    v->scale = (float)v->width / (2 * radius);
    v->front = -1e30f;
    v->back = 4 * radius + 60 * s->radius; /* beyond the ground, however far above it everything floats */
    ex__aim(v, ex__madd(center, 2 * radius, s->sun_dir), ex__scale(s->sun_dir, -1), s->up_dir);
}

/* Sizes of the scene, directions, views, and the colours that follow from them. */
static void ex__set_up(ex_scene *s)
{
    fsi_box3 all = ex__bounds(s), box = s->box;
    if (all.lo.x > all.hi.x) all.lo = all.hi = s->target;
    if (box.lo.x > box.hi.x) box = all;
    s->center = ex__scale(ex__narrow(fsi_v3_add(box.lo, box.hi)), 0.5f);
    s->radius = 0.5f * (float)fsi_v3_norm(fsi_v3_sub(box.hi, box.lo)) + 1e-6f;
    s->up_dir = ex__unit(ex__narrow(s->up));
    s->sun_dir = ex__unit(ex__narrow(s->sun));
    ex__ground_axes(s->up_dir, &s->side_dir, &s->ahead_dir);
    s->absorb_rgb = ex__narrow(s->absorb);
    if (ex__dot3(s->absorb_rgb, s->absorb_rgb) <= 0) s->absorb_rgb = ex__scale(ex__v(5.0f, 1.9f, 0.95f), 1 / s->radius);
    s->camera.scene = s->sunlight.scene = s->lines.scene = s;
    ex__aim_camera(s);
    ex__aim_sun(s, all);
}

/* Makes the picture and empties the scene. The picture lasts until the next ex_render; write texts on it before it is
   saved. */
EX_FN ex_image *ex_render(ex_scene *s)
{
    size_t n = (size_t)s->width * (size_t)s->height;
    int k;
    if (s->width != s->image.width || s->height != s->image.height) {
        ex_image_free(&s->image);
        s->image = ex_image_make(s->width, s->height, 0xffffff);
    }
    if (n > s->pixel_capacity) {
        s->pixel_capacity = n;
        s->seen = (ex__seen *)ex_alloc(s->seen, n, sizeof *s->seen);
        s->solid = (ex__vec *)ex_alloc(s->solid, n, sizeof(ex__vec));
        s->wet = (ex__vec *)ex_alloc(s->wet, n, sizeof(ex__vec));
    }
    ex__set_up(s);
    s->shown = s->count[EX__WATER] > 0 ? s->wet : s->solid;
    if (!s->flat) ex__draw_pass(&s->sunlight);
    if (!s->camera.view.parallel) {
        ex__clip(s, EX__TRIS);
        ex__clip(s, EX__WATER);
    }
    ex__draw_pass(&s->camera);
    if (!s->flat) {
        ex__count_tiles(&s->camera, s->width, s->height);
        ex__count_tiles(&s->sunlight, s->sunlight.view.width, s->sunlight.view.height);
        ex__run(s, s->height, ex__seen_row, s);
    }
    ex__run(s, s->height, ex__solid_row, s);
    if (s->count[EX__WATER] > 0) ex__run(s, s->height, ex__water_row, s);
    ex__bin(&s->lines, EX__STROKES);
    ex__run(s, ex__bands(&s->lines), ex__stroke_band, &s->lines);
    ex__run(s, s->height, ex__tone_row, s);
    for (k = 0; k < EX__KINDS; k++) s->count[k] = 0;
    return &s->image;
}

/* Renders the scene and saves it as a frame, with a number in its corner: format holds one conversion of a double, such
   as "%.2f s"; NULL: no text. */
EX_FN void ex_save_scene(ex_app *app, ex_scene *s, int frame, const char *format, double value)
{
    ex_image *image = ex_render(s);
    char text[64];
    if (format) snprintf(text, sizeof text, format, value);
    if (format) ex_text(image, 24, 34, 12, EX_LEFT, 0x3a4550, text);
    ex_save_frame(app, image, frame);
}

#endif /* FSI_KIT_RENDER_H */
