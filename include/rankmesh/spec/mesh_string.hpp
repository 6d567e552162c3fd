// One mesh string: dimensions, or a preset, and the names derived from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/layout/layout.hpp"
#include "rankmesh/spec/presets.hpp"

namespace rankmesh {

/// A parsed mesh string, on ranks 0, 1, ... . It may leave one size per view to the world (`auto`).
///
///     mesh    := ( preset | views ) [ ';' derived { ',' derived } ]
///     views   := view { '|' view }            factorisations of the same ranks
///     view    := dim { ',' dim }              outermost first, the last varies fastest
///     dim     := name '=' size                size: a whole number, or 'auto' once per view
///     derived := name '=' name { '*' name }   product of dimensions of one view
///     preset  := system ':' key '=' value { ',' key '=' value }
///     name    := [A-Za-z_][A-Za-z0-9_]*
///
/// In the derived names of a preset a dimension may also be all digits (`0*2`).
/// Blanks are free.
class RANKMESH_API MeshString {
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
  /// What a plan is made of.
  struct Parts {
    std::int64_t world_size = 0;
    std::vector<Layout> views;
    std::vector<GroupFamily> families;
  };

  /// @throws SpecError with the position, the reason and a hint.
  static MeshString parse(std::string_view text);

  /// Parts as parsed. A preset has no views before plan().
  [[nodiscard]] const std::optional<PresetCall>& preset() const { return preset_; }
  [[nodiscard]] const std::vector<View>& views() const { return views_; }
  [[nodiscard]] const std::vector<Product>& products() const { return products_; }

  /// How many ranks the string has by itself; nothing where it leaves that open (`auto`).
  [[nodiscard]] std::optional<std::int64_t> world_size() const;
  /// The mesh on a world of this size (nothing: its own). Pure arithmetic, no cost per rank.
  /// @throws SpecError where the world is open, the sizes do not multiply to it, views disagree on
  /// a shared
  ///         dimension, or a product names what no single view has.
  [[nodiscard]] Parts plan(std::optional<std::int64_t> world_size) const;
  /// The canonical form, which parses back to the same parts on the same world.
  [[nodiscard]] std::string to_string() const;

 private:
  friend class MeshStringParser;

  [[nodiscard]] std::optional<std::int64_t> preset_world_size() const;
  void add_products(const std::vector<Layout>& layouts, std::vector<GroupFamily>& families) const;
  [[nodiscard]] std::int64_t settle_world(std::optional<std::int64_t> world_size) const;
  [[nodiscard]] Layout layout_of(const View& view, std::int64_t world_size) const;
  [[noreturn]] void refuse(std::size_t position, std::string_view reason,
                           std::string_view hint) const;

  std::string text_;  // as written, for errors
  std::optional<PresetCall> preset_;
  std::vector<View> views_;
  std::vector<Product> products_;
};

}  // namespace rankmesh
