/* scene.h - what a picture shows: camera, light, and lists of what was drawn.
   SPDX-License-Identifier: MIT

   ex_scene_begin, a camera by ex_look_at_box, ex_scene_of_box or ex_look_at_flat, then ex_draw_mesh
   ex_draw_colored_mesh ex_draw_walls ex_draw_sheet ex_draw_rod ex_draw_spheres ex_draw_surface ex_draw_line
   ex_draw_box, or ex_debug_draw for what fsi draws by itself. ex_render (render.h) makes the picture and empties the
   lists; ex_scene_end frees the scene. */
#ifndef FSI_KIT_SCENE_H
#define FSI_KIT_SCENE_H

#include "app.h"
#include "image.h"
#include "mesh.h"

/* The renderer: a z-buffer over bands of rows, in the order

      sun view:    depth of what is solid; first depth and thickness of the liquid       (shadow map)
      camera view: depth, normal and colour of what is solid                             (n x n samples a pixel)
      visibility:  share of the sun and of the sky that each pixel sees, blurred later over 4 x 4 pixels
      shading:     once a pixel where its samples agree, else once a sample
      liquid:      first depth, normal and thickness; refracts the shaded picture, reflects the sky
      lines:       blended over the picture where nothing solid hides them

   Every band, row and chunk is a task of its own and writes only what is its own: the picture is the same for any
   number of threads. Depth is kept as a key that is linear on the screen and larger when closer: 1/z, or -z when
   parallel. */

typedef struct ex__vec { float x, y, z; } ex__vec;

EX_FN ex__vec ex__v(float x, float y, float z) { ex__vec v; v.x = x; v.y = y; v.z = z; return v; }
EX_FN fsi_vec3 ex__widen(ex__vec a) { return fsi_v3((fsi_real)a.x, (fsi_real)a.y, (fsi_real)a.z); }
EX_FN ex__vec ex__narrow(fsi_vec3 a) { return ex__v((float)a.x, (float)a.y, (float)a.z); }
EX_FN ex__vec ex__madd(ex__vec a, float s, ex__vec b) { return ex__v(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z); }
EX_FN ex__vec ex__sub(ex__vec a, ex__vec b) { return ex__v(a.x - b.x, a.y - b.y, a.z - b.z); }
EX_FN ex__vec ex__scale(ex__vec a, float s) { return ex__v(a.x * s, a.y * s, a.z * s); }
EX_FN ex__vec ex__mul(ex__vec a, ex__vec b) { return ex__v(a.x * b.x, a.y * b.y, a.z * b.z); }
EX_FN ex__vec ex__mix(ex__vec a, ex__vec b, float t) { return ex__madd(a, t, ex__sub(b, a)); }
EX_FN float ex__dot3(ex__vec a, ex__vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
EX_FN ex__vec ex__cross(ex__vec a, ex__vec b)
{
    return ex__v(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
EX_FN ex__vec ex__unit(ex__vec a)
{
    float l = ex__dot3(a, a);
    return l > 0 ? ex__scale(a, 1 / sqrtf(l)) : ex__v(0, 0, 0);
}

/* What was drawn, in world space. The top byte of a colour tells how it is lit. */
enum { EX__SKY, EX__GROUND, EX__SOLID, EX__WALL };
typedef struct ex__tri { ex__vec p[3], n[3]; uint32_t c[3]; } ex__tri;
typedef struct ex__ball { ex__vec p; float r; uint32_t c; } ex__ball;
typedef struct ex__stroke { ex__vec p[2]; float width; uint32_t c; } ex__stroke;

typedef enum ex__kind { EX__TRIS, EX__BALLS, EX__STROKES, EX__WATER, EX__KINDS } ex__kind;

/* A camera: a sample at depth z and offset (x, y) from the axis is seen at centre + scale * (x, -y) / z (perspective)
   or centre + scale * (x, -y) (parallel). */
typedef struct ex__view {
    ex__vec eye, right, up, forward;
    float scale, cx, cy, front, back; /* nothing is seen closer than front; back is the depth of emptiness */
    int parallel, width, height;
} ex__view;

/* A view, what it sees, and which items touch which band of EX__BAND rows. */
#define EX__BAND 24
struct ex_scene;
typedef struct ex__pass {
    struct ex_scene *scene;
    ex__view view;
    size_t capacity, water_capacity; /* samples that the buffers hold */
    float *key;
    ex__vec *normal;                 /* NULL in the sun's view, as is color */
    uint32_t *color;
    float *water_key, *water_depth;  /* depth: length of liquid along z in front of what is solid */
    ex__vec *water_normal;
    int *busy;                       /* summed-area table of the tiles that show something; see render.h */
    int busy_capacity;
    int *rows;                       /* first and last row of each item while bins are made */
    int *first[EX__KINDS], *item[EX__KINDS];
    int row_capacity, first_capacity[EX__KINDS], item_capacity[EX__KINDS];
} ex__pass;

/* What a pixel sees of the light; ambient < 0: nothing solid there. open: bare ground, fully lit. */
typedef struct ex__seen { ex__vec p; float sun, ambient, water; int open; } ex__seen;

/* A scene: fields of the first block may be changed at any time before ex_render. */
typedef struct ex_scene {
    int width, height, samples;         /* picture 960 x 540, samples 2 (x 2) a pixel */
    fsi_vec3 eye, target, up;           /* camera; up also points away from the ground, default (0, 0, 1) */
    double fov;                         /* vertical angle of view [degrees] */
    double parallel;                    /* height of the picture [m] without perspective; 0: perspective */
    fsi_vec3 sun;                       /* direction towards the sun */
    double sun_angle;                   /* its apparent diameter [radians]: softness of shadows */
    int flat;                           /* 1: plain colours without light or ground, for 2D */
    int ground;                         /* 0: no ground */
    double ground_height, grid;         /* of the ground along up [m]; distance of its lines [m], 0 none */
    uint32_t ground_rgb, horizon_rgb, top_rgb;
    fsi_vec3 absorb;                    /* how strongly the liquid takes away red, green, blue [1/m]; 0: by scene
                                           size */
    uint32_t scatter_rgb;               /* colour of deep liquid */
    fsi_box3 box;                       /* the region of interest: sizes of shadows, fading, absorption */

    ex_image image;                     /* the last picture */
    fsi_context *context;
    ex__tri *tris, *water;
    ex__ball *balls;
    ex__stroke *strokes;
    int count[EX__KINDS], capacity[EX__KINDS];
    ex__pass camera, sunlight, lines;
    ex__seen *seen;
    ex__vec *solid, *wet, *shown;       /* linear colours of the pixels without and with liquid; shown: one of them */
    size_t pixel_capacity;
    ex__vec center;                     /* the following are set up by ex_render */
    float radius;
    ex__vec up_dir, side_dir, ahead_dir, sun_dir, absorb_rgb;
    float linear[256];                  /* sRGB byte to linear */
    unsigned char encode[4096];         /* and back */
    float disc[16][8][2];               /* 8 points of a unit disc, in 16 turns */
} ex_scene;

static void ex__make_tables(ex_scene *s)
{
    int i, k;
    for (i = 0; i < 256; i++)
        s->linear[i] = (float)(i <= 10 ? i / 255.0 / 12.92 : pow((i / 255.0 + 0.055) / 1.055, 2.4));
    for (i = 0; i < 4096; i++) {
        double x = i / 4095.0;
        s->encode[i] = (unsigned char)(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * pow(x, 1 / 2.4) - 0.055) + 0.5);
    }
    for (i = 0; i < 16; i++)
        for (k = 0; k < 8; k++) {
            double r = sqrt((k + (i * 7 % 16 + 0.5) / 16) / 8), turn = 2.39996323 * k + 2 * FSI_PI * i / 16;
            s->disc[i][k][0] = (float)(r * cos(turn));
            s->disc[i][k][1] = (float)(r * sin(turn));
        }
}

/* An empty scene that renders with the threads of the app. */
EX_FN ex_scene ex_scene_begin(ex_app *app)
{
    ex_scene s;
    memset(&s, 0, sizeof s);
    s.context = &app->context;
    s.width = 960;
    s.height = 540;
    s.samples = 2;
    s.eye = fsi_v3(3, -4, 2);
    s.up = fsi_v3(0, 0, 1);
    s.fov = 32;
    s.sun = fsi_v3((fsi_real)-0.45, (fsi_real)-0.5, (fsi_real)0.95);
    s.sun_angle = 0.09;
    s.ground = 1;
    s.ground_rgb = 0xdfe3e7;
    s.horizon_rgb = 0xf4f6f8;
    s.top_rgb = 0xcfdcea;
    s.scatter_rgb = 0x136aa6;
    s.box = fsi_box3_empty();
    ex__make_tables(&s);
    return s;
}

/* The two directions of the ground; x and y when up is z. */
static void ex__ground_axes(ex__vec up, ex__vec *side, ex__vec *ahead)
{
    *ahead = ex__unit(ex__cross(up, fabsf(up.x) > 0.9f ? ex__v(0, 1, 0) : ex__v(1, 0, 0)));
    *side = ex__cross(*ahead, up);
}

/* Points the camera at a box that fills the picture, seen from `azimuth` degrees (0: from -y, 90: from +x; when up is
   z) and `elevation` degrees above the ground; puts the ground under the box, a grid of a fitting size on it, and the
   sun behind the viewer's left shoulder. */
EX_FN void ex_look_at_box(ex_scene *s, fsi_box3 box, double azimuth, double elevation)
{
    ex__vec up = ex__unit(ex__narrow(s->up)), middle = ex__scale(ex__narrow(fsi_v3_add(box.lo, box.hi)), 0.5f);
    ex__vec side, ahead, view, right, tip, sun;
    float a = (float)(azimuth * FSI_PI / 180), e = (float)(elevation * FSI_PI / 180), distance = 0, ground = 1e30f;
    float half_y = (float)tan(s->fov * FSI_PI / 360), half_x = half_y * (float)s->width / (float)s->height;
    int k;
    ex__ground_axes(up, &side, &ahead);
    view = ex__madd(ex__scale(side, sinf(a)), -cosf(a), ahead);
    view = ex__madd(ex__scale(view, cosf(e)), sinf(e), up); /* from the box to the eye */
    right = ex__unit(ex__cross(up, view));
    tip = ex__cross(view, right);
    for (k = 0; k < 8; k++) {
        ex__vec p = ex__narrow(ex__corner(box, k)), d = ex__sub(p, middle);
        float need_x = fabsf(ex__dot3(d, right)) / half_x + ex__dot3(d, view);
        float need_y = fabsf(ex__dot3(d, tip)) / half_y + ex__dot3(d, view);
        if (need_x > distance) distance = need_x;
        if (need_y > distance) distance = need_y;
        if (ex__dot3(p, up) < ground) ground = ex__dot3(p, up);
    }
    sun = ex__madd(ex__madd(ex__scale(up, 0.9f), 0.45f, view), -0.6f, right);
    s->sun = ex__widen(sun);
    s->target = ex__widen(middle);
    s->eye = ex__widen(ex__madd(middle, 1.08f * distance, view));
    s->grid = ex__tick((double)fsi_v3_norm(fsi_v3_sub(box.hi, box.lo)), 8);
    s->ground_height = (double)ground - 0.01 * s->grid;
    s->box = box;
}

/* A scene that looks at the box from lo to hi. */
EX_FN ex_scene ex_scene_of_box(ex_app *app, fsi_vec3 lo, fsi_vec3 hi, double azimuth, double elevation)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 box;
    box.lo = lo;
    box.hi = hi;
    ex_look_at_box(&scene, box, azimuth, elevation);
    return scene;
}

/* For 2D: looks straight at the plane z = 0 of a box, y up, without perspective, light or ground. */
EX_FN void ex_look_at_flat(ex_scene *s, fsi_box3 box)
{
    double width = (double)(box.hi.x - box.lo.x), height = (double)(box.hi.y - box.lo.y);
    double fit = width * s->height / s->width;
    s->flat = 1;
    s->up = fsi_v3(0, 1, 0);
    s->target = fsi_v3((box.lo.x + box.hi.x) / 2, (box.lo.y + box.hi.y) / 2, 0);
    s->parallel = 1.08 * (fit > height ? fit : height);
    s->eye = fsi_v3_add(s->target, fsi_v3(0, 0, (fsi_real)s->parallel));
    s->box = box;
}

static ex__vec ex__linear_rgb(const ex_scene *s, uint32_t rgb)
{
    return ex__v(s->linear[rgb >> 16 & 255u], s->linear[rgb >> 8 & 255u], s->linear[rgb & 255u]);
}

/* What is NaN or absurdly far away is not drawn. */
static int ex__drawable(ex__vec a) { return ex__dot3(a, a) < 1e24f; }

/* Room for `extra` more items of a list. */
static void *ex__room(ex_scene *s, ex__kind kind, void *list, int extra, size_t size)
{
    int need = s->count[kind] + extra;
    if (need <= s->capacity[kind]) return list;
    s->capacity[kind] = need + need / 2;
    return ex_alloc(list, (size_t)s->capacity[kind], size);
}

/* Twice the area of triangle t, along its normal. */
static ex__vec ex__area(const fsi_vec3 *vertices, const int *t)
{
    ex__vec a = ex__narrow(vertices[t[0]]);
    return ex__cross(ex__sub(ex__narrow(vertices[t[1]]), a), ex__sub(ex__narrow(vertices[t[2]]), a));
}

/* A normal for each corner of each triangle: the mean of the faces around the vertex that meet this one at less than 37
   degrees. */
static ex__vec *ex__smooth_normals(const fsi_vec3 *vertices, int vertex_count, const int *triangles, int triangle_count)
{
    const int corners = 3 * triangle_count;
    ex__vec *n = (ex__vec *)ex_alloc(NULL, (size_t)corners, sizeof *n);
    int *first = (int *)ex_alloc(NULL, (size_t)vertex_count, sizeof *first),
        *next = (int *)ex_alloc(NULL, (size_t)corners, sizeof *next), i, c;
    for (i = 0; i < vertex_count; i++) first[i] = -1;
    for (c = 0; c < corners; c++) { /* the corners at a vertex, as a list */
        next[c] = first[triangles[c]];
        first[triangles[c]] = c;
    }
    for (i = 0; i < corners; i++) {
        ex__vec face = ex__unit(ex__area(vertices, triangles + i - i % 3));
        n[i] = ex__v(0, 0, 0);
        for (c = first[triangles[i]]; c >= 0; c = next[c]) {
            ex__vec area = ex__area(vertices, triangles + c - c % 3);
            if (ex__dot3(ex__unit(area), face) > 0.8f) n[i] = ex__madd(n[i], 1, area);
        }
        n[i] = ex__unit(n[i]);
    }
    free(first);
    free(next);
    return n;
}

static void ex__add_mesh(ex_scene *s, ex__kind kind, const fsi_vec3 *vertices, const fsi_vec3 *normals,
                         int vertex_count, const int *triangles, int triangle_count, const uint32_t *colors,
                         uint32_t rgb, uint32_t lit)
{
    const int water = kind == EX__WATER;
    ex__vec *smooth = normals && !water ? NULL : ex__smooth_normals(vertices, vertex_count, triangles, triangle_count);
    ex__tri **list = water ? &s->water : &s->tris;
    ex__vec face;
    int i, k;
    *list = (ex__tri *)ex__room(s, kind, *list, triangle_count, sizeof **list);
    for (i = 0; i < triangle_count; i++) {
        ex__tri *t = *list + s->count[kind];
        for (k = 0; k < 3; k++) t->p[k] = ex__narrow(vertices[triangles[3 * i + k]]);
        s->count[kind] += ex__drawable(t->p[0]) && ex__drawable(t->p[1]) && ex__drawable(t->p[2]);
        face = ex__unit(ex__area(vertices, triangles + 3 * i));
        for (k = 0; k < 3; k++) {
            int v = triangles[3 * i + k];
            t->n[k] = normals ? ex__narrow(normals[v]) : smooth[3 * i + k];
            if (water && ex__dot3(t->n[k], face) < 0.7f) t->n[k] = smooth[3 * i + k];
            t->c[k] = ((colors ? colors[v] : rgb) & 0xffffffu) | lit << 24;
        }
    }
    free(smooth);
}

/* A mesh of one colour. normals: one a vertex, or NULL: smooth where faces meet at less than 37 degrees, else an
   edge. */
EX_FN void ex_draw_mesh(ex_scene *s, const fsi_vec3 *vertices, const fsi_vec3 *normals, int vertex_count,
                        const int *triangles, int triangle_count, uint32_t rgb)
{
    ex__add_mesh(s, EX__TRIS, vertices, normals, vertex_count, triangles, triangle_count, NULL, rgb, EX__SOLID);
}

/* The same with a colour for each vertex. */
EX_FN void ex_draw_colored_mesh(ex_scene *s, const fsi_vec3 *vertices, const fsi_vec3 *normals, int vertex_count,
                                const int *triangles, int triangle_count, const uint32_t *colors)
{
    ex__add_mesh(s, EX__TRIS, vertices, normals, vertex_count, triangles, triangle_count, colors, 0, EX__SOLID);
}

/* Walls of a room, tank or bowl: only faces whose front is seen are drawn, and they cast no shadow, so that one can
   look inside from anywhere. */
EX_FN void ex_draw_walls(ex_scene *s, const fsi_vec3 *vertices, int vertex_count, const int *triangles,
                         int triangle_count, uint32_t rgb)
{
    ex__add_mesh(s, EX__TRIS, vertices, NULL, vertex_count, triangles, triangle_count, NULL, rgb, EX__WALL);
}

/* The surface of a liquid, closed, its triangles counter-clockwise seen from outside; normals as above. One that is
   more than 45 degrees off a face does not count there: where a wall cuts the surface off is an edge. */
EX_FN void ex_draw_surface(ex_scene *s, const fsi_vec3 *vertices, const fsi_vec3 *normals, int vertex_count,
                           const int *triangles, int triangle_count)
{
    ex__add_mesh(s, EX__WATER, vertices, normals, vertex_count, triangles, triangle_count, NULL, 0, EX__SOLID);
}

/* Balls of one radius [m]; colors: one a ball, or NULL: all rgb. In a flat scene: discs. */
EX_FN void ex_draw_spheres(ex_scene *s, const fsi_vec3 *centers, int count, double radius, const uint32_t *colors,
                           uint32_t rgb)
{
    int i;
    s->balls = (ex__ball *)ex__room(s, EX__BALLS, s->balls, count, sizeof *s->balls);
    for (i = 0; i < count; i++) {
        ex__ball *b = &s->balls[s->count[EX__BALLS]];
        b->p = ex__narrow(centers[i]);
        s->count[EX__BALLS] += ex__drawable(b->p);
        b->r = (float)radius;
        b->c = ((colors ? colors[i] : rgb) & 0xffffffu) | (uint32_t)EX__SOLID << 24;
    }
}

/* A sheet with two faces of their own colours, `thickness` apart: folds and what lies on what can be told. Its front is
   seen with the triangles counter-clockwise. */
EX_FN void ex_draw_sheet(ex_scene *s, const fsi_vec3 *vertices, int vertex_count, const int *triangles,
                         int triangle_count, double thickness, uint32_t front, uint32_t back)
{
    fsi_vec3 *normal = (fsi_vec3 *)ex_alloc(NULL, (size_t)vertex_count, sizeof *normal),
             *face = (fsi_vec3 *)ex_alloc(NULL, (size_t)vertex_count, sizeof *face);
    int i, k, side;
    memset(normal, 0, (size_t)vertex_count * sizeof *normal);
    for (i = 0; i < triangle_count; i++)
        for (k = 0; k < 3; k++)
            normal[triangles[3 * i + k]] =
                fsi_v3_add(normal[triangles[3 * i + k]], ex__widen(ex__area(vertices, triangles + 3 * i)));
    for (side = 1; side >= -1; side -= 2) {
        for (i = 0; i < vertex_count; i++)
            face[i] = fsi_v3_madd(vertices[i], (fsi_real)(side * thickness / 2), fsi_v3_unit(normal[i]));
        ex_draw_mesh(s, face, NULL, vertex_count, triangles, triangle_count, side > 0 ? front : back);
    }
    free(normal);
    free(face);
}

/* A chain of points as a round rod. colors: one a point, or NULL: all rgb. */
EX_FN void ex_draw_rod(ex_scene *s, const fsi_vec3 *points, int count, double radius, const uint32_t *colors,
                       uint32_t rgb)
{
    enum { AROUND = 10 };
    ex_mesh tube;
    fsi_vec3 side = fsi_v3(0, 0, 0), t, other, *normal;
    uint32_t *paint;
    int i, k;
    if (count < 2) return;
    tube = ex_mesh_make(AROUND * count, 2 * AROUND * (count - 1));
    normal = (fsi_vec3 *)ex_alloc(NULL, (size_t)tube.vertex_count, sizeof *normal);
    paint = (uint32_t *)ex_alloc(NULL, (size_t)tube.vertex_count, sizeof *paint);
    for (i = 0; i < count; i++) { /* the side is carried along without turning */
        t = fsi_v3_unit(fsi_v3_sub(points[i + 1 < count ? i + 1 : i], points[i > 0 ? i - 1 : i]));
        if (i == 0) side = fsi_v3_cross(t, fsi_abs(t.z) < (fsi_real)0.8 ? fsi_v3(0, 0, 1) : fsi_v3(1, 0, 0));
        side = fsi_v3_unit(fsi_v3_madd(side, -fsi_v3_dot(side, t), t));
        other = fsi_v3_cross(t, side);
        for (k = 0; k < AROUND; k++) {
            const double a = 2 * FSI_PI * k / AROUND;
            const int v = AROUND * i + k, next = AROUND * i + (k + 1) % AROUND, e = 6 * v;
            normal[v] = fsi_v3_madd(fsi_v3_scale(side, (fsi_real)cos(a)), (fsi_real)sin(a), other);
            tube.vertices[v] = fsi_v3_madd(points[i], (fsi_real)radius, normal[v]);
            paint[v] = colors ? colors[i] : rgb;
            if (i + 1 == count) continue;
            tube.triangles[e] = tube.triangles[e + 3] = v;
            tube.triangles[e + 1] = next;
            tube.triangles[e + 2] = tube.triangles[e + 4] = next + AROUND;
            tube.triangles[e + 5] = v + AROUND;
        }
    }
    ex_draw_colored_mesh(s, tube.vertices, normal, tube.vertex_count, tube.triangles, tube.triangle_count, paint);
    ex_draw_spheres(s, points, 1, radius, colors, rgb);
    ex_draw_spheres(s, points + count - 1, 1, radius, colors ? colors + count - 1 : NULL, rgb);
    ex_mesh_free(&tube);
    free(normal);
    free(paint);
}

/* A line, `width` pixels wide, hidden by what is in front of it. */
EX_FN void ex_draw_line(ex_scene *s, fsi_vec3 a, fsi_vec3 b, double width, uint32_t rgb)
{
    ex__stroke *k;
    s->strokes = (ex__stroke *)ex__room(s, EX__STROKES, s->strokes, 1, sizeof *s->strokes);
    k = &s->strokes[s->count[EX__STROKES]];
    k->p[0] = ex__narrow(a);
    k->p[1] = ex__narrow(b);
    s->count[EX__STROKES] += ex__drawable(k->p[0]) && ex__drawable(k->p[1]);
    k->width = (float)width;
    k->c = rgb;
}

/* The twelve edges of a box, such as a glass tank. */
EX_FN void ex_draw_box(ex_scene *s, fsi_box3 box, double width, uint32_t rgb)
{
    int i, k;
    for (i = 0; i < 8; i++)
        for (k = 1; k < 8; k *= 2)
            if (!(i & k)) ex_draw_line(s, ex__corner(box, i), ex__corner(box, i | k), width, rgb);
}

static void ex__debug_point(void *user, fsi_vec3 p, fsi_real size, uint32_t rgb)
{
    ex_draw_spheres((ex_scene *)user, &p, 1, (double)size / 2, NULL, rgb);
}
static void ex__debug_line(void *user, fsi_vec3 a, fsi_vec3 b, uint32_t rgb)
{
    ex_draw_line((ex_scene *)user, a, b, 1.2, rgb);
}
static void ex__debug_triangle(void *user, fsi_vec3 a, fsi_vec3 b, fsi_vec3 c, uint32_t rgb)
{
    static const int corners[3] = { 0, 1, 2 };
    fsi_vec3 v[3];
    v[0] = a; v[1] = b; v[2] = c;
    ex_draw_mesh((ex_scene *)user, v, NULL, 3, corners, 1, rgb);
}

/* Callbacks for fsi's *_debug_draw functions that draw into the scene. */
EX_FN fsi_debug_draw ex_debug_draw(ex_scene *s)
{
    fsi_debug_draw d;
    d.user = s;
    d.point = ex__debug_point;
    d.line = ex__debug_line;
    d.triangle = ex__debug_triangle;
    return d;
}

static void ex__free_pass(ex__pass *p)
{
    int k;
    free(p->key); free(p->normal); free(p->color);
    free(p->water_key); free(p->water_depth); free(p->water_normal);
    free(p->rows); free(p->busy);
    for (k = 0; k < EX__KINDS; k++) { free(p->first[k]); free(p->item[k]); }
}

EX_FN void ex_scene_end(ex_scene *s)
{
    ex__free_pass(&s->camera);
    ex__free_pass(&s->sunlight);
    ex__free_pass(&s->lines);
    free(s->tris); free(s->water); free(s->balls); free(s->strokes);
    free(s->seen); free(s->solid); free(s->wet);
    ex_image_free(&s->image);
}

#endif /* FSI_KIT_SCENE_H */
