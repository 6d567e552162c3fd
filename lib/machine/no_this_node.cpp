// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "detail/parts.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {

std::string this_node_xml() {
  throw UsageError{
      "this build of rankmesh cannot ask for the inside of the running node: it was "
      "made without libhwloc",
      "give the output of `lstopo --of xml`, or install hwloc's headers "
      "(libhwloc-dev) and build rankmesh again"};
}

}  // namespace rankmesh::detail
