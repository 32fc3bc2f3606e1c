/* coupled_bits.c - prints a hash of a drop that falls on cloth and rod in 3D, which must be the same at every -O level
   of a compiler: it runs
   fsi_couple.h and all headers below it.
   SPDX-License-Identifier: MIT */
#define FSI_STATIC
#define FSI_IMPLEMENTATION
#include "fsi_couple.h"
#include <stdio.h>

static fsi_vec3 v3(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }

/* Two layers of cloth, the lower one held, and a rod that is sewn to the upper one. */
static fsi_status make_solid(fsi_shell **out)
{
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell_material m = fsi_shell_default_material();
    fsi_vec3 x[40];
    fsi_status status;
    int triangle[200], segment[8], i, j, k;
    for (k = 0; k < 2; k++) for (i = 0; i < 4; i++) for (j = 0; j < 4; j++) {
        int *t = triangle + 6 * (9 * k + 3 * i + j);
        const int p = 16 * k + 4 * i + j;
        x[p] = v3(0.003 + 0.002 * i + 0.0003 * k, 0.0031 + 0.002 * j, 0.004 + 0.0008 * k);
        if (i > 2 || j > 2) continue;
        t[0] = p, t[1] = p + 4, t[2] = t[3] = p + 1, t[4] = p + 4, t[5] = p + 5;
    }
    for (i = 0; i < 3; i++) {
        x[32 + i] = v3(0.0105 + 0.001 * i, 0.009, 0.005 + 0.0003 * i * i);
        segment[2 * i] = 31 + i;
        segment[2 * i + 1] = 32 + i;
    }
    d.vertices = x;
    d.vertex_count = 35;
    d.triangles = triangle;
    d.triangle_count = 36;
    d.segments = segment;
    d.segment_count = 3;
    d.materials = &m;
    d.material_count = 1;
    d.friction = (fsi_real)0.3;
    d.contact_range = (fsi_real)4e-4;
    m.young = (fsi_real)1e5;
    m.thickness = m.radius = (fsi_real)2e-4;
    status = fsi_shell_create(out, &d);
    for (i = 0; status == FSI_OK && i < 16; i++) (*out)->pinned[i] = 1;
    return status;
}

int main(void)
{
    fsi_levelset_desc l = fsi_levelset_default_desc();
    fsi_couple_desc e = fsi_couple_default_desc();
    fsi_levelset *water = NULL;
    fsi_shell *solid = NULL;
    fsi_couple *both = NULL;
    int k, met = 0;
    l.n[0] = l.n[1] = l.n[2] = 14;
    l.dx = (fsi_real)1e-3;
    l.surface_tension = (fsi_real)0.05;
    if (fsi_levelset_create(&water, &l) != FSI_OK || make_solid(&solid) != FSI_OK) return 1;
    if (fsi_levelset_fill_sphere(water, v3(0.0071, 0.0068, 0.0092), (fsi_real)0.0028, v3(0, 0.1, -0.4), NULL) != FSI_OK) return 1;
    e.liquid = water;
    e.shell = solid;
    e.adhesion = 20;
    if (fsi_couple_create(&both, &e) != FSI_OK) return 1;
    for (k = 0; k < 10; k++) {
        if (fsi_couple_step(both, (fsi_real)1e-3) != FSI_OK) return 1;
        met += both->stats.faces > 0;
    }
    printf("%016llx %d steps of %d with faces that move\n", (unsigned long long)fsi_couple_hash(both), met, k);
    fsi_couple_destroy(both);
    fsi_shell_destroy(solid);
    fsi_levelset_destroy(water);
    return met == 0;
}
