/* fsi.h - the ground that all fsi headers share: numbers, host services, meshes, neighbours, surfaces.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi.h"
         #include "fsi.h"

   NEIGHBOURS, A MESH, AND WHAT IS INSIDE
      fsi_vec3 corner[4];
      int face[12] = { 0, 2, 1,  0, 1, 3,  1, 2, 3,  2, 0, 3 };
      fsi_context ctx = fsi_default_context();        // hooks for memory, threads, clock, messages: all optional
      fsi_mesh_desc d = fsi_mesh_default_desc();
      fsi_mesh *mesh;
      corner[0] = fsi_v3(0, 0, 0); corner[1] = fsi_v3(1, 0, 0); corner[2] = fsi_v3(0, 1, 0); corner[3] = fsi_v3(0, 0, 1);
      d.context = &ctx;
      d.vertices = corner; d.vertex_count = 4;
      d.elements = face;   d.element_count = 4;
      if (fsi_mesh_create(&mesh, &d) != FSI_OK) {
          puts(ctx.error.message);                    // "triangle 2 ..."
          return 1;
      }
      printf("depth of a point inside: %g m\n", (double)-fsi_mesh_signed_distance(mesh, fsi_v3(0.1f, 0.1f, 0.1f)));
      fsi_mesh_destroy(mesh);

   WHAT IS IN HERE (search for >>)
      >>vectors >>elementary functions >>matrices    plain value types, no operator magic
      >>neighbours     all pairs within a radius, unbounded domain
      >>meshes         triangles, segments, tetrahedra: check, repair, closest point, rays, sweeps, inside or outside
      >>bodies         what a rigid body and a liquid tell each other
      >>surface        a watertight surface around particles, for drawing; particles that fill a mesh
      >>context        services of the host;  >>status  what can go wrong;  >>debug draw
   MACROS YOU MAY DEFINE (the same in every file that includes an fsi header)
      FSI_IMPLEMENTATION   emit the function bodies here (in one file only)
      FSI_STATIC           make everything private to this file
      FSI_REAL_FLOAT       fsi_real is float instead of double
      FSI_ASSERT(x)        bugs inside fsi only, never your data      default: nothing
      FSI_NO_SIMD          plain C instead of SSE2 or AVX (same bits)
      FSI_LANES_DOUBLE     pair arithmetic in double instead of float (verification; about 3 times slower)
      FSI_ALLOW_FAST_MATH  build under -ffast-math all the same (no promise of determinism or of NaN checks)
      FSI_NO_OPTIMIZE      gcc -O0: leave fsi's own functions at -O0 too, to step through them (25 times slower).
                           Default: gcc builds them at -O2 where the command line does not optimise (__OPTIMIZE__ is not
                           defined); your code stays at -O0. -Og and -O1 are kept as they are. clang, tcc and cl cannot do
                           that from a header: in their debug builds compile fsi_impl.c, or the one file with
                           FSI_IMPLEMENTATION, by itself: clang -O2 -c fsi_impl.c, and link it.

   UNITS
      SI everywhere: metres, kilograms, seconds, newtons, pascals. Right-handed axes; gravity decides what is up.

   THREADS
      Loops go to context->parallel_for; NULL: to OpenMP when compiled with it (-fopenmp), else they run where they are. So do
      loops of less than 20 us on one thread: a liquid of 500 particles wakes nobody. OpenMP's threads spin where they wait for
      each other. On a machine that is busy with other programs that costs more than teams save: this is measured, and loops
      then run on one thread, a second at a time. What no header can set: OMP_WAIT_POLICY=passive in the environment (or
      GOMP_SPINCOUNT=0, KMP_BLOCKTIME=0) lets threads sleep at once, which suits programs that share a machine; the default is
      faster where cores are free. Results have the same bits in all these cases.

   DETERMINISM
      Same binary, same kind of CPU, same input: the same bits for any number of threads and any scheduler. Work is cut
      in chunks whose size does not depend on the number of threads; sums are folded in a fixed order; nothing is summed
      with atomics. Not promised: equality between compilers, CPUs, float and double, or other versions of fsi.
      fsi_build_info() says whether this binary contracts a*b+c (then hashes are not comparable with other builds).

   ERRORS
      What can fail returns fsi_status and fills context->error: status, function, element, value and a text that names
      the culprit (not where a cookie is wrong or the object NULL: then no context can be trusted). A call that fails
      changes nothing. Nothing here prints, exits, or keeps a global: a create that fails leaves no object to ask, so give
      every desc a context, and the text of any failure is in context.error.message.
      Files that include fsi in float and in double, or in two versions, do not link: the linker names
      fsi_this_file_is_float_0_1_0_but_FSI_IMPLEMENTATION_is_double_or_another_version, or the like.
*/
#ifndef FSI_H
#define FSI_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FSI_VERSION_MAJOR 0
#define FSI_VERSION_MINOR 1
#define FSI_VERSION_PATCH 0
#define FSI_VERSION (FSI_VERSION_MAJOR * 10000 + FSI_VERSION_MINOR * 100 + FSI_VERSION_PATCH)
#define FSI_VERSION_STRING "0.1.0"

#if (defined(__FAST_MATH__) || defined(_M_FP_FAST) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)) && !defined(FSI_ALLOW_FAST_MATH)
#error "fsi: -ffast-math breaks NaN checks and determinism; drop it, or define FSI_ALLOW_FAST_MATH to go on without them"
#endif

/* ---- >>linkage ------------------------------------------------------------------------------------------------ */

#if defined(__GNUC__) || defined(__clang__)
#define FSI__UNUSED __attribute__((unused))
#define FSI__PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define FSI__UNUSED
#define FSI__PRINTF(f, a)
#endif

#if defined(FSI_STATIC)
#define FSI_API static FSI__UNUSED
#elif defined(__cplusplus)
#define FSI_API extern "C"
#else
#define FSI_API extern
#endif

/* Float and double, or two versions, in one program would pass structs of different layouts to each other. So every file
   refers to one function of the implementation, whose name says what the file was compiled for; an implementation of another
   precision or version has it not, and the linker prints the name. Declared here, it may also be looked up by other
   languages (dlsym). A file with FSI_STATIC refers to nothing: define it also in a program that has no implementation
   because it uses nothing but inline functions (FSI_FN). */
#if defined(FSI_REAL_FLOAT)
#define FSI__LINK_NAME(a, b, c) fsi_this_file_is_float_##a##_##b##_##c##_but_FSI_IMPLEMENTATION_is_double_or_another_version
#else
#define FSI__LINK_NAME(a, b, c) fsi_this_file_is_double_##a##_##b##_##c##_but_FSI_IMPLEMENTATION_is_float_or_another_version
#endif
#define FSI__LINK_NAME_OF(a, b, c) FSI__LINK_NAME(a, b, c) /* versions are expanded first */
#define FSI__LINKED FSI__LINK_NAME_OF(FSI_VERSION_MAJOR, FSI_VERSION_MINOR, FSI_VERSION_PATCH)
FSI_API void FSI__LINKED(void); /* does nothing */
#if !defined(FSI_STATIC) && defined(_MSC_VER) && defined(FSI_REAL_FLOAT)
__pragma(detect_mismatch("fsi_real", "float")) __pragma(detect_mismatch("fsi version", FSI_VERSION_STRING))
#elif !defined(FSI_STATIC) && defined(_MSC_VER)
__pragma(detect_mismatch("fsi_real", "double")) __pragma(detect_mismatch("fsi version", FSI_VERSION_STRING))
#elif !defined(FSI_STATIC) && !defined(__CUDACC__)
#if defined(__GNUC__) || defined(__clang__)
__attribute__((used))
#endif
static void (*const fsi__linked)(void) = FSI__LINKED;
#endif

/* FSI_FN marks the arithmetic of one pair, cell or contact: takes values, returns values, always inlined, CPU and GPU. */
#if defined(__CUDACC__)
#define FSI_FN static __host__ __device__ __forceinline__
#elif defined(_MSC_VER) && !defined(__clang__)
#define FSI_FN static __forceinline
#elif defined(__TINYC__)
#define FSI_FN static inline
#elif defined(__GNUC__) || defined(__clang__)
#define FSI_FN static inline __attribute__((always_inline, unused))
#else
#define FSI_FN static inline
#endif

#if defined(__CUDACC__)
#define FSI__HOST_FN static inline /* the same for what calls functions that are not inlined */
#else
#define FSI__HOST_FN FSI_FN
#endif

#ifndef FSI_ASSERT
#define FSI_ASSERT(x) ((void)0)
#endif

/* Floating-point contraction is switched off between FSI__STRICT_BEGIN and FSI__STRICT_END, so that a*b+c is rounded
   twice in every build. gcc reads the setting of the function that loops (helpers are inlined into it); clang reads it
   where the expression is written, so there helpers stand inside a region of their own. no-math-errno lets sqrt vectorise. */
#if defined(__clang__)
#define FSI__STRICT_BEGIN _Pragma("STDC FP_CONTRACT OFF")
#define FSI__STRICT_END _Pragma("STDC FP_CONTRACT DEFAULT")
#define FSI__STRICT_FN_BEGIN FSI__STRICT_BEGIN
#define FSI__STRICT_FN_END FSI__STRICT_END
#elif defined(__GNUC__) && !defined(__TINYC__) && !defined(__CUDACC__)
#if defined(__OPTIMIZE__) || defined(FSI_NO_OPTIMIZE)
#define FSI__STRICT_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize(\"fp-contract=off\", \"no-math-errno\")")
#else /* -O0: fsi at -O2 all the same, 25 times faster; the caller's own code stays as it is */
#define FSI__STRICT_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize(\"O2\", \"fp-contract=off\", \"no-math-errno\")")
#endif
#define FSI__STRICT_END _Pragma("GCC pop_options")
#define FSI__STRICT_FN_BEGIN
#define FSI__STRICT_FN_END
#elif defined(_MSC_VER)
#define FSI__STRICT_BEGIN __pragma(float_control(push)) __pragma(fp_contract(off))
#define FSI__STRICT_END __pragma(float_control(pop))
#define FSI__STRICT_FN_BEGIN FSI__STRICT_BEGIN
#define FSI__STRICT_FN_END FSI__STRICT_END
#else
#define FSI__STRICT_BEGIN
#define FSI__STRICT_END
#define FSI__STRICT_FN_BEGIN
#define FSI__STRICT_FN_END
#endif

/* ---- >>numbers ------------------------------------------------------------------------------------------------ */

#if defined(FSI_REAL_FLOAT)
typedef float fsi_real;
#define FSI_REAL_MAX 3.402823466e+38f
#define FSI_REAL_EPS 1.192092896e-07f
#else
typedef double fsi_real;
#define FSI_REAL_MAX 1.7976931348623157e+308
#define FSI_REAL_EPS 2.2204460492503131e-16
#endif

#define FSI_PI 3.14159265358979323846
#define FSI_LANES 8 /* partial sums of a reduction over neighbours; folded in a fixed tree */

typedef struct fsi_vec3 { fsi_real x, y, z; } fsi_vec3;
typedef struct fsi_quat { fsi_real x, y, z, w; } fsi_quat;   /* unit quaternion, w the real part */
typedef struct fsi_mat3 { fsi_real m[9]; } fsi_mat3;         /* row major: m[3*row + column] */
typedef struct fsi_box3 { fsi_vec3 lo, hi; } fsi_box3;       /* empty when lo > hi */

/* ---- >>status ------------------------------------------------------------------------------------------------- */

/* One line per status: name, text. FSI_OK is 0, all others are failures. */
#define FSI_STATUS_LIST(X)                                                          \
    X(FSI_OK, "ok")                                                                 \
    X(FSI_ERROR_ARGUMENT, "an argument is missing or out of its range")             \
    X(FSI_ERROR_COOKIE, "not made by its default or create function, or by another version or precision") \
    X(FSI_ERROR_NAN, "a number is NaN or infinite")                                 \
    X(FSI_ERROR_MEMORY, "an allocation failed")                                     \
    X(FSI_ERROR_LIMIT, "a size exceeds what can be represented")                    \
    X(FSI_ERROR_MESH, "a mesh cannot be used")                                      \
    X(FSI_ERROR_CONVERGENCE, "an iteration did not converge")                       \
    X(FSI_ERROR_FORMAT, "a buffer or file is damaged, truncated or foreign")        \
    X(FSI_ERROR_IO, "reading or writing failed")                                    \
    X(FSI_ERROR_SINGULAR, "a matrix is singular, or not of the kind that it was said to be")

#define FSI__STATUS_ENUM(name, text) name,
typedef enum fsi_status { FSI_STATUS_LIST(FSI__STATUS_ENUM) FSI_STATUS_COUNT } fsi_status;

/* The text of a status, never NULL. */
FSI_API const char *fsi_status_text(fsi_status status);

/* What went wrong in the last call that failed. */
typedef struct fsi_error {
    fsi_status status;
    const char *function;  /* name of the public function, static string; "" before the first error */
    long long element;     /* index of the particle, vertex, triangle, byte, line ... meant by the message; -1 none */
    double value;          /* the offending value; 0 none */
    char message[200];     /* one sentence that names the culprit */
} fsi_error;

/* ---- >>context ------------------------------------------------------------------------------------------------ */

/* Services of the host. Every hook may be NULL. One context serves any number of simulators that are called from one
   thread at a time; simulators that run in different threads at once need a context each (they share `error`). */
typedef struct fsi_context {
    uint32_t cookie;
    void *user;  /* passed to every hook */
    /* Memory: `align` is a power of two <= 64; return NULL on failure. NULL hooks: malloc. Never called from a task. */
    void *(*alloc)(void *user, size_t size, size_t align);
    void (*release)(void *user, void *memory, size_t size, size_t align);
    /* Calls task(arg, i) once for each i in 0..count-1, in any order, on any threads, and returns when all are done.
       NULL: OpenMP when compiled with it, else a loop. `task` never fails and never calls parallel_for. */
    void (*parallel_for)(void *user, int count, void (*task)(void *arg, int index), void *arg);
    double (*now)(void *user);                                /* seconds, for phase times; NULL: phase times are 0 */
    void (*message)(void *user, int level, const char *text); /* level 0 error, 1 warning, 2 note; NULL: silence */
    /* Read only from here. */
    fsi_error error;       /* the last failure; not cleared by success */
    size_t bytes;          /* held now through this context */
    size_t peak_bytes;
    long long allocs;      /* allocations so far */
    double team_debt, team_rests; /* private: seconds that OpenMP's threads lost lately; until when loops run without them */
} fsi_context;

/* A context with default hooks. Copy the result, change the hooks, keep it alive longer than what is made with it. */
FSI_API fsi_context fsi_default_context(void);

/* How this binary was built: "fsi 0.1.0 double contract=0 openmp=0 lanes=8", static string.
   contract is measured by arithmetic, not read from flags. */
FSI_API const char *fsi_build_info(void);
FSI_API int fsi_version(void); /* FSI_VERSION of the implementation that was linked */

/* 64-bit hash of `size` bytes, chained through `seed`. Not cryptographic. */
FSI_API uint64_t fsi_hash(const void *data, size_t size, uint64_t seed);

/* ---- >>debug draw --------------------------------------------------------------------------------------------- */

/* Callbacks that a simulator's *_debug_draw calls; NULL ones are skipped. rgb is 0xRRGGBB. */
typedef struct fsi_debug_draw {
    void *user;
    void (*point)(void *user, fsi_vec3 p, fsi_real size, uint32_t rgb);
    void (*line)(void *user, fsi_vec3 a, fsi_vec3 b, uint32_t rgb);
    void (*triangle)(void *user, fsi_vec3 a, fsi_vec3 b, fsi_vec3 c, uint32_t rgb);
} fsi_debug_draw;

/* ---- >>acceleration -------------------------------------------------------------------------------------------- */

/* A field of accelerations [m/s^2] by the host: at x [m], at `time` [s]. Called from several threads at once; what it returns depends on its arguments alone. */
typedef fsi_vec3 fsi_acceleration_fn(void *user, fsi_vec3 x, double time);

/* ---- >>vectors ------------------------------------------------------------------------------------------------ */

FSI__STRICT_FN_BEGIN

/* Finite (neither NaN nor infinite) by its bits: holds under every compiler flag. */
FSI_FN int fsi_is_finite(double x)
{
    uint64_t b;
    memcpy(&b, &x, sizeof b);
    return (b & 0x7ff0000000000000u) != 0x7ff0000000000000u;
}

FSI_FN fsi_real fsi_min(fsi_real a, fsi_real b) { return a < b ? a : b; }
FSI_FN fsi_real fsi_max(fsi_real a, fsi_real b) { return a > b ? a : b; }
FSI_FN fsi_real fsi_clamp(fsi_real x, fsi_real lo, fsi_real hi) { return x < lo ? lo : (x > hi ? hi : x); }
#if defined(FSI_REAL_FLOAT)
FSI_FN fsi_real fsi_sqrt(fsi_real x) { return sqrtf(x); }
FSI_FN fsi_real fsi_abs(fsi_real x) { return fabsf(x); }
FSI_FN fsi_real fsi_floor(fsi_real x) { return floorf(x); }
#else
FSI_FN fsi_real fsi_sqrt(fsi_real x) { return sqrt(x); }
FSI_FN fsi_real fsi_abs(fsi_real x) { return fabs(x); }
FSI_FN fsi_real fsi_floor(fsi_real x) { return floor(x); }
#endif

FSI_FN fsi_vec3 fsi_v3(fsi_real x, fsi_real y, fsi_real z) { fsi_vec3 v; v.x = x; v.y = y; v.z = z; return v; }
FSI_FN fsi_vec3 fsi_v3_add(fsi_vec3 a, fsi_vec3 b) { return fsi_v3(a.x + b.x, a.y + b.y, a.z + b.z); }
FSI_FN fsi_vec3 fsi_v3_sub(fsi_vec3 a, fsi_vec3 b) { return fsi_v3(a.x - b.x, a.y - b.y, a.z - b.z); }
FSI_FN fsi_vec3 fsi_v3_scale(fsi_vec3 a, fsi_real s) { return fsi_v3(a.x * s, a.y * s, a.z * s); }
FSI_FN fsi_vec3 fsi_v3_madd(fsi_vec3 a, fsi_real s, fsi_vec3 b) { return fsi_v3(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z); } /* a + s b */
FSI_FN fsi_vec3 fsi_v3_min(fsi_vec3 a, fsi_vec3 b) { return fsi_v3(fsi_min(a.x, b.x), fsi_min(a.y, b.y), fsi_min(a.z, b.z)); }
FSI_FN fsi_vec3 fsi_v3_max(fsi_vec3 a, fsi_vec3 b) { return fsi_v3(fsi_max(a.x, b.x), fsi_max(a.y, b.y), fsi_max(a.z, b.z)); }
FSI_FN fsi_real fsi_v3_dot(fsi_vec3 a, fsi_vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
FSI_FN fsi_vec3 fsi_v3_cross(fsi_vec3 a, fsi_vec3 b) { return fsi_v3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); }
FSI_FN fsi_real fsi_v3_norm2(fsi_vec3 a) { return fsi_v3_dot(a, a); }
FSI_FN fsi_real fsi_v3_norm(fsi_vec3 a) { return fsi_sqrt(fsi_v3_dot(a, a)); }
FSI_FN fsi_vec3 fsi_v3_unit(fsi_vec3 a) /* a/|a|, or 0 when |a| is 0 */
{
    fsi_real n = fsi_v3_norm(a);
    return fsi_v3_scale(a, n > 0 ? 1 / n : 0);
}
FSI_FN int fsi_v3_is_finite(fsi_vec3 a) { return fsi_is_finite((double)a.x) && fsi_is_finite((double)a.y) && fsi_is_finite((double)a.z); }

FSI_FN fsi_box3 fsi_box3_empty(void) { fsi_box3 b; b.lo = fsi_v3(FSI_REAL_MAX, FSI_REAL_MAX, FSI_REAL_MAX); b.hi = fsi_v3(-FSI_REAL_MAX, -FSI_REAL_MAX, -FSI_REAL_MAX); return b; }
FSI_FN fsi_box3 fsi_box3_grow(fsi_box3 b, fsi_vec3 p) { b.lo = fsi_v3_min(b.lo, p); b.hi = fsi_v3_max(b.hi, p); return b; }
FSI_FN fsi_box3 fsi_box3_join(fsi_box3 a, fsi_box3 b) { a.lo = fsi_v3_min(a.lo, b.lo); a.hi = fsi_v3_max(a.hi, b.hi); return a; }
FSI_FN fsi_box3 fsi_box3_inflate(fsi_box3 b, fsi_real r) { fsi_vec3 d = fsi_v3(r, r, r); b.lo = fsi_v3_sub(b.lo, d); b.hi = fsi_v3_add(b.hi, d); return b; }
FSI_FN int fsi_box3_overlap(fsi_box3 a, fsi_box3 b)
{
    return a.lo.x <= b.hi.x && b.lo.x <= a.hi.x && a.lo.y <= b.hi.y && b.lo.y <= a.hi.y && a.lo.z <= b.hi.z && b.lo.z <= a.hi.z;
}

FSI__STRICT_FN_END

/* ---- >>elementary functions ------------------------------------------------------------------------------------ */

FSI__STRICT_FN_BEGIN

/* libm differs between platforms, so kernels that feed state use these. All work in double, use nothing but + - * / and
   sqrt, choose by selection instead of branches (they vectorise inside loops), and keep the bits at every -O level.
   Largest error seen against long double libm, in units in the last place (tests/test_math.c):
       fsi_exp 0.9    fsi_log 1.0    fsi_atan2 1.8    fsi_asinh 1.9    fsi_sin, fsi_cos 1.1 (|x| <= 1e6) */

#define FSI__HUGE 1.7976931348623157e308  /* largest double */
#define FSI__TINY 2.2250738585072014e-308 /* smallest normal double */
FSI_FN uint64_t fsi__bits(double x) { uint64_t b; memcpy(&b, &x, sizeof b); return b; }
FSI_FN double fsi__from_bits(uint64_t b) { double x; memcpy(&x, &b, sizeof x); return x; }
FSI_FN double fsi__pick(uint64_t yes, double a, double b) /* yes ? a : b for yes 1 or 0, never a branch */
{
    uint64_t mask = (uint64_t)0 - yes;
    return fsi__from_bits((fsi__bits(a) & mask) | (fsi__bits(b) & ~mask));
}
/* x + 1.5 2^52: its last bits are the integer nearest to x, |x| < 2^31 (ties to even); minus FSI__ROUND it is that integer */
#define FSI__ROUND 6755399441055744.0
FSI_FN uint64_t fsi__round_bits(double x) { return fsi__bits(x + FSI__ROUND); }
FSI_FN double fsi__with_sign(double x, double s) /* x >= 0 with the sign of s */
{
    return fsi__from_bits(fsi__bits(x) | (fsi__bits(s) & 0x8000000000000000u));
}

/* e^x. inf above 709.79, 0 below -745.2, gradual underflow between; NaN stays.
   x = k ln 2 + r with |r| <= ln 2 / 2;  e^x = 2^k (1 + r + r^2 p(r)), p by Taylor (remainder 4e-18). */
FSI_FN double fsi_exp(double x)
{
    double top = fsi__pick((uint64_t)(x > 710), 710, x), a = fsi__pick((uint64_t)(top < -746), -746, top);
    double number = fsi__pick((uint64_t)(a == a), a, 0);
    uint64_t b = fsi__round_bits(number * 1.4426950408889634), half = ((b + 2048) >> 1) & 0x7ff; /* (k + 2048)/2 */
    double k = fsi__from_bits(b) - FSI__ROUND;
    double hi = a - k * 0.6931471805598903, lo = k * 5.497923018708371e-14; /* ln 2 in two parts; k * first is exact */
    double r = hi - lo, tail = (hi - r) - lo;
    double p = 1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720 + r * (1.0 / 5040 + r * (1.0 / 40320
             + r * (1.0 / 362880 + r * (1.0 / 3628800 + r * (1.0 / 39916800 + r * (1.0 / 479001600 + r * (1 / 6227020800.0)))))))))));
    return (1 + (r + (r * r * p + tail))) * fsi__from_bits((half - 1) << 52) * fsi__from_bits((b + 2047 - half) << 52);
}

/* log(hi + lo) + shift ln 2 for normal hi > 0 and |lo| <= |hi|/2^52 (or hi near 1): hi + lo = 2^k (1 + f),
   1/sqrt 2 <= 1 + f < sqrt 2;  log(1 + f) = 2 atanh s = f - s (f - 2 s^2/3 - 2 s^4/5 - ...),  s = f/(2 + f). */
FSI_FN double fsi__log_sum(double hi, double lo, double shift)
{
    const uint64_t root_half = 0x3fe6a09e667f3bcdu, fraction = 0x000fffffffffffffu;
    uint64_t b = fsi__bits(hi) + (0x3ff0000000000000u - root_half);
    double n = fsi__from_bits(0x4330000000000000u | (b >> 52)) - (4503599627370496.0 + 1023) + shift; /* k + shift */
    double f = (fsi__from_bits((b & fraction) + root_half) - 1) + lo * (0.5 * fsi__from_bits((2047 - (b >> 52)) << 52));
    double s = f / (2 + f), t = s * s;
    double q = t * (2.0 / 3 + t * (2.0 / 5 + t * (2.0 / 7 + t * (2.0 / 9 + t * (2.0 / 11 + t * (2.0 / 13 + t * (2.0 / 15
             + t * (2.0 / 17 + t * (2.0 / 19 + t * (2.0 / 21 + t * (2.0 / 23)))))))))));
    return n * 0.6931471805598903 + (f - (s * (f - q) - n * 5.497923018708371e-14));
}

/* Natural logarithm. log(+-0) = -inf, log(x < 0) = NaN, log(inf) = inf; subnormals are exact. */
FSI_FN double fsi_log(double x)
{
    uint64_t tiny = x < FSI__TINY, positive = x > 0, finite = x <= FSI__HUGE;
    double up = x * 18014398509481984.0, y = fsi__pick(positive & finite, fsi__pick(tiny, up, x), 1); /* 2^54 */
    double pole = fsi__pick((uint64_t)(x == 0), fsi__from_bits(0xfff0000000000000u), fsi__from_bits(0x7ff8000000000000u));
    return fsi__log_sum(y, 0, fsi__pick(tiny, -54, 0)) + fsi__pick(positive, fsi__pick(finite, 0, x), pole);
}

/* Inverse hyperbolic sine: odd, asinh(+-inf) = +-inf. With a = |x|:
   asinh a = log(1 + w),  w = a + a^2/(1 + sqrt(1 + a^2));  log a + log 2 when a > 1e9. */
FSI_FN double fsi_asinh(double x)
{
    double a = fabs(x);
    uint64_t big = a > 1e9, huge = !(a <= FSI__HUGE);
    double b = fsi__pick(big, 1, a), w = b + b * b / (1 + sqrt(1 + b * b));
    double sum = 1 + w, part = sum - w, lost = (1 - part) + (w - (sum - part)); /* 1 + w = sum + lost (Knuth) */
    double hi = fsi__pick(big, fsi__pick(huge, 1, a), sum), special = fsi__pick(huge, a, 0);
    return fsi__with_sign(fsi__log_sum(hi, fsi__pick(big, 0, lost), fsi__pick(big, 1, 0)) + special, x);
}

/* Angle of the vector (x, y) in [-pi, pi]; zeros and infinities as in C99 (atan2(0, -0) = pi, atan2(inf, inf) = pi/4).
   t = smaller/larger of |x|, |y|;  atan t = atan z or pi/4 + atan z, z = (t - 1)/(t + 1), so that |z| <= tan(pi/8);
   atan z = z + z^3 p(z^2), p minimax (relative error 5e-20). The octant adds a multiple of pi/4. */
FSI_FN double fsi_atan2(double y, double x)
{
    double ax = fabs(x), ay = fabs(y);
    uint64_t steep = ay > ax, left = fsi__bits(x) >> 63, number = (uint64_t)(x == x) & (uint64_t)(y == y);
    double big = fsi__pick(steep, ay, ax), few = fsi__pick(steep, ax, ay), scale = fsi__pick((uint64_t)(big > 1e300), 0.25, 1);
    uint64_t huge = big > FSI__HUGE;
    double a = fsi__pick(huge, fsi__pick((uint64_t)(few > FSI__HUGE), 1, 0), few * scale), b = fsi__pick(huge, 1, big * scale);
    uint64_t upper = a > 0.41421356237309503 * b;
    double z = (a - fsi__pick(upper, b, 0)) / (fsi__pick((uint64_t)(big > 0), b, 1) + fsi__pick(upper, a, 0)), u = z * z;
    double p = -0.3333333333333333 + u * (0.19999999999998147 + u * (-0.14285714285436438 + u * (0.11111111090720936
             + u * (-0.09090908224184224 + u * (0.07692284356081766 + u * (-0.06666248019245558 + u * (0.05877211846282284
             + u * (-0.0521953249862126 + u * (0.045078148501680806 + u * (-0.03356744359012793 + u * 0.015284110721538641))))))))));
    /* angle = turn pi/4 + sign atan z, mirrored at the y axis when x < 0; NaN is put back at the end */
    double octant = fsi__pick(upper, 1, fsi__pick(steep, 2, 0)), turn = fsi__pick(left, 4 - octant, octant);
    double sign = fsi__pick(steep ^ left, -1, 1), special = fsi__pick(number, 0, x + y);
    double angle = turn * 0.7853981633974483 + (sign * z + (sign * (z * u * p) + turn * 3.061616997868383e-17));
    return fsi__with_sign(fabs(angle) + special, y);
}

/* Sine and cosine together. NaN for |x| > 1e9 and for inf; sin(-0) is +0; beyond 1e6 the error stays below that of one ulp of x.
   x = k pi/2 + r, |r| <= pi/4, r = hi + lo (pi/2 in three parts, Cody and Waite 1980); Taylor to r^17 and r^18. */
FSI_FN void fsi_sincos(double x, double *sine, double *cosine)
{
    uint64_t good = fabs(x) <= 1e9;
    double number = fsi__pick(good, x, 0), a = fsi__pick(good, x, fsi__from_bits(0x7ff8000000000000u));
    uint64_t q = fsi__round_bits(number * 0.6366197723675814);
    double k = fsi__from_bits(q) - FSI__ROUND;
    double t = a - k * 1.5707963267341256, w = k * 6.077100506303966e-11, w2 = k * 2.0222662487959506e-21;
    double t2 = t - w, r = t2 - w2, lo = ((t - t2) - w) + ((t2 - r) - w2), u = r * r;
    double s = r + (lo + r * u * (-1.0 / 6 + u * (1.0 / 120 + u * (-1.0 / 5040 + u * (1.0 / 362880 + u * (-1.0 / 39916800
             + u * (1.0 / 6227020800.0 + u * (-1.0 / 1307674368000.0 + u * (1 / 355687428096000.0)))))))));
    double h = 0.5 * u, c = 1 - h;
    c = c + (((1 - c) - h) - r * lo + u * u * (1.0 / 24 + u * (-1.0 / 720 + u * (1.0 / 40320 + u * (-1.0 / 3628800
      + u * (1.0 / 479001600 + u * (-1.0 / 87178291200.0 + u * (1.0 / 20922789888000.0 - u * (1 / 6402373705728000.0)))))))));
    { /* odd quadrants swap the two; the sign is the second bit of the quadrant */
        uint64_t swap = (uint64_t)0 - (q & 1), both = (fsi__bits(s) ^ fsi__bits(c)) & swap;
        *sine = fsi__from_bits(fsi__bits(s) ^ both ^ ((q & 2) << 62));
        *cosine = fsi__from_bits(fsi__bits(c) ^ both ^ (((q + 1) & 2) << 62));
    }
}
FSI_FN double fsi_sin(double x) { double s, c; fsi_sincos(x, &s, &c); return s; }
FSI_FN double fsi_cos(double x) { double s, c; fsi_sincos(x, &s, &c); return c; }

/* ---- >>matrices and quaternions -------------------------------------------------------------------------------- */

FSI_FN fsi_mat3 fsi_m3_rows(fsi_vec3 a, fsi_vec3 b, fsi_vec3 c) /* the matrix with these rows */
{
    fsi_mat3 r;
    r.m[0] = a.x; r.m[1] = a.y; r.m[2] = a.z;
    r.m[3] = b.x; r.m[4] = b.y; r.m[5] = b.z;
    r.m[6] = c.x; r.m[7] = c.y; r.m[8] = c.z;
    return r;
}
FSI_FN fsi_vec3 fsi_m3_row(fsi_mat3 a, int i) { return fsi_v3(a.m[3 * i], a.m[3 * i + 1], a.m[3 * i + 2]); }
FSI_FN fsi_vec3 fsi_m3_column(fsi_mat3 a, int j) { return fsi_v3(a.m[j], a.m[j + 3], a.m[j + 6]); }
FSI_FN fsi_mat3 fsi_m3_transpose(fsi_mat3 a) { return fsi_m3_rows(fsi_m3_column(a, 0), fsi_m3_column(a, 1), fsi_m3_column(a, 2)); }
FSI_FN fsi_mat3 fsi_m3_diagonal(fsi_vec3 d) { return fsi_m3_rows(fsi_v3(d.x, 0, 0), fsi_v3(0, d.y, 0), fsi_v3(0, 0, d.z)); }
FSI_FN fsi_mat3 fsi_m3_identity(void) { return fsi_m3_diagonal(fsi_v3(1, 1, 1)); }
FSI_FN fsi_mat3 fsi_m3_outer(fsi_vec3 a, fsi_vec3 b) /* a b^T */
{
    return fsi_m3_rows(fsi_v3_scale(b, a.x), fsi_v3_scale(b, a.y), fsi_v3_scale(b, a.z));
}
FSI_FN fsi_mat3 fsi_m3_madd(fsi_mat3 a, fsi_real s, fsi_mat3 b) /* A + s B */
{
    int k;
    for (k = 0; k < 9; k++) a.m[k] += s * b.m[k];
    return a;
}
FSI_FN fsi_mat3 fsi_m3_scale(fsi_mat3 a, fsi_real s) { int k; for (k = 0; k < 9; k++) a.m[k] *= s; return a; }
FSI_FN fsi_vec3 fsi_m3_mul_v3(fsi_mat3 a, fsi_vec3 v) /* A v */
{
    return fsi_v3(fsi_v3_dot(fsi_m3_row(a, 0), v), fsi_v3_dot(fsi_m3_row(a, 1), v), fsi_v3_dot(fsi_m3_row(a, 2), v));
}
FSI_FN fsi_mat3 fsi_m3_mul(fsi_mat3 a, fsi_mat3 b) /* A B */
{
    fsi_mat3 t = fsi_m3_transpose(b);
    return fsi_m3_rows(fsi_m3_mul_v3(t, fsi_m3_row(a, 0)), fsi_m3_mul_v3(t, fsi_m3_row(a, 1)), fsi_m3_mul_v3(t, fsi_m3_row(a, 2)));
}
FSI_FN fsi_real fsi_m3_det(fsi_mat3 a) { return fsi_v3_dot(fsi_m3_row(a, 0), fsi_v3_cross(fsi_m3_row(a, 1), fsi_m3_row(a, 2))); }
/* Inverse: the cofactors over the determinant, in double; all zero when the determinant is 0. */
FSI_FN fsi_mat3 fsi_m3_inverse(fsi_mat3 a)
{
    double c[9], d;
    fsi_mat3 r;
    int i, j;
    for (i = 0; i < 3; i++)
        for (j = 0; j < 3; j++) { /* the cofactor of row i, column j, from the next two of each, cyclic */
            int p = 3 * ((i + 1) % 3), q = 3 * ((i + 2) % 3), k = (j + 1) % 3, l = (j + 2) % 3;
            c[3 * i + j] = (double)a.m[p + k] * (double)a.m[q + l] - (double)a.m[p + l] * (double)a.m[q + k];
        }
    d = (double)a.m[0] * c[0] + (double)a.m[1] * c[1] + (double)a.m[2] * c[2];
    for (i = 0; i < 9; i++) r.m[i] = (fsi_real)(d < 0 || d > 0 ? c[3 * (i % 3) + i / 3] / d : 0);
    return r;
}

/* Quaternions stand for rotations: q and -q are the same one; a * b turns by b first, then by a. */
FSI_FN fsi_quat fsi_quat_make(fsi_real x, fsi_real y, fsi_real z, fsi_real w) { fsi_quat q; q.x = x; q.y = y; q.z = z; q.w = w; return q; }
FSI_FN fsi_quat fsi_quat_identity(void) { return fsi_quat_make(0, 0, 0, 1); }
FSI_FN fsi_quat fsi_quat_conj(fsi_quat q) { return fsi_quat_make(-q.x, -q.y, -q.z, q.w); } /* the inverse rotation */
FSI_FN fsi_quat fsi_quat_mul(fsi_quat a, fsi_quat b)
{
    return fsi_quat_make(a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y, a.w * b.y + a.y * b.w + a.z * b.x - a.x * b.z,
                         a.w * b.z + a.z * b.w + a.x * b.y - a.y * b.x, a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z);
}
FSI_FN fsi_quat fsi_quat_unit(fsi_quat q) /* q/|q|; identity when |q| is 0 */
{
    fsi_real n = fsi_sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
    return n > 0 ? fsi_quat_make(q.x / n, q.y / n, q.z / n, q.w / n) : fsi_quat_identity();
}
FSI_FN fsi_vec3 fsi_quat_rotate(fsi_quat q, fsi_vec3 v) /* q v q*;  v + 2 w (u x v) + 2 u x (u x v), u = (x, y, z) */
{
    fsi_vec3 u = fsi_v3(q.x, q.y, q.z), t = fsi_v3_scale(fsi_v3_cross(u, v), 2);
    return fsi_v3_add(fsi_v3_madd(v, q.w, t), fsi_v3_cross(u, t));
}
/* R with R v = fsi_quat_rotate(q, v), but orthogonal to rounding for any q, unit or not: 1 + s (w [u]x + [u]x [u]x), s = 2/|q|^2. */
FSI_FN fsi_mat3 fsi_quat_matrix(fsi_quat q)
{
    fsi_real s = 2 / (q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w), x = s * q.x, y = s * q.y, z = s * q.z;
    return fsi_m3_rows(fsi_v3(1 - (y * q.y + z * q.z), x * q.y - z * q.w, x * q.z + y * q.w),
                       fsi_v3(x * q.y + z * q.w, 1 - (x * q.x + z * q.z), y * q.z - x * q.w),
                       fsi_v3(x * q.z - y * q.w, y * q.z + x * q.w, 1 - (x * q.x + y * q.y)));
}
/* Turn by |r| radians about r (right-handed); |r| <= 1e9. (sin(|r|/2) r/|r|, cos(|r|/2)), in double. */
FSI_FN fsi_quat fsi_quat_from_rotation_vector(fsi_vec3 r)
{
    double x = (double)r.x, y = (double)r.y, z = (double)r.z, n = sqrt(x * x + y * y + z * z), s, c;
    fsi_sincos(0.5 * n, &s, &c);
    s = n > 1e-150 ? s / n : 0.5; /* below, the square of n is lost; the sine is its argument long before */
    return fsi_quat_make((fsi_real)(s * x), (fsi_real)(s * y), (fsi_real)(s * z), (fsi_real)c);
}
FSI_FN fsi_quat fsi_quat_from_axis_angle(fsi_vec3 axis, fsi_real angle) /* axis need not be unit; identity when it is 0 */
{
    return fsi_quat_from_rotation_vector(fsi_v3_scale(fsi_v3_unit(axis), angle));
}
/* Inverse of the above for the shorter way round: |result| <= pi. 2 atan2(|u|, |w|) along u = (x, y, z). */
FSI_FN fsi_vec3 fsi_quat_rotation_vector(fsi_quat q)
{
    double x = (double)q.x, y = (double)q.y, z = (double)q.z, w = (double)q.w, n = sqrt(x * x + y * y + z * z);
    double s = n > 1e-150 ? 2 * fsi_atan2(n, fabs(w)) / n : 2;
    s = w < 0 ? -s : s;
    return fsi_v3((fsi_real)(s * x), (fsi_real)(s * y), (fsi_real)(s * z));
}
/* Orientation after dt seconds at a constant angular velocity w [rad/s, world axes]: exp(w dt) q, made unit again. */
FSI_FN fsi_quat fsi_quat_integrate(fsi_quat q, fsi_vec3 w, fsi_real dt)
{
    return fsi_quat_unit(fsi_quat_mul(fsi_quat_from_rotation_vector(fsi_v3_scale(w, dt)), q));
}

FSI__STRICT_FN_END

/* Decompositions work in double inside, at any scale (1e-300 to 1e300), for singular and repeated cases alike; a matrix
   that holds NaN or inf gives NaN. Errors are a few units of rounding of the largest entry.
   A symmetric (its upper triangle is not read): A = V diag(values) V^T, values descending, eigenvectors are the columns
   of V, det V = +1. vectors may be NULL. */
FSI_API void fsi_m3_eigen(fsi_mat3 a, fsi_vec3 *values, fsi_mat3 *vectors);
/* A = U diag(sigma) V^T with U and V rotations (det +1): sigma.x >= sigma.y >= |sigma.z|, sigma.z < 0 when det A < 0. */
FSI_API void fsi_m3_svd(fsi_mat3 a, fsi_mat3 *u, fsi_vec3 *sigma, fsi_mat3 *v);
/* A = R S with det R = +1 always and S symmetric (with one negative eigenvalue when det A < 0): R is the rotation
   closest to A. Where it is not unique (rank below 2) it is some rotation. stretch may be NULL. */
FSI_API void fsi_m3_polar(fsi_mat3 a, fsi_mat3 *rotation, fsi_mat3 *stretch);

/* ---- >>neighbours --------------------------------------------------------------------------------------------- */

/* All pairs of points closer than a radius, over an unbounded domain. Points are sorted by cell (rank space): rank r is
   the caller's point order[r]. The neighbours of rank r are list[first[r]] .. list[first[r] + size[r] - 1], ranks in
   ascending order, without r itself; behind them r is repeated up to the next multiple of FSI_LANES. Symmetric: b is in a's list exactly when a is in b's. Coincident points are neighbours. */
typedef struct fsi_neighbors {
    uint32_t cookie;
    fsi_context *context;
    int count;             /* points */
    const int *order;      /* count: rank -> the caller's index; equal input gives equal order, ties in caller's order */
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

/* ---- >>meshes ------------------------------------------------------------------------------------------------- */

/* What a mesh may be. CLOSED bounds a solid: normals point out of it, and into its cavities. OPEN is one side of a wall: the liquid is on the
   side the normals point to, and the rim must stay out of its reach. TWO_SIDED is a thin sheet with liquid on both sides. */
typedef enum fsi_mesh_kind { FSI_MESH_CLOSED, FSI_MESH_OPEN, FSI_MESH_TWO_SIDED } fsi_mesh_kind;

/* How to make a mesh. The caller's arrays are copied. Coordinates up to 1e75 (float: 1e9), no unit is assumed. */
typedef struct fsi_mesh_desc {
    uint32_t cookie;
    fsi_context *context;      /* default NULL: malloc, silence */
    const fsi_vec3 *vertices;  /* vertex_count positions [m] */
    int vertex_count;
    const int *elements;       /* corners * element_count indices into vertices; triangles counter-clockwise seen from
                                  outside (from the liquid), segments with the liquid on their left, tets positive */
    int element_count;
    int corners;               /* 3 triangles (default), 2 segments for 2D (z = 0), 4 tetrahedra */
    fsi_mesh_kind kind;        /* default FSI_MESH_CLOSED; tetrahedra: their boundary must be closed */
    fsi_real weld;             /* vertices closer than weld * (diagonal of the bounding box) become one; 0 to 0.1, default 1e-6 */
    int container;             /* 1: CLOSED mesh with the liquid inside: normals point inward, cavities become solids; default 0 */
    int repair;                /* default 1: drop duplicate and zero-area elements, cut faces at T-junctions, turn what faces
                                  the wrong way, fill holes of closed meshes; 0: refuse what is not right as it stands */
    int max_hole;              /* longest hole to fill, in edges; 0 to 256, default 8; none in 2D */
} fsi_mesh_desc;

/* What was found and mended while the mesh was made: counts, and the caller's index of the first one (-1: none). */
typedef struct fsi_mesh_report {
    int welded_vertices, unused_vertices;
    int dropped_degenerate, first_degenerate;
    int dropped_duplicate, first_duplicate;
    int flipped, first_flipped;           /* elements turned over to agree with their neighbours or to face outward */
    int filled_holes, first_hole_element; /* an element at the first hole that was filled */
    int split_t_junctions;                /* faces cut in two at a vertex that lay on their edge */
    int t_junctions, nonmanifold_edges, boundary_edges; /* left in the mesh that was made (refused when kind is CLOSED) */
    int self_intersections, first_intersection;         /* pairs of elements that cross; a warning, not a refusal */
    char text[200];                       /* one sentence about all of it, "" when nothing was found */
} fsi_mesh_report;

/* Triangles in 3D, segments in 2D, or tetrahedra. Everything may be read in place. For tetrahedra every array below
   except `tets` describes the boundary triangles (`faces`). Faces stand in tree order: faces close in space are close in
   memory, and face_source leads back to the caller's numbers. */
typedef struct fsi_mesh {
    uint32_t cookie;
    fsi_context *context;
    fsi_mesh_kind kind;
    int container;               /* 1: normals point inward, the solid is what is outside */
    int corners;                 /* of `faces`: 2 or 3 */
    int vertex_count, face_count, group_count, edge_count;
    const int *faces;            /* corners * face_count, after welding and repair */
    const int *face_neighbor;    /* corners * face_count: triangle: face across edge (k, k+1); segment: segment at corner k; -1 none.
                                    Where closed surfaces touch in an edge, that of the same solid */
    const int *face_edge;        /* 3 * face_count: edge id of (k, k+1); NULL for segments */
    const int *face_group;       /* face_count: connected group (by shared edge; by shared vertex for segments) */
    const int *face_source;      /* face_count: the caller's element, -1 for a face that filled a hole */
    const int *vertex_source;    /* vertex_count: the caller's vertex */
    const int *source_vertex;    /* the caller's vertex -> vertex, -1 when unused */
    int source_count;            /* the caller's vertex count */
    const int *tets;             /* 4 * tet_count, NULL otherwise */
    int tet_count;
    /* State, changed by fsi_mesh_move, _move_rigid, _set and _set_rigid. */
    const fsi_vec3 *vertices;        /* vertex_count: now */
    const fsi_vec3 *previous;        /* vertex_count: before the last move; same values as vertices for a static mesh */
    const fsi_vec3 *face_normals;    /* face_count, unit, out of the solid */
    const fsi_vec3 *edge_normals;    /* edge_count, pseudonormals n_a + n_b, unit (Baerentzen and Aanaes 2005); NULL for segments */
    const fsi_vec3 *vertex_normals;  /* vertex_count, angle-weighted pseudonormals, unit */
    fsi_box3 box;                    /* of vertices and previous together */
    int moving;                      /* 1 when previous differs from vertices */
    fsi_mesh_report report;
    void *impl;
} fsi_mesh;

/* The closest point of a mesh, or where a ray or a moving point meets it. */
typedef struct fsi_mesh_hit {
    int face;             /* -1: none */
    fsi_real t;           /* ray: parameter along it; sweep: fraction of the step; closest: distance >= 0 */
    fsi_real bary[3];     /* of the point on the face (segments: bary[2] = 0) */
    fsi_vec3 point;       /* on the mesh */
    fsi_vec3 normal;      /* closest: unit pseudonormal of the feature (face, edge or vertex) that holds `point`; else face normal */
    int side;             /* closest: +1 the query point is outside or on the surface, -1 inside, by the pseudonormal;
                             ray and sweep: +1 the face is met from its front, -1 from its back */
} fsi_mesh_hit;

/* Mass properties of the solid (closed) or of the sheet with the given thickness (other kinds). */
typedef struct fsi_mass_properties {
    fsi_real volume;      /* [m^3]; 2D: area [m^2] */
    fsi_real mass;        /* [kg] (2D: per metre of depth) */
    fsi_vec3 center;      /* centre of mass [m] */
    fsi_mat3 inertia;     /* about the centre [kg m^2] */
} fsi_mass_properties;

/* Fills every field; set vertices and elements. */
FSI_API fsi_mesh_desc fsi_mesh_default_desc(void);
/* Checks, welds, repairs and copies. Errors: COOKIE, ARGUMENT (counts, indices: names the element), NAN and LIMIT (name the
   vertex), MESH (open, non-manifold, empty after cleaning ...: names the element), MEMORY. *out is NULL on failure.
   A warning that is not a refusal stands in (*out)->report and goes to the message hook.
   A closed shell is turned outward by its volume. A shell inside another one must have been given the other way round than
   that one: it is a cavity, and stays one; a solid within a solid is refused. Solids that overlap, and surfaces that cross
   or fold onto themselves, are counted in report.self_intersections (faces that overlap within one plane are not seen): the
   sign of the distance is not reliable there.
   About 2.5 us and 200 bytes a triangle; 450 bytes while it runs. */
FSI_API fsi_status fsi_mesh_create(fsi_mesh **out, const fsi_mesh_desc *desc);
FSI_API void fsi_mesh_destroy(fsi_mesh *mesh);

/* Where a rigid thing is. */
typedef struct fsi_pose {
    fsi_vec3 position;     /* of a body's centre of mass; of the origin of a mesh's coordinates [m] */
    fsi_quat orientation;  /* unit; takes body axes to world axes */
} fsi_pose;

/* New positions: `vertices` is indexed like the caller's array in the desc (count = source_count entries), topology is
   unchanged; of vertices that were welded the first one counts. The former positions become `previous`; normals are
   recomputed, the tree is refitted. Also call it once with the same positions when a moving mesh stops. Errors: COOKIE,
   ARGUMENT, NAN and LIMIT (name the vertex); the mesh is then unchanged. Allocates nothing. */
FSI_API fsi_status fsi_mesh_move(fsi_mesh *mesh, const fsi_vec3 *vertices, int count);
/* As above with a rigid pose (a unit quaternion, to 5 %) applied to the positions the mesh was created with. */
FSI_API fsi_status fsi_mesh_move_rigid(fsi_mesh *mesh, fsi_vec3 position, fsi_quat orientation);
/* New positions without a sweep between (teleport): previous becomes equal to vertices. */
FSI_API fsi_status fsi_mesh_set(fsi_mesh *mesh, const fsi_vec3 *vertices, int count);
/* A mesh that moves with poses, as after fsi_mesh_move_rigid(previous) and fsi_mesh_move_rigid(now), to the bit, whatever it did
   before: for rollback (a simulator's load brings back its own state, not the caller's meshes), keep the last two poses of each
   mesh with the saved state. The same pose twice is a teleport. Errors as of fsi_mesh_move_rigid; the mesh is then unchanged. */
FSI_API fsi_status fsi_mesh_set_rigid(fsi_mesh *mesh, fsi_pose previous, fsi_pose now);

/* The functions below read only, allocate nothing and may be called from many threads at once. Given a NULL mesh, NaN, or
   a face that does not exist, they find nothing: face -1, t = FSI_REAL_MAX. In 2D z is not looked at. */

/* Closest point of one face to x, with its feature's pseudonormal and side. */
FSI_API fsi_mesh_hit fsi_mesh_closest_on_face(const fsi_mesh *mesh, int face, fsi_vec3 x);
/* Closest point of the mesh within max_distance; face -1 when there is none. group -1: any group. */
FSI_API fsi_mesh_hit fsi_mesh_closest(const fsi_mesh *mesh, fsi_vec3 x, fsi_real max_distance, int group);
/* Distance, negative inside the solid, by the pseudonormal of the closest feature: exact for a closed mesh that does not cross itself. */
FSI_API fsi_real fsi_mesh_signed_distance(const fsi_mesh *mesh, fsi_vec3 x);
/* Generalised winding number (Jacobson et al. 2013): 1 inside, 0 outside a closed mesh, fractional near holes.
   Exact sum over all faces, O(face_count), independent of normals and tree. 2D: winding angle / 2 pi. A container gives -1
   where the liquid is and 0 in its solid. */
FSI_API double fsi_mesh_winding_number(const fsi_mesh *mesh, fsi_vec3 x);
/* First hit of origin + t * direction, t in [0, t_max]; both sides count. A ray within a face's plane does not meet it. */
FSI_API fsi_mesh_hit fsi_mesh_ray(const fsi_mesh *mesh, fsi_vec3 origin, fsi_vec3 direction, fsi_real t_max);
/* Faces whose box meets `box`, ascending order, the first `capacity` written; returns how many there are. */
FSI_API int fsi_mesh_query_box(const fsi_mesh *mesh, fsi_box3 box, int *faces, int capacity);
/* The same for the boxes that faces sweep from `previous` to `vertices`. */
FSI_API int fsi_mesh_query_swept_box(const fsi_mesh *mesh, fsi_box3 box, int *faces, int capacity);
/* Continuous collision (in place of Liu et al., section 6): first time t in [0,1] at which a point that moves from x0 to x1
   passes through `face`, whose corners move in straight lines from `previous` to `vertices`. side +1: only from the front
   (the side of the normal) to the back; -1: only back to front; 0: either. A point that starts on the plane (to rounding)
   and leaves it to the back counts, with t = 0; one that moves off, slides in the plane or only touches does not. The cubic
   is solved in full, not in the paper's reduced order, whose planes come apart at the edges of faces that turn: a point that
   starts outside a closed mesh and ends inside is never missed. `point` and `normal` are of the END face. Corners in straight
   lines: keep a body's turn in one move below 60 degrees. */
FSI_API fsi_mesh_hit fsi_mesh_sweep_face(const fsi_mesh *mesh, int face, fsi_vec3 x0, fsi_vec3 x1, int side);
/* The earliest of these over the whole mesh. */
FSI_API fsi_mesh_hit fsi_mesh_sweep(const fsi_mesh *mesh, fsi_vec3 x0, fsi_vec3 x1, int side);
/* density [kg/m^3]; thickness [m] is used for OPEN and TWO_SIDED meshes. Errors: COOKIE, ARGUMENT, MESH (a container, or moved
   inside out). */
FSI_API fsi_status fsi_mesh_mass(const fsi_mesh *mesh, fsi_real density, fsi_real thickness, fsi_mass_properties *out);

/* Closest point of a triangle to the origin, by the regions that its edges and corners own (Ericson 2005, section 5.1.5).
   Fills the weights of the corners and returns what holds the point: 0 the face, 1 + k edge (k, k+1), 4 + k corner k.
   Areas are formed from edge vectors (Gram form), so that a point far away does not cancel them. */
FSI__STRICT_FN_BEGIN
FSI_FN int fsi__weights(fsi_real *bary, fsi_real b, fsi_real c, int feature)
{
    bary[0] = 1 - b - c;
    bary[1] = b;
    bary[2] = c;
    return feature;
}
FSI_FN int fsi__closest_triangle(fsi_vec3 a, fsi_vec3 b, fsi_vec3 c, fsi_real *bary)
{
    fsi_vec3 u = fsi_v3_sub(b, a), v = fsi_v3_sub(c, a);
    fsi_real uu = fsi_v3_norm2(u), vv = fsi_v3_norm2(v), uv = fsi_v3_dot(u, v), pu = -fsi_v3_dot(a, u), pv = -fsi_v3_dot(a, v);
    fsi_real area = fsi_v3_norm2(fsi_v3_cross(u, v)), wb = vv * pu - uv * pv, wc = uu * pv - uv * pu; /* weights * area */
    fsi_real along = pv - uv - pu + uu, length = uu - 2 * uv + vv;                                   /* on edge b-c */
    if (pu <= 0 && pv <= 0) return fsi__weights(bary, 0, 0, 4);
    if (pu >= uu && pv - uv <= pu - uu) return fsi__weights(bary, 1, 0, 5);
    if (pv >= vv && pu - uv <= pv - vv) return fsi__weights(bary, 0, 1, 6);
    if (wc <= 0 && pu >= 0 && pu <= uu) return fsi__weights(bary, uu > 0 ? pu / uu : 0, 0, 1);
    if (wb <= 0 && pv >= 0 && pv <= vv) return fsi__weights(bary, 0, vv > 0 ? pv / vv : 0, 3);
    if (wb + wc >= area) { /* edge b-c is all that is left; only rounding leads past its ends, and must not lead to the face */
        fsi_real t = length > 0 ? along / length : 0;
        if (t <= 0) return fsi__weights(bary, 1, 0, 5);
        if (t >= 1) return fsi__weights(bary, 0, 1, 6);
        bary[0] = 0;
        bary[1] = 1 - t;
        bary[2] = t;
        return 2;
    }
    return fsi__weights(bary, wb / area, wc / area, 0);
}
FSI_FN int fsi__closest_segment(fsi_vec3 a, fsi_vec3 b, fsi_real *bary)
{
    fsi_vec3 u = fsi_v3_sub(b, a);
    fsi_real uu = fsi_v3_norm2(u), pu = -fsi_v3_dot(a, u);
    if (pu <= 0) return fsi__weights(bary, 0, 0, 4);
    if (pu >= uu) return fsi__weights(bary, 1, 0, 5);
    return fsi__weights(bary, pu / uu, 0, 0);
}
FSI__STRICT_FN_END

/* ---- >>bodies --------------------------------------------------------------------------------------------------- */

/* A rigid body as liquids and engines exchange it. World axes unless said otherwise; torques, angular velocities and
   angular impulses are about the centre of mass. One step goes like this:

      owner       fills the inputs below
      simulator   reads them; liquid and body meet; writes the outputs, all at once, when the step has succeeded
      owner       hands the outputs to its engine, or calls fsi_body_integrate(&body, dt)

   In 2D the body moves in x and y and turns about z; mass, inertia, forces and impulses are per metre of depth. */

typedef enum fsi_body_mode {
    FSI_BODY_PRESCRIBED,  /* moves from `pose` to `end` whatever the liquid does; the reaction is returned */
    FSI_BODY_COUPLED      /* the liquid moves it: its velocity is solved together with the liquid's */
} fsi_body_mode;

typedef struct fsi_body {
    uint32_t cookie;
    fsi_body_mode mode;        /* default FSI_BODY_PRESCRIBED */
    /* Inputs of a step. */
    fsi_pose pose;             /* at its beginning */
    fsi_pose end;              /* at its end; PRESCRIBED: set it in every step; COUPLED: an output, where the simulator left it */
    fsi_vec3 velocity;         /* of the centre at the beginning [m/s]: COUPLED only, as all that follows */
    fsi_vec3 angular_velocity; /* [rad/s] */
    fsi_real mass;             /* > 0 [kg]; default 1 */
    fsi_mat3 inertia;          /* about the centre in BODY axes [kg m^2], symmetric, positive definite; default identity.
                                  2D: moment I about z as fsi_m3_diagonal((I/2, I/2, I)) */
    fsi_vec3 force, torque;    /* of everything but the liquid, constant over the step, gravity included [N, N m] */
    /* Outputs of a step. */
    fsi_vec3 impulse, angular_impulse;               /* what the liquid gave to the body [N s, N m s] */
    fsi_vec3 reaction_force, reaction_torque;        /* the same, divided by the length of the step [N, N m] */
    fsi_vec3 new_velocity, new_angular_velocity;     /* COUPLED: after `force`, `torque` and liquid, with the orientation of
                                                        `pose` (the gyroscopic turn is left to who integrates the pose);
                                                        PRESCRIBED: those of the sweep */
} fsi_body;

/* At the origin, unit mass and inertia, at rest, PRESCRIBED. */
FSI_API fsi_body fsi_default_body(void);
/* COUPLED, at rest at the centre of mass of `properties`; body axes are the axes in which these were computed. */
FSI_API fsi_body fsi_body_from_mass(const fsi_mass_properties *properties);
/* Refuses what a simulator cannot use. Errors, each naming body `index` (error.element) and the field: COOKIE; NAN;
   ARGUMENT: mode, quaternion off unit length by more than 1e-3, and for COUPLED mass <= 0, inertia not symmetric, not
   positive definite, or with a principal moment above the sum of the two others (no body has that). context may be NULL. */
FSI_API fsi_status fsi_body_check(fsi_context *context, const fsi_body *body, int index);

FSI__STRICT_FN_BEGIN
FSI_FN fsi_vec3 fsi_pose_point(fsi_pose p, fsi_vec3 local) /* body -> world */
{
    return fsi_v3_add(p.position, fsi_quat_rotate(p.orientation, local));
}
FSI_FN fsi_vec3 fsi_pose_local(fsi_pose p, fsi_vec3 x) /* world -> body */
{
    return fsi_quat_rotate(fsi_quat_conj(p.orientation), fsi_v3_sub(x, p.position));
}
/* Velocity at x of a body that moves with v at `center` and turns with w: v + w x (x - center). */
FSI_FN fsi_vec3 fsi_rigid_velocity(fsi_vec3 v, fsi_vec3 w, fsi_vec3 center, fsi_vec3 x)
{
    return fsi_v3_add(v, fsi_v3_cross(w, fsi_v3_sub(x, center)));
}
FSI__STRICT_FN_END

/* Where a PRESCRIBED body is at fraction s of the step, 0 <= s <= 1: straight line and shortest arc at constant rates.
   s = 0 and s = 1 give `pose` and `end` exactly. */
FSI_API fsi_pose fsi_body_pose_at(const fsi_body *body, fsi_real s);
/* R A R^T with R of `orientation`: a tensor in body axes (inertia or its inverse) in world axes. */
FSI_API fsi_mat3 fsi_body_world_tensor(fsi_quat orientation, fsi_mat3 a);

/* For those who write simulators. begin: impulses 0, new velocities = those before the liquid acts (COUPLED: velocity +
   dt force/mass, likewise the angular one; PRESCRIBED: of the sweep). apply: adds impulse j [N s] at the world point x,
   with its moment about pose.position, and for COUPLED its effect on the new velocities. end: reactions = impulses/dt.
   The body must have passed fsi_body_check. Nothing happens when it is NULL, dt is not > 0, or j or x is not finite. */
FSI_API void fsi_body_begin_step(fsi_body *body, fsi_real dt);
FSI_API void fsi_body_apply_impulse(fsi_body *body, fsi_vec3 j, fsi_vec3 x);
FSI_API void fsi_body_end_step(fsi_body *body, fsi_real dt);

/* For owners without an engine: takes the new velocities and moves `pose` by dt with them (PRESCRIBED: to `end`).
   Free turning keeps its angular momentum L to rounding and its energy without drift: with R_m the orientation half
   way, w_m = R_m I^-1 R_m^T L, turn by w_m dt; then w = R I^-1 R^T L (implicit midpoint, time-symmetric). */
FSI_API void fsi_body_integrate(fsi_body *body, fsi_real dt);
/* For owners who leave integration to a simulator that took substeps: `pose` becomes `end`, and the velocities are those there, with
   the angular momentum of new_angular_velocity. Then the body stands exactly where the simulator left it. */
FSI_API void fsi_body_accept(fsi_body *body);

/* ---- >>surfaces ------------------------------------------------------------------------------------------------- */

/* A closed surface around particles, for rendering and measuring. The level set is that of Zhu and Bridson (2005):
   phi(x) = |x - mean| - r g,  mean = sum w_j x_j / sum w_j,  w_j = (1 - |x - x_j|^2/support^2)^3 within `support`.
   r is such that the surface of a full half-space of particles lies spacing/2 beyond the last layer, where its volume
   asks it to be. g = min(1, c sum w_j^3 - 1) is 1 where there is liquid and negative where no particle is near, so that
   drops do not reach for each other, and c is such that a single particle becomes a small ball of its volume.
   Cells are visited in blocks near the surface only: neither the depth of the liquid nor a far outlier costs anything.
   Drops of one particle join at 2.6 spacings; sheets and threads one particle thick stay whole. Of a ball with a
   radius of 10 spacings the surface lies up to 0.09 spacings too deep, and 0.03 too high where it is flat. */
typedef struct fsi_surface_desc {
    uint32_t cookie;
    fsi_context *context;  /* default NULL: malloc, silence */
    int dim;               /* 3 (default): triangles; 2: segments, z is ignored and comes out 0 */
    fsi_real spacing;      /* of the particles when at rest: a particle stands for spacing^dim of liquid; > 0, no default [m] */
    fsi_real support;      /* kernel radius in units of spacing, 1.5 to 6; default 3; larger is smoother, smaller keeps detail */
    fsi_real cell;         /* cell size in units of spacing; default 0.5; rounded so that 2 to 8 cells make one support */
    int attribute_count;   /* numbers a particle that are carried to the vertices (colour, age ...); default 0 */
} fsi_surface_desc;

/* The result of the last update; arrays stay valid until the next one. Every edge of `elements` belongs to exactly two
   triangles (2D: every vertex to two segments). */
typedef struct fsi_surface {
    uint32_t cookie;
    fsi_context *context;
    int dim;
    int corners;                 /* of an element: 3 or 2 */
    int vertex_count, element_count;
    const fsi_vec3 *vertices;    /* vertex_count [m] */
    const fsi_vec3 *normals;     /* vertex_count, unit, out of the liquid */
    const int *elements;         /* corners * element_count indices; triangles counter-clockwise seen from outside,
                                    segments with the outside on their left (as fsi_mesh_desc wants them) */
    const fsi_real *attributes;  /* vertex_count * attribute_count: means over the particles around, weights w_j */
    int block_count;             /* blocks of support^dim that were evaluated: what an update costs */
    void *impl;
} fsi_surface;

/* Fills every field; set spacing (positions go to fsi_surface_update). */
FSI_API fsi_surface_desc fsi_surface_default_desc(void);
/* An empty surface. Errors: COOKIE, NAN or ARGUMENT (naming the field), MEMORY; then *out is NULL. */
FSI_API fsi_status fsi_surface_create(fsi_surface **out, const fsi_surface_desc *desc);
FSI_API void fsi_surface_destroy(fsi_surface *surface); /* NULL is fine */
/* Builds the surface of `count` particles at x; attributes: count * attribute_count numbers, NULL when there are none.
   No particle, empty surface. Memory is kept from update to update. Same input, same bits for any number of threads.
   Errors: COOKIE, ARGUMENT, NAN (naming the particle), LIMIT (a coordinate beyond 2^30 supports; more than 2^31 - 1
   indices), MEMORY; the former surface then stays as it was. */
FSI_API fsi_status fsi_surface_update(fsi_surface *surface, const fsi_vec3 *x, int count, const fsi_real *attributes);

/* Particles on a cubic lattice (2D: square, z = 0), half a spacing away from box.lo, as many as fit: along each axis the
   number of whole spacings in the box. *count is how many there are; the first `capacity` of them are written to `out`
   (NULL with capacity 0 only counts), x running fastest. Errors: ARGUMENT (empty box, spacing <= 0, dim), NAN, LIMIT;
   context may be NULL. */
FSI_API fsi_status fsi_sample_box(fsi_context *context, fsi_box3 box, fsi_real spacing, int dim, fsi_vec3 *out, int capacity, int *count);
/* The points of that lattice over the mesh's bounding box that lie at least spacing/2 inside a closed mesh. */
FSI_API fsi_status fsi_sample_mesh(const fsi_mesh *mesh, fsi_real spacing, fsi_vec3 *out, int capacity, int *count);

/* ---- >>lanes: pair arithmetic, eight neighbours at a time (for fsi's own headers) ------------------------------- */

/* Pair loops read neighbours through records of 16 bytes: three coordinates in fixed point and one number to ride along.
   Differences of fixed-point coordinates are exact and wrap around: the same bits wherever the scene is, pair forces
   exactly opposite, no loss far from the origin. FSI_LANES_DOUBLE does all this in double (verification; slower).
   FSI_NO_SIMD uses plain C, with the same bits. */
#if defined(FSI_LANES_DOUBLE)
typedef double fsi__lane;
typedef double fsi__coord;
#define FSI__COORD_UNIT 1.0
#else
typedef float fsi__lane;
typedef int32_t fsi__coord;
#define FSI__COORD_UNIT 3.7252902984619141e-09 /* 2^-28: what one step of a coordinate is worth */
#endif
typedef struct fsi__record { fsi__coord x, y, z; fsi__lane w; } fsi__record;
typedef struct fsi__lane4 { fsi__lane x, y, z, w; } fsi__lane4;

#if defined(__SSE2__) && !defined(FSI_NO_SIMD) && !defined(FSI_LANES_DOUBLE) && !defined(__CUDACC__) && !defined(__TINYC__)
#if defined(__AVX__)
#define FSI__AVX
#include <immintrin.h>
#else
#define FSI__SSE2
#include <emmintrin.h>
#endif
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
FSI_FN fsi__f8 fsi__f8_if_greater(fsi__f8 a, fsi__f8 b, fsi__f8 c) { return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ), c); }
FSI_FN fsi__lane fsi__f8_sum(fsi__f8 a)
{
    fsi__lane t[4];
    _mm_storeu_ps(t, _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)));
    return (t[0] + t[2]) + (t[1] + t[3]);
}
/* Columns of eight rows of four floats: rows 0-3 go to the low half, 4-7 to the high half. */
FSI_FN void fsi__f8_columns(const float *rows, const int *index, fsi__f8 *x, fsi__f8 *y, fsi__f8 *z, fsi__f8 *w)
{
#define FSI__ROWS(k) _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(rows + 4 * (size_t)index[k])), _mm_loadu_ps(rows + 4 * (size_t)index[k + 4]), 1)
    __m256 a = FSI__ROWS(0), b = FSI__ROWS(1), c = FSI__ROWS(2), d = FSI__ROWS(3);
    __m256 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d), AB = _mm256_unpackhi_ps(a, b), CD = _mm256_unpackhi_ps(c, d);
#undef FSI__ROWS
    *x = _mm256_shuffle_ps(ab, cd, 0x44);
    *y = _mm256_shuffle_ps(ab, cd, 0xee);
    *z = _mm256_shuffle_ps(AB, CD, 0x44);
    *w = _mm256_shuffle_ps(AB, CD, 0xee);
}
FSI_FN fsi__f8 fsi__f8_apart(fsi__f8 coordinate, int32_t at)
{
    __m256i i = _mm256_castps_si256(coordinate);
    __m128i lo = _mm_sub_epi32(_mm256_castsi256_si128(i), _mm_set1_epi32(at)), hi = _mm_sub_epi32(_mm256_extractf128_si256(i, 1), _mm_set1_epi32(at));
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
FSI_FN fsi__f8 fsi__f8_if_greater(fsi__f8 a, fsi__f8 b, fsi__f8 c) { return fsi__f8_make(_mm_and_ps(_mm_cmpgt_ps(a.a, b.a), c.a), _mm_and_ps(_mm_cmpgt_ps(a.b, b.b), c.b)); }
FSI_FN fsi__lane fsi__f8_sum(fsi__f8 a)
{
    fsi__lane t[4];
    _mm_storeu_ps(t, _mm_add_ps(a.a, a.b));
    return (t[0] + t[2]) + (t[1] + t[3]);
}
FSI_FN void fsi__f8_columns(const float *rows, const int *index, fsi__f8 *x, fsi__f8 *y, fsi__f8 *z, fsi__f8 *w)
{
#define FSI__ROW(k) _mm_loadu_ps(rows + 4 * (size_t)index[k])
    __m128 a = FSI__ROW(0), b = FSI__ROW(1), c = FSI__ROW(2), d = FSI__ROW(3), e = FSI__ROW(4), f = FSI__ROW(5), g = FSI__ROW(6), h = FSI__ROW(7);
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
    return fsi__f8_make(_mm_cvtepi32_ps(_mm_sub_epi32(_mm_castps_si128(c.a), i)), _mm_cvtepi32_ps(_mm_sub_epi32(_mm_castps_si128(c.b), i)));
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

/* Difference of eight records to `at` in coordinate steps, and what rides along. */
FSI_FN void fsi__f8_gather(const fsi__record *records, const int *index, const fsi__record *at, fsi__f8 *dx, fsi__f8 *dy, fsi__f8 *dz, fsi__f8 *w)
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

/* Eight vectors, by component, and the number that rides along with each. */
FSI_FN void fsi__f8_gather_four(const fsi__lane4 *from, const int *index, fsi__f8 *x, fsi__f8 *y, fsi__f8 *z, fsi__f8 *w)
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

/* Sums of lanes in double: where opposite pair forces must cancel to rounding of double. Folded as fsi__f8_sum folds. */
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

FSI__STRICT_FN_END

/* ---- >>shared ground: for fsi's own headers, not for you ------------------------------------------------------ */

/* Identifies a struct: kind, size, precision and version. First member of every desc and simulator. */
#define FSI__COOKIE(tag, type) ((uint32_t)(0xF51u << 20) ^ ((uint32_t)(tag) << 12) ^ (uint32_t)sizeof(type) * 40503u ^ (uint32_t)(sizeof(fsi_real) << 8) ^ (uint32_t)FSI_VERSION)

/* No context, or one that fsi_default_context made. */
FSI_FN int fsi__is_context(const fsi_context *context) { return !context || context->cookie == FSI__COOKIE('c', fsi_context); }

/* Records a failure in `context` (may be NULL) and returns `status`. */
FSI_API fsi_status fsi__fail(fsi_context *context, fsi_status status, const char *function, long long element, double value, const char *format, ...) FSI__PRINTF(6, 7);
FSI_API void fsi__note(fsi_context *context, int level, const char *text);
/* What every fsi_*_error returns: the context's last failure; NULL: no simulator, a constant text that says where to read why. */
FSI_API const fsi_error *fsi__error_of(const fsi_context *context);
/* A warning (level 1), for a call that succeeds but did less than it was asked for: once a call, after its commit. */
FSI_API void fsi__warn(fsi_context *context, const char *format, ...) FSI__PRINTF(2, 3);
/* Fields of descs. A number from lo to hi; a vector that is finite and in 2D lies in the plane; one that has a direction as well;
   a desc whose cookie stands first and is that of `maker`, the function that fills it; a mesh that suits a simulator of dimension
   dim, and has an inside if `closed`. Errors: NAN, ARGUMENT, COOKIE, MESH; name the field. */
FSI_API fsi_status fsi__check_number(fsi_context *context, const char *function, const char *name, double x, double lo, double hi);
FSI_API fsi_status fsi__check_vector(fsi_context *context, const char *function, const char *name, fsi_vec3 x, int dim);
FSI_API fsi_status fsi__check_direction(fsi_context *context, const char *function, const char *name, fsi_vec3 x, int dim);
FSI_API fsi_status fsi__check_filled(fsi_context *context, const char *function, const void *desc, uint32_t cookie, const char *maker);
FSI_API fsi_status fsi__check_mesh(fsi_context *context, const char *function, const fsi_mesh *mesh, int dim, int closed);
/* Steps of all simulators: dt is 0 (nothing moves, stats are filled) or 1e-12 to 1000 s. Errors: ARGUMENT. */
FSI_API fsi_status fsi__check_dt(fsi_context *context, fsi_real dt, const char *function);

FSI_API void *fsi__alloc(fsi_context *context, size_t count, size_t size); /* 64-byte aligned, zeroed; NULL when it fails, overflows; count 0 is 1 */
FSI_API void fsi__free(fsi_context *context, void *memory, size_t count, size_t size);
FSI_API double fsi__now(const fsi_context *context);

/* A column: one array of a table whose rows are particles, vertices, bodies ... */
typedef struct fsi__column {
    void **array;  /* address of the pointer to the array */
    size_t size;   /* bytes per row */
} fsi__column;
/* Grows all columns to `capacity` rows, keeping `rows`; all or none. New rows are zero. */
FSI_API fsi_status fsi__grow(fsi_context *context, const fsi__column *columns, int column_count, int rows, int *capacity, int new_capacity, const char *function);
/* Room for `need` rows, asked for seldom: a table that has fewer grows to `need`, a quarter more and 16. The first
   `rows` rows stay. */
FSI_API fsi_status fsi__room(fsi_context *context, const fsi__column *columns, int column_count, int rows,
    int *capacity, int need, const char *function);
/* The same for one array of rows of `size` bytes; `array` is the address of its pointer. */
FSI_API fsi_status fsi__room_in(fsi_context *context, void *array, size_t size, int rows, int *capacity, int need,
                                const char *function);
/* Frees the arrays of a table of `capacity` rows. */
FSI_API void fsi__free_columns(fsi_context *context, const fsi__column *columns, int column_count, int capacity);
FSI_API int fsi__compact(const fsi__column *columns, int column_count, int rows, const unsigned char *gone); /* drops rows r with gone[r]; returns how many stay */
FSI_API int fsi__owns(const fsi__column *columns, int column_count, int capacity, const void *p); /* does p point into an array that growing moves? */

/* Scratch in one block. Lay it out twice: first measuring (base NULL), then for real. */
typedef struct fsi__arena {
    unsigned char *base;
    size_t size, used;
} fsi__arena;
FSI_API void *fsi__take(fsi__arena *arena, size_t count, size_t size);  /* 64-byte aligned; NULL while measuring */
FSI_API int fsi__arena_reserve(fsi_context *context, fsi__arena *arena, size_t size); /* 1 when it holds `size`; contents are lost when it grows; used becomes 0 */
/* The same, asked for seldom: an arena that is smaller grows to `size` and a quarter more, and 1 kB. */
FSI_API int fsi__arena_room(fsi_context *context, fsi__arena *arena, size_t size);
FSI_API void fsi__arena_free(fsi_context *context, fsi__arena *arena);

/* Runs fn over 0..count-1 in chunks of `grain`: chunk c is [c*grain, min(count, (c+1)*grain)). */
typedef void fsi__range_fn(void *arg, int chunk, int begin, int end);
FSI_API void fsi__parallel(fsi_context *context, int count, int grain, fsi__range_fn *fn, void *arg); /* by the context's hook */
/* The same where the work is known: that many nanoseconds on one thread, rather too few than too many. What takes less than
   FSI__DISPATCH_WORTH runs here, chunk after chunk: waking other threads would take as long. */
FSI_API void fsi__parallel_work(fsi_context *context, int count, int grain, double work, fsi__range_fn *fn, void *arg);
FSI_FN int fsi__chunks(int count, int grain) { return count > 0 ? (count - 1) / grain + 1 : 0; }
typedef int fsi__test_fn(const void *arg, int i);
/* How many i of 0..count-1 is fn true for; *first (NULL ok) the first of them, else -1. On all threads. */
FSI_API int fsi__count_where(fsi_context *context, int count, fsi__test_fn *fn, const void *arg, int *first);

/* Sorts only: nb->order as fsi_neighbors_build makes it, no lists. */
FSI_API fsi_status fsi__neighbors_sort(fsi_neighbors *nb, const fsi_vec3 *x, int count, fsi_real radius, int dim);
/* fsi_neighbors_build that calls `also` for ranks begin .. end-1, in chunks that begin at multiples of 8, in its own parallel loop
   (perhaps twice), and before that for none; order is what nb->order becomes. */
typedef void fsi__ranks_fn(void *arg, const int *order, int begin, int end);
FSI_API fsi_status fsi__neighbors_build_with(fsi_neighbors *nb, const fsi_vec3 *x, int count, fsi_real radius, int dim, fsi__ranks_fn *also, void *arg);

typedef int fsi__free_fn(const void *simulator, fsi_vec3 x);
typedef fsi_status fsi__site_fn(void *simulator, fsi_vec3 x, fsi_vec3 velocity);
/* A shape that is filled with a lattice of spacing dx: a box, from its corner lo on; what is at least dx/2 inside a closed mesh (of a
   container: in its liquid), from the corner of its box on; else a sphere, around its centre. */
typedef struct fsi__fill {
    fsi_context *context;
    const char *function;
    int dim;
    fsi_real dx;
    fsi_vec3 velocity;        /* of what is added */
    const fsi_box3 *box;
    const fsi_mesh *mesh;
    fsi_vec3 center;
    fsi_real radius;
    fsi_box3 clip;            /* no site outside is looked at; fsi_box3_empty: no bounds */
    const fsi_vec3 *position; /* count particles that are there: sites nearer than 0.6 dx to one of them stay empty */
    int count;
    fsi__free_fn *is_free;    /* may there be a particle at x? */
    fsi__site_fn *add;
    void *simulator;
} fsi__fill;
/* Calls add for every free site, x fastest, until it fails; warns when there is none. Errors: its own, COOKIE, NAN, ARGUMENT (the shape holds no site), MESH, LIMIT,
   MEMORY. */
FSI_API fsi_status fsi__fill_shape(const fsi__fill *fill);

/* Saving, loading and hashing state share one description: a function that names the bytes in order. */
typedef struct fsi__stream {
    unsigned char *data;
    size_t capacity, used;
    int mode;       /* what fsi__bytes does */
    int ok;         /* 0 once a read ran past the end or a write past the capacity */
    uint64_t hash;
} fsi__stream;
enum { FSI__MEASURE, FSI__WRITE, FSI__READ, FSI__HASH };
typedef void fsi__state_fn(fsi__stream *stream, void *simulator);
FSI_API void fsi__bytes(fsi__stream *stream, void *data, size_t size); /* the next `size` bytes, to or from data */
/* Writes header and state; buffer NULL only measures. */
FSI_API fsi_status fsi__save(fsi_context *context, uint32_t cookie, fsi__state_fn *fn, void *simulator, void *buffer, size_t capacity, size_t *size, const char *function);
/* Checks header, length and checksum, and opens a stream on the payload; the simulator is not touched. */
FSI_API fsi_status fsi__load_begin(fsi_context *context, uint32_t cookie, const void *buffer, size_t size, fsi__stream *stream, const char *function);
FSI_API uint64_t fsi__state_hash(fsi__state_fn *fn, void *simulator);

/* Vectors in double, whatever fsi_real is. */
typedef struct fsi__d3 { double x, y, z; } fsi__d3;
FSI__STRICT_FN_BEGIN
FSI_FN fsi__d3 fsi__d3_make(double x, double y, double z) { fsi__d3 a; a.x = x; a.y = y; a.z = z; return a; }
FSI_FN fsi__d3 fsi__d3_at(const double *p) { return fsi__d3_make(p[0], p[1], p[2]); }
FSI_FN void fsi__d3_put(double *p, fsi__d3 a) { p[0] = a.x; p[1] = a.y; p[2] = a.z; }
FSI_FN fsi__d3 fsi__d3_of(fsi_vec3 a) { return fsi__d3_make((double)a.x, (double)a.y, (double)a.z); }
FSI_FN fsi_vec3 fsi__d3_real(fsi__d3 a) { return fsi_v3((fsi_real)a.x, (fsi_real)a.y, (fsi_real)a.z); }
FSI_FN fsi__d3 fsi__d3_add(fsi__d3 a, fsi__d3 b) { return fsi__d3_make(a.x + b.x, a.y + b.y, a.z + b.z); }
FSI_FN fsi__d3 fsi__d3_sub(fsi__d3 a, fsi__d3 b) { return fsi__d3_make(a.x - b.x, a.y - b.y, a.z - b.z); }
FSI_FN fsi__d3 fsi__d3_scale(fsi__d3 a, double s) { return fsi__d3_make(a.x * s, a.y * s, a.z * s); }
FSI_FN fsi__d3 fsi__d3_madd(fsi__d3 a, double s, fsi__d3 b) { return fsi__d3_make(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z); }
FSI_FN double fsi__d3_dot(fsi__d3 a, fsi__d3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
FSI_FN fsi__d3 fsi__d3_cross(fsi__d3 a, fsi__d3 b) { return fsi__d3_make(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); }
FSI_FN double fsi__d3_norm(fsi__d3 a) { return sqrt(fsi__d3_dot(a, a)); }
FSI__STRICT_FN_END

/* A mesh that moves by itself and shares the topology of its original, which must outlive it. NULL: no memory. */
FSI_API fsi_mesh *fsi__mesh_shadow(fsi_context *context, const fsi_mesh *mesh);
/* Makes a shadow sweep: between positions a and b (vertex_count each) from fraction s to t of the way; or from pose a to
   pose b, applied to `local` (vertex_count). */
FSI_API void fsi__mesh_follow(fsi_mesh *shadow, const fsi_vec3 *a, const fsi_vec3 *b, fsi_real s, fsi_real t);
FSI_API void fsi__mesh_follow_rigid(fsi_mesh *shadow, const fsi_vec3 *local, fsi_pose a, fsi_pose b);
/* Does the way from a to b pass through the face where it now is? */
FSI_API int fsi__mesh_parts(const fsi_mesh *mesh, int face, fsi_vec3 a, fsi_vec3 b);

#endif /* FSI_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#ifndef FSI_IMPLEMENTATION_DONE
#define FSI_IMPLEMENTATION_DONE

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

FSI__STRICT_BEGIN

/* ---- >>status and context implementation ---------------------------------------------------------------------- */

FSI_API const char *fsi_status_text(fsi_status status)
{
#define FSI__STATUS_TEXT(name, text) text,
    static const char *const texts[] = { FSI_STATUS_LIST(FSI__STATUS_TEXT) };
#undef FSI__STATUS_TEXT
    return (int)status >= 0 && status < FSI_STATUS_COUNT ? texts[status] : "unknown status";
}

FSI_API fsi_context fsi_default_context(void)
{
    fsi_context c;
    memset(&c, 0, sizeof c);
    c.cookie = FSI__COOKIE('c', fsi_context);
    c.error.function = "";
    c.error.element = -1;
    return c;
}

FSI_API int fsi_version(void) { return FSI_VERSION; }
FSI_API void FSI__LINKED(void) {}

/* (1+e)(1-e) - 1 is -e^2 when a*b+c is rounded once, 0 when it is rounded twice (e^2 below half an ulp of 1). */
static int fsi__contracts(void)
{
    volatile fsi_real v = FSI_REAL_EPS;
    fsi_real e = v, a = 1 + e, b = 1 - e;
    return a * b - 1 < -e * e / 2 && a * b - 1 > -e / 2;
}

FSI_API const char *fsi_build_info(void)
{
#if defined(_OPENMP)
#define FSI__OMP "1"
#else
#define FSI__OMP "0"
#endif
#if defined(FSI_REAL_FLOAT)
#define FSI__PRECISION "float"
#else
#define FSI__PRECISION "double"
#endif
    return fsi__contracts() ? "fsi " FSI_VERSION_STRING " " FSI__PRECISION " contract=1 openmp=" FSI__OMP " lanes=8"
                            : "fsi " FSI_VERSION_STRING " " FSI__PRECISION " contract=0 openmp=" FSI__OMP " lanes=8";
}

FSI_API void fsi__note(fsi_context *context, int level, const char *text)
{
    if (context && context->message) context->message(context->user, level, text);
}

FSI_API const fsi_error *fsi__error_of(const fsi_context *context)
{
    static const fsi_error nobody = { FSI_ERROR_ARGUMENT, "", -1, 0,
        "no simulator: give desc.context a context before create, and read why it failed in context.error.message" };
    return context ? &context->error : &nobody;
}

FSI_API void fsi__warn(fsi_context *context, const char *format, ...)
{
    char text[200];
    va_list args;
    if (!context || !context->message) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fsi__note(context, 1, text);
}

FSI_API fsi_status fsi__fail(fsi_context *context, fsi_status status, const char *function, long long element, double value, const char *format, ...)
{
    va_list args;
    fsi_error *e;
    if (!context) return status;
    e = &context->error;
    e->status = status;
    e->function = function;
    e->element = element;
    e->value = value;
    va_start(args, format);
    vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    fsi__note(context, 0, e->message);
    return status;
}

FSI_API fsi_status fsi__check_number(fsi_context *context, const char *function, const char *name, double x, double lo, double hi)
{
    if (x >= lo && x <= hi) return FSI_OK;
    return fsi__fail(context, x == x ? FSI_ERROR_ARGUMENT : FSI_ERROR_NAN, function, -1, x, "desc.%s is %g, must be %g to %g", name, x, lo, hi);
}

FSI_API fsi_status fsi__check_vector(fsi_context *context, const char *function, const char *name, fsi_vec3 x, int dim)
{
    if (!fsi_v3_is_finite(x)) return fsi__fail(context, FSI_ERROR_NAN, function, -1, 0, "desc.%s is not finite", name);
    if (dim == 2 && (x.z < 0 || x.z > 0))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, (double)x.z, "desc.%s.z is %g, but the plane of dim 2 is x, y", name, (double)x.z);
    return FSI_OK;
}

FSI_API fsi_status fsi__check_direction(fsi_context *context, const char *function, const char *name, fsi_vec3 x, int dim)
{
    const fsi_status status = fsi__check_vector(context, function, name, x, dim);
    if (status != FSI_OK) return status;
    if (fsi_v3_norm(x) > 0 && fsi_is_finite((double)fsi_v3_norm2(x))) return FSI_OK;
    return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "desc.%s has no length, or too much", name);
}

FSI_API fsi_status fsi__check_filled(fsi_context *context, const char *function, const void *desc, uint32_t cookie, const char *maker)
{
    if (!desc) return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "desc is NULL");
    if (*(const uint32_t *)desc == cookie) return FSI_OK;
    return fsi__fail(context, FSI_ERROR_COOKIE, function, -1, 0, "desc was not filled by %s of this version and precision", maker);
}

FSI_API fsi_status fsi__check_mesh(fsi_context *context, const char *function, const fsi_mesh *mesh, int dim, int closed)
{
    if (!mesh) return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "desc.mesh is NULL");
    if (mesh->cookie != FSI__COOKIE('m', fsi_mesh))
        return fsi__fail(context, FSI_ERROR_COOKIE, function, -1, 0, "desc.mesh was not made by fsi_mesh_create of this version and precision");
    if (mesh->corners != dim)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, mesh->corners, "desc.mesh: a %dD simulator needs %s", dim, dim == 3 ? "triangles" : "segments");
    if (closed && mesh->kind != FSI_MESH_CLOSED) return fsi__fail(context, FSI_ERROR_MESH, function, -1, 0, "desc.mesh is not closed: it has no inside");
    return FSI_OK;
}

FSI_API fsi_status fsi__check_dt(fsi_context *context, fsi_real dt, const char *function)
{
    const double seconds = (double)dt;
    if (seconds == 0 || (dt >= (fsi_real)1e-12 && seconds <= 1000)) return FSI_OK;
    return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, seconds, "dt is %g seconds, must be 0 or 1e-12 to 1000", seconds);
}

/* ---- >>memory implementation ---------------------------------------------------------------------------------- */

#define FSI__ALIGN 64

/* calloc with alignment: the start of the block lies just below the address that is handed out. Large blocks come as untouched zero pages,
   which a memset would touch once for nothing. */
static void *fsi__calloc_aligned(size_t size)
{
    unsigned char *raw, *p;
    if (size > (size_t)-1 - FSI__ALIGN - sizeof raw) return NULL;
    raw = (unsigned char *)calloc(size + FSI__ALIGN + sizeof raw, 1);
    if (!raw) return NULL;
    p = raw + sizeof raw;
    p += (FSI__ALIGN - (size_t)((uintptr_t)p % FSI__ALIGN)) % FSI__ALIGN;
    memcpy(p - sizeof raw, &raw, sizeof raw);
    return p;
}

static void fsi__free_aligned(void *memory)
{
    unsigned char *raw;
    memcpy(&raw, (unsigned char *)memory - sizeof raw, sizeof raw);
    free(raw);
}

FSI_API void *fsi__alloc(fsi_context *context, size_t count, size_t size)
{
    void *p;
    size_t bytes;
    if (count == 0) count = 1;
    if (count > (size_t)-1 / size) return NULL;
    bytes = count * size;
    p = context && context->alloc ? context->alloc(context->user, bytes, FSI__ALIGN) : fsi__calloc_aligned(bytes);
    if (!p) return NULL;
    if (context && context->alloc) memset(p, 0, bytes);
    if (context) {
        context->bytes += bytes;
        if (context->bytes > context->peak_bytes) context->peak_bytes = context->bytes;
        context->allocs++;
    }
    return p;
}

FSI_API void fsi__free(fsi_context *context, void *memory, size_t count, size_t size)
{
    size_t bytes = (count ? count : 1) * size;
    if (!memory) return;
    if (context) context->bytes -= bytes;
    if (context && context->alloc) {
        if (context->release) context->release(context->user, memory, bytes, FSI__ALIGN);
    } else fsi__free_aligned(memory);
}

FSI_API double fsi__now(const fsi_context *context)
{
    return context && context->now ? context->now(context->user) : 0;
}

FSI_API void fsi__free_columns(fsi_context *context, const fsi__column *columns, int column_count, int capacity)
{
    int k;
    for (k = 0; k < column_count; k++) {
        fsi__free(context, *columns[k].array, (size_t)capacity, columns[k].size);
        *columns[k].array = NULL;
    }
}

FSI_API int fsi__compact(const fsi__column *columns, int column_count, int rows, const unsigned char *gone)
{
    int k, r, kept = 0;
    for (r = 0; r < rows; r++) {
        if (gone[r]) continue;
        for (k = 0; k < column_count && kept != r; k++) {
            unsigned char *a = (unsigned char *)*columns[k].array;
            memcpy(a + (size_t)kept * columns[k].size, a + (size_t)r * columns[k].size, columns[k].size);
        }
        kept++;
    }
    return kept;
}

FSI_API int fsi__owns(const fsi__column *columns, int column_count, int capacity, const void *p)
{
    int k, owns = 0;
    for (k = 0; k < column_count; k++) {
        uintptr_t start = (uintptr_t)*columns[k].array, at = (uintptr_t)p;
        owns |= start && at >= start && at - start < (size_t)capacity * columns[k].size;
    }
    return owns;
}

FSI_API fsi_status fsi__grow(fsi_context *context, const fsi__column *columns, int column_count, int rows, int *capacity, int new_capacity, const char *function)
{
    void *fresh[64];
    int k;
    FSI_ASSERT(column_count <= 64);
    if (new_capacity <= *capacity) return FSI_OK;
    for (k = 0; k < column_count; k++) {
        fresh[k] = fsi__alloc(context, (size_t)new_capacity, columns[k].size);
        if (!fresh[k]) {
            while (k-- > 0) fsi__free(context, fresh[k], (size_t)new_capacity, columns[k].size);
            return fsi__fail(context, FSI_ERROR_MEMORY, function, -1, (double)new_capacity, "no memory for %d rows", new_capacity);
        }
    }
    for (k = 0; k < column_count; k++) {
        if (rows > 0) memcpy(fresh[k], *columns[k].array, (size_t)rows * columns[k].size);
        fsi__free(context, *columns[k].array, (size_t)*capacity, columns[k].size);
        *columns[k].array = fresh[k];
    }
    *capacity = new_capacity;
    return FSI_OK;
}

FSI_API fsi_status fsi__room(fsi_context *context, const fsi__column *columns, int column_count, int rows,
    int *capacity,
                             int need, const char *function)
{
    const int more = need / 4 + 16, most = 2147483647;
    if (need <= *capacity) return FSI_OK;
    return fsi__grow(context, columns, column_count, rows, capacity, need < most - more ? need + more : most, function);
}

FSI_API fsi_status fsi__room_in(fsi_context *context, void *array, size_t size, int rows, int *capacity, int need,
                                const char *function)
{
    fsi__column column;
    column.array = (void **)array;
    column.size = size;
    return fsi__room(context, &column, 1, rows, capacity, need, function);
}

FSI_API void *fsi__take(fsi__arena *arena, size_t count, size_t size)
{
    const size_t most = (size_t)-1 / 2; /* sizes saturate here; no allocation of this size succeeds */
    size_t bytes = count > most / size - FSI__ALIGN ? most : (count * size + FSI__ALIGN - 1) / FSI__ALIGN * FSI__ALIGN;
    void *p = arena->base ? arena->base + arena->used : NULL;
    arena->used = bytes > most - arena->used ? most : arena->used + bytes;
    FSI_ASSERT(!arena->base || arena->used <= arena->size);
    return p;
}

FSI_API void fsi__arena_free(fsi_context *context, fsi__arena *arena)
{
    fsi__free(context, arena->base, arena->size, 1);
    memset(arena, 0, sizeof *arena);
}

FSI_API int fsi__arena_reserve(fsi_context *context, fsi__arena *arena, size_t size)
{
    arena->used = 0;
    if (size > arena->size || !arena->base) {
        fsi__arena_free(context, arena);
        arena->base = (unsigned char *)fsi__alloc(context, size, 1);
        if (!arena->base) return 0;
        arena->size = size ? size : 1;
    }
    return 1;
}

FSI_API int fsi__arena_room(fsi_context *context, fsi__arena *arena, size_t size)
{
    const int grows = size > arena->size && size < (size_t)-1 / 2; /* a larger size cannot be had */
    return fsi__arena_reserve(context, arena, grows ? size + size / 4 + 1024 : size);
}

/* ---- >>parallel implementation -------------------------------------------------------------------------------- */

#ifndef FSI__DISPATCH_WORTH
#define FSI__DISPATCH_WORTH 22e3 /* nanoseconds of work that other threads are woken for: 20e3 are promised */
#endif

typedef struct fsi__job {
    fsi__range_fn *fn;
    void *arg;
    int count, grain;
} fsi__job;

static void fsi__job_task(void *arg, int chunk)
{
    const fsi__job *job = (const fsi__job *)arg;
    int begin = chunk * job->grain;
    int end = job->count - begin > job->grain ? begin + job->grain : job->count;
    job->fn(job->arg, chunk, begin, end);
}

static void fsi__job_alone(fsi__job *job)
{
    const int chunks = fsi__chunks(job->count, job->grain);
    int c;
    for (c = 0; c < chunks; c++) fsi__job_task(job, c);
}

#if defined(_OPENMP)
#define FSI__TEAM_GAIN 0.8  /* a team pays when its loop takes less than this share of its tasks' times */
#define FSI__TEAM_LOSS 1e-3 /* seconds that one loop counts at most: one that was held up says little */
#define FSI__TEAM_DEBT 4e-3 /* when teams have cost that much more than they saved, loops run alone */
#define FSI__TEAM_REST 1.0  /* for that many seconds; then a team is tried again */

/* The threads of a team spin, in the OpenMP runtime, where they wait for each other. On a machine that is busy with other
   programs they wait until the scheduler gives a core to the one that is missing: milliseconds for loops of microseconds, with
   the cores full. A header cannot set OMP_WAIT_POLICY, but it can see what teams save, and do without them where they do not. */
static void fsi__job_team(fsi_context *context, fsi__job *job, int threads)
{
    const int chunks = fsi__chunks(job->count, job->grain);
    double start = omp_get_wtime(), busy = 0, loss, end;
    int c;
    if (context && start < context->team_rests) {
        fsi__job_alone(job);
        return;
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads) reduction(+ : busy)
    for (c = 0; c < chunks; c++) {
        const double since = omp_get_wtime();
        fsi__job_task(job, c);
        busy += omp_get_wtime() - since;
    }
    if (!context) return;
    end = omp_get_wtime();
    loss = end - start - FSI__TEAM_GAIN * busy;
    context->team_debt += loss < FSI__TEAM_LOSS ? loss : FSI__TEAM_LOSS;
    if (context->team_debt < 0) context->team_debt = 0;
    if (context->team_debt < FSI__TEAM_DEBT) return;
    context->team_rests = end + FSI__TEAM_REST;
    context->team_debt = FSI__TEAM_DEBT - FSI__TEAM_LOSS; /* the next that is held up tells at once */
}
#endif

FSI_API void fsi__parallel_work(fsi_context *context, int count, int grain, double work, fsi__range_fn *fn, void *arg)
{
    const int chunks = fsi__chunks(count, grain);
    fsi__job job;
    job.fn = fn;
    job.arg = arg;
    job.count = count;
    job.grain = grain;
    if (chunks < 2 || work < FSI__DISPATCH_WORTH) {
        fsi__job_alone(&job);
        return;
    }
    if (context && context->parallel_for) {
        context->parallel_for(context->user, chunks, fsi__job_task, &job);
        return;
    }
#if defined(_OPENMP)
    if (omp_get_max_threads() > 1) {
        fsi__job_team(context, &job, chunks < omp_get_max_threads() ? chunks : omp_get_max_threads());
        return;
    }
#endif
    fsi__job_alone(&job);
}

FSI_API void fsi__parallel(fsi_context *context, int count, int grain, fsi__range_fn *fn, void *arg)
{
    fsi__parallel_work(context, count, grain, FSI__HUGE, fn, arg);
}

#define FSI__CENSUS 64 /* tasks, whatever the number of threads */
typedef struct fsi__census { fsi__test_fn *fn; const void *arg; int found[FSI__CENSUS], first[FSI__CENSUS]; } fsi__census;

static void fsi__census_chunk(void *arg, int chunk, int begin, int end)
{
    fsi__census *c = (fsi__census *)arg;
    int i;
    for (i = end - 1; i >= begin; i--) {
        if (!c->fn(c->arg, i)) continue;
        c->found[chunk]++;
        c->first[chunk] = i;
    }
}

FSI_API int fsi__count_where(fsi_context *context, int count, fsi__test_fn *fn, const void *arg, int *first)
{
    fsi__census c;
    int k, found = 0;
    if (first) *first = -1;
    memset(&c, 0, sizeof c);
    c.fn = fn;
    c.arg = arg;
    fsi__parallel(context, count, count / FSI__CENSUS + 1, fsi__census_chunk, &c); /* never more chunks than there is room for */
    for (k = 0; k < FSI__CENSUS; k++) {
        if (first && found == 0 && c.found[k] > 0) *first = c.first[k];
        found += c.found[k];
    }
    return found;
}

/* The sites of a fill within its clip: of axis k those from first to first + n - 1, site i at lo + dx (i + 1/2). */
typedef struct fsi__sites { double lo[3], first[3]; int n[3]; } fsi__sites;

/* Particles that were there, by the cell of side dx that they are in, as seen from the first site. */
typedef struct fsi__taken { const fsi_vec3 *position; int count, mask, *head, *next; } fsi__taken;

static fsi_status fsi__check_fill(const fsi__fill *f)
{
    const fsi_mesh *m = f->mesh;
    if (!fsi_v3_is_finite(f->velocity)) return fsi__fail(f->context, FSI_ERROR_NAN, f->function, -1, 0, "the velocity is not finite");
    if (f->box && !(fsi_v3_is_finite(f->box->lo) && fsi_v3_is_finite(f->box->hi))) return fsi__fail(f->context, FSI_ERROR_NAN, f->function, -1, 0, "the box is not finite");
    if (m && m->cookie != FSI__COOKIE('m', fsi_mesh)) return fsi__fail(f->context, FSI_ERROR_COOKIE, f->function, -1, 0, "the mesh was not made by fsi_mesh_create of this version and precision");
    if (m && m->corners != f->dim) return fsi__fail(f->context, FSI_ERROR_ARGUMENT, f->function, -1, m->corners, "the mesh: a %dD simulator needs %s", f->dim, f->dim == 3 ? "triangles" : "segments");
    if (m && m->kind != FSI_MESH_CLOSED) return fsi__fail(f->context, FSI_ERROR_MESH, f->function, -1, 0, "the mesh is not closed: it has no inside");
    if (f->box || m) return FSI_OK;
    if (!fsi_v3_is_finite(f->center) || !fsi_is_finite((double)f->radius)) return fsi__fail(f->context, FSI_ERROR_NAN, f->function, -1, (double)f->radius, "the sphere is not finite");
    if (!(f->radius > 0)) return fsi__fail(f->context, FSI_ERROR_ARGUMENT, f->function, -1, (double)f->radius, "radius is %g, must be positive", (double)f->radius);
    return FSI_OK;
}

/* Fills `sites`; n 0 where none is within the clip. */
static fsi_status fsi__plan_fill(const fsi__fill *f, fsi__sites *sites)
{
    const fsi_box3 *b = f->box ? f->box : f->mesh ? &f->mesh->box : NULL;
    const char *shape = f->box ? "box" : f->mesh ? "mesh" : "sphere";
    const double dx = (double)f->dx, c[3] = { (double)f->center.x, (double)f->center.y, (double)f->center.z };
    const double clip[6] = { (double)f->clip.lo.x, (double)f->clip.lo.y, (double)f->clip.lo.z, (double)f->clip.hi.x, (double)f->clip.hi.y, (double)f->clip.hi.z };
    const int bounded = f->clip.lo.x <= f->clip.hi.x;
    fsi_vec3 size = f->box ? fsi_v3_sub(b->hi, b->lo) : fsi_v3(0, 0, 0);
    double along[3], total = 1;
    int k;
    if (f->mesh) size = fsi_v3_sub(b->hi, b->lo);
    along[0] = b ? (double)(size.x / f->dx) : 2 * (double)f->radius / dx;
    if (!b && (double)f->radius < 0.5 * sqrt((double)f->dim) * dx) along[0] = fmin(along[0], 1); /* two sites would lie outside: one, at the centre */
    along[1] = b ? (double)(size.y / f->dx) : along[0];
    along[2] = b ? (double)(size.z / f->dx) : along[0];
    for (k = 0; k < 3; k++) {
        double last;
        along[k] = k == 2 && f->dim == 2 ? 1 : floor(along[k] + (f->mesh ? 1e-5 : 0.5));
        if (!(along[k] >= 1)) return fsi__fail(f->context, FSI_ERROR_ARGUMENT, f->function, -1, along[k], "the %s holds no particle of spacing %g", shape, dx);
        sites->lo[k] = !b ? c[k] - along[k] * dx / 2 : (double)(k == 0 ? b->lo.x : k == 1 ? b->lo.y : b->lo.z);
        sites->first[k] = 0;
        last = along[k] - 1;
        if (bounded && !(k == 2 && f->dim == 2)) {
            sites->first[k] = fmax(0, floor((clip[k] - sites->lo[k]) / dx - 0.5));
            last = fmin(last, ceil((clip[k + 3] - sites->lo[k]) / dx - 0.5));
        }
        along[k] = fmax(last - sites->first[k] + 1, 0);
        total *= along[k];
    }
    if (!(total <= 5e8)) return fsi__fail(f->context, FSI_ERROR_LIMIT, f->function, -1, total, "the %s holds %.0f particles", shape, total);
    for (k = 0; k < 3; k++) sites->n[k] = total > 0 ? (int)along[k] : 0;
    return FSI_OK;
}

static fsi_vec3 fsi__fill_site(const fsi__fill *f, const fsi__sites *s, int i, int j, int k)
{
    const double dx = (double)f->dx;
    return fsi_v3((fsi_real)(s->lo[0] + dx * (s->first[0] + i + 0.5)), (fsi_real)(s->lo[1] + dx * (s->first[1] + j + 0.5)),
        f->dim == 2 ? 0 : (fsi_real)(s->lo[2] + dx * (s->first[2] + k + 0.5)));
}

/* The cell of x, which lies within some cells of the sites; 2D: of z nothing is known. */
static void fsi__taken_cell(const fsi__fill *f, const fsi__sites *s, fsi_vec3 x, int cell[3])
{
    const double dx = (double)f->dx;
    cell[0] = (int)floor(((double)x.x - s->lo[0]) / dx - s->first[0]);
    cell[1] = (int)floor(((double)x.y - s->lo[1]) / dx - s->first[1]);
    cell[2] = f->dim == 2 ? 0 : (int)floor(((double)x.z - s->lo[2]) / dx - s->first[2]);
}

static uint32_t fsi__taken_key(const int cell[3]) { return (uint32_t)cell[0] * 73856093u ^ (uint32_t)cell[1] * 19349663u ^ (uint32_t)cell[2] * 83492791u; }

/* Is x within a cell of the sites? Sites of a mesh and a sphere are fewer, no matter. */
static int fsi__is_by_sites(const fsi__fill *f, const fsi__sites *s, fsi_vec3 x)
{
    const double at[3] = { (double)x.x, (double)x.y, (double)x.z };
    int k;
    for (k = 0; k < f->dim; k++) {
        const double i = (at[k] - s->lo[k]) / (double)f->dx - s->first[k];
        if (!(i > -1 && i < s->n[k] + 1)) return 0;
    }
    return 1;
}

/* Sorts a copy of the particles near the sites, as those of the simulator move when it grows; 0: no memory. */
static int fsi__make_taken(const fsi__fill *f, const fsi__sites *s, fsi__taken *t, fsi_vec3 **copy)
{
    int i, n = 0;
    *copy = NULL;
    memset(t, 0, sizeof *t);
    for (i = 0; i < f->count; i++) n += fsi__is_by_sites(f, s, f->position[i]);
    if (n == 0) return 1;
    for (t->mask = 1; t->mask < n && t->mask < 1 << 29; t->mask *= 2) {}
    t->count = n;
    *copy = (fsi_vec3 *)fsi__alloc(f->context, (size_t)n, sizeof **copy);
    t->next = (int *)fsi__alloc(f->context, (size_t)n, sizeof(int));
    t->head = (int *)fsi__alloc(f->context, (size_t)t->mask, sizeof(int));
    t->position = *copy;
    if (!*copy || !t->next || !t->head) return 0;
    for (i = 0, n = 0; i < f->count; i++) {
        int cell[3], *head;
        if (!fsi__is_by_sites(f, s, f->position[i])) continue;
        (*copy)[n] = f->position[i];
        fsi__taken_cell(f, s, f->position[i], cell);
        head = &t->head[fsi__taken_key(cell) & (uint32_t)(t->mask - 1)];
        t->next[n] = *head;
        *head = ++n; /* 0 ends a list */
    }
    return 1;
}

static void fsi__free_taken(const fsi__fill *f, fsi__taken *t, fsi_vec3 *copy)
{
    fsi__free(f->context, copy, (size_t)t->count, sizeof *copy);
    fsi__free(f->context, t->next, (size_t)t->count, sizeof(int));
    fsi__free(f->context, t->head, (size_t)t->mask, sizeof(int));
}

/* Is one of the particles that were there nearer to x than 0.6 dx? */
static int fsi__is_taken(const fsi__fill *f, const fsi__sites *s, const fsi__taken *t, fsi_vec3 x)
{
    const double reach = 0.6 * (double)f->dx;
    int own[3], cell[3], k, i;
    if (t->count == 0) return 0;
    fsi__taken_cell(f, s, x, own);
    for (k = 0; k < 27; k++) {
        cell[0] = own[0] + k % 3 - 1;
        cell[1] = own[1] + k / 3 % 3 - 1;
        cell[2] = own[2] + k / 9 - 1;
        for (i = t->head[fsi__taken_key(cell) & (uint32_t)(t->mask - 1)]; i > 0; i = t->next[i - 1]) {
            fsi_vec3 d = fsi_v3_sub(t->position[i - 1], x);
            if (f->dim == 2) d.z = 0;
            if ((double)fsi_v3_norm2(d) < reach * reach) return 1;
        }
    }
    return 0;
}

static int fsi__is_in_shape(const fsi__fill *f, fsi_vec3 x)
{
    fsi_vec3 d = fsi_v3_sub(x, f->center);
    fsi_real distance;
    if (f->box) return 1;
    if (f->dim == 2) d.z = 0;
    if (!f->mesh) return fsi_v3_norm2(d) <= f->radius * f->radius;
    distance = fsi_mesh_signed_distance(f->mesh, x);
    return (f->mesh->container ? distance : -distance) >= f->dx / 2 * (fsi_real)0.999;
}

FSI_API fsi_status fsi__fill_shape(const fsi__fill *f)
{
    fsi__sites s;
    fsi__taken taken;
    fsi_vec3 *copy;
    fsi_status status = fsi__check_fill(f);
    int i, j, k, added = 0;
    if (status == FSI_OK) status = fsi__plan_fill(f, &s);
    if (status != FSI_OK) return status;
    if (!fsi__make_taken(f, &s, &taken, &copy)) status = fsi__fail(f->context, FSI_ERROR_MEMORY, f->function, -1, taken.count, "no memory to look at %d particles", taken.count);
    for (k = 0; k < s.n[2] && status == FSI_OK; k++) for (j = 0; j < s.n[1] && status == FSI_OK; j++) for (i = 0; i < s.n[0] && status == FSI_OK; i++) {
        const fsi_vec3 x = fsi__fill_site(f, &s, i, j, k);
        if (!fsi__is_in_shape(f, x) || fsi__is_taken(f, &s, &taken, x) || !f->is_free(f->simulator, x)) continue;
        status = f->add(f->simulator, x, f->velocity);
        added++;
    }
    fsi__free_taken(f, &taken, copy);
    if (status == FSI_OK && added == 0) fsi__warn(f->context, "%s added nothing: all of it lies outside, in obstacles or in liquid", f->function);
    return status;
}

/* ---- >>hash and state implementation -------------------------------------------------------------------------- */

FSI_API uint64_t fsi_hash(const void *data, size_t size, uint64_t seed)
{
    const unsigned char *p = (const unsigned char *)data;
    uint64_t h = seed ^ 0x9E3779B97F4A7C15u ^ (uint64_t)size, w;
    while (size > 0) {
        size_t n = size < 8 ? size : 8;
        w = 0;
        memcpy(&w, p, n);
        h = (h ^ w) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
        p += n;
        size -= n;
    }
    return h;
}

FSI_API void fsi__bytes(fsi__stream *st, void *data, size_t size)
{
    size_t room = st->capacity > st->used ? st->capacity - st->used : 0;
    if (size == 0) return;
    if (st->mode == FSI__HASH) st->hash = fsi_hash(data, size, st->hash);
    else if (st->mode != FSI__MEASURE) {
        if (size > room) { st->ok = 0; return; }
        if (st->mode == FSI__WRITE) memcpy(st->data + st->used, data, size);
        else memcpy(data, st->data + st->used, size);
    }
    st->used += size;
}

/* What stands before saved state. No padding: 4 * 4 + 2 * 8 bytes. */
typedef struct fsi__state_header {
    uint32_t magic;    /* also tells a foreign byte order */
    uint32_t cookie;   /* kind of simulator, layout, precision */
    uint32_t version;
    uint32_t real_size;
    uint64_t size, hash; /* of the payload */
} fsi__state_header;

#define FSI__STATE_MAGIC 0x31495346u /* "FSI1" */

static fsi__state_header fsi__make_state_header(uint32_t cookie, uint64_t size, uint64_t hash)
{
    fsi__state_header h;
    h.magic = FSI__STATE_MAGIC;
    h.cookie = cookie;
    h.version = FSI_VERSION;
    h.real_size = (uint32_t)sizeof(fsi_real);
    h.size = size;
    h.hash = hash;
    return h;
}

FSI_API fsi_status fsi__save(fsi_context *context, uint32_t cookie, fsi__state_fn *fn, void *simulator, void *buffer, size_t capacity, size_t *size, const char *function)
{
    fsi__stream st;
    fsi__state_header h;
    size_t need;
    memset(&st, 0, sizeof st);
    st.ok = 1;
    fn(&st, simulator);
    need = st.used + sizeof h;
    if (size) *size = need;
    if (!buffer) return size ? FSI_OK : fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "both buffer and size are NULL");
    if (capacity < need) return fsi__fail(context, FSI_ERROR_LIMIT, function, -1, (double)need, "the buffer holds %.0f bytes, the state needs %.0f", (double)capacity, (double)need);
    st.mode = FSI__WRITE;
    st.data = (unsigned char *)buffer + sizeof h;
    st.capacity = need - sizeof h;
    st.used = 0;
    fn(&st, simulator);
    h = fsi__make_state_header(cookie, st.used, fsi_hash(st.data, st.used, 0));
    memcpy(buffer, &h, sizeof h);
    return FSI_OK;
}

FSI_API fsi_status fsi__load_begin(fsi_context *context, uint32_t cookie, const void *buffer, size_t size, fsi__stream *st, const char *function)
{
    fsi__state_header h, want = fsi__make_state_header(cookie, 0, 0);
    if (!buffer) return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "buffer is NULL");
    if (size < sizeof h) return fsi__fail(context, FSI_ERROR_FORMAT, function, (long long)size, 0, "the buffer ends after %.0f bytes, inside its header", (double)size);
    memcpy(&h, buffer, sizeof h);
    if (h.magic != want.magic) return fsi__fail(context, FSI_ERROR_FORMAT, function, 0, 0, "the buffer does not start with an fsi state of this byte order");
    if (h.real_size != want.real_size) return fsi__fail(context, FSI_ERROR_FORMAT, function, -1, (double)h.real_size, "the state holds %u-byte reals, this build has %u-byte ones", (unsigned)h.real_size, (unsigned)want.real_size);
    if (h.version != want.version || h.cookie != want.cookie) return fsi__fail(context, FSI_ERROR_FORMAT, function, -1, (double)h.version, "the state belongs to another simulator or to version %u", (unsigned)h.version);
    if (h.size != size - sizeof h) return fsi__fail(context, FSI_ERROR_FORMAT, function, (long long)size, (double)h.size, "the state announces %.0f bytes, the buffer holds %.0f", (double)h.size, (double)(size - sizeof h));
    memset(st, 0, sizeof *st);
    st->data = (unsigned char *)(uintptr_t)buffer + sizeof h;
    st->capacity = size - sizeof h;
    st->mode = FSI__READ;
    st->ok = 1;
    if (fsi_hash(st->data, st->capacity, 0) != h.hash) return fsi__fail(context, FSI_ERROR_FORMAT, function, -1, 0, "the state is damaged: its checksum differs");
    return FSI_OK;
}

FSI_API uint64_t fsi__state_hash(fsi__state_fn *fn, void *simulator)
{
    fsi__stream st;
    memset(&st, 0, sizeof st);
    st.mode = FSI__HASH;
    st.ok = 1;
    fn(&st, simulator);
    return st.hash;
}

/* ---- >>mathematics implementation ------------------------------------------------------------------------------ */

/* Scales a to largest entry 1 in double; returns the scale, 0 for the zero matrix, NaN when an entry is not finite. */
static double fsi__m3_normalize(fsi_mat3 a, double out[9])
{
    double big = 0;
    int k;
    for (k = 0; k < 9; k++) {
        out[k] = (double)a.m[k];
        if (!(fabs(out[k]) <= big)) big = fabs(out[k]);
        if (!fsi_is_finite(out[k])) big = out[k] - out[k];
        if (big != big) break;
    }
    for (k = 0; k < 9; k++) out[k] = big > 0 ? out[k] / big : (big == 0 ? 0 : big);
    return big;
}

/* (x, y) <- (c x - s y, s x + c y) for three pairs, `stride` apart; h = s/(1 + c) keeps what is lost in c (Rutishauser 1966). */
static void fsi__m3_turn(double *x, double *y, int stride, double s, double h)
{
    int k;
    for (k = 0; k < 3 * stride; k += stride) {
        double a = x[k], b = y[k];
        x[k] = a - s * (b + h * a);
        y[k] = b + s * (a - h * b);
    }
}

/* The rotation (s, h) that makes [[app, apq], [apq, aqq]] diagonal (Jacobi 1846): tan 2a = 2 apq/(aqq - app), |a| <= pi/4. */
static void fsi__jacobi(double app, double apq, double aqq, double *s, double *h)
{
    double d = 0.5 * (aqq - app), r = sqrt(d * d + apq * apq), t = fabs(apq) < 1e-150 ? 0 : apq / (d >= 0 ? d + r : d - r);
    double c = 1 / sqrt(1 + t * t);
    *s = t * c;
    *h = *s / (1 + c);
}

/* Sorts columns by key descending; an odd permutation turns one column round, so that det stays. */
static void fsi__m3_sort_columns(double key[3], double *m, double *n)
{
    static const int pairs[3][2] = { { 0, 1 }, { 0, 2 }, { 1, 2 } };
    int i, k;
    for (i = 0; i < 3; i++) {
        int p = pairs[i][0], q = pairs[i][1];
        double t = key[p];
        if (!(key[p] < key[q])) continue;
        key[p] = key[q];
        key[q] = t;
        for (k = 0; k < 3; k++) {
            t = m[3 * k + p]; m[3 * k + p] = m[3 * k + q]; m[3 * k + q] = -t;
            if (n) { t = n[3 * k + p]; n[3 * k + p] = n[3 * k + q]; n[3 * k + q] = -t; }
        }
    }
}

static fsi_mat3 fsi__m3_from(const double *m, double scale)
{
    fsi_mat3 r;
    int k;
    for (k = 0; k < 9; k++) r.m[k] = (fsi_real)(scale * m[k]);
    return r;
}

/* Cyclic Jacobi: A <- J^T A J until the off-diagonal part is below rounding; converges quadratically, 4 to 6 sweeps. */
FSI_API void fsi_m3_eigen(fsi_mat3 a, fsi_vec3 *values, fsi_mat3 *vectors)
{
    double m[9], v[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 }, d[3], scale, s, h;
    int sweep, p, q, k;
    a.m[1] = a.m[3]; a.m[2] = a.m[6]; a.m[5] = a.m[7];
    scale = fsi__m3_normalize(a, m);
    for (sweep = 0; sweep < 12 && m[1] * m[1] + m[2] * m[2] + m[5] * m[5] > 1e-40; sweep++)
        for (p = 0; p < 2; p++) for (q = p + 1; q < 3; q++) {
            fsi__jacobi(m[3 * p + p], m[3 * p + q], m[3 * q + q], &s, &h);
            fsi__m3_turn(m + p, m + q, 3, s, h);         /* columns */
            fsi__m3_turn(m + 3 * p, m + 3 * q, 1, s, h); /* rows */
            fsi__m3_turn(v + p, v + q, 3, s, h);
        }
    for (k = 0; k < 3; k++) d[k] = m[4 * k];
    fsi__m3_sort_columns(d, v, NULL);
    *values = fsi_v3((fsi_real)(scale * d[0]), (fsi_real)(scale * d[1]), (fsi_real)(scale * d[2]));
    if (vectors) *vectors = fsi__m3_from(v, scale == scale ? 1 : scale);
}

/* Columns of u: the first two of b made orthonormal, and their cross product; missing ones (|b| = 0) are filled in. */
static void fsi__m3_frame(const double *b, double *u)
{
    double n, dot = 0;
    int k, pass;
    for (k = 0; k < 3; k++) { u[3 * k] = b[3 * k]; u[3 * k + 1] = b[3 * k + 1]; }
    n = sqrt(u[0] * u[0] + u[3] * u[3] + u[6] * u[6]);
    for (k = 0; k < 3; k++) u[3 * k] = n > 0 ? u[3 * k] / n : k == 0;
    for (pass = 0; pass < 3; pass++) { /* the last time with the axis that is farthest from the first column */
        dot = u[0] * u[1] + u[3] * u[4] + u[6] * u[7];
        for (k = 0; k < 3; k++) u[3 * k + 1] -= dot * u[3 * k];
        n = sqrt(u[1] * u[1] + u[4] * u[4] + u[7] * u[7]);
        for (k = 0; k < 3; k++) u[3 * k + 1] = n > 0 ? u[3 * k + 1] / n : 0;
        if (n > 0) continue;
        u[fabs(u[0]) < 0.6 ? 1 : (fabs(u[3]) < 0.6 ? 4 : 7)] = 1;
    }
    u[2] = u[3] * u[7] - u[6] * u[4];
    u[5] = u[6] * u[1] - u[0] * u[7];
    u[8] = u[0] * u[4] - u[3] * u[1];
}

/* One-sided Jacobi (Hestenes 1958): B = A V with V a product of rotations that make the columns of B orthogonal;
   their lengths are the singular values. Squares of A are never formed, so small values keep their accuracy. */
static double fsi__m3_svd(fsi_mat3 a, double *u, double sigma[3], double *v)
{
    static const double identity[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 };
    double b[9], scale = fsi__m3_normalize(a, b), s, h;
    int sweep, p, q, k, turned = 1;
    memcpy(v, identity, sizeof identity);
    for (sweep = 0; sweep < 20 && turned; sweep++) {
        turned = 0;
        for (p = 0; p < 2; p++) for (q = p + 1; q < 3; q++) {
            double bpp = b[p] * b[p] + b[p + 3] * b[p + 3] + b[p + 6] * b[p + 6];
            double bqq = b[q] * b[q] + b[q + 3] * b[q + 3] + b[q + 6] * b[q + 6];
            double bpq = b[p] * b[q] + b[p + 3] * b[q + 3] + b[p + 6] * b[q + 6];
            if (!(bpq * bpq > 1e-32 * bpp * bqq)) continue;
            turned = 1;
            fsi__jacobi(bpp, bpq, bqq, &s, &h);
            fsi__m3_turn(b + p, b + q, 3, s, h);
            fsi__m3_turn(v + p, v + q, 3, s, h);
        }
    }
    for (k = 0; k < 3; k++) sigma[k] = sqrt(b[k] * b[k] + b[k + 3] * b[k + 3] + b[k + 6] * b[k + 6]);
    fsi__m3_sort_columns(sigma, v, b);
    fsi__m3_frame(b, u);
    sigma[2] = u[2] * b[2] + u[5] * b[5] + u[8] * b[8];
    return scale;
}

FSI_API void fsi_m3_svd(fsi_mat3 a, fsi_mat3 *u, fsi_vec3 *sigma, fsi_mat3 *v)
{
    double ud[9], vd[9], d[3], scale = fsi__m3_svd(a, ud, d, vd), one = scale == scale ? 1 : scale;
    *u = fsi__m3_from(ud, one);
    *v = fsi__m3_from(vd, one);
    *sigma = fsi_v3((fsi_real)(scale * d[0]), (fsi_real)(scale * d[1]), (fsi_real)(scale * d[2]));
}

/* R = U V^T, S = V diag(sigma) V^T. */
FSI_API void fsi_m3_polar(fsi_mat3 a, fsi_mat3 *rotation, fsi_mat3 *stretch)
{
    double u[9], v[9], d[3], r[9], s[9], scale = fsi__m3_svd(a, u, d, v);
    int i, j;
    for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) {
        r[3 * i + j] = u[3 * i] * v[3 * j] + u[3 * i + 1] * v[3 * j + 1] + u[3 * i + 2] * v[3 * j + 2];
        s[3 * i + j] = v[3 * i] * v[3 * j] * d[0] + v[3 * i + 1] * v[3 * j + 1] * d[1] + v[3 * i + 2] * v[3 * j + 2] * d[2];
    }
    *rotation = fsi__m3_from(r, scale == scale ? 1 : scale);
    if (stretch) *stretch = fsi__m3_from(s, scale);
}

/* ---- >>neighbours implementation ------------------------------------------------------------------------------ */

/* Cells are cubes a hair wider than the radius. Points are radix-sorted by (z, y, x) of their cell, so that a row of
   cells along x is one run of ranks, and so are any three adjacent cells of a row:

        row (y+1):  . . . [a b c] . .        the 27 cells around a point are 9 runs, one for each
        row (y)  :  . . . [d * f] . .        neighbouring row, found by binary search among the rows
        row (y-1):  . . . [g h i] . .        that exist: empty space costs nothing, however large.

   Cell coordinates count from the median point and are clamped to +-2^20: clamping keeps cells that were adjacent
   adjacent, so that far outliers are slow at worst, never wrong. Distances are tested in float, relative to the cell;
   pairs within rounding of the radius are tested again with the caller's numbers. */

#define FSI__NB_GRAIN 1024     /* ranks a chunk */
#define FSI__NB_WORK 60.0      /* nanoseconds a rank at least */
#define FSI__NB_TILE 512       /* candidates tested at once */
#define FSI__NB_CLAMP (1 << 20)
#define FSI__NB_DIGIT 11       /* radix sort, bits a pass */
#define FSI__NB_SAMPLE 101     /* points among which the median is taken */

typedef struct fsi__nb_row {
    int y, z;   /* cell coordinates */
    int begin;  /* first rank */
} fsi__nb_row;

typedef struct fsi__nb_impl {
    fsi__arena rows, lists;   /* per-rank arrays; neighbour lists */
    fsi__arena fresh;         /* where the next build is made: swapped with `rows` when it succeeds */
    fsi__arena fresh_lists;
} fsi__nb_impl;

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
    fsi__ranks_fn *also;   /* or NULL: done to the ranks of a chunk along with their lists */
    void *arg;
} fsi__nb_build;

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

static void fsi__nb_layout(fsi__nb_build *b, fsi__arena *a)
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
    int lo[3] = { FSI__NB_CLAMP, FSI__NB_CLAMP, FSI__NB_CLAMP }, hi[3] = { -FSI__NB_CLAMP, -FSI__NB_CLAMP, -FSI__NB_CLAMP };
    int i, k, c[3];
    for (i = 0; i < b->count; i++) {
        for (k = 0; k < 3; k++) {
            c[k] = fsi__nb_cell(b, &b->x[i], k);
            if (c[k] < lo[k]) lo[k] = c[k];
            if (c[k] > hi[k]) hi[k] = c[k];
        }
        b->key[i] = (uint64_t)(c[0] + FSI__NB_CLAMP) | (uint64_t)(c[1] + FSI__NB_CLAMP) << 21 | (uint64_t)(c[2] + FSI__NB_CLAMP) << 42;
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
        memset(start, 0, sizeof start);
        for (i = 0; i < b->count; i++) start[key[i] >> shift & ((1 << FSI__NB_DIGIT) - 1)]++;
        for (k = 0, sum = 0; k < 1 << FSI__NB_DIGIT; k++) {
            int n = start[k];
            start[k] = sum;
            sum += n;
        }
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

/* Rows of cells that hold points, and each rank's place in its row. */
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

/* Sorts the points of a build that has been laid out. */
static void fsi__nb_rank(fsi__nb_build *b)
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

/* The runs of ranks that may hold neighbours of one cell. */
typedef struct fsi__nb_runs {
    int count, end[9];           /* rows around this one: where they end */
    int begin[9], stop[9];       /* ranks of cells x-1 .. x+1, moving along with x */
} fsi__nb_runs;

static void fsi__nb_start_row(const fsi__nb_build *b, int row, int x, fsi__nb_runs *runs)
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

static int fsi__nb_advance(const fsi__nb_build *b, int x, fsi__nb_runs *runs)
{
    int k, total = 0;
    for (k = 0; k < runs->count; k++) {
        while (runs->begin[k] < runs->end[k] && b->cell_x[runs->begin[k]] < x - 1) runs->begin[k]++;
        while (runs->stop[k] < runs->end[k] && b->cell_x[runs->stop[k]] <= x + 1) runs->stop[k]++;
        total += runs->stop[k] - runs->begin[k];
    }
    return total;
}

/* Candidates of one cell, relative to `at`. */
typedef struct fsi__nb_tile {
    float x[FSI__NB_TILE], y[FSI__NB_TILE], z[FSI__NB_TILE];
    int rank[FSI__NB_TILE];
    int hit[FSI__NB_TILE];
    int count;
    int shift;  /* the cell's own points: rank + shift is their place in the tile */
} fsi__nb_tile;

/* Copies candidates number from .. from+TILE-1 of the runs, those around rank i. */
static void fsi__nb_load(const fsi__nb_build *b, const fsi__nb_runs *runs, int from, int i, fsi_vec3 at, fsi__nb_tile *tile)
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

/* Appends rank i's neighbours among the tile to list + m (as far as `room` goes) and returns the new m. `exact`: the
   float test cannot be trusted here. */
static size_t fsi__nb_test(const fsi__nb_build *b, fsi__nb_tile *tile, int i, fsi_vec3 at, int exact, int *list, size_t m, size_t room)
{
    const float x = (float)(b->sorted[i].x - at.x), y = (float)(b->sorted[i].y - at.y), z = b->dim == 3 ? (float)(b->sorted[i].z - at.z) : 0.0f;
    const float sure = (float)b->radius2 * 0.99999f, maybe = (float)b->radius2 * 1.00001f;
    int k, n = tile->count, unsure = 0, *to;
    for (k = 0; k < n; k++) {
        float dx = tile->x[k] - x, dy = tile->y[k] - y, dz = tile->z[k] - z;
        float r2 = dx * dx + dy * dy + dz * dz;
        tile->hit[k] = r2 < maybe;
        unsure += (r2 >= sure) & (r2 < maybe);
    }
    if (unsure || exact) for (k = 0; k < n; k++) tile->hit[k] = fsi__nb_exact(b, i, tile->rank[k]);
    if (i + tile->shift >= 0 && i + tile->shift < n) tile->hit[i + tile->shift] = 0; /* not its own neighbour */
    if (m + (size_t)n + FSI_LANES > room) { /* counting only, or nearly full: never past the end */
        for (k = 0; k < n; k++) {
            if (!tile->hit[k]) continue;
            if (m < room) list[m] = tile->rank[k];
            m++;
        }
        return m;
    }
    to = list + m;
    for (k = 0; k + 3 < n; k += 4) { /* no branch: what is no hit is overwritten */
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

/* Is a rank's cell so near to where coordinates are clamped that floats cannot be trusted? */
static int fsi__nb_clamped(const fsi__nb_build *b, int r)
{
    const fsi_vec3 *at = &b->sorted[r];
    int exact = b->cell_x[r] <= 1 - FSI__NB_CLAMP || b->cell_x[r] >= FSI__NB_CLAMP - 2 || b->inv_cell > 1e15 || b->inv_cell < 1e-15;
    exact |= fsi__nb_cell(b, at, 1) <= 1 - FSI__NB_CLAMP || fsi__nb_cell(b, at, 1) >= FSI__NB_CLAMP - 2;
    exact |= fsi__nb_cell(b, at, 2) <= 1 - FSI__NB_CLAMP || fsi__nb_cell(b, at, 2) >= FSI__NB_CLAMP - 2;
    return exact;
}

/* Lists of the ranks begin .. end-1 of one cell; `total` candidates. */
static size_t fsi__nb_cell_lists(const fsi__nb_build *b, const fsi__nb_runs *runs, int total, int begin, int end, fsi__nb_tile *tile, int *list, size_t m, size_t room, size_t base)
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
    while (hi - lo > 1) { /* the row that holds `begin` */
        int mid = (lo + hi) / 2;
        if (b->row[mid].begin <= begin) lo = mid;
        else hi = mid;
    }
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

/* Gives every chunk room for its lists. The first try guesses; chunks that need more say so. */
static fsi_status fsi__nb_make_lists(fsi_context *context, fsi__nb_build *b, fsi__arena *lists, const char *function)
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
        if (!fsi__arena_reserve(context, lists, b->base[b->chunk_count] * sizeof(int))) return fsi__fail(context, FSI_ERROR_MEMORY, function, -1, 0, "no memory for the neighbour lists of %d points", b->count);
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
    if (count < 0 || (count > 0 && !x)) return fsi__fail(nb->context, FSI_ERROR_ARGUMENT, fn, -1, count, "count is %d, points are %s", count, x ? "given" : "NULL");
    if (!(radius > 0) || !fsi_is_finite((double)radius) || !(radius * radius > 0) || !fsi_is_finite((double)(radius * radius))) return fsi__fail(nb->context, FSI_ERROR_ARGUMENT, fn, -1, (double)radius, "the radius %g is not a positive length", (double)radius);
    if (dim != 2 && dim != 3) return fsi__fail(nb->context, FSI_ERROR_ARGUMENT, fn, -1, dim, "dim is %d, must be 2 or 3", dim);
    for (i = 0; i < count; i++)
        if (!fsi_v3_is_finite(x[i])) return fsi__fail(nb->context, FSI_ERROR_NAN, fn, i, 0, "point %d is not finite", i);
    return FSI_OK;
}

/* Sorts the points of a build, in impl->fresh. */
static fsi_status fsi__nb_begin(fsi_neighbors *nb, fsi__nb_build *b, const fsi_vec3 *x, int count, fsi_real radius, int dim)
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
    if (!fsi__arena_reserve(nb->context, &impl->fresh, measure.used)) return fsi__fail(nb->context, FSI_ERROR_MEMORY, "fsi_neighbors_build", -1, count, "no memory to sort %d points", count);
    fsi__nb_layout(b, &impl->fresh);
    fsi__nb_rank(b);
    return FSI_OK;
}

/* What was built takes the place of what was there. */
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

FSI_API fsi_status fsi__neighbors_build_with(fsi_neighbors *nb, const fsi_vec3 *x, int count, fsi_real radius, int dim, fsi__ranks_fn *also, void *arg)
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

/* ---- >>mesh implementation -------------------------------------------------------------------------------------

   From the caller's soup to a mesh, each stage a function fsi__make_<stage> below, in this order:

      read    indices and positions checked, used vertices marked     orient  groups found, faces turned
      scale   a vertex that is far off by mistake found               fill    holes closed
      weld    vertices at one place become one                        closed  what is not closed refused
      faces   tetrahedra leave their boundary, degenerates go         order   faces put in tree order
      twins   duplicates go                                           finish  shells within shells judged,
      split   faces joined, and cut where they have T-junctions               crossings counted, report written */

#define FSI__MESH_STACK 64 /* a tree is never deeper: see fsi__plant */

/* A leaf holds items first .. first + count - 1. An inner node has count 0, its left child follows it, `first` is the other. */
typedef struct fsi__node {
    fsi_box3 box;
    int first, count;
} fsi__node;

typedef struct fsi__mesh {
    fsi_mesh pub;
    fsi__arena memory; /* all arrays, the public ones too */
    fsi__node *nodes;
    int node_count;
    fsi_vec3 *rest;    /* as it was made */
    fsi_vec3 *vertices, *previous, *face_normals, *edge_normals, *vertex_normals; /* the public ones, to write to */
} fsi__mesh;

static int fsi__is_mesh(const fsi_mesh *mesh) { return mesh && mesh->cookie == FSI__COOKIE('m', fsi_mesh); }

/* ---- >>mesh geometry ------------------------------------------------------------------------------------------ */

/* Vectors in double, whatever fsi_real is: for volumes, crossings and everything that decides a topology. */
typedef struct fsi__wide { double x, y, z; } fsi__wide;

static fsi__wide fsi__w3(double x, double y, double z) { fsi__wide w; w.x = x; w.y = y; w.z = z; return w; }
static fsi__wide fsi__w_of(fsi_vec3 a) { return fsi__w3((double)a.x, (double)a.y, (double)a.z); }
static fsi__wide fsi__w_sub(fsi__wide a, fsi__wide b) { return fsi__w3(a.x - b.x, a.y - b.y, a.z - b.z); }
static fsi__wide fsi__w_diff(fsi_vec3 a, fsi_vec3 b) { return fsi__w_sub(fsi__w_of(a), fsi__w_of(b)); }
static fsi__wide fsi__w_madd(fsi__wide a, double s, fsi__wide b) { return fsi__w3(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z); }
static fsi__wide fsi__w_over(fsi__wide a, double s) { return fsi__w3(a.x / s, a.y / s, a.z / s); }
static fsi__wide fsi__w_cross(fsi__wide a, fsi__wide b)
{
    return fsi__w3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
static double fsi__w_dot(fsi__wide a, fsi__wide b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static double fsi__w_norm(fsi__wide a) { return sqrt(fsi__w_dot(a, a)); }
static fsi_vec3 fsi__w_real(fsi__wide a) { return fsi_v3((fsi_real)a.x, (fsi_real)a.y, (fsi_real)a.z); }

/* Normal of a face times its measure: twice the area, or the length (2D: the tangent turned left). */
static fsi__wide fsi__w_normal(fsi__wide u, fsi__wide v, int corners)
{
    return corners == 3 ? fsi__w_cross(u, v) : fsi__w3(-u.y, u.x, 0);
}

/* Where the line o + t d meets a face with corners c[0 .. corners - 1]: parameter t and weights of the corners. Returns 0
   when it passes outside (a weight below -slack) or along it. From t d = p + u e1 + v e2 with p = c0 - o, N = e1 x e2:
      t = p.N / d.N,   u = (p x d).e2 / d.N,   v = -(p x d).e1 / d.N;   2D: u = -(p x d) / d.N   (Cramer's rule) */
static int fsi__line_face(fsi__wide o, fsi__wide d, const fsi__wide *c, int corners, double slack, double *t, double *bary)
{
    fsi__wide p = fsi__w_sub(c[0], o), e1 = fsi__w_sub(c[1], c[0]), e2 = fsi__w_sub(c[corners - 1], c[0]),
        n = fsi__w_normal(e1, e2, corners), turn = fsi__w_cross(p, d);
    double along = fsi__w_dot(n, d), sign = along < 0 ? -1 : 1, size = fabs(along);
    double u = sign * (corners == 3 ? fsi__w_dot(turn, e2) : -turn.z), v = corners == 3 ? -sign * fsi__w_dot(turn, e1) : 0;
    if (!(size > 0) || u < -slack * size || (corners == 3 && v < -slack * size) || u + v > (1 + slack) * size) return 0;
    *t = sign * fsi__w_dot(n, p) / size;
    bary[1] = u / size;
    bary[2] = v / size;
    bary[0] = 1 - bary[1] - bary[2];
    return 1;
}

/* ---- >>mesh tree ---------------------------------------------------------------------------------------------- */

static fsi_vec3 fsi__box_middle(fsi_box3 b) { return fsi_v3_scale(fsi_v3_add(b.lo, b.hi), (fsi_real)0.5); }
static fsi_real fsi__axis(fsi_vec3 v, int axis) { return axis == 0 ? v.x : axis == 1 ? v.y : v.z; }

static double fsi__box_area(fsi_box3 b) /* half the surface; boxes of flat scenes still count by their perimeter */
{
    double x = (double)b.hi.x - (double)b.lo.x, y = (double)b.hi.y - (double)b.lo.y, z = (double)b.hi.z - (double)b.lo.z;
    return x * y + y * z + z * x + 1e-6 * (x * x + y * y + z * z);
}

#define FSI__BINS 16
#define FSI__LEAF 4

typedef struct fsi__plan {
    const fsi_box3 *boxes;
    int *order;
    fsi__node *nodes; /* room for 2 count - 1 */
    int node_count;
} fsi__plan;

/* Splits order[begin, end) where the cost area(left) count(left) + area(right) count(right) is least, among the planes
   between FSI__BINS slabs across the longest extent of the centres (Wald 2007); in halves when that fails. */
static int fsi__plan_split(fsi__plan *p, int begin, int end, fsi_box3 centers, int depth)
{
    fsi_vec3 size = fsi_v3_sub(centers.hi, centers.lo);
    int axis = size.x >= size.y ? (size.x >= size.z ? 0 : 2) : (size.y >= size.z ? 1 : 2), i, b, best = 0, left[FSI__BINS],
        count[FSI__BINS] = { 0 };
    fsi_real lo = fsi__axis(centers.lo, axis), scale = FSI__BINS / fsi__axis(size, axis);
    fsi_box3 box[FSI__BINS], run = fsi_box3_empty();
    double cost[FSI__BINS], least = 0;
    if (depth > 30 || !(scale <= FSI_REAL_MAX)) return begin + (end - begin) / 2;
#define FSI__BIN_OF(item) ((int)fsi_min((fsi__axis(fsi__box_middle(p->boxes[item]), axis) - lo) * scale, FSI__BINS - 1))
    for (b = 0; b < FSI__BINS; b++) box[b] = fsi_box3_empty();
    for (i = begin; i < end; i++) {
        b = FSI__BIN_OF(p->order[i]);
        count[b]++;
        box[b] = fsi_box3_join(box[b], p->boxes[p->order[i]]);
    }
    for (b = 0, i = 0; b < FSI__BINS; b++) { /* left[b], cost[b]: bins 0 .. b together */
        run = fsi_box3_join(run, box[b]);
        left[b] = i += count[b];
        cost[b] = i ? fsi__box_area(run) * i : 0;
    }
    run = fsi_box3_empty();
    for (b = FSI__BINS - 1, i = 0; b > 0; b--) {
        run = fsi_box3_join(run, box[b]);
        i += count[b];
        if (i == 0 || left[b - 1] == 0) continue;
        cost[b] = cost[b - 1] + fsi__box_area(run) * i;
        if (best == 0 || cost[b] < least) { best = b; least = cost[b]; }
    }
    for (i = begin, b = end; i < b;) { /* items of bins below `best` to the front */
        int item = p->order[i];
        if (FSI__BIN_OF(item) < best) { i++; continue; }
        p->order[i] = p->order[--b];
        p->order[b] = item;
    }
#undef FSI__BIN_OF
    return i > begin && i < end ? i : begin + (end - begin) / 2;
}

/* Depth: at most 31 levels of free splits, then halves of at most 2^31 items: never more than FSI__MESH_STACK. */
static void fsi__plan_node(fsi__plan *p, int begin, int end, int depth)
{
    int self = p->node_count++, i, middle;
    fsi_box3 box = fsi_box3_empty(), centers = fsi_box3_empty();
    for (i = begin; i < end; i++) {
        box = fsi_box3_join(box, p->boxes[p->order[i]]);
        centers = fsi_box3_grow(centers, fsi__box_middle(p->boxes[p->order[i]]));
    }
    p->nodes[self].box = box;
    p->nodes[self].first = begin;
    p->nodes[self].count = end - begin;
    if (end - begin <= FSI__LEAF) return;
    p->nodes[self].count = 0;
    middle = fsi__plan_split(p, begin, end, centers, depth);
    fsi__plan_node(p, begin, middle, depth + 1);
    p->nodes[self].first = p->node_count;
    fsi__plan_node(p, middle, end, depth + 1);
}

/* Fills order (a permutation of 0 .. count-1, leaves in order) and nodes; returns the number of nodes. */
static int fsi__plant(const fsi_box3 *boxes, int count, int *order, fsi__node *nodes)
{
    fsi__plan p;
    int i;
    p.boxes = boxes;
    p.order = order;
    p.nodes = nodes;
    p.node_count = 0;
    for (i = 0; i < count; i++) order[i] = i;
    if (count > 0) fsi__plan_node(&p, 0, count, 0);
    return p.node_count;
}

/* Visits the items of a tree, leaf by leaf; leaves whose key is above `limit`, which may fall on the way, are left out. The key
   of a box is 0 or infinite (does it meet a given one?), its squared distance to a point, or where a ray enters it. The
   child with the lower key comes first, the left one of equals: so a box finds its items in ascending order. */
enum { FSI__WALK_BOX, FSI__WALK_POINT, FSI__WALK_RAY };
typedef struct fsi__walk {
    const fsi__node *nodes;
    int kind, item, end, top, stack[FSI__MESH_STACK];
    double key[FSI__MESH_STACK];
    fsi_box3 box;
    fsi__wide origin, direction;
    fsi_vec3 point;
} fsi__walk;

FSI_FN double fsi__box_distance2(const fsi_box3 *b, fsi_vec3 x)
{
    fsi_real dx = fsi_max(fsi_max(b->lo.x - x.x, x.x - b->hi.x), 0), dy = fsi_max(fsi_max(b->lo.y - x.y, x.y - b->hi.y), 0),
        dz = fsi_max(fsi_max(b->lo.z - x.z, x.z - b->hi.z), 0);
    return (double)(dx * dx + dy * dy + dz * dz);
}

/* The last of the three slabs entered. */
static double fsi__box_ray(const fsi_box3 *b, fsi__wide o, fsi__wide d, double limit)
{
    const double lo[3] = { (double)b->lo.x - o.x, (double)b->lo.y - o.y, (double)b->lo.z - o.z };
    const double hi[3] = { (double)b->hi.x - o.x, (double)b->hi.y - o.y, (double)b->hi.z - o.z };
    const double dir[3] = { d.x, d.y, d.z };
    double enter = 0, leave = limit;
    int k;
    for (k = 0; k < 3; k++) {
        double s = fabs(dir[k]), from = dir[k] < 0 ? -hi[k] : lo[k], to = dir[k] < 0 ? -lo[k] : hi[k];
        if (s > 0) {
            enter = fmax(enter, from / s);
            leave = fmin(leave, to / s);
        } else if (from > 0 || to < 0) return HUGE_VAL;
    }
    return enter <= leave * (1 + 1e-12) ? enter : HUGE_VAL;
}

FSI__HOST_FN double fsi__walk_key(const fsi__walk *w, int node, double limit)
{
    const fsi_box3 *b = &w->nodes[node].box;
    if (w->kind == FSI__WALK_BOX) return fsi_box3_overlap(*b, w->box) ? 0 : HUGE_VAL;
    return w->kind == FSI__WALK_POINT ? fsi__box_distance2(b, w->point) : fsi__box_ray(b, w->origin, w->direction, limit);
}

FSI__HOST_FN void fsi__walk_push(fsi__walk *w, int node, double key, double limit)
{
    w->stack[w->top] = node;
    w->key[w->top] = key;
    w->top += key <= limit;
}

static int fsi__walk_next(fsi__walk *w, double limit) /* the next item, -1 at the end */
{
    while (w->item == w->end && w->top > 0) {
        int i = w->stack[--w->top];
        const fsi__node *n = &w->nodes[i];
        if (!(w->key[w->top] <= limit)) continue;
        if (n->count == 0) {
            double left = fsi__walk_key(w, i + 1, limit), right = fsi__walk_key(w, n->first, limit);
            int left_first = left <= right;
            fsi__walk_push(w, left_first ? n->first : i + 1, left_first ? right : left, limit);
            fsi__walk_push(w, left_first ? i + 1 : n->first, left_first ? left : right, limit);
        } else w->end = (w->item = n->first) + n->count;
    }
    return w->item < w->end ? w->item++ : -1;
}

/* The first item. What `kind` asks for must have been set. */
static int fsi__walk_begin(fsi__walk *w, int kind, const fsi__node *nodes, double limit)
{
    w->nodes = nodes;
    w->kind = kind;
    w->item = w->end = w->top = 0;
    fsi__walk_push(w, 0, fsi__walk_key(w, 0, limit), limit);
    return fsi__walk_next(w, limit);
}

static int fsi__walk_box(fsi__walk *w, const fsi__node *nodes, fsi_box3 box)
{
    w->box = box;
    return fsi__walk_begin(w, FSI__WALK_BOX, nodes, 0);
}

/* ---- >>mesh making -------------------------------------------------------------------------------------------- */

#define FSI__MAKE "fsi_mesh_create"

/* A face while the mesh is made. Half-edge h = corners * face + k runs from corner k to k + 1; for segments it is the
   corner k itself, where segments are joined as triangles are across edges. */
typedef struct fsi__face {
    int corner[3], neighbor[3], edge[3]; /* segments use the first two; neighbor is negative at an open edge */
    int group, source;
    short turned, dropped; /* turned: over, against what the caller gave; dropped: to go at the end of the stage */
} fsi__face;

typedef struct fsi__maker {
    const fsi_mesh_desc *desc;
    fsi_context *context;
    fsi_mesh_report report;
    const char *noun;
    int corners; /* of a face: 2 or 3 */
    double diagonal, weld; /* lengths */
    fsi_vec3 low;
    fsi_vec3 *x; int *x_source, vertex_count, vertex_room;
    int *source_vertex; /* of the caller's vertices; -1 unused */
    fsi__face *face; int face_count, face_room;
    int *tet, tet_count;
    int edge_count, group_count, open_face, crowded_face; /* faces at an open and at a non-manifold edge, -1 none */
    int closed, stale; /* checked for holes; faces were turned since the mesh was filled */
    fsi__arena scratch; /* of one stage */
    fsi__node *nodes; int node_count, node_room;
} fsi__maker;

static fsi_status fsi__maker_memory(fsi__maker *m)
{
    return fsi__fail(m->context, FSI_ERROR_MEMORY, FSI__MAKE, -1, 0,
        "no memory for a mesh of %d elements", m->desc->element_count);
}

/* Refuses because of an element: "triangle 7 <text>". */
static fsi_status fsi__refuse(fsi__maker *m, int element, double value, const char *text)
{
    return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, element, value, "%s %d %s", m->noun, element, text);
}

static fsi_vec3 fsi__flatten(int corners, fsi_vec3 x) { return corners == 2 ? fsi_v3(x.x, x.y, 0) : x; }
static fsi_vec3 fsi__given(const fsi__maker *m, int v) { return fsi__flatten(m->corners, m->desc->vertices[v]); }

/* Beyond this, products of four lengths leave the range of fsi_real. */
#if defined(FSI_REAL_FLOAT)
#define FSI__MESH_REACH 1e9
#else
#define FSI__MESH_REACH 1e75
#endif

/* Is x a position that a mesh may have? */
static fsi_status fsi__check_position(fsi_context *context, const char *function, fsi_vec3 x, int vertex)
{
    double far_off = fmax(fmax(fabs((double)x.x), fabs((double)x.y)), fabs((double)x.z));
    if (!fsi_v3_is_finite(x)) return fsi__fail(context, FSI_ERROR_NAN, function, vertex, 0, "vertex %d is not finite", vertex);
    if (far_off > FSI__MESH_REACH) return fsi__fail(context, FSI_ERROR_LIMIT, function, vertex, far_off,
        "vertex %d lies %g from the origin, the most is %g", vertex, far_off, FSI__MESH_REACH);
    return FSI_OK;
}

static fsi_status fsi__make_read(fsi__maker *m)
{
    const fsi_mesh_desc *d = m->desc;
    fsi_box3 box = fsi_box3_empty();
    fsi_status s;
    int i, v;
    m->source_vertex = (int *)fsi__alloc(m->context, (size_t)d->vertex_count, sizeof(int));
    if (!m->source_vertex) return fsi__maker_memory(m);
    for (v = 0; v < d->vertex_count; v++) m->source_vertex[v] = -1;
    for (i = 0; i < d->corners * d->element_count; i++) {
        v = d->elements[i];
        if (v < 0 || v >= d->vertex_count)
            return fsi__fail(m->context, FSI_ERROR_ARGUMENT, FSI__MAKE, i / d->corners, v,
                "%s %d names vertex %d, but there are %d vertices", m->noun, i / d->corners, v, d->vertex_count);
        s = fsi__check_position(m->context, FSI__MAKE, d->vertices[v], v);
        if (s != FSI_OK) return s;
        m->source_vertex[v] = 0;
        box = fsi_box3_grow(box, fsi__given(m, v));
    }
    for (v = 0; v < d->vertex_count; v++) m->report.unused_vertices += m->source_vertex[v] < 0;
    m->low = box.lo;
    m->diagonal = fsi__w_norm(fsi__w_diff(box.hi, box.lo));
    m->weld = m->diagonal * (double)fsi_max(d->weld, (fsi_real)1e-15);
    if (m->diagonal > 0 && m->diagonal < 1 / FSI__MESH_REACH)
        return fsi__fail(m->context, FSI_ERROR_LIMIT, FSI__MAKE, -1, m->diagonal, "the mesh is only %g across", m->diagonal);
    return FSI_OK;
}

/* A vertex that is far off by mistake makes the welding distance larger than the rest of the mesh. It shows in the median
   edge (to a factor of two, by counting exponents). */
static fsi_status fsi__make_scale(fsi__maker *m)
{
    const fsi_mesh_desc *d = m->desc;
    int octave[1024] = { 0 }, i, e, n = 0, far_vertex = 0;
    fsi__wide mean = fsi__w3(0, 0, 0);
    double farthest = -1;
    for (i = 0; i < d->corners * d->element_count; i++) {
        int first = i / d->corners * d->corners, next = first + (i + 1 - first) % d->corners;
        double length = fsi__w_norm(fsi__w_diff(fsi__given(m, d->elements[next]), fsi__given(m, d->elements[i])));
        mean = fsi__w_madd(mean, 1.0 / (d->corners * d->element_count), fsi__w_of(d->vertices[d->elements[i]]));
        if (!(length > 0)) continue;
        frexp(length, &e);
        octave[e < -511 ? 0 : e > 512 ? 1023 : e + 511]++;
        n++;
    }
    for (e = 0, i = 0; e < 1024 && 2 * (i + octave[e]) < n; e++) i += octave[e];
    if (n == 0 || 10 * m->weld <= ldexp(0.5, e - 511)) return FSI_OK;
    for (i = 0; i < d->corners * d->element_count; i++) {
        double r = fsi__w_norm(fsi__w_sub(fsi__w_of(d->vertices[d->elements[i]]), mean));
        if (r > farthest) { farthest = r; far_vertex = i; }
    }
    return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, far_vertex / d->corners, m->weld,
        "vertex %d of %s %d lies far from the others: at %.3g across, welding over %.3g would merge edges of about %.3g; "
        "correct it, or lower desc.weld",
        d->elements[far_vertex], m->noun, far_vertex / d->corners, m->diagonal, m->weld, ldexp(0.5, e - 511));
}

/* Kept vertices stand in a hashed grid with cells of four welding distances, so that a look-up reads one to eight cells. */
typedef struct fsi__weld_grid { double cell; int slots, *head, *next; } fsi__weld_grid;

static int fsi__weld_slot(const fsi__weld_grid *g, double i, double j, double k)
{
    uint64_t h = (uint64_t)(int64_t)i * 0x9E3779B97F4A7C15u + (uint64_t)(int64_t)j;
    h = (h * 0xD6E8FEB86659FD93u + (uint64_t)(int64_t)k) * 0xFF51AFD7ED558CCDu;
    return (int)((h >> 33) & (uint64_t)(g->slots - 1));
}

/* The lowest kept vertex within the welding distance of x, -1 when there is none. */
static int fsi__weld_find(const fsi__maker *m, const fsi__weld_grid *g, fsi_vec3 x)
{
    fsi__wide p = fsi__w_diff(x, m->low);
    double w = m->weld, c = g->cell, i, j, k;
    int v, found = -1;
    for (i = floor((p.x - w) / c); i <= floor((p.x + w) / c); i++)
        for (j = floor((p.y - w) / c); j <= floor((p.y + w) / c); j++)
            for (k = floor((p.z - w) / c); k <= floor((p.z + w) / c); k++)
                for (v = g->head[fsi__weld_slot(g, i, j, k)]; v >= 0; v = g->next[v])
                    if ((found < 0 || v < found) && fsi__w_norm(fsi__w_diff(x, m->x[v])) <= w) found = v;
    return found;
}

/* Vertices in the caller's order: each joins the first kept one in reach, or is kept. */
static fsi_status fsi__make_weld(fsi__maker *m)
{
    fsi__weld_grid g;
    int v, used = m->desc->vertex_count - m->report.unused_vertices;
    for (g.slots = 16; g.slots < 2 * used && g.slots < (1 << 30);) g.slots *= 2;
    g.cell = m->weld > 0 ? 4 * m->weld : 1;
    m->x = (fsi_vec3 *)fsi__alloc(m->context, (size_t)used, sizeof(fsi_vec3));
    m->x_source = (int *)fsi__alloc(m->context, (size_t)used, sizeof(int));
    m->vertex_room = used;
    if (!m->x || !m->x_source || !fsi__arena_reserve(m->context, &m->scratch,
        ((size_t)g.slots + (size_t)used) * sizeof(int) + 128)) return fsi__maker_memory(m);
    g.head = (int *)fsi__take(&m->scratch, (size_t)g.slots, sizeof(int));
    g.next = (int *)fsi__take(&m->scratch, (size_t)used, sizeof(int));
    for (v = 0; v < g.slots; v++) g.head[v] = -1;
    for (v = 0; v < m->desc->vertex_count; v++) if (m->source_vertex[v] >= 0) {
        fsi_vec3 x = fsi__given(m, v);
        int found = fsi__weld_find(m, &g, x);
        if (found >= 0) m->report.welded_vertices++;
        else {
            fsi__wide p = fsi__w_diff(x, m->low);
            int *head = &g.head[fsi__weld_slot(&g, floor(p.x / g.cell), floor(p.y / g.cell), floor(p.z / g.cell))];
            found = m->vertex_count++;
            m->x[found] = x;
            m->x_source[found] = v;
            g.next[found] = *head;
            *head = found;
        }
        m->source_vertex[v] = found;
    }
    return FSI_OK;
}

/* Room for `room` faces, keeping those there are. */
static fsi_status fsi__maker_room(fsi__maker *m, int room)
{
    fsi__column faces;
    faces.array = (void **)&m->face;
    faces.size = sizeof *m->face;
    return room <= m->face_room ? FSI_OK : fsi__grow(m->context, &faces, 1, m->face_count, &m->face_room, room, FSI__MAKE);
}

static void fsi__add_face(fsi__maker *m, int a, int b, int c, int source)
{
    fsi__face *f = &m->face[m->face_count++];
    memset(f, 0, sizeof *f);
    f->corner[0] = a;
    f->corner[1] = b;
    f->corner[2] = c;
    f->source = source;
}

static void fsi__swap_ints(int *a, int *b) { int swap = *a; *a = *b; *b = swap; }

/* Counts one more finding; *first keeps the lowest element. */
static void fsi__count(int *count, int *first, int element)
{
    if (*first < 0 || element < *first) *first = element;
    (*count)++;
}

static fsi_status fsi__drop_degenerate(fsi__maker *m, int element, const char *text)
{
    if (!m->desc->repair) return fsi__refuse(m, element, 0, text);
    fsi__count(&m->report.dropped_degenerate, &m->report.first_degenerate, element);
    return FSI_OK;
}

/* Takes one tetrahedron: collapsed ones go, inverted ones are turned, flat ones are refused. */
static fsi_status fsi__make_tet(fsi__maker *m, int element)
{
    static const int side[4][3] = { { 0, 2, 1 }, { 0, 1, 3 }, { 0, 3, 2 }, { 1, 2, 3 } };
    int *t = m->tet + 4 * m->tet_count, i, j;
    double six_volumes, longest = 0;
    fsi__wide e[3];
    for (i = 0; i < 4; i++) t[i] = m->source_vertex[m->desc->elements[4 * element + i]];
    for (i = 0; i < 4; i++) for (j = 0; j < i; j++) {
        longest = fmax(longest, fsi__w_norm(fsi__w_diff(m->x[t[i]], m->x[t[j]])));
        if (t[i] == t[j]) return fsi__drop_degenerate(m, element, "has two corners at one place");
    }
    for (i = 0; i < 3; i++) e[i] = fsi__w_diff(m->x[t[i + 1]], m->x[t[0]]);
    six_volumes = fsi__w_dot(fsi__w_cross(e[0], e[1]), e[2]);
    if (fabs(six_volumes) <= 1e-14 * longest * longest * longest)
        return fsi__refuse(m, element, six_volumes / 6, "is flat: it has no volume");
    if (six_volumes < 0) {
        if (!m->desc->repair) return fsi__refuse(m, element, six_volumes / 6, "is inverted: its volume is negative");
        fsi__count(&m->report.flipped, &m->report.first_flipped, element);
        fsi__swap_ints(&t[2], &t[3]);
    }
    for (i = 0; i < 4; i++) fsi__add_face(m, t[side[i][0]], t[side[i][1]], t[side[i][2]], element);
    m->tet_count++;
    return FSI_OK;
}

static double fsi__maker_area(const fsi__maker *m, int a, int b, int c)
{
    return fsi__w_norm(fsi__w_cross(fsi__w_diff(m->x[b], m->x[a]), fsi__w_diff(m->x[c], m->x[a]))) / 2;
}

static int fsi__is_flat(const fsi__maker *m, const int *c) /* corners of a face without area or length */
{
    return c[0] == c[1] || (m->corners == 3 && fsi__maker_area(m, c[0], c[1], c[2]) < 1e-14 * m->diagonal * m->diagonal);
}

/* Takes one triangle or segment; zero-area ones go. */
static fsi_status fsi__make_face(fsi__maker *m, int element)
{
    int c[3] = { 0, 0, -1 }, j;
    for (j = 0; j < m->corners; j++) c[j] = m->source_vertex[m->desc->elements[m->corners * element + j]];
    if (fsi__is_flat(m, c))
        return fsi__drop_degenerate(m, element, m->corners == 3 ? "has no area" : "has no length");
    fsi__add_face(m, c[0], c[1], c[2], element);
    return FSI_OK;
}

static fsi_status fsi__make_faces(fsi__maker *m)
{
    int i, n = m->desc->element_count, tets = m->desc->corners == 4;
    fsi_status s = fsi__maker_room(m, tets ? 4 * n : n);
    if (tets && s == FSI_OK) {
        m->tet = (int *)fsi__alloc(m->context, (size_t)n, 4 * sizeof(int));
        if (!m->tet) s = fsi__maker_memory(m);
    }
    for (i = 0; i < n && s == FSI_OK; i++) s = tets ? fsi__make_tet(m, i) : fsi__make_face(m, i);
    return s;
}

/* Puts n items in order of up to three keys below key_count each, items with equal keys in ascending order. */
typedef struct fsi__sorter { int *key[3], *order, *spare, *start, keys, key_count, n; } fsi__sorter;

static fsi_status fsi__sorter_begin(fsi__maker *m, fsi__sorter *s, int n, int keys, int key_count, size_t more)
{
    int i;
    size_t room = (size_t)n * (size_t)(keys + 2) + (size_t)key_count + 1;
    if (!fsi__arena_reserve(m->context, &m->scratch, room * sizeof(int) + more + 64)) return fsi__maker_memory(m);
    s->order = (int *)fsi__take(&m->scratch, room, sizeof(int));
    s->spare = s->order + n;
    for (i = 0; i < keys; i++) s->key[i] = s->spare + (size_t)n * (size_t)(i + 1);
    s->start = s->spare + (size_t)n * (size_t)(keys + 1);
    s->keys = keys;
    s->key_count = key_count;
    s->n = n;
    return FSI_OK;
}

static void fsi__sort(fsi__sorter *s) /* a stable counting pass for each key, the last one first */
{
    int i, k;
    for (i = 0; i < s->n; i++) s->order[i] = i;
    for (k = s->keys - 1; k >= 0; k--) {
        const int *key = s->key[k];
        int *from = s->order;
        memset(s->start, 0, ((size_t)s->key_count + 1) * sizeof(int));
        for (i = 0; i < s->n; i++) s->start[key[i] + 1]++;
        for (i = 0; i < s->key_count; i++) s->start[i + 1] += s->start[i];
        for (i = 0; i < s->n; i++) s->spare[s->start[key[from[i]]]++] = from[i];
        s->order = s->spare;
        s->spare = from;
    }
}

static int fsi__sort_run(const fsi__sorter *s, int begin) /* end of the run of items with the keys of order[begin] */
{
    int i = begin, k = s->keys;
    while (k == s->keys && ++i < s->n)
        for (k = 0; k < s->keys && s->key[k][s->order[i]] == s->key[k][s->order[begin]]; k++) {}
    return i;
}

/* Among faces with the same corners those that look one way cancel those that look the other. What is left of a boundary:
   nothing, or one face. Sheets keep the first. Faces of tetrahedra cancel inside and must be single outside. */
static fsi_status fsi__judge_twins(fsi__maker *m, const fsi__sorter *s, int begin, int end)
{
    int i, net = 0, first[2] = { -1, -1 }, kept, tets = m->desc->corners == 4;
    for (i = begin; i < end; i++) {
        const int *c = m->face[s->order[i]].corner;
        int odd = m->corners == 2 ? c[0] > c[1] : (c[0] > c[1]) ^ (c[1] > c[2]) ^ (c[0] > c[2]);
        if (first[odd] < 0) first[odd] = s->order[i];
        net += odd ? -1 : 1;
        m->face[s->order[i]].dropped = 1;
    }
    kept = net > 0 ? first[0] : first[1];
    if (net == 0 && m->desc->kind != FSI_MESH_CLOSED) kept = s->order[begin];
    else if (net == 0) kept = -1;
    if (kept >= 0) m->face[kept].dropped = 0;
    if (tets && (net != 0 || end - begin > 2))
        return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, m->face[s->order[begin]].source, 0,
            "tetrahedra %d and %d overlap", m->face[s->order[begin]].source, m->face[s->order[begin + 1]].source);
    for (i = begin; !tets && i < end; i++) if (s->order[i] != kept) {
        if (!m->desc->repair) return fsi__refuse(m, m->face[s->order[begin + 1]].source, 0, "is there twice");
        fsi__count(&m->report.dropped_duplicate, &m->report.first_duplicate, m->face[s->order[i]].source);
    }
    return FSI_OK;
}

static fsi_status fsi__make_twins(fsi__maker *m)
{
    fsi__sorter s;
    int i, j, k = m->corners, left = 0;
    fsi_status status = fsi__sorter_begin(m, &s, m->face_count, k, m->vertex_count, 0);
    for (i = 0; i < m->face_count && status == FSI_OK; i++) {
        const int *c = m->face[i].corner;
        int lo = c[0] < c[1] ? c[0] : c[1], hi = c[0] + c[1] - lo;
        s.key[0][i] = k == 3 && c[2] < lo ? c[2] : lo;
        s.key[k - 1][i] = k == 3 && c[2] > hi ? c[2] : hi;
        if (k == 3) s.key[1][i] = lo + hi + c[2] - s.key[0][i] - s.key[2][i];
    }
    if (status == FSI_OK) fsi__sort(&s);
    for (i = 0; i < m->face_count && status == FSI_OK; i = j) {
        j = fsi__sort_run(&s, i);
        if (j > i + 1) status = fsi__judge_twins(m, &s, i, j);
    }
    if (status != FSI_OK) return status;
    for (i = 0; i < m->face_count; i++) if (!m->face[i].dropped) m->face[left++] = m->face[i];
    m->face_count = left;
    if (left == 0) return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, 0, 0,
        "nothing is left of %s 0 and the others: they have no area, or cancel each other (a sheet is not closed)", m->noun);
    return FSI_OK;
}

/* ---- >>mesh topology ------------------------------------------------------------------------------------------ */

/* Direction of a half-edge: 1 from its lower to its higher vertex; for segments 1 where one starts. Neighbours that look
   to the same side have different directions. */
static int fsi__forward(const fsi__maker *m, int h)
{
    const fsi__face *f = &m->face[h / m->corners];
    int k = h % m->corners;
    return m->corners == 2 ? k == 0 : f->corner[k] < f->corner[(k + 1) % 3];
}

static void fsi__join(fsi__maker *m, int h, int other)
{
    int k = m->corners;
    m->face[h / k].neighbor[h % k] = other / k;
    m->face[other / k].neighbor[other % k] = h / k;
}

/* The half-edge of face g that is joined to half-edge h. */
static int fsi__mate(const fsi__maker *m, int h, int g)
{
    int k = 0, id = m->face[h / m->corners].edge[h % m->corners];
    while (k < m->corners - 1 && m->face[g].edge[k] != id) k++;
    return m->corners * g + k;
}

/* Where solids touch along an edge, four or more faces meet. Seen along the edge, each solid is a wedge between a face
   that opens it and, at a greater angle, one that closes it; those two are joined, so that the solids come apart:

      closes B \  B  / opens B      The axis, from the lower to the higher vertex, points at you; angles grow
                \   /              anticlockwise. A face whose half-edge runs with the axis has its normal towards
      opens A ----*---- closes A   greater angles: it closes. At equal angles closing goes first; angles are rounded,
                  A                so that equal ones compare equal, and -pi is pi.                                 */
#define FSI__WEDGE_FACES 16
static int fsi__join_wedges(fsi__maker *m, const int *h, int n)
{
    long long angle[FSI__WEDGE_FACES], a;
    int at[FSI__WEDGE_FACES], i, j, k, balance = 0;
    fsi__wide axis = fsi__w3(0, 0, 1), u = axis, v = axis;
    if (n > FSI__WEDGE_FACES || n % 2) return 0;
    for (i = 0; i < n; i++) {
        const int *c = m->face[h[i] / m->corners].corner;
        int from = c[h[i] % m->corners], closes = fsi__forward(m, h[i]);
        fsi__wide w = fsi__w_diff(m->x[m->corners == 2 ? c[1 - h[i] % 2] : c[(h[i] + 2) % 3]], m->x[from]);
        if (m->corners == 3) { /* the part of w across the axis */
            int to = c[(h[i] % 3 + 1) % 3];
            axis = fsi__w_diff(m->x[from < to ? to : from], m->x[from < to ? from : to]);
            w = fsi__w_madd(w, -fsi__w_dot(w, axis) / fsi__w_dot(axis, axis), axis);
        }
        if (i == 0) {
            u = fsi__w_over(w, fsi__w_norm(w));
            v = fsi__w_cross(axis, u);
            v = fsi__w_over(v, fsi__w_norm(v));
        }
        balance += closes ? 1 : -1;
        a = (long long)floor(fsi_atan2(fsi__w_dot(w, v), fsi__w_dot(w, u)) * 1e8 + 0.5);
        if (a <= -314159264) a = 314159265;
        a = 2 * a + !closes;
        for (j = i; j > 0 && angle[j - 1] > a; j--) { angle[j] = angle[j - 1]; at[j] = at[j - 1]; }
        angle[j] = a;
        at[j] = h[i];
    }
    if (balance != 0) return 0;
    for (i = 0; i < n; i++) {
        int depth = 0;
        if (fsi__forward(m, at[i])) continue;
        for (k = 1; k < n; k++) {
            int other = at[(i + k) % n], closes = fsi__forward(m, other);
            if (closes && depth == 0) { fsi__join(m, at[i], other); break; }
            depth += closes ? -1 : 1;
        }
    }
    return 1;
}

/* Joins all faces, numbers the edges, counts open and crowded ones. */
static fsi_status fsi__make_link(fsi__maker *m)
{
    fsi__sorter s;
    int h, i, j, k = m->corners, n = k * m->face_count;
    fsi_status status = fsi__sorter_begin(m, &s, n, k - 1, m->vertex_count, 0);
    if (status != FSI_OK) return status;
    for (h = 0; h < n; h++) {
        const int *c = m->face[h / k].corner;
        int a = c[h % k], b = c[(h % k + 1) % k];
        s.key[0][h] = k == 2 || a < b ? a : b;
        if (k == 3) s.key[1][h] = a < b ? b : a;
        m->face[h / k].neighbor[h % k] = -1;
    }
    fsi__sort(&s);
    m->edge_count = m->report.boundary_edges = m->report.nonmanifold_edges = 0;
    m->open_face = m->crowded_face = -1;
    for (i = 0; i < n; i = j, m->edge_count++) {
        int a = s.order[i];
        j = fsi__sort_run(&s, i);
        for (h = i; h < j; h++) m->face[s.order[h] / k].edge[s.order[h] % k] = m->edge_count;
        if (j == i + 1) fsi__count(&m->report.boundary_edges, &m->open_face, a / k);
        else if (j == i + 2) fsi__join(m, a, s.order[i + 1]);
        else if (!fsi__join_wedges(m, s.order + i, j - i)) fsi__count(&m->report.nonmanifold_edges, &m->crowded_face, a / k);
    }
    return FSI_OK;
}

static fsi_box3 fsi__maker_box(const fsi__maker *m, int f)
{
    const int *c = m->face[f].corner;
    fsi_box3 b = fsi_box3_grow(fsi_box3_grow(fsi_box3_empty(), m->x[c[0]]), m->x[c[1]]);
    return m->corners == 3 ? fsi_box3_grow(b, m->x[c[2]]) : b;
}

/* Tree over the faces as they stand; *order is scratch. */
static fsi_status fsi__maker_plant(fsi__maker *m, int **order, size_t more)
{
    int f, n = m->face_count;
    fsi_box3 *boxes;
    fsi__free(m->context, m->nodes, (size_t)m->node_room, sizeof(fsi__node));
    m->node_room = 2 * n;
    m->nodes = (fsi__node *)fsi__alloc(m->context, (size_t)m->node_room, sizeof(fsi__node));
    if (!m->nodes || !fsi__arena_reserve(m->context, &m->scratch, (size_t)n * (sizeof(fsi_box3) + sizeof(int)) + more + 256))
        return fsi__maker_memory(m);
    *order = (int *)fsi__take(&m->scratch, (size_t)n, sizeof(int));
    boxes = (fsi_box3 *)fsi__take(&m->scratch, (size_t)n, sizeof(fsi_box3));
    for (f = 0; f < n; f++) boxes[f] = fsi__maker_box(m, f);
    m->node_count = fsi__plant(boxes, n, *order, m->nodes);
    return FSI_OK;
}

/* A T-junction: vertex v in the middle of an edge that nothing is joined to. The face is cut there:

        d                d           v is in reach of the edge a-b when it is as close to it as the welding distance
       / \              /|\          (1e-7 of the diagonal at least: a dropped zero-area triangle leaves such an edge).
      /   \    ->      / | \         The vertex nearest to the middle goes first; passes go on until there is none.   */
typedef struct fsi__cut { int vertex, k; double off; } fsi__cut;

static void fsi__find_cut(const fsi__maker *m, int f, int v, double reach, fsi__cut *cut)
{
    const int *c = m->face[f].corner;
    int k;
    if (v == c[0] || v == c[1] || v == c[2]) return;
    for (k = 0; k < 3; k++) {
        fsi__wide e = fsi__w_diff(m->x[c[(k + 1) % 3]], m->x[c[k]]), p = fsi__w_diff(m->x[v], m->x[c[k]]);
        double length = fsi__w_norm(e), along = fsi__w_dot(e, p) / (length * length), off = fabs(along - 0.5);
        if (m->face[f].neighbor[k] >= 0 || along * length <= reach || (1 - along) * length <= reach) continue;
        if (fsi__w_norm(fsi__w_madd(p, -along, e)) > reach || (cut->vertex >= 0 && cut->off <= off)) continue;
        cut->vertex = v;
        cut->k = k;
        cut->off = off;
    }
}

/* Cutting a needle at a vertex near its third corner leaves a part without area, which goes as it does when it was given. */
static void fsi__drop_flat(fsi__maker *m)
{
    int f, kept = 0;
    for (f = 0; f < m->face_count; f++) {
        if (fsi__is_flat(m, m->face[f].corner))
            fsi__count(&m->report.dropped_degenerate, &m->report.first_degenerate, m->face[f].source);
        else m->face[kept++] = m->face[f];
    }
    m->face_count = kept;
}

/* One pass: cuts every face that needs it once. *cuts is their number; without repair they are only counted. */
static fsi_status fsi__split_pass(fsi__maker *m, int *cuts)
{
    int f, k, v, *order, n = m->face_count;
    double reach = fmax(m->weld, 1e-7 * m->diagonal);
    fsi__cut *cut;
    char *rim;
    fsi_status s = fsi__maker_plant(m, &order, (size_t)n * sizeof(fsi__cut) + (size_t)m->vertex_count + 128);
    *cuts = 0;
    if (s != FSI_OK) return s;
    cut = (fsi__cut *)fsi__take(&m->scratch, (size_t)n, sizeof(fsi__cut));
    rim = (char *)fsi__take(&m->scratch, (size_t)m->vertex_count, 1);
    memset(rim, 0, (size_t)m->vertex_count);
    for (f = 0; f < n; f++) for (cut[f].vertex = -1, k = 0; k < 3; k++)
        if (m->face[f].neighbor[k] < 0) rim[m->face[f].corner[k]] = rim[m->face[f].corner[(k + 1) % 3]] = 1;
    for (v = 0; v < m->vertex_count; v++) if (rim[v]) {
        fsi__walk w;
        fsi_box3 box = fsi_box3_inflate(fsi_box3_grow(fsi_box3_empty(), m->x[v]), (fsi_real)reach);
        for (k = fsi__walk_box(&w, m->nodes, box); k >= 0; k = fsi__walk_next(&w, 0))
            fsi__find_cut(m, order[k], v, reach, &cut[order[k]]);
    }
    for (f = 0; f < n; f++) *cuts += cut[f].vertex >= 0;
    if (!m->desc->repair || *cuts == 0) return FSI_OK;
    if ((s = fsi__maker_room(m, n + *cuts)) != FSI_OK) return s;
    for (f = 0; f < n; f++) if (cut[f].vertex >= 0) {
        int *c = m->face[f].corner, a = cut[f].k, b = (a + 1) % 3;
        fsi__add_face(m, cut[f].vertex, c[b], c[(a + 2) % 3], m->face[f].source);
        c[b] = cut[f].vertex;
    }
    return FSI_OK;
}

static fsi_status fsi__make_split(fsi__maker *m)
{
    int pass, cuts = 0;
    fsi_status s = fsi__make_link(m);
    for (pass = 0; pass < 32 && s == FSI_OK && m->corners == 3; pass++) {
        if (m->report.boundary_edges + m->report.nonmanifold_edges == 0) return FSI_OK;
        s = fsi__split_pass(m, &cuts);
        if (s != FSI_OK || cuts == 0) return s;
        if (!m->desc->repair) {
            m->report.t_junctions = cuts;
            return FSI_OK;
        }
        m->report.split_t_junctions += cuts;
        fsi__drop_flat(m);
        s = m->face_count > 0 ? fsi__make_link(m) : fsi__refuse(m, 0, 0, "and the others have no area: nothing is left");
    }
    return s;
}

static void fsi__turn(fsi__maker *m, int face)
{
    fsi__face *f = &m->face[face];
    int last = m->corners - 1;
    fsi__swap_ints(&f->corner[last - 1], &f->corner[last]);
    fsi__swap_ints(&f->neighbor[0], &f->neighbor[last]);
    fsi__swap_ints(&f->edge[0], &f->edge[last]);
    f->turned = !f->turned;
    m->stale = 1;
}

/* Volume enclosed by some faces, and the size of their box: sum of a.(b x c)/6; 2D: of -(a x b)/2 (the inside is right). */
static double fsi__shell_volume(const fsi__maker *m, const int *faces, int n, double *size)
{
    fsi_box3 box = fsi_box3_empty();
    fsi_vec3 o = m->x[m->face[faces[0]].corner[0]];
    double sum = 0;
    int i;
    for (i = 0; i < n; i++) {
        const int *c = m->face[faces[i]].corner;
        fsi__wide a = fsi__w_diff(m->x[c[0]], o), b = fsi__w_diff(m->x[c[1]], o);
        sum += m->corners == 3 ? fsi__w_dot(a, fsi__w_cross(b, fsi__w_diff(m->x[c[2]], o))) / 6 : -fsi__w_cross(a, b).z / 2;
        box = fsi_box3_join(box, fsi__maker_box(m, faces[i]));
    }
    *size = fsi__w_norm(fsi__w_diff(box.hi, box.lo));
    return sum;
}

/* Finds the group of face `seed`: fills `queue` with its faces, turns those that disagree with their neighbours. */
static fsi_status fsi__flood(fsi__maker *m, int seed, int *queue, int *count)
{
    int i, k, n = 0, turned = 0;
    queue[n++] = seed;
    m->face[seed].group = m->group_count;
    for (i = 0; i < n; i++) for (k = 0; k < m->corners; k++) {
        int h = m->corners * queue[i] + k, g = m->face[queue[i]].neighbor[k], agree;
        if (g < 0) continue;
        agree = fsi__forward(m, h) != fsi__forward(m, fsi__mate(m, h, g));
        if (m->face[g].group < 0) {
            if (!agree) fsi__turn(m, g);
            m->face[g].group = m->group_count;
            queue[n++] = g;
        } else if (!agree && m->desc->kind != FSI_MESH_TWO_SIDED)
            return fsi__refuse(m, m->face[g].source, 0,
                "cannot be turned to agree with all its neighbours: the surface has only one side");
    }
    for (i = 0; i < n; i++) turned += m->face[queue[i]].turned;
    for (i = 0; i < n && 2 * turned > n; i++) fsi__turn(m, queue[i]);
    *count = n;
    return FSI_OK;
}

/* Groups; in each all faces look the way most of them did, closed ones outward. */
static fsi_status fsi__make_orient(fsi__maker *m)
{
    int f, i, n = 0, *queue;
    double volume, size;
    fsi_status s;
    if (!fsi__arena_reserve(m->context, &m->scratch, (size_t)m->face_count * sizeof(int) + 64)) return fsi__maker_memory(m);
    queue = (int *)fsi__take(&m->scratch, (size_t)m->face_count, sizeof(int));
    m->group_count = 0;
    for (f = 0; f < m->face_count; f++) m->face[f].group = -1;
    for (f = 0; f < m->face_count; f++) {
        if (m->face[f].group >= 0) continue;
        if ((s = fsi__flood(m, f, queue, &n)) != FSI_OK) return s;
        m->group_count++;
        if (m->desc->kind != FSI_MESH_CLOSED) continue;
        volume = fsi__shell_volume(m, queue, n, &size);
        for (i = 0; i < n && volume < 0; i++) fsi__turn(m, queue[i]);
        if (m->closed && fabs(volume) <= 1e-13 * size * size * (m->corners == 3 ? size : 1))
            return fsi__refuse(m, m->face[f].source, volume,
                "belongs to a shell that encloses no volume: make it FSI_MESH_TWO_SIDED");
    }
    return fsi__make_link(m); /* wedges depend on orientation */
}

/* ---- >>mesh holes --------------------------------------------------------------------------------------------- */

/* The open half-edge that follows open half-edge h around a hole: turn about the vertex at its end.

        \ | /        h comes from the left; from face to face over joined edges,
    h ___\|/___ ?    until an edge has nothing on its other side.               */
static int fsi__next_open(const fsi__maker *m, int h)
{
    int next = h - h % 3 + (h + 1) % 3, guard = 3 * m->face_count;
    while (m->face[next / 3].neighbor[next % 3] >= 0 && guard-- > 0) {
        next = fsi__mate(m, next, m->face[next / 3].neighbor[next % 3]);
        next = next - next % 3 + (next + 1) % 3;
    }
    return next;
}

static double fsi__patch_area(const fsi__maker *m, int a, int b, int c) /* needles cost more than any proper patch */
{
    double area = fsi__maker_area(m, a, b, c);
    return area > 1e-14 * m->diagonal * m->diagonal ? area : 1e6 * m->diagonal * m->diagonal;
}

/* Adds the faces of polygon part i..j of the table `by` of fsi__fill_hole. */
static void fsi__add_patch(fsi__maker *m, const int *loop, const int *by, int n, int i, int j)
{
    if (j < i + 2) return;
    fsi__add_patch(m, loop, by, n, i, by[i * n + j]);
    fsi__add_patch(m, loop, by, n, by[i * n + j], j);
    fsi__add_face(m, loop[j], loop[by[i * n + j]], loop[i], -1);
}

/* Closes a polygon of n vertices by n - 2 triangles of least area:  cost(i, j) = min over m of
   cost(i, m) + cost(m, j) + area(i, m, j)   (Barequet and Sharir 1995). 0 when only needles would do. */
static int fsi__fill_hole(fsi__maker *m, const int *loop, int n, double *cost, int *by)
{
    int span, i, j, k;
    for (i = 0; i + 1 < n; i++) cost[i * n + i + 1] = 0;
    for (span = 2; span < n; span++) for (i = 0; i + span < n; i++) {
        j = i + span;
        cost[i * n + j] = -1;
        for (k = i + 1; k < j; k++) {
            double c = cost[i * n + k] + cost[k * n + j] + fsi__patch_area(m, loop[i], loop[k], loop[j]);
            if (cost[i * n + j] >= 0 && c >= cost[i * n + j]) continue;
            cost[i * n + j] = c;
            by[i * n + j] = k;
        }
    }
    if (cost[n - 1] >= 1e6 * m->diagonal * m->diagonal) return 0;
    fsi__add_patch(m, loop, by, n, 0, n - 1);
    return 1;
}

/* Fills holes of closed meshes that are small, and smaller than what they are a hole in. */
static fsi_status fsi__make_fill(fsi__maker *m)
{
    int h, g, n, most = m->desc->max_hole, faces = m->face_count, *loop, *by, *size;
    double *cost;
    size_t square = (size_t)most * (size_t)most;
    fsi_status s;
    if (m->desc->kind != FSI_MESH_CLOSED || !m->desc->repair || m->corners == 2 || m->report.boundary_edges == 0
        || m->report.nonmanifold_edges > 0 || most < 3) return FSI_OK;
    if ((s = fsi__maker_room(m, faces + m->report.boundary_edges)) != FSI_OK) return s;
    if (!fsi__arena_reserve(m->context, &m->scratch, square * (sizeof(double) + sizeof(int))
        + ((size_t)most + (size_t)m->group_count) * sizeof(int) + 512)) return fsi__maker_memory(m);
    cost = (double *)fsi__take(&m->scratch, square, sizeof(double));
    by = (int *)fsi__take(&m->scratch, square, sizeof(int));
    loop = (int *)fsi__take(&m->scratch, (size_t)most, sizeof(int));
    size = (int *)fsi__take(&m->scratch, (size_t)m->group_count, sizeof(int));

    memset(size, 0, (size_t)m->group_count * sizeof(int));

    for (h = 0; h < faces; h++) size[m->face[h].group]++;
    for (h = 0; h < 3 * faces; h++) {
        for (g = h, n = 0; m->face[g / 3].neighbor[g % 3] == -1; g = fsi__next_open(m, g), n++) {
            m->face[g / 3].neighbor[g % 3] = -2; /* seen */
            if (n < most) loop[n] = m->face[g / 3].corner[g % 3];
        }
        if (n >= 3 && n <= most && 2 * (n - 2) < size[m->face[h / 3].group] && fsi__fill_hole(m, loop, n, cost, by))
            fsi__count(&m->report.filled_holes, &m->report.first_hole_element, m->face[h / 3].source);
    }
    if (m->face_count == faces) return FSI_OK;
    s = fsi__make_twins(m); /* a flap that stood across a hole is covered by its own patch: both go */
    return s == FSI_OK ? fsi__make_link(m) : s;
}

static fsi_status fsi__make_closed(fsi__maker *m)
{
    const fsi_mesh_report *r = &m->report;
    m->closed = 1;
    if (m->desc->kind == FSI_MESH_CLOSED && r->nonmanifold_edges > 0) {
        int e = m->face[m->crowded_face].source;
        return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, e, r->nonmanifold_edges,
            "%s %d has an edge that more than two share (such edges: %d)", m->noun, e, r->nonmanifold_edges);
    }
    if (m->desc->kind == FSI_MESH_CLOSED && r->boundary_edges > 0) {
        int e = m->face[m->open_face].source;
        const char *end = m->corners == 2 ? "end" : "edge";
        return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, e, r->boundary_edges,
            "%s %d has an open %s: the mesh is not closed (open %ss: %d, T-junctions: %d)", m->noun, e, end, end,
            r->boundary_edges, r->t_junctions);
    }
    return FSI_OK;
}

static int fsi__is_grouped(const fsi__maker *m) /* are all that are joined in one group? */
{
    int f, k;
    for (f = 0; f < m->face_count; f++) for (k = 0; k < m->corners; k++) {
        int g = m->face[f].neighbor[k];
        if (g >= 0 && m->face[g].group != m->face[f].group) return 0;
    }
    return 1;
}

/* Puts the faces in tree order, then joins and groups them once more in that order. Where surfaces touch, faces that were turned
   are joined to others than before: then groups are found again. */
static fsi_status fsi__make_order(fsi__maker *m)
{
    int i, pass, *order;
    fsi__face *sorted;
    fsi_status s = fsi__maker_plant(m, &order, 0);
    if (s != FSI_OK) return s;
    sorted = (fsi__face *)fsi__alloc(m->context, (size_t)m->face_count, sizeof(fsi__face));
    if (!sorted) return fsi__maker_memory(m);
    for (i = 0; i < m->face_count; i++) sorted[i] = m->face[order[i]];
    fsi__free(m->context, m->face, (size_t)m->face_room, sizeof(fsi__face));
    m->face = sorted;
    m->face_room = m->face_count;
    s = fsi__make_link(m);
    for (pass = 0; pass < 16 && s == FSI_OK; pass++) {
        s = fsi__make_orient(m);
        if (s != FSI_OK || fsi__is_grouped(m)) return s;
    }
    return s == FSI_OK ? fsi__refuse(m, m->face[0].source, 0, "and those that touch it cannot be turned to agree") : s;
}

/* ---- >>mesh state --------------------------------------------------------------------------------------------- */

/* Box of faces begin .. end - 1 at positions x. */
static fsi_box3 fsi__faces_box(const fsi_mesh *m, const fsi_vec3 *x, int begin, int end)
{
    const int *c = m->faces + m->corners * begin, *last = m->faces + m->corners * end;
    fsi_box3 b;
    b.lo = b.hi = x[*c];
    while (++c < last) b = fsi_box3_grow(b, x[*c]);
    return b;
}

static fsi_box3 fsi__faces_swept_box(const fsi_mesh *m, int begin, int end)
{
    fsi_box3 b = fsi__faces_box(m, m->vertices, begin, end);
    return m->moving ? fsi_box3_join(b, fsi__faces_box(m, m->previous, begin, end)) : b;
}

/* Boxes of leaves from their faces, of inner nodes from their children, which stand behind them. */
static void fsi__mesh_refit(fsi__mesh *w)
{
    int i;
    for (i = w->node_count - 1; i >= 0; i--) {
        fsi__node *n = &w->nodes[i];
        if (n->count) n->box = fsi__faces_swept_box(&w->pub, n->first, n->first + n->count);
        else n->box = fsi_box3_join(w->nodes[i + 1].box, w->nodes[n->first].box);
    }
    w->pub.box = w->nodes[0].box;
}

/* Adds a face's normal to its edges, and to its vertices weighted by its angle there (segments: weight 1). */
static void fsi__spread_normal(fsi__mesh *w, int f, const int *c, fsi_vec3 n, fsi__wide u, fsi__wide v, double twice_area)
{
    double dot = fsi__w_dot(u, v), angle[3];
    int k;
    angle[0] = fsi_atan2(twice_area, dot);
    angle[1] = fsi_atan2(twice_area, fsi__w_dot(u, u) - dot); /* (b - a).(b - c) */
    angle[2] = FSI_PI - angle[0] - angle[1];
    for (k = 0; k < 3; k++) {
        fsi_vec3 *edge = &w->edge_normals[w->pub.face_edge[3 * f + k]], *vertex = &w->vertex_normals[c[k]];
        *edge = fsi_v3_add(*edge, n);
        *vertex = fsi_v3_madd(*vertex, (fsi_real)angle[k], n);
    }
}

/* Face normals and pseudonormals (Baerentzen and Aanaes 2005): sums over all faces at an edge or vertex, also where surfaces
   only touch. Such a sum is, up to a factor, minus the integral of the direction over the part of a small sphere that is
   solid. When the closest point of x is there, that part lies on the far side of it (x outside), or is all but a piece of
   the far side (x inside): so the sign of the dot product with x is right. A collapsed face keeps its former normal. */
static void fsi__mesh_normals(fsi__mesh *w)
{
    const fsi_mesh *m = &w->pub;
    int f, k = m->corners, i;
    memset(w->vertex_normals, 0, (size_t)m->vertex_count * sizeof(fsi_vec3));
    if (k == 3) memset(w->edge_normals, 0, (size_t)m->edge_count * sizeof(fsi_vec3));
    for (f = 0; f < m->face_count; f++) {
        const int *c = m->faces + k * f;
        const fsi_vec3 *x = m->vertices;
        fsi__wide u = fsi__w_diff(x[c[1]], x[c[0]]), v = fsi__w_diff(x[c[k - 1]], x[c[0]]), n = fsi__w_normal(u, v, k);
        double size = fsi__w_norm(n);
        if (size > 0) w->face_normals[f] = fsi__w_real(fsi__w_over(n, size));
        if (k == 3) fsi__spread_normal(w, f, c, w->face_normals[f], u, v, size);
        else for (i = 0; i < 2; i++) w->vertex_normals[c[i]] = fsi_v3_add(w->vertex_normals[c[i]], w->face_normals[f]);
    }
    for (i = 0; k == 3 && i < m->edge_count; i++) w->edge_normals[i] = fsi_v3_unit(w->edge_normals[i]);
    for (i = 0; i < m->vertex_count; i++) w->vertex_normals[i] = fsi_v3_unit(w->vertex_normals[i]);
}

static void fsi__mesh_update(fsi__mesh *w)
{
    w->pub.moving = memcmp(w->vertices, w->previous, (size_t)w->pub.vertex_count * sizeof(fsi_vec3)) != 0;
    fsi__mesh_normals(w);
    fsi__mesh_refit(w);
}

/* Takes room for an array, and fills it from `source`, unless that is NULL. */
static void *fsi__put(fsi__arena *arena, const void *source, size_t count, size_t size)
{
    void *p = fsi__take(arena, count, size);
    if (p && source) memcpy(p, source, count * size);
    return p;
}

/* Names every array, first to measure, then for real. */
static void fsi__mesh_layout(fsi__mesh *w, const fsi__maker *m, fsi__arena *arena)
{
    fsi_mesh *p = &w->pub;
    size_t k = (size_t)m->corners, v = (size_t)m->vertex_count, f = (size_t)m->face_count, e = (size_t)m->edge_count;
    w->nodes = (fsi__node *)fsi__put(arena, m->nodes, (size_t)w->node_count, sizeof(fsi__node));
    w->rest = (fsi_vec3 *)fsi__put(arena, m->x, v, sizeof(fsi_vec3));
    p->vertices = w->vertices = (fsi_vec3 *)fsi__put(arena, m->x, v, sizeof(fsi_vec3));
    p->previous = w->previous = (fsi_vec3 *)fsi__put(arena, m->x, v, sizeof(fsi_vec3));
    p->face_normals = w->face_normals = (fsi_vec3 *)fsi__take(arena, f, sizeof(fsi_vec3));
    p->vertex_normals = w->vertex_normals = (fsi_vec3 *)fsi__take(arena, v, sizeof(fsi_vec3));
    p->faces = (int *)fsi__take(arena, k * f, sizeof(int));
    p->face_neighbor = (int *)fsi__take(arena, k * f, sizeof(int));
    p->face_group = (int *)fsi__take(arena, f, sizeof(int));
    p->face_source = (int *)fsi__take(arena, f, sizeof(int));
    p->vertex_source = (int *)fsi__put(arena, m->x_source, v, sizeof(int));
    p->source_vertex = (int *)fsi__put(arena, m->source_vertex, (size_t)m->desc->vertex_count, sizeof(int));
    if (m->tet) p->tets = (int *)fsi__put(arena, m->tet, 4 * (size_t)m->tet_count, sizeof(int));
    if (k == 2) return;
    p->edge_normals = w->edge_normals = (fsi_vec3 *)fsi__take(arena, e, sizeof(fsi_vec3));
    p->face_edge = (int *)fsi__take(arena, 3 * f, sizeof(int));
}

/* Copies faces from the maker, and what follows from them. */
static void fsi__mesh_fill(fsi__mesh *w, const fsi__maker *m)
{
    fsi_mesh *p = &w->pub;
    int f, k, n = m->corners;
    for (f = 0; f < m->face_count; f++) {
        for (k = 0; k < n; k++) {
            ((int *)p->faces)[n * f + k] = m->face[f].corner[k];
            ((int *)p->face_neighbor)[n * f + k] = m->face[f].neighbor[k];
            if (n == 3) ((int *)p->face_edge)[3 * f + k] = m->face[f].edge[k];
        }
        ((int *)p->face_group)[f] = m->face[f].group;
        ((int *)p->face_source)[f] = m->face[f].source;
    }
    fsi__mesh_update(w);
}

/* One block for the mesh, one for its arrays. NULL when there is no memory. */
static fsi__mesh *fsi__mesh_assemble(fsi__maker *m)
{
    fsi__mesh *w = (fsi__mesh *)fsi__alloc(m->context, 1, sizeof(fsi__mesh));
    fsi__arena measure;
    if (!w) return NULL;
    memset(&measure, 0, sizeof measure);
    w->node_count = m->node_count;
    w->pub.cookie = FSI__COOKIE('m', fsi_mesh);
    w->pub.context = m->context;
    w->pub.kind = m->desc->kind;
    w->pub.container = m->desc->container;
    w->pub.corners = m->corners;
    w->pub.vertex_count = m->vertex_count;
    w->pub.face_count = m->face_count;
    w->pub.group_count = m->group_count;
    w->pub.edge_count = m->corners == 3 ? m->edge_count : 0;
    w->pub.source_count = m->desc->vertex_count;
    w->pub.tet_count = m->tet_count;
    w->pub.impl = w;
    fsi__mesh_layout(w, m, &measure);
    if (!fsi__arena_reserve(m->context, &w->memory, measure.used)) {
        fsi__free(m->context, w, 1, sizeof(fsi__mesh));
        return NULL;
    }
    fsi__mesh_layout(w, m, &w->memory);
    fsi__mesh_fill(w, m);
    m->stale = 0;
    return w;
}

/* ---- >>mesh shells -------------------------------------------------------------------------------------------- */

/* Shells in shells. Each closed group faces outward now. How deep a group lies is the number of groups that hold it; a
   group at odd depth must be a cavity, that is, have been given the other way round than the one that holds it:

      ,---------.      given outward in outward, or inward in inward: a solid within a solid, which says nothing
      |  ,---.  |      about the space between them: refused
      |  |   |  |
      |  `---'  |      given inward in outward: a cavity, turned inward again
      `---------'      both inside-out: turned over together                                                    */
typedef struct fsi__shell {
    int first, given, depth, holder; /* range in the list of faces by group starts at first; given: 1 outward, -1 inward */
} fsi__shell;

static int fsi__shell_inside(const fsi_mesh *mesh, const int *list, const fsi__shell *s, int g, int h, double tolerance)
{
    int i, k, inside = 0;
    for (i = s[g].first; i < s[g + 1].first; i++) for (k = 0; k < mesh->corners; k++) {
        fsi_mesh_hit hit = fsi_mesh_closest(mesh, mesh->vertices[mesh->faces[mesh->corners * list[i] + k]], FSI_REAL_MAX, h);
        if ((double)hit.t <= tolerance) continue; /* touching says nothing */
        if (hit.side > 0) return 0;
        inside = 1;
    }
    return inside;
}

/* Depth and holder (the smallest group around it) of every group. */
static void fsi__nest_shells(const fsi_mesh *mesh, const int *list, fsi__shell *s, const fsi_box3 *boxes, const fsi__node *nodes,
    const int *order, double tolerance)
{
    int g, i;
    for (g = 0; g < mesh->group_count; g++) {
        fsi__walk w;
        double least = -1;
        s[g].holder = -1;
        for (i = fsi__walk_box(&w, nodes, boxes[g]); i >= 0; i = fsi__walk_next(&w, 0)) {
            int h = order[i];
            double size = fsi__box_area(boxes[h]);
            fsi_box3 both = fsi_box3_join(boxes[g], boxes[h]);
            if (h == g || memcmp(&both, &boxes[h], sizeof both) != 0 || !fsi__shell_inside(mesh, list, s, g, h, tolerance))
                continue;
            s[g].depth++;
            if (least >= 0 && size >= least) continue;
            least = size;
            s[g].holder = h;
        }
    }
}

/* Boxes, given directions and face ranges of all groups; `list` will hold the faces by group. */
static void fsi__list_shells(const fsi__maker *m, fsi__sorter *list, fsi__shell *s, fsi_box3 *boxes)
{
    int f, g;
    for (g = 0; g < m->group_count; g++) boxes[g] = fsi_box3_empty();
    memset(s, 0, ((size_t)m->group_count + 1) * sizeof *s);
    for (f = 0; f < m->face_count; f++) {
        g = list->key[0][f] = m->face[f].group;
        boxes[g] = fsi_box3_join(boxes[g], fsi__maker_box(m, f));
        s[g].given += m->face[f].turned ? -1 : 1;
        s[g + 1].first++;
    }
    for (g = 0; g < m->group_count; g++) s[g + 1].first += s[g].first;
    fsi__sort(list);
}

static fsi_status fsi__judge_shells(fsi__maker *m, const fsi__mesh *w)
{
    fsi__sorter list;
    fsi__shell *s;
    fsi__node *nodes;
    fsi_box3 *boxes;
    int f, g, *order;
    size_t n = (size_t)m->group_count;
    fsi_status status;
    if (n < 2 || m->desc->kind != FSI_MESH_CLOSED) return FSI_OK;
    status = fsi__sorter_begin(m, &list, m->face_count, 1, m->group_count,
        (n + 1) * (sizeof *s + sizeof *boxes + 2 * sizeof *nodes + sizeof *order) + 256);
    if (status != FSI_OK) return status;
    s = (fsi__shell *)fsi__take(&m->scratch, n + 1, sizeof *s);
    boxes = (fsi_box3 *)fsi__take(&m->scratch, n, sizeof *boxes);
    nodes = (fsi__node *)fsi__take(&m->scratch, 2 * n, sizeof *nodes);
    order = (int *)fsi__take(&m->scratch, n, sizeof *order);
    fsi__list_shells(m, &list, s, boxes);
    fsi__plant(boxes, m->group_count, order, nodes);
    fsi__nest_shells(&w->pub, list.order, s, boxes, nodes, order, 1e-9 * m->diagonal);
    for (g = 0; g < m->group_count; g++) if (s[g].holder >= 0 && (s[g].given > 0) == (s[s[g].holder].given > 0)) {
        int inner = m->face[list.order[s[g].first]].source, outer = m->face[list.order[s[s[g].holder].first]].source;
        return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, inner, 0, "the shell of %s %d lies inside the shell of %s %d and "
            "faces the same way: turn it over if it is a cavity, drop it if not", m->noun, inner, m->noun, outer);
    }
    for (f = 0; f < m->face_count; f++) if (s[m->face[f].group].depth % 2) fsi__turn(m, f);
    return FSI_OK;
}

/* ---- >>mesh crossings ----------------------------------------------------------------------------------------- */

/* Does an edge of a pass through b, clear of its ends, of b's rim and of b's plane? Neighbours that only touch do not count. */
static int fsi__edges_cross(const fsi__wide *a, const fsi__wide *b, int corners)
{
    fsi__wide n = fsi__w_normal(fsi__w_sub(b[1], b[0]), fsi__w_sub(b[corners - 1], b[0]), corners);
    double t, bary[3], size = 1e-7 * fsi__w_norm(n);
    int k;
    for (k = 0; k < 2 * corners - 3; k++) {
        fsi__wide d = fsi__w_sub(a[(k + 1) % corners], a[k]);
        if (fsi__line_face(a[k], d, b, corners, -1e-7, &t, bary) && t > 1e-7 && t < 1 - 1e-7
            && fabs(fsi__w_dot(n, d)) > size * fsi__w_norm(d)) return 1;
    }
    return 0;
}

static void fsi__face_corners(const fsi_mesh *m, const fsi_vec3 *x, int face, fsi__wide *c)
{
    int k;
    for (k = 0; k < m->corners; k++) c[k] = fsi__w_of(x[m->faces[m->corners * face + k]]);
}

static int fsi__faces_cross(const fsi_mesh *m, int f, int g)
{
    fsi__wide a[3], b[3];
    fsi__face_corners(m, m->vertices, f, a);
    fsi__face_corners(m, m->vertices, g, b);
    return fsi__edges_cross(a, b, m->corners) || (m->corners == 3 && fsi__edges_cross(b, a, 3));
}

/* Counts pairs of faces that cross, within a budget of pairs, and neighbours that are folded flat onto each other. */
static void fsi__count_crossings(const fsi__mesh *w, fsi_mesh_report *r)
{
    const fsi_mesh *m = &w->pub;
    long long budget = 64LL * m->face_count + 4096;
    int f, g, k;
    for (f = 0; f < m->face_count && budget > 0; f++) {
        fsi__walk walk;
        fsi_box3 box = fsi__faces_box(m, m->vertices, f, f + 1);
        int source = m->face_source[f], before = r->self_intersections;
        for (k = 0; k < m->corners; k++) {
            g = m->face_neighbor[m->corners * f + k];
            r->self_intersections += g > f && fsi_v3_dot(m->face_normals[f], m->face_normals[g]) < -1 + 128 * FSI_REAL_EPS;
        }
        for (g = fsi__walk_box(&walk, w->nodes, box); g >= 0; g = fsi__walk_next(&walk, 0)) {
            if (g <= f || !fsi_box3_overlap(box, fsi__faces_box(m, m->vertices, g, g + 1))) continue;
            budget--;
            r->self_intersections += fsi__faces_cross(m, f, g);
        }
        if (r->self_intersections > before && source >= 0 && (r->first_intersection < 0 || source < r->first_intersection))
            r->first_intersection = source;
    }
}

/* ---- >>mesh create -------------------------------------------------------------------------------------------- */

/* Appends "what: count (element first)" to the report's sentence. */
static void fsi__tell(fsi_mesh_report *r, int count, const char *what, int first)
{
    size_t used = strlen(r->text), room = sizeof r->text - used;
    if (count <= 0) return;
    snprintf(r->text + used, room, "%s%s: %d", used ? ", " : "", what, count);
    used = strlen(r->text);
    if (first >= 0) snprintf(r->text + used, sizeof r->text - used, " (element %d)", first);
}

static void fsi__write_report(fsi_mesh_report *r)
{
    fsi__tell(r, r->self_intersections, "self-intersections", r->first_intersection);
    fsi__tell(r, r->flipped, "flipped", r->first_flipped);
    fsi__tell(r, r->filled_holes, "holes filled", r->first_hole_element);
    fsi__tell(r, r->dropped_degenerate, "without area dropped", r->first_degenerate);
    fsi__tell(r, r->dropped_duplicate, "duplicates dropped", r->first_duplicate);
    fsi__tell(r, r->split_t_junctions, "T-junctions split", -1);
    fsi__tell(r, r->t_junctions, "T-junctions left", -1);
    fsi__tell(r, r->nonmanifold_edges, "non-manifold edges", -1);
    fsi__tell(r, r->boundary_edges, "open edges", -1);
    fsi__tell(r, r->welded_vertices, "vertices welded", -1);
    fsi__tell(r, r->unused_vertices, "unused vertices", -1);
}

static fsi_status fsi__make_finish(fsi__maker *m, fsi__mesh *w)
{
    int f;
    fsi_status s = fsi__judge_shells(m, w);
    if (s != FSI_OK) return s;
    for (f = 0; f < m->face_count && m->desc->container; f++) fsi__turn(m, f);
    if (m->stale) fsi__mesh_fill(w, m);
    for (f = 0; f < m->face_count; f++) {
        if (!m->face[f].turned || m->face[f].source < 0) continue;
        if (m->tet) return fsi__refuse(m, m->face[f].source, 0, "overlaps others");
        fsi__count(&m->report.flipped, &m->report.first_flipped, m->face[f].source);
    }
    if (m->report.flipped && !m->desc->repair)
        return fsi__refuse(m, m->report.first_flipped, m->report.flipped, "faces the wrong way");
    fsi__count_crossings(w, &m->report);
    fsi__write_report(&m->report);
    w->pub.report = m->report;
    if (m->report.text[0]) fsi__note(m->context,
        m->report.self_intersections + m->report.t_junctions + m->report.nonmanifold_edges ? 1 : 2, m->report.text);
    return FSI_OK;
}

static fsi_status fsi__make_check(const fsi_mesh_desc *d)
{
    const char *wrong = NULL;
    if (!d) return FSI_ERROR_ARGUMENT;
    if (d->cookie != FSI__COOKIE('M', fsi_mesh_desc) || !fsi__is_context(d->context))
        return fsi__fail(NULL, FSI_ERROR_COOKIE, FSI__MAKE, -1, 0, "desc was not filled by fsi_mesh_default_desc of this version and precision");
    if (!d->vertices || !d->elements) wrong = "vertices or elements is NULL";
    else if (d->corners < 2 || d->corners > 4) wrong = "corners is not 2, 3 or 4";
    else if (d->vertex_count <= 0 || d->element_count <= 0) wrong = "the mesh is empty: a count is not positive";
    else if (!(d->weld >= 0 && d->weld <= (fsi_real)0.1)) wrong = "weld is not in [0, 0.1]";
    else if (d->max_hole < 0 || d->max_hole > 256) wrong = "max_hole is not in 0 .. 256";
    else if ((int)d->kind < 0 || (int)d->kind > 2) wrong = "kind is not an fsi_mesh_kind";
    else if (d->container && (d->container != 1 || d->kind != FSI_MESH_CLOSED
        || d->corners == 4)) wrong = "container is not 0 or 1, or not of closed triangles or segments";
    else if (d->corners == 4 && d->kind != FSI_MESH_CLOSED) wrong = "tetrahedra bound a solid: kind must be FSI_MESH_CLOSED";
    if (wrong) return fsi__fail(d->context, FSI_ERROR_ARGUMENT, FSI__MAKE, -1, 0, "%s", wrong);
    if (d->element_count > 100000000) return fsi__fail(d->context, FSI_ERROR_LIMIT, FSI__MAKE, -1, d->element_count,
        "%d elements are more than 100 million", d->element_count);
    return FSI_OK;
}

FSI_API fsi_mesh_desc fsi_mesh_default_desc(void)
{
    fsi_mesh_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('M', fsi_mesh_desc);
    d.corners = 3;
    d.kind = FSI_MESH_CLOSED;
    d.weld = (fsi_real)1e-6;
    d.repair = 1;
    d.max_hole = 8;
    return d;
}

static void fsi__maker_free(fsi__maker *m)
{
    fsi__free(m->context, m->x, (size_t)m->vertex_room, sizeof(fsi_vec3));
    fsi__free(m->context, m->x_source, (size_t)m->vertex_room, sizeof(int));
    fsi__free(m->context, m->source_vertex, (size_t)m->desc->vertex_count, sizeof(int));
    fsi__free(m->context, m->face, (size_t)m->face_room, sizeof(fsi__face));
    fsi__free(m->context, m->tet, (size_t)m->desc->element_count, 4 * sizeof(int));
    fsi__free(m->context, m->nodes, (size_t)m->node_room, sizeof(fsi__node));
    fsi__arena_free(m->context, &m->scratch);
}

FSI_API fsi_status fsi_mesh_create(fsi_mesh **out, const fsi_mesh_desc *desc)
{
    typedef fsi_status fsi__stage(fsi__maker *m);
    static fsi__stage *const stages[] = { fsi__make_read, fsi__make_scale, fsi__make_weld, fsi__make_faces, fsi__make_twins,
                                          fsi__make_split, fsi__make_orient, fsi__make_fill, fsi__make_closed, fsi__make_order };
    fsi__maker m;
    fsi__mesh *w = NULL;
    size_t i;
    fsi_status s = fsi__make_check(desc);
    if (!out) return s == FSI_OK ? fsi__fail(desc->context, FSI_ERROR_ARGUMENT, FSI__MAKE, -1, 0, "out is NULL") : s;
    *out = NULL;
    if (s != FSI_OK) return s;
    memset(&m, 0, sizeof m);
    m.desc = desc;
    m.context = desc->context;
    m.corners = desc->corners == 2 ? 2 : 3;
    m.noun = desc->corners == 2 ? "segment" : desc->corners == 3 ? "triangle" : "tetrahedron";
    m.report.first_degenerate = m.report.first_duplicate = m.report.first_flipped = -1;
    m.report.first_hole_element = m.report.first_intersection = -1;
    for (i = 0; i < sizeof stages / sizeof *stages && s == FSI_OK; i++) s = stages[i](&m);
    if (s == FSI_OK && (w = fsi__mesh_assemble(&m)) == NULL) s = fsi__maker_memory(&m);
    if (s == FSI_OK) s = fsi__make_finish(&m, w);
    if (s == FSI_OK) *out = &w->pub;
    else if (w) fsi_mesh_destroy(&w->pub);
    fsi__maker_free(&m);
    return s;
}

FSI_API void fsi_mesh_destroy(fsi_mesh *mesh)
{
    fsi__mesh *w;
    fsi_context *context;
    if (!fsi__is_mesh(mesh)) return;
    w = (fsi__mesh *)mesh->impl;
    context = mesh->context;
    mesh->cookie = 0;
    fsi__arena_free(context, &w->memory);
    fsi__free(context, w, 1, sizeof *w);
}

/* ---- >>mesh motion -------------------------------------------------------------------------------------------- */

/* Takes over new positions; keep: the former ones become `previous`. */
static fsi_status fsi__mesh_place(fsi_mesh *mesh, const fsi_vec3 *x, int count, int keep, const char *function)
{
    fsi__mesh *w;
    fsi_status s = FSI_OK;
    int v;
    if (!fsi__is_mesh(mesh)) return FSI_ERROR_COOKIE;
    w = (fsi__mesh *)mesh->impl;
    if (!x) return fsi__fail(mesh->context, FSI_ERROR_ARGUMENT, function, -1, 0, "vertices is NULL");
    if (count != mesh->source_count) return fsi__fail(mesh->context, FSI_ERROR_ARGUMENT, function, -1, count,
        "%d vertices are given, the mesh was made from %d", count, mesh->source_count);
    for (v = 0; v < mesh->vertex_count && s == FSI_OK; v++)
        s = fsi__check_position(mesh->context, function, x[mesh->vertex_source[v]], mesh->vertex_source[v]);
    if (s != FSI_OK) return s;
    if (keep) memcpy(w->previous, w->vertices, (size_t)mesh->vertex_count * sizeof(fsi_vec3));
    for (v = 0; v < mesh->vertex_count; v++) w->vertices[v] = fsi__flatten(mesh->corners, x[mesh->vertex_source[v]]);
    if (!keep) memcpy(w->previous, w->vertices, (size_t)mesh->vertex_count * sizeof(fsi_vec3));
    fsi__mesh_update(w);
    return FSI_OK;
}

FSI_API fsi_status fsi_mesh_move(fsi_mesh *m, const fsi_vec3 *x, int n) { return fsi__mesh_place(m, x, n, 1, "fsi_mesh_move"); }
FSI_API fsi_status fsi_mesh_set(fsi_mesh *m, const fsi_vec3 *x, int n) { return fsi__mesh_place(m, x, n, 0, "fsi_mesh_set"); }

static fsi_status fsi__check_mesh_pose(const fsi_mesh *mesh, const fsi_pose *p, const char *name)
{
    fsi_quat q = p->orientation;
    double norm2 = (double)(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w), off = (double)fsi_v3_norm(p->position);
    if (!fsi_v3_is_finite(p->position) || !fsi_is_finite(norm2))
        return fsi__fail(mesh->context, FSI_ERROR_NAN, name, -1, 0, "the pose is not finite");
    if (off > FSI__MESH_REACH) return fsi__fail(mesh->context, FSI_ERROR_LIMIT, name, -1, off,
        "the position lies %g from the origin, the most is %g", off, FSI__MESH_REACH);
    if (fabs(norm2 - 1) > 0.1) return fsi__fail(mesh->context, FSI_ERROR_ARGUMENT, name, -1, norm2,
        "the orientation is not a unit quaternion: |q|^2 is %g", norm2);
    return FSI_OK;
}

static void fsi__mesh_posed(const fsi__mesh *w, const fsi_pose *p, fsi_vec3 *out)
{
    const fsi_quat q = fsi_quat_unit(p->orientation);
    int v;
    for (v = 0; v < w->pub.vertex_count; v++)
        out[v] = fsi__flatten(w->pub.corners, fsi_v3_add(p->position, fsi_quat_rotate(q, w->rest[v])));
}

FSI_API fsi_status fsi_mesh_move_rigid(fsi_mesh *mesh, fsi_vec3 position, fsi_quat orientation)
{
    fsi__mesh *w;
    fsi_pose now;
    fsi_status s;
    if (!fsi__is_mesh(mesh)) return FSI_ERROR_COOKIE;
    now.position = position;
    now.orientation = orientation;
    if ((s = fsi__check_mesh_pose(mesh, &now, "fsi_mesh_move_rigid")) != FSI_OK) return s;
    w = (fsi__mesh *)mesh->impl;
    memcpy(w->previous, w->vertices, (size_t)mesh->vertex_count * sizeof(fsi_vec3));
    fsi__mesh_posed(w, &now, w->vertices);
    fsi__mesh_update(w);
    return FSI_OK;
}

FSI_API fsi_status fsi_mesh_set_rigid(fsi_mesh *mesh, fsi_pose previous, fsi_pose now)
{
    fsi__mesh *w;
    fsi_status s;
    if (!fsi__is_mesh(mesh)) return FSI_ERROR_COOKIE;
    if ((s = fsi__check_mesh_pose(mesh, &previous, "fsi_mesh_set_rigid")) != FSI_OK) return s;
    if ((s = fsi__check_mesh_pose(mesh, &now, "fsi_mesh_set_rigid")) != FSI_OK) return s;
    w = (fsi__mesh *)mesh->impl;
    fsi__mesh_posed(w, &previous, w->previous);
    fsi__mesh_posed(w, &now, w->vertices);
    fsi__mesh_update(w);
    return FSI_OK;
}

FSI_API fsi_mesh *fsi__mesh_shadow(fsi_context *context, const fsi_mesh *mesh)
{
    const fsi__mesh *of = (const fsi__mesh *)mesh->impl;
    fsi__mesh *w = (fsi__mesh *)fsi__alloc(context, 1, sizeof *w);
    size_t v = (size_t)mesh->vertex_count, f = (size_t)mesh->face_count, e = (size_t)mesh->edge_count, real = sizeof(fsi_vec3);
    fsi__arena measure = { NULL, 0, 0 }, *a = &measure;
    int pass;
    if (!w) return NULL;
    *w = *of;
    w->pub.context = context;
    w->pub.impl = w;
    memset(&w->memory, 0, sizeof w->memory);
    for (pass = 0; pass < 2; pass++, a = &w->memory) {
        if (pass == 1 && !fsi__arena_reserve(context, a, measure.used)) {
            fsi__free(context, w, 1, sizeof *w);
            return NULL;
        }
        w->nodes = (fsi__node *)fsi__put(a, of->nodes, (size_t)of->node_count, sizeof(fsi__node));
        w->pub.vertices = w->vertices = (fsi_vec3 *)fsi__put(a, of->vertices, v, real);
        w->pub.previous = w->previous = (fsi_vec3 *)fsi__put(a, of->previous, v, real);
        w->pub.face_normals = w->face_normals = (fsi_vec3 *)fsi__put(a, of->face_normals, f, real);
        w->pub.vertex_normals = w->vertex_normals = (fsi_vec3 *)fsi__put(a, of->vertex_normals, v, real);
        if (mesh->corners == 3) w->pub.edge_normals = w->edge_normals = (fsi_vec3 *)fsi__put(a, of->edge_normals, e, real);
    }
    return &w->pub;
}

FSI_API void fsi__mesh_follow(fsi_mesh *shadow, const fsi_vec3 *a, const fsi_vec3 *b, fsi_real s, fsi_real t)
{
    fsi__mesh *w = (fsi__mesh *)shadow->impl;
    int v;
    for (v = 0; v < shadow->vertex_count; v++) {
        fsi_vec3 way = fsi_v3_sub(b[v], a[v]);
        w->previous[v] = s <= 0 ? a[v] : fsi_v3_madd(a[v], s, way);
        w->vertices[v] = t >= 1 ? b[v] : fsi_v3_madd(a[v], t, way);
    }
    fsi__mesh_update(w);
}

FSI_API void fsi__mesh_follow_rigid(fsi_mesh *shadow, const fsi_vec3 *local, fsi_pose a, fsi_pose b)
{
    fsi__mesh *w = (fsi__mesh *)shadow->impl;
    int v;
    for (v = 0; v < shadow->vertex_count; v++) {
        w->previous[v] = fsi__flatten(shadow->corners, fsi_pose_point(a, local[v]));
        w->vertices[v] = fsi__flatten(shadow->corners, fsi_pose_point(b, local[v]));
    }
    fsi__mesh_update(w);
}

FSI_API int fsi__mesh_parts(const fsi_mesh *mesh, int face, fsi_vec3 a, fsi_vec3 b)
{
    fsi__wide c[3];
    double t, bary[3];
    fsi__face_corners(mesh, mesh->vertices, face, c);
    return fsi__line_face(fsi__w_of(a), fsi__w_diff(b, a), c, mesh->corners, 1e-9, &t, bary) && t >= 0 && t <= 1;
}

/* ---- >>mesh queries ------------------------------------------------------------------------------------------- */

static fsi_mesh_hit fsi__no_hit(void)
{
    fsi_mesh_hit h;
    memset(&h, 0, sizeof h);
    h.face = -1;
    h.t = FSI_REAL_MAX;
    return h;
}

/* Closest point of a face to x: weights, squared distance, feature (0 face, 1 + k edge, 4 + k corner). */
typedef struct fsi__foot { fsi_real bary[3], d2; fsi_vec3 offset; int feature; } fsi__foot;

static fsi__foot fsi__closest_foot(const fsi_mesh *m, int face, fsi_vec3 x)
{
    const int *c = m->faces + m->corners * face;
    fsi_vec3 a = fsi_v3_sub(m->vertices[c[0]], x), b = fsi_v3_sub(m->vertices[c[1]], x), e;
    fsi__foot f;
    f.bary[2] = 0;
    if (m->corners == 3) {
        e = fsi_v3_sub(m->vertices[c[2]], x);
        f.feature = fsi__closest_triangle(a, b, e, f.bary);
        f.offset = fsi_v3_madd(fsi_v3_madd(fsi_v3_scale(a, f.bary[0]), f.bary[1], b), f.bary[2], e);
    } else {
        f.feature = fsi__closest_segment(a, b, f.bary);
        f.offset = fsi_v3_madd(fsi_v3_scale(a, f.bary[0]), f.bary[1], b);
    }
    f.d2 = fsi_v3_norm2(f.offset);
    return f;
}

static fsi_mesh_hit fsi__foot_hit(const fsi_mesh *m, int face, fsi_vec3 x, const fsi__foot *f)
{
    fsi_mesh_hit h;
    h.face = face;
    h.t = fsi_sqrt(f->d2);
    memcpy(h.bary, f->bary, sizeof h.bary);
    h.point = fsi_v3_add(x, f->offset);
    h.normal = f->feature == 0 ? m->face_normals[face]
             : f->feature < 4 ? m->edge_normals[m->face_edge[3 * face + f->feature - 1]]
             : m->vertex_normals[m->faces[m->corners * face + f->feature - 4]];
    h.side = fsi_v3_dot(f->offset, h.normal) <= 0 ? 1 : -1;
    return h;
}

FSI_API fsi_mesh_hit fsi_mesh_closest_on_face(const fsi_mesh *mesh, int face, fsi_vec3 x)
{
    fsi__foot f;
    if (!fsi__is_mesh(mesh) || face < 0 || face >= mesh->face_count || !fsi_v3_is_finite(x)) return fsi__no_hit();
    x = fsi__flatten(mesh->corners, x);
    f = fsi__closest_foot(mesh, face, x);
    return fsi__foot_hit(mesh, face, x, &f);
}

static const fsi__node *fsi__nodes(const fsi_mesh *mesh) { return ((const fsi__mesh *)mesh->impl)->nodes; }

FSI_API fsi_mesh_hit fsi_mesh_closest(const fsi_mesh *mesh, fsi_vec3 x, fsi_real max_distance, int group)
{
    fsi__walk w;
    fsi__foot best, f;
    int face = -1, g;
    if (!fsi__is_mesh(mesh) || !fsi_v3_is_finite(x) || !(max_distance >= 0)) return fsi__no_hit();
    memset(&best, 0, sizeof best);
    best.d2 = max_distance < fsi_sqrt(FSI_REAL_MAX) / 2 ? max_distance * max_distance : FSI_REAL_MAX;
    w.point = x = fsi__flatten(mesh->corners, x);
    g = fsi__walk_begin(&w, FSI__WALK_POINT, fsi__nodes(mesh), (double)best.d2);
    for (; g >= 0; g = fsi__walk_next(&w, (double)best.d2)) {
        if (group >= 0 && mesh->face_group[g] != group) continue;
        f = fsi__closest_foot(mesh, g, x);
        if (f.d2 < best.d2 || (face < 0 && f.d2 <= best.d2)) { best = f; face = g; }
    }
    return face < 0 ? fsi__no_hit() : fsi__foot_hit(mesh, face, x, &best);
}

FSI_API fsi_real fsi_mesh_signed_distance(const fsi_mesh *mesh, fsi_vec3 x)
{
    fsi_mesh_hit h = fsi_mesh_closest(mesh, x, FSI_REAL_MAX, -1);
    return h.side < 0 ? -h.t : h.t;
}

/* Solid angle of a triangle seen from x (van Oosterom and Strackee 1983):
      tan(omega/2) = a.(b x c) / (|a||b||c| + a.b|c| + b.c|a| + c.a|b|),   a, b, c seen from x
   and of a segment: the angle it is seen under, clockwise positive, since the inside is on its right. */
FSI_API double fsi_mesh_winding_number(const fsi_mesh *mesh, fsi_vec3 x)
{
    double sum = 0;
    int f;
    if (!fsi__is_mesh(mesh) || !(fabs((double)x.x) + fabs((double)x.y) + fabs((double)x.z) < 1e100)) return 0;
    for (f = 0; f < mesh->face_count; f++) {
        const int *v = mesh->faces + mesh->corners * f;
        fsi__wide a = fsi__w_diff(mesh->vertices[v[0]], x), b = fsi__w_diff(mesh->vertices[v[1]], x);
        if (mesh->corners == 3) {
            fsi__wide c = fsi__w_diff(mesh->vertices[v[2]], x);
            double la = fsi__w_norm(a), lb = fsi__w_norm(b), lc = fsi__w_norm(c);
            sum += 2 * fsi_atan2(fsi__w_dot(a, fsi__w_cross(b, c)),
                la * lb * lc + fsi__w_dot(a, b) * lc + fsi__w_dot(b, c) * la + fsi__w_dot(c, a) * lb);
        } else sum += fsi_atan2(a.y * b.x - a.x * b.y, a.x * b.x + a.y * b.y);
    }
    return sum / (mesh->corners == 2 ? 2 * FSI_PI : 4 * FSI_PI);
}

FSI_API fsi_mesh_hit fsi_mesh_ray(const fsi_mesh *mesh, fsi_vec3 origin, fsi_vec3 direction, fsi_real t_max)
{
    fsi__walk w;
    fsi_mesh_hit h = fsi__no_hit();
    fsi__wide c[3];
    double best = (double)t_max, t, bary[3];
    int f, k;
    if (!fsi__is_mesh(mesh) || !fsi_v3_is_finite(origin) || !fsi_v3_is_finite(direction) || !(t_max >= 0)) return h;
    w.origin = fsi__w_of(fsi__flatten(mesh->corners, origin));
    w.direction = fsi__w_of(fsi__flatten(mesh->corners, direction));
    for (f = fsi__walk_begin(&w, FSI__WALK_RAY, fsi__nodes(mesh), best); f >= 0; f = fsi__walk_next(&w, best)) {
        fsi__face_corners(mesh, mesh->vertices, f, c);
        if (!fsi__line_face(w.origin, w.direction, c, mesh->corners, 1e-9, &t, bary)) continue;
        if (t < 0 || t > best || (h.face >= 0 && t >= best)) continue;
        best = t;
        h.face = f;
        for (k = 0; k < 3; k++) h.bary[k] = (fsi_real)bary[k];
    }
    if (h.face < 0) return h;
    h.t = (fsi_real)best;
    h.point = fsi__w_real(fsi__w_madd(w.origin, best, w.direction));
    h.normal = mesh->face_normals[h.face];
    h.side = fsi__w_dot(w.direction, fsi__w_of(h.normal)) <= 0 ? 1 : -1;
    return h;
}

/* Faces whose box (of `vertices`, or swept) meets box. */
static int fsi__query(const fsi_mesh *mesh, fsi_box3 box, int *faces, int capacity, int swept)
{
    fsi__walk w;
    int f, n = 0;
    if (!fsi__is_mesh(mesh)) return 0;
    if (mesh->corners == 2) box.lo.z = box.hi.z = 0;
    for (f = fsi__walk_box(&w, fsi__nodes(mesh), box); f >= 0; f = fsi__walk_next(&w, 0)) {
        fsi_box3 own = swept ? fsi__faces_swept_box(mesh, f, f + 1) : fsi__faces_box(mesh, mesh->vertices, f, f + 1);
        if (!fsi_box3_overlap(box, own)) continue;
        if (faces && n < capacity) faces[n] = f;
        n++;
    }
    return n;
}

FSI_API int fsi_mesh_query_box(const fsi_mesh *mesh, fsi_box3 box, int *faces, int capacity)
{
    return fsi__query(mesh, box, faces, capacity, 0);
}

FSI_API int fsi_mesh_query_swept_box(const fsi_mesh *mesh, fsi_box3 box, int *faces, int capacity)
{
    return fsi__query(mesh, box, faces, capacity, 1);
}

/* ---- >>mesh sweep --------------------------------------------------------------------------------------------- */

/* A moving point against a moving face. With corners that move in straight lines, seen from corner a,

      p(t) = p0 + t p1   (the point),     N(t) = (u0 + t u1) x (v0 + t v1)   (the normal, not of unit length)
      f(t) = p(t).N(t) = c0 + c1 t + c2 t^2 + c3 t^3,      2D: N(t) is the tangent u0 + t u1 turned left, c3 = 0

   is positive in front of the face's plane, negative behind it. The paper (Liu et al., section 6) blends unit normals
   about the centroid instead, which leaves a quadratic, but on turning meshes also cracks between neighbouring faces, whose
   planes no longer meet in the common edge: points slip through. The cubic's surfaces share their edges at every t.
   A face that does not turn has c2 = c3 = 0.

   f is split at its extrema into monotone pieces; a piece that goes from >= 0 to < 0 holds one root, found by Newton's
   method kept within the bracket. No division by a small number decides anything. */
#if defined(FSI_REAL_FLOAT)
#define FSI__SWEEP_TOLERANCE 1e-6
#else
#define FSI__SWEEP_TOLERANCE 1e-12 /* of the coordinates: closer to a plane is on it */
#endif

typedef struct fsi__sweep {
    fsi__wide p0, p1, u0, u1, v0, v1; /* point seen from corner a, edges: at the start, and their change */
    double c[4], tolerance;
    int corners;
} fsi__sweep;

static fsi__sweep fsi__sweep_begin(const fsi_mesh *m, int face, fsi_vec3 x0, fsi_vec3 x1)
{
    fsi__sweep s;
    fsi__wide from[3], to[3], change, n0, n1, n2 = fsi__w3(0, 0, 0);
    int last = m->corners - 1;
    fsi__face_corners(m, m->previous, face, from);
    fsi__face_corners(m, m->vertices, face, to);
    change = fsi__w_sub(to[0], from[0]);
    s.corners = m->corners;
    s.u0 = fsi__w_sub(from[1], from[0]);
    s.u1 = fsi__w_sub(fsi__w_sub(to[1], from[1]), change);
    s.v0 = fsi__w_sub(from[last], from[0]);
    s.v1 = fsi__w_sub(fsi__w_sub(to[last], from[last]), change);
    s.p0 = fsi__w_sub(fsi__w_of(x0), from[0]);
    s.p1 = fsi__w_sub(fsi__w_diff(x1, x0), change);
    n0 = fsi__w_normal(s.u0, s.v0, s.corners);
    n1 = fsi__w_normal(s.u1, s.v0, s.corners);
    if (s.corners == 3) {
        n1 = fsi__w_madd(fsi__w_cross(s.u0, s.v1), 1, n1);
        n2 = fsi__w_cross(s.u1, s.v1);
    }
    s.c[0] = fsi__w_dot(s.p0, n0);
    s.c[1] = fsi__w_dot(s.p0, n1) + fsi__w_dot(s.p1, n0);
    s.c[2] = fsi__w_dot(s.p0, n2) + fsi__w_dot(s.p1, n1);
    s.c[3] = fsi__w_dot(s.p1, n2);
    s.tolerance = FSI__SWEEP_TOLERANCE * fsi__w_norm(n0) * (fsi__w_norm(fsi__w_of(x0)) + fsi__w_norm(fsi__w_diff(x1, x0))
        + fsi__w_norm(from[0]) + fsi__w_norm(change) + fsi__w_norm(s.u0));
    return s;
}

static double fsi__sweep_value(const fsi__sweep *s, double t) { return ((s->c[3] * t + s->c[2]) * t + s->c[1]) * t + s->c[0]; }

/* Extrema of f inside (0, 1), ascending, between 0 and 1: fills knot[0 .. n], returns n >= 1. */
static int fsi__sweep_knots(const fsi__sweep *s, double *knot)
{
    double a = 3 * s->c[3], b = s->c[2], c = s->c[1], disc = b * b - a * c, q, over[2], under[2], r;
    int i, n = 0;
    knot[0] = 0;
    if (disc > 0) { /* a t^2 + 2 b t + c = 0 has the roots q/a and c/q */
        q = -(b + (b < 0 ? -sqrt(disc) : sqrt(disc)));
        over[0] = q, under[0] = a, over[1] = c, under[1] = q;
        for (i = 0; i < 2; i++) {
            r = fabs(over[i]) < fabs(under[i]) ? over[i] / under[i] : 0;
            if (!(r > 0)) continue;
            if (n == 1 && r < knot[1]) { knot[2] = knot[1]; knot[1] = r; }
            else knot[n + 1] = r;
            n++;
        }
    }
    knot[++n] = 1;
    return n;
}

/* Root of sign * f in [lo, hi], where it falls from positive to negative. */
static double fsi__sweep_root(const fsi__sweep *s, double sign, double lo, double hi)
{
    double t = lo, step, value, slope;
    int i;
    for (i = 0; i < 100 && hi - lo > 1e-16; i++) {
        value = sign * fsi__sweep_value(s, t);
        slope = sign * ((3 * s->c[3] * t + 2 * s->c[2]) * t + s->c[1]);
        if (value > 0) lo = t;
        else hi = t;
        step = slope < 0 ? t - value / slope : -1;
        if (!(step > lo && step < hi)) step = 0.5 * (lo + hi);
        if (fabs(step - t) <= 1e-16) break;
        t = step;
    }
    return t;
}

/* Weights of the point at time t, when it is on the face (a face that has no area then counts as hit, in its middle). */
static int fsi__sweep_on_face(const fsi__sweep *s, double t, double *bary)
{
    fsi__wide p = fsi__w_madd(s->p0, t, s->p1), u = fsi__w_madd(s->u0, t, s->u1), v = fsi__w_madd(s->v0, t, s->v1),
        n = fsi__w_normal(u, v, s->corners);
    double size = fsi__w_dot(n, n), b1 = s->corners == 3 ? fsi__w_dot(fsi__w_cross(p, v), n) : fsi__w_dot(p, u),
        b2 = s->corners == 3 ? fsi__w_dot(fsi__w_cross(u, p), n) : 0;
    double b0 = size - b1 - b2, slack = -1e-4 * size;
    if (!(b0 >= slack && b1 >= slack && b2 >= slack)) return 0;
    b0 = fmax(b0, 0), b1 = fmax(b1, 0), b2 = fmax(b2, 0);
    size = b0 + b1 + b2;
    bary[0] = size > 0 ? b0 / size : 1.0 / s->corners;
    bary[1] = size > 0 ? b1 / size : 1.0 / s->corners;
    bary[2] = 1 - bary[0] - bary[1];
    return 1;
}

/* First t at which sign * f goes from front to back on the face; -1 none. A start within rounding of the plane is in front. */
static double fsi__sweep_side(const fsi__sweep *s, double sign, double *bary)
{
    double knot[4], from = sign * s->c[0], to, t;
    int i, n = fsi__sweep_knots(s, knot);
    for (i = 0; i < n; i++, from = to) {
        to = sign * fsi__sweep_value(s, knot[i + 1]);
        if (from < -s->tolerance || !(to < -s->tolerance)) continue;
        t = from > 0 ? fsi__sweep_root(s, sign, knot[i], knot[i + 1]) : knot[i];
        if (fsi__sweep_on_face(s, t, bary)) return t;
    }
    return -1;
}

FSI_API fsi_mesh_hit fsi_mesh_sweep_face(const fsi_mesh *mesh, int face, fsi_vec3 x0, fsi_vec3 x1, int side)
{
    fsi_mesh_hit h = fsi__no_hit();
    fsi__sweep s;
    double t, best = 2, bary[3];
    int k, from;
    if (!fsi__is_mesh(mesh) || face < 0 || face >= mesh->face_count || !fsi_v3_is_finite(x0) || !fsi_v3_is_finite(x1)) return h;
    s = fsi__sweep_begin(mesh, face, fsi__flatten(mesh->corners, x0), fsi__flatten(mesh->corners, x1));
    for (from = 1; from >= -1; from -= 2) {
        if (from > 0 ? side < 0 : side > 0) continue;
        t = fsi__sweep_side(&s, from, bary);
        if (t < 0 || t >= best) continue;
        best = t;
        h.face = face;
        h.side = from;
        h.t = (fsi_real)t;
        for (k = 0; k < 3; k++) h.bary[k] = (fsi_real)bary[k];
    }
    if (h.face < 0) return h;
    h.normal = mesh->face_normals[face];
    for (k = 0; k < mesh->corners; k++)
        h.point = fsi_v3_madd(h.point, h.bary[k], mesh->vertices[mesh->faces[mesh->corners * face + k]]);
    return h;
}

FSI_API fsi_mesh_hit fsi_mesh_sweep(const fsi_mesh *mesh, fsi_vec3 x0, fsi_vec3 x1, int side)
{
    fsi_mesh_hit best = fsi__no_hit(), h;
    fsi__walk w;
    fsi_box3 box;
    int f;
    if (!fsi__is_mesh(mesh) || !fsi_v3_is_finite(x0) || !fsi_v3_is_finite(x1)) return best;
    box = fsi_box3_grow(fsi_box3_grow(fsi_box3_empty(), fsi__flatten(mesh->corners, x0)), fsi__flatten(mesh->corners, x1));
    box = fsi_box3_inflate(box, (fsi_real)FSI__SWEEP_TOLERANCE * (fsi_v3_norm(mesh->box.lo) + fsi_v3_norm(mesh->box.hi)));
    for (f = fsi__walk_box(&w, fsi__nodes(mesh), box); f >= 0; f = fsi__walk_next(&w, 0)) {
        if (!fsi_box3_overlap(box, fsi__faces_swept_box(mesh, f, f + 1))) continue;
        h = fsi_mesh_sweep_face(mesh, f, x0, x1, side);
        if (h.face >= 0 && (best.face < 0 || h.t < best.t)) best = h;
    }
    return best;
}

/* ---- >>mesh mass ---------------------------------------------------------------------------------------------- */

/* Sum over simplices: a face with the origin (closed; signed measure w by the divergence theorem), or the face itself
   (sheet). With corners a_i (the origin counts, but adds nothing), S = sum a_i, in n dimensions:
      int x = w S/(n + 1),     int x x^T = w/((n + 1)(n + 2)) (sum a_i a_i^T + S S^T) */
static void fsi__mass_add(const fsi_mesh *m, int face, fsi_vec3 origin, double *volume, double *first, double *second)
{
    const int *v = m->faces + m->corners * face;
    int i, r, c, k = m->corners, n = m->kind == FSI_MESH_CLOSED ? k : k - 1;
    double a[3][3] = { { 0 } }, sum[3] = { 0, 0, 0 }, w;
    fsi__wide p[3], normal;
    for (i = 0; i < k; i++) {
        p[i] = fsi__w_diff(m->vertices[v[i]], origin);
        a[i][0] = p[i].x, a[i][1] = p[i].y, a[i][2] = p[i].z;
        for (r = 0; r < 3; r++) sum[r] += a[i][r];
    }
    normal = fsi__w_normal(fsi__w_sub(p[1], p[0]), fsi__w_sub(p[k - 1], p[0]), k);
    if (m->kind == FSI_MESH_CLOSED) w = fsi__w_dot(p[0], normal) / (k == 3 ? 6 : 2);
    else w = fsi__w_norm(normal) / (k == 3 ? 2 : 1);
    *volume += w;
    for (r = 0; r < 3; r++) {
        first[r] += w * sum[r] / (n + 1);
        for (c = 0; c < 3; c++) second[3 * r + c] += w / ((n + 1) * (n + 2))
            * (a[0][r] * a[0][c] + a[1][r] * a[1][c] + a[2][r] * a[2][c] + sum[r] * sum[c]);
    }
}

FSI_API fsi_status fsi_mesh_mass(const fsi_mesh *mesh, fsi_real density, fsi_real thickness, fsi_mass_properties *out)
{
    static const char name[] = "fsi_mesh_mass";
    double volume = 0, first[3] = { 0, 0, 0 }, second[9] = { 0 }, c[3], trace, depth, mass;
    fsi_vec3 origin;
    int f, r, k;
    if (!fsi__is_mesh(mesh)) return FSI_ERROR_COOKIE;
    depth = mesh->kind == FSI_MESH_CLOSED ? 1 : (double)thickness;
    if (!out) return fsi__fail(mesh->context, FSI_ERROR_ARGUMENT, name, -1, 0, "out is NULL");
    if (!(density > 0) || !fsi_is_finite((double)density))
        return fsi__fail(mesh->context, FSI_ERROR_ARGUMENT, name, -1, (double)density,
            "density %g is not positive", (double)density);
    if (!(depth > 0) || !fsi_is_finite(depth))
        return fsi__fail(mesh->context, FSI_ERROR_ARGUMENT, name, -1, depth, "thickness %g is not positive", depth);
    origin = fsi__box_middle(mesh->box);
    for (f = 0; f < mesh->face_count; f++) fsi__mass_add(mesh, f, origin, &volume, first, second);
    if (!(volume > 0)) return fsi__fail(mesh->context, FSI_ERROR_MESH, name, -1, volume,
        "the volume is %g: a container is not a body, nor is a mesh that was moved inside out", volume);
    for (r = 0; r < 3; r++) c[r] = first[r] / volume;
    for (r = 0; r < 3; r++) for (k = 0; k < 3; k++) second[3 * r + k] -= volume * c[r] * c[k];
    trace = second[0] + second[4] + second[8];
    mass = (double)density * depth;
    out->volume = (fsi_real)(volume * depth);
    out->mass = (fsi_real)(volume * mass);
    out->center = fsi_v3_add(origin, fsi_v3((fsi_real)c[0], (fsi_real)c[1], (fsi_real)c[2]));
    for (k = 0; k < 9; k++) out->inertia.m[k] = (fsi_real)(mass * ((k % 4 == 0 ? trace : 0) - second[k]));
    if (mesh->corners == 2) out->inertia.m[0] = out->inertia.m[4] = out->inertia.m[8] / 2; /* only the last counts in 2D */
    if (mesh->corners == 2) out->inertia.m[1] = out->inertia.m[3] = 0;
    return FSI_OK;
}

/* ---- >>bodies implementation ------------------------------------------------------------------------------------ */

FSI_API fsi_body fsi_default_body(void)
{
    fsi_body b;
    memset(&b, 0, sizeof b);
    b.cookie = FSI__COOKIE('b', fsi_body);
    b.mode = FSI_BODY_PRESCRIBED;
    b.pose.orientation = fsi_quat_identity();
    b.end = b.pose;
    b.mass = 1;
    b.inertia = fsi_m3_identity();
    return b;
}

FSI_API fsi_body fsi_body_from_mass(const fsi_mass_properties *properties)
{
    fsi_body b = fsi_default_body();
    if (!properties) return b;
    b.mode = FSI_BODY_COUPLED;
    b.pose.position = b.end.position = properties->center;
    b.mass = properties->mass;
    b.inertia = properties->inertia;
    if (b.inertia.m[0] == 0 && b.inertia.m[4] == 0) b.inertia.m[0] = b.inertia.m[4] = b.inertia.m[8] / 2; /* 2D */
    return b;
}

static fsi_status fsi__body_check_pose(fsi_context *context, int index, const char *name, fsi_pose p)
{
    fsi_quat q = p.orientation;
    double x = (double)q.x, y = (double)q.y, z = (double)q.z, w = (double)q.w, n = sqrt(x * x + y * y + z * z + w * w);
    if (!fsi_v3_is_finite(p.position))
        return fsi__fail(context, FSI_ERROR_NAN, "fsi_body_check", index, 0, "body %d: %s.position is not finite", index, name);
    if (!fsi_is_finite(n))
        return fsi__fail(context, FSI_ERROR_NAN, "fsi_body_check", index, n,
            "body %d: %s.orientation is not finite", index, name);
    if (!(fabs(n - 1) <= 1e-3))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, "fsi_body_check", index, n,
            "body %d: the quaternion %s.orientation has length %g, not 1", index, name, n);
    return FSI_OK;
}

static fsi_status fsi__body_check_inertia(fsi_context *context, int index, fsi_mat3 a)
{
    fsi_vec3 e;
    double size = 0, skew = fabs((double)a.m[1] - (double)a.m[3]) + fabs((double)a.m[2] - (double)a.m[6])
                          + fabs((double)a.m[5] - (double)a.m[7]);
    int k;
    for (k = 0; k < 9; k++) size += fabs((double)a.m[k]);
    if (!fsi_is_finite(size))
        return fsi__fail(context, FSI_ERROR_NAN, "fsi_body_check", index, size, "body %d: inertia is not finite", index);
    if (!(skew <= 1e-5 * size))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, "fsi_body_check", index, skew, "body %d: inertia is not symmetric", index);
    fsi_m3_eigen(a, &e, NULL);
    if (!((double)e.z > 1e-12 * (double)e.x))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, "fsi_body_check", index, (double)e.z,
            "body %d: inertia is not positive definite, its smallest principal moment is %g", index, (double)e.z);
    if (!((double)e.x <= 1.0001 * ((double)e.y + (double)e.z)))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, "fsi_body_check", index, (double)e.x,
            "body %d: no body has the principal moments %g, %g, %g: one exceeds the sum of the others", index,
            (double)e.x, (double)e.y, (double)e.z);
    return FSI_OK;
}

FSI_API fsi_status fsi_body_check(fsi_context *context, const fsi_body *body, int index)
{
    static const char *const names[] = { "velocity", "angular_velocity", "force", "torque" };
    fsi_status status;
    fsi_vec3 v[4];
    int k;
    if (!body) return fsi__fail(context, FSI_ERROR_ARGUMENT, "fsi_body_check", index, 0, "body %d is NULL", index);
    if (body->cookie != FSI__COOKIE('b', fsi_body))
        return fsi__fail(context, FSI_ERROR_COOKIE, "fsi_body_check", index, 0,
            "body %d was not filled by fsi_default_body of this version and precision", index);
    if (body->mode != FSI_BODY_PRESCRIBED && body->mode != FSI_BODY_COUPLED)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, "fsi_body_check", index, (double)body->mode,
            "body %d: mode %d does not exist", index, (int)body->mode);
    status = fsi__body_check_pose(context, index, "pose", body->pose);
    if (status != FSI_OK) return status;
    if (body->mode == FSI_BODY_PRESCRIBED) return fsi__body_check_pose(context, index, "end", body->end);
    v[0] = body->velocity;
    v[1] = body->angular_velocity;
    v[2] = body->force;
    v[3] = body->torque;
    for (k = 0; k < 4; k++) if (!fsi_v3_is_finite(v[k]))
        return fsi__fail(context, FSI_ERROR_NAN, "fsi_body_check", index, 0, "body %d: %s is not finite", index, names[k]);
    if (!fsi_is_finite((double)body->mass))
        return fsi__fail(context, FSI_ERROR_NAN, "fsi_body_check", index, (double)body->mass,
            "body %d: mass is not finite", index);
    if (!(body->mass > 0))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, "fsi_body_check", index, (double)body->mass,
            "body %d: mass is %g, it must be positive", index, (double)body->mass);
    return fsi__body_check_inertia(context, index, body->inertia);
}

FSI_API fsi_mat3 fsi_body_world_tensor(fsi_quat orientation, fsi_mat3 a)
{
    fsi_mat3 r = fsi_quat_matrix(orientation);
    return fsi_m3_mul(fsi_m3_mul(r, a), fsi_m3_transpose(r));
}

/* The turn from `pose` to `end` as a rotation vector, the shorter way round. */
static fsi_vec3 fsi__body_turn(const fsi_body *body)
{
    return fsi_quat_rotation_vector(fsi_quat_mul(body->end.orientation, fsi_quat_conj(body->pose.orientation)));
}

FSI_API fsi_pose fsi_body_pose_at(const fsi_body *body, fsi_real s)
{
    fsi_pose p;
    if (s <= 0) return body->pose;
    if (s >= 1) return body->end;
    p.position = fsi_v3_madd(body->pose.position, s, fsi_v3_sub(body->end.position, body->pose.position));
    p.orientation = fsi_quat_integrate(body->pose.orientation, fsi__body_turn(body), s);
    return p;
}

FSI_API void fsi_body_begin_step(fsi_body *body, fsi_real dt)
{
    if (!body || !(dt > 0)) return;
    body->impulse = body->angular_impulse = body->reaction_force = body->reaction_torque = fsi_v3(0, 0, 0);
    if (body->mode == FSI_BODY_PRESCRIBED) {
        body->new_velocity = fsi_v3_scale(fsi_v3_sub(body->end.position, body->pose.position), 1 / dt);
        body->new_angular_velocity = fsi_v3_scale(fsi__body_turn(body), 1 / dt);
    } else {
        fsi_mat3 inverse = fsi_body_world_tensor(body->pose.orientation, fsi_m3_inverse(body->inertia));
        body->new_velocity = fsi_v3_madd(body->velocity, dt / body->mass, body->force);
        body->new_angular_velocity = fsi_v3_madd(body->angular_velocity, dt, fsi_m3_mul_v3(inverse, body->torque));
    }
}

FSI_API void fsi_body_apply_impulse(fsi_body *body, fsi_vec3 j, fsi_vec3 x)
{
    fsi_vec3 moment;
    if (!body || !fsi_v3_is_finite(j) || !fsi_v3_is_finite(x)) return;
    moment = fsi_v3_cross(fsi_v3_sub(x, body->pose.position), j);
    body->impulse = fsi_v3_add(body->impulse, j);
    body->angular_impulse = fsi_v3_add(body->angular_impulse, moment);
    if (body->mode == FSI_BODY_COUPLED) {
        fsi_mat3 inverse = fsi_body_world_tensor(body->pose.orientation, fsi_m3_inverse(body->inertia));
        body->new_velocity = fsi_v3_madd(body->new_velocity, 1 / body->mass, j);
        body->new_angular_velocity = fsi_v3_add(body->new_angular_velocity, fsi_m3_mul_v3(inverse, moment));
    }
}

FSI_API void fsi_body_end_step(fsi_body *body, fsi_real dt)
{
    if (!body || !(dt > 0)) return;
    body->reaction_force = fsi_v3_scale(body->impulse, 1 / dt);
    body->reaction_torque = fsi_v3_scale(body->angular_impulse, 1 / dt);
}

FSI_API void fsi_body_integrate(fsi_body *body, fsi_real dt)
{
    fsi_quat q;
    fsi_vec3 w, momentum;
    fsi_mat3 inverse;
    int k;
    if (!body || !(dt > 0)) return;
    q = body->pose.orientation;
    w = body->new_angular_velocity;
    body->velocity = body->new_velocity;
    body->angular_velocity = w;
    if (body->mode == FSI_BODY_PRESCRIBED) {
        body->pose = body->end;
        return;
    }
    inverse = fsi_m3_inverse(body->inertia);
    momentum = fsi_m3_mul_v3(fsi_body_world_tensor(q, body->inertia), w);
    for (k = 0; k < 12; k++) /* w at mid-step; each pass gains a factor |w| dt / 2 */
        w = fsi_m3_mul_v3(fsi_body_world_tensor(fsi_quat_integrate(q, w, dt / 2), inverse), momentum);
    body->pose.position = fsi_v3_madd(body->pose.position, dt, body->velocity);
    body->pose.orientation = fsi_quat_integrate(q, w, dt);
    body->angular_velocity = fsi_m3_mul_v3(fsi_body_world_tensor(body->pose.orientation, inverse), momentum);
}

FSI_API void fsi_body_accept(fsi_body *body)
{
    fsi_vec3 momentum;
    if (!body) return;
    body->velocity = body->new_velocity;
    body->angular_velocity = body->new_angular_velocity;
    if (body->mode == FSI_BODY_COUPLED) { /* w = I^-1 L there, L = I w here */
        momentum = fsi_m3_mul_v3(fsi_body_world_tensor(body->pose.orientation, body->inertia), body->angular_velocity);
        body->angular_velocity = fsi_m3_mul_v3(fsi_body_world_tensor(body->end.orientation, fsi_m3_inverse(body->inertia)), momentum);
    }
    body->pose = body->end;
}

/* ---- >>surfaces implementation ---------------------------------------------------------------------------------- */

/* Space is cut in blocks as wide as the support, each of n x n x n cells (n = 2 ... 8; 2D: n x n). A block owns the nodes
   and edges at the lower end of its cells. Blocks live in a hash table; those with particles come first, those that the
   surface can enter follow.

       . . . . . . .          o  block without particles: all its nodes are outside
       o e e e e e o          e  active, empty: some particle lies within FSI__SF_TOUCH of it
       o e a a a e o          a  active, with particles
       o e a d a e o          d  deep: it, and half a block around it, has a particle in every octant; all nodes inside
       o e a a a e o
       o e e e e e o          o and d are never neighbours, so the surface can only pass through active blocks. Even if
                              the level set disagreed there, the surface would be cut flat, and closed.

   Each cell joins the crossing points on its edges to polygons by a table made from one rule for its faces (below). The
   rule sees the face only, so the two cells at a face agree, and the surface is closed by construction. Lengths are in
   units of the support and, inside a block, relative to it: float loses nothing there. */

#define FSI__SF_MAX 8          /* cells along a block, at most */
#define FSI__SF_TOUCH ((fsi__lane)0.3)     /* how far from a particle the surface can be */
#define FSI__SF_GRAIN 8        /* blocks a chunk */
#define FSI__SF_ROWS (FSI__SF_MAX * FSI__SF_MAX)
#define FSI__SF_APRON ((FSI__SF_MAX + 1) * (FSI__SF_MAX + 1) * (FSI__SF_MAX + 1))
enum { FSI__SF_INSIDE = -1, FSI__SF_OUTSIDE = -2 }; /* what stands in for the node values of a block without a slot */

typedef struct fsi__sf_block {
    int at[3];              /* spans at .. at + 1 supports */
    int begin, end;         /* its particles, in block order */
    uint32_t touched;       /* bit a neighbour (27): a particle of this block lies close to it */
    unsigned char octants;  /* bit an octant: holds a particle */
    unsigned char active;
    int slot;               /* where its node values are; FSI__SF_INSIDE or _OUTSIDE for none */
} fsi__sf_block;

/* A block with node values: an active one, or the lower neighbour of one (which owns edges that reach into it). */
typedef struct fsi__sf_slot {
    int block;
    int up[8];              /* slot of the neighbour at (bit 0, bit 1, bit 2) towards +x, +y, +z; [0] is its own */
    int signs;              /* bit 0: some node inside, bit 1: some node outside */
    int vertices, elements; /* how many it owns, then where its own begin */
    int map;                /* where its edges' vertex numbers begin; -1 when it has none */
} fsi__sf_slot;

enum { FSI__SF_VERTICES, FSI__SF_ELEMENTS, FSI__SF_BLOCKS, FSI__SF_HASH, FSI__SF_PARTICLES, FSI__SF_SLOTS, FSI__SF_EDGES,
       FSI__SF_TABLES };
typedef struct fsi__sf_impl fsi__sf_impl;
typedef void fsi__sf_pass(fsi__sf_impl *s, fsi__sf_slot *slot);
struct fsi__sf_impl {
    fsi_surface_desc desc;
    int n, nz;                       /* cells along a block; 1 along z in 2D */
    double support;                  /* [m] */
    double offset;                   /* of the blocks against the origin, in supports */
    fsi__lane radius, growth;            /* r in supports; slope of g */
    unsigned char cases[256][16];    /* number of edges, then the edges, `corners` an element; by corners inside */
    unsigned char needed[27];        /* octants of a neighbour that must hold particles around a deep block */
    int rows[FSI__SF_TABLES];        /* room in the arrays below, see fsi__sf_table */
    fsi__sf_block *blocks;
    int *hash;                       /* 4 a row; block + 1, 0 free */
    int block_count;
    int *home, *source;              /* a particle's block; block order -> the caller's index */
    fsi__lane *px, *py, *pz;             /* in block order, FSI_LANES more than there are */
    fsi__sf_slot *slots;
    fsi__lane *values;                   /* n * n * nz a slot */
    int *map;
    int slot_count;
    const fsi_real *attributes;      /* the caller's, during an update */
    fsi__sf_pass *pass;              /* what fsi__sf_run does to each slot */
    fsi_vec3 *vertices, *normals;
    fsi_real *vertex_attributes;
    int *elements;
};

/* ---- the case table ---- */

/* Edge number of the corners c and d (bits x, y, z), which differ in one bit: 4 * axis + the two other bits. */
static int fsi__sf_edge(int c, int d)
{
    int axis = (c ^ d) >> 1, low = c & d;
    return 4 * axis + (low >> (axis + 1) % 3 & 1) + 2 * (low >> (axis + 2) % 3 & 1);
}
static int fsi__sf_edge_low(int edge) /* its lower corner */
{
    int axis = edge >> 2;
    return (edge & 1) << (axis + 1) % 3 | (edge >> 1 & 1) << (axis + 2) % 3;
}

/* The rule: on a face whose corners q run counter-clockwise seen from outside the cell, each run of corners inside is
   cut off by one segment, from the edge where the run begins to the edge where it ends. */
static void fsi__sf_face_segments(const int q[4], int inside, int next[12])
{
    int k, j;
    for (k = 0; k < 4; k++) {
        if (inside >> q[k] & 1 || !(inside >> q[(k + 1) & 3] & 1)) continue;
        for (j = k + 1; inside >> q[(j + 1) & 3] & 1; j++) {}
        next[fsi__sf_edge(q[k], q[(k + 1) & 3])] = fsi__sf_edge(q[j & 3], q[(j + 1) & 3]);
    }
}

static int fsi__sf_share_face(int e, int f) /* do two edges of the cell lie in one face? */
{
    int a = fsi__sf_edge_low(e), b = a | 1 << (e >> 2), c = fsi__sf_edge_low(f), d = c | 1 << (f >> 2);
    return ((a & b & c & d) | (~(a | b | c | d) & 7)) != 0;
}

/* Follows the segments of one loop and cuts the polygon into a fan. The apex is such that no diagonal lies in a face:
   there the neighbouring cell could have the same one, and four triangles would meet (an apex exists in all cases). */
static int fsi__sf_add_polygon(int *next, int start, unsigned char *out)
{
    int loop[12], n = 0, apex = 0, k, e = start, used = 0;
    do {
        loop[n++] = e;
        k = next[e];
        next[e] = -1;
        e = k;
    } while (e != start);
    for (k = 2; k < n - 1; k++)
        if (fsi__sf_share_face(loop[apex], loop[(apex + k) % n])) {
            apex++;
            k = 1;
        }
    for (k = 1; k < n - 1; k++) {
        out[used++] = (unsigned char)loop[apex];
        out[used++] = (unsigned char)loop[(apex + k) % n];
        out[used++] = (unsigned char)loop[(apex + k + 1) % n];
    }
    return used;
}

/* One row of a table of cases. */
static void fsi__sf_make_case(unsigned char cases[][16], int dim, int inside)
{
    int next[12], axis, side, k, used = 0;
    for (k = 0; k < 12; k++) next[k] = -1;
    for (axis = 0; axis < 3; axis++)
        for (side = 0; side < 2; side++) {
            int u = 1 << (axis + 1) % 3, v = 1 << (axis + 2) % 3, base = side << axis, q[4];
            q[0] = base;
            q[1] = base | (side ? u : v);
            q[2] = base | u | v;
            q[3] = base | (side ? v : u);
            if (dim == 3 || (axis == 2 && side == 0)) fsi__sf_face_segments(q, inside, next);
        }
    for (k = 0; k < 12; k++) {
        if (next[k] < 0) continue;
        if (dim == 3) used += fsi__sf_add_polygon(next, k, cases[inside] + 1 + used);
        else {
            cases[inside][1 + used++] = (unsigned char)next[k];
            cases[inside][1 + used++] = (unsigned char)k;
        }
    }
    cases[inside][0] = (unsigned char)used;
}

/* ---- making and destroying ---- */

FSI_API fsi_surface_desc fsi_surface_default_desc(void)
{
    fsi_surface_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('S', fsi_surface_desc);
    d.dim = 3;
    d.support = 3;
    d.cell = (fsi_real)0.5;
    return d;
}

static fsi_status fsi__sf_check_desc(const fsi_surface_desc *d)
{
    static const char fn[] = "fsi_surface_create";
    static const char *const name[] = { "spacing", "support", "cell" };
    const double size[3] = { (double)d->spacing, (double)d->support, (double)d->cell };
    fsi_context *c = d->context;
    int k;
    if (!fsi_is_finite(size[0]) || !fsi_is_finite(size[1]) || !fsi_is_finite(size[2]))
        return fsi__fail(c, FSI_ERROR_NAN, fn, -1, 0, "spacing, support or cell is not finite");
    if (d->dim != 2 && d->dim != 3)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, d->dim, "dim is %d, it must be 2 or 3", d->dim);
    for (k = 0; k < 3; k++) if (!(size[k] > 0) || (k == 1 && !(size[k] >= 1.5 && size[k] <= 6)))
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, size[k], "%s is %g, it must be %s", name[k], size[k],
            k == 1 ? "1.5 to 6 spacings" : "positive");
    if (d->attribute_count < 0 || d->attribute_count > 1024)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, d->attribute_count,
            "attribute_count is %d, it must be 0 to 1024", d->attribute_count);
    return FSI_OK;
}

/* What depends on the desc alone: cells, r, and the two tables. */
static void fsi__sf_setup(fsi__sf_impl *s)
{
    double cells = (double)s->desc.support / (double)s->desc.cell, h, r, b;
    int d, o;
    s->n = cells < 2 ? 2 : (cells > FSI__SF_MAX ? FSI__SF_MAX : (int)(cells + 0.5));
    s->nz = s->desc.dim == 3 ? s->n : 1;
    s->support = (double)s->desc.support * (double)s->desc.spacing;
    s->offset = 0.3 / s->n; /* liquid filled on a lattice would have its surface just at nodes, with needless slivers */
    /* r: distance of the centroid of half a kernel from its flat side, (1/10)/(128/315), in 2D (1/9)/(35 pi/256); a sum
       over layers at 1/2, 3/2 ... spacings exceeds it by k h^2, k = 1/(12 integral) (Euler-Maclaurin); 0.018 h lifts the
       surface by 0.03 spacings, to share between flat and round what a ball of radius ten loses by its curvature. */
    h = 1 / (double)s->desc.support;
    r = (s->desc.dim == 3 ? 0.24609375 + 0.10254 * h * h : 0.25869 + 0.09701 * h * h) + 0.018 * h;
    /* growth: a lone particle becomes a ball (disc) of radius b, where r g = b: 0.62 (0.56) spacings for its own volume,
       and more to make up for what its few facets cut off (measured at the default support and cell). */
    b = (s->desc.dim == 3 ? 0.755 : 0.64) * h;
    s->radius = (fsi__lane)r;
    s->growth = (fsi__lane)((1 + b / r) / pow(1 - b * b, 9));
    for (d = 0; d < 1 << (s->desc.dim == 3 ? 8 : 4); d++) fsi__sf_make_case(s->cases, s->desc.dim, d);
    for (d = 0; d < 27; d++) for (o = 0; o < 8; o++) { /* of a neighbour at -1 its upper half counts, at +1 its lower, else all */
        int x = d % 3 - 1, y = d / 3 % 3 - 1, z = d / 9 - 1;
        if (x == (o & 1 ? 1 : -1) || y == (o & 2 ? 1 : -1) || z == (o & 4 ? 1 : -1)) continue;
        s->needed[d] = (unsigned char)(s->needed[d] | 1 << o);
    }
}

FSI_API fsi_status fsi_surface_create(fsi_surface **out, const fsi_surface_desc *desc)
{
    fsi_surface *surface;
    fsi__sf_impl *s;
    fsi_status status;
    if (!out || !desc) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (desc->cookie != FSI__COOKIE('S', fsi_surface_desc) || !fsi__is_context(desc->context)) return FSI_ERROR_COOKIE;
    status = fsi__sf_check_desc(desc);
    if (status != FSI_OK) return status;
    surface = (fsi_surface *)fsi__alloc(desc->context, 1, sizeof *surface + sizeof *s);
    if (!surface) return fsi__fail(desc->context, FSI_ERROR_MEMORY, "fsi_surface_create", -1, 0, "no memory for the surface");
    s = (fsi__sf_impl *)(void *)(surface + 1);
    s->desc = *desc;
    fsi__sf_setup(s);
    surface->cookie = FSI__COOKIE('f', fsi_surface);
    surface->context = desc->context;
    surface->dim = surface->corners = desc->dim;
    surface->impl = s;
    *out = surface;
    return FSI_OK;
}

/* The columns of one of the tables; returns how many it has. */
static int fsi__sf_table(fsi__sf_impl *s, int table, fsi__column *c)
{
    const struct { int table; void **array; size_t size; } all[] = {
        { FSI__SF_VERTICES, (void **)&s->vertices, sizeof(fsi_vec3) },
        { FSI__SF_VERTICES, (void **)&s->normals, sizeof(fsi_vec3) },
        { FSI__SF_VERTICES, (void **)&s->vertex_attributes, (size_t)s->desc.attribute_count * sizeof(fsi_real) },
        { FSI__SF_ELEMENTS, (void **)&s->elements, (size_t)s->desc.dim * sizeof(int) },
        { FSI__SF_BLOCKS, (void **)&s->blocks, sizeof(fsi__sf_block) },
        { FSI__SF_HASH, (void **)&s->hash, 4 * sizeof(int) },
        { FSI__SF_PARTICLES, (void **)&s->home, sizeof(int) },
        { FSI__SF_PARTICLES, (void **)&s->source, sizeof(int) },
        { FSI__SF_PARTICLES, (void **)&s->px, sizeof(fsi__lane) },
        { FSI__SF_PARTICLES, (void **)&s->py, sizeof(fsi__lane) },
        { FSI__SF_PARTICLES, (void **)&s->pz, sizeof(fsi__lane) },
        { FSI__SF_SLOTS, (void **)&s->slots, sizeof(fsi__sf_slot) },
        { FSI__SF_SLOTS, (void **)&s->values, (size_t)(s->n * s->n * s->nz) * sizeof(fsi__lane) },
        { FSI__SF_EDGES, (void **)&s->map, sizeof(int) }
    };
    size_t k;
    int n = 0;
    for (k = 0; k < sizeof all / sizeof *all; k++) if (all[k].table == table && all[k].size > 0) {
        c[n].array = all[k].array;
        c[n++].size = all[k].size;
    }
    return n;
}

/* Makes room for `need` rows; the first `keep` rows stay. */
static fsi_status fsi__sf_room(fsi_context *context, fsi__sf_impl *s, int table, int keep, size_t need)
{
    fsi__column c[5];
    int n = fsi__sf_table(s, table, c);
    if (need > 0x7fffffff) need = 0x7fffffff;
    return fsi__room(context, c, n, keep, &s->rows[table], (int)need, "fsi_surface_update");
}

FSI_API void fsi_surface_destroy(fsi_surface *surface)
{
    fsi__sf_impl *s;
    fsi__column c[5];
    int t;
    if (!surface) return;
    s = (fsi__sf_impl *)surface->impl;
    for (t = 0; t < FSI__SF_TABLES; t++) fsi__free_columns(surface->context, c, fsi__sf_table(s, t, c), s->rows[t]);
    fsi__free(surface->context, surface, 1, sizeof *surface + sizeof *s);
}

/* ---- blocks ---- */

/* Where block (x, y, z) stands in the hash table, or the free place where it belongs (linear probing, at most half full). */
static int *fsi__sf_place(const fsi__sf_impl *s, int x, int y, int z)
{
    const uint64_t k = 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio */
    uint64_t h = (((uint32_t)x * k + (uint32_t)y) * k + (uint32_t)z) * k;
    uint32_t mask = (uint32_t)s->rows[FSI__SF_HASH] * 4 - 1, i = (uint32_t)(h >> 32) & mask;
    for (;; i = (i + 1) & mask) {
        const fsi__sf_block *b = s->blocks + s->hash[i] - 1;
        if (!s->hash[i] || (b->at[0] == x && b->at[1] == y && b->at[2] == z)) return &s->hash[i];
    }
}

/* Block (x, y, z); -1 when there is none. */
static int fsi__sf_find(const fsi__sf_impl *s, int x, int y, int z) { return *fsi__sf_place(s, x, y, z) - 1; }

/* Neighbour d of block `at`, 0 <= d < 27, x fastest, 13 is the block itself; -1 when there is none. */
static int fsi__sf_around(const fsi__sf_impl *s, const int at[3], int d)
{
    return s->desc.dim == 2 && d / 9 != 1 ? -1 : fsi__sf_find(s, at[0] + d % 3 - 1, at[1] + d / 3 % 3 - 1, at[2] + d / 9 - 1);
}

/* Room for twice as many blocks; the hash table has four places (a power of two in all) for each row of blocks. */
static fsi_status fsi__sf_more_blocks(fsi_context *context, fsi__sf_impl *s)
{
    fsi__column blocks, hash;
    int *rows = s->rows, more = rows[FSI__SF_BLOCKS] ? 2 * rows[FSI__SF_BLOCKS] : 256, k;
    fsi_status status;
    if (more > 1 << 28) return fsi__fail(context, FSI_ERROR_MEMORY, "fsi_surface_update", -1, more, "more than 2^28 blocks");
    fsi__sf_table(s, FSI__SF_HASH, &hash);
    fsi__sf_table(s, FSI__SF_BLOCKS, &blocks);
    status = fsi__grow(context, &hash, 1, 0, &rows[FSI__SF_HASH], more, "fsi_surface_update");
    if (status != FSI_OK) return status;
    for (k = 0; k < s->block_count; k++) *fsi__sf_place(s, s->blocks[k].at[0], s->blocks[k].at[1], s->blocks[k].at[2]) = k + 1;
    return fsi__grow(context, &blocks, 1, s->block_count, &rows[FSI__SF_BLOCKS], more, "fsi_surface_update");
}

/* Block at (x, y, z), made when there is none; -1 when memory fails. */
static int fsi__sf_add(fsi_context *context, fsi__sf_impl *s, int x, int y, int z)
{
    fsi__sf_block *b;
    int *place;
    if (s->block_count == s->rows[FSI__SF_BLOCKS] && fsi__sf_more_blocks(context, s) != FSI_OK) return -1;
    place = fsi__sf_place(s, x, y, z);
    if (*place) return *place - 1;
    b = &s->blocks[s->block_count++];
    memset(b, 0, sizeof *b);
    b->at[0] = x, b->at[1] = y, b->at[2] = z;
    b->slot = FSI__SF_OUTSIDE;
    return (*place = s->block_count) - 1;
}

/* Block coordinates of x, in c, and its place inside the block, in f. */
static void fsi__sf_locate(const fsi__sf_impl *s, fsi_vec3 x, double c[3], fsi__lane f[3])
{
    double v[3];
    int k;
    v[0] = (double)x.x / s->support + s->offset;
    v[1] = (double)x.y / s->support + s->offset;
    v[2] = s->desc.dim == 3 ? (double)x.z / s->support + s->offset : 0;
    for (k = 0; k < 3; k++) {
        c[k] = floor(v[k]);
        f[k] = (fsi__lane)(v[k] - c[k]);
    }
}

/* Finds each particle's block and counts. */
static fsi_status fsi__sf_bin(fsi_context *context, fsi__sf_impl *s, const fsi_vec3 *x, int count)
{
    int i, b = -1;
    for (i = 0; i < count; i++) {
        double c[3];
        fsi__lane f[3];
        fsi_vec3 p = x[i];
        if (s->desc.dim == 2) p.z = 0;
        if (!fsi_v3_is_finite(p))
            return fsi__fail(context, FSI_ERROR_NAN, "fsi_surface_update", i, 0, "particle %d is not finite", i);
        fsi__sf_locate(s, p, c, f);
        if (fabs(c[0]) + fabs(c[1]) + fabs(c[2]) > 1073741824.0)
            return fsi__fail(context, FSI_ERROR_LIMIT, "fsi_surface_update", i, fabs(c[0]) + fabs(c[1]) + fabs(c[2]),
                "particle %d is more than 2^30 supports away from the origin", i);
        if (b < 0 || s->blocks[b].at[0] != (int)c[0] || s->blocks[b].at[1] != (int)c[1] || s->blocks[b].at[2] != (int)c[2])
            b = fsi__sf_add(context, s, (int)c[0], (int)c[1], (int)c[2]);
        if (b < 0) return FSI_ERROR_MEMORY;
        s->home[i] = b;
        s->blocks[b].end++;
    }
    return FSI_OK;
}

/* Of the 27 neighbours, those that a particle at f touches along one axis: `low` are those below it, then come those level
   with it and those above it, `stride` bits on each time. */
static uint32_t fsi__sf_near(uint32_t low, int stride, fsi__lane f)
{
    return low << stride | (f < FSI__SF_TOUCH ? low : 0) | (f > 1 - FSI__SF_TOUCH ? low << 2 * stride : 0);
}

/* Sorts particles by block (stable) and notes which octants they fill and which neighbours they touch. */
static void fsi__sf_sort(fsi__sf_impl *s, const fsi_vec3 *x, int count)
{
    int i, sum = 0;
    for (i = 0; i < s->block_count; i++) {
        fsi__sf_block *b = &s->blocks[i];
        b->begin = sum;
        sum += b->end;
        b->end = b->begin;
    }
    for (i = 0; i < count; i++) {
        fsi__sf_block *b = &s->blocks[s->home[i]];
        double c[3];
        fsi__lane f[3];
        int at = b->end++, octant;
        fsi__sf_locate(s, x[i], c, f);
        s->source[at] = i;
        s->px[at] = f[0];
        s->py[at] = f[1];
        s->pz[at] = f[2];
        octant = (f[0] >= (fsi__lane)0.5) | (f[1] >= (fsi__lane)0.5) << 1 | (f[2] >= (fsi__lane)0.5) << 2;
        b->octants = (unsigned char)(b->octants | 1 << octant | (s->desc.dim == 2 ? 1 << (octant | 4) : 0));
        b->touched |= fsi__sf_near(0x1249249, 1, f[0]) & fsi__sf_near(0x1C0E07, 3, f[1])
            & (s->desc.dim == 2 ? 0x1FFu << 9 : fsi__sf_near(0x1FF, 9, f[2]));
    }
}

/* Does the block, with half a block around it, have a particle in every octant? */
static int fsi__sf_is_deep(const fsi__sf_impl *s, const fsi__sf_block *b)
{
    int d;
    if (b->octants != 255) return 0;
    for (d = 0; d < 27; d++) {
        int n = fsi__sf_around(s, b->at, d);
        if (s->desc.dim == 2 && d / 9 != 1) continue;
        if (n < 0 || (s->blocks[n].octants & s->needed[d]) != s->needed[d]) return 0;
    }
    return 1;
}

/* Chooses the active blocks, adds those without particles, and gives them and their lower neighbours a slot. */
static fsi_status fsi__sf_activate(fsi_context *context, fsi__sf_impl *s)
{
    int occupied = s->block_count, i, d, k;
    const int *at;
    for (i = 0; i < occupied; i++) {
        s->blocks[i].active = (unsigned char)!fsi__sf_is_deep(s, &s->blocks[i]);
        s->blocks[i].slot = FSI__SF_INSIDE;
    }
    for (i = 0; i < occupied; i++)
        for (d = 0; d < 27; d++) {
            if (!(s->blocks[i].touched >> d & 1) || d == 13) continue;
            at = s->blocks[i].at;
            k = fsi__sf_add(context, s, at[0] + d % 3 - 1, at[1] + d / 3 % 3 - 1, at[2] + d / 9 - 1);
            if (k < 0) return FSI_ERROR_MEMORY;
            if (k >= occupied) s->blocks[k].active = 1;
        }
    s->slot_count = 0;
    for (i = 0; i < s->block_count; i++) { /* blocks added on the way are not active */
        if (!s->blocks[i].active) continue;
        for (d = 0; d < 1 << s->desc.dim; d++) {
            at = s->blocks[i].at;
            k = fsi__sf_add(context, s, at[0] - (d & 1), at[1] - (d >> 1 & 1), at[2] - (d >> 2));
            if (k < 0) return FSI_ERROR_MEMORY;
            if (s->blocks[k].slot < 0) s->blocks[k].slot = s->slot_count++;
        }
    }
    return FSI_OK;
}

/* ---- nodes ---- */

/* The blocks with particles around a block: where their particles are, and where they lie. */
typedef struct fsi__sf_hood {
    int count, begin[27], end[27];
    fsi__lane shift[27][3];
} fsi__sf_hood;

static void fsi__sf_gather_hood(const fsi__sf_impl *s, const int at[3], fsi__sf_hood *hood)
{
    int d;
    hood->count = 0;
    for (d = 0; d < 27; d++) {
        int b = fsi__sf_around(s, at, d);
        if (b < 0 || s->blocks[b].begin == s->blocks[b].end) continue;
        hood->begin[hood->count] = s->blocks[b].begin;
        hood->end[hood->count] = s->blocks[b].end;
        hood->shift[hood->count][0] = (fsi__lane)(d % 3 - 1);
        hood->shift[hood->count][1] = (fsi__lane)(d / 3 % 3 - 1);
        hood->shift[hood->count++][2] = (fsi__lane)(d / 9 - 1);
    }
}

/* sum w, sum w^3 and sum w (x - x_j) at the nodes of a block, row by row along x; n of the eight lanes are used. */
typedef struct fsi__sf_sums {
    fsi__f8 w[FSI__SF_ROWS], www[FSI__SF_ROWS], x[FSI__SF_ROWS], y[FSI__SF_ROWS], z[FSI__SF_ROWS];
} fsi__sf_sums;

static fsi__f8 fsi__sf_load(const fsi__lane *p)
{
    fsi__f8 r;
    memcpy(&r, p, sizeof r);
    return r;
}

/* Adds one particle at (px, py, pz), relative to the block, to the rows that it reaches. */
static void fsi__sf_splat(fsi__sf_sums *sum, int n, int nz, fsi__f8 nodes, fsi__lane px, fsi__lane py, fsi__lane pz)
{
    const fsi__lane h = 1 / (fsi__lane)n, top = 1 - h, ex = px < 0 ? px : (px > top ? px - top : 0), reach = ex * ex;
    const fsi__f8 zero = fsi__f8_set(0), dx = fsi__f8_sub(nodes, fsi__f8_set(px)), xx = fsi__f8_mul(dx, dx);
    int j, k;
    for (k = 0; k < nz; k++) {
        fsi__lane dz = (fsi__lane)k * h - pz, rz = 1 - dz * dz;
        if (rz <= reach) continue;
        for (j = 0; j < n; j++) {
            fsi__lane dy = (fsi__lane)j * h - py, ry = rz - dy * dy;
            int row = k * n + j;
            fsi__f8 q, w;
            if (ry <= reach) continue;
            q = fsi__f8_max(fsi__f8_sub(fsi__f8_set(ry), xx), zero); /* 1 - |x - x_j|^2 */
            w = fsi__f8_mul(fsi__f8_mul(q, q), q);
            sum->w[row] = fsi__f8_add(sum->w[row], w);
            sum->www[row] = fsi__f8_add(sum->www[row], fsi__f8_mul(fsi__f8_mul(w, w), w));
            sum->x[row] = fsi__f8_add(sum->x[row], fsi__f8_mul(w, dx));
            sum->y[row] = fsi__f8_add(sum->y[row], fsi__f8_mul(w, fsi__f8_set(dy)));
            sum->z[row] = fsi__f8_add(sum->z[row], fsi__f8_mul(w, fsi__f8_set(dz)));
        }
    }
}

/* phi / support for a row of nodes, from their sums. */
static void fsi__sf_level(const fsi__sf_impl *s, const fsi__sf_sums *sum, int row, fsi__lane *values)
{
    fsi__f8 x = sum->x[row], y = sum->y[row], z = sum->z[row];
    fsi__f8 length = fsi__f8_sqrt(fsi__f8_add(fsi__f8_add(fsi__f8_mul(x, x), fsi__f8_mul(y, y)), fsi__f8_mul(z, z)));
    fsi__lane w[8], www[8], d[8];
    int i;
    memcpy(w, &sum->w[row], sizeof w);
    memcpy(www, &sum->www[row], sizeof www);
    memcpy(d, &length, sizeof d);
    for (i = 0; i < s->n; i++) {
        fsi__lane g = s->growth * www[i] - 1;
        values[i] = w[i] < (fsi__lane)1e-6 ? s->radius : d[i] / w[i] - s->radius * (g < 1 ? g : 1);
    }
}

static void fsi__sf_evaluate(const fsi__sf_impl *s, const fsi__sf_block *b, fsi__lane *values)
{
    fsi__sf_sums sum;
    fsi__sf_hood hood;
    fsi__lane nodes[8];
    int j, p;
    memset(&sum, 0, sizeof sum);
    for (j = 0; j < 8; j++) nodes[j] = (fsi__lane)j / (fsi__lane)s->n;
    fsi__sf_gather_hood(s, b->at, &hood);
    for (j = 0; j < hood.count; j++) {
        const fsi__lane *at = hood.shift[j];
        for (p = hood.begin[j]; p < hood.end[j]; p++)
            fsi__sf_splat(&sum, s->n, s->nz, fsi__sf_load(nodes), s->px[p] + at[0], s->py[p] + at[1], s->pz[p] + at[2]);
    }
    for (j = 0; j < s->n * s->nz; j++) fsi__sf_level(s, &sum, j, values + j * s->n);
}

static void fsi__sf_evaluate_slot(fsi__sf_impl *s, fsi__sf_slot *slot)
{
    int d, k, nodes = s->n * s->n * s->nz;
    const fsi__sf_block *b = &s->blocks[slot->block];
    fsi__lane *v = s->values + (size_t)(slot - s->slots) * (size_t)nodes;
    if (b->active) fsi__sf_evaluate(s, b, v);
    else for (k = 0; k < nodes; k++) v[k] = b->end > b->begin ? -s->radius : s->radius;
    for (slot->signs = k = 0; k < nodes; k++) slot->signs |= v[k] < 0 ? 1 : 2;
    for (d = 0; d < 8; d++) {
        int up = fsi__sf_find(s, b->at[0] + (d & 1), b->at[1] + (d >> 1 & 1), b->at[2] + (d >> 2)); /* 2D: none above */
        slot->up[d] = up < 0 ? FSI__SF_OUTSIDE : s->blocks[up].slot;
    }
}

/* ---- cells ---- */

/* What one pass over the cells of a block needs: node values of the block and of the first layer of its upper neighbours,
   (n+1)^dim of them, x fastest. */
typedef struct fsi__sf_walk {
    fsi__lane v[FSI__SF_APRON];
    int stride[3];       /* along x, y, z in v */
    int corner[8];       /* offset of the corners of a cell in v */
} fsi__sf_walk;

/* 0 when all values have the same sign. Zero itself counts as outside. */
static int fsi__sf_begin_walk(const fsi__sf_impl *s, const fsi__sf_slot *slot, fsi__sf_walk *w)
{
    int n = s->n, signs = 0, d, i, j, k, top = s->desc.dim == 3 ? n : 0;
    fsi__lane *v = w->v;
    for (d = 0; d < 1 << s->desc.dim; d++) {
        int up = slot->up[d];
        signs |= up >= 0 ? s->slots[up].signs : (up == FSI__SF_INSIDE ? 1 : 2);
    }
    if (signs != 3) return 0;
    w->stride[0] = 1;
    w->stride[1] = n + 1;
    w->stride[2] = (n + 1) * (n + 1);
    for (d = 0; d < 8; d++) w->corner[d] = (d & 1) + (d >> 1 & 1) * w->stride[1] + (d >> 2) * w->stride[2];
    for (k = 0; k <= top; k++) for (j = 0; j <= n; j++) for (i = 0; i <= n; i++) {
        int from = slot->up[(i == n) | (j == n) << 1 | (k == n) << 2];
        if (from < 0) *v++ = from == FSI__SF_INSIDE ? -s->radius : s->radius;
        else *v++ = s->values[(size_t)from * (size_t)(n * n * s->nz) + (size_t)((k % n * n + j % n) * n + i % n)];
    }
    return 1;
}

static int fsi__sf_case(const fsi__sf_impl *s, const fsi__sf_walk *w, int at) /* corners inside, of the cell at `at` */
{
    int c, inside = 0;
    for (c = 0; c < 1 << s->desc.dim; c++) inside |= (w->v[at + w->corner[c]] < 0) << c;
    return inside;
}

static void fsi__sf_count_slot(fsi__sf_impl *s, fsi__sf_slot *slot)
{
    fsi__sf_walk w;
    int i, j, k, inside;
    slot->vertices = slot->elements = 0;
    if (!fsi__sf_begin_walk(s, slot, &w)) return;
    for (k = 0; k < s->nz; k++) for (j = 0; j < s->n; j++) for (i = 0; i < s->n; i++) {
        inside = fsi__sf_case(s, &w, i + j * w.stride[1] + k * w.stride[2]);
        slot->elements += s->cases[inside][0] / s->desc.dim;
        inside ^= inside & 1 ? 255 : 0; /* corners that differ from the first: those at 1, 2, 4 end its edges */
        slot->vertices += (inside >> 1 & 1) + (inside >> 2 & 1) + (s->desc.dim == 3 ? inside >> 4 & 1 : 0);
    }
}

/* ---- vertices ---- */

static fsi__lane fsi__sf_outside(fsi__lane x) { return x < 0 ? x : (x > 1 ? x - 1 : 0); } /* signed distance to [0, 1] */

/* The normal at v: sum q (v - x_j), q = 1 - |v - x_j|^2, as wide a mean as the support allows; q^3 is too noisy for shading. */
static fsi_vec3 fsi__sf_normal(const fsi__sf_impl *s, const fsi__sf_hood *hood, const fsi__lane v[3])
{
    static const fsi__lane lanes[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    const fsi__f8 zero = fsi__f8_set(0), one = fsi__f8_set(1), index = fsi__sf_load(lanes);
    fsi__f8 sx = zero, sy = zero, sz = zero;
    int b, p;
    for (b = 0; b < hood->count; b++) {
        fsi__lane x = v[0] - hood->shift[b][0], y = v[1] - hood->shift[b][1], z = v[2] - hood->shift[b][2];
        fsi__lane ex = fsi__sf_outside(x), ey = fsi__sf_outside(y), ez = fsi__sf_outside(z);
        if (ex * ex + ey * ey + ez * ez >= 1) continue;
        for (p = hood->begin[b]; p < hood->end[b]; p += FSI_LANES) {
            fsi__f8 dx = fsi__f8_sub(fsi__f8_set(x), fsi__sf_load(s->px + p));
            fsi__f8 dy = fsi__f8_sub(fsi__f8_set(y), fsi__sf_load(s->py + p));
            fsi__f8 dz = fsi__f8_sub(fsi__f8_set(z), fsi__sf_load(s->pz + p));
            fsi__f8 r2 = fsi__f8_add(fsi__f8_add(fsi__f8_mul(dx, dx), fsi__f8_mul(dy, dy)), fsi__f8_mul(dz, dz));
            fsi__f8 q = fsi__f8_max(fsi__f8_sub(one, r2), zero);
            q = fsi__f8_if_greater(fsi__f8_set((fsi__lane)(hood->end[b] - p)), index, q); /* the rest lies elsewhere */
            sx = fsi__f8_add(sx, fsi__f8_mul(q, dx));
            sy = fsi__f8_add(sy, fsi__f8_mul(q, dy));
            sz = fsi__f8_add(sz, fsi__f8_mul(q, dz));
        }
    }
    return fsi_v3_unit(fsi_v3((fsi_real)fsi__f8_sum(sx), (fsi_real)fsi__f8_sum(sy), (fsi_real)fsi__f8_sum(sz)));
}

/* sum w a_j / sum w */
static void fsi__sf_mean_attributes(const fsi__sf_impl *s, const fsi__sf_hood *hood, const fsi__lane v[3], fsi_real *out)
{
    int b, p, k, n = s->desc.attribute_count;
    double total = 0;
    for (k = 0; k < n; k++) out[k] = 0;
    for (b = 0; b < hood->count; b++)
        for (p = hood->begin[b]; p < hood->end[b]; p++) {
            fsi__lane dx = v[0] - hood->shift[b][0] - s->px[p], dy = v[1] - hood->shift[b][1] - s->py[p];
            fsi__lane dz = v[2] - hood->shift[b][2] - s->pz[p];
            fsi__lane q = 1 - (dx * dx + dy * dy + dz * dz);
            double w = q > 0 ? (double)(q * q * q) : 0;
            if (w <= 0) continue;
            total += w;
            for (k = 0; k < n; k++) out[k] += (fsi_real)(w * (double)s->attributes[(size_t)s->source[p] * (size_t)n + (size_t)k]);
        }
    for (k = 0; k < n && total > 0; k++) out[k] = (fsi_real)((double)out[k] / total);
}

/* One vertex on the edge from node (i, j, k) along `axis`, where phi is a at one end and b at the other. */
static void fsi__sf_put_vertex(fsi__sf_impl *s, const fsi__sf_block *block, const fsi__sf_hood *hood,
                               const int node[3], int axis, fsi__lane a, fsi__lane b, int id)
{
    fsi__lane v[3], t = a / (a - b);
    double x[3];
    int k;
    t = t < (fsi__lane)1e-3 ? (fsi__lane)1e-3 : (t > 1 - (fsi__lane)1e-3 ? 1 - (fsi__lane)1e-3 : t); /* else triangles collapse */
    for (k = 0; k < 3; k++) {
        v[k] = ((fsi__lane)node[k] + (k == axis ? t : 0)) / (fsi__lane)s->n;
        x[k] = (block->at[k] + (double)v[k] - s->offset) * s->support;
    }
    s->vertices[id] = fsi_v3((fsi_real)x[0], (fsi_real)x[1], (fsi_real)(s->desc.dim == 3 ? x[2] : 0));
    s->normals[id] = fsi__sf_normal(s, hood, v);
    if (s->vertex_attributes)
        fsi__sf_mean_attributes(s, hood, v, s->vertex_attributes + (size_t)id * (size_t)s->desc.attribute_count);
}

static void fsi__sf_vertices_of_slot(fsi__sf_impl *s, fsi__sf_slot *slot)
{
    fsi__sf_walk w;
    fsi__sf_hood hood;
    const fsi__sf_block *block = &s->blocks[slot->block];
    int node[3], axis, nodes = s->n * s->n * s->nz, id = slot->vertices, at = slot->map;
    if (slot->map < 0 || !fsi__sf_begin_walk(s, slot, &w)) return;
    fsi__sf_gather_hood(s, block->at, &hood);
    for (node[2] = 0; node[2] < s->nz; node[2]++)
        for (node[1] = 0; node[1] < s->n; node[1]++)
            for (node[0] = 0; node[0] < s->n; node[0]++, at++)
                for (axis = 0; axis < s->desc.dim; axis++) {
                    const fsi__lane *v = w.v + node[0] + node[1] * w.stride[1] + node[2] * w.stride[2];
                    fsi__lane a = v[0], b = v[w.stride[axis]];
                    if ((a < 0) == (b < 0)) continue;
                    s->map[at + axis * nodes] = id;
                    fsi__sf_put_vertex(s, block, &hood, node, axis, a, b, id++);
                }
}

/* ---- elements ---- */

/* Vertex on an edge of cell (i, j, k): the edge belongs to the node at its lower end, maybe in an upper neighbour. */
static int fsi__sf_edge_vertex(const fsi__sf_impl *s, const fsi__sf_slot *slot, int i, int j, int k, int edge)
{
    int n = s->n, low = fsi__sf_edge_low(edge), x = i + (low & 1), y = j + (low >> 1 & 1), z = k + (low >> 2);
    int owner = slot->up[(x == n) | (y == n) << 1 | (z == n) << 2];
    return s->map[s->slots[owner].map + (((edge >> 2) * s->nz + z % n) * n + y % n) * n + x % n];
}

static void fsi__sf_elements_of_slot(fsi__sf_impl *s, fsi__sf_slot *slot)
{
    fsi__sf_walk w;
    int i, j, k, e, *out = s->elements + (size_t)slot->elements * (size_t)s->desc.dim;
    if (!fsi__sf_begin_walk(s, slot, &w)) return;
    for (k = 0; k < s->nz; k++) for (j = 0; j < s->n; j++) for (i = 0; i < s->n; i++) {
        int at = i + j * w.stride[1] + k * w.stride[2];
        const unsigned char *edges = s->cases[fsi__sf_case(s, &w, at)];
        for (e = 1; e <= edges[0]; e++) *out++ = fsi__sf_edge_vertex(s, slot, i, j, k, edges[e]);
    }
}

static void fsi__sf_task(void *arg, int chunk, int begin, int end)
{
    fsi__sf_impl *s = (fsi__sf_impl *)arg;
    (void)chunk;
    for (; begin < end; begin++) s->pass(s, &s->slots[begin]);
}

static void fsi__sf_run(fsi_context *context, fsi__sf_impl *s, fsi__sf_pass *pass)
{
    s->pass = pass;
    fsi__parallel(context, s->slot_count, FSI__SF_GRAIN, fsi__sf_task, s);
}

/* ---- update ---- */

/* Numbers the vertices, elements and edge maps of the blocks one after the other; in all: totals[0], [1], [2]. */
static void fsi__sf_number(fsi__sf_impl *s, size_t totals[3])
{
    int q, edges = s->n * s->n * s->nz * s->desc.dim;
    totals[0] = totals[1] = totals[2] = 0;
    for (q = 0; q < s->slot_count; q++) {
        fsi__sf_slot *slot = &s->slots[q];
        int v = slot->vertices, e = slot->elements;
        slot->vertices = (int)totals[0];
        slot->elements = (int)totals[1];
        slot->map = v ? (int)totals[2] : -1;
        totals[0] += (size_t)v;
        totals[1] += (size_t)e;
        totals[2] += v ? (size_t)edges : 0;
        if (totals[0] + 3 * totals[1] + totals[2] > 0x7fffffff) break; /* refused by the caller */
    }
}

/* Bins, chooses blocks, evaluates and counts. No result is touched. */
static fsi_status fsi__sf_prepare(fsi_context *context, fsi__sf_impl *s, const fsi_vec3 *x, int count, size_t totals[3])
{
    fsi_status status;
    int i;
    s->block_count = 0;
    if (s->hash) memset(s->hash, 0, (size_t)s->rows[FSI__SF_HASH] * 4 * sizeof(int));
    status = fsi__sf_room(context, s, FSI__SF_PARTICLES, 0, (size_t)count + FSI_LANES);
    if (status == FSI_OK) status = fsi__sf_bin(context, s, x, count);
    if (status != FSI_OK) return status;
    fsi__sf_sort(s, x, count);
    status = fsi__sf_activate(context, s);
    if (status == FSI_OK) status = fsi__sf_room(context, s, FSI__SF_SLOTS, 0, (size_t)s->slot_count);
    if (status != FSI_OK) return status;
    for (i = 0; i < s->block_count; i++)
        if (s->blocks[i].slot >= 0) s->slots[s->blocks[i].slot].block = i;
    fsi__sf_run(context, s, fsi__sf_evaluate_slot);
    fsi__sf_run(context, s, fsi__sf_count_slot);
    fsi__sf_number(s, totals);
    if (totals[0] + 3 * totals[1] + totals[2] > 0x7fffffff)
        return fsi__fail(context, FSI_ERROR_LIMIT, "fsi_surface_update", -1, (double)totals[1],
            "the surface has more than 2^31 - 1 indices");
    return fsi__sf_room(context, s, FSI__SF_EDGES, 0, totals[2]);
}

/* Grows the arrays of the result, old contents kept. The caller sees where they are now even if one could not grow. */
static fsi_status fsi__sf_grow_results(fsi_surface *surface, fsi__sf_impl *s, const size_t totals[3])
{
    fsi_status status = fsi__sf_room(surface->context, s, FSI__SF_VERTICES, surface->vertex_count, totals[0]);
    if (status == FSI_OK) status = fsi__sf_room(surface->context, s, FSI__SF_ELEMENTS, surface->element_count, totals[1]);
    surface->vertices = s->vertices;
    surface->normals = s->normals;
    surface->attributes = s->vertex_attributes;
    surface->elements = s->elements;
    return status;
}

FSI_API fsi_status fsi_surface_update(fsi_surface *surface, const fsi_vec3 *x, int count, const fsi_real *attributes)
{
    static const char fn[] = "fsi_surface_update";
    fsi_context *context;
    fsi__sf_impl *s;
    fsi_status status;
    size_t totals[3];
    if (!surface) return fsi__fail(NULL, FSI_ERROR_ARGUMENT, fn, -1, 0, "surface is NULL");
    if (surface->cookie != FSI__COOKIE('f', fsi_surface))
        return fsi__fail(NULL, FSI_ERROR_COOKIE, fn, -1, 0, "not a surface of this version and precision");
    context = surface->context;
    s = (fsi__sf_impl *)surface->impl;
    if (count < 0 || (count > 0 && !x))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, count,
            "count is %d and x is %s", count, x ? "given" : "NULL");
    if (count > 0 && s->desc.attribute_count && !attributes)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0,
            "attributes is NULL, the desc asks for %d a particle", s->desc.attribute_count);
    s->attributes = attributes;
    status = fsi__sf_prepare(context, s, x, count, totals);
    if (status == FSI_OK) status = fsi__sf_grow_results(surface, s, totals);
    if (status != FSI_OK) return status;
    fsi__sf_run(context, s, fsi__sf_vertices_of_slot);
    fsi__sf_run(context, s, fsi__sf_elements_of_slot);
    surface->vertex_count = (int)totals[0];
    surface->element_count = (int)totals[1];
    surface->block_count = s->slot_count;
    return FSI_OK;
}

/* ---- samples ---- */

/* The lattice of fsi_sample_box, without the points of which `mesh` (may be NULL) says that they are not well inside. */
static fsi_status fsi__sample(fsi_context *context, const char *fn, fsi_box3 box, fsi_real spacing, int dim, const fsi_mesh *mesh,
                              fsi_vec3 *out, int capacity, int *count)
{
    double n[3], s = (double)spacing, total;
    int i, j, k, found = 0;
    if (!count || capacity < 0 || (capacity > 0 && !out))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, capacity,
            "count or out is NULL, or capacity %d is negative", capacity);
    *count = 0;
    if (dim != 2 && dim != 3) return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, dim, "dim is %d, it must be 2 or 3", dim);
    if (dim == 2) box.lo.z = box.hi.z = 0;
    if (!fsi_v3_is_finite(box.lo) || !fsi_v3_is_finite(box.hi) || !fsi_is_finite(s))
        return fsi__fail(context, FSI_ERROR_NAN, fn, -1, s, "the box or the spacing is not finite");
    if (!(s > 0)) return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, s, "spacing is %g, it must be positive", s);
    n[0] = floor(((double)box.hi.x - (double)box.lo.x) / s + 1e-5); /* a box of whole spacings keeps all of them */
    n[1] = floor(((double)box.hi.y - (double)box.lo.y) / s + 1e-5);
    n[2] = dim == 2 ? 1 : floor(((double)box.hi.z - (double)box.lo.z) / s + 1e-5);
    total = n[0] * n[1] * n[2];
    if (n[0] < 0 || n[1] < 0 || n[2] < 0)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0, "the box is empty: lo is above hi");
    if (total < 1) return FSI_OK; /* thinner than a spacing */
    if (total > 2147483647.0)
        return fsi__fail(context, FSI_ERROR_LIMIT, fn, -1, total, "%g lattice points, more than 2^31 - 1", total);
    for (k = 0; k < (int)n[2]; k++) for (j = 0; j < (int)n[1]; j++) for (i = 0; i < (int)n[0]; i++) {
        fsi_vec3 p = fsi_v3((fsi_real)((double)box.lo.x + (i + 0.5) * s), (fsi_real)((double)box.lo.y + (j + 0.5) * s), 0);
        if (dim == 3) p.z = (fsi_real)((double)box.lo.z + (k + 0.5) * s);
        if (mesh) { /* in a container the liquid is outside the solid */
            fsi_real inside = mesh->container ? fsi_mesh_signed_distance(mesh, p) : -fsi_mesh_signed_distance(mesh, p);
            if (!(inside >= spacing / 2 * (fsi_real)0.999)) continue;
        }
        if (found < capacity) out[found] = p;
        found++;
    }
    *count = found;
    return FSI_OK;
}

FSI_API fsi_status fsi_sample_box(fsi_context *context, fsi_box3 box, fsi_real spacing, int dim, fsi_vec3 *out, int capacity,
                                  int *count)
{
    return fsi__sample(context, "fsi_sample_box", box, spacing, dim, NULL, out, capacity, count);
}

FSI_API fsi_status fsi_sample_mesh(const fsi_mesh *mesh, fsi_real spacing, fsi_vec3 *out, int capacity, int *count)
{
    if (!fsi__is_mesh(mesh)) return mesh ? FSI_ERROR_COOKIE : FSI_ERROR_ARGUMENT;
    if (mesh->kind != FSI_MESH_CLOSED)
        return fsi__fail(mesh->context, FSI_ERROR_MESH, "fsi_sample_mesh", -1, 0,
            "the mesh is not closed: it has no inside");
    return fsi__sample(mesh->context, "fsi_sample_mesh", mesh->box, spacing, mesh->corners, mesh, out, capacity, count);
}

FSI__STRICT_END

#endif /* once */
#endif /* FSI_IMPLEMENTATION */
