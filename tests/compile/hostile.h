/* hostile.h - names that system headers define as macros on some platform; a header that uses one fails to compile.
   SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* windows.h */
#define near @
#define far @
#define min(a, b) @
#define max(a, b) @
#define small @
#define interface @
#define IN @
#define OUT @
#define CONST @
#define ERROR @
#define DELETE @
#define DIFFERENCE @
#define OPAQUE @
#define TRANSPARENT @
#define rad1 @
#define rad2 @
/* complex.h, sys/types.h, sys/sysmacros.h, termios.h, ctype.h, curses.h, X.h, gnu modes of gcc */
#define I @
#define complex @
#define major @
#define minor @
#define minor_t @
#define makedev @
#define B0 @
#define B50 @
#define ECHO @
#define _B @
#define _N @
#define _X @
#define None @
#define Bool @
#define Success @
#define Always @
#define linux @
#define unix @
/* what users call their own macros */
#define PI @
#define EPS @
#define EPSILON @
#define MIN(a, b) @
#define MAX(a, b) @
#define ABS(a) @
#define SQR(a) @
#define CLAMP(a, b, c) @
#define SWAP(a, b) @
#define TRUE @
#define FALSE @
#define Real @
#define DIM @
#define N @
