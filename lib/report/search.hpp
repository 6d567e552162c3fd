// SPDX-License-Identifier: BSD-3-Clause
// The report of `meshinfo search`.
#pragma once

#include <optional>

#include "report/document.hpp"
#include "search/groups.hpp"

namespace rankmesh::report {

/// What a report of a search shows.
struct SearchReport {
  const search::CostModel& cost;
  const search::SearchOptions& options;
  const search::SearchResult& result;
  std::size_t rows = 10;                           ///< meshes
  std::optional<search::MeshSettings> compared{};  ///< of the user
  bool is_reordered = false;  ///< `compared` was given with another order of the ranks
  bool is_calibrated = false;
  std::optional<std::int64_t> enough_devices{};  ///< if nothing fits
};

/// Reports the best candidates in groups, the terms of the best one's time and memory, beside those
/// of `compared`, and what the rules refused. The schema is `rankmesh.search/1`.
Document search(const SearchReport& report);

/// Returns the document of a candidate as JSON, with the keys of search::to_toml().
Json settings_json(const search::MeshSettings& settings, std::int64_t layers);

}  // namespace rankmesh::report
