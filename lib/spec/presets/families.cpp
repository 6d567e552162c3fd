// SPDX-License-Identifier: BSD-3-Clause
#include "detail/families.hpp"

#include <fmt/format.h>

#include "detail/arguments.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::presets {
namespace {

std::vector<std::size_t> indices(const Layout& layout, std::string_view names) {
  std::vector<std::size_t> result;
  if (names.empty()) return result;
  for (const std::string& name : split(names, ' ')) {
    const auto d = layout.find(name);
    if (!d)
      throw UsageError{
          fmt::format("internal error: the layout of a preset has no dimension '{}'", name),
          "please report this"};
    result.push_back(*d);
  }
  return result;
}

}  // namespace

GroupFamily family(const Layout& layout, const FamilyRow& row) {
  const auto members = indices(layout, row.members);
  if (row.listing.empty()) return GroupFamily::of(std::string{row.name}, layout, members);
  return GroupFamily::of(std::string{row.name}, layout, members, indices(layout, row.listing));
}

void append(std::vector<GroupFamily>& families, const Layout& layout,
            std::span<const FamilyRow> rows) {
  for (const FamilyRow& row : rows) families.push_back(family(layout, row));
}

void append(std::vector<GroupFamily>& families, const Layout& layout,
            std::span<const std::string> names) {
  for (const std::string& name : names) families.push_back(family(layout, {name, name}));
}

Blueprint blueprint(std::int64_t world, const Layout& view, std::span<const FamilyRow> rows) {
  Blueprint result{world, {view}, {}};
  append(result.families, view, rows);
  return result;
}

Blueprint blueprint(std::int64_t world, const Layout& view, std::span<const std::string> names) {
  Blueprint result{world, {view}, {}};
  append(result.families, view, names);
  return result;
}

}  // namespace rankmesh::presets
