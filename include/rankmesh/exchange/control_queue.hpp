// SPDX-License-Identifier: BSD-3-Clause
// Sends small messages from one rank to all others of a group without collective calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/exchange/message.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::exchange {

/// Holds the options of a control queue. They must be the same on every member.
struct ControlQueueOptions {
  /// The number of chunks that the writer can be ahead of the slowest reader. If ranks share cores,
  /// each wait of the writer costs a context switch.
  std::int64_t slots = 256;
  /// The bytes of a chunk. A longer message is several chunks; it may have more chunks than there
  /// are slots.
  std::int64_t slot_bytes = 4096;
};

/// A queue with one writer. All other members read each message once and in order. A serving engine
/// can use it to send each step to its workers. Unlike a broadcast, write() does not wait while the
/// queue has free slots, and a reader can check for a message without waiting (try_read()).
///
/// Readers on the writer's node read a ring in shared memory; readers on other nodes receive each
/// message by MPI. Long messages to other nodes (above MPI's eager limit of some KiB) make progress
/// only while the writer calls rankmesh or MPI.
///
/// Cost in shared memory: one copy by the writer and one by each reader, without system calls.
/// Between nodes: one message per reader, and a copy at the writer that is kept until all readers
/// have received it. The writer sends to each remote reader, as vLLM's message queue does. If a
/// reader forwarded messages to other readers, these would have to wait until the forwarding reader
/// reads. Memory: one segment of about slots x slot_bytes, without a name in /dev/shm (see
/// SharedSegment).
///
/// A wait spins briefly, then yields the core, then sleeps for 50 us at a time. It does not spin if
/// the node has fewer cores than members of the queue. Meanwhile asynchronous operations of the
/// mesh make progress. Move-only. Thread safety: the rules of the mesh apply.
class RANKMESH_API ControlQueue {
 public:
  /// Opens the queue. Collective over the group; blocks. Cost: a node discovery, one
  /// MPI_Comm_split, one segment, and two reductions of a few bytes.
  /// @throws UsageError  The writer is outside the group, or an option is not positive.
  /// @throws MismatchError  The members passed different arguments, or shared memory cannot be
  /// created. All members throw it.
  /// @throws TimeoutError
  ControlQueue(GroupCoordinator& group, RankInGroup writer, ControlQueueOptions options = {});
  ~ControlQueue();
  ControlQueue(ControlQueue&&) noexcept;
  ControlQueue& operator=(ControlQueue&&) noexcept;

  [[nodiscard]] bool is_writer() const noexcept;
  /// Return the number of readers on the writer's node and on other nodes.
  [[nodiscard]] std::int64_t local_readers() const noexcept;
  [[nodiscard]] std::int64_t remote_readers() const noexcept;

  /// Writes a message. Only the writer may call it. Blocks while the slowest reader is too
  /// far behind.
  /// @param timeout  The time limit. If it is empty, the mesh's timeout applies.
  /// @throws TimeoutError  The error names the late readers. If a part of the message has been
  /// written, the queue is broken; otherwise it can still be used.
  /// @throws UsageError  This rank is a reader. @throws ClosedError
  void write(std::span<const std::byte> message, std::optional<Deadline::Duration> timeout = {});

  /// Reads the next message. Only readers may call it. Blocks until a message arrives.
  /// @throws TimeoutError  The error names the writer.
  /// @throws UsageError  This rank is the writer. @throws ClosedError
  [[nodiscard]] Bytes read(std::optional<Deadline::Duration> timeout = {});
  /// Reads the next message into `message`, whose memory can be reused for each message.
  void read(Bytes& message, std::optional<Deadline::Duration> timeout = {});
  /// Reads the next message if its first chunk has arrived, and returns whether it has read a
  /// message. It waits only for the other chunks of this message.
  [[nodiscard]] bool try_read(Bytes& message);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rankmesh::exchange
