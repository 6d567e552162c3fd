// SPDX-License-Identifier: BSD-3-Clause
// Asynchronous operations that are not complete.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "connection.hpp"
#include "message_sequence.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/wait/wait_monitor.hpp"
#include "rankmesh/wait/wait_point.hpp"

namespace rankmesh::detail {

/// An asynchronous operation, from its call until it is complete or has failed.
struct AsyncOperation {
  std::shared_ptr<Connection> connection;
  WaitPoint point;
  StreamRef stream;  ///< The caller's stream, for operations on device memory.
  bool is_on_device = false;
  bool is_captured = false;  ///< It belongs to a CUDA graph, so nobody can wait for it.
  bool is_message = false;   ///< A message between two members, on host memory.
  bool is_receive = false;   ///< A receive on host memory, which can be cancelled.
  bool was_cancelled = false;
  bool is_deferred = false;  ///< Its batch has not ended, so it is not issued yet.
  /// The operation makes progress only inside calls of rankmesh, so this process must not block in
  /// MPI before the operation is complete.
  bool is_polled = false;
  Transport* transport = nullptr;       ///< The transport of an operation on host memory.
  MessageSequence* sequence = nullptr;  ///< `pending`, if it is a sequence; else null.
  std::unique_ptr<Pending> pending;     ///< Null before it is issued, and after it has ended.
  std::shared_ptr<void> kept;           ///< Buffers that were moved into the operation.
  RecordedCall recorded;                ///< Until it is complete or has failed.
  std::string failure;        ///< Why it will never be complete; empty if it has not failed.
  std::exception_ptr unseen;  ///< The failure, if no wait has thrown it yet.

  /// Takes over an operation on host memory that `transport` has started.
  void begin(std::unique_ptr<Pending> started) {
    is_polled = transport->is_polled() || started->is_backlogged();
    pending = std::move(started);
  }
};

/// Holds all operations of one mesh that are in flight, in the order of issue. An operation stays
/// here even if its Work is destroyed.
class OperationsInFlight {
 public:
  void add(std::shared_ptr<AsyncOperation> operation);
  /// Keeps the buffers of an operation that was captured into a CUDA graph, which may be launched
  /// as long as the mesh exists.
  void add_captured(AsyncOperation& operation);
  /// Makes progress. Returns true once the operation is complete, and removes it then.
  /// @throws The exception with which the operation failed.
  bool test(AsyncOperation& operation);
  /// Blocks the host until the operation is complete.
  /// @throws TimeoutError if the operation is not complete at the deadline. The group is broken
  /// afterwards, and the memory that was moved into the operation is leaked, because MPI may still
  /// use it.
  void wait(AsyncOperation& operation, WaitMonitor& monitor, const Deadline& deadline,
            TimeLimit limit = TimeLimit::timeout);

  /// Cancels a receive on host memory. If a message has been matched with the receive, blocks until
  /// the message has arrived. Returns whether the receive was cancelled.
  /// @throws UsageError if the operation is no receive on host memory.
  /// @throws the exceptions of wait().
  bool cancel(AsyncOperation& operation, WaitMonitor& monitor, const Deadline& deadline);

  /// Returns how many operations are in flight in all meshes of this process.
  [[nodiscard]] static std::int64_t count_of_process();
  /// Makes progress on all operations. If one fails, the next wait for it throws.
  void progress();
  /// Returns whether polled operations are in flight that this thread has issued. Any thread may
  /// call it.
  [[nodiscard]] bool has_polled_of_this_thread() const {
    return polled_.load() != 0 && issuer_.load() == std::this_thread::get_id();
  }
  /// Makes progress on everything that advances only inside calls of rankmesh: polled operations
  /// (see Transport::is_polled()), sequences of messages, and the comparison of calls that MPI
  /// carries.
  void advance_polled();
  /// Waits for all operations of this connection, or of all connections if it is null. Receives on
  /// host memory are left to end_receives().
  /// @throws The exception of the first operation that failed.
  void finish(const Connection* only, WaitMonitor& monitor, const Deadline& deadline);
  /// Ends all receives on host memory of this connection, or of all connections if it is null. The
  /// other members send no further messages. Receives for which no message has arrived are
  /// cancelled.
  /// @throws The exception of the first operation that failed.
  void end_receives(const Connection* only, WaitMonitor& monitor, const Deadline& deadline);
  /// Lets the waits of this thread advance the operations, even if another thread has issued them.
  void continue_in_this_thread() { issuer_ = std::this_thread::get_id(); }
  /// Waits for all polled collectives, each with the timeout of its group. Messages between two
  /// members stay in flight, because their peers may make this rank's next collective first.
  void finish_polled(WaitMonitor& monitor);
  /// Returns whether polled messages are in flight.
  [[nodiscard]] bool has_polled_messages() const;
  /// Makes progress on polled messages in shared memory. In contrast to the other functions,
  /// another thread may call it while the thread that uses the mesh is blocked in MPI.
  void advance_polled_messages();
  /// Marks all operations on device memory as failed. Their communicators were aborted.
  void abort_on_device(const std::string& why);
  /// Abandons all operations, and leaks the memory that MPI may still use.
  void abandon() noexcept;

 private:
  void forget(const AsyncOperation& operation);
  void forget_ended_on_device();
  bool look(const std::shared_ptr<AsyncOperation>& operation);
  void fail(AsyncOperation& operation, const Error& why);

  void end_polled();

  std::vector<std::shared_ptr<AsyncOperation>> list_;
  std::vector<std::shared_ptr<void>> kept_for_graphs_;
  std::atomic<std::int64_t> polled_{0};
  std::atomic<std::thread::id> issuer_{};  // of the last polled operation
};

}  // namespace rankmesh::detail
