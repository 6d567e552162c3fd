// SPDX-License-Identifier: BSD-3-Clause
// A call whose memory can be left behind.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "rankmesh/transport/transport.hpp"
#include "transport/detail/kept_call.hpp"

namespace rankmesh::detail {

/// An operation on copies of the caller's buffers. If the operation never ends, because a rank is
/// lost, this object is leaked, and what MPI still writes goes to the copies. The copies cost one
/// copy in before the operation and one copy out after it.
class StagedCall final : public Pending {
 public:
  /// @param start  Starts the call that it gets.
  StagedCall(const Call& call, RankInGroup self, std::int64_t size,
             const std::function<std::unique_ptr<Pending>(const Call&)>& start);

  bool test() override;
  [[nodiscard]] std::vector<std::int64_t> awaited() const override { return carried_->awaited(); }
  [[nodiscard]] bool is_in_mpi() const override { return carried_->is_in_mpi(); }
  [[nodiscard]] bool is_polled() const override { return true; }  // for the copy out
  void cancel() override { carried_->cancel(); }
  [[nodiscard]] bool was_cancelled() const override { return carried_->was_cancelled(); }

 private:
  KeptCall original_;
  std::int64_t size_;
  bool has_output_;
  std::vector<std::byte> in_, out_;  // the copies
  std::unique_ptr<Pending> carried_;
  bool is_complete_ = false;
};

}  // namespace rankmesh::detail
