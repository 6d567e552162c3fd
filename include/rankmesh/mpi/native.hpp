// SPDX-License-Identifier: BSD-3-Clause
// Includes <mpi.h> without the deprecated C++ bindings. No other header includes <mpi.h>.
#pragma once

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>
