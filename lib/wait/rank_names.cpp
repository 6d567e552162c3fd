// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/wait/rank_names.hpp"

#include <utility>

#include <fmt/format.h>

namespace rankmesh {

RankNames RankNames::among(RankSet ranks) const {
  RankNames names{plan_};
  names.ranks_ = std::move(ranks);
  return names;
}

std::string RankNames::operator()(Rank rank) const {
  const Rank in_mesh = ranks_ ? ranks_->at(rank.value()) : rank;
  return fmt::format("{} ({})", in_mesh.value(), plan_ ? plan_->describe(in_mesh) : "no mesh");
}

}  // namespace rankmesh
