/* flip_pools.h - pools with elastic bodies in them, for tests and validation: making, counting, added mass.
   SPDX-License-Identifier: MIT */
#ifndef FSI_FLIP_POOLS_H
#define FSI_FLIP_POOLS_H

#include "test_flip.h"
#include "test_elastic.h"

/* A liquid and elastic bodies; change w.desc, w.body, w.material and d before pool_begin and pool_add. */
typedef struct pool {
    world w;
    fsi_flip_desc d;
    fsi_flip *s;
} pool;

TEST_FN pool pool_of(int dim, int n)
{
    pool p;
    memset(&p, 0, sizeof p);
    p.w = world_of(dim);
    p.d = make_desc(dim, n);
    p.w.body.handles = 0;
    return p;
}

TEST_FN void pool_begin(pool *p)
{
    world_begin(&p->w);
    p->d.context = &p->w.context;
    p->s = make_flip(&p->d);
}

/* Adds a block with its lower corner at (x, h); its id. */
TEST_FN int pool_add(pool *p, const block *b, double x, double h)
{
    p->w.body.position = in_room(p->w.desc.dim, x, h, 0.5 - 0.5 * b->ny * b->a);
    return world_add(&p->w, b);
}

TEST_FN int pool_immerse(pool *p)
{
    const fsi_status status = fsi_flip_immerse(p->s, p->w.s);
    if (status != FSI_OK) printf("      immerse: %s\n", fsi_flip_error(p->s)->message);
    return CHECK(status == FSI_OK);
}

TEST_FN void pool_fill(pool *p, double level)
{
    fill(p->s, room(p->w.desc.dim, 0, 0, 1, level, 1), v3(0, 0, 0));
}

TEST_FN int pool_run(pool *p, double dt, int steps)
{
    int k;
    for (k = 0; k < steps; k++) if (!step_ok(p->s, dt)) return 0;
    return 1;
}

TEST_FN void pool_end(pool *p)
{
    fsi_flip_destroy(p->s);
    world_end(&p->w);
}

TEST_FN uint64_t pool_hash(const pool *p) { return fsi_flip_hash(p->s) * 31 + fsi_elastic_hash(p->w.s); }

/* Force of the liquid on a body over its weight, upwards. */
TEST_FN double pool_lift(const pool *p, int id)
{
    const fsi_elastic_body *b = p->w.s->bodies + fsi_elastic_find_body(p->w.s, id);
    fsi_vec3 force = v3(0, 0, 0);
    CHECK(fsi_flip_body_reaction(p->s, id, &force, NULL) == FSI_OK);
    return height_of(p->w.desc.dim, force) / (b->mass * 9.81);
}

TEST_FN double pool_height(const pool *p, int index) { return height_of(p->w.desc.dim, p->w.s->bodies[index].center); }

/* Twice the area, or six times the volume, of a simplex. */
TEST_FN double content(int dim, const fsi_vec3 *x)
{
    const fsi_vec3 a = fsi_v3_sub(x[1], x[0]), b = fsi_v3_sub(x[2], x[0]);
    if (dim == 2) return (double)a.x * (double)b.y - (double)a.y * (double)b.x;
    return (double)fsi_v3_dot(fsi_v3_cross(a, b), fsi_v3_sub(x[3], x[0]));
}

TEST_FN int is_in_simplex(int dim, const fsi_vec3 *x, fsi_vec3 at, double least)
{
    const double whole = content(dim, x);
    fsi_vec3 y[4];
    int k;
    if (!(whole > 0)) return 0; /* inverted */
    for (k = 0; k <= dim; k++) {
        memcpy(y, x, sizeof y);
        y[k] = at;
        if (!(content(dim, y) > least * whole)) return 0;
    }
    return 1;
}

/* Particles of liquid in the elements of a body as they lie now: no surface, no search. */
TEST_FN int count_wet(const pool *p, int index)
{
    const fsi_elastic_body *b = &p->w.s->bodies[index];
    const int dim = p->w.desc.dim;
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)b->vertex_count * sizeof *x);
    int i, e, k, wet = 0;
    CHECK(fsi_elastic_vertices(p->w.s, b->id, x, NULL) == FSI_OK);
    for (i = 0; i < p->s->count; i++)
        for (e = 0; e < b->element_count; e++) {
            fsi_vec3 corner[4];
            memset(corner, 0, sizeof corner);
            for (k = 0; k <= dim; k++) corner[k] = x[b->elements[(dim + 1) * e + k]];
            if (!is_in_simplex(dim, corner, p->s->position[i], 1e-9)) continue;
            wet++;
            break;
        }
    free(x);
    return wet;
}

/* ---- a clamped beam ---------------------------------------------------------------------------------------------- */

/* Mode of a clamped beam, from its foot 0 to its tip 1, where it is 1. */
TEST_FN double beam_mode(double along)
{
    const double k = 1.8751040687, z = k * along, c = (cosh(k) + cos(k)) / (sinh(k) + sin(k));
    return (cosh(z) - cos(z) - c * (sinh(z) - sin(z))) / 2;
}

/* What liquid in a full tank of n x n cells, 1 m wide, adds to the mass of that mode, of a beam 0.1 m thick and 0.4 m
   high in its middle: by the potential of its flow [kg/m]. */
TEST_FN double beam_added_mass(int n)
{
    const double dx = 1.0 / n;
    const int lo = (int)(0.45 * n + 0.5), hi = (int)(0.55 * n + 0.5), top = (int)(0.4 * n + 0.5);
    double *f = (double *)calloc((size_t)(n * n), sizeof *f), sum = 0, most = 1;
    int i, j, k, sweep;
    for (sweep = 0; most > 1e-10 && sweep < 20000; sweep++)
        for (most = 0, j = 0; j < n; j++) for (i = 0; i < n; i++) {
            const int to[4][2] = { { i - 1, j }, { i + 1, j }, { i, j - 1 }, { i, j + 1 } };
            double right = 0, change;
            int sides = 0;
            if (i >= lo && i < hi && j < top) continue;
            for (k = 0; k < 4; k++) {
                const int a = to[k][0], b = to[k][1];
                if (a < 0 || a >= n || b < 0 || b >= n) continue;
                if (a >= lo && a < hi && b < top) { /* flow through the side of the beam; none through its top */
                    if (k < 2) right += (k == 0 ? -dx : dx) * beam_mode((j + 0.5) / top);
                    continue;
                }
                right += f[b * n + a];
                sides++;
            }
            change = right / sides - f[j * n + i];
            f[j * n + i] += 1.9 * change;
            most = fmax(most, fabs(change));
        }
    for (j = 0; j < top; j++) sum += beam_mode((j + 0.5) / top) * dx * (f[j * n + lo - 1] - f[j * n + hi]);
    free(f);
    return 1000 * sum;
}

/* Angular frequency of that beam in a full tank, or in vacuum (wet 0), pushed from rest. */
TEST_FN double beam_swing(int wet, double density, double young, double dt, int substeps)
{
    pool p = pool_of(2, 40);
    block b = block_make(4, 16, 0, 0.025);
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)b.vertices * sizeof *x);
    double was = 0, now, first = 0, last = 0;
    int id, j, step, passes = 0;
    p.w.desc.gravity = p.d.gravity = v3(0, 0, 0);
    p.w.material.density = (fsi_real)density;
    p.w.material.young = (fsi_real)young;
    p.w.material.poisson = p.w.material.damping = 0;
    p.w.desc.substeps = substeps;
    p.w.desc.time_order = wet ? 1 : 2;
    p.w.body.velocity = v3(0.05, 0, 0);
    pool_begin(&p);
    id = pool_add(&p, &b, 0.45, 0);
    for (j = 0; j < 5; j++) {
        fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
        a.body = id;
        a.vertex = block_at(&b, j, 0, 0);
        a.target = fsi_v3_add(b.x[a.vertex], p.w.body.position);
        CHECK(fsi_elastic_attach(p.w.s, &a, NULL) == FSI_OK);
    }
    if (wet) pool_immerse(&p);
    if (wet) pool_fill(&p, 1);
    for (step = 1; passes < 3 && step < 1000; step++, was = now) {
        if ((wet ? fsi_flip_step(p.s, (fsi_real)dt) : fsi_elastic_step(p.w.s, (fsi_real)dt)) != FSI_OK) break;
        CHECK(fsi_elastic_vertices(p.w.s, id, x, NULL) == FSI_OK);
        now = (double)x[block_at(&b, 2, 16, 0)].x - 0.5;
        if (step == 1 || (was < 0) == (now < 0)) continue;
        last = (step - now / (now - was)) * dt;
        if (passes++ == 0) first = last;
    }
    pool_end(&p);
    block_free(&b);
    free(x);
    return passes > 1 ? PI * (passes - 1) / (last - first) : 0;
}

#endif /* FSI_FLIP_POOLS_H */
