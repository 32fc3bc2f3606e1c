/* test.h - the harness of all tests: checks, a test runner, random numbers, a failing allocator, a thread pool.
   SPDX-License-Identifier: MIT

   Each test file is a program:

      #include "kit/test.h"
      #include "../fsi_grid.h"

      static void test_sphere_volume(void) { CHECK_NEAR(volume, 4.18879, TOL(1e-4, 1e-3)); }
      int main(int argc, char **argv) { TEST_BEGIN(argc, argv); RUN(test_sphere_volume); return TEST_END(); }

   An argument runs only the tests whose name contains it. The last line says `N passed, N failed`, counting RUNs.
   Everything here is meant for one thread, except the tasks that the pool runs. TEST_NO_THREADS runs them serially.

   Include this before the headers under test: then `cc tests/test_NAME.c -lm -pthread` alone builds a test, with the
   bodies of these headers inside. The Makefile defines TEST_LINKED and links an archive of the bodies of each header
   instead, compiled once for all tests. A test that looks inside a header (fsi__...) defines that one's own macro, such
   as FSI_SPH_IMPLEMENTATION, before anything else, and nothing of it is taken from the archive. A test that defines a
   macro which changes many bodies defines FSI_IMPLEMENTATION, and FSI_STATIC: what it does not call is not compiled. */
#ifndef FSI_TEST_H
#define FSI_TEST_H

#if !defined(TEST_LINKED) && !defined(FSI_IMPLEMENTATION)
#define FSI_IMPLEMENTATION
#endif
#include "../../fsi.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <time.h>

#if defined(_WIN32) && !defined(TEST_NO_THREADS)
#define TEST_NO_THREADS
#endif
#if !defined(TEST_NO_THREADS)
#include <pthread.h>
#include <sched.h>
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TEST_FN static __attribute__((unused))
#else
#define TEST_FN static
#endif

/* 1 where the code is looked at more than the physics: under sanitizers, which slow everything down, and in the
   Makefile's build for float. Physics that takes many seconds and runs no code of its own is left out there, or made
   smaller. 2 under valgrind, which is slower still: of many cases of a kind a few are taken. */
#if !defined(TEST_SLOWED)
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TEST_SLOWED 1
#else
#define TEST_SLOWED 0
#endif
#endif

/* 1 where a sanitizer or valgrind looks at every access. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TEST_WATCHED 1
#else
#define TEST_WATCHED (TEST_SLOWED > 1)
#endif

/* The tolerance of this build: TOL(for double, for float). */
#if defined(FSI_REAL_FLOAT)
#define TOL(d, f) (f)
#else
#define TOL(d, f) (d)
#endif

/* ---- checks and the runner ------------------------------------------------------------------------------------ */

static struct { const char *filter; int passed, failed, faults; } test__run;

/* Both are expressions that are true when the check holds, so that a test can stop: if (!CHECK(p)) return; */
#define CHECK(cond) test__check((cond) ? 1 : 0, __FILE__, __LINE__, #cond)
#define CHECK_NEAR(x, ref, tol) test__check_near((double)(x), (double)(ref), (double)(tol), __FILE__, __LINE__, #x)

#define TEST_BEGIN(argc, argv) (test__run.filter = (argc) > 1 ? (argv)[1] : "")
#define RUN(test) test__run_one(#test, test)
/* Seconds of physics whose code other tests run too: not where that takes minutes. */
#define RUN_PHYSICS(test) (TEST_WATCHED ? (void)(test) : RUN(test))
#define TEST_END() test__end()

/* Counts a failed check; only the first ten of a test are printed. */
TEST_FN int test__fault(const char *file, int line)
{
    if (++test__run.faults > 10) return 0;
    printf("%s:%d: ", file, line);
    return 1;
}

TEST_FN int test__check(int holds, const char *file, int line, const char *text)
{
    if (!holds && test__fault(file, line)) printf("%s\n", text);
    return holds;
}

TEST_FN int test__check_near(double x, double ref, double tol, const char *file, int line, const char *text)
{
    int holds = fabs(x - ref) <= tol; /* false for NaN */
    if (!holds && test__fault(file, line)) printf("%s is %.17g, want %.17g +- %.3g\n", text, x, ref, tol);
    return holds;
}

TEST_FN void test__run_one(const char *name, void (*test)(void))
{
    clock_t start = clock();
    if (!strstr(name, test__run.filter)) return;
    test__run.faults = 0;
    test();
    if (test__run.faults) test__run.failed++;
    else test__run.passed++;
    printf("%s %6.2f s  %s\n", test__run.faults ? "FAIL" : "ok  ", (double)(clock() - start) / CLOCKS_PER_SEC, name);
    fflush(stdout);
}

/* ---- numbers -------------------------------------------------------------------------------------------------- */

/* Uniform in [0, 1); any start state will do (splitmix64). */
TEST_FN double test_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

TEST_FN double test__from_bits(uint64_t bits) { double x; memcpy(&x, &bits, sizeof x); return x; }
TEST_FN double test_nan(void) { return test__from_bits(0x7ff8000000000000u); }
TEST_FN double test_inf(void) { return test__from_bits(0x7ff0000000000000u); }

/* ---- times ------------------------------------------------------------------------------------------------------ */

/* `seconds` of the machine where a test was written (AMD EPYC, 0.3 ms for these products), less where one core is
   faster. */
TEST_FN double test_time_here(double seconds)
{
    double least = 0.3e-3;
    int k, t;
    for (t = 0; t < 9; t++) {
        const clock_t start = clock();
        volatile double product = 0.5;
        double x = product, took;
        for (k = 0; k < 400000; k++) x *= 0.999999;
        product = x;
        took = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (took < least) least = took;
    }
    return seconds * least / 0.3e-3;
}

/* ---- allocator that counts, checks and fails ------------------------------------------------------------------ */

static struct { long count, fail_at; size_t live; int in_tasks; } test__heap;

/* A block as the allocator hands it out: [raw pointer, size] just below an aligned address. */
typedef struct test__block { unsigned char *raw; size_t size; } test__block;

TEST_FN void *test__alloc(void *user, size_t size, size_t align)
{
    test__block block;
    unsigned char *p;
    (void)user;
    CHECK(!test__heap.in_tasks); /* fsi promises not to allocate inside tasks */
    CHECK(align > 0 && align <= 64 && (align & (align - 1)) == 0);
    test__heap.count++;
    if (test__heap.fail_at && test__heap.count >= test__heap.fail_at) return NULL;
    if (size > (size_t)-1 - align - sizeof block) return NULL;
    block.raw = (unsigned char *)malloc(size + align + sizeof block);
    block.size = size;
    if (!block.raw) return NULL;
    p = block.raw + sizeof block;
    p += (align - (size_t)((uintptr_t)p % align)) % align;
    memcpy(p - sizeof block, &block, sizeof block);
    memset(p, 0xA5, size);
    test__heap.live += size;
    return p;
}

TEST_FN void test__release(void *user, void *memory, size_t size, size_t align)
{
    test__block block;
    (void)user;
    (void)align;
    if (!CHECK(memory != NULL)) return;
    memcpy(&block, (unsigned char *)memory - sizeof block, sizeof block);
    CHECK(block.size == size); /* released with the size it was asked for */
    memset(memory, 0xDD, block.size);
    test__heap.live -= block.size;
    free(block.raw);
}

/* From now on the fail_at-th allocation (1 is the next one) and all later ones fail; 0: none fails. */
TEST_FN void test_fail_allocator(fsi_context *context, long fail_at)
{
    context->alloc = test__alloc;
    context->release = test__release;
    test__heap.count = 0;
    test__heap.fail_at = fail_at;
}

TEST_FN size_t test_live_bytes(void) { return test__heap.live; }   /* held now through test_fail_allocator */
TEST_FN long test_alloc_count(void) { return test__heap.count; }   /* asked for since test_fail_allocator */

/* ---- thread pool ---------------------------------------------------------------------------------------------- */

enum { TEST__MAX_THREADS = 16 };

/* One call of parallel_for. Tasks are handed out in the order (start + k stride) mod count, with stride coprime to
   count: in order (stride 1), reversed (stride count - 1), or any other. */
static struct {
    void (*task)(void *arg, int index);
    void *arg;
    int count, next, left, start, stride, threads, adversarial, calls;
    uint64_t random;
#if !defined(TEST_NO_THREADS)
    pthread_t worker[TEST__MAX_THREADS];
    int workers, quit;
#endif
} test__pool;

#if defined(TEST_NO_THREADS)
#define TEST__LOCK() ((void)0)
#define TEST__UNLOCK() ((void)0)
#define TEST__YIELD() ((void)0)
#else
static pthread_mutex_t test__mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t test__wake = PTHREAD_COND_INITIALIZER, test__done = PTHREAD_COND_INITIALIZER;
#define TEST__LOCK() pthread_mutex_lock(&test__mutex)
#define TEST__UNLOCK() pthread_mutex_unlock(&test__mutex)
#define TEST__YIELD() sched_yield()
#endif

TEST_FN int test__gcd(int a, int b) { return b ? test__gcd(b, a % b) : a; }

/* Every third adversarial call runs in reverse, the others in a random order. */
TEST_FN void test__pick_order(void)
{
    int n = test__pool.count;
    test__pool.start = 0;
    test__pool.stride = 1;
    if (!test__pool.adversarial) return;
    test__pool.start = n - 1;
    test__pool.stride = n - 1;
    if (++test__pool.calls % 3 == 0) return;
    test__pool.start = (int)(test_random(&test__pool.random) * n);
    do test__pool.stride = 1 + (int)(test_random(&test__pool.random) * n);
    while (test__gcd(test__pool.stride, n) != 1);
}

/* Half of the tasks start at once, the others after giving way or idling for up to some microseconds. */
TEST_FN void test__delay(double r)
{
    volatile int spin;
    if (r < 0.25) TEST__YIELD();
    else if (r < 0.5) for (spin = (int)(r * 8000); spin > 0; spin--) {}
}

/* Runs the next task; called and left with the lock held. */
TEST_FN void test__take_task(void)
{
    int index = (int)((test__pool.start + (int64_t)test__pool.next++ * test__pool.stride) % test__pool.count);
    double r = test__pool.adversarial ? test_random(&test__pool.random) : 1;
    TEST__UNLOCK();
    test__delay(r);
    test__pool.task(test__pool.arg, index);
    TEST__LOCK();
    test__pool.left--;
}

#if !defined(TEST_NO_THREADS)
TEST_FN void *test__worker(void *arg)
{
    int id = (int)(intptr_t)arg;
    TEST__LOCK();
    while (!test__pool.quit) {
        if (id < test__pool.threads - 1 && test__pool.next < test__pool.count) {
            test__take_task();
            if (test__pool.left == 0) pthread_cond_signal(&test__done);
        } else pthread_cond_wait(&test__wake, &test__mutex);
    }
    TEST__UNLOCK();
    return NULL;
}
#endif

TEST_FN void test__parallel_for(void *user, int count, void (*task)(void *arg, int index), void *arg)
{
    int mode = (int)(intptr_t)user;
    if (!CHECK(count > 0) || !CHECK(!test__heap.in_tasks)) return;
    TEST__LOCK();
    test__heap.in_tasks = 1;
    test__pool.threads = mode & 255;
    test__pool.adversarial = mode >> 8;
    test__pool.task = task;
    test__pool.arg = arg;
    test__pool.count = test__pool.left = count;
    test__pool.next = 0;
    test__pick_order();
#if !defined(TEST_NO_THREADS)
    pthread_cond_broadcast(&test__wake);
#endif
    while (test__pool.next < test__pool.count) test__take_task();
#if !defined(TEST_NO_THREADS)
    while (test__pool.left > 0) pthread_cond_wait(&test__done, &test__mutex);
#endif
    test__heap.in_tasks = 0;
    TEST__UNLOCK();
}

/* Gives the context a parallel_for of n threads (1 to 16). Adversarial: tasks in random or reversed order, with delays.
   Takes context->user for itself. */
TEST_FN void test_threads(fsi_context *context, int n, int adversarial)
{
    context->user = (void *)(intptr_t)(n | (adversarial ? 256 : 0));
    context->parallel_for = test__parallel_for;
#if !defined(TEST_NO_THREADS)
    for (; test__pool.workers < n - 1; test__pool.workers++) {
        void *id = (void *)(intptr_t)test__pool.workers;
        if (!CHECK(pthread_create(&test__pool.worker[test__pool.workers], NULL, test__worker, id) == 0)) return;
    }
#endif
}

TEST_FN int test__end(void)
{
#if !defined(TEST_NO_THREADS)
    TEST__LOCK();
    test__pool.quit = 1;
    pthread_cond_broadcast(&test__wake);
    TEST__UNLOCK();
    while (test__pool.workers > 0) pthread_join(test__pool.worker[--test__pool.workers], NULL);
#endif
    printf("%d passed, %d failed\n", test__run.passed, test__run.failed);
    return test__run.failed > 0 || test__run.passed == 0;
}

#endif /* FSI_TEST_H */
