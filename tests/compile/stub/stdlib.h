/* stdlib.h - the part of it that fsi may use, for targets whose own headers are not at hand.
   SPDX-License-Identifier: MIT */
#ifndef STUB_STDLIB_H
#define STUB_STDLIB_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
void *malloc(size_t), *calloc(size_t, size_t), *realloc(void *, size_t);
void free(void *);
double strtod(const char *, char **);
long strtol(const char *, char **, int);
void qsort(void *, size_t, size_t, int (*)(const void *, const void *));
void *bsearch(const void *key, const void *base, size_t count, size_t size, int (*compare)(const void *, const void *));
#ifdef __cplusplus
}
#endif
#endif
