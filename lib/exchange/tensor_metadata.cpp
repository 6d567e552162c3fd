// SPDX-License-Identifier: BSD-3-Clause
#include "detail/tensor_metadata.hpp"

#include <cstring>

namespace rankmesh::exchange::detail {
namespace {

constexpr std::uint64_t mark = 0x746369642e736e74;  // "tns.dict"
constexpr std::uint8_t type_count = static_cast<std::uint8_t>(DataType::float8_e5m2) + 1;

class Writer {
 public:
  template <class T>
  void put(T value) {
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof value);
  }
  Bytes bytes;
};

[[noreturn]] void refuse() {
  throw DataError{"the received bytes do not describe a tensor dictionary",
                  "call the matching functions in the same order at both ends"};
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_{bytes} {}
  std::span<const std::byte> take(std::size_t n) {
    if (n > bytes_.size()) refuse();
    const auto taken = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return taken;
  }
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::uint8_t get_below(std::uint8_t end) {
    const auto value = get<std::uint8_t>();
    if (value >= end) refuse();
    return value;
  }
  [[nodiscard]] bool is_empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

Bytes to_bytes(const DictMetadata& metadata) {
  Writer writer;
  writer.put(mark);
  writer.put(metadata.slices);
  for (const TensorMetadata& tensor : metadata.tensors) {
    writer.put(static_cast<std::uint32_t>(tensor.name.size()));
    for (const char c : tensor.name) writer.put(c);
    writer.put(static_cast<std::uint8_t>(tensor.type));
    writer.put(static_cast<std::uint8_t>(tensor.kind));
    writer.put(static_cast<std::uint8_t>(tensor.is_sliced));
    writer.put(static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::int64_t n : tensor.shape) writer.put(n);
  }
  return std::move(writer.bytes);
}

DictMetadata metadata_from(std::span<const std::byte> bytes) {
  Reader reader{bytes};
  if (reader.get<std::uint64_t>() != mark) refuse();
  DictMetadata metadata{.slices = reader.get<std::int64_t>(), .tensors = {}};
  if (metadata.slices < 1) refuse();
  while (!reader.is_empty()) {
    TensorMetadata& tensor = metadata.tensors.emplace_back();
    const auto name = reader.take(reader.get<std::uint32_t>());
    tensor.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    tensor.type = static_cast<DataType>(reader.get_below(type_count));
    tensor.kind = static_cast<MemoryKind>(reader.get_below(2));
    tensor.is_sliced = reader.get_below(2) == 1;
    const auto dimensions = reader.get<std::uint32_t>();
    for (std::uint32_t d = 0; d < dimensions; ++d)
      tensor.shape.push_back(reader.get<std::int64_t>());
  }
  return metadata;
}

}  // namespace rankmesh::exchange::detail
