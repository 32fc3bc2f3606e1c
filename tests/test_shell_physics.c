/* test_shell_physics.c - shells and rods against mechanics: statics, buckling, vibration, free flight, order of
   accuracy, damping, air.
   SPDX-License-Identifier: MIT

   The cases of shell_cases.h at the smallest size that shows them; validate_shell.c runs them at full size. */
#include "kit/test.h"
#include "../fsi_shell.h"
#include "kit/test_shell.h"
#include "kit/shell_cases.h"

static beam_kind rod(int n)
{
    beam_kind k;
    memset(&k, 0, sizeof k);
    k.dim = 3;
    k.nu = 0.3;
    k.thickness = 0.005;
    k.n = n;
    return k;
}

static beam_kind chain(int n)
{
    beam_kind k = rod(n);
    k.dim = 2;
    k.thickness = 0.01;
    return k;
}

static beam_kind strip(int n, double nu)
{
    beam_kind k = rod(n);
    k.sheet = 1;
    k.bending = FSI_SHELL_SHAPE_OPERATOR;
    k.mesh = EQUILATERAL;
    k.nu = nu;
    k.width = 0.1;
    k.thickness = 0.02;
    k.across = 2;
    return k;
}

/* ---- statics ---------------------------------------------------------------------------------------------------- */

/* Float holds a tip's place to some 1e-7 of the length: statics of large deflections is good there, buckling is not. */
static void test_cantilevers_bend_as_the_elastica(void)
{
    beam_kind k[3];
    double drop, reach;
    int i;
    k[0] = rod(20);
    k[1] = chain(20);
    k[2] = strip(16, 0);
    for (i = 0; i < 3; i++) {
        CHECK(cantilever(&k[i], 1, 0, &drop, &reach)); /* elastica_cantilever_tip.csv */
        CHECK_NEAR(drop, 0.301721, 0.01 * 0.301721);
        CHECK_NEAR(reach, 0.943567, 0.01 * 0.943567);
        CHECK(cantilever(&k[i], 10, 0, &drop, &reach));
        CHECK_NEAR(drop, 0.810609, 0.01 * 0.810609);
        CHECK_NEAR(reach, 0.445004, 0.01 * 0.445004);
        CHECK(cantilever(&k[i], 0, 1, &drop, &reach)); /* own weight */
        CHECK_NEAR(drop / reach, 0.124562, 0.02 * 0.124562);
        CHECK(cantilever(&k[i], 0, 10, &drop, &reach));
        CHECK_NEAR(drop / reach, 1.066802, 0.02 * 1.066802);
    }
}

static void test_a_chain_hangs_as_a_catenary(void)
{
    beam_kind k[3];
    int i;
    k[0] = rod(24);
    k[1] = chain(24);
    k[2] = strip(24, 0);
    for (i = 0; i < (TEST_SLOWED ? 2 : 3); i++) CHECK_NEAR(catenary(&k[i]), 1, 0.01);
}

static void test_columns_buckle_at_eulers_loads(void)
{
    const beam_kind k[3] = { rod(16), chain(16), strip(16, 0) };
    int i, ends;
    for (i = 0; i < (TEST_SLOWED ? 2 : 3); i++)
        for (ends = 0; ends < 4; ends++) CHECK_NEAR(euler(&k[i], (euler_ends)ends), 1, 0.03);
    CHECK_NEAR(self_buckling(&k[0]), 1, 0.03);
}

static void test_deep_beams_buckle_sideways(void)
{
    beam_kind k = rod(16), w = strip(20, 0.3);
    CHECK_NEAR(lateral(&k, 0), 1, 0.05);
    CHECK_NEAR(lateral(&k, 1), 1, 0.05);
    w.width = 0.05;
    w.thickness = 0.002;
    w.mesh = RIGHT;
    if (!TEST_SLOWED) CHECK_NEAR(lateral(&w, 0), 1, 0.05);
}

static void test_twisted_rods_leave_their_line_and_their_plane(void)
{
    CHECK_NEAR(michell(31, 0.3), 1, 0.05);
    if (!TEST_SLOWED) CHECK_NEAR(twisted_line(41, 0.3), 1, 0.05);
}

static void test_plates_deflect_as_plate_theory_says(void)
{
    static const plate_kind k[7] = {
        { 0, 0, 12, RIGHT, FSI_SHELL_SHAPE_OPERATOR, 0.3 }, { 0, 0, 16, EQUILATERAL, FSI_SHELL_SHAPE_OPERATOR, 0.3 },
        { 0, 1, 20, EQUILATERAL, FSI_SHELL_SHAPE_OPERATOR, 0 }, { 1, 0, 8, EQUILATERAL, FSI_SHELL_SHAPE_OPERATOR, 0.3 },
        { 1, 1, 10, EQUILATERAL, FSI_SHELL_SHAPE_OPERATOR, 0.3 }, { 1, 0, 8, IRREGULAR, FSI_SHELL_SHAPE_OPERATOR, 0.3 },
        { 0, 1, 16, IRREGULAR, FSI_SHELL_SHAPE_OPERATOR, 0.3 } };
    int i;
    for (i = 0; i < 7; i++) CHECK_NEAR(plate_deflection(&k[i]), 1, k[i].mesh == IRREGULAR ? 0.08 : 0.03);
}

/* A strip, pulled at both ends: longer by F L / (E A), narrower by Poisson's ratio; along warp and weft. */
static void stretch(fsi_shell_membrane membrane, int weft, double *longer, double *narrower)
{
    const double strain = 1e-3, young = 1e6, young_weft = membrane == FSI_SHELL_STVK ? 5e5 : young, t = 1e-3, w = 0.25;
    scene c = scene_empty();
    fsi_vec3 warp[2000];
    fsi_shell_desc d;
    fsi_shell *s = NULL;
    double x[2] = { 0, 0 }, y[2] = { 0, 0 };
    int i, ends = 9, sides = 0;
    scene_sheet(&c, RIGHT, 16, 8, 1, w);
    for (i = 0; i < 2000; i++) warp[i] = weft ? v3(0, 1, 0) : v3(1, 0, 0);
    c.material[0].young = (fsi_real)young;
    c.material[0].young_weft = membrane == FSI_SHELL_STVK ? (fsi_real)young_weft : 0;
    c.material[0].thickness = (fsi_real)t;
    c.material[0].membrane = membrane;
    c.desc.contact = 0;
    c.desc.gravity = v3(0, 0, 0);
    c.desc.tolerance = (fsi_real)1e-8;
    d = scene_desc(&c);
    d.warp = warp;
    if (!CHECK(fsi_shell_create(&s, &d) == FSI_OK)) return;
    for (i = 0; i < c.vertices; i++) {
        const double px = (double)c.x[i].x, py = (double)c.x[i].y, corner = py < 1e-9 || py > w - 1e-9 ? 0.5 : 1;
        const double f = strain * (weft ? young_weft : young) * t * w / (ends - 1) * corner;
        if (px < 1e-9) s->force[i].x = (fsi_real)-f;
        if (px > 1 - 1e-9) s->force[i].x = (fsi_real)f;
    }
    CHECK(settled(s));
    for (i = 0; i < c.vertices; i++) {
        const double px = (double)c.x[i].x, py = (double)c.x[i].y;
        if (px < 1e-9) x[0] += (double)s->position[i].x / ends;
        if (px > 1 - 1e-9) x[1] += (double)s->position[i].x / ends;
        if (py < 1e-9 && ++sides) y[0] += (double)s->position[i].y;
        if (py > w - 1e-9) y[1] += (double)s->position[i].y;
    }
    *longer = (x[1] - x[0] - 1) / strain;
    *narrower = (1 - (y[1] - y[0]) / (sides * w)) / strain;
    fsi_shell_destroy(s);
    scene_free(&c);
}

static void test_a_stretched_strip_shows_youngs_modulus_and_poissons_ratio(void)
{
    double longer, narrower;
    int weft;
    for (weft = 0; weft < 2; weft++) {
        stretch(FSI_SHELL_STVK, weft, &longer, &narrower);
        CHECK_NEAR(longer, 1, TOL(0.003, 0.01));
        CHECK_NEAR(narrower, weft ? 0.15 : 0.3, TOL(0.003, 0.01)); /* nu_21 = nu_12 E2 / E1 */
    }
    stretch(FSI_SHELL_NEO_HOOKEAN, 0, &longer, &narrower);
    CHECK_NEAR(longer, 1, TOL(0.003, 0.01));
    CHECK_NEAR(narrower, 0.3, TOL(0.003, 0.01));
}

/* Stable neo-Hookean, drawn out: W = mu/2 (l^2 + b^2 - 2) - mu (J - 1) + lambda/2 (J - 1)^2 of length l, breadth b and
   J = l b. Free sides:
      dW/db = 0:  b = l (mu + lambda) / (mu + lambda l^2),   P = dW/dl = mu l + b (lambda (J - 1) - mu). */
static void test_rubber_is_drawn_out_as_its_energy_says(void)
{
    const double young = 1.5e6, nu = 0.45, t = 1e-3, w = 0.25, mu = young / (2 * (1 + nu)),
                 lambda = young * nu / (1 - nu * nu) + mu;
    const int nx = 12, ny = 3;
    int kind, k, i;
    for (kind = 0; kind < 2; kind++) for (k = 0; k < 3; k++) {
        static const double lengths[3] = { 1.25, 1.5, 2 };
        const double l = lengths[k], b = l * (mu + lambda) / (mu + lambda * l * l),
                     p = mu * l + b * (lambda * (l * b - 1) - mu);
        scene c = scene_empty();
        fsi_shell *s;
        scene_sheet(&c, RIGHT, nx, ny, 1, w);
        c.material[0].young = (fsi_real)young;
        c.material[0].poisson = (fsi_real)nu;
        c.material[0].thickness = (fsi_real)t;
        c.material[0].membrane = FSI_SHELL_NEO_HOOKEAN;
        c.material[0].bending = (fsi_shell_bending)kind;
        c.desc.gravity = v3(0, 0, 0);
        c.desc.tolerance = (fsi_real)1e-7;
        c.desc.contact = 0;
        s = scene_make(&c);
        for (i = 0; i < c.vertices; i++) {
            const double f = p * t * w / ny * (i % (ny + 1) == 0 || i % (ny + 1) == ny ? 0.5 : 1);
            if (i <= ny) s->force[i].x = (fsi_real)-f;
            if (i >= nx * (ny + 1)) s->force[i].x = (fsi_real)f;
        }
        settle_ok(s);
        for (i = 0; i < c.vertices; i++)
            CHECK_NEAR(apart(s->position[i], s->position[0]), hypot(l * (double)c.x[i].x, b * (double)c.x[i].y),
                       TOL(1e-4, 1e-3));
        CHECK_NEAR(s->stats.elastic_energy,
                   t * w * (mu / 2 * (l * l + b * b - 2) - mu * (l * b - 1) + lambda / 2 * (l * b - 1) * (l * b - 1)),
                   TOL(1e-4, 1e-3) * t * w * young);
        fsi_shell_destroy(s);
        scene_free(&c);
    }
}

/* A strip that is bent by couples at its ends, free at its sides, curves across by Poisson's ratio the other way. */
static void test_a_bent_strip_curves_across_the_other_way(void)
{
    const int nx = 24, ny = 6, half = ny / 2;
    /* w^2 curvature / t small: else it is flattened */
    const double w = 0.25, h = 1.0 / nx, young = 1e7, t = 5e-3, curvature = 0.01;
    double along[2], across[2];
    int k, i;
    for (k = 0; k < 2; k++) {
        const double nu = k ? 0.4 : 0;
        scene c = scene_empty();
        fsi_shell *s;
        const fsi_vec3 *x;
        int a, b, m;
        scene_sheet(&c, RIGHT, nx, ny, 1, w);
        c.material[0].young = (fsi_real)young;
        c.material[0].poisson = (fsi_real)nu;
        c.material[0].thickness = (fsi_real)t;
        c.material[0].bending = FSI_SHELL_SHAPE_OPERATOR;
        c.desc.gravity = v3(0, 0, 0);
        c.desc.tolerance = (fsi_real)1e-7;
        c.desc.contact = 0;
        s = scene_make(&c);
        for (i = 0; i < c.vertices; i++) { /* rows of constant x: a couple of forces on the first two and on the last
                                              two; moment E t^3/12 w curvature */
            const int row = i / (ny + 1);
            const double f =
                young * t * t * t / 12 * w * curvature / h / ny * (i % (ny + 1) == 0 || i % (ny + 1) == ny ? 0.5 : 1);
            if (row == 0 || row == nx) s->force[i].z = (fsi_real)f;
            if (row == 1 || row == nx - 1) s->force[i].z = (fsi_real)-f;
        }
        settle_ok(s);
        x = s->position;
        m = nx / 2 * (ny + 1) + half;
        a = 4 * (ny + 1);
        b = 2;
        along[k] = ((double)x[m - a].z + (double)x[m + a].z - 2 * (double)x[m].z) / (16 * h * h);
        across[k] =
            ((double)x[m - b].z + (double)x[m + b].z - 2 * (double)x[m].z) / ((double)(b * b) * w * w / (ny * ny));
        CHECK_NEAR(along[k], curvature, 0.02 * curvature);
        CHECK_NEAR(across[k], -nu * curvature, 0.03 * curvature);
        fsi_shell_destroy(s);
        scene_free(&c);
    }
}

/* ---- shapes of rest --------------------------------------------------------------------------------------------- */

/* Flat at first, curved at rest: it rolls up into its rest shape, or stays there; a crease folds to its angle. */
static void test_sheets_and_rods_find_their_rest_shape(void)
{
    int kind, i;
    for (kind = 0; kind < 3; kind++) {
        scene c = scene_empty();
        fsi_shell *s;
        fsi_vec3 rest[200];
        if (kind < 2) scene_sheet(&c, EQUILATERAL, 8, 3, 1, 0.3);
        else scene_rod(&c, 8, v3(0, 0, 0), v3(1, 0, 0));
        c.material[0].bending = kind == 0 ? FSI_SHELL_HINGE : FSI_SHELL_SHAPE_OPERATOR;
        for (i = 0; i < c.vertices; i++) { /* round an axis along y, radius 1/2 */
            /* chords of the arc, as long as the rows are apart */
            const double a = 2 * (double)c.x[i].x, side = sin(1.0 / 8) * 8;
            rest[i] = v3(0.5 * sin(a) / side, (double)c.x[i].y, (0.5 - 0.5 * cos(a)) / side);
        }
        scene_rest(&c);
        memcpy(c.rest, rest, (size_t)c.vertices * sizeof *rest);
        c.desc.gravity = v3(0, 0, 0);
        c.desc.contact = 0;
        c.desc.tolerance = (fsi_real)1e-6;
        s = scene_make(&c);
        settle_ok(s);
        CHECK_NEAR(s->stats.elastic_energy, 0, 1e-9);
        for (i = 0; i < c.vertices; i++)
            CHECK_NEAR(apart(s->position[i], s->position[0]), apart(rest[i], rest[0]), 1e-4);
        fsi_shell_destroy(s);
        scene_free(&c);
    }
}

static void test_a_crease_folds_to_its_angle(void)
{
    int bending, sign;
    for (bending = 0; bending < 2; bending++) for (sign = -1; sign <= 1; sign += 2) {
        scene c = scene_empty();
        fsi_shell_crease crease;
        fsi_shell_desc d;
        fsi_shell *s = NULL;
        fsi_vec3 n, m;
        scene_vertex(&c, 0, 0, 0);
        scene_vertex(&c, 1, 0, 0);
        scene_vertex(&c, 0.5, 0.8, 0);
        scene_vertex(&c, 0.5, -0.8, 0);
        scene_triangle(&c, 0, 1, 2);
        scene_triangle(&c, 1, 0, 3);
        c.material[0].bending = (fsi_shell_bending)bending;
        c.desc.gravity = v3(0, 0, 0);
        c.desc.contact = 0;
        c.desc.tolerance = (fsi_real)1e-6;
        d = scene_desc(&c);
        crease.a = 0;
        crease.b = 1;
        crease.angle = (fsi_real)(sign * 1.2);
        crease.stiffness = (fsi_real)0.5;
        d.creases = &crease;
        d.crease_count = 1;
        if (!CHECK(fsi_shell_create(&s, &d) == FSI_OK)) return;
        settle_ok(s);
        n = fsi_v3_cross(fsi_v3_sub(s->position[1], s->position[0]), fsi_v3_sub(s->position[2], s->position[0]));
        m = fsi_v3_cross(fsi_v3_sub(s->position[3], s->position[0]), fsi_v3_sub(s->position[1], s->position[0]));
        CHECK_NEAR(fsi_v3_dot(n, m) / (fsi_v3_norm(n) * fsi_v3_norm(m)), cos(1.2), 1e-4);
        /* normals spread where it is positive */
        CHECK(sign * (double)fsi_v3_dot(fsi_v3_cross(n, m), fsi_v3_sub(s->position[1], s->position[0])) > 0);
        fsi_shell_destroy(s);
        scene_free(&c);
    }
}

/* One end turned against the other: the twist is even, and stores GJ turn^2 / (2 L). */
static void test_a_twisted_rod_shares_its_twist_evenly(void)
{
    const double radius = 0.01, young = 1e7, nu = 0.25,
                 gj = young / (2 * (1 + nu)) * PI * radius * radius * radius * radius / 2, turn = 5;
    scene c = scene_empty();
    fsi_shell *s;
    int i, n = 11;
    scene_rod(&c, n, v3(0, 0, 0), v3(1.1, 0, 0));
    c.material[0].radius = (fsi_real)radius;
    c.material[0].young = (fsi_real)young;
    c.material[0].poisson = (fsi_real)nu;
    c.desc.gravity = v3(0, 0, 0);
    c.desc.tolerance = (fsi_real)1e-7;
    s = scene_make(&c);
    scene_free(&c);
    s->pinned[0] = s->pinned[1] = s->pinned[n - 1] = s->pinned[n] = 1;
    s->twist_held[0] = s->twist_held[n - 1] = 1;
    for (i = 1; i <= 5; i++) {
        s->twist[n - 1] = (fsi_real)(turn * i / 5);
        settle_ok(s);
    }
    for (i = 0; i < n; i++) CHECK_NEAR(s->twist[i], turn * i / (n - 1), 1e-3);
    CHECK_NEAR(s->stats.elastic_energy, gj * turn * turn / 2, 1e-3 * gj * turn * turn);
    fsi_shell_destroy(s);
}

/* Orthotropic cloth droops more along its soft direction, by the ratio of the stiffnesses while it is little. */
static void test_cloth_is_stiffer_along_its_warp(void)
{
    double drop[2];
    int weft, bending, i;
    for (bending = 0; bending < 2; bending++) {
        for (weft = 0; weft < 2; weft++) {
            beam_kind k = strip(16, 0);
            beam b;
            fsi_vec3 warp[1000];
            fsi_shell_desc d;
            fsi_shell *s = NULL;
            k.bending = (fsi_shell_bending)bending;
            k.mesh = RIGHT;
            if (bending == FSI_SHELL_HINGE) k.across = 8; /* a strip of few hinges across is too soft: it coils about
                                                             its diagonals */
            b = beam_make(&k, 1, 0);
            for (i = 0; i < 1000; i++) warp[i] = weft ? v3(0, 1, 0) : v3(1, 0, 0);
            b.c.material[0].poisson = 0;
            b.c.material[0].bend = 10;
            b.c.material[0].bend_weft = 5;
            d = scene_desc(&b.c);
            d.warp = warp;
            if (!CHECK(fsi_shell_create(&s, &d) == FSI_OK)) return;
            beam_pin_row(&b, s, 0);
            beam_push(&b, s, b.rows - 1, v3(0, 0, -0.03));
            settled(s);
            drop[weft] = -(double)beam_at(&b, s, b.rows - 1).z;
            CHECK_NEAR(drop[weft], 0.01 / (weft ? 0.5 : 1), 0.02 * 0.02);
            fsi_shell_destroy(s);
            scene_free(&b.c);
        }
        CHECK_NEAR(drop[1] / drop[0], 2, 0.02);
    }
}

/* Where three rods meet nothing resists unasked: an arm that goes on beyond hangs down as from a hinge; with a joint
   listed it sticks out. */
static void test_listed_joints_make_branches_stiff(void)
{
    static const int joint[3] = { 1, 2, 3 };
    int k, i;
    for (k = 0; k < 2; k++) {
        scene c = scene_empty();
        fsi_shell_desc d;
        fsi_shell *s = NULL;
        scene_rod(&c, 3, v3(0, 0, 0), v3(0.3, 0, 0));
        scene_segment(&c, 2, scene_vertex(&c, 0.2, 0, 0.1)); /* the branch, upwards from vertex 2 */
        c.material[0].young = (fsi_real)1e9;
        c.desc.contact = 0;
        d = scene_desc(&c);
        d.joints = joint;
        d.joint_count = k;
        if (!CHECK(fsi_shell_create(&s, &d) == FSI_OK)) return;
        for (i = 0; i < 5; i++) s->pinned[i] = i != 3;
        settle_ok(s);
        CHECK_NEAR(s->position[3].z, k == 0 ? -0.1 : 0, 0.005);
        fsi_shell_destroy(s);
        scene_free(&c);
    }
}

/* ---- motion ----------------------------------------------------------------------------------------------------- */

static void test_beams_vibrate_at_their_frequencies(void)
{
    const beam_kind k[3] = { rod(20), chain(20), strip(16, 0) };
    int i;
    for (i = 0; i < 3; i++) CHECK_NEAR(beam_frequency(&k[i], 0, 2, 60), 1, 0.02);
    if (!TEST_SLOWED) CHECK_NEAR(beam_frequency(&k[1], 1, 2, 60), 1, 0.02);
}

static void test_free_fall(void)
{
    int bdf2, i;
    for (bdf2 = 0; bdf2 < 2; bdf2++) {
        scene c = scene_empty();
        fsi_shell *s;
        scene_sheet(&c, EQUILATERAL, 3, 3, 1, 1);
        c.desc.integrator = (fsi_shell_integrator)bdf2;
        s = scene_make(&c);
        run_ok(s, 50, 0.02);
        for (i = 0; i < s->vertex_count; i++) {
            CHECK_NEAR(s->velocity[i].z, -9.81, TOL(1e-6, 1e-4));
            CHECK_NEAR(s->position[i].z, -9.81 / 2, (bdf2 ? 0.003 : 0.1)); /* backward Euler is ahead by g t dt / 2 */
            CHECK_NEAR(apart(s->position[i], s->position[0]), apart(c.x[i], c.x[0]), TOL(1e-7, 1e-5));
        }
        fsi_shell_destroy(s);
        scene_free(&c);
    }
}

/* Something crumpled or bent that spins and swims freely: how much energy and turn is left, of 1 each. */
static void fly(int sheet, int bdf2, double dt, double seconds, double *energy, double *turn)
{
    scene c = scene_empty();
    fsi_shell *s;
    uint64_t random = 17;
    double e[2], l[2], p[3], scale;
    int i, a;
    if (sheet) scene_sheet(&c, EQUILATERAL, 5, 5, 1, 1);
    else scene_rod(&c, 12, v3(0, 0, 0), v3(1, 0, 0));
    scene_rest(&c);
    for (i = 0; i < c.vertices; i++)
        c.x[i] = fsi_v3_add(
            c.x[i], v3(0.003 * test_random(&random), 0.003 * test_random(&random), 0.003 * test_random(&random)));
    c.material[0].young = (fsi_real)(sheet ? 1e4 : 1e5);
    c.material[0].radius = (fsi_real)0.02;
    c.material[0].bending = FSI_SHELL_SHAPE_OPERATOR;
    c.desc.gravity = v3(0, 0, 0);
    c.desc.integrator = (fsi_shell_integrator)bdf2;
    c.desc.tolerance = (fsi_real)1e-7;
    s = scene_make(&c);
    for (i = 0; i < c.vertices; i++)
        s->velocity[i] = fsi_v3_add(v3(0.3, 0.2, 0.1), fsi_v3_cross(v3(1, 0.5, 2), c.x[i]));
    run_ok(s, 1, 1e-6); /* for its stats */
    e[0] = s->stats.kinetic_energy + s->stats.elastic_energy;
    memcpy(p, s->stats.momentum, sizeof p);
    l[0] = sqrt(s->stats.angular_momentum[0] * s->stats.angular_momentum[0] +
                s->stats.angular_momentum[1] * s->stats.angular_momentum[1] +
                s->stats.angular_momentum[2] * s->stats.angular_momentum[2]);
    scale = total_mass(s);
    run_ok(s, (int)(seconds / dt + 0.5), dt);
    /* exact but for Newton's tolerance */
    for (a = 0; a < 3; a++) CHECK_NEAR(s->stats.momentum[a], p[a], TOL(1e-6, 1e-5) * scale);
    e[1] = s->stats.kinetic_energy + s->stats.elastic_energy;
    l[1] = sqrt(s->stats.angular_momentum[0] * s->stats.angular_momentum[0] +
                s->stats.angular_momentum[1] * s->stats.angular_momentum[1] +
                s->stats.angular_momentum[2] * s->stats.angular_momentum[2]);
    *energy = e[1] / e[0];
    *turn = l[1] / l[0];
    fsi_shell_destroy(s);
    scene_free(&c);
}

static void test_free_flight_keeps_momentum_and_bdf2_keeps_energy_and_turn(void)
{
    int sheet;
    for (sheet = 0; sheet < 2; sheet++) {
        double e[2], l[2];
        int k;
        for (k = 0; k < 2; k++) {
            fly(sheet, k, 0.005, 1, &e[k], &l[k]);
            CHECK(e[k] <= 1 + 1e-6 && e[k] > 0.3); /* none is made */
            CHECK(l[k] <= 1 + 1e-3);
        }
        CHECK(1 - l[1] < 0.2 * (1 - l[0])); /* first order against second */
        CHECK(1 - e[1] < 0.7 * (1 - e[0]));
        CHECK(fabs(1 - l[1]) < 0.002);
    }
}

/* A mass on a spring of no rest length, x = cos(w t): the error at t = 1 for dt and dt/2. */
static double swing_error(int bdf2, double dt)
{
    const double w = 5;
    scene c = scene_empty();
    fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
    fsi_shell *s;
    double error;
    scene_point(&c, 1, 0, 0, 2);
    c.desc.gravity = v3(0, 0, 0);
    c.desc.integrator = (fsi_shell_integrator)bdf2;
    c.desc.tolerance = (fsi_real)1e-9;
    s = scene_make(&c);
    scene_free(&c);
    p.vertex = 0;
    p.stiffness = (fsi_real)(2 * w * w);
    CHECK(fsi_shell_add_spring(s, &p, NULL) == FSI_OK);
    run_ok(s, (int)(1 / dt + 0.5), dt);
    error = (double)s->position[0].x - cos(w);
    fsi_shell_destroy(s);
    return fabs(error);
}

static void test_the_order_of_both_integrators(void)
{
    const double euler_rate = log(swing_error(0, 0.0025) / swing_error(0, 0.00125)) / log(2.0),
                 bdf2_rate = log(swing_error(1, 0.01) / swing_error(1, 0.005)) / log(2.0);
    CHECK_NEAR(euler_rate, 1, 0.1);
    CHECK_NEAR(bdf2_rate, 2, TOL(0.15, 0.3));
    CHECK(swing_error(1, 0.005) < 0.1 * swing_error(0, 0.005));
}

/* Substeps are steps. */
static void test_substeps_are_steps(void)
{
    scene c = scene_empty();
    fsi_shell *s[2];
    int k, i;
    scene_sheet(&c, EQUILATERAL, 3, 3, 1, 1);
    for (k = 0; k < 2; k++) {
        c.desc.substeps = k == 0 ? 1 : 4;
        s[k] = scene_make(&c);
        s[k]->pinned[0] = 1;
    }
    run_ok(s[0], 20, 0.01);
    run_ok(s[1], 5, 0.04);
    for (i = 0; i < c.vertices; i++) CHECK_NEAR(apart(s[0]->position[i], s[1]->position[i]), 0, TOL(1e-9, 1e-5));
    fsi_shell_destroy(s[0]);
    fsi_shell_destroy(s[1]);
    scene_free(&c);
}

/* ---- damping and air -------------------------------------------------------------------------------------------- */

/* As if in a thick medium: dv/dt = -alpha v. */
static void test_mass_damping_stops_what_moves(void)
{
    scene c = scene_empty();
    fsi_shell *s;
    int i;
    scene_sheet(&c, EQUILATERAL, 2, 2, 1, 1);
    c.material[0].damping_mass = 2;
    c.desc.gravity = v3(0, 0, 0);
    c.desc.integrator = FSI_SHELL_BDF2;
    c.desc.tolerance = (fsi_real)1e-8;
    s = scene_make(&c);
    for (i = 0; i < c.vertices; i++) s->velocity[i] = v3(1, 0, 0);
    run_ok(s, 100, 0.01);
    for (i = 0; i < c.vertices; i++) CHECK_NEAR(s->velocity[i].x, exp(-2.0), 0.003);
    fsi_shell_destroy(s);
    scene_free(&c);
}

/* x'' + beta w^2 x' + w^2 x = 0: a mode of frequency w decays as exp(-beta w^2 t / 2). A bar of one segment, stretched,
   its ends free. */
static void test_stiffness_damping_calms_vibrations(void)
{
    const double w = 40, beta = 1e-3, dt = 2 * PI / w / 200;
    scene c = scene_empty();
    fsi_shell *s;
    double early = 0, late = 0;
    int k;
    scene_rod(&c, 1, v3(0, 0, 0), v3(1, 0, 0));
    c.material[0].radius = (fsi_real)0.01;
    c.material[0].density = 1000;
    c.material[0].young = (fsi_real)(1000 * w * w / 4); /* two masses rho A L / 2 on a spring E A / L: w^2 = 4 E / (rho
                                                           L^2) */
    c.material[0].damping_stiffness = (fsi_real)beta;
    c.desc.gravity = v3(0, 0, 0);
    c.desc.integrator = FSI_SHELL_BDF2;
    c.desc.tolerance = (fsi_real)1e-8;
    s = scene_make(&c);
    s->velocity[0] = v3(-0.1, 0, 0);
    s->velocity[1] = v3(0.1, 0, 0);
    for (k = 0; k < 800; k++) { /* four periods: the largest of the first and of the last one */
        step_ok(s, dt);
        if (k < 200) early = fmax(early, apart(s->position[0], s->position[1]) - 1);
        if (k >= 600) late = fmax(late, apart(s->position[0], s->position[1]) - 1);
    }
    CHECK_NEAR(late / early, exp(-beta * w * w / 2 * 3 * 2 * PI / w), 0.02);
    fsi_shell_destroy(s);
    scene_free(&c);
}

/* The same of a clamped beam in its lowest mode, by bending: which element bends is up to the kind. Its rate over that
   of theory. */
static double decay_rate(const beam_kind *k, int twist, double zeta)
{
    const double z = 1.875104069, w = z * z, dt = 2 * PI / w / 200; /* EI = 1, 1 kg/m */
    beam b = beam_make(k, 1, 0);
    fsi_shell *s;
    double early = 0, late = 0;
    int step, i, j;
    b.c.desc.integrator = FSI_SHELL_BDF2;
    b.c.material[0].damping_stiffness = (fsi_real)(2 * zeta / w);
    b.c.material[0].twist = twist;
    s = scene_make(&b.c);
    beam_pin_row(&b, s, 0);
    for (i = 1; i < b.rows; i++) for (j = b.row[i]; j < b.row[i + 1]; j++) {
        const double x = z * i / k->n;
        s->velocity[j] =
            down(k, -2e-3 * (cosh(x) - cos(x) - (cosh(z) + cos(z)) / (sinh(z) + sin(z)) * (sinh(x) - sin(x))));
    }
    for (step = 0; step < 600; step++) { /* three periods: the largest of the first and of the last one */
        const fsi_vec3 tip = (step_ok(s, dt), beam_at(&b, s, b.rows - 1));
        const double q = (double)(k->dim == 2 ? tip.y : tip.z);
        if (step < 200) early = fmax(early, q);
        if (step >= 400) late = fmax(late, q);
    }
    fsi_shell_destroy(s);
    scene_free(&b.c);
    return log(early / late) / (zeta * 2 * 2 * PI);
}

static void test_stiffness_damping_calms_bending_of_each_kind(void)
{
    beam_kind plate = strip(10, 0), hinges = plate;
    const beam_kind twisted = rod(10), plain = chain(10);
    hinges.bending = FSI_SHELL_HINGE;
    CHECK_NEAR(decay_rate(&plate, 0, 0.03), 1, 0.03);
    CHECK_NEAR(decay_rate(&hinges, 0, 0.03), 1, 0.2); /* of the hinge's own frequency, which depends on the mesh */
    CHECK_NEAR(decay_rate(&twisted, 1, 0.03), 1, 0.03);
    CHECK_NEAR(decay_rate(&twisted, 0, 0.03), 1, 0.03);
    CHECK_NEAR(decay_rate(&plain, 0, 0.03), 1, 0.03);
}

/* The same of bars that are drawn out, of each kind, and of a rod that is turned about itself: their lowest mode, held
   at one end. */
static double decay_along(int sheet, fsi_shell_membrane membrane, int turned)
{
    const int n = 20;
    const double young = 1e6, c = sqrt((turned ? young / 2 : young) / 1000), length = turned ? 1 - 0.5 / n : 1,
                 w = PI / 2 / length * c, zeta = 0.03, dt = 2 * PI / w / 200;
    scene k = scene_empty();
    fsi_shell *s;
    double early = 0, late = 0, start;
    int i, step;
    if (sheet) scene_sheet(&k, RIGHT, n, 1, 1, 0.1);
    else scene_rod(&k, n, v3(0, 0, 0), v3(1, 0, 0));
    k.material[0].young = (fsi_real)young;
    k.material[0].poisson = 0;
    k.material[0].radius = (fsi_real)0.02;
    k.material[0].membrane = membrane;
    k.material[0].damping_stiffness = (fsi_real)(2 * zeta / w);
    k.desc.integrator = FSI_SHELL_BDF2;
    k.desc.gravity = v3(0, 0, 0);
    k.desc.tolerance = (fsi_real)1e-6;
    k.desc.contact = 0;
    s = scene_make(&k);
    for (i = 0; i < k.vertices; i++) {
        s->pinned[i] = turned || k.x[i].x <= 0;
        s->velocity[i].x = (fsi_real)(turned ? 0 : 1e-3 * w * sin(PI / 2 * (double)k.x[i].x));
    }
    for (i = 0; turned && i < n; i++) {
        s->twist[i] = (fsi_real)(0.1 * sin(PI / 2 * i / (n - 0.5)));
        s->twist_held[i] = 1;
    }
    if (turned) step_ok(s, dt); /* released with what speed it has */
    for (i = 1; turned && i < n; i++) s->twist_held[i] = 0;
    start = (double)s->position[k.vertices - 1].x;
    for (step = 0; step < 600; step++) {
        double q;
        step_ok(s, dt);
        q = turned ? (double)s->twist[n - 1] : (double)s->position[k.vertices - 1].x - start;
        if (step < 200) early = fmax(early, q);
        if (step >= 400) late = fmax(late, q);
    }
    fsi_shell_destroy(s);
    scene_free(&k);
    return log(early / late) / (zeta * 2 * 2 * PI);
}

static void test_stiffness_damping_calms_stretch_and_twist(void)
{
    CHECK_NEAR(decay_along(0, FSI_SHELL_STVK, 0), 1, 0.05);
    CHECK_NEAR(decay_along(1, FSI_SHELL_STVK, 0), 1, 0.05);
    CHECK_NEAR(decay_along(1, FSI_SHELL_NEO_HOOKEAN, 0), 1, 0.05);
    CHECK_NEAR(decay_along(0, FSI_SHELL_STVK, 1), 1, 0.05);
}

/* What dampers add is no energy. */
static void test_elastic_energy_is_without_dampers(void)
{
    scene c = scene_empty();
    fsi_shell *s;
    scene_rod(&c, 1, v3(0, 0, 0), v3(1, 0, 0));
    c.material[0].radius = (fsi_real)0.02;
    c.material[0].damping_stiffness = 1;
    s = scene_make(&c);
    s->pinned[0] = s->pinned[1] = 1;
    s->target[1].x += (fsi_real)0.01;
    step_ok(s, 0.01);
    CHECK_NEAR(s->stats.elastic_energy, 1e6 * PI * 4e-4 / 2 * 1e-4, TOL(1e-9, 1e-4) * 0.1);
    fsi_shell_destroy(s);
    scene_free(&c);
}

/* In the plane an arch knows which way it is bent: turned over it bears EI/2 (2 kappa)^2 a metre, and goes back. At
   rest it bears nothing. */
static void test_an_arch_in_the_plane_springs_back(void)
{
    const int n = 20;
    const double side = 2 * sin(PI / n / 2), kappa = 2 * tan(PI / n / 2) / side;
    int over, i;
    for (over = 0; over < 2; over++) {
        scene c = scene_empty();
        fsi_shell *s;
        scene_rod(&c, n, v3(0, 0, 0), v3(1, 0, 0));
        scene_rest(&c);
        for (i = 0; i <= n; i++) {
            const double a = PI * i / n;
            c.rest[i] = v3(cos(a), sin(a), 0);
            c.x[i] = v3(cos(a), over ? -sin(a) : sin(a), 0);
        }
        c.material[0].bend = 1;
        c.desc.dim = 2;
        c.desc.gravity = v3(0, 0, 0);
        c.desc.contact = 0;
        s = scene_make(&c);
        run_ok(s, 1, 1e-7); /* for its stats */
        CHECK_NEAR(s->stats.elastic_energy, over ? 2 * kappa * kappa * side * (n - 1) : 0, TOL(1e-5, 1e-4));
        settle_ok(s);
        for (i = 2; i <= n; i++)
            CHECK_NEAR(apart(s->position[i], s->position[i - 2]), apart(c.rest[2], c.rest[0]), 1e-3);
        CHECK(
            fsi_v3_cross(fsi_v3_sub(s->position[n / 2], s->position[0]), fsi_v3_sub(s->position[n], s->position[0])).z >
            0);
        fsi_shell_destroy(s);
        scene_free(&c);
    }
}

/* Turn that is left, of 1, of a flat square or a rod after a second at 10 rad/s about an axis across its middle. */
static double spun(fsi_shell_membrane membrane, fsi_shell_bending bending, int sheet, int twist, double beta)
{
    scene c = scene_empty();
    fsi_shell *s;
    double turn;
    int i;
    if (sheet) scene_sheet(&c, EQUILATERAL, 3, 3, 1, 1);
    else scene_rod(&c, 6, v3(0, 0.5, 0), v3(1, 0.5, 0));
    c.material[0].young = (fsi_real)1e6;
    c.material[0].radius = (fsi_real)0.02;
    c.material[0].thickness = (fsi_real)0.02;
    c.material[0].membrane = membrane;
    c.material[0].bending = bending;
    c.material[0].twist = twist;
    c.material[0].damping_stiffness = (fsi_real)beta;
    c.desc.gravity = v3(0, 0, 0);
    c.desc.integrator = FSI_SHELL_BDF2;
    c.desc.tolerance = (fsi_real)1e-7;
    s = scene_make(&c);
    for (i = 0; i < c.vertices; i++) s->velocity[i] = fsi_v3_cross(v3(0, 8, 6), fsi_v3_sub(c.x[i], v3(0.5, 0.5, 0)));
    run_ok(s, 1, 1e-6); /* for its stats */
    turn = s->stats.angular_momentum[1];
    run_ok(s, 200, 0.005);
    turn = s->stats.angular_momentum[1] / turn;
    fsi_shell_destroy(s);
    scene_free(&c);
    return turn;
}

/* Damping acts on rates of strain: what turns as a whole turns on. */
static void test_stiffness_damping_lets_turn(void)
{
    static const struct { fsi_shell_membrane membrane; fsi_shell_bending bending; int sheet, twist;
    } kind[5] = {{FSI_SHELL_STVK, FSI_SHELL_HINGE, 1, 0},
                 {FSI_SHELL_STVK, FSI_SHELL_SHAPE_OPERATOR, 1, 0},
                 {FSI_SHELL_NEO_HOOKEAN, FSI_SHELL_HINGE, 1, 0},
                 {FSI_SHELL_STVK, FSI_SHELL_HINGE, 0, 1},
                 {FSI_SHELL_STVK, FSI_SHELL_HINGE, 0, 0}};
    int i;
    for (i = 0; i < 5; i++) {
        const double without = spun(kind[i].membrane, kind[i].bending, kind[i].sheet, kind[i].twist, 0),
                     with = spun(kind[i].membrane, kind[i].bending, kind[i].sheet, kind[i].twist, 0.05);
        CHECK_NEAR(without, 1, 0.02);
        CHECK_NEAR(with, without, 0.002);
    }
}

/* A point on a damped spring to a place in space, pulled off: x'' + c/m x' + k/m x = 0, x = exp(-c t / 2m) cos(...)
   nearly. */
static void test_a_damped_spring_calms_at_its_rate(void)
{
    const double w = 20, mass = 0.5, c = 1, dt = 2 * PI / w / 200;
    int bdf2;
    for (bdf2 = 0; bdf2 < 2; bdf2++) {
        scene sc = scene_empty();
        fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
        fsi_shell *s;
        double late = 0;
        int k;
        scene_point(&sc, 1.1, 0, 0, mass);
        sc.desc.gravity = v3(0, 0, 0);
        sc.desc.integrator = (fsi_shell_integrator)bdf2;
        sc.desc.tolerance = (fsi_real)1e-8;
        s = scene_make(&sc);
        scene_free(&sc);
        p.vertex = 0;
        p.stiffness = (fsi_real)(mass * w * w);
        p.rest_length = 1;
        p.damping = (fsi_real)c;
        CHECK(fsi_shell_add_spring(s, &p, NULL) == FSI_OK);
        for (k = 0; k < 700; k++) {
            step_ok(s, dt);
            if (k >= 500) late = fmax(late, (double)s->position[0].x - 1); /* its third maximum, after three periods */
        }
        /* backward Euler calms by itself: w^2 dt / 2 beside c / 2m */
        CHECK_NEAR(late / 0.1, exp(-(c / (2 * mass) + (bdf2 ? 0 : w * w * dt / 2)) * 3 * 2 * PI / w),
                   bdf2 ? 0.01 : 0.03);
        fsi_shell_destroy(s);
    }
}

/* Flat in the air: falls at last with m g = c/2 rho A v^2; and is taken along by the wind. */
static void test_drag_sets_the_terminal_velocity(void)
{
    scene c = scene_empty();
    fsi_shell *s;
    fsi_shell_desc d;
    int i;
    scene_sheet(&c, EQUILATERAL, 2, 2, 1, 1);
    c.desc.air_density = (fsi_real)1.2;
    c.desc.drag = (fsi_real)1.1;
    c.material[0].density = 200;
    s = scene_make(&c);
    run_ok(s, 100, 0.05);
    for (i = 0; i < c.vertices; i++) CHECK_NEAR(s->velocity[i].z, -sqrt(2 * 200 * 0.001 * 9.81 / (1.1 * 1.2)), 0.005);
    d = s->desc;
    d.gravity = v3(0, 0, 0);
    d.wind = v3(3, 0, 2);
    CHECK(fsi_shell_set_desc(s, &d) == FSI_OK);
    run_ok(s, 400, 0.1);
    for (i = 0; i < c.vertices; i++) {
        CHECK_NEAR(s->velocity[i].z, 2, 0.05);
        CHECK_NEAR(s->velocity[i].x, 0, 1e-3); /* along the sheet there is no drag */
    }
    fsi_shell_destroy(s);
    scene_free(&c);
}

/* Two sheets that fly into each other, free otherwise: momentum and turn stay, energy does not grow, nothing passes. */
static void test_sheets_that_meet_keep_their_momentum(void)
{
    scene c = scene_empty();
    fsi_shell *s;
    double e = 0, l[3];
    int i, a, k, touched = 0;
    const int n = (scene_sheet(&c, EQUILATERAL, 5, 5, 1, 1), c.vertices);
    scene_sheet(&c, RIGHT, 4, 4, 0.6, 0.6);
    scene_shift(&c, n, 0.3, 0.1, 0.1);
    c.material[0].young = (fsi_real)1e5;
    c.desc.gravity = v3(0, 0, 0);
    c.desc.friction = (fsi_real)0.3;
    c.desc.tolerance = (fsi_real)1e-6;
    s = scene_make(&c);
    for (i = n; i < c.vertices; i++) s->velocity[i] = v3(0.5, 0, -2);
    for (k = 0; k < 30; k++) {
        step_ok(s, 0.01);
        if (k == 0) {
            e = s->stats.kinetic_energy + s->stats.elastic_energy;
            memcpy(l, s->stats.angular_momentum, sizeof l);
        }
        touched += s->stats.contacts > 0;
        CHECK(s->stats.kinetic_energy + s->stats.elastic_energy <= e * 1.001);
        CHECK(fsi_shell_count_intersections(s) == 0);
    }
    for (a = 0; a < 3; a++) CHECK_NEAR(s->stats.momentum[a], (a == 0 ? 0.5 : a == 2 ? -2 : 0) * 0.36, TOL(1e-5, 1e-4));
    for (a = 0; a < 3; a++) CHECK_NEAR(s->stats.angular_momentum[a], l[a], 0.02);
    CHECK(touched > 3);
    fsi_shell_destroy(s);
    scene_free(&c);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_cantilevers_bend_as_the_elastica);
    RUN(test_a_chain_hangs_as_a_catenary);
    RUN(test_columns_buckle_at_eulers_loads);
    RUN(test_deep_beams_buckle_sideways);
    RUN(test_twisted_rods_leave_their_line_and_their_plane);
    RUN_PHYSICS(test_plates_deflect_as_plate_theory_says);
    RUN(test_a_stretched_strip_shows_youngs_modulus_and_poissons_ratio);
    RUN_PHYSICS(test_rubber_is_drawn_out_as_its_energy_says);
    RUN(test_a_bent_strip_curves_across_the_other_way);
    RUN(test_sheets_and_rods_find_their_rest_shape);
    RUN(test_a_crease_folds_to_its_angle);
    RUN(test_a_twisted_rod_shares_its_twist_evenly);
    RUN(test_cloth_is_stiffer_along_its_warp);
    RUN(test_listed_joints_make_branches_stiff);
    RUN(test_beams_vibrate_at_their_frequencies);
    RUN(test_free_fall);
    RUN_PHYSICS(test_free_flight_keeps_momentum_and_bdf2_keeps_energy_and_turn);
    RUN(test_the_order_of_both_integrators);
    RUN(test_substeps_are_steps);
    RUN(test_mass_damping_stops_what_moves);
    RUN(test_stiffness_damping_calms_vibrations);
    RUN_PHYSICS(test_stiffness_damping_calms_bending_of_each_kind);
    RUN_PHYSICS(test_stiffness_damping_lets_turn);
    RUN_PHYSICS(test_stiffness_damping_calms_stretch_and_twist);
    RUN(test_elastic_energy_is_without_dampers);
    RUN(test_an_arch_in_the_plane_springs_back);
    RUN(test_a_damped_spring_calms_at_its_rate);
    RUN(test_drag_sets_the_terminal_velocity);
    RUN(test_sheets_that_meet_keep_their_momentum);
    return TEST_END();
}
