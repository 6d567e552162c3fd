// SPDX-License-Identifier: BSD-3-Clause
// The JSON that Topograph's engine `graph` writes (NVIDIA/topograph, docs/engines/graph.md): for
// each instance its switches, closest first, and its NVLink domain as a label.
#include <fmt/format.h>

#include "detail/data.hpp"
#include "detail/input.hpp"
#include "detail/network_builder.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::string_view topograph_hint =
    "write the output of Topograph's engine `graph`: {\"instances\": [{\"id\": ...}]}";

// The label of a domain ends in `/domain`, with any prefix.
std::string domain_of(const Data& instance) {
  const Data* labels = instance.find("labels");
  if (labels == nullptr) return {};
  for (const Data& label : labels->fields)
    if (label.key.ends_with("/domain")) return label.text;
  return {};
}

std::vector<std::string> layers_of(const Data& instance) {
  std::vector<std::string> layers;
  if (const Data* list = instance.find("network_layers"))
    for (const Data& layer : list->items)
      if (!layer.text.empty()) layers.push_back(layer.text);
  return layers;
}

// The number of switches that lie inside a domain: a domain may be part of one leaf, or it may
// have several leaves.
std::size_t layers_inside_domains(const Data& instances) {
  std::unordered_map<std::string, std::vector<std::string>> first;  // of each domain
  std::size_t inside = 0;
  for (const Data& instance : instances.items) {
    const std::string domain = domain_of(instance);
    if (domain.empty()) continue;
    const std::vector<std::string> layers = layers_of(instance);
    const std::vector<std::string>& known = first.try_emplace(domain, layers).first->second;
    while (inside < std::min(layers.size(), known.size()) && layers[inside] != known[inside])
      ++inside;
  }
  return inside;
}

}  // namespace

Network read_topograph(std::string_view text, std::string_view origin) {
  const Data data = read_data(text, origin);
  const Data* instances = data.find("instances");
  if (instances == nullptr || instances->kind != Data::Kind::list)
    refuse(origin, data.line, "there is no list 'instances'", topograph_hint);
  const std::size_t inside = layers_inside_domains(*instances);
  NetworkBuilder builder{origin};
  for (const Data& instance : instances->items) {
    const Data* id = instance.find("id");
    if (id == nullptr || id->text.empty())
      refuse(origin, instance.line, "an instance has no id", topograph_hint);
    const std::vector<std::string> layers = layers_of(instance);
    const std::string domain = domain_of(instance);
    std::int32_t child = Network::none;
    const auto climb = [&](const std::string& name, LevelKind kind) {
      const std::int32_t above = builder.switch_called(name, kind, instance.line);
      if (child == Network::none)
        builder.put_host(id->text, above, instance.line);
      else
        builder.put_switch(child, above, instance.line);
      child = above;
    };
    for (std::size_t l = 0; l <= layers.size(); ++l) {
      if (l == std::min(inside, layers.size()) && !domain.empty())
        climb("domain " + domain, LevelKind::domain);
      if (l < layers.size()) climb(layers[l], LevelKind::network);
    }
    if (child == Network::none)
      refuse(origin, instance.line,
             fmt::format("the instance '{:.40}' has neither switches nor a domain", id->text),
             topograph_hint);
  }
  return builder.finish();
}

}  // namespace rankmesh::detail
