/* fuzz_state.c - any bytes whatever given to fsi_sph_load, with and without a header and checksum that fit; what is
   accepted must step and save again.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz_state.c -o fuzz_state -lm && ./fuzz_state -max_len=4096 */
#define FSI_IMPLEMENTATION
#include "../fsi_sph.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

static fsi_sph *make_tank(fsi_context *context)
{
    fsi_sph_desc d = fsi_sph_default_desc();
    fsi_emitter_desc tap = fsi_emitter_default_desc();
    fsi_sink_desc drain = fsi_sink_default_desc();
    fsi_box3 block;
    fsi_sph *s;
    d.context = context;
    d.spacing = (fsi_real)0.25;
    d.max_substeps = 2;
    d.max_iters = 8;
    d.attribute_count = 1;
    d.markers = 1;
    d.domain.lo = fsi_v3(0, 0, 0);
    d.domain.hi = fsi_v3(1, 1, 1);
    block.lo = fsi_v3(0, 0, 0);
    block.hi = fsi_v3((fsi_real)0.5, (fsi_real)0.5, (fsi_real)0.5);
    MUST(fsi_sph_create(&s, &d) == FSI_OK && fsi_sph_fill_box(s, block, fsi_v3(0, 0, 0), NULL) == FSI_OK);
    tap.center = fsi_v3(0, (fsi_real)0.5, (fsi_real)0.8);
    tap.radius = (fsi_real)0.2;
    drain.box.lo = fsi_v3((fsi_real)0.9, 0, 0);
    drain.box.hi = fsi_v3(1, 1, 1);
    drain.rate = 1;
    MUST(fsi_sph_add_emitter(s, &tap, NULL) == FSI_OK && fsi_sph_add_sink(s, &drain, NULL) == FSI_OK);
    return s;
}

/* Loads; what is refused changes nothing, what is accepted can be used. */
static void try_load(fsi_sph *s, const void *buffer, size_t size)
{
    uint64_t before = fsi_sph_hash(s);
    size_t need = 0;
    if (fsi_sph_load(s, buffer, size) != FSI_OK) {
        MUST(fsi_sph_hash(s) == before);
        return;
    }
    MUST(fsi_sph_save(s, NULL, 0, &need) == FSI_OK && need == size);
    before = fsi_sph_hash(s);
    if (s->count <= 64 && fsi_sph_step(s, (fsi_real)1e-3) != FSI_OK) MUST(fsi_sph_hash(s) == before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fsi_context context = fsi_default_context();
    fsi_sph *s = make_tank(&context);
    fsi__state_header header = fsi__make_state_header(s->cookie, size, fsi_hash(data, size, 0));
    unsigned char *whole = (unsigned char *)malloc(size + sizeof header);
    MUST(whole);
    try_load(s, data, size);
    memcpy(whole, &header, sizeof header); /* a payload that no checksum protects */
    memcpy(whole + sizeof header, data, size);
    try_load(s, whole, size + sizeof header);
    free(whole);
    fsi_sph_destroy(s);
    MUST(context.bytes == 0);
    return 0;
}
