// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_calls.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <vector>

#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

// Each call in the list holds a CUDA event. The ends of older calls stay unknown.
constexpr std::size_t most_calls = 256;

// The number of calls between two checks. Each check costs a call of CUDA.
constexpr std::size_t calls_per_look = 8;

// The calls that one check may find ended: more than come between two checks, and few to look at.
constexpr std::size_t most_per_look = 2 * calls_per_look;

}  // namespace

void DeviceCalls::follow(RecordedCall call, std::unique_ptr<Pending> end, StreamRef stream,
                         IssuedOnDevice issued) {
  if (end == nullptr) return call.capture();
  const auto since = issued.connection != nullptr ? Clock::now() : Clock::time_point{};
  const std::lock_guard lock{mutex_};
  if (calls_.size() == most_calls) make_room();
  calls_.push_back({std::move(call), std::move(end), stream.native(), std::move(issued), since});
  if (calls_.size() == 1) publish(&calls_.front());
  if (++since_look_ < calls_per_look) return;
  since_look_ = 0;
  (void)forget_ended();
}

// Returns how many calls, from the oldest on, are known to have ended, after at most three queries.
// The calls of one stream end in order. If a later call has ended, the earlier ones have ended too.
std::size_t DeviceCalls::ended() {
  if (!calls_.front().test()) return 0;
  std::size_t of_stream = 1;
  while (of_stream < std::min(calls_.size(), most_per_look) &&
         calls_[of_stream].stream == calls_.front().stream)
    ++of_stream;
  for (const std::size_t n : {of_stream, of_stream / 2})
    if (n > 1 && calls_[n - 1].test()) return n;
  return 1;
}

bool DeviceCalls::forget_ended() noexcept {
  std::size_t count = 1;
  try {
    count = ended();
    for (std::size_t i = 0; i < count; ++i) calls_[i].call.end();
  } catch (const std::exception&) {
    // Destroying the call records the failure.
  }
  calls_.erase(calls_.begin(), calls_.begin() + static_cast<std::ptrdiff_t>(count));
  if (count > 0) publish(calls_.empty() ? nullptr : &calls_.front());
  return count > 0;
}

// The oldest call that has not ended stays, because other calls and other ranks may wait for it.
// The calls of one stream end in order. If none has ended, the second oldest is forgotten.
void DeviceCalls::make_room() {
  std::vector<const void*> busy;  // streams
  std::erase_if(calls_, [&](Followed& followed) {
    if (std::ranges::find(busy, followed.stream) != busy.end()) return false;
    try {
      if (!followed.test()) {
        busy.push_back(followed.stream);
        return false;
      }
      followed.call.end();
    } catch (const Error&) {
      // Destroying the call records the failure.
    }
    return true;
  });
  if (calls_.size() == most_calls) calls_.erase(calls_.begin() + 1);
  publish(calls_.empty() ? nullptr : &calls_.front());
}

void DeviceCalls::clear() noexcept {
  const std::lock_guard lock{mutex_};
  calls_.clear();
  publish(nullptr);
}

void DeviceCalls::end_all_of(const Connection& group) noexcept {
  const std::lock_guard lock{mutex_};
  std::erase_if(calls_, [&](Followed& followed) {
    const bool is_of_group = followed.issued.connection.get() == &group;
    if (is_of_group) followed.call.end();
    return is_of_group;
  });
  publish(calls_.empty() ? nullptr : &calls_.front());
}

void DeviceCalls::publish(const Followed* oldest) {
  if (published_ == nullptr) return;
  published_->store(oldest == nullptr ? 0 : oldest->issued.packed, std::memory_order_relaxed);
}

std::optional<IssuedOnDevice> DeviceCalls::find_stuck(Deadline::Duration limit) {
  const std::lock_guard lock{mutex_};
  const Clock::time_point latest =
      Clock::now() - std::chrono::duration_cast<Clock::duration>(limit);
  const auto oldest = std::ranges::find_if(calls_, [](Followed& f) { return !f.test(); });
  if (oldest == calls_.end()) {
    publish(nullptr);
    return std::nullopt;
  }
  publish(&*oldest);
  if (oldest->since > latest) return std::nullopt;
  return oldest->issued;
}

void DeviceCalls::look() noexcept {
  const std::lock_guard lock{mutex_};
  while (!calls_.empty() && forget_ended()) {
  }
}

}  // namespace rankmesh::detail
