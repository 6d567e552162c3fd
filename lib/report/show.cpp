#include "rankmesh/report/show.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "detail/grid.hpp"
#include "detail/live.hpp"
#include "detail/table.hpp"

namespace rankmesh::report {
namespace {

constexpr std::size_t max_lines = 49;
constexpr std::size_t max_names = 24;
constexpr std::size_t max_rank_text = 28;

// How the groups of a name lie on the nodes.
struct Spread {
  std::int64_t inside = 0;      // groups inside one node
  std::int32_t most_nodes = 0;  // nodes that the widest group touches
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

detail::Table names_table(const MeshPlan& plan, const LiveFacts* live, std::size_t most,
                          std::size_t text_limit) {
  using enum detail::Table::Align;
  std::vector<detail::Table::Column> columns{{"name", left},        {"size", right},
                                             {"groups", right},     {"stride", right},
                                             {"first group", left}, {"last group", left}};
  if (live != nullptr) {
    columns.push_back({"in one node", right});
    columns.push_back({"most nodes", right});
  }
  const bool has_devices = live != nullptr && !live->opened.empty();
  if (has_devices) {
    columns.push_back({"warm-up ms", right});
    columns.push_back({"device MiB", right});
  }
  detail::Table table{std::move(columns)};
  for (std::size_t f = 0; f < std::min(most, plan.families().size()); ++f) {
    const GroupFamily& family = plan.families()[f];
    std::vector<std::string> row{family.name(),
                                 size_text(family),
                                 fmt::format("{}", family.group_count()),
                                 stride_text(family),
                                 family.group(0).to_string(text_limit),
                                 family.group(family.group_count() - 1).to_string(text_limit)};
    if (live != nullptr) {
      const Spread spread = spread_of(family, live->placement);
      row.push_back(fmt::format("{}", spread.inside));
      row.push_back(fmt::format("{}", spread.most_nodes));
    }
    if (has_devices) {
      const LiveFacts::Opened& opened = live->opened.at(f);
      const bool is_open = opened.device_memory >= 0;
      row.push_back(is_open ? fmt::format("{:.1f}", 1e3 * opened.warm_up) : "-");
      row.push_back(
          is_open ? fmt::format("{:.1f}", static_cast<double>(opened.device_memory) / (1 << 20))
                  : "-");
    }
    table.add(std::move(row));
  }
  return table;
}

bool is_of_grids(const MeshPlan& plan) {
  return std::ranges::any_of(plan.views(), [&](const Layout& view) {
    return !view.ranks().has_same_ranks(plan.views().front().ranks());
  });
}

// The dimension whose neighbours are nearest, in the first view; grids have one each.
std::optional<std::string> fastest(const MeshPlan& plan) {
  if (is_of_grids(plan)) return std::nullopt;
  const Layout::Dimension* best = nullptr;
  for (const auto& d : plan.views().front().dimensions())
    if (d.size > 1 && (best == nullptr || std::abs(d.stride) < std::abs(best->stride))) best = &d;
  if (best == nullptr) return std::nullopt;
  return best->name;
}

// What holds for every rank is said of "a rank", else of rank 0.
std::string communicators_text(const MeshPlan& plan) {
  const bool uniform = std::ranges::all_of(plan.families(), [&](const GroupFamily& family) {
    return family.is_uniform() && family.coverage(plan.world_size()) == Coverage::partition;
  });
  const auto count = [](std::size_t n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  return fmt::format("  {} is in {}: {} (equal groups share one, a group of one rank needs none)\n",
                     uniform ? "a rank" : "rank 0", count(plan.memberships(0).size(), "group"),
                     count(plan.communicators(0).size(), "communicator"));
}

}  // namespace

// Views of the same ranks are parted by '|'; where there are grids, each says its ranks.
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

std::string show_text(const MeshPlan& plan, const ShowOptions& options) {
  const auto fast = fastest(plan);
  std::string views = views_text(plan);
  if (views.size() > 400) views = views.substr(0, 400) + "...";
  std::string text = fmt::format(
      "{}  {}   {} rank{}{}, digest {}\n", detail::bold("mesh", options.colour), views,
      plan.world_size(), plan.world_size() == 1 ? "" : "s",
      fast ? fmt::format(", {} varies fastest", *fast) : "", to_string(plan.digest()).substr(0, 8));
  const std::size_t names = std::min(max_names, plan.families().size());
  const std::size_t nodes =
      options.live == nullptr
          ? 0
          : 3 + std::min<std::size_t>(detail::max_nodes + 1, options.live->hosts.size());
  std::size_t lines =
      1 + 2 + names + 1 + 2 + nodes;  // title, table, names left out, communicators, nodes
  for (const Layout& view : plan.views()) {
    const std::size_t grid = detail::grid_lines(view, options.live);
    if (grid == 0 || lines + grid + 1 > max_lines) continue;
    lines += grid + 1;
    text += "\n" + detail::grid_text(view, options.live, options.colour);
  }
  text += "\n" + names_table(plan, options.live, names, max_rank_text).to_string(options.colour);
  if (plan.families().size() > names)
    text += fmt::format("  ... and {} more names\n", plan.families().size() - names);
  if (options.live != nullptr) text += "\n" + detail::nodes_text(*options.live);
  return text + "\n" + communicators_text(plan);
}

std::string show_csv(const MeshPlan& plan, const ShowOptions& options) {
  return names_table(plan, options.live, plan.families().size(), detail::max_field).to_csv();
}

std::string show_json(const MeshPlan& plan, const ShowOptions& options) {
  nlohmann::ordered_json json{{"schema", "rankmesh.show/1"},
                              {"mesh", views_text(plan)},
                              {"world_size", plan.world_size()},
                              {"digest", to_string(plan.digest())}};
  for (const Layout& view : plan.views()) {
    auto dimensions = nlohmann::ordered_json::array();
    for (const auto& d : view.dimensions())
      dimensions.push_back({{"name", d.name}, {"size", d.size}, {"stride", d.stride}});
    json["views"].push_back(dimensions);
  }
  for (const GroupFamily& family : plan.families()) {
    nlohmann::ordered_json entry{
        {"name", family.name()},
        {"size", family.group_size()},
        {"groups", family.group_count()},
        {"coverage", coverage_text(family.coverage(plan.world_size()))},
        {"first", family.group(0).to_string(detail::max_field)},
        {"last", family.group(family.group_count() - 1).to_string(detail::max_field)}};
    if (const auto stride = family.stride()) entry["stride"] = *stride;
    if (options.live != nullptr) {
      const Spread spread = spread_of(family, options.live->placement);
      entry["groups_in_one_node"] = spread.inside;
      entry["most_nodes"] = spread.most_nodes;
      const std::size_t f = json.contains("names") ? json["names"].size() : 0;
      if (f < options.live->opened.size() && options.live->opened[f].device_memory >= 0) {
        entry["warm_up_seconds"] = options.live->opened[f].warm_up;
        entry["device_memory"] = options.live->opened[f].device_memory;
      }
    }
    json["names"].push_back(std::move(entry));
  }
  json["rank_0"] = {{"groups", plan.memberships(0).size()},
                    {"communicators", plan.communicators(0).size()}};
  if (options.live != nullptr) {
    const LiveFacts& live = *options.live;
    if (!live.why_no_devices.empty()) json["why_no_devices"] = live.why_no_devices;
    if (live.phases)
      json["nccl_seconds"] = {{"unique_ids", live.phases->unique_ids},
                              {"broadcasts", live.phases->broadcasts},
                              {"barriers", live.phases->barriers},
                              {"inits", live.phases->inits},
                              {"splits", live.phases->splits}};
    for (std::int64_t r = 0; r < live.placement.world_size(); ++r) {
      nlohmann::ordered_json coordinates = nlohmann::ordered_json::object();
      for (const auto& [name, coordinate] : plan.coordinates(r))
        coordinates[name] = coordinate.value();
      const auto node = static_cast<std::size_t>(live.placement.node(r));
      json["ranks"].push_back({{"rank", r},
                               {"coordinates", std::move(coordinates)},
                               {"host", live.hosts.at(node)},
                               {"node", node},
                               {"local_rank", live.placement.local_rank(r)},
                               {"pid", live.process_ids.at(static_cast<std::size_t>(r))}});
      if (!live.devices.empty())
        json["ranks"].back()["device"] = live.devices.at(static_cast<std::size_t>(r));
    }
  }
  return json.dump(2) + "\n";
}

}  // namespace rankmesh::report
