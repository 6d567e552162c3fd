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

}  // namespace rankmesh_test
