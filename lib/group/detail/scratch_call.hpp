// SPDX-License-Identifier: BSD-3-Clause
// Replaces calls that no transport carries by simpler calls on scratch memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rankmesh/transport/transport.hpp"
#include "transport/detail/kept_call.hpp"

namespace rankmesh::detail {

/// Carries a call on host memory by a simpler one: copies the inputs to scratch memory, in a form
/// that every transport carries, and copies the results back. Blocks along an axis become blocks
/// that follow each other. Reductions of 16-bit and 8-bit floats become reductions of float32. The
/// result is rounded to the narrow type only once, at the end.
class ScratchCall {
 public:
  /// Returns whether no transport carries the call as it is.
  static bool is_needed(const Call& call) {
    return rows_in(call) > 1 || rows_out(call) > 1 ||
           (is_narrow_float(call.in.type) && reduces(call.operation));
  }
  /// Copies the inputs of a checked call.
  ScratchCall(const Call& call, RankInGroup self, std::int64_t size);

  /// Returns the scratch call, which is valid as long as this object.
  [[nodiscard]] const Call& call() const { return plain_; }
  /// Copies the results to the caller's memory, once the scratch call is complete. Does not throw.
  void finish();

 private:
  // How many rows the input, or the output, has of which each block has a part.
  static std::int64_t rows_in(const Call& call) {
    return call.in_blocks != nullptr ? call.in_blocks->rows()
                                     : (scatters(call.operation) ? call.rows : 1);
  }
  static std::int64_t rows_out(const Call& call) {
    return call.out_blocks != nullptr ? call.out_blocks->rows()
                                      : (gathers(call.operation) ? call.rows : 1);
  }
  void widen_all();

  KeptCall original_;  // finish() needs its blocks, which the caller may have destroyed by then
  Call plain_;
  std::int64_t size_;
  bool has_result_;                                // on this rank
  std::vector<std::byte> in_blocks_, out_blocks_;  // one after the other
  std::vector<float> in_, out_;                    // widened
};

/// A scratch call in flight.
class PendingScratchCall final : public Pending {
 public:
  PendingScratchCall(std::unique_ptr<ScratchCall> scratch, std::unique_ptr<Pending> plain)
      : scratch_{std::move(scratch)}, plain_{std::move(plain)} {}
  bool test() override {
    if (plain_ == nullptr) return true;
    if (!plain_->test()) return false;
    plain_.reset();
    scratch_->finish();
    return true;
  }
  [[nodiscard]] std::vector<std::int64_t> awaited() const override {
    return plain_ == nullptr ? std::vector<std::int64_t>{} : plain_->awaited();
  }
  [[nodiscard]] bool is_in_mpi() const override { return plain_ != nullptr && plain_->is_in_mpi(); }
  [[nodiscard]] bool is_polled() const override { return plain_ != nullptr && plain_->is_polled(); }

 private:
  std::unique_ptr<ScratchCall> scratch_;
  std::unique_ptr<Pending> plain_;
};

}  // namespace rankmesh::detail
