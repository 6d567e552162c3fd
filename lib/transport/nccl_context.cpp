// SPDX-License-Identifier: BSD-3-Clause
#include "transport/detail/nccl_context.hpp"

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

namespace rankmesh {

std::string NcclContext::abort(std::span<nccl::Communicator* const> comms,
                               const std::string& why) noexcept {
  std::string left_behind;
  try {
    nccl::Abort all{comms, why};
    left_behind = all.wait(nccl::Abort::usual_limit(),
                           [this](const std::string& name) { return is_in_graphs(name); });
  } catch (const std::exception&) {
    left_behind = "unknown, because there is no memory";
  }
  if (!left_behind.empty()) note_left_behind(left_behind);
  return left_behind;
}

void NcclContext::abort(const std::string& why) noexcept {
  watch.wait_for_abort_of_all(nccl::Abort::usual_limit());
  std::vector<nccl::Communicator*> comms;
  {
    const std::lock_guard lock{mutex_};
    comms = comms_;
  }
  (void)abort(comms, why);
}

void NcclContext::note_left_behind(const std::string& names) noexcept {
  report("NCCL communicators were left behind: " + names);
  const std::lock_guard lock{mutex_};
  left_behind_ += (left_behind_.empty() ? "" : ", ") + names;
}

// The operations of a rank never end on the device if a member is lost. The program may wait for
// them in CUDA, without rankmesh.
std::string NcclContext::reason_to_abort() {
  detail::LossWatch::look_at_all();
  const std::lock_guard lock{reason_mutex_};
  try {
    if (may_be_lost_ && control->is_lost()) {
      may_be_lost_ = false;
      return "ranks are lost";
    }
    return reason_ ? reason_() : std::string{};
  } catch (const std::exception&) {
    return {};  // the device has failed, which the program learns by its next call
  }
}

bool NcclContext::has_implicit_order(const nccl::Library& library) {
  constexpr int first_with_implicit_order = 22600;
  const char* value = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  return library.version() >= first_with_implicit_order && value != nullptr && *value != '\0' &&
         std::string_view{value} != "0";
}

std::uint64_t NcclContext::note_own_work(const void* stream, const std::string& group) {
  if (!may_warn_of_order_) return 0;
  const auto other =
      std::ranges::find_if(own_work_, [&](const OwnWork& work) { return work.stream != stream; });
  if (other != own_work_.end()) {
    may_warn_of_order_ = false;  // once is enough
    control->log(
        LogLevel::warning,
        fmt::format("operations of '{}' and '{}' run on streams of their own, without an order "
                    "between them: if their kernels reach the devices in different orders, the "
                    "ranks may wait for each other for ever. Wait for the first operation before "
                    "the second one is issued (Work::wait()), or set NCCL_LAUNCH_ORDER_IMPLICIT=1 "
                    "before NCCL is loaded (2.26, CUDA 12.3)",
                    other->group, group));
    own_work_.clear();
    return 0;
  }
  std::erase_if(own_work_, [&](const OwnWork& work) { return work.stream == stream; });
  own_work_.push_back({stream, ++last_own_work_, group});
  return last_own_work_;
}

void NcclContext::report(const std::string& text) noexcept { control->log()->report(text); }

}  // namespace rankmesh
