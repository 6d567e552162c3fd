// SPDX-License-Identifier: BSD-3-Clause
// The wait for one of several operations.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/mesh_runtime.hpp"
#include "detail/work_access.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/group/work.hpp"

namespace rankmesh {
namespace {

// A function of the program may end one of the Works meanwhile.
using Operations = std::vector<std::shared_ptr<const detail::AsyncOperation>>;

constexpr std::size_t most_names = 4;
constexpr std::chrono::milliseconds between_notes{100};

// The wait of this rank, as its members in the mesh of the wait see it. No member waits at the same
// point, so each is described by what it does.
WaitPoint point_of(const Operations& operations, Rank self) {
  WaitPoint point;
  std::vector<std::string> names;
  for (const auto& operation : operations) {
    if (names.size() < most_names) names.push_back(operation->point().activity);
    for (const int member : operation->point().members)
      if (std::ranges::find(point.members, member) == point.members.end())
        point.members.push_back(member);
  }
  point.activity =
      operations.size() == 1
          ? names.front()
          : fmt::format("wait_any of {} operations: {}{}", operations.size(),
                        fmt::join(names, "; "), operations.size() > names.size() ? "; ..." : "");
  // Members that wait for the same operations must not end with this wait, which may be short.
  point.key = hash_bytes(fmt::format("wait_any of rank {}", self.value())).low;
  point.may_repeat = true;
  point.is_in_mesh = false;  // it enters the mesh at each poll
  return point;
}

}  // namespace

std::optional<std::size_t> detail::WorkAccess::wait_any(std::span<Work> works,
                                                        std::optional<Deadline::Duration> timeout) {
  Operations operations;  // of the first mesh
  std::shared_ptr<detail::MeshRuntime> runtime;
  for (Work& work : works) {
    if (work.operation_ == nullptr) continue;
    if (work.operation_->is_deferred && work.operation_->failure.empty())
      work.wait();  // which throws
    if (runtime == nullptr) runtime = work.runtime_;
    if (work.runtime_ == runtime) operations.push_back(work.operation_);
  }
  if (runtime == nullptr) return std::nullopt;
  // An operation that has failed keeps its error for its own wait.
  const auto has_ended = [](const Work& work) {
    if (work.operation_ == nullptr) return false;
    const auto mesh = work.runtime_;  // it must outlive the lock
    const detail::CallLock lock{*mesh};
    mesh->in_flight.continue_in_this_thread();
    return mesh->in_flight.look(work.operation_) || !work.operation_->failure.empty();
  };
  WaitMonitor& monitor = runtime->control->monitor;
  Deadline next_notes{between_notes};
  auto ended = std::ranges::find_if(works, has_ended);
  const auto look = [&] {
    if (ended == works.end()) ended = std::ranges::find_if(works, has_ended);
    if (ended != works.end() || !next_notes.passed()) return ended != works.end();
    next_notes = Deadline{between_notes};
    for (const auto& operation : operations) monitor.require_not_given_up(operation->point());
    return false;
  };
  if (ended == works.end()) {
    const auto limit = timeout
                           ? detail::MeshRuntime::WaitLimit{Deadline{*timeout}, TimeLimit::argument}
                           : runtime->wait_limit(runtime->control->timeout);
    WaitPoint point = point_of(operations, runtime->rank);
    point.limit = limit.option;
    monitor.wait(look, point, limit.deadline);
  }
  // This throws. A loop of wait_any goes on with the other operations.
  if (!ended->operation_->failure.empty()) std::exchange(*ended, Work{}).wait();
  (void)ended->test_alone();
  return ended - works.begin();
}

std::optional<std::size_t> wait_any(std::span<Work> works, Deadline::Duration timeout) {
  return detail::WorkAccess::wait_any(works, timeout);
}

std::optional<std::size_t> wait_any(std::span<Work> works) {
  return detail::WorkAccess::wait_any(works, std::nullopt);
}

}  // namespace rankmesh
