/* fuzz_flip_bodies.c - any calls in any order on a pool with elastic bodies: steps of any length, absurd drags, places
   and velocities, states saved and loaded, bodies that come and go. All stays finite and in the box; what is refused
   changes nothing; loading brings back what was saved.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_flip_bodies.c -o fuzz_flip_bodies -lm &&
   ./fuzz_flip_bodies -max_len=80 */
#define FSI_IMPLEMENTATION
#include "../kit/flip_pools.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

enum { MOST_LIQUID = 3000 };

static pool p;
static block cube;
static int pin, pinned, immersed;  /* pin: of the first body, while pinned */
static void *liquid, *solid;       /* what was saved last */
static size_t liquid_size, solid_size;
static uint64_t saved, scatter;

/* Places and speeds, most of them absurd. */
static double odd(uint8_t byte)
{
    static const double table[16] = { 0, 0.5, 1, -1, 0.25, 0.75, 20, -20, 1e-9, 3, 1e3, -1e3, 1e6, 0.01, 1e10, 1e30 };
    return table[byte & 15] * (byte & 16 ? 1 : 0.3) + (byte >> 5) * 0.1;
}

static fsi_vec3 odd_place(const uint8_t *d) { return v3(odd(d[0]), odd(d[1]), p.d.dim == 3 ? odd(d[2]) : 0); }

static void begin(int dim)
{
    fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
    p = pool_of(dim, dim == 2 ? 12 : 8);
    p.d.max_substeps = 4;
    p.d.transfer = dim == 2 ? FSI_FLIP_FLIP : FSI_FLIP_APIC;
    p.w.desc.iterations = 6;
    p.w.body.contact_points = 60;
    p.w.body.self_contact = 1;
    cube = block_make(2, 2, dim == 3 ? 2 : 0, dim == 2 ? 0.1 : 0.13);
    pool_begin(&p);
    p.w.material.density = 700;
    a.body = pool_add(&p, &cube, 0.1, 0.3);
    p.w.body.handles = 4;
    pool_add(&p, &cube, 0.55, 0.35);
    a.vertex = 0;
    a.target = fsi_v3_add(cube.x[0], in_room(dim, 0.1, 0.3, 0.5 - 0.5 * cube.ny * cube.a));
    MUST(fsi_elastic_attach(p.w.s, &a, &pin) == FSI_OK);
    pinned = 1;
    immersed = fsi_flip_immerse(p.s, p.w.s) == FSI_OK;
    MUST(immersed);
    fill(p.s, room(dim, 0, 0, 1, 0.5, 1), in_room(dim, 0.5, 0, 0));
}

static void end(void)
{
    pool_end(&p);
    block_free(&cube);
    free(liquid);
    free(solid);
    liquid = solid = NULL;
}

static void look(void)
{
    int k;
    MUST(is_finite(p.s));
    for (k = 0; k < p.w.s->body_count; k++) {
        const fsi_elastic_body *b = &p.w.s->bodies[k];
        MUST(fsi_v3_is_finite(b->center) && fsi_v3_is_finite(b->velocity));
    }
}

static void try_step(double dt)
{
    const uint64_t before = pool_hash(&p);
    const fsi_status status = fsi_flip_step(p.s, (fsi_real)dt);
    if (status == FSI_OK) {
        MUST(dt <= 0 || fsi_flip_count_inside(p.s, NULL) == 0);
        return;
    }
    if (status != FSI_ERROR_LIMIT && status != FSI_ERROR_ARGUMENT && status != FSI_ERROR_NAN)
        fprintf(stderr, "step: %s\n", fsi_flip_error(p.s)->message);
    MUST(status == FSI_ERROR_LIMIT || status == FSI_ERROR_ARGUMENT || status == FSI_ERROR_NAN);
    MUST(pool_hash(&p) == before);
}

static void try_save(void)
{
    free(liquid);
    free(solid);
    MUST(fsi_flip_save(p.s, NULL, 0, &liquid_size) == FSI_OK);
    MUST(fsi_elastic_save(p.w.s, NULL, 0, &solid_size) == FSI_OK);
    liquid = malloc(liquid_size);
    solid = malloc(solid_size);
    MUST(liquid && solid);
    MUST(fsi_flip_save(p.s, liquid, liquid_size, NULL) == FSI_OK);
    MUST(fsi_elastic_save(p.w.s, solid, solid_size, NULL) == FSI_OK);
    saved = pool_hash(&p);
}

/* The bodies may be others than those that were saved. */
static void try_load(void)
{
    const uint64_t before = fsi_elastic_hash(p.w.s);
    if (!liquid) return;
    if (fsi_elastic_load(p.w.s, solid, solid_size) != FSI_OK) {
        MUST(fsi_elastic_hash(p.w.s) == before);
        return;
    }
    if (fsi_flip_load(p.s, liquid, liquid_size) == FSI_OK) MUST(pool_hash(&p) == saved);
}

/* A body gets another place, or is crushed, or scattered. */
static void try_body(int k, uint8_t how, const uint8_t *d)
{
    fsi_vec3 x[64], v[64];
    const uint64_t before = fsi_elastic_hash(p.w.s);
    fsi_status status;
    int i, id;
    if (p.w.s->body_count == 0) return;
    id = p.w.s->bodies[k % p.w.s->body_count].id;
    if (how & 1) status = fsi_elastic_reset_body(p.w.s, id, odd_place(d), fsi_quat_identity(), odd_place(d + 1),
        v3(0, 0, odd(d[0])));
    else {
        MUST(fsi_elastic_vertices(p.w.s, id, x, v) == FSI_OK);
        for (i = 0; i < cube.vertices; i++) {
            x[i] = how & 2 ? fsi_v3_madd(x[i], (fsi_real)0.2, random_vector(&scatter, p.d.dim))
                : fsi_v3_scale(x[i], (fsi_real)odd(d[0]));
            v[i] = fsi_v3_add(v[i], odd_place(d));
        }
        status = fsi_elastic_set_vertices(p.w.s, id, x, v);
    }
    if (status != FSI_OK) MUST(fsi_elastic_hash(p.w.s) == before);
}

/* Other numbers of bodies; the liquid asks to be told. */
static void try_bodies(uint8_t how)
{
    int id;
    if (how & 1 && p.w.s->body_count < 3) {
        p.w.body.handles = how & 2 ? 4 : 0;
        p.w.body.position = in_room(p.d.dim, odd((uint8_t)(how >> 2)), 0.7, 0.3);
        p.w.body.vertices = cube.x;
        if (fsi_elastic_add_body(p.w.s, &p.w.body, &id) != FSI_OK) return;
    } else if (p.w.s->body_count > 0) {
        id = p.w.s->bodies[0].id;
        MUST(fsi_elastic_remove_body(p.w.s, id) == FSI_OK);
        pinned = 0; /* with its attachments, if it was the first */
    }
    immersed = fsi_flip_immerse(p.s, p.w.s) == FSI_OK;
}

static void try_settings(uint8_t a, uint8_t b)
{
    fsi_elastic_desc e = p.w.s->desc;
    fsi_flip_desc d = p.s->desc;
    e.iterations = 1 + (a & 7);
    e.contact_sweeps = 1 + (a >> 3 & 7);
    e.substeps = 1 + (a >> 6);
    d.pic = (fsi_real)((b & 3) / 3.0);
    d.volume_rate = (fsi_real)((b >> 2 & 3) / 3.0);
    d.max_substeps = 1 + (b >> 4 & 3);
    d.viscosity = (fsi_real)(b & 64 ? 1 : 0);
    d.surface_tension = (fsi_real)(b & 128 ? 0.07 : 0);
    MUST(fsi_elastic_set_desc(p.w.s, &e) == FSI_OK && fsi_flip_set_desc(p.s, &d) == FSI_OK);
}

/* One call; d: three bytes more. */
static void act(uint8_t what, const uint8_t *d)
{
    static const double dt[8] = { 1.0 / 60, 1.0 / 240, 1.0 / 60, 0.05, 1e-3, 1e-6, 0, 0.15 };
    int i;
    switch (what % 12) {
    case 0: case 1: case 2: try_step(dt[d[0] & 7]); break;
    case 3: if (pinned) (void)fsi_elastic_set_target(p.w.s, pin, odd_place(d)); break;
    case 4: for (i = d[0] & 7; i < p.s->count; i += 8) p.s->velocity[i] = odd_place(d); break;
    case 5: for (i = d[0] & 15; i < p.s->count; i += 16) p.s->position[i] = odd_place(d); break;
    case 6: try_body(d[0], d[1], d); break;
    case 7: try_save(); break;
    case 8: try_load(); break;
    case 9: try_bodies(d[0]); break;
    case 10: try_settings(d[0], d[1]); break;
    default:
        if (d[0] & 1 && p.s->count < MOST_LIQUID)
            (void)fsi_flip_fill_sphere(p.s, odd_place(d), (fsi_real)0.2, odd_place(d + 1), NULL);
        else immersed = fsi_flip_immerse(p.s, immersed ? NULL : p.w.s) == FSI_OK && !immersed;
    }
    look();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t k;
    scatter = 1;
    begin(size > 0 && data[0] & 1 ? 3 : 2);
    for (k = 1; k + 5 <= size && k < 100; k += 4) act(data[k], data + k + 1);
    try_step(1.0 / 60);
    look();
    end();
    return 0;
}
