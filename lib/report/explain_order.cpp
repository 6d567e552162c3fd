// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/parts.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
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
  using enum Table::Align;
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
