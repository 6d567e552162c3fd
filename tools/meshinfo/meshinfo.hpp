// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of meshinfo, one file each, and the state of one run.
#pragma once

#include <exception>

#include <CLI/CLI.hpp>

#include "job.hpp"

namespace meshinfo {

// Exit statuses.
inline constexpr int ok = 0;
inline constexpr int check_failed = 1;
inline constexpr int wrong_usage = 2;

// One run of meshinfo. A subcommand sets the status.
struct Program {
  int status = ok;
  Job job;
};

// Prints `meshinfo: message` and the hint line to standard error, on the printing rank only.
// Returns wrong_usage.
int fail(const std::exception& error);

void add_show(CLI::App& app, Program& program);
void add_rank(CLI::App& app, Program& program);
void add_describe(CLI::App& app, Program& program);
void add_groups(CLI::App& app, Program& program);
void add_count(CLI::App& app, Program& program);
void add_diff(CLI::App& app, Program& program);
void add_explain(CLI::App& app, Program& program);
void add_routes(CLI::App& app, Program& program);
void add_bench(CLI::App& app, Program& program);
void add_trace(CLI::App& app, Program& program);
void add_doctor(CLI::App& app, Program& program);
void add_tune(CLI::App& app, Program& program);
void add_check(CLI::App& app, Program& program);
void add_estimate(CLI::App& app, Program& program);
void add_emit(CLI::App& app, Program& program);
void add_plan(CLI::App& app, Program& program);
void add_search(CLI::App& app, Program& program);
void add_shrink(CLI::App& app, Program& program);
void add_transfer(CLI::App& app, Program& program);
void add_convert(CLI::App& app, Program& program);
void add_presets(CLI::App& app, Program& program);
void add_version(CLI::App& app, Program& program);

}  // namespace meshinfo
