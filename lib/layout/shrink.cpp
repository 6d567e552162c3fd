// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/shrink.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/parts.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

using detail::Parts;

void check_size(const MeshPlan& plan, std::int64_t spares) {
  constexpr std::int64_t most_ranks = std::int64_t{1} << 20;  // as of arrange()
  if (spares < 0 || spares > most_ranks)
    throw UsageError{
        fmt::format("the number of spare ranks must be from 0 to {}, got {}", most_ranks, spares),
        "give the number of ranks that wait for a loss"};
  if (plan.world_size() > most_ranks)
    throw UsageError{fmt::format("a mesh of {} ranks is too large to be shrunk; the limit is {}",
                                 plan.world_size(), most_ranks),
                     "shrink a smaller mesh with the same dimensions"};
}

std::vector<bool> lost_ranks(std::int64_t ranks, std::span<const Rank> lost) {
  std::vector<bool> is_lost(static_cast<std::size_t>(ranks));
  for (const Rank rank : lost) {
    if (rank.value() < 0 || rank.value() >= ranks)
      throw UsageError{fmt::format("rank {} cannot be lost: the mesh has {}", rank.value(),
                                   detail::count_text(ranks, "rank")),
                       fmt::format("use a rank from 0 to {}", ranks - 1)};
    if (is_lost[rank.to_size()])
      throw UsageError{fmt::format("rank {} is lost twice", rank.value()), "list each rank once"};
    is_lost[rank.to_size()] = true;
  }
  return is_lost;
}

// The coordinates along the dimensions of a view that count replicas.
std::vector<std::int64_t> replica_of(const Layout& view, Rank rank) {
  std::vector<std::int64_t> replica;
  for (std::size_t d = 0; d < view.dimensions().size(); ++d)
    if (detail::counts_replicas(view.dimensions()[d].name))
      replica.push_back(view.coordinate(rank, d)->value());
  return replica;
}

// A replica of one view may be in several replicas of another view, which are left out too.
std::vector<bool> without_hit_replicas(const MeshPlan& plan, const std::vector<bool>& is_lost) {
  std::vector<bool> is_out = is_lost;
  std::vector<std::set<std::vector<std::int64_t>>> hit(plan.views().size());
  for (bool changes = true; changes;) {
    changes = false;
    for (std::size_t v = 0; v < plan.views().size(); ++v) {
      const Layout& view = plan.views()[v];
      for (std::int64_t r = 0; r < plan.world_size(); ++r)
        if (is_out[static_cast<std::size_t>(r)]) hit[v].insert(replica_of(view, r));
      for (std::int64_t r = 0; r < plan.world_size(); ++r)
        if (!is_out[static_cast<std::size_t>(r)] && hit[v].contains(replica_of(view, r)))
          is_out[static_cast<std::size_t>(r)] = changes = true;
    }
  }
  return is_out;
}

std::vector<std::int64_t> copies_of(const Parts& parts, const std::vector<bool>& is_out) {
  std::vector<std::int64_t> copies(parts.count);
  for (std::size_t r = 0; r < parts.part.size(); ++r)
    if (!is_out[r]) ++copies[parts.part[r]];
  return copies;
}

void describe_loss(const MeshPlan& plan, const Parts& parts, const std::vector<bool>& is_lost,
                   Shrunk& result) {
  const std::vector<std::int64_t> left = copies_of(parts, is_lost);
  std::set<std::size_t> fatal;
  for (std::size_t r = 0; r < parts.part.size(); ++r) {
    if (!is_lost[r]) continue;
    const Rank rank{static_cast<std::int64_t>(r)};
    const std::string part = detail::part_text(plan, rank);
    result.lost.push_back({rank.value(), plan.describe(rank), part, left[parts.part[r]]});
    if (left[parts.part[r]] == 0 && fatal.insert(parts.part[r]).second)
      result.fatal.push_back(part);
  }
}

// The spare ranks that live take the places of the lost ones, in their order.
void use_spares(const MeshPlan& plan, const std::vector<bool>& is_lost, Shrunk& result) {
  std::size_t places = 0;
  for (std::size_t r = 0; r < is_lost.size(); ++r) {
    const auto rank = static_cast<std::int64_t>(r);
    result.new_rank.push_back(is_lost[r] || rank >= plan.world_size() ? -1 : rank);
    if (is_lost[r] || rank < plan.world_size()) continue;
    if (places < result.lost.size())
      result.new_rank.back() = result.lost[places++].rank;
    else
      result.idle.push_back(rank);
  }
  if (places < result.lost.size())
    throw UsageError{
        fmt::format("{} cannot replace {}",
                    detail::count_text(static_cast<std::int64_t>(places), "spare rank"),
                    detail::count_text(std::ssize(result.lost), "lost rank")),
        "add spare ranks, or use the policy drop-replica"};
  result.plan = plan;
  result.copies_after = result.copies_before;
}

// If a mesh permutes its ranks, numbers its survivors in the order of their old ranks. `new_rank`
// has positions in the new mesh before, and ranks afterwards. Returns the order of the new mesh.
std::shared_ptr<const RankTable> keep_order(std::vector<std::int64_t>& new_rank,
                                            std::int64_t world_size) {
  std::vector<std::int64_t> rank_at(static_cast<std::size_t>(world_size));
  std::int64_t next = 0;
  for (std::int64_t& place : new_rank)
    if (place >= 0) place = rank_at[static_cast<std::size_t>(place)] = next++;
  return std::ranges::is_sorted(rank_at) ? nullptr : RankTable::make(std::move(rank_at));
}

// The survivors of each part take the places of this part in the smaller mesh, in their order.
void use_survivors(const MeshPlan& plan, const Parts& parts, const std::vector<bool>& is_lost,
                   ShrinkPolicy policy, Shrunk& result) {
  const bool drops = policy == ShrinkPolicy::drop_replica;
  const std::vector<bool> is_out = drops ? without_hit_replicas(plan, is_lost) : is_lost;
  const std::vector<std::int64_t> left = copies_of(parts, is_out);
  result.copies_after = *std::ranges::min_element(left);
  result.new_rank.assign(is_lost.size(), -1);
  if (result.copies_after > 0) {
    const auto order = detail::order_of(plan);
    const std::int64_t world = plan.world_size() / result.copies_before * result.copies_after;
    const std::vector<Layout> views =
        detail::views_with_copies(plan, parts, result.copies_before, result.copies_after);
    const Parts after = detail::parts_of(MeshPlan{world, views, {}});
    std::vector<std::vector<std::int64_t>> places(parts.count);
    for (std::size_t r = after.part.size(); r-- > 0;)
      places[after.part[r]].push_back(static_cast<std::int64_t>(r));
    for (std::size_t p = 0; p < is_out.size(); ++p) {
      const auto position = static_cast<std::int64_t>(p);
      const auto r = static_cast<std::size_t>(order ? order->rank_at(position) : position);
      std::vector<std::int64_t>& of_part = places[parts.part[r]];
      if (is_out[r] || of_part.empty()) continue;
      result.new_rank[r] = of_part.back();
      of_part.pop_back();
    }
    const auto new_order = order ? keep_order(result.new_rank, world) : nullptr;
    result.plan =
        detail::plan_with_copies(plan, world, views, new_order, drops ? &result.new_rank : nullptr);
  }
  for (std::size_t r = 0; r < is_lost.size(); ++r)
    if (!is_lost[r] && result.new_rank[r] < 0) result.idle.push_back(static_cast<std::int64_t>(r));
}

}  // namespace

std::string_view to_string(ShrinkPolicy policy) {
  return detail::name_in({"drop-replica", "spare", "compact"}, policy);
}

Shrunk shrink(const MeshPlan& plan, std::span<const Rank> lost, ShrinkPolicy policy,
              std::int64_t spares) {
  const bool takes_spares = policy == ShrinkPolicy::spare;
  check_size(plan, spares);
  const std::vector<bool> is_lost =
      lost_ranks(plan.world_size() + (takes_spares ? spares : 0), lost);
  const Parts parts = detail::parts_of(plan);
  const std::vector<std::int64_t> before = copies_of(parts, std::vector<bool>(is_lost.size()));
  if (std::ranges::min(before) != std::ranges::max(before))
    throw UsageError{"the parts of this mesh have different numbers of copies",
                     "describe the smaller mesh yourself"};
  Shrunk result;
  result.copies_before = before.front();
  describe_loss(plan, parts, is_lost, result);
  if (takes_spares)
    use_spares(plan, is_lost, result);
  else
    use_survivors(plan, parts, is_lost, policy, result);
  return result;
}

}  // namespace rankmesh
