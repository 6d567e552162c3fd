// SPDX-License-Identifier: BSD-3-Clause
// A three-dimensional Fourier transform of an array that is divided over a mesh of two dimensions.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include <rankmesh/rankmesh.hpp>

#include "box.hpp"

using Complex = std::complex<double>;

/// Moves an array between two divisions over the members of a group, by one all_to_all_v.
class Redistribution {
 public:
  /// @param from, to  The boxes of all members before and after the move.
  Redistribution(rankmesh::GroupCoordinator& group, std::vector<Box> from, std::vector<Box> to);
  /// Collective over the group; blocks.
  /// @param in, out  The elements of this member's boxes.
  void run(const std::vector<Complex>& in, std::vector<Complex>& out);

 private:
  rankmesh::GroupCoordinator& group_;
  Box mine_from_, mine_to_;
  std::vector<Box> sent_, received_;  // one box per member
  rankmesh::Blocks sent_blocks_, received_blocks_;
  std::vector<Complex> packed_, arrived_;
};

/// The forward transform of an array of complex numbers, by pencils: a rank has whole lines along
/// one axis, transforms these, and exchanges them for lines along the next axis. The mesh needs the
/// dimensions `row` and `column`. Sizes need not be divisible by the dimensions.
///
/// | stage | axis 0   | axis 1      | axis 2      |
/// |-------|----------|-------------|-------------|
/// | 0     | over row | over column | whole       |
/// | 1     | over row | whole       | over column |
/// | 2     | whole    | over row    | over column |
class PencilTransform {
 public:
  /// Local. The mesh must outlive the transform.
  PencilTransform(rankmesh::Mesh& mesh, const Shape& shape);
  ~PencilTransform();

  [[nodiscard]] const Box& input_box() const { return boxes_[0]; }
  [[nodiscard]] const Box& output_box() const { return boxes_[2]; }
  /// This rank's elements before run(), in the order of input_box(). run() overwrites them.
  [[nodiscard]] std::vector<Complex>& input() { return stages_[0]; }
  /// This rank's elements after run(), in the order of output_box().
  [[nodiscard]] const std::vector<Complex>& output() const { return stages_[2]; }
  /// Transforms the input. Collective over the mesh; blocks.
  void run();

 private:
  struct Plans;
  std::array<Box, 3> boxes_;
  std::array<std::vector<Complex>, 3> stages_;
  std::vector<Redistribution> moves_;
  std::unique_ptr<Plans> plans_;
};
