/* test_io.c - files in and out: exact round trips, files as they are found in the wild, and everything that can be
   wrong.
   SPDX-License-Identifier: MIT */
#define FSI_STATIC
#define FSI_IMPLEMENTATION
#include "../fsi_io.h"
#include "kit/test.h"
#include <locale.h>

/* ---- helpers -------------------------------------------------------------------------------------------------- */

/* A destination in memory that takes at most `limit` bytes. */
typedef struct bytes { unsigned char *data; size_t size, capacity, limit; } bytes;

static bytes make_bytes(void)
{
    bytes b;
    memset(&b, 0, sizeof b);
    b.limit = (size_t)-1;
    return b;
}

static size_t collect(void *user, const void *data, size_t size)
{
    bytes *b = (bytes *)user;
    if (size > b->limit - b->size) size = b->limit - b->size;
    if (b->size + size > b->capacity) {
        b->capacity = 2 * (b->size + size);
        b->data = (unsigned char *)realloc(b->data, b->capacity);
    }
    if (size > 0) memcpy(b->data + b->size, data, size);
    b->size += size;
    return size;
}

static fsi_io_out to_bytes(fsi_context *c, bytes *b) { return fsi_io_to_function(c, collect, b); }

static void put_text(bytes *b, const char *text) { collect(b, text, strlen(text)); }

/* A value of `size` bytes in the given order. */
static void put_value(bytes *b, uint64_t v, int size, int big_endian)
{
    int i;
    for (i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)(v >> 8 * (big_endian ? size - 1 - i : i));
        collect(b, &byte, 1);
    }
}

static uint64_t get_le(const unsigned char *p, int size)
{
    uint64_t v = 0;
    while (size-- > 0) v = v << 8 | p[size];
    return v;
}

static uint64_t float_bits(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static uint64_t double_bits(double d) { uint64_t u; memcpy(&u, &d, 8); return u; }

static fsi_status read_text(fsi_io_mesh *m, fsi_context *c, const char *text)
{
    size_t size = strlen(text);
    if (text[0] == '$') return fsi_io_read_gmsh(m, c, text, size);
    return strncmp(text, "ply", 3) == 0 ? fsi_io_read_ply(m, c, text, size) : fsi_io_read_obj(m, c, text, size);
}

/* A file name that no other run of this test uses; unlink it with remove(). */
static const char *scratch_file(const char *extension)
{
    static char name[2][64];
    static int turn;
    uint64_t h = (uint64_t)(uintptr_t)&h ^ (uint64_t)time(NULL) << 20 ^ (uint64_t)clock();
    turn = !turn;
    h = fsi_hash(&h, sizeof h, 0) & 0xFFFFFFFFu;
    snprintf(name[turn], sizeof name[turn], "test_io_%08lx.%s", (unsigned long)h, extension);
    return name[turn];
}

static bytes load_file(const char *path)
{
    bytes b = make_bytes();
    char chunk[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!CHECK(f != NULL)) return b;
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0) collect(&b, chunk, n);
    fclose(f);
    return b;
}

static double random_real(uint64_t *state)
{
    return (test_random(state) - 0.5) * pow(10, floor(test_random(state) * 12 - 6));
}

enum { N = 37 };

/* A mesh with everything in it: odd numbers, triangles, segments and an attribute of each type. */
typedef struct sample {
    fsi_io_mesh mesh;
    fsi_vec3 x[N];
    int triangles[3 * 20], segments[2 * 7];
    struct {
        double d;
        float f[3];
        int8_t i8;
        uint8_t color[4];
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        float tensor[9];
    } row[N];
    fsi_io_attribute attributes[9];
} sample;

static void add_attribute(sample *s, const char *name, fsi_io_type type, int components, const void *data)
{
    fsi_io_attribute *a = &s->attributes[s->mesh.attribute_count++];
    a->name = name;
    a->type = type;
    a->components = components;
    a->stride = sizeof s->row[0];
    a->data = data;
}

static void make_sample(sample *s)
{
    uint64_t r = 7;
    int i, k;
    memset(s, 0, sizeof *s);
    s->mesh = fsi_io_default_mesh();
    for (i = 0; i < N; i++) {
        s->x[i] = fsi_v3((fsi_real)random_real(&r), (fsi_real)random_real(&r), 0);
        s->x[i].z = (fsi_real)(i % 5 ? random_real(&r) : -0.0);
        s->row[i].d = random_real(&r) * 1e200;
        for (k = 0; k < 3; k++) s->row[i].f[k] = (float)random_real(&r);
        for (k = 0; k < 4; k++) s->row[i].color[k] = (uint8_t)(test_random(&r) * 256);
        for (k = 0; k < 9; k++) s->row[i].tensor[k] = (float)k + (float)i;
        s->row[i].i8 = (int8_t)(i * 7 - 128);
        s->row[i].i16 = (int16_t)(i * 1771 - 32768);
        s->row[i].u16 = (uint16_t)(65535 - i);
        s->row[i].i32 = i == 0 ? -2147483647 - 1 : 2147483647 - i;
        s->row[i].u32 = 4294967295u - (uint32_t)i;
    }
    for (i = 0; i < 60; i++) s->triangles[i] = (int)(test_random(&r) * N);
    for (i = 0; i < 14; i++) s->segments[i] = (int)(test_random(&r) * N);
    s->mesh.vertices = s->x;
    s->mesh.vertex_count = N;
    s->mesh.triangles = s->triangles;
    s->mesh.triangle_count = 20;
    s->mesh.segments = s->segments;
    s->mesh.segment_count = 7;
    s->mesh.attributes = s->attributes;
    add_attribute(s, "age", FSI_IO_DOUBLE, 1, &s->row[0].d);
    add_attribute(s, "v", FSI_IO_FLOAT, 3, s->row[0].f);
    add_attribute(s, "level", FSI_IO_INT8, 1, &s->row[0].i8);
    add_attribute(s, "color", FSI_IO_UINT8, 4, s->row[0].color);
    add_attribute(s, "i16", FSI_IO_INT16, 1, &s->row[0].i16);
    add_attribute(s, "u16", FSI_IO_UINT16, 1, &s->row[0].u16);
    add_attribute(s, "i32", FSI_IO_INT32, 1, &s->row[0].i32);
    add_attribute(s, "u32", FSI_IO_UINT32, 1, &s->row[0].u32);
    add_attribute(s, "t", FSI_IO_FLOAT, 9, s->row[0].tensor);
}

static void check_same_shape(const fsi_io_mesh *a, const fsi_io_mesh *b)
{
    CHECK(a->vertex_count == b->vertex_count && a->triangle_count == b->triangle_count);
    CHECK(a->segment_count == b->segment_count);
    CHECK(memcmp(a->vertices, b->vertices, (size_t)b->vertex_count * sizeof *b->vertices) == 0);
    CHECK(memcmp(a->triangles, b->triangles, (size_t)b->triangle_count * 3 * sizeof(int)) == 0);
    CHECK(memcmp(a->segments, b->segments, (size_t)b->segment_count * 2 * sizeof(int)) == 0);
}

/* ---- numbers -------------------------------------------------------------------------------------------------- */

static double parse(const char *text)
{
    double x = 0;
    const unsigned char *end = (const unsigned char *)text + strlen(text);
    return fsi__parse_number((const unsigned char *)text, end, &x) == end ? x : test_nan();
}

static void test_decimals_are_read_as_strtod_does(void)
{
    static const char *const texts[] = {
        "0", "-0", "+1", "1.", ".5", "-.5e1", "1e5", "1E+05", "1e-5", "0.1", "0.3", "4.35", "1e22", "1e-22",
        "123456789012345", "9007199254740993", "1.7976931348623157e308", "2.2250738585072014e-308",
        "2.2250738585072011e-308", "4.9406564584124654e-324", "2.4703282292062327e-324", "2.4703282292062328e-324",
        "1e-400", "0e999999999", "00000000000000000000000000000.25", "0.000000000000000000000000000000001",
        "100000000000000000000000000000000000000", "3.14159265358979323846264338327950288", "1e0000000000000000005"
    };
    static const char *const bad[] = { "", "-", ".", "e5", "1e", "1e+", "nan", "inf", "0x10", "1,5", "--1", "1.2.3" };
    char text[64];
    uint64_t r = 1, bits;
    double x;
    size_t i;
    for (i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK(double_bits(parse(texts[i])) == double_bits(strtod(texts[i], NULL)));
    for (i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!(parse(bad[i]) == parse(bad[i])));
    CHECK(parse("1e400") == test_inf() && parse("-1e99999999999999999999") == -test_inf());
    CHECK(parse("1.8e308") == test_inf());
    for (i = 0; i < 20000; i++) { /* 17 digits of any double */
        bits = (uint64_t)(test_random(&r) * 4294967296.0) << 32 | (uint64_t)(test_random(&r) * 4294967296.0);
        if (i % 8 == 0) bits >>= 12 + i / 8 % 40;
        memcpy(&x, &bits, 8);
        if (!fsi_is_finite(x)) continue;
        snprintf(text, sizeof text, "%.17g", x);
        CHECK(double_bits(parse(text)) == bits);
        snprintf(text, sizeof text, "%.*g", 1 + (int)(i % 15), x); /* short ones: 0.503 units in the last place */
        x = strtod(text, NULL);
        CHECK_NEAR(parse(text), x, fabs(x) * 2.3e-16);
    }
}

static void test_numbers_written_are_read_back_exactly_in_any_locale(void)
{
    static const char *const locales[] = { "C", "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fa_IR.UTF-8" };
    char text[64];
    uint64_t r = 3, bits;
    double x;
    size_t k;
    int i, n;
    for (k = 0; k < sizeof locales / sizeof *locales; k++) {
        if (!setlocale(LC_ALL, locales[k])) continue; /* not installed */
        for (i = 0; i < 3000; i++) {
            bits = (uint64_t)(test_random(&r) * 4294967296.0) << 32 | (uint64_t)(test_random(&r) * 4294967296.0);
            memcpy(&x, &bits, 8);
            if (!fsi_is_finite(x) || !fsi_is_finite((double)(float)x)) x = test_random(&r);
            n = fsi__format_number(text, sizeof text, x, 0);
            text[n] = 0;
            CHECK(parse(text) == x);
            n = fsi__format_number(text, sizeof text, (double)(float)x, 1);
            text[n] = 0;
            CHECK((float)parse(text) == (float)x);
        }
        n = fsi__format_number(text, sizeof text, 0.1, 0);
        CHECK(n == 3 && memcmp(text, "0.1", 3) == 0);
    }
    setlocale(LC_ALL, "C");
}

/* ---- obj ------------------------------------------------------------------------------------------------------ */

static void test_obj_as_found_in_the_wild(void)
{
    static const char text[] =
        "\xEF\xBB\xBFv 1 2 3 # byte order mark before, comment after\r\n"
        "# a comment that ends in a backslash \\\r\n"
        "mtllib some file.mtl\r\no thing\rg a b\n\n  \t\n"
        "\tv\t-1.5e0 .5 +2E-1 1.0\n"
        "v 0 0 \\\n   7\n"
        "v 1 0 7 0.25 0.5 0.75\n"
        "vt 0 0\nvn 0 0 1\nvp 0.3\ns off\nusemtl x\n"
        "f 1/1/1 2/1/1 3/1/1\n"
        "f 1//1 2//1 \\\r\n 3//1\n"
        "  f -4 -3 -2 -1   # a quad\n"
        "f 1/ 2/ 3/\n"
        "l 1 2/1 3\nl -1 -2\n"
        "f 4 3 5\n" /* a vertex that comes later */
        "v 0 0 9";
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    if (!CHECK(read_text(&m, &c, text) == FSI_OK)) { printf("%s\n", c.error.message); return; }
    CHECK(m.vertex_count == 5 && m.triangle_count == 6 && m.segment_count == 3 && m.fan_count == 0);
    CHECK_NEAR(m.vertices[1].x, -1.5, 0);
    CHECK_NEAR(m.vertices[1].z, 0.2, TOL(0, 1e-8));
    CHECK(m.vertices[2].z == 7 && m.vertices[4].z == 9 && m.editable == m.vertices);
    CHECK(m.triangles[15] == 3 && m.triangles[16] == 2 && m.triangles[17] == 4);
    CHECK(m.segments[0] == 0 && m.segments[1] == 1 && m.segments[2] == 1 && m.segments[3] == 2 && m.segments[4] == 3);
    CHECK(m.segments[5] == 2);
    CHECK(m.attribute_count == 3 && fsi_io_find_attribute(&m, "green") == &m.attributes[1]);
    if (m.attribute_count == 3) {
        CHECK(fsi_io_attribute_value(&m.attributes[1], 3, 0) == 0.5);
        CHECK(fsi_io_attribute_value(&m.attributes[1], 4, 0) == 0);
    }
    CHECK(!fsi_io_find_attribute(&m, "alpha") && !fsi_io_find_attribute(NULL, "red"));
    CHECK(!fsi_io_find_attribute(&m, NULL));
    fsi_io_destroy_mesh(&m);
    CHECK(m.vertex_count == 0 && !m.vertices && c.bytes == 0);
}

typedef struct bad_file { const char *text; fsi_status status; long long element; const char *says; } bad_file;

static void check_refused(const bad_file *files, size_t count)
{
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    size_t i;
    for (i = 0; i < count; i++) {
        fsi_status status = read_text(&m, &c, files[i].text);
        int ok = CHECK(status == files[i].status) && CHECK(c.error.element == files[i].element)
            && CHECK(strstr(c.error.message, files[i].says) != NULL);
        if (!ok)
            printf("case %d: status %d, element %d, '%s'\n", (int)i, (int)status, (int)c.error.element,
                   c.error.message);
        CHECK(m.vertex_count == 0 && !m.impl && c.bytes == 0 && c.error.status == status);
    }
}

static void test_obj_errors_name_the_line(void)
{
    static const bad_file files[] = {
        { "", FSI_ERROR_FORMAT, 1, "without a vertex" },
        { "hello\nworld\n", FSI_ERROR_FORMAT, 3, "without a vertex" },
        { "v 1 2\n", FSI_ERROR_FORMAT, 1, "needs 3 numbers" },
        { "v 1 2 3 4 5\n", FSI_ERROR_FORMAT, 1, "needs 3 numbers" },
        { "v 1 2 3 4 5 6 7 8\n", FSI_ERROR_FORMAT, 1, "needs 3 numbers" },
        { "v 1 2 3\r\n\r\nv 1 zwei 3", FSI_ERROR_FORMAT, 3, "line 3: 'zwei' is not a number" },
        { "v 1 2 3\r\rv 1 2,5 3", FSI_ERROR_FORMAT, 3, "'2,5' is not a number" },
        { "v 1 2 nan\n", FSI_ERROR_FORMAT, 1, "'nan' is not a number" },
        { "v 1 2 1.#INF\n", FSI_ERROR_FORMAT, 1, "'1.#INF' is not a number" },
        { "v 1 2 -inf\n", FSI_ERROR_FORMAT, 1, "'-inf' is not a number" },
        { "v 1 2 \xC3\xA4\n", FSI_ERROR_FORMAT, 1, "'\?\?' is not a number" },
        { "v 1 2 1e999\n", FSI_ERROR_NAN, 1, "'1e999' is too large" },
        { "v 1 2 3 1e200 0 0\n", FSI_ERROR_NAN, 1, "colour is too large" },
        { "v 1 2 3\nf 1 1\n", FSI_ERROR_FORMAT, 2, "fewer than 3" },
        { "v 1 2 3\nf\n", FSI_ERROR_FORMAT, 2, "fewer than 3" },
        { "v 1 2 3\nl 1\n", FSI_ERROR_FORMAT, 2, "fewer than 2" },
        { "v 1 2 3\nf 1 1 0\n", FSI_ERROR_FORMAT, 2, "'0' names no vertex" },
        { "v 1 2 3\nf 1 1 -2\n", FSI_ERROR_FORMAT, 2, "'-2' names no vertex" },
        { "v 1 2 3\nf 1 1 99999999999999999999\n", FSI_ERROR_FORMAT, 2, "names no vertex" },
        { "v 1 2 3\nf 1 \\\n1 1/x\n", FSI_ERROR_FORMAT, 3, "'1/x' is not a corner" },
        { "v 1 2 3\nf 1 1 1/1/1/1\n", FSI_ERROR_FORMAT, 2, "is not a corner" },
        { "v 1 2 3\nf 1 1 1.0\n", FSI_ERROR_FORMAT, 2, "is not a corner" },
        { "v 1 2 3\n\nf 1 1 2\n\n", FSI_ERROR_FORMAT, 3, "line 3: corner 3 is vertex 2 of 1" },
        { "v 1 2 3\nl 1 5\n", FSI_ERROR_FORMAT, 2, "corner 2 is vertex 5 of 1" }
    };
    static const bad_file too_large = { "v 0 0 0\nv 1 2 1e300\n", FSI_ERROR_NAN, 2, "too large" };
    bytes b = make_bytes();
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    int i;
    check_refused(files, sizeof files / sizeof *files);
    if (sizeof(fsi_real) == 4) check_refused(&too_large, 1);
    put_text(&b, "v 0 0 0\nf");
    for (i = 0; i <= FSI_IO_MAX_CORNERS; i++) put_text(&b, " 1");
    CHECK(fsi_io_read_obj(&m, &c, b.data, b.size) == FSI_ERROR_LIMIT && c.error.element == 2);
    CHECK(fsi_io_read_obj(&m, &c, b.data, b.size - 2) == FSI_OK && m.triangle_count == FSI_IO_MAX_CORNERS - 2);
    fsi_io_destroy_mesh(&m);
    free(b.data);
}

/* ---- polygons ------------------------------------------------------------------------------------------------- */

/* Reads one polygon of n corners (x, y), turned into a tilted plane, back to front when `flip`. Checks that its
   triangles have the same orientation and together its area. Returns the number of fans. */
static int check_polygon(const double *xy, int n, int flip)
{
    bytes b = make_bytes();
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    char line[160];
    double area = 0, sum = 0, size = 0;
    int i, fans;
    for (i = 0; i < n; i++) {
        int k = flip ? n - 1 - i : i, l = flip ? (k + n - 1) % n : (k + 1) % n;
        snprintf(line, sizeof line, "v %.17g %.17g %.17g\n", 0.36 * xy[2 * k] - 0.8 * xy[2 * k + 1],
                 0.48 * xy[2 * k] + 0.6 * xy[2 * k + 1], 0.8 * xy[2 * k]);
        put_text(&b, line);
        area += (xy[2 * k] * xy[2 * l + 1] - xy[2 * k + 1] * xy[2 * l]) / 2;
    }
    put_text(&b, "f");
    for (i = 1; i <= n; i++) { snprintf(line, sizeof line, " %d", i); put_text(&b, line); }
    if (!CHECK(fsi_io_read_obj(&m, &c, b.data, b.size) == FSI_OK)) return -1;
    CHECK(m.triangle_count == n - 2);
    for (i = 0; i < m.triangle_count; i++) {
        const int *t = m.triangles + 3 * i;
        fsi_vec3 o = m.vertices[t[0]], w = fsi_v3_cross(fsi_v3_sub(m.vertices[t[1]], o),
                                                        fsi_v3_sub(m.vertices[t[2]], o));
        /* along the plane's normal */
        double signed_area = ((double)w.x * -0.48 + (double)w.y * -0.64 + (double)w.z * 0.6) / 2;
        sum += signed_area;
        size += fabs(signed_area);
    }
    fans = m.fan_count;
    CHECK_NEAR(sum, area, TOL(1e-12, 1e-5) * (fabs(area) + 1));
    if (!fans) CHECK_NEAR(size, fabs(area), TOL(1e-12, 1e-5) * (fabs(area) + 1));
    fsi_io_destroy_mesh(&m);
    free(b.data);
    return fans;
}

static void test_polygons_keep_their_area_and_orientation(void)
{
    static const double l_shape[] = { 0, 0, 2, 0, 2, 1, 1, 1, 1, 2, 0, 2 };
    static const double dart[] = { 0, 0, 2, 1, 0, 2, 0.5, 1 };
    static const double midpoints[] = { 0, 0, 1, 0, 2, 0, 2, 1, 2, 2, 1, 2, 0, 2, 0, 1 };
    static const double keyhole[] = { 0, 0, 4, 0, 4, 4, 0, 4, 0, 0, 1, 1, 1, 3, 3, 3, 3, 1, 1,
                                     1 }; /* a hole and a cut */
    static const double bow_tie[] = { 0, 0, 2, 2, 2, 0, 0, 3 };
    static const double needle[] = { 0, 0, 1, 0, 2, 0, 1.5, 0, 0.5, 0 };
    double xy[2 * 400];
    uint64_t r = 5;
    int i, n, flip, trial;
    for (flip = 0; flip < 2; flip++) {
        CHECK(check_polygon(l_shape, 6, flip) == 0);
        CHECK(check_polygon(dart, 4, flip) == 0);
        CHECK(check_polygon(midpoints, 8, flip) == 0);
        CHECK(check_polygon(keyhole, 10, flip) == 0);
        CHECK(check_polygon(bow_tie, 4, flip) == 1);
        CHECK(check_polygon(needle, 5, flip) == 1);
        for (trial = 0; trial < 200; trial++) { /* stars: any radius at rising angles */
            n = 4 + (int)(test_random(&r) * 60);
            for (i = 0; i < n; i++) {
                double angle = 2 * FSI_PI * (i + 0.8 * test_random(&r)) / n, radius = 0.1 + test_random(&r);
                xy[2 * i] = radius * cos(angle);
                xy[2 * i + 1] = radius * sin(angle);
            }
            CHECK(check_polygon(xy, n, flip) == 0);
        }
        for (i = 0; i < 200; i++) { /* a spiral band of 400 corners */
            double angle = 0.15 * i, radius = 1 + 0.05 * i;
            xy[2 * i] = radius * cos(angle);
            xy[2 * i + 1] = radius * sin(angle);
            xy[2 * (399 - i)] = (radius + 0.5) * cos(angle);
            xy[2 * (399 - i) + 1] = (radius + 0.5) * sin(angle);
        }
        CHECK(check_polygon(xy, 400, flip) == 0);
        for (i = 0; i < 100; i++) { /* a comb */
            xy[2 * i] = i;
            xy[2 * i + 1] = i % 2 ? 10 + i % 3 : 0.5;
        }
        xy[2 * 100] = 99;
        xy[2 * 101] = 0;
        xy[2 * 100 + 1] = xy[2 * 101 + 1] = -1;
        CHECK(check_polygon(xy, 102, flip) == 0);
    }
}

/* ---- ply ------------------------------------------------------------------------------------------------------ */

/* One mesh in three encodings: 0 ascii, 1 little, 2 big endian. Properties stand in an unusual order, with lists, an
   unknown element before and one after, and faces before vertices. */
static bytes make_ply(int encoding)
{
    static const char *const format[3] = { "ascii", "binary_little_endian", "binary_big_endian" };
    static const double vertex[4][5] = { /* z quality x y red */
        { 9, 0, -5, 0.1, 200 }, { -8.5, 1, 6, 1e-30, 255 }, { 7, 2, 3, -2, 0 }, { 0.25, 3, 4, 1e30, 7 }
    };
    bytes b = make_bytes();
    char line[256];
    int i, k, big = encoding == 2;
    snprintf(line, sizeof line, "ply\nformat %s 1.0\ncomment element vertex 99\nobj_info x\n", format[encoding]);
    put_text(&b, line);
    put_text(&b, "element camera 2\nproperty list uchar short a\nproperty float64 b\n"
                 "element face 2\nproperty uchar flag\nproperty list uint8 uint32 vertex_index\n"
                 "property list int float texcoord\n"
                 "element vertex 4\nproperty float z\nproperty int8 quality\nproperty list ushort int neighbours\n"
                 "property short x\nproperty float64 y\nproperty uchar red\n"
                 "element edge 1\nproperty int vertex1\nproperty uchar weight\nproperty char vertex2\n"
                 "element tail 1\nproperty uint last\nend_header\n");
    if (encoding == 0) {
        put_text(&b, "2 1 -2 0.5\n0 nan\n5 3 0 1 2 1 0.5\n6 4 0 1 2 3 0\n");
        for (i = 0; i < 4; i++) {
            snprintf(line, sizeof line, "%.9g %.9g 1 77 %.9g\n %.17g\t%.9g\r\n", vertex[i][0], vertex[i][1],
                     vertex[i][2], vertex[i][3], vertex[i][4]);
            put_text(&b, line);
        }
        put_text(&b, "3 9 1\n4294967295");
        return b;
    }
    put_value(&b, 2, 1, big); put_value(&b, 1, 2, big); put_value(&b, 0xFFFE, 2, big);
    put_value(&b, double_bits(0.5), 8, big);
    put_value(&b, 0, 1, big); put_value(&b, double_bits(test_nan()), 8, big);
    put_value(&b, 5, 1, big); put_value(&b, 3, 1, big); for (i = 0; i < 3; i++) put_value(&b, (uint64_t)i, 4, big);
    put_value(&b, 1, 4, big); put_value(&b, float_bits(0.5f), 4, big);
    put_value(&b, 6, 1, big); put_value(&b, 4, 1, big); for (i = 0; i < 4; i++) put_value(&b, (uint64_t)i, 4, big);
    put_value(&b, 0, 4, big);
    for (i = 0; i < 4; i++) {
        put_value(&b, float_bits((float)vertex[i][0]), 4, big);
        put_value(&b, (uint64_t)vertex[i][1], 1, big);
        put_value(&b, 1, 2, big); put_value(&b, 77, 4, big);
        k = (int)vertex[i][2];
        put_value(&b, (uint64_t)(int64_t)k, 2, big);
        put_value(&b, double_bits(vertex[i][3]), 8, big);
        put_value(&b, (uint64_t)vertex[i][4], 1, big);
    }
    put_value(&b, 3, 4, big); put_value(&b, 9, 1, big); put_value(&b, 1, 1, big);
    put_value(&b, 4294967295u, 4, big);
    return b;
}

static void test_ply_of_any_encoding_order_and_type(void)
{
    static const int triangles[3] = { 0, 1, 2 };
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    int encoding;
    for (encoding = 0; encoding < 3; encoding++) {
        bytes b = make_ply(encoding);
        if (!CHECK(fsi_io_read_ply(&m, &c, b.data, b.size) == FSI_OK)) { printf("%s\n", c.error.message); return; }
        free(b.data); /* nothing in the mesh points into it */
        CHECK(m.vertex_count == 4 && m.triangle_count == 3 && m.segment_count == 1 && m.attribute_count == 2);
        CHECK(m.vertices[1].x == 6 && m.vertices[1].y == (fsi_real)1e-30 && m.vertices[1].z == (fsi_real)-8.5);
        CHECK(m.vertices[0].x == -5);
        CHECK(m.segments[0] == 3 && m.segments[1] == 1);
        CHECK(memcmp(m.triangles, triangles, sizeof triangles) == 0);
        CHECK(strcmp(m.attributes[0].name, "quality") == 0 && m.attributes[0].type == FSI_IO_INT8);
        CHECK(fsi_io_attribute_value(fsi_io_find_attribute(&m, "red"), 1, 0) == 255);
        fsi_io_destroy_mesh(&m);
        CHECK(c.bytes == 0);
    }
}

static void test_ply_line_endings(void)
{
    static const char *const ends[3] = { "\n", "\r\n", "\r" };
    static const char *const head[] = { "ply", "format binary_little_endian 1.0", "element vertex 2",
                                       "property float x", "property float y", "end_header" };
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    size_t i, k;
    for (k = 0; k < 3; k++) {
        bytes b = make_bytes();
        for (i = 0; i < 6; i++) { put_text(&b, head[i]); put_text(&b, ends[k]); }
        put_value(&b, 0x3F80000A, 4, 0); /* starts with a byte that looks like LF */
        for (i = 0; i < 3; i++) put_value(&b, float_bits(2.0f), 4, 0);
        CHECK(fsi_io_read_ply(&m, &c, b.data, b.size) == FSI_OK && m.vertices[1].y == 2 && m.vertices[1].z == 0);
        CHECK(m.vertices[0].x > 1);
        fsi_io_destroy_mesh(&m);
        free(b.data);
    }
}

#define HEAD "ply\nformat ascii 1.0\n"
#define XY "property float x\nproperty float y\n"

static void test_ply_errors_name_the_line(void)
{
    static const bad_file files[] = {
        {"ply", FSI_ERROR_FORMAT, 1, "ends inside the header"},
        {"plyx\nformat ascii 1.0\n", FSI_ERROR_FORMAT, 1, "does not start with 'ply'"},
        {"ply\nformat ascii 1.0\nelement vertex 1\n", FSI_ERROR_FORMAT, 4, "ends inside the header"},
        {"ply\nformat ascii 2.0\n", FSI_ERROR_FORMAT, 2, "'2.0' is no PLY version"},
        {"ply\nformat text 1.0\n", FSI_ERROR_FORMAT, 2, "'text' is no PLY format"},
        {"ply\nformat\n", FSI_ERROR_FORMAT, 2, "ends too early"},
        {"ply\nelement vertex 0\nproperty int x\nproperty int y\nend_header\n", FSI_ERROR_FORMAT, 5, "has no format"},
        {HEAD "property int x\n", FSI_ERROR_FORMAT, 3, "before the first element"},
        {HEAD "element vertex\n", FSI_ERROR_FORMAT, 3, "ends too early"},
        {HEAD "element vertex -1\n", FSI_ERROR_FORMAT, 3, "count of an element"},
        {HEAD "element vertex 1.5\n", FSI_ERROR_FORMAT, 3, "count of an element"},
        {HEAD "element vertex 1e99\n", FSI_ERROR_FORMAT, 3, "count of an element"},
        {HEAD "element vertex many\n", FSI_ERROR_FORMAT, 3, "'many' is not a number"},
        {HEAD "element vertex 1\nproperty real x\n", FSI_ERROR_FORMAT, 4, "'real' is no PLY type"},
        {HEAD "element vertex 1\nproperty list float int x\n", FSI_ERROR_FORMAT, 4, "integer type"},
        {HEAD "element vertex 1\nproperty list uchar\n", FSI_ERROR_FORMAT, 4, "ends too early"},
        {HEAD "element vertex 1\nproperty float\n", FSI_ERROR_FORMAT, 4, "ends too early"},
        {HEAD "element vertex 1\nend_header\n1\n", FSI_ERROR_FORMAT, 5, "no property"},
        {HEAD "element vertex 1\nproperty float x\nend_header\n1\n", FSI_ERROR_FORMAT, 6, "no x or no y"},
        {HEAD "element vertex 1\nproperty list int int x\nproperty float y\nend_header\n0 1\n", FSI_ERROR_FORMAT, 7,
         "no x or no y"},
        {HEAD "element face 1\n" XY "end_header\n0 1\n", FSI_ERROR_FORMAT, 7, "no element vertex"},
        {HEAD "element vertex 1\n" XY "element vertex 1\n" XY "end_header\n0 1 2 3\n", FSI_ERROR_FORMAT, 10, "twice"},
        {HEAD "element vertex 1\n" XY "end_header junk\n0 1\n", FSI_ERROR_FORMAT, 6, "does not end its line"},
        {HEAD "element vertex 2\n" XY "end_header\n0 1\n2\n", FSI_ERROR_FORMAT, 7,
         "announces at least 7 bytes, but 6 follow"},
        {HEAD "element vertex 2\n" XY "end_header\n0 1\n2.5\n ", FSI_ERROR_FORMAT, 9, "ends before the last number"},
        {HEAD "element vertex 1\n" XY "end_header\n0 one\n", FSI_ERROR_FORMAT, 7, "'one' is not a number"},
        {HEAD "element vertex 1\n" XY "end_header\n0 nan\n", FSI_ERROR_FORMAT, 7, "'nan' is not a number"},
        {HEAD "element vertex 1\n" XY "end_header\n0\n1e39\n", FSI_ERROR_FORMAT, 8, "'1e39' does not fit"},
        {HEAD "element vertex 1\n" XY "property uchar red\nend_header\n0 1 256\n", FSI_ERROR_FORMAT, 8,
         "'256' does not fit"},
        {HEAD "element vertex 1\n" XY "property int id\nend_header\n0 1 0.5\n", FSI_ERROR_FORMAT, 8,
         "'0.5' does not fit"},
        {HEAD "element vertex 1\n" XY
              "element face 1\nproperty list char int vertex_index\nend_header\n0 1\n-3 0 0 0\n",
         FSI_ERROR_FORMAT, 10, "negative length"},
        {HEAD "element vertex 1\n" XY "element face 1\nproperty list char int vertex_index\nend_header\n0 1\n2 0 0\n",
         FSI_ERROR_FORMAT, 10, "fewer than 3"},
        {HEAD "element vertex 1\n" XY
              "element face 1\nproperty list int int vertex_index\nend_header\n0 1\n9999999 0 0\n",
         FSI_ERROR_LIMIT, 10, "too many corners"},
        {HEAD "element vertex 1\n" XY
              "element face 1\nproperty list char int vertex_index\nend_header\n0 1\n3 0 0 -1\n",
         FSI_ERROR_FORMAT, 10, "corner is negative"},
        {HEAD "element vertex 1\n" XY
              "element face 2\nproperty list char int vertex_index\nend_header\n0 1\n3 0 0 0\n3 0 1 0",
         FSI_ERROR_FORMAT, 11, "corner 2 is vertex 2 of 1"},
        {HEAD "element vertex 1\n" XY
              "element edge 1\nproperty int vertex1\nproperty int vertex2\nend_header\n0 1\n0 -1\n",
         FSI_ERROR_FORMAT, 11, "corner is negative"}};
    check_refused(files, sizeof files / sizeof *files);
}

static void test_ply_limits(void)
{
    bytes b;
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    char line[128];
    int i, what;
    for (what = 0; what < 3; what++) {
        b = make_bytes();
        put_text(&b, HEAD "element vertex 0\n" XY);
        for (i = 0; i < (what == 0 ? 127 : 16); i++) {
            snprintf(line, sizeof line, what == 0 ? "property int p%d\n" : "element e%d 0\n", i);
            if (what < 2) put_text(&b, line);
        }
        if (what == 2) {
            memset(line, 'a', 64);
            strcpy(line + 64, "\n");
            put_text(&b, "property int ");
            put_text(&b, line);
        }
        put_text(&b, "end_header\n");
        CHECK(fsi_io_read_ply(&m, &c, b.data, b.size) == (what < 2 ? FSI_ERROR_LIMIT : FSI_ERROR_FORMAT));
        free(b.data);
    }
    CHECK(read_text(&m, &c, HEAD "element vertex 0\n" XY "end_header\n") == FSI_OK
          && m.vertex_count == 0); /* no particle yet */
    fsi_io_destroy_mesh(&m);
}

static void test_binary_ply_refuses_nan_by_offset(void)
{
    bytes b = make_bytes();
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    put_text(&b, "ply\nformat binary_big_endian 1.0\nelement vertex 1\n" XY "end_header\n");
    put_value(&b, float_bits(1.0f), 4, 1);
    put_value(&b, 0x7FC00000, 4, 1);
    CHECK(fsi_io_read_ply(&m, &c, b.data, b.size) == FSI_ERROR_NAN && c.error.element == (long long)b.size - 4);
    CHECK(strncmp(c.error.message, "byte ", 5) == 0);
    free(b.data);
}

/* ---- tetrahedra ----------------------------------------------------------------------------------------------- */

static const int cube_tets[5][4] = { { 0, 1, 2, 4 }, { 3, 2, 1, 7 }, { 5, 1, 4, 7 }, { 6, 4, 2, 7 }, { 1, 2, 4, 7 } };

static fsi_vec3 cube_vertex(int i)
{
    return fsi_v3((fsi_real)(i % 2 / 3.0), (fsi_real)(i / 2 % 2 / 7.0), (fsi_real)(i / 4 * 1.25e-3));
}

static int cube_region(int tet) { return tet < 3 ? 10 : -11; }

static void put_line(bytes *b, const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    put_text(b, line);
}

static void put_cube_vertex(bytes *b, int i)
{
    fsi_vec3 x = cube_vertex(i);
    put_line(b, "%.17g %.17g\t%.17g", (double)x.x, (double)x.y, (double)x.z);
}

/* The corners of a tetrahedron by the ids of their vertices, first + step * vertex; the third one has its last two
   exchanged, so that its volume is negative. */
static void put_cube_tet(bytes *b, int tet, double first, double step)
{
    int k;
    for (k = 0; k < 4; k++)
        put_line(b, " %.0f", first + step * cube_tets[tet][tet == 2 && k > 1 ? 5 - k : k]);
}

/* .node, a byte 0, .ele */
static void put_tetgen_cube(bytes *b, double first, double step)
{
    int i;
    put_text(b, "# a cube\n\n  8 3 1 1 # nodes\n");
    for (i = 0; i < 8; i++) {
        put_line(b, " %.0f\t", first + step * i);
        put_cube_vertex(b, i);
        put_line(b, " nan %d # comment\n", i);
    }
    put_text(b, "# generated by hand");
    collect(b, "", 1);
    put_text(b, "5 4 1\n");
    for (i = 0; i < 5; i++) {
        put_line(b, "%d", i + 1);
        put_cube_tet(b, i, first, step);
        put_line(b, " %d%s\n", cube_region(i), i % 2 ? "" : " \n\n# a comment");
    }
}

static void put_gmsh22_cube(bytes *b, double first, double step)
{
    int i;
    put_text(b, "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Comments\n$Nodes\n$EndComments\n$Nodes\n8\n");
    for (i = 0; i < 8; i++) {
        put_line(b, "%.0f ", first + step * i);
        put_cube_vertex(b, i);
        put_text(b, "\n");
    }
    put_text(b, "$EndNodes\n$Elements\n8\n");
    put_line(b, "1 15 2 1 1 %.0f\n2 1 0 %.0f %.0f\n", first, first, first + step);
    put_line(b, "3 2 3 7 7 0 %.0f %.0f %.0f\n", first, first + 2 * step, first + step);
    for (i = 0; i < 5; i++) {
        put_line(b, "%d 4 2 %d 99", i + 4, cube_region(i));
        put_cube_tet(b, i, first, step);
        put_text(b, "\n");
    }
    put_text(b, "$EndElements\n$NodeData\n1\n$EndNodeData\n");
}

static void put_gmsh41_cube(bytes *b, double first, double step)
{
    int i, k;
    put_text(b, "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Entities\n0 0 0 2\n$EndEntities\n$Nodes\n3 8 1 8\n");
    for (k = 0; k < 2; k++) { /* on a surface, inside */
        put_line(b, "%d 1 %d 4\n", 2 + k, 1 - k);
        for (i = 4 * k; i < 4 * k + 4; i++) put_line(b, "%.0f\n", first + step * i);
        for (i = 4 * k; i < 4 * k + 4; i++) { put_cube_vertex(b, i); put_text(b, k ? "\n" : " 0.5 0.25\n"); }
    }
    put_text(b, "0 7 0 0\n$EndNodes\n$Elements\n4 8 1 8\n1 3 1 2\n");
    for (i = 0; i < 2; i++) put_line(b, "%d %.0f %.0f\n", i + 1, first, first + step * (i + 1));
    put_line(b, "2 1 2 1\n3 %.0f %.0f %.0f\n", first, first + 2 * step, first + step);
    for (i = 0; i < 5; i++) {
        if (i == 0 || i == 3) put_line(b, "3 %d 4 %d\n", cube_region(i), i ? 2 : 3);
        put_line(b, "%d", i + 4);
        put_cube_tet(b, i, first, step);
        put_text(b, "\n");
    }
    put_text(b, "$EndElements");
}

/* 4 Gmsh 2.2, 5 Gmsh 4.1, 6 TetGen */
static bytes make_cube(int file, double first, double step)
{
    bytes b = make_bytes();
    if (file == 4) put_gmsh22_cube(&b, first, step);
    if (file == 5) put_gmsh41_cube(&b, first, step);
    if (file == 6) put_tetgen_cube(&b, first, step);
    return b;
}

/* A pair of files lies in memory with a byte 0 between them. */
static fsi_status read_pair(fsi_io_mesh *m, fsi_context *c, const void *data, size_t size)
{
    const char *begin = (const char *)data, *zero = (const char *)memchr(data, 0, size);
    size_t node_size = zero ? (size_t)(zero - begin) : size, skip = zero ? node_size + 1 : size;
    return fsi_io_read_tetgen(m, c, begin, node_size, begin + skip, size - skip);
}

static fsi_status read_any(fsi_io_mesh *m, fsi_context *c, int file, const void *data, size_t size)
{
    if (file == 6) return read_pair(m, c, data, size);
    if (file > 3) return fsi_io_read_gmsh(m, c, data, size);
    return file < 3 ? fsi_io_read_ply(m, c, data, size) : fsi_io_read_obj(m, c, data, size);
}

static void check_cube(const fsi_io_mesh *m, int triangles)
{
    static const int triangle[3] = { 0, 2, 1 };
    int i;
    CHECK(m->vertex_count == 8 && m->tet_count == 5 && m->flipped_count == 1 && m->segment_count == 0);
    CHECK(m->triangle_count == triangles && m->editable == m->vertices && m->tet_region != NULL);
    if (m->vertex_count != 8 || m->tet_count != 5 || !m->tet_region) return;
    if (triangles > 0) CHECK(memcmp(m->triangles, triangle, sizeof triangle) == 0);
    CHECK(memcmp(m->tets, cube_tets, sizeof cube_tets) == 0);
    for (i = 0; i < 5; i++) CHECK(m->tet_region[i] == cube_region(i));
    for (i = 0; i < 8; i++) {
        fsi_vec3 x = cube_vertex(i);
        CHECK(m->vertices[i].x == x.x && m->vertices[i].y == x.y && m->vertices[i].z == x.z);
    }
}

/* Line endings LF, CR LF and CR. */
static bytes with_ends(const bytes *from, int ends)
{
    bytes b = make_bytes();
    size_t i;
    for (i = 0; i < from->size; i++) {
        if (from->data[i] == '\n' && ends > 0) put_text(&b, ends == 1 ? "\r\n" : "\r");
        else collect(&b, from->data + i, 1);
    }
    return b;
}

static void test_a_cube_of_tets_is_the_same_from_every_format(void)
{
    static const double ids[5][2] = { { 0, 1 }, { 1, 1 }, { 5, 1e9 }, { 9007199254740991.0, -3 }, { -20, 4 } };
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    int file, ends, k;
    for (file = 4; file < 7; file++)
        for (ends = 0; ends < 3; ends++)
            for (k = 0; k < 5; k++) {
                bytes lf = make_cube(file, ids[k][0], ids[k][1]), b = with_ends(&lf, ends);
                if (CHECK(read_any(&m, &c, file, b.data, b.size) == FSI_OK)) check_cube(&m, file < 6);
                else printf("file %d, ids %d: %s\n", file, k, c.error.message);
                fsi_io_destroy_mesh(&m);
                CHECK(c.bytes == 0 && m.tet_count == 0 && !m.tets);
                free(b.data);
                free(lf.data);
            }
}

static void save_file(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!CHECK(f != NULL)) return;
    fwrite(data, 1, size, f);
    fclose(f);
}

/* Writes the two files of a pair; returns the path without an ending. */
static const char *save_pair(const bytes *b)
{
    static char stem[64];
    char path[80];
    size_t n = (size_t)((const unsigned char *)memchr(b->data, 0, b->size) - b->data);
    const char *scratch = scratch_file("node");
    snprintf(stem, sizeof stem, "%s", scratch);
    stem[strlen(stem) - 5] = 0;
    save_file(scratch, b->data, n);
    snprintf(path, sizeof path, "%s.ele", stem);
    save_file(path, b->data + n + 1, b->size - n - 1);
    return stem;
}

static void test_files_of_tets_are_told_apart(void)
{
    fsi_context c = fsi_default_context();
    bytes gmsh = make_cube(5, 1, 1), pair = make_cube(6, 0, 1);
    const char *msh = scratch_file("msh"), *stem;
    char node[80], ele[80];
    fsi_io_mesh m;
    save_file(msh, gmsh.data, gmsh.size);
    stem = save_pair(&pair);
    snprintf(node, sizeof node, "%s.node", stem);
    snprintf(ele, sizeof ele, "%s.ele", stem);
    if (CHECK(fsi_io_read_mesh(&m, &c, msh) == FSI_OK)) check_cube(&m, 1);
    fsi_io_destroy_mesh(&m);
    if (CHECK(fsi_io_read_mesh(&m, &c, node) == FSI_OK)) check_cube(&m, 0);
    fsi_io_destroy_mesh(&m);
    if (CHECK(fsi_io_read_mesh(&m, &c, ele) == FSI_OK)) check_cube(&m, 0);
    fsi_io_destroy_mesh(&m);
    remove(ele);
    CHECK(fsi_io_read_mesh(&m, &c, node) == FSI_ERROR_IO && strstr(c.error.message, ele) && c.bytes == 0);
    remove(node);
    CHECK(fsi_io_read_mesh(&m, &c, ele) == FSI_ERROR_IO && strstr(c.error.message, node) && c.bytes == 0);
    remove(msh);
    free(gmsh.data);
    free(pair.data);
}

#define GMSH22 "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n"
#define GMSH41 "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n"
#define TEN "0 0 0\n1 0 0\n0 1 0\n0 0 1\n.5 0 0\n.5 .5 0\n0 .5 0\n0 0 .5\n0 .5 .5\n.5 0 .5\n"
#define TEN22 "$Nodes\n10\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n5 .5 0 0\n6 .5 .5 0\n7 0 .5 0\n8 0 0 .5\n9 0 .5 .5\n" \
    "10 .5 0 .5\n$EndNodes\n"

static void test_elements_of_second_order_give_their_corners(void)
{
    static const char gmsh22[] = GMSH22 TEN22 "$Elements\n2\n1 9 0 1 2 3 5 6 7\n2 11 0 1 2 3 4 5 6 7 8 9 10\n"
        "$EndElements\n";
    static const char gmsh41[] = GMSH41 "$Nodes\n1 10 1 10\n3 1 0 10\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n" TEN "$EndNodes\n"
        "$Elements\n2 2 1 2\n2 1 9 1\n1 1 2 3 5 6 7\n3 1 11 1\n2 1 2 3 4 5 6 7 8 9 10\n$EndElements\n";
    static const char pair[] = "10 3\n0 0 0 0\n1 1 0 0\n2 0 1 0\n3 0 0 1\n4 .5 0 0\n5 .5 .5 0\n6 0 .5 0\n7 0 0 .5\n"
        "8 0 .5 .5\n9 .5 0 .5\n\0" "1 10\n0 0 1 2 3 4 5 6 7 8 9\n";
    static const int first[4] = { 0, 1, 2, 3 };
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    int file;
    for (file = 4; file < 7; file++) {
        const char *text = file == 4 ? gmsh22 : file == 5 ? gmsh41 : pair;
        const size_t size = file == 4 ? sizeof gmsh22 : file == 5 ? sizeof gmsh41 : sizeof pair;
        if (!CHECK(read_any(&m, &c, file, text, size - 1) == FSI_OK)) { printf("%s\n", c.error.message); continue; }
        CHECK(m.vertex_count == 10 && m.tet_count == 1 && m.triangle_count == (file < 6)); /* unused nodes stay */
        CHECK(memcmp(m.tets, first, sizeof first) == 0 && m.flipped_count == 0);
        if (file < 6) CHECK(memcmp(m.triangles, first, 3 * sizeof *first) == 0);
        CHECK((m.tet_region != NULL) == (file == 5)); /* the others give none */
        fsi_io_destroy_mesh(&m);
    }
}

static void test_files_of_triangle_are_triangles(void)
{
    static const char linear[] = "4 2 0 0\n1 0 0\n2 1 0\n3 1 1\n4 0 1\n\0" "2 3 1\n1 1 2 3 0.5\n2 1 3 4 7\n";
    static const char second[] = "6 2 0 1\n1 0 0 0\n2 1 0 1\n3 1 1 1\n4 .5 0 1\n5 1 .5 1\n6 .5 .5 1\n\0"
        "1 6 0\n1 1 2 3 5 6 4\n";
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    if (!CHECK(read_pair(&m, &c, linear, sizeof linear - 1) == FSI_OK)) { printf("%s\n", c.error.message); return; }
    CHECK(m.vertex_count == 4 && m.triangle_count == 2 && m.tet_count == 0 && !m.tet_region);
    CHECK(m.triangles[3] == 0 && m.triangles[5] == 3 && m.vertices[2].y == 1 && m.vertices[2].z == 0);
    fsi_io_destroy_mesh(&m);
    if (!CHECK(read_pair(&m, &c, second, sizeof second - 1) == FSI_OK)) { printf("%s\n", c.error.message); return; }
    CHECK(m.vertex_count == 6 && m.triangle_count == 1 && m.triangles[2] == 2);
    fsi_io_destroy_mesh(&m);
}

static void test_gmsh_elements_of_other_types_are_read_over(void)
{
    static const int nodes[20] = { 0, 2, 3, 4, 4, 8, 6, 5, 3, 6, 9, 10, 27, 18, 14, 1, 8, 20, 15, 13 };
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    int type, k, wrong;
    for (wrong = -1; wrong < 2; wrong++)
        for (type = 1; type < 20; type++) {
            bytes b = make_bytes();
            put_line(&b, GMSH22 TEN22 "$Elements\n1\n1 %d 1 5", type);
            for (k = 0; k < nodes[type] + wrong; k++) put_line(&b, " %d", k % 10 + 1);
            put_text(&b, "\n$EndElements\n");
            CHECK(fsi_io_read_gmsh(&m, &c, b.data, b.size) == (wrong ? FSI_ERROR_FORMAT : FSI_OK));
            if (wrong) CHECK(c.error.element == 19);
            else CHECK(m.triangle_count == (type == 2 || type == 9) && m.tet_count == (type == 4 || type == 11));
            fsi_io_destroy_mesh(&m);
            free(b.data);
        }
}

static void test_tets_without_volume_stay(void)
{
    static const char pair[] = "4 3\n0 0 0 0\n1 1 0 0\n2 0 1 0\n3 1 1 0\n\0" "2 4\n0 0 1 2 3\n1 0 0 0 0\n";
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    if (!CHECK(read_pair(&m, &c, pair, sizeof pair - 1) == FSI_OK)) return;
    CHECK(m.tet_count == 2 && m.flipped_count == 0 && m.tets[3] == 3 && m.tets[4] == 0 && m.tets[7] == 0);
    fsi_io_destroy_mesh(&m);
}

#define ONE22 GMSH22 "$Nodes\n1\n1 0 0 0\n$EndNodes\n"
#define ONE41 GMSH41 "$Nodes\n1 1 1 1\n0 1 0 1\n1\n0 0 0\n$EndNodes\n"

static void test_gmsh_errors_name_the_line(void)
{
    static const bad_file files[] = {
        { "$Mesh", FSI_ERROR_FORMAT, 1, "does not start with $MeshFormat" },
        { "$MeshFormat", FSI_ERROR_FORMAT, 1, "ends before the last row" },
        { "$MeshFormat 2.2\n", FSI_ERROR_FORMAT, 1, "'2.2' is more than the row should have" },
        { "$MeshFormat\n3 0 8\n", FSI_ERROR_FORMAT, 2, "'3' is no version that is read: save it as 2.2 or 4.1" },
        { "$MeshFormat\n4 0 8\n", FSI_ERROR_FORMAT, 2, "'4' is no version" },
        { "$MeshFormat\n4.1 1 8\n", FSI_ERROR_FORMAT, 2, "a binary Gmsh file: save it as ASCII" },
        { "$MeshFormat\n4.1 2 8\n", FSI_ERROR_FORMAT, 2, "'2' is no file type" },
        { "$MeshFormat\n4.1 0\n", FSI_ERROR_FORMAT, 2, "the row has too few numbers" },
        { "$MeshFormat\n4.1 0 8\n", FSI_ERROR_FORMAT, 3, "ends inside a section" },
        { "$MeshFormat\n4.1 0 8\n$Nodes\n", FSI_ERROR_FORMAT, 3, "'$Nodes' stands where $EndMeshFormat should" },
        { GMSH22, FSI_ERROR_FORMAT, 4, "without a section $Nodes" },
        { ONE22, FSI_ERROR_FORMAT, 8, "without a section $Elements" },
        { ONE22 "$Elements\n", FSI_ERROR_FORMAT, 9, "ends before the last row" },
        { ONE22 "$Elements\n0\n", FSI_ERROR_FORMAT, 10, "ends inside a section" },
        { ONE22 "$Nodes\n0\n$EndNodes\n", FSI_ERROR_FORMAT, 8, "$Nodes appears twice" },
        { ONE22 "$Elements\n0\n$EndElements\n$Elements\n", FSI_ERROR_FORMAT, 11, "$Elements appears twice" },
        { GMSH22 "$Elements\n0\n$EndElements\n", FSI_ERROR_FORMAT, 4, "$Elements stands before $Nodes" },
        { GMSH22 "$Foo\n$EndFool\n\n", FSI_ERROR_FORMAT, 4, "'$Foo' is a section without an end" },
        { GMSH22 "$Nodes\n1.5\n", FSI_ERROR_FORMAT, 5, "'1.5' is no count" },
        { GMSH22 "$Nodes\n-1\n", FSI_ERROR_FORMAT, 5, "'-1' is no count" },
        { GMSH22 "$Nodes\n3\n1 0 0 0\n", FSI_ERROR_FORMAT, 6, "announces at least 23 bytes, but 8 follow" },
        { GMSH22 "$Nodes\n2\n1 0 0 0\n$EndNodes\n", FSI_ERROR_FORMAT, 7, "'$EndNodes' stands where a row is" },
        { GMSH22 "$Nodes\n1\n1 0 0 0\n2 0 0 0\n$EndNodes\n", FSI_ERROR_FORMAT, 7, "'2' stands where $EndNodes" },
        { GMSH22 "$Nodes\n1\n1 0 0\n$EndNodes\n", FSI_ERROR_FORMAT, 6, "ends too early" },
        { GMSH22 "$Nodes\n1\n1 0 0 0 0\n$EndNodes\n", FSI_ERROR_FORMAT, 6, "'0' is more than the row" },
        { GMSH22 "$Nodes\n1\n1.5 0 0 0\n", FSI_ERROR_FORMAT, 6, "'1.5' is no id" },
        { GMSH22 "$Nodes\n1\n9007199254740993 0 0 0\n", FSI_ERROR_FORMAT, 6, "is no id: a whole number below 2^53" },
        { GMSH22 "$Nodes\n1\n1 0 nan 0\n", FSI_ERROR_FORMAT, 6, "'nan' is not a number" },
        { GMSH22 "$Nodes\n1\n1 0 1e999 0\n", FSI_ERROR_NAN, 6, "'1e999' is too large" },
        { GMSH22 "$Nodes\n3\n3 0 0 0\n2 0 0 0\n3 0 0 0\n$EndNodes\n", FSI_ERROR_FORMAT, 8,
          "line 8: the node 3 is in line 6 already" },
        { ONE22 "$Elements\n2\n1 15 0 1\n$EndElements\n", FSI_ERROR_FORMAT, 11, "stands where a row is announced" },
        { ONE22 "$Elements\n0\n1 15 0 1\n$EndElements\n", FSI_ERROR_FORMAT, 10, "'1' stands where $EndElements" },
        { ONE22 "$Elements\n1\n1 20 0 1 1 1\n$EndElements\n", FSI_ERROR_FORMAT, 10,
          "'20' is no type of element that is known" },
        { ONE22 "$Elements\n1\n1 0 0 1 1 1\n$EndElements\n", FSI_ERROR_FORMAT, 10, "'0' is no type of element" },
        { ONE22 "$Elements\n1\n1 2 0 1 1\n$EndElements\n", FSI_ERROR_FORMAT, 10, "ends too early" },
        { ONE22 "$Elements\n1\n1 2 0 1 1 1 1\n$EndElements\n", FSI_ERROR_FORMAT, 10, "'1' is more than the row" },
        { ONE22 "$Elements\n1\n1 2 0 1 1 2\n$EndElements\n", FSI_ERROR_FORMAT, 10, "'2' names no node" },
        { ONE22 "$Elements\n1\n1 9 0 1 1 1 1 1 0\n$EndElements\n", FSI_ERROR_FORMAT, 10, "'0' names no node" },
        { ONE22 "$Elements\n1\n1 4 1 2147483648 1 1 1 1\n", FSI_ERROR_FORMAT, 10, "is no region" },
        { ONE22 "$Elements\n1\n1 4 4000000000 1 1 1 1\n", FSI_ERROR_FORMAT, 10, "the row has too few numbers" },
        { GMSH41 "$Nodes\n1 1\n", FSI_ERROR_FORMAT, 5, "the row has too few numbers" },
        { GMSH41 "$Nodes\n1 1 1 1\n0 1 0 2\n1\n0 0 0\n", FSI_ERROR_FORMAT, 6, "'2' rows are more than the section" },
        { GMSH41 "$Nodes\n1 2 1 1\n0 1 0 1\n1\n0 0 0\n$EndNodes\n", FSI_ERROR_FORMAT, 9, "have fewer rows than" },
        { GMSH41 "$Nodes\n1 1 1 1\n4 1 0 1\n1\n0 0 0\n", FSI_ERROR_FORMAT, 6, "'4' is no dimension: 0 to 3" },
        { GMSH41 "$Nodes\n1 1 1 1\n0 1 0 1\n1 0 0 0\n$EndNodes\n", FSI_ERROR_FORMAT, 7, "'0' is more than the row" },
        { GMSH41 "$Nodes\n1 2 1 1\n0 1 0 2\n1\n1\n0 0 0\n0 0 0\n$EndNodes\n", FSI_ERROR_FORMAT, 8,
          "in line 7 already" },
        { ONE41 "$Elements\n2 1 1 1\n0 1 15 1\n1 1\n$EndElements\n", FSI_ERROR_FORMAT, 14, "stands where a row is" },
        { ONE41 "$Elements\n1 1 1 1\n3 1 99 1\n1 1\n$EndElements\n", FSI_ERROR_FORMAT, 12, "'99' is no type of" },
        { ONE41 "$Elements\n1 2 1 2\n0 1 15 1\n1 1\n$EndElements\n", FSI_ERROR_FORMAT, 14, "have fewer rows" },
        { ONE41 "$Elements\n1 1 1 1\n3 1 4 1\n1 1 1 1 2\n$EndElements\n", FSI_ERROR_FORMAT, 13, "'2' names no node" }
    };
    static const bad_file too_large = { GMSH22 "$Nodes\n1\n1 0 1e300 0\n", FSI_ERROR_NAN, 6, "too large" };
    check_refused(files, sizeof files / sizeof *files);
    if (sizeof(fsi_real) == 4) check_refused(&too_large, 1);
}

#define FOUR "4 3 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n"

static void test_tetgen_errors_name_the_file_and_the_line(void)
{
    static const struct { const char *node, *ele; long long element; const char *says; } files[] = {
        { "", "", 1, ".node line 1: the file ends before the last row" },
        { "4\n", "", 1, ".node line 1: ends too early" },
        { "4 4\n", "", 1, ".node line 1: '4' is no dimension: 2 or 3" },
        { "4 3 0 0 0\n", "", 1, ".node line 1: '0' is more than the row should have" },
        { "4.5 3\n", "", 1, ".node line 1: '4.5' is no count" },
        { "4 3 zwei\n", "", 1, "'zwei' is not a number" },
        { "4 3\n1 0 0 0\n", "", 2, "announces at least 31 bytes, but 8 follow" },
        { "1 3 4000000000\n1 0 0 0\n", "", 2, "announces at least" },
        { "2 3\n1 0 0 0.0000000000000\n", "", 3, ".node line 3: the file ends before the last row" },
        { "1 3\n1 0 0\n         ", "", 2, ".node line 2: ends too early" },
        { "1 3 1\n1 0 0 0       \n", "", 2, ".node line 2: the row has too few numbers" },
        { "1 3\n1 0 0 0 0\n", "", 2, "'0' is more than the row" },
        { "1 3\n1 0 0 0\n# end\n2 0 0 0\n", "", 4, "'2' stands after the last row that the file announces" },
        { "1 3\nx 0 0 0\n", "", 2, "'x' is not a number" },
        { "1 3\n1 0 0 inf\n", "", 2, "'inf' is not a number" },
        { "1 3\n1e300 0 0 0\n", "", 2, "'1e300' is no id" },
        { "2 3\n1 0 0 0\n1 1 0 0\n", "", 3, ".node line 3: the node 1 is in line 2 already" },
        { FOUR, "", 1, ".ele line 1: the file ends before the last row" },
        { FOUR, "1\n", 1, ".ele line 1: ends too early" },
        { FOUR, "1 5\n", 1, ".ele line 1: '5' nodes an element: must be 4 or 10" },
        { FOUR, "1 3\n", 1, ".ele line 1: '3' nodes an element: must be 4 or 10" },
        { "1 2\n1 0 0\n", "1 4\n", 1, ".ele line 1: '4' nodes an element: must be 3 or 6" },
        { FOUR, "2 4\n1 1 2 3 4\n", 2, "announces at least 19 bytes, but 10 follow" },
        { FOUR, "1 4\n1 1 2 3  \n", 2, ".ele line 2: ends too early" },
        { FOUR, "1 4\n1 1 2 3 5\n", 2, ".ele line 2: '5' names no node" },
        { FOUR, "1 4\n1 0 1 2 3\n", 2, ".ele line 2: '0' names no node" },
        { FOUR, "1 4\n1 1 2 3 -4\n", 2, "'-4' names no node" },
        { FOUR, "1 4\n1 1 2 3 3.5\n", 2, "'3.5' is no id" },
        { FOUR, "1 4\n1 1 2 3 4 5\n", 2, "'5' is more than the row" },
        { FOUR, "1 4 1\n1 1 2 3 4 0.5\n", 2, "'0.5' is no region" },
        { FOUR, "1 4 2\n1 1 2 3 4 5  \n", 2, "the row has too few numbers" },
        { FOUR, "1 4\n1 1 2 3 4\n2 1 2 3 4\n", 3, ".ele line 3: '2' stands after the last row" }
    };
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    size_t i;
    for (i = 0; i < sizeof files / sizeof *files; i++) {
        const char *node = files[i].node, *ele = files[i].ele;
        fsi_status status = fsi_io_read_tetgen(&m, &c, node, strlen(node), ele, strlen(ele));
        int ok = CHECK(status == FSI_ERROR_FORMAT) && CHECK(c.error.element == files[i].element)
            && CHECK(strstr(c.error.message, files[i].says) != NULL);
        if (!ok) printf("case %d: element %d, '%s'\n", (int)i, (int)c.error.element, c.error.message);
        CHECK(m.vertex_count == 0 && !m.impl && c.bytes == 0);
    }
    CHECK(fsi_io_read_tetgen(&m, &c, "1 3\n1 0 1e999 0\n", 16, "", 0) == FSI_ERROR_NAN && c.error.element == 2);
}

/* ---- damage --------------------------------------------------------------------------------------------------- */

/* Two triangles that share an edge, on one side of which the chart ends; or a pair for each vertex. */
static fsi_io_mesh textured(int per_vertex)
{
    static const fsi_vec3 x[4] = { { 0, 0, 0 }, { 1, 0, 0 }, { 1, 1, 0 }, { 0, 1, 0 } };
    static const int triangles[6] = { 0, 1, 2, 0, 2, 3 }, corners[6] = { 0, 1, 2, 3, 2, 4 }, ends[2] = { 0, 3 };
    static const fsi_real uv[10] = { 0, (fsi_real)0.1, 1, (fsi_real)(1 / 3.0), 2, (fsi_real)1e-7, 3, 0, 4, -5 };
    fsi_io_mesh m = fsi_io_default_mesh();
    m.vertices = x;
    m.vertex_count = 4;
    m.triangles = triangles;
    m.triangle_count = 2;
    m.segments = ends;
    m.segment_count = 1;
    m.uv = uv;
    m.uv_count = per_vertex ? 4 : 5;
    if (!per_vertex) m.triangle_uv = corners;
    return m;
}

static bytes make_obj_sample(fsi_context *c)
{
    static sample s;
    bytes b = make_bytes();
    make_sample(&s);
    CHECK(fsi_io_write_obj(to_bytes(c, &b), &s.mesh, 0) == FSI_OK);
    put_text(&b, "v 1 2 3 0.1 0.2 0.3\nvt 0.5 0.25\nf 1/1 2/-1 3\nf 1 2 3 4 -5 -1 # end\nl 1 2 \\\n 3");
    return b;
}

/* 0 to 2 PLY, 3 OBJ, 4 to 6 tetrahedra */
static bytes make_any(fsi_context *c, int file)
{
    if (file > 3) return make_cube(file, 1, 1);
    return file < 3 ? make_ply(file) : make_obj_sample(c);
}

static void test_huge_counts_are_refused_before_memory_is_taken(void)
{
    static const char *const files[] = {
        HEAD "element vertex 4294967295\n" XY "end_header\n0 0\n",
        "ply\nformat binary_little_endian 1.0\nelement vertex 4000000000\n" XY "end_header\n0000000000000",
        "ply\nformat binary_little_endian 1.0\nelement vertex 1\n" XY
        "element face 4000000000\nproperty list uchar int vertex_indices\nend_header\n000000000",
        "ply\nformat binary_big_endian 1.0\nelement junk 1\nproperty list uint double a\nelement vertex 1\n" XY
        "end_header\n\xFF\xFF\xFF\xFF"
        "0000000000000",
        HEAD "element junk 1\nproperty list uint double a\nelement vertex 1\n" XY "end_header\n4294967295 0 0",
        GMSH22 "$Nodes\n4294967295\n1 0 0 0\n$EndNodes\n", GMSH41 "$Nodes\n1 4294967295 1 1\n0 1 0 1\n1\n0 0 0\n",
        ONE22 "$Elements\n4294967295\n1 15 0 1\n", ONE41 "$Elements\n4294967295 1 1 1\n0 1 15 1\n1 1\n"};
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    size_t i;
    for (i = 0; i < sizeof files / sizeof *files; i++) {
        CHECK(read_text(&m, &c, files[i]) == FSI_ERROR_FORMAT);
        CHECK(c.peak_bytes < 65536);
    }
}

static void test_files_cut_at_any_byte(void)
{
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    size_t size;
    int file;
    for (file = 0; file < 7; file++) {
        bytes b = make_any(&c, file);
        const size_t after = file == 4 ? strlen("\n$NodeData\n1\n$EndNodeData\n") : 0;
        for (size = 0; size < b.size; size++) {
            unsigned char *copy = (unsigned char *)malloc(size + 1); /* so that a sanitizer sees every byte read
                                                                        beyond */
            fsi_status status;
            memcpy(copy, b.data, size);
            copy = (unsigned char *)realloc(copy, size ? size : 1);
            status = read_any(&m, &c, file, copy, size);
            if (file == 0)
                CHECK(status != FSI_OK || size + 10 > b.size); /* only digits of the very last number may be missing */
            if (file == 1 || file == 2) CHECK(status == FSI_ERROR_FORMAT);
            if (file >= 4 && status == FSI_OK) CHECK(m.vertex_count == 8 && m.tet_count == 5);
            if (file == 4) /* accepted: after $EndElements, with its line ending, or but for the last of all */
                CHECK((status == FSI_OK)
                      == (size + after == b.size || size + after == b.size + 1 || size + 1 == b.size));
            if (file == 5) CHECK(status == FSI_ERROR_FORMAT);
            if (file == 6 && status == FSI_OK) CHECK(size + strlen(" \n\n# a comment\n") + 2 >= b.size);
            if (status == FSI_OK) CHECK(m.vertex_count <= N + 1 && m.triangle_count <= 25);
            fsi_io_destroy_mesh(&m);
            CHECK(c.bytes == 0);
            free(copy);
        }
        free(b.data);
    }
}

static void test_flipped_bytes_never_crash(void)
{
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    uint64_t r = 11;
    int file, trial, k, accepted = 0;
    for (file = 0; file < 7; file++) {
        bytes b = make_any(&c, file);
        unsigned char *copy = (unsigned char *)malloc(b.size);
        for (trial = 0; trial < (TEST_SLOWED > 1 ? 2500 : 25000); trial++) {
            memcpy(copy, b.data, b.size);
            for (k = 0; k < 1 + trial % 4; k++)
                copy[(size_t)(test_random(&r) * (double)b.size)] = (unsigned char)(test_random(&r) * 256);
            if (read_any(&m, &c, file, copy, b.size) == FSI_OK) {
                accepted++;
                for (k = 0; k < m.vertex_count; k++) CHECK(fsi_v3_is_finite(m.vertices[k]));
                for (k = 0; k < 3 * m.triangle_count; k++)
                    CHECK(m.triangles[k] >= 0 && m.triangles[k] < m.vertex_count);
                for (k = 0; k < 4 * m.tet_count; k++) CHECK(m.tets[k] >= 0 && m.tets[k] < m.vertex_count);
                fsi_io_destroy_mesh(&m);
            }
            CHECK(c.bytes == 0);
        }
        CHECK(c.peak_bytes < 200000);
        free(copy);
        free(b.data);
    }
    CHECK(accepted > (TEST_SLOWED > 1 ? 100 : 1000)); /* most flips hit names, comments or digits */
}

static void test_every_failed_allocation_is_survived(void)
{
    static const unsigned char pixels[300];
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    bytes b;
    fsi_status status = FSI_ERROR_MEMORY;
    const char *path = scratch_file("ply"), *stem;
    char pair[2][80];
    int what;
    long k;
    b = make_ply(1);
    save_file(path, b.data, b.size);
    free(b.data);
    b = make_cube(6, 1, 1);
    stem = save_pair(&b);
    snprintf(pair[0], sizeof pair[0], "%s.node", stem);
    snprintf(pair[1], sizeof pair[1], "%s.ele", stem);
    free(b.data);
    for (what = 0; what < 11; what++) {
        const fsi_io_mesh flat = textured(0);
        b = make_any(NULL, what < 7 ? what : 0);
        for (k = 1; k < 100; k++) {
            bytes out = make_bytes();
            test_fail_allocator(&c, k);
            m = fsi_io_default_mesh();
            if (what < 7) status = read_any(&m, &c, what, b.data, b.size);
            if (what == 7) status = fsi_io_read_mesh(&m, &c, path);
            if (what == 8) status = fsi_io_read_mesh(&m, &c, pair[0]);
            if (what == 9) status = fsi_io_write_png(to_bytes(&c, &out), pixels, 10, 10, 3, 0);
            if (what == 10) status = fsi_io_write_vtp(to_bytes(&c, &out), &flat, 0);
            free(out.data);
            if (status == FSI_OK) break;
            CHECK(status == FSI_ERROR_MEMORY && c.error.status == status && c.error.message[0]);
            CHECK(c.bytes == 0 && test_live_bytes() == 0 && !m.impl && out.size == 0);
        }
        CHECK(status == FSI_OK && k > 1);
        fsi_io_destroy_mesh(&m);
        CHECK(c.bytes == 0 && test_live_bytes() == 0);
        free(b.data);
    }
    remove(path);
    remove(pair[0]);
    remove(pair[1]);
}

static void test_readers_refuse_bad_arguments(void)
{
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    CHECK(fsi_io_read_obj(NULL, &c, "", 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_read_ply(NULL, &c, "", 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_read_obj(&m, &c, NULL, 5) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_read_ply(&m, &c, NULL, 5) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_read_gmsh(NULL, &c, "", 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_read_gmsh(&m, &c, NULL, 5) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_read_tetgen(NULL, &c, "", 0, "", 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_read_tetgen(&m, &c, NULL, 5, "", 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_read_tetgen(&m, &c, "", 0, NULL, 5) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "ele_data"));
    CHECK(c.bytes == 0);
    CHECK(fsi_io_read_ply(&m, NULL, "ply", 3) == FSI_ERROR_FORMAT); /* no context is fine */
    CHECK(fsi_io_read_mesh(NULL, &c, "x") == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_read_mesh(&m, &c, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_read_mesh(&m, &c, "no such folder/no such file") == FSI_ERROR_IO);
    CHECK(strstr(c.error.message, "no such file"));
    CHECK(fsi_io_read_mesh(&m, &c, ".") == FSI_ERROR_IO); /* a folder */
    fsi_io_destroy_mesh(NULL);
    fsi_io_destroy_mesh(&m);
    memset(&m, 0, sizeof m);
    fsi_io_destroy_mesh(&m);
}

/* ---- meshes out ----------------------------------------------------------------------------------------------- */

/* The first component of the attribute of that name; NaN when there is none. */
static double value(const fsi_io_mesh *m, const char *name, int vertex)
{
    const fsi_io_attribute *a = fsi_io_find_attribute(m, name);
    return a ? fsi_io_attribute_value(a, vertex, 0) : test_nan();
}

static void test_ply_round_trip_is_exact(void)
{
    static const char *const vector[3] = { "vx", "vy", "vz" }, *const color[4] = { "red", "green", "blue", "alpha" };
    static const char *const scalar[] = { "age", "level", "i16", "u16", "i32", "u32" };
    static sample s;
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    int flags, i;
    size_t k;
    make_sample(&s);
    for (flags = 0; flags < 4; flags++) {
        bytes b = make_bytes();
        CHECK(fsi_io_write_ply(to_bytes(&c, &b), &s.mesh, flags) == FSI_OK);
        if (!CHECK(fsi_io_read_ply(&m, &c, b.data, b.size) == FSI_OK)) { printf("%s\n", c.error.message); return; }
        if (!(flags & FSI_IO_SINGLE)) check_same_shape(&m, &s.mesh);
        for (i = 0; i < N; i++) {
            CHECK((float)m.vertices[i].x == (float)s.x[i].x && (float)m.vertices[i].z == (float)s.x[i].z);
            for (k = 0; k < 3; k++) CHECK(value(&m, vector[k], i) == (double)s.row[i].f[k]);
            for (k = 0; k < 4; k++) CHECK(value(&m, color[k], i) == s.row[i].color[k]);
            for (k = 0; k < 6; k++)
                CHECK(double_bits(value(&m, scalar[k], i)) == double_bits(value(&s.mesh, scalar[k], i)));
            CHECK(value(&m, "t8", i) == (double)s.row[i].tensor[8]);
        }
        CHECK(m.attribute_count == 6 + 3 + 4 + 9);
        fsi_io_destroy_mesh(&m);
        free(b.data);
    }
}

static void test_what_was_read_can_be_written_again(void)
{
    static sample s;
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    bytes first = make_bytes(), second = make_bytes();
    make_sample(&s);
    CHECK(fsi_io_write_ply(to_bytes(&c, &first), &s.mesh, 0) == FSI_OK);
    CHECK(fsi_io_read_ply(&m, &c, first.data, first.size) == FSI_OK);
    CHECK(fsi_io_write_ply(to_bytes(&c, &second), &m, 0) == FSI_OK);
    CHECK(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    fsi_io_destroy_mesh(&m);
    free(first.data);
    free(second.data);
}

static void test_obj_round_trip_is_exact_through_a_file(void)
{
    static sample s;
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    const char *obj = scratch_file("obj"), *ply = scratch_file("ply");
    make_sample(&s);
    CHECK(fsi_io_write_obj(fsi_io_to_file(&c, obj), &s.mesh, 0) == FSI_OK);
    CHECK(fsi_io_write_ply(fsi_io_to_file(&c, ply), &s.mesh, FSI_IO_ASCII) == FSI_OK);
    if (CHECK(fsi_io_read_mesh(&m, &c, obj) == FSI_OK)) check_same_shape(&m, &s.mesh);
    fsi_io_destroy_mesh(&m);
    if (CHECK(fsi_io_read_mesh(&m, &c, ply) == FSI_OK)) check_same_shape(&m, &s.mesh);
    fsi_io_destroy_mesh(&m);
    remove(obj);
    remove(ply);
}

/* Calls mesh writer 0 OBJ, 1 PLY, 2 VTP. */
static fsi_status write_mesh(int writer, fsi_io_out out, const fsi_io_mesh *m, int flags)
{
    if (writer == 0) return fsi_io_write_obj(out, m, flags);
    return writer == 1 ? fsi_io_write_ply(out, m, flags) : fsi_io_write_vtp(out, m, flags);
}

static void test_writers_refuse_what_cannot_be_written(void)
{
    static sample s;
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    bytes b = make_bytes();
    int w, k;
    for (w = 0; w < 3; w++) {
        fsi_io_out out = to_bytes(&c, &b);
        make_sample(&s);
        CHECK(write_mesh(w, out, NULL, 0) == FSI_ERROR_ARGUMENT);
        CHECK(write_mesh(w, fsi_io_to_function(&c, NULL, NULL), &s.mesh, 0) == FSI_ERROR_ARGUMENT);
        CHECK(write_mesh(w, fsi_io_to_file(&c, NULL), &s.mesh, 0) == FSI_ERROR_ARGUMENT);
        CHECK(write_mesh(w, fsi_io_to_file(&c, "no such folder/x"), &s.mesh, 0) == FSI_ERROR_IO);
        CHECK(write_mesh(w, out, &s.mesh, 4) == FSI_ERROR_ARGUMENT);
        m = s.mesh; m.cookie ^= 1; CHECK(write_mesh(w, out, &m, 0) == FSI_ERROR_COOKIE);
        m = s.mesh; m.vertex_count = -1; CHECK(write_mesh(w, out, &m, 0) == FSI_ERROR_ARGUMENT);
        m = s.mesh; m.vertices = NULL; CHECK(write_mesh(w, out, &m, 0) == FSI_ERROR_ARGUMENT);
        m = s.mesh; m.triangles = NULL; CHECK(write_mesh(w, out, &m, 0) == FSI_ERROR_ARGUMENT);
        m = s.mesh; m.segment_count = -1; CHECK(write_mesh(w, out, &m, 0) == FSI_ERROR_ARGUMENT);
        m = s.mesh; m.attributes = NULL; CHECK(write_mesh(w, out, &m, 0) == FSI_ERROR_ARGUMENT);
        m = s.mesh; m.triangle_count = 0x7FFFFFFF; CHECK(write_mesh(w, out, &m, 0) == FSI_ERROR_LIMIT);
        s.triangles[5] = N; CHECK(write_mesh(w, out, &s.mesh, 0) == FSI_ERROR_ARGUMENT && c.error.element == 1);
        make_sample(&s);
        s.segments[3] = -1; CHECK(write_mesh(w, out, &s.mesh, 0) == FSI_ERROR_ARGUMENT && c.error.element == 1);
        make_sample(&s);
        s.x[3].y = (fsi_real)test_nan(); CHECK(write_mesh(w, out, &s.mesh, 0) == FSI_ERROR_NAN && c.error.element == 3);
        s.x[3].y = (fsi_real)test_inf(); CHECK(write_mesh(w, out, &s.mesh, 0) == FSI_ERROR_NAN);
        s.x[3].y = (fsi_real)1e30; s.x[3].y *= (fsi_real)1e30;
        CHECK(write_mesh(w, out, &s.mesh, FSI_IO_SINGLE) == FSI_ERROR_NAN); /* infinite as a float */
        for (k = 0; k < 10; k++) {
            static const char *const names[] = { NULL, "", "a b", "<", "x", "\xC3\xA4", "a\n", "ends_in_\\",
                                                "1234567890123456789012345678901234567890123456789012345678901" };
            make_sample(&s);
            if (k < 9) s.attributes[2].name = names[k];
            else s.attributes[2].data = NULL;
            CHECK(write_mesh(w, out, &s.mesh, 0) == FSI_ERROR_ARGUMENT && c.error.element == 2);
        }
        make_sample(&s);
        s.attributes[1].components = 0; CHECK(write_mesh(w, out, &s.mesh, 0) == FSI_ERROR_ARGUMENT);
        s.attributes[1].components = 10; CHECK(write_mesh(w, out, &s.mesh, 0) == FSI_ERROR_ARGUMENT);
        s.attributes[1].components = 3; s.attributes[1].type = FSI_IO_TYPE_COUNT;
        CHECK(write_mesh(w, out, &s.mesh, 0) == FSI_ERROR_ARGUMENT);
    }
    CHECK(b.size == 0 && !b.data); /* nothing was written before all was checked */
}

/* Whatever is written, into a destination that takes `limit` bytes. */
static fsi_status write_anything(int what, fsi_context *c, bytes *b)
{
    static unsigned char pixels[64 * 64 * 3];
    static const double times[2] = { 0, 0.5 };
    static const char *const names[2] = { "a.vtp", "b.vtp" };
    static sample s;
    size_t i;
    make_sample(&s);
    for (i = 0; i < sizeof pixels; i++) pixels[i] = (unsigned char)(i * i >> 3);
    if (what < 3) return write_mesh(what, to_bytes(c, b), &s.mesh, 0);
    if (what == 3) return fsi_io_write_ply(to_bytes(c, b), &s.mesh, FSI_IO_ASCII);
    if (what == 4) return fsi_io_write_pvd(to_bytes(c, b), times, names, 2);
    if (what == 5) return fsi_io_write_pc2_header(to_bytes(c, b), N, 1);
    if (what == 6) return fsi_io_write_pc2_frame(to_bytes(c, b), s.x, N);
    return fsi_io_write_png(to_bytes(c, b), pixels, 64, 64, 3, 0);
}

static void test_writers_pass_over_tets(void)
{
    fsi_context c = fsi_default_context();
    bytes b = make_cube(4, 1, 1), with, without;
    fsi_io_mesh m, bare;
    int w;
    if (!CHECK(fsi_io_read_gmsh(&m, &c, b.data, b.size) == FSI_OK)) return;
    bare = m;
    bare.tet_count = 0;
    bare.tets = bare.tet_region = NULL;
    for (w = 0; w < 3; w++) {
        with = make_bytes();
        without = make_bytes();
        CHECK(write_mesh(w, to_bytes(&c, &with), &m, 0) == FSI_OK);
        CHECK(write_mesh(w, to_bytes(&c, &without), &bare, 0) == FSI_OK);
        CHECK(with.size == without.size && memcmp(with.data, without.data, with.size) == 0);
        free(with.data);
        free(without.data);
    }
    fsi_io_destroy_mesh(&m);
    free(b.data);
}

static void test_short_writes_are_reported(void)
{
    fsi_context c = fsi_default_context();
    int what;
    for (what = 0; what < 8; what++) {
        bytes all = make_bytes();
        size_t limit;
        CHECK(write_anything(what, &c, &all) == FSI_OK && all.size > 0);
        for (limit = 0; limit < all.size; limit += 1 + all.size / 37) {
            bytes b = make_bytes();
            b.limit = limit;
            CHECK(write_anything(what, &c, &b) == FSI_ERROR_IO && c.error.status == FSI_ERROR_IO && b.size <= limit);
            CHECK(c.bytes == 0);
            free(b.data);
        }
        free(all.data);
    }
    {
        FILE *full = fopen("/dev/full", "r+b"); /* a device that has no space, where there is one */
        sample *s = (sample *)malloc(sizeof *s);
        if (full) {
            fclose(full);
            make_sample(s);
            CHECK(fsi_io_write_ply(fsi_io_to_file(&c, "/dev/full"), &s->mesh, 0) == FSI_ERROR_IO);
            CHECK(strstr(c.error.message, "/dev/full"));
        }
        free(s);
    }
}

/* ---- vtp, pvd, pc2 -------------------------------------------------------------------------------------------- */

/* Finds the array of that name after `from` in the head of a VTP, checks its size and returns its data. */
static const unsigned char *vtp_array(const bytes *b, const char *from, const char *name, const char *type, size_t size)
{
    const char *head = (const char *)b->data, *at, *raw = strstr(head, "<AppendedData encoding=\"raw\">\n_");
    char want[64];
    unsigned long offset;
    const unsigned char *p;
    snprintf(want, sizeof want, "Name=\"%s\"", name);
    at = strstr(head, from);
    if (at) at = strstr(at, want);
    if (!CHECK(raw && at && at < raw)) return NULL;
    CHECK(strncmp(at - strlen(type) - 2, type, strlen(type)) == 0);
    at = strstr(at, "offset=\"");
    offset = strtoul(at + 8, NULL, 10);
    p = (const unsigned char *)raw + strlen("<AppendedData encoding=\"raw\">\n_") + offset;
    if (!CHECK(p + 8 + size <= b->data + b->size) || !CHECK(get_le(p, 8) == size)) return NULL;
    return p + 8;
}

static void test_vtp_arrays_lie_where_the_head_says(void)
{
    static sample s;
    fsi_context c = fsi_default_context();
    bytes b = make_bytes();
    const unsigned char *x, *v, *poly, *line, *offsets, *verts;
    float f;
    make_sample(&s);
    CHECK(fsi_io_write_vtp(to_bytes(&c, &b), &s.mesh, FSI_IO_SINGLE) == FSI_OK);
    collect(&b, "", 1); /* so that strstr ends */
    x = vtp_array(&b, "<Points>", "Points", "Float32", 12 * N);
    v = vtp_array(&b, "<PointData>", "v", "Float32", 12 * N);
    poly = vtp_array(&b, "<Polys>", "connectivity", "Int32", 240);
    offsets = vtp_array(&b, "<Polys>", "offsets", "Int32", 80);
    line = vtp_array(&b, "<Lines>", "connectivity", "Int32", 56);
    verts = vtp_array(&b, "<Verts>", "connectivity", "Int32", 0);
    if (!x || !v || !poly || !offsets || !line || !verts) return;
    f = (float)s.x[N - 1].z;
    CHECK(get_le(x + 12 * N - 4, 4) == float_bits(f));
    CHECK(get_le(v + 12 * 5 + 4, 4) == float_bits(s.row[5].f[1]));
    CHECK(get_le(poly + 236, 4) == (uint64_t)s.triangles[59] && get_le(offsets, 4) == 3);
    CHECK(get_le(offsets + 76, 4) == 60);
    CHECK(get_le(line + 52, 4) == (uint64_t)s.segments[13]);
    b.size = 0;
    s.mesh.triangle_count = s.mesh.segment_count = 0; /* particles */
    CHECK(fsi_io_write_vtp(to_bytes(&c, &b), &s.mesh, 0) == FSI_OK);
    collect(&b, "", 1);
    x = vtp_array(&b, "<Points>", "Points", sizeof(fsi_real) == 8 ? "Float64" : "Float32", 3 * sizeof(fsi_real) * N);
    verts = vtp_array(&b, "<Verts>", "connectivity", "Int32", 4 * N);
    if (!x || !verts) return;
    CHECK(get_le(verts + 4 * (N - 1), 4) == N - 1);
    CHECK(get_le(x, sizeof(fsi_real)) == TOL(double_bits((double)s.x[0].x), float_bits((float)s.x[0].x)));
    free(b.data);
}

/* ---- texture coordinates --------------------------------------------------------------------------------------- */

/* u at a corner of a triangle; -1: it has none. */
static double corner_u(const fsi_io_mesh *m, int corner)
{
    int uv = m->uv_count == 0 ? -1 : m->triangle_uv ? m->triangle_uv[corner] : m->triangles[corner];
    return uv < 0 ? -1 : (double)m->uv[2 * uv];
}

static void test_obj_texture_coordinates_belong_to_corners(void)
{
    static const char text[] =
        "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"
        "vt 0.1 0.5\nvt 0.2\nvt 0.3 1 0.75\n"
        "f 1/1 2/2/9 3/-1 4/4\n" /* a quad; its last one comes later */
        "f 1/3 3/1 2\nf 1 2 3\nf 1/77 2/0 3/-9\nvt 0.4 2e3\n";
    static const double want[15] = { 0.1, 0.2, 0.3, 0.1, 0.3, 0.4, 0.3, 0.1, -1, -1, -1, -1, -1, -1, -1 };
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    int k;
    if (!CHECK(read_text(&m, &c, text) == FSI_OK)) { printf("%s\n", c.error.message); return; }
    CHECK(m.uv_count == 4 && m.triangle_count == 5 && m.triangle_uv);
    for (k = 0; k < 15 && m.triangle_uv; k++) CHECK_NEAR(corner_u(&m, k), want[k], TOL(0, 1e-7));
    CHECK_NEAR(m.uv[1], 0.5, 0);
    CHECK_NEAR(m.uv[3], 0, 0);
    CHECK_NEAR(m.uv[7], 2000, 0);
    fsi_io_destroy_mesh(&m);
    CHECK(read_text(&m, &c, "v 0 0 0\nv 1 0 0\nv 1 1 0\nvt 0 0\nf 1 2 3\n") == FSI_OK && m.uv_count == 0 && !m.uv &&
          !m.triangle_uv);
    fsi_io_destroy_mesh(&m);
    CHECK(read_text(&m, &c, "v 0 0 0\nvt\n") == FSI_ERROR_FORMAT && c.error.element == 2);
    CHECK(read_text(&m, &c, "v 0 0 0\nvt 1e999 0\n") != FSI_OK && c.error.element == 2);
    CHECK(c.bytes == 0);
}

static void test_ply_texture_coordinates_are_not_attributes(void)
{
    static const char *const names[4][3] = {
        {"s", "t", "q"}, {"texture_u", "texture_v", "s"}, {"u", "v", "t"}, {"u", "v", "w"}};
    char text[400];
    fsi_context c = fsi_default_context();
    fsi_io_mesh m;
    int k;
    for (k = 0; k < 4; k++) {
        snprintf(text, sizeof text,
                 "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float %s\nproperty double y\n"
                 "property uchar %s\nproperty float %s\nend_header\n0 0.25 1 7 9\n0 0.5 1 8 9\n",
                 names[k][0], names[k][1], names[k][2]);
        if (!CHECK(fsi_io_read_ply(&m, &c, text, strlen(text)) == FSI_OK)) continue;
        CHECK(m.attribute_count == (k < 3 ? 1 : 3) && m.uv_count == (k < 3 ? 2 : 0) && !m.triangle_uv);
        if (k < 3) CHECK(m.uv[0] == (fsi_real)0.25 && m.uv[1] == 7 && m.uv[2] == (fsi_real)0.5 && m.uv[3] == 8);
        fsi_io_destroy_mesh(&m);
    }
    CHECK(c.bytes == 0);
}

static void test_texture_coordinates_survive_every_format(void)
{
    static const int flags[4] = { 0, FSI_IO_ASCII, FSI_IO_SINGLE, FSI_IO_ASCII | FSI_IO_SINGLE };
    int writer, f, k, per_vertex;
    for (writer = 0; writer < 2; writer++) for (f = 0; f < 4; f++) for (per_vertex = 0; per_vertex < 2; per_vertex++) {
        fsi_context c = fsi_default_context();
        fsi_io_mesh m = textured(per_vertex), again;
        bytes b = make_bytes();
        CHECK((writer ? fsi_io_write_ply(to_bytes(&c, &b), &m, flags[f])
                      : fsi_io_write_obj(to_bytes(&c, &b), &m, flags[f])) == FSI_OK);
        if (!CHECK((writer ? fsi_io_read_ply(&again, &c, b.data, b.size)
                           : fsi_io_read_obj(&again, &c, b.data, b.size)) == FSI_OK))
            printf("  %s\n", c.error.message);
        CHECK(again.triangle_count == 2 && again.segment_count == 1 && again.attribute_count == 0);
        for (k = 0; k < 6 && again.uv_count > 0; k++) {
            int i = m.triangle_uv ? m.triangle_uv[k] : m.triangles[k],
                j = again.triangle_uv ? again.triangle_uv[k] : again.triangles[k];
            if (!CHECK(j >= 0 && j < again.uv_count)) continue;
            CHECK(again.uv[2 * j] == m.uv[2 * i]);
            CHECK_NEAR(again.uv[2 * j + 1], m.uv[2 * i + 1], flags[f] & FSI_IO_SINGLE ? 1e-7 : 0);
        }
        CHECK(again.uv_count > 0 && (writer == 0 || (again.triangle_uv == NULL) == per_vertex));
        fsi_io_destroy_mesh(&again);
        CHECK(c.bytes == 0);
        free(b.data);
    }
}

static void test_vtp_repeats_vertices_where_charts_meet(void)
{
    fsi_context c = fsi_default_context();
    fsi_io_mesh m = textured(0);
    bytes b = make_bytes();
    const unsigned char *uv, *x, *poly;
    int k;
    CHECK(fsi_io_write_vtp(to_bytes(&c, &b), &m, FSI_IO_SINGLE) == FSI_OK && c.bytes == 0);
    collect(&b, "", 1);
    CHECK(strstr((const char *)b.data, "<PointData TCoords=\"uv\">") &&
          strstr((const char *)b.data, "NumberOfPoints=\"5\""));
    uv = vtp_array(&b, "<PointData", "uv", "Float32", 8 * 5);
    x = vtp_array(&b, "<Points>", "Points", "Float32", 12 * 5);
    poly = vtp_array(&b, "<Polys>", "connectivity", "Int32", 24);
    for (k = 0; k < 6 && uv && x && poly; k++) {
        size_t p = (size_t)get_le(poly + 4 * k, 4);
        if (!CHECK(p < 5)) continue;
        CHECK(get_le(uv + 8 * p, 4) == float_bits((float)m.uv[2 * m.triangle_uv[k]]));
        CHECK(get_le(x + 12 * p + 4, 4) == float_bits((float)m.vertices[m.triangles[k]].y));
    }
    free(b.data);
}

static void test_writers_refuse_bad_texture_coordinates(void)
{
    static const int bad[6] = { 0, 1, 2, 0, 2, 5 };
    int writer;
    for (writer = 0; writer < 3; writer++) {
        fsi_context c = fsi_default_context();
        fsi_io_mesh m = textured(0);
        bytes b = make_bytes();
        fsi_real uv[10] = { 0 };
        m.triangle_uv = bad;
        CHECK(write_mesh(writer, to_bytes(&c, &b), &m, 0) == FSI_ERROR_ARGUMENT && c.error.element == 1);
        m = textured(1);
        m.uv_count = 3;
        CHECK(write_mesh(writer, to_bytes(&c, &b), &m, 0) == FSI_ERROR_ARGUMENT);
        m.uv_count = 4;
        m.uv = NULL;
        CHECK(write_mesh(writer, to_bytes(&c, &b), &m, 0) == FSI_ERROR_ARGUMENT);
        m.uv = uv;
        uv[5] = (fsi_real)test_nan();
        CHECK(write_mesh(writer, to_bytes(&c, &b), &m, 0) == FSI_ERROR_NAN && c.error.element == 2);
        CHECK(b.size == 0 && c.bytes == 0);
        free(b.data);
    }
}

static void test_pvd_is_complete_after_every_frame(void)
{
    fsi_context c = fsi_default_context();
    const char *path = scratch_file("pvd");
    char name[32];
    double times[20];
    const char *names[20];
    static char pool[20][16];
    bytes file, whole;
    int i;
    for (i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "frame_%d.vtp", i);
        strcpy(pool[i], name);
        names[i] = pool[i];
        times[i] = i / 3.0;
        CHECK(fsi_io_append_pvd(&c, path, i, times[i], name) == FSI_OK);
        file = load_file(path);
        whole = make_bytes();
        CHECK(fsi_io_write_pvd(to_bytes(&c, &whole), times, names, i + 1) == FSI_OK);
        CHECK(file.size == whole.size && memcmp(file.data, whole.data, file.size) == 0);
        free(file.data);
        free(whole.data);
    }
    CHECK(fsi_io_append_pvd(&c, path, -1, 0, "a") == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_append_pvd(&c, NULL, 0, 0, "a") == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_append_pvd(&c, path, 20, 0, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_append_pvd(&c, path, 20, 0, "a\"b") == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_append_pvd(&c, path, 20, test_nan(), "a") == FSI_ERROR_NAN);
    CHECK(fsi_io_write_pvd(fsi_io_to_file(&c, path), NULL, names, 2) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_pvd(fsi_io_to_file(&c, path), times, names, -2) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_append_pvd(&c, path, 0, 7, "anew") == FSI_OK); /* frame 0 starts again */
    file = load_file(path);
    CHECK(file.size < 250);
    free(file.data);
    CHECK(fsi_io_append_pc2(&c, path, 0, NULL, 0) == FSI_ERROR_ARGUMENT);
    { FILE *f = fopen(path, "wb"); if (f) { fputs("short", f); fclose(f); } }
    CHECK(fsi_io_append_pvd(&c, path, 1, 7, "b") == FSI_ERROR_FORMAT);
    { FILE *f = fopen(path, "wb"); if (f) { for (i = 0; i < 100; i++) fputs("foreign ", f); fclose(f); } }
    CHECK(fsi_io_append_pvd(&c, path, 1, 7, "b") == FSI_ERROR_FORMAT);
    remove(path);
    CHECK(fsi_io_append_pvd(&c, path, 1, 7, "b") == FSI_ERROR_IO);
}

static void test_pc2_counts_its_frames(void)
{
    static sample s;
    fsi_context c = fsi_default_context();
    const char *path = scratch_file("pc2");
    bytes file, stream = make_bytes();
    int frame, i;
    make_sample(&s);
    CHECK(fsi_io_write_pc2_header(to_bytes(&c, &stream), N, 5) == FSI_OK);
    for (frame = 0; frame < 5; frame++) {
        for (i = 0; i < N; i++) s.x[i].x = (fsi_real)(frame * 100 + i);
        CHECK(fsi_io_append_pc2(&c, path, frame, s.x, N) == FSI_OK);
        CHECK(fsi_io_write_pc2_frame(to_bytes(&c, &stream), s.x, N) == FSI_OK);
        file = load_file(path);
        CHECK(file.size == 32 + 12u * N * (unsigned)(frame + 1) && memcmp(file.data, "POINTCACHE2", 12) == 0);
        CHECK(get_le(file.data + 12, 4) == 1 && get_le(file.data + 16, 4) == N && get_le(file.data + 20, 4) == 0);
        CHECK(get_le(file.data + 24, 4) == float_bits(1.0f) && get_le(file.data + 28, 4) == (uint64_t)(frame + 1));
        CHECK(get_le(file.data + 32 + 12 * (N * frame + 3), 4) == float_bits((float)(frame * 100 + 3)));
        if (frame == 4) CHECK(file.size == stream.size && memcmp(file.data, stream.data, file.size) == 0);
        free(file.data);
    }
    CHECK(fsi_io_append_pc2(&c, path, 4, s.x, N) == FSI_ERROR_FORMAT);     /* the file holds 5 already */
    CHECK(fsi_io_append_pc2(&c, path, 5, s.x, N - 1) == FSI_ERROR_FORMAT); /* of another mesh */
    CHECK(fsi_io_append_pc2(&c, path, 5, s.x, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_append_pc2(&c, path, 5, NULL, N) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_append_pc2(&c, NULL, 5, s.x, N) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_append_pc2(&c, path, -5, s.x, N) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_pc2_header(to_bytes(&c, &stream), 0, 5) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_pc2_header(to_bytes(&c, &stream), N, -1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_pc2_header(fsi_io_to_file(&c, path), N, 5) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_pc2_frame(fsi_io_to_file(&c, path), s.x, N) == FSI_ERROR_ARGUMENT);
    s.x[2].z = (fsi_real)test_nan();
    CHECK(fsi_io_append_pc2(&c, path, 5, s.x, N) == FSI_ERROR_NAN && c.error.element == 2);
    CHECK(fsi_io_append_pc2(&c, path, 2147483647, s.x, 2) == FSI_ERROR_FORMAT || c.error.status == FSI_ERROR_LIMIT);
    remove(path);
    CHECK(fsi_io_append_pc2(&c, path, 5, s.x, 2) == FSI_ERROR_IO);
    free(stream.data);
}

/* ---- png ------------------------------------------------------------------------------------------------------ */

/* An inflate of the simplest kind (RFC 1951), for dynamic and stored blocks: what a decoder that shares no code
   sees. */
typedef struct inflater {
    const unsigned char *in;
    size_t size, bit;
    unsigned char *out;
    size_t written, capacity;
} inflater;

static unsigned take_bits(inflater *z, int n)
{
    unsigned v = 0;
    int i;
    for (i = 0; i < n; i++, z->bit++)
        if (z->bit / 8 < z->size) v |= (unsigned)(z->in[z->bit / 8] >> z->bit % 8 & 1) << i;
    return v;
}

/* Decodes by counting codes of each length; -1: no such code. */
static int take_symbol(inflater *z, const unsigned char *length, int count)
{
    int code = 0, first = 0, bits, i;
    for (bits = 1; bits <= 15; bits++) {
        int n = 0;
        code |= (int)take_bits(z, 1);
        for (i = 0; i < count; i++) n += length[i] == bits;
        if (code - first < n) {
            for (i = 0, n = code - first; i < count; i++) if (length[i] == bits && n-- == 0) return i;
        }
        first = (first + n) << 1;
        code <<= 1;
    }
    return -1;
}

static int inflate_block(inflater *z)
{
    static const unsigned char order[19] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 };
    static const int length_base[29] = { 3,  4,  5,  6,  7,  8,  9,  10, 11, 13,  15,  17,  19,  23, 27,
                                         31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 };
    static const int length_bits[29] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5,
                                        5, 5, 0 };
    unsigned char lengths[19] = { 0 }, all[320] = { 0 };
    int literals = (int)take_bits(z, 5) + 257, distances = (int)take_bits(z, 5) + 1, sent = (int)take_bits(z, 4) + 4;
    int i, s;
    for (i = 0; i < sent; i++) lengths[order[i]] = (unsigned char)take_bits(z, 3);
    for (i = 0; i < literals + distances;) {
        int repeat, value = 0;
        s = take_symbol(z, lengths, 19);
        if (s < 0) return 0;
        if (s < 16) { all[i++] = (unsigned char)s; continue; }
        repeat = s == 16 ? 3 + (int)take_bits(z, 2) : s == 17 ? 3 + (int)take_bits(z, 3) : 11 + (int)take_bits(z, 7);
        if (s == 16 && i > 0) value = all[i - 1];
        while (repeat-- > 0 && i < literals + distances) all[i++] = (unsigned char)value;
    }
    while ((s = take_symbol(z, all, literals)) != 256) {
        size_t length, distance;
        if (s < 0 || z->bit / 8 > z->size) return 0;
        if (s < 256) { if (z->written == z->capacity) return 0; z->out[z->written++] = (unsigned char)s; continue; }
        length = (size_t)length_base[s - 257] + take_bits(z, length_bits[s - 257]);
        s = take_symbol(z, all + literals, distances);
        if (s < 0) return 0;
        distance = s < 2 ? (size_t)s + 1 : (((size_t)2 + (s & 1)) << (s / 2 - 1)) + 1 + take_bits(z, s / 2 - 1);
        if (distance > z->written || length > z->capacity - z->written) return 0;
        while (length-- > 0) { z->out[z->written] = z->out[z->written - distance]; z->written++; }
    }
    return 1;
}

static uint32_t crc32_of(const unsigned char *p, size_t n)
{
    uint32_t c = 0xFFFFFFFFu;
    int k;
    for (; n-- > 0;) for (c ^= *p++, k = 0; k < 8; k++) c = c >> 1 ^ (0xEDB88320u & (0u - (c & 1)));
    return ~c;
}

static uint32_t get_be(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Undoes the filters in place; rows are 1 + bytes long. */
static int unfilter(unsigned char *rows, int bytes_a_row, int height, int pixel)
{
    int y, i;
    for (y = 0; y < height; y++) {
        unsigned char *row = rows + (size_t)y * (size_t)(bytes_a_row + 1) + 1, *above = row - bytes_a_row - 1;
        for (i = 0; i < bytes_a_row; i++) {
            int a = i >= pixel ? row[i - pixel] : 0, b = y ? above[i] : 0, c = y && i >= pixel ? above[i - pixel] : 0;
            int p = a + b - c, guess = 0;
            if (row[-1] > 4) return 0;
            if (row[-1] == 1) guess = a;
            if (row[-1] == 2) guess = b;
            if (row[-1] == 3) guess = (a + b) / 2;
            if (row[-1] == 4)
                guess = abs(p - a) <= abs(p - b) && abs(p - a) <= abs(p - c) ? a : abs(p - b) <= abs(p - c) ? b : c;
            row[i] = (unsigned char)(row[i] + guess);
        }
    }
    return 1;
}

/* Decodes a PNG that must have this shape and compares it with the pixels. */
static void check_png(const bytes *b, const unsigned char *pixels, int width, int height, int channels,
                      ptrdiff_t stride)
{
    static const unsigned char color_type[5] = { 0, 0, 4, 2, 6 };
    size_t at, row = (size_t)(width * channels), size = (row + 1) * (size_t)height;
    bytes data = make_bytes();
    inflater z;
    uint32_t a = 1, s = 0;
    int last = 0, y;
    CHECK(b->size > 57 && memcmp(b->data, "\x89PNG\r\n\x1A\n\0\0\0\rIHDR", 16) == 0);
    CHECK(get_be(b->data + 16) == (uint32_t)width && get_be(b->data + 20) == (uint32_t)height && b->data[24] == 8);
    CHECK(b->data[25] == color_type[channels]);
    for (at = 8; at + 12 <= b->size; at += 12 + get_be(b->data + at)) {
        size_t n = get_be(b->data + at);
        if (!CHECK(n <= b->size - at - 12) || !CHECK(get_be(b->data + at + 8 + n) == crc32_of(b->data + at + 4, n + 4)))
            break;
        if (memcmp(b->data + at + 4, "IDAT", 4) == 0) collect(&data, b->data + at + 8, n);
    }
    CHECK(at == b->size && memcmp(b->data + b->size - 8, "IEND", 4) == 0);
    if (!CHECK(data.size > 6 && data.data[0] == 0x78 && (data.data[0] * 256 + data.data[1]) % 31 == 0)) return;
    memset(&z, 0, sizeof z);
    z.in = data.data + 2;
    z.size = data.size - 6;
    z.capacity = size;
    z.out = (unsigned char *)malloc(size);
    while (!last) {
        last = (int)take_bits(&z, 1);
        if (!CHECK(take_bits(&z, 2) == 2) || !CHECK(inflate_block(&z))) break;
    }
    CHECK(z.written == size && (z.bit + 7) / 8 == z.size);
    for (at = 0; at < z.written; at++) { a = (a + z.out[at]) % 65521; s = (s + a) % 65521; }
    CHECK(get_be(data.data + data.size - 4) == (s << 16 | a));
    if (CHECK(unfilter(z.out, (int)row, height, channels)))
        for (y = 0; y < height; y++)
            if (!CHECK(memcmp(z.out + (size_t)y * (row + 1) + 1, pixels + y * stride, row) == 0)) break;
    free(z.out);
    free(data.data);
}

/* Pictures of several kinds: flat, gradient, noise, checks, few colours, and long repeats. */
static void paint(unsigned char *p, size_t size, int kind, uint64_t *r)
{
    size_t i;
    for (i = 0; i < size; i++) {
        double v = test_random(r);
        if (kind == 0) p[i] = 77;
        if (kind == 1) p[i] = (unsigned char)(i / 97);
        if (kind == 2) p[i] = (unsigned char)(v * 256);
        if (kind == 3) p[i] = (unsigned char)(i / 24 % 2 * 255);
        if (kind == 4) p[i] = (unsigned char)(v * v * v * v * 12);
        if (kind == 5) p[i] = i < 5000 ? (unsigned char)(v * 256) : p[i - 4999];
        if (kind == 6) p[i] = (unsigned char)(v < 0.0005 ? v * 512000 : 3); /* skewed: code lengths at their limit */
    }
}

static void test_png_is_decoded_to_the_same_pixels(void)
{
    static const int sizes[][2] = { { 1, 1 }, { 2, 1 }, { 1, 3 }, { 3, 2 }, { 17, 5 }, { 64, 64 }, { 301, 97 },
                                   { 700, 3 }, { 1, 65535 }, { 65535, 1 } };
    fsi_context c = fsi_default_context();
    uint64_t r = 13;
    size_t k;
    int channels, kind;
    for (k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (channels = 1; channels <= 4; channels++) {
            int w = sizes[k][0], h = sizes[k][1];
            size_t size = (size_t)(w * h * channels);
            unsigned char *p = (unsigned char *)malloc(size);
            for (kind = 0; kind < 7; kind++) {
                bytes b = make_bytes();
                if ((w > 1000 || h > 1000) && (kind + channels) % 5) continue;
                if (TEST_SLOWED > 1 && size > 2000 && (kind + channels) % 3) continue;
                paint(p, size, kind, &r);
                CHECK(fsi_io_write_png(to_bytes(&c, &b), p, w, h, channels, 0) == FSI_OK && c.bytes == 0);
                check_png(&b, p, w, h, channels, w * channels);
                if (kind == 0) CHECK(b.size < 400 + size / 300);
                if (kind == 2) CHECK(b.size < 400 + size + size / 50 + (size_t)h);
                free(b.data);
            }
            free(p);
        }
    }
}

static void test_png_rows_apart_and_upside_down(void)
{
    fsi_context c = fsi_default_context();
    unsigned char p[40 * 50];
    uint64_t r = 17;
    bytes b = make_bytes();
    paint(p, sizeof p, 2, &r);
    CHECK(fsi_io_write_png(to_bytes(&c, &b), p, 10, 40, 3, 50) == FSI_OK);
    check_png(&b, p, 10, 40, 3, 50);
    b.size = 0;
    CHECK(fsi_io_write_png(to_bytes(&c, &b), p + 39 * 50, 10, 40, 3, -50) == FSI_OK);
    check_png(&b, p + 39 * 50, 10, 40, 3, -50);
    free(b.data);
}

static void test_png_refuses_bad_pictures(void)
{
    fsi_context c = fsi_default_context();
    unsigned char p[64] = { 0 };
    bytes b = make_bytes();
    fsi_io_out out = to_bytes(&c, &b);
    CHECK(fsi_io_write_png(out, NULL, 4, 4, 1, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_png(out, p, 0, 4, 1, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_png(out, p, 4, -4, 1, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_png(out, p, 65536, 1, 1, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_png(out, p, 1, 65536, 1, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_png(out, p, 4, 4, 0, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_png(out, p, 4, 4, 5, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_png(out, p, 4, 4, 3, 11) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_png(out, p, 4, 4, 3, -11) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_png(out, p, 65535, 65535, 4, 0) == FSI_ERROR_LIMIT);
    CHECK(fsi_io_write_png(fsi_io_to_function(&c, NULL, NULL), p, 4, 4, 3, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_io_write_png(fsi_io_to_file(&c, "no such folder/x.png"), p, 4, 4, 3, 0) == FSI_ERROR_IO);
    CHECK(b.size == 0 && c.bytes == 0);
}

/* A decoder written by others, where Python is at hand. */
static void test_png_is_decoded_by_zlib(void)
{
    static const char script[] = "import sys,zlib,struct;d=open(sys.argv[1],'rb').read();p=8;z=b''\n"
                                 "while p<len(d):\n"
                                 " n=struct.unpack('>I',d[p:p+4])[0];t=d[p+4:p+8];b=d[p+8:p+8+n];p+=12+n\n"
                                 " assert struct.unpack('>I',d[p-4:p])[0]==zlib.crc32(t+b)\n"
                                 " if t==b'IDAT': z+=b\n"
                                 "assert len(zlib.decompress(z))==int(sys.argv[2])\n";
    fsi_context c = fsi_default_context();
    unsigned char *p = (unsigned char *)malloc(300 * 200 * 3);
    const char *png = scratch_file("png"), *python = scratch_file("py");
    char command[256];
    uint64_t r = 19;
    int kind, absent;
    FILE *f;
    snprintf(command, sizeof command, "python3 -c \"import zlib\" > %s 2>&1", python);
    absent = system(command) != 0;
    if (absent) printf("     skipped: no Python\n");
    f = fopen(python, "wb");
    if (CHECK(f != NULL)) { fputs(script, f); fclose(f); }
    for (kind = 0; kind < 7 && !absent; kind++) {
        paint(p, 300 * 200 * 3, kind, &r);
        CHECK(fsi_io_write_png(fsi_io_to_file(&c, png), p, 300, 200, 3, 0) == FSI_OK);
        snprintf(command, sizeof command, "python3 %s %s %d", python, png, 200 * 901);
        CHECK(system(command) == 0);
    }
    remove(png);
    remove(python);
    free(p);
}

/* The pictures of the README must stay below 200 KB. */
static void test_png_of_a_shaded_picture_is_small(void)
{
    enum { W = 960, H = 540 };
    fsi_context c = fsi_default_context();
    unsigned char *p = (unsigned char *)malloc(W * H * 3);
    bytes b = make_bytes();
    int x, y, k;
    for (y = 0; y < H; y++) {
        for (x = 0; x < W; x++) { /* lit balls above a chequered floor, a sky behind */
            double dx = (x % 120 - 60) / 58.0, dy = (y % 120 - 60) / 58.0, d = 1 - dx * dx - dy * dy;
            double shade = (x * 40 / (y + 1) + 4000 / (y + 1)) % 2 ? 0.8 : 0.5;
            if (y < 200) shade = 0.6 + 0.4 * y / 200;
            if (d > 0 && y > 120) shade = 0.15 + 0.85 * fmax(0, 0.7 * sqrt(d) + 0.4 * dx - 0.5 * dy);
            for (k = 0; k < 3; k++) p[(y * W + x) * 3 + k] = (unsigned char)(255 * fmin(1, shade * (0.7 + 0.15 * k)));
        }
    }
    CHECK(fsi_io_write_png(to_bytes(&c, &b), p, W, H, 3, 0) == FSI_OK && b.size < 200000);
    free(b.data);
    free(p);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_decimals_are_read_as_strtod_does);
    RUN(test_numbers_written_are_read_back_exactly_in_any_locale);
    RUN(test_obj_as_found_in_the_wild);
    RUN(test_obj_errors_name_the_line);
    RUN(test_polygons_keep_their_area_and_orientation);
    RUN(test_ply_of_any_encoding_order_and_type);
    RUN(test_ply_line_endings);
    RUN(test_ply_errors_name_the_line);
    RUN(test_ply_limits);
    RUN(test_a_cube_of_tets_is_the_same_from_every_format);
    RUN(test_files_of_tets_are_told_apart);
    RUN(test_elements_of_second_order_give_their_corners);
    RUN(test_files_of_triangle_are_triangles);
    RUN(test_gmsh_elements_of_other_types_are_read_over);
    RUN(test_tets_without_volume_stay);
    RUN(test_gmsh_errors_name_the_line);
    RUN(test_tetgen_errors_name_the_file_and_the_line);
    RUN(test_huge_counts_are_refused_before_memory_is_taken);
    RUN(test_binary_ply_refuses_nan_by_offset);
    RUN(test_files_cut_at_any_byte);
    RUN(test_flipped_bytes_never_crash);
    RUN(test_every_failed_allocation_is_survived);
    RUN(test_readers_refuse_bad_arguments);
    RUN(test_ply_round_trip_is_exact);
    RUN(test_what_was_read_can_be_written_again);
    RUN(test_obj_round_trip_is_exact_through_a_file);
    RUN(test_writers_refuse_what_cannot_be_written);
    RUN(test_writers_pass_over_tets);
    RUN(test_short_writes_are_reported);
    RUN(test_vtp_arrays_lie_where_the_head_says);
    RUN(test_obj_texture_coordinates_belong_to_corners);
    RUN(test_ply_texture_coordinates_are_not_attributes);
    RUN(test_texture_coordinates_survive_every_format);
    RUN(test_vtp_repeats_vertices_where_charts_meet);
    RUN(test_writers_refuse_bad_texture_coordinates);
    RUN(test_pvd_is_complete_after_every_frame);
    RUN(test_pc2_counts_its_frames);
    RUN(test_png_is_decoded_to_the_same_pixels);
    RUN(test_png_is_decoded_by_zlib);
    RUN(test_png_rows_apart_and_upside_down);
    RUN(test_png_refuses_bad_pictures);
    RUN(test_png_of_a_shaded_picture_is_small);
    return TEST_END();
}
