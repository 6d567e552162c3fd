// SPDX-License-Identifier: BSD-3-Clause
// trace: its options, the timeline, the live picture and the collection from several nodes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "job.hpp"
#include "rankmesh/record/find.hpp"
#include "rankmesh/record/record.hpp"
#include "record/diagnosis.hpp"

namespace rankmesh::meshinfo {

struct TraceOptions {
  const CLI::App* command = nullptr;  // that the options belong to
  std::string target{};               // a process id, a folder, a file, or empty: all of this user
  std::string mesh{};                 // empty: all meshes
  std::string collect{};              // a folder; empty: nothing is collected
  std::optional<double> interval{};   // of --follow, in seconds
  OutputOptions output{};
};

using Records = std::vector<record::Record>;

// Returns the sources that the target names.
// @throws UsageError  There are none.
std::vector<record::Source> sources_of(const std::string& target);
// Reads the records that the options choose. What cannot be read is reported to standard error.
// @throws UsageError, DataError  There are none.
Records read_records(const TraceOptions& options);

// Prints repeatedly what the job does, until the job has ended or the user presses Ctrl-C.
void follow(const TraceOptions& options);

// Collects the records of this node or, in a job, of all nodes of the job in which meshinfo runs.
// Collective over the job.
void collect(const TraceOptions& options, Job& job);

// Reports to standard error what could not be read.
void report_remark(const std::string& remark);

}  // namespace rankmesh::meshinfo
