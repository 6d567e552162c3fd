// SPDX-License-Identifier: BSD-3-Clause
// What training programs accept. docs/search.md lists the rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "search/model_shape.hpp"
#include "search/settings.hpp"
#include "search/system.hpp"

namespace rankmesh::search {

/// The figure of a candidate that a rule needs last, in the order in which a search chooses them.
enum class RuleChoice : std::uint8_t { tp, cp, pp, dp, ep, micro_batch, schedule, sharing };

/// What candidates are checked against.
struct RuleLimits {
  const ModelFigures& model;
  const ModelShape& shape;
  std::int64_t batch = 1;              ///< sequences of a step
  std::int64_t devices = 1;            ///< the most devices
  const Software* software = nullptr;  ///< the training program, or any
};

/// A rule. `refuse` returns why it refuses a candidate, with the nearest values that work.
struct Rule {
  std::string_view id;
  RuleChoice choice;
  std::string_view source;
  bool (*accepts)(const RuleLimits&, const MeshSettings&);
  std::string (*why)(const RuleLimits&, const MeshSettings&);
};

[[nodiscard]] std::span<const Rule> rules();
/// Returns the first rule of this choice that refuses the candidate, or null.
[[nodiscard]] const Rule* refusing(const RuleLimits& limits, const MeshSettings& settings,
                                   RuleChoice choice);
/// Returns the first rule that refuses the candidate, or null. The rules are those of the choices
/// up to `last`.
[[nodiscard]] const Rule* first_refusing(const RuleLimits& limits, const MeshSettings& settings,
                                         RuleChoice last = RuleChoice::sharing);

}  // namespace rankmesh::search
