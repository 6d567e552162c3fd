// SPDX-License-Identifier: BSD-3-Clause
// The transports that the program adds to a mesh.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "group/detail/connection.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mesh/options.hpp"
#include "rankmesh/transport/transport_factory.hpp"
#include "rankmesh/wait/agreement.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// The transports of the program for one group.
struct ProgramTransports {
  /// In the order of MeshOptions::transports; null where the factory returned null. Empty if the
  /// factories were not called.
  std::vector<std::unique_ptr<Transport>> list{};
  std::string why_not{};  ///< Why they were not called.
};

/// Returns the transports that every mesh of this process gets in addition to those of its options.
/// Tests use it to run on another transport.
RANKMESH_API std::map<std::string, TransportFactory>& transports_of_every_mesh();

/// Checks the names of the transports, and that each has a factory.
/// @throws UsageError
void check_transports(const MeshOptions& options);
/// Returns the names of the transports, in the order in which records number them.
std::vector<std::string> names_of_transports(const MeshOptions& options);

/// Returns what the factories learn about a group of this rank.
TransportGroup transport_group(const GroupDescription& group, const mpi::CommunicatorView& comm,
                               const ControlPlane& control, const MeshOptions& options);

/// Calls the factories for the groups of this rank. Collective over the participants, which include
/// all members of the groups; blocks. Does nothing if the program adds no transports.
/// @throws MismatchError on all participants if a factory throws on one of them, or if it returns
/// null on some members of a group only.
std::vector<ProgramTransports> open_program_transports(const MeshOptions& options,
                                                       const std::vector<TransportGroup>& groups,
                                                       const Participants& participants);

/// Adds the transports to those of a group, which has a guard of collectives.
void add_program_transports(HostTransports& transports, ProgramTransports own,
                            const mpi::CommunicatorView& comm, const MeshOptions& options);

}  // namespace rankmesh::detail
