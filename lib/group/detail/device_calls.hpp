// SPDX-License-Identifier: BSD-3-Clause
// Calls on device memory whose end is awaited.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "connection.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/transport/transport.hpp"
#include "record/detail/recorded_call.hpp"

namespace rankmesh::detail {

/// An operation on device memory that was issued.
struct IssuedOnDevice {
  std::shared_ptr<Connection> connection{};  ///< Null if nobody watches the operation.
  Operation operation{};
  std::uint64_t number = 0;  ///< Of a collective in its group; 0 for messages.
  std::uint64_t packed = 0;  ///< For PublishedDeviceWork::oldest.
};

/// Notes in the record of this rank when the device has finished a call. The host checks for
/// finished calls at every eighth device call and whenever it makes progress. Therefore the
/// recorded end may be later than the true end, but never earlier.
///
/// Thread safety: one thread at a time, except find_stuck().
class DeviceCalls {
 public:
  /// @param end  Is complete when the device has finished; null if the call was captured into a
  ///             CUDA graph.
  /// @param stream  The stream of the call.
  void follow(RecordedCall call, std::unique_ptr<Pending> end, StreamRef stream,
              IssuedOnDevice issued = {});
  /// Checks the calls in the order in which they were made. An error ends the call's entry as
  /// failed; the program learns of it by its next call.
  void look() noexcept;
  /// Forgets the calls, before the device is released. Calls that have not ended count as failed.
  void clear() noexcept;
  /// Notes that the calls of a group have ended, where a DeviceWatch watches them.
  void end_all_of(const Connection& group) noexcept;

  /// Publishes here from now on which operation is the oldest that is not known to have ended.
  void publish_oldest(std::atomic<std::uint64_t>& oldest) { published_ = &oldest; }
  /// Returns the oldest call that was issued longer than `limit` ago and has not ended. Publishes
  /// the oldest call.
  [[nodiscard]] std::optional<IssuedOnDevice> find_stuck(Deadline::Duration limit);

 private:
  using Clock = std::chrono::steady_clock;
  struct Followed {
    RecordedCall call;
    std::unique_ptr<Pending> end;
    const void* stream;
    IssuedOnDevice issued;
    Clock::time_point since;
    bool has_ended = false;
    bool test() { return has_ended || (has_ended = end->test()); }
  };
  void publish(const Followed* oldest);
  [[nodiscard]] std::size_t ended();
  bool forget_ended() noexcept;
  void make_room();

  std::mutex mutex_;  // of the calls
  std::deque<Followed> calls_;
  std::size_t since_look_ = 0;
  std::atomic<std::uint64_t>* published_ = nullptr;
};

}  // namespace rankmesh::detail
