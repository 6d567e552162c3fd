// SPDX-License-Identifier: BSD-3-Clause
// A transport whose calls are guarded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "transport/detail/group_guard.hpp"
#include "transport/detail/routed_transport.hpp"

namespace rankmesh {

/// Carries calls over a transport that neither compares them nor waits for late members with a
/// deadline: MPI, or a transport of the program. Asks the group's guard before each call, so a
/// mistake is found before the transport can return wrong data or wait for ever. Messages without a
/// guard, and calls on device memory, go to the transport as they are.
class GuardedTransport final : public RoutedTransport {
 public:
  /// @param collectives   The guards of the group, which must outlive this object. Without a guard
  /// @param messages      of messages, the transport gets messages as they are.
  /// @param polls         Whether blocking operations are started and polled: they have a deadline
  ///                      that the transport does not know, or a member may give up its call while
  ///                      others have entered the transport already.
  GuardedTransport(std::unique_ptr<RoutedTransport> inner, detail::CallGuard* collectives,
                   detail::MessageGuard* messages, bool polls)
      : inner_{std::move(inner)}, collectives_{collectives}, messages_{messages}, polls_{polls} {}

  [[nodiscard]] std::string_view name() const override { return inner_->name(); }
  [[nodiscard]] record::Carrier carrier() const override { return inner_->carrier(); }
  [[nodiscard]] bool supports(const Call& call) const override { return inner_->supports(call); }
  [[nodiscard]] std::string why_not(const Call& call) const override {
    return inner_->why_not(call);
  }
  void validate(const Call& call) const override { inner_->validate(call); }
  void run(const Call& call, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  [[nodiscard]] bool is_polled(const Call& call) const override {
    return guard_of(call) != nullptr || inner_->is_polled(call);
  }
  [[nodiscard]] std::optional<std::int64_t> arrived(RankInGroup from, int tag) override {
    return messages_ != nullptr ? messages_->arrived(from, tag) : inner_->arrived(from, tag);
  }
  void give_up(const Error& why) override { inner_->give_up(why); }

 private:
  class GuardedCall;
  [[nodiscard]] detail::CallGuard* guard_of(const Call& call) const;

  std::unique_ptr<RoutedTransport> inner_;
  detail::CallGuard* collectives_;
  detail::MessageGuard* messages_;
  bool polls_;
};

}  // namespace rankmesh
