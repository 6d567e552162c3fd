// SPDX-License-Identifier: BSD-3-Clause
#include "detail/communicators.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/detail/blocked_signals.hpp"
#include "base/detail/patience.hpp"
#include "mpi/detail/job_end.hpp"
#include "mpi/detail/returned_errors.hpp"
#include "mpi/detail/unfinished.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/backoff.hpp"

namespace rankmesh::detail {
namespace {

// A communicator that a thread creates.
struct Creation {
  std::function<mpi::Communicator()> create;
  mpi::Communicator created{};
  std::exception_ptr failure{};
  std::atomic<bool> is_over{false};

  void run() {
    try {
      created = create();
    } catch (...) {
      failure = std::current_exception();
    }
    is_over = true;
  }
  mpi::Communicator result() {
    if (failure != nullptr) std::rethrow_exception(failure);
    return std::move(created);
  }
};

// The ranks that are lost were needed, or the others have come meanwhile: then it ends soon.
bool is_over_in_time(const Creation& creation, std::uint64_t losses_before, const Deadline& limit,
                     const mpi::CommunicatorView& comm, const std::vector<int>& members) {
  LossWatch::Waiting waiting;
  std::optional<Deadline> end;
  Backoff backoff{{.yields = std::chrono::milliseconds{1}}};
  while (!creation.is_over) {
    LossWatch::look_at_all(waiting, comm, [&] { return members; });
    if (!end && LossWatch::count() != losses_before) end.emplace(patience().creation);
    if (limit.passed() || (end && end->passed())) return false;
    backoff.pause();
  }
  return true;
}

template <class Run>
std::thread start_thread(Run&& run) {
  const BlockedSignals blocked;
  return std::thread{std::forward<Run>(run)};
}

}  // namespace

mpi::Communicator create_bounded(const ControlPlane& control, std::uint64_t losses_before,
                                 const std::vector<int>& members,
                                 const std::function<mpi::Communicator()>& create) {
  if (!mpi::is_survivor() && !mpi::may_job_lose_ranks()) return create();
  const Deadline limit = control.deadline();
  const auto creation = std::make_shared<Creation>(create);
  if (!mpi::has_one_thread()) {
    start_thread([creation] { creation->run(); }).detach();
    if (is_over_in_time(*creation, losses_before, limit, control.with_spares(), members))
      return creation->result();
    if (LossWatch::count() != losses_before) LossWatch::raise(control.losses.get());
    throw TimeoutError{
        fmt::format("MPI did not create a communicator within {} s", limit.seconds()),
        "check whether a rank has ended while the mesh was opened",
        {}};
  }
  // This thread may not ask MPI who is late.
  std::thread watch = start_thread([creation, losses_before, limit] {
    if (!is_over_in_time(*creation, losses_before, limit, {}, {}))
      mpi::end_job(
          "rankmesh",
          "a rank was lost while MPI created a communicator with it, which never ends; with "
          "MPI_THREAD_MULTIPLE (mpi::ThreadLevel::multiple), this rank would survive",
          1);
  });
  creation->run();
  watch.join();
  return creation->result();
}

GroupCommunicator make_communicator(const GroupDescription& group, const ControlPlane& control) {
  if (group.ranks.size() == 1) return {{}, mpi::CommunicatorView{MPI_COMM_SELF}};
  // The tag is one of those that every MPI supports. Groups that have the same tag do not meet,
  // because members create their common groups in the same order.
  constexpr std::int64_t tags = 1 << 14;
  try {
    const std::vector<int> ranks = group.ranks_of_mesh();
    const auto create = [mesh = control.comm(), ranks,
                         tag = static_cast<int>(group.number % tags)] {
      return mpi::create_group(mesh, ranks, tag);
    };
    mpi::Communicator owned = create_bounded(control, control.losses_before, ranks, create);
    const mpi::CommunicatorView view = owned.view();
    return {std::move(owned), view};
  } catch (const mpi::MpiError& error) {
    throw mpi::MpiError{
        error.code(),
        fmt::format("the communicator of '{}' cannot be created: {}", group.name, error.message()),
        "a process can have a limited number of communicators, in MPICH about 2,000: close groups "
        "and meshes that are no longer used, and free the program's own communicators"};
  }
}

}  // namespace rankmesh::detail
