// SPDX-License-Identifier: BSD-3-Clause
// One value instead of a range.
#pragma once

#include <concepts>
#include <type_traits>

#include "rankmesh/base/memory.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/group/peer.hpp"

namespace rankmesh {

/// One value: a number, a struct, an enumeration, `bool` or a complex number, but not an array. An
/// operation changes a variable of the program in place, like a buffer, and also returns its new
/// value. It copies a constant or a temporary, and returns the result.
template <class T>
concept Value = MovableElement<std::remove_cvref_t<T>> && !Memory<T> &&
                !std::same_as<std::remove_cvref_t<T>, Peer> &&
                !std::same_as<std::remove_cvref_t<T>, StreamRef> &&
                !std::same_as<std::remove_cvref_t<T>, ReduceOp>;
/// A Value that a ReduceOp can combine.
template <class T>
concept ReducibleValue = Value<T> && ReducibleElement<std::remove_cvref_t<T>>;

/// A Value that an operation may change.
template <class T>
concept Variable = Value<T> && !std::is_const_v<T>;
/// A ReducibleValue that an operation may change.
template <class T>
concept ReducibleVariable = ReducibleValue<T> && !std::is_const_v<T>;

}  // namespace rankmesh
