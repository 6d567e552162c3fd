// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <new>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/exchange/tensor_dict.hpp"

namespace rankmesh::exchange {
namespace {

// Returns the number of elements, or -1 if a size is negative or the bytes overflow an int64.
std::int64_t count_of(DataType type, const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  std::int64_t bytes = static_cast<std::int64_t>(size_of(type));
  const bool is_negative = std::ranges::any_of(shape, [](std::int64_t n) { return n < 0; });
  bool overflows = false;
  for (const std::int64_t n : shape) {
    if (n == 0) return is_negative ? -1 : 0;
    overflows = overflows || __builtin_mul_overflow(count, n, &count) ||
                __builtin_mul_overflow(bytes, n, &bytes);
  }
  return is_negative || overflows ? -1 : count;
}

std::int64_t checked_count(DataType type, const std::vector<std::int64_t>& shape) {
  const std::int64_t count = count_of(type, shape);
  if (count < 0)
    throw UsageError{fmt::format("a tensor cannot have the shape [{}]", fmt::join(shape, ", ")),
                     "use sizes of 0 or more whose product is below 2^63"};
  return count;
}

}  // namespace

Tensor Tensor::allocate(DataType type, std::vector<std::int64_t> shape, MemoryKind kind) {
  Buffer buffer{nullptr, checked_count(type, shape), type, kind};
  const auto bytes = static_cast<std::size_t>(buffer.bytes());
  std::shared_ptr<void> owned;
  if (kind == MemoryKind::device) {
    auto memory = std::make_shared<device::DeviceBuffer<std::byte>>(bytes);
    buffer.data = memory->data();
    owned = std::move(memory);
  } else {
    auto memory = std::make_shared<std::vector<std::byte>>(bytes);
    buffer.data = memory->data();
    owned = std::move(memory);
  }
  Tensor tensor{buffer, std::move(shape)};
  tensor.owned_ = std::move(owned);
  return tensor;
}

Tensor::Tensor(Buffer buffer, std::vector<std::int64_t> shape)
    : shape_{std::move(shape)}, buffer_{buffer} {
  const std::int64_t count = checked_count(buffer.type, shape_);
  if (count != buffer.count)
    throw UsageError{fmt::format("a tensor of shape [{}] has {} elements, the memory has {}",
                                 fmt::join(shape_, ", "), count, buffer.count),
                     "pass a shape whose sizes multiply to the number of elements"};
}

void Tensor::require(DataType type, MemoryKind kind) const {
  if (type != buffer_.type || kind != buffer_.kind)
    throw UsageError{
        fmt::format("a tensor holds {} in {} memory, but {} in {} memory was requested",
                    to_string(buffer_.type), buffer_.kind == MemoryKind::host ? "host" : "device",
                    to_string(type), kind == MemoryKind::host ? "host" : "device"),
        "check type() and kind() first"};
}

Tensor& TensorDict::add(std::string name, Tensor tensor) {
  if (find(name) != nullptr)
    throw UsageError{fmt::format("the dictionary already has a tensor '{}'", name),
                     "give each tensor its own name"};
  return entries_.emplace_back(std::move(name), std::move(tensor)).tensor;
}

Tensor* TensorDict::find(std::string_view name) noexcept {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  return found == entries_.end() ? nullptr : &found->tensor;
}

Tensor& TensorDict::operator[](std::string_view name) {
  if (Tensor* tensor = find(name)) return *tensor;
  std::vector<std::string_view> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  throw UnknownName{fmt::format("the dictionary has no tensor '{}'", name),
                    fmt::format("it has: {}", fmt::join(names, ", "))};
}

}  // namespace rankmesh::exchange
