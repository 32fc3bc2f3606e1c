/* fsi_couple.h - level-set liquid and thin solids that move together and never pass through each other.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_couple.h"
         #include "fsi_couple.h"

   A DROP FALLS ON A CLOTH
      fsi_context ctx = fsi_default_context();             // hooks for memory, threads, messages; and what went wrong
      fsi_levelset_desc l = fsi_levelset_default_desc();   // the liquid, as in fsi_levelset.h
      fsi_shell_desc d = fsi_shell_default_desc();         // the cloth, as in fsi_shell.h
      fsi_couple_desc e = fsi_couple_default_desc();
      fsi_levelset *water; fsi_shell *cloth; fsi_couple *both;
      l.context = d.context = &ctx;
      ...                                                  // fill both descs
      if (fsi_levelset_create(&water, &l) != FSI_OK) { puts(ctx.error.message); return 1; }
      if (fsi_shell_create(&cloth, &d) != FSI_OK) { puts(ctx.error.message); return 1; }
      fsi_levelset_fill_sphere(water, fsi_v3(0.05f, 0.05f, 0.08f), 0.01f, fsi_v3(0, 0, -1), NULL);
      e.liquid = water;
      e.shell = cloth;
      if (fsi_couple_create(&both, &e) != FSI_OK) { puts(ctx.error.message); return 1; }
      for (step = 0; step < 100; step++)
          if (fsi_couple_step(both, 0.01f) != FSI_OK) { puts(ctx.error.message); break; }
      fsi_couple_destroy(both);                            // then the other two

   HOW IT WORKS
      Every pressure projection includes the solid: faces of liquid cells in contact with it take its velocity, and it
      receives the pressure's impulse. Liquid and solid then move to phi* and x*, together where they touch. Where phi*
      and x* overlap, as in an impact, one minimisation finds the smallest change of both that keeps every sample of the
      solid outside of the liquid, by a barrier on phi at the sample, and conserves the volume of every component.
      docs/couple.md derives it.
   WHAT IT DOES (search for it)
      fsi_couple_create, _destroy, _error     couples a liquid and a shell. Only steps are joint: fill, pin, attach and
                                              add obstacles by the functions of each
      s->carved_volume, desc.largest_loss     volume of liquid that create removed at the solid, and its limit
      fsi_couple_step, _suggest_dt            advances both; a step that does not converge is made again with shorter
                                              substeps; one that fails changes neither, nor does one where one of them
                                              was stepped alone
      fsi_couple_set_desc                     changes settings; gravity belongs to each of the two: fsi_shell_set_desc,
                                              fsi_levelset_set_desc
      fsi_couple_shift_origin                 moves both, for worlds that shift their origin
      fsi_couple_debug_draw                   draws both, and the contacts
      fsi_couple_save, _load, _hash           bitwise
      s->adhesion                             tension that liquid at each vertex bears before it separates: wetting
                                              and non-wetting parts
      s->liquid_force                         force of the liquid on each vertex and pin
      bodies                                  an fsi_body may be an obstacle of the shell, of the liquid, or (added to
                                              each) of both: see below
      s->stats                                smallest distance, contacts, momentum, times a phase
   WHAT IT DOES NOT DO
      The shell is integrated by BACKWARD_EULER only, with the liquid's substeps. Velocities of the liquid are of first
      order in time, whatever its time_order. Air between liquid and solid has no pressure. A wetting solid holds liquid
      (`adhesion`) but does not draw it along: there is no contact angle.
   BODIES: PRESCRIBED or COUPLED. A body that is an obstacle of both gets the sum of both impulses; obstacle_reaction of
      each gives its own part. COUPLED in the shell alone: solved with the shell's positions, then with velocities of
      liquid and shell. COUPLED in both: one system of pressure, shell and body, by correction MOMENTUM; use
      fsi_body_accept, as contacts decide where the shell leaves the body. Measured stable down to a thousandth of the
      liquid's density (docs/couple.md 5).
   MACROS: those of fsi.h.
   UNITS: SI. In 2D volumes, masses and energies are per metre of depth.
   FIND IN HERE (search for >>)
      >>coupling, the API; then  >>samples  >>contacts  >>system  >>newton  >>velocities  >>viscous drag  >>lost liquid
      >>step
*/
#ifndef FSI_COUPLE_H
#define FSI_COUPLE_H

#include "fsi_levelset.h"
#include "fsi_shell.h"

/* ---- >>coupling ------------------------------------------------------------------------------------------------ */

/* How the velocities of liquid and solid are matched after their positions. MOMENTUM: they exchange the impulses of one
   solve. PAPER: the solid is a moving wall to the liquid, and the barrier is the only force on the solid, so momentum
   is not conserved (for comparison, and for solids that are fixed or far heavier than the liquid). */
typedef enum fsi_couple_correction { FSI_COUPLE_MOMENTUM, FSI_COUPLE_PAPER } fsi_couple_correction;

/* How to couple. Start from fsi_couple_default_desc(). */
typedef struct fsi_couple_desc {
    uint32_t cookie;
    fsi_levelset *liquid;      /* referenced, as is shell; both must outlive the coupling, which alone may step them; no
                                  default */
    fsi_shell *shell;
    fsi_metric metric;         /* how phi is read at a sample; default SPLINE */
    fsi_real range;            /* d_hat: distance at which the barrier begins [m], less where liquid rests nearer
                                  already; default 0: dx */
    fsi_real stiffness;        /* c of kb = c rho V d_hat^2, V the volume of a cell; 0.1 to 100; default 5 */
    fsi_real sample_spacing;   /* distance of samples on edges and triangles [dx], 0.2 to 10: edges longer than 1.5 of
                                  it are divided; default 1; 0: vertices only, between which liquid may leak where they
                                  are far apart */
    fsi_real tolerance;        /* Newton ends when its next step would move phi near the surface and vertices by less
                                  than tolerance * dx; default 7e-3 */
    fsi_couple_correction correction; /* default MOMENTUM */
    fsi_real adhesion;         /* the largest pull that liquid at the solid bears before it separates [Pa], at first the
                                  same for all vertices: see fsi_couple; default 0: none, the solid does not get wet */
    fsi_real largest_loss;     /* create refuses (LIMIT) to remove more than this fraction of the liquid's volume, 0 to
                                  1; default 1: it never refuses */
    int slip;                  /* 1: the liquid slides along the solid: only the velocity normal to the surface is
                                  matched; momentum is then conserved up to the staircase error of the surface. Default
                                  0: faces at the solid take its velocity along their axis, which slows liquid where the
                                  solid is oblique to the grid, and by MOMENTUM viscous liquid sticks to it (couple.md
                                  4); momentum is conserved to rounding */
} fsi_couple_desc;

FSI_API fsi_couple_desc fsi_couple_default_desc(void); /* fills every field; set liquid and shell */

/* What the last successful step did. Sums over its substeps unless said otherwise. */
typedef struct fsi_couple_stats {
    int substeps, newton;      /* substeps; Newton steps of liquid and solid together */
    int samples, contacts;     /* samples of the solid; those within range at the end */
    int degraded;              /* substeps in which Newton's method ended before equilibrium; one more where the
                                  liquid's own stats.degraded is set */
    int retries;               /* how often the step did not converge and was made again with substeps half as long: 0
                                  to 3 */
    int drowned;               /* samples between vertices that lie in the liquid since the solid was stretched: no
                                  contacts until they are out of it; maximum over the substeps */
    int faces, released;       /* at the end: faces of liquid that moved with the solid; those released, where the pull
                                  exceeded `adhesion` */
    double min_distance;       /* smallest phi at a sample after any substep [m]; 8 dx: far */
    double volume_error;       /* of all liquid, at the end, as fsi_levelset_stats has it */
    double momentum[3];        /* of liquid and solid, bodies not counted, at the end [kg m/s] */
    double momentum_error;     /* MOMENTUM: momentum created by the velocity exchange, relative to the impulse in it;
                                  maximum over the substeps; held parts of the solid are left out */
    double seconds_newton, seconds_pressure, seconds; /* optimisation; projections; all */
} fsi_couple_stats;

typedef struct fsi_couple {
    uint32_t cookie;
    fsi_context *context;      /* the liquid's */
    fsi_couple_desc desc;      /* as given */
    fsi_levelset *liquid;
    fsi_shell *shell;
    double time;               /* [s] */
    double carved_volume;      /* liquid that create removed, nearer than 1.5 dx to the solid [m^3; 2D: m^2] */
    fsi_real *adhesion;        /* of each vertex of the shell [Pa], at least 0, interpolated between vertices; may be
                                  written between steps; a setting, not part of save, load and hash. rho g h holds a
                                  layer of thickness h; on a rod it acts on a strip two cells wide, as wide as the
                                  liquid sees it */
    const fsi_vec3 *liquid_force; /* force of the liquid on each vertex of the shell, pinned ones included: pressure,
                                     surface tension and adhesion at faces that move with it; mean over the last step
                                     [N; 2D: N/m], world axes; times dt it is the impulse [N s]; 0 after a step of 0 s.
                                     Minus its sum over all vertices is the force on the liquid. A pinned vertex is held
                                     by shell->pin_force minus this; contact forces are in shell->contact_force. The
                                     push of the box's sides is included, without a reaction on the liquid. Together
                                     with gravity and shell->force these change the shell's momentum, by MOMENTUM to
                                     rounding; forces of springs and wind are those at the final positions */
    fsi_couple_stats stats;
    void *impl;
} fsi_couple;

/* Couples a liquid and a shell. Liquid nearer than 1.5 dx to the solid is removed; a message (level 1) says how much,
   as does s->carved_volume. Errors: COOKIE; ARGUMENT (names the field: liquid and shell of different dim, an integrator
   other than BACKWARD_EULER, conserve_volume 0); NAN; MEMORY; LIMIT (more than desc.largest_loss would be removed);
   then neither has changed. *out is NULL on failure; the text is in the liquid's context, or the shell's if liquid is
   NULL. */
FSI_API fsi_status fsi_couple_create(fsi_couple **out, const fsi_couple_desc *desc);
FSI_API void fsi_couple_destroy(fsi_couple *s); /* liquid and shell stay; NULL is fine */
/* Changes settings: start from s->desc. liquid, shell and largest_loss are ignored. An `adhesion` other than that of
   s->desc is written to all vertices. Errors: COOKIE, ARGUMENT and NAN (name the field); then nothing has
   changed. */
FSI_API fsi_status fsi_couple_set_desc(fsi_couple *s, const fsi_couple_desc *desc);
/* Why the last call on it failed. NULL, as after a create that failed: a constant text that says where to read why.
   Never NULL. */
FSI_API const fsi_error *fsi_couple_error(const fsi_couple *s);
/* Advances both by exactly dt seconds, in substeps that the liquid's cfl asks for, vertices and COUPLED bodies counted.
   dt = 0 moves nothing and fills stats for the present state. A degraded step gives a message (level 1). A step that
   fails with CONVERGENCE is begun anew with substeps of half the length, and twice as many if max_substeps bounds them;
   then of a quarter, then of an eighth: stats.retries. The message hook hears of each failure (level 0). Errors: those
   of fsi_levelset_step and fsi_shell_step; ARGUMENT (one of the two was stepped, settled, loaded or shifted alone, so
   that liquid may have crossed the solid: load a state of both, or create a new coupling; or one now has settings that
   create refuses; or adhesion: names the vertex; or a body COUPLED in both, with PAPER); MESH (a sample is deep in the
   liquid, as positions were written there; names it), CONVERGENCE (with an eighth too: a solver did not converge, or a
   vertex could not be kept out of the liquid), NAN; then nothing has changed. */
FSI_API fsi_status fsi_couple_step(fsi_couple *s, fsi_real dt);
/* The largest step that takes one substep now [s], if pins and PRESCRIBED obstacles move no faster than liquid,
   vertices and COUPLED bodies; 1e-12 to 1000. 0: s is no coupling, or the liquid's desc.acceleration is not finite now:
   fsi_couple_error. */
FSI_API fsi_real fsi_couple_suggest_dt(const fsi_couple *s);
/* Adds offset [m] to both: fsi_levelset_shift_origin and fsi_shell_shift_origin say what to do with meshes and bodies,
   and with states that were saved before. Errors: COOKIE, NAN, LIMIT (one of the two would be too far away); then
   nothing has changed. */
FSI_API fsi_status fsi_couple_shift_origin(fsi_couple *s, fsi_vec3 offset);
/* The states of both, one after the other; the rules of fsi_levelset_save and fsi_shell_save apply. load also refuses
   (MESH, names the vertex) a solid that lies in the liquid; then neither has changed. */
FSI_API fsi_status fsi_couple_save(const fsi_couple *s, void *buffer, size_t capacity, size_t *size);
FSI_API fsi_status fsi_couple_load(fsi_couple *s, const void *buffer, size_t size);
/* Hash of both states. */
FSI_API uint64_t fsi_couple_hash(const fsi_couple *s);
/* Draws what fsi_levelset_debug_draw and fsi_shell_debug_draw draw, and as points the samples that were within range of
   the liquid in the last step. */
FSI_API void fsi_couple_debug_draw(const fsi_couple *s, const fsi_debug_draw *draw);

#endif /* FSI_COUPLE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

/* A step (fsi__co_persist) is run, and where it does not converge again, with substeps half as long.
   A substep (fsi__co_substep): stages of the liquid (fsi__ls_) and of the shell (fsi__sh_), and what is added to them:

      fsi__ls_open                     speed: fsi__sh_fastest
      fsi__co_begin                    fsi__sh_predict; make_samples; find_touching: which are at the liquid
      fsi__ls_force
      fsi__co_project_both FIRST       collect_faces: that move with the solid; predict: its velocities; make_solid;
                                       release: what would be pulled; take_velocities; bound_shore
      fsi__ls_thicken                  drag: before it
      fsi__ls_advect_surface           ride: behind it
      fsi__ls_advect, return_lost, fsi__ls_follow
      fsi__co_settle                   collect: unknowns of the liquid
         fsi__co_newton                while fsi__sh_iterates:
            direct                        fsi__sh_assemble, assemble; fsi__sh_constrain; solve; fsi__sh_retreat
            filter                        fsi__sh_filter; the sweep of samples; fsi__sh_filter_arcs
            search                        fsi__sh_try; energy; fsi__sh_judge; accept
         fsi__sh_accept
         take                          the level set becomes what was found
      fsi__ls_settle, fsi__ls_regrid
      fsi__co_project_both LAST        as FIRST; fsi__sh_change_velocities */

#ifdef FSI_IMPLEMENTATION
#undef FSI_COUPLE_IMPLEMENTATION
#define FSI_COUPLE_IMPLEMENTATION
#endif
#ifdef FSI_COUPLE_IMPLEMENTATION
#ifndef FSI_COUPLE_IMPLEMENTATION_DONE
#define FSI_COUPLE_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_levelset.h"
#include "fsi_shell.h"

#include <stdlib.h>

FSI__STRICT_BEGIN

/* ---- >>samples --------------------------------------------------------------------------------------------------

   Points of the solid at which it meets the liquid: its vertices, and points on edges and triangles, by their lengths
   at the start of the step, so that none is farther than 1.5 `sample_spacing` from the next. Samples so far out of the
   box that no substep brings them in are left out. */

typedef struct fsi__co_sample {
    int node[3], drowned;       /* x = sum weight x[node]; -1: none; drowned: left out in this substep */
    double weight[3], area;
    double range;               /* where its barrier begins in this substep [m] */
    fsi_stencil frozen;         /* LINEAR: its cells serve from when it is listed to the substep's end, as d has kinks
                                   between cells; dim 0: none yet */
} fsi__co_sample;

/* A sample within reach of the liquid, where Newton's method now is. */
typedef struct fsi__co_contact {
    int sample;
    double d, x[3];
    double gradient[3];         /* of d to x */
    double bend[9];             /* positive semidefinite part of -d'', d'' the Hessian of d to x */
    double normal[3];           /* unit, from the liquid to the solid; 0: liquid is on both sides */
    double root, pull;          /* sqrt(kb b''), kb b' <= 0: 0 out of reach */
    double press[6], counted[6];  /* of its faces, on either side: pressures times weights; weights */
    int cell[27];               /* unknowns that d depends on, -1: a cell that is none */
    double weight[27];
} fsi__co_contact;

/* An unknown of the level set. */
typedef struct fsi__co_cell {
    int entry, component;
    double target, value;       /* phi*, phi [m] */
    double share;               /* H(phi*) */
    double weight;              /* fraction of the cell that is no solid */
    double gradient, slope, step; /* of the energy; J, the slope of the volume, in cells [1/m]; Newton's */
    double push;                /* W' of some r */
} fsi__co_cell;

/* A component. */
typedef struct fsi__co_part {
    double h, lam, mu;          /* its constraint, in cells; the multiplier; penalty weight of |h| in the search */
    double missing, volume;     /* volume to gain; volume, in cells */
    double jj, jd, jp;          /* J D^-1 times J', the gradient, cells' push */
} fsi__co_part;

#define FSI__CO_MOST_RETRIES 3  /* of a step: the last with substeps of an eighth */

typedef struct fsi__co_impl {
    fsi_couple *s;
    fsi_context *context;
    fsi_levelset *liquid;
    fsi_shell *shell;
    const fsi__ls_view *ls;
    const fsi__sh_view *sh;
    double dx, volume, density, range;
    unsigned liquid_moves, shell_moves; /* of each after the last call on both */
    fsi_field *start;           /* phi where the substep began */
    fsi__co_sample *sample;
    int samples, sample_capacity;
    double margin;              /* samples on elements farther out of the box than this are left out [m] */
    int *pieces;                /* edges + triangles: how many the samples divide each into */
    int *map, map_room;         /* entries: unknown, -1: none */
    double *lost;               /* entries: liquid lost in a substep, in cells */
    unsigned char *beside;      /* entries: 1: beside the solid */
    int lost_room, beside_room;
    fsi__co_cell *cell;
    int cells, cell_capacity;
    fsi__co_part *part;
    int parts, part_capacity;
    fsi__co_contact *contact;   /* of the samples that may come within reach */
    int contacts, contact_capacity;
    double moved, moved_before; /* largest step near the surface of this and the last iteration; 0: there was none */
    int ever_listed, listed;    /* in this substep; they are those of now, */
    double slack;               /* as long as nothing moves farther than this [m] */
    double swept_from, swept;   /* fraction of Newton's step where the sweep of a sample begins, and its length */
    double inertia, stiffness;  /* D, kb of this substep, over its h^2 */
    /* Newton's system */
    int *row, rows, row_capacity; /* contacts within range */
    int *reached, touched, reached_capacity; /* cells that they depend on */
    double *krylov;             /* 7 * rows: r, and the vectors of conjugate gradients */
    double *way;                /* 6 * nodes */
    int krylov_capacity, way_capacity;
    /* a matrix of the shell's nodes: of that system, with the shell's own pattern; then of velocities, with one of its
       own */
    fsi_csr total;
    int *total_start, *total_col, *total_map, total_rows_capacity, total_capacity, map_capacity;
    double *total_value, *right, *solution;
    int value_capacity, right_capacity, solution_capacity;
    uint64_t *key;              /* of entries that the shell's matrix lacks: row << 32 | col */
    int keys, key_capacity;
    /* of a step */
    fsi__sh_step *step;         /* of the shell, and of the liquid */
    fsi__ls_run *run;
    double dt;                  /* of the call */
    int retries;                /* how often it was begun anew so far */
    int newton;                 /* iterations before this substep */
    fsi_couple_stats stats;
    /* faces that move with the solid */
    struct fsi__co_touch *touch;
    int touches, touch_capacity;
    struct fsi__co_face *face;
    int faces, face_capacity;
    struct fsi__co_share *share;
    int shares, share_capacity;
    struct fsi__co_mass *mass;  /* of each component */
    int mass_capacity;
    fsi_grid_faces *list;
    fsi_solver *inertial;       /* of the solid's velocities */
    double *v, *load;           /* 3 * nodes: velocities before the pressure; the right side of their system */
    double *given;              /* 3 * nodes [N s, N m s]: impulses of the projections on the solid in this substep,
                                   before positions are sought */
    double *felt;               /* 3 * nodes: impulses of the liquid on all nodes in this step */
    int v_capacity, load_capacity, given_capacity, felt_capacity;
    fsi_vec3 *public_force;     /* vertices: liquid_force */
    int pushed;                 /* samples within the barrier's range */
    int weighed, ended;         /* in this substep: the solid's matrix is that of its start; positions are found */
    fsi__arena columns;         /* what the pressure solver reads of faces */
    fsi_pressure_solid *solid;
    int solid_capacity;
} fsi__co_impl;

#ifndef FSI__CO_LOOK /* tests look into a step here; flow: of projections, else NULL */
#define FSI__CO_LOOK(c, when, flow) ((void)0)
#endif
enum { FSI__CO_ASSEMBLES, FSI__CO_ASSEMBLED, FSI__CO_SOLVED, FSI__CO_PROJECTS, FSI__CO_PROJECTED };

static fsi__co_impl *fsi__co_of(const fsi_couple *s)
{
    return s && s->cookie == FSI__COOKIE('C', fsi_couple) ? (fsi__co_impl *)s->impl : NULL;
}

static fsi_status fsi__co_more(fsi__co_impl *c, void *array, size_t size, int rows, int *capacity, int need)
{
    return fsi__room_in(c->context, array, size, rows, capacity, need, "fsi_couple");
}

/* Pieces into which an element of this length is to be divided; 1 if it has as many samples already. */
static int fsi__co_finer(fsi__co_impl *c, int element, double length)
{
    const double spacing = (double)c->s->desc.sample_spacing * c->dx,
                 pieces = spacing > 0 ? fmin(floor(length / spacing + 0.5), 1000) : 1;
    if (!(pieces > c->pieces[element])) return 1;
    c->pieces[element] = (int)pieces;
    return c->pieces[element];
}

static fsi_status fsi__co_add_sample(fsi__co_impl *c, const int *node, const double *weight, double area)
{
    fsi__co_sample *s;
    int k;
    FSI__TRY(fsi__co_more(c, &c->sample, sizeof *c->sample, c->samples, &c->sample_capacity, c->samples + 1));
    s = &c->sample[c->samples++];
    for (k = 0; k < 3; k++) {
        s->node[k] = node[k];
        s->weight[k] = weight[k];
    }
    s->area = area;
    s->drowned = s->frozen.dim = 0;
    s->range = c->range;
    return FSI_OK;
}

static void fsi__co_place(const fsi__co_sample *s, const double *x, double *out)
{
    int k, a;
    for (a = 0; a < 3; a++) out[a] = 0;
    for (k = 0; k < 3 && s->node[k] >= 0; k++)
        for (a = 0; a < 3; a++) out[a] += s->weight[k] * x[3 * (size_t)s->node[k] + (size_t)a];
}

static void fsi__co_local(const fsi__co_impl *c, const double *x, double *out)
{
    const fsi_vec3 o = c->liquid->desc.origin;
    out[0] = x[0] - (double)o.x;
    out[1] = x[1] - (double)o.y;
    out[2] = x[2] - (double)o.z;
}

/* 1: out of the box by more than `margin`, or NaN. */
static int fsi__co_is_beyond(const fsi__co_impl *c, const double *local, double margin)
{
    const fsi_grid *g = c->liquid->grid;
    int a, out = 0;
    for (a = 0; a < g->dim; a++) out |= !(local[a] > -margin) || !(local[a] < g->n[a] * c->dx + margin);
    return out;
}

/* Removes the last sample if it is too far out of the box at x. */
static void fsi__co_drop_far(fsi__co_impl *c, const double *x)
{
    double at[3], local[3];
    fsi__co_place(&c->sample[c->samples - 1], x, at);
    fsi__co_local(c, at, local);
    c->samples -= fsi__co_is_beyond(c, local, c->margin);
}

static fsi_status fsi__co_sample_edge(fsi__co_impl *c, const double *x, int e)
{
    const fsi__sh_view *m = c->sh;
    const double length = fsi__sh_apart(x + 3 * (size_t)m->edge[2 * e], x + 3 * (size_t)m->edge[2 * e + 1]);
    const int n = fsi__co_finer(c, e, length), node[3] = { m->edge[2 * e], m->edge[2 * e + 1], -1 };
    int k;
    for (k = 1; k < n; k++) {
        const double t = (double)k / n, weight[3] = { 1 - t, t, 0 };
        FSI__TRY(fsi__co_add_sample(c, node, weight, length / n * c->dx));
        fsi__co_drop_far(c, x);
    }
    return FSI_OK;
}

static fsi_status fsi__co_sample_triangle(fsi__co_impl *c, const double *x, int t)
{
    const fsi__sh_view *m = c->sh;
    const int *node = m->triangle + 3 * t;
    double longest = 0;
    int n, i, j;
    for (i = 0; i < 3; i++)
        longest = fmax(longest, fsi__sh_apart(x + 3 * (size_t)node[i], x + 3 * (size_t)node[(i + 1) % 3]));
    n = fsi__co_finer(c, m->edges + t, longest);
    for (i = 1; i < n; i++) for (j = 1; i + j < n; j++) {
        const double weight[3] = { (double)i / n, (double)j / n, (double)(n - i - j) / n };
        FSI__TRY(fsi__co_add_sample(c, node, weight, m->area[t] / (n * n)));
        fsi__co_drop_far(c, x);
    }
    return FSI_OK;
}

/* Adds samples to elements that are too long at x for those they have. */
static fsi_status fsi__co_sample_elements(fsi__co_impl *c, const double *x)
{
    const fsi__sh_view *m = c->sh;
    int i;
    for (i = 0; i < m->edges; i++) FSI__TRY(fsi__co_sample_edge(c, x, i));
    for (i = 0; i < m->triangles; i++) FSI__TRY(fsi__co_sample_triangle(c, x, i));
    return FSI_OK;
}

static fsi_status fsi__co_make_samples(fsi__co_impl *c, const double *x)
{
    const fsi__sh_view *m = c->sh;
    const double one[3] = { 1, 0, 0 };
    int i;
    c->samples = 0;
    for (i = 0; i < m->edges + m->triangles; i++) c->pieces[i] = 1;
    for (i = 0; i < m->vertices; i++) {
        const int node[3] = { i, -1, -1 };
        FSI__TRY(fsi__co_add_sample(c, node, one, c->dx * c->dx));
    }
    return fsi__co_sample_elements(c, x);
}

static fsi_status fsi__co_check_adhesion(const fsi__co_impl *c, const char *fn)
{
    const fsi_real *adhesion = c->s->adhesion;
    int i;
    for (i = 0; i < c->sh->vertices; i++) {
        if (!fsi_is_finite((double)adhesion[i]))
            return fsi__fail(c->context, FSI_ERROR_NAN, fn, i, (double)adhesion[i],
                             "adhesion of vertex %d is not finite", i);
        if (adhesion[i] < 0)
            return fsi__fail(c->context, FSI_ERROR_ARGUMENT, fn, i, (double)adhesion[i],
                             "adhesion of vertex %d is %g Pa, must be at least 0", i, (double)adhesion[i]);
    }
    return FSI_OK;
}

/* Adhesion at a sample [Pa]: the mean of its vertices, by weight. */
static double fsi__co_adhesion(const fsi__co_impl *c, const fsi__co_sample *s)
{
    double sum = 0;
    int k;
    for (k = 0; k < 3 && s->node[k] >= 0; k++) sum += s->weight[k] * (double)c->s->adhesion[s->node[k]];
    return sum;
}

/* ---- >>contacts -------------------------------------------------------------------------------------------------- */

/* Entry of a cell; beyond the box that of the nearest one in it. -1: no block, far from the liquid. */
static long long fsi__co_entry(const fsi__co_impl *c, const int *cell)
{
    const fsi_grid *g = c->liquid->grid;
    int i[3] = { 0, 0, 0 }, a;
    for (a = 0; a < g->dim; a++) i[a] = cell[a] < 0 ? 0 : cell[a] >= g->n[a] ? g->n[a] - 1 : cell[a];
    return fsi_grid_entry(g, i[0], i[1], i[2]);
}

/* Entries of the cells of a stencil, x fastest; returns how many. */
static int fsi__co_entries(const fsi__co_impl *c, const fsi_stencil *at, long long *entry)
{
    int i[3], a, cell[3], n = 0;
    for (i[2] = 0; i[2] < (at->dim == 3 ? at->width : 1); i[2]++)
        for (i[1] = 0; i[1] < at->width; i[1]++)
            for (i[0] = 0; i[0] < at->width; i[0]++) {
                for (a = 0; a < 3; a++) cell[a] = at->base[a] + i[a];
                entry[n++] = fsi__co_entry(c, cell);
            }
    return n;
}

/* phi of a cell after a fraction `way` of Newton's step. */
static double fsi__co_phi(const fsi__co_impl *c, long long entry, double way)
{
    if (entry < 0) return (double)c->liquid->phi->background;
    if (c->map[entry] >= 0) return c->cell[c->map[entry]].value + way * c->cell[c->map[entry]].step;
    return (double)c->ls->next_phi->value[entry];
}

/* The solid is out of the box: no liquid moves with it there. */
static int fsi__co_is_out(const fsi__co_impl *c, const double *local) { return fsi__co_is_beyond(c, local, c->dx); }

/* The box's sides are a cell thick. Moves `local` back to their outer end and returns by how far [m]; away: unit vector
   outwards, or 0. */
static double fsi__co_past(const fsi__co_impl *c, double *local, double *away)
{
    const fsi_grid *g = c->liquid->grid;
    double size;
    int a;
    for (a = 0; a < 3; a++) {
        const double end = a < g->dim ? fmax(-c->dx, fmin((g->n[a] + 1) * c->dx, local[a])) : local[a];
        away[a] = local[a] - end;
        local[a] = end;
    }
    size = sqrt(fsi__sh_dot(away, away));
    for (a = 0; a < 3 && size > 0; a++) away[a] /= size;
    return size;
}

/* The positive semidefinite part of -d'', the Hessian of -d to x; phi: values at the cells of the stencil. */
static void fsi__co_bend(const fsi_stencil *at, const double *phi, double dx, double *out)
{
    const double curve[2][3] = { { 0, 0, 0 }, { 1, -2, 1 } }; /* second derivatives of a LINEAR and a SPLINE stencil's
                                                                 weights, times dx^2 */
    const int depth = at->dim == 3 ? at->width : 1;
    fsi_mat3 h, v;
    fsi_vec3 value;
    double part[3];
    int i[3], a, b, c, k = 0;

    /* the Hessian of -d: of each value, the product of the weights, slopes and curvatures of the axes */
    memset(&h, 0, sizeof h);
    for (i[2] = 0; i[2] < depth; i[2]++)
        for (i[1] = 0; i[1] < at->width; i[1]++)
            for (i[0] = 0; i[0] < at->width; i[0]++, k++)
                for (a = 0; a < at->dim; a++)
                    for (b = 0; b <= a; b++) {
                        double w = -phi[k] / dx; /* -d'' dx is a number */
                        for (c = 0; c < at->dim; c++)
                            w *= c == a && c == b   ? curve[at->width - 2][i[c]]
                                 : c == a || c == b ? at->slope[c][i[c]] * dx
                                                    : at->weight[c][i[c]];
                        h.m[3 * a + b] += (fsi_real)w;
                    }

    /* its positive part: negative eigenvalues are left out */
    fsi_m3_eigen(h, &value, &v);
    fsi__sh_from(value, part);
    for (a = 0; a < 3; a++) for (b = 0; b < 3; b++)
            for (out[3 * a + b] = 0, c = 0; c < 3; c++)
                if (part[c] > 0) out[3 * a + b] += part[c] / dx * (double)v.m[3 * a + c] * (double)v.m[3 * b + c];
}

/* d past the sides, phi being `value` at their end. */
static double fsi__co_distance_past(double past, const double *away, double value, fsi__co_contact *out)
{
    int k, a;
    if (!(value > 0) && out) {
        memset(out->gradient, 0, sizeof out->gradient);
        memset(out->bend, 0, sizeof out->bend);
        for (k = 0; k < 27; k++) out->weight[k] = 0;
    }
    for (a = 0; a < 3 && out; a++) out->gradient[a] += away[a];
    return value > 0 ? value + past : past;
}

/* d of a sample at x after a fraction `way` of Newton's step. frozen: stencil of the contact; NULL: none. out: gets the
   cells and derivatives of d, unless NULL. Past the sides of the box d is max(phi, 0), constant along the normal, plus
   the distance to them: so d is continuous where a sample comes back into air, and liquid ends at the side. */
static double fsi__co_distance(const fsi__co_impl *c, const fsi_stencil *frozen, const double *x, double way,
                               fsi__co_contact *out)
{
    const int dim = c->liquid->grid->dim;
    double local[3], away[3], phi[27] = { 0 }, value, past;
    long long entry[27];
    fsi_stencil at;
    int k, n;

    /* the stencil, at the outer end of the box's sides where x is past them, and phi at its cells */
    fsi__co_local(c, x, local);
    past = fsi__co_past(c, local, away);
    at = fsi_stencil_at(c->s->desc.metric, dim, local, c->dx, frozen);
    n = fsi__co_entries(c, &at, entry);
    for (k = 0; k < n; k++) {
        phi[k] = fsi__co_phi(c, entry[k], way);
        if (out) out->cell[k] = entry[k] < 0 ? -1 : c->map[entry[k]];
    }

    /* d and its derivatives */
    value = fsi_stencil_value(&at, phi, out ? out->gradient : NULL, out ? out->weight : NULL);
    if (out) {
        memset(out->bend, 0, sizeof out->bend);
        if (value < c->range) fsi__co_bend(&at, phi, c->dx, out->bend);
        if (dim == 2) out->gradient[2] = 0;
        for (; k < 27; k++) {
            out->cell[k] = -1;
            out->weight[k] = 0;
        }
    }
    return past > 0 ? fsi__co_distance_past(past, away, value, out) : value;
}

/* d at x by a field as it stands; gradient: 3 numbers, or NULL. */
static double fsi__co_distance_in(const fsi__co_impl *c, const fsi_field *phi, const double *x, double *gradient)
{
    double local[3], value[27] = { 0 }, d;
    long long entry[27];
    fsi_stencil at;
    int k, n;
    fsi__co_local(c, x, local);
    if (fsi__co_is_out(c, local)) return (double)phi->background;
    at = fsi_stencil_at(c->s->desc.metric, c->liquid->grid->dim, local, c->dx, NULL);
    n = fsi__co_entries(c, &at, entry);
    for (k = 0; k < n; k++) value[k] = (double)(entry[k] < 0 ? phi->background : phi->value[entry[k]]);
    n = c->liquid->grid->dim;
    d = fsi_stencil_value(&at, value, gradient, NULL);
    if (gradient && n == 2) gradient[2] = 0;
    return d;
}

/* Makes a cell an unknown. */
static fsi_status fsi__co_add_cell(fsi__co_impl *c, long long entry, int component, double weight)
{
    fsi__co_cell *p;
    FSI__TRY(fsi__co_more(c, &c->cell, sizeof *c->cell, c->cells, &c->cell_capacity, c->cells + 1));
    p = &c->cell[c->cells];
    memset(p, 0, sizeof *p);
    p->entry = (int)entry;
    p->component = component;
    p->weight = component >= 0 ? weight : 0;
    p->target = (double)c->ls->next_phi->value[entry];
    p->value = c->ever_listed ? p->target : (double)c->start->value[entry]; /* what fsi__co_phi gave so far */
    p->share = fsi__ls_heaviside(p->target / c->dx);
    c->map[entry] = c->cells++;
    return FSI_OK;
}

/* Makes the cells that d at x depends on unknowns. */
static fsi_status fsi__co_add_stencil(fsi__co_impl *c, const double *x)
{
    double local[3], away[3];
    long long entry[27];
    fsi_stencil at;
    int k, n;
    fsi__co_local(c, x, local);
    fsi__co_past(c, local, away);
    at = fsi_stencil_at(c->s->desc.metric, c->liquid->grid->dim, local, c->dx, NULL);
    n = fsi__co_entries(c, &at, entry);
    for (k = 0; k < n; k++) if (entry[k] >= 0 && c->map[entry[k]] < 0)
        FSI__TRY(fsi__co_add_cell(c, entry[k], c->ls->next_label[entry[k]], 1));
    return FSI_OK;
}

/* A sample nearer than this [dx] when a substep begins or its optimisation has ended gets this distance: it came from
   out of the box, or from between cells that LINEAR contacts did not read. */
#define FSI__CO_LEAST 0.01

/* The smallest change of phi that takes liquid away from a contact. */
static void fsi__co_raise(fsi__co_impl *c, const fsi__co_contact *t)
{
    double size = 0;
    int i;
    for (i = 0; i < 27; i++) if (t->cell[i] >= 0) size += t->weight[i] * t->weight[i];
    for (i = 0; i < 27; i++)
        if (t->cell[i] >= 0 && size > 0)
            c->cell[t->cell[i]].value += t->weight[i] * (FSI__CO_LEAST * c->dx - t->d) / size;
}

/* Liquid nearer than this touches the solid: a little more than the barrier's range, so that contacts at rest do not
   switch on and off. */
static double fsi__co_touching(const fsi__co_impl *c) { return c->range + 0.25 * c->dx; }

/* Energy of a contact at distance d. */
static fsi_barrier fsi__co_contact_energy(const fsi__co_impl *c, const fsi__co_sample *s, double d)
{
    const double part = s->range / c->range, scale = c->stiffness * part * part;
    fsi_barrier b = fsi_barrier_at(d, s->range);
    b.value *= scale;
    b.slope *= scale;
    b.curvature *= scale;
    return b;
}

/* Lists the samples that may come within range while nothing moves farther than `slack`. */
static fsi_status fsi__co_list(fsi__co_impl *c, const double *x, double slack)
{
    const double reach = c->range + slack;
    const int first = !c->ever_listed;
    int k, drowned = 0;
    c->contacts = 0;
    for (k = 0; k < c->samples; k++) {
        fsi__co_sample *s = &c->sample[k];
        fsi__co_contact *t;
        fsi_vec3 at;
        double p[3], local[3], away[3], d, past;
        if (first) s->drowned = s->frozen.dim = 0;
        if (s->drowned) continue;

        /* skip samples out of reach: first by linear interpolation, then by the metric */
        fsi__co_place(s, x, p);
        at = fsi__sh_to(p);
        d = fmin((double)fsi_grid_sample_linear(c->start, at), (double)fsi_grid_sample_linear(c->ls->next_phi, at));
        fsi__co_local(c, p, local);
        past = fsi__co_past(c, local, away);
        if (past > reach) continue;
        if ((d > reach + c->dx || past > 0) && fsi__co_distance(c, NULL, p, 0, NULL) > reach) continue;

        /* list the sample as a contact; a LINEAR one keeps this stencil in the substep */
        if (c->s->desc.metric == FSI_METRIC_LINEAR && s->frozen.dim == 0)
            s->frozen = fsi_stencil_at(FSI_METRIC_LINEAR, c->liquid->grid->dim, local, c->dx, NULL);
        FSI__TRY(fsi__co_add_stencil(c, p));
        FSI__TRY(fsi__co_more(c, &c->contact, sizeof *c->contact, c->contacts, &c->contact_capacity, c->contacts + 1));
        t = &c->contact[c->contacts++];
        t->sample = k;
        t->d = fsi__co_distance(c, &s->frozen, p, 0, t);

        /* at the substep's start: raise phi at samples too near; leave out those between vertices that lie deep */
        if (!first || t->d >= FSI__CO_LEAST * c->dx) continue;
        if (t->d > -c->dx) fsi__co_raise(c, t);
        else if (k >= c->sh->vertices) {
            s->drowned = 1;
            drowned++;
            c->contacts--;
        }
    }

    if (drowned > c->stats.drowned) c->stats.drowned = drowned;
    c->listed = c->ever_listed = 1;
    c->slack = slack;
    return FSI_OK;
}

/* ---- >>system ----------------------------------------------------------------------------------------------------

   With D the liquid's inertia, A what the shell's matrix is, and of each contact r = sqrt(beta) (change of d), beta =
   kb b'', the liquid's unknowns and the multipliers lam of the volumes are eliminated exactly (coupling.md 5.6), which
   leaves

      | A   G' | |dx|   | -g_x                           |      W = sqrt(beta) grad_phi d,  G = sqrt(beta) grad_x d,  C
      = W D^-1 (1 - Q) W'
      | G -1-C | |r |   | W D^-1 (g + J'(h - JD^-1 g)/jj) |      J = slope of the volumes,  jj = J D^-1 J' (diagonal),
      Q = J' jj^-1 J D^-1

      lam = (h - J D^-1 (g + W'r)) / jj,      dphi = -D^-1 (g + W'r + J'lam)

   C couples contacts up to three cells apart: a factor of this would cost ten of the shell's. So C is replaced by the
   sums of the rows of |W| D^-1 |W|' on the diagonal, L. r goes then by itself, and A + G'(1 + L)^-1 G has its entries
   where A has them. L - C >= 0: conjugate gradients with this factor, of which r alone are the unknowns, take about
   five steps. A has also what of kb b' d'' (d'' to x) is positive: a light solid in a dent of the liquid would jump
   from side to side without. */

/* out += G'f, for free nodes. */
static void fsi__co_pull(const fsi__co_impl *c, const double *f, double *out)
{
    int k, i, a;
    for (k = 0; k < c->rows; k++) {
        const fsi__co_contact *t = &c->contact[c->row[k]];
        const fsi__co_sample *s = &c->sample[t->sample];
        for (i = 0; i < 3 && s->node[i] >= 0; i++) for (a = 0; a < 3; a++)
                if (!c->sh->fixed[3 * s->node[i] + a])
                    out[3 * (size_t)s->node[i] + (size_t)a] += t->root * s->weight[i] * t->gradient[a] * f[k];
    }
}

/* (G x) of one contact, over its free or its held nodes. */
static double fsi__co_reach(const fsi__co_impl *c, const fsi__co_contact *t, const double *x, int held)
{
    const fsi__co_sample *s = &c->sample[t->sample];
    double sum = 0;
    int i, a;
    for (i = 0; i < 3 && s->node[i] >= 0; i++) for (a = 0; a < 3; a++)
            if (c->sh->fixed[3 * s->node[i] + a] == held)
                sum += s->weight[i] * t->gradient[a] * x[3 * (size_t)s->node[i] + (size_t)a];
    return t->root * sum;
}

/* Contacts within range become rows; the cells that they depend on are listed. */
static fsi_status fsi__co_number(fsi__co_impl *c)
{
    int k, i;
    c->rows = c->touched = 0;
    FSI__TRY(fsi__co_more(c, &c->row, sizeof(int), 0, &c->row_capacity, c->contacts));
    FSI__TRY(fsi__co_more(c, &c->reached, sizeof(int), 0, &c->reached_capacity, c->cells));
    for (i = 0; i < c->cells; i++) c->cell[i].push = -1;
    for (k = 0; k < c->contacts; k++) {
        const fsi__co_contact *t = &c->contact[k];
        if (!(t->root > 0)) continue;
        c->row[c->rows++] = k;
        for (i = 0; i < 27; i++) {
            if (t->cell[i] < 0 || !(c->cell[t->cell[i]].push < 0)) continue;
            c->cell[t->cell[i]].push = 0;
            c->reached[c->touched++] = t->cell[i];
        }
    }
    for (i = 0; i < c->cells; i++) c->cell[i].push = 0;
    FSI__TRY(fsi__co_more(c, &c->krylov, 7 * sizeof(double), 0, &c->krylov_capacity, c->rows));
    FSI__TRY(fsi__co_more(c, &c->way, 6 * sizeof(double), 0, &c->way_capacity, c->sh->matrix->rows));
    return fsi__co_more(c, &c->total_value, 9 * sizeof(double), 0, &c->value_capacity,
        c->sh->matrix->start[c->sh->matrix->rows]);
}

/* Cells: push = W'r. */
static void fsi__co_push_cells(fsi__co_impl *c, const double *r)
{
    int k, i;
    for (i = 0; i < c->touched; i++) c->cell[c->reached[i]].push = 0;
    for (k = 0; k < c->rows; k++) {
        const fsi__co_contact *t = &c->contact[c->row[k]];
        for (i = 0; i < 27; i++) if (t->cell[i] >= 0) c->cell[t->cell[i]].push += t->root * t->weight[i] * r[k];
    }
}

/* jp of each component: J D^-1 push. */
static void fsi__co_sum_push(fsi__co_impl *c)
{
    int i;
    for (i = 0; i < c->parts; i++) c->part[i].jp = 0;
    for (i = 0; i < c->touched; i++) {
        const fsi__co_cell *p = &c->cell[c->reached[i]];
        if (p->component >= 0) c->part[p->component].jp += p->slope * p->push / c->inertia;
    }
}

/* W D^-1 push of one contact. */
static double fsi__co_gather(const fsi__co_impl *c, const fsi__co_contact *t)
{
    double sum = 0;
    int i;
    for (i = 0; i < 27; i++) if (t->cell[i] >= 0) sum += t->weight[i] * c->cell[t->cell[i]].push;
    return t->root * sum / c->inertia;
}

/* out = (L - C) r. */
static void fsi__co_excess(fsi__co_impl *c, const double *lump, const double *r, double *out)
{
    int k, i;
    fsi__co_push_cells(c, r);
    fsi__co_sum_push(c);
    for (i = 0; i < c->touched; i++) {
        fsi__co_cell *p = &c->cell[c->reached[i]];
        if (p->component >= 0 && c->part[p->component].jj > 0)
            p->push -= p->slope * c->part[p->component].jp / c->part[p->component].jj;
    }
    for (k = 0; k < c->rows; k++) out[k] = lump[k] * r[k] - fsi__co_gather(c, &c->contact[c->row[k]]);
}

/* The right side of a contact's row. */
static double fsi__co_right(const fsi__co_impl *c, const fsi__co_contact *t)
{
    double sum = 0;
    int i;
    for (i = 0; i < 27; i++) {
        const fsi__co_cell *p = t->cell[i] >= 0 ? &c->cell[t->cell[i]] : NULL;
        const fsi__co_part *q = p && p->component >= 0 ? &c->part[p->component] : NULL;
        if (p) sum += t->weight[i] * (p->gradient + (q && q->jj > 0 ? p->slope * (q->h - q->jd) / q->jj : 0));
    }
    return t->root * sum / c->inertia - fsi__co_reach(c, t, c->sh->fixed_step, 1);
}

/* L: sums of rows of absolute values, as weights of frozen stencils may be negative. */
static void fsi__co_lump(fsi__co_impl *c, double *lump)
{
    int k, i;
    for (i = 0; i < c->touched; i++) c->cell[c->reached[i]].push = 0;
    for (k = 0; k < c->rows; k++) {
        const fsi__co_contact *t = &c->contact[c->row[k]];
        for (i = 0; i < 27; i++) if (t->cell[i] >= 0) c->cell[t->cell[i]].push += t->root * fabs(t->weight[i]);
    }
    for (k = 0; k < c->rows; k++) {
        const fsi__co_contact *t = &c->contact[c->row[k]];
        for (lump[k] = 0, i = 0; i < 27; i++)
            if (t->cell[i] >= 0) lump[k] += t->root * fabs(t->weight[i]) * c->cell[t->cell[i]].push / c->inertia;
    }
}

/* Fraction of t->bend that the matrix gets: the liquid yields too. */
static double fsi__co_bend_scale(const fsi__co_impl *c, const fsi__co_contact *t)
{
    const double push = -t->pull;
    return push > 0 ? push / (1 + push * (t->bend[0] + t->bend[4] + t->bend[8]) / (4 * c->inertia)) : 0;
}

/* A + G'(1 + L)^-1 G, in c->total_value. */
static void fsi__co_fill(fsi__co_impl *c, const double *lump)
{
    const fsi_csr *m = c->sh->matrix;
    int k, i, j, a, b;
    memcpy(c->total_value, m->value, 9 * (size_t)m->start[m->rows] * sizeof(double));
    for (k = 0; k < c->rows; k++) {
        const fsi__co_contact *t = &c->contact[c->row[k]];
        const fsi__co_sample *s = &c->sample[t->sample];
        const double bend = fsi__co_bend_scale(c, t);
        for (i = 0; i < 3 && s->node[i] >= 0; i++) for (j = 0; j < 3 && s->node[j] >= 0; j++) {
            double *block = c->total_value + 9 * (size_t)fsi__sh_entry(m, s->node[i], s->node[j]);
            const double scale = t->root * t->root * s->weight[i] * s->weight[j] / (1 + lump[k]);
            for (a = 0; a < 3; a++) for (b = 0; b < 3; b++)
                    if (!c->sh->fixed[3 * s->node[i] + a] && !c->sh->fixed[3 * s->node[j] + b])
                        block[3 * a + b] += scale * t->gradient[a] * t->gradient[b] +
                                            bend * s->weight[i] * s->weight[j] * t->bend[3 * a + b];
        }
    }
}

#define FSI__CO_LOOSE 0.1 /* a relative error with which Newton's step still leads downhill */

/* The system with L for C: x and r from right sides `load`, `right`; NULL: 0. Where stiffnesses are so far apart that
   rounding leaves more than was asked, FSI__CO_LOOSE will do: it preconditions. */
static fsi_status fsi__co_precondition(fsi__co_impl *c, const double *lump, const double *load, const double *right,
                                       double *x, double *r)
{
    fsi_csr matrix = *c->sh->matrix;
    fsi_system system = fsi_default_system();
    fsi_status status;
    int k;
    matrix.value = c->total_value;
    system.matrix = &matrix;
    if (load) memcpy(x, load, 3 * (size_t)matrix.rows * sizeof(double));
    else memset(x, 0, 3 * (size_t)matrix.rows * sizeof(double));
    for (k = 0; k < c->rows; k++) r[k] = right[k] / (1 + lump[k]);
    fsi__co_pull(c, r, x);
    status = fsi_solver_solve(c->sh->solver, &system, x, x);
    if (status == FSI_ERROR_CONVERGENCE) {
        system.tolerance = FSI__CO_LOOSE;
        status = fsi_solver_solve(c->sh->solver, &system, x, x);
    }
    if (status != FSI_OK) return status;
    for (k = 0; k < c->rows; k++) r[k] = (fsi__co_reach(c, &c->contact[c->row[k]], x, 0) - right[k]) / (1 + lump[k]);
    return FSI_OK;
}

/* Newton's step x of the solid, and r of the contacts to a relative error of `tolerance`, or of FSI__CO_LOOSE where
   conjugate gradients get no further: the line search and the next step make up for it. The first solve leaves a
   residual in the rows of r alone, as do all that follow: conjugate gradients on the whole system equal those on its
   Schur complement without x, which is definite. */
static fsi_status fsi__co_solve_system(fsi__co_impl *c, double tolerance, double *x, double *r)
{
    const int m = c->rows, n = 3 * c->sh->matrix->rows;
    double *lump = r + m, *residual = lump + m, *way = residual + m, *next = way + m, *pushed = next + m,
           *more = pushed + m, *way_x = c->way, *next_x = way_x + n, rho = 0, size = 0;
    int k, i;

    /* the first solve has L in the place of C, which leaves the residual -(L - C) r */
    memset(r, 0, 7 * (size_t)m * sizeof *r);
    memset(way_x, 0, (size_t)n * sizeof *way_x);
    fsi__co_lump(c, lump);
    fsi__co_fill(c, lump);
    for (i = 0; i < m; i++) residual[i] = fsi__co_right(c, &c->contact[c->row[i]]);
    FSI__TRY(fsi__co_precondition(c, lump, c->sh->right, residual, x, r));
    fsi__co_excess(c, lump, r, more);
    for (i = 0; i < m; i++) residual[i] = -more[i];

    /* conjugate gradients in r, preconditioned by the same solve; x follows */
    for (k = 0; k < 200; k++) {
        const double before = rho;
        double along = 0, beta;
        FSI__TRY(fsi__co_precondition(c, lump, NULL, residual, next_x, next));
        for (rho = size = 0, i = 0; i < m; i++) {
            rho -= residual[i] * next[i];
            size += r[i] * r[i];
        }
        if (!(rho > tolerance * tolerance * size)) return FSI_OK;

        /* the new direction */
        beta = k > 0 ? rho / before : 0;
        for (i = 0; i < n; i++) way_x[i] = next_x[i] + beta * way_x[i];
        for (i = 0; i < m; i++) way[i] = next[i] + beta * way[i];
        for (i = 0; i < m; i++) pushed[i] = residual[i] + beta * pushed[i];

        /* the step along it */
        fsi__co_excess(c, lump, way, more);
        for (i = 0; i < m; i++) along -= way[i] * (pushed[i] + more[i]);
        if (!(along > 0)) break;
        for (i = 0; i < n; i++) x[i] += rho / along * way_x[i];
        for (i = 0; i < m; i++) r[i] += rho / along * way[i];
        for (i = 0; i < m; i++) residual[i] -= rho / along * (pushed[i] + more[i]);
    }
    if (rho <= FSI__CO_LOOSE * FSI__CO_LOOSE * size) return FSI_OK;
    return fsi__fail(c->context, FSI_ERROR_CONVERGENCE, "fsi_couple_step", -1, rho,
                     "the system of %d contacts did not converge", m);
}

/* ---- >>newton ---------------------------------------------------------------------------------------------------- */

/* Energy of the liquid alone after a fraction `way` of Newton's step; h of each component there. */
static double fsi__co_liquid_energy(fsi__co_impl *c, double way)
{
    double sum = 0;
    int i;
    for (i = 0; i < c->parts; i++) c->part[i].h = -c->part[i].missing;
    for (i = 0; i < c->cells; i++) {
        const fsi__co_cell *p = &c->cell[i];
        const double value = p->value + way * p->step, off = value - p->target;
        sum += off * off;
        if (p->component >= 0) c->part[p->component].h += p->weight * (fsi__ls_heaviside(value / c->dx) - p->share);
    }
    return c->inertia / 2 * sum;
}

/* Adds the forces of contacts to the shell's gradient, and computes the liquid's gradient. */
static fsi_status fsi__co_assemble(fsi__co_impl *c)
{
    const fsi__sh_view *m = c->sh;
    int k, i, a;

    /* the liquid by itself */
    if (!c->listed) FSI__TRY(fsi__co_list(c, m->now, 2 * c->dx));
    c->pushed = 0;
    fsi__co_liquid_energy(c, 0);
    for (i = 0; i < c->parts; i++) c->part[i].jj = c->part[i].jd = 0;
    for (i = 0; i < c->cells; i++) {
        fsi__co_cell *p = &c->cell[i];
        const double share = fsi__ls_heaviside(p->value / c->dx);
        p->gradient = c->inertia * (p->value - p->target);
        p->slope = -2 * share * (1 - share) * p->weight / c->dx;
        p->step = 0;
    }

    /* impulses of the projections on the solid, and contacts */
    for (i = 0; i < 3 * m->vertices; i++) m->gradient[i] -= c->given[i] / c->sh->h;
    for (k = 0; k < c->contacts; k++) {
        fsi__co_contact *t = &c->contact[k];
        const fsi__co_sample *s = &c->sample[t->sample];
        fsi_barrier b;
        fsi__co_place(s, m->now, t->x);
        t->d = fsi__co_distance(c, &s->frozen, t->x, 0, t);
        t->root = t->pull = 0;
        if (!(t->d < s->range)) continue;
        if (!(t->d > 0))
            return fsi__fail(c->context, FSI_ERROR_MESH, "fsi_couple_step", t->sample, t->d,
                             "the solid is in the liquid at vertex %d: phi is %g there", s->node[0], t->d);

        /* The barrier's derivatives, to the nodes of the sample and to phi of its cells. */
        b = fsi__co_contact_energy(c, s, t->d);
        t->root = sqrt(b.curvature);
        t->pull = b.slope;
        c->pushed++;
        for (i = 0; i < 3 && s->node[i] >= 0; i++)
            for (a = 0; a < 3; a++)
                m->gradient[3 * (size_t)s->node[i] + (size_t)a] += t->pull * s->weight[i] * t->gradient[a];
        for (i = 0; i < 27; i++) if (t->cell[i] >= 0) c->cell[t->cell[i]].gradient += t->pull * t->weight[i];
    }

    /* volumes of components */
    for (i = 0; i < c->cells; i++) {
        const fsi__co_cell *p = &c->cell[i];
        if (p->component < 0) continue;
        c->part[p->component].jj += p->slope * p->slope / c->inertia;
        c->part[p->component].jd += p->slope * p->gradient / c->inertia;
    }
    return FSI_OK;
}

/* Newton's step of the liquid; r: of the rows. */
static void fsi__co_step_liquid(fsi__co_impl *c, const double *r)
{
    int i;
    fsi__co_push_cells(c, r);
    fsi__co_sum_push(c);
    for (i = 0; i < c->parts; i++) {
        fsi__co_part *p = &c->part[i];
        p->lam = p->jj > 0 ? (p->h - p->jd - p->jp) / p->jj : 0;
        p->mu = fmax(p->mu, 2 * fabs(p->lam));
    }
    for (i = 0; i < c->cells; i++) {
        fsi__co_cell *p = &c->cell[i];
        p->step =
            -(p->gradient + p->push + (p->component >= 0 ? p->slope * c->part[p->component].lam : 0)) / c->inertia;
    }
}

#ifndef FSI__CO_ACCURACY /* tests solve more exactly */
#define FSI__CO_ACCURACY 1e-4 /* of Newton's step: the next one mends more than that */
#endif
static fsi_status fsi__co_solve(fsi__co_impl *c)
{
    fsi_system system = fsi_default_system();
    FSI__TRY(fsi__co_number(c));
    system.matrix = c->sh->matrix;
    system.tolerance = FSI__CO_ACCURACY;
    if (c->rows > 0) FSI__TRY(fsi__co_solve_system(c, system.tolerance, c->sh->direction, c->krylov));
    else FSI__TRY(fsi_solver_solve(c->sh->solver, &system, c->sh->right, c->sh->direction));
    fsi__co_step_liquid(c, c->krylov);
    return FSI_OK;
}

/* Cells for the sweep of a sample: values, and their change along the path swept. */
static void fsi__co_read(void *user, const int base[3], const int count[3], double *phi, double *dphi)
{
    const fsi__co_impl *c = (const fsi__co_impl *)user;
    int i[3], cell[3], a, k = 0;
    for (i[2] = 0; i[2] < count[2]; i[2]++)
        for (i[1] = 0; i[1] < count[1]; i[1]++)
            for (i[0] = 0; i[0] < count[0]; i[0]++, k++) {
                long long e;
                for (a = 0; a < 3; a++) cell[a] = base[a] + i[a];
                e = fsi__co_entry(c, cell);
                phi[k] = fsi__co_phi(c, e, c->swept_from);
                dphi[k] = e >= 0 && c->map[e] >= 0 ? c->swept * c->cell[c->map[e]].step : 0;
            }
}

/* The part within[0] to within[1] of a path (0 to 1) that lies in the box and its sides; returns 0 if none does. */
static int fsi__co_way_within(const fsi__co_impl *c, const double *from, const double *move, double within[2])
{
    int a;
    within[0] = 0;
    within[1] = 1;
    for (a = 0; a < c->liquid->grid->dim; a++) {
        const double lo = -c->dx, hi = (c->liquid->grid->n[a] + 1) * c->dx, to = from[a] + move[a];
        if ((from[a] < lo && to < lo) || (from[a] > hi && to > hi)) return 0;
        if (from[a] < lo) within[0] = fmax(within[0], (lo - from[a]) / move[a]);
        if (from[a] > hi) within[0] = fmax(within[0], (hi - from[a]) / move[a]);
        if (to < lo) within[1] = fmin(within[1], (lo - from[a]) / move[a]);
        if (to > hi) within[1] = fmin(within[1], (hi - from[a]) / move[a]);
    }
    return within[0] < within[1];
}

/* The fraction, at most t, of Newton's step that a sample moving by `move` from x can go without meeting liquid. Past
   the sides there is none; a sample that would come back into liquid stops before them. */
static double fsi__co_sweep(fsi__co_impl *c, const fsi__co_sample *sample, const double *x, double *move, double t)
{
    double within[2], start[3], s;
    fsi_field_reader reader;
    int a;
    fsi__co_local(c, x, start);
    if (!fsi__co_way_within(c, start, move, within) || !(within[0] < t)) return t;
    for (a = 0; a < 3; a++) start[a] = x[a] + within[0] * move[a];
    if (within[0] > 0 && fsi__co_distance(c, &sample->frozen, start, within[0], NULL) < FSI__CO_LEAST * c->dx)
        return 0.9 * within[0];
    fsi__co_local(c, start, start);
    c->swept_from = within[0];
    c->swept = fmin(t, within[1]) - within[0]; /* beyond the step that other samples allow there is nothing to sweep */
    for (a = 0; a < 3; a++) move[a] *= c->swept;
    reader.user = c;
    reader.read = fsi__co_read;
    s = fsi_stencil_ccd(c->s->desc.metric, c->liquid->grid->dim, c->dx, start, move, &reader, &sample->frozen, 0.1);
    return s < 1 ? within[0] + s * c->swept : t;
}

/* Shortens the fraction t of Newton's step so that no sample meets liquid. */
static fsi_status fsi__co_filter(fsi__co_impl *c, double *t)
{
    const fsi__sh_view *m = c->sh;
    double most = 0, way = 0;
    int k, i;
    for (i = 0; i < c->cells; i++) most = fmax(most, fabs(c->cell[i].step));
    for (i = 0; i < m->vertices; i++) way = fmax(way, fsi__sh_apart(m->trial + 3 * i, m->now + 3 * i));
    if (2 * way + most > c->slack) FSI__TRY(fsi__co_list(c, m->now, 2 * (2 * way + most)));
    c->slack -= 2 * way + most;
    for (k = 0; k < c->contacts; k++) {
        const fsi__co_sample *sample = &c->sample[c->contact[k].sample];
        double x[3], move[3], reach;
        fsi__co_place(sample, m->now, x);
        fsi__co_place(sample, m->trial, move);
        fsi__sh_sub(move, x, move);
        reach = *t * (most + 2 * sqrt(fsi__sh_dot(move, move))) + 0.1 * c->dx;
        if (fsi__co_distance(c, &sample->frozen, x, 0, NULL) <= reach) *t = fsi__co_sweep(c, sample, x, move, *t);
    }
    return FSI_OK;
}

/* Energy of the liquid and its contacts after a fraction t of the liquid's Newton step, vertices at x. */
static double fsi__co_energy(fsi__co_impl *c, const double *x, double t)
{
    double sum = fsi__co_liquid_energy(c, t), p[3];
    int k;
    for (k = 0; k < c->parts; k++) sum += c->part[k].mu * fabs(c->part[k].h);
    for (k = 0; k < 3 * c->sh->vertices; k++) sum -= c->given[k] / c->sh->h * (x[k] - c->sh->start[k]);
    for (k = 0; k < c->contacts; k++) {
        const fsi__co_sample *s = &c->sample[c->contact[k].sample];
        fsi__co_place(s, x, p);
        sum += fsi__co_contact_energy(c, s, fsi__co_distance(c, &s->frozen, p, t, NULL)).value;
    }
    return sum;
}

/* Its slope along Newton's step of the liquid. h of the components is that of `now` still, from fsi__co_assemble. */
static double fsi__co_slope(const fsi__co_impl *c)
{
    double sum = 0;
    int i;
    for (i = 0; i < c->cells; i++) sum += c->cell[i].gradient * c->cell[i].step;
    for (i = 0; i < c->parts; i++) sum -= c->part[i].mu * fabs(c->part[i].h);
    return sum;
}

static void fsi__co_accept(fsi__co_impl *c, double t)
{
    int i;
    for (i = 0; i < c->cells; i++) c->cell[i].value += t * c->cell[i].step;
}

/* Convergence: the next step is estimated as this one times its ratio to the last. A shell without contacts converges
   as it would alone. */
static int fsi__co_is_done(fsi__co_impl *c)
{
    const double enough = (double)c->s->desc.tolerance * c->dx, own = c->sh->short_step,
        shell = fsi__sh_next_step(c->step);
    double next;
    int i;
    c->moved = 0;
    for (i = 0; i < c->cells; i++)
        if (fabs(c->cell[i].value) < 2 * c->dx) c->moved = fmax(c->moved, fabs(c->cell[i].step));
    next = c->moved_before > c->moved ? c->moved * c->moved / c->moved_before : c->moved;
    c->moved_before = c->moved;
    return next <= enough && shell <= (c->rows > 0 ? fmax(enough, own) : own);
}

/* Newton's step of liquid and solid. */
static fsi_status fsi__co_direct(fsi__co_impl *c)
{
    int again = FSI__SH_ASSEMBLE;
    while (again != FSI__SH_SOLVED) {
        if (again == FSI__SH_ASSEMBLE) {
            FSI__TRY(fsi__sh_assemble(c->step));
            FSI__CO_LOOK(c, FSI__CO_ASSEMBLES, NULL);
            FSI__TRY(fsi__co_assemble(c));
            FSI__CO_LOOK(c, FSI__CO_ASSEMBLED, NULL);
        }
        FSI__TRY(fsi__sh_constrain(c->step));
        FSI__TRY(fsi__sh_retreat(c->step, fsi__co_solve(c), &again));
        if (again == FSI__SH_SOLVED) FSI__CO_LOOK(c, FSI__CO_SOLVED, NULL);
    }
    return FSI_OK;
}

/* The line search: both move by a fraction of at most *t of Newton's step, returned in *t; 0: none. */
static fsi_status fsi__co_search(fsi__co_impl *c, double *t)
{
    const double slope = fsi__co_slope(c);
    const int done = fsi__co_is_done(c);
    int is;
    fsi__sh_search(c->step, done, slope, fsi__co_energy(c, c->sh->now, 0));
    for (;;) {
        FSI__TRY(fsi__sh_try(c->step, t, &is));
        if (!is) break;
        fsi__sh_judge(c->step, t, fsi__co_energy(c, c->sh->trial, *t));
    }
    if (*t > 0) fsi__co_accept(c, *t);
    return FSI_OK;
}

/* Newton's method for liquid and solid, from where the substep begins. */
static fsi_status fsi__co_newton(fsi__co_impl *c)
{
    double t;
    int lag;
    for (lag = 0; lag < c->shell->desc.friction_iterations; lag++) {
        FSI__TRY(fsi__sh_lag(c->step, lag));
        while (fsi__sh_iterates(c->step)) {
            FSI__TRY(fsi__sh_collide(c->step));
            FSI__TRY(fsi__co_direct(c));
            FSI__TRY(fsi__sh_filter(c->step, &t));
            FSI__TRY(fsi__co_filter(c, &t));
            FSI__TRY(fsi__sh_filter_arcs(c->step, &t));
            FSI__TRY(fsi__co_search(c, &t));
            FSI__TRY(fsi__sh_advance(c->step, t));
        }
    }
    return FSI_OK;
}

/* Corrects the volume errors left by Newton's method: components swell or shrink away from contacts. */
static void fsi__co_repair(fsi__co_impl *c)
{
    int round, i, k, left = 1;

    /* gradient: 1 in cells that may change, 0 near contacts */
    for (i = 0; i < c->cells; i++) c->cell[i].gradient = c->cell[i].component >= 0 ? 1 : 0; /* may move */
    for (k = 0; k < c->contacts; k++)
        for (i = 0; i < 27 && c->contact[k].d < 1.5 * c->range; i++)
            if (c->contact[k].cell[i] >= 0) c->cell[c->contact[k].cell[i]].gradient = 0;

    /* Newton's method on h alone: dphi = -J' h / jj */
    for (round = 0; round < 10 && left; round++) {
        left = 0;
        fsi__co_liquid_energy(c, 0);
        for (k = 0; k < c->parts; k++) c->part[k].jj = 0;
        for (i = 0; i < c->cells; i++) {
            fsi__co_cell *p = &c->cell[i];
            const double share = fsi__ls_heaviside(p->value / c->dx);
            p->slope = p->gradient > 0 ? -2 * share * (1 - share) * p->weight / c->dx : 0;
            if (p->component >= 0) c->part[p->component].jj += p->slope * p->slope;
        }

        /* multipliers of the components that are out of tolerance */
        for (k = 0; k < c->parts; k++) {
            fsi__co_part *p = &c->part[k];
            p->lam = p->jj * c->dx * c->dx > 1 && fabs(p->h) > c->liquid->desc.volume_tolerance * p->volume
                         ? p->h / p->jj
                         : 0;
            left |= p->lam < 0 || p->lam > 0;
        }
        for (i = 0; i < c->cells; i++)
            if (c->cell[i].component >= 0) c->cell[i].value -= c->cell[i].slope * c->part[c->cell[i].component].lam;
    }
    fsi__co_liquid_energy(c, 0);
}

/* ---- >>velocities ------------------------------------------------------------------------------------------------

   Faces of liquid at the solid move with it, u = W v, W the mean of the nearest samples. MOMENTUM: in each projection
   of a substep v is solved for together with the pressure. A being the solid's inertia with its stiffness, A = h^2
   `total`, M the liquid's mass at each face, S what surface tension does there and j the impulses of the pressure on
   them (docs/couple.md 3),

      (A + W' M W) v = r + W' (M u* + S + j)
         before positions are sought   r = -h (the shell's own forces' gradient at the start) + given
         after                         r = A v1 - h (their gradient at x) + given,   v1: where positions went
      given += W' (j + S + M (u* - W v)),   which positions are sought with as a force, given / h

   At x the gradient is given / h and what contacts gave, or as far off as Newton's method left it: so contacts' push is
   taken back. Sums of rows of W are 1, of the stiffness 0: momentum is conserved.

   The shell's COUPLED bodies are nodes of A. One that is an obstacle of the liquid too has its faces in W, u = n.v + (r
   x n).w, without mass: liquid, shell and body are one system. Its impulses give its velocity and spin, the
   start of the next search for positions. */

/* A contact near a face, so far from its middle, and how the face meets it: not; as the rim of a film that it pins;
   with the solid beside it; with the solid at an angle to it; with the solid ahead of it. */
enum { FSI__CO_NOT, FSI__CO_RIM, FSI__CO_BY, FSI__CO_ASKEW, FSI__CO_ONTO };
typedef struct fsi__co_touch { int axis, entry, contact, meets; double away, weight; } fsi__co_touch;
typedef struct fsi__co_share { int node; double weight; } fsi__co_share;   /* an entry of W */
typedef struct fsi__co_face {
    int axis, entry, label;       /* label: of its liquid */
    int first, end;               /* shares first .. end - 1 */
    int touch, touch_end;         /* its touches */
    double mass, before, hold;    /* mass of liquid at the face; u*; adhesion of the solid there */
    double skin;                  /* capillary pressure at the surface there [Pa] */
    double pin;                   /* pressure that holds a rim where it is, either way [Pa]; 0: no rim */
    double push;                  /* M (u* - base), and S where the projection has tension [N s] */
    double base, along[3];        /* u = base + along . (mean of v): AXIS: 0 and the axis; slip: u*_a - n_a n.u* and n_a
                                     n */
    int body;                     /* of the shell, whose face it is, in both; -1: a face that moves with the shell */
    double turn[3], covered;      /* body: r x n, the factor of its spin; fraction of the face that it covers */
} fsi__co_face;

/* Columns of the faces that the pressure solver reads: one block, as its lists are. */
typedef struct fsi__co_columns { int *entry; fsi_real *solid, *velocity, *yielding; double *impulse; } fsi__co_columns;

/* Direction of the face's normal in the three unknowns of a share: a velocity, or of a body's second share its spin. */
static const double *fsi__co_along(const fsi__co_face *f, int share)
{
    return f->body >= 0 && share > f->first ? f->turn : f->along;
}

static int fsi__co_compare_faces(const void *a, const void *b)
{
    const fsi__co_face *p = (const fsi__co_face *)a, *q = (const fsi__co_face *)b;
    if (p->axis != q->axis) return p->axis < q->axis ? -1 : 1;
    if (p->body != q->body) return p->body < q->body ? -1 : 1;
    return p->entry < q->entry ? -1 : p->entry > q->entry;
}

static int fsi__co_compare_touches(const void *a, const void *b)
{
    const fsi__co_touch *p = (const fsi__co_touch *)a, *q = (const fsi__co_touch *)b;
    if (p->axis != q->axis) return p->axis < q->axis ? -1 : 1;
    if (p->entry != q->entry) return p->entry < q->entry ? -1 : 1;
    return p->contact < q->contact ? -1 : p->contact > q->contact;
}

/* The entry below a face along its axis. */
static long long fsi__co_below(const fsi_grid *g, int entry, int axis)
{
    const int in = entry % g->block_cells;
    int corner[3];
    fsi_grid_corner(g, entry / g->block_cells, corner);
    return fsi_grid_entry(g, corner[0] + (in & 7) - (axis == 0), corner[1] + (in >> 3 & 7) - (axis == 1),
                          corner[2] + (in >> 6) - (axis == 2));
}

/* Faces look at a contact whose normal along their axis is more than FACING: others would be walls to liquid that moves
   past it. Those closer than BESIDE [dx] move with it anyway: left open, liquid at rest would stream through them into
   the air around an edge of the solid. */
#define FSI__CO_FACING 0.05
#define FSI__CO_BESIDE 1.2

/* The direction from the liquid to the solid; 0: liquid is on both sides, and phi has a ridge between them. */
static void fsi__co_direct_contact(fsi__co_contact *t)
{
    const double size = sqrt(fsi__sh_dot(t->gradient, t->gradient));
    int a;
    for (a = 0; a < 3; a++) t->normal[a] = size > 0.7 ? t->gradient[a] / size : 0;
}

/* Faces from whose axis the contact's normal deviates by less than 14 degrees count as far as the contact's distance
   goes. On a solid parallel to the grid all lie in one plane: beyond a fixed reach all would be left out at once, and
   what rests on them would fall. */
#define FSI__CO_PARALLEL 0.97

/* A face that has the solid ahead of it, within 45 degrees, moves with it. Others belong to a step of a surface along
   an inclined solid, or to the rim of a film. The rim must be free to move: as a wall it turns the flow that comes to
   it upwards, and liquid never rests. At a step the air beside the face is a gap, with liquid on its other side; at a
   rim it is not. Only creeping liquid has rims: an impact must meet the solid at every face.

   The rim of a film of a cell or two is pinned to the solid: it moves with it while that takes a pressure of no more
   than FSI__CO_PINNED gamma/dx beyond that of its surface, and is free else. So does the line in which a real puddle
   ends: its contact angle is anything between a receding and an advancing one, which hold a force of gamma (cos
   receding - cos advancing) a length. The grid needs it too: surfaces have curvatures up to 1/dx on it, and that of a
   rim which is not resolved is off by a good part of that, another one in each place. Rims went to and fro for ever
   between places in which each was in balance. */
#define FSI__CO_AHEAD 0.7       /* the normal's component along the face's axis */
#define FSI__CO_SLOPING 0.2     /* the normal's component along an axis on which a gap has liquid */
#define FSI__CO_PINNED 0.5

/* Reynolds number |u| dx / nu of a cell up to which viscosity governs the flow, and from the double of which on not. */
#define FSI__CO_CREEPING 5

static int fsi__co_may_creep(const fsi__co_impl *c)
{
    return c->liquid->desc.viscosity > 0 && c->liquid->desc.surface_tension > 0;
}

/* 1 where a cell's liquid creeps; 0 where its inertia counts, and without surface tension, which holds a film together:
   others spread on until they are thinner than a cell. */
static double fsi__co_creeps(const fsi__co_impl *c, int cell)
{
    const double mu = (double)c->liquid->desc.viscosity;
    double u[3];
    if (!fsi__co_may_creep(c)) return 0;
    fsi__sh_from(
        fsi_grid_sample_velocity(c->ls->trial_u, fsi__ls_entry_position(c->liquid->grid, FSI_CELLS, cell)), u);
    return fmax(0, fmin(1, 2 - sqrt(fsi__sh_dot(u, u)) * c->dx * c->density / (mu * FSI__CO_CREEPING)));
}

/* Is liquid on the side of this cell of air that is away from the solid, across another axis? normal: to the solid. */
static int fsi__co_is_gap(const fsi_grid *g, const unsigned char *cell, const int *air, int axis, const double *normal)
{
    int b;
    for (b = 0; b < g->dim; b++) {
        int i[3];
        long long e;
        if (b == axis || fabs(normal[b]) < FSI__CO_SLOPING) continue;
        memcpy(i, air, sizeof i);
        i[b] -= normal[b] > 0 ? 1 : -1;
        e = fsi_grid_entry(g, i[0], i[1], i[2]);
        if (e >= 0 && cell[e] == FSI_CELL_LIQUID) return 1;
    }
    return 0;
}

/* Is the solid parallel to the grid? On others the steps of a film's surface would be pinned as its rim is. */
static int fsi__co_is_level(const double *normal)
{
    return fmax(fabs(normal[0]), fmax(fabs(normal[1]), fabs(normal[2]))) > FSI__CO_PARALLEL;
}

/* Faces that only creeping liquid has: of a rim's second cell; ahead, a quarter of a cell past the others. Where the
   surface that rests on the solid rises through the centre of a cell, that cell turns to air, and the face above it is
   just as far away as it may be: it was left out by a digit of rounding, and for a substep the liquid fell. */
enum { FSI__CO_HIGH = 1, FSI__CO_DEEP = 2 };
#define FSI__CO_SPARE 0.25

/* Does a contact act on the face between cell i, with entry e, and the one below it? away2: square of the distance from
   the contact to the face [dx^2]; beyond: one of the above, else 0. */
static int fsi__co_meets(const fsi__co_impl *c, const unsigned char *cell, const fsi__co_contact *contact, int axis,
    const int *i, long long e, long long below, double away2, int beyond)
{
    const double *normal = contact->normal;
    const int up = cell[e] == FSI_CELL_LIQUID, wet = (int)(up ? e : below);
    const double ahead = up ? -normal[axis] : normal[axis];
    const int is_ridge = !(fsi__sh_dot(normal, normal) > 0), is_by = !is_ridge && ahead < FSI__CO_FACING,
              is_onto = !is_ridge && ahead >= FSI__CO_AHEAD,
              past = beyond || (away2 > FSI__CO_BESIDE * FSI__CO_BESIDE && is_by),
              meets = is_onto ? FSI__CO_ONTO : is_by ? FSI__CO_BY : FSI__CO_ASKEW;
    int air[3];
    if (is_ridge || is_onto)
        return !beyond || (beyond == FSI__CO_DEEP && fsi__co_creeps(c, wet) > 0) ? meets : FSI__CO_NOT;
    if (fsi__co_adhesion(c, &c->sample[contact->sample]) > 0 || !(fsi__co_creeps(c, wet) > 0))
        return past ? FSI__CO_NOT : meets;
    memcpy(air, i, sizeof air);
    air[axis] -= up;
    if (fsi__co_is_gap(c->liquid->grid, cell, air, axis, normal)) return past ? FSI__CO_NOT : meets;
    return fabs(ahead) < FSI__CO_AHEAD && fsi__co_is_level(normal) && !fsi__ls_is_resolved(c->run, wet)
        ? FSI__CO_RIM : FSI__CO_NOT;
}

/* Lists the faces between liquid and air that a contact acts on: along every axis within half a cell of its range,
   along their own as far as said above, and facing it. By PAPER the barrier alone pushes the solid, so liquid must come
   within its range. */
static fsi_status fsi__co_find_faces(fsi__co_impl *c, const unsigned char *cell, int contact)
{
    const fsi_grid *g = c->liquid->grid;
    /* the adhesion of a wetting solid reaches farther than the barrier */
    const int wets = fsi__co_adhesion(c, &c->sample[c->contact[contact].sample]) > 0;
    const double half = (wets ? fsi__co_touching(c) : c->range) + c->dx / 2, *x = c->contact[contact].x,
                 *normal = c->contact[contact].normal,
                 along = c->s->desc.correction == FSI_COUPLE_MOMENTUM ? c->contact[contact].d + c->dx / 2 : 0,
                 creeping = !wets && fsi__co_may_creep(c) ? c->dx : 0;
    double local[3];
    int axis, a, i[3], lo[3] = { 0, 0, 0 }, hi[3] = { 0, 0, 0 };
    fsi__co_local(c, x, local);

    /* Across each axis, faces whose middles are near the contact along every axis. */
    for (axis = 0; axis < g->dim; axis++) {
        for (a = 0; a < g->dim; a++) {
            const double shift = a == axis ? 0 : 0.5,
                         reach = a == axis && fabs(normal[a]) > FSI__CO_PARALLEL
                             ? fmax(half, along + (along > 0 ? FSI__CO_SPARE * creeping : 0))
                             : half + (a != axis && fabs(normal[a]) > FSI__CO_AHEAD ? creeping : 0);
            lo[a] = (int)ceil((local[a] - reach) / c->dx - shift);
            hi[a] = (int)floor((local[a] + reach) / c->dx - shift);
            if (lo[a] < (a == axis ? 1 : 0)) lo[a] = a == axis ? 1 : 0;
            if (hi[a] > g->n[a] - 1) hi[a] = g->n[a] - 1;
        }

        /* Of these, faces of the liquid's surface: one side is liquid, the other air. */
        for (i[2] = lo[2]; i[2] <= hi[2]; i[2]++)
            for (i[1] = lo[1]; i[1] <= hi[1]; i[1]++)
                for (i[0] = lo[0]; i[0] <= hi[0]; i[0]++) {
                    double away = 0;
                    int beyond = 0, meets;
                    const long long e = fsi_grid_entry(g, i[0], i[1], i[2]),
                                    below =
                                        fsi_grid_entry(g, i[0] - (axis == 0), i[1] - (axis == 1), i[2] - (axis == 2));
                    if (e < 0 || below < 0 || (cell[e] == FSI_CELL_LIQUID) == (cell[below] == FSI_CELL_LIQUID))
                        continue;
                    if (cell[e] == FSI_CELL_SOLID || cell[below] == FSI_CELL_SOLID) continue;

                    /* Keep those that it acts on, with their distance in cells. */
                    for (a = 0; a < g->dim; a++) {
                        const double off = local[a] / c->dx - i[a] - (a == axis ? 0 : 0.5);
                        away += off * off;
                        if (creeping > 0 && fabs(off) * c->dx > (a == axis ? fmax(half, along) : half))
                            beyond |= a == axis ? FSI__CO_DEEP : FSI__CO_HIGH;
                    }
                    meets = fsi__co_meets(c, cell, &c->contact[contact], axis, i, e, below, away, beyond);
                    if (meets == FSI__CO_NOT) continue;
                    FSI__TRY(
                        fsi__co_more(c, &c->touch, sizeof *c->touch, c->touches, &c->touch_capacity, c->touches + 1));
                    c->touch[c->touches].axis = axis;
                    c->touch[c->touches].entry = (int)e;
                    c->touch[c->touches].meets = meets;
                    c->touch[c->touches].away = sqrt(away);
                    c->touch[c->touches++].contact = contact;
                }
    }
    return FSI_OK;
}

/* Wet fraction of the segment from the centre of a wet cell to that of a dry one. */
static double fsi__co_wet_share(double wet, double dry) { return fmax(0.1, wet / (wet - dry)); }

/* Mass of liquid at a face, and what surface tension does at the surface there. */
static void fsi__co_fill_face(const fsi__co_impl *c, const fsi_field *phi, fsi__co_face *f)
{
    const fsi_levelset_desc *d = &c->liquid->desc;
    const long long below = fsi__co_below(c->liquid->grid, f->entry, f->axis);
    const double upper = (double)phi->value[f->entry], lower = (double)phi->value[below], wet = fmin(upper, lower);
    fsi_pressure_flow skin;
    f->mass = c->density * c->volume * fsi__co_wet_share(wet, fmax(upper, lower));
    f->skin = 0;
    if (!(d->surface_tension > 0) || d->tension != FSI_LEVELSET_TENSION_JUMP) return;
    skin.surface_pressure = c->ls->curvature;
    skin.surface_weight = c->ls->trust;
    f->skin = fsi__pressure_of_surface(&skin, below, f->entry, lower / (lower - upper));
}

/* Something is to be given, or positions were pushed, which is to be taken back. */
static int fsi__co_exchanges(const fsi__co_impl *c)
{
    return (c->faces > 0 || (c->ended && c->pushed > 0)) && c->s->desc.correction == FSI_COUPLE_MOMENTUM;
}

/* Mass of liquid at the faces of a component along each axis: all of them, and those that move with the solid [kg]. */
typedef struct fsi__co_mass { double whole[3], solid[3]; int cut; } fsi__co_mass;

/* Adds what a cell of liquid sees of the faces on one of its sides. */
static void fsi__co_weigh_side(const fsi__co_impl *c, const fsi_pressure_flow *flow, int e, int side, fsi__co_mass *h)
{
    const double cell = c->density * c->volume;
    long long at;
    if (!fsi__ls_neighbor(c->run, e, side, &at) || flow->cell[at] == FSI_CELL_SOLID
        || flow->cell[at] == FSI_CELL_LIQUID) h->whole[side >> 1] += cell / 2;
    else h->whole[side >> 1] += cell * fsi__co_wet_share((double)flow->phi->value[e], (double)flow->phi->value[at]);
}

/* A face counts its whole cell as liquid where the cell's centre is: a sheet one or two cells thick, with a rim, would
   weigh 2 to 7 % too much on its support. So faces that move with the solid get, along each axis, the mass of their
   component less that of its other faces. Components at an obstacle keep their masses: obstacles cut faces. */
static fsi_status fsi__co_balance_masses(fsi__co_impl *c, const fsi_pressure_flow *flow)
{
    const fsi__ls_view *m = c->ls;
    const fsi_field *psi = m->psi;
    const int entries = c->liquid->grid->block_count * c->liquid->grid->block_cells, parts = m->parts;
    int e, k, side;
    FSI__TRY(fsi__co_more(c, &c->mass, sizeof *c->mass, 0, &c->mass_capacity, parts + 1));
    memset(c->mass, 0, ((size_t)parts + 1) * sizeof *c->mass);
    for (e = 0; e < entries; e++) {
        const int label = m->trial_label[e];
        if (flow->cell[e] != FSI_CELL_LIQUID || label < 0 || label >= parts) continue;
        for (side = 0; side < 2 * c->liquid->grid->dim; side++) fsi__co_weigh_side(c, flow, e, side, &c->mass[label]);
        c->mass[label].cut |= psi && (double)psi->value[e] < c->dx;
    }
    for (k = 0; k < c->faces; k++)
        if (c->face[k].label >= 0) c->mass[c->face[k].label].solid[c->face[k].axis] += c->face[k].mass;
    for (k = 0; k < c->faces; k++) {
        fsi__co_face *f = &c->face[k];
        const fsi__co_mass *h = &c->mass[f->label < 0 ? 0 : f->label];
        const double own = h->solid[f->axis], rest = h->whole[f->axis] - own;
        if (f->label >= 0 && !h->cut) f->mass *= fmax(0.5, fmin(1.5, (c->density * m->target[f->label] - rest) / own));
    }
    return FSI_OK;
}

/* How a face meets its contacts, at most: in a corner, the wall ahead of it takes its pressure, not the floor beside
   it, and a rim that has a wall is not pinned. */
static int fsi__co_meets_most(const fsi__co_impl *c, int k, int end)
{
    int most = FSI__CO_NOT;
    for (; k < end; k++) if (c->touch[k].meets > most) most = c->touch[k].meets;
    return most;
}

/* Weights of the contacts of one face: by area, and 0 for those more than half a cell farther away than the closest
   one, or which it meets less than others. */
static void fsi__co_weigh_touches(fsi__co_impl *c, int k, int end)
{
    const int most = fsi__co_meets_most(c, k, end), least = most > FSI__CO_BY ? most - 1 : most;
    double nearest = HUGE_VAL, sum = 0;
    int j;
    for (j = k; j < end; j++) if (c->touch[j].meets >= least) nearest = fmin(nearest, c->touch[j].away);
    for (j = k; j < end; j++) {
        const double share = c->touch[j].meets < least ? 0 : fmax(0, 1 - 2 * (c->touch[j].away - nearest));
        sum += c->touch[j].weight = share * share * c->sample[c->contact[c->touch[j].contact].sample].area;
    }
    for (j = k; j < end; j++) c->touch[j].weight /= sum;
}

/* A row of W, from the touches k .. end - 1 of one face: weights of nodes, each once. */
static fsi_status fsi__co_weigh_face(fsi__co_impl *c, fsi__co_face *f, int k, int end)
{
    int j, i, n;
    f->first = c->shares;
    f->hold = 0;
    for (j = k; j < end; j++) {
        const fsi__co_sample *s = &c->sample[c->contact[c->touch[j].contact].sample];
        if (!(c->touch[j].weight > 0)) continue;
        f->hold += c->touch[j].weight * fsi__co_adhesion(c, s);
        for (i = 0; i < 3 && s->node[i] >= 0; i++) {
            for (n = f->first; n < c->shares && c->share[n].node != s->node[i]; n++) { }
            if (n == c->shares) {
                FSI__TRY(fsi__co_more(c, &c->share, sizeof *c->share, c->shares, &c->share_capacity, c->shares + 1));
                c->share[c->shares].node = s->node[i];
                c->share[c->shares++].weight = 0;
            }
            c->share[n].weight += c->touch[j].weight * s->weight[i];
        }
    }
    f->end = c->shares;
    return FSI_OK;
}

/* The map from the solid's velocity to that of a face; its touches are k .. end - 1. */
static void fsi__co_direct_face(const fsi__co_impl *c, const fsi_pressure_flow *flow, fsi__co_face *f, int k, int end)
{
    double n[3] = { 0, 0, 0 }, v[3], size;
    long long liquid;
    int j, a;
    f->base = 0;
    for (a = 0; a < 3; a++) f->along[a] = a == f->axis;
    if (!c->s->desc.slip) return;
    for (j = k; j < end; j++) {
        const fsi__co_contact *t = &c->contact[c->touch[j].contact];
        for (a = 0; a < 3; a++) n[a] += c->touch[j].weight * t->normal[a];
    }
    size = sqrt(fsi__sh_dot(n, n));
    if (!(size > 0)) return;
    liquid = flow->cell[f->entry] == FSI_CELL_LIQUID ? (long long)f->entry
                                                     : fsi__co_below(c->liquid->grid, f->entry, f->axis);
    /* in air u* is but continued */
    fsi__sh_from(fsi_grid_sample_velocity(flow->u, fsi__ls_entry_position(c->liquid->grid, FSI_CELLS, (int)liquid)), v);
    v[f->axis] = f->before;
    for (a = 0; a < 3; a++) f->along[a] = n[f->axis] * n[a] / (size * size);
    f->base = f->before - fsi__sh_dot(f->along, v);
}

/* The shell's COUPLED body that this obstacle of the liquid is fixed to as well; -1: none. */
static int fsi__co_shared_body(const fsi__co_impl *c, int solid)
{
    const fsi_body *body = fsi__ls_solid_of(c->liquid, solid).body;
    int b;
    for (b = 0; b < c->sh->bodies; b++) if (body == c->sh->body[b].body) return b;
    return -1;
}

/* Velocity by which the owner has moved a body since the last step. The body does not have it, but its displacement in
   contacts includes it. */
static void fsi__co_body_drift(const fsi__co_impl *c, const fsi__sh_body *b, double *drift)
{
    int a;
    fsi__sh_from(fsi_quat_rotation_vector(fsi_quat_mul(b->owner_turn, fsi_quat_conj(b->turn))), drift + 3);
    for (a = 0; a < 3; a++) {
        drift[a] = (b->owner_center[a] - b->center[a]) / c->sh->h;
        drift[3 + a] /= c->sh->h;
    }
}

/* A face of an obstacle that is on a body of the shell. */
static fsi_status fsi__co_add_body_face(fsi__co_impl *c, const fsi__ls_solid *o, int face, int axis, int body)
{
    const int node[2] = { c->sh->first_body + 2 * body, c->sh->first_body + 2 * body + 1 };
    fsi__co_face *f;
    double x[3], center[3], drift[6];
    int i;
    FSI__TRY(fsi__co_more(c, &c->face, sizeof *c->face, c->faces, &c->face_capacity, c->faces + 1));
    FSI__TRY(fsi__co_more(c, &c->share, sizeof *c->share, c->shares, &c->share_capacity, c->shares + 2));

    /* A face that the body covers, u = n.v + (r x n).w. */
    f = &c->face[c->faces++];
    memset(f, 0, sizeof *f);
    f->axis = axis;
    f->entry = o->faces->entry[face];
    f->label = -1;
    f->body = body;
    f->covered = (double)o->faces->solid[face];
    f->along[axis] = 1;
    fsi__sh_from(fsi__ls_entry_position(c->liquid->grid, (fsi_grid_place)((int)FSI_FACES_X + axis), f->entry), x);
    fsi__sh_from(o->center, center);
    fsi__sh_sub(x, center, x);
    fsi__sh_cross(x, f->along, f->turn);

    /* Its entries of W; what the solve starts from. */
    f->first = c->shares;
    for (i = 0; i < 2; i++) {
        c->share[c->shares].node = node[i];
        c->share[c->shares++].weight = 1;
    }
    f->end = c->shares;
    if (c->ended) return FSI_OK;
    fsi__co_body_drift(c, &c->sh->body[body], drift);
    f->base = -fsi__sh_dot(f->along, drift) - fsi__sh_dot(f->turn, drift + 3);
    return FSI_OK;
}

/* Faces beside liquid of the bodies that are COUPLED in both: the shell's matrix answers for them. */
static fsi_status fsi__co_collect_bodies(fsi__co_impl *c, const fsi_pressure_flow *flow)
{
    const int before = c->faces;
    int k, a, f;
    for (k = 0; k < fsi__ls_solids(c->liquid) && c->sh->bodies > 0; k++) {
        const fsi__ls_solid o = fsi__ls_solid_of(c->liquid, k);
        const int body = fsi__co_shared_body(c, k), *first = o.faces->first;
        for (a = 0; a < c->liquid->grid->dim && body >= 0; a++) for (f = first[a]; f < first[a + 1]; f++) {
            const int e = o.faces->entry[f];
            const long long below = fsi__co_below(c->liquid->grid, e, a);
            if (flow->cell[e] == FSI_CELL_LIQUID || (below >= 0 && flow->cell[below] == FSI_CELL_LIQUID))
                FSI__TRY(fsi__co_add_body_face(c, &o, f, a, body));
        }
    }
    if (c->faces > before) qsort(c->face, (size_t)c->faces, sizeof *c->face, fsi__co_compare_faces); /* by axes */
    return FSI_OK;
}

/* Finds the faces that move with the solid, with their weights, masses and right sides. */
static fsi_status fsi__co_collect_faces(fsi__co_impl *c, const fsi_pressure_flow *flow)
{
    int k, end;
    c->touches = c->faces = c->shares = 0;

    /* pairs of a contact at the liquid and a face that moves with it, sorted by face */
    for (k = 0; k < c->contacts; k++) {
        fsi__co_contact *t = &c->contact[k];
        c->pushed += t->d < c->sample[t->sample].range;
        if (!(t->d < fsi__co_touching(c))) continue;
        fsi__co_direct_contact(t);
        FSI__TRY(fsi__co_find_faces(c, flow->cell, k));
    }
    if (c->touches > 0) qsort(c->touch, (size_t)c->touches, sizeof *c->touch, fsi__co_compare_touches);

    /* one face of each run of pairs: its component, direction, nodes and mass */
    FSI__TRY(fsi__co_more(c, &c->face, sizeof *c->face, 0, &c->face_capacity, c->touches));
    for (k = 0; k < c->touches; k = end) {
        fsi__co_face *f = &c->face[c->faces++];
        for (end = k + 1;
             end < c->touches && c->touch[end].axis == c->touch[k].axis && c->touch[end].entry == c->touch[k].entry;
             end++) {}
        f->body = -1;
        f->touch = k;
        f->touch_end = end;
        f->pin = fsi__co_meets_most(c, k, end) == FSI__CO_RIM
            ? FSI__CO_PINNED * (double)c->liquid->desc.surface_tension / c->dx : 0;
        f->axis = c->touch[k].axis;
        f->entry = c->touch[k].entry;
        f->label = c->ls->trial_label[flow->cell[f->entry] == FSI_CELL_LIQUID ? (long long)f->entry
            : fsi__co_below(c->liquid->grid, f->entry, f->axis)];
        if (f->label >= c->ls->parts) f->label = -1;
        f->before = (double)flow->u[f->axis]->value[f->entry];
        fsi__co_weigh_touches(c, k, end);
        fsi__co_direct_face(c, flow, f, k, end);
        fsi__co_fill_face(c, flow->phi, f);
        FSI__TRY(fsi__co_weigh_face(c, f, k, end));
    }

    /* M (u* - base) + S of each face */
    if (fsi__co_exchanges(c)) FSI__TRY(fsi__co_balance_masses(c, flow));
    for (k = 0; k < c->faces; k++) {
        fsi__co_face *f = &c->face[k];
        const double skin = (flow->cell[f->entry] == FSI_CELL_LIQUID ? 1 : -1) * f->skin * c->volume / c->dx * c->sh->h;
        f->push = f->mass * (f->before - f->base) + (flow->surface_pressure ? skin : 0);
    }
    return fsi__co_collect_bodies(c, flow);
}

/* W v of a face, without its base. */
static double fsi__co_face_velocity(const fsi__co_impl *c, const fsi__co_face *f, const double *v)
{
    double sum = 0;
    int i;
    for (i = f->first; i < f->end; i++)
        sum += c->share[i].weight * fsi__sh_dot(fsi__co_along(f, i), v + 3 * (size_t)c->share[i].node);
    return sum;
}

/* out += W' j; nothing moves what is held. */
static void fsi__co_push_face(const fsi__co_impl *c, const fsi__co_face *f, double j, int held, double *out)
{
    int i, a;
    for (i = f->first; i < f->end; i++) for (a = 0; a < 3; a++)
            if (held || !c->sh->fixed[3 * c->share[i].node + a])
                out[3 * c->share[i].node + a] += c->share[i].weight * fsi__co_along(f, i)[a] * j;
}

/* The solid's matrix and gradient where a substep begins: once, for all projections before positions are sought. */
static fsi_status fsi__co_weigh_start(fsi__co_impl *c)
{
    if (c->weighed) return FSI_OK;
    FSI__TRY(fsi__sh_lag(c->step, 0));
    c->weighed = 1;
    return fsi__sh_weigh(c->step);
}

static int fsi__co_compare_keys(const void *a, const void *b)
{
    const uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
    return p < q ? -1 : p > q;
}

static fsi_status fsi__co_add_key(fsi__co_impl *c, int row, int col)
{
    FSI__TRY(fsi__co_more(c, &c->key, sizeof *c->key, c->keys, &c->key_capacity, c->keys + 2));
    c->key[c->keys++] = (uint64_t)row << 32 | (uint64_t)col;
    if (row != col) c->key[c->keys++] = (uint64_t)col << 32 | (uint64_t)row;
    return FSI_OK;
}

static void fsi__co_unique_keys(fsi__co_impl *c)
{
    int i, kept = 0;
    if (c->keys > 1) qsort(c->key, (size_t)c->keys, sizeof *c->key, fsi__co_compare_keys);
    for (i = 0; i < c->keys; i++) if (i == 0 || c->key[i] != c->key[i - 1]) c->key[kept++] = c->key[i];
    c->keys = kept;
}

/* Room for a system of so many rows and entries, of which `own` are the shell's. */
static fsi_status fsi__co_room(fsi__co_impl *c, int rows, int entries, int own)
{
    FSI__TRY(fsi__co_more(c, &c->total_start, sizeof(int), 0, &c->total_rows_capacity, rows + 1));
    FSI__TRY(fsi__co_more(c, &c->total_col, sizeof(int), 0, &c->total_capacity, entries));
    FSI__TRY(fsi__co_more(c, &c->total_value, 9 * sizeof(double), 0, &c->value_capacity, entries));
    FSI__TRY(fsi__co_more(c, &c->total_map, sizeof(int), 0, &c->map_capacity, own + 1));
    FSI__TRY(fsi__co_more(c, &c->right, 3 * sizeof(double), 0, &c->right_capacity, rows));
    FSI__TRY(fsi__co_more(c, &c->v, 3 * sizeof(double), 0, &c->v_capacity, rows));
    FSI__TRY(fsi__co_more(c, &c->load, 3 * sizeof(double), 0, &c->load_capacity, rows));
    return fsi__co_more(c, &c->solution, 3 * sizeof(double), 0, &c->solution_capacity, rows);
}

/* The pattern of A + W' M W: that of A, and pairs of nodes with a face in common. */
static fsi_status fsi__co_lay_inertia(fsi__co_impl *c)
{
    const fsi_csr *a = c->sh->matrix;
    int k, i, j, e, at;

    /* entries that A lacks */
    c->keys = 0;
    for (k = 0; k < c->faces; k++)
        for (i = c->face[k].body < 0 ? c->face[k].first : c->face[k].end; i < c->face[k].end; i++)
            for (j = i + 1; j < c->face[k].end; j++)
                if (fsi__sh_entry(a, c->share[i].node, c->share[j].node) < 0)
                    FSI__TRY(fsi__co_add_key(c, c->share[i].node, c->share[j].node));
    fsi__co_unique_keys(c);
    FSI__TRY(fsi__co_room(c, a->rows, a->start[a->rows] + c->keys, a->start[a->rows]));

    /* rows of both merged; total_map: where the entries of A go */
    for (k = at = e = 0; k < a->rows; k++) {
        c->total_start[k] = at;
        for (i = a->start[k]; i < a->start[k + 1] || (e < c->keys && (int)(c->key[e] >> 32) == k); at++) {
            const int own = i < a->start[k + 1] ? a->col[i] : a->rows,
                      more = e < c->keys && (int)(c->key[e] >> 32) == k ? (int)(c->key[e] & 0xffffffffu) : a->rows;
            c->total_col[at] = own < more ? own : more;
            if (own < more) c->total_map[i++] = at;
            else e++;
        }
    }
    c->total_start[a->rows] = at;

    c->total.rows = c->total.cols = a->rows;
    c->total.start = c->total_start;
    c->total.col = c->total_col;
    c->total.value = c->total_value;
    return FSI_OK;
}

/* W' M W of a face, for two of its nodes. */
static void fsi__co_put_mass(fsi__co_impl *c, const fsi__co_face *f, int i, int j)
{
    const double mass = f->mass * c->share[i].weight * c->share[j].weight;
    const int row = c->share[i].node, col = c->share[j].node, e = fsi__sh_entry(&c->total, row, col),
              back = fsi__sh_entry(&c->total, col, row);
    int a, b;
    for (a = 0; a < 3; a++) for (b = 0; b < 3; b++) {
        c->total_value[9 * (size_t)e + (size_t)(3 * a + b)] += mass * f->along[a] * f->along[b];
        if (i != j) c->total_value[9 * (size_t)back + (size_t)(3 * a + b)] += mass * f->along[a] * f->along[b];
    }
}

/* Its numbers. */
static void fsi__co_fill_inertia(fsi__co_impl *c)
{
    const fsi_csr *a = c->sh->matrix;
    const double h2 = c->sh->h * c->sh->h;
    int k, i, j;
    memset(c->total_value, 0, 9 * (size_t)c->total.start[c->total.rows] * sizeof(double));
    for (i = 0; i < a->start[a->rows]; i++)
        for (j = 0; j < 9; j++)
            c->total_value[9 * (size_t)c->total_map[i] + (size_t)j] = h2 * a->value[9 * (size_t)i + (size_t)j];
    for (k = 0; k < c->faces; k++)
        for (i = c->face[k].first; i < c->face[k].end && c->face[k].mass > 0; i++)
            for (j = i; j < c->face[k].end; j++) fsi__co_put_mass(c, &c->face[k], i, j);
}

/* Velocity in this substep of a coordinate that is held. */
static double fsi__co_held_velocity(const fsi__co_impl *c, int i)
{
    return (c->sh->end[i] - c->sh->start[i]) / c->sh->h;
}

/* Held nodes keep their velocity: rows of the identity; their terms in other rows go to the right side. */
static void fsi__co_hold(fsi__co_impl *c)
{
    const unsigned char *fixed = c->sh->fixed;
    double *v = c->solution;
    int r, e, a, b;
    for (r = 0; r < 3 * c->total.rows; r++) v[r] = fixed[r] ? fsi__co_held_velocity(c, r) : 0;
    for (r = 0; r < c->total.rows; r++)
        for (e = c->total_start[r]; e < c->total_start[r + 1]; e++)
            for (a = 0; a < 3; a++)
                for (b = 0; b < 3; b++) {
                    double *value = &c->total_value[9 * (size_t)e + (size_t)(3 * a + b)];
                    const int i = 3 * r + a, j = 3 * c->total_col[e] + b;
                    if (!fixed[i] && !fixed[j]) continue;
                    if (!fixed[i]) c->right[i] -= *value * v[j];
                    *value = i == j ? 1 : 0;
                }
    for (r = 0; r < 3 * c->total.rows; r++) if (fixed[r]) c->right[r] = v[r];
}

/* Velocities of the solid before the pressure, in c->v. */
static fsi_status fsi__co_predict(fsi__co_impl *c)
{
    const int n = 3 * c->sh->matrix->rows;
    const double h2 = c->sh->h * c->sh->h;
    fsi_system system = fsi_default_system();
    double shift = 1e-10;
    int k, i;

    /* Right side: momentum and forces of the solid, M v - h grad E, with the forces of the liquid. */
    fsi__co_fill_inertia(c);
    memset(c->right, 0, (size_t)n * sizeof *c->right);
    fsi__sh_node_velocities(c->step, c->v);
    if (c->ended) FSI__TRY(fsi_csr_multiply(c->context, c->sh->matrix, c->v, c->right));
    for (i = 0; i < n; i++) c->right[i] = h2 * c->right[i] - c->sh->h * c->sh->gradient[i];
    /* once the positions are known, the momentum given to bodies is part of their predicted velocity already */
    for (i = 0; i < (c->ended ? 3 * c->sh->vertices : n); i++) c->right[i] += c->given[i];
    for (k = 0; k < c->faces; k++) fsi__co_push_face(c, &c->face[k], c->face[k].push, 0, c->right);
    fsi__co_hold(c);
    memcpy(c->load, c->right, (size_t)n * sizeof(double));

    /* Solve. A matrix that rounding makes singular gets a larger diagonal, as in fsi__sh_solve. */
    system.matrix = &c->total;
    for (k = 0; k < 6; k++, shift *= 10) {
        const fsi_status status = fsi_solver_solve(c->inertial, &system, c->right, c->v);
        if (status != FSI_ERROR_SINGULAR) return status;
        for (i = 0; i < n; i++)
            c->total_value[9 * (size_t)fsi__sh_entry(&c->total, i / 3, i / 3) + (size_t)(4 * (i % 3))] *= 1 + shift;
    }
    return fsi_solver_solve(c->inertial, &system, c->right, c->v);
}

/* (A + W' M W)^-1 W' j, in c->solution. */
static fsi_status fsi__co_yield(fsi__co_impl *c, const double *impulse)
{
    fsi_system system = fsi_default_system();
    int k;
    memset(c->right, 0, 3 * (size_t)c->total.rows * sizeof(double));
    for (k = 0; k < c->faces; k++) fsi__co_push_face(c, &c->face[k], impulse[k], 0, c->right);
    system.matrix = &c->total;
    system.tolerance = 1e-10;
    return fsi_solver_solve(c->inertial, &system, c->right, c->solution);
}

static fsi_status fsi__co_respond(void *user, fsi_context *context, const double *impulse, double *change)
{
    fsi__co_impl *c = (fsi__co_impl *)user;
    int k;
    (void)context;
    FSI__TRY(fsi__co_yield(c, impulse));
    for (k = 0; k < c->faces; k++) change[k] = fsi__co_face_velocity(c, &c->face[k], c->solution);
    return FSI_OK;
}

/* Estimate of the yielding of faces under equal impulses: by masses alone. */
static void fsi__co_estimate(fsi__co_impl *c, fsi_real *yielding)
{
    const double *mass = c->sh->mass;
    double *pushed = c->solution;
    int k, i;
    memset(pushed, 0, 3 * (size_t)c->total.rows * sizeof(double));
    for (k = 0; k < c->faces; k++) fsi__co_push_face(c, &c->face[k], 1, 0, pushed);
    for (k = 0; k < c->faces; k++) {
        const fsi__co_face *f = &c->face[k];
        double sum = 0;

        /* Compliance of the nodes beside the face; bodies have none here: they yield to few pressures, which the
           iteration finds. */
        for (i = f->first; i < f->end && f->body < 0; i++) {
            const double p = fabs(fsi__sh_dot(f->along, pushed + 3 * (size_t)c->share[i].node));
            sum += c->share[i].weight * p / (mass[c->share[i].node] + f->mass * p);
        }
        yielding[k] = (fsi_real)(c->density * c->volume * sum);
    }
}

/* The faces as a solid of the pressure solver that covers them completely. */
static fsi_status fsi__co_make_solid(fsi__co_impl *c, fsi__co_columns *columns, fsi_pressure_solid *solid)
{
    const int momentum = c->s->desc.correction == FSI_COUPLE_MOMENTUM;
    const double *v = c->ended ? c->sh->next_v : c->v; /* of walls */
    int k, a = 0, first[4] = { 0, 0, 0, 0 };

    /* the solid's velocity at the faces: predicted by MOMENTUM, that of a moving wall by PAPER */
    if (fsi__co_exchanges(c)) FSI__TRY(fsi__co_predict(c));
    if (momentum) v = c->v;

    /* columns of the faces, sorted by axis */
    for (k = 0; k < c->faces; k++) {
        while (a < c->face[k].axis) first[++a] = k;
        columns->entry[k] = c->face[k].entry;
        columns->solid[k] = c->face[k].body < 0 ? 1 : (fsi_real)c->face[k].covered;
        columns->velocity[k] = (fsi_real)(c->face[k].base + fsi__co_face_velocity(c, &c->face[k], v));
    }
    while (a < 3) first[++a] = c->faces;
    FSI__TRY(fsi_grid_faces_set(c->list, c->liquid->grid, first, columns->entry, columns->solid));

    /* the solid as the pressure solver reads it; by MOMENTUM it yields to the pressure */
    memset(solid, 0, sizeof *solid);
    solid->faces = c->list;
    solid->velocity = columns->velocity;
    solid->face_impulse = columns->impulse;
    if (!momentum || c->faces == 0) return FSI_OK;
    fsi__co_estimate(c, columns->yielding);
    solid->respond = fsi__co_respond;
    solid->user = c;
    solid->yielding = columns->yielding;
    return FSI_OK;
}

/* Pressure of the liquid on a face minus that of its surface on air, in this substep so far [Pa]. */
static double fsi__co_press(const fsi__co_impl *c, const fsi_field *pressure, const unsigned char *cell,
    const fsi__co_face *f)
{
    const fsi__ls_view *m = c->ls;
    const long long below = fsi__co_below(c->liquid->grid, f->entry, f->axis);
    const long long liquid = cell[f->entry] == FSI_CELL_LIQUID ? (long long)f->entry : below;
    const double first = (double)m->trial_pressure->value[liquid];
    const double later = pressure == m->trial_pressure ? 0 : (double)pressure->value[liquid];
    return later + (first < 0 || first > 0 ? first - f->skin : 0); /* 0: it was no liquid at the first projection */
}

/* Which mean of a contact a face belongs to: the first; where liquid is on both sides of the solid, that of its
   direction. */
static int fsi__co_side(const fsi__co_contact *t, const unsigned char *cell, const fsi__co_face *f)
{
    return fsi__sh_dot(t->normal, t->normal) > 0 ? 0 : 2 * f->axis + (cell[f->entry] != FSI_CELL_LIQUID);
}

/* Pressure of the liquid on each contact: the mean of its faces, by weight. */
static void fsi__co_press_contacts(fsi__co_impl *c, const fsi_field *pressure, const unsigned char *cell)
{
    int k, j;
    for (k = 0; k < c->contacts; k++) {
        memset(c->contact[k].press, 0, sizeof c->contact[k].press);
        memset(c->contact[k].counted, 0, sizeof c->contact[k].counted);
    }
    for (k = 0; k < c->faces; k++) {
        const double press = c->face[k].body < 0 ? fsi__co_press(c, pressure, cell, &c->face[k]) : 0;
        for (j = c->face[k].touch; j < c->face[k].touch_end && !(c->face[k].pin > 0); j++) {
            fsi__co_contact *t = &c->contact[c->touch[j].contact];
            const int side = fsi__co_side(t, cell, &c->face[k]);
            t->press[side] += c->touch[j].weight * press;
            t->counted[side] += c->touch[j].weight;
        }
    }
}

/* Takes out the faces whose liquid would be pulled at by more than adhesion, and rims that their pins cannot hold;
   returns how many. The pressure at faces is
   as uneven as the surface's staircase: contacts have means of it. */
static int fsi__co_release(fsi__co_impl *c, const unsigned char *cell, const fsi_field *pressure)
{
    const fsi_levelset_desc *d = &c->liquid->desc;
    const double dt = c->sh->h, rho = c->density, dx = c->dx, g = sqrt((double)fsi_v3_norm2(d->gravity));
    /* rounding: moves liquid by 1e-6 dx, and is next to nothing beside weight and tension */
    const double least =
        fmin(1e-6 * rho * dx * dx / (dt * dt), 1e-4 * (rho * g * dx + (double)d->surface_tension / dx));
    int k, j, kept = 0;
    fsi__co_press_contacts(c, pressure, cell);
    for (k = 0; k < c->faces; k++) {
        const fsi__co_face *f = &c->face[k];
        double press = 0;
        if (f->pin > 0) {
            if (fabs(fsi__co_press(c, pressure, cell, f)) <= f->pin) c->face[kept++] = *f;
            continue;
        }
        for (j = f->touch; j < f->touch_end; j++) {
            const fsi__co_contact *t = &c->contact[c->touch[j].contact];
            const int side = fsi__co_side(t, cell, f);
            if (c->touch[j].weight > 0) press += c->touch[j].weight * t->press[side] / t->counted[side];
        }
        if (!(press < -f->hold - least)) c->face[kept++] = *f;
    }
    k = c->faces - kept;
    c->faces = kept;
    return k;
}

/* Velocities of the solid after the pressure. */
static fsi_status fsi__co_take_velocities(fsi__co_impl *c, const fsi__co_columns *columns)
{
    double sum[3] = { 0, 0, 0 }, exchanged = 0, whole = 0;
    int i, k;
    if (!fsi__co_exchanges(c)) return FSI_OK;
    FSI__TRY(fsi__co_yield(c, columns->impulse)); /* of no face: 0; the barrier's push is taken back all the same */
    for (i = 0; i < 3 * c->total.rows; i++) c->v[i] += c->solution[i];
    if (c->ended) FSI__TRY(fsi__sh_change_velocities(c->step, c->v)); /* contacts and pins exert what goes with that */

    /* Impulses exchanged, and loads of the solid with them. */
    FSI__TRY(fsi_csr_multiply(c->context, &c->total, c->v, c->right));
    for (k = 0; k < c->faces; k++) {
        const fsi__co_face *f = &c->face[k];
        const double gives = columns->impulse[k] + f->push - f->mass * fsi__co_face_velocity(c, f, c->v);
        exchanged += fabs(columns->impulse[k]);
        fsi__co_push_face(c, f, columns->impulse[k], 0, c->load);
        if (!c->ended) fsi__co_push_face(c, f, gives, 0, c->given);
        fsi__co_push_face(c, f, gives, 1, c->felt);
    }

    /* Momentum error: the sum over free vertices and bodies, relative to the impulse exchanged. */
    for (i = 0; i < 3 * c->sh->vertices; i++) if (!c->sh->fixed[i]) sum[i % 3] += c->right[i] - c->load[i];
    for (i = 3 * c->sh->first_body; i < 3 * c->total.rows; i++) if ((i / 3 - c->sh->first_body) % 2 == 0) {
        sum[i % 3] += c->right[i] - c->load[i];
        whole += fabs(c->load[i]);
    }

    /* Below 1e-7 of all loads it is rounding only. */
    for (i = 0; i < 3 * c->sh->vertices; i++) whole += fabs(c->load[i]);
    if (exchanged > 1e-7 * whole)
        c->stats.momentum_error = fmax(c->stats.momentum_error, sqrt(fsi__sh_dot(sum, sum)) / exchanged);
    return FSI_OK;
}

static fsi_status fsi__co_lay_columns(fsi__co_impl *c, fsi__arena *arena, fsi__co_columns *columns)
{
    const size_t n = (size_t)c->faces + 1;
    fsi__arena measure;
    int pass;
    memset(&measure, 0, sizeof measure);
    for (pass = 0; pass < 2; pass++) {
        fsi__arena *a = pass ? arena : &measure;
        if (pass && !fsi__arena_room(c->context, arena, measure.used))
            return fsi__fail(c->context, FSI_ERROR_MEMORY, "fsi_couple_step", -1, 0, "no memory for %d faces",
                c->faces);
        columns->entry = (int *)fsi__take(a, n, sizeof(int));
        columns->solid = (fsi_real *)fsi__take(a, n, sizeof(fsi_real));
        columns->velocity = (fsi_real *)fsi__take(a, n, sizeof(fsi_real));
        columns->yielding = (fsi_real *)fsi__take(a, n, sizeof(fsi_real));
        columns->impulse = (double *)fsi__take(a, n, sizeof(double));
    }
    return FSI_OK;
}

/* PAPER, before positions are sought: only prescribed vertices are walls. Their velocities are in c->v. */
static fsi_status fsi__co_keep_held(fsi__co_impl *c)
{
    const fsi__sh_view *m = c->sh;
    int k, i, a, kept = 0;
    FSI__TRY(fsi__co_more(c, &c->v, 3 * sizeof(double), 0, &c->v_capacity, m->nodes));
    for (i = 0; i < 3 * m->vertices; i++) c->v[i] = fsi__co_held_velocity(c, i);
    for (k = 0; k < c->faces; k++) {
        int held = 1;
        for (i = c->face[k].first; i < c->face[k].end; i++)
            for (a = 0; a < 3; a++) held &= m->fixed[3 * c->share[i].node + a];
        if (held) c->face[kept++] = c->face[k];
    }
    c->faces = kept;
    return FSI_OK;
}

/* Copies to c->solid the liquid's solids that are no bodies of the shell (with faces, these are unknowns of the shell);
   back: copies the projection's results from there. Returns their number. */
static int fsi__co_pick_solids(fsi__co_impl *c, fsi_pressure_solid *solids, int count, int back)
{
    int k, to = 0;
    for (k = 0; k < count; k++) {
        if (c->faces > 0 && fsi__co_shared_body(c, k) >= 0) continue;
        if (back) solids[k] = c->solid[to++];
        else c->solid[to++] = solids[k];
    }
    return to;
}

/* Passes the impulse of a projection on a body COUPLED in both to the liquid, which moves its obstacle by it. */
static void fsi__co_report_body(const fsi__co_impl *c, const fsi__co_columns *columns, int body, fsi_pressure_solid *to)
{
    const double *v = c->v + 3 * (size_t)(c->sh->first_body + 2 * body);
    double given[6] = { 0, 0, 0, 0, 0, 0 }, drift[6];
    int k, a;
    fsi__co_body_drift(c, &c->sh->body[body], drift);
    for (k = 0; k < c->faces; k++) {
        const fsi__co_face *f = &c->face[k];
        for (a = 0; a < 3 && f->body == body; a++) {
            given[a] += f->along[a] * columns->impulse[k];
            given[3 + a] += f->turn[a] * columns->impulse[k];
        }
    }
    for (a = 0; a < 6; a++) drift[a] = v[a] - (c->ended ? 0 : drift[a]);
    to->impulse = fsi__sh_to(given);
    to->angular_impulse = fsi__sh_to(given + 3);
    to->linear = fsi__sh_to(drift);
    to->angular = fsi__sh_to(drift + 3);
}

/* Velocities of bodies that are COUPLED in both, which the liquid has changed since positions were found: by the
   pressure that it carries along (time_order 2). */
static void fsi__co_read_bodies(fsi__co_impl *c, const fsi_pressure_solid *solids)
{
    int k;
    for (k = 0; k < fsi__ls_solids(c->liquid) && c->ended; k++) {
        const int body = fsi__co_shared_body(c, k);
        if (body < 0) continue;
        fsi__sh_set_body_velocity(c->step, body, solids[k].linear, solids[k].angular);
    }
}

/* In place of fsi__ls_solve_pressure: trial_u is free of divergence, and moves with the solid at its faces. */
static fsi_status fsi__co_project(fsi__co_impl *c, fsi_pressure_flow *flow)
{
    const fsi_grid *g = c->liquid->grid;
    const size_t bytes = (size_t)g->block_count * (size_t)g->block_cells * sizeof(fsi_real);
    fsi_pressure_solid *solids = flow->solids;
    const int count = flow->solid_count;
    fsi__co_columns columns;
    int pass, a, others, released = 1;

    /* the faces that move with the solid, and its inertia */
    fsi__co_read_bodies(c, solids);
    FSI__TRY(fsi__co_collect_faces(c, flow));
    if (!c->ended && c->s->desc.correction == FSI_COUPLE_PAPER) FSI__TRY(fsi__co_keep_held(c));
    if (!c->ended && c->faces == 0) return fsi_pressure_project(c->ls->solver, flow);
    if (!c->ended && fsi__co_exchanges(c)) FSI__TRY(fsi__co_weigh_start(c));
    if (fsi__co_exchanges(c)) FSI__TRY(fsi__co_lay_inertia(c));
    FSI__TRY(fsi__co_lay_columns(c, &c->columns, &columns));
    FSI__TRY(fsi__co_more(c, &c->solid, sizeof *c->solid, 0, &c->solid_capacity, count + 1));

    /* one solve, and again from the same velocities without the faces whose liquid would be pulled at too hard */
    for (a = 0; a < g->dim; a++) memcpy(c->ls->next_u[a]->value, flow->u[a]->value, bytes);
    flow->solids = c->solid;
    for (pass = 0; pass < 4 && released > 0; pass++) {
        for (a = 0; a < g->dim && pass > 0; a++) memcpy(flow->u[a]->value, c->ls->next_u[a]->value, bytes);
        others = fsi__co_pick_solids(c, solids, count, 0);
        FSI__TRY(fsi__co_make_solid(c, &columns, &c->solid[others]));
        flow->solid_count = c->faces > 0 ? others + 1 : others;
        FSI__TRY(fsi_pressure_project(c->ls->solver, flow));
        c->stats.faces = c->faces;
        released = pass < 3 ? fsi__co_release(c, flow->cell, flow->pressure) : 0;
        c->stats.released += c->ended ? released : 0;
    }

    /* new velocities of the solid, and of bodies in liquid and shell */
    FSI__TRY(fsi__co_take_velocities(c, &columns));
    if (c->ended) FSI__TRY(fsi__sh_check(c->step));
    fsi__co_pick_solids(c, solids, count, 1);
    for (a = 0; a < count && c->faces > 0; a++) {
        const int body = fsi__co_shared_body(c, a);
        if (body >= 0) fsi__co_report_body(c, &columns, body, &solids[a]);
    }
    flow->solids = solids;
    flow->solid_count = count;
    return FSI_OK;
}

/* ---- >>viscous drag ----------------------------------------------------------------------------------------------

   A viscous liquid sticks to the solid that it touches. In the layer of half a cell along the solid the shear is
   linear: a face that moves with the solid, of area A = |n_axis| times a cell's, bears the traction

      tau = mu (u(y) - W v) / (dx/2),   y = x - (phi + dx/2) n, half a cell inside the liquid

   along each axis. Pair by pair, a face f near y and the nodes of W exchange the impulse of one implicit step, which no
   viscosity makes overshoot: k = A mu dt w / (dx/2), w the weight of f in u(y), M the mass at f,

      j = (u - W v) / (1/k + 1/M + sum W^2/m)

   Twice in opposite orders, with half of k each. What the liquid loses the solid gains. */

/* The faces of an axis around y, between two cells of liquid, with their weights of the velocity there. Returns how
   many. */
static int fsi__co_faces_around(const fsi__co_impl *c, const double *y, int axis, int *face, double *weight)
{
    const fsi_grid *g = c->liquid->grid;
    double local[3], part[3] = { 0, 0, 0 }, sum = 0;
    int a, k, n = 0, low[3] = { 0, 0, 0 };

    /* The corners of the cell of faces around y, by the lowest. */
    fsi__co_local(c, y, local);
    for (a = 0; a < g->dim; a++) {
        const double at = local[a] / c->dx - (a == axis ? 0 : 0.5);
        low[a] = (int)floor(at);
        part[a] = at - low[a];
    }

    /* Multilinear weights of those between liquid cells that the projection has changed, made to sum to 1. */
    for (k = 0; k < 1 << g->dim; k++) {
        double w = 1;
        int i[3], out = 0;
        long long e, below;
        for (a = 0; a < 3; a++) {
            i[a] = low[a] + (k >> a & 1);
            out |= i[a] < (a == axis ? 1 : 0) || i[a] > g->n[a] - 1;
            if (a < g->dim) w *= k >> a & 1 ? part[a] : 1 - part[a];
        }
        if (out || !(w > 0)) continue;
        e = fsi_grid_entry(g, i[0], i[1], i[2]);
        below = fsi_grid_entry(g, i[0] - (axis == 0), i[1] - (axis == 1), i[2] - (axis == 2));
        /* known: an obstacle's or a nozzle's */
        if (e < 0 || below < 0 || c->ls->cell[e] != FSI_CELL_LIQUID || c->ls->cell[below] != FSI_CELL_LIQUID ||
            c->ls->known[axis][e])
            continue;
        face[n] = (int)e;
        weight[n++] = w;
        sum += w;
    }
    for (k = 0; k < n; k++) weight[k] /= sum;
    return n;
}

/* Liquid of velocity u and the nodes of a face exchange momentum along an axis. drag: k [kg]. */
static void fsi__co_rub(fsi__co_impl *c, const fsi__co_face *f, int axis, double drag, fsi_real *u)
{
    const double mass = c->density * c->volume;
    double v = 0, ease = 1 / mass + 1 / drag, j;
    int i;
    for (i = f->first; i < f->end; i++) {
        const int at = 3 * c->share[i].node + axis;
        v += c->share[i].weight * c->v[at];
        if (!c->sh->fixed[at]) ease += c->share[i].weight * c->share[i].weight / c->sh->mass[c->share[i].node];
    }
    j = ((double)*u - v) / ease;
    *u -= (fsi_real)(j / mass);
    for (i = f->first; i < f->end; i++) {
        const int at = 3 * c->share[i].node + axis;
        const double gained = c->share[i].weight * j;
        c->felt[at] += gained;
        if (c->sh->fixed[at]) continue;
        c->given[at] += gained;
        c->v[at] += gained / c->sh->mass[c->share[i].node];
    }
}

/* The drag of the layer at one face that moves with the solid. */
static void fsi__co_rub_layer(fsi__co_impl *c, const fsi__co_face *f)
{
    const fsi_real *phi = c->ls->trial_phi->value;
    const double depth = ((double)phi[f->entry] + (double)phi[fsi__co_below(c->liquid->grid, f->entry, f->axis)]
        + c->dx) / 2;
    /* half of mu dt / (dx/2), times a cell's area */
    const double layer = (double)c->liquid->desc.viscosity * c->ls->dt * c->volume / (c->dx * c->dx);
    const double side = c->ls->cell[f->entry] == FSI_CELL_LIQUID ? -1 : 1; /* of the solid, seen from the liquid */
    double n[3] = { 0, 0, 0 }, x[3], weight[8], size;
    int face[8], axis, i, a;
    for (i = f->touch; i < f->touch_end; i++)
        for (a = 0; a < 3; a++) n[a] += c->touch[i].weight * c->contact[c->touch[i].contact].normal[a];
    /* liquid is on both sides of the solid */
    if (!(n[f->axis] * side > 0)) for (a = 0; a < 3; a++) n[a] = a == f->axis ? side : 0;
    size = sqrt(fsi__sh_dot(n, n));
    fsi__sh_from(fsi__ls_entry_position(c->liquid->grid, (fsi_grid_place)(FSI_FACES_X + f->axis), f->entry), x);
    for (a = 0; a < 3; a++) x[a] -= depth * n[a] / size;
    for (axis = 0; axis < c->liquid->grid->dim; axis++) {
        const int count = fsi__co_faces_around(c, x, axis, face, weight);
        for (i = 0; i < count; i++)
            fsi__co_rub(c, f, axis, layer * fabs(n[f->axis]) / size * weight[i], &c->ls->trial_u[axis]->value[face[i]]);
    }
}

/* Does liquid lie on the solid there? Bodies stick to it by themselves, rims stand on it. */
static int fsi__co_is_layer(const fsi__co_face *f) { return f->body < 0 && !(f->pin > 0); }

/* The drag of the whole layer. The liquid's velocities of the trial change, and c->v, which is that of the last
   projection. */
static void fsi__co_drag(fsi__co_impl *c)
{
    int k;
    if (c->s->desc.slip || !fsi__co_exchanges(c)) return;
    /* to obstacles it sticks by itself */
    for (k = 0; k < c->faces; k++) if (fsi__co_is_layer(&c->face[k])) fsi__co_rub_layer(c, &c->face[k]);
    for (k = c->faces - 1; k >= 0; k--) if (fsi__co_is_layer(&c->face[k])) fsi__co_rub_layer(c, &c->face[k]);
}

/* 1 where the surface beside a wet cell is parallel to the solid, phi growing towards it; 0 where it is inclined by 40
   degrees. */
static double fsi__co_lies(const fsi__co_impl *c, const fsi__co_face *f, int wet)
{
    const fsi_real *phi = c->ls->trial_phi->value;
    double n[3] = { 0, 0, 0 }, g[3] = { 0, 0, 0 }, size;
    int j, a;
    for (j = f->touch; j < f->touch_end; j++)
        for (a = 0; a < 3; a++) n[a] += c->touch[j].weight * c->contact[c->touch[j].contact].normal[a];
    for (a = 0; a < c->liquid->grid->dim; a++) {
        long long lo, hi;
        if (!fsi__ls_neighbor(c->run, wet, 2 * a, &lo)) lo = wet; /* a wall of the box: it goes on as it is */
        if (!fsi__ls_neighbor(c->run, wet, 2 * a + 1, &hi)) hi = wet;
        g[a] = ((double)phi[hi] - (double)phi[lo]) * (lo == wet || hi == wet ? 2 : 1);
    }
    size = sqrt(fsi__sh_dot(n, n) * fsi__sh_dot(g, g));
    return size > 0 ? fmax(0, fmin(1, (fsi__sh_dot(n, g) / size - 0.77) / 0.2)) : 0;
}

/* Where the first projection closed faces, the surface that rests on the solid moves with it. Advection would move it
   with the liquid a fraction of a cell above, and it would creep (1e-3 of rho g H V in 15 s on a sprung chain; 1e-7
   with this). Excepted are liquid that slides past the solid by more than a tenth of a cell in the substep, and layers
   of two cells or less, where phi depends on the other surface too. */
static void fsi__co_ride(fsi__co_impl *c)
{
    const fsi_grid *g = c->liquid->grid;
    const fsi_real *phi = c->ls->trial_phi->value;
    int k, i, a, part;
    for (k = 0; k < c->faces; k++) {
        const fsi__co_face *f = &c->face[k];
        const long long below = fsi__co_below(g, f->entry, f->axis);
        const int up = phi[f->entry] < 0; /* the liquid is above the face */
        const long long wet = up ? f->entry : below, dry = up ? below : f->entry;
        double way[3] = { 0, 0, 0 }, past[3], ride;
        long long beyond;

        /* displacement of the solid at the face, and of the liquid relative to it */
        if (!fsi__co_is_layer(f) || !fsi__ls_neighbor(c->run, (int)wet, 2 * f->axis + up, &beyond)) continue;
        for (i = f->first; i < f->end; i++) for (a = 0; a < 3; a++)
            way[a] += c->share[i].weight * c->v[3 * c->share[i].node + a] * c->ls->dt;
        fsi__sh_from(fsi_grid_sample_velocity(c->ls->trial_u, fsi__ls_entry_position(g, FSI_CELLS, (int)wet)), past);
        for (a = 0; a < 3; a++) past[a] = past[a] * c->ls->dt - way[a];

        /* how far the surface follows the solid: 1 at rest in deep liquid, 0 where it slides past or is thin */
        ride = fmin(1, 2 - 20 * sqrt(fsi__sh_dot(past, past)) / c->dx);
        ride = fmin(ride, 2.5 * ((double)(phi[wet] - phi[beyond]) / c->dx - 0.5));
        if (ride > 0) ride *= fsi__co_lies(c, f, (int)wet);

        /* phi of the cells on both sides, from where the displacement began */
        for (part = 0; part < 2 && ride > 0; part++) {
            const long long e = part ? wet : dry;
            const fsi_vec3 from = fsi_v3_sub(fsi__ls_entry_position(g, FSI_CELLS, (int)e), fsi__sh_to(way));
            fsi_real *to = &c->ls->next_phi->value[e];
            *to += (fsi_real)(ride * ((double)fsi_grid_sample_linear(c->ls->trial_phi, from) - (double)*to));
        }
    }
}

/* ---- >>lost liquid -----------------------------------------------------------------------------------------------

   Where two surfaces are within a cell or two of each other, as at the rim of a film or in a notch of it, advection and
   redistancing lose liquid. The volume constraint returns it to the whole film. If that rests on a solid it then flows
   to where liquid is lost, for ever. So liquid that creeps there has it back first where it was lost:

      lost  = s(phi) - dt/dx sum over faces (u.n) (s + s')/2 - s(phi*)      s(phi) = 1/2 - phi/dx, from 0 to 1
      phi* -= dx g sum over j (lost_j / sum over k g_k^2)                   g = 1 - |phi*|/dx, at least 0

   s: fraction of a cell that is liquid, s' its neighbour's; u.n: outwards; j: the cell and those around it; k: j and
   those around that. The volume constraint makes up for the rest. */

#define FSI__CO_RETURNED 0.1    /* phi changes by at most so much in a substep [dx] */

static double fsi__co_wet_part(double phi) { return fmax(0, fmin(1, 0.5 - phi)); }
static double fsi__co_edge(double phi) { return fmax(0, 1 - fabs(phi)); }

/* The entries of a cell and of those around it, also across edges and corners. Returns how many. */
static int fsi__co_around(const fsi_grid *g, int e, int *entry)
{
    const int in = e % g->block_cells, deep = g->dim == 3;
    int corner[3], x, y, z, n = 0;
    fsi_grid_corner(g, e / g->block_cells, corner);
    for (z = -deep; z <= deep; z++) for (y = -1; y <= 1; y++) for (x = -1; x <= 1; x++) {
        const long long at =
            fsi_grid_entry(g, corner[0] + (in & 7) + x, corner[1] + (in >> 3 & 7) + y, corner[2] + (in >> 6) + z);
        if (at >= 0) entry[n++] = (int)at;
    }
    return n;
}

/* Marks the cells within three cells of a sample at the liquid. */
static void fsi__co_mark_beside(fsi__co_impl *c)
{
    const fsi_grid *g = c->liquid->grid;
    int k, a, i[3], lo[3] = { 0, 0, 0 }, hi[3] = { 0, 0, 0 };
    for (k = 0; k < c->contacts; k++) {
        double local[3];
        if (!(c->contact[k].d < fsi__co_touching(c))) continue;
        fsi__co_local(c, c->contact[k].x, local);
        if (fsi__co_is_out(c, local)) continue;
        for (a = 0; a < g->dim; a++) {
            lo[a] = (int)fmax(0, floor(local[a] / c->dx - 3));
            hi[a] = (int)fmin(g->n[a] - 1, floor(local[a] / c->dx + 3));
        }
        for (i[2] = lo[2]; i[2] <= hi[2]; i[2]++)
            for (i[1] = lo[1]; i[1] <= hi[1]; i[1]++)
                for (i[0] = lo[0]; i[0] <= hi[0]; i[0]++) {
                    const long long e = fsi_grid_entry(g, i[0], i[1], i[2]);
                    if (e >= 0) c->beside[e] = 1;
                }
    }
}

/* Entries of thin layers: nothing in `lost`, marks in `beside`. */
static fsi_status fsi__co_begin_thin(fsi__co_impl *c, int entries)
{
    FSI__TRY(fsi__co_more(c, &c->lost, sizeof(double), 0, &c->lost_room, entries));
    FSI__TRY(fsi__co_more(c, &c->beside, 1, 0, &c->beside_room, entries));
    memset(c->lost, 0, (size_t)entries * sizeof(double));
    memset(c->beside, 0, (size_t)entries);
    fsi__co_mark_beside(c);
    return FSI_OK;
}

/* What one cell lost since the substep began, in cells; 0 at obstacles. */
static double fsi__co_lost(const fsi__co_impl *c, int e)
{
    const double dx = c->dx, own = fsi__co_wet_part((double)c->start->value[e] / dx);
    double left = own;
    int side;
    if (c->ls->psi && (double)c->ls->psi->value[e] < dx) return 0;
    for (side = 0; side < 2 * c->liquid->grid->dim; side++) {
        long long at;
        double u;
        if (!fsi__ls_neighbor(c->run, e, side, &at)) {
            if (c->liquid->desc.open_side[side]) return 0; /* it may have left there */
            continue;
        }
        u = side & 1 ? (double)c->ls->trial_u[side >> 1]->value[at] : -(double)c->ls->trial_u[side >> 1]->value[e];
        left -= c->ls->dt / dx * u * (own + fsi__co_wet_part((double)c->start->value[at] / dx)) / 2;
    }
    return left - fsi__co_wet_part((double)c->ls->next_phi->value[e] / dx);
}

/* Is a cell beside the solid, near the surface of a thin layer, and creeps? By how much, else 0. */
static double fsi__co_creeps_thinly(const fsi__co_impl *c, int e, double phi)
{
    double creeps;
    if (!c->beside[e] || fmin(fabs(phi), fabs((double)c->start->value[e])) > 2 * c->dx) return 0;
    creeps = fsi__co_creeps(c, e);
    return creeps > 0 && !fsi__ls_is_resolved(c->run, e) ? creeps : 0;
}

/* Gives back what thin layers of creeping liquid lost beside the solid. No liquid cell turns into air. */
static fsi_status fsi__co_return_lost(fsi__co_impl *c)
{
    const fsi_grid *g = c->liquid->grid;
    const int entries = g->block_count * g->block_cells;
    fsi_real *phi = c->ls->next_phi->value;
    int e, k, n, around[27];
    if (!fsi__co_may_creep(c)) return FSI_OK;
    FSI__TRY(fsi__co_begin_thin(c, entries));

    /* what each cell lost, for each unit of phi that may change around it */
    for (e = 0; e < entries; e++) {
        double sum = 0;
        const double creeps = fsi__co_creeps_thinly(c, e, (double)phi[e]);
        if (!(creeps > 0)) continue;
        n = fsi__co_around(g, e, around);
        for (k = 0; k < n; k++) {
            const double edge = c->beside[around[k]] ? fsi__co_edge((double)phi[around[k]] / c->dx) : 0;
            sum += edge * edge;
        }
        if (sum > 0.1) c->lost[e] = creeps * fsi__co_lost(c, e) / sum;
    }

    /* phi of the cells around */
    for (e = 0; e < entries; e++) {
        double edge, sum = 0;
        if (!c->beside[e] || !((edge = fsi__co_edge((double)phi[e] / c->dx)) > 0)) continue;
        n = fsi__co_around(g, e, around);
        for (k = 0; k < n; k++) sum += c->lost[around[k]];
        sum = (double)phi[e] - c->dx * fmax(-FSI__CO_RETURNED, fmin(FSI__CO_RETURNED, edge * sum));
        if (phi[e] >= 0 || sum < 0) phi[e] = (fsi_real)sum;
    }
    return FSI_OK;
}

/* ---- >>step ------------------------------------------------------------------------------------------------------ */

/* Samples at which there is liquid where the substep begins. The barrier of one nearer than the range begins at its
   distance, but at no less than this fraction of the range: otherwise liquid at rest would be pushed up, without a
   velocity that accounts for it. */
#define FSI__CO_NARROW 0.75

/* Is the sample past a side of the box? Then its barrier begins at its present distance, so that a solid at rest there
   is not pushed. */
static int fsi__co_begin_past(fsi__co_impl *c, const fsi_field *phi, int sample, const double *x)
{
    double local[3], away[3], end[3], past, d;
    int a;
    fsi__co_local(c, x, local);
    past = fsi__co_past(c, local, away);
    if (!(past > 0)) return 0;
    for (a = 0; a < 3; a++) end[a] = x[a] - (past + 1e-6 * c->dx) * away[a];
    d = fsi__co_distance_past(past, away, fsi__co_distance_in(c, phi, end, NULL), NULL);
    c->sample[sample].range = fmax(FSI__CO_LEAST * c->dx, fmin(c->range, d));
    return 1;
}

static fsi_status fsi__co_find_touching(fsi__co_impl *c, const fsi_field *phi)
{
    int k;
    c->contacts = 0;
    for (k = 0; k < c->samples; k++) {
        fsi__co_contact t;
        memset(&t, 0, sizeof t);
        t.sample = k;
        fsi__co_place(&c->sample[k], c->sh->next_x, t.x);
        if (fsi__co_begin_past(c, phi, k, t.x)) continue;
        t.d = fsi__co_distance_in(c, phi, t.x, t.gradient);
        /* those will be left out */
        if (!(t.d < fsi__co_touching(c)) || (t.d <= -c->dx && k >= c->sh->vertices)) continue;
        c->sample[k].range = fmax(FSI__CO_NARROW * c->range, fmin(c->range, t.d));
        FSI__TRY(fsi__co_more(c, &c->contact, sizeof *c->contact, c->contacts, &c->contact_capacity, c->contacts + 1));
        c->contact[c->contacts++] = t;
    }
    return FSI_OK;
}

/* Gives the liquid's obstacles the velocities of their bodies after contact, and their positions when a substep begins.
   Not earlier: components of liquid were found with the earlier positions. */
static void fsi__co_move_bodies(const fsi__co_impl *c, int begins)
{
    int k;
    for (k = 0; k < fsi__ls_solids(c->liquid); k++) {
        const int i = fsi__co_shared_body(c, k);
        const fsi__sh_body *b = i < 0 ? NULL : &c->sh->body[i];
        fsi_pose pose;
        if (!b) continue;
        pose.position = fsi__sh_to(b->center);
        pose.orientation = b->turn;
        fsi__ls_set_body(c->run, k, fsi__sh_to(b->velocity), fsi__sh_to(b->spin), begins ? &pose : NULL);
    }
}

/* A substep begins: the shell's too; samples, and which of them are at the liquid. */
static fsi_status fsi__co_begin(fsi__co_impl *c)
{
    if (c->ls->substeps > 0) fsi__co_move_bodies(c, 1);
    memcpy(c->start->value, c->ls->trial_phi->value,
        (size_t)c->liquid->grid->block_count * (size_t)c->liquid->grid->block_cells * sizeof(fsi_real));
    c->margin = 32 * c->dx + 4 * c->ls->dt * fsi__sh_fastest(c->step);
    c->weighed = c->ended = c->pushed = 0;
    memset(c->given, 0, 3 * (size_t)c->sh->nodes * sizeof *c->given);
    FSI__TRY(fsi__sh_predict(c->step, c->ls->dt, c->ls->dt / c->dt, c->ls->done));
    FSI__TRY(fsi__co_make_samples(c, c->sh->next_x));
    c->stats.samples = c->samples;
    FSI__TRY(fsi__co_check_adhesion(c, "fsi_couple_step"));
    return fsi__co_find_touching(c, c->ls->trial_phi);
}

/* Air cells beside liquid get no divergence (fsi__ls_finish_projection). Near the solid, what cannot pass it would be
   sent along it, faster, be taken up by the liquid in the next substep, and grow: so there no face gets faster than
   those of its cell were. */
static void fsi__co_bound_shore(fsi__co_impl *c)
{
    const fsi_grid *g = c->liquid->grid;
    int k, a, i[3], lo[3] = { 0, 0, 0 }, hi[3] = { 0, 0, 0 };
    for (k = 0; k < c->samples; k++) {
        double x[3], local[3];
        fsi__co_place(&c->sample[k], c->sh->next_x, x);
        if ((double)fsi_grid_sample_linear(c->ls->trial_phi, fsi__sh_to(x)) > 3 * c->dx) continue;
        fsi__co_local(c, x, local);
        if (fsi__co_is_out(c, local)) continue;
        for (a = 0; a < g->dim; a++) {
            lo[a] = (int)fmax(0, floor(local[a] / c->dx - 2.5));
            hi[a] = (int)fmin(g->n[a] - 1, floor(local[a] / c->dx + 2.5));
        }
        for (i[2] = lo[2]; i[2] <= hi[2]; i[2]++)
            for (i[1] = lo[1]; i[1] <= hi[1]; i[1]++)
                for (i[0] = lo[0]; i[0] <= hi[0]; i[0]++) {
                    const long long e = fsi_grid_entry(g, i[0], i[1], i[2]);
                    if (e >= 0 && c->ls->shore[e]) c->ls->shore[e] = 2;
                }
    }
}

/* Unknowns and constraints of the liquid: its band. */
static fsi_status fsi__co_collect(fsi__co_impl *c)
{
    const int entries = c->liquid->grid->block_count * c->liquid->grid->block_cells;
    int i;
    FSI__TRY(fsi__ls_open_volumes(c->run));
    FSI__TRY(fsi__co_more(c, &c->map, sizeof(int), 0, &c->map_room, entries));
    for (i = 0; i < entries; i++) c->map[i] = -1;
    c->moved_before = 0;
    c->cells = c->ever_listed = c->listed = c->contacts = 0;
    for (i = 0; i < fsi__ls_band(c->run); i++) {
        double weight;
        const int entry = fsi__ls_band_cell(c->run, i, &weight);
        if (weight > 0.05) FSI__TRY(fsi__co_add_cell(c, entry, c->ls->next_label[entry], weight));
    }
    c->parts = c->ls->next_parts;
    FSI__TRY(fsi__co_more(c, &c->part, sizeof *c->part, 0, &c->part_capacity, c->parts + 1));
    memset(c->part, 0, ((size_t)c->parts + 1) * sizeof *c->part);
    for (i = 0; i < c->parts; i++) {
        const fsi__ls_part part = fsi__ls_part_of(c->run, i);
        c->part[i].missing = part.missing;
        c->part[i].volume = part.volume;
    }
    return FSI_OK;
}

/* The barrier bends phi near the solid, so that the volume by marching differs from the sum that was constrained. The
   difference is made up for in cells without contact, by at most the displacement allowed in a substep. */
static fsi_status fsi__co_remeasure(fsi__co_impl *c)
{
    int i;
    for (i = 0; i < c->cells; i++) c->ls->next_phi->value[c->cell[i].entry] = (fsi_real)c->cell[i].value;
    FSI__TRY(fsi__ls_remeasure(c->run));
    for (i = 0; i < c->parts; i++) c->part[i].jj = 0;
    for (i = 0; i < c->cells; i++) {
        const fsi__co_cell *p = &c->cell[i];
        const double share = fsi__ls_heaviside(p->value / c->dx), slope = 2 * share * (1 - share);
        if (p->component >= 0) c->part[p->component].jj += p->weight * slope * slope;
    }
    for (i = 0; i < c->parts; i++) {
        const fsi__ls_part part = fsi__ls_part_of(c->run, i);
        const double area = part.area, most = 0.2 * c->dx * area,
            missing = fmax(-most, fmin(most, part.target - part.measured));
        const double share = area > 0 ? 2 * c->part[i].jj * c->volume / (c->dx * area) : 1;
        if (!part.spent) c->part[i].missing += missing / c->volume * fmin(1, share);
    }
    fsi__co_repair(c);
    return FSI_OK;
}

static void fsi__co_measure(fsi__co_impl *c, fsi__co_contact *t)
{
    fsi__co_place(&c->sample[t->sample], c->sh->next_x, t->x);
    t->d = fsi__co_distance(c, NULL, t->x, 0, t);
}

/* Distances by the stencils at the present positions of samples. */
static fsi_status fsi__co_free_samples(fsi__co_impl *c)
{
    int i;
    for (i = 0; i < c->contacts; i++) {
        fsi__co_contact *t = &c->contact[i];
        fsi__co_measure(c, t);
        if (t->d >= FSI__CO_LEAST * c->dx) continue;
        FSI__TRY(fsi__co_add_stencil(c, t->x));
        fsi__co_measure(c, t);
        fsi__co_raise(c, t);
    }
    return FSI_OK;
}

/* Adds samples to elements that the substep stretched, and lists those near the liquid. */
static fsi_status fsi__co_list_stretched(fsi__co_impl *c)
{
    const int samples = c->samples;
    int k;
    FSI__TRY(fsi__co_sample_elements(c, c->sh->next_x));
    for (k = samples; k < c->samples; k++) {
        fsi__co_contact t;
        memset(&t, 0, sizeof t);
        t.sample = k;
        fsi__co_measure(c, &t);
        if (t.d > fsi__co_touching(c)) continue;
        FSI__TRY(fsi__co_add_stencil(c, t.x));
        FSI__TRY(fsi__co_more(c, &c->contact, sizeof *c->contact, c->contacts, &c->contact_capacity, c->contacts + 1));
        c->contact[c->contacts++] = t;
    }
    return FSI_OK;
}

/* Keeps the push of the box's sides on a sample when the barrier's push is taken back: no pressure replaces it. */
static void fsi__co_push_past(fsi__co_impl *c, const fsi__co_contact *t)
{
    const fsi__co_sample *s = &c->sample[t->sample];
    double local[3], away[3], push;
    int i, a;
    if (!(t->d < s->range) || c->s->desc.correction != FSI_COUPLE_MOMENTUM) return;
    fsi__co_local(c, t->x, local);
    if (!(fsi__co_past(c, local, away) > 0)) return;
    push = -c->sh->h * fsi__co_contact_energy(c, s, t->d).slope;
    for (i = 0; i < 3 && s->node[i] >= 0; i++) for (a = 0; a < 3; a++) {
        const size_t at = 3 * (size_t)s->node[i] + (size_t)a;
        if (c->sh->fixed[at]) continue;
        c->given[at] += push * s->weight[i] * away[a];
        c->felt[at] += push * s->weight[i] * away[a];
    }
}

/* Takes over the result: distances, corrected volumes, next_phi. */
static fsi_status fsi__co_take(fsi__co_impl *c)
{
    double off = 0;
    int i;

    /* add samples where the solid stretched, read d at their present cells, correct the volumes */
    for (i = 0; i < c->cells; i++) c->cell[i].step = 0;
    FSI__TRY(fsi__co_list_stretched(c));
    FSI__TRY(fsi__co_free_samples(c));
    fsi__co_repair(c);
    FSI__TRY(fsi__co_remeasure(c));

    /* distances of the contacts; no vertex may be in the liquid */
    for (i = 0; i < c->contacts; i++) {
        fsi__co_contact *t = &c->contact[i];
        fsi__co_measure(c, t);
        if (!(t->d > 0) && t->sample < c->sh->vertices)
            return fsi__fail(c->context, FSI_ERROR_CONVERGENCE, "fsi_couple_step", t->sample, t->d,
                "vertex %d could not be kept out of the liquid: phi is %g there", t->sample, t->d);
        c->stats.min_distance = fmin(c->stats.min_distance, t->d);
        c->stats.contacts += t->d < c->range;
        fsi__co_push_past(c, t);
    }

    /* volume errors, and phi */
    for (i = 0; i < c->parts; i++) {
        const double volume = c->part[i].volume, error = volume > 0 ? fabs(c->part[i].h) / volume : 0;
        if (error > off) off = error;
    }
    fsi__ls_note_volumes(c->run, off, c->sh->newton - c->newton);
    for (i = 0; i < c->cells; i++) fsi__ls_put_phi(c->run, c->cell[i].entry, c->cell[i].target, c->cell[i].value);
    return FSI_OK;
}

/* PAPER: the liquid's force on the solid is that of the barrier alone: at free vertices the residual of elastic forces
   and inertia, at prescribed ones the barrier's gradient. */
static fsi_status fsi__co_feel_push(fsi__co_impl *c)
{
    const fsi__sh_view *m = c->sh;
    int k, i, a;
    FSI__TRY(fsi__sh_weigh(c->step));
    for (i = 0; i < 3 * m->vertices; i++) if (!m->fixed[i]) c->felt[i] += c->sh->h * m->gradient[i];
    for (k = 0; k < c->contacts; k++) {
        const fsi__co_contact *t = &c->contact[k];
        const fsi__co_sample *s = &c->sample[t->sample];
        for (i = 0; i < 3 && s->node[i] >= 0; i++) for (a = 0; a < 3; a++) {
            const size_t at = 3 * (size_t)s->node[i] + (size_t)a;
            if (m->fixed[at]) c->felt[at] -= c->sh->h * t->pull * s->weight[i] * t->gradient[a];
        }
    }
    return FSI_OK;
}

static fsi_status fsi__co_settle(fsi__co_impl *c)
{
    const double clock = fsi__now(c->context);
    c->newton = c->sh->newton;
    FSI__TRY(fsi__co_collect(c));
    c->inertia = c->density * c->volume / (c->ls->dt * c->ls->dt);
    c->stiffness = (double)c->s->desc.stiffness * c->inertia * c->range * c->range;
    c->stats.contacts = 0;
    c->ended = 1;
    fsi__sh_push_bodies(c->step, c->given + 3 * (size_t)c->sh->first_body); /* what projections gave to bodies */
    FSI__TRY(fsi__co_newton(c));
    FSI__TRY(fsi__sh_accept(c->step));
    fsi__co_move_bodies(c, 0);
    if (c->s->desc.correction == FSI_COUPLE_MOMENTUM) FSI__TRY(fsi__sh_weigh(c->step));
    else FSI__TRY(fsi__co_feel_push(c));
    if (!c->listed) FSI__TRY(fsi__co_list(c, c->sh->next_x, 2 * c->dx));
    FSI__TRY(fsi__co_take(c));
    c->stats.newton += c->sh->newton - c->newton;
    c->stats.seconds_newton += fsi__now(c->context) - clock;
    return FSI_OK;
}

/* phi = max(phi, 1.5 dx - distance to an element): returns how many cells lost liquid. */
static int fsi__co_carve_element(const fsi__co_impl *c, fsi_field *phi, fsi_pair kind, const int *node)
{
    const fsi_grid *g = phi->grid;
    const double reach = 1.5 * c->dx;
    double x[12], local[3];
    int lo[3] = { 0, 0, 0 }, hi[3] = { 0, 0, 0 }, i[3], a, k, lost = 0;
    const int n = fsi_pair_points(kind) - 1;

    /* x: room for a cell's centre, then the points of the element */
    for (k = 0; k < n; k++) memcpy(x + 3 * (k + 1), c->sh->x + 3 * node[k], 3 * sizeof(double));

    /* the cells within reach of its bounding box */
    for (a = 0; a < g->dim; a++) {
        double least = HUGE_VAL, most = -HUGE_VAL;
        for (k = 0; k < n; k++) {
            fsi__co_local(c, x + 3 * (k + 1), local);
            least = fmin(least, local[a]);
            most = fmax(most, local[a]);
        }
        lo[a] = (int)fmax(0, floor((least - reach) / c->dx));
        hi[a] = (int)fmin(g->n[a] - 1, ceil((most + reach) / c->dx));
    }

    /* raise phi there */
    for (i[2] = lo[2]; i[2] <= hi[2]; i[2]++)
        for (i[1] = lo[1]; i[1] <= hi[1]; i[1]++)
            for (i[0] = lo[0]; i[0] <= hi[0]; i[0]++) {
                const long long e = fsi_grid_entry(g, i[0], i[1], i[2]);
                fsi_real at;
                if (e < 0) continue;
                fsi__sh_from(fsi_grid_position(g, FSI_CELLS, i[0], i[1], i[2]), x);
                at = (fsi_real)(reach - fsi_distance_between(kind, x).d);
                if (at <= phi->value[e]) continue;
                lost += phi->value[e] < 0;
                phi->value[e] = at;
            }
    return lost;
}

/* Removes the liquid beside the solid; targets become the volumes that are left. */
static fsi_status fsi__co_carve(fsi__co_impl *c, double *share)
{
    const fsi__sh_view *p = c->sh;
    int k, lost = 0;
    double before, now;
    for (k = 0; k < p->triangles; k++)
        lost += fsi__co_carve_element(c, c->ls->next_phi, FSI_POINT_TRIANGLE, p->triangle + 3 * k);
    for (k = 0; k < p->segments; k++)
        lost += fsi__co_carve_element(c, c->ls->next_phi, FSI_POINT_EDGE, p->segment + 2 * k);
    for (k = 0; k < p->points; k++)
        lost += fsi__co_carve_element(c, c->ls->next_phi, FSI_POINT_POINT, p->point + k);
    FSI__TRY(fsi__ls_measure_edit(c->run, lost > 0, &before, &now));
    c->s->carved_volume = lost > 0 ? fmax(0, before - now) : 0;
    *share = c->s->carved_volume / before;
    if (c->s->carved_volume > (double)c->s->desc.largest_loss * before)
        return fsi__fail(c->context, FSI_ERROR_LIMIT, "fsi_couple_create", -1, c->s->carved_volume,
            "the solid stands in liquid: %.3g of its volume would be taken away, largest_loss is %.3g",
            *share, (double)c->s->desc.largest_loss);
    return FSI_OK;
}

static fsi_status fsi__co_make_way(fsi__co_impl *c)
{
    double share = 0;
    FSI__TRY(fsi__ls_begin_edit(c->liquid, "fsi_couple_create", &c->run));
    FSI__TRY(fsi__ls_end_edit(c->run, fsi__co_carve(c, &share)));
    if (c->s->carved_volume > 0)
        fsi__warn(c->context,
            "fsi_couple_create: the solid stands in liquid: %.3g of its volume was taken away", share);
    return FSI_OK;
}

/* A step of 0 s: measures the present state. */
static fsi_status fsi__co_look(fsi__co_impl *c)
{
    double x[3];
    int k;
    FSI__TRY(fsi__sh_look(c->step));
    c->margin = 32 * c->dx;
    FSI__TRY(fsi__co_make_samples(c, c->sh->next_x));
    FSI__TRY(fsi__co_check_adhesion(c, "fsi_couple_step"));
    c->stats.samples = c->samples;
    for (k = 0; k < c->samples; k++) {
        double d;
        fsi__co_place(&c->sample[k], c->sh->next_x, x);
        d = fsi__co_distance_in(c, c->liquid->phi, x, NULL);
        c->stats.min_distance = fmin(c->stats.min_distance, d);
        c->stats.contacts += d < c->range;
    }
    return FSI_OK;
}

/* Settings that a coupling needs, which a set_desc of one part may have changed. */
static fsi_status fsi__co_check_settings(fsi_context *c, const fsi_levelset *liquid, const fsi_shell *shell,
                                         const char *fn)
{
    if (shell->desc.integrator != FSI_SHELL_BACKWARD_EULER)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "shell has another integrator than BACKWARD_EULER");
    if (!liquid->desc.conserve_volume)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "liquid has conserve_volume 0");
    return FSI_OK;
}

/* Neither has been somewhere by itself. */
static fsi_status fsi__co_check_together(const fsi__co_impl *c, const char *fn)
{
    static const char *const text =
        "the %s was moved by itself while it was coupled: stepped, settled, loaded, or its origin shifted";
    if (fsi__ls_moves(c->liquid) != c->liquid_moves)
        return fsi__fail(c->context, FSI_ERROR_ARGUMENT, fn, -1, c->liquid->time, text, "liquid");
    if (fsi__sh_moves(c->shell) != c->shell_moves)
        return fsi__fail(c->context, FSI_ERROR_ARGUMENT, fn, -1, c->shell->time, text, "shell");
    return FSI_OK;
}

static void fsi__co_note_moves(fsi__co_impl *c)
{
    c->liquid_moves = fsi__ls_moves(c->liquid);
    c->shell_moves = fsi__sh_moves(c->shell);
}

/* One message for results of a step that are worse than asked for. Of lost liquid and too long substeps the liquid
   warns. */
static void fsi__co_warn(const fsi__co_impl *c, const fsi_couple_stats *t)
{
    const int degraded = c->shell->stats.degraded;
    if (degraded == 0 && t->drowned == 0) return;
    fsi__warn(c->context,
              "fsi_couple_step: degraded: %d of %d substeps ended out of balance, %d samples between vertices lie in "
              "the liquid",
              degraded, t->substeps, t->drowned);
}

/* Memory for the forces given to nodes, those of bodies among them. PAPER has no walls that yield. */
static fsi_status fsi__co_make_step_room(fsi__co_impl *c, const char *fn)
{
    int k;
    for (k = 0; k < fsi__ls_solids(c->liquid) && c->s->desc.correction == FSI_COUPLE_PAPER; k++)
        if (fsi__co_shared_body(c, k) >= 0) {
            const int id = fsi__ls_solid_of(c->liquid, k).id;
            return fsi__fail(c->context, FSI_ERROR_ARGUMENT, fn, id, 0,
                "the body of the liquid's obstacle %d is COUPLED in liquid and shell: this needs correction MOMENTUM",
                id);
        }
    FSI__TRY(fsi__co_more(c, &c->given, 3 * sizeof(double), 0, &c->given_capacity, c->sh->nodes));
    return fsi__co_more(c, &c->felt, 3 * sizeof(double), 0, &c->felt_capacity, c->sh->nodes);
}

/* A PRESCRIBED body that is an obstacle of both has the impulses of both: the shell wrote its own last. */
static void fsi__co_join_reactions(const fsi__co_impl *c, fsi_real dt)
{
    int k;
    for (k = 0; k < fsi__ls_solids(c->liquid); k++) {
        const fsi__ls_solid p = fsi__ls_solid_of(c->liquid, k);
        fsi_body *body = p.body;
        if (!body || body->mode != FSI_BODY_PRESCRIBED || !fsi__sh_has_body(c->shell, body)) continue;
        body->impulse = fsi_v3_add(body->impulse, p.impulse);
        body->angular_impulse = fsi_v3_add(body->angular_impulse, p.spin);
        fsi_body_end_step(body, dt);
    }
}

/* A projection of liquid and solid together. */
static fsi_status fsi__co_project_both(fsi__co_impl *c, int which)
{
    fsi_pressure_flow flow;
    FSI__TRY(fsi__ls_open_projection(c->run, which, &flow));
    FSI__CO_LOOK(c, FSI__CO_PROJECTS, &flow);
    FSI__TRY(fsi__co_project(c, &flow));
    FSI__CO_LOOK(c, FSI__CO_PROJECTED, &flow);
    FSI__TRY(fsi__ls_close_projection(c->run));
    fsi__co_bound_shore(c);
    fsi__ls_finish_projection(c->run);
    return FSI_OK;
}

/* From the trial to the trial: forces, first projection, advection, positions and volumes by one optimisation, last
   projection. */
static fsi_status fsi__co_substep(fsi__co_impl *c)
{
    FSI__TRY(fsi__co_begin(c));
    FSI__TRY(fsi__ls_force(c->run));
    FSI__TRY(fsi__co_project_both(c, FSI__LS_FIRST));
    if (fsi__ls_smooths(c->run)) {
        FSI__TRY(fsi__ls_smooth(c->run));
        FSI__TRY(fsi__co_project_both(c, FSI__LS_AGAIN));
    }
    if (c->liquid->desc.viscosity > 0) {
        fsi__ls_hold_viscous(c->run);
        fsi__co_drag(c);
        FSI__TRY(fsi__ls_thicken(c->run));
        FSI__TRY(fsi__co_project_both(c, FSI__LS_AGAIN));
    }
    FSI__TRY(fsi__ls_advect_surface(c->run));
    fsi__co_ride(c);
    FSI__TRY(fsi__ls_advect(c->run));
    FSI__TRY(fsi__co_return_lost(c));
    FSI__TRY(fsi__ls_follow(c->run));
    FSI__TRY(fsi__co_settle(c));
    FSI__TRY(fsi__ls_settle(c->run));
    FSI__TRY(fsi__ls_regrid(c->run));
    return fsi__co_project_both(c, FSI__LS_LAST);
}

static fsi_status fsi__co_substeps(fsi__co_impl *c)
{
    const double share = 1.0 / (1 << c->retries);
    while (fsi__ls_left(c->run)) {
        FSI__TRY(fsi__ls_open(c->run, fsi__sh_fastest(c->step), share));
        FSI__TRY(fsi__co_substep(c));
        fsi__ls_close(c->run);
    }
    return FSI_OK;
}

/* Both begin, work on scratch, and end. The shell's end is left to fsi__sh_commit. */
static fsi_status fsi__co_run(fsi__co_impl *c, double dt, const char *fn)
{
    FSI__TRY(fsi__sh_begin(c->shell, dt, 1, fn, &c->step));
    FSI__TRY(fsi__co_make_step_room(c, fn));
    memset(&c->stats, 0, sizeof c->stats);
    c->stats.min_distance = (double)c->liquid->phi->background;
    c->dt = dt;
    memset(c->felt, 0, 3 * (size_t)c->sh->nodes * sizeof *c->felt);
    if (!(dt > 0)) FSI__TRY(fsi__co_look(c));
    FSI__TRY(fsi__ls_begin_step(c->liquid, dt, 1, fn, &c->run));
    return fsi__ls_end_step(c->run, fsi__co_substeps(c));
}

/* Runs the step; where it does not converge again, with substeps of half the length. All of them, not only the one that
   failed: what it fails on has often begun earlier, as where a sheet was thrown off a wall at a hundred times its
   speed. A run that fails leaves no trace. */
static fsi_status fsi__co_persist(fsi__co_impl *c, double dt, const char *fn)
{
    const fsi_error liquid = c->context->error, shell = c->shell->context->error;
    fsi_status status;
    c->retries = 0;
    status = fsi__co_run(c, dt, fn);
    while (status == FSI_ERROR_CONVERGENCE && c->retries < FSI__CO_MOST_RETRIES) {
        c->retries++;
        status = fsi__co_run(c, dt, fn);
    }
    if (status != FSI_OK || c->retries == 0) return status;

    /* the failures before are no errors of this call */
    c->shell->context->error = shell;
    c->context->error = liquid;
    return FSI_OK;
}

/* Publish the results of the coupling, after those of liquid and shell. Cannot fail. */
static void fsi__co_publish(fsi__co_impl *c)
{
    fsi_couple *s = c->s;
    int i, a;
    s->time += c->dt;
    for (i = 0; i < c->sh->vertices; i++)
        c->public_force[i] = c->dt > 0 ? fsi_v3_scale(fsi__sh_to(c->felt + 3 * (size_t)i), 1 / (fsi_real)c->dt)
            : fsi_v3(0, 0, 0);
    for (a = 0; a < 3; a++) c->stats.momentum[a] = s->liquid->stats.momentum[a] + s->shell->stats.momentum[a];
    c->stats.substeps = s->liquid->stats.substeps;
    c->stats.retries = c->retries;
    c->stats.degraded = s->shell->stats.degraded + (s->liquid->stats.degraded != 0);
    c->stats.volume_error = s->liquid->stats.volume_error;
    c->stats.seconds_pressure = s->liquid->stats.seconds_pressure;
    s->stats = c->stats;
}

FSI_API fsi_status fsi_couple_step(fsi_couple *s, fsi_real dt)
{
    static const char *const fn = "fsi_couple_step";
    fsi__co_impl *c = fsi__co_of(s);
    const double clock = c ? fsi__now(c->context) : 0;
    fsi_status status;

    /* all that is asked for */
    if (!c) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__check_dt(c->context, dt, fn));
    FSI__TRY(fsi__co_check_settings(c->context, s->liquid, s->shell, fn));
    FSI__TRY(fsi__co_check_together(c, fn));
    c->density = (double)s->liquid->desc.density;

    /* the step; errors of the shell are in its context */
    status = fsi__co_persist(c, (double)dt, fn);
    if (status != FSI_OK) {
        if (s->shell->context != c->context && s->shell->context->error.status == status)
            c->context->error = s->shell->context->error;
        return status;
    }

    /* what others see */
    fsi__sh_commit(c->step);
    if (dt > 0) fsi__co_join_reactions(c, dt);
    fsi__co_note_moves(c);
    fsi__co_publish(c);
    s->stats.seconds = fsi__now(c->context) - clock;
    fsi__co_warn(c, &s->stats);
    return FSI_OK;
}

FSI_API fsi_real fsi_couple_suggest_dt(const fsi_couple *s)
{
    const fsi__co_impl *c = fsi__co_of(s);
    const fsi__sh_view *sh;
    double most = 0;
    int i;
    if (!c) return 0;
    for (i = 0; i < s->shell->vertex_count; i++) most = fmax(most, (double)fsi_v3_norm(s->shell->velocity[i]));
    sh = fsi__sh_view_of(s->shell); /* obstacles may have come or gone since the last step */
    for (i = 0; i < sh->bodies; i++) {
        const fsi_body *body = sh->body[i].body;
        most = fmax(most, fsi__ls_fastest(body->velocity, body->angular_velocity, fsi__sh_body_reach(s->shell, i)));
    }
    return fsi__ls_suggest_dt(s->liquid, most, "fsi_couple_suggest_dt");
}

FSI__COLD_BEGIN

FSI_API void fsi_couple_debug_draw(const fsi_couple *s, const fsi_debug_draw *draw)
{
    const fsi__co_impl *c = fsi__co_of(s);
    double x[3];
    int k;
    if (!c || !draw) return;
    fsi_levelset_debug_draw(s->liquid, draw);
    fsi_shell_debug_draw(s->shell, draw);
    for (k = 0; draw->point && k < c->samples; k++) {
        fsi__co_place(&c->sample[k], c->sh->x, x);
        if (fsi__co_distance_in(c, c->liquid->phi, x, NULL) < c->range)
            draw->point(draw->user, fsi__sh_to(x), (fsi_real)(c->dx / 5), 0x00ffff);
    }
}

/* bytes of the states that follow; hash of time */
typedef struct fsi__co_head { uint64_t cookie, liquid, shell, check; double time; } fsi__co_head;

FSI_API fsi_status fsi_couple_shift_origin(fsi_couple *s, fsi_vec3 offset)
{
    fsi__co_impl *c = fsi__co_of(s);
    fsi_status status;
    if (!c) return FSI_ERROR_COOKIE;
    status = fsi__sh_check_shift(s->shell, offset, "fsi_couple_shift_origin");
    if (status != FSI_OK) s->context->error = s->shell->context->error;
    if (status == FSI_OK) status = fsi_levelset_shift_origin(s->liquid, offset);
    if (status != FSI_OK) return status;
    c->liquid_moves++; /* counted by one only: earlier separate steps of one part must stay visible */
    c->shell_moves++;
    return fsi_shell_shift_origin(s->shell, offset);
}

FSI_API fsi_status fsi_couple_save(const fsi_couple *s, void *buffer, size_t capacity, size_t *size)
{
    static const char *const fn = "fsi_couple_save";
    fsi__co_head head;
    const fsi__co_impl *c = fsi__co_of(s);
    size_t liquid = 0, shell = 0, need;
    if (!c) return FSI_ERROR_COOKIE;

    /* the size: a head and both states */
    FSI__TRY(fsi_levelset_save(s->liquid, NULL, 0, &liquid));
    FSI__TRY(fsi_shell_save(s->shell, NULL, 0, &shell));
    need = sizeof head + liquid + shell;
    if (size) *size = need;
    if (!buffer)
        return size ? FSI_OK : fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "both buffer and size are NULL");
    if (capacity < need)
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, -1, (double)need,
                         "the buffer holds %.0f bytes, the state needs %.0f", (double)capacity, (double)need);

    /* write them */
    head.cookie = FSI__COOKIE('C', fsi_couple);
    head.liquid = liquid;
    head.shell = shell;
    head.time = s->time;
    head.check = fsi_hash(&head.time, sizeof head.time, 0);
    memcpy(buffer, &head, sizeof head);
    FSI__TRY(fsi_levelset_save(s->liquid, (unsigned char *)buffer + sizeof head, liquid, NULL));
    return fsi_shell_save(s->shell, (unsigned char *)buffer + sizeof head + liquid, shell, NULL);
}

static fsi_status fsi__co_read_head(const fsi_couple *s, const void *buffer, size_t size, fsi__co_head *head)
{
    static const char *const fn = "fsi_couple_load";
    if (!buffer) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "buffer is NULL");
    if (size < sizeof *head)
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, (long long)size, 0,
                         "the buffer ends after %.0f bytes, inside its header", (double)size);
    memcpy(head, buffer, sizeof *head);
    if (head->cookie != FSI__COOKIE('C', fsi_couple))
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, 0, 0, "the buffer does not start with a coupling's state");
    if (head->liquid > size || head->shell > size || head->liquid + head->shell != size - sizeof *head)
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, (long long)size, 0,
                         "the parts of the state do not fill the buffer");
    if (fsi_hash(&head->time, sizeof head->time, 0) != head->check)
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, 0, "the state is damaged: a checksum differs");
    if (!(head->time >= 0 && head->time <= 1e15))
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, 0, head->time, "the state's time is %g seconds", head->time);
    return FSI_OK;
}

/* The solid of the state that was read is out of its liquid, or so little in it that a step puts it out. */
static fsi_status fsi__co_check_outside(const fsi__co_impl *c, const char *fn)
{
    int i;
    for (i = 0; i < c->sh->vertices; i++) {
        const double d = fsi__co_distance_in(c, c->ls->trial_phi, c->sh->next_x + 3 * i, NULL);
        if (!(d > -c->dx))
            return fsi__fail(c->context, FSI_ERROR_MESH, fn, i, d,
                             "the solid is in the liquid at vertex %d: phi is %g there", i, d);
    }
    return FSI_OK;
}

/* Both states are read and judged, each by itself and together, before one of them is taken. */
FSI_API fsi_status fsi_couple_load(fsi_couple *s, const void *buffer, size_t size)
{
    static const char *const fn = "fsi_couple_load";
    fsi__co_impl *c = fsi__co_of(s);
    const unsigned char *part;
    fsi__co_head head;
    fsi_status status;
    if (!c) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__co_read_head(s, buffer, size, &head));
    part = (const unsigned char *)buffer + sizeof head;
    status = fsi__sh_read_state(s->shell, part + head.liquid, (size_t)head.shell, fn);
    if (status != FSI_OK) {
        s->context->error = s->shell->context->error;
        return status;
    }
    FSI__TRY(fsi__ls_read_state(s->liquid, part, (size_t)head.liquid, &c->run));
    FSI__TRY(fsi__ls_take_state(c->run, fsi__co_check_outside(c, fn)));
    fsi__sh_take_state(s->shell);
    s->time = head.time;
    fsi__co_note_moves(c);
    return FSI_OK;
}

FSI_API uint64_t fsi_couple_hash(const fsi_couple *s)
{
    const fsi__co_impl *c = fsi__co_of(s);
    if (!c) return 0;
    return fsi_levelset_hash(s->liquid) * 0x9e3779b97f4a7c15u ^ fsi_shell_hash(s->shell);
}

FSI_API const fsi_error *fsi_couple_error(const fsi_couple *s)
{
    return fsi__error_of(fsi__co_of(s) ? s->context : NULL);
}

FSI_API fsi_couple_desc fsi_couple_default_desc(void)
{
    fsi_couple_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('c', fsi_couple_desc);
    d.metric = FSI_METRIC_SPLINE;
    d.stiffness = 5;
    d.sample_spacing = 1;
    d.tolerance = (fsi_real)7e-3;
    d.largest_loss = 1;
    return d;
}

/* Liquid and shell are there and go together. */
static fsi_status fsi__co_check_pair(const fsi_couple_desc *d)
{
    static const char *const fn = "fsi_couple_create";
    const int liquid = fsi__is_levelset(d->liquid), shell = fsi__sh_view_of(d->shell) != NULL;
    fsi_context *c = liquid ? d->liquid->context : shell ? d->shell->context : NULL;
    if (!liquid)
        return fsi__fail(c, FSI_ERROR_COOKIE, fn, -1, 0, "liquid is %s", d->liquid ? "no fsi_levelset" : "NULL");
    if (!shell) return fsi__fail(c, FSI_ERROR_COOKIE, fn, -1, 0, "shell is %s", d->shell ? "no fsi_shell" : "NULL");
    if (d->liquid->desc.dim != d->shell->desc.dim)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, d->shell->desc.dim, "liquid has dim %d, shell %d",
                         d->liquid->desc.dim, d->shell->desc.dim);
    return fsi__co_check_settings(c, d->liquid, d->shell, fn);
}

/* The numbers, for a liquid of this cell width. */
static fsi_status fsi__co_check(fsi_context *c, const fsi_couple_desc *d, double dx, const char *fn)
{
    const double reach = 16 * dx;
    const fsi__field rows[] = {
        FSI__FIELD(fsi_couple_desc, metric, FSI__INT, 0, FSI_METRIC_SPLINE, 0),
        FSI__FIELD(fsi_couple_desc, correction, FSI__INT, 0, FSI_COUPLE_PAPER, 0),
        FSI__FIELD(fsi_couple_desc, range, FSI__REAL, 0, reach, 0),
        FSI__FIELD(fsi_couple_desc, stiffness, FSI__REAL, 0.1, 100, 0),
        FSI__FIELD(fsi_couple_desc, sample_spacing, FSI__REAL, 0.2, 10, FSI__OR_ZERO),
        FSI__FIELD(fsi_couple_desc, tolerance, FSI__REAL, 0, 0.1, FSI__ABOVE),
        FSI__FIELD(fsi_couple_desc, adhesion, FSI__REAL, 0, FSI__HUGE, 0),
        FSI__FIELD(fsi_couple_desc, largest_loss, FSI__REAL, 0, 1, 0)
    };
    const fsi__where at = { fn, "desc.", -1, 3 };
    return FSI__CHECK_TABLE(c, &at, d, rows);
}

FSI_API fsi_status fsi_couple_set_desc(fsi_couple *s, const fsi_couple_desc *desc)
{
    fsi__co_impl *c = fsi__co_of(s);
    fsi_couple_desc d;
    int i;
    if (!c) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__check_filled(c->context, "fsi_couple_set_desc", desc, FSI__COOKIE('c', fsi_couple_desc),
        "fsi_couple_default_desc"));
    d = *desc;
    d.liquid = s->desc.liquid;
    d.shell = s->desc.shell;
    d.largest_loss = s->desc.largest_loss;
    FSI__TRY(fsi__co_check(c->context, &d, c->dx, "fsi_couple_set_desc"));
    for (i = 0; (d.adhesion < s->desc.adhesion || d.adhesion > s->desc.adhesion) && i < c->sh->vertices; i++)
        s->adhesion[i] = d.adhesion;
    c->range = d.range > 0 ? (double)d.range : c->dx;
    s->desc = d;
    return FSI_OK;
}

FSI_API void fsi_couple_destroy(fsi_couple *s)
{
    fsi__co_impl *c = fsi__co_of(s);
    fsi_context *context;
    if (!c) return;
    context = c->context;

    /* samples and the unknowns of positions */
    if (c->start) fsi_grid_remove_field(c->start);
    fsi__free(context, s->adhesion, (size_t)c->sh->vertices, sizeof *s->adhesion);
    fsi__free(context, c->pieces, (size_t)c->sh->edges + (size_t)c->sh->triangles, sizeof(int));
    fsi__free(context, c->sample, (size_t)c->sample_capacity, sizeof *c->sample);
    fsi__free(context, c->map, (size_t)c->map_room, sizeof(int));
    fsi__free(context, c->lost, (size_t)c->lost_room, sizeof(double));
    fsi__free(context, c->beside, (size_t)c->beside_room, 1);
    fsi__free(context, c->cell, (size_t)c->cell_capacity, sizeof *c->cell);
    fsi__free(context, c->part, (size_t)c->part_capacity, sizeof *c->part);
    fsi__free(context, c->contact, (size_t)c->contact_capacity, sizeof *c->contact);

    /* Newton's system */
    fsi__free(context, c->total_start, (size_t)c->total_rows_capacity, sizeof(int));
    fsi__free(context, c->total_col, (size_t)c->total_capacity, sizeof(int));
    fsi__free(context, c->total_map, (size_t)c->map_capacity, sizeof(int));
    fsi__free(context, c->total_value, (size_t)c->value_capacity, 9 * sizeof(double));
    fsi__free(context, c->right, (size_t)c->right_capacity, 3 * sizeof(double));
    fsi__free(context, c->solution, (size_t)c->solution_capacity, 3 * sizeof(double));
    fsi__free(context, c->row, (size_t)c->row_capacity, sizeof(int));
    fsi__free(context, c->reached, (size_t)c->reached_capacity, sizeof(int));
    fsi__free(context, c->krylov, (size_t)c->krylov_capacity, 7 * sizeof(double));
    fsi__free(context, c->way, (size_t)c->way_capacity, 6 * sizeof(double));
    fsi__free(context, c->key, (size_t)c->key_capacity, sizeof *c->key);

    /* faces and velocities */
    fsi_solver_destroy(c->inertial);
    fsi_grid_faces_destroy(c->list);
    fsi__free(context, c->touch, (size_t)c->touch_capacity, sizeof *c->touch);
    fsi__free(context, c->face, (size_t)c->face_capacity, sizeof *c->face);
    fsi__free(context, c->share, (size_t)c->share_capacity, sizeof *c->share);
    fsi__free(context, c->mass, (size_t)c->mass_capacity, sizeof *c->mass);
    fsi__free(context, c->v, (size_t)c->v_capacity, 3 * sizeof(double));
    fsi__free(context, c->load, (size_t)c->load_capacity, 3 * sizeof(double));
    fsi__free(context, c->given, (size_t)c->given_capacity, 3 * sizeof(double));
    fsi__free(context, c->felt, (size_t)c->felt_capacity, 3 * sizeof(double));
    fsi__free(context, c->public_force, (size_t)c->sh->vertices, sizeof(fsi_vec3));
    fsi__arena_free(context, &c->columns);
    fsi__free(context, c->solid, (size_t)c->solid_capacity, sizeof *c->solid);

    fsi__free(context, c, 1, sizeof *c);
    s->cookie = 0;
    fsi__free(context, s, 1, sizeof *s);
}

/* Allocates arrays with a row for each vertex or element. */
static fsi_status fsi__co_make_room(fsi__co_impl *c)
{
    const int n = c->sh->vertices;
    int i;
    c->s->adhesion = (fsi_real *)fsi__alloc(c->context, (size_t)n, sizeof(fsi_real));
    c->s->liquid_force = c->public_force = (fsi_vec3 *)fsi__alloc(c->context, (size_t)n, sizeof(fsi_vec3));
    c->pieces = (int *)fsi__alloc(c->context, (size_t)c->sh->edges + (size_t)c->sh->triangles, sizeof(int));
    if (!c->s->adhesion || !c->public_force || !c->pieces)
        return fsi__fail(c->context, FSI_ERROR_MEMORY, "fsi_couple_create", -1, n, "no memory for %d vertices", n);
    for (i = 0; i < n; i++) {
        c->s->adhesion[i] = c->s->desc.adhesion;
        c->public_force[i] = fsi_v3(0, 0, 0);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_couple_create(fsi_couple **out, const fsi_couple_desc *desc)
{
    fsi_couple *s;
    fsi__co_impl *c;
    fsi_solver_desc solver = fsi_solver_default_desc();
    fsi_status status;

    /* check, and allocate */
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('c', fsi_couple_desc)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__co_check_pair(desc));
    FSI__TRY(fsi__co_check(desc->liquid->context, desc, (double)desc->liquid->desc.dx, "fsi_couple_create"));
    s = (fsi_couple *)fsi__alloc(desc->liquid->context, 1, sizeof *s);
    c = (fsi__co_impl *)fsi__alloc(desc->liquid->context, 1, sizeof *c);
    if (!s || !c) {
        fsi__free(desc->liquid->context, s, 1, sizeof *s);
        fsi__free(desc->liquid->context, c, 1, sizeof *c);
        return fsi__fail(desc->liquid->context, FSI_ERROR_MEMORY, "fsi_couple_create", -1, 0,
                         "no memory for a coupling");
    }

    /* fields that the desc gives */
    s->cookie = FSI__COOKIE('C', fsi_couple);
    s->context = c->context = desc->liquid->context;
    s->desc = *desc;
    s->liquid = c->liquid = desc->liquid;
    s->shell = c->shell = desc->shell;
    s->impl = c;
    c->s = s;
    c->total.block = 3;
    c->ls = fsi__ls_view_of(desc->liquid);
    c->sh = fsi__sh_view_of(desc->shell);
    c->dx = (double)desc->liquid->desc.dx;
    c->volume = desc->liquid->desc.dim == 3 ? c->dx * c->dx * c->dx : c->dx * c->dx;
    c->density = (double)desc->liquid->desc.density;
    c->range = desc->range > 0 ? (double)desc->range : c->dx;
    c->margin = 32 * c->dx;
    fsi__co_note_moves(c);

    /* solver, scratch and samples; then liquid near the solid is removed */
    solver.context = c->context;
    solver.ordering = fsi_dissection();
    status = fsi__co_make_room(c);
    if (status == FSI_OK) status = fsi_solver_create(&c->inertial, &solver);
    if (status == FSI_OK) status = fsi_grid_faces_create(&c->list, c->context);
    if (status == FSI_OK)
        status = fsi_grid_add_field(desc->liquid->grid, FSI_CELLS, c->liquid->phi->background, &c->start);
    if (status == FSI_OK) status = fsi__co_make_samples(c, c->sh->x);
    if (status == FSI_OK) status = fsi__co_make_way(c);
    if (status != FSI_OK) {
        fsi_couple_destroy(s);
        return status;
    }

    *out = s;
    return FSI_OK;
}

FSI__COLD_END

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
