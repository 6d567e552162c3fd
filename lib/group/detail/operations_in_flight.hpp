// SPDX-License-Identifier: BSD-3-Clause
// Asynchronous operations that are not complete.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
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
  /// Makes point(). Most operations end before anybody asks for it, and its texts take longer than
  /// all other parts of the start of a small operation.
  std::function<WaitPoint(const GroupDescription&)> describe;
  StreamRef stream;  ///< The caller's stream, for operations on device memory.
  bool is_on_device = false;
  bool is_captured = false;     ///< It belongs to a CUDA graph, so nobody can wait for it.
  bool is_message = false;      ///< A message between two members, on host memory.
  bool is_receive = false;      ///< A receive on host memory, which can be cancelled.
  bool is_from_itself = false;  ///< A receive that only this rank itself can complete.
  RankInGroup source{};         ///< Of a receive.
  int tag = 0;
  bool was_cancelled = false;
  bool is_deferred = false;             ///< Its batch has not ended, so it is not issued yet.
  bool is_polled = false;               ///< See Pending::is_polled().
  bool is_listed = false;               ///< It is in the list of its mesh.
  bool is_attended = false;             ///< See Attended.
  bool is_counted = false;              ///< See EverythingInFlight::count().
  bool calls_program = false;           ///< Its test() calls functions of the program.
  MessageSequence* sequence = nullptr;  ///< `pending`, if it is a sequence; else null.
  std::unique_ptr<Pending> pending;     ///< Null before it is issued, and after it has ended.
  std::shared_ptr<void> kept;           ///< Buffers that were moved into the operation.
  std::function<void()> finish;         ///< What this rank does when the operation has ended.
  RecordedCall recorded;                ///< Until it is complete or has failed.
  std::string failure;  ///< Why it will never be complete; empty if it has not failed.
  /// What the program can do about it.
  const char* remedy = "the operation failed earlier and will never be complete";
  std::exception_ptr unseen;  ///< The failure, if no wait has thrown it yet.

  /// Returns where waits for the operation meet.
  [[nodiscard]] const WaitPoint& point() const {
    if (!point_) point_ = describe(connection->group);
    return *point_;
  }
  /// Takes over an operation on host memory that a transport has started.
  void begin(std::unique_ptr<Pending> started) {
    is_polled = started->is_polled();
    pending = std::move(started);
  }
  /// Counts the operation among those that waits advance, or no longer.
  void recount();

 private:
  mutable std::optional<WaitPoint> point_{};
};

/// Marks an operation as being tested or waited for, so that no other wait tests it meanwhile.
class Attended {
 public:
  explicit Attended(AsyncOperation& operation)
      : operation_{operation}, before_{std::exchange(operation.is_attended, true)} {
    operation_.recount();
  }
  ~Attended() {
    operation_.is_attended = before_;
    operation_.recount();
  }
  Attended(const Attended&) = delete;
  Attended& operator=(const Attended&) = delete;

 private:
  AsyncOperation& operation_;
  bool before_;
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
  /// Does the same for a few operations on host memory, with which it takes turns.
  void advance();
  /// Tests an operation for which nobody waits. If it fails, the next wait for it throws. Returns
  /// whether it is complete.
  bool look(const std::shared_ptr<AsyncOperation>& operation);
  /// Lets the waits of this thread advance the operations, even if another thread has issued them.
  void continue_in_this_thread() { thread_ = std::this_thread::get_id(); }
  /// Returns whether the waits of this thread advance the operations. Any thread may call it.
  [[nodiscard]] bool is_of_this_thread() const {
    return thread_.load() == std::this_thread::get_id();
  }
  /// Returns whether polled operations are in flight. Any thread may call it.
  [[nodiscard]] bool has_polled() const { return polled_.load() != 0; }
  /// Waits for all operations of this connection, or of all connections if it is null. Receives on
  /// host memory are left to end_receives().
  /// @throws The exception of the first operation that failed.
  void finish(const Connection* only, WaitMonitor& monitor, const Deadline& deadline);
  /// Ends all receives on host memory of this connection, or of all connections if it is null. The
  /// other members send no further messages. Receives for which no message has arrived are
  /// cancelled.
  /// @param messages_differ  Whether a receive may be open whose message was never sent. Otherwise
  /// those of groups that were not adopted are cancelled later, see Patience::counted.
  /// @throws The exception of the first operation that failed.
  void end_receives(const Connection* only, WaitMonitor& monitor, const Deadline& deadline,
                    bool messages_differ);
  /// Waits for all polled collectives, each with the timeout of its group. Messages between two
  /// members stay in flight, because their peers may make this rank's next collective first.
  void finish_polled(WaitMonitor& monitor);
  /// Returns whether polled messages are in flight.
  [[nodiscard]] bool has_polled_messages() const;
  /// See Pending::advance_beside_mpi().
  void advance_messages_beside_mpi();
  /// Marks all operations on device memory as failed. Their communicators were aborted.
  /// @param only  Null: of all groups.
  void abort_on_device(const std::string& why, const Connection* only);
  /// Abandons all operations, and leaks the memory that MPI may still use.
  void abandon() noexcept;

 private:
  void forget(AsyncOperation& operation);
  void forget_ended_on_device();
  void throw_unseen(const Connection* only);
  void fail(AsyncOperation& operation, const Error& why);
  void end(AsyncOperation& operation);

  std::vector<std::shared_ptr<AsyncOperation>> list_;
  std::vector<std::shared_ptr<AsyncOperation>> failed_;  // whose failure nobody has seen yet
  std::size_t next_ = 0;                                 // whose turn it is
  std::vector<std::shared_ptr<void>> kept_for_graphs_;
  std::atomic<std::int64_t> polled_{0};
  std::atomic<std::thread::id> thread_{};  // that has issued an operation last, or waited for one
};

}  // namespace rankmesh::detail
