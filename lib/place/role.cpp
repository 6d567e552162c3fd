// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/place/role.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rankmesh {
namespace {

// The names of the presets, and those that torch, DeepSpeed and JAX programs use most.
constexpr std::array<std::pair<std::string_view, FamilyRole>, 34> roles{{
    {"tp", FamilyRole::tensor},
    {"sp", FamilyRole::tensor},
    {"etp", FamilyRole::tensor},
    {"expt_tp", FamilyRole::tensor},
    {"tensor", FamilyRole::tensor},
    {"attn_tp", FamilyRole::tensor},
    {"moe_tp", FamilyRole::tensor},
    {"tensor_model", FamilyRole::tensor},
    {"slice", FamilyRole::tensor},
    {"ep", FamilyRole::expert},
    {"expert", FamilyRole::expert},
    {"moe_ep", FamilyRole::expert},
    {"expert_model", FamilyRole::expert},
    {"tp_ep", FamilyRole::expert},
    {"ep_tp", FamilyRole::expert},
    {"etp_ep", FamilyRole::expert},
    {"cp", FamilyRole::context},
    {"pcp", FamilyRole::context},
    {"context", FamilyRole::context},
    {"dp", FamilyRole::data},
    {"edp", FamilyRole::data},
    {"expt_dp", FamilyRole::data},
    {"external_dp", FamilyRole::data},
    {"data", FamilyRole::data},
    {"dp_replicate", FamilyRole::data},
    {"expert_data", FamilyRole::data},
    {"moe_dp", FamilyRole::data},
    {"replica", FamilyRole::data},
    {"fsdp", FamilyRole::sharded},
    {"dp_shard", FamilyRole::sharded},
    {"pp", FamilyRole::pipeline},
    {"pipe", FamilyRole::pipeline},
    {"pipeline", FamilyRole::pipeline},
    {"stage", FamilyRole::pipeline},
}};

}  // namespace

FamilyRole role_of(std::string_view name) {
  name.remove_prefix(name.rfind('.') + 1);  // npos + 1 is 0
  const auto* found = std::ranges::find(roles, name, [](const auto& entry) { return entry.first; });
  return found == roles.end() ? FamilyRole::other : found->second;
}

std::string_view to_string(FamilyRole role) {
  switch (role) {
    case FamilyRole::tensor:
      return "tensor";
    case FamilyRole::expert:
      return "expert";
    case FamilyRole::context:
      return "context";
    case FamilyRole::data:
      return "data";
    case FamilyRole::sharded:
      return "sharded";
    case FamilyRole::pipeline:
      return "pipeline";
    case FamilyRole::other:
      return "other";
  }
  return "?";
}

}  // namespace rankmesh
