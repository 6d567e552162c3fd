// SPDX-License-Identifier: BSD-3-Clause
// Files that make a launcher put ranks into the slots of an arrangement.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/machine/machine.hpp"

namespace rankmesh {

/// What reads the file. The comment gives the option or the variable that names it.
enum class EmitFormat : std::uint8_t {
  openmpi,       ///< a rank file of Open MPI 4: mpirun --rankfile FILE
  openmpi5,      ///< a rank file of Open MPI 5: mpirun --map-by rankfile:FILE=FILE
  openmpi_seq,   ///< one host per rank: mpirun --hostfile FILE --map-by seq
  mpich,         ///< one host per rank: mpiexec -f FILE
  slurm,         ///< one host per rank: SLURM_HOSTFILE=FILE srun --distribution=arbitrary
  cray,          ///< MPICH_RANK_ORDER for MPICH_RANK_REORDER_METHOD=3
  torchrun,      ///< the command of each host, for launchers that start one command per host
  cuda_devices,  ///< CUDA_VISIBLE_DEVICES of each rank, for a script that starts the ranks
  mesh_order,    ///< the line `rank_order` of a mesh file, for a launcher that stays as it is
};

/// Returns the format of this name, for example `openmpi-seq`, or nothing.
[[nodiscard]] RANKMESH_API std::optional<EmitFormat> emit_format(std::string_view name);

/// Returns the names of all formats.
[[nodiscard]] RANKMESH_API std::vector<std::string> emit_format_names();

/// Returns the file. All formats but `mesh_order` move the ranks to their slots; `mesh_order`
/// leaves the processes where they are and gives each of them the place in the mesh that belongs
/// there.
/// @param slots  the slot of each rank (Arrangement::slots).
/// @throws UsageError if a slot is repeated or does not exist, if the machine has no GPUs to be
/// listed, or for `torchrun` if the ranks of a node are not consecutive.
[[nodiscard]] RANKMESH_API std::string emit(EmitFormat format, const Machine& machine,
                                            std::span<const std::int64_t> slots);

/// Returns the command line that uses the file.
[[nodiscard]] RANKMESH_API std::string emit_usage(EmitFormat format, std::string_view path,
                                                  std::int64_t ranks);

}  // namespace rankmesh
