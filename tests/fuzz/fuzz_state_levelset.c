/* fuzz_state_levelset.c - states of a level set, mutated and with a checksum that fits, given to fsi_levelset_load:
   what is refused changes nothing, what is
   accepted is a state that the next steps can use.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_state_levelset.c -o fuzz_state_levelset -lm && ./fuzz_state_levelset -max_len=65536

   The first byte of an input chooses the liquid: 2D or 3D, with tension, viscosity, a rock, a body that swims, a tap and a drain.
   All true states hold droplets. */
#define FSI_IMPLEMENTATION
#include "../../fsi_levelset.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

enum { SPACE = 1, TENSION = 2, VISCOUS = 4, ROCK = 8, BODY = 16, SOURCES = 32, LONG = 64, KINDS = 128 };

typedef struct scene {
    fsi_context context;
    fsi_mesh *mesh[2];
    fsi_body body;
    fsi_levelset *s;
} scene;

static fsi_vec3 v3(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }

/* A box around x of half sizes a. */
static fsi_mesh *make_box(fsi_context *context, int dim, fsi_vec3 x, double a)
{
    static const int edges[8] = { 0, 1, 1, 2, 2, 3, 3, 0 }; /* clockwise: solid within */
    static const int faces[36] = { 0, 2, 1, 1, 2, 3, 4, 5, 6, 5, 7, 6, 0, 1, 4, 1, 5, 4, 2, 6, 3, 3, 6, 7, 0, 4, 2, 2, 4, 6, 1, 3, 5, 3, 7, 5 };
    fsi_mesh_desc md = fsi_mesh_default_desc();
    fsi_vec3 c[8];
    fsi_mesh *mesh;
    int k;
    for (k = 0; k < 8; k++) c[k] = v3((double)x.x + (k & 1 ? a : -a), (double)x.y + (k & 2 ? a : -a), (double)x.z + (k & 4 ? a : -a));
    if (dim == 2) {
        c[0] = v3((double)x.x - a, (double)x.y - a, 0);
        c[1] = v3((double)x.x - a, (double)x.y + a, 0);
        c[2] = v3((double)x.x + a, (double)x.y + a, 0);
        c[3] = v3((double)x.x + a, (double)x.y - a, 0);
    }
    md.context = context;
    md.vertices = c;
    md.vertex_count = dim == 2 ? 4 : 8;
    md.elements = dim == 2 ? edges : faces;
    md.element_count = dim == 2 ? 4 : 12;
    md.corners = dim;
    MUST(fsi_mesh_create(&mesh, &md) == FSI_OK);
    return mesh;
}

static void add_sources(fsi_levelset *s, int dim)
{
    fsi_levelset_emitter_desc tap = fsi_levelset_default_emitter_desc();
    fsi_levelset_sink_desc drain = fsi_levelset_default_sink_desc();
    tap.center = v3(0, 0.8, dim == 2 ? 0 : 0.5);
    tap.radius = (fsi_real)0.15;
    drain.box.lo = v3(0.9, 0, 0);
    drain.box.hi = v3(1, 1, 1);
    drain.rate = 1;
    MUST(fsi_levelset_add_emitter(s, &tap, NULL) == FSI_OK && fsi_levelset_add_sink(s, &drain, NULL) == FSI_OK);
}

/* A drop that is to be a tenth of a cell vanishes between two centres of cells, and leaves droplets: with no other liquid, that would inherit it. */
static void add_droplets(scene *q, int dim)
{
    int k;
    MUST(fsi_levelset_fill_sphere(q->s, v3(0.35, 0.85, dim == 2 ? 0 : 0.4), (fsi_real)0.14, v3(2, 0, 0), NULL) == FSI_OK);
    MUST(fsi_levelset_set_volume(q->s, 0, 0.1 * pow(0.125, dim)) == FSI_OK);
    for (k = 0; k < 30 && q->s->droplet_count == 0; k++) MUST(fsi_levelset_step(q->s, (fsi_real)0.03) == FSI_OK);
    MUST(q->s->droplet_count > 0);
}

/* So small that a mutation in a thousand hits something else than a velocity. */
static void begin(scene *q, int kind, int droplets)
{
    const int dim = kind & SPACE ? 3 : 2;
    const double middle = dim == 2 ? 0 : 0.5;
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_levelset_obstacle_desc o = fsi_levelset_default_obstacle_desc();
    fsi_mass_properties mass;
    fsi_box3 box;
    memset(q, 0, sizeof *q);
    q->context = fsi_default_context();
    d.context = &q->context;
    d.dim = dim;
    d.n[0] = d.n[1] = 8;
    d.n[2] = 7;
    d.dx = (fsi_real)0.125;
    d.gravity = fsi_v3(0, -1, 0);
    d.max_substeps = 2;
    d.surface_tension = kind & TENSION ? 1 : 0;
    d.viscosity = kind & VISCOUS ? 1 : 0;
    d.time_order = kind & LONG ? 1 : 2;
    MUST(fsi_levelset_create(&q->s, &d) == FSI_OK);
    q->mesh[0] = make_box(&q->context, dim, v3(0.45, 0.25, middle), 0.15);
    q->mesh[1] = make_box(&q->context, dim, v3(0.7, 0.55, middle), 0.12);
    MUST(fsi_mesh_mass(q->mesh[1], 500, 0, &mass) == FSI_OK);
    q->body = fsi_body_from_mass(&mass);
    o.mesh = q->mesh[0];
    if (kind & ROCK) MUST(fsi_levelset_add_obstacle(q->s, &o, NULL) == FSI_OK);
    o.mesh = q->mesh[1];
    o.body = &q->body;
    if (kind & BODY) MUST(fsi_levelset_add_obstacle(q->s, &o, NULL) == FSI_OK);
    if (droplets) add_droplets(q, dim);
    if (kind & SOURCES) add_sources(q->s, dim);
    box.lo = v3(0, 0, 0);
    box.hi = v3(1, 0.5, 1);
    MUST(fsi_levelset_fill_box(q->s, box, v3(0, 0, 0), NULL) == FSI_OK);
}

static void end(scene *q)
{
    fsi_levelset_destroy(q->s);
    fsi_mesh_destroy(q->mesh[0]);
    fsi_mesh_destroy(q->mesh[1]);
    MUST(q->context.bytes == 0);
}

static void check_finite(const fsi_levelset *s)
{
    const size_t n = (size_t)s->grid->block_count * (size_t)s->grid->block_cells;
    size_t e;
    int a;
    for (e = 0; e < n; e++) {
        MUST(fsi_is_finite((double)s->phi->value[e]) && fsi_is_finite((double)s->pressure->value[e]));
        for (a = 0; a < s->grid->dim; a++) MUST(fsi_is_finite((double)s->u[a]->value[e]));
    }
    for (a = 0; a < s->droplet_count; a++)
        MUST(fsi_v3_is_finite(s->droplet[a].position) && fsi_v3_is_finite(s->droplet[a].velocity) && s->droplet[a].volume > 0 && fsi_is_finite(s->droplet[a].volume));
    MUST(fsi_is_finite(s->stats.kinetic_energy) && fsi_is_finite(s->stats.potential_energy) && fsi_is_finite(s->stats.volume) && fsi_is_finite(s->stats.target));
    MUST(fsi_is_finite(s->stats.momentum[0]) && fsi_is_finite(s->stats.max_speed) && fsi_is_finite(s->time));
}

/* Loads; what is refused changes nothing, what is accepted can be used: looked at, stepped, saved, and stepped again. */
static void try_load(scene *q, const void *buffer, size_t size)
{
    const uint64_t before = fsi_levelset_hash(q->s);
    size_t need = 0;
    int k;
    if (fsi_levelset_load(q->s, buffer, size) != FSI_OK) {
        MUST(fsi_levelset_hash(q->s) == before);
        return;
    }
    check_finite(q->s);
    MUST(fsi_levelset_save(q->s, NULL, 0, &need) == FSI_OK && need > 0);
    for (k = 0; k < 3; k++) {
        const int absurd = k == 2 && q->s->stats.max_speed > 1e11; /* what a step made of the fastest that a state may hold */
        if (fsi_levelset_step(q->s, k == 0 ? 0 : (fsi_real)1e-3) != FSI_OK && !absurd) {
            fprintf(stderr, "%s\n", fsi_levelset_error(q->s)->message);
            abort();
        }
        check_finite(q->s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fsi__state_header header;
    scene q;
    unsigned char *whole;
    if (size == 0) return 0;
    begin(&q, data[0] % KINDS, 0);
    data++;
    size--;
    header = fsi__make_state_header(q.s->cookie, size, fsi_hash(data, size, 0));
    whole = (unsigned char *)malloc(size + sizeof header);
    MUST(whole);
    try_load(&q, data, size);
    memcpy(whole, &header, sizeof header); /* a payload that no checksum protects */
    memcpy(whole + sizeof header, data, size);
    try_load(&q, whole, size + sizeof header);
    free(whole);
    end(&q);
    return 0;
}

/* A number for the state: what is often wrong, or a mutation of what stands there. */
static void spoil(uint8_t *at, unsigned seed)
{
    static const double odd[12] = { 0, -1, 1, 1e-300, 1e300, -1e300, 1e9, -1e12, 1e18, 1e-6, 0.25, 100 };
    uint64_t bits = 0x7ff0000000000000u | (seed & 1);
    const double d = odd[(seed >> 4) % 12];
    if (seed & 8) memcpy(at, &d, sizeof d);
    else if (seed & 4) at[(seed >> 5) % 8] = (uint8_t)(seed >> 9);
    else if (seed & 2) at[(seed >> 5) % 8] ^= (uint8_t)(1 << ((seed >> 9) & 7));
    else memcpy(at, &bits, sizeof bits);
}

/* The payload of a true state of each liquid, made once. */
static const unsigned char *true_state(int kind, size_t *length)
{
    static struct { unsigned char *bytes; size_t length; } made[KINDS];
    scene q;
    size_t size = 0;
    if (!made[kind].bytes) {
        begin(&q, kind, 1);
        MUST(fsi_levelset_step(q.s, (fsi_real)0.01) == FSI_OK && q.s->droplet_count > 0);
        MUST(fsi_levelset_save(q.s, NULL, 0, &size) == FSI_OK);
        made[kind].bytes = (unsigned char *)malloc(size);
        MUST(made[kind].bytes && fsi_levelset_save(q.s, made[kind].bytes, size, &size) == FSI_OK);
        made[kind].length = size - sizeof(fsi__state_header);
        end(&q);
    }
    *length = made[kind].length;
    return made[kind].bytes + sizeof(fsi__state_header);
}

/* Most of the inputs are a true state with some numbers changed: random bytes never get past its head. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned int seed)
{
    const int kind = (int)(seed / 8 % KINDS);
    size_t length = 0, k;
    const unsigned char *state = true_state(kind, &length);
    if (seed % 8 == 0 || length + 1 > capacity) return LLVMFuzzerMutate(data, size, capacity);
    data[0] = (uint8_t)kind;
    memcpy(data + 1, state, length);
    for (k = 0; k < 1 + seed / 2048 % 6; k++) {
        const size_t words = (seed & 1024 && length > 800 ? 800 : length) / 8;
        seed = seed * 1664525u + 1013904223u;
        spoil(data + 1 + 8 * ((seed >> 8) % words), seed >> 3);
    }
    return length + 1;
}
