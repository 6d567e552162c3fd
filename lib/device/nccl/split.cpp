// SPDX-License-Identifier: BSD-3-Clause
// Communicators that are split from others.
#include <array>

#include <fmt/format.h>

#include "device/nccl/detail/phases.hpp"
#include "rankmesh/device/nccl/bootstrap.hpp"

namespace rankmesh::nccl {
namespace {

WaitPoint point_of(const SplitRequest& request) {
  return bootstrap_point(request.name, request.identity, request.parent_ranks, "split");
}

WaitPoint point_of(const BlockingRequest& request) {
  return bootstrap_point(request.name, request.identity, request.ranks, "blocking communicator");
}

std::string failure_of(const std::string& name, const RankSet& ranks, const Error& error) {
  return fmt::format("split of '{}' ({}): {}", name, ranks.to_string(40), error.message());
}

// Begins a split. If the parent is blocking, this call waits for the other ranks of the parent. A
// rank that has failed waits for these ranks in the agreement at the end. Therefore they must
// return before the deadline of that rank.
void begin_split(const SplitRequest& request, CallWatch& watch, const Deadline& deadline,
                 std::vector<std::unique_ptr<Communicator>>& children) {
  const auto begin = [&] {
    children.push_back(Communicator::split(*request.parent, request.colour, request.key,
                                           request.name, request.options));
  };
  if (request.parent->is_blocking())
    watch.run(std::array{request.parent}, deadline.left() / 2, begin);
  else
    begin();
}

}  // namespace

void make_blocking(std::span<const BlockingRequest> requests, WaitMonitor& monitor,
                   const Participants& participants, BootstrapTimes& times,
                   std::vector<std::unique_ptr<Communicator>>& children) {
  const Deadline deadline = participants.deadline();
  std::string failure;
  timed(times.splits, [&] {
    const BlockingRequest* current = requests.data();
    const auto begin_all = [&] {
      for (const BlockingRequest& request : requests) {
        current = &request;
        children.push_back(Communicator::split(*request.original, 0, request.original->rank(),
                                               request.name, request.options));
      }
    };
    try {
      if (!requests.empty()) (void)requests.front().original->library().grouped(begin_all);
      for (const BlockingRequest& request : requests) {
        current = &request;
        monitor.wait([&] { return request.original->is_ready(); }, point_of(request), deadline);
      }
    } catch (const Error& error) {
      failure = failure_of(current->name, current->ranks, error);
    }
  });
  // If this rank failed, the others wait for it. End their waits.
  if (!failure.empty())
    for (const BlockingRequest& request : requests) monitor.give_up(point_of(request), failure);
  participants.verify("the blocking NCCL communicators", failure);
}

void release(std::span<const std::unique_ptr<Communicator>> originals, const Deadline& deadline,
             rankmesh::detail::MeshLock* mesh) {
  std::vector<Communicator*> comms;
  for (const auto& comm : originals) comms.push_back(comm.get());
  Communicator::finalize(comms);
  for (const auto& comm : originals) comm->wait_until_ready(deadline, mesh);
  for (const auto& comm : originals) comm->destroy();
}

void split(std::span<const SplitRequest> requests, WaitMonitor& monitor,
           const Participants& participants, CallWatch& watch, BootstrapTimes& times,
           std::vector<std::unique_ptr<Communicator>>& children) {
  const Deadline deadline = participants.deadline();
  std::string failure;
  timed(times.splits, [&] {
    for (const SplitRequest& request : requests) {
      try {
        begin_split(request, watch, deadline, children);
        const WaitPoint point = point_of(request);
        monitor.wait([&] { return request.parent->is_ready(); }, point, deadline);
        // NCCL sets the child's handle before the parent becomes ready, not in the call.
        if (Communicator* child = children.back().get())
          monitor.wait([&] { return child->is_ready(); }, point, deadline);
      } catch (const Error& error) {
        failure = failure_of(request.name, request.parent_ranks, error);
        break;
      }
    }
  });
  // If this rank failed, the others wait for it in this split or a later one. End their waits.
  if (!failure.empty())
    for (const SplitRequest& request : requests) monitor.give_up(point_of(request), failure);
  participants.verify("the split NCCL communicators", failure);
}

}  // namespace rankmesh::nccl
