/* sph_crates.h - the examples with cubes in a liquid of fsi_sph.h, whoever owns them: cubes as COUPLED bodies, and the
   picture.
   SPDX-License-Identifier: MIT

   Include it after kit.h. ex_crate_add makes a cube that stands at the origin; set body.pose, then
   fsi_sph_teleport_obstacle. */
#ifndef FSI_KIT_SPH_CRATES_H
#define FSI_KIT_SPH_CRATES_H

#include "kit.h"
#include "../../fsi_sph.h"

typedef struct ex_crate {
    fsi_body body;
    fsi_mesh *mesh;
    int id;        /* of the obstacle */
    double side, density;
    uint32_t rgb;
} ex_crate;

EX_FN void ex_crate_add(ex_app *app, fsi_sph *s, ex_crate *c, double side, double density, uint32_t rgb)
{
    fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
    fsi_mass_properties mass;
    ex_mesh m = ex_box(ex_box3(-side / 2, -side / 2, -side / 2, side / 2, side / 2, side / 2), 0);
    c->mesh = ex_solid(app, &m, FSI_MESH_CLOSED);
    ex_check(app, fsi_mesh_mass(c->mesh, (fsi_real)density, 0, &mass));
    c->body = fsi_body_from_mass(&mass);
    c->rgb = rgb;
    c->side = side;
    c->density = density;
    o.mesh = c->mesh;
    o.body = &c->body;
    ex_check(app, fsi_sph_add_obstacle(s, &o, &c->id));
}

/* The share of a crate that lies below a level: points in it, counted. */
EX_FN double ex_crate_below(const ex_crate *c, double level)
{
    int i, below = 0, n = 24;
    for (i = 0; i < n * n * n; i++) {
        fsi_vec3 local = fsi_v3(i % n - 0.5 * (n - 1), i / n % n - 0.5 * (n - 1), i / n / n - 0.5 * (n - 1));
        below += fsi_pose_point(c->body.pose, fsi_v3_scale(local, c->side / n)).z < level;
    }
    return (double)below / (n * n * n);
}

/* Sums over the calls of ex_crates_watch of a crate's share below the mean water level, over the share that its weight
   asks for. Start from zeros. */
typedef struct ex_crate_shares {
    double sum[8];
    int count;
} ex_crate_shares;

/* area: of the tank, of water. */
EX_FN void ex_crates_watch(ex_crate_shares *t, const fsi_sph *s, const ex_crate *c, int count, double area)
{
    double volume = s->count * s->particle_volume;
    int k;
    for (k = 0; k < count; k++) volume += fmin(c[k].density / 1000, 1) * c[k].side * c[k].side * c[k].side;
    for (k = 0; k < count; k++) t->sum[k] += ex_crate_below(&c[k], volume / area) / (c[k].density / 1000);
    t->count++;
}

/* share_DENSITY= of the first crates, means over what was watched. */
EX_FN void ex_crates_figures(ex_app *app, const ex_crate_shares *t, const ex_crate *c, int count)
{
    char key[32];
    int k;
    for (k = 0; k < count && t->count > 0; k++) {
        snprintf(key, sizeof key, "share_%.0f", c[k].density);
        ex_figure(app, key, "%.3f", t->sum[k] / t->count);
    }
}

/* Renders water, crates, the scene's box and the time. */
EX_FN void ex_crates_picture(ex_app *app, ex_scene *scene, fsi_surface *skin, const fsi_sph *s, const ex_crate *crates,
                             int count, int frame)
{
    int k;
    ex_draw_particles(app, scene, skin, s->position, s->count);
    for (k = 0; k < count; k++)
        ex_draw_body(scene, crates[k].mesh, fsi_default_body().pose, crates[k].body.pose, crates[k].rgb);
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    ex_save_scene(app, scene, frame, "%.2f s", s->time);
}

#endif /* FSI_KIT_SPH_CRATES_H */
