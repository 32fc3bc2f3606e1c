/* app.h - one run of a program: its switches, the context that it hands to fsi, progress, the line of figures.
   SPDX-License-Identifier: MIT

   ex_init, switches of its own by ex_flag ex_int ex_real ex_string ex_operand, then ex_begin reads the command line and
   starts clocks and threads; ex_check ends the program when a call of fsi has failed; ex_progress after each frame;
   ex_figure and ex_end print the last line. ex_count_outside counts what a tank has lost. */
#ifndef FSI_KIT_APP_H
#define FSI_KIT_APP_H

#include "host.h"

/* A switch. `value` points to int (FLAG, INT), double (REAL) or const char * (STRING, OPERAND). */
typedef enum ex_option_kind { EX_FLAG, EX_INT, EX_REAL, EX_STRING, EX_OPERAND } ex_option_kind;
typedef struct ex_option {
    ex_option_kind kind;
    const char *name, *help;
    void *value;
    double lo, hi;  /* range of INT and REAL */
} ex_option;

typedef enum ex_write { EX_WRITE_NONE, EX_WRITE_PLY, EX_WRITE_VTP } ex_write;

/* One run of an example. Fields in the first block may be changed between ex_init and ex_begin (they are the defaults
   of the switches); those of the second are kept up to date by the example. */
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

/* The switch that an argument names, with the value behind its "=" (strchr also finds the end of the text), or the
   first operand that is still missing. */
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
    else if (strcmp(app->write_name, "none") != 0)
        return ex__refuse(app, "write", app->write_name, "is neither ply nor vtp nor none");
    if (no_images) app->images = 0;
    if ((app->images || app->write) && !ex_make_folder(app->out))
        return ex__refuse(app, "out", app->out, "cannot be made");
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
    snprintf(text, sizeof text, "%s: %s", known ? e->function : app->name,
             known ? e->message : fsi_status_text(status));
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

#endif /* FSI_KIT_APP_H */
