// Small messages from one rank to all others of a group, without a collective call.
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

/// The same on every member.
struct ControlQueueOptions {
  /// Chunks that the writer may be ahead of the slowest reader. Where ranks share cores, each time
  /// that it must wait costs a change of process.
  std::int64_t slots = 256;
  /// Bytes of a chunk; longer messages are several, and need at most as many slots at once as there
  /// are.
  std::int64_t slot_bytes = 4096;
};

/// A queue with one writer, whose messages all other members read, each once and in order: the step
/// message that an engine sends to its workers. Readers on the writer's node read a ring in shared
/// memory; a reader elsewhere gets each message by MPI. Unlike a broadcast, write() waits for
/// nobody while the ring has room, and a reader may look whether there is something (try_read).
///
/// Messages to other nodes beyond MPI's eager limit (some KiB) move on while the writer is in a
/// call of rankmesh's or MPI's.
///
/// Cost in shared memory: a copy in, and a copy out per reader; no system call. Between nodes: a
/// message per reader, and one copy of it at the writer until all have taken it; a reader that
/// passed messages on would make its node wait until it reads itself (vLLM's message queue sends to
/// each remote reader, too). Memory: one segment per queue of about slots x slot_bytes, without a
/// name in /dev/shm (see SharedSegment).
///
/// Waiting spins briefly, gives the core away (at once where the group has more ranks on the node
/// than the process may use cores), then sleeps for 50 us at a time; meanwhile asynchronous
/// operations of the mesh make progress. One thread, that of the mesh. Move-only.
class RANKMESH_API ControlQueue {
 public:
  /// Collective over the group; blocks. Cost: a node discovery, one MPI_Comm_split, one segment,
  /// two reductions of a few bytes.
  /// @throws UsageError for a writer outside the group or options that are not positive;
  /// MismatchError where
  ///         the members differ in them; SharedMemoryError; TimeoutError.
  ControlQueue(GroupCoordinator& group, RankInGroup writer, ControlQueueOptions options = {});
  ~ControlQueue();
  ControlQueue(ControlQueue&&) noexcept;
  ControlQueue& operator=(ControlQueue&&) noexcept;

  [[nodiscard]] bool is_writer() const noexcept;
  /// How many readers share the writer's node, and how many do not. Of the whole group.
  [[nodiscard]] std::int64_t local_readers() const noexcept;
  [[nodiscard]] std::int64_t remote_readers() const noexcept;

  /// The writer: returns once the message is in the queue; blocks while the slowest reader is too
  /// far behind.
  /// @param timeout  nothing: the mesh's.
  /// @throws TimeoutError naming the readers that are late and how far behind they are; the queue
  /// can still
  ///         be used where nothing of the message was written, and is broken otherwise. UsageError
  ///         on a reader; ClosedError.
  void write(std::span<const std::byte> message, std::optional<Deadline::Duration> timeout = {});

  /// A reader: the next message. Blocks until it is there.
  /// @throws TimeoutError naming the writer; UsageError on the writer; ClosedError.
  [[nodiscard]] Bytes read(std::optional<Deadline::Duration> timeout = {});
  /// The same into memory that may serve again.
  void read(Bytes& message, std::optional<Deadline::Duration> timeout = {});
  /// Reads where the next message has begun to arrive; else returns false at once.
  [[nodiscard]] bool try_read(Bytes& message);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rankmesh::exchange
