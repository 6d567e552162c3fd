// SPDX-License-Identifier: BSD-3-Clause
// Shows calls in the timelines of Nsight Systems.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rankmesh/base/operation.hpp"

namespace rankmesh::detail {

/// The functions of NVTX that mark what a thread does from one moment to another. NVTX is a library
/// of NVIDIA's tools; it is found at run time.
class CallRanges {
 public:
  /// Returns the functions if the process has loaded NVTX. Local.
  /// @param setting  RANKMESH_NVTX. True: NVTX is loaded now if it is not. False: it is not used.
  /// @param why_not  Receives the reason if NVTX was to be loaded and is not there.
  static std::optional<CallRanges> find(std::optional<bool> setting, std::string& why_not);

  /// Marks a call of a group on the calling thread for as long as this object lives. The range
  /// has the name of the group and the operation, for example `tp.all_reduce`.
  class ShownCall {
   public:
    /// @param ranges  Null: there is no range.
    ShownCall(const CallRanges* ranges, std::string_view group, Operation operation)
        : ranges_{ranges} {
      if (ranges_ != nullptr) push(*ranges_, group, operation);
    }
    ~ShownCall() {
      if (ranges_ != nullptr) (void)ranges_->pop_();
    }
    ShownCall(const ShownCall&) = delete;
    ShownCall& operator=(const ShownCall&) = delete;

   private:
    static void push(const CallRanges& ranges, std::string_view group, Operation operation);
    const CallRanges* ranges_;
  };

 private:
  using Push = int(const char* name);
  using Pop = int();
  CallRanges(Push* push, Pop* pop) : push_{push}, pop_{pop} {}
  Push* push_;
  Pop* pop_;
};

}  // namespace rankmesh::detail
