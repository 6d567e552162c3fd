// SPDX-License-Identifier: BSD-3-Clause
// The choice of the device that a rank uses.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/device/cuda.hpp"

namespace rankmesh::device {

namespace detail {
struct ClaimedDevice {
  int number;
  std::atomic_flag issuing{};
};
}  // namespace detail

/// Reserves a device for this process. One rank uses at most one device, so all meshes of a process
/// must reserve the same one. Copies share the reservation; the reservation ends when the last copy
/// is destroyed.
class RANKMESH_API Claim {
 public:
  Claim() = default;
  /// @throws UsageError  Another device is already reserved.
  explicit Claim(int device);
  [[nodiscard]] int device() const { return device_->number; }

  /// While an object of this class exists, only the thread that created it may issue work for the
  /// device. NCCL does not support several threads that use communicators of one device, even if
  /// the communicators belong to different meshes.
  class RANKMESH_API Issuing {
   public:
    /// @throws UsageError  Another thread is issuing work.
    explicit Issuing(const Claim& claim);
    ~Issuing() { device_->issuing.clear(std::memory_order_release); }
    Issuing(const Issuing&) = delete;
    Issuing& operator=(const Issuing&) = delete;

   private:
    std::shared_ptr<detail::ClaimedDevice> device_;
  };

 private:
  std::shared_ptr<detail::ClaimedDevice> device_;
};

/// Returns the device that this process has reserved.
RANKMESH_API std::optional<int> claimed();

/// Throws UsageError if the calling thread's current device is another device, because NCCL would
/// use the current device.
RANKMESH_API void require_current(int device);

/// Identifies a device among all devices. MIG instances have their own UUIDs.
struct Identity {
  unsigned char uuid[16] = {};
  char bus_id[16] = {};
};

/// Chooses the device of this rank, makes it current and reserves it. Local. The choice is the
/// first of these that exists: `wanted`; the device that the process has reserved; the current
/// device, unless it is number 0, which is current even if the program has chosen no device;
/// `local_rank` modulo `visible`.
/// @param local_rank  The node-local rank.
/// @param visible     The number of visible devices.
/// @throws UsageError  `wanted` is not visible, or another mesh of the process uses another device.
RANKMESH_API Claim choose(std::optional<int> wanted, int local_rank, int visible);

/// Returns the identity of a visible device. @throws CudaError.
RANKMESH_API Identity identity_of(int device);

/// Looks for two ranks that use the same device. Returns an error text that names the first two
/// such ranks and the launch options that give each rank its own device. Returns an empty text if
/// no two ranks use the same device.
/// @param nodes       The node of each rank.
/// @param identities  The device of each rank.
RANKMESH_API std::string shared_device(std::span<const std::int32_t> nodes,
                                       std::span<const Identity> identities);

}  // namespace rankmesh::device
