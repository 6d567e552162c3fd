#include "rankmesh/layout/rank_table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {

std::shared_ptr<const RankTable> RankTable::make(std::vector<std::int64_t> ranks) {
  auto table = std::make_shared<RankTable>();
  table->ranks_ = std::move(ranks);
  table->positions_.reserve(table->ranks_.size());
  for (std::size_t i = 0; i < table->ranks_.size(); ++i) {
    if (table->ranks_[i] < 0)
      throw SpecError{fmt::format("rank {} is negative", table->ranks_[i]), "ranks count from 0"};
    table->positions_.emplace_back(table->ranks_[i], static_cast<std::int64_t>(i));
  }
  std::ranges::sort(table->positions_);
  const auto twice = std::ranges::adjacent_find(table->positions_, {}, [](const auto& p) { return p.first; });
  if (twice != table->positions_.end())
    throw SpecError{fmt::format("rank {} stands twice in a list of ranks", twice->first),
                    "list each rank once"};
  return table;
}

Hash128 RankTable::hash() const {
  std::call_once(hashed_, [&] {
    std::string text;
    for (const std::int64_t rank : ranks_) text += fmt::format("{},", rank);
    hash_ = hash_bytes(text);
  });
  return hash_;
}

std::optional<std::int64_t> RankTable::position_of(std::int64_t rank) const {
  const auto found = std::ranges::lower_bound(positions_, rank, {}, [](const auto& p) { return p.first; });
  if (found == positions_.end() || found->first != rank) return std::nullopt;
  return found->second;
}

}  // namespace rankmesh
