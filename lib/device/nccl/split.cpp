// SPDX-License-Identifier: BSD-3-Clause
// Communicators that are split from others.
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "device/nccl/detail/phases.hpp"
#include "rankmesh/device/nccl/bootstrap.hpp"

namespace rankmesh::nccl {
namespace {

// Carries out the splits of a phase, and then makes the agreement. If this rank fails, the others
// wait for it in this split or in a later one, so it ends their waits.
// @param splits  Sets its argument to the request that it works on.
template <class Splits>
void run_phase(std::span<const SplitRequest> requests, std::string_view phase,
               const std::string& activity, WaitMonitor& monitor, const Participants& participants,
               BootstrapTimes& times, Splits&& splits) {
  const auto point_of = [&](const SplitRequest& request) {
    return bootstrap_point(request.name, request.identity, request.parent_ranks, phase);
  };
  const auto wait = [&, deadline = participants.deadline()](const Communicator& comm,
                                                            const SplitRequest& request) {
    monitor.wait([&] { return comm.is_ready(); }, point_of(request), deadline);
  };
  std::string failure;
  timed(times.splits, [&] {
    const SplitRequest* current = requests.data();
    try {
      splits(current, wait);
    } catch (const LostRanks&) {
      throw;  // every survivor finds it
    } catch (const Error& error) {
      failure = fmt::format("split of '{}' ({}): {}", current->name,
                            current->parent_ranks.to_string(40), error.message());
    }
  });
  if (!failure.empty())
    for (const SplitRequest& request : requests) monitor.give_up(point_of(request), failure);
  participants.agree(activity, failure);
}

}  // namespace

void make_blocking(std::span<const SplitRequest> requests, WaitMonitor& monitor,
                   const Participants& participants, BootstrapTimes& times,
                   std::vector<std::unique_ptr<Communicator>>& children) {
  const auto splits = [&](const SplitRequest*& current, const auto& wait) {
    const auto begin_all = [&] {
      for (const SplitRequest& request : requests) {
        current = &request;
        children.push_back(Communicator::split(*request.parent, request.colour, request.key,
                                               request.name, request.options));
      }
    };
    if (!requests.empty()) (void)requests.front().parent->library().grouped(begin_all);
    for (const SplitRequest& request : requests) {
      current = &request;
      wait(*request.parent, request);
    }
  };
  run_phase(requests, "blocking communicator", "the blocking NCCL communicators", monitor,
            participants, times, splits);
}

void release(std::span<const std::unique_ptr<Communicator>> originals, const Deadline& deadline,
             const rankmesh::detail::ControlPlane& mesh) {
  std::vector<Communicator*> comms;
  for (const auto& comm : originals) comms.push_back(comm.get());
  Communicator::finalize(comms);
  for (const auto& comm : originals) comm->wait_until_ready(deadline, &mesh);
  for (const auto& comm : originals) comm->destroy();
}

void split(std::span<const SplitRequest> requests, WaitMonitor& monitor,
           const Participants& participants, CallWatch& watch, BootstrapTimes& times,
           std::vector<std::unique_ptr<Communicator>>& children) {
  const Deadline deadline = participants.deadline();
  const auto splits = [&](const SplitRequest*& current, const auto& wait) {
    for (const SplitRequest& request : requests) {
      current = &request;
      const auto begin = [&] {
        children.push_back(Communicator::split(*request.parent, request.colour, request.key,
                                               request.name, request.options));
      };
      // A blocking parent waits for its other ranks in this call. A rank that has failed waits for
      // them in the agreement at the end, so they must return before the deadline of that rank.
      if (request.parent->is_blocking())
        watch.run(std::array{request.parent}, deadline.left() / 2, begin);
      else
        begin();
      wait(*request.parent, request);
      // NCCL sets the child's handle before the parent becomes ready, not in the call.
      if (const Communicator* child = children.back().get()) wait(*child, request);
    }
  };
  run_phase(requests, "split", "the split NCCL communicators", monitor, participants, times,
            splits);
}

}  // namespace rankmesh::nccl
