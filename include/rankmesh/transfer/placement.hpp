// SPDX-License-Identifier: BSD-3-Clause
// Where the elements of a tensor lie: its shape, its type, a mesh, and how the mesh divides it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/layout.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/transfer/axis_placement.hpp"

namespace rankmesh {

/// The place of a tensor. It says which ranks of the world have which elements of the tensor, and
/// where these elements lie in the memory of a rank. It is written as one line, whose grammar is in
/// docs/redistribution.md:
///
///     [16384,53248] bf16 @ pp=2,dp=4,tp=8 : (_, tp)
///
/// Ranks that differ only along dimensions that are not mentioned have the same elements
/// (replicas). Ranks that differ along the dimension of a `sum` have partial sums. All dimensions
/// must be in one view of the mesh, and each divides at most one axis. In the memory of a rank, its
/// elements form a dense row-major array of the shape local_shape(). Along an axis, the elements
/// are in the order of runs().
///
/// A place is immutable and cheap to copy, and several threads can use it. All functions are local
/// and do not call MPI.
class RANKMESH_API TensorPlacement {
 public:
  /// Reads a place.
  /// @throws SpecError if the text is invalid. The error contains the position, the reason and a
  /// hint.
  static TensorPlacement parse(std::string_view text);

  /// Returns the number of elements along each axis.
  [[nodiscard]] const std::vector<std::int64_t>& shape() const;
  /// Returns the type of the elements.
  [[nodiscard]] DataType type() const;
  /// Returns the number of elements of the whole tensor.
  [[nodiscard]] std::int64_t element_count() const;
  /// Returns the mesh: the view that has all dimensions that the place mentions, with its ranks in
  /// the world.
  [[nodiscard]] const Layout& layout() const;
  /// Returns the ranks of the mesh, in the order of the layout.
  [[nodiscard]] const RankSet& ranks() const { return layout().ranks(); }
  /// Returns how each axis is divided.
  [[nodiscard]] const std::vector<AxisPlacement>& axes() const;
  /// Returns the dimensions along which the ranks have partial sums.
  [[nodiscard]] const std::vector<std::string>& sums() const;

  /// Returns the number of elements along each axis on a rank; all zero if the rank is not in the
  /// mesh. An axis may have no elements on a rank of the mesh.
  [[nodiscard]] std::vector<std::int64_t> local_shape(Rank rank) const;
  /// Returns the number of elements on a rank; 0 if the rank is not in the mesh.
  [[nodiscard]] std::int64_t local_count(Rank rank) const;
  /// Returns the indices of an axis that a rank has, in the order of its memory. Empty if the rank
  /// is not in the mesh.
  [[nodiscard]] std::span<const AxisRun> runs(Rank rank, std::size_t axis) const;
  /// Returns the offset of an element in the memory of a rank, in elements. Returns nothing if the
  /// rank does not have the element.
  /// @param index  one index per axis.
  [[nodiscard]] std::optional<std::int64_t> local_offset(Rank rank,
                                                         std::span<const std::int64_t> index) const;

  /// Returns the same place on other ranks: rank i of the mesh becomes ranks[i].
  /// @throws UsageError if the number of ranks differs from the number of ranks of the mesh.
  [[nodiscard]] TensorPlacement on(const RankSet& ranks) const;
  /// Returns the same place with another type of elements.
  [[nodiscard]] TensorPlacement as(DataType type) const;

  /// Returns the canonical form. Parsing it gives an equal place.
  [[nodiscard]] const std::string& to_string() const;
  /// Returns whether both have the same canonical form.
  friend bool operator==(const TensorPlacement& a, const TensorPlacement& b) {
    return a.data_ == b.data_ || a.to_string() == b.to_string();
  }

  /// What a place is made of. It is not part of the public interface.
  struct Data;
  /// Returns the parts. It is not part of the public interface.
  [[nodiscard]] const Data& data() const { return *data_; }
  /// Creates a place from its parts. It is not part of the public interface.
  explicit TensorPlacement(std::shared_ptr<const Data> data) : data_{std::move(data)} {}

 private:
  std::shared_ptr<const Data> data_;
};

/// Returns the number of elements that `holder` has in `from` and `receiver` has in `to`. If both
/// are the same rank, these elements need not be sent. Partial sums count as elements.
/// @throws UsageError if the two shapes differ.
RANKMESH_API std::int64_t common_elements(const TensorPlacement& from, Rank holder,
                                          const TensorPlacement& to, Rank receiver);

}  // namespace rankmesh
