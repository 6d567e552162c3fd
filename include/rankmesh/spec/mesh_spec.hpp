// What the user wrote: the mesh string, or a file that says the same and more.
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

/// A parsed mesh description: a mesh string, or a TOML file (docs/mesh-file.md), which can also say
/// on which ranks the mesh lies, several grids on one world, lists of groups, and how communicators
/// are made. plan() settles what it leaves to the world.
class RANKMESH_API MeshSpec {
 public:
  /// A mesh, and the ranks that it lies on.
  struct Grid {
    std::string
        name;  ///< empty: the only one; else `encoder` puts `encoder.` in front of its names
    MeshString mesh;
    std::optional<RankSet>
        ranks;  ///< rank i of the mesh is ranks[i]; nothing: the ranks from `rank_offset` on
    std::int64_t rank_offset = 0;
    std::int64_t line = 0;  ///< in the file, for errors; likewise below
  };
  /// A name whose groups are listed.
  struct Lists {
    std::string name;
    std::vector<RankSet> groups;
    std::int64_t line = 0;
  };
  struct Options {
    std::string name;
    GroupOptions options;
    std::int64_t line = 0;
  };
  /// Where a published layout comes from; every field may be empty.
  struct Provenance {
    std::string source;                ///< the publication
    std::string locator;               ///< table or section in it
    std::vector<std::string> given;    ///< figures that the source states
    std::vector<std::string> derived;  ///< figures that follow from those
    std::vector<std::string> unknown;  ///< what the source does not say
  };

  /// A mesh string (grammar: MeshString), or a path ending in `.toml`, which is read.
  /// @throws SpecError with the position, the reason and a hint.
  static MeshSpec parse(std::string_view text);
  /// A mesh string alone, never a path.
  static MeshSpec parse_string(std::string_view text);
  /// The TOML form; docs/mesh-file.md has every key. Other keys are refused.
  /// @param origin  what to call the text in errors, usually the path.
  /// @throws SpecError with origin:line, the reason and a hint.
  static MeshSpec parse_toml(std::string_view text, std::string_view origin);

  [[nodiscard]] const std::vector<Grid>& grids() const { return grids_; }
  [[nodiscard]] const std::vector<Lists>& lists() const { return lists_; }
  [[nodiscard]] const std::vector<Options>& options() const { return options_; }
  /// As written: rules (RouteTable), which a file that is read has in their grammar, or `@PATH`.
  /// routes_of() reads them.
  [[nodiscard]] const std::string& routes() const { return routes_; }
  [[nodiscard]] const Provenance& provenance() const { return provenance_; }
  /// The file that was read, or what its text was called; empty for a mesh string.
  [[nodiscard]] const std::string& origin() const { return origin_; }
  /// `mesh.toml:4`: where its routes are.
  [[nodiscard]] std::string routes_origin() const;

  /// How many ranks the description has by itself; nothing where it leaves that open (`auto`).
  [[nodiscard]] std::optional<std::int64_t> world_size() const;
  /// The mesh on a world of this size (nothing: the description's own). Pure arithmetic, no cost
  /// per rank but for what the file lists. A mesh that is stated to lie on given ranks leaves
  /// others of the world in no group.
  /// @throws SpecError where MeshString::plan() does, grids overlap, a rank lies outside the world,
  /// a name stands
  ///         twice, or options are for a name that is not there or mean nothing.
  [[nodiscard]] MeshPlan plan(std::optional<std::int64_t> world_size = std::nullopt) const;

  /// Whether a mesh string can say it: no grids, ranks, lists, options or routes.
  [[nodiscard]] bool fits_string() const;
  /// The canonical mesh string: parses back to the same plan on the same world (a file's world_size
  /// and provenance are no part of it). @throws UnsupportedError where no mesh string can say it.
  [[nodiscard]] std::string to_string() const;
  /// The canonical TOML form, everything included: parses back to the same description.
  [[nodiscard]] std::string to_toml() const;
  /// One line for messages and logs: the mesh string where there is one, else what comes close.
  /// Never throws.
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
