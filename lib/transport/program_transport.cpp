// SPDX-License-Identifier: BSD-3-Clause
#include "detail/program_transport.hpp"

#include <exception>
#include <type_traits>

#include <fmt/format.h>

#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/mpi/error.hpp"
#include "wait/detail/progress.hpp"

namespace rankmesh {

// An asynchronous operation.
class ProgramTransport::ProgramCall final : public Pending {
 public:
  ProgramCall(const Call& call, const ProgramTransport& transport)
      : transport_{transport}, operation_{call.operation} {
    calling([&] {
      carried_ = transport.own_->start(call);
      if (carried_ == nullptr)
        throw Error{"start() has returned null",
                    "return a Pending, also of an operation that is complete already"};
    });
  }
  bool test() override {
    return calling([&] { return carried_->test(); });
  }
  [[nodiscard]] std::vector<std::int64_t> awaited() const override { return carried_->awaited(); }
  [[nodiscard]] bool is_in_mpi() const override { return carried_->is_in_mpi(); }
  void order_before(StreamRef stream) override {
    calling([&] { carried_->order_before(stream); });
  }

 private:
  template <class Action>
  std::invoke_result_t<Action> calling(Action&& action) const {
    const detail::InFunction mark;
    try {
      return action();
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
  if (!supports(call)) return mpi_.start(call);
  return std::make_unique<ProgramCall>(call, *this);
}

// Throws the exception that is being handled as a TransportError. An Error too: another kind would
// say something about the group, such as that a UsageError leaves it usable.
void ProgramTransport::fail(const std::string& activity) const {
  const detail::Reasons reasons = detail::current_reasons();
  std::throw_with_nested(TransportError{
      fmt::format("{}: transport '{}': {}", activity, identity_.name, reasons.message),
      reasons.hint_and("the group is broken; the cause may be on another member")});
}

}  // namespace rankmesh
