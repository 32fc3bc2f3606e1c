/* drags.h - springs that pull points of elastic bodies along paths: recorded, read from a file, or at random.
   SPDX-License-Identifier: MIT

   elastic_look.h includes it. ex_drags_options adds --drag FILE (replays a recording), --record FILE, --wild and
   --seed (drags at random, to see that nothing breaks); ex_drags_step before each step of the simulator makes the
   springs and moves their targets. A program's own drags: ex_drags_begin and its ex_drags_key before the first step.

   A recording is a text; what follows a # is a comment:

      drag 0  -1  0 0 0.09  1500     a body, counted from 0 in the order of adding; its vertex, or -1: the point with
      0     0 0 0.19                 the rest coordinates that follow; stiffness of the spring [N/m]. Then times [s] in
      0.05  0 0 0.21                 rising order and where the target is; between these it moves in straight lines.
                                     The spring is there in the steps between the first and the last of them. */
#ifndef FSI_KIT_DRAGS_H
#define FSI_KIT_DRAGS_H

#include "kit.h"
#include "../../fsi_elastic.h"

#define EX_WILD_SPEED 20.0 /* of a drag at most [m/s] */
#define EX_WILD_RADIUS 1.0 /* how far it goes [m] */

typedef struct ex_drag_key { double time; fsi_vec3 target; } ex_drag_key;

typedef struct ex_drag {
    int body, vertex;
    fsi_vec3 rest;
    double stiffness;
    int first, count;          /* its keys */
    int spring, pulls;         /* the attachment; it is there */
    fsi_vec3 target;           /* now */
} ex_drag;

/* Start from zeros. */
typedef struct ex_drags {
    ex_drag *drag;
    ex_drag_key *key;          /* of all drags, one after the other */
    int count, keys, room, key_room;
    int lasting, begun;        /* the first `lasting` are not at random; the first step has been made */
    double fastest;            /* target so far [m/s] */
    const char *file, *record; /* of the switches; NULL: none */
    FILE *out;
    /* drags at random */
    double wild;               /* until this time [s]; 0: none */
    int seed, drawn;           /* drawn: the drag at random that goes on, -1: none */
    uint64_t random;
    double next;               /* when it is let go, or another one begins [s] */
    fsi_vec3 way;              /* velocity of its target */
} ex_drags;

EX_FN void ex_drags_options(ex_app *app, ex_drags *d)
{
    ex_string(app, "drag", &d->file, "replays drags that were recorded");
    ex_string(app, "record", &d->record, "file for the drags of this run");
    ex_real(app, "wild", &d->wild, 0, 1e6, "seconds of random drags of up to 20 m/s");
    ex_int(app, "seed", &d->seed, 0, 1000000, "of these");
}

/* ---- what is pulled ---------------------------------------------------------------------------------------------- */

/* A new drag, without keys yet. */
EX_FN void ex_drags_begin(ex_drags *d, int body, int vertex, fsi_vec3 rest, double stiffness)
{
    ex_drag *x;
    if (d->count == d->room) {
        d->room = 2 * d->room + 16;
        d->drag = (ex_drag *)ex_alloc(d->drag, (size_t)d->room, sizeof *d->drag);
    }
    x = &d->drag[d->count++];
    memset(x, 0, sizeof *x);
    x->body = body;
    x->vertex = vertex;
    x->rest = rest;
    x->stiffness = stiffness;
    x->first = d->keys;
    if (d->record && !d->out) {
        d->out = fopen(d->record, "w");
        if (!d->out) ex_die("--record: the file cannot be written");
    }
    if (d->out) fprintf(d->out, "drag %d  %d  %.17g %.17g %.17g  %.17g\n", body, vertex, (double)rest.x, (double)rest.y,
                        (double)rest.z, stiffness);
}

/* The newest drag's target at a time, later than its last one. The file is up to date even if the step then fails. */
EX_FN void ex_drags_key(ex_drags *d, double time, fsi_vec3 target)
{
    ex_drag_key *k;
    if (d->keys == d->key_room) {
        d->key_room = 2 * d->key_room + 256;
        d->key = (ex_drag_key *)ex_alloc(d->key, (size_t)d->key_room, sizeof *d->key);
    }
    k = &d->key[d->keys++];
    k->time = time;
    k->target = target;
    d->drag[d->count - 1].count++;
    if (!d->out) return;
    fprintf(d->out, "%.17g  %.17g %.17g %.17g\n", time, (double)target.x, (double)target.y, (double)target.z);
    fflush(d->out);
}

/* Up to `most` numbers of a text; how many there are. */
static int ex__drag_numbers(const char *text, double *x, int most)
{
    int n = 0;
    char *end;
    for (; n < most; n++, text = end) {
        x[n] = strtod(text, &end);
        if (end == text || !fsi_is_finite(x[n])) break;
    }
    return n == most && text[strspn(text, " \t\r\n")] ? most + 1 : n;
}

/* 1: x is a whole number from least to 1e9. */
static int ex__drag_count(double x, double least) { return x >= least && x <= 1e9 && !(floor(x) < x); }

/* Appends the drags of a file; ends the program, with the line, where it is not a recording. */
EX_FN void ex_drags_read(ex_drags *d, const char *path)
{
    FILE *f = fopen(path, "r");
    char line[400], why[600];
    double x[6], before = 0;
    int number = 0, drags = 0;
    if (!f) {
        snprintf(why, sizeof why, "--drag: %s cannot be read", path);
        ex_die(why);
    }
    while (fgets(line, sizeof line, f)) {
        const char *bad = NULL;
        char *text = line + strspn(line, " \t");
        number++;
        text[strcspn(text, "#\r\n")] = 0;
        if (!*text) continue;
        if (strncmp(text, "drag", 4) == 0) {
            if (ex__drag_numbers(text + 4, x, 6) != 6 || !ex__drag_count(x[0], 0) || !ex__drag_count(x[1], -1)
                || x[5] <= 0)
                bad = "is not a body, a vertex, a point and a stiffness";
            else ex_drags_begin(d, (int)x[0], (int)x[1], fsi_v3((fsi_real)x[2], (fsi_real)x[3], (fsi_real)x[4]), x[5]);
            drags++;
            before = -1e-300; /* the first key may be at 0 */
        } else if (drags == 0) bad = "comes before the first drag";
        else if (ex__drag_numbers(text, x, 4) != 4) bad = "is not a time and a place";
        else if (x[0] <= before) bad = "is not later than the one before";
        else {
            ex_drags_key(d, x[0], fsi_v3((fsi_real)x[1], (fsi_real)x[2], (fsi_real)x[3]));
            before = x[0];
        }
        if (bad) {
            snprintf(why, sizeof why, "%s: line %d %s", path, number, bad);
            ex_die(why);
        }
    }
    fclose(f);
}

/* ---- drags at random --------------------------------------------------------------------------------------------- */

/* Number at random in [-1, 1). */
EX_FN double ex_wild_number(ex_drags *d)
{
    d->random = d->random * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(d->random >> 33) / 1073741824.0 - 1;
}

/* Forgets the drags at random, which come last. */
static void ex__drags_trim(ex_drags *d)
{
    d->count = d->lasting;
    d->keys = d->count > 0 ? d->drag[d->count - 1].first + d->drag[d->count - 1].count : 0;
    d->drawn = -1;
}

/* A vertex of some body is pulled for half a second, by a spring of 5 Hz with the whole body, to a point that goes to
   and fro; then all are left alone for half a second. */
static void ex__drags_wild(ex_drags *d, const fsi_elastic *s, double dt)
{
    const double now = s->time + dt;
    ex_drag_key from, at;
    if (d->drawn >= 0 && (now >= d->next || now >= d->wild)) {
        d->drawn = -1;
        d->next = now + 0.5;
    } else if (d->drawn < 0 && now >= d->next && now < d->wild && s->body_count > 0) {
        const int body = (int)(fabs(ex_wild_number(d)) * s->body_count) % s->body_count;
        const fsi_elastic_body *b = &s->bodies[body];
        const int vertex = (int)(fabs(ex_wild_number(d)) * b->vertex_count) % b->vertex_count;
        ex__drags_trim(d);
        ex_drags_begin(d, body, vertex, fsi_v3(0, 0, 0), 1000 * b->mass);
        ex_drags_key(d, s->time, b->center);
        d->way = fsi_v3((fsi_real)ex_wild_number(d), (fsi_real)ex_wild_number(d), (fsi_real)ex_wild_number(d));
        d->way = fsi_v3_scale(fsi_v3_unit(d->way), (fsi_real)(EX_WILD_SPEED * fabs(ex_wild_number(d))));
        d->drawn = d->count - 1;
        d->next = now + 0.5;
    }
    if (d->drawn < 0) return;
    from = d->key[d->drag[d->drawn].first];
    at = d->key[d->keys - 1];
    at.target = fsi_v3_madd(at.target, (fsi_real)dt, d->way);
    if ((double)fsi_v3_norm(fsi_v3_sub(at.target, from.target)) > EX_WILD_RADIUS) d->way = fsi_v3_scale(d->way, -1);
    ex_drags_key(d, now, at.target);
}

/* ---- in each step ------------------------------------------------------------------------------------------------ */

/* Where the target of a drag is at a time within its keys. */
static fsi_vec3 ex__drag_target(const ex_drags *d, const ex_drag *x, double time)
{
    const ex_drag_key *k = d->key + x->first;
    int i = 0;
    while (i + 1 < x->count && k[i + 1].time <= time) i++;
    if (i + 1 == x->count || time <= k[i].time) return k[i].target;
    return fsi_v3_madd(k[i].target, (fsi_real)((time - k[i].time) / (k[i + 1].time - k[i].time)),
                       fsi_v3_sub(k[i + 1].target, k[i].target));
}

/* The springs of the step of dt seconds that comes: those whose time has come are made, those whose time is over are
   taken away, targets move to where they are at its end. */
EX_FN void ex_drags_step(ex_app *app, ex_drags *d, fsi_elastic *s, double dt)
{
    const double next = s->time + dt;
    int k;
    if (s->time <= 0) { /* a new simulator: there is no spring yet */
        if (!d->begun) {
            d->random = (uint64_t)d->seed << 32;
            if (d->file) ex_drags_read(d, d->file);
            d->lasting = d->count;
            d->begun = 1;
        }
        ex__drags_trim(d);
        d->next = 0;
        for (k = 0; k < d->count; k++) d->drag[k].pulls = 0;
    }
    if (d->wild > 0) ex__drags_wild(d, s, dt);
    for (k = 0; k < d->count; k++) {
        ex_drag *x = &d->drag[k];
        fsi_vec3 to;
        if (x->count == 0 || s->time < d->key[x->first].time - 1e-9) continue;
        if (next > d->key[x->first + x->count - 1].time + 1e-9) {
            if (x->pulls) ex_check(app, fsi_elastic_detach(s, x->spring));
            x->pulls = 0;
            continue;
        }
        to = ex__drag_target(d, x, next);
        if (!x->pulls) {
            fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
            if (x->body >= s->body_count) ex_die("a drag pulls a body that is not there");
            a.body = s->bodies[x->body].id;
            a.vertex = x->vertex;
            a.rest = x->rest;
            a.stiffness = (fsi_real)x->stiffness;
            a.target = x->target = ex__drag_target(d, x, s->time);
            ex_check(app, fsi_elastic_attach(s, &a, &x->spring));
            x->pulls = 1;
        }
        ex_check(app, fsi_elastic_set_target(s, x->spring, to));
        d->fastest = fmax(d->fastest, (double)fsi_v3_norm(fsi_v3_sub(to, x->target)) / dt);
        x->target = to;
    }
}

/* Targets that pull. */
EX_FN void ex_draw_drags(ex_scene *scene, const ex_drags *d, double radius)
{
    int k;
    for (k = 0; k < d->count; k++)
        if (d->drag[k].pulls) ex_draw_spheres(scene, &d->drag[k].target, 1, radius, NULL, 0x2b3a4a);
}

EX_FN void ex_drags_free(ex_drags *d)
{
    if (d->out) fclose(d->out);
    free(d->drag);
    free(d->key);
    memset(d, 0, sizeof *d);
}

#endif /* FSI_KIT_DRAGS_H */
