/* example.h - what all examples share: command line, progress, threads, software renderer, plots, shapes.
   SPDX-License-Identifier: MIT

   Include it first in an example, before any other header. It is the only file of the examples that uses more than C99:
   POSIX or Win32 for clocks, memory and threads, with a C99 fallback. Everything is static; any number of files may
   include it. An example reads like this:

      #define FSI_IMPLEMENTATION
      #include "examples/example.h"

      int main(int argc, char **argv)
      {
          ex_app app;
          ex_scene scene;
          double dt = 0.005;
          int frame;
          ex_init(&app, "drop", "A drop falls into a pool.");
          app.res = 32;                                                    // defaults of --res and --frames
          app.frames = 100;
          ex_real(&app, "dt", &dt, 1e-5, 0.1, "time step [s]");            // a switch of its own
          if (!ex_begin(&app, argc, argv)) return app.exit_code;           // --help, or a switch refused
          scene = ex_scene_begin(&app);
          ex_look_at_box(&scene, box, 30, 20);
          for (frame = 0; frame < app.frames; frame++) {
              ex_check(&app, fsi_..._step(simulator, ...));                // made with &app.context
              if (app.images) {                                            // not after --no-images
                  ex_draw_spheres(&scene, x, count, radius, NULL, 0x2277cc);  // or ex_draw_surface: as water
                  ex_draw_mesh(&scene, vertices, NULL, vertex_count, triangles, triangle_count, 0xd9a15b);
                  ex_save_frame(&app, ex_render(&scene), frame);           // out/drop_0000.png ...; empties the scene
              }
              ex_progress(&app, frame + 1);
          }
          ex_scene_end(&scene);
          ex_figure(&app, "lost", "%.0f", lost);
          return ex_end(&app);                                             // the line of key=value figures
      }

   WHERE IS WHAT
      >>host      ex_wall_seconds ex_cpu_seconds ex_peak_mb ex_core_count ex_make_folder
      >>threads   ex_pool_start ex_pool_stop ex_pool_run    (EXAMPLE_NO_THREADS: none, for systems without pthread)
      >>app       ex_init ex_flag ex_int ex_real ex_string ex_operand ex_begin ex_check ex_progress ex_figure
                   ex_count_outside ex_end
      >>image     ex_image ex_line ex_disc ex_rect ex_text ex_text_width
      >>files     ex_save_png ex_save_frame ex_write_mesh ex_write_particles ex_write_triangles
      >>colours   ex_map_color ex_map_colors ex_speed_colors ex_color_bar
      >>plot      ex_plot_begin ex_plot_series ex_plot_save
      >>scene     ex_scene_begin ex_look_at_box ex_scene_of_box ex_look_at_flat ex_draw_mesh ex_draw_colored_mesh ex_draw_walls
                  ex_draw_sheet ex_draw_rod ex_draw_spheres ex_draw_surface ex_draw_line ex_draw_box ex_debug_draw ex_render ex_scene_end
      >>meshes    ex_mesh ex_mesh_make ex_mesh_free
      >>shapes    ex_load_mesh ex_box ex_sphere ex_torus ex_knot ex_grid ex_fit ex_mesh_move ex_mesh_add
   Colours are 0xRRGGBB as seen on the screen (sRGB). */
#ifndef FSI_EXAMPLE_H
#define FSI_EXAMPLE_H

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

#include "../fsi_surface.h"
#include "../fsi_io.h"

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

/* ---- >>app ---------------------------------------------------------------------------------------------------- */

/* A switch. `value` points to int (FLAG, INT), double (REAL) or const char * (STRING, OPERAND). */
typedef enum ex_option_kind { EX_FLAG, EX_INT, EX_REAL, EX_STRING, EX_OPERAND } ex_option_kind;
typedef struct ex_option {
    ex_option_kind kind;
    const char *name, *help;
    void *value;
    double lo, hi;  /* range of INT and REAL */
} ex_option;

typedef enum ex_write { EX_WRITE_NONE, EX_WRITE_PLY, EX_WRITE_VTP } ex_write;

/* One run of an example. Fields in the first block may be changed between ex_init and ex_begin (they are the defaults of
   the switches); those of the second are kept up to date by the example. */
typedef struct ex_app {
    int res, frames, threads;    /* --res --frames --threads (0: all processors) */
    const char *res_help;        /* what --res counts */
    const char *out;             /* --out: folder of everything that is written */
    int images;                  /* 0 after --no-images */
    ex_write write;              /* --write=ply|vtp */

    long long steps;             /* for the last line */
    double sim_seconds;
    uint64_t hash;

    const char *name, *about;
    fsi_context context;         /* give its address to everything that is created */
    int exit_code;               /* to be returned by main when ex_begin returns 0 */
    ex_pool pool;
    ex_option options[32];
    int option_count, terminal;
    const char *write_name;
    double started, cpu_started, last_shown;
    char figures[1024];
} ex_app;

static void ex__parallel_for(void *user, int count, void (*task)(void *arg, int index), void *arg)
{
    ex_pool_run(&((ex_app *)user)->pool, count, task, arg);
}

static double ex__now(void *user)
{
    (void)user;
    return ex_wall_seconds();
}

/* Warnings and notes of fsi; errors are told by ex_check. */
static void ex__message(void *user, int level, const char *text)
{
    (void)user;
    if (level > 0) fprintf(stderr, "\n%s: %s\n", level == 1 ? "warning" : "note", text);
}

static void ex__option(ex_app *app, ex_option_kind kind, const char *name, void *value, double lo, double hi,
                       const char *help)
{
    ex_option *o = &app->options[app->option_count];
    if (app->option_count == (int)(sizeof app->options / sizeof app->options[0])) ex_die("too many switches");
    app->option_count++;
    o->kind = kind;
    o->name = name;
    o->value = value;
    o->lo = lo;
    o->hi = hi;
    o->help = help;
}

/* A switch --name without a value: sets *value to 1. */
EX_FN void ex_flag(ex_app *app, const char *name, int *value, const char *help)
{
    ex__option(app, EX_FLAG, name, value, 0, 1, help);
}

/* Switches with a value, `--name value` or `--name=value`; the value that stands there is the default. */
EX_FN void ex_int(ex_app *app, const char *name, int *value, int lo, int hi, const char *help)
{
    ex__option(app, EX_INT, name, value, lo, hi, help);
}
EX_FN void ex_real(ex_app *app, const char *name, double *value, double lo, double hi, const char *help)
{
    ex__option(app, EX_REAL, name, value, lo, hi, help);
}
EX_FN void ex_string(ex_app *app, const char *name, const char **value, const char *help)
{
    ex__option(app, EX_STRING, name, (void *)value, 0, 0, help);
}

/* An argument without a switch, such as a file; NULL stays when it is not given. */
EX_FN void ex_operand(ex_app *app, const char *name, const char **value, const char *help)
{
    ex__option(app, EX_OPERAND, name, (void *)value, 0, 0, help);
}

/* Name and one sentence of what the example shows. */
EX_FN void ex_init(ex_app *app, const char *name, const char *about)
{
    memset(app, 0, sizeof *app);
    app->name = name;
    app->about = about;
    app->res = 32;
    app->res_help = "resolution";
    app->frames = 100;
    app->out = "out";
    app->images = 1;
}

static void ex__help(const ex_app *app)
{
    int k;
    printf("%s: %s\n\nusage: %s [switches]", app->name, app->about, app->name);
    for (k = 0; k < app->option_count; k++)
        if (app->options[k].kind == EX_OPERAND) printf(" [%s]", app->options[k].name);
    printf("\n\n");
    for (k = 0; k < app->option_count; k++) {
        const ex_option *o = &app->options[k];
        char left[64];
        static const char *const kinds[5] = { "", " N", " X", " TEXT", "" };
        snprintf(left, sizeof left, "%s%s%s", o->kind == EX_OPERAND ? "" : "--", o->name, kinds[o->kind]);
        printf("  %-18s %s", left, o->help);
        if (o->kind == EX_INT) printf(" (default %d)", *(int *)o->value);
        if (o->kind == EX_REAL) printf(" (default %g)", *(double *)o->value);
        if (o->kind == EX_STRING && *(const char **)o->value) printf(" (default %s)", *(const char **)o->value);
        printf("\n");
    }
    printf("  %-18s %s\n", "--help", "this list");
}

/* Stores a value; a text of what is wrong with it, or NULL. */
static const char *ex__set(const ex_option *o, const char *text)
{
    static char why[120];
    char *end;
    double x;
    if (o->kind == EX_STRING || o->kind == EX_OPERAND) {
        *(const char **)o->value = text;
        return NULL;
    }
    errno = 0;
    x = strtod(text, &end);
    if (end == text || *end || errno || !fsi_is_finite(x)) return "is not a number";
    if (x < o->lo || x > o->hi) {
        snprintf(why, sizeof why, "is not between %.9g and %.9g", o->lo, o->hi);
        return why;
    }
    if (o->kind == EX_REAL) *(double *)o->value = x;
    else if (x != floor(x)) return "is not a whole number";
    else *(int *)o->value = (int)x;
    return NULL;
}

/* The switch that an argument names, with the value behind its "=" (strchr also finds the end of the text), or the first
   operand that is still missing. */
static ex_option *ex__find_option(ex_app *app, const char *arg, const char **value)
{
    int k;
    for (k = 0; k < app->option_count; k++) {
        ex_option *o = &app->options[k];
        size_t n = strlen(o->name);
        if (o->kind == EX_OPERAND) {
            if (arg[0] != '-' && !*(const char **)o->value) { *value = arg; return o; }
        } else if (strncmp(arg, "--", 2) == 0 && strncmp(arg + 2, o->name, n) == 0 && strchr("=", arg[2 + n])) {
            *value = arg[2 + n] ? arg + 3 + n : NULL;
            return o;
        }
    }
    return NULL;
}

static int ex__refuse(ex_app *app, const char *what, const char *value, const char *why)
{
    fprintf(stderr, "%s: %s%s%s %s (--help lists all switches)\n", app->name, what, *value ? " " : "", value, why);
    app->exit_code = 2;
    return 0;
}

static int ex__parse(ex_app *app, int argc, char **argv)
{
    int i;
    for (i = 1; i < argc; i++) {
        const char *value = NULL, *why;
        ex_option *o = ex__find_option(app, argv[i], &value);
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) { ex__help(app); return 0; }
        if (!o) return ex__refuse(app, argv[i], "", "is unknown");
        if (o->kind == EX_FLAG) {
            if (value) return ex__refuse(app, argv[i], "", "takes no value");
            *(int *)o->value = 1;
            continue;
        }
        if (!value && i + 1 < argc) value = argv[++i];
        if (!value) return ex__refuse(app, argv[i], "", "needs a value");
        why = ex__set(o, value);
        if (why) return ex__refuse(app, o->name, value, why);
    }
    return 1;
}

/* Reads the command line, makes the output folder, starts threads and clocks, fills app->context.
   0: return app->exit_code from main (help was asked for, or a switch was refused). */
EX_FN int ex_begin(ex_app *app, int argc, char **argv)
{
    int no_images = 0;
    app->write_name = "none";
    ex_int(app, "res", &app->res, 1, 1 << 20, app->res_help);
    ex_int(app, "frames", &app->frames, 1, 1000000, "pictures to make");
    ex_int(app, "threads", &app->threads, 0, 1024, "threads, 0 for one a processor");
    ex_string(app, "out", &app->out, "folder for what is written");
    ex_flag(app, "no-images", &no_images, "write no pictures");
    ex_string(app, "write", &app->write_name, "also write the state of each frame: ply, vtp or none");
    if (!ex__parse(app, argc, argv)) return 0;
    if (strcmp(app->write_name, "ply") == 0) app->write = EX_WRITE_PLY;
    else if (strcmp(app->write_name, "vtp") == 0) app->write = EX_WRITE_VTP;
    else if (strcmp(app->write_name, "none") != 0) return ex__refuse(app, "write", app->write_name, "is neither ply nor vtp nor none");
    if (no_images) app->images = 0;
    if ((app->images || app->write) && !ex_make_folder(app->out)) return ex__refuse(app, "out", app->out, "cannot be made");
    if (app->threads == 0) app->threads = ex_core_count();
    ex_pool_start(&app->pool, app->threads);
    app->context = fsi_default_context();
    app->context.user = app;
    app->context.parallel_for = ex__parallel_for;
    app->context.now = ex__now;
    app->context.message = ex__message;
    app->terminal = ex__stderr_is_terminal();
    app->started = app->last_shown = ex_wall_seconds();
    app->cpu_started = ex_cpu_seconds();
    return 1;
}

/* Ends the program when a call of fsi has failed, and says why. */
EX_FN void ex_check(const ex_app *app, fsi_status status)
{
    const fsi_error *e = &app->context.error;
    char text[300];
    int known = e->status == status;
    if (status == FSI_OK) return;
    snprintf(text, sizeof text, "%s: %s", known ? e->function : app->name, known ? e->message : fsi_status_text(status));
    ex_die(text);
}

static void ex__duration(char *text, size_t size, double s)
{
    if (s < 99.5) snprintf(text, size, "%.0f s", s);
    else if (s < 5970) snprintf(text, size, "%.0f min", s / 60);
    else snprintf(text, size, "%.1f h", s / 3600);
}

/* Shows how many frames are done and the time left: in place on a terminal, else a line every ten seconds. */
EX_FN void ex_progress(ex_app *app, int frames_done)
{
    double now = ex_wall_seconds(), spent = now - app->started;
    int last = frames_done == app->frames;
    char left[32], used[32];
    if (!last && now - app->last_shown < (app->terminal ? 0.1 : 10)) return;
    app->last_shown = now;
    ex__duration(used, sizeof used, spent);
    ex__duration(left, sizeof left, frames_done > 0 ? spent * (app->frames - frames_done) / frames_done : 0);
    fprintf(stderr, "%s%s: frame %d of %d, %.2f s simulated, %s used, %s left %s", app->terminal ? "\r" : "", app->name,
            frames_done, app->frames, app->sim_seconds, used, left, app->terminal && !last ? "   " : "   \n");
    fflush(stderr);
}

/* Points outside a box: particles that a tank has lost. */
EX_FN int ex_count_outside(const fsi_vec3 *x, int count, fsi_box3 box)
{
    int i, outside = 0;
    for (i = 0; i < count; i++) outside += !fsi_box3_overlap(box, fsi_box3_grow(fsi_box3_empty(), x[i]));
    return outside;
}

/* Adds a figure to the last line: format holds one conversion of a double, such as "%.4f". */
EX_FN void ex_figure(ex_app *app, const char *key, const char *format, double value)
{
    char number[64];
    size_t used = strlen(app->figures);
    snprintf(number, sizeof number, format, value);
    snprintf(app->figures + used, sizeof app->figures - used, " %s=%s", key, number);
}

/* Stops the threads and prints the line of figures; returns what main returns. */
EX_FN int ex_end(ex_app *app)
{
    double wall = ex_wall_seconds() - app->started, cpu = ex_cpu_seconds() - app->cpu_started;
    ex_pool_stop(&app->pool);
    printf("frames=%d steps=%lld sim_s=%g cpu_s=%.2f wall_s=%.2f peak_mb=%.1f hash=%08lx%08lx%s\n",
           app->frames, app->steps, app->sim_seconds, cpu, wall, ex_peak_mb(),
           (unsigned long)(app->hash >> 32), (unsigned long)(app->hash & 0xffffffffu), app->figures);
    return app->exit_code;
}

/* ---- >>image -------------------------------------------------------------------------------------------------- */

/* A picture: rows from the top, 3 bytes (red, green, blue) a pixel. */
typedef struct ex_image {
    int width, height;
    unsigned char *rgb;
} ex_image;

EX_FN ex_image ex_image_make(int width, int height, uint32_t rgb)
{
    ex_image im;
    int i, n = width * height;
    im.width = width;
    im.height = height;
    im.rgb = (unsigned char *)ex_alloc(NULL, (size_t)n, 3);
    for (i = 0; i < n; i++) {
        im.rgb[3 * i] = (unsigned char)(rgb >> 16);
        im.rgb[3 * i + 1] = (unsigned char)(rgb >> 8);
        im.rgb[3 * i + 2] = (unsigned char)rgb;
    }
    return im;
}

EX_FN void ex_image_free(ex_image *im)
{
    free(im->rgb);
    im->rgb = NULL;
}

EX_FN float ex__clamp(float x, float lo, float hi) { return x > lo ? (x < hi ? x : hi) : lo; } /* NaN becomes lo */

static void ex__blend(ex_image *im, int x, int y, uint32_t rgb, float alpha)
{
    unsigned char *p = im->rgb + 3 * ((size_t)y * (size_t)im->width + (size_t)x);
    int k;
    for (k = 0; k < 3; k++) {
        float from = (float)p[k], to = (float)(rgb >> (16 - 8 * k) & 255u);
        p[k] = (unsigned char)(from + alpha * (to - from) + 0.5f);
    }
}

/* Distance of (x, y) from the segment a-b. */
static float ex__segment_distance(float x, float y, const float *a, const float *b)
{
    float dx = b[0] - a[0], dy = b[1] - a[1], ex = x - a[0], ey = y - a[1], l = dx * dx + dy * dy, t;
    t = l > 0 ? ex__clamp((ex * dx + ey * dy) / l, 0, 1) : 0;
    ex -= t * dx;
    ey -= t * dy;
    return sqrtf(ex * ex + ey * ey);
}

/* A line with round ends, anti-aliased: a pixel is covered as far as its centre lies inside width/2. */
EX_FN void ex_line(ex_image *im, double x0, double y0, double x1, double y1, double width, uint32_t rgb)
{
    float a[2], b[2], r = (float)width / 2;
    int x, y, lo[2], hi[2], k;
    a[0] = (float)x0; a[1] = (float)y0; b[0] = (float)x1; b[1] = (float)y1;
    for (k = 0; k < 2; k++) {
        float limit = (float)(k ? im->height : im->width), s = a[k] < b[k] ? a[k] : b[k], e = a[k] < b[k] ? b[k] : a[k];
        lo[k] = (int)ex__clamp(s - r - 1, 0, limit);
        hi[k] = (int)ex__clamp(e + r + 2, 0, limit);
    }
    for (y = lo[1]; y < hi[1]; y++)
        for (x = lo[0]; x < hi[0]; x++) {
            float c = r + 0.5f - ex__segment_distance((float)x + 0.5f, (float)y + 0.5f, a, b);
            if (c > 0) ex__blend(im, x, y, rgb, c < 1 ? c : 1);
        }
}

EX_FN void ex_disc(ex_image *im, double x, double y, double radius, uint32_t rgb)
{
    ex_line(im, x, y, x, y, 2 * radius, rgb);
}

/* Pixels x0 <= x < x1, y0 <= y < y1, blended with alpha in 0..1. */
EX_FN void ex_rect(ex_image *im, int x0, int y0, int x1, int y1, uint32_t rgb, double alpha)
{
    int x, y;
    if (x0 < 0) x0 = 0;
    if (y0 < 0) y0 = 0;
    for (y = y0; y < y1 && y < im->height; y++)
        for (x = x0; x < x1 && x < im->width; x++) ex__blend(im, x, y, rgb, (float)alpha);
}

/* The letters 32..126: bit 5*row + column of a 5 x 9 cell; rows 0 to 6 stand on the base line, 7 and 8 below it. They are
   drawn as strokes from dot to dot, so that they are smooth at any size. A dot is linked to the dots beside, above and
   below it, and to those diagonal ones to which no third dot leads. A dot in which exactly two links meet at 135 degrees
   is part of a round: it is drawn towards the middle of its neighbours, and its corner becomes a parabola.

       . # # .         .-o-o-.
       # . . #   ->   o       o
       # . . #        |       |   */
static const uint64_t ex__font[95] = {
    0x000000000000u, 0x000040108421u, 0x0000000014a5u, 0x000295f57d4au, 0x00011f4717c4u, 0x000632222263u, 0x000593511526u,
    0x000000000421u, 0x000104108444u, 0x000044421041u, 0x000009575480u, 0x0000084f9080u, 0x000840000000u, 0x000000078000u,
    0x000040000000u, 0x000044222110u, 0x0003a318c62eu, 0x0003884210c4u, 0x0007c444422eu, 0x0003a306422eu, 0x000211f4a988u,
    0x0003a3083c3fu, 0x0003a317844cu, 0x00010844221fu, 0x0003a317462eu, 0x0001910f462eu, 0x000040000400u, 0x000840000400u,
    0x000010411100u, 0x000000f03c00u, 0x000002220820u, 0x00010044422eu, 0x000383daf62eu, 0x000463f8a944u, 0x0003e317c62fu,
    0x0003a210862eu, 0x0003e318c62fu, 0x0007c217843fu, 0x00004217843fu, 0x0003a31c862eu, 0x0004631fc631u, 0x0001c4210847u,
    0x000192842108u, 0x000452519531u, 0x0003c2108421u, 0x0004631ad771u, 0x0004739ace71u, 0x0003a318c62eu, 0x00004217c62fu,
    0x00059358c62eu, 0x00045257c62fu, 0x0003a307062eu, 0x00010842109fu, 0x0003a318c631u, 0x000108a54631u, 0x0004775ac631u,
    0x000462a22a31u, 0x000108422a31u, 0x0007c222221fu, 0x0000c2108423u, 0x000410820841u, 0x0000c4210843u, 0x000000004544u,
    0x00f800000000u, 0x000000000041u, 0x0007a3e83800u, 0x0001d2949c21u, 0x00038210b800u, 0x00039294b908u, 0x000383f8b800u,
    0x000042109c26u, 0x06439294b800u, 0x000252949c21u, 0x000042108401u, 0x011084210802u, 0x00024a32a421u, 0x000082108421u,
    0x00056b5abc00u, 0x000252949c00u, 0x000192949800u, 0x0109d2949c00u, 0x08439294b800u, 0x000042119400u, 0x0001d060b800u,
    0x000182109c21u, 0x00039294a400u, 0x000114a8c400u, 0x0002ab58c400u, 0x000454454400u, 0x06439294a400u, 0x0003c2643c00u,
    0x000104208844u, 0x010842108421u, 0x000044220841u, 0x0000019b0000u
};

static int ex__dot(uint64_t glyph, int x, int y)
{
    return x >= 0 && x < 5 && y >= 0 && y < 9 && (glyph >> (5 * y + x) & 1u) == 1;
}

static uint64_t ex__glyph(char c) { return c >= 32 && c < 127 ? ex__font[c - 32] : ex__font['?' - 32]; }

/* Columns that a letter takes; digits all alike. */
static int ex__glyph_columns(char c)
{
    int x, y;
    if (c == ' ') return 3;
    if (c >= '0' && c <= '9') return 5;
    for (x = 4; x > 0; x--)
        for (y = 0; y < 9; y++)
            if (ex__dot(ex__glyph(c), x, y)) return x + 1;
    return 1;
}

/* Width in pixels of a text whose capital letters are `size` pixels high. */
EX_FN double ex_text_width(const char *text, double size)
{
    double columns = 0;
    for (; *text; text++) columns += ex__glyph_columns(*text) + 1.1;
    return columns > 0 ? (columns - 1.1) * size / 7 : 0;
}

/* Steps to the dots that a dot is linked to; returns how many. */
static int ex__links(uint64_t g, int c, int r, int link[8][2])
{
    int dx, dy, n = 0;
    for (dy = -1; dy <= 1; dy++)
        for (dx = -1; dx <= 1; dx++) {
            if ((!dx && !dy) || !ex__dot(g, c + dx, r + dy)) continue;
            if (dx && dy && (ex__dot(g, c + dx, r) || ex__dot(g, c, r + dy))) continue;
            link[n][0] = dx;
            link[n++][1] = dy;
        }
    return n;
}

/* Where a dot is drawn, in columns and rows; returns 1 when it is part of a round. */
static int ex__place(uint64_t g, int c, int r, double at[2])
{
    int link[8][2], n = ex__links(g, c, r, link), k;
    int round = n == 2 && link[0][0] * link[1][0] + link[0][1] * link[1][1] == -1;
    at[0] = c;
    at[1] = r;
    for (k = 0; k < 2 && round; k++) at[k] += 0.25 * (link[0][k] + link[1][k]);
    return round;
}

/* A pen that writes in columns and rows of letters whose left top dot is at (x, y) of an image. */
typedef struct ex__pen {
    ex_image *image;
    double x, y, ux, uy, width; /* (ux, uy): one column to the right [pixels] */
    uint32_t rgb;
} ex__pen;

static void ex__pen_line(const ex__pen *p, const double a[2], const double b[2])
{
    ex_line(p->image, p->x + a[0] * p->ux + a[1] * p->uy, p->y - a[0] * p->uy + a[1] * p->ux,
            p->x + b[0] * p->ux + b[1] * p->uy, p->y - b[0] * p->uy + b[1] * p->ux, p->width, p->rgb);
}

/* The half of its links that belongs to a dot: up to the middle of each. */
static void ex__draw_dot_links(const ex__pen *pen, uint64_t g, int c, int r)
{
    double at[2], half[8][2], from[2], to[2];
    int link[8][2], n = ex__links(g, c, r, link), round = ex__place(g, c, r, at), k, j;
    for (k = 0; k < n; k++) {
        ex__place(g, c + link[k][0], r + link[k][1], half[k]);
        half[k][0] = (half[k][0] + at[0]) / 2;
        half[k][1] = (half[k][1] + at[1]) / 2;
        if (!round) ex__pen_line(pen, at, half[k]);
    }
    if (n == 0) ex__pen_line(pen, at, at);
    for (k = 0; k <= 4 && round; k++) { /* s^2 a + 2 s t p + t^2 b */
        double t = k / 4.0, s = 1 - t;
        for (j = 0; j < 2; j++) to[j] = s * s * half[0][j] + 2 * s * t * at[j] + t * t * half[1][j];
        if (k) ex__pen_line(pen, from, to);
        memcpy(from, to, sizeof from);
    }
}

typedef enum ex_align { EX_LEFT, EX_CENTER, EX_RIGHT, EX_UPWARD } ex_align; /* UPWARD: turned by 90 degrees, centred */

/* Writes text with capital letters `size` pixels high; (x, y) is on the base line. */
EX_FN void ex_text(ex_image *im, double x, double y, double size, ex_align align, uint32_t rgb, const char *text)
{
    double u = size / 7, width = ex_text_width(text, size);
    double shift = align == EX_LEFT ? 0 : (align == EX_RIGHT ? width : width / 2);
    int c, r;
    ex__pen pen;
    pen.image = im;
    pen.ux = align == EX_UPWARD ? 0 : u;
    pen.uy = align == EX_UPWARD ? u : 0;
    pen.x = x - shift * pen.ux / u - 6.5 * pen.uy + 0.5 * pen.ux;
    pen.y = y + shift * pen.uy / u - 6.5 * pen.ux - 0.5 * pen.uy;
    pen.width = 0.95 * u;
    pen.rgb = rgb;
    for (; *text; text++) {
        uint64_t g = ex__glyph(*text);
        for (r = 0; r < 9; r++)
            for (c = 0; c < 5; c++)
                if (ex__dot(g, c, r)) ex__draw_dot_links(&pen, g, c, r);
        pen.x += (ex__glyph_columns(*text) + 1.1) * pen.ux;
        pen.y -= (ex__glyph_columns(*text) + 1.1) * pen.uy;
    }
}

/* ---- >>files --------------------------------------------------------------------------------------------------- */

/* Writes a PNG file; ends the program when it cannot. */
EX_FN void ex_save_png(ex_app *app, const ex_image *im, const char *path)
{
    ex_check(app, fsi_io_write_png(fsi_io_to_file(&app->context, path), im->rgb, im->width, im->height, 3, 0));
}

/* Writes OUT/NAME_0042.png, unless --no-images. */
EX_FN void ex_save_frame(ex_app *app, const ex_image *im, int frame)
{
    char path[600];
    if (!app->images) return;
    snprintf(path, sizeof path, "%s/%s_%04d.png", app->out, app->name, frame);
    ex_save_png(app, im, path);
}

/* With --write: OUT/NAME_PART_0042.ply or .vtp, the latter also listed with its time in OUT/NAME_PART.pvd. */
EX_FN void ex_write_mesh(ex_app *app, const char *part, int frame, const fsi_io_mesh *mesh)
{
    char path[600], list[600];
    fsi_io_out out;
    const char *kind = app->write == EX_WRITE_PLY ? "ply" : "vtp";
    if (app->write == EX_WRITE_NONE) return;
    snprintf(path, sizeof path, "%s/%s_%s_%04d.%s", app->out, app->name, part, frame, kind);
    out = fsi_io_to_file(&app->context, path);
    if (app->write == EX_WRITE_PLY) ex_check(app, fsi_io_write_ply(out, mesh, FSI_IO_SINGLE));
    else {
        ex_check(app, fsi_io_write_vtp(out, mesh, FSI_IO_SINGLE));
        snprintf(list, sizeof list, "%s/%s_%s.pvd", app->out, app->name, part);
        ex_check(app, fsi_io_append_pvd(&app->context, list, frame, app->sim_seconds, path + strlen(app->out) + 1));
    }
}

/* The same for particles with velocities v (may be NULL). */
EX_FN void ex_write_particles(ex_app *app, const char *part, int frame, const fsi_vec3 *x, const fsi_vec3 *v, int count)
{
    fsi_io_mesh mesh = fsi_io_default_mesh();
    fsi_io_attribute velocity;
    velocity.name = "v";
    velocity.type = FSI_IO_REAL;
    velocity.components = 3;
    velocity.stride = 0;
    velocity.data = v;
    mesh.vertices = x;
    mesh.vertex_count = count;
    mesh.attributes = &velocity;
    mesh.attribute_count = v ? 1 : 0;
    ex_write_mesh(app, part, frame, &mesh);
}

/* The same for a surface of triangles. */
EX_FN void ex_write_triangles(ex_app *app, const char *part, int frame, const fsi_vec3 *vertices, int vertex_count, const int *triangles, int triangle_count)
{
    fsi_io_mesh mesh = fsi_io_default_mesh();
    mesh.vertices = vertices;
    mesh.vertex_count = vertex_count;
    mesh.triangles = triangles;
    mesh.triangle_count = triangle_count;
    ex_write_mesh(app, part, frame, &mesh);
}

/* ---- >>colours ------------------------------------------------------------------------------------------------ */

/* Nine knots a map, chosen in CIELAB so that lightness is linear: deep water to foam, night to flame, and blue through
   white to red for signed values. */
typedef enum ex_map { EX_MAP_WATER, EX_MAP_HEAT, EX_MAP_SIGNED } ex_map;

/* Colour of t in 0..1 (clamped; NaN is grey). */
EX_FN uint32_t ex_map_color(ex_map map, double t)
{
    static const uint32_t knots[3][9] = {
        { 0x11519d, 0x026aa6, 0x0580b6, 0x0397c8, 0x03aeda, 0x09c6ec, 0x5fdbf4, 0x9aeefa, 0xf2f8f8 },
        { 0x102556, 0x60197c, 0x9e0275, 0xd00367, 0xff194d, 0xfe6f47, 0xff9e51, 0xffc766, 0xfeec82 },
        { 0x024f7f, 0x0276bb, 0x6a9dd7, 0xb0c6e6, 0xf1f1f1, 0xf4bbae, 0xe58a76, 0xcd5843, 0xb01b13 }
    };
    int i, k;
    uint32_t a, b, rgb = 0;
    if (!fsi_is_finite(t)) return 0x808080;
    t = t < 0 ? 0 : (t > 1 ? 8 : 8 * t);
    i = t < 8 ? (int)t : 7;
    a = knots[map][i];
    b = knots[map][i + 1];
    for (k = 0; k < 24; k += 8) {
        double x = (double)(a >> k & 255u), y = (double)(b >> k & 255u);
        rgb |= (uint32_t)(x + (t - i) * (y - x) + 0.5) << k;
    }
    return rgb;
}

/* Colours of count values between lo and hi. */
EX_FN void ex_map_colors(ex_map map, const fsi_real *values, int count, double lo, double hi, uint32_t *rgb)
{
    int i;
    for (i = 0; i < count; i++) rgb[i] = ex_map_color(map, ((double)values[i] - lo) / (hi - lo));
}

/* Colours of count speeds |v|: 0 is deep blue, `fast` and above is foam. */
EX_FN void ex_speed_colors(const fsi_vec3 *v, int count, double fast, uint32_t *rgb)
{
    int i;
    for (i = 0; i < count; i++) rgb[i] = ex_map_color(EX_MAP_WATER, (double)fsi_v3_norm(v[i]) / fast);
}

/* A legend with its left top corner at (x, y): title, bar, and the values at its ends. */
EX_FN void ex_color_bar(ex_image *im, int x, int y, ex_map map, double lo, double hi, const char *title)
{
    char text[32];
    int i;
    ex_text(im, x, y + 11, 11, EX_LEFT, 0x333333, title);
    for (i = 0; i < 180; i++) ex_rect(im, x + i, y + 20, x + i + 1, y + 32, ex_map_color(map, i / 179.0), 1);
    snprintf(text, sizeof text, "%g", lo);
    ex_text(im, x, y + 48, 10, EX_LEFT, 0x555555, text);
    snprintf(text, sizeof text, "%g", hi);
    ex_text(im, x + 180, y + 48, 10, EX_RIGHT, 0x555555, text);
}

/* ---- >>plot --------------------------------------------------------------------------------------------------- */

/* A line chart. NaN in y breaks a line. The arrays are not copied: keep them until ex_plot_save. */
typedef enum ex_mark { EX_MARK_LINE, EX_MARK_DOTS, EX_MARK_DASHES } ex_mark;
typedef struct ex_series {
    const char *label;
    const double *x, *y;
    int count;
    ex_mark mark;
} ex_series;
typedef struct ex_plot {
    const char *title, *x_label, *y_label;
    double x_lo, x_hi, y_lo, y_hi; /* ranges; lo >= hi (the default): whatever holds the data */
    ex_series series[8];
    int series_count;
} ex_plot;

EX_FN ex_plot ex_plot_begin(const char *title, const char *x_label, const char *y_label)
{
    ex_plot plot;
    memset(&plot, 0, sizeof plot);
    plot.title = title;
    plot.x_label = x_label;
    plot.y_label = y_label;
    return plot;
}

/* Adds a curve; the first ones are drawn on top. At most 8. */
EX_FN void ex_plot_series(ex_plot *plot, const char *label, const double *x, const double *y, int count, ex_mark mark)
{
    ex_series *s = &plot->series[plot->series_count];
    if (plot->series_count == 8) ex_die("a plot holds 8 series");
    plot->series_count++;
    s->label = label;
    s->x = x;
    s->y = y;
    s->count = count;
    s->mark = mark;
}

/* One axis: its range in data and in pixels, and the distance of its ticks. */
typedef struct ex__axis {
    double lo, hi, tick;
    double first, last; /* pixels of lo and hi */
} ex__axis;

static double ex__axis_at(const ex__axis *a, double v)
{
    return a->first + (v - a->lo) / (a->hi - a->lo) * (a->last - a->first);
}

/* The smallest of 1, 2, 5 times a power of ten that cuts `range` in at most `most` parts. */
static double ex__tick(double range, double most)
{
    double unit = pow(10, floor(log10(range / most)));
    if (unit * most >= range) return unit;
    return 2 * unit * most >= range ? 2 * unit : (5 * unit * most >= range ? 5 * unit : 10 * unit);
}

/* Range of the x (vertical 0) or y (1) values, widened to whole ticks when the caller left it open. */
static ex__axis ex__make_axis(const ex_plot *plot, int vertical, double first, double last)
{
    ex__axis a;
    int s, i, open;
    a.first = first;
    a.last = last;
    a.lo = vertical ? plot->y_lo : plot->x_lo;
    a.hi = vertical ? plot->y_hi : plot->x_hi;
    open = !(a.lo < a.hi);
    if (open) { a.lo = 1e300; a.hi = -1e300; }
    for (s = 0; open && s < plot->series_count; s++)
        for (i = 0; i < plot->series[s].count; i++) {
            double v = vertical ? plot->series[s].y[i] : plot->series[s].x[i];
            if (!fsi_is_finite(v)) continue;
            a.lo = v < a.lo ? v : a.lo;
            a.hi = v > a.hi ? v : a.hi;
        }
    if (a.lo > a.hi) { a.lo = 0; a.hi = 1; }
    if (a.hi - a.lo <= 1e-12 * (fabs(a.lo) + fabs(a.hi)) || a.lo >= a.hi) { a.lo -= 0.5; a.hi += 0.5; }
    a.tick = ex__tick(a.hi - a.lo, vertical ? 6 : 8);
    if (open) {
        a.lo = a.tick * floor(a.lo / a.tick + (vertical ? -0.05 : 1e-9));
        a.hi = a.tick * ceil(a.hi / a.tick + (vertical ? 0.05 : -1e-9));
        a.tick = ex__tick(a.hi - a.lo, vertical ? 6 : 8);
    }
    return a;
}

static void ex__draw_axis(ex_image *im, const ex__axis *a, const ex__axis *across, int vertical)
{
    int i, from = (int)ceil(a->lo / a->tick - 1e-9), to = (int)floor(a->hi / a->tick + 1e-9);
    int digits = (int)ceil(-log10(a->tick) - 1e-9);
    char text[32];
    for (i = from; i <= to; i++) {
        double p = floor(ex__axis_at(a, i * a->tick)) + 0.5;
        uint32_t grid = i == 0 ? 0xc4cad2 : 0xe8ebf0;
        snprintf(text, sizeof text, "%.*f", digits > 0 ? digits : 0, i == 0 ? 0.0 : i * a->tick);
        if (vertical) {
            ex_line(im, across->first, p, across->last, p, 1, grid);
            ex_text(im, across->first - 10, p + 5.5, 11, EX_RIGHT, 0x4a5260, text);
        } else {
            ex_line(im, p, across->first, p, across->last, 1, grid);
            ex_text(im, p, across->first + 22, 11, EX_CENTER, 0x4a5260, text);
        }
    }
}

static const uint32_t ex__series_rgb[8] = { 0x1668b8, 0xe0542f, 0x2b9a66, 0x8a4fc4,
                                            0xd69a00, 0x13a5b5, 0xc83a85, 0x555d6b };

/* One mark of a series between two points in pixels; `along` is the length of the curve so far, for dashes. */
static void ex__draw_mark(ex_image *im, ex_mark mark, const double *p, const double *q, double *along, uint32_t rgb)
{
    double length = sqrt((q[0] - p[0]) * (q[0] - p[0]) + (q[1] - p[1]) * (q[1] - p[1])), s, e;
    if (mark == EX_MARK_LINE) ex_line(im, p[0], p[1], q[0], q[1], 2.2, rgb);
    for (s = 0; mark == EX_MARK_DASHES && s < length; s = e) {
        double phase = fmod(*along + s, 12), f = (phase < 7 ? 7 : 12) - phase + 1e-9;
        e = s + f < length ? s + f : length;
        if (phase < 7)
            ex_line(im, p[0] + (q[0] - p[0]) * s / length, p[1] + (q[1] - p[1]) * s / length,
                    p[0] + (q[0] - p[0]) * e / length, p[1] + (q[1] - p[1]) * e / length, 2, rgb);
    }
    *along += length;
}

static void ex__draw_dot(ex_image *im, double x, double y, uint32_t rgb)
{
    ex_disc(im, x, y, 4.4, 0xffffff);
    ex_disc(im, x, y, 3.4, rgb);
}

static void ex__draw_series(ex_image *im, const ex_series *s, const ex__axis *ax, const ex__axis *ay, uint32_t rgb)
{
    double p[2] = { 0, 0 }, q[2], along = 0;
    int i, begun = 0;
    for (i = 0; i < s->count; i++) {
        int good = fsi_is_finite(s->x[i]) && fsi_is_finite(s->y[i]);
        good = good && s->x[i] >= ax->lo && s->x[i] <= ax->hi && s->y[i] >= ay->lo && s->y[i] <= ay->hi;
        q[0] = good ? ex__axis_at(ax, s->x[i]) : 0;
        q[1] = good ? ex__axis_at(ay, s->y[i]) : 0;
        if (good && s->mark == EX_MARK_DOTS) ex__draw_dot(im, q[0], q[1], rgb);
        else if (good && begun) ex__draw_mark(im, s->mark, p, q, &along, rgb);
        begun = good;
        p[0] = q[0];
        p[1] = q[1];
    }
}

/* Labels in one row above the frame, right-aligned with it. */
static void ex__draw_legend(ex_image *im, const ex_plot *plot, double right, double y)
{
    double x = right, p[2], q[2], along = 0;
    int s;
    for (s = 0; s < plot->series_count; s++) x -= ex_text_width(plot->series[s].label, 11) + 58;
    for (s = 0; s < plot->series_count; s++) {
        const ex_series *c = &plot->series[s];
        x += 58;
        p[0] = x - 36; p[1] = q[1] = y - 5; q[0] = x - 10;
        if (c->mark == EX_MARK_DOTS) ex__draw_dot(im, x - 18, p[1], ex__series_rgb[s]);
        else ex__draw_mark(im, c->mark, p, q, &along, ex__series_rgb[s]);
        ex_text(im, x, y, 11, EX_LEFT, 0x2a303a, c->label);
        x += ex_text_width(c->label, 11);
    }
}

/* Draws the plot, 900 x 560. Free the image afterwards. */
EX_FN ex_image ex_plot_draw(const ex_plot *plot)
{
    ex_image im = ex_image_make(900, 560, 0xffffff);
    ex__axis ax = ex__make_axis(plot, 0, 84, 872), ay = ex__make_axis(plot, 1, 490, 84);
    int s;
    ex_text(&im, 84, 38, 16, EX_LEFT, 0x1c222b, plot->title);
    ex__draw_legend(&im, plot, 872, 68);
    ex__draw_axis(&im, &ax, &ay, 0);
    ex__draw_axis(&im, &ay, &ax, 1);
    ex_line(&im, ax.first, ay.first + 0.5, ax.last, ay.first + 0.5, 1.4, 0x4a5260);
    ex_text(&im, (ax.first + ax.last) / 2, 542, 12, EX_CENTER, 0x2a303a, plot->x_label);
    ex_text(&im, 26, (ay.first + ay.last) / 2, 12, EX_UPWARD, 0x2a303a, plot->y_label);
    for (s = plot->series_count - 1; s >= 0; s--) ex__draw_series(&im, &plot->series[s], &ax, &ay, ex__series_rgb[s]);
    return im;
}

/* Writes OUT/file, unless --no-images. */
EX_FN void ex_plot_save(ex_app *app, const ex_plot *plot, const char *file)
{
    char path[600];
    ex_image im;
    if (!app->images) return;
    im = ex_plot_draw(plot);
    snprintf(path, sizeof path, "%s/%s", app->out, file);
    ex_save_png(app, &im, path);
    ex_image_free(&im);
}

/* ---- >>meshes ----------------------------------------------------------------------------------------------------- */

/* Vertices and triangles as fsi_mesh_desc wants them: counter-clockwise seen from outside. Free with ex_mesh_free. */
typedef struct ex_mesh {
    fsi_vec3 *vertices;
    int *triangles;
    int vertex_count, triangle_count;
} ex_mesh;

EX_FN ex_mesh ex_mesh_make(int vertex_count, int triangle_count)
{
    ex_mesh m;
    m.vertices = (fsi_vec3 *)ex_alloc(NULL, (size_t)vertex_count, sizeof *m.vertices);
    m.triangles = (int *)ex_alloc(NULL, 3 * (size_t)triangle_count, sizeof *m.triangles);
    m.vertex_count = vertex_count;
    m.triangle_count = triangle_count;
    return m;
}

EX_FN void ex_mesh_free(ex_mesh *m)
{
    free(m->vertices);
    free(m->triangles);
    memset(m, 0, sizeof *m);
}

/* ---- >>scene -------------------------------------------------------------------------------------------------- */

/* The renderer: a z-buffer over bands of rows, in the order

      sun view:    depth of what is solid; first depth and thickness of the liquid       (shadow map)
      camera view: depth, normal and colour of what is solid                             (n x n samples a pixel)
      visibility:  share of the sun and of the sky that each pixel sees, blurred later over 4 x 4 pixels
      shading:     once a pixel where its samples agree, else once a sample
      liquid:      first depth, normal and thickness; refracts the shaded picture, reflects the sky
      lines:       blended over the picture where nothing solid hides them

   Every band, row and chunk is a task of its own and writes only what is its own: the picture is the same for any number
   of threads. Depth is kept as a key that is linear on the screen and larger when closer: 1/z, or -z when parallel. */

typedef struct ex__vec { float x, y, z; } ex__vec;

EX_FN ex__vec ex__v(float x, float y, float z) { ex__vec v; v.x = x; v.y = y; v.z = z; return v; }
EX_FN fsi_vec3 ex__widen(ex__vec a) { return fsi_v3((fsi_real)a.x, (fsi_real)a.y, (fsi_real)a.z); }
EX_FN ex__vec ex__narrow(fsi_vec3 a) { return ex__v((float)a.x, (float)a.y, (float)a.z); }
EX_FN ex__vec ex__madd(ex__vec a, float s, ex__vec b) { return ex__v(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z); }
EX_FN ex__vec ex__sub(ex__vec a, ex__vec b) { return ex__v(a.x - b.x, a.y - b.y, a.z - b.z); }
EX_FN ex__vec ex__scale(ex__vec a, float s) { return ex__v(a.x * s, a.y * s, a.z * s); }
EX_FN ex__vec ex__mul(ex__vec a, ex__vec b) { return ex__v(a.x * b.x, a.y * b.y, a.z * b.z); }
EX_FN ex__vec ex__mix(ex__vec a, ex__vec b, float t) { return ex__madd(a, t, ex__sub(b, a)); }
EX_FN float ex__dot3(ex__vec a, ex__vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
EX_FN ex__vec ex__cross(ex__vec a, ex__vec b)
{
    return ex__v(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
EX_FN ex__vec ex__unit(ex__vec a)
{
    float l = ex__dot3(a, a);
    return l > 0 ? ex__scale(a, 1 / sqrtf(l)) : ex__v(0, 0, 0);
}

/* What was drawn, in world space. The top byte of a colour tells how it is lit. */
enum { EX__SKY, EX__GROUND, EX__SOLID, EX__WALL };
typedef struct ex__tri { ex__vec p[3], n[3]; uint32_t c[3]; } ex__tri;
typedef struct ex__ball { ex__vec p; float r; uint32_t c; } ex__ball;
typedef struct ex__stroke { ex__vec p[2]; float width; uint32_t c; } ex__stroke;

typedef enum ex__kind { EX__TRIS, EX__BALLS, EX__STROKES, EX__WATER, EX__KINDS } ex__kind;

/* A camera: a sample at depth z and offset (x, y) from the axis is seen at centre + scale * (x, -y) / z (perspective) or
   centre + scale * (x, -y) (parallel). */
typedef struct ex__view {
    ex__vec eye, right, up, forward;
    float scale, cx, cy, front, back; /* nothing is seen closer than front; back is the depth of emptiness */
    int parallel, width, height;
} ex__view;

/* A view, what it sees, and which items touch which band of EX__BAND rows. */
#define EX__BAND 24
struct ex_scene;
typedef struct ex__pass {
    struct ex_scene *scene;
    ex__view view;
    size_t capacity, water_capacity; /* samples that the buffers hold */
    float *key;
    ex__vec *normal;                 /* NULL in the sun's view, as is color */
    uint32_t *color;
    float *water_key, *water_depth;  /* depth: length of liquid along z in front of what is solid */
    ex__vec *water_normal;
    int *rows;                       /* first and last row of each item while bins are made */
    int *first[EX__KINDS], *item[EX__KINDS];
    int row_capacity, first_capacity[EX__KINDS], item_capacity[EX__KINDS];
} ex__pass;

/* What a pixel sees of the light; ambient < 0: nothing solid there. */
typedef struct ex__seen { ex__vec p; float sun, ambient, water; } ex__seen;

/* A scene: fields of the first block may be changed at any time before ex_render. */
typedef struct ex_scene {
    int width, height, samples;         /* picture 960 x 540, samples 2 (x 2) a pixel */
    fsi_vec3 eye, target, up;           /* camera; up also points away from the ground, default (0, 0, 1) */
    double fov;                         /* vertical angle of view [degrees] */
    double parallel;                    /* height of the picture [m] without perspective; 0: perspective */
    fsi_vec3 sun;                       /* direction towards the sun */
    double sun_angle;                   /* its apparent diameter [radians]: softness of shadows */
    int flat;                           /* 1: plain colours without light or ground, for 2D */
    int ground;                         /* 0: no ground */
    double ground_height, grid;         /* of the ground along up [m]; distance of its lines [m], 0 none */
    uint32_t ground_rgb, horizon_rgb, top_rgb;
    fsi_vec3 absorb;                    /* how strongly the liquid takes away red, green, blue [1/m]; 0: by scene size */
    uint32_t scatter_rgb;               /* colour of deep liquid */
    fsi_box3 box;                       /* the region of interest: sizes of shadows, fading, absorption */

    ex_image image;                     /* the last picture */
    fsi_context *context;
    ex__tri *tris, *water;
    ex__ball *balls;
    ex__stroke *strokes;
    int count[EX__KINDS], capacity[EX__KINDS];
    ex__pass camera, sunlight, lines;
    ex__seen *seen;
    ex__vec *solid, *wet, *shown;       /* linear colours of the pixels without and with liquid; shown: one of them */
    size_t pixel_capacity;
    ex__vec center;                     /* the following are set up by ex_render */
    float radius;
    ex__vec up_dir, side_dir, ahead_dir, sun_dir, absorb_rgb;
    float linear[256];                  /* sRGB byte to linear */
    unsigned char encode[4096];         /* and back */
    float disc[16][8][2];               /* 8 points of a unit disc, in 16 turns */
} ex_scene;

static void ex__make_tables(ex_scene *s)
{
    int i, k;
    for (i = 0; i < 256; i++) s->linear[i] = (float)(i <= 10 ? i / 255.0 / 12.92 : pow((i / 255.0 + 0.055) / 1.055, 2.4));
    for (i = 0; i < 4096; i++) {
        double x = i / 4095.0;
        s->encode[i] = (unsigned char)(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * pow(x, 1 / 2.4) - 0.055) + 0.5);
    }
    for (i = 0; i < 16; i++)
        for (k = 0; k < 8; k++) {
            double r = sqrt((k + (i * 7 % 16 + 0.5) / 16) / 8), turn = 2.39996323 * k + 2 * FSI_PI * i / 16;
            s->disc[i][k][0] = (float)(r * cos(turn));
            s->disc[i][k][1] = (float)(r * sin(turn));
        }
}

/* An empty scene that renders with the threads of the app. */
EX_FN ex_scene ex_scene_begin(ex_app *app)
{
    ex_scene s;
    memset(&s, 0, sizeof s);
    s.context = &app->context;
    s.width = 960;
    s.height = 540;
    s.samples = 2;
    s.eye = fsi_v3(3, -4, 2);
    s.up = fsi_v3(0, 0, 1);
    s.fov = 32;
    s.sun = fsi_v3((fsi_real)-0.45, (fsi_real)-0.5, (fsi_real)0.95);
    s.sun_angle = 0.09;
    s.ground = 1;
    s.ground_rgb = 0xdfe3e7;
    s.horizon_rgb = 0xf4f6f8;
    s.top_rgb = 0xcfdcea;
    s.scatter_rgb = 0x136aa6;
    s.box = fsi_box3_empty();
    ex__make_tables(&s);
    return s;
}

/* Corner 0..7 of a box: bit 0 chooses x, bit 1 y, bit 2 z. */
EX_FN fsi_vec3 ex__corner(fsi_box3 b, int i)
{
    return fsi_v3(i & 1 ? b.hi.x : b.lo.x, i & 2 ? b.hi.y : b.lo.y, i & 4 ? b.hi.z : b.lo.z);
}

/* The two directions of the ground; x and y when up is z. */
static void ex__ground_axes(ex__vec up, ex__vec *side, ex__vec *ahead)
{
    *ahead = ex__unit(ex__cross(up, fabsf(up.x) > 0.9f ? ex__v(0, 1, 0) : ex__v(1, 0, 0)));
    *side = ex__cross(*ahead, up);
}

/* Points the camera at a box that fills the picture, seen from `azimuth` degrees (0: from -y, 90: from +x; when up is z)
   and `elevation` degrees above the ground; puts the ground under the box, a grid of a fitting size on it, and the sun
   behind the viewer's left shoulder. */
EX_FN void ex_look_at_box(ex_scene *s, fsi_box3 box, double azimuth, double elevation)
{
    ex__vec up = ex__unit(ex__narrow(s->up)), middle = ex__scale(ex__narrow(fsi_v3_add(box.lo, box.hi)), 0.5f);
    ex__vec side, ahead, view, right, tip, sun;
    float a = (float)(azimuth * FSI_PI / 180), e = (float)(elevation * FSI_PI / 180), distance = 0, ground = 1e30f;
    float half_y = (float)tan(s->fov * FSI_PI / 360), half_x = half_y * (float)s->width / (float)s->height;
    int k;
    ex__ground_axes(up, &side, &ahead);
    view = ex__madd(ex__scale(side, sinf(a)), -cosf(a), ahead);
    view = ex__madd(ex__scale(view, cosf(e)), sinf(e), up); /* from the box to the eye */
    right = ex__unit(ex__cross(up, view));
    tip = ex__cross(view, right);
    for (k = 0; k < 8; k++) {
        ex__vec p = ex__narrow(ex__corner(box, k)), d = ex__sub(p, middle);
        float need_x = fabsf(ex__dot3(d, right)) / half_x + ex__dot3(d, view);
        float need_y = fabsf(ex__dot3(d, tip)) / half_y + ex__dot3(d, view);
        if (need_x > distance) distance = need_x;
        if (need_y > distance) distance = need_y;
        if (ex__dot3(p, up) < ground) ground = ex__dot3(p, up);
    }
    sun = ex__madd(ex__madd(ex__scale(up, 0.9f), 0.45f, view), -0.6f, right);
    s->sun = ex__widen(sun);
    s->target = ex__widen(middle);
    s->eye = ex__widen(ex__madd(middle, 1.08f * distance, view));
    s->grid = ex__tick((double)fsi_v3_norm(fsi_v3_sub(box.hi, box.lo)), 8);
    s->ground_height = (double)ground - 0.01 * s->grid;
    s->box = box;
}

/* A scene that looks at the box from lo to hi. */
EX_FN ex_scene ex_scene_of_box(ex_app *app, fsi_vec3 lo, fsi_vec3 hi, double azimuth, double elevation)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 box;
    box.lo = lo;
    box.hi = hi;
    ex_look_at_box(&scene, box, azimuth, elevation);
    return scene;
}

/* For 2D: looks straight at the plane z = 0 of a box, y up, without perspective, light or ground. */
EX_FN void ex_look_at_flat(ex_scene *s, fsi_box3 box)
{
    double width = (double)(box.hi.x - box.lo.x), height = (double)(box.hi.y - box.lo.y);
    double fit = width * s->height / s->width;
    s->flat = 1;
    s->up = fsi_v3(0, 1, 0);
    s->target = fsi_v3((box.lo.x + box.hi.x) / 2, (box.lo.y + box.hi.y) / 2, 0);
    s->parallel = 1.08 * (fit > height ? fit : height);
    s->eye = fsi_v3_add(s->target, fsi_v3(0, 0, (fsi_real)s->parallel));
    s->box = box;
}

static ex__vec ex__linear_rgb(const ex_scene *s, uint32_t rgb)
{
    return ex__v(s->linear[rgb >> 16 & 255u], s->linear[rgb >> 8 & 255u], s->linear[rgb & 255u]);
}

/* What is NaN or absurdly far away is not drawn. */
static int ex__drawable(ex__vec a) { return ex__dot3(a, a) < 1e24f; }

/* Room for `extra` more items of a list. */
static void *ex__room(ex_scene *s, ex__kind kind, void *list, int extra, size_t size)
{
    int need = s->count[kind] + extra;
    if (need <= s->capacity[kind]) return list;
    s->capacity[kind] = need + need / 2;
    return ex_alloc(list, (size_t)s->capacity[kind], size);
}

/* Twice the area of triangle t, along its normal. */
static ex__vec ex__area(const fsi_vec3 *vertices, const int *t)
{
    ex__vec a = ex__narrow(vertices[t[0]]);
    return ex__cross(ex__sub(ex__narrow(vertices[t[1]]), a), ex__sub(ex__narrow(vertices[t[2]]), a));
}

/* A normal for each corner of each triangle: the mean of the faces around the vertex that meet this one at less than 37 degrees. */
static ex__vec *ex__smooth_normals(const fsi_vec3 *vertices, int vertex_count, const int *triangles, int triangle_count)
{
    const int corners = 3 * triangle_count;
    ex__vec *n = (ex__vec *)ex_alloc(NULL, (size_t)corners, sizeof *n);
    int *first = (int *)ex_alloc(NULL, (size_t)vertex_count, sizeof *first), *next = (int *)ex_alloc(NULL, (size_t)corners, sizeof *next), i, c;
    for (i = 0; i < vertex_count; i++) first[i] = -1;
    for (c = 0; c < corners; c++) { /* the corners at a vertex, as a list */
        next[c] = first[triangles[c]];
        first[triangles[c]] = c;
    }
    for (i = 0; i < corners; i++) {
        ex__vec face = ex__unit(ex__area(vertices, triangles + i - i % 3));
        n[i] = ex__v(0, 0, 0);
        for (c = first[triangles[i]]; c >= 0; c = next[c]) {
            ex__vec area = ex__area(vertices, triangles + c - c % 3);
            if (ex__dot3(ex__unit(area), face) > 0.8f) n[i] = ex__madd(n[i], 1, area);
        }
        n[i] = ex__unit(n[i]);
    }
    free(first);
    free(next);
    return n;
}

static void ex__add_mesh(ex_scene *s, ex__kind kind, const fsi_vec3 *vertices, const fsi_vec3 *normals, int vertex_count,
                         const int *triangles, int triangle_count, const uint32_t *colors, uint32_t rgb, uint32_t lit)
{
    ex__vec *smooth = normals ? NULL : ex__smooth_normals(vertices, vertex_count, triangles, triangle_count);
    ex__tri **list = kind == EX__WATER ? &s->water : &s->tris;
    int i, k;
    *list = (ex__tri *)ex__room(s, kind, *list, triangle_count, sizeof **list);
    for (i = 0; i < triangle_count; i++) {
        ex__tri *t = *list + s->count[kind];
        for (k = 0; k < 3; k++) t->p[k] = ex__narrow(vertices[triangles[3 * i + k]]);
        s->count[kind] += ex__drawable(t->p[0]) && ex__drawable(t->p[1]) && ex__drawable(t->p[2]);
        for (k = 0; k < 3; k++) {
            int v = triangles[3 * i + k];
            t->n[k] = normals ? ex__narrow(normals[v]) : smooth[3 * i + k];
            t->c[k] = ((colors ? colors[v] : rgb) & 0xffffffu) | lit << 24;
        }
    }
    free(smooth);
}

/* A mesh of one colour. normals: one a vertex, or NULL: smooth where faces meet at less than 37 degrees, else an edge. */
EX_FN void ex_draw_mesh(ex_scene *s, const fsi_vec3 *vertices, const fsi_vec3 *normals, int vertex_count,
                        const int *triangles, int triangle_count, uint32_t rgb)
{
    ex__add_mesh(s, EX__TRIS, vertices, normals, vertex_count, triangles, triangle_count, NULL, rgb, EX__SOLID);
}

/* The same with a colour for each vertex. */
EX_FN void ex_draw_colored_mesh(ex_scene *s, const fsi_vec3 *vertices, const fsi_vec3 *normals, int vertex_count,
                                const int *triangles, int triangle_count, const uint32_t *colors)
{
    ex__add_mesh(s, EX__TRIS, vertices, normals, vertex_count, triangles, triangle_count, colors, 0, EX__SOLID);
}

/* Walls of a room, tank or bowl: only faces whose front is seen are drawn, and they cast no shadow, so that one can look
   inside from anywhere. */
EX_FN void ex_draw_walls(ex_scene *s, const fsi_vec3 *vertices, int vertex_count, const int *triangles,
                         int triangle_count, uint32_t rgb)
{
    ex__add_mesh(s, EX__TRIS, vertices, NULL, vertex_count, triangles, triangle_count, NULL, rgb, EX__WALL);
}

/* The surface of a liquid, closed, its triangles counter-clockwise seen from outside; normals as above. */
EX_FN void ex_draw_surface(ex_scene *s, const fsi_vec3 *vertices, const fsi_vec3 *normals, int vertex_count,
                           const int *triangles, int triangle_count)
{
    ex__add_mesh(s, EX__WATER, vertices, normals, vertex_count, triangles, triangle_count, NULL, 0, EX__SOLID);
}

/* Balls of one radius [m]; colors: one a ball, or NULL: all rgb. In a flat scene: discs. */
EX_FN void ex_draw_spheres(ex_scene *s, const fsi_vec3 *centers, int count, double radius, const uint32_t *colors,
                           uint32_t rgb)
{
    int i;
    s->balls = (ex__ball *)ex__room(s, EX__BALLS, s->balls, count, sizeof *s->balls);
    for (i = 0; i < count; i++) {
        ex__ball *b = &s->balls[s->count[EX__BALLS]];
        b->p = ex__narrow(centers[i]);
        s->count[EX__BALLS] += ex__drawable(b->p);
        b->r = (float)radius;
        b->c = ((colors ? colors[i] : rgb) & 0xffffffu) | (uint32_t)EX__SOLID << 24;
    }
}

/* A sheet with two faces of their own colours, `thickness` apart: folds and what lies on what can be told. Its front is seen with the triangles
   counter-clockwise. */
EX_FN void ex_draw_sheet(ex_scene *s, const fsi_vec3 *vertices, int vertex_count, const int *triangles, int triangle_count, double thickness,
                         uint32_t front, uint32_t back)
{
    fsi_vec3 *normal = (fsi_vec3 *)ex_alloc(NULL, (size_t)vertex_count, sizeof *normal), *face = (fsi_vec3 *)ex_alloc(NULL, (size_t)vertex_count, sizeof *face);
    int i, k, side;
    memset(normal, 0, (size_t)vertex_count * sizeof *normal);
    for (i = 0; i < triangle_count; i++)
        for (k = 0; k < 3; k++) normal[triangles[3 * i + k]] = fsi_v3_add(normal[triangles[3 * i + k]], ex__widen(ex__area(vertices, triangles + 3 * i)));
    for (side = 1; side >= -1; side -= 2) {
        for (i = 0; i < vertex_count; i++) face[i] = fsi_v3_madd(vertices[i], (fsi_real)(side * thickness / 2), fsi_v3_unit(normal[i]));
        ex_draw_mesh(s, face, NULL, vertex_count, triangles, triangle_count, side > 0 ? front : back);
    }
    free(normal);
    free(face);
}

/* A chain of points as a round rod. colors: one a point, or NULL: all rgb. */
EX_FN void ex_draw_rod(ex_scene *s, const fsi_vec3 *points, int count, double radius, const uint32_t *colors, uint32_t rgb)
{
    enum { AROUND = 10 };
    ex_mesh tube;
    fsi_vec3 side = fsi_v3(0, 0, 0), t, other, *normal;
    uint32_t *paint;
    int i, k;
    if (count < 2) return;
    tube = ex_mesh_make(AROUND * count, 2 * AROUND * (count - 1));
    normal = (fsi_vec3 *)ex_alloc(NULL, (size_t)tube.vertex_count, sizeof *normal);
    paint = (uint32_t *)ex_alloc(NULL, (size_t)tube.vertex_count, sizeof *paint);
    for (i = 0; i < count; i++) { /* the side is carried along without turning */
        t = fsi_v3_unit(fsi_v3_sub(points[i + 1 < count ? i + 1 : i], points[i > 0 ? i - 1 : i]));
        if (i == 0) side = fsi_v3_cross(t, fsi_abs(t.z) < (fsi_real)0.8 ? fsi_v3(0, 0, 1) : fsi_v3(1, 0, 0));
        side = fsi_v3_unit(fsi_v3_madd(side, -fsi_v3_dot(side, t), t));
        other = fsi_v3_cross(t, side);
        for (k = 0; k < AROUND; k++) {
            const double a = 2 * FSI_PI * k / AROUND;
            const int v = AROUND * i + k, next = AROUND * i + (k + 1) % AROUND, e = 6 * v;
            normal[v] = fsi_v3_madd(fsi_v3_scale(side, (fsi_real)cos(a)), (fsi_real)sin(a), other);
            tube.vertices[v] = fsi_v3_madd(points[i], (fsi_real)radius, normal[v]);
            paint[v] = colors ? colors[i] : rgb;
            if (i + 1 == count) continue;
            tube.triangles[e] = tube.triangles[e + 3] = v;
            tube.triangles[e + 1] = next;
            tube.triangles[e + 2] = tube.triangles[e + 4] = next + AROUND;
            tube.triangles[e + 5] = v + AROUND;
        }
    }
    ex_draw_colored_mesh(s, tube.vertices, normal, tube.vertex_count, tube.triangles, tube.triangle_count, paint);
    ex_draw_spheres(s, points, 1, radius, colors, rgb);
    ex_draw_spheres(s, points + count - 1, 1, radius, colors ? colors + count - 1 : NULL, rgb);
    ex_mesh_free(&tube);
    free(normal);
    free(paint);
}

/* A line, `width` pixels wide, hidden by what is in front of it. */
EX_FN void ex_draw_line(ex_scene *s, fsi_vec3 a, fsi_vec3 b, double width, uint32_t rgb)
{
    ex__stroke *k;
    s->strokes = (ex__stroke *)ex__room(s, EX__STROKES, s->strokes, 1, sizeof *s->strokes);
    k = &s->strokes[s->count[EX__STROKES]];
    k->p[0] = ex__narrow(a);
    k->p[1] = ex__narrow(b);
    s->count[EX__STROKES] += ex__drawable(k->p[0]) && ex__drawable(k->p[1]);
    k->width = (float)width;
    k->c = rgb;
}

/* The twelve edges of a box, such as a glass tank. */
EX_FN void ex_draw_box(ex_scene *s, fsi_box3 box, double width, uint32_t rgb)
{
    int i, k;
    for (i = 0; i < 8; i++)
        for (k = 1; k < 8; k *= 2)
            if (!(i & k)) ex_draw_line(s, ex__corner(box, i), ex__corner(box, i | k), width, rgb);
}

static void ex__debug_point(void *user, fsi_vec3 p, fsi_real size, uint32_t rgb)
{
    ex_draw_spheres((ex_scene *)user, &p, 1, (double)size / 2, NULL, rgb);
}
static void ex__debug_line(void *user, fsi_vec3 a, fsi_vec3 b, uint32_t rgb)
{
    ex_draw_line((ex_scene *)user, a, b, 1.2, rgb);
}
static void ex__debug_triangle(void *user, fsi_vec3 a, fsi_vec3 b, fsi_vec3 c, uint32_t rgb)
{
    static const int corners[3] = { 0, 1, 2 };
    fsi_vec3 v[3];
    v[0] = a; v[1] = b; v[2] = c;
    ex_draw_mesh((ex_scene *)user, v, NULL, 3, corners, 1, rgb);
}

/* Callbacks for fsi's *_debug_draw functions that draw into the scene. */
EX_FN fsi_debug_draw ex_debug_draw(ex_scene *s)
{
    fsi_debug_draw d;
    d.user = s;
    d.point = ex__debug_point;
    d.line = ex__debug_line;
    d.triangle = ex__debug_triangle;
    return d;
}

static void ex__free_pass(ex__pass *p)
{
    int k;
    free(p->key); free(p->normal); free(p->color);
    free(p->water_key); free(p->water_depth); free(p->water_normal);
    free(p->rows);
    for (k = 0; k < EX__KINDS; k++) { free(p->first[k]); free(p->item[k]); }
}

EX_FN void ex_scene_end(ex_scene *s)
{
    ex__free_pass(&s->camera);
    ex__free_pass(&s->sunlight);
    ex__free_pass(&s->lines);
    free(s->tris); free(s->water); free(s->balls); free(s->strokes);
    free(s->seen); free(s->solid); free(s->wet);
    ex_image_free(&s->image);
}

/* ---- >>raster ------------------------------------------------------------------------------------------------- */

static ex__vec ex__to_view(const ex__view *v, ex__vec p)
{
    ex__vec d = ex__sub(p, v->eye);
    return ex__v(ex__dot3(d, v->right), ex__dot3(d, v->up), ex__dot3(d, v->forward));
}

static float ex__key_of(const ex__view *v, float z) { return v->parallel ? -z : 1 / z; }
static float ex__depth_of(const ex__view *v, float key) { return v->parallel ? -key : 1 / key; }

/* From the eye (parallel: from the eye's plane) to depth 1 at screen position (x, y); and the point at depth z. */
static ex__vec ex__ray(const ex__view *v, float x, float y)
{
    float k = 1 / v->scale;
    return ex__madd(ex__madd(v->forward, (x - v->cx) * k, v->right), (v->cy - y) * k, v->up);
}
static ex__vec ex__point(const ex__view *v, float x, float y, float z)
{
    float k = (v->parallel ? 1 : z) / v->scale;
    return ex__madd(ex__madd(ex__madd(v->eye, z, v->forward), (x - v->cx) * k, v->right), (v->cy - y) * k, v->up);
}

/* Screen x, y and key of a point in view space. */
static void ex__project(const ex__view *v, ex__vec c, float *out)
{
    float k = v->parallel ? v->scale : v->scale / c.z;
    out[0] = v->cx + k * c.x;
    out[1] = v->cy - k * c.y;
    out[2] = ex__key_of(v, c.z);
}

/* A triangle on the screen: inside it, share b1 of corner 1 and b2 of corner 2 are linear in x and y. */
typedef struct ex__face {
    const ex__tri *tri;
    float x[3], y[3], key[3];
    float b1x, b1y, b2x, b2y, key_lo, key_hi;
    int front; /* counter-clockwise as seen */
} ex__face;

static int ex__face_begin(ex__face *f)
{
    float x1 = f->x[1] - f->x[0], y1 = f->y[1] - f->y[0], x2 = f->x[2] - f->x[0], y2 = f->y[2] - f->y[0];
    float area = x1 * y2 - x2 * y1;
    if (!(area > 1e-9f || area < -1e-9f)) return 0;
    f->front = area < 0;
    f->b1x = y2 / area;
    f->b1y = -x2 / area;
    f->b2x = -y1 / area;
    f->b2y = x1 / area;
    f->key_lo = f->key[0] < f->key[1] ? f->key[0] : f->key[1];
    f->key_hi = f->key[0] < f->key[1] ? f->key[1] : f->key[0];
    if (f->key[2] < f->key_lo) f->key_lo = f->key[2];
    if (f->key[2] > f->key_hi) f->key_hi = f->key[2];
    return 1;
}

/* 0 when a corner is too close to the eye (ex__clip has put a cut copy in the list) or the triangle is seen edge-on. */
static int ex__face_of(const ex__view *v, const ex__tri *t, ex__face *f)
{
    float s[3];
    int k;
    f->tri = t;
    for (k = 0; k < 3; k++) {
        ex__vec c = ex__to_view(v, t->p[k]);
        if (!(c.z >= v->front)) return 0;
        ex__project(v, c, s);
        f->x[k] = s[0];
        f->y[k] = s[1];
        f->key[k] = s[2];
    }
    return ex__face_begin(f);
}

/* Smallest integer >= v, held between 0 and limit. */
static int ex__ceil(float v, int limit)
{
    int i;
    if (!(v > 0)) return 0;
    if (v >= (float)limit) return limit;
    i = (int)v;
    return i + ((float)i < v);
}

typedef void ex__span_fn(ex__pass *p, const ex__face *f, int y, int x0, int x1);

/* Calls span for the samples of rows row0..row1-1 whose centres lie inside. An edge is cut by a row at an x that is
   computed from its upper to its lower end, alike for both triangles that share it: no gap, no overlap. */
static void ex__fill(ex__pass *p, const ex__face *f, int row0, int row1, ex__span_fn *span)
{
    float top[3][2], end[3], slope[3], lo = f->y[0], hi = f->y[0];
    int e, y, y1;
    for (e = 0; e < 3; e++) {
        int a = e, b = (e + 1) % 3, swap = f->y[a] > f->y[b] || (!(f->y[a] < f->y[b]) && f->x[a] > f->x[b]);
        if (swap) { a = b; b = e; }
        top[e][0] = f->x[a];
        top[e][1] = f->y[a];
        end[e] = f->y[b];
        slope[e] = f->y[b] > f->y[a] ? (f->x[b] - f->x[a]) / (f->y[b] - f->y[a]) : 0;
        if (f->y[e] < lo) lo = f->y[e];
        if (f->y[e] > hi) hi = f->y[e];
    }
    y = ex__ceil(lo - 0.5f, p->view.height);
    y1 = ex__ceil(hi - 0.5f, p->view.height);
    if (y < row0) y = row0;
    if (y1 > row1) y1 = row1;
    for (; y < y1; y++) {
        float yc = (float)y + 0.5f, left = 1e30f, right = -1e30f;
        int x0, x1;
        for (e = 0; e < 3; e++) {
            float x;
            if (!(top[e][1] <= yc && yc < end[e])) continue;
            x = top[e][0] + (yc - top[e][1]) * slope[e];
            if (x < left) left = x;
            if (x > right) right = x;
        }
        x0 = ex__ceil(left - 0.5f, p->view.width);
        x1 = ex__ceil(right - 0.5f, p->view.width);
        if (x0 < x1) span(p, f, y, x0, x1);
    }
}

static uint32_t ex__lerp_color(const uint32_t *c, float q0, float q1, float q2)
{
    uint32_t out = c[0] & 0xff000000u;
    int k;
    if (c[0] == c[1] && c[0] == c[2]) return c[0];
    for (k = 0; k < 24; k += 8) {
        float v = q0 * (float)(c[0] >> k & 255u) + q1 * (float)(c[1] >> k & 255u) + q2 * (float)(c[2] >> k & 255u);
        out |= (uint32_t)(ex__clamp(v, 0, 255) + 0.5f) << k;
    }
    return out;
}

static float ex__key_at(const ex__face *f, float b1, float b2)
{
    return ex__clamp(f->key[0] + b1 * (f->key[1] - f->key[0]) + b2 * (f->key[2] - f->key[0]), f->key_lo, f->key_hi);
}

/* Shares of the corners at a sample, corrected for perspective. */
static void ex__shares(const ex__pass *p, const ex__face *f, float b1, float b2, float key, float *q)
{
    q[1] = ex__clamp(p->view.parallel ? b1 : b1 * f->key[1] / key, 0, 1);
    q[2] = ex__clamp(p->view.parallel ? b2 : b2 * f->key[2] / key, 0, 1 - q[1]);
    q[0] = 1 - q[1] - q[2];
}

static ex__vec ex__lerp_normal(const ex__vec *n, const float *q)
{
    return ex__madd(ex__madd(ex__scale(n[0], q[0]), q[1], n[1]), q[2], n[2]);
}

static void ex__solid_span(ex__pass *p, const ex__face *f, int y, int x0, int x1)
{
    float dx = (float)x0 + 0.5f - f->x[0], dy = (float)y + 0.5f - f->y[0], q[3];
    float b1 = dx * f->b1x + dy * f->b1y, b2 = dx * f->b2x + dy * f->b2y;
    size_t i = (size_t)y * (size_t)p->view.width + (size_t)x0;
    for (; x0 < x1; x0++, i++, b1 += f->b1x, b2 += f->b2x) {
        float key = ex__key_at(f, b1, b2);
        if (key <= p->key[i]) continue;
        p->key[i] = key;
        if (!p->normal) continue;
        ex__shares(p, f, b1, b2, key, q);
        p->normal[i] = ex__lerp_normal(f->tri->n, q);
        p->color[i] = ex__lerp_color(f->tri->c, q[0], q[1], q[2]);
    }
}

/* Thickness of the liquid before the solid at z_s: each front face adds z_s - z, each back face takes it away again, in
   any order; a surface that is open at the back ends at the solid. */
static void ex__water_span(ex__pass *p, const ex__face *f, int y, int x0, int x1)
{
    float dx = (float)x0 + 0.5f - f->x[0], dy = (float)y + 0.5f - f->y[0], q[3];
    float b1 = dx * f->b1x + dy * f->b1y, b2 = dx * f->b2x + dy * f->b2y;
    size_t i = (size_t)y * (size_t)p->view.width + (size_t)x0;
    for (; x0 < x1; x0++, i++, b1 += f->b1x, b2 += f->b2x) {
        float depth, key = ex__key_at(f, b1, b2);
        if (key <= p->key[i]) continue;
        depth = ex__depth_of(&p->view, p->key[i]) - ex__depth_of(&p->view, key);
        p->water_depth[i] += f->front ? depth : -depth;
        if (!f->front || key <= p->water_key[i]) continue;
        p->water_key[i] = key;
        if (!p->normal) continue;
        ex__shares(p, f, b1, b2, key, q);
        p->water_normal[i] = ex__lerp_normal(f->tri->n, q);
    }
}

/* Screen rectangle of a ball, a little too large; 0 when it is behind the eye. */
static int ex__ball_bounds(const ex__view *v, const ex__ball *b, ex__vec *center, int *rect)
{
    ex__vec c = ex__to_view(v, b->p);
    float s[3], r = b->r * v->scale;
    if (!(c.z - b->r > v->front)) return 0;
    if (!v->parallel) r = r / (c.z - b->r) * sqrtf(1 + (c.x * c.x + c.y * c.y) / (c.z * c.z));
    ex__project(v, c, s);
    *center = c;
    rect[0] = ex__ceil(s[0] - r - 1.5f, v->width);
    rect[1] = ex__ceil(s[0] + r + 0.5f, v->width);
    rect[2] = ex__ceil(s[1] - r - 1.5f, v->height);
    rect[3] = ex__ceil(s[1] + r + 0.5f, v->height);
    return 1;
}

/* The ray o + t d meets the ball |x - c| = r first at t = t_c - sqrt((r^2 - e^2) / d^2), where t_c is the closest
   approach to c and e the vector from c to there. */
static void ex__ball_row(ex__pass *p, const ex__ball *b, ex__vec c, int y, int x0, int x1)
{
    const ex__view *v = &p->view;
    float k = 1 / v->scale, sy = (v->cy - (float)y - 0.5f) * k, rr = b->r * b->r, closest = ex__key_of(v, c.z - b->r);
    size_t i = (size_t)y * (size_t)v->width + (size_t)x0;
    for (; x0 < x1; x0++, i++) {
        float sx = ((float)x0 + 0.5f - v->cx) * k, dd, t, h, key;
        ex__vec d = v->parallel ? ex__v(0, 0, 1) : ex__v(sx, sy, 1);
        ex__vec e = v->parallel ? ex__v(sx - c.x, sy - c.y, -c.z) : ex__v(-c.x, -c.y, -c.z); /* o - c */
        if (closest <= p->key[i]) continue;
        dd = ex__dot3(d, d);
        t = -ex__dot3(d, e) / dd;
        e = ex__madd(e, t, d);
        h = rr - ex__dot3(e, e);
        if (h <= 0) continue;
        h = sqrtf(h / dd);
        key = ex__key_of(v, t - h);
        if (key <= p->key[i]) continue;
        p->key[i] = key;
        if (!p->normal) continue;
        e = ex__madd(e, -h, d);
        p->normal[i] = ex__madd(ex__madd(ex__scale(v->right, e.x), e.y, v->up), e.z, v->forward);
        p->color[i] = b->c;
    }
}

/* A line as a rectangle on the screen, one pixel wider than the line on each side and a little closer to the eye. */
static int ex__stroke_corners(const ex__view *v, const ex__stroke *k, float *corner)
{
    float a[3], b[3], dx, dy, l, half = k->width / 2 + 1;
    ex__vec p = ex__to_view(v, k->p[0]), q = ex__to_view(v, k->p[1]);
    int i;
    if (p.z < v->front && q.z < v->front) return 0;
    if (p.z < v->front) p = ex__mix(p, q, (v->front - p.z) / (q.z - p.z));
    if (q.z < v->front) q = ex__mix(q, p, (v->front - q.z) / (p.z - q.z));
    ex__project(v, p, a);
    ex__project(v, q, b);
    dx = b[0] - a[0];
    dy = b[1] - a[1];
    l = sqrtf(dx * dx + dy * dy);
    dx = l > 0 ? dx * half / l : half;
    dy = l > 0 ? dy * half / l : 0;
    for (i = 0; i < 4; i++) {
        const float *e = i < 2 ? a : b;
        float across = i == 0 || i == 3 ? 1.0f : -1.0f;
        corner[3 * i] = e[0] - across * dy;
        corner[3 * i + 1] = e[1] + across * dx;
        corner[3 * i + 2] = e[2] + 2e-3f * fabsf(e[2]);
    }
    return 1;
}

/* Blends a line over the picture: as far as it covers the pixel, times the share of the pixel's samples that show nothing
   solid before it, times what the liquid before it lets through. */
static void ex__stroke_span(ex__pass *p, const ex__face *f, int y, int x0, int x1)
{
    ex_scene *s = p->scene;
    const ex__pass *c = &s->camera;
    float half = f->tri->n[0].y, q[3];
    for (; x0 < x1; x0++) {
        float dx = (float)x0 + 0.5f - f->x[0], dy = (float)y + 0.5f - f->y[0], key, cover;
        ex__vec *o = s->shown + (size_t)y * (size_t)s->width + (size_t)x0;
        int a, b, n = s->samples, open = 0;
        size_t i = (size_t)(y * n) * (size_t)c->view.width + (size_t)(x0 * n);
        q[1] = dx * f->b1x + dy * f->b1y;
        q[2] = dx * f->b2x + dy * f->b2y;
        q[0] = 1 - q[1] - q[2];
        key = q[0] * f->key[0] + q[1] * f->key[1] + q[2] * f->key[2];
        cover = half + 0.5f - (half + 1) * fabsf(q[0] * f->tri->n[0].x + q[1] * f->tri->n[1].x + q[2] * f->tri->n[2].x);
        for (b = 0; b < n; b++)
            for (a = 0; a < n; a++) open += key > c->key[i + (size_t)b * (size_t)c->view.width + (size_t)a];
        cover = ex__clamp(cover, 0, 1) * (float)open / (float)(n * n);
        if (s->count[EX__WATER] > 0 && c->water_key[i] > key) cover *= 0.3f;
        *o = ex__mix(*o, ex__linear_rgb(s, f->tri->c[0]), cover);
    }
}

static void ex__draw_stroke(ex__pass *p, const ex__stroke *k, int row0, int row1)
{
    static const int corners[2][3] = { { 0, 1, 2 }, { 0, 2, 3 } };
    float c[12];
    ex__tri tri;
    ex__face f;
    int t, i;
    memset(&tri, 0, sizeof tri);
    tri.c[0] = k->c;
    f.tri = &tri;
    if (!ex__stroke_corners(&p->view, k, c)) return;
    for (t = 0; t < 2; t++) {
        for (i = 0; i < 3; i++) {
            int j = corners[t][i];
            f.x[i] = c[3 * j];
            f.y[i] = c[3 * j + 1];
            f.key[i] = c[3 * j + 2];
            tri.n[i] = ex__v(j == 0 || j == 3 ? 1.0f : -1.0f, k->width / 2, 0);
        }
        if (ex__face_begin(&f)) ex__fill(p, &f, row0, row1, ex__stroke_span);
    }
}

static void ex__stroke_band(void *arg, int band)
{
    ex__pass *p = (ex__pass *)arg;
    int j, row0 = band * EX__BAND, row1 = row0 + EX__BAND < p->view.height ? row0 + EX__BAND : p->view.height;
    for (j = p->first[EX__STROKES][band]; j < p->first[EX__STROKES][band + 1]; j++)
        ex__draw_stroke(p, &p->scene->strokes[p->item[EX__STROKES][j]], row0, row1);
}

/* Rows lo..hi-1 that an item may touch; none when lo >= hi. */
static void ex__rows_of(const ex_scene *s, const ex__view *v, ex__kind kind, int i, int *lo, int *hi)
{
    float c[12], top = 1e30f, bottom = -1e30f;
    int k, n = 0, rect[4];
    ex__vec center;
    ex__face f;
    *lo = *hi = 0;
    if (kind == EX__BALLS) {
        if (ex__ball_bounds(v, &s->balls[i], &center, rect) && rect[0] < rect[1]) { *lo = rect[2]; *hi = rect[3]; }
        return;
    }
    if (kind == EX__STROKES) n = ex__stroke_corners(v, &s->strokes[i], c) ? 4 : 0;
    else if (ex__face_of(v, (kind == EX__WATER ? s->water : s->tris) + i, &f))
        for (n = 0; n < 3; n++) c[3 * n + 1] = f.y[n];
    for (k = 0; k < n; k++) {
        if (c[3 * k + 1] < top) top = c[3 * k + 1];
        if (c[3 * k + 1] > bottom) bottom = c[3 * k + 1];
    }
    if (n == 0) return;
    *lo = ex__ceil(top - 0.5f, v->height);
    *hi = ex__ceil(bottom - 0.5f, v->height);
}

/* A task of ex__bin: rows of a chunk of items. */
typedef struct ex__job {
    ex__pass *pass;
    ex__kind kind;
    int count;
} ex__job;

#define EX__CHUNK 2048

static void ex__rows_task(void *arg, int chunk)
{
    ex__job *job = (ex__job *)arg;
    ex__pass *p = job->pass;
    int i, end = (chunk + 1) * EX__CHUNK < job->count ? (chunk + 1) * EX__CHUNK : job->count;
    for (i = chunk * EX__CHUNK; i < end; i++)
        ex__rows_of(p->scene, &p->view, job->kind, i, &p->rows[2 * i], &p->rows[2 * i + 1]);
}

static void ex__run(ex_scene *s, int count, void (*task)(void *arg, int index), void *arg)
{
    int i;
    if (s->context->parallel_for) s->context->parallel_for(s->context->user, count, task, arg);
    else
        for (i = 0; i < count; i++) task(arg, i);
}

static int *ex__ints(int *old, int *capacity, int need)
{
    if (need <= *capacity) return old;
    *capacity = need + need / 2;
    return (int *)ex_alloc(old, (size_t)*capacity, sizeof(int));
}

static int ex__bands(const ex__pass *p) { return (p->view.height + EX__BAND - 1) / EX__BAND; }

static int ex__first_band(const ex__pass *p, int i) { return p->rows[2 * i] / EX__BAND; }
static int ex__last_band(const ex__pass *p, int i)
{
    return p->rows[2 * i] < p->rows[2 * i + 1] ? (p->rows[2 * i + 1] - 1) / EX__BAND : -1;
}

/* Sorts the items of a kind by band: item[kind][first[kind][b]] ... are those of band b, in the order they were drawn. */
static void ex__bin(ex__pass *p, ex__kind kind)
{
    ex_scene *s = p->scene;
    int i, b, *first, count = s->count[kind], bands = ex__bands(p);
    ex__job job;
    job.pass = p;
    job.kind = kind;
    job.count = count;
    p->rows = ex__ints(p->rows, &p->row_capacity, 2 * count);
    first = p->first[kind] = ex__ints(p->first[kind], &p->first_capacity[kind], bands + 2);
    ex__run(s, (count + EX__CHUNK - 1) / EX__CHUNK, ex__rows_task, &job);
    for (b = 0; b < bands + 2; b++) first[b] = 0;
    for (i = 0; i < count; i++)
        for (b = ex__first_band(p, i); b <= ex__last_band(p, i); b++) first[b + 2]++;
    for (b = 1; b < bands + 2; b++) first[b] += first[b - 1];
    p->item[kind] = ex__ints(p->item[kind], &p->item_capacity[kind], first[bands + 1]);
    for (i = 0; i < count; i++)
        for (b = ex__first_band(p, i); b <= ex__last_band(p, i); b++) p->item[kind][first[b + 1]++] = i;
}

/* Empty samples: the ground, or nothing, at the depth of emptiness. */
static void ex__clear_row(const ex_scene *s, ex__pass *p, int y)
{
    const ex__view *v = &p->view;
    float nothing = ex__key_of(v, v->back), above = ex__dot3(v->eye, s->up_dir) - (float)s->ground_height;
    size_t i = (size_t)y * (size_t)v->width;
    int x, ground = p->normal && s->ground && !s->flat && above > 0;
    for (x = 0; x < v->width; x++, i++) {
        float fall = 0, key = nothing;
        if (ground) fall = -ex__dot3(ex__ray(v, (float)x + 0.5f, (float)y + 0.5f), s->up_dir);
        if (fall > 0 && !v->parallel && fall / above > nothing) key = fall / above;
        p->key[i] = key;
        if (!p->normal) continue;
        p->color[i] = key > nothing ? (uint32_t)EX__GROUND << 24 : (uint32_t)EX__SKY << 24;
        p->normal[i] = s->up_dir;
    }
}

static void ex__solid_band(void *arg, int band)
{
    ex__pass *p = (ex__pass *)arg;
    ex_scene *s = p->scene;
    int j, y, row0 = band * EX__BAND, row1 = row0 + EX__BAND < p->view.height ? row0 + EX__BAND : p->view.height;
    for (y = row0; y < row1; y++) ex__clear_row(s, p, y);
    for (j = p->first[EX__TRIS][band]; j < p->first[EX__TRIS][band + 1]; j++) {
        const ex__tri *t = &s->tris[p->item[EX__TRIS][j]];
        ex__face f;
        if (!ex__face_of(&p->view, t, &f) || (t->c[0] >> 24 == EX__WALL && (!f.front || !p->normal))) continue;
        ex__fill(p, &f, row0, row1, ex__solid_span);
    }
    for (j = p->first[EX__BALLS][band]; j < p->first[EX__BALLS][band + 1]; j++) {
        const ex__ball *b = &s->balls[p->item[EX__BALLS][j]];
        ex__vec c;
        int rect[4];
        if (!ex__ball_bounds(&p->view, b, &c, rect)) continue;
        if (rect[2] < row0) rect[2] = row0;
        for (y = rect[2]; y < rect[3] && y < row1; y++) ex__ball_row(p, b, c, y, rect[0], rect[1]);
    }
}

static void ex__water_band(void *arg, int band)
{
    ex__pass *p = (ex__pass *)arg;
    int j, row0 = band * EX__BAND, row1 = row0 + EX__BAND < p->view.height ? row0 + EX__BAND : p->view.height;
    size_t i, end = (size_t)row1 * (size_t)p->view.width;
    float nothing = ex__key_of(&p->view, p->view.back);
    for (i = (size_t)row0 * (size_t)p->view.width; i < end; i++) {
        p->water_key[i] = nothing;
        p->water_depth[i] = 0;
    }
    for (j = p->first[EX__WATER][band]; j < p->first[EX__WATER][band + 1]; j++) {
        ex__face f;
        if (!ex__face_of(&p->view, &p->scene->water[p->item[EX__WATER][j]], &f)) continue;
        ex__fill(p, &f, row0, row1, ex__water_span);
    }
}

/* Cuts the triangles that pass through the front plane of the camera, and appends what is left of them. */
static void ex__clip(ex_scene *s, ex__kind kind)
{
    int i, k, count = s->count[kind];
    for (i = 0; i < count; i++) {
        ex__tri in = (kind == EX__WATER ? s->water : s->tris)[i], out;
        ex__vec p[4], n[4];
        float z[3], front = s->camera.view.front;
        int m = 0, behind = 0;
        for (k = 0; k < 3; k++) behind += (z[k] = ex__to_view(&s->camera.view, in.p[k]).z) < front;
        if (behind == 0 || behind == 3) continue;
        for (k = 0; k < 3; k++) {
            int l = (k + 1) % 3;
            float t = (front * 1.0001f - z[k]) / (z[l] - z[k]);
            if (z[k] >= front) { p[m] = in.p[k]; n[m++] = in.n[k]; }
            if ((z[k] >= front) == (z[l] >= front)) continue;
            p[m] = ex__mix(in.p[k], in.p[l], t);
            n[m++] = ex__mix(in.n[k], in.n[l], t);
        }
        for (k = 2; k < m; k++) {
            ex__tri **list = kind == EX__WATER ? &s->water : &s->tris;
            out = in;
            out.p[0] = p[0]; out.p[1] = p[k - 1]; out.p[2] = p[k];
            out.n[0] = n[0]; out.n[1] = n[k - 1]; out.n[2] = n[k];
            *list = (ex__tri *)ex__room(s, kind, *list, 1, sizeof out);
            (*list)[s->count[kind]++] = out;
        }
    }
}

static void ex__reserve(ex__pass *p, int lit, int water)
{
    size_t n = (size_t)p->view.width * (size_t)p->view.height;
    if (n > p->capacity) {
        p->capacity = n;
        p->key = (float *)ex_alloc(p->key, n, sizeof(float));
        if (lit) p->normal = (ex__vec *)ex_alloc(p->normal, n, sizeof(ex__vec));
        if (lit) p->color = (uint32_t *)ex_alloc(p->color, n, sizeof(uint32_t));
    }
    if (water && n > p->water_capacity) {
        p->water_capacity = n;
        p->water_key = (float *)ex_alloc(p->water_key, n, sizeof(float));
        p->water_depth = (float *)ex_alloc(p->water_depth, n, sizeof(float));
        if (lit) p->water_normal = (ex__vec *)ex_alloc(p->water_normal, n, sizeof(ex__vec));
    }
}

/* Draws what is solid and what is liquid into the buffers of a pass. */
static void ex__draw_pass(ex__pass *p)
{
    ex_scene *s = p->scene;
    ex__reserve(p, p == &s->camera, s->count[EX__WATER] > 0);
    ex__bin(p, EX__TRIS);
    ex__bin(p, EX__BALLS);
    ex__run(s, ex__bands(p), ex__solid_band, p);
    if (s->count[EX__WATER] == 0) return;
    ex__bin(p, EX__WATER);
    ex__run(s, ex__bands(p), ex__water_band, p);
}

/* ---- >>shading ------------------------------------------------------------------------------------------------ */

/* Index in the camera's buffers of the sample that stands for pixel (x, y). */
static size_t ex__sample_of(const ex_scene *s, int x, int y)
{
    int n = s->samples;
    return (size_t)(y * n + n / 2) * (size_t)s->camera.view.width + (size_t)(x * n + n / 2);
}

static ex__vec ex__sample_point(const ex_scene *s, size_t i, float key)
{
    const ex__view *v = &s->camera.view;
    size_t w = (size_t)v->width;
    return ex__point(v, (float)(i % w) + 0.5f, (float)(i / w) + 0.5f, ex__depth_of(v, key));
}

/* Unit normal of a sample, turned towards the eye. */
static ex__vec ex__facing_normal(const ex_scene *s, ex__vec n, ex__vec p)
{
    ex__vec to_eye = s->camera.view.parallel ? ex__scale(s->camera.view.forward, -1) : ex__sub(s->camera.view.eye, p);
    n = ex__unit(n);
    return ex__dot3(n, to_eye) < 0 ? ex__scale(n, -1) : n;
}

/* How far the solid at (x, y) of the sun's view lies above depth z, 0 or less when nothing is above; *water: length of
   liquid there, when z is below its surface. */
static float ex__sun_gap(const ex_scene *s, float x, float y, float z, float *water)
{
    const ex__pass *sun = &s->sunlight;
    size_t i;
    *water = 0;
    if (!(x >= 0 && y >= 0 && x < (float)sun->view.width && y < (float)sun->view.height)) return 0;
    i = (size_t)y * (size_t)sun->view.width + (size_t)x;
    if (s->count[EX__WATER] > 0 && -sun->water_key[i] < z && sun->water_depth[i] > 0) *water = sun->water_depth[i];
    return z + sun->key[i];
}

/* Share of the sun that reaches p: percentage closer soft shadows. The mean gap to what is found above p gives the width
   of the half shadow, sun_angle * gap, over which the depths are then compared. Both times the depth of the receiving
   plane is followed (sx, sy: its slope, known from n), so that a wide filter does not shade the plane itself.
   *water: mean length of liquid that the light has crossed. */
static float ex__sun_share(const ex_scene *s, ex__vec p, ex__vec n, int turn, float *water)
{
    const ex__view *v = &s->sunlight.view;
    float texel = 1 / v->scale, q[3], widest = 0.025f * (float)v->width, width = 3, slope, sx, sy, gap, length, gaps = 0;
    ex__vec c = ex__to_view(v, ex__madd(p, 1.5f * texel, n));
    int k, found = 0, lit = 0;
    *water = 0;
    ex__project(v, c, q);
    slope = ex__dot3(n, v->forward);
    if (slope > -0.05f) slope = -0.05f;
    sx = ex__clamp(-ex__dot3(n, v->right) / slope, -4, 4) * texel;
    sy = ex__clamp(ex__dot3(n, v->up) / slope, -4, 4) * texel;
    c.z -= 1.5f * texel;
    for (k = 0; k < 8; k++) {
        float x = widest * s->disc[turn][k][0], y = widest * s->disc[turn][k][1];
        gap = ex__sun_gap(s, q[0] + x, q[1] + y, c.z + sx * x + sy * y, &length);
        if (gap <= 0) continue;
        gaps += gap;
        found++;
    }
    if (found) width = ex__clamp(gaps / (float)found * (float)s->sun_angle * v->scale, 1, widest);
    for (k = 0; k < 8; k++) {
        float x = width * s->disc[turn][k][0], y = width * s->disc[turn][k][1];
        lit += ex__sun_gap(s, q[0] + x, q[1] + y, c.z + sx * x + sy * y, &length) <= 0;
        *water += length / 8;
    }
    return (float)lit / 8;
}

/* Share of the sky that p sees: how far the solid around it rises above its tangent plane. */
static float ex__sky_share(const ex_scene *s, ex__vec p, ex__vec n, float z, int x, int y, int turn)
{
    const ex__view *v = &s->camera.view;
    float reach = 0.1f * s->radius, pixels = v->scale / (float)s->samples * reach / (v->parallel ? 1 : z), hidden = 0;
    int k;
    pixels = ex__clamp(pixels, 3, 90);
    for (k = 0; k < 8; k++) {
        int qx = x + (int)(pixels * s->disc[turn][k][0]), qy = y + (int)(pixels * s->disc[turn][k][1]);
        size_t i;
        ex__vec d;
        float l2, rise;
        if (qx < 0 || qy < 0 || qx >= s->width || qy >= s->height) continue;
        i = ex__sample_of(s, qx, qy);
        d = ex__sub(ex__sample_point(s, i, s->camera.key[i]), p);
        l2 = ex__dot3(d, d) + 1e-12f;
        rise = ex__dot3(d, n) / sqrtf(l2) - 0.08f;
        if (rise > 0) hidden += rise / (1 + 4 * l2 / (reach * reach));
    }
    return ex__clamp(1 - 2.2f * hidden / 8, 0, 1);
}

static void ex__seen_row(void *arg, int y)
{
    ex_scene *s = (ex_scene *)arg;
    int x;
    for (x = 0; x < s->width; x++) {
        size_t i = ex__sample_of(s, x, y);
        ex__seen *o = &s->seen[(size_t)y * (size_t)s->width + (size_t)x];
        uint32_t kind = s->camera.color[i] >> 24;
        int turn = (x & 3) * 4 + (y & 3);
        ex__vec n;
        o->ambient = -1;
        o->sun = 1;
        o->water = 0;
        if (kind == EX__SKY) continue;
        o->p = ex__sample_point(s, i, s->camera.key[i]);
        n = ex__facing_normal(s, s->camera.normal[i], o->p);
        o->ambient = ex__sky_share(s, o->p, n, ex__depth_of(&s->camera.view, s->camera.key[i]), x, y, turn);
        o->sun = ex__sun_share(s, o->p, n, turn, &o->water);
    }
}

/* Mean of what the 4 x 4 pixels around (x, y) see, of those that lie in the tangent plane of p. Every such square holds
   each of the 16 turns of the sampling pattern once, so their noise cancels. */
static ex__seen ex__seen_at(const ex_scene *s, int x, int y, ex__vec p, ex__vec n)
{
    ex__seen sum;
    float weight = 0, pixel = (float)s->samples / s->camera.view.scale, slack;
    int dx, dy;
    slack = 2.5f * pixel * (s->camera.view.parallel ? 1 : ex__to_view(&s->camera.view, p).z);
    sum.p = p;
    sum.sun = sum.ambient = sum.water = 0;
    for (dy = -2; dy < 2; dy++)
        for (dx = -2; dx < 2; dx++) {
            const ex__seen *o;
            float d;
            if (x + dx < 0 || y + dy < 0 || x + dx >= s->width || y + dy >= s->height) continue;
            o = &s->seen[(size_t)(y + dy) * (size_t)s->width + (size_t)(x + dx)];
            if (o->ambient < 0) continue;
            d = ex__dot3(n, ex__sub(o->p, p));
            if (d > slack || d < -slack) continue;
            sum.sun += o->sun;
            sum.ambient += o->ambient;
            sum.water += o->water;
            weight += 1;
        }
    if (weight > 0) weight = 1 / weight;
    else sum.sun = sum.ambient = weight = 1;
    sum.sun *= weight;
    sum.ambient *= weight;
    sum.water *= weight;
    return sum;
}

static ex__vec ex__backdrop(const ex_scene *s, int y)
{
    float t = s->flat ? 1 : ex__clamp(1.6f * ((float)y + 0.5f) / (float)s->height, 0, 1);
    return ex__mix(ex__linear_rgb(s, s->top_rgb), ex__linear_rgb(s, s->horizon_rgb), t);
}

/* How much of a pixel of the given width a grid line covers, in one direction. */
static float ex__grid_cover(float u, float grid, float pixel)
{
    float half = 0.008f * grid, d = fabsf(u / grid - floorf(u / grid + 0.5f)) * grid;
    return ex__clamp((half + 0.5f * pixel - d) / pixel, 0, 1) * ex__clamp(2 * half / pixel, 0, 1);
}

static ex__vec ex__ground_rgb(const ex_scene *s, ex__vec p)
{
    ex__vec d = ex__sub(p, s->camera.view.eye), color = ex__linear_rgb(s, s->ground_rgb);
    float pixel, cover, grid = (float)s->grid;
    if (grid <= 0) return color;
    pixel = (float)s->samples / s->camera.view.scale * ex__dot3(d, s->camera.view.forward);
    pixel *= 0.4f + 0.6f * sqrtf(ex__dot3(d, d)) / (fabsf(ex__dot3(d, s->up_dir)) + 1e-6f);
    cover = ex__grid_cover(ex__dot3(p, s->side_dir), grid, pixel) + ex__grid_cover(ex__dot3(p, s->ahead_dir), grid, pixel);
    return ex__scale(color, 1 - 0.22f * ex__clamp(cover, 0, 1));
}

static ex__vec ex__absorbed(const ex_scene *s, float depth)
{
    return ex__v(expf(-s->absorb_rgb.x * depth), expf(-s->absorb_rgb.y * depth), expf(-s->absorb_rgb.z * depth));
}

static float ex__pow32(float x)
{
    int k;
    for (k = 0; k < 5; k++) x *= x;
    return x;
}

/* Light from p to the eye: albedo * (sky + bounce + sun) and a soft highlight; the ground fades into the backdrop. */
static ex__vec ex__shade_sample(const ex_scene *s, size_t i, int x, int y)
{
    uint32_t c = s->camera.color[i], kind = c >> 24;
    ex__vec p, n, light, albedo, view, sun;
    ex__seen seen;
    float cosine, up, far_off;
    if (kind == EX__SKY) return ex__backdrop(s, y);
    if (s->flat) return ex__linear_rgb(s, c);
    p = ex__sample_point(s, i, s->camera.key[i]);
    far_off = kind == EX__GROUND ? sqrtf(ex__dot3(ex__sub(p, s->center), ex__sub(p, s->center))) / s->radius : 0;
    if (far_off > 5) return ex__backdrop(s, y);
    n = ex__facing_normal(s, s->camera.normal[i], p);
    seen = ex__seen_at(s, x, y, p, n);
    albedo = kind == EX__GROUND ? ex__ground_rgb(s, p) : ex__linear_rgb(s, c);
    view = s->camera.view.parallel ? s->camera.view.forward : ex__unit(ex__sub(p, s->camera.view.eye));
    up = 0.5f + 0.5f * ex__dot3(n, s->up_dir);
    cosine = ex__clamp(ex__dot3(n, s->sun_dir), 0, 1) * seen.sun;
    sun = ex__scale(ex__v(1.00f, 0.955f, 0.88f), 0.82f * cosine);
    if (seen.water > 0) { /* dimmed by the liquid and, soon after its surface, by what this has mirrored away */
        sun = ex__mul(sun, ex__absorbed(s, 0.5f * seen.water));
        sun = ex__scale(sun, 0.85f + 0.15f * expf(-30 * seen.water / s->radius));
    }
    light = ex__mix(ex__v(0.30f, 0.285f, 0.27f), ex__v(0.40f, 0.45f, 0.52f), up);
    light = ex__madd(sun, seen.ambient, light);
    light = ex__mul(albedo, light);
    if (kind != EX__GROUND) {
        float shine = ex__clamp(ex__dot3(n, ex__unit(ex__sub(s->sun_dir, view))), 0, 1);
        float rim = 1 - ex__clamp(-ex__dot3(n, view), 0, 1);
        light = ex__madd(light, 0.16f * ex__pow32(shine) * seen.sun, ex__v(1, 1, 1));
        light = ex__madd(light, 0.10f * rim * rim * rim * rim * seen.ambient, ex__v(0.8f, 0.9f, 1));
        return light;
    }
    far_off = ex__clamp((far_off - 1.2f) / 2.8f, 0, 1);
    return ex__mix(light, ex__backdrop(s, y), far_off * far_off * (3 - 2 * far_off));
}

/* The first sample of pixel (x, y); sample (a, b) follows at + b * view.width + a. */
static size_t ex__first_sample(const ex_scene *s, int x, int y)
{
    return (size_t)(y * s->samples) * (size_t)s->camera.view.width + (size_t)(x * s->samples);
}

/* Whether two samples show one smooth piece. */
static int ex__alike(const float *key, const ex__vec *normal, size_t i, size_t j)
{
    float d = ex__dot3(normal[i], normal[j]);
    if (fabsf(key[j] - key[i]) > 0.02f * fabsf(key[i]) || d < 0) return 0;
    return d * d >= 0.96f * ex__dot3(normal[i], normal[i]) * ex__dot3(normal[j], normal[j]);
}

static void ex__solid_row(void *arg, int y)
{
    ex_scene *s = (ex_scene *)arg;
    const ex__pass *p = &s->camera;
    int x, k, n = s->samples, alike;
    for (x = 0; x < s->width; x++) {
        size_t i = ex__first_sample(s, x, y), j;
        ex__vec sum = ex__v(0, 0, 0);
        for (k = 1, alike = 1; k < n * n && alike; k++) {
            j = i + (size_t)(k / n) * (size_t)p->view.width + (size_t)(k % n);
            alike = p->color[i] == p->color[j] && (p->color[i] >> 24 < EX__SOLID || ex__alike(p->key, p->normal, i, j));
        }
        if (alike) sum = ex__shade_sample(s, ex__sample_of(s, x, y), x, y);
        for (k = 0; k < n * n && !alike; k++) {
            j = i + (size_t)(k / n) * (size_t)p->view.width + (size_t)(k % n);
            sum = ex__madd(sum, 1, ex__shade_sample(s, j, x, y));
        }
        s->solid[(size_t)y * (size_t)s->width + (size_t)x] = alike ? sum : ex__scale(sum, 1 / (float)(n * n));
    }
}

/* What the liquid mirrors: a sky that is bright at the horizon and blue above, over a pale ground. */
static ex__vec ex__sky(const ex_scene *s, ex__vec d)
{
    float h = ex__dot3(d, s->up_dir), t;
    if (h < 0) return ex__mix(ex__v(0.86f, 0.90f, 0.94f), ex__v(0.55f, 0.58f, 0.60f), ex__clamp(-3 * h, 0, 1));
    t = sqrtf(h);
    return ex__mix(ex__v(0.98f, 0.99f, 1.0f), ex__v(0.20f, 0.42f, 0.75f), t);
}

/* Colour of the solid picture at (x, y) pixels, bilinear. */
static ex__vec ex__behind(const ex_scene *s, float x, float y)
{
    const ex__vec *c;
    int x0, y0;
    size_t w = (size_t)s->width;
    x = ex__clamp(x - 0.5f, 0, (float)s->width - 1.001f);
    y = ex__clamp(y - 0.5f, 0, (float)s->height - 1.001f);
    x0 = (int)x;
    y0 = (int)y;
    c = s->solid + (size_t)y0 * w + (size_t)x0;
    return ex__mix(ex__mix(c[0], c[1], x - (float)x0), ex__mix(c[w], c[w + 1], x - (float)x0), y - (float)y0);
}

/* Length of liquid between a sample of it and what is behind. */
static float ex__water_length(const ex_scene *s, size_t i)
{
    const ex__view *v = &s->camera.view;
    size_t w = (size_t)v->width;
    ex__vec ray = ex__ray(v, (float)(i % w) + 0.5f, (float)(i / w) + 0.5f);
    return ex__clamp(s->camera.water_depth[i], 0, v->back) * (v->parallel ? 1 : sqrtf(ex__dot3(ray, ray)));
}

/* Snell's law in the picture: follows the refracted ray from the sample p to what is behind, at most 0.15 scene radii
   far, and moves `at` there. The length to follow is looked up where the ray has led so far. Returns the length of liquid
   there; `at` stays where nothing but this liquid's background is found. */
static float ex__refract(const ex_scene *s, ex__vec p, ex__vec view, ex__vec n, float cosine, size_t i, float *at)
{
    const ex__pass *c = &s->camera;
    float eta = 0.75f, length = ex__water_length(s, i), per_pixel = 1 / (float)s->samples, q[3];
    ex__vec ray = ex__madd(ex__scale(view, eta), eta * cosine - sqrtf(1 - eta * eta * (1 - cosine * cosine)), n), e;
    int round;
    for (round = 0; round < 2; round++) {
        e = ex__to_view(&c->view, ex__madd(p, length < 0.15f * s->radius ? length : 0.15f * s->radius, ray));
        if (e.z < c->view.front) return length;
        ex__project(&c->view, e, q);
        if (!(q[0] >= 0 && q[1] >= 0 && q[0] < (float)c->view.width && q[1] < (float)c->view.height)) return length;
        i = ex__sample_of(s, (int)(q[0] * per_pixel), (int)(q[1] * per_pixel));
        if (c->water_depth[i] <= 0) return length;
        length = ex__water_length(s, i);
        at[0] = q[0] * per_pixel;
        at[1] = q[1] * per_pixel;
    }
    return length;
}

/* Fresnel's mixture (by Schlick, r0 = 0.03) of mirrored sky and refracted picture, the latter dimmed by the way through
   the liquid and filled with the light that this scatters; and the sun's glint. Grazing views of the picture are dimmed a
   little more, as they come from the dark side of a drop or crest. */
static ex__vec ex__shade_water(const ex_scene *s, size_t i, int x, int y)
{
    const ex__pass *w = &s->camera;
    float key = w->water_key[i], cosine, fresnel, at[2], length, glint, lit;
    ex__vec p = ex__sample_point(s, i, key), n = ex__facing_normal(s, w->water_normal[i], p);
    ex__vec view, mirrored, color, clear;
    view = w->view.parallel ? w->view.forward : ex__unit(ex__sub(p, w->view.eye));
    cosine = ex__clamp(-ex__dot3(n, view), 0.02f, 1);
    at[0] = (float)x + 0.5f;
    at[1] = (float)y + 0.5f;
    length = ex__refract(s, p, view, n, cosine, i, at);
    clear = ex__absorbed(s, length);
    color = ex__scale(ex__mul(ex__behind(s, at[0], at[1]), clear), 0.72f + 0.28f * sqrtf(cosine));
    lit = 0.62f + 0.38f * ex__dot3(n, s->sun_dir);
    color = ex__madd(color, lit, ex__mul(ex__linear_rgb(s, s->scatter_rgb), ex__sub(ex__v(1, 1, 1), clear)));
    fresnel = 1 - cosine;
    fresnel = 0.03f + 0.97f * fresnel * fresnel * fresnel * fresnel;
    mirrored = ex__madd(view, 2 * cosine, n);
    color = ex__mix(color, ex__sky(s, mirrored), fresnel);
    glint = ex__clamp(ex__dot3(mirrored, s->sun_dir), 0, 1);
    glint = ex__pow32(glint * glint * glint * glint);
    return ex__madd(color, 1.1f * glint, ex__v(1, 0.97f, 0.9f));
}

static void ex__water_row(void *arg, int y)
{
    ex_scene *s = (ex_scene *)arg;
    const ex__pass *p = &s->camera;
    float nothing = ex__key_of(&p->view, p->view.back);
    int x, k, n = s->samples, alike;
    for (x = 0; x < s->width; x++) {
        size_t i = ex__first_sample(s, x, y), pixel = (size_t)y * (size_t)s->width + (size_t)x, j;
        ex__vec sum = ex__v(0, 0, 0);
        for (k = 0, alike = 1; k < n * n && alike; k++) {
            j = i + (size_t)(k / n) * (size_t)p->view.width + (size_t)(k % n);
            alike = p->water_key[j] > nothing && ex__alike(p->water_key, p->water_normal, i, j);
        }
        if (alike) sum = ex__shade_water(s, ex__sample_of(s, x, y), x, y);
        for (k = 0; k < n * n && !alike; k++) {
            j = i + (size_t)(k / n) * (size_t)p->view.width + (size_t)(k % n);
            sum = ex__madd(sum, 1, p->water_key[j] > nothing ? ex__shade_water(s, j, x, y) : s->solid[pixel]);
        }
        s->wet[pixel] = alike ? sum : ex__scale(sum, 1 / (float)(n * n));
    }
}

/* Linear up to 0.75, then a shoulder that never quite reaches 1. */
static unsigned char ex__tone(const ex_scene *s, float x)
{
    if (x > 0.75f) x = 0.75f + 0.25f * (1 - expf((0.75f - x) * 4));
    return s->encode[(int)(ex__clamp(x, 0, 1) * 4095 + 0.5f)];
}

static void ex__tone_row(void *arg, int y)
{
    ex_scene *s = (ex_scene *)arg;
    const ex__vec *c = s->shown + (size_t)y * (size_t)s->width;
    unsigned char *o = s->image.rgb + 3 * (size_t)y * (size_t)s->width;
    int x;
    for (x = 0; x < s->width; x++) {
        o[3 * x] = ex__tone(s, c[x].x);
        o[3 * x + 1] = ex__tone(s, c[x].y);
        o[3 * x + 2] = ex__tone(s, c[x].z);
    }
}

/* ---- >>render ------------------------------------------------------------------------------------------------- */

static fsi_box3 ex__bounds(const ex_scene *s)
{
    fsi_box3 box = fsi_box3_empty();
    int i, k;
    for (i = 0; i < s->count[EX__TRIS] + s->count[EX__WATER]; i++) {
        const ex__tri *t = i < s->count[EX__TRIS] ? &s->tris[i] : &s->water[i - s->count[EX__TRIS]];
        for (k = 0; k < 3; k++) box = fsi_box3_grow(box, ex__widen(t->p[k]));
    }
    for (i = 0; i < s->count[EX__BALLS]; i++) box = fsi_box3_grow(box, ex__widen(s->balls[i].p));
    return box;
}

/* A view from eye in a direction; width, height, scale, parallel, front and back have been set. */
static void ex__aim(ex__view *v, ex__vec eye, ex__vec forward, ex__vec up)
{
    v->eye = eye;
    v->forward = ex__unit(forward);
    v->right = ex__cross(v->forward, up);
    if (ex__dot3(v->right, v->right) < 1e-10f) v->right = ex__cross(v->forward, ex__v(up.y + 0.3f, up.z + 0.5f, up.x));
    v->right = ex__unit(v->right);
    v->up = ex__cross(v->right, v->forward);
    v->cx = (float)v->width / 2;
    v->cy = (float)v->height / 2;
}

/* The camera, and its copy at one sample a pixel for lines. */
static void ex__aim_camera(ex_scene *s)
{
    ex__view *v = &s->camera.view;
    ex__vec eye = ex__narrow(s->eye), to_center = ex__sub(s->center, eye);
    double units = s->parallel > 0 ? s->parallel : 2 * tan(s->fov * FSI_PI / 360);
    v->parallel = s->parallel > 0;
    v->width = s->width * s->samples;
    v->height = s->height * s->samples;
    v->scale = (float)(v->height / units);
    v->front = v->parallel ? -1e30f : 0.01f * s->radius;
    v->back = sqrtf(ex__dot3(to_center, to_center)) + 60 * s->radius;
    ex__aim(v, eye, ex__sub(ex__narrow(s->target), eye), s->up_dir);
    s->lines.view = *v;
    s->lines.view.width = s->width;
    s->lines.view.height = s->height;
    s->lines.view.scale = v->scale / (float)s->samples;
    s->lines.view.cx = v->cx / (float)s->samples;
    s->lines.view.cy = v->cy / (float)s->samples;
}

/* The sun looks at all that casts or receives a shadow. */
static void ex__aim_sun(ex_scene *s, fsi_box3 all)
{
    ex__view *v = &s->sunlight.view;
    ex__vec center = ex__scale(ex__narrow(fsi_v3_add(all.lo, all.hi)), 0.5f);
    float radius = 0.52f * (float)fsi_v3_norm(fsi_v3_sub(all.hi, all.lo)) + 1e-6f * s->radius;
    v->parallel = 1;
    v->width = v->height = 1280;
    v->scale = (float)v->width / (2 * radius);
    v->front = -1e30f;
    v->back = 4 * radius + 60 * s->radius; /* beyond the ground, however far above it everything floats */
    ex__aim(v, ex__madd(center, 2 * radius, s->sun_dir), ex__scale(s->sun_dir, -1), s->up_dir);
}

/* Sizes of the scene, directions, views, and the colours that follow from them. */
static void ex__set_up(ex_scene *s)
{
    fsi_box3 all = ex__bounds(s), box = s->box;
    if (all.lo.x > all.hi.x) all.lo = all.hi = s->target;
    if (box.lo.x > box.hi.x) box = all;
    s->center = ex__scale(ex__narrow(fsi_v3_add(box.lo, box.hi)), 0.5f);
    s->radius = 0.5f * (float)fsi_v3_norm(fsi_v3_sub(box.hi, box.lo)) + 1e-6f;
    s->up_dir = ex__unit(ex__narrow(s->up));
    s->sun_dir = ex__unit(ex__narrow(s->sun));
    ex__ground_axes(s->up_dir, &s->side_dir, &s->ahead_dir);
    s->absorb_rgb = ex__narrow(s->absorb);
    if (ex__dot3(s->absorb_rgb, s->absorb_rgb) <= 0) s->absorb_rgb = ex__scale(ex__v(5.0f, 1.9f, 0.95f), 1 / s->radius);
    s->camera.scene = s->sunlight.scene = s->lines.scene = s;
    ex__aim_camera(s);
    ex__aim_sun(s, all);
}

/* Makes the picture and empties the scene. The picture lasts until the next ex_render; write texts on it before it is
   saved. */
EX_FN ex_image *ex_render(ex_scene *s)
{
    size_t n = (size_t)s->width * (size_t)s->height;
    int k;
    if (s->width != s->image.width || s->height != s->image.height) {
        ex_image_free(&s->image);
        s->image = ex_image_make(s->width, s->height, 0xffffff);
    }
    if (n > s->pixel_capacity) {
        s->pixel_capacity = n;
        s->seen = (ex__seen *)ex_alloc(s->seen, n, sizeof *s->seen);
        s->solid = (ex__vec *)ex_alloc(s->solid, n, sizeof(ex__vec));
        s->wet = (ex__vec *)ex_alloc(s->wet, n, sizeof(ex__vec));
    }
    ex__set_up(s);
    s->shown = s->count[EX__WATER] > 0 ? s->wet : s->solid;
    if (!s->flat) ex__draw_pass(&s->sunlight);
    if (!s->camera.view.parallel) {
        ex__clip(s, EX__TRIS);
        ex__clip(s, EX__WATER);
    }
    ex__draw_pass(&s->camera);
    if (!s->flat) ex__run(s, s->height, ex__seen_row, s);
    ex__run(s, s->height, ex__solid_row, s);
    if (s->count[EX__WATER] > 0) ex__run(s, s->height, ex__water_row, s);
    ex__bin(&s->lines, EX__STROKES);
    ex__run(s, ex__bands(&s->lines), ex__stroke_band, &s->lines);
    ex__run(s, s->height, ex__tone_row, s);
    for (k = 0; k < EX__KINDS; k++) s->count[k] = 0;
    return &s->image;
}

/* ---- >>shapes ------------------------------------------------------------------------------------------------- */

/* Vertices and triangles of a file, OBJ or PLY; y_up turns its y axis up. Ends the program, with fsi's reason, when it cannot be read. */
EX_FN ex_mesh ex_load_mesh(ex_app *app, const char *path, int y_up)
{
    fsi_io_mesh file;
    ex_mesh m;
    int i;
    ex_check(app, fsi_io_read_mesh(&file, &app->context, path));
    m = ex_mesh_make(file.vertex_count, file.triangle_count);
    if (file.triangle_count > 0) memcpy(m.triangles, file.triangles, 3 * (size_t)file.triangle_count * sizeof(int));
    for (i = 0; i < file.vertex_count; i++) {
        fsi_vec3 v = file.vertices[i];
        m.vertices[i] = y_up ? fsi_v3(v.x, -v.z, v.y) : v;
    }
    fsi_io_destroy_mesh(&file);
    return m;
}

/* Scales about the origin, then shifts. */
EX_FN void ex_mesh_move(ex_mesh *m, double scale, fsi_vec3 shift)
{
    int i;
    for (i = 0; i < m->vertex_count; i++) m->vertices[i] = fsi_v3_madd(shift, (fsi_real)scale, m->vertices[i]);
}

/* Scales and shifts vertices so that they stand in the middle of the box's floor and reach as far as their proportions
   allow. They must have some extent along each axis. */
EX_FN void ex_fit(fsi_vec3 *vertices, int count, fsi_box3 box)
{
    fsi_box3 own = fsi_box3_empty();
    fsi_vec3 have, room = fsi_v3_sub(box.hi, box.lo), from, to;
    fsi_real scale;
    int i;
    for (i = 0; i < count; i++) own = fsi_box3_grow(own, vertices[i]);
    have = fsi_v3_sub(own.hi, own.lo);
    scale = fsi_min(room.x / have.x, fsi_min(room.y / have.y, room.z / have.z));
    from = fsi_v3((own.lo.x + own.hi.x) / 2, (own.lo.y + own.hi.y) / 2, own.lo.z);
    to = fsi_v3((box.lo.x + box.hi.x) / 2, (box.lo.y + box.hi.y) / 2, box.lo.z);
    for (i = 0; i < count; i++) vertices[i] = fsi_v3_madd(to, scale, fsi_v3_sub(vertices[i], from));
}

/* Adds a copy of `other` to m. */
EX_FN void ex_mesh_add(ex_mesh *m, const ex_mesh *other)
{
    int i, first = m->vertex_count;
    m->vertices = (fsi_vec3 *)ex_alloc(m->vertices, (size_t)(first + other->vertex_count), sizeof *m->vertices);
    m->triangles = (int *)ex_alloc(m->triangles, (size_t)(m->triangle_count + other->triangle_count), 3 * sizeof(int));
    memcpy(m->vertices + first, other->vertices, (size_t)other->vertex_count * sizeof *m->vertices);
    for (i = 0; i < 3 * other->triangle_count; i++) m->triangles[3 * m->triangle_count + i] = first + other->triangles[i];
    m->vertex_count += other->vertex_count;
    m->triangle_count += other->triangle_count;
}

static void ex__triangle(ex_mesh *m, int i, int a, int b, int c)
{
    m->triangles[3 * i] = a;
    m->triangles[3 * i + 1] = b;
    m->triangles[3 * i + 2] = c;
}

/* A box of 12 triangles; inside 0: a solid block, 1: a room or tank, whose faces look inwards. */
EX_FN ex_mesh ex_box(fsi_box3 box, int inside)
{
    static const int quads[6][4] = { { 0, 2, 3, 1 }, { 4, 5, 7, 6 }, { 0, 1, 5, 4 },
                                     { 2, 6, 7, 3 }, { 0, 4, 6, 2 }, { 1, 3, 7, 5 } };
    ex_mesh m = ex_mesh_make(8, 12);
    int i;
    for (i = 0; i < 8; i++) m.vertices[i] = ex__corner(box, i);
    for (i = 0; i < 6; i++) {
        const int *q = quads[i];
        ex__triangle(&m, 2 * i, q[0], inside ? q[2] : q[1], inside ? q[1] : q[2]);
        ex__triangle(&m, 2 * i + 1, q[0], inside ? q[3] : q[2], inside ? q[2] : q[3]);
    }
    return m;
}

/* nu x nv quads, each cut in two; with wrap the last column and row are joined to the first. The caller fills in the
   vertices, row by row. */
static ex_mesh ex__lattice(int nu, int nv, int wrap)
{
    int cols = wrap ? nu : nu + 1, rows = wrap ? nv : nv + 1, i, j;
    ex_mesh m = ex_mesh_make(cols * rows, 2 * nu * nv);
    for (j = 0; j < nv; j++)
        for (i = 0; i < nu; i++) {
            int low = j * cols, high = (j + 1) % rows * cols, k = (i + 1) % cols;
            ex__triangle(&m, 2 * (j * nu + i), low + i, low + k, high + k);
            ex__triangle(&m, 2 * (j * nu + i) + 1, low + i, high + k, high + i);
        }
    return m;
}

/* nx x ny cells from lo to hi in x and y, at the height lo.z, facing up. Vertex (i, j) is number j * (nx + 1) + i. */
EX_FN ex_mesh ex_grid(fsi_vec3 lo, fsi_vec3 hi, int nx, int ny)
{
    ex_mesh m = ex__lattice(nx, ny, 0);
    fsi_real dx = (hi.x - lo.x) / (fsi_real)nx, dy = (hi.y - lo.y) / (fsi_real)ny;
    int i, j;
    for (j = 0; j <= ny; j++)
        for (i = 0; i <= nx; i++)
            m.vertices[j * (nx + 1) + i] = fsi_v3(lo.x + (fsi_real)i * dx, lo.y + (fsi_real)j * dy, lo.z);
    return m;
}

/* The point at angle t in [0, 2 pi) of a (p, q) torus knot: p turns around the axis z, q around the tube. */
static fsi_vec3 ex__knot_point(int p, int q, double t)
{
    double r = 2 + cos(q * t);
    return fsi_v3((fsi_real)(r * cos(p * t)), (fsi_real)(r * sin(p * t)), (fsi_real)(-sin(q * t)));
}

/* A tube of the given radius around the closed curve of nu points. Its cross-section is turned from one point to the next
   without twist; the angle that is missing after one turn is spread along the curve. */
static ex_mesh ex__tube(const fsi_vec3 *curve, int nu, int nv, double radius)
{
    ex_mesh m = ex__lattice(nv, nu, 1);
    fsi_vec3 *side = (fsi_vec3 *)ex_alloc(NULL, (size_t)nu + 1, sizeof *side), t, first;
    double missing;
    int i, j;
    for (i = 0; i <= nu; i++) {
        t = fsi_v3_unit(fsi_v3_sub(curve[(i + 1) % nu], curve[(i + nu - 1) % nu]));
        first = i ? side[i - 1] : fsi_v3_cross(t, fsi_abs(t.z) < (fsi_real)0.8 ? fsi_v3(0, 0, 1) : fsi_v3(1, 0, 0));
        side[i] = fsi_v3_unit(fsi_v3_madd(first, -fsi_v3_dot(first, t), t));
    }
    missing = atan2((double)fsi_v3_dot(fsi_v3_cross(side[nu], side[0]), t), (double)fsi_v3_dot(side[nu], side[0]));
    for (i = 0; i < nu; i++) {
        fsi_vec3 other;
        t = fsi_v3_unit(fsi_v3_sub(curve[(i + 1) % nu], curve[(i + nu - 1) % nu]));
        other = fsi_v3_cross(t, side[i]);
        for (j = 0; j < nv; j++) {
            double a = 2 * FSI_PI * j / nv + missing * i / nu;
            fsi_vec3 p = fsi_v3_madd(curve[i], (fsi_real)(radius * cos(a)), side[i]);
            m.vertices[i * nv + j] = fsi_v3_madd(p, (fsi_real)(radius * sin(a)), other);
        }
    }
    free(side);
    return m;
}

/* A knotted tube (p = 2, q = 3: trefoil) around the origin with the axis z, about 6 x 6 x 2 before scaling, of nu pieces
   along and nv around. The trefoil does not touch itself for radii up to 0.8. */
EX_FN ex_mesh ex_knot(int p, int q, double radius, int nu, int nv)
{
    fsi_vec3 *curve = (fsi_vec3 *)ex_alloc(NULL, (size_t)nu, sizeof *curve);
    ex_mesh m;
    int i;
    for (i = 0; i < nu; i++) curve[i] = ex__knot_point(p, q, 2 * FSI_PI * i / nu);
    m = ex__tube(curve, nu, nv, radius);
    free(curve);
    return m;
}

/* A ring around the z axis: a tube of the given radius whose middle is at the distance `ring` from the axis. */
EX_FN ex_mesh ex_torus(double ring, double radius, int nu, int nv)
{
    fsi_vec3 *curve = (fsi_vec3 *)ex_alloc(NULL, (size_t)nu, sizeof *curve);
    ex_mesh m;
    int i;
    for (i = 0; i < nu; i++) {
        double a = 2 * FSI_PI * i / nu;
        curve[i] = fsi_v3((fsi_real)(ring * cos(a)), (fsi_real)(ring * sin(a)), 0);
    }
    m = ex__tube(curve, nu, nv, radius);
    free(curve);
    return m;
}

/* The vertex halfway between a and b, made when first asked for: the table holds one slot an edge, found by hashing. */
static int ex__middle(ex_mesh *m, int *table, int slots, int a, int b)
{
    int lo = a < b ? a : b, hi = a < b ? b : a;
    int h = (int)(((unsigned)lo * 2654435761u ^ (unsigned)hi * 40503u) % (unsigned)slots);
    while (table[3 * h + 2] >= 0 && (table[3 * h] != lo || table[3 * h + 1] != hi)) h = (h + 1) % slots;
    if (table[3 * h + 2] < 0) {
        table[3 * h] = lo;
        table[3 * h + 1] = hi;
        table[3 * h + 2] = m->vertex_count;
        m->vertices[m->vertex_count++] = fsi_v3_unit(fsi_v3_add(m->vertices[a], m->vertices[b]));
    }
    return table[3 * h + 2];
}

/* Cuts every triangle of a sphere in four. */
static void ex__subdivide(ex_mesh *m)
{
    ex_mesh fine = ex_mesh_make(m->vertex_count + 3 * m->triangle_count / 2, 4 * m->triangle_count);
    int i, k, slots = 4 * m->triangle_count, *table = (int *)ex_alloc(NULL, (size_t)slots, 3 * sizeof *table);
    memset(table, 0xff, (size_t)slots * 3 * sizeof *table);
    memcpy(fine.vertices, m->vertices, (size_t)m->vertex_count * sizeof *m->vertices);
    fine.vertex_count = m->vertex_count;
    for (i = 0; i < m->triangle_count; i++) {
        const int *t = m->triangles + 3 * i;
        int mid[3];
        for (k = 0; k < 3; k++) mid[k] = ex__middle(&fine, table, slots, t[k], t[(k + 1) % 3]);
        for (k = 0; k < 3; k++) ex__triangle(&fine, 4 * i + k, t[k], mid[k], mid[(k + 2) % 3]);
        ex__triangle(&fine, 4 * i + 3, mid[0], mid[1], mid[2]);
    }
    free(table);
    ex_mesh_free(m);
    *m = fine;
}

/* A sphere of 20 * 4^level nearly equal triangles. */
EX_FN ex_mesh ex_sphere(fsi_vec3 center, double radius, int level)
{
    static const int faces[20][3] = {
        { 0, 11, 5 }, { 0, 5, 1 }, { 0, 1, 7 }, { 0, 7, 10 }, { 0, 10, 11 }, { 1, 5, 9 }, { 5, 11, 4 },
        { 11, 10, 2 }, { 10, 7, 6 }, { 7, 1, 8 }, { 3, 9, 4 }, { 3, 4, 2 }, { 3, 2, 6 }, { 3, 6, 8 },
        { 3, 8, 9 }, { 4, 9, 5 }, { 2, 4, 11 }, { 6, 2, 10 }, { 8, 6, 7 }, { 9, 8, 1 }
    };
    ex_mesh m = ex_mesh_make(12, 20);
    fsi_real g = (fsi_real)1.6180339887498949;
    int i;
    for (i = 0; i < 4; i++) { /* three golden rectangles */
        fsi_real a = i & 1 ? (fsi_real)1 : (fsi_real)-1, b = i & 2 ? -g : g;
        m.vertices[i] = fsi_v3_unit(fsi_v3(a, b, 0));
        m.vertices[4 + i] = fsi_v3_unit(fsi_v3(0, a, b));
        m.vertices[8 + i] = fsi_v3_unit(fsi_v3(b, 0, a));
    }
    for (i = 0; i < 20; i++) ex__triangle(&m, i, faces[i][0], faces[i][1], faces[i][2]);
    while (level-- > 0) ex__subdivide(&m);
    ex_mesh_move(&m, radius, center);
    return m;
}

#endif /* FSI_EXAMPLE_H */
