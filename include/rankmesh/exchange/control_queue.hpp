// SPDX-License-Identifier: BSD-3-Clause
// Sends small messages from one member to all other members of a group without collective calls.
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

/// Holds the options of a control queue. The options must be the same on every member.
struct ControlQueueOptions {
  /// The number of chunks by which the writer can be ahead of the slowest reader. Choose a large
  /// number if ranks share cores, because each wait of the writer then costs a context switch.
  std::int64_t slots = 256;
  /// The size of a slot in bytes. A message that does not fit into one slot is written in several
  /// chunks. A message may have more chunks than the queue has slots.
  std::int64_t slot_bytes = 4096;
};

/// A queue with one writer, whose messages every other member reads once and in order. For example,
/// a serving engine sends each step to its workers through it. docs/exchange.md describes it.
/// Unlike a broadcast, write() does not wait for the readers while the queue has free slots, and a
/// reader can check for a message without waiting (try_read()).
///
/// Cost on the writer's node: one copy into shared memory, and one copy out of it per reader,
/// without system calls. Cost between nodes: one message of MPI per reader; the writer keeps a copy
/// until all of them have received it. Memory: one segment of about `slots` times `slot_bytes`
/// bytes.
///
/// While a rank waits, asynchronous operations of the mesh make progress. Move-only. Thread safety:
/// the rules of the mesh apply.
class RANKMESH_API ControlQueue {
 public:
  /// Opens the queue. Collective over the group; blocks. Cost: one discovery of the nodes, one
  /// MPI_Comm_split, one segment, and two reductions of a few bytes.
  /// @param group  A group that must outlive the queue. Afterwards, write(), read() and try_read()
  /// throw ClosedError.
  /// @throws UsageError if the writer is outside the group, or if an option is not positive.
  /// @throws MismatchError on all members if they passed different arguments, which the error
  /// lists, or if the segment cannot be created. If the arguments are invalid on some members only,
  /// the other members throw MismatchError too.
  /// @throws TimeoutError if the mesh's timeout passes.
  ControlQueue(GroupCoordinator& group, RankInGroup writer, ControlQueueOptions options = {});
  ~ControlQueue();
  /// Takes over the queue. The source can then only be destroyed or assigned to.
  ControlQueue(ControlQueue&&) noexcept;
  /// Takes over the queue. The source can then only be destroyed or assigned to.
  ControlQueue& operator=(ControlQueue&&) noexcept;

  /// Returns whether this rank is the writer.
  [[nodiscard]] bool is_writer() const noexcept;
  /// Returns the number of readers on the writer's node.
  [[nodiscard]] std::int64_t local_readers() const noexcept;
  /// Returns the number of readers on other nodes.
  [[nodiscard]] std::int64_t remote_readers() const noexcept;

  /// Writes a message. Only the writer may call write(). Blocks while the slowest reader is too far
  /// behind.
  /// @param timeout  The time limit. If `timeout` is empty, the mesh's timeout applies.
  /// @throws TimeoutError if the time limit passes. The error names the late readers. If a part of
  /// the message has already been written, the queue is broken. Otherwise the queue can still be
  /// used. PeerError if a late reader on this node has ended, or if an exception has destroyed the
  /// reader's mesh.
  /// @throws UsageError if this rank is a reader, or if the queue has remote readers and the
  /// message is longer than 2^31-1 bytes; ClosedError if the mesh or the group is closed, or if the
  /// queue is broken.
  void write(std::span<const std::byte> message, std::optional<Deadline::Duration> timeout = {});

  /// Reads the next message. Only readers may call read(). Blocks until a message arrives.
  /// @throws TimeoutError if the time limit passes. The error names the writer. PeerError if the
  /// writer is on this node, and it has ended or an exception has destroyed its mesh.
  /// @throws UsageError if this rank is the writer; ClosedError if the mesh or the group is closed,
  /// or if the queue is broken.
  [[nodiscard]] Bytes read(std::optional<Deadline::Duration> timeout = {});
  /// Reads the next message into `message`, whose memory can be reused for each message.
  void read(Bytes& message, std::optional<Deadline::Duration> timeout = {});
  /// If the first chunk of the next message has arrived, reads this message and returns true.
  /// Otherwise returns false without waiting. The function waits only for the remaining chunks of a
  /// message that has begun to arrive.
  [[nodiscard]] bool try_read(Bytes& message);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rankmesh::exchange
