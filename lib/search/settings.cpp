// SPDX-License-Identifier: BSD-3-Clause
#include "search/settings.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

namespace rankmesh::search {

std::string_view to_string(Recompute recompute) {
  constexpr std::array<std::string_view, 3> names{"none", "selective", "full"};
  return names[static_cast<std::size_t>(recompute)];
}

std::string_view to_string(StageKind kind) {
  constexpr std::array<std::string_view, 3> names{"even", "counted", "uneven"};
  return names[static_cast<std::size_t>(kind)];
}

std::string Settings::mesh() const {
  const std::string cp_text = cp > 1 ? fmt::format(",cp={}", cp) : "";
  std::string text = fmt::format("pp={},dp={}{},tp={}", pp, dp, cp_text, tp);
  if (ep > 1)
    text += fmt::format(" | pp={},edp={},ep={}", pp, std::int64_t{1} * dp * cp * tp / ep, ep);
  return text;
}

StageLayers stage_layers(std::int64_t layers, const Settings& settings) {
  const std::int64_t chunks = std::int64_t{1} * settings.pp * settings.virtual_stages;
  if (settings.stages == StageKind::even)
    return StageLayers::even(layers, settings.pp, settings.virtual_stages);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(chunks), (layers + 2) / chunks);
  for (std::int64_t more = 0; more < (layers + 2) % chunks; ++more)
    ++counts[static_cast<std::size_t>(more + 1)];
  --counts.front();  // the embedding
  --counts.back();   // the loss
  return StageLayers::given(counts, settings.virtual_stages);
}

}  // namespace rankmesh::search
