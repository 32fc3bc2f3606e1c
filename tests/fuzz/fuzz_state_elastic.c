/* fuzz_state_elastic.c - any bytes whatever given to fsi_elastic_load, with and without a header and checksum that fit,
   and a good state with numbers of its own changed; what is accepted must step, stay finite and save again.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_state_elastic.c -o fuzz_state_elastic -lm && ./fuzz_state_elastic -max_len=4096 */
#define FSI_IMPLEMENTATION
#include "../kit/test_elastic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

enum { STATES = 4, WORLDS = 4 };
static struct { world w; fsi_mesh *table; unsigned char *state[STATES]; size_t size[STATES]; } bench[WORLDS];

/* By bits: 2D or 3D, backward Euler or BDF2. A full block, pinned, on a floor and a mesh; a reduced one on it, which
   meets itself. */
static void make_world(int kind)
{
    const int dim = kind & 1 ? 2 : 3;
    block b = block_make(2, 2, dim == 3 ? 2 : 0, 0.1);
    fsi_elastic_attachment_desc pin = fsi_elastic_default_attachment_desc();
    world *w = &bench[kind].w;
    int k, id;
    *w = world_of(dim);
    w->desc.time_order = kind & 2 ? 1 : 2;
    w->desc.iterations = 6;
    w->body.contact_points = 30;
    w->body.self_contact = 1;
    MUST(world_begin(w) && world_floor(w, 0.5) >= 0);
    for (k = 0; k < 2; k++) {
        w->body.handles = k ? 4 : 0;
        w->body.position = dim == 3 ? fsi_v3(REAL(0.03 * k), 0, REAL(0.01 + 0.21 * k)) : fsi_v3(REAL(0.03 * k), REAL(0.01 + 0.21 * k), 0);
        id = world_add(w, &b);
        MUST(id == k);
    }
    pin.vertex = 0;
    pin.target = w->body.position;
    MUST(fsi_elastic_attach(w->s, &pin, NULL) == FSI_OK);
    bench[kind].table = box_mesh(dim == 3 ? fsi_v3(REAL(0.1), REAL(-0.3), REAL(-0.2)) : fsi_v3(REAL(0.1), REAL(-0.2), 0), dim == 3 ? fsi_v3(REAL(0.6), REAL(0.3), REAL(0.01)) : fsi_v3(REAL(0.6), REAL(0.01), 0), dim);
    MUST(fsi_elastic_add_mesh(w->s, bench[kind].table, NULL) == FSI_OK);
    block_free(&b);
}

/* Worlds are made once; each starts from one of the states that it had itself. The number of contacts is among what is
   saved: sizes differ. */
static void make_bench(void)
{
    int b, k, i;
    for (b = 0; b < WORLDS; b++) {
        make_world(b);
        for (k = 0; k < STATES; k++) {
            for (i = 0; i < 5 * k; i++) MUST(fsi_elastic_step(bench[b].w.s, REAL(1.0 / 60)) == FSI_OK);
            MUST(fsi_elastic_save(bench[b].w.s, NULL, 0, &bench[b].size[k]) == FSI_OK);
            bench[b].state[k] = (unsigned char *)malloc(bench[b].size[k]);
            MUST(bench[b].state[k] && fsi_elastic_save(bench[b].w.s, bench[b].state[k], bench[b].size[k], NULL) == FSI_OK);
        }
    }
}

static int is_finite(const fsi_elastic *s)
{
    int b;
    for (b = 0; b < s->body_count; b++)
        if (!fsi_v3_is_finite(s->bodies[b].center) || !fsi_v3_is_finite(s->bodies[b].velocity) || !fsi_is_finite(s->bodies[b].stats.elastic_energy) || !fsi_is_finite(s->bodies[b].stats.kinetic_energy)) return 0;
    return fsi_is_finite(s->stats.kinetic_energy) && fsi_is_finite(s->stats.residual) && fsi_is_finite(s->stats.deepest);
}

static void try_load(fsi_elastic *s, const void *buffer, size_t size)
{
    const uint64_t before = fsi_elastic_hash(s);
    uint64_t loaded;
    fsi_status status;
    size_t need = 0;
    int k;
    if (fsi_elastic_load(s, buffer, size) != FSI_OK) {
        MUST(fsi_elastic_hash(s) == before);
        return;
    }
    MUST(fsi_elastic_save(s, NULL, 0, &need) == FSI_OK && need == size);
    MUST(is_finite(s));
    for (k = 0; k < 2; k++) {
        loaded = fsi_elastic_hash(s);
        status = fsi_elastic_step(s, REAL(1.0 / 60));
        if (status != FSI_OK) {
            /* Only where something would leave the range of numbers. */
            if (status != FSI_ERROR_NAN && status != FSI_ERROR_LIMIT) fprintf(stderr, "step: %s\n", fsi_elastic_error(s)->message);
            MUST((status == FSI_ERROR_NAN || status == FSI_ERROR_LIMIT) && fsi_elastic_hash(s) == loaded);
        }
        MUST(is_finite(s));
    }
}

/* data: 3 bytes each, which number and what it becomes. */
static void try_changes(fsi_elastic *s, const unsigned char *from, size_t need, const uint8_t *data, size_t size)
{
    static const double evil[16] = { 0, -1, 1, 1e300, -1e300, 1e30, 9e11, -9e11, 1e-300, 1e-12, 7, 0.5, 1e6, 1e-3, 1e9, -20 };
    fsi__state_header header;
    unsigned char *state = (unsigned char *)malloc(need);
    size_t k;
    MUST(state);
    memcpy(state, from, need);
    for (k = 0; k + 3 <= size; k += 3) {
        const size_t at = sizeof header + 4 * (((size_t)data[k] << 8 | data[k + 1]) % ((need - sizeof header) / 4));
        double x;
        if (at + 8 > need) continue;
        memcpy(&x, state + at, 8);
        if (data[k + 2] < 16) x = evil[data[k + 2]];
        else if (data[k + 2] < 32) x += 0.1 * evil[data[k + 2] - 16];
        else if (data[k + 2] < 48) x *= evil[data[k + 2] - 32];
        else { state[at + data[k + 2] % 8] = data[k + 2]; continue; }
        memcpy(state + at, &x, 8);
    }
    header = fsi__make_state_header(s->cookie, need - sizeof header, fsi_hash(state + sizeof header, need - sizeof header, 0));
    memcpy(state, &header, sizeof header);
    try_load(s, state, need);
    free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int b = size > 0 ? data[0] % WORLDS : 0, k = size > 0 ? data[0] / WORLDS % STATES : 0;
    fsi__state_header header;
    unsigned char *whole = (unsigned char *)malloc(size + sizeof header);
    fsi_elastic *s;
    if (!bench[0].w.s) make_bench();
    s = bench[b].w.s;
    MUST(whole && fsi_elastic_load(s, bench[b].state[k], bench[b].size[k]) == FSI_OK);
    try_load(s, data, size);
    header = fsi__make_state_header(s->cookie, size, fsi_hash(data, size, 0));
    memcpy(whole, &header, sizeof header);
    if (size) memcpy(whole + sizeof header, data, size);
    try_load(s, whole, size + sizeof header);
    free(whole);
    if (size > 1) try_changes(s, bench[b].state[k], bench[b].size[k], data + 1, size - 1);
    MUST(fsi_elastic_load(s, bench[b].state[k], bench[b].size[k]) == FSI_OK);
    return 0;
}
