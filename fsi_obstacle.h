/* fsi_obstacle.h - meshes and bodies as walls of a liquid: their position and motion, and the forces of the liquid.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_sph.h, fsi_wcsph.h, fsi_flip.h and fsi_levelset.h include this file (fsi_levelset.h and fsi_shell.h
      have lists of their own, and say why where their obstacles are declared). Front pages say how a liquid gets a
      wall:

      fsi_mesh_desc m = fsi_mesh_default_desc();    // fsi_mesh.h
      m.vertices = v; m.vertex_count = nv; m.elements = triangles; m.element_count = nt;
      if (fsi_mesh_create(&mesh, &m) != FSI_OK) ...;
      fsi_sph_add_mesh(water, mesh, &id);           // rests where it is, and follows fsi_mesh_move
      ...
      fsi_sph_obstacle_reaction(water, id, &force, &torque);

   WHAT IS IN HERE (search for >>), all of it for fsi's own headers
      >>obstacles      the list of a liquid's obstacles: add, find, remove, teleport, shift, save and load; the step's
                       motion between two poses; impulses of the liquid
      >>six unknowns   small systems of one body
      >>faces          those near a particle, or a group of particles
      >>placement      particles out of solids: along their path, or to the nearest free position
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: positions in fsi_real; impulses in double.
*/
#ifndef FSI_OBSTACLE_H
#define FSI_OBSTACLE_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_mesh.h"

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* A mesh that rests, is moved by its owner, or is fixed to a body:

      position after the last step       the step's motion             position prescribed by its owner
      rest[], or `at` and rest[] in     ------------------->           given->vertices, or carrier->end (PRESCRIBED),
      the axes of its body               done   done + share            or solved with the liquid (COUPLED)

   The caller's mesh is never written. A moving obstacle has a copy of it, its shadow, which sweeps through the
   substeps and which the solver reads. The shadow of an obstacle on a body is kept in world axes or, if the list is
   local, in the body's axes. */
typedef struct fsi__obstacle {
    int id;
    const fsi_mesh *given;    /* the caller's, not owned */
    fsi_body *carrier;        /* the body that it is fixed to, not owned; NULL: none */
    uint32_t mask;            /* it acts on particles with filter & mask != 0 */
    fsi_real contact_angle;   /* measured in the liquid, for surface tension [degrees] */
    const fsi_mesh *mesh;     /* the mesh that the solver reads: `given`, or the shadow */
    fsi_mesh *shadow;         /* NULL until the obstacle moves */
    int vertex_count, face_count; /* of `given`, which may be destroyed before the obstacle */
    fsi_vec3 *rest;           /* vertex_count: positions after the last step; on a body: in its axes */
    /* face -> coplanar patch, numbered by its first face; scratch; NULL: not wanted */
    int *patch, *stack;
    fsi_pose at;              /* pose of its body after the last step */
    double reach;             /* of its vertices from the body's centre; 0 without a body [m] */
    fsi_vec3 *vertex_force;   /* the caller's: given->source_count [N]; NULL: not wanted */
    fsi_vec3 *vertex_impulse; /* vertex_count, of the running step [N s]; NULL likewise */
    fsi_vec3 force, torque;   /* mean over the last step; torque about the world's origin [N, N m] */
    /* Of the running step: */
    int body;                 /* index of its body in the owner's table, -1: none */
    int moves;                /* 1: its shadow moves through the substeps */
    double impulse[3], moment[3]; /* on the obstacle [N s]; about the origin [N m s] */
} fsi__obstacle;

/* A list whose rows are the owner's structs; each begins with a fsi__obstacle. fsi__obstacles_start sets the first
   block but for `local` and `patched`. */
typedef struct fsi__obstacles {
    fsi_context *context;
    int dim;
    int local;                /* 1: shadows of obstacles on bodies are in the bodies' axes, always */
    int patched;              /* 1: coplanar patches of faces are kept */
    size_t size;              /* bytes of a row */
    void *rows;
    int count, capacity, next_id;
} fsi__obstacles;

/* Begins an empty list, which must be all zeros. */
FSI_FN void fsi__obstacles_start(fsi__obstacles *list, fsi_context *context, int dim, size_t size)
{
    list->context = context;
    list->dim = dim;
    list->size = size;
}
FSI_FN fsi__obstacle *fsi__obstacle_at(const fsi__obstacles *list, int k)
{
    return (fsi__obstacle *)(void *)((unsigned char *)list->rows + (size_t)k * list->size);
}

/* Checks the body (NULL is fine) of obstacle id. in_plane: in 2D a COUPLED one must not leave the plane; else only its
   inertia is checked. Errors: those of fsi_body_check, LIMIT, ARGUMENT. */
FSI_API fsi_status fsi__check_carrier(fsi_context *context, const char *fn, const fsi_body *body, int id, int dim,
    int in_plane);
FSI_API fsi_status fsi__obstacles_check_carriers(const fsi__obstacles *list, const char *fn, int in_plane); /* of all */
/* Rotation vector from one pose to another, by the smaller angle. */
FSI_API fsi_vec3 fsi__turn_between(fsi_pose a, fsi_pose b);
/* A PRESCRIBED body's pose at fraction s of its motion from `from` to its end. */
FSI_API fsi_pose fsi__pose_on_the_way(const fsi_body *body, fsi_pose from, double s);

/* Makes a new last row that is not counted yet: the owner completes it, then calls keep or let_go. rows may move. mesh
   and body have been checked. NULL: MEMORY, in the context's error. */
FSI_API void *fsi__obstacles_begin(fsi__obstacles *list, const char *fn, const fsi_mesh *mesh, fsi_body *body,
    uint32_t mask, fsi_vec3 *vertex_force);
FSI_API int fsi__obstacles_keep(fsi__obstacles *list);    /* counts the new row; returns its id */
/* Frees the new row; returns MEMORY. */
FSI_API fsi_status fsi__obstacles_let_go(fsi__obstacles *list, const char *fn, const fsi_mesh *mesh);
/* Index of the obstacle with that id; -1: there is none, an error in the context. */
FSI_API int fsi__obstacles_find(const fsi__obstacles *list, const char *fn, int id);
FSI_API void fsi__obstacles_remove(fsi__obstacles *list, int k); /* the owner has freed its own part of the row */
FSI_API void fsi__obstacles_free(fsi__obstacles *list);          /* all rows, likewise */

/* Moves an obstacle to the present position of its mesh or body. */
FSI_API void fsi__obstacle_set(const fsi__obstacles *list, fsi__obstacle *o);
/* The same after load; a body closer than `near_by` [m] to its pose in the state gets that pose. */
FSI_API void fsi__obstacle_load(const fsi__obstacles *list, fsi__obstacle *o, double near_by);
/* Moves the shadows of all that move in this step to their positions after the last one. */
FSI_API void fsi__obstacles_stand(const fsi__obstacles *list);
/* Adds offset to the position after the last step. */
FSI_API void fsi__obstacle_shift(const fsi__obstacles *list, fsi__obstacle *o, fsi_vec3 offset);
/* Checks the pose that a state has for obstacle id, that of its body when it has one; `most`: distance from the origin,
   at most [m]. Errors: NAN, FORMAT. */
FSI_API fsi_status fsi__check_loaded_pose(fsi_context *context, const char *fn, int id, int has_body, double most,
    fsi_pose at);
FSI_API fsi_status fsi__obstacle_check_pose(const fsi__obstacles *list, const char *fn, int k, fsi_pose at); /* of k */

/* Begins a step: no body, zero impulses, sets `moves`. shade makes a shadow if one is needed. Errors: MEMORY. */
FSI_API void fsi__obstacle_begin(const fsi__obstacles *list, fsi__obstacle *o);
FSI_API fsi_status fsi__obstacle_shade(const fsi__obstacles *list, fsi__obstacle *o, const char *fn);
/* Largest displacement of a vertex in the step [m]; 0 if its mesh does not move by itself. */
FSI_API double fsi__obstacle_way(const fsi__obstacle *o);
/* Sweeps the shadow of a mesh that moves by itself, from fraction `done` of the step to done + share. */
FSI_API void fsi__obstacle_follow(fsi__obstacle *o, double done, double share);
/* Velocity [m/s] of the point of a face with these weights, during a sweep of dt seconds. */
FSI_API fsi__d3 fsi__obstacle_velocity(const fsi__obstacle *o, int face, const double bary[3], double dt);
/* Adds an impulse on the obstacle at x; if vertex forces are wanted, distributes it to the corners of the face. */
FSI_API void fsi__obstacle_push(fsi__obstacle *o, int face, const double bary[3], fsi__d3 x, fsi__d3 given);
/* Ends a step of dt seconds: forces and position; `at`: the pose of its body. */
FSI_API void fsi__obstacle_commit(fsi__obstacle *o, double dt, const fsi_pose *at);
FSI_API void fsi__obstacles_draw(const fsi__obstacles *list, const fsi_debug_draw *draw); /* edges */
/* The walls of a box around a liquid as a mesh whose normals point inward; the caller destroys it. Errors: ARGUMENT
   (desc.domain is not a box), MEMORY. */
FSI_API fsi_status fsi__make_box_container(fsi_context *context, const char *fn, fsi_box3 box, int dim,
    fsi_mesh **mesh);
/* Moves these walls to another box. Errors: those of fsi_mesh_set. */
FSI_API fsi_status fsi__set_box_container(fsi_mesh *mesh, fsi_box3 box);
/* Is x in a closed obstacle that acts on such a particle, by winding numbers? */
FSI_API int fsi__obstacles_hold(const fsi__obstacles *list, uint32_t filter, fsi_vec3 x);

/* ---- >>six unknowns of a body: translation and rotation (for fsi's own headers) ---------------------------------- */

FSI_FN double fsi__dot6(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5];
}
/* 2D: rows and columns of motion out of the plane become those of the identity. */
FSI_API void fsi__flatten6(double a[6][6]);
/* A x = b; of A, positive definite, the lower half is read. */
FSI_API void fsi__solve6(double A[6][6], const double *b, double *x);
FSI_API void fsi__times6(double A[6][6], const double *x, double *y);      /* y = A x, likewise */
FSI_API double fsi__norm6(double A[6][6], const double *x);                /* x.A x, likewise */

/* ---- >>faces: those near particles (for fsi's own headers) ------------------------------------------------------- */

#define FSI__FACES 2048       /* at most: 16 kB */

/* Entry k is face[k] of obstacle owner[k]; owners ascend. */
typedef struct fsi__faces {
    int count;
    int face[FSI__FACES], owner[FSI__FACES];
} fsi__faces;

FSI_API fsi_box3 fsi__path_box(fsi_vec3 a, fsi_vec3 b, fsi_real reach); /* of a particle's path from a to b, inflated */
/* All faces whose swept box overlaps `box`, of obstacles that act on `filter`. 0: more than FSI__FACES. */
FSI_API int fsi__find_faces(const fsi__obstacles *list, fsi_box3 box, uint32_t filter, fsi__faces *out);
/* The same from a group's faces only; group NULL: from all. */
FSI_API int fsi__own_faces(const fsi__obstacles *list, const fsi__faces *group, fsi_box3 box, uint32_t filter,
    fsi__faces *out);

/* ---- >>placement: particles out of solids (for fsi's own headers) ------------------------------------------------ */

/* Solids that particles must stay out of, and the distances to keep. */
typedef struct fsi__walls {
    const fsi__obstacles *list;
    const fsi_mesh *domain;   /* the obstacle that is the box around the liquid; NULL: none is */
    const fsi_box3 *box;      /* NULL: there is none */
    double gap;               /* distance from the box that a particle from outside is given [m] */
    double hair;              /* distance from a face that a particle stopped by it is given [m] */
    double reach;             /* radius of the search for a free position [m] */
} fsi__walls;

/* Result of placing a particle: unchanged; moved; no free position; moved to a position off its path. */
enum { FSI__FREE = 0, FSI__PLACED = 1, FSI__PINCHED = 2, FSI__FORCED = 4 };

FSI_FN int fsi__is_sheet(const fsi__obstacles *list, int k)
{
    return fsi__obstacle_at(list, k)->mesh->kind == FSI_MESH_TWO_SIDED;
}
/* Does x lie beyond the walls of the box, as far as they act on such a particle? */
FSI_API int fsi__walls_leave_out(const fsi__walls *w, uint32_t filter, fsi_vec3 x);
/* The closest point of an obstacle when x is in its solid, wherever its faces are; else face -1. */
FSI_API fsi_mesh_hit fsi__inside_of(const fsi__obstacle *o, fsi_vec3 x);
/* Moves *x, the end of the path from `from`, out of all solids (sph.md 8): onto the end position of the face it would
   pass, `hair` in front of it, keeping the tangential motion; repeated for the next face, as at corners. If a face
   carries the particle beyond `reach` of the path, where the faces `own` were found, they are found again. */
FSI_API int fsi__place(const fsi__walls *w, fsi__faces *own, uint32_t filter, fsi_vec3 from, fsi_real reach,
    fsi_vec3 *x);
/* Last resort of fsi__place: back to `from`, or on to `wanted` although a solid has passed between, or to a free
   position nearby. Else *x stays between the solids that close on it. */
FSI_API int fsi__squeeze(const fsi__walls *w, uint32_t filter, fsi_vec3 from, fsi_vec3 wanted, fsi_vec3 *x);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_OBSTACLE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_OBSTACLE_IMPLEMENTATION
#define FSI_OBSTACLE_IMPLEMENTATION
#endif
#ifdef FSI_OBSTACLE_IMPLEMENTATION
#ifndef FSI_OBSTACLE_IMPLEMENTATION_DONE
#define FSI_OBSTACLE_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_mesh.h"

FSI__STRICT_BEGIN

/* ---- >>obstacles ------------------------------------------------------------------------------------------------- */

FSI_API fsi_vec3 fsi__turn_between(fsi_pose a, fsi_pose b)
{
    return fsi_quat_rotation_vector(fsi_quat_mul(b.orientation, fsi_quat_conj(a.orientation)));
}

FSI_API fsi_pose fsi__pose_on_the_way(const fsi_body *body, fsi_pose from, double s)
{
    fsi_body way = *body;
    way.pose = from;
    return fsi_body_pose_at(&way, (fsi_real)s);
}

FSI__COLD_BEGIN

FSI_API fsi_status fsi__check_carrier(fsi_context *context, const char *fn, const fsi_body *body, int id, int dim,
    int in_plane)
{
    fsi_status status;
    fsi_mat3 world;
    double off, tilt;
    if (!body) return FSI_OK;
    status = fsi_body_check(context, body, id);
    if (status != FSI_OK) return status;

    /* Within reach of the origin. */
    off = (double)fsi_v3_norm(body->pose.position);
    if (body->mode == FSI_BODY_PRESCRIBED) off = fmax(off, (double)fsi_v3_norm(body->end.position));
    if (!(off <= FSI__MESH_REACH))
        return fsi__fail(context, FSI_ERROR_LIMIT, fn, id, off, "the body of obstacle %d is %g from the origin", id,
            off);
    if (dim == 3 || body->mode != FSI_BODY_COUPLED) return FSI_OK;

    /* In the plane of dim 2, and such that pressure does not turn it out of that. */
    off = fabs((double)body->velocity.z) + fabs((double)body->force.z) + fabs((double)body->angular_velocity.x)
        + fabs((double)body->angular_velocity.y) + fabs((double)body->torque.x) + fabs((double)body->torque.y)
        + fabs((double)body->pose.position.z);
    if (in_plane && off > 0)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, id, off,
            "the body of obstacle %d leaves the plane of dim 2: z of position, velocity, force, and x, y of angular "
            "velocity and torque must be 0", id);
    world = fsi_body_world_tensor(body->pose.orientation, body->inertia);
    tilt = fmax(fabs((double)world.m[2]), fabs((double)world.m[5]));
    if (!(tilt > 1e-6 * (double)world.m[8])) return FSI_OK;
    return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, id, tilt,
        "the body of obstacle %d has a product of inertia with z of %g, which would turn it out of the plane of dim 2",
        id, tilt);
}

FSI_API fsi_status fsi__obstacles_check_carriers(const fsi__obstacles *list, const char *fn, int in_plane)
{
    int k;
    for (k = 0; k < list->count; k++) {
        const fsi__obstacle *o = fsi__obstacle_at(list, k);
        FSI__TRY(fsi__check_carrier(list->context, fn, o->carrier, o->id, list->dim, in_plane));
    }
    return FSI_OK;
}

static void fsi__obstacle_free(const fsi__obstacles *list, fsi__obstacle *o)
{
    fsi__free(list->context, o->rest, (size_t)o->vertex_count, sizeof *o->rest);
    fsi__free(list->context, o->vertex_impulse, (size_t)o->vertex_count, sizeof *o->vertex_impulse);
    fsi__free(list->context, o->patch, (size_t)o->face_count, sizeof *o->patch);
    fsi__free(list->context, o->stack, (size_t)o->face_count, sizeof *o->stack);
    fsi_mesh_destroy(o->shadow);
}

/* Coplanar patches: faces joined across edges with the same plane, flooded from each face in turn. */
static void fsi__obstacle_make_patches(fsi__obstacle *o)
{
    const fsi_mesh *mesh = o->mesh;
    int *patch = o->patch, *stack = o->stack;
    int f, k, top, n = mesh->corners == 3 ? 3 : 0;
    for (f = 0; f < mesh->face_count; f++) patch[f] = -1;
    for (f = 0; f < mesh->face_count; f++) {
        if (patch[f] >= 0) continue;
        patch[f] = f;
        for (stack[0] = f, top = 1; top > 0;) {
            const int a = stack[--top];
            for (k = 0; k < n; k++) {
                const int b = mesh->face_neighbor[3 * a + k];
                if (b < 0 || patch[b] >= 0) continue;
                if (!((double)fsi_v3_norm2(fsi_v3_sub(mesh->face_normals[b], mesh->face_normals[f])) < 1e-20)) continue;
                patch[b] = f;
                stack[top++] = b;
            }
        }
    }
}

FSI_API void *fsi__obstacles_begin(fsi__obstacles *list, const char *fn, const fsi_mesh *mesh, fsi_body *body,
    uint32_t mask, fsi_vec3 *vertex_force)
{
    const size_t vertices = (size_t)mesh->vertex_count, faces = list->patched ? (size_t)mesh->face_count : 0;
    fsi__obstacle *o;
    int v;
    if (fsi__room_in(list->context, &list->rows, list->size, list->count, &list->capacity, list->count + 1,
        fn) != FSI_OK) return NULL;
    o = fsi__obstacle_at(list, list->count);
    memset(o, 0, list->size);
    o->given = o->mesh = mesh;
    o->carrier = body;
    o->mask = mask;
    o->body = -1;
    o->vertex_count = mesh->vertex_count;
    o->face_count = mesh->face_count;
    o->vertex_force = vertex_force;

    /* All that it owns. */
    o->rest = (fsi_vec3 *)fsi__alloc(list->context, vertices, sizeof *o->rest);
    if (vertex_force) o->vertex_impulse = (fsi_vec3 *)fsi__alloc(list->context, vertices, sizeof *o->vertex_impulse);
    if (body) o->mesh = o->shadow = fsi__mesh_shadow(list->context, mesh);
    if (faces > 0) o->patch = (int *)fsi__alloc(list->context, faces, sizeof *o->patch);
    if (faces > 0) o->stack = (int *)fsi__alloc(list->context, faces, sizeof *o->stack);
    if (!o->rest || (vertex_force && !o->vertex_impulse) || !o->mesh || (faces > 0 && (!o->patch || !o->stack))) {
        fsi__obstacles_let_go(list, fn, mesh);
        return NULL;
    }

    /* Where it is. */
    for (v = 0; v < mesh->vertex_count && body; v++) {
        o->rest[v] = fsi_pose_local(body->pose, mesh->vertices[v]);
        o->reach = fmax(o->reach, (double)fsi_v3_norm(o->rest[v]));
    }
    if (body && list->local) fsi__mesh_follow(o->shadow, o->rest, o->rest, 0, 1);
    if (faces > 0) fsi__obstacle_make_patches(o);
    fsi__obstacle_set(list, o);
    return o;
}

FSI_API int fsi__obstacles_keep(fsi__obstacles *list)
{
    fsi__obstacle *o = fsi__obstacle_at(list, list->count++);
    o->id = list->next_id++;
    return o->id;
}

FSI_API fsi_status fsi__obstacles_let_go(fsi__obstacles *list, const char *fn, const fsi_mesh *mesh)
{
    fsi__obstacle_free(list, fsi__obstacle_at(list, list->count));
    return fsi__fail(list->context, FSI_ERROR_MEMORY, fn, -1, mesh->face_count,
        "no memory for an obstacle of %d faces", mesh->face_count);
}

FSI_API int fsi__obstacles_find(const fsi__obstacles *list, const char *fn, int id)
{
    int k = list->count - 1;
    while (k >= 0 && fsi__obstacle_at(list, k)->id != id) k--;
    if (k < 0) (void)fsi__fail(list->context, FSI_ERROR_ARGUMENT, fn, id, 0, "there is no obstacle %d", id);
    return k;
}

FSI_API void fsi__obstacles_remove(fsi__obstacles *list, int k)
{
    fsi__obstacle *o = fsi__obstacle_at(list, k);
    fsi__obstacle_free(list, o);
    list->count--;
    memmove(o, (unsigned char *)(void *)o + list->size, (size_t)(list->count - k) * list->size);
}

FSI_API void fsi__obstacles_free(fsi__obstacles *list)
{
    int k;
    for (k = 0; k < list->count; k++) fsi__obstacle_free(list, fsi__obstacle_at(list, k));
    fsi__free(list->context, list->rows, (size_t)list->capacity, list->size);
}

/* Moves its shadow to the position after the last step. */
static void fsi__obstacle_stand(const fsi__obstacles *list, fsi__obstacle *o)
{
    if (!o->shadow) return;
    if (!o->carrier) fsi__mesh_follow(o->shadow, o->rest, o->rest, 0, 1);
    else if (!list->local) fsi__mesh_follow_rigid(o->shadow, o->rest, o->at, o->at);
}

FSI_API void fsi__obstacles_stand(const fsi__obstacles *list)
{
    int k;
    for (k = 0; k < list->count; k++) {
        fsi__obstacle *o = fsi__obstacle_at(list, k);
        if (o->moves) fsi__obstacle_stand(list, o);
    }
}

FSI_API void fsi__obstacle_set(const fsi__obstacles *list, fsi__obstacle *o)
{
    if (o->carrier) o->at = o->carrier->pose;
    else memcpy(o->rest, o->given->vertices, (size_t)o->vertex_count * sizeof *o->rest);
    fsi__obstacle_stand(list, o);
    if (o->patch && !o->carrier) fsi__obstacle_make_patches(o); /* it may have bent */
}

FSI_API void fsi__obstacle_load(const fsi__obstacles *list, fsi__obstacle *o, double near_by)
{
    const fsi_pose saved = o->at;
    double off;
    fsi__obstacle_set(list, o);
    if (!o->carrier) return;
    off = (double)fsi_v3_norm(fsi_v3_sub(o->at.position, saved.position))
        + (double)fsi_v3_norm(fsi__turn_between(saved, o->at)) * o->reach;
    if (off < near_by) o->at = saved;
    fsi__obstacle_stand(list, o);
}

FSI_API void fsi__obstacle_shift(const fsi__obstacles *list, fsi__obstacle *o, fsi_vec3 offset)
{
    int v;
    if (o->carrier) o->at.position = fsi_v3_add(o->at.position, offset);
    else for (v = 0; v < o->vertex_count; v++) o->rest[v] = fsi_v3_add(o->rest[v], offset);
    fsi__obstacle_stand(list, o);
}

FSI_API fsi_status fsi__check_loaded_pose(fsi_context *context, const char *fn, int id, int has_body, double most,
    fsi_pose at)
{
    const fsi_quat q = at.orientation;
    const double x = (double)q.x, y = (double)q.y, z = (double)q.z, w = (double)q.w;
    const double turn = x * x + y * y + z * z + w * w, off = (double)fsi_v3_norm(at.position);
    if (!fsi_v3_is_finite(at.position) || !fsi_is_finite(turn))
        return fsi__fail(context, FSI_ERROR_NAN, fn, id, 0, "the pose of obstacle %d in the state is not finite", id);
    if (!(off <= most))
        return fsi__fail(context, FSI_ERROR_FORMAT, fn, id, off, "obstacle %d of the state is %g from the origin", id,
            off);
    if (has_body && !(fabs(turn - 1) < 1e-3))
        return fsi__fail(context, FSI_ERROR_FORMAT, fn, id, turn,
            "the orientation of obstacle %d in the state is no rotation", id);
    return FSI_OK;
}

FSI_API fsi_status fsi__obstacle_check_pose(const fsi__obstacles *list, const char *fn, int k, fsi_pose at)
{
    const int has_body = fsi__obstacle_at(list, k)->carrier != NULL;
    return fsi__check_loaded_pose(list->context, fn, k, has_body, 2 * FSI__MESH_REACH, at);
}

FSI__COLD_END

FSI_API void fsi__obstacle_begin(const fsi__obstacles *list, fsi__obstacle *o)
{
    const size_t size = (size_t)o->vertex_count * sizeof *o->rest;
    o->body = -1;
    memset(o->impulse, 0, sizeof o->impulse);
    memset(o->moment, 0, sizeof o->moment);
    if (o->vertex_impulse) memset(o->vertex_impulse, 0, size);
    if (o->carrier) o->moves = !list->local;
    else o->moves = memcmp(o->rest, o->given->vertices, size) != 0 || (o->shadow && o->shadow->moving);
}

FSI_API fsi_status fsi__obstacle_shade(const fsi__obstacles *list, fsi__obstacle *o, const char *fn)
{
    if (o->shadow || (!o->moves && !o->given->moving)) return FSI_OK; /* its mesh may be moving on its own account */
    o->shadow = fsi__mesh_shadow(list->context, o->given);
    if (!o->shadow) return fsi__fail(list->context, FSI_ERROR_MEMORY, fn, o->id, 0, "no memory to move obstacle %d",
        o->id);
    o->mesh = o->shadow;
    fsi__obstacle_stand(list, o);
    return FSI_OK;
}

FSI_API double fsi__obstacle_way(const fsi__obstacle *o)
{
    double most = 0;
    int v;
    for (v = 0; v < o->vertex_count && !o->carrier; v++)
        most = fmax(most, (double)fsi_v3_norm2(fsi_v3_sub(o->given->vertices[v], o->rest[v])));
    return sqrt(most);
}

FSI_API void fsi__obstacle_follow(fsi__obstacle *o, double done, double share)
{
    fsi__mesh_follow(o->shadow, o->rest, o->given->vertices, (fsi_real)done, (fsi_real)(done + share));
    if (o->patch) fsi__obstacle_make_patches(o); /* it may bend */
}

FSI_API fsi__d3 fsi__obstacle_velocity(const fsi__obstacle *o, int face, const double bary[3], double dt)
{
    const fsi_mesh *m = o->mesh;
    fsi__d3 v = fsi__d3_make(0, 0, 0);
    int k;
    for (k = 0; k < m->corners && m->moving && face >= 0; k++) {
        const int c = m->faces[m->corners * face + k];
        v = fsi__d3_madd(v, bary[k] / dt, fsi__d3_of(fsi_v3_sub(m->vertices[c], m->previous[c])));
    }
    return v;
}

FSI_API void fsi__obstacle_push(fsi__obstacle *o, int face, const double bary[3], fsi__d3 x, fsi__d3 given)
{
    const fsi_mesh *m = o->mesh;
    int k;
    fsi__d3_put(o->impulse, fsi__d3_add(fsi__d3_at(o->impulse), given));
    fsi__d3_put(o->moment, fsi__d3_add(fsi__d3_at(o->moment), fsi__d3_cross(x, given)));
    for (k = 0; k < m->corners && o->vertex_impulse; k++) {
        fsi_vec3 *v = &o->vertex_impulse[m->faces[m->corners * face + k]];
        *v = fsi_v3_madd(*v, (fsi_real)bary[k], fsi__d3_real(given));
    }
}

/* Vertices that were welded: the impulse goes to the one that the mesh kept. */
static void fsi__obstacle_commit_vertices(fsi__obstacle *o, fsi_real per_dt)
{
    const fsi_mesh *m = o->given;
    int v;
    for (v = 0; v < m->source_count; v++) {
        const int k = m->source_vertex[v];
        o->vertex_force[v] = k < 0 || m->vertex_source[k] != v ? fsi_v3(0, 0, 0)
            : fsi_v3_scale(o->vertex_impulse[k], per_dt);
    }
}

FSI_API void fsi__obstacle_commit(fsi__obstacle *o, double dt, const fsi_pose *at)
{
    const fsi_real per_dt = (fsi_real)(1 / dt);
    o->force = fsi_v3_scale(fsi__d3_real(fsi__d3_at(o->impulse)), per_dt);
    o->torque = fsi_v3_scale(fsi__d3_real(fsi__d3_at(o->moment)), per_dt);
    if (o->vertex_impulse) fsi__obstacle_commit_vertices(o, per_dt);
    if (at) o->at = *at;
    else if (o->moves) memcpy(o->rest, o->given->vertices, (size_t)o->vertex_count * sizeof *o->rest);
}

FSI_API void fsi__obstacles_draw(const fsi__obstacles *list, const fsi_debug_draw *draw)
{
    int o, k;
    for (o = 0; o < list->count && draw->line; o++) {
        const fsi__obstacle *row = fsi__obstacle_at(list, o);
        const fsi_mesh *m = row->mesh;
        const int posed = row->carrier && list->local;
        for (k = 0; k < m->corners * m->face_count; k++) {
            const int face = k / m->corners, next = m->corners * face + (k + 1) % m->corners;
            const fsi_vec3 a = m->vertices[m->faces[k]], b = m->vertices[m->faces[next]];
            const fsi_vec3 from = posed ? fsi_pose_point(row->at, a) : a, to = posed ? fsi_pose_point(row->at, b) : b;
            draw->line(draw->user, from, to, 0x808080u);
        }
    }
}

/* The corners of a box, x first; in 2D the first four, in the plane. */
static void fsi__box_corners(fsi_box3 b, int dim, fsi_vec3 *v)
{
    const fsi_real bottom = dim == 2 ? 0 : b.lo.z;
    int k;
    for (k = 0; k < 8; k++) v[k] = fsi_v3(k & 1 ? b.hi.x : b.lo.x, k & 2 ? b.hi.y : b.lo.y, k & 4 ? b.hi.z : bottom);
}

FSI_API fsi_status fsi__make_box_container(fsi_context *context, const char *fn, fsi_box3 b, int dim, fsi_mesh **mesh)
{
    static const int sides[8] = { 0, 1, 1, 3, 3, 2, 2, 0 };
    static const int triangles[36] = { 0, 6, 4, 0, 2, 6, 1, 7, 3, 1, 5, 7, 0, 5, 1, 0, 4, 5, 2, 7, 6, 2, 3, 7, 0, 3, 2,
        0, 1, 3, 4, 7, 5, 4, 6, 7 };
    const int flat = dim == 2, wide = b.lo.x < b.hi.x && b.lo.y < b.hi.y && (flat || b.lo.z < b.hi.z);
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_vec3 corner[8];
    if (!fsi_v3_is_finite(b.lo) || !fsi_v3_is_finite(b.hi) || !wide)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0, "desc.domain is not a box");
    fsi__box_corners(b, dim, corner);
    d.context = context;
    d.vertices = corner;
    d.vertex_count = flat ? 4 : 8;
    d.elements = flat ? sides : triangles;
    d.element_count = flat ? 4 : 12;
    d.corners = dim;
    d.kind = FSI_MESH_CLOSED;
    d.container = 1;
    return fsi_mesh_create(mesh, &d);
}

FSI_API fsi_status fsi__set_box_container(fsi_mesh *mesh, fsi_box3 box)
{
    fsi_vec3 corner[8];
    fsi__box_corners(box, mesh->corners, corner);
    return fsi_mesh_set(mesh, corner, mesh->source_count);
}

FSI_API int fsi__obstacles_hold(const fsi__obstacles *list, uint32_t filter, fsi_vec3 x)
{
    int k;
    for (k = 0; k < list->count; k++) {
        const fsi__obstacle *o = fsi__obstacle_at(list, k);
        const fsi_vec3 l = o->carrier && list->local ? fsi_pose_local(o->at, x) : x;
        double w;
        if (o->mesh->kind != FSI_MESH_CLOSED || !(o->mask & filter)) continue;
        w = fsi_box3_overlap(fsi_box3_grow(fsi_box3_empty(), l), o->mesh->box) ? fsi_mesh_winding_number(o->mesh, l)
            : 0;
        if (!((o->mesh->container ? 1 + w : w) < 0.5)) return 1;
    }
    return 0;
}

/* ---- >>six unknowns ---------------------------------------------------------------------------------------------- */

/* The plane knows two velocities and one rotation: the other rows of a body's matrix become those of the identity. */
FSI_API void fsi__flatten6(double a[6][6])
{
    int k, j;
    for (k = 2; k <= 4; k++) for (j = 0; j < 6; j++) a[k][j] = a[j][k] = k == j;
}

/* Solves the symmetric positive definite 6x6 system A x = b by Cholesky's method; of A it reads the lower half. */
FSI_API void fsi__solve6(double A[6][6], const double *b, double *x)
{
    double a[6][6];
    int i, j, k;
    memcpy(a, A, sizeof a);
    for (j = 0; j < 6; j++) {
        for (k = 0; k < j; k++) for (i = j; i < 6; i++) a[i][j] -= a[i][k] * a[j][k];
        a[j][j] = sqrt(a[j][j]);
        for (i = j + 1; i < 6; i++) a[i][j] /= a[j][j];
    }
    for (i = 0; i < 6; i++) {
        x[i] = b[i];
        for (k = 0; k < i; k++) x[i] -= a[i][k] * x[k];
        x[i] /= a[i][i];
    }
    for (i = 5; i >= 0; i--) {
        for (k = i + 1; k < 6; k++) x[i] -= a[k][i] * x[k];
        x[i] /= a[i][i];
    }
}

/* y = A x, of A the lower half. */
FSI_API void fsi__times6(double A[6][6], const double *x, double *y)
{
    int k, j;
    for (k = 0; k < 6; k++) for (y[k] = 0, j = 0; j < 6; j++) y[k] += (j <= k ? A[k][j] : A[j][k]) * x[j];
}

/* x.A x */
FSI_API double fsi__norm6(double A[6][6], const double *x)
{
    double y[6];
    fsi__times6(A, x, y);
    return fsi__dot6(x, y);
}

/* ---- >>faces within reach ---------------------------------------------------------------------------------------- */

FSI_API fsi_box3 fsi__path_box(fsi_vec3 a, fsi_vec3 b, fsi_real reach)
{
    return fsi_box3_inflate(fsi_box3_grow(fsi_box3_grow(fsi_box3_empty(), a), b), reach);
}

FSI_API int fsi__find_faces(const fsi__obstacles *list, fsi_box3 box, uint32_t filter, fsi__faces *out)
{
    int o, k;
    out->count = 0;
    for (o = 0; o < list->count; o++) {
        const fsi__obstacle *row = fsi__obstacle_at(list, o);
        const int room = FSI__FACES - out->count;
        int found;
        if (!(row->mask & filter) || !fsi_box3_overlap(row->mesh->box, box)) continue;
        found = fsi_mesh_query_swept_box(row->mesh, box, out->face + out->count, room);
        if (found > room) return 0;
        for (k = 0; k < found; k++) out->owner[out->count++] = o;
    }
    return 1;
}

/* The box that a face sweeps. */
static fsi_box3 fsi__swept_face_box(const fsi_mesh *mesh, int face)
{
    fsi_box3 box = fsi_box3_empty();
    int k;
    for (k = 0; k < mesh->corners; k++) {
        const int v = mesh->faces[mesh->corners * face + k];
        box = fsi_box3_grow(box, mesh->vertices[v]);
        if (mesh->moving) box = fsi_box3_grow(box, mesh->previous[v]);
    }
    return box;
}

FSI_API int fsi__own_faces(const fsi__obstacles *list, const fsi__faces *group, fsi_box3 box, uint32_t filter,
    fsi__faces *out)
{
    int k;
    if (!group) return fsi__find_faces(list, box, filter, out);
    out->count = 0;
    for (k = 0; k < group->count; k++) {
        const fsi__obstacle *o = fsi__obstacle_at(list, group->owner[k]);
        if (!(o->mask & filter) || !fsi_box3_overlap(box, fsi__swept_face_box(o->mesh, group->face[k]))) continue;
        out->face[out->count] = group->face[k];
        out->owner[out->count++] = group->owner[k];
    }
    return 1;
}

/* ---- >>placement ------------------------------------------------------------------------------------------------- */

/* The first face that the path from a to b crosses from the liquid's side; the normal points to that side. */
static fsi_mesh_hit fsi__first_hit(const fsi__obstacles *list, const fsi__faces *faces, fsi_vec3 a, fsi_vec3 b)
{
    fsi_mesh_hit best;
    int k;
    best.face = -1;
    best.t = 2;
    for (k = 0; k < faces->count; k++) {
        const int both = fsi__is_sheet(list, faces->owner[k]);
        fsi_mesh_hit hit = fsi_mesh_sweep_face(fsi__obstacle_at(list, faces->owner[k])->mesh, faces->face[k], a, b,
            both ? 0 : 1);
        if (hit.face < 0 || !(hit.t < best.t)) continue;
        best = hit;
        if (both && hit.side < 0) best.normal = fsi_v3_scale(hit.normal, -1); /* a may be behind where the sheet ends */
    }
    return best;
}

FSI_API int fsi__walls_leave_out(const fsi__walls *w, uint32_t filter, fsi_vec3 x)
{
    const fsi_box3 *d = w->box;
    if (!w->box || filter == 0) return 0;
    return !(x.x > d->lo.x && x.x < d->hi.x && x.y > d->lo.y && x.y < d->hi.y
        && (w->list->dim == 2 || (x.z > d->lo.z && x.z < d->hi.z)));
}

/* x between lo and hi, `gap` off both where there is room. */
FSI_FN fsi_real fsi__between(fsi_real x, fsi_real lo, fsi_real hi, fsi_real gap)
{
    return hi - lo > 2 * gap ? fsi_clamp(x, lo + gap, hi - gap) : (lo + hi) / 2;
}

/* The point nearest to x that lies within the box and where its walls do not push yet. */
static fsi_vec3 fsi__into_box(const fsi__walls *w, uint32_t filter, fsi_vec3 x)
{
    const fsi_box3 *d = w->box;
    const fsi_real gap = (fsi_real)w->gap;
    if (!fsi__walls_leave_out(w, filter, x)) return x;
    x.x = fsi__between(x.x, d->lo.x, d->hi.x, gap);
    x.y = fsi__between(x.y, d->lo.y, d->hi.y, gap);
    if (w->list->dim == 3) x.z = fsi__between(x.z, d->lo.z, d->hi.z, gap);
    return x;
}

FSI_API fsi_mesh_hit fsi__inside_of(const fsi__obstacle *o, fsi_vec3 x)
{
    const fsi_box3 at = fsi_box3_grow(fsi_box3_empty(), x);
    fsi_mesh_hit hit;
    hit.face = -1;
    if (o->mesh->kind != FSI_MESH_CLOSED || (!o->mesh->container && !fsi_box3_overlap(at, o->mesh->box))) return hit;
    hit = fsi_mesh_closest(o->mesh, x, FSI_REAL_MAX, -1);
    if (hit.side >= 0) hit.face = -1;
    return hit;
}

/* Is x in a solid that acts on such a particle, or outside the box? */
static int fsi__is_blocked(const fsi__walls *w, uint32_t filter, fsi_vec3 x)
{
    int k;
    if (fsi__walls_leave_out(w, filter, x)) return 1;
    for (k = 0; k < w->list->count; k++) {
        const fsi__obstacle *o = fsi__obstacle_at(w->list, k);
        if (o->given == w->domain || !(o->mask & filter)) continue;
        if (fsi__inside_of(o, x).face >= 0) return 1;
    }
    return 0;
}

/* The closest point of the closed obstacle that x is inside of, as its faces in reach tell and the whole mesh
   confirms; face -1: x is free of them. */
static fsi_mesh_hit fsi__inside_near(const fsi__obstacles *list, const fsi__faces *faces, fsi_vec3 x)
{
    fsi_mesh_hit best, hit;
    int k = 0;
    best.face = -1;
    while (k < faces->count) {
        const int owner = faces->owner[k];
        const fsi__obstacle *o = fsi__obstacle_at(list, owner);
        best.face = -1;
        for (best.t = FSI_REAL_MAX; k < faces->count && faces->owner[k] == owner; k++) {
            hit = fsi_mesh_closest_on_face(o->mesh, faces->face[k], x);
            if (hit.t < best.t) best = hit;
        }
        if (best.face >= 0 && best.side < 0) best = fsi__inside_of(o, x);
        else best.face = -1;
        if (best.face >= 0) return best;
    }
    return best;
}

/* Tries rings of points around x, growing up to the reach; 0: none is free. */
static int fsi__search_free(const fsi__walls *w, uint32_t filter, fsi_vec3 *x)
{
    int ring, k;
    for (ring = 1; ring <= 8; ring++) {
        for (k = 0; k < 26; k++) {
            const int code = k < 13 ? k : k + 1; /* skips the centre of the 3x3x3 cube */
            fsi_vec3 d = fsi_v3((fsi_real)(code % 3 - 1), (fsi_real)(code / 3 % 3 - 1), (fsi_real)(code / 9 - 1)), y;
            if (w->list->dim == 2 && code / 9 != 1) continue;
            y = fsi_v3_madd(*x, (fsi_real)(w->reach * ring / 8), fsi_v3_unit(d));
            if (fsi__is_blocked(w, filter, y)) continue;
            *x = y;
            return 1;
        }
    }
    return 0;
}

FSI_API int fsi__squeeze(const fsi__walls *w, uint32_t filter, fsi_vec3 from, fsi_vec3 wanted, fsi_vec3 *x)
{
    *x = from;
    if (!fsi__is_blocked(w, filter, from)) return FSI__PLACED;
    *x = wanted = fsi__into_box(w, filter, wanted);
    if (!fsi__is_blocked(w, filter, wanted)) return FSI__PLACED | FSI__FORCED;
    if (fsi__search_free(w, filter, x)) return FSI__PLACED | FSI__FORCED;
    *x = from = fsi__into_box(w, filter, from);
    if (fsi__search_free(w, filter, x)) return FSI__PLACED | FSI__FORCED;
    return FSI__PLACED | FSI__FORCED | FSI__PINCHED;
}

FSI_API int fsi__place(const fsi__walls *w, fsi__faces *own, uint32_t filter, fsi_vec3 from, fsi_real reach,
    fsi_vec3 *x)
{
    const fsi_real eps = (fsi_real)w->hair;
    const fsi_vec3 wanted = *x;
    fsi_box3 known = fsi__path_box(from, *x, reach);
    int round, state = FSI__FREE;
    for (round = 0; round < 8; round++) {
        fsi_mesh_hit hit = fsi__first_hit(w->list, own, from, *x);

        /* In front of the first face on its path; else out of the solid that it is in; else it is free. */
        if (hit.face >= 0) {
            const fsi_real depth = fsi_v3_dot(fsi_v3_sub(*x, hit.point), hit.normal);
            if (round >= 4 || depth >= eps) *x = fsi_v3_madd(hit.point, eps, hit.normal);
            else *x = fsi_v3_madd(*x, eps - depth, hit.normal);
        } else {
            hit = fsi__inside_near(w->list, own, *x);
            if (hit.face < 0 && (state == FSI__FREE || !fsi__is_blocked(w, filter, *x))) return state;
            if (hit.face < 0) break;
            *x = fsi_v3_madd(hit.point, eps, hit.normal);
            state |= FSI__FORCED;
        }
        state |= FSI__PLACED;

        /* Other faces, where that is farther than was looked. */
        if (fsi_box3_overlap(known, fsi_box3_grow(fsi_box3_empty(), *x))) continue;
        known = fsi__path_box(from, *x, reach);
        if (!fsi__find_faces(w->list, known, filter, own)) break;
    }
    *x = wanted;
    return fsi__squeeze(w, filter, from, wanted, x);
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
