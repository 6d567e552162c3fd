// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of meshinfo, and the state of one run.
#pragma once

#include <CLI/CLI.hpp>

#include "job.hpp"

namespace rankmesh::meshinfo {

// Exit statuses.
inline constexpr int ok = 0;
inline constexpr int check_failed = 1;
inline constexpr int wrong_usage = 2;

// One run of meshinfo. A subcommand sets the status.
struct Program {
  int status = ok;
  Job job;
};

// Each adds a command.
using AddCommand = void(CLI::App& app, Program& program);
AddCommand add_show, add_rank, add_describe, add_groups, add_count, add_diff, add_explain,
    add_routes;
AddCommand add_bench, add_trace, add_doctor, add_tune, add_check, add_estimate, add_plan, add_emit,
    add_search;
AddCommand add_shrink, add_transfer, add_convert, add_presets, add_version;

}  // namespace rankmesh::meshinfo
