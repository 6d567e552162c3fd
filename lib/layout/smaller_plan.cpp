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

}  // namespace

std::shared_ptr<const RankTable> detail::order_of(const MeshPlan& plan) {
  if (plan.views().empty()) return nullptr;
  const auto& order = plan.views().front().ranks().table();
  for (const Layout& view : plan.views())
    if (const auto& other = view.ranks().table();
        other != order && (!other || !order || other->ranks() != order->ranks()))
      throw UsageError{"the views of the mesh order their ranks differently",
                       "describe the smaller mesh yourself, or use the policy spare"};
  return order;
}

std::vector<Layout> detail::views_with_copies(const MeshPlan& plan, std::int64_t before,
                                              std::int64_t after,
                                              const std::shared_ptr<const RankTable>& order) {
  std::vector<Layout> views;
  for (const Layout& view : plan.views()) views.push_back(smaller(view, before, after, order));
  return views;
}

MeshPlan detail::plan_with_copies(const MeshPlan& plan, std::int64_t before, std::int64_t after,
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

}  // namespace rankmesh
