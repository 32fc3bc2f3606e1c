/* test_pressure.h - boxes of liquid, lists of solid faces, and divergences for the tests of fsi_pressure.h.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_PRESSURE_H
#define FSI_TEST_PRESSURE_H

/* ---- scenes --------------------------------------------------------------------------------------------------- */

typedef struct scene {
    fsi_context c;
    fsi_grid *g;
    fsi_field *phi, *surface, *beta[3];
    unsigned char *cell;
    fsi_pressure *s;
    fsi_pressure_flow f;
} scene;

TEST_FN size_t entries(const scene *t) { return (size_t)t->g->block_count * (size_t)t->g->block_cells; }
TEST_FN size_t entry_of(const scene *t, int i, int j, int k) { return (size_t)fsi_grid_entry(t->g, i, j, k); }

/* A box with all of its blocks, all liquid. The scene must not move. */
TEST_FN void scene_make(scene *t, int dim, int nx, int ny, int nz, double dx)
{
    fsi_grid_desc d = fsi_grid_default_desc();
    fsi_pressure_desc e = fsi_pressure_default_desc();
    unsigned char *wanted;
    size_t places;
    int a, i, j, k;
    memset(t, 0, sizeof *t);
    t->c = fsi_default_context();
    d.context = e.context = &t->c;
    d.dim = dim;
    d.n[0] = nx, d.n[1] = ny, d.n[2] = nz;
    d.dx = (fsi_real)dx;
    e.tolerance = TOL(1e-10, 1e-6);
    CHECK(fsi_grid_create(&t->g, &d) == FSI_OK && fsi_pressure_create(&t->s, &e) == FSI_OK);
    places = (size_t)t->g->blocks[0] * (size_t)t->g->blocks[1] * (size_t)t->g->blocks[2];
    wanted = (unsigned char *)malloc(places);
    memset(wanted, 1, places);
    CHECK(fsi_grid_set_blocks(t->g, wanted) == FSI_OK);
    free(wanted);
    t->f = fsi_pressure_default_flow();
    for (a = 0; a < dim; a++)
        CHECK(fsi_grid_add_field(t->g, (fsi_grid_place)((int)FSI_FACES_X + a), 0, &t->f.u[a]) == FSI_OK);
    CHECK(fsi_grid_add_field(t->g, FSI_CELLS, 1, &t->phi) == FSI_OK &&
          fsi_grid_add_field(t->g, FSI_CELLS, 0, &t->surface) == FSI_OK);
    CHECK(fsi_grid_add_field(t->g, FSI_CELLS, 0, &t->f.pressure) == FSI_OK);
    t->f.dt = (fsi_real)0.01;
    t->f.cell = t->cell = (unsigned char *)calloc(entries(t), 1);
    for (k = 0; k < t->g->n[2]; k++)
        for (j = 0; j < ny; j++)
            for (i = 0; i < nx; i++) t->cell[entry_of(t, i, j, k)] = FSI_CELL_LIQUID;
}

TEST_FN void scene_free(scene *t)
{
    fsi_pressure_destroy(t->s);
    fsi_grid_destroy(t->g);
    free(t->cell);
}

/* Every cell of the box in turn: for (walk...) with i, j, k. */

#define EACH_CELL(t, i, j, k) \
    for (k = 0; k < (t)->g->n[2]; k++) for (j = 0; j < (t)->g->n[1]; j++) for (i = 0; i < (t)->g->n[0]; i++)

TEST_FN fsi_vec3 middle(const scene *t, int place, int i, int j, int k)
{
    return fsi_grid_position(t->g, (fsi_grid_place)place, i, j, k);
}

/* Every face of axis a in turn. */
#define EACH_FACE(t, a, i, j, k)                                                                 \
    for (k = 0; k < (t)->g->n[2] + ((a) == 2); k++) for (j = 0; j < (t)->g->n[1] + ((a) == 1); j++) \
        for (i = 0; i < (t)->g->n[0] + ((a) == 0); i++)

/* Liquid where phi < 0. */
TEST_FN void scene_fill(scene *t, double (*phi)(fsi_vec3 x, const double *arg), const double *arg)
{
    int i, j, k;
    EACH_CELL(t, i, j, k) {
        const size_t e = entry_of(t, i, j, k);
        t->phi->value[e] = (fsi_real)phi(middle(t, 0, i, j, k), arg);
        t->cell[e] = t->phi->value[e] < 0 ? FSI_CELL_LIQUID : FSI_CELL_AIR;
    }
    t->f.phi = t->phi;
}

TEST_FN void scene_velocity(scene *t, int a, double v)
{
    int i, j, k;
    EACH_FACE(t, a, i, j, k) t->f.u[a]->value[entry_of(t, i, j, k)] = (fsi_real)v;
}

TEST_FN int kind_at(const scene *t, int i, int j, int k)
{
    if (i < 0 || j < 0 || k < 0 || i >= t->g->n[0] || j >= t->g->n[1] || k >= t->g->n[2]) return -1;
    return t->cell[entry_of(t, i, j, k)];
}

/* ---- solids --------------------------------------------------------------------------------------------------- */

typedef struct solid { fsi_grid_faces f; int *entry; fsi_real *share; } solid;

/* share(axis, centre of the face, arg) > 0 makes a face of the list. */
TEST_FN void solid_make(solid *b, const scene *t, double (*share)(int axis, fsi_vec3 x, const double *arg),
                        const double *arg)
{
    const fsi_grid *g = t->g;
    int a, e, count = 0;
    const int all = g->block_count * g->block_cells;
    memset(b, 0, sizeof *b);
    b->entry = (int *)malloc(sizeof(int) * (size_t)(3 * all));
    b->share = (fsi_real *)malloc(sizeof(fsi_real) * (size_t)(3 * all));
    for (a = 0; a < 3; a++) {
        b->f.first[a] = count;
        for (e = 0; e < all && a < g->dim; e++) {
            const int c = e % g->block_cells;
            int at[3];
            double v;
            fsi_grid_corner(g, e / g->block_cells, at);
            at[0] += c & 7, at[1] += c >> 3 & 7, at[2] += c >> 6;
            if (at[0] >= g->n[0] + (a == 0) || at[1] >= g->n[1] + (a == 1) || at[2] >= g->n[2] + (a == 2)) continue;
            v = share(a, fsi_grid_position(g, (fsi_grid_place)(1 + a), at[0], at[1], at[2]), arg);
            if (!(v > 0)) continue;
            b->entry[count] = e;
            b->share[count++] = (fsi_real)v;
        }
    }
    b->f.first[3] = b->f.count = count;
    b->f.cookie = FSI__COOKIE('f', fsi_grid_faces);
    b->f.entry = b->entry;
    b->f.solid = b->share;
}

TEST_FN void solid_free(solid *b)
{
    free(b->entry);
    free(b->share);
}

/* Share of a face of edge dx in a disc or ball: arg = centre, radius, dx, dim. Exact along one direction, 64 slices
   along the other. */
TEST_FN double share_ball(int axis, fsi_vec3 x, const double *arg)
{
    double at[3], d[3], sum = 0;
    const double h = arg[4] / 2;
    const int u = (axis + 1) % 3 == 2 && arg[5] < 2.5 ? (axis + 2) % 3 : (axis + 1) % 3, w = 3 - axis - u,
              slices = arg[5] < 2.5 ? 1 : 64;
    int s;
    at[0] = (double)x.x, at[1] = (double)x.y, at[2] = arg[5] < 2.5 ? arg[2] : (double)x.z;
    for (s = 0; s < 3; s++) d[s] = at[s] - arg[s];
    for (s = 0; s < slices; s++) {
        const double o = slices == 1 ? 0 : d[w] - h + (2 * s + 1) * h / slices,
                     r2 = arg[3] * arg[3] - d[axis] * d[axis] - o * o, r = r2 > 0 ? sqrt(r2) : 0;
        const double lo = fmax(d[u] - h, -r), hi = fmin(d[u] + h, r);
        sum += hi > lo ? (hi - lo) / (2 * h) : 0;
    }
    return sum / slices > 1 - 1e-12 ? 1 : sum / slices;
}

/* The velocity that a projection gives to a solid's rigid motion. */
TEST_FN fsi_pressure_solid body_of(const solid *b, fsi_vec3 center, double mass, double inertia)
{
    fsi_pressure_solid s;
    memset(&s, 0, sizeof s);
    s.faces = &b->f;
    s.coupled = 1;
    s.mass = mass;
    s.center = center;
    s.inverse_inertia = fsi_m3_scale(fsi_m3_identity(), (fsi_real)(1 / inertia));
    return s;
}

/* Share of the face that no solid covers, and the solids' part of the flux. */
TEST_FN double open_of(const scene *t, int a, size_t entry, double *flux)
{
    double closed = 0, moved = 0;
    int k, f;
    for (k = 0; k < t->f.solid_count; k++) {
        const fsi_pressure_solid *b = t->f.solids + k;
        for (f = b->faces->first[a]; f < b->faces->first[a + 1]; f++) {
            const int c = b->faces->entry[f] % t->g->block_cells;
            int at[3];
            fsi_vec3 v;
            if ((size_t)b->faces->entry[f] != entry) continue;
            fsi_grid_corner(t->g, b->faces->entry[f] / t->g->block_cells, at);
            v = fsi_rigid_velocity(b->linear, b->angular, b->center,
                                   middle(t, 1 + a, at[0] + (c & 7), at[1] + (c >> 3 & 7), at[2] + (c >> 6)));
            if (!b->coupled)
                v = fsi_v3(b->velocity ? b->velocity[f] : 0, b->velocity ? b->velocity[f] : 0,
                           b->velocity ? b->velocity[f] : 0);
            closed += (double)b->faces->solid[f];
            moved += (double)b->faces->solid[f] * (double)(a == 0 ? v.x : a == 1 ? v.y : v.z);
        }
    }
    if (flux) *flux = closed > 1 ? moved / closed : moved;
    return closed < 1 - 1e-6 ? 1 - closed : 0;
}

/* Largest |divergence - source| of liquid cells, the solids' motion included. */
TEST_FN double divergence_of(const scene *t)
{
    double worst = 0;
    int i, j, k, a;
    EACH_CELL(t, i, j, k) {
        double div = 0;
        if (kind_at(t, i, j, k) != FSI_CELL_LIQUID) continue;
        for (a = 0; a < t->g->dim; a++) {
            const size_t lower = entry_of(t, i, j, k), upper = entry_of(t, i + (a == 0), j + (a == 1), k + (a == 2));
            double fl, fu;
            const double ol = open_of(t, a, lower, &fl), ou = open_of(t, a, upper, &fu);
            div += ou * (double)t->f.u[a]->value[upper] + fu - ol * (double)t->f.u[a]->value[lower] - fl;
        }
        if (t->f.source) div -= (double)t->g->dx * (double)t->f.source->value[entry_of(t, i, j, k)];
        worst = fmax(worst, fabs(div / (double)t->g->dx));
        if (!(div == div)) return HUGE_VAL;
    }
    return worst;
}

TEST_FN double pool(fsi_vec3 x, const double *arg) { return (double)x.y - arg[0]; }
TEST_FN double ball(fsi_vec3 x, const double *arg)
{
    return (double)fsi_v3_norm(fsi_v3_sub(x, fsi_v3((fsi_real)arg[0], (fsi_real)arg[1], (fsi_real)arg[2]))) - arg[3];
}

/* a x = b in place, with pivoting; a is n x (n + 1) with b as its last column, which becomes x. */
TEST_FN void eliminate(double *a, int n)
{
    int i, j, k;
    for (k = 0; k < n; k++) {
        int best = k;
        for (i = k + 1; i < n; i++) if (fabs(a[i * (n + 1) + k]) > fabs(a[best * (n + 1) + k])) best = i;
        for (j = 0; j <= n; j++) {
            const double s = a[k * (n + 1) + j];
            a[k * (n + 1) + j] = a[best * (n + 1) + j];
            a[best * (n + 1) + j] = s;
        }
        for (i = 0; i < n; i++) {
            const double f = a[i * (n + 1) + k] / a[k * (n + 1) + k];
            for (j = k; j <= n && i != k; j++) a[i * (n + 1) + j] -= f * a[k * (n + 1) + j];
        }
    }
    for (i = 0; i < n; i++) a[i * (n + 1) + n] /= a[i * (n + 1) + i];
}

#endif /* FSI_TEST_PRESSURE_H */
