// Which device a rank drives.
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

/// The device that this process drives, for as long as somebody holds a claim on it: the meshes of
/// one process must agree, since one rank drives at most one device. Copies share the claim.
class RANKMESH_API Claim {
 public:
  Claim() = default;
  /// @throws UsageError where another device is claimed already.
  explicit Claim(int device);
  [[nodiscard]] int device() const { return device_->number; }

  /// For as long as it lives the calling thread alone issues work for the device: NCCL is not safe
  /// with several threads on communicators of one device, whichever meshes they belong to.
  class RANKMESH_API Issuing {
   public:
    /// @throws UsageError where another thread is at it.
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

/// The device that is claimed by this process; nothing where none is.
RANKMESH_API std::optional<int> claimed();

/// @throws UsageError where the calling thread's current device is another: NCCL would take the
/// call for it.
RANKMESH_API void require_current(int device);

/// What tells one device from all others; MIG instances have their own UUID.
struct Identity {
  unsigned char uuid[16] = {};
  char bus_id[16] = {};
};

/// The device for this rank: `wanted`; else the one that the process has claimed; else one that is
/// already current (not number 0, which is current where nobody chose); else the launcher's
/// node-local rank modulo the visible devices. Makes it current. Local.
/// @throws UsageError where `wanted` does not exist, or another mesh of the process drives another
/// device.
RANKMESH_API Claim choose(std::optional<int> wanted, int local_rank, int visible);

/// The current device's. @throws CudaError.
RANKMESH_API Identity identity_of(int device);

/// Why these ranks cannot share what they share: the first two ranks of one node on one device, and
/// the launch option that mends it. Empty where every rank has its own.
/// @param nodes, identities  per rank.
RANKMESH_API std::string shared_device(std::span<const std::int32_t> nodes,
                                       std::span<const Identity> identities);

}  // namespace rankmesh::device
