/* test_neighbors_plain.c - the neighbour search in plain C, as processors without AVX2 have it.
   SPDX-License-Identifier: MIT */
#define FSI_NO_SIMD
#define FSI_PARTICLES_IMPLEMENTATION
#include "test_neighbors.c"
