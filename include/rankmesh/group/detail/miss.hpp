// SPDX-License-Identifier: BSD-3-Clause
// Finds out what is wrong with a call that does not compile.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/base/memory.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/group/axis.hpp"
#include "rankmesh/group/detail/calls.hpp"
#include "rankmesh/group/peer.hpp"
#include "rankmesh/layout/slice.hpp"
#include "rankmesh/transport/blocks.hpp"

namespace rankmesh::detail {

/// The function of a group that a program has called.
struct Called {
  Operation operation;
  bool has_counts;  ///< The name ends with _v.
  bool is_async;    ///< The name ends with _async.
  bool tries;       ///< The name begins with try_.

  [[nodiscard]] constexpr bool is(Operation of, bool with_counts = false) const {
    return operation == of && has_counts == with_counts && !tries;
  }
};
constexpr Called called_by(Operation operation, std::string_view name) {
  const bool is_async = name.ends_with("_async");
  if (is_async) name.remove_suffix(std::string_view{"_async"}.size());
  return {operation, name.ends_with("_v"), is_async, name.starts_with("try_")};
}
/// Returns whether a reduction combines blocks of equal length.
constexpr bool reduces_in_place(Operation operation) {
  const OperationFacts& facts = facts_of(operation);
  return facts.reduces && facts.in == Extent::block && facts.out == Extent::block;
}
/// Returns whether the operation writes to its first argument.
constexpr bool writes_first(Operation operation, std::size_t buffers) {
  const OperationFacts& facts = facts_of(operation);
  return (facts.in == Extent::none && facts.out != Extent::none) ||
         (reduces_in_place(operation) && (buffers < 2 || facts.awaited == Awaited::earlier));
}
/// Returns whether the operation has an output that is not its input.
constexpr bool has_own_output(Operation operation) {
  const OperationFacts& facts = facts_of(operation);
  return facts.in != Extent::none && facts.out != Extent::none && !reduces_in_place(operation);
}

/// What is wrong with the arguments of a call.
enum class Miss : std::uint8_t {
  no_values,
  pointer,
  smart_pointer,
  world_rank,
  rank_or_nothing,
  packed_bits,
  not_contiguous,
  not_described,
  expression,
  list,
  not_copyable,
  not_reducible,
  slice,
  stream_early,
  axis_late,
  blocks_early,
  peer_early,
  constant,
  constant_output,
  element_types,
  memory_kinds,
  function_on_device,
  no_output,
  braces_output,
  temporary,
  received_temporary,
  usage,  ///< another mistake; the message says how to call the operation
};

template <class T>
inline constexpr bool is_packed_bits = false;
template <class A>
inline constexpr bool is_packed_bits<std::vector<bool, A>> = true;
template <class T>
inline constexpr bool is_smart_pointer = false;
template <class T, class D>
inline constexpr bool is_smart_pointer<std::unique_ptr<T, D>> = true;
template <class T>
inline constexpr bool is_smart_pointer<std::shared_ptr<T>> = true;

/// What a wrong call passes if its first argument is a list in braces, or if it has no arguments.
struct Braces {
  template <class T>
  Braces(std::initializer_list<T>);
  template <class... T>
  Braces(T&&...);
};
/// What a wrong call passes if an argument behind the first one is a list in braces. Nothing else
/// converts to it.
struct BracesInside {
  BracesInside();
  template <class T>
  BracesInside(std::initializer_list<T>);
};

/// What a wrong call passes if an argument behind the first one is a list of two or more values.
struct SeveralInside {
  template <class A, class B, class... C>
  SeveralInside(const A&, const B&, const C&...);
};

// Questions about one argument.
template <class A>
using Plain = std::remove_cvref_t<A>;
template <class A>
concept DataPointer =
    std::is_pointer_v<Plain<A>> && std::is_object_v<std::remove_pointer_t<Plain<A>>>;
/// A pointer to numbers, as the output. The MPI_Op of Open MPI is a pointer, too.
template <class A>
concept NumberPointer =
    DataPointer<A> && std::is_arithmetic_v<std::remove_cv_t<std::remove_pointer_t<Plain<A>>>>;
template <class A>
concept Streamlike = !std::is_null_pointer_v<Plain<A>> && !DataPointer<A> && !Memory<A> &&
                     std::is_convertible_v<A, StreamRef>;
template <class A>
concept PeerName = std::is_same_v<Plain<A>, Next> || std::is_same_v<Plain<A>, Previous> ||
                   std::is_same_v<Plain<A>, RankInGroup> || std::is_same_v<Plain<A>, Peer> ||
                   std::is_integral_v<Plain<A>>;
template <class A>
concept CountsOrBlocks = std::is_same_v<Plain<A>, Blocks> || Integers<Plain<A>>;
/// A class that is neither memory nor a value nor another argument of an operation.
template <class A>
concept Undescribed = std::is_class_v<Plain<A>> && !Memory<A> && !MovableElement<Plain<A>> &&
                      !std::ranges::range<A> && !Streamlike<A> && !std::is_same_v<Plain<A>, Axis> &&
                      !std::derived_from<Plain<A>, Blocks>;
template <class A>
concept AnyRange = std::ranges::range<Plain<A>> && !std::is_array_v<Plain<A>>;

/// A list of buffers that are no ranges, such as DeviceSpans.
template <class A>
concept ListOfViews = AnyRange<A> && !Memory<A> && Memory<std::ranges::range_reference_t<A>> &&
                      !std::ranges::range<std::ranges::range_value_t<A>>;

// The type of argument k, or Absent beyond the last one.
struct Absent {};
template <std::size_t k, class... A>
using At = std::tuple_element_t<k, std::tuple<A..., Absent, Absent, Absent, Absent>>;

/// Returns what is wrong with the first argument of a call.
template <Called called, class First>
consteval Miss miss_of_values(std::size_t buffers) {
  if constexpr (is_packed_bits<Plain<First>>) return Miss::packed_bits;
  if constexpr (refers_to_arrays<Plain<First>> && !Memory<First>) return Miss::expression;
  if constexpr (AnyRange<First> && !std::ranges::contiguous_range<Plain<First>>)
    return Miss::not_contiguous;
  if constexpr (ListOfViews<First>) return Miss::list;
  if constexpr (AnyRange<First> && !Memory<First>) return Miss::not_copyable;
  if constexpr (Undescribed<First>) return Miss::not_described;
  if constexpr (Memory<First>) {
    if (reduces(called.operation) && !ReducibleMemory<First>) return Miss::not_reducible;
    if (writes_first(called.operation, buffers) && !WritableMemory<First>) return Miss::constant;
  } else if constexpr (MovableElement<Plain<First>> && !std::is_same_v<Plain<First>, ReduceOp>) {
    if (reduces(called.operation) && !ReducibleElement<Plain<First>>) return Miss::not_reducible;
  }
  return Miss::usage;
}

/// Returns what is wrong with an input and an output.
template <class In, class Out>
consteval Miss miss_of_buffers() {
  if constexpr (Memory<In> && Memory<Out>) {
    if (DeviceMemory<In> != DeviceMemory<Out>) return Miss::memory_kinds;
    if (!std::is_same_v<LeafOf<ElementOf<In>>, LeafOf<ElementOf<Out>>>) return Miss::element_types;
    if (!WritableMemory<Out>) return Miss::constant_output;
  }
  return Miss::usage;
}

/// Returns what is wrong with a call.
template <Called called, class... A>
consteval Miss miss_of() {
  using First = At<0, A...>;
  using Second = At<1, A...>;
  using Third = At<2, A...>;
  using Fourth = At<3, A...>;
  constexpr std::size_t buffers = Memory<First> + Memory<Second>;
  if (std::is_same_v<Plain<First>, Braces>) return Miss::no_values;
  if (std::is_same_v<Plain<Second>, BracesInside>)
    return called.has_counts && Memory<Third> && !CountsOrBlocks<Third> ? Miss::blocks_early
                                                                        : Miss::braces_output;
  if (DataPointer<First> || NumberPointer<Second>) return Miss::pointer;
  if (is_smart_pointer<Plain<First>>) return Miss::smart_pointer;
  if ((std::is_same_v<Plain<A>, Rank> || ...)) return Miss::world_rank;
  if ((std::is_same_v<Plain<A>, std::optional<RankInGroup>> || ...)) return Miss::rank_or_nothing;
  if (called.has_counts && (std::is_same_v<Plain<A>, Slice> || ...)) return Miss::slice;
  if ((std::is_same_v<std::decay_t<A>, const char*> || ...)) return Miss::usage;
  if constexpr (sizeof...(A) > 1) {
    constexpr std::size_t last = sizeof...(A) - 1;
    if ((Streamlike<A> || ...) && !Streamlike<At<last, A...>>) return Miss::stream_early;
  }
  if (PeerName<Third> && std::is_same_v<Plain<Fourth>, Axis>) return Miss::axis_late;
  if (called.has_counts && CountsOrBlocks<Second> && Memory<Third>) return Miss::blocks_early;
  if (called.operation == Operation::send_recv && PeerName<Second> && Memory<Third>)
    return Miss::peer_early;
  if constexpr (sizeof...(A) > 0) {
    constexpr bool combines = sizeof...(A) > 1 &&
                              std::is_class_v<Plain<At<sizeof...(A) - 1, A...>>> &&
                              !Streamlike<At<sizeof...(A) - 1, A...>>;
    if (reduces(called.operation) && DeviceMemory<First> && combines && !AnyRange<Second>)
      return Miss::function_on_device;
    constexpr Miss values = miss_of_values<called, First>(buffers);
    if (values != Miss::usage) return values;
    if (called.has_counts && CountsOrBlocks<Second>) return Miss::usage;  // there is no output
    if (has_own_output(called.operation) && Memory<First> && !std::is_same_v<Second, Absent> &&
        Undescribed<Second>)
      return Miss::not_described;
    constexpr Miss both = miss_of_buffers<First, Second>();
    if (both != Miss::usage) return both;
    if (DeviceMemory<First> && !Memory<Second> && has_own_output(called.operation))
      return Miss::no_output;
    if (called.operation == Operation::recv && Memory<First> && !is_borrowed<First>)
      return Miss::received_temporary;
    if (called.is_async && !std::is_lvalue_reference_v<First> && MovableElement<Plain<First>> &&
        !Memory<First>)
      return Miss::temporary;
  }
  return Miss::usage;
}

}  // namespace rankmesh::detail
