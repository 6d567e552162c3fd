// SPDX-License-Identifier: BSD-3-Clause
// The configuration that is passed to NCCL.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <string>

#include "rankmesh/layout/group_options.hpp"

namespace rankmesh::nccl {

/// The first version of NCCL with the policy NCCL_CTA_POLICY_ZERO.
constexpr int first_with_copy_engines = 22800;

/// The configuration of a communicator. NCCL reads as many bytes as the configuration says it has,
/// and ignores those that the loaded version does not know.
class NativeConfig {
 public:
  /// @param blocks   Whether calls on the communicator block.
  /// @param name     NCCL keeps a pointer to its characters.
  /// @param version  Of the loaded library.
  NativeConfig(const GroupOptions& wanted, bool blocks, const std::string& name, int version);
  [[nodiscard]] ncclConfig_t* get() { return reinterpret_cast<ncclConfig_t*>(&fields_); }

 private:
  // The fields of NCCL 2.29, in its order; the headers may be older.
  struct Fields {
    std::size_t size;
    unsigned int magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char* net_name;
    int split_share, traffic_class;
    const char* comm_name;
    int collnet_enable, cta_policy, shrink_share, nvls_ctas;
    int channels_per_net_peer = NCCL_CONFIG_UNDEF_INT;
    int nvlink_centric_sched = NCCL_CONFIG_UNDEF_INT;
    int graph_usage_mode = NCCL_CONFIG_UNDEF_INT;
    int rma_contexts = NCCL_CONFIG_UNDEF_INT;
  };
  static_assert(offsetof(Fields, cta_policy) == offsetof(ncclConfig_t, CTAPolicy) &&
                offsetof(Fields, nvls_ctas) == offsetof(ncclConfig_t, nvlsCTAs));
  Fields fields_;
};

}  // namespace rankmesh::nccl
