// SPDX-License-Identifier: BSD-3-Clause
// The error that is thrown when the members of a group pass different arguments to a collective
// function, or when the arguments of some members are invalid.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/base/error.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::exchange::detail {

/// The arguments of one member.
struct MemberArguments {
  /// Returns the arguments in the words of the program. The parameter is `list` as a text. The text
  /// may be truncated, but it shows the first place in which members differ.
  std::function<std::string(const std::string& list)> describe;
  std::vector<std::int64_t> list{};  ///< An argument that may be long.
  std::exception_ptr failure{};      ///< Why the arguments of this member are invalid, or null.
};

/// Runs a check of arguments. Returns the Error that it throws, or null. A member whose
/// arguments are invalid still takes part in the comparison, so that the others need not wait.
template <class Check>
std::exception_ptr failure_of(Check&& check) {
  try {
    std::forward<Check>(check)();
  } catch (const Error&) {
    return std::current_exception();
  }
  return nullptr;
}

/// Collects the arguments of all members, and throws. Call it on all members after a comparison
/// has shown on all of them that the arguments differ or that a member has failed. Collective over
/// the group; blocks.
/// @throws MismatchError with the same text on all members. The text lists the arguments; arguments
/// that the fewest members have passed come first. A member that has failed throws its own failure
/// instead.
[[noreturn]] void throw_difference(GroupCoordinator& group, const MemberArguments& arguments,
                                   const std::string& hint);

}  // namespace rankmesh::exchange::detail
