// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/wait/rank_names.hpp"

#include <fmt/format.h>

namespace rankmesh {

RankNames RankNames::among(RankSet ranks) const {
  RankNames names{plan_};
  names.ranks_ = std::move(ranks);
  return names;
}

Rank RankNames::in_mesh(Rank rank) const { return ranks_ ? ranks_->at(rank.value()) : rank; }

std::string RankNames::operator()(Rank rank) const {
  const Rank number = in_mesh(rank);
  const std::string place = !plan_                                  ? "no mesh"
                            : number.value() >= plan_->world_size() ? "spare"
                                                                    : plan_->describe(number);
  return fmt::format("{} ({})", number.value(), place);
}

}  // namespace rankmesh
