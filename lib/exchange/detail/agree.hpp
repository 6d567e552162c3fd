// SPDX-License-Identifier: BSD-3-Clause
// The comparison of what the members of a group pass to a collective function.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/base/error.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::exchange::detail {

/// What a member has passed to a function, in the words of the program.
struct Arguments {
  std::string function;
  std::vector<std::string> entries{};  ///< What must be the same on all members, in a fixed order.
};

using rankmesh::detail::UserFunction;

/// What a member compares with the others.
struct Comparison {
  UserFunction function;  ///< What the program has called.
  /// Returns the arguments. Called only if the comparison fails.
  std::function<Arguments()> describe;
  const char* hint;              ///< What to do if the arguments differ.
  std::exception_ptr failure{};  ///< Why the arguments of this member are invalid, or null.
};

/// Runs a check of arguments. Returns the Error that it throws, or null; too little memory is an
/// Error too. A member that has failed still takes part in the comparison, so that the others need
/// not wait.
template <class Check>
std::exception_ptr failure_of(Check&& check) {
  try {
    std::forward<Check>(check)();
  } catch (const Error&) {
    return std::current_exception();
  } catch (const std::bad_alloc&) {
    return std::make_exception_ptr(Error{"there is too little memory on this rank",
                                         "use more ranks, or smaller tensors and buffers"});
  }
  return nullptr;
}

/// Returns a hash of all that must be the same.
[[nodiscard]] Hash128 hash_of(const Arguments& arguments);

/// Compares the arguments of all members. Collective over the group; blocks. Cost: one all_reduce
/// of 4 words of 8 bytes and the `maxima`.
/// @param hash  Of the arguments; none if they are invalid.
/// @param maxima  Values that travel in the same message. They become the maxima over all members.
/// @throws MismatchError with the same text on all members if their hashes differ, or if one of
/// them has failed. See throw_difference().
/// @throws UsageError if an NcclGroup is open.
void agree(GroupCoordinator& group, const std::optional<Hash128>& hash, const Comparison& mine,
           std::span<std::int64_t> maxima = {});

/// Shows in which entry the arguments of the members differ, and throws. Call it on all members
/// after a comparison has failed on all of them. Collective over the group; blocks.
/// @throws MismatchError with the same text on all members. The text shows what each member has
/// passed as the first entry that differs; entries that the fewest members have passed come first.
/// A member that has failed throws its own failure instead.
[[noreturn]] void throw_difference(GroupCoordinator& group, const Comparison& mine);

}  // namespace rankmesh::exchange::detail
