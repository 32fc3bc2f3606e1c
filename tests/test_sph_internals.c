/* test_sph_internals.c - numbers spoiled inside a step, and states that were forged: nothing of it reaches the liquid;
   pair sums by AVX2 and in plain C.
   SPDX-License-Identifier: MIT */
struct fsi__sph_run;
static void spoil_after_pass(struct fsi__sph_run *run);
#define FSI__SPH_AFTER_PASS(run) spoil_after_pass(run)
#define FSI_GROUND_IMPLEMENTATION
#define FSI_SPH_IMPLEMENTATION
#include "kit/test_sph_scenes.h"
#include "../fsi_sph.h"

/* ---- spoiled numbers ------------------------------------------------------------------------------------------ */

/* Counts the passes of a step over its particles, and after one of them spoils a number of one working array. */
static struct { int pass, at, array; double bad; } spoil = { 0, -1, 0, 0 };

/* The arrays: 5 of positions and velocities, 4 of the solve, lambda, 2 of walls; 7 of the viscous solve, 1 of its walls. */
enum { ALL_LIQUIDS = 10, WITH_WALLS = 12, WITH_VISCOSITY = 20 };

static void spoil_viscosity(struct fsi__sph_run *run, fsi__sph_wall *w, int array, int i)
{
    fsi__sph_viscosity *o = &run->viscous;
    const fsi__lane bad = (fsi__lane)spoil.bad;
    if (array == 0) o->v[i][1] = spoil.bad;
    else if (array == 1) o->before[i][0] = spoil.bad;
    else if (array == 2) o->r[i].x = bad;
    else if (array == 3) o->p[i].y = bad;
    else if (array == 4) o->q[i].x = bad;
    else if (array == 5) o->d[i].x = bad;
    else if (array == 6) o->inverse[i].xx = bad;
    else if (w && w->part_count > 0) w->part[0].drag = bad;
}

/* Ranks whose pair sums were compared with those of plain C, and those of which a bit differs. */
static struct { int on, ranks, differ; } compared;

static void compare_sums(const struct fsi__sph_run *run)
{
    fsi__lane sum[2][FSI__SPH_BLOCK];
    fsi__lane4 four[2][FSI__SPH_BLOCK];
    int i;
    memset(sum, 0, sizeof sum);
    memset(four, 0, sizeof four);
    for (i = 0; i < run->n; i += FSI__SPH_BLOCK) {
        const int end = fsi__sph_block_end(i, run->n);
        fsi__sph_density_sums(run, run->zp, i, end, sum[0]);
        fsi__sph_density_sums_plain(run, run->zp, i, end, sum[1]);
        fsi__sph_gradient_sums(run, i, end, four[0]);
        fsi__sph_gradient_sums_plain(run, i, end, four[1]);
        compared.ranks += end - i;
        compared.differ += memcmp(sum[0], sum[1], sizeof sum[0]) || memcmp(four[0], four[1], sizeof four[0]);
    }
}

static void spoil_after_pass(struct fsi__sph_run *run)
{
    fsi__sph_wall *w = run->wall_count > 0 ? &run->wall[run->wall_count / 2] : NULL;
    fsi_vec3 *vectors[5];
    fsi__lane4 *lanes[4];
    int i = run->n / 2;
    if (compared.on && run->stats.iterations > 0) compare_sums(run);
    if (spoil.pass++ != spoil.at) return;
    vectors[0] = run->x, vectors[1] = run->v, vectors[2] = run->warm, vectors[3] = run->target, vectors[4] = run->guess;
    lanes[0] = run->star, lanes[1] = run->u, lanes[2] = run->uz, lanes[3] = run->step;
    if (spoil.array < 5) vectors[spoil.array][i].y = (fsi_real)spoil.bad;
    else if (spoil.array < 9) lanes[spoil.array - 5][i].x = (fsi__lane)spoil.bad;
    else if (spoil.array == 9) run->lambda[i] = (fsi__lane)spoil.bad;
    else if (spoil.array >= WITH_WALLS) spoil_viscosity(run, w, spoil.array - WITH_WALLS, i);
    else if (spoil.array == 10 && w) w->g[0] = (fsi__lane)spoil.bad;
    else if (w) w->kappa = (fsi__lane)spoil.bad;
}

/* Tries a step with each of the arrays first .. end - 1 spoiled after each of its passes, by NaN and by infinity (kinds 2)
   or by either in turn: the step fails and nothing has changed, or what was spoiled was not used any more and the new
   state is sound. Then it goes through. Returns how many of the steps failed; one in three is tried where that takes long. */
static int spoil_steps(fsi_sph *s, int first, int end, int kinds, int *passes)
{
    const int n = end - first;
    size_t size;
    void *state = save_state(s, &size);
    int refused = 0, k;
    spoil.pass = 0;
    step_ok(s, 8e-3);
    *passes = spoil.pass;
    for (k = 0; k < *passes * n * kinds; k += TEST_SLOWED ? 3 : 1) {
        uint64_t hash;
        fsi_status status;
        int i, bad = 0;
        CHECK(fsi_sph_load(s, state, size) == FSI_OK);
        hash = fsi_sph_hash(s);
        spoil.array = first + k / kinds % n;
        spoil.at = k / kinds / n;
        spoil.bad = (kinds == 2 ? k : spoil.array + spoil.at) & 1 ? test_inf() : test_nan();
        spoil.pass = 0;
        status = fsi_sph_step(s, (fsi_real)8e-3);
        for (i = 0; i < s->count; i++) {
            bad += !fsi_v3_is_finite(s->position[i]) || !fsi_v3_is_finite(s->velocity[i]);
            bad += s->aeration && !(s->aeration[i] >= 0 && s->aeration[i] <= 1);
        }
        if (!CHECK(bad == 0)) break;
        if (status == FSI_OK) continue;
        refused += TEST_SLOWED ? 3 : 1;
        if (!CHECK(status == FSI_ERROR_NAN) || !CHECK(fsi_sph_hash(s) == hash)) break;
    }
    spoil.at = -1;
    CHECK(fsi_sph_load(s, state, size) == FSI_OK);
    step_ok(s, 8e-3);
    free(state);
    return refused;
}

/* In every phase of the first and the last substep. */
static void test_a_number_spoiled_in_any_phase_reaches_no_state(void)
{
    fsi_mesh *bar = make_bar(2, NULL);
    fsi_sph *s = make_dam(2, 0.02, NULL, bar);
    int passes, k;
    for (k = 0; k < 25; k++) step_ok(s, 8e-3); /* on the bar */
    s->desc.max_substeps = 2;
    CHECK(spoil_steps(s, 0, WITH_WALLS, 2, &passes) > passes); /* most of these do harm when let through */
    CHECK(s->stats.substeps == 2 && s->stats.wall_particles > 0 && passes > 40);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(bar);
}

/* In passes of emitters, markers and sinks among others. */
static void test_a_number_spoiled_in_a_fountain_reaches_no_state(void)
{
    fountain f = make_fountain(2, 0.03, NULL);
    int passes, k;
    for (k = 0; k < 20; k++) step_ok(f.s, 8e-3);
    f.s->desc.max_substeps = 2;
    CHECK(spoil_steps(f.s, 0, ALL_LIQUIDS, 1, &passes) > passes);
    end_fountain(&f);
}

static void test_a_number_spoiled_in_the_viscous_solve_reaches_no_state(void)
{
    fsi_mesh *block = make_pour_block();
    fsi_sph *s = make_pour(2, NULL, block);
    int passes, k;
    for (k = 0; k < 25; k++) step_ok(s, 8e-3);
    s->desc.max_substeps = 1;
    CHECK(spoil_steps(s, WITH_WALLS, WITH_VISCOSITY, 2, &passes) > 20);
    CHECK(s->stats.viscosity_iterations > 3 && s->stats.wall_particles > 0);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(block);
}

/* ---- forged states -------------------------------------------------------------------------------------------- */

/* A state with other emitters, sinks or attributes, and every damaged byte, is refused; nothing changes. */
static void test_states_of_unlike_liquids_are_refused(void)
{
    fountain f = make_fountain(2, 0.02, NULL);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_sph_desc d = f.s->desc;
    fsi_sph *other;
    fsi__state_header header;
    size_t size, k;
    unsigned char *state, *bad;
    uint64_t hash, bare;
    int id;
    for (k = 0; k < 10; k++) step_ok(f.s, 4e-3);
    state = (unsigned char *)save_state(f.s, &size);
    bad = (unsigned char *)malloc(size);
    d.context = NULL;
    e.radius = (fsi_real)0.05;
    other = make_sph(&d);
    bare = fsi_sph_hash(other);
    CHECK(fsi_sph_load(other, state, size) == FSI_ERROR_FORMAT && strstr(fsi_sph_error(other)->message, "emitters") != NULL);
    CHECK(fsi_sph_hash(other) == bare);
    fsi_sph_destroy(other);
    hash = fsi_sph_hash(f.s);
    for (k = 0; k < size; k += k < 600 ? 1 : 61) {
        memcpy(bad, state, size);
        bad[k] ^= 0x40;
        CHECK(fsi_sph_load(f.s, bad, size) == FSI_ERROR_FORMAT && fsi_sph_hash(f.s) == hash);
        if (k < sizeof header || k >= 500) continue;
        memcpy(bad, state, size); /* a state that was forged: whatever is accepted can be used */
        bad[k] ^= 0xff;
        header = fsi__make_state_header(f.s->cookie, size - sizeof header, fsi_hash(bad + sizeof header, size - sizeof header, 0));
        memcpy(bad, &header, sizeof header);
        if (fsi_sph_load(f.s, bad, size) == FSI_OK) (void)fsi_sph_step(f.s, (fsi_real)1e-3);
        CHECK(fsi_sph_load(f.s, state, size) == FSI_OK && fsi_sph_hash(f.s) == hash);
    }
    CHECK(fsi_sph_remove_emitter(f.s, f.floor) == FSI_OK && fsi_sph_add_emitter(f.s, &e, &id) == FSI_OK && id == 3);
    CHECK(fsi_sph_load(f.s, state, size) == FSI_ERROR_FORMAT); /* as many, but others */
    free(state);
    free(bad);
    end_fountain(&f);
}

/* ---- bits ----------------------------------------------------------------------------------------------------- */

/* Pair sums as this processor does them have the bits of plain C: in the plane and in space, in each pass of a dam. */
static void test_pair_sums_have_the_bits_of_plain_c(void)
{
    int dim, full, k;
    for (dim = 2; dim <= 3; dim++) for (full = 0; full < 2; full++) {
        fsi_sph *s = make_dam(dim, dim == 2 ? 0.02 : 0.05, NULL, NULL);
        s->desc.full_diagonal = full;
        compared.on = 1;
        compared.ranks = compared.differ = 0;
        for (k = 0; k < 5; k++) step_ok(s, 8e-3);
        compared.on = 0;
        CHECK(compared.ranks > 20 * s->count && compared.differ == 0);
        fsi_sph_destroy(s);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_number_spoiled_in_any_phase_reaches_no_state);
    RUN(test_a_number_spoiled_in_a_fountain_reaches_no_state);
    RUN(test_a_number_spoiled_in_the_viscous_solve_reaches_no_state);
    RUN(test_states_of_unlike_liquids_are_refused);
    RUN(test_pair_sums_have_the_bits_of_plain_c);
    return TEST_END();
}
