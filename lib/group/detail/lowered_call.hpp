// Calls on host memory that are carried by a plainer call on scratch memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rankmesh/transport/transport.hpp"

namespace rankmesh::detail {

/// Arithmetic on 16- and 8-bit floats is done on float32 copies, rounded once at the end: no
/// transport needs to know these types, and a sum loses no more than its result does.
class LoweredCall {
 public:
  /// Whether a transport cannot carry the call as it is.
  static bool is_needed(const Call& call) {
    return call.rows != 1 || (is_narrow_float(call.in.type) && reduces(call.operation));
  }
  /// The call was checked. Copies what the inputs hold.
  LoweredCall(const Call& call, RankInGroup self, std::int64_t size);

  /// What a transport carries; valid as long as this object.
  [[nodiscard]] const Call& call() const { return plain_; }
  /// Once that is complete: the results go to the caller's memory. Does not throw.
  void finish();

 private:
  void widen_all();

  Call original_;
  Call plain_;
  std::int64_t size_;
  bool has_result_;                // on this rank
  std::vector<std::byte> blocks_;  // one after the other
  std::vector<float> in_, out_;    // widened
};

/// The same under way.
class LoweredPending final : public Pending {
 public:
  LoweredPending(std::unique_ptr<LoweredCall> lowered, std::unique_ptr<Pending> plain)
      : lowered_{std::move(lowered)}, plain_{std::move(plain)} {}
  bool test() override {
    if (plain_ == nullptr) return true;
    if (!plain_->test()) return false;
    plain_.reset();
    lowered_->finish();
    return true;
  }

 private:
  std::unique_ptr<LoweredCall> lowered_;
  std::unique_ptr<Pending> plain_;
};

}  // namespace rankmesh::detail
