// SPDX-License-Identifier: BSD-3-Clause
// The positions of all bytes of a checkpoint. They follow from the list of tensors and the file
// size limit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rankmesh/base/hash.hpp"
#include "rankmesh/exchange/checkpoint.hpp"

namespace rankmesh::exchange::detail {

/// A tensor and its place in a file. It is divided into pieces of equal numbers of rows, where a
/// row is all elements with one index of the first axis. Each piece has a checksum.
struct TensorInFile {
  StoredTensor tensor;
  std::size_t file = 0;          ///< The number of the file, from 0.
  std::int64_t begin = 0;        ///< The first byte in the file.
  std::int64_t bytes = 0;        ///< The size.
  std::int64_t piece_rows = 1;   ///< The rows of each piece; the last piece may be smaller.
  std::int64_t piece_bytes = 0;  ///< Their bytes.
  std::int64_t pieces = 0;       ///< The number of pieces; 0 without elements.
  std::int64_t first_piece = 0;  ///< The number of the first piece among the pieces of all tensors.

  /// Returns the bytes of one piece.
  [[nodiscard]] std::int64_t bytes_of(std::int64_t piece) const {
    return std::min(piece_bytes, bytes - piece * piece_bytes);
  }
  /// Returns the number of ranks that write pieces.
  [[nodiscard]] std::int64_t writers(std::int64_t ranks) const { return std::min(pieces, ranks); }
  /// Returns the rank that writes a piece. Neighbouring pieces have different writers.
  [[nodiscard]] std::int64_t writer(std::int64_t piece, std::int64_t ranks) const {
    return (first_piece + piece % writers(ranks)) % ranks;
  }
  /// Returns the place of the elements on the ranks that write or read them: the pieces of a rank
  /// lie one after the other.
  [[nodiscard]] TensorPlacement place(std::int64_t ranks) const;
};

/// One file.
struct CheckpointFile {
  std::string name;
  std::string header;      ///< The bytes in front of the first tensor.
  std::int64_t bytes = 0;  ///< The size of the file.
};

/// All files of a checkpoint.
struct CheckpointLayout {
  std::vector<TensorInFile> tensors;
  std::vector<CheckpointFile> files;
  std::int64_t pieces = 0;  ///< Of all tensors.

  /// @param file_bytes  See CheckpointOptions.
  CheckpointLayout(const std::vector<StoredTensor>& list, std::int64_t file_bytes);
};

/// Returns whether the files, whose headers are JSON, can hold a name.
[[nodiscard]] bool is_utf8(const std::string& name);
/// Returns the name of a type in safetensors.
[[nodiscard]] std::string type_name(DataType type);

/// Returns the text of the index that libraries for safetensors read.
[[nodiscard]] std::string index_text(const CheckpointLayout& layout);
/// Returns the text of the manifest.
/// @param checksums  One for each piece.
[[nodiscard]] std::string manifest_text(const CheckpointLayout& layout, std::int64_t file_bytes,
                                        const std::vector<Hash128>& checksums);

/// What a manifest says.
struct Manifest {
  CheckpointLayout layout;
  std::vector<std::string> checksums;  ///< Of all pieces, as hexadecimal digits.
};
/// @throws FileError if the text is not a manifest, or was changed.
[[nodiscard]] Manifest parse_manifest(const std::string& text, const std::string& path);

}  // namespace rankmesh::exchange::detail
