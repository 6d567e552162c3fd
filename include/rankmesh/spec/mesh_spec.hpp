// SPDX-License-Identifier: BSD-3-Clause
// A mesh as the user describes it: a mesh string, or a file that can say more.
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

/// A parsed description of a mesh: a mesh string, or a TOML file (docs/mesh-file.md). A file can
/// also say on which ranks the mesh lies, put several grids on one world, list groups, and set
/// options and routes. plan() turns the description into a plan. Local, no MPI.
class RANKMESH_API MeshSpec {
 public:
  /// A mesh and its ranks.
  struct Grid {
    /// Empty for the only grid. Otherwise the prefix of its families, such as `encoder.tp`.
    std::string name;
    MeshString mesh;
    /// Rank i of the mesh is ranks[i]. Not set: the ranks from `rank_offset` on.
    std::optional<RankSet> ranks;
    std::int64_t rank_offset = 0;
    std::int64_t line = 0;  ///< line in the file, for errors
  };
  /// A family whose groups are listed.
  struct Lists {
    std::string name;
    std::vector<RankSet> groups;
    std::int64_t line = 0;
  };
  /// The options of a family.
  struct Options {
    std::string name;
    GroupOptions options;
    std::int64_t line = 0;
  };
  /// The origin of a published layout. Every field may be empty.
  struct Provenance {
    std::string source;                ///< the publication
    std::string locator;               ///< table or section in it
    std::vector<std::string> given;    ///< figures that the source states
    std::vector<std::string> derived;  ///< figures that follow from the given ones
    std::vector<std::string> unknown;  ///< figures that the source does not state
  };

  /// Reads a mesh string (grammar: MeshString), or the file if the text is a path that ends
  /// in `.toml`.
  /// @throws SpecError with the position, the reason and a hint.
  static MeshSpec parse(std::string_view text);
  /// Reads a mesh string, never a file.
  /// @throws SpecError with the position, the reason and a hint.
  static MeshSpec parse_string(std::string_view text);
  /// Reads the TOML form. docs/mesh-file.md describes every key; other keys are errors.
  /// @param origin  the name of the text in errors, usually the path.
  /// @throws SpecError with origin:line, the reason and a hint.
  static MeshSpec parse_toml(std::string_view text, std::string_view origin);

  /// Returns the grids; a mesh string has one without a name.
  [[nodiscard]] const std::vector<Grid>& grids() const { return grids_; }
  /// Returns the families with listed groups.
  [[nodiscard]] const std::vector<Lists>& lists() const { return lists_; }
  /// Returns the options of families, in the order of the file.
  [[nodiscard]] const std::vector<Options>& options() const { return options_; }
  /// Returns the routes as written: rules (see RouteTable), or `@PATH` of a file of rules.
  /// routes_of() reads them.
  [[nodiscard]] const std::string& routes() const { return routes_; }
  /// Returns the origin of the layout.
  [[nodiscard]] const Provenance& provenance() const { return provenance_; }
  /// Returns the path of the file, or the name of the text. Empty for a mesh string.
  [[nodiscard]] const std::string& origin() const { return origin_; }
  /// Returns the place of the routes, for example `mesh.toml:4`.
  [[nodiscard]] std::string routes_origin() const;

  /// Returns the world size that the description itself determines. Nothing if it leaves the size
  /// open (`auto`).
  [[nodiscard]] std::optional<std::int64_t> world_size() const;
  /// Plans the mesh. Pure arithmetic: the cost does not depend on the number of ranks, except for
  /// listed ranks.
  /// @param world_size  the number of ranks; not set: the size that the description determines. If
  /// the description gives the ranks of the mesh, other ranks of the world are in no group.
  /// @throws SpecError if the size is open, or if the description does not fit the world: for
  /// example sizes do not multiply to it, grids overlap, a rank is outside the world, a name is
  /// repeated, or options are invalid.
  [[nodiscard]] MeshPlan plan(std::optional<std::int64_t> world_size = std::nullopt) const;

  /// Returns whether a mesh string can express the description: it has no grids, ranks, lists,
  /// options or routes.
  [[nodiscard]] bool fits_string() const;
  /// Returns the canonical mesh string. It parses back to the same plan on the same world;
  /// `world_size` and the provenance of a file are left out.
  /// @throws UnsupportedError if a mesh string cannot express the description.
  [[nodiscard]] std::string to_string() const;
  /// Returns the canonical TOML form, which parses back to the same description.
  [[nodiscard]] std::string to_toml() const;
  /// Returns one line for messages and logs: the mesh string, or a summary if a mesh string cannot
  /// express the description. Does not throw.
  [[nodiscard]] std::string describe() const;

 private:
  friend class MeshFileReader;

  void check_world(std::optional<std::int64_t> world_size) const;
  void check_overlap() const;
  [[nodiscard]] MeshString::Parts parts_of(const Grid& grid,
                                           std::optional<std::int64_t> world_size) const;
  void add_lists(std::int64_t world_size, std::vector<GroupFamily>& families) const;
  void set_options(MeshPlan& plan) const;
  [[nodiscard]] std::string beyond_string() const;

  std::string origin_;  // of the file, for errors; empty for a string
  std::vector<Grid> grids_;
  std::vector<Lists> lists_;
  std::vector<Options> options_;
  std::string routes_;
  std::int64_t routes_line_ = 0;
  Provenance provenance_;
  std::optional<std::int64_t> stated_world_size_;
  std::int64_t world_size_line_ = 0;
};

}  // namespace rankmesh
