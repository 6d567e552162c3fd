// SPDX-License-Identifier: BSD-3-Clause
// The configuration that a caller hands in: read by its own size, for it grows from version
// to version.
#pragma once

#include <nccl.h>

#include "outcome.hpp"

namespace fake {

struct Config {
  bool blocking = true;
  int cga_cluster_size = NCCL_CONFIG_UNDEF_INT;
  int min_ctas = NCCL_CONFIG_UNDEF_INT;
  int max_ctas = NCCL_CONFIG_UNDEF_INT;
  int split_share = NCCL_CONFIG_UNDEF_INT;
  int traffic_class = NCCL_CONFIG_UNDEF_INT;
  int cta_policy = NCCL_CONFIG_UNDEF_INT;
  int nvls_ctas = NCCL_CONFIG_UNDEF_INT;
  int graph_usage_mode = 2;
  const char* name = nullptr;  // the caller's own text, read whenever it is needed
};

// Reads nccl.conf in the first call, as NCCL does in the first call of a function.
void read_settings_once();

Outcome read_config(const ncclConfig_t* given, Config& config);

}  // namespace fake
