// SPDX-License-Identifier: BSD-3-Clause
// A mesh with fewer replicas.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "detail/parts.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

[[noreturn]] void refuse_family(const std::string& name) {
  throw UsageError{
      fmt::format("the groups of '{}' do not follow from the dimensions of a view", name),
      "describe the smaller mesh yourself, or use the policy spare"};
}

using Sizes = std::vector<std::int64_t>;

[[noreturn]] void refuse_copies(std::int64_t before, std::int64_t after) {
  throw UsageError{
      fmt::format("{} of {} copies cannot remain in a view of the mesh", after, before),
      "use the policy spare, or lose whole replicas of each view"};
}

// Calls `take(sizes)` for all choices of sizes up to the `old` ones, the largest first, with a
// product, until it returns false.
template <class Take>
bool for_each_factorisation(const Sizes& old, std::int64_t product, Sizes& sizes, Take&& take) {
  if (sizes.size() == old.size()) return product != 1 || take(sizes);
  for (std::int64_t size = std::min(old[sizes.size()], product); size > 0; --size) {
    if (product % size != 0) continue;
    sizes.push_back(size);
    const bool goes_on = for_each_factorisation(old, product / size, sizes, take);
    sizes.pop_back();
    if (!goes_on) return false;
  }
  return true;
}

// The sizes of the dimensions of a view that count replicas, in the smaller mesh. The first choices
// change one dimension only.
std::vector<Sizes> smaller_sizes(const Layout& view, std::int64_t before, std::int64_t after) {
  constexpr std::size_t most_choices = 16;  // bounds the work for meshes of many dimensions
  Sizes old;
  std::int64_t product = 1;
  for (const Layout::Dimension& d : view.dimensions())
    if (detail::counts_replicas(d.name)) product *= old.emplace_back(d.size);
  if (before == after) return {old};
  std::vector<Sizes> choices;
  if (product * after % before != 0) return choices;
  for (std::size_t d = 0; d < old.size(); ++d)
    if (old[d] * after % before == 0) {
      choices.push_back(old);
      choices.back()[d] = old[d] * after / before;
    }
  Sizes sizes;
  for_each_factorisation(old, product * after / before, sizes, [&](const Sizes& choice) {
    if (std::ranges::find(choices, choice) == choices.end()) choices.push_back(choice);
    return choices.size() < most_choices;
  });
  return choices;
}

// RankMap reverses the ranks by negative strides, without a table.
bool is_reversed(const Layout& view) {
  return !view.ranks().table() && view.size() > 1 && view.offset() == view.size() - 1 &&
         std::ranges::all_of(view.dimensions(),
                             [](const auto& d) { return d.size == 1 || d.stride < 0; });
}

// Returns a view with other sizes of the dimensions that count replicas. The positions of the old
// view must be numbered without gaps. The dimensions keep the order of their strides.
Layout smaller(const Layout& old_view, const Sizes& sizes) {
  const bool reversed = is_reversed(old_view);
  std::vector<Layout::Dimension> upright = old_view.dimensions();
  if (reversed)
    for (Layout::Dimension& d : upright) d.stride = -d.stride;
  const Layout view{std::move(upright), reversed ? 0 : old_view.offset(), old_view.ranks().table()};
  std::vector<Layout::Dimension> dimensions = view.dimensions();
  auto size = sizes.begin();
  for (Layout::Dimension& d : dimensions)
    if (detail::counts_replicas(d.name)) d.size = *size++;
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
  return Layout{std::move(dimensions), 0, nullptr};
}

// Returns whether the views have the same parts as the old mesh, each `after` instead of `before`
// times. `old_keys` are sorted.
bool has_parts(const std::vector<Layout>& views, const std::vector<std::uint64_t>& old_keys,
               std::int64_t before, std::int64_t after) {
  const std::int64_t world = std::ssize(old_keys) / before * after;
  std::vector<std::uint64_t> keys = detail::parts_of(MeshPlan{world, views, {}}).key;
  std::ranges::sort(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::int64_t part = static_cast<std::int64_t>(i) / after;
    if (keys[i] != old_keys[static_cast<std::size_t>(part * before)]) return false;
  }
  return true;
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

}  // namespace

std::shared_ptr<const RankTable> detail::order_of(const MeshPlan& plan) {
  if (plan.views().empty()) return nullptr;
  const auto& order = plan.views().front().ranks().table();
  const bool reversed = is_reversed(plan.views().front());
  for (const Layout& view : plan.views())
    if (const auto& other = view.ranks().table();
        is_reversed(view) != reversed ||
        (other != order && (!other || !order || other->ranks() != order->ranks())))
      throw UsageError{"the views of the mesh order their ranks differently",
                       "describe the smaller mesh yourself, or use the policy spare"};
  if (!reversed) return order;
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(plan.world_size()));
  std::iota(ranks.rbegin(), ranks.rend(), std::int64_t{0});
  return RankTable::make(std::move(ranks));
}

// Views share their dimensions for replicas with dimensions of other views, so the choice for one
// view depends on the others.
std::vector<Layout> detail::views_with_copies(const MeshPlan& plan, const Parts& parts,
                                              std::int64_t before, std::int64_t after) {
  // Each try takes O(ranks) time.
  const std::int64_t most_tries = std::clamp<std::int64_t>((1 << 22) / plan.world_size(), 4, 256);
  std::vector<std::vector<Sizes>> choices;
  for (const Layout& view : plan.views()) {
    choices.push_back(smaller_sizes(view, before, after));
    if (choices.back().empty()) refuse_copies(before, after);
  }
  std::vector<std::uint64_t> old_keys = parts.key;
  std::ranges::sort(old_keys);
  std::vector<std::size_t> chosen(choices.size());
  for (std::int64_t tried = 0; tried < most_tries; ++tried) {
    std::vector<Layout> views;
    for (std::size_t v = 0; v < choices.size(); ++v)
      views.push_back(smaller(plan.views()[v], choices[v][chosen[v]]));
    if (has_parts(views, old_keys, before, after)) return views;
    std::size_t v = choices.size();
    while (v > 0 && ++chosen[v - 1] == choices[v - 1].size()) chosen[--v] = 0;
    if (v == 0) break;
  }
  refuse_copies(before, after);
}

MeshPlan detail::plan_with_copies(const MeshPlan& plan, std::int64_t world,
                                  std::vector<Layout> views,
                                  const std::shared_ptr<const RankTable>& order,
                                  const std::vector<std::int64_t>* new_rank) {
  for (Layout& view : views) view = Layout{view.dimensions(), 0, order};
  std::vector<GroupFamily> families;
  for (const GroupFamily& family : plan.families()) {
    std::optional<GroupFamily> found;
    for (std::size_t v = 0; v < views.size() && !found && !family.dimensions().empty(); ++v)
      found = family_in(family, plan.views()[v], views[v]);
    if (!found && new_rank != nullptr) found = remaining_groups(family, *new_rank);
    if (!found) refuse_family(family.name());
    families.push_back(*std::move(found));
  }
  MeshPlan result{world, std::move(views), std::move(families)};
  for (std::size_t f = 0; f < plan.families().size(); ++f)
    result.set_options(plan.families()[f].name(), plan.options(f));
  return result;
}

}  // namespace rankmesh
