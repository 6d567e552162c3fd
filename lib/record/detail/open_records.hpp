// SPDX-License-Identifier: BSD-3-Clause
// The records that this process has open, for a signal handler that writes them (write.hpp).
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>

#include "rankmesh/record/format.hpp"

namespace rankmesh::detail {

/// An open record, and the names of the file that a signal writes.
struct WrittenRecord {
  std::atomic<bool> is_used;
  std::atomic<const record::format::Header*> header;  ///< Null if there is no record.
  std::array<char, 64> name, name_while_written;
};

/// The list is lock-free and constant-initialised, so a handler may read it at any time.
extern std::array<WrittenRecord, 64> open_records;
/// The process whose handler reads the list; one thread at a time. If a child is forked meanwhile,
/// the child keeps the id of its parent here for ever.
extern std::atomic<pid_t> reader_of_records;

/// Adds a record to those that a signal writes. If there are too many, it is not written.
void add_open_record(const record::format::Header& header);
/// Removes a record. When the function returns, no signal handler reads it any more.
void remove_open_record(const record::format::Header& header);
/// Waits until handlers of other threads have ended. Those of this thread have ended.
void wait_for_handlers();

}  // namespace rankmesh::detail
