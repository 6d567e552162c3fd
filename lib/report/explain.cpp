#include "rankmesh/report/explain.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "detail/require_rank.hpp"
#include "detail/table.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/operations.hpp"
#include "rankmesh/report/show.hpp"

namespace rankmesh::report {
namespace {

using Json = nlohmann::ordered_json;
using enum detail::Table::Align;
constexpr std::size_t max_ranks = 60;

// One division of the derivation: value = quotient x stride + remainder.
struct Step {
  const Layout::Dimension* dimension;
  std::int64_t value, quotient, remainder;
};

// Largest stride first: what is left after a division is smaller than the stride.
std::vector<const Layout::Dimension*> by_stride(const Layout& view) {
  std::vector<const Layout::Dimension*> result;
  for (const auto& d : view.dimensions()) result.push_back(&d);
  std::ranges::stable_sort(result, std::ranges::greater{},
                           [](const Layout::Dimension* d) { return std::abs(d->stride); });
  return result;
}

// The rank's position, counted from the view's offset.
std::int64_t position_of(const Layout& view, Rank rank) {
  const auto& table = view.ranks().table();
  return (table ? table->position_of(rank.value()).value_or(-1) : rank.value()) - view.offset();
}

// Coordinates come from the layout; the division shows how they follow from the strides.
std::vector<Step> steps_of(const Layout& view, Rank rank) {
  const auto coordinates = view.coordinates(rank);
  std::vector<Step> steps;
  std::int64_t left = position_of(view, rank);
  for (const Layout::Dimension* d : by_stride(view)) {
    const auto index = static_cast<std::size_t>(d - view.dimensions().data());
    const std::int64_t quotient = (*coordinates)[index].value();
    steps.push_back({d, left, quotient, left - quotient * d->stride});
    left = steps.back().remainder;
  }
  return steps;
}

std::string view_text(const Layout& view) {
  std::vector<std::string> items;
  for (const auto& d : view.dimensions()) items.push_back(fmt::format("{}={}", d.name, d.size));
  return fmt::format("{}", fmt::join(items, ","));
}

std::string derivation(const Layout& view, Rank rank, std::size_t number, std::size_t views) {
  std::string text = views == 1 ? "" : fmt::format("view {}: {}\n", number + 1, view_text(view));
  if (!view.coordinates(rank)) return text + fmt::format("  rank {} is outside\n", rank.value());
  const std::int64_t position = position_of(view, rank);
  const auto& table = view.ranks().table();
  if (table)
    text += fmt::format("  the ranks stand in a table: rank {} is at position {}\n", rank.value(),
                        position + view.offset());
  if (view.offset() != 0)
    text += fmt::format("  the mesh begins at {} {}: {} - {} = {}\n", table ? "position" : "rank",
                        view.offset(), position + view.offset(), view.offset(), position);
  detail::Table divisions{
      {{"dimension", left}, {"size", right}, {"stride", right}, {"division", left}, {"so", left}}};
  std::vector<std::string> products;
  for (const Step& s : steps_of(view, rank)) {
    divisions.add(
        {s.dimension->name, fmt::format("{}", s.dimension->size),
         fmt::format("{}", s.dimension->stride),
         fmt::format("{} = {} x {} + {}", s.value, s.quotient, s.dimension->stride, s.remainder),
         fmt::format("{} = {}", s.dimension->name, s.quotient)});
    products.push_back(fmt::format("{} x {}", s.quotient, s.dimension->stride));
  }
  return text + divisions.to_string(false) +
         fmt::format("  back again: {} = {}\n", fmt::join(products, " + "), position);
}

// The view by whose coordinates the group is what shares all others; nothing where no view makes it
// so.
const Layout* view_of(const MeshPlan& plan, const GroupFamily& family, Rank rank,
                      const Membership& m) {
  if (family.dimensions().empty() || !family.is_strided()) return nullptr;
  for (const Layout& view : plan.views()) {
    std::vector<std::size_t> members;
    for (const std::string& name : family.dimensions())
      if (const auto d = view.find(name)) members.push_back(*d);
    if (members.size() != family.dimensions().size()) continue;
    std::ranges::sort(members);
    if (std::ranges::adjacent_find(members) != members.end()) continue;
    std::vector<std::size_t> given;  // the order of the ranks need not be that of the view
    std::vector<std::size_t> others;
    for (const std::string& name : family.dimensions()) given.push_back(*view.find(name));
    for (std::size_t d = 0; d < view.dimensions().size(); ++d)
      if (!std::ranges::binary_search(members, d)) others.push_back(d);
    const GroupFamily same = GroupFamily::of(family.name(), view, given, others);
    const auto place = same.find(rank);
    if (place && same.group(place->group) == m.ranks) return &view;
  }
  return nullptr;
}

// Why these ranks, and why this number among them.
std::string by_coordinates(const Layout& view, const GroupFamily& family, Rank rank,
                           const Membership& m) {
  const auto coordinates = *view.coordinates(rank);
  std::vector<std::string> fixed;
  for (std::size_t d = 0; d < coordinates.size(); ++d)
    if (std::ranges::find(family.dimensions(), view.dimensions()[d].name) ==
        family.dimensions().end())
      fixed.push_back(fmt::format("{}={}", view.dimensions()[d].name, coordinates[d].value()));
  std::string text = fmt::format("    {} run{}", fmt::join(family.dimensions(), " and "),
                                 family.dimensions().size() == 1 ? "s" : "");
  text += fixed.empty()
              ? ", nothing stays\n"
              : fmt::format(", {} stay{}\n", fmt::join(fixed, ", "), fixed.size() == 1 ? "s" : "");
  std::vector<std::string> back;
  std::vector<std::string> number;
  std::int64_t weight = 1;
  for (auto name = family.dimensions().rbegin(); name != family.dimensions().rend(); ++name) {
    const std::size_t d = *view.find(*name);
    const auto& dimension = view.dimensions()[d];
    if (dimension.size > 1) {
      back.insert(back.begin(),
                  fmt::format(" - {} x {}", coordinates[d].value(), dimension.stride));
      number.insert(number.begin(), fmt::format("{} x {}", coordinates[d].value(), weight));
    }
    weight *= dimension.size;
  }
  if (back.empty()) return text;
  const std::int64_t position = position_of(view, rank) + view.offset();
  text += fmt::format("    first{}: {}{} = {}; number: {} = {}\n",
                      m.ranks.table() ? " position" : "", position, fmt::join(back, ""),
                      m.ranks.start(), fmt::join(number, " + "), m.place.rank_in_group.value());
  return text;
}

std::string by_strides(const GroupFamily& family, const Membership& m) {
  if (!family.is_strided())
    return family.dimensions().empty()
               ? "    stated as a list\n"
               : fmt::format("    a pair of neighbours along {}\n", family.dimensions().front());
  if (m.ranks.modes().empty()) return "    alone\n";
  return fmt::format("    begins at {} {}, then {} (size:stride)\n",
                     m.ranks.table() ? "position" : "rank", m.ranks.start(),
                     shape_and_stride(m.ranks));
}

}  // namespace

std::string explain_rank_text(const MeshPlan& plan, Rank rank) {
  detail::require_rank(plan, rank);
  std::string text = fmt::format(
      "rank {} of {}   {}\n\nCoordinates: divide by the largest stride, go on with the remainder. "
      "A stride "
      "is how far "
      "apart\ntwo ranks are that differ by 1 in the dimension: the product of the sizes of all "
      "faster "
      "dimensions.\n\n",
      rank.value(), plan.world_size(), views_text(plan));
  for (std::size_t v = 0; v < plan.views().size(); ++v)
    text += derivation(plan.views()[v], rank, v, plan.views().size()) + "\n";
  text += fmt::format(
      "Groups: the ranks that share all other coordinates. The first has 0 along the dimensions "
      "that "
      "run.\n\n");
  const auto memberships = plan.memberships(rank);
  for (std::size_t f = 0; f < plan.families().size(); ++f) {
    const GroupFamily& family = plan.families()[f];
    bool is_member = false;
    for (const Membership& m : memberships) {
      if (m.family != f) continue;
      is_member = true;
      text += fmt::format("  {}: {} ({}), of which rank {} is number {}\n", family.name(),
                          m.ranks.to_string(max_ranks), m.ranks.size(), rank.value(),
                          m.place.rank_in_group.value());
      const Layout* view = view_of(plan, family, rank, m);
      text += view != nullptr ? by_coordinates(*view, family, rank, m) : by_strides(family, m);
    }
    if (!is_member)
      text += fmt::format("  {}: no group has rank {}\n", family.name(), rank.value());
  }
  return text;
}

std::string explain_rank_json(const MeshPlan& plan, Rank rank) {
  detail::require_rank(plan, rank);
  Json json{
      {"schema", "rankmesh.explain_rank/1"}, {"rank", rank.value()}, {"views", Json::array()}};
  for (const Layout& view : plan.views()) {
    if (!view.coordinates(rank)) {
      json["views"].push_back({{"mesh", view_text(view)}, {"member", false}});
      continue;
    }
    Json entry{{"mesh", view_text(view)},
               {"member", true},
               {"offset", view.offset()},
               {"position", position_of(view, rank)},
               {"steps", Json::array()}};
    for (const Step& s : steps_of(view, rank))
      entry["steps"].push_back({{"dimension", s.dimension->name},
                                {"size", s.dimension->size},
                                {"stride", s.dimension->stride},
                                {"value", s.value},
                                {"quotient", s.quotient},
                                {"remainder", s.remainder}});
    json["views"].push_back(std::move(entry));
  }
  json["groups"] = Json::array();
  for (const Membership& m : plan.memberships(rank))
    json["groups"].push_back({{"name", plan.families()[m.family].name()},
                              {"runs_along", plan.families()[m.family].dimensions()},
                              {"index", m.place.group},
                              {"first", m.ranks.front().value()},
                              {"shape_and_stride", shape_and_stride(m.ranks)},
                              {"rank_in_group", m.place.rank_in_group.value()},
                              {"ranks", m.ranks.to_string(detail::max_field)}});
  return json.dump(2) + "\n";
}

namespace {

std::vector<const Layout::Dimension*> fastest_first(const Layout& view) {
  auto result = by_stride(view);
  std::ranges::reverse(result);
  std::erase_if(result, [](const Layout::Dimension* d) { return d->size == 1; });
  return result;
}

// The aligned run of consecutive ranks that holds a whole group of the dimension; nothing where
// strides do not nest.
std::optional<std::int64_t> block_of(const Layout& view, const Layout::Dimension& dimension) {
  const std::int64_t block = dimension.size * dimension.stride;
  if (view.ranks().table() || dimension.stride < 0 || view.offset() % block != 0)
    return std::nullopt;
  for (const auto& d : view.dimensions())
    if (d.size > 1 && d.stride > dimension.stride && d.stride % block != 0) return std::nullopt;
  return block;
}

Rank neighbour(const Layout& view, const Layout::Dimension& dimension) {
  std::vector<Coordinate> coordinates(view.dimensions().size());
  coordinates[static_cast<std::size_t>(&dimension - view.dimensions().data())] = 1;
  return view.rank(coordinates);
}

std::string order_of(const Layout& view) {
  const auto order = fastest_first(view);
  if (order.empty()) return "  there is one rank, nothing varies\n";
  std::vector<std::string> names;
  for (const auto* d : order) names.push_back(d->name);
  const Rank first = view.ranks().front();
  std::string text = fmt::format("  from the fastest to the slowest: {}\n", fmt::join(names, ", "));
  text += fmt::format("  two ranks next to each other differ in {} first\n", names.front());
  detail::Table table{{{"dimension", left},
                       {"size", right},
                       {"stride", right},
                       {"is the product of", left},
                       {fmt::format("next to rank {}", first.value()), right},
                       {"a group lies within", left}}};
  std::vector<std::string> faster;
  for (const auto* d : order) {
    const auto block = block_of(view, *d);
    table.add({d->name, fmt::format("{}", d->size), fmt::format("{}", d->stride),
               faster.empty() ? "(nothing is faster)" : fmt::format("{}", fmt::join(faster, " x ")),
               fmt::format("{}", neighbour(view, *d).value()),
               block ? fmt::format("{} ranks in a row", *block) : "-"});
    faster.push_back(d->name);
  }
  text += "\n" + table.to_string(false);
  if (view.ranks().table()) text += "  strides count positions in a table of ranks, not ranks\n";
  if (const auto block = block_of(view, *order.front()))
    text += fmt::format(
        "\n  Where nodes take ranks in a row, {0} groups stay inside a node whose size is a "
        "multiple of "
        "{1};\n"
        "  the further down, the larger the node must be. What talks most belongs first; here {0} "
        "stands "
        "there.\n",
        names.front(), *block);
  return text;
}

}  // namespace

std::string explain_order_text(const MeshPlan& plan) {
  std::string text = fmt::format("{}   {} rank{}\n", views_text(plan), plan.world_size(),
                                 plan.world_size() == 1 ? "" : "s");
  for (std::size_t v = 0; v < plan.views().size(); ++v) {
    text += "\n";
    if (plan.views().size() > 1)
      text += fmt::format("view {}: {}\n", v + 1, view_text(plan.views()[v]));
    text += order_of(plan.views()[v]);
  }
  return text;
}

std::string explain_order_json(const MeshPlan& plan) {
  Json json{{"schema", "rankmesh.explain_order/1"},
            {"world_size", plan.world_size()},
            {"views", Json::array()}};
  for (const Layout& view : plan.views()) {
    Json dimensions = Json::array();
    for (const auto* d : fastest_first(view)) {
      const auto block = block_of(view, *d);
      dimensions.push_back({{"name", d->name},
                            {"size", d->size},
                            {"stride", d->stride},
                            {"next_to_first", neighbour(view, *d).value()},
                            {"within_ranks_in_a_row", block ? Json(*block) : Json{}}});
    }
    json["views"].push_back({{"mesh", view_text(view)},
                             {"first", view.ranks().front().value()},
                             {"fastest_first", std::move(dimensions)}});
  }
  return json.dump(2) + "\n";
}

}  // namespace rankmesh::report
