// SPDX-License-Identifier: BSD-3-Clause
#include "config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "common/settings.hpp"

namespace fake {
namespace {

constexpr unsigned config_magic = 0xcafebeef;

bool undefined_or(int value, int low, int high) {
  return value == NCCL_CONFIG_UNDEF_INT || (value >= low && value <= high);
}

}  // namespace

Outcome read_config(const ncclConfig_t* given, Config& config) {
  config = {};
  ncclConfig_t whole = NCCL_CONFIG_INITIALIZER;
  if (given != nullptr) {
    // Only `size` is surely there; what lies behind the caller's struct is not ours to read.
    std::size_t size = 0;
    std::memcpy(&size, given, sizeof size);
    if (broken("config_size")) size = sizeof whole;
    if (size < offsetof(ncclConfig_t, blocking) + sizeof(int))
      return failed(ncclInvalidArgument, "ncclConfig_t: size %zu is too small; was it initialised?",
                    size);
    std::memcpy(&whole, given, std::min(size, sizeof whole));
    if (whole.magic != config_magic && !broken("config_magic"))
      return failed(ncclInvalidArgument,
                    "ncclConfig_t: was not initialised with NCCL_CONFIG_INITIALIZER");
  }
  if (!undefined_or(whole.blocking, 0, 1))
    return failed(ncclInvalidArgument, "ncclConfig_t: blocking is %d", whole.blocking);
  if (!undefined_or(whole.cgaClusterSize, 0, 8))
    return failed(ncclInvalidArgument, "ncclConfig_t: cgaClusterSize is %d", whole.cgaClusterSize);
  // NCCL compares the two limits before it fills in the defaults, so a lower limit alone is
  // compared with the undefined upper one, which is INT_MIN (init.cc, parseCommConfig; 2.18.3
  // to 2.30.7).
  const bool either_is_undefined =
      whole.minCTAs == NCCL_CONFIG_UNDEF_INT || whole.maxCTAs == NCCL_CONFIG_UNDEF_INT;
  const bool compares = !either_is_undefined || !broken("config_before_defaults");
  if (!undefined_or(whole.minCTAs, 1, 1024) || !undefined_or(whole.maxCTAs, 1, 1024) ||
      (compares && whole.minCTAs > whole.maxCTAs))
    return failed(ncclInvalidArgument, "ncclConfig_t: minCTAs is %d, maxCTAs is %d", whole.minCTAs,
                  whole.maxCTAs);
  if (!undefined_or(whole.splitShare, 0, 1))
    return failed(ncclInvalidArgument, "ncclConfig_t: splitShare is %d", whole.splitShare);
  config.blocking = whole.blocking != 0;
  if (const auto forced = setting("NCCL_COMM_BLOCKING")) config.blocking = *forced != "0";
  config.cga_cluster_size = whole.cgaClusterSize;
  config.min_ctas = whole.minCTAs;
  config.max_ctas = whole.maxCTAs;
  config.split_share = whole.splitShare;
  config.traffic_class = whole.trafficClass;
  config.name = whole.commName;
  return {};
}

}  // namespace fake
