// SPDX-License-Identifier: BSD-3-Clause
// Finds the meshes and settings for a model on a machine.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "search/cost.hpp"
#include "search/rules.hpp"

namespace rankmesh::search {

/// What a user fixes instead of leaving it to the search.
struct Fixed {
  std::optional<std::int64_t> pp, dp, cp, tp, ep, virtual_stages, micro_batch, zero;
  std::optional<Recompute> recompute;
  std::optional<bool> sequence_parallel;
};

struct SearchOptions {
  std::int64_t devices = 1;  ///< the most devices
  std::int64_t batch = 1;    ///< sequences of a step
  Fixed fixed{};
  /// Called with the number of meshes that are done, and with their number.
  std::function<void(std::int64_t, std::int64_t)> progress{};
};

/// A candidate with its costs.
struct Candidate {
  MeshSettings settings{};
  float seconds = 0;
  float bytes = 0;  ///< of the fullest device
  Fit fit = Fit::fits;
};

/// The candidates that a rule refuses.
struct Refusal {
  std::int64_t count = 0;
  std::string example;
};

struct SearchResult {
  std::vector<Candidate> candidates;            ///< those that fit or are tight, the fastest first
  std::map<std::string_view, Refusal> refused;  ///< by the id of the rule
  std::int64_t judged = 0;                      ///< candidates that no rule refuses
  std::int64_t too_large = 0;                   ///< those of them that do not fit
  std::optional<Candidate> smallest;            ///< the one that takes the least memory
};

/// Candidates whose times differ by less are equally good (docs/search.md).
inline constexpr double same_time = 0.1;
/// The sizes of a mesh use at least this part of the devices: fewer are slower by more than the
/// differences that a search tells apart.
inline constexpr double least_used = 1 - same_time;

/// Searches all candidates. The result is the same in each run.
[[nodiscard]] SearchResult search(const CostModel& cost, const SearchOptions& options);

/// Returns the margins with which the costs of a candidate are those that were measured.
/// The reserve is negative if a device took less than the formulas say.
/// @throws UsageError if the time is shorter than that of the communication alone, or the memory
/// less than that of the states.
[[nodiscard]] Margins calibrate(CostModel cost, const MeshSettings& settings,
                                const Measured& measured);

}  // namespace rankmesh::search
