/* kit.h - what all examples and studies share: command line, progress, threads, software renderer, plots, meshes.
   SPDX-License-Identifier: MIT

   Include it first in a program, before any other header: host.h must come before the system's headers. Everything is
   static; any number of files may include it. A program reads like this:

      #define FSI_IMPLEMENTATION
      #include "kit/kit.h"

      int main(int argc, char **argv)
      {
          ex_app app;
          ex_scene scene;
          double dt = 0.005;
          int frame;
          ex_init(&app, "drop", "A drop falls into a pool.");
          app.res = 32;                                                    // defaults of --res and --frames
          app.frames = 100;
          ex_real(&app, "dt", &dt, 1e-5, 0.1, "time step [s]");            // a switch of its own
          if (!ex_begin(&app, argc, argv)) return app.exit_code;           // --help, or a switch refused
          scene = ex_scene_begin(&app);
          ex_look_at_box(&scene, box, 30, 20);
          for (frame = 0; frame < app.frames; frame++) {
              ex_check(&app, fsi_..._step(simulator, ...));                // made with &app.context
              if (app.images) {                                            // not after --no-images
                  ex_draw_spheres(&scene, x, count, radius, NULL, 0x2277cc);  // or ex_draw_surface: as water
                  ex_draw_mesh(&scene, vertices, NULL, vertex_count, triangles, triangle_count, 0xd9a15b);
                  ex_save_scene(&app, &scene, frame, "%.2f s", time);      // out/drop_0000.png ...; empties the scene
              }
              ex_progress(&app, frame + 1);
          }
          ex_scene_end(&scene);
          ex_figure(&app, "lost", "%.0f", lost);
          return ex_end(&app);                                             // the line of key=value figures
      }

   WHERE IS WHAT
      host.h      clocks, memory, folders, threads: all that is more than C99
      app.h       switches, context, progress, the line of key=value figures
      image.h     lines, discs and texts on a picture; colours that stand for numbers
      files.h     pictures as PNG, meshes and particles as PLY or VTP
      plot.h      line charts
      mesh.h      boxes, spheres, rings, knots, lattices, files
      scene.h     camera, light, what is drawn
      raster.h    the z-buffer
      render.h    shadows, liquids, the picture
      solids.h    closed meshes that fsi knows
      liquids.h   surfaces of particles
   Not included here, as few programs need them: shapes.h (solids of outlines), marin.h (an experiment), and for each
   simulator what its programs draw and count: NAME_tally.h, NAME_look.h; sph_crates.h and floater.h: bodies that float.
   Colours are 0xRRGGBB as seen on the screen (sRGB). */
#ifndef FSI_KIT_H
#define FSI_KIT_H

/* A program of one file: what it does not call takes no time to compile. */
#if defined(FSI_IMPLEMENTATION) && !defined(FSI_IMPLEMENTATION_DONE)
#define FSI_STATIC
#endif

#include "host.h"
#include "app.h"
#include "image.h"
#include "files.h"
#include "plot.h"
#include "mesh.h"
#include "scene.h"
#include "raster.h"
#include "render.h"
#include "solids.h"
#include "liquids.h"

#endif /* FSI_KIT_H */
