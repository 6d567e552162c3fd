// SPDX-License-Identifier: BSD-3-Clause
// Calls of a transport that must not fail on one member alone.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <utility>

#include "call_errors.hpp"
#include "call_guard.hpp"

namespace rankmesh::detail {

/// Calls a transport when all members have reached the call. If the transport fails on this member,
/// the other members must not wait for it: the error is thrown inside the Waiter, which then breaks
/// the group. A UsageError reports an exception of a function of the program; the operation is then
/// complete.
template <class Action>
void telling_others(CallGuard& guard, const Call& call, std::uint64_t number, Waiter& waiter,
                    Action&& action) {
  std::exception_ptr failure;
  try {
    return std::forward<Action>(action)();
  } catch (const UsageError&) {
    throw;
  } catch (const std::bad_alloc&) {
    failure = std::make_exception_ptr(too_little_memory(waiter.activity_of(call), call));
  } catch (...) {
    failure = std::current_exception();
  }
  const auto rethrow = [&]() -> bool {
    guard.throw_if_ended();  // the transport may have failed because of another member
    std::rethrow_exception(failure);
  };
  waiter.wait(call, number, rethrow, {}, {});
}

}  // namespace rankmesh::detail
