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
#include "rankmesh/spec/presets.hpp"

namespace rankmesh {

/// A parsed mesh description. It may leave one size per view to the world (`auto`); plan() settles it.
///
///     mesh    := ( preset | views ) [ ';' derived { ',' derived } ] | a path ending in .toml
///     views   := view { '|' view }            factorisations of the same ranks
///     view    := dim { ',' dim }              outermost first, the last varies fastest
///     dim     := name '=' size                size: a whole number, or 'auto' once per view
///     derived := name '=' name { '*' name }   product of dimensions of one view
///     preset  := system ':' key '=' value { ',' key '=' value }
///     name    := [A-Za-z_][A-Za-z0-9_]*
///
/// In the derived names of a preset a dimension may also be all digits (`0*2`).
/// Blanks are free.
class RANKMESH_API MeshSpec {
 public:
  struct Dimension {
    std::string name;
    std::optional<std::int64_t> size;  ///< nothing: auto
    std::size_t position = 0;          ///< byte in the text, for errors
  };
  using View = std::vector<Dimension>;
  struct Product {
    std::string name;
    std::vector<std::string> factors;
    std::size_t position = 0;
  };
  /// Where a published layout comes from; every field may be empty.
  struct Provenance {
    std::string source;                ///< the publication
    std::string locator;               ///< table or section in it
    std::vector<std::string> given;    ///< figures that the source states
    std::vector<std::string> derived;  ///< figures that follow from those
    std::vector<std::string> unknown;  ///< what the source does not say
  };

  /// A mesh string, or a path ending in `.toml`, which is read.
  /// @throws SpecError with the position, the reason and a hint.
  static MeshSpec parse(std::string_view text);
  /// A mesh string alone, never a path.
  static MeshSpec parse_string(std::string_view text);
  /// The TOML form: `mesh` (a mesh string, required), `world_size`, `source`, `locator`, `given`, `derived`,
  /// `unknown`. Other keys are refused.
  /// @param origin  what to call the text in errors, usually the path.
  static MeshSpec parse_toml(std::string_view text, std::string_view origin);

  /// Parts as parsed. A preset has no views before plan().
  [[nodiscard]] const std::optional<PresetCall>& preset() const { return preset_; }
  [[nodiscard]] const std::vector<View>& views() const { return views_; }
  [[nodiscard]] const std::vector<Product>& products() const { return products_; }
  [[nodiscard]] const Provenance& provenance() const { return provenance_; }

  /// How many ranks the description has by itself; nothing where it leaves that open (`auto`).
  [[nodiscard]] std::optional<std::int64_t> world_size() const;
  /// The mesh on a world of this size (nothing: the description's own). Pure arithmetic, no cost per rank.
  /// @throws SpecError where the world is open, the sizes do not multiply to it, views disagree on a shared
  ///         dimension, or a product names what no single view has.
  [[nodiscard]] MeshPlan plan(std::optional<std::int64_t> world_size = std::nullopt) const;

  /// The canonical mesh string: parses back to the same plan on the same world (a file's world_size is no
  /// part of it).
  [[nodiscard]] std::string to_string() const;

 private:
  friend class MeshStringParser;

  void check_world(std::optional<std::int64_t> world_size) const;
  [[nodiscard]] std::optional<std::int64_t> preset_world_size() const;
  [[nodiscard]] MeshPlan preset_plan(std::optional<std::int64_t> world_size) const;
  void add_products(const std::vector<Layout>& layouts, std::vector<GroupFamily>& families) const;
  [[nodiscard]] std::int64_t settle_world(std::optional<std::int64_t> world_size) const;
  [[nodiscard]] Layout layout_of(const View& view, std::int64_t world_size) const;
  [[noreturn]] void refuse(std::size_t position, std::string_view reason, std::string_view hint) const;

  std::string text_;  // the mesh string as written, for errors
  std::optional<PresetCall> preset_;
  std::vector<View> views_;
  std::vector<Product> products_;
  std::optional<std::int64_t> stated_world_size_;
  Provenance provenance_;
};

}  // namespace rankmesh
