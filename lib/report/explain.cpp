// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/parts.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/operations.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

constexpr std::size_t max_ranks = 60;        // characters of a group in text
constexpr std::size_t max_explained = 1000;  // the same in JSON

// One division of the derivation: value = quotient x stride + remainder.
struct Step {
  const Layout::Dimension* dimension;
  std::int64_t value, quotient, remainder;
};

// The rank's position, counted from the view's offset.
std::int64_t position_of(const Layout& view, Rank rank) {
  const auto& table = view.ranks().table();
  return (table ? table->position_of(rank.value()).value_or(-1) : rank.value()) - view.offset();
}

// The coordinates are those of the layout; a division shows how they follow from the strides.
std::vector<Step> steps_of(const Layout& view, Rank rank) {
  const auto coordinates = view.coordinates(rank);
  std::vector<Step> steps;
  std::int64_t left = position_of(view, rank);
  for (const Layout::Dimension* d : detail::by_stride(view)) {
    const auto index = static_cast<std::size_t>(d - view.dimensions().data());
    const std::int64_t quotient = (*coordinates)[index].value();
    steps.push_back({d, left, quotient, left - quotient * d->stride});
    left = steps.back().remainder;
  }
  return steps;
}

// Adds the divisions from which the coordinates of one view follow, to all forms.
void add_derivation(const MeshPlan& plan, std::size_t number, Rank rank, Document& document) {
  const Layout& view = plan.views()[number];
  if (plan.views().size() > 1)
    document.add(fmt::format("view {}: {}\n", number + 1, detail::view_text(view)));
  Json& fields = document.fields["views"].emplace_back(
      Json{{"mesh", detail::view_text(view)}, {"member", view.coordinates(rank).has_value()}});
  if (!view.coordinates(rank)) {
    document.add(fmt::format("  rank {} is outside\n\n", rank.value()));
    return;
  }
  const std::int64_t position = position_of(view, rank);
  const auto& table = view.ranks().table();
  if (table)
    document.add(fmt::format("  the world is permuted: rank {} is at position {}\n", rank.value(),
                             position + view.offset()));
  if (view.offset() != 0)
    document.add(fmt::format("  the mesh begins at {} {}: {} - {} = {}\n",
                             table ? "position" : "rank", view.offset(), position + view.offset(),
                             view.offset(), position));
  fields.update({{"offset", view.offset()}, {"position", position}});
  Table divisions;
  divisions.add_columns({"dimension"});
  divisions.add_columns({"size", "stride"}, right);
  divisions.add_columns({"division", "result"});
  Table steps{.columns = document.table.columns};  // the same as numbers
  std::vector<std::string> products;
  for (const Step& s : steps_of(view, rank)) {
    const auto& [name, size, stride] = *s.dimension;
    divisions.rows.push_back(
        {name, size, stride,
         fmt::format("{} = {} x {} + {}", s.value, s.quotient, stride, s.remainder),
         fmt::format("{} = {}", name, s.quotient)});
    steps.rows.push_back({number + 1, name, size, stride, s.value, s.quotient, s.remainder});
    products.push_back(fmt::format("{} x {}", s.quotient, stride));
  }
  document.text.emplace_back(std::move(divisions));
  document.add(fmt::format("  check: {} = {}\n\n", fmt::join(products, " + "), position));
  fields["steps"] =
      steps.objects({"dimension", "size", "stride", "value", "quotient", "remainder"});
  std::ranges::move(steps.rows, std::back_inserter(document.table.rows));
}

// Returns the view in which the group consists of the ranks that share all other coordinates; null
// if there is no such view.
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
    std::vector<std::size_t> given;  // the order of the ranks may differ from the order of the view
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

// Derives the ranks of the group and the number of this rank from the coordinates.
std::string by_coordinates(const Layout& view, const GroupFamily& family, Rank rank,
                           const Membership& m) {
  const auto coordinates = *view.coordinates(rank);
  std::vector<std::string> fixed;
  for (std::size_t d = 0; d < coordinates.size(); ++d)
    if (std::ranges::find(family.dimensions(), view.dimensions()[d].name) ==
        family.dimensions().end())
      fixed.push_back(fmt::format("{}={}", view.dimensions()[d].name, coordinates[d].value()));
  std::string text = fmt::format("    {} var{}", fmt::join(family.dimensions(), " and "),
                                 family.dimensions().size() == 1 ? "ies" : "y");
  text += fixed.empty() ? "; nothing is fixed\n"
                        : fmt::format("; {} {} fixed\n", fmt::join(fixed, ", "),
                                      fixed.size() == 1 ? "is" : "are");
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
               ? "    given as a list\n"
               : fmt::format("    a pair of neighbours along {}\n", family.dimensions().front());
  if (m.ranks.modes().empty()) return "    a group of one rank\n";
  return fmt::format("    begins at {} {}, then {} (size:stride)\n",
                     m.ranks.table() ? "position" : "rank", m.ranks.start(),
                     shape_and_stride(m.ranks));
}

// Adds the groups of the rank, name by name.
void add_groups(const MeshPlan& plan, Rank rank, Document& document) {
  document.add(
      "Groups: the ranks that share all other coordinates. The first has 0 along the dimensions "
      "that vary.\n\n");
  const auto memberships = plan.memberships(rank);
  for (std::size_t f = 0; f < plan.families().size(); ++f) {
    const GroupFamily& family = plan.families()[f];
    bool is_member = false;
    for (const Membership& m : memberships) {
      if (m.family != f) continue;
      is_member = true;
      document.add(fmt::format("  {}: {} (size {}), rank {} is number {}\n", family.name(),
                               m.ranks.to_string(max_ranks), m.ranks.size(), rank.value(),
                               m.place.rank_in_group.value()));
      const Layout* view = view_of(plan, family, rank, m);
      document.add(view != nullptr ? by_coordinates(*view, family, rank, m)
                                   : by_strides(family, m));
    }
    if (!is_member)
      document.add(fmt::format("  {}: no group contains rank {}\n", family.name(), rank.value()));
  }
  for (const Membership& m : memberships)
    document.fields["groups"].push_back({{"name", plan.families()[m.family].name()},
                                         {"runs_along", plan.families()[m.family].dimensions()},
                                         {"index", m.place.group},
                                         {"first", m.ranks.front().value()},
                                         {"shape_and_stride", shape_and_stride(m.ranks)},
                                         {"rank_in_group", m.place.rank_in_group.value()},
                                         {"ranks", Ranks{m.ranks, max_explained}}});
}

}  // namespace

Document explain_rank(const MeshPlan& plan, Rank rank) {
  detail::require_rank(plan, rank);
  Document document{
      .schema = "rankmesh.explain_rank/1",
      .fields = {{"rank", rank.value()}, {"views", Json::array()}, {"groups", Json::array()}}};
  document.add(fmt::format(
      "rank {} of {}   {}\n\nCoordinates: divide by the largest stride, then the remainder by the "
      "next one. The stride of a\ndimension is the distance between two ranks that differ by 1 in "
      "it: the product of the sizes of all\nfaster dimensions.\n\n",
      rank.value(), plan.world_size(), views_text(plan)));
  document.table.add_columns(
      {"view", "dimension", "size", "stride", "value", "quotient", "remainder"});
  for (std::size_t v = 0; v < plan.views().size(); ++v) add_derivation(plan, v, rank, document);
  add_groups(plan, rank, document);
  return document;
}

namespace {

std::vector<const Layout::Dimension*> fastest_first(const Layout& view) {
  auto result = detail::by_stride(view);
  std::ranges::reverse(result);
  std::erase_if(result, [](const Layout::Dimension* d) { return d->size == 1; });
  return result;
}

// Returns the size of the aligned run of consecutive ranks that holds a whole group of the
// dimension; nothing if the strides do not nest.
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

// Adds the dimensions of a view, fastest first, to all forms.
Table add_dimensions(const Layout& view, std::size_t number, Document& document) {
  Table text;
  text.add_columns({"dimension"});
  text.add_columns({"size", "stride"}, right);
  text.add_columns({"is the product of"});
  text.add_columns({fmt::format("next to rank {}", view.ranks().front().value())}, right);
  text.add_columns({"a group lies within"});
  Json dimensions = Json::array();
  std::vector<std::string> faster;
  for (const auto* d : fastest_first(view)) {
    const auto block = block_of(view, *d);
    const std::int64_t next = neighbour(view, *d).value();
    text.rows.push_back(
        {d->name, d->size, d->stride,
         faster.empty() ? "(nothing is faster)" : fmt::format("{}", fmt::join(faster, " x ")), next,
         block ? fmt::format("{} ranks in a row", *block) : "-"});
    document.table.rows.push_back({number, d->name, d->size, d->stride, next, block});
    dimensions.push_back({{"name", d->name},
                          {"size", d->size},
                          {"stride", d->stride},
                          {"next_to_first", next},
                          {"within_ranks_in_a_row", block}});
    faster.push_back(d->name);
  }
  document.fields["views"].push_back({{"mesh", detail::view_text(view)},
                                      {"first", view.ranks().front().value()},
                                      {"fastest_first", std::move(dimensions)}});
  return text;
}

void add_view(const Layout& view, std::size_t number, Document& document) {
  Table dimensions = add_dimensions(view, number, document);
  const auto order = fastest_first(view);
  if (order.empty()) {
    document.add("  there is one rank, nothing varies\n");
    return;
  }
  std::vector<std::string> names;
  for (const auto* d : order) names.push_back(d->name);
  document.add(fmt::format("  from the fastest to the slowest: {}\n", fmt::join(names, ", ")));
  document.add(fmt::format("  from one rank to the next, {} changes first\n\n", names.front()));
  document.text.emplace_back(std::move(dimensions));
  if (view.ranks().table())
    document.add("  the world is permuted: strides count positions, not ranks\n");
  if (const auto block = block_of(view, *order.front()))
    document.add(fmt::format(
        "\n  If nodes have consecutive ranks, a {0} group stays inside a node whose size is a "
        "multiple of {1};\n  groups further down need larger nodes. The dimension that "
        "communicates most should be first.\n",
        names.front(), *block));
}

}  // namespace

Document explain_order(const MeshPlan& plan) {
  Document document{.schema = "rankmesh.explain_order/1",
                    .fields = {{"world_size", plan.world_size()}, {"views", Json::array()}}};
  document.table.add_columns(
      {"view", "dimension", "size", "stride", "next to first", "within ranks in a row"});
  document.add(title_of(plan) + "\n");
  for (std::size_t v = 0; v < plan.views().size(); ++v) {
    const Layout& view = plan.views()[v];
    document.add("\n");
    if (plan.views().size() > 1)
      document.add(fmt::format("view {}: {}\n", v + 1, detail::view_text(view)));
    add_view(view, v + 1, document);
  }
  return document;
}

}  // namespace rankmesh::report
