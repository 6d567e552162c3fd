// SPDX-License-Identifier: BSD-3-Clause
// Reductions with a function that the program passes.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/memory.hpp"

namespace rankmesh {

/// Says whether a reduction may combine its operands in any order (`yes`) or must combine them in
/// group order (`no`).
enum class Commutative : bool { no, yes };

/// A function that combines two values: `T f(const T& left, const T& right)`. The function must be
/// associative. An array is no function, although arrays of several libraries can be called with
/// two indices.
template <class F, class T>
concept ReductionFunction =
    !Memory<F> && std::is_invocable_r_v<T, std::remove_reference_t<F>&, const T&, const T&>;

/// A ReductionFunction for an input and an output, which have the same element type.
template <class F, class In, class Out>
concept MatchingReduction =
    std::same_as<ValueOf<In>, ValueOf<Out>> && ReductionFunction<F, ValueOf<Out>>;

/// A type-erased ReductionFunction, as transports use it. Each element has `element_bytes` bytes.
class UserReduction {
 public:
  /// @param type  The type of the elements; uint8 if rankmesh does not know their type.
  UserReduction(std::size_t element_bytes, Commutative commutative, DataType type = DataType::uint8)
      : element_bytes_{element_bytes}, commutative_{commutative}, type_{type} {}
  virtual ~UserReduction() = default;
  UserReduction(const UserReduction&) = delete;
  UserReduction& operator=(const UserReduction&) = delete;
  /// Returns a new object with a copy of the function.
  [[nodiscard]] virtual std::unique_ptr<UserReduction> copy() const = 0;

  /// Returns the size of an element in bytes.
  [[nodiscard]] std::size_t element_bytes() const noexcept { return element_bytes_; }
  /// Returns whether values may be combined in any order.
  [[nodiscard]] Commutative commutative() const noexcept { return commutative_; }
  /// Returns the type of the elements, which the members compare, or uint8 if it is not known.
  [[nodiscard]] DataType type() const noexcept { return type_; }

  /// Computes right[i] = f(left[i], right[i]) for each i. If f throws, this object keeps the
  /// exception. The call then leaves the remaining elements of `right` unchanged, and all later
  /// calls do nothing.
  void combine(const std::byte* left, std::byte* right, std::int64_t count) noexcept {
    if (failure_ != nullptr) return;
    try {
      apply(left, right, count);
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  /// Writes values T{}, which are the result of no operands. Types without a default constructor
  /// get zero bytes.
  virtual void clear(std::byte* out, std::int64_t bytes) const {
    std::memset(out, 0, static_cast<std::size_t>(bytes));
  }
  /// Returns the exception that f has thrown on this rank, or null if f has not thrown.
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }

 protected:
  /// Combines `count` elements: right[i] = f(left[i], right[i]).
  virtual void apply(const std::byte* left, std::byte* right, std::int64_t count) = 0;

 private:
  std::size_t element_bytes_;
  Commutative commutative_;
  DataType type_;
  std::exception_ptr failure_;
};

namespace detail {

template <class T>
constexpr DataType type_for_comparison() {
  if constexpr (Element<T>) return DataTypeOf<T>::value;
  return DataType::uint8;
}

template <class T, class F>
class UserReductionOf final : public UserReduction {
 public:
  UserReductionOf(F function, Commutative commutative)
      : UserReduction{sizeof(T), commutative, type_for_comparison<T>()},
        function_{std::move(function)} {}
  [[nodiscard]] std::unique_ptr<UserReduction> copy() const override {
    return std::make_unique<UserReductionOf>(function_, commutative());
  }
  void clear(std::byte* out, std::int64_t bytes) const override {
    UserReduction::clear(out, bytes);
    if constexpr (std::is_default_constructible_v<T>) {
      const T none{};
      for (std::byte* end = out + bytes; out != end; out += sizeof(T))
        std::memcpy(out, &none, sizeof(T));
    }
  }

 protected:
  // Copies the values, because MPI's own buffers need not be aligned for T.
  void apply(const std::byte* left, std::byte* right, std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i, left += sizeof(T), right += sizeof(T)) {
      alignas(T) std::byte a[sizeof(T)];
      alignas(T) std::byte b[sizeof(T)];
      std::memcpy(a, left, sizeof(T));
      std::memcpy(b, right, sizeof(T));
      const T result = function_(*reinterpret_cast<const T*>(a), *reinterpret_cast<const T*>(b));
      std::memcpy(right, &result, sizeof(T));
    }
  }

 private:
  F function_;
};

}  // namespace detail

}  // namespace rankmesh
