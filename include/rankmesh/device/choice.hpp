// SPDX-License-Identifier: BSD-3-Clause
// The choice of the device that a rank uses.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
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

/// Reserves a device for this process. A rank uses at most one device, so all meshes of a process
/// must reserve the same device. Copies of a Claim share the reservation, which ends when the last
/// copy is destroyed.
class RANKMESH_API Claim {
 public:
  Claim() = default;
  /// @throws UsageError if this process has already reserved another device.
  explicit Claim(int device);
  /// Returns the number of the claimed device.
  [[nodiscard]] int device() const { return device_->number; }

  /// While an Issuing object exists, only the thread that created the object may issue work for the
  /// device. NCCL does not allow several threads to use communicators of the same device, even if
  /// the communicators belong to different meshes.
  class RANKMESH_API Issuing {
   public:
    /// @throws UsageError if another thread is issuing work for the device.
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

/// Throws UsageError unless `device` is the current device of the calling thread. NCCL always uses
/// the current device.
RANKMESH_API void require_current(int device);

/// Runs an action while a device is current, and waits for its end. If another device is current in
/// the calling thread, a thread of its own runs the action: the device of the calling thread may be
/// CUDA's default, device 0, and to make this one current again would create a context on it.
/// @throws CudaError if CUDA reports an error, Error if there are too many threads, and what the
/// action throws.
RANKMESH_API void run_on(int device, const std::function<void()>& action);

/// Identifies a physical device or a MIG instance. Each MIG instance has its own UUID.
struct Identity {
  unsigned char uuid[16] = {};  ///< The identity of the device, or of the MIG instance.
  char bus_id[16] = {};         ///< The address of the device on the PCI bus, as text.
  int compute_capability = 0;   ///< 90 for 9.0
};

/// Chooses the device of this rank, makes it current and reserves it. Local. The function takes the
/// first of these devices that applies:
/// 1. `wanted`, if it is set;
/// 2. the device that the process has already reserved;
/// 3. the current device, unless it is device 0, which CUDA makes current by default;
/// 4. `local_rank` modulo `visible`.
///
/// @param local_rank  This rank's number among the ranks on its node.
/// @param visible     The number of visible devices.
/// @throws UsageError if `wanted` is not visible, or if another mesh of this process uses a
/// different device.
RANKMESH_API Claim choose(std::optional<int> wanted, int local_rank, int visible);

/// Returns the identity of a visible device.
/// @throws CudaError if CUDA reports an error.
RANKMESH_API Identity identity_of(int device);

/// Looks for two ranks that use the same device. If two ranks do, returns an error text that names
/// the first two ranks found and the launch options that give each rank its own device. Otherwise
/// returns an empty text.
/// @param nodes       The node of each rank.
/// @param identities  The device of each rank.
RANKMESH_API std::string shared_device(std::span<const std::int32_t> nodes,
                                       std::span<const Identity> identities);

/// Looks for two ranks that use different MIG instances of the same GPU. If two ranks do, returns
/// an error text that names the first two ranks found. NCCL before 2.30 compares the bus ids of the
/// devices, and refuses a communicator with both ranks (initTransportsRank in src/init.cc).
/// @param nodes       The node of each rank.
/// @param identities  The device of each rank.
RANKMESH_API std::string shared_gpu(std::span<const std::int32_t> nodes,
                                    std::span<const Identity> identities);

}  // namespace rankmesh::device
