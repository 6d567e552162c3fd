// SPDX-License-Identifier: BSD-3-Clause
#include "record.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace golden {
namespace {

struct Prefix {
  std::string system, kind;
};

const std::map<std::string, Prefix> prefixes{
    {"trtllm", {"tensorrt_llm", ""}},
    {"torch.DeviceMesh", {"torch", ""}},
    {"jax.create_hybrid_device_mesh", {"jax", "hybrid"}},
    {"deepspeed.ProcessTopology", {"deepspeed", "topology"}},
    {"deepspeed.PipelineParallelGrid", {"deepspeed", "grid"}},
    {"deepspeed.groups", {"deepspeed", "groups"}},
    {"deepspeed.expert_ranks", {"deepspeed", "expert_ranks"}},
    {"deepspeed.folding", {"deepspeed", "folding"}},
    {"colossalai.ProcessGroupMesh", {"colossalai", "mesh"}},
    {"colossalai.HybridParallelPlugin", {"colossalai", "hybrid"}},
    {"colossalai.MoeHybridParallelPlugin", {"colossalai", "moe"}}};

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& element : value) {
    if (!text.empty()) text += element.is_string() ? '.' : 'x';
    text += element.is_string() ? element.get<std::string>() : element.dump();
  }
  return text;
}

}  // namespace

std::vector<Json> records(const std::string& file) {
  std::ifstream stream{fmt::format("{}/{}.json", RANKMESH_TEST_DATA, file)};
  if (!stream) throw std::runtime_error{"no test data: " + file};
  return Json::parse(stream).get<std::vector<Json>>();
}

std::string mesh_string(const Json& record) {
  const auto system = record.at("system").get<std::string>();
  const auto found = prefixes.find(system);
  const Prefix prefix = found == prefixes.end() ? Prefix{system, ""} : found->second;
  std::vector<std::string> arguments;
  if (!prefix.kind.empty()) arguments.push_back("kind=" + prefix.kind);
  for (const auto& [key, value] : record.at("config").items())
    if (!value.is_null() && key != "resolved" && key != "kind")
      arguments.push_back(key + "=" + value_text(value));
  std::string text = prefix.system + ":";
  for (std::size_t i = 0; i < arguments.size(); ++i) text += (i == 0 ? "" : ",") + arguments[i];
  return text;
}

Lists lists(const rankmesh::GroupFamily& family) {
  Lists result;
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    result.emplace_back();
    for (const rankmesh::Rank rank : family.group(g)) result.back().push_back(rank.value());
  }
  return result;
}

std::string as_product(std::string name) {
  for (char& c : name)
    if (c == '-' || c == ',') c = '*';
  return name;
}

std::string difference(const Json& record, const rankmesh::MeshPlan& plan) {
  std::vector<std::string> names;
  for (const auto& [name, expected] : record.at("groups").items()) {
    const std::string product = as_product(name);
    if (product == name) names.push_back(name);
    try {
      const Lists actual = lists(plan.groups_of_product(product));
      if (actual != expected.get<Lists>())
        return fmt::format("{}: {}, not {}", name, Json(actual).dump().substr(0, 200),
                           expected.dump().substr(0, 200));
    } catch (const rankmesh::Error& error) {
      return fmt::format("{}: {}", name, error.what());
    }
  }
  std::vector<std::string> own;
  for (const auto& family : plan.families()) own.push_back(family.name());
  if (own != names) return fmt::format("names {}, not {}", Json(own).dump(), Json(names).dump());
  return {};
}

}  // namespace golden
