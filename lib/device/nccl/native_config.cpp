// SPDX-License-Identifier: BSD-3-Clause
#include "device/nccl/detail/native_config.hpp"

#include <algorithm>
#include <cstring>

namespace rankmesh::nccl {
namespace {

// The most thread blocks that any version of NCCL uses for an operation (MAXCHANNELS). Versions
// with a lower limit reduce the number to theirs.
constexpr int most_ctas = 64;

// NCCL ignores the graph usage mode of configurations of older versions.
constexpr int first_with_graph_usage_mode = 22900;

}  // namespace

NativeConfig::NativeConfig(const GroupOptions& wanted, bool blocks, const std::string& name,
                           int version)
    : fields_{} {
  ncclConfig_t config{};  // zero, because the initialiser of an older header sets fewer fields
  config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocks ? 1 : 0;
  config.splitShare = wanted.share_resources ? 1 : 0;
  if (wanted.min_ctas) config.minCTAs = *wanted.min_ctas;
  if (wanted.max_ctas) config.maxCTAs = *wanted.max_ctas;
  // NCCL compares both limits before it fills in its defaults, so it refuses a configuration that
  // sets only the lower limit.
  if (wanted.min_ctas && !wanted.max_ctas) config.maxCTAs = most_ctas;
  if (wanted.cga_cluster_size) config.cgaClusterSize = *wanted.cga_cluster_size;
  if (wanted.traffic_class) config.trafficClass = *wanted.traffic_class;
  if (wanted.cta_policy) config.CTAPolicy = *wanted.cta_policy;
  // NCCL 2.27 refuses this policy; earlier versions read none.
  if (wanted.cta_policy == NCCL_CTA_POLICY_ZERO && version < first_with_copy_engines)
    config.CTAPolicy = NCCL_CONFIG_UNDEF_INT;
  if (wanted.nvls_ctas) config.nvlsCTAs = *wanted.nvls_ctas;
  config.commName = name.c_str();
  config.size = std::min(sizeof config, sizeof fields_);
  std::memcpy(static_cast<void*>(&fields_), &config, config.size);
  if (wanted.graph_usage_mode && version >= first_with_graph_usage_mode) {
    fields_.size = sizeof fields_;
    fields_.version = static_cast<unsigned>(first_with_graph_usage_mode);
    fields_.graph_usage_mode = *wanted.graph_usage_mode;
  }
}

}  // namespace rankmesh::nccl
