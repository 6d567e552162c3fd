// SPDX-License-Identifier: BSD-3-Clause
#include "transport/detail/nccl_context.hpp"

#include <exception>

namespace rankmesh {

std::string NcclContext::abort(std::span<nccl::Communicator* const> comms) noexcept {
  std::string left_behind;
  try {
    nccl::Abort all{comms};
    left_behind = all.wait(nccl::Abort::usual_limit,
                           [this](const std::string& name) { return is_in_graphs(name); });
  } catch (const std::exception&) {
    left_behind = "unknown, because there is no memory";
  }
  if (!left_behind.empty()) warn("NCCL communicators were left behind: " + left_behind);
  return left_behind;
}

std::string NcclContext::abort() noexcept {
  std::vector<nccl::Communicator*> comms;
  {
    const std::lock_guard lock{mutex_};
    comms = comms_;
  }
  return abort(comms);
}

void NcclContext::warn(const std::string& text) noexcept {
  try {
    log_(text);
  } catch (const std::exception&) {
    // The sink of the program failed.
  }
}

}  // namespace rankmesh
