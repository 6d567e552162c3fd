// SPDX-License-Identifier: BSD-3-Clause
#include "detail/compared_transport.hpp"

#include <optional>
#include <utility>

#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh {
namespace {

std::optional<Blocks> copy_of(const Blocks* blocks) {
  return blocks == nullptr ? std::nullopt : std::optional{*blocks};
}

// An operation of MPI that begins with a meeting.
class ComparedPending final : public Pending {
 public:
  // @param is_early  Whether MPI begins at once, instead of after the meeting.
  ComparedPending(const Call& call, ShmTransport& comparison, MpiTransport& mpi, bool is_early)
      : mpi_{mpi}, record_{std::make_unique<Record>(call)} {
    comparison.throw_if_ended();
    if (is_early) carried_ = mpi.start(call);
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
    if (carried_ == nullptr) carried_ = mpi_.start(record_->meeting);
    return carried_->test();
  }
  [[nodiscard]] std::vector<std::int64_t> awaited() const override {
    return meeting_ == nullptr ? std::vector<std::int64_t>{} : meeting_->awaited();
  }

 private:
  // The blocks of a call need not outlive start(), and the meeting publishes them later.
  struct Record {
    explicit Record(const Call& call)
        : in_blocks{copy_of(call.in_blocks)},
          out_blocks{copy_of(call.out_blocks)},
          meeting{call, true} {
      meeting.in_blocks = in_blocks ? &*in_blocks : nullptr;
      meeting.out_blocks = out_blocks ? &*out_blocks : nullptr;
    }
    std::optional<Blocks> in_blocks, out_blocks;
    shm::Meeting meeting;
  };
  MpiTransport& mpi_;
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
  run_or_leak([&] { waiter.wait(call, 0, [&] { return pending->test(); }, {}); }, pending);
}

std::unique_ptr<Pending> ComparedTransport::start(const Call& call) {
  if (is_point_to_point(call.operation)) return mpi_.start(call);
  return std::make_unique<ComparedPending>(call, comparison_, mpi_, true);
}

std::unique_ptr<Pending> ComparedTransport::start_to_wait(const Call& call) {
  if (is_point_to_point(call.operation)) return mpi_.start(call);
  return std::make_unique<ComparedPending>(call, comparison_, mpi_, false);
}

}  // namespace rankmesh
