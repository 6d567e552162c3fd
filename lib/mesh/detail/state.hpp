// SPDX-License-Identifier: BSD-3-Clause
// The parts of a mesh.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "communicators.hpp"
#include "connection_plan.hpp"
#include "device_backend.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "mpi/detail/unfinished.hpp"
#include "program_transports.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/mesh/options.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "rendezvous.hpp"
#include "shared_memory_backend.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Owns the parts of a mesh. open_mesh() constructs it once all parts are complete; only
/// dynamic groups and the devices of lazy families are added later.
struct MeshState {
  ~MeshState();

  const std::shared_ptr<const MeshPlan> plan;
  const MeshSpec spec;  ///< What the program has described; the plan of a later mesh is smaller.
  const MeshOptions options;
  const std::shared_ptr<ControlPlane> control;
  const std::unique_ptr<SharedMemoryBackend> shared;
  std::unique_ptr<DeviceBackend> device;  ///< Null if the mesh has no devices.
  const std::shared_ptr<MeshRuntime> runtime;
  /// In the order in which they are created and freed.
  std::vector<std::shared_ptr<Connection>> connections;
  const std::map<std::string, std::unique_ptr<GroupCoordinator>, std::less<>> named;
  std::vector<std::shared_ptr<GroupCoordinator>> dynamic{};
  /// The coordinators of all ranks and of all ranks of a grid that the program has asked for.
  std::map<std::string, std::shared_ptr<GroupCoordinator>, std::less<>> worlds{};
  std::vector<std::shared_ptr<GroupCoordinator>>
      closed_worlds{};      ///< References to them stay valid.
  Rendezvous rendezvous{};  ///< For dynamic groups and for open().
  /// The exceptions that unwound the stack when the mesh was opened.
  const int exceptions = std::uncaught_exceptions();
  std::vector<bool> has_split_devices;  ///< Per family: whether its NCCL communicators were split.
  mpi::OpenMark mark;                   ///< Until close(), MPI is not finalised.
  const pid_t process = ::getpid();     ///< A child process of it is not a rank.

  [[nodiscard]] Deadline deadline() const { return control->deadline(); }
  /// See ControlPlane::calls_of.
  [[nodiscard]] std::optional<std::uint64_t> calls_of(std::uint64_t scope) const;
  /// Marks the mesh as closed; later operations throw ClosedError.
  void mark_closed();

 private:
  void end_on_peers();
  void tell_peers() const;
  void leak_devices();
};

/// Makes the connection of a group on its communicator, with all its transports for host memory.
/// Local.
/// @param own  The transports of the program; see open_program_transports().
std::shared_ptr<Connection> connect(GroupDescription group, GroupCommunicator comm,
                                    const MeshOptions& options, const ControlPlane& control,
                                    SharedTransport shared, ProgramTransports own,
                                    Recordings recordings);

/// The mesh of the survivors, as it follows from that before it.
struct NextMesh {
  MeshPlan plan;
  std::optional<std::int64_t> step;  ///< That all survivors have committed.
  /// Of the survivors. The mesh is opened on it, and then keeps it for the mesh after it.
  mpi::Communicator reserve;
};

/// Opens a mesh: agreement, control communicator, node discovery, then the groups.
/// Collective over `world`; blocks.
/// @param description  The text of the mesh, for messages.
/// @param next  Replaces the plan of the description; null if the program opens the mesh.
std::unique_ptr<MeshState> open_mesh(MPI_Comm world, MeshOptions options,
                                     const std::string& description,
                                     const std::function<MeshSpec()>& parse,
                                     NextMesh* next = nullptr);

/// Opens the device transports of the groups of these families, after all participants have
/// compared their arguments. Collective over the participants: all ranks of the groups, and of
/// those from which they are split; blocks.
/// @param connections  Of this rank, in the order of the plan.
/// @param asked        Per family: whether to open it.
/// @param has_split    Per family: whether it was split before; says afterwards that it is.
void open_devices(DeviceBackend& backend, const MeshPlan& plan, Rank rank, Connections connections,
                  const std::vector<bool>& asked, std::vector<bool>& has_split,
                  const Participants& participants);

}  // namespace rankmesh::detail
