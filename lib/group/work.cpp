#include "rankmesh/group/work.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "rankmesh/group/detail/in_flight.hpp"

namespace rankmesh {
namespace detail {

void InFlight::forget() {
  pending.reset();
  kept.reset();
  std::erase_if(services->in_flight, [&](const auto& other) { return other.get() == this; });
}

void InFlight::fail(const std::string& why) {
  failure = why;
  channel->broken = why;
  // MPI may still write to what the operation lent it: that memory is never given back.
  (void)pending.release();                           // NOLINT
  (void)new std::shared_ptr<void>{std::move(kept)};  // NOLINT
  std::erase_if(services->in_flight, [&](const auto& other) { return other.get() == this; });
}

bool InFlight::test() {
  if (!failure.empty())
    throw ClosedError{failure, "the operation failed earlier and will never be complete"};
  if (is_gathered) return false;
  if (pending == nullptr) return true;
  const auto self = services;  // forget() may drop the last other reference
  try {
    if (!pending->test()) return false;
  } catch (const UsageError&) {
    forget();  // a message of another length: the operation is complete
    throw;
  } catch (const Error& error) {
    fail(error.message());
    throw;
  }
  forget();
  return true;
}

void InFlight::wait(const Deadline& deadline) {
  if (is_gathered)
    throw UsageError{fmt::format("{}: waited for inside its NcclGroup", step.activity),
                     "end the group first: nothing of it has been issued"};
  try {
    services->monitor->wait(
        [&] {
          if (test()) return true;
          // Others may wait for what this rank has under way elsewhere. MPI's share of that
          // progresses in the test above.
          if (services->advance_shared) services->advance_shared();
          return false;
        },
        step, deadline);
  } catch (const TimeoutError& error) {
    fail(error.message());
    throw;
  }
}

void progress(MeshServices& services) {
  for (const auto& operation :
       std::vector{services.in_flight}) {  // a copy: what ends leaves the list
    try {
      (void)operation->test();
    } catch (const Error& error) {
      operation->failure = error.message();
    }
  }
}

void finish_in_flight(MeshServices& services, const Channel* channel, const Deadline& deadline) {
  for (const auto& operation : std::vector{services.in_flight})
    if (channel == nullptr || operation->channel.get() == channel) operation->wait(deadline);
}

void abandon_in_flight(MeshServices& services) noexcept {
  for (const auto& operation : services.in_flight) {
    operation->failure = "the mesh is gone";
    if (operation->on_device) continue;
    (void)operation->pending.release();                           // NOLINT: lent to MPI
    (void)new std::shared_ptr<void>{std::move(operation->kept)};  // NOLINT
  }
  services.in_flight.clear();
}

}  // namespace detail

bool Work::test() {
  if (state_ == nullptr) return true;
  const detail::CallGuard guard{*state_->services};
  if (!state_->test()) return false;
  state_.reset();
  return true;
}

void Work::wait() {
  if (state_ == nullptr) return;
  const detail::CallGuard guard{*state_->services};
  if (state_->on_device && state_->pending != nullptr && state_->failure.empty())
    state_->pending->order_before(state_->stream);
  else
    state_->wait(Deadline{state_->channel->timeout});
}

void Work::wait(Deadline::Duration timeout) {
  if (state_ == nullptr) return;
  const detail::CallGuard guard{*state_->services};
  state_->wait(Deadline{timeout});
  state_.reset();
}

}  // namespace rankmesh
