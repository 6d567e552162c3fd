// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/place/shrink.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/parts.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

using detail::Parts;

std::vector<bool> lost_ranks(const MeshPlan& plan, std::span<const Rank> lost) {
  std::vector<bool> is_lost(static_cast<std::size_t>(plan.world_size()));
  for (const Rank rank : lost) {
    if (rank.value() < 0 || rank.value() >= plan.world_size())
      throw UsageError{fmt::format("rank {} cannot be lost: the mesh has {}", rank.value(),
                                   detail::count_text(plan.world_size(), "rank")),
                       fmt::format("use a rank from 0 to {}", plan.world_size() - 1)};
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
  for (std::size_t r = 0; r < is_lost.size(); ++r) {
    if (!is_lost[r]) continue;
    const Rank rank{static_cast<std::int64_t>(r)};
    const std::string part = detail::part_text(plan, rank);
    result.lost.push_back({rank.value(), plan.describe(rank), part, left[parts.part[r]]});
    if (left[parts.part[r]] == 0 && fatal.insert(parts.part[r]).second)
      result.fatal.push_back(part);
  }
}

void use_spares(const MeshPlan& plan, std::int64_t spares, Shrunk& result) {
  const auto lost = static_cast<std::int64_t>(result.lost.size());
  if (spares < lost)
    throw UsageError{fmt::format("{} cannot replace {}", detail::count_text(spares, "spare rank"),
                                 detail::count_text(lost, "lost rank")),
                     "add spare ranks, or use the policy drop-replica"};
  for (std::int64_t r = 0; r < plan.world_size() + spares; ++r) result.new_rank.push_back(r);
  for (std::int64_t s = 0; s < spares; ++s) {
    const std::int64_t spare = plan.world_size() + s;
    std::int64_t& place = result.new_rank[static_cast<std::size_t>(spare)];
    place = s < lost ? result.lost[static_cast<std::size_t>(s)].rank : -1;
    if (s >= lost) result.idle.push_back(spare);
  }
  for (const LostRank& one : result.lost) result.new_rank[static_cast<std::size_t>(one.rank)] = -1;
  result.plan = plan;
  result.copies_after = result.copies_before;
}

[[noreturn]] void refuse_family(const std::string& name) {
  throw UsageError{
      fmt::format("the groups of '{}' do not follow from the dimensions of a view", name),
      "describe the smaller mesh yourself, or use the policy spare"};
}

// The positions of the view must be numbered without gaps. The dimensions keep the order of their
// strides.
Layout smaller(const Layout& view, std::int64_t before, std::int64_t after,
               const std::shared_ptr<const RankTable>& order) {
  std::vector<Layout::Dimension> dimensions = view.dimensions();
  bool is_divided = before == after;
  for (Layout::Dimension& d : dimensions)
    if (!is_divided && detail::counts_replicas(d.name) && d.size * after % before == 0) {
      d.size = d.size * after / before;
      is_divided = true;
    }
  if (!is_divided)
    throw UsageError{
        fmt::format("{} of {} copies cannot remain in a view of the mesh", after, before),
        "use the policy spare, or lose whole replicas of each view"};
  std::vector<std::size_t> by_stride(dimensions.size());
  std::iota(by_stride.begin(), by_stride.end(), std::size_t{0});
  std::ranges::stable_sort(by_stride, {}, [&](std::size_t d) {
    return std::pair{dimensions[d].stride, view.dimensions()[d].size};
  });
  std::int64_t old_stride = 1;
  std::int64_t stride = 1;
  bool is_dense = view.offset() == 0;
  for (const std::size_t d : by_stride) {
    const Layout::Dimension& old = view.dimensions()[d];
    is_dense = is_dense && (old.size == 1 || old.stride == old_stride);
    old_stride *= old.size;
    dimensions[d].stride = stride;
    stride *= dimensions[d].size;
  }
  if (!is_dense)
    throw UsageError{"a view of the mesh numbers its ranks with gaps, so it cannot be shrunk",
                     "describe the smaller mesh yourself, or use the policy spare"};
  return Layout{std::move(dimensions), 0, order};
}

// The same dimensions of another view.
std::optional<GroupFamily> family_in(const GroupFamily& family, const Layout& old_view,
                                     const Layout& new_view) {
  std::vector<std::size_t> members;
  for (const std::string& name : family.dimensions()) {
    const auto found = old_view.find(name);
    if (!found) return std::nullopt;
    members.push_back(*found);
  }
  std::vector<std::size_t> listing;
  for (std::size_t d = 0; d < old_view.dimensions().size(); ++d)
    if (std::ranges::find(members, d) == members.end()) listing.push_back(d);
  const auto is_same = [&](const GroupFamily& made) {
    return made.canonical() == family.canonical();
  };
  if (is_same(GroupFamily::of(family.name(), old_view, members, listing)))
    return GroupFamily::of(family.name(), new_view, members, listing);
  if (is_same(GroupFamily::of(family.name(), old_view, members)))
    return GroupFamily::of(family.name(), new_view, members);
  if (members.size() == 1 && is_same(GroupFamily::ring(family.name(), old_view, members[0])))
    return GroupFamily::ring(family.name(), new_view, members[0]);
  std::ranges::reverse(listing);
  if (is_same(GroupFamily::of(family.name(), old_view, members, listing)))
    return GroupFamily::of(family.name(), new_view, members, listing);
  return std::nullopt;
}

GroupFamily remaining_groups(const GroupFamily& family, const std::vector<std::int64_t>& new_rank) {
  std::vector<RankSet> groups;
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    std::vector<Rank> left;
    family.group(g).for_each([&](Rank rank) {
      if (new_rank[rank.to_size()] >= 0) left.emplace_back(new_rank[rank.to_size()]);
    });
    if (!left.empty()) groups.push_back(RankSet::of(left));
  }
  return GroupFamily::of(family.name(), std::move(groups));
}

// Returns the rank at each position of a mesh that permutes its ranks, or null if position p is
// rank p.
std::shared_ptr<const RankTable> order_of(const MeshPlan& plan) {
  if (plan.views().empty()) return nullptr;
  const auto& order = plan.views().front().ranks().table();
  for (const Layout& view : plan.views())
    if (const auto& other = view.ranks().table();
        other != order && (!other || !order || other->ranks() != order->ranks()))
      throw UsageError{"the views of the mesh order their ranks differently",
                       "describe the smaller mesh yourself, or use the policy spare"};
  return order;
}

// Returns the views of the mesh whose dimensions for replicas have `after` / `before` of their
// size. `order` has the rank at each position of this mesh; null if position p is rank p.
std::vector<Layout> views_with_copies(const MeshPlan& plan, std::int64_t before, std::int64_t after,
                                      const std::shared_ptr<const RankTable>& order) {
  std::vector<Layout> views;
  for (const Layout& view : plan.views()) views.push_back(smaller(view, before, after, order));
  return views;
}

// Returns that mesh. `new_rank` has the new rank of each old rank, or -1, for families that are
// given as lists; it is null if there must be none.
MeshPlan plan_with_copies(const MeshPlan& plan, std::int64_t before, std::int64_t after,
                          const std::shared_ptr<const RankTable>& order,
                          const std::vector<std::int64_t>* new_rank) {
  std::vector<Layout> views = views_with_copies(plan, before, after, order);
  std::vector<GroupFamily> families;
  for (const GroupFamily& family : plan.families()) {
    std::optional<GroupFamily> found;
    for (std::size_t v = 0; v < views.size() && !found && !family.dimensions().empty(); ++v)
      found = family_in(family, plan.views()[v], views[v]);
    if (!found && new_rank != nullptr) found = remaining_groups(family, *new_rank);
    if (!found) refuse_family(family.name());
    families.push_back(*std::move(found));
  }
  const std::int64_t world = plan.world_size() / before * after;
  MeshPlan result{world, std::move(views), std::move(families)};
  for (std::size_t f = 0; f < plan.families().size(); ++f)
    result.set_options(plan.families()[f].name(), plan.options(f));
  return result;
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
    const auto order = order_of(plan);
    const std::int64_t world = plan.world_size() / result.copies_before * result.copies_after;
    const MeshPlan views{
        world, views_with_copies(plan, result.copies_before, result.copies_after, nullptr), {}};
    const Parts after = detail::parts_of(views);
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
    result.plan = plan_with_copies(plan, result.copies_before, result.copies_after, new_order,
                                   drops ? &result.new_rank : nullptr);
  }
  for (std::size_t r = 0; r < is_lost.size(); ++r)
    if (!is_lost[r] && result.new_rank[r] < 0) result.idle.push_back(static_cast<std::int64_t>(r));
}

}  // namespace

std::string_view to_string(ShrinkPolicy policy) {
  constexpr std::string_view names[] = {"drop-replica", "spare", "compact"};
  return names[static_cast<std::size_t>(policy)];
}

Shrunk shrink(const MeshPlan& plan, std::span<const Rank> lost, ShrinkPolicy policy,
              std::int64_t spares) {
  const std::vector<bool> is_lost = lost_ranks(plan, lost);
  const Parts parts = detail::parts_of(plan);
  const std::vector<std::int64_t> before = copies_of(parts, std::vector<bool>(is_lost.size()));
  if (std::ranges::min(before) != std::ranges::max(before))
    throw UsageError{"the parts of this mesh have different numbers of copies",
                     "describe the smaller mesh yourself"};
  Shrunk result;
  result.copies_before = before.front();
  describe_loss(plan, parts, is_lost, result);
  if (policy == ShrinkPolicy::spare)
    use_spares(plan, spares, result);
  else
    use_survivors(plan, parts, is_lost, policy, result);
  return result;
}

}  // namespace rankmesh
