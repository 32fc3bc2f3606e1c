/* fsi_particles.h - particles: all pairs within a radius, lattices that fill a box or a mesh, eight pairs at a time.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_particles.h"
         #include "fsi_particles.h"

   PARTICLES IN A BOX, AND WHO IS NEAR WHOM
      fsi_vec3 x[1000];
      fsi_box3 box;
      fsi_neighbors *near_ones;
      int count;
      box.lo = fsi_v3(0, 0, 0);
      box.hi = fsi_v3(1, 1, 1);
      if (fsi_sample_box(NULL, box, 0.1f, 3, x, 1000, &count) != FSI_OK) return 1;       // 10 x 10 x 10
      if (fsi_neighbors_create(&near_ones, NULL) != FSI_OK) return 1;
      if (fsi_neighbors_build(near_ones, x, count, 0.15f, 3) != FSI_OK) return 1;
      printf("%d particles, %d pairs\n", count, (int)near_ones->pair_count / 2);
      fsi_neighbors_destroy(near_ones);

   WHAT IS IN HERE (search for >>)
      >>neighbours     all pairs within a radius, unbounded domain
      >>lattices       particles that fill a box or a mesh
      >>lanes          pair arithmetic, eight neighbours at a time, and behind it
      >>stages         for fsi's own headers, not for you: the table of a liquid's particles (>>table: add, remove,
                       fill, ids, attributes, filters, copies, save and load), and what they look like (>>markers)
   MACROS: those of fsi.h.
   UNITS: SI.
   PRECISION: positions in fsi_real, lanes in float (FSI_LANES_DOUBLE: double), sums of lanes in double.
*/
#ifndef FSI_PARTICLES_H
#define FSI_PARTICLES_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_shape.h"

/* ---- >>neighbours --------------------------------------------------------------------------------------------- */

/* All pairs of points closer than a radius, over an unbounded domain. Points are sorted by cell (rank space): rank r is
   the caller's point order[r]. The neighbours of rank r are list[first[r]] .. list[first[r] + size[r] - 1], ranks in
   ascending order, without r itself; behind them r is repeated up to the next multiple of FSI_LANES. Symmetric: b is in
   a's list exactly when a is in b's. Coincident points are neighbours. */
typedef struct fsi_neighbors {
    uint32_t cookie;
    fsi_context *context;
    int count;             /* points */
    const int *order;      /* count: rank -> the caller's index; equal input gives equal order, ties in caller's
                              order */
    const int *first;      /* count: offsets into list, multiples of FSI_LANES; there may be gaps between lists */
    const int *list;       /* ranks */
    const int *size;       /* count: neighbours of each rank */
    size_t pair_count;     /* sum of size */
    void *impl;
} fsi_neighbors;

/* An empty search; memory comes from `context` (NULL: malloc). Destroying NULL is fine. */
FSI_API fsi_status fsi_neighbors_create(fsi_neighbors **out, fsi_context *context);
FSI_API void fsi_neighbors_destroy(fsi_neighbors *nb);
/* Finds all pairs with |x_i - x_j| < radius among `count` points; dim is 2 (z is ignored) or 3. The arrays stay valid
   until the next build. Errors: NAN (names the point), ARGUMENT, LIMIT (more than 2^31-1 pairs), MEMORY; then the
   former result stays as it was. */
FSI_API fsi_status fsi_neighbors_build(fsi_neighbors *nb, const fsi_vec3 *x, int count, fsi_real radius, int dim);

/* ---- >>lattices ------------------------------------------------------------------------------------------- */

/* Particles on a cubic lattice (2D: square, z = 0), half a spacing away from box.lo, as many as fit: along each axis
   the number of whole spacings in the box. *count is how many there are; the first `capacity` of them are written to
   `out` (NULL with capacity 0 only counts), x running fastest. Errors: ARGUMENT (empty box, spacing <= 0, dim), NAN,
   LIMIT; context may be NULL. */
FSI_API fsi_status fsi_sample_box(fsi_context *context, fsi_box3 box, fsi_real spacing, int dim, fsi_vec3 *out,
                                  int capacity, int *count);
/* The points of that lattice over the mesh's bounding box that lie at least spacing/2 inside a closed mesh. */
FSI_API fsi_status fsi_sample_mesh(const fsi_mesh *mesh, fsi_real spacing, fsi_vec3 *out, int capacity, int *count);

/* ---- >>lanes: pair arithmetic, eight neighbours at a time (for fsi's own headers) ------------------------------- */

/* Pair loops read neighbours through records of 16 bytes: three coordinates in fixed point and one further number w.
   Differences of fixed-point coordinates are exact and wrap around: the result does not depend on where the scene is,
   pair forces are exactly opposite. FSI_LANES_DOUBLE does all this in double (verification; slower). FSI_NO_SIMD uses
   plain C, with the same bits. */
#if defined(FSI_LANES_DOUBLE)
typedef double fsi__lane;
typedef double fsi__coord;
#define FSI__COORD_UNIT 1.0
#else
typedef float fsi__lane;
typedef int32_t fsi__coord;
#define FSI__COORD_UNIT 3.7252902984619141e-09 /* 2^-28: one step of a coordinate */
#endif
typedef struct fsi__record { fsi__coord x, y, z; fsi__lane w; } fsi__record;
typedef struct fsi__lane4 { fsi__lane x, y, z, w; } fsi__lane4;

#if defined(__SSE2__) && !defined(FSI_NO_SIMD) && !defined(FSI_LANES_DOUBLE) && !defined(__CUDACC__) &&                \
    !defined(__TINYC__)
#if defined(__AVX__)
#define FSI__AVX
#include <immintrin.h>
#else
#define FSI__SSE2
#include <emmintrin.h>
#endif
#endif

/* Loops that are also written for AVX2 are chosen at run time, so that plain -O2 has them: the same operations in the
   same order, so the same bits. */
#if defined(__GNUC__) && defined(__x86_64__) && !defined(FSI_NO_SIMD) && !defined(FSI_LANES_DOUBLE) &&                 \
    !defined(__CUDACC__) && !defined(__TINYC__)
#include <immintrin.h>
#define FSI__AVX2 __attribute__((target("avx2")))
#define FSI__AVX2_FN static inline __attribute__((always_inline, unused, target("avx2")))
#endif

FSI__STRICT_FN_BEGIN

/* A length as a coordinate, modulo the range. */
FSI_FN fsi__coord fsi__to_coord(double x)
{
#if defined(FSI_LANES_DOUBLE)
    return x;
#else
    double t = x * (1 / FSI__COORD_UNIT), turn = 4294967296.0;
    uint32_t u;
    int32_t i;
    t = floor(t + 0.5);
    t -= floor(t / turn) * turn;
    u = (uint32_t)(t < turn ? t : 0);
    memcpy(&i, &u, sizeof i);
    return i;
#endif
}

/* a - b in coordinate steps: exact before it is rounded to a lane. */
FSI_FN fsi__lane fsi__coord_diff(fsi__coord a, fsi__coord b)
{
#if defined(FSI_LANES_DOUBLE)
    return a - b;
#else
    uint32_t u = (uint32_t)a - (uint32_t)b;
    int32_t i;
    memcpy(&i, &u, sizeof i);
    return (fsi__lane)i;
#endif
}

/* Eight lanes. Every build computes the same bits: each operation is IEEE, and sums are folded in one order. */
#if defined(FSI__AVX)
typedef __m256 fsi__f8;
FSI_FN fsi__f8 fsi__f8_set(fsi__lane a) { return _mm256_set1_ps(a); }
FSI_FN fsi__f8 fsi__f8_add(fsi__f8 a, fsi__f8 b) { return _mm256_add_ps(a, b); }
FSI_FN fsi__f8 fsi__f8_sub(fsi__f8 a, fsi__f8 b) { return _mm256_sub_ps(a, b); }
FSI_FN fsi__f8 fsi__f8_mul(fsi__f8 a, fsi__f8 b) { return _mm256_mul_ps(a, b); }
FSI_FN fsi__f8 fsi__f8_div(fsi__f8 a, fsi__f8 b) { return _mm256_div_ps(a, b); }
FSI_FN fsi__f8 fsi__f8_max(fsi__f8 a, fsi__f8 b) { return _mm256_max_ps(a, b); }
FSI_FN fsi__f8 fsi__f8_sqrt(fsi__f8 a) { return _mm256_sqrt_ps(a); }
FSI_FN fsi__f8 fsi__f8_if_greater(fsi__f8 a, fsi__f8 b, fsi__f8 c)
{
    return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ), c);
}
FSI_FN fsi__lane fsi__f8_sum(fsi__f8 a)
{
    fsi__lane t[4];
    _mm_storeu_ps(t, _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)));
    return (t[0] + t[2]) + (t[1] + t[3]);
}
/* Columns of eight rows of four floats: rows 0-3 go to the low half, 4-7 to the high half. */
FSI_FN void fsi__f8_columns(const float *rows, const int *index, fsi__f8 *x, fsi__f8 *y, fsi__f8 *z, fsi__f8 *w)
{
#define FSI__ROWS(k)                                                                                                   \
    _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(rows + 4 * (size_t)index[k])),                            \
                         _mm_loadu_ps(rows + 4 * (size_t)index[k + 4]), 1)
    __m256 a = FSI__ROWS(0), b = FSI__ROWS(1), c = FSI__ROWS(2), d = FSI__ROWS(3);
    __m256 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d), AB = _mm256_unpackhi_ps(a, b),
           CD = _mm256_unpackhi_ps(c, d);
#undef FSI__ROWS
    *x = _mm256_shuffle_ps(ab, cd, 0x44);
    *y = _mm256_shuffle_ps(ab, cd, 0xee);
    *z = _mm256_shuffle_ps(AB, CD, 0x44);
    *w = _mm256_shuffle_ps(AB, CD, 0xee);
}
FSI_FN fsi__f8 fsi__f8_apart(fsi__f8 coordinate, int32_t at)
{
    __m256i i = _mm256_castps_si256(coordinate);
    __m128i lo = _mm_sub_epi32(_mm256_castsi256_si128(i), _mm_set1_epi32(at)),
            hi = _mm_sub_epi32(_mm256_extractf128_si256(i, 1), _mm_set1_epi32(at));
    return _mm256_cvtepi32_ps(_mm256_insertf128_si256(_mm256_castsi128_si256(lo), hi, 1));
}
#elif defined(FSI__SSE2)
typedef struct fsi__f8 { __m128 a, b; } fsi__f8;
FSI_FN fsi__f8 fsi__f8_make(__m128 a, __m128 b) { fsi__f8 r; r.a = a; r.b = b; return r; }
FSI_FN fsi__f8 fsi__f8_set(fsi__lane a) { return fsi__f8_make(_mm_set1_ps(a), _mm_set1_ps(a)); }
FSI_FN fsi__f8 fsi__f8_add(fsi__f8 a, fsi__f8 b) { return fsi__f8_make(_mm_add_ps(a.a, b.a), _mm_add_ps(a.b, b.b)); }
FSI_FN fsi__f8 fsi__f8_sub(fsi__f8 a, fsi__f8 b) { return fsi__f8_make(_mm_sub_ps(a.a, b.a), _mm_sub_ps(a.b, b.b)); }
FSI_FN fsi__f8 fsi__f8_mul(fsi__f8 a, fsi__f8 b) { return fsi__f8_make(_mm_mul_ps(a.a, b.a), _mm_mul_ps(a.b, b.b)); }
FSI_FN fsi__f8 fsi__f8_div(fsi__f8 a, fsi__f8 b) { return fsi__f8_make(_mm_div_ps(a.a, b.a), _mm_div_ps(a.b, b.b)); }
FSI_FN fsi__f8 fsi__f8_max(fsi__f8 a, fsi__f8 b) { return fsi__f8_make(_mm_max_ps(a.a, b.a), _mm_max_ps(a.b, b.b)); }
FSI_FN fsi__f8 fsi__f8_sqrt(fsi__f8 a) { return fsi__f8_make(_mm_sqrt_ps(a.a), _mm_sqrt_ps(a.b)); }
FSI_FN fsi__f8 fsi__f8_if_greater(fsi__f8 a, fsi__f8 b, fsi__f8 c)
{
    return fsi__f8_make(_mm_and_ps(_mm_cmpgt_ps(a.a, b.a), c.a), _mm_and_ps(_mm_cmpgt_ps(a.b, b.b), c.b));
}
FSI_FN fsi__lane fsi__f8_sum(fsi__f8 a)
{
    fsi__lane t[4];
    _mm_storeu_ps(t, _mm_add_ps(a.a, a.b));
    return (t[0] + t[2]) + (t[1] + t[3]);
}
FSI_FN void fsi__f8_columns(const float *rows, const int *index, fsi__f8 *x, fsi__f8 *y, fsi__f8 *z, fsi__f8 *w)
{
#define FSI__ROW(k) _mm_loadu_ps(rows + 4 * (size_t)index[k])
    __m128 a = FSI__ROW(0), b = FSI__ROW(1), c = FSI__ROW(2), d = FSI__ROW(3), e = FSI__ROW(4), f = FSI__ROW(5),
           g = FSI__ROW(6), h = FSI__ROW(7);
#undef FSI__ROW
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _MM_TRANSPOSE4_PS(e, f, g, h);
    *x = fsi__f8_make(a, e);
    *y = fsi__f8_make(b, f);
    *z = fsi__f8_make(c, g);
    *w = fsi__f8_make(d, h);
}
FSI_FN fsi__f8 fsi__f8_apart(fsi__f8 c, int32_t at)
{
    const __m128i i = _mm_set1_epi32(at);
    return fsi__f8_make(_mm_cvtepi32_ps(_mm_sub_epi32(_mm_castps_si128(c.a), i)),
                        _mm_cvtepi32_ps(_mm_sub_epi32(_mm_castps_si128(c.b), i)));
}
#else
typedef struct fsi__f8 { fsi__lane v[8]; } fsi__f8;
#define FSI__F8(expression) fsi__f8 r; int k; for (k = 0; k < 8; k++) r.v[k] = (expression); return r
FSI_FN fsi__f8 fsi__f8_set(fsi__lane a) { FSI__F8(a); }
FSI_FN fsi__f8 fsi__f8_add(fsi__f8 a, fsi__f8 b) { FSI__F8(a.v[k] + b.v[k]); }
FSI_FN fsi__f8 fsi__f8_sub(fsi__f8 a, fsi__f8 b) { FSI__F8(a.v[k] - b.v[k]); }
FSI_FN fsi__f8 fsi__f8_mul(fsi__f8 a, fsi__f8 b) { FSI__F8(a.v[k] * b.v[k]); }
FSI_FN fsi__f8 fsi__f8_div(fsi__f8 a, fsi__f8 b) { FSI__F8(a.v[k] / b.v[k]); }
FSI_FN fsi__f8 fsi__f8_max(fsi__f8 a, fsi__f8 b) { FSI__F8(a.v[k] > b.v[k] ? a.v[k] : b.v[k]); }
#if defined(FSI_LANES_DOUBLE)
FSI_FN fsi__f8 fsi__f8_sqrt(fsi__f8 a) { FSI__F8(sqrt(a.v[k])); }
#else
FSI_FN fsi__f8 fsi__f8_sqrt(fsi__f8 a) { FSI__F8(sqrtf(a.v[k])); }
#endif
FSI_FN fsi__f8 fsi__f8_if_greater(fsi__f8 a, fsi__f8 b, fsi__f8 c) { FSI__F8(a.v[k] > b.v[k] ? c.v[k] : 0); }
FSI_FN fsi__lane fsi__f8_sum(fsi__f8 a)
{
    return ((a.v[0] + a.v[4]) + (a.v[2] + a.v[6])) + ((a.v[1] + a.v[5]) + (a.v[3] + a.v[7]));
}
#endif

/* Difference of eight records to `at` in coordinate steps, and their numbers w. */
FSI_FN void fsi__f8_gather(const fsi__record *records, const int *index, const fsi__record *at, fsi__f8 *dx,
                           fsi__f8 *dy, fsi__f8 *dz, fsi__f8 *w)
{
#if defined(FSI__AVX) || defined(FSI__SSE2)
    fsi__f8_columns((const float *)(const void *)records, index, dx, dy, dz, w);
    *dx = fsi__f8_apart(*dx, at->x);
    *dy = fsi__f8_apart(*dy, at->y);
    *dz = fsi__f8_apart(*dz, at->z);
#else
    int k;
    for (k = 0; k < 8; k++) {
        const fsi__record *p = records + index[k];
        dx->v[k] = fsi__coord_diff(p->x, at->x);
        dy->v[k] = fsi__coord_diff(p->y, at->y);
        dz->v[k] = fsi__coord_diff(p->z, at->z);
        w->v[k] = p->w;
    }
#endif
}

#if defined(FSI__AVX2)
FSI_FN int fsi__has_avx2(void) { return __builtin_cpu_supports("avx2") != 0; }

/* Records a and b: a in the low half. */
FSI__AVX2_FN __m256 fsi__avx2_rows(const fsi__record *a, const fsi__record *b)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float *)(const void *)a)),
                                _mm_loadu_ps((const float *)(const void *)b), 1);
}
FSI__AVX2_FN __m256 fsi__avx2_apart(__m256 coordinate, int32_t at)
{
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_castps_si256(coordinate), _mm256_set1_epi32(at)));
}

/* fsi__f8_gather. */
FSI__AVX2_FN void fsi__avx2_gather(const fsi__record *records, const int *index, const fsi__record *at, __m256 *dx,
                                   __m256 *dy, __m256 *dz, __m256 *w)
{
    const __m256 a = fsi__avx2_rows(records + index[0], records + index[4]),
                 b = fsi__avx2_rows(records + index[1], records + index[5]),
                 c = fsi__avx2_rows(records + index[2], records + index[6]),
                 d = fsi__avx2_rows(records + index[3], records + index[7]);
    const __m256 xy = _mm256_unpacklo_ps(a, b), zw = _mm256_unpackhi_ps(a, b), xy2 = _mm256_unpacklo_ps(c, d),
                 zw2 = _mm256_unpackhi_ps(c, d);
    *dx = fsi__avx2_apart(_mm256_shuffle_ps(xy, xy2, 0x44), at->x);
    *dy = fsi__avx2_apart(_mm256_shuffle_ps(xy, xy2, 0xee), at->y);
    *dz = fsi__avx2_apart(_mm256_shuffle_ps(zw, zw2, 0x44), at->z);
    *w = _mm256_shuffle_ps(zw, zw2, 0xee);
}

/* fsi__f8_sum; and of four at once. */
FSI__AVX2_FN __m128 fsi__avx2_halves(__m256 a)
{
    return _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
}
FSI__AVX2_FN float fsi__avx2_sum(__m256 a)
{
    const __m128 t = fsi__avx2_halves(a), pair = _mm_add_ps(t, _mm_movehl_ps(t, t));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps(pair, pair, 1)));
}
FSI__AVX2_FN __m128 fsi__avx2_sums(__m256 x, __m256 y, __m256 z, __m256 w)
{
    __m128 a = fsi__avx2_halves(x), b = fsi__avx2_halves(y), c = fsi__avx2_halves(z), d = fsi__avx2_halves(w);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    return _mm_add_ps(_mm_add_ps(a, c), _mm_add_ps(b, d));
}
#endif

/* Eight vectors, by component, and their numbers w. */
FSI_FN void fsi__f8_gather_four(const fsi__lane4 *from, const int *index, fsi__f8 *x, fsi__f8 *y, fsi__f8 *z,
                                fsi__f8 *w)
{
#if defined(FSI__AVX) || defined(FSI__SSE2)
    fsi__f8_columns(&from->x, index, x, y, z, w);
#else
    int k;
    for (k = 0; k < 8; k++) {
        x->v[k] = from[index[k]].x;
        y->v[k] = from[index[k]].y;
        z->v[k] = from[index[k]].z;
        w->v[k] = from[index[k]].w;
    }
#endif
}
FSI_FN void fsi__f8_gather_vectors(const fsi__lane4 *from, const int *index, fsi__f8 *x, fsi__f8 *y, fsi__f8 *z)
{
    fsi__f8 w;
    fsi__f8_gather_four(from, index, x, y, z, &w);
}

/* Sums of lanes in double: where opposite pair forces must cancel to rounding of double. Folded as fsi__f8_sum
   folds. */
#if defined(FSI__AVX)
typedef struct fsi__d8 { __m256d a, b; } fsi__d8;
FSI_FN fsi__d8 fsi__d8_zero(void) { fsi__d8 r; r.a = r.b = _mm256_setzero_pd(); return r; }
FSI_FN fsi__d8 fsi__d8_add(fsi__d8 s, fsi__f8 f)
{
    s.a = _mm256_add_pd(s.a, _mm256_cvtps_pd(_mm256_castps256_ps128(f)));
    s.b = _mm256_add_pd(s.b, _mm256_cvtps_pd(_mm256_extractf128_ps(f, 1)));
    return s;
}
FSI_FN double fsi__d8_sum(fsi__d8 s)
{
    double t[4];
    _mm256_storeu_pd(t, _mm256_add_pd(s.a, s.b));
    return (t[0] + t[2]) + (t[1] + t[3]);
}
#else
typedef struct fsi__d8 { double v[8]; } fsi__d8;
FSI_FN fsi__d8 fsi__d8_zero(void) { fsi__d8 r; int k; for (k = 0; k < 8; k++) r.v[k] = 0; return r; }
FSI_FN fsi__d8 fsi__d8_add(fsi__d8 s, fsi__f8 f)
{
    int k;
#if defined(FSI__SSE2)
    float t[8];
    _mm_storeu_ps(t, f.a);
    _mm_storeu_ps(t + 4, f.b);
    for (k = 0; k < 8; k++) s.v[k] += (double)t[k];
#else
    for (k = 0; k < 8; k++) s.v[k] += (double)f.v[k];
#endif
    return s;
}
FSI_FN double fsi__d8_sum(fsi__d8 s)
{
    return ((s.v[0] + s.v[4]) + (s.v[2] + s.v[6])) + ((s.v[1] + s.v[5]) + (s.v[3] + s.v[7]));
}
#endif

FSI_FN fsi__lane fsi__lane_dot(const fsi__lane a[3], fsi__lane x, fsi__lane y, fsi__lane z)
{
    return a[0] * x + a[1] * y + a[2] * z;
}
FSI_FN fsi__lane fsi__lane_norm2(const fsi__lane a[3]) { return fsi__lane_dot(a, a[0], a[1], a[2]); }

/* Vectors in lanes: a triple and one number w; results have the w of a. */
FSI_FN fsi__lane4 fsi__lane4_make(double x, double y, double z)
{
    fsi__lane4 a;
    a.x = (fsi__lane)x;
    a.y = (fsi__lane)y;
    a.z = (fsi__lane)z;
    a.w = 0;
    return a;
}

FSI_FN fsi__lane4 fsi__lane4_madd(fsi__lane4 a, fsi__lane s, fsi__lane4 b) /* a + s b */
{
    a.x += s * b.x;
    a.y += s * b.y;
    a.z += s * b.z;
    return a;
}

FSI_FN fsi__lane4 fsi__lane4_scale(fsi__lane4 a, fsi__lane s)
{
    a.x *= s;
    a.y *= s;
    a.z *= s;
    return a;
}

FSI_FN fsi__lane4 fsi__lane4_from(const fsi__lane a[3])
{
    return fsi__lane4_make((double)a[0], (double)a[1], (double)a[2]);
}
FSI_FN fsi__lane4 fsi__lane4_of(fsi_vec3 v) { return fsi__lane4_make((double)v.x, (double)v.y, (double)v.z); }
FSI_FN fsi_vec3 fsi__lane4_v3(fsi__lane4 a) { return fsi_v3((fsi_real)a.x, (fsi_real)a.y, (fsi_real)a.z); }
FSI_FN double fsi__lane4_dot(fsi__lane4 a, fsi__lane4 b)
{
    return (double)a.x * (double)b.x + (double)a.y * (double)b.y + (double)a.z * (double)b.z;
}
FSI_FN fsi__lane fsi__lane4_norm(fsi__lane4 a) { return (fsi__lane)sqrt(fsi__lane4_dot(a, a)); }

FSI_FN void fsi__lanes_to_doubles(double *out, const fsi__lane *a)
{
    out[0] = (double)a[0];
    out[1] = (double)a[1];
    out[2] = (double)a[2];
}

/* A position as coordinates, in units of 1/per_h. */
FSI_FN fsi__record fsi__record_at(fsi_vec3 x, double per_h)
{
    fsi__record r;
    r.x = fsi__to_coord((double)x.x * per_h);
    r.y = fsi__to_coord((double)x.y * per_h);
    r.z = fsi__to_coord((double)x.z * per_h);
    r.w = 0;
    return r;
}

/* Room that a list of `size` neighbours takes: whole groups of lanes. */
FSI_FN int fsi__padded(int size) { return (size + FSI_LANES - 1) / FSI_LANES * FSI_LANES; }

FSI_FN fsi__f8 fsi__f8_dot(fsi__f8 ax, fsi__f8 ay, fsi__f8 az, fsi__f8 bx, fsi__f8 by, fsi__f8 bz)
{
    return fsi__f8_add(fsi__f8_add(fsi__f8_mul(ax, bx), fsi__f8_mul(ay, by)), fsi__f8_mul(az, bz));
}

/* Sums of vectors, and of a number, over neighbours. */
typedef struct fsi__lane_sums { fsi__f8 x, y, z, d; } fsi__lane_sums;

FSI_FN void fsi__add_weighted(fsi__lane_sums *sum, fsi__f8 w, fsi__f8 x, fsi__f8 y, fsi__f8 z)
{
    sum->x = fsi__f8_add(sum->x, fsi__f8_mul(w, x));
    sum->y = fsi__f8_add(sum->y, fsi__f8_mul(w, y));
    sum->z = fsi__f8_add(sum->z, fsi__f8_mul(w, z));
}

FSI_FN fsi__lane_sums fsi__no_lane_sums(void)
{
    fsi__lane_sums sum;
    sum.x = sum.y = sum.z = sum.d = fsi__f8_set(0);
    return sum;
}

FSI_FN fsi__lane4 fsi__fold(const fsi__lane_sums *sum)
{
    return fsi__lane4_make((double)fsi__f8_sum(sum->x), (double)fsi__f8_sum(sum->y), (double)fsi__f8_sum(sum->z));
}

FSI__STRICT_FN_END

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------- */

/* Largest absolute coordinate of a vector; infinite if one is not finite. */
FSI__HOST_FN double fsi__largest_axis(fsi_vec3 v)
{
    const double size = fmax(fmax(fabs((double)v.x), fabs((double)v.y)), fabs((double)v.z));
    return fsi_v3_is_finite(v) ? size : HUGE_VAL;
}

/* Sorts without making lists: nb->order as fsi_neighbors_build makes it. */
FSI_API fsi_status fsi__neighbors_sort(fsi_neighbors *nb, const fsi_vec3 *x, int count, fsi_real radius, int dim);
/* Called by fsi__neighbors_build_with, in its parallel loop, for ranks begin .. end-1 of each chunk (perhaps twice),
   and once before with an empty range. Chunks begin at multiples of 8; order: the new nb->order. */
typedef void fsi__ranks_fn(void *arg, const int *order, int begin, int end);
/* fsi_neighbors_build that also calls `also` (NULL: none). */
FSI_API fsi_status fsi__neighbors_build_with(fsi_neighbors *nb, const fsi_vec3 *x, int count, fsi_real radius, int dim,
                                             fsi__ranks_fn *also, void *arg);

FSI_API double fsi__longest(const fsi_vec3 *v, int n); /* length of the longest of n vectors, 0 without any */

/* The table of a liquid's particles: arrays with a row for each particle, some shown by the liquid's own struct, some
   kept in its impl, which grow, shrink and are saved together.

      position   velocity   force   id   filter   density ...      columns, in the order of a state
        row 0
        row 1      ids grow along the rows and are never used twice: equal ids, equal particles
        ...
        row *count - 1                  behind it, up to *capacity, rows may hold anything

   The owner sets the first block, whose addresses must not change, enters its columns, and frees them at the end. */
enum {
    FSI__COLUMN_FOUND,   /* result of the last step: not saved */
    FSI__COLUMN_ANY,     /* saved, any value */
    FSI__COLUMN_VECTOR,  /* saved: fsi_vec3, no coordinate beyond `most`: LIMIT */
    FSI__COLUMN_LENGTH,  /* saved: fsi_vec3 no longer than `most` */
    FSI__COLUMN_REAL,    /* saved: fsi_real, `least` to `most` */
    FSI__COLUMN_FLOAT,   /* the same, float */
    FSI__COLUMN_SUM,     /* saved: float, a sum over particles: 0 to one more than there are */
    FSI__COLUMN_ID       /* saved: uint32_t, grows from row to row and stays below `next` */
};
typedef struct fsi__particle_column {
    const char *name;    /* in messages: "its position" */
    int kind;
    double least, most;  /* range of the values in a state */
    void *shown;         /* address of a pointer to const that shows the array to the user; NULL: none */
} fsi__particle_column;

#define FSI__PARTICLE_COLUMNS 16
typedef struct fsi__particles {
    fsi_context *context;
    int dim, attribute_count;
    fsi_real dx;                  /* spacing [m] */
    double fastest;               /* [m/s]: faster particles are not added */
    const int *most;              /* particles, 0: no limit */
    int *count, *capacity;        /* rows in use; rows that there is memory for */
    fsi_vec3 **position, **velocity;
    uint32_t **id, **filter;      /* filter: NULL where emitters' filters are not used */
    fsi_real **attribute;         /* count * attribute_count; its array stays NULL where there are none */
    int column_count;
    uint64_t next;                /* id of the next particle */
    fsi__column column[FSI__PARTICLE_COLUMNS];
    fsi__particle_column about[FSI__PARTICLE_COLUMNS];
} fsi__particles;

/* Begins a table, which must be all zeros: sets these of the first block; the owner sets the others. */
FSI_API void fsi__particles_start(fsi__particles *t, fsi_context *context, int dim, int attribute_count, fsi_real dx,
    const int *most);
/* Enters a column: `array` is the address of the pointer to its array, whose rows take `size` bytes; 0: no column. */
FSI_API void fsi__particles_column(fsi__particles *t, const char *name, int kind, void *array, size_t size,
    double least, double most, void *shown);
/* Frees the arrays of all columns; a table that was only started is fine. */
FSI_API void fsi__particles_free(fsi__particles *t);
/* Makes room for `rows` rows, in all or none of the columns. Arrays may move. Errors: MEMORY. */
FSI_API fsi_status fsi__particles_reserve(fsi__particles *t, const char *fn, int rows);
/* Room for all particles that emitters may add: `rows` rows in all, `ids` of them new. Errors: LIMIT, MEMORY. */
FSI_API fsi_status fsi__particles_room_for_sources(fsi__particles *t, const char *fn, double rows, double ids);
/* Appends particles with the next ids; velocities NULL: at rest; filter all ones, all else 0. Then *count has grown,
   and the owner fills what does not start at 0. Errors: ARGUMENT, NAN, LIMIT, MEMORY; then nothing has changed. */
FSI_API fsi_status fsi__particles_add(fsi__particles *t, const char *fn, const fsi_vec3 *positions,
    const fsi_vec3 *velocities, int count);
/* Sets row k, which may lie beyond the count, to these values and zeros; attributes NULL: zeros. */
FSI_API void fsi__particles_new_row(fsi__particles *t, int k, fsi_vec3 x, fsi_vec3 velocity, uint32_t id,
    uint32_t filter, const fsi_real *attributes);
/* Removes the rows i with gone[i] != 0 of the first `rows`; the others keep their order and are the new count. */
FSI_API void fsi__particles_compact(fsi__particles *t, int rows, const unsigned char *gone);
/* The remove function of a liquid's API. */
FSI_API fsi_status fsi__particles_remove(fsi__particles *t, const char *fn, const unsigned char *gone);

/* One field that can be copied out: the one of numbers, floats and bytes that is not NULL; width 0: no such field. */
typedef struct fsi__export {
    const fsi_real *numbers;
    const float *floats;
    const unsigned char *bytes;
    int width;
    fsi_real unit;
} fsi__export;
FSI_FN fsi__export fsi__export_of(const fsi_real *numbers, const unsigned char *bytes, int width, fsi_real unit)
{
    fsi__export f;
    f.numbers = numbers;
    f.floats = NULL;
    f.bytes = bytes;
    f.width = width;
    f.unit = unit;
    return f;
}
FSI_FN fsi__export fsi__export_of_floats(const float *floats)
{
    fsi__export f = fsi__export_of(NULL, NULL, 1, 1);
    f.floats = floats;
    return f;
}
FSI_FN fsi_real fsi__export_value(const fsi__export *f, size_t k)
{
    return f->numbers ? f->numbers[k] : (f->floats ? (fsi_real)f->floats[k] : f->bytes[k]);
}
FSI_FN fsi__export fsi__export_of_vectors(const fsi_vec3 *v)
{
    return fsi__export_of((const fsi_real *)(const void *)v, NULL, 3, 1);
}
/* The copy function of a liquid's API: field `which` of `known`, in its unit; field 0: positions. */
FSI_API fsi_status fsi__particles_copy(const fsi__particles *t, const char *fn, int which, const fsi__export *fields,
    int known, fsi_vec3 origin, float *out, int stride);
/* Particles as points of their size, from blue (no pressure) to red (the highest). */
FSI_API void fsi__particles_draw(const fsi__particles *t, fsi__export pressure, const fsi_debug_draw *draw);

/* Head of a liquid's state: load makes room for `count` particles before it reads the rest, and refuses the state of a
   liquid with other parameters. No padding. */
typedef struct fsi__liquid_head { int64_t count, dim, attributes, obstacles, emitters, sinks; double spacing;
    } fsi__liquid_head;
/* The head of this table, for saving. */
FSI_API fsi__liquid_head fsi__particles_head(const fsi__particles *t, int obstacles, int emitters, int sinks);
/* Compares the head of a state with the liquid's own and with the number of bytes that follow, `rest` of them without
   rows. Errors: FORMAT. */
FSI_API fsi_status fsi__particles_check_head(const fsi__particles *t, const char *fn, const fsi__liquid_head *head,
    const fsi__liquid_head *own, size_t rest, const fsi__stream *st);
FSI_API void fsi__particles_state(fsi__stream *st, fsi__particles *t); /* the saved columns, of *count rows */
/* Checks the values of the columns, of `count` rows, that the stream reads next. `offset` is added to positions; next:
   the id of the next particle. Errors: NAN, FORMAT, LIMIT; name the particle. */
FSI_API fsi_status fsi__particles_check_state(const fsi__particles *t, const char *fn, fsi__stream *st, int64_t count,
    uint64_t next, fsi_vec3 offset);
/* Bytes in a state before the column of `array` (address of the pointer); NULL: of all columns. */
FSI_API size_t fsi__particles_bytes(const fsi__particles *t, const void *array, int64_t count);

/* ---- >>markers: spray, foam and bubbles (for fsi's own headers) ------------------------------

   Ihmsen et al., "Unified spray, foam and air bubbles for particle-based fluids" (2012), with W(q) = 1 - q:
      trapped air    v_diff = sum_j |v_ij| (1 - v^_ij . x^_ij) W      factor 2 for approaching neighbours, 0 for leaving
      wave crest     kappa  = sum_j (1 - n^_i . n^_j) W       over neighbours behind i's tangent plane, v^.n^ >= 0.6
   and the foam from both: Phi(v^2/2) (Phi(v_diff) + Phi(kappa)), Phi from 0 at a quantity's minimum to 1 at its
   maximum. The sums are divided by sum W in the bulk of the liquid, so that thresholds do not depend on dimension and
   support, and v_diff is a speed. Normals are -sum x^_ji (1-q)^2; where they are shorter than
   0.4 of that of a flat surface there is no surface and no crest. */
enum { FSI__IS_LIQUID, FSI__IS_SPRAY, FSI__IS_FOAM, FSI__IS_BUBBLE };

/* Input and results of the classification; all arrays in rank order. */
typedef struct fsi__foam {
    int dim;
    double ratio;                       /* H over the spacing */
    const int *first, *size, *list;     /* neighbours, padded */
    const fsi__record *place;           /* in units of H */
    const fsi__lane4 *velocity;         /* [m/s] */
    fsi__lane4 *normal;                 /* unit normal, 0 without a surface */
    fsi__lane4 *found;                  /* x: trapped air [m/s], y: neighbours */
    fsi_real air[2], crest[2], energy[2]; /* least and most: trapped air [m/s], crests, v^2/2 [J/kg] */
} fsi__foam;
FSI_API void fsi__find_air(const fsi__foam *f, int r);              /* normal and found of a rank */
/* Class of the particle; *aeration: how much foam it generates, 0 to 1. After fsi__find_air of all ranks. */
FSI_API int fsi__find_marker(const fsi__foam *f, int r, fsi_real *aeration);

typedef int fsi__free_fn(const void *simulator, fsi_vec3 x); /* may there be a particle at x? */
/* Adds a particle; a status other than FSI_OK ends the fill. */
typedef fsi_status fsi__site_fn(void *simulator, fsi_vec3 x, fsi_vec3 velocity);
/* A shape that is filled with a lattice of spacing dx: a box, from its corner lo on; a sphere, around its centre;
   what is at least dx/2 inside a closed mesh (of a container: in its liquid), from the corner of its box on. */
typedef enum fsi__fill_kind { FSI__FILL_BOX, FSI__FILL_SPHERE, FSI__FILL_MESH } fsi__fill_kind;
typedef struct fsi__fill {
    const char *function;
    fsi__fill_kind kind;
    const fsi_mesh *mesh;     /* of FSI__FILL_MESH, as the caller gave it */
    fsi_shape shape;
    fsi_vec3 velocity;        /* of the new particles [m/s] */
    fsi_box3 clip;            /* sites outside are skipped; fsi_box3_empty: no bounds */
    fsi__free_fn *is_free;    /* may there be a particle at x? */
    fsi__site_fn *add;
    void *simulator;
} fsi__fill;
/* Fills of a box, a sphere and a closed mesh, with the velocity [m/s] of the new particles; the caller sets is_free,
   add and simulator, and clip if there are bounds. fn: the function that errors name. */
FSI_API fsi__fill fsi__fill_box(const char *fn, fsi_box3 box, fsi_vec3 velocity);
FSI_API fsi__fill fsi__fill_sphere(const char *fn, fsi_vec3 center, fsi_real radius, fsi_vec3 velocity);
FSI_API fsi__fill fsi__fill_mesh(const char *fn, const fsi_mesh *mesh, fsi_vec3 velocity);
/* Calls add for every free site that is at least 0.6 dx from all present particles, x fastest; warns when there is
   none. *added (NULL is fine): how many. Errors: add's, COOKIE, NAN, ARGUMENT (the shape holds no site), MESH, LIMIT,
   MEMORY; then nothing has changed. */
FSI_API fsi_status fsi__particles_fill(fsi__particles *t, const fsi__fill *fill, int *added);
/* The region that a liquid fills: the inside of a closed mesh; for a container, the outside of its solid. */
FSI_API fsi_shape fsi__shape_of_liquid(const fsi_mesh *mesh);
/* Is x at least dx/2 inside the shape, up to rounding, so that a box holds all sites that fit? hint: the last closest
   face, -1 at first. */
FSI_API int fsi__is_well_inside(const fsi_shape *shape, fsi_vec3 x, fsi_real dx, int *hint);

/* Cells are cubes a hair wider than the radius. Points are radix-sorted by (z, y, x) of their cell, so that a row of
   cells along x is one run of ranks, and so are any three adjacent cells of a row:

        row (y+1):  . . . [a b c] . .        the 27 cells around a point are 9 runs, one for each
        row (y)  :  . . . [d * f] . .        neighbouring row, found by binary search among the rows
        row (y-1):  . . . [g h i] . .        that exist: empty space costs nothing, however large.

   Cell coordinates count from the median point and are clamped to +-2^20: clamping keeps cells that were adjacent
   adjacent, so that far outliers are slow at worst, never wrong. Distances are tested in float, relative to the cell;
   pairs within rounding of the radius are tested again with the caller's numbers. */
#define FSI__NB_GRAIN 1024     /* ranks a chunk */
#define FSI__NB_TILE 512       /* candidates tested at once */
typedef struct fsi__nb_row {
    int y, z;   /* cell coordinates */
    int begin;  /* first rank */
} fsi__nb_row;

/* One build. Arrays of `count` unless said otherwise. */
typedef struct fsi__nb_build {
    const fsi_vec3 *x;     /* the caller's points */
    int count, dim, row_count, chunk_count;
    double origin[3], inv_cell;
    fsi_real radius2;
    uint64_t *key, *key2;
    int *order, *order2, *cell_x, *first, *size;
    fsi_vec3 *sorted;      /* x[order[r]] */
    fsi__nb_row *row;      /* row_count + 1 */
    size_t *need, *base;   /* chunk_count (+1): list entries a chunk needs, where its lists start */
    int *list;
    int bits[3], low[3];   /* key layout: bits a coordinate, its lowest value */
    fsi__ranks_fn *also;   /* called for the ranks of a chunk with their lists; NULL: none */
    void *arg;
} fsi__nb_build;

/* The runs of ranks that may hold neighbours of one cell. */
typedef struct fsi__nb_runs {
    int count, end[9];           /* rows around this one: where they end */
    int begin[9], stop[9];       /* ranks of cells x-1 .. x+1, moving along with x */
} fsi__nb_runs;

/* Candidates of one cell, relative to `at`. */
typedef struct fsi__nb_tile {
    float x[FSI__NB_TILE], y[FSI__NB_TILE], z[FSI__NB_TILE]; /* behind `count` anything */
    int rank[FSI__NB_TILE];
    int hit[FSI__NB_TILE];
    int count;
    int shift;  /* the cell's own points: rank + shift is their index in the tile */
} fsi__nb_tile;

/* Appends rank i's neighbours among the tile to list + m (as far as `room` goes) and returns the new m. `exact`: the
   float test cannot be trusted here. */
FSI_API size_t fsi__nb_test(const fsi__nb_build *b, fsi__nb_tile *tile, int i, fsi_vec3 at, int exact, int *list,
                            size_t m, size_t room);
/* Moves the runs on to the cells x - 1 .. x + 1; returns how many candidates they hold. */
FSI_API int fsi__nb_advance(const fsi__nb_build *b, int x, fsi__nb_runs *runs);
/* Is a rank's cell so close to the clamped range that the float test is not reliable? */
FSI_API int fsi__nb_clamped(const fsi__nb_build *b, int r);
FSI_API void fsi__nb_layout(fsi__nb_build *b, fsi__arena *a); /* its arrays, for b->count points */
/* Copies candidates number from .. from+TILE-1 of the runs, those around rank i. */
FSI_API void fsi__nb_load(const fsi__nb_build *b, const fsi__nb_runs *runs, int from, int i, fsi_vec3 at,
                          fsi__nb_tile *tile);
/* Gives every chunk room for its lists. The first try guesses; chunks that need more say so. */
FSI_API fsi_status fsi__nb_make_lists(fsi_context *context, fsi__nb_build *b, fsi__arena *lists, const char *function);
/* Sorts the points of a build that has been laid out. */
FSI_API void fsi__nb_rank(fsi__nb_build *b);
/* The runs around cell x of a row. */
FSI_API void fsi__nb_start_row(const fsi__nb_build *b, int row, int x, fsi__nb_runs *runs);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_PARTICLES_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_PARTICLES_IMPLEMENTATION
#define FSI_PARTICLES_IMPLEMENTATION
#endif
#ifdef FSI_PARTICLES_IMPLEMENTATION
#ifndef FSI_PARTICLES_IMPLEMENTATION_DONE
#define FSI_PARTICLES_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_shape.h"

FSI__STRICT_BEGIN

/* ---- >>neighbours implementation ------------------------------------------------------------------------------ */

#define FSI__NB_WORK 60.0      /* nanoseconds a rank at least */
#define FSI__NB_CLAMP (1 << 20)
#define FSI__NB_DIGIT 11       /* radix sort, bits a pass */
#define FSI__NB_SAMPLE 101     /* points among which the median is taken */

typedef struct fsi__nb_impl {
    fsi__arena rows, lists;   /* per-rank arrays; neighbour lists */
    fsi__arena fresh;         /* where the next build is made: swapped with `rows` when it succeeds */
    fsi__arena fresh_lists;
} fsi__nb_impl;

FSI_API fsi_status fsi_neighbors_create(fsi_neighbors **out, fsi_context *context)
{
    fsi_neighbors *nb;
    if (!fsi__is_context(context)) return FSI_ERROR_COOKIE;
    if (!out) return fsi__fail(context, FSI_ERROR_ARGUMENT, "fsi_neighbors_create", -1, 0, "out is NULL");
    *out = NULL;
    nb = (fsi_neighbors *)fsi__alloc(context, 1, sizeof *nb + sizeof(fsi__nb_impl));
    if (!nb) return fsi__fail(context, FSI_ERROR_MEMORY, "fsi_neighbors_create", -1, 0, "no memory for the search");
    nb->cookie = FSI__COOKIE('n', fsi_neighbors);
    nb->context = context;
    nb->impl = nb + 1;
    *out = nb;
    return FSI_OK;
}

FSI_API void fsi_neighbors_destroy(fsi_neighbors *nb)
{
    fsi__nb_impl *impl;
    if (!nb) return;
    impl = (fsi__nb_impl *)nb->impl;
    fsi__arena_free(nb->context, &impl->rows);
    fsi__arena_free(nb->context, &impl->lists);
    fsi__arena_free(nb->context, &impl->fresh);
    fsi__arena_free(nb->context, &impl->fresh_lists);
    fsi__free(nb->context, nb, 1, sizeof *nb + sizeof *impl);
}

FSI_API void fsi__nb_layout(fsi__nb_build *b, fsi__arena *a)
{
    size_t n = (size_t)b->count, c = (size_t)b->chunk_count;
    b->order = (int *)fsi__take(a, n, sizeof(int));
    b->first = (int *)fsi__take(a, n, sizeof(int));
    b->size = (int *)fsi__take(a, n, sizeof(int));
    b->cell_x = (int *)fsi__take(a, n, sizeof(int));
    b->order2 = (int *)fsi__take(a, n, sizeof(int));
    b->key = (uint64_t *)fsi__take(a, n, sizeof(uint64_t));
    b->key2 = (uint64_t *)fsi__take(a, n, sizeof(uint64_t));
    b->sorted = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    b->row = (fsi__nb_row *)fsi__take(a, n + 1, sizeof(fsi__nb_row));
    b->need = (size_t *)fsi__take(a, c, sizeof(size_t));
    b->base = (size_t *)fsi__take(a, c + 1, sizeof(size_t));
}

static double fsi__nb_axis(const fsi_vec3 *x, int axis) { return (double)(axis == 0 ? x->x : axis == 1 ? x->y : x->z); }

/* The median of a sample, so that outliers do not move the origin. */
static double fsi__nb_median(const fsi_vec3 *x, int count, int axis)
{
    double v[FSI__NB_SAMPLE];
    int n = count < FSI__NB_SAMPLE ? count : FSI__NB_SAMPLE, i, k;
    for (i = 0; i < n; i++) {
        double s = fsi__nb_axis(&x[(size_t)i * (size_t)count / (size_t)n], axis);
        for (k = i; k > 0 && v[k - 1] > s; k--) v[k] = v[k - 1];
        v[k] = s;
    }
    return v[n / 2];
}

static int fsi__nb_cell(const fsi__nb_build *b, const fsi_vec3 *x, int axis)
{
    double c = floor((fsi__nb_axis(x, axis) - b->origin[axis]) * b->inv_cell);
    if (axis == 2 && b->dim == 2) return 0;
    return c < -FSI__NB_CLAMP ? -FSI__NB_CLAMP : c > FSI__NB_CLAMP - 1 ? FSI__NB_CLAMP - 1 : (int)c;
}

/* Cell coordinates, packed into the fewest bits that hold their range. */
static void fsi__nb_make_keys(fsi__nb_build *b)
{
    int lo[3] = {FSI__NB_CLAMP, FSI__NB_CLAMP, FSI__NB_CLAMP}, hi[3] = {-FSI__NB_CLAMP, -FSI__NB_CLAMP, -FSI__NB_CLAMP};
    int i, k, c[3];
    for (i = 0; i < b->count; i++) {
        for (k = 0; k < 3; k++) {
            c[k] = fsi__nb_cell(b, &b->x[i], k);
            if (c[k] < lo[k]) lo[k] = c[k];
            if (c[k] > hi[k]) hi[k] = c[k];
        }
        b->key[i] = (uint64_t)(c[0] + FSI__NB_CLAMP) | (uint64_t)(c[1] + FSI__NB_CLAMP) << 21 |
                    (uint64_t)(c[2] + FSI__NB_CLAMP) << 42;
        b->order[i] = i;
    }
    for (k = 0; k < 3; k++) {
        b->low[k] = lo[k];
        for (b->bits[k] = 0; hi[k] - lo[k] >= 1 << b->bits[k]; b->bits[k]++) {}
    }
    for (i = 0; i < b->count; i++) {
        uint64_t key = b->key[i];
        for (k = 0; k < 3; k++) c[k] = (int)(key >> 21 * k & 0x1fffff) - FSI__NB_CLAMP - lo[k];
        b->key[i] = (uint64_t)c[0] | (uint64_t)c[1] << b->bits[0] | (uint64_t)c[2] << (b->bits[0] + b->bits[1]);
    }
}

/* Stable radix sort of (key, order) from the lowest digit up. */
static void fsi__nb_sort(fsi__nb_build *b)
{
    int bits = b->bits[0] + b->bits[1] + b->bits[2], shift, i, sum, k;
    int start[1 << FSI__NB_DIGIT];
    for (shift = 0; shift < bits; shift += FSI__NB_DIGIT) {
        uint64_t *key = b->key, *to_key = b->key2;
        int *order = b->order, *to_order = b->order2;

        /* Ranks at which each digit begins. */
        memset(start, 0, sizeof start);
        for (i = 0; i < b->count; i++) start[key[i] >> shift & ((1 << FSI__NB_DIGIT) - 1)]++;
        for (k = 0, sum = 0; k < 1 << FSI__NB_DIGIT; k++) {
            int n = start[k];
            start[k] = sum;
            sum += n;
        }

        /* Every key goes to the next rank of its digit. */
        for (i = 0; i < b->count; i++) {
            int to = start[key[i] >> shift & ((1 << FSI__NB_DIGIT) - 1)]++;
            to_key[to] = key[i];
            to_order[to] = order[i];
        }
        b->key = to_key;
        b->key2 = key;
        b->order = to_order;
        b->order2 = order;
    }
}

/* Rows of cells with points, and the x of each rank's cell. */
static void fsi__nb_make_rows(fsi__nb_build *b)
{
    uint64_t last = 0;
    int r;
    b->row_count = 0;
    for (r = 0; r < b->count; r++) {
        uint64_t key = b->key[r], row = key >> b->bits[0];
        b->sorted[r] = b->x[b->order[r]];
        b->cell_x[r] = (int)(key & (((uint64_t)1 << b->bits[0]) - 1)) + b->low[0];
        if (r == 0 || row != last) {
            fsi__nb_row *to = &b->row[b->row_count++];
            to->y = (int)(row & (((uint64_t)1 << b->bits[1]) - 1)) + b->low[1];
            to->z = (int)(row >> b->bits[1]) + b->low[2];
            to->begin = r;
            last = row;
        }
    }
    b->row[b->row_count].begin = b->count;
}

FSI_API void fsi__nb_rank(fsi__nb_build *b)
{
    int k;
    for (k = 0; k < b->dim && b->count > 0; k++) b->origin[k] = fsi__nb_median(b->x, b->count, k);
    fsi__nb_make_keys(b);
    fsi__nb_sort(b);
    fsi__nb_make_rows(b);
}

/* The row with cell coordinates (y, z), or -1. */
static int fsi__nb_find_row(const fsi__nb_build *b, int y, int z)
{
    int lo = 0, hi = b->row_count;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        const fsi__nb_row *row = &b->row[mid];
        if (row->z < z || (row->z == z && row->y < y)) lo = mid + 1;
        else hi = mid;
    }
    return lo < b->row_count && b->row[lo].y == y && b->row[lo].z == z ? lo : -1;
}

FSI_API void fsi__nb_start_row(const fsi__nb_build *b, int row, int x, fsi__nb_runs *runs)
{
    int dy, dz, span = b->dim == 3;
    runs->count = 0;
    for (dz = -span; dz <= span; dz++) {
        for (dy = -1; dy <= 1; dy++) {
            int k = fsi__nb_find_row(b, b->row[row].y + dy, b->row[row].z + dz), lo, hi;
            if (k < 0) continue;
            lo = b->row[k].begin;
            hi = b->row[k + 1].begin;
            runs->end[runs->count] = hi;
            while (lo < hi) { /* first rank in or behind cell x-1 */
                int mid = (lo + hi) / 2;
                if (b->cell_x[mid] < x - 1) lo = mid + 1;
                else hi = mid;
            }
            runs->begin[runs->count] = runs->stop[runs->count] = lo;
            runs->count++;
        }
    }
}

FSI_API int fsi__nb_advance(const fsi__nb_build *b, int x, fsi__nb_runs *runs)
{
    int k, total = 0;
    for (k = 0; k < runs->count; k++) {
        while (runs->begin[k] < runs->end[k] && b->cell_x[runs->begin[k]] < x - 1) runs->begin[k]++;
        while (runs->stop[k] < runs->end[k] && b->cell_x[runs->stop[k]] <= x + 1) runs->stop[k]++;
        total += runs->stop[k] - runs->begin[k];
    }
    return total;
}

FSI_API void fsi__nb_load(const fsi__nb_build *b, const fsi__nb_runs *runs, int from, int i, fsi_vec3 at,
                          fsi__nb_tile *tile)
{
    int k, n = 0;
    tile->shift = -i - 1; /* not in this tile */
    for (k = 0; k < runs->count; k++) {
        int j, run = runs->stop[k] - runs->begin[k];
        int skip = from < run ? from : run;
        from -= skip;
        if (runs->begin[k] + skip <= i && i < runs->stop[k]) tile->shift = n - runs->begin[k] - skip;
        for (j = runs->begin[k] + skip; j < runs->stop[k] && n < FSI__NB_TILE; j++, n++) {
            tile->x[n] = (float)(b->sorted[j].x - at.x);
            tile->y[n] = (float)(b->sorted[j].y - at.y);
            tile->z[n] = b->dim == 3 ? (float)(b->sorted[j].z - at.z) : 0.0f;
            tile->rank[n] = j;
        }
    }
    tile->count = n;
}

static int fsi__nb_exact(const fsi__nb_build *b, int i, int j)
{
    fsi_vec3 d = fsi_v3_sub(b->sorted[i], b->sorted[j]);
    if (b->dim == 2) d.z = 0;
    return fsi_v3_norm2(d) < b->radius2;
}

#if defined(FSI__AVX2)
/* Eight lanes of which a mask chooses some: the chosen lanes in ascending order, four bits each from the lowest on; for
   all masks, sixteen with the same high half in a row. */
#define FSI__NB_CHOSEN(high)                                                                                           \
    high, (high) << 4, (high) << 4 | 1, (high) << 8 | 0x10, (high) << 4 | 2, (high) << 8 | 0x20, (high) << 8 | 0x21,   \
    (high) << 12 | 0x210, (high) << 4 | 3, (high) << 8 | 0x30, (high) << 8 | 0x31, (high) << 12 | 0x310,               \
    (high) << 8 | 0x32, (high) << 12 | 0x320, (high) << 12 | 0x321, (high) << 16 | 0x3210
static const uint32_t fsi__nb_chosen[256] = {
    FSI__NB_CHOSEN(0u), FSI__NB_CHOSEN(4u), FSI__NB_CHOSEN(5u), FSI__NB_CHOSEN(0x54u), FSI__NB_CHOSEN(6u),
    FSI__NB_CHOSEN(0x64u), FSI__NB_CHOSEN(0x65u), FSI__NB_CHOSEN(0x654u), FSI__NB_CHOSEN(7u), FSI__NB_CHOSEN(0x74u),
    FSI__NB_CHOSEN(0x75u), FSI__NB_CHOSEN(0x754u), FSI__NB_CHOSEN(0x76u), FSI__NB_CHOSEN(0x764u),
    FSI__NB_CHOSEN(0x765u), FSI__NB_CHOSEN(0x7654u) };
#undef FSI__NB_CHOSEN

/* Writes the ranks of the tile within the radius of point (x, y, z), `own` (-1: none) left out, and at most eight more
   behind them. Returns how many; -1: some are so close to the radius that all are to be tested exactly. */
FSI__AVX2 FSI__NOINLINE static int fsi__nb_hits_avx2(const fsi__nb_tile *tile, const float at[3], float sure,
    float maybe, int own, int *list)
{
    const __m256 x = _mm256_set1_ps(at[0]), y = _mm256_set1_ps(at[1]), z = _mm256_set1_ps(at[2]),
                 inner = _mm256_set1_ps(sure), outer = _mm256_set1_ps(maybe);
    const __m256i shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    unsigned unsure = 0;
    int k, *to = list;
    for (k = 0; k < tile->count; k += 8) {
        const __m256 dx = _mm256_sub_ps(_mm256_loadu_ps(tile->x + k), x),
                     dy = _mm256_sub_ps(_mm256_loadu_ps(tile->y + k), y),
                     dz = _mm256_sub_ps(_mm256_loadu_ps(tile->z + k), z);
        const __m256 r2 = _mm256_add_ps(_mm256_add_ps(_mm256_mul_ps(dx, dx), _mm256_mul_ps(dy, dy)),
                                        _mm256_mul_ps(dz, dz));
        const __m256i rank = _mm256_loadu_si256((const __m256i *)(const void *)(tile->rank + k));
        const unsigned there = tile->count - k < 8 ? (1u << (tile->count - k)) - 1 : 0xffu;
        unsigned hit = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(r2, outer, _CMP_LT_OQ)) & there;
        unsure |= hit & ~(unsigned)_mm256_movemask_ps(_mm256_cmp_ps(r2, inner, _CMP_LT_OQ));
        if ((unsigned)(own - k) < 8) hit &= ~(1u << (own - k));
        _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permutevar8x32_epi32(rank,
            _mm256_srlv_epi32(_mm256_set1_epi32((int)fsi__nb_chosen[hit]), shift)));
        to += __builtin_popcount(hit);
    }
    return unsure ? -1 : (int)(to - list);
}
#endif

FSI_API size_t fsi__nb_test(const fsi__nb_build *b, fsi__nb_tile *tile, int i, fsi_vec3 at, int exact, int *list,
                            size_t m, size_t room)
{
    const float x = (float)(b->sorted[i].x - at.x), y = (float)(b->sorted[i].y - at.y),
                z = b->dim == 3 ? (float)(b->sorted[i].z - at.z) : 0.0f;
    const float sure = (float)b->radius2 * 0.99999f, maybe = (float)b->radius2 * 1.00001f;
    int k, n = tile->count, unsure = 0, *to;
#if defined(FSI__AVX2)
    if (!exact && m + (size_t)n + FSI_LANES <= room && fsi__has_avx2()) {
        const float point[3] = { x, y, z };
        const int own = i + tile->shift >= 0 ? i + tile->shift : -1;
        const int hits = fsi__nb_hits_avx2(tile, point, sure, maybe, own, list + m);
        if (hits >= 0) return m + (size_t)hits;
    }
#endif

    /* Squared distances in float; all are repeated exactly if one is close to the radius. */
    for (k = 0; k < n; k++) {
        float dx = tile->x[k] - x, dy = tile->y[k] - y, dz = tile->z[k] - z;
        float r2 = dx * dx + dy * dy + dz * dz;
        tile->hit[k] = r2 < maybe;
        unsure += (r2 >= sure) & (r2 < maybe);
    }
    if (unsure || exact) for (k = 0; k < n; k++) tile->hit[k] = fsi__nb_exact(b, i, tile->rank[k]);
    if (i + tile->shift >= 0 && i + tile->shift < n) tile->hit[i + tile->shift] = 0; /* not its own neighbour */

    /* Counting only, or nearly full: nothing is written past the end. */
    if (m + (size_t)n + FSI_LANES > room) {
        for (k = 0; k < n; k++) {
            if (!tile->hit[k]) continue;
            if (m < room) list[m] = tile->rank[k];
            m++;
        }
        return m;
    }

    /* Without a branch: the next hit overwrites what was none. */
    to = list + m;
    for (k = 0; k + 3 < n; k += 4) {
        *to = tile->rank[k];
        to += tile->hit[k];
        *to = tile->rank[k + 1];
        to += tile->hit[k + 1];
        *to = tile->rank[k + 2];
        to += tile->hit[k + 2];
        *to = tile->rank[k + 3];
        to += tile->hit[k + 3];
    }
    for (; k < n; k++) {
        *to = tile->rank[k];
        to += tile->hit[k];
    }
    return (size_t)(to - list);
}

FSI_API int fsi__nb_clamped(const fsi__nb_build *b, int r)
{
    const fsi_vec3 *at = &b->sorted[r];
    int exact = b->cell_x[r] <= 1 - FSI__NB_CLAMP || b->cell_x[r] >= FSI__NB_CLAMP - 2 || b->inv_cell > 1e15 ||
                b->inv_cell < 1e-15;
    exact |= fsi__nb_cell(b, at, 1) <= 1 - FSI__NB_CLAMP || fsi__nb_cell(b, at, 1) >= FSI__NB_CLAMP - 2;
    exact |= fsi__nb_cell(b, at, 2) <= 1 - FSI__NB_CLAMP || fsi__nb_cell(b, at, 2) >= FSI__NB_CLAMP - 2;
    return exact;
}

/* Lists of the ranks begin .. end-1 of one cell; `total` candidates. */
static size_t fsi__nb_cell_lists(const fsi__nb_build *b, const fsi__nb_runs *runs, int total, int begin, int end,
                                 fsi__nb_tile *tile, int *list, size_t m, size_t room, size_t base)
{
    fsi_vec3 at = b->sorted[begin];
    int i, from, exact = fsi__nb_clamped(b, begin);
    for (i = begin; i < end; i++) {
        size_t m0 = m;
        for (from = 0; from < total; from += FSI__NB_TILE) {
            if (total > FSI__NB_TILE || i == begin) fsi__nb_load(b, runs, from, i, at, tile);
            m = fsi__nb_test(b, tile, i, at, exact, list, m, room);
        }
        b->first[i] = (int)(base + m0);
        b->size[i] = (int)(m - m0);
        for (; m % FSI_LANES; m++) if (m < room) list[m] = i; /* pad with itself: at distance 0, weighs nothing */
    }
    return m;
}

static void fsi__nb_chunk(void *arg, int chunk, int begin, int end)
{
    const fsi__nb_build *b = (const fsi__nb_build *)arg;
    fsi__nb_tile tile;
    fsi__nb_runs runs;
    size_t m = 0, base = b->base[chunk], room = b->base[chunk + 1] - base;
    int lo = 0, hi = b->row_count, r = begin;
    tile.count = tile.shift = 0;

    /* The row of `begin`, by bisection. */
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (b->row[mid].begin <= begin) lo = mid;
        else hi = mid;
    }

    /* Row by row, cell by cell: the particles of a cell share one list of candidates. */
    for (; r < end; lo++) {
        int row_end = b->row[lo + 1].begin < end ? b->row[lo + 1].begin : end;
        fsi__nb_start_row(b, lo, b->cell_x[r], &runs);
        while (r < row_end) {
            int x = b->cell_x[r], stop = r + 1, total = fsi__nb_advance(b, x, &runs);
            while (stop < row_end && b->cell_x[stop] == x) stop++;
            m = fsi__nb_cell_lists(b, &runs, total, r, stop, &tile, b->list + base, m, room, base);
            r = stop;
        }
    }
    b->need[chunk] = m;
    if (b->also) b->also(b->arg, b->order, begin, end);
}

FSI_API fsi_status fsi__nb_make_lists(fsi_context *context, fsi__nb_build *b, fsi__arena *lists, const char *function)
{
    int c, try_again = 1;
    for (c = 0; c < b->chunk_count; c++) b->need[c] = (size_t)FSI__NB_GRAIN * (b->dim == 3 ? 48 : 24);
    while (try_again) {
        uint64_t sum = 0;
        b->base[0] = 0;
        for (c = 0; c < b->chunk_count; c++) {
            sum += (uint64_t)b->need[c] + b->need[c] / 8 / FSI_LANES * FSI_LANES + FSI__NB_TILE + FSI_LANES;
            if (sum > 0x7fffffff || sum > (size_t)-1 / sizeof(int))
                return fsi__fail(context, FSI_ERROR_LIMIT, function, -1, (double)sum,
                    "more than 2^31 neighbours: the radius is too large for these points");
            b->base[c + 1] = (size_t)sum;
        }
        if (!fsi__arena_reserve(context, lists, b->base[b->chunk_count] * sizeof(int)))
            return fsi__fail(context, FSI_ERROR_MEMORY, function, -1, 0,
                             "no memory for the neighbour lists of %d points", b->count);
        b->list = (int *)fsi__take(lists, b->base[b->chunk_count], sizeof(int));
        fsi__parallel_work(context, b->count, FSI__NB_GRAIN, FSI__NB_WORK * b->count, fsi__nb_chunk, b);
        for (c = 0, try_again = 0; c < b->chunk_count; c++) try_again |= b->need[c] > b->base[c + 1] - b->base[c];
    }
    return FSI_OK;
}

static fsi_status fsi__nb_check(fsi_neighbors *nb, const fsi_vec3 *x, int count, fsi_real radius, int dim)
{
    static const char fn[] = "fsi_neighbors_build";
    int i;
    if (nb->cookie != FSI__COOKIE('n', fsi_neighbors)) return FSI_ERROR_COOKIE;
    if (count < 0 || (count > 0 && !x))
        return fsi__fail(nb->context, FSI_ERROR_ARGUMENT, fn, -1, count, "count is %d, points are %s", count,
                         x ? "given" : "NULL");
    if (!(radius > 0) || !fsi_is_finite((double)radius) || !(radius * radius > 0) ||
        !fsi_is_finite((double)(radius * radius)))
        return fsi__fail(nb->context, FSI_ERROR_ARGUMENT, fn, -1, (double)radius,
                         "the radius %g is not a positive length", (double)radius);
    if (dim != 2 && dim != 3)
        return fsi__fail(nb->context, FSI_ERROR_ARGUMENT, fn, -1, dim, "dim is %d, must be 2 or 3", dim);
    for (i = 0; i < count; i++)
        if (!fsi_v3_is_finite(x[i]))
            return fsi__fail(nb->context, FSI_ERROR_NAN, fn, i, 0, "point %d is not finite", i);
    return FSI_OK;
}

/* Sorts the points of a build, in impl->fresh. */
static fsi_status fsi__nb_begin(fsi_neighbors *nb, fsi__nb_build *b, const fsi_vec3 *x, int count, fsi_real radius,
                                int dim)
{
    fsi__nb_impl *impl = (fsi__nb_impl *)nb->impl;
    fsi__arena measure;
    memset(b, 0, sizeof *b);
    memset(&measure, 0, sizeof measure);
    b->x = x;
    b->count = count;
    b->dim = dim;
    b->radius2 = radius * radius;
    b->inv_cell = 1 / ((double)radius * 1.00001);
    b->chunk_count = fsi__chunks(count, FSI__NB_GRAIN);
    fsi__nb_layout(b, &measure);
    if (!fsi__arena_reserve(nb->context, &impl->fresh, measure.used))
        return fsi__fail(nb->context, FSI_ERROR_MEMORY, "fsi_neighbors_build", -1, count, "no memory to sort %d points",
                         count);
    fsi__nb_layout(b, &impl->fresh);
    fsi__nb_rank(b);
    return FSI_OK;
}

/* The new lists replace the former ones. */
static void fsi__nb_publish(fsi_neighbors *nb, const fsi__nb_build *b)
{
    fsi__nb_impl *impl = (fsi__nb_impl *)nb->impl;
    const fsi__arena rows = impl->rows;
    impl->rows = impl->fresh;
    impl->fresh = rows;
    nb->count = b->count;
    nb->order = b->order;
    nb->first = b->list ? b->first : NULL;
    nb->size = b->list ? b->size : NULL;
    nb->list = b->list;
    nb->pair_count = 0;
}

FSI_API fsi_status fsi__neighbors_sort(fsi_neighbors *nb, const fsi_vec3 *x, int count, fsi_real radius, int dim)
{
    fsi__nb_build b;
    fsi_status status = fsi__nb_check(nb, x, count, radius, dim);
    if (status == FSI_OK) status = fsi__nb_begin(nb, &b, x, count, radius, dim);
    if (status == FSI_OK) fsi__nb_publish(nb, &b);
    return status;
}

FSI_API fsi_status fsi_neighbors_build(fsi_neighbors *nb, const fsi_vec3 *x, int count, fsi_real radius, int dim)
{
    return fsi__neighbors_build_with(nb, x, count, radius, dim, NULL, NULL);
}

FSI_API fsi_status fsi__neighbors_build_with(fsi_neighbors *nb, const fsi_vec3 *x, int count, fsi_real radius, int dim,
                                             fsi__ranks_fn *also, void *arg)
{
    fsi__nb_impl *impl;
    fsi__nb_build b;
    fsi__arena lists;
    fsi_status status;
    int r;
    if (!nb) return FSI_ERROR_ARGUMENT;
    status = fsi__nb_check(nb, x, count, radius, dim);
    if (status == FSI_OK) status = fsi__nb_begin(nb, &b, x, count, radius, dim);
    if (status != FSI_OK) return status;
    impl = (fsi__nb_impl *)nb->impl;
    b.also = also;
    b.arg = arg;
    if (also) also(arg, b.order, 0, 0);
    status = fsi__nb_make_lists(nb->context, &b, &impl->fresh_lists, "fsi_neighbors_build");
    if (status != FSI_OK) return status;
    lists = impl->lists; impl->lists = impl->fresh_lists; impl->fresh_lists = lists;
    fsi__nb_publish(nb, &b);
    for (r = 0; r < count; r++) nb->pair_count += (size_t)b.size[r];
    return FSI_OK;
}

/* ---- >>table ---------------------------------------------------------------------------------------------------- */

FSI_API double fsi__longest(const fsi_vec3 *v, int n)
{
    double most = 0;
    int i;
    for (i = 0; i < n; i++) most = fmax(most, (double)fsi_v3_norm2(v[i]));
    return sqrt(most);
}

FSI_API void fsi__particles_start(fsi__particles *t, fsi_context *context, int dim, int attribute_count, fsi_real dx,
    const int *most)
{
    t->context = context;
    t->dim = dim;
    t->attribute_count = attribute_count;
    t->dx = dx;
    t->most = most;
}

FSI_API void fsi__particles_column(fsi__particles *t, const char *name, int kind, void *array, size_t size,
    double least, double most, void *shown)
{
    fsi__particle_column *about = &t->about[t->column_count];
    if (size == 0) return;
    FSI_ASSERT(t->column_count < FSI__PARTICLE_COLUMNS);
    t->column[t->column_count].array = (void **)array;
    t->column[t->column_count++].size = size;
    about->name = name;
    about->kind = kind;
    about->least = least;
    about->most = most;
    about->shown = shown;
}

/* Arrays may have moved: updates the public pointers. */
static void fsi__particles_show(fsi__particles *t)
{
    int k;
    for (k = 0; k < t->column_count; k++)
        if (t->about[k].shown) memcpy(t->about[k].shown, t->column[k].array, sizeof(void *));
}

FSI_API void fsi__particles_free(fsi__particles *t)
{
    fsi__free_columns(t->context, t->column, t->column_count, t->column_count > 0 ? *t->capacity : 0);
}

FSI_API fsi_status fsi__particles_reserve(fsi__particles *t, const char *fn, int rows)
{
    const fsi_status status = fsi__grow(t->context, t->column, t->column_count, *t->count, t->capacity, rows, fn);
    fsi__particles_show(t);
    return status;
}

/* Rows to reserve when `want` are needed: at least 1.5 times the present number, so that the table seldom grows. */
static int fsi__particles_rows_for(const fsi__particles *t, int want)
{
    const int half_more = *t->capacity + *t->capacity / 2;
    return want <= *t->capacity ? *t->capacity : want < half_more ? half_more : want;
}

FSI_API fsi_status fsi__particles_room_for_sources(fsi__particles *t, const char *fn, double rows, double ids)
{
    if (rows > 0x3fffffff || (double)t->next + ids > 4294967295.0)
        return fsi__fail(t->context, FSI_ERROR_LIMIT, fn, -1, rows,
            "emitters would make them %.0f particles, or use up all ids", rows);
    return fsi__particles_reserve(t, fn, fsi__particles_rows_for(t, (int)rows));
}

/* Checks particles that are to be added. */
static fsi_status fsi__particles_check_new(const fsi__particles *t, const char *fn, const fsi_vec3 *positions,
    const fsi_vec3 *velocities, int count)
{
    int i, own;

    /* How many there may be. */
    if (count < 0 || (count > 0 && !positions))
        return fsi__fail(t->context, FSI_ERROR_ARGUMENT, fn, -1, count, "count is %d, positions are %s", count,
            positions ? "given" : "NULL");
    if (count > 0x3fffffff - *t->count || t->next + (uint64_t)count > 0xffffffffu)
        return fsi__fail(t->context, FSI_ERROR_LIMIT, fn, -1, count, "%d more particles are too many", count);
    if (*t->most > 0 && *t->count + count > *t->most)
        return fsi__fail(t->context, FSI_ERROR_LIMIT, fn, -1, count,
            "%d more particles exceed desc.max_particles, %d", count, *t->most);

    /* Where they are read from, and what is read. */
    own = fsi__owns(t->column, t->column_count, *t->capacity, positions)
        || fsi__owns(t->column, t->column_count, *t->capacity, velocities);
    if (count > 0 && own)
        return fsi__fail(t->context, FSI_ERROR_ARGUMENT, fn, -1, 0,
            "positions or velocities are the simulator's own arrays, which may move");
    for (i = 0; i < count; i++) {
        if (!fsi_v3_is_finite(positions[i]) || (velocities && !fsi_v3_is_finite(velocities[i])))
            return fsi__fail(t->context, FSI_ERROR_NAN, fn, i, 0, "particle %d of those to add is not finite", i);
        if (velocities && !(fsi__largest_axis(velocities[i]) <= t->fastest))
            return fsi__fail(t->context, FSI_ERROR_LIMIT, fn, i, 0,
                "the velocity of particle %d of those to add is beyond %g m/s", i, t->fastest);
    }
    return FSI_OK;
}

FSI_API void fsi__particles_new_row(fsi__particles *t, int k, fsi_vec3 x, fsi_vec3 velocity, uint32_t id,
    uint32_t filter, const fsi_real *attributes)
{
    const size_t n = (size_t)t->attribute_count;
    int c;
    for (c = 0; c < t->column_count; c++) {
        const size_t size = t->column[c].size;
        memset((unsigned char *)*t->column[c].array + (size_t)k * size, 0, size);
    }
    if (t->dim == 2) x.z = velocity.z = 0;
    (*t->position)[k] = x;
    (*t->velocity)[k] = velocity;
    (*t->id)[k] = id;
    if (t->filter) (*t->filter)[k] = filter;
    if (attributes && n > 0) memcpy(*t->attribute + (size_t)k * n, attributes, n * sizeof(fsi_real));
}

FSI_API fsi_status fsi__particles_add(fsi__particles *t, const char *fn, const fsi_vec3 *positions,
    const fsi_vec3 *velocities, int count)
{
    fsi_status status = fsi__particles_check_new(t, fn, positions, velocities, count);
    int i;
    if (status == FSI_OK) status = fsi__particles_reserve(t, fn, fsi__particles_rows_for(t, *t->count + count));
    if (status != FSI_OK) return status;
    for (i = 0; i < count; i++)
        fsi__particles_new_row(t, *t->count + i, positions[i], velocities ? velocities[i] : fsi_v3(0, 0, 0),
            (uint32_t)t->next++, 0xffffffffu, NULL);
    *t->count += count;
    return FSI_OK;
}

FSI_API void fsi__particles_compact(fsi__particles *t, int rows, const unsigned char *gone)
{
    *t->count = fsi__compact(t->column, t->column_count, rows, gone);
}

FSI_API fsi_status fsi__particles_remove(fsi__particles *t, const char *fn, const unsigned char *gone)
{
    if (!gone) return fsi__fail(t->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "gone is NULL");
    fsi__particles_compact(t, *t->count, gone);
    return FSI_OK;
}

FSI_API fsi_status fsi__particles_copy(const fsi__particles *t, const char *fn, int which, const fsi__export *fields,
    int known, fsi_vec3 origin, float *out, int stride)
{
    const fsi_real shift[3] = { origin.x, origin.y, origin.z };
    const fsi__export *f = &fields[which >= 0 && which < known ? which : 0];
    const int width = which >= 0 && which < known ? f->width : 0;
    int i, k;
    if (width == 0) return fsi__fail(t->context, FSI_ERROR_ARGUMENT, fn, which, 0,
        "there is no field %d, or desc does not ask for it", which);
    if (stride < width) return fsi__fail(t->context, FSI_ERROR_ARGUMENT, fn, -1, stride,
        "stride is %d, field %d has %d floats", stride, which, width);
    if (!out && *t->count > 0) return fsi__fail(t->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "out is NULL");
    if (!fsi_v3_is_finite(origin)) return fsi__fail(t->context, FSI_ERROR_NAN, fn, -1, 0, "origin is not finite");
    for (i = 0; i < *t->count; i++) for (k = 0; k < width; k++) {
        const fsi_real x = fsi__export_value(f, (size_t)i * (size_t)width + (size_t)k);
        out[(size_t)i * (size_t)stride + (size_t)k] = (float)(which == 0 ? x - shift[k] : x / f->unit);
    }
    return FSI_OK;
}

FSI_API void fsi__particles_draw(const fsi__particles *t, fsi__export pressure, const fsi_debug_draw *draw)
{
    double top = 1;
    int i;
    for (i = 0; i < *t->count; i++) top = fmax(top, (double)fsi__export_value(&pressure, (size_t)i));
    for (i = 0; i < *t->count && draw->point; i++) {
        const double p = (double)fsi__export_value(&pressure, (size_t)i);
        const uint32_t red = p > 0 ? (uint32_t)(255 * p / top) : 0;
        draw->point(draw->user, (*t->position)[i], t->dx, red << 16 | 0x4000u | (255 - red));
    }
}

FSI__COLD_BEGIN

/* ---- >>state of the table ---------------------------------------------------------------------------------------- */

FSI_API fsi__liquid_head fsi__particles_head(const fsi__particles *t, int obstacles, int emitters, int sinks)
{
    fsi__liquid_head head;
    head.count = *t->count;
    head.dim = t->dim;
    head.attributes = t->attribute_count;
    head.obstacles = obstacles;
    head.emitters = emitters;
    head.sinks = sinks;
    head.spacing = (double)t->dx;
    return head;
}

FSI_API size_t fsi__particles_bytes(const fsi__particles *t, const void *array, int64_t count)
{
    size_t row = 0;
    int k;
    for (k = 0; k < t->column_count && (const void *)t->column[k].array != array; k++)
        if (t->about[k].kind != FSI__COLUMN_FOUND) row += t->column[k].size;
    return row * (size_t)count;
}

FSI_API fsi_status fsi__particles_check_head(const fsi__particles *t, const char *fn, const fsi__liquid_head *head,
    const fsi__liquid_head *own, size_t rest, const fsi__stream *st)
{
    const size_t row = fsi__particles_bytes(t, NULL, 1), start = sizeof *head + rest;
    fsi__liquid_head like = *own;
    like.count = head->count;
    if (st->ok && memcmp(head, &like, sizeof like) != 0)
        return fsi__fail(t->context, FSI_ERROR_FORMAT, fn, -1, head->spacing,
            "the state is of a %dD liquid with spacing %g, %d obstacles, %d attributes, %d emitters and %d sinks, "
            "not of this one", (int)head->dim, head->spacing, (int)head->obstacles, (int)head->attributes,
            (int)head->emitters, (int)head->sinks);
    if (!st->ok || st->capacity < start || head->count < 0 || head->count > 0x3fffffff
        || (st->capacity - start) % row || (st->capacity - start) / row != (size_t)head->count)
        return fsi__fail(t->context, FSI_ERROR_FORMAT, fn, -1, (double)head->count,
            "the state holds %.0f particles in %.0f bytes, which do not agree",
            (double)head->count, (double)st->capacity);
    return FSI_OK;
}

FSI_API void fsi__particles_state(fsi__stream *st, fsi__particles *t)
{
    int k;
    for (k = 0; k < t->column_count; k++)
        if (t->about[k].kind != FSI__COLUMN_FOUND)
            fsi__bytes(st, *t->column[k].array, (size_t)*t->count * t->column[k].size);
}

static fsi_status fsi__particles_bad_number(const fsi__particles *t, const char *fn, int64_t i, const char *name,
    double x)
{
    if (!fsi_is_finite(x))
        return fsi__fail(t->context, FSI_ERROR_NAN, fn, i, 0, "particle %.0f: its %s is not finite", (double)i, name);
    return fsi__fail(t->context, FSI_ERROR_FORMAT, fn, i, x, "particle %.0f: its %s is %g", (double)i, name, x);
}

static fsi_status fsi__particles_check_vectors(const fsi__particles *t, const char *fn, const fsi__particle_column *c,
    fsi__stream *st, int64_t count, fsi_vec3 offset)
{
    int64_t i;
    for (i = 0; i < count; i++) {
        fsi_vec3 v = { 0, 0, 0 }, moved;
        double size;
        fsi__bytes(st, &v, sizeof v);
        moved = fsi_v3_add(v, offset);
        size = fmax(fsi__largest_axis(v), c->kind == FSI__COLUMN_LENGTH ? fsi__d3_norm(fsi__d3_of(moved))
            : fsi__largest_axis(moved));
        if (size <= c->most) continue;
        if (c->kind == FSI__COLUMN_LENGTH || !fsi_is_finite(size))
            return fsi__particles_bad_number(t, fn, i, c->name, size);
        return fsi__fail(t->context, FSI_ERROR_LIMIT, fn, i, size, "particle %.0f: its %s is %g, more than %g",
            (double)i, c->name, size, c->most);
    }
    return FSI_OK;
}

static fsi_status fsi__particles_check_numbers(const fsi__particles *t, const char *fn, const fsi__particle_column *c,
    fsi__stream *st, int64_t count)
{
    const int is_float = c->kind != FSI__COLUMN_REAL;
    const double most = c->kind == FSI__COLUMN_SUM ? (double)count + 1 : c->most;
    int64_t i;
    for (i = 0; i < count; i++) {
        fsi_real real = 0;
        float number = 0;
        double x;
        if (is_float) fsi__bytes(st, &number, sizeof number);
        else fsi__bytes(st, &real, sizeof real);
        x = is_float ? (double)number : (double)real;
        if (!(x >= c->least && x <= most)) return fsi__particles_bad_number(t, fn, i, c->name, x);
    }
    return FSI_OK;
}

static fsi_status fsi__particles_check_ids(const fsi__particles *t, const char *fn, fsi__stream *st, int64_t count,
    uint64_t next)
{
    int64_t i, last = -1;
    for (i = 0; i < count; i++) {
        uint32_t id = 0;
        fsi__bytes(st, &id, sizeof id);
        if ((int64_t)id <= last || (uint64_t)id >= next)
            return fsi__fail(t->context, FSI_ERROR_FORMAT, fn, i, (double)id, "particle %.0f: its id is out of order",
                (double)i);
        last = (int64_t)id;
    }
    return FSI_OK;
}

FSI_API fsi_status fsi__particles_check_state(const fsi__particles *t, const char *fn, fsi__stream *st, int64_t count,
    uint64_t next, fsi_vec3 offset)
{
    int k;
    for (k = 0; k < t->column_count; k++) {
        const fsi__particle_column *c = &t->about[k];
        const int is_place = (const void *)t->column[k].array == (const void *)t->position;
        fsi_status status = FSI_OK;
        if (c->kind == FSI__COLUMN_ANY) st->used += (size_t)count * t->column[k].size;
        else if (c->kind == FSI__COLUMN_ID) status = fsi__particles_check_ids(t, fn, st, count, next);
        else if (c->kind == FSI__COLUMN_REAL || c->kind == FSI__COLUMN_FLOAT || c->kind == FSI__COLUMN_SUM)
            status = fsi__particles_check_numbers(t, fn, c, st, count);
        else if (c->kind != FSI__COLUMN_FOUND)
            status = fsi__particles_check_vectors(t, fn, c, st, count, is_place ? offset : fsi_v3(0, 0, 0));
        if (status != FSI_OK) return status;
    }
    return st->ok ? FSI_OK : fsi__fail(t->context, FSI_ERROR_FORMAT, fn, -1, 0, "the state ends too early");
}

FSI__COLD_END

/* ---- >>markers: their sums --------------------------------------------------------------------------------------- */

/* A full neighbourhood in the limit of many particles: sum W, number of neighbours, length of a flat surface's
   normal. */
typedef struct fsi__foam_full { fsi__lane weight, count, normal; } fsi__foam_full;

static fsi__foam_full fsi__foam_full_of(int dim, double ratio)
{
    const double r2 = ratio * ratio;
    fsi__foam_full full;
    full.weight = (fsi__lane)(dim == 3 ? FSI_PI / 3 * r2 * ratio : FSI_PI / 3 * r2);
    full.count = (fsi__lane)((dim == 3 ? 4 * FSI_PI / 3 * r2 * ratio : FSI_PI * r2) - 1);
    full.normal = (fsi__lane)(dim == 3 ? FSI_PI / 30 * r2 * ratio : r2 / 6);
    return full;
}

FSI_FN fsi__lane fsi__foam_share(fsi__lane x, const fsi_real *range)
{
    const fsi__lane lo = (fsi__lane)range[0], hi = (fsi__lane)range[1];
    return x <= lo ? 0 : x >= hi ? 1 : (x - lo) / (hi - lo);
}

/* Eight neighbours: x_ij in coordinate steps, its length, and W. */
typedef struct fsi__foam_pair { fsi__f8 x, y, z, r, w; } fsi__foam_pair;

FSI_FN fsi__foam_pair fsi__foam_pair_at(const fsi__foam *f, const int *list, int i)
{
    fsi__foam_pair p;
    fsi__f8_gather(f->place, list, &f->place[i], &p.x, &p.y, &p.z, &p.w);
    p.r = fsi__f8_sqrt(fsi__f8_dot(p.x, p.y, p.z, p.x, p.y, p.z));
    p.w = fsi__f8_max(fsi__f8_sub(fsi__f8_set(1), fsi__f8_mul(p.r, fsi__f8_set((fsi__lane)FSI__COORD_UNIT))),
        fsi__f8_set(0));
    return p;
}

/* Eight neighbours: sums of the normal (x, y, z) and of trapped air (d), and their number within H. */
FSI_FN fsi__f8 fsi__foam_add_air(const fsi__foam *f, const int *list, int i, fsi__lane_sums *sum)
{
    const fsi__f8 one = fsi__f8_set(1), zero = fsi__f8_set(0), tiny = fsi__f8_set((fsi__lane)(1e-6 / FSI__COORD_UNIT));
    const fsi__lane4 *vi = &f->velocity[i];
    const fsi__foam_pair p = fsi__foam_pair_at(f, list, i);
    fsi__f8 per_r, x, y, z, v, way;
    fsi__f8_gather_vectors(f->velocity, list, &x, &y, &z);
    x = fsi__f8_sub(fsi__f8_set(vi->x), x);
    y = fsi__f8_sub(fsi__f8_set(vi->y), y);
    z = fsi__f8_sub(fsi__f8_set(vi->z), z);
    v = fsi__f8_sqrt(fsi__f8_dot(x, y, z, x, y, z));
    per_r = fsi__f8_if_greater(p.r, tiny, fsi__f8_div(one, fsi__f8_max(p.r, tiny)));
    way = fsi__f8_mul(per_r, fsi__f8_dot(x, y, z, p.x, p.y, p.z)); /* - v_ij . x^_ij */
    sum->d = fsi__f8_add(sum->d, fsi__f8_mul(p.w, fsi__f8_if_greater(p.r, tiny, fsi__f8_add(v, way))));
    fsi__add_weighted(sum, fsi__f8_sub(zero, fsi__f8_mul(per_r, fsi__f8_mul(p.w, p.w))), p.x, p.y, p.z);
    return fsi__f8_if_greater(p.w, zero, one);
}

FSI_API void fsi__find_air(const fsi__foam *f, int r)
{
    const fsi__foam_full full = fsi__foam_full_of(f->dim, f->ratio);
    const int *list = f->list + f->first[r], size = fsi__padded(f->size[r]);
    fsi__lane_sums sum = fsi__no_lane_sums();
    fsi__f8 count = fsi__f8_set(0);
    fsi__lane4 n;
    fsi__lane length;
    int k;
    for (k = 0; k < size; k += FSI_LANES) count = fsi__f8_add(count, fsi__foam_add_air(f, list + k, r, &sum));
    n = fsi__fold(&sum);
    length = fsi__lane4_norm(n);
    n.w = length > (fsi__lane)0.4 * full.normal ? 1 / length : 0;
    f->normal[r].x = n.x * n.w;
    f->normal[r].y = n.y * n.w;
    f->normal[r].z = n.z * n.w;
    f->found[r].x = fsi__f8_sum(sum.d) / full.weight;
    f->found[r].y = fsi__f8_sum(count) - (fsi__lane)(size - f->size[r]);
}

/* Eight neighbours' part of the crest at i; only those with a surface, |n^_j| = 1, count. */
FSI_FN fsi__f8 fsi__foam_pair_crest(const fsi__foam *f, const int *list, int i)
{
    const fsi__lane4 *n = &f->normal[i];
    const fsi__f8 nx = fsi__f8_set(n->x), ny = fsi__f8_set(n->y), nz = fsi__f8_set(n->z);
    const fsi__foam_pair p = fsi__foam_pair_at(f, list, i);
    fsi__f8 x, y, z, behind, bend;
    fsi__f8_gather_vectors(f->normal, list, &x, &y, &z);
    behind = fsi__f8_dot(p.x, p.y, p.z, nx, ny, nz);
    bend = fsi__f8_dot(x, y, z, fsi__f8_sub(x, nx), fsi__f8_sub(y, ny), fsi__f8_sub(z, nz));
    return fsi__f8_if_greater(fsi__f8_set(0), behind, fsi__f8_mul(p.w, bend));
}

static fsi__lane fsi__foam_crest(const fsi__foam *f, int r)
{
    const int *list = f->list + f->first[r], size = fsi__padded(f->size[r]);
    const fsi__lane4 *n = &f->normal[r], *v = &f->velocity[r];
    const fsi__lane speed = fsi__lane4_norm(*v);
    fsi__f8 sum = fsi__f8_set(0);
    int k;
    if (!(v->x * n->x + v->y * n->y + v->z * n->z >= (fsi__lane)0.6 * speed) || !(speed > 0)) return 0;
    for (k = 0; k < size; k += FSI_LANES) sum = fsi__f8_add(sum, fsi__foam_pair_crest(f, list + k, r));
    return fsi__f8_sum(sum);
}

/* Spray has fewer than 6, bubbles more than 20 of the 32.5 neighbours that there are at H = 2 dx in 3D (the same
   fractions otherwise). */
FSI_API int fsi__find_marker(const fsi__foam *f, int r, fsi_real *aeration)
{
    const fsi__foam_full full = fsi__foam_full_of(f->dim, f->ratio);
    const fsi__lane4 *v = &f->velocity[r];
    const fsi__lane count = f->found[r].y / full.count * (fsi__lane)32.5;
    fsi__lane air = fsi__foam_share(f->found[r].x, f->air);
    air += fsi__foam_share(fsi__foam_crest(f, r) / full.weight, f->crest);
    air = (air < 1 ? air : 1) * fsi__foam_share((v->x * v->x + v->y * v->y + v->z * v->z) / 2, f->energy);
    *aeration = (fsi_real)air;
    if (count < 6) return FSI__IS_SPRAY;
    return !(air > 0) ? FSI__IS_LIQUID : count > 20 ? FSI__IS_BUBBLE : FSI__IS_FOAM;
}

/* ---- >>lattices implementation ---------------------------------------------------------------------------- */

/* Sites of a cubic lattice, 2D: a square one: of axis k those from first to first + n - 1, site i at lo + dx (i +
   1/2). */
typedef struct fsi__sites { int dim; double dx, lo[3], first[3]; int n[3]; } fsi__sites;

static fsi_vec3 fsi__site(const fsi__sites *s, int i, int j, int k)
{
    return fsi_v3((fsi_real)(s->lo[0] + s->dx * (s->first[0] + i + 0.5)),
        (fsi_real)(s->lo[1] + s->dx * (s->first[1] + j + 0.5)),
        s->dim == 2 ? 0 : (fsi_real)(s->lo[2] + s->dx * (s->first[2] + k + 0.5)));
}

/* The lattice over a box, from its corner lo on: along[k] sites along axis k, whole spacings but for `slack`. */
static void fsi__sites_over(fsi__sites *s, int dim, double dx, fsi_box3 box, double slack, double along[3])
{
    int k;
    memset(s, 0, sizeof *s);
    s->dim = dim;
    s->dx = dx;
    for (k = 0; k < 3; k++) {
        s->lo[k] = (double)fsi__axis(box.lo, k);
        along[k] = k == 2 && dim == 2 ? 1 : floor(((double)fsi__axis(box.hi, k) - s->lo[k]) / dx + slack);
    }
}

FSI_API fsi_shape fsi__shape_of_liquid(const fsi_mesh *mesh)
{
    fsi_shape shape = fsi_shape_mesh(mesh);
    if (shape.mesh && mesh->container) shape.sign = -1;
    return shape;
}

FSI_API int fsi__is_well_inside(const fsi_shape *shape, fsi_vec3 x, fsi_real dx, int *hint)
{
    return -shape->distance(shape, x, hint) >= dx / 2 * (fsi_real)0.999;
}

/* Writes the sites of a lattice that are well inside `shape` (NULL: all). */
static int fsi__write_sites(const fsi__sites *s, const fsi_shape *shape, fsi_vec3 *out, int capacity)
{
    int i, j, k, hint = -1, found = 0;
    for (k = 0; k < s->n[2]; k++) for (j = 0; j < s->n[1]; j++) for (i = 0; i < s->n[0]; i++) {
        const fsi_vec3 x = fsi__site(s, i, j, k);
        if (shape && !fsi__is_well_inside(shape, x, (fsi_real)s->dx, &hint)) continue;
        if (found < capacity) out[found] = x;
        found++;
    }
    return found;
}

static fsi_status fsi__sample(fsi_context *context, const char *fn, fsi_box3 box, fsi_real spacing, int dim,
    const fsi_shape *shape, fsi_vec3 *out, int capacity, int *count)
{
    double n[3], total;
    fsi__sites s;
    int k;

    /* The arguments. */
    if (!count || capacity < 0 || (capacity > 0 && !out))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, capacity,
            "count or out is NULL, or capacity %d is negative", capacity);
    *count = 0;
    if (dim != 2 && dim != 3)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, dim, "dim is %d, it must be 2 or 3", dim);
    if (dim == 2) box.lo.z = box.hi.z = 0;
    if (!fsi_v3_is_finite(box.lo) || !fsi_v3_is_finite(box.hi) || !fsi_is_finite((double)spacing))
        return fsi__fail(context, FSI_ERROR_NAN, fn, -1, (double)spacing, "the box or the spacing is not finite");
    if (!(spacing > 0)) return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, (double)spacing,
        "spacing is %g, it must be positive", (double)spacing);

    /* The lattice, and its sites within the shape. */
    fsi__sites_over(&s, dim, (double)spacing, box, 1e-5, n);
    total = n[0] * n[1] * n[2];
    if (n[0] < 0 || n[1] < 0 || n[2] < 0)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0, "the box is empty: lo is above hi");
    if (total < 1) return FSI_OK; /* thinner than a spacing */
    if (total > 2147483647.0) return fsi__fail(context, FSI_ERROR_LIMIT, fn, -1, total,
        "%g lattice points, more than 2^31 - 1", total);
    for (k = 0; k < 3; k++) s.n[k] = (int)n[k];
    *count = fsi__write_sites(&s, shape, out, capacity);
    return FSI_OK;
}

FSI_API fsi_status fsi_sample_box(fsi_context *context, fsi_box3 box, fsi_real spacing, int dim, fsi_vec3 *out,
                                  int capacity, int *count)
{
    return fsi__sample(context, "fsi_sample_box", box, spacing, dim, NULL, out, capacity, count);
}

FSI_API fsi_status fsi_sample_mesh(const fsi_mesh *mesh, fsi_real spacing, fsi_vec3 *out, int capacity, int *count)
{
    fsi_shape shape;
    if (!fsi__is_mesh(mesh)) return mesh ? FSI_ERROR_COOKIE : FSI_ERROR_ARGUMENT;
    if (mesh->kind != FSI_MESH_CLOSED)
        return fsi__fail(mesh->context, FSI_ERROR_MESH, "fsi_sample_mesh", -1, 0,
            "the mesh is not closed: it has no inside");
    shape = fsi__shape_of_liquid(mesh);
    return fsi__sample(mesh->context, "fsi_sample_mesh", mesh->box, spacing, mesh->corners, &shape, out, capacity,
        count);
}

FSI__COLD_BEGIN

/* ---- >>filling shapes ------------------------------------------------------------------------------------- */

/* Present particles, hashed by cells of side dx that start at the first site. */
typedef struct fsi__taken { const fsi_vec3 *position; int count, mask, *head, *next; } fsi__taken;

static const char *const fsi__fill_kinds[3] = { "box", "sphere", "mesh" };

static fsi__fill fsi__fill_begin(const char *fn, fsi__fill_kind kind, fsi_vec3 velocity)
{
    fsi__fill f;
    memset(&f, 0, sizeof f);
    f.function = fn;
    f.kind = kind;
    f.velocity = velocity;
    f.clip = fsi_box3_empty();
    return f;
}

FSI_API fsi__fill fsi__fill_box(const char *fn, fsi_box3 box, fsi_vec3 velocity)
{
    fsi__fill f = fsi__fill_begin(fn, FSI__FILL_BOX, velocity);
    f.shape = fsi_shape_box(box);
    return f;
}

FSI_API fsi__fill fsi__fill_sphere(const char *fn, fsi_vec3 center, fsi_real radius, fsi_vec3 velocity)
{
    fsi__fill f = fsi__fill_begin(fn, FSI__FILL_SPHERE, velocity);
    f.shape = fsi_shape_sphere(center, radius);
    return f;
}

FSI_API fsi__fill fsi__fill_mesh(const char *fn, const fsi_mesh *mesh, fsi_vec3 velocity)
{
    fsi__fill f = fsi__fill_begin(fn, FSI__FILL_MESH, velocity);
    f.mesh = mesh;
    f.shape = fsi__shape_of_liquid(mesh);
    return f;
}

static fsi_status fsi__check_fill(const fsi__particles *t, const fsi__fill *f)
{
    const fsi_mesh *m = f->mesh;
    const fsi_box3 *b = &f->shape.box;
    const double r = (double)f->shape.radius;

    /* Velocity, box and mesh. */
    if (f->kind == FSI__FILL_MESH && !m)
        return fsi__fail(t->context, FSI_ERROR_ARGUMENT, f->function, -1, 0, "mesh is NULL");
    if (!fsi_v3_is_finite(f->velocity)) return fsi__fail(t->context, FSI_ERROR_NAN, f->function, -1, 0,
        "the velocity is not finite");
    if (f->kind == FSI__FILL_BOX && !(fsi_v3_is_finite(b->lo) && fsi_v3_is_finite(b->hi)))
        return fsi__fail(t->context, FSI_ERROR_NAN, f->function, -1, 0, "the box is not finite");
    if (m && !fsi__is_mesh(m))
        return fsi__fail(t->context, FSI_ERROR_COOKIE, f->function, -1, 0,
            "the mesh was not made by fsi_mesh_create of this version and precision");
    if (m && m->corners != t->dim)
        return fsi__fail(t->context, FSI_ERROR_ARGUMENT, f->function, -1, m->corners,
            "the mesh: a %dD simulator needs %s", t->dim, t->dim == 3 ? "triangles" : "segments");
    if (m && m->kind != FSI_MESH_CLOSED)
        return fsi__fail(t->context, FSI_ERROR_MESH, f->function, -1, 0, "the mesh is not closed: it has no inside");

    /* Sphere. */
    if (f->kind != FSI__FILL_SPHERE) return FSI_OK;
    if (!fsi_v3_is_finite(f->shape.center) || !fsi_is_finite(r))
        return fsi__fail(t->context, FSI_ERROR_NAN, f->function, -1, r, "the sphere is not finite");
    if (!(r > 0)) return fsi__fail(t->context, FSI_ERROR_ARGUMENT, f->function, -1, r,
        "radius is %g, must be positive", r);
    return FSI_OK;
}

/* Around the centre of a sphere: along[k] sites along axis k. */
static void fsi__sites_around(fsi__sites *s, const fsi__particles *t, const fsi_shape *sphere, double along[3])
{
    const double dx = (double)t->dx, r = (double)sphere->radius;
    const int is_small = r < 0.5 * sqrt((double)t->dim) * dx; /* two sites would lie outside: one */
    const double n = floor((is_small ? fmin(2 * r / dx, 1) : 2 * r / dx) + 0.5);
    int k;
    memset(s, 0, sizeof *s);
    s->dim = t->dim;
    s->dx = dx;
    for (k = 0; k < 3; k++) {
        along[k] = k == 2 && t->dim == 2 ? 1 : n;
        s->lo[k] = (double)fsi__axis(sphere->center, k) - along[k] * dx / 2;
    }
}

/* Sets `sites`; n = 0 if none is within the clip. */
static fsi_status fsi__plan_fill(const fsi__particles *t, const fsi__fill *f, fsi__sites *sites)
{
    const double dx = (double)t->dx;
    const int bounded = f->clip.lo.x <= f->clip.hi.x;
    double along[3], total = 1;
    int k;
    if (f->kind == FSI__FILL_SPHERE) fsi__sites_around(sites, t, &f->shape, along);
    else fsi__sites_over(sites, t->dim, dx, f->shape.box, f->kind == FSI__FILL_MESH ? 1e-5 : 0.5, along);
    for (k = 0; k < 3; k++) {
        double last = along[k] - 1;
        if (!(along[k] >= 1)) return fsi__fail(t->context, FSI_ERROR_ARGUMENT, f->function, -1, along[k],
            "the %s holds no particle of spacing %g", fsi__fill_kinds[f->kind], dx);
        if (bounded && !(k == 2 && t->dim == 2)) {
            sites->first[k] = fmax(0, ceil(((double)fsi__axis(f->clip.lo, k) - sites->lo[k]) / dx - 0.5 - 1e-4));
            last = fmin(last, floor(((double)fsi__axis(f->clip.hi, k) - sites->lo[k]) / dx - 0.5 + 1e-4));
        }
        along[k] = fmax(last - sites->first[k] + 1, 0);
        total *= along[k];
    }
    if (!(total <= 5e8)) return fsi__fail(t->context, FSI_ERROR_LIMIT, f->function, -1, total,
        "the %s holds %.0f particles", fsi__fill_kinds[f->kind], total);
    for (k = 0; k < 3; k++) sites->n[k] = total > 0 ? (int)along[k] : 0;
    return FSI_OK;
}

/* The cell of x, which is near the sites; 2D: z is ignored. */
static void fsi__taken_cell(const fsi__sites *s, fsi_vec3 x, int cell[3])
{
    cell[0] = (int)floor(((double)x.x - s->lo[0]) / s->dx - s->first[0]);
    cell[1] = (int)floor(((double)x.y - s->lo[1]) / s->dx - s->first[1]);
    cell[2] = s->dim == 2 ? 0 : (int)floor(((double)x.z - s->lo[2]) / s->dx - s->first[2]);
}

static uint32_t fsi__taken_key(const int cell[3])
{
    return (uint32_t)cell[0] * 73856093u ^ (uint32_t)cell[1] * 19349663u ^ (uint32_t)cell[2] * 83492791u;
}

/* Is x within one cell of the lattice's box? The sites of a mesh or sphere are a subset. */
static int fsi__is_by_sites(const fsi__sites *s, fsi_vec3 x)
{
    int k;
    for (k = 0; k < s->dim; k++) {
        const double i = ((double)fsi__axis(x, k) - s->lo[k]) / s->dx - s->first[k];
        if (!(i > -1 && i < s->n[k] + 1)) return 0;
    }
    return 1;
}

/* Hashes a copy of the particles near the sites (the simulator's array may move when it grows). 0: no memory. */
static int fsi__make_taken(const fsi__particles *t, const fsi__sites *s, fsi__taken *taken, fsi_vec3 **copy)
{
    const fsi_vec3 *x = *t->position;
    int i, n = 0;
    *copy = NULL;
    memset(taken, 0, sizeof *taken);

    /* Their number and the size of the hash table. */
    for (i = 0; i < *t->count; i++) n += fsi__is_by_sites(s, x[i]);
    if (n == 0) return 1;
    for (taken->mask = 1; taken->mask < n && taken->mask < 1 << 29; taken->mask *= 2) {}
    taken->count = n;

    /* Memory. */
    *copy = (fsi_vec3 *)fsi__alloc(t->context, (size_t)n, sizeof **copy);
    taken->next = (int *)fsi__alloc(t->context, (size_t)n, sizeof(int));
    taken->head = (int *)fsi__alloc(t->context, (size_t)taken->mask, sizeof(int));
    taken->position = *copy;
    if (!*copy || !taken->next || !taken->head) return 0;

    /* A linked list for each key. */
    for (i = 0, n = 0; i < *t->count; i++) {
        int cell[3], *head;
        if (!fsi__is_by_sites(s, x[i])) continue;
        (*copy)[n] = x[i];
        fsi__taken_cell(s, x[i], cell);
        head = &taken->head[fsi__taken_key(cell) & (uint32_t)(taken->mask - 1)];
        taken->next[n] = *head;
        *head = ++n; /* 0 ends a list */
    }
    return 1;
}

static void fsi__free_taken(fsi_context *context, fsi__taken *t, fsi_vec3 *copy)
{
    fsi__free(context, copy, (size_t)t->count, sizeof *copy);
    fsi__free(context, t->next, (size_t)t->count, sizeof(int));
    fsi__free(context, t->head, (size_t)t->mask, sizeof(int));
}

/* Is one of the former particles closer to x than 0.6 dx? */
static int fsi__is_taken(const fsi__sites *s, const fsi__taken *t, fsi_vec3 x)
{
    const double reach = 0.6 * s->dx;
    int own[3], cell[3], k, i;
    if (t->count == 0) return 0;
    fsi__taken_cell(s, x, own);
    for (k = 0; k < 27; k++) {
        cell[0] = own[0] + k % 3 - 1;
        cell[1] = own[1] + k / 3 % 3 - 1;
        cell[2] = own[2] + k / 9 - 1;
        for (i = t->head[fsi__taken_key(cell) & (uint32_t)(t->mask - 1)]; i > 0; i = t->next[i - 1]) {
            fsi_vec3 d = fsi_v3_sub(t->position[i - 1], x);
            if (s->dim == 2) d.z = 0;
            if ((double)fsi_v3_norm2(d) < reach * reach) return 1;
        }
    }
    return 0;
}

/* A box takes all sites, a sphere those within, a mesh those well inside. */
static int fsi__is_in_shape(const fsi__fill *f, const fsi_shape *shape, fsi_vec3 x, fsi_real dx, int *hint)
{
    if (f->kind == FSI__FILL_BOX) return 1;
    return f->kind == FSI__FILL_MESH ? fsi__is_well_inside(shape, x, dx, hint) : shape->distance(shape, x, hint) <= 0;
}

/* Adds the free sites inside the shape. */
static fsi_status fsi__add_sites(const fsi__particles *t, const fsi__fill *f, const fsi__sites *s,
    const fsi__taken *taken)
{
    fsi_shape shape = f->shape;
    fsi_status status = FSI_OK;
    int i, j, k, hint = -1, added = 0;
    if (s->dim == 2) shape.center.z = 0;
    for (k = 0; k < s->n[2]; k++) for (j = 0; j < s->n[1]; j++) for (i = 0; i < s->n[0] && status == FSI_OK; i++) {
        const fsi_vec3 x = fsi__site(s, i, j, k);
        if (!fsi__is_in_shape(f, &shape, x, t->dx, &hint) || fsi__is_taken(s, taken, x)
            || !f->is_free(f->simulator, x)) continue;
        status = f->add(f->simulator, x, f->velocity);
        added++;
    }
    if (status == FSI_OK && added == 0) fsi__warn(t->context,
        "%s added nothing: all of it lies outside, in obstacles or in liquid", f->function);
    return status;
}

FSI_API fsi_status fsi__particles_fill(fsi__particles *t, const fsi__fill *f, int *added)
{
    const uint64_t first = t->next;
    const int start = *t->count;
    fsi__sites s;
    fsi__taken taken;
    fsi_vec3 *copy;
    fsi_status status = fsi__check_fill(t, f);
    if (added) *added = 0;
    if (status == FSI_OK) status = fsi__plan_fill(t, f, &s);
    if (status != FSI_OK) return status;
    if (fsi__make_taken(t, &s, &taken, &copy)) status = fsi__add_sites(t, f, &s, &taken);
    else status = fsi__fail(t->context, FSI_ERROR_MEMORY, f->function, -1, taken.count,
        "no memory to look at %d particles", taken.count);
    fsi__free_taken(t->context, &taken, copy);
    if (status != FSI_OK) {
        *t->count = start;
        t->next = first;
    }
    if (added) *added = *t->count - start;
    return status;
}

FSI__COLD_END

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
