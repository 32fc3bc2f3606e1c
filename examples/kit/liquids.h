/* liquids.h - liquids made of particles, as pictures show them.
   SPDX-License-Identifier: MIT

   ex_particle_surface makes what ex_draw_particles needs, ex_speed_surface what ex_draw_speeds needs;
   fsi_surface_destroy frees it. */
#ifndef FSI_KIT_LIQUIDS_H
#define FSI_KIT_LIQUIDS_H

#include "scene.h"
#include "../../fsi_surface.h"

static fsi_surface *ex__surface(ex_app *app, double spacing, int attributes)
{
    fsi_surface_desc d = fsi_surface_default_desc();
    fsi_surface *surface;
    d.context = &app->context;
    d.spacing = (fsi_real)spacing;
    d.attribute_count = attributes;
    ex_check(app, fsi_surface_create(&surface, &d));
    return surface;
}
EX_FN fsi_surface *ex_particle_surface(ex_app *app, double spacing) { return ex__surface(app, spacing, 0); }
EX_FN fsi_surface *ex_speed_surface(ex_app *app, double spacing) { return ex__surface(app, spacing, 1); }

/* Draws the surface of a liquid with particles at x. */
EX_FN void ex_draw_particles(ex_app *app, ex_scene *scene, fsi_surface *surface, const fsi_vec3 *x, int count)
{
    ex_check(app, fsi_surface_update(surface, x, count, NULL));
    ex_draw_surface(scene, surface->vertices, surface->normals, surface->vertex_count, surface->elements,
                    surface->element_count);
}

/* Draws the same surface opaque, in the colour of the speed of the particles at each vertex (fast: the brightest
   [m/s]). */
EX_FN void ex_draw_speeds(ex_app *app, ex_scene *scene, fsi_surface *surface, const fsi_vec3 *x, const fsi_vec3 *v,
                          int count, double fast)
{
    fsi_real *speed = (fsi_real *)ex_alloc(NULL, (size_t)count, sizeof *speed);
    uint32_t *rgb;
    int i;
    for (i = 0; i < count; i++) speed[i] = fsi_v3_norm(v[i]);
    ex_check(app, fsi_surface_update(surface, x, count, speed));
    rgb = (uint32_t *)ex_alloc(NULL, (size_t)surface->vertex_count, sizeof *rgb);
    ex_map_colors(EX_MAP_WATER, surface->attributes, surface->vertex_count, 0, fast, rgb);
    ex_draw_colored_mesh(scene, surface->vertices, surface->normals, surface->vertex_count, surface->elements,
                         surface->element_count, rgb);
    free(speed);
    free(rgb);
}

#endif /* FSI_KIT_LIQUIDS_H */
