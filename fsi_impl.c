/* fsi_impl.c - the bodies of all fsi headers, for those who rather add a source file than define a macro.
   SPDX-License-Identifier: MIT */
#define FSI_IMPLEMENTATION
#include "fsi.h"
#include "fsi_barrier.h"
#include "fsi_couple.h"
#include "fsi_grid.h"
#include "fsi_io.h"
#include "fsi_krylov.h"
#include "fsi_levelset.h"
#include "fsi_mesh.h"
#include "fsi_particles.h"
#include "fsi_rigid.h"
#include "fsi_shell.h"
#include "fsi_solve.h"
#include "fsi_source.h"
#include "fsi_sph.h"
#include "fsi_surface.h"
#include "fsi_wcsph.h"
