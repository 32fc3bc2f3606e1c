/* finite.c - fsi_is_finite must see NaN and infinity under -ffast-math too (opted in by FSI_ALLOW_FAST_MATH).
   SPDX-License-Identifier: MIT */
#define FSI_ALLOW_FAST_MATH
#define FSI_STATIC /* inline functions only: there is no implementation to link */
#include "fsi.h"

static double from_bits(uint64_t bits)
{
    volatile uint64_t b = bits;
    uint64_t copy = b;
    double x;
    memcpy(&x, &copy, sizeof x);
    return x;
}

int main(void)
{
    static const uint64_t not_finite[] = {
        0x7ff0000000000000u, 0xfff0000000000000u, 0x7ff8000000000000u, 0xfff8000000000001u, 0x7ff0000000000001u
    };
    static const uint64_t finite[] = { 0u, 0x8000000000000000u, 1u, 0x7fefffffffffffffu, 0xffefffffffffffffu };
    int k, bad = 0;
    for (k = 0; k < 5; k++) {
        fsi_vec3 v = fsi_v3(0, (fsi_real)from_bits(not_finite[k]), 0);
        bad += fsi_is_finite(from_bits(not_finite[k])) != 0;
        bad += fsi_is_finite(from_bits(finite[k])) != 1;
        bad += fsi_v3_is_finite(v) != 0;
    }
    return bad;
}
