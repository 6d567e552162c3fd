// SPDX-License-Identifier: BSD-3-Clause
// The traffic that a subcommand reads: volumes per family, or the usual proportions.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "place/model.hpp"
#include "rankmesh/place/arrange.hpp"

namespace rankmesh::meshinfo {

// Reads the figures of a model from a TOML file.
// @throws UsageError if the file cannot be read, SpecError if it is invalid.
ModelFigures read_model(const std::string& path);

struct TrafficArguments {
  std::string model;                 // a TOML file; empty if there is none
  std::vector<std::string> volumes;  // NAME=BYTES or NAME=BYTES:PATTERN
  std::vector<std::string> kept;

  void add_to(CLI::App& command);
  // @throws UsageError if a volume is not of that form.
  [[nodiscard]] std::vector<FamilyTraffic> traffic(const MeshPlan& plan) const;
  // Returns `bytes`, or `relative` if the user gives neither volumes nor a model.
  [[nodiscard]] std::string unit() const;
};

}  // namespace rankmesh::meshinfo
