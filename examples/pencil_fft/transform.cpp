// SPDX-License-Identifier: BSD-3-Clause
#include "transform.hpp"

#include <fftw3.h>

#include <algorithm>
#include <utility>

namespace {

Box box_of(const Shape& shape, std::size_t stage, const rankmesh::GroupCoordinator& rows,
           std::int64_t row, const rankmesh::GroupCoordinator& columns, std::int64_t column) {
  const auto whole = [&](std::size_t axis) { return Range{0, shape[axis]}; };
  const auto by_row = [&](std::size_t axis) { return part_of(shape[axis], rows.size(), row); };
  const auto by_column = [&](std::size_t axis) {
    return part_of(shape[axis], columns.size(), column);
  };
  if (stage == 0) return {{by_row(0), by_column(1), whole(2)}};
  if (stage == 1) return {{by_row(0), whole(1), by_column(2)}};
  return {{whole(0), by_row(1), by_column(2)}};
}

rankmesh::Blocks blocks_of(const std::vector<Box>& boxes) {
  std::vector<std::size_t> counts;
  for (const Box& box : boxes) counts.push_back(box.size());
  return counts;
}

// A plan for the transforms along one axis of a box, in place.
fftw_plan plan_along(std::size_t axis, const Box& box, std::vector<Complex>& values) {
  const std::array strides{box[1].size() * box[2].size(), box[2].size(), std::size_t{1}};
  const auto dimension = [&](std::size_t k) {
    const int stride = static_cast<int>(strides[k]);
    return fftw_iodim{static_cast<int>(box[k].size()), stride, stride};
  };
  const fftw_iodim line = dimension(axis);
  const std::array others{dimension(axis == 0 ? 1 : 0), dimension(axis == 2 ? 1 : 2)};
  auto* const data = reinterpret_cast<fftw_complex*>(values.data());
  return fftw_plan_guru_dft(1, &line, 2, others.data(), data, data, FFTW_FORWARD, FFTW_ESTIMATE);
}

}  // namespace

Redistribution::Redistribution(rankmesh::GroupCoordinator& group, std::vector<Box> from,
                               std::vector<Box> to)
    : group_{group},
      mine_from_{from[group.rank_in_group().to_size()]},
      mine_to_{to[group.rank_in_group().to_size()]} {
  for (const Box& box : to) sent_.push_back(intersection(mine_from_, box));
  for (const Box& box : from) received_.push_back(intersection(box, mine_to_));
  sent_blocks_ = blocks_of(sent_);
  received_blocks_ = blocks_of(received_);
  packed_.resize(mine_from_.size());
  arrived_.resize(mine_to_.size());
}

void Redistribution::run(const std::vector<Complex>& in, std::vector<Complex>& out) {
  if (group_.size() == 1) {  // both divisions are the whole
    std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  auto next = packed_.begin();
  for (const Box& box : sent_)
    for_each_run(box, [&](std::size_t i, std::size_t j, std::size_t k, std::size_t n) {
      next = std::copy_n(&in[mine_from_.at(i, j, k)], n, next);
    });
  group_.all_to_all_v(packed_, arrived_, sent_blocks_, received_blocks_);
  const Complex* block = arrived_.data();
  for (const Box& box : received_)
    for_each_run(box, [&](std::size_t i, std::size_t j, std::size_t k, std::size_t n) {
      std::copy_n(block, n, &out[mine_to_.at(i, j, k)]);
      block += n;
    });
}

struct PencilTransform::Plans {
  std::array<fftw_plan, 3> along{};  // stage k transforms along axis 2 - k; null without elements
  ~Plans() {
    for (fftw_plan plan : along)
      if (plan != nullptr) fftw_destroy_plan(plan);
  }
};

PencilTransform::PencilTransform(rankmesh::Mesh& mesh, const Shape& shape)
    : plans_{std::make_unique<Plans>()} {
  auto& rows = mesh["row"];        // the ranks with the same column
  auto& columns = mesh["column"];  // the ranks with the same row
  const std::int64_t row = rows.rank_in_group().value();
  const std::int64_t column = columns.rank_in_group().value();
  for (std::size_t stage = 0; stage < 3; ++stage) {
    boxes_[stage] = box_of(shape, stage, rows, row, columns, column);
    stages_[stage].resize(boxes_[stage].size());
    if (!stages_[stage].empty())
      plans_->along[stage] = plan_along(2 - stage, boxes_[stage], stages_[stage]);
  }
  std::array<std::vector<Box>, 4> of_members;
  for (std::int64_t k = 0; k < columns.size(); ++k) {
    of_members[0].push_back(box_of(shape, 0, rows, row, columns, k));
    of_members[1].push_back(box_of(shape, 1, rows, row, columns, k));
  }
  for (std::int64_t k = 0; k < rows.size(); ++k) {
    of_members[2].push_back(box_of(shape, 1, rows, k, columns, column));
    of_members[3].push_back(box_of(shape, 2, rows, k, columns, column));
  }
  moves_.emplace_back(columns, of_members[0], of_members[1]);
  moves_.emplace_back(rows, of_members[2], of_members[3]);
}

PencilTransform::~PencilTransform() = default;

void PencilTransform::run() {
  for (std::size_t stage = 0; stage < 3; ++stage) {
    if (plans_->along[stage] != nullptr) fftw_execute(plans_->along[stage]);
    if (stage < 2) moves_[stage].run(stages_[stage], stages_[stage + 1]);
  }
}
