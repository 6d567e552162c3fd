// SPDX-License-Identifier: BSD-3-Clause
// Reads what the environment variables of a launcher say about the job.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// Reads an environment variable. The result is empty if the variable is not set.
using VariableReader = std::function<std::optional<std::string>(const char* name)>;

/// Reads the environment with which this process was started. Later, Open MPI itself sets the
/// variables of a launcher if it initialises a process that no launcher has started.
RANKMESH_API std::optional<std::string> variable_at_start(const char* name);

/// A launcher that does not belong to the MPI library of the program. Such a launcher starts
/// several processes, but each of them is alone in its MPI world.
struct LauncherMismatch {
  std::string message;  ///< What is wrong, with the variable that says so.
  std::string hint;     ///< How to start the program instead.
};

/// Compares the size of the MPI world with what the launcher says in the environment. Returns a
/// mismatch if the world has one rank although the launcher started several processes. Local.
///
/// The variables of launchers that start ranks directly (OMPI_COMM_WORLD_SIZE, PMI_SIZE, PMIX_SIZE,
/// PMIX_RANK) are examined first. SLURM_STEP_NUM_TASKS counts only if none of those
/// gives a size: if mpirun starts its own daemons with srun, the ranks inherit this variable from
/// the daemons.
/// @param world_size   The number of ranks in MPI_COMM_WORLD.
/// @param mpi_library  The text of MPI_Get_library_version(), from which the hint names a launcher;
///                     may be empty.
RANKMESH_API std::optional<LauncherMismatch> launcher_mismatch(
    std::int64_t world_size, std::string_view mpi_library,
    const VariableReader& read = variable_at_start);

/// Checks, before MPI is initialised, whether the program was started by an srun that does not
/// offer what Open MPI needs. Without PMIx, MPI_Init of Open MPI usually ends the process, and
/// rankmesh cannot report anything afterwards. Returns nothing if the environment shows no such
/// problem. Local.
/// @param mpi_library  The text of MPI_Get_library_version(), which may be called before MPI_Init.
RANKMESH_API std::optional<LauncherMismatch> srun_without_pmix(
    std::string_view mpi_library, const VariableReader& read = variable_at_start);

/// Returns what the launcher does when a rank dies, if this ends the job although the other ranks
/// could go on, and how to start the program instead. Nothing if the job goes on, or if there is no
/// launcher. docs/surviving.md describes what each launcher does. Local.
/// @param mpi_library  The text of MPI_Get_library_version().
/// @param spans_nodes  Whether the ranks are on several nodes.
RANKMESH_API std::optional<LauncherMismatch> end_by_death(
    std::string_view mpi_library, bool spans_nodes, const VariableReader& read = variable_at_start);

/// Returns the name and the version of an MPI library, for example "Open MPI v4.1.4" or "MPICH
/// 4.0.2".
/// @param mpi_library  The text of MPI_Get_library_version().
RANKMESH_API std::string short_mpi_name(std::string_view mpi_library);

/// Returns whether a launcher started this process as one of the processes of a job. Local.
RANKMESH_API bool is_launched();
/// Returns the number that the launcher gave to this process, or nothing if there is no launcher.
/// Local.
RANKMESH_API std::optional<std::int64_t> launcher_rank();

/// Returns the number that the launcher has given to this process among the processes that it has
/// started on the node, or nothing if the launcher does not state this number. Local.
///
/// The variables of Open MPI, MVAPICH2, the launchers of MPICH and Intel MPI, PALS and Flux are
/// examined in this order. SLURM_LOCALID counts only if SLURM_PROCID is the rank that PMI gives
/// (PMIX_RANK, PMI_RANK), because Slurm also sets its variables for programs that a batch script
/// starts itself.
RANKMESH_API std::optional<int> launcher_local_rank(const VariableReader& read);

}  // namespace rankmesh
