// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/layout.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

std::vector<Mode> modes_of(std::span<const Layout::Dimension> dimensions) {
  std::vector<Mode> modes;
  for (const auto& d : dimensions) modes.push_back({d.size, d.stride});
  return modes;
}

}  // namespace

Layout Layout::row_major(std::span<const std::pair<std::string, std::int64_t>> sizes,
                         std::int64_t offset, std::shared_ptr<const RankTable> table) {
  std::vector<Dimension> dimensions(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    dimensions[i] = {sizes[i].first, sizes[i].second, stride};
    if (__builtin_mul_overflow(stride, sizes[i].second, &stride))
      throw SpecError{"the product of the sizes overflows 64 bits", "use smaller sizes"};
  }
  return {std::move(dimensions), offset, std::move(table)};
}

Layout::Layout(std::vector<Dimension> dimensions, std::int64_t offset,
               std::shared_ptr<const RankTable> table)
    : dimensions_{std::move(dimensions)}, weights_(dimensions_.size()), offset_{offset} {
  ranks_ = RankSet::strided(offset, modes_of(dimensions_), std::move(table));
  std::int64_t weight = 1;
  for (std::size_t i = dimensions_.size(); i-- > 0;) {
    weights_[i] = {weight, Divider{weight}};
    weight *= dimensions_[i].size;
  }
}

std::optional<std::size_t> Layout::find(std::string_view dimension) const {
  const auto found = std::ranges::find(dimensions_, dimension, &Dimension::name);
  if (found == dimensions_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - dimensions_.begin());
}

std::size_t Layout::index_of(std::string_view dimension) const {
  if (const auto found = find(dimension)) return *found;
  std::vector<std::string> known;
  for (const auto& d : dimensions_) known.push_back(d.name);
  throw UnknownName{fmt::format("the layout has no dimension '{:.40}'", dimension),
                    fmt::format("its dimensions are: {}", fmt::join(known, ", "))};
}

std::optional<std::vector<Coordinate>> Layout::coordinates(Rank rank) const {
  std::vector<Coordinate> result(dimensions_.size());
  if (!coordinates(rank, result)) return std::nullopt;
  return result;
}

bool Layout::coordinates(Rank rank, std::span<Coordinate> coordinates) const {
  if (coordinates.size() != dimensions_.size())
    throw UsageError{fmt::format("the span holds {} coordinates, but the layout has {} dimensions",
                                 coordinates.size(), dimensions_.size()),
                     "pass one element per dimension"};
  const std::int64_t index = ranks_.find(rank);
  if (index < 0) return false;
  // The divisions are independent of each other, so the processor overlaps them: each divides the
  // whole index, and the part of the outer dimensions is subtracted afterwards.
  std::int64_t outer = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const std::int64_t quotient = weights_[i].by.quotient(index);
    coordinates[i] = quotient - outer * dimensions_[i].size;
    outer = quotient;
  }
  return true;
}

std::optional<Coordinate> Layout::coordinate(Rank rank, std::size_t dimension) const {
  const auto index = ranks_.index_of(rank);
  if (!index) return std::nullopt;
  return Coordinate{weights_[dimension].by.quotient(index->value()) % dimensions_[dimension].size};
}

Rank Layout::rank(std::span<const Coordinate> coordinates) const {
  if (coordinates.size() != dimensions_.size())
    throw UsageError{
        fmt::format("got {} coordinates for {} dimensions", coordinates.size(), dimensions_.size()),
        "give one coordinate per dimension, outermost first"};
  std::int64_t index = 0;
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    const std::int64_t c = coordinates[i].value();
    if (c < 0 || c >= dimensions_[i].size)
      throw UsageError{fmt::format("the coordinate along '{}' must be from 0 to {}, got {}",
                                   dimensions_[i].name, dimensions_[i].size - 1, c),
                       "coordinates are numbered from 0"};
    index += c * weights_[i].weight;
  }
  return ranks_.at(index);
}

}  // namespace rankmesh
