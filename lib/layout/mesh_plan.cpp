#include "rankmesh/layout/mesh_plan.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

std::vector<std::string> names_of(const std::vector<GroupFamily>& families) {
  std::vector<std::string> names;
  for (const GroupFamily& family : families) names.push_back(family.name());
  return names;
}

}  // namespace

std::vector<std::string> split_product(std::string_view product) {
  std::vector<std::string> names{""};
  for (const char c : product) {
    if (c == '*')
      names.emplace_back();
    else if (c != ' ' && c != '\t')
      names.back() += c;
  }
  return names;
}

MeshPlan::MeshPlan(std::int64_t world_size, std::vector<Layout> views, std::vector<GroupFamily> families)
    : world_size_{world_size}, views_{std::move(views)}, families_{std::move(families)} {
  auto names = names_of(families_);
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    throw SpecError{fmt::format("the name '{}' stands twice", *twice), "give each name once"};
  const auto check = [&](Rank highest) {
    if (highest.value() >= world_size_)
      throw SpecError{
          fmt::format("the mesh reaches to rank {}, the world has {} ranks", highest.value(), world_size_),
          "use a smaller mesh or a larger world"};
  };
  for (const Layout& view : views_) check(view.ranks().highest());
  for (const GroupFamily& family : families_) check(family.highest());
}

const GroupFamily& MeshPlan::groups(std::string_view name) const { return families_[index_of(name)]; }

std::size_t MeshPlan::index_of(std::string_view name) const {
  const auto found = std::ranges::find(families_, name, &GroupFamily::name);
  if (found == families_.end())
    throw UnknownName{fmt::format("the mesh has no name '{:.40}'", name),
                      fmt::format("its names are: {}", fmt::join(names_of(families_), ", "))};
  return static_cast<std::size_t>(found - families_.begin());
}

GroupFamily MeshPlan::groups_of_product(std::string_view product) const {
  const auto factors = split_product(product);
  if (factors.size() == 1) return groups(factors.front());
  for (const std::string& factor : factors)
    if (std::ranges::none_of(views_, [&](const Layout& view) { return view.find(factor).has_value(); }))
      throw UnknownName{
          fmt::format("'{:.40}' in the product '{:.80}' is no dimension of the mesh", factor, product),
          fmt::format("the mesh's names are: {}", fmt::join(names_of(families_), ", "))};
  for (const Layout& view : views_) {
    std::vector<std::size_t> members;
    for (const std::string& factor : factors)
      if (const auto d = view.find(factor)) members.push_back(*d);
    if (members.size() != factors.size()) continue;
    std::ranges::sort(members);
    if (std::ranges::adjacent_find(members) != members.end())
      throw UnknownName{fmt::format("the product '{:.80}' names a dimension twice", product),
                        "name each once"};
    return GroupFamily::of(std::string{product}, view, members);
  }
  throw UnknownName{fmt::format("no view has all dimensions of the product '{:.80}'", product),
                    "a product takes dimensions of one view"};
}

std::vector<std::pair<std::string, Coordinate>> MeshPlan::coordinates(Rank rank) const {
  std::vector<std::pair<std::string, Coordinate>> result;
  for (const Layout& view : views_) {
    const auto coordinates = view.coordinates(rank);
    if (!coordinates) continue;
    for (std::size_t d = 0; d < coordinates->size(); ++d) {
      const std::string& name = view.dimensions()[d].name;
      if (std::ranges::find(result, name, [](const auto& c) { return c.first; }) == result.end())
        result.emplace_back(name, (*coordinates)[d]);
    }
  }
  return result;
}

Coordinate MeshPlan::coordinate(Rank rank, std::string_view dimension) const {
  bool known = false;
  for (const Layout& view : views_) {
    const auto d = view.find(dimension);
    if (!d) continue;
    known = true;
    if (const auto coordinate = view.coordinate(rank, *d)) return *coordinate;
  }
  if (known)
    throw NotMember{
        fmt::format("rank {} is outside the part of the world that has '{}'", rank.value(), dimension)};
  throw UnknownName{fmt::format("no view of the mesh has a dimension '{:.40}'", dimension),
                    fmt::format("the mesh's names are: {}", fmt::join(names_of(families_), ", "))};
}

std::string MeshPlan::describe(Rank rank) const {
  std::string text;
  for (const auto& [name, coordinate] : coordinates(rank)) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}={}", name, coordinate.value());
  }
  return text.empty() ? "outside the mesh" : text;
}

std::vector<Membership> MeshPlan::memberships(Rank rank) const {
  std::vector<Membership> result;
  for (std::size_t f = 0; f < families_.size(); ++f)
    for (const GroupIndex& place : families_[f].find_all(rank))
      result.push_back({f, place, families_[f].group(place.group)});
  return result;
}

std::vector<CommunicatorUse> MeshPlan::communicators(Rank rank) const {
  std::vector<CommunicatorUse> result;
  for (Membership& membership : memberships(rank)) {
    if (membership.ranks.size() < 2) continue;
    if (families_[membership.family].coverage(world_size_) == Coverage::overlapping) continue;
    const auto same = std::ranges::find(result, membership.ranks, &CommunicatorUse::ranks);
    if (same != result.end())
      same->families.push_back(membership.family);
    else
      result.push_back({std::move(membership.ranks), {membership.family}});
  }
  return result;
}

bool MeshPlan::needs_creation(std::size_t family) const {
  const GroupFamily& groups = families_[family];
  if (groups.group_size() < 2 || groups.coverage(world_size_) == Coverage::overlapping) return false;
  std::vector<const GroupFamily*> earlier;
  for (std::size_t f = 0; f < family; ++f) {
    if (families_[f].coverage(world_size_) == Coverage::overlapping) continue;
    if (groups.is_same_partition(families_[f], world_size_)) return false;
    earlier.push_back(&families_[f]);
  }
  for (std::int64_t g = 0; g < groups.group_count(); ++g) {
    const RankSet ranks = groups.group(g);
    if (ranks.size() < 2) continue;
    if (std::ranges::none_of(earlier, [&](const GroupFamily* e) { return e->find_group(ranks).has_value(); }))
      return true;  // for plain meshes already the first group answers
  }
  return false;
}

RankInGroup MeshPlan::leader(std::size_t family, std::int64_t group) const {
  const GroupFamily& groups = families_[family];
  const RankSet ranks = groups.group(group);
  std::int64_t sum = group;
  for (const Layout& view : views_) {
    const auto in_view = [&](const std::string& name) { return view.find(name).has_value(); };
    if (groups.dimensions().empty() || !std::ranges::all_of(groups.dimensions(), in_view)) continue;
    const auto coordinates = view.coordinates(ranks.front());
    if (!coordinates) continue;
    sum = 0;
    for (std::size_t d = 0; d < coordinates->size(); ++d)
      if (std::ranges::find(groups.dimensions(), view.dimensions()[d].name) == groups.dimensions().end())
        sum += (*coordinates)[d].value();
    break;
  }
  return (sum + static_cast<std::int64_t>(family)) % ranks.size();
}

std::string MeshPlan::canonical_text() const {
  std::string text = fmt::format("rankmesh.plan/1\nworld {}\n", world_size_);
  for (const Layout& view : views_) {
    text += fmt::format("view offset {}", view.offset());
    for (const auto& d : view.dimensions()) text += fmt::format(" {}:{}:{}", d.name, d.size, d.stride);
    if (view.ranks().table()) text += fmt::format(" table {}", to_string(view.ranks().table()->hash()));
    text += '\n';
  }
  for (const GroupFamily& family : families_) text += fmt::format("name {}\n", family.canonical());
  return text;
}

Hash128 MeshPlan::digest() const { return hash_bytes(canonical_text()); }

}  // namespace rankmesh
