/* arithmetic.c - prints a hash of much arithmetic of fsi's ground, which must be the same at every -O level of a
   compiler,
   and how this build rounds a*b+c: inside fsi's implementation, and in the user's code after the header.
   SPDX-License-Identifier: MIT */
#define FSI_STATIC /* what is not called costs no time */
#define FSI_IMPLEMENTATION
#include FSI_HEADER
#include "fsi_particles.h"
#include <stdio.h>

enum { COUNT = 2000 };
static fsi_vec3 x[COUNT];

static fsi_real next(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (fsi_real)(state >> 8) / 16777216;
}

FSI__STRICT_BEGIN /* as in the implementation of every fsi header */

/* A loop of the kind that fsi's kernels are made of: products, sums, roots and elementary functions. */
static void advance(fsi_vec3 *p, int n)
{
    int i;
    for (i = 0; i < n; i++) {
        fsi_vec3 a = p[i], b = p[(i + 1) % n];
        fsi_real r = fsi_v3_norm(fsi_v3_sub(a, b)), w = fsi_exp(-r * r) * fsi_cos(3 * r) + fsi_log(1 + r);
        a = fsi_v3_madd(fsi_v3_cross(a, b), w, fsi_v3_unit(b));
        a.x += fsi_atan2(a.y, a.z) * fsi_asinh(a.x);
        p[i] = fsi_v3_madd(a, fsi_sin(a.z), b);
    }
}

FSI__STRICT_END

static uint64_t hash_matrices(uint64_t h)
{
    fsi_mat3 m, out[4];
    fsi_vec3 s;
    int i, k;
    for (i = 0; i < 200; i++) {
        for (k = 0; k < 9; k++) m.m[k] = next() - (fsi_real)0.5;
        fsi_m3_svd(m, &out[0], &s, &out[1]);
        fsi_m3_polar(m, &out[2], &out[3]);
        h = fsi_hash(&s, sizeof s, fsi_hash(out, sizeof out, h));
    }
    return h;
}

static uint64_t hash_neighbors(uint64_t h)
{
    fsi_neighbors *nb;
    int i;
    if (fsi_neighbors_create(&nb, NULL) != FSI_OK) return 0;
    if (fsi_neighbors_build(nb, x, COUNT, (fsi_real)0.2, 3) != FSI_OK) return 0;
    for (i = 0; i < COUNT; i++) h = fsi_hash(nb->list + nb->first[i], (size_t)nb->size[i] * sizeof(int), h);
    fsi_neighbors_destroy(nb);
    return h;
}

/* The arithmetic of fsi's own probe, in code that is none of fsi's business. */
static int user_contracts(void)
{
    volatile fsi_real v = FSI_REAL_EPS;
    fsi_real e = v, a = 1 + e, b = 1 - e;
    return a * b - 1 < -e * e / 2 && a * b - 1 > -e / 2;
}

int main(void)
{
    uint64_t h;
    int i;
    for (i = 0; i < COUNT; i++) x[i] = fsi_v3(next(), next(), next());
    h = hash_neighbors(hash_matrices(0));
    for (i = 0; i < 5; i++) advance(x, COUNT);
    h = fsi_hash(x, sizeof x, h);
    printf("%08lx%08lx user=%d %s\n", (unsigned long)(h >> 32), (unsigned long)(h & 0xffffffffu), user_contracts(), fsi_build_info());
    return 0;
}
