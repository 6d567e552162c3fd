// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_calls.hpp"

#include <cstddef>
#include <exception>

namespace rankmesh::detail {
namespace {

// Each call in the list holds a CUDA event. The ends of older calls stay unknown.
constexpr std::size_t most_calls = 256;

}  // namespace

void DeviceCalls::follow(RecordedCall call, std::unique_ptr<Pending> end) {
  if (end == nullptr) return call.capture();
  if (calls_.size() == most_calls) calls_.pop_front();
  calls_.emplace_back(std::move(call), std::move(end));
  look();
}

void DeviceCalls::look() noexcept {
  while (!calls_.empty()) {
    auto& [call, end] = calls_.front();
    try {
      if (!end->test()) return;
      call.end();
    } catch (const std::exception&) {
      // Destroying `call` records the failure.
    }
    calls_.pop_front();
  }
}

}  // namespace rankmesh::detail
