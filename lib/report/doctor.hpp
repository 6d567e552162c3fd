// SPDX-License-Identifier: BSD-3-Clause
// Compares the facts of all ranks of a job and says what is wrong.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/severity.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "report/document.hpp"
#include "report/rank_facts.hpp"

namespace rankmesh::report {

/// Something that a rule has found.
struct Finding {
  std::string id;                         ///< The id of the rule.
  Severity severity = Severity::warning;  ///< How serious the finding is.
  std::vector<std::int64_t> ranks;  ///< In ascending order. Empty if it concerns the whole job.
  std::string what;                 ///< What is wrong.
  std::string why;                  ///< Why it matters.
  std::string fix;                  ///< How to fix it.
};

/// What the rules examine.
struct Examination {
  std::span<const RankFacts> ranks;  ///< In the order of the ranks. There is at least one.
  const MeshPlan* plan = nullptr;    ///< The mesh of the job, or null.
};

/// What a rule finds: the part of a finding that depends on the job.
struct Found {
  std::vector<std::int64_t> ranks;  ///< As Finding::ranks.
  std::string what;                 ///< As Finding::what.
  std::string detail{};             ///< What stands for `{}` in Rule::fix.
};

/// A rule of doctor. docs/doctor.md says what each rule looks for.
struct Rule {
  std::string_view id;   ///< The name of the rule, as in docs/doctor.md.
  Severity severity;     ///< How serious its findings are.
  std::string_view why;  ///< Why what it finds matters.
  std::string_view fix;  ///< How to fix it.
  std::vector<Found> (*find)(const Examination& job);  ///< Returns what the rule finds in a job.
};

/// Returns all rules, in the order in which their findings are reported.
[[nodiscard]] const std::vector<Rule>& doctor_rules();

/// Applies all rules. Errors come first, then warnings, then notes.
[[nodiscard]] std::vector<Finding> examine(const Examination& job);

/// Reports the findings and the nodes of the job, with the schema `rankmesh.doctor/1`. The table
/// has a row for each finding.
/// @param start  Empty in a job. Otherwise the facts are those of one process, and the report says
/// that this command compares all ranks.
[[nodiscard]] Document doctor(const Examination& job, const std::vector<Finding>& findings,
                              const std::string& start);

/// Returns whether the findings contain an error or a warning. If so, meshinfo ends with status 1.
[[nodiscard]] bool has_trouble(const std::vector<Finding>& findings);

}  // namespace rankmesh::report
