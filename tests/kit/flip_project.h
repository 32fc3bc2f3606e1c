/* flip_project.h - fsi_flip.h with another solver of the pressure in its place.
   SPDX-License-Identifier: MIT

   Include it before any other header of fsi, with FSI_IMPLEMENTATION or FSI_FLIP_IMPLEMENTATION defined. */
#ifndef FSI_FLIP_PROJECT_H
#define FSI_FLIP_PROJECT_H

#include "../../fsi_pressure.h"
typedef fsi_status project_fn(fsi_pressure *solver, fsi_pressure_flow *flow);
static project_fn project;
#define fsi_pressure_project project /* fsi_flip.h calls it */
#include "../../fsi_flip.h"
#undef fsi_pressure_project

static project_fn *project_instead; /* NULL: fsi_pressure_project */

static fsi_status project(fsi_pressure *solver, fsi_pressure_flow *flow)
{
    return project_instead ? project_instead(solver, flow) : fsi_pressure_project(solver, flow);
}

#endif /* FSI_FLIP_PROJECT_H */
