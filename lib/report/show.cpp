// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "detail/parts.hpp"
#include "detail/picture.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

constexpr std::size_t max_lines = 49;
constexpr std::size_t max_names = 24;
constexpr std::size_t max_rank_text = 28;
constexpr std::size_t max_field = 1000;  // characters of a list of ranks in JSON and CSV
constexpr std::size_t max_views = 400;   // characters of the mesh in the first line

std::string_view coverage_text(Coverage coverage) {
  return name_in({"partition", "partial", "overlapping"}, coverage);
}

bool has_devices(const LiveFacts* live) { return live != nullptr && !live->opened.empty(); }

void add_name_columns(const LiveFacts* live, const Machine* machine, Table& table) {
  using enum Table::Forms;
  table.add_columns({"name"});
  table.add_columns({"size", "groups", "stride"}, right);
  for (const char* title : {"first group", "last group"})
    table.columns.push_back({title, left, all, max_rank_text});
  if (machine != nullptr) {
    for (const MachineLevel& level : machine->levels()) {
      table.add_columns({"in one " + level.name, "most " + plural(level.name)}, right);
      table.add_columns({"split by " + level.name});
    }
  } else if (live != nullptr) {
    table.add_columns({"in one node", "most nodes"}, right);
  }
  if (has_devices(live)) table.add_columns({"warm-up ms", "device MiB"}, right);
}

// Adds how many groups are inside one node, and how many nodes the most spread one has.
void add_nodes(const GroupFamily& family, const Placement& placement, bool is_in_table,
               std::vector<Cell>& row, Json& entry) {
  std::int64_t inside = 0;
  std::int32_t most_nodes = 0;
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    const std::int32_t nodes = placement.nodes_of(family.group(g));
    inside += nodes == 1 ? 1 : 0;
    most_nodes = std::max(most_nodes, nodes);
  }
  entry["groups_in_one_node"] = inside;
  entry["most_nodes"] = most_nodes;
  if (is_in_table) row.insert(row.end(), {inside, most_nodes});
}

void add_opened(const LiveFacts::Opened& opened, std::vector<Cell>& row, Json& entry) {
  const bool is_open = opened.device_memory >= 0;
  for (const double figure :
       {1e3 * opened.warm_up, static_cast<double>(opened.device_memory) / (1 << 20)})
    row.emplace_back(is_open ? fmt::format("{:.1f}", figure) : "-");
  if (!is_open) return;
  entry["warm_up_seconds"] = opened.warm_up;
  entry["device_memory"] = opened.device_memory;
}

// Adds a row of the table, and an object of JSON.
void add_name(const MeshPlan& plan, std::size_t f, const LiveFacts* live, const Machine* machine,
              Document& document) {
  const GroupFamily& family = plan.families()[f];
  const std::int64_t groups = family.group_count();
  const auto stride = family.stride();
  const Ranks first{family.group(0), max_field}, last{family.group(groups - 1), max_field};
  std::vector<Cell> row{
      family.name(), fmt::format("{}{}", family.is_uniform() ? "" : "<=", family.group_size()),
      groups,        stride ? Json(*stride) : Json("-"),
      first,         last};
  Json entry{
      {"name", family.name()}, {"size", family.group_size()},
      {"groups", groups},      {"coverage", coverage_text(family.coverage(plan.world_size()))},
      {"first", first},        {"last", last}};
  if (stride) entry["stride"] = *stride;
  if (live != nullptr) add_nodes(family, live->placement, machine == nullptr, row, entry);
  std::vector<LevelSpread> spreads;
  if (machine != nullptr) spreads = spread_of(family, *machine);
  for (const LevelSpread& spread : spreads)
    row.insert(row.end(), {spread.inside, spread.most_units, detail::split_text(spread, groups)});
  if (has_devices(live)) add_opened(live->opened.at(f), row, entry);
  if (machine != nullptr) entry["levels"] = detail::spread_json(*machine, spreads, groups);
  document.table.rows.push_back(std::move(row));
  document.fields["names"].push_back(std::move(entry));
}

bool is_of_grids(const MeshPlan& plan) {
  return std::ranges::any_of(plan.views(), [&](const Layout& view) {
    return !view.ranks().has_same_ranks(plan.views().front().ranks());
  });
}

// The text gives the counts of "a rank" if all ranks have the same counts, otherwise the counts of
// rank 0.
std::string communicators_text(const MeshPlan& plan) {
  const bool uniform = std::ranges::all_of(plan.families(), [&](const GroupFamily& family) {
    return family.is_uniform() && family.coverage(plan.world_size()) == Coverage::partition;
  });
  return fmt::format("  {} is in {}: {} (equal groups share one, a group of one rank needs none)\n",
                     uniform ? "a rank" : "rank 0", count_text(plan.memberships(0).size(), "group"),
                     count_text(plan.communicators(0).size(), "communicator"));
}

Json views_json(const MeshPlan& plan) {
  Json views;
  for (const Layout& view : plan.views()) {
    Json& dimensions = views.emplace_back(Json::array());
    for (const auto& d : view.dimensions())
      dimensions.push_back({{"name", d.name}, {"size", d.size}, {"stride", d.stride}});
  }
  return views;
}

void add_live_json(const MeshPlan& plan, const LiveFacts& live, Json& fields) {
  if (!live.why_no_devices.empty()) fields["why_no_devices"] = live.why_no_devices;
  for (std::size_t n = 0; n < live.why_no_shared_memory.size(); ++n)
    if (const std::string& why = live.why_no_shared_memory[n]; !why.empty())
      fields["no_shared_memory"].push_back({{"node", n}, {"why", why}});
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
    Json coordinates = Json::object();
    for (const auto& [name, coordinate] : plan.coordinates(r))
      coordinates[name] = coordinate.value();
    const auto node = static_cast<std::size_t>(live.placement.node(r));
    Json& entry = fields["ranks"].emplace_back(
        Json{{"rank", r},
             {"coordinates", std::move(coordinates)},
             {"host", live.hosts.at(node)},
             {"node", node},
             {"local_rank", live.placement.local_rank(r)},
             {"pid", live.process_ids.at(static_cast<std::size_t>(r))}});
    if (!live.devices.empty()) entry["device"] = live.devices.at(static_cast<std::size_t>(r));
  }
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

std::string first_line(const MeshPlan& plan) {
  const auto* fast = is_of_grids(plan) ? nullptr : detail::fastest(plan.views().front());
  return fmt::format("{}{}, digest {}", title_of(plan, max_views),
                     fast == nullptr ? "" : fmt::format(", {} varies fastest", fast->name),
                     to_string(plan.digest()).substr(0, 8));
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
    text += detail::view_text(view);
    const bool is_last =
        v + 1 == plan.views().size() || !view.ranks().has_same_ranks(plan.views()[v + 1].ranks());
    if (has_grids && is_last) text += " on " + view.ranks().to_string(max_rank_text);
  }
  return text;
}

std::string title_of(const MeshPlan& plan, std::size_t most) {
  std::string views = views_text(plan);
  if (views.size() > most) views = views.substr(0, most) + "...";
  return fmt::format("{}   {}", views, count_text(plan.world_size(), "rank"));
}

Document show(const MeshPlan& plan, const LiveFacts* live, std::size_t width,
              const Machine* machine) {
  Document document{.schema = "rankmesh.show/1",
                    .fields = {{"mesh", views_text(plan)},
                               {"world_size", plan.world_size()},
                               {"digest", to_string(plan.digest())}}};
  if (!plan.views().empty()) document.fields["views"] = views_json(plan);
  add_name_columns(live, machine, document.table);
  for (std::size_t f = 0; f < plan.families().size(); ++f)
    add_name(plan, f, live, machine, document);
  if (machine != nullptr) document.fields["machine"] = machine->describe();
  document.fields["rank_0"] = {{"groups", plan.memberships(0).size()},
                               {"communicators", plan.communicators(0).size()}};
  if (live != nullptr) add_live_json(plan, *live, document.fields);
  document.add_line("mesh", first_line(plan));
  if (machine != nullptr) document.add(fmt::format("machine  {}\n", machine->describe()));
  const std::size_t names = std::min(max_names, plan.families().size());
  add_grids(plan, live, width, names, document);
  document.add("\n");
  document.add_table(names, plan.families().size(), "names");
  if (live != nullptr) document.add(fmt::format("\n{}", detail::nodes_text(*live)));
  document.add(fmt::format("\n{}", communicators_text(plan)));
  const auto nodes = machine == nullptr && live != nullptr
                         ? std::optional{detail::machine_of(*live)}
                         : std::nullopt;
  document.picture = detail::picture_of(plan, nodes ? &*nodes : machine);
  return document;
}

}  // namespace rankmesh::report
