// SPDX-License-Identifier: BSD-3-Clause
// The mesh of the survivors after a loss, and the step from which they go on.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/communicators.hpp"
#include "detail/open_loss_link.hpp"
#include "detail/state.hpp"
#include "mpi/detail/job_end.hpp"
#include "mpi/detail/survivors.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/layout/shrink.hpp"
#include "rankmesh/mesh/mesh.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "rankmesh/wait/monitored_barrier.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "wait/detail/few_polls.hpp"
#include "wait/detail/published_wait.hpp"

namespace rankmesh {
namespace {

using detail::LossWatch;

LossWatch& watch_of(const detail::MeshState& state, const char* function) {
  if (state.control->losses == nullptr)
    throw UsageError{
        fmt::format("{} is called on a mesh that does not survive lost ranks", function),
        "set MeshOptions::survive when you open the mesh"};
  return *state.control->losses;
}

// Returns the ranks of the next mesh and those that stay spare, as ranks of this mesh in the order
// of the next one.
std::vector<Rank> ranks_of_next(const Shrunk& shrunk, ShrinkPolicy policy) {
  std::vector<Rank> members(static_cast<std::size_t>(shrunk.plan->world_size()));
  for (std::size_t old = 0; old < shrunk.new_rank.size(); ++old)
    if (shrunk.new_rank[old] >= 0)
      members[static_cast<std::size_t>(shrunk.new_rank[old])] =
          Rank{static_cast<std::int64_t>(old)};
  if (policy == ShrinkPolicy::spare)
    for (const std::int64_t idle : shrunk.idle) members.emplace_back(idle);
  return members;
}

std::string why_none_remains(const MeshPlan& plan, ShrinkPolicy policy,
                             const std::vector<Rank>& lost) {
  if (policy != ShrinkPolicy::spare) return "no replica is complete";
  const auto is_member = [&](Rank rank) { return rank.value() < plan.world_size(); };
  return std::ranges::count_if(lost, is_member) == plan.world_size()
             ? "only spare ranks are left, which have no data of the mesh"
             : "too few spare ranks are left";
}

std::vector<int> to_ints(const std::vector<Rank>& members) {
  std::vector<int> ranks;
  for (const Rank member : members) ranks.push_back(member.to_int());
  return ranks;
}

// Waits for the other members of the next mesh, without MPI, because a rank may have died in it.
void meet(detail::MeshState& state, std::uint64_t round, const std::vector<Rank>& members,
          LossWatch::Gathering meeting) {
  LossWatch& watch = *state.control->losses;
  watch.come(round, meeting);
  const Deadline deadline = state.deadline();
  std::optional<detail::PublishedWait> published;
  LossWatch::Waiting waiting;
  Backoff backoff{{.yields = std::chrono::milliseconds{20}}};
  while (!watch.have_met(round, members, meeting)) {
    if (watch.round() != round) LossWatch::raise(&watch);
    LossWatch::look_at_all(waiting, state.control->with_spares(), [&] { return to_ints(members); });
    if (!published)
      published.emplace(&state.control->board(), record::Wait{.text = "next() of the mesh"});
    if (deadline.passed()) {
      const std::vector<Rank> missing = watch.missing(round, members, meeting);
      const auto names = missing | std::views::transform(state.control->names);
      throw TimeoutError{fmt::format("next() of the mesh did not end within {} s; {} did not come",
                                     deadline.seconds(),
                                     missing.empty() ? std::string{"some ranks"}
                                                     : fmt::format("{}", fmt::join(names, ", "))),
                         "call next() on every survivor", missing};
    }
    backoff.pause();
  }
}

// MPI serves the creation with the smallest tag first, so one that hangs does not keep back those
// of later rounds. Every MPI allows these tags.
int tag_of(std::uint64_t round) { return (1 << 14) - static_cast<int>(round % (1 << 13)); }

std::string text_of(const MeshPlan& plan) {
  std::vector<std::string> dimensions;
  for (const auto& dimension : plan.views().front().dimensions())
    dimensions.push_back(fmt::format("{}={}", dimension.name, dimension.size));
  return fmt::format("{}", fmt::join(dimensions, ","));
}

std::unique_ptr<detail::MeshState> open_next(const detail::MeshState& state,
                                             const LossWatch::Loss& loss, const MeshPlan& plan,
                                             const std::vector<Rank>& members) {
  const detail::ControlPlane& control = *state.control;
  const std::uint64_t losses_before = LossWatch::count();
  if (control.losses->round() != loss.round) LossWatch::raise(control.losses.get());
  std::vector<int> ranks = to_ints(members);
  mpi::Communicator reserve = detail::create_bounded(
      control, losses_before, ranks,
      [reserve = control.reserve.view(), ranks = std::move(ranks), tag = tag_of(loss.round),
       mesh = control.key_of_mesh] { return mpi::create_of_survivors(reserve, ranks, tag, mesh); });
  MeshOptions options = state.options;
  options.reorder.clear();
  detail::NextMesh next{plan, loss.step, std::move(reserve)};
  return detail::open_mesh(
      next.reserve.view().native(), std::move(options), text_of(plan), [&] { return state.spec; },
      &next);
}

// Runs a part of next(). If more ranks are lost meanwhile, the error is that of this mesh, which is
// the one that the program knows. The next mesh may have found the loss first, or a result of it. A
// member that cannot open the next mesh is lost as soon as its exception leaves next().
template <class Part>
auto finding_losses_of(const detail::MeshState& state, const LossWatch::Loss& loss, Part&& part) {
  LossWatch& watch = *state.control->losses;
  const std::uint64_t known = LossWatch::count();
  try {
    return part();
  } catch (const Error& error) {
    if (dynamic_cast<const PeerError*>(&error) != nullptr) LossWatch::await_news(known);
    LossWatch::look_after(error, known);
    if (LossWatch::count() != known) watch.learn_from_other_mesh(loss.round);
    if (watch.round() != loss.round) LossWatch::raise(&watch);
    throw;
  }
}

// A spare rank waits until the mesh has lost ranks, for ever. Returns false if it is closed.
bool wait_for_loss(detail::MeshState& state) {
  LossWatch& watch = *state.control->losses;
  const detail::PublishedWait published{&state.control->board(),
                                        record::Wait{.text = "a place in the mesh"}};
  const auto nobody = [] { return std::vector<int>{}; };
  for (LossWatch::Waiting waiting; !watch.has_closed();) {
    if (watch.round() != 0) return true;
    LossWatch::look_at_all(waiting, state.control->comm(), nobody);
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return false;
}

// Closes the mesh on a spare rank, after the others have closed it. Local.
void close_spare(detail::MeshState& state) {
  mpi::record_companions(state.control->losses->processes(),
                         Deadline::Duration{state.control->deadline().seconds()});
  state.control->losses->leave();
  state.control->leave(detail::Presence::closed);
  state.mark_closed();
  state.shared->close();
  state.control->close();
  state.mark.close();
}

// Ends a mesh that has lost ranks. Local.
void end_lost(detail::MeshState& state) {
  state.control->losses->leave();
  state.control->leave(detail::Presence::destroyed);
  state.runtime->in_flight.abandon();
  state.mark_closed();
  state.mark.close();
}

// Meets the others, compares the steps, and asks whether one of them wants to stop.
bool is_stop_requested_by_any(detail::ControlPlane& control, std::int64_t step,
                              const WaitPoint& point) {
  using Maxima = std::array<std::int64_t, 3>;
  struct Votes {
    Maxima own, all;
  };
  MpiMemory<Votes> votes;
  votes->own = {LossWatch::is_stop_requested() ? 1 : 0, step, -step};
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Iallreduce(votes->own.data(), votes->all.data(), 3, MPI_INT64_T, MPI_MAX,
                            control.comm().native(), &request),
             "MPI_Iallreduce");
  votes.wait(request, control.monitor, point, control.deadline());
  const auto [stops, most, minus_least] = votes->all;
  if (most != -minus_least)
    throw MismatchError{
        fmt::format("the ranks commit different steps: from {} to {}", -minus_least, most),
        "pass the same step to commit() on every rank", false};
  return stops != 0;
}

void wait_for_commits(detail::ControlPlane& control, std::int64_t step, const WaitPoint& point) {
  const LossWatch& watch = *control.losses;
  detail::FewPolls few{0, 200};
  do {
    if (watch.have_committed(step)) return;
  } while (few.next());
  control.monitor.wait([&] { return watch.have_committed(step); }, point, control.deadline());
}

// Opens the mesh after a loss. Returns null if this rank has no place in it.
std::unique_ptr<detail::MeshState> open_after_loss(detail::MeshState& state) {
  LossWatch& watch = *state.control->losses;
  const ShrinkPolicy policy = state.options.survive->policy;
  const std::int64_t spares = state.control->spares();
  const LossWatch::Loss loss = watch.decide();
  LossWatch::look_at_all(true);  // counts this round, which would look like a further loss later
  const Shrunk shrunk = detail::remains_of(*state.plan, policy, loss.ranks, spares);
  watch.tell_stop();
  if (!shrunk.plan) {
    watch.leave();
    throw Error{
        fmt::format("no mesh remains: without rank{} {}, {}", loss.ranks.size() == 1 ? "" : "s",
                    RankSet::of(loss.ranks).to_string(60),
                    why_none_remains(*state.plan, policy, loss.ranks)),
        "end the program, and begin again from a checkpoint"};
  }
  if (state.device) {
    (void)state.device->abort();
    state.device->require_working();  // otherwise the next mesh could not be opened on any rank
  }
  const std::vector<Rank> ranks = ranks_of_next(shrunk, policy);
  std::unique_ptr<detail::MeshState> next;
  if (std::ranges::find(ranks, state.control->rank()) != ranks.end()) {
    meet(state, loss.round, ranks, LossWatch::Gathering::before);
    next =
        finding_losses_of(state, loss, [&] { return open_next(state, loss, *shrunk.plan, ranks); });
    meet(state, loss.round, ranks, LossWatch::Gathering::opened);
  } else {
    mpi::record_idle();
  }
  end_lost(state);
  return next;
}

// Returns null if this rank has nothing more to do.
std::unique_ptr<detail::MeshState> next_of(detail::MeshState& state) {
  LossWatch& watch = watch_of(state, "next");
  const bool is_spare = state.control->is_spare();
  const detail::CallLock lock{*state.runtime};
  LossWatch::look_at_all(true);
  if (watch.round() == 0 && !is_spare) watch.learn_from_other_mesh(0);
  if (watch.round() == 0 && !is_spare)
    throw UsageError{"next() is called on a mesh that has lost no rank",
                     "call it after a call has thrown LostRanks"};
  try {
    if (!is_spare || wait_for_loss(state)) return open_after_loss(state);
  } catch (const Error&) {
    // A member may die after all have come to close the mesh.
    if (!is_spare || !watch.has_closed()) throw;
  }
  close_spare(state);
  return nullptr;
}

}  // namespace

bool Mesh::commit(std::int64_t step) {
  detail::MeshState& state = open_state("commit");
  LossWatch& watch = watch_of(state, "commit");
  const detail::CallLock lock{*state.runtime};
  state.control->throw_if_lost();
  if (step < 0) throw UsageError{fmt::format("commit of step {}", step), "number the steps from 0"};
  const WaitPoint point =
      WaitPoint::of_all(state.control->comm().size(), fmt::format("the commit of step {}", step));
  const auto meet_others = [&] {
    monitored_barrier(state.control->comm(), state.control->monitor, point, state.deadline());
  };
  // A word becomes smaller only when nobody waits for it, and does not say that a rank has gone
  // back.
  const bool goes_back = step <= watch.step().value_or(-1);
  watch.begin_commit(step);
  bool stops = false;
  try {
    const detail::AtLook look{*state.control, [&] { watch.require_same_step(step); }};
    if (goes_back && watch.spans_nodes())  // a rank that goes on makes the same call of MPI first
      stops = is_stop_requested_by_any(*state.control, step, point);
    else if (goes_back)
      meet_others();
    if (!watch.commit(step)) state.control->throw_if_newly_lost();
    if (watch.spans_nodes() || goes_back) {
      stops = is_stop_requested_by_any(*state.control, step, point);
    } else {
      wait_for_commits(*state.control, step, point);
      watch.require_same_step(step);
      stops = watch.is_stop_agreed();
    }
  } catch (const MismatchError&) {
    watch.end_commits();
    throw;
  }
  if (stops) request_stop();  // so that the next mesh knows it if those who have asked are lost
  return stops;
}

void Mesh::request_stop() noexcept { LossWatch::request_stop(); }

std::optional<std::int64_t> Mesh::step() const { return watch_of(state(), "step").step(); }

std::optional<Mesh> Mesh::next() {
  for (;;) {
    auto next = next_of(open_state("next", true));
    if (next == nullptr) return std::nullopt;
    if (!next->control->is_spare()) return Mesh{std::move(next)};
    state_ = std::move(next);
  }
}

}  // namespace rankmesh
