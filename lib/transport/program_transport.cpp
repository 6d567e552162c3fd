// SPDX-License-Identifier: BSD-3-Clause
#include "detail/program_transport.hpp"

#include <exception>

#include <fmt/format.h>

#include "rankmesh/mpi/error.hpp"
#include "wait/detail/progress.hpp"

namespace rankmesh {

// An asynchronous operation.
class ProgramTransport::ProgramCall final : public Pending {
 public:
  ProgramCall(const Call& call, const ProgramTransport& transport)
      : transport_{transport}, operation_{call.operation} {
    calling([&] { carried_ = transport.own_->start(call); });
  }
  bool test() override {
    const detail::InFunction mark;
    bool is_complete = false;
    calling([&] { is_complete = carried_ == nullptr || carried_->test(); });
    return is_complete;
  }

 private:
  template <class Action>
  void calling(Action&& action) const {
    try {
      action();
    } catch (...) {
      transport_.fail(fmt::format("{}, asynchronous", to_string(operation_)));
    }
  }

  const ProgramTransport& transport_;
  Operation operation_;
  std::unique_ptr<Pending> carried_;
};

bool ProgramTransport::supports(const Call& call) const {
  if (call.user != nullptr) return false;
  if (is_point_to_point(call.operation) && !call.is_on_device()) return false;
  return (!call.is_async || own_->has_async_forms()) && own_->supports(call);
}

std::string ProgramTransport::why_not(const Call& call) const {
  if (is_point_to_point(call.operation) && !call.is_on_device())
    return "messages between two members do not use transports of the program";
  if (call.user != nullptr) return "transports of the program do not run functions of the program";
  if (call.is_async && !own_->has_async_forms()) return "it has no asynchronous forms";
  return own_->why_not(call);
}

// `why` counts, and not what else goes wrong. Nobody could catch an exception.
void ProgramTransport::give_up(const Error& why) {
  const detail::InFunction mark;
  try {
    own_->give_up(why);
  } catch (...) {
  }
}

void ProgramTransport::run(const Call& call, Waiter& waiter) {
  mpi::require_not_finalised();
  const detail::InFunction mark;
  try {
    own_->run(call, waiter);
  } catch (...) {
    fail(waiter.activity_of(call));
  }
}

std::unique_ptr<Pending> ProgramTransport::start(const Call& call) {
  mpi::require_not_finalised();
  const detail::InFunction mark;
  if (call.is_on_device()) try {
      return own_->start(call);
    } catch (...) {
      fail(fmt::format("{}, asynchronous", to_string(call.operation)));
    }
  if (!supports(call)) return mpi_.start(call);
  return std::make_unique<ProgramCall>(call, *this);
}

// Throws the exception that is being handled as a TransportError. An Error too: another kind would
// say something about the group, such as that a UsageError leaves it usable.
void ProgramTransport::fail(const std::string& activity) const {
  std::string what = "an exception that is no std::exception";
  try {
    throw;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  std::throw_with_nested(
      TransportError{fmt::format("{}: transport '{}': {}", activity, identity_.name, what),
                     "the group is broken; the cause may be on another member"});
}

}  // namespace rankmesh
