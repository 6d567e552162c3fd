// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/role.hpp"

#include <string>
#include <utility>

#include "base/detail/text.hpp"

namespace rankmesh {
namespace {

// The names of the presets, and those that torch, DeepSpeed and JAX programs use most.
constexpr std::pair<FamilyRole, std::string_view> names_of_roles[] = {
    {FamilyRole::tensor, " tp sp etp expt_tp tensor attn_tp moe_tp tensor_model slice "},
    {FamilyRole::expert, " ep expert moe_ep expert_model tp_ep ep_tp etp_ep "},
    {FamilyRole::context, " cp pcp context "},
    {FamilyRole::data, " dp edp expt_dp external_dp data dp_replicate expert_data moe_dp replica "},
    {FamilyRole::sharded, " fsdp dp_shard "},
    {FamilyRole::pipeline, " pp pipe pipeline stage "}};

}  // namespace

FamilyRole role_of(std::string_view name) {
  name.remove_prefix(name.rfind('.') + 1);  // npos + 1 is 0
  const std::string word = " " + std::string{name} + " ";
  for (const auto& [role, names] : names_of_roles)
    if (names.find(word) != names.npos) return role;
  return FamilyRole::other;
}

std::string_view to_string(FamilyRole role) {
  return detail::name_in({"tensor", "expert", "context", "data", "sharded", "pipeline", "other"},
                         role);
}

}  // namespace rankmesh
