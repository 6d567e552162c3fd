// SPDX-License-Identifier: BSD-3-Clause
// A call that is used after the function that got it has returned.
#pragma once

#include <optional>

#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// A copy of a call with its blocks, which need not exist after Transport::start() has returned.
struct KeptCall {
  explicit KeptCall(const Call& original)
      : in_blocks{copy_of(original.in_blocks)},
        out_blocks{copy_of(original.out_blocks)},
        call{original} {
    call.in_blocks = in_blocks ? &*in_blocks : nullptr;
    call.out_blocks = out_blocks ? &*out_blocks : nullptr;
  }
  KeptCall(const KeptCall&) = delete;
  KeptCall& operator=(const KeptCall&) = delete;

  std::optional<Blocks> in_blocks, out_blocks;
  Call call;

 private:
  static std::optional<Blocks> copy_of(const Blocks* blocks) {
    return blocks == nullptr ? std::nullopt : std::optional{*blocks};
  }
};

}  // namespace rankmesh::detail
