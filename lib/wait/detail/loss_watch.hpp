// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of a mesh are lost, as all survivors see it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "node_board.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/rank_names.hpp"

namespace rankmesh::detail {

class LossLink;

/// Finds the deaths of the ranks of one mesh, and decides with the other survivors which ranks are
/// lost and from which step all go on. On one node, everything is words in the memory of the node,
/// each of which is decided by one compare-exchange. So no survivor waits for another one, and a
/// rank may die at any moment. On several nodes, a LossLink decides.
///
/// The losses are numbered in rounds. Whoever sees a death begins the next round. Until then, ranks
/// that die are part of it: it settles for a moment. Then each survivor decides the fate of each
/// rank, in turn: the first one that writes it decides for all. See docs/design.md ("Lost ranks").
///
/// Thread safety: any thread may call any function.
class RANKMESH_API LossWatch : public std::enable_shared_from_this<LossWatch> {
 public:
  /// What all survivors know alike after a round.
  struct Loss {
    std::uint64_t round = 0;
    std::vector<Rank> ranks{};  ///< All that are lost so far, in ascending order.
    std::optional<std::int64_t> step{};
  };

  /// Begins to watch.
  /// @param mesh  The text of the mesh, for messages.
  /// @param step  The step that the ranks have committed in the last mesh.
  /// @param comm  Of the mesh, with its spare ranks.
  /// @param exclude_after  In nanoseconds; see Survival. 0: no rank is excluded.
  /// @param link  To other nodes; null if the mesh is on one node.
  static std::shared_ptr<LossWatch> create(std::shared_ptr<NodeBoard> board, RankNames names,
                                           std::string mesh, std::optional<std::int64_t> step,
                                           const mpi::CommunicatorView& comm,
                                           std::int64_t exclude_after,
                                           std::unique_ptr<LossLink> link);
  ~LossWatch();
  LossWatch(const LossWatch&) = delete;
  LossWatch& operator=(const LossWatch&) = delete;

  /// Looks for deaths in all meshes of this process that may survive, now and then, and learns what
  /// other ranks have found.
  /// @param at_once  Also if it has looked a moment ago.
  static void look_at_all(bool at_once = false);
  /// One wait of this rank, in nanoseconds.
  struct Waiting {
    std::int64_t since = 0;
    std::int64_t last_look = 0, next_doubt = 0;
  };
  /// Does the same, and says in all meshes that this rank waits. Ranks for which it has waited too
  /// long are excluded. Called again and again by a wait.
  /// @param awaited  Returns for whom this rank waits, as ranks of `comm`. Called only if the wait
  ///                 is long.
  static void look_at_all(Waiting& waiting, const mpi::CommunicatorView& comm,
                          const std::function<std::vector<int>()>& awaited);
  /// Looks at once, because an error may be the result of a loss. If another library has failed,
  /// waits for this news for a moment: the system ends the connections of a dead process before it
  /// tells anybody else, and other nodes hear of the death even later.
  /// @param known  The rounds that the caller knows of; see count().
  static void look_after(const Error& error, std::uint64_t known);
  /// Waits for this news for a moment.
  static void await_news(std::uint64_t known);
  /// Returns how many rounds of all its meshes this process has seen.
  [[nodiscard]] static std::uint64_t count() { return rounds_seen.load(std::memory_order_relaxed); }
  /// Throws LostRanks for the last round of a mesh. Blocks until it has settled.
  /// @param own  The mesh of the caller; null if it may not survive. It learns of the loss if
  ///             another mesh has heard first. If it has no lost rank, the error is that of the
  ///             other mesh.
  [[noreturn]] static void raise(LossWatch* own);

  /// Returns the number of the last round; 0 if no rank is lost.
  [[nodiscard]] std::uint64_t round() const;
  /// Returns the last round. Blocks until it has settled.
  [[nodiscard]] Loss decide() const;

  /// Another mesh of this process has lost ranks, and this one may not have heard of it: waits for
  /// the news for a moment, and then tells it which of its ranks the other mesh has lost.
  /// @param known  The rounds of this mesh that the caller knows of.
  void learn_from_other_mesh(std::uint64_t known);

  /// An exception destroys the mesh on this rank. Tells the other nodes; this node sees it.
  void fail();
  /// The members have closed the mesh. Tells the spare ranks, and waits for their answers, at most
  /// as long as a node may be silent. Leaves the mesh.
  void close();
  /// This rank has nothing more to do in the mesh, nor has any other rank that lives. At the end of
  /// the process, those that have not left it either are awaited, and excluded if they are late.
  void leave();
  /// Returns whether the members have closed the mesh. Spare ranks ask.
  [[nodiscard]] bool has_closed() const;
  /// Returns whether the mesh is on several nodes.
  [[nodiscard]] bool spans_nodes() const { return link_ != nullptr; }
  /// Returns the step that a rank has committed, which cannot change afterwards; -1 if there is
  /// none.
  static std::int64_t freeze(RankArea& area);

  /// Says that this rank begins its next commit, and whether it asks to stop in it. Every rank
  /// makes the same number of them.
  void begin_commit(std::int64_t step);
  /// Throws a MismatchError if another rank of this node passes another step to the same commit.
  void require_same_step(std::int64_t step) const;
  /// The ranks have committed different steps. No commit can say any more what all have completed,
  /// so all further ones throw.
  void end_commits() { have_ended_commits_ = true; }
  /// Publishes that this rank has completed a step. Returns false if ranks are lost.
  bool commit(std::int64_t step);
  /// Asks all ranks to stop, from the next commit of this process on. A signal handler may call it.
  static void request_stop() noexcept { stops = true; }
  [[nodiscard]] static bool is_stop_requested() noexcept { return stops; }
  /// Returns whether a rank of this node had asked to stop when it made the commit that this rank
  /// has made last. All ranks of the node must have made it. Other ranks may ask in later ones.
  [[nodiscard]] bool is_stop_agreed() const;
  /// Says in a mesh that has lost ranks that this rank asks to stop. Ranks of its node that have a
  /// place in the next mesh learn of it by their next commit.
  void tell_stop();
  /// Returns the step that this rank has committed last.
  [[nodiscard]] std::optional<std::int64_t> step() const;
  /// Returns whether all members on this node have committed a step, or a later one.
  [[nodiscard]] bool have_committed(std::int64_t step) const;

  /// Returns the ids of the processes of the ranks, as far as they mean something here.
  [[nodiscard]] std::vector<std::int64_t> processes() const;

  /// Where survivors meet before they create the next mesh, and when they have opened it.
  enum class Gathering : std::uint8_t { before, opened };
  /// Says that this rank has come to a meeting of a round.
  void come(std::uint64_t round, Gathering meeting);
  /// Returns whether these ranks have met. Looks for their deaths, too. The second meeting ends the
  /// watch on all of them at once: afterwards no round begins.
  [[nodiscard]] bool have_met(std::uint64_t round, const std::vector<Rank>& ranks,
                              Gathering meeting);

  /// Returns those of these ranks that have not come, as far as this rank knows.
  [[nodiscard]] std::vector<Rank> missing(std::uint64_t round, const std::vector<Rank>& ranks,
                                          Gathering meeting) const;

 private:
  // The meshes that have lost ranks, or of which a rank may be excluded at the end.
  struct KeptWatches {
    std::mutex mutex;
    std::vector<std::shared_ptr<const LossWatch>> watches;
    std::shared_ptr<const LossWatch> last;  // that has lost ranks: others throw its error
    // Null if another thread is about to destroy the mesh.
    void add(std::shared_ptr<const LossWatch> watch);
  };
  static KeptWatches& kept();
  static std::shared_ptr<const LossWatch> last_with_losses();

  LossWatch(std::shared_ptr<NodeBoard> board, RankNames names, std::string mesh,
            const mpi::CommunicatorView& comm, std::int64_t exclude_after,
            std::unique_ptr<LossLink> link);

  bool look(bool at_once);
  void begin_round_for(std::size_t slot, std::uint64_t word);
  void exclude_late(const std::vector<int>& awaited);
  void exclude_if_late(RankArea& area) const;
  void wait_until_all_leave() const;
  void end_excluded() const;
  static void end_all_excluded();
  static void hear_stops();
  bool notice();
  void decide_fates(std::uint64_t round) const;
  [[nodiscard]] Loss decide_with_other_nodes() const;
  // Nothing if the other mesh has not decided yet, or too few of its ranks survive.
  [[nodiscard]] std::optional<std::vector<int>> own_ranks_lost_in(const LossWatch& other) const;
  [[nodiscard]] bool is_out(std::size_t slot) const;
  [[nodiscard]] bool is_lost(std::size_t slot, std::uint64_t round) const;
  [[noreturn]] void raise_own() const;
  [[nodiscard]] std::int64_t time_of_news() const;

  static std::atomic<std::uint64_t> rounds_seen;
  static std::atomic<bool> stops;
  static std::atomic<std::int64_t> shortest_limit;  // `exclude_after_` of all; 0: none has one
  static std::atomic<std::int64_t> no_news_until;   // await_news() need not wait before

  const std::shared_ptr<NodeBoard> board_;
  const RankNames names_;
  const std::string mesh_;
  const mpi::CommunicatorView comm_;
  const std::int64_t exclude_after_;
  const std::unique_ptr<LossLink> link_;
  std::uint64_t commits_ = 0;  // of this rank, in this mesh
  bool have_ended_commits_ = false;
  std::atomic<bool> has_left_{false};
  std::atomic<std::uint64_t> noticed_{0};  // the last round that this process has seen
  std::atomic<std::int64_t> next_look_{0};
};

}  // namespace rankmesh::detail
