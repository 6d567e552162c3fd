// SPDX-License-Identifier: BSD-3-Clause
// The end of a group.
#pragma once

#include <string>

namespace rankmesh::detail {

/// The coordinator of a group and the objects that refer to the group share this object.
struct Lifetime {
  std::string name;  ///< The name of the group.
  bool is_over = false;
};

}  // namespace rankmesh::detail
