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

/// Must be called before a handler is installed.
void use_turns_of_handlers();
/// The handlers that write records take turns, in the order in which they began. So none waits for
/// ever, however many signals come. Returns false, without a turn, in a forked child that has not
/// yet dropped the turns of its parent's threads. A handler may call this.
bool take_turn_of_handlers();
void end_turn_of_handlers();

/// Adds a record to those that a signal writes. If there are too many, it is not written.
void add_open_record(const record::format::Header& header);
/// Removes a record. When the function returns, no signal handler reads it any more.
void remove_open_record(const record::format::Header& header);
/// Waits until the handlers that run now in other threads have ended. Those of this thread have
/// ended. Handlers that begin later are not waited for.
void wait_for_handlers();

}  // namespace rankmesh::detail
