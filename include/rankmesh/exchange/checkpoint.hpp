// SPDX-License-Identifier: BSD-3-Clause
// Writes the tensors of a mesh to files, and reads them on any other mesh.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/exchange/named_tensors.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::exchange {

/// Reports that a file of a checkpoint cannot be written or read, or that it is truncated or
/// altered. The message names the file.
class RANKMESH_API FileError : public Error {
 public:
  using Error::Error;  ///< Creates an error from its text and a hint, which may be empty.
};

/// The options of a checkpoint. They must be the same on all ranks.
struct CheckpointOptions {
  /// The size in bytes of the buffers through which a rank copies elements between files and
  /// tensors. A rank
  /// uses more memory if its part of a single tensor is larger.
  std::int64_t memory = std::int64_t{256} << 20;
  /// A file that has reached this number of bytes gets no further tensor. Used by save_checkpoint()
  /// only.
  std::int64_t file_bytes = std::int64_t{4} << 30;
};

/// A tensor in a checkpoint.
struct StoredTensor {
  std::string name;                 ///< The name.
  DataType type = DataType::uint8;  ///< The type of the elements.
  std::vector<std::int64_t> shape;  ///< The number of elements along each axis.
};

/// Writes tensors to the new folder `root`/`name`, and then makes the symbolic link `root`/latest
/// refer to it. The link is replaced by a rename after all ranks have written their data to disk
/// (fsync), so a crash at any time leaves the previous checkpoint loadable. The folder must be on a
/// file system that all ranks share. docs/checkpoints.md describes the files, which all ranks
/// write. Collective over the group; blocks.
/// @param root  The folder of all checkpoints. It is created if it does not exist.
/// @param name  The name of the new folder, for example `step-1000`.
/// @throws UsageError if a name is empty, occurs twice or is not UTF-8, or if a source does not fit
/// its place.
/// @throws FileError on the rank that cannot write a file, for example because the disk is full.
/// The incomplete folder is removed, except in a mesh that may survive; `latest` is unchanged.
/// @throws MismatchError on the other ranks if one rank fails, and on all ranks if they pass
/// different names, places or options.
RANKMESH_API void save_checkpoint(GroupCoordinator& group, const std::string& root,
                                  const std::string& name, std::span<const SavedTensor> tensors,
                                  const CheckpointOptions& options = {});
/// Does the same for a list of tensors in braces.
inline void save_checkpoint(GroupCoordinator& group, const std::string& root,
                            const std::string& name, std::initializer_list<SavedTensor> tensors,
                            const CheckpointOptions& options = {}) {
  save_checkpoint(group, root, name, std::span{tensors.begin(), tensors.size()}, options);
}

/// Reads tensors from a checkpoint. The group and the places may differ from those with which the
/// checkpoint was saved. All ranks read pieces, verify their checksums, and send the elements to
/// the ranks that need them. Collective over the group; blocks.
/// @param folder  The folder of a checkpoint, for example `root`/latest.
/// @param tensors  Any of the tensors of the checkpoint.
/// @throws UsageError if the checkpoint does not have a tensor, if a shape differs, if a type
/// cannot be converted, or if a target does not fit its place.
/// @throws FileError on the rank that cannot read a file, or that finds a file truncated or
/// altered.
/// @throws MismatchError on the other ranks if one rank fails, and on all ranks if they pass
/// different arguments, or folders of different checkpoints. The paths of a folder may differ.
RANKMESH_API void load_checkpoint(GroupCoordinator& group, const std::string& folder,
                                  std::span<const LoadedTensor> tensors,
                                  const CheckpointOptions& options = {});
/// Does the same for a list of tensors in braces.
inline void load_checkpoint(GroupCoordinator& group, const std::string& folder,
                            std::initializer_list<LoadedTensor> tensors,
                            const CheckpointOptions& options = {}) {
  load_checkpoint(group, folder, std::span{tensors.begin(), tensors.size()}, options);
}

/// Returns the tensors of a checkpoint, in the order in which they were saved. Local.
/// @throws FileError if the manifest cannot be read or is damaged.
[[nodiscard]] RANKMESH_API std::vector<StoredTensor> list_checkpoint(const std::string& folder);

}  // namespace rankmesh::exchange
