// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

#include <cuda_runtime_api.h>
#include <sys/stat.h>
#include <unistd.h>

#include "built_as.hpp"
#include "common/settings.hpp"

namespace fake {

std::uint64_t hash_bytes(const void* bytes, std::size_t count, std::uint64_t hash) {
  const auto* const data = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ data[i]) * 1099511628211ULL;
  return hash;
}

std::uint64_t host_hash() {
  if (const auto given = setting("NCCL_HOSTID"); given && !broken("host_id"))
    return hash_bytes(given->data(), given->size());
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return hash_bytes(name, sizeof name);
}

std::uint64_t process_space() {
  struct stat what {};
  return stat("/proc/self/ns/pid", &what) == 0 ? what.st_ino : 0;
}

std::string device_bus(int device) {
  char bus[32] = {};
  cudaDeviceGetPCIBusId(bus, sizeof bus, device);
  return bus;
}

int device_capability(int device) {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  return 10 * major + minor;
}

bool several_ranks_per_device_allowed() {
  return version() >= 23003 && number("NCCL_MULTI_RANK_GPU_ENABLE", 0) != 0;
}

int version() { return static_cast<int>(number("FAKE_NCCL_VERSION", built_as)); }

}  // namespace fake
