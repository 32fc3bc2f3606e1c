/* fsi_cuda.cu - heavy kernels of fsi on a GPU: one optional file, compiled by nvcc and linked in.
   SPDX-License-Identifier: MIT

   DO THIS
      nvcc -O3 -fmad=false -c fsi_cuda.cu                  and link fsi_cuda.o (with nvcc, or -lcudart)

      fsi_device *device;
      fsi_error why;
      if (fsi_cuda_create(&device, 0, 0, &why) != FSI_OK) puts(why.message);   // device is NULL then: the CPU works
      context.device = device;                             // before anything is created with this context
      ...
      fsi_cuda_destroy(device);                            // after all of it is destroyed

   WHAT IS IN HERE (search for >>)
      >>device state;  >>runtime  memory, copies and launches: of CUDA, or of the shim
      >>pressure kernels;  >>pressure  the table "fsi_pressure multigrid 1";  >>device  create, destroy, info, stats
   THE SHIM
      The same file compiled as C++ (g++ -std=c++11 -x c++ -c fsi_cuda.cu) makes devices that run on the CPU, for tests:
      index 0 runs the blocks of a kernel in order, 1 in reverse, 2 in four threads, 3 to 999 shuffled by that seed.
   RULES
      A kernel computes one index. It uses no shared memory, no barrier, no atomic; what must wait is the next kernel.
      Arithmetic is the header's, by its FSI_FN functions; sums go by the header's chunks. No managed memory, no global
      state, no device reset; nothing happens before fsi_cuda_create. Docs: docs/cuda.md.
   MACROS: those of fsi.h. FSI_CUDA_BLOCK, threads a block: default 256. */
#include "fsi_pressure.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <stdio.h>
#include <stdlib.h>
#if defined(__CUDACC__)
#include <cuda_runtime.h>
#else
#include <thread>
#endif

#ifndef FSI_CUDA_BLOCK
#define FSI_CUDA_BLOCK 256
#endif

FSI__STRICT_BEGIN

/* One line per kernel. */
#define FSI__CUDA_KERNELS(X)                                                                              \
    X(expand) X(relax) X(relax_first) X(relax_second) X(residual) X(restrict) X(prolong) X(coarsest)       \
    X(multiply) X(multiply_sums) X(start) X(advance) X(largest) X(dot) X(turn) X(gather) X(scatter)        \
    X(gather_single) X(scatter_single) X(sum_runs) X(shift_runs) X(respond)
#define FSI__CUDA_ENUM(name) fsi__cuda_k_##name,
#define FSI__CUDA_NAME(name) #name,
enum { FSI__CUDA_KERNELS(FSI__CUDA_ENUM) fsi__cuda_k_count };

namespace {

const char *const fsi__cuda_names[] = { FSI__CUDA_KERNELS(FSI__CUDA_NAME) };

/* ---- >>device state --------------------------------------------------------------------------------------------- */

/* Shared by all that use the device; `lock` guards what changes. */
struct fsi__cuda {
    fsi_device device;
    int index;
    std::atomic<int> timed;
    fsi_pressure_device pressure;
    fsi_cuda_report report;
    std::mutex lock;
    long long calls, fail_at;  /* allocations, copies and launches so far; the one that fails on purpose, 0: none */
    char name[200];
};

/* A block of device memory that grows and stays. */
struct fsi__cuda_slab { char *base; size_t size; };

/* Cells of one brick: its first, those of the bricks beside it in y and z, its numbers in `faces` (-1: plain). */
struct fsi__cuda_row { int at, lower[2], upper[2], rough; };

struct fsi__cuda_level {
    int bricks, cells, segments, even_bricks, rough_cells;
    float unit;
    fsi_pressure_segment *segment;
    int *start;                /* segments: where their bricks start in `row` */
    fsi__cuda_row *row;        /* bricks, in the order of the segments */
    int *child;
    float *faces, *x, *r, *t;
};

/* A solver's part of the device. */
struct fsi__cuda_work {
    fsi__cuda *owner;
    char text[240];
    fsi__cuda_slab slab, columns;
    int dim, levels, sweeps, segment_chunk, brick_chunk, touched_count, runs, column_count;
    float weight;
    fsi__cuda_level level[FSI__MG_LEVELS];
    double *vector[FSI_PRESSURE_Q + 1];
    int *touched, *run;
    double *some, *partial;    /* some: a number for each touched cell or run */
#if defined(__CUDACC__)
    cudaStream_t stream;
#endif
};

fsi_status fsi__cuda_fail(fsi__cuda_work *w, fsi_status status, const char *what, const char *why)
{
    snprintf(w->text, sizeof w->text, "%s: %s", what, why);
    return status;
}

/* Is this allocation, copy or launch the one that fails on purpose? */
bool fsi__cuda_refuses(fsi__cuda *d)
{
    std::lock_guard<std::mutex> guard(d->lock);
    return ++d->calls == d->fail_at;
}

/* ---- >>runtime -------------------------------------------------------------------------------------------------- */

#if defined(__CUDACC__)

#define FSI_KERNEL(name, arguments)                                                                 \
    static __device__ __forceinline__ void fsi__cuda_one_##name(int i, const arguments &a);          \
    static __global__ void __launch_bounds__(FSI_CUDA_BLOCK) fsi__cuda_##name(int n, const arguments a) \
    {                                                                                               \
        const int step = (int)(gridDim.x * blockDim.x);                                              \
        for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += step)                  \
            fsi__cuda_one_##name(i, a);                                                               \
    }                                                                                               \
    static __device__ __forceinline__ void fsi__cuda_one_##name(int i, const arguments &a)

/* CUDA keeps the device per thread: each entry says which it means. */
fsi_status fsi__cuda_enter(fsi__cuda_work *w)
{
    const cudaError_t e = cudaSetDevice(w->owner->index);
    return e == cudaSuccess ? FSI_OK : fsi__cuda_fail(w, FSI_ERROR_DEVICE, "the device", cudaGetErrorString(e));
}

fsi_status fsi__cuda_said(fsi__cuda_work *w, const char *what, cudaError_t e)
{
    if (e == cudaSuccess) return FSI_OK;
    (void)cudaGetLastError(); /* it would be told again */
    return fsi__cuda_fail(w, e == cudaErrorMemoryAllocation ? FSI_ERROR_MEMORY : FSI_ERROR_DEVICE, what,
        cudaGetErrorString(e));
}

fsi_status fsi__cuda_wait(fsi__cuda_work *w) { return fsi__cuda_said(w, "a kernel", cudaStreamSynchronize(w->stream)); }

void *fsi__cuda_raw_alloc(fsi__cuda_work *, size_t size)
{
    void *p = NULL;
    if (cudaMalloc(&p, size) == cudaSuccess) return p;
    (void)cudaGetLastError();
    return NULL;
}
void fsi__cuda_raw_free(fsi__cuda_work *w, void *p)
{
    if (cudaSetDevice(w->owner->index) == cudaSuccess) (void)cudaFree(p);
}
fsi_status fsi__cuda_raw_copy(fsi__cuda_work *w, void *to, const void *from, size_t size, bool in)
{
    return fsi__cuda_said(w, "a copy",
        cudaMemcpyAsync(to, from, size, in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, w->stream));
}
fsi_status fsi__cuda_raw_clear(fsi__cuda_work *w, void *to, size_t size)
{
    return fsi__cuda_said(w, "a copy", cudaMemsetAsync(to, 0, size, w->stream));
}

template <class A> fsi_status fsi__cuda_raw_run(fsi__cuda_work *w, void (*kernel)(int, const A), int n, const A &a)
{
    const int blocks = (n - 1) / FSI_CUDA_BLOCK + 1;
    A copy = a;
    void *arguments[2] = { &n, &copy };
    return fsi__cuda_said(w, "a launch", cudaLaunchKernel((const void *)kernel,
        dim3((unsigned)(blocks < (1 << 20) ? blocks : 1 << 20)), dim3(FSI_CUDA_BLOCK), arguments, 0, w->stream));
}

#else /* the shim */

#define FSI_KERNEL(name, arguments)                                            \
    static void fsi__cuda_##name(int i, const arguments &a)

fsi_status fsi__cuda_enter(fsi__cuda_work *) { return FSI_OK; }
fsi_status fsi__cuda_wait(fsi__cuda_work *) { return FSI_OK; }
void *fsi__cuda_raw_alloc(fsi__cuda_work *, size_t size)
{
    void *p = malloc(size);
    if (p) memset(p, 0xff, size); /* NaN: what is read before it is written shows */
    return p;
}
void fsi__cuda_raw_free(fsi__cuda_work *, void *p) { free(p); }
fsi_status fsi__cuda_raw_copy(fsi__cuda_work *, void *to, const void *from, size_t size, bool)
{
    if (size > 0) memcpy(to, from, size);
    return FSI_OK;
}
fsi_status fsi__cuda_raw_clear(fsi__cuda_work *, void *to, size_t size)
{
    memset(to, 0, size);
    return FSI_OK;
}

enum { fsi__cuda_reverse = 1, fsi__cuda_threads = 2, fsi__cuda_indices = 1000, fsi__cuda_crew = 4 };

uint32_t fsi__cuda_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* The indices of a block, from below or from above. */
template <class A> void fsi__cuda_block(void (*kernel)(int, const A &), int n, const A &a, int block, bool back)
{
    const int begin = block * FSI_CUDA_BLOCK, end = n - begin < FSI_CUDA_BLOCK ? n : begin + FSI_CUDA_BLOCK;
    if (back) for (int i = end - 1; i >= begin; i--) kernel(i, a);
    else for (int i = begin; i < end; i++) kernel(i, a);
}

/* Every fourth block. */
template <class A> void fsi__cuda_share(void (*kernel)(int, const A &), int n, const A *a, int first, int blocks)
{
    for (int b = first; b < blocks; b += fsi__cuda_crew) fsi__cuda_block(kernel, n, *a, b, false);
}

template <class A> fsi_status fsi__cuda_run_threads(fsi__cuda_work *w, void (*kernel)(int, const A &), int n,
    const A &a, int blocks)
{
    std::thread crew[fsi__cuda_crew];
    fsi_status status = FSI_OK;
    int k;
    try {
        for (k = 0; k < fsi__cuda_crew; k++)
            crew[k] = std::thread(fsi__cuda_share<A>, kernel, n, &a, k, blocks);
    } catch (...) {
        status = fsi__cuda_fail(w, FSI_ERROR_DEVICE, "a launch", "no thread for it");
    }
    for (k = 0; k < fsi__cuda_crew; k++) if (crew[k].joinable()) crew[k].join();
    return status;
}

template <class A> fsi_status fsi__cuda_raw_run(fsi__cuda_work *w, void (*kernel)(int, const A &), int n, const A &a)
{
    const int blocks = (n - 1) / FSI_CUDA_BLOCK + 1, order = w->owner->index;
    uint32_t seed = (uint32_t)order * 2654435761u;
    int *place, b;
    if (order == fsi__cuda_threads) return fsi__cuda_run_threads(w, kernel, n, a, blocks);
    if (order < fsi__cuda_threads) {
        for (b = 0; b < blocks; b++)
            fsi__cuda_block(kernel, n, a, order == fsi__cuda_reverse ? blocks - 1 - b : b, order == fsi__cuda_reverse);
        return FSI_OK;
    }

    /* Shuffled. */
    place = (int *)malloc((size_t)blocks * sizeof *place);
    if (!place) return fsi__cuda_fail(w, FSI_ERROR_MEMORY, "a launch", "no memory for the order of its blocks");
    for (b = 0; b < blocks; b++) {
        const int other = (int)(fsi__cuda_random(&seed) % (uint32_t)(b + 1));
        place[b] = place[other];
        place[other] = b;
    }
    for (b = 0; b < blocks; b++) fsi__cuda_block(kernel, n, a, place[b], fsi__cuda_random(&seed) & 1);
    free(place);
    return FSI_OK;
}

#endif

/* What both have: failures on purpose, limits, counts. */

void fsi__cuda_release(fsi__cuda_work *w, fsi__cuda_slab *slab)
{
    if (!slab->base) return;
    fsi__cuda_raw_free(w, slab->base);
    std::lock_guard<std::mutex> guard(w->owner->lock);
    w->owner->report.bytes -= slab->size;
    slab->base = NULL;
    slab->size = 0;
}

/* Takes `size` bytes into account, if the limit allows. */
bool fsi__cuda_book(fsi__cuda *d, size_t size)
{
    std::lock_guard<std::mutex> guard(d->lock);
    fsi_cuda_report *r = &d->report;
    if (r->memory_limit > 0 && (size > r->memory_limit || r->bytes > r->memory_limit - size)) return false;
    r->bytes += size;
    if (r->bytes > r->peak_bytes) r->peak_bytes = r->bytes;
    return true;
}

/* At least `size` bytes, whose contents are lost where it grows. */
fsi_status fsi__cuda_room(fsi__cuda_work *w, fsi__cuda_slab *slab, size_t size)
{
    void *p = NULL;
    char what[80];
    if (size <= slab->size) return FSI_OK;
    fsi__cuda_release(w, slab);
    snprintf(what, sizeof what, "%.0f bytes", (double)size);
    if (!fsi__cuda_book(w->owner, size)) return fsi__cuda_fail(w, FSI_ERROR_MEMORY, what, "above memory_limit");
    if (!fsi__cuda_refuses(w->owner)) p = fsi__cuda_raw_alloc(w, size);
    if (!p) {
        std::lock_guard<std::mutex> guard(w->owner->lock);
        w->owner->report.bytes -= size;
        return fsi__cuda_fail(w, FSI_ERROR_MEMORY, what, "the device has no room for them");
    }
    slab->base = (char *)p;
    slab->size = size;
    return FSI_OK;
}

fsi_status fsi__cuda_copy(fsi__cuda_work *w, void *to, const void *from, size_t size, bool in)
{
    if (fsi__cuda_refuses(w->owner)) return fsi__cuda_fail(w, FSI_ERROR_DEVICE, "a copy", "it failed on purpose");
    {
        std::lock_guard<std::mutex> guard(w->owner->lock);
        (in ? w->owner->report.sent : w->owner->report.fetched) += (double)size;
        w->owner->report.copies++;
    }
    return fsi__cuda_raw_copy(w, to, from, size, in);
}
fsi_status fsi__cuda_send(fsi__cuda_work *w, void *to, const void *from, size_t size)
{
    return fsi__cuda_copy(w, to, from, size, true);
}
fsi_status fsi__cuda_fetch(fsi__cuda_work *w, void *to, const void *from, size_t size)
{
    FSI__TRY(fsi__cuda_copy(w, to, from, size, false));
    return fsi__cuda_wait(w);
}
fsi_status fsi__cuda_clear(fsi__cuda_work *w, void *to, size_t size)
{
    if (fsi__cuda_refuses(w->owner)) return fsi__cuda_fail(w, FSI_ERROR_DEVICE, "a copy", "it failed on purpose");
    return fsi__cuda_raw_clear(w, to, size);
}

double fsi__cuda_now()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/* Runs a kernel for the indices 0 .. n - 1; `bytes`: what it reads and writes for one. */
template <class K, class A> fsi_status fsi__cuda_run(fsi__cuda_work *w, int id, K kernel, int n, const A &a,
    double bytes)
{
    fsi__cuda *d = w->owner;
    const bool timed = d->timed != 0;
    double start = 0;
    fsi_status status;
    if (n <= 0) return FSI_OK;
    if (fsi__cuda_refuses(d)) return fsi__cuda_fail(w, FSI_ERROR_DEVICE, "a launch", "it failed on purpose");
    if (timed) {
        FSI__TRY(fsi__cuda_wait(w));
        start = fsi__cuda_now();
    }
    status = fsi__cuda_raw_run(w, kernel, n, a);
    if (timed && status == FSI_OK) status = fsi__cuda_wait(w);
    std::lock_guard<std::mutex> guard(d->lock);
    d->report.kernel[id].launches++;
    d->report.kernel[id].bytes += bytes * n;
    if (timed) d->report.kernel[id].seconds += fsi__cuda_now() - start;
    return status;
}
#define FSI__CUDA_RUN(w, name, n, a, bytes) fsi__cuda_run(w, fsi__cuda_k_##name, fsi__cuda_##name, n, a, bytes)

/* ---- >>pressure kernels: V-cycle --------------------------------------------------------------------------------- */

struct fsi__cuda_cells { /* of a level */
    const fsi__cuda_row *row;
    const float *faces;
    size_t n;                  /* numbers in each array of `faces` */
    const float *own, *other, *r;
    float *out;
    float keep, weight, give, unit, all;
};

struct fsi__cuda_lists { const fsi_pressure_segment *segment; const int *start; fsi__cuda_row *row; };

/* The bricks of a segment. */
FSI_KERNEL(expand, fsi__cuda_lists)
{
    const fsi_pressure_segment s = a.segment[i];
    for (int k = 0; k < s.n; k += 8) {
        fsi__cuda_row w;
        w.at = s.at + k;
        w.lower[0] = s.lower[0] + k;
        w.lower[1] = s.lower[1] + k;
        w.upper[0] = s.upper[0] + k;
        w.upper[1] = s.upper[1] + k;
        w.rough = s.rough < 0 ? -1 : s.rough + k;
        a.row[a.start[i] + k / 8] = w;
    }
}

FSI_KERNEL(relax, fsi__cuda_cells)
{
    const fsi__cuda_row w = a.row[i >> 3];
    const int c = i & 7, at = w.at + c;
    const float x = a.own[at], r = a.r[at], lx = a.own[at - 1], ux = a.own[at + 1], ly = a.other[w.lower[0] + c],
        uy = a.other[w.upper[0] + c], lz = a.other[w.lower[1] + c], uz = a.other[w.upper[1] + c];
    if (w.rough < 0) a.out[at] = fsi__mg_relaxed_plain(a.keep, a.give, a.unit, x, r, lx, ux, ly, uy, lz, uz);
    else {
        const float *f = a.faces + w.rough + c;
        a.out[at] = fsi__mg_relaxed_rough(a.keep, a.weight, f[FSI__MG_INVERSE * a.n], x, r, f[0], lx, f[3 * a.n], ux,
            f[a.n], ly, f[4 * a.n], uy, f[2 * a.n], lz, f[5 * a.n], uz);
    }
}

FSI_KERNEL(relax_first, fsi__cuda_cells)
{
    const fsi__cuda_row w = a.row[i >> 3];
    const int c = i & 7, at = w.at + c;
    const float r = a.r[at];
    if (w.rough < 0) a.out[at] = fsi__mg_first_plain(a.give, r);
    else a.out[at] = fsi__mg_first_rough(a.weight, a.faces[FSI__MG_INVERSE * a.n + (size_t)(w.rough + c)], r);
}

FSI_KERNEL(relax_second, fsi__cuda_cells)
{
    const fsi__cuda_row w = a.row[i >> 3];
    const int c = i & 7, at = w.at + c;
    const float r = a.r[at], ly = a.other[w.lower[0] + c], uy = a.other[w.upper[0] + c], lz = a.other[w.lower[1] + c],
        uz = a.other[w.upper[1] + c];
    if (w.rough < 0) a.out[at] = fsi__mg_second_plain(a.give, a.unit, r, ly, uy, lz, uz);
    else {
        const float *f = a.faces + w.rough + c;
        a.out[at] = fsi__mg_second_rough(a.weight, f[FSI__MG_INVERSE * a.n], r, f[a.n], ly, f[4 * a.n], uy, f[2 * a.n],
            lz, f[5 * a.n], uz);
    }
}

FSI_KERNEL(residual, fsi__cuda_cells)
{
    const fsi__cuda_row w = a.row[i >> 3];
    const int c = i & 7, at = w.at + c;
    const float x = a.own[at], r = a.r[at], lx = a.own[at - 1], ux = a.own[at + 1], ly = a.own[w.lower[0] + c],
        uy = a.own[w.upper[0] + c], lz = a.own[w.lower[1] + c], uz = a.own[w.upper[1] + c];
    if (w.rough < 0) a.out[at] = fsi__mg_left_plain(a.all, a.unit, x, r, lx, ux, ly, uy, lz, uz);
    else {
        const float *f = a.faces + w.rough + c;
        a.out[at] = fsi__mg_left_rough(x, r, f[FSI__MG_EXCESS * a.n], f[0], lx, f[3 * a.n], ux, f[a.n], ly, f[4 * a.n],
            uy, f[2 * a.n], lz, f[5 * a.n], uz);
    }
}

struct fsi__cuda_between { const int *child; const float *from; float *to; }; /* two levels */

/* Coarse cell i: of its brick's children those at its end, four of its cells' pairs. */
FSI_KERNEL(restrict, fsi__cuda_between)
{
    const int c = i & 7, *child = a.child + (i & ~7);
    float sum = 0;
    for (int k = c >> 2; k < 8; k += 2) {
        if (child[k] < 0) continue;
        const float *r = a.from + fsi__mg_cell(child[k]) + 2 * (c & 3);
        sum = fsi__mg_restricted(sum, r[0], r[1]);
    }
    a.to[fsi__mg_cell(i >> 3) + c] = sum;
}

/* Cell i & 7 of child i >> 3. */
FSI_KERNEL(prolong, fsi__cuda_between)
{
    const int c = i & 7, k = i >> 3, child = a.child[k];
    if (child < 0) return;
    a.to[fsi__mg_cell(child) + c] += a.from[fsi__mg_cell(k >> 3) + 4 * (k & 1) + (c >> 1)];
}

FSI_KERNEL(coarsest, fsi__cuda_cells)
{
    a.out[FSI__MG_FRONT + i] = a.faces[FSI__MG_INVERSE * a.n + (size_t)i] * a.r[FSI__MG_FRONT + i];
}

/* ---- >>pressure kernels: conjugate gradients --------------------------------------------------------------------- */

struct fsi__cuda_numbers { /* of the finest level */
    const fsi__cuda_row *row;
    const fsi_pressure_segment *segment;
    const float *faces;
    size_t n;
    int segments, bricks, chunk;
    double all, unit, alpha, factor;
    double *b, *x, *r, *p, *q;
    const double *v;
    const float *z;
    float *right;
    double *partial;
};

FSI_KERNEL(multiply, fsi__cuda_numbers)
{
    const fsi__cuda_row w = a.row[i >> 3];
    const int c = i & 7, at = w.at + c;
    const double x = a.v[at], lx = a.v[at - 1], ux = a.v[at + 1], ly = a.v[w.lower[0] + c], uy = a.v[w.upper[0] + c],
        lz = a.v[w.lower[1] + c], uz = a.v[w.upper[1] + c];
    if (w.rough < 0) a.q[at] = fsi__pressure_product_plain(a.all, a.unit, x, lx, ux, ly, uy, lz, uz);
    else {
        const float *f = a.faces + w.rough + c;
        a.q[at] = fsi__pressure_product_rough(x, f[FSI__MG_EXCESS * a.n], f[0], lx, f[3 * a.n], ux, f[a.n], ly,
            f[4 * a.n], uy, f[2 * a.n], lz, f[5 * a.n], uz);
    }
}

/* Sum i & 3 of v q over chunk i >> 2 of segments. */
FSI_KERNEL(multiply_sums, fsi__cuda_numbers)
{
    const int first = (i >> 2) * a.chunk, end = a.segments - first < a.chunk ? a.segments : first + a.chunk;
    double sum = 0;
    for (int k = first; k < end; k++) {
        const int from = a.segment[k].at + (i & 3), to = a.segment[k].at + a.segment[k].n;
        for (int at = from; at < to; at += 4) sum = fsi__pressure_further(sum, a.v[at], a.q[at]);
    }
    a.partial[i] = sum;
}

FSI_KERNEL(start, fsi__cuda_numbers)
{
    const int at = FSI__MG_FRONT + i;
    a.r[at] = a.b[at];
    a.p[at] = 0;
}

FSI_KERNEL(advance, fsi__cuda_numbers)
{
    const int at = FSI__MG_FRONT + i;
    const double left = fsi__pressure_less(a.r[at], a.alpha, a.q[at]);
    a.x[at] = fsi__pressure_further(a.x[at], a.alpha, a.p[at]);
    a.r[at] = left;
    a.right[at] = fsi__pressure_single(left, a.factor);
}

/* Chunk i >> 2 of bricks, every fourth cell: the largest |r|, the scalar product of r and z. */
FSI_KERNEL(largest, fsi__cuda_numbers)
{
    const int first = (i >> 2) * a.chunk, end = a.bricks - first < a.chunk ? a.bricks : first + a.chunk;
    double most = 0;
    for (int at = fsi__mg_cell(first) + (i & 3); at < fsi__mg_cell(end); at += 4)
        most = fsi__pressure_larger(most, fabs(a.r[at]));
    a.partial[i] = most;
}
FSI_KERNEL(dot, fsi__cuda_numbers)
{
    const int first = (i >> 2) * a.chunk, end = a.bricks - first < a.chunk ? a.bricks : first + a.chunk;
    double sum = 0;
    for (int at = fsi__mg_cell(first) + (i & 3); at < fsi__mg_cell(end); at += 4)
        sum = fsi__pressure_further(sum, a.r[at], (double)a.z[at]);
    a.partial[i] = sum;
}

FSI_KERNEL(turn, fsi__cuda_numbers)
{
    const int at = FSI__MG_FRONT + i;
    a.p[at] = fsi__pressure_turned(a.z[at], a.alpha, a.p[at]);
}

/* ---- >>pressure kernels: what the CPU shares --------------------------------------------------------------------- */

struct fsi__cuda_some { const int *list; double *v, *some; float *single, *some_single; };

FSI_KERNEL(gather, fsi__cuda_some) { a.some[i] = a.v[a.list[i]]; }
FSI_KERNEL(scatter, fsi__cuda_some) { a.v[a.list[i]] = a.some[i]; }
FSI_KERNEL(gather_single, fsi__cuda_some) { a.some_single[i] = a.single[a.list[i]]; }
FSI_KERNEL(scatter_single, fsi__cuda_some) { a.single[a.list[i]] = a.some_single[i]; }

/* Run i: its sum, in the four parts of the CPU's; its cells less a mean. */
FSI_KERNEL(sum_runs, fsi__cuda_some)
{
    const double *v = a.v + a.list[2 * i];
    const int n = a.list[2 * i + 1];
    double sum[4] = { 0, 0, 0, 0 };
    int k;
    for (k = 0; k + 4 <= n; k += 4) {
        sum[0] += v[k];
        sum[1] += v[k + 1];
        sum[2] += v[k + 2];
        sum[3] += v[k + 3];
    }
    for (; k < n; k++) sum[0] += v[k];
    a.some[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
}
FSI_KERNEL(shift_runs, fsi__cuda_some)
{
    double *v = a.v + a.list[2 * i];
    for (int k = 0; k < a.list[2 * i + 1]; k++) v[k] -= a.some[i];
}

enum { fsi__cuda_columns = 24 };
struct fsi__cuda_responses { const float *column; float *x; size_t cells; int count; double h[fsi__cuda_columns]; };

FSI_KERNEL(respond, fsi__cuda_responses)
{
    const int at = FSI__MG_FRONT + i;
    double sum = (double)a.x[at];
    for (int k = 0; k < a.count; k++)
        sum = fsi__pressure_less(sum, a.h[k], (double)a.column[a.cells * (size_t)k + (size_t)at]);
    a.x[at] = (float)sum;
}

/* ---- >>pressure -------------------------------------------------------------------------------------------------- */

fsi__cuda_work *fsi__cuda_of(void *work) { return (fsi__cuda_work *)work; }

fsi_status fsi__cuda_pressure_create(void *user, void **work)
{
    fsi__cuda *d = (fsi__cuda *)user;
    fsi__cuda_work *w = fsi__cuda_refuses(d) ? NULL : new (std::nothrow) fsi__cuda_work();
    *work = NULL;
    if (!w) return FSI_ERROR_MEMORY;
    w->owner = d;
#if defined(__CUDACC__)
    if (cudaSetDevice(d->index) != cudaSuccess
        || cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking) != cudaSuccess) {
        (void)cudaGetLastError();
        delete w;
        return FSI_ERROR_DEVICE;
    }
#endif
    *work = w;
    return FSI_OK;
}

void fsi__cuda_pressure_destroy(void *work)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    if (!w) return;
    (void)fsi__cuda_enter(w);
    (void)fsi__cuda_wait(w);
    fsi__cuda_release(w, &w->slab);
    fsi__cuda_release(w, &w->columns);
#if defined(__CUDACC__)
    (void)cudaStreamDestroy(w->stream);
#endif
    delete w;
}

const char *fsi__cuda_pressure_why(void *work) { return fsi__cuda_of(work)->text; }

/* The next `count` numbers of the slab; base NULL: only counted. */
template <class T> void fsi__cuda_take(char *base, size_t *used, T **array, size_t count)
{
    *array = base ? (T *)(void *)(base + *used) : NULL;
    *used += (count * sizeof(T) + 255) / 256 * 256;
}

int fsi__cuda_chunks(int n, int chunk) { return n > 0 ? (n - 1) / chunk + 1 : 0; }

/* Where everything lies in the slab, whose size is returned. */
size_t fsi__cuda_lay_out(fsi__cuda_work *w, const fsi_pressure_problem *p, char *base)
{
    const int most = p->touched_count > p->runs ? p->touched_count : p->runs,
        by_segments = fsi__cuda_chunks(p->level[0].segments, p->segment_chunk),
        by_bricks = fsi__cuda_chunks(p->level[0].bricks, p->brick_chunk);
    size_t used = 0;
    int l, v;
    for (l = 0; l < p->levels; l++) {
        const fsi_pressure_level *f = p->level + l;
        fsi__cuda_level *m = w->level + l;
        fsi__cuda_take(base, &used, &m->segment, (size_t)f->segments);
        fsi__cuda_take(base, &used, &m->start, (size_t)f->segments);
        fsi__cuda_take(base, &used, &m->row, (size_t)f->bricks);
        fsi__cuda_take(base, &used, &m->child, 8 * (size_t)f->bricks);
        fsi__cuda_take(base, &used, &m->faces, FSI__MG_ARRAYS * (size_t)f->rough_cells);
        fsi__cuda_take(base, &used, &m->x, (size_t)f->cells);
        fsi__cuda_take(base, &used, &m->r, (size_t)f->cells);
        fsi__cuda_take(base, &used, &m->t, (size_t)f->cells);
    }
    for (v = 0; v <= FSI_PRESSURE_Q; v++) fsi__cuda_take(base, &used, &w->vector[v], (size_t)p->level[0].cells);
    fsi__cuda_take(base, &used, &w->touched, (size_t)p->touched_count);
    fsi__cuda_take(base, &used, &w->run, 2 * (size_t)p->runs);
    fsi__cuda_take(base, &used, &w->some, (size_t)most);
    fsi__cuda_take(base, &used, &w->partial, 4 * (size_t)(by_segments > by_bricks ? by_segments : by_bricks));
    return used;
}

/* Lists and faces of a level, and zeros in its vectors. */
fsi_status fsi__cuda_send_level(fsi__cuda_work *w, fsi__cuda_level *m, const fsi_pressure_level *f, bool finest,
    int *start)
{
    fsi__cuda_lists lists;
    int k, bricks = 0;
    m->bricks = f->bricks;
    m->cells = f->cells;
    m->segments = f->segments;
    m->rough_cells = f->rough_cells;
    m->unit = f->unit;
    for (k = 0, m->even_bricks = 0; k < f->segments; bricks += f->segment[k++].n / 8) {
        start[k] = bricks;
        if (k < f->odd) m->even_bricks += f->segment[k].n / 8;
    }
    FSI__TRY(fsi__cuda_send(w, m->segment, f->segment, (size_t)f->segments * sizeof *m->segment));
    FSI__TRY(fsi__cuda_send(w, m->start, start, (size_t)f->segments * sizeof *start));
    if (!finest) FSI__TRY(fsi__cuda_send(w, m->child, f->child, 8 * (size_t)f->bricks * sizeof *m->child));
    FSI__TRY(fsi__cuda_send(w, m->faces, f->faces, FSI__MG_ARRAYS * (size_t)f->rough_cells * sizeof(float)));
    FSI__TRY(fsi__cuda_clear(w, m->x, (size_t)f->cells * sizeof(float)));
    FSI__TRY(fsi__cuda_clear(w, m->r, (size_t)f->cells * sizeof(float)));
    FSI__TRY(fsi__cuda_clear(w, m->t, (size_t)f->cells * sizeof(float)));
    lists.segment = m->segment;
    lists.start = m->start;
    lists.row = m->row;
    FSI__TRY(FSI__CUDA_RUN(w, expand, m->segments, lists, 32 + 24.0 * m->bricks / (m->segments + 1)));
    return fsi__cuda_wait(w); /* `start` is used again */
}

fsi_status fsi__cuda_pressure_begin(void *work, const fsi_pressure_problem *p)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    const size_t vector = (size_t)p->level[0].cells * sizeof(double);
    size_t need;
    int *start, l, v, most = 0;
    fsi_status status = FSI_OK;

    /* Room. */
    for (l = 1; l < p->levels; l++)
        if (p->level[l].bricks >= 1 << 25) /* 64 cells a brick are counted by an int */
            return fsi__cuda_fail(w, FSI_ERROR_DEVICE, "the liquid", "it has more cells than a device takes");
    FSI__TRY(fsi__cuda_enter(w));
    w->dim = p->dim;
    w->levels = p->levels;
    w->sweeps = p->sweeps;
    w->weight = p->weight;
    w->segment_chunk = p->segment_chunk;
    w->brick_chunk = p->brick_chunk;
    w->touched_count = p->touched_count;
    w->runs = p->runs;
    w->column_count = 0;
    need = fsi__cuda_lay_out(w, p, NULL);
    FSI__TRY(fsi__cuda_room(w, &w->slab, need));
    fsi__cuda_lay_out(w, p, w->slab.base);

    /* Levels. */
    for (l = 0; l < p->levels; l++) most = p->level[l].segments > most ? p->level[l].segments : most;
    start = (int *)malloc((size_t)most * sizeof *start + 1);
    if (!start) return fsi__cuda_fail(w, FSI_ERROR_MEMORY, "lists of a level", "the host has no room for them");
    for (l = 0; l < p->levels && status == FSI_OK; l++)
        status = fsi__cuda_send_level(w, w->level + l, p->level + l, l == 0, start);
    if (status != FSI_OK) (void)fsi__cuda_wait(w); /* copies may still read it */
    free(start);
    FSI__TRY(status);

    /* Vectors and lists. */
    for (v = 0; v <= FSI_PRESSURE_Q; v++)
        if (v == FSI_PRESSURE_B || v == FSI_PRESSURE_X)
            FSI__TRY(fsi__cuda_send(w, w->vector[v], v == FSI_PRESSURE_B ? p->b : p->x, vector));
        else FSI__TRY(fsi__cuda_clear(w, w->vector[v], vector));
    if (p->touched_count > 0)
        FSI__TRY(fsi__cuda_send(w, w->touched, p->touched, (size_t)p->touched_count * sizeof(int)));
    if (p->runs > 0) FSI__TRY(fsi__cuda_send(w, w->run, p->run, 2 * (size_t)p->runs * sizeof(int)));
    return fsi__cuda_wait(w);
}

void *fsi__cuda_vector(fsi__cuda_work *w, fsi_pressure_vector vector, size_t *size)
{
    *size = (size_t)w->level[0].cells * (vector <= FSI_PRESSURE_Q ? sizeof(double) : sizeof(float));
    if (vector <= FSI_PRESSURE_Q) return w->vector[vector];
    return vector == FSI_PRESSURE_RIGHT ? w->level[0].r : w->level[0].x;
}

fsi_status fsi__cuda_pressure_send(void *work, fsi_pressure_vector vector, const void *numbers)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    size_t size;
    void *to = fsi__cuda_vector(w, vector, &size);
    FSI__TRY(fsi__cuda_enter(w));
    FSI__TRY(fsi__cuda_send(w, to, numbers, size));
    return fsi__cuda_wait(w);
}

fsi_status fsi__cuda_pressure_fetch(void *work, fsi_pressure_vector vector, void *numbers)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    size_t size;
    const void *from = fsi__cuda_vector(w, vector, &size);
    FSI__TRY(fsi__cuda_enter(w));
    return fsi__cuda_fetch(w, numbers, from, size);
}

fsi__cuda_some fsi__cuda_some_of(fsi__cuda_work *w, fsi_pressure_vector vector, const int *list)
{
    fsi__cuda_some a;
    size_t size;
    void *v = fsi__cuda_vector(w, vector, &size);
    a.list = list;
    a.v = vector <= FSI_PRESSURE_Q ? (double *)v : NULL;
    a.single = vector <= FSI_PRESSURE_Q ? NULL : (float *)v;
    a.some = w->some;
    a.some_single = (float *)(void *)w->some;
    return a;
}

fsi_status fsi__cuda_pressure_gather(void *work, fsi_pressure_vector vector, void *numbers)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    const fsi__cuda_some a = fsi__cuda_some_of(w, vector, w->touched);
    const int n = w->touched_count;
    FSI__TRY(fsi__cuda_enter(w));
    if (n == 0) return FSI_OK;
    if (a.v) FSI__TRY(FSI__CUDA_RUN(w, gather, n, a, 20));
    else FSI__TRY(FSI__CUDA_RUN(w, gather_single, n, a, 12));
    return fsi__cuda_fetch(w, numbers, w->some, (size_t)n * (a.v ? sizeof(double) : sizeof(float)));
}

fsi_status fsi__cuda_pressure_scatter(void *work, fsi_pressure_vector vector, const void *numbers)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    const fsi__cuda_some a = fsi__cuda_some_of(w, vector, w->touched);
    const int n = w->touched_count;
    FSI__TRY(fsi__cuda_enter(w));
    if (n == 0) return FSI_OK;
    FSI__TRY(fsi__cuda_send(w, w->some, numbers, (size_t)n * (a.v ? sizeof(double) : sizeof(float))));
    if (a.v) FSI__TRY(FSI__CUDA_RUN(w, scatter, n, a, 20));
    else FSI__TRY(FSI__CUDA_RUN(w, scatter_single, n, a, 12));
    return fsi__cuda_wait(w);
}

fsi_status fsi__cuda_pressure_sum_runs(void *work, fsi_pressure_vector vector, double *sums)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    const fsi__cuda_some a = fsi__cuda_some_of(w, vector, w->run);
    FSI__TRY(fsi__cuda_enter(w));
    FSI__TRY(FSI__CUDA_RUN(w, sum_runs, w->runs, a, 16));
    return fsi__cuda_fetch(w, sums, w->some, (size_t)w->runs * sizeof(double));
}

fsi_status fsi__cuda_pressure_shift_runs(void *work, fsi_pressure_vector vector, const double *means)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    const fsi__cuda_some a = fsi__cuda_some_of(w, vector, w->run);
    FSI__TRY(fsi__cuda_enter(w));
    FSI__TRY(fsi__cuda_send(w, w->some, means, (size_t)w->runs * sizeof(double)));
    FSI__TRY(FSI__CUDA_RUN(w, shift_runs, w->runs, a, 16));
    return fsi__cuda_wait(w);
}

/* What the kernels of a level are given. */
fsi__cuda_cells fsi__cuda_cells_of(const fsi__cuda_work *w, const fsi__cuda_level *m)
{
    fsi__cuda_cells a;
    a.row = m->row;
    a.faces = m->faces;
    a.n = (size_t)m->rough_cells;
    a.own = a.other = m->x;
    a.r = m->r;
    a.out = m->t;
    a.all = 2 * (float)w->dim;
    a.weight = w->weight;
    a.unit = m->unit;
    a.keep = fsi__mg_keep(a.weight);
    a.give = fsi__mg_give(a.weight, a.all, a.unit);
    return a;
}

/* One sweep over both colours, in the other order when `back`; x and t change places. */
fsi_status fsi__cuda_sweep(fsi__cuda_work *w, fsi__cuda_level *m, bool back, bool zero)
{
    fsi__cuda_cells a = fsi__cuda_cells_of(w, m);
    float *x = m->x;
    for (int pass = 0; pass < 2; pass++) {
        const bool odd = (pass == 1) != back;
        const int n = 8 * (odd ? m->bricks - m->even_bricks : m->even_bricks);
        a.row = m->row + (odd ? m->even_bricks : 0);
        a.other = pass ? m->t : x;
        if (!zero) FSI__TRY(FSI__CUDA_RUN(w, relax, n, a, 24));
        else if (!pass) FSI__TRY(FSI__CUDA_RUN(w, relax_first, n, a, 11));
        else FSI__TRY(FSI__CUDA_RUN(w, relax_second, n, a, 15));
    }
    m->x = m->t;
    m->t = x;
    return FSI_OK;
}

/* Down to level l + 1: sweeps from zero, the residual, its sums. */
fsi_status fsi__cuda_descend(fsi__cuda_work *w, int l)
{
    fsi__cuda_level *m = w->level + l, *coarse = m + 1;
    fsi__cuda_cells a;
    fsi__cuda_between b;
    for (int k = 0; k < w->sweeps + (l > 0); k++) FSI__TRY(fsi__cuda_sweep(w, m, false, k == 0));
    a = fsi__cuda_cells_of(w, m);
    FSI__TRY(FSI__CUDA_RUN(w, residual, 8 * m->bricks, a, 15));
    b.child = coarse->child;
    b.from = m->t;
    b.to = coarse->r;
    return FSI__CUDA_RUN(w, restrict, 8 * coarse->bricks, b, 40);
}

/* Up from level l + 1: values to all their cells, sweeps in reverse. */
fsi_status fsi__cuda_ascend(fsi__cuda_work *w, int l)
{
    fsi__cuda_level *m = w->level + l, *coarse = m + 1;
    fsi__cuda_between b;
    b.child = coarse->child;
    b.from = coarse->x;
    b.to = m->x;
    FSI__TRY(FSI__CUDA_RUN(w, prolong, 64 * coarse->bricks, b, 9));
    for (int k = 0; k < w->sweeps + (l > 0); k++) FSI__TRY(fsi__cuda_sweep(w, m, true, false));
    return FSI_OK;
}

fsi_status fsi__cuda_pressure_cycle(void *work)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    fsi__cuda_level *last = w->level + w->levels - 1;
    fsi__cuda_cells a;
    int l;
    FSI__TRY(fsi__cuda_enter(w));
    for (l = 0; l < w->levels - 1; l++) FSI__TRY(fsi__cuda_descend(w, l));
    a = fsi__cuda_cells_of(w, last);
    a.out = last->x;
    FSI__TRY(FSI__CUDA_RUN(w, coarsest, 8, a, 12));
    while (l-- > 0) FSI__TRY(fsi__cuda_ascend(w, l));
    return FSI_OK;
}

/* What the kernels of the iteration are given. */
fsi__cuda_numbers fsi__cuda_numbers_of(const fsi__cuda_work *w)
{
    const fsi__cuda_level *m = w->level;
    fsi__cuda_numbers a;
    a.row = m->row;
    a.segment = m->segment;
    a.faces = m->faces;
    a.n = (size_t)m->rough_cells;
    a.segments = m->segments;
    a.bricks = m->bricks;
    a.chunk = w->brick_chunk;
    a.all = 2.0 * w->dim;
    a.unit = (double)m->unit;
    a.alpha = a.factor = 0;
    a.b = w->vector[FSI_PRESSURE_B];
    a.x = w->vector[FSI_PRESSURE_X];
    a.r = w->vector[FSI_PRESSURE_R];
    a.p = w->vector[FSI_PRESSURE_P];
    a.q = w->vector[FSI_PRESSURE_Q];
    a.v = NULL;
    a.z = m->x;
    a.right = m->r;
    a.partial = w->partial;
    return a;
}

fsi_status fsi__cuda_pressure_multiply(void *work, fsi_pressure_vector v, double *partial)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    fsi__cuda_numbers a = fsi__cuda_numbers_of(w);
    const int sums = 4 * fsi__cuda_chunks(a.segments, w->segment_chunk);
    FSI__TRY(fsi__cuda_enter(w));
    a.v = w->vector[v];
    a.chunk = w->segment_chunk;
    FSI__TRY(FSI__CUDA_RUN(w, multiply, 8 * a.bricks, a, 19));
    FSI__TRY(FSI__CUDA_RUN(w, multiply_sums, sums, a, 128.0 * a.bricks / sums));
    return fsi__cuda_fetch(w, partial, w->partial, (size_t)sums * sizeof(double));
}

fsi_status fsi__cuda_pressure_start(void *work)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    const fsi__cuda_numbers a = fsi__cuda_numbers_of(w);
    FSI__TRY(fsi__cuda_enter(w));
    return FSI__CUDA_RUN(w, start, 8 * a.bricks, a, 24);
}

fsi_status fsi__cuda_pressure_advance(void *work, double alpha, double factor, double *partial)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    fsi__cuda_numbers a = fsi__cuda_numbers_of(w);
    const int sums = 4 * fsi__cuda_chunks(a.bricks, a.chunk);
    FSI__TRY(fsi__cuda_enter(w));
    a.alpha = alpha;
    a.factor = factor;
    FSI__TRY(FSI__CUDA_RUN(w, advance, 8 * a.bricks, a, 52));
    FSI__TRY(FSI__CUDA_RUN(w, largest, sums, a, 64.0 * a.bricks / sums));
    return fsi__cuda_fetch(w, partial, w->partial, (size_t)sums * sizeof(double));
}

fsi_status fsi__cuda_pressure_dot(void *work, double *partial)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    const fsi__cuda_numbers a = fsi__cuda_numbers_of(w);
    const int sums = 4 * fsi__cuda_chunks(a.bricks, a.chunk);
    FSI__TRY(fsi__cuda_enter(w));
    FSI__TRY(FSI__CUDA_RUN(w, dot, sums, a, 96.0 * a.bricks / sums));
    return fsi__cuda_fetch(w, partial, w->partial, (size_t)sums * sizeof(double));
}

fsi_status fsi__cuda_pressure_turn(void *work, double beta)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    fsi__cuda_numbers a = fsi__cuda_numbers_of(w);
    FSI__TRY(fsi__cuda_enter(w));
    a.alpha = beta;
    return FSI__CUDA_RUN(w, turn, 8 * a.bricks, a, 20);
}

fsi_status fsi__cuda_pressure_keep_columns(void *work, int count, const float *columns)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    const size_t size = (size_t)count * (size_t)w->level[0].cells * sizeof(float);
    if (count > fsi__cuda_columns) return fsi__cuda_fail(w, FSI_ERROR_LIMIT, "columns of bodies", "too many");
    FSI__TRY(fsi__cuda_enter(w));
    FSI__TRY(fsi__cuda_room(w, &w->columns, size));
    FSI__TRY(fsi__cuda_send(w, w->columns.base, columns, size));
    w->column_count = count;
    return fsi__cuda_wait(w);
}

fsi_status fsi__cuda_pressure_respond(void *work, int count, const double *h)
{
    fsi__cuda_work *w = fsi__cuda_of(work);
    fsi__cuda_responses a;
    if (count > w->column_count) return fsi__cuda_fail(w, FSI_ERROR_LIMIT, "columns of bodies", "not kept");
    FSI__TRY(fsi__cuda_enter(w));
    a.column = (const float *)(const void *)w->columns.base;
    a.x = w->level[0].x;
    a.cells = (size_t)w->level[0].cells;
    a.count = count;
    memset(a.h, 0, sizeof a.h);
    memcpy(a.h, h, (size_t)count * sizeof *h);
    return FSI__CUDA_RUN(w, respond, 8 * w->level[0].bricks, a, 8 + 4.0 * count);
}

void fsi__cuda_fill_pressure(fsi_pressure_device *t)
{
    memset(t, 0, sizeof *t);
    t->cookie = FSI__COOKIE('D', fsi_pressure_device);
#if defined(__CUDACC__)
    t->smallest = 1 << 18; /* not measured: launches of a V-cycle cost what the CPU takes for about so many cells */
#else
    t->smallest = 1 << 14; /* so that tests meet both sides of it */
#endif
    t->create = fsi__cuda_pressure_create;
    t->destroy = fsi__cuda_pressure_destroy;
    t->why = fsi__cuda_pressure_why;
    t->begin = fsi__cuda_pressure_begin;
    t->send = fsi__cuda_pressure_send;
    t->fetch = fsi__cuda_pressure_fetch;
    t->gather = fsi__cuda_pressure_gather;
    t->scatter = fsi__cuda_pressure_scatter;
    t->sum_runs = fsi__cuda_pressure_sum_runs;
    t->shift_runs = fsi__cuda_pressure_shift_runs;
    t->cycle = fsi__cuda_pressure_cycle;
    t->multiply = fsi__cuda_pressure_multiply;
    t->start = fsi__cuda_pressure_start;
    t->advance = fsi__cuda_pressure_advance;
    t->dot = fsi__cuda_pressure_dot;
    t->turn = fsi__cuda_pressure_turn;
    t->keep_columns = fsi__cuda_pressure_keep_columns;
    t->respond = fsi__cuda_pressure_respond;
}

/* ---- >>device ---------------------------------------------------------------------------------------------------- */

const void *fsi__cuda_table(void *user, const char *name)
{
    const fsi__cuda *d = (const fsi__cuda *)user;
    return strcmp(name, FSI_PRESSURE_TABLE) == 0 ? &d->pressure : NULL;
}

fsi__cuda *fsi__cuda_device(const fsi_device *device)
{
    if (!device || device->cookie != FSI__COOKIE('d', fsi_device) || device->table != fsi__cuda_table) return NULL;
    return (fsi__cuda *)device->user;
}

fsi_status fsi__cuda_refuse(fsi_error *error, fsi_status status, int index, const char *what, const char *why)
{
    if (!error) return status;
    memset(error, 0, sizeof *error);
    error->status = status;
    error->function = "fsi_cuda_create";
    error->element = index;
    snprintf(error->message, sizeof error->message, "device %d: %s%s", index, what, why);
    return status;
}

/* Is there a device of that index, and can it run this file's kernels? Its name. */
fsi_status fsi__cuda_probe(int index, char *name, size_t size, fsi_error *error)
{
#if defined(__CUDACC__)
    cudaDeviceProp p;
    cudaFuncAttributes f;
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess || count == 0) {
        (void)cudaGetLastError();
        return fsi__cuda_refuse(error, FSI_ERROR_DEVICE, index, "no CUDA device can be used: ",
            e != cudaSuccess ? cudaGetErrorString(e) : "there is none");
    }
    if (index < 0 || index >= count)
        return fsi__cuda_refuse(error, FSI_ERROR_ARGUMENT, index, "there is none of that index", "");
    e = cudaSetDevice(index);
    if (e == cudaSuccess) e = cudaGetDeviceProperties(&p, index);
    if (e == cudaSuccess) e = cudaFuncGetAttributes(&f, (const void *)fsi__cuda_start);
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        return fsi__cuda_refuse(error, FSI_ERROR_DEVICE, index, "it cannot run this file's kernels: ",
            cudaGetErrorString(e));
    }
    snprintf(name, size, "%.120s, compute capability %d.%d, %.1f GB", p.name, p.major, p.minor,
        (double)p.totalGlobalMem / 1e9);
#else
    if (index < 0 || index >= fsi__cuda_indices)
        return fsi__cuda_refuse(error, FSI_ERROR_ARGUMENT, index, "there is none of that index", "");
    if (index > fsi__cuda_threads) snprintf(name, size, "shim on the CPU, blocks shuffled by seed %d", index);
    else snprintf(name, size, "shim on the CPU, blocks %s",
        index == fsi__cuda_threads ? "in threads" : index == fsi__cuda_reverse ? "in reverse" : "in order");
#endif
    return FSI_OK;
}

} // namespace

extern "C" fsi_status fsi_cuda_create(fsi_device **out, int index, size_t memory_limit, fsi_error *error)
{
    fsi__cuda *d;
    fsi_status status;
    int k;
    if (!out) return fsi__cuda_refuse(error, FSI_ERROR_ARGUMENT, index, "out is NULL", "");
    *out = NULL;
    d = new (std::nothrow) fsi__cuda();
    if (!d) return fsi__cuda_refuse(error, FSI_ERROR_MEMORY, index, "the host has no memory for it", "");
    status = fsi__cuda_probe(index, d->name, sizeof d->name, error);
    if (status != FSI_OK) {
        delete d;
        return status;
    }
    d->index = index;
    d->report.memory_limit = memory_limit;
    d->report.kernels = fsi__cuda_k_count;
    for (k = 0; k < fsi__cuda_k_count; k++) d->report.kernel[k].name = fsi__cuda_names[k];
    fsi__cuda_fill_pressure(&d->pressure);
    d->device.cookie = FSI__COOKIE('d', fsi_device);
    d->device.user = d;
    d->device.table = fsi__cuda_table;
    *out = &d->device;
    return FSI_OK;
}

extern "C" void fsi_cuda_destroy(fsi_device *device)
{
    fsi__cuda *d = fsi__cuda_device(device);
    if (!d) return;
    device->cookie = 0;
    delete d;
}

extern "C" const char *fsi_cuda_info(const fsi_device *device)
{
    const fsi__cuda *d = fsi__cuda_device(device);
    return d ? d->name : "no device";
}

extern "C" fsi_status fsi_cuda_stats(const fsi_device *device, fsi_cuda_report *report)
{
    fsi__cuda *d = fsi__cuda_device(device);
    if (!report) return FSI_ERROR_ARGUMENT;
    if (!d) return FSI_ERROR_COOKIE;
    std::lock_guard<std::mutex> guard(d->lock);
    *report = d->report;
    return FSI_OK;
}

extern "C" fsi_status fsi_cuda_time(fsi_device *device, int on)
{
    fsi__cuda *d = fsi__cuda_device(device);
    if (!d) return FSI_ERROR_COOKIE;
    d->timed = on != 0;
    return FSI_OK;
}

/* For tests: the `at`-th allocation, copy or launch from now on fails (0: none). Returns how many there were since the
   last call. */
extern "C" long long fsi__cuda_fail_at(fsi_device *device, long long at);
extern "C" long long fsi__cuda_fail_at(fsi_device *device, long long at)
{
    fsi__cuda *d = fsi__cuda_device(device);
    long long calls;
    if (!d) return 0;
    std::lock_guard<std::mutex> guard(d->lock);
    calls = d->calls;
    d->calls = 0;
    d->fail_at = at;
    return calls;
}

FSI__STRICT_END
