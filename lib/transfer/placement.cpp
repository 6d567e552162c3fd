// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transfer/placement.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/placement_data.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/rank_map.hpp"

namespace rankmesh {

void TensorPlacement::Data::place() {
  std::vector<Layout::Dimension> dimensions;
  std::int64_t offset = mesh_layout.offset();
  for (const Layout::Dimension& dimension : mesh_layout.dimensions()) {
    const auto fixed = std::ranges::find(at, dimension.name, [](const auto& f) { return f.first; });
    if (fixed == at.end())
      dimensions.push_back(dimension);
    else
      offset += fixed->second * dimension.stride;
  }
  const Layout part{std::move(dimensions), offset, mesh_layout.ranks().table()};
  layout = on ? RankMap{*on}.map(part) : part;
  sum_dimensions.clear();
  for (const std::string& name : sums) sum_dimensions.push_back(layout.index_of(name));
}

void TensorPlacement::Data::divide(const detail::Refuse& refuse) {
  for (const AxisPlacement& axis : axes)
    shares.push_back(detail::divide_axis(axis, layout, refuse));
}

bool TensorPlacement::Data::shares_of(Rank rank, std::vector<std::int64_t>& numbers) const {
  constexpr std::size_t most = 64;
  Coordinate coordinates[most];
  const std::size_t count = layout.dimensions().size();
  if (count > most || !layout.coordinates(rank, {coordinates, count})) return false;
  numbers.resize(shares.size());
  for (std::size_t a = 0; a < shares.size(); ++a) {
    numbers[a] = 0;
    for (std::size_t d = 0; d < shares[a].dimensions.size(); ++d)
      numbers[a] += coordinates[shares[a].dimensions[d]].value() * shares[a].weights[d];
  }
  return true;
}

const std::vector<std::int64_t>& TensorPlacement::shape() const { return data_->shape; }
DataType TensorPlacement::type() const { return data_->type; }
std::int64_t TensorPlacement::element_count() const { return data_->elements; }
const Layout& TensorPlacement::layout() const { return data_->layout; }
const std::vector<AxisPlacement>& TensorPlacement::axes() const { return data_->axes; }
const std::vector<std::string>& TensorPlacement::sums() const { return data_->sums; }
const std::string& TensorPlacement::to_string() const { return data_->text; }

std::vector<std::int64_t> TensorPlacement::local_shape(Rank rank) const {
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> shape(data_->shape.size(), 0);
  if (!data_->shares_of(rank, numbers)) return shape;
  for (std::size_t a = 0; a < shape.size(); ++a)
    shape[a] = data_->shares[a].shares[static_cast<std::size_t>(numbers[a])].count;
  return shape;
}

std::int64_t TensorPlacement::local_count(Rank rank) const {
  if (!data_->layout.ranks().contains(rank)) return 0;
  std::int64_t count = 1;
  for (const std::int64_t size : local_shape(rank)) count *= size;
  return count;
}

std::span<const AxisRun> TensorPlacement::runs(Rank rank, std::size_t axis) const {
  if (axis >= data_->shares.size())
    throw UsageError{
        fmt::format("axis {} does not exist: the tensor has {}", axis, data_->shares.size()),
        "axes are numbered from 0"};
  std::vector<std::int64_t> numbers;
  if (!data_->shares_of(rank, numbers)) return {};
  return data_->shares[axis].shares[static_cast<std::size_t>(numbers[axis])].runs;
}

std::optional<std::int64_t> TensorPlacement::local_offset(
    Rank rank, std::span<const std::int64_t> index) const {
  if (index.size() != data_->shape.size())
    throw UsageError{fmt::format("the element has {} indices, but the tensor has {} axes",
                                 index.size(), data_->shape.size()),
                     "give one index per axis"};
  std::vector<std::int64_t> numbers;
  if (!data_->shares_of(rank, numbers)) return std::nullopt;
  std::int64_t offset = 0;
  for (std::size_t a = 0; a < index.size(); ++a) {
    const auto& share = data_->shares[a].shares[static_cast<std::size_t>(numbers[a])];
    auto run = std::ranges::upper_bound(share.by_global, index[a], {}, &AxisRun::global);
    if (run == share.by_global.begin()) return std::nullopt;
    --run;
    if (index[a] >= run->global + run->count) return std::nullopt;
    offset = offset * share.count + run->local + index[a] - run->global;
  }
  return offset;
}

TensorPlacement TensorPlacement::on(const RankSet& ranks) const {
  if (ranks.size() != data_->mesh_layout.size())
    throw UsageError{fmt::format("the mesh '{}' has {} ranks, but {} are given", data_->mesh,
                                 data_->mesh_layout.size(), ranks.size()),
                     "give one rank for each rank of the mesh"};
  auto data = std::make_shared<Data>(*data_);
  data->on = ranks;
  data->place();
  data->write();
  return TensorPlacement{std::move(data)};
}

TensorPlacement TensorPlacement::as(DataType type) const {
  auto data = std::make_shared<Data>(*data_);
  data->type = type;
  data->write();
  return TensorPlacement{std::move(data)};
}

std::int64_t common_elements(const TensorPlacement& from, Rank holder, const TensorPlacement& to,
                             Rank receiver) {
  if (from.shape() != to.shape())
    throw UsageError{fmt::format("a tensor of shape [{}] cannot become one of shape [{}]",
                                 fmt::join(from.shape(), ","), fmt::join(to.shape(), ",")),
                     "use places of tensors with the same shape"};
  std::vector<std::int64_t> holder_shares;
  std::vector<std::int64_t> receiver_shares;
  if (!from.data().shares_of(holder, holder_shares) ||
      !to.data().shares_of(receiver, receiver_shares))
    return 0;
  std::int64_t elements = 1;
  for (std::size_t axis = 0; axis < from.shape().size(); ++axis) {
    const auto& a = from.data().shares[axis].shares[static_cast<std::size_t>(holder_shares[axis])];
    const auto& b = to.data().shares[axis].shares[static_cast<std::size_t>(receiver_shares[axis])];
    std::int64_t common = 0;
    auto x = a.by_global.begin();
    auto y = b.by_global.begin();
    while (x != a.by_global.end() && y != b.by_global.end()) {
      const std::int64_t x_end = x->global + x->count;
      const std::int64_t y_end = y->global + y->count;
      common += std::max<std::int64_t>(0, std::min(x_end, y_end) - std::max(x->global, y->global));
      if (x_end < y_end)
        ++x;
      else
        ++y;
    }
    elements *= common;
  }
  return elements;
}

}  // namespace rankmesh
