/* front_tally.h - what studies of moving surfaces share: a front of a mesh, carried in a given flow, and what of a grid
   it fills otherwise than before.
   SPDX-License-Identifier: MIT */
#ifndef FSI_KIT_FRONT_TALLY_H
#define FSI_KIT_FRONT_TALLY_H

#include "kit.h"
#include "../../fsi_front.h"

/* Velocity v at place x, time t. */
typedef void ex_flow(const double *x, double t, double *v);

/* Zalesak (1979): a turn about (50, 50) in 628 s. */
EX_FN void ex_zalesak_flow(const double *x, double t, double *v)
{
    (void)t;
    v[0] = FSI_PI / 314 * (50 - x[1]);
    v[1] = FSI_PI / 314 * (x[0] - 50);
    v[2] = 0;
}

/* Enright et al. (2002): draws a ball in the unit cube out to a sheet until t = 1.5, and back until t = 3. */
EX_FN void ex_enright_flow(const double *x, double t, double *v)
{
    const double back = cos(FSI_PI * t / 3);
    double s[3], d[3];
    int a;
    for (a = 0; a < 3; a++) {
        s[a] = sin(FSI_PI * x[a]) * sin(FSI_PI * x[a]);
        d[a] = sin(2 * FSI_PI * x[a]);
    }
    v[0] = 2 * s[0] * d[1] * d[2] * back;
    v[1] = -d[0] * s[1] * d[2] * back;
    v[2] = -d[0] * d[1] * s[2] * back;
}

/* Of triangles, or in 2D of segments. */
EX_FN fsi_front *ex_front_make(ex_app *app, int dim, const fsi_vec3 *x, int vertex_count, const int *elements,
                               int element_count, double length)
{
    fsi_front_desc d = fsi_front_default_desc();
    fsi_front *f;
    d.context = &app->context;
    d.dim = dim;
    d.vertices = x;
    d.vertex_count = vertex_count;
    d.elements = elements;
    d.element_count = element_count;
    d.length = (fsi_real)length;
    ex_check(app, fsi_front_create(&f, &d));
    return f;
}

/* The ball that Enright's flow draws out, edges of half a cell of 1/res. */
EX_FN fsi_front *ex_enright_front(ex_app *app, int res)
{
    ex_mesh m = ex_sphere(fsi_v3((fsi_real)0.35, (fsi_real)0.35, (fsi_real)0.35), 0.15,
                          (int)floor(log(0.36 * res) / log(2.0) + 0.5));
    fsi_front *f = ex_front_make(app, 3, m.vertices, m.vertex_count, m.triangles, m.triangle_count, 0.5 / res);
    ex_mesh_free(&m);
    return f;
}

/* One step, by Runge and Kutta's method of fourth order: the velocity that leads to its end. */
EX_FN void ex_front_carry(ex_app *app, fsi_front *f, ex_flow *flow, double t, double dt)
{
    static const double part[4] = { 0, 0.5, 0.5, 1 }, weight[4] = { 1 / 6.0, 1 / 3.0, 1 / 3.0, 1 / 6.0 };
    int i, k, a;
    for (i = 0; i < f->vertex_count; i++) {
        const fsi_vec3 p = f->position[i];
        const double x[3] = { (double)p.x, (double)p.y, (double)p.z };
        double v[3] = { 0, 0, 0 }, sum[3] = { 0, 0, 0 }, y[3];
        for (k = 0; k < 4; k++) {
            for (a = 0; a < 3; a++) y[a] = x[a] + part[k] * dt * v[a];
            flow(y, t + part[k] * dt, v);
            for (a = 0; a < 3; a++) sum[a] += weight[k] * v[a];
        }
        f->velocity[i] = fsi_v3((fsi_real)sum[0], (fsi_real)sum[1], (fsi_real)sum[2]);
    }
    ex_check(app, fsi_front_step(f, (fsi_real)dt));
}

/* Velocities of a flow by mean curvature, times `rate` [m^2/s]: v = -2 H n rate. keep 1: less the mean of its piece, so
   that volumes stay. Added to what is there. */
EX_FN void ex_front_smoothing(ex_app *app, fsi_front *f, double rate, int keep)
{
    const size_t n = (size_t)f->vertex_count + 1, pieces = (size_t)f->piece_count + 1;
    fsi_vec3 *normal = (fsi_vec3 *)ex_alloc(NULL, n, sizeof *normal);
    fsi_real *curvature = (fsi_real *)ex_alloc(NULL, n, sizeof *curvature);
    double *sum = (double *)ex_alloc(NULL, pieces, 2 * sizeof *sum);
    int *piece = (int *)ex_alloc(NULL, n, sizeof *piece);
    int i, t, k;
    ex_check(app, fsi_front_normals(f, normal));
    ex_check(app, fsi_front_curvature(f, curvature));
    memset(sum, 0, pieces * 2 * sizeof *sum);
    for (t = 0; t < f->element_count; t++) {
        const int *c = f->elements + f->dim * t;
        const fsi_vec3 u = fsi_v3_sub(f->position[c[1]], f->position[c[0]]);
        const double area = f->dim == 2 ? (double)fsi_v3_norm(u)
            : (double)fsi_v3_norm(fsi_v3_cross(u, fsi_v3_sub(f->position[c[2]], f->position[c[0]])));
        for (k = 0; k < f->dim; k++) {
            piece[c[k]] = f->piece_of[t];
            sum[2 * f->piece_of[t]] += area;
            sum[2 * f->piece_of[t] + 1] += area * (double)curvature[c[k]];
        }
    }
    for (i = 0; i < f->vertex_count; i++) {
        const double mean = keep ? sum[2 * piece[i] + 1] / sum[2 * piece[i]] : 0;
        const double speed = 2 * rate * (mean - (double)curvature[i]);
        f->velocity[i] = fsi_v3_madd(f->velocity[i], (fsi_real)speed, normal[i]);
    }
    free(normal);
    free(curvature);
    free(sum);
    free(piece);
}

/* Which of n^dim points of a box from 0 to `size` are inside? Free it. */
EX_FN unsigned char *ex_front_inside(ex_app *app, const fsi_front *f, int n, double size)
{
    const size_t count = (size_t)n * (size_t)n * (size_t)(f->dim == 3 ? n : 1);
    unsigned char *map = (unsigned char *)ex_alloc(NULL, count, 1);
    fsi_front_lines_desc d = fsi_front_default_lines_desc();
    fsi_front_lines *l;
    d.context = &app->context;
    d.dim = f->dim;
    d.n[0] = d.n[1] = n;
    d.n[2] = f->dim == 3 ? n : 1;
    d.dx = (fsi_real)(size / n);
    ex_check(app, fsi_front_create_lines(&l, &d));
    ex_check(app, fsi_front_cross_lines(l, f));
    memcpy(map, l->inside, count);
    fsi_front_destroy_lines(l);
    return map;
}

/* Volume (2D: area) of which two of these maps differ. */
EX_FN double ex_front_difference(const unsigned char *a, const unsigned char *b, int n, int dim, double size)
{
    const size_t count = (size_t)n * (size_t)n * (size_t)(dim == 3 ? n : 1);
    size_t i, differ = 0;
    for (i = 0; i < count; i++) differ += a[i] != b[i];
    return (double)differ * pow(size / n, dim);
}

/* Zalesak's outline, of radius 1 about 0, with a slot from below that is 1/3 wide and 5/3 deep: at the part t of its
   length, 0 to 1, counter-clockwise from where the slot's right wall meets the circle. */
static void ex__slotted_disc(double t, double *x, double *y)
{
    const double half = asin(1 / 6.0), arc = 2 * FSI_PI - 2 * half, wall = 2 / 3.0 + cos(half), bottom = 1 / 3.0;
    double s = t * (arc + 2 * wall + bottom);
    if (s < arc) {
        *x = cos(half - FSI_PI / 2 + s);
        *y = sin(half - FSI_PI / 2 + s);
        return;
    }
    s -= arc;
    *x = s < wall ? -1 / 6.0 : s < wall + bottom ? s - wall - 1 / 6.0 : 1 / 6.0;
    *y = s < wall ? s - cos(half) : s < wall + bottom ? 2 / 3.0 : 2 / 3.0 - (s - wall - bottom);
}

/* The slotted disc of Zalesak (1979) with radius 15 about (50, 75); 3D: a ball whose slices are such discs, about
   (50, 75, 50). Edges of l. */
EX_FN fsi_front *ex_slotted_front(ex_app *app, int dim, double l)
{
    const double around = 15 * 9.6133; /* of the outline */
    fsi_front *f;
    int i, n = (int)(around / l + 0.5), *c;
    fsi_vec3 *x;
    double u, v;
    if (dim == 3) {
        ex_mesh m = ex_sphere(fsi_v3(0, 0, 0), 1, (int)ceil(log(15 * 1.7 / l) / log(2.0)));
        for (i = 0; i < m.vertex_count; i++) {
            const fsi_vec3 p = m.vertices[i];
            const double r = 15 * sqrt((double)(p.x * p.x + p.y * p.y));
            const double t = atan2((double)p.y, (double)p.x) / (2 * FSI_PI);
            ex__slotted_disc(t - floor(t), &u, &v);
            m.vertices[i] = fsi_v3((fsi_real)(50 + r * u), (fsi_real)(75 + r * v), (fsi_real)(50 + 15 * (double)p.z));
        }
        f = ex_front_make(app, 3, m.vertices, m.vertex_count, m.triangles, m.triangle_count, l);
        ex_mesh_free(&m);
        return f;
    }
    x = (fsi_vec3 *)ex_alloc(NULL, (size_t)n, sizeof *x);
    c = (int *)ex_alloc(NULL, 2 * (size_t)n, sizeof *c);
    for (i = 0; i < n; i++) {
        ex__slotted_disc((double)i / n, &u, &v);
        x[n - 1 - i] = fsi_v3((fsi_real)(50 + 15 * u), (fsi_real)(75 + 15 * v), 0);
        c[2 * i] = i;
        c[2 * i + 1] = (i + 1) % n;
    }
    f = ex_front_make(app, 2, x, n, c, n, l);
    free(x);
    free(c);
    return f;
}

#endif
