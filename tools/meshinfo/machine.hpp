// SPDX-License-Identifier: BSD-3-Clause
// The machine that a subcommand reads: files, the variables of Slurm, numbers, or the running job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "job.hpp"
#include "machine/read_machine.hpp"

namespace rankmesh::meshinfo {

struct MachineArguments {
  std::vector<std::string> sources;  // FILE, FORMAT:FILE or slurm
  MachineNumbers numbers;

  void add_to(CLI::App& command);
  // Whether the user describes a machine.
  [[nodiscard]] bool is_given() const;
  // Returns the machine for the world size, or nothing if it is not described. Without a world
  // size, it has all slots that the sources describe. In a job, the hosts are those of the job.
  // @throws SpecError or UsageError if the description is wrong.
  [[nodiscard]] std::optional<Machine> machine(std::optional<std::int64_t> world_size,
                                               const report::LiveFacts* live = nullptr) const;
  // Returns the machine, or in a job the nodes of the job if the user describes nothing.
  // @throws UsageError if there is neither.
  [[nodiscard]] Machine require(std::int64_t world_size, const report::LiveFacts* live) const;
};

}  // namespace rankmesh::meshinfo
