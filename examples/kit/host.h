/* host.h - what the operating system gives: clocks, memory, folders, a pool of threads.
   SPDX-License-Identifier: MIT

   The only file of the kit that uses more than C99: POSIX or Win32, with a C99 fallback. It must come before any system
   header, as it asks for POSIX where -std=c99 hides it. With EXAMPLE_NO_THREADS defined there are no threads, for
   systems without pthread. ex_wall_seconds ex_cpu_seconds ex_peak_mb ex_core_count ex_make_folder; ex_pool_start
   ex_pool_stop ex_pool_run. */
#ifndef FSI_KIT_HOST_H
#define FSI_KIT_HOST_H

#if defined(__STRICT_ANSI__) && !defined(_WIN32) && !defined(_XOPEN_SOURCE)
#define _XOPEN_SOURCE 700 /* -std=c99 hides POSIX otherwise */
#endif
#if defined(_MSC_VER) && !defined(_CRT_SECURE_NO_WARNINGS)
#define _CRT_SECURE_NO_WARNINGS
#endif
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#define PSAPI_VERSION 2 /* GetProcessMemoryInfo from kernel32: nothing more to link */
#include <windows.h>
#include <psapi.h>
#include <direct.h>
#include <process.h>
#include <io.h>
#elif defined(__unix__) || defined(__APPLE__)
#define EX__POSIX
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#if !defined(EXAMPLE_NO_THREADS)
#include <pthread.h>
#endif
#elif !defined(EXAMPLE_NO_THREADS)
#define EXAMPLE_NO_THREADS
#endif

#include "../../fsi.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__GNUC__) || defined(__clang__)
#define EX_FN static __attribute__((unused))
#else
#define EX_FN static inline
#endif

/* ---- >>host --------------------------------------------------------------------------------------------------- */

/* Ends the program with a message. */
EX_FN void ex_die(const char *message)
{
    fprintf(stderr, "\nerror: %s\n", message);
    exit(1);
}

/* realloc that never fails. */
EX_FN void *ex_alloc(void *old, size_t count, size_t size)
{
    void *p;
    if (count == 0) count = 1;
    p = count > (size_t)-1 / size ? NULL : realloc(old, count * size);
    if (!p) ex_die("out of memory");
    return p;
}

/* Seconds since some moment in the past. */
EX_FN double ex_wall_seconds(void)
{
#if defined(_WIN32)
    LARGE_INTEGER ticks, rate;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&rate);
    return (double)ticks.QuadPart / (double)rate.QuadPart;
#elif defined(EX__POSIX)
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    return (double)time(NULL);
#endif
}

/* CPU seconds used so far, all threads together. */
EX_FN double ex_cpu_seconds(void)
{
#if defined(_WIN32)
    FILETIME made, ended, kernel, user;
    GetProcessTimes(GetCurrentProcess(), &made, &ended, &kernel, &user);
    return 429.4967296 * ((double)kernel.dwHighDateTime + (double)user.dwHighDateTime) +
           1e-7 * ((double)kernel.dwLowDateTime + (double)user.dwLowDateTime);
#elif defined(EX__POSIX)
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
#else
    return (double)clock() / CLOCKS_PER_SEC;
#endif
}

/* Largest resident memory so far [MiB]; 0 where the system does not tell. */
EX_FN double ex_peak_mb(void)
{
#if defined(_WIN32)
    PROCESS_MEMORY_COUNTERS use;
    if (!GetProcessMemoryInfo(GetCurrentProcess(), &use, (DWORD)sizeof use)) return 0;
    return (double)use.PeakWorkingSetSize / 1048576;
#elif defined(EX__POSIX)
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
#if defined(__APPLE__)
    return (double)use.ru_maxrss / 1048576;
#else
    return (double)use.ru_maxrss / 1024;
#endif
#else
    return 0;
#endif
}

/* Processors that threads may run on. */
EX_FN int ex_core_count(void)
{
#if defined(EXAMPLE_NO_THREADS)
    return 1;
#elif defined(_WIN32)
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return (int)info.dwNumberOfProcessors;
#else
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n < 1024 ? (int)n : 1;
#endif
}

/* Makes a folder and those above it; one that exists is fine. 1 on success. */
EX_FN int ex_make_folder(const char *path)
{
    char part[512];
    size_t i, n = strlen(path);
    int failed = 0;
    if (n == 0 || n >= sizeof part) return 0;
    for (i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\\' && path[i] != 0) continue;
        memcpy(part, path, i);
        part[i] = 0;
#if defined(_WIN32)
        failed = _mkdir(part) != 0 && errno != EEXIST;
#elif defined(EX__POSIX)
        failed = mkdir(part, 0777) != 0 && errno != EEXIST;
#endif
    }
    return !failed;
}

EX_FN int ex__stderr_is_terminal(void)
{
#if defined(_WIN32)
    return _isatty(2);
#elif defined(EX__POSIX)
    return isatty(2);
#else
    return 0;
#endif
}

/* ---- >>threads ------------------------------------------------------------------------------------------------ */

/* A pool of threads behind fsi's parallel_for. All of its state is guarded by one lock. A thread takes a handful of
   task indices at a time, fewer towards the end; the caller works too, and leaves when the last task has finished. A
   worker that wakes late finds nothing left to take and sleeps again. */
typedef struct ex_pool {
    void (*task)(void *arg, int index);
    void *arg;
    int count, taken, finished;  /* tasks of the present job */
    int threads, quit;
    unsigned job;                /* counts jobs: tells a worker that there is a new one */
#if defined(EXAMPLE_NO_THREADS)
#elif defined(_WIN32)
    CRITICAL_SECTION lock;
    CONDITION_VARIABLE wake, done;
    HANDLE *handles;
#else
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    pthread_t *handles;
#endif
} ex_pool;

#if defined(EXAMPLE_NO_THREADS)

EX_FN void ex_pool_start(ex_pool *pool, int threads) { memset(pool, 0, sizeof *pool); pool->threads = threads = 1; }
EX_FN void ex_pool_stop(ex_pool *pool) { pool->threads = 0; }
EX_FN void ex_pool_run(ex_pool *pool, int count, void (*task)(void *arg, int index), void *arg)
{
    int i;
    (void)pool;
    for (i = 0; i < count; i++) task(arg, i);
}

#else

#if defined(_WIN32)
#define EX__LOCK(p) EnterCriticalSection(&(p)->lock)
#define EX__UNLOCK(p) LeaveCriticalSection(&(p)->lock)
#define EX__WAIT(p, condition) SleepConditionVariableCS(&(p)->condition, &(p)->lock, INFINITE)
#define EX__SIGNAL(p, condition) WakeAllConditionVariable(&(p)->condition)
#define EX__THREAD static unsigned __stdcall
#else
#define EX__LOCK(p) pthread_mutex_lock(&(p)->lock)
#define EX__UNLOCK(p) pthread_mutex_unlock(&(p)->lock)
#define EX__WAIT(p, condition) pthread_cond_wait(&(p)->condition, &(p)->lock)
#define EX__SIGNAL(p, condition) pthread_cond_broadcast(&(p)->condition)
#define EX__THREAD static void *
#endif

/* Takes and runs tasks until none is left; called and left with the lock held. */
static void ex__pool_work(ex_pool *pool)
{
    while (pool->taken < pool->count) {
        void (*task)(void *, int) = pool->task;
        void *arg = pool->arg;
        int i, first = pool->taken, n = (pool->count - first) / (4 * pool->threads) + 1;
        pool->taken += n;
        EX__UNLOCK(pool);
        for (i = first; i < first + n; i++) task(arg, i);
        EX__LOCK(pool);
        pool->finished += n;
        if (pool->finished == pool->count) EX__SIGNAL(pool, done);
    }
}

EX__THREAD ex__pool_thread(void *arg)
{
    ex_pool *pool = (ex_pool *)arg;
    unsigned seen = 0;
    EX__LOCK(pool);
    while (!pool->quit) {
        if (pool->job == seen) EX__WAIT(pool, wake);
        else {
            seen = pool->job;
            ex__pool_work(pool);
        }
    }
    EX__UNLOCK(pool);
    return 0;
}

/* Calls task(arg, i) for i in 0..count-1 on all threads; returns when all are done. */
EX_FN void ex_pool_run(ex_pool *pool, int count, void (*task)(void *arg, int index), void *arg)
{
    if (count <= 0) return;
    EX__LOCK(pool);
    pool->task = task;
    pool->arg = arg;
    pool->count = count;
    pool->taken = pool->finished = 0;
    pool->job++;
    if (count > 1) EX__SIGNAL(pool, wake);
    ex__pool_work(pool);
    while (pool->finished < pool->count) EX__WAIT(pool, done);
    EX__UNLOCK(pool);
}

/* Starts threads - 1 workers (the caller is the last one); fewer when the system refuses. */
EX_FN void ex_pool_start(ex_pool *pool, int threads)
{
    memset(pool, 0, sizeof *pool);
#if defined(_WIN32)
    InitializeCriticalSection(&pool->lock);
    InitializeConditionVariable(&pool->wake);
    InitializeConditionVariable(&pool->done);
    pool->handles = (HANDLE *)ex_alloc(NULL, (size_t)threads, sizeof(HANDLE));
    for (pool->threads = 1; pool->threads < threads; pool->threads++) {
        HANDLE handle = (HANDLE)_beginthreadex(NULL, 0, ex__pool_thread, pool, 0, NULL);
        if (!handle) break;
        pool->handles[pool->threads] = handle;
    }
#else
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->handles = (pthread_t *)ex_alloc(NULL, (size_t)threads, sizeof(pthread_t));
    for (pool->threads = 1; pool->threads < threads; pool->threads++)
        if (pthread_create(&pool->handles[pool->threads], NULL, ex__pool_thread, pool) != 0) break;
#endif
}

EX_FN void ex_pool_stop(ex_pool *pool)
{
    int k;
    EX__LOCK(pool);
    pool->quit = 1;
    EX__SIGNAL(pool, wake);
    EX__UNLOCK(pool);
#if defined(_WIN32)
    for (k = 1; k < pool->threads; k++) {
        WaitForSingleObject(pool->handles[k], INFINITE);
        CloseHandle(pool->handles[k]);
    }
    DeleteCriticalSection(&pool->lock);
#else
    for (k = 1; k < pool->threads; k++) pthread_join(pool->handles[k], NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
#endif
    free(pool->handles);
}

#endif

#endif /* FSI_KIT_HOST_H */
