#include "rankmesh/report/rank.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "detail/require_rank.hpp"
#include "detail/table.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::report {
namespace {

// With live facts the rank's host, local rank and process stand in every row.
detail::Table groups_table(const MeshPlan& plan, Rank rank, std::size_t limit,
                           const LiveFacts* live) {
  using enum detail::Table::Align;
  std::vector<detail::Table::Column> columns{
      {"name", left}, {"group", right}, {"rank in group", right}, {"size", right}, {"ranks", left}};
  if (live != nullptr)
    for (const char* title : {"host", "local rank", "process"}) columns.push_back({title, left});
  detail::Table table{std::move(columns)};
  for (const Membership& m : plan.memberships(rank)) {
    std::vector<std::string> row{plan.families()[m.family].name(), fmt::format("{}", m.place.group),
                                 fmt::format("{}", m.place.rank_in_group.value()),
                                 fmt::format("{}", m.ranks.size()), m.ranks.to_string(limit)};
    if (live != nullptr) {
      row.push_back(live->hosts.at(static_cast<std::size_t>(live->placement.node(rank))));
      row.push_back(fmt::format("{}", live->placement.local_rank(rank)));
      row.push_back(
          fmt::format("{}", live->process_ids.at(static_cast<std::size_t>(rank.value()))));
    }
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

std::string rank_text(const MeshPlan& plan, Rank rank, const LiveFacts* live) {
  detail::require_rank(plan, rank);
  std::string text =
      fmt::format("rank {} of {}   {}\n", rank.value(), plan.world_size(), plan.describe(rank));
  if (live != nullptr)
    text += fmt::format("host {}, local rank {}, process {}\n",
                        live->hosts.at(static_cast<std::size_t>(live->placement.node(rank))),
                        live->placement.local_rank(rank),
                        live->process_ids.at(static_cast<std::size_t>(rank.value())));
  return text + "\n" + groups_table(plan, rank, 80, nullptr).to_string(false);
}

std::string rank_csv(const MeshPlan& plan, Rank rank, const LiveFacts* live) {
  detail::require_rank(plan, rank);
  return groups_table(plan, rank, SIZE_MAX, live).to_csv();
}

std::string rank_json(const MeshPlan& plan, Rank rank, const LiveFacts* live) {
  detail::require_rank(plan, rank);
  nlohmann::ordered_json json{{"schema", "rankmesh.rank/1"}, {"rank", rank.value()}};
  json["coordinates"] = nlohmann::ordered_json::object();
  for (const auto& [name, coordinate] : plan.coordinates(rank))
    json["coordinates"][name] = coordinate.value();
  auto& groups = json["groups"] = nlohmann::ordered_json::object();
  for (const Membership& m : plan.memberships(rank)) {
    const GroupFamily& family = plan.families()[m.family];
    nlohmann::ordered_json entry{{"index", m.place.group},
                                 {"rank_in_group", m.place.rank_in_group.value()},
                                 {"size", m.ranks.size()},
                                 {"ranks", m.ranks.to_string()}};
    if (family.find_all(rank).size() > 1)
      groups[family.name()].push_back(std::move(entry));
    else
      groups[family.name()] = std::move(entry);
  }
  if (live != nullptr)
    json["live"] = {{"host", live->hosts.at(static_cast<std::size_t>(live->placement.node(rank)))},
                    {"local_rank", live->placement.local_rank(rank)},
                    {"pid", live->process_ids.at(static_cast<std::size_t>(rank.value()))}};
  return json.dump(2) + "\n";
}

}  // namespace rankmesh::report
