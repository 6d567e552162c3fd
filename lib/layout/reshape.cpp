// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/reshape.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

using Factors = std::span<const std::pair<std::string, std::int64_t>>;

// Returns the common refinement of the modes and the factors: pieces that divide both, outermost
// first, each with the name of its factor. Both lists are consumed from the innermost end; the
// smaller of the two remaining sizes is the next piece. Nothing if one does not divide the other: a
// boundary then lies inside a piece, and no strides can describe the factors.
std::optional<std::vector<Layout::Dimension>> refined(const std::vector<Mode>& modes,
                                                      Factors factors) {
  std::vector<Layout::Dimension> pieces;
  auto factor = factors.rbegin();
  std::int64_t factor_left = factor == factors.rend() ? 1 : factor->second;
  for (auto mode = modes.rbegin(); mode != modes.rend(); ++mode) {
    std::int64_t mode_left = mode->size;
    std::int64_t stride = mode->stride;
    while (mode_left > 1) {
      while (factor_left == 1) factor_left = (++factor)->second;
      const std::int64_t piece = std::min(mode_left, factor_left);
      if (mode_left % piece != 0 || factor_left % piece != 0) return std::nullopt;
      pieces.push_back({factor->first, piece, stride});
      mode_left /= piece;
      factor_left /= piece;
      stride *= piece;
    }
  }
  std::ranges::reverse(pieces);
  return pieces;
}

std::shared_ptr<const RankTable> table_of(const RankSet& order) {
  if (order.size() > Reshape::max_table)
    throw SpecError{
        fmt::format(
            "groups without regular strides need a table of {} ranks; at most {} are supported",
            order.size(), Reshape::max_table),
        "choose sizes of which each divides the next larger one, or a smaller world"};
  std::vector<std::int64_t> ranks;
  ranks.reserve(static_cast<std::size_t>(order.size()));
  order.for_each([&](Rank rank) { ranks.push_back(rank.value()); });
  return RankTable::make(std::move(ranks));
}

void require_product(const RankSet& order, Factors factors) {
  std::int64_t product = 1;
  for (const auto& factor : factors)
    if (factor.second < 1 || __builtin_mul_overflow(product, factor.second, &product)) product = 0;
  if (order.empty() || product != order.size())
    throw UsageError{fmt::format("the product of the factors must be {}", order.size()),
                     "choose factors whose product is the number of ranks"};
}

}  // namespace

Reshape::Reshape(const RankSet& order, Factors factors) : layout_{{}, 0, nullptr} {
  require_product(order, factors);
  if (auto pieces = refined(order.modes(), factors)) {
    layout_ = Layout{std::move(*pieces), order.start(), order.table()};
  } else {
    has_table_ = true;
    layout_ = Layout::row_major(factors, 0, table_of(order));
  }
  for (const auto& factor : factors) {
    pieces_.emplace_back(factor.first, std::vector<std::size_t>{});
    for (std::size_t d = 0; d < layout_.dimensions().size(); ++d)
      if (layout_.dimensions()[d].name == factor.first) pieces_.back().second.push_back(d);
  }
}

std::vector<std::size_t> Reshape::pieces_of(std::span<const std::string_view> factors) const {
  std::vector<std::size_t> result;
  for (const std::string_view name : factors) {
    const auto found = std::ranges::find(pieces_, name, [](const auto& p) { return p.first; });
    if (found == pieces_.end())
      throw UsageError{fmt::format("unknown factor '{}'", name), "use the factors of the reshape"};
    result.insert(result.end(), found->second.begin(), found->second.end());
  }
  return result;
}

GroupFamily Reshape::family(std::string name, std::span<const std::string_view> members,
                            std::span<const std::string_view> listing) const {
  return GroupFamily::of(std::move(name), layout_, pieces_of(members), pieces_of(listing));
}

}  // namespace rankmesh
