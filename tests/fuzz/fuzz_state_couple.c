/* fuzz_state_couple.c - states given to fsi_couple_load: any bytes, bytes behind a head and checksums that fit, and
   true states with words of them
   changed. What is refused changes nothing; what is accepted a step can start from; a true state loaded after it goes on as ever.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_state_couple.c -o fuzz_state_couple -lm && ./fuzz_state_couple -max_len=4096 */
#define FSI_IMPLEMENTATION
#include "../../fsi_couple.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 0: words of the liquid's part stay as they are, for fuzz_state_levelset.c to change. */
#ifndef FUZZ_LIQUID
#define FUZZ_LIQUID 1
#endif

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

/* Made once; a true state, and the hash a step after it. */
typedef struct scene { fsi_context context; fsi_levelset *water; fsi_shell *solid; fsi_couple *both; unsigned char *state, *crafted; size_t size; uint64_t hash, after; } scene;

static fsi_vec3 v3(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }

/* A drop on a cloth of 5 x 5 vertices and a rod beside it, in a box of 12^3 cells; 2D: on a string, in 24^2. */
static void make_solid(scene *c, int dim)
{
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell_material m = fsi_shell_default_material();
    fsi_vec3 x[32];
    int triangle[96], segment[32], i, j;
    d.context = &c->context;
    d.dim = dim;
    d.vertices = x;
    d.triangles = triangle;
    d.segments = segment;
    d.materials = &m;
    d.material_count = 1;
    d.friction = (fsi_real)0.2;
    d.max_newton = 12;
    d.gravity = dim == 2 ? v3(0, -9.81, 0) : v3(0, 0, -9.81);
    m.young = (fsi_real)1e5;
    m.thickness = m.radius = (fsi_real)2e-4;
    if (dim == 2) {
        for (i = 0; i < 11; i++) x[i] = v3(0.004 + 0.0016 * i, 0.008, 0);
        for (i = 0; i < 10; i++) segment[2 * i] = i, segment[2 * i + 1] = i + 1;
        d.vertex_count = 11;
        d.segment_count = 10;
    } else {
        for (i = 0; i < 5; i++) for (j = 0; j < 5; j++) x[5 * i + j] = v3(0.0025 + 0.00175 * i, 0.0025 + 0.00175 * j, 0.004);
        for (i = 0; i < 4; i++) for (j = 0; j < 4; j++) {
            int *t = triangle + 6 * (4 * i + j);
            const int p = 5 * i + j;
            t[0] = p, t[1] = p + 5, t[2] = t[3] = p + 1, t[4] = p + 5, t[5] = p + 6;
        }
        for (i = 0; i < 4; i++) x[25 + i] = v3(0.0025 + 0.002 * i, 0.001, 0.006);
        for (i = 0; i < 3; i++) segment[2 * i] = 25 + i, segment[2 * i + 1] = 26 + i;
        d.vertex_count = 29;
        d.triangle_count = 32;
        d.segment_count = 3;
    }
    MUST(fsi_shell_create(&c->solid, &d) == FSI_OK);
    for (i = 0; i < d.vertex_count; i++) c->solid->pinned[i] = dim == 2 ? i % 10 == 0 : i < 25 && (i % 5 == 0 || i % 5 == 4);
}

/* A drop that is to be a tenth of a cell vanishes between two centres of cells, and leaves droplets. */
static void add_droplets(scene *c, int dim)
{
    int k;
    MUST(fsi_levelset_fill_sphere(c->water, dim == 2 ? v3(0.008, 0.020, 0) : v3(0.009, 0.003, 0.010), (fsi_real)1.2e-3, v3(-1, 0, 0), NULL) == FSI_OK);
    MUST(fsi_levelset_set_volume(c->water, 0, 0.1 * pow(1e-3, dim)) == FSI_OK);
    for (k = 0; k < 30 && c->water->component_count > 0; k++) MUST(fsi_levelset_step(c->water, (fsi_real)1e-4) == FSI_OK);
    MUST(c->water->droplet_count > 0);
}

static void make(scene *c, int dim)
{
    fsi_levelset_desc l = fsi_levelset_default_desc();
    fsi_couple_desc e = fsi_couple_default_desc();
    int k;
    c->context = fsi_default_context();
    l.context = &c->context;
    l.dim = dim;
    l.n[0] = l.n[1] = dim == 2 ? 24 : 12;
    l.n[2] = dim == 2 ? 1 : 12;
    l.dx = (fsi_real)1e-3;
    l.gravity = dim == 2 ? v3(0, -9.81, 0) : v3(0, 0, -9.81);
    MUST(fsi_levelset_create(&c->water, &l) == FSI_OK);
    add_droplets(c, dim);
    make_solid(c, dim);
    MUST(fsi_levelset_fill_sphere(c->water, dim == 2 ? v3(0.012, 0.014, 0) : v3(0.006, 0.006, 0.0075), (fsi_real)(dim == 2 ? 0.0045 : 0.0022), dim == 2 ? v3(0, -0.3, 0) : v3(0, 0, -0.3), NULL) == FSI_OK);
    e.liquid = c->water;
    e.shell = c->solid;
    e.adhesion = 50;
    MUST(fsi_couple_create(&c->both, &e) == FSI_OK);
    for (k = 0; k < 6; k++) MUST(fsi_couple_step(c->both, (fsi_real)1e-3) == FSI_OK);
    MUST(c->water->droplet_count > 0);
    MUST(fsi_couple_save(c->both, NULL, 0, &c->size) == FSI_OK);
    c->state = (unsigned char *)malloc(c->size);
    c->crafted = (unsigned char *)malloc(c->size);
    MUST(fsi_couple_save(c->both, c->state, c->size, NULL) == FSI_OK);
    c->hash = fsi_couple_hash(c->both);
    MUST(fsi_couple_load(c->both, c->state, c->size) == FSI_OK && fsi_couple_step(c->both, (fsi_real)1e-3) == FSI_OK);
    c->after = fsi_couple_hash(c->both);
}

static void try_load(scene *c, const void *buffer, size_t size)
{
    uint64_t before = fsi_couple_hash(c->both);
    if (fsi_couple_load(c->both, buffer, size) != FSI_OK) {
        MUST(fsi_couple_hash(c->both) == before);
        return;
    } else {
        before = fsi_couple_hash(c->both);
        if (fsi_couple_step(c->both, (fsi_real)1e-3) == FSI_OK) {
            const fsi_couple_stats *t = &c->both->stats;
            MUST(fsi_is_finite(t->momentum[0] + t->momentum[1] + t->momentum[2] + t->min_distance + t->volume_error + t->momentum_error));
            MUST(fsi_shell_count_intersections(c->solid) == 0);
        } else {
            const fsi_status status = c->context.error.status; /* a vertex or a pin whose way is barred; speeds that lead out of the world */
            if (status != FSI_ERROR_CONVERGENCE && status != FSI_ERROR_LIMIT) fprintf(stderr, "%s\n", c->context.error.message);
            MUST(fsi_couple_hash(c->both) == before && (status == FSI_ERROR_CONVERGENCE || status == FSI_ERROR_LIMIT));
        }
    }
    MUST(fsi_couple_load(c->both, c->state, c->size) == FSI_OK && fsi_couple_hash(c->both) == c->hash);
    MUST(fsi_couple_step(c->both, (fsi_real)1e-3) == FSI_OK && fsi_couple_hash(c->both) == c->after);
    MUST(fsi_couple_load(c->both, c->state, c->size) == FSI_OK);
}

/* Makes all checksums fit that have a place in the buffer. */
static void refit(unsigned char *state, size_t size)
{
    fsi__co_head h;
    fsi__state_header part;
    size_t at, rest[2];
    int k;
    if (size < sizeof h) return;
    memcpy(&h, state, sizeof h);
    h.check = fsi_hash(&h.time, sizeof h.time, 0);
    memcpy(state, &h, sizeof h);
    at = sizeof h;
    rest[0] = (size_t)h.liquid;
    rest[1] = (size_t)h.shell;
    for (k = 0; k < 2; k++) {
        if (rest[k] > size - at || rest[k] < sizeof part) return;
        memcpy(&part, state + at, sizeof part);
        part.hash = fsi_hash(state + at + sizeof part, rest[k] - sizeof part, 0);
        memcpy(state + at, &part, sizeof part);
        at += rest[k];
    }
}

/* Records of three bytes that choose a word, one that says what becomes of it, and for some of them more. */
static void edit(unsigned char *words, size_t count, const uint8_t *data, size_t size)
{
    static const double number[16] = { 0, -1, 1, 1e300, -1e300, 1e30, 1e12, -1e12, 1e-300, 1e-12, 7, 0.5, 1e6, 1e-3, 1e9, 3.14159 };
    for (; size >= 4; data += 4, size -= 4) {
        const size_t at = ((size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16) % count;
        double value;
        memcpy(&value, words + 8 * at, 8);
        switch (data[3] >> 4) {
        case 0: value = number[data[3] & 15]; break;
        case 1: value = data[3] & 1 ? HUGE_VAL : HUGE_VAL - HUGE_VAL; break;
        case 2: value *= 1 + number[data[3] & 15]; break;
        case 3: value = -value; break;
        case 4: if (size >= 12) { /* any bytes */
            memcpy(&value, data + 4, 8);
            data += 8;
            size -= 8;
        } break;
        default: value += ((data[3] & 1) ? 1 : -1) * 0.0002 * (data[3] >> 4); break; /* moves a little */
        }
        memcpy(words + 8 * at, &value, 8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static scene made[2];
    scene *c;
    unsigned char *whole;
    size_t start = 0, count;
    int way;
    if (size == 0) return 0;
    way = *data++;
    size--;
    c = &made[way & 1];
    if (!c->both) make(c, way & 1 ? 2 : 3);
    if ((way >> 1) % 4 == 0) {
        try_load(c, data, size);
        return 0;
    }
    if ((way >> 1) % 4 == 1) { /* the start of a true state, then any bytes */
        const size_t kept = size ? c->size * data[0] / 255 : 0;
        whole = (unsigned char *)malloc(kept + size + 1);
        MUST(whole);
        memcpy(whole, c->state, kept);
        memcpy(whole + kept, data, size);
        refit(whole, kept + size);
        try_load(c, whole, kept + size);
        free(whole);
        return 0;
    }
    memcpy(c->crafted, c->state, c->size);
    { /* of the liquid and the shell, or of the shell */
        fsi__co_head h;
        memcpy(&h, c->state, sizeof h);
        start = (way >> 3) % 2 && FUZZ_LIQUID ? sizeof h : sizeof h + (size_t)h.liquid + sizeof(fsi__state_header) + 12;
        count = (c->size - start) / 8;
    }
    edit(c->crafted + start, count, data, size);
    refit(c->crafted, c->size);
    try_load(c, c->crafted, c->size);
    return 0;
}
