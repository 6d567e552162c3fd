#include "rankmesh/report/diff.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "detail/table.hpp"

namespace rankmesh::report {
namespace {

std::string_view sentence(NameChange change) {
  switch (change) {
    case NameChange::same:
      return "same";
    case NameChange::listing:
      return "listed in another order";
    case NameChange::order:
      return "ranks in another order";
    case NameChange::groups:
      return "other groups";
    case NameChange::only_a:
      return "only in A";
    case NameChange::only_b:
      return "only in B";
  }
  return "?";
}

std::string_view key(NameChange change) {
  constexpr std::string_view keys[] = {"same", "listing", "order", "groups", "only_a", "only_b"};
  return keys[static_cast<std::size_t>(change)];
}

std::string number(const std::optional<std::int64_t>& value) {
  return value ? fmt::format("{}", *value) : "?";
}

detail::Table names_table(const PlanDiff& diff) {
  using enum detail::Table::Align;
  detail::Table table{{{"name", left},
                       {"what differs", left},
                       {"groups in A", right},
                       {"in B", right},
                       {"survive", right},
                       {"ranks that change", right},
                       {"the other has them as", left}}};
  for (const NameDiff& name : diff.names) {
    if (name.change == NameChange::same) continue;
    const bool is_in_both = name.change != NameChange::only_a && name.change != NameChange::only_b;
    table.add({name.name, std::string{sentence(name.change)},
               name.change == NameChange::only_b ? "-" : fmt::format("{}", name.groups_a),
               name.change == NameChange::only_a ? "-" : fmt::format("{}", name.groups_b),
               is_in_both ? number(name.surviving) : "-",
               is_in_both ? number(name.changed_ranks) : "-",
               name.found_as.empty() ? "" : fmt::format("{}", fmt::join(name.found_as, ", "))});
  }
  return table;
}

nlohmann::ordered_json json_of(const std::optional<std::int64_t>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json{};
}

}  // namespace

std::string diff_text(const PlanDiff& diff, const std::string& a, const std::string& b,
                      bool colour) {
  if (diff.is_empty()) return {};
  std::string text =
      fmt::format("A  {}   {} ranks\nB  {}   {} ranks\n\n", a, diff.world_a, b, diff.world_b);
  std::vector<std::string> same;
  for (const NameDiff& name : diff.names)
    if (name.change == NameChange::same) same.push_back(name.name);
  if (same.size() < diff.names.size()) text += names_table(diff).to_string(colour) + "\n";
  text += same.empty() ? "  no name is the same in both\n"
                       : fmt::format("  the same in both: {}\n", fmt::join(same, ", "));
  const std::int64_t world = std::max(diff.world_a, diff.world_b);
  text += diff.changed_ranks
              ? fmt::format("  {} of {} ranks change groups of a name that both have\n",
                            *diff.changed_ranks, world)
              : std::string{"  the world is too large to count the ranks that change groups\n"};
  return text;
}

std::string diff_json(const PlanDiff& diff, const std::string& a, const std::string& b) {
  nlohmann::ordered_json json{{"schema", "rankmesh.diff/1"},
                              {"a", {{"mesh", a}, {"world_size", diff.world_a}}},
                              {"b", {{"mesh", b}, {"world_size", diff.world_b}}},
                              {"equal", diff.is_empty()},
                              {"changed_ranks", json_of(diff.changed_ranks)},
                              {"names", nlohmann::ordered_json::array()}};
  for (const NameDiff& name : diff.names) {
    nlohmann::ordered_json entry{{"name", name.name}, {"change", key(name.change)}};
    if (name.change != NameChange::only_b) entry["groups_a"] = name.groups_a;
    if (name.change != NameChange::only_a) entry["groups_b"] = name.groups_b;
    if (name.change != NameChange::only_a && name.change != NameChange::only_b) {
      entry["surviving"] = json_of(name.surviving);
      entry["changed_ranks"] = json_of(name.changed_ranks);
    }
    if (!name.found_as.empty()) entry["found_as"] = name.found_as;
    json["names"].push_back(std::move(entry));
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace rankmesh::report
