// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/operations.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

std::vector<std::size_t> indices_of(const Layout& layout, std::span<const std::string> names) {
  std::vector<std::size_t> result;
  for (const std::string& name : names) {
    const std::size_t d = layout.index_of(name);
    if (std::ranges::find(result, d) != result.end())
      throw UsageError{fmt::format("the dimension '{:.40}' is given twice", name),
                       "name each dimension once"};
    result.push_back(d);
  }
  return result;
}

Layout with(const Layout& layout, std::vector<Layout::Dimension> dimensions, std::int64_t offset) {
  std::vector<std::string> names;
  for (const auto& dimension : dimensions) names.push_back(dimension.name);
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    throw UsageError{fmt::format("duplicate dimension '{:.40}'", *twice),
                     "give each dimension its own name"};
  return {std::move(dimensions), offset, layout.ranks().table()};
}

}  // namespace

Layout slice(const Layout& layout, std::span<const std::string> names, Rank through) {
  const auto kept = indices_of(layout, names);
  const auto coordinates = layout.coordinates(through);
  if (!coordinates)
    throw NotMember{fmt::format("rank {} is outside the layout", through.value()),
                    "slice through a rank of the layout"};
  std::int64_t offset = layout.offset();
  for (std::size_t d = 0; d < coordinates->size(); ++d)
    if (std::ranges::find(kept, d) == kept.end())
      offset += (*coordinates)[d].value() * layout.dimensions()[d].stride;
  std::vector<Layout::Dimension> dimensions;
  for (const std::size_t d : kept) dimensions.push_back(layout.dimensions()[d]);
  return with(layout, std::move(dimensions), offset);
}

Layout flatten(const Layout& layout, std::span<const std::string> names, const std::string& name) {
  auto joined = indices_of(layout, names);
  if (joined.empty())
    throw UsageError{"flatten needs at least one dimension", "name the dimensions to join"};
  std::ranges::sort(joined);
  std::vector<Mode> modes;
  for (const std::size_t d : joined)
    modes.push_back({layout.dimensions()[d].size, layout.dimensions()[d].stride});
  modes = coalesced(modes);
  if (modes.size() > 1)
    throw UsageError{fmt::format("{} have no common stride and cannot become one dimension",
                                 fmt::join(names, ", ")),
                     "flatten neighbouring dimensions, or use the groups of their product"};
  const Mode mode =
      modes.empty() ? Mode{1, layout.dimensions()[joined.back()].stride} : modes.front();
  std::vector<Layout::Dimension> dimensions;
  for (std::size_t d = 0; d < layout.dimensions().size(); ++d) {
    if (d == joined.front()) dimensions.push_back({name, mode.size, mode.stride});
    if (std::ranges::find(joined, d) == joined.end()) dimensions.push_back(layout.dimensions()[d]);
  }
  return with(layout, std::move(dimensions), layout.offset());
}

Layout unflatten(const Layout& layout, std::string_view name,
                 std::span<const std::pair<std::string, std::int64_t>> parts) {
  const std::string wanted{name};
  const std::size_t at = indices_of(layout, std::span{&wanted, 1}).front();
  const Layout::Dimension& whole = layout.dimensions()[at];
  std::vector<Layout::Dimension> inner(parts.size());
  std::int64_t product = 1;
  for (std::size_t i = parts.size(); i-- > 0;) {
    inner[i] = {parts[i].first, parts[i].second, whole.stride * product};
    if (parts[i].second < 1 || whole.size / product < parts[i].second || whole.size % product != 0)
      throw UsageError{
          fmt::format("the sizes of the parts of '{:.40}' must multiply to {}", name, whole.size),
          "choose sizes whose product is the size of the dimension"};
    product *= parts[i].second;
  }
  if (product != whole.size)
    throw UsageError{
        fmt::format("the sizes of the parts of '{:.40}' multiply to {}, but its size is {}", name,
                    product, whole.size),
        "choose sizes whose product is the size of the dimension"};
  std::vector<Layout::Dimension> dimensions;
  for (std::size_t d = 0; d < layout.dimensions().size(); ++d) {
    if (d == at)
      dimensions.insert(dimensions.end(), inner.begin(), inner.end());
    else
      dimensions.push_back(layout.dimensions()[d]);
  }
  return with(layout, std::move(dimensions), layout.offset());
}

GroupFamily ends(std::string name, const Layout& layout, std::string_view dimension) {
  const std::string wanted{dimension};
  const std::size_t at = indices_of(layout, std::span{&wanted, 1}).front();
  std::vector<Layout::Dimension> dimensions = layout.dimensions();
  Layout::Dimension& d = dimensions[at];
  if (d.size > 1) d = {d.name, 2, d.stride * (d.size - 1)};
  const Layout both{std::move(dimensions), layout.offset(), layout.ranks().table()};
  return GroupFamily::of(std::move(name), both, std::span{&at, 1});
}

std::string shape_and_stride(const RankSet& ranks) {
  if (ranks.modes().empty()) return fmt::format("{}:0", ranks.size());
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  for (const Mode& mode : ranks.modes()) {
    sizes.push_back(mode.size);
    strides.push_back(mode.stride);
  }
  if (sizes.size() == 1) return fmt::format("{}:{}", sizes.front(), strides.front());
  return fmt::format("({}):({})", fmt::join(sizes, ", "), fmt::join(strides, ", "));
}

}  // namespace rankmesh
