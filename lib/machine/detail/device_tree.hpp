// SPDX-License-Identifier: BSD-3-Clause
// The GPUs and network interfaces of one node, as elements below sockets and bridges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parts.hpp"

namespace rankmesh::detail {

/// Joins things that belong together, such as GPUs that NVLink connects.
class Unions {
 public:
  explicit Unions(std::size_t count);
  void join(std::size_t a, std::size_t b);
  /// Returns the number of the set of `a`; sets are numbered in the order of their first members.
  [[nodiscard]] std::vector<std::int32_t> numbers() const;

 private:
  [[nodiscard]] std::size_t root(std::size_t a) const;
  std::vector<std::size_t> parent_;
};

struct DeviceTree {
  struct Device {
    std::string name;               ///< of a network interface
    std::int32_t number = 0;        ///< of a GPU
    std::vector<std::size_t> path;  ///< the elements above, outermost first
    std::size_t socket = SIZE_MAX;  ///< the element of its socket, or SIZE_MAX
  };
  std::vector<Device> gpus, nics;
  std::vector<std::pair<std::size_t, std::size_t>> links;  ///< pairs of GPUs that NVLink connects
  std::vector<std::size_t> sockets;                        ///< the elements that are sockets
};

/// Returns the shape: the nearest interface of a GPU shares the most elements with it. Several
/// interfaces that are equally near are given to the GPUs in turn.
/// @throws SpecError if the node has more than 256 GPUs.
NodeShape shape_of(DeviceTree tree, std::string_view origin);

}  // namespace rankmesh::detail
