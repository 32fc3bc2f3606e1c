/* fuzz_state_front.c - a good state of a front with bytes of its own changed, and any bytes whatever, given to
   fsi_front_load: what is refused changes nothing; what is accepted must step, or be refused as crossing, and save
   again.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_state_front.c -o fuzz_state_front -lm &&
   ./fuzz_state_front -max_len=4096 */
#define FSI_IMPLEMENTATION
#include "../kit/test_fronts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

/* A circle and two balls, with an attribute. */
static struct { fsi_context context; fsi_front *f; unsigned char *state; size_t size; } bench[2];

static void make_bench(void)
{
    int b;
    for (b = 0; b < 2; b++) {
        front_shape s = { 2 + b, 0, 0, NULL, NULL };
        fsi_front_desc d;
        if (b) {
            front_add_ball(&s, front_v3(0, 0, 0), front_v3(0.3, 0.3, 0.3), 3, 1);
            front_add_ball(&s, front_v3(1, 0, 0), front_v3(0.3, 0.3, 0.3), 2, 1);
        } else front_add_circle(&s, front_v3(0, 0, 0), 0.3, 20, 1);
        d = front_desc(&s, 0.15);
        bench[b].context = fsi_default_context();
        d.context = &bench[b].context;
        d.attribute_count = 1;
        d.rounds = 3; /* a corner far away makes many triangles */
        MUST(fsi_front_create(&bench[b].f, &d) == FSI_OK);
        MUST(fsi_front_save(bench[b].f, NULL, 0, &bench[b].size) == FSI_OK);
        bench[b].state = (unsigned char *)malloc(bench[b].size);
        MUST(bench[b].state);
        MUST(fsi_front_save(bench[b].f, bench[b].state, bench[b].size, &bench[b].size) == FSI_OK);
        front_free(&s);
    }
}

static void try_load(int b, const void *buffer, size_t size)
{
    fsi_front *f = bench[b].f;
    const uint64_t before = fsi_front_hash(f);
    size_t need = 0;
    fsi_status status;
    if (fsi_front_load(f, buffer, size) != FSI_OK) {
        MUST(fsi_front_hash(f) == before);
        return;
    }
    MUST(fsi_front_save(f, NULL, 0, &need) == FSI_OK && need == size);
    status = fsi_front_step(f, (fsi_real)1e-3);
    MUST(status == FSI_OK || status == FSI_ERROR_MESH);
    MUST(front_open_edges(f) == 0);
    MUST(fsi_front_load(f, bench[b].state, bench[b].size) == FSI_OK);
}

static void try_changes(int b, const uint8_t *data, size_t size)
{
    static const double evil[8] = { -1, 1e300, 1e30, 1e5, -1e-300, 0, 1, 1e-5 };
    const size_t need = bench[b].size;
    fsi__state_header header;
    unsigned char *state = (unsigned char *)malloc(need);
    size_t k;
    MUST(state);
    memcpy(state, bench[b].state, need);
    for (k = 0; k + 3 <= size; k += 3) {
        const size_t at = sizeof header + ((size_t)data[k] << 8 | data[k + 1]) % (need - sizeof header);
        if (data[k + 2] < 8 && at + 8 <= need) memcpy(state + at, &evil[data[k + 2]], 8);
        else state[at] = data[k + 2];
    }
    header = fsi__make_state_header(bench[b].f->cookie, need - sizeof header,
        fsi_hash(state + sizeof header, need - sizeof header, 0));
    memcpy(state, &header, sizeof header);
    try_load(b, state, need);
    free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int b = size > 0 ? data[0] & 1 : 0;
    fsi__state_header header;
    unsigned char *whole = (unsigned char *)malloc(size + sizeof header);
    if (!bench[0].f) make_bench();
    MUST(whole);
    try_load(b, data, size);
    header = fsi__make_state_header(bench[b].f->cookie, size, fsi_hash(data, size, 0));
    memcpy(whole, &header, sizeof header);
    if (size) memcpy(whole + sizeof header, data, size);
    try_load(b, whole, size + sizeof header);
    free(whole);
    if (size > 1) try_changes(b, data + 1, size - 1);
    return 0;
}
