/* liquids.h - liquids made of particles, as pictures show them.
   SPDX-License-Identifier: MIT

   ex_particle_surface makes what ex_draw_particles needs; fsi_surface_destroy frees it. */
#ifndef FSI_KIT_LIQUIDS_H
#define FSI_KIT_LIQUIDS_H

#include "scene.h"
#include "../../fsi_surface.h"

EX_FN fsi_surface *ex_particle_surface(ex_app *app, double spacing)
{
    fsi_surface_desc d = fsi_surface_default_desc();
    fsi_surface *surface;
    d.context = &app->context;
    d.spacing = (fsi_real)spacing;
    ex_check(app, fsi_surface_create(&surface, &d));
    return surface;
}

/* Draws the surface of a liquid with particles at x. */
EX_FN void ex_draw_particles(ex_app *app, ex_scene *scene, fsi_surface *surface, const fsi_vec3 *x, int count)
{
    ex_check(app, fsi_surface_update(surface, x, count, NULL));
    ex_draw_surface(scene, surface->vertices, surface->normals, surface->vertex_count, surface->elements,
                    surface->element_count);
}

#endif /* FSI_KIT_LIQUIDS_H */
