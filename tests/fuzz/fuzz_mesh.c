/* fuzz_mesh.c - any vertices and elements given to fsi_mesh_create; what is accepted must be sound, closed where it
   says so,
   and answer every query.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined,float-cast-overflow tests/fuzz/fuzz_mesh.c -o fuzz_mesh -lm && ./fuzz_mesh -max_len=400
   cc -DFSI_FUZZ_MAIN tests/fuzz/fuzz_mesh.c -o replay -lm && ./replay file ... */
#define FSI_IMPLEMENTATION
#include "../../fsi_mesh.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

enum { MOST_VERTICES = 40, MOST_ELEMENTS = 60 };
typedef struct bytes { const uint8_t *p, *end; } bytes;

static int next(bytes *b) { return b->p < b->end ? *b->p++ : 0; }

/* Mostly small whole numbers, so that vertices meet, lie on edges and in planes; some far, tiny, huge or not finite. */
static fsi_real coordinate(bytes *b)
{
    static const double odd[16] = { 1e-9, -1e-7, 1e-3, 0.5, 1 / 3.0, 1e3, 3908, -1e6, 1e8, 1e-30, 1e30, -1e75, 1e76, 1e300, 1e-300, -0.0 };
    int k = next(b);
    if (k < 200) return (fsi_real)(k % 8);
    if (k < 230) return (fsi_real)(next(b) * 1e-3);
    if (k < 254) return (fsi_real)odd[(k - 230) % 16];
    return (fsi_real)(k == 254 ? HUGE_VAL : HUGE_VAL - HUGE_VAL);
}

static fsi_vec3 point(bytes *b)
{
    fsi_vec3 p;
    p.x = coordinate(b);
    p.y = coordinate(b);
    p.z = coordinate(b);
    return p;
}

/* Where products of four lengths stay finite. */
static int in_reach(const fsi_mesh *m, fsi_vec3 a, fsi_vec3 c)
{
    fsi_box3 box = fsi_box3_grow(fsi_box3_grow(m->box, a), c);
    const double reach = sizeof(fsi_real) == 8 ? 1e70 : 1e8;
    return fsi_v3_is_finite(a) && fsi_v3_is_finite(c) && fabs((double)fsi_v3_norm(box.lo)) < reach && fabs((double)fsi_v3_norm(box.hi)) < reach;
}

static int is_unit(fsi_vec3 n) { return fabs((double)fsi_v3_norm(n) - 1) < 1e-3; }

static void check_sound(const fsi_mesh *m, fsi_mesh_kind kind)
{
    int f, k, n = m->corners;
    MUST(m->face_count > 0 && m->vertex_count > 1 && m->group_count > 0);
    for (k = 0; k < m->vertex_count; k++) {
        MUST(fsi_v3_is_finite(m->vertices[k]) && fsi_v3_is_finite(m->vertex_normals[k]));
        MUST(m->vertex_source[k] >= 0 && m->vertex_source[k] < m->source_count && m->source_vertex[m->vertex_source[k]] == k);
    }
    for (f = 0; f < m->face_count; f++) {
        const int *c = m->faces + n * f;
        for (k = 0; k < n; k++) {
            int g = m->face_neighbor[n * f + k];
            MUST(c[k] >= 0 && c[k] < m->vertex_count && c[k] != c[(k + 1) % n]);
            MUST(g >= -1 && g < m->face_count && g != f && (g >= 0 || kind != FSI_MESH_CLOSED));
            if (n == 3) MUST(m->face_edge[3 * f + k] >= 0 && m->face_edge[3 * f + k] < m->edge_count);
            if (g >= 0) MUST(m->face_group[g] == m->face_group[f]);
        }
        MUST(m->face_group[f] >= 0 && m->face_group[f] < m->group_count && m->face_source[f] >= -1);
        MUST(is_unit(m->face_normals[f]));
    }
}

static void check_hit(const fsi_mesh *m, int sane, fsi_mesh_hit h)
{
    MUST(h.face >= -1 && h.face < m->face_count);
    if (h.face >= 0 && sane) MUST(fsi_v3_is_finite(h.point) && fsi_v3_is_finite(h.normal) && fsi_is_finite((double)h.t));
}

static void query(fsi_mesh *m, bytes *b)
{
    fsi_vec3 a, c;
    fsi_mass_properties mass;
    fsi_vec3 x[MOST_VERTICES];
    int faces[8], k;
    for (k = 0; k < 4; k++) {
        a = point(b);
        c = point(b);
        check_hit(m, in_reach(m, a, c), fsi_mesh_closest(m, a, FSI_REAL_MAX, -1));
        check_hit(m, in_reach(m, a, c), fsi_mesh_closest_on_face(m, next(b), a));
        check_hit(m, in_reach(m, a, c), fsi_mesh_ray(m, a, c, 10));
        check_hit(m, in_reach(m, a, c), fsi_mesh_sweep(m, a, c, k % 3 - 1));
        if (fsi_v3_is_finite(a) && fsi_v3_norm(a) < 1000) MUST(fsi_is_finite(fsi_mesh_winding_number(m, a)));
        fsi_mesh_signed_distance(m, a);
        MUST(fsi_mesh_query_swept_box(m, fsi_box3_grow(fsi_box3_grow(fsi_box3_empty(), a), c), faces, 8) <= m->face_count);
        if (k == 1) fsi_mesh_move_rigid(m, a, fsi_quat_from_rotation_vector(fsi_v3(0.1f, 0.2f, 0.3f)));
        if (k == 2) {
            int v;
            for (v = 0; v < m->source_count; v++) x[v] = point(b);
            fsi_mesh_move(m, x, m->source_count);
        }
    }
    if (fsi_mesh_mass(m, 1000, 0.01f, &mass) == FSI_OK) MUST(fsi_is_finite((double)mass.volume));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fsi_vec3 x[MOST_VERTICES];
    int e[4 * MOST_ELEMENTS], k;
    fsi_context context = fsi_default_context();
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *m;
    fsi_status status;
    bytes b;
    b.p = data;
    b.end = data + size;
    k = next(&b);
    d.context = &context;
    d.corners = 2 + k % 3;
    d.kind = (fsi_mesh_kind)(k / 3 % 3);
    d.repair = k / 9 % 4 != 0;
    d.container = k / 36 % 4 == 0;
    d.weld = k / 144 ? (fsi_real)0.01 : d.weld;
    d.max_hole = k % 7 ? 8 : 256;
    d.vertex_count = 1 + next(&b) % MOST_VERTICES;
    d.element_count = 1 + next(&b) % MOST_ELEMENTS;
    for (k = 0; k < d.vertex_count; k++) x[k] = point(&b);
    for (k = 0; k < d.corners * d.element_count; k++) {
        int v = next(&b);
        e[k] = v == 255 ? -1 : v % (v > 250 ? d.vertex_count + 1 : d.vertex_count);
    }
    d.vertices = x;
    d.elements = e;
    status = fsi_mesh_create(&m, &d);
    if (status == FSI_OK) {
        check_sound(m, d.kind);
        query(m, &b);
        fsi_mesh_destroy(m);
    } else MUST(!m && context.error.status == status && context.error.message[0] && status != FSI_ERROR_MEMORY);
    MUST(context.bytes == 0);
    return 0;
}

#if defined(FSI_FUZZ_MAIN)
int main(int argc, char **argv)
{
    static uint8_t data[1 << 16];
    int i;
    for (i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) { fprintf(stderr, "cannot open %s\n", argv[i]); return 1; }
        LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof data, file));
        fclose(file);
        printf("%s: no finding\n", argv[i]);
    }
    return 0;
}
#endif
