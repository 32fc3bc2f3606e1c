/* test_couple.h - scenes of a liquid and thin solids in 2D for the tests of fsi_couple.h.
   SPDX-License-Identifier: MIT

   Include test_shell.h first. Lengths of the calls are in cells, the scene's cells are millimetres:
      pair p;
      pair_begin(&p, 48);              // p.l, p.e, p.c.desc, p.c.material[] may be changed before pair_make
      pair_points(&p, 8, 40, 1, 14);
      pair_make(&p);
      pair_drop(&p, 24, 24, 8, 0, -0.2);
      ...
      pair_end(&p);                    // and nothing is lost */
#ifndef FSI_TEST_COUPLE_H
#define FSI_TEST_COUPLE_H

#define REAL(x) ((fsi_real)(x))
#define CELL 1e-3 /* [m] */

typedef struct pair {
    fsi_context context;
    fsi_levelset_desc l;
    fsi_couple_desc e;
    scene c;
    fsi_levelset *water;
    fsi_shell *solid;
    fsi_couple *both;
    /* since pair_make */
    int substeps, newton, most_below;
    double least, error; /* smallest distance, in cells; largest |volume/target - 1| */
} pair;

TEST_FN void pair_begin(pair *p, int n)
{
    memset(p, 0, sizeof *p);
    p->context = fsi_default_context();
    p->l = fsi_levelset_default_desc();
    p->l.context = &p->context;
    p->l.dim = 2;
    p->l.n[0] = p->l.n[1] = n;
    p->l.dx = REAL(CELL);
    p->l.gravity = v3(0, -9.81, 0);
    p->l.surface_tension = REAL(0.05);
    p->e = fsi_couple_default_desc();
    p->c = scene_empty();
    p->c.context = &p->context;
    p->c.desc.dim = 2;
    p->c.desc.contact = 0;
    p->c.desc.gravity = v3(0, -9.81, 0);
    p->c.material[0].thickness = REAL(2e-4);
    p->c.material[0].young = REAL(1e5);
}

/* Points of 1 kg/m from (from, y) to `to`. */
TEST_FN void pair_points(pair *p, double from, double to, double spacing, double y)
{
    double x;
    for (x = from; x <= to + 1e-9; x += spacing) scene_point(&p->c, x * CELL, y * CELL, 0, 1);
}

/* A string of n segments at height y. */
TEST_FN int pair_string(pair *p, int n, double from, double to, double y)
{
    return scene_rod(&p->c, n, v3(from * CELL, y * CELL, 0), v3(to * CELL, y * CELL, 0));
}

/* Liquid and solid that know nothing of each other; `both` stays NULL. */
TEST_FN void pair_make_apart(pair *p)
{
    if (!CHECK(fsi_levelset_create(&p->water, &p->l) == FSI_OK)) printf("%s\n", p->context.error.message), exit(1);
    p->solid = scene_make(&p->c);
}

TEST_FN void pair_make(pair *p)
{
    pair_make_apart(p);
    p->e.liquid = p->water;
    p->e.shell = p->solid;
    if (!CHECK(fsi_couple_create(&p->both, &p->e) == FSI_OK)) printf("%s\n", p->context.error.message), exit(1);
    p->least = 8;
}

TEST_FN void pair_drop(pair *p, double x, double y, double radius, double u, double v)
{
    CHECK(fsi_levelset_fill_sphere(p->water, v3(x * CELL, y * CELL, 0), REAL(radius * CELL), v3(u, v, 0), NULL) ==
          FSI_OK);
}

TEST_FN void pair_pin(pair *p)
{
    int i;
    for (i = 0; i < p->solid->vertex_count; i++) p->solid->pinned[i] = 1;
}

TEST_FN int pair_step(pair *p, double dt)
{
    const fsi_couple_stats *s = &p->both->stats;
    if (!CHECK(fsi_couple_step(p->both, REAL(dt)) == FSI_OK)) {
        printf("   at %g s: %s\n", p->both->time, fsi_couple_error(p->both)->message);
        return 0;
    }
    p->substeps += s->substeps;
    p->newton += s->newton;
    p->least = fmin(p->least, s->min_distance / CELL);
    p->error = fmax(p->error, fabs(s->volume_error));
    return CHECK(s->min_distance > 0) && CHECK(fsi_is_finite(s->momentum[0] + s->momentum[1]));
}

/* Cells of liquid whose centres are below a height [cells]. */
TEST_FN int pair_below(const pair *p, double y)
{
    const fsi_grid *g = p->water->grid;
    int b, e, corner[3], count = 0;
    for (b = 0; b < g->block_count; b++) {
        fsi_grid_corner(g, b, corner);
        for (e = 0; e < g->block_cells; e++)
            count += p->water->phi->value[b * g->block_cells + e] < 0 && corner[1] + (e >> 3) + 0.5 < y;
    }
    return count;
}

/* Height of the liquid's centre [cells]. */
TEST_FN double pair_height(const pair *p)
{
    double sum = 0, volume = 0;
    int i;
    for (i = 0; i < p->water->component_count; i++) {
        sum += p->water->component[i].shape.volume * (double)p->water->component[i].shape.centroid.y;
        volume += p->water->component[i].shape.volume;
    }
    return sum / volume / CELL;
}

/* A square of the lengths 2 a and 2 b about (x, y), in 2D. */
TEST_FN fsi_mesh *square(double x, double y, double a, double b)
{
    static const int edges[8] = { 0, 3, 3, 2, 2, 1, 1, 0 };
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *m = NULL;
    fsi_vec3 v[4];
    int i;
    for (i = 0; i < 4; i++) v[i] = v3((x + (i == 1 || i == 2 ? a : -a)) * CELL, (y + (i > 1 ? b : -b)) * CELL, 0);
    d.corners = 2;
    d.vertices = v;
    d.vertex_count = 4;
    d.elements = edges;
    d.element_count = 4;
    if (!CHECK(fsi_mesh_create(&m, &d) == FSI_OK)) exit(1);
    return m;
}

TEST_FN void pair_end(pair *p)
{
    fsi_couple_destroy(p->both);
    fsi_shell_destroy(p->solid);
    fsi_levelset_destroy(p->water);
    CHECK(p->context.bytes == 0);
    scene_free(&p->c);
}

#endif
