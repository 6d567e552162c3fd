// SPDX-License-Identifier: BSD-3-Clause
// The list of presets, and the checks that all of them share.
#include <algorithm>

#include <fmt/format.h>

#include "detail/preset.hpp"
#include "rankmesh/base/error.hpp"
#include "spec/detail/text.hpp"

namespace rankmesh::presets {
namespace {

constexpr std::size_t max_list = 32;  // dimensions of one mesh

// The list holds pointers. References would need one dynamic initialiser per file, and the order
// of these initialisers is unspecified.
constexpr const Preset* all_presets[] = {&megatron,
                                         &hypercommgrid,
                                         &vllm,
                                         &tensorrt_llm,
                                         &deepspeed_topology,
                                         &deepspeed_grid,
                                         &deepspeed_groups,
                                         &deepspeed_expert_ranks,
                                         &deepspeed_folding,
                                         &colossalai_mesh,
                                         &colossalai_hybrid,
                                         &colossalai_moe,
                                         &torch,
                                         &sglang,
                                         &fastertransformer,
                                         &jax,
                                         &llama3};

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_number(std::string_view text, std::int64_t least) {
  const auto value = parse_number(text);
  return value && *value >= least;
}

bool fits(ValueForm form, const std::string& value) {
  const auto each = [&](char separator, auto&& test) {
    return std::ranges::all_of(split(value, separator), test);
  };
  switch (form) {
    case ValueForm::size:
      return is_number(value, 1);
    case ValueForm::count:
      return is_number(value, 0);
    case ValueForm::default_size:
      return value == "-1" || is_number(value, 1);
    case ValueForm::flag:
      return value == "true" || value == "false";
    case ValueForm::word:
      return value.size() <= 64 && each('-', is_name);
    case ValueForm::sizes:
      return each('x', [](const std::string& part) { return is_number(part, 1); });
    case ValueForm::counts:
      return each('x', [](const std::string& part) { return is_number(part, 0); });
    case ValueForm::names: {
      auto names = split(value, '.');
      if (!std::ranges::all_of(names, [](const auto& n) { return is_name(n) && n.size() <= 64; }))
        return false;
      std::ranges::sort(names);
      return std::ranges::adjacent_find(names) == names.end();
    }
  }
  return false;
}

const Preset& choose(std::string_view text, const PresetCall& call) {
  std::vector<std::string> systems;
  std::vector<std::string> kinds;
  for (const Preset* preset : all_presets) {
    if (systems.empty() || systems.back() != preset->system) systems.emplace_back(preset->system);
    if (preset->system == call.system) kinds.emplace_back(preset->kind);
  }
  if (kinds.empty())
    detail::refuse_at(text, call.position, fmt::format("unknown preset '{:.40}'", call.system),
                      detail::suggest(call.system, systems, "the presets are"));
  const auto kind = std::ranges::find(call.arguments, "kind", &PresetCall::Argument::key);
  const bool is_asked = kind != call.arguments.end();
  if (!is_asked && kinds.size() > 1)
    detail::refuse_at(text, call.position,
                      fmt::format("the preset '{}' needs the key 'kind'", call.system),
                      detail::suggest("", kinds, "the kinds are"));
  for (const Preset* preset : all_presets)
    if (preset->system == call.system &&
        (!is_asked || kinds.front().empty() || preset->kind == kind->value))
      return *preset;
  detail::refuse_at(text, kind->value_position,
                    fmt::format("the preset '{}' has no kind '{:.40}'", call.system, kind->value),
                    detail::suggest(kind->value, kinds, "the kinds are"));
}

void check_value(std::string_view text, const Key& key, const PresetCall::Argument& argument) {
  if (!fits(key.form, argument.value))
    detail::refuse_at(text, argument.value_position,
                      fmt::format("'{}' cannot be '{:.40}'", key.name, argument.value),
                      fmt::format("write {}", text_of(key.form)));
  const bool is_shape = key.form == ValueForm::sizes || key.form == ValueForm::names;
  if (is_shape && split(argument.value, key.form == ValueForm::sizes ? 'x' : '.').size() > max_list)
    detail::refuse_at(text, argument.value_position,
                      fmt::format("more than {} dimensions", max_list), "use fewer dimensions");
}

}  // namespace

void check(std::string_view text, const PresetCall& call) {
  const Preset& preset = choose(text, call);
  std::vector<Key> keys{preset.keys.begin(), preset.keys.end()};
  keys.push_back({"world_size", ValueForm::size, {}});
  if (!preset.kind.empty()) keys.push_back({"kind", ValueForm::word, {}});
  for (const auto& argument : call.arguments) {
    const auto key = std::ranges::find(keys, argument.key, &Key::name);
    if (key == keys.end()) {
      std::vector<std::string> names;
      for (const Key& known : keys) names.emplace_back(known.name);
      detail::refuse_at(
          text, argument.key_position,
          fmt::format("the preset '{}' has no key '{:.40}'", call.system, argument.key),
          detail::suggest(argument.key, names, "the keys are"));
    }
    check_value(text, *key, argument);
  }
}

Blueprint build(std::string_view text, const PresetCall& call, std::optional<std::int64_t> job,
                bool& is_open) {
  try {
    const Arguments arguments{text, call, job};
    Blueprint blueprint = choose(text, call).build(arguments);
    is_open = arguments.is_open();
    if (job && *job != blueprint.world_size && !(blueprint.is_part && *job > blueprint.world_size))
      detail::refuse_at(
          text, call.position,
          fmt::format("the preset describes {} rank{}, but the world has {}", blueprint.world_size,
                      blueprint.world_size == 1 ? "" : "s", *job),
          fmt::format("start {} ranks, or change the sizes", blueprint.world_size));
    if (job) blueprint.world_size = *job;
    return blueprint;
  } catch (const SpecError& error) {
    if (error.position()) throw;
    detail::refuse_at(text, call.position, error.message(), error.hint());
  } catch (const UsageError& error) {  // checks of the layout, for example overflow
    detail::refuse_at(text, call.position, error.message(), "choose other sizes");
  }
}

}  // namespace rankmesh::presets

namespace rankmesh {

std::vector<PresetInfo> preset_catalogue() {
  std::vector<PresetInfo> result;
  for (const presets::Preset* preset : presets::all_presets) {
    PresetInfo info{preset->system, preset->kind, preset->convention, {}};
    for (const presets::Key& key : preset->keys)
      info.keys.push_back({key.name, presets::text_of(key.form), key.meaning});
    result.push_back(std::move(info));
  }
  return result;
}

}  // namespace rankmesh
