/* validate_front.c - surfaces that move, at full size: parity against an exact winding number, shapes that flows carry
   around, area and curvature of known surfaces, pieces that merge and pinch off.
   SPDX-License-Identifier: MIT

   Prints lines `key value unit`, and `key value unit reference tolerance pass|fail` where something is demanded. A word
   runs one part. */
#define FSI_IMPLEMENTATION
#include "../examples/kit/front_tally.h"
#include "../tests/kit/test_winding.h"
#include "../tests/kit/test_topology.h"
#include "validate.h"

/* ---- parity ------------------------------------------------------------------------------------------------------ */

/* Closed pieces whose vertices are moved at random, onto multiples of 1/lattice cells where lattice > 0. */
static void parity(int dim, int lattice)
{
    const double dx = dim == 3 ? 0.16 : 0.027;
    front_shape s = { dim, 0, 0, NULL, NULL };
    fsi_front_lines_desc d = fsi_front_default_lines_desc();
    fsi_front_desc fd;
    fsi_front *f;
    fsi_front_lines *l;
    winding w;
    uint64_t seed = (uint64_t)(7 + lattice);
    long wrong = 0, points = 0, disagree = 0;
    int i, j, k, axis;
    if (dim == 3) {
        front_add_torus(&s, 3.5, 1.2, 19, 11);
        front_add_ball(&s, front_v3(0, 0, 0), front_v3(1.8, 1.9, 3), 9, 1);
        front_add_ball(&s, front_v3(0, 0.1, 0), front_v3(1, 0.9, 1.5), 5, -1);
    } else {
        front_add_circle(&s, front_v3(0, 0, 0), 5, 151, 1);
        front_add_circle(&s, front_v3(0.5, 0, 0), 2, 67, -1);
    }
    fd = front_desc(&s, 0.5);
    fd.context = &app.context;
    ex_check(&app, fsi_front_create(&f, &fd));
    for (i = 0; i < f->vertex_count; i++)
        for (axis = 0; axis < dim; axis++) {
            fsi_real *x = axis == 0 ? &f->position[i].x : axis == 1 ? &f->position[i].y : &f->position[i].z;
            double y = (double)*x + 0.6 * (test_random(&seed) - 0.5);
            if (lattice) y = floor(y / dx * lattice + 0.5) * dx / lattice;
            *x = (fsi_real)y;
        }
    d.context = &app.context;
    d.dim = dim;
    d.n[0] = d.n[1] = scaled(dim == 3 ? 66 : 400);
    d.n[2] = dim == 3 ? scaled(60) : 1;
    d.dx = (fsi_real)dx;
    for (axis = 0; axis < dim; axis++)
        *(axis == 0 ? &d.origin.x : axis == 1 ? &d.origin.y : &d.origin.z) = (fsi_real)(-(d.n[axis] / 2) * dx);
    ex_check(&app, fsi_front_create_lines(&l, &d));
    ex_check(&app, fsi_front_cross_lines(l, f));
    w = winding_of(f, d.origin, dx);
    for (k = 0; k < l->n[2]; k++)
        for (j = 0; j < l->n[1]; j++)
            for (i = 0; i < l->n[0]; i++) {
                const int step[3] = { 1, l->n[0], l->n[0] * l->n[1] }, at = i + l->n[0] * (j + l->n[1] * k);
                const int here[3] = { i, j, k };
                wrong += l->inside[at] != (winding_number(&w, i, j, k) & 1);
                points++;
                for (axis = 0; axis < dim; axis++) {
                    const fsi_front_crossing *c = fsi_front_first_crossing(l, axis, i, j, k);
                    if (here[axis] + 1 < l->n[axis])
                        disagree += (c ? c->count & 1 : 0) != (l->inside[at] ^ l->inside[at + step[axis]]);
                }
            }
    say((double)points, "1", "parity_%dd_lattice_%d_points", dim, lattice);
    must((double)wrong, 0, 0, "1", "parity_%dd_lattice_%d_wrong", dim, lattice);
    must((double)disagree, 0, 0, "1", "parity_%dd_lattice_%d_axes_disagree", dim, lattice);
    winding_free(&w);
    fsi_front_destroy_lines(l);
    fsi_front_destroy(f);
    front_free(&s);
}

/* On a lattice of half cells vertices, edges and faces lie on centres and lines. */
static void run_parity(void)
{
    static const int lattice[] = { 0, 1, 2, 6 };
    int k;
    for (k = 0; k < 4; k++) {
        parity(3, lattice[k]);
        parity(2, lattice[k]);
    }
}

/* ---- shapes that are carried ------------------------------------------------------------------------------------- */

/* Zalesak's disc and its ball after a turn, at 16 (3D: 4) points a cell along each axis. The best level set of
   levelset_baseline.csv at this spacing leaves 0.1615 cells; at most a fifth of that. */
static void run_zalesak(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        const int n = dim == 2 ? 1600 : 400, steps = scaled(dim == 2 ? 1256 : 314);
        fsi_front *f = ex_slotted_front(&app, dim, 0.5);
        unsigned char *before, *after;
        double volume, area;
        ex_check(&app, fsi_front_step(f, 0));
        before = ex_front_inside(&app, f, n, 100);
        volume = f->stats.volume;
        area = f->stats.area;
        for (k = 0; k < steps; k++) ex_front_carry(&app, f, ex_zalesak_flow, 0, 628.0 / steps);
        after = ex_front_inside(&app, f, n, 100);
        must(ex_front_difference(before, after, n, dim, 100) / area, 0, 0.0323, "dx", "zalesak_%dd_shape_error", dim);
        must(100 * (f->stats.volume / volume - 1), 0, 1e-3, "%", "zalesak_%dd_volume_error", dim);
        say(f->element_count, "1", "zalesak_%dd_elements_at", dim);
        free(before);
        free(after);
        fsi_front_destroy(f);
    }
}

/* Enright's field, edges of half a cell of 1/32 and 1/64. */
static void run_enright(void)
{
    int res, k;
    for (res = 32; res <= 64; res *= 2) {
        const int steps = scaled(6 * res), n = 4 * res;
        fsi_front *f = ex_enright_front(&app, res);
        unsigned char *before, *after;
        double volume, area;
        ex_check(&app, fsi_front_step(f, 0));
        before = ex_front_inside(&app, f, n, 1);
        volume = f->stats.volume;
        area = f->stats.area;
        for (k = 0; k < steps; k++) ex_front_carry(&app, f, ex_enright_flow, 3.0 * k / steps, 3.0 / steps);
        after = ex_front_inside(&app, f, n, 1);
        say(ex_front_difference(before, after, n, 3, 1) / area * res, "dx", "enright_%d_shape_error", res);
        must(100 * (f->stats.volume / volume - 1), 0, 0.1, "%", "enright_%d_volume_error", res);
        say(f->piece_count, "1", "enright_%d_pieces", res);
        free(before);
        free(after);
        fsi_front_destroy(f);
    }
}

/* ---- area and curvature ------------------------------------------------------------------------------------------ */

/* Mean curvature at a vertex of an ellipsoid with half axes a, b, c, of a torus with radii R, r. */
static double ellipsoid_curvature(const double *h, fsi_vec3 p)
{
    const double x[3] = { (double)p.x, (double)p.y, (double)p.z };
    double q = 0, r = 0;
    int a;
    for (a = 0; a < 3; a++) {
        r += x[a] * x[a];
        q += x[a] * x[a] / pow(h[a], 4);
    }
    return (h[0] * h[0] + h[1] * h[1] + h[2] * h[2] - r) / (2 * pow(h[0] * h[1] * h[2], 2) * pow(q, 1.5));
}
static double torus_curvature(double big, double tube, fsi_vec3 p)
{
    const double out = sqrt((double)p.x * (double)p.x + (double)p.y * (double)p.y), c = (out - big) / tube;
    return (big + 2 * tube * c) / (2 * tube * (big + tube * c));
}

/* Area of an ellipsoid, by the midpoint rule in angles. */
static double ellipsoid_area(const double *h)
{
    const int n = 2000;
    double sum = 0;
    int i, j;
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++) {
            const double u = FSI_PI * (i + 0.5) / n, v = FSI_PI / 2 * (j + 0.5) / n;
            const double a = h[1] * h[2] * sin(u) * cos(v), b = h[0] * h[2] * sin(u) * sin(v), c = h[0] * h[1] * cos(u);
            sum += sin(u) * sqrt(a * a + b * b + c * c);
        }
    return 4 * sum * FSI_PI / n * FSI_PI / 2 / n;
}

/* Moves vertices along their normals until the volume is that of the smooth surface. */
static void swell(fsi_front *f, double volume)
{
    fsi_vec3 *normal = (fsi_vec3 *)ex_alloc(NULL, (size_t)f->vertex_count, sizeof *normal);
    int k, i;
    for (k = 0; k < 4; k++) {
        const double shift = (volume - f->piece[0].volume) / f->piece[0].area;
        ex_check(&app, fsi_front_normals(f, normal));
        for (i = 0; i < f->vertex_count; i++)
            f->position[i] = fsi_v3_add(f->position[i], fsi_v3_scale(normal[i], (fsi_real)shift));
        ex_check(&app, fsi_front_measure(f));
    }
    free(normal);
}

/* Stretches by a linear flow and brings back, in 24 steps that split and collapse. */
static void stretch(fsi_front *f)
{
    int k, i;
    for (k = 0; k < 24; k++) {
        for (i = 0; i < f->vertex_count; i++) {
            const double x = (double)f->position[i].x, y = (double)f->position[i].y, z = (double)f->position[i].z;
            f->velocity[i] = k < 12 ? front_v3(0.05 * x, -0.03 * y, -0.02 * z)
                : front_v3(x / 1.05 - x, y / 0.97 - y, z / 0.98 - z);
        }
        ex_check(&app, fsi_front_step(f, 1));
    }
}

/* Mean of squares of what curvature is off, in per cent of that of what it should be. */
static double curvature_error(const fsi_front *f, const double *h, int is_torus)
{
    fsi_real *out = (fsi_real *)ex_alloc(NULL, (size_t)f->vertex_count, sizeof *out);
    double sum = 0, all = 0;
    int i;
    ex_check(&app, fsi_front_curvature(f, out));
    for (i = 0; i < f->vertex_count; i++) {
        const double want = is_torus ? torus_curvature(2.5, 1, f->position[i]) : ellipsoid_curvature(h, f->position[i]);
        sum += ((double)out[i] - want) * ((double)out[i] - want);
        all += want * want;
    }
    free(out);
    return 100 * sqrt(sum / all);
}

/* A ball, an ellipsoid, a torus of regular triangles, smallest radius R = 8 l and 16 l. With vertices on the smooth
   surface the area of a ball is 5 l^2/(24 R^2) too small, 0.33 % at 8 l, the volume 3 l^2/(8 R^2); a surface with the
   right volume, as a front keeps it, has l^2/(24 R^2) too much, 0.07 %. */
static void run_curvature(void)
{
    static const char *const name[3] = { "ball", "ellipsoid", "torus" };
    int which, fine;
    for (which = 0; which < 3; which++) {
        const double h[3] = { 1, which ? 1.2 : 1, which ? 1.5 : 1 };
        double last[2] = { 0, 0 };
        for (fine = 1; fine <= 2; fine++) {
            const double l = 1.0 / (8 * fine), exact = which == 2 ? 4 * FSI_PI * FSI_PI * 2.5 : ellipsoid_area(h);
            front_shape s = { 3, 0, 0, NULL, NULL };
            fsi_front_desc d;
            fsi_front *f;
            double error[3], remeshed;
            if (which == 2) front_add_torus(&s, 2.5, 1, 145 * fine, 58 * fine);
            else front_add_ball(&s, front_v3(0, 0, 0), front_v3(h[0], h[1], h[2]), 14 * fine, 1);
            d = front_desc(&s, l);
            d.context = &app.context;
            ex_check(&app, fsi_front_create(&f, &d));
            error[2] = 100 * (f->stats.area / exact - 1);
            swell(f, which == 2 ? 2 * FSI_PI * FSI_PI * 2.5 : 4 * FSI_PI / 3 * h[0] * h[1] * h[2]);
            error[0] = 100 * (f->piece[0].area / exact - 1);
            error[1] = curvature_error(f, h, which == 2);
            stretch(f);
            remeshed = curvature_error(f, h, which == 2);
            say(error[2], "%", "%s_R_%d_l_inscribed_area_error", name[which], 8 * fine);
            must(error[0], 0, 0.1, "%", "%s_R_%d_l_area_error", name[which], 8 * fine);
            must(error[1], 0, 2, "%", "%s_R_%d_l_curvature_rms", name[which], 8 * fine);
            must(remeshed, 0, 2, "%", "%s_R_%d_l_curvature_rms_remeshed", name[which], 8 * fine);
            must(100 * (f->stats.area / exact - 1), 0, 0.1, "%", "%s_R_%d_l_area_error_remeshed", name[which],
                8 * fine);
            if (fine == 2) {
                say(log(last[0] / error[0]) / log(2.0), "1", "%s_area_order", name[which]);
                say(log(last[1] / error[1]) / log(2.0), "1", "%s_curvature_order", name[which]);
            }
            last[0] = error[0];
            last[1] = error[1];
            fsi_front_destroy(f);
            front_free(&s);
        }
    }
}

/* ---- topology ---------------------------------------------------------------------------------------------------- */

/* Plates that tear while they are stirred, 3D, then 2D: what still happens at rest. */
static void run_plates(topology_tally *y)
{
    static const double thick[] = { 1.2, 1.5, 2, 2.4 };
    const int runs = app.res * 9 / 10;
    double most = 0, mean = 0, mean_steps = 0;
    int k, last, latest = -1, late = 0;
    for (k = 0; k < runs; k++) {
        double removed;
        last = topology_plate(k % 9 == 8 ? 2 : 3, thick[k % 4], k & 4 ? 30 : 10, 1 + k, 30, &removed, y);
        latest = last > latest ? last : latest;
        late += last > 2;
        most = fmax(most, fabs(removed));
        mean += fabs(removed) / runs;
        mean_steps += (last + 1.0) / runs;
    }
    say(runs, "1", "plates_runs");
    say(mean_steps, "1", "plates_steps_at_rest_with_places_mean");
    say(latest + 1, "1", "plates_steps_at_rest_with_places_most");
    say(late, "1", "plates_runs_with_more_than_3_steps");
    say(100 * mean, "%", "plates_removed_at_rest_mean");
    say(100 * most, "%", "plates_removed_at_rest_most");
}

/* Random pairs of pieces that meet, necks and sheets that get thin; then some in a flow that draws them out. */
static void run_topology(void)
{
    const int runs = 500 * app.res / 100;
    topology_tally y;
    int k;
    memset(&y, 0, sizeof y);
    for (k = 0; k < runs; k++) topology_run(k % TOPOLOGY_KINDS, (uint64_t)(100 + k), &y);
    for (k = 0; k < 4; k++) topology_stir(k, 0.05, app.res, &y);
    run_plates(&y);
    say(y.merges, "1", "topology_merges");
    say(y.pinches, "1", "topology_pinches");
    say(y.places, "1", "topology_places");
    say(y.whole, "1", "topology_whole_pieces");
    must(y.failed, 0, 0, "1", "topology_failed_places");
    must(y.refused, 0, 0, "1", "topology_refused_steps");
    must(y.open, 0, 0, "1", "topology_open_edges");
    must(y.crossing, 0, 0, "1", "topology_crossing_surfaces");
    must(y.wrong_pieces, 0, 0, "1", "topology_wrong_numbers_of_pieces");
    must(y.negative, 0, 0, "1", "topology_amounts_that_became_negative");
    must(y.volume, 0, 1e-12, "1", "topology_volume_after_booking");
    must(y.amount, 0, 1e-12, "1", "topology_amounts_after_booking");
}

/* Four waves without divergence, of random directions and phases, that turn back every 40 steps. */
typedef struct waves { double wave[4][3], way[4][3], phase[4], turn[4]; } waves;
static waves make_waves(int dim, uint64_t *seed)
{
    waves w;
    int j, i;
    for (j = 0; j < 4; j++) {
        double square = 0, along = 0;
        for (i = 0; i < 3; i++) {
            w.wave[j][i] = i < dim ? 6 * test_random(seed) - 3 : 0;
            w.way[j][i] = i < dim ? 2 * test_random(seed) - 1 : 0;
            square += w.wave[j][i] * w.wave[j][i];
            along += w.wave[j][i] * w.way[j][i];
        }
        for (i = 0; i < 3; i++) w.way[j][i] -= along / square * w.wave[j][i];
        w.phase[j] = 2 * FSI_PI * test_random(seed);
        w.turn[j] = 0.04 * test_random(seed) - 0.02;
    }
    return w;
}

/* Velocities of step k; the largest is 1. */
static void blow(fsi_front *f, const waves *w, int k)
{
    double most = 1e-9;
    int i, j;
    for (i = 0; i < f->vertex_count; i++) {
        const fsi_vec3 p = f->position[i];
        fsi_vec3 v = fsi_v3(0, 0, 0);
        for (j = 0; j < 4; j++) {
            const double s = (k / 40 % 2 ? -1 : 1) * sin(w->wave[j][0] * (double)p.x + w->wave[j][1] * (double)p.y
                + w->wave[j][2] * (double)p.z + w->phase[j] + w->turn[j] * k);
            v = fsi_v3_add(v, front_v3(w->way[j][0] * s, w->way[j][1] * s, w->way[j][2] * s));
        }
        f->velocity[i] = v;
        most = fmax(most, (double)fsi_v3_norm(v));
    }
    for (i = 0; i < f->vertex_count; i++) f->velocity[i] = fsi_v3_scale(f->velocity[i], (fsi_real)(1 / most));
}

/* Volume once the vertices have moved by dt. */
static double moved_volume(const fsi_front *f, double dt)
{
    fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)f->vertex_count, sizeof *x);
    double sum = 0;
    int i;
    for (i = 0; i < f->vertex_count; i++) x[i] = fsi_v3_madd(f->position[i], (fsi_real)dt, f->velocity[i]);
    for (i = 0; i < f->element_count; i++) sum += fsi__fr_volume_of(f->dim, x, f->elements + f->dim * i, x[0]);
    free(x);
    return sum;
}

/* A ball, or disc, in random fields, by 0.3 edges a step: bounds, and volume that nothing but what is booked changes.
   Each step ends with the exact test of all pairs, or is refused. */
static void run_fields(void)
{
    const int steps = scaled(2000);
    uint64_t seed = 1;
    double longest = 0, shortest = 9, angle = 99, lost = 0;
    int field, k, refused = 0, not_kept = 0;
    for (field = 0; field < 12; field++) {
        const int dim = field % 3 == 2 ? 2 : 3;
        const waves w = make_waves(dim, &seed);
        front_shape s = { 3, 0, 0, NULL, NULL };
        fsi_front_desc d;
        fsi_front *f;
        s.dim = dim;
        if (dim == 3) front_add_ball(&s, front_v3(0, 0, 0), front_v3(0.5, 0.5, 0.5), 10, 1);
        else front_add_circle(&s, front_v3(0, 0, 0), 0.5, 140, 1);
        d = front_desc(&s, dim == 3 ? 0.08 : 0.02);
        d.context = &app.context;
        d.keep_volume = field % 2;
        ex_check(&app, fsi_front_create(&f, &d));
        for (k = 0; k < steps; k++) {
            const double dt = 0.3 * (double)d.length, booked = f->piece[0].moved, owed = f->piece[0].owed;
            double want;
            blow(f, &w, k);
            want = moved_volume(f, dt);
            if (fsi_front_step(f, (fsi_real)dt) != FSI_OK) {
                refused++;
                break;
            }
            if (!d.keep_volume) want += f->piece[0].moved - booked;
            want += owed - f->piece[0].owed;
            lost = fmax(lost, fabs(f->piece[0].volume / want - 1));
            longest = fmax(longest, f->stats.longest);
            shortest = fmin(shortest, f->stats.shortest);
            angle = dim == 3 ? fmin(angle, f->stats.smallest_angle) : angle;
            not_kept += f->stats.not_kept;
        }
        fsi_front_destroy(f);
        front_free(&s);
    }
    must(refused, 0, 0, "1", "fields_refused_steps");
    must(longest, 1, 0.6, "l", "fields_longest_edge");
    must(shortest, 1, 0.6, "l", "fields_shortest_edge");
    must(angle, 60, 50, "degrees", "fields_smallest_angle");
    must(lost, 0, 1e-12, "1", "fields_volume_not_booked");
    say(not_kept, "1", "fields_steps_that_did_not_keep_volume");
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void);
    } parts[] = {{"parity", run_parity}, {"zalesak", run_zalesak}, {"enright", run_enright},
                 {"curvature", run_curvature}, {"fields", run_fields}, {"topology", run_topology}};
    const int count = (int)(sizeof parts / sizeof parts[0]);
    const char *only = NULL;
    int k;
    ex_init(&app, "validate_front", "Surfaces that move: parity, carried shapes, area, curvature, random fields.");
    app.res = 100;
    app.res_help = "per cent of the full number of points and steps";
    app.threads = 1;
    app.out = "docs";
    ex_operand(&app, "part", &only, "parity, zalesak, enright, curvature, fields or topology; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    for (k = 0; k < count; k++) if (!only || strcmp(only, parts[k].name) == 0) parts[k].run();
    ex_pool_stop(&app.pool);
    return 0;
}
