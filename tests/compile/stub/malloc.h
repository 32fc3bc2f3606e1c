/* malloc.h - what compilers' own vector headers ask for, for targets whose own headers are not at hand.
   SPDX-License-Identifier: MIT */
#ifndef STUB_MALLOC_H
#define STUB_MALLOC_H
#include <stdlib.h>
#ifdef __cplusplus
extern "C" {
#endif
void *_aligned_malloc(size_t, size_t);
void _aligned_free(void *);
#ifdef __cplusplus
}
#endif
#endif
