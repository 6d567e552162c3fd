// What a tensor dictionary says of its tensors before they come.
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
  std::int64_t slices = 1;  ///< of each tensor that is sliced
  std::vector<TensorMetadata> tensors;
};

Bytes to_bytes(const DictMetadata& metadata);
/// @throws DataError where the bytes are none; allocates no more than a few times their number.
DictMetadata metadata_from(std::span<const std::byte> bytes);

}  // namespace rankmesh::exchange::detail
