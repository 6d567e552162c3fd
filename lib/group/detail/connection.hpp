// One communicator with its transports.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/batch_place.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "transport/detail/device_transport.hpp"

namespace rankmesh::detail {

/// What the plan and the placement say about a group that this rank is in.
struct GroupDescription {
  std::string identity;  ///< The same on all members, and of no other group of the mesh.
  std::string name;      ///< For messages: of the first family, or of the dynamic group.
  /// The plan's families that this group belongs to, in plan order; empty for dynamic groups.
  std::vector<std::size_t> families;
  std::string duplicate_key;        ///< Of a further communicator of the same group; else empty.
  RankSet ranks;                    ///< Of the mesh.
  Deadline::Duration timeout{600};  ///< Of waits for the group's operations.
  RankInGroup leader{};             ///< The member that makes the NCCL unique ID.
  std::int32_t nodes = 1;           ///< How many nodes the members are on.
  BatchPlace place;                 ///< Where its operations stand in a batch.
};

/// A group's transports for host memory, in no particular order: routes choose. The same on all
/// members. Groups of one have `local` alone, others `mpi` at least.
struct HostTransports {
  std::vector<std::unique_ptr<Transport>> list;
  std::map<std::string, std::string, std::less<>> absent;  ///< Transports that it lacks, and why.

  /// Returns the transport of that name, or null.
  [[nodiscard]] Transport* find(std::string_view name) const;
};

/// One communicator with its transports. Families whose groups are equal share a connection, so it
/// is one ordering domain. Coordinators hold it; it knows neither them nor the mesh.
class RANKMESH_API Connection {
 public:
  /// @param owned   The group's communicator; empty for groups of one and for adopted ones.
  /// @param comm    What the group communicates on: `owned`'s view, MPI_COMM_SELF, or the user's.
  /// @param device  Null where the group has no device transport (yet, for a lazy family).
  Connection(GroupDescription group, mpi::Communicator owned, mpi::CommunicatorView comm,
             HostTransports host, std::unique_ptr<DeviceTransport> device);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const GroupDescription group;

  [[nodiscard]] std::int64_t size() const { return size_; }
  /// An empty view once the connection is closed.
  [[nodiscard]] const mpi::CommunicatorView& comm() const { return comm_; }
  [[nodiscard]] bool owns_communicator() const { return static_cast<bool>(owned_); }
  [[nodiscard]] const HostTransports& host() const { return host_; }
  [[nodiscard]] DeviceTransport* device() const { return device_.get(); }
  /// Gives a lazy family's group its device transport.
  void open_device(std::unique_ptr<DeviceTransport> device) { device_ = std::move(device); }
  void close_device() { device_.reset(); }

  /// Whether operations may be issued. The first thing that a call looks at.
  [[nodiscard]] bool is_usable() const { return why_unusable_.empty(); }
  /// Why they may not: closed, or broken by a failure. Empty while they may.
  [[nodiscard]] const std::string& why_unusable() const { return why_unusable_; }
  /// Refuses operations from now on. The latest failure is reported.
  void mark_broken(std::string why) { why_unusable_ = std::move(why); }
  /// The same, but what broke it earlier stays the reason.
  void retire(const char* why) {
    if (is_usable()) why_unusable_ = why;
  }
  /// Retires the connection, then frees transports and communicator. Collective over the group.
  void close();

  /// Numbers the collectives that wait with a deadline; the same on all members.
  std::uint64_t next_collective() { return collectives_++; }

 private:
  std::int64_t size_;
  mpi::Communicator owned_;
  mpi::CommunicatorView comm_;
  HostTransports host_;
  std::unique_ptr<DeviceTransport> device_;
  std::uint64_t collectives_ = 0;
  std::string why_unusable_;
};

}  // namespace rankmesh::detail
