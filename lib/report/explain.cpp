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

}  // namespace rankmesh::report
