// SPDX-License-Identifier: BSD-3-Clause
// The description of the tensors in a dictionary, which is sent before their elements.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/exchange/message.hpp"

namespace rankmesh::exchange::detail {

struct TensorMetadata {
  std::string name;
  DataType type = DataType::uint8;
  MemoryKind kind = MemoryKind::host;
  bool is_sliced = false;
  std::vector<std::int64_t> shape;
};

struct DictMetadata {
  std::int64_t slices = 1;  ///< Of each tensor that is divided.
  std::vector<TensorMetadata> tensors;
};

Bytes to_bytes(const DictMetadata& metadata);
/// Throws DataError if the bytes are not metadata. Allocates at most a few times as much memory.
DictMetadata metadata_from(std::span<const std::byte> bytes);

}  // namespace rankmesh::exchange::detail
