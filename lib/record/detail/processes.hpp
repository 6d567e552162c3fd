// SPDX-License-Identifier: BSD-3-Clause
// The records that processes of this machine have open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/record/find.hpp"
#include "rankmesh/record/read.hpp"

namespace rankmesh::record::detail {

/// A record that a process has open.
struct OpenRecord {
  Source source;
  std::uint64_t device = 0, inode = 0;  ///< Of the file; the same in forked children.
  bool is_of_process = false;           ///< The process has made the record; it is no forked child.
};

/// Returns the ids of all processes, in ascending order.
std::vector<std::int64_t> all_processes();

/// Returns the effective user of a process, or nothing if there is no such process.
std::optional<std::uint32_t> user_of(std::int64_t process_id);

/// Adds the records that a process has open.
/// @return whether the system allows this process to see the open files of the other one.
bool add_open_records(std::int64_t process_id, std::vector<OpenRecord>& records);

/// Returns one source for each record; the process that has made it is preferred.
std::vector<Source> without_repeats(std::vector<OpenRecord> records);

/// Returns whether a process has made a record, given the numbers in the header. A process has an
/// id in each of its process namespaces.
bool has_made(std::int64_t process_id, std::int64_t recorded_id, std::uint64_t recorded_namespace);

/// Returns what the system says about the process of a record.
/// @param bytes  a copy of the record.
Observation observation_of(const Source& source, std::span<const std::byte> bytes);

}  // namespace rankmesh::record::detail
