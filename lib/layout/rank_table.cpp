// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/rank_table.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {

namespace {

[[noreturn]] void refuse_repeated(std::int64_t rank) {
  throw SpecError{fmt::format("duplicate rank {} in a list of ranks", rank), "list each rank once"};
}

}  // namespace

std::shared_ptr<const RankTable> RankTable::make(std::vector<std::int64_t> ranks) {
  auto table = std::make_shared<RankTable>();
  for (const std::int64_t rank : ranks) {
    if (rank < 0)
      throw SpecError{fmt::format("rank {} is negative", rank), "ranks are numbered from 0"};
    table->highest_ = std::max(table->highest_, rank);
  }
  const auto size = std::ssize(ranks);
  if (size <= INT32_MAX && table->highest_ / 2 < size) {
    table->dense_.assign(static_cast<std::size_t>(table->highest_ + 1), -1);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      std::int32_t& position = table->dense_[static_cast<std::size_t>(ranks[i])];
      if (position >= 0) refuse_repeated(ranks[i]);
      position = static_cast<std::int32_t>(i);
    }
  } else {
    table->positions_.reserve(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i)
      table->positions_.emplace_back(ranks[i], static_cast<std::int64_t>(i));
    std::ranges::sort(table->positions_);
    const auto twice =
        std::ranges::adjacent_find(table->positions_, {}, [](const auto& p) { return p.first; });
    if (twice != table->positions_.end()) refuse_repeated(twice->first);
  }
  table->ranks_ = std::move(ranks);
  return table;
}

Hash128 RankTable::hash() const {
  std::call_once(hashed_, [&] {
    char text[4096];
    std::size_t at = 0;
    hash_ = hash_pieces([&] {
      char* end = text;
      for (; at < ranks_.size() && end + 32 < text + sizeof text; ++at) {
        end = std::to_chars(end, text + sizeof text, ranks_[at]).ptr;
        *end++ = ',';
      }
      return std::string_view{text, static_cast<std::size_t>(end - text)};
    });
  });
  return hash_;
}

std::optional<std::int64_t> RankTable::position_of(std::int64_t rank) const {
  if (rank < 0 || rank > highest_) return std::nullopt;
  if (!dense_.empty()) {
    const std::int32_t position = dense_[static_cast<std::size_t>(rank)];
    if (position < 0) return std::nullopt;
    return position;
  }
  const auto found =
      std::ranges::lower_bound(positions_, rank, {}, [](const auto& p) { return p.first; });
  if (found == positions_.end() || found->first != rank) return std::nullopt;
  return found->second;
}

}  // namespace rankmesh
