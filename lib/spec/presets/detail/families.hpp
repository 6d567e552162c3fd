// SPDX-License-Identifier: BSD-3-Clause
// Tables of the families of a preset.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "preset.hpp"
#include "rankmesh/layout/group_family.hpp"

namespace rankmesh::presets {

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

/// One family: its name, the dimensions that its groups run along, and the dimensions along which
/// the groups are listed. Dimensions are separated by blanks, outermost first. If `listing` is
/// empty, both orders are those of the layout.
struct FamilyRow {
  std::string_view name;
  std::string_view members;
  std::string_view listing = {};
};

GroupFamily family(const Layout& layout, const FamilyRow& row);
void append(std::vector<GroupFamily>& families, const Layout& layout,
            std::span<const FamilyRow> rows);
/// Adds one family per dimension, in the given order.
void append(std::vector<GroupFamily>& families, const Layout& layout,
            std::span<const std::string> names);

/// A world with one view, and these families of it.
Blueprint blueprint(std::int64_t world, const Layout& view, std::span<const FamilyRow> rows);
/// A world with one view, and one family per dimension, in the given order.
Blueprint blueprint(std::int64_t world, const Layout& view, std::span<const std::string> names);

}  // namespace rankmesh::presets
