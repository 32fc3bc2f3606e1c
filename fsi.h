/* fsi.h - the ground that all fsi headers share: numbers, host services, errors, saved states, rigid bodies.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi.h"
         #include "fsi.h"

   A BODY THAT TURNS AS IT FALLS
      fsi_context ctx = fsi_default_context();        // hooks for memory, threads, clock, messages: all optional
      fsi_body body = fsi_default_body();
      int k;
      body.mode = FSI_BODY_COUPLED;                   // a liquid may push it; here nothing does
      body.mass = 2;
      body.angular_velocity = fsi_v3(0, 0, 3);
      body.force = fsi_v3(0, 0, -9.81f * 2);
      if (fsi_body_check(&ctx, &body, 0) != FSI_OK) { // "body 0: ..."
          puts(ctx.error.message);
          return 1;
      }
      for (k = 0; k < 60; k++) {
          fsi_body_begin_step(&body, 1.0f / 60);
          fsi_body_apply_impulse(&body, fsi_v3(0.01f, 0, 0), body.pose.position); // what a simulator would do
          fsi_body_end_step(&body, 1.0f / 60);
          fsi_body_integrate(&body, 1.0f / 60);
      }
      printf("height after a second: %g m\n", (double)body.pose.position.z);

   WHAT IS IN HERE (search for >>)
      >>vectors >>elementary functions >>matrices    plain value types, no operator magic
      >>bodies         what a liquid and an engine exchange of a rigid body;  >>dense  Cholesky of small systems
      >>context        services of the host;  >>status  what can go wrong;  >>debug draw;  >>device  a GPU
      >>acceleration   a field by the host;  >>stages  for fsi's own headers, not for you
   fsi_m3_svd, _polar, _det, _outer and _madd are for those who write elastic bodies: the rotation, stretch, volume and
   stress of a deformation. fsi_body_apply_impulse is for those who write a simulator.
   Meshes are in fsi_mesh.h, neighbours and lattices in fsi_particles.h, surfaces to draw in fsi_surface.h.

   MACROS YOU MAY DEFINE (the same in every file that includes an fsi header)
      FSI_IMPLEMENTATION   emit the function bodies here, of all headers that this file includes (in one file only)
      FSI_SPH_IMPLEMENTATION, FSI_MESH_IMPLEMENTATION ...
                           emit those of fsi_sph.h, fsi_mesh.h ... alone (this file: FSI_GROUND_IMPLEMENTATION), for
                           builds in parallel, as `make lib` and CMakeLists.txt do. Not together with FSI_STATIC.
      FSI_STATIC           make everything private to this file
      FSI_REAL_FLOAT       fsi_real is float instead of double
      FSI_ASSERT(x)        bugs inside fsi only, never your data      default: nothing
      FSI_NO_SIMD          plain C instead of SSE2, AVX or AVX2 (same bits)
      FSI_LANES_DOUBLE     pair arithmetic in double instead of float (verification; about 3 times slower)
      FSI_ALLOW_FAST_MATH  build under -ffast-math all the same (no promise of determinism or of NaN checks)
      FSI_NO_OPTIMIZE      gcc -O0: leave fsi's own functions at -O0 too, to step through them (25 times slower).
                           Default: gcc builds them at -O2 where the command line does not optimise (__OPTIMIZE__ is not
                           defined); your code stays at -O0. -Og and -O1 are kept as they are. clang, tcc and cl cannot
                           do that from a header: in their debug builds compile fsi_impl.c, or the one file with
                           FSI_IMPLEMENTATION, by itself: clang -O2 -c fsi_impl.c, and link it.

   UNITS
      SI everywhere: metres, kilograms, seconds, newtons, pascals. Right-handed axes; gravity decides what is up.

   THREADS
      Loops go to context->parallel_for; NULL: to OpenMP when compiled with it (-fopenmp), else they run where they are.
      So do loops of less than 20 us on one thread: a liquid of 500 particles wakes nobody. OpenMP's threads spin where
      they wait for each other. On a machine that is busy with other programs that costs more than teams save: this is
      measured, and loops then run on one thread, a second at a time. OMP_WAIT_POLICY=passive in the environment (or
      GOMP_SPINCOUNT=0, KMP_BLOCKTIME=0), which no header can set, lets threads sleep at once: for programs that share
      a machine; the default is faster where cores are free. Results have the same bits in all these cases.

   DETERMINISM
      Same binary, same kind of CPU, same input: the same bits for any number of threads and any scheduler. Work is cut
      in chunks whose size does not depend on the number of threads; sums are folded in a fixed order; nothing is summed
      with atomics. Not promised: equality between compilers, CPUs, float and double, or other versions of fsi.
      fsi_build_info() says whether this binary contracts a*b+c (then hashes are not comparable with other builds).

   ERRORS
      What can fail returns fsi_status and fills context->error: status, function, element, value and a text that names
      the culprit (not where a cookie is wrong or the object NULL: then no context can be trusted). A call that fails
      changes nothing. Nothing here prints, exits, or keeps a global: a create that fails leaves no object to ask, so
      give every desc a context, and the text of any failure is in context.error.message. Files that include fsi in
      float and in double, or in two versions, do not link: the linker names
      fsi_this_file_is_float_0_1_0_but_FSI_IMPLEMENTATION_is_double_or_another_version, or the like.
*/
#ifndef FSI_H
#define FSI_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FSI_VERSION_MAJOR 0
#define FSI_VERSION_MINOR 1
#define FSI_VERSION_PATCH 0
#define FSI_VERSION (FSI_VERSION_MAJOR * 10000 + FSI_VERSION_MINOR * 100 + FSI_VERSION_PATCH)
#define FSI_VERSION_STRING "0.1.0"

#if (defined(__FAST_MATH__) || defined(_M_FP_FAST) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)) \
    && !defined(FSI_ALLOW_FAST_MATH)
#error "fsi: -ffast-math breaks NaN checks and determinism; drop it, or define FSI_ALLOW_FAST_MATH and do without"
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

/* Float and double, or two versions, in one program would pass structs of different layouts to each other. So every
   file refers to one function of the implementation, whose name says what the file was compiled for; an implementation
   of another precision or version has it not, and the linker prints the name. Declared here, it may also be looked up
   by other languages (dlsym). A file with FSI_STATIC refers to nothing: define it also in a program that has no
   implementation because it uses nothing but inline functions (FSI_FN). */
#if defined(FSI_REAL_FLOAT)
#define FSI__LINK_NAME(a, b, c) \
    fsi_this_file_is_float_##a##_##b##_##c##_but_FSI_IMPLEMENTATION_is_double_or_another_version
#else
#define FSI__LINK_NAME(a, b, c) \
    fsi_this_file_is_double_##a##_##b##_##c##_but_FSI_IMPLEMENTATION_is_float_or_another_version
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

/* FSI_FN marks the arithmetic of one pair, cell or contact: takes values, returns values, always inlined, CPU and
   GPU. */
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
#define FSI__HOST_FN static inline /* the same for functions that call some which are not inlined */
#else
#define FSI__HOST_FN FSI_FN
#endif

#ifndef FSI_ASSERT
#define FSI_ASSERT(x) ((void)0)
#endif

/* Floating-point contraction is switched off between FSI__STRICT_BEGIN and FSI__STRICT_END, so that a*b+c is rounded
   twice in every build. gcc reads the setting of the function that loops (helpers are inlined into it); clang reads it
   where the expression is written, so there helpers stand inside a region of their own. no-math-errno lets sqrt
   vectorise. no-schedule-insns2 leaves out gcc's last scheduling of instructions, a twentieth of its time: x86-64
   processors reorder instructions themselves. All options stand in one pragma: of two, gcc 12 drops this one. None of
   these changes a result. */
#if defined(__clang__)
#define FSI__STRICT_BEGIN _Pragma("STDC FP_CONTRACT OFF")
#define FSI__STRICT_END _Pragma("STDC FP_CONTRACT DEFAULT")
#define FSI__STRICT_FN_BEGIN FSI__STRICT_BEGIN
#define FSI__STRICT_FN_END FSI__STRICT_END
#elif defined(__GNUC__) && !defined(__TINYC__) && !defined(__CUDACC__)
#define FSI__PRAGMA_OF(text) _Pragma(#text)
#define FSI__PRAGMA(text) FSI__PRAGMA_OF(text)
#if defined(__x86_64__)
#define FSI__SAME_BITS "fp-contract=off", "no-math-errno", "no-schedule-insns2"
#else
#define FSI__SAME_BITS "fp-contract=off", "no-math-errno"
#endif
#if defined(__OPTIMIZE__) || defined(FSI_NO_OPTIMIZE)
#define FSI__STRICT_BEGIN FSI__PRAGMA(GCC push_options) FSI__PRAGMA(GCC optimize(FSI__SAME_BITS))
#else /* -O0: fsi at -O2 all the same, 25 times faster; the caller's own code stays as it is */
#define FSI__STRICT_BEGIN FSI__PRAGMA(GCC push_options) FSI__PRAGMA(GCC optimize("O2", FSI__SAME_BITS))
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

/* Within such a region, code that takes no part in a step: creates, checks, changes, saves, loads. gcc compiles it at
   -O1, in about 60 % of the time, with the same results. Nothing changes at -Os and with FSI_NO_OPTIMIZE. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__TINYC__) && !defined(__CUDACC__) \
    && !defined(__OPTIMIZE_SIZE__) && (defined(__OPTIMIZE__) || !defined(FSI_NO_OPTIMIZE))
#define FSI__COLD_BEGIN FSI__PRAGMA(GCC push_options) FSI__PRAGMA(GCC optimize("O1", FSI__SAME_BITS))
#define FSI__COLD_END FSI__PRAGMA(GCC pop_options)
#else
#define FSI__COLD_BEGIN
#define FSI__COLD_END
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
    X(FSI_ERROR_SINGULAR, "a matrix is singular, or not of the kind that it was said to be") \
    X(FSI_ERROR_DEVICE, "a device is missing, cannot be used, or failed")

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

struct fsi_device; /* >>device */

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
    /* A GPU for heavy kernels, made by fsi_cuda_create. It outlives what is created with it. NULL (default): the CPU
       does everything. */
    const struct fsi_device *device;
    /* Read only from here. */
    fsi_error error;       /* the last failure; not cleared by success */
    size_t bytes;          /* held now through this context */
    size_t peak_bytes;
    long long allocs;      /* allocations so far */
    double team_debt, team_rests; /* private: seconds that OpenMP's threads lost lately; until when loops run without
                                     them */
} fsi_context;

/* A context with default hooks. Copy the result, change the hooks, keep it alive longer than what is made with it. */
FSI_API fsi_context fsi_default_context(void);

/* How this binary was built: "fsi 0.1.0 double contract=0 openmp=0 lanes=8", static string.
   contract is measured by arithmetic, not read from flags. */
FSI_API const char *fsi_build_info(void);
FSI_API int fsi_version(void); /* FSI_VERSION of the implementation that was linked */

/* 64-bit hash of `size` bytes, chained through `seed`. Not cryptographic. */
FSI_API uint64_t fsi_hash(const void *data, size_t size, uint64_t seed);

/* ---- >>device ------------------------------------------------------------------------------------------------- */

/* A device that takes heavy kernels over. Headers ask it once, in their create, for a table of functions: by name and
   version, such as "fsi_pressure multigrid 1"; NULL: it has none of that name. What is in a table says the header that
   asks for it, in its section >>device. */
typedef struct fsi_device {
    uint32_t cookie;
    void *user;
    const void *(*table)(void *user, const char *name);
} fsi_device;

/* Who does the work: a field of descs. AUTO (default): the device from the size on that its table names; where it
   fails, the CPU does the whole call. NEVER: the CPU. ALWAYS: the device, for any size; where there is none, or it
   fails, the call fails with its status. */
typedef enum fsi_device_use { FSI_DEVICE_AUTO, FSI_DEVICE_NEVER, FSI_DEVICE_ALWAYS } fsi_device_use;

/* The next functions are defined in fsi_cuda.cu alone: link it where you call them (docs/cuda.md). */
#if defined(__cplusplus)
#define FSI_CUDA_API extern "C"
#else
#define FSI_CUDA_API extern
#endif

typedef struct fsi_cuda_kernel {
    const char *name;           /* static string */
    long long launches;
    double bytes;               /* that it has to read and write */
    double seconds;             /* 0 unless fsi_cuda_time switched them on */
} fsi_cuda_kernel;

typedef struct fsi_cuda_report { /* since the device was created; of all simulators that use it */
    int kernels;
    fsi_cuda_kernel kernel[32];
    double sent, fetched;       /* bytes copied to the device and back */
    long long copies;
    size_t bytes, peak_bytes, memory_limit; /* device memory held now and at most; 0: no limit */
} fsi_cuda_report;

/* Makes a device of CUDA device `index`, from 0, that holds at most `memory_limit` bytes of its memory (0: no limit).
   The file compiled as C++ has devices of its own, which run on the CPU, for tests: docs/cuda.md. *out is NULL on
   failure, and the reason is in *error (NULL: not wanted). Errors: ARGUMENT (index), MEMORY, DEVICE (no driver, too old
   a device). Several simulators in several threads may share a device. Calls that work on it make it the CUDA device of
   their thread: a host that uses others sets its own again. */
FSI_CUDA_API fsi_status fsi_cuda_create(fsi_device **out, int index, size_t memory_limit, fsi_error *error);
/* After all that was created with it. NULL is fine. */
FSI_CUDA_API void fsi_cuda_destroy(fsi_device *device);
/* Its name and kind in a line, as long as the device; NULL or not one of these: "no device". */
FSI_CUDA_API const char *fsi_cuda_info(const fsi_device *device);
/* Errors: ARGUMENT (NULL), COOKIE. */
FSI_CUDA_API fsi_status fsi_cuda_stats(const fsi_device *device, fsi_cuda_report *report);
/* on 1: each kernel is waited for and its seconds are counted, which takes longer; 0 (default): not. Errors: COOKIE. */
FSI_CUDA_API fsi_status fsi_cuda_time(fsi_device *device, int on);

/* ---- >>debug draw --------------------------------------------------------------------------------------------- */

/* Callbacks that a simulator's *_debug_draw calls; NULL ones are skipped. rgb is 0xRRGGBB. */
typedef struct fsi_debug_draw {
    void *user;
    void (*point)(void *user, fsi_vec3 p, fsi_real size, uint32_t rgb);
    void (*line)(void *user, fsi_vec3 a, fsi_vec3 b, uint32_t rgb);
    void (*triangle)(void *user, fsi_vec3 a, fsi_vec3 b, fsi_vec3 c, uint32_t rgb);
} fsi_debug_draw;

/* ---- >>acceleration -------------------------------------------------------------------------------------------- */

/* A field of accelerations [m/s^2] by the host: at x [m], at `time` [s]. Called from several threads at once; what it
   returns depends on its arguments alone. */
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
FSI_FN fsi_vec3 fsi_v3_madd(fsi_vec3 a, fsi_real s, fsi_vec3 b) /* a + s b */
{
    return fsi_v3(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z);
}
FSI_FN fsi_vec3 fsi_v3_min(fsi_vec3 a, fsi_vec3 b)
{
    return fsi_v3(fsi_min(a.x, b.x), fsi_min(a.y, b.y), fsi_min(a.z, b.z));
}
FSI_FN fsi_vec3 fsi_v3_max(fsi_vec3 a, fsi_vec3 b)
{
    return fsi_v3(fsi_max(a.x, b.x), fsi_max(a.y, b.y), fsi_max(a.z, b.z));
}
FSI_FN fsi_real fsi_v3_dot(fsi_vec3 a, fsi_vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
FSI_FN fsi_vec3 fsi_v3_cross(fsi_vec3 a, fsi_vec3 b)
{
    return fsi_v3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
FSI_FN fsi_real fsi_v3_norm2(fsi_vec3 a) { return fsi_v3_dot(a, a); }
FSI_FN fsi_real fsi_v3_norm(fsi_vec3 a) { return fsi_sqrt(fsi_v3_dot(a, a)); }
FSI_FN fsi_vec3 fsi_v3_unit(fsi_vec3 a) /* a/|a|, or 0 when |a| is 0 */
{
    fsi_real n = fsi_v3_norm(a);
    return fsi_v3_scale(a, n > 0 ? 1 / n : 0);
}
FSI_FN int fsi_v3_is_finite(fsi_vec3 a)
{
    return fsi_is_finite((double)a.x) && fsi_is_finite((double)a.y) && fsi_is_finite((double)a.z);
}

FSI_FN fsi_box3 fsi_box3_empty(void)
{
    fsi_box3 b;
    b.lo = fsi_v3(FSI_REAL_MAX, FSI_REAL_MAX, FSI_REAL_MAX);
    b.hi = fsi_v3(-FSI_REAL_MAX, -FSI_REAL_MAX, -FSI_REAL_MAX);
    return b;
}
FSI_FN fsi_box3 fsi_box3_grow(fsi_box3 b, fsi_vec3 p)
{
    b.lo = fsi_v3_min(b.lo, p);
    b.hi = fsi_v3_max(b.hi, p);
    return b;
}
FSI_FN fsi_box3 fsi_box3_join(fsi_box3 a, fsi_box3 b)
{
    a.lo = fsi_v3_min(a.lo, b.lo);
    a.hi = fsi_v3_max(a.hi, b.hi);
    return a;
}
FSI_FN fsi_box3 fsi_box3_inflate(fsi_box3 b, fsi_real r)
{
    fsi_vec3 d = fsi_v3(r, r, r);
    b.lo = fsi_v3_sub(b.lo, d);
    b.hi = fsi_v3_add(b.hi, d);
    return b;
}
FSI_FN int fsi_box3_overlap(fsi_box3 a, fsi_box3 b)
{
    return a.lo.x <= b.hi.x && b.lo.x <= a.hi.x && a.lo.y <= b.hi.y && b.lo.y <= a.hi.y && a.lo.z <= b.hi.z
        && b.lo.z <= a.hi.z;
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
/* x + 1.5 2^52: its last bits are the integer nearest to x, |x| < 2^31 (ties to even); minus FSI__ROUND it is that
   integer */
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
    double p = 1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720 + r * (1.0 / 5040
             + r * (1.0 / 40320 + r * (1.0 / 362880 + r * (1.0 / 3628800 + r * (1.0 / 39916800
             + r * (1.0 / 479001600 + r * (1 / 6227020800.0)))))))))));
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
    double pole = fsi__pick((uint64_t)(x == 0), fsi__from_bits(0xfff0000000000000u),
        fsi__from_bits(0x7ff8000000000000u));
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
    double big = fsi__pick(steep, ay, ax), few = fsi__pick(steep, ax, ay),
        scale = fsi__pick((uint64_t)(big > 1e300), 0.25, 1);
    uint64_t huge = big > FSI__HUGE;
    double a = fsi__pick(huge, fsi__pick((uint64_t)(few > FSI__HUGE), 1, 0), few * scale),
        b = fsi__pick(huge, 1, big * scale);
    uint64_t upper = a > 0.41421356237309503 * b;
    double z = (a - fsi__pick(upper, b, 0)) / (fsi__pick((uint64_t)(big > 0), b, 1) + fsi__pick(upper, a, 0)),
        u = z * z;
    double p = -0.3333333333333333 + u * (0.19999999999998147 + u * (-0.14285714285436438 + u * (0.11111111090720936
             + u * (-0.09090908224184224 + u * (0.07692284356081766 + u * (-0.06666248019245558
             + u * (0.05877211846282284 + u * (-0.0521953249862126 + u * (0.045078148501680806
             + u * (-0.03356744359012793 + u * 0.015284110721538641))))))))));
    /* angle = turn pi/4 + sign atan z, mirrored at the y axis when x < 0; NaN is put back at the end */
    double octant = fsi__pick(upper, 1, fsi__pick(steep, 2, 0)), turn = fsi__pick(left, 4 - octant, octant);
    double sign = fsi__pick(steep ^ left, -1, 1), special = fsi__pick(number, 0, x + y);
    double angle = turn * 0.7853981633974483 + (sign * z + (sign * (z * u * p) + turn * 3.061616997868383e-17));
    return fsi__with_sign(fabs(angle) + special, y);
}

/* Sine and cosine together. NaN for |x| > 1e9 and for inf; sin(-0) is +0; beyond 1e6 the error stays below that of one
   ulp of x. x = k pi/2 + r, |r| <= pi/4, r = hi + lo (pi/2 in three parts, Cody and Waite 1980); Taylor to r^17 and
   r^18. */
FSI_FN void fsi_sincos(double x, double *sine, double *cosine)
{
    uint64_t good = fabs(x) <= 1e9;
    double number = fsi__pick(good, x, 0), a = fsi__pick(good, x, fsi__from_bits(0x7ff8000000000000u));
    uint64_t q = fsi__round_bits(number * 0.6366197723675814);
    double k = fsi__from_bits(q) - FSI__ROUND;
    double t = a - k * 1.5707963267341256, w = k * 6.077100506303966e-11, w2 = k * 2.0222662487959506e-21;
    double t2 = t - w, r = t2 - w2, lo = ((t - t2) - w) + ((t2 - r) - w2), u = r * r;
    double s = r + (lo + r * u * (-1.0 / 6 + u * (1.0 / 120 + u * (-1.0 / 5040 + u * (1.0 / 362880
             + u * (-1.0 / 39916800 + u * (1.0 / 6227020800.0 + u * (-1.0 / 1307674368000.0
             + u * (1 / 355687428096000.0)))))))));
    double h = 0.5 * u, c = 1 - h;
    c = c + (((1 - c) - h) - r * lo + u * u * (1.0 / 24 + u * (-1.0 / 720 + u * (1.0 / 40320 + u * (-1.0 / 3628800
             + u * (1.0 / 479001600 + u * (-1.0 / 87178291200.0 + u * (1.0 / 20922789888000.0
             - u * (1 / 6402373705728000.0)))))))));
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
FSI_FN fsi_mat3 fsi_m3_transpose(fsi_mat3 a)
{
    return fsi_m3_rows(fsi_m3_column(a, 0), fsi_m3_column(a, 1), fsi_m3_column(a, 2));
}
FSI_FN fsi_mat3 fsi_m3_diagonal(fsi_vec3 d)
{
    return fsi_m3_rows(fsi_v3(d.x, 0, 0), fsi_v3(0, d.y, 0), fsi_v3(0, 0, d.z));
}
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
    return fsi_m3_rows(fsi_m3_mul_v3(t, fsi_m3_row(a, 0)), fsi_m3_mul_v3(t, fsi_m3_row(a, 1)),
        fsi_m3_mul_v3(t, fsi_m3_row(a, 2)));
}
FSI_FN fsi_real fsi_m3_det(fsi_mat3 a)
{
    return fsi_v3_dot(fsi_m3_row(a, 0), fsi_v3_cross(fsi_m3_row(a, 1), fsi_m3_row(a, 2)));
}
/* Inverse: the cofactors over the determinant, in double; all zero when the determinant is 0. */
FSI_FN void fsi__d9_inverse(const double *a, double *out)
{
    double c[9], d;
    int i, j;
    for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) { /* the cofactor, from the next two rows and columns, cyclic */
        const int p = 3 * ((i + 1) % 3), q = 3 * ((i + 2) % 3), k = (j + 1) % 3, l = (j + 2) % 3;
        c[3 * i + j] = a[p + k] * a[q + l] - a[p + l] * a[q + k];
    }
    d = a[0] * c[0] + a[1] * c[1] + a[2] * c[2];
    for (i = 0; i < 9; i++) out[i] = d < 0 || d > 0 ? c[3 * (i % 3) + i / 3] / d : 0;
}
FSI_FN fsi_mat3 fsi_m3_inverse(fsi_mat3 a)
{
    double m[9], inverse[9];
    int i;
    for (i = 0; i < 9; i++) m[i] = (double)a.m[i];
    fsi__d9_inverse(m, inverse);
    for (i = 0; i < 9; i++) a.m[i] = (fsi_real)inverse[i];
    return a;
}

/* Quaternions stand for rotations: q and -q are the same one; a * b turns by b first, then by a. */
FSI_FN fsi_quat fsi_quat_make(fsi_real x, fsi_real y, fsi_real z, fsi_real w)
{
    fsi_quat q;
    q.x = x;
    q.y = y;
    q.z = z;
    q.w = w;
    return q;
}
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
/* R with R v = fsi_quat_rotate(q, v), but orthogonal to rounding for any q, unit or not: 1 + s (w [u]x + [u]x [u]x),
   s = 2/|q|^2. */
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
/* axis need not be unit; identity when it is 0 */
FSI_FN fsi_quat fsi_quat_from_axis_angle(fsi_vec3 axis, fsi_real angle)
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
/* A = U diag(sigma) V^T with U and V rotations (det +1): sigma.x >= sigma.y >= |sigma.z|, sigma.z < 0 when det
   A < 0. */
FSI_API void fsi_m3_svd(fsi_mat3 a, fsi_mat3 *u, fsi_vec3 *sigma, fsi_mat3 *v);
/* A = R S with det R = +1 always and S symmetric (with one negative eigenvalue when det A < 0): R is the rotation
   closest to A. Where it is not unique (rank below 2) it is some rotation. stretch may be NULL. */
FSI_API void fsi_m3_polar(fsi_mat3 a, fsi_mat3 *rotation, fsi_mat3 *stretch);

/* ---- >>bodies --------------------------------------------------------------------------------------------------- */

/* Where a rigid thing is. */
typedef struct fsi_pose {
    fsi_vec3 position;     /* of a body's centre of mass; of the origin of a mesh's coordinates [m] */
    fsi_quat orientation;  /* unit; takes body axes to world axes */
} fsi_pose;

/* Mass properties of the solid (closed) or of the sheet with the given thickness (other kinds). */
typedef struct fsi_mass_properties {
    fsi_real volume;      /* [m^3]; 2D: area [m^2] */
    fsi_real mass;        /* [kg] (2D: per metre of depth) */
    fsi_vec3 center;      /* centre of mass [m] */
    fsi_mat3 inertia;     /* about the centre [kg m^2] */
} fsi_mass_properties;

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
    fsi_pose end;              /* at its end; PRESCRIBED: set it in every step; COUPLED: an output, where the simulator
                                  left it */
    fsi_vec3 velocity;         /* of the centre at the beginning [m/s]: COUPLED only, as all that follows */
    fsi_vec3 angular_velocity; /* [rad/s] */
    fsi_real mass;             /* > 0 [kg]; default 1 */
    fsi_mat3 inertia;          /* about the centre in BODY axes [kg m^2], symmetric, positive definite; default
                                  identity. 2D: moment I about z as fsi_m3_diagonal((I/2, I/2, I)) */
    fsi_vec3 force, torque;    /* of everything but the liquid, constant over the step, gravity included [N, N m] */
    /* Outputs of a step. */
    fsi_vec3 impulse, angular_impulse;               /* what the liquid gave to the body [N s, N m s] */
    fsi_vec3 reaction_force, reaction_torque;        /* the same, divided by the length of the step [N, N m] */
    fsi_vec3 new_velocity, new_angular_velocity;     /* COUPLED: after `force`, `torque` and liquid, with the
                                                        orientation of `pose` (the gyroscopic turn is left to who
                                                        integrates the pose); PRESCRIBED: those of the sweep */
} fsi_body;

/* At the origin, unit mass and inertia, at rest, PRESCRIBED. */
FSI_API fsi_body fsi_default_body(void);
/* COUPLED, at rest at the centre of mass of `properties`; body axes are the axes in which these were computed. */
FSI_API fsi_body fsi_body_from_mass(const fsi_mass_properties *properties);
/* Refuses what a simulator cannot use. Errors, each naming body `index` (error.element) and the field: COOKIE; NAN;
   ARGUMENT: mode, quaternion off unit length by more than 1e-3, and for COUPLED mass <= 0, inertia not symmetric, not
   positive definite, or with a principal moment above the sum of the two others (no body has that). context may be
   NULL. */
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
/* For owners who leave integration to a simulator that took substeps: `pose` becomes `end`, and the velocities are
   those there, with the angular momentum of new_angular_velocity. Then the body stands exactly where the simulator left
   it. */
FSI_API void fsi_body_accept(fsi_body *body);

/* ---- >>dense ----------------------------------------------------------------------------------------------------

   Small dense definite systems in double, up to some hundred rows, in place, on one thread. a is n x n numbers row by
   row, of which the lower triangle is read. Its numbers are at most 1e280: beyond that, elimination could overflow.
   Nothing is allocated. context may be NULL. */

/* A = L L^T for definite A; L takes the place of the lower triangle, L^T is above. Errors: COOKIE, ARGUMENT, LIMIT, NAN
   (name the row), and SINGULAR (names the row whose pivot is not positive, or is nothing but rounding; where earlier
   pivots are small, a singular matrix may pass for a nearly singular one). The lower triangle then is as it was; after
   SINGULAR the upper one is its mirror image. */
FSI_API fsi_status fsi_dense_cholesky(fsi_context *context, int n, double *a);
/* x = A^-1 x, with what fsi_dense_cholesky made. Errors: ARGUMENT, NAN (x is not finite and stays; or A^-1 x overflows,
   x is 0 then). */
FSI_API fsi_status fsi_dense_cholesky_solve(int n, const double *l, double *x);

/* ---- >>stages: for fsi's own headers, not for you ------------------------------------------------------------- */

/* A function whose body stays its own: inlined, compilers vectorise the wrong loop of a kernel. */
#if defined(__GNUC__) || defined(__clang__)
#define FSI__NOINLINE __attribute__((noinline))
#elif defined(_MSC_VER)
#define FSI__NOINLINE __declspec(noinline)
#else
#define FSI__NOINLINE
#endif

/* Identifies a struct: kind, size, precision and version. First member of every desc and simulator. */
#define FSI__COOKIE(tag, type) ((uint32_t)(0xF51u << 20) ^ ((uint32_t)(tag) << 12) ^ (uint32_t)sizeof(type) * 40503u \
    ^ (uint32_t)(sizeof(fsi_real) << 8) ^ (uint32_t)FSI_VERSION)

/* No context, or one that fsi_default_context made. */
FSI_FN int fsi__is_context(const fsi_context *context)
{
    return !context || context->cookie == FSI__COOKIE('c', fsi_context);
}

/* No device, or one of this version and precision. */
FSI_FN int fsi__is_device(const fsi_context *context)
{
    return !context || !context->device || context->device->cookie == FSI__COOKIE('d', fsi_device);
}

/* Records a failure in `context` (may be NULL) and returns `status`. */
FSI_API fsi_status fsi__fail(fsi_context *context, fsi_status status, const char *function, long long element,
    double value, const char *format, ...) FSI__PRINTF(6, 7);
FSI_API void fsi__note(fsi_context *context, int level, const char *text); /* to the message hook, if there is one */
/* What every fsi_*_error returns: the context's last failure; NULL: no simulator, a constant text that says where to
   read why. */
FSI_API const fsi_error *fsi__error_of(const fsi_context *context);
/* A warning (level 1), for a call that succeeds but did less than it was asked for: once a call, after its commit. */
FSI_API void fsi__warn(fsi_context *context, const char *format, ...) FSI__PRINTF(2, 3);
/* Passes a failure on: returns from the calling function with the status of `call` where that is not FSI_OK. */
#define FSI__TRY(call) \
    do { const fsi_status fsi__tried = (call); if (fsi__tried != FSI_OK) return fsi__tried; } while (0)

/* Descs are checked by tables, a row a field: a number must be finite and lie from lo to hi, and so must the length of
   a vector, which in 2D lies in the plane. FSI__HUGE and -FSI__HUGE are no ends. Flags change the range. */
typedef enum fsi__field_kind {
    FSI__INT,     /* int, and every enum, whatever its size */
    FSI__LONG,    /* long long */
    FSI__BYTE,    /* unsigned char */
    FSI__REAL,    /* fsi_real; lo and hi are rounded to it */
    FSI__DOUBLE,
    FSI__VEC3
} fsi__field_kind;
enum {
    FSI__ABOVE = 1,     /* lo itself is refused */
    FSI__BELOW = 2,     /* hi itself is refused */
    FSI__OR_ZERO = 4,   /* 0 is taken as well: automatic */
    FSI__OR_UNSET = 8,  /* -1 is taken as well: not given */
    FSI__FROM_LAST = 16, FSI__TO_LAST = 32 /* lo, hi is the value of the row before */
};
typedef struct fsi__field {
    const char *name;
    size_t offset, size;
    int kind, flags;
    double lo, hi;
} fsi__field;
/* A row for a field of a struct; also for `gravity.x` and for `n[0]`. */
#define FSI__FIELD(type, field, kind, lo, hi, flags) \
    { #field, offsetof(type, field), sizeof ((type *)0)->field, (int)(kind), (int)(flags), lo, hi }
/* A row for a vector of any length. */
#define FSI__FINITE(type, field) FSI__FIELD(type, field, FSI__VEC3, 0, FSI__HUGE, 0)
/* A row for a direction: a vector with a length, whose square is an fsi_real. */
#define FSI__DIRECTION(type, field) FSI__FIELD(type, field, FSI__VEC3, 1e-18, 1e18, 0)
/* A row for an argument of a function, whose address is given for that of the desc. */
#define FSI__VALUE(argument, kind, lo, hi, flags) \
    { #argument, 0, sizeof(argument), (int)(kind), (int)(flags), lo, hi }
/* Whose desc it is, for messages. */
typedef struct fsi__where {
    const char *function; /* the public one */
    const char *of;       /* stands before the names of fields: "desc.", "body 3: " */
    long long element;    /* error.element */
    int dim;              /* 2: vectors have z = 0 */
} fsi__where;
/* The same for one of several structs: `of` becomes "body 3: ". */
FSI_API fsi__where fsi__where_of(const char *function, const char *what, int index, char of[40]);
/* Errors: NAN, ARGUMENT, of the first row that is violated. Texts: "desc.dx is not finite"; "desc.cfl is 5, must be 0
   to 1". */
FSI_API fsi_status fsi__check_rows(fsi_context *context, const fsi__where *where, const void *desc,
    const fsi__field *rows, int count);
/* The same for all rows of an array. */
#define FSI__CHECK_TABLE(context, where, desc, rows) \
    fsi__check_rows(context, where, desc, rows, (int)(sizeof(rows) / sizeof *(rows)))
/* A pose: finite, its quaternion of unit length to 1e-3. Errors: NAN, ARGUMENT ("desc.pose.position is not finite"). */
FSI_API fsi_status fsi__check_pose(fsi_context *context, const fsi__where *where, const char *name, fsi_pose p);
/* Fields that a set_desc cannot change: a row each, compared byte by byte. */
typedef struct fsi__fixed {
    const char *name;
    size_t offset, size;
} fsi__fixed;
#define FSI__FIXED(type, field) { #field, offsetof(type, field), sizeof ((type *)0)->field }
/* Are these fields of `desc` those of `now`, what the simulator has? Error: ARGUMENT, "desc.dim cannot change". */
FSI_API fsi_status fsi__check_fixed(fsi_context *context, const char *function, const void *desc, const void *now,
    const fsi__fixed *rows, int count);
#define FSI__CHECK_FIXED(context, function, desc, now, rows) \
    fsi__check_fixed(context, function, desc, now, rows, (int)(sizeof(rows) / sizeof *(rows)))
/* A desc whose cookie stands first and is that of `maker`, the function that fills it. Errors: ARGUMENT, COOKIE.
   Meshes: fsi__check_mesh of fsi_mesh.h. */
FSI_API fsi_status fsi__check_filled(fsi_context *context, const char *function, const void *desc, uint32_t cookie,
    const char *maker);
/* Steps of all simulators: dt is 0 (nothing moves, stats are filled) or 1e-12 to 1000 s. Errors: ARGUMENT. */
FSI_API fsi_status fsi__check_dt(fsi_context *context, fsi_real dt, const char *function);

/* 64-byte aligned, zeroed; NULL when it fails, overflows; count 0 is 1 */
FSI_API void *fsi__alloc(fsi_context *context, size_t count, size_t size);
FSI_API void fsi__free(fsi_context *context, void *memory, size_t count, size_t size);
FSI_API double fsi__now(const fsi_context *context); /* seconds by the clock hook; 0: there is none */

/* A column: one array of a table whose rows are particles, vertices, bodies ... */
typedef struct fsi__column {
    void **array;  /* address of the pointer to the array */
    size_t size;   /* bytes per row */
} fsi__column;
/* Grows all columns to `capacity` rows, keeping `rows`; all or none. New rows are zero. */
FSI_API fsi_status fsi__grow(fsi_context *context, const fsi__column *columns, int column_count, int rows,
    int *capacity, int new_capacity, const char *function);
/* Room for `need` rows, asked for seldom: a table that has fewer grows to `need`, a quarter more and 16. The first
   `rows` rows stay. */
FSI_API fsi_status fsi__room(fsi_context *context, const fsi__column *columns, int column_count, int rows,
    int *capacity, int need, const char *function);
/* The same for one array of rows of `size` bytes; `array` is the address of its pointer. */
FSI_API fsi_status fsi__room_in(fsi_context *context, void *array, size_t size, int rows, int *capacity, int need,
                                const char *function);
/* Frees the arrays of a table of `capacity` rows. */
FSI_API void fsi__free_columns(fsi_context *context, const fsi__column *columns, int column_count, int capacity);
/* drops rows r with gone[r]; returns how many stay */
FSI_API int fsi__compact(const fsi__column *columns, int column_count, int rows, const unsigned char *gone);
/* does p point into an array that growing moves? */
FSI_API int fsi__owns(const fsi__column *columns, int column_count, int capacity, const void *p);

/* Scratch in one block. Lay it out twice: first measuring (base NULL), then for real. */
typedef struct fsi__arena {
    unsigned char *base;
    size_t size, used;
} fsi__arena;
FSI_API void *fsi__take(fsi__arena *arena, size_t count, size_t size);  /* 64-byte aligned; NULL while measuring */
/* 1 when it holds `size`; contents are lost when it grows; used becomes 0 */
FSI_API int fsi__arena_reserve(fsi_context *context, fsi__arena *arena, size_t size);
/* The same, asked for seldom: an arena that is smaller grows to `size` and a quarter more, and 1 kB. */
FSI_API int fsi__arena_room(fsi_context *context, fsi__arena *arena, size_t size);
FSI_API void fsi__arena_free(fsi_context *context, fsi__arena *arena); /* leaves it empty */

/* Runs fn over 0..count-1 in chunks of `grain`: chunk c is [c*grain, min(count, (c+1)*grain)). */
typedef void fsi__range_fn(void *arg, int chunk, int begin, int end);
/* by the context's hook */
FSI_API void fsi__parallel(fsi_context *context, int count, int grain, fsi__range_fn *fn, void *arg);
/* The same where the work is known: that many nanoseconds on one thread, rather too few than too many. Work below
   FSI__DISPATCH_WORTH runs here, chunk after chunk: waking other threads would take as long. */
FSI_API void fsi__parallel_work(fsi_context *context, int count, int grain, double work, fsi__range_fn *fn, void *arg);
FSI_FN int fsi__chunks(int count, int grain) { return count > 0 ? (count - 1) / grain + 1 : 0; }
typedef int fsi__test_fn(const void *arg, int i);
/* How many i of 0..count-1 is fn true for; *first (NULL ok) the first of them, else -1. On all threads. */
FSI_API int fsi__count_where(fsi_context *context, int count, fsi__test_fn *fn, const void *arg, int *first);

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
FSI_API fsi_status fsi__save(fsi_context *context, uint32_t cookie, fsi__state_fn *fn, void *simulator, void *buffer,
    size_t capacity, size_t *size, const char *function);
/* Checks header, length and checksum, and opens a stream on the payload; the simulator is not touched. */
FSI_API fsi_status fsi__load_begin(fsi_context *context, uint32_t cookie, const void *buffer, size_t size,
    fsi__stream *stream, const char *function);
FSI_API uint64_t fsi__state_hash(fsi__state_fn *fn, void *simulator); /* of the bytes that fn names */

FSI_FN int fsi__clamp_int(int i, int most) { return i < 0 ? 0 : (i > most ? most : i); }
FSI_FN fsi_real fsi__axis(fsi_vec3 v, int axis) { return axis == 0 ? v.x : axis == 1 ? v.y : v.z; }

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
FSI_FN fsi__d3 fsi__d3_madd(fsi__d3 a, double s, fsi__d3 b)
{
    return fsi__d3_make(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z);
}
FSI_FN fsi__d3 fsi__d3_diff(fsi_vec3 a, fsi_vec3 b) { return fsi__d3_sub(fsi__d3_of(a), fsi__d3_of(b)); }
FSI_FN fsi__d3 fsi__d3_over(fsi__d3 a, double s) { return fsi__d3_make(a.x / s, a.y / s, a.z / s); }
FSI_FN double fsi__d3_dot(fsi__d3 a, fsi__d3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
FSI_FN fsi__d3 fsi__d3_cross(fsi__d3 a, fsi__d3 b)
{
    return fsi__d3_make(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
FSI_FN double fsi__d3_norm(fsi__d3 a) { return sqrt(fsi__d3_dot(a, a)); }
FSI_FN fsi__d3 fsi__d3_zero(void) { return fsi__d3_make(0, 0, 0); }
FSI_FN fsi__d3 fsi__d3_unit(fsi__d3 a) { double n = fsi__d3_norm(a); return fsi__d3_scale(a, n > 0 ? 1 / n : 0); }
FSI_FN double fsi__d3_axis(fsi__d3 a, int k) { return k == 0 ? a.x : (k == 1 ? a.y : a.z); }
/* The rotation in which masses with the second moments sum m x x^T about their centre have the angular momentum l; 0
   where they lie on a line or, in 2D, at a point. */
FSI_FN fsi__d3 fsi__d3_spin(int dim, const double *second, fsi__d3 l)
{
    const double trace = second[0] + second[4] + (dim == 3 ? second[8] : 0);
    double inertia[9], inverse[9];
    int i;
    if (!(trace > 0)) return fsi__d3_zero();
    if (dim == 2) return fsi__d3_make(0, 0, l.z / trace);
    for (i = 0; i < 9; i++) inertia[i] = (i % 4 == 0 ? 1 : 0) - second[i] / trace;
    fsi__d9_inverse(inertia, inverse);
    if (!(fabs(inverse[0]) + fabs(inverse[4]) + fabs(inverse[8]) < 1e12)) return fsi__d3_zero();
    return fsi__d3_over(fsi__d3_make(fsi__d3_dot(fsi__d3_at(inverse), l), fsi__d3_dot(fsi__d3_at(inverse + 3), l),
        fsi__d3_dot(fsi__d3_at(inverse + 6), l)), trace);
}
/* A unit vector normal to n: the cross product with the axis that is farthest from it. */
FSI_FN fsi__d3 fsi__d3_normal_to(fsi__d3 n)
{
    fsi__d3 e = fsi__d3_zero();
    if (fabs(n.x) <= fabs(n.y) && fabs(n.x) <= fabs(n.z)) e.x = 1;
    else if (fabs(n.y) <= fabs(n.z)) e.y = 1;
    else e.z = 1;
    return fsi__d3_unit(fsi__d3_cross(n, e));
}

/* 3x3 matrices in double: nine numbers row by row. */
FSI_FN fsi__d3 fsi__d9_mul(const double *m, fsi__d3 v) /* M v */
{
    return fsi__d3_make(m[0] * v.x + m[1] * v.y + m[2] * v.z, m[3] * v.x + m[4] * v.y + m[5] * v.z,
                        m[6] * v.x + m[7] * v.y + m[8] * v.z);
}
FSI_FN fsi__d3 fsi__d9_mul_t(const double *m, fsi__d3 v) /* M^T v */
{
    return fsi__d3_make(m[0] * v.x + m[3] * v.y + m[6] * v.z, m[1] * v.x + m[4] * v.y + m[7] * v.z,
                        m[2] * v.x + m[5] * v.y + m[8] * v.z);
}
FSI_FN fsi__d3 fsi__d9_column(const double *m, int k) { return fsi__d3_make(m[k], m[3 + k], m[6 + k]); }
FSI__STRICT_FN_END
FSI_API void fsi__d9_of_quat(fsi_quat q, double *m);                        /* fsi_quat_matrix in double */
FSI_API void fsi__d9_product(const double *a, const double *b, double *out); /* A B */
FSI_API void fsi__d9_turn(const double *r, const double *a, double *out);   /* R A R^T */
/* The dot product of n numbers, in FSI_LANES sums that are added pairwise: the same bits on every machine. */
FSI_API double fsi__dot(const double *x, const double *y, int n);
/* y = A x for a matrix of n x n numbers and three vectors, x `stride` numbers apart, y three numbers a row. */
FSI_API void fsi__dense_times_3(int n, const double *a, const double *x, size_t stride, double *y);
/* A factor of fsi_dense_cholesky for substitutions that happen often: only the triangle, in the order in which it is
   read, tile after tile of 4 x 4 numbers; a tile on the diagonal holds its inverse. n is rounded up to a multiple of 4
   by rows of the identity. Writes fsi__panels_size(n) numbers. */
FSI_FN size_t fsi__panels_size(int n) { const size_t m = ((size_t)n + 3) / 4; return 8 * m * (m + 1); }
/* l: n x n, as fsi_dense_cholesky leaves it. */
FSI_API void fsi__panels_make(int n, const double *l, double *panels);
/* x = A^-1 x for three right sides, which start `stride` numbers apart and end in zeros up to a multiple of 4. Errors:
   NAN (A^-1 x overflows). */
FSI_API fsi_status fsi__panels_solve_3(int n, const double *panels, double *x, size_t stride);

/* Loads a cache line at p ahead of its use. */
#if defined(__GNUC__) && !defined(__TINYC__)
#define FSI__PREFETCH(p) __builtin_prefetch(p)
#else
#define FSI__PREFETCH(p) ((void)(p))
#endif

/* Sums of four numbers side by side: a vector where the compiler has one, with the same bits. */
#if defined(__GNUC__) && !defined(__TINYC__) && !defined(__CUDACC__) && !defined(FSI_NO_SIMD)
typedef double fsi__four __attribute__((vector_size(32), aligned(8), may_alias));
#define FSI__FOUR_AT(p) (*(const fsi__four *)(const void *)(p))
FSI__STRICT_FN_BEGIN
FSI_FN void fsi__four_get(fsi__four *s, const double *x) { *s = FSI__FOUR_AT(x); }
/* The same for numbers that are used several times: gcc would load an operand again for each use. */
FSI_FN void fsi__four_keep(fsi__four *s, const double *x) { *s = *(const volatile fsi__four *)(const void *)x; }
FSI_FN void fsi__four_put(double *to, const fsi__four *s) { *(fsi__four *)(void *)to = *s; }
FSI_FN void fsi__four_times(fsi__four *s, const double *x, const double *y) /* s += x y, number by number */
{
    *s += FSI__FOUR_AT(x) * FSI__FOUR_AT(y);
}
FSI_FN void fsi__four_madd(fsi__four *s, const double *x, double k) { *s += FSI__FOUR_AT(x) * k; } /* s += k x */
FSI_FN void fsi__four_product(fsi__four *s, const fsi__four *x, const fsi__four *y) { *s += *x * *y; } /* s += x y */
FSI_FN void fsi__four_scaled(fsi__four *s, const fsi__four *x, double k) { *s += *x * k; } /* s += k x */
FSI_FN void fsi__four_add(double *to, const fsi__four *s) { *(fsi__four *)(void *)to += *s; }
FSI_FN double fsi__four_sum(const fsi__four *s) { return ((*s)[0] + (*s)[1]) + ((*s)[2] + (*s)[3]); }
/* Numbers of a and b, counted through both, by their places: constants. */
#if defined(__clang__)
#define FSI__FOUR_MIX(to, a, b, i, j, k, l) const fsi__four to = __builtin_shufflevector(a, b, i, j, k, l)
#else
typedef long long fsi__four_places __attribute__((vector_size(32)));
#define FSI__FOUR_MIX(to, a, b, i, j, k, l) \
    const fsi__four_places to##_places = { i, j, k, l }; \
    const fsi__four to = __builtin_shuffle(a, b, to##_places)
#endif
/* to[k] = fsi__four_sum of s[k * stride], k = 0 .. 3 */
FSI_FN void fsi__four_sums(double *to, const fsi__four *s, int stride)
{
    const fsi__four a = s[0], b = s[stride], c = s[2 * stride], d = s[3 * stride];
    FSI__FOUR_MIX(a0, a, b, 0, 4, 2, 6);
    FSI__FOUR_MIX(a1, a, b, 1, 5, 3, 7);
    FSI__FOUR_MIX(c0, c, d, 0, 4, 2, 6);
    FSI__FOUR_MIX(c1, c, d, 1, 5, 3, 7);
    const fsi__four ab = a0 + a1, cd = c0 + c1;
    FSI__FOUR_MIX(low, ab, cd, 0, 1, 4, 5);
    FSI__FOUR_MIX(high, ab, cd, 2, 3, 6, 7);
    *(fsi__four *)(void *)to = low + high;
}
FSI__STRICT_FN_END

/* Four floats likewise. */
typedef float fsi__quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int fsi__quad_ints __attribute__((vector_size(16), aligned(4), may_alias));
FSI__STRICT_FN_BEGIN
FSI_FN fsi__quad fsi__quad_make(float a, float b, float c, float d)
{
    fsi__quad q = { a, b, c, d };
    return q;
}
FSI_FN fsi__quad fsi__quad_at(const float *p) { return *(const fsi__quad *)(const void *)p; }
FSI_FN float fsi__quad_get(fsi__quad q, int k) { return q[k]; }
FSI_FN fsi__quad fsi__quad_mix(fsi__quad a, fsi__quad b, float f) { return a + (b - a) * f; } /* a + f (b - a) */
FSI_FN void fsi__quad_madd(float *to, fsi__quad q, float w) { *(fsi__quad *)(void *)to += q * w; } /* to += w q */
FSI_FN fsi__quad fsi__quad_add(fsi__quad a, fsi__quad b) { return a + b; }
FSI_FN fsi__quad fsi__quad_sub(fsi__quad a, fsi__quad b) { return a - b; }
FSI_FN fsi__quad fsi__quad_mul(fsi__quad a, fsi__quad b) { return a * b; }
/* Whole parts, towards 0, of numbers that an int holds: as ints in `whole`, as floats returned. */
FSI_FN fsi__quad fsi__quad_whole(fsi__quad q, int *whole)
{
#if defined(__clang__) || __GNUC__ >= 9
    const fsi__quad_ints i = __builtin_convertvector(q, fsi__quad_ints);
    *(fsi__quad_ints *)(void *)whole = i;
    return __builtin_convertvector(i, fsi__quad);
#else
    int k;
    for (k = 0; k < 4; k++) whole[k] = (int)q[k];
    return fsi__quad_make((float)whole[0], (float)whole[1], (float)whole[2], (float)whole[3]);
#endif
}
FSI__STRICT_FN_END
#else
typedef struct fsi__four { double of[4]; } fsi__four;
FSI__STRICT_FN_BEGIN
FSI_FN void fsi__four_get(fsi__four *s, const double *x) { memcpy(s->of, x, sizeof s->of); }
FSI_FN void fsi__four_keep(fsi__four *s, const double *x) { fsi__four_get(s, x); }
FSI_FN void fsi__four_put(double *to, const fsi__four *s) { memcpy(to, s->of, sizeof s->of); }
FSI_FN void fsi__four_times(fsi__four *s, const double *x, const double *y)
{
    int k;
    for (k = 0; k < 4; k++) s->of[k] += x[k] * y[k];
}
FSI_FN void fsi__four_madd(fsi__four *s, const double *x, double k)
{
    int i;
    for (i = 0; i < 4; i++) s->of[i] += x[i] * k;
}
FSI_FN void fsi__four_product(fsi__four *s, const fsi__four *x, const fsi__four *y)
{
    fsi__four_times(s, x->of, y->of);
}
FSI_FN void fsi__four_scaled(fsi__four *s, const fsi__four *x, double k) { fsi__four_madd(s, x->of, k); }
FSI_FN void fsi__four_add(double *to, const fsi__four *s)
{
    int k;
    for (k = 0; k < 4; k++) to[k] += s->of[k];
}
FSI_FN double fsi__four_sum(const fsi__four *s) { return (s->of[0] + s->of[1]) + (s->of[2] + s->of[3]); }
FSI_FN void fsi__four_sums(double *to, const fsi__four *s, int stride)
{
    int k;
    for (k = 0; k < 4; k++) to[k] = fsi__four_sum(&s[k * stride]);
}

typedef struct fsi__quad { float of[4]; } fsi__quad;
FSI_FN fsi__quad fsi__quad_make(float a, float b, float c, float d)
{
    fsi__quad q;
    q.of[0] = a;
    q.of[1] = b;
    q.of[2] = c;
    q.of[3] = d;
    return q;
}
FSI_FN fsi__quad fsi__quad_at(const float *p) { return fsi__quad_make(p[0], p[1], p[2], p[3]); }
FSI_FN float fsi__quad_get(fsi__quad q, int k) { return q.of[k]; }
FSI_FN fsi__quad fsi__quad_mix(fsi__quad a, fsi__quad b, float f)
{
    int k;
    for (k = 0; k < 4; k++) a.of[k] += (b.of[k] - a.of[k]) * f;
    return a;
}
FSI_FN void fsi__quad_madd(float *to, fsi__quad q, float w)
{
    int k;
    for (k = 0; k < 4; k++) to[k] += q.of[k] * w;
}
FSI_FN fsi__quad fsi__quad_add(fsi__quad a, fsi__quad b)
{
    int k;
    for (k = 0; k < 4; k++) a.of[k] += b.of[k];
    return a;
}
FSI_FN fsi__quad fsi__quad_sub(fsi__quad a, fsi__quad b)
{
    int k;
    for (k = 0; k < 4; k++) a.of[k] -= b.of[k];
    return a;
}
FSI_FN fsi__quad fsi__quad_mul(fsi__quad a, fsi__quad b)
{
    int k;
    for (k = 0; k < 4; k++) a.of[k] *= b.of[k];
    return a;
}
FSI_FN fsi__quad fsi__quad_whole(fsi__quad q, int *whole)
{
    int k;
    for (k = 0; k < 4; k++) {
        whole[k] = (int)q.of[k];
        q.of[k] = (float)whole[k];
    }
    return q;
}
FSI__STRICT_FN_END
#endif

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_GROUND_IMPLEMENTATION
#define FSI_GROUND_IMPLEMENTATION
#endif
#ifdef FSI_GROUND_IMPLEMENTATION
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

FSI__COLD_BEGIN

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

FSI_API fsi_status fsi__fail(fsi_context *context, fsi_status status, const char *function, long long element,
    double value, const char *format, ...)
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

/* The value of a field, of a vector its length; NaN or infinite where the field is not finite, and only there. */
static double fsi__field_value(const fsi__field *row, const void *desc)
{
    static const size_t sizes[] = { 0, sizeof(long long), 1, sizeof(fsi_real), sizeof(double), sizeof(fsi_vec3) };
    const void *at = (const unsigned char *)desc + row->offset;
    fsi_vec3 v;
    int i;
    short few;
    (void)sizes;
    FSI_ASSERT(row->kind == FSI__INT || row->size == sizes[row->kind]);
    switch (row->kind) {
    case FSI__INT: /* C++ has enums that are no alias of int; some compilers make them as short as they can */
        if (row->size == 1) return *(const unsigned char *)at;
        if (row->size == sizeof few) { memcpy(&few, at, sizeof few); return few; }
        memcpy(&i, at, sizeof i);
        return i;
    case FSI__LONG: return (double)*(const long long *)at;
    case FSI__BYTE: return *(const unsigned char *)at;
    case FSI__REAL: return (double)*(const fsi_real *)at;
    case FSI__DOUBLE: return *(const double *)at;
    default: break;
    }
    v = *(const fsi_vec3 *)at;
    return fsi_v3_is_finite(v) ? fmin(fsi__d3_norm(fsi__d3_of(v)), FSI__HUGE) : HUGE_VAL;
}

/* "0 to 1", "2 or 3", "above 0", "at least 1, below 4", "1e-3 to 1, or 0". */
static void fsi__range_text(char *text, size_t size, const fsi__field *row, double lo, double hi)
{
    const int from = lo > -FSI__HUGE, to = hi < FSI__HUGE, open = (row->flags & (FSI__ABOVE | FSI__BELOW)) != 0;
    const int two = (row->kind == FSI__INT || row->kind == FSI__BYTE) && hi - lo > 0.5 && hi - lo < 1.5;
    const char *more = row->flags & FSI__OR_ZERO ? ", or 0" : row->flags & FSI__OR_UNSET ? ", or -1" : "";
    const char *above = row->flags & FSI__ABOVE ? "above" : "at least",
        *below = row->flags & FSI__BELOW ? "below" : "at most";
    if (from && to && !open) snprintf(text, size, "%g %s %g%s", lo, two ? "or" : "to", hi, more);
    else if (from && to) snprintf(text, size, "%s %g, %s %g%s", above, lo, below, hi, more);
    else if (from) snprintf(text, size, "%s %g%s", above, lo, more);
    else snprintf(text, size, "%s %g%s", below, hi, more);
}

FSI_API fsi__where fsi__where_of(const char *function, const char *what, int index, char of[40])
{
    fsi__where where;
    snprintf(of, 40, "%s %d: ", what, index);
    where.function = function;
    where.of = of;
    where.element = index;
    where.dim = 3;
    return where;
}

FSI_API fsi_status fsi__check_rows(fsi_context *context, const fsi__where *where, const void *desc,
    const fsi__field *rows, int count)
{
    const char *fn = where->function, *of = where->of, *what;
    char range[80];
    double last = 0;
    int k;
    for (k = 0; k < count; k++) {
        const fsi__field *row = &rows[k];
        const double x = fsi__field_value(row, desc);
        double lo = row->flags & FSI__FROM_LAST ? last : row->lo, hi = row->flags & FSI__TO_LAST ? last : row->hi;
        if (row->kind == FSI__REAL && lo > -FSI__HUGE) lo = (double)(fsi_real)lo;
        if (row->kind == FSI__REAL && hi < FSI__HUGE) hi = (double)(fsi_real)hi;
        last = x;

        /* Finite, and in the plane. */
        if (!fsi_is_finite(x))
            return fsi__fail(context, FSI_ERROR_NAN, fn, where->element, x, "%s%s is not finite", of, row->name);
        if (row->kind == FSI__VEC3 && where->dim == 2) {
            const double z = (double)((const fsi_vec3 *)(const void *)((const unsigned char *)desc + row->offset))->z;
            if (z < 0 || z > 0)
                return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, where->element, z,
                                 "%s%s.z is %g, but the plane of dim 2 is x, y", of, row->name, z);
        }

        /* In the range. */
        if ((row->flags & FSI__ABOVE ? x > lo : x >= lo) && (row->flags & FSI__BELOW ? x < hi : x <= hi)) continue;
        if ((row->flags & FSI__OR_ZERO && x == 0) || (row->flags & FSI__OR_UNSET && x == -1)) continue;
        fsi__range_text(range, sizeof range, row, lo, hi);
        what = row->kind == FSI__VEC3 ? "the length of " : "";
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, where->element, x, "%s%s%s is %g, must be %s", what, of,
            row->name, x, range);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi__check_pose(fsi_context *context, const fsi__where *where, const char *name, fsi_pose p)
{
    const char *fn = where->function, *of = where->of;
    const fsi_quat q = p.orientation;
    double x = (double)q.x, y = (double)q.y, z = (double)q.z, w = (double)q.w, n = sqrt(x * x + y * y + z * z + w * w);
    if (!fsi_v3_is_finite(p.position))
        return fsi__fail(context, FSI_ERROR_NAN, fn, where->element, 0, "%s%s.position is not finite", of, name);
    if (!fsi_is_finite(n))
        return fsi__fail(context, FSI_ERROR_NAN, fn, where->element, n, "%s%s.orientation is not finite", of, name);
    if (fabs(n - 1) <= 1e-3) return FSI_OK;
    return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, where->element, n,
        "%sthe quaternion %s.orientation has length %g, not 1", of, name, n);
}

FSI_API fsi_status fsi__check_fixed(fsi_context *context, const char *function, const void *desc, const void *now,
    const fsi__fixed *rows, int count)
{
    int k;
    for (k = 0; k < count; k++)
        if (memcmp((const char *)desc + rows[k].offset, (const char *)now + rows[k].offset, rows[k].size) != 0)
            return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "desc.%s cannot change", rows[k].name);
    return FSI_OK;
}

FSI_API fsi_status fsi__check_filled(fsi_context *context, const char *function, const void *desc, uint32_t cookie,
    const char *maker)
{
    if (!desc) return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "desc is NULL");
    if (*(const uint32_t *)desc == cookie) return FSI_OK;
    return fsi__fail(context, FSI_ERROR_COOKIE, function, -1, 0,
        "desc was not filled by %s of this version and precision", maker);
}

FSI_API fsi_status fsi__check_dt(fsi_context *context, fsi_real dt, const char *function)
{
    const double seconds = (double)dt;
    if (seconds == 0 || (dt >= (fsi_real)1e-12 && seconds <= 1000)) return FSI_OK;
    return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, seconds,
        "dt is %g seconds, must be 0 or 1e-12 to 1000", seconds);
}

FSI__COLD_END

/* ---- >>memory implementation ---------------------------------------------------------------------------------- */

#define FSI__ALIGN 64

/* calloc with alignment: the start of the block lies just below the address that is handed out. Large blocks come as
   untouched zero pages, which a memset would touch once for nothing. */
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

FSI_API fsi_status fsi__grow(fsi_context *context, const fsi__column *columns, int column_count, int rows,
    int *capacity, int new_capacity, const char *function)
{
    void *fresh[64];
    int k;
    FSI_ASSERT(column_count <= 64);
    if (new_capacity <= *capacity) return FSI_OK;
    for (k = 0; k < column_count; k++) {
        fresh[k] = fsi__alloc(context, (size_t)new_capacity, columns[k].size);
        if (!fresh[k]) {
            while (k-- > 0) fsi__free(context, fresh[k], (size_t)new_capacity, columns[k].size);
            return fsi__fail(context, FSI_ERROR_MEMORY, function, -1, (double)new_capacity, "no memory for %d rows",
                new_capacity);
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
#define FSI__TEAM_LOSS 1e-3 /* most seconds that one loop counts: longer ones were delayed by other programs */
#define FSI__TEAM_DEBT 4e-3 /* when teams have cost that much more than they saved, loops run alone */
#define FSI__TEAM_REST 1.0  /* for that many seconds; then a team is tried again */

/* The threads of a team spin, in the OpenMP runtime, where they wait for each other. On a machine that is busy with
   other programs they wait until the scheduler gives a core to the one that is missing: milliseconds for loops of
   microseconds, with the cores full. A header cannot set OMP_WAIT_POLICY, but it can see what teams save, and do
   without them where they do not. */
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
typedef struct fsi__census {
    fsi__test_fn *fn; const void *arg; int found[FSI__CENSUS], first[FSI__CENSUS];
} fsi__census;

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
    /* never more chunks than there is room for */
    fsi__parallel(context, count, count / FSI__CENSUS + 1, fsi__census_chunk, &c);
    for (k = 0; k < FSI__CENSUS; k++) {
        if (first && found == 0 && c.found[k] > 0) *first = c.first[k];
        found += c.found[k];
    }
    return found;
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

/* Header of a saved state. No padding: 4 * 4 + 2 * 8 bytes. */
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

FSI_API fsi_status fsi__save(fsi_context *context, uint32_t cookie, fsi__state_fn *fn, void *simulator, void *buffer,
    size_t capacity, size_t *size, const char *function)
{
    fsi__stream st;
    fsi__state_header h;
    size_t need;

    /* The size. */
    memset(&st, 0, sizeof st);
    st.ok = 1;
    fn(&st, simulator);
    need = st.used + sizeof h;
    if (size) *size = need;
    if (!buffer)
        return size ? FSI_OK : fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "both buffer and size are NULL");
    if (capacity < need)
        return fsi__fail(context, FSI_ERROR_LIMIT, function, -1, (double)need,
            "the buffer holds %.0f bytes, the state needs %.0f", (double)capacity, (double)need);

    /* Behind the header, which holds a hash of the state. */
    st.mode = FSI__WRITE;
    st.data = (unsigned char *)buffer + sizeof h;
    st.capacity = need - sizeof h;
    st.used = 0;
    fn(&st, simulator);
    h = fsi__make_state_header(cookie, st.used, fsi_hash(st.data, st.used, 0));
    memcpy(buffer, &h, sizeof h);
    return FSI_OK;
}

FSI_API fsi_status fsi__load_begin(fsi_context *context, uint32_t cookie, const void *buffer, size_t size,
    fsi__stream *st, const char *function)
{
    fsi__state_header h, want = fsi__make_state_header(cookie, 0, 0);

    /* The header: a state of fsi. */
    if (!buffer) return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "buffer is NULL");
    if (size < sizeof h)
        return fsi__fail(context, FSI_ERROR_FORMAT, function, (long long)size, 0,
            "the buffer ends after %.0f bytes, inside its header", (double)size);
    memcpy(&h, buffer, sizeof h);
    if (h.magic != want.magic)
        return fsi__fail(context, FSI_ERROR_FORMAT, function, 0, 0,
            "the buffer does not start with an fsi state of this byte order");

    /* Precision, simulator and version, length. */
    if (h.real_size != want.real_size)
        return fsi__fail(context, FSI_ERROR_FORMAT, function, -1, (double)h.real_size,
            "the state holds %u-byte reals, this build has %u-byte ones", (unsigned)h.real_size,
            (unsigned)want.real_size);
    if (h.version != want.version || h.cookie != want.cookie)
        return fsi__fail(context, FSI_ERROR_FORMAT, function, -1, (double)h.version,
            "the state belongs to another simulator or to version %u", (unsigned)h.version);
    if (h.size != size - sizeof h)
        return fsi__fail(context, FSI_ERROR_FORMAT, function, (long long)size, (double)h.size,
            "the state announces %.0f bytes, the buffer holds %.0f", (double)h.size, (double)(size - sizeof h));

    /* The state itself. */
    memset(st, 0, sizeof *st);
    st->data = (unsigned char *)(uintptr_t)buffer + sizeof h;
    st->capacity = size - sizeof h;
    st->mode = FSI__READ;
    st->ok = 1;
    if (fsi_hash(st->data, st->capacity, 0) != h.hash)
        return fsi__fail(context, FSI_ERROR_FORMAT, function, -1, 0, "the state is damaged: its checksum differs");
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

FSI_API void fsi__d9_of_quat(fsi_quat q, double *m)
{
    const double x = (double)q.x, y = (double)q.y, z = (double)q.z, w = (double)q.w;
    const double s = 2 / (x * x + y * y + z * z + w * w);
    m[0] = 1 - s * (y * y + z * z); m[1] = s * (x * y - z * w);     m[2] = s * (x * z + y * w);
    m[3] = s * (x * y + z * w);     m[4] = 1 - s * (x * x + z * z); m[5] = s * (y * z - x * w);
    m[6] = s * (x * z - y * w);     m[7] = s * (y * z + x * w);     m[8] = 1 - s * (x * x + y * y);
}

FSI_API void fsi__d9_product(const double *a, const double *b, double *out)
{
    int i, j;
    for (i = 0; i < 3; i++) for (j = 0; j < 3; j++)
        out[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
}

FSI_API void fsi__d9_turn(const double *r, const double *a, double *out)
{
    double t[9];
    int i, j;
    fsi__d9_product(r, a, t);
    for (i = 0; i < 3; i++) for (j = 0; j < 3; j++)
        out[3 * i + j] = t[3 * i] * r[3 * j] + t[3 * i + 1] * r[3 * j + 1] + t[3 * i + 2] * r[3 * j + 2];
}

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

/* (x, y) <- (c x - s y, s x + c y) for three pairs, `stride` apart; h = s/(1 + c) keeps what is lost in c (Rutishauser
   1966). */
static void fsi__m3_turn(double *x, double *y, int stride, double s, double h)
{
    int k;
    for (k = 0; k < 3 * stride; k += stride) {
        double a = x[k], b = y[k];
        x[k] = a - s * (b + h * a);
        y[k] = b + s * (a - h * b);
    }
}

/* The rotation (s, h) that makes [[app, apq], [apq, aqq]] diagonal (Jacobi 1846): tan 2a = 2 apq/(aqq - app),
   |a| <= pi/4. */
static void fsi__jacobi(double app, double apq, double aqq, double *s, double *h)
{
    double d = 0.5 * (aqq - app), r = sqrt(d * d + apq * apq),
        t = fabs(apq) < 1e-150 ? 0 : apq / (d >= 0 ? d + r : d - r);
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

    /* Turn pairs of columns until all are orthogonal. */
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

    /* Their lengths; the last one takes the sign of the determinant. */
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
        s[3 * i + j] = v[3 * i] * v[3 * j] * d[0] + v[3 * i + 1] * v[3 * j + 1] * d[1]
            + v[3 * i + 2] * v[3 * j + 2] * d[2];
    }
    *rotation = fsi__m3_from(r, scale == scale ? 1 : scale);
    if (stretch) *stretch = fsi__m3_from(s, scale);
}

/* ---- >>dense implementation -------------------------------------------------------------------------------------- */

FSI_API double fsi__dot(const double *x, const double *y, int n)
{
    double s[FSI_LANES] = { 0 };
    int i, l;
    for (i = 0; i + FSI_LANES <= n; i += FSI_LANES) for (l = 0; l < FSI_LANES; l++) s[l] += x[i + l] * y[i + l];
    for (l = 0; i + l < n; l++) s[l] += x[i + l] * y[i + l];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* Eight roundings: a pivot below this, times its row, times the entry that it was reduced from, counts as 0. */
#define FSI__DENSE_ROUNDING 1.8e-15
/* The largest entry: growth in the elimination and squares of L stay finite. */
#define FSI__DENSE_LARGEST 1e280

/* Tile of 4 x 8 sums over rows p of U: out_ij = sum of U_p,row+i U_p,column+j. A call of its own, so that the sums stay
   in registers. */
enum { FSI__DENSE_ROWS = 4, FSI__DENSE_COLS = 8 };
FSI__NOINLINE static void fsi__dense_tile(int k, size_t n, const double *row, const double *column, double *out)
{
    double sum[FSI__DENSE_ROWS][FSI__DENSE_COLS];
    int i, j, p;
    for (i = 0; i < FSI__DENSE_ROWS; i++) for (j = 0; j < FSI__DENSE_COLS; j++) sum[i][j] = 0;
    for (p = 0; p < k; p++, row += n, column += n) {
        for (i = 0; i < FSI__DENSE_ROWS; i++) {
            const double u = row[i];
            for (j = 0; j < FSI__DENSE_COLS; j++) sum[i][j] += u * column[j];
        }
    }
    for (i = 0; i < FSI__DENSE_ROWS; i++) for (j = 0; j < FSI__DENSE_COLS; j++)
        out[i * FSI__DENSE_COLS + j] = sum[i][j];
}

/* The lower triangle is there, and elimination cannot overflow. */
static fsi_status fsi__dense_check(fsi_context *c, const char *fn, int n, const double *a)
{
    int i, j;
    if (!fsi__is_context(c)) return FSI_ERROR_COOKIE;
    if (n < 0) return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, n, "the matrix has %d rows", n);
    if ((double)n * n > (double)((size_t)-1 / sizeof(double)))
        return fsi__fail(c, FSI_ERROR_LIMIT, fn, -1, n, "%d x %d numbers are more than can be addressed", n, n);
    if (n > 0 && !a) return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "the matrix is NULL");
    for (i = 0; i < n; i++) for (j = 0; j <= i; j++) {
        const double v = a[(size_t)i * (size_t)n + (size_t)j];
        if (fabs(v) <= FSI__DENSE_LARGEST) continue;
        return fsi__fail(c, fsi_is_finite(v) ? FSI_ERROR_LIMIT : FSI_ERROR_NAN, fn, i, v,
            "row %d holds %g in column %d", i, v, j);
    }
    return FSI_OK;
}

/* x may be solved for. */
static fsi_status fsi__dense_ready(int n, const double *a, const double *x)
{
    int i;
    if (n < 0 || (n > 0 && (!a || !x))) return FSI_ERROR_ARGUMENT;
    for (i = 0; i < n; i++) if (!fsi_is_finite(x[i])) return FSI_ERROR_NAN;
    return FSI_OK;
}

/* Error where a number is not finite: it becomes 0. */
static fsi_status fsi__dense_result(int n, double *x)
{
    int i;
    for (i = 0; i < n && fsi_is_finite(x[i]);) i++;
    if (i == n) return FSI_OK;
    memset(x, 0, (size_t)n * sizeof *x);
    return FSI_ERROR_NAN;
}

static void fsi__dense_mirror(size_t n, double *a)
{
    size_t i, j;
    for (i = 0; i < n; i++) for (j = 0; j < i; j++) a[j * n + i] = a[i * n + j];
}

/* A_jj - sum over k < j of U_kj^2, in the order of k. */
static double fsi__dense_pivot(size_t n, const double *a, size_t j)
{
    double d = a[j * n + j];
    size_t k;
    for (k = 0; k < j; k++) d -= a[k * n + j] * a[k * n + j];
    return d;
}

/* U_ji = A_ij - sum over k < top of U_kj U_ki for the rows j from top to bottom, i > j; what the rows from top on
   subtract, and the division by U_jj, are yet to come. A tile may reach past the end of a row, into the next; what it
   sums there is not used. */
static void fsi__dense_strip(size_t n, double *a, size_t top, size_t bottom)
{
    double sum[FSI__DENSE_ROWS * FSI__DENSE_COLS];
    size_t i, j, left;
    for (left = top; left < n; left += FSI__DENSE_COLS) {
        const size_t right = n - left < FSI__DENSE_COLS ? n : left + FSI__DENSE_COLS;
        fsi__dense_tile((int)top, n, a + top, a + left, sum);
        for (j = top; j < bottom; j++) for (i = left > j ? left : j + 1; i < right; i++)
            a[j * n + i] = a[i * n + j] - sum[(j - top) * FSI__DENSE_COLS + i - left];
    }
}

/* A = U^T U by rows of U = L^T above the diagonal (Cholesky): U_jj^2 = A_jj - sum over k < j of U_kj^2. A itself stays
   where it is until nothing can fail any more; no room is left for U_jj meanwhile, which is found again at the end. */
FSI_API fsi_status fsi_dense_cholesky(fsi_context *context, int n, double *a)
{
    const char *fn = "fsi_dense_cholesky";
    const size_t w = (size_t)n;
    size_t top, bottom, i, j, k;
    FSI__TRY(fsi__dense_check(context, fn, n, a));

    /* The factorisation, by strips of rows; within a strip row after row. */
    for (top = 0; top < w; top = bottom) {
        bottom = w - top < FSI__DENSE_ROWS ? w : top + FSI__DENSE_ROWS;
        if (bottom > top + 1) fsi__dense_strip(w, a, top, bottom);
        for (j = top; j < bottom; j++) {
            const double d = fsi__dense_pivot(w, a, j);
            double *row = a + j * w, inverse;
            if (!(d > (double)(j + 1) * FSI__DENSE_ROUNDING * fabs(row[j]))) {
                fsi__dense_mirror(w, a);
                return fsi__fail(context, FSI_ERROR_SINGULAR, fn, (long long)j, d,
                    "row %d: its pivot is %g, not positive or nothing but rounding", (int)j, d);
            }
            inverse = 1 / sqrt(d);
            for (i = j + 1; i < w; i++) row[i] *= inverse;
            for (k = j + 1; k < bottom; k++) for (i = k + 1; i < w; i++) a[k * w + i] -= row[k] * row[i];
        }
    }

    /* U becomes L, in its place. Cannot fail. */
    for (j = 0; j < w; j++) {
        a[j * w + j] = sqrt(fsi__dense_pivot(w, a, j));
        for (i = 0; i < j; i++) a[j * w + i] = a[i * w + j];
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_dense_cholesky_solve(int n, const double *l, double *x)
{
    int i, j;
    FSI__TRY(fsi__dense_ready(n, l, x));
    for (i = 0; i < n; i++) { /* L y = b */
        const double *row = l + (size_t)i * (size_t)n;
        x[i] = (x[i] - fsi__dot(row, x, i)) / row[i];
    }
    for (i = n - 1; i >= 0; i--) { /* L^T x = y */
        const double *row = l + (size_t)i * (size_t)n;
        x[i] /= row[i];
        for (j = 0; j < i; j++) x[j] -= row[j] * x[i];
    }
    return fsi__dense_result(n, x);
}

/* The products of four rows with three vectors: out[3 r + c]. */
static void fsi__dense_rows_3(int n, const double *const *row, const double *x, size_t stride, double *out)
{
    fsi__four sum[12], y[3], a;
    int j, r, c;
    memset(sum, 0, sizeof sum);
    for (j = 0; j + 4 <= n; j += 4) {
        for (c = 0; c < 3; c++) fsi__four_keep(&y[c], x + (size_t)c * stride + (size_t)j);
        for (r = 0; r < 4; r++) {
            fsi__four_keep(&a, row[r] + j);
            for (c = 0; c < 3; c++) fsi__four_product(&sum[3 * r + c], &a, &y[c]);
        }
    }
    for (r = 0; r < 12; r++) out[r] = fsi__four_sum(&sum[r]);
    for (; j < n; j++) for (r = 0; r < 4; r++) for (c = 0; c < 3; c++)
        out[3 * r + c] += row[r][j] * x[(size_t)c * stride + (size_t)j];
}

FSI_API void fsi__dense_times_3(int n, const double *a, const double *x, size_t stride, double *y)
{
    int i, r;
    for (i = 0; i < n; i += 4) {
        const int rows = n - i < 4 ? n - i : 4;
        const double *row[4];
        double out[12];
        for (r = 0; r < 4; r++) row[r] = a + (size_t)(i + (r < rows ? r : 0)) * (size_t)n;
        fsi__dense_rows_3(n, row, x, stride, out);
        memcpy(y + 3 * (size_t)i, out, 3 * (size_t)rows * sizeof(double));
    }
}

FSI_API void fsi__panels_make(int n, const double *l, double *panels)
{
    int i, j, r, c, k;
    for (i = 0; i < n; i += 4) for (j = 0; j <= i; j += 4, panels += 16) {
        double tile[16];
        for (r = 0; r < 4; r++) for (c = 0; c < 4; c++)
            tile[4 * r + c] = i + r < n && j + c < n ? l[(size_t)(i + r) * (size_t)n + (size_t)(j + c)]
                                                     : i + r == j + c;
        if (j < i) {
            memcpy(panels, tile, sizeof tile);
            continue;
        }

        /* The inverse of a lower triangle, column by column. */
        memset(panels, 0, sizeof tile);
        for (c = 0; c < 4; c++) for (r = c; r < 4; r++) {
            double sum = r == c;
            for (k = c; k < r; k++) sum -= tile[4 * r + k] * panels[4 * k + c];
            panels[4 * r + c] = sum / tile[4 * r + r];
        }
    }
}

/* Rows 4 p .. 4 p + 3 of L y = b: y = D (b - sum_j L_j y_j), D the inverse on the diagonal. */
static void fsi__panel_forward_3(int p, const double *tile, double *x, size_t stride)
{
    fsi__four sum[12];
    double left[12];
    int j, r, c, k;
    memset(sum, 0, sizeof sum);
    for (j = 0; j < 4 * p; j += 4, tile += 16) {
        fsi__four row, y[3];
        for (c = 0; c < 3; c++) fsi__four_keep(&y[c], x + (size_t)c * stride + (size_t)j);
        for (r = 0; r < 4; r++) {
            fsi__four_keep(&row, tile + 4 * r);
            for (c = 0; c < 3; c++) fsi__four_product(&sum[3 * r + c], &row, &y[c]);
        }
    }
    for (c = 0; c < 3; c++) {
        double *y = x + (size_t)c * stride + 4 * (size_t)p;
        for (r = 0; r < 4; r++) left[4 * c + r] = y[r] - fsi__four_sum(&sum[3 * r + c]);
        for (r = 0; r < 4; r++) for (k = 0, y[r] = 0; k <= r; k++) y[r] += tile[4 * r + k] * left[4 * c + k];
    }
}

/* The same rows of L^T x = y: x = D^T y, which then leaves the rows above: y_j -= L_j^T x. */
static void fsi__panel_backward_3(int p, const double *tile, double *x, size_t stride)
{
    const double *diagonal = tile + 16 * (size_t)p;
    double minus[12] = { 0 };
    int j, r, c, k;
    for (c = 0; c < 3; c++) {
        double *y = x + (size_t)c * stride + 4 * (size_t)p;
        for (r = 0; r < 4; r++) for (k = r; k < 4; k++) minus[4 * c + r] -= diagonal[4 * k + r] * y[k];
        for (r = 0; r < 4; r++) y[r] = -minus[4 * c + r];
    }
    for (j = 0; j < 4 * p; j += 4, tile += 16) {
        fsi__four row, sum[3];
        memset(sum, 0, sizeof sum);
        for (r = 0; r < 4; r++) {
            fsi__four_keep(&row, tile + 4 * r);
            for (c = 0; c < 3; c++) fsi__four_scaled(&sum[c], &row, minus[4 * c + r]);
        }
        for (c = 0; c < 3; c++) fsi__four_add(x + (size_t)c * stride + (size_t)j, &sum[c]);
    }
}

FSI_API fsi_status fsi__panels_solve_3(int n, const double *panels, double *x, size_t stride)
{
    const int m = fsi__chunks(n, 4);
    const double *tile = panels;
    int p, c;
    for (p = 0; p < m; tile += 16 * (size_t)(p + 1), p++) fsi__panel_forward_3(p, tile, x, stride);
    for (p = m - 1; p >= 0; p--) fsi__panel_backward_3(p, tile -= 16 * (size_t)(p + 1), x, stride);
    for (c = 0; c < 3; c++) FSI__TRY(fsi__dense_result(n, x + (size_t)c * stride));
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

static fsi_status fsi__body_check_inertia(fsi_context *context, int index, fsi_mat3 a)
{
    fsi_vec3 e;
    double size = 0, skew = fabs((double)a.m[1] - (double)a.m[3]) + fabs((double)a.m[2] - (double)a.m[6])
                          + fabs((double)a.m[5] - (double)a.m[7]);
    int k;
    for (k = 0; k < 9; k++) size += fabs((double)a.m[k]);
    if (!fsi_is_finite(size))
        return fsi__fail(context, FSI_ERROR_NAN, "fsi_body_check", index, size, "body %d: inertia is not finite",
            index);
    if (!(skew <= 1e-5 * size))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, "fsi_body_check", index, skew,
            "body %d: inertia is not symmetric", index);
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
    static const fsi__field mode[] = { FSI__FIELD(fsi_body, mode, FSI__INT, 0, 1, 0) };
    static const fsi__field coupled[] = {
        FSI__FINITE(fsi_body, velocity), FSI__FINITE(fsi_body, angular_velocity), FSI__FINITE(fsi_body, force),
        FSI__FINITE(fsi_body, torque), FSI__FIELD(fsi_body, mass, FSI__REAL, 0, FSI__HUGE, FSI__ABOVE)
    };
    char of[40];
    const fsi__where at = fsi__where_of("fsi_body_check", "body", index, of);
    if (!body) return fsi__fail(context, FSI_ERROR_ARGUMENT, at.function, index, 0, "body %d is NULL", index);
    if (body->cookie != FSI__COOKIE('b', fsi_body))
        return fsi__fail(context, FSI_ERROR_COOKIE, at.function, index, 0,
            "body %d was not filled by fsi_default_body of this version and precision", index);
    FSI__TRY(FSI__CHECK_TABLE(context, &at, body, mode));
    FSI__TRY(fsi__check_pose(context, &at, "pose", body->pose));
    if (body->mode == FSI_BODY_PRESCRIBED) return fsi__check_pose(context, &at, "end", body->end);
    FSI__TRY(FSI__CHECK_TABLE(context, &at, body, coupled));
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
        body->angular_velocity =
            fsi_m3_mul_v3(fsi_body_world_tensor(body->end.orientation, fsi_m3_inverse(body->inertia)), momentum);
    }
    body->pose = body->end;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
