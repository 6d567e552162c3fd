// SPDX-License-Identifier: BSD-3-Clause
// Integers with a separate type for each meaning. For example, a world rank cannot be passed as a
// rank in group.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <type_traits>

namespace rankmesh {

template <class Meaning>
class Index;

namespace detail {
template <class T>
concept Computable = std::is_arithmetic_v<T> || requires(T& iterator) { *iterator; };
/// A number or an iterator to which a program adds an Index by mistake.
struct Number {
  template <Computable T>
  Number(const T&);
};
/// Also an Index.
struct Operand {
  template <Computable T>
  Operand(const T&);
  template <class Meaning>
  Operand(Index<Meaning>);
};
/// Appears in what the compiler says of arithmetic.
struct WriteToInt;
}  // namespace detail

/// An integer whose type states its meaning. A plain integer converts to an Index implicitly, but
/// an Index of one meaning never converts to an Index of another meaning. For example, a world rank
/// cannot be passed as a rank in group. An Index is compared with other Indexes of the same meaning
/// and with integers. It has no arithmetic: compute with to_int(), to_size() or value(). It is
/// printed as a number by `<<` and by fmt. With fmt 9 or older, include <fmt/format.h> before the
/// headers of rankmesh.
template <class Meaning>
class Index {
 public:
  constexpr Index() = default;
  /// Creates an index from an integer of any type. Implicit.
  template <std::integral I>
  constexpr Index(I value)
      : value_{static_cast<std::int64_t>(value)} {}  // implicit, so that literals can be passed

  /// Returns the index as a 64-bit integer.
  [[nodiscard]] constexpr std::int64_t value() const { return value_; }
  /// Returns the value as an int, for example for MPI. The values of an Index usually are numbers
  /// of ranks, which fit into an int.
  [[nodiscard]] constexpr int to_int() const { return static_cast<int>(value_); }
  /// Returns the value as a std::size_t, for example to index a std::vector.
  [[nodiscard]] constexpr std::size_t to_size() const { return static_cast<std::size_t>(value_); }
  /// Converts to any integer type, as in `static_cast<int>(rank)`.
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  [[nodiscard]] explicit constexpr operator I() const {
    return static_cast<I>(value_);
  }
  /// Compares two indices of the same kind.
  friend constexpr auto operator<=>(const Index&, const Index&) = default;
  /// Prints the index as a number.
  template <class Traits>
  friend std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                                      const Index& index) {
    return out << index.value_;
  }
  /// Lets fmt print the index as a number.
  friend constexpr std::int64_t format_as(const Index& index) { return index.value_; }  // for fmt

  // An Index has no arithmetic. Compilers show these comments.
  // clang-format off
  /// @cond  These operators only refuse calls.
  friend detail::WriteToInt operator+(const Index&, detail::Operand) = delete;  // write index.to_int()
  friend detail::WriteToInt operator+(detail::Number, const Index&) = delete;  // write index.to_int()
  friend detail::WriteToInt operator-(const Index&, detail::Operand) = delete;  // write index.to_int()
  friend detail::WriteToInt operator-(detail::Number, const Index&) = delete;  // write index.to_int()
  friend detail::WriteToInt operator*(const Index&, detail::Operand) = delete;  // write index.to_int()
  friend detail::WriteToInt operator*(detail::Number, const Index&) = delete;  // write index.to_int()
  friend detail::WriteToInt operator/(const Index&, detail::Operand) = delete;  // write index.to_int()
  friend detail::WriteToInt operator/(detail::Number, const Index&) = delete;  // write index.to_int()
  friend detail::WriteToInt operator%(const Index&, detail::Operand) = delete;  // write index.to_int()
  friend detail::WriteToInt operator%(detail::Number, const Index&) = delete;  // write index.to_int()
  friend detail::WriteToInt operator+=(Index&, detail::Operand) = delete;  // write index.to_int()
  friend detail::WriteToInt operator-=(Index&, detail::Operand) = delete;  // write index.to_int()
  friend detail::WriteToInt operator++(Index&) = delete;  // write index.to_int()
  friend detail::WriteToInt operator++(Index&, int) = delete;  // write index.to_int()
  friend detail::WriteToInt operator--(Index&) = delete;  // write index.to_int()
  friend detail::WriteToInt operator--(Index&, int) = delete;  // write index.to_int()
  /// @endcond
  // clang-format on

 private:
  std::int64_t value_ = 0;
};

/// The number of a process in the world. The world is the communicator that the program passes to
/// the mesh.
using Rank = Index<struct RankMeaning>;
/// The number of a process inside one group.
using RankInGroup = Index<struct RankInGroupMeaning>;
/// The position of a process along one dimension.
using Coordinate = Index<struct CoordinateMeaning>;

}  // namespace rankmesh

// fmt 10 and newer find format_as().
#if defined(FMT_VERSION) && FMT_VERSION < 100000
template <class Meaning>
struct fmt::formatter<rankmesh::Index<Meaning>> : fmt::formatter<std::int64_t> {
  template <class Context>
  auto format(const rankmesh::Index<Meaning>& index, Context& context) const {
    return fmt::formatter<std::int64_t>::format(index.value(), context);
  }
};
#endif
