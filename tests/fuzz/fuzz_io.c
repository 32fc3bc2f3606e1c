/* fuzz_io.c - any bytes whatever given to the OBJ, PLY, Gmsh and TetGen readers; what is accepted must be sound and
   survive a round trip. TetGen: .node up to the first byte 0, .ele after it.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_io.c -o fuzz_io -lm && ./fuzz_io -max_len=4096
   cc -DFSI_FUZZ_MAIN tests/fuzz/fuzz_io.c -o replay -lm && ./replay file ...        (without files: standard input) */
#define FSI_IMPLEMENTATION
#include "../../fsi_io.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

typedef struct bytes { unsigned char *data; size_t size, capacity; } bytes;

static size_t collect(void *user, const void *data, size_t size)
{
    bytes *b = (bytes *)user;
    if (b->size + size > b->capacity) {
        b->capacity = 2 * (b->size + size);
        b->data = (unsigned char *)realloc(b->data, b->capacity);
        MUST(b->data);
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return size;
}

static void check_sound(const fsi_io_mesh *m)
{
    int i, k;
    for (i = 0; i < m->vertex_count; i++) MUST(fsi_v3_is_finite(m->vertices[i]));
    for (i = 0; i < 3 * m->triangle_count; i++) MUST(m->triangles[i] >= 0 && m->triangles[i] < m->vertex_count);
    for (i = 0; i < 2 * m->segment_count; i++) MUST(m->segments[i] >= 0 && m->segments[i] < m->vertex_count);
    for (i = 0; i < 4 * m->tet_count; i++) MUST(m->tets[i] >= 0 && m->tets[i] < m->vertex_count);
    for (i = 0; i < m->tet_count; i++) MUST(!(fsi__tet_volume6(m->vertices, m->tets + 4 * i) < 0));
    MUST(m->flipped_count >= 0 && m->flipped_count <= m->tet_count);
    for (i = 0; i < 2 * m->uv_count; i++) MUST(fsi_is_finite((double)m->uv[i]));
    if (m->uv_count > 0 && !m->triangle_uv) MUST(m->uv_count == m->vertex_count);
    for (i = 0; m->triangle_uv && i < 3 * m->triangle_count; i++) MUST(m->triangle_uv[i] >= -1 && m->triangle_uv[i] < m->uv_count);
    for (k = 0; k < m->attribute_count; k++)
        for (i = 0; i < m->vertex_count; i++) MUST(fsi_is_finite(fsi_io_attribute_value(&m->attributes[k], i, 0)));
}

/* The texture coordinates at a corner, NULL when there are none. */
static const fsi_real *uv_at(const fsi_io_mesh *m, int corner)
{
    int uv = m->uv_count == 0 ? -1 : m->triangle_uv ? m->triangle_uv[corner] : m->triangles[corner];
    return uv < 0 ? NULL : m->uv + 2 * uv;
}

/* At the corners of triangles that have them at all three. */
static void check_same_uv(const fsi_io_mesh *a, const fsi_io_mesh *b)
{
    int i, k;
    for (i = 0; i < a->triangle_count; i++) {
        int whole = uv_at(a, 3 * i) && uv_at(a, 3 * i + 1) && uv_at(a, 3 * i + 2);
        for (k = 3 * i; k < 3 * i + 3; k++) {
            MUST(!whole == !uv_at(b, k));
            MUST(!whole || (uv_at(a, k)[0] == uv_at(b, k)[0] && uv_at(a, k)[1] == uv_at(b, k)[1]));
        }
    }
}

/* Writes what was read and reads it back: the same counts, positions and texture coordinates. */
static void check_round_trip(const fsi_io_mesh *m, fsi_context *context, int flags)
{
    bytes b = { NULL, 0, 0 };
    fsi_io_mesh again;
    if (fsi_io_write_ply(fsi_io_to_function(context, collect, &b), m, flags) == FSI_OK) { /* else a name cannot be written */
        MUST(fsi_io_read_ply(&again, context, b.data, b.size) == FSI_OK);
        MUST(again.vertex_count == m->vertex_count && again.triangle_count == m->triangle_count && again.segment_count == m->segment_count);
        MUST(m->vertex_count == 0 || memcmp(again.vertices, m->vertices, (size_t)m->vertex_count * sizeof *m->vertices) == 0);
        check_same_uv(m, &again);
        fsi_io_destroy_mesh(&again);
    }
    b.size = 0;
    if (m->vertex_count > 0 && fsi_io_write_obj(fsi_io_to_function(context, collect, &b), m, 0) == FSI_OK) {
        MUST(fsi_io_read_obj(&again, context, b.data, b.size) == FSI_OK);
        MUST(again.vertex_count == m->vertex_count && again.triangle_count == m->triangle_count && again.segment_count == m->segment_count);
        check_same_uv(m, &again);
        fsi_io_destroy_mesh(&again);
    }
    b.size = 0;
    if (fsi_io_write_vtp(fsi_io_to_function(context, collect, &b), m, flags) == FSI_OK) MUST(b.size > 0);
    free(b.data);
}

static fsi_status read_as(int format, fsi_io_mesh *mesh, fsi_context *context, const uint8_t *data, size_t size)
{
    const uint8_t *zero = (const uint8_t *)memchr(data, 0, size), *ele = zero ? zero + 1 : data + size;
    if (format == 0) return fsi_io_read_obj(mesh, context, data, size);
    if (format == 1) return fsi_io_read_ply(mesh, context, data, size);
    if (format == 2) return fsi_io_read_gmsh(mesh, context, data, size);
    return fsi_io_read_tetgen(mesh, context, data, (size_t)((zero ? zero : ele) - data), ele,
                              (size_t)(data + size - ele));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t nothing[1] = { 0 };
    fsi_context context = fsi_default_context();
    fsi_io_mesh mesh;
    int format;
    for (format = 0; format < 4; format++) {
        fsi_status status = read_as(format, &mesh, &context, size ? data : nothing, size);
        MUST(context.peak_bytes < 65536 + 512 * size); /* no count was believed */
        if (status == FSI_OK) {
            check_sound(&mesh);
            check_round_trip(&mesh, &context, format ? 0 : FSI_IO_ASCII);
        } else MUST(context.error.message[0] && context.error.status == status && mesh.vertex_count == 0 && !mesh.vertices);
        fsi_io_destroy_mesh(&mesh);
        MUST(context.bytes == 0);
        context = fsi_default_context();
    }
    return 0;
}

#if defined(FSI_FUZZ_MAIN)
static int replay(FILE *file, const char *name)
{
    static uint8_t data[1 << 22];
    size_t size;
    if (!file) { fprintf(stderr, "cannot open %s\n", name); return 1; }
    size = fread(data, 1, sizeof data, file);
    if (file != stdin) fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    printf("%s: %lu bytes, no finding\n", name, (unsigned long)size);
    return 0;
}

int main(int argc, char **argv)
{
    int i, failed = 0;
    if (argc < 2) return replay(stdin, "standard input");
    for (i = 1; i < argc; i++) failed |= replay(fopen(argv[i], "rb"), argv[i]);
    return failed;
}
#endif
