/* test_solve_assembly.c - matrices of element contributions against sums in long double.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_solve.h"

/* ---- elements -------------------------------------------------------------------------------------------------- */

typedef struct elements {
    fsi_assembly_desc d;
    int *start, *vertex;
    double *value, *load; /* element matrices and vectors */
    size_t numbers, loads;
} elements;

/* Random ones of 0 to `most` vertices: some repeated when `repeat`, some pinned, the last vertices in none. */
static elements elements_random(int vertices, int count, int most, int block, int repeat, uint64_t *random)
{
    elements s;
    int e, i, k, m;
    size_t q;
    s.d = fsi_assembly_default_desc();
    s.start = (int *)calloc((size_t)count + 1, sizeof(int));
    s.vertex = (int *)calloc((size_t)(count * most) + 1, sizeof(int));
    s.numbers = s.loads = 0;
    for (e = 0, k = 0; e < count; e++) {
        m = (int)(test_random(random) * (most + 1));
        if (!repeat && m > vertices - 2) m = vertices > 2 ? vertices - 2 : 0;
        for (i = 0; i < m;) {
            int j, v = (int)(test_random(random) * (vertices > 2 ? vertices - 2 : 1)), twice = 0;
            if (test_random(random) < 0.1) v = -1;
            for (j = k - i; j < k; j++) twice |= v >= 0 && s.vertex[j] == v;
            if (twice && !repeat) continue;
            s.vertex[k++] = v;
            i++;
        }
        s.start[e + 1] = k;
        s.numbers += (size_t)(m * m * block * block);
        s.loads += (size_t)(m * block);
    }
    s.value = (double *)calloc(s.numbers + 1, sizeof(double));
    s.load = (double *)calloc(s.loads + 1, sizeof(double));
    for (q = 0; q < s.numbers; q++) s.value[q] = test_random(random) - 0.5;
    for (q = 0; q < s.loads; q++) s.load[q] = test_random(random) - 0.5;
    s.d.vertices = vertices;
    s.d.block = block;
    s.d.elements = count;
    s.d.start = s.start;
    s.d.vertex = s.vertex;
    return s;
}

static void elements_free(elements *s)
{
    free(s->start);
    free(s->vertex);
    free(s->value);
    free(s->load);
}

/* Makes every element matrix symmetric. */
static void elements_mirror(elements *s)
{
    double *v = s->value;
    int e, i, j;
    for (e = 0; e < s->d.elements; e++) {
        const int w = (s->start[e + 1] - s->start[e]) * s->d.block;
        for (i = 0; i < w; i++) for (j = 0; j < i; j++) v[i * w + j] = v[j * w + i];
        v += w * w;
    }
}

/* Row and column of the matrix, or -1, of number k of an element's vertices. */
static int row_of(const elements *s, int e, int k)
{
    const int v = s->vertex[s->start[e] + k / s->d.block];
    return v < 0 ? -1 : v * s->d.block + k % s->d.block;
}

/* The dense sum: `exact` in long double, `plain` in double, in the order of elements; `size` of what was summed; `met`:
   blocks. Zeroed by the caller. */
typedef struct dense_sum { int n; long double *exact; double *plain, *size; unsigned char *met; } dense_sum;

static dense_sum dense_sum_of(const elements *s)
{
    dense_sum d;
    const double *v = s->value;
    int e, i, j;
    size_t nn;
    d.n = s->d.vertices * s->d.block;
    nn = (size_t)d.n * (size_t)d.n + 1;
    d.exact = (long double *)calloc(nn, sizeof *d.exact);
    d.plain = (double *)calloc(nn, sizeof(double));
    d.size = (double *)calloc(nn, sizeof(double));
    d.met = (unsigned char *)calloc(nn, 1);
    for (i = 0; i < d.n; i++) for (j = 0; j < d.n; j++) d.met[i * d.n + j] = i / s->d.block == j / s->d.block;
    for (e = 0; e < s->d.elements; e++) {
        const int w = (s->start[e + 1] - s->start[e]) * s->d.block;
        for (i = 0; i < w; i++) for (j = 0; j < w; j++, v++) {
            const int r = row_of(s, e, i), c = row_of(s, e, j);
            if (r < 0 || c < 0) continue;
            d.exact[r * d.n + c] += (long double)*v;
            d.plain[r * d.n + c] += *v;
            d.size[r * d.n + c] += fabs(*v);
            d.met[r * d.n + c] = 1;
        }
    }
    return d;
}

static void dense_sum_free(dense_sum *d)
{
    free(d->exact);
    free(d->plain);
    free(d->size);
    free(d->met);
}

static fsi_assembly *assembly_of(const elements *s, fsi_context *c)
{
    fsi_assembly_desc d = s->d;
    fsi_assembly *a = NULL;
    d.context = c;
    CHECK(fsi_assembly_create(&a, &d) == FSI_OK && a != NULL);
    return a;
}

/* Pattern and numbers. */
static void check_against_sum(const fsi_assembly *a, const elements *s)
{
    const fsi_csr *m = &a->matrix;
    const int b = m->block;
    dense_sum d = dense_sum_of(s);
    int r, e, p, q, i, j;
    double off = 0, *unused = (double *)calloc((size_t)(2 * d.n) + 1, sizeof(double));
    CHECK(fsi_csr_multiply(NULL, m, unused, unused + d.n) == FSI_OK); /* a matrix in form */
    free(unused);
    CHECK(m->rows == s->d.vertices && m->cols == s->d.vertices && b == s->d.block);
    for (r = 0; r < m->rows; r++)
        for (e = m->start[r]; e < m->start[r + 1]; e++)
            for (p = 0; p < b; p++)
                for (q = 0; q < b; q++) {
                    const int at = (r * b + p) * d.n + m->col[e] * b + q;
                    const double v = m->value[(e * b + p) * b + q];
                    CHECK(d.met[at] == 1);
                    d.met[at] = 0;
                    CHECK(v == d.plain[at]); /* the order of elements */
                    off = fmax(off, fabs((double)((long double)v - d.exact[at])) / (d.size[at] + 1e-300));
                }
    CHECK_NEAR(off, 0, 1e-14);
    for (i = 0; i < d.n; i++) for (j = 0; j < d.n; j++) CHECK(d.met[i * d.n + j] == 0); /* every couple has an entry */
    dense_sum_free(&d);
}

static void test_the_matrix_is_the_sum_of_its_elements(void)
{
    uint64_t random = 1;
    int round;
    for (round = 0; round < 200; round++) {
        const int block = round % 10 == 9 ? 16 : round % 5 + 1;
        elements s = elements_random(1 + (int)(test_random(&random) * (block > 5 ? 8 : 25)),
                                     (int)(test_random(&random) * 30), 6, block, round % 2, &random);
        fsi_assembly *a = assembly_of(&s, NULL);
        CHECK(fsi_assembly_matrix(a, s.value) == FSI_OK);
        CHECK(a->numbers == s.numbers && a->vector_numbers == s.loads);
        check_against_sum(a, &s);
        fsi_assembly_destroy(a);
        elements_free(&s);
    }
}

static void test_the_vector_is_the_sum_of_its_elements(void)
{
    uint64_t random = 2;
    int round, e, k, i;
    for (round = 0; round < 100; round++) {
        const int block = round % 16 + 1, vertices = 1 + (int)(test_random(&random) * 25);
        elements s = elements_random(vertices, (int)(test_random(&random) * 60), 5, block, 1, &random);
        fsi_assembly *a = assembly_of(&s, NULL);
        long double want[26 * 16] = { 0 };
        double out[26 * 16], *v = s.load;
        for (e = 0; e < s.d.elements; e++)
            for (k = 0; k < (s.start[e + 1] - s.start[e]) * block; k++, v++)
                if (row_of(&s, e, k) >= 0) want[row_of(&s, e, k)] += (long double)*v;
        CHECK(fsi_assembly_vector(a, s.load, out) == FSI_OK);
        for (i = 0; i < vertices * block; i++) CHECK_NEAR((long double)out[i] - want[i], 0, 1e-13);
        fsi_assembly_destroy(a);
        elements_free(&s);
    }
}

static void test_elements_lie_where_the_offsets_say(void)
{
    uint64_t random = 3;
    elements s = elements_random(20, 50, 6, 3, 1, &random);
    fsi_context c = fsi_default_context();
    fsi_assembly *a = assembly_of(&s, &c);
    size_t numbers = 0, loads = 0;
    int e;
    for (e = 0; e < 50; e++) {
        const size_t m = (size_t)(s.start[e + 1] - s.start[e]);
        CHECK(fsi_assembly_matrix_offset(a, e) == numbers && fsi_assembly_vector_offset(a, e) == loads);
        numbers += m * m * 9;
        loads += m * 3;
    }
    CHECK(fsi_assembly_matrix_offset(a, 50) == (size_t)-1 && strstr(c.error.message, "element 50") &&
          c.error.status == FSI_ERROR_ARGUMENT);
    CHECK(fsi_assembly_vector_offset(a, -1) == (size_t)-1 && strstr(c.error.message, "element -1"));
    CHECK(fsi_assembly_matrix_offset(NULL, 0) == (size_t)-1 && fsi_assembly_vector_offset(NULL, 0) == (size_t)-1);
    fsi_assembly_destroy(a);
    elements_free(&s);
}

static void test_the_largest_elements_and_blocks_fit(void)
{
    uint64_t random = 4;
    elements s = elements_random(70, 3, 64, 2, 1, &random), t = elements_random(6, 20, 4, 16, 0, &random);
    fsi_assembly *a, *b;
    int k;
    for (k = 0; k < 3; k++) s.start[k + 1] = 64 * (k + 1);
    for (k = 0; k < 192; k++) s.vertex[k] = (int)(test_random(&random) * 70);
    s.value = (double *)realloc(s.value, sizeof(double) * (3 * 128 * 128));
    for (k = 0; k < 3 * 128 * 128; k++) s.value[k] = test_random(&random);
    a = assembly_of(&s, NULL);
    b = assembly_of(&t, NULL);
    CHECK(fsi_assembly_matrix(a, s.value) == FSI_OK && fsi_assembly_matrix(b, t.value) == FSI_OK);
    check_against_sum(a, &s);
    check_against_sum(b, &t);
    fsi_assembly_destroy(a);
    fsi_assembly_destroy(b);
    elements_free(&s);
    elements_free(&t);
}

/* To the bit, when no element names a vertex twice. */
static void test_symmetric_elements_make_a_symmetric_matrix(void)
{
    uint64_t random = 5;
    int round, r, e, f, p, q;
    for (round = 0; round < 40; round++) {
        const int b = round % 4 + 1;
        elements s = elements_random(15, 100, 6, b, 0, &random);
        fsi_assembly *a = assembly_of(&s, NULL);
        const fsi_csr *m = &a->matrix;
        elements_mirror(&s);
        CHECK(fsi_assembly_matrix(a, s.value) == FSI_OK);
        for (r = 0; r < m->rows; r++) for (e = m->start[r]; e < m->start[r + 1]; e++) {
            for (f = m->start[m->col[e]]; m->col[f] < r;) f++;
            if (!CHECK(m->col[f] == r)) continue;
            for (p = 0; p < b; p++)
                for (q = 0; q < b; q++) CHECK(m->value[(e * b + p) * b + q] == m->value[(f * b + q) * b + p]);
        }
        fsi_assembly_destroy(a);
        elements_free(&s);
    }
}

static uint64_t matrix_hash(const fsi_assembly *a)
{
    const size_t b = (size_t)a->block, entries = (size_t)a->matrix.start[a->vertices];
    const uint64_t pattern = fsi_hash(a->matrix.col, entries * sizeof(int),
                                      fsi_hash(a->matrix.start, ((size_t)a->vertices + 1) * sizeof(int), 0));
    return fsi_hash(a->matrix.value, entries * b * b * sizeof(double), pattern);
}

/* Whatever was added to the matrix in between; and nothing is allocated. */
static void test_the_pattern_serves_many_sets_of_values(void)
{
    uint64_t random = 6, first;
    elements s = elements_random(300, 900, 4, 3, 1, &random);
    fsi_context c = fsi_default_context();
    fsi_assembly *a;
    double *out = (double *)malloc(sizeof(double) * 900), *other = (double *)malloc(sizeof(double) * s.numbers);
    long before;
    int k;
    for (k = 0; k < (int)s.numbers; k++) other[k] = s.value[k] + 1;
    test_fail_allocator(&c, 0);
    a = assembly_of(&s, &c);
    CHECK(a->bytes == c.bytes);
    for (k = 0; k < 9 * a->matrix.start[300]; k++) CHECK(a->matrix.value[k] == 0);
    CHECK(fsi_assembly_matrix(a, s.value) == FSI_OK);
    first = matrix_hash(a);
    before = test_alloc_count();
    for (k = 0; k < 5; k++) {
        a->matrix.value[17 * k] += 3;
        CHECK(fsi_assembly_matrix(a, other) == FSI_OK && matrix_hash(a) != first);
        CHECK(fsi_assembly_vector(a, s.load, out) == FSI_OK);
        CHECK(fsi_assembly_matrix(a, s.value) == FSI_OK && matrix_hash(a) == first);
    }
    CHECK(test_alloc_count() == before);
    fsi_assembly_destroy(a);
    CHECK(test_live_bytes() == 0);
    free(out);
    free(other);
    elements_free(&s);
}

static void test_any_number_of_threads_gives_the_same_bits(void)
{
    static const int threads[4] = { 0, 1, 2, 5 };
    uint64_t random = 7, want = 0;
    elements s = elements_random(3000, 6000, 5, 3, 1, &random);
    double *out = (double *)malloc(sizeof(double) * 9000);
    int k;
    for (k = 0; k < 8; k++) {
        fsi_context c = fsi_default_context();
        fsi_assembly *a;
        uint64_t hash;
        if (threads[k & 3]) test_threads(&c, threads[k & 3], k >= 4);
        a = assembly_of(&s, &c);
        CHECK(fsi_assembly_matrix(a, s.value) == FSI_OK && fsi_assembly_vector(a, s.load, out) == FSI_OK);
        hash = fsi_hash(out, sizeof(double) * 9000, matrix_hash(a));
        if (k == 0) want = hash;
        CHECK(hash == want);
        fsi_assembly_destroy(a);
    }
    free(out);
    elements_free(&s);
}

/* Each number of each element in turn; those of pinned vertices do not matter. */
static void test_what_is_not_finite_is_traced_to_its_element(void)
{
    uint64_t random = 8, hash;
    elements s = elements_random(12, 14, 4, 2, 1, &random);
    fsi_context c = fsi_default_context();
    fsi_assembly *a = assembly_of(&s, &c);
    double out[24], kept[24], *v = s.value, *l = s.load;
    int e, i, j, harmless = 0;
    CHECK(fsi_assembly_matrix(a, s.value) == FSI_OK && fsi_assembly_vector(a, s.load, out) == FSI_OK);
    a->matrix.value[3] += 1;
    hash = matrix_hash(a);
    memcpy(kept, out, sizeof out);
    for (e = 0; e < 14; e++) {
        const int w = (s.start[e + 1] - s.start[e]) * 2;
        for (i = 0; i < w; i++, l++) {
            const double good = *l;
            const int matters = row_of(&s, e, i) >= 0;
            *l = i % 2 ? test_nan() : test_inf();
            CHECK(fsi_assembly_vector(a, s.load, out) == (matters ? FSI_ERROR_NAN : FSI_OK));
            CHECK(!matters || (c.error.element == e && strstr(c.error.message, "not finite")));
            CHECK(memcmp(out, kept, sizeof out) == 0);
            *l = good;
            for (j = 0; j < w; j++, v++) {
                const double fine = *v;
                const int counts = matters && row_of(&s, e, j) >= 0;
                *v = j % 2 ? test_nan() : -test_inf();
                CHECK(fsi_assembly_matrix(a, s.value) == (counts ? FSI_ERROR_NAN : FSI_OK));
                CHECK(!counts || (c.error.element == e && strstr(c.error.message, "not finite")));
                if (counts) CHECK(matrix_hash(a) == hash);
                else a->matrix.value[3] += 1, CHECK(matrix_hash(a) == hash), harmless++;
                *v = counts ? fine : test_nan(); /* what is pinned stays so, and is not blamed later */
            }
        }
    }
    CHECK(harmless > 20);
    fsi_assembly_destroy(a);
    elements_free(&s);
}

static void test_a_sum_that_overflows_is_refused(void)
{
    static const int start[3] = { 0, 1, 2 }, vertex[2] = { 1, 1 };
    static const double value[2] = { 1.5e308, 1.5e308 };
    fsi_context c = fsi_default_context();
    fsi_assembly_desc d = fsi_assembly_default_desc();
    fsi_assembly *a = NULL;
    double out[2] = { 5, 6 };
    d.context = &c;
    d.vertices = d.elements = 2;
    d.block = 1;
    d.start = start;
    d.vertex = vertex;
    CHECK(fsi_assembly_create(&a, &d) == FSI_OK);
    CHECK(fsi_assembly_matrix(a, value) == FSI_ERROR_NAN && strstr(c.error.message, "vertex 1") &&
          c.error.element == 1);
    CHECK(a->matrix.value[0] == 0 && a->matrix.value[1] == 0);
    CHECK(fsi_assembly_vector(a, value, out) == FSI_ERROR_NAN && out[0] == 5 && out[1] == 6);
    fsi_assembly_destroy(a);
}

static void test_an_empty_assembly_is_a_matrix(void)
{
    static const int nothing[3] = { 0, 0, 0 };
    fsi_assembly_desc d = fsi_assembly_default_desc();
    fsi_assembly *a = NULL;
    double out[15];
    int k;
    CHECK(fsi_assembly_create(&a, &d) == FSI_OK); /* no vertices */
    CHECK(fsi_assembly_matrix(a, NULL) == FSI_OK && fsi_assembly_vector(a, NULL, NULL) == FSI_OK);
    fsi_assembly_destroy(a);
    d.vertices = 5; /* vertices alone, then elements without any */
    for (k = 0; k < 2; k++) {
        d.elements = 2 * k;
        d.start = k ? nothing : NULL;
        CHECK(fsi_assembly_create(&a, &d) == FSI_OK);
        memset(out, 1, sizeof out);
        CHECK(fsi_assembly_matrix(a, NULL) == FSI_OK && fsi_assembly_vector(a, NULL, out) == FSI_OK);
        CHECK(a->matrix.start[5] == 5 && a->matrix.col[4] == 4 && a->matrix.value[44] == 0 && out[0] == 0 &&
              out[14] == 0);
        fsi_assembly_destroy(a);
    }
    fsi_assembly_destroy(NULL);
}

static void test_every_allocation_may_fail(void)
{
    uint64_t random = 9;
    elements s = elements_random(40, 60, 4, 2, 1, &random);
    fsi_status status = FSI_ERROR_MEMORY;
    long k;
    for (k = 1; status == FSI_ERROR_MEMORY && k < 50; k++) {
        fsi_context c = fsi_default_context();
        fsi_assembly *a = NULL;
        s.d.context = &c;
        test_fail_allocator(&c, k);
        status = fsi_assembly_create(&a, &s.d);
        CHECK((status == FSI_OK) == (a != NULL) && (status == FSI_OK || c.error.status == FSI_ERROR_MEMORY));
        fsi_assembly_destroy(a);
        CHECK(test_live_bytes() == 0);
    }
    CHECK(status == FSI_OK && k > 3);
    elements_free(&s);
}

static void refuse(const fsi_assembly_desc *d, fsi_context *c, const char *what, fsi_status status)
{
    fsi_assembly *a = (fsi_assembly *)c;
    CHECK(fsi_assembly_create(&a, d) == status && a == NULL);
    CHECK(what == NULL || (strstr(c->error.message, what) != NULL && c->error.status == status));
}

static void test_bad_elements_are_named(void)
{
    uint64_t random = 10;
    elements s = elements_random(10, 8, 3, 3, 1, &random);
    fsi_context c = fsi_default_context();
    fsi_assembly_desc d, e;
    fsi_assembly *a;
    double x[30];
    int *huge, k, kept;
    s.d.context = &c;
    for (k = 0; k <= 8; k++) s.start[k] = 3 * k;
    d = s.d;
    refuse(NULL, &c, NULL, FSI_ERROR_COOKIE);
    e = d, e.cookie++, refuse(&e, &c, NULL, FSI_ERROR_COOKIE);
    e = d, c.cookie++, refuse(&e, &c, NULL, FSI_ERROR_COOKIE), c.cookie--;
    e = d, e.vertices = -1, refuse(&e, &c, "-1 vertices", FSI_ERROR_ARGUMENT);
    e = d, e.elements = -2, refuse(&e, &c, "-2 elements", FSI_ERROR_ARGUMENT);
    e = d, e.block = 0, refuse(&e, &c, "blocks of 0", FSI_ERROR_ARGUMENT);
    e = d, e.block = 17, refuse(&e, &c, "blocks of 17", FSI_ERROR_ARGUMENT);
    e = d, e.start = NULL, refuse(&e, &c, "start is NULL", FSI_ERROR_ARGUMENT);
    e = d, e.vertex = NULL, refuse(&e, &c, "vertex is NULL", FSI_ERROR_ARGUMENT);
    e = d, e.vertices = 2000000000, e.block = 16, refuse(&e, &c, "int", FSI_ERROR_LIMIT);
    s.start[0] = 1, refuse(&d, &c, "start[0]", FSI_ERROR_ARGUMENT), s.start[0] = 0;
    kept = s.start[4], s.start[4] = s.start[3] - 1, refuse(&d, &c, "element 3 has -1", FSI_ERROR_ARGUMENT);
    s.start[4] = s.start[3] + 65, refuse(&d, &c, "element 3 has 65", FSI_ERROR_ARGUMENT), s.start[4] = kept;
    kept = s.vertex[7], s.vertex[7] = 10, refuse(&d, &c, "element 2 names vertex 10", FSI_ERROR_ARGUMENT);
    s.vertex[7] = -2, refuse(&d, &c, "element 2 names vertex -2", FSI_ERROR_ARGUMENT), s.vertex[7] = kept;
    huge = (int *)malloc(sizeof(int) * 524290); /* 64 x 64 blocks each: 2^31 */
    for (k = 0; k < 524290; k++) huge[k] = 64 * k;
    e = d, e.elements = 524288, e.start = huge, refuse(&e, &c, "2147483648 blocks", FSI_ERROR_LIMIT);
    free(huge);
    CHECK(fsi_assembly_create(NULL, &d) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_assembly_create(&a, &d) == FSI_OK);
    CHECK(fsi_assembly_matrix(NULL, s.value) == FSI_ERROR_COOKIE &&
          fsi_assembly_vector(NULL, s.load, x) == FSI_ERROR_COOKIE);
    CHECK(fsi_assembly_matrix(a, NULL) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "value"));
    CHECK(fsi_assembly_vector(a, NULL, x) == FSI_ERROR_ARGUMENT &&
          fsi_assembly_vector(a, s.load, NULL) == FSI_ERROR_ARGUMENT);
    a->cookie++;
    CHECK(fsi_assembly_matrix(a, s.value) == FSI_ERROR_COOKIE && fsi_assembly_matrix_offset(a, 0) == (size_t)-1);
    a->cookie--;
    fsi_assembly_destroy(a);
    elements_free(&s);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_the_matrix_is_the_sum_of_its_elements);
    RUN(test_the_vector_is_the_sum_of_its_elements);
    RUN(test_elements_lie_where_the_offsets_say);
    RUN(test_the_largest_elements_and_blocks_fit);
    RUN(test_symmetric_elements_make_a_symmetric_matrix);
    RUN(test_the_pattern_serves_many_sets_of_values);
    RUN(test_any_number_of_threads_gives_the_same_bits);
    RUN(test_what_is_not_finite_is_traced_to_its_element);
    RUN(test_a_sum_that_overflows_is_refused);
    RUN(test_an_empty_assembly_is_a_matrix);
    RUN(test_every_allocation_may_fail);
    RUN(test_bad_elements_are_named);
    return TEST_END();
}
