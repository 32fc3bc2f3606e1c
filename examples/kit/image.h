/* image.h - pictures of pixels: lines, discs, rectangles, texts, and colours that stand for numbers.
   SPDX-License-Identifier: MIT

   ex_image ex_line ex_disc ex_rect ex_text ex_text_width draw, anti-aliased; ex_map_color ex_map_colors ex_speed_colors
   ex_color_bar map values to colours. Colours are 0xRRGGBB as seen on the screen (sRGB). */
#ifndef FSI_KIT_IMAGE_H
#define FSI_KIT_IMAGE_H

#include "host.h"

/* A picture: rows from the top, 3 bytes (red, green, blue) a pixel. */
typedef struct ex_image {
    int width, height;
    unsigned char *rgb;
} ex_image;

EX_FN ex_image ex_image_make(int width, int height, uint32_t rgb)
{
    ex_image im;
    int i, n = width * height;
    im.width = width;
    im.height = height;
    im.rgb = (unsigned char *)ex_alloc(NULL, (size_t)n, 3);
    for (i = 0; i < n; i++) {
        im.rgb[3 * i] = (unsigned char)(rgb >> 16);
        im.rgb[3 * i + 1] = (unsigned char)(rgb >> 8);
        im.rgb[3 * i + 2] = (unsigned char)rgb;
    }
    return im;
}

EX_FN void ex_image_free(ex_image *im)
{
    free(im->rgb);
    im->rgb = NULL;
}

EX_FN float ex__clamp(float x, float lo, float hi) { return x > lo ? (x < hi ? x : hi) : lo; } /* NaN becomes lo */

static void ex__blend(ex_image *im, int x, int y, uint32_t rgb, float alpha)
{
    unsigned char *p = im->rgb + 3 * ((size_t)y * (size_t)im->width + (size_t)x);
    int k;
    for (k = 0; k < 3; k++) {
        float from = (float)p[k], to = (float)(rgb >> (16 - 8 * k) & 255u);
        p[k] = (unsigned char)(from + alpha * (to - from) + 0.5f);
    }
}

/* Distance of (x, y) from the segment a-b. */
static float ex__segment_distance(float x, float y, const float *a, const float *b)
{
    float dx = b[0] - a[0], dy = b[1] - a[1], ex = x - a[0], ey = y - a[1], l = dx * dx + dy * dy, t;
    t = l > 0 ? ex__clamp((ex * dx + ey * dy) / l, 0, 1) : 0;
    ex -= t * dx;
    ey -= t * dy;
    return sqrtf(ex * ex + ey * ey);
}

/* A line with round ends, anti-aliased: a pixel is covered as far as its centre lies inside width/2. */
EX_FN void ex_line(ex_image *im, double x0, double y0, double x1, double y1, double width, uint32_t rgb)
{
    float a[2], b[2], r = (float)width / 2;
    int x, y, lo[2], hi[2], k;
    a[0] = (float)x0; a[1] = (float)y0; b[0] = (float)x1; b[1] = (float)y1;
    for (k = 0; k < 2; k++) {
        float limit = (float)(k ? im->height : im->width), s = a[k] < b[k] ? a[k] : b[k], e = a[k] < b[k] ? b[k] : a[k];
        lo[k] = (int)ex__clamp(s - r - 1, 0, limit);
        hi[k] = (int)ex__clamp(e + r + 2, 0, limit);
    }
    for (y = lo[1]; y < hi[1]; y++)
        for (x = lo[0]; x < hi[0]; x++) {
            float c = r + 0.5f - ex__segment_distance((float)x + 0.5f, (float)y + 0.5f, a, b);
            if (c > 0) ex__blend(im, x, y, rgb, c < 1 ? c : 1);
        }
}

EX_FN void ex_disc(ex_image *im, double x, double y, double radius, uint32_t rgb)
{
    ex_line(im, x, y, x, y, 2 * radius, rgb);
}

/* Pixels x0 <= x < x1, y0 <= y < y1, blended with alpha in 0..1. */
EX_FN void ex_rect(ex_image *im, int x0, int y0, int x1, int y1, uint32_t rgb, double alpha)
{
    int x, y;
    if (x0 < 0) x0 = 0;
    if (y0 < 0) y0 = 0;
    for (y = y0; y < y1 && y < im->height; y++)
        for (x = x0; x < x1 && x < im->width; x++) ex__blend(im, x, y, rgb, (float)alpha);
}

/* The letters 32..126: bit 5*row + column of a 5 x 9 cell; rows 0 to 6 stand on the base line, 7 and 8 below it. They
   are drawn as strokes from dot to dot, so that they are smooth at any size. A dot is linked to the dots beside, above
   and below it, and to those diagonal ones to which no third dot leads. A dot in which exactly two links meet at 135
   degrees is part of a round: it is drawn towards the middle of its neighbours, and its corner becomes a parabola.

       . # # .         .-o-o-.
       # . . #   ->   o       o
       # . . #        |       |   */
static const uint64_t ex__font[95] = {
    0x000000000000u, 0x000040108421u, 0x0000000014a5u, 0x000295f57d4au, 0x00011f4717c4u, 0x000632222263u,
    0x000593511526u, 0x000000000421u, 0x000104108444u, 0x000044421041u, 0x000009575480u, 0x0000084f9080u,
    0x000840000000u, 0x000000078000u, 0x000040000000u, 0x000044222110u, 0x0003a318c62eu, 0x0003884210c4u,
    0x0007c444422eu, 0x0003a306422eu, 0x000211f4a988u, 0x0003a3083c3fu, 0x0003a317844cu, 0x00010844221fu,
    0x0003a317462eu, 0x0001910f462eu, 0x000040000400u, 0x000840000400u, 0x000010411100u, 0x000000f03c00u,
    0x000002220820u, 0x00010044422eu, 0x000383daf62eu, 0x000463f8a944u, 0x0003e317c62fu, 0x0003a210862eu,
    0x0003e318c62fu, 0x0007c217843fu, 0x00004217843fu, 0x0003a31c862eu, 0x0004631fc631u, 0x0001c4210847u,
    0x000192842108u, 0x000452519531u, 0x0003c2108421u, 0x0004631ad771u, 0x0004739ace71u, 0x0003a318c62eu,
    0x00004217c62fu, 0x00059358c62eu, 0x00045257c62fu, 0x0003a307062eu, 0x00010842109fu, 0x0003a318c631u,
    0x000108a54631u, 0x0004775ac631u, 0x000462a22a31u, 0x000108422a31u, 0x0007c222221fu, 0x0000c2108423u,
    0x000410820841u, 0x0000c4210843u, 0x000000004544u, 0x00f800000000u, 0x000000000041u, 0x0007a3e83800u,
    0x0001d2949c21u, 0x00038210b800u, 0x00039294b908u, 0x000383f8b800u, 0x000042109c26u, 0x06439294b800u,
    0x000252949c21u, 0x000042108401u, 0x011084210802u, 0x00024a32a421u, 0x000082108421u, 0x00056b5abc00u,
    0x000252949c00u, 0x000192949800u, 0x0109d2949c00u, 0x08439294b800u, 0x000042119400u, 0x0001d060b800u,
    0x000182109c21u, 0x00039294a400u, 0x000114a8c400u, 0x0002ab58c400u, 0x000454454400u, 0x06439294a400u,
    0x0003c2643c00u, 0x000104208844u, 0x010842108421u, 0x000044220841u, 0x0000019b0000u};

static int ex__dot(uint64_t glyph, int x, int y)
{
    return x >= 0 && x < 5 && y >= 0 && y < 9 && (glyph >> (5 * y + x) & 1u) == 1;
}

static uint64_t ex__glyph(char c) { return c >= 32 && c < 127 ? ex__font[c - 32] : ex__font['?' - 32]; }

/* Columns that a letter takes; digits all alike. */
static int ex__glyph_columns(char c)
{
    int x, y;
    if (c == ' ') return 3;
    if (c >= '0' && c <= '9') return 5;
    for (x = 4; x > 0; x--)
        for (y = 0; y < 9; y++)
            if (ex__dot(ex__glyph(c), x, y)) return x + 1;
    return 1;
}

/* Width in pixels of a text whose capital letters are `size` pixels high. */
EX_FN double ex_text_width(const char *text, double size)
{
    double columns = 0;
    for (; *text; text++) columns += ex__glyph_columns(*text) + 1.1;
    return columns > 0 ? (columns - 1.1) * size / 7 : 0;
}

/* Steps to the dots that a dot is linked to; returns how many. */
static int ex__links(uint64_t g, int c, int r, int link[8][2])
{
    int dx, dy, n = 0;
    for (dy = -1; dy <= 1; dy++)
        for (dx = -1; dx <= 1; dx++) {
            if ((!dx && !dy) || !ex__dot(g, c + dx, r + dy)) continue;
            if (dx && dy && (ex__dot(g, c + dx, r) || ex__dot(g, c, r + dy))) continue;
            link[n][0] = dx;
            link[n++][1] = dy;
        }
    return n;
}

/* Where a dot is drawn, in columns and rows; returns 1 when it is part of a round. */
static int ex__place(uint64_t g, int c, int r, double at[2])
{
    int link[8][2], n = ex__links(g, c, r, link), k;
    int round = n == 2 && link[0][0] * link[1][0] + link[0][1] * link[1][1] == -1;
    at[0] = c;
    at[1] = r;
    for (k = 0; k < 2 && round; k++) at[k] += 0.25 * (link[0][k] + link[1][k]);
    return round;
}

/* A pen that writes in columns and rows of letters whose left top dot is at (x, y) of an image. */
typedef struct ex__pen {
    ex_image *image;
    double x, y, ux, uy, width; /* (ux, uy): one column to the right [pixels] */
    uint32_t rgb;
} ex__pen;

static void ex__pen_line(const ex__pen *p, const double a[2], const double b[2])
{
    ex_line(p->image, p->x + a[0] * p->ux + a[1] * p->uy, p->y - a[0] * p->uy + a[1] * p->ux,
            p->x + b[0] * p->ux + b[1] * p->uy, p->y - b[0] * p->uy + b[1] * p->ux, p->width, p->rgb);
}

/* The half of its links that belongs to a dot: up to the middle of each. */
static void ex__draw_dot_links(const ex__pen *pen, uint64_t g, int c, int r)
{
    double at[2], half[8][2], from[2], to[2];
    int link[8][2], n = ex__links(g, c, r, link), round = ex__place(g, c, r, at), k, j;
    for (k = 0; k < n; k++) {
        ex__place(g, c + link[k][0], r + link[k][1], half[k]);
        half[k][0] = (half[k][0] + at[0]) / 2;
        half[k][1] = (half[k][1] + at[1]) / 2;
        if (!round) ex__pen_line(pen, at, half[k]);
    }
    if (n == 0) ex__pen_line(pen, at, at);
    for (k = 0; k <= 4 && round; k++) { /* s^2 a + 2 s t p + t^2 b */
        double t = k / 4.0, s = 1 - t;
        for (j = 0; j < 2; j++) to[j] = s * s * half[0][j] + 2 * s * t * at[j] + t * t * half[1][j];
        if (k) ex__pen_line(pen, from, to);
        memcpy(from, to, sizeof from);
    }
}

typedef enum ex_align { EX_LEFT, EX_CENTER, EX_RIGHT, EX_UPWARD } ex_align; /* UPWARD: turned by 90 degrees, centred */

/* Writes text with capital letters `size` pixels high; (x, y) is on the base line. */
EX_FN void ex_text(ex_image *im, double x, double y, double size, ex_align align, uint32_t rgb, const char *text)
{
    double u = size / 7, width = ex_text_width(text, size);
    double shift = align == EX_LEFT ? 0 : (align == EX_RIGHT ? width : width / 2);
    int c, r;
    ex__pen pen;
    pen.image = im;
    pen.ux = align == EX_UPWARD ? 0 : u;
    pen.uy = align == EX_UPWARD ? u : 0;
    pen.x = x - shift * pen.ux / u - 6.5 * pen.uy + 0.5 * pen.ux;
    pen.y = y + shift * pen.uy / u - 6.5 * pen.ux - 0.5 * pen.uy;
    pen.width = 0.95 * u;
    pen.rgb = rgb;
    for (; *text; text++) {
        uint64_t g = ex__glyph(*text);
        for (r = 0; r < 9; r++)
            for (c = 0; c < 5; c++)
                if (ex__dot(g, c, r)) ex__draw_dot_links(&pen, g, c, r);
        pen.x += (ex__glyph_columns(*text) + 1.1) * pen.ux;
        pen.y -= (ex__glyph_columns(*text) + 1.1) * pen.uy;
    }
}

/* The smallest of 1, 2, 5 times a power of ten that cuts `range` in at most `most` parts. */
EX_FN double ex__tick(double range, double most)
{
    double unit = pow(10, floor(log10(range / most)));
    if (unit * most >= range) return unit;
    return 2 * unit * most >= range ? 2 * unit : (5 * unit * most >= range ? 5 * unit : 10 * unit);
}

/* ---- >>colours ------------------------------------------------------------------------------------------------ */

/* Nine knots a map, chosen in CIELAB so that lightness is linear: deep water to foam, night to flame, and blue through
   white to red for signed values. */
typedef enum ex_map { EX_MAP_WATER, EX_MAP_HEAT, EX_MAP_SIGNED } ex_map;

/* Colour of t in 0..1 (clamped; NaN is grey). */
EX_FN uint32_t ex_map_color(ex_map map, double t)
{
    static const uint32_t knots[3][9] = {
        { 0x11519d, 0x026aa6, 0x0580b6, 0x0397c8, 0x03aeda, 0x09c6ec, 0x5fdbf4, 0x9aeefa, 0xf2f8f8 },
        { 0x102556, 0x60197c, 0x9e0275, 0xd00367, 0xff194d, 0xfe6f47, 0xff9e51, 0xffc766, 0xfeec82 },
        { 0x024f7f, 0x0276bb, 0x6a9dd7, 0xb0c6e6, 0xf1f1f1, 0xf4bbae, 0xe58a76, 0xcd5843, 0xb01b13 }
    };
    int i, k;
    uint32_t a, b, rgb = 0;
    if (!fsi_is_finite(t)) return 0x808080;
    t = t < 0 ? 0 : (t > 1 ? 8 : 8 * t);
    i = t < 8 ? (int)t : 7;
    a = knots[map][i];
    b = knots[map][i + 1];
    for (k = 0; k < 24; k += 8) {
        double x = (double)(a >> k & 255u), y = (double)(b >> k & 255u);
        rgb |= (uint32_t)(x + (t - i) * (y - x) + 0.5) << k;
    }
    return rgb;
}

/* Colours of count values between lo and hi. */
EX_FN void ex_map_colors(ex_map map, const fsi_real *values, int count, double lo, double hi, uint32_t *rgb)
{
    int i;
    for (i = 0; i < count; i++) rgb[i] = ex_map_color(map, ((double)values[i] - lo) / (hi - lo));
}

/* Colours of count speeds |v|: 0 is deep blue, `fast` and above is foam. */
EX_FN void ex_speed_colors(const fsi_vec3 *v, int count, double fast, uint32_t *rgb)
{
    int i;
    for (i = 0; i < count; i++) rgb[i] = ex_map_color(EX_MAP_WATER, (double)fsi_v3_norm(v[i]) / fast);
}

/* A legend with its left top corner at (x, y): title, bar, and the values at its ends. */
EX_FN void ex_color_bar(ex_image *im, int x, int y, ex_map map, double lo, double hi, const char *title)
{
    char text[32];
    int i;
    ex_text(im, x, y + 11, 11, EX_LEFT, 0x333333, title);
    for (i = 0; i < 180; i++) ex_rect(im, x + i, y + 20, x + i + 1, y + 32, ex_map_color(map, i / 179.0), 1);
    snprintf(text, sizeof text, "%g", lo);
    ex_text(im, x, y + 48, 10, EX_LEFT, 0x555555, text);
    snprintf(text, sizeof text, "%g", hi);
    ex_text(im, x + 180, y + 48, 10, EX_RIGHT, 0x555555, text);
}

#endif /* FSI_KIT_IMAGE_H */
