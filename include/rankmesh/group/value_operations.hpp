// SPDX-License-Identifier: BSD-3-Clause
// Operations on one value instead of a range.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "rankmesh/group/stream_forms.hpp"

namespace rankmesh {

/// One value: a number, a struct, an enumeration, `bool` or a complex number, but not an array.
template <class T>
concept Value = MovableElement<std::remove_cvref_t<T>> && !Memory<T> &&
                !std::same_as<std::remove_cvref_t<T>, Peer> &&
                !std::same_as<std::remove_cvref_t<T>, StreamRef> &&
                !std::same_as<std::remove_cvref_t<T>, ReduceOp>;
/// A Value that a ReduceOp can combine.
template <class T>
concept ReducibleValue = Value<T> && ReducibleElement<std::remove_cvref_t<T>>;

/// Adds the operations on one value. A variable of the program is changed in place, like a buffer,
/// and its new value is also returned. A constant or a temporary is copied, and the result is
/// returned.
class ValueOperations : public StreamForms {
 public:
  using StreamForms::all_reduce;
  using StreamForms::all_reduce_async;
  using StreamForms::broadcast;
  using StreamForms::broadcast_async;
  using StreamForms::recv;
  using StreamForms::recv_async;
  using StreamForms::reduce;
  using StreamForms::reduce_async;
  using StreamForms::send;
  using StreamForms::send_async;
  using StreamForms::try_recv;

  /// Copies the root's value to all members, and returns it.
  template <Value T>
    requires(!std::is_const_v<T>)
  T broadcast(T& value, RankInGroup root) {
    broadcast(one(value), root);
    return value;
  }
  /// Does the same for a constant. Returns the root's value; the constant does not change.
  template <Value T>
  [[nodiscard]] T broadcast(const T& value, RankInGroup root) {
    T copy = value;
    return broadcast(copy, root);
  }
  /// Starts broadcast(); returns a Work. The memory must stay valid until it is complete.
  template <Value T>
    requires(!std::is_const_v<T>)
  [[nodiscard]] Work broadcast_async(T& value, RankInGroup root) {
    return broadcast_async(one(value), root);
  }

  /// Combines the values of all members. All members get the result, which is also returned.
  template <ReducibleValue T>
    requires(!std::is_const_v<T>)
  T all_reduce(T& value, ReduceOp op = ReduceOp::sum) {
    all_reduce(one(value), op);
    return value;
  }
  /// Does the same for a constant. Returns the result; the constant does not change.
  template <ReducibleValue T>
  [[nodiscard]] T all_reduce(const T& value, ReduceOp op = ReduceOp::sum) {
    T copy = value;
    return all_reduce(copy, op);
  }
  /// Combines the values of all members with a function; see UserReductions.
  template <Value T, ReductionFunction<std::remove_const_t<T>> F>
    requires(!std::is_const_v<T>)
  T all_reduce(T& value, F&& combine, Commutative commutative = Commutative::no) {
    all_reduce(one(value), combine, commutative);
    return value;
  }
  /// Does the same for a constant. Returns the result; the constant does not change.
  template <Value T, ReductionFunction<T> F>
  [[nodiscard]] T all_reduce(const T& value, F&& combine,
                             Commutative commutative = Commutative::no) {
    T copy = value;
    return all_reduce(copy, combine, commutative);
  }
  /// Starts all_reduce(); returns a Work. The memory must stay valid until it is complete.
  template <ReducibleValue T>
    requires(!std::is_const_v<T>)
  [[nodiscard]] Work all_reduce_async(T& value, ReduceOp op = ReduceOp::sum) {
    return all_reduce_async(one(value), op);
  }

  /// Combines the values of all members. Only the root gets the result; other members keep their
  /// value. Returns the value that this member then has.
  template <ReducibleValue T>
    requires(!std::is_const_v<T>)
  T reduce(T& value, RankInGroup root, ReduceOp op = ReduceOp::sum) {
    reduce(one(value), root, op);
    return value;
  }
  /// Does the same for a constant. Returns the result; the constant does not change.
  template <ReducibleValue T>
  [[nodiscard]] T reduce(const T& value, RankInGroup root, ReduceOp op = ReduceOp::sum) {
    T copy = value;
    return reduce(copy, root, op);
  }
  /// Starts reduce(); returns a Work. The memory must stay valid until it is complete.
  template <ReducibleValue T>
    requires(!std::is_const_v<T>)
  [[nodiscard]] Work reduce_async(T& value, RankInGroup root, ReduceOp op = ReduceOp::sum) {
    return reduce_async(one(value), root, op);
  }

  /// Sends one value to another member; see PointToPoint::send().
  template <Value T>
  void send(const T& value, Peer to, int tag = 0) {
    send(one(value), to, tag);
  }
  /// Starts to send one value. The variable must stay valid until the operation is complete.
  template <Value T>
  [[nodiscard]] Work send_async(T& value, Peer to, int tag = 0) {
    return send_async(one(value), to, tag);
  }
  /// Receives one value from another member.
  template <Value T>
    requires(!std::is_const_v<T>)
  void recv(T& value, Peer from, int tag = 0) {
    recv(one(value), from, tag);
  }
  /// Receives one value from another member and returns it: `const auto loss =
  /// pp.recv<float>(prev)`.
  template <Value T>
    requires std::default_initializable<T>
  [[nodiscard]] T recv(Peer from, int tag = 0) {
    T value{};
    recv(one(value), from, tag);
    return value;
  }
  /// Receives one value if it has arrived. Returns whether it has received the value.
  template <Value T>
    requires(!std::is_const_v<T>)
  [[nodiscard]] bool try_recv(T& value, Peer from, int tag = 0) {
    return try_recv(one(value), from, tag);
  }
  /// Starts recv(); returns a Work. The memory must stay valid until it is complete.
  template <Value T>
    requires(!std::is_const_v<T>)
  [[nodiscard]] Work recv_async(T& value, Peer from, int tag = 0) {
    return recv_async(one(value), from, tag);
  }

 protected:
  using StreamForms::StreamForms;
  ~ValueOperations() = default;

  /// Returns a view of one value.
  template <class T>
  static std::span<T, 1> one(T& value) {
    return std::span<T, 1>{std::addressof(value), 1};
  }
};

}  // namespace rankmesh
