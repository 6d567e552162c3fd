// SPDX-License-Identifier: BSD-3-Clause
// Finds the records of jobs, in the processes of this machine or in a folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/record/record.hpp"

namespace rankmesh::record {

/// A place where a record can be read.
struct Source {
  std::string path;             ///< /proc/PID/fd/N, or a file.
  std::int64_t process_id = 0;  ///< PID in the caller's process namespace; 0 for a file.
  std::uint64_t mesh_key = 0;   ///< See Record; 0 for a file.
};

/// Returns the records of all processes of the calling user on this machine. If a rank has forked,
/// several processes have its record open; the record is returned once. The function also finds
/// records of stopped processes, because the processes need not respond. The list is empty if there
/// is no record.
[[nodiscard]] RANKMESH_API std::vector<Source> sources_of_user();

/// Returns the records of a process, and of all ranks of the same meshes on this machine. The
/// process may be a rank, or a launcher whose children are ranks.
/// @throws UsageError if there is no such process, if it belongs to another user, or if neither the
/// process nor its children have a record.
[[nodiscard]] RANKMESH_API std::vector<Source> sources_of_process(std::int64_t process_id);

/// Returns the files `*.rankmesh` of a folder, or the path itself if it is a file.
/// @throws UsageError if the path does not exist, or if the folder has no such files.
[[nodiscard]] RANKMESH_API std::vector<Source> sources_in(const std::filesystem::path& path);

/// Copies a record, and adds what the system says about its process (see observe()).
/// @throws UsageError, DataError if copy() in rankmesh/record/read.hpp throws them.
[[nodiscard]] RANKMESH_API std::vector<std::byte> copy_observed(const Source& source);

/// What the sources contain.
struct Records {
  std::vector<Record> records;       ///< In the order of their meshes (by opening) and ranks.
  std::vector<std::string> remarks;  ///< One sentence for each source that could not be read.
};
/// Returns the records of each mesh, in the order of their ranks. The mesh that was opened first
/// comes first.
[[nodiscard]] RANKMESH_API std::vector<std::vector<Record>> by_mesh(std::vector<Record> records);

/// Reads all records.
/// @throws UsageError, DataError if no record can be read. The exception is the one that the first
/// source has caused.
[[nodiscard]] RANKMESH_API Records read_all(std::span<const Source> sources);

}  // namespace rankmesh::record
