// SPDX-License-Identifier: BSD-3-Clause
#include "detail/compared_transport.hpp"

#include <memory>

#include "detail/kept_call.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh {
namespace {

// A meeting, and the operation of MPI that begins with it.
class ComparedPending final : public Pending {
 public:
  // @param mpi  Null if another transport carries the call.
  ComparedPending(const Call& call, bool is_async, ShmTransport& comparison, MpiTransport* mpi)
      : record_{std::make_unique<Record>(call, is_async)} {
    comparison.throw_if_ended();
    if (mpi != nullptr) carried_ = mpi->start(call);
    meeting_ = comparison.start_meeting(record_->meeting);
  }
  ~ComparedPending() override {
    if (meeting_ == nullptr) return;
    meeting_.reset();
    (void)record_.release();  // NOLINT: the engine may still refer to it
  }
  bool test() override {
    if (meeting_ != nullptr) {
      if (!meeting_->test()) return false;
      meeting_.reset();
    }
    return carried_ == nullptr || carried_->test();
  }

 private:
  struct Record {
    Record(const Call& call, bool is_async) : kept{call}, meeting{kept.call, is_async} {}
    detail::KeptCall kept;
    shm::Meeting meeting;
  };
  std::unique_ptr<Record> record_;
  std::unique_ptr<Pending> meeting_;
  std::unique_ptr<Pending> carried_;
};

}  // namespace

void ComparedTransport::run(const Call& call, Waiter& waiter) {
  if (is_point_to_point(call.operation)) return mpi_.run(call, waiter);
  const shm::Meeting meeting{call, false};
  comparison_.meet(meeting, waiter);
  mpi_.set_calls(comparison_.calls() - 1);
  if (!meeting.any_is_async) return mpi_.run(call, waiter);
  // MPI does not match a blocking collective with a non-blocking one.
  auto pending = mpi_.start(call);
  run_or_leak([&] { waiter.wait(call, 0, [&] { return pending->test(); }); }, pending);
}

std::unique_ptr<Pending> ComparedTransport::start(const Call& call) {
  if (is_point_to_point(call.operation)) return mpi_.start(call);
  return std::make_unique<ComparedPending>(call, true, comparison_, &mpi_);
}

std::unique_ptr<Pending> ComparedTransport::start_comparison(const Call& call) {
  return std::make_unique<ComparedPending>(call, false, comparison_, nullptr);
}

}  // namespace rankmesh
