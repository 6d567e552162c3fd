// SPDX-License-Identifier: BSD-3-Clause
// The components of Open MPI, which stay loaded.
#pragma once

namespace rankmesh::mpi {

/// Keeps the components that Open MPI has loaded in memory until the process ends. Local.
///
/// MPI_Finalize of Open MPI 4 unloads the component mca_pmix_ext3x while a thread of its own may
/// still be about to call it: the launcher that answers late, on a busy machine, ends its
/// connection at that moment. The rank then ends by SIGSEGV, after all its work. Such ends are
/// reported in open-mpi/ompi#10117.
void keep_components_loaded() noexcept;

}  // namespace rankmesh::mpi
