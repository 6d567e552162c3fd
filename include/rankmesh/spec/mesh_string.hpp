// SPDX-License-Identifier: BSD-3-Clause
// The parsed form of a mesh string, which contains dimensions or a preset, and products of
// dimensions.
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

/// A parsed mesh string, which describes a mesh on the ranks 0, 1, ... . In each view, one size may
/// be `auto`. Such a size is derived from the world size. All functions are local and do not call
/// MPI.
///
///     mesh    := ( preset | views ) [ ';' product { ',' product } ]
///     views   := view { '|' view }            factorisations of the same ranks
///     view    := dim { ',' dim }              outermost first, the last varies fastest
///     dim     := name '=' size                size: a whole number, or 'auto' once per view
///     product := name '=' name { '*' name }   dimensions of one view
///              | name '=' 'ends' '(' name ')' first and last rank along a dimension; see ends()
///     preset  := system ':' key '=' value { ',' key '=' value }
///     name    := [A-Za-z_][A-Za-z0-9_]*
///
/// In the products of a preset, the name of a dimension may consist of digits (`0*2`). Blanks are
/// ignored.
class RANKMESH_API MeshString {
 public:
  /// A dimension of a view.
  struct WrittenDimension {
    std::string name;                  ///< The name of the dimension.
    std::optional<std::int64_t> size;  ///< not set if the size is `auto`
    std::size_t position = 0;          ///< byte offset in the text, which errors report
  };
  /// A factorisation of the ranks. The outermost dimension comes first.
  using View = std::vector<WrittenDimension>;
  /// A product of dimensions of one view, such as `dp_cp=dp*cp`.
  struct Product {
    std::string name;                  ///< The name of the family.
    std::vector<std::string> factors;  ///< The names of the dimensions.
    std::size_t position = 0;          ///< The byte offset in the text.
    bool is_ends = false;  ///< whether it is written as `embd=ends(pp)`, with a single factor
  };
  /// The parts of a plan.
  struct PlanParts {
    std::int64_t world_size = 0;        ///< The number of ranks.
    std::vector<Layout> views;          ///< The factorisations of the ranks.
    std::vector<GroupFamily> families;  ///< The families of all views.
  };

  /// Reads a mesh string.
  /// @throws SpecError if the text is invalid. The error contains the position, the reason and a
  /// hint.
  static MeshString parse(std::string_view text);

  /// Returns the parsed preset, or nothing if the string has no preset.
  [[nodiscard]] const std::optional<PresetCall>& preset() const { return preset_; }
  /// Returns the parsed views. The result is empty for a preset, whose views exist only in the
  /// plan.
  [[nodiscard]] const std::vector<View>& views() const { return views_; }
  /// Returns the parsed products.
  [[nodiscard]] const std::vector<Product>& products() const { return products_; }

  /// Returns the world size that the string itself determines. Returns nothing if the string leaves
  /// the size open (`auto`).
  [[nodiscard]] std::optional<std::int64_t> world_size() const;
  /// Plans the mesh by pure arithmetic. The cost does not depend on the number of ranks.
  /// @param world_size  the number of ranks in the world. If it is not set, plan() uses the size
  /// that the string determines.
  /// @throws SpecError if neither the string nor `world_size` determines the size, if the product
  /// of the sizes is not the world size, if two views have different groups for the same dimension,
  /// or if no view has all dimensions of a product.
  [[nodiscard]] PlanParts plan(std::optional<std::int64_t> world_size) const;
  /// Returns the canonical form. For every world size, plan() of this
  /// form returns the same parts as plan() of the original string.
  [[nodiscard]] std::string to_string() const;

 private:
  friend class MeshStringParser;

  [[nodiscard]] std::optional<std::int64_t> preset_world_size() const;
  void add_products(const std::vector<Layout>& layouts, std::vector<GroupFamily>& families) const;
  [[nodiscard]] std::int64_t resolve_world(std::optional<std::int64_t> world_size) const;
  [[nodiscard]] Layout layout_of(const View& view, std::int64_t world_size) const;
  [[noreturn]] void refuse(std::size_t position, std::string_view reason,
                           std::string_view hint) const;

  std::string text_;  // the string as the user wrote it, which errors quote
  std::optional<PresetCall> preset_;
  std::vector<View> views_;
  std::vector<Product> products_;
};

}  // namespace rankmesh
