// Rows of a preset's table of names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/layout/group_family.hpp"

namespace rankmesh::presets {

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

/// A name, the dimensions that its groups run along, and those along which its groups are listed,
/// outermost first and separated by blanks. An empty `listing` leaves both to the order of the
/// layout.
struct Row {
  std::string_view name;
  std::string_view members;
  std::string_view listing = {};
};

GroupFamily family(const Layout& layout, const Row& row);
void append(std::vector<GroupFamily>& families, const Layout& layout, std::span<const Row> rows);
/// One name per dimension, in the order given.
void append(std::vector<GroupFamily>& families, const Layout& layout,
            std::span<const std::string> names);

}  // namespace rankmesh::presets
