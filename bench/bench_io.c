/* bench_io.c - speed of reading and writing a mesh of 200,000 triangles and a picture, beside one pass over the same
   bytes.
   SPDX-License-Identifier: MIT

   cc -O3 bench/bench_io.c -o bench_io -lm && ./bench_io */
#define FSI_IMPLEMENTATION
#include "../fsi_io.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct bytes { unsigned char *data; size_t size, capacity; } bytes;

static size_t collect(void *user, const void *data, size_t size)
{
    bytes *b = (bytes *)user;
    if (b->size + size > b->capacity) {
        b->capacity = 2 * (b->size + size);
        b->data = (unsigned char *)realloc(b->data, b->capacity);
        if (!b->data) exit(1);
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return size;
}

enum { SIDE = 317, PASSES = 3, WIDTH = 960, HEIGHT = 540 };

static fsi_vec3 x[SIDE * SIDE];
static int triangles[6 * (SIDE - 1) * (SIDE - 1)];
static unsigned char pixels[3 * WIDTH * HEIGHT];

static void make_mesh(fsi_io_mesh *m)
{
    int i, j, *t = triangles;
    for (i = 0; i < SIDE * SIDE; i++)
        x[i] = fsi_v3((fsi_real)(i % SIDE) / 7, (fsi_real)(i / SIDE) / 7, (fsi_real)sin(i / 11.0));
    for (j = 0; j + 1 < SIDE; j++) {
        for (i = 0; i + 1 < SIDE; i++, t += 6) {
            int a = j * SIDE + i;
            t[0] = t[3] = a;
            t[1] = a + 1;
            t[2] = t[4] = a + SIDE + 1;
            t[5] = a + SIDE;
        }
    }
    *m = fsi_io_default_mesh();
    m->vertices = x;
    m->vertex_count = SIDE * SIDE;
    m->triangles = triangles;
    m->triangle_count = 2 * (SIDE - 1) * (SIDE - 1);
    for (i = 0; i < 3 * WIDTH * HEIGHT; i++)
        pixels[i] = (unsigned char)(128 + 100 * sin(i % (3 * WIDTH) / 300.0) * cos(i / (3 * WIDTH) / 60.0));
}

/* 0 OBJ, 1 PLY ascii, 2 PLY binary, 3 VTP, 4 PNG. */
static fsi_status write_one(int what, fsi_io_out out, const fsi_io_mesh *m)
{
    if (what == 0) return fsi_io_write_obj(out, m, FSI_IO_SINGLE);
    if (what < 3) return fsi_io_write_ply(out, m, FSI_IO_SINGLE | (what == 1 ? FSI_IO_ASCII : 0));
    return what == 3 ? fsi_io_write_vtp(out, m, FSI_IO_SINGLE) : fsi_io_write_png(out, pixels, WIDTH, HEIGHT, 3, 0);
}

static fsi_status read_one(int what, const bytes *b)
{
    fsi_io_mesh m;
    fsi_status status =
        what == 0 ? fsi_io_read_obj(&m, NULL, b->data, b->size) : fsi_io_read_ply(&m, NULL, b->data, b->size);
    fsi_io_destroy_mesh(&m);
    return status;
}

static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

int main(void)
{
    static const char *const names[5] = { "OBJ", "PLY ascii", "PLY binary", "VTP", "PNG 960x540" };
    fsi_io_mesh m;
    int what, pass;
    make_mesh(&m);
    printf("%-12s %8s %12s %12s %12s\n", "", "MB", "write MB/s", "read MB/s", "pass MB/s");
    for (what = 0; what < 5; what++) {
        bytes b = { NULL, 0, 0 };
        double best[3] = { 1e9, 1e9, 1e9 }, t[4], mb;
        for (pass = 0; pass < PASSES; pass++) {
            volatile uint64_t sink;
            int k;
            b.size = 0;
            t[0] = seconds();
            if (write_one(what, fsi_io_to_function(NULL, collect, &b), &m) != FSI_OK) return 1;
            t[1] = seconds();
            if (what < 3 && read_one(what, &b) != FSI_OK) return 1;
            t[2] = seconds();
            sink = fsi_hash(b.data, b.size, 0);
            (void)sink;
            t[3] = seconds();
            for (k = 0; k < 3; k++) if (t[k + 1] - t[k] < best[k]) best[k] = t[k + 1] - t[k];
        }
        mb = (double)b.size / 1e6;
        printf("%-12s %8.2f %12.0f ", names[what], mb, what == 4 ? sizeof pixels / 1e6 / best[0] : mb / best[0]);
        if (what < 3) printf("%12.0f ", mb / best[1]);
        else printf("%12s ", "-");
        printf("%12.0f\n", mb / (best[2] > 1e-6 ? best[2] : 1e-6));
        free(b.data);
    }
    return 0;
}
