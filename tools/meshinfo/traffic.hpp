// SPDX-License-Identifier: BSD-3-Clause
// The traffic that a subcommand reads: volumes per family, or the usual proportions.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "rankmesh/place/arrange.hpp"

namespace meshinfo {

struct TrafficArguments {
  std::vector<std::string> volumes;  // NAME=BYTES or NAME=BYTES:PATTERN
  std::vector<std::string> kept;

  void add_to(CLI::App& command);
  // @throws UsageError if a volume is not of that form.
  [[nodiscard]] std::vector<rankmesh::FamilyTraffic> traffic(const rankmesh::MeshPlan& plan) const;
  // Returns `bytes`, or `relative` if the user gives no volumes.
  [[nodiscard]] std::string unit() const;
};

}  // namespace meshinfo
