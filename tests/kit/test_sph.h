/* test_sph.h - scenes that the tests of fsi_sph.h share: liquids, figures taken from them.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_SPH_H
#define FSI_TEST_SPH_H

#include "test.h"
#include "../../fsi_sph.h"
#include "test_meshes.h"

/* ---- references ------------------------------------------------------------------------------------------------ */

/* Share of the kernel below a floor at distance q H: sph.md 4.1; in 2D rings of radius r, of which 2 acos(q/r) lies behind. */
TEST_FN double reference_plane(int dim, double q)
{
    double sum = 0;
    int k, n = 20000;
    if (q >= 1) return 0;
    if (dim == 3) return 0.5 - 1.5 * q + 5 * pow(q, 3) - 7.5 * pow(q, 4) + 4.5 * pow(q, 5) - pow(q, 6);
    for (k = 0; k < n; k++) {
        double t = (k + 0.5) / n, r = q + (1 - q) * t * t, w = (1 - q) * 2 * t / n;
        sum += w * 10 / PI * pow(1 - r, 3) * r * 2 * acos(q / r);
    }
    return sum;
}

/* ---- liquids -------------------------------------------------------------------------------------------------- */

/* Gravity along the last axis of the space. */
TEST_FN fsi_sph_desc make_desc(int dim, double dx)
{
    fsi_sph_desc d = fsi_sph_default_desc();
    d.dim = dim;
    d.spacing = (fsi_real)dx;
    d.gravity = dim == 2 ? v3(0, -9.81, 0) : v3(0, 0, -9.81);
    return d;
}

TEST_FN fsi_sph *make_sph(const fsi_sph_desc *d)
{
    fsi_sph *s = NULL;
    CHECK(fsi_sph_create(&s, d) == FSI_OK);
    return s;
}

TEST_FN int step_ok(fsi_sph *s, double dt)
{
    fsi_status status = fsi_sph_step(s, (fsi_real)dt);
    if (status != FSI_OK && s) printf("step: %s\n", fsi_sph_error(s)->message);
    return CHECK(status == FSI_OK);
}

TEST_FN void add_particle(fsi_sph *s, fsi_vec3 x, fsi_vec3 v) { CHECK(fsi_sph_add_particles(s, &x, &v, 1) == FSI_OK); }

/* A lattice of n[0] x n[1] x n[2] particles from `lo` with `gap` between them, each shaken by up to `shake` gaps. */
TEST_FN void add_lattice(fsi_sph *s, fsi_vec3 lo, const int *n, double gap, double shake, uint64_t *random)
{
    int i, j, k;
    for (k = 0; k < n[2]; k++) {
        for (j = 0; j < n[1]; j++) {
            for (i = 0; i < n[0]; i++) {
                fsi_vec3 x = fsi_v3_madd(v3(i, j, k), (fsi_real)(2 * shake), random_vector(random, s->desc.dim));
                add_particle(s, fsi_v3_madd(lo, (fsi_real)gap, x), v3(0, 0, 0));
            }
        }
    }
}

/* A drop around `at`: the particles of a lattice within radius R. */
TEST_FN void add_drop(fsi_sph *s, fsi_vec3 at, double R, fsi_vec3 velocity)
{
    const double dx = (double)s->desc.spacing;
    int i, j, k, n = (int)(R / dx) + 1, depth = s->desc.dim == 3 ? n : 0;
    for (k = -depth; k <= depth; k++) {
        for (j = -n; j <= n; j++) {
            for (i = -n; i <= n; i++) {
                fsi_vec3 x = v3((i + 0.5) * dx, (j + 0.5) * dx, s->desc.dim == 3 ? (k + 0.5) * dx : 0);
                if ((double)fsi_v3_norm(x) < R) add_particle(s, fsi_v3_add(at, x), velocity);
            }
        }
    }
}

/* Radius of the circle or sphere that holds the liquid's volume. */
TEST_FN double drop_radius(const fsi_sph *s)
{
    double volume = s->count * (double)s->particle_volume;
    return s->desc.dim == 2 ? sqrt(volume / PI) : cbrt(volume * 3 / (4 * PI));
}

/* Water without gravity, a drop of radius 1 mm and `n` particles a diameter. */
TEST_FN fsi_sph *make_drop(fsi_context *context, int dim, int n, double tension, double support)
{
    fsi_sph_desc d = make_desc(dim, 0.002 / n);
    fsi_sph *s;
    d.context = context;
    d.gravity = v3(0, 0, 0);
    d.support = (fsi_real)support;
    d.surface_tension = (fsi_real)tension;
    s = make_sph(&d);
    add_drop(s, v3(0, 0, 0), 0.001, v3(0, 0, 0));
    return s;
}

/* Period of mode 2 by Rayleigh (3D), by Lamb (2D): data README 3.1. */
TEST_FN double mode2_period(const fsi_sph *s)
{
    double R = drop_radius(s);
    return 2 * PI / sqrt((s->desc.dim == 2 ? 6 : 8) * (double)s->desc.surface_tension / ((double)s->desc.density * R * R * R));
}

/* Lets a drop come to rest: every step of `seconds` takes a part of the velocity. */
TEST_FN void calm_drop(fsi_sph *s, double seconds)
{
    const double end = s->time + seconds, period = mode2_period(s);
    int i;
    while (s->time < end) {
        double dt = (double)fsi_sph_suggest_dt(s);
        if (!step_ok(s, dt)) return;
        for (i = 0; i < s->count; i++) s->velocity[i] = fsi_v3_scale(s->velocity[i], (fsi_real)(1 - fmin(20 * dt / period, 0.1)));
    }
}

/* Second moment that mode 2 changes: x^2 - y^2, in space z^2 - (x^2 + y^2)/2, mean over R^2. */
TEST_FN double mode2_moment(const fsi_sph *s)
{
    double sum = 0, R = drop_radius(s);
    int i;
    for (i = 0; i < s->count; i++) {
        double x = (double)s->position[i].x, y = (double)s->position[i].y, z = (double)s->position[i].z;
        sum += s->desc.dim == 2 ? x * x - y * y : z * z - (x * x + y * y) / 2;
    }
    return sum / (s->count * R * R);
}

/* Sets a calm drop swinging in mode 2, the largest elongation about `amplitude` R, for `swings` half periods after the first. Returns the
   mean period over Rayleigh's; *decay: the last half swing's largest moment over the second's. */
TEST_FN double mode2_measure(fsi_sph *s, double amplitude, int swings, double *decay)
{
    const double T = mode2_period(s), w = 2 * PI / T, rest = mode2_moment(s), start = s->time;
    double before = 0, first = 0, last = 0, top = 0, early = 0, late = 0;
    int i, crossings = 0;
    for (i = 0; i < s->count; i++) {
        fsi_vec3 x = s->position[i];
        s->velocity[i] = fsi_v3_scale(s->desc.dim == 2 ? fsi_v3(x.x, -x.y, 0) : fsi_v3(-x.x / 2, -x.y / 2, x.z), (fsi_real)(amplitude * w));
    }
    while (crossings <= swings && s->time - start < (swings + 2) * T) {
        const double dt = (double)fsi_sph_suggest_dt(s);
        double now;
        if (!step_ok(s, dt)) return 0;
        now = mode2_moment(s) - rest;
        if (fabs(now) > top) top = fabs(now);
        if (before * now < 0) {
            last = s->time - dt * now / (now - before);
            if (crossings == 0) first = last;
            if (crossings == 1) early = top;
            late = top;
            top = 0;
            crossings++;
        }
        before = now;
    }
    if (decay) *decay = early > 0 ? late / early : 0;
    return crossings > swings ? (last - first) / (0.5 * swings * T) : 0;
}

/* Height of the centre of a circle's cap of area 1 on a line that it meets at this angle. */
TEST_FN double cap_height(double angle)
{
    double part = angle - sin(angle) * cos(angle);
    return (2.0 / 3 * pow(sin(angle), 3) / part - cos(angle)) / sqrt(part);
}

/* Contact angle [degrees] of a drop in the plane on the line y = 0, from the height of its centre of mass. */
TEST_FN double contact_angle(const fsi_sph *s)
{
    double lo = 1e-3, hi = PI, mean = 0;
    int i;
    for (i = 0; i < s->count; i++) mean += (double)s->position[i].y / s->count;
    mean /= sqrt(s->count * (double)s->particle_volume);
    for (i = 0; i < 60; i++) {
        double middle = (lo + hi) / 2;
        if (cap_height(middle) < mean) lo = middle;
        else hi = middle;
    }
    return lo * 180 / PI;
}

/* The axis along which gravity acts. */
TEST_FN double height(const fsi_sph *s, int i) { return (double)(s->desc.dim == 2 ? s->position[i].y : s->position[i].z); }

/* Sum of m v along axis k. */
TEST_FN double momentum(const fsi_sph *s, int k)
{
    double sum = 0;
    int i;
    for (i = 0; i < s->count; i++) sum += (double)(k == 0 ? s->velocity[i].x : k == 1 ? s->velocity[i].y : s->velocity[i].z);
    return sum * (double)s->particle_mass;
}

TEST_FN double kinetic(const fsi_sph *s)
{
    double sum = 0;
    int i;
    for (i = 0; i < s->count; i++) sum += 0.5 * (double)s->particle_mass * (double)fsi_v3_norm2(s->velocity[i]);
    return sum;
}

/* What fsi_sph_save writes; to be freed. */
TEST_FN void *save_state(const fsi_sph *s, size_t *size)
{
    void *buffer;
    CHECK(fsi_sph_save(s, NULL, 0, size) == FSI_OK);
    buffer = malloc(*size);
    CHECK(fsi_sph_save(s, buffer, *size, size) == FSI_OK);
    return buffer;
}

#endif /* FSI_TEST_SPH_H */
