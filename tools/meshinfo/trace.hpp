// SPDX-License-Identifier: BSD-3-Clause
// trace: its options, the timeline, the live picture and the collection from several nodes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "output.hpp"
#include "rankmesh/record/diagnosis.hpp"
#include "rankmesh/record/find.hpp"
#include "rankmesh/record/record.hpp"

namespace meshinfo {

struct TraceOptions {
  const CLI::App* command = nullptr;  // that the options belong to
  std::string target{};               // a process id, a folder, a file, or empty: all of this user
  std::string mesh{};                 // empty: all meshes
  std::string collect{};              // a folder; empty: nothing is collected
  std::optional<double> interval{};   // of --follow, in seconds
  OutputOptions output{};
};

using Records = std::vector<rankmesh::record::Record>;

// Returns the sources that the target names.
// @throws UsageError  There are none.
std::vector<rankmesh::record::Source> sources_of(const std::string& target);
// Reads the records that the options choose. What cannot be read is reported to standard error.
// @throws UsageError, DataError  There are none.
Records read_records(const TraceOptions& options);

// Whether the path names a timeline: it ends in .trace.json or .html.
bool is_timeline(const std::string& path);
// Writes the timeline of one mesh to a file.
// @throws UsageError  The records belong to several meshes.
void write_timeline(const Records& records, const rankmesh::record::Diagnosis& diagnosis,
                    const std::string& path);

// Prints repeatedly what the job does, until the job has ended or the user presses Ctrl-C.
void follow(const TraceOptions& options);

// The folder of --collect.
class Collection {
 public:
  // Makes the folder.
  // @throws UsageError  It cannot be made, or has records already.
  explicit Collection(std::string folder);
  // Writes a copy of a record.
  // @throws UsageError, DataError
  void add(std::span<const std::byte> bytes);
  // @throws UsageError  Nothing was added.
  void require_records() const;

 private:
  std::string folder_;
  std::size_t size_ = 0;
};

// Returns copies of the records that the target names, with the states of their processes. What
// cannot be read is reported to standard error. The list may be empty.
std::vector<std::vector<std::byte>> copies_of(const std::string& target);

// Collects the records of this node.
void collect_here(const TraceOptions& options);
// Collects the records of all nodes of the job in which meshinfo runs; outside of a job, those of
// this node. Collective over the job. Built from trace_collect_mpi.cpp, or from job_none.cpp
// without MPI.
// @return whether this process prints: it is rank 0.
bool collect(const TraceOptions& options);

// Reports to standard error what could not be read.
void report_remark(const std::string& remark);

}  // namespace meshinfo
