// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/show.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/text.hpp"
#include "detail/grid.hpp"
#include "detail/live.hpp"
#include "detail/picture.hpp"
#include "detail/place.hpp"

namespace rankmesh::report {
namespace {

constexpr std::size_t max_lines = 49;
constexpr std::size_t max_names = 24;
constexpr std::size_t max_rank_text = 28;
constexpr std::size_t max_field = 1000;  // characters of a list of ranks in JSON and CSV

// Where the groups of a name are.
struct Spread {
  std::int64_t inside = 0;      // groups inside one node
  std::int32_t most_nodes = 0;  // nodes of the group that spans most
};

Spread spread_of(const GroupFamily& family, const Placement& placement) {
  Spread spread;
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    const std::int32_t nodes = placement.nodes_of(family.group(g));
    spread.inside += nodes == 1 ? 1 : 0;
    spread.most_nodes = std::max(spread.most_nodes, nodes);
  }
  return spread;
}

std::string stride_text(const GroupFamily& family) {
  const auto stride = family.stride();
  return stride ? fmt::format("{}", *stride) : "-";
}

std::string size_text(const GroupFamily& family) {
  return fmt::format("{}{}", family.is_uniform() ? "" : "<=", family.group_size());
}

std::string_view coverage_text(Coverage coverage) {
  switch (coverage) {
    case Coverage::partition:
      return "partition";
    case Coverage::partial:
      return "partial";
    case Coverage::overlapping:
      return "overlapping";
  }
  return "?";
}

// Per family; empty without live facts.
std::vector<Spread> spreads_of(const MeshPlan& plan, const LiveFacts* live) {
  std::vector<Spread> result;
  if (live != nullptr)
    for (const GroupFamily& family : plan.families())
      result.push_back(spread_of(family, live->placement));
  return result;
}

// How the groups of each family lie on a machine.
struct Places {
  const Machine* machine = nullptr;
  std::vector<std::vector<LevelSpread>> spreads;  // per family
};

Places places_of(const MeshPlan& plan, const Machine* machine) {
  Places places{machine, {}};
  if (machine != nullptr)
    for (const GroupFamily& family : plan.families())
      places.spreads.push_back(spread_of(family, *machine));
  return places;
}

void add_place_columns(const Places& places, Table& table) {
  using enum Table::Align;
  for (const MachineLevel& level : places.machine->levels()) {
    table.columns.push_back({fmt::format("in one {}", level.name), right});
    table.columns.push_back({fmt::format("most {}", plural(level.name)), right});
    table.columns.push_back({fmt::format("split by {}", level.name), left});
  }
}

void add_place_cells(const Places& places, std::size_t family, std::int64_t groups,
                     std::vector<Value>& row) {
  for (const LevelSpread& spread : places.spreads[family]) {
    row.emplace_back(spread.inside);
    row.emplace_back(spread.most_units);
    row.emplace_back(detail::split_text(spread, groups));
  }
}

Table names_table(const MeshPlan& plan, const LiveFacts* live, const std::vector<Spread>& spreads,
                  const Places& places) {
  using enum Table::Align;
  using enum Table::Forms;
  Table table{.columns = {{"name", left},
                          {"size", right},
                          {"groups", right},
                          {"stride", right},
                          {"first group", left, all, max_rank_text},
                          {"last group", left, all, max_rank_text}}};
  const bool has_devices = live != nullptr && !live->opened.empty();
  if (places.machine != nullptr)
    add_place_columns(places, table);
  else if (live != nullptr)
    for (const char* title : {"in one node", "most nodes"}) table.columns.push_back({title, right});
  if (has_devices)
    for (const char* title : {"warm-up ms", "device MiB"}) table.columns.push_back({title, right});
  for (std::size_t f = 0; f < plan.families().size(); ++f) {
    const GroupFamily& family = plan.families()[f];
    std::vector<Value> row{family.name(),
                           size_text(family),
                           family.group_count(),
                           stride_text(family),
                           Ranks{family.group(0), max_field},
                           Ranks{family.group(family.group_count() - 1), max_field}};
    if (places.machine != nullptr) {
      add_place_cells(places, f, family.group_count(), row);
    } else if (live != nullptr) {
      row.emplace_back(spreads[f].inside);
      row.emplace_back(spreads[f].most_nodes);
    }
    if (has_devices) {
      const LiveFacts::Opened& opened = live->opened.at(f);
      const bool is_open = opened.device_memory >= 0;
      row.emplace_back(is_open ? fmt::format("{:.1f}", 1e3 * opened.warm_up) : "-");
      row.emplace_back(
          is_open ? fmt::format("{:.1f}", static_cast<double>(opened.device_memory) / (1 << 20))
                  : "-");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

bool is_of_grids(const MeshPlan& plan) {
  return std::ranges::any_of(plan.views(), [&](const Layout& view) {
    return !view.ranks().has_same_ranks(plan.views().front().ranks());
  });
}

// The dimension with the smallest stride in the first view; nothing if there are several grids.
std::optional<std::string> fastest(const MeshPlan& plan) {
  if (is_of_grids(plan)) return std::nullopt;
  const Layout::Dimension* best = nullptr;
  for (const auto& d : plan.views().front().dimensions())
    if (d.size > 1 && (best == nullptr || std::abs(d.stride) < std::abs(best->stride))) best = &d;
  if (best == nullptr) return std::nullopt;
  return best->name;
}

// The text gives the counts of "a rank" if all ranks have the same counts, otherwise the counts of
// rank 0.
std::string communicators_text(const MeshPlan& plan) {
  const bool uniform = std::ranges::all_of(plan.families(), [&](const GroupFamily& family) {
    return family.is_uniform() && family.coverage(plan.world_size()) == Coverage::partition;
  });
  return fmt::format("  {} is in {}: {} (equal groups share one, a group of one rank needs none)\n",
                     uniform ? "a rank" : "rank 0",
                     rankmesh::detail::count_text(plan.memberships(0).size(), "group"),
                     rankmesh::detail::count_text(plan.communicators(0).size(), "communicator"));
}

}  // namespace

// '|' separates views of the same ranks, '+' separates grids, which have their ranks behind them.
std::string views_text(const MeshPlan& plan) {
  const bool has_grids = is_of_grids(plan);
  std::string text;
  for (std::size_t v = 0; v < plan.views().size(); ++v) {
    const Layout& view = plan.views()[v];
    const bool is_same = v > 0 && view.ranks().has_same_ranks(plan.views()[v - 1].ranks());
    if (v > 0) text += is_same ? " | " : " + ";
    std::vector<std::string> dimensions;
    for (const auto& d : view.dimensions())
      dimensions.push_back(fmt::format("{}={}", d.name, d.size));
    text += fmt::format("{}", fmt::join(dimensions, ","));
    const bool is_last =
        v + 1 == plan.views().size() || !view.ranks().has_same_ranks(plan.views()[v + 1].ranks());
    if (has_grids && is_last) text += " on " + view.ranks().to_string(max_rank_text);
  }
  return text;
}

namespace {

Value views_json(const MeshPlan& plan) {
  Value views;
  for (const Layout& view : plan.views()) {
    Value dimensions{Value::List{}};
    for (const auto& d : view.dimensions())
      dimensions.push_back(Value{{"name", d.name}, {"size", d.size}, {"stride", d.stride}});
    views.push_back(std::move(dimensions));
  }
  return views;
}

Value names_json(const MeshPlan& plan, const LiveFacts* live, const std::vector<Spread>& spreads,
                 const Places& places) {
  Value names;
  for (std::size_t f = 0; f < plan.families().size(); ++f) {
    const GroupFamily& family = plan.families()[f];
    Value entry{{"name", family.name()},
                {"size", family.group_size()},
                {"groups", family.group_count()},
                {"coverage", coverage_text(family.coverage(plan.world_size()))},
                {"first", Ranks{family.group(0), max_field}},
                {"last", Ranks{family.group(family.group_count() - 1), max_field}}};
    if (const auto stride = family.stride()) entry["stride"] = *stride;
    if (live != nullptr) {
      entry["groups_in_one_node"] = spreads[f].inside;
      entry["most_nodes"] = spreads[f].most_nodes;
      if (f < live->opened.size() && live->opened[f].device_memory >= 0) {
        entry["warm_up_seconds"] = live->opened[f].warm_up;
        entry["device_memory"] = live->opened[f].device_memory;
      }
    }
    if (places.machine != nullptr)
      entry["levels"] =
          detail::spread_json(*places.machine, places.spreads[f], family.group_count());
    names.push_back(std::move(entry));
  }
  return names;
}

void add_live_json(const MeshPlan& plan, const LiveFacts& live, Value& fields) {
  if (!live.why_no_devices.empty()) fields["why_no_devices"] = live.why_no_devices;
  if (live.phases)
    fields["nccl_seconds"] = {{"unique_ids", live.phases->unique_ids},
                              {"broadcasts", live.phases->broadcasts},
                              {"barriers", live.phases->barriers},
                              {"inits", live.phases->inits},
                              {"splits", live.phases->splits}};
  for (const auto& [choice, ranks] : detail::nccl_groups(live))
    fields["nccl"].push_back({{"ranks", Ranks{RankSet::of(ranks), max_field}}, {"choice", choice}});
  for (const std::string& advice : nccl_advice(live.nccl, live.placement.node_count()))
    fields["advice"].push_back(advice);
  for (std::int64_t r = 0; r < live.placement.world_size(); ++r) {
    Value coordinates{Value::Object{}};
    for (const auto& [name, coordinate] : plan.coordinates(r))
      coordinates[name] = coordinate.value();
    const auto node = static_cast<std::size_t>(live.placement.node(r));
    Value entry{{"rank", r},
                {"coordinates", std::move(coordinates)},
                {"host", live.hosts.at(node)},
                {"node", node},
                {"local_rank", live.placement.local_rank(r)},
                {"pid", live.process_ids.at(static_cast<std::size_t>(r))}};
    if (!live.devices.empty()) entry["device"] = live.devices.at(static_cast<std::size_t>(r));
    fields["ranks"].push_back(std::move(entry));
  }
}

Value show_fields(const MeshPlan& plan, const LiveFacts* live, const std::vector<Spread>& spreads,
                  const Places& places) {
  Value fields{{"mesh", views_text(plan)},
               {"world_size", plan.world_size()},
               {"digest", to_string(plan.digest())}};
  if (!plan.views().empty()) fields["views"] = views_json(plan);
  if (!plan.families().empty()) fields["names"] = names_json(plan, live, spreads, places);
  if (places.machine != nullptr) fields["machine"] = places.machine->describe();
  fields["rank_0"] = {{"groups", plan.memberships(0).size()},
                      {"communicators", plan.communicators(0).size()}};
  if (live != nullptr) add_live_json(plan, *live, fields);
  return fields;
}

// Adds the views that leave the text below max_lines.
void add_grids(const MeshPlan& plan, const LiveFacts* live, std::size_t width, std::size_t names,
               Document& document) {
  const std::size_t nodes =
      live == nullptr ? 0 : 3 + std::min<std::size_t>(detail::max_nodes + 1, live->hosts.size());
  // Title, table, names left out, communicators, nodes.
  std::size_t lines = 1 + 2 + names + 1 + 2 + nodes;
  for (const Layout& view : plan.views()) {
    const std::size_t grid = detail::grid_lines(view, live, width);
    if (grid == 0 || lines + grid + 1 > max_lines) continue;
    lines += grid + 1;
    document.add("\n");
    detail::add_grid(view, live, width, document);
  }
}

}  // namespace

Document show(const MeshPlan& plan, const LiveFacts* live, std::size_t width,
              const Machine* machine) {
  const std::vector<Spread> spreads = spreads_of(plan, live);
  const Places places = places_of(plan, machine);
  Document document{.schema = "rankmesh.show/1",
                    .fields = show_fields(plan, live, spreads, places),
                    .table = names_table(plan, live, spreads, places)};
  const auto fast = fastest(plan);
  std::string views = views_text(plan);
  if (views.size() > 400) views = views.substr(0, 400) + "...";
  document.add_bold("mesh");
  document.add(fmt::format("  {}   {}{}, digest {}\n", views,
                           rankmesh::detail::count_text(plan.world_size(), "rank"),
                           fast ? fmt::format(", {} varies fastest", *fast) : "",
                           to_string(plan.digest()).substr(0, 8)));
  if (machine != nullptr) document.add(fmt::format("machine  {}\n", machine->describe()));
  const std::size_t names = std::min(max_names, plan.families().size());
  add_grids(plan, live, width, names, document);
  document.add("\n");
  document.text.emplace_back(TableHere{names});
  if (plan.families().size() > names)
    document.add(fmt::format("  ... and {} more names\n", plan.families().size() - names));
  if (live != nullptr) document.add(fmt::format("\n{}", detail::nodes_text(*live)));
  document.add(fmt::format("\n{}", communicators_text(plan)));
  document.picture = detail::picture_of(plan, machine, live);
  return document;
}

}  // namespace rankmesh::report
