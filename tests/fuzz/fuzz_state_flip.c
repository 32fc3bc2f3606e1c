/* fuzz_state_flip.c - any bytes whatever given to fsi_flip_load, with and without a header and checksum that fit, and a
   good state with bytes of its own changed; what is accepted must step, stay finite and save again.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_state_flip.c -o fuzz_state_flip -lm &&
   ./fuzz_state_flip -max_len=4096 */
#define FSI_IMPLEMENTATION
#include "../../fsi_flip.h"
#include "../kit/flip_worlds.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

/* Pools are made once, in the plane with APIC and in space with FLIP; each starts from one of the states that it
   had. */
enum { STATES = 3 };
typedef struct moment { unsigned char *liquid; size_t size; fsi_body body; } moment;
static struct { fsi_context context; small_pool p; moment at[STATES]; } bench[2];

static void make_bench(void)
{
    int k, b;
    for (b = 0; b < 2; b++) {
        small_pool *p = &bench[b].p;
        bench[b].context = fsi_default_context();
        MUST(make_small_pool(&bench[b].context, 2 + b, b ? FSI_FLIP_FLIP : FSI_FLIP_APIC, p));
        for (k = 0; k < STATES; k++) {
            moment *m = &bench[b].at[k];
            MUST(fsi_flip_save(p->s, NULL, 0, &m->size) == FSI_OK);
            m->liquid = (unsigned char *)malloc(m->size);
            MUST(m->liquid && fsi_flip_save(p->s, m->liquid, m->size, &m->size) == FSI_OK);
            m->body = p->body;
            MUST(fsi_flip_step(p->s, (fsi_real)0.05) == FSI_OK);
            fsi_body_accept(&p->body);
        }
    }
}

static void put_back(small_pool *p, const moment *m)
{
    p->body = m->body;
    MUST(fsi_flip_load(p->s, m->liquid, m->size) == FSI_OK);
}

static void try_load(small_pool *p, const moment *m, const void *buffer, size_t size)
{
    const uint64_t before = fsi_flip_hash(p->s);
    fsi_status status;
    size_t need = 0;
    int i;
    if (fsi_flip_load(p->s, buffer, size) != FSI_OK) {
        MUST(fsi_flip_hash(p->s) == before);
        return;
    }
    MUST(fsi_flip_save(p->s, NULL, 0, &need) == FSI_OK && need == size);
    status = fsi_flip_step(p->s, (fsi_real)1e-3);
    if (status != FSI_OK) fprintf(stderr, "step: %s\n", fsi_flip_error(p->s)->message);
    MUST(status == FSI_OK);
    for (i = 0; i < p->s->count; i++)
        MUST(fsi_v3_is_finite(p->s->position[i]) && fsi_v3_is_finite(p->s->velocity[i]) && p->s->mass[i] > 0);
    put_back(p, m);
}

static void try_changes(small_pool *p, const moment *m, const uint8_t *data, size_t size)
{
    static const double evil[8] = { -1, 1e300, 1e30, 1e5, -1e-300, 0, 1, 1e-5 };
    const size_t need = m->size;
    fsi__state_header header;
    unsigned char *state = (unsigned char *)malloc(need);
    size_t k;
    MUST(state);
    memcpy(state, m->liquid, need);
    for (k = 0; k + 3 <= size; k += 3) {
        const size_t at = sizeof header + ((size_t)data[k] << 8 | data[k + 1]) % (need - sizeof header);
        if (data[k + 2] < 8 && at + 8 <= need) memcpy(state + at, &evil[data[k + 2]], 8);
        else state[at] = data[k + 2];
    }
    header = fsi__make_state_header(p->s->cookie, need - sizeof header,
        fsi_hash(state + sizeof header, need - sizeof header, 0));
    memcpy(state, &header, sizeof header);
    try_load(p, m, state, need);
    free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int b = size > 0 ? data[0] & 1 : 0, k = size > 0 ? (data[0] >> 1) % STATES : 0;
    fsi__state_header header;
    unsigned char *whole = (unsigned char *)malloc(size + sizeof header);
    small_pool *p = &bench[b].p;
    const moment *m = &bench[b].at[k];
    if (!bench[0].p.s) make_bench();
    MUST(whole);
    put_back(p, m);
    try_load(p, m, data, size);
    header = fsi__make_state_header(p->s->cookie, size, fsi_hash(data, size, 0));
    memcpy(whole, &header, sizeof header);
    if (size) memcpy(whole + sizeof header, data, size);
    try_load(p, m, whole, size + sizeof header);
    free(whole);
    if (size > 1) try_changes(p, m, data + 1, size - 1);
    return 0;
}
