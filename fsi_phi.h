/* fsi_phi.h - level sets on a sparse grid: distance, components, volumes, shapes added and removed, their surface
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_phi.h"
         #include "fsi_phi.h"

   A DROP OVER A POOL, AND HOW MUCH THEY HOLD
      fsi_context ctx = fsi_default_context();             // hooks for memory, threads, messages; and what went wrong
      fsi_grid_desc d = fsi_grid_default_desc();           // a box of 64^3 cells; none of them exists yet
      fsi_grid *grid;
      fsi_field *phi;                                      // below 0 in the liquid
      fsi_grid_component all;
      fsi_box3 pool;
      d.context = &ctx;
      if (fsi_grid_create(&grid, &d) != FSI_OK) { puts(ctx.error.message); return 1; }
      if (fsi_grid_add_field(grid, FSI_CELLS, 8 * grid->dx, &phi) != FSI_OK) return 1;
      pool.lo = fsi_v3(0, 0, 0);
      pool.hi = fsi_v3(1, 1, 0.25f);
      if (fsi_grid_fill_box(phi, FSI_GRID_ADD, pool, 8) != FSI_OK) return 1;           // makes the blocks that it needs
      if (fsi_grid_fill_sphere(phi, FSI_GRID_ADD, fsi_v3(0.5f, 0.5f, 0.6f), 0.2f, 8) != FSI_OK) return 1;
      if (fsi_grid_volumes(phi, NULL, 1, NULL, NULL, &all) != FSI_OK) return 1;
      printf("%g m^3 in %d blocks of 8^3 cells\n", all.volume, grid->block_count);
      fsi_grid_destroy(grid);                              // with its fields

   WHAT IS IN HERE (search for >>)
      >>distance       redistancing, connected components, volumes by marching;  >>distance to meshes
      >>fill           balls, boxes, meshes into or out of a level set
      >>level set surface  watertight, with normals
      >>stages         for fsi's own headers, not for you
      then the implementation: >>redistance  >>components  >>growth  >>volumes  >>shapes on the grid
      >>fill implementation ...
   MACROS: those of fsi.h.
   UNITS: SI. In 2D volumes and areas are per metre of depth.
   PRECISION: phi in fsi_real; distances, volumes and sums in double. Recommended: double.
   STACK: up to 52 kB in the caller's thread and in each of the context's.
   COST: docs/grid.md
*/
#ifndef FSI_PHI_H
#define FSI_PHI_H

#include "fsi_grid.h"
#include "fsi_shape.h"
#include "fsi_surface.h"

/* ---- >>distance ------------------------------------------------------------------------------------------------ */

/* A level set phi lives in FSI_CELLS: below 0 in liquid. Cells in no block are air, so its background must be above 0.
   Liquid beyond the walls of the box is ignored. All of these work in scratch memory that the grid keeps: in the steady
   state they allocate nothing. One of them at a time on one grid. */

/* out = the signed distance |grad out| = 1 to the surface phi = 0 where it is nearer than band * dx, +-band * dx
   elsewhere; band is 2 to 16 cells. Cells with a neighbour on the other side find their distance by a quadratic fit to
   phi; from there the nearest points of the surface are handed on from cell to cell. The surface stays: to third order
   in dx where it is smooth and its radius is above 2 dx (a ball of 8 dx that is a distance already stays within 1e-3
   dx), to a fraction of a cell at edges and in sheets and drops of one or two cells, which keep their volume when this
   is done again and again: 100 times: sheets of 1.2 dx and more to 6 %, along diagonals in 2D to 20 %. Farther off
   values are good to 2e-3 dx beside that. No sign changes: what is liquid (phi < 0) stays liquid. Entries beyond the
   box become +band * dx. out may be phi. Errors: COOKIE, ARGUMENT (band, place, grid, background), NAN (names the
   entry), MEMORY; out stays as it was. */
FSI_API fsi_status fsi_grid_redistance(const fsi_field *phi, int band, fsi_field *out);

/* label[entry] (block_count * block_cells) = number of the component that the entry's cell belongs to, -1: not liquid.
   Liquid is phi < 0 within the box where solid (NULL ok, one byte an entry) is 0; components hold together by faces of
   cells. They are numbered in the order of their first cells, ascending in (k, j, i), whatever the blocks. count (NULL
   ok): how many. Errors: COOKIE, ARGUMENT (place, background, label is NULL), NAN (names the entry), MEMORY; label
   stays as it was. */
FSI_API fsi_status fsi_grid_label(const fsi_field *phi, const unsigned char *solid, int *label, int *count);

/* Entries within the box that have no label (any below 0) and are at most `layers` steps across faces away from one
   that has, take the label that comes over the fewest steps; of several, that of the neighbour with the smallest phi;
   of equal ones, the smallest label. layers: 0 to 64. Errors: COOKIE, ARGUMENT (place, layers, label is NULL), NAN
   (names the entry), MEMORY; label stays as it was. */
FSI_API fsi_status fsi_grid_grow_labels(int *label, const fsi_field *phi, int layers);

/* What one component holds. */
typedef struct fsi_grid_component {
    double volume;         /* [m^3]; 2D: [m^2] */
    double area;           /* of its free surface [m^2], without what wets walls; 2D: [m] */
    fsi_vec3 centroid;     /* [m] */
    fsi_vec3 momentum;     /* over density: volume times the velocity of liquid cells, the mean of their faces [m^4/s];
                              2D: [m^3/s]; 0 without u */
    fsi_box3 box;          /* the smallest one around it [m]; centroid and box are 0 where there is no volume */
    int cells;             /* entries with its label and phi < 0 */
} fsi_grid_component;

/* out[c] for the components 0 .. count-1 that label (as fsi_grid_label made it, grown or not; other numbers are left
   out; NULL: all is component 0) tells apart. Volume is where phi < 0, phi being linear in the 6 tetrahedra (2D: 2
   triangles) of each cube between 8 cell centres, and over the half cell from the last centre to a wall as between the
   last two. Where the liquid corners of a tetrahedron bear several labels, it is shared among them in equal parts; what
   is liquid at a wall only bears the label, if grown, of the cell there. solid (NULL: there is none): a field of cells
   that holds the distance to solids as fsi_grid_mesh_distance makes it; of a cell counts the fraction
   clamp(1/2 + solid/dx, 0, 1), linear between centres as phi is. A sphere of radius R comes out smaller by
   (dx/R)^2 / 2, a circle by (dx/R)^2 / 6, planes are exact. u (NULL ok): fields of the face velocities of all axes, on
   the same grid. Errors: COOKIE, ARGUMENT (place, background, count < 0, out is NULL), NAN (names the entry of phi or
   u), MEMORY; out stays as it was. */
FSI_API fsi_status fsi_grid_volumes(const fsi_field *phi, const int *label, int count, fsi_field *const u[3],
    const fsi_field *solid, fsi_grid_component *out);

/* ---- >>fill ---------------------------------------------------------------------------------------------------- */

/* Puts liquid into a level set, or takes it out. phi [m]: a field of cells, negative in the liquid, whose background is
   at least band dx. With d the signed distance to a shape, negative inside, clamped to +-band dx (band: cells, 2 to
   16):

      FSI_GRID_ADD      phi = min(phi, d)     union; makes the blocks that hold a cell with d < band dx, also deep
                                              inside
      FSI_GRID_REMOVE   phi = max(phi, -d)    difference; no block comes or goes

   What is further than band dx from the surface is filled by its sign, block by block. Where shapes meet, phi is the
   distance to the nearer one only: redistance it. In 2D z is ignored. Errors: COOKIE, ARGUMENT (names what is out
   of its range), NAN, LIMIT, MEMORY; nothing has changed then. */
typedef enum fsi_grid_operation { FSI_GRID_ADD, FSI_GRID_REMOVE } fsi_grid_operation;

/* A ball; in 2D a disc. radius > 0. */
FSI_API fsi_status fsi_grid_fill_sphere(fsi_field *phi, fsi_grid_operation operation, fsi_vec3 center, fsi_real radius,
    int band);
/* A side of the box that lies on a wall of the grid (to dx/1000) or beyond it is no surface: of a pool against the
   walls, phi is the distance to its top alone. */
FSI_API fsi_status fsi_grid_fill_box(fsi_field *phi, fsi_grid_operation operation, fsi_box3 box, int band);
/* A CLOSED mesh of the grid's dimension (else MESH, ARGUMENT): what it encloses; that is the liquid of a container
   too. */
FSI_API fsi_status fsi_grid_fill_mesh(fsi_field *phi, fsi_grid_operation operation, const fsi_mesh *mesh, int band);

/* ---- >>distance to meshes -------------------------------------------------------------------------------- */

/* psi [m], a field of cells: the signed distance to a CLOSED mesh at the centres of the cells of all blocks, negative
   in the solid (that is outside of a container), clamped to +-band dx, 2 to 16. Exact; costs 1 to 2 us a cell in the
   band, next to nothing beyond. Errors: COOKIE, ARGUMENT (place, band, dimension), MESH (not closed); psi stays as it
   was. */
FSI_API fsi_status fsi_grid_mesh_distance(fsi_field *psi, const fsi_mesh *mesh, int band);

/* ---- >>level set surface ----------------------------------------------------------------------------------------- */

/* The surface phi = 0 of a field of cells, made of triangles (2D: segments) by marching cubes over the cubes whose
   corners are centres of cells; where it meets the walls of the box it goes on to them, phi continued without gradient.
   Arrays stay valid until the next update. Capped, every edge belongs to exactly two triangles (2D: every vertex to two
   segments). No two vertices of an element are closer than dx/2000, no element is without area, as far as fsi_real
   tells positions there apart. */
typedef struct fsi_grid_surface {
    uint32_t cookie;
    fsi_context *context;
    int corners;                 /* of an element, as the last field has dimensions: 3 or 2 */
    int vertex_count, element_count;
    const fsi_vec3 *vertices;    /* vertex_count [m] */
    const fsi_vec3 *normals;     /* vertex_count, unit, out of the liquid, along the gradient of phi; on caps that of
                                    the wall */
    const int *elements;         /* corners * element_count; triangles counter-clockwise seen from outside, segments
                                    with the outside on their left (as fsi_mesh_desc wants them) */
    void *impl;
} fsi_grid_surface;

/* An empty surface; memory comes from `context` (NULL: malloc). Errors: COOKIE, MEMORY; then *out is NULL. Destroying
   NULL is fine. */
FSI_API fsi_status fsi_grid_surface_create(fsi_grid_surface **out, fsi_context *context);
FSI_API void fsi_grid_surface_destroy(fsi_grid_surface *surface);
/* phi [m], a field of cells, negative in the liquid, with a background >= 0. capped: 1 closes the liquid at the walls,
   0 leaves its sides there open, for a picture of liquid behind glass. Same field, same bits for any number of threads.
   Errors: COOKIE, ARGUMENT (place, background), NAN (names the cell), LIMIT (2^31 - 1 vertices or indices), MEMORY; the
   former surface then stays as it was. */
FSI_API fsi_status fsi_grid_surface_update(fsi_grid_surface *surface, const fsi_field *phi, int capped);

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* Where a block lies: see fsi__side_of_block. */
enum { FSI__SIDE_OUTSIDE = -1, FSI__SIDE_INSIDE = -2, FSI__SIDE_CUT = -3 };

/* psi becomes the distance to shape, clamped to +-limit, at the cells of the grid. */
typedef struct fsi__distance_job {
    const fsi_grid *grid;
    fsi_field *psi;
    fsi_shape shape;
    fsi_real limit;
} fsi__distance_job;

/* Distances at the cells of block b. before: what was returned for the block b - 1, or FSI__SIDE_CUT. Returns where the
   block lies. */
FSI_API int fsi__distance_block(const fsi__distance_job *job, int b, int before, fsi_real *out);
/* fsi_grid_redistance after a step dt [s] along the velocities u (fields of faces, as fsi_grid_advect takes them): at
   edges and in thin sheets, a value that is nearly a distance is corrected in proportion to how far its cell moved, and
   so are all values as far as the liquid creeps, 0 to 1; see FSI__SHEET_MOVED and FSI__SHEET_CREPT. */
FSI_API fsi_status fsi__grid_redistance_moved(const fsi_field *phi, int band, fsi_field *const u[3], fsi_real dt,
    double creeps, fsi_field *out);
/* Checks a mesh that is to be a boundary on a grid. */
FSI_API fsi_status fsi__grid_check_mesh(fsi_context *context, const fsi_grid *g, const fsi_mesh *mesh, const char *f);
/* Moves the ends of an interval that reach the walls far away. */
FSI_API void fsi__grid_fill_open_walls(const fsi_grid *g, int axis, fsi_real origin, fsi_real *lo, fsi_real *hi);
/* Where a block lies: all of its points 0 .. top - 1 outside of the mesh or inside, further than the limit, or maybe
   not so. `before` is what was said of the block b - 1: where no face is near to either of two neighbours both are on
   one side, and the mesh need not be searched. */
FSI_API int fsi__side_of_block(const fsi_grid *g, const fsi__sampling *s, int b, const int *top, int before);

FSI__STRICT_FN_BEGIN
/* A principal curvature of the surface, from the curvature k of the level at distance `phi` from it, all in cells;
   clamped to 1, the largest that a grid resolves. */
FSI_FN double fsi__phi_principal(double k, double phi)
{
    const double shift = 1 - k * phi;
    k /= shift > 0.25 ? shift : 0.25;
    return k > 1 ? 1 : (k < -1 ? -1 : k);
}

/* Curvature [1/m] of the surface where it is nearest, from phi around a cell by centred differences, g = grad phi, H
   its second derivatives. The level through the cell has the sum of curvatures kap = (g.g tr H - g.H g)/|g|^3 and the
   Gaussian curvature K = g.adj(H) g/|g|^4 (0 in 2D), so the principal ones kap/2 +- sqrt(kap^2/4 - K). Those of
   a parallel surface at distance phi are k/(1 - k phi). Without that step the faces of a cell that is barely liquid
   would have different pressures over almost no distance. Each is bounded by itself: the rim of a puddle is curved in
   one direction in 3D too, and a bound of 2/dx on the sum would make it round. */
FSI_FN double fsi__phi_curvature(const fsi_real *p, int dim, const int *step, double dx)
{
    double g[3] = { 0, 0, 0 }, h[3][3], g2 = 0, trace = 0, along = 0, adjoint = 0, kap, phi, apart;
    int a, b;

    /* dx times the gradient, dx^2 times the Hessian */
    memset(h, 0, sizeof h);
    for (a = 0; a < dim; a++) {
        g[a] = ((double)p[step[a]] - (double)p[-step[a]]) / 2;
        g2 += g[a] * g[a];
        trace += h[a][a] = (double)p[step[a]] - 2 * (double)*p + (double)p[-step[a]];
        for (b = 0; b < a; b++)
            h[a][b] = h[b][a] = ((double)p[step[a] + step[b]] - (double)p[step[a] - step[b]] -
                                 (double)p[step[b] - step[a]] + (double)p[-step[a] - step[b]]) /
                                4;
    }
    if (!(g2 > 1e-12 * dx * dx)) return 0;

    /* g.H g and g.adj(H) g */
    for (a = 0; a < 3; a++)
        for (b = 0; b < 3; b++) {
            const int c = (a + 1) % 3, d = (a + 2) % 3, e = (b + 1) % 3, f = (b + 2) % 3;
            along += g[a] * h[a][b] * g[b];
            adjoint += g[a] * (h[c][e] * h[d][f] - h[c][f] * h[d][e]) * g[b];
        }

    /* principal curvatures, each moved from this level to the surface */
    phi = (double)*p / dx; /* from here on, lengths in cells */
    kap = (g2 * trace - along) / (g2 * sqrt(g2));
    if (dim == 2) return fsi__phi_principal(kap, phi) / dx;
    apart = kap * kap / 4 - adjoint / (g2 * g2);
    apart = apart > 0 ? sqrt(apart) : 0;
    return (fsi__phi_principal(kap / 2 + apart, phi) + fsi__phi_principal(kap / 2 - apart, phi)) / dx;
}
FSI__STRICT_FN_END

#endif /* FSI_PHI_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_PHI_IMPLEMENTATION
#define FSI_PHI_IMPLEMENTATION
#endif
#ifdef FSI_PHI_IMPLEMENTATION
#ifndef FSI_PHI_IMPLEMENTATION_DONE
#define FSI_PHI_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_grid.h"
#include "fsi_shape.h"
#include "fsi_surface.h"

FSI__STRICT_BEGIN

/* ---- >>redistance ----------------------------------------------------------------------------------------------- */

/* Each cell that has a neighbour on the other side of the surface fits a SHEET to it: the nearest point p of the
   surface, its normal n there, and how it bends. Every other cell of the band needs to know one sheet only, that which
   lies nearest:

              x  .                       r = x - p       z = n . r       t = |r - z n|
              |   .  z                   K = curvature of the sheet along t
         -----p----------  t             d = z + K t^2 / (2 (1 + K z)) + O(t^4)
          ..--+--..                      the distance from x to the sheet, either side: a circle's to fourth order
        .'         '.

   so that it need not lie right below x. Outside of its reach a sheet is only its point p, or corners would grow wings.
   Which sheet is the nearest spreads like a wave: a cell that has found one offers it to its neighbours farther out.
   These ask at once for the sheet of the cell where the point of that one nearest to them lies, take what brings them
   nearer than they were, and offer it on. Inside of a block this is a queue; blocks take turns like the squares of a
   chess board and look only at the faces of those of the other colour, until none has news. So the result depends on no
   schedule. (Sheets: Chopp, SIAM J. Sci. Comput. 23 (2001), with a Taylor expansion in place of a bicubic; the wave:
   Danielsson, Comput. Graphics Image Process. 14 (1980), with sheets in place of points.) */

/* In cells; single precision is 1e-6 cells here. One line of cache. */
typedef struct fsi__sheet {
    float foot[3], normal[3];   /* p - centre of its cell; n, out of the liquid */
    float bend[6];              /* curvature of phi at that centre, P H P: xx yy zz yz xz xy */
    float reach2;               /* reach squared; 0: a point */
    float cell[3];              /* that made it */
} fsi__sheet;

typedef struct fsi__waves {
    const fsi_field *phi;
    fsi_field *out;
    fsi_field *const *u;        /* that moved phi; NULL: not known */
    double dt;                  /* for so long [s] */
    double creeps;              /* 0 to 1: viscosity governs it */
    int band;
    fsi__mask mask;
    uint64_t *source;           /* bits of cells that make sheets */
    int *first;                 /* block_count + 1: number of each block's first sheet */
    fsi__sheet *sheet;
    double *fitted, *exact;     /* of the cell that made it: distance by the fit [dx]; the distance that the cell takes
                                   [dx] */
    float *distance;            /* each entry: in cells, up to `band`; below 0 what keeps it: minus that of sources, -64
                                   beyond the box */
    int *nearest;               /* each entry: its sheet; -1: none yet */
    int *beside;                /* 6 a block */
    unsigned char *news, *turn; /* each block: faces (bits) behind which cells came nearer in its last turn;
                                   colour, + 2: it had its first turn */
    int colour;
} fsi__waves;

/* Distance of a point (relative to the centre of its cell) to s; positive on `side` +-1. *guess: the same of a sheet
   without end; *slide: how far along t its nearest point lies, over t. */
FSI_FN float fsi__sheet_distance(const fsi__sheet *s, const float at[3], float side, float *guess, float *slide)
{
    const float *n = s->normal, *k = s->bend;
    const float x = at[0] - s->foot[0], y = at[1] - s->foot[1], z = at[2] - s->foot[2];
    const float up = n[0] * x + n[1] * y + n[2] * z, rr = x * x + y * y + z * z;
    const float bend = k[0] * x * x + k[1] * y * y + k[2] * z * z + 2 * (k[3] * y * z + k[4] * x * z + k[5] * x * y);
    const float tt = rr - up * up > 1e-9f ? rr - up * up : 1e-9f,
        den = tt + (n[0] * at[0] + n[1] * at[1] + n[2] * at[2]) * bend;
    *slide = tt / (den > 0.25f * tt ? den : 0.25f * tt);
    *guess = (up + 0.5f * bend * *slide) * side;
    return tt * *slide * *slide <= s->reach2 && *guess > 0 ? *guess : sqrtf(rr);
}

static double fsi__minmod(double a, double b) { return a * b <= 0 ? 0 : (fabs(a) < fabs(b) ? a : b); }

/* Slope and curvature of phi (times q) along one axis, for a cell on side +-1: fourth order where phi is smooth there,
   else from the side that goes down to the surface (ENO), or, where a sheet of one cell lies across, which bends phi
   there, from the other. 0: not smooth. */
static int fsi__sheet_slope(const fsi_real *u, int stride, double q, double side, double *slope, double *curve)
{
    const double a = (double)u[-2 * stride] * q, b = (double)u[-stride] * q, c = (double)u[0] * q,
        d = (double)u[stride] * q, e = (double)u[2 * stride] * q;
    const double s0 = b - 2 * c + d, sb = a - 2 * b + c, sd = c - 2 * d + e;
    const int lower = side * b < side * d, sheet = (c < 0) != ((lower ? b : d) < 0) && (c < 0) == ((lower ? a : e) < 0);
    if (fabs(s0) <= 0.5 && fabs(sb - 2 * s0 + sd) <= 0.25) {
        *slope = (d - b) / 2 - (sd - sb) / 12;
        *curve = s0 - (sb - 2 * s0 + sd) / 12;
        return 1;
    }
    *slope = 0;
    *curve = 0;
    if (sheet && side * ((lower ? d : b) - c) > 0) *slope = lower ? d - c : c - b;
    else if (side * ((lower ? b : d) - c) < 0) {
        *curve = fsi__minmod(s0, lower ? sb : sd);
        *slope = lower ? c - b + *curve / 2 : d - c - *curve / 2;
    }
    return 0;
}

/* Where the fit fails: the nearest crossing on the lines to the 8 or 26 neighbours. */
static double fsi__sheet_point(const fsi_real *u, const int stride[3], int dim, fsi__sheet *s)
{
    const double c = (double)u[0];
    double best = 4;
    int d[3], a, found[3] = { 0, 0, 0 };
    for (d[2] = dim == 3 ? -1 : 0; d[2] <= (dim == 3); d[2]++)
        for (d[1] = -1; d[1] <= 1; d[1]++)
            for (d[0] = -1; d[0] <= 1; d[0]++) {
                const double o = (double)u[d[0] * stride[0] + d[1] * stride[1] + d[2] * stride[2]];
                const double t = (o < 0) == (c < 0) ? 4 : c / (c - o),
                    length = t * sqrt((double)(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]));
                if (!(t <= 1 && length < best)) continue;
                best = length;
                for (a = 0; a < 3; a++) {
                    found[a] = d[a];
                    s->foot[a] = (float)(t * d[a]);
                }
            }
    for (a = 0; a < 3; a++)
        s->normal[a] =
            (float)((c < 0 ? found[a] : -found[a])
            / sqrt((double)(found[0] * found[0] + found[1] * found[1] + found[2] * found[2])));
    return best;
}

/* Repeated fits to their own result would move the surface, a checkerboard pattern first (measured: by 5e-5 dx the
   first time, 5e-2 dx after 300 times). So where the fit differs from |phi| by less than this fraction of it, the
   correction is reduced in proportion: a field that is a distance does not change. */
#define FSI__SHEET_STEADY 0.05
#define FSI__SHEET_REACH2 2.25f /* of smooth ones */

/* What a cell takes, of the distances that it has and that it is to have: corrections up to `share` of the distance are
   reduced, the smaller the more, and all of them the more the smaller `moved` is, 0 to 1. */
FSI_FN double fsi__sheet_stays(double own, double to, double share, double moved)
{
    const double off = fabs(to - own) / (share * fabs(to) + 1e-30);
    return off < 1 ? own + moved * off / (1 - (1 - moved) * off) * (to - own) : to;
}

/* The sheet of the cell at u, which is an entry of an array that holds at least 2 layers of cells around it. Returns
   its distance. With phi scaled by q, the reciprocal of the largest slope, and g and H its gradient and Hessian at x,
   the surface lies at the distance t along -g:
      phi - |g| t + n.Hn t^2 / 2 = 0;  its curvature is P H P / |g|, P = 1 - n n^T. */
static double fsi__sheet_fit(const fsi_real *u, const int stride[3], int dim, double dx, fsi__sheet *s)
{
    const double c = (double)u[0], side = c < 0 ? -1 : 1;
    double g[3] = { 0, 0, 0 }, h[6] = { 0, 0, 0, 0, 0, 0 }, n[3], w[3], most = 0, cross = 1, gg = 0, wn = 0, q, t, own,
        length, inverse, bend = 0, up[3], upup = 0;
    int a, smooth[3] = { 0, 0, 0 }, thin = 0, all = 1;
    memset(s, 0, sizeof *s);

    /* The largest slope, and the nearest crossing along an axis. */
    for (a = 0; a < dim; a++) {
        const double lo = (double)u[-stride[a]], hi = (double)u[stride[a]];
        most = most > fabs(c - lo) ? most : fabs(c - lo);
        most = most > fabs(hi - c) ? most : fabs(hi - c);
        if ((lo < 0) != (c < 0) && c / (c - lo) < cross) cross = c / (c - lo);
        if ((hi < 0) != (c < 0) && c / (c - hi) < cross) cross = c / (c - hi);
    }
    q = 1 / (most + 1e-307);

    /* Gradient and second derivatives, in units of the largest slope. */
    for (a = 0; a < dim; a++) {
        all &= smooth[a] = fsi__sheet_slope(u, stride[a], q, side, &g[a], &h[a]);
        gg += g[a] * g[a];
        thin |= !smooth[a] && ((double)u[-stride[a]] < 0) != (c < 0) && ((double)u[stride[a]] < 0) != (c < 0);
    }
    if (thin || gg < 0.04) return fsi__sheet_point(u, stride, dim, s);
    for (a = 0; a < 3; a++) {
        const int i = (a + 1) % 3, j = (a + 2) % 3;
        if (!smooth[i] || !smooth[j]) continue;
        h[3 + a] = ((double)u[stride[i] + stride[j]] - (double)u[stride[i] - stride[j]]
            - (double)u[stride[j] - stride[i]] + (double)u[-stride[i] - stride[j]]) * q / 4;
    }

    /* n, H n and n.Hn. */
    length = sqrt(gg);
    inverse = 1 / length;
    for (a = 0; a < 3; a++) n[a] = g[a] * inverse;
    for (a = 0; a < 3; a++) {
        w[a] = h[a] * n[a] + h[3 + (a + 2) % 3] * n[(a + 1) % 3] + h[3 + (a + 1) % 3] * n[(a + 2) % 3];
        wn += w[a] * n[a];
    }

    /* The root of the quadratic, no farther than the crossing. */
    t = gg - 2 * c * q * wn;
    t = 2 * c * q / (length + sqrt(t > gg / 4 ? t : gg / 4));
    cross = 1.25 * cross;
    if (!(fabs(t) <= cross)) t = side * cross;
    own = fsi__sheet_stays(c / dx, t, FSI__SHEET_STEADY, 1);

    /* Curvature across n, and the gradient at the foot. */
    for (a = 0; a < 3; a++) {
        up[a] = g[a] - t * w[a];
        upup += up[a] * up[a];
    }
    for (a = 0; a < 6; a++) {
        const int i = a < 3 ? a : (a + 1) % 3, j = a < 3 ? a : (a + 2) % 3;
        h[a] = (h[a] - n[i] * w[j] - n[j] * w[i] + wn * n[i] * n[j]) * inverse;
        bend += h[a] * h[a] * (a < 3 ? 1 : 2);
    }
    bend = bend > 1 ? 1 / sqrt(bend) : 1;
    upup = 1 / sqrt(upup > gg / 4 ? upup : gg / 4);

    /* The sheet. */
    for (a = 0; a < 3; a++) {
        s->foot[a] = (float)(-t * n[a]);
        s->normal[a] = (float)(up[a] * upup);
    }
    for (a = 0; a < 6; a++) s->bend[a] = (float)(h[a] * bend);
    s->reach2 = all ? FSI__SHEET_REACH2 : 0.6f;
    return fabs(own);
}

/* The cells of each block that have a neighbour on the other side within the box. */
static void fsi__waves_sources(void *arg, int chunk, int begin, int end)
{
    const fsi__waves *m = (const fsi__waves *)arg;
    const fsi_grid *g = m->phi->grid;
    const int layers = fsi__layers(g), sides = 2 * g->dim;
    int corner[3], b, z, side, count;
    (void)chunk;
    for (b = begin; b < end; b++) {
        /* Cells with a neighbour of the other sign. */
        const uint64_t *own = fsi__mask_of(m->mask.liquid, g, b);
        uint64_t *source = fsi__mask_of(m->source, g, b);
        fsi_grid_corner(g, b, corner);
        fsi__blocks_beside(g, b, m->beside + b * 6);
        for (z = count = 0; z < layers; z++) {
            const int stay[3] = { 0, 0, 0 };
            for (side = 0, source[z] = 0; side < sides; side++)
                source[z] |= (own[z] ^ fsi__mask_beside(g, m->mask.liquid, b, m->beside[b * 6 + side], z, side))
                     & fsi__mask_inside(g, FSI_CELLS, corner, z, fsi__step(side));
            source[z] &= fsi__mask_inside(g, FSI_CELLS, corner, z, stay);
            count += fsi__mask_count(source[z]);
        }

        /* Their number, the block's colour, no changed faces. */
        m->first[b + 1] = count;
        m->turn[b] = (unsigned char)(((corner[0] ^ corner[1] ^ corner[2]) >> 3) & 1);
        m->news[b] = 0;
    }
}

/* The sheets of each block, and what its entries start from. */
static void fsi__waves_sheets(void *arg, int chunk, int begin, int end)
{
    const fsi__waves *m = (const fsi__waves *)arg;
    const fsi_grid *g = m->phi->grid;
    const int layers = fsi__layers(g), stride[3] = { 1, 12, g->dim == 3 ? 144 : 0 }, stay[3] = { 0, 0, 0 },
        size[3] = { 12, 12, g->dim == 3 ? 12 : 1 };
    fsi_real box[12 * 12 * 12];
    int corner[3], lo[3] = { 0, 0, 0 }, b, z, c, id;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const uint64_t *source = fsi__mask_of(m->source, g, b);
        float *distance = m->distance + (size_t)b * (size_t)g->block_cells;
        int *nearest = m->nearest + (size_t)b * (size_t)g->block_cells;

        /* Entries around the block, where it has sheets. */
        fsi_grid_corner(g, b, corner);
        id = m->first[b];
        if (m->first[b + 1] > id) {
            for (z = 0; z < g->dim; z++) lo[z] = corner[z] - 2;
            fsi__grid_gather_box(m->phi, lo, size, box);
            fsi__grid_extend_box(m->phi, lo, size, box);
        }

        /* Entries start at the band, or beyond all that a wave brings when they are outside of the box. */
        for (z = 0; z < layers; z++) {
            const uint64_t inside = fsi__mask_inside(g, FSI_CELLS, corner, z, stay);
            for (c = 0; c < 64; c++) nearest[z * 64 + c] = -1;
            if (inside == ~(uint64_t)0) for (c = 0; c < 64; c++) distance[z * 64 + c] = (float)m->band;
            else for (c = 0; c < 64; c++) distance[z * 64 + c] = (inside >> c & 1) ? (float)m->band : -64;

            /* A sheet for each source. */
            for (c = 0; c < 64 && source[z] >> c; c++) {
                if (!(source[z] >> c & 1)) continue;
                m->fitted[id] = fsi__sheet_fit(box + (c & 7) + 2 + ((c >> 3) + 2) * 12
                    + (g->dim == 3 ? (z + 2) * 144 : 0), stride, g->dim, (double)g->dx, m->sheet + id);
                m->sheet[id].cell[0] = (float)(corner[0] + (c & 7));
                m->sheet[id].cell[1] = (float)(corner[1] + (c >> 3));
                m->sheet[id].cell[2] = (float)(corner[2] + z);
                distance[z * 64 + c] = -(float)m->fitted[id];
                nearest[z * 64 + c] = id++;
            }
        }
    }
}

/* The distances of the sources. Where the fit is not smooth, at edges and in sheets of a cell or two, the cells on both
   sides of a crossing would each move it differently and the liquid would lose volume (measured: sheets of 1 to 1.4 dx
   lost 7 to 25 % in 100 times, at worst half; now 4 %). There a distance becomes the mean of the fit and of the
   distance at which the crossings with neighbours stay, given their fits: two cells that do so keep their crossing
   (after Hartmann, Meinke and Schroeder, J. Comput. Phys. 229 (2010), whose constraint takes the second one alone). A
   value that is nearly a distance is hardly changed: if each step restored the shape that the fit prefers, the rim of a
   thin puddle would have no shape at which surface tension is in equilibrium, and would drive an eddy without end (5
   mm/s at a rim two cells high). What redistancing has to mend is made by the flow, |grad u| dt a step. So where the
   faces of a cell moved by less than FSI__SHEET_MOVED cells the correction is in proportion to the motion: then
   viscosity brings a puddle to rest, as what drives it ends with its motion. */
#define FSI__SHEET_KEPT 0.5
#define FSI__SHEET_MOVED 0.01

/* Where viscosity governs the flow all corrections within FSI__SHEET_NEAR cells of the surface are so. The fit of a
   smooth surface is off by 0.003 dx at the foot of a drop, and the levels around it, on which its curvature depends,
   change with the sheet that is nearest: tension answers, the flow moves the surface back, and so for ever, at 3 to 30
   mm/s (0.1 Pa s). A surface is a distance again by the time that it has moved by FSI__SHEET_CREPT cells; with 0.1 to
   0.3 some drops and puddles still go on. Waves that viscosity does not damp need it at once: their periods are off by
   1 to 3 % else. */
#define FSI__SHEET_CREPT 0.5
#define FSI__SHEET_NEAR 3.5

/* How far the fastest face of a cell moved, in units of `unit` cells; at most 1, and 1 where nothing is known. */
static double fsi__sheet_moved(const fsi__waves *m, int i, int j, int k, double unit)
{
    double most = 0;
    int a;
    if (!m->u) return 1;
    for (a = 0; a < m->phi->grid->dim; a++) {
        const int *step = fsi__step(2 * a + 1);
        const double lower = fabs((double)fsi_grid_at(m->u[a], i, j, k)),
            upper = fabs((double)fsi_grid_at(m->u[a], i + step[0], j + step[1], k + step[2]));
        most = most > lower ? most : lower;
        most = most > upper ? most : upper;
    }
    most *= m->dt / ((double)m->phi->grid->dx * unit);
    return most < 1 ? most : 1;
}

/* What a cell takes that is to have the distance `to`, of its own and that one. */
static double fsi__sheet_creeps(const fsi__waves *m, int i, int j, int k, double own, double to)
{
    return m->creeps > 0 ? to + m->creeps * (1 - fsi__sheet_moved(m, i, j, k, FSI__SHEET_CREPT)) * (own - to) : to;
}

static void fsi__waves_keep(void *arg, int chunk, int begin, int end)
{
    const fsi__waves *m = (const fsi__waves *)arg;
    const fsi_grid *g = m->phi->grid;
    int id, side;
    (void)chunk;
    for (id = m->first[begin]; id < m->first[end]; id++) {
        /* The sheet's own distance. */
        const fsi__sheet *s = m->sheet + id;
        const int i = (int)s->cell[0], j = (int)s->cell[1], k = (int)s->cell[2];
        const double c = (double)fsi_grid_at(m->phi, i, j, k), own = fabs(c) / (double)m->phi->grid->dx;
        double sum = 0, weight = 0;
        m->exact[id] = m->fitted[id];

        /* The mean of the fit and of the distance that the neighbours across the surface imply. */
        for (side = 0; side < 2 * g->dim && s->reach2 < FSI__SHEET_REACH2; side++) {
            const int *step = fsi__step(side);
            const long long e = fsi_grid_entry(g, i + step[0], j + step[1], k + step[2]);
            double o, t; /* t: from the crossing to the neighbour, of the way between the two */
            if (e < 0 || !fsi__mask_at(m->source, (size_t)e)) continue;
            o = (double)m->phi->value[e];
            if ((o < 0) == (c < 0)) continue;
            t = o / (o - c);
            sum += t * (1 - t) * m->fitted[m->nearest[e]];
            weight += t * t;
        }
        if (weight > 1e-12) m->exact[id] = (m->fitted[id] + sum / weight) / 2;
        if (s->reach2 < FSI__SHEET_REACH2)
            m->exact[id] = fsi__sheet_stays(own, m->exact[id], FSI__SHEET_KEPT,
                fsi__sheet_moved(m, i, j, k, FSI__SHEET_MOVED));
        m->exact[id] = fsi__sheet_creeps(m, i, j, k, own, m->exact[id]);
    }
}

#define FSI__WAVE_GAIN 1e-3f  /* cells: coming nearer by less is not worth a change */
/* One neighbour is nearer than the cell by dx/sqrt(3) at least, less the curvature of the surface. */
#define FSI__WAVE_SLOPE 0.52f

/* The sheet of the cell that holds the nearest point of s to `at` (relative to the centre of its cell), -1: there is
   none. If that cell makes no sheet the surface cuts a corner off it only: then the next cell across makes one. */
static int fsi__wave_below(const fsi__waves *m, const fsi__sheet *s, const float at[3], float slide)
{
    const float *n = s->normal;
    const float up = (at[0] - s->foot[0]) * n[0] + (at[1] - s->foot[1]) * n[1] + (at[2] - s->foot[2]) * n[2];
    long long e;
    int a, cell[3], most = 0;
    for (a = 0; a < 3; a++) cell[a] = (int)(s->cell[a] + s->foot[a] + (at[a] - s->foot[a] - up * n[a]) * slide + 0.5f);
    e = fsi_grid_entry(m->phi->grid, cell[0], cell[1], cell[2]);
    if (e >= 0 && !fsi__mask_at(m->source, (size_t)e)) {
        for (a = 1; a < 3; a++) if (fabsf(n[a]) > fabsf(n[most])) most = a;
        cell[most] += (n[most] > 0) == fsi__mask_at(m->mask.liquid, (size_t)e) ? 1 : -1;
        e = fsi_grid_entry(m->phi->grid, cell[0], cell[1], cell[2]);
    }
    return e >= 0 && fsi__mask_at(m->source, (size_t)e) ? m->nearest[e] : -1;
}

/* Offers sheet `id` to the cell with entry e. If that brings it nearer it takes it, or better the sheet of the cell
   below which it lies. */
static int fsi__wave_offer(const fsi__waves *m, int id, size_t e, const float cell[3], float side)
{
    const fsi__sheet *s = m->sheet + id;
    const float enough = m->distance[e] - FSI__WAVE_GAIN;
    float at[3], slide, guess, d, other;
    int a, below;
    for (a = 0; a < 3; a++) at[a] = cell[a] - s->cell[a];
    d = fsi__sheet_distance(s, at, side, &guess, &slide);
    if (!(guess < enough)) return 0;
    below = fsi__wave_below(m, s, at, slide);
    if (below >= 0 && below != id) {
        s = m->sheet + below;
        for (a = 0; a < 3; a++) at[a] = cell[a] - s->cell[a];
        other = fsi__sheet_distance(s, at, side, &guess, &slide);
        if (other < enough && other < d + 0.1f) {
            d = other;
            id = below;
        }
    }
    if (!(d < enough)) return 0;
    m->distance[e] = d;
    m->nearest[e] = id;
    return 1;
}

/* A queue of the cells of a block whose sheet may be nearer to a neighbour than its own. */
typedef struct fsi__wave {
    uint64_t queued[8];
    unsigned short queue[512];
    unsigned head, tail;
    int news;
} fsi__wave;

static void fsi__wave_push(fsi__wave *w, int c)
{
    const uint64_t bit = (uint64_t)1 << (c & 63);
    if (w->queued[c >> 6] & bit) return;
    w->queued[c >> 6] |= bit;
    w->queue[w->tail++ & 511] = (unsigned short)c;
}

/* Cell c of block b, with entry e, is offered a sheet. */
static void fsi__wave_pass(const fsi__waves *m, int id, size_t e, const int corner[3], int c, fsi__wave *w)
{
    float cell[3];
    cell[0] = (float)(corner[0] + (c & 7));
    cell[1] = (float)(corner[1] + (c >> 3 & 7));
    cell[2] = (float)(corner[2] + (c >> 6));
    if (fsi__wave_offer(m, id, e, cell, fsi__mask_at(m->mask.liquid, e) ? -1.0f : 1.0f)) fsi__wave_push(w, c);
}

/* The t-th cell on face `side` (as of fsi__step) of a block. */
static int fsi__face_cell(int side, int t)
{
    switch (side >> 1) {
    case 0: return 8 * t + 7 * (side & 1);
    case 1: return (t >> 3) * 64 + (t & 7) + 56 * (side & 1);
    default: return t + 448 * (side & 1);
    }
}

/* One turn of block b: the queue begins with its own sources (the first time) and with cells at faces that a
   neighbour's changed cells improve; it ends when no cell improves another. */
static void fsi__wave_run(const fsi__waves *m, int b)
{
    static const int step[6] = { -1, 1, -8, 8, -64, 64 }, faces[8] = { 1, 0, 0, 0, 0, 0, 0, 2 };
    const fsi_grid *g = m->phi->grid;
    const int sides = 2 * g->dim, face = 8 * fsi__layers(g);
    const size_t own = (size_t)b * (size_t)g->block_cells;
    fsi__wave w;
    const float *distance = m->distance + own;
    int corner[3], side, t, c, to, edge, hit;
    fsi_grid_corner(g, b, corner);
    memset(&w, 0, sizeof w);

    /* The block's own sources. */
    if (m->turn[b] < 2)
        for (c = 0; c < g->block_cells; c++) if (fsi__mask_at(m->source, own + (size_t)c)) fsi__wave_push(&w, c);

    /* What came in through the faces. */
    for (side = 0; side < sides; side++) {
        const int other = m->beside[b * 6 + side];
        if (other < 0 || !(m->news[other] >> (side ^ 1) & 1)) continue;
        for (t = 0; t < face; t++) {
            const size_t from = (size_t)other * (size_t)g->block_cells + (size_t)fsi__face_cell(side ^ 1, t);
            to = fsi__face_cell(side, t);
            if (fabsf(m->distance[from]) + FSI__WAVE_SLOPE < distance[to])
                fsi__wave_pass(m, m->nearest[from], own + (size_t)to, corner, to, &w);
        }
    }

    /* Entries that changed pass their sheet to the neighbours that could improve by it. */
    while (w.head != w.tail) {
        c = w.queue[w.head++ & 511];
        w.queued[c >> 6] &= ~((uint64_t)1 << (c & 63));
        edge = faces[c & 7] | faces[c >> 3 & 7] << 2 | faces[c >> 6] << 4;
        w.news |= edge;
        for (side = hit = 0; side < sides; side++)
            hit |= (fabsf(distance[c]) + FSI__WAVE_SLOPE < distance[c + (edge >> side & 1 ? 0 : step[side])]) << side;
        for (side = 0; hit >> side; side++)
            if (hit >> side & 1)
                fsi__wave_pass(m, m->nearest[own + (size_t)c], own + (size_t)(c + step[side]), corner, c + step[side],
                    &w);
    }
    m->news[b] = (unsigned char)w.news;
}

/* The turn of the blocks of one colour. */
static void fsi__waves_turn(void *arg, int chunk, int begin, int end)
{
    const fsi__waves *m = (const fsi__waves *)arg;
    int b, side, wake;
    (void)chunk;
    for (b = begin; b < end; b++) {
        if ((m->turn[b] & 1) != m->colour) continue;
        wake = m->turn[b] < 2 && m->first[b + 1] > m->first[b];
        for (side = 0; side < 2 * m->phi->grid->dim; side++)
            wake |= m->beside[b * 6 + side] >= 0 && (m->news[m->beside[b * 6 + side]] >> (side ^ 1) & 1);
        m->news[b] = 0;
        if (wake) fsi__wave_run(m, b);
        m->turn[b] |= 2;
    }
}

static void fsi__waves_write(void *arg, int chunk, int begin, int end)
{
    const fsi__waves *m = (const fsi__waves *)arg;
    const fsi_grid *g = m->phi->grid;
    const double dx = (double)g->dx, least = (double)FSI_REAL_EPS;
    int b, c, at[3];
    (void)chunk;
    for (b = begin; b < end; b++) {
        const size_t own = (size_t)b * (size_t)g->block_cells;
        fsi_grid_corner(g, b, at);
        for (c = 0; c < g->block_cells; c++) {
            const size_t e = own + (size_t)c;
            double d = (double)m->distance[e];
            if (d <= 0) d = m->nearest[e] < 0 ? m->band : m->exact[m->nearest[e]];
            else if (d < FSI__SHEET_NEAR)
                d = fsi__sheet_creeps(m, at[0] + (c & 7), at[1] + (c >> 3 & 7), at[2] + (c >> 6),
                    fabs((double)m->phi->value[e]) / dx, d);
            if (fsi__mask_at(m->mask.liquid, e)) d = d < least ? -least : -d;
            m->out->value[e] = (fsi_real)(d * dx);
        }
    }
}

/* Lays out the scratch of m for so many sheets. */
static void fsi__waves_take(fsi__waves *m, fsi__arena *a, size_t sheets)
{
    const size_t blocks = (size_t)m->phi->grid->block_count, cells = blocks * (size_t)m->phi->grid->block_cells;
    m->mask.liquid = (uint64_t *)fsi__take(a, cells / 64, sizeof(uint64_t));
    m->mask.bad = (unsigned char *)fsi__take(a, blocks, 1);
    m->source = (uint64_t *)fsi__take(a, cells / 64, sizeof(uint64_t));
    m->first = (int *)fsi__take(a, blocks + 1, sizeof(int));
    m->beside = (int *)fsi__take(a, blocks * 6, sizeof(int));
    m->news = (unsigned char *)fsi__take(a, blocks, 1);
    m->turn = (unsigned char *)fsi__take(a, blocks, 1);
    m->distance = (float *)fsi__take(a, cells, sizeof(float));
    m->nearest = (int *)fsi__take(a, cells, sizeof(int));
    m->sheet = (fsi__sheet *)fsi__take(a, sheets, sizeof(fsi__sheet));
    m->fitted = (double *)fsi__take(a, sheets, sizeof(double));
    m->exact = (double *)fsi__take(a, sheets, sizeof(double));
}

/* Scratch, bits and sources. How many sheets there are shows only when the sources are known: if they do not fit, once
   more. */
static fsi_status fsi__waves_begin(fsi__waves *m, const char *function)
{
    const fsi_grid *g = m->phi->grid;
    size_t sheets = 0;
    int b;
    for (;;) {
        fsi__arena measure;
        memset(&measure, 0, sizeof measure);
        fsi__waves_take(m, &measure, sheets);
        FSI__TRY(fsi__grid_room(g, measure.used, function));
        fsi__waves_take(m, fsi__grid_scratch(g), sheets);
        FSI__TRY(fsi__mask_make(&m->mask, function));
        fsi__grid_light(g, 16, 300, fsi__waves_sources, m);
        for (b = 0, m->first[0] = 0; b < g->block_count; b++) m->first[b + 1] += m->first[b];
        if ((size_t)m->first[g->block_count] <= sheets) return FSI_OK;
        sheets = (size_t)m->first[g->block_count];
    }
}

FSI_API fsi_status fsi_grid_redistance(const fsi_field *phi, int band, fsi_field *out)
{
    return fsi__grid_redistance_moved(phi, band, NULL, 0, 0, out);
}

FSI_API fsi_status fsi__grid_redistance_moved(const fsi_field *phi, int band, fsi_field *const u[3], fsi_real dt,
    double creeps, fsi_field *out)
{
    static const char *const f = "fsi_grid_redistance";
    const fsi_grid *g;
    fsi__waves m;
    int idle = 0, b;

    /* Input. */
    FSI__TRY(fsi__level_set_check(phi, f));
    g = phi->grid;
    if (!fsi__is_field(out)) return FSI_ERROR_COOKIE;
    if (out->grid != g || out->place != FSI_CELLS)
        return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, 0, "out is not a field of cells of phi's grid");
    if (band < 2 || band > 16)
        return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, band, "band is %d, not 2 to 16", band);

    /* Scratch, and the cells at the surface. */
    memset(&m, 0, sizeof m);
    m.phi = m.mask.field = phi;
    m.out = out;
    m.u = u;
    m.dt = (double)dt;
    m.creeps = creeps;
    m.band = band;
    FSI__TRY(fsi__waves_begin(&m, f));

    /* Sheets; then waves, of blocks of one colour at a time. */
    fsi__grid_light(g, 4, 800, fsi__waves_sheets, &m);
    fsi__grid_light(g, 16, 40, fsi__waves_keep, &m);
    for (m.colour = 0; idle < 2; m.colour ^= 1) { /* until a turn of each colour brings nothing */
        fsi__grid_light(g, 4, 40, fsi__waves_turn, &m);
        for (b = 0, idle++; b < g->block_count; b++) if (m.news[b] && (m.turn[b] & 1) == m.colour) idle = 0;
    }
    fsi__grid_light(g, 16, 380, fsi__waves_write, &m);
    return FSI_OK;
}

/* ---- >>components ----------------------------------------------------------------------------------------------- */

/* Each block floods its own bits; the pieces are joined across faces of blocks by union-find, the piece with the
   earlier first cell leading, and the leaders are numbered in the order of their first cells. */
typedef struct fsi__pieces {
    const fsi_grid *grid;
    fsi__mask mask;
    int *label;
    int *first;     /* block_count + 1: number of each block's first piece */
    int *lead;      /* for each piece a piece before it in the same component, itself if there is none; at the end the
                       component */
    int *at[3];     /* each piece: k, j, i of its first cell */
    int *order, *spare, *start, *leader;
} fsi__pieces;

/* Moves the piece of `rest` that holds its first cell to `piece`; 0: nothing is left. */
static int fsi__mask_flood(uint64_t rest[8], uint64_t piece[8], int layers)
{
    int z, seed = 0, grown = 1;
    while (seed < layers && !rest[seed]) seed++;
    if (seed == layers) return 0;
    for (z = 0; z < layers; z++) piece[z] = 0;
    piece[seed] = rest[seed] & (~rest[seed] + 1);
    while (grown)
        for (z = grown = 0; z < 2 * layers; z++) { /* up and down again */
            const int i = z < layers ? z : 2 * layers - 1 - z;
            uint64_t w = piece[i] | (i > 0 ? piece[i - 1] : 0) | (i < layers - 1 ? piece[i + 1] : 0), before;
            w &= rest[i];
            do {
                before = w;
                w |= (w << 1 & ~FSI__COLUMN) | (w >> 1 & ~(FSI__COLUMN << 7)) | w << 8 | w >> 8;
                w &= rest[i];
            } while (w != before);
            grown |= w != piece[i];
            piece[i] = w;
        }
    for (z = 0; z < layers; z++) rest[z] &= ~piece[z];
    return 1;
}

/* Counts each block's pieces. */
static void fsi__pieces_count(void *arg, int chunk, int begin, int end)
{
    const fsi__pieces *m = (const fsi__pieces *)arg;
    const int layers = fsi__layers(m->grid);
    uint64_t rest[8], piece[8];
    int b, n;
    (void)chunk;
    for (b = begin; b < end; b++) {
        memcpy(rest, fsi__mask_of(m->mask.liquid, m->grid, b), (size_t)layers * sizeof *rest);
        for (n = 0; fsi__mask_flood(rest, piece, layers); n++) continue;
        m->first[b + 1] = n;
    }
}

/* Labels each entry with its piece. */
static void fsi__pieces_mark(void *arg, int chunk, int begin, int end)
{
    const fsi__pieces *m = (const fsi__pieces *)arg;
    const fsi_grid *g = m->grid;
    const int layers = fsi__layers(g);
    uint64_t rest[8], piece[8];
    int corner[3], b, c, p, z;
    (void)chunk;
    for (b = begin; b < end; b++) {
        /* All liquid cells, of no piece yet. */
        int *label = m->label + (size_t)b * (size_t)g->block_cells;
        fsi_grid_corner(g, b, corner);
        memcpy(rest, fsi__mask_of(m->mask.liquid, g, b), (size_t)layers * sizeof *rest);
        for (c = 0; c < g->block_cells; c++) label[c] = -1;

        /* Piece after piece: its cells, and the first of them. */
        for (p = m->first[b]; fsi__mask_flood(rest, piece, layers); p++) {
            m->lead[p] = p;
            m->at[0][p] = -1;
            for (z = 0; z < layers; z++)
                for (c = 0; c < 64 && piece[z] >> c; c++) {
                    if (!(piece[z] >> c & 1)) continue;
                    label[z * 64 + c] = p;
                    if (m->at[0][p] >= 0) continue;
                    m->at[0][p] = corner[2] + z;
                    m->at[1][p] = corner[1] + (c >> 3);
                    m->at[2][p] = corner[0] + (c & 7);
                }
        }
    }
}

static int fsi__pieces_leader(const fsi__pieces *m, int p)
{
    while (m->lead[p] != p) p = m->lead[p] = m->lead[m->lead[p]];
    return p;
}

static void fsi__pieces_join(const fsi__pieces *m, int p, int q)
{
    int a = 0;
    p = fsi__pieces_leader(m, p);
    q = fsi__pieces_leader(m, q);
    if (p == q) return;
    while (m->at[a][p] == m->at[a][q]) a++;
    if (m->at[a][p] < m->at[a][q]) m->lead[q] = p;
    else m->lead[p] = q;
}

/* Joins the pieces that touch across */
static void fsi__pieces_touch(const fsi__pieces *m, int b)
{
    const fsi_grid *g = m->grid;
    const int *own = m->label + (size_t)b * (size_t)g->block_cells, *other;
    int side, t, p, q, last = -1, with = -1;
    if (m->first[b] == m->first[b + 1]) return;
    for (side = 0; side < 2 * g->dim; side += 2) {
        const int beside = fsi__block_beside(g, b, fsi__step(side));
        if (beside < 0 || m->first[beside] == m->first[beside + 1]) continue;
        other = m->label + (size_t)beside * (size_t)g->block_cells;
        for (t = 0; t < 8 * fsi__layers(g); t++) {
            p = own[fsi__face_cell(side, t)];
            q = other[fsi__face_cell(side + 1, t)];
            if (p < 0 || q < 0 || (p == last && q == with)) continue;
            fsi__pieces_join(m, last = p, with = q);
        }
    }
}

/* Turns m->lead into numbers of components; returns how many there are. */
static int fsi__pieces_number(const fsi__pieces *m)
{
    const int pieces = m->first[m->grid->block_count];
    fsi__sorter s;
    int a, p, n = 0;

    /* Leaders, each with its first cell. */
    for (p = 0; p < pieces; p++) m->leader[p] = fsi__pieces_leader(m, p);
    for (p = 0; p < pieces; p++) {
        if (m->leader[p] != p) continue;
        for (a = 0; a < 3; a++) m->at[a][n] = m->at[a][p]; /* leaders close up; the n-th keeps its own name in `lead` */
        m->lead[n++] = p;
    }

    /* Sorted by that cell. */
    for (a = 0; a < 3; a++) s.key[a] = m->at[a];
    s.order = m->order;
    s.spare = m->spare;
    s.start = m->start;
    s.keys = 2; /* the third ascends by itself: pieces do within a block, and blocks do along x */
    s.key_count = m->grid->n[0];
    for (a = 1; a < 3; a++) if (s.key_count < m->grid->n[a]) s.key_count = m->grid->n[a];
    s.n = n;
    fsi__sort(&s);

    /* Numbers of leaders, then of all pieces. */
    for (p = 0; p < n; p++) s.spare[s.order[p]] = p; /* number of the p-th leader; then by the name of the leader */
    for (p = n - 1; p >= 0; p--) m->at[0][m->lead[p]] = s.spare[p];
    for (p = 0; p < pieces; p++) m->lead[p] = m->at[0][m->leader[p]];
    return n;
}

static void fsi__pieces_write(void *arg, int chunk, int begin, int end)
{
    const fsi__pieces *m = (const fsi__pieces *)arg;
    const size_t cells = (size_t)m->grid->block_cells;
    size_t e;
    (void)chunk;
    for (e = (size_t)begin * cells; e < (size_t)end * cells; e++) if (m->label[e] >= 0)
        m->label[e] = m->lead[m->label[e]];
}

static void fsi__pieces_take(fsi__pieces *m, fsi__arena *a, size_t pieces)
{
    const size_t blocks = (size_t)m->grid->block_count;
    int k;
    m->mask.liquid = (uint64_t *)fsi__take(a, blocks * (size_t)fsi__layers(m->grid), sizeof(uint64_t));
    m->mask.bad = (unsigned char *)fsi__take(a, blocks, 1);
    m->first = (int *)fsi__take(a, blocks + 1, sizeof(int));
    for (k = 0; k < 3; k++) m->at[k] = (int *)fsi__take(a, pieces, sizeof(int));
    m->lead = (int *)fsi__take(a, pieces, sizeof(int));
    m->leader = (int *)fsi__take(a, pieces, sizeof(int));
    m->order = (int *)fsi__take(a, pieces, sizeof(int));
    m->spare = (int *)fsi__take(a, pieces, sizeof(int));
    m->start = (int *)fsi__take(a, 16384 + 1, sizeof(int));
}

/* Scratch, bits and the number of pieces; if they do not fit, once more. */
static fsi_status fsi__pieces_begin(fsi__pieces *m, const char *function)
{
    const fsi_grid *g = m->grid;
    size_t pieces = 0;
    int b;
    for (;;) {
        fsi__arena measure;
        memset(&measure, 0, sizeof measure);
        fsi__pieces_take(m, &measure, pieces);
        FSI__TRY(fsi__grid_room(g, measure.used, function));
        fsi__pieces_take(m, fsi__grid_scratch(g), pieces);
        FSI__TRY(fsi__mask_make(&m->mask, function));
        fsi__grid_light(g, 16, 50, fsi__pieces_count, m);
        for (b = 0, m->first[0] = 0; b < g->block_count; b++) m->first[b + 1] += m->first[b];
        if ((size_t)m->first[g->block_count] <= pieces) return FSI_OK;
        pieces = (size_t)m->first[g->block_count];
    }
}

FSI_API fsi_status fsi_grid_label(const fsi_field *phi, const unsigned char *solid, int *label, int *count)
{
    static const char *const f = "fsi_grid_label";
    fsi__pieces m;
    int b, n;
    FSI__TRY(fsi__level_set_check(phi, f));
    if (!label) return fsi__fail(phi->grid->context, FSI_ERROR_ARGUMENT, f, -1, 0, "label is NULL");
    memset(&m, 0, sizeof m);
    m.grid = phi->grid;
    m.mask.field = phi;
    m.mask.solid = solid;
    m.label = label;
    FSI__TRY(fsi__pieces_begin(&m, f));
    fsi__grid_light(m.grid, 16, 150, fsi__pieces_mark, &m);
    for (b = 0; b < m.grid->block_count; b++) fsi__pieces_touch(&m, b);
    n = fsi__pieces_number(&m);
    fsi__grid_light(m.grid, 16, 200, fsi__pieces_write, &m);
    if (count) *count = n;
    return FSI_OK;
}

/* ---- >>growth --------------------------------------------------------------------------------------------------- */

/* A step reads only labels that were there before it, by their bits, and writes only others. */
typedef struct fsi__growth {
    const fsi_field *phi;
    fsi__mask mask;         /* its bits become those of entries with a label */
    uint64_t *taken;        /* those that get one in this step */
    int *label;
} fsi__growth;

static void fsi__growth_start(void *arg, int chunk, int begin, int end)
{
    const fsi__growth *m = (const fsi__growth *)arg;
    const fsi_grid *g = m->phi->grid;
    const int stay[3] = { 0, 0, 0 };
    int corner[3], b, c, z;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const int *label = m->label + (size_t)b * (size_t)g->block_cells;
        fsi_grid_corner(g, b, corner);
        for (z = 0; z < fsi__layers(g); z++) {
            uint64_t w = 0;
            for (c = 0; c < 64; c++) w |= (uint64_t)(label[z * 64 + c] >= 0) << c;
            fsi__mask_of(m->mask.liquid, g, b)[z] = w & fsi__mask_inside(g, FSI_CELLS, corner, z, stay);
        }
    }
}

/* The label that entry c of block b takes from its neighbours; `beside`: the blocks at fsi__step, -1: none. */
static int fsi__growth_choose(const fsi__growth *m, int b, const int beside[6], int c)
{
    const fsi_grid *g = m->phi->grid;
    fsi_real least = 0;
    int side, best = -1;
    for (side = 0; side < 2 * g->dim; side++) {
        const long long e = fsi__entry_beside(g, b, beside, c, side);
        fsi_real p;
        if (e < 0 || !fsi__mask_at(m->mask.liquid, (size_t)e)) continue;
        p = m->phi->value[e];
        if (best >= 0 && (p > least || (!(p < least) && m->label[e] >= best))) continue;
        best = m->label[e];
        least = p;
    }
    return best;
}

static void fsi__growth_step(void *arg, int chunk, int begin, int end)
{
    const fsi__growth *m = (const fsi__growth *)arg;
    const fsi_grid *g = m->phi->grid;
    const int stay[3] = { 0, 0, 0 };
    int corner[3], b, c, side, z, beside[6];
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_grid_corner(g, b, corner);
        fsi__blocks_beside(g, b, beside);
        for (z = 0; z < fsi__layers(g); z++) {
            uint64_t w = 0;
            for (side = 0; side < 2 * g->dim; side++)
                w |= fsi__mask_beside(g, m->mask.liquid, b, beside[side], z, side);
            w &= fsi__mask_inside(g, FSI_CELLS, corner, z, stay) & ~fsi__mask_of(m->mask.liquid, g, b)[z];
            fsi__mask_of(m->taken, g, b)[z] = w;
            for (c = 0; c < 64 && w >> c; c++)
                if (w >> c & 1)
                    m->label[(size_t)b * (size_t)g->block_cells + (size_t)(z * 64 + c)] = fsi__growth_choose(m, b,
                        beside, z * 64 + c);
        }
    }
}

static void fsi__growth_take(fsi__growth *m, fsi__arena *a)
{
    const size_t blocks = (size_t)m->phi->grid->block_count, words = blocks * (size_t)fsi__layers(m->phi->grid);
    m->mask.liquid = (uint64_t *)fsi__take(a, words, sizeof(uint64_t));
    m->mask.bad = (unsigned char *)fsi__take(a, blocks, 1);
    m->taken = (uint64_t *)fsi__take(a, words, sizeof(uint64_t));
}

FSI_API fsi_status fsi_grid_grow_labels(int *label, const fsi_field *phi, int layers)
{
    static const char *const f = "fsi_grid_grow_labels";
    const fsi_grid *g;
    fsi__arena measure;
    fsi__growth m;
    size_t k, words;

    /* Input. */
    FSI__TRY(fsi__level_set_check(phi, f));
    g = phi->grid;
    if (!label) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, 0, "label is NULL");
    if (layers < 0 || layers > 64)
        return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, layers, "layers is %d, not 0 to 64", layers);

    /* Scratch. */
    memset(&m, 0, sizeof m);
    memset(&measure, 0, sizeof measure);
    m.phi = m.mask.field = phi;
    m.label = label;
    fsi__growth_take(&m, &measure);
    FSI__TRY(fsi__grid_room(g, measure.used, f));
    fsi__growth_take(&m, fsi__grid_scratch(g));
    FSI__TRY(fsi__mask_make(&m.mask, f));
    words = (size_t)g->block_count * (size_t)fsi__layers(g);

    /* Layer after layer. */
    fsi__grid_light(g, 16, 300, fsi__growth_start, &m);
    for (; layers > 0; layers--) {
        fsi__grid_light(g, 16, 250, fsi__growth_step, &m);
        for (k = 0; k < words; k++) m.mask.liquid[k] |= m.taken[k];
    }
    return FSI_OK;
}

/* ---- >>volumes -------------------------------------------------------------------------------------------------- */

/* phi is linear in each of the 6 tetrahedra that the diagonal from (0,0,0) to (1,1,1) cuts a cube between 8 cell
   centres into, and its liquid part, a tetrahedron or a prism (3 tetrahedra), has closed forms (Kuhn, IBM J. 4 (1960);
   spec: marching tetrahedra). In 2D the cube is one layer thick with the same values above and below, which gives the
   two triangles' own numbers.

   Cube (I, J, K) lies between the cells I - 1 and I of each axis. It counts for the last of the blocks that hold its 8
   cells, so each counts once whichever blocks exist. In the box the first and the last cubes of an axis reach from a
   wall to half a cell, and phi goes on to the wall as it runs between the last two centres: a film that thins away on a
   wall loses its volume steadily, and not half a cell at once. */
typedef struct fsi__sums {
    int label;
    double volume, area, moment[3], momentum[3], lo[3], hi[3]; /* in cells; momentum: volume times [m/s] */
    double cells;
} fsi__sums;

#define FSI__SUM_SLOTS 4

typedef struct fsi__marching {
    const fsi_field *phi;
    fsi_field *u[3];
    const fsi_field *solid;
    const int *label;
    int count, with_u;
    fsi__mask mask;
    fsi__sums *slot;        /* FSI__SUM_SLOTS a block */
    unsigned char *used;    /* slots that a block took; FSI__SUM_SLOTS + 1: too few, it is done again when the sums are
                               folded */
    fsi__sums *total;       /* count */
} fsi__marching;

/* Marching cubes of one block. */
typedef struct fsi__march {
    const fsi__marching *all;
    int block, corner[3], overflow;
    int cut;                           /* 1: a solid takes up part of some cell in or around the block */
    fsi__sums *only;                   /* when all liquid around bears one label: its sums */
    double lower[3][9], width[3][9];   /* of the cubes along each axis: lower corner from that of the box, edge; width
                                          0: none there */
    fsi_real phi[1000], share[1000];   /* gathered, 1 cell around; fraction of a cell that is no solid, when cut */
    double u[3][1000];                 /* likewise, when asked for: velocity, the mean of a cell's faces */
} fsi__march;

static void fsi__sums_clear(fsi__sums *s, int label)
{
    int a;
    memset(s, 0, sizeof *s);
    s->label = label;
    for (a = 0; a < 3; a++) {
        s->lo[a] = 1e30;
        s->hi[a] = -1e30;
    }
}

/* The block's sums for a label; NULL: it is none of 0 .. count - 1, or there is no slot left. */
static fsi__sums *fsi__march_sums(fsi__march *m, int label)
{
    const fsi__marching *all = m->all;
    fsi__sums *s = all->slot + (size_t)m->block * FSI__SUM_SLOTS;
    const int used = all->used[m->block];
    int k;
    if (label < 0 || label >= all->count) return NULL;
    if (m->overflow) return all->total + label; /* second time, on one thread */
    for (k = 0; k < used && k < FSI__SUM_SLOTS; k++) if (s[k].label == label) return s + k;
    all->used[m->block] = (unsigned char)(used <= FSI__SUM_SLOTS ? used + 1 : used);
    if (used >= FSI__SUM_SLOTS) return NULL;
    fsi__sums_clear(s + used, label);
    return s + used;
}

static void fsi__sums_reach(fsi__sums *s, const double x[3])
{
    int a;
    for (a = 0; a < 3; a++) {
        if (x[a] < s->lo[a]) s->lo[a] = x[a];
        if (x[a] > s->hi[a]) s->hi[a] = x[a];
    }
}

/* One cube: corner c is at lower + (c & 1, c >> 1 & 1, c >> 2) width; its sums are those of its cell's label, NULL:
   none. */
typedef struct fsi__cube {
    double lower[3], width[3], phi[8], u[8][3], share[8];
    double weight[8];   /* liquid as sum of weight times corner, which holds its volume and its first moment, 24
                           times */
    double area;
    fsi__sums *sums[8];
    int single;         /* all liquid corners share their sums: `weight` and `area` collect all */
    int cut;            /* share is not 1 at all corners */
} fsi__cube;

static void fsi__cube_corner(const fsi__cube *q, int c, double x[3])
{
    x[0] = q->lower[0] + (c & 1 ? q->width[0] : 0);
    x[1] = q->lower[1] + (c & 2 ? q->width[1] : 0);
    x[2] = q->lower[2] + (c & 4 ? q->width[2] : 0);
}

static void fsi__sums_add(fsi__sums *s, double volume, const double x[3], const double u[3])
{
    int a;
    s->volume += volume;
    for (a = 0; a < 3; a++) {
        s->moment[a] += volume * x[a];
        s->momentum[a] += volume * u[a];
    }
}

/* A tetrahedron of liquid: its fraction of that between the corners v, and four times the barycentric coordinates of
   its centre in that. */
static void fsi__cube_piece(fsi__cube *q, const int v[4], int n, double share, double m0, double m1, double m2,
    double m3)
{
    const double m[4] = { m0, m1, m2, m3 },
        clear = !q->cut ? 1 : (m0 * q->share[v[0]] + m1 * q->share[v[1]] + m2 * q->share[v[2]] + m3 * q->share[v[3]])
        / 4;
    const double volume = clear * share / 6 * q->width[0] * q->width[1] * q->width[2];
    double x[3] = { 0, 0, 0 }, y[3];
    int a, k;
    for (k = 0; k < 4 && q->single; k++) q->weight[v[k]] += share * m[k];
    if (q->single) return;
    for (k = 0; k < 4; k++) {
        fsi__cube_corner(q, v[k], y);
        for (a = 0; a < 3; a++) x[a] += m[k] * y[a] / 4;
    }
    for (k = 0; k < n; k++) {
        fsi__sums *s = q->sums[v[k]];
        if (!s || !(volume > 0)) continue;
        fsi__sums_add(s, volume / n, x, q->u[v[k]]);
        fsi__sums_reach(s, x);
    }
}

/* The liquid in the tetrahedron between four corners. With t the cuts of its edges, as fractions of them from the
   liquid end, liquid are

      1 corner:  a, ab, ac, ad;   2: the prism (a, ac, ad), (b, bc, bd);   3: the prism (a, b, c), (ad, bd, cd)

   and the area of the cut is |grad phi| times the rate at which the volume grows with the level. */
static void fsi__cube_tetrahedron(fsi__cube *q, const int corner[4])
{
    /* For each set of liquid corners: how many, and all corners, liquid ones first. */
    static const unsigned char sorted[16][5] = {
        { 0, 0, 1, 2, 3 }, { 1, 0, 1, 2, 3 }, { 1, 1, 0, 2, 3 }, { 2, 0, 1, 2, 3 },
        { 1, 2, 0, 1, 3 }, { 2, 0, 2, 1, 3 }, { 2, 1, 2, 0, 3 }, { 3, 0, 1, 2, 3 },
        { 1, 3, 0, 1, 2 }, { 2, 0, 3, 1, 2 }, { 2, 1, 3, 0, 2 }, { 3, 0, 1, 3, 2 },
        { 2, 2, 3, 0, 1 }, { 3, 0, 2, 3, 1 }, { 3, 1, 2, 3, 0 }, { 4, 0, 1, 2, 3 }
    };
    double f[4], t[4], rate = 0, slope = 0;
    int v[4], n, set = 0, k;

    /* The corners v in that order, and their phi. */
    for (k = 0; k < 4; k++) set |= (q->phi[corner[k]] < 0) << k;
    n = sorted[set][0];
    for (k = 0; k < 4; k++) {
        v[k] = corner[sorted[set][1 + k]];
        f[k] = q->phi[v[k]];
    }

    /* None, or all of it. */
    if (n == 0) return;
    if (n == 4) fsi__cube_piece(q, v, n, 1, 1, 1, 1, 1);
    if (n == 4) return;

    /* The pieces of the cases above; rate: derivative of the volume fraction with respect to the level. */
    if (n == 1) {
        for (k = 1; k < 4; k++) t[k] = f[0] / (f[0] - f[k]);
        fsi__cube_piece(q, v, n, t[1] * t[2] * t[3], 4 - t[1] - t[2] - t[3], t[1], t[2], t[3]);
        rate = -3 * t[1] * t[2] * t[3] / f[0];
    } else if (n == 2) {
        const double ac = 1 / (f[2] - f[0]), ad = 1 / (f[3] - f[0]), bc = 1 / (f[2] - f[1]), bd = 1 / (f[3] - f[1]);
        const double p = -f[0] * ac, r = -f[0] * ad, s = -f[1] * bc, w = -f[1] * bd;
        fsi__cube_piece(q, v, n, p * r, 3 - p - r, 1, p, r);
        fsi__cube_piece(q, v, n, (1 - p) * r * s, 2 - p - r, 2 - s, p + s, r);
        fsi__cube_piece(q, v, n, (1 - r) * s * w, 1 - r, 3 - s - w, s, r + w);
        rate = ac * r * (1 - s) + ad * (p + s * (1 - p) - s * w) + bc * (r * (1 - p) + w * (1 - r)) + bd * s * (1 - r);
    } else {
        for (k = 0; k < 3; k++) t[k] = f[k] / (f[k] - f[3]);
        fsi__cube_piece(q, v, n, t[0], 2 - t[0], 1, 1, t[0]);
        fsi__cube_piece(q, v, n, (1 - t[0]) * t[1], 1 - t[0], 2 - t[1], 1, t[0] + t[1]);
        fsi__cube_piece(q, v, n, (1 - t[0]) * (1 - t[1]) * t[2], 1 - t[0], 1 - t[1], 2 - t[2], t[0] + t[1] + t[2]);
        rate = 3 * (1 - t[0]) * (1 - t[1]) * (1 - t[2]) / f[3];
    }

    /* |grad phi|: consecutive corners differ along one axis. The area, in all and of each liquid corner's sum. */
    for (k = 0; k < 3; k++) {
        const double d = (q->phi[corner[k + 1]] - q->phi[corner[k]]) / q->width[(corner[k + 1] - corner[k]) >> 1];
        slope += d * d;
    }
    rate *= sqrt(slope) / 6 * q->width[0] * q->width[1] * q->width[2]
        * (q->share[v[0]] + q->share[v[1]] + q->share[v[2]] + q->share[v[3]]) / 4;
    q->area += rate;
    for (k = 0; k < n && !q->single; k++) if (q->sums[v[k]]) q->sums[v[k]]->area += rate / n;
}

/* Extends the bounding box of the sums by the corners and cuts of a cube that lies beyond it. */
static void fsi__cube_reach(const fsi__cube *q)
{
    double x[3], y[3];
    int a, c, d;
    for (c = 0; c < 8; c++) {
        fsi__sums *s = q->sums[c];
        if (!(q->phi[c] < 0) || !(q->share[c] > 0) || !s) continue;
        fsi__cube_corner(q, c, x);
        for (a = 0; a < 3 && q->lower[a] >= s->lo[a] && q->lower[a] + q->width[a] <= s->hi[a]; a++) continue;
        if (a == 3) continue;
        fsi__sums_reach(s, x);
        for (d = 0; d < 8; d++) { /* edges go from a corner to one that has all its bits and more */
            if (q->phi[d] < 0 || ((c & d) != c && (c & d) != d)) continue;
            fsi__cube_corner(q, d, y);
            for (a = 0; a < 3; a++) y[a] = x[a] + q->phi[c] / (q->phi[c] - q->phi[d]) * (y[a] - x[a]);
            fsi__sums_reach(s, y);
        }
    }
}

/* phi to where products of its differences and of their reciprocals neither overflow nor vanish. */
static void fsi__cube_scale(fsi__cube *q)
{
    double most = 1e-300;
    int c;
    for (c = 0; c < 8; c++) if (fabs(q->phi[c]) > most) most = fabs(q->phi[c]);
    most = 1 / most;
    for (c = 0; c < 8; c++) {
        const double f = q->phi[c] * most;
        q->phi[c] = q->phi[c] < 0 ? (f < -1e-90 ? f : -1e-90) : (f > 1e-90 ? f : 1e-90);
    }
}

static void fsi__cube_run(fsi__cube *q, int full)
{
    static const int corner[6][4] = { { 0, 1, 3, 7 }, { 0, 1, 5, 7 }, { 0, 2, 3, 7 }, { 0, 2, 6, 7 }, { 0, 4, 5, 7 },
        { 0, 4, 6, 7 } };
    const double *w = q->weight, volume = q->width[0] * q->width[1] * q->width[2];
    fsi__sums *s = NULL;
    double x[3], u[3] = { 0, 0, 0 }, sum, wet = 0;
    int c, k;

    /* Is there liquid? */
    for (c = 0; c < 8; c++) if (q->phi[c] < 0 && q->sums[c]) s = q->sums[c];
    if (!s) return;

    /* All liquid, of one component: the whole cube. */
    if (full && q->single && !q->cut) {
        for (k = 0; k < 3; k++) {
            x[k] = q->lower[k] + q->width[k] / 2;
            u[k] = (q->u[0][k] + q->u[1][k] + q->u[2][k] + q->u[3][k] + q->u[4][k] + q->u[5][k] + q->u[6][k]
                + q->u[7][k]) / 8;
        }
        fsi__sums_add(s, volume, x, u);

    /* Else the wet part of six tetrahedra. */
    } else {
        for (c = 0; c < 8; c++) q->weight[c] = 0;
        q->area = 0;
        fsi__cube_scale(q);
        for (k = 0; k < 6; k++) fsi__cube_tetrahedron(q, corner[k]);
        for (c = 0; c < 8; c++) q->weight[c] *= q->share[c];
        sum = w[0] + w[1] + w[2] + w[3] + w[4] + w[5] + w[6] + w[7];
        if (q->single && sum > 0) {
            x[0] = q->lower[0] + q->width[0] * ((w[1] + w[3] + w[5] + w[7]) / sum);
            x[1] = q->lower[1] + q->width[1] * ((w[2] + w[3] + w[6] + w[7]) / sum);
            x[2] = q->lower[2] + q->width[2] * ((w[4] + w[5] + w[6] + w[7]) / sum);
            for (c = 0; c < 8; c++) {
                if (!(q->phi[c] < 0)) continue;
                for (k = 0, wet += w[c]; k < 3; k++) u[k] += w[c] * q->u[c][k];
            }
            for (k = 0; k < 3 && wet > 0; k++) u[k] /= wet;
            fsi__sums_add(s, volume * sum / 24, x, u);
            s->area += q->area;
        }
    }

    /* The box of the component. */
    for (k = 0; k < 3 && q->single && q->lower[k] >= s->lo[k] && q->lower[k] + q->width[k] <= s->hi[k]; k++) continue;
    if (k < 3) fsi__cube_reach(q);
}

/* The sums of the label of the cell of corner c of cube l. */
static fsi__sums *fsi__march_corner(fsi__march *m, const int l[3], int c)
{
    const fsi__marching *all = m->all;
    const fsi_grid *g = all->phi->grid;
    int cell[3], a;
    long long e;
    for (a = 0; a < 3; a++) {
        cell[a] = l[a] - 1 + (c >> a & 1);
        if (cell[a] > g->n[a] - 1 - m->corner[a]) cell[a] = g->n[a] - 1 - m->corner[a];
        if (cell[a] < -m->corner[a]) cell[a] = -m->corner[a];
    }
    if ((unsigned)cell[0] < 8 && (unsigned)cell[1] < 8 && (unsigned)cell[2] < 8)
        e = (long long)m->block * g->block_cells + (cell[2] * 8 + cell[1]) * 8 + cell[0];
    else e = fsi_grid_entry(g, m->corner[0] + cell[0], m->corner[1] + cell[1], m->corner[2] + cell[2]);
    return e < 0 ? NULL : fsi__march_sums(m, all->label ? all->label[e] : 0);
}

/* Velocities of the cells in and around the block. */
static void fsi__march_velocities(fsi__march *m, int axis)
{
    static const int step[3] = { 1, 10, 100 };
    const fsi_grid *g = m->all->phi->grid;
    const int lo[3] = { m->corner[0] - 1, m->corner[1] - 1, g->dim == 3 ? m->corner[2] - 1 : 0 };
    int n[3] = { 10, 10, 1 }, x, y, z, beside;
    fsi_real face[1100];
    if (g->dim == 3) n[2] = 10;
    n[axis]++;
    beside = axis == 0 ? 1 : (axis == 1 ? n[0] : n[0] * n[1]);
    fsi__grid_gather_box(m->all->u[axis], lo, n, face);
    for (z = 0; z < (g->dim == 3 ? 10 : 1); z++)
        for (y = 0; y < 10; y++) {
            const fsi_real *f = face + (z * n[1] + y) * n[0];
            for (x = 0; x < 10; x++)
                m->u[axis][z * step[2] + y * step[1] + x] = ((double)f[x] + (double)f[x + beside]) / 2;
        }
}

/* Does block b own the cubes of region r of each axis, 0: the first, shared with the block before, 1: those inside, 2:
   that shared with the next? */
static int fsi__march_owns(const fsi__march *m, int rx, int ry, int rz)
{
    const fsi_grid *g = m->all->phi->grid;
    const int r[3] = { rx, ry, rz };
    int d[3], lo[3], hi[3], a;
    for (a = 0; a < 3; a++) {
        lo[a] = r[a] == 0 ? -1 : 0;
        hi[a] = r[a] == 2 && m->corner[a] + 8 < g->n[a];
    }
    for (d[2] = lo[2]; d[2] <= hi[2]; d[2]++)
        for (d[1] = lo[1]; d[1] <= hi[1]; d[1]++)
            for (d[0] = lo[0]; d[0] <= hi[0]; d[0]++)
                if ((d[2] > 0 || (d[2] == 0 && (d[1] > 0 || (d[1] == 0 && d[0] > 0))))
                    && fsi__block_beside(g, m->block, d) >= 0) return 0;
    return 1;
}

/* Where the cubes of the block lie along each axis. */
static void fsi__march_axes(fsi__march *m)
{
    const fsi_grid *g = m->all->phi->grid;
    int a, l;
    memset(m->width, 0, sizeof m->width);
    for (a = 0; a < 3; a++)
        for (l = 0; l < 9; l++) {
            const int i = m->corner[a] + l;
            if (i > g->n[a] || (a >= g->dim && l > 0)) continue;
            m->lower[a][l] = i == 0 ? 0 : i - 0.5;
            m->width[a][l] = a >= g->dim ? 1 : (i == 0 || i == g->n[a] ? 0.5 : 1);
        }
}

/* 0: no liquid in the blocks around, 1: some, 2: nothing else, and all of them exist. */
static int fsi__march_kind(const fsi__march *m)
{
    const fsi_grid *g = m->all->phi->grid;
    const int layers = fsi__layers(g), deep = g->dim == 3;
    uint64_t some = 0, every = ~(uint64_t)0;
    int d[3], z, b;
    for (d[2] = -deep; d[2] <= deep; d[2]++)
        for (d[1] = -1; d[1] <= 1; d[1]++)
            for (d[0] = -1; d[0] <= 1; d[0]++) {
                b = fsi__block_beside(g, m->block, d);
                if (b < 0) every = 0;
                else for (z = 0; z < layers; z++) {
                    some |= fsi__mask_of(m->all->mask.liquid, g, b)[z];
                    every &= fsi__mask_of(m->all->mask.liquid, g, b)[z];
                }
            }
    return some == 0 ? 0 : (every == ~(uint64_t)0 ? 2 : 1);
}

/* The cubes of a block that lies among liquid only: one box. */
static void fsi__march_deep(fsi__march *m, fsi__sums *s)
{
    const fsi_grid *g = m->all->phi->grid;
    double lo[3] = { 0, 0, 0 }, hi[3] = { 1, 1, 1 };
    int a;
    for (a = 0; a < g->dim; a++) {
        lo[a] = m->corner[a] - 0.5;
        hi[a] = m->corner[a] + 7.5;
    }
    for (a = 0; a < 3; a++) s->moment[a] += g->block_cells * (lo[a] + hi[a]) / 2;
    s->volume += g->block_cells;
    fsi__sums_reach(s, lo);
    fsi__sums_reach(s, hi);
}

/* Cube l of the block, of which `full` says whether all corners are liquid; v: its first corner in the gathered box. */
static void fsi__march_cube(fsi__march *m, const int l[3], const fsi_real *v, int full, fsi__cube *q)
{
    const int sz = m->all->phi->grid->dim == 3 ? 100 : 0;
    int c, first = -1, a;

    /* The cube. */
    q->single = 1;
    q->cut = 0;
    for (c = 0; c < 3; c++) {
        q->lower[c] = m->lower[c][l[c]];
        q->width[c] = m->width[c][l[c]];
    }

    /* Its corners. */
    for (c = 0; c < 8; c++) {
        q->phi[c] = (double)v[(c & 1) + (c >> 1 & 1) * 10 + (c >> 2) * sz];
        q->share[c] = m->cut ? (double)m->share[v - m->phi + (c & 1) + (c >> 1 & 1) * 10 + (c >> 2) * sz] : 1;
        q->cut |= q->share[c] < 1;
        q->sums[c] = q->phi[c] < 0 ? m->only : NULL;
        if (!(q->phi[c] < 0)) continue;
        for (a = 0; a < m->all->phi->grid->dim && m->all->with_u; a++)
            q->u[c][a] = m->u[a][v - m->phi + (c & 1) + (c >> 1 & 1) * 10 + (c >> 2) * sz];
        if (m->only) continue;
        q->sums[c] = fsi__march_corner(m, l, c);
        if (first < 0) first = c;
        if (q->sums[c] != q->sums[first]) q->single = 0;
    }
    fsi__cube_run(q, full);
}

/* Sum over the whole cubes of a row of the means of their corners' velocities; v: first corner of the row in the
   gathered box. */
static void fsi__march_whole(const fsi__march *m, int v, const unsigned char whole[9], double u[3])
{
    const int dim = m->all->phi->grid->dim, sz = dim == 3 ? 100 : 0;
    int a, k;
    for (a = 0; a < dim; a++) {
        const double *p = m->u[a] + v;
        double four[10];
        for (k = 0; k < 10; k++) four[k] = p[k] + p[k + 10] + p[k + sz] + p[k + sz + 10];
        for (k = 0; k < 9; k++) u[a] += whole[k] ? (four[k] + four[k + 1]) / 8 : 0;
    }
}

/* The cubes of a row along x. Whole ones in the midst of one component are added up first. */
static void fsi__march_row(fsi__march *m, int l[3], const int owns[27], fsi__cube *q)
{
    const int sz = m->all->phi->grid->dim == 3 ? 100 : 0,
        region = 3 * ((l[1] > 0) + (l[1] > 7)) + 9 * ((l[2] > 0) + (l[2] > 7));
    const fsi_real *v = m->phi + l[1] * 10 + l[2] * sz;
    const double breadth = m->width[1][l[1]] * m->width[2][l[2]];
    unsigned char is_whole[9] = { 0 };
    int liquid[10], n, k, whole = 0, sum = 0;
    double x[3], u[3] = { 0, 0, 0 };
    if (breadth == 0) return;

    /* Liquid corners of each pair of cubes. */
    for (k = 0; k < 10; k++) liquid[k] = (v[k] < 0) + (v[k + 10] < 0) + (v[k + sz] < 0) + (v[k + sz + 10] < 0);
    for (k = 0; k < 9; k++) {
        n = liquid[k] + liquid[k + 1];
        if (n == 0 || !owns[region + (k > 0) + (k > 7)] || m->width[0][k] == 0) continue;
        if (n == 8 && m->only && !m->cut && m->width[0][k] * breadth == 1) {
            is_whole[k] = 1;
            whole++;
            sum += k;
            continue;
        }
        l[0] = k;
        fsi__march_cube(m, l, v + k, n == 8, q);
    }

    /* Whole cubes together. */
    if (!whole) return;
    x[0] = m->corner[0] + (double)sum / whole;
    for (k = 1; k < 3; k++) x[k] = m->lower[k][l[k]] + m->width[k][l[k]] / 2;
    if (m->all->with_u) fsi__march_whole(m, (int)(v - m->phi), is_whole, u);
    for (k = 0; k < 3; k++) u[k] /= whole;
    fsi__sums_add(m->only, whole, x, u);
}

static void fsi__march_cubes(fsi__march *m)
{
    const int top = m->all->phi->grid->dim == 3 ? 8 : 0;
    int l[3], c, owns[27];
    fsi__cube q;
    memset(&q, 0, sizeof q);
    for (c = 0; c < 27; c++) owns[c] = fsi__march_owns(m, c % 3, c / 3 % 3, c / 9);
    for (l[2] = 0; l[2] <= top; l[2]++)
        for (l[1] = 0; l[1] <= 8; l[1]++) fsi__march_row(m, l, owns, &q);
}

/* The label of all liquid cells in and around the block, -1 if they differ or have none. */
static int fsi__march_label(const fsi__march *m)
{
    const fsi__marching *all = m->all;
    const fsi_grid *g = all->phi->grid;
    const int deep = g->dim == 3, layers = fsi__layers(g);
    int d[3], x, y, z, b, label = -2;
    if (!all->label) return 0;

    /* The blocks around, as far as they touch this one. */
    for (d[2] = -deep; d[2] <= deep; d[2]++)
        for (d[1] = -1; d[1] <= 1; d[1]++)
            for (d[0] = -1; d[0] <= 1; d[0]++) {
                b = fsi__block_beside(g, m->block, d);
                if (b < 0) continue;
                for (z = d[2] < 0 ? 7 : 0; z < (d[2] > 0 ? 1 : layers); z++) {
                    const int *l = all->label + (size_t)b * (size_t)g->block_cells + (size_t)z * 64;
                    const uint64_t w = fsi__mask_of(all->mask.liquid, g, b)[z];
                    for (y = d[1] < 0 ? 7 : 0; w && y < (d[1] > 0 ? 1 : 8); y++)
                        for (x = d[0] < 0 ? 7 : 0; x < (d[0] > 0 ? 1 : 8); x++) {
                            if (!(w >> (8 * y + x) & 1) || l[8 * y + x] == label) continue;
                            if (label != -2) return -1;
                            label = l[8 * y + x];
                        }
                }
            }
    return label;
}

/* Fractions of the cells in and around the block that are outside of solids. */
static void fsi__march_share(fsi__march *m)
{
    const fsi_grid *g = m->all->phi->grid;
    int c;
    m->cut = 0;
    if (!m->all->solid) return;
    fsi__grid_gather(m->all->solid, m->block, 1, m->share);
    for (c = 0; c < (g->dim == 3 ? 1000 : 100); c++) {
        const double share = 0.5 + (double)m->share[c] / (double)g->dx;
        m->share[c] = (fsi_real)(share > 1 ? 1 : (share > 0 ? share : 0));
        m->cut |= share < 1;
    }
}

/* The gathered layers beyond the box become those at its walls. */
static void fsi__march_walls(fsi__march *m)
{
    static const int stride[3] = { 1, 10, 100 };
    const fsi_grid *g = m->all->phi->grid;
    const int size[3] = { 10, 10, g->dim == 3 ? 10 : 1 };
    int a, side, i, j;
    for (a = 0; a < g->dim; a++)
        for (side = 0; side < 2; side++) {
            const int p = (a + 1) % 3, q = (a + 2) % 3, wall = side ? g->n[a] + 1 - m->corner[a] : -m->corner[a],
                in = side ? -stride[a] : stride[a];
            if (wall < 0 || wall > 9 || g->n[a] < 2) continue;
            for (j = 0; j < size[q]; j++)
                for (i = 0; i < size[p]; i++) {
                    fsi_real *v = m->phi + wall * stride[a] + i * stride[p] + j * stride[q];
                    *v = (3 * v[in] - v[2 * in]) / 2;
                }
        }
}

/* The sums of block b. */
static void fsi__march_block(fsi__march *m, int b)
{
    const fsi__marching *all = m->all;
    const fsi_grid *g = all->phi->grid;
    const size_t own = (size_t)b * (size_t)g->block_cells;
    fsi__sums *s;
    int a, c, kind, one;

    /* Is the block within the box, and is there liquid? */
    m->block = b;
    all->used[b] = 0;
    fsi_grid_corner(g, b, m->corner);
    for (a = 0; a < 3; a++) if (m->corner[a] >= g->n[a]) return;
    kind = fsi__march_kind(m);
    if (kind == 0) return;

    /* Components, and their cells. */
    one = fsi__march_label(m);
    m->only = one >= 0 ? fsi__march_sums(m, one) : NULL;
    for (c = 0; c < fsi__layers(g) && m->only; c++)
        m->only->cells += fsi__mask_count(fsi__mask_of(all->mask.liquid, g, b)[c]);
    for (c = 0; c < g->block_cells && !m->only; c++) {
        if (!fsi__mask_at(all->mask.liquid, own + (size_t)c)) continue;
        s = fsi__march_sums(m, all->label ? all->label[own + (size_t)c] : 0);
        if (s) s->cells++;
    }
    fsi__march_share(m);

    /* Deep in the liquid: nothing but whole cubes. */
    if (kind == 2 && m->only && !all->with_u && !m->cut) {
        fsi__march_deep(m, m->only);
        return;
    }
    fsi__march_axes(m);
    fsi__grid_gather(all->phi, b, 1, m->phi);
    fsi__march_walls(m);
    for (a = 0; a < g->dim && all->with_u; a++) fsi__march_velocities(m, a);
    fsi__march_cubes(m);
}

static void fsi__march_blocks(void *arg, int chunk, int begin, int end)
{
    fsi__march m;
    int b;
    (void)chunk;
    m.all = (const fsi__marching *)arg;
    m.overflow = 0;
    for (b = begin; b < end; b++) fsi__march_block(&m, b);
}

/* total = the sums of all blocks, in ascending order. */
static void fsi__marching_fold(const fsi__marching *all)
{
    fsi__march m;
    int b, k, a;
    m.all = all;
    m.overflow = 1;

    /* Clear. */
    for (k = 0; k < all->count; k++) fsi__sums_clear(all->total + k, k);

    /* Blocks that had too many components for their slots are summed again. */
    for (b = 0; b < all->phi->grid->block_count; b++) {
        if (all->used[b] > FSI__SUM_SLOTS) {
            fsi__march_block(&m, b);
            continue;
        }
        for (k = 0; k < all->used[b]; k++) {
            const fsi__sums *s = all->slot + (size_t)b * FSI__SUM_SLOTS + k;
            fsi__sums *t = all->total + s->label;
            t->volume += s->volume;
            t->area += s->area;
            t->cells += s->cells;
            for (a = 0; a < 3; a++) {
                t->moment[a] += s->moment[a];
                t->momentum[a] += s->momentum[a];
                if (s->lo[a] < t->lo[a]) t->lo[a] = s->lo[a];
                if (s->hi[a] > t->hi[a]) t->hi[a] = s->hi[a];
            }
        }
    }
}

static fsi_vec3 fsi__sums_point(const fsi_grid *g, const double x[3], double scale)
{
    return fsi_v3((fsi_real)((double)g->origin.x + x[0] * scale), (fsi_real)((double)g->origin.y + x[1] * scale),
                  g->dim == 2 ? 0 : (fsi_real)((double)g->origin.z + x[2] * scale));
}

static fsi_grid_component fsi__sums_component(const fsi_grid *g, const fsi__sums *s)
{
    const double dx = (double)g->dx, area = g->dim == 3 ? dx * dx : dx, *p = s->momentum;
    fsi_grid_component c;
    memset(&c, 0, sizeof c);
    c.cells = (int)s->cells;
    c.volume = s->volume * area * dx;
    c.area = s->area * area;
    if (!(s->volume > 0)) return c;
    c.momentum = fsi_v3((fsi_real)(p[0] * area * dx), (fsi_real)(p[1] * area * dx), (fsi_real)(p[2] * area * dx));
    c.centroid = fsi__sums_point(g, s->moment, dx / s->volume);
    c.box.lo = fsi__sums_point(g, s->lo, dx);
    c.box.hi = fsi__sums_point(g, s->hi, dx);
    return c;
}

static void fsi__marching_take(fsi__marching *m, fsi__arena *a)
{
    const size_t blocks = (size_t)m->phi->grid->block_count;
    m->mask.liquid = (uint64_t *)fsi__take(a, blocks * (size_t)fsi__layers(m->phi->grid), sizeof(uint64_t));
    m->mask.bad = (unsigned char *)fsi__take(a, blocks, 1);
    m->used = (unsigned char *)fsi__take(a, blocks, 1);
    m->slot = (fsi__sums *)fsi__take(a, blocks * FSI__SUM_SLOTS, sizeof(fsi__sums));
    m->total = (fsi__sums *)fsi__take(a, (size_t)m->count, sizeof(fsi__sums));
}

static fsi_status fsi__marching_check(const fsi__marching *m, fsi_field *const u[3], const fsi_grid_component *out,
    const char *function)
{
    fsi_context *context = m->phi->grid->context;
    int a;
    if (m->count < 0)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, m->count, "count is %d, below 0", m->count);
    if (!out && m->count > 0) return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "out is NULL");
    if (m->solid && !fsi__is_field(m->solid)) return FSI_ERROR_COOKIE;
    if (m->solid && (m->solid->grid != m->phi->grid || m->solid->place != FSI_CELLS))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "solid is not a field of cells of phi's grid");
    for (a = 0; a < m->phi->grid->dim && u; a++) {
        if (!fsi__is_field(u[a])) return FSI_ERROR_COOKIE;
        if (u[a]->grid != m->phi->grid || (int)u[a]->place != (int)FSI_FACES_X + a)
            return fsi__fail(context, FSI_ERROR_ARGUMENT, function, a, 0,
                "u[%d] is not the field of these faces of phi's grid", a);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_grid_volumes(const fsi_field *phi, const int *label, int count, fsi_field *const u[3],
    const fsi_field *solid, fsi_grid_component *out)
{
    static const char *const f = "fsi_grid_volumes";
    fsi__marching m;
    fsi__arena measure;
    int a, b, k, sound = 1;
    fsi_status status;

    /* Input. */
    FSI__TRY(fsi__level_set_check(phi, f));
    memset(&m, 0, sizeof m);
    memset(&measure, 0, sizeof measure);
    m.phi = m.mask.field = phi;
    m.label = label;
    m.solid = solid;
    m.count = count;
    m.with_u = u != NULL;
    status = fsi__marching_check(&m, u, out, f);
    if (status != FSI_OK || count == 0) return status;

    /* Scratch. */
    for (a = 0; a < phi->grid->dim && u; a++) m.u[a] = u[a];
    fsi__marching_take(&m, &measure);
    FSI__TRY(fsi__grid_room(phi->grid, measure.used, f));
    fsi__marching_take(&m, fsi__grid_scratch(phi->grid));
    FSI__TRY(fsi__mask_make(&m.mask, f));

    /* Blocks, and their sums in order. */
    fsi__grid_light(phi->grid, 4, 2000, fsi__march_blocks, &m);
    fsi__marching_fold(&m);

    /* Are all sums finite? If not, which entry is to blame? */
    for (k = 0; k < count; k++) for (a = 0; a < 3; a++) sound &= fsi_is_finite(m.total[k].momentum[a]);
    for (b = 0; b < phi->grid->block_count && !sound; b++)
        for (a = 0; a < phi->grid->dim && u; a++) {
            FSI__TRY(fsi__grid_name_bad(phi->grid->context, u[a], b, "u", f));
        }
    if (!sound) return fsi__fail(phi->grid->context, FSI_ERROR_NAN, f, -1, 0, "the momentum overflows");
    for (k = 0; k < count; k++) out[k] = fsi__sums_component(phi->grid, m.total + k);
    return FSI_OK;
}

/* ---- >>shapes on the grid -------------------------------------------------------------------------------- */

FSI_API fsi_status fsi__grid_check_mesh(fsi_context *context, const fsi_grid *g, const fsi_mesh *mesh, const char *f)
{
    if (!fsi__is_mesh(mesh)) return FSI_ERROR_COOKIE;
    if (mesh->corners != g->dim)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, f, -1, mesh->corners,
            "elements of %d corners do not bound anything in %dD", mesh->corners, g->dim);
    if (mesh->kind != FSI_MESH_CLOSED)
        return fsi__fail(context, FSI_ERROR_MESH, f, -1, 0, "the mesh is not closed: it has no inside");
    return FSI_OK;
}

/* The cells of the block whose corner is cell `corner`: their box is (0, 0, 0) .. top - 1, within the box of the
   grid. */
static fsi__sampling fsi__sample_cells(const fsi_grid *g, const fsi_shape *shape, const int *corner, fsi_real limit,
    int *top)
{
    fsi__sampling s;
    int a;
    s.shape = shape;
    s.at = fsi_grid_position(g, FSI_CELLS, corner[0], corner[1], corner[2]);
    s.dx = g->dx;
    s.limit = limit;
    s.out = NULL;
    for (a = 0; a < 3; a++) {
        s.stride[a] = a == 0 ? 1 : 8 * s.stride[a - 1];
        top[a] = fsi__clamp_int(g->n[a] - corner[a], 8);
    }
    return s;
}

FSI_API int fsi__side_of_block(const fsi_grid *g, const fsi__sampling *s, int b, const int *top, int before)
{
    static const int none[3] = { 0, 0, 0 };
    int hint = -1;
    fsi_real r;
    if (fsi__scatter_is_near(s, none, top)) return FSI__SIDE_CUT;
    if (before != FSI__SIDE_CUT && g->place[b] == g->place[b - 1] + 1 && g->place[b] % g->blocks[0] > 0) return before;
    return fsi__sample_middle(s, none, top, &hint, &r) < 0 ? FSI__SIDE_INSIDE : FSI__SIDE_OUTSIDE;
}

FSI__COLD_BEGIN

/* ---- >>fill implementation --------------------------------------------------------------------------------------- */

typedef struct fsi__grid_fill {
    const fsi_shape *shape;
    fsi_field *phi;
    fsi_grid_operation operation;
    fsi_real limit;
    int lo[3], size[3];      /* the places of blocks that the shape can reach */
    unsigned char *wanted;   /* one for each place of the grid */
} fsi__grid_fill;

/* The k-th of these places, and the corner of its block. */
static size_t fsi__grid_fill_place(const fsi__grid_fill *f, int k, int *corner)
{
    const fsi_grid *g = f->phi->grid;
    const int x = f->lo[0] + k % f->size[0], y = f->lo[1] + k / f->size[0] % f->size[1],
        z = f->lo[2] + k / f->size[0] / f->size[1];
    corner[0] = x * FSI_GRID_BLOCK;
    corner[1] = y * FSI_GRID_BLOCK;
    corner[2] = z * FSI_GRID_BLOCK;
    return ((size_t)z * (size_t)g->blocks[1] + (size_t)y) * (size_t)g->blocks[0] + (size_t)x;
}

static void fsi__grid_fill_want(void *arg, int chunk, int begin, int end)
{
    static const int none[3] = { 0, 0, 0 };
    const fsi__grid_fill *f = (const fsi__grid_fill *)arg;
    int corner[3], top[3];
    (void)chunk;
    for (; begin < end; begin++) {
        const size_t place = fsi__grid_fill_place(f, begin, corner);
        const fsi__sampling s = fsi__sample_cells(f->phi->grid, f->shape, corner, f->limit, top);
        if (!f->wanted[place]) f->wanted[place] = (unsigned char)fsi__sample_reaches(&s, none, top, -1);
    }
}

static void fsi__grid_fill_cells(void *arg, int chunk, int begin, int end)
{
    static const int none[3] = { 0, 0, 0 };
    const fsi__grid_fill *f = (const fsi__grid_fill *)arg;
    const fsi_grid *g = f->phi->grid;
    fsi_real d[FSI_GRID_BLOCK * FSI_GRID_BLOCK * FSI_GRID_BLOCK], *v;
    int corner[3], top[3], b, x, y, z;
    (void)chunk;
    for (; begin < end; begin++) {
        fsi__sampling s;
        b = g->index[fsi__grid_fill_place(f, begin, corner)];
        if (b < 0) continue;
        s = fsi__sample_cells(g, f->shape, corner, f->limit, top);
        s.out = d;
        fsi__sample_lattice(&s, none, top);
        v = f->phi->value + (size_t)b * (size_t)g->block_cells;
        for (z = 0; z < top[2]; z++)
            for (y = 0; y < top[1]; y++)
                for (x = 0; x < top[0]; x++) {
                    const int c = (z * 8 + y) * 8 + x;
                    v[c] = f->operation == FSI_GRID_ADD ? fsi_min(v[c], d[c]) : fsi_max(v[c], -d[c]);
                }
    }
}

/* Places along one axis whose cells lie within `limit` of lo .. hi; 0: none. */
static int fsi__grid_fill_range(fsi__grid_fill *f, int axis, double lo, double hi, double origin)
{
    const fsi_grid *g = f->phi->grid;
    const double dx = (double)g->dx, reach = (double)f->limit / dx;
    const double from = (lo - origin) / dx - reach - 1, to = (hi - origin) / dx + reach + 1;
    f->lo[axis] = f->size[axis] = 0;
    if (!(from < g->n[axis]) || !(to > 0)) return 0;
    f->lo[axis] = from > 0 ? (int)from >> 3 : 0;
    f->size[axis] = ((to < g->n[axis] - 1 ? (int)to : g->n[axis] - 1) >> 3) - f->lo[axis] + 1;
    return 1;
}

static fsi_status fsi__grid_fill_shape(fsi_field *phi, fsi_grid_operation operation, const fsi_shape *shape, int band,
    const char *function)
{
    fsi_grid *g = phi->grid;
    fsi__grid_fill f;
    size_t places = fsi__grid_places(g);
    fsi_status status;
    int b, count;

    /* The cells that the shape may reach. */
    f.shape = shape;
    f.phi = phi;
    f.operation = operation;
    f.limit = (fsi_real)band * g->dx;
    if (!fsi__grid_fill_range(&f, 0, (double)shape->box.lo.x, (double)shape->box.hi.x, (double)g->origin.x))
        return FSI_OK;
    if (!fsi__grid_fill_range(&f, 1, (double)shape->box.lo.y, (double)shape->box.hi.y, (double)g->origin.y))
        return FSI_OK;
    f.lo[2] = 0;
    f.size[2] = 1;
    if (g->dim == 3
        && !fsi__grid_fill_range(&f, 2, (double)shape->box.lo.z, (double)shape->box.hi.z,
        (double)g->origin.z)) return FSI_OK;

    /* Blocks for what is added. */
    count = f.size[0] * f.size[1] * f.size[2];
    if (operation == FSI_GRID_ADD) {
        f.wanted = (unsigned char *)fsi__alloc(g->context, places, 1);
        if (!f.wanted)
            return fsi__fail(g->context, FSI_ERROR_MEMORY, function, -1, 0, "no memory for %g places of blocks",
                (double)places);
        for (b = 0; b < g->block_count; b++) f.wanted[g->place[b]] = 1;
        fsi__parallel_work(g->context, count, 4, 100.0 * count, fsi__grid_fill_want, &f);
        status = fsi_grid_set_blocks(g, f.wanted);
        fsi__free(g->context, f.wanted, places, 1);
        if (status != FSI_OK) return status;
    }
    fsi__parallel_work(g->context, count, 4, (g->dim == 2 ? 150.0 : 1000.0) * count, fsi__grid_fill_cells, &f);
    return FSI_OK;
}

/* Checks that all fills share. */
static fsi_status fsi__grid_fill_check(const fsi_field *phi, fsi_grid_operation operation, int band, const char *f)
{
    fsi_context *c;
    if (!fsi__is_field(phi)) return FSI_ERROR_COOKIE;
    c = phi->grid->context;
    if (phi->place != FSI_CELLS)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, (double)(int)phi->place, "phi is not a field of cells");
    if (operation != FSI_GRID_ADD && operation != FSI_GRID_REMOVE)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, (double)(int)operation, "operation is %d", (int)operation);
    if (band < 2 || band > 16)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, band, "band is %d cells, not 2 to 16", band);
    if (!(phi->background >= (fsi_real)0.999 * (fsi_real)band * phi->grid->dx))
        return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, (double)phi->background,
            "the background of phi is %g, below band dx", (double)phi->background);
    return FSI_OK;
}

static fsi_status fsi__grid_fill_check_radius(fsi_context *c, fsi_real radius, const char *f)
{
    if (!fsi_is_finite((double)radius))
        return fsi__fail(c, FSI_ERROR_NAN, f, -1, (double)radius, "radius is not finite");
    if (!(radius > 0))
        return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, (double)radius, "radius is %g, not above 0", (double)radius);
    return FSI_OK;
}

FSI_API fsi_status fsi_grid_fill_sphere(fsi_field *phi, fsi_grid_operation operation, fsi_vec3 center, fsi_real radius,
    int band)
{
    static const char *const f = "fsi_grid_fill_sphere";
    fsi_shape s;
    FSI__TRY(fsi__grid_fill_check(phi, operation, band, f));
    FSI__TRY(fsi__grid_fill_check_radius(phi->grid->context, radius, f));
    if (phi->grid->dim == 2) center.z = 0;
    if (!fsi_v3_is_finite(center))
        return fsi__fail(phi->grid->context, FSI_ERROR_NAN, f, -1, 0, "center is not finite");
    s = fsi_shape_sphere(center, radius);
    return fsi__grid_fill_shape(phi, operation, &s, band, f);
}

FSI_API void fsi__grid_fill_open_walls(const fsi_grid *g, int axis, fsi_real origin, fsi_real *lo, fsi_real *hi)
{
    const fsi_real slack = g->dx / 1000, never = FSI_REAL_MAX / 4;
    if (*lo <= origin + slack) *lo = -never;
    if (*hi >= origin + (fsi_real)g->n[axis] * g->dx - slack) *hi = never;
}

FSI_API fsi_status fsi_grid_fill_box(fsi_field *phi, fsi_grid_operation operation, fsi_box3 box, int band)
{
    static const char *const f = "fsi_grid_fill_box";
    const fsi_grid *g;
    fsi_shape s;
    FSI__TRY(fsi__grid_fill_check(phi, operation, band, f));
    g = phi->grid;
    if (g->dim == 2) {
        box.lo.z = -1;
        box.hi.z = 1;
    }
    if (!fsi_v3_is_finite(box.lo) || !fsi_v3_is_finite(box.hi))
        return fsi__fail(g->context, FSI_ERROR_NAN, f, -1, 0, "the box is not finite");
    if (!(box.lo.x < box.hi.x && box.lo.y < box.hi.y && box.lo.z < box.hi.z))
        return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, 0, "the box is empty");

    /* A box that reaches a wall of the grid extends beyond it. */
    s = fsi_shape_box(box);
    fsi__grid_fill_open_walls(g, 0, g->origin.x, &s.box.lo.x, &s.box.hi.x);
    fsi__grid_fill_open_walls(g, 1, g->origin.y, &s.box.lo.y, &s.box.hi.y);
    fsi__grid_fill_open_walls(g, 2, g->origin.z, &s.box.lo.z, &s.box.hi.z);
    if (g->dim == 2) {
        s.box.lo.z = -FSI_REAL_MAX / 4;
        s.box.hi.z = FSI_REAL_MAX / 4;
    }
    return fsi__grid_fill_shape(phi, operation, &s, band, f);
}

FSI_API fsi_status fsi_grid_fill_mesh(fsi_field *phi, fsi_grid_operation operation, const fsi_mesh *mesh, int band)
{
    static const char *const f = "fsi_grid_fill_mesh";
    fsi_shape s;
    FSI__TRY(fsi__grid_fill_check(phi, operation, band, f));
    FSI__TRY(fsi__grid_check_mesh(phi->grid->context, phi->grid, mesh, f));
    s = fsi_shape_mesh(mesh);
    if (mesh->container) s.sign = -1;
    return fsi__grid_fill_shape(phi, operation, &s, band, f);
}

FSI__COLD_END

/* ---- >>distance to meshes implementation ---------------------------------------------------------------------- */

FSI_API int fsi__distance_block(const fsi__distance_job *job, int b, int before, fsi_real *out)
{
    static const int none[3] = { 0, 0, 0 };
    int corner[3], top[3], c, side;
    fsi__sampling s;
    fsi_grid_corner(job->grid, b, corner);
    s = fsi__sample_cells(job->grid, &job->shape, corner, job->limit, top);
    s.out = out;
    side = top[0] * top[1] * top[2] == 0 ? FSI__SIDE_OUTSIDE : fsi__side_of_block(job->grid, &s, b, top, before);
    /* beyond the box too */
    for (c = 0; c < job->grid->block_cells; c++) out[c] = side == FSI__SIDE_INSIDE ? -s.limit : s.limit;
    if (side == FSI__SIDE_CUT) fsi__sample_lattice(&s, none, top);
    return side;
}

static void fsi__distance_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__distance_job *job = (const fsi__distance_job *)arg;
    int b, side = FSI__SIDE_CUT;
    (void)chunk;
    for (b = begin; b < end; b++)
        side = fsi__distance_block(job, b, side, job->psi->value + (size_t)b * (size_t)job->grid->block_cells);
}

/* Nanoseconds at least: 100 for a block; 5 for a cell within reach of the mesh's box, as far as there are blocks. */
static double fsi__distance_work(const fsi__distance_job *job, const fsi_mesh *mesh)
{
    const fsi_grid *g = job->grid;
    const fsi_vec3 size = fsi_v3_sub(mesh->box.hi, mesh->box.lo);
    const double reach = 2 * (double)job->limit, dx = (double)g->dx, blocks = (double)g->block_count;
    const double x = ((double)size.x + reach) / dx, y = ((double)size.y + reach) / dx,
        z = ((double)size.z + reach) / dx;
    const double cells = fmin(x, g->n[0]) * fmin(y, g->n[1]) * (g->dim == 2 ? 1 : fmin(z, g->n[2]));
    return 100 * blocks + 5 * fmin(cells, blocks * g->block_cells);
}

FSI_API fsi_status fsi_grid_mesh_distance(fsi_field *psi, const fsi_mesh *mesh, int band)
{
    static const char *const f = "fsi_grid_mesh_distance";
    fsi__distance_job job;
    fsi_context *c;
    if (!fsi__is_field(psi)) return FSI_ERROR_COOKIE;
    c = psi->grid->context;
    if (psi->place != FSI_CELLS)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, (double)(int)psi->place, "psi is not a field of cells");
    if (band < 2 || band > 16)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, band, "band is %d cells, not 2 to 16", band);
    FSI__TRY(fsi__grid_check_mesh(c, psi->grid, mesh, f));
    job.grid = psi->grid;
    job.psi = psi;
    job.shape = fsi_shape_mesh(mesh);
    job.limit = (fsi_real)band * psi->grid->dx;
    fsi__parallel_work(c, psi->grid->block_count, 16, fsi__distance_work(&job, mesh), fsi__distance_blocks, &job);
    return FSI_OK;
}

/* ---- >>level set surface implementation -------------------------------------------------------------------------- */

/* Nodes are the centres of cells, and two more layers at each wall:

       node     -2|-1    0     1            n-1    n|n+1
                  |   .     .     .      .     .    |            | : a wall; nodes -2 and -1 are at the same place
       phi      + | phi  phi   phi          phi  phi| +          phi_-1 = phi_0, phi_n = phi_n-1; -2 and n+1: outside

   so that the cubes between -2 and -1, which have no thickness, hold the caps. An edge from a node on the wall, in the
   liquid, to one of those outside has its vertex at the node. Where walls meet, a node has several such edges: they
   share one vertex, and triangles that collapse are left out.

   A slot is 8 x 8 x 8 nodes (2D: 8 x 8), placed like the blocks of the grid, one layer of slots more at the lower
   walls: the edges from its nodes upwards and the cubes above them are its own. Only slots that the surface can pass
   through exist. A vertex has no entry in any map: its number is the first one of its row, and how many bits of the
   row's mask are set below its own. */
#define FSI__GS_APART 1e-3 /* of an edge: a vertex keeps this much away from its ends, lest triangles collapse */
#define FSI__GS_GRAIN 8    /* slots a chunk */

typedef struct fsi__gs_slot {
    int at[3];                    /* its first node */
    int up[8];                    /* the slot at (bit 0, bit 1, bit 2) towards +x, +y, +z; -1 none */
    int vertices, elements;       /* how many it owns, then where its own begin */
    uint16_t inside[81];          /* bit x of row z * 9 + y: node (x, y, z) is in the liquid */
    uint16_t start[64];           /* vertices in the rows before row z * 8 + y */
    uint32_t vertex[64];          /* bit 8 a + x: there is one on the edge of node (x, y, z) along axis a; 24 + x: at
                                     the node, on the wall */
} fsi__gs_slot;

typedef struct fsi__gs_impl {
    unsigned char cases[2][256][16]; /* in 2D and 3D: number of edges, then the edges, `corners` an element; by corners
                                        inside */
    const fsi_field *phi;
    int capped;
    fsi__arena memory;               /* of the next two */
    unsigned char *signs;            /* of each block: bit 0 some cell is inside, 1 some is outside, 2 some is not
                                        finite */
    int *map;                        /* slot at each place of the slots, -1 none; x fastest */
    fsi__gs_slot *slots;
    int slot_count, slot_capacity, vertex_capacity, element_capacity;
    fsi_vec3 *vertices, *normals;
    int *elements;
} fsi__gs_impl;

/* ---- signs and slots ---- */

static int fsi__gs_signs_of(const fsi_real *v, int count)
{
    int inside = 0, outside = 0, bad = 0, t;
    for (t = 0; t < count; t++) {
        inside |= v[t] < 0;
        outside |= v[t] >= 0;
        bad |= !(fsi_abs(v[t]) <= FSI_REAL_MAX);
    }
    return inside | outside << 1 | bad << 2;
}

static void fsi__gs_scan(void *arg, int chunk, int begin, int end)
{
    fsi__gs_impl *m = (fsi__gs_impl *)arg;
    const fsi_grid *g = m->phi->grid;
    int corner[3], top[3], a, y, z;
    (void)chunk;
    for (; begin < end; begin++) {
        const fsi_real *v = m->phi->value + (size_t)begin * (size_t)g->block_cells;
        int signs = 0;
        fsi_grid_corner(g, begin, corner);
        for (a = 0; a < 3; a++) top[a] = fsi__clamp_int(g->n[a] - corner[a], 8);
        for (z = 0; z < top[2]; z++)
            for (y = 0; y < top[1]; y++) signs |= fsi__gs_signs_of(v + (z * 8 + y) * 8, top[0]);
        m->signs[begin] = (unsigned char)signs;
    }
}

/* Places of slots along an axis: one more than those of blocks. */
static int fsi__gs_places(const fsi_grid *g, int axis) { return axis < g->dim ? g->blocks[axis] + 1 : 1; }
/* The place of the slot whose first node is `at`. */
static size_t fsi__gs_place(const fsi_grid *g, const int *at)
{
    const size_t x = (size_t)(at[0] / 8 + 1), y = (size_t)(at[1] / 8 + 1),
        z = (size_t)(g->dim == 3 ? at[2] / 8 + 1 : 0);
    return (z * (size_t)fsi__gs_places(g, 1) + y) * (size_t)fsi__gs_places(g, 0) + x;
}

/* Marks the slots with edges or cubes that have one of a block's nodes at an end: its own, those below, and those above
   that a wall is in. */
static void fsi__gs_mark(fsi__gs_impl *m, int b)
{
    const fsi_grid *g = m->phi->grid;
    int corner[3], at[3], lo[3], hi[3], a;
    fsi_grid_corner(g, b, corner);
    for (a = 0; a < 3; a++) {
        lo[a] = a < g->dim ? corner[a] - 8 : 0;
        hi[a] = a < g->dim && corner[a] + 8 == g->n[a] ? corner[a] + 8 : corner[a];
    }
    for (at[2] = lo[2]; at[2] <= hi[2]; at[2] += 8)
        for (at[1] = lo[1]; at[1] <= hi[1]; at[1] += 8)
            for (at[0] = lo[0]; at[0] <= hi[0]; at[0] += 8) m->map[fsi__gs_place(g, at)] = 1;
}

/* Can the surface pass through this slot? Away from the walls that is so when the blocks its cubes reach have both
   signs. */
static int fsi__gs_is_mixed(const fsi__gs_impl *m, const int *at)
{
    const fsi_grid *g = m->phi->grid;
    int a, d, signs = 0;
    for (a = 0; a < g->dim; a++)
        if (at[a] < 0 || at[a] + 8 >= g->n[a]) return 1;
    for (d = 0; d < 1 << g->dim; d++) {
        const long long entry = fsi_grid_entry(g, at[0] + (d & 1) * 8, at[1] + (d >> 1 & 1) * 8, at[2] + (d >> 2) * 8);
        signs |= entry < 0 ? 2 : m->signs[entry / g->block_cells];
    }
    return signs == 3;
}

/* Numbers the slots in the order of their places; their first nodes when `slots` has room for them. */
static int fsi__gs_number_slots(fsi__gs_impl *m, int fill)
{
    const fsi_grid *g = m->phi->grid;
    const int nz = fsi__gs_places(g, 2), ny = fsi__gs_places(g, 1), nx = fsi__gs_places(g, 0);
    int at[3], x, y, z, count = 0;
    size_t p = 0;
    for (z = 0; z < nz; z++)
        for (y = 0; y < ny; y++)
            for (x = 0; x < nx; x++, p++) {
                if (m->map[p] < 0) continue;
                at[0] = (x - 1) * 8;
                at[1] = (y - 1) * 8;
                at[2] = g->dim == 3 ? (z - 1) * 8 : 0;
                if (fill) memcpy(m->slots[count].at, at, sizeof at);
                m->map[p] = fill || fsi__gs_is_mixed(m, at) ? count++ : -1;
            }
    return count;
}

/* ---- one slot ---- */

static int fsi__gs_within(const fsi_grid *g, int axis, int node) { return node >= -1 && node <= g->n[axis]; }
static int fsi__gs_on_wall(const fsi_grid *g, int axis, int node)
{
    return axis < g->dim && (node == -1 || node == g->n[axis]);
}
/* Does the edge from this node upwards lead through a wall? */
static int fsi__gs_caps(const fsi_grid *g, int axis, int node)
{
    return axis < g->dim && (node == -2 || node == g->n[axis]);
}

/* Bits x = 0 ... 8 of the nodes at + x for which test holds. */
static unsigned fsi__gs_mask(const fsi_grid *g, int at, int (*test)(const fsi_grid *g, int axis, int node))
{
    unsigned x, bits = 0;
    for (x = 0; x < 9; x++) bits |= (unsigned)test(g, 0, at + (int)x) << x;
    return bits;
}

/* Which nodes are inside, from their values. */
static void fsi__gs_look(const fsi__gs_impl *m, fsi__gs_slot *s)
{
    const fsi_grid *g = m->phi->grid;
    const int top = g->dim == 3 ? 9 : 1;
    const unsigned valid = fsi__gs_mask(g, s->at[0], fsi__gs_within);
    fsi_real v[1000];
    int x, y, z;
    fsi__grid_gather_at(m->phi, s->at, 1, v);
    for (z = 0; z < top; z++)
        for (y = 0; y < 9; y++) {
            const fsi_real *row = v + ((g->dim == 3 ? z + 1 : 0) * 10 + y + 1) * 10 + 1;
            unsigned bits = 0;
            for (x = 0; x < 9; x++) bits |= (unsigned)(row[x] < 0) << x;
            if (!fsi__gs_within(g, 1, s->at[1] + y) || (g->dim == 3 && !fsi__gs_within(g, 2, s->at[2] + z))) bits = 0;
            s->inside[z * 9 + y] = (uint16_t)(bits & valid);
        }
}

/* Which of its edges and nodes have a vertex. */
static void fsi__gs_mark_vertices(const fsi__gs_impl *m, fsi__gs_slot *s)
{
    const fsi_grid *g = m->phi->grid;
    const unsigned through = fsi__gs_mask(g, s->at[0], fsi__gs_caps), wall = fsi__gs_mask(g, s->at[0], fsi__gs_on_wall);
    int y, z, count = 0;
    for (z = 0; z < (g->dim == 3 ? 8 : 1); z++)
        for (y = 0; y < 8; y++) {
            const int j = s->at[1] + y, k = s->at[2] + z;
            const uint16_t *in = s->inside + z * 9 + y;
            const unsigned r = in[0];
            unsigned along[4] = { 0, 0, 0, 0 };
            if (fsi__gs_within(g, 1, j) && (g->dim == 2 || fsi__gs_within(g, 2, k))) {
                along[0] = (r ^ r >> 1) & ~through & 255;
                if (!fsi__gs_caps(g, 1, j)) along[1] = (r ^ in[1]) & 255;
                if (g->dim == 3 && !fsi__gs_caps(g, 2, k)) along[2] = (r ^ in[9]) & 255;
                if (m->capped) along[3] = r & 255 & (fsi__gs_on_wall(g, 1, j) || fsi__gs_on_wall(g, 2, k) ? 255 : wall);
            }
            s->start[z * 8 + y] = (uint16_t)count;
            s->vertex[z * 8 + y] = along[0] | along[1] << 8 | along[2] << 16 | along[3] << 24;
            count += fsi__mask_count(s->vertex[z * 8 + y]);
        }
    s->vertices = count;
}

/* A cube: its first node and its axes along which it leads through a wall: bit a through the lower one, 3 + a the
   upper. */
typedef struct fsi__gs_cube {
    int x, y, z, through;
} fsi__gs_cube;

/* Key of a vertex in its cube: the edge, or for an edge through a wall its end on the wall, a corner. */
static int fsi__gs_key(int edge, int through)
{
    const int axis = edge >> 2, low = fsi__sf_edge_low(edge);
    if (!(through >> axis & 9)) return 8 + edge;
    return through >> axis & 1 ? low | 1 << axis : low;
}

static int fsi__gs_collapsed(const unsigned char *edges, int corners, int through)
{
    const int a = fsi__gs_key(edges[0], through), b = fsi__gs_key(edges[1], through),
        c = fsi__gs_key(edges[corners - 1], through);
    return a == b || (corners == 3 && (b == c || c == a));
}

/* Number of the vertex on an edge of a cube. */
static int fsi__gs_vertex(const fsi__gs_impl *m, const fsi__gs_slot *s, const fsi__gs_cube *cube, int edge)
{
    const int key = cube->through ? fsi__gs_key(edge, cube->through) : 8 + edge,
        corner = key < 8 ? key : fsi__sf_edge_low(edge);
    const int x = cube->x + (corner & 1), y = cube->y + (corner >> 1 & 1), z = cube->z + (corner >> 2),
        bit = (key < 8 ? 24 : edge >> 2 << 3) + (x & 7);
    const fsi__gs_slot *owner = m->slots + s->up[x >> 3 | y >> 3 << 1 | z >> 3 << 2];
    const int row = (z & 7) * 8 + (y & 7);
    return owner->vertices + owner->start[row] + fsi__mask_count(owner->vertex[row] & ((1u << bit) - 1));
}

static int fsi__gs_through(const fsi_grid *g, const int *at, const fsi__gs_cube *cube)
{
    const int node[3] = { at[0] + cube->x, at[1] + cube->y, at[2] + cube->z };
    int a, through = 0;
    for (a = 0; a < g->dim; a++) through |= (node[a] == -2 ? 1 : node[a] == g->n[a] ? 8 : 0) << a;
    return through;
}

/* Elements of a cube with these corners inside; NULL only counts them. */
static int fsi__gs_cube_elements(const fsi__gs_impl *m, const fsi__gs_slot *s, const fsi__gs_cube *cube,
    unsigned inside, int *out)
{
    const int corners = m->phi->grid->dim;
    const unsigned char *edges = m->cases[corners - 2][inside];
    int e, k, count = 0;
    for (e = 1; e <= edges[0]; e += corners) {
        if (cube->through && fsi__gs_collapsed(edges + e, corners, cube->through)) continue;
        for (k = 0; out && k < corners; k++) out[count * corners + k] = fsi__gs_vertex(m, s, cube, edges[e + k]);
        count++;
    }
    return count;
}

/* Elements of a slot, eight cubes at a time: those whose corners are all on one side are passed over. */
static int fsi__gs_elements(const fsi__gs_impl *m, const fsi__gs_slot *s, int *out)
{
    const fsi_grid *g = m->phi->grid;
    const unsigned through = fsi__gs_mask(g, s->at[0], fsi__gs_caps);
    const int up = g->dim == 3 ? 9 : 0;
    fsi__gs_cube cube;
    int count = 0;
    for (cube.z = 0; cube.z < (g->dim == 3 ? 8 : 1); cube.z++)
        for (cube.y = 0; cube.y < 8; cube.y++) {
            const uint16_t *in = s->inside + cube.z * 9 + cube.y;
            const unsigned some = (unsigned)(in[0] | in[1] | in[up] | in[up + 1]),
                all = (unsigned)(in[0] & in[1] & in[up] & in[up + 1]);
            const int row_through = fsi__gs_caps(g, 1, s->at[1] + cube.y) || fsi__gs_caps(g, 2, s->at[2] + cube.z);
            unsigned left = (some | some >> 1) & ~(all & all >> 1) & 255; /* cubes with corners on both sides */
            if (!m->capped) left &= row_through ? 0 : ~through;

            /* One after the other. */
            for (; left; left &= left - 1) {
                const int x = fsi__mask_count((left & (0u - left)) - 1);
                unsigned inside = (in[0] >> x & 3u) | (in[1] >> x & 3u) << 2;
                if (g->dim == 3) inside |= (in[9] >> x & 3u) << 4 | (in[10] >> x & 3u) << 6;
                cube.x = x;
                cube.through = row_through || through >> x & 1 ? fsi__gs_through(g, s->at, &cube) : 0;
                count += fsi__gs_cube_elements(m, s, &cube, inside, out ? out + count * g->dim : NULL);
            }
        }
    return count;
}

/* ---- vertices ---- */

static fsi_real fsi__gs_coordinate(const fsi_grid *g, int axis, int node) /* in cells, from the lower wall */
{
    return node < 0 ? 0 : node >= g->n[axis] ? (fsi_real)g->n[axis] : (fsi_real)node + (fsi_real)0.5;
}

static fsi_vec3 fsi__gs_gradient(const fsi_real *v, const int *stride, int dim)
{
    return fsi_v3(v[stride[0]] - v[-stride[0]], v[stride[1]] - v[-stride[1]],
        dim == 3 ? v[stride[2]] - v[-stride[2]] : 0);
}

/* The vertex of a node along an axis, from the values around it; axis 3: at the node itself, on the wall. */
static void fsi__gs_put_vertex(fsi__gs_impl *m, const int *node, int axis, const fsi_real *v, const int *stride, int id)
{
    const fsi_grid *g = m->phi->grid;
    const fsi_real apart = (fsi_real)FSI__GS_APART;
    fsi_real x[3], n[3];
    fsi_vec3 normal;
    int a;
    for (a = 0; a < 3; a++) {
        x[a] = a < g->dim ? fsi__gs_coordinate(g, a, node[a]) : 0;
        n[a] = axis < 3 ? (fsi_real)(a == axis ? (v[0] < 0 ? 1 : -1) : 0)
            : (fsi_real)(a >= g->dim ? 0 : node[a] == -1 ? -1 : node[a] == g->n[a] ? 1 : 0);
    }
    normal = fsi_v3_unit(fsi_v3(n[0], n[1], n[2]));
    if (axis < 3) {
        const fsi_real end = v[stride[axis]], t = fsi_clamp(v[0] / (v[0] - end), apart, 1 - apart);
        const fsi_vec3 p = fsi__gs_gradient(v, stride, g->dim), q = fsi__gs_gradient(v + stride[axis], stride, g->dim);
        const fsi_vec3 gradient = fsi_v3_unit(fsi_v3_add(fsi_v3_scale(p, 1 - t), fsi_v3_scale(q, t)));
        /* not so where it is 0, or its square too small or large for a number */
        if (fsi_v3_norm2(gradient) > (fsi_real)0.5) normal = gradient;
        x[axis] += t * (fsi__gs_coordinate(g, axis, node[axis] + 1) - x[axis]);
    }
    m->vertices[id] = fsi_v3_madd(g->origin, g->dx, fsi_v3(x[0], x[1], x[2]));
    m->normals[id] = normal;
}

static void fsi__gs_vertices(fsi__gs_impl *m, const fsi__gs_slot *s)
{
    const fsi_grid *g = m->phi->grid;
    const int stride[3] = { 1, 12, 144 };
    fsi_real v[1728];
    int node[3], y, z, id = s->vertices;
    fsi__grid_gather_at(m->phi, s->at, 2, v);
    for (z = 0; z < (g->dim == 3 ? 8 : 1); z++)
        for (y = 0; y < 8; y++) {
            uint32_t left = s->vertex[z * 8 + y];
            for (; left; left &= left - 1) {
                const int bit = fsi__mask_count((left & (0u - left)) - 1), x = bit & 7;
                node[0] = s->at[0] + x;
                node[1] = s->at[1] + y;
                node[2] = s->at[2] + z;
                fsi__gs_put_vertex(m, node, bit >> 3, v + ((g->dim == 3 ? z + 2 : 0) * 12 + y + 2) * 12 + x + 2,
                    stride, id++);
            }
        }
}

/* ---- passes ---- */

static void fsi__gs_count_slots(void *arg, int chunk, int begin, int end)
{
    fsi__gs_impl *m = (fsi__gs_impl *)arg;
    const fsi_grid *g = m->phi->grid;
    int at[3], a, d;
    (void)chunk;
    for (; begin < end; begin++) {
        fsi__gs_slot *s = m->slots + begin;
        for (d = 0; d < 8; d++) {
            int exists = 1;
            for (a = 0; a < 3; a++) {
                at[a] = s->at[a] + (d >> a & 1) * 8;
                exists &= at[a] / 8 + (a < g->dim ? 1 : 0) < fsi__gs_places(g, a);
            }
            s->up[d] = exists ? m->map[fsi__gs_place(g, at)] : -1;
        }
        fsi__gs_look(m, s);
        fsi__gs_mark_vertices(m, s);
        s->elements = fsi__gs_elements(m, s, NULL);
    }
}

static void fsi__gs_fill_slots(void *arg, int chunk, int begin, int end)
{
    fsi__gs_impl *m = (fsi__gs_impl *)arg;
    const size_t corners = (size_t)m->phi->grid->dim;
    (void)chunk;
    for (; begin < end; begin++) {
        const fsi__gs_slot *s = m->slots + begin, *next = s + 1;
        if (next->vertices > s->vertices) fsi__gs_vertices(m, s);
        if (next->elements > s->elements) fsi__gs_elements(m, s, m->elements + (size_t)s->elements * corners);
    }
}

/* ---- the object ---- */

static void fsi__gs_make_cases(fsi__gs_impl *m)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < (dim == 3 ? 256 : 16); k++) fsi__sf_make_case(m->cases[dim - 2], dim, k);
}

FSI_API fsi_status fsi_grid_surface_create(fsi_grid_surface **out, fsi_context *context)
{
    fsi_grid_surface *s;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!fsi__is_context(context)) return FSI_ERROR_COOKIE;
    s = (fsi_grid_surface *)fsi__alloc(context, 1, sizeof *s + sizeof(fsi__gs_impl));
    if (!s) return fsi__fail(context, FSI_ERROR_MEMORY, "fsi_grid_surface_create", -1, 0, "no memory for a surface");
    s->cookie = FSI__COOKIE('i', fsi_grid_surface);
    s->context = context;
    s->corners = 3;
    s->impl = s + 1;
    fsi__gs_make_cases((fsi__gs_impl *)s->impl);
    *out = s;
    return FSI_OK;
}

static int fsi__gs_vertex_columns(fsi__gs_impl *m, fsi__column *c)
{
    c[0].array = (void **)&m->vertices;
    c[1].array = (void **)&m->normals;
    c[0].size = c[1].size = sizeof(fsi_vec3);
    return 2;
}
static int fsi__gs_column(void **array, size_t size, fsi__column *c)
{
    c->array = array;
    c->size = size;
    return 1;
}

FSI_API void fsi_grid_surface_destroy(fsi_grid_surface *s)
{
    fsi__gs_impl *m;
    fsi__column c[2];
    if (!s || s->cookie != FSI__COOKIE('i', fsi_grid_surface)) return;
    m = (fsi__gs_impl *)s->impl;
    fsi__free_columns(s->context, c, fsi__gs_vertex_columns(m, c), m->vertex_capacity);
    fsi__free_columns(s->context, c, fsi__gs_column((void **)&m->elements, sizeof(int), c), m->element_capacity);
    fsi__free_columns(s->context, c, fsi__gs_column((void **)&m->slots, sizeof *m->slots, c), m->slot_capacity);
    fsi__arena_free(s->context, &m->memory);
    s->cookie = 0;
    fsi__free(s->context, s, 1, sizeof *s + sizeof *m);
}

/* Room for `need` rows, of which the first `keep` stay. */
static fsi_status fsi__gs_room(fsi_context *context, const fsi__column *c, int columns, int keep, int *capacity,
    int need)
{
    return fsi__room(context, c, columns, keep, capacity, need, "fsi_grid_surface_update");
}

/* Signs of all blocks; refuses what is not finite, naming the cell. */
static fsi_status fsi__gs_check_values(fsi_context *context, fsi__gs_impl *m)
{
    fsi_status status = FSI_OK;
    int b;
    fsi__grid_light(m->phi->grid, 8, 200, fsi__gs_scan, m);
    for (b = 0; b < m->phi->grid->block_count && status == FSI_OK; b++)
        if (m->signs[b] >= 4) status = fsi__grid_name_bad(context, m->phi, b, "phi", "fsi_grid_surface_update");
    return status;
}

/* Finds the slots. */
static fsi_status fsi__gs_find_slots(fsi_context *context, fsi__gs_impl *m)
{
    const fsi_grid *g = m->phi->grid;
    const size_t blocks = (size_t)g->block_count,
        places = (size_t)fsi__gs_places(g, 0) * (size_t)fsi__gs_places(g, 1) * (size_t)fsi__gs_places(g, 2);
    fsi__column c[1];
    fsi_status status;
    size_t p;
    int b;
    if (!fsi__arena_room(context, &m->memory, blocks + places * sizeof *m->map + 128))
        return fsi__fail(context, FSI_ERROR_MEMORY, "fsi_grid_surface_update", -1, 0, "no memory for %g places",
            (double)places);
    m->map = (int *)fsi__take(&m->memory, places, sizeof *m->map);
    m->signs = (unsigned char *)fsi__take(&m->memory, blocks, 1);
    FSI__TRY(fsi__gs_check_values(context, m));
    for (p = 0; p < places; p++) m->map[p] = -1;
    for (b = 0; b < g->block_count; b++)
        if (m->signs[b] & 1) fsi__gs_mark(m, b);
    m->slot_count = fsi__gs_number_slots(m, 0);
    status = fsi__gs_room(context, c, fsi__gs_column((void **)&m->slots, sizeof *m->slots, c), 0, &m->slot_capacity,
        m->slot_count + 1);
    if (status == FSI_OK) fsi__gs_number_slots(m, 1);
    return status;
}

/* Counts become positions; the slot behind the last one holds the totals. */
static fsi_status fsi__gs_number(fsi_context *context, fsi__gs_impl *m)
{
    const int corners = m->phi->grid->dim;
    long long vertices = 0, elements = 0;
    int k;
    for (k = 0; k <= m->slot_count; k++) {
        fsi__gs_slot *s = m->slots + k;
        const int v = k < m->slot_count ? s->vertices : 0, e = k < m->slot_count ? s->elements : 0;
        s->vertices = (int)vertices;
        s->elements = (int)elements;
        vertices += v;
        elements += e;
        if (vertices > 2147483647 || elements * corners > 2147483647)
            return fsi__fail(context, FSI_ERROR_LIMIT, "fsi_grid_surface_update", -1, (double)elements,
                "the surface has more than 2^31 - 1 vertices or indices");
    }
    return FSI_OK;
}

/* Room for the result; the former one stays valid until the new one is complete. */
static fsi_status fsi__gs_grow(fsi_grid_surface *s, fsi__gs_impl *m)
{
    const fsi__gs_slot *end = m->slots + m->slot_count;
    fsi__column c[2];
    fsi_status status = fsi__gs_room(s->context, c, fsi__gs_vertex_columns(m, c), s->vertex_count, &m->vertex_capacity,
        end->vertices);
    if (status == FSI_OK)
        status = fsi__gs_room(s->context, c, fsi__gs_column((void **)&m->elements, sizeof(int), c),
            s->element_count * s->corners, &m->element_capacity, end->elements * m->phi->grid->dim);
    s->vertices = m->vertices;
    s->normals = m->normals;
    s->elements = m->elements;
    return status;
}

FSI_API fsi_status fsi_grid_surface_update(fsi_grid_surface *s, const fsi_field *phi, int capped)
{
    static const char *const f = "fsi_grid_surface_update";
    fsi__gs_impl *m;
    double work;
    if (!s || s->cookie != FSI__COOKIE('i', fsi_grid_surface) || !fsi__is_field(phi)) return FSI_ERROR_COOKIE;
    if (phi->place != FSI_CELLS)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, f, -1, (double)(int)phi->place, "phi is not a field of cells");
    if (!(phi->background >= 0))
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, f, -1, (double)phi->background,
            "the background of phi is %g: liquid where no block is", (double)phi->background);

    /* Slots at the surface; how much each gives; room for all; then vertices and elements. */
    m = (fsi__gs_impl *)s->impl;
    m->phi = phi;
    m->capped = capped != 0;
    FSI__TRY(fsi__gs_find_slots(s->context, m));
    work = (phi->grid->dim == 2 ? 200.0 : 1200.0) * m->slot_count; /* nanoseconds at least */
    fsi__parallel_work(s->context, m->slot_count, FSI__GS_GRAIN, work, fsi__gs_count_slots, m);
    FSI__TRY(fsi__gs_number(s->context, m));
    FSI__TRY(fsi__gs_grow(s, m));
    fsi__parallel_work(s->context, m->slot_count, FSI__GS_GRAIN, work, fsi__gs_fill_slots, m);
    s->corners = phi->grid->dim;
    s->vertex_count = m->slots[m->slot_count].vertices;
    s->element_count = m->slots[m->slot_count].elements;
    return FSI_OK;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
