// SPDX-License-Identifier: BSD-3-Clause
// The tensors of a model, and how a framework lays them out on a mesh.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh {

/// The tensors of a model. An entry stands for many tensors if its name contains counters in
/// braces: `layers.{layer}.weight`, or `layers.{layer:3-60}.weight` for some values only.
struct RANKMESH_API TensorList {
  /// The values that a counter takes in the name of an entry.
  struct Counter {
    std::string name;        ///< The name.
    std::int64_t first = 0;  ///< The first value.
    std::int64_t last = 0;   ///< The last value.
  };
  /// Tensors of equal shape and type.
  struct Entry {
    std::string name;                    ///< The name, with counters but without their values.
    std::vector<std::int64_t> shape;     ///< The number of elements along each axis.
    DataType type = DataType::bfloat16;  ///< The type of the elements.
    std::vector<Counter> counters{};     ///< The counters of the name; the last varies fastest.
    std::int64_t line = 0;               ///< The line in the file.
  };
  std::string name;  ///< The name of the model.
  /// All counters. Their values are numbered from 0.
  std::vector<Counter> counters;
  std::vector<Entry> entries;  ///< The tensors.

  /// Reads a TOML file, see docs/redistribution.md.
  /// @param origin  the name of the text in errors, usually the path.
  /// @throws SpecError with the line and the reason if the text is invalid.
  static TensorList parse_toml(std::string_view text, std::string_view origin);
};

/// Rules that say where the tensors of a model lie. The first rule whose pattern matches applies.
struct RANKMESH_API LayoutRules {
  /// The place of some tensors.
  struct Rule {
    std::string tensors;  ///< a name with counters, in which `*` stands for any characters
    std::string axes;     ///< how the axes are divided, such as `(_, tp)`; see TensorPlacement
    /// The ranks that have the tensor, such as `pp=layer`: pp divides the values of the counter
    /// `layer`, and the coordinate that has this value has the tensor. Other forms are
    /// `pp:RULE=layer`, `pp=3` and `pp=last`.
    std::vector<std::string> at{};
    std::int64_t line = 0;  ///< The line in the file.
  };
  std::string name;         ///< The name of the framework.
  std::string origin;       ///< The name of the file, which errors report.
  std::vector<Rule> rules;  ///< The rules.

  /// Reads a TOML file, see docs/redistribution.md.
  /// @param origin  the name of the text in errors, usually the path.
  /// @throws SpecError with the line and the reason if the text is invalid.
  static LayoutRules parse_toml(std::string_view text, std::string_view origin);
};

/// One side of a transfer: the rules of a framework on a mesh.
struct LayoutOnMesh {
  const LayoutRules& rules;  ///< The rules.
  std::string mesh;          ///< A mesh, which may end in `on RANKS`; see TensorPlacement.
};

/// Returns all tensors of a list with their places on both sides. Equal places are one object.
/// @throws SpecError if no rule matches a tensor, or if a rule does not fit the tensor or the mesh.
RANKMESH_API std::vector<TensorTransfer> transfers_of(const TensorList& tensors,
                                                      const LayoutOnMesh& from,
                                                      const LayoutOnMesh& to);

}  // namespace rankmesh
