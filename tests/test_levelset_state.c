/* test_levelset_state.c - the level-set liquid's state is all there is: a rollback, a step tried again and scratch
   full of rubbish change no bit.
   SPDX-License-Identifier: MIT */
struct fsi__ls_run;
static void poison_after_phase(struct fsi__ls_run *run, int phase);
#define FSI__LS_AFTER_PHASE(run, phase) poison_after_phase(run, phase)
#define FSI_GROUND_IMPLEMENTATION
#define FSI_GRID_IMPLEMENTATION
#define FSI_PRESSURE_IMPLEMENTATION
#define FSI_VISCOSITY_IMPLEMENTATION
#define FSI_LEVELSET_IMPLEMENTATION
#include "kit/test.h"
#include "../fsi_levelset.h"
#include "kit/test_meshes.h"

/* ---- scenes: a pool and a drop, solids and sources among them ---------------------------------------------------- */

enum {
    TENSION = 1,
    SMOOTH = 2,
    DELTA = 4,
    VISCOUS = 8,
    FIXED = 16,
    MESH = 32,
    MOVED = 64,
    FREE = 128,
    SOURCES = 256,
    FIRST_ORDER = 512,
    DRAINED = 1024,
    FILMS = 2048
};

static const int kinds[] = {TENSION | FIXED,
                            TENSION | MESH,
                            TENSION | VISCOUS | MOVED,
                            TENSION | FREE | SOURCES,
                            TENSION | SMOOTH | MESH | FREE,
                            TENSION | DELTA | FIRST_ORDER | MOVED,
                            VISCOUS | SOURCES | DRAINED,
                            TENSION | DELTA | SMOOTH | FIXED | MESH,
                            MESH | MOVED | FREE | SOURCES | FIRST_ORDER,
                            FILMS | FIXED};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct scene {
    int kind, dim;
    fsi_context context;
    fsi_mesh *mesh[4];         /* that rests, that is moved, those of the bodies */
    fsi_body moved, floater;
    fsi_levelset *s;
} scene;

/* Upright in x and y in 2D, in x and z in 3D. */
static fsi_vec3 up(int dim, double x, double h) { return dim == 2 ? v3(x, h, 0) : v3(x, 0.5, h); }

static fsi_pose stand(int dim, double x, double h, double angle)
{
    fsi_pose p = pose_at(dim, x, h, angle);
    p.position = up(dim, x, h);
    return p;
}

static void add_sources(scene *q)
{
    fsi_levelset_emitter_desc e = fsi_levelset_default_emitter_desc();
    fsi_levelset_sink_desc k = fsi_levelset_default_sink_desc();
    e.center = up(q->dim, 0, 0.75);
    e.radius = (fsi_real)0.13;
    e.velocity = q->dim == 2 ? v3(0, 0.2, 0) : v3(0, 0, 0.2);
    CHECK(fsi_levelset_add_emitter(q->s, &e, NULL) == FSI_OK);
    k.box = box3(0.8, 0, 0, 1, 1, 1);
    k.rate = (fsi_real)0.1;
    CHECK(fsi_levelset_add_sink(q->s, &k, NULL) == FSI_OK);
}

static void add_solid(scene *q, const fsi_mesh *mesh, fsi_body *body)
{
    fsi_levelset_obstacle_desc o = fsi_levelset_default_obstacle_desc();
    o.mesh = mesh;
    o.body = body;
    o.contact_angle = body ? 70 : 90;
    CHECK(fsi_levelset_add_obstacle(q->s, &o, NULL) == FSI_OK);
}

/* Where meshes and bodies are to be at the end of step k. */
static void aim(scene *q, int k)
{
    if (q->kind & MESH) {
        const fsi_pose p = stand(q->dim, 0.22 + 0.01 * (k + 1), 0.3, 0.05 * (k + 1));
        CHECK(fsi_mesh_move_rigid(q->mesh[1], p.position, p.orientation) == FSI_OK);
    }
    if (q->kind & MOVED) q->moved.end = stand(q->dim, 0.75, 0.35 - 0.01 * (k + 1), 0.1 * (k + 1));
}

static void scene_begin(scene *q, int dim, int kind, int n)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    const double g = 9.81;
    memset(q, 0, sizeof *q);
    q->kind = kind;
    q->dim = dim;
    q->context = fsi_default_context();
    test_fail_allocator(&q->context, 0);
    d.context = &q->context;
    d.dim = dim;
    d.n[0] = d.n[1] = d.n[2] = n;
    d.dx = (fsi_real)(1.0 / n);
    d.gravity = dim == 2 ? v3(0, -g, 0) : v3(0, 0, -g);
    d.surface_tension = kind & TENSION ? (kind & SMOOTH ? 40 : 2) : 0;
    d.tension = kind & DELTA ? FSI_LEVELSET_TENSION_DELTA : FSI_LEVELSET_TENSION_JUMP;
    d.capillary_cfl = kind & SMOOTH ? 3 : 1;
    d.viscosity = (fsi_real)(kind & VISCOUS ? 2 : 0);
    d.time_order = kind & FIRST_ORDER ? 1 : 2;
    d.open_side[1] = (kind & DRAINED) != 0;
    d.pressure_tolerance = TOL(1e-6, 1e-5);
    d.volume_tolerance = TOL(1e-8, 1e-5);
    d.contact_angle = 80;
    if (!CHECK(fsi_levelset_create(&q->s, &d) == FSI_OK)) exit(1);
    q->mesh[0] = make_block(dim, 0.12, 0.09, 0.3);
    q->mesh[1] = make_block(dim, 0.09, 0.14, 0.2);
    q->mesh[2] = make_block(dim, 0.1, 0.12, 0.3);
    q->mesh[3] = make_block(dim, 0.13, 0.1, 0.2);
    mesh_to(q->mesh[0], stand(dim, 0.5, 0.15, 0.2));
    mesh_to(q->mesh[1], stand(dim, 0.22, 0.3, 0));
    mesh_to(q->mesh[2], stand(dim, 0.75, 0.35, 0));
    mesh_to(q->mesh[3], stand(dim, 0.5, 0.48, 0.1));
    q->moved = fsi_default_body();
    q->moved.pose = q->moved.end = stand(dim, 0.75, 0.35, 0);
    q->floater = make_floater(q->mesh[3], 400, g, dim);
    if (kind & FIXED) add_solid(q, q->mesh[0], NULL);
    if (kind & MESH) add_solid(q, q->mesh[1], NULL);
    if (kind & MOVED) add_solid(q, q->mesh[2], &q->moved);
    if (kind & FREE) add_solid(q, q->mesh[3], &q->floater);
    if (kind & SOURCES) add_sources(q);
}

static void scene_fill(scene *q)
{
    fsi_box3 pool;
    pool.lo = v3(0, 0, 0);
    pool.hi = q->dim == 2 ? v3(1, 0.42, 0) : v3(1, 1, 0.42);
    CHECK(fsi_levelset_fill_box(q->s, pool, v3(0, 0, 0), NULL) == FSI_OK);
    CHECK(fsi_levelset_fill_sphere(q->s, up(q->dim, 0.45, 0.8), (fsi_real)0.14, up(q->dim, 1, -1), NULL) == FSI_OK);
    if (q->kind & FILMS) { /* liquid under the ceiling, which lets go of it, and a drop that is to become too small for
                              the grid */
        int c;
        pool = q->dim == 2 ? box3(0.6, 0.85, 0, 0.9, 1, 0) : box3(0.6, 0.3, 0.85, 0.9, 0.7, 1);
        CHECK(fsi_levelset_fill_box(q->s, pool, v3(0, 0, 0), NULL) == FSI_OK);
        CHECK(fsi_levelset_fill_sphere(q->s, up(q->dim, 0.12, 0.75), (fsi_real)0.9 * q->s->desc.dx, up(q->dim, 0, 1),
                                       NULL) == FSI_OK);
        for (c = 0; c < q->s->component_count; c++)
            if ((double)q->s->component[c].shape.centroid.x < 0.2)
                CHECK(fsi_levelset_set_volume(q->s, c, 0.01 * pow((double)q->s->desc.dx, q->dim)) == FSI_OK);
    }
}

static void scene_end(scene *q)
{
    int k;
    fsi_levelset_destroy(q->s);
    for (k = 0; k < 4; k++) fsi_mesh_destroy(q->mesh[k]);
    CHECK(q->context.bytes == 0);
}

/* Step k; what a host does with bodies after it. */
static fsi_status advance(scene *q, int k)
{
    const fsi_real dt = (fsi_real)0.01;
    fsi_status status;
    aim(q, k);
    status = fsi_levelset_step(q->s, dt);
    if (status != FSI_OK) return status;
    fsi_body_integrate(&q->moved, dt);
    fsi_body_integrate(&q->floater, dt);
    return FSI_OK;
}

static uint64_t bits(const scene *q)
{
    uint64_t h = fsi_levelset_hash(q->s);
    int k;
    h = fsi_hash(&q->moved, sizeof q->moved, h);
    h = fsi_hash(&q->floater, sizeof q->floater, h);
    h = fsi_hash(&q->s->stats.kinetic_energy, sizeof(double), h);
    for (k = 0; k < q->s->component_count; k++) {
        h = fsi_hash(&q->s->component[k].target, sizeof(double), h);
        /* without the padding behind it */
        h = fsi_hash(&q->s->component[k].shape, offsetof(fsi_grid_component, cells) + sizeof(int), h);
    }
    return fsi_hash(q->s->label, (size_t)q->s->grid->block_count * (size_t)q->s->grid->block_cells * sizeof(int), h);
}

/* A state, with what is the caller's. */
typedef struct saved {
    unsigned char *state;
    size_t size;
    fsi_body moved, floater;
    int k; /* step that comes next */
} saved;

static saved save_scene(const scene *q, int k)
{
    saved v;
    v.k = k;
    v.moved = q->moved;
    v.floater = q->floater;
    CHECK(fsi_levelset_save(q->s, NULL, 0, &v.size) == FSI_OK);
    v.state = (unsigned char *)malloc(v.size);
    if (!v.state) exit(1);
    CHECK(fsi_levelset_save(q->s, v.state, v.size, &v.size) == FSI_OK);
    return v;
}

static void put_back(scene *q, const saved *v)
{
    q->moved = v->moved;
    q->floater = v->floater;
    if (q->kind & MESH) mesh_to(q->mesh[1], stand(q->dim, 0.22 + 0.01 * v->k, 0.3, 0.05 * v->k));
    CHECK(fsi_levelset_load(q->s, v->state, v->size) == FSI_OK);
}

/* ---- poison ----------------------------------------------------------------------------------------------------- */

static struct { int on, byte, calls; } poison;

static void spoil(void *p, size_t size) { if (p) memset(p, poison.byte, size); }
static void spoil_arena(fsi__arena *a) { spoil(a->base, a->size); }

static void spoil_field(fsi_field *f)
{
    const fsi__grid_impl *g = f ? (const fsi__grid_impl *)f->grid->impl : NULL;
    if (f) spoil(f->value, (size_t)g->capacity * (size_t)f->grid->block_cells * sizeof(fsi_real));
}

static void spoil_parts(fsi__ls_parts *p)
{
    fsi__column c[FSI__LS_PARTS];
    int k;
    fsi__ls_part_columns(p, c);
    for (k = 0; k < FSI__LS_PARTS; k++) spoil(*c[k].array, c[k].size * (size_t)p->capacity);
}

static void spoil_solver(fsi_pressure *s)
{
    fsi__pressure_impl *m = (fsi__pressure_impl *)s->impl;
    fsi__arena *a[9];
    int k;
    a[0] = &m->lists_memory, a[1] = &m->cuts_memory, a[2] = &m->vectors_memory, a[3] = &m->faces_memory,
    a[4] = &m->responses_memory;
    a[5] = &m->yields_memory, a[6] = &m->runs_memory, a[7] = &m->pieces_memory, a[8] = &m->nulls_memory;
    for (k = 0; k < 9; k++) spoil_arena(a[k]);
    for (k = 0; k < FSI__MG_LEVELS; k++) {
        spoil_arena(&m->mg.level[k].lists_memory);
        spoil_arena(&m->mg.level[k].numbers_memory);
    }
}

/* What nobody may read before it is written, whenever no function is at work on it. */
static void spoil_always(fsi_levelset *s)
{
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    const size_t blocks = (size_t)m->room, cells = blocks * (size_t)s->grid->block_cells;
    int k;
    spoil_solver(m->solver);
    spoil_arena(&((fsi__grid_impl *)s->grid->impl)->scratch);
    spoil(((fsi__grid_impl *)s->grid->impl)->next, (size_t)((fsi__grid_impl *)s->grid->impl)->capacity * sizeof(int));
    spoil_arena(&((fsi__viscosity *)m->viscosity->impl)->plan);
    spoil_arena(&((fsi__viscosity *)m->viscosity->impl)->arena);
    spoil_arena(&((fsi__viscosity *)m->viscosity->impl)->grids);
    spoil_arena(&((fsi__viscosity *)m->viscosity->impl)->coarse);
    spoil_arena(&((fsi__viscosity *)m->viscosity->impl)->exact);
    spoil_field(m->spare);
    spoil(m->cell, cells);
    spoil(m->uniform, blocks * sizeof(int));
    spoil(m->next_uniform, blocks * sizeof(int));
    spoil(m->wanted, fsi__grid_places(s->grid));
    spoil(m->link, (size_t)m->link_capacity * sizeof *m->link);
    spoil(m->band, (size_t)m->band_capacity * sizeof *m->band);
    spoil(m->piece, (size_t)m->piece_capacity * sizeof *m->piece);
    spoil(m->face, (size_t)m->face_capacity * sizeof *m->face);
    spoil(m->face_change, (size_t)m->face_capacity * sizeof(double));
    spoil(m->face_left, (size_t)m->face_capacity * sizeof(double));
    spoil(m->sum, (size_t)m->sum_capacity * sizeof(double));
    spoil_parts(&m->next);
    for (k = 0; k < m->obstacle_count; k++) {
        fsi__faces_impl *f = (fsi__faces_impl *)m->obstacle[k].faces->impl;
        spoil_arena(&f->blocks);
        spoil_arena(&f->slots);
        spoil(m->obstacle[k].velocity, (size_t)m->obstacle[k].velocity_capacity * sizeof(fsi_real));
    }
    poison.calls++;
}

/* Between calls the trial is rubbish too. */
static void spoil_trial(fsi_levelset *s)
{
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    const size_t cells = (size_t)m->room * (size_t)s->grid->block_cells;
    int a;
    spoil_always(s);
    spoil(m->shore, cells);
    spoil(m->let_go, cells);
    spoil(m->trial_droplet, (size_t)m->droplet_capacity * sizeof *m->trial_droplet);
    spoil_field(m->trial_phi);
    spoil_field(m->next_phi);
    spoil_field(m->trial_pressure);
    spoil_field(m->trial_carried);
    spoil_field(m->curvature);
    for (a = 0; a < 3; a++) {
        spoil_field(m->trial_u[a]);
        spoil_field(m->next_u[a]);
        spoil_field(m->trial_carry[a]);
        spoil(m->known[a], cells);
    }
    spoil(m->trial_label, (size_t)m->room * (size_t)s->grid->block_cells * sizeof(int));
    spoil(m->next_label, (size_t)m->room * (size_t)s->grid->block_cells * sizeof(int));
    spoil(m->before, fsi__grid_places(s->grid));
    spoil_parts(&m->trial);
}

/* Phases: 0 forces, 1 viscosity, 2 advection, 3 volumes, 4 the last projection. */
static void poison_after_phase(struct fsi__ls_run *run, int phase)
{
    fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)m->room * (size_t)run->grid->block_cells;
    int a;
    if (!poison.on) return;
    spoil_always(run->s);
    if (phase != 2) spoil(m->shore, cells);
    if (phase >= 2) spoil(m->let_go, cells);
    if (phase < 2 || phase == 4) spoil_field(m->next_phi);
    if (phase >= 2) spoil_field(m->curvature);
    if (phase >= 3) spoil_field(m->trial_phi == m->phi || phase == 4 ? NULL : m->trial_phi);
    for (a = 0; a < 3; a++) {
        if (phase < 2 || phase == 4) spoil_field(m->next_u[a]);
        if (phase >= 2) spoil(m->known[a], cells);
        if (phase == 3) spoil_field(m->trial_u[a]);
    }
    if (phase < 2 || phase >= 3) spoil(m->next_label, (size_t)m->room * (size_t)run->grid->block_cells * sizeof(int));
}

/* ---- the promises ----------------------------------------------------------------------------------------------- */

enum { BEFORE = 3, AFTER = 3 };
static struct { int released, droplets; } films; /* seen in all scenes */

/* Runs a scene; its state after BEFORE steps, and the bits after each of the next ones. */
static saved run_on(scene *q, int dim, int kind, int n, uint64_t *want)
{
    saved v;
    int k;
    scene_begin(q, dim, kind, n);
    scene_fill(q);
    for (k = 0; k < BEFORE; k++) CHECK(advance(q, k) == FSI_OK);
    v = save_scene(q, BEFORE);
    for (k = 0; k < AFTER; k++) {
        CHECK(advance(q, BEFORE + k) == FSI_OK);
        want[k] = bits(q);
        films.released += q->s->stats.released;
        films.droplets += q->s->droplet_count;
    }
    return v;
}

/* The liquid goes on with the same bits in the simulator that it was saved from, and in a fresh one. */
static void test_a_rollback_goes_on_to_the_bit(void)
{
    int dim, kind, k;
    for (dim = 2; dim <= 3; dim++)
        for (kind = 0; kind < KINDS; kind++) {
            uint64_t want[AFTER];
            scene q, fresh;
            saved v = run_on(&q, dim, kinds[kind], dim == 2 ? 24 : 12, want);
            put_back(&q, &v);
            scene_begin(&fresh, dim, kinds[kind], dim == 2 ? 24 : 12);
            put_back(&fresh, &v);
            for (k = 0; k < AFTER; k++) {
                CHECK(advance(&q, BEFORE + k) == FSI_OK && advance(&fresh, BEFORE + k) == FSI_OK);
                CHECK(bits(&q) == want[k] && bits(&fresh) == want[k]);
            }
            free(v.state);
            scene_end(&q);
            scene_end(&fresh);
        }
}

/* Rubbish in all scratch, between phases and before every step, changes no bit. */
static void test_poisoned_scratch_changes_no_bit(void)
{
    static const int bytes[2] = { 0xff, 0x5a };
    int dim, kind, k, b;
    for (dim = 2; dim <= 3; dim++)
        for (kind = 0; kind < KINDS; kind++)
            for (b = 0; b < (dim == 2 ? 2 : 1); b++) {
                uint64_t want[AFTER];
                scene q;
                saved v = run_on(&q, dim, kinds[kind], dim == 2 ? 24 : 12, want);
                put_back(&q, &v);
                poison.byte = bytes[b];
                poison.on = 1;
                for (k = 0; k < AFTER; k++) {
                    spoil_trial(q.s);
                    CHECK(advance(&q, BEFORE + k) == FSI_OK);
                    if (bits(&q) != want[k] && test__run.faults < 10)
                        printf("      %dD, kind %d, byte %x, step %d: ", dim, kind, bytes[b], k);
                    CHECK(bits(&q) == want[k]);
                }
                poison.on = 0;
                free(v.state);
                scene_end(&q);
            }
    printf("      %d faces let go, %d droplets\n", films.released, films.droplets);
    CHECK(films.released > 0 && films.droplets > 0);
}

/* ---- memory that fails ------------------------------------------------------------------------------------------ */

static struct { long count, fail_at; int once; } heap;

static void *failing_alloc(void *user, size_t size, size_t align)
{
    heap.count++;
    if (heap.fail_at && (heap.once ? heap.count == heap.fail_at : heap.count >= heap.fail_at)) return NULL;
    return test__alloc(user, size, align);
}

static void fail_from(fsi_context *context, long at, int once)
{
    context->alloc = failing_alloc;
    heap.count = 0;
    heap.fail_at = at;
    heap.once = once;
}

/* A step whose n-th allocation fails changes nothing, and tried again gives the bits that it would have given. */
static int retry(int dim, int kind, int n, const saved *v, uint64_t want, long at, int once)
{
    scene q;
    uint64_t before;
    fsi_status status;
    scene_begin(&q, dim, kind, n);
    put_back(&q, v);
    aim(&q, v->k);
    before = bits(&q);
    fail_from(&q.context, at, once);
    status = advance(&q, v->k);
    fail_from(&q.context, 0, 0);
    if (status != FSI_OK) {
        CHECK(status == FSI_ERROR_MEMORY && bits(&q) == before);
        poison.byte = 0xff;
        spoil_trial(q.s);
        CHECK(advance(&q, v->k) == FSI_OK);
    }
    if (bits(&q) != want && test__run.faults < 10)
        printf("      %dD, kind %d, allocation %ld%s: ", dim, kind, at, once ? "" : " and later");
    CHECK(bits(&q) == want);
    scene_end(&q);
    return status != FSI_OK;
}

static void test_a_step_without_memory_tried_again_gives_the_same_bits(void)
{
    int dim, kind, once, failed = 0;
    for (dim = 2; dim <= 3; dim++)
        for (kind = 0; kind < KINDS; kind += dim == 2 ? 1 : 5)
            for (once = 0; once < 2; once++) {
                const int n = dim == 2 ? 24 : 12;
                uint64_t want[AFTER];
                long at = 1;
                scene q;
                saved v = run_on(&q, dim, kinds[kind], n, want);
                while (retry(dim, kinds[kind], n, &v, want[0], at, once) && at < 500) at++, failed++;
                CHECK(at > 3);
                free(v.state);
                scene_end(&q);
            }
    printf("      %d failures\n", failed);
    CHECK(test_live_bytes() == 0);
}

/* ---- every call without memory ---------------------------------------------------------------------------------- */

enum {
    CREATE,
    FILL_BOX,
    FILL_SPHERE,
    FILL_MESH,
    ADD_MESH,
    ADD_BODY,
    REMOVE,
    TELEPORT,
    ADD_EMITTER,
    ADD_SINK,
    LOAD,
    STEP,
    CALLS
};

/* Makes one call on a scene of solids and sources; CREATE makes another liquid and drops it. */
static fsi_status call(scene *q, int which, const saved *v, const fsi_mesh *more)
{
    const fsi_vec3 rest = v3(0, 0, 0);
    fsi_levelset_obstacle_desc o = fsi_levelset_default_obstacle_desc();
    fsi_levelset_emitter_desc e = fsi_levelset_default_emitter_desc();
    fsi_levelset_sink_desc k = fsi_levelset_default_sink_desc();
    fsi_levelset_desc d = q->s->desc;
    fsi_levelset *other = NULL;
    fsi_status status = FSI_OK;
    double added = -1;
    d.reserve = 3;
    d.cookie = fsi_levelset_default_desc().cookie;
    o.mesh = more;
    o.body = which == ADD_BODY ? &q->moved : NULL;
    e.radius = (fsi_real)0.1;
    k.box = box3(0.9, 0, 0, 1, 1, 1);
    if (which == CREATE) {
        status = fsi_levelset_create(&other, &d);
        CHECK((status == FSI_OK) == (other != NULL));
        fsi_levelset_destroy(other);
    }
    else if (which == FILL_BOX) status = fsi_levelset_fill_box(q->s, box3(0, 0.4, 0, 1, 1, 1), rest, &added);
    else if (which == FILL_SPHERE)
        status = fsi_levelset_fill_sphere(q->s, v3(0.5, 0.8, 0), (fsi_real)0.2, rest, &added);
    else if (which == FILL_MESH) status = fsi_levelset_fill_mesh(q->s, more, rest, &added);
    else if (which == ADD_MESH || which == ADD_BODY) status = fsi_levelset_add_obstacle(q->s, &o, NULL);
    else if (which == REMOVE) status = fsi_levelset_remove_obstacle(q->s, 0);
    else if (which == TELEPORT) status = fsi_levelset_teleport_obstacle(q->s, 1);
    else if (which == ADD_EMITTER) status = fsi_levelset_add_emitter(q->s, &e, NULL);
    else if (which == ADD_SINK) status = fsi_levelset_add_sink(q->s, &k, NULL);
    else if (which == LOAD) status = fsi_levelset_load(q->s, v->state, v->size);
    else status = advance(q, 0);
    if (which >= FILL_BOX && which <= FILL_MESH) CHECK(status == FSI_OK ? added > 0 : added == 0);
    return status;
}

/* Nothing is lost, and nothing that the caller sees has changed or moved. */
static int call_without_memory(int which, const saved *v, long at, int once)
{
    scene q;
    uint64_t before;
    const int *label;
    fsi_mesh *more;
    fsi_status status;
    fsi_box3 puddle = box3(0, 0, 0, 1, 0.1, 1);
    scene_begin(&q, 2, which == ADD_EMITTER || which == ADD_SINK ? TENSION : FIXED | MESH | SOURCES | TENSION, 64);
    CHECK(fsi_levelset_fill_box(q.s, puddle, v3(0, 0, 0), NULL) == FSI_OK);
    more = make_block(2, 0.2, 0.1, 0.3);
    mesh_to(more, stand(2, 0.5, 0.7, 0.3));
    if (which == TELEPORT) mesh_to(q.mesh[1], stand(2, 0.3, 0.2, 0.3));
    if (which == STEP) aim(&q, 0);
    before = bits(&q);
    label = q.s->label;
    fail_from(&q.context, at, once);
    status = call(&q, which, v, more);
    fail_from(&q.context, 0, 0);
    if (status != FSI_OK) CHECK(status == FSI_ERROR_MEMORY && bits(&q) == before && q.s->label == label);
    if (status != FSI_OK) CHECK(call(&q, which, v, more) == FSI_OK); /* now there is memory */
    scene_end(&q);
    fsi_mesh_destroy(more);
    return status != FSI_OK;
}

static void test_a_call_without_memory_changes_and_loses_nothing(void)
{
    uint64_t want[AFTER];
    int which, once, failed = 0;
    scene q;
    saved v = run_on(&q, 2, FIXED | MESH | SOURCES | TENSION, 64, want);
    for (which = 0; which < CALLS; which++)
        for (once = 0; once < 2; once++) {
            long at = 1;
            while (call_without_memory(which, &v, at, once) && at < 500) at++, failed++;
            CHECK(at < 500);
        }
    CHECK(failed > 300);
    printf("      %d failures\n", failed);
    free(v.state);
    scene_end(&q);
    CHECK(test_live_bytes() == 0);
}

/* ---- states that lie -------------------------------------------------------------------------------------------- */

/* Loads a payload with a checksum that fits. 1: refused, which changed nothing; 0: taken, and the next steps went
   well. */
static int refuses(scene *q, const unsigned char *payload, size_t size)
{
    const fsi__state_header header = fsi__make_state_header(q->s->cookie, size, fsi_hash(payload, size, 0));
    const uint64_t before = fsi_levelset_hash(q->s);
    unsigned char *whole = (unsigned char *)malloc(size + sizeof header);
    fsi_status status;
    int k;
    if (!whole) exit(1);
    memcpy(whole, &header, sizeof header);
    memcpy(whole + sizeof header, payload, size);
    status = fsi_levelset_load(q->s, whole, size + sizeof header);
    free(whole);
    if (status != FSI_OK) {
        CHECK(fsi_levelset_hash(q->s) == before);
        return 1;
    }
    for (k = 0; k < 2; k++) {
        if (!CHECK(fsi_levelset_step(q->s, k == 0 ? 0 : (fsi_real)1e-3) == FSI_OK))
            printf("      %s\n", fsi_levelset_error(q->s)->message);
        CHECK(fsi_is_finite(q->s->stats.kinetic_energy) && fsi_is_finite(q->s->stats.volume) &&
              fsi_is_finite(q->s->stats.max_speed));
    }
    return 0;
}

/* Small sibling of tests/fuzz/fuzz_state_levelset.c: each word of the state's beginning, and some of its fields, become
   what nobody wrote. */
static void test_a_state_that_loads_can_be_stepped(void)
{
    static const double odd[8] = { 0, -1, 1e300, -1e300, 1e-300, 1e12, 1e18, 7 };
    int dim, k, refused = 0, tried = 0;
    for (dim = 2; dim <= 3; dim++) {
        scene q;
        saved v;
        unsigned char *payload;
        size_t w, words, size;
        scene_begin(&q, dim, TENSION | VISCOUS | FIXED | FREE | SOURCES, 8);
        scene_fill(&q);
        CHECK(advance(&q, 0) == FSI_OK);
        v = save_scene(&q, 1);
        payload = v.state + sizeof(fsi__state_header);
        size = v.size - sizeof(fsi__state_header);
        words = size / 8;
        for (w = 0; w < words; w += w < 70 ? (dim == 2 ? 1 : 5) : words / (dim == 2 ? 40 : 5)) {
            unsigned char keep[8];
            memcpy(keep, payload + 8 * w, 8);
            for (k = 0; k < 10; k++) {
                const double d = k < 8 ? odd[k] : (k == 8 ? test_nan() : test_inf());
                memcpy(payload + 8 * w, &d, 8);
                refused += refuses(&q, payload, size);
                tried++;
                memcpy(payload + 8 * w, keep, 8);
            }
        }
        CHECK(refuses(&q, payload, size) == 0); /* as it was it is fine */
        free(v.state);
        scene_end(&q);
    }
    printf("      %d states, %d refused\n", tried, refused);
    CHECK(refused > tried / 3 && refused < tried);
}

/* ---- what is far away ------------------------------------------------------------------------------------------- */

/* Kinetic energy of an egg-shaped drop after some steps, with a block that moves 18 cells away, or without. */
static double energy_of_a_drop(int dim, int block, double viscosity, double capillary_cfl)
{
    const int n = dim == 2 ? 64 : 40;
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_mesh *m = make_block(dim, 2.0 / n, 2.0 / n, 2.0 / n);
    double energy;
    fsi_levelset *s;
    int k;
    d.dim = dim;
    d.n[0] = n;
    d.n[1] = d.n[2] = dim == 2 ? n / 2 : 16;
    d.dx = (fsi_real)(1.0 / n);
    d.gravity = v3(0, 0, 0);
    d.surface_tension = 1;
    d.viscosity = (fsi_real)viscosity;
    d.capillary_cfl = (fsi_real)capillary_cfl;
    CHECK(fsi_levelset_create(&s, &d) == FSI_OK);
    mesh_to(m, stand(dim, 0.9, 8.0 / n, 0));
    if (block) CHECK(fsi_levelset_add_mesh(s, m, NULL) == FSI_OK);
    for (k = 0; k < 2; k++)
        CHECK(fsi_levelset_fill_sphere(s, v3((9.0 + 3 * k) / n, 8.0 / n, 8.0 / n), (fsi_real)(4.5 / n), v3(0, 0, 0),
                                       NULL) == FSI_OK);
    for (k = 0; k < 6; k++) {
        fsi_pose p = stand(dim, 0.9, (8 + 0.3 * k) / n, 0);
        CHECK(fsi_mesh_move_rigid(m, p.position, p.orientation) == FSI_OK);
        CHECK(fsi_levelset_step(s, (fsi_real)0.02) == FSI_OK);
    }
    energy = s->stats.kinetic_energy;
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(m);
    return energy;
}

static void test_a_mesh_that_moves_far_away_changes_no_drop(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double free_drop = energy_of_a_drop(dim, 0, 0, 1), long_steps = energy_of_a_drop(dim, 0, 0, 3),
                     thick = energy_of_a_drop(dim, 0, 0.05, 1);
        CHECK(free_drop > 0);
        CHECK_NEAR(energy_of_a_drop(dim, 1, 0, 1) / free_drop, 1, TOL(1e-12, 1e-6));
        CHECK_NEAR(energy_of_a_drop(dim, 1, 0, 3) / long_steps, 1, TOL(1e-12, 1e-6));
        CHECK_NEAR(energy_of_a_drop(dim, 1, 0.05, 1) / thick, 1, TOL(1e-12, 1e-6));
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_rollback_goes_on_to_the_bit);
    RUN(test_poisoned_scratch_changes_no_bit);
    RUN(test_a_step_without_memory_tried_again_gives_the_same_bits);
    RUN(test_a_call_without_memory_changes_and_loses_nothing);
    RUN(test_a_state_that_loads_can_be_stepped);
    RUN(test_a_mesh_that_moves_far_away_changes_no_drop);
    return TEST_END();
}
