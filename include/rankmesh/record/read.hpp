// SPDX-License-Identifier: BSD-3-Clause
// Reads the record of a rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/record/record.hpp"

namespace rankmesh::record {

/// Copies a record while its rank may be writing it, so that read() sees calls at one moment. The
/// copy has the layout of the record (rankmesh/record/format.hpp). Calls that may have been
/// overwritten during the copy are left out of it.
///
/// The function only reads. It neither maps the file nor waits for the rank, which may be stopped.
/// Takes about 0.2 ms for 0.5 MiB.
/// @param descriptor  of the file or of the memory behind the record.
/// @param name        of the record, for messages.
/// @throws DataError if this is not a whole record of a known version.
[[nodiscard]] RANKMESH_API std::vector<std::byte> copy(int descriptor, const std::string& name);
/// Opens and copies a file.
/// @throws UsageError if the file cannot be opened; DataError as above.
[[nodiscard]] RANKMESH_API std::vector<std::byte> copy(const std::string& path);

/// What the system says about the process of a record.
struct Observation {
  Process process = Process::unknown;
  /// Whether the process exists on this machine, so that its counter and its clock go on.
  bool is_alive_here = false;
  /// What to add to the monotonic clock of the caller to get that of the process. It is not 0 if
  /// they are in different time namespaces.
  std::int64_t clock_shift = 0;
};

/// Writes an observation into a copy. If the process exists on this machine, the copy also gets the
/// present values of the counter and of the clock, which say how long calls have lasted.
/// @param bytes  from copy().
RANKMESH_API void observe(std::span<std::byte> bytes, const Observation& observation);

/// Returns what a record says. The function checks everything that it reads, so that bytes of any
/// origin are either refused or give a record whose indices are valid and whose times can be
/// subtracted from each other. Control characters in texts become blanks, and bytes that are not
/// UTF-8 become U+FFFD.
///
/// Record::process is that of the last observe(). Record::read_at is the time of that observation
/// if the process existed then; otherwise it is the last time that the record contains.
/// @param bytes  from copy(), or the contents of a file that nobody writes any more.
/// @param name   of the record, for messages.
/// @throws DataError if the bytes are cut, altered, or of another version.
[[nodiscard]] RANKMESH_API Record read(std::span<const std::byte> bytes, const std::string& name);

}  // namespace rankmesh::record
