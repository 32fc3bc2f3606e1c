/* fsi_source.h - taps and drains of liquids: emitters let particles out, sinks take them away.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_sph.h and fsi_wcsph.h include this file. Their front pages say how a liquid gets a tap and a drain:

      fsi_emitter_desc tap = fsi_emitter_default_desc();
      tap.center = fsi_v3(0.5f, 0.5f, 1.8f); tap.direction = fsi_v3(0, 0, -1); tap.radius = 0.2f; tap.speed = 2;
      fsi_sph_add_emitter(water, &tap, NULL);       // pi 0.2^2 2 m^3/s

   WHAT IS IN HERE (search for >>)
      >>emitters >>sinks       their descs, the same for every liquid of particles
      >>stages                 what the liquids call, not for you
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
*/
#ifndef FSI_SOURCE_H
#define FSI_SOURCE_H

#include "fsi_particles.h"

/* ---- >>emitters ------------------------------------------------------------------------------------------------ */

/* BOX and DISC let liquid out in layers: a square lattice of spacing dx across the flow, the next layer each time the
   flow has advanced by dx. The volume is area * speed * time, to half a layer: a box whose sides are no multiples of dx
   stretches the lattice, a disc takes as many of the sites nearest to its axis as its area has room for, and layers
   follow each other a little closer or farther. Up to 2 dx from the plane the particles are held: they move on at the
   emitter's velocity, like a piston, whatever pushes. MESH fills a closed mesh with a lattice of particles of that
   velocity, once or every `period` seconds; they are free at once. Sites of which a particle is nearer than 0.6 dx stay
   empty (stats.blocked): BOX and DISC take that particle along instead. So do all that a budget does not allow
   (stats.refused). Obstacles are ignored: the plane may lie in a wall, but the space in front of it must be free. */
typedef enum fsi_emitter_shape { FSI_EMITTER_DISC, FSI_EMITTER_BOX, FSI_EMITTER_MESH } fsi_emitter_shape;

typedef struct fsi_emitter_desc {
    uint32_t cookie;
    fsi_emitter_shape shape;           /* default DISC */
    fsi_vec3 center;                   /* of the inlet [m]; 2D: z = 0; MESH: not used */
    fsi_vec3 direction;                /* of the flow, any length but 0; default (1, 0, 0); 2D: z = 0 */
    fsi_real radius;                   /* DISC; 2D: half the width of the slot [m], 0.25 to 4096 dx; no default */
    fsi_real half_width, half_height;  /* BOX, along `side` and across it; 2D: half_height is not used [m]; no
                                          default */
    fsi_vec3 side;                     /* BOX: made perpendicular to direction; default 0: some direction; 2D: not
                                          used */
    const fsi_mesh *mesh;              /* MESH: read by the call that it is given to, not kept */
    fsi_real speed;                    /* of the flow along direction, 0 to 1e9 [m/s]; 0: shut; default 1 */
    fsi_vec3 velocity;                 /* of the emitter itself, which moves along and adds it to the liquid's [m/s];
                                          default 0 */
    double start, stop;                /* from and until this `time` [s]; default 0, no end */
    double period;                     /* MESH: fills again after so long [s]; default 0: once */
    long long budget;                  /* most particles it may emit in all; default 0: no limit */
    uint32_t filter;                   /* of what it emits; default 0xffffffff */
    const fsi_real *attributes;        /* of what it emits: desc.attribute_count numbers, copied; default NULL: zeros */
} fsi_emitter_desc;

FSI_API fsi_emitter_desc fsi_emitter_default_desc(void); /* fills every field */

/* ---- >>sinks --------------------------------------------------------------------------------------------------- */

/* Sinks remove the particles that are inside at the end of a step; the others keep their order. */
typedef enum fsi_sink_shape { FSI_SINK_BOX, FSI_SINK_SPHERE, FSI_SINK_DISC, FSI_SINK_MESH } fsi_sink_shape;

typedef struct fsi_sink_desc {
    uint32_t cookie;
    fsi_sink_shape shape;              /* default BOX */
    fsi_box3 box;                      /* BOX [m]; 2D: z is ignored; no default */
    fsi_vec3 center;                   /* SPHERE, DISC [m] */
    fsi_vec3 direction;                /* DISC: its axis, any length but 0; default (1, 0, 0) */
    fsi_real radius;                   /* SPHERE, DISC [m]; no default */
    fsi_real thickness;                /* DISC: along its axis, half of it on either side [m]; no default */
    const fsi_mesh *mesh;              /* MESH: closed; referenced, must outlive the sink, may be moved between steps */
    fsi_real rate;                     /* most liquid it takes [m^3/s] (2D: [m^2/s]), oldest particles first; default 0:
                                          no limit */
} fsi_sink_desc;

FSI_API fsi_sink_desc fsi_sink_default_desc(void); /* fills every field */

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

#define FSI__SOURCE_BLOCKED 0.6 /* an emitter's site is blocked by particles nearer than this [dx] */
#define FSI__SOURCE_PISTON 2    /* particles move with the inflow up to this distance from the emitter [dx] */
#define FSI__SOURCE_SINKS 254   /* at most */
#define FSI__SOURCE_FAR 1e15    /* from the origin, at most [m] */

/* What a step changes of an emitter and of a sink; saved as it stands: no padding. */
typedef struct fsi__flow {
    double center[3];        /* of the emitter now [m] */
    double advance;          /* of the flow since the last layer came out, in layers */
    double fills;            /* MESH: times it was filled, or let pass */
    int64_t id, emitted, blocked, refused;
} fsi__flow;

typedef struct fsi__drain {
    double allowance;        /* particles that its rate lets it take now */
    int64_t id, removed;
} fsi__drain;

/* Site (i, j, k) stands at center + corner + i pitch[0] axis[0] + ..., where `present`. The last axis is the flow's;
   what comes in layers has n[2] = 1. */
typedef struct fsi__emitter {
    fsi_emitter_desc desc;
    fsi_vec3 axis[3], corner;
    double pitch[3];
    int n[3], sites;         /* along the axes; present */
    unsigned char *present;  /* n[0] n[1] n[2] */
    fsi_real *attributes;
    fsi__flow flow;
} fsi__emitter;

typedef struct fsi__sink {
    fsi_sink_desc desc;
    fsi__drain drain;
} fsi__sink;

/* All taps and drains of one liquid, from fsi__sources_start to fsi__sources_free. */
typedef struct fsi__sources {
    fsi_context *context;
    int dim, attribute_count;
    fsi_real dx;             /* spacing of particles [m] */
    fsi__emitter *emitter;
    int emitter_count, emitter_capacity, next_emitter;
    fsi__sink *sink;
    int sink_count, sink_capacity, next_sink;
} fsi__sources;

/* What one step works on; taken over by fsi__source_commit. */
typedef struct fsi__source_run {
    fsi__sources *sources;
    fsi__flow *flow;         /* of the emitters; NULL: there are none */
    fsi__drain *drain;       /* of the sinks; NULL: there are none */
    unsigned char *blocked;  /* cells */
    size_t cells;            /* sites of all layers that one emitter may let out at once, and of those that wait behind
                                them */
} fsi__source_run;

/* Begins with no taps and drains; *s must be all zeros. */
FSI_FN void fsi__sources_start(fsi__sources *s, fsi_context *context, int dim, int attribute_count, fsi_real dx)
{
    s->context = context;
    s->dim = dim;
    s->attribute_count = attribute_count;
    s->dx = dx;
}

/* The calls of a liquid's API, by the same names; fn is that of the public function. */
FSI_API fsi_status fsi__sources_add_emitter(fsi__sources *s, const char *fn, const fsi_emitter_desc *desc, int *id);
FSI_API fsi_status fsi__sources_set_emitter(fsi__sources *s, const char *fn, int id, const fsi_emitter_desc *desc);
/* held: for each of `count` particles 1 + id of the emitter whose inflow it still moves with, 0: none; those of this
   emitter become 0. */
FSI_API fsi_status fsi__sources_remove_emitter(fsi__sources *s, const char *fn, int id, uint32_t *held, int count);
FSI_API fsi_status fsi__sources_emitter_total(const fsi__sources *s, const char *fn, int id, long long *emitted,
    long long *blocked, long long *refused);
/* The same for sinks. */
FSI_API fsi_status fsi__sources_add_sink(fsi__sources *s, const char *fn, const fsi_sink_desc *desc, int *id);
FSI_API fsi_status fsi__sources_remove_sink(fsi__sources *s, const char *fn, int id);
FSI_API fsi_status fsi__sources_sink_total(const fsi__sources *s, const char *fn, int id, long long *removed);
FSI_API void fsi__sources_free(fsi__sources *s); /* emitters and sinks, with their memory */
FSI_API void fsi__sources_shift(fsi__sources *s, fsi_vec3 offset); /* everything but flow.center, which is state */
FSI_API void fsi__sources_shift_flows(fsi__sources *s, fsi_vec3 offset); /* flow.center */
/* The bytes of all flows and drains, and how many these are. */
FSI_API void fsi__sources_state(fsi__stream *stream, fsi__sources *s);
FSI_API size_t fsi__sources_state_size(const fsi__sources *s);
/* Checks the part of a saved state that follows: the id of the next particle, fsi__sources_state, and the columns of
   `count` rows. `held`: the address of the pointer to the column of emitters that hold particles; `offset` is added to
   positions. Errors: NAN, FORMAT, LIMIT; name the particle. */
FSI_API fsi_status fsi__sources_check_state(const fsi__sources *s, const char *fn, fsi__stream *stream,
    const fsi__particles *t, const void *held, int64_t count, fsi_vec3 offset);
/* index of an emitter, -1 when there is none of that id */
FSI_API int fsi__sources_find(const fsi__sources *s, int64_t id);
FSI_API double fsi__sources_fastest(const fsi__sources *s, double speed); /* of speed and what emitters let out [m/s] */

/* The layers, or fills, that an emitter lets out at most in dt seconds, filled at most `fills` times. */
FSI_API double fsi__emitter_most_layers(const fsi__emitter *e, double dt, int fills);
FSI_API size_t fsi__emitter_site_count(const fsi__emitter *e); /* of its lattice, present or not */
FSI_API fsi_vec3 fsi__emitter_velocity(const fsi__emitter *e); /* of what it lets out [m/s] */
FSI_API int fsi__emitter_flows(const fsi__emitter *e, double clock); /* does it let layers out at that time? */
/* Site c of copies of the lattice behind each other, of which site 0 stands at o. */
FSI_API fsi_vec3 fsi__emitter_site(const fsi__emitter *e, fsi_vec3 o, size_t c);
/* Where its flow has advanced to after `until` [s], in layers, from `clock` on: flow.advance when no layer comes
   out. */
FSI_API double fsi__emitter_advance(const fsi__emitter *e, const fsi__flow *flow, double clock, double until);
/* Is its mesh to be filled between clock and now? Then flow->fills counts that. */
FSI_API int fsi__emitter_fills(const fsi__emitter *e, fsi__flow *flow, double clock, double now);

/* Takes the step's scratch out of the arena; copies flows and drains into it; gives them back. Cannot fail. */
FSI_API void fsi__source_layout(fsi__source_run *run, fsi__arena *arena);
FSI_API void fsi__source_begin(fsi__source_run *run);
FSI_API void fsi__source_commit(fsi__source_run *run);
/* Where site 0 of emitter k is when the flow has taken it `advance` layers along. */
FSI_API fsi_vec3 fsi__source_first_site(const fsi__source_run *run, int k, double advance);
/* Marks the sites of `layers` lattices of emitter k from o on that one of the particles x[0 .. n-1] is near; held (NULL
   ok): and holds those particles from now on, or they would block the site for ever. */
FSI_API void fsi__source_block(fsi__source_run *run, int k, int layers, fsi_vec3 o, const fsi_vec3 *x, int n,
    uint32_t *held);
/* Adds a particle of emitter e at x; is_behind: still behind its plane. */
typedef void fsi__emit_fn(void *owner, const fsi__emitter *e, fsi_vec3 x, int is_behind);
typedef struct fsi__emission { long long emitted, blocked, refused; } fsi__emission;
/* Lets out `layers` lattices of emitter k from o on, the oldest first, at most `left` particles: calls add for each
   site that is not blocked, and counts them. The last `behind` layers are still behind the plane: not counted. */
FSI_API fsi__emission fsi__source_emit(fsi__source_run *run, int k, int layers, int behind, fsi_vec3 o,
    long long left, fsi__emit_fn *add, void *owner);
/* Layers that come out in a step as a block: those that pass the plane of an emitter in dt seconds from `clock` on, and
   one more, stand behind the plane when the step begins and move through it at the emitter's velocity. Those that have
   not passed it at the end are removed by the owner (is_behind), and made again by the next step. */
/* How many layers of emitter k; 0: it lets nothing out. MESH: 1 when due. */
FSI_API double fsi__source_layers_due(const fsi__source_run *run, int k, double clock, double dt);
/* Sets run->cells, and makes room for all these particles in the table; *more: how many there may be. Errors: LIMIT,
   MEMORY. */
FSI_API fsi_status fsi__source_make_room(fsi__source_run *run, fsi__particles *t, const char *fn, double clock,
    double dt, int *more);
/* Puts them behind the planes, the oldest first, at most `left` in all, by add; x: positions of the *n particles that
   there are, which add may add to. held: as for fsi__source_block. Counts all emitters together. */
FSI_API fsi__emission fsi__source_line_up(fsi__source_run *run, double clock, double dt, const fsi_vec3 *x,
    const int *n, uint32_t *held, long long left, fsi__emit_fn *add, void *owner);
FSI_API void fsi__source_move(fsi__source_run *run, double dt); /* of dt seconds: the emitters, by their velocity */
/* The emitter of `held` if at time `clock` it still moves a particle at x; NULL: none. */
FSI_API const fsi__emitter *fsi__source_holder(const fsi__source_run *run, uint32_t held, fsi_vec3 x, double clock);
/* gone[i] = 1 + sink that takes particle i, 0: none; how many in all. Entries that are already 255 stay, and count no
   more. */
FSI_API int fsi__source_drain(fsi__source_run *run, double dt, double particle_volume, const fsi_vec3 *x, int n,
    unsigned char *gone);

#endif /* FSI_SOURCE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_SOURCE_IMPLEMENTATION
#define FSI_SOURCE_IMPLEMENTATION
#endif
#ifdef FSI_SOURCE_IMPLEMENTATION
#ifndef FSI_SOURCE_IMPLEMENTATION_DONE
#define FSI_SOURCE_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_particles.h"

FSI__STRICT_BEGIN


FSI__COLD_BEGIN

/* ---- >>lattices of emitters ------------------------------------------------------------------------------------ */

FSI_API size_t fsi__emitter_site_count(const fsi__emitter *e)
{
    return (size_t)e->n[0] * (size_t)e->n[1] * (size_t)e->n[2];
}

FSI_API fsi_vec3 fsi__emitter_velocity(const fsi__emitter *e)
{
    return fsi_v3_madd(e->desc.velocity, e->desc.speed, e->desc.direction);
}

FSI_API fsi_vec3 fsi__emitter_site(const fsi__emitter *e, fsi_vec3 o, size_t c)
{
    const size_t row = c / (size_t)e->n[0];
    o = fsi_v3_madd(o, (fsi_real)((double)(c % (size_t)e->n[0]) * e->pitch[0]), e->axis[0]);
    o = fsi_v3_madd(o, (fsi_real)((double)(row % (size_t)e->n[1]) * e->pitch[1]), e->axis[1]);
    return fsi_v3_madd(o, (fsi_real)((double)(row / (size_t)e->n[1]) * e->pitch[2]), e->axis[2]);
}

/* n points `pitch` apart along axis k, the middle at the centre. */
static void fsi__emitter_center_lattice(fsi__emitter *e, int k, int n, double pitch)
{
    e->n[k] = n;
    e->pitch[k] = pitch;
    e->corner = fsi_v3_madd(e->corner, (fsi_real)(-0.5 * (n - 1) * pitch), e->axis[k]);
}

/* A rectangle's lattice, stretched to fit: n = round(width/dx) sites of width/n. Layers of volume dx^dim a site. */
static void fsi__emitter_plan_box(const fsi__sources *s, fsi__emitter *e)
{
    const double dx = (double)s->dx, width = 2 * (double)e->desc.half_width, height = 2 * (double)e->desc.half_height;
    const double nu = fmax(floor(width / dx + 0.5), 1), nw = fmax(floor(height / dx + 0.5), 1);
    fsi__emitter_center_lattice(e, 0, (int)nu, width / nu);
    fsi__emitter_center_lattice(e, 1, (int)nw, height / nw);
    fsi__emitter_center_lattice(e, 2, 1, dx * dx * dx / (e->pitch[0] * e->pitch[1]));
}

/* A square lattice that holds the disc; how many of its sites become present is e->sites. */
static void fsi__emitter_plan_disc(const fsi__sources *s, fsi__emitter *e)
{
    const double dx = (double)s->dx, area = FSI_PI * (double)e->desc.radius * (double)e->desc.radius / (dx * dx);
    const int n = 2 * (int)ceil((double)e->desc.radius / dx) + 1;
    e->sites = area > 1.5 ? (int)floor(area + 0.5) : 1;
    fsi__emitter_center_lattice(e, 0, n, dx);
    fsi__emitter_center_lattice(e, 1, n, dx);
    fsi__emitter_center_lattice(e, 2, 1, dx * e->sites / area);
}

/* Square of site i's distance from the axis of a disc's lattice, in spacings; sites no farther than that of `ring`. */
static int fsi__emitter_ring(const fsi__emitter *e, int i)
{
    const int m = e->n[0] / 2, a = i % e->n[0] - m, b = i / e->n[0] - m;
    return a * a + b * b;
}

static int fsi__emitter_count_within(const fsi__emitter *e, int ring)
{
    int i, found = 0;
    for (i = 0; i < e->n[0] * e->n[1]; i++) found += fsi__emitter_ring(e, i) <= ring;
    return found;
}

/* The e->sites that are closest to the axis; of the last ring those that come first. */
static void fsi__emitter_mark_disc(fsi__emitter *e)
{
    int under = -1, last = e->n[0] * e->n[0], i, left; /* all within `last` are enough, within `under` not */
    while (last - under > 1) {
        const int middle = under + (last - under) / 2;
        if (fsi__emitter_count_within(e, middle) < e->sites) under = middle;
        else last = middle;
    }
    left = e->sites - fsi__emitter_count_within(e, under);
    for (i = 0; i < e->n[0] * e->n[1]; i++) {
        const int ring = fsi__emitter_ring(e, i);
        e->present[i] = ring < last || (ring == last && left-- > 0);
    }
}

/* A lattice over the box of a mesh, as fsi_sample_mesh has it. */
static void fsi__emitter_plan_mesh(const fsi__sources *s, fsi__emitter *e)
{
    const fsi_box3 *b = &e->desc.mesh->box;
    const fsi_real dx = s->dx, up = s->dim == 2 ? 0 : dx / 2;
    const fsi_real size[3] = { b->hi.x - b->lo.x, b->hi.y - b->lo.y, s->dim == 2 ? dx : b->hi.z - b->lo.z };
    int k;
    for (k = 0; k < 3; k++) {
        e->axis[k] = fsi_v3(k == 0, k == 1, k == 2);
        e->pitch[k] = (double)dx;
        e->n[k] = (int)fmin(floor((double)size[k] / (double)dx + 1e-5), 1e5);
    }
    e->corner = fsi_v3_sub(fsi_v3_add(b->lo, fsi_v3(dx / 2, dx / 2, up)), e->desc.center);
}

static void fsi__emitter_mark_mesh(const fsi__sources *s, fsi__emitter *e)
{
    const fsi_shape shape = fsi__shape_of_liquid(e->desc.mesh);
    const fsi_vec3 o = fsi_v3_add(e->desc.center, e->corner);
    int hint = -1;
    size_t c;
    for (c = 0; c < fsi__emitter_site_count(e); c++) {
        e->present[c] = (unsigned char)fsi__is_well_inside(&shape, fsi__emitter_site(e, o, c), s->dx, &hint);
        e->sites += e->present[c];
    }
}

/* ---- >>making sources ------------------------------------------------------------------------------------------ */

FSI_API fsi_emitter_desc fsi_emitter_default_desc(void)
{
    fsi_emitter_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('e', fsi_emitter_desc);
    d.direction = fsi_v3(1, 0, 0);
    d.speed = 1;
    d.stop = FSI__HUGE;
    d.filter = 0xffffffffu;
    return d;
}

FSI_API fsi_sink_desc fsi_sink_default_desc(void)
{
    fsi_sink_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('k', fsi_sink_desc);
    d.box = fsi_box3_empty();
    d.direction = fsi_v3(1, 0, 0);
    return d;
}

static fsi_status fsi__sources_check_emitter(const fsi__sources *s, const char *fn, const fsi_emitter_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_emitter_desc, shape, FSI__INT, 0, 2, 0),
        FSI__FIELD(fsi_emitter_desc, center, FSI__VEC3, 0, FSI__SOURCE_FAR, 0),
        FSI__DIRECTION(fsi_emitter_desc, direction),
        FSI__FIELD(fsi_emitter_desc, velocity, FSI__VEC3, 0, 1e9, 0),
        FSI__FIELD(fsi_emitter_desc, speed, FSI__REAL, 0, 1e9, 0),
        FSI__FIELD(fsi_emitter_desc, start, FSI__DOUBLE, -FSI__HUGE, FSI__HUGE, 0),
        FSI__FIELD(fsi_emitter_desc, stop, FSI__DOUBLE, -FSI__HUGE, FSI__HUGE, 0),
        FSI__FIELD(fsi_emitter_desc, period, FSI__DOUBLE, 0, FSI__HUGE, 0),
        FSI__FIELD(fsi_emitter_desc, budget, FSI__LONG, 0, 9e18, 0)
    };
    const double least = 0.25 * (double)s->dx, most = 4096 * (double)s->dx;
    const fsi__field size[] = {
        FSI__FIELD(fsi_emitter_desc, radius, FSI__REAL, least, most, 0),
        FSI__FIELD(fsi_emitter_desc, half_width, FSI__REAL, least, most, 0),
        FSI__FIELD(fsi_emitter_desc, half_height, FSI__REAL, least, most, 0),
        FSI__FINITE(fsi_emitter_desc, side)
    };
    const fsi__where at = { fn, "desc.", -1, s->dim };

    /* What all shapes have; then the shape. */
    FSI__TRY(fsi__check_filled(s->context, fn, d, FSI__COOKIE('e', fsi_emitter_desc), "fsi_emitter_default_desc"));
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, d, rows));
    if (d->shape == FSI_EMITTER_MESH) return fsi__check_mesh(s->context, fn, d->mesh, s->dim, 1);
    if (d->shape == FSI_EMITTER_DISC) return fsi__check_rows(s->context, &at, d, size, 1);
    return fsi__check_rows(s->context, &at, d, size + 1, s->dim == 2 ? 1 : 3);
}

static void fsi__sources_free_emitter(fsi__sources *s, fsi__emitter *e)
{
    fsi__free(s->context, e->present, fsi__emitter_site_count(e), 1);
    fsi__free(s->context, e->attributes, (size_t)s->attribute_count, sizeof *e->attributes);
}

/* The lattice of e->desc, which was checked. In 2D a disc is a slot, and a slot a rectangle one particle high. */
static fsi_status fsi__sources_plan(const fsi__sources *s, const char *fn, fsi__emitter *e)
{
    fsi_emitter_desc *d = &e->desc;
    d->direction = fsi_v3_unit(d->direction);
    if (s->dim == 2) {
        d->half_height = s->dx / 2;
        if (d->shape == FSI_EMITTER_DISC) d->half_width = d->radius;
        if (d->shape == FSI_EMITTER_DISC) d->shape = FSI_EMITTER_BOX;
    }
    FSI__TRY(fsi__inlet_axes(s->context, fn, s->dim, d->direction,
        d->shape == FSI_EMITTER_BOX ? d->side : fsi_v3(0, 0, 0), e->axis));
    if (d->shape == FSI_EMITTER_MESH) fsi__emitter_plan_mesh(s, e);
    else if (d->shape == FSI_EMITTER_DISC) fsi__emitter_plan_disc(s, e);
    else fsi__emitter_plan_box(s, e);
    return FSI_OK;
}

/* e->desc becomes sites. What is allocated is freed by the caller, also after an error. */
static fsi_status fsi__sources_make_emitter(fsi__sources *s, const char *fn, fsi__emitter *e)
{
    const size_t attributes = (size_t)s->attribute_count;
    fsi_emitter_desc *d = &e->desc;
    double cells;

    /* The lattice. */
    FSI__TRY(fsi__sources_plan(s, fn, e));
    cells = (double)e->n[0] * e->n[1] * e->n[2];
    if (cells > 0x0fffffff)
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, -1, cells, "the emitter has %g sites", cells);

    /* Which of its sites are there. */
    e->present = (unsigned char *)fsi__alloc(s->context, (size_t)cells, 1);
    e->attributes = (fsi_real *)fsi__alloc(s->context, attributes, sizeof *e->attributes);
    if (!e->present || !e->attributes)
        return fsi__fail(s->context, FSI_ERROR_MEMORY, fn, -1, cells, "no memory for an emitter of %g sites", cells);
    if (d->attributes && attributes > 0) memcpy(e->attributes, d->attributes, attributes * sizeof *e->attributes);
    if (d->shape == FSI_EMITTER_MESH) fsi__emitter_mark_mesh(s, e);
    else if (d->shape == FSI_EMITTER_DISC) fsi__emitter_mark_disc(e);
    else memset(e->present, 1, (size_t)(e->sites = e->n[0] * e->n[1]));
    if (e->sites == 0)
        return fsi__fail(s->context, FSI_ERROR_MESH, fn, -1, 0, "desc.mesh holds no particle of spacing %g",
            (double)s->dx);

    /* Where the flow begins. */
    e->flow.center[0] = (double)d->center.x;
    e->flow.center[1] = (double)d->center.y;
    e->flow.center[2] = (double)d->center.z;
    e->flow.advance = 0.5; /* the middle of the first layer crosses the plane when half of it has come out */
    d->mesh = NULL;
    d->attributes = e->attributes;
    return FSI_OK;
}

/* A new emitter from a desc of the caller's; nothing is left to free after an error. */
static fsi_status fsi__sources_begin_emitter(fsi__sources *s, const char *fn, const fsi_emitter_desc *d,
    fsi__emitter *e)
{
    fsi_status status;
    memset(e, 0, sizeof *e);
    FSI__TRY(fsi__sources_check_emitter(s, fn, d));
    e->desc = *d;
    status = fsi__sources_make_emitter(s, fn, e);
    if (status != FSI_OK) fsi__sources_free_emitter(s, e);
    return status;
}

FSI_API fsi_status fsi__sources_add_emitter(fsi__sources *s, const char *fn, const fsi_emitter_desc *desc, int *id)
{
    fsi__emitter e;
    fsi_status status;
    FSI__TRY(fsi__sources_begin_emitter(s, fn, desc, &e));
    status = fsi__room_in(s->context, &s->emitter, sizeof *s->emitter, s->emitter_count, &s->emitter_capacity,
        s->emitter_count + 1, fn);
    if (status != FSI_OK) {
        fsi__sources_free_emitter(s, &e);
        return status;
    }
    e.flow.id = s->next_emitter++;
    s->emitter[s->emitter_count++] = e;
    if (id) *id = (int)e.flow.id;
    return FSI_OK;
}

FSI_API int fsi__sources_find(const fsi__sources *s, int64_t id)
{
    int k = s->emitter_count - 1;
    while (k >= 0 && s->emitter[k].flow.id != id) k--;
    return k;
}

static fsi_status fsi__sources_find_emitter(const fsi__sources *s, const char *fn, int id, fsi__emitter **emitter)
{
    const int k = fsi__sources_find(s, id);
    *emitter = NULL;
    if (k < 0) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, id, 0, "there is no emitter %d", id);
    *emitter = &s->emitter[k];
    return FSI_OK;
}

FSI_API fsi_status fsi__sources_set_emitter(fsi__sources *s, const char *fn, int id, const fsi_emitter_desc *desc)
{
    fsi__emitter e, *old;
    FSI__TRY(fsi__sources_find_emitter(s, fn, id, &old));
    FSI__TRY(fsi__sources_begin_emitter(s, fn, desc, &e));
    memcpy(old->flow.center, e.flow.center, sizeof e.flow.center);
    e.flow = old->flow; /* only the place is new; the flow continues */
    fsi__sources_free_emitter(s, old);
    *old = e;
    return FSI_OK;
}

FSI_API fsi_status fsi__sources_remove_emitter(fsi__sources *s, const char *fn, int id, uint32_t *held, int count)
{
    fsi__emitter *e;
    int i;
    FSI__TRY(fsi__sources_find_emitter(s, fn, id, &e));
    for (i = 0; i < count; i++) if (held[i] == (uint32_t)id + 1) held[i] = 0;
    fsi__sources_free_emitter(s, e);
    s->emitter_count--;
    memmove(e, e + 1, (size_t)(s->emitter + s->emitter_count - e) * sizeof *e);
    return FSI_OK;
}

FSI_API fsi_status fsi__sources_emitter_total(const fsi__sources *s, const char *fn, int id, long long *emitted,
    long long *blocked, long long *refused)
{
    fsi__emitter *e;
    FSI__TRY(fsi__sources_find_emitter(s, fn, id, &e));
    if (emitted) *emitted = e->flow.emitted;
    if (blocked) *blocked = e->flow.blocked;
    if (refused) *refused = e->flow.refused;
    return FSI_OK;
}

static fsi_status fsi__sources_check_sink(const fsi__sources *s, const char *fn, const fsi_sink_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_sink_desc, shape, FSI__INT, 0, 3, 0),
        FSI__FIELD(fsi_sink_desc, rate, FSI__REAL, 0, 1e30, 0),
        FSI__DIRECTION(fsi_sink_desc, direction)
    };
    static const fsi__field size[] = {
        FSI__FINITE(fsi_sink_desc, center),
        FSI__FIELD(fsi_sink_desc, radius, FSI__REAL, 1e-30, 1e30, 0),
        FSI__FIELD(fsi_sink_desc, thickness, FSI__REAL, 1e-30, 1e30, 0)
    };
    const fsi__where at = { fn, "desc.", -1, s->dim };
    FSI__TRY(fsi__check_filled(s->context, fn, d, FSI__COOKIE('k', fsi_sink_desc), "fsi_sink_default_desc"));
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, d, rows));
    if (d->shape == FSI_SINK_MESH) return fsi__check_mesh(s->context, fn, d->mesh, s->dim, 1);
    if (d->shape != FSI_SINK_BOX) return fsi__check_rows(s->context, &at, d, size, d->shape == FSI_SINK_DISC ? 3 : 2);
    return fsi__check_box(s->context, fn, s->dim, &d->box);
}

FSI_API fsi_status fsi__sources_add_sink(fsi__sources *s, const char *fn, const fsi_sink_desc *desc, int *id)
{
    fsi__sink *sink;
    FSI__TRY(fsi__sources_check_sink(s, fn, desc));
    if (s->sink_count == FSI__SOURCE_SINKS)
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, -1, s->sink_count, "there are %d sinks already",
            s->sink_count);
    FSI__TRY(fsi__room_in(s->context, &s->sink, sizeof *s->sink, s->sink_count, &s->sink_capacity,
        s->sink_count + 1, fn));
    sink = &s->sink[s->sink_count++];
    memset(sink, 0, sizeof *sink);
    sink->desc = *desc;
    sink->desc.direction = fsi_v3_unit(desc->direction);
    sink->drain.id = s->next_sink++;
    if (id) *id = (int)sink->drain.id;
    return FSI_OK;
}

static fsi_status fsi__sources_find_sink(const fsi__sources *s, const char *fn, int id, fsi__sink **sink)
{
    int k;
    *sink = NULL;
    for (k = 0; k < s->sink_count; k++) {
        *sink = &s->sink[k];
        if ((*sink)->drain.id == id) return FSI_OK;
    }
    return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, id, 0, "there is no sink %d", id);
}

FSI_API fsi_status fsi__sources_remove_sink(fsi__sources *s, const char *fn, int id)
{
    fsi__sink *sink;
    FSI__TRY(fsi__sources_find_sink(s, fn, id, &sink));
    s->sink_count--;
    memmove(sink, sink + 1, (size_t)(s->sink + s->sink_count - sink) * sizeof *sink);
    return FSI_OK;
}

FSI_API fsi_status fsi__sources_sink_total(const fsi__sources *s, const char *fn, int id, long long *removed)
{
    fsi__sink *sink;
    FSI__TRY(fsi__sources_find_sink(s, fn, id, &sink));
    if (removed) *removed = sink->drain.removed;
    return FSI_OK;
}

FSI_API void fsi__sources_free(fsi__sources *s)
{
    int k;
    for (k = 0; k < s->emitter_count; k++) fsi__sources_free_emitter(s, &s->emitter[k]);
    fsi__free(s->context, s->emitter, (size_t)s->emitter_capacity, sizeof *s->emitter);
    fsi__free(s->context, s->sink, (size_t)s->sink_capacity, sizeof *s->sink);
}

FSI_API void fsi__sources_shift(fsi__sources *s, fsi_vec3 offset)
{
    int k;
    for (k = 0; k < s->sink_count; k++) {
        fsi_sink_desc *d = &s->sink[k].desc;
        d->center = fsi_v3_add(d->center, offset);
        if (d->shape != FSI_SINK_BOX) continue;
        d->box.lo = fsi_v3_add(d->box.lo, offset);
        d->box.hi = fsi_v3_add(d->box.hi, offset);
    }
}

/* ---- >>state of sources ---------------------------------------------------------------------------------------- */

FSI_API void fsi__sources_shift_flows(fsi__sources *s, fsi_vec3 offset)
{
    int k;
    for (k = 0; k < s->emitter_count; k++) {
        double *c = s->emitter[k].flow.center;
        fsi__d3_put(c, fsi__d3_add(fsi__d3_at(c), fsi__d3_of(offset)));
    }
}

FSI_API void fsi__sources_state(fsi__stream *stream, fsi__sources *s)
{
    int k;
    for (k = 0; k < s->emitter_count; k++) fsi__bytes(stream, &s->emitter[k].flow, sizeof s->emitter[k].flow);
    for (k = 0; k < s->sink_count; k++) fsi__bytes(stream, &s->sink[k].drain, sizeof s->sink[k].drain);
}

FSI_API size_t fsi__sources_state_size(const fsi__sources *s)
{
    return (size_t)s->emitter_count * sizeof(fsi__flow) + (size_t)s->sink_count * sizeof(fsi__drain);
}

/* Reads the bytes of fsi__sources_state; 0 when these sources could not have written them. */
static int fsi__sources_check_flows(const fsi__sources *s, fsi__stream *stream)
{
    const int64_t many = (int64_t)1 << 60; /* counts that can be counted on */
    int k, j, good = 1;
    for (k = 0; k < s->emitter_count; k++) {
        fsi__flow f = s->emitter[k].flow;
        fsi__bytes(stream, &f, sizeof f);
        good &= f.id == s->emitter[k].flow.id && f.emitted >= 0 && f.blocked >= 0 && f.refused >= 0;
        good &= f.emitted < many && f.blocked < many && f.refused < many;
        good &= f.advance >= 0 && f.advance <= 1 && f.fills >= 0 && f.fills <= FSI__HUGE;
        for (j = 0; j < 3; j++) good &= fabs(f.center[j]) <= FSI__SOURCE_FAR;
    }
    for (k = 0; k < s->sink_count; k++) {
        fsi__drain f = s->sink[k].drain;
        fsi__bytes(stream, &f, sizeof f);
        good &= f.id == s->sink[k].drain.id && f.removed >= 0 && f.removed < many && f.allowance >= 0
            && f.allowance < 1e15;
    }
    return stream->ok && good;
}

/* Are the particles of a state, whose `held` stands next, held by emitters that there are? */
static fsi_status fsi__sources_check_held(const fsi__sources *s, const char *fn, fsi__stream *stream, int64_t count)
{
    int64_t i;
    for (i = 0; i < count; i++) {
        uint32_t held = 0;
        fsi__bytes(stream, &held, sizeof held);
        if (held > 0 && fsi__sources_find(s, (int64_t)held - 1) < 0)
            return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, i, (double)held,
                "particle %.0f is held by an emitter that does not exist", (double)i);
    }
    return FSI_OK;
}

FSI__COLD_END

/* ---- >>sources at work ------------------------------------------------------------------------------------------ */

FSI_API fsi_status fsi__sources_check_state(const fsi__sources *s, const char *fn, fsi__stream *stream,
    const fsi__particles *t, const void *held, int64_t count, fsi_vec3 offset)
{
    uint64_t next = 0;
    size_t rows;
    fsi__bytes(stream, &next, sizeof next);
    if (!fsi__sources_check_flows(s, stream) || next > 0xffffffffu)
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, 0,
            "the state is of other emitters or sinks than this liquid has");
    rows = stream->used;
    FSI__TRY(fsi__particles_check_state(t, fn, stream, count, next, offset));
    stream->used = rows + fsi__particles_bytes(t, held, count);
    return fsi__sources_check_held(s, fn, stream, count);
}

FSI_API double fsi__sources_fastest(const fsi__sources *s, double speed)
{
    int k;
    for (k = 0; k < s->emitter_count; k++)
        speed = fmax(speed, (double)fsi_v3_norm(fsi__emitter_velocity(&s->emitter[k])));
    return speed;
}

FSI_API double fsi__emitter_most_layers(const fsi__emitter *e, double dt, int fills)
{
    if (e->desc.shape != FSI_EMITTER_MESH) return floor(e->flow.advance + (double)e->desc.speed * dt / e->pitch[2]) + 2;
    return fmin(e->desc.period > 0 ? floor(dt / e->desc.period) + 2 : 1, fills);
}

FSI_API int fsi__emitter_flows(const fsi__emitter *e, double clock)
{
    return e->desc.shape != FSI_EMITTER_MESH && e->desc.speed > 0 && clock >= e->desc.start && clock < e->desc.stop;
}

FSI_API double fsi__emitter_advance(const fsi__emitter *e, const fsi__flow *flow, double clock, double until)
{
    const double from = fmax(clock, e->desc.start), to = fmin(until, e->desc.stop);
    return to > from ? flow->advance + (double)e->desc.speed * (to - from) / e->pitch[2] : flow->advance;
}

FSI_API int fsi__emitter_fills(const fsi__emitter *e, fsi__flow *flow, double clock, double now)
{
    const fsi_emitter_desc *d = &e->desc;
    const double due = d->start + flow->fills * d->period;
    if ((flow->fills > 0 && !(d->period > 0)) || due > now || !(due < d->stop && clock < d->stop)) return 0;
    flow->fills = d->period > 0 ? floor((now - d->start) / d->period) + 1 : 1;
    return 1;
}

FSI_API void fsi__source_layout(fsi__source_run *run, fsi__arena *arena)
{
    const fsi__sources *s = run->sources;
    if (s->emitter_count > 0) {
        run->flow = (fsi__flow *)fsi__take(arena, (size_t)s->emitter_count, sizeof(fsi__flow));
        run->blocked = (unsigned char *)fsi__take(arena, run->cells, 1);
    }
    if (s->sink_count > 0) run->drain = (fsi__drain *)fsi__take(arena, (size_t)s->sink_count, sizeof(fsi__drain));
}

FSI_API void fsi__source_begin(fsi__source_run *run)
{
    const fsi__sources *s = run->sources;
    int k;
    for (k = 0; k < s->emitter_count; k++) run->flow[k] = s->emitter[k].flow;
    for (k = 0; k < s->sink_count; k++) run->drain[k] = s->sink[k].drain;
}

FSI_API void fsi__source_commit(fsi__source_run *run)
{
    fsi__sources *s = run->sources;
    int k;
    for (k = 0; k < s->emitter_count; k++) s->emitter[k].flow = run->flow[k];
    for (k = 0; k < s->sink_count; k++) s->sink[k].drain = run->drain[k];
}

static fsi_vec3 fsi__source_center(const fsi__source_run *run, int k)
{
    const double *c = run->flow[k].center;
    return fsi_v3((fsi_real)c[0], (fsi_real)c[1], (fsi_real)c[2]);
}

FSI_API const fsi__emitter *fsi__source_holder(const fsi__source_run *run, uint32_t held, fsi_vec3 x, double clock)
{
    const int k = held ? fsi__sources_find(run->sources, (int64_t)held - 1) : -1;
    const fsi__emitter *e = k >= 0 ? &run->sources->emitter[k] : NULL;
    if (!e || !fsi__emitter_flows(e, clock)) return NULL;
    return fsi_v3_dot(fsi_v3_sub(x, fsi__source_center(run, k)), e->desc.direction) < FSI__SOURCE_PISTON
        * run->sources->dx ? e : NULL;
}

FSI_API fsi_vec3 fsi__source_first_site(const fsi__source_run *run, int k, double advance)
{
    const fsi__emitter *e = &run->sources->emitter[k];
    return fsi_v3_madd(fsi_v3_add(fsi__source_center(run, k), e->corner), (fsi_real)(advance * e->pitch[2]),
        e->axis[2]);
}

/* Marks the sites of `layers` lattices from o on that are near x; 1 when there is one. */
static int fsi__source_block_near(fsi__source_run *run, const fsi__emitter *e, int layers, fsi_vec3 o, fsi_vec3 x)
{
    const double reach = FSI__SOURCE_BLOCKED * (double)run->sources->dx;
    double at[3];
    int lo[3], hi[3], i, j, k, found = 0;
    for (k = 0; k < 3; k++) {
        const int last = e->n[k] * (k == 2 ? layers : 1) - 1;
        at[k] = (double)fsi_v3_dot(fsi_v3_sub(x, o), e->axis[k]);
        if (!(at[k] > -reach && at[k] < last * e->pitch[k] + reach)) return 0;
        lo[k] = (int)fmax(ceil((at[k] - reach) / e->pitch[k]), 0);
        hi[k] = (int)fmin(floor((at[k] + reach) / e->pitch[k]), last);
    }
    for (k = lo[2]; k <= hi[2]; k++) for (j = lo[1]; j <= hi[1]; j++) for (i = lo[0]; i <= hi[0]; i++) {
        double dx = at[0] - i * e->pitch[0], dy = at[1] - j * e->pitch[1], dz = at[2] - k * e->pitch[2];
        size_t c = ((size_t)k * (size_t)e->n[1] + (size_t)j) * (size_t)e->n[0] + (size_t)i;
        if (!(dx * dx + dy * dy + dz * dz < reach * reach)) continue;
        run->blocked[c] = 1;
        found |= e->present[c % fsi__emitter_site_count(e)];
    }
    return found;
}

FSI_API void fsi__source_block(fsi__source_run *run, int k, int layers, fsi_vec3 o, const fsi_vec3 *x, int n,
    uint32_t *held)
{
    const fsi__emitter *e = &run->sources->emitter[k];
    int i;
    memset(run->blocked, 0, fsi__emitter_site_count(e) * (size_t)layers);
    for (i = 0; i < n; i++)
        if (fsi__source_block_near(run, e, layers, o, x[i]) && held && !held[i]) held[i] = (uint32_t)(e->flow.id + 1);
}

FSI_API fsi__emission fsi__source_emit(fsi__source_run *run, int k, int layers, int behind, fsi_vec3 o,
    long long left, fsi__emit_fn *add, void *owner)
{
    const fsi__emitter *e = &run->sources->emitter[k];
    const size_t lattice = fsi__emitter_site_count(e);
    fsi__flow *flow = &run->flow[k];
    fsi__emission out = { 0, 0, 0 };
    size_t c;
    for (c = lattice * (size_t)layers; left > 0 && c-- > 0;) {
        const int is_behind = c < lattice * (size_t)behind;
        if (!e->present[c % lattice]) continue;
        out.blocked += run->blocked[c] && !is_behind;
        if (run->blocked[c] || out.emitted == left) continue;
        add(owner, e, fsi__emitter_site(e, o, c), is_behind);
        out.emitted += !is_behind;
    }
    out.refused = (long long)e->sites * (layers - behind) - out.emitted - out.blocked;
    flow->emitted += out.emitted;
    flow->blocked += out.blocked;
    flow->refused += out.refused;
    return out;
}

static int fsi__sink_holds(const fsi_sink_desc *d, int dim, fsi_vec3 x)
{
    fsi_vec3 r = fsi_v3_sub(x, d->center);
    fsi_real along = fsi_v3_dot(r, d->direction), distance;
    if (d->shape == FSI_SINK_BOX)
        return x.x >= d->box.lo.x && x.x <= d->box.hi.x && x.y >= d->box.lo.y && x.y <= d->box.hi.y
            && (dim == 2 || (x.z >= d->box.lo.z && x.z <= d->box.hi.z));
    if (d->shape == FSI_SINK_SPHERE) return fsi_v3_norm2(r) <= d->radius * d->radius;
    if (d->shape == FSI_SINK_DISC)
        return fsi_abs(along) <= d->thickness / 2
            && fsi_v3_norm2(fsi_v3_madd(r, -along, d->direction)) <= d->radius * d->radius;
    if (!fsi_box3_overlap(d->mesh->box, fsi_box3_grow(fsi_box3_empty(), x))) return 0;
    distance = fsi_mesh_signed_distance(d->mesh, x);
    return d->mesh->container ? distance > 0 : distance < 0;
}

/* The first sink from k on that x is in, plus 1; 0: none. */
static int fsi__source_next_sink(const fsi__sources *s, fsi_vec3 x, int k)
{
    for (; k < s->sink_count; k++) if (fsi__sink_holds(&s->sink[k].desc, s->dim, x)) return k + 1;
    return 0;
}

typedef struct fsi__source_search {
    const fsi__sources *sources; const fsi_vec3 *x; unsigned char *gone;
} fsi__source_search;

static void fsi__source_find_sinks(void *arg, int chunk, int begin, int end)
{
    const fsi__source_search *search = (const fsi__source_search *)arg;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++)
        if (search->gone[i] != 255)
            search->gone[i] = (unsigned char)fsi__source_next_sink(search->sources, search->x[i], 0);
}

FSI_API double fsi__source_layers_due(const fsi__source_run *run, int k, double clock, double dt)
{
    const fsi__emitter *e = &run->sources->emitter[k];
    fsi__flow flow = e->flow;
    if (!(dt > 0)) return 0;
    if (e->desc.shape == FSI_EMITTER_MESH) return fsi__emitter_fills(e, &flow, clock, clock);
    return fsi__emitter_flows(e, clock) ? floor(fsi__emitter_advance(e, &flow, clock, clock + dt)) + 1 : 0;
}

FSI_API fsi_status fsi__source_make_room(fsi__source_run *run, fsi__particles *t, const char *fn, double clock,
    double dt, int *more)
{
    double sum = 0;
    int k;
    for (k = 0; k < run->sources->emitter_count; k++) {
        const fsi__emitter *e = &run->sources->emitter[k];
        const double layers = fsi__source_layers_due(run, k, clock, dt);
        const double cells = layers * (double)fsi__emitter_site_count(e);
        if (!(cells <= 0x3fffffff)) return fsi__fail(t->context, FSI_ERROR_LIMIT, fn, e->flow.id, layers,
            "emitter %d would let out %g layers in one step", (int)e->flow.id, layers);
        run->cells = (size_t)fmax((double)run->cells, cells);
        sum += layers * e->sites;
    }
    FSI__TRY(fsi__particles_room_for_sources(t, fn, *t->count + sum, sum));
    *more = (int)sum;
    return FSI_OK;
}

FSI_API fsi__emission fsi__source_line_up(fsi__source_run *run, double clock, double dt, const fsi_vec3 *x,
    const int *n, uint32_t *held, long long left, fsi__emit_fn *add, void *owner)
{
    fsi__emission all = { 0, 0, 0 };
    int k;
    for (k = 0; k < run->sources->emitter_count; k++) {
        const fsi__emitter *e = &run->sources->emitter[k];
        const int layers = (int)fsi__source_layers_due(run, k, clock, dt), fills = e->desc.shape == FSI_EMITTER_MESH;
        fsi__flow *f = &run->flow[k];
        long long most = left - all.emitted;
        fsi__emission out;
        fsi_vec3 o;
        if (layers == 0) continue;

        /* Its layers, where there is room and budget. */
        o = fsi__source_first_site(run, k, fills ? 0 : f->advance - layers);
        if (e->desc.budget > 0 && e->desc.budget - f->emitted < most) most = e->desc.budget - f->emitted;
        if (most > 0) fsi__source_block(run, k, layers, o, x, *n, fills ? NULL : held);
        out = fsi__source_emit(run, k, layers, !fills, o, most, add, owner);
        all.emitted += out.emitted;
        all.blocked += out.blocked;
        all.refused += out.refused;

        /* Its flow at the end of the step. */
        if (fills) fsi__emitter_fills(e, f, clock, clock);
        else f->advance = fmod(fsi__emitter_advance(e, f, clock, clock + dt), 1);
    }
    return all;
}

FSI_API void fsi__source_move(fsi__source_run *run, double dt)
{
    int k;
    for (k = 0; k < run->sources->emitter_count; k++) {
        double *c = run->flow[k].center;
        fsi__d3_put(c, fsi__d3_madd(fsi__d3_at(c), dt, fsi__d3_of(run->sources->emitter[k].desc.velocity)));
    }
}

/* What a sink with a rate does not use is not saved up, except for a part of a particle. */
FSI_API int fsi__source_drain(fsi__source_run *run, double dt, double particle_volume, const fsi_vec3 *x, int n,
    unsigned char *gone)
{
    const fsi__sources *s = run->sources;
    fsi__source_search search;
    int i, k, removed = 0;

    /* The first sink that holds each particle. */
    search.sources = s;
    search.x = x;
    search.gone = gone;
    /* 3 ns a particle and sink */
    fsi__parallel_work(s->context, n, 512, 3.0 * n * s->sink_count, fsi__source_find_sinks, &search);

    /* Whole particles that each sink may take: of several sinks, the first with allowance left. */
    for (k = 0; k < s->sink_count; k++) run->drain[k].allowance += dt * (double)s->sink[k].desc.rate / particle_volume;
    for (i = 0; i < n; i++) {
        int sink = gone[i];
        if (sink == 255) continue;
        /* full */
        while (sink && s->sink[sink - 1].desc.rate > 0 && run->drain[sink - 1].allowance < 1)
            sink = fsi__source_next_sink(s, x[i], sink);
        gone[i] = (unsigned char)sink;
        if (!sink) continue;
        k = sink - 1;
        run->drain[k].allowance -= s->sink[k].desc.rate > 0;
        run->drain[k].removed++;
        removed++;
    }

    /* Fractions are kept for the next call. */
    for (k = 0; k < s->sink_count; k++) run->drain[k].allowance -= floor(run->drain[k].allowance);
    return removed;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
