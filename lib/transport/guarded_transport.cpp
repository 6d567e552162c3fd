// SPDX-License-Identifier: BSD-3-Clause
#include "detail/guarded_transport.hpp"

#include <new>
#include <utility>
#include <vector>

#include "detail/kept_call.hpp"
#include "detail/published_call.hpp"
#include "detail/telling_others.hpp"
#include "rankmesh/base/detail/reasons.hpp"

namespace rankmesh {
namespace {

// Keeps a transport from publishing a call that has been published.
class Unpublished {
 public:
  explicit Unpublished(Waiter& waiter)
      : waiter_{waiter}, publication_{std::exchange(waiter.publication, nullptr)} {}
  ~Unpublished() { waiter_.publication = publication_; }
  Unpublished(const Unpublished&) = delete;
  Unpublished& operator=(const Unpublished&) = delete;

 private:
  Waiter& waiter_;
  const detail::Publication* publication_;
};

}  // namespace

// A comparison, and the operation, which is tested only when the calls are equal.
class GuardedTransport::GuardedCall final : public Pending {
 public:
  GuardedCall(const Call& call, detail::CallGuard& guard, RoutedTransport& inner)
      : kept_{call}, guard_{guard}, inner_{inner} {
    comparison_ = guard.start_comparison(call, [this] { carried_ = inner_.start(kept_.call); });
    if (call.user != nullptr) end_ = guard.start_end(call, has_run_);
  }
  bool test() override {
    if (comparison_ != nullptr) {
      if (!comparison_->test()) return false;
      was_cancelled_ = comparison_->was_cancelled();
      comparison_.reset();
    }
    has_run_ = has_run_ || was_cancelled_ || carried_->test();
    if (has_run_) return end_ == nullptr || end_->test();
    // The other end of a message that differs does not continue with other messages either.
    if (is_point_to_point(kept_.call.operation)) guard_.throw_if_ended();
    return false;
  }
  [[nodiscard]] std::vector<std::int64_t> awaited() const override {
    if (comparison_ != nullptr) return comparison_->awaited();
    if (has_run_ && end_ != nullptr) return end_->awaited();
    return carried_ == nullptr ? std::vector<std::int64_t>{} : carried_->awaited();
  }
  [[nodiscard]] bool is_in_mpi() const override {
    return carried_ != nullptr && carried_->is_in_mpi();
  }
  [[nodiscard]] bool is_polled() const override {
    return (comparison_ != nullptr && comparison_->is_polled()) || carried_ == nullptr ||
           end_ != nullptr || carried_->is_polled();
  }
  // A receive that has been compared is not cancelled, because its sender has begun to send.
  void cancel() override {
    if (comparison_ != nullptr) comparison_->cancel();
  }
  [[nodiscard]] bool was_cancelled() const override { return was_cancelled_; }

 private:
  detail::KeptCall kept_;
  detail::CallGuard& guard_;
  RoutedTransport& inner_;
  std::unique_ptr<Pending> comparison_;
  std::unique_ptr<Pending> carried_;  // null until it may begin
  std::unique_ptr<Pending> end_;      // of a call with a function of the program
  bool has_run_ = false;
  bool was_cancelled_ = false;
};

detail::CallGuard* GuardedTransport::guard_of(const Call& call) const {
  if (call.is_on_device()) return nullptr;
  return is_point_to_point(call.operation) ? messages_ : collectives_;
}

void GuardedTransport::run(const Call& call, Waiter& waiter) {
  detail::CallGuard* const guard = guard_of(call);
  if (guard == nullptr) return inner_->run(call, waiter);
  inner_->validate(call);  // before any member goes on
  const bool is_message = is_point_to_point(call.operation);
  const std::uint64_t number = is_message ? 0 : guard->calls() + 1;
  detail::PublishedCall published{waiter, call, number, carrier()};
  const bool starts = guard->meet(call, polls_, waiter);
  published.enter(!starts);
  if (starts) {
    Call started = call;
    started.is_async = true;
    std::unique_ptr<Pending> pending;
    detail::telling_others(*guard, started, number, waiter,
                           [&] { pending = inner_->start(started); });
    waiter.finish(started, number, std::move(pending));
  } else {
    detail::telling_others(*guard, call, number, waiter, [&] {
      const Unpublished unpublished{waiter};
      inner_->run(call, waiter);
    });
  }
  if (call.user != nullptr) {  // the function may have thrown on another member
    static constexpr bool has_run = true;
    if (auto end = guard->start_end(call, has_run)) waiter.finish(call, number, std::move(end));
  }
  published.end();
}

std::unique_ptr<Pending> GuardedTransport::start(const Call& call) {
  detail::CallGuard* const guard = guard_of(call);
  if (guard == nullptr) return inner_->start(call);
  inner_->validate(call);  // before any member goes on
  try {
    return std::make_unique<GuardedCall>(call, *guard, *inner_);
  } catch (const Error& error) {
    guard->give_up(error);
    throw;
  } catch (const std::bad_alloc&) {
    throw;  // the coordinator tells the other members what was too large
  } catch (...) {
    guard->give_up(Error{detail::current_reasons().message});
    throw;
  }
}

}  // namespace rankmesh
