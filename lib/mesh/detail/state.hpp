// What a mesh holds.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device_side.hpp"
#include "meeting.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/in_flight.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mesh/options.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "shared_side.hpp"

namespace rankmesh::detail {

struct MeshState {
  MeshState(MeshPlan p, MeshOptions o, Deadline::Duration t)
      : plan{std::move(p)}, options{std::move(o)}, timeout{t} {
    services->timeout = t;
  }
  ~MeshState() {
    abandon_in_flight(*services);  // which refer to the services in turn
    mark_closed();  // for groups that the program still holds: what they stand on goes now
  }
  MeshState(const MeshState&) = delete;
  MeshState& operator=(const MeshState&) = delete;

  MeshPlan plan;
  MeshOptions options;
  Deadline::Duration timeout;
  mpi::Communicator control;  ///< rankmesh's own messages; never the user's
  Placement placement{{}};
  std::shared_ptr<MeshServices> services = std::make_shared<MeshServices>();
  std::vector<std::shared_ptr<Channel>>
      channels;  ///< in the order of creation, which is the order of freeing
  std::map<std::string, std::unique_ptr<GroupCoordinator>, std::less<>>
      named;  ///< duplicates ones as name[key]
  std::vector<std::shared_ptr<GroupCoordinator>> dynamic;
  Meeting meeting;
  std::unique_ptr<SharedSide> shared;
  std::unique_ptr<DeviceSide> device;  ///< null where there is none

  [[nodiscard]] Deadline deadline() const { return Deadline{timeout}; }
  void log(LogLevel level, const std::string& message) const;
  /// No operation may be issued any more.
  void mark_closed() {
    services->closed = true;
    for (const auto& channel : channels) channel->retire("the mesh is closed");
  }
  /// Keeps the communicator and gives it its transport. An empty `owned` is a group of one, or an
  /// adopted one. `identity` is the same on all members and of no other channel, `name` is for
  /// people.
  std::shared_ptr<Channel> add_channel(std::string identity, std::string name, RankSet ranks,
                                       mpi::Communicator owned, mpi::CommunicatorView adopted = {});
  /// Of the first name that it serves; the default for dynamic groups.
  [[nodiscard]] const GroupOptions& options_of(const Channel& channel) const;
};

/// How an duplicates communicator is called.
std::string duplicate_name(std::string_view name, std::string_view key);

/// Agreement, control communicator, node discovery, then the names. Collective over `world`.
/// @param description  the mesh in words, for messages.
std::unique_ptr<MeshState> open_mesh(MPI_Comm world, MeshOptions options,
                                     const std::string& description,
                                     const std::function<MeshSpec()>& parse);

}  // namespace rankmesh::detail
