/* fuzz_state_shell.c - states given to fsi_shell_load: any bytes, bytes behind a header and checksum that fit, and
   true states with words
   of them changed. What is refused changes nothing; what is accepted a step can start from; a true state loaded after it goes on as ever.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_state_shell.c -o fuzz_state_shell -lm && ./fuzz_state_shell -max_len=4096 */
#define FSI_IMPLEMENTATION
#include "../../fsi_shell.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

/* Made once; a true state, and the hash a step after it. */
typedef struct scene { fsi_context context; fsi_shell *s; fsi_mesh *mesh; fsi_body body, kept; unsigned char *state, *crafted; size_t size; uint64_t hash, after; } scene;

static fsi_vec3 v3(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }

static fsi_mesh *box_mesh(fsi_vec3 at, double half)
{
    static const int box[36] = { 0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6, 0, 1, 5, 0, 5, 4, 2, 6, 7, 2, 7, 3, 0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5 };
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *m;
    fsi_vec3 x[8];
    int i;
    for (i = 0; i < 8; i++) x[i] = v3((double)at.x + (i & 1 ? half : -half), (double)at.y + (i & 2 ? half : -half), (double)at.z + (i & 4 ? half : -half));
    d.vertices = x;
    d.vertex_count = 8;
    d.elements = box;
    d.element_count = 12;
    MUST(fsi_mesh_create(&m, &d) == FSI_OK);
    return m;
}

/* Two small sheets, one over the other, a rod with twist sewn to the upper one, a point; obstacle with a COUPLED body, springs, a pin. 2D: two chains. */
static void fill_desc(fsi_shell_desc *d, fsi_vec3 *x, int *triangle, int *segment, fsi_real *mass)
{
    int i, j, k;
    memset(mass, 0, 32 * sizeof *mass);
    if (d->dim == 2) {
        for (i = 0; i < 12; i++) x[i] = v3(0.1 * (i % 6), 0.012 * (i / 6), 0);
        for (i = 0; i < 10; i++) {
            segment[2 * i] = i + i / 5;
            segment[2 * i + 1] = i + i / 5 + 1;
        }
        d->vertex_count = 12;
        d->segment_count = 10;
        return;
    }
    for (k = 0; k < 2; k++) for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) x[9 * k + 3 * i + j] = v3(0.1 * i + 0.01 * k, 0.1 * j + 0.02 * k, 0.012 * k);
    for (k = 0; k < 2; k++) for (i = 0; i < 2; i++) for (j = 0; j < 2; j++) {
        int *t = triangle + 6 * (4 * k + 2 * i + j);
        const int p = 9 * k + 3 * i + j;
        t[0] = p;
        t[1] = p + 3;
        t[2] = t[3] = p + 1;
        t[4] = p + 3;
        t[5] = p + 4;
    }
    for (i = 0; i < 4; i++) x[18 + i] = v3(0.27 + 0.08 * i, 0.27, 0.02 + 0.01 * (i % 2));
    for (i = 0; i < 4; i++) {
        segment[2 * i] = i ? 17 + i : 17;
        segment[2 * i + 1] = 18 + i;
    }
    x[22] = v3(0.1, 0.1, 0.03);
    mass[22] = (fsi_real)0.002;
    d->vertex_count = 23;
    d->triangle_count = 16;
    d->segment_count = 4;
}

static fsi_status one_step(scene *c)
{
    fsi_status status;
    c->body.end = c->body.pose;
    status = fsi_shell_step(c->s, (fsi_real)0.004);
    if (status == FSI_OK) fsi_body_accept(&c->body);
    return status;
}

static fsi_status load(scene *c, const void *buffer, size_t size)
{
    c->body = c->kept; /* bodies are put back first */
    return fsi_shell_load(c->s, buffer, size);
}

static void make(scene *c, int dim)
{
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
    fsi_shell_obstacle_desc o = fsi_shell_default_obstacle_desc();
    fsi_mass_properties mass;
    fsi_vec3 x[32];
    fsi_real added[32];
    int triangle[96], segment[64], id = -1, k;
    c->context = fsi_default_context();
    d.context = &c->context;
    d.dim = dim;
    d.vertices = x;
    d.triangles = triangle;
    d.segments = segment;
    d.vertex_mass = added;
    d.materials = &m;
    d.material_count = 1;
    m.young = (fsi_real)1e5;
    m.thickness = m.radius = (fsi_real)0.003;
    m.density = 300;
    m.damping_stiffness = (fsi_real)1e-4;
    d.integrator = FSI_SHELL_BDF2;
    d.friction = (fsi_real)0.3;
    d.contact_range = (fsi_real)0.02;
    d.max_newton = 8;
    if (dim == 2) d.gravity = v3(0, -9.81, 0);
    fill_desc(&d, x, triangle, segment, added);
    MUST(fsi_shell_create(&c->s, &d) == FSI_OK);
    if (dim == 3) {
        c->mesh = box_mesh(v3(0.12, 0.12, -0.06), 0.05);
        MUST(fsi_mesh_mass(c->mesh, 500, 0, &mass) == FSI_OK);
        c->body = fsi_body_from_mass(&mass);
        o.mesh = c->mesh;
        o.body = &c->body;
        o.friction = (fsi_real)0.2;
        MUST(fsi_shell_add_obstacle(c->s, &o, &id) == FSI_OK);
    }
    p.vertex = 2;
    p.stiffness = 10;
    p.obstacle = id;
    p.anchor = v3(0.1, 0.12, dim == 3 ? -0.02 : 0);
    MUST(fsi_shell_add_spring(c->s, &p, NULL) == FSI_OK);
    c->s->pinned[0] = 1;
    for (k = 0; k < 5; k++) MUST(one_step(c) == FSI_OK);
    MUST(fsi_shell_save(c->s, NULL, 0, &c->size) == FSI_OK);
    c->state = (unsigned char *)malloc(c->size);
    c->crafted = (unsigned char *)malloc(c->size);
    MUST(fsi_shell_save(c->s, c->state, c->size, NULL) == FSI_OK);
    c->hash = fsi_shell_hash(c->s);
    c->kept = c->body;
    MUST(load(c, c->state, c->size) == FSI_OK && one_step(c) == FSI_OK);
    c->after = fsi_shell_hash(c->s);
}

static int stats_are_finite(const fsi_shell_stats *t)
{
    return fsi_is_finite(t->kinetic_energy + t->elastic_energy + t->potential_energy + t->contact_energy + t->min_gap + t->contact_stiffness);
}

static void try_load(scene *c, const void *buffer, size_t size)
{
    uint64_t before = fsi_shell_hash(c->s);
    size_t need = 0;
    if (load(c, buffer, size) != FSI_OK) {
        MUST(fsi_shell_hash(c->s) == before);
        return;
    } else {
        MUST(fsi_shell_count_intersections(c->s) == 0);
        MUST(fsi_shell_save(c->s, NULL, 0, &need) == FSI_OK && need == c->size);
        before = fsi_shell_hash(c->s);
        if (one_step(c) == FSI_OK) MUST(stats_are_finite(&c->s->stats) && fsi_shell_count_intersections(c->s) == 0);
        else {
            const fsi_status status = c->context.error.status; /* a pin whose way is barred; speeds that lead out of the world */
            if (status != FSI_ERROR_CONVERGENCE && status != FSI_ERROR_LIMIT) fprintf(stderr, "%s\n", c->context.error.message);
            MUST(fsi_shell_hash(c->s) == before && (status == FSI_ERROR_CONVERGENCE || status == FSI_ERROR_LIMIT));
        }
    }
    MUST(load(c, c->state, c->size) == FSI_OK && fsi_shell_hash(c->s) == c->hash);
    MUST(one_step(c) == FSI_OK && fsi_shell_hash(c->s) == c->after);
    MUST(load(c, c->state, c->size) == FSI_OK);
}

static void try_payload(scene *c, const unsigned char *payload, size_t size)
{
    const fsi__state_header header = fsi__make_state_header(c->s->cookie, size, fsi_hash(payload, size, 0));
    unsigned char *whole = (unsigned char *)malloc(size + sizeof header);
    MUST(whole);
    memcpy(whole, &header, sizeof header);
    memcpy(whole + sizeof header, payload, size);
    try_load(c, whole, size + sizeof header);
    free(whole);
}

/* Records of two bytes that choose a word, one that says what becomes of it, and for some of them more. */
static void edit(unsigned char *words, size_t count, const uint8_t *data, size_t size)
{
    static const double number[16] = { 0, -1, 1, 1e300, -1e300, 1e30, 1e12, -1e12, 1e-300, 1e-12, 7, 0.5, 1e6, 1e-3, 1e9, 3.14159 };
    size_t at, from, k;
    for (; size >= 3; data += 3, size -= 3) {
        double value;
        at = ((size_t)data[0] | (size_t)data[1] << 8) % count;
        memcpy(&value, words + 8 * at, 8);
        switch (data[2] >> 4) {
        case 0: value = number[data[2] & 15]; break;
        case 1: value = data[2] & 1 ? HUGE_VAL : HUGE_VAL - HUGE_VAL; break;
        case 2: value *= 1 + number[data[2] & 15]; break;
        case 3: value += number[data[2] & 15] * 0.01; break;
        case 4: value = -value; break;
        case 5: if (size >= 5) { /* another word's */
            from = ((size_t)data[3] | (size_t)data[4] << 8) % count;
            memcpy(&value, words + 8 * from, 8);
            data += 2;
            size -= 2;
        } break;
        case 6: if (size >= 11) { /* any bytes */
            memcpy(&value, data + 3, 8);
            data += 8;
            size -= 8;
        } break;
        default: for (k = 0; k < 3 && at + k < count; k++) { /* moves three numbers on a little: a place */
            double x;
            memcpy(&x, words + 8 * (at + k), 8);
            x += ((data[2] >> k & 1) ? 1 : -1) * 0.002 * (data[2] >> 4);
            memcpy(words + 8 * (at + k), &x, 8);
        }
        continue;
        }
        memcpy(words + 8 * at, &value, 8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static scene made[2];
    scene *c;
    size_t start = sizeof(fsi__state_header) + 3 * sizeof(int);
    int way;
    if (size == 0) return 0;
    way = *data++;
    size--;
    c = &made[way & 1];
    if (!c->s) make(c, way & 1 ? 2 : 3);
    if ((way >> 1) % 4 == 0) try_load(c, data, size);
    else if ((way >> 1) % 4 == 1) try_payload(c, data, size);
    else {
        memcpy(c->crafted, c->state, c->size);
        edit(c->crafted + start, (c->size - start) / 8, data, size);
        try_payload(c, c->crafted + sizeof(fsi__state_header), c->size - sizeof(fsi__state_header));
    }
    return 0;
}
