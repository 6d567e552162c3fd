// SPDX-License-Identifier: BSD-3-Clause
// The node that this process runs on, as libhwloc finds it. The XML of libhwloc is read by the same
// function as the XML of lstopo.
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <hwloc.h>

#include "detail/parts.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

void require(int result, const char* call) {
  if (result != 0)
    throw UsageError{fmt::format("libhwloc cannot describe this node: {} failed ({})", call,
                                 std::strerror(errno)),
                     "run `lstopo` to see whether hwloc works, or describe the node by a file"};
}

}  // namespace

std::string this_node_xml() {
  hwloc_topology_t topology = nullptr;
  require(hwloc_topology_init(&topology), "hwloc_topology_init");
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> owner{
      topology, &hwloc_topology_destroy};
  require(hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT),
          "hwloc_topology_set_io_types_filter");
  require(hwloc_topology_load(topology), "hwloc_topology_load");
  char* text = nullptr;
  int size = 0;  // with the zero at the end
  require(hwloc_topology_export_xmlbuffer(topology, &text, &size, 0),
          "hwloc_topology_export_xmlbuffer");
  std::string xml{text};
  hwloc_free_xmlbuffer(topology, text);
  return xml;
}

}  // namespace rankmesh::detail
