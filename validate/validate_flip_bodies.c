/* validate_flip_bodies.c - elastic bodies in the liquid of particles and grid, at full size.
   SPDX-License-Identifier: MIT

   A mat under a falling column against one that is solved together with the pressure; bodies with handles against full
   ones; a clamped beam under water against its added mass; what passes through a cup and a thin mat, with and without
   the constraint that ends paths at surfaces; how deep a cup rides. Prints lines `key value unit`, and `key value unit
   reference tolerance pass|fail` where something is demanded. A word runs one part. */
#define FSI_IMPLEMENTATION
#include "../examples/kit/kit.h"
#include "../fsi_mesh.h"
static fsi_mesh_hit descend(const fsi_mesh *m, int face, fsi_vec3 x);
#define fsi__mesh_descend descend /* fsi_flip.h calls it where it ends paths */
#include "../tests/kit/flip_project.h"
#undef fsi__mesh_descend
#include "../fsi_flip.h"
#include "../tests/kit/flip_monolithic.h"
#include "validate.h"

static int open_surfaces; /* 1: no path ends at a surface */

static fsi_mesh_hit descend(const fsi_mesh *m, int face, fsi_vec3 x)
{
    fsi_mesh_hit hit = fsi__mesh_descend(m, face, x);
    if (open_surfaces) hit.side = 1;
    if (open_surfaces) hit.t = 1e9f;
    return hit;
}

/* ---- in one with the pressure ------------------------------------------------------------------------------------ */

static void run_monolithic(void)
{
    static const mat c[6] = { { 2, 24, 2, 1, 0, 1000, 1e6, 1.0 / 240, 2 }, { 2, 24, 2, 1, 0, 300, 1e6, 1.0 / 240, 2 },
        { 2, 48, 2, 1, 0, 1000, 4e6, 1.0 / 240, 2 }, { 2, 48, 4, 1, 0, 1000, 1e6, 1.0 / 240, 2 },
        { 2, 24, 2, 1, 0, 1000, 1e6, 1.0 / 60, 2 }, { 3, 8, 1, 1, 0, 1000, 2e5, 1.0 / 240, 1 } };
    int k;
    for (k = 0; k < 6; k++) {
        double mean[2];
        char key[96];
        const double split = mat_sag(&c[k], 0, &mean[0]), whole = mat_sag(&c[k], 1, &mean[1]);
        snprintf(key, sizeof key, "mat_%dd_%d_cells_%d_thick_density_%g_%g_hz", c[k].dim, c[k].n, c[k].thick,
            c[k].density, floor(1 / c[k].dt + 0.5));
        say(whole, "m", "%s_sag_in_one", key);
        must(100 * (split / whole - 1), 0, 15, "%", "%s_sag", key);
        must(100 * (mean[0] / mean[1] - 1), 0, 15, "%", "%s_late_sag", key);
    }
}

/* ---- reduced against full ---------------------------------------------------------------------------------------- */

static void run_reduced(void)
{
    static const double density[2] = { 540, 1000 };
    static const int handles[3] = { 20, 30, 45 };
    int k, j, wet;
    for (k = 0; k < 2; k++) {
        mat c = { 2, 48, 4, 1, 0, 1000, 2e6, 1.0 / 240, 0.5 };
        double mean, full;
        c.density = density[k];
        full = mat_sag(&c, 0, &mean);
        for (j = 0; j < 3; j++) {
            c.handles = handles[j];
            must(100 * (mat_sag(&c, 0, &mean) / full - 1), 0, 2, "%", "mat_density_%g_%d_handles_sag", density[k],
                handles[j]);
        }
    }
    for (j = 0; j < 4; j++) {
        static const int of[4] = { 0, 8, 12, 20 };
        double lift;
        must(raft_draft(48, 540, of[j], &lift, &wet), 0.54, 0.0108, "1", "raft_density_540_%d_handles_draft", of[j]);
    }
}

/* ---- a clamped beam ---------------------------------------------------------------------------------------------- */

/* Frequencies over that of the beam with the added mass of a fine grid: at omega = 18/s, steps of 1/60 s and shorter. */
static void run_beam(void)
{
    static const double density[2] = { 3000, 1000 };
    const double omega = 18, added = beam_added_mass(160), dry = beam_swing(0, 40, 3000, 1e6, 2e-3, 1);
    int k, n, j;
    for (k = 0; k < 2; k++) for (n = 40; n <= 80; n *= 2) for (j = 0; j < 4; j++) {
        const double own = density[k] * 0.1 * 0.4 / 4, part = own / (own + added), dt = 1.0 / 60 / (1 << j);
        const double young = 1e6 * density[k] / 3000 * pow(omega / sqrt(part) / dry, 2);
        const double got = beam_swing(1, n, density[k], young, dt, 1) / omega;
        char key[80];
        snprintf(key, sizeof key, "beam_part_%.2f_%d_cells_omega_h_%g", part, n, omega * dt);
        if (omega * dt < 0.31 && part > 0.3) must(100 * (got - 1), 0, 8, "%", "%s_frequency", key);
        else say(100 * (got - 1), "%", "%s_frequency", key);
    }
}

/* ---- through surfaces -------------------------------------------------------------------------------------------- */

static void run_cup(void)
{
    static const cup c[4] = { { 2, 24, 12, 8, 4, 0, 1, 500, 0.03, 0.5, 5 }, { 2, 48, 24, 16, 8, 0, 1, 500, 0.03, 0.5, 5 },
        { 2, 24, 12, 8, 4, 12, 1, 500, 0.03, 0.5, 5 }, { 3, 12, 7, 5, 2, 0, 0, 500, 0.03, 0.5, 2 } };
    int k;
    for (k = 0; k < 4; k++) {
        char key[64];
        cup_result r = cup_float(&c[k]);
        snprintf(key, sizeof key, "cup_%dd_%d_cells_%d_handles", c[k].dim, c[k].n, c[k].handles);
        must(100.0 * (r.out + r.in) / r.held, 0, 0.1, "%", "%s_through_its_walls", key);
        must(r.wet, 0, 0, "particles", "%s_in_its_walls", key);
        open_surfaces = 1;
        r = cup_float(&c[k]);
        open_surfaces = 0;
        say(100.0 * (r.out + r.in) / r.held, "%", "%s_without_constraints_through_its_walls", key);
    }
}

/* How much deeper a cup rides with water in it. */
static void run_draft(void)
{
    static const double pic[2] = { 1, 0.03 }, density[2] = { 500, 1000 };
    int k, j;
    for (k = 0; k < 2; k++) for (j = 0; j < 2; j++) {
        cup c = { 2, 24, 12, 8, 0, 0, 0, 0, 0, 0, 4 };
        cup_result empty, full;
        c.density = density[j];
        c.pic = pic[k];
        empty = cup_float(&c);
        c.water = 4;
        full = cup_float(&c);
        must(100 * ((full.draft - empty.draft) / (full.want - empty.want) - 1), 0, 10, "%",
            "cup_density_%g_pic_%g_deeper_by_water", density[j], pic[k]);
        say(100 * (full.volume - 1), "%", "cup_density_%g_pic_%g_volume", density[j], pic[k]);
    }
}

static void run_mat(void)
{
    int thick, wet, count, below;
    double lowest;
    for (thick = 1; thick <= 2; thick++) {
        below = mat_leak(48, thick, &wet, &count, &lowest);
        must(100.0 * below / count, 0, 0.1, "%", "mat_of_%g_dx_behind_it", 0.5 * thick);
        must(wet, 0, 0, "particles", "mat_of_%g_dx_in_it", 0.5 * thick);
        open_surfaces = 1;
        below = mat_leak(48, thick, &wet, &count, &lowest);
        open_surfaces = 0;
        say(100.0 * below / count, "%", "mat_of_%g_dx_without_constraints_behind_it", 0.5 * thick);
    }
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void);
    } parts[] = {{"monolithic", run_monolithic}, {"reduced", run_reduced}, {"beam", run_beam},
                 {"cup", run_cup},               {"draft", run_draft},     {"mat", run_mat}};
    const int count = (int)(sizeof parts / sizeof parts[0]);
    const char *only = NULL;
    int k;
    ex_init(&app, "validate_flip_bodies", "Elastic bodies in the liquid of particles and grid.");
    app.res = 100;
    app.threads = 1;
    app.out = "docs";
    ex_operand(&app, "part", &only, "monolithic, reduced, beam, cup, draft or mat; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    for (k = 0; k < count; k++) if (!only || strcmp(only, parts[k].name) == 0) parts[k].run();
    ex_pool_stop(&app.pool);
    return test__run.faults > 0;
}
