// SPDX-License-Identifier: BSD-3-Clause
// What training programs accept. docs/search.md lists the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "search/model_shape.hpp"
#include "search/settings.hpp"

namespace rankmesh::search {

/// The figure of a candidate that a rule needs last, in the order in which a search chooses them.
enum class Choice : std::uint8_t { tp, cp, pp, dp, ep, micro_batch, schedule };

/// What candidates are checked against.
struct Limits {
  const ModelFigures& model;
  const ModelShape& shape;
  std::int64_t batch = 1;    ///< sequences of a step
  std::int64_t devices = 1;  ///< the most devices
};

/// A rule. `refuse` returns why it refuses a candidate, with the nearest values that work.
struct Rule {
  std::string_view id;
  Choice choice;
  std::string_view source;
  bool (*accepts)(const Limits&, const Settings&);
  std::string (*why)(const Limits&, const Settings&);
};

[[nodiscard]] std::span<const Rule> rules();
/// Returns the first rule of this choice that refuses the candidate, or null.
[[nodiscard]] const Rule* refusing(const Limits& limits, const Settings& settings, Choice choice);
/// Returns the first rule of all that refuses the candidate, or null.
[[nodiscard]] const Rule* refusing(const Limits& limits, const Settings& settings);

}  // namespace rankmesh::search
