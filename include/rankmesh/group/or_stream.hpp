// SPDX-License-Identifier: BSD-3-Clause
// An argument of an operation that a stream may replace.
#pragma once

#include <concepts>

#include "rankmesh/base/stream_ref.hpp"

namespace rankmesh {

/// An argument that may be left out before a stream: `all_reduce(values, stream)` means
/// `all_reduce(values, ReduceOp::sum, stream)`, and `send(values, to, stream)` has the tag 0.
template <class T>
class OrStream {
 public:
  /// Takes the argument. Implicit, as the next one.
  constexpr OrStream(T value) : value_{value} {}
  /// Takes a stream; the argument is T{}.
  template <class Stream>
    requires std::convertible_to<const Stream&, StreamRef>
  constexpr OrStream(const Stream& stream) : stream_{stream} {}

  /// Returns the argument.
  [[nodiscard]] constexpr T value() const { return value_; }
  /// Returns the stream, or if there is none, the one that follows this argument.
  [[nodiscard]] constexpr StreamRef stream_or(StreamRef following) const {
    return stream_.native() != nullptr ? stream_ : following;
  }

 private:
  T value_{};
  StreamRef stream_{};
};

}  // namespace rankmesh
