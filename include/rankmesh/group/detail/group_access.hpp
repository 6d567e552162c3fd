// SPDX-License-Identifier: BSD-3-Clause
// Access to the private parts of coordinators, for use by other layers of rankmesh only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::detail {

class Connection;
class DeviceSequence;
class MessageSequence;
class SequenceMessages;
struct Lifetime;
struct SequenceDescription;

/// Creates coordinators, and gives other layers of rankmesh access to the private parts of
/// coordinators.
struct RANKMESH_API GroupAccess {
  /// Creates a coordinator that uses `connection`. The connection must already have all its
  /// transports. Local.
  static std::unique_ptr<GroupCoordinator> make(std::string name,
                                                std::shared_ptr<Connection> connection,
                                                std::shared_ptr<MeshRuntime> runtime);
  /// Runs the operation that `call` describes. Blocks if the operation is on host memory.
  static void run(GroupCoordinator& group, const Call& call);
  /// Starts the operation that `call` describes. Does not block.
  /// @param kept    An object that stays alive until the operation is complete.
  /// @param finish  What this rank does when an operation on host memory has ended, before its Work
  ///                is complete: only copies. It must not throw.
  [[nodiscard]] static Work start(GroupCoordinator& group, const Call& call,
                                  std::shared_ptr<void> kept = {},
                                  std::function<void()> finish = {});
  /// Starts an operation that consists of several messages. Does not block.
  [[nodiscard]] static Work start(GroupCoordinator& group, const SequenceDescription& description,
                                  std::unique_ptr<MessageSequence> sequence);
  /// Starts an operation on device memory that consists of copies and messages, on the group's own
  /// stream, after the work that `stream` holds now. Does not wait for the device.
  [[nodiscard]] static Work start(GroupCoordinator& group, const SequenceDescription& description,
                                  StreamRef stream, std::shared_ptr<DeviceSequence> sequence);
  /// Throws unless the group is usable and no batch is open.
  /// @param function  What the program has called; used in messages.
  static void require_no_batch(const GroupCoordinator& group, std::string_view function);
  /// Returns the object that starts the messages of a sequence.
  [[nodiscard]] static std::unique_ptr<SequenceMessages> messages(const GroupCoordinator& group);
  /// Returns the state that all groups of the mesh share.
  [[nodiscard]] static MeshRuntime& runtime(const GroupCoordinator& group);
  /// Returns the object that tells whether the group still exists.
  [[nodiscard]] static std::shared_ptr<const Lifetime> lifetime(const GroupCoordinator& group);
  /// Returns the communicator and the transports of the group.
  [[nodiscard]] static Connection& connection(const GroupCoordinator& group);
};

}  // namespace rankmesh::detail
