// SPDX-License-Identifier: BSD-3-Clause
#include "transport/detail/mpi_transport.hpp"

#include <algorithm>
#include <vector>

#include "detail/call_errors.hpp"
#include "detail/clear_output.hpp"
#include "detail/mpi_call.hpp"
#include "detail/mpi_message.hpp"
#include "detail/published_call.hpp"
#include "detail/reduce_kernels.hpp"
#include "detail/staged_call.hpp"
#include "mpi/detail/returned_errors.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh {
namespace {

using mpi::check;

// Does what MPI does not: divides the sums of an average, and sets the first result of an
// exclusive scan.
void finish(const Call& call, int rank, int size) {
  if (rank == 0 && facts_of(call.operation).excludes_own) return detail::clear_output(call);
  if (call.reduction == ReduceOp::avg && reduces(call.operation) &&
      has_output(call.operation, call.root.value() == rank))
    detail::divide(call.out.type, call.out.data, call.out.count, size);
}

class MpiCollective final : public Pending {
 public:
  // @param is_foreign  Whether the communicator has a handler of the program.
  MpiCollective(const Call& call, const mpi::CommunicatorView& comm, std::int64_t largest,
                bool is_foreign)
      : user_{call.user == nullptr ? nullptr : call.user->copy()},
        call_{with_user(call, user_.get())},
        comm_{comm.native()},
        is_foreign_{is_foreign},
        rank_{comm.rank()},
        size_{comm.size()},
        issue_{call_, comm, largest, &requests_} {
    // MPI raises errors on the communicator, and errors of MPI_Testall on MPI_COMM_WORLD.
    mpi::returning_errors(comm_, is_foreign_, true, [&] { issue_(); });
    statuses_.resize(requests_.size());
  }
  bool test() override {
    if (complete_) return true;
    int done = 0;
    // MPI_ERR_IN_STATUS says only that one of the requests failed; its status has the error.
    int code = MPI_SUCCESS;
    mpi::returning_errors(comm_, is_foreign_, true, [&] {
      code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                         statuses_.data());
    });
    if (code == MPI_ERR_IN_STATUS)
      for (const MPI_Status& status : statuses_)
        if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING)
          code = status.MPI_ERROR;
    check(code, "MPI_Testall");
    if (done == 0) return false;
    complete_ = true;
    if (user_) check_user(*user_);
    finish(call_, rank_, size_);
    return true;
  }
  [[nodiscard]] bool is_in_mpi() const override { return !complete_; }
  [[nodiscard]] bool is_polled() const override { return false; }

 private:
  static Call with_user(Call call, UserReduction* user) {
    call.user = user;
    return call;
  }

  // A copy, because the program's object may be destroyed while an operation that was given up is
  // still in progress.
  std::unique_ptr<UserReduction> user_;
  Call call_;
  MPI_Comm comm_;
  bool is_foreign_;
  int rank_, size_;
  detail::MpiCall::Requests requests_;
  std::vector<MPI_Status> statuses_;
  detail::MpiCall issue_;
  bool complete_ = false;
};

}  // namespace

MpiTransport::MpiTransport(const mpi::CommunicatorView& comm, std::int64_t largest_count,
                           std::uint64_t* calls, bool polls)
    : calls_{calls},
      comm_{comm},
      largest_count_{std::clamp<std::int64_t>(largest_count, 1, std::numeric_limits<int>::max())},
      polls_{polls},
      is_foreign_{!mpi::returns_errors(comm.native())} {}

bool MpiTransport::supports(const Call& call) const { return !call.is_on_device(); }

void MpiTransport::validate(const Call& call) const {
  if (call.has_blocks()) detail::require_int_blocks(call);
}

// Returns the number of a collective that begins.
std::uint64_t MpiTransport::count(const Call& call) {
  return calls_ == nullptr || is_point_to_point(call.operation) ? 0 : ++*calls_;
}

void MpiTransport::run_polled(const Call& call, Waiter& waiter) {
  const std::uint64_t number =
      calls_ == nullptr || is_point_to_point(call.operation) ? 0 : *calls_ + 1;
  detail::PublishedCall published{waiter, call, number, carrier()};
  waiter.finish(call, number, start(call));
  published.end();
}

void MpiTransport::run(const Call& call, Waiter& waiter) {
  mpi::require_not_finalised();
  if (polls_) return run_polled(call, waiter);
  const std::uint64_t number = count(call);
  const auto carry_this = [&] {
    try {
      carry(call);
    } catch (const detail::WrongLength& error) {
      error.throw_in(waiter.activity_of(call));
    }
  };
  if (waiter.publication == nullptr) return carry_this();  // a guard has published it
  detail::PublishedCall published{waiter, call, number, carrier()};
  published.enter();
  carry_this();
  published.end();
}

void MpiTransport::carry(const Call& call) {
  std::optional<mpi::ReturnedErrors> returned_errors;
  if (is_foreign_) [[unlikely]]
    returned_errors.emplace(comm_.native());
  if (is_point_to_point(call.operation)) return detail::run_message(call, comm_, largest_count_);
  detail::MpiCall issue{call, comm_, largest_count_, nullptr};
  issue();
  finish(call, comm_.rank(), comm_.size());
  if (call.user != nullptr) check_user(*call.user);
}

std::optional<std::int64_t> MpiTransport::arrived(RankInGroup from, int tag) {
  mpi::require_not_finalised();
  int is_there = 0;
  MPI_Status status{};
  mpi::check(MPI_Iprobe(static_cast<int>(from.value()), tag, comm_.native(), &is_there, &status),
             "MPI_Iprobe");
  if (is_there == 0) return std::nullopt;
  MPI_Count bytes = 0;
  mpi::check(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
  return static_cast<std::int64_t>(bytes);
}

std::unique_ptr<Pending> MpiTransport::start(const Call& call) {
  if (!polls_) return start_in_place(call);
  return std::make_unique<detail::StagedCall>(
      call, RankInGroup{comm_.rank()}, comm_.size(),
      [this](const Call& staged) { return start_in_place(staged); });
}

std::unique_ptr<Pending> MpiTransport::start_in_place(const Call& call) {
  mpi::require_not_finalised();
  if (is_point_to_point(call.operation))
    return std::make_unique<detail::MpiMessage>(call, comm_, largest_count_, is_foreign_);
  count(call);
  return std::make_unique<MpiCollective>(call, comm_, largest_count_, is_foreign_);
}

}  // namespace rankmesh
