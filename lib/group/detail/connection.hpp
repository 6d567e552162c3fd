// SPDX-License-Identifier: BSD-3-Clause
// The communicator and the transports of one group.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "message_ledger.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/batch_place.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "record/detail/recorded_call.hpp"
#include "transport/detail/device_transport.hpp"
#include "transport/detail/group_guard.hpp"

namespace rankmesh::detail {

/// Describes a group of this rank, from the plan and the placement.
struct GroupDescription {
  std::string identity;  ///< The same on all members; unique in the mesh.
  std::string name;      ///< For messages: the name of the first family, or of the dynamic group.
  /// The families that contain this group, in plan order; empty for dynamic groups.
  std::vector<std::size_t> families;
  std::vector<std::string>
      names;                  ///< Of its coordinators; the names of families are in plan order.
  std::string duplicate_key;  ///< The key of a duplicate communicator; empty for the first one.
  RankSet ranks;              ///< Ranks of the mesh, in group order.
  Deadline::Duration timeout{600};  ///< For waits for operations of the group.
  RankInGroup leader{};             ///< The member that creates the NCCL unique ID.
  std::int32_t nodes = 1;           ///< The number of nodes of the members.
  bool has_own_cores = true;        ///< Whether all ranks on these nodes have a core each.
  BatchPlace place;                 ///< The place of its operations in a batch.
  /// The number of the group among those that the plan creates, from 1; the same on all members,
  /// and different for groups that have a member in common. 0 for groups of one rank, and for
  /// dynamic groups.
  std::int64_t number = 0;
  bool is_adopted = false;  ///< Whether the communicator belongs to the program.

  /// Returns the ranks as MPI numbers them on the communicator of the mesh, in group order.
  [[nodiscard]] std::vector<int> ranks_of_mesh() const;
  /// Returns a hash of the identity and the ranks, the same on all members.
  [[nodiscard]] std::uint64_t key() const { return hash_bytes(identity + ranks.to_string()).low; }
  /// Returns the name that the rules of routes have for a coordinator. Rules name families. Names
  /// of dynamic groups are for messages, so no rule names them; a duplicate `dp[key]` follows the
  /// rules of its family.
  [[nodiscard]] std::string name_in_routes(const std::string& coordinator) const {
    return families.empty() ? "" : coordinator.substr(0, coordinator.find('['));
  }
  /// Returns whether members of this mesh have created the group together: it is none of one rank,
  /// and the program did not make its communicator.
  [[nodiscard]] bool has_peers() const { return ranks.size() > 1 && !is_adopted; }
};

/// Holds the transports of a group for host memory, the same on all members. Routes
/// choose among them, so their order has no meaning. A group of one rank has `local`
/// only; others have at least `mpi`.
struct HostTransports {
  GroupGuard guard{};  ///< It outlives the transports.
  std::vector<std::unique_ptr<RoutedTransport>> list;
  std::map<std::string, std::string, std::less<>>
      absent;                           ///< Transports that it does not have, with the reasons.
  bool has_program_transports = false;  ///< Whether the program has added some of them.
  /// The number of collectives on host memory so far, which the guard counts, or in a group of one
  /// rank `local`.
  const std::uint64_t* calls = nullptr;
  /// Carries the messages of a member to itself. Null in a group of one rank, where `local` does.
  std::unique_ptr<RoutedTransport> to_itself{};

  /// Returns the transport of that name, or null.
  [[nodiscard]] RoutedTransport* find(std::string_view name) const;
};

/// Where the calls of a group are recorded.
struct Recordings {
  Recording host{}, device{};
};

/// Owns the communicator and the transports of a group. Families with equal groups share a
/// connection, so their operations have one common order. Coordinators hold it; it refers neither
/// to them nor to the mesh.
class RANKMESH_API Connection {
 public:
  /// @param owned   The group's communicator; empty for groups of one rank and for adopted groups.
  /// @param comm    A view of `owned`, MPI_COMM_SELF, or the communicator of the program.
  /// @param device  Null if the group has no device transport; a lazy family gets it later.
  Connection(GroupDescription group, mpi::Communicator owned, mpi::CommunicatorView comm,
             HostTransports host, std::unique_ptr<DeviceTransport> device,
             Recordings recordings_of_calls = {});
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const GroupDescription group;
  /// Where the calls are recorded; device calls have numbers of their own.
  const Recordings recordings;

  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Returns the communicator of exactly these members; an empty view after close().
  [[nodiscard]] const mpi::CommunicatorView& comm() const { return comm_; }
  [[nodiscard]] bool owns_communicator() const { return static_cast<bool>(owned_); }
  [[nodiscard]] bool is_closed() const { return is_closed_; }
  [[nodiscard]] const HostTransports& host() const { return host_; }
  [[nodiscard]] DeviceTransport* device() const { return device_.get(); }
  /// Adds the device transport of a lazy family's group.
  void open_device(std::unique_ptr<DeviceTransport> device) { device_ = std::move(device); }
  void close_device() { device_.reset(); }

  MessageLedger messages;  ///< Of this member, on host memory.

  /// Returns whether operations may be issued. Every call checks this first.
  [[nodiscard]] bool is_usable() const { return why_unusable_.empty(); }
  /// Returns why operations must not be issued: the connection is closed, or a failure broke
  /// it. Empty if operations may be issued.
  [[nodiscard]] const std::string& why_unusable() const { return why_unusable_; }
  /// Marks the connection as broken: later operations throw ClosedError with this reason, which
  /// replaces an earlier one. Members on this node learn the reason too.
  void mark_broken(const Error& why);
  /// Returns the guard of the group's calls.
  [[nodiscard]] const GroupGuard& guard() const { return host_.guard; }
  /// Marks the connection as broken, but keeps an earlier reason.
  void retire(const char* why) {
    if (is_usable()) why_unusable_ = why;
  }
  /// Closes the connection and frees its transports and its communicator. Collective over the
  /// group. If messages may be left in it, as after calls that have ended early, the communicator
  /// stays until MPI_Finalize: the next one to which MPI gives its identity would receive them.
  /// @param messages_differ  Whether members have not received all messages that were sent, or the
  ///                         group is broken on a member. The same on all members.
  void close(bool messages_differ);

  /// Returns the number of the last collective call on host memory, from 1; the same on all
  /// members.
  [[nodiscard]] std::uint64_t last_call() const {
    return host_.calls == nullptr ? 0 : *host_.calls;
  }
  /// Returns the number of the next collective call on device memory, from 1.
  std::uint64_t next_device_call() { return ++last_device_call_; }
  [[nodiscard]] std::uint64_t last_device_call() const { return last_device_call_; }
  /// Where a DeviceWatch publishes the number of the latest collective on device memory. Null
  /// without a watch.
  struct DevicePlace {
    std::uint64_t index = 0;  ///< From 1; 0 if the board has no place for the group.
    std::atomic<std::uint64_t>* number = nullptr;
  };
  std::unique_ptr<DevicePlace> device_place;

  /// Returns a function for WaitPoint::needed, which translates awaited members into ranks of the
  /// mesh. If other operations of this process are in flight, the peers may wait for these
  /// operations. In this case the result of the function is empty.
  /// @param awaited  Returns members as ranks in the group.
  /// @param own      The number of operations in flight that belong to the wait.
  [[nodiscard]] std::function<std::vector<int>()> needed(
      std::function<std::vector<std::int64_t>()> awaited, std::int64_t own) const;

 private:
  std::int64_t size_;
  mpi::Communicator owned_;
  mpi::CommunicatorView comm_;
  HostTransports host_;
  std::unique_ptr<DeviceTransport> device_;
  std::uint64_t last_device_call_ = 0;
  std::string why_unusable_;
  bool is_closed_ = false;
};

}  // namespace rankmesh::detail
