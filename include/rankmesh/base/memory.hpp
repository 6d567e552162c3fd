// SPDX-License-Identifier: BSD-3-Clause
// What rankmesh knows about the memory of an argument: MemoryOf describes it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>
#include <utility>

#include "rankmesh/base/array_shape.hpp"
#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/device_span.hpp"
#include "rankmesh/base/element.hpp"
#include "rankmesh/base/symmetric_span.hpp"

namespace rankmesh {

/// Who owns the memory of an object, and so how long it exists.
enum class Ownership : std::uint8_t {
  owned,   ///< As long as the object, as with std::vector. An asynchronous operation keeps a
           ///< container that is moved into the call.
  viewed,  ///< Independently of the object, as with std::span. The program keeps the memory until
           ///< the operation is complete.
  shared,  ///< As long as any copy of the object, as with torch::Tensor. An asynchronous operation
           ///< keeps a copy.
};

/// The element type of memory whose element type is known only at run time.
struct AnyElement {
  std::byte unknown;  ///< Not used.
};

/// What describes a contiguous range in host memory; the base of MemoryOf. Other types get nothing.
template <class R>
struct RangeMemory {};
/// Describes a contiguous range.
template <class R>
  requires(std::ranges::contiguous_range<R> && std::ranges::sized_range<R>)
struct RangeMemory<R> {
  /// Says whether the range owns its elements.
  static constexpr Ownership ownership =
      std::ranges::borrowed_range<R> ? Ownership::viewed : Ownership::owned;
  /// Returns the address of the first element.
  template <std::ranges::contiguous_range M>
  static auto* data(M& range) {
    return std::ranges::data(range);
  }
  /// Returns the number of elements.
  template <std::ranges::contiguous_range M>
  static std::size_t shape(M& range) {
    return static_cast<std::size_t>(std::ranges::size(range));
  }
};

/// Describes the memory of objects of type T, for all operations, buckets, redistributions and
/// checkpoints (docs/memory.md). A program specialises it for its own types, and the headers in
/// rankmesh/adapt/ for those of other libraries. T has no reference and no const.
///
/// A specialisation has two functions, and may have the other members:
///
///     template <>
///     struct rankmesh::MemoryOf<Grid> {
///       static float* data(Grid& grid) { return grid.cells(); }      // the first element
///       static const float* data(const Grid& grid) { return grid.cells(); }
///       static ArrayShape shape(const Grid& grid) {                  // or the number of elements
///         return {{grid.rows(), grid.columns()}, {grid.pitch(), 1}};
///       }
///       static constexpr MemoryKind kind = MemoryKind::host;         // host, if it is left out
///       static constexpr Ownership ownership = Ownership::owned;        // owned, if it is left
///       out static constexpr const char* copy = "pass grid.compact()";   // what errors suggest
///     };
///
/// `shape` returns a number if the elements are always contiguous. If the element type is known at
/// run time only, `data` returns a pointer to void, and `DataType type(const T&)` returns the type.
/// If the kind is, it is a function of the object, too: `MemoryKind kind(const T&)`.
template <class T>
struct MemoryOf : RangeMemory<T> {};

/// Describes a DeviceSpan.
template <class T>
struct MemoryOf<DeviceSpan<T>> {
  static constexpr MemoryKind kind = MemoryKind::device;     ///< Device memory.
  static constexpr Ownership ownership = Ownership::viewed;  ///< The span does not own it.
  /// Returns the address of the first element.
  static T* data(const DeviceSpan<T>& span) { return span.data(); }
  /// Returns the number of elements.
  static std::size_t shape(const DeviceSpan<T>& span) { return span.size(); }
};
/// Describes a SymmetricSpan: host memory that has a window.
template <class T>
struct MemoryOf<SymmetricSpan<T>> : RangeMemory<SymmetricSpan<T>> {
  /// Returns the window.
  static const SymmetricWindow* window(const SymmetricSpan<T>& span) { return span.window(); }
};
/// A list of views is a list of buffers, and not memory whose elements are views.
template <class Byte>
inline constexpr bool refers_to_arrays<BasicBuffer<Byte>> = true;
/// Describes a Buffer or a ConstBuffer.
template <class Byte>
struct MemoryOf<BasicBuffer<Byte>> {
  static constexpr Ownership ownership = Ownership::viewed;  ///< The buffer does not own it.
  /// A pointer to elements of any type.
  using Address = std::conditional_t<std::is_const_v<Byte>, const void*, void*>;
  /// Returns the address of the first element.
  static Address data(const BasicBuffer<Byte>& buffer) { return buffer.data; }
  /// Returns the number of elements.
  static std::size_t shape(const BasicBuffer<Byte>& buffer) {
    return static_cast<std::size_t>(buffer.count);
  }
  /// Returns the type of the elements.
  static DataType type(const BasicBuffer<Byte>& buffer) { return buffer.type; }
  /// Returns the kind of the memory.
  static MemoryKind kind(const BasicBuffer<Byte>& buffer) { return buffer.kind; }
  /// Returns the window.
  static const SymmetricWindow* window(const BasicBuffer<Byte>& buffer) { return buffer.window; }
};

namespace detail {

/// The description of the memory of an argument of type R.
template <class R>
using DescriptionOf = MemoryOf<std::remove_cvref_t<R>>;
/// An argument of type R, as an lvalue.
template <class R>
using ArgumentOf = std::remove_reference_t<R>&;

template <class R>
concept Described = requires(ArgumentOf<R> memory) {
  { *DescriptionOf<R>::data(memory) };
  DescriptionOf<R>::shape(memory);
} || requires(ArgumentOf<R> memory) {
  { DescriptionOf<R>::data(memory) } -> std::convertible_to<const void*>;
  { DescriptionOf<R>::type(memory) } -> std::same_as<DataType>;
  DescriptionOf<R>::shape(memory);
};

template <class R>
concept HasShape = requires(ArgumentOf<R> memory) {
  { DescriptionOf<R>::shape(memory) } -> std::same_as<ArrayShape>;
};
template <class R>
concept HasWindow = requires(ArgumentOf<R> memory) { DescriptionOf<R>::window(memory); };
template <class R>
concept HasKindAtRunTime = requires(ArgumentOf<R> memory) { DescriptionOf<R>::kind(memory); };
template <class R>
concept HasTypeAtRunTime = requires(ArgumentOf<R> memory) { DescriptionOf<R>::type(memory); };

template <class T>
struct ElementAt {
  using type = T;
};
template <>
struct ElementAt<void> {
  using type = AnyElement;
};
template <>
struct ElementAt<const void> {
  using type = const AnyElement;
};

template <class R>
consteval Ownership ownership_of() {
  if constexpr (requires { DescriptionOf<R>::ownership; }) return DescriptionOf<R>::ownership;
  return Ownership::owned;
}
/// Returns the kind of memory that is not HasKindAtRunTime.
template <class R>
consteval MemoryKind kind_of() {
  if constexpr (requires { DescriptionOf<R>::kind; }) return DescriptionOf<R>::kind;
  return MemoryKind::host;
}
template <class R>
constexpr const char* copy_of() {
  if constexpr (requires { DescriptionOf<R>::copy; }) return DescriptionOf<R>::copy;
  return "pass a contiguous copy; a Redistribution moves arrays with gaps";
}

}  // namespace detail

/// The element type of a Memory, or AnyElement. The type is const if the memory is read-only.
template <detail::Described R>
using ElementOf =
    typename detail::ElementAt<std::remove_pointer_t<decltype(detail::DescriptionOf<R>::data(
        std::declval<detail::ArgumentOf<R>>()))>>::type;
/// The type of a value of a Memory.
template <detail::Described R>
using ValueOf = std::remove_cv_t<ElementOf<R>>;

/// Memory that a collective accepts: a type that MemoryOf describes. For example a std::span, a
/// std::vector, a std::array, an array with several dimensions, or a DeviceSpan.
template <class R>
concept Memory = detail::Described<R> && MovableElement<ElementOf<R>>;
/// Memory that is on the host, and whose element type is known to the compiler.
template <class R>
concept HostMemory = Memory<R> && !detail::HasKindAtRunTime<R> && !detail::HasTypeAtRunTime<R> &&
                     detail::kind_of<R>() == MemoryKind::host;
/// Memory that is on a device, as a DeviceSpan is.
template <class R>
concept DeviceMemory =
    Memory<R> && !detail::HasKindAtRunTime<R> && detail::kind_of<R>() == MemoryKind::device;
/// Memory that a collective may write.
template <class R>
concept WritableMemory = Memory<R> && !std::is_const_v<ElementOf<R>>;
/// Memory that a collective may reduce with a ReduceOp.
template <class R>
concept ReducibleMemory =
    Memory<R> && (ReducibleElement<ValueOf<R>> || detail::HasTypeAtRunTime<R>);
/// Memory that a collective may reduce in place.
template <class R>
concept WritableReducibleMemory = WritableMemory<R> && ReducibleMemory<R>;
/// Memory on the host that a collective may write.
template <class R>
concept WritableHostMemory = HostMemory<R> && WritableMemory<R>;

namespace detail {
/// Whether two memories have the same element type, as far as the compiler knows.
template <class A, class B>
concept SameElements = std::same_as<LeafOf<ElementOf<A>>, LeafOf<ElementOf<B>>> ||
                       HasTypeAtRunTime<A> || HasTypeAtRunTime<B>;
/// Whether two memories are both on the host or both on a device, as far as the compiler knows.
template <class A, class B>
concept SameKinds =
    HasKindAtRunTime<A> || HasKindAtRunTime<B> || DeviceMemory<A> == DeviceMemory<B>;
}  // namespace detail

/// An input and an output that one call accepts together. They have the same element type and the
/// same memory kind. An array of several dimensions has the element type of its innermost arrays.
template <class In, class Out>
concept MatchingMemory = Memory<In> && WritableMemory<Out> && detail::SameElements<In, Out> &&
                         detail::SameKinds<In, Out>;
/// An input and an output that one reduction accepts together.
template <class In, class Out>
concept MatchingReducible = MatchingMemory<In, Out> && ReducibleMemory<Out>;
/// The output of an operation on the memory In.
template <class Out, class In>
concept OutputOf = MatchingMemory<In, Out>;
/// The output of a reduction of the memory In.
template <class Out, class In>
concept ReducedOutputOf = MatchingReducible<In, Out>;

namespace detail {

/// Returns the number of elements, or with gaps those from the first to the last one.
template <class R>
std::size_t reach_of(R& memory) {
  if constexpr (HasShape<R>)
    return static_cast<std::size_t>(DescriptionOf<R>::shape(memory).reach());
  else
    return static_cast<std::size_t>(DescriptionOf<R>::shape(memory));
}
/// Returns the number of elements of contiguous memory.
/// @throws UsageError if it has gaps.
template <class R>
std::size_t elements_of(R& memory) {
  if constexpr (HasShape<R>) {
    const ArrayShape shape = DescriptionOf<R>::shape(memory);
    if (!shape.has_no_gaps()) refuse_gaps(shape, copy_of<R>());
    return static_cast<std::size_t>(shape.count());
  } else {
    return static_cast<std::size_t>(DescriptionOf<R>::shape(memory));
  }
}
/// Returns a buffer of the first `count` elements.
template <Memory R>
auto buffer_of_first(R& memory, std::size_t count) {
  using D = DescriptionOf<R>;
  using T = ElementOf<R>;
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  BasicBuffer<Byte> buffer{reinterpret_cast<Byte*>(D::data(memory)),
                           static_cast<std::int64_t>(count * ElementUnits<T>::units),
                           ElementUnits<T>::type};
  if constexpr (HasTypeAtRunTime<R>) buffer.type = D::type(memory);
  if constexpr (HasKindAtRunTime<R>)
    buffer.kind = D::kind(memory);
  else
    buffer.kind = kind_of<R>();
  if constexpr (HasWindow<R>) buffer.window = D::window(memory);
  return buffer;
}

}  // namespace detail

/// Returns a buffer that describes the memory. Values without a DataType are described as bytes,
/// and complex numbers as two floats each.
/// @throws UsageError if the memory has gaps.
template <Memory R>
auto buffer_of(R&& memory) {
  return detail::buffer_of_first(memory, detail::elements_of(memory));
}

namespace detail {
/// Returns a buffer that describes row-major memory.
/// @throws UsageError if an array is not row-major.
template <Memory R>
auto row_major_buffer_of(R&& memory) {
  if constexpr (HasShape<R>) {
    const ArrayShape shape = DescriptionOf<R>::shape(memory);
    if (!shape.is_row_major()) refuse_order(shape, copy_of<R>());
  }
  return buffer_of(memory);
}
}  // namespace detail

}  // namespace rankmesh
