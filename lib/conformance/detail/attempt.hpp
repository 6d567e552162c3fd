// SPDX-License-Identifier: BSD-3-Clause
// A call of the table of conformance with its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "entries.hpp"
#include "values.hpp"

namespace rankmesh::conformance {

/// A call with its memory, and what it must give.
class AttemptedCall {
 public:
  AttemptedCall(const TableEntry& entry, const Carrier& carrier, const ReductionValues* values);
  AttemptedCall(const AttemptedCall&) = delete;

  [[nodiscard]] const TableEntry& entry() const { return entry_; }
  [[nodiscard]] const Call& call() const { return call_; }

  /// Describes the call.
  [[nodiscard]] std::string text() const;

  /// Returns what is wrong, or nothing.
  [[nodiscard]] std::string problem() const;

 private:
  [[nodiscard]] bool is_wrong(std::int64_t element) const;
  [[nodiscard]] bool is_root() const { return call_.root.value() == self_; }

  // What a member passes, from element `begin` on.
  [[nodiscard]] Bytes input(std::int64_t member, std::int64_t begin, std::int64_t count) const;
  Bytes result(std::int64_t begin, std::int64_t count);
  static void append(Bytes& to, const Bytes& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  // Passes `input`, and gets `expected` in memory of its size.
  void pass(Bytes input, Bytes expected);
  // The output holds the input before the call.
  void pass_in_place(const Bytes& input, std::int64_t at, Bytes expected);
  // The output stays as it is, in memory of `count` elements. Half of the calls pass no memory.
  void keep(std::int64_t count);
  void set_in(const std::byte* data, std::int64_t count) { call_.in = {data, count, entry_.type}; }

  void set_memory();
  void set_blocks();

  TableEntry entry_;
  const ReductionValues* values_;
  std::int64_t n_, self_, element_;
  Call call_{};
  Blocks in_blocks_, out_blocks_;
  Bytes in_, sent_, out_, expected_;
  std::int64_t place_ = 0, in_at_ = -1, in_count_ = 0;
  std::int64_t out_at_ = 0, out_count_ = -1;  // -1: all
  bool is_reduced_here_ = false;
};

}  // namespace rankmesh::conformance
