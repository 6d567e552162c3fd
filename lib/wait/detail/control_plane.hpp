// SPDX-License-Identifier: BSD-3-Clause
// The communicator of rankmesh's own messages, and how the ranks of a mesh agree and wait on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/agreement.hpp"
#include "rankmesh/wait/rank_names.hpp"
#include "rankmesh/wait/wait_monitor.hpp"
#include "record/detail/recorder.hpp"
#include "wait_context.hpp"
#include "watchdog.hpp"

namespace rankmesh::detail {

/// There is one per mesh. The parts of a mesh share it; it refers to none of them.
class ControlPlane {
 public:
  /// Takes a duplicate of the user's communicator.
  /// @param wait_context  Its board is set later, by open_board().
  ControlPlane(mpi::Communicator comm, RankNames rank_names, Deadline::Duration timeout_of_waits,
               WaitContext wait_context)
      : names{std::move(rank_names)},
        timeout{timeout_of_waits},
        monitor{comm.view(), WaitMonitor::Audience::own, names},
        context_{std::make_shared<WaitContext>(std::move(wait_context))},
        comm_{std::move(comm)} {
    monitor.set_context(context_);
    monitor.answer_in_other_waits();
  }

  const RankNames names;
  const Deadline::Duration timeout;  ///< Of rankmesh's own waits.
  WaitMonitor monitor;
  /// Differs between meshes, and is the same on all ranks. open_mesh() sets it.
  std::uint64_t key_of_mesh = 0;
  std::int64_t queues = 0;           ///< Control queues made so far; they choose the queues' tags.
  std::int64_t redistributions = 0;  ///< Made so far; they choose the tags of their messages.

  [[nodiscard]] const mpi::CommunicatorView& comm() const { return comm_.view(); }
  [[nodiscard]] Rank rank() const { return Rank{comm().rank()}; }
  [[nodiscard]] Deadline deadline() const { return Deadline{timeout}; }
  /// All ranks of the mesh.
  [[nodiscard]] Participants all() { return {comm(), &monitor, timeout}; }
  void log(LogLevel level, const std::string& message) const { (*context_->log)(level, message); }
  /// The node and the log, for other monitors of the mesh.
  [[nodiscard]] const std::shared_ptr<WaitContext>& context() const { return context_; }
  /// Adds the record of this rank, or null.
  void open_record(std::shared_ptr<Recorder> recorder) { recorder_ = std::move(recorder); }
  [[nodiscard]] const std::shared_ptr<Recorder>& recorder() const { return recorder_; }
  /// Adds the board of this rank's node, once the nodes are known, and starts to watch it.
  void open_board(std::shared_ptr<NodeBoard> board, bool has_watchdog) {
    context_->board = std::move(board);
    if (has_watchdog) watched_ = std::make_unique<WatchedMesh>(*context_, names);
  }
  /// Tells the other ranks of the node that this rank has closed or destroyed its mesh.
  void leave(Presence how, const std::string& reason = {}) {
    watched_.reset();
    if (context_->board) context_->board->leave(how, reason);
  }
  /// Tells the other ranks that this rank destroys its mesh. Does nothing after leave().
  void leave_by_destruction(bool is_by_exception) noexcept;
  /// Tells the other ranks that an exception ends this rank's mesh, and its reason. Does nothing
  /// after leave().
  void leave_by_exception(const std::string& reason) noexcept;
  /// The board of this rank's node. open_mesh() sets it.
  [[nodiscard]] NodeBoard& board() const { return *context_->board; }
  /// Frees the communicator. Collective over the mesh; nothing may be sent afterwards. Receives
  /// small messages that nobody has received: MPICH would deliver them to a later mesh, whose
  /// communicator gets the same number.
  void close();

 private:
  std::shared_ptr<WaitContext> context_;
  std::shared_ptr<Recorder> recorder_;
  std::unique_ptr<WatchedMesh> watched_;
  mpi::Communicator comm_;
};

}  // namespace rankmesh::detail
