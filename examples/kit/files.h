/* files.h - what a run writes into its folder: pictures as PNG, meshes and particles as PLY or VTP.
   SPDX-License-Identifier: MIT

   ex_save_png and ex_save_frame write pictures; ex_write_mesh ex_write_particles ex_write_triangles write the state of
   a frame when --write asks for it. */
#ifndef FSI_KIT_FILES_H
#define FSI_KIT_FILES_H

#include "app.h"
#include "image.h"
#include "../../fsi_io.h"

/* Writes a PNG file; ends the program when it cannot. */
EX_FN void ex_save_png(ex_app *app, const ex_image *im, const char *path)
{
    ex_check(app, fsi_io_write_png(fsi_io_to_file(&app->context, path), im->rgb, im->width, im->height, 3, 0));
}

/* Writes OUT/NAME_0042.png, unless --no-images. */
EX_FN void ex_save_frame(ex_app *app, const ex_image *im, int frame)
{
    char path[600];
    if (!app->images) return;
    snprintf(path, sizeof path, "%s/%s_%04d.png", app->out, app->name, frame);
    ex_save_png(app, im, path);
}

/* With --write: OUT/NAME_PART_0042.ply or .vtp, the latter also listed with its time in OUT/NAME_PART.pvd. */
EX_FN void ex_write_mesh(ex_app *app, const char *part, int frame, const fsi_io_mesh *mesh)
{
    char path[600], list[600];
    fsi_io_out out;
    const char *kind = app->write == EX_WRITE_PLY ? "ply" : "vtp";
    if (app->write == EX_WRITE_NONE) return;
    snprintf(path, sizeof path, "%s/%s_%s_%04d.%s", app->out, app->name, part, frame, kind);
    out = fsi_io_to_file(&app->context, path);
    if (app->write == EX_WRITE_PLY) ex_check(app, fsi_io_write_ply(out, mesh, FSI_IO_SINGLE));
    else {
        ex_check(app, fsi_io_write_vtp(out, mesh, FSI_IO_SINGLE));
        snprintf(list, sizeof list, "%s/%s_%s.pvd", app->out, app->name, part);
        ex_check(app, fsi_io_append_pvd(&app->context, list, frame, app->sim_seconds, path + strlen(app->out) + 1));
    }
}

/* The same for particles with velocities v (may be NULL). */
EX_FN void ex_write_particles(ex_app *app, const char *part, int frame, const fsi_vec3 *x, const fsi_vec3 *v, int count)
{
    fsi_io_mesh mesh = fsi_io_default_mesh();
    fsi_io_attribute velocity;
    velocity.name = "v";
    velocity.type = FSI_IO_REAL;
    velocity.components = 3;
    velocity.stride = 0;
    velocity.data = v;
    mesh.vertices = x;
    mesh.vertex_count = count;
    mesh.attributes = &velocity;
    mesh.attribute_count = v ? 1 : 0;
    ex_write_mesh(app, part, frame, &mesh);
}

/* The same for a surface of triangles. */
EX_FN void ex_write_triangles(ex_app *app, const char *part, int frame, const fsi_vec3 *vertices, int vertex_count,
                              const int *triangles, int triangle_count)
{
    fsi_io_mesh mesh = fsi_io_default_mesh();
    mesh.vertices = vertices;
    mesh.vertex_count = vertex_count;
    mesh.triangles = triangles;
    mesh.triangle_count = triangle_count;
    ex_write_mesh(app, part, frame, &mesh);
}

#endif /* FSI_KIT_FILES_H */
