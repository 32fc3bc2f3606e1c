/* stdio.h - the part of it that fsi may use, for targets whose own headers are not at hand.
   SPDX-License-Identifier: MIT */
#ifndef STUB_STDIO_H
#define STUB_STDIO_H
#include <stdarg.h>
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct FILE FILE;
enum { SEEK_SET, SEEK_CUR, SEEK_END };
int printf(const char *, ...), fprintf(FILE *, const char *, ...), snprintf(char *, size_t, const char *, ...);
int vsnprintf(char *, size_t, const char *, va_list);
FILE *fopen(const char *, const char *);
int fclose(FILE *), fflush(FILE *), ferror(FILE *), fseek(FILE *, long, int);
long ftell(FILE *);
size_t fread(void *, size_t, size_t, FILE *), fwrite(const void *, size_t, size_t, FILE *);
#ifdef __cplusplus
}
#endif
#endif
