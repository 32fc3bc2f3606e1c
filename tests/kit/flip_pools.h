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

/* Particles of liquid in the elements of a body as they lie now, deeper than a thirtieth of one: those between a body
   and the floor have no place outside of both. No surface, no search. */
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
            if (!is_in_simplex(dim, corner, p->s->position[i], 0.03)) continue;
            wet++;
            break;
        }
    free(x);
    return wet;
}

/* Steps; the most particles in a body after any of them. */
TEST_FN int run_wet(pool *p, double dt, int steps)
{
    int k, j, most = 0;
    for (k = 0; k < steps; k++) {
        int wet = 0;
        if (!step_ok(p->s, dt)) break;
        for (j = 0; j < p->w.s->body_count; j++) wet += count_wet(p, j);
        most = wet > most ? wet : most;
    }
    CHECK(is_finite(p->s));
    return most;
}

/* ---- rafts ------------------------------------------------------------------------------------------------------- */

/* Draft of the first body: twice the mean height of the particles beside it less the height of its bottom, `arm` below
   its centre. */
TEST_FN double draft_of(const pool *p, double arm)
{
    const fsi_box3 box = fsi_elastic_surface(p->w.s, p->w.s->bodies[0].id)->box;
    const double gap = 2 * (double)p->d.dx;
    double level = 0;
    int i, beside = 0;
    for (i = 0; i < p->s->count; i++) {
        const fsi_vec3 x = p->s->position[i];
        if ((double)x.x > (double)box.lo.x - gap && (double)x.x < (double)box.hi.x + gap) continue;
        level += 2 * height_of(p->w.desc.dim, x);
        beside++;
    }
    return level / beside - (pool_height(p, 0) - arm);
}

/* Mean draft over its height of a raft 0.5 x 0.25 m, of n cells in the box, from the fourth to the sixth second; *lift:
   reaction over its weight; *wet: particles in it at the end. */
TEST_FN double raft_draft(int n, double density, int handles, double *lift, int *wet)
{
    pool p = pool_of(2, n);
    block b = block_make(n / 2, n / 4, 0, 1.0 / n);
    double draft = 0;
    int id, step;
    p.w.material.density = (fsi_real)density;
    p.w.body.handles = handles;
    pool_begin(&p);
    id = pool_add(&p, &b, 0.25, 0.36);
    pool_immerse(&p);
    pool_fill(&p, 0.5);
    for (*lift = 0, step = 0; step < 360; step++) {
        if (!step_ok(p.s, 1.0 / 60)) break;
        if (step < 240) continue;
        draft += draft_of(&p, 0.125) / 0.25 / 120;
        *lift += pool_lift(&p, id) / 120;
    }
    *wet = count_wet(&p, 0);
    pool_end(&p);
    block_free(&b);
    return draft;
}

/* ---- a thin mat -------------------------------------------------------------------------------------------------- */

/* Height of the lower side of a mat of 2D squares at x. */
TEST_FN double mat_below(const block *b, const fsi_vec3 *x, double at)
{
    int i;
    for (i = 0; i < b->nx; i++) {
        const fsi_vec3 l = x[block_at(b, i, 0, 0)], r = x[block_at(b, i + 1, 0, 0)];
        if (at > (double)r.x) continue;
        return (double)l.y + ((double)r.y - (double)l.y) * (at - (double)l.x) / ((double)r.x - (double)l.x);
    }
    return (double)x[block_at(b, b->nx, 0, 0)].y;
}

/* A column of liquid drops on a mat across the box of n cells a side, whose ends are held; thick: times dx/2. Returns how
   many particles are below it after a second; *wet: the most in it; *count: all; *lowest: point of the mat. */
TEST_FN int mat_leak(int n, int thick, int *wet, int *count, double *lowest)
{
    pool p = pool_of(2, n);
    block b = block_make(n, 1, 0, 1.0 / n);
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)b.vertices * sizeof *x);
    int i, id, below = 0;
    for (i = 0; i < b.vertices; i++) b.x[i].y *= (fsi_real)(0.5 * thick);
    p.w.material.young = (fsi_real)2e6;
    p.w.body.contact_points = 600;
    pool_begin(&p);
    id = pool_add(&p, &b, 0, 0.4);
    world_clamp(&p.w, id, &b, 0.03, -1);
    world_clamp(&p.w, id, &b, 0.97, 1);
    pool_immerse(&p);
    fill(p.s, box3(0.3, 0.5, 0, 0.7, 0.9, 0), v3(0, -1, 0));
    *wet = run_wet(&p, 1.0 / 60, 60);
    CHECK(fsi_elastic_vertices(p.w.s, id, x, NULL) == FSI_OK);
    for (*lowest = 1, i = 0; i < b.vertices; i++) *lowest = fmin(*lowest, (double)x[i].y);
    for (i = 0; i < p.s->count; i++)
        below += (double)p.s->position[i].y < mat_below(&b, x, (double)p.s->position[i].x);
    *count = p.s->count;
    free(x);
    pool_end(&p);
    block_free(&b);
    return below;
}

/* ---- a cup ------------------------------------------------------------------------------------------------------- */

/* Takes the cubes out of a block that are not in the walls of a cup, `wall` cubes thick, open above. */
TEST_FN void block_hollow(block *b, int wall)
{
    const int per = b->dim == 3 ? 6 : 2, corners = b->dim + 1;
    int *to = (int *)malloc((size_t)b->vertices * sizeof *to);
    int i, k, n = 0;
    for (i = 0; i < b->elements / per; i++) {
        const int x = i % b->nx, y = i / b->nx % b->ny, z = i / b->nx / b->ny;
        const int in = x >= wall && x < b->nx - wall && y >= wall && (b->dim == 2 || (y < b->ny - wall && z >= wall));
        if (in) continue;
        memmove(b->element + n * corners, b->element + i * per * corners, (size_t)(per * corners) * sizeof(int));
        n += per;
    }
    b->elements = n;
    for (i = 0; i < b->vertices; i++) to[i] = -1;
    for (i = 0; i < n * corners; i++) to[b->element[i]] = 0;
    for (i = k = 0; i < b->vertices; i++) {
        if (to[i] < 0) continue;
        b->x[k] = b->x[i];
        to[i] = k++;
    }
    b->vertices = k;
    for (i = 0; i < n * corners; i++) b->element[i] = to[b->element[i]];
    free(to);
}

/* Is a point between the walls of a cup, and above its bottom? */
TEST_FN int is_in_cup(const fsi_mesh *cup, int dim, fsi_vec3 x)
{
    int a;
    for (a = 0; a < dim; a++) {
        const fsi_vec3 way = v3(a == 0, a == 1, a == 2), back = fsi_v3_scale(way, -1);
        if (fsi_mesh_ray(cup, x, back, 100).face < 0) return 0;
        if (a < dim - 1 && fsi_mesh_ray(cup, x, way, 100).face < 0) return 0;
    }
    return 1;
}

/* It floats in the middle of a half full box of n cells a side, with its own walls a cell thick, `wide` and `high` cells
   large, and water `water` cells deep in it, as deep as it should; both begin with a speed along x. held: by its rim. */
typedef struct cup { int dim, n, wide, high, water, handles, held; double density, pic, speed, end; } cup;

/* Particles that were in it, that left and entered it, in its walls; draft below the level beside it [m], what the weight
   of both asks for; liquid's volume over that at rest; means of the second half. */
typedef struct cup_result { int held, out, in, wet; double draft, want, volume; } cup_result;

TEST_FN void cup_fill(const pool *p, double lo, double bottom, double depth, double speed)
{
    const int dim = p->w.desc.dim;
    const double t = (double)p->d.dx, hi = 1 - lo;
    const fsi_vec3 still = v3(0, 0, 0);
    fsi_box3 in = room(dim, lo + t, bottom + t, hi - t, bottom + t + depth, hi - t);
    if (dim == 3) in.lo.y = (fsi_real)(lo + t);
    if (depth > 0) fill(p->s, in, v3(speed, 0, 0));
    fill(p->s, room(dim, 0, 0, 1, bottom, 1), still);
    fill(p->s, room(dim, 0, bottom, lo, 0.5, 1), still);
    fill(p->s, room(dim, hi, bottom, 1, 0.5, 1), still);
    if (dim == 2) return;
    fill(p->s, box3(lo, 0, bottom, hi, lo, 0.5), still);
    fill(p->s, box3(lo, hi, bottom, hi, 1, 0.5), still);
}

TEST_FN cup_result cup_float(const cup *c)
{
    const double a = 1.0 / c->n, lo = 0.5 - 0.5 * c->wide * a;
    pool p = pool_of(c->dim, c->n);
    block b = c->dim == 2 ? block_make(c->wide, c->high, 0, a) : block_make(c->wide, c->wide, c->high, a);
    const int steps = (int)(120 * c->end + 0.5);
    unsigned char *inside;
    cup_result r;
    double arm;
    int id, i, k;
    memset(&r, 0, sizeof r);
    block_hollow(&b, 1);
    r.want = (b.elements / (c->dim == 2 ? 2.0 : 6.0) * pow(a, c->dim) * c->density / 1000
        + pow((c->wide - 2) * a, c->dim - 1) * c->water * a) / pow(c->wide * a, c->dim - 1);
    p.w.material.density = (fsi_real)c->density;
    p.w.material.young = (fsi_real)1e7;
    p.d.pic = (fsi_real)c->pic;
    p.w.body.handles = c->handles;
    p.w.body.contact_points = 2000;
    p.w.body.velocity = v3(c->speed, 0, 0);
    pool_begin(&p);
    p.w.body.position = in_room(c->dim, lo, 0.5 - r.want, lo);
    id = world_add(&p.w, &b);
    for (i = 0; i < b.vertices && c->held; i++) {
        fsi_elastic_attachment_desc pin = fsi_elastic_default_attachment_desc();
        if (height_of(c->dim, b.x[i]) < (c->high - 0.5) * a) continue;
        pin.body = id;
        pin.vertex = i;
        pin.target = fsi_v3_add(b.x[i], p.w.body.position);
        CHECK(fsi_elastic_attach(p.w.s, &pin, NULL) == FSI_OK);
    }
    arm = pool_height(&p, 0) - (0.5 - r.want);
    pool_immerse(&p);
    cup_fill(&p, lo, 0.5 - r.want, c->water * a, c->speed);

    /* Who is in it, before and after. */
    inside = (unsigned char *)malloc((size_t)p.s->count);
    for (i = 0; i < p.s->count; i++)
        r.held += inside[i] = (unsigned char)is_in_cup(fsi_elastic_surface(p.w.s, id), c->dim, p.s->position[i]);
    for (k = 1; k <= steps && step_ok(p.s, 1.0 / 120); k++) {
        const fsi_vec3 rim = fsi_elastic_surface(p.w.s, id)->box.hi;
        for (i = 0; i < p.s->count; i++) /* spray over the rim goes through no wall */
            if (height_of(c->dim, p.s->position[i]) > height_of(c->dim, rim)) inside[i] = 2;
        if (k <= steps / 2) continue;
        r.draft += draft_of(&p, arm) / (steps - steps / 2);
        r.volume += p.s->stats.volume / rest_volume(p.s) / (steps - steps / 2);
    }
    for (i = 0; i < p.s->count; i++) {
        const int now = is_in_cup(fsi_elastic_surface(p.w.s, id), c->dim, p.s->position[i]);
        r.out += inside[i] == 1 && !now;
        r.in += inside[i] == 0 && now;
    }
    r.wet = count_wet(&p, 0);
    free(inside);
    pool_end(&p);
    block_free(&b);
    return r;
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

/* Angular frequency of that beam in a full tank of n cells a side, or in vacuum (wet 0), which begins with the velocities of
   its first mode: with the second one in it vacuum's frequency would be 1 % off. */
TEST_FN double beam_swing(int wet, int n, double density, double young, double dt, int substeps)
{
    pool p = pool_of(2, n);
    block b = block_make(4, 16, 0, 0.025);
    fsi_vec3 *x = (fsi_vec3 *)malloc(2 * (size_t)b.vertices * sizeof *x), *v = x + b.vertices;
    double was = 0, now, first = 0, last = 0;
    int id, j, step, passes = 0;
    p.w.desc.gravity = p.d.gravity = v3(0, 0, 0);
    p.w.material.density = (fsi_real)density;
    p.w.material.young = (fsi_real)young;
    p.w.material.poisson = p.w.material.damping = 0;
    p.w.desc.substeps = substeps;
    p.w.desc.time_order = wet ? 1 : 2;
    pool_begin(&p);
    id = pool_add(&p, &b, 0.45, 0);
    CHECK(fsi_elastic_vertices(p.w.s, id, x, v) == FSI_OK);
    for (j = 0; j < b.vertices; j++) v[j] = v3(0.05 * beam_mode((double)b.x[j].y / 0.4), 0, 0);
    CHECK(fsi_elastic_set_vertices(p.w.s, id, x, v) == FSI_OK);
    for (j = 0; j < 5; j++) {
        fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
        a.body = id;
        a.vertex = block_at(&b, j, 0, 0);
        a.target = fsi_v3_add(b.x[a.vertex], p.w.body.position);
        CHECK(fsi_elastic_attach(p.w.s, &a, NULL) == FSI_OK);
    }
    if (wet) pool_immerse(&p);
    if (wet) pool_fill(&p, 1);
    for (step = 1; passes < 3 && step * dt < 16; step++, was = now) {
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
