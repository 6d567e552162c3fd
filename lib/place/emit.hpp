// SPDX-License-Identifier: BSD-3-Clause
// Writes files that make a launcher put ranks into the slots of an arrangement.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/machine/machine.hpp"
#include "rankmesh/place/traffic.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {

/// The program that reads the file. The comments show the option or variable that names the file.
enum class EmitFormat : std::uint8_t {
  openmpi,       ///< a rank file of Open MPI 4: mpirun --rankfile FILE
  openmpi5,      ///< a rank file of Open MPI 5: mpirun --map-by rankfile:FILE=FILE
  openmpi_seq,   ///< one host per rank: mpirun --hostfile FILE --map-by seq
  mpich,         ///< one host per rank: mpiexec -f FILE
  slurm,         ///< one host per rank: SLURM_HOSTFILE=FILE srun --distribution=arbitrary
  cray,          ///< MPICH_RANK_ORDER for MPICH_RANK_REORDER_METHOD=3
  torchrun,      ///< the command of each host, for launchers that start one command per host
  cuda_devices,  ///< CUDA_VISIBLE_DEVICES of each rank, for a script that starts the ranks
  mesh_order,    ///< the line `rank_order` of a mesh file; the launcher needs no change
};

/// Returns the format with this name, for example `openmpi-seq`, or nothing if there is none.
[[nodiscard]] std::optional<EmitFormat> emit_format(std::string_view name);

/// Returns the names of all formats.
[[nodiscard]] std::vector<std::string> emit_format_names();

/// Returns the contents of the file. With all formats except `mesh_order`, the launcher starts each
/// rank in its slot. With `mesh_order`, the launcher starts the processes as before, and each
/// process takes the place in the mesh that is assigned to its slot.
/// @param slots  the slot of each rank (Arrangement::slots), for `mesh_order` those of
/// slots_in_mesh_order().
/// @throws UsageError if a slot is repeated or does not exist, if the format lists GPUs and the
/// machine has none, or if the format is `torchrun` and the ranks of a node are not consecutive.
[[nodiscard]] std::string emit(EmitFormat format, const Machine& machine,
                               std::span<const std::int64_t> slots);

/// Returns the slots of the ranks in the order of the mesh, as emit() needs them for `mesh_order`:
/// the line replaces the `rank_order` that the mesh file has.
/// @param traffic  what the slots were chosen for; empty for the present order.
/// @throws UsageError if no line `rank_order` puts the groups that send into these slots, because
/// the file gives their ranks in another way.
[[nodiscard]] std::vector<std::int64_t> slots_in_mesh_order(const MeshSpec& spec,
                                                            std::span<const FamilyTraffic> traffic,
                                                            std::span<const std::int64_t> slots);

/// Returns whether the file names hosts.
[[nodiscard]] bool names_hosts(EmitFormat format);

/// Returns the command line that uses the file.
[[nodiscard]] std::string emit_usage(EmitFormat format, std::string_view path, std::int64_t ranks);

}  // namespace rankmesh
