// SPDX-License-Identifier: BSD-3-Clause
// The description of a preset.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh::presets {

/// The result of a preset.
struct Blueprint {
  std::int64_t world_size = 0;  ///< the highest rank + 1, or the given size
  std::vector<Layout> views;
  std::vector<GroupFamily> families;
  bool is_part = false;  ///< the world may be larger
};

/// One system, or one kind of it.
struct Preset {
  std::string_view system;
  std::string_view kind;  ///< empty if there is one kind only
  std::string_view convention;
  std::span<const Key> keys;
  Blueprint (*build)(const Arguments&);
};

extern const Preset megatron, hypercommgrid, vllm, tensorrt_llm, sglang, fastertransformer, torch,
    jax, llama3;
extern const Preset deepspeed_topology, deepspeed_grid, deepspeed_groups, deepspeed_expert_ranks,
    deepspeed_folding;
extern const Preset colossalai_mesh, colossalai_hybrid, colossalai_moe;

/// Checks the system, the keys and the form of every value.
/// @throws SpecError with the position.
void check(std::string_view text, const PresetCall& call);

/// Builds the preset on a world of `job` ranks, or of its own size if `job` is not set. `is_open`
/// says whether the size depends on the job.
/// @throws SpecError with the position, the reason and a hint.
Blueprint build(std::string_view text, const PresetCall& call, std::optional<std::int64_t> job,
                bool& is_open);

}  // namespace rankmesh::presets
