// SPDX-License-Identifier: BSD-3-Clause
// The times of the library that tests change.
#pragma once

#include "base/detail/patience.hpp"

namespace rankmesh_test {

/// Makes the waits of this process sleep soon. In most jobs of the tests, and wherever several run
/// side by side, the ranks outnumber the cores: those that wait only take the time of the others.
inline void share_cores() {
  rankmesh::detail::patience_of_tests().yields = rankmesh::Deadline::Duration{0.001};
}

/// The times of the library for one test. They are restored at the end of the scope.
class ScopedPatience {
 public:
  ScopedPatience() = default;
  ~ScopedPatience() { rankmesh::detail::patience_of_tests() = before_; }
  ScopedPatience(const ScopedPatience&) = delete;
  ScopedPatience& operator=(const ScopedPatience&) = delete;

  rankmesh::detail::Patience* operator->() { return &rankmesh::detail::patience_of_tests(); }

  /// Gives members time to answer the questions of a wait that no board of the node describes. A
  /// busy machine stops a member for a second now and then.
  /// @param last  For the last answer. A wait in which a member never answers takes so much longer.
  void wait_for_answers(double last) {
    (*this)->before_deadline = rankmesh::Deadline::Duration{1};
    (*this)->answer = rankmesh::Deadline::Duration{last};
  }

 private:
  rankmesh::detail::Patience before_ = rankmesh::detail::patience_of_tests();
};

}  // namespace rankmesh_test
