/* fuzz_state.c - any bytes whatever given to fsi_sph_load, with and without a header and checksum that fit; what is
   accepted must step and save again.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_state.c -o fuzz_state -lm && ./fuzz_state -max_len=4096 */
#define FSI_IMPLEMENTATION
#include "../../fsi_sph.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

/* A tank with emitter and sink; by bits of `kind`: flat, with tension, viscous, with a body told, a coupled one and a mesh. */
typedef struct tank { fsi_sph *s; fsi_mesh *mesh[3]; fsi_body body[2]; } tank;

static fsi_real real(double x) { return (fsi_real)x; }
static fsi_vec3 at(int dim, double x, double h) { return dim == 2 ? fsi_v3(real(x), real(h), 0) : fsi_v3(real(x), real(0.5), real(h)); }

static fsi_mesh *make_block(fsi_context *context, int dim, fsi_vec3 c, double half)
{
    static const int sides[8] = { 0, 2, 2, 3, 3, 1, 1, 0 };
    static const int triangles[36] = { 0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5, 0, 1, 5, 0, 5, 4, 2, 6, 7, 2, 7, 3, 0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6 };
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_vec3 v[8];
    fsi_mesh *mesh;
    int k;
    for (k = 0; k < 8; k++) v[k] = fsi_v3_add(c, fsi_v3(real(k & 1 ? half : -half), real(k & 2 ? half : -half), real(dim == 2 ? 0 : k & 4 ? half : -half)));
    d.context = context;
    d.vertices = v;
    d.vertex_count = dim == 2 ? 4 : 8;
    d.elements = dim == 2 ? sides : triangles;
    d.element_count = dim == 2 ? 4 : 12;
    d.corners = dim;
    d.kind = FSI_MESH_CLOSED;
    MUST(fsi_mesh_create(&mesh, &d) == FSI_OK);
    return mesh;
}

static void add_solids(tank *t, int dim, fsi_context *context)
{
    int k;
    for (k = 0; k < 3; k++) {
        fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
        const fsi_vec3 c = at(dim, 0.55 + 0.15 * k, 0.2 + 0.3 * k);
        fsi_mass_properties p;
        t->mesh[k] = make_block(context, dim, c, 0.08);
        o.mesh = t->mesh[k];
        if (k < 2) {
            MUST(fsi_mesh_mass(t->mesh[k], 500, 0, &p) == FSI_OK);
            t->body[k] = fsi_body_from_mass(&p);
            t->body[k].mode = k ? FSI_BODY_COUPLED : FSI_BODY_PRESCRIBED;
            t->body[k].end = t->body[k].pose;
            o.body = &t->body[k];
        }
        MUST(fsi_sph_add_obstacle(t->s, &o, NULL) == FSI_OK);
    }
}

static void make_tank(tank *t, int kind, fsi_context *context)
{
    fsi_sph_desc d = fsi_sph_default_desc();
    fsi_emitter_desc tap = fsi_emitter_default_desc();
    fsi_sink_desc drain = fsi_sink_default_desc();
    fsi_box3 block;
    const int dim = kind & 1 ? 2 : 3;
    memset(t, 0, sizeof *t);
    d.context = context;
    d.dim = dim;
    if (dim == 2) d.gravity = fsi_v3(0, real(-9.81), 0);
    d.surface_tension = real(kind & 2 ? 0.07 : 0);
    d.viscosity = real(kind & 4 ? 1 : 0);
    d.spacing = real(dim == 2 ? 0.12 : 0.25);
    d.max_substeps = 2;
    d.max_iters = 8;
    d.attribute_count = 1;
    d.markers = 1;
    d.domain.lo = fsi_v3(0, 0, 0);
    d.domain.hi = fsi_v3(1, 1, 1);
    block.lo = fsi_v3(0, 0, 0);
    block.hi = fsi_v3(real(0.5), real(0.5), real(0.5));
    MUST(fsi_sph_create(&t->s, &d) == FSI_OK && fsi_sph_fill_box(t->s, block, fsi_v3(0, 0, 0), NULL) == FSI_OK);
    if (kind & 8) add_solids(t, dim, context);
    tap.center = at(dim, 0, 0.8);
    tap.radius = real(0.2);
    drain.box.lo = fsi_v3(real(0.9), 0, 0);
    drain.box.hi = fsi_v3(1, 1, 1);
    drain.rate = 1;
    MUST(fsi_sph_add_emitter(t->s, &tap, NULL) == FSI_OK && fsi_sph_add_sink(t->s, &drain, NULL) == FSI_OK);
    MUST(fsi_sph_step(t->s, real(0.01)) == FSI_OK);
}

static void end_tank(tank *t)
{
    int k;
    fsi_sph_destroy(t->s);
    for (k = 0; k < 3; k++) fsi_mesh_destroy(t->mesh[k]);
}

/* Loads; what is refused changes nothing, what is accepted can be used. */
static void try_load(fsi_sph *s, const void *buffer, size_t size)
{
    uint64_t before = fsi_sph_hash(s);
    size_t need = 0;
    fsi_status status;
    int i;
    if (fsi_sph_load(s, buffer, size) != FSI_OK) {
        MUST(fsi_sph_hash(s) == before);
        return;
    }
    MUST(fsi_sph_save(s, NULL, 0, &need) == FSI_OK && need == size);
    before = fsi_sph_hash(s);
    if (s->count > 200) return;
    status = fsi_sph_step(s, (fsi_real)1e-3);
    MUST(status == FSI_OK || (status == FSI_ERROR_LIMIT && fsi_sph_hash(s) == before));
    MUST(fsi_is_finite(s->stats.max_speed) && fsi_is_finite(s->stats.kinetic_energy));
    for (i = 0; i < s->count; i++) MUST(fsi_v3_is_finite(s->position[i]) && fsi_v3_is_finite(s->velocity[i]));
}

static void try_payload(fsi_sph *s, const void *payload, size_t size)
{
    fsi__state_header header = fsi__make_state_header(s->cookie, size, fsi_hash(payload, size, 0));
    unsigned char *whole = (unsigned char *)malloc(size + sizeof header);
    MUST(whole);
    memcpy(whole, &header, sizeof header);
    if (size) memcpy(whole + sizeof header, payload, size);
    try_load(s, whole, size + sizeof header);
    free(whole);
}

/* The first byte chooses the tank. Then: any bytes as a state, and as a payload whose checksum fits; and, ten bytes each, where a good
   payload is changed and into which eight bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fsi_context context = fsi_default_context();
    unsigned char *good;
    size_t need = 0, k, where;
    tank t;
    if (size == 0) return 0;
    make_tank(&t, data[0] & 15, &context);
    data++;
    size--;
    MUST(fsi_sph_save(t.s, NULL, 0, &need) == FSI_OK && need > sizeof(fsi__state_header) + 8);
    good = (unsigned char *)malloc(need);
    MUST(good && fsi_sph_save(t.s, good, need, &need) == FSI_OK);
    need -= sizeof(fsi__state_header);
    memmove(good, good + sizeof(fsi__state_header), need);
    for (k = 0; k + 10 <= size; k += 10) {
        where = ((size_t)data[k] << 8 | data[k + 1]) * 4 % (need - 7);
        memcpy(good + where, data + k + 2, 8);
    }
    try_payload(t.s, good, need);
    free(good);
    try_load(t.s, data, size);
    try_payload(t.s, data, size);
    end_tank(&t);
    MUST(context.bytes == 0);
    return 0;
}
