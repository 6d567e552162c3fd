// SPDX-License-Identifier: BSD-3-Clause
// The meshes with which the device suite tries families and their options.
#pragma once

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"

namespace rankmesh_test {

/// Checks the sum of the members' ranks, which the group computes.
inline void check_sum(rankmesh::GroupCoordinator& group) {
  CAPTURE(group.name());
  const rankmesh::device::DeviceBuffer<float> value{
      std::span<const float>{std::vector<float>{static_cast<float>(group.rank().value())}}};
  group.all_reduce(value.span());
  float expected = 0;
  for (const rankmesh::Rank member : group.ranks()) expected += static_cast<float>(member.value());
  CHECK(value.download(rankmesh::StreamRef{}) == std::vector<float>{expected});
}

inline std::string square() {
  return size() % 2 == 0 ? "dp=2,tp=auto ; all=dp*tp" : "dp=1,tp=auto ; all=dp*tp";
}

}  // namespace rankmesh_test
