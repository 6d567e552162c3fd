// SPDX-License-Identifier: BSD-3-Clause
// Operations of rankmesh that consist of several messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "connection.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/transport/call.hpp"
#include "rankmesh/transport/transport.hpp"

namespace rankmesh::detail {

/// An operation that consists of several messages. test() starts messages and completes them, and
/// throws the errors of its messages; then MPI may still use the memory of the sequence.
class MessageSequence : public Pending {
 public:
  /// Is called when the sequence has failed and will never be complete.
  virtual void give_up() noexcept {}
  /// Returns whether test() calls functions of the program.
  [[nodiscard]] virtual bool calls_program() const { return false; }
  /// Returns the members whose messages are not complete. A wait names only these members.
  [[nodiscard]] virtual std::vector<RankInGroup> unfinished() const = 0;
  /// Returns a number that grows when unfinished() has changed.
  [[nodiscard]] virtual std::size_t finished() const = 0;
};

/// An operation on device memory that consists of copies and messages. It is gone when all of them
/// are queued, so memory that they use must live longer than it.
class DeviceSequence {
 public:
  /// Issues sends and receives together, in one NCCL group.
  using Issue = std::function<void(const std::vector<Call>&)>;
  virtual ~DeviceSequence() = default;
  /// Queues all copies and messages on a stream. The host does not wait for the device.
  virtual void queue(StreamRef stream, const Issue& issue) = 0;
  /// Returns the members with which this one exchanges messages.
  [[nodiscard]] virtual std::vector<RankInGroup> peers() const = 0;
};

/// How a sequence appears to this rank and to others.
struct SequenceDescription {
  std::string function;  ///< The function that the program called, for errors.
  std::string activity;  ///< See WaitPoint::activity.
  std::string identity;  ///< The same on all members; unique in the group.
};

/// Starts the messages of a sequence, and records them. A sequence keeps this object. The messages
/// have tags that no other messages of the group have at the same time.
class SequenceMessages {
 public:
  explicit SequenceMessages(std::shared_ptr<Connection> connection, std::uint32_t name_index)
      : connection_{std::move(connection)}, name_index_{name_index} {}
  /// Starts one message; does not block. The messages between two members arrive in the order in
  /// which they were started.
  /// @param call  A send or a recv of host memory.
  [[nodiscard]] std::unique_ptr<Pending> start(Call call) const;

 private:
  std::shared_ptr<Connection> connection_;
  std::uint32_t name_index_;
};

}  // namespace rankmesh::detail
