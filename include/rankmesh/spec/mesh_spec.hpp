// SPDX-License-Identifier: BSD-3-Clause
// The user's description of a mesh, which is either a mesh string or a mesh file. A file can
// express more than a mesh string.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/error.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/spec/mesh_string.hpp"

namespace rankmesh {

/// A parsed description of a mesh, which is either a mesh string or a TOML file
/// (docs/mesh-file.md). A file can express more than a mesh string: it can give the ranks of the
/// mesh, put several grids into the same world, list groups, and set options and routes. plan()
/// turns the description into a plan. All functions are local and do not call MPI.
class RANKMESH_API MeshSpec {
 public:
  /// A grid, which is a mesh on some ranks of the world.
  struct Grid {
    /// The name is empty if there is only one, unnamed grid. Otherwise, the name is the prefix of
    /// the families of the grid, such as `encoder` in `encoder.tp`.
    std::string name;
    MeshString mesh;  ///< The dimensions of the grid.
    /// The ranks of the world on which the mesh lies: rank i of the mesh is ranks[i]. If this field
    /// is not set, the mesh has consecutive ranks that begin at `rank_offset`.
    std::optional<RankSet> ranks;
    std::int64_t rank_offset = 0;  ///< The first rank of the grid in the world.
    std::int64_t line = 0;         ///< line in the file, which errors report
  };
  /// A family whose groups are given as lists.
  struct Lists {
    std::string name;             ///< The name of the family.
    std::vector<RankSet> groups;  ///< The members of each group, in group order.
    std::int64_t line = 0;        ///< The line in the file.
  };
  /// The options of a family.
  struct FamilyOptions {
    std::string name;       ///< The name of the family.
    GroupOptions options;   ///< The options of the family.
    std::int64_t line = 0;  ///< The line in the file.
  };
  /// The origin of a published layout. Every field may be empty.
  struct Provenance {
    std::string source;                ///< the publication
    std::string locator;               ///< the table or section in the publication
    std::vector<std::string> given;    ///< figures that the source states
    std::vector<std::string> derived;  ///< figures that follow from the given figures
    std::vector<std::string> unknown;  ///< figures that the source does not state
  };

  /// Reads a mesh string, whose grammar is described at MeshString. If the text ends in `.toml` or
  /// `.json`, it is a path, and this function reads the file instead.
  /// @throws SpecError if the text or the file is invalid, or if the file cannot be read. The error
  /// contains the position, the reason and a hint.
  static MeshSpec parse(std::string_view text);
  /// Reads a mesh string, never a file.
  /// @throws SpecError if the text is invalid. The error contains the position, the reason and a
  /// hint.
  static MeshSpec parse_string(std::string_view text);
  /// Reads the TOML form, or the same keys in JSON. docs/mesh-file.md describes every key. Any
  /// other key is an error.
  /// @param origin  the name of the text in errors, usually the path.
  /// @throws SpecError if the text is invalid. The error contains the place (`origin:line`), the
  /// reason and a hint.
  static MeshSpec parse_toml(std::string_view text, std::string_view origin);

  /// Returns the grids. A mesh string has a single grid, which has no name.
  [[nodiscard]] const std::vector<Grid>& grids() const { return grids_; }
  /// Returns the families whose groups are given as lists.
  [[nodiscard]] const std::vector<Lists>& lists() const { return lists_; }
  /// Returns the options of families, in the order of the file.
  [[nodiscard]] const std::vector<FamilyOptions>& options() const { return options_; }
  /// Returns the routes as the user wrote them. The text contains either rules (see RouteTable) or
  /// `@PATH`, which names a file of rules. routes_of() parses the text.
  [[nodiscard]] const std::string& routes() const { return routes_; }
  /// Returns the names of the transports that the program must add (MeshOptions::transports),
  /// because the routes may name them.
  [[nodiscard]] const std::vector<std::string>& transports() const { return transports_; }
  /// Returns the origin of the layout.
  [[nodiscard]] const Provenance& provenance() const { return provenance_; }
  /// Returns the mesh string or preset in `same_as`, whose groups the file claims to have. The text
  /// is empty if the file has no `same_as`. `meshinfo check` compares the groups.
  [[nodiscard]] const std::string& same_as() const { return same_as_; }
  /// Returns the rules of `meshinfo check` that are silenced (PlacementRule::id).
  [[nodiscard]] const std::vector<std::string>& silenced() const { return silenced_; }
  /// Returns the settings of the training program as TOML: the table `[settings]` of the file. The
  /// text is empty if the file has none.
  [[nodiscard]] const std::string& settings() const { return settings_; }
  /// Returns the path of the file, or the name of the text. The result is empty for a mesh string.
  [[nodiscard]] const std::string& origin() const { return origin_; }
  /// Replaces the routes by rules (see RouteTable), which may have comments.
  /// @throws SpecError if a rule is invalid.
  void set_routes(std::string rules);
  /// Returns the place where the routes were written, for example `mesh.toml:4`.
  [[nodiscard]] std::string routes_origin() const;

  /// Returns the `world_size` of the file, if it has one.
  [[nodiscard]] const std::optional<std::int64_t>& stated_world_size() const {
    return stated_world_size_;
  }
  /// Returns the world size that the description itself determines. Returns nothing if the
  /// description leaves the size open (`auto`).
  [[nodiscard]] std::optional<std::int64_t> world_size() const;
  /// Plans the mesh by pure arithmetic. The cost depends on the number of ranks only if ranks are
  /// listed.
  /// @param world_size  the number of ranks in the world. If it is not set, plan() uses the size
  /// that the description determines. If the description gives the ranks of the mesh, the other
  /// ranks of the world are in no group.
  /// @throws SpecError if neither the description nor `world_size` determines the size, or if the
  /// description does not fit the world. For example, the product of the sizes is not the world
  /// size, grids overlap, a rank is outside the world, a name is repeated, or options are invalid.
  [[nodiscard]] MeshPlan plan(std::optional<std::int64_t> world_size = std::nullopt) const;

  /// Returns whether a mesh string can express the description. It can do so if the description has
  /// no named grids, ranks, lists, options or routes.
  [[nodiscard]] bool fits_string() const;
  /// Returns the canonical mesh string. For the same world size, this string gives the same plan.
  /// The string does not contain the `world_size`, the provenance and the settings of a file.
  /// @throws UnsupportedError if a mesh string cannot express the description.
  [[nodiscard]] std::string to_string() const;
  /// Returns one line for messages and logs: the mesh string, or a summary if a mesh string cannot
  /// express the description. This function does not throw.
  [[nodiscard]] std::string describe() const;

 private:
  friend class MeshFileReader;

  void check_world(std::optional<std::int64_t> world_size) const;
  void check_overlap() const;
  [[nodiscard]] MeshString::PlanParts parts_of(const Grid& grid,
                                               std::optional<std::int64_t> world_size) const;
  void add_lists(std::int64_t world_size, std::vector<GroupFamily>& families) const;
  void set_options(MeshPlan& plan) const;
  [[nodiscard]] std::string beyond_string() const;

  std::string origin_;  // name of the file, which errors report; empty for a mesh string
  std::vector<Grid> grids_;
  std::vector<Lists> lists_;
  std::vector<FamilyOptions> options_;
  std::string routes_;
  std::vector<std::string> transports_;
  std::int64_t routes_line_ = 0;
  Provenance provenance_;
  std::string same_as_;
  std::vector<std::string> silenced_;
  std::string settings_;
  std::optional<std::int64_t> stated_world_size_;
  std::int64_t world_size_line_ = 0;
};

}  // namespace rankmesh
