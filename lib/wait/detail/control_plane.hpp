// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a mesh know about each other, and how they agree and wait.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/detail/log.hpp"
#include "loss_watch.hpp"
#include "node_board.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/agreement.hpp"
#include "rankmesh/wait/rank_names.hpp"
#include "rankmesh/wait/wait_monitor.hpp"
#include "record/detail/recorder.hpp"
#include "watchdog.hpp"

namespace rankmesh::detail {

struct MeshLock;

/// There is one per mesh, from its first message on. It begins on the communicator of the program,
/// and goes over to one of its own. Then the node's record and board are added. The parts of a mesh
/// share it; it refers to none of them but the lock.
class ControlPlane {
 public:
  /// Begins on the communicator of the program.
  /// @param opening  The number of the mesh among those that the process opens there.
  ControlPlane(const mpi::CommunicatorView& world, std::uint64_t opening, RankNames names_in_world,
               Deadline::Duration timeout_of_waits, Deadline::Duration stall_of_waits,
               std::shared_ptr<const Log> log)
      : timeout{timeout_of_waits},
        stall{stall_of_waits},
        names{std::move(names_in_world)},
        monitor{world, WaitMonitor::Audience::shared, names, this, opening},
        log_{std::move(log)},
        comm_{world} {}
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  const Deadline::Duration timeout;  ///< Of rankmesh's own waits.
  const Deadline::Duration stall;    ///< The length of a wait that is reported.
  RankNames names;
  WaitMonitor monitor;
  Placement placement{{}};        ///< Of the ranks of the mesh; empty before they have met.
  std::uint64_t key_of_mesh = 0;  ///< Differs between meshes, and is the same on all ranks.
  /// Of the mesh; null unless its groups are open. A wait lets other threads enter there.
  MeshLock* lock = nullptr;
  std::int64_t queues = 0;           ///< Control queues made so far; they choose the queues' tags.
  std::int64_t redistributions = 0;  ///< Made so far; they choose the tags of their messages.
  /// For each group of these tags, the redistribution that got it last.
  std::vector<std::weak_ptr<const void>> with_tags{};

  /// Decides which ranks are lost; null unless the mesh may survive.
  std::shared_ptr<LossWatch> losses;
  /// A duplicate of the communicator, for the next mesh; empty unless the mesh may survive.
  mpi::Communicator reserve;
  /// The losses that this process had seen when the mesh was opened.
  const std::uint64_t losses_before = LossWatch::count();
  /// Returns whether a mesh of this process has lost ranks since this one was opened.
  [[nodiscard]] bool is_lost() const { return LossWatch::count() != losses_before; }
  /// Throws LostRanks if is_lost(). Blocks for a moment at most.
  void throw_if_lost() const {
    if (is_lost()) [[unlikely]]
      LossWatch::raise(losses.get());
  }

  /// Does the same, after it has looked for losses.
  void throw_if_newly_lost() const {
    LossWatch::look_at_all(true);
    throw_if_lost();
  }
  /// Does the same if an error is the result of a loss.
  void throw_if_result_of_loss(const Error& error) const {
    LossWatch::look_after(error, losses_before);
    throw_if_lost();
  }

  /// Looks for losses in a wait that does not use the monitor, because a device carries what it
  /// waits for. Called again and again.
  /// @param awaited  Returns for whom this rank waits; see LossWatch::look_at_all().
  void look_for_losses(
      LossWatch::Waiting& waiting,
      const std::function<std::vector<int>()>& awaited = [] { return std::vector<int>{}; }) const {
    LossWatch::look_at_all(waiting, comm(), awaited);
    throw_if_lost();
  }

  /// Returns how many ranks are spare; see Mesh::is_spare().
  [[nodiscard]] std::int64_t spares() const {
    return with_spares().size() - names.plan()->world_size();
  }
  /// Returns whether this rank is spare. Those of the mesh come first.
  [[nodiscard]] bool is_spare() const { return rank().value() >= names.plan()->world_size(); }
  /// Goes over to the communicator of the members, and forgets the nodes of the spare ranks. Local.
  void leave_spares(mpi::Communicator members);
  /// Returns the communicator on which the members have met the spare ranks. It has the same ranks
  /// as comm(), and after these the spare ones.
  [[nodiscard]] const mpi::CommunicatorView& with_spares() const {
    return with_spares_ ? with_spares_.view() : comm_;
  }

  /// Returns how many collectives this rank has made in a group of the mesh, if it is set. Nothing
  /// if the rank has no group with this scope; see WaitPoint::scope.
  std::function<std::optional<std::uint64_t>(std::uint64_t scope)> calls_of;

  /// Called now and then by waits of the mesh, if it is set; it may throw what ends them.
  std::function<void()> at_look;

  /// Goes over to the communicator of the mesh. Local; nothing of rankmesh may be under way on the
  /// communicator of the program.
  void move_to(mpi::Communicator own, RankNames own_names);

  [[nodiscard]] const mpi::CommunicatorView& comm() const { return comm_; }
  [[nodiscard]] Rank rank() const { return Rank{comm_.rank()}; }
  [[nodiscard]] Deadline deadline() const { return Deadline{timeout}; }
  /// All ranks of the mesh.
  [[nodiscard]] Participants all() { return {comm_, &monitor, timeout}; }
  void log(LogLevel level, const std::string& message) const { (*log_)(level, message); }
  /// Returns the log, which may outlive the mesh.
  [[nodiscard]] const std::shared_ptr<const Log>& log() const { return log_; }

  /// Adds the record of this rank, or null.
  void open_record(std::shared_ptr<Recorder> recorder) { recorder_ = std::move(recorder); }
  [[nodiscard]] const std::shared_ptr<Recorder>& recorder() const { return recorder_; }
  /// Adds the board of this rank's node, once the nodes are known, and starts to watch it.
  void open_board(std::shared_ptr<NodeBoard> board, bool has_watchdog) {
    board_ = std::move(board);
    if (has_watchdog) watched_ = std::make_unique<WatchedMesh>(board_, log_, names, stall.count());
  }
  /// The board of this rank's node, after open_board().
  [[nodiscard]] NodeBoard& board() const { return *board_; }
  [[nodiscard]] const std::shared_ptr<NodeBoard>& shared_board() const { return board_; }
  /// The same, or null before open_board().
  [[nodiscard]] NodeBoard* find_board() const { return board_.get(); }

  /// Tells the other ranks of the node that this rank has closed or destroyed its mesh.
  void leave(Presence how, const std::string& reason = {}) {
    watched_.reset();
    if (board_) board_->leave(how, reason);
  }
  /// Tells the other ranks that this rank destroys its mesh. Does nothing after leave().
  void leave_by_destruction(bool is_by_exception) noexcept;
  /// Tells the other ranks that an exception ends this rank's mesh, and its reason. Does nothing
  /// after leave().
  void leave_by_exception(const std::string& reason) noexcept;
  /// Frees the communicator. Collective over the mesh; nothing may be sent afterwards. Receives
  /// small messages that nobody has received: MPICH would deliver them to a later mesh, whose
  /// communicator gets the same number.
  void close();

 private:
  std::shared_ptr<const Log> log_;
  std::shared_ptr<NodeBoard> board_;
  std::shared_ptr<Recorder> recorder_;
  std::unique_ptr<WatchedMesh> watched_;
  mpi::Communicator with_spares_;  // only on members of a mesh that has spare ranks
  mpi::Communicator owned_;
  mpi::CommunicatorView comm_;
};

/// Sets ControlPlane::at_look, as long as this exists.
class AtLook {
 public:
  AtLook(ControlPlane& control, std::function<void()> look) : control_{control} {
    control_.at_look = std::move(look);
  }
  ~AtLook() { control_.at_look = nullptr; }
  AtLook(const AtLook&) = delete;
  AtLook& operator=(const AtLook&) = delete;

 private:
  ControlPlane& control_;
};

}  // namespace rankmesh::detail
