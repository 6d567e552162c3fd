// SPDX-License-Identifier: BSD-3-Clause
#include "config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "common/settings.hpp"
#include "machine.hpp"

namespace fake {
namespace {

constexpr unsigned config_magic = 0xcafebeef;

// param.cc, setEnvFile: a line NAME=VALUE sets a variable that is not set yet.
void read_settings(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos) continue;
    setenv(line.substr(0, equals).c_str(), line.substr(equals + 1).c_str(), 0);
  }
}

// init.cc, envConfigOverride: the variable decides for every communicator, whatever its
// configuration says. param.cc, ncclLoadParam: it is read once, as a number.
std::optional<bool> forced_blocking() {
  static const std::string text = setting("NCCL_COMM_BLOCKING").value_or("");
  if (text.empty() || broken("comm_blocking")) return std::nullopt;
  const long long value = std::strtoll(text.c_str(), nullptr, 0);
  return value == 0 || value == 1 ? std::optional{value == 1} : std::nullopt;
}

bool undefined_or(int value, int low, int high) {
  return value == NCCL_CONFIG_UNDEF_INT || (value >= low && value <= high);
}

// graphUsageMode came with 2.29, behind the fields of 2.28. parseCommConfig (init.cc) resets it for
// a caller of an older version.
Outcome read_graph_usage_mode(const ncclConfig_t* given, int& mode) {
  constexpr std::size_t place = offsetof(ncclConfig_t, nvlinkCentricSched) + sizeof(int);
  constexpr unsigned first_version = 22900;
  if (static_cast<unsigned>(version()) < first_version || given == nullptr ||
      given->size < place + sizeof(int) || given->version < first_version)
    return {};
  int value = 0;
  std::memcpy(&value, reinterpret_cast<const char*>(given) + place, sizeof value);
  if (!undefined_or(value, 0, 2))
    return failed(ncclInvalidArgument, "ncclConfig_t: graphUsageMode is %d", value);
  if (value != NCCL_CONFIG_UNDEF_INT) mode = value;
  return {};
}

}  // namespace

// param.cc, initEnvFunc: the user's file and then that of the machine, before the first use.
void read_settings_once() {
  static const bool is_read = [] {
    if (const auto given = setting("NCCL_CONF_FILE"); given && !given->empty())
      read_settings(*given);
    else if (const auto home = setting("HOME"))
      read_settings(*home + "/.nccl.conf");
    read_settings("/etc/nccl.conf");
    return true;
  }();
  (void)is_read;
}

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
  if (const std::optional<bool> forced = forced_blocking()) config.blocking = *forced;
  config.cga_cluster_size = whole.cgaClusterSize;
  config.min_ctas = whole.minCTAs;
  config.max_ctas = whole.maxCTAs;
  config.split_share = whole.splitShare;
  config.traffic_class = whole.trafficClass;
  // init.cc, parseCommConfig: both came with 2.27, and the policy of copy engines with 2.28.
  if (version() >= 22700) {
    const bool has_copy_engines = version() >= 22800 || broken("cta_policies");
    const int last = has_copy_engines ? NCCL_CTA_POLICY_ZERO : NCCL_CTA_POLICY_EFFICIENCY;
    if (!undefined_or(whole.CTAPolicy, NCCL_CTA_POLICY_DEFAULT, last))
      return failed(ncclInvalidArgument, "ncclConfig_t: CTAPolicy is %d", whole.CTAPolicy);
    if (!undefined_or(whole.nvlsCTAs, 1, 1024))
      return failed(ncclInvalidArgument, "ncclConfig_t: nvlsCTAs is %d", whole.nvlsCTAs);
    config.cta_policy = whole.CTAPolicy;
    config.nvls_ctas = whole.nvlsCTAs;
  }
  if (Outcome bad = read_graph_usage_mode(given, config.graph_usage_mode); !bad.ok()) return bad;
  config.name = whole.commName;
  return {};
}

}  // namespace fake
