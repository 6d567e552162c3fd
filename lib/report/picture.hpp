// SPDX-License-Identifier: BSD-3-Clause
// A picture of a mesh as a value: boxes for nodes and switches, and the groups of the ranks in
// them. The writers of Format::svg and Format::html draw it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/layout/layout.hpp"
#include "rankmesh/machine/machine.hpp"

namespace rankmesh::report {

/// A text by which the user asked for a family, for example `dp*tp`, and the family itself. Reports
/// use the text as the key of the family.
using NamedFamily = std::pair<std::string, GroupFamily>;

/// One of the states that a picture compares, for example today's slots of the ranks.
struct PictureState {
  std::string name{};                   ///< for example `today`; empty if there is one state only
  std::int64_t world_size = 0;          ///< the number of ranks
  std::vector<Layout> views{};          ///< for the coordinates of the ranks
  std::vector<NamedFamily> families{};  ///< The families by which ranks can be coloured.
  std::vector<std::int64_t> slots{};    ///< the slot of each rank; empty: rank r is in slot r
};

/// A picture of a mesh. The boxes are computed only when a writer draws the picture.
struct Picture {
  std::string title;                 ///< for example the mesh
  std::vector<std::string> notes{};  ///< sentences for the top of the picture
  /// The boxes. Without a machine, the boxes are the coordinates along the outer dimensions of the
  /// first view.
  std::optional<Machine> machine{};
  std::vector<PictureState> states{};  ///< one state, or the states before and after a change
};

}  // namespace rankmesh::report
