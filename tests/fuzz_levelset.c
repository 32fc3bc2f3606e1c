/* fuzz_levelset.c - any bytes whatever given to fsi_levelset_load, with and without a header and checksum that fit; what is
   accepted must step and save again.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz_levelset.c -o fuzz_levelset -lm && ./fuzz_levelset -max_len=8192 */
#define FSI_IMPLEMENTATION
#include "../fsi_levelset.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

/* A pool with a tap, a drain and a rock, so small that a mutation in a thousand hits something else than a velocity. */
static fsi_levelset *make_pool(fsi_context *context, fsi_mesh **rock)
{
    static const int edges[8] = { 0, 1, 1, 2, 2, 3, 3, 0 }; /* clockwise: solid within */
    const fsi_vec3 corners[4] = { fsi_v3((fsi_real)0.3, (fsi_real)0.1, 0), fsi_v3((fsi_real)0.3, (fsi_real)0.4, 0), fsi_v3((fsi_real)0.6, (fsi_real)0.4, 0), fsi_v3((fsi_real)0.6, (fsi_real)0.1, 0) };
    fsi_mesh_desc md = fsi_mesh_default_desc();
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_levelset_emitter_desc tap = fsi_levelset_default_emitter_desc();
    fsi_levelset_sink_desc drain = fsi_levelset_default_sink_desc();
    fsi_box3 box;
    fsi_levelset *s;
    d.context = context;
    d.dim = 2;
    d.n[0] = d.n[1] = 8;
    d.dx = (fsi_real)0.125;
    d.gravity = fsi_v3(0, -1, 0);
    d.max_substeps = 2;
    d.max_iters = 20;
    box.lo = fsi_v3(0, 0, 0);
    box.hi = fsi_v3(1, (fsi_real)0.5, 0);
    MUST(fsi_levelset_create(&s, &d) == FSI_OK && fsi_levelset_fill_box(s, box, fsi_v3(0, 0, 0), NULL) == FSI_OK);
    tap.center = fsi_v3(0, (fsi_real)0.8, 0);
    tap.radius = (fsi_real)0.15;
    drain.box.lo = fsi_v3((fsi_real)0.9, 0, 0);
    drain.box.hi = fsi_v3(1, 1, 0);
    drain.rate = 1;
    MUST(fsi_levelset_add_emitter(s, &tap, NULL) == FSI_OK && fsi_levelset_add_sink(s, &drain, NULL) == FSI_OK);
    md.context = context;
    md.vertices = corners;
    md.vertex_count = 4;
    md.elements = edges;
    md.element_count = 4;
    md.corners = 2;
    MUST(fsi_mesh_create(rock, &md) == FSI_OK && fsi_levelset_add_mesh(s, *rock, NULL) == FSI_OK);
    return s;
}

/* Loads; what is refused changes nothing, what is accepted can be used. */
static void try_load(fsi_levelset *s, const void *buffer, size_t size)
{
    uint64_t before = fsi_levelset_hash(s);
    size_t need = 0;
    if (fsi_levelset_load(s, buffer, size) != FSI_OK) {
        MUST(fsi_levelset_hash(s) == before);
        return;
    }
    MUST(fsi_levelset_save(s, NULL, 0, &need) == FSI_OK && need > 0);
    before = fsi_levelset_hash(s);
    if (fsi_levelset_step(s, (fsi_real)1e-3) != FSI_OK) MUST(fsi_levelset_hash(s) == before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fsi_context context = fsi_default_context();
    fsi_mesh *rock;
    fsi_levelset *s = make_pool(&context, &rock);
    fsi__state_header header = fsi__make_state_header(s->cookie, size, fsi_hash(data, size, 0));
    unsigned char *whole = (unsigned char *)malloc(size + sizeof header);
    MUST(whole);
    try_load(s, data, size);
    memcpy(whole, &header, sizeof header); /* a payload that no checksum protects */
    memcpy(whole + sizeof header, data, size);
    try_load(s, whole, size + sizeof header);
    free(whole);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(rock);
    MUST(context.bytes == 0);
    return 0;
}

/* Half of the inputs are a true state with some bytes changed: random bytes never get past its head. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned int seed)
{
    fsi_context context = fsi_default_context();
    fsi_mesh *rock;
    fsi_levelset *s;
    unsigned char *state;
    size_t length = 0, k;
    if (seed % 2) return LLVMFuzzerMutate(data, size, capacity);
    s = make_pool(&context, &rock);
    MUST(fsi_levelset_step(s, (fsi_real)0.01) == FSI_OK && fsi_levelset_save(s, NULL, 0, &length) == FSI_OK);
    state = (unsigned char *)malloc(length);
    MUST(state && fsi_levelset_save(s, state, length, &length) == FSI_OK);
    length -= sizeof(fsi__state_header);
    if (length <= capacity) {
        memcpy(data, state + sizeof(fsi__state_header), length);
        for (k = 0; k < 1 + seed / 2 % 4; k++) {
            const unsigned where = (seed = seed * 1664525u + 1013904223u) >> 8;
            data[where % (seed & 64 ? length : length < 400 ? length : 400)] = (uint8_t)(seed >> 3);
        }
        size = length;
    }
    free(state);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(rock);
    return size;
}
