/* speed.c - prints the least CPU milliseconds that a typical loop of fsi takes: a -O0 build must not take many times
   those of -O2.
   SPDX-License-Identifier: MIT */
#define FSI_STATIC /* what is not called costs no time */
#define FSI_IMPLEMENTATION
#include "fsi_surface.h"
#include <stdio.h>
#include <time.h>

enum { COUNT = 20000 };
static fsi_vec3 x[COUNT];

int main(void)
{
    fsi_surface_desc d = fsi_surface_default_desc();
    fsi_surface *surface;
    double least = 1e9;
    uint32_t state = 1;
    int i, k;
    for (i = 0; i < 3 * COUNT; i++) {
        fsi_real r;
        state = state * 1664525u + 1013904223u;
        r = (fsi_real)(state >> 8) / 16777216;
        if (i % 3 == 0) x[i / 3].x = r;
        else if (i % 3 == 1) x[i / 3].y = r;
        else x[i / 3].z = r;
    }
    d.spacing = (fsi_real)0.04;
    if (fsi_surface_create(&surface, &d) != FSI_OK) return 1;
    for (k = 0; k < 4; k++) {
        clock_t begin = clock();
        if (fsi_surface_update(surface, x, COUNT, NULL) != FSI_OK) return 1;
        least = fmin(least, (double)(clock() - begin) * 1000 / CLOCKS_PER_SEC);
    }
    fsi_surface_destroy(surface);
    printf("%.0f\n", least + 1);
    return 0;
}
