// SPDX-License-Identifier: BSD-3-Clause
// All guards of one group.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/detail/call_guard.hpp"
#include "transport/detail/message_guard.hpp"

namespace rankmesh::detail {

/// The guards of a group. A group of one rank has none.
struct GroupGuard {
  /// Guards and numbers collectives that transports do not compare by themselves.
  CallGuard* collectives = nullptr;
  /// Guards messages between two members; null without the option `check`.
  MessageGuard* messages = nullptr;
  /// Whether calls on device memory are compared too.
  bool compares_on_device = false;
  /// Those that learn who leaves. Transports own some of them.
  std::vector<CallGuard*> all;
  /// Those that no transport owns.
  std::vector<std::unique_ptr<CallGuard>> owned;

  /// Returns the guard of a call, or null.
  [[nodiscard]] CallGuard* of(const Call& call) const {
    return is_point_to_point(call.operation) ? messages : collectives;
  }
  /// Creates a guard that this object owns.
  template <class Guard, class... Arguments>
  Guard& create(Arguments&&... arguments) {
    auto guard = std::make_unique<Guard>(std::forward<Arguments>(arguments)...);
    Guard& created = *guard;
    owned.push_back(std::move(guard));
    return created;
  }

  // See CallGuard.
  void give_up(const Error& why) const {
    for (CallGuard* guard : all) guard->give_up(why);
  }
  void throw_if_ended() const {
    for (CallGuard* guard : all) guard->throw_if_ended();
  }
  [[nodiscard]] bool has_ended() const {
    // A group whose calls are not compared has a guard that is in no list.
    return (collectives != nullptr && collectives->has_ended()) ||
           std::ranges::any_of(all, [](const CallGuard* guard) { return guard->has_ended(); });
  }
  void leave(std::string_view why = {}) const {
    for (CallGuard* guard : all) guard->leave(why);
  }
  [[nodiscard]] bool have_all_left() const {
    return std::ranges::all_of(all, [](CallGuard* guard) { return guard->have_all_left(); });
  }
  void stay() const {
    for (CallGuard* guard : all) guard->stay();
  }
  void compare_at_close() const {
    for (CallGuard* guard : all) guard->compare_at_close();
  }
};

}  // namespace rankmesh::detail
