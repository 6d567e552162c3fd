// SPDX-License-Identifier: BSD-3-Clause
// Includes <mpi.h> without the deprecated C++ bindings. No other header includes <mpi.h>. A program
// does not compile with the header of an MPI library other than the one with which rankmesh was
// built. The types of MPI differ between libraries, so the program would not link.
#pragma once

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include "rankmesh/version.hpp"

#if RANKMESH_MPI_IS_OPENMPI && !defined(OMPI_MAJOR_VERSION)
#error \
    "rankmesh was built with Open MPI, but this <mpi.h> belongs to another MPI library: compile with the flags of pkg-config rankmesh, or build rankmesh with the other library (-Dmpi_name)"
#elif RANKMESH_MPI_IS_MPICH && !defined(MPICH_VERSION)
#error \
    "rankmesh was built with MPICH, but this <mpi.h> belongs to another MPI library: compile with the flags of pkg-config rankmesh, or build rankmesh with the other library (-Dmpi_name)"
#elif RANKMESH_MPI_IS_ABI && \
    (!defined(MPI_ABI_VERSION) || defined(OMPI_MAJOR_VERSION) || defined(MPICH_VERSION))
#error \
    "rankmesh was built for the standard ABI of MPI, but this <mpi.h> has another one: compile with mpicc_abi or with the flags of pkg-config rankmesh, or build rankmesh for this library (-Dmpi_name)"
#endif
