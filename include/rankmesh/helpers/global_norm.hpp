// SPDX-License-Identifier: BSD-3-Clause
// The norm of all gradients of a model, which its ranks hold in parts.
#pragma once

#include <concepts>
#include <span>
#include <type_traits>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/helpers/buffers.hpp"
#include "rankmesh/helpers/family_names.hpp"
#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

/// Computes the Euclidean norm of gradients that are divided over some families and replicated over
/// others. Replicas count once:
///
///     GlobalNorm norm{mesh, {"pp", "tp"}};  // the model is divided over pp and tp
///     norm.add(weight_gradients);           // each rank has its own part
///     norm.add(bias_gradient, {"tp"});      // the same on all members of tp: counted once
///     const double length = norm.result();
///
/// The mesh must outlive the norm. Do not name families over which all gradients are equal, such as
/// dp after the gradients were averaged. The squares are summed in double. The result is the same
/// on the members of each group of the last family. Elsewhere it may differ in the last bits, if
/// the groups of a family lie differently on the nodes; a broadcast makes it equal. A value that is
/// infinite or NaN makes the result infinite or NaN.
class RANKMESH_API GlobalNorm {
 public:
  /// Creates a norm over the families over which the model is divided. They must be different
  /// dimensions, or products of them without a common dimension. Local.
  /// @throws UnknownName if a family does not exist; UsageError if two families have ranks in
  /// common, so that values would count several times.
  GlobalNorm(Mesh& mesh, const FamilyNames& divided_over);

  /// Adds values that this rank holds. Local.
  /// @param values  One host buffer, or a list of host buffers, of floating-point numbers.
  /// @param replicated_over Families whose members all hold these values. result() then counts the
  ///                         values of only one of these members. Families over which the model is
  ///                         not divided have no effect.
  /// @throws UnknownName if a family does not exist.
  template <Buffers Values>
  void add(const Values& values, const FamilyNames& replicated_over = {}) {
    if (!counts_here(replicated_over)) return;
    for_each_buffer(values, [&](const auto& buffer, std::size_t) { sum_ += squares_of(buffer); });
  }
  /// Adds a sum of squares that the program has computed, for example on a device. Local.
  void add_squares(double sum, const FamilyNames& replicated_over = {}) {
    if (counts_here(replicated_over)) sum_ += sum;
  }

  /// Returns the norm of everything that was added since the last result, on all ranks. Collective
  /// over this rank's groups in the families of the constructor; blocks. Cost: an all_reduce of 8
  /// bytes per family.
  [[nodiscard]] double result();

 private:
  [[nodiscard]] bool counts_here(const FamilyNames& replicated_over) const;
  template <HostMemory Values>
  static double squares_of(const Values& values) {
    using T = std::remove_cv_t<ElementOf<const Values&>>;
    double sum = 0;
    const auto* const data = detail::DescriptionOf<const Values&>::data(values);
    const auto* const first = reinterpret_cast<const LeafOf<T>*>(data);  // elements may be arrays
    const std::size_t count = detail::elements_of(values) * detail::ArrayParts<T>::leaves;
    for (const auto& value : std::span{first, count}) {
      if constexpr (requires { value.real(); }) {
        sum += static_cast<double>(value.real()) * static_cast<double>(value.real()) +
               static_cast<double>(value.imag()) * static_cast<double>(value.imag());
      } else {
        const auto x = static_cast<double>(static_cast<float_of<decltype(value)>>(value));
        sum += x * x;
      }
    }
    return sum;
  }
  // Narrow floats convert only to float.
  template <class T>
  using float_of = std::conditional_t<std::convertible_to<T, double>, double, float>;

  Mesh& mesh_;
  std::vector<GroupCoordinator*> groups_;
  std::vector<Rank> summed_;  // the ranks over which result() sums, sorted
  double sum_ = 0;
};

}  // namespace rankmesh
