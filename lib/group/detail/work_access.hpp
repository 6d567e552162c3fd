// SPDX-License-Identifier: BSD-3-Clause
// Access to the private parts of a Work, for other parts of rankmesh.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "rankmesh/group/work.hpp"

namespace rankmesh::detail {

/// Gives functions that test several operations access to the private parts of Work.
struct WorkAccess {
  /// Does the same as Work::test(), but advances no other operations.
  static bool test_alone(Work& work) { return work.test_alone(); }
  /// See wait_any(). @param timeout  If it is empty, the limit of the first operation's mesh
  /// applies.
  static std::optional<std::size_t> wait_any(std::span<Work> works,
                                             std::optional<Deadline::Duration> timeout);
};

}  // namespace rankmesh::detail
