// SPDX-License-Identifier: BSD-3-Clause
// What tells one host, process space and device from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fake {

inline constexpr std::uint64_t hash_start = 1469598103934665603ULL;
std::uint64_t hash_bytes(const void* bytes, std::size_t count, std::uint64_t hash = hash_start);

std::uint64_t host_hash();      // of NCCL_HOSTID where it is set, else of the host's name
std::uint64_t process_space();  // two processes with the same one can see each other's numbers
std::string device_bus(int device);
int device_capability(int device);        // 90 for 9.0
bool several_ranks_per_device_allowed();  // from 2.30.3, and NCCL_MULTI_RANK_GPU_ENABLE=1

int version();  // FAKE_NCCL_VERSION, or what this library was built as

}  // namespace fake
