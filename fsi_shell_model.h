/* fsi_shell_model.h - what thin solids are made of: materials, elements, masses, their energies and dampers
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_shell.h includes this file. Fill a fsi_shell_desc with vertices, elements and materials and give it
      to fsi_shell_create, as the front page of fsi_shell.h shows. docs/shell.md derives the energies.

   WHAT IT DOES
      Checks a description, finds the edges of triangles and the rods that segments form, and makes elements of them:
      membranes, hinges and plates with creases, rods that stretch, bend and twist. Sums their energies, with
      gradients, Hessians, wind on triangles, and dampers.

   WHAT IS IN HERE (search for >>)
      >>materials  >>description, the API;  >>stages  for fsi's own headers, not for you;  then >>material numbers
      >>sides and rods of a scene  >>elements of a scene  >>rods of a scene  >>making a scene  >>energies
      >>frames and wind  >>damping
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: double.
*/
#ifndef FSI_SHELL_MODEL_H
#define FSI_SHELL_MODEL_H

#include "fsi_elements.h"

/* ---- >>materials ------------------------------------------------------------------------------------------------- */

typedef enum fsi_shell_membrane {
    FSI_SHELL_STVK,        /* St. Venant-Kirchhoff, orthotropic: small strains, large turns: cloth, paper */
    FSI_SHELL_NEO_HOOKEAN  /* stable neo-Hookean, isotropic: large strains: rubber */
} fsi_shell_membrane;

typedef enum fsi_shell_bending {
    FSI_SHELL_HINGE,          /* each edge resists by itself (Grinspun et al. 2003): cheap; stiffness depends on the
                                 mesh, shell.md */
    FSI_SHELL_SHAPE_OPERATOR  /* the three edges of a triangle together: plate theory with Poisson's effect; nearly
                                 twice the cost */
} fsi_shell_bending;

/* A material of triangles and segments. Sheets use thickness, segments radius; both may share one material. */
typedef struct fsi_shell_material {
    uint32_t cookie;
    fsi_real density;      /* [kg/m^3], > 0; default 1000 */
    fsi_real thickness;    /* of triangles, in 2D of segments [m], > 0; default 0.001 */
    fsi_real radius;       /* of segments, of a round section; of an elliptic one the half axis along the first director
                              [m], > 0; default 0.001 */
    fsi_real radius_across;/* the other half axis; default 0: as radius */
    fsi_real young;        /* Young's modulus, along the warp [Pa], > 0; default 1e6 */
    fsi_real young_weft;   /* across it, triangles only; default 0: as young */
    fsi_real poisson;      /* warp to weft, triangles; -0.999 to 0.5; default 0.3 */
    fsi_real shear;        /* shear modulus [Pa]; default 0: young / (2 (1 + nu)), of the softer direction */
    fsi_real bend, bend_weft; /* bending stiffness of triangles along warp and weft [N m]; default -1: E t^3 / (12 (1 -
                                 nu^2)). Woven cloth bends far more easily than that: measured values go here */
    fsi_real bend_shear;   /* resistance to being twisted, D66 [N m]; default -1: G t^3 / 12 where bend is -1, else (1 -
                              nu)/2 sqrt(bend bend_weft) */
    fsi_shell_membrane membrane; /* default STVK */
    fsi_shell_bending bending;   /* default HINGE */
    int twist;             /* 1 (default): segments resist twisting, with one unknown more each. 0: in 3D the direction
                              of bending is free; rest curvature and dampers act on the size of the curvature */
    fsi_real damping_mass; /* Rayleigh, alpha [1/s], damps velocities, as a viscous medium does; default 0 */
    fsi_real damping_stiffness; /* beta [s]: damps strain rates (shell.md 6); default 0 */
    fsi_real clearance;    /* distance that others keep from the mid-surface or axis, added to their own clearance: half
                              a thickness, a radius [m]; default 0. Pairs that are closer at rest are exempt */
} fsi_shell_material;

/* name, what it is; thickness or radius, density, moduli: shell.md 2 gives the sources */
#define FSI_SHELL_PRESETS(X)                                                                                           \
    X(FSI_SHELL_SILK, "silk")                                                                                          \
    X(FSI_SHELL_COTTON, "cotton") X(FSI_SHELL_LEATHER, "leather") X(FSI_SHELL_RUBBER, "rubber sheet")                  \
        X(FSI_SHELL_LEAF, "leaf") X(FSI_SHELL_PAPER, "paper") X(FSI_SHELL_STEEL_WIRE, "steel wire")                    \
            X(FSI_SHELL_SPIDER_SILK, "spider silk")
#define FSI__SHELL_PRESET_ENUM(name, text) name,
typedef enum fsi_shell_preset_kind {
    FSI_SHELL_PRESETS(FSI__SHELL_PRESET_ENUM) FSI_SHELL_PRESET_COUNT
} fsi_shell_preset_kind;

FSI_API fsi_shell_material fsi_shell_default_material(void); /* fills every field */
/* a material by physical numbers; the default one for a kind that does not exist */
FSI_API fsi_shell_material fsi_shell_preset(fsi_shell_preset_kind kind);
/* "silk" ..., "" for one that does not exist */
FSI_API const char *fsi_shell_preset_name(fsi_shell_preset_kind kind);

/* ---- >>description ----------------------------------------------------------------------------------------------- */

typedef enum fsi_shell_integrator {
    FSI_SHELL_BACKWARD_EULER, /* first order, damps unresolved motion: robust */
    FSI_SHELL_BDF2            /* second order, far less damping: flags, swinging, vibration; the first step after a
                                 start is backward Euler */
} fsi_shell_integrator;

/* An edge with a rest angle and a stiffness of its own. */
typedef struct fsi_shell_crease {
    int a, b;             /* an edge of two triangles; each has one crease at most */
    fsi_real angle;       /* [rad], in (-pi, pi); 0 flat; positive: the triangle in which a comes before b, and the
                             other one, fold away from the side its normal points to (their normals spread) */
    fsi_real stiffness;   /* times that of the uncreased edge, >= 0: paper that was folded is softer there */
} fsi_shell_crease;

/* How to make a fsi_shell; fsi_shell_default_desc fills it. The caller's arrays are copied. */
typedef struct fsi_shell_desc {
    uint32_t cookie;
    fsi_context *context;            /* default NULL */
    int dim;                         /* 3 (default) or 2 (z = 0, segments only) */
    const fsi_vec3 *vertices;        /* vertex_count positions at the start [m] */
    int vertex_count;
    const fsi_vec3 *rest;            /* stress-free positions [m], vertex_count; default NULL: vertices */
    const int *triangles;            /* 3 * triangle_count indices */
    int triangle_count;
    const int *segments;             /* 2 * segment_count indices */
    int segment_count;
    const fsi_shell_material *materials; /* material_count of them, copied */
    int material_count;
    const int *triangle_material, *segment_material; /* one index each; default NULL: material 0 */
    const fsi_vec3 *warp;            /* direction of the warp in rest space, one a triangle; default NULL: x, or y where
                                        the triangle faces x */
    const fsi_vec3 *segment_director;/* rest direction of the half axis `radius` of each segment, made normal to it;
                                        default NULL: carried along each rod without turning */
    const fsi_real *vertex_mass;     /* added to each vertex [kg], vertex_count; points need it: vertices without an
                                        element; default NULL: 0 */
    const int *joints;               /* 3 * joint_count indices a, b, c: segments ab and bc resist being bent at b.
                                        Where exactly two segments meet that is the default; list joints of branching
                                        rods only */
    int joint_count;
    const fsi_shell_crease *creases; /* crease_count folds; default NULL */
    int crease_count;
    fsi_vec3 gravity;                /* [m/s^2]; default (0, 0, -9.81) */
    fsi_shell_integrator integrator; /* default BACKWARD_EULER */
    int substeps;                    /* of each step, 1 to 1000; default 1 */
    int max_newton;                  /* Newton steps a substep; stats.degraded counts substeps that needed more; default
                                        100 */
    fsi_real tolerance;              /* Newton's method ends when no vertex moves farther than tolerance * mean edge and
                                        the root mean square error of friction is at most this fraction of Coulomb's
                                        force; default 1e-3 */
    int contact;                     /* 1 (default): self-contact and obstacles; 0: none, faster */
    int self_contact;                /* 0: obstacles only; default 1 */
    fsi_real contact_range;          /* d_hat: repulsion begins at this gap [m]; default 0: 0.15 of the mean edge */
    fsi_real friction;               /* Coulomb's coefficient between its own parts, 0 to 10; default 0 */
    fsi_real friction_speed;         /* slower than this counts as sticking [m/s], > 0; default 3e-4 */
    int friction_iterations;         /* solves a substep, each with the normal forces of the one before, 1 to 20;
                                        default 1 */
    fsi_vec3 wind;                   /* velocity of the air [m/s]; default 0 */
    fsi_real air_density;            /* [kg/m^3]; triangles feel the air, f = c/2 rho A |u_n| u_n along the normal;
                                        default 0: none; air: 1.2 */
    fsi_real drag;                   /* c of that, 0 to 10; default 1.2 */
} fsi_shell_desc;

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* The model of a scene; steps do not change it. Unknowns come in nodes of three numbers: first the vertices, then one
   for the twist of each segment that has one (of which only the first number is used). Elements come in kinds. */
enum { FSI__SM_MEMBRANE, FSI__SM_HINGE, FSI__SM_PLATE, FSI__SM_STRETCH, FSI__SM_JOINT, FSI__SM_BEND, FSI__SM_KINDS };

typedef struct fsi__sm_fold { double k, rest; } fsi__sm_fold;          /* HINGE */
typedef struct fsi__sm_bar { double ea, rest; } fsi__sm_bar;           /* STRETCH */
typedef struct fsi__sm_bow { double b, rest; } fsi__sm_bow;            /* BEND; rest has a sign in 2D */

/* One side of a triangle. */
typedef struct fsi__sm_side { int lo, hi, triangle, corner; } fsi__sm_side;

typedef struct fsi__sm_model {
    int dim, vertices, triangles, segments, twists, materials;
    int edges;                          /* for contact: of triangles, each once, and segments */
    int points;                         /* vertices of no element */
    int joints;                         /* JOINT and BEND: listed ones at the end */
    int count[FSI__SM_KINDS], first[FSI__SM_KINDS + 1]; /* elements of a kind; where they begin in the list of all */
    fsi_shell_material *material;
    int *triangle, *segment, *triangle_material, *segment_material;
    int *chain;                         /* 2 * segments: its vertices in the direction that it has as part of a rod */
    int *twist_node;                    /* segments: its node, -1: none */
    int *twist_of;                      /* twists: its segment */
    int *edge, *point;                  /* 2 * edges; points */
    int *part;                          /* vertices: the lowest vertex of its connected component */
    fsi__shell_membrane *membrane;
    fsi__sm_fold *fold;
    fsi__shell_plate *plate;
    fsi__sm_bar *bar;
    fsi__shell_joint *joint;
    fsi__sm_bow *bow;
    int *joint_segment;                 /* 2 * JOINTs */
    int *element_material;              /* all elements */
    int *start, *node;                  /* elements + 1; nodes of each, -1: absent */
    size_t *value_at;                   /* elements + 1: where the matrix of each is */
    double *drag_mass;                  /* vertices + twists: alpha M [kg/s] */
    unsigned char *bare;                /* edges: 1: of no triangle */
    double *share;                      /* elements: smallest mass that one of its vertices assigns to it [kg] */
    double *mass;                       /* vertices + twists [kg, kg m^2] */
    double *clearance;                  /* vertices: the largest of its elements [m] */
    double *edge_length2;               /* edges: length at rest, squared */
    double *area;                       /* triangles, at rest */
    double *rest;                       /* 3 * vertices */
    fsi__shell_frame *frame;            /* segments: of the rods at rest */
    double mean_edge, total_mass;
} fsi__sm_model;

/* Moduli of a material. Orthotropic plane stress: nu_12 / E1 = nu_21 / E2. c, d: 11, 22, 12, 66. */
typedef struct fsi__sm_moduli {
    double c[4];
    double d[4];
    double mu, lambda;
    double ea, ei[2], gj, area, polar;
} fsi__sm_moduli;

/* Temporary data of making a model; the caller frees `temporary`. */
typedef struct fsi__sm_maker {
    fsi_context *context;
    const char *fn;
    const fsi_shell_desc *desc;
    fsi__sm_model *m;
    fsi__sm_moduli *moduli;             /* materials */
    fsi__sm_side *side;                 /* 3 * triangles, sorted by edge */
    int sides, runs;                    /* runs: edges of triangles */
    int *run;                           /* runs + 1: where each begins */
    int *side_run;                      /* 3 * triangles: run of corner k of triangle t */
    const fsi_shell_crease **crease;    /* runs: the one there, or NULL */
    fsi__sm_side *span;                 /* segments, sorted by their ends; `triangle` is the segment */
    int *degree, *meet;                 /* vertices: segments there; 2 * vertices: the two, where there are two */
    unsigned char *seen;                /* segments */
    double *wanted;                     /* vertices + twists: weights of the elements there */
    fsi__arena temporary;
} fsi__sm_maker;

enum { FSI__SM_VALUE, FSI__SM_GRADIENT, FSI__SM_HESSIAN }; /* each with those before it */

/* The energies of all elements at q [J]. */
typedef struct fsi__sm_pass {
    fsi_context *context;
    const fsi__sm_model *model;   /* without dampers, or with */
    const double *q;              /* 3 * (vertices + twists) */
    const fsi__shell_frame *frame; /* segments: reference frames at q */
    const double *twist;          /* JOINTs: angle between the frames of its segments */
    const double *wind;           /* 4 * triangles, of lag_wind; NULL: no wind */
    const double *air;            /* velocity of the wind [m/s] */
    const double *base;           /* 3 * vertices: velocities are (q - base) / h */
    double h;                     /* [s] */
    int exact;                    /* 0: projected Hessians */
    int what;                     /* FSI__SM_VALUE, ... */
    double *energy, *vector, *value; /* results: elements; gradients at 3 * start; Hessians at value_at */
} fsi__sm_pass;

/* dim, and the settings that may change after create. */
FSI_API fsi_status fsi__sm_check_settings(fsi_context *c, const char *fn, const fsi_shell_desc *d);
FSI_API fsi_status fsi__sm_check_desc(fsi_context *c, const char *fn, const fsi_shell_desc *d); /* all of it */
/* Finite, below 1e12, in the plane where dim is 2. x: may be NULL. */
FSI_API fsi_status fsi__sm_check_vectors(fsi_context *c, const char *fn, const fsi_vec3 *x, int count, const char *what,
                                         int dim);
/* The model that the desc describes: k->m, in the two arenas, which the caller frees, on failure too. Errors: MESH,
   ARGUMENT (a joint, a crease), MEMORY. */
FSI_API fsi_status fsi__sm_make_model(fsi__sm_maker *k, fsi__arena *given, fsi__arena *counted);
/* Frames of all segments where vertices are at x: by segment_director, or carried along each rod. seen: scratch,
   segments. */
FSI_API void fsi__sm_make_frames(const fsi__sm_maker *k, const double *x, fsi__shell_frame *frame, unsigned char *seen);
/* Sum of the elements' energies [J], in fixed order. */
FSI_API double fsi__sm_energies(fsi__sm_pass *w);
/* Frames go with the rods to q, reference twists with the frames. */
FSI_API void fsi__sm_carry(const fsi__sm_model *m, const double *q, fsi__shell_frame *frame, double *twist);
/* The wind on each triangle at positions x, velocities v: wind[4 t] = drag/2 rho A |u_n| [kg/s], then the normal. */
FSI_API void fsi__sm_lag_wind(const fsi__sm_model *m, const double *x, const double *v, const double *air, double drag,
                              double density, double *wind);
/* A model like m whose elements' parameters are its own, in the arena. */
FSI_API void fsi__sm_lay_damped(const fsi__sm_model *m, fsi__sm_model *d, fsi__arena *a);
/* d: the elements of p, with a damper in each, for a step of dt seconds that begins at q. */
FSI_API void fsi__sm_damp(const fsi__sm_model *p, fsi__sm_model *d, const fsi__shell_frame *frame, const double *twist,
                          const double *q, double dt);

#endif /* FSI_SHELL_MODEL_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_SHELL_MODEL_IMPLEMENTATION
#define FSI_SHELL_MODEL_IMPLEMENTATION
#endif
#ifdef FSI_SHELL_MODEL_IMPLEMENTATION
#ifndef FSI_SHELL_MODEL_IMPLEMENTATION_DONE
#define FSI_SHELL_MODEL_IMPLEMENTATION_DONE

/* Making a model: fsi__sm_check_desc, then fsi__sm_make_model

      copy_desc, sort_sides, find_rods   triangles by edges; segments in a row get one direction
      place_creases, count_elements      how many elements of each kind there are
      make_membranes, make_hinges, make_plates, make_bars, make_frames, make_joints
      find_parts, list_edges, share_mass connected components; edges for contact; masses of elements

   A substep: fsi__sm_lag_wind, fsi__sm_damp; fsi__sm_energies of each iterate, fsi__sm_carry when it is accepted. */

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_elements.h"

#include <stdio.h>
#include <stdlib.h>

FSI__STRICT_BEGIN

/* Nodes of each kind of element. */
static const int fsi__sm_nodes[FSI__SM_KINDS] = { 3, 4, 6, 2, 5, 3 };

FSI__COLD_BEGIN

/* ---- >>material numbers ------------------------------------------------------------------------------------------ */

FSI_API fsi_shell_material fsi_shell_default_material(void)
{
    fsi_shell_material m;
    memset(&m, 0, sizeof m);
    m.cookie = FSI__COOKIE('m', fsi_shell_material);
    m.density = 1000;
    m.thickness = m.radius = (fsi_real)0.001;
    m.young = (fsi_real)1e6;
    m.poisson = (fsi_real)0.3;
    m.bend = m.bend_weft = m.bend_shear = -1;
    m.twist = 1;
    return m;
}

/* One line a preset, in the order of FSI_SHELL_PRESETS. Sheets: thickness [m], density [kg/m^3], E warp, E weft [Pa],
   nu, G [Pa], bend warp, weft [N m]; rods: radius, density, E, -, nu. Sources: docs/shell.md 2. */
static const struct {
    double size, density, young, weft, poisson, shear, bend, bend_weft;
    int rod;
    fsi_shell_membrane membrane;
    fsi_shell_bending bending;
    const char *name;
} fsi__sm_presets[] = {
    {1.2e-4, 500, 4.0e7, 3.0e7, 0.25, 4.0e5, 3.0e-6, 2.0e-6, 0, FSI_SHELL_STVK, FSI_SHELL_HINGE, "silk"},
    {3.5e-4, 450, 2.5e7, 1.5e7, 0.25, 3.0e5, 9.0e-6, 6.0e-6, 0, FSI_SHELL_STVK, FSI_SHELL_HINGE, "cotton"},
    {1.2e-3, 860, 5.0e7, 0, 0.35, 0, -1, -1, 0, FSI_SHELL_STVK, FSI_SHELL_SHAPE_OPERATOR, "leather"},
    {1.0e-3, 1100, 1.5e6, 0, 0.49, 0, -1, -1, 0, FSI_SHELL_NEO_HOOKEAN, FSI_SHELL_SHAPE_OPERATOR, "rubber sheet"},
    {2.5e-4, 800, 5.0e7, 0, 0.3, 0, -1, -1, 0, FSI_SHELL_STVK, FSI_SHELL_SHAPE_OPERATOR, "leaf"},
    {1.0e-4, 800, 5.0e9, 2.5e9, 0.3, 1.3e9, -1, -1, 0, FSI_SHELL_STVK, FSI_SHELL_SHAPE_OPERATOR, "paper"},
    {2.5e-4, 7850, 2.0e11, 0, 0.29, 0, -1, -1, 1, FSI_SHELL_STVK, FSI_SHELL_HINGE, "steel wire"},
    {2.0e-6, 1300, 1.0e10, 0, 0.4, 0, -1, -1, 1, FSI_SHELL_STVK, FSI_SHELL_HINGE, "spider silk"}};

static int fsi__sm_is_preset(fsi_shell_preset_kind kind) { return (int)kind >= 0 && kind < FSI_SHELL_PRESET_COUNT; }

FSI_API const char *fsi_shell_preset_name(fsi_shell_preset_kind kind)
{
    return fsi__sm_is_preset(kind) ? fsi__sm_presets[kind].name : "";
}

FSI_API fsi_shell_material fsi_shell_preset(fsi_shell_preset_kind kind)
{
    fsi_shell_material m = fsi_shell_default_material();
    if (!fsi__sm_is_preset(kind)) return m;
    *(fsi__sm_presets[kind].rod ? &m.radius : &m.thickness) = (fsi_real)fsi__sm_presets[kind].size;
    m.density = (fsi_real)fsi__sm_presets[kind].density;
    m.young = (fsi_real)fsi__sm_presets[kind].young;
    m.young_weft = (fsi_real)fsi__sm_presets[kind].weft;
    m.poisson = (fsi_real)fsi__sm_presets[kind].poisson;
    m.shear = (fsi_real)fsi__sm_presets[kind].shear;
    m.bend = (fsi_real)fsi__sm_presets[kind].bend;
    m.bend_weft = (fsi_real)fsi__sm_presets[kind].bend_weft;
    m.membrane = fsi__sm_presets[kind].membrane;
    m.bending = fsi__sm_presets[kind].bending;
    if (fsi__sm_presets[kind].rod) m.clearance = m.radius;
    return m;
}


static fsi__sm_moduli fsi__sm_moduli_of(const fsi_shell_material *m)
{
    fsi__sm_moduli r;
    const double e1 = (double)m->young, e2 = m->young_weft > 0 ? (double)m->young_weft : e1, nu = (double)m->poisson,
                 t = (double)m->thickness;
    const double nu21 = nu * e2 / e1, g = m->shear > 0 ? (double)m->shear : (e1 < e2 ? e1 : e2) / (2 * (1 + nu)),
                 whole = 1 - nu * nu21, cube = t * t * t / 12;
    const double a = (double)m->radius, b = m->radius_across > 0 ? (double)m->radius_across : a,
                 section = FSI_PI * a * b;

    /* Membrane: plane stress. */
    r.c[0] = e1 / whole;
    r.c[1] = e2 / whole;
    r.c[2] = nu21 * e1 / whole;
    r.c[3] = g;

    /* Bending of sheets; without measured values that of a homogeneous plate. */
    r.d[0] = m->bend >= 0 ? (double)m->bend : r.c[0] * cube;
    r.d[1] = m->bend_weft >= 0 ? (double)m->bend_weft : (m->bend >= 0 ? r.d[0] : r.c[1] * cube);
    r.d[2] = nu * sqrt(r.d[0] * r.d[1]);
    if (m->bend < 0 && m->bend_weft < 0) r.d[2] = r.c[2] * cube;
    r.d[3] = m->bend_shear >= 0 ? (double)m->bend_shear
                                : (m->bend < 0 && m->bend_weft < 0 ? g * cube : (1 - nu) / 2 * sqrt(r.d[0] * r.d[1]));

    /* Moduli of neo-Hookean membranes. */
    r.mu = g;
    r.lambda = e1 * nu / (1 - nu * nu) + g;

    /* Rods: elliptical cross-section. */
    r.area = section;
    r.ea = e1 * section;
    r.ei[0] = e1 * section * a * a / 4; /* about the second director: a lies along the first one; I = pi b a^3 / 4 */
    r.ei[1] = e1 * section * b * b / 4;
    r.polar = section * (a * a + b * b) / 4;
    r.gj = (m->shear > 0 ? (double)m->shear : e1 / (2 * (1 + nu))) * section * a * a * b * b / (a * a + b * b);
    return r;
}


static fsi_status fsi__sm_check_material(fsi_context *c, const char *fn, const fsi_shell_material *m, int index)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_shell_material, density, FSI__REAL, 1e-12, 1e20, 0),
        FSI__FIELD(fsi_shell_material, thickness, FSI__REAL, 1e-9, 1e3, 0),
        FSI__FIELD(fsi_shell_material, radius, FSI__REAL, 1e-9, 1e3, 0),
        FSI__FIELD(fsi_shell_material, radius_across, FSI__REAL, 0, 1e3, 0),
        FSI__FIELD(fsi_shell_material, young, FSI__REAL, 1e-12, 1e20, 0),
        FSI__FIELD(fsi_shell_material, young_weft, FSI__REAL, 0, 1e20, 0),
        FSI__FIELD(fsi_shell_material, poisson, FSI__REAL, -0.999, 0.5, 0),
        FSI__FIELD(fsi_shell_material, shear, FSI__REAL, 0, 1e20, 0),
        FSI__FIELD(fsi_shell_material, bend, FSI__REAL, -1, 1e20, 0),
        FSI__FIELD(fsi_shell_material, bend_weft, FSI__REAL, -1, 1e20, 0),
        FSI__FIELD(fsi_shell_material, bend_shear, FSI__REAL, -1, 1e20, 0),
        FSI__FIELD(fsi_shell_material, damping_mass, FSI__REAL, 0, 1e9, 0),
        FSI__FIELD(fsi_shell_material, damping_stiffness, FSI__REAL, 0, 1e9, 0),
        FSI__FIELD(fsi_shell_material, clearance, FSI__REAL, 0, 1e3, 0),
        FSI__FIELD(fsi_shell_material, membrane, FSI__INT, 0, FSI_SHELL_NEO_HOOKEAN, 0),
        FSI__FIELD(fsi_shell_material, bending, FSI__INT, 0, FSI_SHELL_SHAPE_OPERATOR, 0)
    };
    char of[40];
    const fsi__where at = fsi__where_of(fn, "material", index, of);

    /* Cookie and ranges. */
    if (m->cookie != FSI__COOKIE('m', fsi_shell_material))
        return fsi__fail(c, FSI_ERROR_COOKIE, fn, index, 0,
                         "material %d was not filled by fsi_shell_default_material of this version and precision",
                         index);
    FSI__TRY(FSI__CHECK_TABLE(c, &at, m, rows));

    /* Combinations of fields. */
    if (m->young_weft > 0 && (double)m->poisson * (double)m->poisson * (double)m->young_weft >= (double)m->young)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, index, (double)m->poisson,
                         "material %d: poisson^2 young_weft must be below young", index);
    if (m->membrane == FSI_SHELL_NEO_HOOKEAN && m->young_weft > 0 &&
        (m->young_weft < m->young || m->young_weft > m->young))
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, index, (double)m->young_weft,
                         "material %d: neo-Hookean membranes are isotropic", index);
    return FSI_OK;
}

FSI_API fsi_status fsi__sm_check_settings(fsi_context *c, const char *fn, const fsi_shell_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_shell_desc, dim, FSI__INT, 2, 3, 0),
        FSI__FIELD(fsi_shell_desc, gravity.x, FSI__REAL, -1e9, 1e9, 0),
        FSI__FIELD(fsi_shell_desc, gravity.y, FSI__REAL, -1e9, 1e9, 0),
        FSI__FIELD(fsi_shell_desc, gravity.z, FSI__REAL, -1e9, 1e9, 0), FSI__FINITE(fsi_shell_desc, gravity),
        FSI__FIELD(fsi_shell_desc, tolerance, FSI__REAL, 1e-12, 1, 0),
        FSI__FIELD(fsi_shell_desc, contact_range, FSI__REAL, 0, 1e6, 0),
        FSI__FIELD(fsi_shell_desc, friction, FSI__REAL, 0, 10, 0),
        FSI__FIELD(fsi_shell_desc, friction_speed, FSI__REAL, 1e-9, 1e6, 0),
        FSI__FIELD(fsi_shell_desc, wind.x, FSI__REAL, -1e6, 1e6, 0),
        FSI__FIELD(fsi_shell_desc, wind.y, FSI__REAL, -1e6, 1e6, 0),
        FSI__FIELD(fsi_shell_desc, wind.z, FSI__REAL, -1e6, 1e6, 0),
        FSI__FIELD(fsi_shell_desc, air_density, FSI__REAL, 0, 1e6, 0),
        FSI__FIELD(fsi_shell_desc, drag, FSI__REAL, 0, 10, 0),
        FSI__FIELD(fsi_shell_desc, integrator, FSI__INT, 0, FSI_SHELL_BDF2, 0),
        FSI__FIELD(fsi_shell_desc, substeps, FSI__INT, 1, 1000, 0),
        FSI__FIELD(fsi_shell_desc, max_newton, FSI__INT, 1, FSI__HUGE, 0),
        FSI__FIELD(fsi_shell_desc, friction_iterations, FSI__INT, 1, 20, 0)
    };
    const fsi__where at = { fn, "desc.", -1, d->dim };
    return FSI__CHECK_TABLE(c, &at, d, rows);
}

/* ---- >>sides and rods of a scene --------------------------------------------------------------------------------- */


static int fsi__sm_compare_pairs(const void *a, const void *b)
{
    const int *p = (const int *)a, *q = (const int *)b;
    if (p[0] != q[0]) return p[0] < q[0] ? -1 : 1;
    return p[1] < q[1] ? -1 : p[1] > q[1];
}

static int fsi__sm_compare_sides(const void *a, const void *b)
{
    const fsi__sm_side *p = (const fsi__sm_side *)a, *q = (const fsi__sm_side *)b;
    const int order = fsi__sm_compare_pairs(a, b); /* sides begin with lo, hi */
    return order ? order : p->triangle < q->triangle ? -1 : p->triangle > q->triangle;
}

static fsi__sm_side fsi__sm_side_of(int a, int b, int triangle, int corner)
{
    fsi__sm_side s;
    s.lo = a < b ? a : b;
    s.hi = a < b ? b : a;
    s.triangle = triangle;
    s.corner = corner;
    return s;
}

/* One from a to b in a sorted list, NULL where there is none. */
static const fsi__sm_side *fsi__sm_find_side(const fsi__sm_side *list, int count, int a, int b)
{
    const fsi__sm_side key = fsi__sm_side_of(a, b, -1, 0);
    return count > 0 ? (const fsi__sm_side *)bsearch(&key, list, (size_t)count, sizeof key, fsi__sm_compare_pairs)
                     : NULL;
}

/* Triangles by sides, sides by edges; segments. */
static void fsi__sm_sort_sides(fsi__sm_maker *k)
{
    const int *t = k->m->triangle, *s = k->m->segment;
    int i, c;
    for (i = 0; i < k->m->triangles; i++)
        for (c = 0; c < 3; c++)
            k->side[k->sides++] = fsi__sm_side_of(t[3 * i + (c + 1) % 3], t[3 * i + (c + 2) % 3], i, c);
    for (i = 0; i < k->m->segments; i++) k->span[i] = fsi__sm_side_of(s[2 * i], s[2 * i + 1], i, 0);
    qsort(k->side, (size_t)k->sides, sizeof *k->side, fsi__sm_compare_sides);
    if (k->m->segments > 0) qsort(k->span, (size_t)k->m->segments, sizeof *k->span, fsi__sm_compare_sides);
    for (i = 0; i < k->sides; i++) {
        if (i == 0 || k->side[i].lo != k->side[i - 1].lo || k->side[i].hi != k->side[i - 1].hi) k->run[k->runs++] = i;
        k->side_run[3 * k->side[i].triangle + k->side[i].corner] = k->runs - 1;
    }
    k->run[k->runs] = k->sides;
}

/* Rods: segments in a row, from one end or branching point to the next, get one direction. */
static void fsi__sm_walk(fsi__sm_maker *k, int s, int from, unsigned char *seen)
{
    const int *seg = k->m->segment;
    while (s >= 0 && !seen[s]) {
        const int to = seg[2 * s] == from ? seg[2 * s + 1] : seg[2 * s];
        seen[s] = 1;
        k->m->chain[2 * s] = from;
        k->m->chain[2 * s + 1] = to;
        s = k->degree[to] == 2 ? (k->meet[2 * to] == s ? k->meet[2 * to + 1] : k->meet[2 * to]) : -1;
        from = to;
    }
}

static void fsi__sm_find_rods(fsi__sm_maker *k, unsigned char *seen)
{
    const int *seg = k->m->segment;
    int s, e;
    for (s = 0; s < k->m->segments; s++) for (e = 0; e < 2; e++) {
        const int v = seg[2 * s + e];
        if (k->degree[v] < 2) k->meet[2 * v + k->degree[v]] = s;
        k->degree[v]++;
    }
    for (s = 0; s < k->m->segments; s++)
        for (e = 0; e < 2; e++)
            if (k->degree[seg[2 * s + e]] != 2) fsi__sm_walk(k, s, seg[2 * s + e], seen);
    for (s = 0; s < k->m->segments; s++) fsi__sm_walk(k, s, seg[2 * s], seen); /* the rest are rings */
}

/* The segments that enter and leave a vertex, if there are exactly two. */
static int fsi__sm_passes(const fsi__sm_maker *k, int v, int *in, int *out)
{
    int a, b;
    if (k->degree[v] != 2) return 0;
    a = k->meet[2 * v];
    b = k->meet[2 * v + 1];
    *in = k->m->chain[2 * a + 1] == v ? a : b;
    *out = k->m->chain[2 * a + 1] == v ? b : a;
    return 1;
}

static int fsi__sm_twists(const fsi__sm_maker *k, int s)
{
    return k->m->dim == 3 && k->desc->materials[k->m->segment_material[s]].twist;
}

static int fsi__sm_is_plate(const fsi__sm_maker *k, int t)
{
    return k->desc->materials[k->m->triangle_material[t]].bending == FSI_SHELL_SHAPE_OPERATOR;
}

/* How many elements of each kind there will be. Where more than two triangles meet, and between a hinge's and a plate's
   triangle, there are hinges. */
static int fsi__sm_run_hinges(const fsi__sm_maker *k, int r)
{
    const int n = k->run[r + 1] - k->run[r], plates = n == 2 && fsi__sm_is_plate(k, k->side[k->run[r]].triangle) &&
                                                      fsi__sm_is_plate(k, k->side[k->run[r] + 1].triangle);
    return plates ? 0 : n * (n - 1) / 2;
}

static void fsi__sm_count_elements(fsi__sm_maker *k)
{
    fsi__sm_model *m = k->m;
    int i, in, out;
    m->count[FSI__SM_MEMBRANE] = m->triangles;
    m->count[FSI__SM_STRETCH] = m->segments;
    m->count[FSI__SM_BEND] = k->desc->joint_count;
    for (i = 0; i < k->runs; i++) m->count[FSI__SM_HINGE] += fsi__sm_run_hinges(k, i);
    for (i = 0; i < m->triangles; i++) m->count[FSI__SM_PLATE] += fsi__sm_is_plate(k, i);
    for (i = 0; i < m->vertices; i++)
        if (fsi__sm_passes(k, i, &in, &out))
            m->count[fsi__sm_twists(k, in) && fsi__sm_twists(k, out) ? FSI__SM_JOINT : FSI__SM_BEND]++;
    for (i = 0; i < m->segments; i++) m->twist_node[i] = -1;
    for (i = 0; i < m->vertices; i++)
        if (fsi__sm_passes(k, i, &in, &out) && fsi__sm_twists(k, in) && fsi__sm_twists(k, out))
            m->twist_node[in] = m->twist_node[out] = 0;
    for (i = 0; i < m->segments; i++) if (m->twist_node[i] == 0) m->twist_node[i] = m->vertices + m->twists++;
    for (i = 0; i < FSI__SM_KINDS; i++) m->first[i + 1] = m->first[i] + m->count[i];
}

/* ---- >>elements of a scene --------------------------------------------------------------------------------------- */

static const double *fsi__sm_rest(const fsi__sm_maker *k, int v) { return k->m->rest + 3 * v; }

static void fsi__sm_warp(const fsi__sm_maker *k, int t, double warp[3])
{
    double u[3], v[3], n[3];
    const int *c = k->m->triangle + 3 * t;
    if (k->desc->warp) {
        fsi__sh_from(k->desc->warp[t], warp);
        return;
    }
    fsi__sh_sub(fsi__sm_rest(k, c[1]), fsi__sm_rest(k, c[0]), u);
    fsi__sh_sub(fsi__sm_rest(k, c[2]), fsi__sm_rest(k, c[0]), v);
    n[0] = u[1] * v[2] - u[2] * v[1];
    n[1] = u[2] * v[0] - u[0] * v[2];
    n[2] = u[0] * v[1] - u[1] * v[0];
    warp[0] = n[0] * n[0] < 0.8 * fsi__sh_dot(n, n);
    warp[1] = 1 - warp[0];
    warp[2] = 0;
}

/* Appends an element: its nodes, its material. */
static void fsi__sm_append(fsi__sm_maker *k, int kind, int *used, const int *nodes, int material)
{
    fsi__sm_model *m = k->m;
    const int e = m->first[kind] + used[kind]++;
    int i;
    for (i = 0; i < fsi__sm_nodes[kind]; i++) m->node[m->start[e] + i] = nodes[i];
    m->element_material[e] = material;
}

static fsi_status fsi__sm_make_membranes(fsi__sm_maker *k, int *used)
{
    fsi__sm_model *m = k->m;
    int t, i;
    for (t = 0; t < m->triangles; t++) {
        const int material = m->triangle_material[t];
        const fsi__sm_moduli *mod = &k->moduli[material];
        const double thickness = (double)m->material[material].thickness;
        fsi__shell_membrane *r = &m->membrane[t];
        double x[9], warp[3];

        /* Shape at rest. */
        fsi__sh_gather(k->m->rest, m->triangle + 3 * t, 3, x);
        fsi__sm_warp(k, t, warp);
        if (!fsi__shell_membrane_rest(r, x, warp, thickness))
            return fsi__fail(k->context, FSI_ERROR_MESH, k->fn, t, 0, "triangle %d has no area at rest", t);

        /* Moduli. */
        r->c11 = mod->c[0];
        r->c22 = mod->c[1];
        r->c12 = mod->c[2];
        r->c66 = mod->c[3];
        r->neo_hookean = m->material[material].membrane == FSI_SHELL_NEO_HOOKEAN;
        r->mu = mod->mu;
        r->lambda = mod->lambda;
        m->area[t] = r->volume / thickness;

        /* Each vertex gets a third of the mass and of the damping, and the largest clearance. */
        for (i = 0; i < 3; i++) {
            m->mass[m->triangle[3 * t + i]] += (double)m->material[material].density * r->volume / 3;
            m->drag_mass[m->triangle[3 * t + i]] +=
                (double)m->material[material].damping_mass * (double)m->material[material].density * r->volume / 3;
            if (m->clearance[m->triangle[3 * t + i]] < (double)m->material[material].clearance)
                m->clearance[m->triangle[3 * t + i]] = (double)m->material[material].clearance;
        }
        fsi__sm_append(k, FSI__SM_MEMBRANE, used, m->triangle + 3 * t, material);
    }
    return FSI_OK;
}

/* Bending stiffness for curvature across the side at `corner` of triangle t, in the frame of its warp:
   D(n) = D11 c^4 + 2 (D12 + 2 D66) c^2 s^2 + D22 s^4. */
static double fsi__sm_across(const fsi__sm_maker *k, int t, int corner)
{
    const fsi__shell_membrane *r = &k->m->membrane[t];
    const double *d = k->moduli[k->m->triangle_material[t]].d, *g = r->inverse, det = g[0] * g[3] - g[1] * g[2];
    /* columns of Dm: sides p0p1 and p0p2 */
    const double u[2] = { g[3] / det, -g[2] / det }, v[2] = { -g[1] / det, g[0] / det };
    const double e[2] = {corner == 0   ? v[0] - u[0]
                         : corner == 1 ? v[0]
                                       : u[0],
                         corner == 0   ? v[1] - u[1]
                         : corner == 1 ? v[1]
                                       : u[1]};
    const double l2 = e[0] * e[0] + e[1] * e[1], c2 = e[1] * e[1] / l2, s2 = e[0] * e[0] / l2;
    return d[0] * c2 * c2 + 2 * (d[2] + 2 * d[3]) * c2 * s2 + d[1] * s2 * s2;
}

/* Each crease must be on an edge of two triangles, and only one on an edge. */
static fsi_status fsi__sm_place_creases(fsi__sm_maker *k)
{
    int i;
    for (i = 0; i < k->desc->crease_count; i++) {
        const fsi_shell_crease *c = &k->desc->creases[i];
        const fsi__sm_side *s = fsi__sm_find_side(k->side, k->sides, c->a, c->b);
        const int r = s ? k->side_run[3 * s->triangle + s->corner] : 0;
        if (!s || k->run[r + 1] - k->run[r] < 2)
            return fsi__fail(k->context, FSI_ERROR_ARGUMENT, k->fn, i, c->a,
                             "crease %d: %d-%d is no edge of two triangles", i, c->a, c->b);
        if (k->crease[r])
            return fsi__fail(k->context, FSI_ERROR_ARGUMENT, k->fn, i, c->a, "crease %d: %d-%d is creased already", i,
                             c->a, c->b);
        k->crease[r] = c;
    }
    return FSI_OK;
}

/* W = k/2 (theta - rest)^2, k = B |e|^2 / (A1 + A2) (coupling.md 6.2); of m triangles each pair takes 2/m. Each of the
   two gives half; one that is a plate does so only where it has no plate beside it. */
static void fsi__sm_make_hinge(fsi__sm_maker *k, int *used, const fsi__sm_side *p, const fsi__sm_side *q, int triangles)
{
    fsi__sm_model *m = k->m;
    const int *t = m->triangle + 3 * p->triangle, *u = m->triangle + 3 * q->triangle;
    const int nodes[4] = { t[(p->corner + 1) % 3], t[(p->corner + 2) % 3], t[p->corner], u[q->corner] };
    const double stiffness =
        (fsi__sm_across(k, p->triangle, p->corner) + fsi__sm_across(k, q->triangle, q->corner)) / 2;
    const fsi_shell_crease *crease = k->crease[k->side_run[3 * p->triangle + p->corner]];
    fsi__sm_fold *f = &m->fold[used[FSI__SM_HINGE]];
    double x[12], l = fsi__sh_apart(fsi__sm_rest(k, p->lo), fsi__sm_rest(k, p->hi));
    fsi__sh_gather(k->m->rest, nodes, 4, x);
    f->k = stiffness * l * l / (m->area[p->triangle] + m->area[q->triangle]) * 2 / triangles;
    f->rest = fsi__shell_angle(x, NULL, NULL);
    if (crease) {
        f->rest = (double)crease->angle;
        f->k *= (double)crease->stiffness;
    }
    fsi__sm_append(k, FSI__SM_HINGE, used, nodes, m->triangle_material[p->triangle]);
}

static void fsi__sm_make_hinges(fsi__sm_maker *k, int *used)
{
    int r, a, b;
    for (r = 0; r < k->runs; r++) {
        if (!fsi__sm_run_hinges(k, r)) continue;
        for (a = k->run[r]; a < k->run[r + 1]; a++)
            for (b = a + 1; b < k->run[r + 1]; b++)
                fsi__sm_make_hinge(k, used, &k->side[a], &k->side[b], k->run[r + 1] - k->run[r]);
    }
}

/* The triangle beside t across `corner`, when both are plates and no third one is there; -1: none. */
static int fsi__sm_beside(const fsi__sm_maker *k, int t, int corner, int *opposite)
{
    const int r = k->side_run[3 * t + corner], b = k->run[r];
    const fsi__sm_side *s;
    if (k->run[r + 1] - b != 2) return -1;
    s = &k->side[k->side[b].triangle == t ? b + 1 : b];
    if (!fsi__sm_is_plate(k, s->triangle)) return -1;
    *opposite = k->m->triangle[3 * s->triangle + s->corner];
    return s->triangle;
}

static void fsi__shell_plate_crease(fsi__shell_plate *p, int corner, double angle, double stiffness)
{
    int i;
    p->rest[corner] = angle;
    for (i = 0; i < 3; i++) {
        p->q[3 * corner + i] *= sqrt(stiffness); /* rows and columns: Q stays positive semidefinite */
        p->q[3 * i + corner] *= sqrt(stiffness);
    }
}

static void fsi__sm_make_plates(fsi__sm_maker *k, int *used)
{
    fsi__sm_model *m = k->m;
    int t, c;
    for (t = 0; t < m->triangles; t++) {
        fsi__shell_plate *p = &m->plate[used[FSI__SM_PLATE]];
        const int *v = m->triangle + 3 * t;
        int nodes[6], missing = 0;
        double x[18], warp[3];
        if (!fsi__sm_is_plate(k, t)) continue;

        /* The vertices, and those opposite its edges; -1 at a boundary. */
        for (c = 0; c < 3; c++) {
            nodes[c] = v[c];
            nodes[3 + c] = -1;
            if (fsi__sm_beside(k, t, c, &nodes[3 + c]) < 0) missing |= 1 << c;
        }

        /* Shape and stiffness at rest, then creases. */
        fsi__sh_gather(k->m->rest, nodes, 6, x);
        fsi__sm_warp(k, t, warp);
        fsi__shell_plate_rest(p, x, missing, warp, k->moduli[m->triangle_material[t]].d);
        for (c = 0; c < 3; c++) {
            const fsi_shell_crease *crease = missing >> c & 1 ? NULL : k->crease[k->side_run[3 * t + c]];
            if (crease) fsi__shell_plate_crease(p, c, (double)crease->angle, (double)crease->stiffness);
        }
        fsi__sm_append(k, FSI__SM_PLATE, used, nodes, m->triangle_material[t]);
    }
}

/* ---- >>rods of a scene ------------------------------------------------------------------------------------------- */

static int fsi__sm_next(const fsi__sm_maker *k, int s)
{
    int in, out;
    return fsi__sm_passes(k, k->m->chain[2 * s + 1], &in, &out) ? out : -1;
}

/* Frames of a rod from segment s on, carried along without turning about themselves. */
static void fsi__sm_carry_frame(const fsi__sm_maker *k, const double *x, int s, fsi__shell_frame *frame,
                                unsigned char *seen)
{
    static const double upward[3] = { 0, 0, 1 };
    fsi__shell_frame f = fsi__shell_frame_make(x + 3 * k->m->chain[2 * s], x + 3 * k->m->chain[2 * s + 1], upward);
    for (; s >= 0 && !seen[s]; s = fsi__sm_next(k, s)) {
        seen[s] = 1;
        fsi__shell_frame_transport(&f, x + 3 * k->m->chain[2 * s], x + 3 * k->m->chain[2 * s + 1]);
        frame[s] = f;
    }
}

FSI_API void fsi__sm_make_frames(const fsi__sm_maker *k, const double *x, fsi__shell_frame *frame, unsigned char *seen)
{
    int s, in, out;
    memset(seen, 0, (size_t)k->m->segments);
    if (k->desc->segment_director) {
        for (s = 0; s < k->m->segments; s++) {
            double hint[3];
            fsi__sh_from(k->desc->segment_director[s], hint);
            frame[s] = fsi__shell_frame_make(k->m->rest + 3 * k->m->chain[2 * s],
                                             k->m->rest + 3 * k->m->chain[2 * s + 1], hint);
            fsi__shell_frame_transport(&frame[s], x + 3 * k->m->chain[2 * s], x + 3 * k->m->chain[2 * s + 1]);
        }
        return;
    }
    for (s = 0; s < k->m->segments; s++)
        if (!fsi__sm_passes(k, k->m->chain[2 * s], &in, &out)) fsi__sm_carry_frame(k, x, s, frame, seen);
    for (s = 0; s < k->m->segments; s++) fsi__sm_carry_frame(k, x, s, frame, seen);
}

/* In 2D a segment is a sheet, seen from its edge: E t and E t^3 / (12 (1 - nu^2)) a metre of depth. */
static double fsi__sm_bar_stiffness(const fsi__sm_maker *k, int s)
{
    const fsi_shell_material *m = &k->m->material[k->m->segment_material[s]];
    return k->m->dim == 2 ? (double)m->young * (double)m->thickness : k->moduli[k->m->segment_material[s]].ea;
}

static double fsi__sm_bow_stiffness(const fsi__sm_maker *k, int s, int axis)
{
    const fsi_shell_material *m = &k->m->material[k->m->segment_material[s]];
    const double t = (double)m->thickness, nu = (double)m->poisson;
    if (k->m->dim == 2) return m->bend >= 0 ? (double)m->bend : (double)m->young * t * t * t / (12 * (1 - nu * nu));
    return k->moduli[k->m->segment_material[s]].ei[axis];
}

static fsi_status fsi__sm_make_bars(fsi__sm_maker *k, int *used)
{
    fsi__sm_model *m = k->m;
    int s, e;
    for (s = 0; s < m->segments; s++) {
        const int material = m->segment_material[s], *v = m->segment + 2 * s;
        const fsi_shell_material *stuff = &m->material[material];
        const double l = fsi__sh_apart(fsi__sm_rest(k, v[0]), fsi__sm_rest(k, v[1])),
                     section = m->dim == 2 ? (double)stuff->thickness : k->moduli[material].area;

        /* Stretching. */
        if (!(l > 0)) return fsi__fail(k->context, FSI_ERROR_MESH, k->fn, s, l, "segment %d has no length at rest", s);
        m->bar[s].ea = fsi__sm_bar_stiffness(k, s);
        m->bar[s].rest = l;

        /* Each vertex gets half of the mass and of the damping, and the largest clearance. */
        for (e = 0; e < 2; e++) {
            m->mass[v[e]] += (double)stuff->density * section * l / 2;
            m->drag_mass[v[e]] += (double)stuff->damping_mass * (double)stuff->density * section * l / 2;
            if (m->clearance[v[e]] < (double)stuff->clearance) m->clearance[v[e]] = (double)stuff->clearance;
        }

        /* Moment of inertia about the rod. */
        if (m->twist_node[s] >= 0) {
            m->mass[m->twist_node[s]] = (double)stuff->density * k->moduli[material].polar * l;
            m->drag_mass[m->twist_node[s]] = (double)stuff->damping_mass * m->mass[m->twist_node[s]];
            m->twist_of[m->twist_node[s] - m->vertices] = s;
        }
        fsi__sm_append(k, FSI__SM_STRETCH, used, v, material);
    }
    return FSI_OK;
}

/* Two stiffnesses in series, each over half a segment: their compliances add. */
static double fsi__sm_in_row(double a, double la, double b, double lb)
{
    return a > 0 && b > 0 ? (la + lb) / (la / a + lb / b) : 0;
}

static void fsi__sm_make_joint(fsi__sm_maker *k, int *used, int a, int b)
{
    fsi__sm_model *m = k->m;
    const int nodes[5] = {m->chain[2 * a], m->chain[2 * a + 1], m->chain[2 * b + 1], m->twist_node[a],
                          m->twist_node[b]};
    const double la = m->bar[a].rest, lb = m->bar[b].rest;
    const fsi__sm_moduli *p = &k->moduli[m->segment_material[a]], *q = &k->moduli[m->segment_material[b]];
    const int n = used[FSI__SM_JOINT];
    fsi__shell_joint *j = &m->joint[n];
    fsi__shell_frame frame[2];
    double x[9];
    int i;
    fsi__sh_gather(k->m->rest, nodes, 3, x);
    memset(j, 0, sizeof *j);
    j->length = (la + lb) / 2;
    for (i = 0; i < 2; i++) j->bend[i] = fsi__sm_in_row(p->ei[i], la, q->ei[i], lb);
    j->twist = fsi__sm_in_row(p->gj, la, q->gj, lb);
    frame[0] = m->frame[a];
    frame[1] = m->frame[b];
    fsi__shell_joint_rest(j, frame, x, 0, 0);
    m->joint_segment[2 * n] = a;
    m->joint_segment[2 * n + 1] = b;
    fsi__sm_append(k, FSI__SM_JOINT, used, nodes, m->segment_material[a]);
}

static void fsi__sm_make_bow(fsi__sm_maker *k, int *used, const int nodes[3], double b, double la, double lb,
                             int material)
{
    fsi__sm_bow *w = &k->m->bow[used[FSI__SM_BEND]];
    double x[9], u[3], v[3], cosine;
    fsi__sh_gather(k->m->rest, nodes, 3, x);
    fsi__sh_sub(x + 3, x, u);
    fsi__sh_sub(x + 6, x + 3, v);
    cosine = fsi__sh_dot(u, v) / (la * lb);
    w->b = 2 * b / (la + lb);
    w->rest = cosine > -1 ? 2 * sqrt((cosine < 1 ? 1 - cosine : 0) / (1 + cosine)) : 1e9; /* 2 tan(angle/2) */
    if (k->m->dim == 2 && u[0] * v[1] < u[1] * v[0]) w->rest = -w->rest;
    fsi__sm_append(k, FSI__SM_BEND, used, nodes, material);
}

static fsi_status fsi__sm_make_joints(fsi__sm_maker *k, int *used)
{
    fsi__sm_model *m = k->m;
    int i, in, out;

    /* Vertices that a rod passes through: bending and twisting, or bending alone. */
    for (i = 0; i < m->vertices; i++) {
        int nodes[3];
        if (!fsi__sm_passes(k, i, &in, &out)) continue;
        if (m->twist_node[in] >= 0 && m->twist_node[out] >= 0 && fsi__sm_twists(k, in) && fsi__sm_twists(k, out)) {
            fsi__sm_make_joint(k, used, in, out);
            continue;
        }
        nodes[0] = m->chain[2 * in];
        nodes[1] = i;
        nodes[2] = m->chain[2 * out + 1];
        fsi__sm_make_bow(k, used, nodes,
                         fsi__sm_in_row(fsi__sm_bow_stiffness(k, in, 0), m->bar[in].rest,
                                        fsi__sm_bow_stiffness(k, out, 0), m->bar[out].rest),
                         m->bar[in].rest, m->bar[out].rest, m->segment_material[in]);
    }

    /* Joints that the desc lists. */
    for (i = 0; i < k->desc->joint_count; i++) {
        const int *v = k->desc->joints + 3 * i;
        const double la = fsi__sh_apart(fsi__sm_rest(k, v[0]), fsi__sm_rest(k, v[1])),
                     lb = fsi__sh_apart(fsi__sm_rest(k, v[1]), fsi__sm_rest(k, v[2]));
        const fsi__sm_side *a = fsi__sm_find_side(k->span, m->segments, v[0], v[1]),
                           *b = fsi__sm_find_side(k->span, m->segments, v[1], v[2]);
        if (!a || !b)
            return fsi__fail(k->context, FSI_ERROR_ARGUMENT, k->fn, i, v[1],
                             "joint %d: there are no segments %d-%d and %d-%d", i, v[0], v[1], v[1], v[2]);
        fsi__sm_make_bow(
            k, used, v,
            fsi__sm_in_row(fsi__sm_bow_stiffness(k, a->triangle, 0), la, fsi__sm_bow_stiffness(k, b->triangle, 0), lb),
            la, lb, m->segment_material[a->triangle]);
    }
    return FSI_OK;
}

/* Connected components: each vertex refers to a lower one of its component. */
static int fsi__sm_root(int *part, int v)
{
    while (part[v] != v) v = part[v] = part[part[v]];
    return v;
}

static void fsi__sm_join(int *part, int a, int b)
{
    a = fsi__sm_root(part, a);
    b = fsi__sm_root(part, b);
    if (a < b) part[b] = a;
    else part[a] = b;
}

static void fsi__sm_find_parts(fsi__sm_model *m)
{
    int i;
    for (i = 0; i < m->vertices; i++) m->part[i] = i;
    for (i = 0; i < m->triangles; i++) {
        fsi__sm_join(m->part, m->triangle[3 * i], m->triangle[3 * i + 1]);
        fsi__sm_join(m->part, m->triangle[3 * i], m->triangle[3 * i + 2]);
    }
    for (i = 0; i < m->segments; i++) fsi__sm_join(m->part, m->segment[2 * i], m->segment[2 * i + 1]);
    for (i = 0; i < m->vertices; i++) m->part[i] = fsi__sm_root(m->part, i);
}

/* Edges for contact, of triangles and of other segments; and points. */
static void fsi__sm_list_edges(fsi__sm_maker *k)
{
    fsi__sm_model *m = k->m;
    int r, s, i, n = 0;

    /* All edges of triangles and segments, sorted. */
    for (r = 0; r < k->runs; r++) {
        m->edge[2 * n] = k->side[k->run[r]].lo;
        m->edge[2 * n++ + 1] = k->side[k->run[r]].hi;
    }
    for (s = 0; s < m->segments; s++) {
        m->edge[2 * n] = m->segment[2 * s] < m->segment[2 * s + 1] ? m->segment[2 * s] : m->segment[2 * s + 1];
        m->edge[2 * n++ + 1] = m->segment[2 * s] < m->segment[2 * s + 1] ? m->segment[2 * s + 1] : m->segment[2 * s];
    }
    qsort(m->edge, (size_t)n, 2 * sizeof *m->edge, fsi__sm_compare_pairs);

    /* Each once. */
    m->edges = 0;
    for (i = 0; i < n; i++) {
        if (i > 0 && m->edge[2 * i] == m->edge[2 * m->edges - 2] && m->edge[2 * i + 1] == m->edge[2 * m->edges - 1])
            continue;
        m->edge[2 * m->edges] = m->edge[2 * i];
        m->edge[2 * m->edges++ + 1] = m->edge[2 * i + 1];
    }

    /* Those of no triangle; both lists are sorted. */
    for (i = r = 0; i < m->edges; i++) {
        while (r < k->runs && fsi__sm_compare_pairs(&k->side[k->run[r]], &m->edge[2 * i]) < 0) r++;
        m->bare[i] = r >= k->runs || fsi__sm_compare_pairs(&k->side[k->run[r]], &m->edge[2 * i]) != 0;
    }

    /* Lengths at rest. */
    m->mean_edge = 0;
    for (i = 0; i < m->edges; i++) {
        const double l = fsi__sh_apart(fsi__sm_rest(k, m->edge[2 * i]), fsi__sm_rest(k, m->edge[2 * i + 1]));
        m->edge_length2[i] = l * l;
        m->mean_edge += l / m->edges;
    }

    /* Points: vertices that no element connects to others. */
    m->points = 0;
    for (i = 0; i < m->vertices; i++) if (m->part[i] == i) m->point[i] = 1;
    for (i = 0; i < m->vertices; i++) if (m->part[i] != i) m->point[m->part[i]] = 0;
    for (i = 0; i < m->vertices; i++) if (m->part[i] == i && m->point[i] == 1) m->point[m->points++] = i;
}

/* The mass of each vertex is divided among its elements; an element gets the smallest part that one of its vertices
   gives it. Membranes, which buckle, get most. */
static void fsi__sm_share_mass(fsi__sm_model *m, double *wanted)
{
    static const double weight[FSI__SM_KINDS] = { 8, 1, 2, 0, 0, 0 };
    int kind, e, i, pass;
    for (pass = 0; pass < 2; pass++)
        for (kind = 0; kind < FSI__SM_KINDS; kind++)
            for (e = m->first[kind]; e < m->first[kind + 1]; e++) {
                if (pass == 1) m->share[e] = 1e300;
                for (i = m->start[e]; i < m->start[e + 1]; i++) {
                    const int v = m->node[i];
                    if (v < 0 || !(weight[kind] > 0)) continue;
                    if (pass == 0) wanted[v] += weight[kind];
                    else if (m->mass[v] * weight[kind] / wanted[v] < m->share[e])
                        m->share[e] = m->mass[v] * weight[kind] / wanted[v];
                }
            }
}

/* ---- >>making a scene -------------------------------------------------------------------------------------------- */

static fsi_status fsi__sm_check_indices(fsi_context *c, const char *fn, const int *index, int count, int per,
                                        const char *what, int vertices)
{
    int e, i, j;
    if (count < 0 || count > 100000000)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, count, "there are %d %ss", count, what);
    if (count > 0 && !index)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "there are %d %ss, but their array is NULL", count, what);
    for (e = 0; e < count; e++) for (i = 0; i < per; i++) {
        const int v = index[per * e + i];
        if (v < 0 || v >= vertices)
            return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, e, v, "%s %d names vertex %d of %d", what, e, v, vertices);
        for (j = 0; j < i; j++)
            if (index[per * e + j] == v)
                return fsi__fail(c, FSI_ERROR_MESH, fn, e, v, "%s %d names vertex %d twice", what, e, v);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi__sm_check_vectors(fsi_context *c, const char *fn, const fsi_vec3 *x, int count, const char *what,
                                        int dim)
{
    int i;
    for (i = 0; x && i < count; i++) {
        if (!fsi_v3_is_finite(x[i])) return fsi__fail(c, FSI_ERROR_NAN, fn, i, 0, "%s %d is not finite", what, i);
        if (dim == 2 && (x[i].z < 0 || x[i].z > 0))
            return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, i, (double)x[i].z, "%s %d has z = %g in 2D", what, i,
                             (double)x[i].z);
        if (fsi_v3_norm2(x[i]) > (fsi_real)1e24)
            return fsi__fail(c, FSI_ERROR_LIMIT, fn, i, (double)fsi_v3_norm(x[i]), "%s %d is larger than 1e12", what,
                             i);
    }
    return FSI_OK;
}

static fsi_status fsi__sm_check_owners(fsi_context *c, const char *fn, const int *material, int count, int materials,
                                       const char *what)
{
    int i;
    for (i = 0; material && i < count; i++)
        if (material[i] < 0 || material[i] >= materials)
            return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, i, material[i], "%s %d has material %d of %d", what, i,
                             material[i], materials);
    if (count > 0 && materials == 0) return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "there are no materials");
    return FSI_OK;
}

static fsi_status fsi__sm_check_creases(fsi_context *c, const char *fn, const fsi_shell_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_shell_crease, angle, FSI__REAL, -3.1415, 3.1415, FSI__ABOVE | FSI__BELOW),
        FSI__FIELD(fsi_shell_crease, stiffness, FSI__REAL, 0, FSI__HUGE, 0)
    };
    char of[40];
    int i;
    if (d->crease_count < 0 || (d->crease_count > 0 && !d->creases))
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, d->crease_count, "crease_count is %d", d->crease_count);
    for (i = 0; i < d->crease_count; i++) {
        const fsi__where at = fsi__where_of(fn, "crease", i, of);
        FSI__TRY(FSI__CHECK_TABLE(c, &at, &d->creases[i], rows));
    }
    return FSI_OK;
}

FSI_API fsi_status fsi__sm_check_desc(fsi_context *c, const char *fn, const fsi_shell_desc *d)
{
    int i;

    /* Settings and counts. */
    if (d->dim == 2 && d->triangle_count > 0)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, d->triangle_count, "there are no triangles in 2D");
    FSI__TRY(fsi__sm_check_settings(c, fn, d));
    if (d->vertex_count < 1 || d->vertex_count > 100000000 || !d->vertices)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, d->vertex_count, "vertex_count is %d, or vertices is NULL",
                         d->vertex_count);
    if (d->material_count < 0 || (d->material_count > 0 && !d->materials))
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, d->material_count, "material_count is %d, or materials is NULL",
                         d->material_count);

    /* Materials and arrays. */
    for (i = 0; i < d->material_count; i++) FSI__TRY(fsi__sm_check_material(c, fn, &d->materials[i], i));
    FSI__TRY(fsi__sm_check_vectors(c, fn, d->vertices, d->vertex_count, "vertex", d->dim));
    FSI__TRY(fsi__sm_check_vectors(c, fn, d->rest, d->vertex_count, "rest position", d->dim));
    FSI__TRY(fsi__sm_check_vectors(c, fn, d->warp, d->triangle_count, "warp", 3));
    FSI__TRY(fsi__sm_check_vectors(c, fn, d->segment_director, d->segment_count, "segment_director", 3));
    FSI__TRY(fsi__sm_check_indices(c, fn, d->triangles, d->triangle_count, 3, "triangle", d->vertex_count));
    FSI__TRY(fsi__sm_check_indices(c, fn, d->segments, d->segment_count, 2, "segment", d->vertex_count));
    FSI__TRY(fsi__sm_check_indices(c, fn, d->joints, d->joint_count, 3, "joint", d->vertex_count));
    FSI__TRY(fsi__sm_check_owners(c, fn, d->triangle_material, d->triangle_count, d->material_count, "triangle"));
    FSI__TRY(fsi__sm_check_owners(c, fn, d->segment_material, d->segment_count, d->material_count, "segment"));
    FSI__TRY(fsi__sm_check_creases(c, fn, d));

    /* Added masses. */
    for (i = 0; d->vertex_mass && i < d->vertex_count; i++)
        if (!(d->vertex_mass[i] >= 0) || !fsi_is_finite((double)d->vertex_mass[i]))
            return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, i, (double)d->vertex_mass[i], "vertex_mass of vertex %d is %g",
                i, (double)d->vertex_mass[i]);
    return FSI_OK;
}

/* Arrays whose sizes follow from the desc; those that depend on count_elements come later (lay_counted). */
static void fsi__sm_lay_given(fsi__sm_maker *k, fsi__arena *a, fsi__arena *t)
{
    fsi__sm_model *m = k->m;
    const size_t nv = (size_t)m->vertices, nt = (size_t)m->triangles, ns = (size_t)m->segments;

    /* What the model keeps: materials, topology, elements, numbers of vertices. */
    m->material = (fsi_shell_material *)fsi__take(a, (size_t)m->materials, sizeof *m->material);
    m->triangle = (int *)fsi__take(a, 3 * nt, sizeof(int));
    m->segment = (int *)fsi__take(a, 2 * ns, sizeof(int));
    m->triangle_material = (int *)fsi__take(a, nt, sizeof(int));
    m->segment_material = (int *)fsi__take(a, ns, sizeof(int));
    m->chain = (int *)fsi__take(a, 2 * ns, sizeof(int));
    m->twist_node = (int *)fsi__take(a, ns, sizeof(int));
    m->twist_of = (int *)fsi__take(a, ns, sizeof(int));
    m->edge = (int *)fsi__take(a, 2 * (3 * nt + ns), sizeof(int));
    m->edge_length2 = (double *)fsi__take(a, 3 * nt + ns, sizeof(double));
    m->point = (int *)fsi__take(a, nv, sizeof(int));
    m->part = (int *)fsi__take(a, nv, sizeof(int));
    m->membrane = (fsi__shell_membrane *)fsi__take(a, nt, sizeof *m->membrane);
    m->area = (double *)fsi__take(a, nt, sizeof(double));
    m->bar = (fsi__sm_bar *)fsi__take(a, ns, sizeof *m->bar);
    m->frame = (fsi__shell_frame *)fsi__take(a, ns, sizeof *m->frame);
    m->mass = (double *)fsi__take(a, nv + ns, sizeof(double));
    m->drag_mass = (double *)fsi__take(a, nv + ns, sizeof(double));
    m->bare = (unsigned char *)fsi__take(a, 3 * nt + ns, 1);
    m->clearance = (double *)fsi__take(a, nv, sizeof(double));
    m->rest = (double *)fsi__take(a, 3 * nv, sizeof(double));

    /* Scratch of its construction. */
    k->moduli = (fsi__sm_moduli *)fsi__take(t, (size_t)m->materials, sizeof *k->moduli);
    k->side = (fsi__sm_side *)fsi__take(t, 3 * nt, sizeof *k->side);
    k->run = (int *)fsi__take(t, 3 * nt + 1, sizeof(int));
    k->side_run = (int *)fsi__take(t, 3 * nt, sizeof(int));
    k->crease = (const fsi_shell_crease **)fsi__take(t, 3 * nt, sizeof *k->crease);
    k->span = (fsi__sm_side *)fsi__take(t, ns, sizeof *k->span);
    k->degree = (int *)fsi__take(t, nv, sizeof(int));
    k->meet = (int *)fsi__take(t, 2 * nv, sizeof(int));
    k->seen = (unsigned char *)fsi__take(t, ns, 1);
    k->wanted = (double *)fsi__take(t, nv + ns, sizeof(double));
}

static void fsi__sm_lay_counted(fsi__sm_maker *k, fsi__arena *a)
{
    fsi__sm_model *m = k->m;
    const size_t elements = (size_t)m->first[FSI__SM_KINDS];
    size_t nodes = 0;
    int kind;
    for (kind = 0; kind < FSI__SM_KINDS; kind++) nodes += (size_t)m->count[kind] * (size_t)fsi__sm_nodes[kind];
    m->fold = (fsi__sm_fold *)fsi__take(a, (size_t)m->count[FSI__SM_HINGE], sizeof *m->fold);
    m->plate = (fsi__shell_plate *)fsi__take(a, (size_t)m->count[FSI__SM_PLATE], sizeof *m->plate);
    m->joint = (fsi__shell_joint *)fsi__take(a, (size_t)m->count[FSI__SM_JOINT], sizeof *m->joint);
    m->joint_segment = (int *)fsi__take(a, 2 * (size_t)m->count[FSI__SM_JOINT], sizeof(int));
    m->bow = (fsi__sm_bow *)fsi__take(a, (size_t)m->count[FSI__SM_BEND], sizeof *m->bow);
    m->element_material = (int *)fsi__take(a, elements, sizeof(int));
    m->value_at = (size_t *)fsi__take(a, elements + 1, sizeof(size_t));
    m->start = (int *)fsi__take(a, elements + 1, sizeof(int));
    m->node = (int *)fsi__take(a, nodes, sizeof(int));
    m->share = (double *)fsi__take(a, elements, sizeof(double));
}

static void fsi__sm_copy_desc(fsi__sm_maker *k)
{
    const fsi_shell_desc *d = k->desc;
    fsi__sm_model *m = k->m;
    int i;
    for (i = 0; i < m->materials; i++) {
        m->material[i] = d->materials[i];
        k->moduli[i] = fsi__sm_moduli_of(&d->materials[i]);
    }
    if (m->triangles) memcpy(m->triangle, d->triangles, 3 * (size_t)m->triangles * sizeof(int));
    if (m->segments) memcpy(m->segment, d->segments, 2 * (size_t)m->segments * sizeof(int));
    if (d->triangle_material) memcpy(m->triangle_material, d->triangle_material, (size_t)m->triangles * sizeof(int));
    if (d->segment_material) memcpy(m->segment_material, d->segment_material, (size_t)m->segments * sizeof(int));
    for (i = 0; i < m->vertices; i++) {
        fsi__sh_from((d->rest ? d->rest : d->vertices)[i], m->rest + 3 * i);
        m->mass[i] = d->vertex_mass ? (double)d->vertex_mass[i] : 0;
    }
}

/* Refuses two triangles or segments with the same vertices. Errors: MESH. */
static fsi_status fsi__sm_check_twins(const fsi__sm_maker *k)
{
    const fsi__sm_model *m = k->m;
    int r, a, b;
    for (r = 0; r < k->runs; r++) for (a = k->run[r]; a < k->run[r + 1]; a++) for (b = a + 1; b < k->run[r + 1]; b++) {
        const fsi__sm_side *p = &k->side[a], *q = &k->side[b];
        if (m->triangle[3 * p->triangle + p->corner] == m->triangle[3 * q->triangle + q->corner])
            return fsi__fail(k->context, FSI_ERROR_MESH, k->fn, q->triangle, p->triangle,
                             "triangles %d and %d have the same vertices", p->triangle, q->triangle);
    }
    for (r = 1; r < m->segments; r++) if (fsi__sm_compare_pairs(&k->span[r - 1], &k->span[r]) == 0)
            return fsi__fail(k->context, FSI_ERROR_MESH, k->fn, k->span[r].triangle, k->span[r - 1].triangle,
                             "segments %d and %d have the same vertices", k->span[r - 1].triangle, k->span[r].triangle);
    return FSI_OK;
}

static fsi_status fsi__sm_check_mass(const fsi__sm_maker *k)
{
    fsi__sm_model *m = k->m;
    int i;
    for (i = 0; i < m->vertices; i++) {
        if (!(m->mass[i] > 0))
            return fsi__fail(k->context, FSI_ERROR_MESH, k->fn, i, 0,
                             "vertex %d has no mass: it belongs to no element, and vertex_mass gives it none", i);
        m->total_mass += m->mass[i];
    }
    return FSI_OK;
}

static fsi_status fsi__sm_make_elements(fsi__sm_maker *k)
{
    fsi__sm_model *m = k->m;
    int used[FSI__SM_KINDS] = { 0 }, kind, i, e = 0;
    fsi_status status;
    for (kind = 0; kind < FSI__SM_KINDS; kind++) for (i = 0; i < m->count[kind]; i++, e++) {
        m->start[e + 1] = m->start[e] + fsi__sm_nodes[kind];
        m->value_at[e + 1] = m->value_at[e] + 9 * (size_t)(fsi__sm_nodes[kind] * fsi__sm_nodes[kind]);
    }
    status = fsi__sm_make_membranes(k, used);
    if (status != FSI_OK) return status;
    fsi__sm_make_hinges(k, used);
    fsi__sm_make_plates(k, used);
    status = fsi__sm_make_bars(k, used);
    if (status != FSI_OK) return status;
    fsi__sm_make_frames(k, m->rest, m->frame, k->seen);
    status = fsi__sm_make_joints(k, used);
    if (status != FSI_OK) return status;
    fsi__sm_find_parts(m);
    fsi__sm_list_edges(k);
    fsi__sm_share_mass(m, k->wanted);
    return fsi__sm_check_mass(k);
}

/* The model that the desc describes. The caller frees the arenas, on failure too. */
FSI_API fsi_status fsi__sm_make_model(fsi__sm_maker *k, fsi__arena *given, fsi__arena *counted)
{
    fsi__arena measure[2];
    fsi__sm_model *m = k->m;
    fsi_status status;

    /* Counts, and arrays of these sizes. */
    m->dim = k->desc->dim;
    m->vertices = k->desc->vertex_count;
    m->triangles = k->desc->triangle_count;
    m->segments = k->desc->segment_count;
    m->materials = k->desc->material_count;
    memset(measure, 0, sizeof measure);
    fsi__sm_lay_given(k, &measure[0], &measure[1]);
    if (!fsi__arena_reserve(k->context, given, measure[0].used) ||
        !fsi__arena_reserve(k->context, &k->temporary, measure[1].used))
        return fsi__fail(k->context, FSI_ERROR_MEMORY, k->fn, -1, 0, "no memory for %d vertices", m->vertices);
    fsi__sm_lay_given(k, given, &k->temporary);

    /* Topology: edges of triangles, rods, creases. */
    fsi__sm_copy_desc(k);
    fsi__sm_sort_sides(k);
    fsi__sm_find_rods(k, k->seen);
    status = fsi__sm_check_twins(k);
    if (status == FSI_OK) status = fsi__sm_place_creases(k);
    if (status != FSI_OK) return status;

    /* Elements, and arrays of their sizes. */
    fsi__sm_count_elements(k);
    memset(measure, 0, sizeof measure);
    fsi__sm_lay_counted(k, &measure[0]);
    if (!fsi__arena_reserve(k->context, counted, measure[0].used))
        return fsi__fail(k->context, FSI_ERROR_MEMORY, k->fn, -1, 0, "no memory for %d elements",
                         m->first[FSI__SM_KINDS]);
    fsi__sm_lay_counted(k, counted);
    return fsi__sm_make_elements(k);
}

FSI__COLD_END

/* ---- >>energies -------------------------------------------------------------------------------------------------- */

/* A joint has 11 unknowns: three vertices and the first numbers of two twist nodes. */
static void fsi__sm_spread_joint(const double *g11, const double *h11, double *g, double *h)
{
    static const int at[11] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12 };
    int i, j;
    if (g) {
        memset(g, 0, 15 * sizeof *g);
        for (i = 0; i < 11; i++) g[at[i]] = g11[i];
    }
    if (h) {
        memset(h, 0, 225 * sizeof *h);
        for (i = 0; i < 11; i++) for (j = 0; j < 11; j++) h[15 * at[i] + at[j]] = h11[11 * i + j];
    }
}

static double fsi__sm_joint(const fsi__sm_pass *w, int j, const double *x, double *g, double *h)
{
    fsi__shell_frame frame[2];
    double theta[2], g11[11], h11[121], energy;
    frame[0] = w->frame[w->model->joint_segment[2 * j]];
    frame[1] = w->frame[w->model->joint_segment[2 * j + 1]];
    theta[0] = x[9];
    theta[1] = x[12];
    energy = fsi__shell_joint_energy(&w->model->joint[j], frame, w->twist[j], x, theta, g ? g11 : NULL, h ? h11 : NULL,
                                     w->exact);
    fsi__sm_spread_joint(g11, h11, g, h);
    return energy;
}

/* Wind on a triangle (lagged coefficient c and normal n): W = c h/2 (n.(v - w))^2 with v the mean velocity of its
   corners. */
static double fsi__sm_blow(const fsi__sm_pass *w, int t, const double *x, double *g, double *h)
{
    const double *c = w->wind + 4 * t, *n = c + 1;
    const int *v = w->model->triangle + 3 * t;
    double u = -fsi__sh_dot(n, w->air), force;
    int i, j, a, b;
    for (i = 0; i < 3; i++) for (a = 0; a < 3; a++) u += n[a] * (x[3 * i + a] - w->base[3 * v[i] + a]) / (3 * w->h);
    force = c[0] * u / 3;
    if (g) for (i = 0; i < 3; i++) for (a = 0; a < 3; a++) g[3 * i + a] += force * n[a];
    if (h)
        for (i = 0; i < 3; i++)
            for (a = 0; a < 3; a++)
                for (j = 0; j < 3; j++)
                    for (b = 0; b < 3; b++) h[9 * (3 * i + a) + 3 * j + b] += c[0] / (9 * w->h) * n[a] * n[b];
    return c[0] * w->h / 2 * u * u;
}

static int fsi__sm_kind(const fsi__sm_model *m, int e)
{
    int kind = 0;
    while (e >= m->first[kind + 1]) kind++;
    return kind;
}

static double fsi__sm_element(const fsi__sm_pass *w, int e, const double *x, double *g, double *h)
{
    const fsi__sm_model *m = w->model;
    const int kind = fsi__sm_kind(m, e), i = e - m->first[kind];
    const double support = m->share[e] / (w->h * w->h);
    double value;
    switch (kind) {
    case FSI__SM_MEMBRANE:
        value = fsi__shell_membrane_energy(&m->membrane[i], x, g, h, w->exact, support);
        return w->wind ? value + fsi__sm_blow(w, i, x, g, h) : value;
    case FSI__SM_HINGE: return fsi__shell_hinge(m->fold[i].k, m->fold[i].rest, x, g, h, w->exact, support);
    case FSI__SM_PLATE: return fsi__shell_plate_energy(&m->plate[i], x, g, h, w->exact, support);
    case FSI__SM_STRETCH: return fsi__shell_stretch(m->bar[i].ea, m->bar[i].rest, x, g, h, w->exact);
    case FSI__SM_JOINT: return fsi__sm_joint(w, i, x, g, h);
    default:
        return (m->dim == 2 ? fsi__shell_bend_flat : fsi__shell_bend)(m->bow[i].b, m->bow[i].rest, x, g, h, w->exact);
    }
}

static void fsi__sm_element_pass(void *arg, int chunk, int begin, int end)
{
    const fsi__sm_pass *w = (const fsi__sm_pass *)arg;
    const fsi__sm_model *m = w->model;
    int e;
    (void)chunk;
    for (e = begin; e < end; e++) {
        double x[18], *g = w->what >= FSI__SM_GRADIENT ? w->vector + 3 * (size_t)m->start[e] : NULL,
                      *h = w->what >= FSI__SM_HESSIAN ? w->value + m->value_at[e] : NULL;
        fsi__sh_gather(w->q, m->node + m->start[e], m->start[e + 1] - m->start[e], x);
        w->energy[e] = fsi__sm_element(w, e, x, g, h);
    }
}

/* Nanoseconds that an element takes at least: its energy; its gradient too; its Hessian too. fsi__parallel_work */
static double fsi__sm_element_ns(int what)
{
    return what >= FSI__SM_HESSIAN ? 200 : (what >= FSI__SM_GRADIENT ? 40 : 30);
}

FSI_API double fsi__sm_energies(fsi__sm_pass *w)
{
    const int elements = w->model->first[FSI__SM_KINDS];
    const double work = fsi__sm_element_ns(w->what) * elements;
    fsi__parallel_work(w->context, elements, 128, work, fsi__sm_element_pass, w);
    return fsi__sh_sum(w->energy, elements);
}

/* ---- >>frames and wind ------------------------------------------------------------------------------------------- */

FSI_API void fsi__sm_carry(const fsi__sm_model *m, const double *q, fsi__shell_frame *frame, double *twist)
{
    int i;
    for (i = 0; i < m->segments; i++)
        if (m->twist_node[i] >= 0)
            fsi__shell_frame_transport(&frame[i], q + 3 * m->chain[2 * i], q + 3 * m->chain[2 * i + 1]);
    for (i = 0; i < m->count[FSI__SM_JOINT]; i++) {
        fsi__shell_frame f[2];
        double x[9];
        f[0] = frame[m->joint_segment[2 * i]];
        f[1] = frame[m->joint_segment[2 * i + 1]];
        fsi__sh_gather(q, m->node + m->start[m->first[FSI__SM_JOINT] + i], 3, x);
        twist[i] = fsi__shell_joint_twist(f, twist[i], x);
    }
}

FSI_API void fsi__sm_lag_wind(const fsi__sm_model *m, const double *x, const double *v, const double *air, double drag,
                              double density, double *wind)
{
    int t, i, a;
    for (t = 0; t < m->triangles; t++) {
        const int *p = m->triangle + 3 * t;
        double r[3], s[3], n[3], l, u = -0.0, *c = wind + 4 * (size_t)t;
        fsi__sh_sub(x + 3 * p[1], x + 3 * p[0], r);
        fsi__sh_sub(x + 3 * p[2], x + 3 * p[0], s);
        fsi__sh_cross(r, s, n);
        l = sqrt(fsi__sh_dot(n, n));
        for (a = 0; a < 3; a++) {
            c[1 + a] = l > 0 ? n[a] / l : 0;
            for (i = 0; i < 3; i++) u += c[1 + a] * v[3 * p[i] + a] / 3;
            u -= c[1 + a] * air[a];
        }
        c[0] = drag / 2 * density * (l / 2) * fabs(u);
    }
}

/* ---- >>damping --------------------------------------------------------------------------------------------------- */

FSI_API void fsi__sm_lay_damped(const fsi__sm_model *m, fsi__sm_model *d, fsi__arena *a)
{
    *d = *m;
    d->membrane = (fsi__shell_membrane *)fsi__take(a, (size_t)d->count[FSI__SM_MEMBRANE], sizeof *d->membrane);
    d->fold = (fsi__sm_fold *)fsi__take(a, (size_t)d->count[FSI__SM_HINGE], sizeof *d->fold);
    d->plate = (fsi__shell_plate *)fsi__take(a, (size_t)d->count[FSI__SM_PLATE], sizeof *d->plate);
    d->bar = (fsi__sm_bar *)fsi__take(a, (size_t)d->count[FSI__SM_STRETCH], sizeof *d->bar);
    d->joint = (fsi__shell_joint *)fsi__take(a, (size_t)d->count[FSI__SM_JOINT], sizeof *d->joint);
    d->bow = (fsi__sm_bow *)fsi__take(a, (size_t)d->count[FSI__SM_BEND], sizeof *d->bow);
}

/* Damping is objective: it acts on the rates of the strains e in an element's energy, not on rotations. Over a step 1/2
   k (e - r)^2 + k beta/(2 dt) (e - e0)^2 = 1/2 (1 + b) k (e - r')^2 + const., b = beta/dt, r' = (r + b e0) / (1 + b),
   e0 the strain at the beginning: an element and its damper are one element. */
static void fsi__sm_damp_membrane(fsi__shell_membrane *r, const double *x, double b)
{
    const double none[3] = { 0, 0, 0 }, by = r->neo_hookean ? b : 1 + b;
    double f[2][3], d[3][2];
    int k;
    fsi__shell_strain(r, x, f, d);
    fsi__shell_green(f, none, r->strain);
    for (k = 0; k < 3; k++) r->strain[k] *= b / by;
    r->c11 *= by;
    r->c22 *= by;
    r->c12 *= by;
    r->c66 *= by;
    r->damped = 1;
}

static void fsi__sm_damp_plate(fsi__shell_plate *r, const double *x, double b)
{
    double flap[12];
    int e;
    for (e = 0; e < 9; e++) r->q[e] *= 1 + b;
    for (e = 0; e < 3; e++) {
        if (r->missing >> e & 1) continue;
        fsi__shell_gather_flap(x, e, flap);
        r->rest[e] += b / (1 + b) * fsi__shell_turn(fsi__shell_angle(flap, NULL, NULL), r->rest[e]);
    }
}

static void fsi__sm_damp_joint(fsi__shell_joint *r, const fsi__shell_frame frame[2], double reference, const double *x,
                               double b)
{
    fsi__shell_twisted t;
    double theta[2];
    int k;
    for (k = 0; k < 2; k++) theta[k] = x[9 + 3 * k];
    t = fsi__shell_twisted_at(frame, reference, x, theta);
    for (k = 0; k < 2; k++) {
        r->bend[k] *= 1 + b;
        r->rest_curvature[k] = (r->rest_curvature[k] + b * t.kappa[k]) / (1 + b);
    }
    r->twist *= 1 + b;
    r->rest_twist = (r->rest_twist + b * t.twist) / (1 + b);
}

/* Adds a damper to an element. In 3D a bend without twist has no frame: only the size of its curvature is damped. */
static void fsi__sm_damp_element(fsi__sm_model *p, int e, const fsi__shell_frame *frame, const double *twist,
                                 const double *x, double b)
{
    const int kind = fsi__sm_kind(p, e), i = e - p->first[kind];

    /* Both together are one element: stiffness (1 + b) k, rest value (rest + b x) / (1 + b). */
    switch (kind) {
    case FSI__SM_MEMBRANE: fsi__sm_damp_membrane(&p->membrane[i], x, b); break;
    case FSI__SM_HINGE:
        p->fold[i].rest += b / (1 + b) * fsi__shell_turn(fsi__shell_angle(x, NULL, NULL), p->fold[i].rest);
        p->fold[i].k *= 1 + b;
        break;
    case FSI__SM_PLATE: fsi__sm_damp_plate(&p->plate[i], x, b); break;

    /* Rods: stretch (k = ea / rest), joints with twist, bending without. */
    case FSI__SM_STRETCH: {
        const double k = (1 + b) * p->bar[i].ea / p->bar[i].rest;
        p->bar[i].rest = (p->bar[i].rest + b * fsi__sh_apart(x, x + 3)) / (1 + b);
        p->bar[i].ea = k * p->bar[i].rest;
        break;
    }
    case FSI__SM_JOINT: {
        fsi__shell_frame two[2];
        two[0] = frame[p->joint_segment[2 * i]];
        two[1] = frame[p->joint_segment[2 * i + 1]];
        fsi__sm_damp_joint(&p->joint[i], two, twist[i], x, b);
        break;
    }
    default: {
        const fsi__shell_bent bent = fsi__shell_bent_at(x);
        p->bow[i].rest =
            (p->bow[i].rest + b * (p->dim == 2 ? bent.kb[2] : sqrt(fsi__sh_dot(bent.kb, bent.kb)))) / (1 + b);
        p->bow[i].b *= 1 + b;
    }
    }
}

FSI_API void fsi__sm_damp(const fsi__sm_model *p, fsi__sm_model *d, const fsi__shell_frame *frame, const double *twist,
                          const double *q, double dt)
{
    int e;
    memcpy(d->membrane, p->membrane, (size_t)p->count[FSI__SM_MEMBRANE] * sizeof *d->membrane);
    memcpy(d->fold, p->fold, (size_t)p->count[FSI__SM_HINGE] * sizeof *d->fold);
    memcpy(d->plate, p->plate, (size_t)p->count[FSI__SM_PLATE] * sizeof *d->plate);
    memcpy(d->bar, p->bar, (size_t)p->count[FSI__SM_STRETCH] * sizeof *d->bar);
    memcpy(d->joint, p->joint, (size_t)p->count[FSI__SM_JOINT] * sizeof *d->joint);
    memcpy(d->bow, p->bow, (size_t)p->count[FSI__SM_BEND] * sizeof *d->bow);
    for (e = 0; e < p->first[FSI__SM_KINDS]; e++) {
        const double beta = (double)p->material[p->element_material[e]].damping_stiffness;
        double x[18];
        if (!(beta > 0)) continue;
        fsi__sh_gather(q, p->node + p->start[e], p->start[e + 1] - p->start[e], x);
        fsi__sm_damp_element(d, e, frame, twist, x, beta / dt);
    }
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
