/* fuzz_state_wcsph.c - any bytes whatever given to fsi_wcsph_load, with and without a header and checksum that fit, and a good state with
   bytes of its own changed; what is accepted must step, stay finite and save again.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_state_wcsph.c -o fuzz_state_wcsph -lm && ./fuzz_state_wcsph -max_len=4096 */
#define FSI_IMPLEMENTATION
#include "../../fsi_wcsph.h"
#include "../kit/wcsph_worlds.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

/* Pools are made once; each starts from one of the states that it, its body and its world had. */
enum { STATES = 3 };
typedef struct moment { unsigned char *liquid, *world; size_t liquid_size, world_size; fsi_body body; } moment;
static struct { fsi_context context; small_pool p; moment at[STATES]; } bench[2];

static void make_bench(void)
{
    int k, b;
    for (b = 0; b < 2; b++) {
        small_pool *p = &bench[b].p;
        bench[b].context = fsi_default_context();
        MUST(make_small_pool(&bench[b].context, 2 + b, p));
        for (k = 0; k < STATES; k++) {
            moment *m = &bench[b].at[k];
            MUST(fsi_wcsph_save(p->s, NULL, 0, &m->liquid_size) == FSI_OK && fsi_rigid_save(p->world, NULL, 0, &m->world_size) == FSI_OK);
            m->liquid = (unsigned char *)malloc(m->liquid_size);
            m->world = (unsigned char *)malloc(m->world_size);
            MUST(m->liquid && m->world && fsi_wcsph_save(p->s, m->liquid, m->liquid_size, &m->liquid_size) == FSI_OK);
            MUST(fsi_rigid_save(p->world, m->world, m->world_size, &m->world_size) == FSI_OK);
            m->body = p->body;
            MUST(fsi_wcsph_step(p->s, (fsi_real)0.05) == FSI_OK);
            fsi_body_accept(&p->body);
        }
    }
}

static void put_back(small_pool *p, const moment *m)
{
    p->body = m->body;
    MUST(fsi_rigid_load(p->world, m->world, m->world_size) == FSI_OK && fsi_wcsph_load(p->s, m->liquid, m->liquid_size) == FSI_OK);
}

static void try_load(small_pool *p, const moment *m, const void *buffer, size_t size)
{
    const uint64_t before = fsi_wcsph_hash(p->s);
    fsi_status status;
    size_t need = 0;
    int i, extreme = 0;
    if (fsi_wcsph_load(p->s, buffer, size) != FSI_OK) {
        MUST(fsi_wcsph_hash(p->s) == before);
        return;
    }
    MUST(fsi_wcsph_save(p->s, NULL, 0, &need) == FSI_OK && need == size);
    for (i = 0; i < p->s->count; i++) {
        extreme |= (double)fsi_v3_norm(p->s->velocity[i]) > 1e6 || (double)fsi_v3_norm(p->s->position[i]) > 1e30;
        extreme |= (double)fsi_v3_norm(p->s->force[i]) > 1e8 * (double)p->s->particle_mass;
    }
    status = fsi_wcsph_step(p->s, (fsi_real)1e-3);
    if (status != FSI_OK && !extreme) fprintf(stderr, "step: %s\n", fsi_wcsph_error(p->s)->message);
    MUST(status == FSI_OK || extreme);
    for (i = 0; i < p->s->count && status == FSI_OK; i++) MUST(fsi_v3_is_finite(p->s->position[i]) && fsi_v3_is_finite(p->s->velocity[i]) && p->s->density[i] > 0);
    put_back(p, m);
}

static void try_changes(small_pool *p, const moment *m, const uint8_t *data, size_t size)
{
    static const double evil[8] = { -1, 1e300, 1e30, 1e5, -1e-300, 0, 1, 1e-5 };
    const size_t need = m->liquid_size;
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
    header = fsi__make_state_header(p->s->cookie, need - sizeof header, fsi_hash(state + sizeof header, need - sizeof header, 0));
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
