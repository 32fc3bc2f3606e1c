/* validate_shell.c - shells and rods against theory at full size, and how the cost of a Newton step grows.
   SPDX-License-Identifier: MIT

   The cases of shell_cases.h: cantilevers, vibration, buckling of columns, deep beams, rings and twisted rods,
   catenaries, plates; for rods, chains in the plane and strips of four kinds of mesh, Poisson's ratio 0 and 0.3. Every
   figure is the error in per cent of theory. Cloth of 1k to 50k vertices: seconds and bytes. Prints lines `key value
   unit`. --res 50 halves the elements; a word (beams, buckling, plates, growth) runs one part. */
#define FSI_IMPLEMENTATION
#include "../examples/kit/kit.h"
#include "../tests/kit/test.h"
#include "../fsi_shell.h"
#include "../tests/kit/test_shell.h"
#include "../tests/kit/shell_cases.h"
#include "validate.h"

static const char *const mesh_name[4] = { "right_angled", "alternating", "equilateral", "irregular" };

static double cpu_now(void *user)
{
    (void)user;
    return ex_cpu_seconds();
}

static double percent(double ratio) { return 100 * (ratio - 1); }

static beam_kind make_kind(int dim, int sheet, mesh_kind mesh, fsi_shell_bending bending, double nu, char *name)
{
    beam_kind k;
    memset(&k, 0, sizeof k);
    k.dim = dim;
    k.sheet = sheet;
    k.mesh = mesh;
    k.bending = bending;
    k.nu = nu;
    k.n = scaled(40);
    k.width = 0.1;
    k.across = scaled(4);
    k.thickness = sheet ? 0.02 : dim == 2 ? 0.01 : 0.005;
    sprintf(name, "%s%s_nu_%.1f",
            sheet      ? bending == FSI_SHELL_HINGE ? "hinge_strip_" : "strip_"
            : dim == 2 ? "chain"
                       : "rod",
            sheet ? mesh_name[mesh] : "", nu);
    k.name = name;
    return k;
}

/* ---- beams ------------------------------------------------------------------------------------------------------ */

static void say_cantilever(const beam_kind *k, double load, double weight, double drop, double reach)
{
    const char *what = weight > 0 ? "heavy" : "tip";
    double d, r;
    if (!cantilever(k, load, weight, &d, &r)) return;
    if (weight > 0) say(percent(d / r / drop), "%", "%s_cantilever_heavy_%g_drop_over_reach", k->name, weight);
    else {
        say(percent(d / drop), "%", "%s_cantilever_%s_%g_drop", k->name, what, load);
        say(percent(r / reach), "%", "%s_cantilever_%s_%g_reach", k->name, what, load);
    }
}

static void run_beam(const beam_kind *k)
{
    int mode;
    say_cantilever(k, 1, 0, 0.301721, 0.943567);
    say_cantilever(k, 10, 0, 0.810609, 0.445004);
    say_cantilever(k, 0, 1, 0.124562, 0);
    say_cantilever(k, 0, 10, 1.066802, 0);
    for (mode = 0; mode < 3; mode++)
        say(percent(beam_frequency(k, mode, 3, 200)), "%", "%s_frequency_%d", k->name, mode + 1);
    say(percent(catenary(k)), "%", "%s_catenary_sag", k->name);
}

static void run_column(const beam_kind *k)
{
    static const char *const ends[4] = { "clamped_free", "pinned_pinned", "clamped_pinned", "clamped_clamped" };
    int i;
    for (i = 0; i < 4; i++) say(percent(euler(k, (euler_ends)i)), "%", "%s_euler_%s", k->name, ends[i]);
    say(percent(self_buckling(k)), "%", "%s_own_weight_column", k->name);
}

/* What is measured on all kinds of beams: rods, chains, strips with the shape operator, then with hinges on the best
   and the worst mesh. */
static void for_all_beams(void (*run)(const beam_kind *k))
{
    char name[80];
    beam_kind k;
    int poisson, mesh;
    for (poisson = 0; poisson < 2; poisson++) {
        const double nu = 0.3 * poisson;
        k = make_kind(3, 0, RIGHT, FSI_SHELL_HINGE, nu, name);
        run(&k);
        k = make_kind(2, 0, RIGHT, FSI_SHELL_HINGE, nu, name);
        run(&k);
        for (mesh = 0; mesh < 4; mesh++) {
            k = make_kind(3, 1, (mesh_kind)mesh, FSI_SHELL_SHAPE_OPERATOR, nu, name);
            run(&k);
        }
        for (mesh = 0; mesh < 4; mesh += 2) {
            k = make_kind(3, 1, (mesh_kind)mesh, FSI_SHELL_HINGE, nu, name);
            run(&k);
        }
    }
}

static void run_beams(void) { for_all_beams(run_beam); }

/* ---- buckling --------------------------------------------------------------------------------------------------- */

/* Theory is for h << W << L: a strip's clamp resists warping as well, which adds a share of W / L, so two widths. */
static void run_lateral(double nu)
{
    static const double width[2] = { 0.05, 0.025 };
    static const mesh_kind mesh[3] = { RIGHT, EQUILATERAL, IRREGULAR };
    char name[80];
    beam_kind k = make_kind(3, 0, RIGHT, FSI_SHELL_HINGE, nu, name);
    int i, m, b;
    say(percent(lateral(&k, 0)), "%", "%s_lateral_tip_load", name);
    say(percent(lateral(&k, 1)), "%", "%s_lateral_own_weight", name);
    for (b = 1; b >= 0; b--) for (m = 0; m < 3; m++) for (i = 0; i < 2; i++) {
        k = make_kind(3, 1, mesh[m], (fsi_shell_bending)b, nu, name);
        if (b == 0 && i == 1) continue;
        k.width = width[i];
        k.thickness = 0.02 * width[i];
        k.lengthwise = mesh[m] != RIGHT;
        k.n = (int)(k.across / k.width * (k.lengthwise ? 0.577 : 0.5) + 0.5);
        say(percent(lateral(&k, 0)), "%", "%s_width_%g_lateral_tip_load", name, k.width);
        say(percent(lateral(&k, 1)), "%", "%s_width_%g_lateral_own_weight", name, k.width);
    }
}

static void run_buckling(void)
{
    int poisson, n;
    for_all_beams(run_column);
    for (poisson = 0; poisson < 2; poisson++) {
        run_lateral(0.3 * poisson);
        for (n = 31; n < 200; n = 2 * n - 1) {
            say(percent(michell(n, 0.3 * poisson)), "%", "ring_of_%d_nu_%.1f_michell", n - 1, 0.3 * poisson);
            say(percent(twisted_line(n, 0.3 * poisson)), "%", "twisted_rod_of_%d_nu_%.1f_clamped", n, 0.3 * poisson);
        }
    }
}

/* ---- plates ----------------------------------------------------------------------------------------------------- */

static void run_plates(void)
{
    int bending, poisson, rim, round, mesh, n;
    for (bending = 1; bending >= 0; bending--)
        for (poisson = 0; poisson < 2; poisson++)
            for (round = 0; round < 2; round++)
                for (rim = 0; rim < 2; rim++)
                    for (mesh = round ? 2 : 0; mesh < 4; mesh++)
                        for (n = 16; n <= 32; n *= 2) {
                            plate_kind p;
                            p.round = round;
                            p.clamped = rim;
                            p.n = scaled(n);
                            p.mesh = (mesh_kind)mesh;
                            p.bending = (fsi_shell_bending)bending;
                            p.nu = 0.3 * poisson;
                            say(percent(plate_deflection(&p)), "%", "%splate_%s_%s_%s_nu_%.1f_%d_deflection",
                                bending ? "" : "hinge_", round ? "round" : "square", rim ? "clamped" : "supported",
                                mesh_name[mesh], p.nu, p.n);
                        }
}

/* ---- growth ----------------------------------------------------------------------------------------------------- */

static double slope_of(const double *x, const double *y, int n)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    int i;
    for (i = 0; i < n; i++) {
        const double u = log(x[i]), v = log(y[i]);
        sx += u;
        sy += v;
        sxx += u * u;
        sxy += u * v;
    }
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

/* A cloth held at two corners falls for four steps of 1/60 s. */
static void grow(int vertices, fsi_shell_bending bending, double *size, double *seconds, double *bytes)
{
    const char *name = bending == FSI_SHELL_HINGE ? "hinge" : "shape_operator";
    const int n = (int)(sqrt((double)vertices) - 0.5);
    fsi_context context = fsi_default_context();
    scene c = scene_empty();
    fsi_shell *s;
    double sum[5] = { 0 };
    int step, k, newton = 0;
    scene_sheet(&c, EQUILATERAL, n, n, 1, 1);
    c.material[0] = fsi_shell_preset(FSI_SHELL_COTTON);
    c.material[0].bending = bending;
    context.now = cpu_now;
    c.context = &context;
    s = scene_make(&c);
    scene_free(&c);
    s->pinned[0] = s->pinned[n] = 1;
    for (step = 0; step < 4; step++) {
        double phase[5];
        step_ok(s, 1.0 / 60);
        phase[0] = s->stats.seconds_assembly;
        phase[1] = s->stats.seconds_solve;
        phase[2] = s->stats.seconds_contact;
        phase[3] = s->stats.seconds_search;
        phase[4] = s->stats.seconds_other;
        for (k = 0; k < 5; k++) sum[k] += phase[k];
        newton += s->stats.newton;
    }
    *size = s->vertex_count;
    *seconds = (sum[0] + sum[1] + sum[2] + sum[3] + sum[4]) / newton;
    *bytes = (double)s->stats.bytes;
    say(*seconds, "s", "growth_%s_%d_newton_step", name, s->vertex_count);
    say(sum[0] / newton, "s", "growth_%s_%d_assembly", name, s->vertex_count);
    say(sum[1] / newton, "s", "growth_%s_%d_solve", name, s->vertex_count);
    say((sum[2] + sum[3] + sum[4]) / newton, "s", "growth_%s_%d_contact_and_search", name, s->vertex_count);
    say(newton / 4.0, "1", "growth_%s_%d_newton_steps_a_step", name, s->vertex_count);
    say(*bytes * 1e-6, "MB", "growth_%s_%d_memory", name, s->vertex_count);
    fsi_shell_destroy(s);
}

static void run_growth(void)
{
    static const int vertices[5] = { 1000, 2659, 7071, 18803, 50000 };
    double size[5], seconds[5], bytes[5];
    int bending, k;
    for (bending = 0; bending < 2; bending++) {
        for (k = 0; k < 5; k++) grow(scaled(vertices[k]), (fsi_shell_bending)bending, &size[k], &seconds[k], &bytes[k]);
        say(slope_of(size, seconds, 5), "1", "growth_%s_newton_step_exponent", bending ? "shape_operator" : "hinge");
        say(slope_of(size, bytes, 5), "1", "growth_%s_memory_exponent", bending ? "shape_operator" : "hinge");
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[4] = {{"beams", run_beams}, {"buckling", run_buckling}, {"plates", run_plates}, {"growth", run_growth}};
    const char *only = NULL;
    int k;
    ex_init(&app, "validate_shell", "Shells and rods against theory, and the growth of a Newton step.");
    app.res = 100;
    app.res_help = "per cent of the full number of elements";
    app.out = "docs";
    ex_operand(&app, "part", &only, "beams, buckling, plates or growth; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    for (k = 0; k < 4; k++) if (!only || strcmp(only, parts[k].name) == 0) parts[k].run();
    ex_pool_stop(&app.pool);
    return test__run.faults > 0;
}
