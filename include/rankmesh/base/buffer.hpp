// SPDX-License-Identifier: BSD-3-Clause
// Describes the memory that is passed to a call: a pointer, a memory kind, an element type and a
// 64-bit count.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/element.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/symmetric_span.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// Says whether memory is on the host or on a device. The C++ type of an argument determines its
/// memory kind: a std::span or a container is host memory, and a DeviceSpan is device memory.
/// rankmesh never guesses the kind from a pointer.
enum class MemoryKind : std::uint8_t { host, device };
/// Returns "host" or "device".
RANKMESH_API std::string_view to_string(MemoryKind kind);

/// A view of device memory, which consists of a pointer and a number of elements. The view does not
/// own the memory.
template <MovableElement T>
class DeviceSpan {
 public:
  using element_type = T;  ///< The type of the elements.
  constexpr DeviceSpan() = default;
  /// Creates a span of `count` elements in device memory from `data`. Local.
  constexpr DeviceSpan(T* data, std::size_t count) : data_{data}, count_{count} {}
  /// Returns the address of the first element, in device memory.
  [[nodiscard]] constexpr T* data() const { return data_; }
  /// Returns the number of elements.
  [[nodiscard]] constexpr std::size_t size() const { return count_; }
  /// Returns the `count` elements that begin at element `offset`.
  /// @throws UsageError if `offset + count` is greater than size().
  [[nodiscard]] constexpr DeviceSpan subspan(std::size_t offset, std::size_t count) const {
    if (offset > count_ || count > count_ - offset)
      throw UsageError{"DeviceSpan::subspan reaches past the end",
                       "keep offset + count within size()"};
    return {data_ + offset, count};
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// A view of memory that stores its element type as a value instead of a template argument. `Byte`
/// is `const std::byte` for inputs and `std::byte` for outputs. The view does not own the memory.
template <class Byte>
struct BasicBuffer {
  Byte* data = nullptr;                     ///< The address of the first element.
  std::int64_t count = 0;                   ///< The number of elements.
  DataType type = DataType::uint8;          ///< The type of the elements.
  MemoryKind kind = MemoryKind::host;       ///< The kind of the memory.
  const SymmetricWindow* window = nullptr;  ///< the window of symmetric memory, or null

  /// Returns the size in bytes.
  [[nodiscard]] std::int64_t bytes() const {
    return count * static_cast<std::int64_t>(size_of(type));
  }
  /// Returns the `n` elements that begin at element `offset`. Bounds are not checked.
  [[nodiscard]] BasicBuffer slice(std::int64_t offset, std::int64_t n) const {
    return {data == nullptr ? nullptr : data + offset * static_cast<std::int64_t>(size_of(type)), n,
            type, kind, window};
  }
  /// Returns an input buffer over the same memory.
  [[nodiscard]] BasicBuffer<const std::byte> as_input() const {
    return {data, count, type, kind, window};
  }
};
using Buffer = BasicBuffer<std::byte>;
using ConstBuffer = BasicBuffer<const std::byte>;

/// Contiguous host memory whose elements can be copied from rank to rank, for example a std::span,
/// a std::vector, a std::array or an array with several dimensions.
template <class R>
concept HostMemory = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                     MovableElement<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

namespace detail {
template <class R>
struct MemoryElement {
  using type = std::remove_reference_t<std::ranges::range_reference_t<R>>;
};
template <class T>
struct MemoryElement<DeviceSpan<T>> {
  using type = T;
};
template <class T>
inline constexpr bool is_device_span = false;
template <class T>
inline constexpr bool is_device_span<DeviceSpan<T>> = true;
}  // namespace detail

/// A DeviceSpan.
template <class R>
concept DeviceMemory = detail::is_device_span<std::remove_cvref_t<R>>;
/// Memory that a collective accepts, which is host memory or a DeviceSpan.
template <class R>
concept Memory = HostMemory<R> || DeviceMemory<R>;
/// The element type of a Memory. The type is const if the memory is read-only.
template <Memory R>
using ElementOf = typename detail::MemoryElement<
    std::conditional_t<detail::is_device_span<std::remove_cvref_t<R>>, std::remove_cvref_t<R>,
                       std::remove_reference_t<R>>>::type;
/// Memory that a collective may write.
template <class R>
concept WritableMemory = Memory<R> && !std::is_const_v<ElementOf<R>>;
/// Memory that a collective may reduce with a ReduceOp.
template <class R>
concept ReducibleMemory = Memory<R> && ReducibleElement<std::remove_cv_t<ElementOf<R>>>;
/// Memory that a collective may reduce in place.
template <class R>
concept WritableReducibleMemory = WritableMemory<R> && ReducibleMemory<R>;
/// An input and an output that one call accepts together. They have the same element type and the
/// same memory kind. An array of several dimensions has the element type of its innermost arrays.
template <class In, class Out>
concept MatchingMemory = Memory<In> && WritableMemory<Out> &&
                         std::same_as<LeafOf<ElementOf<In>>, LeafOf<ElementOf<Out>>> &&
                         detail::is_device_span<std::remove_cvref_t<In>> ==
                             detail::is_device_span<std::remove_cvref_t<Out>>;

/// An input and an output that one reduction accepts together.
template <class In, class Out>
concept MatchingReducible = MatchingMemory<In, Out> && ReducibleMemory<Out>;
/// The output of an operation on the memory In.
template <class Out, class In>
concept OutputOf = MatchingMemory<In, Out>;
/// The output of a reduction of the memory In.
template <class Out, class In>
concept ReducedOutputOf = MatchingReducible<In, Out>;

/// Returns a buffer that describes the memory. Values without a DataType are described as bytes,
/// and complex numbers as two floats each.
template <Memory R>
auto buffer_of(R&& memory) {
  using T = ElementOf<R>;
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  constexpr bool device = detail::is_device_span<std::remove_cvref_t<R>>;
  const auto as_span = [&] {
    if constexpr (device)
      return std::span<T>{memory.data(), memory.size()};
    else
      return std::span<T>{std::ranges::data(memory), std::ranges::size(memory)};
  }();
  BasicBuffer<Byte> buffer{
      reinterpret_cast<Byte*>(as_span.data()),
      static_cast<std::int64_t>(as_span.size() * detail::ElementUnits<T>::units),
      detail::ElementUnits<T>::type, device ? MemoryKind::device : MemoryKind::host};
  if constexpr (detail::is_symmetric_span<std::remove_cvref_t<R>>) buffer.window = memory.window();
  return buffer;
}

}  // namespace rankmesh
